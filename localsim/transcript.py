"""Actions, turns and transcripts: pure values that know nothing of models, scenarios or storage.

An action travels as one line of JSON in every mode, `{"name": ..., "action": ..., "text": ...}`; others read it as
one line of prose. The five action types are Sotopia's (arXiv 2310.11667, section 2).
"""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass, field
from typing import Literal, get_args

from localsim.errors import MalformedReply

ActionType = Literal["speak", "non-verbal communication", "action", "leave", "none"]
ACTION_TYPES: tuple[ActionType, ...] = get_args(ActionType)

_LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_FOLD = str.maketrans(dict.fromkeys(_LINE_BREAKS, " "))


def fold_lines(text: str) -> str:
    """`text` with every kind of line break as a space, so that a turn stays one line; nothing else is changed."""
    return text.replace("\r\n", " ").translate(_FOLD)


@dataclass(frozen=True)
class Action:
    """What an agent does in one turn."""

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
        """Whether the turn holds words that others hear."""
        return self.action.type in ("speak", "leave") and bool(self.action.text)

    @property
    def words(self) -> int:
        """Number of whitespace-separated words that were said."""
        return len(self.action.text.split()) if self.said else 0

    def as_prose(self) -> str:
        """The line that other participants read. The colon comes after any bracket, so speech cannot forge one."""
        kind = self.action.type
        if kind == "speak":
            return f"{self.speaker}: {self.action.text}"
        if kind == "none":
            return f"{self.speaker} [does nothing]"
        if kind == "leave":
            return f"{self.speaker} [leaves]: {self.action.text}" if self.action.text else f"{self.speaker} [leaves]"
        return f"{self.speaker} [{kind}]: {self.action.text}"


@dataclass(frozen=True)
class Transcript:
    """The turns of an episode so far, in order."""

    turns: tuple[Turn, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.turns)

    def plus(self, turn: Turn) -> Transcript:
        """This transcript with one more turn."""
        return Transcript((*self.turns, turn))

    def position(self, turn: int) -> float:
        """Relative position of a turn: 0 at the start, 1 at the end (0 for a transcript of one turn)."""
        return turn / (len(self.turns) - 1) if len(self.turns) > 1 else 0.0


def line_of(name: str, action: Action) -> str:
    """The JSON line of a turn, as models write it; the prefix up to the action type equals `line_start(name)`."""
    return f"{line_start(name)}{action.type}{TEXT_START}{quote(action.text)}{LINE_END}"


def line_start(name: str) -> str:
    """The part of a line that is fixed once the speaker is."""
    return f'{{"name":"{quote(name)}","action":"'


TEXT_START = '","text":"'
LINE_END = '"}'


def quote(text: str) -> str:
    """`text` as the inside of a JSON string, leaving characters outside ASCII as they are."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


@dataclass(frozen=True)
class ParsedLine:
    """A line that has been read: its action, and whether the text filled its limit and was cut there."""

    action: Action
    truncated: bool


def parse_line(line: str, name: str, actions: tuple[str, ...], max_chars: int) -> ParsedLine:
    """Read one JSON line written by `name`. Raises MalformedReply naming what is wrong.

    Only grammars bound a text, to `max_chars` characters: one that fills the bound was cut there. People and scripted
    agents may say more.
    """
    try:
        data = json.loads(line)
    except ValueError as error:
        raise MalformedReply(f"not a line of JSON ({error})") from error
    if not isinstance(data, dict) or set(data) != {"name", "action", "text"}:
        raise MalformedReply('a line holds exactly "name", "action" and "text"')
    if not all(isinstance(value, str) for value in data.values()):
        raise MalformedReply("every value of a line is a string")
    if data["name"] != name:
        raise MalformedReply(f"it is {name}'s turn, not {data['name']!r}'s")
    if data["action"] not in actions:
        raise MalformedReply(f"action {data['action']!r} is not among {', '.join(actions)}")
    text = fold_lines(data["text"])
    if any(unicodedata.category(char) == "Cs" for char in text):
        raise MalformedReply("half of a surrogate pair in the text")
    if not text.strip() and data["action"] in ("speak", "non-verbal communication", "action"):
        raise MalformedReply(f"an empty {data['action']}")
    return ParsedLine(Action(data["action"], text), truncated=len(text) == max_chars)
