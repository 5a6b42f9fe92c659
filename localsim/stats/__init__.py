"""Intervals, paired comparisons and designs in which a scenario is one draw, whatever the number of its episodes.

Episodes of one scenario resemble each other, so counting them as independent makes every interval too short. Therefore
all intervals and tests here are between scenarios. numpy and scipy are imported when needed.
"""

from localsim.stats.design import Spread, power, smallest, spread_of
from localsim.stats.intervals import (
    CONFIDENCE,
    NOTHING,
    Bounds,
    Estimate,
    clustered,
    excess,
    mean,
    rate,
    share,
    text_of,
)
from localsim.stats.paired import (
    Equivalence,
    Paired,
    equivalence,
    holm,
    icc,
    least_p,
    mcnemar,
    paired,
    sign_flips,
)

__all__ = [
    "CONFIDENCE",
    "NOTHING",
    "Bounds",
    "Equivalence",
    "Estimate",
    "Paired",
    "Spread",
    "clustered",
    "equivalence",
    "excess",
    "holm",
    "icc",
    "least_p",
    "mcnemar",
    "mean",
    "paired",
    "power",
    "rate",
    "share",
    "sign_flips",
    "smallest",
    "spread_of",
    "text_of",
]
