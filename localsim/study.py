"""The paper as one function (arXiv 2403.05020): families x modes x seeds, fine-tuning on scripts, and a table.

Stages: *compare* (all modes on the same scenarios and seeds), *scripts* (script episodes of other scenarios), *learn*
(a LoRA adapter on them), *finetuned* (agents with the adapter, on the scenarios and seeds of the first stage). A study
recognises each stage by its plan, so it continues where it was interrupted.

    from pathlib import Path
    from localsim.study import SIZES, Study, run_study
    results = run_study(Study(SIZES["small"], "starter", Path("study")))
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localsim.backends.open import absolute, is_file
from localsim.conversation.episode import MODES, Mode
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import Interrupted, InvalidInput
from localsim.families import FAMILIES
from localsim.finetune import require_packages
from localsim.finetune.source import chats_of_episodes, episodes_of_run
from localsim.leakage.detector import VERSION as DETECTOR
from localsim.machine.bench import Bench
from localsim.models.registry import ModelFile, embedding_folder, resolve
from localsim.reports.card import card
from localsim.reports.comparison import compare
from localsim.reports.html import examples, render
from localsim.reports.markdown import comparison
from localsim.reports.measures import published
from localsim.reports.report import report
from localsim.reports.validity.instruments import sentences as errors
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.runs.scheduler import Watcher
from localsim.store.database import Store
from localsim.store.queries.runs import runs_of_plan

Row = dict[str, Any]
Notify = Callable[[str], None]
COMPARED_FROM, LEARNT_FROM = 30_000, 40_000
"""First seeds of the generated scenarios for comparing and for training; the two sets never overlap."""
TURNS, HEARD, WRITTEN, ROW = 12, 32, 24, 450
"""Assumptions for estimates of time: turns of an episode, evaluated and generated tokens of a turn, tokens of a row of
training data.
"""
TRAINING = 0.5
"""Assumed speed of training, as a part of the speed of evaluating a prompt."""


@dataclass(frozen=True)
class Size:
    """The size of a study."""

    scenarios: int
    """Number of compared scenarios in each family."""
    episodes: int
    """Number of episodes for each scenario and mode."""
    learnt: int
    """Number of scenarios in each family whose scripts are the training data."""
    learnt_episodes: int
    tokens: int | None
    """Most tokens to train on; None means no limit."""

    def most_tokens(self) -> int:
        """Return the limit of training tokens, or an estimate of two rows of ROW tokens for every script."""
        return self.tokens or self.counts()["scripts"] * 2 * ROW

    def counts(self) -> dict[str, int]:
        """Return the number of episodes in each stage."""
        families = len(FAMILIES.own)
        compared = families * self.scenarios * self.episodes
        return {
            "compare": compared * len(MODES),
            "scripts": families * self.learnt * self.learnt_episodes,
            "finetuned": compared,
        }


def hours(size: Size, bench: Bench) -> dict[str, float]:
    """Estimate the hours of each stage from the rates of `models bench`."""
    per_turn = HEARD / bench.turn + WRITTEN / bench.decode_8
    simulating = {stage: count * TURNS * per_turn / 3600 for stage, count in size.counts().items()}
    return simulating | {"learn": size.most_tokens() / (bench.prefill * TRAINING) / 3600}


SIZES = {
    "small": Size(scenarios=6, episodes=2, learnt=75, learnt_episodes=1, tokens=150_000),
    "paper": Size(scenarios=45, episodes=5, learnt=126, learnt_episodes=5, tokens=None),
}
"""`paper` has the paper's 450 episodes per mode and its 1,252 training episodes (here 1,260), in two families."""


def compare_plan(size: Size, model: str, seed: int) -> Plan:
    """Return the plan of all modes on the same scenarios and seeds."""
    return Plan(_scenarios(COMPARED_FROM, size.scenarios), MODES, model=model, episodes=size.episodes, seed=seed)


def scripts_plan(size: Size, model: str, seed: int) -> Plan:
    """Return the plan of the scripts to train on."""
    modes: tuple[Mode, ...] = ("script",)
    return Plan(_scenarios(LEARNT_FROM, size.learnt), modes, model=model, episodes=size.learnt_episodes, seed=seed)


def finetuned_plan(size: Size, model: str, adapter: Path, seed: int) -> Plan:
    """Return the plan of agents with the adapter, on the compared scenarios and seeds."""
    modes: tuple[Mode, ...] = ("agents",)
    scenarios = _scenarios(COMPARED_FROM, size.scenarios)
    return Plan(scenarios, modes, model=f"{model}+{adapter}", episodes=size.episodes, seed=seed)


def _scenarios(first: int, count: int) -> tuple[LoadedScenario, ...]:
    scenarios = []
    for family in sorted(FAMILIES.own):
        tasks = FAMILIES[family].study_tasks
        for seed in range(first, first + count):
            task = FAMILIES[family].control_tasks.get(tasks[seed % len(tasks)], {})
            scenario, answer = FAMILIES[family].generate(f"{family}_{seed}", seed, task).split()
            scenarios.append(LoadedScenario(scenario, answer, "generated"))
    return tuple(scenarios)


@dataclass(frozen=True)
class Study:
    """A study to run: its size, model and folder."""

    size: Size
    model: str
    """Name of a GGUF model without an adapter."""
    folder: Path
    seed: int = 1

    def base(self) -> ModelFile:
        """Return the model file. Raises InvalidInput if it cannot be fine-tuned."""
        name = absolute(self.model)
        base = resolve(name) if is_file(name) else None
        if base is None or base.adapter is not None:
            raise InvalidInput("a study needs a model that can be fine-tuned: a GGUF without an adapter", where=name)
        return base


Watch = Callable[[str, int], AbstractContextManager[Watcher]]
"""A function from the title and the number of episodes of a stage to its watcher."""


def _unwatched(_title: str, _episodes: int) -> AbstractContextManager[Watcher]:
    return nullcontext(Watcher())


def _silent(_value: Any) -> None:
    """Drop a message."""


def run_study(
    study: Study, say: Notify = _silent, watch: Watch = _unwatched, training: Callable[[Any], None] = _silent
) -> Row:
    """Run or continue a study and return its results; it writes study.md, study.json and report.html to its folder.

    `watch` follows the simulations, `training` receives the `finetune.trainer.Progress` of each step. Raises
    InvalidInput, ModelMissing, BackendUnavailable (packages for fine-tuning are missing) or Interrupted.
    """
    base, name = study.base(), absolute(study.model)
    require_packages()
    embedding_folder()  # before hours of simulation, not only before the search for leaks
    study.folder.mkdir(parents=True, exist_ok=True)
    store = Store((study.folder / "study.duckdb").absolute(), waiting=say)

    def stage(title: str, plan: Plan) -> str:
        say(f"== {title}: {len(plan.specs())} episodes")
        with watch(title, len(plan.specs())) as watcher:
            return simulated(plan, store, watcher, say)

    compared = stage("compare", compare_plan(study.size, name, study.seed))
    scripts = stage("scripts", scripts_plan(study.size, name, study.seed))
    adapter = _adapter(study, store, scripts, base, say, training)
    finetuned = stage("agents, fine-tuned", finetuned_plan(study.size, name, adapter, study.seed))
    data = results(store, compared, finetuned)
    about = {"seed": study.seed, "runs": ", ".join((compared, scripts, finetuned)), **_about(base, adapter)}
    _write(study.folder, data, as_markdown(data, about), store, compared)
    say(f"wrote {study.folder / 'study.md'}, {study.folder / 'report.html'}")
    return data


def simulated(plan: Plan, store: Store, watcher: Watcher, say: Notify) -> str:
    """Simulate a plan, search it for leaks, and return the run's id; an earlier run is reused or resumed.

    Runs by other model files or prompts than the present ones are ignored.
    """
    earlier = _last_alike(plan, store)
    if earlier is None:
        done = runner.start(plan, store, watcher, say, leaks=True)
    else:
        done = runner.resume(earlier["run_id"], store, watcher, say, leaks=True)  # only scores a complete run
    if done.summary.stopped or not done.in_database:
        raise Interrupted("stopped before the end", hint="repeat the command to continue the study")
    return done.run_id


def _last_alike(plan: Plan, store: Store) -> Row | None:
    """Return the newest run of a plan by the present model file and prompts."""
    if not store.path.exists():
        return None
    store.take_in_leftovers()
    for row in runs_of_plan(store, plan.stored_forms()):
        with suppress(InvalidInput):
            runner.refuse_other_conditions(row, plan)
            return row
    return None


def _adapter(
    study: Study, store: Store, scripts: str, base: ModelFile, say: Notify, training: Callable[[Any], None]
) -> Path:
    """Return the adapter of the study, after training it if it does not exist yet."""
    from localsim.finetune import job
    from localsim.finetune.trainer import Settings, bf16_is_faster

    name = f"{scripts}-{base.sha256[:8]}"  # each size, seed and model has its own adapter
    adapter = (study.folder / f"{name}.gguf").absolute()
    if adapter.with_suffix(".md").is_file():  # written last
        say(f"== learn: {adapter.name} exists")
        return adapter
    chats = chats_of_episodes(store, episodes_of_run(store, scripts))
    data = job.material(chats, base, share=0.1, tokens=study.size.tokens, seed=1)
    say(f"== learn: {len(data.train)} chats, {data.tokens} tokens, {len(data.held_out)} held out")
    settings = Settings(bf16=bf16_is_faster())
    learning = job.Job(name, base, absolute(study.model), data, settings, {"run": scripts})
    return job.finetune(learning, training, folder=study.folder.absolute())


def _about(base: ModelFile, adapter: Path) -> Row:
    described = json.loads(adapter.with_suffix(".json").read_text(encoding="utf-8"))
    first, best = described["losses"][0]["validation"], described["best_validation_loss"]
    versions = ", ".join(f"{name} {number}" for name, number in runner.versions().items())
    return {
        "model": f"{base.name} (sha256 {base.sha256[:12]}...)",
        "trained on": f"{described['data']['rows']} chats, {described['data']['tokens']} tokens of scripts, "
        f"validation loss {_short(first)} after a quarter, {_short(best)} at best",
        "versions": f"{versions}, leakage detector {DETECTOR}",
    }


def _short(loss: float | None) -> str:
    return "-" if loss is None else f"{loss:.3f}"


def _write(folder: Path, data: Row, text: str, store: Store, compared: str) -> None:
    (folder / "study.md").write_text(text, encoding="utf-8")
    (folder / "study.json").write_text(json.dumps(data, indent=1, default=str), encoding="utf-8")
    page = report(store, compared)
    page["card"] = card(store, compared, data=page)
    (folder / "report.html").write_text(render(page, examples(store, compared)), encoding="utf-8")


# ---- the table -----------------------------------------------------------------------------------------------------


def results(store: Store, compared: str, finetuned: str) -> Row:
    """Return the results of a study: a row for each family and condition, and paired differences."""
    first = report(store, compared)
    rows = [row | {"condition": row["mode"]} for row in first["comparison"]]
    rows += [row | {"condition": "agents-ft"} for row in report(store, finetuned)["comparison"]]
    return {
        "rows": rows,
        "measures": first["measures"],
        "headline": first["headline"],
        "instruments": first["instruments"],
        "modes": compare(store, compared),
        "finetuning": [row | {"first": "agents", "second": "agents-ft"} for row in compare(store, compared, finetuned)],
        "published": published(),
    }


def as_markdown(data: Row, about: Row) -> str:
    """Return the results as Markdown, with the paper's numbers."""
    lines = ["# Study", "", *(f"- {sentence}" for sentence in data["headline"]["sentences"]), ""]
    lines += [*(f"- {key}: {value}" for key, value in about.items()), ""]
    for family in dict.fromkeys(row["family"] for row in data["rows"]):
        rows = [row for row in data["rows"] if row["family"] == family]
        lines += [f"## {family}", "", *comparison(rows, [row["condition"] for row in rows], data["measures"]), ""]
    lines += ["## Agents before and after learning from scripts", "", *_pairs(data["finetuning"]), ""]
    lines += ["## Modes, pair by pair", "", *_pairs(data["modes"]), ""]
    lines.append(
        "Intervals are 95%, over scenarios. Differences are second minus first on the same scenario and seed; p flips "
        "the signs of scenarios: uncorrected for the primary outcome, after Holm's correction for the others. "
        "*Paper*: GPT-3.5 in arXiv 2403.05020, on other scenarios: use it to compare directions, not as a target. Its "
        "first mention falls when conversations go on longer; its words per turn are over all 90 of its scenarios; its "
        "deals depend on how many bargains allow one."
    )
    lines += ["", *errors(data["instruments"])]
    return "\n".join(lines) + "\n"


def _p(row: Row) -> str:
    p = row["p"] if row["primary"] else row["p_holm"]
    return "-" if p is None else f"{p:.3f}" + (" (primary)" if row["primary"] else "")


def _pairs(rows: list[Row]) -> list[str]:
    lines = ["| family | measure | first | second | pairs | difference | p |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        interval = f" [{row['low']:+.2f}, {row['high']:+.2f}]" if row["low"] is not None else ""
        p = "by construction" if row["by_construction"] else _p(row)
        lines.append(
            f"| {row['family']} | {row['heading']} | {row['first']} | {row['second']} | {row['n']} | "
            f"{row['difference']:+.2f}{interval} | {p} |"
        )
    return lines
