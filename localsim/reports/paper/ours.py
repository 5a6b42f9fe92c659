"""Our side of the paper's tables: the same quantities of stored conditions, with intervals over scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from localsim import stats
from localsim.evaluators.judge import DIMENSIONS
from localsim.families import EVERYDAY, family_of
from localsim.families.base import SUCCESS
from localsim.reports.compose.alone import cells
from localsim.reports.measures import Cell, measures_of, of_family, sided, within
from localsim.reports.paper.published import Quantity
from localsim.stats import Bounds, Estimate
from localsim.store.conditions import Condition
from localsim.store.database import Store

Found = Mapping[str, Sequence[Cell]]
"""Name of a condition -> its cells, one for each family."""
BINS = 10
"""Bars of a histogram of positions."""
RULES = "here, rules"
_JUDGE = "judge."


def read(store: Store, names: Mapping[Condition, str]) -> dict[str, list[Cell]]:
    """Return the cells of conditions."""
    found: dict[str, list[Cell]] = {name: [] for name in names.values()}
    for run_id in dict.fromkeys(each.run_id for each in names):
        for (_, condition), cell in cells(store, run_id, sided(store, run_id)).items():
            if condition in names:
                found[names[condition]].append(cell)
    return found


def judges_of(found: Found) -> list[str]:
    """Return the names of the judges that scored any of the conditions."""
    evaluators = {row.evaluator for own in found.values() for cell in own for row in cell.scores}
    return sorted(name.removeprefix(_JUDGE) for name in evaluators if name.startswith(_JUDGE))


def lines(found: Found) -> list[Quantity]:
    """Return our lines of all panels but naturalness and the histogram; lines without a value are left out."""
    every = [Quantity("goal", scope, RULES, "", _each(found, SUCCESS.key, scope), share=True) for scope in _SCOPES]
    judged = [(judge, scope) for judge in judges_of(found) for scope in _SCOPES]
    every += [Quantity("goal", scope, _by(judge), "", _judged(found, judge, "goal", scope)) for judge, scope in judged]
    every += [
        Quantity("dimensions", _named(name, scope), _by(judge), "", _judged(found, judge, name, scope))
        for judge in judges_of(found)
        for name in [*DIMENSIONS, "overall"]
        for scope in _SCOPES
    ]
    every += [
        Quantity("words", "words per turn", RULES, "", _each(found, "words_per_turn", "overall")),
        Quantity("first_mention", "mean position", RULES, "", _each(found, "first_mention", "overall")),
        Quantity("deals", "share with a deal", RULES, "", _each(found, "deal_rate", "overall"), share=True),
    ]
    return [line for line in every if line.values]


_SCOPES = ("overall", "cooperative", "competitive")


def _by(judge: str) -> str:
    return f"here, judge {judge}"


def _named(dimension: str, scope: str) -> str:
    return dimension if scope == "overall" else f"{dimension}, {scope}"


def _of_scope(own: Sequence[Cell], scope: str) -> list[Cell]:
    return [cell for cell in own if scope in ("overall", family_of(cell.family).interests)]


def _each(found: Found, key: str, scope: str) -> dict[str, Estimate]:
    """Return a measure of each condition that has a value; scenarios of several families count alike."""
    families = {cell.family for own in found.values() for cell in own} - {EVERYDAY.name}
    measure = next(each for each in measures_of(sorted(families)) if each.key == key)
    values = {}
    for condition, own in found.items():
        groups: dict[str, list[float]] = {}
        bounds: Bounds = measure.bounds
        for cell in _of_scope(own, scope):
            exact = within(of_family(measure, cell.family), cell.by_name)
            groups |= cell.by_scenario(exact)
            bounds = exact.bounds
        estimate = stats.clustered(groups, bounds, measure.is_number)
        if estimate.value is not None:
            values[condition] = estimate
    return values


def _judged(found: Found, judge: str, dimension: str, scope: str) -> dict[str, Estimate]:
    """Return a judge's mean score of a dimension, over agents, for each condition that it scored."""
    low, high = DIMENSIONS[dimension][:2] if dimension in DIMENSIONS else (None, None)
    bounds: Bounds = (None, None) if low is None or high is None else (float(low), float(high))
    values = {}
    for condition, own in found.items():
        groups: dict[str, list[float]] = {}
        for cell in _of_scope(own, scope):
            scores = [
                (row.episode_id, row.value)
                for row in cell.scores
                if (row.evaluator, row.name) == (_JUDGE + judge, dimension) and row.value is not None
            ]
            groups |= cell.grouped(scores)
        estimate = stats.clustered(groups, bounds)
        if estimate.value is not None:
            values[condition] = estimate
    return values


def histogram(found: Found) -> dict[str, list[int]]:
    """Return the number of conversations in each tenth in which the friend was first named, by condition."""
    counts = {}
    for condition, own in found.items():
        bars = [0] * BINS
        for cell in own:
            for row in cell.scores:
                if row.name == "first_mention" and row.value is not None:
                    bars[min(BINS - 1, int(row.value * BINS))] += 1
        if any(bars):
            counts[condition] = bars
    return counts
