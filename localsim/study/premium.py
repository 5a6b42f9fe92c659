"""Null and premium: how much seeing every side changes a studied model, and how much it changes its constructed twin.

A premium is more success, or as much in fewer turns: who uses the other side needs to ask less. A difference is that of
two modes on the same scenario and seed. The third row of each family and measure is the twin's difference minus the
model's, scenario by scenario: what was built into the twin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from localsim import stats
from localsim.conversation.measures import Measure
from localsim.families import in_order
from localsim.families.base import SUCCESS
from localsim.reports.comparison import Unit, values_of
from localsim.reports.validity.findings import LEVEL, finding
from localsim.reports.validity.headline import AUTHORSHIP, INFORMATION, PEEKING
from localsim.runs.plan import CONTRASTS
from localsim.store.conditions import Condition
from localsim.store.database import Store

Row = dict[str, Any]
Values = dict[Unit, float]
TURNS = "turns"
MARGINS = {SUCCESS.key: 0.1, TURNS: 2.0, PEEKING: 0.1}
"""Key of each compared measure -> the margin within which a difference counts as none: a tenth of the range of success
and of a conversation's 20 turns. Peeking is 0 by chance and 1 if it is sure; its margin is a tenth of this distance.
"""
PRIMARY = (SUCCESS.key, TURNS)
"""Keys of the primary measures."""
BOTH = "twin - model"
"""Name of the difference of two differences."""


def premiums(store: Store, runs: Mapping[str, str]) -> list[Row]:
    """Return a row for each family, measure, contrast and model (or BOTH); `runs` are those of a model and of its twin,
    if it has one, by name.

    The changes of success and turns by information are primary. The change of success in one run is the declared
    outcome of this run, and its p stay uncorrected, as in the report of the run: `p_holm` is then p. The p of the other
    primary rows are corrected together (Holm), and those of all other rows together; the p of equivalence likewise.
    """
    found = []
    for family, measure, by_condition in values_of(store, list(runs.values())):
        if measure.key in MARGINS:
            for contrast in (INFORMATION, AUTHORSHIP):
                found += [
                    {"family": family, "contrast": contrast, **row}
                    for row in _rows(measure, CONTRASTS[contrast], by_condition, runs)
                ]
    for row in found:
        row["primary"] = row["contrast"] == INFORMATION and row["measure"] in PRIMARY
    _correct([row for row in found if row["primary"] and not _declared(row)])
    _correct([row for row in found if not row["primary"]])
    for row in found:
        row["verdict"] = verdict(row)
    order, measures = in_order(row["family"] for row in found), list(MARGINS)

    def place(row: Row) -> tuple[int, bool, int]:
        return order.index(row["family"]), not row["primary"], measures.index(row["measure"])

    return sorted(found, key=place)


def _declared(row: Row) -> bool:
    """Return True for the outcome that the plan of a run declares primary."""
    return bool(row["primary"]) and row["measure"] == SUCCESS.key and row["who"] != BOTH


def _correct(rows: list[Row]) -> None:
    """Correct the p of the differences together, and those of the equivalences together."""
    for tests in (rows, [row["equivalence"] for row in rows]):
        for test, p in zip(tests, stats.holm([test["p"] for test in tests]), strict=True):
            test["p_holm"] = p


def _rows(
    measure: Measure, modes: tuple[str, str], by_condition: Mapping[Condition, Values], runs: Mapping[str, str]
) -> Iterator[Row]:
    """Yield the difference of two modes in each run, and that of the differences if there are two runs."""
    changes: list[tuple[str, Values]] = []
    for name, run_id in runs.items():
        own = {each.name: each for each in by_condition if each.run_id == run_id}
        if own.keys() >= set(modes):
            first, second = (own[mode] for mode in modes)
            changes.append((name, _minus(by_condition[second], by_condition[first])))
    if len(changes) == 2:
        changes.append((BOTH, _minus(changes[1][1], changes[0][1])))
    for who, values in changes:
        bounds = measure.bounds if who != BOTH else _doubled(measure.bounds)
        groups = _by_scenario(values)
        result = stats.paired(groups, bounds, measure.is_number)
        if result is not None:
            margin = MARGINS[measure.key]
            equal = stats.equivalence(groups, margin, bounds, measure.is_number)
            told = {**equal._asdict(), "p_holm": equal.p, "p_least": _least(measure, groups, margin, bounds)}
            about = {"measure": measure.key, "heading": measure.heading, "who": who, "kind": measure.kind}
            yield {**about, **result._asdict(), "p_holm": result.p, "equivalence": told}


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


def _by_scenario(values: Values) -> dict[str, list[float]]:
    groups: dict[str, list[float]] = {}
    for unit, value in values.items():
        groups.setdefault(unit[0], []).append(value)
    return groups


def verdict(row: Row) -> str:
    """Return what the tests say of a difference: a change, null (less than the margin), or neither.

    Where no data of so many scenarios could show that a difference is less than the margin, it says so.
    """
    if finding(row, row["p_holm"]).verdict == "found":
        return "change"
    equal, scenarios = row["equivalence"], row["scenarios"]
    if scenarios == 1:
        return "1 scenario cannot exclude it"
    if equal["p_least"] is not None and equal["p_least"] > LEVEL:
        return f"{scenarios} scenarios cannot exclude it"
    return "null" if equal["p_holm"] is not None and equal["p_holm"] <= LEVEL else "not told"
