"""Phrase banks: text files of sections, drawn from without repeating oneself within a talk."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = Path(__file__).parent / "phrases"
Sections = Mapping[str, Sequence[str]]


def read_sections(text: str) -> dict[str, list[str]]:
    """`== name` begins a section, every other line is an entry, # a comment."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("== "):
            current = found.setdefault(line[3:].split()[0], [])
        elif line.strip() and not line.startswith("#"):
            current.append(line.strip())
    return found


def bank(name: str) -> dict[str, list[str]]:
    """A file with one block of sections."""
    return read_sections((FOLDER / f"{name}.txt").read_text(encoding="utf-8"))


def topics(name: str) -> dict[tuple[str, ...], dict[str, list[str]]]:
    """A file of blocks: words of its `== topic` line -> sections."""
    found: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for block in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").split("== topic ")[1:]:
        head, _, body = block.partition("\n")
        found[tuple(head.split())] = read_sections(body)
    return found


COMMON, PLAIN = 5, 0.8
"""The first phrases of each section are the plain ones, and make up this share of what is said: where everything is
said in a hundred ways, a small model learns the ways and not what is looked up."""


class Speaker:
    """Draws phrases for one agent, never the same one twice in a talk."""

    def __init__(self, rng: random.Random, sections: Sections) -> None:
        self._rng = rng
        self._sections = sections
        self._used: dict[str, set[str]] = defaultdict(set)

    def say(self, section: str, **slots: object) -> str:
        """A phrase of a section with its slots filled in."""
        pool = self._sections[section][: COMMON if self._rng.random() < PLAIN else None]
        left = [phrase for phrase in pool if phrase not in self._used[section]]
        phrase = self._rng.choice(left or list(self._sections[section]))
        self._used[section].add(phrase)
        return phrase.format(**slots)

    def maybe(self, chance: float, section: str, **slots: object) -> str:
        """A phrase with a chance, else nothing."""
        return self.say(section, **slots) if self._rng.random() < chance else ""


def joined(*parts: str) -> str:
    """Parts of a turn, empty ones left out."""
    return " ".join(part for part in parts if part)
