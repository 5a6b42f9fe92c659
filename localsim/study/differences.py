"""Paired differences of a study, each with its test: contrasts of the arms, and null and gain.

Null and gain tell how much seeing every side changes a studied model, and how much it changes its constructed twin.
A gain is more success, or as much in fewer turns: who uses the other side needs to ask less. A difference is that of
two modes on the same scenario and seed. The third row of each family and measure is the twin's difference minus the
model's, scenario by scenario: what was built into the twin.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from localsim import stats
from localsim.conversation.measures import Measure
from localsim.families import in_order
from localsim.families.base import SUCCESS
from localsim.reports.comparison import Unit, differences_of, values_of
from localsim.reports.validity.findings import LEVEL, Difference, finding
from localsim.reports.validity.headline import AUTHORSHIP, INFORMATION, LENGTH, PEEKING
from localsim.runs.plan import CONTRASTS
from localsim.store.conditions import Condition
from localsim.store.database import Store
from localsim.study.design import ARMS, FINE_TUNED, SOLVABLE

Values = dict[Unit, float]
Tested = TypeVar("Tested", bound=Difference)
EVERY = "all tasks"
"""Task of the rows over all scenarios."""
CAUSES = {
    ("agents", FINE_TUNED): "learning from scripts (agents-ft)",
    ("agents", "agents-ft-agents"): "learning from agents' talks (agents-ft-agents)",
    ("agents", "agents-ft-half"): "learning from scripts, half of those with untold facts (agents-ft-half)",
    ("agents", "agents-ft-clean"): "learning from scripts without untold facts (agents-ft-clean)",
    ("agents-ft-agents", FINE_TUNED): "scripts instead of agents' talks",
    ("agents-ft-clean", FINE_TUNED): "scripts with untold facts beside those without",
}
"""Pairs of conditions that a study compares beside the modes -> the cause that tells them apart."""
assert {first for _, first in CAUSES} == {arm.name for arm in ARMS}


@dataclass(frozen=True)
class Contrast(Difference):
    """The second of two conditions minus the first, in one task or over all."""

    task: str
    first: str
    second: str
    by_construction: bool = False


def contrasts(store: Store, conditions: Sequence[Condition], task_of: Mapping[str, str]) -> list[Contrast]:
    """Return the contrasts of CAUSES in every family, task and compared measure; `task_of` is keyed by scenario.

    Success over all tasks comes first; its p are corrected together (Holm), and those of all other rows together.
    """
    by_label = {condition.label: condition for condition in conditions}
    runs = list(dict.fromkeys(condition.run_id for condition in conditions))
    found = [
        contrast
        for family, measure, values in values_of(store, runs)
        if "agents" not in measure.structural_zero
        for pair in CAUSES
        if by_label.keys() >= set(pair)
        for contrast in _by_task(family, measure, pair, [values[by_label[label]] for label in pair], task_of)
    ]
    tested = _tested(found, [each.primary for each in found])
    return sorted(tested, key=lambda each: not each.primary)


def corrected(p: Sequence[float | None], groups: Sequence[object]) -> list[float | None]:
    """Return p-values after Holm's correction of each group, in their order."""
    found = list(p)
    for group in set(groups):
        places = [place for place, own in enumerate(groups) if own == group]
        for place, value in zip(places, stats.holm([p[place] for place in places]), strict=True):
            found[place] = value
    return found


def _tested(found: Sequence[Tested], groups: Sequence[object]) -> list[Tested]:
    """Return differences with their p corrected in each group; all of a study are declared, in its design."""
    p = [each.test.p for each in found]
    sizes = Counter(group for group, own in zip(groups, p, strict=True) if own is not None)
    return [
        replace(each, p_holm=own, tests=sizes[group], secondary=not each.primary)
        for each, own, group in zip(found, corrected(p, groups), groups, strict=True)
    ]


def _by_task(
    family: str, measure: Measure, pair: tuple[str, str], values: Sequence[Values], task_of: Mapping[str, str]
) -> Iterator[Contrast]:
    """Yield the contrast of a pair over all tasks and within each."""
    parts: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for scenario, own in differences_of(*values).items():
        parts[EVERY][scenario] = parts[task_of[scenario]][scenario] = own
    for task in tasks_in_order(task for task in parts if task != EVERY):
        result = stats.paired(parts[task], measure.bounds, measure.is_number)
        if result is not None:
            primary = measure.key == SUCCESS.key and task == EVERY
            yield Contrast(family, measure, result, primary, task, *pair)


def tasks_in_order(names: Iterable[str]) -> list[str]:
    """Return tasks as in tables: all together and, if there are several, those with a solution, then the others."""
    several = sorted(set(names), key=lambda name: (name != SOLVABLE, name))
    return [EVERY, *(several if len(several) > 1 else ())]


# ---- null and gain -------------------------------------------------------------------------------------------------

MARGINS = {SUCCESS.key: 0.1, LENGTH: 2.0, PEEKING: 0.1}
"""Key of each compared measure -> the margin within which a difference counts as none: a tenth of the range of success
and of a conversation's 20 turns. Peeking is 0 by chance and 1 if it is sure; its margin is a tenth of this distance.
"""
PRIMARY = (SUCCESS.key, LENGTH)
"""Keys of the primary measures."""
BOTH = "twin - model"
"""Name of the difference of two differences."""


@dataclass(frozen=True)
class Equivalence:
    """The test that a difference is within a margin (`stats.Equivalence`)."""

    margin: float
    p: float | None
    low: float | None
    high: float | None
    p_least: float | None
    """The least p that so many scenarios can give."""
    p_holm: float | None = None


@dataclass(frozen=True)
class Premium(Difference):
    """What information or authorship changed in a model, in its twin, or in the twin more than in the model (BOTH)."""

    contrast: str
    who: str
    equivalence: Equivalence
    verdict: str = ""

    @property
    def declared(self) -> bool:
        """True for the outcome that the plan of a run declares primary."""
        return self.primary and self.measure.key == SUCCESS.key and self.who != BOTH


def premiums(store: Store, runs: Mapping[str, str]) -> list[Premium]:
    """Return the gain of each family, measure, contrast and model (or BOTH); `runs` are those of a model and of its
    twin, if it has one, by name.

    The changes of success and turns by information are primary. The change of success in one run is the declared
    outcome of this run, and its p stay uncorrected, as in the report of the run: `p_holm` is then p. The p of the other
    primary rows are corrected together (Holm), and those of all other rows together; the p of equivalence likewise.
    """
    found = [
        premium
        for family, measure, by_condition in values_of(store, list(runs.values()))
        if measure.key in MARGINS
        for contrast in (INFORMATION, AUTHORSHIP)
        for premium in _of_contrast(family, measure, contrast, by_condition, runs)
    ]
    groups = [(each.primary, place if each.declared else None) for place, each in enumerate(found)]
    equal = corrected([each.equivalence.p for each in found], groups)
    tested = [
        replace(each, equivalence=replace(each.equivalence, p_holm=p))
        for each, p in zip(_tested(found, groups), equal, strict=True)
    ]
    order, measures = in_order(each.family for each in found), list(MARGINS)
    return sorted(
        (replace(each, verdict=_verdict(each)) for each in tested),
        key=lambda each: (order.index(each.family), not each.primary, measures.index(each.measure.key)),
    )


def _of_contrast(
    family: str, measure: Measure, contrast: str, by_condition: Mapping[Condition, Values], runs: Mapping[str, str]
) -> Iterator[Premium]:
    """Yield the difference of two modes in each run, and that of the differences if there are two runs."""
    modes = CONTRASTS[contrast]
    changes: list[tuple[str, Values]] = []
    for name, run_id in runs.items():
        own = {each.name: each for each in by_condition if each.run_id == run_id}
        if own.keys() >= set(modes):
            first, second = (own[mode] for mode in modes)
            changes.append((name, _minus(by_condition[second], by_condition[first])))
    if len(changes) == 2:
        changes.append((BOTH, _minus(changes[1][1], changes[0][1])))
    margin, primary = MARGINS[measure.key], contrast == INFORMATION and measure.key in PRIMARY
    for who, values in changes:
        bounds = measure.bounds if who != BOTH else _doubled(measure.bounds)
        groups = stats.grouped((unit[0], value) for unit, value in values.items())
        result = stats.paired(groups, bounds, measure.is_number)
        if result is not None:
            equal = stats.equivalence(groups, margin, bounds, measure.is_number)
            told = Equivalence(*equal, _least(measure, groups, margin, bounds))
            yield Premium(family, measure, result, primary, contrast, who, told)


def _least(measure: Measure, groups: Mapping[str, object], margin: float, bounds: stats.Bounds) -> float | None:
    """Return the least p of equivalence with so many scenarios: that of a share whose differences are all 0.

    It is above .05 if few scenarios meet wide bounds. The p of a number has no such limit: 0.
    """
    if measure.is_number:
        return 0.0 if len(groups) > 1 else None
    return stats.equivalence({scenario: [0.0] for scenario in groups}, margin, bounds).p


def _minus(one: Values, other: Values) -> Values:
    return {unit: one[unit] - other[unit] for unit in sorted(one.keys() & other.keys())}


def _doubled(bounds: stats.Bounds) -> stats.Bounds:
    """Return bounds whose differences are as wide as differences of differences."""
    low, high = bounds
    return (None, None) if low is None or high is None else (2 * low, 2 * high)


def _verdict(premium: Premium) -> str:
    """Return what the tests say of a difference: a change, null (less than the margin), or neither.

    Where no data of so many scenarios could show that a difference is less than the margin, it says so.
    """
    if finding(premium).verdict == "found":
        return "change"
    equal, scenarios = premium.equivalence, premium.test.scenarios
    if scenarios == 1:
        return "1 scenario cannot exclude it"
    if equal.p_least is not None and equal.p_least > LEVEL:
        return f"{scenarios} scenarios cannot exclude it"
    return "null" if equal.p_holm is not None and equal.p_holm <= LEVEL else "not told"
