"""The one run that the pages may have in progress. It works in a thread; pages read how far it is.

Everything is done by `runs.runner`, as on the command line. This module only remembers what pages show, so a server
that is killed loses nothing: the journal has every turn, and `Desk.resume` continues the run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from localsim.backends.open import is_scripted, memory_plans
from localsim.conversation.episode import MODES, Episode, EpisodeSpec
from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Turn
from localsim.errors import InvalidInput, LocalsimError
from localsim.machine.forecast import Forecast
from localsim.runs import preview, runner
from localsim.runs.plan import Plan
from localsim.runs.scheduler import Watcher
from localsim.store.database import Store
from localsim.web.view_data import MarkedEpisode

Phase = Literal["measuring", "ready", "loading", "talking", "searching", "finished", "stopped", "failed"]
GOING: tuple[Phase, ...] = ("measuring", "loading", "talking", "searching")
"""The phases in which a thread works."""
PACE_S = 0.4
"""Seconds between two turns of scripted players, so that people can follow them."""
_END_PATIENCE_S = 30.0
"""Seconds that a server which ends waits for the turns that are being written."""
_UNEXPECTED = "something unexpected happened; the server's terminal shows the details"


class InProgress(InvalidInput):
    """A second run was asked for while one is in progress."""


@dataclass
class Work:
    """One run of a scenario in three modes. `lock` guards everything that changes."""

    scenario: Scenario
    model: str
    seed: int
    plan: Plan | None
    """None for a run that is resumed: its plan is in the database."""
    phase: Phase
    run_id: str = ""
    """Empty until the run has begun."""
    turns: dict[str, list[Turn]] = field(default_factory=dict)
    """Mode -> turns so far."""
    over: dict[str, str] = field(default_factory=dict)
    """Mode -> why its talk ended, or the error with which it failed."""
    memory: tuple[str, ...] = ()
    """The memory that each model needs, as sentences."""
    forecast: Forecast | None = None
    notes: list[str] = field(default_factory=list)
    """What the run says about itself, such as a wait for the database."""
    problem: str = ""
    hint: str = ""
    """The next step after a `problem`."""
    marked: dict[str, MarkedEpisode] = field(default_factory=dict)
    """Mode -> stored talk, remembered by the page that shows it."""
    since: float = field(default_factory=time.monotonic)
    until: float | None = None
    stopping: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def paced(self) -> bool:
        """True if no model writes, so that the turns would appear all at once."""
        return is_scripted(self.model)

    @property
    def seconds(self) -> float:
        """Seconds that the thread has worked."""
        return (self.until or time.monotonic()) - self.since

    def enter(self, phase: Phase) -> None:
        """Go on to a phase; the clock stands still where no thread works."""
        with self.lock:
            self.phase = phase
            self.until = None if phase in GOING else time.monotonic()

    def note(self, line: str) -> None:
        """Keep a line that the run says about itself."""
        with self.lock:
            self.notes.append(line)

    def add(self, mode: str, turn: Turn) -> bool:
        """Add a turn; False for one that was there already, as when a resume repeats what is recorded."""
        with self.lock:
            turns = self.turns.setdefault(mode, [])
            known = turns[turn.index : turn.index + 1] == [turn]
            if not known:
                turns[turn.index :] = [turn]
            return not known


class _Watcher(Watcher):
    def __init__(self, work: Work) -> None:
        self._work = work

    def begun(self, run_id: str) -> None:
        self._work.run_id = run_id
        self._work.notes.clear()
        self._work.enter("talking")

    def stops(self) -> bool:
        return self._work.stopping.is_set()

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:
        new = self._work.add(spec.mode, turn)
        # The turns of a script are one text and appear together, as they do with a model.
        if new and self._work.paced and spec.mode != "script":
            self._work.stopping.wait(PACE_S)

    def ended(self, episode: Episode) -> None:
        work = self._work
        with work.lock:
            work.over[episode.spec.mode] = episode.error or episode.stop_reason or "ended"
            complete = len(work.over) == len(MODES)
        if complete:
            work.enter("searching")


class Desk:
    """The place of a server's one run in progress."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.work: Work | None = None

    @property
    def busy(self) -> bool:
        """True while a thread works."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self, plan: Plan) -> None:
        """Begin a run of one scenario. With a model its speed is measured first, and `go` starts it.

        Raises InProgress while another run is in progress.
        """
        scenario = plan.scenarios[0].scenario
        work = Work(scenario, plan.model, plan.seed, plan, "loading" if is_scripted(plan.model) else "measuring")
        self._put(work, self._run if work.paced else self._measure)

    def go(self) -> None:
        """Start the run whose forecast has been shown; without one that waits, do nothing."""
        work = self.work
        if work is not None and work.phase == "ready":
            work.notes.clear()
            work.since = time.monotonic()
            work.enter("loading")
            self._put(work, self._run)

    def stop(self) -> None:
        """Stop after the current turns; what has only been measured is forgotten."""
        work = self.work
        if work is not None:
            work.stopping.set()
            if work.phase == "ready":
                self.work = None

    def resume(self, work: Work) -> None:
        """Continue the run that `work` describes as far as it is stored. Raises InProgress."""
        work.phase = "searching" if len(work.over) == len(MODES) else "loading"
        work.marked, work.problem, work.hint = {}, "", ""
        self._put(work, self._resume)

    def close(self) -> None:
        """Stop what is in progress and wait until it is stored, for a server that ends."""
        self.stop()
        if self._thread is not None:
            self._thread.join(_END_PATIENCE_S)

    def _put(self, work: Work, act: Callable[[Work], None]) -> None:
        with self._lock:
            if self.busy:
                raise InProgress("a run is in progress, and there can be one at a time", hint="wait for it, or stop it")
            self.work = work
            self._thread = threading.Thread(target=self._guarded, args=(work, act), name="start", daemon=True)
            self._thread.start()

    # ---- in the thread -----------------------------------------------------------------------------------------

    def _guarded(self, work: Work, act: Callable[[Work], None]) -> None:
        problem, hint = _UNEXPECTED, ""
        try:
            act(work)
            problem = ""
        except LocalsimError as error:
            problem, hint = str(error), error.hint or ""
        finally:
            if problem:
                work.problem, work.hint = problem, hint
                work.enter("failed")

    def _measure(self, work: Work) -> None:
        assert work.plan is not None
        parallel = preview.side_by_side(work.plan, work.note)
        work.memory = tuple(str(each) for each in memory_plans(preview.needs_of(work.plan, parallel)))
        work.forecast = preview.minutes(work.plan, parallel, self._store)
        work.enter("stopped" if work.stopping.is_set() else "ready")

    def _run(self, work: Work) -> None:
        assert work.plan is not None
        self._conclude(work, runner.start(work.plan, self._store, _Watcher(work), work.note, leaks=True))

    def _resume(self, work: Work) -> None:
        self._conclude(work, runner.resume(work.run_id, self._store, _Watcher(work), work.note, leaks=True))

    def _conclude(self, work: Work, result: runner.Result) -> None:
        work.run_id = result.run_id
        if not result.in_database:
            work.note("another program holds the database; the journal beside it keeps the rest")
        work.enter("stopped" if result.summary.stopped else "finished")
