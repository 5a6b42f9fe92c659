"""Who could read what: the turns of an episode in lanes, one for each agent and one for the narrator. Pure.

`conversation.visibility.readable` decides what a lane reads; nothing here knows moves or rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from localsim.conversation.episode import OMNISCIENT, SINGLE_AUTHOR
from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import NARRATOR, WORLD, Transcript, Turn
from localsim.conversation.visibility import readable

Part = Literal["acts", "reads", "sees", ""]
"""What a turn is in a lane. acts: its author. reads: a reader that it is meant for. sees: a reader only because the
mode shows everything. '': not readable there.
"""


@dataclass(frozen=True)
class Line:
    """One turn with its part in each lane, in the order of the lanes."""

    turn: Turn
    parts: tuple[Part, ...]

    @property
    def together(self) -> bool:
        """True if others act in the same beat, so that its readers read it when all have acted."""
        return self.turn.beat_size > 1


@dataclass(frozen=True)
class Lanes:
    """The turns of an episode in lanes."""

    names: tuple[str, ...]
    """The agent of each lane; the narrator, whose name is WORLD, comes first if the rules tell something."""
    lines: tuple[Line, ...]
    one_author: bool
    """True if one model wrote everything, so that lanes show whom each line is meant for."""

    def beats(self) -> Iterator[tuple[Line, ...]]:
        """Yield the lines of each beat."""
        return (tuple(lines) for _, lines in groupby(self.lines, lambda line: line.turn.beat))


def is_divided(scenario: Scenario, talk: Transcript) -> bool:
    """Return True if some turn does not go to everybody."""
    everybody = set(scenario.names)
    if any(turn.readers is not None and not everybody <= {*turn.readers, turn.speaker} for turn in talk.turns):
        return True
    left = [turn.beat for turn in talk.of("leave")] if scenario.limits.leave == "goes_on" else []
    return any(turn.beat > min(left) for turn in talk.turns) if left else False


def lanes_of(scenario: Scenario, mode: str, talk: Transcript, only: Sequence[str] | None = None) -> Lanes:
    """Return the turns of an episode with their readers, as the mode (or people, who read their own side) had them.

    `only` are the agents that get a lane, by default all. The narrator has one if the rules tell something.
    """
    agents = scenario.names if only is None else tuple(only)
    goes_on = scenario.limits.leave == "goes_on"
    shows_all = mode in OMNISCIENT and mode not in SINGLE_AUTHOR
    meant = {name: _read(talk, name, everything=False, goes_on=goes_on) for name in agents}
    shown = {name: _read(talk, name, everything=shows_all, goes_on=goes_on) for name in agents}
    names = (*((WORLD,) if talk.told else ()), *agents)
    lines = (Line(turn, tuple(_part(turn, name, meant, shown) for name in names)) for turn in talk.turns)
    return Lanes(names, tuple(lines), mode in SINGLE_AUTHOR)


def _read(talk: Transcript, viewer: str, *, everything: bool, goes_on: bool) -> frozenset[int]:
    found = readable(talk, viewer, everything=everything, goes_on=goes_on)
    return frozenset(turn.index for turn in found.turns)


def _part(turn: Turn, name: str, meant: dict[str, frozenset[int]], shown: dict[str, frozenset[int]]) -> Part:
    if turn.speaker == name:
        return "acts"
    if name == WORLD:
        return ""
    return "reads" if turn.index in meant[name] else "sees" if turn.index in shown[name] else ""


def as_json(lanes: Lanes) -> dict[str, Any]:
    """Return what `show --lanes --json` prints: the lanes by name, and for each turn who acts, reads and sees it."""
    names = [name or NARRATOR for name in lanes.names]
    turns = [
        {"turn": line.turn.index, "line": line.turn.line, "simultaneous": line.together}
        | {part: [name for name, own in zip(names, line.parts, strict=True) if own == part] for part in SIGNS if part}
        for line in lanes.lines
    ]
    return {"lanes": names, "one_author": lanes.one_author, "turns": turns}


SIGNS: dict[Part, str] = {"acts": "@", "reads": "o", "sees": "+", "": "."}
"""The signs of a plain text."""
MEANINGS = (
    "@ acts, o reads it, + reads it only because this mode shows everything, . cannot read it, "
    "= simultaneous: read only after all have acted"
)
WIDEST = 8
"""Lanes that are headed by names; more of them are numbered."""


def as_text(lanes: Lanes) -> list[str]:
    """Return the lanes as lines of text: turn, a sign in each lane, and the turn as it was written."""
    names = [name or NARRATOR for name in lanes.names]
    heads = names if len(names) <= WIDEST else [str(number) for number in range(1, len(names) + 1)]
    widths = [max(2, len(head)) for head in heads]
    legend = (
        [] if heads is names else [", ".join(f"{head} {name}" for head, name in zip(heads, names, strict=True)), ""]
    )
    rows = [_row("", heads, widths, "")]
    for line in lanes.lines:
        number = f"{line.turn.index + 1}{'=' if line.together else ' '}"
        signs = [SIGNS[part] if part or name else " " for name, part in zip(lanes.names, line.parts, strict=True)]
        rows.append(_row(number, signs, widths, line.turn.line))
    return [*legend, *rows, "", MEANINGS]


def _row(number: str, cells: Sequence[str], widths: Sequence[int], text: str) -> str:
    cut = [cell.center(width) for cell, width in zip(cells, widths, strict=True)]
    return f"{number:>5} {' '.join(cut)}  {text}".rstrip()
