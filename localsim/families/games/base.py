"""A game: a family with rules of its own, in one file with its generator, payoffs, measures and scripted players.

Most games are one generator (`replayed.Replayed`). A `Game` decides in `step` who acts next with which moves, and what
the rules tell whom. `step` is a pure function of the scenario, the transcript and the seed: the transcript is the only
state of a game. What else the file of a game needs is here: `from localsim.families.games import base as g`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from localsim.conversation.controls import Control, between, by_chance, exactly
from localsim.conversation.episode import OMNISCIENT, Observation, Score, derive_seed
from localsim.conversation.measures import Measure
from localsim.conversation.minds.predict import Option as Option
from localsim.conversation.minds.predict import Place as Place
from localsim.conversation.rules.deciding import present, stop_reason
from localsim.conversation.rules.lines import Bound
from localsim.conversation.rules.steps import Act, Next, Rules, Stop, Tell
from localsim.conversation.rules.values import Move, Param
from localsim.conversation.scenario import Agent, AnswerKey, Fact, Info, Limits, Scenario, ScenarioFile
from localsim.conversation.transcript import ACTION_TYPES, Action, Transcript, Turn
from localsim.errors import InvalidInput, suggest
from localsim.families.base import SUCCESS, Family, Reference, Verdict, listed, merged, sentence
from localsim.families.players import Player, any_values, any_way
from localsim.families.vocabulary import DEFAULT
from localsim.plugins import place_of


def mean(key: str, heading: str, meaning: str, score: str = "", **more: Any) -> Measure:
    """Return a measure that is the mean of a score, by default of the score with its key."""
    return Measure(key, heading, meaning, score or key, **more)


def share(key: str, heading: str, meaning: str, score: str = "", **more: Any) -> Measure:
    """Return a measure like `mean`, of a score from 0 to 1 that is printed as a percentage."""
    return mean(key, heading, meaning, score, kind="share", **more)


PAYOFF = mean("payoff", "payoff", "what a player wins, in parts of what can be won", compared=True)
"""The measure of a score `payoff` for each agent."""
RANDOM = Reference(
    "any", "random", "any move that is allowed, drawn at random, with words that mean nothing", blind=True
)
"""Random play in most games."""
DONE = Stop("done")
"""The game is over."""
TELLS, TELLS_PER_AGENT = 100, 10
"""A game that tells more often than TELLS + TELLS_PER_AGENT * agents before anybody acts has no end."""


class Game(Family):
    """A family with rules of its own. Override `generate`, `step` and `score`, and declare the rest."""

    how: str = ""
    """One or two sentences for people: the payoffs, and what the scores mean."""
    tries: Sequence[str] = ()
    """Experiments worth making with the game, for people."""
    bundled: Mapping[str, Mapping[str, Any]] = {}
    """Name of a scenario that ships -> parameters of `generate`."""

    informed: Sequence[tuple[str, str, str, str]] = ()
    """(player, measure, task, theory) for which seeing the other side has a known value, shown in the page of games."""
    opened: str = ""
    """Kind of the private fact of another agent with which the sensible player does better, if it sees it."""
    outcome: str = ""
    """Name of the score whose reason is the verdict, for a game in which no outcome is right or wrong."""
    decides, step_hint = "step", "return g.act(...), g.Tell(...) or g.DONE"
    """The method that decides what comes next, and how it does so, for errors."""

    @property
    def info(self) -> Info:
        """The description for people that each scenario of the game has."""
        return Info(what=self.about, how=self.how or None, things_to_try=tuple(self.tries))

    @property
    def rules(self) -> Rules:
        return self

    def scenario(
        self,
        scenario_id: str,
        seed: int,
        chosen: Mapping[str, Any],
        *,
        title: str,
        setting: str,
        agents: Sequence[Agent],
        moves: Sequence[Move],
        turns: int,
        talk: bool = False,
        public: Mapping[str, Any] | None = None,
        hidden: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> ScenarioFile:
        """Return a scenario of the game, for `generate`. `chosen` are the parameters, `turns` is the most acts.

        `talk`: agents speak at some time, beside their moves. `public` are the numbers and words of `scenario.game`
        that everybody knows, `hidden` those for the rules alone. `more` are other fields of a scenario file.
        """
        return ScenarioFile(
            version=1,
            id=scenario_id,
            title=title,
            info=self.info,
            setting=setting,
            agents=tuple(agents),
            actions=("speak",) if talk else (),
            moves=tuple(moves),
            game={"public": dict(public or {}), **(hidden or {})},
            limits=Limits(turns=turns),
            family=self.name,
            parameters={**chosen, "seed": seed},
            **more,
        )

    def prospect(self, seen: Observation, depth: int) -> Place | None:
        """Return what an agent's moves lead to, `depth` of them ahead, with its payoffs; None if it has none now.

        Minds look ahead with it (`conversation.minds.predict`).
        """
        return None

    def omniscient(self, seen: Observation, rng: random.Random) -> Action | None:
        """Play sensibly with what is `opened`; None if it is not visible, or nothing is declared."""
        sees = self.opened and known(seen, self.opened, others(seen)[0]) is not None
        return self.players[self.sensible](seen, rng) if sees else None

    def verdict(self, scores: Mapping[str, Score], answer: AnswerKey) -> Verdict | None:
        """Return the verdict of any family, or the reason of the score `outcome`."""
        if not self.outcome:
            return super().verdict(scores, answer)
        found = scores.get(self.outcome)
        return Verdict(None, sentence(found.reason)) if found and found.reason else None

    def again(self, answer: AnswerKey, talk: Transcript) -> Mapping[str, Any] | None:
        """Return the parameters of the next game, in which a player has read this one; None if there is none."""
        return None

    def step(self, scenario: Scenario, talk: Transcript, seed: int) -> Next:
        """Return what comes next. Nothing but the arguments may matter; draw with `chance(seed, ...)`."""
        raise NotImplementedError

    def next(self, scenario: Scenario, talk: Transcript, seed: int) -> Next:
        """Return the next step within the limits of the scenario: who has left acts no more, and turns are counted."""
        reason = stop_reason(scenario, talk)
        if reason in ("left", "silence"):
            return Stop(reason)
        step = self.step(scenario, talk, scenario.seed or seed)
        _check_step(self, step, scenario)
        if not isinstance(step, Act):
            if isinstance(step, Tell) and _only_told(talk) > TELLS + TELLS_PER_AGENT * len(scenario.names):
                hint = f"let {self.decides} tell each thing once"
                raise _wrong_step(self, "it tells without end and lets nobody act", hint)
            return step
        here = present(scenario, talk)
        speakers = tuple(name for name in step.speakers if name in here)
        if not speakers:
            return Stop("left")
        if reason is not None or len(talk.acts) + len(speakers) > scenario.limits.turns:
            return Stop("turn_limit")
        return step if speakers == step.speakers else replace(step, speakers=speakers)


def _check_step(game: Game, step: object, scenario: Scenario) -> None:
    """Raise InvalidInput for a step that names an agent, action or move which the scenario does not have."""
    if not isinstance(step, Act | Tell | Stop):
        raise _wrong_step(game, f"it returned {step!r}", game.step_hint)
    ways = (*(move.name for move in scenario.moves), *ACTION_TYPES)
    if isinstance(step, Tell):
        _check_names(game, "agent", step.readers or (), scenario.names, scenario)
    elif isinstance(step, Act):
        _check_names(game, "agent", (*step.speakers, *step.named), scenario.names, scenario)
        _check_names(game, "action or move", step.actions, ways, scenario)
        if not step.actions:
            raise _wrong_step(game, "g.act needs at least one action or move after the agent")


def _check_names(game: Game, kind: str, given: Sequence[str], known: Sequence[str], scenario: Scenario) -> None:
    here = set(known)  # a thousand agents can act at the same time
    for name in given:
        if name not in here:
            message = f"the scenario {scenario.id} has no {kind} {name!r}{suggest(name, known, inline=True)}"
            raise _wrong_step(game, message, f"it has {', '.join(known)}")


def _wrong_step(game: Game, message: str, hint: str | None = None) -> InvalidInput:
    """Return the error of a step, with the line where the method that decides begins."""
    return InvalidInput(f"{game.name}.{game.decides}: {message}", where=place_of(game, game.decides), hint=hint)


def _only_told(talk: Transcript) -> int:
    """Return the number of turns since the last act."""
    return next((number for number, turn in enumerate(reversed(talk.turns)) if not turn.told), len(talk))


def act(speakers: str | Sequence[str], *actions: str, phase: str = "", named: Sequence[str] = ()) -> Act:
    """Return a step in which one agent acts, or several at the same time, in one of these ways.

    `named` are the agents whom moves can name now, by default everybody present.
    """
    return Act((speakers,) if isinstance(speakers, str) else tuple(speakers), actions, phase, named=tuple(named))


def addressed(names: Sequence[str], talk: Transcript) -> str:
    """Return who of these agents speaks next: whom the last act named first in its words, else the next in order."""
    last = talk.acts[-1] if talk.acts else None
    if last is None or last.speaker not in names:
        return names[0]
    after = names.index(last.speaker) + 1
    following = [*names[after:], *names[: after - 1]]
    found = {name: re.search(rf"(?<!\w){re.escape(name)}(?!\w)", last.action.text) for name in following}
    places = {name: match.start() for name, match in found.items() if match}
    return min(places, key=lambda name: places[name]) if places else following[0]


def chance(seed: int, *place: str | int) -> random.Random:
    """Return the generator of what nature draws at one place of a game, such as `chance(seed, "quality", 3)`."""
    return random.Random(derive_seed("nature", seed, *place))


def names_of(game: Family, seed: int, count: int) -> list[str]:
    """Return names of agents that depend on the game and the seed."""
    return random.Random(f"{game.name}/{seed}/names").sample(DEFAULT.names, count)


def check_values(game: str, chosen: Mapping[str, Any], allowed: Mapping[str, Sequence[Any]]) -> None:
    """Check parameters of a game: a pair of numbers is the least and the greatest, words are all that are known.

    Raises InvalidInput.
    """
    for name, values in allowed.items():
        if isinstance(values[0], str):
            if chosen[name] not in values:
                raise InvalidInput(
                    f"{game}: {name} = {chosen[name]!r} is not known", hint=f"one of {', '.join(values)}"
                )
        elif not values[0] <= chosen[name] <= values[1]:
            raise InvalidInput(
                f"{game}: {name} = {chosen[name]} is not possible", hint=f"give {values[0]:,g} to {values[1]:,g}"
            )


def amount(value: float) -> str:
    """Return points or money as texts have them: with at most two digits after the point."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if round(value, 2) else "0"


# ---- what a player knows -------------------------------------------------------------------------------------------


def private(name: str, kind: str, text: str, value: object) -> Fact:
    """Return a fact with a value that players read with `known`, such as the price that a buyer can pay."""
    return Fact(id=f"{name.replace(' ', '_')}_{kind}", text=text, terms=(str(value),))


def known(seen: Observation, kind: str, name: str | None = None) -> str | None:
    """Return the value of a `private` fact of an agent, by default the viewer; None where the viewer cannot see it."""
    owner = seen.viewer if name is None else name
    wanted = f"{owner.replace(' ', '_')}_{kind}"
    facts = (fact for agent in seen.agents if agent.name == owner for fact in agent.facts)
    return next((fact.terms[0] for fact in facts if fact.id == wanted), None)


def others(seen: Observation) -> list[str]:
    """Return the names of the other agents, in speaking order."""
    return [agent.name for agent in seen.agents if agent.name != seen.viewer]


def targets(seen: Observation, name: str) -> tuple[str, ...]:
    """Return the agents whom the viewer can name with a move now."""
    return next((way.others for way in seen.allowed if isinstance(way, Bound) and way.name == name), ())


def move(name: str, *values: object, text: str = "") -> Action:
    """Return a move with its values as a line has them; write numbers with `Param.written` if steps have digits."""
    return Action(name, text, tuple(map(str, values)))


def can(name: str, tell: str, *values: Param, by: str | Sequence[str] = (), **more: Any) -> Move:
    """Return a move of a scenario, by default without words; `by` are the agents who can make it, else everybody."""
    who = (by,) if isinstance(by, str) else tuple(by)
    return Move(name=name, tell=tell, values=values, by=who, **{"text": "no", **more})


def speaking(*words: str) -> Callable[[Player], Player]:
    """Return a decorator for players: where they may speak, the first agent says the first words, and so on."""

    def decorate(player: Player) -> Player:
        def play(seen: Observation, rng: random.Random) -> Action:
            if not seen.may("speak"):
                return player(seen, rng)
            place = [agent.name for agent in seen.agents].index(seen.viewer)
            return Action("speak", words[min(place, len(words) - 1)])

        return play

    return decorate


def taking(*actions: Action, otherwise: Player = any_way) -> Player:
    """Return a player that takes the first of these actions that is allowed now; if none is, it plays as another."""

    def play(seen: Observation, rng: random.Random) -> Action:
        return next((each for each in actions if seen.may(each.type)), None) or otherwise(seen, rng)

    return play


def number(low: float | str, high: float | str, step: float | str = 1) -> Param:
    """Return a value that is a number from `low` to `high`."""
    return Param.model_validate({"number": (str(low), str(high)), "step": str(step)})


def one_of(*options: str) -> Param:
    """Return a value that is one of some words."""
    return Param(one_of=options)


ONE_AGENT = Param(agents="one")
"""A value that names another agent."""


# ---- scores --------------------------------------------------------------------------------------------------------


def by_agent(name: str, values: Mapping[str, float], turns: Sequence[int] = ()) -> list[Score]:
    """Return one score for each agent."""
    return [Score(name, float(value), agent=agent, turns=tuple(turns)) for agent, value in values.items()]


__all__ = [
    "DONE",
    "OMNISCIENT",
    "ONE_AGENT",
    "PAYOFF",
    "RANDOM",
    "SUCCESS",
    "Act",
    "Action",
    "Agent",
    "AnswerKey",
    "Control",
    "Fact",
    "Game",
    "Info",
    "InvalidInput",
    "Limits",
    "Measure",
    "Move",
    "Next",
    "Observation",
    "Param",
    "Player",
    "Reference",
    "Scenario",
    "ScenarioFile",
    "Score",
    "Stop",
    "Tell",
    "Transcript",
    "Turn",
    "Verdict",
    "act",
    "addressed",
    "amount",
    "any_values",
    "any_way",
    "between",
    "by_agent",
    "by_chance",
    "can",
    "chance",
    "check_values",
    "exactly",
    "known",
    "listed",
    "mean",
    "merged",
    "move",
    "names_of",
    "number",
    "one_of",
    "others",
    "present",
    "private",
    "share",
    "speaking",
    "taking",
    "targets",
]
