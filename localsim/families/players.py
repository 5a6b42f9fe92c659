"""Scripted players. Each is a function (what the agent may see, random generator) -> Action.

They see exactly what a model in their place would be prompted with, so they measure what information alone is worth:
`guesser` is the baseline that first-mention and success figures are read against, `omniscient` the other extreme.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from localsim.conversation.episode import AgentView, Observation
from localsim.conversation.transcript import Action, Turn
from localsim.families.mutual_friends.names import mentions
from localsim.families.prices import find_prices

Policy = Callable[[Observation, random.Random], Action]
_ASKS = ("Do you know {}?", "Have you ever met {}?", "Is {} a friend of yours?", "I have a friend called {}. You too?")
_ASKED = re.compile("|".join(re.escape(form).replace(r"\{\}", r"(\w[\w'-]*)") for form in _ASKS))
_LIST_PRICE = re.compile(r"for (\$\d[\d,]*(?:\.\d+)?)")


def friends(seen: Observation, rng: random.Random) -> Action:
    """mutual_friends: answers truthfully and asks about its own friends in turn, never the same one twice."""
    asked = {name for turn in seen.transcript.turns for name in _asked_in(turn)}
    return _friends_turn(seen, rng, [name for name in _friend_names(seen.me()) if name not in asked])


def guesser(seen: Observation, rng: random.Random) -> Action:
    """mutual_friends: answers truthfully and asks about a friend of its own at random, forgetting earlier turns."""
    return _friends_turn(seen, rng, [rng.choice(_friend_names(seen.me()) or ["anybody here"])])


def haggler(seen: Observation, rng: random.Random) -> Action:
    """craigslist: opens at the list price (seller) or half of it (buyer), concedes evenly down to its target."""
    return _bargain(seen, rng, pace=0.25)


def patient_buyer(seen: Observation, rng: random.Random) -> Action:
    """craigslist: as `haggler`, conceding slowly."""
    return _bargain(seen, rng, pace=0.12)


def firm(seen: Observation, rng: random.Random) -> Action:
    """craigslist: names its target at once and never moves."""
    return _bargain(seen, rng, pace=1.0)


def random_haggler(seen: Observation, rng: random.Random) -> Action:
    """craigslist: offers any price between its target and its opening; the baseline for prices."""
    return _bargain(seen, rng, pace=rng.random())


def omniscient(seen: Observation, rng: random.Random) -> Action:
    """Uses whatever it can see of others: names the shared friend at once, offers the middle of both targets."""
    others = [agent for agent in seen.agents if agent.name != seen.viewer]
    if seen.family == "mutual_friends":
        theirs = {name for agent in others for name in _friend_names(agent)}
        if theirs:
            return _friends_turn(seen, rng, [name for name in _friend_names(seen.me()) if name in theirs])
    if seen.family == "craigslist":
        targets = [price for agent in seen.agents if (price := _target(agent)) is not None]
        if len(targets) == len(seen.agents):
            return _settle(seen, rng, round(sum(targets) / len(targets)))
    return auto(seen, rng)


def smalltalk(seen: Observation, rng: random.Random) -> Action:
    """Any scenario: a few friendly words, then a goodbye."""
    own = sum(turn.speaker == seen.viewer for turn in seen.transcript.turns)
    if own >= 3:
        return _leave(seen, "It was good talking to you. Goodbye!")
    lines = (
        ("Hello, good to see you.", "Hi there, how are you?", "Good day! How have you been?"),
        ("I have been thinking about this for a while.", "There is something I would like to talk about."),
        ("I see what you mean.", "Let us find a way that works for both of us.", "Thank you for telling me."),
    )
    return Action("speak", rng.choice(lines[own]))


def auto(seen: Observation, rng: random.Random) -> Action:
    """The sensible player for the scenario's family."""
    play = {"mutual_friends": friends, "craigslist": haggler}.get(seen.family or "", smalltalk)
    return play(seen, rng)


POLICIES: dict[str, Policy] = {
    "auto": auto,
    "friends": friends,
    "guesser": guesser,
    "haggler": haggler,
    "patient-buyer": patient_buyer,
    "firm": firm,
    "random-haggler": random_haggler,
    "omniscient": omniscient,
    "smalltalk": smalltalk,
}


def _leave(seen: Observation, text: str) -> Action:
    """Go with a last word; where nobody may go, only the word."""
    return Action("leave" if "leave" in seen.actions else "speak", text)


# ---- mutual friends ------------------------------------------------------------------------------------------------


def _friends_turn(seen: Observation, rng: random.Random, candidates: list[str]) -> Action:
    """Leave once a friend is found; otherwise answer what was asked, then ask about the first candidate."""
    own = _friend_names(seen.me())
    last = _last_of_others(seen)
    if last is not None and ("I know" in last.action.text and "too" in last.action.text):
        return _leave(seen, "What a small world! I will tell them that we met. Goodbye!")
    answer = ""
    for name in _asked_in(last) if last is not None else []:
        if any(mentions(name, friend) for friend in own):
            return Action("speak", f"Yes, I know {name} too!")
        answer = f"No, I do not know {name}. "
    if not candidates:
        return _leave(seen, f"{answer}It seems we have no friend in common. Goodbye!")
    return Action("speak", answer + rng.choice(_ASKS).format(candidates[0]))


def _asked_in(turn: Turn) -> list[str]:
    return [name for match in _ASKED.finditer(turn.action.text) for name in match.groups() if name]


def _friend_names(agent: AgentView) -> list[str]:
    return [fact.terms[0] for fact in agent.facts if fact.terms]


# ---- bargaining ----------------------------------------------------------------------------------------------------


def _bargain(seen: Observation, rng: random.Random, pace: float) -> Action:
    """Offer opening + pace x turns towards the own target; accept what is as good as that, leave when stuck."""
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
    last = _last_of_others(seen)
    if last is not None and "Deal" in last.action.text:
        return _leave(seen, "Great, see you then. Goodbye!")
    prices = find_prices(last.action.text) if last is not None else []
    if prices:
        asked = prices[-1].value
        if (asked >= offer) if selling else (asked <= offer):
            return Action("speak", f"Deal! ${asked:g} it is.")
    if stuck:
        return _leave(seen, "I am afraid we are too far apart. No deal. Goodbye!")
    forms = ("I can do ${}.", "How about ${}?", "My offer is ${}.", "Could we say ${}?")
    return Action("speak", rng.choice(forms).format(offer))


def _target(agent: AgentView) -> float | None:
    for fact in agent.facts:
        if fact.id.endswith("_target") and fact.terms and (prices := find_prices(fact.terms[0])):
            return prices[0].value
    return None


def _last_of_others(seen: Observation) -> Turn | None:
    return next((turn for turn in reversed(seen.transcript.turns) if turn.speaker != seen.viewer), None)
