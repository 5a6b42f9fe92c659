"""The options of GLEE's three games (arXiv 2410.05254), and the grid of all their combinations.

The options are those of the sweeps in `utils/create_YAMLs.py` of the repository eilamshapira/GLEE: 384 combinations
for bargaining, 576 for negotiation and 360 for persuasion. Persuasion has 20 rounds, as in the code and the metrics of
the repository; its sweep file says 25.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

MONEY = (100, 10_000, 1_000_000)
KEEPS = (1.0, 0.95, 0.9, 0.8)
"""What each further round of bargaining leaves of the value."""
VALUES = (0.8, 1.0, 1.2, 1.5)
"""What the good of a negotiation is worth to the seller and to the buyer, in parts of the money."""
WORTHS = (1.2, 1.25, 2.0, 3.0, 4.0)
"""What a product of high quality is worth to a buyer, in parts of its price."""
BOTH = (True, False)

GRID: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "bargaining": {
        "money": MONEY,
        "rounds": (12, 99),
        "keep_1": KEEPS,
        "keep_2": KEEPS,
        "informed": BOTH,
        "talk": BOTH,
    },
    "negotiation": {
        "money": MONEY,
        "rounds": (1, 10, 30),
        "seller": VALUES,
        "buyer": VALUES,
        "informed": BOTH,
        "talk": BOTH,
    },
    "persuasion": {
        "price": MONEY,
        "chance": (1 / 3, 0.5, 0.8),
        "worth": WORTHS,
        "informed": BOTH,
        "myopic": BOTH,
        "message": ("words", "binary"),
    },
}
"""Game -> parameter -> its options."""
FIXED: Mapping[str, Mapping[str, Any]] = {
    "bargaining": {},
    "negotiation": {"prior": False},
    "persuasion": {"rounds": 20},
}
"""Game -> parameters that are equal in the whole grid. GLEE tells nobody which values the other side can have."""
TOLD_UP_TO = 20
"""Players are told the number of rounds only if it is at most this."""
_UNTOLD = 500


def cells(game: str) -> Iterator[dict[str, Any]]:
    """Yield the parameters of each combination, the last option changing first."""
    options = GRID[game]
    for chosen in product(*options.values()):
        yield {**FIXED[game], **dict(zip(options, chosen, strict=True))}


def turn_limit(rounds: int) -> int:
    """Return the limit of turns of a game with an offer and an answer in each round.

    Prompts tell it, so it must not give away a number of rounds that players are not told.
    """
    return 2 * rounds if rounds <= TOLD_UP_TO else max(_UNTOLD, 2 * rounds)
