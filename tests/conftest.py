"""Fixtures: nothing a test does can touch the user's data, and no test opens a connection beyond this machine."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from localsim.backends.base import Backend, Done
from localsim.conversation.episode import MODES, EpisodeSpec, Mode, Sampling, StopReason
from localsim.conversation.modes import MODES as PLAYS
from localsim.conversation.modes import Ask, Reject, Say, roles
from localsim.conversation.requests import Generation, Request
from localsim.conversation.scenario import LoadedScenario
from localsim.families import FAMILIES, rules_of
from localsim.finetune.instructions import bf16_runs
from localsim.models.registry import ModelFile, resolve
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.runs.scheduler import Watcher
from localsim.scenarios.parse import parse_scenario
from localsim.store.database import Store

TALK = """
version: 1
id: talk
title: A talk
info: {what: A talk for tests, how: HOW-FOR-PEOPLE, things_to_try: [TRY-FOR-PEOPLE]}
setting: Ana and Bo sit in a kitchen.
relationship: friend
agents:
  - name: Ana
    profile: {age: 31, occupation: nurse, public_info: Ana has a red bicycle., personality_and_values: Calm.}
    goal: Find out whether Bo took the cake.
    secret: Ana ate one slice herself.
    facts: [{id: ana_1, text: Ana saw crumbs on the sofa., terms: [crumbs]}]
  - name: Bo
    profile: {age: 29, occupation: cook, public_info: Bo keeps bees., personality_and_values: Shy.}
    goal: Keep the cake for the party.
    secret: Bo hid the cake in the garage.
    facts: [{id: bo_1, text: The cake stands in the garage., terms: [garage], disclosure: never}]
answer: {where: JUDGE-ONLY-GARAGE}
"""


LONGEST = (
    "study_stages openvino games cli docs lora llama interruption browser_pages policies controls browser_class "
    "headline situations downloads banks haggling_measures start leakage merge cluster parts own_thresholds bundle "
    "comparison browser_start browser attached browser_experiment clash leak_judge grants class machine aloud mixtures"
).split()
"""The files that take longest; they come first, so that neither of two processes is left alone with one of them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort files; tests of one file stay in their order."""
    place = {f"test_{name}": number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))


bf16_runs()  # before anything imports torch, so that training in 16 bits can be tested on every machine


OUTCOMES: dict[str, set[str]] = {}
"""What became of the cases of each test, by its name."""


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep what became of a test."""
    if report.when == "call" or not report.passed:
        OUTCOMES.setdefault(report.location[2].split("[")[0].rpartition(".")[2], set()).add(report.outcome)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where a system of the field is claimed by a test that was skipped."""
    from scripts.game_docs import unproved

    if not hasattr(session.config, "workerinput") and (rows := unproved(OUTCOMES)):
        print("\nnot proved: " + "; ".join(rows))
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Database and working folder are the test's own; the cache is kept, it only remembers checksums."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOCALSIM_DB", str(tmp_path / "test.duckdb"))
    for name in ("LOCALSIM_MODEL", "LOCALSIM_PROBE", "LOCALSIM_DEBUG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only loopback and Unix sockets connect."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a connection to {address} was tried")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True, scope="session")
def no_power_cut() -> Iterator[None]:
    """Journals are not forced to the disk: tests kill processes, and never the machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _file: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def blank_databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A store in this process begins as a copy of one blank file: to make the schema takes longer than most runs.

    `test_making.py` tests how it is made, and so do the processes that tests start.
    """
    blank = tmp_path_factory.mktemp("blank") / "blank.duckdb"
    Store(blank).take_in([])
    connect = Store._connect

    def connected(store: Store, patience_s: float, *, read_only: bool, config: dict[str, Any]) -> Any:
        if not (read_only or store.path.exists()):
            with suppress(OSError):  # DuckDB says what is wrong with the place
                shutil.copyfile(blank, store.path)
        return connect(store, patience_s, read_only=read_only, config=config)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "_connect", connected)
        yield


@pytest.fixture
def talk() -> LoadedScenario:
    """A scenario of two friends with secrets and facts."""
    return parse_scenario(TALK, "talk.yaml")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store on a file that does not exist yet."""
    return Store(tmp_path / "test.duckdb", patience_s=5)


def generated(family: str, seed: int = 1, **parameters: Any) -> LoadedScenario:
    """An instance of a task family."""
    document = FAMILIES[family].generate(f"{family}_{seed:02d}", seed, parameters)
    scenario, answer = document.split()
    return LoadedScenario(scenario, answer, f"{family}.yaml")


def spec_of(loaded: LoadedScenario, mode: Mode = "agents", index: int = 0, **changes: Any) -> EpisodeSpec:
    """A spec in which every role is played by `scripted`."""
    models = dict.fromkeys(roles(mode, loaded.scenario.names), "scripted")
    given: dict[str, Any] = {"models": models, "run_seed": 7, "sampling": Sampling(), **changes}
    rules = rules_of(loaded.scenario, index)
    return EpisodeSpec(scenario=loaded.scenario, mode=mode, index=index, rules=rules, **given)


def driven(
    spec: EpisodeSpec, answer: Callable[[Request], Generation]
) -> tuple[list[Ask | Say | Reject], StopReason | None]:
    """All steps of an episode, whose requests are answered, and its end."""
    play, steps, value = PLAYS[spec.mode](spec), list[Ask | Say | Reject](), None
    while True:
        try:
            step = play.send(value)
        except StopIteration as end:
            return steps, end.value
        steps.append(step)
        value = answer(step.request) if isinstance(step, Ask) else None


def answering(backend: Backend, *, into: list[Generation] | None = None) -> Callable[[Request], Generation]:
    """What a backend writes for one request after another; all of it is put `into` a list."""

    def answer(request: Request) -> Generation:
        backend.submit(request)
        done: list[Done] = []
        while not done:
            done = backend.poll()
        result = done[0].result
        assert isinstance(result, Generation), result
        if into is not None:
            into.append(result)
        return result

    return answer


class Quiet(Watcher):
    """A watcher that remembers turns and episodes."""

    def __init__(self, on_turn: Callable[[], None] = lambda: None) -> None:
        self.turns: list[Any] = []
        self.episodes: list[Any] = []
        self._on_turn = on_turn

    def turn(self, spec: EpisodeSpec, turn: Any) -> None:
        """A turn stands."""
        self.turns.append((spec, turn))
        self._on_turn()

    def ended(self, episode: Any) -> None:
        """An episode is over."""
        self.episodes.append(episode)

    def tokens(self, generated: int) -> None:
        """Tokens are not counted here."""


@pytest.fixture(scope="session")
def starter() -> ModelFile:
    """The embedded model; a suite without it would prove nothing, so its absence is an error and not a skip."""
    return resolve("starter")


@pytest.fixture(scope="session")
def engine_model(starter: ModelFile) -> Iterator[Any]:
    """The embedded model's weights, loaded once for the session."""
    from localsim.backends.llama.lib import LlamaModel

    model = LlamaModel(starter.path)
    yield model
    model.free()


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A database with a run of two scenarios in three modes, twice each: twelve talks, twelve pairs."""
    path = tmp_path_factory.mktemp("played") / "test.duckdb"
    scenarios = (parse_scenario(TALK, "talk.yaml"), generated("craigslist"))
    run_id = start(Plan(scenarios, MODES, "scripted", episodes=2, seed=5), Store(path), Quiet(), lambda _: None).run_id
    return path, run_id


@pytest.fixture
def run(played: tuple[Path, str], store: Store) -> str:
    """The run, in the test's own database."""
    shutil.copy(played[0], store.path)
    return played[1]


def simulated(store: Store, model: str, modes: tuple[Any, ...], seeds: range = range(1, 5), **plan: Any) -> str:
    """Simulate searches for a friend twice each and return the id of the run."""
    scenarios = tuple(generated("mutual_friends", seed) for seed in seeds)
    made = Plan(scenarios, modes, model, episodes=2, **plan)
    return start(made, store, Watcher(), lambda _: None, leaks=False).run_id


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str, str]:
    """A run of three modes, and a run of agents by another model that lacks a scenario and has another one."""
    store = Store(tmp_path_factory.mktemp("conditions") / "d.duckdb")
    first = simulated(store, "scripted:friends", ("script", "agents", "mindreaders"))
    return store, first, simulated(store, "scripted:guesser", ("agents",), range(2, 6))


@pytest.fixture
def own_runs(two_runs: tuple[Store, str, str], tmp_path: Path) -> tuple[Store, str, str]:
    """The two runs in a database that a test may change."""
    store, first, second = two_runs
    copy = tmp_path / "test.duckdb"
    copy.write_bytes(store.path.read_bytes())
    return Store(copy), first, second


@pytest.fixture
def serve() -> Iterator[Callable[..., Any]]:
    """Starts fake servers of the chat API, and ends them."""
    from tests.fake_server import Server

    servers: list[Server] = []

    def start(behave: Any, owner: str = "someone") -> Server:
        servers.append(Server(behave, owner))
        return servers[-1]

    yield start
    for server in servers:
        server.close()
