"""A given beginning: the lines of `Scenario.begun`, placed by the rules of the episode.

Given turns are nobody's acts in a run. The rules and everybody who hears them count them as any other turn, and what
the rules tell before them is told again; no score credits a player with them, and no training learns them.
"""

from __future__ import annotations

from collections import deque

from localsim.conversation.rules.deciding import Slot, slots, told_turn
from localsim.conversation.rules.steps import Act, Rules, Stop, Tell
from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Transcript, Turn, parse_line
from localsim.errors import MalformedReply


def beginning(scenario: Scenario, rules: Rules, seed: int) -> Transcript:
    """Return the turns before the first one that is played. Raises MalformedReply for a line that does not fit."""
    talk, left = Transcript(), deque(scenario.begun)
    while left:
        step = rules.next(scenario, talk, seed)
        if isinstance(step, Tell):
            talk = talk.plus(told_turn(len(talk), step))
            continue
        places = slots(scenario, talk, step) if isinstance(step, Act) else ()
        number = len(scenario.begun) - len(left) + 1
        if isinstance(step, Stop):
            raise MalformedReply(f"line {number} of the beginning comes after its end ({step.reason})")
        if len(places) > len(left):
            raise MalformedReply(f"{', '.join(step.speakers)} act at the same time: give the lines of all or of none")
        for slot in places:
            talk = talk.plus(_given(scenario, talk, slot, left.popleft()))
    return talk


def _given(scenario: Scenario, talk: Transcript, slot: Slot, line: str) -> Turn:
    try:
        read = parse_line(line, slot.speaker, slot.ways, scenario.limits.chars)
    except MalformedReply as error:
        raise MalformedReply(f"{line!r}: {error.message}") from error
    return slot.turn(scenario, len(talk), read.action)


def problem_of_beginning(scenario: Scenario, rules: Rules, seed: int) -> str:
    """Return why a talk cannot go on from its beginning; '' if it can."""
    try:
        talk = beginning(scenario, rules, seed)
    except MalformedReply as error:
        return error.message
    while isinstance(step := rules.next(scenario, talk, seed), Tell):
        talk = talk.plus(told_turn(len(talk), step))
    return f"the talk is over after its beginning ({step.reason})" if isinstance(step, Stop) else ""


def own_from(scenario: Scenario, talk: Transcript) -> int:
    """Return the index of the first turn of a whole transcript that is not given."""
    count = len(scenario.begun)
    if not count:
        return 0
    acts = talk.acts
    return acts[count - 1].index + 1 if len(acts) >= count else len(talk)
