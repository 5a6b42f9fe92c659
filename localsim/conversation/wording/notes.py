"""Notes: the line in brackets that tells an agent, before each of its lines, who it is and what the line is for.

Small models forget the instructions in the course of a conversation; what stands right before a line counts most. A
note holds nothing that the instructions do not hold: the reader's own name and goal, and the limit of turns.
"""

from __future__ import annotations

from localsim.conversation.episode import Observation
from localsim.conversation.transcript import told_line
from localsim.conversation.wording.wordings import Wording

EARLY = 4
"""The limit of turns divided by this is the number of turns in which no note speaks of an end."""
LAST = 2
"""Turns of each agent before the limit whose notes ask for a goodbye."""


def note(seen: Observation, words: Wording) -> str:
    """Return the note before the viewer's next line."""
    return told_line(" ".join(filter(None, _sentences(seen, words))), None)


def _sentences(seen: Observation, words: Wording) -> list[str]:
    me, agents, turn = seen.me(), len(seen.agents), len(seen.transcript.acts) + 1
    who = words.who.format(name=me.name)
    if not seen.may("speak"):
        return [who]
    if seen.phased:
        return [who, words.go_on]
    if turn <= agents:
        goal = words.goals[0].format(name=me.name, text=me.goal) if me.goal else ""
        return [who, goal, words.begin if turn == 1 else words.answer]
    if not seen.may("leave") or turn <= max(agents, seen.turn_limit // EARLY):
        return [who, words.go_on]
    start = f"{me.name} [leave]"
    late = turn > seen.turn_limit - LAST * agents
    return [who, (words.end if late else words.settle).format(start=start)]


def script_note(seen: Observation, words: Wording) -> str:
    """Return the note for the writer of a script: everybody's goal, the number of lines, and how it ends."""
    goals = [words.goals[1].format(name=agent.name, text=agent.goal) for agent in seen.agents if agent.goal]
    if seen.phased or "leave" not in seen.actions:
        return told_line(" ".join([*goals, words.script]), None)
    few, many = max(2, seen.turn_limit // 2), max(2, seen.turn_limit - LAST)
    return told_line(" ".join([*goals, words.script_end.format(few=few, many=many)]), None)
