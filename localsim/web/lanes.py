"""The lanes of an episode as values for its page: who could read what. No HTML here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from localsim.conversation.rules.lanes import Lanes, Line, lanes_of
from localsim.conversation.transcript import NARRATOR, WORLD, Turn
from localsim.families.base import listed
from localsim.reports.conversation import marks
from localsim.store.episodes import StoredEpisode

Row = dict[str, Any]

MOST = 8
"""Lanes side by side; of more agents, those beside the chosen one are shown."""
FEW = 5
"""Readers that are named; of more, their number is stated."""


@dataclass(frozen=True)
class LanePage:
    """The lanes that one page shows."""

    heads: tuple[Row, ...]
    """For each lane: name, colour, and chosen, for the lane that a phone shows."""
    rows: tuple[Row, ...]
    """Each with kind (turn, together, after), number, and cells from left to right, which span several lanes."""
    choices: tuple[tuple[int, str], ...]
    """Number and name of every lane."""
    chosen: int
    one_author: bool
    overheard: bool
    """True if some turn is read only because the mode shows everything."""

    @property
    def all_shown(self) -> bool:
        """True if every lane of the episode is on the page."""
        return len(self.heads) == len(self.choices)


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
    heads = [{"name": each or NARRATOR, "colour": colours.get(each, 7), "chosen": each == name} for each in lanes.names]
    view = _View(lanes, lanes.names.index(name), colours, agents)
    choices = [(place, each) for place, each in enumerate((NARRATOR, *agents)) if place or narrated]
    overheard = any(part == "sees" for line in lanes.lines for part in line.parts)
    return LanePage(tuple(heads), tuple(view.as_rows()), tuple(choices), number, lanes.one_author, overheard)


@dataclass(frozen=True)
class _View:
    lanes: Lanes
    chosen: int
    colours: dict[str, int]
    agents: Sequence[str]

    def as_rows(self) -> Iterator[Row]:
        """Yield the rows of all beats."""
        for beat in self.lanes.beats():
            if len(beat) == 1 and not beat[0].together:
                yield self._row("turn", beat[0].turn.index, [self._cell(place, beat[0]) for place in self._places()])
            else:
                yield self._row("together", beat[0].turn.index, [self._own(beat, place) for place in self._places()])
                yield from self._after(beat)

    def _places(self) -> range:
        return range(len(self.lanes.names))

    def _row(self, kind: str, number: int, cells: list[Row]) -> Row:
        merged: list[Row] = []
        for cell in cells:
            if merged and merged[-1]["key"] == cell["key"]:
                merged[-1]["span"] += 1
            else:
                merged.append({**cell, "span": 1})
        place = 0
        for cell in merged:
            cell["here"] = place <= self.chosen < place + cell["span"]
            place += cell["span"]
        return {"kind": kind, "number": number, "cells": merged}

    def _cell(self, place: int, line: Line) -> Row:
        """Return the cell of a turn; adjacent lanes with the same key share one, its author's and its readers' too."""
        part = "reads" if line.parts[place] == "acts" else line.parts[place] or self._empty(place)
        return {"key": part, "part": part, "turns": [self._said(line.turn)] if line.parts[place] else []}

    def _empty(self, place: int) -> str:
        """Return `idle` for the lane of the narrator, who reads nothing, and `none` for any other."""
        return "idle" if self.lanes.names[place] == WORLD else "none"

    def _own(self, beat: Sequence[Line], place: int) -> Row:
        """Return the cell with what the agent of a lane does in a simultaneous beat."""
        own = [line for line in beat if line.parts[place] == "acts"]
        later = any(line.parts[place] for line in beat)
        part = "acts" if own else "idle" if later else self._empty(place)
        return {"key": ("own", place) if own else part, "part": part, "turns": [self._said(line.turn) for line in own]}

    def _after(self, beat: Sequence[Line]) -> Iterator[Row]:
        """Yield a row with what each lane reads of the others when all have acted, if any reads something."""
        cells = []
        for place in self._places():
            parts = [line.parts[place] for line in beat]
            read = [line for line, part in zip(beat, parts, strict=True) if part in ("acts", "reads", "sees")]
            others = [part for part in parts if part in ("reads", "sees")]
            part = self._empty(place) if not others else "reads" if "reads" in others else "sees"
            shown = read if others else []
            key = (part, tuple(line.turn.index for line in shown))
            cells.append({"key": key, "part": part, "turns": [self._said(line.turn) for line in shown]})
        if any(cell["turns"] for cell in cells):
            yield self._row("after", beat[0].turn.index, cells)

    def _said(self, turn: Turn) -> Row:
        return {
            "turn": turn.index,
            "speaker": turn.who,
            "told": turn.told,
            "doing": ""
            if turn.told or turn.action.type == "speak"
            else " ".join((turn.action.type, *turn.action.bracket)),
            "text": turn.action.text,
            "colour": self.colours.get(turn.speaker, 7),
            "readers": self._readers(turn),
        }

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


__all__ = ["LanePage", "lane_page"]
