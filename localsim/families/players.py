"""Moves shared by the scripted players of several families, and the player for scenarios without a family."""

from __future__ import annotations

import random
from collections.abc import Callable

from localsim.conversation.episode import Observation
from localsim.conversation.rules.lines import Bound, Way
from localsim.conversation.transcript import Action, Turn

Player = Callable[[Observation, random.Random], Action]
"""A scripted player: it receives the observation that a model would be prompted with, and a seeded generator."""


def smalltalk(seen: Observation, rng: random.Random) -> Action:
    """Say a few friendly words, then goodbye; where there are moves or phases, take any move that is allowed now."""
    if seen.moves or seen.phased:
        return any_way(seen, rng)
    own = sum(turn.speaker == seen.viewer for turn in seen.transcript.turns)
    if own >= 3:
        return leave(seen, "It was good talking to you. Goodbye!")
    lines = (
        ("Hello, good to see you.", "Hi there, how are you?", "Good day! How have you been?"),
        ("I have been thinking about this for a while.", "There is something I would like to talk about."),
        ("I see what you mean.", "Let us find a way that works for both of us.", "Thank you for telling me."),
    )
    return Action("speak", rng.choice(lines[own]))


def any_way(seen: Observation, rng: random.Random, words: str = "") -> Action:
    """Act in any way that is allowed now; leave or do nothing only where nothing else is. `words` are said with it."""
    moves = [way for way in seen.allowed if isinstance(way, Bound)]
    spoken = [way for way in seen.allowed if isinstance(way, str) and way not in ("leave", "none")]
    ways: list[Way] = [*moves, *spoken]
    way = rng.choice(ways or list(seen.allowed))
    words = words or rng.choice(("I see.", "Let us think about it.", "That is how I see it.", "What do you think?"))
    if isinstance(way, str):
        return Action(way, "" if way == "none" else words)
    silent = way.move.text == "no" or (way.move.text == "may" and rng.random() < 0.3)
    return Action(way.name, "" if silent else words, any_values(way, rng))


def any_values(way: Bound, rng: random.Random) -> tuple[str, ...]:
    """Return values of a move, drawn at random."""
    found: list[str] = []
    for param in way.move.values:
        if param.number is not None:
            low, high = param.number
            found.append(param.written(low + param.step * rng.randint(0, int((high - low) / param.step))))
        elif param.one_of is not None:
            found.append(rng.choice(param.one_of))
        elif param.agents == "one":
            found.append(rng.choice(way.others))
        elif param.agents == "several":
            named = rng.sample(way.others, rng.randint(1, min(3, len(way.others))))
            found += sorted(named, key=way.others.index)
        else:
            found.append("a thought"[: param.words])
    return tuple(found)


def leave(seen: Observation, text: str) -> Action:
    """Leave with a last word; if the scenario does not allow leaving, only say it."""
    return Action("leave" if "leave" in seen.actions else "speak", text)


def last_of_others(seen: Observation) -> Turn | None:
    """Return the newest turn by another agent."""
    return next((turn for turn in reversed(seen.transcript.turns) if turn.speaker != seen.viewer), None)


_TOLD = "I have told you all that I know."


def teller(seen: Observation, rng: random.Random) -> Action:
    """Tell the own facts one by one in their words, and leave when another has told all, too."""
    number, facts = sum(turn.speaker == seen.viewer for turn in seen.transcript.turns), seen.me().facts
    words = facts[number].text if number < len(facts) else _TOLD
    if seen.moves or seen.phased or not seen.may("speak"):
        return any_way(seen, rng, words)
    last = last_of_others(seen)
    over = words == _TOLD and last is not None and last.action.text == _TOLD
    return leave(seen, "So have I. Goodbye!") if over else Action("speak", words)


def rememberer(seen: Observation, rng: random.Random) -> Action:
    """Say what comes to mind best, and nothing else."""
    words = ("Nothing comes to my mind.", *seen.me().memories)[-1]
    if seen.moves or seen.phased or not seen.may("speak"):
        return any_way(seen, rng, words)
    return Action("speak", words)


# ---- players for controls: their style is known exactly ------------------------------------------------------------


def _always(text: str) -> Player:
    def play(_seen: Observation, _rng: random.Random) -> Action:
        return Action("speak", text)

    return play


PARROT = "I really like long walks by the quiet river."
"""Nine words without a polite phrase."""
_WALKS = ("I really like", "I like", "I do enjoy", "I always like", "I quite like")
_RIVERS = ("by the quiet river", "beside the quiet river", "by our quiet river", "by the river")


def rephraser(seen: Observation, rng: random.Random) -> Action:  # noqa: ARG001 - a player's signature
    """Say what the parrot says, with other small words in each turn."""
    turn = len(seen.transcript.turns)
    like, place = _WALKS[turn % len(_WALKS)], _RIVERS[turn // len(_WALKS) % len(_RIVERS)]
    return Action("speak", f"{like} long walks {place} in the evening.")


def mirror(seen: Observation, rng: random.Random) -> Action:  # noqa: ARG001 - a player's signature
    """Repeat what another said last."""
    last = last_of_others(seen)
    return Action("speak", (last.action.text if last else "") or PARROT)


def impostor(seen: Observation, rng: random.Random) -> Action:  # noqa: ARG001 - a player's signature
    """Give another's name as the own one."""
    return Action("speak", f"Good to see you. I am {_another(seen)}, as you know.")


def spiller(seen: Observation, rng: random.Random) -> Action:  # noqa: ARG001 - a player's signature
    """Write another's line into the own one."""
    return Action("speak", f"That is fine with me. {_another(seen)}: Then it is settled. [none] [none]")


def reader_out(seen: Observation, rng: random.Random) -> Action:  # noqa: ARG001 - a player's signature
    """Read out the own goal."""
    return Action("speak", seen.me().goal or PARROT)


def _another(seen: Observation) -> str:
    return next((agent.name for agent in seen.agents if agent.name != seen.viewer), seen.viewer)


CONTROL_PLAYERS: dict[str, Player] = {
    "parrot": _always(PARROT),
    "polite": _always("I completely understand, and thank you so much for sharing that with me today."),
    "foreigner": _always("Ich gehe heute Abend mit meiner Schwester lange am Fluss spazieren, und danach essen wir."),
    "chatterbox": _always(("I have so much to tell you that I cannot stop talking about it today. " * 4)[:279] + "!"),
    "garbler": _always(""),
    "assistant": _always("Hello! How can I assist you today?"),
    "refusing-assistant": _always("I'm sorry, but I can't assist with that."),
    "never-leaves": _always("It was nice talking to you. Goodbye!"),
    "rephraser": rephraser,
    "mirror": mirror,
    "impostor": impostor,
    "spiller": spiller,
    "reader-out": reader_out,
    "quoter": _always(f'"{PARROT}"'),
}
"""Players with one fault in every turn."""
