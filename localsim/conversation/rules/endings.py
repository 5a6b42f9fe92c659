"""The ends that a free talk comes to although nobody leaves: all have said goodbye, or nothing new is said any more.

Both are rules of the talk and not of its writer, so models, scripted players and people end alike in every mode.
docs/rules.md says how they were measured.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from localsim.conversation.rules.farewells import SMALL, takes_leave
from localsim.conversation.scenario import Limits
from localsim.conversation.transcript import Transcript, Turn

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


def ending(limits: Limits, talk: Transcript, speakers: Sequence[str]) -> Literal["closing", "stale"] | None:
    """Return the end that the talk of some agents has come to, if any; `speakers` are those who still act in it."""
    if limits.closing and all_took_leave(talk, speakers):
        return "closing"
    return "stale" if limits.stale and nothing_new(talk, max(limits.stale, 2 * len(speakers))) else None


def all_took_leave(talk: Transcript, speakers: Sequence[str]) -> bool:
    """Return True if the latest turn of each of them is a goodbye that asks and offers nothing."""
    waiting = set(speakers)
    if len(waiting) < 2:
        return False
    for turn in reversed(talk.turns):
        if turn.told:
            return False
        if turn.speaker in waiting:
            if turn.action.type != "speak" or not takes_leave(turn.action.text):
                return False
            waiting.remove(turn.speaker)
            if not waiting:
                return True
    return False


def nothing_new(talk: Transcript, count: int) -> bool:
    """Return True if each of the last `count` turns repeats an earlier turn of the talk.

    Case, punctuation, the order of words and small words do not make a turn new; a name, a number or any other word
    does, and so do a move, a departure and what the rules tell. A turn in which nothing is done does not count.
    """
    said = [_said(turn) for turn in talk.turns if turn.action.type != "none"]
    recent = range(len(said) - count, len(said))
    return recent.start > 0 and all(said[place] is not None and said[place] in said[:place] for place in recent[::-1])


def _said(turn: Turn) -> tuple[str, frozenset[str]] | None:
    """Return what a turn says, so that turns which say the same are equal; None if it is new in any case."""
    if turn.told or turn.action.values is not None or turn.action.type == "leave":
        return None
    return turn.action.type, _words(turn.action.text)


@lru_cache(maxsize=16384)
def _words(text: str) -> frozenset[str]:
    words = _WORD.findall(text.casefold().replace("’", "'"))
    return frozenset(words).difference(SMALL) or frozenset(words or [text])
