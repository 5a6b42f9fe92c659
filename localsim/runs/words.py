"""The words for modes, ends of talks and kinds of marks: one wording for the report and for every page of a server."""

from __future__ import annotations

MODES = {
    "script": "One author writes the whole talk and sees every private side.",
    "iterative": "One author writes the whole talk, one turn at a time, and sees every private side.",
    "agents": "Each person is played separately and sees only their own side.",
    "mindreaders": "Each person is played separately and sees every private side.",
    "people": "People held this talk, each with only their own side; it was imported, and no model wrote in it.",
}
"""Who writes a talk, and what they see."""
MARKS = {"script": "▼", "iterative": "▽", "agents": "●", "mindreaders": "■", "people": "◆"}
"""One mark for each mode, the same in charts, talks and terminals; models and grants differ in shade."""
GRANTED = "Each person is played separately and sees their own side, and of the others what was granted"
"""The same for the mode agents with grants, without a full stop: their names may follow."""
STOPS = {
    "left": "one of them left",
    "silence": "nobody had anything more to say",
    "closing": "everybody had said goodbye",
    "stale": "nothing new was said any more",
    "turn_limit": "the limit of turns was reached",
    "ended": "the people stopped",
    "done": "the game or its last phase was over",
}
"""Stop reason of a talk -> why it ended."""
ACTIONS = {
    "leave": "leaves",
    "action": "acts",
    "non-verbal communication": "shows without words",
    "none": "does nothing",
}
"""What an actor does in a turn without speech, as it stands after the name; moves of games have names of their own."""
KINDS = {
    "self": "disclosed by its owner",
    "omniscient": "used by a person who had not been told",
    "hint": "a hint",
    "hit": "the right answer, named before anything said had singled it out: seen on the other side, or guessed",
    "passed_on": "passed on to somebody new",
    "repeat": "repeated after its disclosure",
    "own": "first mention, by its owner",
    "shared": "first mention, of a fact that several hold",
    "strange": "first mention, by a person who has no such fact",
}
"""Kind of a mark -> what was marked."""
LUCKY = "guessed, or worked out from the talk"
"""How an untold hit came about where nobody saw the other side."""
HIT_IS_NO_LEAK = (
    "An untold hit (★) alone is no untold fact (▲): it is something of the speaker's own, such as a friend on their "
    "list or their offer, named so early that it takes knowledge of the other side, or luck."
)
"""Why a talk can have untold hits and no untold facts; said wherever both are counted."""
SIGNS = {
    **{"self": "●", "omniscient": "▲", "hint": "○", "hit": "★", "passed_on": "◇", "repeat": "·"},
    **{"own": "●", "shared": "◆", "strange": "▲"},
}
"""One sign for each kind of mark, the same in talks, tables and legends."""
