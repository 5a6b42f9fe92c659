"""Intervals for the estimates of a report. scipy does the work and is imported only here, when needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

CONFIDENCE = 0.95


class Estimate(NamedTuple):
    """A value with the ends of its 95% interval; all None where there is nothing to estimate from."""

    value: float | None
    low: float | None
    high: float | None
    n: int


NOTHING = Estimate(None, None, None, 0)


def share(successes: int, n: int) -> Estimate:
    """A proportion with its Wilson score interval (Wilson 1927)."""
    if n == 0:
        return NOTHING
    from scipy.stats import binomtest

    interval = binomtest(successes, n).proportion_ci(CONFIDENCE, method="wilson")
    return Estimate(successes / n, float(interval.low), float(interval.high), n)


def mean(values: Sequence[float]) -> Estimate:
    """A mean with its t interval; no interval from fewer than two values."""
    n = len(values)
    if n == 0:
        return NOTHING
    centre = sum(values) / n
    if n == 1:
        return Estimate(centre, None, None, 1)
    from scipy.stats import sem, t

    error = float(sem(values))
    if error == 0:
        return Estimate(centre, centre, centre, n)
    low, high = t.interval(CONFIDENCE, n - 1, loc=centre, scale=error)
    return Estimate(centre, float(low), float(high), n)
