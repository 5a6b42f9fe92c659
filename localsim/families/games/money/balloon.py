"""Haggling over a balloon, with a coach (GPT-Bargaining: self-play with AI feedback, arXiv 2305.10142).

The balloon cost the seller 8. The seller opens with 20 and the buyer with 10; then they talk in turn, at most 10
rounds. The deal price is the last number that was named. A coach may give one side private advice before the talk
begins. In a repeated game (`last_price`, `last_talk`) the coached side and the coach have read the game before, and
that side is asked to do better; the other begins anew. `localsim scenarios again` makes the next game of a stored one,
until the first one without a deal.

The scripted players `concede` meet at 13: the seller comes down by 1 in each round, the buyer up by 0.5, so that the
seller accepts in round 7, where 10 + 0.5 * 6 = 20 - 7. The player `coached` heeds advice: it does not go below the last
price and 1 more. Against `concede`, which gets to 15 at most, prices are 13, 14, 15, and then there is no deal. The
player `shrewd` is a `concede` that does not come up while its price covers a cost that it sees. So in mindreaders the
price is 10, and knowing the cost is worth 3 to the buyer.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Table

STEP = 0.5
"""The distance between prices."""
SIDES = ("seller", "buyer")
QUOTED = 3500
"""Most characters of a last talk."""
ADVICE = "Name your price calmly. Give a reason for it. Move in small steps and not first."
"""What the scripted coach says: generic, and without a price."""


class Balloon(Replayed):
    """A seller and a buyer haggle; a coach may have advised one of them."""

    name, version = "balloon", "1"
    title = "Haggling over a balloon"
    about = "A seller and a buyer haggle over a balloon; a coach may give one of them private advice before."
    defaults = {
        "cost": 8,
        "opens": 20,
        "bids": 10,
        "rounds": 10,
        "coach": "none",
        "last_price": 0.0,
        "last_talk": "",
    }
    newer = ("last_talk",)
    allowed = {"coach": ("none", *SIDES)}
    roles = (*SIDES, "coach")
    how = (
        "opens and bids are the first prices of the seller and the buyer. coach is none, seller or buyer. last_price "
        "is the price of the game before, which the coached side has to beat (0: there was none)."
    )
    tries = (
        "Compare balloon_plain with balloon_coach: does advice raise the price, and does it cost deals?",
        "Repeat balloon_again with last_price set to the price just reached, until there is no deal.",
        "In mindreaders the buyer knows the cost: -m scripted:shrewd pays 10 instead of 13.",
    )
    bundled = {
        "plain": {},
        "coach": {"coach": "seller"},
        "again": {"coach": "seller", "last_price": 13.0},
        "buyer_coach": {"coach": "buyer", "last_price": 13.0},
        "short": {"rounds": 3},
    }
    interests = "competitive"
    centralised = True
    measures = (
        g.SUCCESS,
        g.mean("price", "price", "dollars that the balloon is sold for", bounds=(0, None), compared=True),
        g.share("in_band", "between openings", "share of conversations with a price between both openings"),
        g.mean("rounds", "rounds", "rounds up to the deal", bounds=(1, None)),
        g.share("refusals", "refusals", "share of answers that name no price and accept none"),
    )
    figure = ("success_rate", "price", "rounds")
    references = (
        g.RANDOM,
        g.Reference(
            "shrewd",
            "best known",
            "gives way step by step, and never more than what it sees makes it; no optimal play is known",
        ),
    )
    control_tasks = {
        "again": {"coach": "seller", "last_price": 13.0},
        "too far": {"coach": "seller", "last_price": 15.0},
    }
    controls = (
        g.exactly("concede", "success_rate", 1, "the prices meet"),
        g.exactly("concede", "price", 13, "20 - 7 is 10 + 0.5 * 6"),
        g.exactly("concede", "rounds", 7, "20 - 7 is 10 + 0.5 * 6"),
        g.exactly("concede", "in_band", 1, "both gave way"),
        g.exactly("concede", "refusals", 0, "each answer is a price"),
        g.exactly("coached", "price", 14, "one more than the last price", "again"),
        g.exactly("coached", "success_rate", 0, "the buyer gets to 15, and the seller wants 16", "too far"),
        g.exactly("shrewd", "price", 13, "the buyer does not know the cost", modes=("agents",)),
        g.exactly("shrewd", "price", 10, "10 is more than the cost", modes=("script", "mindreaders")),
        g.exactly("yes-sayer", "price", 10, "the seller accepts the buyer's opening"),
        g.exactly("yes-sayer", "in_band", 0, "one opening is the price"),
        g.exactly("refuser", "success_rate", 0, "nobody accepts"),
        g.exactly("refuser", "refusals", 1, "all is refused"),
        g.exactly("refuser", "price", None, "nothing is sold"),
        g.between("any", "price", 0, 20, "nobody can name more than the opening"),
    )

    def count(self, chosen: Mapping[str, Any]) -> int:
        return 2 + (chosen["coach"] in SIDES)

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        if not 0 <= chosen["cost"] < chosen["bids"] < chosen["opens"]:
            raise g.InvalidInput("balloon: needs cost < bids < opens", hint="for example cost=8 bids=10 opens=20")
        if chosen["last_price"] and chosen["coach"] == "none":
            raise g.InvalidInput("balloon: last_price is told to the coached side, and nobody is", hint="coach=seller")
        (seller, buyer, *coaches), cost, last = names, chosen["cost"], chosen["last_price"]
        side = [names[SIDES.index(chosen["coach"])]] if coaches else []
        secrets = [Secret(seller, "cost", f"The balloon cost {seller} ${cost}.", cost)]
        if last:
            told = f"The last balloon was sold for ${last:g}."
            told += f" This was said: {chosen['last_talk']}" if chosen["last_talk"] else ""
            better = f"Do better than ${last:g}, the price of the last one."
            secrets += [Secret(name, "last", told, f"{last:g}", better) for name in side]
            secrets += [Secret(name, "last", told, f"{last:g}") for name in coaches]
        help_ = [f"Help {name}, the {chosen['coach']}, with three short suggestions. Name no price." for name in side]
        both = (seller, buyer)
        moves = [
            g.can("offer", "To name a price in dollars", g.number(0, chosen["opens"], STEP), by=both, text="may"),
            g.can("accept", "To accept the last price", by=both, text="may"),
            g.can("reject", "To refuse without naming a price", by=both, text="may"),
        ]
        for coach in coaches:
            moves.append(g.can("advise", "To give advice", g.ONE_AGENT, by=coach, text="must", readers="named"))
        return Scene(
            title=f"{buyer} wants a balloon from {seller}",
            setting=_setting(names, chosen, side),
            goal=("Sell the balloon for a high price.", "Buy the balloon for a low price.", *help_),
            secrets=secrets,
            moves=moves,
            public={key: chosen[key] for key in ("opens", "bids", "rounds")},
            hidden={"cost": cost, "coached": side},
            turns=2 * chosen["rounds"] + len(side),
            more={"answer": {"seller": seller, "buyer": buyer}},
        )

    def play(self, table: Table) -> Course:
        (seller, buyer, *coaches), rules, coached = table.names, table.public, table.game["coached"]
        asked, bid = rules["opens"], rules["bids"]
        if coached:
            yield from table.act(coaches[0], "advise", named=coached)
        yield from table.tell(f"{seller} asks ${asked} for the balloon. {buyer} wants to pay ${bid}.", asked, bid)
        offers, refusals = list[g.Turn](), list[g.Turn]()
        for number in range(2 * rules["rounds"]):
            speaker = buyer if number % 2 else seller
            theirs = offers[-1].speaker != speaker if offers else speaker == seller
            turn = yield from table.act(speaker, "offer", *(["accept"] if theirs else []), "reject")
            offers += [turn] if turn.action.type == "offer" else []
            refusals += [turn] if turn.action.type == "reject" else []
            table.score("refusals", len(refusals) / (number + 1), refusals)
            table.score("success", 0, reason="there was no deal")
            if turn.action.type == "accept":
                price, cited = offers[-1].number if offers else float(bid), (*offers[-1:], turn)
                table.score("success", 1, cited, f"the balloon was sold for ${price:g}")
                table.score("price", price, cited)
                table.score("in_band", bid < price < asked, cited)
                table.score("rounds", number // 2 + 1, cited)
                return

    def again(self, answer: g.AnswerKey, talk: g.Transcript) -> Mapping[str, Any] | None:
        """Return a game whose coach, by default the seller's, has read this one; None without a deal."""
        offers, acts = talk.of("offer"), talk.acts
        if not acts or acts[-1].action.type != "accept":
            return None
        price = offers[-1].number if offers else float(answer.parameters["bids"])
        side = answer.parameters["coach"] if answer.parameters["coach"] in SIDES else SIDES[0]
        return {**answer.parameters, "coach": side, "last_price": price, "last_talk": _quoted(talk)}

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        return _SHREWD(seen, rng) if _holds(seen) else None


def _setting(names: Sequence[str], chosen: Mapping[str, Any], coached: Sequence[str]) -> str:
    seller, buyer = names[:2]
    parts = [
        f"{seller} sells a balloon, and {buyer} wants to buy it. {seller} opens with ${chosen['opens']}, {buyer} with "
        f"${chosen['bids']}. Then they speak in turn, {seller} first, at most {chosen['rounds']} times each. Who "
        "accepts takes the last price that was named. Without a deal nothing is sold."
    ]
    if coached:
        parts.append(f"Before that, {names[2]} advises {coached[0]} in private.")
    return " ".join(parts)


def _quoted(talk: g.Transcript) -> str:
    """Return what was done and said in a talk as one text, without its beginning if it is very long."""
    lines = [f"{each.speaker} ({' '.join([each.action.type, *(each.action.values or ())])}) {each.action.text}".strip()
             for each in talk.acts]  # fmt: skip
    return " / ".join(lines)[-QUOTED:]


# ---- players -------------------------------------------------------------------------------------------------------


def _sells(seen: g.Observation) -> bool:
    return seen.viewer == seen.agents[0].name


def _price(seen: g.Observation) -> float:
    offers = [turn.number for turn in seen.transcript.of("offer") if turn.speaker != seen.viewer]
    return offers[-1] if offers else float(seen.game["bids" if _sells(seen) else "opens"])


def _named(price: float) -> g.Action:
    return g.move("offer", f"{round(price / STEP) * STEP:.1f}")


def _at(seen: g.Observation, price: float) -> g.Action:
    """Accept what is at least as good as a price; else name it."""
    good = _price(seen) >= price if _sells(seen) else _price(seen) <= price
    return g.move("accept") if good and seen.may("accept") else _named(price)


def _holds(seen: g.Observation) -> bool:
    """Return True for a buyer who sees that the own opening covers the cost."""
    cost = g.known(seen, "cost", seen.agents[0].name)
    return not _sells(seen) and not seen.may("advise") and cost is not None and seen.game["bids"] >= float(cost)


def _conceding(seen: g.Observation, rng: random.Random, *, heeds: bool = False, shrewd: bool = False) -> g.Action:
    """Give way in each round, the seller by 1 down to the cost, the buyer by 0.5.

    `heeds`: advised, it is content only with 1 more (or less) than the last price, and gives way by half as much where
    none is known. `shrewd`: as a buyer it does not come up while its opening covers a cost that it sees.
    """
    if seen.may("advise"):
        return _advice(seen, rng)
    sells, last = _sells(seen), g.known(seen, "last")
    advised = heeds and any(turn.value == seen.viewer for turn in seen.transcript.of("advise"))
    pace = (1.0 if sells else STEP) / (2 if advised and last is None else 1)
    place = pace * (1 + sum(turn.speaker == seen.viewer for turn in seen.transcript.of("offer", "reject")))
    if not sells:
        price = seen.game["bids"] + (0 if shrewd and _holds(seen) else place)
        return _at(seen, min(price, float(last) - 1) if advised and last is not None else price)
    price = max(seen.game["opens"] - place, float(g.known(seen, "cost") or 0))
    return _at(seen, max(price, float(last) + 1) if advised and last is not None else price)


def _advice(seen: g.Observation, rng: random.Random) -> g.Action:
    return g.move("advise", g.targets(seen, "advise")[0], text=ADVICE)


_SHREWD = partial(_conceding, shrewd=True)
Balloon.players = {
    "shrewd": _SHREWD,
    "concede": _conceding,
    "coached": partial(_conceding, heeds=True),
    "refuser": g.taking(g.move("reject"), otherwise=_advice),
    "yes-sayer": g.taking(g.move("accept"), g.move("reject"), otherwise=_advice),
}
Balloon.sensible = "shrewd"
