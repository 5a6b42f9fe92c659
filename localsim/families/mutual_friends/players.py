"""Scripted players of mutual_friends. They receive the observation that a model would be prompted with.

`guesser` is the baseline for figures of first mention and success; `omniscient` is the other extreme. The others are
for controls: each deceives a measure that is not careful.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

from localsim.conversation.episode import AgentView, Observation
from localsim.conversation.transcript import Action, Turn
from localsim.conversation.wording.wordings import listed
from localsim.families.mutual_friends.mentions import mentions
from localsim.families.players import Player, last_of_others, leave

_ASKS = ("Do you know {}?", "Have you ever met {}?", "Is {} a friend of yours?", "I have a friend called {}. You too?")
_ASKED = re.compile("|".join(re.escape(form).replace(r"\{\}", r"(\w[\w'-]*)") for form in _ASKS))


def friends(seen: Observation, rng: random.Random) -> Action:
    """Answer truthfully, and ask about the own friends in turn, never the same one twice."""
    asked = {name for turn in seen.transcript.turns for name in _asked_in(turn)}
    return _friends_turn(seen, rng, [name for name in _friend_names(seen.me()) if name not in asked])


def guesser(seen: Observation, rng: random.Random) -> Action:
    """Answer truthfully, and ask about a random friend of the own list, forgetting earlier turns."""
    return _friends_turn(seen, rng, [rng.choice(_friend_names(seen.me()) or ["anybody here"])])


def list_reader(seen: Observation, rng: random.Random) -> Action:  # noqa: ARG001 - a player's signature
    """Read out the own list in one turn; answer with the friends on it who are also the own ones."""
    own = _friend_names(seen.me())
    last = last_of_others(seen)
    if last is None:
        return Action("speak", f"My friends are {listed(own)}. Do you know any of them?")
    if last.action.text.startswith("My friends are "):
        known = [name for name in own if mentions(last.action.text, name)]
        return Action("speak", " ".join(f"Yes, I know {name} too!" for name in known) or "No, I know none of them.")
    return leave(seen, "Thank you, that is all I wanted to know. Goodbye!")


def yes_sayer(seen: Observation, rng: random.Random) -> Action:
    """Affirm everybody whom the other agent asks about, and ask about the own friends in turn."""
    said = [turn.action.text for turn in seen.transcript.turns]
    last = last_of_others(seen)
    answer = "".join(f"Yes, I know {name} too! " for name in (_asked_in(last) if last is not None else []))
    left = [name for name in _friend_names(seen.me()) if not any(mentions(text, name) for text in said)]
    if left:
        return Action("speak", answer + rng.choice(_ASKS).format(left[0]))
    return Action("speak", f"{answer}Go on!") if answer else leave(seen, "We have so many friends in common! Goodbye!")


def refuser(seen: Observation, rng: random.Random) -> Action:  # noqa: ARG001 - a player's signature
    """Say nothing about friends, and leave."""
    return leave(seen, "I would rather keep that to myself. Goodbye!")


def mix_up(seen: Observation, rng: random.Random) -> Action:
    """Ask about friends that only the other agent holds; play as `friends` does if no other list is visible."""
    own = _friend_names(seen.me())
    asked = {name for turn in seen.transcript.turns for name in _asked_in(turn)}
    confused = [name for name in _their_names(seen) if name not in own and name not in asked]
    return _friends_turn(seen, rng, confused) if confused else friends(seen, rng)


def omniscient(seen: Observation, rng: random.Random) -> Action | None:
    """Ask about the friends on both lists; None if no other list is visible, or a part of one without such a friend."""
    theirs = _their_names(seen)
    shared = [name for name in _friend_names(seen.me()) if name in theirs]
    if not theirs or not (shared or seen.omniscient):
        return None
    return _friends_turn(seen, rng, shared)


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


def _their_names(seen: Observation) -> list[str]:
    return [name for agent in seen.agents if agent.name != seen.viewer for name in _friend_names(agent)]


PLAYERS: Mapping[str, Player] = {
    "friends": friends,
    "honest": friends,
    "guesser": guesser,
    "list-reader": list_reader,
    "yes-sayer": yes_sayer,
    "refuser": refuser,
    "mix-up": mix_up,
}
"""The players by name."""
