"""A talk as the measure of play reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from localsim.conversation.scenario import AnswerKey, Scenario
from localsim.conversation.transcript import Transcript, Turn
from localsim.evaluators.play.instructions import Instructions, instructions
from localsim.evaluators.play.language import language_of
from localsim.evaluators.play.phrases import is_polite
from localsim.evaluators.play.repeats import Utterance, utterance, words_in
from localsim.families import family_of

ENGLISH = "en"


@dataclass(frozen=True)
class PlayedText:
    """A transcript with its scenario."""

    transcript: Transcript
    scenario: Scenario
    answer: AnswerKey

    @cached_property
    def said(self) -> tuple[Turn, ...]:
        """The turns with speech."""
        return tuple(turn for turn in self.transcript.turns if turn.said)

    @cached_property
    def utterances(self) -> tuple[Utterance, ...]:
        """The words of the turns with speech."""
        return tuple(utterance(turn, self.scenario.names, self.known) for turn in self.said)

    def is_polite(self, turn: Turn) -> bool:
        """Return True if a turn holds nothing but polite phrases; False in other languages than English."""
        return self.is_english and is_polite(turn.action.text, self.names)

    @cached_property
    def known(self) -> frozenset[str]:
        """The words of private facts that are not in all of them: what a question about one of them is about."""
        facts = [set(words_in(fact.text)) for agent in self.scenario.agents for fact in agent.facts]
        return frozenset(set().union(*facts)) - facts[0].intersection(*facts) if facts else frozenset()

    @cached_property
    def names(self) -> frozenset[str]:
        """The words of the agents' names, in lower case."""
        return frozenset(word for name in self.scenario.names for word in words_in(name))

    @cached_property
    def is_english(self) -> bool:
        """True if the scenario is in English, so that English phrases can be looked for."""
        return language_of(self.scenario) == ENGLISH

    @cached_property
    def sides(self) -> Mapping[str, str]:
        """The side of each agent; empty if the family has no sides."""
        family = family_of(self.scenario.family)
        sides = {name: family.side(name, self.answer) for name in self.scenario.names}
        return sides if len(set(sides.values())) > 1 else {}

    @cached_property
    def people(self) -> frozenset[str]:
        """The names of the agents, and of the people whom private facts are about."""
        terms = {term for agent in self.scenario.agents for fact in agent.facts for term in fact.terms}
        return frozenset(self.scenario.names) | {term for term in terms if term.istitle() and " " not in term}

    @cached_property
    def instructions(self) -> Mapping[str, Instructions]:
        """What the prompt of each agent says about itself, by name."""
        return {agent.name: instructions(agent, self.scenario.setting) for agent in self.scenario.agents}
