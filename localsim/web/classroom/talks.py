"""Talks of people as one run in a thread: it begins with the first one and goes on until the floor is closed."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from localsim.backends.base import Backend
from localsim.backends.open import Needs, is_scripted, open_backends
from localsim.backends.person import NAME
from localsim.conversation.episode import Episode, EpisodeSpec
from localsim.conversation.transcript import Transcript, Turn
from localsim.errors import DatabaseError, LocalsimError, ModelMissing
from localsim.evaluators.searching import search
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.runs.recorder import Recorder
from localsim.runs.scheduler import Simulation, Watcher
from localsim.store.journal import Journal
from localsim.store.lock import Busy
from localsim.store.queries import annotation as annotation_queries
from localsim.store.queries import classes
from localsim.store.queries import runs as run_queries
from localsim.store.records import AnswerRow, Record, RunRecord, ScoreRecord
from localsim.web.classroom.players import ClassOver, Players

if TYPE_CHECKING:
    from localsim.web.classroom.floor import Floor, Live

AT_A_TIME = 8
"""Talks for which a model writes at the same time; the others wait their turn."""
_MOST = 1000
_ANSWERS_EVERY_S = 2.0
_UNEXPECTED = "something unexpected happened; the terminal shows the details"


@dataclass(frozen=True)
class Terms:
    """What a floor plays, and how it is told of."""

    what: str
    """What people take part in: "class"."""
    plan: Plan
    """The plan that is stored with the run; its roles name people."""
    models: Sequence[str]
    """The models and scripted players that may have a part, the first of which gives the run its name."""
    specs: Sequence[EpisodeSpec]
    """An episode of each kind, for the memory of the models."""
    texts: tuple[str, ...] = ()
    """Texts that are stored with the run."""


class _Scribe(Recorder):
    """Records the run, and tells the floor how each talk ended."""

    talks: Mapping[str, Live]
    """Episode id -> talk."""

    def episode_ended(self, episode_id: str, episode: Episode, scores: Sequence[Record], duration_ms: float) -> None:
        """Record the end, and remember the outcome."""
        super().episode_ended(episode_id, episode, scores, duration_ms)
        live = self.talks[episode_id]
        found = {each.name: each for each in scores if isinstance(each, ScoreRecord) and not each.agent}
        live.success = found["success"].value if "success" in found else None
        plays = found.get("plays")
        live.fault = None if plays is None or plays.value is None else "" if plays.value >= 1 else plays.label or ""

    def tick(self, models: Mapping[str, Any], computers: Sequence[str]) -> None:
        """Write what waits, if it is time; `models` are the identities of those that have a part in a talk."""
        # The name of a run is made of its plan: a computer that took no part would be named as a player.
        computer = next((name for name in computers if name in models), NAME)
        plan = {**json.loads(self._run.plan_json), "model": computer}
        self._run = replace(
            self._run, episodes_planned=len(self.talks), models_json=json.dumps(models), plan_json=json.dumps(plan)
        )
        self._write_if_due()


class Talks(Watcher):
    """Lets the talks of a floor run."""

    def __init__(self, floor: Floor, terms: Terms, say: Callable[[str], None]) -> None:
        self._floor, self._terms, self._say = floor, terms, say
        beside_model = not all(map(self._is_quick, terms.models))
        self.players = Players(floor.changed, self._each_round, beside_model=beside_model)
        self.players.closing = floor.register.ended
        self._queue: deque[EpisodeSpec] = deque()
        self._by_spec: dict[str, Live] = {}
        self._by_episode: dict[str, Live] = {}
        self._scribe: _Scribe | None = None
        self._backends: Mapping[str, Backend] = {}
        self._answers: list[AnswerRow] = []
        self._answers_at = 0.0
        self._ready = threading.Event()
        self._failed: LocalsimError | None = None
        self._thread = threading.Thread(target=self._work, name=f"localsim-{terms.what}", daemon=True)

    def start(self) -> None:
        """Open the models, take up the talks that were interrupted, and go on. Raises what prevents it."""
        with self._floor.changed:
            for live in self._floor.live.values():
                self._know(live)
                if not live.ended:
                    self._queue.append(live.spec)
            self._keep_again()
        self._thread.start()
        self._ready.wait()
        if self._failed is not None:
            raise self._failed

    def stop(self, *, wait: bool = True) -> None:
        """Leave the loop; `wait` until everything is written."""
        with self._floor.changed:
            self.players.closing = True
            self._floor.changed.notify_all()
        if wait and self._thread.is_alive():
            self._thread.join()

    def play(self, live: Live) -> None:
        """Let a new talk begin. Only under the lock of the floor."""
        self._know(live)
        self._queue.append(live.spec)
        self._floor.changed.notify_all()

    def keep(self, row: AnswerRow) -> None:
        """Have an answer stored in the database soon; the ledger has it already. Only under the lock of the floor."""
        self._answers.append(row)

    # ---- the run's thread ------------------------------------------------------------------------------------------

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:
        """Show a turn that has been recorded."""
        with self._floor.changed:
            live = self._by_spec[spec.hash]
            live.turns.append(turn)
            live.given = None
            self._floor.changed.notify_all()

    def ended(self, episode: Episode) -> None:
        """Show that a talk has ended."""
        with self._floor.changed:
            live = self._by_spec[episode.spec.hash]
            live.ended, live.completed = True, episode.status == "completed"
            live.problem, live.stop_reason = episode.error or "", episode.stop_reason
            self._floor.changed.notify_all()

    def _work(self) -> None:
        store, done = self._floor.store, False
        try:
            with self._opened() as backends:
                if self._has_begun():
                    with runner.journal_of(store, self._floor.run_id) as journal:
                        over = self._simulate({**backends, NAME: self.players}, journal)
                else:
                    over = self._floor.register.ended
            if over:
                self._close()
        except LocalsimError as error:
            self._stopped(error, f"{error.message} ({error.hint})" if error.hint else error.message)
        else:
            done = True
        finally:
            if not done and self._failed is None:  # a defect: the thread ends with its traceback in the terminal
                self._stopped(LocalsimError(_UNEXPECTED), _UNEXPECTED)
            self._ready.set()

    def _stopped(self, error: LocalsimError, problem: str) -> None:
        self._failed = error
        with self._floor.changed:
            self._floor.problem = problem
        if self._ready.is_set():
            self._say(f"the talks of the {self._terms.what} have stopped: {problem}")

    def _has_begun(self) -> bool:
        """Wait for the beginning, so that a floor without visitors leaves no run; False if nothing begins."""
        if not self._is_due():
            self._ready.set()
            with self._floor.changed:
                self._floor.changed.wait_for(lambda: self._is_due() or self.players.closing)
        return self._is_due()

    def _needs(self) -> Needs:
        """The needs of the computer's side in any talk."""
        return Needs(sequences=AT_A_TIME, specs=self._terms.specs)

    def _simulate(self, backends: Mapping[str, Backend], journal: Journal) -> bool:
        """Let the talks run; True if they have ended, False if it can go on."""
        store, run_id = self._floor.store, self._floor.run_id
        recorded, identities = {}, runner.identities_of(backends)
        if classes.has_run(store, run_id):
            record: RunRecord = runner.resumed_record(run_queries.run_row(store, run_id), identities)
            recorded = run_queries.recorded_generations(store, run_id)
        else:
            record = runner.run_record(run_id, datetime.now(UTC), self._terms.plan, AT_A_TIME, 0, identities)
        self._backends = backends
        texts = self._terms.texts
        scribe = self._scribe = _Scribe(store, journal, record, self._floor.scenarios, self._say, texts)
        scribe.talks = self._by_episode
        answers = {loaded.scenario.hash: loaded.answer for loaded in self._floor.scenarios}
        simulation = Simulation(run_id, backends, answers, scribe, self, parallel=_MOST)
        with suppress(ClassOver):
            simulation.run(_Queue(self._queue), recorded, more=lambda: True)
        over = self._floor.register.ended
        if over:
            self._break_off()
        self._store_answers(patience_s=60.0)
        now = datetime.now(UTC).replace(tzinfo=None).isoformat()
        scribe.tick(self._identities(), self._terms.models)
        scribe.close(finished_utc=now, complete=over)
        return over

    def _break_off(self) -> None:
        """End the talks that go on at the end."""
        assert self._scribe is not None
        for live in list(self._by_spec.values()):
            if not live.ended:
                error = f"the {self._terms.what} ended before the talk did"
                episode = Episode(live.spec, Transcript(tuple(live.turns)), "failed", error=error)
                if live.spec in self._queue:
                    self._scribe.episode_started(live.episode_id, live.spec)
                self._scribe.episode_ended(live.episode_id, episode, [], 0.0)
                self.ended(episode)

    def _each_round(self) -> None:
        self._ready.set()
        with self._floor.changed:
            self._floor.hand_in()
        if self._answers and time.monotonic() >= self._answers_at:
            self._store_answers(patience_s=1.0)
        if self._scribe is not None:
            self._scribe.tick(self._identities(), self._terms.models)

    def _identities(self) -> dict[str, Any]:
        """The identity of each model that has a part in a talk; the computer may have none."""
        with self._floor.changed:
            used = {model for live in self._by_spec.values() for model in live.spec.models.values()}
        return {name: backend.identity for name, backend in self._backends.items() if name in used}

    def _store_answers(self, patience_s: float) -> None:
        self._answers_at = time.monotonic() + _ANSWERS_EVERY_S
        with self._floor.changed:
            answers, self._answers = self._answers, []
        try:
            annotation_queries.store_answers(self._floor.store, answers, patience_s)
        except Busy:
            with self._floor.changed:
                self._answers = answers + self._answers

    def _close(self) -> None:
        """Note that the run is complete, and look for leaks in it."""
        if not self._answers:  # otherwise the same command stores them
            self._floor.close()
        if self._by_spec:
            self._search()

    def _search(self) -> None:
        run_id = self._floor.run_id
        self._say(f"the {self._terms.what} has ended; its run is {run_id}")
        try:
            search(self._floor.store, [run_id], self._say)
        except (ModelMissing, DatabaseError) as error:
            self._say(f"leaks were not looked for: {error.message}")
        self._say(f"its talks: localsim view; success, turns and leaks in each mode: localsim report {run_id}")

    def _know(self, live: Live) -> None:
        self._by_spec[live.spec.hash] = self._by_episode[live.episode_id] = live

    # ---- what differs between floors -------------------------------------------------------------------------------

    def _opened(self) -> AbstractContextManager[dict[str, Backend]]:
        """Open the models and scripted players that may have a part."""
        return open_backends(self._terms.models, self._needs(), self._say)

    def _is_quick(self, model: str) -> bool:
        """Return True for a player that decides at once."""
        return is_scripted(model)

    def _keep_again(self) -> None:
        """Have all answers stored again that the ledger holds. Only under the lock of the floor."""

    def _is_due(self) -> bool:
        """Return True if the run has begun or has to begin."""
        return bool(self._by_spec)


class _Queue(Iterator[EpisodeSpec]):
    """The talks that wait to begin; after it has been empty it may hold some again."""

    def __init__(self, waiting: deque[EpisodeSpec]) -> None:
        self._waiting = waiting

    def __next__(self) -> EpisodeSpec:
        if not self._waiting:
            raise StopIteration
        return self._waiting.popleft()
