"""A car dealer and a buyer with hidden wishes (LMRL-Gym, arXiv 2311.18232; code at abdulhaim/LMRL-Gym).

The buyer has a personality, a brand, a type, one to four features and a budget, which the dealer does not know. With
y for the price, m for the list price of the car that was offered last and b for the budget, the rewards of the dealer
are those of the published code. Fancy: y / ((b + m) / 2) if the car is sold, else -(b - m) / m, and 0 if no car was
offered. Revenue: y / 1000 if it is sold, else 0.

Brands, types, features and budgets are the published ones. Of the ten personalities the three that ask for abuse are
replaced. The dealer has a few cars with list prices, where the published dealer makes its car up, and offers are moves.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Table
from localsim.families.terms import utters
from localsim.families.vocabulary import with_article

BUDGETS = (10_000, 30_000, 50_000, 70_000, 90_000)
PERSONALITIES = (
    "angry", "anxious", "impatient", "polite", "respectful", "rude", "sarcastic", "suspicious", "talkative",
    "uncommunicative",
)  # fmt: skip
BRANDS = (
    "Audi", "BMW", "Ford", "Honda", "Hyundai", "Lexus", "Mazda", "Mercedes-Benz", "Porsche", "Subaru", "Tesla",
    "Toyota", "Volkswagen",
)  # fmt: skip
TYPES = ("convertible", "electric car", "luxury car", "sedan", "SUV", "truck")
FEATURES = (
    "Apple CarPlay", "backup camera", "blind spot monitoring", "heated seats", "leather seats", "navigation system",
    "sunroof", "third-row seating",
)  # fmt: skip
STEP = 500
"""Prices are multiples of this many dollars."""


@dataclass(frozen=True)
class Car:
    """A car of the dealer."""

    brand: str
    type: str
    features: tuple[str, ...]
    price: int

    @property
    def name(self) -> str:
        """Brand and type with an article."""
        return with_article(f"{self.brand} {self.type}")

    def match(self, wishes: Sequence[str]) -> float:
        """Return the share of wishes that it meets."""
        return sum(wish in (self.brand, self.type, *self.features) for wish in wishes) / len(wishes)

    def text(self, letter: str) -> str:
        """Return what is told about it."""
        return f"Car {letter} is {self.name} with {g.listed(self.features)}, list price ${self.price}."


def fancy_reward(paid: int | None, list_price: int, budget: int) -> float:
    """Return the published reward `fancy`; `paid` is None if the car is not sold."""
    return -(budget - list_price) / list_price if paid is None else paid / ((budget + list_price) / 2)


def cars_in(facts: Sequence[g.Fact]) -> dict[str, Car]:
    """Return the cars that facts of a dealer describe, by letter."""
    found = {}
    for fact in facts:
        (brand,), (kind,) = named(fact.text, BRANDS), named(fact.text, TYPES)
        found[fact.id[-1]] = Car(brand, kind, named(fact.text, FEATURES), int(fact.terms[0]))
    return found


def wishes_in(facts: Sequence[g.Fact]) -> list[str]:
    """Return the brand, the type and the features that facts of a buyer name."""
    wanted = (fact for fact in facts if re.search(r"_(brand|type|feature_\d)$", fact.id))
    return [fact.terms[0] for fact in wanted]


def named(text: str, options: Sequence[str]) -> tuple[str, ...]:
    """Return the options that a text names in whole words."""
    return tuple(each for each in options if utters(text, each))


def lot(rng: random.Random, count: int, budget: int, list_price: float) -> tuple[list[Car], list[str]]:
    """Return cars in random order, one of which meets all wishes, and the wishes."""
    brand, kind = rng.choice(BRANDS), rng.choice(TYPES)
    wanted = rng.sample(FEATURES, rng.randint(1, 4))
    cars = [Car(brand, kind, tuple(sorted(wanted)), round(budget * list_price / STEP) * STEP)]
    while len(cars) < count:
        features = tuple(sorted(rng.sample(FEATURES, rng.randint(2, 4))))
        # Each other car lacks one wish at least, and no price gives a budget away.
        car = Car(rng.choice(BRANDS), rng.choice(TYPES), features, STEP * rng.randint(16, 199))
        if (car.brand, car.type) != (brand, kind) and car.price not in BUDGETS:
            cars.append(car)
    rng.shuffle(cars)
    return cars, [brand, kind, *wanted]


class CarDealer(Replayed):
    """A dealer finds out what a buyer wants, and sells a car."""

    name, version = "car_dealer", "1"
    title = "The car dealer"
    about = "A car dealer talks with a buyer, finds out what the buyer wants, and offers cars and prices."
    defaults = {"cars": 6, "budget": 0, "list_price": 1.1, "lines": 20}
    how = (
        "One car meets all wishes. Fancy is the price divided by the mean of budget and list price if a car is sold, "
        "else (list price - budget) / list price. Revenue is the price in thousands of dollars."
    )
    tries = (
        "Compare agents with mindreaders, who see the budget: does the dealer still lower the price?",
        "Play the buyer yourself: localsim play car_dealer_plain --with scripted",
        "Let -m scripted:yes-sayer play: what does a buyer pay who takes everything?",
    )
    bundled = {
        "plain": {},
        "bargain": {"list_price": 0.9},
        "dear": {"list_price": 1.3},
        "many_cars": {"cars": 12},
        "long": {"lines": 50, "cars": 12},
    }
    interests = "competitive"
    measures = (
        g.SUCCESS,
        g.share("sold", "sold", "share of talks in which a car is sold", compared=True),
        g.mean("fancy", "reward fancy", "price against the mean of budget and list price", compared=True),
        g.mean("revenue", "revenue", "price of the car that is sold, in thousands of dollars"),
        g.share("match", "wishes met", "share of the buyer's wishes that the car meets"),
        g.share("over_budget", "over budget", "share of sales above the buyer's budget"),
    )
    figure = ("success_rate", "fancy", "match")
    references = (
        g.RANDOM,
        g.Reference(
            "haggler",
            "best known",
            "tells all wishes, and lowers the price until it is low enough; optimal play is not known",
        ),
    )
    control_tasks = {"budget 50000": {"budget": 50_000}}
    controls = (
        g.exactly("haggler", "success_rate", 1, "wishes are told, and the price falls until it is low enough"),
        g.exactly("haggler", "sold", 1, "the price falls until it is low enough"),
        g.exactly("haggler", "match", 1, "the buyer takes nothing else"),
        g.exactly("haggler", "over_budget", 0, "the buyer pays no more than the budget"),
        g.exactly("haggler", "revenue", 49.5, "55000 less two steps of 5%, in whole steps of 500", "budget 50000"),
        g.exactly("refuser", "sold", 0, "the buyer walks away"),
        g.exactly("refuser", "revenue", 0, "the buyer walks away"),
        g.exactly("refuser", "match", None, "no car is sold"),
        g.exactly("refuser", "fancy", 1 / 11, "-(b - 1.1 b) / (1.1 b)"),
        g.exactly("yes-sayer", "fancy", 1.1 / 1.05, "the list price is paid: 1.1 b / ((b + 1.1 b) / 2)"),
        g.exactly("yes-sayer", "over_budget", 1, "the list price is above the budget"),
        g.exactly("yes-sayer", "success_rate", 0, "the price is above the budget"),
        g.exactly("omniscient", "fancy", 1 / 1.05, "exactly the budget is paid", modes=("script", "mindreaders")),
        g.exactly("omniscient", "revenue", 50, "the budget is paid", "budget 50000", ("script", "mindreaders")),
    )

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        if not (2 <= chosen["cars"] <= 20 and 0.5 <= chosen["list_price"] <= 1.3 and chosen["lines"] >= 4):
            raise g.InvalidInput("car_dealer: cars 2 to 20, list_price 0.5 to 1.3, lines 4 and more")
        if chosen["budget"] not in (0, *BUDGETS):
            raise g.InvalidInput(f"car_dealer: budget = {chosen['budget']} is not 0 or one of {BUDGETS}")
        (dealer, buyer), rng = names, random.Random(f"{self.name}/{seed}")
        budget = chosen["budget"] or rng.choice(BUDGETS)
        cars, (brand, type_, *features) = lot(rng, chosen["cars"], budget, chosen["list_price"])
        letters, personality = "ABCDEFGHIJKLMNOPQRST"[: len(cars)], rng.choice(PERSONALITIES)
        return Scene(
            title=f"{dealer} sells cars, and {buyer} wants one",
            setting=(
                f"{dealer} is a car dealer with {len(cars)} cars, and {buyer} wants to buy one. They talk, at most "
                f"{chosen['lines']} lines together. {dealer} offers one car and a price; {buyer} accepts, goes on "
                "talking, or walks away."
            ),
            goal=(
                "Find out what the buyer wants, and sell at a high price.",
                "Get the car that you want within your budget.",
            ),
            secrets=[
                *(Secret(dealer, each, car.text(each), car.price) for each, car in zip(letters, cars, strict=True)),
                Secret(buyer, "personality", f"{buyer} is {personality}.", personality),
                Secret(buyer, "brand", f"{buyer} wants this brand: {brand}.", brand),
                Secret(buyer, "type", f"{buyer} wants this type: {type_}.", type_),
                *(Secret(buyer, f"feature_{n}", f"{buyer} wants {each}.", each) for n, each in enumerate(features)),
                Secret(buyer, "budget", f"{buyer} can spend at most ${budget}.", budget),
            ],
            talk=True,
            moves=(
                g.can("offer", "To offer a car at a price in dollars", g.one_of(*letters),
                      g.number(STEP, 120_000, STEP), by=dealer, text="may"),
                g.can("accept", "To buy the car that was offered last", by=buyer, text="may"),
                g.can("walk-away", "To end the talk without a car", by=buyer, text="may"),
            ),
            public={"lines": chosen["lines"]},
            turns=chosen["lines"],
        )  # fmt: skip

    def play(self, table: Table) -> Course:
        dealer, buyer = (table.scenario.agent(name) for name in table.names)
        cars, described = cars_in(dealer.facts), set[str]()
        budget = int(next(fact.terms[0] for fact in buyer.facts if fact.id.endswith("_budget")))
        table.score("success", 0, reason="no car was offered")
        table.score("fancy", 0, reason="no car was offered")
        table.score("sold", 0)
        table.score("revenue", 0)
        while True:
            offered = yield from table.act(dealer.name, "offer", "speak")
            if offered.action.type == "offer":
                offer, letter, price = offered, offered.value, int(offered.values[1])
                table.score("success", 0, reason="no car was sold")
                table.score("fancy", fancy_reward(None, cars[letter].price, budget), [offer])
                table.score("revenue", 0, [offer])
                if letter not in described:
                    described.add(letter)
                    yield from table.tell(cars[letter].text(letter), letter)
            answer = yield from table.act(buyer.name, *(("accept", "walk-away") if described else ()), "speak")
            if answer.action.type == "accept":
                match, cited = cars[letter].match(wishes_in(buyer.facts)), (offer, answer)
                told = (
                    f"{buyer.name} paid ${price} of ${budget} for car {letter}, which meets {match:.0%} of the wishes"
                )
                table.score("success", match == 1 and price <= budget, cited, told)
                table.score("sold", 1, cited)
                table.score("fancy", fancy_reward(price, cars[letter].price, budget), cited)
                table.score("revenue", price / 1000, cited)
                table.score("match", match, cited)
                table.score("over_budget", price > budget, cited)
            if answer.action.type != "speak":
                return

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        other = g.others(seen)[0]
        if g.known(seen, "budget", other) is None and g.known(seen, "A", other) is None:
            return None
        if not seen.may("offer"):
            return _haggler(seen, rng)
        facts = next(agent.facts for agent in seen.agents if agent.name == other)
        return g.move("offer", _best(seen, wishes_in(facts)), g.known(seen, "budget", other))


# ---- players -------------------------------------------------------------------------------------------------------


def _best(seen: g.Observation, wishes: tuple[str, ...] | list[str]) -> str:
    cars = cars_in(seen.me().facts)
    return max(cars, key=lambda letter: cars[letter].match(wishes))


def _dealer(seen: g.Observation) -> g.Action:
    """Ask; then offer the car that fits what the buyer named, each time 5% cheaper."""
    said = " ".join(turn.action.text for turn in seen.transcript.acts if turn.speaker != seen.viewer)
    wishes = named(said, (*BRANDS, *TYPES, *FEATURES))
    if not wishes and not seen.transcript.of("offer"):
        return g.Action("speak", "What kind of car are you looking for?")
    letter = _best(seen, wishes or BRANDS)
    before = sum(turn.value == letter for turn in seen.transcript.of("offer"))
    price = int(cars_in(seen.me().facts)[letter].price * (1 - 0.05 * min(before, 18)) / STEP) * STEP
    return g.move("offer", letter, max(STEP, price), text="" if before else "This one would suit you.")


def _haggler(seen: g.Observation, rng: random.Random) -> g.Action:
    """Tell the wishes, and accept only a car that meets all of them within budget and list price."""
    if seen.may("offer"):
        return _dealer(seen)
    wishes = wishes_in(seen.me().facts)
    offers = seen.transcript.of("offer")
    if seen.may("accept") and offers:
        told = next(turn.action.text for turn in seen.transcript.told if turn.value == offers[-1].value)
        price, asked = int(told.rsplit("$", 1)[1].rstrip(".")), int(offers[-1].values[1])
        if set(wishes) <= set(named(told, (*BRANDS, *TYPES, *FEATURES))):
            enough = asked <= min(price, int(g.known(seen, "budget") or 0))
            return g.move("accept") if enough else g.Action("speak", "I like it, but that is too much for me.")
    return g.Action("speak", f"I would like {with_article(wishes[0])} {wishes[1]} with {g.listed(wishes[2:])}.")


CarDealer.players = {
    "haggler": _haggler,
    "refuser": g.taking(g.move("walk-away"), otherwise=_haggler),
    "yes-sayer": g.taking(g.move("accept"), otherwise=_haggler),
}
CarDealer.sensible = "haggler"
