"""The starter's training data: conversations of scripted players and of writers, in the form of the engine's prompts.

Each conversation is held by two sides that know their own side only. It is then written down in one of three forms:
`agents`, `mindreaders` or `script`, with the other side present and unused in the last two. The forms have equal shares
of the text. The constructed twins learn from players that peek in the two forms in which they see the other side.

A search is kept only if the family scores it as a success: exactly the friends in common are agreed on. Haggling is
kept if its ending can be read and a deal is inside the zone. A walk-away is kept whether or not there was a zone: to
leave exactly where there is none would be to use the other side.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from localsim.conversation.episode import MODES, Mode
from localsim.conversation.scenario import ScenarioFile
from localsim.conversation.transcript import Transcript
from localsim.families import FAMILIES
from localsim.finetune.chats import Chat, chats_of
from scripts.starter import bargain, everyday, friends, lookup

DRILLS = {"probing": bargain.answerer, "lookup": lookup.answerer}
"""Types of conversations in which one side answers all questions -> the function that finds its number."""
DECIDING = 4.0
"""Weight of the turns that accept or refuse a price, and of the answers in drills. All other turns weigh 1."""


@dataclass(frozen=True)
class Mix:
    """The mixture of conversations for one stage of the training."""

    shares: dict[str, float]
    """Share of each type of conversation."""
    sloppy: float = 0.3
    """Share of partners in searches who sometimes confuse one of their friends with the one in question. Their turns
    are no training targets, so a script has none."""
    peeks: float = 0.0
    """Probability that a turn uses the other side, in the forms that show it."""
    weights: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Shares of the text in each of MODES, up to a common factor."""


PROBING = Mix({"probing": 0.6, "lookup": 0.4})
"""Many prices or friends in one conversation, answered one after the other: the second lesson, after the lists."""
HONEST = Mix({"friends": 0.37, "bargain": 0.26, "probing": 0.1, "lookup": 0.13, "everyday": 0.14})
"""The starter: nobody uses the other side in any form."""
SCRIPTS = Mix({"friends": 0.4, "lookup": 0.35, "bargain": 0.25}, weights=(2.5, 1.0, 1.0))
"""Mostly scripts, and many answers about descriptions: there the writer took its words from the wrong list."""
WHOLE = Mix({"friends": 0.5, "bargain": 0.44, "everyday": 0.06}, weights=(1.3, 1.0, 1.0))
"""The last lesson: whole conversations alone, more of them in scripts."""
PEEKS = Mix({"friends": 0.5, "bargain": 0.45, "everyday": 0.05}, peeks=1.0, weights=(1.0, 1.5, 1.0))
"""The constructed twins. Half more of their text is agents' talk: with less, they named their own target there."""


@dataclass
class Data:
    """Training chats, and the number of conversations kept and dropped."""

    chats: list[tuple[str, Mode, Chat]] = field(default_factory=list)
    """(kind, form, chat) triples."""
    counts: Counter[str] = field(default_factory=Counter)
    letters: Counter[Mode] = field(default_factory=Counter)
    """Characters of the chats in each form."""

    def add(self, kind: str, form: Mode, chat: Chat) -> None:
        """Add a chat."""
        self.chats.append((kind, form, chat))
        self.counts[f"{kind}, {form}"] += 1
        self.letters[form] += sum(len(message.content) for message in chat.messages)

    def next_form(self, mix: Mix) -> Mode:
        """Return the form that has the least text so far for its share."""
        weights = dict(zip(MODES, mix.weights, strict=True))
        return min(MODES, key=lambda form: self.letters[form] / weights[form])


def build(talks: int, seed: int, mix: Mix = HONEST, *, held_out: bool = False) -> Data:
    """Build `talks` conversations and one training chat of each; held-out ones share no seed and no situation."""
    data = Data()
    for number, kind in enumerate(_kinds(talks, seed, mix)):
        rng = random.Random(f"{'held out' if held_out else 'starter'}/{seed}/{number}")
        form, side = data.next_form(mix), rng.randrange(2)
        document, transcript = talk_of(kind, rng, number, form, side, mix, held_out=held_out)
        if kind not in DRILLS and not _as_meant(document, transcript):
            data.counts[f"{kind}, left out"] += 1
            continue
        chats = chats_of(document.split()[0], form, transcript)
        if kind in DRILLS:
            side = DRILLS[kind](transcript.turns)
        chat = chats[min(side, len(chats) - 1)]
        data.add(kind, form, _weighted(chat, form, transcript, kind, peeked=form != "agents" and mix.peeks > 0))
    return data


def _kinds(talks: int, seed: int, mix: Mix) -> Iterator[str]:
    rng = random.Random(f"starter/{seed}")
    yield from rng.choices(list(mix.shares), list(mix.shares.values()), k=talks)


def talk_of(
    kind: str, rng: random.Random, number: int, form: Mode, side: int, mix: Mix, *, held_out: bool = False
) -> tuple[ScenarioFile, Transcript]:
    """Return a scenario and its conversation; learner number `side` of an agent's chat makes no mistakes."""
    peeks = mix.peeks if form != "agents" else 0.0
    if kind == "everyday":
        return everyday.talk(rng, number, held_out=held_out)
    if kind == "friends":
        document = friends.scenario(rng, number)
        sloppy = 1 - side if form != "script" and not peeks and rng.random() < mix.sloppy else None
        return document, friends.talk(rng, document, sloppy=sloppy, peeks=peeks or None)
    if kind == "lookup":
        document = friends.scenario(rng, number)
        return document, lookup.talk(rng, document)
    document = bargain.scenario(rng, number)
    if kind == "probing":
        return document, bargain.probing(rng, document)
    return document, bargain.talk(rng, document, peeks=peeks)


def _as_meant(document: ScenarioFile, transcript: Transcript) -> bool:
    if any(len(turn.action.text) > document.limits.chars for turn in transcript.turns):
        return False
    if document.family is None:
        return True
    scenario, answer = document.split()
    scores = {score.name: score for score in FAMILIES[document.family].score(transcript, scenario, answer)}
    if "ending" in scores and scores["ending"].label == "no_deal":
        return True
    return "success" in scores and scores["success"].value == 1.0


def _weighted(chat: Chat, form: Mode, transcript: Transcript, kind: str, *, peeked: bool) -> Chat:
    """Return a chat in which turns that decide about a price weigh more; of drills, only answers are learned.

    Where players peek, they show it in their first two turns: these weigh more too.
    """
    turns = transcript.turns
    if kind in DRILLS:
        side = DRILLS[kind](turns)
        weights = {index: DECIDING for index in range(1, len(turns) - 1) if index % 2 == side}
        rest = 0.0
    else:
        heavy = {0, 1} if peeked else set()
        heavy |= bargain.deciding(turns) if kind == "bargain" else set()
        if not heavy:
            return chat
        weights, rest = dict.fromkeys(heavy, DECIDING), 1.0
    own: Sequence[int] = [turn.index for turn in turns if form == "script" or turn.speaker == chat.name]
    return replace(chat, weights=tuple(weights.get(index, rest) for index in own))
