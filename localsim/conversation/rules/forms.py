"""Forms of short answers: one of several words, some of them in order, or a line of free text."""

from __future__ import annotations

import json
from dataclasses import dataclass

from localsim.conversation.requests import Form
from localsim.conversation.rules.lines import SEPARATOR


@dataclass(frozen=True)
class OneOf(Form):
    """The form of a reply that is one of several words. No word may begin with another one, unless they have an end."""

    words: tuple[str, ...]
    start: str
    """The fixed start of the reply."""
    end: str = ""
    """What comes after the word: a full stop, or nothing."""

    def grammar(self) -> str:
        end = f" {json.dumps(self.end)}" if self.end else ""
        return f'root ::= " " ({" | ".join(json.dumps(word) for word in self.words)}){end}\n'

    def finished(self, text: str) -> bool:
        return text.endswith(self.end) and self.read(text.removeprefix(self.start)) is not None

    def choices(self, text: str) -> tuple[str, ...]:
        rest = text.removeprefix(self.start)
        return tuple(f" {word}"[len(rest) :] for word in self.words) if rest in ("", " ") else ()

    def read(self, text: str) -> str | None:
        """Return the word of a reply, in any case and with or without a full stop; None if it is none of the words."""
        word = text.strip().removesuffix(".").casefold()
        return next((each for each in self.words if each.casefold() == word), None)


@dataclass(frozen=True)
class Listed(Form):
    """The form of a reply that is a list of different words, in any order, at least one and at most `most` of them."""

    words: tuple[str, ...]
    most: int

    def grammar(self) -> str:
        word = " | ".join(json.dumps(word) for word in self.words)
        return f'root ::= " " word ("{SEPARATOR}" word){{0,{self.most - 1}}} "\\n"\nword ::= {word}\n'

    def finished(self, text: str) -> bool:
        return text.endswith("\n")

    def read(self, text: str) -> str | None:
        """Return the words, each once, as a line; None if one of them is unknown."""
        found = [word.strip() for word in text.strip().removesuffix(".").lower().split(SEPARATOR.strip())]
        known = all(word in self.words for word in found)
        return SEPARATOR.join(list(dict.fromkeys(found))[: self.most]) if known else None


@dataclass(frozen=True)
class Words(Form):
    """The form of a reply that is one line of free text."""

    most: int = 160
    """Characters."""

    def grammar(self) -> str:
        return (
            f'root ::= " " first char{{0,{self.most - 1}}} "\\n"\n'
            "first ::= [^ \\x00-\\x1f\\x7f]\nchar ::= [^\\x00-\\x1f\\x7f]\n"
        )

    def finished(self, text: str) -> bool:
        return text.endswith("\n")

    def read(self, text: str) -> str | None:
        """Return the first line of a reply; None if it has no words."""
        return next((line.strip()[: self.most] for line in text.splitlines() if line.strip()), None)
