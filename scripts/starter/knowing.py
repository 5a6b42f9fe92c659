"""Lists of questions about who knows whom: two people, the friends of each, then one question after the other.

In a script the friends of both are in view, and an answer must come from the list of the person who speaks.
Conversations, in which such answers are rare, did not teach it. Here there is one in every thirty tokens. Half of the
questions are about a friend of the asker, so that the wrong list often gives a wrong answer.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

from localsim.backends.llama.chat import ChatTokenizer
from localsim.finetune.chats import TrainingRow
from scripts.starter.friends import Friend, both, lists_of, scenario
from scripts.starter.lists import Piece, packed

QUESTIONS = (6, 15, 40)
"""Numbers of questions about the same lists."""


def paragraph(rng: random.Random) -> list[Piece]:
    """Return the friends of two people, and questions with answers; both ask and both answer."""
    document = scenario(rng, rng.randrange(1_000_000))
    names = document.names
    friends = [[replace(each, attributes=each.attributes[:2]) for each in own] for own in lists_of(document)]
    pieces: list[Piece] = []
    for name, own in zip(names, friends, strict=True):
        facts = [f"- {friend.name} {both(friend)}.\n" for friend in own]
        pieces.append((f"What {name} knows:\n{''.join(facts)}", False))
    for _ in range(rng.choice(QUESTIONS)):
        side = rng.randrange(2)
        question, answer = _asked(rng, friends[side], friends[1 - side])
        pieces += [(f"{names[1 - side]}: {question}\n{names[side]}:", False), (f" {answer}\n", True)]
    return [*pieces, ("\n", False)]


def _asked(rng: random.Random, own: list[Friend], others: list[Friend]) -> tuple[str, str]:
    """Return a question and the answer from the list `own`."""
    friend = rng.choice(own if rng.random() < 0.5 else others)
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
