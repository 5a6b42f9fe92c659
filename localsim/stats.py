"""Intervals for the estimates of a report, and paired comparisons. scipy does the work, imported when needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

CONFIDENCE = 0.95


class Estimate(NamedTuple):
    """A value with the ends of its 95% interval; all None without data."""

    value: float | None
    low: float | None
    high: float | None
    n: int


NOTHING = Estimate(None, None, None, 0)


def share(successes: int, n: int) -> Estimate:
    """Return a proportion with its Wilson score interval (Wilson 1927)."""
    if n == 0:
        return NOTHING
    from scipy.stats import binomtest

    interval = binomtest(successes, n).proportion_ci(CONFIDENCE, method="wilson")
    return Estimate(successes / n, float(interval.low), float(interval.high), n)


def mean(values: Sequence[float]) -> Estimate:
    """Return a mean with its t interval; there is no interval for fewer than two values."""
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


class Paired(NamedTuple):
    """The difference of one measure between two conditions, over pairs of the same scenario and seed."""

    n: int
    """Number of pairs."""
    scenarios: int
    """Number of clusters, because pairs of one scenario are not independent of each other."""
    difference: float
    """Mean of second minus first."""
    low: float | None
    high: float | None
    """Ends of the 95% percentile interval of a bootstrap that draws whole scenarios."""
    t: float | None
    p: float | None
    """Two-sided paired t-test as in the paper, which treats pairs as independent."""
    effect: float | None
    """Cohen's d of the differences: mean / standard deviation."""
    needed: int | None
    """Number of pairs that detects a true difference of this size with 80% power at p < .05."""


RESAMPLES = 5000


def paired(differences: Mapping[str, Sequence[float]], seed: int = 0) -> Paired | None:
    """Compare two conditions, given scenario -> differences of its pairs. None without pairs."""
    values = [value for group in differences.values() for value in group]
    if not values:
        return None
    import numpy as np
    from scipy.stats import ttest_1samp

    data = np.array(values)
    spread = float(data.std(ddof=1)) if len(data) > 1 else 0.0
    low = high = t = p = effect = None
    if spread > 0:
        test = ttest_1samp(data, 0.0)
        t, p, effect = float(test.statistic), float(test.pvalue), float(data.mean() / spread)
    if len(differences) > 1:
        groups = [np.array(group) for group in differences.values()]
        sums, sizes = np.array([group.sum() for group in groups]), np.array([len(group) for group in groups])
        drawn = np.random.default_rng(seed).integers(len(groups), size=(RESAMPLES, len(groups)))
        means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
        low, high = (float(end) for end in np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]))
    return Paired(len(data), len(differences), float(data.mean()), low, high, t, p, effect, pairs_needed(effect))


def pairs_needed(effect: float | None, power: float = 0.8, alpha: float = 0.05, most: int = 100_000) -> int | None:
    """Return the number of pairs at which a paired t-test reaches the power; None without an effect or beyond `most`.

    It follows from the noncentral t distribution (Cohen 1988, chapter 2).
    """
    if not effect:
        return None
    from scipy.stats import nct, t

    def reaches(n: int) -> bool:
        limit, shift = t.ppf(1 - alpha / 2, n - 1), abs(effect) * n**0.5
        return bool(1 - nct.cdf(limit, n - 1, shift) + nct.cdf(-limit, n - 1, shift) >= power)

    low, high = 2, 2
    while not reaches(high):
        low, high = high, high * 2
        if high > most:
            return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle + 1, high)
    return high


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values after Holm's correction (1979) for several tests; None stays None and does not count."""
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    reached = 0.0
    for rank, (p, place) in enumerate(order):
        reached = max(reached, min(1.0, p * (len(order) - rank)))
        corrected[place] = reached
    return corrected
