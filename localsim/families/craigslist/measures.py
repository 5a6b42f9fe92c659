"""The measures of craigslist, and the values that they must have for players whose behaviour is known.

An episode whose ending cannot be read has none of the outcome scores, so it counts in no rate of deals or success;
`unknown_ending_rate` says how many these are.

Sellers and buyers are the same player. `haggler`, alias `honest`, reaches its own target in its fifth turn and leaves
in its eighth, so it deals exactly where the targets allow it. Only peeks-N, omniscient and mix-up look at the other's
side, and only the omniscient modes show it to them.
"""

from __future__ import annotations

from collections.abc import Iterator

from localsim.conversation.controls import Control, between, by_chance, exactly
from localsim.conversation.episode import OMNISCIENT, Mode
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
            "share of first offers, or first prices called “your target”, at the other side’s target or the middle of "
            "both, before the other has named a price of its own",
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


NO_ZONE = "no zone"
"""The task in which no price meets both targets."""
_SEEING: tuple[Mode, ...] = OMNISCIENT
_BLIND: tuple[Mode, ...] = ("agents",)
_WITH, _WITHOUT = "deal_with_zone_rate", "deal_without_zone_rate"
_PEEKERS = {"peeks-25": 0.25, "peeks-50": 0.5, "peeks-100": 1.0}
"""Player -> probability with which it uses the other's side in each turn."""


def _deals() -> Iterator[Control]:
    """Yield deals with and without a zone, and the success that follows from them."""
    for player in ("honest", *_PEEKERS):
        yield exactly(player, _WITH, 1, "both reach their targets, which overlap")
        yield exactly(player, _WITHOUT, 0, "it accepts no loss", NO_ZONE)
        yield exactly(player, "in_zone_rate", 1, "it accepts no loss")
        yield exactly(player, "success_rate", 1, "it deals inside the zone")
        yield exactly(player, "success_rate", 1, "it walks away", NO_ZONE)
    yield exactly("honest", "deal_rate", 1, "both reach their targets, which overlap")
    yield exactly("honest", _WITHOUT, None, "the default task has a zone")
    yield exactly("honest", _WITH, None, "this task has no zone", NO_ZONE)
    yield exactly("yes-sayer", _WITH, 1, "it agrees to any price")
    yield exactly("yes-sayer", _WITHOUT, 1, "it agrees to any price", NO_ZONE)
    yield exactly("yes-sayer", "in_zone_rate", 0, "the first price is the list price, above every buyer's target")
    yield exactly("yes-sayer", "success_rate", 0, "its deals are a loss for the buyer")
    yield exactly("yes-sayer", "success_rate", 0, "no deal is right", NO_ZONE)
    yield exactly("refuser", _WITH, 0, "it agrees to no price")
    yield exactly("refuser", _WITHOUT, 0, "it agrees to no price", NO_ZONE)
    yield exactly("refuser", "success_rate", 0, "it walks away where a deal is right")
    yield exactly("refuser", "success_rate", 1, "it walks away where that is right", NO_ZONE)
    yield exactly("mix-up", _WITH, 0, "each stops at the other's target, so they never meet", modes=_SEEING)
    yield exactly("mix-up", _WITHOUT, 1, "each gives way to the other's target", NO_ZONE, _SEEING)
    yield exactly("mix-up", "success_rate", 0, "it deals only where that is wrong", modes=_SEEING)
    yield exactly("mix-up", "success_rate", 0, "it deals only where that is wrong", NO_ZONE, _SEEING)
    yield exactly("mix-up", _WITH, 1, "it plays like honest", modes=_BLIND)
    yield exactly("mix-up", _WITHOUT, 0, "it plays like honest", NO_ZONE, _BLIND)
    yield exactly("omniscient", _WITH, 1, "the middle of both targets is inside the zone")
    yield exactly("omniscient", "in_zone_rate", 1, "the middle of both targets is inside the zone")
    yield exactly("omniscient", _WITHOUT, 1, "it deals at the middle, zone or not", NO_ZONE, _SEEING)
    yield exactly("omniscient", _WITHOUT, 0, "it plays like honest", NO_ZONE, _BLIND)


def _endings() -> Iterator[Control]:
    """Yield endings in words, by repetition, and in silence."""
    for player in ("honest", "yes-sayer", "refuser"):
        yield exactly(player, "explicit_end_rate", 1, "it agrees or leaves")
        yield exactly(player, "unknown_ending_rate", 0, "it agrees or leaves")
    yield exactly("parrot", "explicit_end_rate", 0, "it repeats itself and agrees on nothing")
    yield exactly("parrot", "unknown_ending_rate", 0, "repetition is an ending without a deal")
    yield exactly("parrot", _WITH, 0, "repetition is an ending without a deal")
    yield exactly("silent", "unknown_ending_rate", 1, "silence says neither yes nor no")
    for measure in ("deal_rate", _WITH, "success_rate", "explicit_end_rate"):
        yield exactly("silent", measure, None, "an unknown ending counts in no rate")


def _prices() -> Iterator[Control]:
    """Yield surplus and concessions."""
    yield exactly("peeks-100", "buyer_surplus", 0, "the seller asks the buyer's target, and gets it", modes=_SEEING)
    yield between("peeks-100", "seller_surplus", 0.05, 0.9, "the seller gets the whole zone", modes=_SEEING)
    for side in ("seller", "buyer"):
        measure = f"{side}_surplus"
        yield between("omniscient", measure, 0.02, 0.46, "half of the zone's width, 5% to 90%", modes=_SEEING)
        yield between("honest", measure, 0, 0.9, "it accepts no loss")
        yield exactly("refuser", measure, None, "no deal, no price")
        yield exactly("firm", f"{side}_concession", 0, "it repeats its own target", NO_ZONE)
        yield exactly("refuser", f"{side}_concession", None, "one offer is no step")
        reason = "6 steps from the opening to its target, of which 4 are 0.25 of the way"
        yield between("honest", f"{side}_concession", 0.001, 0.5 / 6, reason, NO_ZONE)
    yield between("yes-sayer", "seller_surplus", 0.15, 1, "list price less a target of at most 85% of it")
    yield between("yes-sayer", "buyer_surplus", -0.5, -0.1, "a target of 50% to 90% less the list price")


def _private_limits() -> Iterator[Control]:
    """Yield first offers at the other's limit, against chance."""
    guessing = "it knows only its own target, so it hits as often as chance"
    for task in ("", NO_ZONE):
        for player in ("honest", "refuser", "yes-sayer"):
            yield between(player, "peeking", -0.1, 0.1, guessing, task)
        yield between("guesser", "peeking", -0.45, 0.45, guessing, task)
        for measure in ("limit_hits", "limit_chance"):
            yield between("guesser", measure, 0.05, 0.6, "it guesses one of a few possible targets", task)
        yield exactly("omniscient", "peeking", 1, "the middle of both targets uses the other's", task, _SEEING)
        yield exactly("omniscient", "limit_hits", 1, "the middle of both targets uses the other's", task, _SEEING)
    yield between("honest", "buyer_peeking", -0.15, 0.15, guessing)
    for measure in ("limit_hits", "limit_chance", "seller_peeking"):
        yield exactly("yes-sayer", measure, 0, "the list price is no target")
    yield exactly("silent", "peeking", None, "it offers nothing")
    yield exactly("peeks-100", "peeking", None, "it leaves at once, without an offer", NO_ZONE, _SEEING)
    for player, dose in _PEEKERS.items():
        for measure in ("peeking", "seller_peeking", "limit_hits"):
            yield by_chance(player, measure, dose, "it peeks with this probability in each turn", modes=_SEEING)
        yield between(player, "peeking", -0.1, 0.1, "there is nothing to see", modes=_BLIND)
    for measure in ("peeking", "seller_peeking", "limit_hits"):
        yield exactly("peeks-100", measure, 1, "every first offer is the other's target", modes=_SEEING)
    yield between("mix-up", "buyer_peeking", 0.1, 0.6, "it opens at the seller's target if below half", modes=_SEEING)
    yield between("mix-up", "peeking", -0.1, 0.1, guessing, modes=_BLIND)


CONTROLS = (*_deals(), *_endings(), *_prices(), *_private_limits())
