"""Phrase banks: text files of sections. A speaker draws phrases without repeating itself in a conversation."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = Path(__file__).parent / "phrases"
Sections = Mapping[str, Sequence[str]]


def read_sections(text: str) -> dict[str, list[str]]:
    """Read sections: `== name` begins one, # begins a comment, every other line is a phrase."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("== "):
            current = found.setdefault(line[3:].split()[0], [])
        elif line.strip() and not line.startswith("#"):
            current.append(line.strip())
    return found


def bank(name: str) -> dict[str, list[str]]:
    """Read a file with one block of sections."""
    return read_sections((FOLDER / f"{name}.txt").read_text(encoding="utf-8"))


def topics(name: str) -> dict[tuple[str, ...], dict[str, list[str]]]:
    """Read a file of blocks: the words of each `== topic` line -> its sections."""
    found: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for block in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").split("== topic ")[1:]:
        head, _, body = block.partition("\n")
        found[tuple(head.split())] = read_sections(body)
    return found


COMMON, PLAIN = 5, 0.8
"""The first COMMON phrases of each section are the plain ones; they are drawn with probability PLAIN. A small model
that sees every sentence in a hundred wordings learns the wordings and not the look-ups."""


class Speaker:
    """Draws phrases for one agent, never the same one twice in a conversation."""

    def __init__(self, rng: random.Random, sections: Sections) -> None:
        self._rng = rng
        self._sections = sections
        self._used: dict[str, set[str]] = defaultdict(set)

    def say(self, section: str, **slots: object) -> str:
        """Draw a phrase of a section and fill in its slots."""
        pool = self._sections[section][: COMMON if self._rng.random() < PLAIN else None]
        left = [phrase for phrase in pool if phrase not in self._used[section]]
        phrase = self._rng.choice(left or list(self._sections[section]))
        self._used[section].add(phrase)
        return phrase.format(**slots)

    def maybe(self, chance: float, section: str, **slots: object) -> str:
        """Draw a phrase with this probability, otherwise return nothing."""
        return self.say(section, **slots) if self._rng.random() < chance else ""


def joined(*parts: str) -> str:
    """Join the parts of a turn without the empty ones."""
    return " ".join(part for part in parts if part)
