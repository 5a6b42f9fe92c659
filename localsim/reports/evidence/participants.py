"""Do participants of an experiment differ between its conditions? All pairs are compared by permutation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean

from localsim import stats
from localsim.store.queries.experiments import Outcome


@dataclass(frozen=True)
class Compared:
    """One outcome in two conditions, a row of `differences` in `experiment results --json`."""

    outcome: str
    first: str
    second: str
    n_first: int
    """Participants of the first condition; partners in a talk are one."""
    n_second: int
    difference: float
    """Mean of the first minus mean of the second."""
    p: float
    p_holm: float | None
    """After Holm's correction for all rows."""


def compared(outcomes: Iterable[Outcome]) -> list[Compared]:
    """Return the comparisons of all pairs of conditions, where each has an outcome of at least two participants."""
    groups = stats.grouped((each.outcome, (each.condition, each.value)) for each in outcomes)
    found = []
    for outcome, values in groups.items():
        given = {name: own for name, own in stats.grouped(values).items() if len(own) > 1}
        for (first, one), (second, other) in combinations(given.items(), 2):
            difference, p = round(fmean(one) - fmean(other), 4), stats.permutation(one, other)
            found.append(Compared(outcome, first, second, len(one), len(other), difference, p, None))
    holm = stats.holm([each.p for each in found])
    return [replace(each, p=round(each.p, 4), p_holm=p and round(p, 4)) for each, p in zip(found, holm, strict=True)]
