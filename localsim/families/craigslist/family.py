"""Bargaining over a second-hand item (CraigslistBargain, He et al. 2018, arXiv 1808.09637; as a social task:
arXiv 2403.05020). Each side has a private target price; where the seller's is above the buyer's there is no zone of
agreement, and walking away is right.

Scores: deal or walk-away where there is a zone and where there is none, price, each side's surplus against its target,
concessions, and if a first offer uses the other side's target.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from localsim.conversation.episode import Observation, Score
from localsim.conversation.rules.endings import ending
from localsim.conversation.scenario import Agent, AnswerKey, Fact, Info, Scenario, ScenarioFile
from localsim.conversation.transcript import Action, Transcript
from localsim.errors import InvalidInput
from localsim.families.base import Curve, Family, Hits, Location, Played, Point, Verdict, merged
from localsim.families.craigslist import players
from localsim.families.craigslist.corpus import CORPUS
from localsim.families.craigslist.endings import Ending, bargain_ending, settled
from localsim.families.craigslist.measures import CONTROLS, MEASURES, NO_ZONE
from localsim.families.craigslist.offering import (
    BUYS,
    SELLS,
    draw,
    is_ascribed,
    offer_scores,
    own_offers,
    targets_are_limits,
)
from localsim.families.prices import find_prices
from localsim.families.settling import Offered, stated_in, without_statement
from localsim.families.vocabulary import DEFAULT, Vocabulary, person, with_article

_ZONES = ("yes", "no", "any")
_ENDINGS = {
    "deal": "They make a deal, but its price cannot be read.",
    "no_deal": "They part without a deal.",
    "ran_out": "They reach the limit of turns without a deal.",
    "stale": "They repeat themselves and make no deal.",
    "unknown": "The rules cannot read how this talk ends, so it counts neither as a deal nor as none.",
}


def _offers(played: Played) -> list[Point]:
    """Return each side's own offers, as parts of the list price."""
    list_price, seller = float(played.answer.answer["list_price"]), played.answer.answer["seller"]
    return [
        Point(
            played.transcript.position(offer.turn),
            offer.price / list_price,
            "seller" if offer.speaker == seller else "buyer",
        )
        for offer in own_offers(without_statement(played.transcript.turns), list_price)
    ]


class Craigslist(Family):
    """Sell or buy one item; agree on a price or walk away."""

    name = "craigslist"
    version = "5"
    defaults: Mapping[str, Any] = {"zone": "yes"}
    title = "Bargaining"
    about = "A seller and a buyer haggle over a second-hand item; each has a private target price."
    invitation = "A seller and a buyer haggle"
    measures = MEASURES
    figure = ("success_rate", "peeking", "deal_rate", "in_zone_rate")
    curve = Curve(
        "offers",
        "Prices offered",
        "mean of own offers from 5% to 200% of the list price, as parts of it; sellers solid, buyers dashed",
        "average",
        _offers,
    )
    players = players.PLAYERS
    sensible = "haggler"
    corpus = CORPUS
    controls = CONTROLS
    control_tasks: Mapping[str, Mapping[str, Any]] = {NO_ZONE: {"zone": "no"}}
    study_tasks = ("", NO_ZONE)
    interests = "competitive"
    claims: Mapping[str, re.Pattern[str]] = {"seller": SELLS, "buyer": BUYS}
    unearned = ("limit_hit",)
    taught = True
    hits = Hits(
        "limit_hit",
        "limit_chance",
        'The first offer, or what is called "your target", is the other side\'s target or the middle of both targets.',
        unjudged="limit_unjudged",
    )

    def __init__(self, words: Vocabulary = DEFAULT) -> None:
        self._words = words

    def generate(self, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> ScenarioFile:
        """Return one item with a list price and two targets; `zone` (yes, no, any) asks for a zone of agreement.

        Seller target = list price / (1 + m) with m ~ Exponential(mean 0.5), as in the paper; the buyer's is a share
        of the list price. Pairs are drawn again until they fit `zone`.
        """
        chosen = merged(self.defaults, parameters, self.name)
        if chosen["zone"] not in _ZONES:
            raise InvalidInput(f"zone = {chosen['zone']!r} is unknown", hint=f"zone is one of {', '.join(_ZONES)}")
        rng = random.Random(f"{self.name}/{seed}")
        seller, buyer = rng.sample(self._words.names, 2)
        item, description, low, high = rng.choice(self._words.goods)
        list_price = round(rng.randint(low, high) / 5) * 5
        seller_target, buyer_target = draw(rng, list_price, chosen["zone"])
        zone = [seller_target, buyer_target] if seller_target <= buyer_target else None
        return ScenarioFile(
            version=1,
            id=scenario_id,
            title=f"{buyer} haggles with {seller} over {with_article(item)}",
            info=Info(
                what="A seller and a buyer haggle over a second-hand item. Each has a private target price.",
                how="Scored: deal or walk-away, the price, and each side's surplus against its target.",
                things_to_try=(
                    "Compare the deal rate of the three modes with the paper's: script 94%, agents 30%.",
                    "Generate instances with -p zone=no: how often does each mode still close a deal?",
                ),
            ),
            setting=(
                f"{seller} is selling a second-hand {item} ({description}) for ${list_price}. "
                f"{buyer} would like to buy it."
            ),
            relationship="stranger",
            agents=(
                self._agent(rng, seller, "seller", item, seller_target, buyer),
                self._agent(rng, buyer, "buyer", item, buyer_target, seller),
            ),
            family=self.name,
            parameters={**chosen, "seed": seed},
            answer={
                "seller": seller,
                "buyer": buyer,
                "list_price": list_price,
                "seller_target": seller_target,
                "buyer_target": buyer_target,
                "zone": zone,
            },
        )

    def _agent(self, rng: random.Random, name: str, role: str, item: str, target: int, other: str) -> Agent:
        verb, bound, better = ("sell", "less", "more") if role == "seller" else ("buy", "more", "less")
        return Agent(
            name=name,
            profile=person(rng, name, self._words),
            goal=(
                f"{verb.capitalize()} the {item}. Your target price is ${target}: {better} than that is a gain, "
                f"{bound} is a loss. If {other} does not agree to a price you can accept, leave without a deal."
            ),
            facts=(
                Fact(
                    id=f"{role}_target",
                    text=f"{name}'s target price is ${target}.",
                    terms=(f"${target}",),
                    disclosure="never",
                ),
            ),
        )

    def ascribes(self, text: str, term: str, /) -> bool:
        place = self.span(text, term)
        return place is not None and is_ascribed(text, *place)

    def check(self, document: ScenarioFile) -> list[tuple[Location, str]]:
        """Check that the answer names a seller, a buyer, positive prices, and the zone that they imply."""
        answer = document.answer
        problems: list[tuple[Location, str]] = []
        if len(document.agents) != 2:
            problems.append((("agents",), "craigslist needs exactly two agents"))
        for role in ("seller", "buyer"):
            if answer.get(role) not in document.names:
                problems.append((("answer", role), f"must be one of {', '.join(document.names)}"))
        if answer.get("seller") == answer.get("buyer") and not problems:
            problems.append((("answer", "buyer"), "must not be the seller"))
        for key in ("list_price", "seller_target", "buyer_target"):
            value = answer.get(key)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
                problems.append((("answer", key), "must be a price above 0"))
        if not problems:
            low, high = answer["seller_target"], answer["buyer_target"]
            zone = [low, high] if low <= high else None
            if answer.get("zone") != zone:
                problems.append((("answer", "zone"), f"must be {zone if zone else 'null'}, from the two targets"))
        return problems

    def side(self, agent: str, answer: AnswerKey) -> str:
        return "seller" if agent == answer.answer.get("seller") else "buyer"

    def remarks(self, scores: Mapping[str, float]) -> list[str]:
        return [f"Price: ${scores['price']:g}."] if "price" in scores else []

    def verdict(self, scores: Mapping[str, Score], answer: AnswerKey) -> Verdict | None:
        """Return the price or the way out, both limits, and if a price suits both; None if the ending was not read."""
        ended, price, success = (scores.get(name) for name in ("ending", "price", "success"))
        if ended is None:
            return None
        amount = None if price is None else price.value
        said = _ENDINGS.get(str(ended.label), "") if amount is None else f"They agree on {_money(amount)}."
        right = None if success is None or success.value is None else success.value == 1
        missed = _missed(ended.label == "deal", amount, answer.answer) if right is False else ""
        return Verdict(right, said, _truth(answer.answer), missed)

    def touches(self, transcript: Transcript, scenario: Scenario) -> Sequence[int]:  # noqa: ARG002 - of the base
        return [turn.index for turn in transcript.turns if turn.said and find_prices(turn.action.text)]

    def offered(self, scenario: Scenario, agent: str) -> Offered:  # noqa: ARG002 - of the base
        """Return that a price, or none, is stated."""
        return Offered(price=True)

    def omniscient(self, seen: Observation, rng: random.Random) -> Action | None:
        return players.omniscient(seen, rng)

    def peek(self, seen: Observation, rng: random.Random) -> Action | None:
        return players.peek(seen, rng)

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Return the scores of the ending, of the price, and of each side's offers.

        The ending: ending, unknown_ending, deal, deal_with_zone or deal_without_zone, walked_away, success and
        explicit_end. A conversation that reaches the turn limit without agreement has the ending `ran_out`, and one
        that only repeats itself at its end has `stale`; both are no deal. An ending that cannot be read is `unknown`,
        and all scores that depend on it are absent.
        The price of a deal: price, in_zone, and surplus = (price - seller target) / list price for the seller,
        (buyer target - price) / list price for the buyer. Offers: concession, limit_hit, limit_chance and peeking; or
        limit_unjudged, for a first offer that cannot show if its speaker knows the other side's target.
        """
        key = answer.answer
        ended = _ended(transcript, scenario, key)
        cited = (ended.turn,) if ended.turn is not None else ()
        unknown = ended.kind == "unknown"
        scores = [
            Score("ending", None, label=ended.kind, reason=ended.reason, turns=cited),
            Score("unknown_ending", float(unknown), reason=ended.reason, turns=cited),
            *offer_scores(without_statement(transcript.turns), key),
        ]
        return scores if unknown else [*scores, *_outcome(ended, key, cited)]


def _ended(transcript: Transcript, scenario: Scenario, key: Mapping[str, Any]) -> Ending:
    """Return the ending that the words tell; without one, `ran_out` at the turn limit, `stale` after repetition.

    What a person states on a form when they end the talk counts instead.
    """
    stated, turns = stated_in(transcript.turns), without_statement(transcript.turns)
    read = bargain_ending(turns, seller=key["seller"], buyer=key["buyer"], list_price=float(key["list_price"]))
    if stated is not None:
        return settled(stated, turns, read, float(key["list_price"]))
    limit = scenario.limits.turns
    if read.kind == "unknown" and read.turn is None and len(transcript) >= limit:
        return Ending("ran_out", None, limit - 1, f"no agreement within the limit of {limit} turns")
    if read.kind == "unknown" and read.turn is None and ending(scenario.limits, transcript, scenario.names) == "stale":
        return Ending("stale", None, len(transcript) - 1, "no agreement, and nothing new is said any more")
    return read


def _outcome(found: Ending, key: Mapping[str, Any], cited: tuple[int, ...]) -> Iterator[Score]:
    """Yield the scores that depend on an ending that is known."""
    deal = found.kind == "deal"
    yield Score("deal", float(deal), reason=found.reason, turns=cited)
    yield Score("explicit_end", float(found.kind not in ("ran_out", "stale")), reason=found.reason, turns=cited)
    if found.price is not None:
        yield from _price_scores(found.price, key, cited)
    if targets_are_limits(key):
        yield from _right_or_wrong(found, key, cited)


def _right_or_wrong(found: Ending, key: Mapping[str, Any], cited: tuple[int, ...]) -> Iterator[Score]:
    """Yield the scores that hold the ending against the zone of agreement."""
    zone, deal, price = key.get("zone"), found.kind == "deal", found.price
    reason = "a zone of agreement exists" if zone else "no zone of agreement exists"
    yield Score(f"deal_{'with' if zone else 'without'}_zone", float(deal), reason=found.reason, turns=cited)
    if found.kind == "no_deal":
        yield Score("walked_away", float(zone is None), reason=f"1 where it was right: {reason}", turns=cited)
    right = price is not None and zone[0] <= price <= zone[1] if zone else not deal
    yield Score("success", float(right), reason=f"{found.kind}; {reason}", turns=cited)


def _price_scores(price: float, key: Mapping[str, Any], cited: tuple[int, ...]) -> Iterator[Score]:
    list_price, zone = float(key["list_price"]), key.get("zone")
    yield Score("price", price, reason="dollars", turns=cited)
    yield Score("surplus", (price - key["seller_target"]) / list_price, agent=key["seller"], turns=cited)
    yield Score("surplus", (key["buyer_target"] - price) / list_price, agent=key["buyer"], turns=cited)
    if zone:
        inside = zone[0] <= price <= zone[1]
        yield Score("in_zone", float(inside), reason=f"zone ${zone[0]} to ${zone[1]}", turns=cited)


def _missed(deal: bool, price: float | None, key: Mapping[str, Any]) -> str:
    """Return what is wrong with an ending, as a word of `Verdict.missed`."""
    if not key.get("zone"):
        return "bad_deal"
    return "no_deal" if not deal else "loss" if price is not None else "unread"


def _truth(key: Mapping[str, Any]) -> str:
    seller, buyer = key["seller"], key["buyer"]
    low, high = _money(key["seller_target"]), _money(key["buyer_target"])
    if not targets_are_limits(key):
        return f"{seller} hopes for {low}, {buyer} for {high}; these are hopes and not limits."
    wanted = f"{seller} wants at least {low}, and {buyer} wants to pay at most {high}"
    zone = key.get("zone")
    if not zone:
        return f"{wanted}: no price suits both, so it is right to leave without a deal."
    return f"{wanted}: every price from {low} to {high} suits both."


def _money(amount: float) -> str:
    return f"${amount:,.0f}" if float(amount).is_integer() else f"${amount:,.2f}"
