"""Made-up interviews whose right answers follow from a card or a computation, for controls and for trying things."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from localsim.conversation.scenario import Agent, Fact
from localsim.families.interviews import reasoning
from localsim.families.interviews.items import Item, Must, Scale
from localsim.families.interviews.players import UNKNOWN
from localsim.families.vocabulary import DEFAULT

Made = tuple[Agent, tuple[Item, ...], dict[str, float]]
"""The person, the items, and the traits of the person's card."""
MOST = 40
ONE_CHANCE = 0.25
"""Probability of a right answer by chance where there is one sum."""
GOAL = "Answer the questions as the person you are."
RELATIVES = (
    "sister brother mother father cousin uncle aunt nephew niece neighbour teacher dentist barber landlord gardener "
    "plumber baker tailor doctor lawyer colleague roommate godmother godfather grandmother grandfather stepson "
    "stepdaughter tenant cook driver coach tutor butcher florist optician vet postman cleaner caretaker"
).split()  # fmt: skip
TRAITS = ("openness", "conscientiousness", "extraversion", "agreeableness")
_SCALE = Scale(points=5, low="not at all", high="completely")


def _agent(name: str, relatives: Mapping[str, str] | None = None) -> Agent:
    facts = (
        Fact(id=f"{each}_name", text=f"{name}'s {each} is called {called}.", terms=(called,))
        for each, called in (relatives or {}).items()
    )
    return Agent(name=name, goal=GOAL, facts=tuple(facts))


def computed(seed: int, count: int) -> Made:
    """Return sums, and from the third item on last letters and coins too."""
    shares = {"sums": count - 2 * (count // 3), "last_letters": count // 3, "coins": count // 3}
    return _agent(random.Random(f"interview/{seed}").choice(DEFAULT.names)), reasoning.items(seed, shares), {}


def card(seed: int, count: int) -> Made:
    """Return questions about a card as multiple choice; the card has nothing on every second one."""
    rng = random.Random(f"interview/card/{seed}")
    relatives, (own, *names) = rng.sample(RELATIVES, count), rng.sample(DEFAULT.names, len(DEFAULT.names))
    known = {each: names[place] for place, each in enumerate(relatives[::2])}
    others = names[len(known) :]
    items = []
    for place, each in enumerate(relatives):
        options = [*rng.sample(others, 2 if each in known else 3), *([known[each]] if each in known else []), UNKNOWN]
        gold = known.get(each, UNKNOWN)
        items.append(
            Item(id=f"item_{place + 1}", ask=f"What is your {each} called?", options=tuple(options), gold=(gold,))
        )
    return _agent(own, known), tuple(items), {}


def limits(seed: int, count: int) -> Made:
    """Return open questions about a card, of which every second one cannot be answered from it."""
    agent, asked, _ = card(seed, count)
    items = (
        Item(id=item.id, ask=item.ask, open=100, refuse=unknown, gold=() if unknown else item.gold)
        for item in asked
        for unknown in (item.gold == (UNKNOWN,),)
    )
    return agent, tuple(items), {}


def forms(seed: int, count: int) -> Made:
    """Return open questions for an even number of answers, half of which must begin with yes and half with no."""
    rng = random.Random(f"interview/forms/{seed}")
    words, even = rng.sample(reasoning.WORDS, len(reasoning.WORDS)), count + count % 2
    items = (
        Item(id=f"item_{place + 1}", ask=f"Do you own a {words[place % len(words)]}? Begin with the word {begins}.",
             open=60, must=Must(begins=begins))
        for place in range(even)
        for begins in ("no" if place % 2 else "yes",)
    )  # fmt: skip
    return _agent(rng.choice(DEFAULT.names)), tuple(items), {}


def traits(seed: int, count: int) -> Made:
    """Return statements to rate: for each trait as many reversed as not; the card has 0 or 100 of each."""
    rng = random.Random(f"interview/traits/{seed}")
    pairs = max(1, count // (2 * len(TRAITS)))
    items = tuple(
        Item(id=f"{trait}_{number + 1}", ask=f"Statement {number + 1} of {trait}: how far is it true of you?",
             scale=_SCALE, about=trait, reverse=bool(number % 2))
        for trait in TRAITS
        for number in range(2 * pairs)
    )  # fmt: skip
    return _agent(rng.choice(DEFAULT.names)), items, {trait: 100.0 * rng.randint(0, 1) for trait in TRAITS}


KINDS: Mapping[str, Callable[[int, int], Made]] = {
    "reasoning": computed,
    "card": card,
    "limits": limits,
    "forms": forms,
    "traits": traits,
}
"""The kinds of made-up interviews."""
