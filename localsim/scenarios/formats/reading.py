"""JSON files of other tools: their objects with places, and the list of what has no place in a scenario."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from localsim.errors import InvalidInput
from localsim.paths import json_values, read_text

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Unmapped:
    """A kind of field that was not taken over, or not as it stands."""

    where: str
    """The first object that has it: file and line, or file and number of the object."""
    field: str
    why: str
    count: int = 1
    """Number of objects that have it."""
    example: str = ""
    """What the first of them holds, where that helps to find it."""


class Missing:
    """Counts what could not be mapped by its kind, each field of an object once."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], Unmapped] = {}
        self._places: dict[tuple[str, str], set[str]] = {}

    def note(self, where: str, field: str, why: str, example: str = "") -> None:
        """Remember a field of an object."""
        kind = (field, why)
        shown = example if len(example) <= _SHOWN else f"{example[:_SHOWN]}..."
        self._first.setdefault(kind, Unmapped(where, field, why, example=shown))
        self._places.setdefault(kind, set()).add(where)

    def unknown(self, where: str, data: Object, known: frozenset[str]) -> None:
        """Remember the fields of an object that are not `known` and hold something."""
        for name, value in data.items():
            if name not in known and value not in (None, "", [], {}):
                self.note(where, name, "a scenario has no place for it")

    @property
    def all(self) -> tuple[Unmapped, ...]:
        """The kinds of what was noted, in order."""
        return tuple(replace(first, count=len(self._places[kind])) for kind, first in self._first.items())


_SHOWN = 60
"""Characters of an example."""


def objects(path: Path, hint: str) -> Iterator[tuple[str, Object]]:
    """Yield (place, object) of a file with one JSON object, a list of objects, or one object on each line.

    Raises InvalidInput for a file that is none of these.
    """
    text = read_text(path)
    if not text.strip():
        raise InvalidInput("the file is empty", where=str(path), hint=hint)
    for where, value in json_values(text, str(path), hint):
        if not isinstance(value, Mapping):
            raise InvalidInput("not an object", where=where, hint=hint)
        yield where, value
