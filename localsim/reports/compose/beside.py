"""Other runs beside a run: rows and curves of their conditions, or of conversations of people, in its report.

Only families that the run has are added. A warning says which run and model each of them is, and on how many of the
run's scenarios it was played. Where people talked on other scenarios, levels can be set side by side, but nothing is
paired: the name of their row says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from localsim.conversation.episode import PEOPLE
from localsim.errors import InvalidInput
from localsim.models.registry import constructed, labelled
from localsim.reports.compose.alone import table
from localsim.reports.document import PeopleBeside, Report
from localsim.reports.evidence.playing import of_conditions
from localsim.reports.figures import draw
from localsim.reports.figures.curves import Course, Series
from localsim.reports.results import Result
from localsim.reports.validity.remarks import Remark, of_failures, of_models
from localsim.stats import grouped
from localsim.store.conditions import Condition, conditions_of, names_of
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.store.queries.runs import run_row


def with_conditions(store: Store, report: Report, conditions: Sequence[Condition]) -> Report:
    """Return a report with the rows, curves and warnings of further conditions.

    If some are conditions of the report's own run, its other conditions are left out. Added rows have `condition` (the
    name to show) and `other_run`; all rows have `twin`, the number of their colour. Raises InvalidInput for a run
    without a family of this one.
    """
    own = report.run.run_id
    if kept := {each: each for each in conditions if each.run_id == own}:
        report = _kept(report, kept)
    others = [each for each in conditions if each.run_id != own]
    names = _names([*conditions_of(store, own), *others]) if others else {}
    for run_id in dict.fromkeys(each.run_id for each in others):
        report = _with_run(store, report, run_id, {each: names[each] for each in others if each.run_id == run_id})
    report = with_colours(report)
    return replace(report, curves=[replace(curve, series=_told_apart(curve.series)) for curve in report.curves])


def with_people(store: Store, report: Report, runs: Sequence[str]) -> Report:
    """Return a report with the rows, curves and warnings of runs of people. Raises InvalidInput for other runs."""
    for run_id in dict.fromkeys(runs):
        if run_id == report.run.run_id:
            hint = "give the run of the models first, and a run of people with --people"
            raise InvalidInput(f"run {run_id} is the run of this report", where="--people", hint=hint)
        report = _with_people(store, report, run_id)
    return report


def with_colours(report: Report) -> Report:
    """Return a report whose rows and series have `twin`, the number of their condition's colour (`draw.numbered`).

    A condition has one number in all figures of the report.
    """
    every: list[Result | Series] = [*report.comparison]
    every += [series for curve in report.curves for series in curve.series]
    colours = draw.numbered({_key(each): each.mode for each in every})
    rows = [replace(row, twin=colours[_key(row)]) for row in report.comparison]
    drawn = [
        replace(curve, series=[replace(each, twin=colours[_key(each)]) for each in curve.series])
        for curve in report.curves
    ]
    return replace(report, comparison=rows, curves=drawn)


def _key(each: Result | Series) -> tuple[str, ...]:
    """Return what tells the condition of a row or series from others; people of all runs are one."""
    if each.mode == PEOPLE:
        return (PEOPLE,)
    of = each.condition if isinstance(each, Series) else each
    return each.mode, each.other_run, of.see, of.model


def _told_apart(series: Sequence[Series]) -> list[Series]:
    """Return series with their model in the names that would be alike in a legend."""
    called = [(each.name, each.side) for each in series]
    return [
        replace(each, name=f"{each.name} {labelled(each.condition.model, whole=False)}")
        if called.count(name) > 1
        else each
        for each, name in zip(series, called, strict=True)
    ]


def _names(conditions: Sequence[Condition]) -> dict[Condition, str]:
    """Return the names of conditions; if each run has a model of its own, the model tells runs apart."""
    played = {(each.run_id, each.model) for each in conditions}
    runs, models = ({pair[part] for pair in played} for part in (0, 1))
    if not len(played) == len(runs) == len(models):
        return names_of(conditions)
    return {each: each.label or each.name for each in conditions}


def _kept(report: Report, kept: Mapping[Condition, Condition]) -> Report:
    """Return a report without the run's conditions that were not chosen; those that have a label are renamed."""
    run_id = report.run.run_id
    rows = []
    for row in report.comparison:
        condition = Condition(run_id, row.mode, row.model, row.see)
        if row.mode == PEOPLE:
            rows.append(row)
        elif condition in kept:
            rows.append(replace(row, condition=kept[condition].label or row.condition))
    drawn = [
        replace(curve, series=[
            each if each.mode == PEOPLE else replace(each, name=kept[each.condition].label or each.name)
            for each in curve.series
            if each.condition in kept or each.mode == PEOPLE
        ])
        for curve in report.curves
    ]  # fmt: skip
    return replace(report, comparison=rows, curves=[curve for curve in drawn if curve.series])


def _with_run(store: Store, report: Report, run_id: str, names: Mapping[Condition, str]) -> Report:
    theirs = table(store, run_id)
    chosen = [
        replace(row, condition=names[condition], other_run=run_id)
        for row in theirs.comparison
        if (condition := Condition(run_id, row.mode, row.model, row.see)) in names
    ]
    added = _in_common(report, chosen, theirs, f"run {run_id}", "the other one has")
    drawn = [
        replace(curve, series=[
            replace(each, name=_with_model(names[each.condition], each.condition), other_run=run_id)
            for each in curve.series
            if each.condition in names
        ])
        for curve in theirs.curves
    ]  # fmt: skip
    curves = [curve for curve in drawn if curve.series]
    remarks = [Remark(text, [family]) for family, text in of_conditions(store, names).remarks()]
    remarks += of_failures(added, f" of run {run_id}")
    played = {part for row in added for part in row.model.split("|")}
    models = {name: each for name, each in json.loads(run_row(store, run_id)["models_json"]).items() if name in played}
    remarks += of_models(models, [row.family for row in added])
    told = [_warning(store, report.run.run_id, each, name) for each, name in names.items()]
    remarks += [Remark(text, beside=True) for text in told]
    return _joined(report, added, replace(theirs, curves=curves), remarks)


def _with_people(store: Store, report: Report, run_id: str) -> Report:
    run = run_row(store, run_id)
    if json.loads(run["plan_json"])["modes"] != [PEOPLE]:
        hint = "localsim import talks FILE makes a run of people"
        raise InvalidInput(f"run {run_id} holds no conversations of people", where="--people", hint=hint)
    theirs = table(store, run_id)
    rows = _in_common(report, theirs.comparison, theirs, f"run {run_id}", "the people have", "--people")
    which = _which_scenarios(store, report.run.run_id, run_id)
    named = [
        replace(row, model=words if row.model == PEOPLE else f"{row.model} ({words})", people_run=run_id)
        for row, words in ((row, which[row.family]) for row in rows)
    ]
    text = _about_people(run_id, json.loads(run["models_json"]), rows, which)
    found = _joined(report, named, theirs, [Remark(text, beside=True)])
    told = PeopleBeside(run_id, {row.family: which[row.family] for row in rows})
    return replace(found, people=[*report.people, told])


def _in_common(
    report: Report, rows: Iterable[Result], theirs: Report, name: str, whose: str, where: str | None = None
) -> list[Result]:
    """Return the rows of families that the report has. Raises InvalidInput if there are none."""
    families = list(dict.fromkeys(row.family for row in report.comparison))
    if found := [row for row in rows if row.family in families]:
        return found
    has = ", ".join(dict.fromkeys(row.family for row in theirs.comparison))
    hint = f"the run has {', '.join(families)}; {whose} {has}"
    raise InvalidInput(f"{name} has no family of run {report.run.run_id}", where=where, hint=hint)


def _joined(report: Report, rows: Sequence[Result], theirs: Report, remarks: Sequence[Remark]) -> Report:
    """Return a report with further rows, with the curves and measures of their run, and with warnings about them."""
    known = {measure.key for measure in report.measures}
    families = {row.family for row in report.comparison}
    return replace(
        report,
        measures=[*report.measures, *(measure for measure in theirs.measures if measure.key not in known)],
        comparison=[*report.comparison, *rows],
        curves=_with_curves(report.curves, [curve for curve in theirs.curves if curve.family in families]),
        remarks=[*report.remarks, *remarks],
    )


def _warning(store: Store, own: str, condition: Condition, name: str) -> str:
    ours = {row.scenario_hash for row in queries.episodes(store, own)}
    theirs = {row.scenario_hash for row in queries.episodes(store, condition.run_id) if row.condition == condition}
    shared = f"{len(theirs & ours)} of its {len(theirs)} scenarios are those of this run"
    pairs = f"pair by pair: localsim compare {own} {condition.run_id}:{condition.name}"
    source = f"{condition.name} of run {condition.run_id} by {labelled(condition.model)}"
    return f"Beside this run: {_with_model(name, condition)} is {source}; {shared}; {pairs}."


def _with_model(name: str, condition: Condition) -> str:
    """Return a name with the model if nothing else in it tells the run, and a note if the model is constructed."""
    plain = name == condition.name
    return f"{name} {labelled(condition.model, whole=False)}" if plain else noted(name, condition.model)


def noted(name: str, model: str) -> str:
    """Return the name of a condition, with a note if its model is a constructed control."""
    return f"{name} (constructed)" if constructed(model) and "(constructed" not in name else name


def _with_curves(curves: Sequence[Course], theirs: Sequence[Course]) -> list[Course]:
    """Return curves with the series of the same curve of another run."""
    found = {(each.family, each.name): each for each in curves}
    for each in theirs:
        own = found.setdefault((each.family, each.name), each)
        if own is not each:
            joined = replace(own, end=max(own.end, each.end), series=[*own.series, *each.series])
            found[each.family, each.name] = joined
    return list(found.values())


def _which_scenarios(store: Store, run_id: str, people_run: str) -> dict[str, str]:
    """Return family -> words that say how many of the people's scenarios are the run's."""
    own = {row.scenario_hash for row in queries.episodes(store, run_id)}
    theirs = grouped((row.family, row.scenario_hash) for row in queries.episodes(store, people_run))
    found = {}
    for family, every in theirs.items():
        hashes = set(every)
        shared = len(hashes & own)
        part = f"{shared} of {len(hashes)} scenarios the same"
        found[family] = "other scenarios" if not shared else "same scenarios" if hashes <= own else part
    return found


def _about_people(run_id: str, models: Mapping[str, Any], rows: Sequence[Result], which: Mapping[str, str]) -> str:
    source = next(iter(models.values()))["source"]
    parts = ", ".join(f"{row.completed} in {row.family} ({which[row.family]})" for row in rows)
    pairing = (
        " Where the scenarios are others, set levels side by side and test nothing."
        if any(which[row.family] != "same scenarios" for row in rows)
        else f" Pair by pair: localsim compare RUN {run_id}."
    )
    return f"People, imported from {source}: {parts} conversations.{pairing}"
