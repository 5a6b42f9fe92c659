"""What participants of an experiment answered to a rubric, beside what judges answered about the same talks."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from localsim.annotation.measures import alpha, correlation
from localsim.store.database import Store
from localsim.store.queries import experiments as queries

Row = dict[str, Any]


def people_and_judges(store: Store, run_id: str) -> list[Row]:
    """Return a row for each rubric, dimension and judge; without a judge, `judge` and what follows from it are None.

    Columns: rubric, dimension, ratings and cannot_tell (answers of people who finished), alpha (Krippendorff's, of
    people who rated the same talk and agent), judge, both (talks and agents with a rating and a score), mean and score
    (of people and of the judge over these; over all ratings without a judge), rho and p (Spearman's correlation).
    """
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in queries.rubric_ratings(store, run_id):
        groups[row["rubric"], row["dimension"]].append(row)
    return [found for (rubric, dimension), rows in groups.items() for found in _of_dimension(rubric, dimension, rows)]


def _of_dimension(rubric: str, dimension: str, rows: Sequence[Row]) -> Iterable[Row]:
    answers = {(row["participant"], row["episode_id"], row["agent"]): row["rating"] for row in rows}
    units: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (_, episode, agent), rating in answers.items():
        if rating is not None:
            units[episode, agent].append(rating)
    given = sum(map(len, units.values()))
    people: Row = {
        "rubric": rubric, "dimension": dimension, "ratings": given, "cannot_tell": len(answers) - given,
        "alpha": alpha(list(units.values()), "interval")["alpha"],
    }  # fmt: skip
    for judge in dict.fromkeys(row["judge"] for row in rows if row["judge"] is not None):
        scores = {
            (row["episode_id"], row["agent"]): row["score"]
            for row in rows
            if row["judge"] == judge and row["score"] is not None
        }
        pairs = [(statistics.fmean(units[unit]), score) for unit, score in scores.items() if unit in units]
        found = correlation(pairs)
        means = [statistics.fmean(side) if pairs else None for side in zip(*pairs, strict=True)] or [None, None]
        yield {
            **people, "judge": judge, "both": len(pairs), "mean": means[0], "score": means[1], "rho": found["rho"],
            "p": found["p"],
        }  # fmt: skip
    if all(row["judge"] is None for row in rows):
        mean = statistics.fmean(value for own in units.values() for value in own) if given else None
        yield {**people, "judge": None, "both": 0, "mean": mean, "score": None, "rho": None, "p": None}
