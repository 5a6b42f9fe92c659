"""The design of a study: its sizes, its arms, and the plan and the expected hours of each stage.

The scenarios to compare and those to teach on never overlap. Tasks alternate, so that half of the searches and bargains
have no solution. Situations are compared only: no arm is taught on them, so they show what lessons transfer to.
"""

from __future__ import annotations

import random
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from math import ceil
from pathlib import Path

from localsim.backends.open import absolute, is_file
from localsim.conversation.episode import MODES, SIMULATED, Mode
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import InvalidInput, ModelMissing
from localsim.evaluators.judge import DIMENSIONS
from localsim.families import FAMILIES
from localsim.machine.bench import Bench
from localsim.models.registry import ModelFile, resolve
from localsim.runs.plan import Plan, free, layouts_of
from localsim.scenarios.documents import shipped_files
from localsim.scenarios.find import find_scenarios
from localsim.scenarios.writing import draw_sample

COMPARED_FROM, LEARNT_FROM = 30_000, 40_000
"""First seeds of the generated scenarios for comparing and for training; the two sets never overlap."""
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
    mix_ups: float = 1
    """Share of the episodes with mix-ups that is kept; a mix-up is an agent's use of what it had not been told."""


FINE_TUNED = "agents-ft"
"""Name of the arm that the paper has."""
ARMS = (
    Arm(FINE_TUNED, "scripts", "script"),
    Arm("agents-ft-agents", "agents' talks", "agents"),
    Arm("agents-ft-half", "scripts, half of those with untold facts", "script", mix_ups=0.5),
    Arm("agents-ft-clean", "scripts without untold facts", "script", mix_ups=0),
)
"""The first arm repeats the paper's; the others are its controls. The last two are lower doses of mix-ups."""
JUDGED = (
    ("script", "agents"),
    ("mindreaders", "agents"),
    *((arm.name, "agents") for arm in ARMS),
    ("script", FINE_TUNED),
)
"""The pairs of conditions whose naturalness is judged, by label."""
SUCCEEDS, FAILS = "scripted", "scripted:refuser"
"""Scripted players whose conversations a judge of goals must tell apart before its scores are shown."""


@dataclass(frozen=True)
class Size:
    """The size of a study."""

    scenarios: int
    """Number of compared scenarios in each family that is taught, too."""
    situations: int
    """Number of compared castings of situations."""
    episodes: int
    """Number of episodes for each scenario and mode."""
    learnt: int
    """Number of scenarios in each family whose episodes are the training data."""
    learnt_episodes: int
    tokens: int | None
    """Most tokens to train each arm on; None means no limit."""
    answers: int = 2
    """Answers of a judge of goals to each question: their spread is its agreement with itself."""

    def most_tokens(self) -> int:
        """Return the limit of training tokens of an arm, or an estimate of two rows of ROW tokens for each episode."""
        most = len(FAMILIES.own) * self.learnt * self.learnt_episodes * 2 * ROW
        return most if self.tokens is None else min(self.tokens, most)

    @property
    def compared(self) -> int:
        """Number of compared episodes in each mode."""
        return (len(FAMILIES.own) * self.scenarios + self.situations) * self.episodes

    @property
    def solvable(self) -> int:
        """Number of compared scenarios that have a solution."""
        return len(FAMILIES.own) * self.scenarios // 2 + self.situations

    def counts(
        self, arms: Sequence[Arm] = ARMS, *, twin: bool = False, modes: Sequence[Mode] = MODES
    ) -> dict[str, int]:
        """Return the number of episodes in each stage that simulates."""
        counts = {"compare": self.compared * len(modes)}
        if twin:
            counts["twin"] = self.compared * len(modes)
        if arms:
            counts["teach"] = len(FAMILIES.own) * self.learnt * self.learnt_episodes * len(taught_in(arms))
        return counts | {arm.name: self.compared for arm in arms}


SIZES = {
    "small": Size(scenarios=12, situations=24, episodes=1, learnt=42, learnt_episodes=1, tokens=60_000, answers=1),
    "medium": Size(scenarios=40, situations=90, episodes=3, learnt=126, learnt_episodes=3, tokens=900_000),
    "paper": Size(scenarios=45, situations=90, episodes=5, learnt=126, learnt_episodes=5, tokens=None),
}
"""`small` takes one to two hours with a model of .5B on two cores, `medium` a night. `paper` has the paper's 450
episodes per mode in two families, and as many of its 90 situations. To teach on, it simulates 1,260 scripts of 252
scenarios, and as many agents' talks; the paper taught on 1,252 scripts of 269 scenarios.
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
    """The model that judges goals and naturalness; AUTO means the studied model itself, if it is a file."""
    arms: tuple[Arm, ...] = ARMS
    """The arms that are taught; without any, every model can be studied. The first one is FINE_TUNED."""
    iterative: bool = False
    """True if one author also writes turn by turn, which divides the effect of one author from that of one text."""
    free: bool = False
    """True if no prompt asks for short lines. Arms learn from prompts that do, so this is for studies without arms."""

    def __post_init__(self) -> None:
        if self.free and self.arms:
            raise InvalidInput("arms learn short lines", where="--length free", hint="add --arms none")

    @property
    def modes(self) -> tuple[Mode, ...]:
        """The modes that it compares."""
        return SIMULATED if self.iterative else MODES

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


def compare_plan(study: Study, model: str, modes: tuple[Mode, ...]) -> Plan:
    """Return the plan of modes on the compared scenarios and seeds: all of a model, or the agents of a taught one."""
    size, layouts = study.size, free(layouts_of([model]), [model]) if study.free else None
    scenarios = compared_scenarios(size)
    return Plan(scenarios, modes, model=model, episodes=size.episodes, seed=study.seed, layouts=layouts)


def control_plan(study: Study, player: str) -> Plan:
    """Return the plan of a control of judges: a scripted player on the compared scenarios that have a solution."""
    task_of = tasks(study.size)
    solvable = tuple(loaded for loaded in compared_scenarios(study.size) if not task_of[loaded.hash])
    return Plan(solvable, ("agents",), model=player, episodes=1, seed=study.seed)


def teach_plan(study: Study, model: str) -> Plan:
    """Return the plan of the episodes to teach on: the modes of the arms on the same scenarios."""
    size, modes = study.size, taught_in(study.arms)
    scenarios = tuple(loaded for loaded, _ in _scenarios(LEARNT_FROM, size.learnt))
    return Plan(scenarios, modes, model=model, episodes=size.learnt_episodes, seed=study.seed)


def taught_in(arms: Iterable[Arm]) -> tuple[Mode, ...]:
    """Return the modes of the episodes that arms are taught on."""
    return tuple(dict.fromkeys(arm.mode for arm in arms))


def compared_scenarios(size: Size) -> tuple[LoadedScenario, ...]:
    """Return the scenarios that all conditions play."""
    return (*(loaded for loaded, _ in _scenarios(COMPARED_FROM, size.scenarios)), *_situations(size.situations))


def checksum(size: Size) -> str:
    """Return a checksum over the compared scenarios: studies with the same one can be compared column by column."""
    return sha256("".join(sorted(loaded.hash for loaded in compared_scenarios(size))).encode()).hexdigest()[:12]


def command(study: Study) -> str:
    """Return the command that repeats a study; of a size of one's own what Python calls."""
    size = next((name for name, size in SIZES.items() if size == study.size), "")
    if not size:
        return f"localsim.study.run_study({study})"
    words = ["localsim", "study", "--size", size, "--model", study.model, "--seed", str(study.seed)]
    words += [word for name in study.others[:1] for word in ("--second-model", name)]
    words += [] if study.twin == AUTO else ["--twin", study.twin]
    words += [] if study.judge == AUTO else ["--judge", study.judge]
    if study.arms != ARMS:
        words += ["--arms", ",".join(arm.name for arm in study.arms) or NONE]
    words += ["--iterative"] if study.iterative else []
    words += ["--length", "free"] if study.free else []
    return shlex.join(words)


@cache
def _situations(count: int) -> tuple[LoadedScenario, ...]:
    """Return castings of situations: of different situations as far as there are enough."""
    tasks = draw_sample(ceil(count / len(shipped_files("situations"))), seed=1).tasks
    chosen = random.Random(1).sample(tasks, count)
    return tuple(find_scenarios(sorted(task.reference for task in chosen)))


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
    generated = {loaded.hash: task for loaded, task in _scenarios(COMPARED_FROM, size.scenarios)}
    return generated | {loaded.hash: "" for loaded in _situations(size.situations)}


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
PAIR, TALK, REASON = 500, 300, 30
"""Assumed tokens of two conversations, of one, and of a judge's answer."""
QUESTIONS = 2 * len(DIMENSIONS)
"""Questions about a conversation of two agents."""


def hours(study: Study, model: str, bench: Bench) -> dict[str, float]:
    """Estimate the hours of each stage of a model from the rates of `models bench`, in the order of the stages."""
    size, arms, modes = study.size, study.arms, study.modes
    per_turn = HEARD / bench.turn + WRITTEN / bench.decode_together
    counts = size.counts(arms, twin=study.twin_of(model) is not None, modes=modes)
    simulating = {stage: (count * TURNS * per_turn + BESIDE) / 3600 for stage, count in counts.items()}
    learning = (size.most_tokens() / (bench.prefill * TRAINING) + BESIDE) / 3600
    found: dict[str, float] = {}
    for stage, value in simulating.items():
        if arms and stage == arms[0].name:
            found |= {f"learn, {arm.name}": learning for arm in arms}
        found[stage] = value
    if study.judge_of(model):
        answers = {
            "goals": (TALK, QUESTIONS * size.answers, (len(modes) + bool(arms)) * size.compared + 2 * size.solvable),
            "naturalness": (PAIR, 1, 2 * (2 + len(arms) + bool(arms)) * size.compared),
        }
        for stage, (read, asked, count) in answers.items():
            each = read / bench.prefill + asked * (HEARD / bench.turn + REASON / bench.decode_together)
            found[stage] = (count * each + BESIDE) / 3600
    return found
