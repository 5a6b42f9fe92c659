"""The markup in Sotopia's texts: who sees a part of a text, and what kind of part it is.

    <p viewer='agent_0'>...</p>, <root viewer='agent_1'>...</root>    only this agent sees the part
    <p viewer='environment'>...</p>                                   only the judge sees it
    <extra_info>, <strategy_hint>, <clarification_hint>               facts and advice for the agent

An agent sees a part if every `viewer` around it is that agent (Sotopia's XML renderer), and nobody sees a comment. All
other marks are text. Marks that are not closed, or hide a part in a form that is not known, are refused: what they hide
would become public.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape, unescape

from localsim.errors import InvalidInput

Kind = Literal["text", "extra_info", "strategy_hint", "clarification_hint"]
HINTS = ("strategy_hint", "clarification_hint")
JUDGE = "environment"
_NAMES = ("p", "root", "extra_info", *HINTS)
_TAG = re.compile(
    r"<(?P<end>/?)(?P<name>[A-Za-z_][\w.:-]*)(?P<rest>\s[^<>]*)?>|<!--(?P<comment>.*?)(?P<over>-->|\Z)", re.DOTALL
)
_HIDES = re.compile(r"\bviewers?\s*=", re.IGNORECASE)
_VIEWER = re.compile(r"""\sviewer\s*=\s*(?:'(agent_\d+|environment)'|"(agent_\d+|environment)")""")
_LABEL = re.compile(r"^(?:extra information|clarification hint|strategy hint|hint)\s*:\s*", re.IGNORECASE)
_BRACKETS = re.compile(r"\(\s*\)")
_GAPS = re.compile(r"[ \t]{2,}")


@dataclass(frozen=True)
class Piece:
    """A part of a text with one kind and one set of viewers."""

    text: str
    kind: Kind = "text"
    viewers: frozenset[str] = frozenset()
    """Every `viewer` around it; empty: everybody sees it. With two different ones no agent sees it."""

    @property
    def reader(self) -> str:
        """The only agent who sees the part (`agent_0`, ...), '' for everybody, JUDGE if no agent does."""
        if not self.viewers:
            return ""
        only = next(iter(self.viewers))
        return only if len(self.viewers) == 1 and re.fullmatch(r"agent_\d+", only) else JUDGE


def pieces(text: str, where: str) -> list[Piece]:
    """Return the parts of a text in order, without empty ones. Raises InvalidInput for marks that do not match."""
    found: list[Piece] = []
    opened: list[tuple[str, str]] = []
    at = 0
    for tag in _TAG.finditer(text):
        name, rest = tag["name"] or "", tag["rest"] or ""
        if name and name.casefold() not in _NAMES and not _HIDES.search(rest):
            continue
        found += _piece(text[at : tag.start()], opened)
        at = tag.end()
        if not name and not tag["over"]:
            raise _unbalanced("<!--> is not closed", where)
        if not name:
            found += _piece(tag["comment"], [*opened, ("p", JUDGE)])
        elif not tag["end"]:
            viewer = _VIEWER.search(rest)
            if name not in _NAMES or (viewer is None and _HIDES.search(rest)):
                raise _unknown(tag[0], where)
            opened.append((name, (viewer[1] or viewer[2]) if viewer else ""))
        elif not opened or opened.pop()[0] != name:
            raise _unbalanced(f"</{name}> closes nothing", where)
    if opened:
        raise _unbalanced(f"<{opened[-1][0]}> is not closed", where)
    found += _piece(text[at:], opened)
    for piece in found:
        if left := _HIDES.search(piece.text):  # such as the &lt;p viewer= of a page
            raise _unknown(piece.text[max(0, left.start() - 6) :], where)
    return found


def _unknown(mark: str, where: str) -> InvalidInput:
    hint = "marks are <p viewer='agent_1'> and <p viewer='environment'>; others would become public"
    return InvalidInput(f"nobody knows for whom {mark[:60]} is", where=where, hint=hint)


def _unbalanced(problem: str, where: str) -> InvalidInput:
    return InvalidInput(problem, where=where, hint="close the mark: what it hides would become public")


def _piece(text: str, opened: list[tuple[str, str]]) -> list[Piece]:
    kind = next((name for name, _ in reversed(opened) if name not in ("p", "root")), "text")
    viewers = frozenset(viewer for _, viewer in opened if viewer)
    return [Piece(unescape(text), kind, viewers)] if text.strip() else []  # type: ignore[arg-type]


def plain(parts: list[Piece]) -> str:
    """Return parts as one text, without the brackets and double blanks that marks between them left behind."""
    if len(parts) == 1:
        return parts[0].text.strip()
    return _GAPS.sub(" ", _BRACKETS.sub("", "".join(part.text for part in parts))).strip()


def unlabelled(text: str) -> str:
    """Return the text of a mark without the label that Sotopia's files put in front, such as `Hint:`."""
    return _LABEL.sub("", text.strip())


def marked(kind: Kind, text: str, label: str = "") -> str:
    """Return a text inside a mark, with a label in front, as `pieces` reads it back."""
    return f"<{kind}>{label}{escape(text)}</{kind}>"


def hidden(text: str, viewer: str) -> str:
    """Return a text that only one viewer sees, as `pieces` reads it back."""
    return f"<p viewer='{viewer}'>{escape(text)}</p>"


def literal(text: str) -> str:
    """Return a text of which nothing is markup, as `pieces` reads it back."""
    return escape(text)
