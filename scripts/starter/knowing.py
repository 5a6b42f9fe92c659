"""Lists of questions about who knows whom: two people, the friends of each, then one question after the other.

In a script the friends of both are in view, and an answer must come from the list of the person who speaks.
Conversations, in which such answers are rare, did not teach it. Here there is one in some 45 tokens. Nobody asks
about the same friend twice: otherwise a model learns to repeat its first answer and never looks at the lists.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

from localsim.backends.llama.chat import ChatTokenizer
from localsim.finetune.chats import TrainingRow
from scripts.starter.friends import Friend, both, lists_of, scenario
from scripts.starter.lists import Piece, packed

SHARED = 0.25
"""Probability that a friend on one list is replaced with a friend from the other list."""


def paragraph(rng: random.Random) -> list[Piece]:
    """Return the friends of two people, and a question with its answer about each friend; both ask and answer."""
    document = scenario(rng, rng.randrange(1_000_000))
    names = document.names
    friends = [[replace(each, attributes=each.attributes[:2]) for each in own] for own in lists_of(document)]
    _share(rng, *friends)
    pieces: list[Piece] = []
    for name, own in zip(names, friends, strict=True):
        facts = [f"- {name}: {friend.name} {both(friend)}.\n" for friend in own]
        pieces.append((f"What {name} knows:\n{''.join(facts)}", False))
    everybody = {friend.name: friend for own in friends for friend in own}
    for name in rng.sample(sorted(everybody), len(everybody)):
        side = rng.randrange(2)
        question, answer = _asked(rng, everybody[name], friends[side])
        pieces += [(f"{names[1 - side]}: {question}\n{names[side]}:", False), (f" {answer}\n", True)]
    return [*pieces, ("\n", False)]


def _share(rng: random.Random, first: list[Friend], second: list[Friend]) -> None:
    """Put some friends of the first list on the second: scenarios have too few in common to learn that from."""
    for place in range(len(second)):
        friend = rng.choice(first)
        if rng.random() < SHARED and all(friend.name != each.name for each in second):
            second[place] = friend


def _asked(rng: random.Random, friend: Friend, own: list[Friend]) -> tuple[str, str]:
    """Return a question about a friend and the answer from the list `own`."""
    if rng.random() < 0.7:
        known = any(each.name == friend.name for each in own)
        return f"Do you know {friend.name}?", "Yes." if known else "No."
    about = dict(friend.attributes)
    found = next((each for each in own if each.has(about)), None)
    return f"Who {both(friend)}?", f"{found.name}." if found else "Nobody."


def rows(count: int, seed: int, tokenizer: ChatTokenizer) -> list[TrainingRow]:
    """Return `count` rows; equal seeds give equal rows."""
    drawn = [random.Random(f"knowing/{seed}/{number}") for number in range(count)]
    return [packed(partial(paragraph, rng), tokenizer, "knowing") for rng in drawn]
