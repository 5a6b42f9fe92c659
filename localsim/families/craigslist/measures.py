"""The measures of craigslist.

An episode whose ending cannot be read has none of the outcome scores, so it counts in no rate of deals or success;
`unknown_ending_rate` says how many these are.
"""

from __future__ import annotations

from localsim.conversation.measures import Measure
from localsim.families.base import EXPLICIT_END, SUCCESS

DEAL = Measure(
    key="deal_rate",
    heading="deal",
    meaning="share of conversations that end in a deal; those whose ending cannot be read do not count",
    score="deal",
    kind="share",
    summed="episodes",
    group="goals",
    compared=True,
    published={"script": 0.94, "agents": 0.30, "agents-ft": 0.93},
)
DEAL_WITH_ZONE = Measure(
    key="deal_with_zone_rate",
    heading="deal with zone",
    meaning="share of conversations that end in a deal where a price can meet both targets (sensitivity)",
    score="deal_with_zone",
    kind="share",
    summed="episodes",
    group="goals",
    compared=True,
)
DEAL_WITHOUT_ZONE = Measure(
    key="deal_without_zone_rate",
    heading="deal without zone",
    meaning="share of conversations that end in a deal where no price can meet both targets (1 - specificity)",
    score="deal_without_zone",
    kind="share",
    summed="episodes",
    group="goals",
    compared=True,
)
UNKNOWN_ENDING = Measure(
    key="unknown_ending_rate",
    heading="unknown ending",
    meaning="share of conversations whose ending the rules cannot read; they count in no rate of deals or success",
    score="unknown_ending",
    kind="share",
    summed="episodes",
    group="goals",
    compared=True,
)
IN_ZONE = Measure(
    key="in_zone_rate",
    heading="in zone",
    meaning="of the deals where both targets can be met, the share at a price that meets both",
    score="in_zone",
    kind="share",
    summed="episodes",
    group="goals",
)
SELLER_SURPLUS = Measure(
    key="seller_surplus",
    heading="seller surplus",
    meaning="price above the seller\u2019s target, as a part of the list price",
    score="surplus",
    side="seller",
    group="goals",
)
BUYER_SURPLUS = Measure(
    key="buyer_surplus",
    heading="buyer surplus",
    meaning="price below the buyer\u2019s target, as a part of the list price",
    score="surplus",
    side="buyer",
    group="goals",
)
SELLER_CONCESSION = Measure(
    key="seller_concession",
    heading="seller concession",
    meaning="mean step down from one offer of the seller to the next, as a part of the list price",
    score="concession",
    side="seller",
    group="goals",
)
BUYER_CONCESSION = Measure(
    key="buyer_concession",
    heading="buyer concession",
    meaning="mean step up from one offer of the buyer to the next, as a part of the list price",
    score="concession",
    side="buyer",
    group="goals",
)
LIMIT_HITS = Measure(
    key="limit_hits",
    heading="limit hits",
    meaning="share of first offers at the other side\u2019s target, or at the middle of both, before the other has "
    "named a price of its own",
    score="limit_hit",
    kind="share",
    group="information",
)
LIMIT_CHANCE = Measure(
    key="limit_chance",
    heading="hits by chance",
    meaning="share of first offers that would be limit hits if the other side\u2019s target were drawn anew",
    score="limit_chance",
    kind="share",
    group="information",
)
PEEKING = Measure(
    key="peeking",
    head=True,
    heading="peeking",
    meaning="limit hits beyond chance: 0 for those who know only their own target, 1 if every first offer uses the "
    "other side\u2019s",
    score="limit_hit",
    kind="share",
    summed="excess",
    per="limit_chance",
    bounds=(-1.0, 1.0),
    group="information",
    left_out=(
        "the first offer follows a price of the other side, or a guess would hit the other side’s target in more than "
        "half of all cases"
    ),
)
SELLER_PEEKING = Measure(
    key="seller_peeking",
    heading="seller peeking",
    meaning="peeking in first offers of sellers",
    score="limit_hit",
    kind="share",
    summed="excess",
    per="limit_chance",
    side="seller",
    bounds=(-1.0, 1.0),
    group="information",
    compared=True,
)
BUYER_PEEKING = Measure(
    key="buyer_peeking",
    heading="buyer peeking",
    meaning="peeking in first offers of buyers",
    score="limit_hit",
    kind="share",
    summed="excess",
    per="limit_chance",
    side="buyer",
    bounds=(-1.0, 1.0),
    group="information",
    compared=True,
)
MEASURES = (
    SUCCESS,
    EXPLICIT_END,
    DEAL,
    DEAL_WITH_ZONE,
    DEAL_WITHOUT_ZONE,
    UNKNOWN_ENDING,
    IN_ZONE,
    SELLER_SURPLUS,
    BUYER_SURPLUS,
    SELLER_CONCESSION,
    BUYER_CONCESSION,
    LIMIT_HITS,
    LIMIT_CHANCE,
    PEEKING,
    SELLER_PEEKING,
    BUYER_PEEKING,
)
"""In the order of a report's columns."""
