"""Bargaining over a second-hand item (CraigslistBargain, He et al. 2018, arXiv 1808.09637; as a social task:
arXiv 2403.05020). Each side has a private target price; where the seller's is above the buyer's there is no zone of
agreement, and walking away is right.

Scores: deal or walk-away, price, each side's surplus against its target, and if the price is inside the zone.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

from localsim.conversation.episode import Observation, Score
from localsim.conversation.measures import Measure
from localsim.conversation.scenario import Agent, AnswerKey, Fact, Info, Scenario, ScenarioFile
from localsim.conversation.transcript import Action, Transcript
from localsim.errors import InvalidInput
from localsim.families.base import EXPLICIT_END, SUCCESS, Curve, Family, Location, Played, Player, Point, merged
from localsim.families.craigslist import players
from localsim.families.craigslist.endings import bargain_ending
from localsim.families.prices import find_prices
from localsim.families.vocabulary import DEFAULT, Vocabulary, person, with_article

_ZONES = ("yes", "no", "any")

DEAL = Measure(
    key="deal_rate",
    heading="deal",
    meaning="share of all completed conversations that end in a deal",
    score="deal",
    kind="share",
    summed="completed_episodes",
    group="goals",
    compared=True,
    published={"script": 0.94, "agents": 0.30, "agents-ft": 0.93},
)
IN_ZONE = Measure(
    key="in_zone_rate",
    heading="in zone",
    meaning="of the deals where both targets can be met, the share at a price that meets both",
    score="in_zone",
    kind="share",
    summed="episodes",
    group="goals",
)
SELLER_SURPLUS = Measure(
    key="seller_surplus",
    heading="seller surplus",
    meaning="price above the seller\u2019s target, as a part of the list price",
    score="surplus",
    side="seller",
    group="goals",
)
BUYER_SURPLUS = Measure(
    key="buyer_surplus",
    heading="buyer surplus",
    meaning="price below the buyer\u2019s target, as a part of the list price",
    score="surplus",
    side="buyer",
    group="goals",
)
_OFFERS = (0.05, 2.0)
"""Range of offers as parts of the list price; numbers outside it are sizes and years."""


def _offers(played: Played) -> list[Point]:
    """Return the last price that each turn names, as a part of the list price."""
    points = []
    list_price = float(played.answer.answer["list_price"])
    for turn in played.transcript.turns:
        if turn.action.type not in ("speak", "leave"):
            continue
        prices = [price for price in find_prices(turn.action.text, list_price=list_price) if not price.negated]
        if prices and _OFFERS[0] <= (share := prices[-1].value / list_price) <= _OFFERS[1]:
            side = "seller" if turn.speaker == played.answer.answer["seller"] else "buyer"
            points.append(Point(played.transcript.position(turn.index), share, side))
    return points


class Craigslist(Family):
    """Sell or buy one item; agree on a price or walk away."""

    name = "craigslist"
    version = "1"
    defaults: Mapping[str, Any] = {"zone": "yes"}
    title = "Bargaining"
    about = "A seller and a buyer haggle over a second-hand item; each has a private target price."
    invitation = "A seller and a buyer haggle"
    measures = (SUCCESS, EXPLICIT_END, DEAL, IN_ZONE, SELLER_SURPLUS, BUYER_SURPLUS)
    figure = ("success_rate", "deal_rate", "in_zone_rate")
    curve = Curve(
        "offers",
        "Prices named",
        "mean price named, as a part of the list price; sellers solid, buyers dashed",
        "average",
        _offers,
    )
    players: Mapping[str, Player] = {
        "haggler": players.haggler,
        "patient-buyer": players.patient_buyer,
        "firm": players.firm,
        "random-haggler": players.random_haggler,
    }
    sensible = "haggler"

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
        seller_target, buyer_target = self._targets(rng, list_price, chosen["zone"])
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

    def _targets(self, rng: random.Random, list_price: int, zone: str) -> tuple[int, int]:
        while True:
            seller = max(2, round(list_price / (1 + rng.expovariate(2.0))))
            buyer = max(2, round(list_price * rng.choice((0.5, 0.6, 0.7, 0.8, 0.9))))
            margin = 0.05 * list_price
            if seller == list_price:
                continue
            if (
                zone == "any"
                or (zone == "yes" and buyer - seller >= margin)
                or (zone == "no" and seller - buyer >= margin)
            ):
                return seller, buyer

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
        """Return `seller` or `buyer`."""
        return "seller" if agent == answer.answer.get("seller") else "buyer"

    def remarks(self, scores: Mapping[str, float]) -> list[str]:
        """Return a sentence with the price of a deal."""
        return [f"Price: ${scores['price']:g}."] if "price" in scores else []

    def omniscient(self, seen: Observation, rng: random.Random) -> Action | None:
        """Offer the middle of both targets."""
        return players.omniscient(seen, rng)

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Return the scores ending, deal, price, surplus, in_zone, walked_away, success and explicit_end.

        Surplus = (price - seller target) / list price for the seller, (buyer target - price) / list price for the
        buyer. An ending that cannot be read is `unknown`: deal is then absent, and success counts it as no deal.
        """
        key = answer.answer
        ending = bargain_ending(
            transcript.turns, seller=key["seller"], buyer=key["buyer"], list_price=float(key["list_price"])
        )
        cited = (ending.turn,) if ending.turn is not None else ()
        zone = key.get("zone")
        deal = ending.kind == "deal"
        scores = [Score("ending", None, label=ending.kind, reason=ending.reason, turns=cited)]
        in_zone = False
        if ending.kind != "unknown":
            scores.append(Score("deal", float(deal), reason=ending.reason, turns=cited))
        if deal and ending.price is not None:
            scores += self._price_scores(ending.price, key, cited)
            in_zone = zone is not None and zone[0] <= ending.price <= zone[1]
            if zone:
                scores.append(Score("in_zone", float(in_zone), reason=f"zone ${zone[0]} to ${zone[1]}", turns=cited))
        right = in_zone if zone else not deal
        reason = "a zone of agreement exists" if zone else "no zone of agreement exists"
        if ending.kind == "no_deal":
            scores.append(
                Score("walked_away", float(zone is None), reason=f"1 where it was right: {reason}", turns=cited)
            )
        scores.append(Score("success", float(right), reason=f"{ending.kind}; {reason}", turns=cited))
        explicit = ending.kind != "unknown" and (ending.turn is None or ending.turn < scenario.limits.turns)
        scores.append(Score("explicit_end", float(explicit), reason=ending.reason, turns=cited))
        return scores

    def _price_scores(self, price: float, key: Mapping[str, Any], cited: tuple[int, ...]) -> list[Score]:
        list_price = float(key["list_price"])
        return [
            Score("price", price, reason="dollars", turns=cited),
            Score("surplus", (price - key["seller_target"]) / list_price, agent=key["seller"], turns=cited),
            Score("surplus", (key["buyer_target"] - price) / list_price, agent=key["buyer"], turns=cited),
        ]
