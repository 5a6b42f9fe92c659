"""Scripted players of craigslist. They receive the observation that a model would be prompted with."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping
from functools import partial

from localsim.conversation.episode import AgentView, Observation
from localsim.conversation.transcript import Action
from localsim.families.craigslist.offering import RATE, SHARES
from localsim.families.players import Player, last_of_others, leave, smalltalk
from localsim.families.prices import find_prices

_TOO_FAR = "I am afraid we are too far apart. No deal. Goodbye!"
_LIST_PRICE = re.compile(r"for (\$\d[\d,]*(?:\.\d+)?)")


def random_haggler(seen: Observation, rng: random.Random) -> Action:
    """Offer any price between the own target and opening; the baseline for prices."""
    return _bargain(seen, rng, pace=rng.random())


def omniscient(seen: Observation, rng: random.Random) -> Action | None:
    """Offer the middle of both targets; None if both are not visible."""
    targets = [price for agent in seen.agents if (price := _target(agent)) is not None]
    if len(targets) < len(seen.agents):
        return None
    return _settle(seen, rng, round(sum(targets) / len(targets)))


def peek(seen: Observation, rng: random.Random) -> Action | None:
    """Offer exactly the other's target, accept what meets the own, leave where no price meets both.

    None if the other's target is not visible.
    """
    target, limit = _target(seen.me()), _target_of_other(seen)
    if target is None or limit is None:
        return None
    if (limit < target) if _sells(seen) else (limit > target):
        return leave(seen, _TOO_FAR)
    return _settle(seen, rng, limit, accepted=target)


def mix_up(seen: Observation, rng: random.Random) -> Action:
    """Play like `haggler`, but take the other's target for the own one if it is visible."""
    return _bargain(seen, rng, pace=0.25, target=_target_of_other(seen))


def guesser(seen: Observation, rng: random.Random) -> Action:
    """Guess the other's target anew in each turn, and offer that; accept what is as good."""
    listed = _list_price(seen)
    if listed is None:
        return smalltalk(seen, rng)
    share = rng.choice(SHARES) if _sells(seen) else 1 / (1 + rng.expovariate(RATE))
    return _settle(seen, rng, max(2, round(listed * share)), stuck=_own_turns(seen) >= 7)


def yes_sayer(seen: Observation, rng: random.Random) -> Action:
    """Agree to the first price that the other names; until then, a seller asks the list price."""
    listed, last = _list_price(seen), last_of_others(seen)
    if listed is None:
        return smalltalk(seen, rng)
    if last is not None and find_prices(last.action.text):
        return _settle(seen, rng, 0 if _sells(seen) else math.inf)
    return Action("speak", f"My offer is ${listed:g}." if _sells(seen) else "What do you ask for it?")


def refuser(seen: Observation, rng: random.Random) -> Action:
    """Name the opening price of `haggler` once, then leave without a deal, whatever the other offers."""
    listed = _list_price(seen)
    if listed is None:
        return smalltalk(seen, rng)
    if _own_turns(seen):
        return leave(seen, _TOO_FAR)
    return Action("speak", f"My offer is ${round(listed * (1.0 if _sells(seen) else 0.5))}.")


def silent(seen: Observation, rng: random.Random) -> Action:  # noqa: ARG001 - a player's signature
    """Say nothing, so that the conversation has no ending in words."""
    return Action("none") if "none" in seen.actions else Action("speak", "Hm.")


def _bargain(seen: Observation, rng: random.Random, pace: float, target: float | None = None) -> Action:
    """Offer opening + pace x turns towards the target; accept a price as good as that, leave when stuck."""
    target, listed = target or _target(seen.me()), _list_price(seen)
    if target is None or listed is None:
        return smalltalk(seen, rng)
    opening = listed * (1.0 if _sells(seen) else 0.5)
    if not _sells(seen):
        opening = min(opening, target)
    own_turns = _own_turns(seen)
    offer = round(opening + (target - opening) * min(1.0, pace * (own_turns + (pace == 1.0))))
    return _settle(seen, rng, offer, stuck=own_turns >= 7)


def _settle(
    seen: Observation, rng: random.Random, offer: float, *, accepted: float | None = None, stuck: bool = False
) -> Action:
    """Accept the other's last price if it is as good as `accepted` (by default `offer`); else make the offer.

    A player that is `stuck` leaves instead of making an offer.
    """
    accepted = offer if accepted is None else accepted
    last = last_of_others(seen)
    if last is not None and "Deal" in last.action.text:
        return leave(seen, "Great, see you then. Goodbye!")
    prices = find_prices(last.action.text) if last is not None else []
    if prices:
        asked = prices[-1].value
        if (asked >= accepted) if _sells(seen) else (asked <= accepted):
            return Action("speak", f"Deal! ${asked:g} it is.")
    if stuck:
        return leave(seen, _TOO_FAR)
    forms = ("I can do ${}.", "How about ${}?", "My offer is ${}.", "Could we say ${}?")
    return Action("speak", rng.choice(forms).format(f"{offer:.2f}".removesuffix(".00")))


def _sells(seen: Observation) -> bool:
    return (seen.me().goal or "").startswith("Sell")


def _own_turns(seen: Observation) -> int:
    return sum(turn.speaker == seen.viewer for turn in seen.transcript.turns)


def _list_price(seen: Observation) -> float | None:
    match = _LIST_PRICE.search(seen.setting)
    return find_prices(match[1])[0].value if match else None


def _target(agent: AgentView) -> float | None:
    for fact in agent.facts:
        if fact.id.endswith("_target") and fact.terms and (prices := find_prices(fact.terms[0])):
            return prices[0].value
    return None


def _target_of_other(seen: Observation) -> float | None:
    return next((_target(agent) for agent in seen.agents if agent.name != seen.viewer), None)


HAGGLER: Player = partial(_bargain, pace=0.25)
"""It opens at the list price (seller) or half of it (buyer), concedes evenly towards its target, and sees only that."""
PLAYERS: Mapping[str, Player] = {
    "haggler": HAGGLER,
    "patient-buyer": partial(_bargain, pace=0.12),
    "firm": partial(_bargain, pace=1.0),
    "random-haggler": random_haggler,
    "honest": HAGGLER,
    "guesser": guesser,
    "yes-sayer": yes_sayer,
    "refuser": refuser,
    "mix-up": mix_up,
    "silent": silent,
}
"""The players by name; `honest` is the one that controls know as using nothing but its own side."""
