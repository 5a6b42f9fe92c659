"""Plain values for the viewer's pages, made from rows of the database. No HTML and no SQL here."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from localsim import paths
from localsim.conversation.episode import CONDITIONS
from localsim.conversation.grants import condition_name
from localsim.errors import InvalidInput
from localsim.families import family_of
from localsim.reports.conversation import MarkedTurn, marked_turns
from localsim.store.conditions import by_number
from localsim.store.database import Store
from localsim.store.episodes import StoredEpisode, load_episode
from localsim.store.journal import is_written, journal_folder, read_journal
from localsim.store.queries import pages as page_queries
from localsim.store.queries.pages import EpisodeFilter

Row = dict[str, Any]
SCENARIOS_ON_A_PAGE = 25
SQL_ROWS, SQL_SECONDS, SQL_LENGTH = 500, 10.0, 20_000
LONGEST_LABEL = 60
"""Characters. A row with a longer text is a quotation, and gets no bar."""
LIVE_EPISODES, LIVE_BYTES = 4, 2_000_000
"""For a run in progress: how many episodes are shown, and how much of the end of its journal is read."""
CHOICES: Mapping[str, tuple[str, ...]] = {
    "mode": CONDITIONS,
    "status": ("completed", "failed", "interrupted"),
    "outcome": ("success", "no success"),
    "leaks": ("any", "early", "omniscient"),
}
"""The filters of a run's page with their values. Family and words are free texts."""


def runs(store: Store) -> list[Row]:
    """The newest runs with their counts, models and modes; `live` where a process is writing the run now."""
    rows = page_queries.newest_runs(store)
    for row in rows:
        plan = json.loads(row.pop("plan_json"))
        row["model"] = " | ".join(dict.fromkeys([plan["model"], *plan["roles"].values()]))
        row["modes"] = plan["modes"]
        row["live"] = is_written(store.path, row["run_id"])
    return rows


@dataclass(frozen=True)
class Matrix:
    """Scenario x condition x model of a run: `lines` of one page, each a scenario with its episodes by column."""

    columns: tuple[tuple[str, str], ...]
    lines: tuple[Row, ...]
    scenarios: int
    episodes: int
    pages: int


def matrix(store: Store, run_id: str, chosen: EpisodeFilter) -> Matrix:
    """The episodes of a run that pass a filter."""
    columns = page_queries.modes_and_models(store, run_id)
    rows = page_queries.episodes_of_run(store, run_id, chosen)
    names = list(dict.fromkeys(row["scenario_id"] for row in rows))
    begin = SCENARIOS_ON_A_PAGE * (chosen.page - 1)
    lines: dict[str, Row] = {
        name: {"scenario_id": name, "cells": {}} for name in names[begin : begin + SCENARIOS_ON_A_PAGE]
    }
    for row in rows:
        if line := lines.get(row["scenario_id"]):
            line |= {"title": row["title"], "family": row["family"]}
            row["condition"] = condition_name(row["mode"], row["see"])
            line["cells"].setdefault((row["condition"], row["model"]), []).append(row)
    columns.sort(key=_in_order)
    ordered = [(condition_name(row["mode"], row["see"]), row["model"]) for row in columns]
    pages = max(1, -(-len(names) // SCENARIOS_ON_A_PAGE))
    return Matrix(tuple(ordered), tuple(lines.values()), len(names), len(rows), pages)


@dataclass(frozen=True)
class MarkedEpisode:
    """An episode with everything that its page marks."""

    episode: StoredEpisode
    turns: tuple[Row, ...]
    """Each with `parts` (text, mark), `leaks`, `strange` (terms on no list of the speaker) and `colour`."""
    leaks: tuple[Row, ...]
    """Disclosures and hints by the newest detector, in order of turns."""
    siblings: tuple[Row, ...]
    """The other conditions on the same scenario and seed, in the order of modes."""

    @property
    def disclosed(self) -> bool:
        """True where any fact was disclosed."""
        return any(leak["label"] == "disclosed" for leak in self.leaks)

    @property
    def scored_for_leaks(self) -> bool:
        """True where the leakage detector has scored the episode."""
        return any(score["evaluator"] == "leakage" for score in self.episode.scores)


def marked_episode(store: Store, episode_id: str) -> MarkedEpisode:
    """An episode by its whole id. Raises InvalidInput where no episode has it."""
    if not page_queries.has_episode(store, episode_id):
        raise InvalidInput(f"no episode {episode_id}", hint="the list of runs has links to all of them")
    stored = load_episode(store, episode_id)
    leaks = page_queries.newest_leaks(store, episode_id)
    siblings = page_queries.siblings(store, episode_id)
    siblings.sort(key=_in_order)
    for row in siblings:
        row["condition"] = condition_name(row["mode"], row["see"])
    # A fact is no secret once it is disclosed, and a hint is weak evidence: repeats and hints are in the timeline only.
    disclosed = [leak for leak in leaks if leak["label"] == "disclosed" and leak["first"]]
    names = family_of(stored.scenario.family).terms_disclose
    for leak in leaks:
        leak["by_name"] = names and leak["evidence"] != ""
    turns = [_turn(turn) for turn in marked_turns(stored, disclosed)]
    return MarkedEpisode(stored, tuple(turns), tuple(leaks), tuple(siblings))


def _in_order(row: Row) -> tuple[int, str, str]:
    """Return the place of a row with mode, see and model."""
    return CONDITIONS.index(row["mode"]), by_number(row["see"] or ""), row["model"]


def _turn(turn: MarkedTurn) -> Row:
    return {
        **turn.row,
        "parts": turn.parts,
        "leaks": turn.leaks,
        "strange": turn.strange,
        "colour": turn.colour,
    }


def timeline(marked: MarkedEpisode) -> list[Row]:
    """A line for each private fact that comes up: the fact, its owner, and its disclosures and hints (`points`)."""
    lines: dict[str, Row] = {}
    for leak in marked.leaks:
        line = lines.setdefault(leak["fact_id"], {"fact": leak["fact"], "owner": leak["owner"], "points": []})
        line["points"].append(leak)
    return list(lines.values())


def live(store: Store, run_id: str) -> list[Row]:
    """Episodes in progress that are not in the database yet: mode, model, title and turns so far."""
    journal = journal_folder(store.path) / f"{run_id}.jsonl"
    try:
        events = read_journal(journal, last=LIVE_BYTES)
    except FileNotFoundError:  # the run has ended: its journal is deleted as soon as the database holds all of it
        return []
    episodes: dict[str, Row] = {}
    titles = page_queries.scenario_titles(store)
    for event in events:
        if event["event"] == "scenario":
            titles[event["scenario_hash"]] = event["title"]
        elif event["event"] == "episode":
            title = titles.get(event["scenario_hash"], "")
            name = condition_name(event["mode"], event.get("see"))
            row = {"mode": name, "model": event["model"], "title": title, "turns": []}
            episodes[event["episode_id"]] = row
        elif event["event"] == "turn" and event["episode_id"] in episodes:
            episodes[event["episode_id"]]["turns"].append(event)
        elif event["event"] == "episode_ended":
            episodes.pop(event["episode_id"], None)
    return [row for row in episodes.values() if row["turns"]][-LIVE_EPISODES:]


@dataclass(frozen=True)
class Answer:
    """The result of a query."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool
    """True where the query has more rows than these."""
    chart: tuple[Row, ...]
    """Label, value and share of the longest bar (0 to 1), where the result has a text and a number to show."""
    measure: str


def ask(store: Store, query: str) -> Answer:
    """Run a query that a person typed. Raises InvalidInput where it is empty, too long, wrong or not allowed."""
    if len(query) > SQL_LENGTH:
        raise InvalidInput(f"the query has more than {SQL_LENGTH} characters", where="sql")
    columns, rows, more = store.sql_page(query, rows=SQL_ROWS, seconds=SQL_SECONDS)
    measure, bars = _chart(columns, rows)
    shown = tuple(tuple(_rounded(value) for value in row) for row in rows)
    return Answer(tuple(columns), shown, more, tuple(bars), measure)


def _rounded(value: Any) -> Any:
    """A number as people write it: 0.49 for the 0.49000000953674316 that 32 bits hold; large ones keep 12 digits."""
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    if value.is_integer() and abs(value) < 1e15:
        return int(value)
    return float(f"{value:.7g}" if abs(value) < 1000 else f"{value:.12g}")


def _chart(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> tuple[str, list[Row]]:
    """Bars of the first column of numbers from 0 up, named by the columns of short texts."""
    if not 2 <= len(rows) <= 40:
        return "", []
    numbers = [
        index
        for index in range(len(columns))
        if all(_is_number(row[index]) or row[index] is None for row in rows) and any(row[index] for row in rows)
    ]
    texts = [index for index in range(len(columns)) if all(isinstance(row[index], str | None) for row in rows)]
    long = any(len(row[index] or "") > LONGEST_LABEL for row in rows for index in texts)
    if not numbers or not texts or long or any((row[numbers[0]] or 0) < 0 for row in rows):
        return "", []
    shown = numbers[0]
    most = max(float(row[shown] or 0) for row in rows)
    bars = [
        {
            "label": " · ".join(str(row[index]) for index in texts[:3]),
            "value": row[shown],
            "share": float(row[shown] or 0) / most,
        }
        for row in rows
    ]
    return columns[shown], bars


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool) and math.isfinite(value)


def example_queries() -> list[Row]:
    """The queries that localsim ships: file name, the question in words (`about`), and the SQL text."""
    return [_example(path) for path in sorted(paths.bundled("queries").glob("*.sql"))]


def _example(path: Path) -> Row:
    text = path.read_text(encoding="utf-8").strip()
    comment = [line.removeprefix("--").strip() for line in text.splitlines() if line.startswith("--")]
    return {"name": path.stem, "about": comment[0] if comment else path.stem, "text": text}
