"""Intervals, paired comparisons and designs in which a scenario is one draw, whatever the number of its episodes.

Episodes of one scenario resemble each other, so counting them as independent makes every interval too short. Therefore
all intervals and tests here are between scenarios. numpy and scipy are imported when needed.
"""

from localsim.stats.intervals import CONFIDENCE as CONFIDENCE
from localsim.stats.intervals import NOTHING as NOTHING
from localsim.stats.intervals import Bounds as Bounds
from localsim.stats.intervals import Estimate as Estimate
from localsim.stats.intervals import clustered as clustered
from localsim.stats.intervals import excess as excess
from localsim.stats.intervals import grouped as grouped
from localsim.stats.intervals import rate as rate
from localsim.stats.intervals import share as share
from localsim.stats.intervals import text_of as text_of
from localsim.stats.paired import Equivalence as Equivalence
from localsim.stats.paired import Paired as Paired
from localsim.stats.paired import Spread as Spread
from localsim.stats.paired import equivalence as equivalence
from localsim.stats.paired import holm as holm
from localsim.stats.paired import icc as icc
from localsim.stats.paired import least_p as least_p
from localsim.stats.paired import mcnemar as mcnemar
from localsim.stats.paired import paired as paired
from localsim.stats.paired import permutation as permutation
from localsim.stats.paired import power as power
from localsim.stats.paired import sign_flips as sign_flips
from localsim.stats.paired import smallest as smallest
from localsim.stats.paired import spread_of as spread_of
