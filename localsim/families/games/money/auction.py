"""Auctions with private values: sealed bids with the first or the second price, or a price that rises step by step.

Each of n bidders knows what the lot is worth to itself: a whole number of dollars from 0 to `most`, each equally
likely. With the second price (Vickrey, Counterspeculation, auctions, and competitive sealed tenders, Journal of Finance
16 (1961), 8-37) the own value is the best bid, whatever the others bid. With the first price and values that are
uniform from 0 on, (n - 1) / n of the value is the best bid against others who bid so. Both bring (n - 1) / (n + 1) of
`most` on average. A rising price with irrevocable exits is the English auction of Milgrom and Weber, A theory of
auctions and competitive bidding, Econometrica 50 (1982), 1089-1122: the best is to stay as long as the price is not
above the own value. Here it rises in steps, so that all of this holds up to one step.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Steps, Table

PAYS = {
    "first": "Each writes down one bid in secret. The highest bidder wins and pays it. Of equal bids one is drawn.",
    "second": (
        "Each writes down one bid in secret. The highest bidder wins and pays the second highest bid. Of equal bids "
        "one is drawn."
    ),
    "english": (
        "The price rises by ${rise} at a time. All who are still in choose at the same time to stay or to go out for "
        "good. Who stays alone wins and pays this price. If the last ones go out together, one of them is drawn and "
        "pays the price before. ${most} is the last price; of those who stay in then, one is drawn and pays it."
    ),
}
"""Kind of auction -> its rules in words."""
GOODS = ("a painting", "a clock", "a bicycle", "a vase", "a guitar", "a carpet")
PRICE, SOLD = "price", "sold"
"""The first value of what the rules tell: a new price, or the end of a lot."""
NAMED = 8
"""The names of so many bidders are listed at each price; of more, only their number."""


class Auction(Replayed):
    """Some people bid for one lot, which is worth something else to each of them."""

    name, version = "auction", "1"
    title = "Auctions"
    about = "Two to thirty people bid for a lot. Each knows only the own value."
    defaults = {
        "kind": "second",
        "bidders": 4,
        "most": 100,
        "lots": 1,
        "rise": 5,
        "cents": False,
        "announced": True,
    }
    number_of_agents = "bidders"
    allowed = {"kind": tuple(PAYS), "bidders": (2, 30), "most": (10, 100), "lots": (1, 20)}
    how = (
        "Success is that each lot goes to a bidder with the highest value. Payoffs are value less price, and 0 for who "
        "wins nothing; payoffs and revenue are in parts of the highest possible value."
    )
    tries = (
        "Play auction_first with -m scripted:truthful, then with -m scripted:optimal: what does the winner gain?",
        "In auction_first compare agents with mindreaders: who knows the values bids just above the second.",
        "In auction_second compare a model's bids with its values: the best bid is the value itself.",
    )
    bundled = {
        "second": {},
        "first": {"kind": "first"},
        "english": {"kind": "english"},
        "secret": {"kind": "first", "lots": 3, "announced": False},
        "thirty": {"bidders": 30, "cents": True},
    }
    interests = "competitive"
    protocol = ("together",)
    measures = (
        g.SUCCESS,
        g.mean("payoff", "payoff", "value less price, in parts of the highest value", compared=True),
        g.share("efficiency", "efficiency", "value to the winner, in parts of the highest"),
        g.share("revenue", "revenue", "price, in parts of the highest possible value"),
        g.mean("bid_part", "bid/value", "sealed bid of a bidder, in parts of its value", compared=True),
        g.share("overpaid", "overpaid", "share of lots that cost more than they are worth to the winner"),
    )
    figure = ("success_rate", "revenue", "payoff")
    references = (
        g.RANDOM,
        g.Reference("optimal", "optimal", "the best bid against others who bid so too"),
    )
    control_tasks = {
        "first": {"kind": "first", "cents": True},
        "english": {"kind": "english", "rise": 20},
        "two": {"bidders": 2, "kind": "first", "cents": True},
    }
    controls = (
        g.exactly("truthful", "success_rate", 1, "the highest value is the highest bid"),
        g.exactly("truthful", "efficiency", 1, "the highest value wins"),
        g.exactly("truthful", "bid_part", 1, "each bids the value"),
        g.exactly("truthful", "overpaid", 0, "the second highest bid is not above the value of the winner"),
        g.between("truthful", "revenue", 0.45, 0.75, "3/5 on average with four bidders"),
        g.exactly("truthful", "payoff", 0, "the winner pays the whole value", "first"),
        g.exactly("optimal", "bid_part", 0.75, "3/4 of the value with four bidders", "first", ("agents",)),
        g.between("optimal", "revenue", 0.45, 0.75, "3/5 on average with four bidders", "first", ("agents",)),
        g.exactly("optimal", "bid_part", 0.5, "half of the value with two bidders", "two", ("agents",)),
        g.exactly("optimal", "success_rate", 1, "the highest value is the highest bid", "first"),
        g.exactly("truthful", "overpaid", 0, "who is in can pay the price", "english"),
        g.exactly("overbidder", "revenue", 1, "each bids the highest possible value"),
        g.exactly("overbidder", "revenue", 1, "all stay up to the highest price", "english"),
        g.between("overbidder", "overpaid", 0.9, 1, "only a value of 100 is worth it"),
        g.exactly("refuser", "revenue", 0, "each bids nothing"),
        g.exactly("refuser", "bid_part", 0, "each bids nothing"),
        g.by_chance("refuser", "success_rate", 0.26, "one of four is drawn, and equal values count as right"),
        g.between("any", "efficiency", 0.3, 1, "a value is a part of the highest one"),
    )

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        most, lots, rising = chosen["most"], chosen["lots"], chosen["kind"] == "english"
        self._check(chosen)
        rng = g.chance(seed, self.name, "values")
        values = {name: rng.randint(0, most) for name in names}
        good = rng.choice(GOODS)
        it, each = (f"each of {lots} lots", "Each lot") if lots > 1 else (good, f"The {good[2:]}")
        bid = g.number(0, most, "0.01" if chosen["cents"] else "1")
        who = g.listed(names) if len(names) <= NAMED else f"{len(names)} people"
        return Scene(
            title=f"{who} bid for {it}",
            setting=_setting(who, it, each, chosen),
            goal="Gain as much as you can.",
            secrets=[
                Secret(name, "value", f"{each} is worth ${value} to {name}.", value) for name, value in values.items()
            ],
            moves=(g.can("stay", "To stay in at this price"), g.can("out", "To go out for good"))
            if rising
            else (g.can("bid", "To bid dollars", bid, readers="self"),),
            public={key: value for key, value in chosen.items() if key != "rise" or rising},
            turns=_turns(chosen),
        )

    def _check(self, chosen: Mapping[str, Any]) -> None:
        """Raise InvalidInput for parameters that make no auction."""
        most, rise = chosen["most"], chosen["rise"]
        g.check_values(self.name, chosen, {"rise": (1, most)})
        if chosen["kind"] == "english" and most % rise:
            message = f"{self.name}: steps of rise = {rise} do not reach {most}"
            raise g.InvalidInput(message, hint="for example rise=5")
        if chosen["kind"] == "english" and not chosen["announced"]:
            raise g.InvalidInput(f"{self.name}: a rising price is always announced", hint="leave out announced")
        g.check_values(self.name, {"turns": _turns(chosen)}, {"turns": (1, 5000)})

    def play(self, table: Table) -> Course:
        public, sold = table.public, list[g.Turn]()
        bids: dict[str, list[g.Turn]] = {name: [] for name in table.names}
        for lot in range(1, public["lots"] + 1):
            if public["kind"] == "english":
                winners, price = yield from self._rising(table)
            else:
                for turn in (yield from table.together(table.names, "bid")):
                    bids[turn.speaker].append(turn)
                winners, price = result(public["kind"], {name: own[-1].number for name, own in bids.items()})
            winner, paid = table.chance("winner", lot).choice(winners), g.amount(price)
            readers = None if public["announced"] else (winner,)
            sold.append((yield from table.tell(f"{winner} wins and pays ${paid}.", SOLD, winner, paid, to=readers)))
            self._state(table, sold, bids)

    def _rising(self, table: Table) -> Steps[tuple[Sequence[str], float]]:
        """Let the price rise; return among whom the lot is drawn, and the price."""
        price, still = 0, table.names
        while True:
            price += table.public["rise"]
            who = g.listed(still) if len(still) <= NAMED else f"{len(still)} people"
            yield from table.tell(f"The price is ${price}. Still in: {who}.", PRICE, price, *still)
            acts = yield from table.together(still, "stay", "out")
            stayed = tuple(turn.speaker for turn in acts if turn.action.type == "stay")
            if not stayed:
                return still, price - table.public["rise"]
            if len(stayed) == 1 or price == table.public["most"]:
                return stayed, price
            still = stayed

    def _state(self, table: Table, sold: Sequence[g.Turn], bids: Mapping[str, Sequence[g.Turn]]) -> None:
        """State who got the lots, at what price, and how bids compare with values."""
        values = {name: float(table.secret(name) or 0) for name in table.names}
        best, most, lots = max(values.values()), table.public["most"], len(sold)
        deals = [(turn.values[1], float(turn.values[2])) for turn in sold]
        gains = dict.fromkeys(values, 0.0)
        for winner, price in deals:
            gains[winner] += values[winner] - price
        told = "; ".join(
            f"{who}, to whom it is worth ${values[who]:g}, pays ${g.amount(price)}" for who, price in deals
        )
        right, worth = all(values[who] == best for who, _ in deals), sum(values[who] for who, _ in deals)
        table.score("success", right, sold, f"{told}; the highest value is ${best:g}")
        table.score("efficiency", worth / (best * lots) if best else 1.0, sold)
        table.score("revenue", sum(price for _, price in deals) / (most * lots), sold)
        table.score("overpaid", sum(price > values[who] for who, price in deals) / lots, sold)
        table.each("payoff", {name: gain / (most * lots) for name, gain in gains.items()}, sold)
        for name, own in bids.items():
            if own and values[name]:
                part = sum(turn.number for turn in own) / (len(own) * values[name])
                table.score("bid_part", part, own, agent=name)

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        return _optimal(seen, rng) if _rival(seen) is not None else None


def _setting(who: str, it: str, each: str, chosen: Mapping[str, Any]) -> str:
    parts = [
        f"{who} bid for {it}. {PAYS[chosen['kind']].format(**chosen)} {each} is worth something else to each: a whole "
        f"number of dollars from 0 to {chosen['most']}, equally likely. Who wins gains this value less the price; the "
        "others gain nothing."
    ]
    if not chosen["announced"]:
        parts.append("Only the winner is told the result.")
    return " ".join(parts)


def _turns(chosen: Mapping[str, Any]) -> int:
    rounds = chosen["most"] // chosen["rise"] if chosen["kind"] == "english" else 1
    return int(chosen["bidders"] * chosen["lots"] * rounds)


def result(kind: str, bids: Mapping[str, float]) -> tuple[list[str], float]:
    """Return who made the highest sealed bid, and the price."""
    ranked = sorted(bids.values(), reverse=True)
    return [name for name, bid in bids.items() if bid == ranked[0]], ranked[0 if kind == "first" else 1]


# ---- players -------------------------------------------------------------------------------------------------------


def _rival(seen: g.Observation) -> float | None:
    """Return the highest value among the others; None if one of them is not known."""
    values = [g.known(seen, "value", name) for name in g.others(seen)]
    return None if None in values else max(float(value or 0) for value in values)


def _at(seen: g.Observation, limit: float) -> g.Action:
    """Bid a limit, rounded down to what can be bid, or stay up to it."""
    if seen.may("bid"):
        limit = max(0.0, min(limit, seen.game["most"]))
        return g.move("bid", f"{int(limit * 100 + 1e-6) / 100:.2f}" if seen.game["cents"] else int(limit + 1e-6))
    return g.move("stay" if int(seen.transcript.told[-1].values[1]) <= limit else "out")


def _part(seen: g.Observation, rng: random.Random, *, part: float) -> g.Action:
    return _at(seen, part * float(g.known(seen, "value") or 0))


def _shade(seen: g.Observation, rng: random.Random) -> g.Action:
    """Bid (n - 1) / n of the value, in every kind of auction."""
    return _part(seen, rng, part=1 - 1 / len(seen.agents))


def _optimal(seen: g.Observation, rng: random.Random) -> g.Action:
    """Bid the value; with the first price (n - 1) / n of it, or just above the second highest value if it is known."""
    value, rival = float(g.known(seen, "value") or 0), _rival(seen)
    if seen.game["kind"] != "first":
        return _at(seen, value)
    if rival is None:
        return _shade(seen, rng)
    return _at(seen, min(value, rival + (0.01 if seen.game["cents"] else 1)) if value > rival else value)


def _always(seen: g.Observation, rng: random.Random, *, limit: float) -> g.Action:
    return _at(seen, limit)


Auction.players = {
    "optimal": _optimal,
    "truthful": partial(_part, part=1),
    "shade": _shade,
    "half": partial(_part, part=0.5),
    "overbidder": partial(_always, limit=1e9),
    "refuser": partial(_always, limit=0),
}
Auction.sensible = "optimal"
