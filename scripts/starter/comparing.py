"""Lists of comparisons, the first lesson of the starter: one person's target price, then one price after the other.

A small model does not compare numbers by itself. Conversations, in which comparisons are rare, did not teach it. Here
there is one in every twelve tokens, and nearly all weight lies on the word that decides.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from localsim.backends.llama.chat import ChatTokenizer
from localsim.finetune.chats import TrainingRow
from scripts.starter.bargain import near, round_price, suits
from scripts.starter.names import names

LENGTH = 1000
"""The greatest number of tokens in a row."""
REST = 0.05
"""Weight of the words after the one that decides."""


@dataclass(frozen=True)
class Part:
    """A piece of text; `accepts` is None where nothing is decided."""

    text: str
    accepts: bool | None = None


def paragraph(rng: random.Random, name: str) -> list[Part]:
    """Return a person with a target price, who accepts or refuses some prices."""
    asked = max(12, round_price(rng, 10 ** rng.uniform(1.0, 3.2)))
    selling, target = rng.random() < 0.5, max(3, round(asked * rng.uniform(0.5, 0.95)))
    parts = [Part(f"{name} {'sells' if selling else 'buys'}. {name}'s target price is ${target}.")]
    for _ in range(rng.choice((2, 4, 8))):
        price = near(rng, target, asked)
        good = suits(price, target, selling=selling)
        refusal = f" is too {'low' if selling else 'high'} for me."
        parts += [Part(f" ${price}"), Part(" works for me." if good else refusal, good)]
    return [*parts, Part("\n")]


def row(rng: random.Random, tokenizer: ChatTokenizer) -> TrainingRow:
    """Return paragraphs of different people as one row."""
    tokens: list[int] = []
    weights: list[float] = []
    people = names(rng, 24)
    while True:
        cut = [(tokenizer.content(part.text), part.accepts) for part in paragraph(rng, rng.choice(people))]
        if len(tokens) + sum(len(ids) for ids, _ in cut) > LENGTH:
            return TrainingRow(tuple(tokens), tuple(weights), "comparing")
        for ids, accepts in cut:
            tokens += ids
            weights += [0.0] * len(ids) if accepts is None else [1.0] + [REST] * (len(ids) - 1)


def rows(count: int, seed: int, tokenizer: ChatTokenizer) -> list[TrainingRow]:
    """Return `count` rows; equal seeds give equal rows."""
    return [row(random.Random(f"comparing/{seed}/{number}"), tokenizer) for number in range(count)]
