"""Lists of comparisons, the first lesson of the starter: one person's target price, then one price after the other.

A small model does not compare numbers by itself. Conversations, in which comparisons are rare, did not teach it. Here
there is one in every twelve tokens, and nearly all weight lies on the word that decides.
"""

from __future__ import annotations

import random

from localsim.backends.llama.chat import ChatTokenizer
from localsim.finetune.chats import TrainingRow
from scripts.starter.bargain import near, round_price, suits
from scripts.starter.lists import Piece, packed
from scripts.starter.names import names


def paragraph(rng: random.Random, name: str) -> list[Piece]:
    """Return a person with a target price, who accepts or refuses some prices."""
    asked = max(12, round_price(rng, 10 ** rng.uniform(1.0, 3.2)))
    selling, target = rng.random() < 0.5, max(3, round(asked * rng.uniform(0.5, 0.95)))
    pieces = [(f"{name} {'sells' if selling else 'buys'}. {name}'s target price is ${target}.", False)]
    for _ in range(rng.choice((2, 4, 8))):
        price = near(rng, target, asked)
        good = suits(price, target, selling=selling)
        refusal = f" is too {'low' if selling else 'high'} for me."
        pieces += [(f" ${price}", False), (" works for me." if good else refusal, True)]
    return [*pieces, ("\n", False)]


def row(rng: random.Random, tokenizer: ChatTokenizer) -> TrainingRow:
    """Return paragraphs of different people as one row."""
    people = names(rng, 24)
    return packed(lambda: paragraph(rng, rng.choice(people)), tokenizer, "comparing")


def rows(count: int, seed: int, tokenizer: ChatTokenizer) -> list[TrainingRow]:
    """Return `count` rows; equal seeds give equal rows."""
    return [row(random.Random(f"comparing/{seed}/{number}"), tokenizer) for number in range(count)]
