"""Task families: generate scenarios from a seed, check them, and score their outcome without a language model."""

from localsim.episode import Score
from localsim.families.base import Family
from localsim.families.craigslist import Craigslist
from localsim.families.mutual_friends import MutualFriends

FAMILIES: dict[str, Family] = {family.name: family for family in (MutualFriends(), Craigslist())}

__all__ = ["FAMILIES", "Family", "Score"]
