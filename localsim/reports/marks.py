"""Where in an utterance private facts show: spans of first mentions and of leaks, and a text cut along them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from localsim.families.mentions import Mention

Row = dict[str, Any]


@dataclass(frozen=True)
class Mark:
    """A part of a text, from `start` up to and without `end`."""

    start: int
    end: int
    kind: str
    """own, shared or strange (first mentions); self, omniscient, repeat or hint (leaks)."""
    note: str = ""


def colours(names: Sequence[str]) -> dict[str, int]:
    """The number of each person's colour, 0 to 7, the same on every page."""
    return {name: number % 8 for number, name in enumerate(names)}


def of_mentions(mentions: Iterable[Mention]) -> list[Mark]:
    """First mentions of terms of facts: by an owner, of a fact on both sides, by an agent who holds no such fact."""
    return [
        Mark(
            mention.start,
            mention.end,
            "strange" if not mention.by_owner else "shared" if len(mention.owners) > 1 else "own",
        )
        for mention in mentions
    ]


def of_leaks(text: str, leaks: Iterable[Row]) -> list[Mark]:
    """The evidence of leaks (rows with evidence, kind, label, fact); the whole text where the words are not found."""
    marks = []
    for leak in leaks:
        at = text.casefold().find(leak["evidence"].casefold())
        start, end = (at, at + len(leak["evidence"])) if at >= 0 and leak["evidence"] else (0, len(text))
        kind = "hint" if leak.get("label") == "hint" else str(leak["kind"])
        marks.append(Mark(start, end, kind, str(leak["fact"])))
    return marks


def parts(text: str, marks: Iterable[Mark]) -> list[tuple[str, Mark | None]]:
    """`text` in parts, each with its mark or None; of marks that overlap the one that begins first stays."""
    found: list[tuple[str, Mark | None]] = []
    end = 0
    for mark in sorted(marks, key=lambda mark: (mark.start, mark.end)):
        if mark.start >= end:
            found += [(text[end : mark.start], None), (text[mark.start : mark.end], mark)]
            end = mark.end
    return [part for part in [*found, (text[end:], None)] if part[0]]
