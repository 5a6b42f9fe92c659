"""How the agents of a scenario work together, in the words of a survey (Tran et al., arXiv 2501.06322).

Tags are derived from what the scenario file says, never from what an author claims.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from localsim.conversation.scenario import Scenario
from localsim.families.base import Family

Interaction = Literal["cooperation", "competition", "coopetition", ""]


@dataclass(frozen=True)
class Tags:
    """The tags of one scenario."""

    interaction: Interaction
    """Whether both win the same, one wins what the other loses, or something between; '' if nothing says it."""
    structure: Literal["peer-to-peer", "centralised", "distributed"]
    """Two equals, several with a moderator, or several equals."""
    protocol: str
    """The order in which agents act: the orders of the phases, `in_turn`, or `rules of the game`."""


def tags_of(scenario: Scenario, family: Family) -> Tags:
    """Return the tags of a scenario of a family."""
    moderated = any(phase.moderator for phase in scenario.phases)
    structure: Literal["peer-to-peer", "centralised", "distributed"] = "peer-to-peer"
    if moderated or len(scenario.agents) > 2:
        structure = "centralised" if moderated else "distributed"
    orders = dict.fromkeys(phase.order for phase in scenario.phases) or {"in_turn": None}
    protocol = "rules of the game" if family.rules is not None else ", ".join(orders)
    return Tags(_interaction(scenario, family), structure, protocol)


def _interaction(scenario: Scenario, family: Family) -> Interaction:
    table = scenario.game.get("public", {}).get("table")
    if isinstance(table, dict) and table and all(_is_pair(won) for won in table.values()):
        pairs = [tuple(won) for won in table.values()]
        if len({sum(pair) for pair in pairs}) == 1:
            return "competition"
        return "cooperation" if all(one == other for one, other in pairs) else "coopetition"
    declared: dict[str, Interaction] = {"cooperative": "cooperation", "competitive": "competition"}
    return declared.get(family.interests, "")


def _is_pair(won: object) -> bool:
    return isinstance(won, list | tuple) and len(won) == 2 and all(isinstance(each, int | float) for each in won)
