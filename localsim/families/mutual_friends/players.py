"""Scripted players of mutual_friends. They receive the observation that a model would be prompted with.

`guesser` is the baseline for figures of first mention and success; `omniscient` is the other extreme. The others are
for controls: each deceives a measure that is not careful.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from localsim.conversation.episode import AgentView, Observation
from localsim.conversation.transcript import Action, Turn
from localsim.conversation.wording.wordings import listed
from localsim.families.mutual_friends.descriptions import asks_for_somebody, described, identified, most_exact
from localsim.families.mutual_friends.lists import Lists
from localsim.families.mutual_friends.mentions import all_friends, mentions
from localsim.families.mutual_friends.names import agreed, claims, namings
from localsim.families.players import Player, last_of_others, leave

_ASKS = ("Do you know {}?", "Have you ever met {}?", "Is {} a friend of yours?", "I have a friend called {}. You too?")


def friends(seen: Observation, rng: random.Random) -> Action:
    """Answer truthfully, and ask about the own friends in turn, never the same one twice."""
    return _friends_turn(seen, rng, _unsaid(seen, _friend_names(seen.me())))


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
    last = last_of_others(seen)
    own = [turn.action.text for turn in seen.transcript.turns if turn.speaker == seen.viewer]
    asked = [name for name in _put_forward(seen, last) if not any(mentions(text, name) for text in own)] if last else []
    answer = "".join(f"Yes, I know {name} too! " for name in asked)
    left = _unsaid(seen, _friend_names(seen.me()))
    if left:
        return Action("speak", answer + rng.choice(_ASKS).format(left[0]))
    return Action("speak", f"{answer}Go on!") if answer else leave(seen, "We have so many friends in common! Goodbye!")


def refuser(seen: Observation, rng: random.Random) -> Action:  # noqa: ARG001 - a player's signature
    """Say nothing about friends, and leave."""
    return leave(seen, "I would rather keep that to myself. Goodbye!")


def mix_up(seen: Observation, rng: random.Random) -> Action:
    """Ask about friends that only the other agent holds; play as `friends` does if no other list is visible."""
    own = _friend_names(seen.me())
    confused = _unsaid(seen, [name for name in _their_names(seen) if name not in own])
    return _friends_turn(seen, rng, confused) if confused else friends(seen, rng)


def omniscient(seen: Observation, rng: random.Random) -> Action | None:
    """Ask about the friends on both lists; None if no other list is visible, or a part of one without such a friend."""
    theirs = _their_names(seen)
    shared = [name for name in _friend_names(seen.me()) if name in theirs]
    if not theirs or not (shared or seen.omniscient):
        return None
    return _friends_turn(seen, rng, shared)


def _friends_turn(seen: Observation, rng: random.Random, candidates: list[str]) -> Action:
    """Answer what the other agent asks, leave once a friend is found, or else ask about the first candidate."""
    last, answer = last_of_others(seen), ""
    if last is not None:
        found = _found(seen)
        own = {fact.terms[0]: fact.text for fact in seen.me().facts if fact.terms}
        put = [name for name in _put_forward(seen, last) if name not in found]
        if known := [name for name in put if name in own]:
            return Action("speak", " ".join(f"Yes, I know {name} too!" for name in known))
        wanted = _wanted(seen, last, aside=bool(found))
        if fitting := [name for name in wanted or () if name not in found]:
            # The words of the facts stay true where the question was misread.
            return Action("speak", f"I know {listed(fitting)}. {' '.join(own[name] for name in fitting)}")
        if put:
            answer = f"No, I do not know {listed(put, 'or')}. "
        elif wanted == []:
            answer = "No, not that I know. "
        if found:
            return leave(seen, f"{answer}What a small world! I will tell them that we met. Goodbye!")
    if not candidates:
        return leave(seen, f"{answer}It seems we have no friend in common. Goodbye!")
    return Action("speak", answer + rng.choice(_ASKS).format(candidates[0]))


def _named_by(seen: Observation) -> dict[str, list[str]]:
    """Return each agent's friends as far as the viewer sees or hears their names: what the scores read, from here."""
    visible = Lists.read(seen).names
    heard = {naming.name for naming in namings(seen.transcript.turns, visible)}.difference(all_friends(visible))
    return {agent: names if agent == seen.viewer else [*names, *sorted(heard)] for agent, names in visible.items()}


def _found(seen: Observation) -> set[str]:
    """Return who stands as a friend in common, read as the scores read it; any own friend may be on the other list."""
    lists, turns = Lists.read(seen), seen.transcript.turns
    alike = Lists(dict.fromkeys(lists.of, lists.of[seen.viewer]))
    return {*agreed(turns, _named_by(seen)), *identified(turns, alike)}


def _put_forward(seen: Observation, turn: Turn) -> list[str]:
    """Return the people whom a turn names without denying to know them."""
    names, turns = _named_by(seen), seen.transcript.turns
    place = turns.index(turn)
    said = claims(turns[max(0, place - 1) : place + 1], names)
    denied = {name for at, name, knows in said if at == turn.index and not knows}
    return [naming.name for naming in namings([turn], names) if naming.name not in denied]


def _wanted(seen: Observation, turn: Turn, *, aside: bool) -> list[str] | None:
    """Return the own friends who fit what a turn describes, or asks only if `aside`; None if it describes nobody."""
    lists = Lists.read(seen)
    said = described([lists.spelt_in(each) for each in seen.transcript.turns], lists)[turn.index]
    wanted = most_exact(said.questions if aside else said.questions or said.asked)
    if wanted or not said.told and asks_for_somebody(turn.action.text):
        return [name for name, row in lists.of[seen.viewer].items() if any(each <= set(row) for each in wanted)]
    return None


def _unsaid(seen: Observation, names: Sequence[str]) -> list[str]:
    said = [turn.action.text for turn in seen.transcript.turns]
    return [name for name in names if not any(mentions(text, name) for text in said)]


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
