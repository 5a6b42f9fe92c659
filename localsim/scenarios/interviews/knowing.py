"""Items about who knows what at the end of a stored conversation.

What is right follows from the readers of each turn and the terms that the author gave each fact: somebody knows a fact
who holds it, or could read a turn that utters one of its terms. The leakage detector has no part in it. Each question
is asked in eight wordings (after PHAnToM, arXiv 2403.02246, which measures theory of mind under personas), so that the
variance over wordings can be told from that over people.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from localsim.conversation.scenario import Agent, Fact, Scenario
from localsim.conversation.transcript import Transcript, Turn
from localsim.families import family_of
from localsim.families.base import listed
from localsim.families.interviews.items import Item

WORDINGS = (
    "Does {who} know this at the end? {fact}",
    "After this conversation, has {who} learned the following? {fact}",
    "Could {who} tell a friend this now? {fact}",
    "Is {who} informed of this when they part? {fact}",
    "Somebody asks {who} about it afterwards. Does {who} know this? {fact}",
    "Is this among what {who} knows when the talk is over? {fact}",
    "Is {who} aware of this by the last line? {fact}",
    "Has {who} got to know this in one way or another? {fact}",
)
YES, NO = "yes", "no"
_ROOM = 3500
"""Most characters of a conversation that is asked about."""


@dataclass(frozen=True)
class SourceTalk:
    """A stored conversation."""

    episode_id: str
    scenario: Scenario
    transcript: Transcript


@dataclass(frozen=True)
class Known:
    """Whether somebody knows a fact of another at the end, and from which turn on."""

    talk: SourceTalk
    fact: Fact
    owner: str
    who: str
    turn: int | None
    """The first turn that let them know; None if none did."""
    holds: bool
    """True if they hold the same fact themselves."""

    @property
    def yes(self) -> bool:
        """True if they know it at the end."""
        return self.holds or self.turn is not None


def known_in(talk: SourceTalk) -> Iterator[Known]:
    """Yield, for each fact with terms and each agent who does not own it, whether this agent knows it at the end."""
    for owner in talk.scenario.agents:
        for fact in owner.facts:
            for other in talk.scenario.agents if fact.terms else ():
                if other.name != owner.name:
                    turn = next((turn.index for turn in talk.transcript.turns if _tells(talk, turn, other, fact)), None)
                    yield Known(talk, fact, owner.name, other.name, turn, _holds(other, fact))


def _holds(agent: Agent, fact: Fact) -> bool:
    return any(set(own.terms) & set(fact.terms) for own in agent.facts)


def _tells(talk: SourceTalk, turn: Turn, reader: Agent, fact: Fact) -> bool:
    """Return True if a turn that an agent can read utters a term of a fact."""
    if turn.readers is not None and reader.name not in turn.readers:
        return False
    family = family_of(talk.scenario.family)
    words = " ".join([turn.action.text, *(turn.action.values or ())] if not turn.told else [turn.action.text])
    return any(family.utters(words, term) for term in fact.terms)


def who_knows(talks: Sequence[SourceTalk], seed: int, counts: Mapping[str, int]) -> tuple[Item, ...]:
    """Return questions about `facts` pairs of a fact and an agent, half of them known if there are so many, in all
    wordings. Talks that are too long to be quoted whole are left out.
    """
    rng = random.Random(f"who_knows/{seed}")
    pairs = [each for talk in talks if len(_quoted(talk)) <= _ROOM for each in known_in(talk)]
    rng.shuffle(pairs)
    yes, no = ([each for each in pairs if each.yes == wanted] for wanted in (True, False))
    wanted = max(0, int(counts.get("facts", 6)))
    half = min(len(yes), max(wanted // 2, wanted - len(no)))
    chosen = sorted([*yes[:half], *no[: wanted - half]], key=lambda each: each.talk.episode_id)
    return tuple(
        _item(each, number, wording) for number, each in enumerate(chosen, 1) for wording in range(len(WORDINGS))
    )


def _item(known: Known, number: int, wording: int) -> Item:
    asked = WORDINGS[wording].format(who=known.who, fact=known.fact.text)
    return Item(
        id=f"pair_{number}_{wording + 1}",
        ask=f"Read this conversation. {_quoted(known.talk)} Here it ends. {asked}",
        options=(YES, NO),
        gold=(YES if known.yes else NO,),
        about=f"wording_{wording + 1}",
    )


def _quoted(talk: SourceTalk) -> str:
    """Return the lines of a conversation as one text; a line for some readers says who they are."""
    lines = []
    for turn in talk.transcript.turns:
        only = f" (only {listed(turn.readers)} can read this)" if turn.readers is not None and not turn.told else ""
        lines.append(f"{turn.line}{only}")
    return " / ".join(lines)
