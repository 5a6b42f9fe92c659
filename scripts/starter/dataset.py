"""The starter's training data: conversations of scripted players, in the form of the engine's prompts.

A conversation of the two families is kept only if the family scores it as intended: a friend found if there is one, a
deal inside the zone if there is a zone, no deal if there is none.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from localsim.conversation.episode import Mode
from localsim.conversation.scenario import ScenarioFile
from localsim.conversation.transcript import Transcript
from localsim.families import FAMILIES
from localsim.finetune.chats import Chat, chats_of
from scripts.starter import bargain, everyday, friends


@dataclass(frozen=True)
class Mix:
    """The mixture of conversations for one stage of the training."""

    shares: dict[str, float]
    """Share of each type of conversation."""
    sloppy: float
    """Share of partners in searches who sometimes confuse one of their friends with the one in question."""
    thorough: float
    """Share of searches that look for all friends in common."""


BROAD = Mix({"friends": 0.53, "bargain": 0.3, "everyday": 0.13, "script": 0.04}, sloppy=0.4, thorough=0.35)
"""All types of conversations."""
CAREFUL = Mix({"friends": 0.52, "bargain": 0.42, "everyday": 0.05, "script": 0.01}, sloppy=0.75, thorough=0.5)
"""Mostly look-ups and comparisons, against partners who make mistakes."""
LONG = Mix({"friends": 0.5, "bargain": 0.45, "everyday": 0.04, "script": 0.01}, sloppy=0.6, thorough=0.85)
"""The same in long conversations with several friends in common: more look-ups per prompt."""


@dataclass
class Data:
    """Training chats, and the number of conversations kept and dropped."""

    chats: list[tuple[str, Chat]] = field(default_factory=list)
    """(kind, chat) pairs."""
    counts: Counter[str] = field(default_factory=Counter)


def build(talks: int, seed: int, mix: Mix = BROAD) -> Data:
    """Build `talks` conversations and one training chat of each."""
    data = Data()
    for number, kind in enumerate(_kinds(talks, seed, mix)):
        rng = random.Random(f"starter/{seed}/{number}")
        side = rng.randrange(2)
        document, transcript = _talk(kind, rng, number, side, mix)
        if not _as_meant(document, transcript):
            data.counts[f"{kind}, left out"] += 1
            continue
        data.counts[kind] += 1
        mode: Mode = "script" if kind == "script" else "agents"
        chats = chats_of(document.split()[0], mode, transcript)
        data.chats.append((kind, chats[min(side, len(chats) - 1)]))
    return data


def _kinds(talks: int, seed: int, mix: Mix) -> Iterator[str]:
    rng = random.Random(f"starter/{seed}")
    yield from rng.choices(list(mix.shares), list(mix.shares.values()), k=talks)


def _talk(kind: str, rng: random.Random, number: int, side: int, mix: Mix) -> tuple[ScenarioFile, Transcript]:
    if kind in ("everyday", "script"):
        return everyday.Maker(rng, number, open_book=kind == "script").make()
    if kind == "friends":
        document = friends.scenario(rng, number, thorough=rng.random() < mix.thorough)
        return document, friends.talk(rng, document, side, sloppy=rng.random() < mix.sloppy)
    document = bargain.scenario(rng, number)
    return document, bargain.talk(rng, document)


def _as_meant(document: ScenarioFile, transcript: Transcript) -> bool:
    if any(len(turn.action.text) > document.limits.chars for turn in transcript.turns):
        return False
    if document.family is None:
        return True
    scenario, answer = document.split()
    scores = {score.name: score for score in FAMILIES[document.family].score(transcript, scenario, answer)}
    # What the starter learned from: a friend in common is confirmed, and haggling succeeds.
    wanted = "confirmed" if document.family == "mutual_friends" else "success"
    return wanted in scores and scores[wanted].value == 1.0
