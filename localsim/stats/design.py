"""The power of a study by its numbers of scenarios and seeds, simulated with the test of `localsim compare`."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

from localsim.stats.paired import Differences, components, sign_flips

LEVEL = 0.05
SIMULATIONS = 8_000
FLIPS = 999
"""Fewer than `compare` draws, and enough to tell if p is below LEVEL."""
MOST = 500
"""Most scenarios that are tried."""


class Spread(NamedTuple):
    """The variances of a pilot's paired differences."""

    between: float
    """Of the scenarios' true differences."""
    within: float
    """Of the pairs of one scenario: more seeds make it matter less."""
    scenarios: int
    """Number of scenarios of the pilot."""
    separated: bool
    """False if each scenario had one pair, so that all variance is counted as between scenarios."""
    whole: bool
    """True if all differences are whole numbers, as of counts and of outcomes that are 0 or 1: their sums are often
    equal, which makes the test more careful."""


def spread_of(differences: Differences) -> Spread | None:
    """Return the variances of a pilot's differences; None with one scenario."""
    groups = [group for group in differences.values() if group]
    found = components(groups)
    if found is None:
        return None
    whole = all(float(value).is_integer() for group in groups for value in group)
    return Spread(max(0.0, found.between), found.within or 0.0, len(groups), found.within is not None, whole)


@lru_cache(maxsize=4096)
def power(spread: Spread, difference: float, scenarios: int, seeds: int, seed: int = 0) -> float:
    """Return the share of simulated studies in which the difference is found at p <= .05."""
    import numpy as np

    rng, shape = np.random.default_rng([seed, scenarios]), (SIMULATIONS, scenarios)
    variance = spread.between + spread.within / seeds
    if spread.whole:  # rounding up or down by chance keeps the mean and adds a sixth of a squared step
        drawn = difference + max(0.0, variance - 1 / (6 * seeds**2)) ** 0.5 * rng.normal(size=shape)
        means = np.floor(drawn * seeds + rng.random(shape)) / seeds
    else:
        means = difference + variance**0.5 * rng.normal(size=shape)
    return float((sign_flips(means, FLIPS) <= LEVEL).mean())


def _guess(spread: Spread, difference: float, seeds: int, wanted: float) -> int:
    """Return the number of scenarios that a normal distribution of their means would need."""
    normal = NormalDist()
    distance = normal.inv_cdf(1 - LEVEL / 2) + normal.inv_cdf(wanted)
    return math.ceil((spread.between + spread.within / seeds) * (distance / difference) ** 2)


def smallest(spread: Spread, difference: float, seeds: int, wanted: float = 0.8) -> int | None:
    """Return the least number of scenarios with the wanted power; None if MOST do not suffice."""
    guess = _guess(spread, difference, seeds, wanted)
    if guess > 2 * MOST:
        return None
    low, high = max(2, guess * 2 // 3), min(MOST, max(6, guess))
    while low > 2 and power(spread, difference, low, seeds) >= wanted:
        low, high = low // 2, low
    while power(spread, difference, high, seeds) < wanted:
        if high >= MOST:
            return None
        low, high = high, min(MOST, high * 3 // 2)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(spread, difference, middle, seeds) >= wanted else (middle, high)
    return high
