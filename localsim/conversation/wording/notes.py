"""Notes: the line in brackets that tells an agent, before each of its lines, who it is and what the line is for.

Small models forget the instructions in the course of a conversation; what stands right before a line counts most. A
note holds nothing that the instructions do not hold: the reader's own name and goal, its moves, and the limit of turns.
"""

from __future__ import annotations

from localsim.conversation.episode import Observation
from localsim.conversation.transcript import told_line
from localsim.conversation.wording.moving import FEW_LEFT, move_note
from localsim.conversation.wording.wordings import Wording

EARLY = 4
"""The limit of turns divided by this is the number of turns in which no note speaks of an end."""
LAST = 2
"""Turns of each agent before the limit whose notes ask for a goodbye, and nothing else."""


def note(seen: Observation, words: Wording) -> str:
    """Return the note before the viewer's next line."""
    return told_line(" ".join(filter(None, _sentences(seen, words))), None)


def _sentences(seen: Observation, words: Wording) -> list[str]:
    me, agents, turn = seen.me(), len(seen.agents), len(seen.transcript.acts) + 1
    who = words.who.format(name=me.name)
    goal = words.goals[0].format(name=me.name, text=me.goal) if me.goal else ""
    if not seen.may("speak"):
        return [who]
    early, near, late = _stages(seen.turn_limit, agents)
    moves = move_note(seen)
    if turn <= agents and (moves or not seen.phased):
        return [who, goal, words.begin if turn == 1 else words.answer]
    if seen.phased or not seen.may("leave") or turn <= early:
        return [who, goal, FEW_LEFT if moves and turn > near else words.go_on, *moves]
    start = f"{me.name} [leave]"
    if turn > late:
        return [who, words.end.format(start=start)]
    return [who, goal, words.settle.format(start=start), *moves]


def script_note(seen: Observation, words: Wording) -> str:
    """Return the note for the writer of a script: everybody's goal, and what the next lines are for."""
    goals = [words.goals[1].format(name=agent.name, text=agent.goal) for agent in seen.agents if agent.goal]
    early, near, late = _stages(seen.turn_limit, len(seen.agents))
    turn = len(seen.transcript.acts) + 1
    if seen.phased or "leave" not in seen.actions:
        now = FEW_LEFT if seen.moves and turn > near else words.script
        return told_line(" ".join([*goals, now, *move_note(seen)]), None)
    if turn > late:
        return told_line(words.end.format(start="[leave]"), None)
    few, many = max(2, seen.turn_limit // 2), max(2, seen.turn_limit - LAST)
    now = words.script_begin.format(few=few, many=many) if turn <= early else words.script_settle
    return told_line(" ".join([*goals, now]), None)


def lines_of_note(seen: Observation) -> int | None:
    """Return how many lines a writer writes with one note; None: as many as it can."""
    turn = len(seen.transcript.acts) + 1
    early, near, late = _stages(seen.turn_limit, len(seen.agents))
    ends: tuple[int, ...] = (early, late, seen.turn_limit)
    if seen.phased:
        ends = (near, seen.turn_limit) if seen.moves else ()
    return next((end - turn + 1 for end in ends if end >= turn), None)


def _stages(limit: int, agents: int) -> tuple[int, int, int]:
    """Return the last turn in which no note speaks of an end, in which none says that few are left (where moves can be
    made), and in which none asks for the end.
    """
    early = max(agents, limit // EARLY)
    late = max(early, limit - LAST * agents)
    return early, late - agents, late
