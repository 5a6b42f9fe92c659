"""Scripted players of craigslist. They receive the observation that a model would be prompted with."""

from __future__ import annotations

import random
import re

from localsim.conversation.episode import AgentView, Observation
from localsim.conversation.transcript import Action
from localsim.families.players import last_of_others, leave, smalltalk
from localsim.families.prices import find_prices

_LIST_PRICE = re.compile(r"for (\$\d[\d,]*(?:\.\d+)?)")


def haggler(seen: Observation, rng: random.Random) -> Action:
    """Open at the list price (seller) or half of it (buyer), and concede evenly towards the own target."""
    return _bargain(seen, rng, pace=0.25)


def patient_buyer(seen: Observation, rng: random.Random) -> Action:
    """Play like `haggler`, but concede slowly."""
    return _bargain(seen, rng, pace=0.12)


def firm(seen: Observation, rng: random.Random) -> Action:
    """Offer the own target at once and never move."""
    return _bargain(seen, rng, pace=1.0)


def random_haggler(seen: Observation, rng: random.Random) -> Action:
    """Offer any price between the own target and opening; the baseline for prices."""
    return _bargain(seen, rng, pace=rng.random())


def omniscient(seen: Observation, rng: random.Random) -> Action | None:
    """Offer the middle of both targets; None if both are not visible."""
    targets = [price for agent in seen.agents if (price := _target(agent)) is not None]
    if len(targets) < len(seen.agents):
        return None
    return _settle(seen, rng, round(sum(targets) / len(targets)))


def _bargain(seen: Observation, rng: random.Random, pace: float) -> Action:
    """Offer opening + pace x turns towards the own target; accept a price as good as that, leave when stuck."""
    target = _target(seen.me())
    match = _LIST_PRICE.search(seen.setting)
    if target is None or match is None:
        return smalltalk(seen, rng)
    selling = (seen.me().goal or "").startswith("Sell")
    opening = find_prices(match[1])[0].value * (1.0 if selling else 0.5)
    if not selling:
        opening = min(opening, target)
    own_turns = sum(turn.speaker == seen.viewer for turn in seen.transcript.turns)
    offer = round(opening + (target - opening) * min(1.0, pace * (own_turns + (pace == 1.0))))
    return _settle(seen, rng, offer, stuck=own_turns >= 7)


def _settle(seen: Observation, rng: random.Random, offer: int, *, stuck: bool = False) -> Action:
    """Accept the other's last price if it is as good as `offer`; else make the offer, or leave when `stuck`."""
    selling = (seen.me().goal or "").startswith("Sell")
    last = last_of_others(seen)
    if last is not None and "Deal" in last.action.text:
        return leave(seen, "Great, see you then. Goodbye!")
    prices = find_prices(last.action.text) if last is not None else []
    if prices:
        asked = prices[-1].value
        if (asked >= offer) if selling else (asked <= offer):
            return Action("speak", f"Deal! ${asked:g} it is.")
    if stuck:
        return leave(seen, "I am afraid we are too far apart. No deal. Goodbye!")
    forms = ("I can do ${}.", "How about ${}?", "My offer is ${}.", "Could we say ${}?")
    return Action("speak", rng.choice(forms).format(offer))


def _target(agent: AgentView) -> float | None:
    for fact in agent.facts:
        if fact.id.endswith("_target") and fact.terms and (prices := find_prices(fact.terms[0])):
            return prices[0].value
    return None
