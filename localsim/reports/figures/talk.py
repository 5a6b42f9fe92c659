"""One conversation as an SVG picture, 800 wide: both private sides, the turns, and marks of who could know what.

It is drawn without a browser. Lines are broken by widths of letters that fit every usual font without serifs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from localsim.conversation.scenario import Agent
from localsim.models.registry import labelled
from localsim.reports.evidence.marks import colours, kind_of
from localsim.reports.evidence.turns import MarkedTurn, marked_turns, verdict_on
from localsim.reports.figures.draw import colour_of
from localsim.runs import words
from localsim.store.database import Store
from localsim.store.episodes import StoredEpisode, load_episode
from localsim.store.queries.pages import answer_key

WIDTH, EDGE, GAP = 800, 28, 24
INK, QUIET, FLAG, SOFT, OK = "#1b1f24", "#555d68", "#a3211a", "#f5f6f8", "#1c6b2a"
SPEAKERS = ("#6d3aa0", "#7a5a00", "#a8245f", "#35566b", "#3f6b1f", "#8a3a1c", "#1c5f9e", "#555555")
"""The colours of agents on the pages (app.css), on white."""
SERIOUS = ("omniscient", "strange", "hit")
Piece = tuple[str, str]
"""A text, and the kind of its mark; '' without one."""

_LINE = 1.42
"""Height of a line, in sizes of its letters."""
_NARROW, _BROAD = frozenset("fijlrtI.,:;'’|!()[]/- "), frozenset("mwMW@%—…★◆●▲○")


@dataclass
class _Page:
    """What is drawn, from the top down."""

    parts: list[str] = field(default_factory=list)
    y: float = EDGE

    def write(
        self,
        pieces: Sequence[Piece] | str,
        *,
        size: int = 15,
        colour: str = INK,
        bold: bool = False,
        x: float = EDGE,
        width: float = WIDTH - 2 * EDGE,
    ) -> None:
        """Write a paragraph below what is there."""
        weight = ' font-weight="700"' if bold else ""
        for line in _lines([(pieces, "")] if isinstance(pieces, str) else pieces, width / (1.08 if bold else 1), size):
            self.y += size * _LINE
            spans = "".join(_span(text, kind) for text, kind in line)
            at = f'x="{x:g}" y="{self.y - size * 0.35:.1f}" font-size="{size}" fill="{colour}"'
            self.parts.append(f'<text {at}{weight} xml:space="preserve">{spans}</text>')


def image(store: Store, episode_id: str) -> str:
    """Return the picture of a stored conversation."""
    with store.held() as reader:
        found = load_episode(reader, episode_id)
        verdict = verdict_on(found, answer_key(reader, episode_id)) if found.status == "completed" else None
    page = _Page()
    page.write(found.scenario.title, size=22, bold=True)
    played = f"{words.MARKS[found.mode]} {found.condition}: {words.MODES[found.mode]}"
    page.write(played, colour=colour_of(found.mode), bold=True)
    if verdict:
        reached = {True: "✓ Goal reached. ", False: "✗ Goal missed. ", None: ""}[verdict.right]
        colour = {True: OK, False: FLAG, None: INK}[verdict.right]
        page.write(f"{reached}{verdict.said} {verdict.truth}".strip(), colour=colour)
    page.write(found.scenario.setting, colour=QUIET)
    _sides(page, found)
    kinds = _turns(page, found)
    page.y += 8
    if kinds:
        page.write(" · ".join(f"{words.SIGNS[each]} {words.KINDS[each]}" for each in kinds), size=13, colour=QUIET)
    made = f"localsim · {labelled(found.model, whole=False)} · run {found.run_id} · seed {found.seed}"
    page.write(made, size=13, colour=QUIET)
    return _svg(page, found)


def _svg(page: _Page, found: StoredEpisode) -> str:
    height = page.y + EDGE
    told = f"{found.scenario.title}, {found.condition}: {len(found.turns)} turns"
    fonts = "Arial,'Liberation Sans',Helvetica,'DejaVu Sans',sans-serif"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
    head += f'height="{height:.0f}" role="img" aria-labelledby="talk-t" font-family="{fonts}">'
    title = f'<title id="talk-t">{escape(_plain(told))}</title><rect width="100%" height="100%" fill="#fff"/>'
    return "\n".join([head, title, *page.parts, "</svg>\n"])


def _sides(page: _Page, found: StoredEpisode) -> None:
    """Draw the private sides, two in a row."""
    tints, agents = colours(found.scenario.names), found.scenario.agents
    width = (WIDTH - 2 * EDGE - GAP) / 2
    for start in range(0, len(agents), 2):
        top = page.y + 12
        boxes = [_side(each, SPEAKERS[tints[each.name]], top, n * (width + GAP) + EDGE, width, agents)
                 for n, each in enumerate(agents[start : start + 2])]  # fmt: skip
        bottom = max(box.y for box in boxes) + 10
        for number, box in enumerate(boxes):
            x, tint = number * (width + GAP) + EDGE, SPEAKERS[tints[agents[start + number].name]]
            page.parts.append(
                f'<rect x="{x:g}" y="{top:.1f}" width="{width:g}" height="{bottom - top:.1f}" fill="{SOFT}"/>'
                f'<rect x="{x:g}" y="{top:.1f}" width="{width:g}" height="4" fill="{tint}"/>'
            )
            page.parts += box.parts
        page.y = bottom
    page.y += 10


def _side(agent: Agent, tint: str, top: float, x: float, width: float, agents: Sequence[Agent]) -> _Page:
    box, room = _Page(y=top + 8), width - 28
    box.write(f"{agent.name}’s side", bold=True, colour=tint, x=x + 14, width=room)
    box.write(f"Goal: {agent.goal}", size=14, x=x + 14, width=room)
    if agent.secret:
        box.write(f"Secret: {agent.secret}", size=14, x=x + 14, width=room)
    for fact in agent.facts:
        holders = [each.name for each in agents if any(set(own.terms) & set(fact.terms) for own in each.facts)]
        others = " and ".join(name for name in holders if name != agent.name)
        pieces = [("• " + fact.text, ""), (f" {words.SIGNS['shared']} also known to {others}", "shared")]
        box.write(pieces if others else pieces[:1], size=14, x=x + 14, width=room)
    return box


def _turns(page: _Page, found: StoredEpisode) -> list[str]:
    """Draw the turns, and return the kinds of their marks."""
    kinds: dict[str, None] = {}
    for turn in marked_turns(found):
        tint = SPEAKERS[turn.colour]
        top = page.y + 6
        page.y = top
        number, doing = turn.row["turn"], turn.row["action"]
        done = "" if doing == "speak" else f" {words.ACTIONS.get(doing, doing)}"
        page.write(f"{turn.row['speaker']}{done}", size=14, bold=True, colour=tint, x=EDGE + 14)
        place = f'x="{WIDTH - EDGE}" y="{top + 15:.1f}" font-size="13" fill="{QUIET}" text-anchor="end"'
        page.parts.append(f"<text {place}>{number + 1}</text>")
        pieces = [(text, mark.kind if mark else "") for text, mark in turn.parts]
        page.write(pieces, size=16, x=EDGE + 14, width=WIDTH - 2 * EDGE - 60)
        for kind, note in _notes(turn):
            kinds[kind] = None
            colour = FLAG if kind in SERIOUS and not (kind == "hit" and turn.lucky) else QUIET
            page.write(f"{words.SIGNS[kind]} {note}", size=13, colour=colour, x=EDGE + 14, width=WIDTH - 2 * EDGE - 60)
        page.parts.append(f'<rect x="{EDGE}" y="{top + 2:.1f}" width="4" height="{page.y - top:.1f}" fill="{tint}"/>')
        page.y += 4
    if not found.turns:
        page.write("This conversation has no turns.", colour=QUIET)
    return list(kinds)


def _notes(turn: MarkedTurn) -> Iterator[tuple[str, str]]:
    """Yield the kind and the words of each mark: who could know what was said."""
    speaker = turn.row["speaker"]
    if turn.hit:
        yield "hit", f"untold hit: {words.LUCKY if turn.lucky else 'nothing that was said before had singled it out'}"
    for leak in turn.leaks:
        early = ", too early" if leak["early"] else ""
        if leak["kind"] == "omniscient":
            yield "omniscient", f"{speaker} had not been told: {leak['fact']} Only {leak['owner']} knows it."
        else:
            yield "self", f"{leak['owner']} discloses{early}: {leak['fact']}"
    for mention in () if turn.leaks else turn.mentions:
        kind, owners = kind_of(mention), " and ".join(mention.owners)
        more = {"own": " alone", "shared": "", "strange": f", not of {speaker}"}[kind]
        yield kind, f"{mention.term}: among the facts of {owners}{more}"


# ---- text ----------------------------------------------------------------------------------------------------------


def _span(text: str, kind: str) -> str:
    if not kind:
        return escape(text)
    colour = FLAG if kind in SERIOUS else OK if kind == "shared" else "#7a5a00"
    return f'<tspan font-weight="700" fill="{colour}">{escape(text)}</tspan>'


def _lines(pieces: Sequence[Piece], width: float, size: int) -> list[list[Piece]]:
    """Return pieces broken into lines that are at most `width` wide; a word longer than a line is cut."""
    lines: list[list[Piece]] = [[]]
    used, room = 0.0, width / size
    for text, kind in pieces:
        for word in re.findall(r" *[^ ]+| +\Z", re.sub(r"\s", " ", _plain(text))):
            if lines[-1] and used + _width(word) > room:
                lines.append([])
                used, word = 0.0, word.lstrip()
            for number, part in enumerate(_cut(word, room)):
                if number:
                    lines.append([])
                    used = 0.0
                before = lines[-1].pop()[0] if lines[-1] and lines[-1][-1][1] == kind else ""
                lines[-1].append((before + part, kind))
                used += _width(part)
    return [line for line in lines if line]


def _cut(word: str, room: float) -> Iterator[str]:
    """Yield the parts of a word that each fit into a line."""
    part, used = "", 0.0
    for letter in word:
        if part and used + _letter(letter) > room:
            yield part
            part, used = "", 0.0
        part, used = part + letter, used + _letter(letter)
    yield part


def _plain(text: str) -> str:
    """Return a text without characters that XML forbids or that turn the direction of what follows."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]", "\ufffd", text)


def _width(text: str) -> float:
    """Return the width of a text in sizes of its letters, rather too wide than too narrow."""
    return sum(map(_letter, text))


def _letter(letter: str) -> float:
    if letter in _NARROW:
        return 0.36
    if letter in _BROAD or unicodedata.east_asian_width(letter) in "WF":
        return 1.02
    return 0.72 if letter.isupper() else 0.61
