"""Paired comparisons of two conditions on the same scenarios and seeds, and the power of a study to find a difference.

`permutation` compares two groups of participants, each of whom took part in one condition.

The unit is the scenario: p is the share of all ways to flip the signs of the scenarios' mean differences that lead as
far from 0 as the data (exact up to EXACT scenarios). It assumes nothing but that a difference would be as likely with
the other sign if the conditions did not differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from localsim.stats.intervals import CONFIDENCE, Bounds, Centre, interval, middle

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Matrix = npt.NDArray[np.float64]


EXACT = 14
"""Up to this number of scenarios all sign flips are counted; beyond it FLIPS of them are drawn."""
FLIPS = 9_999
SPLITS = 20_000
"""Up to this number of ways to divide participants into two groups all are counted; beyond it FLIPS are drawn."""

Differences = Mapping[str, Sequence[float]]
"""Scenario -> second minus first of each of its pairs."""


class Paired(NamedTuple):
    """The difference of one measure between two conditions, over pairs of the same scenario and seed."""

    n: int
    """Number of pairs."""
    scenarios: int
    difference: float
    """Mean of the scenarios' mean differences, second minus first: every scenario counts once."""
    low: float | None
    high: float | None
    """Ends of the 95% interval over scenarios, inside the possible range of the difference."""
    p: float | None
    """Two-sided p of the sign-flip test over scenarios; None with one scenario."""
    p_least: float
    """The least p that this number of scenarios allows."""
    icc: float | None
    """Resemblance of the pairs of one scenario: intra-class correlation of their differences."""
    effect: float | None
    """Cohen's d of the scenarios' mean differences: mean / standard deviation."""


class Equivalence(NamedTuple):
    """Two one-sided tests (Schuirmann 1987) that a difference is within a margin."""

    margin: float
    p: float | None
    """Probability of such data if the difference were as large as the margin."""
    low: float | None
    high: float | None
    """Ends of the 90% interval: it is inside the margin if p is below .05."""


def paired(differences: Differences, bounds: Bounds = (None, None), number: bool = False) -> Paired | None:
    """Compare two conditions; None without pairs.

    `bounds` are those of the measure; `number` if it is no share and no position (see `stats.intervals`).
    """
    groups = [group for group in differences.values() if group]
    if not groups:
        return None
    import numpy as np

    means = np.array([math.fsum(group) / len(group) for group in groups])
    low, high, p, effect = None, None, None, None
    if len(means) > 1:
        low, high = interval(_middle(means, bounds, number), _range_of_difference(bounds), CONFIDENCE)
        p = float(sign_flips(means[None, :])[0])
        spread = float(means.std(ddof=1))
        effect = float(means.mean()) / spread if spread > 1e-12 else None
    n = sum(map(len, groups))
    return Paired(n, len(means), float(means.mean()), low, high, p, least_p(len(means)), icc(groups), effect)


def _range_of_difference(bounds: Bounds) -> Bounds:
    low, high = bounds
    return (None, None) if low is None or high is None else (low - high, high - low)


def _middle(means: Sequence[float] | Matrix, bounds: Bounds, number: bool) -> Centre:
    low, high = _range_of_difference(bounds)
    ends = [] if low is None or high is None else [(low, 1.0), (high, 1.0)]
    return middle([(float(value), 1.0) for value in means], ends, number)


def sign_flips(means: Matrix, flips: int = FLIPS) -> Matrix:
    """Return p for each row of scenario means: the share of sign flips with a sum as far from 0 as that of the data.

    `flips` are drawn if there are more than EXACT scenarios.
    """
    import numpy as np

    if not means.any():  # many measures are equal everywhere: no sign makes a difference
        return np.ones(len(means))
    scenarios = means.shape[1]
    signs = _signs(scenarios, flips)
    sums = np.abs(means.sum(axis=1))
    limit = sums - 1e-9 * np.maximum(1e-3, sums)
    found = np.zeros(len(means))
    rows = max(1, 4_000_000 // len(signs))
    for start in range(0, len(means), rows):
        part = slice(start, start + rows)
        found[part] = (np.abs(means[part] @ signs.T) >= limit[part, None]).sum(axis=1)
    if scenarios <= EXACT:
        return found / len(signs)
    return (1 + found) / (1 + len(signs))


@lru_cache(maxsize=8)
def _signs(scenarios: int, flips: int) -> Matrix:
    """Return a row of signs for each flip; the last scenario keeps its sign, for its mirror image is as far from 0."""
    import numpy as np

    if scenarios > EXACT:
        flipped = np.random.default_rng(scenarios).integers(0, 2, size=(flips, scenarios))
    else:
        flipped = (np.arange(2 ** (scenarios - 1))[:, None] >> np.arange(scenarios)) & 1
    return np.where(flipped == 1, -1.0, 1.0)


def least_p(scenarios: int) -> float:
    """Return the least p that a sign-flip test of this number of scenarios can have."""
    return 2.0 ** (1 - scenarios) if scenarios <= EXACT else 1 / (1 + FLIPS)


def equivalence(
    differences: Differences, margin: float, bounds: Bounds = (None, None), number: bool = False
) -> Equivalence:
    """Test that two conditions differ by less than the margin; no p with one scenario or if nothing can vary."""
    groups = [group for group in differences.values() if group]
    if len(groups) < 2:
        return Equivalence(margin, None, None, None)
    about = _middle([math.fsum(group) / len(group) for group in groups], bounds, number)
    if about.error == 0:
        return Equivalence(margin, None, None, None)
    from scipy.special import stdtr  # scipy.stats takes seconds to import

    distance = (margin - abs(about.value)) / about.error
    low, high = interval(about, _range_of_difference(bounds), 0.90)
    return Equivalence(margin, float(stdtr(about.freedom, -distance)), low, high)


class Components(NamedTuple):
    """Variances of a one-way analysis: of scenarios' true means, and of pairs within a scenario."""

    between: float
    within: float | None
    """None if no scenario has two pairs."""


def components(groups: Sequence[Sequence[float]]) -> Components | None:
    """Return the variances between and within groups (ANOVA estimators); None for fewer than two groups."""
    sizes, n = [len(group) for group in groups], sum(map(len, groups))
    if len(groups) < 2:
        return None
    means = [math.fsum(group) / len(group) for group in groups]
    overall = math.fsum(map(math.fsum, groups)) / n
    between = math.fsum(size * (one - overall) ** 2 for size, one in zip(sizes, means, strict=True)) / (len(groups) - 1)
    if n == len(groups):
        return Components(between, None)
    squares = math.fsum((value - one) ** 2 for group, one in zip(groups, means, strict=True) for value in group)
    within = squares / (n - len(groups))
    size = (n - sum(each**2 for each in sizes) / n) / (len(groups) - 1)
    return Components((between - within) / size, within)


def icc(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the intra-class correlation; None if nothing varies or no scenario has two pairs. It may be below 0."""
    found = components(groups)
    if found is None or found.within is None:
        return None
    total = found.between + found.within
    return found.between / total if total > 1e-12 else None


def permutation(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the two-sided p of two groups: the share of all ways to divide the same values in groups of these sizes
    whose means lie as far apart. It assumes nothing but that everybody could have been in either group.
    """
    import numpy as np

    values, size = np.array([*one, *other], dtype=float), len(one)
    values -= values.mean()  # then the means lie as far apart as the sum of one group lies from 0
    if exact := math.comb(len(values), size) <= SPLITS:
        sums = values[np.array(list(combinations(range(len(values)), size)))].sum(axis=1)
    else:
        rng = np.random.default_rng(len(values))
        sums = rng.permuted(np.tile(values, (FLIPS, 1)), axis=1)[:, :size].sum(axis=1)
    found = int((np.abs(sums) >= abs(float(values[:size].sum())) - 1e-9 * max(1.0, float(np.abs(values).max()))).sum())
    return found / len(sums) if exact else (1 + found) / (1 + len(sums))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return p-values after Holm's correction (1979) for several tests; None stays None and does not count."""
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    reached = 0.0
    for rank, (p, place) in enumerate(order):
        reached = max(reached, min(1.0, p * (len(order) - rank)))
        corrected[place] = reached
    return corrected


def mcnemar(first_only: int, second_only: int) -> float:
    """Return the exact two-sided p of McNemar's test (1947) on pairs in which only one of two is right.

    Under the null hypothesis each such pair is as likely one way as the other; 1 without any.
    """
    n, least = first_only + second_only, min(first_only, second_only)
    return min(1.0, 2.0 * sum(math.comb(n, count) for count in range(least + 1)) / float(2**n))


# ---- power -----------------------------------------------------------------------------------------------------------


LEVEL = 0.05
"""Of a test in a planned study."""
SIMULATIONS = 8_000
POWER_FLIPS = 999
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
def power(spread: Spread, difference: float, scenarios: int, seeds: int) -> float:
    """Return the share of simulated studies in which the difference is found at p <= .05."""
    import numpy as np

    rng, shape = np.random.default_rng([0, scenarios]), (SIMULATIONS, scenarios)
    variance = spread.between + spread.within / seeds
    if spread.whole:  # rounding up or down by chance keeps the mean and adds a sixth of a squared step
        drawn = difference + max(0.0, variance - 1 / (6 * seeds**2)) ** 0.5 * rng.normal(size=shape)
        means = np.floor(drawn * seeds + rng.random(shape)) / seeds
    else:
        means = difference + variance**0.5 * rng.normal(size=shape)
    return float((sign_flips(means, POWER_FLIPS) <= LEVEL).mean())


def smallest(spread: Spread, difference: float, seeds: int, wanted: float = 0.8) -> int | None:
    """Return the least number of scenarios with the wanted power; None if MOST do not suffice."""
    # As many as a normal distribution of their means would need.
    distance = NormalDist().inv_cdf(1 - LEVEL / 2) + NormalDist().inv_cdf(wanted)
    guess = math.ceil((spread.between + spread.within / seeds) * (distance / difference) ** 2)
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
