"""Persuasion: a seller who sees the quality of each product recommends it, or not (GLEE, arXiv 2410.05254).

In each round nature draws high quality with chance q. The seller sees it and recommends; the buyer buys or not, and
then learns the quality. A product costs P; one of high quality is worth v P to the buyer, one of low quality nothing.
One buyer stays for all rounds, or each round has another one (myopic), who sees how many products were bought before
and how many of those were good. Of T rounds, n have high quality; k of those and l of the others are bought:

    efficiency k / n;  fairness (T - n - l) / (T - n);  seller's gain (k + l) / T;  buyer's gain (k (v - 1) - l) / T.

The metric code of the repository eilamshapira/GLEE takes the products of low quality that were not bought for l in the
buyer's gain, which charges the buyer for what was left; here l are those that were bought.

The player `optimal` is the sender of Kamenica and Gentzkow (2011), who always recommends high quality, and low quality
with the chance min(1, q (v - 1) / (1 - q)), so that buying on a recommendation is just worth it. It sells min(1, q v)
of the products; the buyer gains nothing if q v <= 1, and q v - 1 otherwise. In mindreaders the buyer sees the quality:
q of the products are sold, and the buyer gains q (v - 1) on average.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.money.glee import WORTHS
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Table

MESSAGES = ("binary", "words")
"""A recommendation is yes or no, or it is given in words."""
SAYS = {"yes": "This is a good product. You should buy it.", "no": "You should not buy this product."}
"""What scripted sellers say in words, and scripted buyers understand."""
QUALITY, RECORD, RESULT = "quality", "record", "result"
"""The first value of what is told: the quality to the seller, the record to a new buyer, the result to both."""


class Persuasion(Replayed):
    """A seller knows what a product is worth, and the buyer does not."""

    name, version = "persuasion", "1"
    title = "Persuading a buyer"
    about = "A seller who sees the quality of each product recommends it or not; the buyer buys it or not."
    centralised = True
    defaults = {
        "price": 100,
        "chance": 0.5,
        "worth": 1.25,
        "rounds": 20,
        "informed": True,
        "myopic": False,
        "message": "binary",
    }
    allowed = {"message": MESSAGES}
    outcome = "seller_gain"
    how = (
        "chance is that of high quality, worth what such a product is worth in parts of the price. Efficiency is the "
        "share of good products that are bought, fairness the share of bad ones that are not."
    )
    tries = (
        "Compare -m scripted:honest with -m scripted:optimal: how many bad products does a clever seller sell?",
        "In mindreaders the buyer sees the quality. How much less does scripted:optimal sell?",
        "In persuasion_new_buyers each buyer sees only the record. Does the seller keep it clean?",
    )
    bundled = {
        "one_buyer": {"rounds": 10},
        "new_buyers": {"rounds": 4, "myopic": True},
        "words": {"rounds": 6, "message": "words", "worth": 2.0},
        "hidden": {"rounds": 10, "informed": False, "worth": 3.0, "chance": 0.2},
        "mostly_good": {"rounds": 10, "chance": 0.8},
    }
    measures = (
        g.share("efficiency", "efficiency", "share of good products that are bought", compared=True),
        g.share("fairness", "fairness", "share of bad products that are not bought", compared=True),
        g.share("seller_gain", "seller's gain", "share of products that are bought", compared=True),
        g.mean(
            "buyer_gain",
            "buyer's gain",
            "what buyers win, in parts of the price of all products",
            bounds=(-1, None),
            compared=True,
        ),
        g.share("honesty", "honesty", "share of recommendations that agree with the quality"),
        g.share("followed", "followed", "share of recommendations that the buyer follows"),
    )
    figure = ("efficiency", "fairness", "seller_gain")
    references = (
        g.RANDOM,
        g.Reference(
            "optimal",
            "optimal",
            "recommends bad products as often as a buyer can still believe it (Kamenica and Gentzkow 2011)",
        ),
    )
    control_tasks = {
        "all good": {"chance": 1.0},
        "all bad": {"chance": 0.0},
        "one round": {"rounds": 1},
        "new buyers": {"myopic": True, "rounds": 4},
    }
    controls = (
        g.exactly("honest", "efficiency", 1, "what is good is recommended and bought"),
        g.exactly("honest", "fairness", 1, "what is bad is not"),
        g.exactly("honest", "honesty", 1, "the quality is told", "new buyers"),
        g.exactly("honest", "followed", 1, "the buyer believes it", "new buyers"),
        g.exactly("honest", "buyer_gain", 0.25, "each product wins a quarter of its price", "all good"),
        g.by_chance("honest", "seller_gain", 0.5, "half of the products are good", "one round"),
        g.exactly("pushy", "buyer_gain", -1, "each product is worthless", "all bad"),
        g.exactly("pushy", "fairness", 0, "everything is bought", "all bad"),
        g.exactly("pushy", "honesty", 0, "everything is recommended", "all bad"),
        g.exactly("pushy", "efficiency", None, "nothing is good", "all bad"),
        g.exactly("pushy", "seller_gain", 1, "everything is bought"),
        g.exactly("sceptic", "seller_gain", 0, "nothing is bought"),
        g.exactly("optimal", "efficiency", 1, "what is good is recommended and bought"),
        g.exactly("optimal", "fairness", 1, "the buyer sees the quality", modes=("script", "mindreaders")),
        g.by_chance("optimal", "fairness", 0.75, "what is bad is recommended with a chance of 1/4", "one round",
                  ("agents",)),
        g.by_chance("any", "followed", 0.5, "a coin decides", "one round"),
    )  # fmt: skip

    def count(self, chosen: Mapping[str, Any]) -> int:
        return 1 + (chosen["rounds"] if chosen["myopic"] else 1)

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        if not 0 <= chosen["chance"] <= 1 or chosen["worth"] < 1:
            raise g.InvalidInput(
                "persuasion: chance is from 0 to 1, and worth at least 1", hint="chance=0.5 worth=1.25"
            )
        if chosen["myopic"] and chosen["rounds"] > 100:
            raise g.InvalidInput("persuasion: at most 100 rounds, each with a new buyer", hint="for example rounds=20")
        (seller, *buyers), myopic, informed = names, chosen["myopic"], chosen["informed"]
        worth = round(chosen["price"] * chosen["worth"], 2)
        told = f"A good product is worth ${worth:.10g} to"
        secrets = [Secret(name, "worth", f"{told} {name}.", f"{worth:.10g}") for name in buyers]
        whom, heard, answered = ((g.ONE_AGENT,), "named", "self") if myopic else ((), "all", "all")
        if chosen["message"] == "words":
            message = g.can("say", "To tell the buyer about the product", *whom, by=seller, readers=heard, text="must")
        else:
            option = g.one_of("yes", "no")
            message = g.can("recommend", "To recommend the product, or not", option, *whom, by=seller, readers=heard)
        public = {key: chosen[key] for key in ("price", "chance", "rounds", "myopic")}
        return Scene(
            title=f"{seller} recommends products to {'other people' if myopic else buyers[0]}",
            setting=_setting(seller, buyers, chosen, told),
            goal=(
                "Sell as many products as you can.",
                *("Win as much as you can: what a product is worth to you less its price." for _ in buyers),
            ),
            secrets=[] if informed else secrets,
            moves=(
                message,
                g.can("buy", "To buy the product", by=buyers, readers=answered),
                g.can("pass", "Not to buy the product", by=buyers, readers=answered),
            ),
            public={**public, "worth": worth} if informed else public,
            hidden={"worth": chosen["worth"]},
            turns=2 * chosen["rounds"],
        )

    def play(self, table: Table) -> Course:
        (seller, *buyers), rules = table.names, table.public
        message = "say" if any(each.name == "say" for each in table.scenario.moves) else "recommend"
        results: list[tuple[bool, bool]] = []
        bought: list[g.Turn] = []
        for number in range(rules["rounds"]):
            buyer = buyers[number if rules["myopic"] else 0]
            drawn = "high" if table.chance(QUALITY, number).random() < rules["chance"] else "low"
            text = f"Product {number + 1} is of {drawn} quality."
            quality = (yield from table.tell(text, QUALITY, drawn, to=(seller,))).values[1]
            if rules["myopic"]:
                numbers = (number, len(bought), sum(buys and good for buys, good in results))
                record = "Buyers before you: {}. Of these {} bought, and {} got high quality.".format(*numbers)
                yield from table.tell(record if number else "You are the first buyer.", RECORD, *numbers, to=(buyer,))
            said = yield from table.act(seller, message, named=(buyer,) if rules["myopic"] else ())
            answer = yield from table.act(buyer, "buy", "pass")
            buys, good = answer.action.type == "buy", quality == "high"
            results.append((buys, good))
            bought += [answer] if buys else []
            if message == "recommend":
                table.mean("honesty", (said.value == "yes") == good)
                table.mean("followed", (said.value == "yes") == buys)
            self._state(table, results, bought)
            text = f"{buyer} {'bought' if buys else 'did not buy'} it. It was of {quality} quality."
            readers = (seller, buyer) if rules["myopic"] else None
            yield from table.tell(text, RESULT, answer.action.type, quality, to=readers)

    def _state(self, table: Table, results: Sequence[tuple[bool, bool]], bought: Sequence[g.Turn]) -> None:
        """State efficiency, fairness and gains after products that were (bought, good)."""
        rounds, good = len(results), sum(is_good for _, is_good in results)
        high = sum(buys and is_good for buys, is_good in results)
        low = len(bought) - high
        told = f"{len(bought)} of {rounds} products were bought, {high} of the {good} good ones"
        table.score("seller_gain", len(bought) / rounds, bought, told)
        table.score("buyer_gain", (high * (table.game["worth"] - 1) - low) / rounds, bought)
        if good:
            table.score("efficiency", high / good, bought)
        if good < rounds:
            table.score("fairness", 1 - low / (rounds - good), bought)

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        sees = _quality(seen) if seen.may("buy") else _worth(seen)
        return None if sees is None else _OPTIMAL(seen, rng)


def _setting(seller: str, buyers: Sequence[str], chosen: Mapping[str, Any], told: str) -> str:
    myopic = chosen["myopic"]
    buyer = "the buyer" if myopic else buyers[0]
    tells = f"tells {buyer} about it" if chosen["message"] == "words" else f"recommends it to {buyer} or not"
    parts = [
        f"{seller} offers a product in each of {chosen['rounds']} rounds. A product costs ${chosen['price']}, and is "
        f"of high quality with a chance of {100 * chosen['chance']:.4g}%. {seller} alone sees the quality, and "
        f"{tells}. Then {buyer} buys it or passes, and learns the quality. A bad product is worth nothing."
    ]
    if myopic:
        parts.append("Each round has another buyer, who is told how many bought before, and how many got a good one.")
    parts.append(f"{told} {buyer}." if chosen["informed"] else f"{seller} does not know what a good one is worth.")
    return " ".join(parts)


# ---- players -------------------------------------------------------------------------------------------------------


def _quality(seen: g.Observation) -> bool | None:
    """Return whether the product of this round is good; None where the viewer cannot see it."""
    seen_now = [turn for turn in seen.transcript.told if turn.value in (QUALITY, RESULT)]
    return seen_now[-1].action.values == (QUALITY, "high") if seen_now and seen_now[-1].value == QUALITY else None


def _worth(seen: g.Observation) -> float | None:
    """Return what a good product is worth, in parts of its price; None where the viewer does not know."""
    hidden = (g.known(seen, "worth", agent.name) for agent in seen.agents)
    value = seen.game.get("worth", next((each for each in hidden if each is not None), None))
    return None if value is None else float(value) / seen.game["price"]


def _answer(seen: g.Observation, yes: bool) -> g.Action:
    """Return a recommendation of the seller, or what a buyer does."""
    if seen.may("buy"):
        return g.move("buy" if yes else "pass")
    option = "yes" if yes else "no"
    way = next(way for way in seen.allowed if not isinstance(way, str))
    who = way.others if seen.game["myopic"] else ()
    return g.move("say", *who, text=SAYS[option]) if way.name == "say" else g.move("recommend", option, *who)


def _recommended(seen: g.Observation) -> bool:
    """Return whether the product of this round was recommended; words say no with `not`."""
    last = seen.transcript.of("recommend", "say")[-1]
    return last.value == "yes" if last.action.type == "recommend" else " not " not in last.action.text


def lies(odds: float, worth: float) -> float:
    """Return the chance with which the best seller recommends low quality."""
    return 1.0 if odds * worth >= 1 else odds * (worth - 1) / (1 - odds)


def _player(
    seen: g.Observation, rng: random.Random, *, lying: float | None, sees: bool = False, record: bool = False
) -> g.Action:
    """Recommend what is good, and what is bad with a chance (None: the best chance).

    As a buyer follow recommendations. `sees`: it buys what is good if it sees the quality. `record`: it passes if
    the products that were bought so far were not worth their price on average.
    """
    quality, worth = _quality(seen), _worth(seen)
    if seen.may("buy"):
        if sees and quality is not None:
            return _answer(seen, quality)
        bought, good = _record(seen)
        return _answer(seen, _recommended(seen) and not (record and bought and good * (worth or 1) < bought))
    share = lies(seen.game["chance"], worth or min(WORTHS)) if lying is None else lying
    return _answer(seen, bool(quality) or rng.random() < share)


def _record(seen: g.Observation) -> tuple[int, int]:
    """Return how many products were bought, and how many of those were good, as far as the viewer knows."""
    records = [turn.values for turn in seen.transcript.told if turn.value == RECORD]
    if records:
        return int(records[-1][2]), int(records[-1][3])
    bought = [turn.values[2] == "high" for turn in seen.transcript.told if turn.values[:2] == (RESULT, "buy")]
    return len(bought), sum(bought)


def _sceptic(seen: g.Observation, rng: random.Random) -> g.Action:
    return _answer(seen, False)


_OPTIMAL = partial(_player, lying=None, sees=True)
Persuasion.players = {
    "optimal": _OPTIMAL,
    "honest": partial(_player, lying=0),
    "pushy": partial(_player, lying=1),
    "by-record": partial(_player, lying=1, record=True),
    "sceptic": _sceptic,
}
Persuasion.sensible = "optimal"
