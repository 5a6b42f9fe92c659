"""The cars and the wishes of the game `car_dealer`. Brands, types, features and budgets are those of LMRL-Gym."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from localsim.families.games.base import Fact, listed

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
        return f"Car {letter} is {self.name} with {listed(self.features)}, list price ${self.price}."


def with_article(name: str) -> str:
    """Return the name of a car with its article."""
    return f"{'an' if name[0] in 'AEIO' else 'a'} {name}"


def fancy_reward(paid: int | None, list_price: int, budget: int) -> float:
    """Return the published reward `fancy`; `paid` is None if the car is not sold."""
    return -(budget - list_price) / list_price if paid is None else paid / ((budget + list_price) / 2)


def cars_in(facts: Sequence[Fact]) -> dict[str, Car]:
    """Return the cars that facts of a dealer describe, by letter."""
    found = {}
    for fact in facts:
        (brand,), (kind,) = named(fact.text, BRANDS), named(fact.text, TYPES)
        found[fact.id[-1]] = Car(brand, kind, named(fact.text, FEATURES), int(fact.terms[0]))
    return found


def wishes_in(facts: Sequence[Fact]) -> list[str]:
    """Return the brand, the type and the features that facts of a buyer name."""
    wanted = (fact for fact in facts if re.search(r"_(brand|type|feature_\d)$", fact.id))
    return [fact.terms[0] for fact in wanted]


def named(text: str, options: Sequence[str]) -> tuple[str, ...]:
    """Return the options that a text names in whole words."""
    return tuple(each for each in options if re.search(rf"(?<!\w){re.escape(each)}(?!\w)", text, re.IGNORECASE))


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
