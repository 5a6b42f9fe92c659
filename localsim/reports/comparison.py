"""Paired comparisons of modes on the same scenario and seed, within a run or between two.

Every difference has its number of pairs, an interval that treats the pairs of a scenario as a cluster, the paper's
paired t-test, an effect size, Holm's correction over all tests of a table, and the number of pairs that would be needed
to detect such a difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from localsim import stats
from localsim.conversation.episode import MODES
from localsim.conversation.measures import Measure
from localsim.families import EVERYDAY
from localsim.reports.measures import by_episode, measures_of, sided
from localsim.store.database import Store
from localsim.store.queries import reports as queries

Row = dict[str, Any]


def compare(store: Store, first_run: str, second_run: str | None = None) -> list[Row]:
    """Return rows of family, measure and two conditions: modes of one run, or the same mode in two runs."""
    runs = [first_run, second_run] if second_run else [first_run]
    found: list[Row] = []
    for family, measure, by_condition in _values(store, runs):
        conditions = sorted(by_condition, key=lambda one: (runs.index(one[0]), MODES.index(one[1]), one[2]))
        for one, other in combinations(conditions, 2):
            if second_run and one[1] != other[1]:
                continue
            result = stats.paired(_differences(by_condition[one], by_condition[other]))
            if result is not None:
                named = {"family": family, "measure": measure.key, "heading": measure.heading}
                found.append({**named, **_named(one, other, runs), **result._asdict()})
    for row, p in zip(found, stats.holm([row["p"] for row in found]), strict=True):
        row["p_holm"] = p
    return found


Condition = tuple[str, str, str]
"""Run, mode, model."""
Unit = tuple[str, int, int]
"""Scenario (by content), episode index and seed, which the episodes of a pair share."""


def _values(store: Store, runs: list[str]) -> Iterator[tuple[str, Measure, dict[Condition, dict[Unit, float]]]]:
    """Yield the values of each family and compared measure, by condition and unit; families by name."""
    scores = [row for run_id in runs for row in sided(store, run_id, queries.paired_scores(store, run_id))]
    episodes = {row["episode_id"]: row for row in scores}
    families = dict.fromkeys(row["family"] for row in scores)
    measures = measures_of((name for name in families if name), {row["evaluator"] for row in scores})
    for family in sorted(families, key=lambda name: name or EVERYDAY.name):
        own = [row for row in scores if row["family"] == family]
        for measure in measures:
            by_condition: dict[Condition, dict[Unit, float]] = defaultdict(dict)
            for episode_id, value in by_episode(measure, own).items() if measure.compared else ():
                row = episodes[episode_id]
                unit = (row["scenario_hash"], row["episode_index"], row["seed"])
                by_condition[row["run_id"], row["mode"], row["model"]][unit] = value
            yield family or EVERYDAY.name, measure, by_condition


def _differences(one: dict[Unit, float], other: dict[Unit, float]) -> dict[str, list[float]]:
    """Return scenario -> second minus first, for every unit that both have."""
    found: dict[str, list[float]] = defaultdict(list)
    for unit in sorted(one.keys() & other.keys()):
        found[unit[0]].append(other[unit] - one[unit])
    return found


def _named(one: Condition, other: Condition, runs: list[str]) -> Row:
    """Return the names of two conditions, reduced to their differences."""
    parts = [number for number in range(3) if one[number] != other[number]]
    if len(runs) > 1:
        parts = [0, 1]
    return {
        "first": " ".join(one[number] for number in parts),
        "second": " ".join(other[number] for number in parts),
    }
