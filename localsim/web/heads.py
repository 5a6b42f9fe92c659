"""Runs as a list shows them: names, states, and the primary outcome of each family. No SQL here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from localsim.conversation.episode import CONDITIONS
from localsim.conversation.grants import condition_name
from localsim.families import family_of, in_order, title_of
from localsim.reports.figures import pairs
from localsim.reports.figures.pairs import Paired
from localsim.runs import telling
from localsim.runs.plan import primary_of
from localsim.stats import grouped
from localsim.store.conditions import by_number
from localsim.store.database import Store
from localsim.store.journal import is_written
from localsim.store.queries import pages as page_queries
from localsim.store.queries.pages import ResultRow, RunRow


@dataclass(frozen=True)
class ConditionResult:
    """The talks of a run in one family and condition."""

    condition: str
    episodes: int
    success: float | None
    """The share of successes; None if none counts."""


@dataclass(frozen=True)
class Outcome:
    """The primary outcome of a run in one family, by one model, in two modes."""

    modes: tuple[str, str]
    before: str
    """The mean in the first mode."""
    after: str
    heading: str
    """What was measured."""
    model: str
    """Empty if the run has a single one."""
    picture: Markup


@dataclass(frozen=True)
class FamilyResult:
    """The talks of a run in one family."""

    title: str
    cells: Sequence[ConditionResult]
    outcomes: Sequence[Outcome] = ()
    """Empty without pairs of the two modes, and where talks do not play."""


@dataclass(frozen=True)
class RunHead:
    """A run as pages show it."""

    row: RunRow
    name: str
    results: Sequence[FamilyResult]
    live: bool = False
    """True if a process is writing it now."""


_LISTED: dict[tuple[Any, ...], list[RunHead]] = {}
"""The list that was made last, with the state of its database: the outcomes of 200 runs take a while."""


def runs(store: Store, run_id: str = "") -> list[RunHead]:
    """The newest runs with their primary outcomes, or one run alone."""
    state = (*store.state(), run_id)
    found = _LISTED.get(state)
    if found is None:
        rows = [page_queries.run_of(store, run_id)] if run_id else page_queries.newest_runs(store)
        outcomes = pairs.by_run(store, {row.run_id: primary_of(row.plan_json) for row in rows})
        found = _heads(store, rows, outcomes)
        _LISTED.clear()
        _LISTED[state] = found
    return [replace(head, live=is_written(store.path, head.row.run_id)) for head in found]


def run_head(store: Store, run_id: str) -> RunHead:
    """One run."""
    return _heads(store, [page_queries.run_of(store, run_id)], {})[0]


@dataclass(frozen=True)
class NamedRun:
    """A run that can be chosen."""

    run_id: str
    label: str
    completed: int


def named(store: Store) -> list[NamedRun]:
    """The newest runs to choose from; none without a database."""
    if not store.path.is_file():
        return []
    with store.held() as reader:
        rows = page_queries.newest_runs(reader)
        names = telling.names_of(reader, [vars(row) for row in rows])
    return [NamedRun(row.run_id, f"{names[row.run_id]} ({row.run_id})", row.completed) for row in rows]


def newest(runs: Sequence[NamedRun]) -> str:
    """The run that `@last` means, the newest with a completed talk; `@last` itself if no run has one."""
    return next((each.run_id for each in runs if each.completed), "@last")


def _heads(store: Store, rows: Sequence[RunRow], outcomes: Mapping[str, Sequence[Paired]]) -> list[RunHead]:
    names = telling.names_of(store, [vars(row) for row in rows])
    ids = [row.run_id for row in rows]
    found = grouped((each.run_id, each) for each in page_queries.results(store, ids))
    ends = _ends([each for own in outcomes.values() for each in own])
    results = [_results(found.get(run_id, ()), outcomes.get(run_id, ()), ends) for run_id in ids]
    return [RunHead(row, names[row.run_id], own) for row, own in zip(rows, results, strict=True)]


_Scale = tuple[str, str]
"""Family and measure, whose pictures share an axis."""


def _ends(found: Sequence[Paired]) -> dict[_Scale, tuple[float, float]]:
    scales = grouped(((each.family, each.measure.key), each) for each in found)
    return {scale: (min(each.least for each in own), pairs.top_of(own)) for scale, own in scales.items()}


def _results(
    found: Iterable[ResultRow], outcomes: Sequence[Paired], ends: Mapping[_Scale, tuple[float, float]]
) -> list[FamilyResult]:
    cells: dict[str, list[ConditionResult]] = {}
    for row in sorted(found, key=lambda row: (CONDITIONS.index(row.mode), by_number(row.see or ""))):
        share = row.success / row.scored if row.scored else None
        cells.setdefault(row.family, []).append(ConditionResult(condition_name(row.mode, row.see), row.episodes, share))
    several = len({each.model for each in outcomes}) > 1
    told: dict[str, list[Outcome]] = {}
    for each in outcomes:
        before, after = (each.said(level.value or 0) for level in each.levels)
        drawn = Markup(pairs.small(each, ends[each.family, each.measure.key]))
        model = each.model if several else ""
        told.setdefault(each.family, []).append(Outcome(each.modes, before, after, each.measure.heading, model, drawn))
    return [FamilyResult(title_of(family_of(name)), cells[name], told.get(name, ())) for name in in_order(cells)]
