"""Lists of comparisons, the first lesson of the starter: target prices, then one price after the other.

A small model does not compare numbers by itself. Conversations, in which comparisons are rare, did not teach it. Here
there is one in some 20 tokens, and nearly all weight lies on the word that decides. In half of the lists two
people judge prices, as in a script, so that the wrong target often gives a wrong answer.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from localsim.backends.llama.chat import ChatTokenizer
from localsim.finetune.chats import TrainingRow
from scripts.starter.bargain import near, round_price, suits
from scripts.starter.lists import Piece, packed
from scripts.starter.names import names


def paragraph(rng: random.Random, people: Sequence[str]) -> list[Piece]:
    """Return one or two people with target prices, who accept or refuse some prices."""
    asked = max(12, round_price(rng, 10 ** rng.uniform(1.0, 3.2)))
    targets = {name: max(3, round(asked * rng.uniform(0.5, 0.95))) for name in rng.sample(people, rng.choice((1, 2)))}
    sells = rng.choice(list(targets)) if len(targets) == 2 or rng.random() < 0.5 else ""
    pieces: list[Piece] = []
    for name, target in targets.items():
        pieces.append((f"{name} {'sells' if name == sells else 'buys'}. {name}'s target price is ${target}.\n", False))
    for _ in range(rng.choice((2, 4, 8))):
        name = rng.choice(list(targets))
        price = near(rng, rng.choice(list(targets.values())), asked)
        good = suits(price, targets[name], selling=name == sells)
        refusal = f" is too {'low' if name == sells else 'high'} for me.\n"
        pieces += [(f"{name}: ${price}", False), (" works for me.\n" if good else refusal, True)]
    return [*pieces, ("\n", False)]


def row(rng: random.Random, tokenizer: ChatTokenizer) -> TrainingRow:
    """Return paragraphs of different people as one row."""
    people = names(rng, 24)
    return packed(lambda: paragraph(rng, people), tokenizer, "comparing")


def rows(count: int, seed: int, tokenizer: ChatTokenizer) -> list[TrainingRow]:
    """Return `count` rows; equal seeds give equal rows."""
    return [row(random.Random(f"comparing/{seed}/{number}"), tokenizer) for number in range(count)]
