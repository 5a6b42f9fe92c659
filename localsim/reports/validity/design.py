"""The design of a study from a pilot run: the power of numbers of scenarios and seeds to find a wanted difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from localsim import stats
from localsim.errors import InvalidInput
from localsim.reports.comparison import pilot
from localsim.store.database import Store

Row = dict[str, Any]

SCENARIOS = (6, 8, 12, 16, 24, 32, 45, 64, 90)
"""Numbers of scenarios in the table."""


def design(
    store: Store, run_id: str, difference: float, key: str, contrast: str, seeds: Sequence[int], wanted: float
) -> list[Row]:
    """Return a row for each family of a pilot run: its variances, power by scenarios and seeds, and least scenarios.

    Raises InvalidInput if the run has no such pairs, or if they vary in no family.
    """
    found = [
        _row(family, differences, difference, seeds, wanted)
        for family, differences in pilot(store, run_id, key, contrast).items()
    ]
    if not any(row["table"] for row in found):
        raise InvalidInput(
            f"a design needs differences that vary: {found[0]['problem']}",
            where=f"run {run_id}, {key}, {contrast}",
            hint="run a pilot with more scenarios, such as 12 with -n 2",
        )
    named = {"measure": key, "contrast": contrast, "difference": difference, "wanted": wanted}
    return [{**named, **row} for row in found]


def _row(
    family: str, differences: dict[str, list[float]], difference: float, seeds: Sequence[int], wanted: float
) -> Row:
    spread = stats.spread_of(differences)
    row: Row = {"family": family, "pilot": None, "problem": "", "table": [], "smallest": {}}
    if spread is None:
        return {**row, "problem": "the pilot has one scenario"}
    row["pilot"] = spread._asdict()
    if spread.between + spread.within < 1e-12:
        return {**row, "problem": f"the pilot's {spread.scenarios} scenarios differ by the same amount"}
    row["table"] = [
        {"scenarios": count, "power": {str(each): stats.power(spread, difference, count, each) for each in seeds}}
        for count in SCENARIOS
    ]
    row["smallest"] = {str(each): stats.smallest(spread, difference, each, wanted) for each in seeds}
    return row
