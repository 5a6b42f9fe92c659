"""The beginning of a line as chat models write it: a name in quotation marks, bold, in brackets, before a dash.

`**May**: ...`, `"May": ...`, `[May] ...`, `May (smiling): ...`, `May：...`, `1. MAY - ...`. A word that only begins
with the letters of a name is no name: "Maybe", "May's bag", "May I sit here?".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

_LONGEST = 160
"""Characters before a colon that can be a name with remarks."""
Kind = Literal["agent", "aside", "label", "plain"]

_LEAD = re.compile(r"(?:[\s>#*_~`\"'“”„‟‘’‚«»‹›「『（(\[<{【•·@|-]|–|—|\d{1,3}[.)]\s)*")
_TRAIL = "*_~`\"'“”„‟‘’‚«»‹›」』）)]>}】| \t"
_CLOSERS = {
    "(": ")", "[": "]", "{": "}", "<": ">", "«": "»", "»": "«", "‹": "›", "“": "”", "„": "“", "‘": "’", "「": "」",
    "『": "』", "（": "）", "【": "】", '"': '"', "'": "'", "`": "`", "*": "*", "_": "_", "~": "~", "|": "|",
}  # fmt: skip
_COLONS = ":：﹕︓∶꞉︰ː"
_REMARK = r"\([^()\n]{0,200}\)|（[^（）\n]{0,200}）|\*[^*\n]{1,200}\*|【[^【】\n]{0,200}】"
_REMARKS = re.compile(_REMARK)
_ACTION = re.compile(r"\[([^\[\]\n]{0,200})\]")
_DASH = re.compile(r"\s+[-–—―]+\s+")
_WRAPPED = re.compile(
    r"\s*(\*\*|__|[\[(<【（{*])\s*([^\[\]()<>*【】（）{}\n]{1,60}?)\s*(\*\*|__|[\])>】）}*])\s*(.*)", re.DOTALL
)
_NOT_FOR_ALL = re.compile(
    r"\b(?:(?i:think\w*|thought\w*|inner|internal\w*|silent\w*|aside|private\w*|whisper\w*|muses?|musing|"
    r"(?:to|for) (?:him|her|them|it|my)sel(?:f|ves))|to [A-Z]\w*)\b"
)
_SAYS = frozenset(
    "says said say replies replied reply responds responded answers answered answer asks asked speaks adds added "
    "continues exclaims shouts".split()
)
_THINKS = frozenset("thinks thought thinking whispers whispered whisper muses wonders".split())
_OWN_WORDS = frozenset("reply response line answer turn message words".split())
_TITLES = frozenset("dr mr mrs ms mx st prof sir lady the a an".split())
_LABELS = frozenset(
    "assistant|ai|bot|model|reply|response|answer|output|line|dialogue|my reply|my response|final answer|your reply|"
    "next line|final reply|final response|final|agent|text".split("|")
)
_ASIDES = frozenset(
    "user|human|system|narrator|note|notes|ooc|scene|stage direction|thought|thoughts|thinking|thought process|"
    "reasoning|analysis|inner monologue|internal monologue|inner thoughts|internal thoughts|reflection|plan|"
    "explanation|instruction|instructions|comment|tool|function|author's note".split("|")
)
_NAMES = r"(?:reply|response|line|answer|message|turn|dialogue|output|utterance|script|conversation)"
_PREAMBLE = re.compile(
    rf"(?:(?:sure|certainly|of course|absolutely|okay|ok|alright|understood|got it|great|no problem)\b[^:]{{0,40}}?)?"
    rf"(?:here(?:'s| is| are)|this is|below is)\b[^:]{{0,60}}\b(?:{_NAMES}|would (?:say|reply|respond))\b[^:]{{0,60}}"
    rf"|(?:sure|certainly|of course|absolutely|okay|ok)\W+here (?:you go|it is)\W*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Head:
    """How a line begins, and what follows."""

    kind: Kind
    """`agent`: a person of the talk; `aside`: not speech, such as a thought; `label`: a word such as "Reply:"."""
    name: str = ""
    """The agent."""
    bracket: str = ""
    """An action in brackets after the name."""
    rest: str = ""
    """The line without its beginning."""
    decorated: bool = False
    """True if a remark was left out."""


def head_of(line: str, names: Sequence[str]) -> Head:
    """Read the beginning of a line; `names` are those of the agents in a talk."""
    led = _LEAD.match(line)
    opened = led.group() if led else ""
    inner = line[len(opened) :]
    ends = sorted(end for end in (_colon(inner), _dash(inner)) if end is not None)
    for start, end in ends:
        label, exact = inner[:start], inner[start] not in _COLONS
        found = _named(label, names, exact=exact) or _named(opened + label, names, exact=True)
        if found is not None:
            return replace(found, rest=_closed(inner[end:], opened, label))
    wrapped = _WRAPPED.match(line)
    if wrapped is not None:
        found = _named(wrapped[2], names, exact=True)
        if found is not None and found.kind == "agent":
            return _after_wrapped(found, wrapped[4])
    alone = _named(_closed(inner, opened, ""), names, exact=True)
    return alone if alone is not None and alone.kind == "agent" else Head("plain", rest=line)


def _after_wrapped(found: Head, rest: str) -> Head:
    action = _ACTION.match(rest)
    bracket = action[1].strip() if action else ""
    rest = rest[action.end() :] if action else rest
    return Head("agent", found.name, bracket, rest.lstrip(f"{_COLONS}-–— \t"))


def _colon(line: str) -> tuple[int, int] | None:
    """Return the place of the first colon outside of brackets, if it is near enough to end a name."""
    depth = 0
    for place, char in enumerate(line[:300]):
        depth += (char in "[(（【") - (char in "])）】" and depth > 0)
        if not depth and char in _COLONS:
            return place, place + 1
    return None


def _dash(line: str) -> tuple[int, int] | None:
    found = _DASH.search(line[:100])
    return found.span() if found else None


def _closed(rest: str, opened: str, label: str) -> str:
    """Return a text without the marks that close what was opened before the name, as in `**May:** ...`."""
    rest = rest.strip()
    for mark in reversed(opened.replace(" ", "")):
        closer = _CLOSERS.get(mark)
        if closer is None or label.rstrip().endswith(closer):
            continue
        if rest.startswith(closer):
            rest = rest[1:].lstrip()
        elif rest.endswith(closer):
            rest = rest[:-1].rstrip()
    return rest


def _named(label: str, names: Sequence[str], *, exact: bool) -> Head | None:
    """Return whom a text before a colon names, or what else it is; None if it is speech."""
    if len(label) > _LONGEST:
        return None
    remarks = _REMARKS.findall(label)
    bare = _REMARKS.sub(" ", label)
    action = _ACTION.search(bare)
    if action:
        bare = bare[: action.start()] + bare[action.end() :]
    bare = bare.strip(_TRAIL).strip()
    words = _plain(bare)
    if not words:
        return None
    name, thought = _who(bare, words, names, exact=exact)
    if name:
        if thought or any(_NOT_FOR_ALL.search(each) for each in remarks):
            return Head("aside", name)
        return Head("agent", name, action[1].strip() if action else "", decorated=bool(remarks))
    if exact or action:
        return None
    if words in _ASIDES:
        return Head("aside")
    return Head("label") if words in _LABELS or _PREAMBLE.fullmatch(words) else None


def _plain(text: str) -> str:
    """Return one form for all spellings of a text, whatever their case, width and apostrophes."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def _who(label: str, words: str, names: Sequence[str], *, exact: bool) -> tuple[str, bool]:
    """Return the agent that a label names, and if it says that the agent thinks; '' for none."""
    said = words.split()
    if whole := next((name for name in names if _plain(name) == words), ""):
        return whole, False
    for name in names:
        own = _plain(name).split()
        extra = said[len(own) :]
        if exact or not extra or len(said) <= len(own):
            continue
        if said[: len(own)] == own:
            if len(extra) == 1 and extra[0].strip(",") in _SAYS | _THINKS:
                return name, extra[0].strip(",") in _THINKS
            if len(extra) == 1 and len(extra[0]) > 1 and label.split()[-1][:1].isupper():
                return name, False  # with a surname
        if said[: len(own)] == [*own[:-1], f"{own[-1]}'s"] and len(extra) <= 2 and extra[-1] in _OWN_WORDS:
            return name, False
    parts = [name for name in names if set(said) < set(_plain(name).split())]
    short = len(parts) == 1 and any(word.strip(".") not in _TITLES for word in said)
    return (parts[0], False) if short and len(said[-1]) > 1 else ("", False)
