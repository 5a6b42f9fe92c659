"""The results of a study: measures of each condition, over all tasks and in each, and contrasts of conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from localsim import stats
from localsim.conversation.measures import Measure
from localsim.families import in_order
from localsim.families.base import SUCCESS
from localsim.models.registry import constructed as constructed_as
from localsim.reports.comparison import compare, differences_of, values_of
from localsim.reports.compose.alone import beginning, cells
from localsim.reports.conversation import playing
from localsim.reports.document import Report
from localsim.reports.measures import Cell, as_json, estimate, measures_of, sided
from localsim.store.conditions import Condition, conditions_of
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.study import natural
from localsim.study.design import ARMS, FINE_TUNED, SOLVABLE, Study, tasks
from localsim.study.lessons import Taught
from localsim.study.premium import premiums

Row = dict[str, Any]
EVERY = "all tasks"
"""Task of the rows over all scenarios."""
CAUSES = {
    ("agents", FINE_TUNED): "learning from scripts (agents-ft)",
    ("agents", "agents-ft-agents"): "learning from agents' talks (agents-ft-agents)",
    ("agents", "agents-ft-clean"): "learning from scripts without mix-ups (agents-ft-clean)",
    ("agents-ft-agents", FINE_TUNED): "scripts instead of agents' talks",
    ("agents-ft-clean", FINE_TUNED): "scripts with mix-ups beside those without",
}
"""Pairs of conditions that a study compares beside the modes -> the cause that tells them apart."""
assert {first for _, first in CAUSES} == {arm.name for arm in ARMS}


@dataclass(frozen=True)
class Played:
    """The runs of one studied model."""

    model: str
    """Its name, for readers."""
    identity: str
    """Name and checksum of its file."""
    compared: str
    """Run of the three modes."""
    lessons: str
    """Run of the episodes to teach on."""
    taught: Taught
    arms: Mapping[str, str]
    """Arm -> run; arms that were left out are missing."""
    twin: str = ""
    """Name of the constructed twin; empty if there is none."""
    twin_run: str = ""
    judge: str = ""
    """The model that judged naturalness; empty if naturalness was left out."""
    runs: Mapping[str, str] = field(default_factory=dict)
    """Stage -> run, of all stages."""

    def conditions(self, store: Store) -> list[Condition]:
        """Return the conditions in the order of tables, each labelled with its name in the study."""
        found = [replace(each, label=each.name) for each in conditions_of(store, self.compared)]
        for arm, run_id in self.arms.items():
            found += [replace(each, label=arm) for each in conditions_of(store, run_id)]
        return found

    def constructed(self, store: Store) -> list[Condition]:
        """Return the conditions of the twin."""
        if not self.twin_run:
            return []
        return [
            replace(each, label=f"{each.name}, {self.twin} (constructed)")
            for each in conditions_of(store, self.twin_run)
        ]

    def pair(self) -> dict[str, str]:
        """Return the runs of all modes by name: the model's, and that of its twin, if it has one."""
        twin = {f"{self.twin} (constructed)": self.twin_run} if self.twin_run else {}
        return {self.model: self.compared, **twin}


def results_of(store: Store, study: Study, played: Played, first: Report) -> Row:
    """Return the results of one model as JSON; `first` is the report of its modes."""
    conditions, constructed = played.conditions(store), played.constructed(store)
    judged = natural.pairs(conditions)
    task_of = {scenario: task or SOLVABLE for scenario, task in tasks(study.size).items()}
    data: Row = {
        "model": played.model,
        "identity": played.identity,
        "runs": dict(played.runs),
        "conditions": [{**vars(each), "constructed": each in constructed} for each in (*conditions, *constructed)],
        "measures": [as_json(measure) for measure in _measures(store, played)],
        "rows": rows_of(store, (*conditions, *constructed), task_of, _measures(store, played)),
        "modes": compare(store, played.compared),
        "premiums": premiums(store, played.pair()),
        "arms": contrasts(store, conditions, task_of),
        "lessons": dict(played.taught.about),
        "playing": playing.of_conditions(store, (*conditions, *constructed), "this study").as_json(),
        "headline": first.headline.as_json(),
        "instruments": first.instruments,
        "warnings": first.warnings,
        "naturalness": natural.rates(store, judged, played.judge) if played.judge else [],
        "judge": played.judge,
        "people": natural.people(store, judged),
        "ask_people": natural.command(judged, study.folder / "study.duckdb"),
        "twin": None,
    }
    if constructed:
        twin = beginning(store, played.twin_run)
        modes = compare(store, played.twin_run)
        made = f"constructed: {constructed_as(played.twin) or 'a control'}"
        data["twin"] = {"name": played.twin, "made": made, "headline": twin.headline.as_json(), "modes": modes}
    return data


def _measures(store: Store, played: Played) -> list[Measure]:
    scores = queries.scores(store, played.compared)
    families = dict.fromkeys(row["family"] for row in scores if row["family"])
    return measures_of(families, {row["evaluator"] for row in scores})


# ---- measures ------------------------------------------------------------------------------------------------------


def rows_of(
    store: Store, conditions: Sequence[Condition], task_of: Mapping[str, str], measures: Sequence[Measure]
) -> list[Row]:
    """Return a row for each family, task and condition, first of all tasks; `task_of` is keyed by scenario."""
    rows: list[Row] = []
    by_run = {
        run_id: cells(store, run_id, sided(store, run_id, queries.scores(store, run_id)))
        for run_id in _runs(conditions)
    }
    for condition in conditions:
        for cell in by_run[condition.run_id].values():
            if not _is_of(cell, condition):
                continue
            of_cell = {task_of[row["scenario_hash"]] for row in cell.episodes}
            for task in (EVERY, *sorted(of_cell, key=lambda name: (name != SOLVABLE, name))):
                part = cell if task == EVERY else within_task(cell, task, task_of)
                rows.append({"family": cell.family, "task": task, "condition": condition.label, **_row(part, measures)})
    order = in_order(row["family"] for row in rows)
    return sorted(rows, key=lambda row: order.index(row["family"]))


def _runs(conditions: Sequence[Condition]) -> list[str]:
    return list(dict.fromkeys(condition.run_id for condition in conditions))


def _is_of(cell: Cell, condition: Condition) -> bool:
    """Return True if a cell of the condition's run has the condition's episodes."""
    episode = cell.episodes[0]
    return (episode["mode"], episode["model"]) == (condition.mode, condition.model)


def within_task(cell: Cell, task: str, task_of: Mapping[str, str]) -> Cell:
    """Return the part of a cell whose scenarios have a task."""
    episodes = [row for row in cell.episodes if task_of[row["scenario_hash"]] == task]
    ids = {row["episode_id"] for row in episodes}
    scores = [row for row in cell.scores if row["episode_id"] in ids]
    counts = {name: {each: own[each] for each in own if each in ids} for name, own in cell.counts.items()}
    return Cell(cell.family, episodes, scores, counts)


def _row(cell: Cell, measures: Sequence[Measure]) -> Row:
    row: Row = {"n": len(cell.episodes), "scenarios": len({each["scenario_hash"] for each in cell.episodes})}
    row |= {"completed": cell.count("completed"), "failed": cell.count("failed")}
    for measure in measures:
        found = estimate(measure, cell)
        for key, value in zip((measure.key, f"{measure.key}_low", f"{measure.key}_high"), found[:3], strict=True):
            row[key] = None if value is None else round(value, 4)
    return row


# ---- contrasts -----------------------------------------------------------------------------------------------------


def contrasts(store: Store, conditions: Sequence[Condition], task_of: Mapping[str, str]) -> list[Row]:
    """Return the paired differences of CAUSES in every family, task and compared measure: second minus first.

    Success over all tasks comes first; its p are corrected together (Holm), and those of all other rows together.
    """
    by_label = {condition.label: condition for condition in conditions}
    pairs = [pair for pair in CAUSES if pair[0] in by_label and pair[1] in by_label]
    found = [
        {"family": family, "task": task, "first": first, "second": second, **row}
        for family, measure, by_condition in values_of(store, _runs(conditions))
        for first, second in pairs
        for task, row in _by_task(measure, by_condition[by_label[first]], by_condition[by_label[second]], task_of)
    ]
    groups = ([row for row in found if row["primary"]], [row for row in found if not row["primary"]])
    for rows in groups:
        for row, p in zip(rows, stats.holm([row["p"] for row in rows]), strict=True):
            row["p_holm"] = p
    return [*groups[0], *groups[1]]


def _by_task(
    measure: Measure, first: Mapping[Any, float], second: Mapping[Any, float], task_of: Mapping[str, str]
) -> Iterator[tuple[str, Row]]:
    """Yield the difference over all tasks and within each; a measure that is 0 by construction yields nothing."""
    if "agents" in measure.structural_zero:
        return
    differences = differences_of(dict(first), dict(second))
    parts = {EVERY: differences}
    for scenario, values in differences.items():
        parts.setdefault(task_of[scenario], {})[scenario] = values
    for task in (EVERY, *sorted(set(parts) - {EVERY}, key=lambda name: (name != SOLVABLE, name))):
        result = stats.paired(parts[task], measure.bounds, measure.is_number)
        if result is not None:
            primary = measure.key == SUCCESS.key and task == EVERY
            named = {"measure": measure.key, "heading": measure.heading, "kind": measure.kind, "primary": primary}
            yield task, {**named, **result._asdict(), "p_holm": None, "by_construction": False}
