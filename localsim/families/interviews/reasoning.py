"""Items whose right answers can be computed: sums, last letters and coins, drawn from a seed.

The kinds of tasks with which reasoning under a persona is measured (arXiv 2311.04892; Kojima et al., arXiv
2205.11916, for last letters and coin flips).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from localsim.families.interviews.items import Item
from localsim.families.vocabulary import DEFAULT

WORDS = (
    "river candle stone window garden ladder pepper rabbit button carpet silver pocket basket winter lemon anchor "
    "bottle cherry dragon engine feather guitar hammer island jacket kettle magnet needle orange pencil"
).split()  # fmt: skip
HEADS, TAILS = "heads", "tails"


def sums(rng: random.Random, number: int) -> Item:
    """Return a sum of two numbers of two digits, with four options."""
    one, two = rng.randint(12, 89), rng.randint(12, 89)
    right = one + two
    wrong = [right + step for step in rng.sample((-20, -11, -10, -9, -2, -1, 1, 2, 9, 10, 11, 20), 3)]
    options = tuple(str(each) for each in rng.sample([right, *wrong], 4))
    return Item(id=f"sum_{number}", ask=f"What is {one} + {two}?", options=options, gold=(str(right),),
                about="sums")  # fmt: skip


def letters(rng: random.Random, number: int) -> Item:
    """Return three words whose last letters are to be joined, with four options."""
    words = rng.sample(WORDS, 3)
    right = "".join(word[-1] for word in words)
    options = {right, "".join(word[0] for word in words), right[::-1]}
    while len(options) < 4:
        options.add("".join(rng.sample("abdeghklnorstwy", 3)))
    shown = tuple(rng.sample(sorted(options), 4))
    ask = f"Take the last letters of these words and join them: {', '.join(words)}. What do you get?"
    return Item(id=f"letters_{number}", ask=ask, options=shown, gold=(right,), about="last_letters")


def coins(rng: random.Random, number: int) -> Item:
    """Return a coin that some people turn over, with two options."""
    names = rng.sample(DEFAULT.names, 3)
    turned = [rng.random() < 0.5 for _ in names]
    does = [
        f"{name} {'turns it over' if turn else 'leaves it as it is'}." for name, turn in zip(names, turned, strict=True)
    ]
    ask = f"A coin lies heads up. {' '.join(does)} Which side is up now?"
    right = TAILS if sum(turned) % 2 else HEADS
    return Item(id=f"coin_{number}", ask=ask, options=(HEADS, TAILS), gold=(right,), about="coins")


KINDS: Mapping[str, Callable[[random.Random, int], Item]] = {"sums": sums, "last_letters": letters, "coins": coins}


def items(seed: int, counts: Mapping[str, int]) -> tuple[Item, ...]:
    """Return so many items of each kind, drawn from a seed; no question comes twice."""
    found: dict[str, Item] = {}
    for kind, count in counts.items():
        rng, number = random.Random(f"reasoning/{seed}/{kind}"), 0
        while number < count:
            item = KINDS[kind](rng, number + 1)
            if item.ask not in found:
                found[item.ask], number = item, number + 1
    return tuple(found.values())
