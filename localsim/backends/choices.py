"""Choices as chat models give them: `Xena`, `I vote for Xena.`, `[VOTE: xena]`, `hare`, `$40`, `I accept.`.

A reply is a choice only if exactly one move fits it, and every other word of it is one that choosing needs. So "not
Xena", "I trust Xena" and "Xena or Bo" are none: nothing is chosen for a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from localsim.backends.heads import plain_words, spellings
from localsim.conversation.names import whole
from localsim.conversation.rules.lines import SEPARATOR, Bound, Way
from localsim.conversation.rules.values import Param

_LONGEST = 120
_NUMBER = re.compile(r"(?<![\w.,])-?\d{1,12}(?:\.\d{1,12})?(?![\w]|[.,]\d)")
_WORDS = re.compile(r"[^\W_]+(?:'[^\W\d_]+)?")
_NEEDED = frozenset(
    "i i'll i'd my is it it's to for on the a an and will would choose choice pick select answer decision decide "
    "play go with vote ballot offer final action move".split()
)


def chosen(text: str, ways: Sequence[Way], speaker: str) -> str:
    """Return the inside of the bracket that a text without one stands for; '' if it is no choice or not one alone."""
    if len(text) > _LONGEST or text.rstrip(" *_\"'”’").endswith(("?", "？")):
        return ""
    words = plain_words(text)
    found = {fit for way in ways if isinstance(way, Bound) and (fit := _fit(words, way, speaker))}
    return found.pop() if len(found) == 1 else ""


def spelled(bracket: str, ways: Sequence[Way], speaker: str) -> str:
    """Return the text of a bracket. The move and its values get the spelling that they have in the prompt."""
    verb = re.match(r"\s*([\w-]+)", bracket)
    way = next((way for way in ways if verb and isinstance(way, Bound) and verb[1].casefold() == way.name), None)
    if way is None:
        return chosen(bracket, ways, speaker) or bracket
    exact = bracket.partition(" ")[0] == way.name and len(way.move.values) != 1
    return bracket if exact else _fit(plain_words(bracket), way, speaker) or bracket


def _fit(words: str, way: Bound, speaker: str) -> str:
    """Return the inside of a bracket that says what these words say; '' if they say more or something else."""
    name, params = way.name, way.move.values
    verbs = {name, f"{name}s", f"{name}d", f"{name}ed", f"{name}ing", f"{name.removesuffix('e')}ing"}
    values, rest = "", words
    if len(params) > 1:
        return ""
    if params:
        found = list(_values(words, params[0], way.others))
        if not found or len(found) > 1 and params[0].agents != "several":
            return ""
        values = SEPARATOR.join(dict.fromkeys(value for value, _ in found))
        acts = "|".join(map(re.escape, {*verbs, "will", "would"}))
        if any(re.search(rf"{whole(written).pattern} (?:{acts})\b", words) for _, written in found):
            return ""  # "Xena votes" tells what Xena does
        for _, written in found:
            rest = rest.replace(written, " ", 1)
    left = set(_WORDS.findall(rest)) - set(plain_words(speaker).split()) - verbs
    if left - _NEEDED or not params and not verbs & set(_WORDS.findall(rest)):
        return ""
    return f"{name} {values}".strip()


def _values(words: str, param: Param, others: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield (value, how it is written) for each value in some words."""
    if param.number is not None:
        yield from ((found[0], found[0]) for found in _NUMBER.finditer(words))
        return
    options = spellings(others) if param.agents else [(each, plain_words(each)) for each in param.one_of or ()]
    for value, written in sorted(options, key=lambda each: len(each[1]), reverse=True):
        for _ in whole(written).finditer(words):
            yield value, written
        words = whole(written).sub(" ", words)
