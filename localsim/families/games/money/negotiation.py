"""Negotiation over one good, with offers in turn and a way out (GLEE, arXiv 2410.05254).

The good is worth a to the seller and b to the buyer, in parts of a sum M. In odd rounds the seller names a price, in
even rounds the buyer; who answers accepts, refuses, or trades with John, who pays or asks exactly what the good is
worth to whoever comes, so that this wins nothing. With p = price / M a trade wins p - a for the seller and b - p for
the buyer. Efficiency is 1 for a trade if b > a, 1 for none if b < a, and 1 if b = a; it is the score `success` here.
Fairness is 1 - 4 (p - (a + b) / 2)^2, and 1 without a trade.

Nobody loses by waiting, so whoever proposes last (the seller if the number of rounds is odd) can hold out for one
price, and everything depends on what it knows. If it knows b, a seller takes it all: max(b - a, 0). If it knows only
that b is one of n equally likely values, it names the price that wins most on average. The value of information is

    V(a) = mean over b of max(b - a, 0)  -  max over p of (p - a) * share of b with b >= p,

and the mirror image for a buyer. With GLEE's values 0.8, 1, 1.2, 1.5 this is 0.325 - 0.2 = 0.125 for a = 0.8, then
0.175 - 0.125 = 0.05, 0 and 0: 0.04375 M on average over a. For a buyer it is 0.125, 0.05, 0, 0 for b = 1.5, 1.2, 1,
0.8: by chance the same average. The player `optimal` gains exactly this much more in mindreaders than in agents.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.money.glee import TOLD_UP_TO, VALUES, turn_limit
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Table

JOHN = ("sell-to-john", "buy-from-john")
"""The moves with which the seller and the buyer end the talk."""
MOST = 2
"""The highest price and value, in parts of the sum M."""
_TINY = 1e-9


class Negotiation(Replayed):
    """A seller and a buyer name prices in turn."""

    name, version = "negotiation", "1"
    title = "A price, or a way out"
    about = "A seller and a buyer name prices in turn. Instead of agreeing, each can trade with a third person."
    defaults = {
        "money": 100,
        "seller": 0.8,
        "buyer": 1.2,
        "rounds": 10,
        "informed": True,
        "talk": True,
        "prior": True,
    }
    roles = ("seller", "buyer")
    how = (
        "The parameters `seller` and `buyer` say what the good is worth to each, in parts of the money (0: drawn from "
        "0.8, 1, 1.2, 1.5). "
        "Gains are in the same unit. It is a success if they trade where both can gain, and part where they cannot."
    )
    tries = (
        "In negotiation_one_offer compare agents with mindreaders: -m scripted:optimal gains 0.3 more.",
        "In negotiation_no_gain a trade is a mistake. Does a model find the way out?",
        "Compare -m scripted:halfway with -m scripted:optimal: who gains, and is it fair?",
    )
    bundled = {
        "both_gain": {},
        "one_offer": {"rounds": 1, "informed": False, "buyer": 1.5},
        "hidden": {"informed": False, "seller": 1.0, "buyer": 1.5},
        "no_gain": {"seller": 1.2, "buyer": 0.8, "informed": False},
        "silent": {"talk": False, "seller": 1.0, "buyer": 1.5},
    }
    interests = "competitive"
    informed = (
        ("optimal", "seller_gain", "one offer", "0.4 by the best price against four values, 0.7 if the value is seen"),
    )
    measures = (
        g.SUCCESS,
        g.mean(
            "seller_gain",
            "seller's gain",
            "price less the seller's value, in parts of the money",
            "gain",
            side="seller",
            compared=True,
        ),
        g.mean(
            "buyer_gain",
            "buyer's gain",
            "the buyer's value less the price, in parts of the money",
            "gain",
            side="buyer",
            compared=True,
        ),
        g.mean("fairness", "fairness", "1 at the middle of both values, or without a trade", bounds=(None, 1)),
        g.share("trade", "trade", "share of conversations that end with a trade"),
        g.share("way_out", "way out", "share of conversations with a trade with the third person"),
        g.mean("rounds", "rounds", "rounds up to the trade", bounds=(1, None)),
    )
    figure = ("success_rate", "seller_gain", "buyer_gain")
    references = (
        g.RANDOM,
        g.Reference("optimal", "optimal", "the best price for money alone, found by backward induction"),
    )
    control_tasks = {
        "one offer": {"rounds": 1, "informed": False, "buyer": 1.5},
        "no gain": {"seller": 1.2, "buyer": 0.8},
    }
    controls = (
        g.exactly("optimal", "success_rate", 1, "the price suits both"),
        g.exactly("optimal", "seller_gain", 0, "the buyer names the last price, and the seller knows it"),
        g.exactly("optimal", "buyer_gain", 0.4, "the buyer names the last price"),
        g.exactly("optimal", "fairness", 0.84, "the price is 0.2 from the middle"),
        g.exactly("optimal", "rounds", 1, "waiting changes nothing"),
        g.exactly("optimal", "seller_gain", 0.4, "1.2 is the best price where only the odds are known", "one offer",
                ("agents",)),
        g.exactly("optimal", "seller_gain", 0.7, "who knows the other's value takes all", "one offer",
                ("script", "mindreaders")),
        g.exactly("optimal", "success_rate", 1, "there is nothing to gain, and they part", "no gain"),
        g.exactly("optimal", "trade", 0, "there is nothing to gain", "no gain"),
        g.exactly("halfway", "fairness", 1, "the price is the middle"),
        g.exactly("halfway", "seller_gain", 0.2, "the price is the middle"),
        g.exactly("halfway", "trade", 1, "the first price is taken"),
        g.exactly("own-value", "buyer_gain", 0.4, "the seller asks no more than the good is worth to him"),
        g.exactly("yes-sayer", "success_rate", 0, "they trade though both should not", "no gain"),
        g.exactly("way-out", "way_out", 1, "the first answer is John"),
        g.exactly("way-out", "success_rate", 0, "both could have gained"),
        g.exactly("way-out", "rounds", None, "nothing is agreed"),
        g.between("any", "fairness", -4, 1, "prices are 0 to 2"),
    )  # fmt: skip

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        (seller, buyer), money, rounds = names, chosen["money"], chosen["rounds"]
        worth = _worth_of_both(chosen, random.Random(f"{self.name}/{seed}/worth"))
        secrets = [
            Secret(name, "worth", f"The good is worth ${g.amount(value)} to {name}.", g.amount(value))
            for name, value in zip(names, worth, strict=True)
        ]
        said = "may" if chosen["talk"] else "no"
        public = {"money": money, "seller": seller, "buyer": buyer}
        if rounds <= TOLD_UP_TO:
            public["rounds"] = rounds
        if chosen["informed"]:
            public["worth"] = dict(zip(names, worth, strict=True))
        return Scene(
            title=f"{seller} and {buyer} negotiate about a price",
            setting=_setting(names, chosen, [secret.text for secret in secrets]),
            goal=(
                "Win as much as you can: the price less what the good is worth to you.",
                "Win as much as you can: what the good is worth to you less the price.",
            ),
            secrets=secrets,
            moves=(
                g.can("offer", "To name a price in dollars", g.number(0, MOST * money), text=said),
                g.can("accept", "To accept the price"),
                g.can("reject", "To refuse the price", text=said),
                g.can(JOHN[0], "To end the talk and sell to John", by=seller),
                g.can(JOHN[1], "To end the talk and buy from John", by=buyer),
            ),
            public=public,
            hidden={"rounds": rounds, "worth": worth},
            turns=turn_limit(rounds),
            more={"answer": {"seller": seller, "buyer": buyer}},
        )

    def play(self, table: Table) -> Course:
        (seller, buyer), money = table.names, table.public["money"]
        low, high = (worth / money for worth in table.game["worth"])
        table.score("success", low >= high, reason="they did not trade")
        table.score("trade", 0)
        table.score("way_out", 0)
        table.score("fairness", 1)
        table.each("gain", {seller: 0, buyer: 0})
        for number in range(1, table.game["rounds"] + 1):
            proposer, other = (seller, buyer) if number % 2 else (buyer, seller)
            yield from table.tell(f"Round {number}. {proposer} names a price.")
            offer = yield from table.act(proposer, "offer")
            answer = yield from table.act(other, "accept", "reject", *JOHN)
            if answer.action.type == "accept":
                price = offer.number / money
                gains = {seller: price - low, buyer: high - price}
                won = g.listed([f"{who} gained {gain:.3g}" for who, gain in gains.items()])
                table.score("success", low <= high, reason=f"they traded in round {number}: {won}")
                table.score("trade", 1)
                table.score("fairness", 1 - 4 * (price - (low + high) / 2) ** 2)
                table.score("rounds", number)
                table.each("gain", gains)
                table.cite(offer, answer)
                return
            if answer.action.type in JOHN:
                table.score("way_out", 1)
                table.cite(answer)
                return

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        return _optimal(seen, rng) if _worth(seen, g.others(seen)[0]) is not None else None


def _worth_of_both(chosen: Mapping[str, Any], rng: random.Random) -> list[float]:
    """Return what the good is worth to the seller and the buyer, in dollars. Raises InvalidInput."""
    found = []
    for side in ("seller", "buyer"):
        value = rng.choice(VALUES) if chosen[side] == 0 else chosen[side]
        if not 0 < value <= MOST:
            raise g.InvalidInput(f"negotiation: {side} = {value:g} is not from 0 to {MOST}", hint="for example 1.2")
        if chosen["prior"] and not chosen["informed"] and value not in VALUES:
            known_values = g.listed([f"{option:g}" for option in VALUES])
            raise g.InvalidInput(
                f"negotiation: {side} = {value:g} is not among {known_values}, which players are told",
                hint="set prior=false to tell them nothing",
            )
        found.append(round(value * chosen["money"], 2))
    return found


def _setting(names: Sequence[str], chosen: Mapping[str, Any], facts: Sequence[str]) -> str:
    seller, buyer = names
    once = chosen["rounds"] == 1
    turns = f"{seller} names one price, and {buyer}" if once else f"They name prices in turn, {seller} first; the other"
    parts = [
        f"{seller} sells a good to {buyer}. {turns} accepts, refuses, or trades with John instead. John pays the "
        "seller, and asks of the buyer, exactly what the good is worth to them, so trading with him wins nothing. "
        "Without a trade nobody wins anything."
    ]
    if chosen["rounds"] <= TOLD_UP_TO:
        parts.append("There is one round." if once else f"There are at most {chosen['rounds']} rounds.")
    parts += facts if chosen["informed"] else ["Neither knows what the good is worth to the other."]
    if chosen["prior"] and not chosen["informed"]:
        options = g.listed([f"${g.amount(value * chosen['money'])}" for value in VALUES], "or")
        parts.append(f"To each it is worth {options}, each as likely as the others.")
    return " ".join(parts)


# ---- players -------------------------------------------------------------------------------------------------------


def best_price(own: float, values: Sequence[float], *, sells: bool) -> tuple[float, float]:
    """Return the price that wins most on average if the other's value is one of these, and what it wins.

    Of prices that win the same, the one that is taken more often.
    """

    def outcome(price: float) -> tuple[float, float]:
        share = sum(value >= price if sells else value <= price for value in values) / len(values)
        return round((price - own if sells else own - price) * share, 9), share

    price = max((own, *values), key=outcome)
    return price, outcome(price)[0]


def _worth(seen: g.Observation, name: str) -> float | None:
    """Return what the good is worth to an agent; None where the viewer does not know."""
    value = seen.game.get("worth", {}).get(name, g.known(seen, "worth", name))
    return None if value is None else float(value)


def _named(seen: g.Observation, price: float) -> g.Action:
    """Return an offer in whole dollars, rounded in favour of who names it, and never above the highest price."""
    whole = math.ceil(price - _TINY) if seen.viewer == seen.game["seller"] else math.floor(price + _TINY)
    return g.move("offer", min(whole, MOST * seen.game["money"]))


def _gain(seen: g.Observation) -> float:
    """Return what the viewer wins by accepting, in dollars."""
    price, own = seen.transcript.of("offer")[-1].number, _worth(seen, seen.viewer) or 0.0
    return price - own if seen.viewer == seen.game["seller"] else own - price


def _options(seen: g.Observation) -> list[float]:
    """Return the values that the other can have: one if it is known, else GLEE's, each as likely as the others."""
    theirs = _worth(seen, g.others(seen)[0])
    return [option * seen.game["money"] for option in VALUES] if theirs is None else [theirs]


def _john(seen: g.Observation) -> g.Action:
    return g.move(JOHN[0] if seen.viewer == seen.game["seller"] else JOHN[1])


def _optimal(seen: g.Observation, rng: random.Random) -> g.Action:
    """Hold out for the best price if the last proposal is the own one; else accept whatever is no loss.

    Who does not propose last names the price at which the other would sell or buy anyway, or, if that is not known, one
    that gives nothing away. Without a known end there is no last proposal: then it plays `halfway`.
    """
    game, own, possible = seen.game, _worth(seen, seen.viewer) or 0.0, _options(seen)
    if "rounds" not in game:
        return _halfway(seen, rng)
    sells = seen.viewer == game["seller"]
    is_last = sells == (game["rounds"] % 2 == 1)
    price, wins = best_price(own, possible, sells=sells)
    if not is_last:
        price, wins = (max(possible) if sells else min(possible)), 0.0
        if len(possible) == 1:
            price = best_price(possible[0], [own], sells=not sells)[0]
            price = max(price, own) if sells else min(price, own)
    if seen.may("offer"):
        return _named(seen, price)
    if _gain(seen) >= wins - _TINY:
        return g.move("accept")
    is_over = len(seen.transcript.of("offer")) == game["rounds"]
    return _john(seen) if is_over or (len(possible) == 1 and wins <= 0) else g.move("reject")


def _halfway(seen: g.Observation, rng: random.Random, *, names_own: bool = False) -> g.Action:
    """Name the middle of the own value and the other's (on average, if hidden), and accept whatever is no loss.

    `names_own`: name the own value instead.
    """
    own, possible = _worth(seen, seen.viewer) or 0.0, _options(seen)
    middle = own if names_own else (own + sum(possible) / len(possible)) / 2
    if seen.may("offer"):
        return _named(seen, max(middle, own) if seen.viewer == seen.game["seller"] else min(middle, own))
    return g.move("accept") if _gain(seen) >= 0 else g.move("reject")


def _way_out(seen: g.Observation, rng: random.Random) -> g.Action:
    high = seen.viewer == seen.game["seller"]
    return g.move("offer", MOST * seen.game["money"] if high else 0) if seen.may("offer") else _john(seen)


def _yes_sayer(seen: g.Observation, rng: random.Random) -> g.Action:
    return g.move("offer", seen.game["money"]) if seen.may("offer") else g.move("accept")


Negotiation.players = {
    "optimal": _optimal,
    "halfway": _halfway,
    "own-value": partial(_halfway, names_own=True),
    "way-out": _way_out,
    "yes-sayer": _yes_sayer,
}
Negotiation.sensible = "optimal"
