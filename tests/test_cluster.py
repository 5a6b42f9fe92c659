"""Runs on many workers: the assignments and a worker without Ray, then a Ray cluster of two nodes on this machine."""

from __future__ import annotations

import hashlib
import json
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localsim import paths
from localsim.__main__ import run as typed
from localsim.backends.open import Needs, models_of
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import InvalidInput
from localsim.models.sidecars import write_sidecar
from localsim.runs.cluster import crew, weights
from localsim.runs.cluster.assignments import MOST_LOSSES, Assignments
from localsim.runs.cluster.connect import checked_address
from localsim.runs.cluster.messages import Ended, Opened, Orders, Part, Task, Wanted
from localsim.runs.cluster.worker import Worker
from localsim.runs.plan import Plan
from localsim.runs.recorder import Recorder
from localsim.runs.runner import journal_of, start
from localsim.runs.scheduler import Watcher, Work
from localsim.runs.versions import versions
from localsim.store.database import Store
from localsim.store.records import episode_id_of
from tests import tiny_model
from tests.conftest import TALK
from tests.ray_cluster import Nodes, journal_events, nodes

SCRIPTED = "scripted:smalltalk"


def stored(db: Path) -> list[tuple[Any, ...]]:
    """Every turn of every episode with its text."""
    columns = "e.spec_hash, e.mode, e.seed, e.status, t.turn, t.speaker, t.action, t.text"
    rows = Store(db).rows(f"SELECT {columns} FROM episodes e LEFT JOIN turns t USING (episode_id) ORDER BY ALL")
    return [tuple(row.values()) for row in rows]


def written(db: Path) -> list[tuple[Any, ...]]:
    """Every generation of every episode: what was asked and what came."""
    columns = "e.spec_hash, g.generation, g.turn, g.attempt, g.seed, g.parent, g.messages_json, g.text, g.malformed"
    rows = Store(db).rows(f"SELECT {columns} FROM episodes e JOIN generations g USING (episode_id) ORDER BY ALL")
    return [tuple(row.values()) for row in rows]


def scored(db: Path) -> list[tuple[Any, ...]]:
    columns = "e.spec_hash, s.evaluator, s.name, s.agent, s.value, s.label"
    rows = Store(db).rows(f"SELECT {columns} FROM episodes e JOIN scores s USING (episode_id) ORDER BY ALL")
    return [tuple(row.values()) for row in rows]


def equal(one: Path, other: Path) -> None:
    """Compare everything that two runs of one plan must share, and check that nothing is there twice."""
    assert Store(other).check() == []
    assert stored(other) == stored(one)
    assert written(other) == written(one)
    assert scored(other) == scored(one)
    for row in Store(other).rows("SELECT episode_id, run_id, spec_hash FROM episodes"):
        assert row["episode_id"] == episode_id_of(row["run_id"], _Hashed(row["spec_hash"]))  # type: ignore[arg-type]


class _Hashed:
    def __init__(self, spec_hash: str) -> None:
        self.hash = spec_hash


# ---- without Ray ---------------------------------------------------------------------------------------------------


def plan_of(talk: LoadedScenario, episodes: int = 3, **more: Any) -> Plan:
    return Plan(scenarios=(talk,), modes=("agents", "script"), model=SCRIPTED, episodes=episodes, **more)


def worker_of(plan: Plan, run_id: str) -> Worker:
    specs = plan.specs()
    worker = Worker(1)
    opened = worker.open(Orders(tuple(models_of(specs)), Needs(1, specs), plan.parallel, len(specs)))
    assert isinstance(opened, Opened)
    worker.play(run_id)
    return worker


@pytest.fixture
def assignments(store: Store, talk: LoadedScenario) -> Iterator[tuple[Assignments, Plan, Recorder, str]]:
    from datetime import UTC, datetime

    from localsim.runs.runner import run_record

    plan, run_id = plan_of(talk), "20260101-000000-aaaa"
    identities = {SCRIPTED: {"kind": "scripted", "name": SCRIPTED}}
    record = run_record(run_id, datetime.now(UTC), plan, 1, len(plan.specs()), identities)
    with journal_of(store, run_id) as journal:
        recorder = Recorder(store, journal, record, plan.scenarios, lambda _: None)
        answers = {talk.scenario.hash: talk.answer}
        yield (
            Assignments(Work(run_id, plan.specs(), {}, answers, recorder, Watcher(), lambda: False)),
            plan,
            recorder,
            run_id,
        )


def test_a_lost_worker_costs_nothing_and_doubles_nothing(
    assignments: tuple[Assignments, Plan, Recorder, str], store: Store, tmp_path: Path
) -> None:
    book, plan, recorder, run_id = assignments
    first = worker_of(plan, run_id)
    tasks = book.take("first", 4, 0, 1)
    assert len(tasks) == 4
    events: list[Any] = []
    while sum(isinstance(event, Ended) for event in events) < 4:
        events += first.exchange(tasks).events
        tasks = []
    cut = [number for number, event in enumerate(events) if isinstance(event, Ended)][1] + 4
    book.hear("first", events[:cut])  # two episodes ended, the third has begun, then the worker is lost
    assert book.lose("first") == 2
    assert book.hear("first", events[cut:]) == 0, "what a lost worker still sends is not heard"
    second = worker_of(plan, run_id)
    again = book.take("second", 9, 0, 1)
    assert len(again) == 4 and again[0].recorded, "the third continues with what it had"
    tasks = again
    while not book.done:
        book.hear("second", second.exchange(tasks).events)
        tasks = []
    assert recorder.close(finished_utc="2026-01-01T00:00:00", complete=True)
    assert (book.summary.completed, book.summary.failed) == (6, 0)
    alone = Store(tmp_path / "alone.duckdb")
    start(plan, alone, Watcher(), lambda _: None)
    equal(alone.path, store.path)
    for worker in (first, second):
        worker.close()


def test_an_episode_that_no_worker_survives_has_failed(
    assignments: tuple[Assignments, Plan, Recorder, str], store: Store
) -> None:
    from localsim.runs.cluster.messages import Started

    book, plan, recorder, run_id = assignments
    poison = episode_id_of(run_id, plan.specs()[0])
    for number in range(MOST_LOSSES):
        assert episode_id_of(run_id, book.take(f"w{number}", 1, 0, 1)[0].spec) == poison
        book.hear(f"w{number}", [Started(poison)])
        book.lose(f"w{number}")
    assert episode_id_of(run_id, book.take("w", 1, 0, 1)[0].spec) != poison
    recorder.close(finished_utc="2026-01-01T00:00:00", complete=False)
    row = store.rows("SELECT status, error FROM episodes WHERE episode_id = ?", [poison])[0]
    assert row["status"] == "failed" and "in a row were lost" in row["error"]


def test_the_end_of_a_run_is_shared_among_workers(assignments: tuple[Assignments, Plan, Recorder, str]) -> None:
    book = assignments[0]
    assert len(book.take("early", 1, 9, 1)) == 1 + 2, "ahead by as many as it ended, but not near the end"
    book.lose("early")
    assert [len(book.take("fast", 8, 5, 3)), len(book.take("slow", 1, 0, 3)), len(book.take("third", 8, 0, 3))] == [
        2,
        1,
        1,
    ]


def test_a_stopped_worker_finishes_its_turn_and_drops_what_waits(talk: LoadedScenario) -> None:
    plan = plan_of(talk, parallel=1)
    worker = worker_of(plan, "r")
    news = worker.exchange([], stop=True)
    while not news.over:
        news = worker.exchange([])
    assert not news.error
    worker.close()


def test_a_worker_reports_what_ended_it(talk: LoadedScenario) -> None:
    plan = plan_of(talk)
    worker = worker_of(plan, "r")
    spec = plan.specs()[0]
    news = worker.exchange([Task(replace(spec, models=dict.fromkeys(spec.models, "nobody")))])
    while not news.over:
        news = worker.exchange([])
    assert "KeyError" in news.error
    worker.close()


def test_a_sent_file_is_checked_kept_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALSIM_CACHE", str(tmp_path / "cache"))
    data = b"weights" * 1000
    part = Part("own.gguf", hashlib.sha256(data).hexdigest(), len(data))
    name = str(tmp_path / "nowhere" / "own.gguf")
    orders = Orders((name,), Needs(1), 1, 1, {name: Wanted(part.sha256, "own", (part,))})
    assert "no such model file" in weights.look(orders).missing[name]
    assert "arrived with checksum" in weights.receive(part, [data, b"x"])
    assert weights.look(orders).missing, "a damaged file is not kept"
    assert weights.receive(part, [data[:100], data[100:]]) == ""
    assert weights.look(orders).sha256 == {name: part.sha256}
    file = weights.files_here(orders)[name]
    assert file.path.name == "own.gguf" and file.path.read_bytes() == data


@pytest.mark.parametrize("text", ["", "here", "127.0.0.1:6379", "ray://", "ray://host", "ray://host:port"])
def test_other_addresses_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidInput):
        checked_address(text)
    assert typed(["run", "roommates", "-m", SCRIPTED, "--cluster", text]) == 2
    assert "ray://HOST:PORT" in capsys.readouterr().err


def test_without_ray_the_command_to_install_it_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert typed(["run", "roommates", "-m", SCRIPTED, "--cluster", "auto"]) == 7
    assert paths.installing("ray") in capsys.readouterr().err


@pytest.mark.parametrize("where", ["ray://127.0.0.1:9", "auto"])
def test_a_cluster_that_does_not_answer_is_named(
    where: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    assert typed(["run", "roommates", "-m", SCRIPTED, "--cluster", where]) == 7
    err = capsys.readouterr().err
    assert "no Ray cluster answers at" in err and "127.0.0.1:9" in err and "ray start --head" in err


def test_what_workers_cannot_share_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "replies.txt").write_text("hello\n")
    assert typed(["run", "roommates", "-m", f"scripted:@{tmp_path / 'replies.txt'}", "--cluster", "auto"]) == 3
    assert "in order" in capsys.readouterr().err


def test_ray_is_not_touched_without_a_cluster(tmp_path: Path) -> None:
    import subprocess

    code = (
        "import sys; from localsim.__main__ import run; code = run(sys.argv[1:]); "
        "assert 'ray' not in sys.modules; assert 'localsim.runs.cluster.crew' not in sys.modules; sys.exit(code)"
    )
    command = [sys.executable, "-c", code, "run", "roommates", "-m", SCRIPTED, "--db", str(tmp_path / "x.duckdb")]
    subprocess.run(command, check=True, capture_output=True)


# ---- a cluster of two nodes on this machine ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Two nodes with a cache of their own, as on another machine."""
    with nodes(2, LOCALSIM_CACHE=str(tmp_path_factory.mktemp("cache"))) as found:
        yield found


OPTIONS = ["--no-leaks", "--fail-on-error", "0.01"]


def scripted(episodes: int) -> list[str]:
    return ["run", "mutual_friends_01", "-m", "scripted:guesser", "--mode", "all", "-n", str(episodes), *OPTIONS]


def alone(tmp_path: Path, arguments: Sequence[str]) -> Path:
    """Run on one machine and return the database."""
    db = tmp_path / "alone.duckdb"
    assert typed([*arguments, "--db", str(db)]) == 0
    return db


def wait_for(db: Path, ended: int, process: Any, event: str = "episode_ended") -> None:
    """Wait until so many episodes have ended, or so many other events are in the journal."""
    until = time.monotonic() + 240
    while journal_events(db, event) < ended:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)


def test_two_nodes_play_the_run_of_one_machine(cluster: Nodes, tmp_path: Path) -> None:
    db = tmp_path / "cluster.duckdb"
    code, out, err = cluster.localsim(*scripted(8), "--cluster", "auto", "--db", str(db), "--json")
    assert code == 0, err
    found = json.loads(out)
    assert (found["completed"], found["failed"], found["planned"]) == (24, 0, 24)
    assert "is ready: 8 at a time" in err
    equal(alone(tmp_path, scripted(8)), db)


@pytest.mark.verify
def test_killed_workers_lose_nothing(cluster: Nodes, tmp_path: Path) -> None:
    db = tmp_path / "cluster.duckdb"
    process = cluster.begin(*scripted(30), "--cluster", "auto", "--db", str(db), "--json")
    wait_for(db, 5, process)
    for worker in cluster.workers():
        worker.send_signal(signal.SIGKILL)
    out, err = process.communicate(timeout=400)
    assert process.returncode == 0, err
    assert json.loads(out)["completed"] == 90, "and stdout is nothing but the result"
    assert "was lost" in err and "goes to other workers" in err
    equal(alone(tmp_path, scripted(30)), db)


@pytest.mark.verify
def test_a_removed_node_loses_nothing(cluster: Nodes, tmp_path: Path) -> None:
    """The other workers are stopped until the node is gone, so that it plays alone before."""
    db, err, third = tmp_path / "cluster.duckdb", tmp_path / "err.txt", cluster.add()
    with err.open("w") as file:
        process = cluster.begin(*scripted(70), "--cluster", "auto", "--db", str(db), "--json", stderr=file)
    others: dict[int, Any] = {}
    while len(others) < 2:
        for worker in cluster.workers(without=third):
            worker.send_signal(signal.SIGSTOP)
            others[worker.pid] = worker
        assert process.poll() is None
    wait_for(db, 5, process)
    cluster.remove(third)
    while "was lost" not in err.read_text():
        assert process.poll() is None, err.read_text()
        time.sleep(0.05)
    for worker in others.values():
        worker.send_signal(signal.SIGCONT)
    out, _ = process.communicate(timeout=400)
    assert process.returncode == 0, err.read_text()
    assert json.loads(out)["completed"] == 210
    equal(alone(tmp_path, scripted(70)), db)


@pytest.mark.verify
@pytest.mark.parametrize("again", [["--cluster", "auto"], []], ids=["cluster", "alone"])
def test_a_killed_driver_resumes_on_the_cluster_or_without_it(cluster: Nodes, tmp_path: Path, again: list[str]) -> None:
    db = tmp_path / "cluster.duckdb"
    process = cluster.begin(*scripted(30), "--cluster", "auto", "--db", str(db), "--json")
    wait_for(db, 20, process)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "it was killed in the middle"
    code, out, err = cluster.localsim("resume", *again, "--db", str(db), "--json")
    assert code == 0, err
    assert json.loads(out)["completed"] == 90
    equal(alone(tmp_path, scripted(30)), db)


@pytest.mark.verify
def test_control_c_stops_after_the_turns_and_resumes(cluster: Nodes, tmp_path: Path) -> None:
    db = tmp_path / "cluster.duckdb"
    process = cluster.begin(*scripted(30), "--cluster", "auto", "--db", str(db))
    wait_for(db, 20, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130 and "localsim resume" in err and "Traceback" not in err, err
    assert cluster.localsim("resume", "--cluster", "auto", "--db", str(db))[0] == 0
    equal(alone(tmp_path, scripted(30)), db)


def short(tmp_path: Path, model: str, episodes: int) -> list[str]:
    """Return a run of a real model under `exact`: episodes of four short turns."""
    file = tmp_path / "short.yaml"
    file.write_text(TALK + "limits: {turns: 4, chars: 40}\n")
    options = [
        "-m",
        model,
        "--mode",
        "agents",
        "-n",
        str(episodes),
        "--repro",
        "exact",
        "-j",
        "2",
        "--ctx",
        "2048",
        *OPTIONS,
    ]
    return ["run", str(file), *options]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a tiny model that only the driver has."""
    folder = tmp_path / "models"
    folder.mkdir()
    monkeypatch.setenv("LOCALSIM_MODELS", str(folder))
    path = tiny_model.write(folder / "own.gguf", tiny_model.FAMILIES["qwen2.5"])
    write_sidecar(path, name="own")
    return "own"


def test_a_model_that_workers_lack_is_sent_and_writes_the_same_texts(cluster: Nodes, tmp_path: Path, own: str) -> None:
    db, run = tmp_path / "cluster.duckdb", short(tmp_path, own, 3)
    code, _, err = cluster.localsim(*run, "--cluster", "auto", "--db", str(db), "--json")
    assert code == 0, err
    assert "sending own.gguf" in err and "own was sent there and runs with" in err
    equal(alone(tmp_path, run), db)


@pytest.mark.verify
def test_a_client_from_outside_plays_too(cluster: Nodes, tmp_path: Path, own: str) -> None:
    db, run = tmp_path / "cluster.duckdb", short(tmp_path, own, 2)
    address = f"ray://127.0.0.1:{cluster.client_port}"
    code, out, err = cluster.localsim(*run, "--cluster", address, "--db", str(db), "--json")
    assert code == 0, err
    assert json.loads(out)["completed"] == 2
    equal(alone(tmp_path, run), db)


@pytest.mark.verify
def test_judges_on_workers_answer_the_same_questions(cluster: Nodes, tmp_path: Path, own: str) -> None:
    db = alone(tmp_path, scripted(2))
    copy = tmp_path / "copy.duckdb"
    copy.write_bytes(db.read_bytes())
    code, _, err = cluster.localsim("score", "@last", "--judge", own, "--cluster", "auto", "--db", str(copy))
    assert code == 0 and "is ready: 8 at a time" in err, err
    assert typed(["score", "@last", "--judge", own, "--db", str(db)]) == 0
    columns = "episode_id, evaluator, name, agent, sample, seed, prompt_hash, grammar_hash"
    asked = [Store(each).rows(f"SELECT {columns} FROM judgements ORDER BY ALL") for each in (db, copy)]
    assert asked[0] == asked[1] and len(asked[0]) == 6 * 2 * 7
    answered = Store(copy).rows("SELECT count(*) AS n FROM judgements WHERE text <> ''")
    assert answered == [{"n": 84}]


@pytest.mark.verify
def test_a_cluster_that_cannot_play_says_why(cluster: Nodes, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere.gguf")
    code, _, err = cluster.localsim("run", "roommates", "-m", nowhere, "--cluster", "auto")
    assert code == 4 and "no such model file" in err and "localsim models pull" in err, err


@pytest.mark.verify
def test_a_worker_of_another_version_is_not_used(
    cluster: Nodes, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, value in cluster.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(crew, "versions", lambda: {**versions(), "localsim": "99"})
    assert typed(["run", "roommates", "-m", SCRIPTED, "--cluster", "auto"]) == 7
    assert "this machine 99" in capfd.readouterr().err


@pytest.fixture
def tiny(tmp_path: Path) -> list[str]:
    """A run of the starter: four episodes of four short turns."""
    return short(tmp_path, "starter", 4)


@pytest.mark.model
@pytest.mark.verify
def test_real_texts_are_equal_though_a_worker_is_killed(cluster: Nodes, tmp_path: Path, tiny: list[str]) -> None:
    db = tmp_path / "cluster.duckdb"
    process = cluster.begin(*tiny, "--cluster", "auto", "--db", str(db), "--json")
    wait_for(db, 3, process, event="turn")
    cluster.workers()[0].send_signal(signal.SIGKILL)
    out, err = process.communicate(timeout=400)
    assert process.returncode == 0, err
    assert "was lost" in err and "was there and runs with" in err
    assert json.loads(out)["completed"] == 4
    equal(alone(tmp_path, tiny), db)
