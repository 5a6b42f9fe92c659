"""Controls: players whose behaviour is known, and the value that each measure must have when they play.

A measure that fails its controls says nothing about models. Families and evaluators declare their controls beside
their measures; `localsim controls` and the tests simulate the players and compare.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from localsim.conversation.episode import MODES, Mode

Theory = Literal["exact", "chance", "range"]
"""`exact`: the value itself. `chance`: `n` independent trials that succeed with probability `low`; the value must be in
the central 99.9% of that binomial distribution. `range`: anything from `low` to `high`.
"""
KEPT = "facts kept"
"""The task in which no fact of the default task may be disclosed."""
TAIL = 0.0005
"""Probability of each tail that `chance` cuts off."""


@dataclass(frozen=True)
class Control:
    """The value that one measure must have for one player, in some modes and on one task of a family."""

    player: str
    """Name of a scripted player: `scripted:NAME`."""
    measure: str
    """Key of the measure."""
    low: float | None
    """The exact value, the probability, or the lower end; None if the measure must have no value at all."""
    why: str = ""
    """One phrase that says from where the value follows."""
    task: str = ""
    """A key of `Family.control_tasks`; '' is the family's default task."""
    modes: Sequence[Mode] = MODES
    high: float | None = None
    """The upper end of a `range`."""
    theory: Theory = "exact"

    def interval(self, n: int) -> tuple[float, float] | None:
        """Return the ends of the allowed values, with `n` scored episodes; None if no value is allowed."""
        if self.low is None:
            return None
        if self.theory == "chance":
            return _quantile(TAIL, n, self.low) / max(1, n), _quantile(1 - TAIL, n, self.low) / max(1, n)
        return self.low, self.low if self.high is None or self.theory == "exact" else self.high

    @property
    def allowed(self) -> str:
        """The allowed values, for people."""
        if self.low is None:
            return "no value"
        if self.theory == "chance":
            return f"{self.low:.3g}, as by chance"
        if self.theory == "exact" or self.high is None:
            return f"{self.low:.3g}"
        return f"{self.low:.3g} to {self.high:.3g}"

    def passes(self, value: float | None, n: int) -> bool:
        """Return True if a measured value over `n` episodes is what it must be."""
        allowed = self.interval(n)
        if allowed is None or value is None:
            return allowed is None and value is None
        return allowed[0] - 1e-6 <= value <= allowed[1] + 1e-6 and math.isfinite(value)


def _quantile(probability: float, n: int, p: float) -> int:
    """Return the least number of successes in `n` trials that is not exceeded with at least a probability."""
    reached = 0.0
    for successes in range(n):
        reached += math.comb(n, successes) * p**successes * (1 - p) ** (n - successes)
        if reached >= probability:
            return successes
    return n


exactly = Control
"""A control with one allowed value; None: the measure must have no value."""
by_chance = partial(Control, theory="chance")
"""A control of a share of episodes, each of which counts with a known probability."""


def between(
    player: str, measure: str, low: float, high: float, why: str, task: str = "", modes: Sequence[Mode] = MODES
) -> Control:
    """Return a control with an interval of allowed values that follows from theory."""
    return Control(player, measure, low, why, task, modes, high, "range")
