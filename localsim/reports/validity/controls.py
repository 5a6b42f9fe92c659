"""The table of controls: players whose behaviour is known play every family, and every measure must say what it must.

Episodes are simulated and scored as in a run, but nothing is stored. Families and evaluators declare the rows
(`conversation.controls`); this module plays them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from localsim.backends.scripted import open_scripted
from localsim.conversation.controls import KEPT, Control, exactly
from localsim.conversation.episode import SIMULATED, Episode, EpisodeSpec, Mode, Subject
from localsim.conversation.exchange import Generation, Request
from localsim.conversation.measures import Measure
from localsim.conversation.scenario import AnswerKey, Check, Fact, LoadedScenario, Scenario
from localsim.conversation.transcript import Turn
from localsim.errors import GenerationFailed, InvalidInput, ModelMissing, suggest
from localsim.evaluators.checks import CHECKS
from localsim.evaluators.evaluate import driven
from localsim.evaluators.leaks import Leaks
from localsim.evaluators.style import STYLE
from localsim.families import FAMILIES, family_of
from localsim.families.players import PARROT
from localsim.leakage.detector import LeakageDetector
from localsim.leakage.features import Vectors
from localsim.reports.measures import Cell, estimate, measures_of
from localsim.runs.plan import Plan
from localsim.runs.scheduler import Simulation, Watcher
from localsim.store.records import Record, ScoreRecord

Row = dict[str, Any]
COUNTED_CONTROLS = (
    exactly("parrot", "stale_rate", 1, "it says one sentence in every turn"),
    exactly("honest", "stale_rate", 0, "it asks or offers something new until it leaves"),
    exactly("parrot", "malformed_rate", 0, "each of its replies is one turn"),
    exactly("garbler", "malformed_rate", 1, "each of its replies is empty"),
    exactly("parrot", "repaired_rate", 0, "its turns are speech alone"),
    exactly("quoter", "repaired_rate", 1, "quotation marks stand around each of its turns"),
    exactly("parrot", "truncated_rate", 0, "its turns are short"),
    exactly("chatterbox", "truncated_rate", 1, "each of its turns fills the limit of characters"),
)
"""Controls of the measures of replies and turns, which have no scores."""
SCENARIOS = 40
"""Scenarios of each family and task; seeds begin at FIRST, apart from those of scenarios that ship or train models."""
FIRST = 70_000


@dataclass(frozen=True)
class Checked:
    """One control in one mode: the measured value and the verdict."""

    family: str
    mode: Mode
    control: Control
    value: float | None
    n: int
    """Number of scored episodes."""

    @property
    def passed(self) -> bool:
        """True if the value is what the control says."""
        return self.control.passes(self.value, self.n)

    def as_json(self) -> Row:
        """Return the row that `localsim controls --json` prints."""
        allowed = self.control.interval(self.n)
        return {
            "family": self.family,
            "task": self.control.task or "default",
            "player": self.control.player,
            "mode": self.mode,
            "measure": self.control.measure,
            "value": None if self.value is None else round(self.value, 4),
            "low": allowed and round(allowed[0], 4),
            "high": allowed and round(allowed[1], 4),
            "n": self.n,
            "passed": self.passed,
            "why": self.control.why,
        }


def controls_of(family: str) -> list[Control]:
    """Return the controls of a family: its own, and in localsim's families those of measures that every family has."""
    if family not in FAMILIES.own:
        return list(family_of(family).controls)
    general = [*STYLE.controls, *CHECKS.controls, *Leaks.controls, *COUNTED_CONTROLS]
    return [*family_of(family).controls, *general]


def uncontrolled() -> list[str]:
    """Return the keys of localsim's measures that no control covers."""
    covered = {control.measure for family in FAMILIES.own for control in controls_of(family)}
    return [measure.key for measure in measures_of() if measure.key not in covered]


def run_controls(families: Sequence[str] = (), scenarios: int = SCENARIOS) -> list[Checked]:
    """Play all controls of some families (none: localsim's own) and return them in order. Raises InvalidInput."""
    checked: list[Checked] = []
    for family in families or FAMILIES.own:
        if family not in FAMILIES:
            message = f"no task family {family!r}{suggest(family, FAMILIES, inline=True)}"
            raise InvalidInput(message, hint=f"families are {', '.join(FAMILIES)}")
        played: dict[tuple[str, str], list[Control]] = defaultdict(list)
        for control in controls_of(family):
            played[control.player, control.task].append(control)
        for (player, task), controls in played.items():
            checked += _check(family, player, task, controls, scenarios)
    return checked


def table(checked: Sequence[Checked]) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows for people: a row for each control, a column for each mode."""
    by_control: dict[int, dict[str, Checked]] = defaultdict(dict)
    for each in checked:
        by_control[id(each.control)][each.mode] = each
    rows = []
    modes = [mode for mode in SIMULATED if any(mode in by_mode for by_mode in by_control.values())]
    for by_mode in by_control.values():
        one = next(iter(by_mode.values()))
        values = [_number(by_mode[mode].value) if mode in by_mode else "" for mode in modes]
        verdict = "ok" if all(each.passed for each in by_mode.values()) else "FAILS"
        control = one.control
        rows.append([control.player, control.task, control.measure, *values, _must(one), verdict, control.why])
    return ["player", "task", "measure", *modes, "must be", "", "because"], rows


def _must(checked: Checked) -> str:
    allowed = checked.control.interval(checked.n)
    if allowed is None:
        return "no value"
    return _number(allowed[0]) if allowed[0] == allowed[1] else f"{_number(allowed[0])} to {_number(allowed[1])}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")


def _check(family: str, player: str, task: str, controls: Sequence[Control], scenarios: int) -> Iterator[Checked]:
    modes = tuple(mode for mode in SIMULATED if any(mode in control.modes for control in controls))
    cells = play(family, player, modes, task, scenarios)
    measures = {measure.key: measure for measure in measures_of([family])}
    for control in controls:
        for mode in control.modes:
            yield _checked(family, mode, control, measures[control.measure], cells[mode])


def _checked(family: str, mode: Mode, control: Control, measure: Measure, cell: Cell) -> Checked:
    found = estimate(measure, cell)
    return Checked(family, mode, control, found.value, found.n)


def play(
    family: str, player: str, modes: Sequence[Mode], task: str = "", scenarios: int = SCENARIOS
) -> dict[Mode, Cell]:
    """Simulate a scripted player on generated scenarios and return a scored cell for each mode."""
    name = f"scripted:{player}"
    return played(Plan(tuple(_scenarios(family, task, scenarios)), tuple(modes), model=name), family)


def played(plan: Plan, family: str) -> dict[Mode, Cell]:
    """Simulate a plan of one scripted player on scenarios of one family, and return a scored cell for each mode."""
    name = plan.model
    sink = _Sink()
    answers = {loaded.scenario.hash: loaded.answer for loaded in plan.scenarios}
    backends = {name: open_scripted(name)}
    Simulation("controls", backends, answers, sink, Watcher(), parallel=1).run(plan.specs())
    leaks = _leaks([sink.subject(episode_id, answers) for episode_id in sink.completed()])
    return {mode: sink.cell(family, mode, answers, leaks) for mode in plan.modes}


def _scenarios(family: str, task: str, count: int) -> Iterator[LoadedScenario]:
    parameters = family_of(family).control_tasks.get(task, {})
    check = Check(name="control", said=(PARROT,))
    for seed in range(FIRST, FIRST + count):
        scenario, answer = FAMILIES[family].generate(f"{family}_{seed}", seed, parameters).split()
        scenario = _with_kept_facts(scenario) if task == KEPT else scenario
        yield LoadedScenario(scenario, replace(answer, checks=(check,)), "generated")


def _with_kept_facts(scenario: Scenario) -> Scenario:
    """Return a scenario in which no agent may disclose a fact."""
    agents = tuple(
        agent.model_copy(update={"facts": tuple(_kept(fact) for fact in agent.facts)}) for agent in scenario.agents
    )
    return scenario.model_copy(update={"agents": agents})


def _kept(fact: Fact) -> Fact:
    return fact.model_copy(update={"disclosure": "never"})


@dataclass
class _Sink:
    """Keeps what a run would store, in memory."""

    specs: dict[str, EpisodeSpec] = field(default_factory=dict)
    episodes: dict[str, Episode] = field(default_factory=dict)
    scores: dict[str, list[Record]] = field(default_factory=dict)
    replies: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    rejects: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def episode_started(self, episode_id: str, spec: EpisodeSpec) -> None:
        """Keep the spec."""
        self.specs[episode_id] = spec

    def generation(self, episode_id: str, number: int, request: Request, result: Generation | GenerationFailed) -> None:  # noqa: ARG002
        """Count a reply."""
        self.replies[episode_id] += 1

    def turn(self, episode_id: str, turn: Turn, generation: int) -> None:
        """Do nothing: the episode has its turns."""

    def reject(self, episode_id: str, generation: int, reason: str) -> None:  # noqa: ARG002
        """Count a malformed reply."""
        self.rejects[episode_id] += 1

    def episode_ended(self, episode_id: str, episode: Episode, scores: Sequence[Record], duration_ms: float) -> None:  # noqa: ARG002
        """Keep the episode and its scores."""
        self.episodes[episode_id] = episode
        self.scores[episode_id] = list(scores)

    def completed(self) -> list[str]:
        """Return the ids of the completed episodes."""
        return [episode_id for episode_id, episode in self.episodes.items() if episode.status == "completed"]

    def subject(self, episode_id: str, answers: dict[str, AnswerKey]) -> Subject:
        """Return an episode as evaluators read it."""
        spec, episode = self.specs[episode_id], self.episodes[episode_id]
        answer = answers[spec.scenario.hash]
        return Subject(episode_id, spec.scenario, answer, spec.mode, spec.index, spec.seed, episode.transcript)

    def cell(self, family: str, mode: Mode, answers: dict[str, AnswerKey], leaks: dict[str, list[Row]]) -> Cell:
        """Return the cell of a mode, as a report would read it from the database."""
        ids = [episode_id for episode_id, spec in self.specs.items() if spec.mode == mode]
        return Cell(
            family=family,
            episodes=[
                {
                    "episode_id": each,
                    "status": self.episodes[each].status,
                    "scenario_hash": self.specs[each].scenario.hash,
                }
                for each in ids
            ],
            scores=[row for each in ids for row in (*self._rows(each, answers), *leaks.get(each, []))],
            counts={
                "malformed": {each: (self.rejects[each], self.replies[each]) for each in ids},
                "truncated": {each: _share(self.episodes[each], "truncated") for each in ids},
                "repaired": {each: _share(self.episodes[each], "repaired") for each in ids},
                "stale": {each: _stale(self.episodes[each]) for each in ids},
            },
        )

    def _rows(self, episode_id: str, answers: dict[str, AnswerKey]) -> Iterator[Row]:
        scenario = self.specs[episode_id].scenario
        for record in self.scores[episode_id]:
            if isinstance(record, ScoreRecord):
                yield _row(record.episode_id, record.agent, record.name, record.value, scenario, answers)


def _share(episode: Episode, what: str) -> tuple[int, int]:
    turns = episode.transcript.turns
    return sum(getattr(turn, what) for turn in turns), len(turns)


def _stale(episode: Episode) -> tuple[int, int]:
    return int(episode.stop_reason == "stale"), int(episode.status == "completed")


def _row(
    episode_id: str, agent: str, name: str, value: float | None, scenario: Any, answers: dict[str, AnswerKey]
) -> Row:
    side = family_of(scenario.family).side(agent, answers[scenario.hash]) if agent else ""
    return {
        "episode_id": episode_id,
        "agent": agent,
        "name": name,
        "value": value,
        "side": side,
        "scenario_hash": scenario.hash,
    }


def _leaks(subjects: Sequence[Subject]) -> dict[str, list[Row]]:
    """Return the scores of leaks of each episode whose facts have terms that disclose; no embedding is needed."""
    asked = tuple(each for each in subjects if family_of(each.scenario.family).terms_disclose)
    if not asked:
        return {}
    found = driven(Leaks(None, LeakageDetector(_no_embedding)), asked, lambda _requests: [])
    by_id = {subject.episode_id: subject for subject in asked}
    rows: dict[str, list[Row]] = {}
    for evaluation in found:
        if evaluation.episode_id:
            subject = by_id[evaluation.episode_id]
            answers = {subject.scenario.hash: subject.answer}
            rows[evaluation.episode_id] = [
                _row(evaluation.episode_id, score.agent or "", score.name, score.value, subject.scenario, answers)
                for score in evaluation.scores
            ]
    return rows


def _no_embedding(texts: Sequence[str]) -> Vectors:
    if texts:
        raise ModelMissing("controls compare no meanings")
    return cast("Vectors", [])
