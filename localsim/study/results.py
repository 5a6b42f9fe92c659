"""The results of a study: measures of each condition, over all tasks and in each, and contrasts of conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from localsim.conversation.measures import Measure
from localsim.families import in_order
from localsim.families.base import SUCCESS
from localsim.models.registry import constructed as constructed_as
from localsim.reports.comparison import Compared, compare
from localsim.reports.compose.alone import beginning, cells, report
from localsim.reports.evidence import playing
from localsim.reports.evidence.playing import Playing
from localsim.reports.measures import Cell, number, sided
from localsim.reports.results import Result
from localsim.reports.validity.findings import Headline
from localsim.reports.validity.instruments import Error
from localsim.reports.validity.judges import Rate
from localsim.store.conditions import Condition, conditions_of
from localsim.store.database import Store
from localsim.study import goals, natural
from localsim.study.design import FAILS, FINE_TUNED, SOLVABLE, SUCCEEDS, Study, tasks
from localsim.study.differences import EVERY, Contrast, Premium, contrasts, premiums, tasks_in_order
from localsim.study.lessons import Lesson, Taught


@dataclass(frozen=True)
class StudiedModel:
    """The runs of one studied model."""

    model: str
    """Its name, for readers."""
    identity: str
    """Name and checksum of its file."""
    runs: Mapping[str, str]
    """Stage -> run: compare, the twin's name, teach, and each arm that was taught."""
    taught: Taught
    twin: str = ""
    """Name of the constructed twin; empty if there is none."""
    judge: str = ""
    """The model that judged goals and naturalness; empty if they were not judged."""

    @property
    def scored(self) -> list[str]:
        """The runs whose conversations a judge scores: those of the paper's conditions."""
        return [self.runs[stage] for stage in ("compare", FINE_TUNED) if stage in self.runs]

    def conditions(self, store: Store) -> list[Condition]:
        """Return the conditions in the order of tables, each labelled with its name in the study."""
        found = [replace(each, label=each.name) for each in conditions_of(store, self.runs["compare"])]
        for arm in self.taught.models:
            found += [replace(each, label=arm) for each in conditions_of(store, self.runs[arm])]
        return found

    def constructed(self, store: Store) -> list[Condition]:
        """Return the conditions of the twin."""
        found = conditions_of(store, self.runs[self.twin]) if self.twin else []
        return [replace(each, label=f"{each.name}, {self.twin} (constructed)") for each in found]

    def pair(self) -> dict[str, str]:
        """Return the runs of all modes by name: the model's, and that of its twin, if it has one."""
        twin = {f"{self.twin} (constructed)": self.runs[self.twin]} if self.twin else {}
        return {self.model: self.runs["compare"], **twin}


@dataclass(frozen=True)
class Labelled(Condition):
    """A condition with its label in the study."""

    constructed: bool = False
    """True for those of the twin."""


@dataclass(frozen=True)
class TaskResult(Result):
    """The conversations of one family, task and condition."""

    task: str = ""

    @property
    def success(self) -> str:
        """The share of successes with its interval."""
        return str(self.number(SUCCESS.key))

    def as_json(self, _measures: Iterable[Measure] = ()) -> dict[str, Any]:
        """Return a row of `rows` in `study.json`."""
        names = ("family", "task", "condition", "n", "scenarios", "completed", "failed")
        row = {name: getattr(self, name) for name in names}
        for key, found in self.numbers.items():
            row |= {key: found.value, f"{key}_low": found.low, f"{key}_high": found.high}
        return row


@dataclass(frozen=True)
class Twin:
    """The constructed twin of a model, and its modes."""

    name: str
    made: str
    headline: Headline
    modes: Sequence[Compared]

    @property
    def title(self) -> str:
        """Its name with the note that it is constructed."""
        return f"{self.name} ({self.made})"


@dataclass(frozen=True)
class Results:
    """What a study finds about one model: `models` in `study.json`."""

    model: str
    identity: str
    runs: Mapping[str, str]
    conditions: Sequence[Labelled]
    measures: Sequence[Measure]
    rows: Sequence[TaskResult]
    modes: Sequence[Compared]
    premiums: Sequence[Premium]
    arms: Sequence[Contrast]
    lessons: Mapping[str, Lesson]
    playing: Playing
    headline: Headline
    instruments: Sequence[Error]
    warnings: Sequence[str]
    judged: goals.Judged | None
    naturalness: Sequence[Rate]
    judge: str
    people: Sequence[str]
    ask_people: str
    """The command that asks people."""
    twin: Twin | None


def results_of(store: Store, study: Study, played: StudiedModel) -> Results:
    """Return the results of one model."""
    conditions, constructed = played.conditions(store), played.constructed(store)
    every, judged = [*conditions, *constructed], natural.pairs(conditions)
    task_of = {scenario: task or SOLVABLE for scenario, task in tasks(study.size).items()}
    first = report(store, played.runs["compare"])
    return Results(
        model=played.model,
        identity=played.identity,
        runs=played.runs,
        conditions=[Labelled(**vars(each), constructed=each in constructed) for each in every],
        measures=first.measures,
        rows=rows_of(store, every, task_of, first.measures),
        modes=compare(store, played.runs["compare"]),
        premiums=premiums(store, played.pair()),
        arms=contrasts(store, conditions, task_of),
        lessons=played.taught.lessons,
        playing=playing.of_conditions(store, every, "this study"),
        headline=first.headline,
        instruments=first.instruments,
        warnings=first.warnings,
        judged=goals.judged(store, played.scored, [played.runs[each] for each in (SUCCEEDS, FAILS)], played.judge)
        if played.judge
        else None,
        naturalness=natural.rates(store, judged, played.judge) if played.judge else [],
        judge=played.judge,
        people=natural.people(store, judged),
        ask_people=natural.command(judged, study.folder / "study.duckdb"),
        twin=_twin(store, played.twin, played.runs[played.twin]) if played.twin else None,
    )


def _twin(store: Store, name: str, run_id: str) -> Twin:
    made = f"constructed: {constructed_as(name) or 'a control'}"
    return Twin(name, made, beginning(store, run_id).headline, compare(store, run_id))


def rows_of(
    store: Store, conditions: Sequence[Condition], task_of: Mapping[str, str], measures: Sequence[Measure]
) -> list[TaskResult]:
    """Return the results of each family, task and condition, first of all tasks; `task_of` is keyed by scenario."""
    found: dict[Any, Cell] = {}
    for run_id in dict.fromkeys(condition.run_id for condition in conditions):
        found |= cells(store, run_id, sided(store, run_id))
    rows = []
    for condition in conditions:
        for cell in (cell for (_, own), cell in found.items() if own == condition):
            for task in tasks_in_order(task_of[row.scenario_hash] for row in cell.episodes):
                part = cell if task == EVERY else within_task(cell, task, task_of)
                rows.append(_result(part, task, condition, measures))
    order = in_order(row.family for row in rows)
    return sorted(rows, key=lambda row: order.index(row.family))


def within_task(cell: Cell, task: str, task_of: Mapping[str, str]) -> Cell:
    """Return the part of a cell whose scenarios have a task."""
    episodes = [row for row in cell.episodes if task_of[row.scenario_hash] == task]
    ids = {row.episode_id for row in episodes}
    scores = [row for row in cell.scores if row.episode_id in ids]
    counts = {name: {each: own[each] for each in own if each in ids} for name, own in cell.counts.items()}
    return Cell(cell.family, episodes, scores, counts)


def _result(cell: Cell, task: str, condition: Condition, measures: Sequence[Measure]) -> TaskResult:
    return TaskResult(
        family=cell.family,
        mode=condition.mode,
        model="",
        condition=condition.label,
        n=len(cell.episodes),
        scenarios=len({each.scenario_hash for each in cell.episodes}),
        completed=cell.count("completed"),
        failed=cell.count("failed"),
        numbers={measure.key: replace(number(measure, cell), alike=0) for measure in measures},
        task=task,
    )
