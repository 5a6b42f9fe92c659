"""Thresholds with which the leaks of a run were found: every report names them, and one run should have one set.

The labels `disclosed` and `hint` cannot be decided again from what is stored: a turn that the thresholds of its search
passed over has no row. So a report never applies other thresholds; `require` says how to search again.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from localsim.errors import InvalidInput
from localsim.families import family_of
from localsim.leakage.detector import BUILT_IN, Weights
from localsim.store.database import Store
from localsim.store.queries import reports as queries

Row = dict[str, Any]


def thresholds(store: Store, run_id: str) -> list[Row]:
    """Return a row for each set of thresholds behind the leaks of a run, the one with most episodes first.

    Keys: weights (`built-in`, or name and short hash), version, episodes, fitted (the labels of the fit) and accuracy.
    Families in which names decide are left out, because no threshold is used there.
    """
    found: dict[tuple[str, str], Row] = {}
    for row in queries.searches(store, run_id):
        if not family_of(row["family"]).terms_disclose:
            named = {"weights": row["weights"], "version": row["version"], "episodes": 0}
            kept = found.setdefault((row["weights"], row["version"]), named | _about(row["text"]))
            kept["episodes"] += row["episodes"]
    return sorted(found.values(), key=lambda row: -row["episodes"])


def _about(text: str | None) -> Row:
    """Return labels and accuracy from the stored file; searches that stored none used the built-in thresholds."""
    if text is None:
        return {"fitted": {}, "accuracy": dict(Weights.read().accuracy)}
    data = json.loads(text)
    return {"fitted": data.get("fitted", {}), "accuracy": data["accuracy"]}


def sentences(rows: Iterable[Row]) -> list[str]:
    """Return a sentence for each set of thresholds, with the labels that it was fitted to."""
    return [f"Leaks found with {name_of(row)}." for row in rows]


def name_of(row: Row) -> str:
    """Return the name of thresholds as a phrase."""
    if row["weights"] == BUILT_IN:
        return f"the built-in thresholds of the leakage detector, version {row['version']}"
    labels, file = row["fitted"], _printable(row["weights"])
    if not labels:
        return f"thresholds of the file {file}, which does not name its labels"
    files = ", ".join(_printable(each) for each in labels["files"])
    return f"thresholds fitted to {files} ({labels['labels']} labels, {_printable(labels['date'])}; file {file})"


def labels_of(row: Row) -> Row | None:
    """Return who labelled the examples behind the accuracy of thresholds; None for the built-in ones."""
    if row["weights"] == BUILT_IN:
        return None
    files = ", ".join(_printable(each) for each in row["fitted"].get("files", ())) or "a file without a name"
    fitted = f"{files}, to which the thresholds were fitted, so these shares are too good"
    return {"labelled_by": fitted, "raters": "not recorded", "agreement": "not recorded"}


def warnings(store: Store, rows: Sequence[Row], run_id: str, others: Iterable[str] = ()) -> list[str]:
    """Return warnings: a run (`rows`) with several sets of thresholds, and other runs beside it with other ones."""
    told = []
    if len(rows) > 1:
        parts = "; ".join(f"{row['episodes']} episodes with {name_of(row)}" for row in rows)
        told.append(
            f"Leaks of this run were found with different thresholds, so their rates cannot be compared: {parts}. "
            f"This command searches all episodes with the thresholds of the last search: localsim score {run_id}"
        )
    own = {_key(row) for row in rows}
    for other in others:
        theirs = thresholds(store, other)
        if own and theirs and {_key(row) for row in theirs} != own:
            names = "; ".join(map(name_of, theirs))
            told.append(
                f"Run {other} has leaks found with {names}: do not compare its rates of leaks with those of run "
                f"{run_id}. The same thresholds: localsim score {other} --weights {_value(rows[0])}"
            )
    return told


def require(store: Store, runs: Iterable[str], weights: Weights, value: str) -> None:
    """Raise InvalidInput for a run whose leaks were not all found with these weights; `value` is their option."""
    for run_id in runs:
        rows = thresholds(store, run_id)
        other = [row for row in rows if _key(row) != (weights.identity, weights.version)]
        if other or not queries.searches(store, run_id):
            found = f"has leaks found with {name_of(other[0])}" if other else "was not searched for leaks"
            hint = f"localsim score {run_id} --weights {shlex.quote(value)}"
            raise InvalidInput(f"run {run_id} {found}, not with {weights.identity}", hint=hint)


def _key(row: Row) -> tuple[str, str]:
    return row["weights"], row["version"]


def _value(row: Row) -> str:
    """Return the value of --weights for the thresholds of a row."""
    return BUILT_IN if row["weights"] == BUILT_IN else shlex.quote(_printable(row["weights"].rpartition(" ")[0]))


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in str(text))[:120]
