"""What a person states on a form when they end a talk: whom they found, or at which price.

People write in shorthand, in slang and with errors, so no rule reads every yes. A form asks the person who ends the
talk, as the task of MutualFriends does (He et al. 2017, arXiv 1704.07130, section 2: a player selects a friend). What
they choose stands at the end of their last words after a sign that nobody types by habit: "bye ⇒ Hamid".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from localsim.conversation.transcript import Turn

SIGN, NOTHING, DEAL = "⇒", "–", "deal"
_STATED = re.compile(rf"\s*{SIGN} (\S.*)$")


@dataclass(frozen=True)
class Offered:
    """What a form offers to the person who ends a talk: some of their friends, or a price in dollars."""

    names: tuple[str, ...] = ()
    price: bool = False


@dataclass(frozen=True)
class Stated:
    """What a speaker stated at the end: a name or a price as it is shown, or NOTHING."""

    turn: int
    speaker: str
    what: str


def with_statement(text: str, what: str) -> str:
    """Return last words with a statement after them."""
    return f"{text} {SIGN} {what}".strip()


def stated_in(turns: Sequence[Turn]) -> Stated | None:
    """Return the statement with which a talk ended; None without one."""
    for turn in reversed(turns):
        found = _STATED.search(turn.action.text) if turn.action.type == "leave" else None
        if found:
            return Stated(turn.index, turn.speaker, found[1])
    return None


def without_statement(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Return the turns as they were said, without the statement."""
    return tuple(
        replace(turn, action=replace(turn.action, text=_STATED.sub("", turn.action.text)))
        if turn.action.type == "leave"
        else turn
        for turn in turns
    )
