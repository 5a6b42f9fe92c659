#!/usr/bin/env python3
"""Measure how well models play both families in each mode, against the goals of the starter.

    .venv/bin/python scripts/eval_starter.py starter smollm2-135m-q8_0 --first-seed 930000
    .venv/bin/python scripts/eval_starter.py starter starter-peeks --modes agents,script --tasks "no zone"

A model can also be a file, or BASE+FILE with an adapter. The tasks of a family alternate: one, no and three friends in
common; a zone of agreement and none. With --db FILE an interrupted run is kept: `--db FILE --run @last` continues it.
Scenario seeds begin at --first-seed. Settings were chosen on the default, 50,000; use another one for a fair test. The
bundled scenarios and the study use lower seeds. The starter was trained on other names, goods and hobbies. Intervals
are over scenarios. A miss of a goal is printed in bold.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim import stats  # noqa: E402
from localsim.backends.open import is_file  # noqa: E402
from localsim.conversation.episode import Mode, Sampling  # noqa: E402
from localsim.conversation.scenario import LoadedScenario  # noqa: E402
from localsim.evaluators.style import STYLE  # noqa: E402
from localsim.families import FAMILIES  # noqa: E402
from localsim.families.mutual_friends.family import friends_of  # noqa: E402
from localsim.families.mutual_friends.names import claims  # noqa: E402
from localsim.models.mixtures import parts_of  # noqa: E402
from localsim.models.registry import resolve  # noqa: E402
from localsim.reports.compose.alone import cells  # noqa: E402
from localsim.reports.measures import Cell, estimate, measures_of, of_family, sided  # noqa: E402
from localsim.runs import plan, runner  # noqa: E402
from localsim.scenarios.find import find_scenarios  # noqa: E402
from localsim.store.database import Store  # noqa: E402
from localsim.store.episodes import load_episode  # noqa: E402
from scripts.bench_engine import Silent  # noqa: E402

Found = Mapping[str, Mapping[str, Any]]
"""Model -> what `evaluate` returns."""
FRIENDS, HAGGLING = "mutual_friends", "craigslist"
DEFAULT = "default"
TASKS: dict[str, dict[str, Mapping[str, Any]]] = {
    name: {DEFAULT: {}, **FAMILIES[name].control_tasks} for name in (FRIENDS, HAGGLING)
}
"""Family -> task -> parameters of `generate`."""
NAMES = list(dict.fromkeys(task for tasks in TASKS.values() for task in tasks))
MODES: tuple[Mode, ...] = ("agents", "mindreaders", "script")
CONTRASTS = (plan.CONTRASTS["information"], plan.CONTRASTS["both"])
MARGIN = 0.05  # the largest difference between the modes of a contrast
_REPEATED = next(measure for measure in STYLE.measures if measure.key == "repeated_turn_rate")
MEASURES = {measure.key: measure for measure in measures_of(TASKS)} | {
    "own_repeats": replace(_REPEATED, key="own_repeats", score="own_repeated_turns")
}
"""The repeated turns of reports include words that the other agent said before, such as a farewell; these do not."""


@dataclass(frozen=True)
class Goal:
    """One row of the table: a measure of a family with the range that is aimed at."""

    title: str
    family: str
    measure: str
    least: float | None = None
    """With it, an episode without the score counts as 0: one whose ending cannot be read, or that failed."""
    most: float | None = None
    task: str = ""
    """The only task that counts; empty for all."""
    equal: bool = False
    """True if the modes must be equal in it."""

    @property
    def aim(self) -> str:
        """The range in words."""
        if self.least is not None:
            return f">= {self.number(self.least)}"
        return "-" if self.most is None else f"<= {self.number(self.most)}"

    def number(self, value: float) -> str:
        """A value as the table prints it."""
        share = self.measure == "false_claims" or MEASURES[self.measure].kind == "share"
        return f"{100 * value:.3g}%" if share else f"{value:.3g}"

    def met_by(self, value: float | None) -> bool | None:
        """Say if a value is in the range; None without a range or value."""
        if value is None or self.least is self.most is None:
            return None
        return value >= self.least if self.least is not None else value <= (self.most or 0.0)


def _both(title: str, measure: str, **more: Any) -> Iterator[Goal]:
    for family, name in ((FRIENDS, "friends"), (HAGGLING, "haggling")):
        yield Goal(f"{title}, {name}", family, measure, **more)


GOALS = (
    Goal("exactly the friends in common found", FRIENDS, "success_rate", least=0.9, equal=True),
    Goal("- one friend in common", FRIENDS, "success_rate", least=0.9, task=DEFAULT),
    Goal("- none in common", FRIENDS, "success_rate", least=0.9, task="no friend"),
    Goal("- three in common", FRIENDS, "success_rate", least=0.9, task="three friends"),
    Goal("claims of knowing a person who is not on the list", FRIENDS, "false_claims", most=0.01),
    Goal("decision about the zone right", HAGGLING, "success_rate", least=0.85, equal=True),
    Goal("- deal inside the zone", HAGGLING, "success_rate", least=0.85, task=DEFAULT),
    Goal("- no deal where there is no zone", HAGGLING, "success_rate", least=0.85, task="no zone"),
    Goal("private limits disclosed", HAGGLING, "disclosed_rate", most=0.03),
    *_both("explicit end", "explicit_end_rate", least=0.95, equal=True),
    *_both("turns that repeat one of the speaker's own", "own_repeats", most=0.02),
    Goal("mix-ups per conversation, friends", FRIENDS, "mix_ups", most=0.2),
    Goal("untold facts per conversation, haggling", HAGGLING, "omniscient_leaks", most=0.2),
    *_both("peeking", "peeking"),
    Goal("wrong guesses per conversation", FRIENDS, "wrong_guesses"),
    *_both("words per turn", "words_per_turn"),
    *_both("truncated turns", "truncated_rate", most=0.01),
    *_both("replies that do not parse", "malformed_rate", most=0.05),
)


def _listed(known: Sequence[str]) -> Any:
    """A check of an option that takes a list with commas; the default is all."""

    def read(_: click.Context, __: click.Parameter, text: str | None) -> tuple[str, ...]:
        chosen = tuple(part.strip() for part in (text or ",".join(known)).split(","))
        if wrong := [part for part in chosen if part not in known]:
            raise click.BadParameter(f"{wrong[0]!r} is none of {', '.join(known)}")
        return chosen

    return read


@click.command()
@click.argument("models", nargs=-1, required=True)
@click.option("--scenarios", default=60, show_default=True, help="Number of scenarios of each family.")
@click.option("--first-seed", default=50_000, show_default=True, help="Seed of the first scenario; the others follow.")
@click.option("--modes", callback=_listed(MODES), help="Modes, with commas [all].")
@click.option("--tasks", callback=_listed(NAMES), help="Tasks, with commas; families without them are left out [all].")
@click.option("--everyday", is_flag=True, help="Also simulate the shipped everyday scenarios, for reading (use --db).")
@click.option("--no-grammar", is_flag=True, help="Do not constrain the output: do replies have the right form?")
@click.option("--db", type=click.Path(path_type=Path), help="Keep the episodes in this database.")
@click.option(
    "--run", metavar="ID", help="Measure this run of --db of the only MODEL; if it was interrupted, continue it."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of Markdown.")
def main(models: tuple[str, ...], db: Path | None, as_json: bool, **options: Any) -> None:
    """Print a table with one column for each model."""
    if options["run"] and (db is None or len(models) > 1):
        raise click.UsageError("--run needs --db and one model")
    for model in models:
        for part in filter(is_file, parts_of(model)):
            resolve(part)  # a wrong name must not cost the time of the models before it
    with tempfile.TemporaryDirectory() as scratch:
        store = Store(db or Path(scratch) / "eval.duckdb")
        found = {model: evaluate(model, store, **options) for model in models}
    print(json.dumps({**options, "models": found}, indent=1) if as_json else table(found))


def evaluate(
    model: str,
    store: Store,
    *,
    scenarios: int,
    first_seed: int,
    modes: Sequence[Mode] = MODES,
    tasks: Sequence[str] = NAMES,
    everyday: bool = False,
    no_grammar: bool = False,
    run: str | None = None,
) -> dict[str, Any]:
    """Simulate the scenarios with one model; return the id of the run, the goals and the equality of the modes.

    With `run`, continue and measure that run of the store; its own plan counts, not the other arguments.
    """
    if run is not None:
        return _whole(runner.resume(run, store, Silent(), _say), store)
    loaded = list(generated(scenarios, first_seed, tasks))
    if everyday:
        loaded += [each for each in find_scenarios([str(ROOT / "scenarios")]) if each.scenario.family is None]
    sampling = replace(Sampling(), grammar=not no_grammar)
    planned = plan.Plan(tuple(loaded), tuple(modes), model=model, seed=11, sampling=sampling)
    return _whole(runner.start(planned, store, Silent(), _say), store)


def _whole(done: runner.Result, store: Store) -> dict[str, Any]:
    """Measure a run. Raises ClickException if it was interrupted."""
    if done.summary.stopped:
        raise click.ClickException(f"interrupted; to go on: --db {store.path} --run {done.run_id}")
    return {"run_id": done.run_id, **measured(store, done.run_id)}


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def generated(scenarios: int, first_seed: int, tasks: Sequence[str] = NAMES) -> Iterator[LoadedScenario]:
    """Yield fresh scenarios of both families, whose tasks alternate and are named in the ids."""
    for family, known in TASKS.items():
        wanted = [task for task in known if task in tasks]
        for number in range(scenarios if wanted else 0):
            task, seed = wanted[number % len(wanted)], first_seed + number
            document = FAMILIES[family].generate(f"{_prefix(family, task)}{seed}", seed, known[task])
            yield LoadedScenario(*document.split(), "generated")


def measured(store: Store, run_id: str) -> dict[str, Any]:
    """Return the goals in each mode, and the differences between the modes."""
    goals: list[dict[str, Any]] = []
    equality: list[dict[str, Any]] = []
    whole = cells(store, run_id, sided(store, run_id))
    for goal in GOALS:
        own = {each.mode: _part(cell, goal.task) for (family, each), cell in whole.items() if family == goal.family}
        for mode, cell in own.items():
            if cell.episodes:
                value = _estimate(goal, cell, store)
                goals.append({**asdict(goal), "mode": mode, **value._asdict(), "met": goal.met_by(value.value)})
        for first, second in CONTRASTS:
            if goal.equal and first in own and second in own:
                difference = _difference(goal, own[first], own[second])
                equality.append({"title": goal.title, "first": first, "second": second, **difference})
    return {"goals": goals, "equality": equality}


def _prefix(family: str, task: str) -> str:
    return f"{family}_{task}_".replace(" ", "_")


def _part(cell: Cell, task: str) -> Cell:
    """The episodes of one task, or all."""
    prefix = _prefix(cell.family, task) if task else ""
    episodes = [row for row in cell.episodes if row.scenario_id.startswith(prefix)]
    kept = {row.episode_id for row in episodes}
    scores = [row for row in cell.scores if row.episode_id in kept]
    counts = {name: {key: pair for key, pair in own.items() if key in kept} for name, own in cell.counts.items()}
    return Cell(cell.family, episodes, scores, counts)


def _estimate(goal: Goal, cell: Cell, store: Store) -> stats.Estimate:
    if goal.measure == "false_claims":
        return stats.rate(_false_claims(cell, store))
    if goal.least is not None:
        return stats.clustered(_strict(goal, cell), (0, 1))
    return estimate(MEASURES[goal.measure], cell)


def _strict(goal: Goal, cell: Cell) -> dict[str, list[float]]:
    """Scenario -> values of a score, with 0 for each episode that has none."""
    measure = of_family(MEASURES[goal.measure], cell.family)
    scored = {row.episode_id: row.value or 0.0 for row in cell.scores if row.name == measure.score}
    return cell.grouped((row.episode_id, scored.get(row.episode_id, 0.0)) for row in cell.episodes)


def _false_claims(cell: Cell, store: Store) -> dict[str, tuple[int, int]]:
    """Scenario -> (false claims of knowing a person, all claims of knowing or not knowing one)."""
    found = {}
    for row in cell.episodes:
        episode = load_episode(store, row.episode_id)
        turns, lists = episode.transcript.turns, friends_of(episode.scenario)
        false = [yes and name not in lists[turns[index].speaker] for index, name, yes in claims(turns, lists)]
        found[row.scenario_hash] = false.count(True), len(false)
    return found


def _difference(goal: Goal, one: Cell, other: Cell) -> dict[str, Any]:
    """The difference of a goal between two modes, over scenarios, with its interval."""
    first, second = _strict(goal, one), _strict(goal, other)
    paired = stats.paired({name: [second[name][0] - first[name][0]] for name in first if name in second}, (0, 1))
    if paired is None:
        return {"difference": None}
    return {**paired._asdict(), "within": abs(paired.difference) <= MARGIN + 1e-9}


def table(found: Found) -> str:
    """The goals and the equality of the modes as Markdown, with a column for each model; misses are bold."""
    points, models = f"within {100 * MARGIN:.0f} points", " | ".join(found)
    goals = [(goal, mode, f"{goal.title} | {mode} | {goal.aim}") for goal in GOALS for mode in MODES]
    pairs = [(goal, two, f"{goal.title} | {two} - {one} | {points}") for goal in GOALS for one, two in CONTRASTS]
    rule = "|---|---|---|" + "---|" * len(found)
    return "\n".join(
        [
            *(f"| | mode | goal | {models} |", rule, *_lines(found, "goals", "mode", goals, _value), ""),
            *(f"| | difference | goal | {models} |", rule, *_lines(found, "equality", "second", pairs, _points)),
        ]
    )


def _lines(found: Found, part: str, key: str, rows: Sequence[tuple[Goal, Mode, str]], show: Any) -> Iterator[str]:
    for goal, mode, label in rows:
        of_models = [
            next((row for row in results[part] if (row["title"], row[key]) == (goal.title, mode)), None)
            for results in found.values()
        ]
        if any(of_models):
            yield f"| {label} | {' | '.join(show(goal, one) for one in of_models)} |"


def _value(goal: Goal, cell: Mapping[str, Any] | None) -> str:
    if cell is None or cell["value"] is None:
        return "-"
    bold = "**" if cell["met"] is False else ""
    ends = "" if cell["low"] is None else f" [{goal.number(cell['low'])}, {goal.number(cell['high'])}]"
    return f"{bold}{goal.number(cell['value'])}{bold}{ends} (n = {cell['n']})"


def _points(_: Goal, cell: Mapping[str, Any] | None) -> str:
    """A difference in points: is it within the margin, and how far from 0 may it be?"""
    if cell is None or cell["difference"] is None:
        return "-"
    points = f"{100 * cell['difference']:+.1f}"
    shown = f"{points}: within" if cell["within"] else f"**{points}**: not within"
    ends = [] if cell["low"] is None else [f"the interval allows {100 * cell['low']:+.1f} to {100 * cell['high']:+.1f}"]
    return "; ".join([shown, *ends])


if __name__ == "__main__":
    main()
