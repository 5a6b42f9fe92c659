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
    early, late = _stages(seen.turn_limit, agents)
    moves = move_note(seen)
    if turn <= agents and (moves or not seen.phased):
        return [who, goal, words.begin if turn == 1 else words.answer]
    if seen.may("leave") and not seen.phased and turn > early:
        start = f"{me.name} [leave]"
        return (
            [who, words.end.format(start=start)]
            if turn > late
            else [who, goal, words.settle.format(start=start), *moves]
        )
    return [who, goal, FEW_LEFT if moves and turn > late - agents else words.go_on, *moves]


def script_note(seen: Observation, words: Wording) -> str:
    """Return the note for the writer of a script: everybody's goal, and what the next lines are for."""
    goals = [words.goals[1].format(name=agent.name, text=agent.goal) for agent in seen.agents if agent.goal]
    early, late = _stages(seen.turn_limit, len(seen.agents))
    turn = len(seen.transcript.acts) + 1
    if seen.phased or "leave" not in seen.actions:
        now = FEW_LEFT if seen.moves and turn > late - len(seen.agents) else words.script
        return told_line(" ".join([*goals, now, *move_note(seen)]), None)
    if turn > late:
        return told_line(words.end.format(start="[leave]"), None)
    few, many = max(2, seen.turn_limit // 2), max(2, seen.turn_limit - LAST)
    now = words.script_begin.format(few=few, many=many) if turn <= early else words.script_settle
    return told_line(" ".join([*goals, now]), None)


def lines_of_note(seen: Observation) -> int | None:
    """Return how many lines a writer writes with one note; None: as many as it can."""
    turn = len(seen.transcript.acts) + 1
    early, late = _stages(seen.turn_limit, len(seen.agents))
    few = (late - len(seen.agents), seen.turn_limit) if seen.moves else ()
    ends = few if seen.phased else (early, late, seen.turn_limit)
    return next((end - turn + 1 for end in ends if end >= turn), None)


def _stages(limit: int, agents: int) -> tuple[int, int]:
    """Return the last turn in which no note speaks of an end, and the last in which none asks for it."""
    early = max(agents, limit // EARLY)
    return early, max(early, limit - LAST * agents)
