"""Plain values for the viewer's pages, made from rows of the database. No HTML and no SQL here."""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import takewhile
from pathlib import Path
from typing import Any

from localsim import paths
from localsim.conversation.episode import CONDITIONS
from localsim.conversation.grants import condition_name
from localsim.conversation.transcript import NARRATOR
from localsim.errors import InvalidInput
from localsim.families import family_of, in_order, title_of
from localsim.families.base import Verdict
from localsim.reports import sections
from localsim.reports.compose.alone import beginning
from localsim.reports.conversation import MarkedTurn, marked_turns, tenths, verdict_on
from localsim.reports.conversation.choices import choices
from localsim.reports.conversation.marks import kind_of
from localsim.reports.conversation.rubrics import rubric_rows
from localsim.reports.document import Table
from localsim.reports.figures import references
from localsim.reports.measures import heading_of
from localsim.reports.validity import head
from localsim.reports.validity.thresholds import sentences, thresholds
from localsim.runs import telling
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
    "leaks": ("any", "early", "omniscient", "hits"),
}
"""The filters of a run's page with their values. Family and words are free texts."""


ANSWERED_AT_ONCE = 200
"""Completed episodes of a run up to which its page computes the answer before it opens."""
_ANSWERS: OrderedDict[tuple[Any, ...], Told] = OrderedDict()
_ANSWERS_KEPT = 64


def runs(store: Store) -> list[Row]:
    """The newest runs with their counts, names and results.

    `live` where a process is writing the run now. `results` are as `_results` returns them.
    """
    rows = page_queries.newest_runs(store)
    names = telling.names_of(store, rows)
    found: dict[str, list[Row]] = {}
    for each in page_queries.results(store, [row["run_id"] for row in rows]):
        found.setdefault(each["run_id"], []).append(each)
    for row in rows:
        _describe(row, found.get(row["run_id"], []), names)
        row["live"] = is_written(store.path, row["run_id"])
    return rows


def run_head(store: Store, run_id: str) -> Row:
    """One run with its counts, results and name."""
    row = page_queries.run_with_plan(store, run_id)
    _describe(row, page_queries.results(store, [run_id]), telling.names_of(store, [row]))
    return row


def _describe(row: Row, found: list[Row], names: Mapping[str, str]) -> None:
    """Give a row of a run its results and its name."""
    del row["plan_json"]
    row["results"] = _results(found)
    row["name"] = names[row["run_id"]]


def _results(found: Iterable[Row]) -> list[Row]:
    """Return a row for each family: its title, and for each condition the share of successes (None if none counts)."""
    lines: dict[str, list[Row]] = {}
    for row in sorted(found, key=lambda row: (CONDITIONS.index(row["mode"]), by_number(row["see"] or ""))):
        share = row["success"] / row["scored"] if row["scored"] else None
        cell = {"condition": condition_name(row["mode"], row["see"]), "success": share, "episodes": row["episodes"]}
        lines.setdefault(row["family"], []).append({**row, **cell})
    return [{"family": name, "title": title_of(family_of(name)), "cells": lines[name]} for name in in_order(lines)]


@dataclass(frozen=True)
class Told:
    """What a run's page says about all of its talks."""

    sentences: Sequence[str]
    """The sentences that its report begins with."""
    withheld: bool
    """True if talks do not play, so that the sentences do not conclude."""
    tables: Sequence[Table]
    """The measures of each game beside random and best scripted play; what judges answered by rubrics, and chose."""


def answer(store: Store, run_id: str) -> Told:
    """What answers a run; kept until the database changes."""
    key = key_of(store, run_id)
    found = _ANSWERS.get(key)
    if found is None:
        # Other threads drop the oldest answers meanwhile, which may be this one: it is not read from there again.
        data = beginning(store, run_id)
        played = references.of_run(store, run_id, data.run["seed"]) if data.run["status"] != "running" else ()
        games = sections.games(replace(data, references=played))
        asked = sections.judged(replace(data, rubrics=rubric_rows(store, run_id), choices=choices(store, run_id)))
        found = _ANSWERS[key] = Told(head.answer(data), bool(data.playing.withheld), [*games, *asked])
        while len(_ANSWERS) > _ANSWERS_KEPT:
            _ANSWERS.popitem(last=False)
    return found


def answer_is_near(store: Store, run: Row) -> bool:
    """Return True if the answer of a run is known, or so quickly computed that its page can wait for it."""
    if key_of(store, run["run_id"]) in _ANSWERS:
        return True
    return run["completed"] <= ANSWERED_AT_ONCE and (
        run["status"] == "running" or references.are_known(store, run["run_id"], run["seed"])
    )


def key_of(store: Store, run_id: str) -> tuple[Any, ...]:
    """Return what changes whenever the database does: what was computed for a run is kept under it."""
    return *store.state(), run_id


@dataclass(frozen=True)
class Matrix:
    """Scenario x condition x model of a run: `lines` of one page, each a scenario with its episodes by column.

    `groups` are the same lines by family, each with its columns and their totals over all pages.
    """

    lines: tuple[Row, ...]
    groups: tuple[Row, ...]
    scenarios: int
    episodes: int
    pages: int


def matrix(store: Store, run_id: str, chosen: EpisodeFilter) -> Matrix:
    """The episodes of a run that pass a filter."""
    columns = page_queries.modes_and_models(store, run_id)
    hits = [family.hits.score for family in map(family_of, page_queries.families_of_run(store, run_id)) if family.hits]
    rows = page_queries.episodes_of_run(store, run_id, chosen, hits)
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
    if chosen.status or chosen.outcome or chosen.leaks or chosen.words:
        _beside_all(groups, page_queries.episodes_of_run(store, run_id, _unselected(chosen), hits))
    return Matrix(tuple(lines.values()), tuple(groups), len(names), len(rows), pages)


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


def _unselected(chosen: EpisodeFilter) -> EpisodeFilter:
    """Return the filter without what selects by how a talk went or what was said in it."""
    return replace(chosen, status="", outcome="", leaks="", words="")


def _beside_all(groups: Sequence[Row], rows: Iterable[Row]) -> None:
    """Give each column `all`, the number of its talks from which some were selected, and take its success away.

    Talks that were selected by how they went tell nothing about how often talks go so.
    """
    counts = Counter((row["family"], condition_name(row["mode"], row["see"]), row["model"]) for row in rows)
    for group in groups:
        for column in group["columns"]:
            every = counts[group["family"], column["condition"], column["model"]]
            column |= {"all": every, "success": None}


def _totals(rows: Sequence[Row]) -> Row:
    """Return the totals of one column: episodes, success (a share, or None), mean turns, disclosed, omniscient.

    `all` is None: no talk of the column was left out.
    """
    completed = [row for row in rows if row["status"] == "completed"]
    scored = [row["success"] for row in completed if row["success"] is not None]
    return {
        "episodes": len(rows),
        "all": None,
        "scored": len(scored),
        "succeeded": sum(value == 1 for value in scored),
        "success": sum(scored) / len(scored) if scored else None,
        "turns": sum(row["turns"] for row in completed) / len(completed) if completed else None,
        "disclosed": sum(row["disclosed"] for row in rows),
        "omniscient": sum(row["omniscient"] for row in rows),
        "hits": round(sum(row["hits"] for row in rows)),
    }


@dataclass(frozen=True)
class Instrument:
    """How sure the marks of an episode are. Empty where names decide, and no threshold."""

    tenths: Mapping[str, int] = field(default_factory=dict)
    """Kind of mark -> of ten such marks, how many are right, on labelled examples."""
    pairs: Mapping[str, Any] | None = None
    """Precision and recall on labelled pairs."""
    found_with: Sequence[str] = ()
    """Sentences on thresholds that are not the built-in ones."""


@dataclass(frozen=True)
class MarkedEpisode:
    """An episode with everything that its page marks."""

    episode: StoredEpisode
    turns: tuple[Row, ...]
    """Each with `parts` (text, mark), `leaks`, `hit`, `unjudged`, `first` (kind, mention, number of first mentions) and
    `colour`.
    """
    leaks: tuple[Row, ...]
    """Disclosures and hints by the newest detector, in order of turns."""
    siblings: tuple[Row, ...]
    """The other conditions on the same scenario and seed, in the order of modes."""
    verdict: Verdict | None = None
    """What they settled on and what is true; None if no outcome is right or wrong."""
    instrument: Instrument = Instrument()

    @property
    def hits(self) -> int:
        """The number of turns that are unearned hits."""
        return sum(bool(turn["hit"]) for turn in self.turns)

    @property
    def strange(self) -> bool:
        """True where a turn is marked as the first mention by a person who has no such fact."""
        return any(kind == "strange" for turn in self.turns for kind, _, _ in turn["first"])

    @property
    def scores(self) -> list[Row]:
        """The scores, each with its `heading`."""
        family = self.episode.scenario.family
        return [{**row, "heading": heading_of(row["name"], family)} for row in self.episode.scores]

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
        """True where the episode was searched for leaks."""
        return any(telling.is_search(each["evaluator"], each["value"]) for each in self.episode.scores)


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
    family = family_of(stored.scenario.family)
    terms = {fact.id: fact.terms for agent in stored.scenario.agents for fact in agent.facts}
    said = {turn["turn"]: turn["text"] or "" for turn in stored.turns}
    for leak in leaks:
        leak["by_name"] = family.terms_disclose and leak["evidence"] != ""
        uttered = (family.utters(said.get(leak["turn"], ""), term) for term in terms.get(leak["fact_id"], ()))
        leak["by_term"] = not leak["by_name"] and any(uttered)
    turns = [_turn(turn, every=not disclosed) for turn in marked_turns(stored, disclosed)]
    verdict = verdict_on(stored, page_queries.answer_key(store, episode_id))
    marked = MarkedEpisode(stored, tuple(turns), tuple(leaks), tuple(siblings), verdict)
    return replace(marked, instrument=_instrument(store, marked))


def _instrument(store: Store, marked: MarkedEpisode) -> Instrument:
    """Return how sure the marks are; own thresholds have no accuracy on examples that they were not fitted to."""
    if not marked.scored_for_leaks or family_of(marked.episode.scenario.family).terms_disclose:
        return Instrument()
    used = thresholds(store, marked.episode.run_id)
    if not used or not all(each.built_in for each in used):
        return Instrument(found_with=sentences(used))
    accuracy = used[0].accuracy
    return Instrument(tenths(accuracy), accuracy.get("pairs"))


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
        "hit": turn.hit,
        "unjudged": turn.unjudged,
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
    """Bars of the first column of numbers from 0 up, named by the columns of short texts that differ."""
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
    telling = [index for index in texts if len({row[index] for row in rows}) > 1] or texts
    most = max(float(row[shown] or 0) for row in rows)
    bars = [
        {
            "label": " · ".join(str(row[index]) for index in telling[:3]),
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
    lines = takewhile(lambda line: line.startswith("--"), text.splitlines())
    about = " ".join(line.removeprefix("--").strip() for line in lines)
    return {"name": path.stem, "about": about or path.stem, "text": text}
