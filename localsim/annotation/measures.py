"""Measures of agreement and preference, each with its n; None if the data are too few. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from localsim.stats import paired, share

Level = Literal["nominal", "interval"]

REGULARISATION = 0.01
"""Weight of the squared strengths (L2) in Bradley–Terry's model, so that a mode that always wins stays finite."""


@dataclass(frozen=True)
class Alpha:
    """The agreement of raters."""

    alpha: float | None
    """1: perfect, 0: chance, None if all judgements are the same."""
    items: int
    """Units that two or more raters judged."""
    judgements: int


def alpha(units: Sequence[Sequence[Hashable]], level: Level) -> Alpha:
    """Krippendorff's alpha over the units that two or more raters judged: 1 minus the ratio of the disagreement within
    units to that between any two judgements (K. Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011).

    `units`: the judgements of each unit by all raters; numbers if `level` is interval. This is our own code because the
    licence of the existing package does not fit ours.
    """
    paired = [Counter(unit) for unit in units if len(unit) >= 2]
    every = sum(paired, Counter())
    count = every.total()
    if len(every) < 2:
        return Alpha(None, len(paired), count)
    within = sum(_difference(unit, level) / (unit.total() - 1) for unit in paired)
    return Alpha(1 - within * (count - 1) / _difference(every, level), len(paired), count)


def _difference(counts: Counter[Any], level: Level) -> float:
    """Sum over all ordered pairs of judgements: 1 if they differ (nominal), or the squared difference (interval)."""
    return sum(
        n * m * (float((one - other) ** 2) if level == "interval" else float(one != other))
        for one, n in counts.items()
        for other, m in counts.items()
    )


class Preference(NamedTuple):
    """How often the first of two was chosen."""

    scenarios: int
    first_chosen: float | None
    low: float | None
    high: float | None
    p: float | None


def preference(groups: Mapping[str, Sequence[float]]) -> Preference:
    """The share of decisions for the first of two with its 95% interval, and p of a sign-flip test against one half;
    None without decisions, no interval and p with one scenario.

    `groups`: scenario -> for each item the share of its raters who chose the first. Every scenario counts once, so that
    neither raters of one item nor items of one scenario count as independent.
    """
    found = paired({scenario: [value - 0.5 for value in values] for scenario, values in groups.items()}, (0.0, 0.5))
    if found is None:
        return Preference(0, None, None, None, None)
    low, high = (None if end is None else 0.5 + end for end in (found.low, found.high))
    return Preference(found.scenarios, 0.5 + found.difference, low, high, found.p)


@dataclass(frozen=True)
class Strengths:
    """Bradley–Terry strengths."""

    n: int
    """Decisions."""
    by_mode: Mapping[str, float] | None
    """Name -> log odds; None if fewer than two names were compared."""


def strengths(names: Sequence[str], decisions: Sequence[tuple[str, str]]) -> Strengths:
    """Bradley–Terry strengths from (chosen, other) decisions: log odds, with mean 0 over the names that were compared.

    Fitted by maximum likelihood with a small L2 regularisation (REGULARISATION).
    """
    compared = [name for name in names if any(name in pair for pair in decisions)]
    if len(compared) < 2:
        return Strengths(len(decisions), None)
    import choix

    data = [(compared.index(chosen), compared.index(other)) for chosen, other in decisions]
    fitted = [float(value) for value in choix.opt_pairwise(len(compared), data, alpha=REGULARISATION)]
    centre = sum(fitted) / len(fitted)
    return Strengths(len(decisions), {name: value - centre for name, value in zip(compared, fitted, strict=True)})


def kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Cohen's kappa of two judges over pairs of labels; None if there is only one label, or none."""
    if len({label for pair in pairs for label in pair}) < 2:
        return None
    from sklearn.metrics import cohen_kappa_score

    return float(cohen_kappa_score([one for one, _ in pairs], [other for _, other in pairs]))


TURN_UNKNOWN = "unknown"
"""The first turn of a fact that comes out in a turn that is not known."""


@dataclass(frozen=True)
class FirstTurns:
    """The agreement of two sources on the first turns of facts."""

    n: int
    """The facts of both, without those that one misses."""
    kappa: float | None
    """Cohen's, of disclosed or not."""
    turns: int
    """The facts whose turn is known."""
    first_turn: float | None
    """The share of these with the same turn or none, and the ends of its 95% interval."""
    low: float | None
    high: float | None


def first_turns(truth: Mapping[Any, int | str], said: Mapping[Any, int | str | None], none: str) -> FirstTurns:
    """Compare two sources, both as turns by fact, `none` if it never comes out; `said` misses some facts (None)."""
    both = [(truth[fact], turn) for fact, turn in said.items() if fact in truth and turn is not None]
    timed = [(one, other) for one, other in both if other != TURN_UNKNOWN]
    same = share(sum(one == other for one, other in timed), len(timed))
    agreed = kappa([(str(one != none), str(other != none)) for one, other in both])
    return FirstTurns(len(both), agreed, len(timed), same.value, same.low, same.high)


class Correlation(NamedTuple):
    """Spearman's rank correlation with its two-sided p."""

    rho: float | None
    p: float | None
    n: int


def correlation(pairs: Sequence[tuple[float, float]]) -> Correlation:
    """Spearman's rank correlation with its two-sided p; None for fewer than three pairs or a constant side."""
    if len(pairs) < 3 or any(len({pair[side] for pair in pairs}) < 2 for side in (0, 1)):
        return Correlation(None, None, len(pairs))
    from scipy.stats import spearmanr

    test = spearmanr([one for one, _ in pairs], [other for _, other in pairs])
    return Correlation(float(test.statistic), float(test.pvalue), len(pairs))


def majority(votes: Sequence[Hashable]) -> tuple[bool, Any]:
    """(True, value) if more than half of the votes have the same value, else (False, None)."""
    if not votes:
        return False, None
    value, count = Counter(votes).most_common(1)[0]
    return (True, value) if 2 * count > len(votes) else (False, None)


@dataclass(frozen=True)
class Overlap:
    """How well a set of findings covers the truth, with all counts; None for an empty base."""

    true: int
    said: int
    both: int
    precision: float | None
    recall: float | None
    f1: float | None


def overlap(truth: set[Any], said: set[Any]) -> Overlap:
    """Return precision, recall and F1 of the set `said` against the set `truth`."""
    right, total = len(truth & said), len(truth) + len(said)
    precision, recall = right / len(said) if said else None, right / len(truth) if truth else None
    return Overlap(len(truth), len(said), right, precision, recall, 2 * right / total if total else None)


@dataclass(frozen=True)
class Mean:
    """A mean and the number of its values."""

    mean: float
    n: int
