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
from localsim.evaluators.searching import weights_of
from localsim.families import family_of
from localsim.leakage.detector import BUILT_IN, Weights, options_of
from localsim.store.database import Store
from localsim.store.queries import reports as queries

Row = dict[str, Any]


def thresholds(store: Store, run_id: str) -> list[Row]:
    """Return a row for each set of thresholds behind the leaks of a run, the one with most episodes first.

    Keys: weights (`built-in`, or name and short hash), version, episodes, fitted (the labels of the fit), accuracy, and
    sensitivity: the share of false alarms that they allow, None if the stored file is older than this number. Families
    in which names decide are left out, because no threshold is used there.
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
        usual = Weights.read()
        return {"fitted": {}, "accuracy": dict(usual.accuracy), "sensitivity": usual.talk_share}
    data = json.loads(text)
    return {
        "fitted": data.get("fitted", {}),
        "accuracy": data["accuracy"],
        "sensitivity": data.get("talk_share"),
    }


def sentences(rows: Iterable[Row]) -> list[str]:
    """Return a sentence for each set of thresholds, with the labels that it was fitted to."""
    return [f"Leaks found with {name_of(row)}." for row in rows]


def name_of(row: Row) -> str:
    """Return the name of thresholds as a phrase."""
    allowed = "" if row["sensitivity"] is None else f", at most {100 * row['sensitivity']:.3g}% false alarms"
    if _built_in(row):
        return f"the built-in thresholds of the leakage detector, version {row['version']}{allowed}"
    labels, file = row["fitted"], _printable(row["weights"])
    if not labels:
        return f"thresholds of the file {file}, which does not name its labels{allowed}"
    files = ", ".join(_printable(each) for each in labels["files"])
    named = f"{labels['labels']} labels, {_printable(labels['date'])}; file {file}"
    return f"thresholds fitted to {files} ({named}){allowed}"


def labels_of(row: Row) -> Row | None:
    """Return who labelled the examples behind the accuracy of thresholds; None for the built-in ones."""
    if _built_in(row):
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
                f"{run_id}. The same thresholds: localsim score {other} {_options(rows[0])}"
            )
    return told


def require(
    store: Store, runs: Iterable[str], weights: Weights | None, value: str | None, share: float | None = None
) -> None:
    """Raise InvalidInput for a run whose leaks were not all found with these weights and share of false alarms.

    `value` is the option that names `weights`. Without weights, those of each run are demanded with the share; without
    both, nothing is.
    """
    if weights is None and share is None:
        return
    options = [] if value is None else ["--weights", shlex.quote(value)]
    options += [] if share is None else ["--sensitivity", f"{share:g}"]
    for run_id in runs:
        wanted = (weights or weights_of(store, run_id)).at(share)
        rows = thresholds(store, run_id)
        other = [row for row in rows if _key(row) != (wanted.identity, wanted.version)]
        if other or not queries.searches(store, run_id):
            found = f"has leaks found with {name_of(other[0])}" if other else "was not searched for leaks"
            hint = f"localsim score {run_id} {' '.join(options)}"
            raise InvalidInput(f"run {run_id} {found}, not with {wanted.identity}", hint=hint)


def _key(row: Row) -> tuple[str, str]:
    return row["weights"], row["version"]


def _name(row: Row) -> str:
    """Return the name of the thresholds of a row, without the hash."""
    return BUILT_IN if row["weights"] == BUILT_IN else str(row["weights"].rpartition(" ")[0])


def _built_in(row: Row) -> bool:
    """Return True for the built-in thresholds, whatever share of false alarms they allow."""
    return options_of(_name(row))[0] == BUILT_IN


def _options(row: Row) -> str:
    """Return the options that give the thresholds of a row."""
    file, share = options_of(_printable(_name(row)))
    return f"--weights {shlex.quote(file)}" + ("" if share is None else f" --sensitivity {share:g}")


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in str(text))[:120]
