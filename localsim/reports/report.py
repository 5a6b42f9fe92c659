"""The report of a run: a row for each family x mode x model with intervals, warnings, and leaks to quote.

Columns are the measures of `reports.measures`; writing HTML is `reports.html`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from localsim import families
from localsim.annotation.agreement import agreement
from localsim.conversation.episode import MODES
from localsim.conversation.measures import Measure
from localsim.conversation.scenario import AnswerKey
from localsim.evaluators.leaks import EVALUATOR as LEAKAGE
from localsim.families import EVERYDAY, family_of
from localsim.leakage.detector import Weights
from localsim.reports.curves import curves
from localsim.reports.judges import rates, reliability
from localsim.reports.measures import Cell, as_json, estimate, measures_of
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.store.queries.runs import run_row

Row = dict[str, Any]
Key = tuple[str, str, str]
"""Family, mode, model."""

QUOTED = 12
"""Leaks that a report quotes."""


def report(store: Store, run_id: str) -> Row:
    """Everything that `report --json` prints, but for the simulation card, which is made from it."""
    run = run_row(store, run_id)
    scores = queries.scores(store, run_id)
    cells = _cells(store, run_id, scores)
    evaluators = {row["evaluator"] for row in scores}
    measures = measures_of(dict.fromkeys(family for family, _, _ in cells), evaluators)
    comparison = [_comparison_row(key, cell, measures) for key, cell in cells.items()]
    return {
        "run": _run_json(run, store, run_id),
        "measures": [as_json(measure) for measure in measures],
        "comparison": comparison,
        "curves": curves(store, run_id),
        "leaks": queries.leaks(store, run_id),
        "detector": detector_accuracy() if LEAKAGE in evaluators else None,
        "warnings": _warnings(run, comparison),
        "judges": reliability(store, run_id),
        "naturalness": rates(store, run_id),
        "annotations": agreement(store, run_id),
        "parser_accuracy": families.accuracy(),
    }


def foremost(leaks: Iterable[Row]) -> list[Row]:
    """The leaks to quote: omniscient ones first, then early ones, then the surest; at most QUOTED."""
    ordered = sorted(leaks, key=lambda leak: (leak["kind"] != "omniscient", not leak["early"], -leak["probability"]))
    return ordered[:QUOTED]


def detector_accuracy() -> Row:
    """How often the leakage detector is right on labelled talks about facts that it was not trained on."""
    return dict(Weights.read().accuracy)


def _cells(store: Store, run_id: str, scores: list[Row]) -> dict[Key, Cell]:
    """The cells in the order of a report: by family, mode and model."""
    sides = _sides(store, run_id)
    episodes: dict[Key, list[Row]] = defaultdict(list)
    for row in queries.episodes(store, run_id):
        episodes[_key(row)].append(row)
    scored: dict[Key, list[Row]] = defaultdict(list)
    for row in scores:
        scored[_key(row)].append({**row, "side": sides(row)})
    counts = {_key(row): row for row in queries.counts(store, run_id)}
    ordered = sorted(episodes, key=lambda key: (key[0], MODES.index(key[1]), key[2]))
    return {
        key: Cell(
            family=key[0],
            episodes=episodes[key],
            scores=scored[key],
            **{name: counts[key][name] or 0 for name in ("replies", "malformed", "turns", "truncated")},
        )
        for key in ordered
    }


def _key(row: Row) -> Key:
    return row["family"] or EVERYDAY.name, row["mode"], row["model"]


def _sides(store: Store, run_id: str) -> Callable[[Row], str]:
    """A function from a score's row to the side of its agent."""
    keys = {
        episode_id: AnswerKey.from_json(json.loads(text)) for episode_id, text in queries.answers(store, run_id).items()
    }

    def side(row: Row) -> str:
        return family_of(row["family"]).side(row["agent"], keys[row["episode_id"]]) if row["agent"] else ""

    return side


def _comparison_row(key: Key, cell: Cell, measures: Iterable[Measure]) -> Row:
    family, mode, model = key
    row: Row = {"family": family, "mode": mode, "model": model, "n": len(cell.episodes)}
    row |= {"completed": cell.count("completed"), "failed": cell.count("failed")}
    for measure in measures:
        found = estimate(measure, cell)
        row[measure.key] = _rounded(found.value)
        row[f"{measure.key}_low"], row[f"{measure.key}_high"] = _rounded(found.low), _rounded(found.high)
        if measure.kind == "position":
            row[f"{measure.key}_n"] = len(cell.values(measure))
    return row


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _run_json(run: Row, store: Store, run_id: str) -> Row:
    tokens = queries.tokens(store, run_id)
    return {
        "run_id": run_id,
        "status": run["status"],
        "started_utc": run["started_utc"].isoformat(),
        "finished_utc": run["finished_utc"].isoformat() if run["finished_utc"] else None,
        "seed": run["seed"],
        "repro": run["repro"],
        "parallel": run["parallel"],
        "episodes_planned": run["episodes_planned"],
        "models": json.loads(run["models_json"]),
        "versions": json.loads(run["versions_json"]),
        "plan": json.loads(run["plan_json"]),
        "scenarios": queries.scenario_paths(store, run_id),
        "tokens_generated": int(tokens["generated"]),
        "tokens_evaluated": int(tokens["evaluated"]),
    }


def _warnings(run: Row, comparison: list[Row]) -> list[str]:
    """What a reader must know before believing the table, in plain words."""
    found = []
    models = json.loads(run["models_json"])
    scripted = [name for name, identity in models.items() if identity["kind"] == "scripted"]
    if scripted:
        found.append(f"{', '.join(scripted)}: played by a script, not by a language model.")
    if any(identity.get("file", "").startswith("SmolLM2-135M") for identity in models.values()):
        found.append("SmolLM2-135M is a very small model: good for trying the tool, not for conclusions about people.")
    if any(identity.get("file", "").startswith("localsim-starter") for identity in models.values()):
        found.append(
            "The starter is a very small model that has learnt from scripted talks to hold these conversations: for "
            "teaching and for trying the tool, not for conclusions about people. It was shown no omniscient behaviour."
        )
    remote = sorted({identity["url"] for identity in models.values() if identity["kind"] == "remote"})
    if remote:
        found.append(f"Remote: text was written at {', '.join(remote)}; weights and seeds there are not verified.")
    total, done = run["episodes_planned"], sum(row["completed"] + row["failed"] for row in comparison)
    if done < total:
        found.append(f"{total - done} of {total} planned episodes are missing (localsim resume {run['run_id']}).")
    failed = sum(row["failed"] for row in comparison)
    if failed:
        found.append(f"{failed} of {done} episodes failed; rates are of completed ones.")
    small = min((row["completed"] for row in comparison if row["completed"]), default=30)
    if small < 30:
        found.append(f"As few as {small} completed episodes a cell: read the intervals, not the differences.")
    found += _baselines(comparison)
    return found


def _baselines(comparison: Iterable[Row]) -> Iterator[str]:
    """A warning for each family whose scripted baseline the run does not hold."""
    models: dict[str, str] = defaultdict(str)
    for row in comparison:
        models[row["family"]] += f" {row['model']}"
    for name, played in models.items():
        baseline = family_of(name).baseline
        if baseline is not None and baseline.player not in played:
            yield baseline.warning
