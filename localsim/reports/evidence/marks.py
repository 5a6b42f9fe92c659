"""Marks of private facts in a text: spans of first mentions and of leaks, and the text cut into parts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from localsim.families.mentions import Mention


@dataclass(frozen=True)
class Mark:
    """A part of a text, from `start` up to but not including `end`."""

    start: int
    end: int
    kind: str
    """own, shared or strange (first mentions); self, omniscient, repeat or hint (leaks)."""
    note: str = ""
    number: int = 0
    """Place of the leak or mention among those of its turn, from 0."""


def colours(names: Sequence[str]) -> dict[str, int]:
    """Return the number of each agent's colour, 0 to 7, the same on every page."""
    return {name: number % 8 for number, name in enumerate(names)}


def of_mentions(mentions: Iterable[Mention]) -> list[Mark]:
    """Mark first mentions as own (by the owner), shared (a fact of several agents) or strange (by another agent)."""
    return [Mark(each.start, each.end, kind_of(each), number=number) for number, each in enumerate(mentions)]


def kind_of(mention: Mention) -> str:
    """Return `own`, `shared` or `strange`, as `of_mentions` marks a first mention."""
    return "strange" if not mention.by_owner else "shared" if len(mention.owners) > 1 else "own"


def of_leaks(text: str, leaks: Iterable[dict[str, Any]]) -> list[Mark]:
    """Mark the evidence of leaks (rows with evidence, kind, label, fact), or the whole text if it is not found."""
    marks = []
    for number, leak in enumerate(leaks):
        at = text.casefold().find(leak["evidence"].casefold())
        start, end = (at, at + len(leak["evidence"])) if at >= 0 and leak["evidence"] else (0, len(text))
        kind = "hint" if leak.get("label") == "hint" else str(leak["kind"])
        marks.append(Mark(start, end, kind, str(leak["fact"]), number))
    return marks


def parts(text: str, marks: Iterable[Mark]) -> list[tuple[str, Mark | None]]:
    """Return `text` in parts, each with its mark or None; of overlapping marks the first one is kept."""
    cut: list[tuple[str, Mark | None]] = []
    end = 0
    for mark in sorted(marks, key=lambda mark: (mark.start, mark.end)):
        if mark.start >= end:
            cut += [(text[end : mark.start], None), (text[mark.start : mark.end], mark)]
            end = mark.end
    return [part for part in [*cut, (text[end:], None)] if part[0]]
