"""Merging databases: thirty laptops become one database, nothing is doubled or lost, and clashes are named."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from localsim.cli import cli
from localsim.errors import InvalidInput
from localsim.reports.compose.alone import report
from localsim.store.database import Store
from localsim.store.journal import Journal, journal_folder
from localsim.store.outside.export import write_partition
from localsim.store.outside.incoming import Clash
from localsim.store.outside.merge import merge
from localsim.store.records import from_json
from localsim.store.schema import TABLES
from tests.conftest import simulated

COUNTS = ("runs", "episodes", "turns", "generations", "scores", "annotations", "contents", "scenarios")


def command(*words: str) -> Any:
    result = CliRunner().invoke(cli, [*words, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def counts(store: Store) -> dict[str, int]:
    columns = ", ".join(f"(SELECT count(*) FROM {table}) AS {table}" for table in COUNTS)
    return store.rows(f"SELECT {columns}")[0]


def content(store: Store) -> dict[str, list[str]]:
    """All rows of all tables, in one order."""
    return {table: sorted(map(repr, store.rows(f"SELECT * FROM {table}"))) for table in TABLES}


def answer(store: Store, rater: str, value: str, item: str = "i1") -> None:
    """Store an answer of a rater about the first episode."""
    with store.writing() as connection:
        connection.execute(
            "INSERT OR REPLACE INTO annotations SELECT 'pairs', ?, ?, run_id, ?, json_object('1', episode_id), false, "
            "2.5, TIMESTAMP '2026-11-25 09:00:00', 'browser', 'person' FROM episodes ORDER BY episode_id LIMIT 1",
            [item, rater, value],
        )


def change(path: Path, statement: str) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute(statement)


def merged(output: Path, *places: Path, apart: bool = False) -> list[Any]:
    return [taken for _, taken in merge(map(str, places), output, lambda _: None, apart=apart).sources]


@pytest.fixture
def copies(own_runs: tuple[Store, str, str], tmp_path: Path) -> Callable[[str], Store]:
    """Makes copies of a database with two runs, as on two laptops."""

    def copy(name: str) -> Store:
        shutil.copy(own_runs[0].path, tmp_path / name)
        return Store(tmp_path / name)

    return copy


@pytest.mark.parametrize("laptops", [4, pytest.param(30, marks=pytest.mark.verify)])
def test_many_laptops_become_one_database_in_one_command(tmp_path: Path, laptops: int) -> None:
    """Each laptop ran its own seed; some copied another's file, and some of the copies were changed."""
    folder = tmp_path / "laptops"
    folder.mkdir()
    total = dict.fromkeys(("runs", "episodes", "turns"), 0)
    for number in range(laptops):
        db = folder / f"{number:02d}.duckdb"
        command(
            "run", "mutual_friends_01", "-m", "scripted", "--mode", "agents", "--seed", str(number), "--db", str(db)
        )
        store = Store(db)
        own = counts(store)
        total = {name: count + own[name] for name, count in total.items()}
        answer(store, f"rater {number}", "1")
    shutil.copy(folder / "00.duckdb", folder / "copy-a.duckdb")
    shutil.copy(folder / "01.duckdb", folder / "copy-b.duckdb")
    change(folder / "copy-b.duckdb", "UPDATE turns SET text = text || ' Hm.' WHERE turn = 2")
    shutil.copy(folder / "02.duckdb", folder / "copy-c.duckdb")
    change(folder / "copy-c.duckdb", "UPDATE annotations SET value_json = '2'")
    run = Store(folder / "01.duckdb").rows("SELECT run_id, episode_id FROM episodes")[0]

    for again in (False, True):
        made = command("db", "merge", str(folder / "*.duckdb"), "-o", "class.duckdb")
        store = Store(tmp_path / "class.duckdb")
        found = counts(store)
        assert {name: found[name] for name in total} == total and found["annotations"] == laptops
        assert [each["new"] for each in made["sources"]] == [0 if again else 1] * laptops + [0, 0, 0]
        clashes = {Path(each["path"]).stem: each["clashes"] for each in made["sources"] if each["clashes"]}
        assert set(clashes) == {"copy-b", "copy-c"}
        assert [each["name"] for each in clashes["copy-b"]] == [run["episode_id"], "rater 1"]
        assert run["run_id"] in clashes["copy-b"][0]["detail"] and "turn 3" in clashes["copy-b"][0]["detail"]
        assert [(each["what"], each["name"]) for each in clashes["copy-c"]] == [("annotation", "rater 2")]
        assert store.check() == []
    texts = store.rows("SELECT count(*) AS n, count(DISTINCT text) AS texts FROM contents")[0]
    assert texts["n"] == texts["texts"], "a text that all laptops have is stored once"
    one = Store(folder / "03.duckdb")
    assert report(store, one.run_id("@last")).comparison == report(one, one.run_id("@last")).comparison


def test_the_runs_of_a_class_are_seen_together_by_what_a_merge_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        words = ["run", "mutual_friends_01", "-m", "scripted", "--seed", str(number)]
        command(*words, "--mode", "agents,script" if number else "agents", "--db", f"{number}.duckdb")
    invoke = CliRunner().invoke
    said = invoke(cli, ["db", "merge", "0.duckdb", "1.duckdb", "2.duckdb", "-o", "a class.duckdb"]).stderr
    typed = [shlex.split(line.partition(": localsim ")[2]) for line in said.splitlines() if ": localsim " in line]
    assert [words[0] for words in typed] == ["runs", "sql"]
    listed = invoke(cli, typed[0])
    assert listed.exit_code == 0 and listed.stdout.count("mutual_friends_01") == 3
    rows = command(*typed[1])
    assert [(row["mode"], row["runs"], row["talks"]) for row in rows] == [("agents", 3, 3), ("script", 2, 2)]
    page = " ".join((Path(__file__).parents[1] / "docs/scale.md").read_text(encoding="utf-8").split())
    assert typed[1][1] in page
    report_of = invoke(cli, ["report", "@last", "--db", "a class.duckdb"])
    assert report_of.exit_code == 0 and "1 of 3 runs of this database" in report_of.stderr


def test_a_merge_changes_neither_the_sources_nor_itself_when_repeated(
    copies: Callable[[str], Store], tmp_path: Path
) -> None:
    one, output = copies("one.duckdb"), tmp_path / "class.duckdb"
    answer(one, "Zoë", "1")
    before, rows = one.path.read_bytes(), content(one)
    merged(output, one.path)
    assert content(Store(output)) == rows
    again = merged(output, one.path)[0]
    assert (again.runs, again.new, again.known, again.scores, again.clashes) == (0, 0, counts(one)["episodes"], 0, [])
    assert content(Store(output)) == rows and one.path.read_bytes() == before


def test_clashes_are_kept_apart_on_request_and_only_once(copies: Callable[[str], Store], tmp_path: Path) -> None:
    one, two, three = copies("one.duckdb"), copies("two.duckdb"), copies("three.duckdb")
    for store, value in ((one, "1"), (two, "2"), (three, "1")):
        answer(store, "Zoë", value)
        answer(store, "Bo", value, "i2")
    first = one.rows("SELECT episode_id, run_id FROM episodes ORDER BY 1 LIMIT 1")[0]
    episode, run_id = first["episode_id"], first["run_id"]
    for store, word in ((two, "Two"), (three, "Three")):
        change(store.path, f"UPDATE turns SET text = '{word}.' WHERE episode_id = '{episode}' AND turn = 0")
    output = tmp_path / "class.duckdb"
    for again in (False, True):
        made = merged(output, one.path, two.path, three.path, apart=True)
        assert [each.new for each in made[1:]] == ([0, 0] if again else [1, 1])
        kept = [next(clash.kept for clash in each.clashes if clash.what == "episode") for each in made[1:]]
        assert kept == [f"{episode}~2", f"{episode}~3"]
        store = Store(output)
        texts = store.rows("SELECT run_id, text FROM v_turns WHERE turn = 0 AND starts_with(episode_id, ?)", [episode])
        assert {row["run_id"]: row["text"] for row in texts} == {
            run_id: texts_of(one, episode), f"{run_id}~2": "Two.", f"{run_id}~3": "Three.",
        }  # fmt: skip
        raters = store.rows("SELECT rater, run_id, value_json, shown_json FROM annotations WHERE item_id[:2] = 'i1'")
        assert {(row["run_id"], row["value_json"]) for row in raters} == {
            (run_id, "1"), (f"{run_id}~2", "2"), (f"{run_id}~3", "1"),
        }  # fmt: skip
        assert store.check() == []
    assert report(store, f"{run_id}~2").comparison[0].completed == 1


def texts_of(store: Store, episode: str) -> str:
    row = store.rows("SELECT text FROM turns WHERE episode_id = ? AND turn = 0", [episode])[0]
    return str(row["text"])


@pytest.mark.parametrize("apart", [False, True])
def test_every_kind_of_clash_is_named(copies: Callable[[str], Store], tmp_path: Path, apart: bool) -> None:
    one, two = copies("one.duckdb"), copies("two.duckdb")
    runs = [row["run_id"] for row in one.rows("SELECT run_id FROM runs ORDER BY 1")]
    episodes = [
        row["episode_id"] for row in one.rows("SELECT episode_id FROM episodes WHERE run_id = ? ORDER BY 1", runs[:1])
    ]
    change(two.path, f"UPDATE runs SET seed = seed + 1 WHERE run_id = '{runs[1]}'")
    change(two.path, f"UPDATE scores SET value = 0.123 WHERE episode_id = '{episodes[0]}' AND name = 'words_per_turn'")
    change(two.path, f"UPDATE generations SET text = 'x' WHERE episode_id = '{episodes[1]}'")
    change(
        two.path, "UPDATE contents SET text = text || '!' WHERE content_hash = (SELECT min(content_hash) FROM contents)"
    )
    change(
        two.path,
        "UPDATE scenarios SET document_json = '{}' WHERE scenario_hash = (SELECT min(scenario_hash) FROM scenarios)",
    )
    output = tmp_path / "class.duckdb"
    made = merged(output, one.path, two.path, apart=apart)[1]
    whole = len(one.rows("SELECT 1 FROM episodes WHERE run_id = ?", runs[1:]))
    named = {(each.what, each.name): each for each in made.clashes}
    own = ("episode", episodes[0]) if apart else ("scores", "style")
    assert {key for key in named if key[0] not in ("scenario", "text")} == {
        ("run", runs[1]), ("episode", episodes[1]), own,
    }  # fmt: skip
    assert len(named) == 5
    assert f"{whole} episodes" in named["run", runs[1]].detail
    assert named["run", runs[1]].kept == (f"{runs[1]}~2" if apart else "")
    assert made.new == (whole + 2 if apart else 0)
    store = Store(output)
    if not apart:
        assert content(store) == content(one), "what came first stays as it was"
    assert store.check() == []
    merged(output, two.path, apart=apart)
    assert counts(Store(output))["episodes"] == counts(one)["episodes"] + made.new


def test_an_interrupted_run_gives_way_to_its_later_self(copies: Callable[[str], Store], tmp_path: Path) -> None:
    whole, part = copies("whole.duckdb"), copies("part.duckdb")
    row = part.rows("SELECT episode_id, run_id FROM episodes WHERE turns > 2 ORDER BY 1 LIMIT 1")[0]
    episode, run_id = row["episode_id"], row["run_id"]
    change(part.path, f"UPDATE runs SET status = 'interrupted', finished_utc = NULL WHERE run_id = '{run_id}'")
    change(
        part.path,
        f"UPDATE episodes SET status = 'interrupted', stop_reason = NULL, turns = 1 WHERE episode_id = '{episode}'",
    )
    for table, column in (("turns", "turn"), ("generations", "generation"), ("scores", "1")):
        change(part.path, f"DELETE FROM {table} WHERE episode_id = '{episode}' AND {column} > 0")
    output = tmp_path / "class.duckdb"
    first, second = merged(output, part.path, whole.path)
    third = merged(output, part.path)[0]
    assert (second.completed, second.new, first.clashes + second.clashes + third.clashes) == (1, 0, [])
    assert content(Store(output)) == content(whole)


def test_later_scores_are_added(copies: Callable[[str], Store], tmp_path: Path) -> None:
    one, two, output = copies("one.duckdb"), copies("two.duckdb"), tmp_path / "class.duckdb"
    change(one.path, "DELETE FROM scores WHERE evaluator = 'style'")
    count = two.rows("SELECT count(*) AS n FROM scores WHERE evaluator = 'style'")[0]["n"]
    second = merged(output, one.path, two.path)[1]
    assert (second.scores, second.clashes) == (count, [])
    assert content(Store(output))["scores"] == content(two)["scores"]


def test_journals_and_partitions_are_taken_in(copies: Callable[[str], Store], tmp_path: Path) -> None:
    one, output = copies("one.duckdb"), tmp_path / "class.duckdb"
    parts = copies("parts.duckdb")
    extra = simulated(parts, "scripted", ("agents",), range(1, 2))
    write_partition(parts, extra, tmp_path / "parts")
    event = {
        "event": "run",
        "run_id": "20261125-000000-0000",
        "status": "running",
        "started_utc": "2026-11-25T00:00:00",
    }
    event |= {"finished_utc": None, "seed": 1, "repro": "stable", "parallel": 1, "episodes_planned": 1}
    event |= {"plan_json": '{"scenarios": []}', "models_json": "{}", "versions_json": "{}"}
    journal = Journal(one.path, event["run_id"])
    journal.append(from_json(event))
    alive = merged(output, one.path)[0]
    assert alive.runs == 2, "a run that goes on is left for later"
    journal.close(remove=False)
    before = {path: path.read_bytes() for path in (one.path, *journal_folder(one.path).glob("*.jsonl"))}
    made = merged(output, one.path, tmp_path / "parts")
    assert [each.runs for each in made] == [1, 1] and len(before) == 2
    assert {path: path.read_bytes() for path in before} == before, "sources are only read"
    store = Store(output)
    row = store.rows("SELECT status FROM runs WHERE run_id = ?", [event["run_id"]])[0]
    assert row["status"] == "interrupted" and store.check() == []


def test_what_cannot_be_merged_is_one_error(own_runs: tuple[Store, str, str], tmp_path: Path) -> None:
    store, _, _ = own_runs
    with pytest.raises(InvalidInput, match="into itself"):
        merged(store.path, store.path)
    (tmp_path / "text.duckdb").write_text("no database")
    result = CliRunner().invoke(cli, ["db", "merge", "text.duckdb", "-o", "class.duckdb"])
    assert "text.duckdb: not a DuckDB database" in str(result.exception)
    assert Clash("episode", "x", "y").kept == ""
