"""CraigslistBargain: a seller, a buyer, and two private target prices."""

from localsim.families.craigslist.family import Craigslist as Craigslist
