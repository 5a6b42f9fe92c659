"""The design of a study: its sizes, its arms, and the plan and the expected hours of each stage.

The scenarios to compare and those to teach on never overlap. Tasks alternate, so that half of the scenarios have no
solution.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from localsim.backends.open import absolute, is_file
from localsim.conversation.episode import Mode
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import InvalidInput, ModelMissing
from localsim.families import FAMILIES
from localsim.machine.bench import Bench
from localsim.models.registry import ModelFile, resolve
from localsim.runs.plan import Plan

COMPARED_FROM, LEARNT_FROM = 30_000, 40_000
"""First seeds of the generated scenarios for comparing and for training; the two sets never overlap."""
MODES: tuple[Mode, ...] = ("script", "agents", "mindreaders")
"""The modes that a study compares."""
TURNS, HEARD, WRITTEN, ROW = 12, 32, 24, 450
"""Assumptions for estimates: turns of an episode, evaluated and generated tokens of a turn, tokens of a training row.
"""
AUTO, NONE = "auto", "none"
"""Values of a study's twin and judge: chosen by rule, and left out."""
SOLVABLE = "with a solution"
"""Name of the default task beside tasks that lack something."""
HELD_OUT = 0.1
"""Share of the scenarios of each task that an arm is validated on and not trained on: the same ones for all arms."""


@dataclass(frozen=True)
class Arm:
    """One way to teach agents; each arm has its own adapter, from equally many tokens and targets of each task."""

    name: str
    taught_on: str
    mode: Mode
    """Mode of the episodes that it is taught on."""
    clean: bool = False
    """True if episodes are left out in which an agent used something that it had not been told."""


FINE_TUNED = "agents-ft"
"""Name of the arm that the paper has."""
ARMS = (
    Arm(FINE_TUNED, "scripts", "script"),
    Arm("agents-ft-agents", "agents' talks", "agents"),
    Arm("agents-ft-clean", "scripts without untold facts", "script", clean=True),
)
"""The first arm repeats the paper's; the others are its controls."""
JUDGED = (
    ("script", "agents"),
    ("mindreaders", "agents"),
    *((arm.name, "agents") for arm in ARMS),
    ("script", FINE_TUNED),
)
"""The pairs of conditions that are judged, by label."""
TAUGHT_IN: tuple[Mode, ...] = tuple(dict.fromkeys(arm.mode for arm in ARMS))


@dataclass(frozen=True)
class Size:
    """The size of a study."""

    scenarios: int
    """Number of compared scenarios in each family."""
    episodes: int
    """Number of episodes for each scenario and mode."""
    learnt: int
    """Number of scenarios in each family whose episodes are the training data."""
    learnt_episodes: int
    tokens: int | None
    """Most tokens to train each arm on; None means no limit."""

    def most_tokens(self) -> int:
        """Return the limit of training tokens of an arm, or an estimate of two rows of ROW tokens for each episode."""
        most = len(FAMILIES.own) * self.learnt * self.learnt_episodes * 2 * ROW
        return most if self.tokens is None else min(self.tokens, most)

    def counts(self, *, twin: bool = False) -> dict[str, int]:
        """Return the number of episodes in each stage that simulates."""
        compared = len(FAMILIES.own) * self.scenarios * self.episodes
        taught = len(FAMILIES.own) * self.learnt * self.learnt_episodes
        counts = {"compare": compared * len(MODES)}
        if twin:
            counts["twin"] = compared * len(MODES)
        return counts | {"teach": taught * len(TAUGHT_IN)} | {arm.name: compared for arm in ARMS}


SIZES = {
    "small": Size(scenarios=12, episodes=1, learnt=42, learnt_episodes=1, tokens=60_000),
    "medium": Size(scenarios=40, episodes=3, learnt=126, learnt_episodes=3, tokens=900_000),
    "paper": Size(scenarios=45, episodes=5, learnt=126, learnt_episodes=5, tokens=None),
}
"""`small` takes less than 45 minutes with the starter on two cores, `medium` a night. `paper` has the paper's 450
episodes per mode, in two families. To teach on, it simulates 1,260 scripts of 252 scenarios, and as many agents' talks;
the paper taught on 1,252 scripts of 269 scenarios.
"""


@dataclass(frozen=True)
class Study:
    """A study to run: its size, models and folder."""

    size: Size
    model: str
    """Name of a GGUF model without an adapter."""
    folder: Path
    seed: int = 1
    others: tuple[str, ...] = ()
    """Further models, with which the same study is repeated beside the first."""
    twin: str = AUTO
    """A constructed model that plays all modes beside the first model; AUTO means PEEKING beside the starter, if it is
    installed."""
    judge: str = AUTO
    """The model that judges naturalness; AUTO means the studied model itself, if it is a file."""

    @property
    def models(self) -> tuple[str, ...]:
        """All studied models, each once."""
        return tuple(dict.fromkeys(absolute(name) for name in (self.model, *self.others)))

    def base(self, model: str | None = None) -> ModelFile:
        """Return the file of a studied model, by default the first. Raises InvalidInput if it cannot be fine-tuned."""
        name = absolute(self.model if model is None else model)
        base = resolve(name) if is_file(name) else None
        if base is None or base.adapter is not None:
            raise InvalidInput("a study needs a model that can be fine-tuned: a GGUF without an adapter", where=name)
        return base

    def twin_of(self, model: str) -> str | None:
        """Return the constructed twin that plays beside a model; None if there is none."""
        if self.twin == AUTO:
            return default_twin(model)
        return None if self.twin == NONE or model != self.models[0] else absolute(self.twin)

    def judge_of(self, model: str) -> str | None:
        """Return the model that judges the naturalness of a model's conversations; None if it is left out."""
        if self.judge == AUTO:
            return model if is_file(model) else None
        return None if self.judge == NONE else absolute(self.judge)


STARTER, PEEKING = "starter", "starter-peeks"
"""Names of the default model and of its twin, which was taught to use the other side's facts."""


def default_twin(model: str) -> str | None:
    """Return PEEKING if the model is the starter and its twin is installed, else None."""
    try:
        if is_file(model) and resolve(model).sha256 == resolve(STARTER).sha256:
            resolve(PEEKING)
            return PEEKING
    except ModelMissing:
        pass
    return None


# ---- plans ---------------------------------------------------------------------------------------------------------


def compare_plan(size: Size, model: str, seed: int, modes: tuple[Mode, ...] = MODES) -> Plan:
    """Return the plan of modes on the compared scenarios and seeds: all of a model, or the agents of a taught one."""
    return Plan(compared_scenarios(size), modes, model=model, episodes=size.episodes, seed=seed)


def teach_plan(size: Size, model: str, seed: int) -> Plan:
    """Return the plan of the episodes to teach on: scripts and agents' talks on the same scenarios."""
    return Plan(taught_scenarios(size), TAUGHT_IN, model=model, episodes=size.learnt_episodes, seed=seed)


def compared_scenarios(size: Size) -> tuple[LoadedScenario, ...]:
    """Return the scenarios that all conditions play."""
    return tuple(loaded for loaded, _ in _scenarios(COMPARED_FROM, size.scenarios))


def taught_scenarios(size: Size) -> tuple[LoadedScenario, ...]:
    """Return the scenarios of the episodes to teach on."""
    return tuple(loaded for loaded, _ in _scenarios(LEARNT_FROM, size.learnt))


def taught_cells(size: Size) -> dict[str, tuple[str, str]]:
    """Return the id of each scenario to teach on -> its family and task, in the order in which all arms take them."""
    found = list(_scenarios(LEARNT_FROM, size.learnt))
    random.Random(1).shuffle(found)
    return {loaded.scenario.id: (loaded.scenario.family or "", task or SOLVABLE) for loaded, task in found}


def held_out(cells: Mapping[str, tuple[str, str]]) -> set[str]:
    """Return the ids of the scenarios that no arm is trained on: the last ones of each task that has two or more."""
    found: set[str] = set()
    for cell in set(cells.values()):
        own = [scenario for scenario, other in cells.items() if other == cell]
        count = max(1, round(HELD_OUT * len(own))) if len(own) > 1 else 0
        found |= set(own[len(own) - count :])
    return found


def tasks(size: Size) -> dict[str, str]:
    """Return the hash of each compared scenario -> its task: '' has a solution, the others say what is missing."""
    return {loaded.hash: task for loaded, task in _scenarios(COMPARED_FROM, size.scenarios)}


@cache
def _scenarios(first: int, count: int) -> tuple[tuple[LoadedScenario, str], ...]:
    """Return (scenario, task) of each family and seed; the tasks alternate."""
    found = []
    for name in sorted(FAMILIES.own):
        family = FAMILIES[name]
        for seed in range(first, first + count):
            task = family.study_tasks[seed % len(family.study_tasks)]
            scenario, answer = family.generate(f"{name}_{seed}", seed, family.control_tasks.get(task, {})).split()
            found.append((LoadedScenario(scenario, answer, "generated"), task))
    return tuple(found)


# ---- hours -----------------------------------------------------------------------------------------------------------


TRAINING = 0.4
"""Assumed speed of training, as a part of the speed of evaluating a prompt: 235 of 568 tokens a second were measured
with the starter in float32 on two cores.
"""
BESIDE = 30
"""Assumed seconds of a stage beside its work: opening a model, searching for leaks, writing an adapter."""
PAIR, REASON = 500, 40
"""Assumed tokens of a question about two conversations, and of its answer."""


def hours(size: Size, bench: Bench, *, twin: bool = False, judge: bool = False) -> dict[str, float]:
    """Estimate the hours of each stage from the rates of `models bench`, in the order of the stages."""
    per_turn = HEARD / bench.turn + WRITTEN / bench.decode_together
    simulating = {stage: (count * TURNS * per_turn + BESIDE) / 3600 for stage, count in size.counts(twin=twin).items()}
    learning = (size.most_tokens() / (bench.prefill * TRAINING) + BESIDE) / 3600
    found: dict[str, float] = {}
    for stage, value in simulating.items():
        if stage == ARMS[0].name:
            found |= {f"learn, {arm.name}": learning for arm in ARMS}
        found[stage] = value
    if judge:
        questions = 2 * len(JUDGED) * size.counts()[ARMS[0].name]
        found["naturalness"] = (questions * (PAIR / bench.prefill + REASON / bench.decode_together) + BESIDE) / 3600
    return found
