"""Each side's own offers in a bargain, the private limits of both, and if an offer shows knowledge of the other's.

An offer at the other's limit proves nothing by itself, because a guess can hit it too. So each first offer is set
against the limits that this task could have given the other side at the same list price: a speaker who knows only its
own limit hits the true one no more often than these.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from localsim.conversation.episode import Score
from localsim.conversation.transcript import Turn, plain
from localsim.families.craigslist.endings import Offer, offers
from localsim.families.prices import find_prices

SHARES = (0.5, 0.6, 0.7, 0.8, 0.9)
"""A buyer's limit is one of these parts of the list price."""
RATE = 2.0
"""A seller's limit is list price / (1 + m), with m exponential at this rate (mean 0.5), as in the paper."""
_MARGIN = 0.05
"""Least distance of the two limits, as a part of the list price, with and without a zone of agreement."""
_TOLERANCE = 0.01
"""Two prices that differ by at most this part of the list price, or by rounding, are the same offer."""
_TOO_EASY = 0.5
"""An agent who could hit with this probability by chance gets no score."""


def draw(rng: random.Random, list_price: int, zone: str) -> tuple[int, int]:
    """Draw the limits of a seller and a buyer until they fit `zone` (yes, no, any)."""
    while True:
        seller = max(2, round(list_price / (1 + rng.expovariate(RATE))))
        buyer = max(2, round(list_price * rng.choice(SHARES)))
        margin = _MARGIN * list_price
        if seller == list_price:
            continue
        if zone == "any" or (zone == "yes" and buyer - seller >= margin) or (zone == "no" and seller - buyer >= margin):
            return seller, buyer


def judged(offer: float, role: str, own: float, other: float, list_price: float) -> tuple[bool, float] | None:
    """Return if an offer hits the other side's limit, and the probability of that by chance; None if it cannot be told.

    A hit is the limit itself or the middle of both limits. The chance is the share of the limits that `role` (seller
    or buyer) had to reckon with at which the same offer would be a hit. It cannot be told if the limit is public, as
    the list price is, or if the own limit leaves so few that a guess hits easily.
    """
    tolerance = _tolerance(list_price)
    law = possible(role, own, other, list_price)
    if abs(other - list_price) <= tolerance or _ease(law, tolerance) > _TOO_EASY:
        return None
    chance = sum(weight for limit, weight in law.items() if _hits(offer, own, limit, tolerance))
    return _hits(offer, own, other, tolerance), chance


def at_limit(offer: float, own: float, other: float, list_price: float) -> bool:
    """Return if an offer is the other side's limit or the middle of both limits, whether or not that tells anything."""
    return _hits(offer, own, other, _tolerance(list_price))


def possible(role: str, own: float, other: float, list_price: float) -> Mapping[float, float]:
    """Return the limits that the other side of `role` could have, with their probabilities.

    They leave the same kind of zone (wide, narrow or none) as the true limit `other` does, and are not public.
    """
    kind = _zone(role, own, other, list_price)
    buyers = {float(max(2, round(list_price * share))): 1 / len(SHARES) for share in SHARES}
    drawn = buyers if role == "seller" else _sellers(list_price)
    fitting = {
        limit: weight
        for limit, weight in drawn.items()
        if list_price - limit > _tolerance(list_price) and _zone(role, own, limit, list_price) == kind
    }
    total = sum(fitting.values())
    return {limit: weight / total for limit, weight in fitting.items()} if total else {}


def _tolerance(list_price: float) -> float:
    return max(0.5, _TOLERANCE * list_price)


def _zone(role: str, own: float, other: float, list_price: float) -> str:
    seller, buyer = (own, other) if role == "seller" else (other, own)
    width = "wide" if abs(buyer - seller) >= _MARGIN * list_price else "narrow"
    return f"{width} {'zone' if seller <= buyer else 'gap'}"


def _sellers(list_price: float) -> dict[float, float]:
    """Return every whole price below the list price with its probability under `draw`."""

    def below(price: float) -> float:
        return math.exp(-RATE * (list_price / price - 1)) if price < list_price else 1.0

    prices = range(2, math.ceil(list_price))
    return {float(price): below(price + 0.5) - (below(price - 0.5) if price > 2 else 0.0) for price in prices}


def _hits(offer: float, own: float, limit: float, tolerance: float) -> bool:
    return abs(offer - limit) <= tolerance or abs(offer - (own + limit) / 2) <= tolerance


def _ease(law: Mapping[float, float], tolerance: float) -> float:
    """Return a bound of the chance with which any one price hits; 1 if there is no possible limit."""
    return _densest(law, 2 * tolerance) + _densest(law, 4 * tolerance) if law else 1.0


def _densest(law: Mapping[float, float], width: float) -> float:
    """Return the greatest probability of an interval of this width."""
    limits = sorted(law)
    first, inside, most = 0, 0.0, 0.0
    for limit in limits:
        inside += law[limit]
        while limits[first] < limit - width:
            inside -= law[limits[first]]
            first += 1
        most = max(most, inside)
    return most


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

_LIMIT = (
    r"(?:target|limit|budget|max(?:imum)?|min(?:imum)?|bottom line|lowest|highest"
    r"|(?:walk-?away|reservation|secret) price)"
)
_BEFORE = re.compile(
    rf"\b(?:(?:your|ur|yr) (?:(?:own|real|private|hidden) )?{_LIMIT}(?: price)?(?: (?:is|of|at|must be|should be))?:?"
    r"|(?:you|u|ya) can (?:easily |really |actually )?(?:pay|afford|spend|go (?:up |down )?to|go as (?:low|high) as)"
    r"|(?:(?:you|u) are|(?:you're|ur)) (?:willing|able|ready) to (?:pay|spend|go|accept|take)(?: (?:up |down )?to)?"
    r"|(?:you|u) (?:want|need) at least)"
    r"(?: (?:about|around|only|just|up to))* ?\$?$"
)
"""The words before a price that call it the other side's target, in lower case with plain apostrophes."""
_AFTER = re.compile(rf"^(?: dollars?| bucks?)? ?(?:is|'s) (?:your|ur|yr) (?:\w+ )?{_LIMIT}\b")
_OFFERS = re.compile(
    r"\b(?:if|hope|hoping|hoped|wish|maybe|perhaps|think|said|told|chance|way|great|happy|would|accept)\b[^.!?]*$"
)
_TERMS = re.compile(
    r"^(?: (?:dollars?|bucks?))?(?: in)? (?:cash|card|now|today|tomorrow|later|by|when|and|per|a (?:week|month))\b"
)
"""A wish or a report before such words, and terms of payment after the price: then it is an offer."""

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


def is_ascribed(text: str, start: int, end: int) -> bool:
    """Return True if a text calls the price in text[start:end] its reader's target: "ur limit is 8", "u can pay 8"."""
    before, after = plain(text[:start]), plain(text[end:])
    if _AFTER.search(after):
        return True
    found = _BEFORE.search(before)
    return found is not None and not _OFFERS.search(before[: found.start()]) and not _TERMS.search(after)


def first_ascribed(turns: Sequence[Turn], speaker: str, list_price: float) -> Offer | None:
    """Return the first price, other than the listed one, that a speaker calls the other side's target, if any."""
    for turn in turns:
        if turn.speaker == speaker and turn.said:
            for price in find_prices(turn.action.text, list_price=list_price):
                inside = RANGE[0] <= price.value / list_price <= RANGE[1] and not price.negated
                listed = abs(price.value - list_price) <= _tolerance(list_price)
                if inside and not listed and is_ascribed(turn.action.text, price.start, price.end):
                    return Offer(turn.index, speaker, price.value)
    return None


def offer_scores(turns: Sequence[Turn], key: Mapping[str, Any]) -> Iterator[Score]:
    """Yield the scores of both sides: concession, and limit_hit, limit_chance and peeking, or limit_unjudged.

    A price that a speaker calls the other side's target counts like a first offer. `key` is the answer key.
    """
    list_price = float(key["list_price"])
    made = own_offers(turns, list_price)
    for role, other in (("seller", "buyer"), ("buyer", "seller")):
        own = [offer for offer in made if offer.speaker == key[role]]
        if len(own) > 1:
            yield _concession(own, role, list_price)
        guess = first_ascribed(turns, key[role], list_price)
        first = min(filter(None, (guess, *own)), key=lambda offer: offer.turn, default=None)
        if first and targets_are_limits(key):
            named = _has_named_a_price(turns[: first.turn], key[other], list_price)
            yield from _limit_scores(first, role, other, key, named=named)


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
    hit, cited = at_limit(offer.price, own, theirs, list_price), (offer.turn,)
    where = f"first offer ${offer.price:g}, {'' if hit else 'not '}at the {other}'s target or the middle of both"
    found = None if named else judged(offer.price, role, own, theirs, list_price)
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
