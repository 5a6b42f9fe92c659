"""The picture of docs/words.md: one conversation of scripted lines in which each kind of mark occurs once.

The lines are played as mindreaders, and the marks are those that localsim's own evaluators give.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from localsim.reports.evidence.turns import MarkedTurn, marked_turns
from localsim.reports.figures.draw import colour_of
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.runs.words import MARKS, SIGNS
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from localsim.store.episodes import StoredEpisode, load_episode
from tests.conftest import Quiet

SCENARIO = "mutual_friends_01"
LINES = (
    "Hello! How is your friend Bianca?",
    "Bianca is well, but who told you of her? Do you know Karin?",
    "No, I do not know Karin. Do you know Jasper?",
    json.dumps({"action": "leave", "text": "Yes, Jasper is my friend too. Goodbye!"}),
)
COLOURS = {"omniscient": "#a3211a", "hit": "#a3211a", "self": "#8a5a00"}
_WIDTH, _STEP = 820, 62


def picture() -> str:
    """Return the picture as SVG: both lists, and each turn with its marks below it."""
    with tempfile.TemporaryDirectory() as folder:
        told = played(Path(folder))
    turns = marked_turns(told)
    height = 128 + _STEP * len(turns)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        'font-family="system-ui,sans-serif" font-size="15" fill="#1b1f24" role="img" aria-labelledby="words-title">',
        '<title id="words-title">One conversation with an untold fact, a disclosed fact and an untold hit</title>',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        *_lists(told),
        *(line for number, turn in enumerate(turns) for line in _turn(told, turn, 128 + _STEP * number)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def played(folder: Path) -> StoredEpisode:
    """Play the lines in a database of their own, and look for leaks."""
    (folder / "lines.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    store = Store(folder / "words.duckdb")
    plan = Plan(tuple(find_scenarios([SCENARIO])), ("mindreaders",), f"scripted:@{folder / 'lines.txt'}", seed=1)
    start(plan, store, Quiet(), lambda _: None, leaks=True)
    return load_episode(store, store.episode_id("@last"))


def _lists(told: StoredEpisode) -> Iterator[str]:
    about = f"{MARKS[told.mode]} {told.mode}: each speaker sees both lists, but was told only its own"
    yield f'<text x="24" y="28" font-weight="600" fill="{colour_of(told.mode)}">{escape(about)}</text>'
    names = [[fact.terms[0] for fact in agent.facts] for agent in told.scenario.agents]
    common = set(names[0]) & set(names[1])
    for row, (agent, own) in enumerate(zip(told.scenario.agents, names, strict=True)):
        shown = ", ".join(f'<tspan font-weight="700">{name}</tspan>' if name in common else name for name in own)
        yield f'<text x="24" y="{56 + 24 * row}"><tspan fill="#555d68">{agent.name}’s list: </tspan>{shown}</text>'
    yield f'<path d="M24 98H{_WIDTH - 24}" stroke="#d5dae0"/>'


def _turn(told: StoredEpisode, turn: MarkedTurn, y: int) -> Iterator[str]:
    words = "".join(
        f'<tspan font-weight="700" text-decoration="underline">{escape(text)}</tspan>' if mark else escape(text)
        for text, mark in turn.parts
    )
    yield (
        f'<text x="24" y="{y}"><tspan fill="#555d68">{turn.row["turn"] + 1}</tspan> '
        f'<tspan font-weight="600">{escape(turn.row["speaker"])}:</tspan> {words}</text>'
    )
    for row, (kind, text) in enumerate(_notes(told, turn)):
        place = f'x="44" y="{y + 21 + 19 * row}" font-size="13" fill="{COLOURS[kind]}"'
        yield f"<text {place}>{SIGNS[kind]} {escape(text)}</text>"


def _notes(told: StoredEpisode, turn: MarkedTurn) -> Iterator[tuple[str, str]]:
    """Yield the kind and the words of each mark of a turn; a friend in common is no private fact here."""
    if turn.hit:
        yield "hit", "untold hit: a friend in common, named before anything said had singled it out"
    for leak in turn.leaks:
        if leak["kind"] == "omniscient":
            mixed = any(each["name"] == "mix_ups" and each["value"] for each in told.scores)
            also = ", so this is an untold name, a mix-up" if mixed else ""
            yield "omniscient", f"untold fact: only {leak['owner']} knows {leak['fact'].split()[0]}{also}"
        elif not turn.hit and turn.row["action"] == "speak":
            yield "self", f"{leak['fact'].split()[0]}: disclosed by its owner"
