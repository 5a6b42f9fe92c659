"""The report of one run alone: a row for each family and condition with intervals, warnings, and quoted leaks.

Columns are the measures of `reports.measures`. `reports.report` sets other runs beside it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from localsim import families
from localsim.annotation.agreement import agreement
from localsim.annotation.leak_judges import leak_judges
from localsim.conversation.measures import Measure
from localsim.reports.comparison import compare
from localsim.reports.document import Report, Run
from localsim.reports.evidence import playing
from localsim.reports.evidence.interviews import interviews
from localsim.reports.evidence.rubrics import choices, rubric_rows
from localsim.reports.figures.curves import curves
from localsim.reports.measures import COUNTS, Cell, measures_of, number, sided
from localsim.reports.results import Result
from localsim.reports.validity.correction import corrections
from localsim.reports.validity.headline import headline
from localsim.reports.validity.instruments import instruments, leak_sources
from localsim.reports.validity.judges import rates, reliability
from localsim.reports.validity.remarks import Remark, remarks_on
from localsim.reports.validity.robustness import robustness, sign_turns
from localsim.reports.validity.thresholds import sentences, thresholds
from localsim.reports.validity.thresholds import warnings as mixtures
from localsim.runs.telling import is_search
from localsim.stats import grouped
from localsim.store.conditions import Condition, in_order
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.store.queries.runs import run_row
from localsim.store.queries.stories import only_title

Key = tuple[str, Condition]
"""Family and condition."""

QUOTED = 12
"""Number of leaks that a report quotes."""


def report(store: Store, run_id: str) -> Report:
    """Return the report of a run without the parts that `reports.report` adds."""
    with store.held() as reader:
        return _read(reader, run_id)


def _read(store: Store, run_id: str) -> Report:
    run = run_row(store, run_id)
    scores = sided(store, run_id)
    found = table(store, run_id, scores)
    used = thresholds(store, run_id) if any(row.private for row in found.comparison) else []
    told = playing.of_run(store, run_id)
    asked = {name.partition(".")[0] for name in {row.evaluator for row in scores}}
    judges = reliability(store, [run_id]) if "judge" in asked else []
    played = dict.fromkeys(row.family for row in found.comparison if row.completed)
    private = {row.family for row in found.comparison if row.private}
    leaking = {row.family for row in scores if is_search(row.evaluator, row.value)}
    searched = [name for name in played if name in leaking & private]
    tokens = queries.tokens(store, run_id)
    data = replace(
        found,
        run=replace(
            _run_of(run, only_title(store, run_id)),
            scenarios=queries.scenario_paths(store, run_id),
            tokens_generated=tokens.generated,
            tokens_evaluated=tokens.evaluated,
        ),
        playing=told,
        leaks=queries.leaks(store, run_id),
        thresholds=used,
        remarks=[*remarks_on(run, found.comparison, told), *map(Remark, mixtures(store, used, run_id))],
        judges=judges,
        naturalness=rates(store, run_id) if "naturalness" in asked else [],
        annotations=agreement(store, run_id),
        interviews=interviews(store, run_id),
        rubrics=rubric_rows(store, run_id) if asked & {"judge", "rubric"} else [],
        choices=choices(store, run_id) if "choose" in asked else [],
        parser_accuracy=families.accuracy(),
        instruments=instruments(played, searched, judges, used),
        leak_sources=[*leak_sources(searched), *sentences(used)],
        leak_judges=leak_judges(store, [run_id]),
        corrections=corrections(store, run_id),
        robustness=robustness(store, run_id),
    )
    return _answered(store, data, scores)


def beginning(store: Store, run_id: str) -> Report:
    """Return a report that has what its first sentences need, and its measures and rows."""
    with store.held() as reader:
        run = run_row(reader, run_id)
        scores = sided(reader, run_id)
        found = replace(
            _rows(reader, run_id, scores),
            run=_run_of(run, only_title(reader, run_id)),
            playing=playing.of_run(reader, run_id),
            robustness=robustness(reader, run_id),
        )
        return _answered(reader, found, scores)


def _answered(store: Store, data: Report, scores: Sequence[queries.Score]) -> Report:
    """Return a report with its headline. Without an episode there are no conditions that could be compared."""
    compared = compare(store, data.run.run_id, scores=scores) if data.comparison else []
    return replace(data, headline=headline(data, compared, partial(sign_turns, data.robustness)))


def table(store: Store, run_id: str, scores: Sequence[queries.Score] | None = None) -> Report:
    """Return a report that has the measures of a run, its rows (comparison) and its curves.

    `scores` are the newest ones, with the sides of their agents, if they have been read.
    """
    scores = sided(store, run_id) if scores is None else scores
    return replace(_rows(store, run_id, scores), curves=curves(store, run_id, scores))


def _rows(store: Store, run_id: str, scores: Sequence[queries.Score]) -> Report:
    """Return a report that has the measures of a run and its rows (comparison)."""
    found = cells(store, run_id, scores)
    measures = measures_of(dict.fromkeys(family for family, _ in found), scores)
    secret = queries.with_secrets(store, run_id)
    return Report(
        run=Run(run_id),
        measures=measures,
        comparison=[_result(key, cell, measures, secret) for key, cell in found.items()],
    )


def foremost(leaks: Iterable[queries.Leak]) -> list[queries.Leak]:
    """Return the leaks to quote, at most QUOTED: omniscient ones first, then early ones, then the most probable."""
    ordered = sorted(leaks, key=lambda leak: (leak.kind != "omniscient", not leak.early, -leak.probability))
    return ordered[:QUOTED]


def cells(store: Store, run_id: str, scores: Iterable[queries.Score]) -> dict[Key, Cell]:
    """Return the cells in the order of a report: by family and condition. `scores` have the sides of their agents."""
    counted = queries.counts(store, run_id)  # before the episodes: a run that goes on adds more of them
    episodes = grouped(((row.family, row.condition), row) for row in queries.episodes(store, run_id))
    keys = {row.episode_id: key for key, own in episodes.items() for row in own}
    scored = grouped((keys[score.episode_id], score) for score in scores)
    counts = grouped((keys[each.episode_id], each) for each in counted)
    places = families.in_order(family for family, _ in episodes)
    found = {}
    for key in sorted(episodes, key=lambda key: (places.index(key[0]), in_order(key[1]))):
        rows = counts.get(key, [])
        shares = {
            name: {each.episode_id: (getattr(each, name) or 0, getattr(each, total) or 0) for each in rows}
            for name, total in COUNTS.items()
        }
        found[key] = Cell(key[0], episodes[key], scored.get(key, []), shares)
    return found


def _result(key: Key, cell: Cell, measures: Iterable[Measure], secret: Collection[str]) -> Result:
    """Return a row of the table; `secret` are the hashes of the scenarios in which something could leak."""
    family, condition = key
    completed = {row.episode_id for row in cell.episodes if row.status == "completed"}
    private = {row.episode_id for row in cell.episodes if row.scenario_hash in secret} & completed
    searched = {row.episode_id for row in cell.scores if is_search(row.evaluator, row.value)}
    return Result(
        family=family,
        mode=condition.mode,
        model=condition.model,
        condition=condition.name,
        see=condition.see,
        n=len(cell.episodes),
        scenarios=len({row.scenario_hash for row in cell.episodes}),
        completed=len(completed),
        failed=cell.count("failed"),
        searched=len(completed & searched),
        private=len(private),
        missed=len(private - searched),
        numbers={measure.key: number(measure, cell) for measure in measures},
    )


def _run_of(row: Mapping[str, Any], title: str) -> Run:
    """Return a run of the database without what takes queries of its own."""
    same = ("run_id", "status", "seed", "repro", "parallel", "episodes_planned")
    return Run(
        **{name: row[name] for name in same},
        title=title,
        started_utc=row["started_utc"].isoformat(),
        finished_utc=row["finished_utc"].isoformat() if row["finished_utc"] else None,
        models=json.loads(row["models_json"]),
        versions=json.loads(row["versions_json"]),
        plan=json.loads(row["plan_json"]),
    )
