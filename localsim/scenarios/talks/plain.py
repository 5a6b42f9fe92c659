"""Conversations as a table: CSV, TSV or JSONL with one turn a row, or JSONL with one conversation a line.

Columns are conversation, speaker and text; action, scenario, title, setting, goal and secret are optional. `goal` and
`secret` are the speaker's. A conversation that was held on a scenario of localsim names it by file, id or hash, and
keeps it as it is; in JSONL the scenario can also be an object with the fields of a scenario file.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localsim.conversation.human_talks import (
    NAMES,
    HumanTalk,
    LeftOut,
    Part,
    checked,
    id_of,
    loaded,
    names_are_usable,
    plain_text,
    shortened,
    turns_of,
)
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import ACTION_TYPES
from localsim.errors import InvalidInput, suggest

COLUMNS = ("conversation", "speaker", "text")
_HINT = "columns: conversation, speaker, text; optional: action, scenario, title, setting, goal, secret"
Find = Callable[[str, str], LoadedScenario]
"""Returns the scenario of (reference, place in the file). Raises InvalidInput."""


class Turn(Part):
    """One turn."""

    speaker: str
    text: str = ""
    action: str = "speak"
    goal: str | None = None
    secret: str | None = None


class Whole(Part):
    """The fields of a conversation; `scenario` is a reference, or the fields of a scenario file."""

    conversation: str
    scenario: str | dict[str, Any] | None = None
    title: str | None = None
    setting: str | None = None


class _Lines(Part):
    turns: list[dict[str, Any]]


@dataclass
class _Gathered:
    """A conversation while its rows are read; the first value of a field counts."""

    where: str
    head: dict[str, Any]
    turns: list[tuple[str, Turn]] = field(default_factory=list)


def rows_of_csv(text: str, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a CSV or TSV text with their places; empty cells are left out. Raises InvalidInput."""
    reader = csv.DictReader(io.StringIO(text), delimiter="\t" if "\t" in text.partition("\n")[0] else ",", strict=True)
    try:
        header = [str(name or "").strip().casefold() for name in reader.fieldnames or ()]
        missing = [name for name in COLUMNS if name not in header]
        if missing:
            raise InvalidInput(f"no column {', '.join(missing)}", where=f"{path}:1", hint=_HINT)
        reader.fieldnames = header
        for row in reader:
            if None in row or None in row.values():
                raise InvalidInput("a row with more or fewer cells than the header", where=f"{path}:{reader.line_num}")
            yield f"{path}:{reader.line_num}", {name: cell for name, cell in row.items() if cell}
    except csv.Error as error:
        raise InvalidInput(f"not CSV: {error}", where=f"{path}:{reader.line_num}", hint=_HINT) from error


def read_rows(
    rows: Iterator[tuple[str, dict[str, Any]]], path: str, find: Find, family: str | None
) -> Iterator[HumanTalk | LeftOut]:
    """Yield the conversations of a table in the order of their first rows. Raises InvalidInput."""
    gathered: dict[str, _Gathered] = {}
    for where, row in rows:
        given = {key: value for key, value in row.items() if value is not None}
        head = checked(Whole, given, where, _HINT)
        own = gathered.setdefault(head.conversation, _Gathered(where, {}))
        own.head = {**head.model_dump(exclude_none=True), **own.head}
        lines = checked(_Lines, given, where, _HINT).turns if "turns" in given else [given]
        own.turns += [(where, checked(Turn, line, where, _HINT)) for line in lines]
    for one in gathered.values():
        try:
            yield _talk(one, path, find, family)
        except LeftOut as reason:
            yield reason


def _talk(one: _Gathered, path: str, find: Find, family: str | None) -> HumanTalk:
    for where, turn in one.turns:
        if turn.action not in ACTION_TYPES:
            hint = suggest(turn.action, ACTION_TYPES) or f"actions: {', '.join(ACTION_TYPES)}"
            raise InvalidInput(f"unknown action {turn.action!r}", where=where, hint=hint)
    speakers = list(dict.fromkeys(turn.speaker.strip() for _, turn in one.turns))
    scenario, names = _scenario(one, speakers, path, find, family)
    said = [(names[turn.speaker.strip()], turn.action, turn.text) for _, turn in one.turns]
    return HumanTalk(
        name=one.head["conversation"],
        where=one.where,
        scenario=scenario,
        turns=turns_of(said),
        stop_reason="left" if said[-1][1] == "leave" else "ended",
    )


def _scenario(
    one: _Gathered, speakers: list[str], path: str, find: Find, family: str | None
) -> tuple[LoadedScenario, Mapping[str, str]]:
    """Return the scenario, and speaker -> name of an agent."""
    given = one.head.get("scenario")
    if given is None:
        return _made(one, speakers, path, family)
    if isinstance(given, dict):
        scenario = loaded(path, one.where, **{"family": family, **given})
    else:
        scenario = find(given, one.where)
    known = {name.casefold(): name for name in scenario.scenario.names}
    for speaker in speakers:
        if speaker.casefold() not in known:
            hint = f"speakers of this conversation are {', '.join(scenario.scenario.names)}"
            raise InvalidInput(f"{scenario.scenario.id} has no agent {speaker!r}", where=one.where, hint=hint)
    return scenario, {speaker: known[speaker.casefold()] for speaker in speakers}


def _made(
    one: _Gathered, speakers: list[str], path: str, family: str | None
) -> tuple[LoadedScenario, Mapping[str, str]]:
    """Return a scenario for a conversation that names none."""
    if len(speakers) < 2:
        raise LeftOut("only one person has a turn")
    if len(speakers) > len(NAMES):
        raise LeftOut(f"it has more than {len(NAMES)} speakers")
    names = dict(zip(speakers, speakers if names_are_usable(speakers) else NAMES, strict=False))
    agents = []
    for speaker, name in names.items():
        own = [turn for _, turn in one.turns if turn.speaker.strip() == speaker]
        goal = next((turn.goal for turn in own if turn.goal), None)
        secret = next((turn.secret for turn in own if turn.secret), None)
        secrets = {"secret": shortened(secret)} if secret else {}
        agents.append({"name": name, "goal": shortened(goal) if goal else "Not recorded.", **secrets})
    title = plain_text(one.head.get("title") or f"Conversation {one.head['conversation']}")
    scenario = loaded(
        path,
        one.where,
        id=id_of("talk", Path(path).stem, one.head["conversation"]),
        title=title[:300],
        info={"what": "A conversation of people that was imported."},
        setting=shortened(one.head.get("setting") or f"{' and '.join(names.values())} talk."),
        agents=agents,
        family=family,
    )
    return scenario, names
