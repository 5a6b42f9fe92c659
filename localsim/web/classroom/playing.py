"""The talks of a class as one run in a thread: it begins when phones are paired and goes on until the class ends."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from localsim.backends.base import Backend
from localsim.backends.open import Needs, is_scripted, open_backends
from localsim.backends.person import NAME
from localsim.conversation.episode import Episode, EpisodeSpec, Mode
from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Transcript, Turn
from localsim.errors import DatabaseError, LocalsimError, ModelMissing
from localsim.evaluators.searching import search
from localsim.families import rules_of
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.runs.recorder import Recorder
from localsim.runs.scheduler import Simulation, Watcher
from localsim.store.journal import Journal
from localsim.store.lock import Busy
from localsim.store.queries import annotation as annotation_queries
from localsim.store.queries import classes
from localsim.store.queries import runs as run_queries
from localsim.store.records import Record, RunRecord, ScoreRecord
from localsim.web.classroom.ledger import Opening
from localsim.web.classroom.players import ClassOver, Players
from localsim.web.classroom.seats import MODES, Seat, Talk

if TYPE_CHECKING:
    from localsim.web.classroom.hall import Hall, Live

_AT_A_TIME = 8
"""Talks for which a model writes at the same time; the others wait their turn."""
_MOST = 1000
_BETS_EVERY_S = 2.0
_UNEXPECTED = "something unexpected happened; the terminal shows the details"
TASK = "bet"
"""The task of annotations that are bets."""


def spec_of(scenario: Scenario, talk: Talk, opening: Opening) -> EpisodeSpec:
    """The episode of a talk."""
    models = {name: NAME if name in talk.people else opening.computer for name in scenario.names}
    rules = rules_of(scenario, talk.index)
    return EpisodeSpec(scenario, talk.mode, models, index=talk.index, run_seed=opening.seed, rules=rules)


class _Scribe(Recorder):
    """Records the run, and tells the hall how each talk ended."""

    talks: Mapping[str, Live]
    """Episode id -> talk."""

    def episode_ended(self, episode_id: str, episode: Episode, scores: Sequence[Record], duration_ms: float) -> None:
        """Record the end, and remember the outcome."""
        super().episode_ended(episode_id, episode, scores, duration_ms)
        live = self.talks[episode_id]
        found = (score for score in scores if isinstance(score, ScoreRecord))
        live.success = next((score.value for score in found if score.name == "success" and not score.agent), None)

    def tick(self, models: Mapping[str, Any], computer: str) -> None:
        """Write what waits, if it is time; `models` are the identities of those that have a part in a talk."""
        # The name of a run is made of its plan: a computer that took no part would be named as a player.
        plan = {**json.loads(self._run.plan_json), "model": computer if computer in models else NAME}
        self._run = replace(
            self._run, episodes_planned=len(self.talks), models_json=json.dumps(models), plan_json=json.dumps(plan)
        )
        self._write_if_due()


class Playing(Watcher):
    """Lets the talks of a hall run."""

    def __init__(self, hall: Hall, say: Callable[[str], None]) -> None:
        self._hall, self._say = hall, say
        self._opening = hall.opening
        self._plan = Plan(
            hall.scenarios,
            MODES,
            model=hall.opening.computer,
            roles=dict.fromkeys((name for loaded in hall.scenarios for name in loaded.scenario.names), NAME),
            seed=hall.opening.seed,
        )
        self.players = Players(hall.changed, self._each_round, beside_model=not is_scripted(hall.opening.computer))
        self.players.closing = hall.register.ended
        self._queue: deque[EpisodeSpec] = deque()
        self._by_spec: dict[str, Live] = {}
        self._by_episode: dict[str, Live] = {}
        self._scribe: _Scribe | None = None
        self._backends: Mapping[str, Backend] = {}
        self._bets: list[annotation_queries.AnswerRow] = []
        self._bets_at = 0.0
        self._ready = threading.Event()
        self._failed: LocalsimError | None = None
        self._thread = threading.Thread(target=self._work, name="localsim-class", daemon=True)

    def start(self) -> None:
        """Open the models, take up the talks that were interrupted, and go on. Raises what prevents it."""
        with self._hall.changed:
            for live in self._hall.live.values():
                self._know(live)
                if not live.ended:
                    self._queue.append(live.spec)
            for seat in self._hall.register.seats.values():
                for talk, bet in seat.bets.items():
                    if bet.best is not None:
                        self.keep_best(seat, self._hall.live[talk], bet.best)
                    if bet.about is not None and bet.saw is not None:
                        self.keep_saw(seat, self._hall.live[bet.about], bet.saw)
        self._thread.start()
        self._ready.wait()
        if self._failed is not None:
            raise self._failed

    def stop(self, *, wait: bool = True) -> None:
        """Leave the loop; `wait` until everything is written."""
        with self._hall.changed:
            self.players.closing = True
            self._hall.changed.notify_all()
        if wait and self._thread.is_alive():
            self._thread.join()

    def play(self, live: Live) -> None:
        """Let a new talk begin. Only under the lock of the hall."""
        self._know(live)
        self._queue.append(live.spec)
        self._hall.changed.notify_all()

    def keep_best(self, seat: Seat, live: Live, best: Mode) -> None:
        """Have a bet stored in the database soon; the ledger has it already. Only under the lock of the hall."""
        self._bets.append(self._row(seat, live, {"best": best}))

    def keep_saw(self, seat: Seat, read: Live, saw: bool) -> None:
        """The same for a bet on what the players of a talk saw."""
        self._bets.append(self._row(seat, read, {"saw": saw}))

    # ---- the run's thread ------------------------------------------------------------------------------------------

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:
        """Show a turn that has been recorded."""
        with self._hall.changed:
            live = self._by_spec[spec.hash]
            live.turns.append(turn)
            live.given = None
            self._hall.changed.notify_all()

    def ended(self, episode: Episode) -> None:
        """Show that a talk has ended."""
        with self._hall.changed:
            live = self._by_spec[episode.spec.hash]
            live.ended, live.completed = True, episode.status == "completed"
            live.problem = episode.error or ""
            self._hall.changed.notify_all()

    def _work(self) -> None:
        store, done = self._hall.store, False
        try:
            with open_backends([self._opening.computer], self._needs(), self._say) as backends:
                if self._has_begun():
                    with runner.journal_of(store, self._opening.run_id) as journal:
                        over = self._simulate({**backends, NAME: self.players}, journal)
                else:
                    over = self._hall.register.ended
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
        with self._hall.changed:
            self._hall.problem = problem
        if self._ready.is_set():
            self._say(f"the talks of the class have stopped: {problem}")

    def _has_begun(self) -> bool:
        """Wait for the first talk, so that a class to which nobody comes leaves no run; False if none begins."""
        if not self._by_spec:
            self._ready.set()
            with self._hall.changed:
                self._hall.changed.wait_for(lambda: self._by_spec or self.players.closing)
        return bool(self._by_spec)

    def _needs(self) -> Needs:
        """The needs of the computer's side in any talk."""
        specs = []
        for place, loaded in enumerate(self._hall.scenarios):
            for mode in MODES:
                alone = Talk(0, place, mode, 0, {})
                specs.append(spec_of(loaded.scenario, alone, self._opening))
        return Needs(sequences=_AT_A_TIME, specs=specs)

    def _simulate(self, backends: Mapping[str, Backend], journal: Journal) -> bool:
        """Let the talks run; True if the class has ended, False if it can go on."""
        store, run_id = self._hall.store, self._opening.run_id
        recorded, identities = {}, runner.identities_of(backends)
        if classes.has_run(store, run_id):
            record: RunRecord = runner.resumed_record(run_queries.run_row(store, run_id), identities)
            recorded = run_queries.recorded_generations(store, run_id)
        else:
            record = runner.run_record(run_id, datetime.now(UTC), self._plan, _AT_A_TIME, 0, identities)
        self._backends = backends
        scribe = self._scribe = _Scribe(store, journal, record, self._hall.scenarios, self._say)
        scribe.talks = self._by_episode
        answers = {loaded.scenario.hash: loaded.answer for loaded in self._hall.scenarios}
        simulation = Simulation(run_id, backends, answers, scribe, self, parallel=_MOST)
        with suppress(ClassOver):
            simulation.run(_Queue(self._queue), recorded, more=lambda: True)
        over = self._hall.register.ended
        if over:
            self._break_off()
        self._store_bets(patience_s=60.0)
        now = datetime.now(UTC).replace(tzinfo=None).isoformat()
        scribe.tick(self._identities(), self._opening.computer)
        scribe.close(finished_utc=now, complete=over)
        return over

    def _break_off(self) -> None:
        """End the talks that go on when the class ends."""
        assert self._scribe is not None
        for live in list(self._by_spec.values()):
            if not live.ended:
                error = "the class ended before the talk did"
                episode = Episode(live.spec, Transcript(tuple(live.turns)), "failed", error=error)
                if live.spec in self._queue:
                    self._scribe.episode_started(live.episode_id, live.spec)
                self._scribe.episode_ended(live.episode_id, episode, [], 0.0)
                self.ended(episode)

    def _each_round(self) -> None:
        self._ready.set()
        with self._hall.changed:
            self._hall.hand_in()
        if self._bets and time.monotonic() >= self._bets_at:
            self._store_bets(patience_s=1.0)
        if self._scribe is not None:
            self._scribe.tick(self._identities(), self._opening.computer)

    def _identities(self) -> dict[str, Any]:
        """The identity of each model that has a part in a talk; the computer may have none."""
        with self._hall.changed:
            used = {model for live in self._by_spec.values() for model in live.spec.models.values()}
        return {name: backend.identity for name, backend in self._backends.items() if name in used}

    def _store_bets(self, patience_s: float) -> None:
        self._bets_at = time.monotonic() + _BETS_EVERY_S
        with self._hall.changed:
            bets, self._bets = self._bets, []
        try:
            annotation_queries.store_answers(self._hall.store, bets, patience_s)
        except Busy:
            with self._hall.changed:
                self._bets = bets + self._bets

    def _close(self) -> None:
        """Note that the run of the ended class is complete, and look for leaks in it."""
        if not self._bets:  # otherwise the same command stores them
            self._hall.close()
        if self._by_spec:
            self._search()

    def _search(self) -> None:
        run_id = self._opening.run_id
        self._say(f"the class has ended; its run is {run_id}")
        try:
            search(self._hall.store, [run_id], self._say)
        except (ModelMissing, DatabaseError) as error:
            self._say(f"leaks were not looked for: {error.message}")
        self._say(f"its talks: localsim view; success, turns and leaks in each mode: localsim report {run_id}")

    def _know(self, live: Live) -> None:
        self._by_spec[live.spec.hash] = self._by_episode[live.episode_id] = live

    def _row(self, seat: Seat, live: Live, value: Mapping[str, Any]) -> annotation_queries.AnswerRow:
        return annotation_queries.AnswerRow(
            task=TASK,
            item_id=live.episode_id,
            rater=f"seat_{seat.number:02d}",
            run_id=self._opening.run_id,
            value_json=json.dumps(value),
            shown_json=json.dumps({"1": live.episode_id}),
            attention=False,
            origin="browser",
            seconds=None,
            created_utc=datetime.now(UTC).replace(tzinfo=None),
        )


class _Queue(Iterator[EpisodeSpec]):
    """The talks that wait to begin; after it has been empty it may hold some again."""

    def __init__(self, waiting: deque[EpisodeSpec]) -> None:
        self._waiting = waiting

    def __next__(self) -> EpisodeSpec:
        if not self._waiting:
            raise StopIteration
        return self._waiting.popleft()
