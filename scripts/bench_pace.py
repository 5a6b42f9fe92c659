"""Time on a machine that changes its pace: a processor shared with others can be twice as fast from one second to the
next, so what is compared is counted in probes, a small fixed piece of work that is repeated every second, or after each
measurement that takes longer.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext

from localsim.backends.llama.lib import LlamaModel
from localsim.backends.llama.raw import RawContext
from localsim.backends.open import physical_cores

ABREAST = 8
DEPTH = 400
"""Tokens in the context before those of a probe."""
PART = 38
"""Prompt tokens of a probe, about as many as an utterance has."""
STRETCH_S = 1.0
"""Seconds from one probe to the next."""


class Pace:
    """Probes of one model: raw llama_decode for a step of ABREAST sequences and for a part of a prompt.

    `reference` is the seconds that one took at first, by which probes are turned into seconds for people to read.
    """

    def __init__(self, model: LlamaModel) -> None:
        self._raw = RawContext(model, sequences=ABREAST, context=DEPTH + 2 * PART, threads=physical_cores())
        self.reference = statistics.median(self.probe() for _ in range(5))

    def probe(self) -> float:
        """Measure the seconds that the fixed piece of work takes now."""
        return sum(self._raw.steps([[DEPTH] * ABREAST])) + sum(self._raw.pieces([(DEPTH, PART)]))

    def paced(self, measurements: Iterable[float]) -> list[float]:
        """Turn the seconds of consecutive measurements into probes of their time."""
        found: list[float] = []
        group: list[float] = []
        before, begun = self.probe(), time.perf_counter()
        for seconds in measurements:
            group.append(seconds)
            if time.perf_counter() - begun >= STRETCH_S:
                after = self.probe()
                found += [_probes(each, before, after) for each in group]
                group, before, begun = [], after, time.perf_counter()
        if group:
            after = self.probe()
            found += [_probes(each, before, after) for each in group]
        return found

    def close(self) -> None:
        """Free the context; the model stays."""
        self._raw.close()


def _probes(seconds: float, before: float, after: float) -> float:
    """A time in probes, given the probes before and after it."""
    return seconds / ((before + after) / 2)


class Stopwatch:
    """Seconds and probes that pass between `start` and `stop`; the probes themselves do not count.

    Whoever is measured calls `look` often, so that a probe can be taken in between; `paused` keeps another
    process from working meanwhile.
    """

    def __init__(self, pace: Pace, paused: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._pace = pace
        self._paused = paused
        self.seconds = 0.0
        self.probes = 0.0
        self._before = self._begun = 0.0

    def start(self) -> None:
        """Start the watch."""
        self._before, self._begun = self._pace.probe(), time.perf_counter()

    def look(self) -> None:
        """Take a probe where the last one is older than STRETCH_S seconds."""
        if time.perf_counter() - self._begun >= STRETCH_S:
            self.stop()

    def stop(self) -> None:
        """Count the time since the last probe."""
        spent = time.perf_counter() - self._begun
        with self._paused():
            after = self._pace.probe()
        self.seconds += spent
        self.probes += _probes(spent, self._before, after)
        self._before, self._begun = after, time.perf_counter()
