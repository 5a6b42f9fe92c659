"""First mentions of private facts: the first turn that utters a term of a fact, judged by wording alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Turn
from localsim.families import family_of


@dataclass(frozen=True)
class Mention:
    """The first utterance of a term of a fact."""

    fact_id: str
    owners: tuple[str, ...]
    """Agents who hold a fact with this term."""
    term: str
    turn: int
    speaker: str
    start: int
    end: int
    """Place of the term in the text of the turn."""

    @property
    def by_owner(self) -> bool:
        """True if the speaker holds the fact; otherwise the speaker guessed it or has it from elsewhere."""
        return self.speaker in self.owners


def first_mentions(turns: Sequence[Turn], scenario: Scenario) -> list[Mention]:
    """Return the first mention of each uttered term, in order of turns."""
    owners: dict[str, list[str]] = {}
    facts: dict[str, str] = {}
    for agent in scenario.agents:
        for fact in agent.facts:
            for term in fact.terms:
                owners.setdefault(term, []).append(agent.name)
                facts.setdefault(term, fact.id)
    family = family_of(scenario.family)
    mentions = []
    for term, holders in owners.items():
        for turn in (turn for turn in turns if not turn.told):
            span = family.span(turn.action.text, term)
            if span is not None:
                mentions.append(Mention(facts[term], tuple(holders), term, turn.index, turn.speaker, *span))
                break
    return sorted(mentions, key=lambda mention: mention.turn)
