"""A game as one generator, which is replayed over the transcript.

`play` says who acts, receives the turn, tells results and states scores where they arise. What the generator waits for
after the turns so far is the next step; what it has stated by then are the scores. So the transcript stays the only
state of a game, and nothing is written twice. A long game does not begin anew with each turn: its generator is kept
beside the last turn that it has read.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeVar

from localsim.conversation.episode import Score
from localsim.conversation.rules.steps import Act, Next, Stop, Tell
from localsim.conversation.rules.values import Move
from localsim.conversation.scenario import Agent, AnswerKey, Scenario, ScenarioFile
from localsim.conversation.transcript import Transcript, Turn
from localsim.families.base import merged
from localsim.families.games.base import DONE, Game, chance, check_values, names_of, private

T = TypeVar("T")
Steps = Generator[Act | Tell, tuple[Turn, ...], T]
"""A part of `play`, called with `yield from`: it yields steps, receives the turns of each, and returns a value."""
Course = Steps[None]
"""What `play` returns."""
KEPT = 256
"""The most generators that are kept for games that go on."""


@dataclass(frozen=True)
class Secret:
    """What only one agent knows, for `scene`; players read it with `known(seen, kind)`."""

    agent: str
    kind: str
    text: str
    value: object
    keep: str = ""
    """A sentence that its goal adds because of it."""


@dataclass(frozen=True)
class Scene:
    """What a game tells at the start."""

    title: str
    setting: str
    goal: str | Sequence[str]
    """The goal of everybody, or of each agent."""
    moves: Sequence[Move]
    turns: int
    """The most acts."""
    agents: Sequence[str] = ()
    """Those of the names that are agents, in speaking order; by default all."""
    secrets: Sequence[Secret] = ()
    talk: bool = False
    """True if agents speak at some time, beside their moves."""
    public: Mapping[str, Any] | None = None
    """Numbers and words that everybody knows; None: the parameters."""
    hidden: Mapping[str, Any] = field(default_factory=dict)
    """Numbers and words for the rules alone."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Other fields of a scenario file, such as `relationship`."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """What the file has beside the parameters that were chosen."""


@dataclass
class _Stated:
    """A score while the game goes on: the mean of some values, in parts of `of`."""

    total: float
    number: int
    turns: list[int]
    of: float = 1
    reason: str = ""
    label: str | None = None

    @property
    def mean(self) -> float:
        return self.total / self.of / self.number


class Table:
    """One playing of a game, as `play` sees it: what is known about the scenario, and the scores stated so far.

    `answer` is the answer key when scores are computed, and empty while the game is played: only scores may read it.
    """

    def __init__(self, scenario: Scenario, seed: int, answer: Mapping[str, Any]) -> None:
        self.scenario, self.names, self.game = scenario, scenario.names, scenario.game
        self.answer = answer
        self.public: Mapping[str, Any] = scenario.game.get("public", {})
        self._seed = seed
        self._stated: dict[tuple[str, str | None], _Stated] = {}

    def act(self, speaker: str, *ways: str, named: Sequence[str] = ()) -> Steps[Turn]:
        """Let one agent act in one of these ways, and return the turn: `offer = yield from table.act("Ana", "offer")`.

        `named` are the agents whom moves can name now, by default everybody present.
        """
        (turn,) = yield Act((speaker,), ways, named=tuple(named))
        return turn

    def together(self, speakers: Sequence[str], *ways: str, named: Sequence[str] = ()) -> Steps[tuple[Turn, ...]]:
        """Let several agents act at the same time, and return their turns in the same order."""
        return (yield Act(tuple(speakers), ways, named=tuple(named)))

    def speak(self, *speakers: str) -> Course:
        """Let agents say something, one after the other."""
        for speaker in speakers:
            yield from self.act(speaker, "speak")

    def tell(self, text: str, *values: object, to: Sequence[str] | None = None) -> Steps[Turn]:
        """Tell everybody, or only `to`, a text with the values behind it, and return the turn.

        A game that drew something reads it from this turn, since nothing is drawn again for scores.
        """
        readers = None if to is None else tuple(to)
        (turn,) = yield Tell(text, readers, values=tuple(map(str, values)))
        return turn

    def chance(self, *place: str | int) -> random.Random:
        """Return the generator of what nature draws at one place of the episode."""
        return chance(self._seed, *place)

    def secret(self, name: str, kind: str = "") -> str | None:
        """Return the value of the first fact that only this agent knows, or of that of a kind; None without one."""
        wanted = private(name, kind, "-", "-").id if kind else ""
        facts = self.scenario.agent(name).facts
        return next((fact.terms[0] for fact in facts if not kind or fact.id == wanted), None)

    def score(
        self,
        name: str,
        value: float,
        turns: Iterable[Turn] = (),
        reason: str = "",
        agent: str | None = None,
        label: str | None = None,
    ) -> None:
        """State a score of the episode or of an agent, with the turns that it rests on; a later one replaces it."""
        cited = [turn.index for turn in turns]
        self._stated[name, agent] = _Stated(float(value), 1, cited, reason=reason, label=label)

    def each(self, name: str, values: Mapping[str, float], turns: Sequence[Turn] = ()) -> None:
        """State a score of each agent."""
        for agent, value in values.items():
            self.score(name, value, turns, agent=agent)

    def mean(
        self, name: str, value: float, turns: Iterable[Turn] = (), agent: str | None = None, of: float = 1
    ) -> float:
        """Add a value to a score that is the mean of all that were added, in parts of `of`; return the mean so far."""
        stated = self._stated.setdefault((name, agent), _Stated(0.0, 0, [], of))
        stated.total += value
        stated.number += 1
        stated.turns += [turn.index for turn in turns]
        return stated.mean

    def explain(self, name: str, reason: str) -> None:
        """Give a score that has been stated a reason for people."""
        self._stated[name, None].reason = reason

    def cite(self, *turns: Turn) -> None:
        """Let all scores that have been stated without evidence rest on these turns."""
        for stated in self._stated.values():
            stated.turns = stated.turns or [turn.index for turn in turns]

    @property
    def scores(self) -> list[Score]:
        """The scores that have been stated."""
        return [
            Score(name, each.mean, each.label, agent, reason=each.reason, turns=tuple(each.turns))
            for (name, agent), each in self._stated.items()
        ]


class Replayed(Game):
    """A game that is one generator. Override `scene` and `play`, and declare the rest."""

    decides, step_hint = "play", "write `yield from` before table.act(...), table.together(...) and table.tell(...)"
    roles: Sequence[str] = ()
    """What each agent is, in speaking order; also the sides of measures."""
    number_of_agents = ""
    """The parameter with the number of agents, in a game without roles."""
    beside = 0
    """So many further names `scene` receives, such as that of a chair."""
    allowed: Mapping[str, Sequence[Any]] = {}
    """Parameter -> the least and the greatest number, or all words that are known."""
    newer: Sequence[str] = ()
    """Parameters that a file has only if they are not the default: files from before them keep their hash."""

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        """Return what is told at the start. Raises InvalidInput for parameters that make no game."""
        raise NotImplementedError

    def play(self, table: Table) -> Course:
        """Yield each step and receive its turns; tell results and state scores where they arise."""
        raise NotImplementedError

    def count(self, chosen: Mapping[str, Any]) -> int:
        """Return how many names `scene` receives: one for each agent, by default two."""
        return int(chosen[self.number_of_agents]) + self.beside if self.number_of_agents else len(self.roles) or 2

    def generate(self, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> ScenarioFile:
        chosen = merged(self.defaults, parameters, self.name)
        check_values(self.name, chosen, self.allowed)
        names = names_of(self, seed, self.count(chosen))
        scene = self.scene(chosen, names, seed)
        kept = {key: value for key, value in chosen.items() if key not in self.newer or value != self.defaults[key]}
        sides = {"answer": dict(zip(self.roles[:-1], names, strict=False))} if self.roles else {}
        return self.scenario(
            scenario_id,
            seed,
            {**kept, **scene.parameters},
            title=scene.title,
            setting=scene.setting,
            agents=[_agent(name, scene, place) for place, name in enumerate(scene.agents or names)],
            moves=scene.moves,
            turns=scene.turns,
            talk=scene.talk,
            public=chosen if scene.public is None else scene.public,
            hidden=scene.hidden,
            **{**sides, **scene.more},
        )

    def step(self, scenario: Scenario, talk: Transcript, seed: int) -> Next:
        run = _RUNS.take(self, scenario, talk, seed) or _Run(self, scenario, seed, {})
        run.read(talk.turns)
        _RUNS.keep(run)
        return run.step

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Return what the generator has stated after these turns. The seed is not known here, and must not matter."""
        return self.stated(transcript, scenario, answer)

    def stated(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey, seed: int = 0) -> list[Score]:
        """Return what the generator has stated after these turns, with one seed for what it draws."""
        run = _Run(self, scenario, seed, answer.answer)
        run.read(transcript.turns)
        return run.table.scores

    def needs_no_seed(self, talk: Transcript, scenario: Scenario, answer: AnswerKey) -> bool:
        """Return True if scores are the same whatever is drawn when the generator is replayed for them."""
        return self.stated(talk, scenario, answer, 1) == self.stated(talk, scenario, answer, 2)

    def side(self, agent: str, answer: AnswerKey) -> str:
        """Return the role of an agent: those in the answer key, and the last one for all others."""
        last = self.roles[-1] if self.roles else ""
        return next((role for role in self.roles if answer.answer.get(role) == agent), last)


def _agent(name: str, scene: Scene, place: int) -> Agent:
    own = [secret for secret in scene.secrets if secret.agent == name]
    goal = scene.goal if isinstance(scene.goal, str) else scene.goal[place]
    facts = tuple(private(name, each.kind, each.text, each.value) for each in own)
    return Agent(name=name, goal=" ".join([goal, *(each.keep for each in own if each.keep)]), facts=facts)


class _Run:
    """A generator, the turns that it has read, and the step that it waits for."""

    def __init__(self, game: Replayed, scenario: Scenario, seed: int, answer: Mapping[str, Any]) -> None:
        self.game, self.scenario, self.seed = game, scenario, seed
        self.table = Table(scenario, seed, answer)
        self.turns: tuple[Turn, ...] = ()
        self._gone: set[str] = set()
        self._course = game.play(self.table)
        self.step: Next = next(self._course, DONE) if isinstance(self._course, Generator) else self._course

    def read(self, turns: tuple[Turn, ...]) -> None:
        """Go on with the turns that are new, as far as all turns of a step are there."""
        start = len(self.turns)
        while heard := self._heard(turns, start):
            start += len(heard)
            self._gone |= {turn.speaker for turn in heard if turn.action.type == "leave"}
            try:
                self.step = self._course.send(heard)
            except StopIteration:
                self.step = DONE
        self.turns = turns[:start]

    def _heard(self, turns: tuple[Turn, ...], start: int) -> tuple[Turn, ...]:
        """Return the turns of the step that is waited for; none if one of them is missing."""
        if isinstance(self.step, Stop):
            return ()
        speakers = self.step.speakers if isinstance(self.step, Act) else ("",)
        wanted = sum(name not in self._gone for name in speakers)
        heard = turns[start : start + wanted]
        return heard if len(heard) == wanted else ()


class _Runs:
    """The generators of games that go on, each beside the last turn that it has read."""

    def __init__(self) -> None:
        self._runs: dict[int, _Run] = {}
        self._lock = Lock()  # people play in several threads

    def take(self, game: Replayed, scenario: Scenario, talk: Transcript, seed: int) -> _Run | None:
        """Return the generator that has read this transcript, or all of it but its last beat; nobody else gets it."""
        if not talk.turns:
            return None
        before = talk.turns[: talk.turns[-1].beat]
        with self._lock:
            run = self._runs.pop(id(talk.turns[-1]), None) or (self._runs.pop(id(before[-1]), None) if before else None)
        if run is None or (run.game, run.seed) != (game, seed) or run.scenario is not scenario:
            return None
        return run if run.turns == talk.turns[: len(run.turns)] else None

    def keep(self, run: _Run) -> None:
        """Keep a generator until its game goes on, if it has read anything."""
        if not run.turns or run.step == DONE:
            return
        with self._lock:
            self._runs[id(run.turns[-1])] = run
            if len(self._runs) > KEPT:
                del self._runs[next(iter(self._runs))]


_RUNS = _Runs()
