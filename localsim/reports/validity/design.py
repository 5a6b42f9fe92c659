"""The design of a study from a pilot run: the power of numbers of scenarios and seeds to find a wanted difference."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from localsim import stats
from localsim.errors import InvalidInput
from localsim.reports.comparison import one_story, pilot
from localsim.reports.validity.findings import Role
from localsim.runs.plan import Outcome, outcomes_of
from localsim.store.database import Store
from localsim.store.queries.runs import run_row
from localsim.store.queries.stories import stories as stories_of

SCENARIOS = (6, 8, 12, 16, 24, 32, 45, 64, 90)
"""Numbers of scenarios in the table."""


@dataclass(frozen=True)
class Wanted:
    """The difference that a study is to find."""

    outcome: Outcome
    difference: float
    power: float
    seeds: Sequence[int]


@dataclass(frozen=True)
class Design:
    """A plan of a study for one family."""

    wanted: Wanted
    family: str
    pilot: stats.Spread | None
    role: Role
    """As what the pilot declared the outcome."""
    problem: str = ""
    """Why there is no plan; empty if there is one."""
    table: Mapping[int, Sequence[float]] = field(default_factory=dict)
    """Number of scenarios -> power with each number of seeds."""
    smallest: Sequence[int | None] = ()
    """The least number of scenarios with the wanted power, with each number of seeds; None if MOST do not suffice."""
    variants: bool = False
    """True if the pilot's scenarios are variants or castings of one."""

    def as_json(self) -> dict[str, Any]:
        """Return a row of `design --json`."""
        wanted, seeds = self.wanted, list(map(str, self.wanted.seeds))
        table = [{"scenarios": count, "power": dict(zip(seeds, row, strict=True))} for count, row in self.table.items()]
        named = {
            "measure": wanted.outcome.key,
            "contrast": wanted.outcome.contrast,
            "role": self.role,
            "variants": self.variants,
        }
        sizes = {"difference": wanted.difference, "wanted": wanted.power, "family": self.family}
        found = {"pilot": self.pilot and self.pilot._asdict(), "problem": self.problem, "table": table}
        return {
            **named,
            **sizes,
            **found,
            "smallest": dict(zip(seeds, self.smallest, strict=True)) if self.table else {},
        }


def design(
    store: Store, run_id: str, difference: float, key: str, contrast: str, seeds: Sequence[int], power: float
) -> list[Design]:
    """Return a plan for each family of a pilot run; an empty key or contrast is that of the primary outcome.

    Raises InvalidInput if the run has no such pairs, or if they vary in no family.
    """
    declared = outcomes_of(json.loads(run_row(store, run_id)["plan_json"]))
    outcome = Outcome(key or declared.primary.key, contrast or declared.primary.contrast)
    role: Role = "secondary" if outcome in declared.secondary else "exploratory"
    role = "primary" if outcome == declared.primary else role
    wanted = Wanted(outcome, difference, power, seeds)
    stories = stories_of(store, run_id)
    found = [
        replace(_of_family(family, groups, wanted, role), variants=one_story(groups, stories))
        for family, groups in pilot(store, run_id, *outcome).items()
    ]
    if not any(each.table for each in found):
        raise InvalidInput(
            f"a design needs differences that vary: {found[0].problem}",
            where=f"run {run_id}, {outcome.key}, {outcome.contrast}",
            hint="run a pilot of other scenarios, such as 12 with -n 2; where nobody succeeds, with easier checks or a "
            "larger model; or assume shares: localsim design --rates .1,.4",
        )
    return found


def assumed(first: float, second: float, seeds: Sequence[int], power: float) -> Design:
    """Return a plan for an outcome that is 0 or 1 if it has these rates in two modes, alike in all scenarios."""
    within = first * (1 - first) + second * (1 - second)
    spread = stats.Spread(0.0, within, 0, separated=True, whole=True)
    wanted = Wanted(Outcome("success_rate", "information"), round(abs(second - first), 6), power, seeds)
    return _planned(Design(wanted, "", spread, "exploratory"), spread)


def _of_family(family: str, differences: dict[str, list[float]], wanted: Wanted, role: Role) -> Design:
    spread = stats.spread_of(differences)
    if spread is None:
        return Design(wanted, family, None, role, "the pilot has one scenario")
    if spread.between + spread.within < 1e-12:
        problem = f"the pilot's {spread.scenarios} scenarios differ by the same amount"
        return Design(wanted, family, spread, role, problem)
    return _planned(Design(wanted, family, spread, role), spread)


def _planned(found: Design, spread: stats.Spread) -> Design:
    size, seeds = found.wanted.difference, found.wanted.seeds
    table = {count: [stats.power(spread, size, count, each) for each in seeds] for count in SCENARIOS}
    least = [stats.smallest(spread, size, each, found.wanted.power) for each in seeds]
    return replace(found, table=table, smallest=least)
