"""Actions, turns and transcripts: pure values that know nothing of models, scenarios or storage.

An action is one line of text in every mode, for writer and reader alike: `Ana: words`, or `Ana [leave]: words` for an
action other than speech. The five action types are Sotopia's (arXiv 2310.11667, section 2).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Literal, get_args

from localsim.errors import MalformedReply

ActionType = Literal["speak", "non-verbal communication", "action", "leave", "none"]
ACTION_TYPES: tuple[ActionType, ...] = get_args(ActionType)

_LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_FOLD = str.maketrans(dict.fromkeys(_LINE_BREAKS, " "))


def fold_lines(text: str) -> str:
    """Return `text` with every kind of line break as a space, so that a turn stays one line."""
    return text.replace("\r\n", " ").translate(_FOLD)


@dataclass(frozen=True)
class Action:
    """The action of an agent in one turn."""

    type: ActionType
    text: str = ""

    def __post_init__(self) -> None:
        if self.type not in ACTION_TYPES:
            raise MalformedReply(f"unknown action {self.type!r}")
        object.__setattr__(self, "text", fold_lines(self.text))


@dataclass(frozen=True)
class Turn:
    """One action by one agent; `index` counts from 0. `truncated`: the text was cut at its limit."""

    index: int
    speaker: str
    action: Action
    truncated: bool = False

    @property
    def said(self) -> bool:
        """True if the turn contains words that others hear."""
        return self.action.type in ("speak", "leave") and bool(self.action.text)

    @property
    def words(self) -> int:
        """Number of whitespace-separated words in speech; 0 without speech."""
        return len(self.action.text.split()) if self.said else 0

    @property
    def line(self) -> str:
        """The turn as one line, as models write and read it."""
        return line_of(self.speaker, self.action)


@dataclass(frozen=True)
class Transcript:
    """The turns of an episode so far, in order."""

    turns: tuple[Turn, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.turns)

    def plus(self, turn: Turn) -> Transcript:
        """Return this transcript with one more turn."""
        return Transcript((*self.turns, turn))

    def position(self, turn: int) -> float:
        """Return the relative position of a turn: 0 at the start, 1 at the end (0 in a transcript of one turn)."""
        return turn / (len(self.turns) - 1) if len(self.turns) > 1 else 0.0


def line_of(name: str, action: Action) -> str:
    """Return the line of a turn. The colon comes after any bracket, so speech cannot imitate another action."""
    head = name if action.type == "speak" else f"{name} [{action.type}]"
    return f"{head}: {action.text}" if action.text or action.type == "speak" else head


_AFTER_NAME = re.compile(r"(?: \[(?P<kind>[^]]*)\])?(?:: ?(?P<text>.*))?")


@dataclass(frozen=True)
class ParsedLine:
    """The action of a line; `truncated` if the text filled its limit and was cut there."""

    action: Action
    truncated: bool


def parse_line(line: str, name: str, actions: tuple[str, ...], max_chars: int) -> ParsedLine:
    """Read one line written by `name`. Raises MalformedReply naming what is wrong.

    Grammars limit a text to `max_chars` characters, so a text of that length was cut. People and scripted players have
    no such limit.
    """
    if not line.startswith(name):
        raise MalformedReply(f"it is {name}'s turn, and the line does not begin with that name")
    match = _AFTER_NAME.fullmatch(line[len(name) :])
    if match is None:
        raise MalformedReply(f'not one line of the form "{name}: words" or "{name} [action]: words"')
    kind, text = match["kind"] or "speak", fold_lines(match["text"] or "").strip()
    if kind not in actions:
        raise MalformedReply(f"action {kind!r} is not among {', '.join(actions)}")
    if any(unicodedata.category(char) == "Cs" for char in text):
        raise MalformedReply("half of a surrogate pair in the text")
    if not text and kind in ("speak", "non-verbal communication", "action"):
        raise MalformedReply(f"an empty {kind}")
    return ParsedLine(Action(kind, text), truncated=len(text) == max_chars)  # type: ignore[arg-type]
