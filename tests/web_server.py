"""A small database and a real server on loopback, for the tests of the pages."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import uvicorn
from starlette.testclient import TestClient

from localsim.conversation.episode import MODES
from localsim.leakage.detector import VERSION
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.store.database import Store
from localsim.store.queries.runs import run_row
from localsim.store.records import EpisodeEnded, EpisodeRecord, LeakRecord, Record, RunRecord, ScoreRecord
from localsim.web import serve
from localsim.web.app import PARTS, Site, create_app
from localsim.web.guard import Access, hosts_of
from tests.conftest import Quiet, generated

P = TypeVar("P")
HOSTS = hosts_of("127.0.0.1")
BASE = "http://127.0.0.1:7580"
HOSTILE = "<script>alert(1)</script></textarea><img src=x onerror=alert(2)> \u202eRTL {{7*7}} \"'&"


def simulated(path: Path, **options: Any) -> tuple[Store, str]:
    """A run of three scenarios in every mode, with a leak, an untold fact and hostile words in it."""
    store = Store(path)
    scenarios = (generated("mutual_friends", 1), generated("mutual_friends", 2), generated("craigslist", 1))
    given = {"modes": MODES, "model": "scripted:omniscient", "seed": 3, **options}
    run_id = start(Plan(scenarios, **given), store, Quiet(), lambda _: None).run_id
    episode = store.rows(
        "SELECT episode_id FROM v_episodes WHERE run_id = ? AND family = 'craigslist' AND mode = 'script'", [run_id]
    )[0]["episode_id"]
    with store.writing() as connection:
        connection.execute("UPDATE turns SET text = ? WHERE episode_id = ? AND turn = 1", [HOSTILE, episode])
    first = store.rows("SELECT speaker, text FROM turns WHERE episode_id = ? AND turn = 0", [episode])[0]
    store.take_in([leak(episode, 0, first["speaker"], first["text"][:12], kind) for kind in ("self", "omniscient")])
    store.take_in([score(episode)])
    return store, run_id


def without_a_talk(store: Store, run_id: str) -> dict[str, str]:
    """Add two older runs of one scenario: one that has just begun, and one whose three talks all failed."""
    run = run_row(store, run_id)
    row = store.rows("SELECT scenario_hash, model FROM episodes WHERE run_id = ? LIMIT 1", [run_id])[0]
    ids = {"begun": "20200101-000001-abcd", "failed": "20200101-000002-abcd"}
    records: list[Record] = []
    for name, state in (("begun", "running"), ("failed", "finished")):
        times = {"started_utc": "2020-01-01T00:00:00", "finished_utc": None}
        changes = {"run_id": ids[name], "status": state, "episodes_planned": len(MODES), **times}
        records.append(RunRecord(**{**run, **changes}))
    for mode in MODES:
        episode = f"failed{mode}"
        spec = (episode, ids["failed"], row["scenario_hash"], mode, row["model"], 0, 1, mode, "{}")
        records += [EpisodeRecord(*spec), EpisodeEnded(episode, "failed", None, "the server did not answer", 0, 1.0)]
    store.take_in(records)
    return ids


def leak(episode: str, turn: int, speaker: str, evidence: str, kind: str) -> LeakRecord:
    return LeakRecord(
        episode_id=episode, version=VERSION, fact_id=f"fact_{kind}", turn=turn,
        owner=speaker if kind == "self" else "Somebody", fact=f"A fact <b>{kind}</b>.", speaker=speaker,
        label="disclosed", kind=kind, probability=0.9, similarity=0.8, evidence=evidence, first=True,
        early=kind == "self",
    )  # fmt: skip


def score(episode: str) -> ScoreRecord:
    return ScoreRecord(
        episode_id=episode, evaluator="leakage", version=VERSION, name="omniscient_leaks", agent="", value=1.0,
        label=None, reason="", turns=[0],
    )  # fmt: skip


def client_of(store: Store, **changes: object) -> TestClient:
    """A browser without scripts; `changes` of the rules."""
    rules = Access(HOSTS, **{"rate": 10_000.0, "burst": 10_000.0, **changes})  # type: ignore[arg-type]
    return TestClient(create_app(Site(store, rules, "scripted")), base_url=BASE, raise_server_exceptions=False)


def field(text: str, name: str) -> str:
    """The value of a hidden field of a page."""
    found = re.search(rf'name="{name}" value="([^"]*)"', text)
    assert found, name
    return found[1]


@contextmanager
def serving(store: Store, *, model: str = "scripted", parts: tuple[str, ...] = PARTS, **changes: Any) -> Iterator[str]:
    """The address of a server in a thread; `changes` of the rules."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    rules = Access(hosts_of("127.0.0.1"), **{"rate": 10_000.0, "burst": 10_000.0, **changes})
    app = create_app(Site(store, rules, model, frozenset(parts)))
    server = uvicorn.Server(uvicorn.Config(app, http=serve.bounded(), log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    deadline = time.monotonic() + 20
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)


@contextmanager
def at_once(people: Iterable[P], act: Callable[[P], object], seconds: float = 120) -> Iterator[list[BaseException]]:
    """Let all people act, each in a thread, and wait for them at the end; yields what went wrong so far."""
    errors: list[BaseException] = []

    def acting(person: P) -> None:
        try:
            act(person)
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=acting, args=(person,), daemon=True) for person in people]
    for thread in threads:
        thread.start()
    yield errors
    for thread in threads:
        thread.join(timeout=0.1 if errors else seconds)
    assert not errors and not any(thread.is_alive() for thread in threads)
