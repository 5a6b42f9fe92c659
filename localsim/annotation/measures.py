"""Measures of agreement and preference, each with its n; None if the data are too few. Pure functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

from localsim.stats import paired, share

Level = Literal["nominal", "interval"]

REGULARISATION = 0.01
"""Weight of the squared strengths (L2) in Bradley–Terry's model, so that a mode that always wins stays finite."""


def alpha(units: Sequence[Sequence[Hashable]], level: Level) -> dict[str, Any]:
    """Krippendorff's alpha over the units that two or more raters judged: 1 minus the ratio of the disagreement within
    units to that between any two judgements (K. Krippendorff, Computing Krippendorff's Alpha-Reliability, 2011).

    `units`: the judgements of each unit by all raters; numbers if `level` is interval. Returns alpha (1: perfect, 0:
    chance, None if all judgements are the same), and the counts of items and judgements. This is our own code because
    the licence of the existing package does not fit ours.
    """
    paired = [Counter(unit) for unit in units if len(unit) >= 2]
    every = sum(paired, Counter())
    count = every.total()
    found: dict[str, Any] = {"alpha": None, "items": len(paired), "judgements": count}
    if len(every) < 2:
        return found
    within = sum(_difference(unit, level) / (unit.total() - 1) for unit in paired)
    return {**found, "alpha": 1 - within * (count - 1) / _difference(every, level)}


def _difference(counts: Counter[Any], level: Level) -> float:
    """Sum over all ordered pairs of judgements: 1 if they differ (nominal), or the squared difference (interval)."""
    return sum(
        n * m * (float((one - other) ** 2) if level == "interval" else float(one != other))
        for one, n in counts.items()
        for other, m in counts.items()
    )


def preference(groups: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """The share of decisions for the first of two with its 95% interval, and p of a sign-flip test against one half;
    None without decisions, no interval and p with one scenario.

    `groups`: scenario -> for each item the share of its raters who chose the first. Every scenario counts once, so that
    neither raters of one item nor items of one scenario count as independent.
    """
    found = paired({scenario: [value - 0.5 for value in values] for scenario, values in groups.items()}, (0.0, 0.5))
    if found is None:
        return {"scenarios": 0, "first_chosen": None, "low": None, "high": None, "p": None}
    ends = [None if end is None else 0.5 + end for end in (found.low, found.high)]
    chosen = 0.5 + found.difference
    return {"scenarios": found.scenarios, "first_chosen": chosen, "low": ends[0], "high": ends[1], "p": found.p}


def strengths(names: Sequence[str], decisions: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Bradley–Terry strengths from (chosen, other) decisions: log odds, with mean 0 over the names that were compared.

    Fitted by maximum likelihood with a small L2 regularisation (REGULARISATION). Returns n (decisions) and by_mode,
    which is None if fewer than two names were compared.
    """
    compared = [name for name in names if any(name in pair for pair in decisions)]
    if len(compared) < 2:
        return {"n": len(decisions), "by_mode": None}
    import choix

    data = [(compared.index(chosen), compared.index(other)) for chosen, other in decisions]
    fitted = [float(value) for value in choix.opt_pairwise(len(compared), data, alpha=REGULARISATION)]
    centre = sum(fitted) / len(fitted)
    by_mode = {name: value - centre for name, value in zip(compared, fitted, strict=True)}
    return {"n": len(decisions), "by_mode": by_mode}


def kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Cohen's kappa of two judges over pairs of labels; None if there is only one label, or none."""
    if len({label for pair in pairs for label in pair}) < 2:
        return None
    from sklearn.metrics import cohen_kappa_score

    return float(cohen_kappa_score([one for one, _ in pairs], [other for _, other in pairs]))


TURN_UNKNOWN = "unknown"
"""The first turn of a fact that comes out in a turn that is not known."""


def first_turns(truth: Mapping[Any, int | str], said: Mapping[Any, int | str | None], none: str) -> dict[str, Any]:
    """The agreement of two sources on the first turns of facts; both are turns by fact, `none` if it never comes out.

    n: the facts of both, without those that `said` misses (None); kappa: Cohen's, of disclosed or not; first_turn: the
    share with the same turn or none, with its 95% interval, of the `turns` facts whose turn is known.
    """
    both = [(truth[fact], turn) for fact, turn in said.items() if fact in truth and turn is not None]
    timed = [(one, other) for one, other in both if other != TURN_UNKNOWN]
    same = share(sum(one == other for one, other in timed), len(timed))
    agreed = kappa([(str(one != none), str(other != none)) for one, other in both])
    found = {"n": len(both), "kappa": agreed, "turns": len(timed)}
    return {**found, "first_turn": same.value, "low": same.low, "high": same.high}


def correlation(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Spearman's rank correlation with its two-sided p; None for fewer than three pairs or a constant side."""
    found: dict[str, Any] = {"rho": None, "p": None, "n": len(pairs)}
    if len(pairs) < 3 or any(len({pair[side] for pair in pairs}) < 2 for side in (0, 1)):
        return found
    from scipy.stats import spearmanr

    test = spearmanr([one for one, _ in pairs], [other for _, other in pairs])
    return {**found, "rho": float(test.statistic), "p": float(test.pvalue)}


def majority(votes: Sequence[Hashable]) -> tuple[bool, Any]:
    """(True, value) if more than half of the votes have the same value, else (False, None)."""
    if not votes:
        return False, None
    value, count = Counter(votes).most_common(1)[0]
    return (True, value) if 2 * count > len(votes) else (False, None)


def overlap(truth: set[Any], said: set[Any]) -> dict[str, Any]:
    """Precision, recall and F1 of the set `said` against the set `truth`, with all counts; None for an empty base."""
    right, total = len(truth & said), len(truth) + len(said)
    return {
        "true": len(truth),
        "said": len(said),
        "both": right,
        "precision": right / len(said) if said else None,
        "recall": right / len(truth) if truth else None,
        "f1": 2 * right / total if total else None,
    }


def mean_by(values: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """The mean and n of each name that has values."""
    return {name: {"mean": sum(found) / len(found), "n": len(found)} for name, found in values.items() if found}
