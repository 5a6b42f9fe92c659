"""The lanes of an episode as values for its page: who could read what. No HTML here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from localsim.conversation.rules.lanes import Lanes, Line, lanes_of
from localsim.conversation.transcript import NARRATOR, WORLD, Turn
from localsim.families.base import listed
from localsim.reports.evidence import marks
from localsim.store.episodes import StoredEpisode

MOST = 8
"""Lanes side by side; of more agents, those beside the chosen one are shown."""
FEW = 5
"""Readers that are named; of more, their number is stated."""


@dataclass(frozen=True)
class Head:
    """The head of a lane."""

    name: str
    colour: int
    chosen: bool
    """True for the lane that a phone shows."""


@dataclass(frozen=True)
class Said:
    """A turn in a cell."""

    turn: int
    speaker: str
    doing: str
    text: str
    colour: int
    readers: str
    """Who reads it, in words; '' for everybody."""


@dataclass(frozen=True)
class Cell:
    """A part of a row; adjacent lanes with the same part and turns share one."""

    part: str
    turns: tuple[Said, ...] = ()
    key: object = None
    """What cells with equal turns have to have in common, too."""
    span: int = 1
    here: bool = False
    """True if the chosen lane is in it."""


@dataclass(frozen=True)
class LaneRow:
    """A turn, what happens together in a beat, or what is read after it."""

    kind: Literal["turn", "together", "after"]
    number: int
    cells: Sequence[Cell]


@dataclass(frozen=True)
class LanePage:
    """The lanes that one page shows."""

    heads: Sequence[Head]
    rows: Sequence[LaneRow]
    choices: tuple[tuple[int, str], ...]
    """Number and name of every lane."""
    chosen: int
    one_author: bool
    overheard: bool
    """True if some turn is read only because the mode shows everything."""


def lane_page(episode: StoredEpisode, chosen: int | None = None) -> LanePage:
    """Return the lanes around a chosen one: 0 for the narrator, else the number of an agent, from 1.

    Without a choice, the first agent. Raises IndexError if there is no such lane.
    """
    talk, agents = episode.transcript, episode.scenario.names
    narrated = bool(talk.told)
    number = 1 if chosen is None else chosen
    if not (0 if narrated else 1) <= number <= len(agents):
        raise IndexError(number)
    wide = MOST - narrated
    start = max(0, min((max(number, 1) - 1) // wide * wide, len(agents) - wide))
    lanes = lanes_of(episode.scenario, episode.mode, talk, agents[start : start + wide])
    name = agents[number - 1] if number else WORLD
    colours = marks.colours(agents)
    heads = [Head(each or NARRATOR, colours.get(each, 7), each == name) for each in lanes.names]
    view = _View(lanes, lanes.names.index(name), colours, agents)
    choices = [(place, each) for place, each in enumerate((NARRATOR, *agents)) if place or narrated]
    overheard = any(part == "sees" for line in lanes.lines for part in line.parts)
    return LanePage(heads, list(view.as_rows()), tuple(choices), number, lanes.one_author, overheard)


@dataclass(frozen=True)
class _View:
    lanes: Lanes
    chosen: int
    colours: dict[str, int]
    agents: Sequence[str]

    def as_rows(self) -> Iterator[LaneRow]:
        """Yield the rows of all beats."""
        places = range(len(self.lanes.names))
        for beat in self.lanes.beats():
            number = beat[0].turn.index
            if len(beat) == 1 and not beat[0].together:
                yield self._row("turn", number, [self._cell(place, beat[0]) for place in places])
                continue
            yield self._row("together", number, [self._own(beat, place) for place in places])
            after = [self._after(beat, place) for place in places]
            if any(cell.turns for cell in after):
                yield self._row("after", number, after)

    def _row(self, kind: Literal["turn", "together", "after"], number: int, cells: Sequence[Cell]) -> LaneRow:
        merged, place = [], 0
        for _, group in groupby(cells, lambda cell: (cell.part, cell.turns, cell.key)):
            alike = list(group)
            span = len(alike)
            merged.append(replace(alike[0], span=span, here=place <= self.chosen < place + span))
            place += span
        return LaneRow(kind, number, merged)

    def _cell(self, place: int, line: Line) -> Cell:
        """Return the cell of a turn; its author's lane and those of its readers share one."""
        part = line.parts[place]
        return Cell("reads" if part == "acts" else part, (self._said(line.turn),)) if part else self._empty(place)

    def _empty(self, place: int) -> Cell:
        """Return an `idle` cell for the lane of the narrator, who reads nothing, and `none` for any other."""
        return Cell("idle" if self.lanes.names[place] == WORLD else "none")

    def _own(self, beat: Sequence[Line], place: int) -> Cell:
        """Return the cell with what the agent of a lane does in a simultaneous beat."""
        own = tuple(self._said(line.turn) for line in beat if line.parts[place] == "acts")
        if own:
            return Cell("acts", own, key=place)
        return Cell("idle") if any(line.parts[place] for line in beat) else self._empty(place)

    def _after(self, beat: Sequence[Line], place: int) -> Cell:
        """Return the cell with what a lane reads of the others when all have acted."""
        parts = [line.parts[place] for line in beat]
        if "reads" not in parts and "sees" not in parts:
            return self._empty(place)
        read = tuple(self._said(line.turn) for line, part in zip(beat, parts, strict=True) if part)
        return Cell("reads" if "reads" in parts else "sees", read)

    def _said(self, turn: Turn) -> Said:
        plain = turn.told or turn.action.type == "speak"
        doing = "" if plain else " ".join((turn.action.type, *turn.action.bracket))
        colour = self.colours.get(turn.speaker, 7)
        return Said(turn.index, turn.who, doing, turn.action.text, colour, self._readers(turn))

    def _readers(self, turn: Turn) -> str:
        """Return who reads a turn, in words; '' for everybody."""
        if turn.readers is None or set(self.agents) <= set(turn.readers):
            return ""
        to = [name for name in turn.readers if name != turn.speaker]
        if not to:
            return "nobody else reads it"
        if not turn.told and set(to) <= set(turn.action.values or ()):
            return "private"
        return f"only to {listed(to) if len(to) <= FEW else f'{len(to)} people'}"
