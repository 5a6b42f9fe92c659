"""Games: families with rules of their own, one file each. A new game joins `GAMES`."""

from __future__ import annotations

from localsim.families.base import Family
from localsim.families.games.money.bargaining import Bargaining
from localsim.families.games.money.matrix import Matrix
from localsim.families.games.talking.car_dealer import CarDealer
from localsim.families.games.talking.films import Films
from localsim.families.games.talking.linear_program import LinearProgram
from localsim.families.games.talking.recommendation import Recommendation

GAMES: tuple[Family, ...] = (Bargaining(), Matrix(), CarDealer(), Recommendation(), Films(), LinearProgram())
"""Every game, in the order of reports."""
