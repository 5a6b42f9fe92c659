"""A run from options to database: plan, open backends, simulate, close; and the same again for a resume.

The command line and the Python API both call this; neither holds logic of its own.
"""

from __future__ import annotations

import json
import platform
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from localsim import __version__
from localsim.backends.base import Backend
from localsim.backends.open import is_file, models_of, open_backends
from localsim.backends.person import Ask
from localsim.conversation import prompts
from localsim.conversation.episode import EpisodeSpec, Sampling
from localsim.conversation.exchange import Generation
from localsim.conversation.scenario import AnswerKey, LoadedScenario, Scenario
from localsim.errors import InvalidInput, LocalsimError
from localsim.families import FAMILIES
from localsim.models.registry import resolve
from localsim.runs.plan import Plan
from localsim.runs.preview import needs_of, side_by_side
from localsim.runs.recorder import Recorder
from localsim.runs.scheduler import Recorded, Simulation, Summary, Watcher
from localsim.store.database import Store
from localsim.store.journal import Event, Journal
from localsim.store.records import episode_id_of


@dataclass(frozen=True)
class Result:
    """What a run came to."""

    run_id: str
    summary: Summary
    planned: int
    seconds: float
    in_database: bool
    """Whether all of it is in the database; if not, the next command takes the journal in."""

    def as_json(self) -> dict[str, Any]:
        """The object that `run --json` prints."""
        done = self.summary.completed + self.summary.failed
        return {
            "run_id": self.run_id,
            "episodes": done,
            "completed": self.summary.completed,
            "failed": self.summary.failed,
            "seconds": round(self.seconds, 2),
            "tokens_generated": self.summary.tokens_generated,
            "tokens_evaluated": self.summary.tokens_evaluated,
            "tokens_in_prompts": self.summary.tokens_in_prompts,
            "tokens_shared": self.summary.tokens_shared,
            "planned": self.planned,
        }


Say = Callable[[str], None]


def start(plan: Plan, store: Store, watcher: Watcher, say: Say, ask: Ask | None = None) -> Result:
    """Simulate a plan as a new run; `ask` asks the person of a role that `human` plays."""
    now = datetime.now(UTC)
    run_id = f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    specs = plan.specs()
    parallel = side_by_side(plan, say)
    store.ensure_usable()
    with open_backends(models_of(specs), needs_of(plan, parallel), say, ask) as backends:
        run = _run_event(run_id, now, plan, parallel, len(specs), backends)
        with _journal(store, run_id) as journal:
            return _simulate(_Job(run, plan, specs, backends), store, journal, watcher, say, {}, {})


def resume(reference: str, store: Store, watcher: Watcher, say: Say) -> Result:
    """Go on with a run that was interrupted: finished episodes stand, unfinished ones go on after their last turn.

    Raises DatabaseError where the run is still being written, or what it left behind cannot be taken in now.
    """
    store.take_in_leftovers()
    run_id = store.run_id(reference)
    with _journal(store, run_id) as journal:  # from here on nobody else can resume it
        run = store.rows("SELECT * FROM runs WHERE run_id = ?", [run_id])[0]
        plan = _plan_of(run, store)
        rows = store.rows("SELECT episode_id, status FROM episodes WHERE run_id = ?", [run_id])
        finished = {row["episode_id"]: row["status"] for row in rows if row["status"] != "interrupted"}
        specs = [spec for spec in plan.specs() if episode_id_of(run_id, spec) not in finished]
        if not specs:
            journal.close(remove=True)
            return _nothing_left(run_id, finished, run)
        refuse_other_conditions(run, plan)
        with open_backends(models_of(specs), needs_of(plan, run["parallel"]), say) as backends:
            event = _resumed_event(run, backends)
            return _simulate(
                _Job(event, plan, specs, backends), store, journal, watcher, say, finished, _recorded(store, run_id)
            )


@dataclass(frozen=True)
class _Job:
    """What is to be simulated now, and with what."""

    run: Event
    plan: Plan
    specs: Sequence[EpisodeSpec]
    backends: Mapping[str, Backend]


@contextmanager
def _journal(store: Store, run_id: str) -> Iterator[Journal]:
    """The journal of a run, which is also its lock; left in place where something goes wrong."""
    journal = Journal(store.path, run_id)
    try:
        yield journal
    finally:
        journal.close(remove=False)


def _simulate(
    job: _Job,
    store: Store,
    journal: Journal,
    watcher: Watcher,
    say: Say,
    finished: Mapping[str, str],
    recorded: Mapping[str, Sequence[Recorded]],
) -> Result:
    clock = time.perf_counter()
    run_id = job.run["run_id"]
    answers = {loaded.scenario.hash: loaded.answer for loaded in job.plan.scenarios}
    recorder = Recorder(store, journal, job.run, job.plan.scenarios, say)
    with _interruptible(say) as interrupted:
        simulation = Simulation(
            run_id,
            job.backends,
            answers,
            recorder,
            watcher,
            parallel=job.run["parallel"],
            should_stop=lambda: interrupted[0],
        )
        summary = simulation.run(job.specs, recorded)
    in_database = recorder.close(finished_utc=_now(), complete=not summary.stopped)
    summary.completed += sum(status == "completed" for status in finished.values())
    summary.failed += sum(status == "failed" for status in finished.values())
    return Result(run_id, summary, job.run["episodes_planned"], time.perf_counter() - clock, in_database)


def _nothing_left(run_id: str, finished: Mapping[str, str], run: Mapping[str, Any]) -> Result:
    completed = sum(status == "completed" for status in finished.values())
    summary = Summary(completed=completed, failed=len(finished) - completed)
    return Result(run_id, summary, int(run["episodes_planned"]), 0.0, in_database=True)


def progress_of(reference: str, store: Store) -> tuple[int, int]:
    """How many episodes a run is to have, and how many are over."""
    row = store.rows(
        "SELECT episodes_planned AS planned, completed + failed AS done FROM v_runs WHERE run_id = ?",
        [store.run_id(reference)],
    )[0]
    return int(row["planned"]), int(row["done"])


@contextmanager
def _interruptible(say: Say) -> Iterator[list[bool]]:
    """The first Ctrl-C asks to stop after the turns in hand, the second stops at once."""
    asked = [False]

    def handle(_signal: int, _frame: object) -> None:
        if asked[0]:
            raise KeyboardInterrupt
        asked[0] = True
        say("finishing the turns in hand (Ctrl-C again stops at once)")

    try:
        previous = signal.signal(signal.SIGINT, handle)
    except ValueError:  # not in the main thread, so Ctrl-C does not arrive here
        yield asked
        return
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, previous)


# ---- what is stored about a run ------------------------------------------------------------------------------------


def _run_event(
    run_id: str, started: datetime, plan: Plan, parallel: int, planned: int, backends: Mapping[str, Backend]
) -> Event:
    return {
        "run_id": run_id,
        "status": "running",
        "started_utc": started.replace(tzinfo=None).isoformat(),
        "finished_utc": None,
        "seed": plan.seed,
        "repro": plan.repro,
        "parallel": parallel,
        "episodes_planned": planned,
        "plan_json": plan.as_json(),
        "models_json": json.dumps({name: backend.identity for name, backend in backends.items()}),
        "versions_json": json.dumps(versions()),
    }


def versions() -> dict[str, str]:
    """Versions of localsim, its prompts and the libraries that a text depends on."""
    found = {"localsim": __version__, "prompts": prompts.VERSION, "python": platform.python_version()}
    for package in ("llama-cpp-python", "duckdb", "sentence-transformers", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _now() -> str:
    return datetime.now(UTC).replace(tzinfo=None).isoformat()


# ---- resuming ------------------------------------------------------------------------------------------------------


def _plan_of(run: Mapping[str, Any], store: Store) -> Plan:
    data = json.loads(run["plan_json"])
    scenarios = tuple(_stored_scenario(store, scenario_hash) for scenario_hash in data.pop("scenarios"))
    data |= {"scenarios": scenarios, "modes": tuple(data["modes"]), "sampling": Sampling(**data["sampling"])}
    return Plan(**data)


def _stored_scenario(store: Store, scenario_hash: str) -> LoadedScenario:
    rows = store.rows("SELECT document_json, answer_json, path FROM scenarios WHERE scenario_hash = ?", [scenario_hash])
    if not rows:
        raise LocalsimError(f"scenario {scenario_hash[:12]} of the run is not in the database")
    row = rows[0]
    return LoadedScenario(
        Scenario.model_validate_json(row["document_json"]),
        AnswerKey.from_json(json.loads(row["answer_json"])),
        str(row["path"] or Path(scenario_hash)),
    )


def stored_answers(store: Store, run_id: str) -> dict[str, LoadedScenario]:
    """The scenarios of a run with their answer keys, by scenario hash."""
    rows = store.rows("SELECT DISTINCT scenario_hash FROM episodes WHERE run_id = ?", [run_id])
    return {row["scenario_hash"]: _stored_scenario(store, row["scenario_hash"]) for row in rows}


def _resumed_event(run: Mapping[str, Any], backends: Mapping[str, Backend]) -> Event:
    """The run's row as it was, running again; models that are opened now join those that were there."""
    models = json.loads(run["models_json"]) | {name: backend.identity for name, backend in backends.items()}
    started = run["started_utc"].isoformat()
    return {**run, "status": "running", "started_utc": started, "finished_utc": None, "models_json": json.dumps(models)}


def refuse_other_conditions(run: Mapping[str, Any], plan: Plan) -> None:
    """Half a run under one model file or wording and half under another would be neither. Raises InvalidInput."""
    hint = "put back what the run was made with, or start a new run"
    then, now = json.loads(run["versions_json"]), versions()
    for part in ("prompts", "llama-cpp-python"):
        if then[part] != now[part]:
            raise InvalidInput(f"the run was made with {part} {then[part]}, here is {now[part]}", hint=hint)
    for name, identity in json.loads(run["models_json"]).items():
        if is_file(name) and (file := resolve(name)).sha256 != identity["sha256"]:
            raise InvalidInput(
                f"the run was made with {identity['file']} {identity['sha256'][:12]}..., now {name} is "
                f"{file.path.name} {file.sha256[:12]}...",
                hint=hint,
            )
    for loaded in plan.scenarios:
        if loaded.scenario.family and loaded.scenario.family not in FAMILIES:
            raise InvalidInput(f"the family {loaded.scenario.family!r} is not here any more", hint=hint)
    if json.loads(plan.as_json())["scenarios"] != json.loads(run["plan_json"])["scenarios"]:
        raise InvalidInput("this localsim reads the run's scenarios differently than the one that made it", hint=hint)


def _recorded(store: Store, run_id: str) -> dict[str, list[Recorded]]:
    """The generations of unfinished episodes, in order."""
    rows = store.rows(
        "SELECT g.* FROM generations g JOIN episodes e ON e.episode_id = g.episode_id "
        "WHERE e.run_id = ? AND e.status = 'interrupted' AND g.cause <> 'error' ORDER BY g.episode_id, g.generation",
        [run_id],
    )
    found: dict[str, list[Recorded]] = {}
    for row in rows:
        result = Generation(
            text=row["text"],
            cause=row["cause"],
            model=row["model"],
            prompt_tokens=row["prompt_tokens"],
            evaluated_tokens=row["evaluated_tokens"],
            shared_tokens=row["shared_tokens"] or 0,
            dropped_messages=row["dropped_messages"] or 0,
            generated_tokens=row["generated_tokens"],
            duration_ms=row["duration_ms"],
            details=json.loads(row["details_json"]),
        )
        found.setdefault(row["episode_id"], []).append(Recorded(row["turn"], row["attempt"], row["seed"], result))
    return found
