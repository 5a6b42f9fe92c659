"""Thoughts in a text: what a model thinks before it speaks, between the marks of the usual families of models.

A thought is never speech. One that nothing closes goes on to the end of the text; where only its end is marked, it
began with the text, because the chat template had opened it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORDS = (
    r"[\w:-]{0,40}?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflect(?:ion|ing)?|deliberation|monologue|scratch_?pad|"
    r"introspection)(?:[_ -][\w -]{0,40})?"
    r"|(?:inner|internal)[_ -](?:thought|voice|mono|dialog|think|reason)[\w -]{0,30}"
    r"|analysis|cot|rationale"
)
_EVERYDAY = r"plan(?:ning)?|inner|internal"
"""Words that people say, too: they mark a thought only if it is closed, or nothing but the mark stands on a line."""
_LT, _GT = "(?:<|&lt;|＜)", "(?<!/)(?:>|&gt;|＞)"
_KINDS = r"(?:think(?:ing)?|thoughts?|reason(?:ing)?|inner[_▁](?:thoughts?|monologue))"
_HEADER = r"(?:<\|start\|>[^<]{0,80})?<\|channel\|?>\s*"
_OPEN = "|".join([
    rf"{_LT}\s*(?:{_WORDS})\b[^<>\n]{{0,80}}?{_GT}",
    r"\[(?-i:THINK|THINKING|THOUGHTS?|REASONING)\]",
    rf"<[|｜]\s*(?:(?:begin|start)[_▁](?:of[_▁])?{_KINDS}|{_KINDS}(?:[_▁](?:begin|start))?|inner_prefix)\s*[|｜]>",
    r"◁think▷|<unused94>|<\|open\|>think<\|sep\|>",
    rf"{_HEADER}(?!final)\w+[^<]{{0,80}}(?:<\|message\|>)?",
    r"\A\s*analysis(?=(?-i:[A-Z]))",
    r"\A\s*here are my reasoning steps:",
])  # fmt: skip
_CLOSE = "|".join([
    rf"{_LT}\s*/\s*(?:{_WORDS})\s*{_GT}",
    r"\[/(?:THINK|THINKING|THOUGHTS?|REASONING)\]",
    rf"<[|｜]\s*(?:/\s*{_KINDS}|end[_▁](?:of[_▁])?{_KINDS}|{_KINDS}[_▁]end|inner_suffix)\s*[|｜]>",
    r"◁/think▷|<unused95>|(?:<\|close\|>think<\|sep\|>\s*)?<\|open\|>response<\|sep\|>|<\|close\|>think<\|sep\|>",
    rf"{_HEADER}final[^<]{{0,80}}<\|message\|>",
    r"<channel\|>",
    r"assistantfinal",
    r"\[BEGIN FINAL RESPONSE\]",
])  # fmt: skip
_MARKS = re.compile(rf"(?P<open>{_OPEN})|(?P<close>{_CLOSE})", re.IGNORECASE)
_ALL_MARKS = re.compile(
    rf"(?P<open>{_OPEN}|{_LT}\s*(?:{_EVERYDAY})\s*{_GT})|(?P<close>{_CLOSE}|{_LT}\s*/\s*(?:{_EVERYDAY})\s*{_GT})",
    re.IGNORECASE,
)
_MEANT = re.compile(rf"{_LT}\s*/\s*(?:{_EVERYDAY})\s*{_GT}|^[ \t]*{_LT}(?:{_EVERYDAY}){_GT}[ \t]*$", re.I | re.M)
_SQUARE = re.compile(rf"(?P<open>\[(?:{_WORDS})\])|(?P<close>\[/(?:{_WORDS})\])", re.IGNORECASE)


@dataclass(frozen=True)
class Parted:
    """A text, and what was thought in it."""

    text: str
    thought: str = ""
    open: bool = False
    """True if nothing closes the last thought."""


def parted(text: str) -> Parted:
    """Return a text without the thoughts in it; `[think]` counts only where a `[/think]` shows that it is a mark."""
    closed = "[/" in text and any(mark["close"] for mark in _SQUARE.finditer(text))
    squared = _parted(text, _SQUARE) if closed else Parted(text)
    angled = _parted(squared.text, _ALL_MARKS if _MEANT.search(squared.text) else _MARKS)
    thoughts = [each for each in (squared.thought, angled.thought) if each]
    return Parted(angled.text, "\n".join(thoughts), squared.open or angled.open)


def _parted(text: str, marks: re.Pattern[str]) -> Parted:
    kept: list[str] = []
    thoughts: list[str] = []
    place, inside = 0, False
    for mark in marks.finditer(text):
        before, place = text[place : mark.start()], mark.end()
        if inside:
            thoughts.append(before)
        elif mark["close"]:
            thoughts.append("".join([*kept, before]))
            kept = []
        else:
            kept.append(before)
        inside = bool(mark["open"])
    (thoughts if inside else kept).append(text[place:])
    return Parted("".join(kept), "\n".join(each.strip() for each in thoughts if each.strip()), inside)


def ends_inside(text: str) -> bool:
    """Return True if a text, such as the end of a prompt, has opened a thought and not closed it."""
    return parted(text).open
