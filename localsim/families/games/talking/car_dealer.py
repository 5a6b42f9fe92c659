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
from collections.abc import Mapping
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.talking.cars import (
    BRANDS,
    BUDGETS,
    FEATURES,
    PERSONALITIES,
    STEP,
    TYPES,
    cars_in,
    fancy_reward,
    lot,
    named,
    wishes_in,
    with_article,
)


class CarDealer(g.Game):
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
        g.Measure("sold", "sold", "share of talks in which a car is sold", "sold", kind="share", compared=True),
        g.Measure("fancy", "reward fancy", "price against the mean of budget and list price", "fancy", compared=True),
        g.Measure("revenue", "revenue", "price of the car that is sold, in thousands of dollars", "revenue"),
        g.Measure("match", "wishes met", "share of the buyer's wishes that the car meets", "match", kind="share"),
        g.Measure("over_budget", "over budget", "share of sales above the buyer's budget", "over_budget", kind="share"),
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

    def generate(self, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> g.ScenarioFile:
        """Return a scenario: wishes, a budget (0: drawn), and cars, one of which meets all wishes."""
        chosen = g.merged(self.defaults, parameters, self.name)
        if not (2 <= chosen["cars"] <= 20 and 0.5 <= chosen["list_price"] <= 1.3 and chosen["lines"] >= 4):
            raise g.InvalidInput("car_dealer: cars 2 to 20, list_price 0.5 to 1.3, lines 4 and more")
        if chosen["budget"] not in (0, *BUDGETS):
            raise g.InvalidInput(f"car_dealer: budget = {chosen['budget']} is not 0 or one of {BUDGETS}")
        rng = random.Random(f"{self.name}/{seed}")
        dealer, buyer = g.names_of(self, seed, 2)
        budget = chosen["budget"] or rng.choice(BUDGETS)
        cars, wishes = lot(rng, chosen["cars"], budget, chosen["list_price"])
        letters = "ABCDEFGHIJKLMNOPQRST"[: len(cars)]
        said = {"personality": rng.choice(PERSONALITIES), "brand": wishes[0], "type": wishes[1]}
        facts = [g.private(buyer, "personality", f"{buyer} is {said['personality']}.", said["personality"])]
        facts += [g.private(buyer, kind, f"{buyer} wants this {kind}: {said[kind]}.", said[kind]) for kind in said][1:]
        facts += [g.private(buyer, f"feature_{n}", f"{buyer} wants {each}.", each) for n, each in enumerate(wishes[2:])]
        facts.append(g.private(buyer, "budget", f"{buyer} can spend at most ${budget}.", budget))
        stock = tuple(g.private(dealer, letter, car.text(letter), car.price)
                    for letter, car in zip(letters, cars, strict=True))  # fmt: skip
        return self.scenario(
            scenario_id,
            seed,
            chosen,
            title=f"{dealer} sells cars, and {buyer} wants one",
            setting=(
                f"{dealer} is a car dealer with {len(cars)} cars, and {buyer} wants to buy one. They talk, at most "
                f"{chosen['lines']} lines together. {dealer} offers one car and a price; {buyer} accepts, goes on "
                "talking, or walks away."
            ),
            agents=(
                g.Agent(name=dealer, goal="Find out what the buyer wants, and sell at a high price.", facts=stock),
                g.Agent(name=buyer, goal="Get the car that you want within your budget.", facts=tuple(facts)),
            ),
            talk=True,
            moves=(
                g.Move(
                    name="offer",
                    values=(g.one_of(*letters), g.number(STEP, 120_000, STEP)),
                    tell="To offer a car at a price in dollars",
                    by=(dealer,),
                ),
                g.Move(name="accept", tell="To buy the car that was offered last", by=(buyer,)),
                g.Move(name="walk-away", tell="To end the talk without a car", by=(buyer,)),
            ),
            public={"lines": chosen["lines"]},
            turns=chosen["lines"],
        )

    def step(self, scenario: g.Scenario, talk: g.Transcript, seed: int) -> g.Next:
        """Speak in turn, the dealer first; a car that is offered for the first time is described to both."""
        dealer, buyer = scenario.names
        if talk.last in ("accept", "walk-away"):
            return g.DONE
        offers = talk.of("offer")
        described = {turn.action.values[0] for turn in talk.told if turn.action.values}
        if offers and offers[-1].value not in described:
            letter = offers[-1].value
            return g.Tell(cars_in(scenario.agent(dealer).facts)[letter].text(letter), values=(letter,))
        if len(talk.acts) % 2 == 0:
            return g.act(dealer, "offer", "speak")
        return g.act(buyer, "accept", "walk-away", "speak") if offers else g.act(buyer, "speak")

    def score(self, transcript: g.Transcript, scenario: g.Scenario, answer: g.AnswerKey) -> list[g.Score]:
        """Return both published rewards, the wishes that the car meets, and whether the budget held."""
        dealer, buyer = (scenario.agent(name) for name in scenario.names)
        offers, accepted = transcript.of("offer"), transcript.of("accept")
        budget = int(next(fact.terms[0] for fact in buyer.facts if fact.id.endswith("_budget")))
        if not offers:
            unsold = [
                g.Score("success", 0.0, reason="no car was offered"),
                g.Score("sold", 0.0),
                g.Score("revenue", 0.0),
            ]
            return [*unsold, g.Score("fancy", 0.0, reason="no car was offered")]
        letter, price = offers[-1].value, int(str((offers[-1].action.values or ())[1]))
        car, cited = cars_in(dealer.facts)[letter], (offers[-1].index, *(turn.index for turn in accepted))
        fancy = fancy_reward(price if accepted else None, car.price, budget)
        rewards = [
            g.Score("fancy", fancy, turns=cited),
            g.Score("revenue", price / 1000 if accepted else 0.0, turns=cited),
        ]
        if not accepted:
            return [g.Score("success", 0.0, reason="no car was sold"), g.Score("sold", 0.0), *rewards]
        match = car.match(wishes_in(buyer.facts))
        told = f"{buyer.name} paid ${price} of ${budget} for car {letter}, which meets {match:.0%} of the wishes"
        return [
            g.Score("success", float(match == 1 and price <= budget), reason=told, turns=cited),
            g.Score("sold", 1.0, turns=cited),
            *rewards,
            g.Score("match", match, turns=cited),
            g.Score("over_budget", float(price > budget), turns=cited),
        ]

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        """Offer the car that meets all wishes for the whole budget; None if the wishes are not known."""
        other = g.others(seen)[0]
        if g.known(seen, "budget", other) is None and g.known(seen, "A", other) is None:
            return None
        if not seen.may("offer"):
            return _haggler(seen, rng)
        facts = next(agent.facts for agent in seen.agents if agent.name == other)
        return g.move("offer", _best(seen, wishes_in(facts)), g.known(seen, "budget", other))


# ---- players -------------------------------------------------------------------------------------------------------


def _best(seen: g.Observation, wishes: tuple[str, ...] | list[str]) -> str:
    """Return the letter of the own car that meets the most wishes."""
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
        price, asked = int(told.rsplit("$", 1)[1].rstrip(".")), int((offers[-1].action.values or ())[1])
        if set(wishes) <= set(named(told, (*BRANDS, *TYPES, *FEATURES))):
            enough = asked <= min(price, int(g.known(seen, "budget") or 0))
            return g.move("accept") if enough else g.Action("speak", "I like it, but that is too much for me.")
    return g.Action("speak", f"I would like {with_article(wishes[0])} {wishes[1]} with {g.listed(wishes[2:])}.")


def _refuser(seen: g.Observation, rng: random.Random) -> g.Action:
    """Walk away from the first offer."""
    return g.move("walk-away") if seen.may("walk-away") else _haggler(seen, rng)


def _yes_sayer(seen: g.Observation, rng: random.Random) -> g.Action:
    """Accept the first offer."""
    return g.move("accept") if seen.may("accept") else _haggler(seen, rng)


CarDealer.players = {"haggler": _haggler, "refuser": _refuser, "yes-sayer": _yes_sayer}
CarDealer.sensible = "haggler"
