"""Games: families with rules of their own, one file each. A new game joins `GAMES`."""

from __future__ import annotations

from localsim.families.base import Family
from localsim.families.games.money.bargaining import Bargaining
from localsim.families.games.money.matrix import Matrix
from localsim.families.games.scenes.counselling import Counselling
from localsim.families.games.scenes.debate import Debate
from localsim.families.games.scenes.dinner import Dinner
from localsim.families.games.scenes.narrated import Narrated

GAMES: tuple[Family, ...] = (Bargaining(), Matrix(), Counselling(), Dinner(), Narrated(), Debate())
"""Every game, in the order of reports."""
