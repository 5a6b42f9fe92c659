"""CraigslistBargain: a seller, a buyer, and two private target prices."""

from localsim.families.craigslist.family import Craigslist

__all__ = ["Craigslist"]
