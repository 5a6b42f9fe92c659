"""Games: families with rules of their own, one file each. A new game joins `GAMES`."""

from __future__ import annotations

from localsim.families.base import Family
from localsim.families.games.money.bargaining import Bargaining
from localsim.families.games.money.matrix import Matrix

GAMES: tuple[Family, ...] = (Bargaining(), Matrix())
"""Every game, in the order of reports."""
