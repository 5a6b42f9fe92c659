"""First mentions of private facts: where a term of a fact is first uttered. By wording alone, no model needed.

A mention is not yet a disclosure (a name may be guessed, a price denied); it is what a reader looks for first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Turn
from localsim.families.mutual_friends.names import mentions
from localsim.families.prices import find_prices


@dataclass(frozen=True)
class Mention:
    """The first utterance of a term of a fact."""

    fact_id: str
    owners: tuple[str, ...]
    """Agents who hold a fact with this term."""
    term: str
    turn: int
    speaker: str

    @property
    def by_owner(self) -> bool:
        """Whether the speaker holds the fact; if not, it is guessed or known from elsewhere."""
        return self.speaker in self.owners


def first_mentions(turns: Sequence[Turn], scenario: Scenario) -> list[Mention]:
    """First mention of each term that is uttered, in order of turns."""
    owners: dict[str, list[str]] = {}
    facts: dict[str, str] = {}
    for agent in scenario.agents:
        for fact in agent.facts:
            for term in fact.terms:
                owners.setdefault(term, []).append(agent.name)
                facts.setdefault(term, fact.id)
    names = scenario.family == "mutual_friends"
    found = []
    for term, holders in owners.items():
        turn = next((turn for turn in turns if utters(turn.action.text, term, is_name=names)), None)
        if turn is not None:
            found.append(Mention(facts[term], tuple(holders), term, turn.index, turn.speaker))
    return sorted(found, key=lambda mention: mention.turn)


def utters(text: str, term: str, *, is_name: bool = False) -> bool:
    """Whether `text` holds a term: an amount of dollars in any spelling, a person's name, or whole words."""
    if re.fullmatch(r"\$\d+(\.\d+)?", term):
        return any(price.value == float(term[1:]) for price in find_prices(text))
    if is_name:
        return bool(mentions(text, term))
    return re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text, re.IGNORECASE) is not None
