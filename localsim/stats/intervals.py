"""Intervals of one cell of a report.

Every estimate is a ratio of sums over scenarios, and its interval is Student's t over the scenarios with one degree of
freedom less than there are scenarios. A share or a position has a least and a greatest value, and one more scenario is
counted at each of the two: it keeps the interval inside the range, and wide where all scenarios agree, because a
scenario that differs may only not have been drawn yet. The limits of a number, such as that of turns, are far from
most of its values. They cut its interval. It has none where all scenarios agree, because scenarios at its limits would
decide it alone; only a difference of numbers counts them there. `scripts/check_stats.py` measures the coverage.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

CONFIDENCE = 0.95
_FEW = 3
"""Up to this number of scenarios an interval on the scale of logarithms is too wide to be read."""

Bounds = tuple[float | None, float | None]
"""The least and the greatest possible value; None is no limit."""
Pair = tuple[float, float]
"""What a scenario adds to the numerator and to the denominator of a ratio."""


class Estimate(NamedTuple):
    """A value with the ends of its 95% interval; all None without data, no ends if the interval cannot be known."""

    value: float | None
    low: float | None
    high: float | None
    n: int

    def rounded(self) -> tuple[float | None, float | None, float | None]:
        """Return the value and the ends, rounded to four places."""
        value, low, high = (None if end is None else round(end, 4) for end in self[:3])
        return value, low, high


NOTHING = Estimate(None, None, None, 0)


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return key -> its values, both in the order of the pairs; a scenario, for example, and its differences."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def text_of(value: float | None, low: float | None = None, high: float | None = None, form: str = ".2f") -> str:
    """Return a value with its interval, such as `40% [31%, 52%]`; - without a value. `form` is that of a number."""
    if value is None:
        return "-"
    return f"{value:{form}}" + ("" if low is None or high is None else f" [{low:{form}}, {high:{form}}]")


def share(successes: int, n: int) -> Estimate:
    """Return a proportion of independent units with its Wilson score interval (Wilson 1927); see `rate` for others."""
    if n == 0:
        return NOTHING
    from scipy.special import ndtri  # scipy.stats takes seconds to import

    z = float(ndtri((1 + CONFIDENCE) / 2))
    middle = (successes + z * z / 2) / (n + z * z)
    reach = z * math.sqrt(successes * (n - successes) / n + z * z / 4) / (n + z * z)
    low, high = middle - reach if successes else 0.0, middle + reach if successes < n else 1.0
    return Estimate(successes / n, low, high, n)


def clustered(groups: Mapping[str, Sequence[float]], bounds: Bounds = (None, None), number: bool = False) -> Estimate:
    """Return the mean of all values, given scenario -> values; `number` if they are no shares and no positions.

    One scenario has no interval, nor have equal numbers or equal values without bounds: nothing shows how far
    scenarios differ.
    """
    pairs = [(math.fsum(group), float(len(group))) for group in groups.values() if group]
    return _ratio(pairs, bounds, [] if number else _ends(pairs, bounds), sum(map(len, groups.values())))


def rate(groups: Mapping[str, tuple[int, int]]) -> Estimate:
    """Return how many of all are counted, given scenario -> (how many, of how many)."""
    pairs = [(float(some), float(total)) for some, total in groups.values() if total]
    return _ratio(pairs, (0.0, 1.0), _ends(pairs, (0.0, 1.0)), int(sum(total for _, total in pairs)))


def excess(groups: Mapping[str, Sequence[tuple[float, float]]]) -> Estimate:
    """Return the hits beyond chance, (hits - chance) / (n - chance), given scenario -> (hit, chance) of each try.

    1 is always right, 0 as often as by chance; there is no least value.
    """
    tries = [group for group in groups.values() if group]
    pairs = [
        (math.fsum(hit - chance for hit, chance in group), math.fsum(1 - chance for _, chance in group))
        for group in tries
    ]
    if math.fsum(below for _, below in pairs) <= 0:
        return NOTHING
    size = max(len(group) for group in tries)
    n = sum(map(len, tries))
    chance = size * math.fsum(chance for group in tries for _, chance in group) / n
    return _ratio(pairs, (None, 1.0), [(-chance, size - chance), (size - chance, size - chance)], n)


class Centre(NamedTuple):
    """The middle and the standard error of an interval, with the degrees of freedom of its t distribution."""

    value: float
    error: float
    freedom: int


def centre(pairs: Sequence[Pair], ends: Sequence[Pair] = ()) -> Centre:
    """Return the middle of the interval of a ratio of sums; `ends` are the scenarios at the ends of the range."""
    every = [*pairs, *ends]
    below = math.fsum(pair[1] for pair in every)
    value = math.fsum(pair[0] for pair in every) / below
    squares = math.fsum((pair[0] - value * pair[1]) ** 2 for pair in every)
    error = math.sqrt(squares * len(every) / (len(every) - 1)) / below
    return Centre(value, error if error > 1e-12 * max(1.0, abs(value)) else 0.0, len(pairs) - 1)


def middle(pairs: Sequence[Pair], ends: Sequence[Pair], number: bool) -> Centre:
    """Return the centre with the scenarios at the ends; of a `number` only if nothing varies without them."""
    alone = centre(pairs) if number and len(pairs) > 1 else None
    return alone if alone is not None and alone.error else centre(pairs, ends)


def _ends(pairs: Sequence[Pair], bounds: Bounds) -> list[Pair]:
    """Return a scenario at each end of the range, as large as the largest one; none if an end is open."""
    low, high = bounds
    size = max((below for _, below in pairs), default=0.0)
    return [] if low is None or high is None else [(low * size, size), (high * size, size)]


def _ratio(pairs: Sequence[Pair], bounds: Bounds, ends: Sequence[Pair], n: int) -> Estimate:
    """Return a ratio of sums over scenarios with its interval."""
    if not pairs:
        return NOTHING
    value = math.fsum(above for above, _ in pairs) / math.fsum(below for _, below in pairs)
    if len(pairs) == 1:
        return Estimate(value, None, None, n)
    low, high = interval(centre(pairs, ends), bounds)
    if low is None or high is None:
        return Estimate(value, None, None, n)
    return Estimate(value, min(low, value), max(high, value), n)


def interval(about: Centre, bounds: Bounds, confidence: float = CONFIDENCE) -> tuple[float | None, float | None]:
    """Return the ends of an interval inside the bounds; None if nothing varies.

    A measure that cannot be below 0 and has no greatest value is skewed: its interval is on the scale of logarithms.
    """
    if about.error == 0:
        return None, None
    reach = t_quantile(about.freedom, (1 + confidence) / 2) * about.error
    if bounds == (0, None) and about.freedom >= _FEW and about.value > 0:
        factor = math.exp(reach / about.value)
        return about.value / factor, about.value * factor
    low, high = about.value - reach, about.value + reach
    return (
        low if bounds[0] is None else max(low, float(bounds[0])),
        high if bounds[1] is None else min(high, float(bounds[1])),
    )


@cache
def t_quantile(freedom: int, probability: float) -> float:
    """Return a quantile of Student's t distribution."""
    from scipy.special import stdtrit  # scipy.stats takes seconds to import

    return float(stdtrit(freedom, probability))
