"""Games: families with rules of their own, one file each. A new game joins `GAMES`."""

from __future__ import annotations

from localsim.families.base import Family
from localsim.families.games.money.auction import Auction
from localsim.families.games.money.bargaining import Bargaining
from localsim.families.games.money.matrix import Matrix
from localsim.families.games.money.public_goods import PublicGoods
from localsim.families.games.money.trust import Trust
from localsim.families.games.money.ultimatum import Ultimatum

GAMES: tuple[Family, ...] = (Bargaining(), Matrix(), PublicGoods(), Trust(), Ultimatum(), Auction())
"""Every game, in the order of reports."""
