"""What GLEE's three games have in common (arXiv 2410.05254), as in `utils/create_YAMLs.py` of eilamshapira/GLEE.

`scripts/make_glee.py` writes the grid of all combinations of its options.
"""

from __future__ import annotations

VALUES = (0.8, 1.0, 1.2, 1.5)
"""What the good of a negotiation is worth to the seller and to the buyer, in parts of the money."""
WORTHS = (1.2, 1.25, 2.0, 3.0, 4.0)
"""What a product of high quality is worth to a buyer, in parts of its price."""
TOLD_UP_TO = 20
"""Players are told the number of rounds only if it is at most this."""
_UNTOLD = 500


def turn_limit(rounds: int) -> int:
    """Return the limit of turns of a game with an offer and an answer in each round.

    Prompts tell it, so it must not give away a number of rounds that players are not told.
    """
    return 2 * rounds if rounds <= TOLD_UP_TO else max(_UNTOLD, 2 * rounds)
