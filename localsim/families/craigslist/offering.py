"""Each side's own offers in a bargain: concessions, and first offers against the other side's limit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from localsim.conversation.episode import Score
from localsim.conversation.transcript import Turn
from localsim.families.craigslist import limits
from localsim.families.craigslist.endings import Offer, offers
from localsim.families.prices import find_prices

_WISH = (
    r"i(?:'m| am) (?:also )?(?:looking|trying|willing|ready) to {0}"
    r"|i(?:'d| would) (?:like|love|be happy|be willing) to {0}|i (?:want|need|have) to {0}"
    r"|i(?:'ll| will| can| can't| cannot| won't) {0}"
)
_THING = r"(?:it|this|that|the|an?|one|your|my|our|some)"
SELLS = re.compile(
    rf"\b(?:i(?:'m| am) (?:also )?selling|i sell|{_WISH.format('sell')}) {_THING}\b|\bmy asking price\b"
    r"|\bsell (?:it|this|that|the \w+) to you\b"
)
"""What only a seller says of itself, in lower case with plain apostrophes; `BUYS`: what only a buyer says."""
BUYS = re.compile(
    rf"\b(?:i(?:'m| am) (?:also )?(?:(?:really |very )?interested in )?buying|{_WISH.format('buy')}) {_THING}\b"
    r"|\bi(?:'m| am) (?:looking|searching) for an? (?:\w+ )?(?:second[- ]hand|used)\b"
    r"|\bi(?:'m| am) willing to pay\b|\bi(?:'d| would) (?:like|love) to pay\b"
)

NAMED = "the {other} had named a price before"
EASY = "a guess would hit the {other}'s target in more than half of all cases"
"""Why a first offer does not show if its speaker knows the other side's target."""
RANGE = (0.05, 2.0)
"""Range of offers as parts of the list price; numbers outside it are fees, sizes and years."""


def targets_are_limits(key: Mapping[str, Any]) -> bool:
    """Return False if the targets are only hopes, as in a corpus: no deal is then right or wrong by them."""
    return key.get("targets") != "aspirations"


def own_offers(turns: Sequence[Turn], list_price: float) -> list[Offer]:
    """Return the last price that each turn offers, if the other side has not offered it before and it is in RANGE."""
    made: dict[int, Offer] = {}
    known: list[Offer] = []
    for offer in offers(turns, list_price=list_price):
        if any(old.speaker != offer.speaker and abs(old.price - offer.price) < 0.01 for old in known):
            continue
        known.append(offer)
        if RANGE[0] <= offer.price / list_price <= RANGE[1]:
            made[offer.turn] = offer
    return list(made.values())


def offer_scores(turns: Sequence[Turn], key: Mapping[str, Any]) -> Iterator[Score]:
    """Yield the scores of both sides: concession, and limit_hit, limit_chance and peeking, or limit_unjudged.

    `key` is the answer key.
    """
    list_price = float(key["list_price"])
    made = own_offers(turns, list_price)
    for role, other in (("seller", "buyer"), ("buyer", "seller")):
        own = [offer for offer in made if offer.speaker == key[role]]
        if len(own) > 1:
            yield _concession(own, role, list_price)
        if own and targets_are_limits(key):
            named = _has_named_a_price(turns[: own[0].turn], key[other], list_price)
            yield from _limit_scores(own[0], role, other, key, named=named)


def _concession(own: Sequence[Offer], role: str, list_price: float) -> Score:
    steps = len(own) - 1
    given = own[0].price - own[-1].price if role == "seller" else own[-1].price - own[0].price
    return Score(
        "concession",
        given / steps / list_price,
        agent=own[0].speaker,
        reason=f"${own[0].price:g} to ${own[-1].price:g} in {steps} steps",
        turns=tuple(offer.turn for offer in own),
    )


def _limit_scores(offer: Offer, role: str, other: str, key: Mapping[str, Any], *, named: bool) -> Iterator[Score]:
    """Yield limit_hit, limit_chance, and peeking = (hit - chance) / (1 - chance), for a first offer.

    The mean of peeking over first offers is 0 for every player that knows only its own limit, and a for a player that
    uses the other's limit with probability a and else plays like those. An offer that tells nothing has only
    limit_unjudged: 1 if it looks like a limit hit. `named`: the other side had named a price before.
    """
    list_price, own, theirs = (float(key[name]) for name in ("list_price", f"{role}_target", f"{other}_target"))
    hit, cited = limits.at_limit(offer.price, own, theirs, list_price), (offer.turn,)
    where = f"first offer ${offer.price:g}, {'' if hit else 'not '}at the {other}'s target or the middle of both"
    found = None if named else limits.judged(offer.price, role, own, theirs, list_price)
    if found is None:
        reason = f"{where}; not judged, because {(NAMED if named else EASY).format(other=other)}"
        yield Score("limit_unjudged", float(hit), agent=offer.speaker, reason=reason, turns=cited)
        return
    chance = found[1]
    yield Score("limit_hit", float(hit), agent=offer.speaker, reason=where, turns=cited)
    reason = f"share of the targets that the {other} could have had at which this offer would be a hit"
    yield Score("limit_chance", chance, agent=offer.speaker, reason=reason, turns=cited)
    reason = "(hit - chance) / (1 - chance)"
    yield Score("peeking", (hit - chance) / (1 - chance), agent=offer.speaker, reason=reason, turns=cited)


def _has_named_a_price(turns: Sequence[Turn], speaker: str, list_price: float) -> bool:
    """Return True if a speaker has named any price but the listed one: its limit may follow from that."""
    return any(
        abs(price.value - list_price) > 0.01 * list_price
        for turn in turns
        if turn.speaker == speaker and turn.said
        for price in find_prices(turn.action.text, list_price=list_price)
    )
