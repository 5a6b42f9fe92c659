"""A run from plan to scores: open backends, simulate, close, score; the same for a resumed run.

`start`, `resume` and `attend` are the only ways to simulate and store: command line, Python, play, pages and study all
call them.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

from localsim import paths
from localsim.backends.base import Backend
from localsim.backends.open import is_file, models_of, open_backends
from localsim.backends.person import NAME, AskPerson
from localsim.conversation.episode import PEOPLE, EpisodeSpec
from localsim.errors import InvalidInput, ModelMissing
from localsim.evaluators.evaluate import installed, score_runs
from localsim.evaluators.leaks import search
from localsim.families import FAMILIES, family_of
from localsim.leakage.detector import Weights
from localsim.models.registry import resolve
from localsim.runs import trust
from localsim.runs.plan import PRIMARY, Plan, outcome_in, plan_of
from localsim.runs.preview import needs_of, side_by_side
from localsim.runs.recorder import Recorder
from localsim.runs.scheduler import Simulation, Summary, Watcher, Work
from localsim.runs.stopping import stoppable
from localsim.runs.versions import versions
from localsim.store.database import Store
from localsim.store.episodes import stored_scenario
from localsim.store.journal import Journal
from localsim.store.queries import runs as queries
from localsim.store.queries.runs import Recorded
from localsim.store.records import RunRecord, episode_id_of


@dataclass(frozen=True)
class Result:
    """The result of a run."""

    run_id: str
    summary: Summary
    planned: int
    seconds: float
    in_database: bool
    """True if all of it is in the database; if not, the next command reads the journal."""
    leaks_scored: bool = False
    """True if the run was searched for leaks."""

    def as_json(self) -> dict[str, Any]:
        """The object that `run --json` prints."""
        counts = asdict(self.summary)
        del counts["stopped"]
        return {
            "run_id": self.run_id,
            "episodes": counts["completed"] + counts["failed"],
            **counts,
            "seconds": round(self.seconds, 2),
            "planned": self.planned,
        }


Notify = Callable[[str], None]
_MOST_GUESTS = 1000
"""Episodes of people at a time; each waits for a person, and costs nothing."""


def start(
    plan: Plan,
    store: Store,
    watcher: Watcher,
    say: Notify,
    ask: AskPerson | None = None,
    leaks: bool | None = None,
    weights: Weights | None = None,
    name: str | None = None,
    cluster: str | None = None,
) -> Result:
    """Simulate a plan as a new run, then score it.

    `ask` asks the person who plays the role `human`. `leaks` decides if the run is searched for leaks; None means yes,
    unless scripted players wrote everything, the search would compare meanings, and no `weights` (thresholds of the
    leakage detector) are given. `name` is the name that a person gives the run (`telling.checked_name`). `cluster` is
    the address of a Ray cluster that plays the episodes, `auto` or `ray://HOST:PORT`. Raises InvalidInput,
    ModelMissing, DatabaseError or BackendUnavailable.
    """
    texts: tuple[str, ...] = ()
    if weights is not None:
        if leaks is False:
            raise InvalidInput(
                "thresholds are given, but no search for leaks", hint="leave out --weights or --no-leaks"
            )
        leaks = True if leaks is None else leaks
        if not weights.built_in:
            plan, texts = replace(plan, weights=f"{weights.name} {weights.hash}"), (weights.text,)
    now = datetime.now(UTC)
    run_id = new_run_id(now)
    specs = plan.specs()
    parallel = side_by_side(plan, say) if cluster is None else 1
    store.ensure_usable()
    with _place(cluster, plan, specs, parallel, say, ask) as place:
        run = run_record(run_id, now, plan, place.parallel, len(specs), place.identities)
        trust.remember(run_id, models_of(specs))
        with journal_of(store, run_id) as journal:
            job = _Job(replace(run, name=name), plan, specs, place, texts)
            result = _simulate(job, store, journal, watcher, say, {}, {})
    return _scored(result, plan, store, _searched(leaks, run.models_json, plan), say)


def resume(
    reference: str,
    store: Store,
    watcher: Watcher,
    say: Notify,
    leaks: bool | None = None,
    cluster: str | None = None,
    named: Sequence[str] = (),
) -> Result:
    """Continue an interrupted run: finished episodes are kept, unfinished ones continue after their last turn.

    It may continue on a `cluster` or without one, wherever it began. `named` are servers and files of lines that the
    user names again, because the run was begun elsewhere (`trust`). Raises DatabaseError if the run is still being
    written, or if its journal cannot be read into the database now.
    """
    store.take_in_leftovers()
    run_id = store.run_id(reference, unfinished=True)
    _refuse_people(queries.run_row(store, run_id))
    with journal_of(store, run_id) as journal:  # from here on no other process can resume it
        with store.held() as reads:
            run = queries.run_row(reads, run_id)
            plan = plan_of(run["plan_json"], partial(stored_scenario, reads))
            finished = queries.finished_episodes(reads, run_id)
        specs = [spec for spec in plan.specs() if episode_id_of(run_id, spec) not in finished]
        if not specs:
            journal.close(remove=True)
            result = _nothing_left(run_id, finished, run)
            return _scored(result, plan, store, _searched(leaks, run["models_json"], plan), say)
        trust.refuse_foreign(run_id, models_of(specs), named)
        refuse_other_conditions(run, plan, files=cluster is None)
        with _place(cluster, plan, specs, run["parallel"], say, identities=json.loads(run["models_json"])) as place:
            job = _Job(resumed_record(run, place.identities), plan, specs, place)
            recorded = queries.recorded_generations(store, run_id)
            result = _simulate(job, store, journal, watcher, say, finished, recorded)
    return _scored(result, plan, store, _searched(leaks, run["models_json"], plan), say)


def _searched(leaks: bool | None, models_json: str, plan: Plan) -> bool:
    """Return True if a run is to be searched for leaks.

    Unless `leaks` states it: if a language model wrote in it, or if the search compares no meanings and costs little.
    """
    if leaks is not None or not queries.only_scripted(models_json):
        return leaks is not False
    return all(family_of(loaded.scenario.family).terms_disclose for loaded in plan.scenarios)


class Guests(Watcher):
    """Follows a run in which episodes begin as people come, and says when it ends."""

    coming: deque[EpisodeSpec]
    """Episodes that have to begin; after it has been empty it may hold some again."""

    def leaves(self) -> bool:
        """Return True to leave the run at once; asked in every round."""
        raise NotImplementedError

    def over(self) -> str:
        """Return why the episodes that have not ended are broken off; '' if the run can go on with them later."""
        raise NotImplementedError

    def stated(self, run: RunRecord) -> RunRecord:
        """Return the record of the run as of now."""
        return run


def attend(
    guests: Guests,
    run: RunRecord,
    plan: Plan,
    backends: Mapping[str, Backend],
    store: Store,
    say: Notify,
    texts: tuple[str, ...] = (),
) -> Result:
    """Simulate what people begin, as the new run `run` or as the one with its id that was left before.

    The caller opens and closes the backends.
    """
    recorded: Mapping[str, Sequence[Recorded]] = {}
    with journal_of(store, run.run_id) as journal:
        if queries.has_run(store, run.run_id):
            run = resumed_record(queries.run_row(store, run.run_id), identities_of(backends))
            recorded = queries.recorded_generations(store, run.run_id)
        job = _Job(run, plan, (), _Here(backends, _MOST_GUESTS, guests), texts, guests.stated)
        return _simulate(job, store, journal, guests, say, {}, recorded)


def _scored(result: Result, plan: Plan, store: Store, leaks: bool, say: Notify) -> Result:
    """Score a run that is complete with the installed evaluators of its outcomes, and search it for leaks."""
    keys = {outcome_in(text, "outcome").key for text in (plan.primary, *plan.secondary) if text != PRIMARY}
    if keys and result.in_database and not result.summary.stopped:
        found, errors = installed()
        adding = [each for each in found if keys.intersection(measure.key for measure in each.measures)]
        for error in errors if not adding else ():
            say(f"not scored: {error}")
        score_runs(store, [result.run_id], adding, say)
    return with_leaks(result, store, leaks, say)


def with_leaks(result: Result, store: Store, leaks: bool, say: Notify) -> Result:
    """Search a run for leaks if it is complete, in the database, and this is wanted."""
    if result.summary.stopped or not (result.in_database and leaks):
        return result
    try:
        search(store, [result.run_id], say)
    except ModelMissing as error:
        say(f"leaks were not looked for: {error.message} ({error.hint})")
        return result
    except KeyboardInterrupt:
        say(f"the search for leaks was stopped; to do it: localsim score {result.run_id}{paths.db_option(store.path)}")
        raise
    return replace(result, leaks_scored=True)


Identities = Mapping[str, Mapping[str, Any]]
"""Model name -> what is stored about its backend."""


class Place(Protocol):
    """Where the episodes of a run are played: in this process, or on a cluster."""

    @property
    def identities(self) -> Identities:
        """What is stored about each model."""

    @property
    def parallel(self) -> int:
        """Episodes at a time; on a cluster, those of its first worker."""

    def simulate(self, work: Work) -> Summary:
        """Play all episodes of the work."""


class _Here:
    """This process with its backends; `guests` let episodes begin while it plays."""

    def __init__(self, backends: Mapping[str, Backend], parallel: int, guests: Guests | None = None) -> None:
        self._backends, self._guests = backends, guests
        self.identities = identities_of(backends)
        self.parallel = parallel

    def simulate(self, work: Work) -> Summary:
        simulation = Simulation(
            work.run_id,
            self._backends,
            work.answers,
            work.recorder,
            work.watcher,
            parallel=self.parallel,
            should_stop=work.should_stop,
        )
        guests = self._guests
        if guests is None:
            return simulation.run(work.specs, work.recorded)

        def leaves() -> bool:
            work.recorder.write_if_due()
            return guests.leaves()

        summary = simulation.run(guests.coming, work.recorded, lambda: True, leaves)
        if error := guests.over():
            simulation.break_off(guests.coming, error)
        summary.stopped = not error
        return summary


@contextmanager
def _place(
    cluster: str | None,
    plan: Plan,
    specs: Sequence[EpisodeSpec],
    parallel: int,
    say: Notify,
    ask: AskPerson | None = None,
    identities: Identities | None = None,
) -> Iterator[Place]:
    """Open the models of a run here, or gather the workers of a cluster; `identities` are those of a resumed run."""
    if cluster is None:
        with open_backends(models_of(specs), needs_of(plan, parallel), say, ask) as backends:
            yield _Here(backends, parallel)
        return
    from localsim.runs.cluster.playing import players

    with players(cluster, plan, specs, say, identities or {}) as workers:
        yield workers


def identities_of(backends: Mapping[str, Backend]) -> Identities:
    """Return what is stored about each backend."""
    return {name: backend.identity for name, backend in backends.items()}


@dataclass(frozen=True)
class _Job:
    """The episodes to simulate now, and the place."""

    run: RunRecord
    plan: Plan
    specs: Sequence[EpisodeSpec]
    place: Place
    texts: tuple[str, ...] = ()
    """Texts that the plan names by hash and that are stored with the run."""
    stated: Callable[[RunRecord], RunRecord] = lambda run: run
    """As in `Recorder`."""


@contextmanager
def journal_of(store: Store, run_id: str) -> Iterator[Journal]:
    """Open the journal of a run, which is also its lock; the file stays if an error occurs."""
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
    say: Notify,
    finished: Mapping[str, str],
    recorded: Mapping[str, Sequence[Recorded]],
) -> Result:
    clock = time.perf_counter()
    run_id = job.run.run_id
    answers = {loaded.scenario.hash: loaded.answer for loaded in job.plan.scenarios}
    recorder = Recorder(store, journal, job.run, job.plan.scenarios, say, job.texts, job.stated)
    watcher.begun(run_id)
    with stoppable(say) as asked:
        try:
            summary = job.place.simulate(
                Work(run_id, job.specs, recorded, answers, recorder, watcher, lambda: asked[0] or watcher.stops())
            )
        except KeyboardInterrupt:
            continued = f"; to continue: localsim resume {run_id}{paths.db_option(store.path)}"
            say(f"stopped at once{'' if NAME in job.plan.roles.values() else continued}")
            raise
    now = datetime.now(UTC).replace(tzinfo=None).isoformat()
    in_database = recorder.close(finished_utc=now, complete=not summary.stopped)
    summary.completed += sum(status == "completed" for status in finished.values())
    summary.failed += sum(status == "failed" for status in finished.values())
    return Result(run_id, summary, job.run.episodes_planned, time.perf_counter() - clock, in_database)


def _nothing_left(run_id: str, finished: Mapping[str, str], run: Mapping[str, Any]) -> Result:
    completed = sum(status == "completed" for status in finished.values())
    summary = Summary(completed=completed, failed=len(finished) - completed)
    return Result(run_id, summary, int(run["episodes_planned"]), 0.0, in_database=True)


# ---- what is stored about a run ------------------------------------------------------------------------------------


def new_run_id(now: datetime) -> str:
    """Return an id for a run that begins now; ids sort by time."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def run_record(
    run_id: str, started: datetime, plan: Plan, parallel: int, planned: int, identities: Identities
) -> RunRecord:
    """Return the record of a run that begins now."""
    return begun_record(run_id, started, plan.as_json(), identities, plan.seed, plan.repro, parallel, planned)


def begun_record(
    run_id: str, now: datetime, plan: str, identities: Identities, seed: int, repro: str, parallel: int, planned: int
) -> RunRecord:
    """Return the record of a run that begins now, also of one that nothing can simulate; `plan` is JSON."""
    return RunRecord(
        run_id=run_id,
        status="running",
        started_utc=now.replace(tzinfo=None).isoformat(),
        finished_utc=None,
        seed=seed,
        repro=repro,
        parallel=parallel,
        episodes_planned=planned,
        plan_json=plan,
        models_json=json.dumps(dict(identities)),
        versions_json=json.dumps(versions()),
        plan_hash=hashlib.sha256(plan.encode()).hexdigest(),
    )


# ---- resuming ------------------------------------------------------------------------------------------------------


def _refuse_people(run: Mapping[str, Any]) -> None:
    """Raise InvalidInput for an imported run, or one with a person in a role, which nothing can continue."""
    plan = json.loads(run["plan_json"])
    if run["repro"] == "imported" or NAME in plan["roles"].values():
        held = "imported conversations" if plan["modes"] != [PEOPLE] and "source" in plan else "conversations of people"
        hint = f"localsim report {run['run_id']}"
        raise InvalidInput(f"run {run['run_id']} holds {held}: there is nothing to resume", hint=hint)


def resumed_record(run: Mapping[str, Any], identities: Identities) -> RunRecord:
    """Return the run's record with the status running, and with the models that are opened now."""
    models = json.loads(run["models_json"]) | dict(identities)
    started = run["started_utc"].isoformat()
    again = {"status": "running", "started_utc": started, "finished_utc": None, "models_json": json.dumps(models)}
    return RunRecord(**{**run, **again})


def refuse_other_conditions(run: Mapping[str, Any], plan: Plan, *, files: bool = True) -> None:
    """Raise InvalidInput if model files, prompts or scenarios differ from those of the run's first part.

    Without `files`, those are not compared: the workers of a cluster compare their own.
    """
    hint = "restore the versions that the run was made with, or start a new run"
    then, now = json.loads(run["versions_json"]), versions()
    used = {name: identity.get("parts", {name: identity}) for name, identity in json.loads(run["models_json"]).items()}
    models = [item for parts in used.values() for item in parts.items()]
    needed = ["openvino"] if any(identity["kind"] == "openvino" for _, identity in models) else []
    for part in ("prompts", "llama-cpp-python", *needed):
        here = now.get(part, "none")
        if then[part] != here:
            raise InvalidInput(f"the run was made with {part} {then[part]}, here is {here}", hint=hint)
    for name, identity in models:
        if files and is_file(name) and (file := resolve(name)).sha256 != identity["sha256"]:
            raise InvalidInput(
                f"the run was made with {identity['file']} {identity['sha256'][:12]}..., now {name} is "
                f"{file.path.name} {file.sha256[:12]}...",
                hint=hint,
            )
    for loaded in plan.scenarios:
        if loaded.scenario.family and loaded.scenario.family not in FAMILIES:
            raise InvalidInput(f"the family {loaded.scenario.family!r} is not installed", hint=hint)
    stated = json.loads(run["models_json"])
    for name, mind in {spec.models[role]: mind for spec in plan.specs() for role, mind in spec.minds.items()}.items():
        if name in stated and stated[name]["mind"] != json.loads(json.dumps(mind.stated())):
            raise InvalidInput(f"the steps of {name} are not those that the run was made with", hint=hint)
    if json.loads(plan.as_json())["scenarios"] != json.loads(run["plan_json"])["scenarios"]:
        raise InvalidInput("this localsim reads the run's scenarios differently from the one that made it", hint=hint)
