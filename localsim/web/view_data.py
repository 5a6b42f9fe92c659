"""What the viewer's pages show, as plain values: rows of the database, put in order. No HTML here."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from localsim import paths
from localsim.conversation.episode import MODES
from localsim.errors import InvalidInput
from localsim.evaluators.leaks import by_name
from localsim.reports import marks
from localsim.store.database import Store
from localsim.store.episodes import StoredEpisode, load_episode
from localsim.store.journal import is_written, journal_folder, read_journal

Row = dict[str, Any]
PAGE = 25
"""Scenarios on a page of a run."""
SQL_ROWS, SQL_SECONDS, SQL_LENGTH = 500, 10.0, 20_000
LABEL = 60
"""Characters of a text from which rows are quotations, and no bars are drawn for them."""
LIVE_TALKS, LIVE_BYTES = 4, 2_000_000
"""Of a run in progress: talks that are shown, and how much of its journal is read."""
CHOICES: Mapping[str, tuple[str, ...]] = {
    "mode": MODES,
    "status": ("completed", "failed", "interrupted"),
    "outcome": ("success", "no success"),
    "leaks": ("any", "early", "omniscient"),
}
"""What a run's episodes can be filtered by, besides family and words."""


def runs(store: Store) -> list[Row]:
    """The newest 200 runs with their counts and models."""
    rows = store.rows(
        "SELECT v.*, r.plan_json FROM v_runs v JOIN runs r USING (run_id) ORDER BY v.started_utc DESC LIMIT 200"
    )
    for row in rows:
        plan = json.loads(row.pop("plan_json"))
        row["model"] = " | ".join(dict.fromkeys([plan["model"], *plan["roles"].values()]))
        row["modes"] = plan["modes"]
        row["live"] = is_written(store.path, row["run_id"])
    return rows


@dataclass(frozen=True)
class Filter:
    """Which episodes of a run are shown; empty fields do not restrict."""

    family: str = ""
    mode: str = ""
    status: str = ""
    outcome: str = ""
    leaks: str = ""
    words: str = ""
    page: int = 1

    def where(self) -> tuple[str, list[Any]]:
        """The condition on the rows of `_EPISODES`, and its parameters."""
        parts, values = ["true"], []
        for column in ("family", "mode", "status"):
            if getattr(self, column):
                parts.append(f"{column} = ?")
                values.append(getattr(self, column))
        if self.outcome:
            parts.append("success = 1" if self.outcome == "success" else "success < 1")
        if self.leaks:
            parts.append({"any": "disclosed + omniscient > 0", "early": "early > 0"}.get(self.leaks, "omniscient > 0"))
        if self.words:
            parts.append(
                "(contains(lower(title), lower(?)) OR episode_id IN "
                "(SELECT episode_id FROM turns WHERE contains(lower(text), lower(?))))"
            )
            values += [self.words, self.words]
        return " AND ".join(parts), values


_EPISODES = (
    "WITH found AS (SELECT e.episode_id, e.scenario_id, e.title, coalesce(e.family, 'everyday') AS family, e.mode, "
    "e.model, e.episode_index, e.status, e.turns, e.error, s.success, coalesce(l.disclosed, 0) AS disclosed, "
    "coalesce(l.early, 0) AS early, coalesce(l.omniscient, 0) AS omniscient FROM v_episodes e "
    "LEFT JOIN (SELECT episode_id, any_value(value) AS success FROM v_scores WHERE run_id = ? AND newest AND "
    "name = 'success' GROUP BY 1) s ON s.episode_id = e.episode_id "
    "LEFT JOIN (SELECT episode_id, count(*) FILTER (kind = 'self') AS disclosed, count(*) FILTER (early) AS early, "
    "count(*) FILTER (kind = 'omniscient') AS omniscient FROM v_leaks WHERE run_id = ? GROUP BY 1) l "
    "ON l.episode_id = e.episode_id WHERE e.run_id = ?)"
)


@dataclass(frozen=True)
class Matrix:
    """Scenario x mode x model of a run: `lines` of one page, each a scenario with cells by column."""

    columns: tuple[tuple[str, str], ...]
    lines: tuple[Row, ...]
    scenarios: int
    episodes: int
    pages: int


def matrix(store: Store, run_id: str, chosen: Filter) -> Matrix:
    """The episodes of a run that pass a filter."""
    where, values = chosen.where()
    columns = store.rows("SELECT DISTINCT mode, model FROM episodes WHERE run_id = ?", [run_id])
    rows = store.rows(
        f"{_EPISODES} SELECT * FROM found WHERE {where} ORDER BY family, scenario_id, episode_index",
        [run_id, run_id, run_id, *values],
    )
    names = list(dict.fromkeys(row["scenario_id"] for row in rows))
    lines: dict[str, Row] = {
        name: {"scenario_id": name, "cells": {}} for name in names[PAGE * (chosen.page - 1) : PAGE * chosen.page]
    }
    for row in rows:
        if line := lines.get(row["scenario_id"]):
            line |= {"title": row["title"], "family": row["family"]}
            line["cells"].setdefault((row["mode"], row["model"]), []).append(row)
    ordered = sorted(((row["mode"], row["model"]) for row in columns), key=lambda key: (MODES.index(key[0]), key[1]))
    return Matrix(tuple(ordered), tuple(lines.values()), len(names), len(rows), max(1, -(-len(names) // PAGE)))


def families(store: Store, run_id: str) -> list[str]:
    """Families that occur in a run."""
    query = "SELECT DISTINCT coalesce(family, 'everyday') AS family FROM v_episodes WHERE run_id = ? ORDER BY 1"
    return [row["family"] for row in store.rows(query, [run_id])]


@dataclass(frozen=True)
class Talk:
    """An episode with all that its page marks."""

    episode: StoredEpisode
    turns: tuple[Row, ...]
    """Each with `parts` (text, mark), `leaks`, `strange` (terms that nobody told the speaker) and `colour`."""
    leaks: tuple[Row, ...]
    """Disclosures and hints by the newest detector, in order of turns."""
    siblings: tuple[Row, ...]
    """The other modes on the same scenario and seed, in the order of modes."""

    @property
    def disclosed(self) -> bool:
        """Whether any fact came out."""
        return any(leak["label"] == "disclosed" for leak in self.leaks)

    @property
    def looked(self) -> bool:
        """Whether the leakage detector has looked at it."""
        return any(score["evaluator"] == "leakage" for score in self.episode.scores)


def talk(store: Store, episode_id: str) -> Talk:
    """An episode. Raises InvalidInput where there is none with this id."""
    if not store.rows("SELECT 1 FROM episodes WHERE episode_id = ?", [episode_id]):
        raise InvalidInput(f"no episode {episode_id}", hint="the list of runs has links to all of them")
    found = load_episode(store, episode_id)
    leaks = store.rows(
        "SELECT fact_id, fact, owner, speaker, turn, label, kind, probability, evidence, first, early FROM leaks "
        "WHERE episode_id = ? AND version::INTEGER = (SELECT max(version::INTEGER) FROM leaks WHERE episode_id = ?) "
        "ORDER BY turn, fact_id",
        [episode_id, episode_id],
    )
    siblings = store.rows(
        "SELECT o.episode_id, o.mode, o.model FROM v_episodes e JOIN v_episodes o ON o.run_id = e.run_id AND "
        "o.scenario_hash = e.scenario_hash AND o.seed = e.seed AND o.episode_index = e.episode_index "
        "WHERE e.episode_id = ? AND o.episode_id <> e.episode_id",
        [episode_id],
    )
    siblings.sort(key=lambda row: (MODES.index(row["mode"]), row["model"]))
    colours = marks.colours(found.scenario.names)
    # What has come out is no secret any more, and hints are weak: both stand in the timeline alone.
    disclosed = [leak for leak in leaks if leak["label"] == "disclosed" and leak["first"]]
    names = by_name(found.scenario)
    for leak in leaks:
        leak["by_name"] = names and leak["evidence"] != ""
    turns = [_turn(row, found, disclosed, colours) for row in found.turns]
    return Talk(found, tuple(turns), tuple(leaks), tuple(siblings))


def _turn(row: Row, found: StoredEpisode, leaks: Sequence[Row], colours: Mapping[str, int]) -> Row:
    here = [leak for leak in leaks if leak["turn"] == row["turn"]]
    mentioned = [mention for mention in found.mentions if mention.turn == row["turn"]]
    # Two kinds of marks in one talk would be taken for one: first mentions only where no leak is marked.
    marked = marks.of_leaks(row["text"], here) if leaks else marks.of_mentions(row["text"], mentioned)
    return {
        **row,
        "parts": marks.parts(row["text"], marked),
        "leaks": here,
        "strange": [mention.term for mention in mentioned if not mention.by_owner],
        "colour": colours.get(row["speaker"], 7),
    }


def timeline(found: Talk) -> list[Row]:
    """A line for each private fact that comes up: its owner, and where it is hinted at and disclosed."""
    lines: dict[str, Row] = {}
    for leak in found.leaks:
        line = lines.setdefault(leak["fact_id"], {"fact": leak["fact"], "owner": leak["owner"], "points": []})
        line["points"].append(leak)
    return list(lines.values())


def neighbours(store: Store, found: StoredEpisode) -> tuple[str | None, str | None]:
    """The episodes before and after this one in its run, for the keyboard."""
    rows = store.rows(
        "SELECT episode_id, lag(episode_id) OVER o AS before, lead(episode_id) OVER o AS after FROM v_episodes "
        "WHERE run_id = ? WINDOW o AS (ORDER BY family NULLS LAST, scenario_id, episode_index, mode, episode_id) "
        "QUALIFY episode_id = ?",
        [found.run_id, found.episode_id],
    )
    return (rows[0]["before"], rows[0]["after"]) if rows else (None, None)


def attempts(store: Store, episode_id: str, turn: int) -> list[Row]:
    """Every text that was written for a turn, malformed ones too."""
    return store.rows(
        "SELECT generation, attempt, speaker, model, seed, cause, malformed, text, prompt_tokens, generated_tokens, "
        "duration_ms, details_json FROM generations WHERE episode_id = ? AND generation IN (SELECT generation FROM "
        "turns WHERE episode_id = ? AND turn = ? UNION SELECT generation FROM generations WHERE episode_id = ? AND "
        "turn = ?) ORDER BY generation",
        [episode_id, episode_id, turn, episode_id, turn],
    )


def judgements(store: Store, episode_id: str) -> list[Row]:
    """What judges were asked about an episode, alone or beside another, and what they thought and answered."""
    return store.rows(
        "SELECT evaluator, version, name, agent, sample, mode, other_mode, instructions, prompt, thought, reply, "
        "malformed, truncated, judge, seed, prompt_tokens, thought_tokens, generated_tokens, duration_ms "
        "FROM v_judgements WHERE episode_id = ? OR other_id = ? ORDER BY evaluator, version, agent, name, sample",
        [episode_id, episode_id],
    )


def judged(store: Store, episode_id: str) -> int:
    """How many questions about an episode judges were asked."""
    query = "SELECT count(*) AS n FROM judgements WHERE episode_id = ? OR other_id = ?"
    return int(store.rows(query, [episode_id, episode_id])[0]["n"])


def live(store: Store, run_id: str) -> list[Row]:
    """Talks of a run in progress that are not in the database yet: id, mode, scenario and turns so far."""
    journal = journal_folder(store.path) / f"{run_id}.jsonl"
    try:
        events = read_journal(journal, last=LIVE_BYTES)
    except FileNotFoundError:  # it goes as soon as all of it is in the database
        return []
    talks: dict[str, Row] = {}
    titles = {row["scenario_hash"]: row["title"] for row in store.rows("SELECT scenario_hash, title FROM scenarios")}
    for event in events:
        if event["event"] == "scenario":
            titles[event["scenario_hash"]] = event["title"]
        elif event["event"] == "episode":
            title = titles.get(event["scenario_hash"], "")
            talks[event["episode_id"]] = {"mode": event["mode"], "model": event["model"], "title": title, "turns": []}
        elif event["event"] == "turn" and event["episode_id"] in talks:
            talks[event["episode_id"]]["turns"].append(event)
        elif event["event"] == "episode_ended":
            talks.pop(event["episode_id"], None)
    return [row for row in talks.values() if row["turns"]][-LIVE_TALKS:]


@dataclass(frozen=True)
class Answer:
    """What a query gave."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool
    chart: tuple[Row, ...]
    """Label, value and share of the longest bar (0 to 1), where the result has a text and a number to show."""
    measure: str


def ask(store: Store, query: str) -> Answer:
    """A query that somebody typed. Raises InvalidInput."""
    if len(query) > SQL_LENGTH:
        raise InvalidInput(f"a query of more than {SQL_LENGTH} characters", where="sql")
    columns, rows, more = store.sql_page(query, rows=SQL_ROWS, seconds=SQL_SECONDS)
    measure, bars = _chart(columns, rows)
    told = tuple(tuple(_told(value) for value in row) for row in rows)
    return Answer(tuple(columns), told, more, tuple(bars), measure)


def _told(value: Any) -> Any:
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
    long = any(len(row[index] or "") > LABEL for row in rows for index in texts)
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


def worked_queries() -> list[Row]:
    """The queries that come along: file name, what they ask, text."""
    return [_worked(path) for path in sorted(paths.bundled("queries").glob("*.sql"))]


def _worked(path: Path) -> Row:
    text = path.read_text(encoding="utf-8").strip()
    comment = [line.removeprefix("--").strip() for line in text.splitlines() if line.startswith("--")]
    return {"name": path.stem, "about": comment[0] if comment else path.stem, "text": text}
