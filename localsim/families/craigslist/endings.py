"""The ending of a bargain, read from its words: a deal and its price, no deal, or unknown.

Every turn is read into a `Reading` (reading.py). `Bargain` (bargain.py) then tracks each side's standing offer,
agreements, revocations and refusals. scripts/measure_endings.py measures how often the result agrees with labels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from localsim.conversation.transcript import Turn, plain
from localsim.families.craigslist.bargain import Bargain
from localsim.families.craigslist.reading import read_turn
from localsim.families.prices import find_prices
from localsim.families.settling import NOTHING, Stated

_MIDDLE = re.compile(r"\b(?:middle|half|halfway|split|between)\b")
EndingKind = Literal["deal", "no_deal", "ran_out", "stale", "unknown"]


@dataclass(frozen=True)
class Ending:
    """The ending of a bargain. `price`: the agreed total in dollars, for a deal; `turn`: index of the deciding turn.

    Words alone tell neither `ran_out` (the limit of turns was reached) nor `stale` (nothing new was said any more).
    """

    kind: EndingKind
    price: float | None
    turn: int | None
    reason: str


@dataclass(frozen=True)
class Offer:
    """A price in dollars that `speaker` offers in turn `turn`."""

    turn: int
    speaker: str
    price: float


def offers(turns: Sequence[Turn], *, list_price: float) -> list[Offer]:
    """Return every price that a speaker offers, in order, in dollars; a price said twice in a turn counts once."""
    bargain, before = Bargain(list_price, ""), ""
    offered = []
    for turn in turns:
        reading = read_turn(turn, list_price, before)
        for price in dict.fromkeys(bargain.own_offers(turn.speaker, reading)):
            offered.append(Offer(turn.index, turn.speaker, price))
        bargain.take(turn, reading)
        before = turn.action.text
    return offered


def bargain_ending(turns: Sequence[Turn], *, seller: str, buyer: str, list_price: float) -> Ending:
    """Return the ending of a bargain over an item listed at `list_price` dollars between `seller` and `buyer`."""
    bargain, before = Bargain(list_price, seller), ""
    for turn in turns:
        if turn.speaker in (seller, buyer):
            bargain.take(turn, read_turn(turn, list_price, before))
            before = turn.action.text
    return _ending_of(bargain)


def settled(stated: Stated, turns: Sequence[Turn], read: Ending, list_price: float) -> Ending:
    """Return the ending after a statement; `read` is what the words tell.

    A price counts if one of them said it and the other said something then or later, or if it lies between two offers
    and they spoke of the middle: so nobody makes a deal alone.
    """
    if stated.what == NOTHING:
        return Ending("no_deal", None, stated.turn, "no deal, as one of them states at the end")
    price = float(stated.what.removeprefix("$"))
    if read.kind == "deal" and read.price is not None and abs(read.price - price) < 1:
        return read
    named = ((turn.index, find_prices(turn.action.text, list_price=list_price)) for turn in turns)
    said = next((index for index, prices in named if price in [each.value for each in prices]), None)
    answered = said is not None and any(turn.index >= said for turn in turns if turn.speaker != stated.speaker)
    made = [offer.price for offer in offers(turns, list_price=list_price)]
    split = any(_MIDDLE.search(plain(turn.action.text)) for turn in turns)
    if answered or (split and made and min(made) < price < max(made)):
        return Ending("deal", price, stated.turn, f"agreed on ${price:g}, as one of them states at the end")
    return Ending("unknown", None, stated.turn, f"${price:g} is stated at the end, and the talk did not come to it")


def _ending_of(bargain: Bargain) -> Ending:
    """Return the ending if the conversation stops here."""
    if bargain.conflict is not None:
        return Ending("unknown", None, bargain.conflict, "the two sides state different prices")
    if bargain.agreed:
        price, turn = bargain.agreed
        return Ending("deal", round(price, 2), turn, f"agreed on ${price:g}")
    if bargain.ended:
        return Ending("no_deal", None, bargain.ended[0], bargain.ended[2])
    return Ending("unknown", None, None, "the conversation stops without agreement or refusal")
