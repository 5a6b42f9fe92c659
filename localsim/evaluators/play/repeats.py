"""Words that are said again, exactly or with small changes; `style` and `play` count them.

Two utterances are nearly the same if most of their words are the same in the same order, and their names and numbers
are equal: "Do you know Ivan?" and "Do you know Rafael?" are two questions. Works in any language that writes words
apart; elsewhere characters stand for words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from localsim.conversation.transcript import Turn

SHORT = 5
"""Fewest words of an utterance whose repetition counts: "Yes." and "No, I don't." are said often."""
NEAR = 0.7
"""Least share of words in common, in order, at which utterances are nearly the same."""
HELD = 0.8
"""Least share of an utterance's words in RUNs of an earlier one, which holds it: nothing new is said."""
RUN = 3
"""Words in a row that are looked for in an earlier utterance."""
_NAME = re.compile(r"(?<=[\w,;:'’] )[^\W\d_a-z][\w'’-]*")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_WORD = re.compile(r"[\w'’]+")
_UNSPACED = re.compile(r"[\u0e01-\u0e3a\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Thai, Japanese and Chinese, which write no spaces between words."""
_FIRST_PERSON = frozenset(("i", "i'm", "i'll", "i'd", "i've"))


def plain_words(text: str) -> str:
    """Return the words alone, in lower case."""
    return " ".join("".join(c for c in text.casefold() if c.isalnum() or c.isspace()).split())


def repeated(said: Sequence[Turn], *, own: bool) -> list[Turn]:
    """Return the turns whose words were said before, by any agent or by the same speaker."""
    seen: set[tuple[str, str]] = set()
    found = []
    for turn in said:
        key = (turn.speaker if own else "", plain_words(turn.action.text))
        if key in seen:
            found.append(turn)
        seen.add(key)
    return found


@dataclass(frozen=True)
class Utterance:
    """The words of a turn, and what tells two utterances of one form apart."""

    turn: Turn
    words: tuple[str, ...]
    """In lower case, without the names of the agents."""
    marks: frozenset[str]
    """Names, numbers and words of private facts."""

    @cached_property
    def bag(self) -> frozenset[str]:
        """The different words."""
        return frozenset(self.words)

    @property
    def has_number(self) -> bool:
        """True if a number is among the words."""
        return any(mark[0].isdigit() for mark in self.marks)

    @property
    def is_short(self) -> bool:
        """True for so few words that people say them often."""
        return len(self.words) < SHORT

    @cached_property
    def runs(self) -> frozenset[tuple[str, ...]]:
        """The RUNs of its words."""
        return runs(self.words, RUN)

    def same(self, other: Utterance) -> bool:
        """Return True if the words are equal."""
        return self.words == other.words

    def like(self, other: Utterance) -> bool:
        """Return True if the words are nearly those of an earlier utterance, or most of them are a part of it."""
        if self.same(other):
            return True
        if min(len(self.words), len(other.words)) < SHORT or self.marks - other.bag:
            return False
        if 2 * len(self.bag & other.bag) < len(self.bag):
            return False
        if covered(self.words, other.runs, RUN) >= HELD * len(self.words):
            return True
        if other.marks - self.bag:
            return False
        return SequenceMatcher(None, self.words, other.words, autojunk=False).ratio() >= NEAR


def utterance(turn: Turn, agents: Iterable[str], known: frozenset[str]) -> Utterance:
    """Return the words of a turn. `agents` are names that count for nothing, `known` words that tell texts apart."""
    text = turn.action.text
    marks = {word.casefold() for word in _NAME.findall(text)} | set(_NUMBER.findall(text))
    names = {part for name in agents for part in words_in(name)}
    words = tuple(word for word in words_in(text) if word not in names)
    marks |= known.intersection(words)
    return Utterance(turn, words, frozenset(marks - names - _FIRST_PERSON))


def runs(words: Sequence[str], length: int) -> frozenset[tuple[str, ...]]:
    """Return each `length` words that stand in a row."""
    return frozenset(tuple(words[at : at + length]) for at in range(len(words) - length + 1))


def covered(words: Sequence[str], known: frozenset[tuple[str, ...]], length: int) -> int:
    """Return how many words are in known runs of a length."""
    found: set[int] = set()
    for at in range(len(words) - length + 1):
        if tuple(words[at : at + length]) in known:
            found |= set(range(at, at + length))
    return len(found)


def words_in(text: str) -> list[str]:
    """Return the words of a text in lower case; in scripts without spaces, its characters."""
    lower = text.casefold().replace("’", "'")
    if _UNSPACED.search(lower):
        return [char for char in lower if char.isalnum()]
    return [word.strip("'") for word in _WORD.findall(lower) if word.strip("'")]
