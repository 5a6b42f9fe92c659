"""The measures of craigslist.

An episode whose ending cannot be read has none of the outcome scores, so it counts in no rate of deals or success;
`unknown_ending_rate` says how many these are.
"""

from __future__ import annotations

from localsim.conversation.measures import Measure
from localsim.families.base import EXPLICIT_END, SUCCESS

MEASURES = (
    SUCCESS,
    EXPLICIT_END,
    Measure("deal_rate", "deal",
            "share of conversations that end in a deal; those whose ending cannot be read do not count",
            score="deal", kind="share", summed="episodes", group="goals", compared=True,
            published={"script": 0.94, "agents": 0.30, "agents-ft": 0.93}),
    Measure("deal_with_zone_rate", "deal with zone",
            "share of conversations that end in a deal where a price can meet both targets (sensitivity)",
            score="deal_with_zone", kind="share", summed="episodes", group="goals", compared=True),
    Measure("deal_without_zone_rate", "deal without zone",
            "share of conversations that end in a deal where no price can meet both targets (1 - specificity)",
            score="deal_without_zone", kind="share", summed="episodes", group="goals", compared=True),
    Measure("unknown_ending_rate", "unknown ending",
            "share of conversations whose ending the rules cannot read; they count in no rate of deals or success",
            score="unknown_ending", kind="share", summed="episodes", group="goals", compared=True),
    Measure("in_zone_rate", "in zone",
            "of the deals where both targets can be met, the share at a price that meets both",
            score="in_zone", kind="share", summed="episodes", group="goals"),
    Measure("seller_surplus", "seller surplus", "price above the seller’s target, as a part of the list price",
            score="surplus", side="seller", group="goals"),
    Measure("buyer_surplus", "buyer surplus", "price below the buyer’s target, as a part of the list price",
            score="surplus", side="buyer", group="goals"),
    Measure("seller_concession", "seller concession",
            "mean step down from one offer of the seller to the next, as a part of the list price",
            score="concession", side="seller", group="goals"),
    Measure("buyer_concession", "buyer concession",
            "mean step up from one offer of the buyer to the next, as a part of the list price",
            score="concession", side="buyer", group="goals"),
    Measure("limit_hits", "limit hits",
            "share of first offers at the other side’s target, or at the middle of both, before the other has named a "
            "price of its own",
            score="limit_hit", kind="share", group="information"),
    Measure("limit_chance", "hits by chance",
            "share of first offers that would be limit hits if the other side’s target were drawn anew",
            score="limit_chance", kind="share", group="information"),
    Measure("peeking", "peeking",
            "limit hits beyond chance: 0 for those who know only their own target, 1 if every first offer uses the "
            "other side’s",
            score="limit_hit", per="limit_chance", kind="share", summed="excess", group="information",
            bounds=(-1.0, 1.0), head=True,
            left_out="the first offer follows a price of the other side, or a guess would hit the other side’s target "
                     "in more than half of all cases"),
    Measure("seller_peeking", "seller peeking", "peeking in first offers of sellers",
            score="limit_hit", per="limit_chance", kind="share", summed="excess", side="seller", group="information",
            compared=True, bounds=(-1.0, 1.0)),
    Measure("buyer_peeking", "buyer peeking", "peeking in first offers of buyers",
            score="limit_hit", per="limit_chance", kind="share", summed="excess", side="buyer", group="information",
            compared=True, bounds=(-1.0, 1.0)),
)  # fmt: skip
"""In the order of a report's columns."""
