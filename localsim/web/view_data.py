"""Plain values for the viewer's pages, made from rows of the database. No HTML and no SQL here."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from localsim import paths
from localsim.conversation.episode import CONDITIONS, MODES
from localsim.conversation.grants import condition_name
from localsim.conversation.transcript import NARRATOR
from localsim.errors import InvalidInput
from localsim.families import family_of, in_order, title_of
from localsim.families.base import Verdict
from localsim.models.registry import labelled
from localsim.reports.comparison import compare
from localsim.reports.conversation import MarkedTurn, marked_turns, verdict_on
from localsim.reports.marks import kind_of
from localsim.reports.report import table
from localsim.reports.validity.headline import headline
from localsim.reports.validity.robustness import robustness, sign_turns
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
    "outcome": ("success", "no success", "failures"),
    "leaks": ("any", "early", "omniscient"),
}
"""The filters of a run's page with their values. Family and words are free texts."""


ANSWERED_AT_ONCE = 200
"""Completed episodes of a run up to which its page computes the answer before it opens."""
_ANSWERS: OrderedDict[tuple[Any, ...], list[str]] = OrderedDict()
_ANSWERS_KEPT = 64


def runs(store: Store) -> list[Row]:
    """The newest runs with their counts, models, modes, names and results.

    `live` where a process is writing the run now. `results` are as `_results` returns them.
    """
    rows = page_queries.newest_runs(store)
    found: dict[str, list[Row]] = {}
    for each in page_queries.results(store, [row["run_id"] for row in rows]):
        found.setdefault(each["run_id"], []).append(each)
    for row in rows:
        _describe(row, found.get(row["run_id"], []))
        row["live"] = is_written(store.path, row["run_id"])
    return rows


def run_head(store: Store, run_id: str) -> Row:
    """One run with its counts, model, modes and name."""
    row = page_queries.run_with_plan(store, run_id)
    _describe(row, page_queries.results(store, [run_id]))
    return row


def _describe(row: Row, found: list[Row]) -> None:
    """Give a row of a run its model, modes, results and name, from its plan and its episodes."""
    plan = json.loads(row.pop("plan_json"))
    row["model"] = " | ".join(dict.fromkeys([plan["model"], *plan["roles"].values()]))
    row["modes"] = plan["modes"]
    row["results"] = _results(found)
    row["name"] = row.get("name") or _name(row, found, len(plan["scenarios"]))


def _results(found: Iterable[Row]) -> list[Row]:
    """Return a row for each family: its title, and for each condition the share of successes (None if none counts)."""
    lines: dict[str, list[Row]] = {}
    for row in sorted(found, key=lambda row: (CONDITIONS.index(row["mode"]), by_number(row["see"] or ""))):
        share = row["success"] / row["scored"] if row["scored"] else None
        cell = {"condition": condition_name(row["mode"], row["see"]), "success": share, "episodes": row["episodes"]}
        lines.setdefault(row["family"], []).append({**row, **cell})
    return [{"family": name, "title": title_of(family_of(name)), "cells": lines[name]} for name in in_order(lines)]


def _name(row: Row, found: Sequence[Row], planned: int) -> str:
    """Return a name that a person reads: the scenarios, the model and the modes of a run."""
    counts: dict[str, int] = {}
    for each in found:
        counts[each["family"]] = max(counts.get(each["family"], 0), each["scenarios"])
    if planned == 1 and found:
        what = str(found[0]["title"])
    elif counts:
        what = ", ".join(f"{title_of(family_of(name))} ({counts[name]})" for name in in_order(counts))
    else:
        what = "1 scenario" if planned == 1 else f"{planned} scenarios"
    modes = "all modes" if set(row["modes"]) >= set(MODES) else ", ".join(row["modes"])
    return f"{what} · {labelled(row['model'], whole=False)} · {modes}"


def answer(store: Store, run_id: str) -> list[str]:
    """The sentences that answer a run, as its report begins with them; kept until the database changes."""
    key = _key_of_answer(store, run_id)
    if key not in _ANSWERS:
        with store.held() as reader:
            turns = partial(sign_turns, robustness(reader, run_id))
            _ANSWERS[key] = headline(table(reader, run_id), compare(reader, run_id), turns)["sentences"]
        while len(_ANSWERS) > _ANSWERS_KEPT:
            _ANSWERS.popitem(last=False)
    return _ANSWERS[key]


def answer_is_near(store: Store, run: Row) -> bool:
    """Return True if the answer of a run is known, or so quickly computed that its page can wait for it."""
    return run["completed"] <= ANSWERED_AT_ONCE or _key_of_answer(store, run["run_id"]) in _ANSWERS


def _key_of_answer(store: Store, run_id: str) -> tuple[Any, ...]:
    about = store.path.stat()
    return store.path, about.st_mtime_ns, about.st_size, run_id


@dataclass(frozen=True)
class Matrix:
    """Scenario x condition x model of a run: `lines` of one page, each a scenario with its episodes by column.

    `groups` are the same lines by family, each with its columns and their totals over all pages.
    """

    columns: tuple[tuple[str, str], ...]
    lines: tuple[Row, ...]
    groups: tuple[Row, ...]
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
            name = condition_name(row["mode"], row["see"])
            line["cells"].setdefault((name, row["model"]), []).append(row)
    columns.sort(key=_in_order)
    ordered = [(condition_name(row["mode"], row["see"]), row["model"]) for row in columns]
    pages = max(1, -(-len(names) // SCENARIOS_ON_A_PAGE))
    groups = _groups(rows, ordered, list(lines.values()))
    return Matrix(tuple(ordered), tuple(lines.values()), tuple(groups), len(names), len(rows), pages)


def _groups(rows: Sequence[Row], columns: Sequence[tuple[str, str]], lines: Sequence[Row]) -> list[Row]:
    """Return the lines of one page by family: title, lines, and columns with condition, model and totals."""
    cells: dict[str, dict[tuple[str, str], list[Row]]] = {}
    for row in rows:
        row["condition"] = condition_name(row["mode"], row["see"])
        cells.setdefault(row["family"], {}).setdefault((row["condition"], row["model"]), []).append(row)
    groups = []
    for family in in_order(line["family"] for line in lines):
        own = cells[family]
        shown = [
            {"condition": name, "model": model, **_totals(own[name, model])}
            for name, model in columns
            if (name, model) in own
        ]
        here = [line for line in lines if line["family"] == family]
        groups.append({"family": family, "title": title_of(family_of(family)), "columns": shown, "lines": here})
    return groups


def _totals(rows: Sequence[Row]) -> Row:
    """Return the totals of one column: episodes, success (a share, or None), mean turns, disclosed, omniscient."""
    completed = [row for row in rows if row["status"] == "completed"]
    scored = [row["success"] for row in completed if row["success"] is not None]
    return {
        "episodes": len(rows),
        "scored": len(scored),
        "succeeded": sum(value == 1 for value in scored),
        "success": sum(scored) / len(scored) if scored else None,
        "turns": sum(row["turns"] for row in completed) / len(completed) if completed else None,
        "disclosed": sum(row["disclosed"] for row in rows),
        "omniscient": sum(row["omniscient"] for row in rows),
    }


@dataclass(frozen=True)
class MarkedEpisode:
    """An episode with everything that its page marks."""

    episode: StoredEpisode
    turns: tuple[Row, ...]
    """Each with `parts` (text, mark), `leaks`, `first` (kind, mention and number of first mentions) and `colour`."""
    leaks: tuple[Row, ...]
    """Disclosures and hints by the newest detector, in order of turns."""
    siblings: tuple[Row, ...]
    """The other conditions on the same scenario and seed, in the order of modes."""
    verdict: Verdict | None = None
    """What they settled on and what is true; None if no outcome is right or wrong."""

    @property
    def disclosed(self) -> bool:
        """True where any fact was disclosed."""
        return any(leak["label"] == "disclosed" for leak in self.leaks)

    @property
    def found(self) -> list[Row]:
        """The first disclosure of each fact, as the marks in the turns show them."""
        return [leak for leak in self.leaks if leak["label"] == "disclosed" and leak["first"]]

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
    turns = [_turn(turn, every=not disclosed) for turn in marked_turns(stored, disclosed)]
    verdict = verdict_on(stored, page_queries.answer_key(store, episode_id))
    return MarkedEpisode(stored, tuple(turns), tuple(leaks), tuple(siblings), verdict)


def _in_order(row: Row) -> tuple[int, str, str]:
    """Return the place of a row with mode, see and model."""
    return CONDITIONS.index(row["mode"]), by_number(row["see"] or ""), row["model"]


def _turn(turn: MarkedTurn, *, every: bool) -> Row:
    """Return a turn for a page; `every` first mention is told, or only those by a person who has no such fact."""
    first = [] if turn.leaks else [(kind_of(each), each, number) for number, each in enumerate(turn.mentions)]
    return {
        **turn.row,
        "parts": turn.parts,
        "leaks": turn.leaks,
        "first": [one for one in first if every or one[0] == "strange"],
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
            episodes[event["episode_id"]]["turns"].append({**event, "speaker": event["speaker"] or NARRATOR})
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
