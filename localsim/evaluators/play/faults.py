"""The faults of a talk: each is a function from a talk to the turns that have it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from localsim.conversation.transcript import Turn
from localsim.evaluators.play import phrases
from localsim.evaluators.play.talk import Talk
from localsim.evaluators.repeats import SHORT, Utterance
from localsim.families.farewells import says_farewell

BACK = 60
"""Earlier utterances that one is compared with, so that the work does not grow with the square of a long talk."""
LOOP = 4
"""Fewest turns of a loop: A B A B."""
PLACES = 2
"""Own turns at the beginning, and at the end, in which polite words alone are in their place."""


@dataclass(frozen=True)
class Fault:
    """A fault, and how many turns with it a talk may have."""

    name: str
    """Its score is `play_NAME`."""
    label: str
    """What the talk does, in two to four words."""
    says: str
    """What its turns do: they ..."""
    find: Callable[[Talk], Sequence[int]]
    """Return the indices of its turns."""
    least: int
    """Fewest turns that spoil a talk."""
    share: float = 0.0
    """They must also be more than this share of the turns with speech."""
    english: bool = False
    """True if it is found by English phrases."""

    def spoils(self, turns: int, said: int) -> bool:
        """Return True if a talk with `said` turns, of which `turns` have the fault, does not play."""
        return turns >= self.least and turns > self.share * said

    def weight(self, turns: int, said: int) -> float:
        """Return how far the fault is above its limit, to find the worst one."""
        return turns / max(self.least, self.share * said)


# ---- repeats -------------------------------------------------------------------------------------------------------


def own_repeats(talk: Talk) -> list[int]:
    """Return the turns whose speaker said nearly the same before, but for short answers."""
    return [now.turn.index for now, before in _earlier(talk, own=True) if any(now.like(each) for each in before)]


def parroting(talk: Talk) -> list[int]:
    """Return the turns that say nearly what another said before and their speaker did not; polite words may be equal."""
    own = set(own_repeats(talk))
    found = []
    for now, before in _earlier(talk, own=False):
        if now.turn.index in own or phrases.is_polite(now.turn.action.text, talk.names):
            continue
        if any(now.like(each) for each in before if each.turn.beat != now.turn.beat):
            found.append(now.turn.index)
    return found


def _earlier(talk: Talk, *, own: bool) -> Iterator[tuple[Utterance, list[Utterance]]]:
    """Yield each utterance that is not short, with those before it of the same speaker, or of the others."""
    for at, now in enumerate(talk.utterances):
        if len(now.words) >= SHORT:
            before = [each for each in talk.utterances[:at] if (each.turn.speaker == now.turn.speaker) is own]
            yield now, before[-BACK:]


def loops(talk: Talk) -> list[int]:
    """Return the turns of runs of LOOP or more in which each says nearly the same as one of the round before it."""
    period = max(2, len({turn.speaker for turn in talk.said}))
    found: list[int] = []
    run: list[int] = []
    for at, now in enumerate(talk.utterances):
        back = [each for each in range(max(0, at - period), at) if now.like(talk.utterances[each])]
        if back and not now.is_offer:
            run = [*(run or range(back[0], at)), at]
        else:
            found += run if len(run) >= LOOP else []
            run = []
    found += run if len(run) >= LOOP else []
    return [talk.utterances[at].turn.index for at in dict.fromkeys(found)]


# ---- words of an assistant -----------------------------------------------------------------------------------------


def politeness(talk: Talk) -> list[int]:
    """Return the turns of polite words alone, but for the first and last ones of each agent."""
    found = []
    for name in talk.scenario.names:
        own = [turn for turn in talk.said if turn.speaker == name]
        found += [turn.index for turn in own[PLACES:-PLACES] if phrases.is_polite(turn.action.text, talk.names)]
    return sorted(found)


def assistant(talk: Talk) -> list[int]:
    """Return the turns that speak as an assistant does."""
    return [turn.index for turn in talk.said if phrases.ASSISTANT.search(phrases.simple(turn.action.text))]


def refusals(talk: Talk) -> list[int]:
    """Return the turns that refuse as an assistant does."""
    return [turn.index for turn in talk.said if phrases.REFUSAL.search(phrases.simple(turn.action.text))]


# ---- roles ---------------------------------------------------------------------------------------------------------


def other_role(talk: Talk) -> list[int]:
    """Return the turns that give the other's name or side as the own one, or address their speaker by name."""
    return [turn.index for turn in talk.said if _as_another(turn, talk)]


def _as_another(turn: Turn, talk: Talk) -> bool:
    text, me = turn.action.text, re.escape(turn.speaker)
    for name in map(re.escape, talk.others(turn.speaker)):
        if re.search(rf"\b(?:I['’]?m|I am|[Mm]y name is|[Mm]y name['’]s|[Tt]his is) {name}\b", text):
            return True
    if re.search(rf"(?:^|[.!?] )(?:Hi|Hello|Hey|Thanks|Thank you|Bye|Goodbye|Dear),? {me}\b|, {me}[.!?]*$", text):
        return True
    side = talk.sides.get(turn.speaker)
    for other in set(talk.sides.values()) - {side}:
        if re.search(rf"\bi(?:'m| am)(?: also)? (?:an?|the) {re.escape(other)}\b", phrases.simple(text)):
            return True
    return False


# ---- form ----------------------------------------------------------------------------------------------------------


def read_out(talk: Talk) -> list[int]:
    """Return the turns most of whose words are those of the own instructions, in the same order."""
    return []


def spill(talk: Talk) -> list[int]:
    """Return the turns in which the form of the prompt or of a chat has become speech."""
    names = "|".join(map(re.escape, talk.scenario.names))
    kinds = {*talk.scenario.actions, *(move.name for move in talk.scenario.moves), "speak", "action", "leave", "none"}
    form = re.compile(
        rf"(?<!\w)(?:{names})(?: \[[^\]]*\])?:|^(?i:{phrases.ROLE_WORDS})(?: \[[^\]]*\])?:"
        rf"|\[(?:{'|'.join(map(re.escape, sorted(kinds)))})\b[^\]]*\]"
    )
    return [turn.index for turn in talk.said if form.search(turn.action.text) or _marked(turn.action.text)]


def _marked(text: str) -> bool:
    quoted = len(text) > 2 and text[0] + text[-1] in phrases.QUOTES and text[0] not in text[1:-1]
    return quoted or bool(phrases.MARKDOWN.search(text))


# ---- goodbyes ------------------------------------------------------------------------------------------------------


def farewells(talk: Talk) -> list[int]:
    """Return the turns after at least two agents have said goodbye, if two or more follow without leaving."""
    said_it: set[str] = set()
    after: list[int] = []
    for turn in talk.said:
        bye, polite = says_farewell(turn.action.text), phrases.is_polite(turn.action.text, talk.names)
        if not (bye or polite):
            said_it, after = set(), []
        elif len(said_it) >= 2:
            after.append(turn.index)
        elif bye:
            said_it.add(turn.speaker)
    return after if len(after) >= 2 else []


FAULTS = (
    Fault("other_role", "speaks as another", "speak as another person", other_role, 2, english=True),
    Fault("refusals", "refuses as an assistant", "refuse as an assistant does", refusals, 1, english=True),
    Fault("assistant", "speaks as an assistant", "speak as an assistant does", assistant, 2, english=True),
    Fault("spill", "form spills into speech", "hold signs of a form that is no speech", spill, 2, 0.1),
    Fault("read_out", "reads out instructions", "read out the instructions", read_out, 2, 0.1),
    Fault("loop", "goes in a loop", "go in a loop", loops, LOOP),
    Fault("own_repeats", "repeats itself", "repeat what their speaker said before", own_repeats, 2, 0.1),
    Fault("parroting", "repeats the other", "repeat what the other said", parroting, 2, 0.1),
    Fault("politeness", "polite words alone", "hold polite words alone", politeness, 3, 0.2, english=True),
    Fault("farewells", "goodbyes go on", "go on after both have said goodbye", farewells, 3, english=True),
)
"""The faults, the gravest first: of two that are equally far above their limits, the first names the talk."""
