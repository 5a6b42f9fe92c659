"""Scripted players of mutual_friends. They receive the observation that a model would be prompted with.

`guesser` is the baseline for figures of first mention and success; `omniscient` is the other extreme.
"""

from __future__ import annotations

import random
import re

from localsim.conversation.episode import AgentView, Observation
from localsim.conversation.transcript import Action, Turn
from localsim.families.mutual_friends.names import mentions
from localsim.families.players import last_of_others, leave

_ASKS = ("Do you know {}?", "Have you ever met {}?", "Is {} a friend of yours?", "I have a friend called {}. You too?")
_ASKED = re.compile("|".join(re.escape(form).replace(r"\{\}", r"(\w[\w'-]*)") for form in _ASKS))


def friends(seen: Observation, rng: random.Random) -> Action:
    """Answer truthfully, and ask about the own friends in turn, never the same one twice."""
    asked = {name for turn in seen.transcript.turns for name in _asked_in(turn)}
    return _friends_turn(seen, rng, [name for name in _friend_names(seen.me()) if name not in asked])


def guesser(seen: Observation, rng: random.Random) -> Action:
    """Answer truthfully, and ask about a random friend of the own list, forgetting earlier turns."""
    return _friends_turn(seen, rng, [rng.choice(_friend_names(seen.me()) or ["anybody here"])])


def omniscient(seen: Observation, rng: random.Random) -> Action | None:
    """Ask about the friends on both lists; None if no other list is visible."""
    theirs = {name for agent in seen.agents if agent.name != seen.viewer for name in _friend_names(agent)}
    if not theirs:
        return None
    return _friends_turn(seen, rng, [name for name in _friend_names(seen.me()) if name in theirs])


def _friends_turn(seen: Observation, rng: random.Random, candidates: list[str]) -> Action:
    """Leave once a friend is found; otherwise answer the question, then ask about the first candidate."""
    own = _friend_names(seen.me())
    last = last_of_others(seen)
    if last is not None and ("I know" in last.action.text and "too" in last.action.text):
        return leave(seen, "What a small world! I will tell them that we met. Goodbye!")
    answer = ""
    for name in _asked_in(last) if last is not None else []:
        if any(mentions(name, friend) for friend in own):
            return Action("speak", f"Yes, I know {name} too!")
        answer = f"No, I do not know {name}. "
    if not candidates:
        return leave(seen, f"{answer}It seems we have no friend in common. Goodbye!")
    return Action("speak", answer + rng.choice(_ASKS).format(candidates[0]))


def _asked_in(turn: Turn) -> list[str]:
    return [name for match in _ASKED.finditer(turn.action.text) for name in match.groups() if name]


def _friend_names(agent: AgentView) -> list[str]:
    return [fact.terms[0] for fact in agent.facts if fact.terms]
