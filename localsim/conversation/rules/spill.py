"""What a model writes beyond its own utterance: lines of participants, actions in brackets, quotation marks.

The one rule, the same in every mode. An utterance ends

- before the line of a participant: a name of the talk with a colon, perhaps with an action in brackets between them,
  at the start of the text, after the end of a sentence or a closing quotation mark, or on a new line;
- before an action of the scenario in brackets, wherever it stands, and the name in front of it.

The speaker's own name at its start is left out, and so are quotation marks around all of it, or one mark at either end
without a partner. In the middle of a sentence a name with a colon is speech ("I asked Bo: are you coming?"), and so is
the name of somebody who is not in the talk. What is cut off is never read as a turn of anybody.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from localsim.conversation.names import COLONS, forms

_PAIRS = ('""', "“”", "„“", "””", "«»", "»«", "「」", "『』", "''", "‘’", "``")
_LONE = '"“”'
_TITLES = "".join(rf"(?<!\b{title})" for title in ("Dr", "Mr", "Ms", "Mx", "St", "Mrs", "Prof"))
_SENTENCE = rf"(?:[!?…。！？．｡؟۔।॥።։។။‼⁇⁉]|{_TITLES}\.)(?:[\"'“”’」』)\]*_]| ?»)*+"
"""The end of a sentence, with closing marks; a title, as in "Dr. Bo", is none."""
_CLOSED = r"(?<=[^\s])[\"”»」』]"
_OPEN = r"[\s\u200b-\u200f\ufeff\"'“‘«„「『*_\[(<>#•–—-]*+"
"""What may stand before the name of a line."""
_COLON = f"[{COLONS}]"


@dataclass(frozen=True)
class Utterance:
    """A text without what does not belong to it."""

    text: str
    repaired: bool = False
    """True if something was left out."""
    cut: bool = False
    """True if its end was cut off."""


def utterance(text: str, speaker: str, names: Sequence[str], actions: Sequence[str]) -> Utterance:
    """Return what `speaker` says in a text; `names` are those of the talk, `actions` all actions and moves in it."""
    own, spill = _own(speaker), _spill(tuple(names), tuple(actions))
    said, before, cut = text.strip(), "\n", False
    while said != before:  # without quotation marks a name can stand at the start
        before = said
        said = own.sub("", said)
        if found := spill.search(said):
            said, cut = said[: max(found.start("line"), found.start("action"))], True
        said = _unquoted(said.strip())
    return Utterance(said, said != text.strip(), cut)


@lru_cache(maxsize=256)
def _own(name: str) -> re.Pattern[str]:
    return re.compile(rf"^(?:{_OPEN}{_any_of(forms(name))}[*_]*{_COLON}[*_]*\s*)+")


@lru_cache(maxsize=256)
def _spill(names: tuple[str, ...], actions: tuple[str, ...]) -> re.Pattern[str]:
    name = rf"{_any_of(tuple(form for name in names for form in forms(name)))}[*_\])>]*"
    action = rf"\[\s*(?i:{_any_of(actions)})(?:[\s:][^\]\n]*)?(?:\]|$|(?=\[))"
    line = (
        rf"(?:^|\n|{_SENTENCE}|{_CLOSED})(?P<line>{_OPEN}{name}\s*(?:\[[^\]\n]*\]\s*|\([^()\n]{{0,80}}\)\s*)?{_COLON})"
    )
    return re.compile(rf"{line}|(?P<action>(?:{_OPEN}{name}\s*)?{action})")


def _any_of(texts: tuple[str, ...]) -> str:
    """Return the pattern of any of these texts, the longest first."""
    return f"(?:{'|'.join(map(re.escape, sorted(texts, key=len, reverse=True)))})"


def _unquoted(text: str) -> str:
    """Return a text without the quotation marks around all of it, or without one at an end that has no partner."""
    if text[:1] + text[-1:] in _PAIRS and len(text) > 1 and not _has_mark(text[1:-1], text[0] + text[-1]):
        return text[1:-1].strip()
    if sum(map(text.count, _LONE)) == 1:
        if text[0] in _LONE:
            return text[1:].strip()
        if text[-1] in _LONE and not text[-2:-1].isdigit():  # 15" is a length
            return text[:-1].strip()
    return text


def _has_mark(text: str, marks: str) -> bool:
    """Return True if a text has one of these marks; between two letters it is an apostrophe."""
    return re.search(rf"(?<!\w)[{re.escape(marks)}]|[{re.escape(marks)}](?!\w)", text) is not None
