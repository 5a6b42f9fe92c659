"""A worker: it opens the models of a run once, plays the episodes that it is given, and keeps the news for the driver.

The driver calls `exchange` again and again: it brings tasks and takes the news. Each call confirms the call before it,
so nothing is lost or doubled while the worker lives. A thread plays meanwhile, with the scheduler of a run on one
machine. A worker never receives an answer key and never opens a database.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from localsim.backends.base import Backend
from localsim.backends.open import open_backends, physical_cores
from localsim.conversation.episode import Episode, EpisodeSpec
from localsim.conversation.requests import Generation, Request
from localsim.conversation.transcript import Turn
from localsim.errors import GenerationFailed, LocalsimError
from localsim.evaluators.asking import ask
from localsim.evaluators.base import Asked
from localsim.families import rules_of
from localsim.runs.cluster import weights
from localsim.runs.cluster.messages import (
    Ended,
    Event,
    Found,
    Generated,
    News,
    Opened,
    Orders,
    Part,
    Rejected,
    Said,
    Started,
    Task,
)
from localsim.runs.preview import as_many_as_fit
from localsim.runs.recorder import EventSink
from localsim.runs.scheduler import Simulation, Watcher
from localsim.runs.versions import versions
from localsim.store.queries.runs import Recorded
from localsim.store.records import Record, episode_id_of

NEWS_S = 0.25
"""Longest time in seconds until a worker sends what has happened."""
IDLE_S = 0.2
"""Seconds that a worker without an episode waits for one before it looks again."""


class Worker(Watcher):
    """Plays episodes for a driver elsewhere. Every method returns a value; expected errors are values too."""

    def __init__(self, cores: int) -> None:
        self._cores = cores
        self._open = ExitStack()
        self._backends: dict[str, Backend] = {}
        self._parallel = 1
        self._changed = threading.Condition()
        self._tasks: deque[EpisodeSpec] = deque()
        self._recorded: dict[str, Sequence[Recorded]] = {}
        self._events: list[Event] = []
        self._ended = False
        """True if an episode has ended since the last news."""
        self._stop = False
        self._over = False
        self._error = ""
        self._running = 0

    def hello(self) -> dict[str, str]:
        """Return versions and place of this worker."""
        return {**versions(), "host": platform.node(), "pid": str(os.getpid()), "executable": sys.executable}

    def look(self, orders: Orders) -> Found:
        """Return which models are here, as files of this machine or sent for an earlier run."""
        return weights.look(orders)

    def receive(self, part: Part, *pieces: Any) -> str:
        """Write a file that the driver sent, in pieces of bytes; return the reason if that failed, else ''."""
        return weights.receive(part, pieces)

    def open(self, orders: Orders) -> Opened | LocalsimError:
        """Load the models. Needs that depend on the machine are chosen here: episodes at a time and threads."""
        said: list[str] = []
        try:
            threads = orders.needs.threads or min(physical_cores(), self._cores)
            needs = replace(orders.needs, threads=threads, files=weights.files_here(orders))
            self._parallel = as_many_as_fit(needs, orders.parallel, orders.episodes, said.append)
            needs = replace(needs, sequences=self._parallel)
            self._backends = self._open.enter_context(open_backends(orders.models, needs, said.append))
        except LocalsimError as error:
            return error
        return Opened({name: each.identity for name, each in self._backends.items()}, self._parallel, tuple(said))

    def play(self, run_id: str) -> None:
        """Begin to play the episodes of a run; `exchange` brings them."""
        self._run_id = run_id
        threading.Thread(target=self._play, daemon=True).start()

    def exchange(self, tasks: Sequence[Task], stop: bool = False) -> News:
        """Take tasks and return the news, at once if an episode has ended and none waits, else within NEWS_S.

        `stop` ends the play after the current turns; episodes that have not begun are dropped.
        """
        until = time.monotonic() + NEWS_S
        with self._changed:
            for task in tasks:
                spec = replace(task.spec, rules=rules_of(task.spec.scenario, task.spec.index))
                self._recorded[episode_id_of(self._run_id, spec)] = task.recorded
                self._tasks.append(spec)
            self._stop = self._stop or stop
            self._changed.notify_all()
            while not self._over and not (self._ended and not self._tasks) and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)
            events, self._events = tuple(self._events), []
            self._ended = False
            return News(events, self._running, self._over, self._error)

    def ask(self, requests: Sequence[Request]) -> list[Asked]:
        """Return the answers of the one model that is open, a judge."""
        (judge,) = self._backends.values()
        return ask(judge, requests)

    def close(self) -> None:
        """Stop at once and free the models."""
        with self._changed:
            self._stop = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._over, timeout=IDLE_S)
        self._open.close()

    # ---- the thread that plays ---------------------------------------------------------------------------------

    def _play(self) -> None:
        simulation = Simulation(
            self._run_id,
            self._backends,
            None,
            _Stream(self),
            self,
            parallel=self._parallel,
            should_stop=lambda: self._stop,
        )
        error = ""
        try:
            simulation.run(self._tasks, self._recorded, more=self._more)
        except Exception as failure:  # noqa: BLE001 - a worker must report whatever ended it
            error = f"{type(failure).__name__}: {failure}"
        with self._changed:
            self._over, self._error = True, error
            self._changed.notify_all()

    def _more(self) -> bool:
        """Wait a moment for a task; return False if the play is to end."""
        with self._changed:
            if not self._tasks and not self._stop:
                self._changed.wait(IDLE_S)
            return not self._stop

    def note(self, event: Event) -> None:
        """Keep an event for the next news."""
        with self._changed:
            self._events.append(event)
            if isinstance(event, Ended):
                self._recorded.pop(event.episode_id, None)
                self._ended = True
                if not self._tasks:
                    self._changed.notify_all()

    def working(self, ended: int, running: int) -> None:  # noqa: ARG002 - the driver counts those that ended
        self._running = running


class _Stream(EventSink):
    """The sink of a worker's scheduler: it turns calls into events."""

    def __init__(self, worker: Worker) -> None:
        self._note = worker.note

    def episode_started(self, episode_id: str, spec: EpisodeSpec) -> None:  # noqa: ARG002 - the driver has the spec
        self._note(Started(episode_id))

    def generation(self, episode_id: str, number: int, request: Request, result: Generation | GenerationFailed) -> None:
        self._note(Generated(episode_id, number, replace(request, observation=None, heard=()), result))

    def turn(self, episode_id: str, turn: Turn, generation: int) -> None:
        self._note(Said(episode_id, turn, generation))

    def reject(self, episode_id: str, generation: int, reason: str) -> None:
        self._note(Rejected(episode_id, generation, reason))

    def episode_ended(
        self,
        episode_id: str,
        episode: Episode,
        scores: Sequence[Record],  # noqa: ARG002 - the driver scores
        duration_ms: float,
    ) -> None:
        self._note(Ended(episode_id, episode.status, episode.stop_reason, episode.error, duration_ms))
