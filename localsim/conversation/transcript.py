"""Actions, turns and transcripts: pure values that know nothing of models, scenarios or storage.

An action is one line of text in every mode, for writer and reader alike: `Ana: words`, or `Ana [leave]: words` for an
action other than speech. The five action types are Sotopia's (arXiv 2310.11667, section 2). A move of the scenario has
values: `Ana [offer 40]: words`. What the rules tell is a line in brackets: `(Round 2 begins.)`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from localsim.conversation.names import NARRATOR as NARRATOR
from localsim.conversation.rules.lines import SEPARATOR, Bound, Way, name_of, read_values
from localsim.conversation.rules.spill import Utterance
from localsim.conversation.rules.values import TOLD
from localsim.errors import InvalidInput, MalformedReply

Repair = Callable[[str], Utterance]
ActionType = Literal["speak", "non-verbal communication", "action", "leave", "none"]
ACTION_TYPES: tuple[ActionType, ...] = get_args(ActionType)
WORLD = ""
"""The speaker of turns in which the rules tell something."""

_LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_FOLD = str.maketrans(dict.fromkeys(_LINE_BREAKS, " "))
_STRAIGHT = str.maketrans("’‘“”\u00a0", "''\"\" ")


def fold_lines(text: str) -> str:
    """Return `text` with every kind of line break as a space, so that a turn stays one line."""
    return text if text.isprintable() else text.replace("\r\n", " ").translate(_FOLD)


def plain(text: str) -> str:
    """Return `text` in lower case with straight quotes, character for character, so that positions stay the same."""
    if text.isascii():
        return text.lower()
    straight = text.translate(_STRAIGHT)
    if straight.isascii():
        return straight.lower()
    return "".join(char.lower() if len(char.lower()) == 1 else char for char in straight)


@dataclass(frozen=True)
class Action:
    """The action of an agent in one turn."""

    type: str
    """One of ACTION_TYPES, or the name of a move."""
    text: str = ""
    values: tuple[str, ...] | None = None
    """The values of a move, as in its line; None for the five actions, which have none."""

    def __post_init__(self) -> None:
        if self.values is None and self.type not in ACTION_TYPES:
            raise MalformedReply(f"unknown action {self.type!r}")
        object.__setattr__(self, "text", fold_lines(self.text))

    @property
    def bracket(self) -> tuple[str, ...]:
        """The values as one text, if there are any."""
        return (SEPARATOR.join(self.values),) if self.values else ()


@dataclass(frozen=True)
class Turn:
    """One action by one agent; `index` counts from 0. `truncated`: the text was cut at its limit."""

    index: int
    speaker: str
    """An agent, or WORLD."""
    action: Action
    truncated: bool = False
    readers: tuple[str, ...] | None = None
    """Who can read it, an author first; None: everybody."""
    beat: int = -1
    """Index of the first turn of its beat. The turns of one beat are simultaneous; -1 stands for `index`."""
    beat_size: int = 1
    """Number of turns of its beat, also of those that are still to come."""
    phase: str = ""
    repaired: bool = False
    """True if what the model wrote beyond its own utterance was left out (`rules.spill`)."""

    def __post_init__(self) -> None:
        if self.beat < 0:
            object.__setattr__(self, "beat", self.index)

    @property
    def told(self) -> bool:
        """True if the rules tell something and no agent acts."""
        return self.speaker == WORLD

    @property
    def said(self) -> bool:
        """True if the turn contains words that others hear."""
        if not self.action.text or self.told or self.readers == (self.speaker,):
            return False
        return self.action.values is not None or self.action.type in ("speak", "leave")

    @property
    def number(self) -> float:
        """The first value, as a number. Raises ValueError where it is none."""
        return float((self.action.values or ("",))[0])

    @property
    def value(self) -> str:
        """The first value; '' without values."""
        return (self.action.values or ("",))[0]

    @property
    def values(self) -> tuple[str, ...]:
        """All values; empty without any."""
        return self.action.values or ()

    @property
    def words(self) -> int:
        """Number of whitespace-separated words in speech; 0 without speech."""
        return len(self.action.text.split()) if self.said else 0

    @property
    def who(self) -> str:
        """The speaker, for people."""
        return self.speaker or NARRATOR

    @property
    def doing(self) -> str:
        """The type of the action with its values and readers, for people; `speak` for plain speech."""
        if self.told:
            return f"to {SEPARATOR.join(self.readers)}" if self.readers else "to everybody"
        alone = ["(nobody else reads it)"] if self.readers == (self.speaker,) else []
        return " ".join([self.action.type, *self.action.bracket, *alone])

    @property
    def line(self) -> str:
        """The turn as one line, as models write and read it."""
        if self.told:
            return told_line(self.action.text, self.readers)
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

    @property
    def acts(self) -> tuple[Turn, ...]:
        """The turns of agents, without what the rules told."""
        return tuple(turn for turn in self.turns if not turn.told)

    def of(self, *types: str) -> tuple[Turn, ...]:
        """Return the turns with an action or move of these types, in order."""
        return tuple(turn for turn in self.turns if turn.action.type in types)

    @property
    def told(self) -> tuple[Turn, ...]:
        """The turns in which the rules told something."""
        return tuple(turn for turn in self.turns if turn.told)

    def position(self, turn: int) -> float:
        """Return the relative position of a turn: 0 at the start, 1 at the end (0 in a transcript of one turn)."""
        return turn / (len(self.turns) - 1) if len(self.turns) > 1 else 0.0


def line_of(name: str, action: Action) -> str:
    """Return the line of a turn. The colon comes after any bracket, so speech cannot imitate another action."""
    does = " ".join([action.type, *action.bracket])
    head = name if action.type == "speak" else f"{name} [{does}]"
    return f"{head}: {action.text}" if action.text or action.type == "speak" else head


def told_line(text: str, readers: tuple[str, ...] | None) -> str:
    """Return the line of something that the rules tell. A name begins with a letter, so no agent can forge one."""
    return f"({text})" if readers is None else f"(Only to {SEPARATOR.join(readers)}: {text})"


def told(text: str, values: tuple[str, ...] = ()) -> Action:
    """Return the action of a turn in which the rules tell something."""
    return Action(TOLD, text, values)


_AFTER_NAME = re.compile(r"(?: \[(?P<kind>[^]]*)\])?(?:(?:: ?|(?=\n))(?P<text>.*))?", re.DOTALL)


@dataclass(frozen=True)
class ParsedLine:
    """The action of a line; `truncated` if its end is missing, `repaired` if what is no speech was left out."""

    action: Action
    truncated: bool
    repaired: bool = False


def parse_line(
    line: str,
    name: str,
    ways: Sequence[Way],
    max_chars: int,
    repair: Repair | None = None,
    *,
    cut: bool = False,
) -> ParsedLine:
    """Read one line written by `name`, who can act in some ways. Raises MalformedReply naming what is wrong.

    Grammars limit a text to `max_chars` characters, so a text of that length was cut. People and scripted players have
    no such limit. `cut`: the line ended at the limit of tokens. `repair` leaves out of its text what is no speech.
    """
    if not line.startswith(name):
        raise MalformedReply(f"it is {name}'s turn, and the line does not begin with that name")
    match = _AFTER_NAME.fullmatch(line[len(name) :])
    written = "" if match is None else match["text"] or ""
    said = Utterance(written) if repair is None else repair(written)
    if match is None or "\n" in said.text:
        raise MalformedReply(f'not one line of the form "{name}: words" or "{name} [action]: words"')
    action = _action(match["kind"] or "speak", fold_lines(said.text).strip(), ways)
    full = len(fold_lines(written).strip()) == max_chars
    return ParsedLine(action, (cut or full) and not said.cut, said.repaired)


def _action(kind: str, text: str, ways: Sequence[Way]) -> Action:
    """Return what a line says and does. Raises MalformedReply."""
    move = next((way for way in ways if isinstance(way, Bound) and kind.partition(" ")[0] == way.name), None)
    if move is None and kind not in ways:
        known = map(name_of, sorted(ways, key=lambda way: isinstance(way, Bound)))  # moves last
        raise MalformedReply(f"action {kind!r} is not among {', '.join(known)}")
    if any(unicodedata.category(char) == "Cs" for char in text):
        raise MalformedReply("half of a surrogate pair in the text")
    if move is not None:
        return _moved(move, kind, text)
    if not text and kind in ("speak", "non-verbal communication", "action"):
        raise MalformedReply(f"an empty {kind}")
    return Action(kind, text)


def typed_move(way: Bound, values: str, words: str) -> Action:
    """Return the move that a person made. Raises InvalidInput."""
    try:
        return _moved(way, f"{way.name} {values.strip()}", fold_lines(words).strip())
    except MalformedReply as error:
        raise InvalidInput(error.message) from error


def _moved(way: Bound, kind: str, text: str) -> Action:
    """Return a move with its values. Raises MalformedReply."""
    if text and way.move.text == "no":
        raise MalformedReply(f"{way.name} has no words after it")
    if not text and way.move.text == "must":
        raise MalformedReply(f"an empty {way.name}")
    return Action(way.name, text, read_values(way, kind.partition(" ")[2]))
