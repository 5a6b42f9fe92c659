"""How a withheld text is found in a prompt: exactly, in whole words, and loosely, in parts and disguises."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from localsim.conversation.names import marks

RUN = 4
"""This many consecutive words of a withheld sentence count as a part of it."""
SENTENCE = 3
"""A sentence of fewer words is searched only as part of its text."""
SHORTEST = 3
"""Shorter strings (an age, a small number) occur in prompts by chance."""


def searched(text: str) -> tuple[str, str]:
    """Return a text in the forms in which it is searched exactly and loosely."""
    loose = words(text)
    if not is_plain(text):  # invisible characters may be in words, or between them
        loose += END + words(visible(text, in_place=" "))
    return visible(text), loose


both = lru_cache(maxsize=4096)(searched)
"""As `searched`, for the lines of a conversation, which come up again with every prompt."""


def parts(text: str) -> Iterator[str]:
    """Yield the whole text, its sentences and their runs of RUN words, in the form of `words`."""
    whole = words(text)
    if len(whole.strip()) >= SHORTEST and re.search(r"[^\W\d]", whole):  # a number can be in prompts by chance
        yield whole
    for sentence in whole.split(END):
        own = sentence.split()
        if len(own) >= SENTENCE:
            yield f" {' '.join(own)} "
        for start in range(len(own) - RUN + 1):
            yield f" {' '.join(own[start : start + RUN])} "


def is_plain(text: str) -> bool:
    """Return True if a text has no characters that can disguise it."""
    return text.isascii() and not _CONTROL.search(text)


def visible(text: str, in_place: str = "") -> str:
    """Return a text in one form of Unicode (NFKC), with `in_place` of control and zero-width characters, and of the
    marks that writers leave out; those of Hindi or Thai are as much as letters.
    """
    if is_plain(text):
        return text
    kept = "".join(
        in_place if _hides(char) and not char.isspace() else char for char in unicodedata.normalize("NFKD", text)
    )
    return unicodedata.normalize("NFKC", kept)


def _hides(char: str) -> bool:
    kind = unicodedata.category(char)
    return kind in ("Cc", "Cf") or (kind == "Mn" and (char < _LETTERS_ABOVE or _LEFT_OUT.match(char) is not None))


def words(text: str) -> str:
    """Return the words of a text in lower case, with a blank before and after each, and END after each sentence.

    In languages that are written without blanks, each character is a word.
    """
    folded = _JOINED.sub("", visible(visible(text).casefold()))
    sentences = (" ".join(_word().findall(sentence)) for sentence in _SENTENCE_END.split(folded))
    return f" {f' {END} '.join(sentence for sentence in sentences if sentence)} "


APART = "\n\n"
"""The separator between the messages of a prompt: no sentence continues in the next message."""
END = "\n"
_SENTENCE_END = re.compile(
    r"(?:(?<!\W[^\W\d_])(?<!^[^\W\d_])\.|[!?:;])[.!?:;]*[\"'”’)]*(?:\s|$)|[。！？；：]|\n\s*[-*]\s|\n\s*\n"
)
"""A dot after a single letter is that of an initial, as in J. R. Ha."""
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")
_IDEOGRAPHS = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
_LETTERS_ABOVE = "\u06d6"
"""Below it, marks are accents, points of Hebrew and signs of Arabic; a text is read without them."""
_LEFT_OUT = re.compile("[\u06d6-\u06ed\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe2f]")
_JOINED = re.compile(r"(?<=\w)['’ʼ](?=\w)|(?<=\d),(?=\d{3}(?!\d))")
"""Characters within a word or a number that may be left out."""


@lru_cache(maxsize=1)
def _word() -> re.Pattern[str]:
    """Return the pattern of a word: letters with their marks, or one character of a script without blanks."""
    return re.compile(rf"[{_IDEOGRAPHS}]|(?:[^\W_{_IDEOGRAPHS}][{marks()}]*)+")


@lru_cache(maxsize=10_000)
def pattern(text: str) -> re.Pattern[str]:
    """Return the pattern of a text in whole words, with any white space between them."""
    own = r"\s+".join(re.escape(word) for word in text.split())
    after = rf"(?![\w{marks()}])" if not text.isascii() else r"(?!\w)"
    return re.compile(rf"(?<!\w){own}{after}")


def leaves(value: Any) -> Iterator[str]:
    """Yield every text and number in nested lists and mappings, as a prompt would have them."""
    if isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    elif value is not None and not isinstance(value, bool):
        yield f"{value:.12g}" if isinstance(value, float) else str(value)
