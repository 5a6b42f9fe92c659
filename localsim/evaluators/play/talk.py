"""A talk as the measure of play reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache, cached_property

from localsim.conversation.beginning import own_from
from localsim.conversation.scenario import Agent, AnswerKey, Scenario
from localsim.conversation.transcript import Transcript, Turn
from localsim.conversation.wording.paraphrases import WORDINGS
from localsim.evaluators.play.phrases import is_polite
from localsim.evaluators.play.repeats import Utterance, covered, runs, utterance, words_in
from localsim.families import family_of
from localsim.families.language import language_of

RUN = 4
"""Words in a row that are the same: shorter ones meet by chance."""
LEAST = 6
"""Fewest words of a turn in such runs."""
MOST_OF = 0.5
"""Least share of a turn's words in runs from goal, profile and wording."""
ALL_OF = 0.8
"""Least share in runs from the setting, whose words are also those of the talk: what is sold, where people meet."""
TRAITS = 0.75
"""Least share of the words of a character, such as "Curious and direct; values honesty", that one turn lists."""
_PERSON = frozenset("i me my mine myself you your yours yourself".split())
_PLAIN = frozenset("a an and the of to is are be values value but or who with".split())


@dataclass(frozen=True)
class Instructions:
    """What an agent is told about itself, as runs of words."""

    own: frozenset[tuple[str, ...]]
    setting: frozenset[tuple[str, ...]]
    traits: tuple[frozenset[str], ...]
    """The words of each description of its character."""

    def read_out_in(self, text: str) -> bool:
        """Return True if a text reads them out."""
        words = _words(text)
        own, setting = covered(words, self.own, RUN), covered(words, self.own | self.setting, RUN)
        if own >= max(LEAST, MOST_OF * len(words)) or setting >= max(LEAST, ALL_OF * len(words)):
            return True
        said = frozenset(words)
        return any(len(traits & said) >= TRAITS * len(traits) for traits in self.traits)


def instructions(agent: Agent, setting: str) -> Instructions:
    """Return what an agent is told about itself."""
    profile = agent.profile
    about = [text for text in profile.model_dump().values() if text]
    whole = ", ".join(f"{text} years old" if text.isdigit() else text for text in about)
    traits = (profile.personality_and_values, profile.decision_making_style)
    bags = (frozenset(_words(text)) - _PLAIN for text in traits if text)
    own = [agent.goal, whole, *([agent.secret] if agent.secret else [])]
    return Instructions(_runs(own) | _wording(), _runs([setting]), tuple(bag for bag in bags if len(bag) > 2))


def _words(text: str) -> list[str]:
    """Return the words of a text without endings in s, and with one word for "I" and "you"."""
    return ["*" if word in _PERSON else word.rstrip("s") if len(word) > 3 else word for word in words_in(text)]


def _runs(texts: list[str]) -> frozenset[tuple[str, ...]]:
    return frozenset().union(*(runs(_words(text), RUN) for text in texts))


@cache
def _wording() -> frozenset[tuple[str, ...]]:
    """Return the runs of words in the sentences of all wordings of prompts."""
    sentences: list[str] = []
    for wording in WORDINGS:
        for field in fields(wording):
            value = getattr(wording, field.name)
            sentences += [value] if isinstance(value, str) else value if isinstance(value, tuple) else value.values()
    return _runs(sentences)


ENGLISH = "en"


@dataclass(frozen=True)
class PlayedText:
    """A transcript with its scenario."""

    transcript: Transcript
    scenario: Scenario
    answer: AnswerKey

    def own(self, turns: Iterable[Turn]) -> tuple[Turn, ...]:
        """Return those of some turns that were not given: given ones are heard, and are nobody's faults."""
        start = own_from(self.scenario, self.transcript)
        return tuple(turn for turn in turns if turn.index >= start)

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
