"""Where in an utterance private facts show: spans of first mentions and of leaks, and a text cut along them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from localsim.families.mentions import Mention
from localsim.families.mutual_friends.names import mentions
from localsim.families.prices import find_prices

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


def of_mentions(text: str, found: Sequence[Mention]) -> list[Mark]:
    """First mentions of terms of facts: by an owner, of what both hold, by somebody who holds no such fact."""
    marks = []
    for mention in found:
        span = _span(text, mention.term)
        if span is not None:
            kind = "strange" if not mention.by_owner else "shared" if len(mention.owners) > 1 else "own"
            marks.append(Mark(*span, kind))
    return marks


def of_leaks(text: str, leaks: Iterable[Row]) -> list[Mark]:
    """The evidence of leaks (rows with evidence, kind, label, fact); the whole text where the words are not found."""
    marks = []
    for leak in leaks:
        at = text.casefold().find(leak["evidence"].casefold())
        start, end = (at, at + len(leak["evidence"])) if at >= 0 and leak["evidence"] else (0, len(text))
        kind = "hint" if leak["label"] == "hint" else str(leak["kind"])
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


def _span(text: str, term: str) -> tuple[int, int] | None:
    """Where a term of a fact stands in `text`, found as `mentions.first_mentions` finds it."""
    if re.fullmatch(r"\$\d+(\.\d+)?", term):
        return next(((price.start, price.end) for price in find_prices(text) if price.value == float(term[1:])), None)
    if re.fullmatch(r"[^\W\d_]+", term) and (places := mentions(text, term)):
        return places[0], places[0] + len(term)
    match = re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text, re.IGNORECASE)
    return match.span() if match else None
