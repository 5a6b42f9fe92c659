"""Scripted players play without a database: what `localsim controls` and the references of a report are summed from.

Episodes are simulated and scored as in a run, and kept in memory as a report would read them from the database.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from localsim.backends.scripted import open_scripted
from localsim.conversation.checks import Check
from localsim.conversation.controls import KEPT
from localsim.conversation.episode import Episode, Mode, Subject
from localsim.conversation.requests import Generation, Request
from localsim.conversation.scenario import AnswerKey, LoadedScenario, Scenario
from localsim.errors import GenerationFailed, ModelMissing
from localsim.evaluators.evaluate import driven
from localsim.evaluators.leaks import Leaks
from localsim.families import EVERYDAY, FAMILIES, family_of
from localsim.families.players import PARROT
from localsim.leakage.detector import LeakageDetector
from localsim.leakage.features import Vectors
from localsim.runs.plan import Plan
from localsim.runs.recorder import EventSink
from localsim.runs.scheduler import Simulation, Watcher, subject_of
from localsim.store.queries import reports as queries
from localsim.store.records import Record, ScoreRecord

FIRST = 70_000
"""The first seed of the scenarios of controls, apart from those of scenarios that ship or train models."""


@dataclass(frozen=True)
class Sample:
    """The episodes of one mode, as `store.queries.reports` returns those of a run."""

    episodes: Sequence[queries.Episode]
    scores: Sequence[queries.Score]
    counts: Mapping[str, Mapping[str, tuple[int, int]]]
    """Name of a count (of `reports.measures.COUNTS`) -> episode id -> (how many, of how many)."""


def played(plan: Plan) -> dict[Mode, Sample]:
    """Simulate a plan of one scripted player and return the scored episodes of each mode."""
    kept = simulated(plan)
    leaks = _leaks([kept.subject(each) for each, episode in kept.episodes.items() if episode.status == "completed"])
    return {mode: kept.sample(mode, leaks) for mode in plan.modes}


def simulated(plan: Plan) -> Kept:
    """Simulate a plan of one scripted player, score its episodes, and store nothing."""
    answers = {loaded.scenario.hash: loaded.answer for loaded in plan.scenarios}
    backends, kept = {plan.model: open_scripted(plan.model)}, Kept(answers)
    Simulation("controls", backends, answers, kept, Watcher(), parallel=1).run(plan.specs())
    return kept


def controlled(family: str, player: str, modes: Sequence[Mode], task: str, scenarios: int) -> dict[Mode, Sample]:
    """Simulate a scripted player on generated scenarios of a task of a family."""
    return played(Plan(tuple(_scenarios(family, task, scenarios)), tuple(modes), model=f"scripted:{player}"))


def _scenarios(family: str, task: str, count: int) -> Iterator[LoadedScenario]:
    parameters = family_of(family).control_tasks.get(task, {})
    check = Check(name="control", said=(PARROT,))
    for seed in range(FIRST, FIRST + count):
        scenario, answer = FAMILIES[family].generate(f"{family}_{seed}", seed, parameters).split()
        scenario = _with_kept_facts(scenario) if task == KEPT else scenario
        yield LoadedScenario(scenario, replace(answer, checks=(check,)), "generated")


def _with_kept_facts(scenario: Scenario) -> Scenario:
    """Return a scenario in which no agent may disclose a fact."""
    agents = []
    for agent in scenario.agents:
        facts = tuple(fact.model_copy(update={"disclosure": "never"}) for fact in agent.facts)
        agents.append(agent.model_copy(update={"facts": facts}))
    return scenario.model_copy(update={"agents": tuple(agents)})


@dataclass
class Kept(EventSink):
    """What a run would store, in memory."""

    answers: Mapping[str, AnswerKey]
    """Hash of a scenario -> its answer key."""
    episodes: dict[str, Episode] = field(default_factory=dict)
    scores: dict[str, list[Record]] = field(default_factory=dict)
    replies: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    rejects: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def generation(self, episode_id: str, number: int, request: Request, result: Generation | GenerationFailed) -> None:  # noqa: ARG002
        self.replies[episode_id] += 1

    def reject(self, episode_id: str, generation: int, reason: str) -> None:  # noqa: ARG002
        self.rejects[episode_id] += 1

    def episode_ended(self, episode_id: str, episode: Episode, scores: Sequence[Record], duration_ms: float) -> None:  # noqa: ARG002
        self.episodes[episode_id] = episode
        self.scores[episode_id] = list(scores)

    def subject(self, episode_id: str) -> Subject:
        """Return an episode as evaluators read it."""
        episode = self.episodes[episode_id]
        return subject_of(episode_id, episode, self.answers[episode.spec.scenario.hash])

    def sample(self, mode: Mode, leaks: Mapping[str, Iterable[queries.Score]]) -> Sample:
        """Return the episodes of a mode with their scores; `leaks` has those of the search for leaks."""
        found = {each: episode for each, episode in self.episodes.items() if episode.spec.mode == mode}
        return Sample(
            episodes=[self._episode(each) for each in found],
            scores=[row for each in found for row in (*self._rows(each), *leaks.get(each, ()))],
            counts={
                "malformed": {each: (self.rejects[each], self.replies[each]) for each in found},
                "truncated": {each: _share(episode, "truncated") for each, episode in found.items()},
                "repaired": {each: _share(episode, "repaired") for each, episode in found.items()},
                "stale": {
                    each: (int(episode.stop_reason == "stale"), int(episode.status == "completed"))
                    for each, episode in found.items()
                },
            },
        )

    def _episode(self, episode_id: str) -> queries.Episode:
        found = self.episodes[episode_id]
        spec, scenario, turns = found.spec, found.spec.scenario, len(found.transcript.turns)
        about = (episode_id, scenario.family or EVERYDAY.name, scenario.id, scenario.hash, found.status)
        return queries.Episode("", spec.mode, "", "", *about, spec.index, spec.seed, 0, turns)

    def _rows(self, episode_id: str) -> Iterator[queries.Score]:
        subject = self.subject(episode_id)
        for record in self.scores[episode_id]:
            if isinstance(record, ScoreRecord):
                yield _row(subject, record.agent, record.name, record.value)


def _share(episode: Episode, what: str) -> tuple[int, int]:
    turns = episode.transcript.turns
    return sum(getattr(turn, what) for turn in turns), len(turns)


def _row(subject: Subject, agent: str, name: str, value: float | None) -> queries.Score:
    family = family_of(subject.scenario.family)
    side = family.side(agent, subject.answer) if agent else ""
    return queries.Score(subject.episode_id, family.name, "", name, agent, value, side)


def _leaks(subjects: Sequence[Subject]) -> dict[str, list[queries.Score]]:
    """Return the scores of leaks of each episode whose facts have terms that disclose; no embedding is needed."""
    asked = tuple(each for each in subjects if family_of(each.scenario.family).terms_disclose)
    if not asked:
        return {}
    by_id = {subject.episode_id: subject for subject in asked}
    return {
        found.episode_id: [
            _row(by_id[found.episode_id], score.agent or "", score.name, score.value) for score in found.scores
        ]
        for found in driven(Leaks(None, LeakageDetector(_no_embedding)), asked, lambda _requests: [])
        if found.episode_id
    }


def _no_embedding(texts: Sequence[str]) -> Vectors:
    if texts:
        raise ModelMissing("controls compare no meanings")
    return cast("Vectors", [])
