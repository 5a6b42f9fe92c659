"""People beside the modes of a run: the rows and curves of imported conversations in another run's report.

Only families that the run has are added. The name of each row says if the people talked on the run's own scenarios;
where they did not, levels can be set side by side, but nothing is paired.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from localsim.conversation.episode import PEOPLE
from localsim.errors import InvalidInput
from localsim.families import EVERYDAY
from localsim.reports.figures.beside import share_columns, with_curves
from localsim.reports.report import report
from localsim.store.database import Store
from localsim.store.queries import reports as queries

Row = dict[str, Any]


def with_people(store: Store, data: Row, runs: Sequence[str]) -> Row:
    """Return a report with the rows, curves and warnings of runs of people. Raises InvalidInput for other runs."""
    data = {**data, "comparison": [*data["comparison"]], "curves": [*data["curves"]], "warnings": [*data["warnings"]]}
    data |= {"measures": [*data["measures"]], "remarks": [*data.get("remarks", [])], "people": []}
    for run_id in dict.fromkeys(runs):
        if run_id == data["run"]["run_id"]:
            hint = "give the run of the models first, and a run of people with --people"
            raise InvalidInput(f"run {run_id} is the run of this report", where="--people", hint=hint)
        _add(store, data, run_id)
    return data


def _add(store: Store, data: Row, run_id: str) -> None:
    theirs = report(store, run_id)
    if theirs["run"]["plan"]["modes"] != [PEOPLE]:
        hint = "localsim import talks FILE makes a run of people"
        raise InvalidInput(f"run {run_id} holds no conversations of people", where="--people", hint=hint)
    families = list(dict.fromkeys(row["family"] for row in data["comparison"]))
    rows = [row for row in theirs["comparison"] if row["family"] in families]
    if not rows:
        has = ", ".join(dict.fromkeys(row["family"] for row in theirs["comparison"]))
        hint = f"the run has {', '.join(families)}; the people have {has}"
        raise InvalidInput(f"run {run_id} has no family of run {data['run']['run_id']}", where="--people", hint=hint)
    which = _which_scenarios(store, data["run"]["run_id"], run_id)
    share_columns(data, rows, theirs["measures"])
    for row in rows:
        words = which[row["family"]]
        name = words if row["model"] == PEOPLE else f"{row['model']} ({words})"
        data["comparison"].append({**row, "model": name, "people_run": run_id})
    data["curves"] = with_curves(data["curves"], [each for each in theirs["curves"] if each["family"] in families])
    data["people"].append({"run_id": run_id, "scenarios": {row["family"]: which[row["family"]] for row in rows}})
    text = _warning(theirs["run"], rows, which)
    data["warnings"].append(text)
    data["remarks"].append({"text": text, "beside": True})


def _which_scenarios(store: Store, run_id: str, people_run: str) -> dict[str, str]:
    """Return family -> words that say how many of the people's scenarios are the run's."""
    own = {row["scenario_hash"] for row in queries.episodes(store, run_id)}
    theirs: dict[str, set[str]] = defaultdict(set)
    for row in queries.episodes(store, people_run):
        theirs[row["family"] or EVERYDAY.name].add(row["scenario_hash"])
    found = {}
    for family, hashes in theirs.items():
        shared = len(hashes & own)
        part = f"{shared} of {len(hashes)} scenarios the same"
        found[family] = "other scenarios" if not shared else "same scenarios" if hashes <= own else part
    return found


def _warning(run: Row, rows: Sequence[Row], which: dict[str, str]) -> str:
    source = next(iter(run["models"].values()))["source"]
    parts = ", ".join(f"{row['completed']} in {row['family']} ({which[row['family']]})" for row in rows)
    pairing = (
        " Where the scenarios are others, set levels side by side and test nothing."
        if any(which[row["family"]] != "same scenarios" for row in rows)
        else f" Pair by pair: localsim compare RUN {run['run_id']}."
    )
    return f"People, imported from {source}: {parts} conversations.{pairing}"
