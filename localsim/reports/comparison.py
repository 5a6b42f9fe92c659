"""Modes against each other on the same scenario and seed, within a run or between two.

Every difference comes with its number of pairs, an interval that respects that pairs of a scenario belong together,
the paper's paired t-test beside it, its size, Holm's correction over all tests of a table, and how many pairs would
be needed to see such a difference.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import Any

from localsim import stats
from localsim.conversation.episode import MODES
from localsim.conversation.measures import Measure
from localsim.reports.measures import measures_of
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.store.queries.scoring import families_of

Row = dict[str, Any]


def compare(store: Store, first_run: str, second_run: str | None = None) -> list[Row]:
    """Rows of family, measure and two conditions: modes of one run, or the same mode in two runs."""
    runs = [first_run, second_run] if second_run else [first_run]
    values = _values(store, runs)
    order = [measure.score for measure in _measures(store, runs)]
    found: list[Row] = []
    for (family, measure), by_condition in sorted(
        values.items(), key=lambda item: (item[0][0], order.index(item[0][1]))
    ):
        conditions = sorted(by_condition, key=lambda one: (runs.index(one[0]), MODES.index(one[1]), one[2]))
        for one, other in combinations(conditions, 2):
            if second_run and one[1] != other[1]:
                continue
            result = stats.paired(_differences(by_condition[one], by_condition[other]))
            if result is not None:
                found.append({"family": family, "measure": measure, **_named(one, other, runs), **result._asdict()})
    for row, p in zip(found, stats.holm([row["p"] for row in found]), strict=True):
        row["p_holm"] = p
    return found


Condition = tuple[str, str, str]
"""Run, mode, model."""
Unit = tuple[str, int, int]
"""Scenario (by content), episode index and seed: what a pair shares."""


def _values(store: Store, runs: list[str]) -> dict[tuple[str, str], dict[Condition, dict[Unit, float]]]:
    rows = queries.paired_scores(store, runs, [measure.score for measure in _measures(store, runs)])
    found: dict[tuple[str, str], dict[Condition, dict[Unit, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        unit = (row["scenario_hash"], row["episode_index"], row["seed"])
        found[row["family"], row["name"]][row["run_id"], row["mode"], row["model"]][unit] = float(row["value"])
    return found


def _measures(store: Store, runs: list[str]) -> list[Measure]:
    """The measures that are tested, in the order of a report."""
    families = [family for run_id in runs for family in families_of(store, run_id) if family]
    return [measure for measure in measures_of(families) if measure.compared]


def _differences(one: dict[Unit, float], other: dict[Unit, float]) -> dict[str, list[float]]:
    """By scenario, second minus first of every unit that both have."""
    found: dict[str, list[float]] = defaultdict(list)
    for unit in sorted(one.keys() & other.keys()):
        found[unit[0]].append(other[unit] - one[unit])
    return found


def _named(one: Condition, other: Condition, runs: list[str]) -> Row:
    """What tells two conditions apart, and nothing more."""
    parts = [number for number in range(3) if one[number] != other[number]]
    if len(runs) > 1:
        parts = [0, 1]
    return {
        "first": " ".join(one[number] for number in parts),
        "second": " ".join(other[number] for number in parts),
    }
