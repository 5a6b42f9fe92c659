"""Items about the end of a stored conversation: who knows a fact, who can answer, who thinks that another one knows it.

What is right follows from the readers of each turn and the terms that the author gave each fact: somebody knows a fact
who holds it, or could read a turn that utters one of its terms. Somebody can tell that another one knows it who could
read such a turn together with that one, or that one's own words. The leakage detector has no part in it. Who knows what
is asked in eight wordings, so that the variance over wordings can be told from that over people. The three tasks are
those of PHAnToM (arXiv 2403.02246), which measures theory of mind under personas: information access, answerability,
belief.
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
ANSWERS = 'Somebody asks {who} whether this is true: "{fact}" Can {who} give the right answer?'
THINKS = "Can {by} tell from what {by} has read that {who} knows this at the end? {fact}"
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

    def thought_by(self, other: Agent) -> bool:
        """True if another agent could see that they know it."""
        agent = self.talk.scenario.agent(self.who)
        return any(
            _tells(self.talk, turn, agent, self.fact) and _tells(self.talk, turn, other, self.fact)
            for turn in self.talk.transcript.turns
        )


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
    """Return questions about `facts` pairs of a fact and an agent in all wordings, `answers` about who can answer, and
    `beliefs` about who saw that another one knows; half of each are yes if there are so many. Talks that are too long
    to be quoted whole are left out.
    """
    pairs = [each for talk in talks if len(_quoted(talk)) <= _ROOM for each in known_in(talk)]
    known = [(each, each.yes, "") for each in pairs]
    seen = [
        (each, each.thought_by(other), other.name)
        for each in pairs
        for other in each.talk.scenario.agents
        if other.name != each.who
    ]
    found = []
    for number, (each, yes, _) in enumerate(_half(known, f"who_knows/{seed}", counts.get("facts", 6)), 1):
        for place, wording in enumerate(WORDINGS, 1):
            found.append(_item(f"pair_{number}_{place}", wording, each, yes, about=f"wording_{place}"))
    for number, (each, yes, _) in enumerate(_half(known, f"answers/{seed}", counts.get("answers", 0)), 1):
        found.append(_item(f"answer_{number}", ANSWERS, each, yes, dimension="answerability"))
    for number, (each, yes, by) in enumerate(_half(seen, f"beliefs/{seed}", counts.get("beliefs", 0)), 1):
        found.append(_item(f"belief_{number}", THINKS, each, yes, by, dimension="belief"))
    return tuple(found)


_Asked = tuple[Known, bool, str]
"""What is asked, whether yes is right, and whose belief it is about."""


def _half(found: Sequence[_Asked], seed: str, count: int) -> list[_Asked]:
    """Return so many of them, drawn from a seed, half of them with yes if there are so many, by conversation."""
    drawn, wanted = random.Random(seed).sample(found, len(found)), max(0, int(count))
    yes, no = ([each for each in drawn if each[1] == way] for way in (True, False))
    half = min(len(yes), max(wanted // 2, wanted - len(no)))
    return sorted([*yes[:half], *no[: wanted - half]], key=lambda each: each[0].talk.episode_id)


def _item(
    name: str,
    wording: str,
    known: Known,
    yes: bool,
    by: str = "",
    *,
    about: str | None = None,
    dimension: str | None = None,
) -> Item:
    """Return a question `about` a wording, or with the `dimension` of a task that has one wording."""
    asked = wording.format(who=known.who, fact=known.fact.text, by=by)
    return Item(
        id=name,
        ask=f"Read this conversation. {_quoted(known.talk)} Here it ends. {asked}",
        options=(YES, NO),
        gold=(YES if yes else NO,),
        about=about,
        dimension=dimension,
    )


def _quoted(talk: SourceTalk) -> str:
    """Return the lines of a conversation as one text; a line for some readers says who they are."""
    lines = []
    for turn in talk.transcript.turns:
        only = f" (only {listed(turn.readers)} can read this)" if turn.readers is not None and not turn.told else ""
        lines.append(f"{turn.line}{only}")
    return " / ".join(lines)
