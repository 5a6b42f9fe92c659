"""How a withheld text is found in a prompt: exactly, in whole words, and loosely, in parts and disguises."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

RUN = 4
"""This many consecutive words of a withheld sentence count as a part of it."""
SENTENCE = 3
"""A sentence of fewer words is searched only as part of its text."""
SHORTEST = 3
"""Shorter strings (an age, a small number) occur in prompts by chance."""


@lru_cache(maxsize=4096)
def both(text: str) -> tuple[str, str]:
    """Return a text in the forms of `visible` and `words`."""
    return visible(text), words(text)


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
    """Return a text in one form of Unicode (NFKC), with `in_place` of control, zero-width and combining characters."""
    if is_plain(text):
        return text
    kept = "".join(
        in_place if unicodedata.category(char) in ("Cc", "Cf", "Mn") and not char.isspace() else char
        for char in unicodedata.normalize("NFKD", text)
    )
    return unicodedata.normalize("NFKC", kept)


def words(text: str) -> str:
    """Return the words of a text in lower case, with a blank before and after each, and END after each sentence.

    In languages that are written without blanks, each character is a word.
    """
    folded = _JOINED.sub("", visible(visible(text).casefold()))
    sentences = (" ".join(_WORD.findall(sentence)) for sentence in _SENTENCE_END.split(folded))
    return f" {f' {END} '.join(sentence for sentence in sentences if sentence)} "


APART = "\n\n"
"""The separator between the messages of a prompt: no sentence continues in the next message."""
END = "\n"
_SENTENCE_END = re.compile(r"[.!?:;]+[\"'”’)]*(?:\s|$)|[。！？；：]|\n\s*[-*]\s|\n\s*\n")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")
_IDEOGRAPHS = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]+")
_JOINED = re.compile(r"(?<=\w)['’ʼ](?=\w)|(?<=\d),(?=\d{3}(?!\d))")
"""Characters within a word or a number that may be left out."""


@lru_cache(maxsize=10_000)
def pattern(text: str) -> re.Pattern[str]:
    """Return the pattern of a text in whole words, with any white space between them."""
    own = r"\s+".join(re.escape(word) for word in text.split())
    return re.compile(rf"(?<!\w){own}(?!\w)")
