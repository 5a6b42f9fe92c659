"""Conditions of other runs beside the modes of a run: their rows and curves in the run's report and figures.

Only families that the run has are added. A warning says which run and model each of them is, and on how many of the
run's scenarios it was played.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from localsim.conversation.episode import PEOPLE
from localsim.errors import InvalidInput
from localsim.models.registry import constructed, labelled
from localsim.reports.conversation.playing import of_conditions
from localsim.reports.figures import draw
from localsim.reports.report import of_models, table
from localsim.store.conditions import Condition, condition_of, conditions_of, names_of
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.store.queries.runs import run_row

Row = dict[str, Any]


def with_conditions(store: Store, data: Row, conditions: Sequence[Condition]) -> Row:
    """Return a report with the rows, curves and warnings of further conditions, in `comparison` and `curves`.

    If some are conditions of the report's own run, its other conditions are left out. Added rows have `condition` (the
    name to show) and `other_run`; all rows have `twin`, the number of their colour. Raises InvalidInput for a run
    without a family of this one.
    """
    own = data["run"]["run_id"]
    found = {**data, "comparison": [*data["comparison"]], "curves": [*data["curves"]], "warnings": [*data["warnings"]]}
    found |= {"measures": [*data["measures"]], "remarks": [*data.get("remarks", [])]}
    if kept := {each: each for each in conditions if each.run_id == own}:
        _keep(found, kept)
    others = [each for each in conditions if each.run_id != own]
    names = _names([*conditions_of(store, own), *others]) if others else {}
    for run_id in dict.fromkeys(each.run_id for each in others):
        _add(store, found, run_id, {each: names[each] for each in others if each.run_id == run_id})
    found = with_colours(found)
    for curve in found["curves"]:
        _tell_apart(curve["series"])
    return found


def with_colours(data: Row) -> Row:
    """Return a report whose rows and series have `twin`, the number of their condition's colour (`draw.numbered`).

    A condition has one number in all figures of the report.
    """
    curves = data.get("curves", [])
    every = [*data["comparison"], *(series for curve in curves for series in curve["series"])]
    colours = draw.numbered({_key(row): row["mode"] for row in every})

    def coloured(rows: Iterable[Row]) -> list[Row]:
        return [{**row, "twin": colours[_key(row)]} for row in rows]

    drawn = [{**curve, "series": coloured(curve["series"])} for curve in curves]
    return {**data, "comparison": coloured(data["comparison"]), "curves": drawn}


def _key(row: Row) -> tuple[str, ...]:
    """Return the condition of a row or series; people of all runs are one."""
    if row["mode"] == PEOPLE:
        return (PEOPLE,)
    return row.get("other_run", ""), row["mode"], row.get("see") or "", row["model"]


def _tell_apart(series: Sequence[Row]) -> None:
    """Add the model to the names of series that would be called alike in a legend."""
    called = [(one["name"], one["side"]) for one in series]
    for one, name in zip(series, called, strict=True):
        if called.count(name) > 1:
            one["name"] = f"{one['name']} {labelled(one['model'], whole=False)}"


def _names(conditions: Sequence[Condition]) -> dict[Condition, str]:
    """Return the names of conditions; if each run has a model of its own, the model tells runs apart."""
    played = {(each.run_id, each.model) for each in conditions}
    runs, models = ({pair[part] for pair in played} for part in (0, 1))
    if not len(played) == len(runs) == len(models):
        return names_of(conditions)
    return {each: each.label or each.name for each in conditions}


def _keep(data: Row, kept: Mapping[Condition, Condition]) -> None:
    """Leave out the run's conditions that were not chosen, and rename those that have a label."""
    run_id = data["run"]["run_id"]

    def chosen(rows: Iterable[Row], name: str) -> list[Row]:
        found = []
        for row in rows:
            condition = condition_of({"run_id": run_id, **row})
            if "people_run" in row or condition.mode == "people":
                found.append(row)
            elif condition in kept:
                found.append({**row, name: kept[condition].label or row[name]})
        return found

    data["comparison"] = chosen(data["comparison"], "condition")
    curves = [{**curve, "series": chosen(curve["series"], "name")} for curve in data["curves"]]
    data["curves"] = [curve for curve in curves if curve["series"]]


def _add(store: Store, data: Row, run_id: str, names: Mapping[Condition, str]) -> None:
    theirs = table(store, run_id)
    families = list(dict.fromkeys(row["family"] for row in data["comparison"]))
    added = [
        {**row, "condition": names[condition], "other_run": run_id}
        for row in theirs["comparison"]
        if row["family"] in families and (condition := condition_of({"run_id": run_id, **row})) in names
    ]
    if not added:
        has = ", ".join(dict.fromkeys(row["family"] for row in theirs["comparison"]))
        hint = f"the run has {', '.join(families)}; the other one has {has}"
        raise InvalidInput(f"run {run_id} has no family of run {data['run']['run_id']}", hint=hint)
    share_columns(data, added, theirs["measures"])
    data["comparison"] += added
    curves = []
    for curve in theirs["curves"]:
        series = [
            {**one, "name": _with_model(names[condition], condition), "other_run": run_id}
            for one in curve["series"]
            if (condition := condition_of({"run_id": run_id, **one})) in names
        ]
        if curve["family"] in families and series:
            curves.append({**curve, "series": series})
    data["curves"] = with_curves(data["curves"], curves)
    told = [_warning(store, data["run"]["run_id"], each, name) for each, name in names.items()]
    played = {part for row in added for part in row["model"].split("|")}
    models = {name: each for name, each in json.loads(run_row(store, run_id)["models_json"]).items() if name in played}
    remarks: list[Row] = [
        {"text": text, "families": [family]} for family, text in of_conditions(store, names).remarks()
    ]
    remarks += of_models(models, [row["family"] for row in added])
    remarks += [{"text": text, "beside": True} for text in told]
    data["remarks"] += remarks
    data["warnings"] += [each["text"] for each in remarks if each["text"] not in data["warnings"]]


def _warning(store: Store, own: str, condition: Condition, name: str) -> str:
    ours = {row["scenario_hash"] for row in queries.episodes(store, own)}
    episodes = [row for row in queries.episodes(store, condition.run_id) if condition_of(row) == condition]
    theirs = {row["scenario_hash"] for row in episodes}
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


def share_columns(data: Row, rows: Sequence[Row], measures: Sequence[Row]) -> None:
    """Give the report and added rows the same measures; a measure that one of them lacks has no value there."""
    known = {measure["key"] for measure in data["measures"]}
    data["measures"] += [measure for measure in measures if measure["key"] not in known]
    for row in (*data["comparison"], *rows):
        for measure in data["measures"]:
            for end in ("", "_low", "_high"):
                row.setdefault(f"{measure['key']}{end}", None)
            if measure["kind"] == "position":
                row.setdefault(f"{measure['key']}_n", 0)


def with_curves(curves: Sequence[Row], theirs: Sequence[Row]) -> list[Row]:
    """Return curves with the series of the same curve of another run."""
    found = [
        {
            **curve,
            "end": max([curve["end"], *(each["end"] for each in theirs if _same(each, curve))]),
            "series": [
                *curve["series"],
                *(series for each in theirs if _same(each, curve) for series in each["series"]),
            ],
        }
        for curve in curves
    ]
    return [*found, *(each for each in theirs if not any(_same(each, curve) for curve in curves))]


def _same(one: Row, other: Row) -> bool:
    return (one["family"], one["name"]) == (other["family"], other["name"])
