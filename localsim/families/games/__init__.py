"""Games: families with rules of their own, one file each. A new game joins `GAMES`."""

from __future__ import annotations

from localsim.families.base import Family
from localsim.families.games.money.balloon import Balloon
from localsim.families.games.money.bargaining import Bargaining
from localsim.families.games.money.matrix import Matrix
from localsim.families.games.money.negotiation import Negotiation
from localsim.families.games.money.persuasion import Persuasion

GAMES: tuple[Family, ...] = (Bargaining(), Matrix(), Negotiation(), Persuasion(), Balloon())
"""Every game, in the order of reports."""
