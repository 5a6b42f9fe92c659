"""What the prompt of an agent says about itself, and if a turn reads it out.

To answer with a fact from one's own list is the task, and to name one's age, job or goods in passing is talk. A turn
reads out if most of its words come, in the same order, from the goal, the profile or the wording of a prompt; or all
but all of them from the setting; or if it lists the traits of the own character.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

from localsim.conversation.scenario import Agent
from localsim.conversation.wording.paraphrases import WORDINGS
from localsim.evaluators.play.repeats import covered, runs, words_in

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
