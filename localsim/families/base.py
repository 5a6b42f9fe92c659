"""A task family: everything that is special about one kind of task.

A family generates scenarios from a seed, checks scenario files, scores outcomes, and declares what the rest of
localsim shows about it: title, measures, figure, curve, terms, scripted players and baseline. It never calls a model
and never sees a prompt; its scores rest on the transcript and the answer key alone.

A family of another package inherits from `Family` and overrides what it needs (docs/extending.md).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from localsim.conversation.episode import Observation, Score
from localsim.conversation.measures import Measure
from localsim.conversation.scenario import AnswerKey, Scenario, ScenarioFile
from localsim.conversation.transcript import Action, Transcript
from localsim.errors import InvalidInput
from localsim.families.terms import utters

Location = tuple[str | int, ...]
Player = Callable[[Observation, random.Random], Action]
"""A scripted player: it sees what a model in its place would be prompted with, and draws from a seeded generator."""

SUCCESS = Measure(
    key="success_rate",
    heading="success",
    meaning="share of conversations that reach what the task asks for",
    score="success",
    kind="share",
    summed="share",
    group="goals",
    compared=True,
)
"""Shared by all families whose score `success` is 0 or 1."""
EXPLICIT_END = Measure(
    key="explicit_end_rate",
    heading="explicit end",
    meaning="share of conversations that end in words, by agreement, refusal or farewell, before the turn limit",
    score="explicit_end",
    kind="share",
    summed="share",
    group="goals",
    compared=True,
)


@dataclass(frozen=True)
class Played:
    """A completed episode as a curve reads it."""

    transcript: Transcript
    answer: AnswerKey
    scores: Mapping[str, float]
    """Newest scores of the whole episode, by name."""


@dataclass(frozen=True)
class Point:
    """One event of an episode, on a side ('' for all agents); `value` matters where values are averaged."""

    position: float
    """0 at the start of the conversation, 1 at its end."""
    value: float = 1.0
    side: str = ""


@dataclass(frozen=True)
class Curve:
    """How something develops over the course of a conversation, drawn for each mode."""

    name: str
    heading: str
    meaning: str
    kind: Literal["reached", "average"]
    """`reached`: the share of episodes whose point is at or before a position. `average`: the mean value of all
    points in each fifth of the conversation.
    """
    points: Callable[[Played], Sequence[Point] | None]
    """Points of one episode; None leaves the episode out."""


@dataclass(frozen=True)
class Baseline:
    """The scripted player that a family's figures must be read against."""

    player: str
    warning: str
    """Printed where a run holds the family without this player."""


class Family:
    """A kind of task whose outcome can be verified. Override what is special; the defaults suit a plain task."""

    name: str = ""
    version: str = "1"
    """Version of the scoring, a whole number as text; stored with each score."""
    defaults: Mapping[str, Any] = {}
    """Parameters of `generate` and their default values."""
    title: str = ""
    """Heading in reports and pages; made from `name` where it is empty."""
    about: str = ""
    """One or two sentences that say what the task is."""
    invitation: str = ""
    """Title of the task where people choose what to play."""
    measures: Sequence[Measure] = (SUCCESS,)
    """In the order of a report's columns."""
    figure: Sequence[str] = ("success_rate", "checks_passed", "explicit_end_rate")
    """Keys of the measures in the main figure."""
    curve: Curve | None = None
    players: Mapping[str, Player] = {}
    """Scripted players by name, for `-m scripted:NAME`."""
    sensible: str = ""
    """The player behind `-m scripted`; '' leaves the scenario to small talk."""
    baseline: Baseline | None = None
    terms_disclose: bool = False
    """Whether a private fact is out as soon as its first term is uttered, and not before: so with names of friends. A
    price may be offered without being the target, so there a term is a hint.
    """

    def generate(self, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> ScenarioFile:
        """A scenario file that depends on nothing but its arguments. Raises InvalidInput for a bad parameter."""
        raise NotImplementedError

    def check(self, document: ScenarioFile) -> list[tuple[Location, str]]:  # noqa: ARG002 - overridden
        """Defects that keep a file from being scored: (place in the file, message) pairs."""
        return []

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Outcome scores, each citing the turns it rests on; a score that cannot be known is left out."""
        raise NotImplementedError

    def omniscient(self, seen: Observation, rng: random.Random) -> Action | None:  # noqa: ARG002 - overridden
        """The turn of a player that uses everything it can see of others; None where it sees no more than its own."""
        return None

    def side(self, agent: str, answer: AnswerKey) -> str:  # noqa: ARG002 - overridden
        """The side of an agent, such as `seller`, for measures of one side; '' where all agents are alike."""
        return ""

    def remarks(self, scores: Mapping[str, float]) -> list[str]:  # noqa: ARG002 - overridden
        """Sentences about the outcome of one episode, from its scores by name, for a reader of its transcript."""
        return []

    def utters(self, text: str, term: str) -> bool:
        """Whether a text utters a term of a private fact."""
        return utters(text, term)


def merged(defaults: Mapping[str, Any], parameters: Mapping[str, Any], family: str) -> dict[str, Any]:
    """`defaults` overlaid with `parameters`; values are read as the type of their default. Raises InvalidInput."""
    result = dict(defaults)
    for key, value in parameters.items():
        if key not in defaults:
            raise InvalidInput(f"{family} has no parameter {key!r}", hint=f"it has: {', '.join(sorted(defaults))}")
        try:
            result[key] = type(defaults[key])(value)
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"{family}: {key} = {value!r} is not a {type(defaults[key]).__name__}",
                hint=f"for example {key}={defaults[key]}",
            ) from error
    return result
