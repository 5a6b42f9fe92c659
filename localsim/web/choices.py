"""The scenarios that a page offers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from localsim.conversation.scenario import Scenario
from localsim.families import EVERYDAY, family_of, in_order, title_of
from localsim.scenarios.find import shipped


@dataclass(frozen=True)
class Group:
    """The shipped scenarios of one family."""

    title: str
    scenarios: Sequence[Scenario]
    taught: bool
    """True if the models that localsim ships were taught its task; they play the others poorly."""


def by_family(without: Collection[str] = ()) -> list[Group]:
    """The scenarios that ship, by family; those that models were taught come first."""
    every = [loaded.scenario for name, loaded in shipped().items() if name not in without]
    groups = []
    for name in in_order(scenario.family or EVERYDAY.name for scenario in every):
        family = family_of(name)
        members = [scenario for scenario in every if (scenario.family or EVERYDAY.name) == name]
        groups.append(Group(family.invitation or title_of(family), members, family.taught))
    return sorted(groups, key=lambda group: not group.taught)
