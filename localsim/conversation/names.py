"""The one rule of what can be a name, for scenario files, imports, prompts, replies and pages; and names inside texts.

A line of a conversation begins with a name: `Ana: words`, `Ana [leave]`. So a name holds no bracket, colon, comma or
quotation mark, and nothing that cannot be seen. Letters of every script are letters, with the marks that belong to
them (Hindi, Thai and Tamil vowels, points of Hebrew and Arabic, accents apart from their letter).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import chain, groupby, starmap

WRITER = "writer"
"""Role of the model that writes a script; no agent may have this name."""
LONGEST = 40
"""Characters of a name."""
NARRATOR = "Narrator"
"""The name of the speaker of what the rules tell, for people."""
ANYBODY = "anybody"
"""Stands for every agent in a check."""
TAKEN = {
    WRITER: "the role that writes scripts",
    NARRATOR.casefold(): "the speaker of what the rules tell",
    ANYBODY: "every agent in a check",
    "everybody": "all agents in a prompt",
}
"""Names, in lower case, that mean something else here."""
COLONS = ":：﹕︓∶꞉︰ː"
"""What ends the name at the beginning of a line, in several scripts."""
_FORM = "a name is letters, digits, spaces, dots, hyphens and apostrophes, a letter first"
_INSIDE = frozenset(
    " \u00a0\u3000_.-\u2010\u2011\u2013'\u2018\u2019`\u00b4\u00b7\u2027\u30a0\u30fb\uff65\uff1d\u0f0b"
    "\u05be\u05f3\u05f4\u200c\u200d"
)
"""Spaces, dots, hyphens, apostrophes and joiners of several scripts."""
_ALIKE = str.maketrans("аеорсухіјѕһԁԛԝαορνικτɑɡ", "aeopcyxijshdqwaopviktag", "\u200c\u200d")
"""Cyrillic and Greek small letters that look like Latin ones, and joiners, which are not seen."""
_ALIKE_LARGE = str.maketrans("АВЕІЈКМНОРСТУХЅԚԜΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEIJKMHOPCTYXSQWABEZHIKMNOPTYX")
"""Capitals that look like Latin ones; between letters that are Latin they pass for these."""
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Scripts without spaces between words, or with particles attached: from Thai and Khmer to Chinese and Korean."""


def problem_of(name: str) -> str | None:
    """Return why a text cannot be the name of an agent; None if it can."""
    for place, char in enumerate(name):
        kind = unicodedata.category(char)
        if kind[0] == "L" or kind == "Nl" or (place and (kind[0] in "MN" or char in _INSIDE)):
            continue
        shown = f"{char!r} (U+{ord(char):04X})" if kind[0] == "C" or not char.isascii() else repr(char)
        where = "begin" if not place else "be in"
        return f"{shown} cannot {where} a name; {_FORM}"
    if not name:
        return _FORM
    if name[-1] in " \u00a0\u3000\u200c\u200d":
        return "a name cannot end with a space"
    if means := TAKEN.get(name.casefold()):
        return f"{name!r} is {means}; choose another name"
    return None


def same(name: str) -> str:
    """Return a text that is equal for names that nobody can tell apart: by case, width, form of accents or script."""
    plain = unicodedata.normalize("NFKC", name)
    plain = re.sub(r"\w*[A-Za-z]\w*", lambda word: word[0].translate(_ALIKE_LARGE), plain)
    return unicodedata.normalize("NFKC", plain.casefold()).translate(_ALIKE)


def tidy(name: str) -> str:
    """Return a name of a file without spaces around it, and without marks that only steer the direction of text."""
    return "".join(char for char in name if unicodedata.category(char) != "Cf" or char in _INSIDE).strip()


def forms(name: str) -> tuple[str, ...]:
    """Return the ways in which a model may write a name: as it stands, and with accents joined to letters or apart."""
    return tuple(dict.fromkeys((name, *(unicodedata.normalize(form, name) for form in ("NFC", "NFD")))))


@lru_cache(maxsize=4096)
def whole(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return the pattern of a text in whole words of any script.

    A mark after a letter belongs to it, so `Jose` is not in `José`, whose accent is a character of its own.
    """
    european = max(text[:1], text[-1:]) < "\u0530"
    own = _ACCENTS if european else marks()
    before = "" if _UNSPACED.match(text[:1]) else rf"(?<![\w{own}])"
    after = f"(?![{own}])" if _UNSPACED.match(text[-1:]) else rf"(?![\w{own}])"
    return re.compile(f"{before}(?:{'|'.join(map(re.escape, forms(text)))}){after}", flags)


_ACCENTS = "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
"""The marks of Latin, Greek and Cyrillic letters: a pattern with those of all scripts takes a millisecond to make."""
_WITH_MARKS = (
    *((0x300, 0x3100), (0xA600, 0xAC00), (0xFB00, 0xFE30), (0x10100, 0x12000), (0x16A00, 0x17000)),
    *((0x1BC00, 0x1E950), (0xE0100, 0xE01F0)),
)
"""The parts of Unicode that have marks."""


@lru_cache(maxsize=1)
def marks() -> str:
    """Return the inside of a character class with every combining mark."""
    codes = chain.from_iterable(starmap(range, _WITH_MARKS))
    marks = [code for code in codes if unicodedata.category(chr(code))[0] == "M"]
    parts = [[code for _, code in part] for _, part in groupby(enumerate(marks), key=lambda each: each[1] - each[0])]
    return "".join(f"{chr(part[0])}-{chr(part[-1])}" for part in parts)
