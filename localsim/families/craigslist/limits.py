"""Private limits of a bargain: how they are drawn, and if an offer shows that its speaker knows the other side's.

An offer at the other's limit proves nothing by itself, because a guess can hit it too. So each first offer is set
against the limits that this task could have given the other side at the same list price: a speaker who knows only its
own limit hits the true one no more often than these.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

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
