"""Lists of questions about who knows whom: two people, the friends of each, then one question after the other.

In a script the friends of both are in view, and an answer must come from the list of the person who speaks.
Conversations, in which such answers are rare, did not teach it. Here there is one in every fifteen tokens. Most
questions are about a friend of the asker alone or of the answerer alone, so that the wrong list gives a wrong answer.
"""

from __future__ import annotations

import random

from localsim.backends.llama.chat import ChatTokenizer
from localsim.finetune.chats import TrainingRow
from scripts.starter.friends import Friend, lists_of, scenario

LENGTH = 1000
"""The greatest number of tokens in a row."""
QUESTIONS = (6, 15, 40)
"""Numbers of questions about the same lists."""
REST = 0.05
"""Weight of the tokens after the one that decides."""


Piece = tuple[str, float]
"""A piece of text and the weight of its first token; the tokens after it weigh REST times as much."""


def paragraph(rng: random.Random) -> list[Piece]:
    """Return the friends of two people, and questions with answers; both ask and both answer."""
    document = scenario(rng, rng.randrange(1_000_000))
    friends, names = lists_of(document), document.names
    pieces: list[Piece] = []
    for name, own in zip(names, friends, strict=True):
        facts = [f"- {friend.name} {_described(friend)}.\n" for friend in own]
        pieces.append((f"What {name} knows:\n{''.join(facts)}", 0.0))
    for _ in range(rng.choice(QUESTIONS)):
        side = rng.randrange(2)
        question, answer = _asked(rng, friends[side], friends[1 - side])
        pieces += [(f"{names[1 - side]}: {question}\n{names[side]}:", 0.0), (f" {answer}\n", 1.0)]
    return [*pieces, ("\n", 0.0)]


def _asked(rng: random.Random, own: list[Friend], others: list[Friend]) -> tuple[str, str]:
    """Return a question and the answer from the list `own`."""
    friend = rng.choice(own if rng.random() < 0.5 else others)
    if rng.random() < 0.7:
        known = any(each.name == friend.name for each in own)
        return f"Do you know {friend.name}?", "Yes." if known else "No."
    about = dict(friend.attributes[:2])
    found = next((each for each in own if each.has(about)), None)
    return f"Who {_described(friend)}?", f"{found.name}." if found else "Nobody."


def _described(friend: Friend) -> str:
    verbs = {"hobby": "likes", "company": "works at", "town": "lives in"}
    return " and ".join(f"{verbs[kind]} {value}" for kind, value in friend.attributes[:2])


def row(rng: random.Random, tokenizer: ChatTokenizer) -> TrainingRow:
    """Return paragraphs about different people as one row."""
    tokens: list[int] = []
    weights: list[float] = []
    while True:
        cut = [(tokenizer.content(text), weight) for text, weight in paragraph(rng)]
        if len(tokens) + sum(len(ids) for ids, _ in cut) > LENGTH:
            if tokens:
                return TrainingRow(tuple(tokens), tuple(weights), "knowing")
            continue
        for ids, weight in cut:
            tokens += ids
            weights += [weight] + [weight * REST] * (len(ids) - 1)


def rows(count: int, seed: int, tokenizer: ChatTokenizer) -> list[TrainingRow]:
    """Return `count` rows; equal seeds give equal rows."""
    return [row(random.Random(f"knowing/{seed}/{number}"), tokenizer) for number in range(count)]
