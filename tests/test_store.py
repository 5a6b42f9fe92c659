"""The database and the journal: nothing finished is lost, others can read, a foreign holder is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

import localsim
from localsim.conversation.episode import Episode, EpisodeSpec
from localsim.conversation.transcript import Transcript
from localsim.errors import DatabaseError, InvalidInput
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.runs.recorder import EVERY_S, Recorder
from localsim.store.database import Store
from localsim.store.journal import Journal, journal_folder, read_journal
from localsim.store.lock import Busy
from localsim.store.records import ContentRecord, RejectRecord, RunRecord
from localsim.store.schema import TABLES
from tests.conftest import Quiet, generated

ROOT = Path(__file__).resolve().parent.parent
HOLD = "import duckdb,sys,time; c=duckdb.connect(sys.argv[1],read_only=True); print('held',flush=True); time.sleep(60)"


def simulate(store: Store, episodes: int = 2, say: Any = print, watcher: Any = None) -> Any:
    plan = Plan((generated("mutual_friends"),), ("agents", "script"), "scripted", episodes=episodes, seed=5)
    return runner.start(plan, store, watcher or Quiet(), say)


@contextmanager
def held_by_another(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A foreign process, as a notebook would be, keeps the file open."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "held"
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_run_leaves_rows_and_no_journal(store: Store) -> None:
    result = simulate(store)
    assert result.as_json()["completed"] == 4 and result.in_database
    assert not journal_folder(store.path).exists()
    episodes = store.rows("SELECT * FROM v_episodes")
    assert {row["status"] for row in episodes} == {"completed"}
    for row in episodes:
        turns = store.rows("SELECT turn FROM v_turns WHERE episode_id = ? ORDER BY turn", [row["episode_id"]])
        assert [turn["turn"] for turn in turns] == list(range(row["turns"]))
    assert store.check() == []


def test_prompts_are_stored_once_and_grow_linearly(store: Store) -> None:
    simulate(store)
    rows = store.rows("SELECT messages_json FROM generations WHERE speaker <> 'writer' ORDER BY episode_id, generation")
    assert all(len(json.loads(row["messages_json"])) <= 3 for row in rows), "only what is new is referred to"


def test_a_foreign_reader_that_holds_the_file_is_named_and_nothing_is_lost(store: Store) -> None:
    simulate(store, episodes=1)
    said: list[str] = []
    with held_by_another(store.path) as process:
        threading.Timer(4, process.kill).start()
        result = simulate(store, episodes=2, say=said.append)
    assert result.in_database
    assert any(str(process.pid) in message for message in said)
    assert len(store.rows("SELECT 1 FROM v_episodes WHERE run_id = ?", [result.run_id])) == 4


def test_a_file_held_to_the_end_leaves_a_journal_that_the_next_reader_takes_in(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate(store, episodes=1)
    monkeypatch.setattr("localsim.runs.recorder.END_PATIENCE_S", 0.5)
    monkeypatch.setattr("localsim.runs.recorder.FLUSH_PATIENCE_S", 0.1)
    with held_by_another(store.path):
        result = simulate(store, episodes=1)
        assert not result.in_database
    assert len(store.rows("SELECT 1 FROM v_episodes WHERE run_id = ?", [result.run_id])) == 2
    assert not journal_folder(store.path).exists()


def test_others_read_while_a_run_writes(store: Store) -> None:
    simulate(store, episodes=1)
    counts: list[int] = []
    query = [sys.executable, "-m", "localsim", "sql", "SELECT count(*) AS n FROM v_episodes", "--json"]

    def look() -> None:
        if len(counts) < 3:
            out = subprocess.run([*query, "--db", str(store.path)], capture_output=True, text=True, check=True)
            counts.append(json.loads(out.stdout)[0]["n"])
            counts.append(len(localsim.open(str(store.path)).episodes()))

    simulate(store, episodes=4, watcher=Quiet(look))
    assert counts[0] >= 2 and len(counts) >= 4


@pytest.mark.parametrize(("every", "in_time"), [(0.0, True), (1000.0, False)])
def test_ended_episodes_are_written_while_others_go_on_but_not_too_often(
    store: Store, monkeypatch: pytest.MonkeyPatch, every: float, in_time: bool
) -> None:
    monkeypatch.setattr("localsim.runs.recorder.EVERY_S", every)
    watcher, seen = Quiet(lambda: look()), [0]

    def look() -> None:
        if len(watcher.turns) % 9 == 0:
            seen.append(len(store.rows("SELECT 1 FROM v_episodes")))

    simulate(store, episodes=3, watcher=watcher)
    assert (max(seen) > 0) == in_time
    assert len(store.rows("SELECT 1 FROM v_episodes")) == 6


def test_a_late_write_needs_no_further_episode_to_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ended while the last write was too recent is written with the next event of any other episode."""
    now = [0.0]
    monkeypatch.setattr("localsim.runs.recorder.time", SimpleNamespace(monotonic=lambda: now[0]))
    loaded = generated("mutual_friends")
    specs = [EpisodeSpec(loaded.scenario, "agents", {}, index, 1) for index in range(2)]
    run = RunRecord("r", "running", "2026-01-01T00:00:00", None, 1, "stable", 2, 2, "{}", "{}", "{}")
    journal = Journal(store.path, "r")
    recorder = Recorder(store, journal, run, [loaded], print)
    for number, spec in enumerate(specs):
        recorder.episode_started(str(number), spec)
    recorder.episode_ended("0", Episode(specs[0], Transcript(), "completed", "left", None), [], 1.0)
    query = "SELECT episode_id FROM episodes WHERE status = 'completed'"
    assert store.rows(query) == []
    now[0] = EVERY_S
    recorder.reject("1", 0, "no line")
    assert store.rows(query) == [{"episode_id": "0"}]
    journal.close(remove=True)


def test_two_writers_take_turns(store: Store) -> None:
    code = (
        "import sys; from pathlib import Path; from localsim.store.database import Store;"
        "from tests.test_store import simulate;"
        "simulate(Store(Path(sys.argv[1])), episodes=6)"
    )
    command = [sys.executable, "-c", code, str(store.path)]
    both = [subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        assert process.wait(60) == 0, process.stderr.read() if process.stderr else ""
    assert len(store.rows("SELECT 1 FROM v_episodes")) == 24
    assert store.check() == []


def test_a_torn_journal_keeps_all_whole_events(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "x.duckdb", "r1")
    journal.append(RejectRecord("a", 0, "no"), ContentRecord("b", "ü\u2028"))
    journal.close(remove=False)
    path = journal_folder(tmp_path / "x.duckdb") / "r1.jsonl"
    path.write_bytes(path.read_bytes() + b'{"event": "tor')
    assert [event["event"] for event in read_journal(path)] == ["reject", "content"]


def test_a_journal_that_cannot_be_opened_leaves_no_lock(tmp_path: Path) -> None:
    path = journal_folder(tmp_path / "x.duckdb") / "r1.jsonl"
    path.mkdir(parents=True)
    with pytest.raises(DatabaseError, match="cannot"):
        Journal(tmp_path / "x.duckdb", "r1")
    path.rmdir()
    Journal(tmp_path / "x.duckdb", "r1").close(remove=True)


def test_one_journal_has_one_writer(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "x.duckdb", "r1")
    with pytest.raises(DatabaseError, match="another process"):
        Journal(tmp_path / "x.duckdb", "r1")
    journal.close(remove=True)


def test_taking_in_twice_changes_nothing(store: Store) -> None:
    simulate(store)
    before = {table: store.rows(f"SELECT * FROM {table} ORDER BY ALL") for table in TABLES}
    run = store.rows("SELECT * FROM runs")[0]
    store.take_in([RunRecord(**{k: v.isoformat() if hasattr(v, "isoformat") else v for k, v in run.items()})])
    assert {table: store.rows(f"SELECT * FROM {table} ORDER BY ALL") for table in TABLES} == before


def test_removing_a_run_takes_all_of_it(store: Store) -> None:
    first, second = simulate(store), simulate(store)
    assert store.remove_run(first.run_id) == 4
    assert {row["run_id"] for row in store.rows("SELECT run_id FROM v_episodes")} == {second.run_id}
    assert store.check() == []


def test_resuming_a_finished_run_changes_nothing(store: Store) -> None:
    run_id = simulate(store).run_id
    before = store.rows("SELECT * FROM runs")
    result = runner.resume(run_id, store, Quiet(), print)
    assert (result.summary.completed, result.seconds) == (4, 0.0)
    assert store.rows("SELECT * FROM runs") == before
    assert not journal_folder(store.path).exists()


def test_a_run_is_not_resumed_from_a_database_that_lacks_its_journal(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate(store, episodes=1)
    monkeypatch.setattr("localsim.runs.recorder.END_PATIENCE_S", 0.3)
    monkeypatch.setattr("localsim.runs.recorder.FLUSH_PATIENCE_S", 0.1)
    with held_by_another(store.path):
        run_id = simulate(store, episodes=1).run_id
        with pytest.raises(Busy):
            runner.resume(run_id, Store(store.path, patience_s=0.3), Quiet(), print)
    assert runner.resume(run_id, store, Quiet(), print).summary.completed == 2


def test_a_journal_that_makes_no_sense_is_put_aside_and_blocks_no_other(store: Store) -> None:
    simulate(store, episodes=1)
    folder = journal_folder(store.path)
    folder.mkdir()
    (folder / "20200101-000000-aaaa.jsonl").write_text('{"no": "event"}\n')
    (folder / "20200102-000000-bbbb.jsonl").write_text('{"event": "content", "content_hash": "x", "text": "y"}\n')
    assert store.rows("SELECT text FROM contents WHERE content_hash = 'x'") == [{"text": "y"}]
    assert [path.name for path in folder.iterdir()] == ["20200101-000000-aaaa.broken"]


def test_a_changed_answer_key_is_a_row_of_its_own(store: Store) -> None:
    loaded = generated("mutual_friends")
    changed = replace(loaded, answer=replace(loaded.answer, parameters={"seed": 99}))
    for scenario in (loaded, changed):
        runner.start(Plan((scenario,), ("agents",), "scripted"), store, Quiet(), print)
    assert len(store.rows("SELECT 1 FROM scenarios")) == 2
    assert len(store.rows("SELECT DISTINCT scenario_hash FROM episodes")) == 2


# ---- a file that is gone -------------------------------------------------------------------------------------------


def remove(path: Path) -> None:
    path.unlink()


def replace_by_another_run(path: Path) -> None:
    other = path.with_name("other.duckdb")
    simulate(Store(other), episodes=1)
    other.replace(path)


def overwrite_in_place(path: Path) -> None:
    """The same inode with the content of another database."""
    other = path.with_name("other.duckdb")
    simulate(Store(other), episodes=1)
    path.write_bytes(other.read_bytes())


@pytest.mark.parametrize(
    ("harm", "turn"), [(remove, 3), (remove, 25), (replace_by_another_run, 25), (overwrite_in_place, 25)]
)
def test_a_file_that_vanishes_during_a_run_stops_it_and_the_journal_brings_everything_back(
    store: Store, monkeypatch: pytest.MonkeyPatch, harm: Any, turn: int
) -> None:
    monkeypatch.setattr("localsim.runs.recorder.EVERY_S", 0.0)
    turns = (
        "SELECT e.mode, e.episode_index, t.turn, t.text FROM turns t JOIN episodes e USING (episode_id) "
        "WHERE e.run_id = ? ORDER BY ALL"
    )
    whole = Store(store.path.with_name("whole.duckdb"))
    expected = whole.rows(turns, [simulate(whole, episodes=3).run_id])
    watcher = Quiet(lambda: harm(store.path) if len(watcher.turns) == turn else None)
    with pytest.raises(DatabaseError, match="removed or replaced") as caught:
        simulate(store, episodes=3, watcher=watcher)
    assert caught.value.exit_code == 5 and caught.value.where == str(store.path)
    (journal,) = journal_folder(store.path).glob("*.jsonl")
    run_id = journal.stem
    assert f"localsim resume {run_id}" in str(caught.value.hint)
    kept = {(event["episode_id"], event["turn"]) for event in read_events(journal) if event["event"] == "turn"}
    assert len(kept) >= turn
    stored = {(row["episode_id"], row["turn"]) for row in store.rows("SELECT episode_id, turn FROM turns")}
    assert kept <= stored, "the next command takes the journal in"
    assert store.check() == []
    result = runner.resume(run_id, store, Quiet(), print)
    assert (result.summary.completed, result.in_database) == (6, True)
    assert store.rows(turns, [run_id]) == expected
    assert store.check() == []
    assert not journal_folder(store.path).exists()


def read_events(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]


def test_a_file_that_was_held_and_removed_before_the_first_write_is_no_loss(store: Store) -> None:
    watcher = Quiet(lambda: None)
    simulate(store, episodes=1)
    store.path.unlink()
    assert simulate(store, episodes=1, watcher=watcher).in_database, "a new run makes a new file"
    assert store.check() == []


def test_a_journal_that_vanishes_during_a_run_stops_it(store: Store) -> None:
    def harm() -> None:
        for path in journal_folder(store.path).glob("*.jsonl"):
            path.unlink()

    with pytest.raises(DatabaseError, match="journal was removed") as caught:
        simulate(store, watcher=Quiet(harm))
    assert caught.value.exit_code == 5


# ---- refusals ------------------------------------------------------------------------------------------------------


def test_another_schema_is_refused(store: Store) -> None:
    simulate(store, episodes=1)
    with duckdb.connect(str(store.path)) as connection:
        connection.execute("UPDATE _schema SET version = 'ffffffff'")
    for attempt in (lambda: store.rows("SELECT 1"), lambda: store.take_in([])):
        with pytest.raises(DatabaseError, match="another version of localsim"):
            attempt()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "no.duckdb"
    path.write_bytes(b"this is not a database" * 1000)
    with pytest.raises(DatabaseError):
        Store(path).rows("SELECT 1")


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "theirs.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE theirs (a INTEGER)")
    for attempt in (lambda: Store(path).rows("SELECT 1"), lambda: Store(path).take_in([])):
        with pytest.raises(DatabaseError, match="not a database of localsim"):
            attempt()
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("theirs",)]


def test_a_missing_database_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError) as caught:
        Store(tmp_path / "none.duckdb").rows("SELECT 1")
    assert "localsim run" in str(caught.value.hint)


def test_a_held_file_is_reported_with_its_holder(store: Store) -> None:
    simulate(store, episodes=1)
    impatient = Store(store.path, patience_s=0.3)
    with held_by_another(store.path) as process, pytest.raises(Busy, match=str(process.pid)):
        impatient.take_in([])


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "COPY runs TO 'x.csv'",
        "ATTACH 'other.duckdb'",
        "SET enable_external_access = true",
        "DELETE FROM runs",
        "CREATE TABLE x (a INT)",
        "INSTALL httpfs",
        "SELECT * FROM 'file.parquet'",
        "SELECT",
    ],
)
def test_sql_reads_the_database_and_nothing_else(store: Store, query: str) -> None:
    simulate(store, episodes=1)
    before = store.rows("SELECT count(*) AS n FROM runs")
    with pytest.raises(InvalidInput):
        store.sql(query)
    assert store.rows("SELECT count(*) AS n FROM runs") == before


def test_references(store: Store) -> None:
    first, second = simulate(store, 1), simulate(store, 1)
    assert store.run_id("@last") == second.run_id
    assert store.run_id("@last-1") == first.run_id
    assert store.run_id(first.run_id) == first.run_id
    assert store.run_id(first.run_id[:-1]) == first.run_id or first.run_id[:-1] == second.run_id[:-1]
    for wrong in ("@last-9", "nothing", "20"):
        with pytest.raises(InvalidInput):
            store.run_id(wrong)


# ---- full disk -----------------------------------------------------------------------------------------------------


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 16 MB."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_stops_the_run_and_loses_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as folder:
        store = Store(folder / "test.duckdb")
        simulate(store, episodes=1)
        filler = folder / "filler"

        def fill() -> None:
            if not filler.exists():
                free = os.statvfs(folder).f_bavail * 4096
                filler.write_bytes(b"x" * max(0, free - 40_000))

        with pytest.raises(DatabaseError, match="full") as caught:
            simulate(store, episodes=40, watcher=Quiet(fill))
        assert caught.value.exit_code == 5
        filler.unlink()
        rows = store.rows("SELECT run_id, status FROM runs ORDER BY started_utc")
        assert [row["status"] for row in rows] == ["finished", "interrupted"]
        assert store.check() == []
        done = store.rows("SELECT count(*) AS n FROM episodes WHERE run_id = ?", [rows[1]["run_id"]])[0]["n"]
        assert done >= 1


# ---- the file -----------------------------------------------------------------------------------------------------


def test_the_storage_version_is_readable_by_duckdb_1(store: Store) -> None:
    simulate(store, episodes=1)
    tags = "SELECT tags FROM duckdb_databases() WHERE database_name = 'test'"
    with duckdb.connect(str(store.path), read_only=True) as connection:
        found = str(connection.execute(tags).fetchone())
    assert "v1.4" in found or "v1.2" in found, found
