"""The paper in one command (arXiv 2403.05020): families x modes x seeds, fine-tuning on scripts, agents again, a table.

Stages: *compare* (all modes on the same scenarios and seeds), *scripts* (script episodes of other scenarios), *learn*
(a LoRA adapter on them), *finetuned* (agents with the adapter, on the scenarios and seeds of the first stage). A stage
is found again by its plan, so a study goes on where it was interrupted.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localsim.conversation.episode import MODES, Mode
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import Interrupted, InvalidInput
from localsim.evaluators import leaks
from localsim.families import FAMILIES
from localsim.machine.convert import Bench
from localsim.reports.comparison import compare
from localsim.reports.markdown import comparison
from localsim.reports.paper import PAPER
from localsim.reports.report import report
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.runs.scheduler import Watcher
from localsim.store.database import Store

Row = dict[str, Any]
Say = Callable[[str], None]
COMPARED_FROM, LEARNT_FROM = 30_000, 40_000
"""First seeds of the generated scenarios; those that are learnt from are never compared on."""
TURNS, HEARD, WRITTEN, ROW = 12, 32, 24, 450
"""What is assumed where time is estimated: turns of an episode, tokens of a turn that are heard and written, tokens of
a training row."""
TRAINING = 0.5
"""Speed of training as a share of that of a prompt, where time is estimated."""


@dataclass(frozen=True)
class Size:
    """How much a study simulates."""

    scenarios: int
    """Of each family, in every mode."""
    episodes: int
    """Of each scenario and mode."""
    learnt: int
    """Scenarios of each family whose scripts are learnt from."""
    learnt_episodes: int
    tokens: int | None
    """Most tokens to train on."""

    def most_tokens(self) -> int:
        """To train on: the bound, else two rows of ROW tokens for every script."""
        return self.tokens or self.counts()["scripts"] * 2 * ROW

    def counts(self) -> dict[str, int]:
        """Episodes of each stage."""
        families = len(FAMILIES.own)
        compared = families * self.scenarios * self.episodes
        return {
            "compare": compared * len(MODES),
            "scripts": families * self.learnt * self.learnt_episodes,
            "finetuned": compared,
        }


def hours(size: Size, bench: Bench) -> dict[str, float]:
    """How long each stage will take, by the rates of `models bench`."""
    per_turn = HEARD / bench.turn + WRITTEN / bench.decode_8
    found = {stage: count * TURNS * per_turn / 3600 for stage, count in size.counts().items()}
    return found | {"learn": size.most_tokens() / (bench.prefill * TRAINING) / 3600}


SIZES = {
    "small": Size(scenarios=6, episodes=2, learnt=75, learnt_episodes=1, tokens=150_000),
    "paper": Size(scenarios=45, episodes=5, learnt=126, learnt_episodes=5, tokens=None),
}
"""`paper` has the paper's 450 episodes a mode and its 1,252 training episodes (here 1,260), in two families."""


def compare_plan(size: Size, model: str, seed: int) -> Plan:
    """All modes on the same scenarios and seeds."""
    return Plan(_scenarios(COMPARED_FROM, size.scenarios), MODES, model=model, episodes=size.episodes, seed=seed)


def scripts_plan(size: Size, model: str, seed: int) -> Plan:
    """Scripts to learn from."""
    modes: tuple[Mode, ...] = ("script",)
    return Plan(_scenarios(LEARNT_FROM, size.learnt), modes, model=model, episodes=size.learnt_episodes, seed=seed)


def finetuned_plan(size: Size, model: str, adapter: Path, seed: int) -> Plan:
    """Agents with the adapter, on what was compared."""
    modes: tuple[Mode, ...] = ("agents",)
    scenarios = _scenarios(COMPARED_FROM, size.scenarios)
    return Plan(scenarios, modes, model=f"{model}+{adapter}", episodes=size.episodes, seed=seed)


def _scenarios(first: int, count: int) -> tuple[LoadedScenario, ...]:
    found = []
    for family in sorted(FAMILIES.own):
        for seed in range(first, first + count):
            scenario, answer = FAMILIES[family].generate(f"{family}_{seed}", seed, {}).split()
            found.append(LoadedScenario(scenario, answer, "generated"))
    return tuple(found)


def simulated(plan: Plan, store: Store, watcher: Watcher, say: Say) -> str:
    """The run of a plan: the one that is there, resumed if it was interrupted, else a new one; with its leaks.

    A run by another model file or wording than the ones that are here now is left alone.
    """
    found = _last_alike(plan, store)
    if found is not None and found["status"] == "finished":
        run_id = str(found["run_id"])
    else:
        done = runner.resume(found["run_id"], store, watcher, say) if found else runner.start(plan, store, watcher, say)
        if done.summary.stopped or not done.in_database:
            raise Interrupted("stopped before the end", hint="the same command goes on with the study")
        run_id = done.run_id
    leaks.score_run(store, run_id, say)  # what has been scored is not scored again
    return run_id


def _last_alike(plan: Plan, store: Store) -> Row | None:
    """The latest run of a plan that was made under the conditions of now."""
    if not store.path.exists():
        return None
    store.take_in_leftovers()
    for row in store.rows("SELECT * FROM runs WHERE plan_json = ? ORDER BY started_utc DESC", [plan.as_json()]):
        with suppress(InvalidInput):
            runner.refuse_other_conditions(row, plan)
            return row
    return None


# ---- the table -----------------------------------------------------------------------------------------------------


def results(store: Store, compared: str, finetuned: str) -> Row:
    """What a study came to: a row for each family and condition, and agents before and after, pair by pair."""
    rows = [row | {"condition": row["mode"]} for row in report(store, compared)["comparison"]]
    rows += [row | {"condition": "agents-ft"} for row in report(store, finetuned)["comparison"]]
    return {
        "rows": rows,
        "modes": compare(store, compared),
        "finetuning": [row | {"first": "agents", "second": "agents-ft"} for row in compare(store, compared, finetuned)],
        "published": PAPER,
    }


def as_markdown(data: Row, about: Row) -> str:
    """The results for people, with the paper's numbers beside them."""
    lines = ["# Study", "", *(f"- {key}: {value}" for key, value in about.items()), ""]
    for family in dict.fromkeys(row["family"] for row in data["rows"]):
        rows = [row for row in data["rows"] if row["family"] == family]
        lines += [f"## {family}", "", *comparison(rows, [row["condition"] for row in rows]), ""]
    lines += ["## Agents before and after learning from scripts", "", *_pairs(data["finetuning"]), ""]
    lines += ["## Modes, pair by pair", "", *_pairs(data["modes"]), ""]
    lines.append(
        "Intervals are 95%. Differences are second minus first on the same scenario and seed; p after Holm's "
        "correction over the table. *Paper*: GPT-3.5 in arXiv 2403.05020, other scenarios and a much larger model: "
        "a mark to read the direction by, not a target."
    )
    return "\n".join(lines) + "\n"


def _pairs(rows: list[Row]) -> list[str]:
    lines = ["| family | measure | first | second | pairs | difference | p (Holm) |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        interval = f" [{row['low']:+.2f}, {row['high']:+.2f}]" if row["low"] is not None else ""
        p = "-" if row["p_holm"] is None else f"{row['p_holm']:.3f}"
        lines.append(
            f"| {row['family']} | {row['measure'].replace('_', ' ')} | {row['first']} | {row['second']} | {row['n']} | "
            f"{row['difference']:+.2f}{interval} | {p} |"
        )
    return lines
