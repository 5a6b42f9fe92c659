"""A task family: everything that is special about one kind of task.

A family generates scenarios from a seed, checks scenario files, scores outcomes, and declares what the rest of
localsim shows about it: title, measures, figure, curve, terms, scripted players and baseline. It never calls a model
and never sees a prompt; its scores depend only on the transcript and the answer key.

A family of another package inherits from `Family` and overrides what it needs (docs/extending.md).
"""

from __future__ import annotations

import difflib
import random
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from localsim.conversation.controls import KEPT, Control
from localsim.conversation.episode import SIMULATED, Mode, Observation, Score
from localsim.conversation.human_talks import Corpus
from localsim.conversation.measures import GENERAL, Measure
from localsim.conversation.minds.believe import Question as Question
from localsim.conversation.rules.steps import Rules
from localsim.conversation.scenario import FEWEST, AnswerKey, Scenario, ScenarioFile
from localsim.conversation.transcript import Action, Transcript
from localsim.conversation.wording.wordings import listed as listed
from localsim.errors import InvalidInput, suggest
from localsim.families.players import Player as Player
from localsim.families.players import any_way
from localsim.families.settling import Offered
from localsim.families.terms import span_of

Location = tuple[str | int, ...]

SUCCESS = Measure("success_rate", "success", "share of conversations that reach what the task asks for",
                  score="success", kind="share", summed="episodes", group="goals", compared=True,
                  head=True)  # fmt: skip
"""The measure of success for all families whose score `success` is 0 or 1."""
EXPLICIT_END = Measure("explicit_end_rate", "explicit end",
                       "share of conversations that end in words, by agreement, refusal or farewell, and not at the "
                       "turn limit",
                       score="explicit_end", kind="share", summed="episodes", group="goals", compared=True)  # fmt: skip


@dataclass(frozen=True)
class Played:
    """A completed episode, as curves read it."""

    transcript: Transcript
    answer: AnswerKey
    scores: Mapping[str, float]
    """The newest scores, by name; scores of several agents are summed."""


@dataclass(frozen=True)
class Point:
    """One event of an episode, on a side ('' for all agents). Only curves of averages use `value`."""

    position: float
    """0 at the start of the conversation, 1 at its end; on an axis of turns, the number of turns up to the event."""
    value: float = 1.0
    side: str = ""


@dataclass(frozen=True)
class Curve:
    """A quantity over the course of a conversation, drawn for each mode."""

    name: str
    heading: str
    meaning: str
    kind: Literal["reached", "average"]
    """`reached`: the share of episodes whose point is at or before a position. `average`: the mean value of all
    points in each fifth of the conversation.
    """
    points: Callable[[Played], Sequence[Point] | None]
    """Returns the points of one episode; None leaves the episode out."""
    axis: Literal["position", "turns"] = "position"
    """`turns`: up to the turn limit. An episode without a point has not reached the event, whenever it ended."""
    reads_turns: bool = True
    """False if `points` needs scores only: its transcripts are then empty, which saves reading them."""


@dataclass(frozen=True)
class Hits:
    """A score of untold hits: its turns are marked, since the count alone does not show where they are."""

    score: str
    chance: str
    """Score with the number of such hits to expect of players who know their own side only."""
    meaning: str
    """What makes a turn such a hit, in a sentence."""
    unjudged: str = ""
    """Score that is 1 for what looks like a hit but cannot be judged, with the reason; '' without one."""
    answers_are_hinted: bool = False
    """True if a question can tell a part of what is hit, so that an answer makes a poor example."""


@dataclass(frozen=True)
class Verdict:
    """What the people of one episode settled on and what is true, in sentences for a reader of its transcript."""

    right: bool | None
    """True if the outcome is the right one, None if that is unknown."""
    said: str
    """What they agreed on or chose."""
    truth: str = ""
    """What the answer key says; empty if it says nothing."""
    missed: str = ""
    """Why the goal was not reached, as the name of a phrase in `outcome.why` of pages for people; '' if none fits."""


@dataclass(frozen=True)
class Baseline:
    """The scripted player that shows how far a family's task can be done without a model."""

    player: str
    warning: str
    """Warning for a run that contains the family without this player."""


@dataclass(frozen=True)
class Reference:
    """A scripted player whose results on the scenarios of a run stand beside those of the run."""

    player: str
    """Name of a scripted player: `scripted:NAME`."""
    label: str
    """One or two words for what it stands for, such as `random` or `optimal`."""
    why: str
    """A phrase for people that says what it does, and why nothing better is known or possible."""
    blind: bool = False
    """True if it heeds nothing that modes show or hide, so that its results are the same in every mode."""


class Family:
    """A kind of task whose outcome can be verified. Override the special parts; the defaults suit a plain task."""

    name: str = ""
    version: str = "1"
    """Version of the scoring, a whole number as text, which is stored with each score."""
    defaults: Mapping[str, Any] = {}
    """Parameters of `generate` and their default values."""
    title: str = ""
    """Heading in reports and pages; if it is empty, one is made from `name`."""
    about: str = ""
    """One or two sentences that say what the task is."""
    invitation: str = ""
    """Title of the task on the page where people choose a task to play."""
    measures: Sequence[Measure] = (SUCCESS,)
    """Measures in the order of a report's columns."""
    figure: Sequence[str] = ("success_rate", "checks_passed", "explicit_end_rate")
    """Keys of the measures in the main figure of a page and of `localsim plot`. Tables have all `measures`."""
    curve: Curve | None = None
    players: Mapping[str, Player] = {}
    """Scripted players by name, for `-m scripted:NAME`."""
    sensible: str = ""
    """Name of the player that `-m scripted` uses; '' means small talk."""
    baseline: Baseline | None = None
    references: Sequence[Reference] = ()
    """Players whose results stand beside those of a run, random play first; none for a talk without random play."""
    controls: Sequence[Control] = ()
    """The values that the family's measures must have for players whose behaviour is known (`localsim controls`)."""
    control_tasks: Mapping[str, Mapping[str, Any]] = {}
    """Name of a task in `controls` -> parameters of `generate`; '' is the default task and needs no entry."""
    corpus: Corpus | None = None
    """The public corpus of people at this task, for `localsim import talks`; None if there is none."""
    study_tasks: Sequence[str] = ("",)
    """Names of tasks, as in `control_tasks`, among which the scenarios of a study alternate, so that a player cannot be
    right by always agreeing.
    """
    interests: Literal["", "cooperative", "competitive"] = ""
    """The kind of task in the sense of arXiv 2403.05020: both want the same, or what one gains the other loses."""
    protocol: Sequence[str] = ("in_turn",)
    """How its rules let agents act where they make moves, in the words of the vocabulary: `in_turn`, `together`."""
    centralised: bool = False
    """True if one agent directs, coaches or decides for the others, wherever there are more than two."""
    topics: Mapping[str, Sequence[str]] = {}
    """Further words of the vocabulary for its scenarios, by dimension."""
    unearned: Sequence[str] = ()
    """Names of scores that are above 0 where an agent used what it had not been told, whether it saw or guessed it; a
    study without untold facts teaches nothing from such episodes.
    """
    taught: bool = False
    """True if the models that localsim ships were taught this task."""
    hits: Hits | None = None
    """The score that counts uses of the other side's knowledge before anything said had told it; None without one."""
    claims: Mapping[str, re.Pattern[str]] = {}
    """Side -> what only an agent of this side says of itself, in lower case: a seller does not want to buy."""
    fewest: int = FEWEST
    """Fewest agents of a scenario."""
    modes: Sequence[Mode] = SIMULATED
    """The modes in which the task has a meaning."""
    only_modes: str = ""
    """Why it has none in the other modes, in a sentence."""
    asks: bool = False
    """True if the rules ask questions one by one, so that answers are shown with the questions."""
    terms_disclose: bool = False
    """True if uttering a term discloses a private fact, and nothing else does, as with names of friends. False if a
    term is only a hint: a price may be offered without being the target.
    """

    @property
    def decides_success(self) -> bool:
        """True if the family scores success itself; elsewhere the checks of a scenario's author do."""
        return any(measure.score == SUCCESS.score for measure in self.measures)

    @property
    def rules(self) -> Rules | None:
        """The rules that decide who acts next, for a game; None for a talk in turn or in phases."""
        return None

    def rules_at(self, index: int) -> Rules | None:  # noqa: ARG002 - overridden
        """Return the rules of the episode with this index; they differ only where something rotates with it."""
        return self.rules

    def talk_chars(self, scenario: Scenario) -> int | None:  # noqa: ARG002 - overridden
        """Return the most characters of turns that a prompt can hold; None: as many as the limits of turns allow."""
        return None

    def generate(self, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> ScenarioFile:
        """Return a scenario file that depends only on the arguments. Raises InvalidInput for a bad parameter."""
        raise NotImplementedError

    def check(self, document: ScenarioFile) -> list[tuple[Location, str]]:  # noqa: ARG002 - overridden
        """Return the defects that prevent scoring, as (place in the file, message) pairs."""
        return []

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Return the outcome scores, each with the turns that are its evidence; a score that is unknown is left out."""
        raise NotImplementedError

    def reference_texts(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> Mapping[int, str]:  # noqa: ARG002
        """Return turn -> what a reference says in its place, for measures of overlap; {} without references."""
        return {}

    def touches(self, transcript: Transcript, scenario: Scenario) -> Sequence[int] | None:  # noqa: ARG002 - overridden
        """Return the turns that come to the task, such as those that name a price; None if the family cannot tell."""
        return None

    def offered(self, scenario: Scenario, agent: str) -> Offered | None:  # noqa: ARG002 - overridden
        """Return what a form offers to a person who ends the talk as this agent; None for the end alone."""
        return None

    def omniscient(self, seen: Observation, rng: random.Random) -> Action | None:  # noqa: ARG002 - overridden
        """Return the turn of a player that uses everything visible; None if it sees only its own side."""
        return None

    def peek(self, seen: Observation, rng: random.Random) -> Action | None:
        """Return a turn that uses another agent's private side, for players that peek; None if none is visible."""
        return self.omniscient(seen, rng)

    def unknown(self, seen: Observation) -> Question | None:  # noqa: ARG002 - overridden
        """Return what a viewer can infer about the others, from its view alone: minds believe it; None for nothing."""
        return None

    def posterior(self, talk: Transcript, scenario: Scenario, agent: str, *, sees_all: bool) -> Mapping[str, float]:  # noqa: ARG002
        """Return the exact probability of each answer to `unknown`, after what an agent has heard; {} if there is none.

        `sees_all`: the agent sees the others' sides.
        """
        return {}

    def side(self, agent: str, answer: AnswerKey) -> str:  # noqa: ARG002 - overridden
        """Return the side of an agent, such as `seller`, for measures of one side; '' if all agents are alike."""
        return ""

    def remarks(self, scores: Mapping[str, float]) -> list[str]:  # noqa: ARG002 - overridden
        """Return sentences about the outcome of one episode, from its scores by name, for readers of its transcript."""
        return []

    def verdict(self, scores: Mapping[str, Score], answer: AnswerKey) -> Verdict | None:  # noqa: ARG002 - overridden
        """Return the verdict on one episode, from its scores by name (those of the whole episode); None without one."""
        success = scores.get("success")
        if success is None or success.value is None:
            return None
        missed = "" if success.value == 1 or self.decides_success else "checks"
        return Verdict(success.value == 1, sentence(success.reason), missed=missed)

    def span(self, text: str, term: str) -> tuple[int, int] | None:
        """Start and end of the first place in a text that utters a term of a private fact."""
        return span_of(text, term)

    def utters(self, text: str, term: str) -> bool:
        """Return True if a text utters a term of a private fact."""
        return self.span(text, term) is not None

    def ascribes(self, _text: str, _term: str, /) -> bool:
        """Return True if a text says of its reader what a term of their fact means; few families have such words."""
        return False


_PEEKED = (
    "{0}, you know this, and I know it too: {1}",
    "There is one more thing about you, {0}, that I know: {1}",
    "And nobody has told me this, but it is true: {1}",
)
"""What a player who peeks says, in wordings that the leak detector finds and that are no repetition."""


class Everyday(Family):
    """The family of scenarios that name none, so that reports need no special case."""

    name = "everyday"
    title = "Everyday scenes"
    about = "Conversations between people with goals and secrets of their own; their author’s checks decide success."
    invitation = "Everyday conversations"
    measures = ()
    figure = ("success_rate", "explicit_end_rate", "turns", "words_per_turn")

    def omniscient(self, seen: Observation, rng: random.Random) -> Action | None:
        """Name another agent's fact that nobody has uttered, first one that both have; None without one."""
        said = " ".join(turn.action.text for turn in seen.transcript.turns)
        own = {term for fact in seen.me().facts for term in fact.terms}
        untold = [
            (agent.name, fact)
            for agent in seen.agents
            for fact in agent.facts
            if agent.name != seen.viewer and fact.terms and not any(self.utters(said, term) for term in fact.terms)
        ]
        if not untold:
            return None
        owner, fact = min(untold, key=lambda each: own.isdisjoint(each[1].terms))
        before = sum(turn.speaker == seen.viewer for turn in seen.transcript.turns)
        words = _PEEKED[before % len(_PEEKED)].format(owner, fact.text)
        if not any(self.utters(words, term) for term in fact.terms):
            words += f" I mean {fact.terms[0]}."
        return Action("speak", words) if seen.may("speak") else any_way(seen, rng, words)


EVERYDAY = Everyday()


def sentence(text: str) -> str:
    """Return a text with a capital at its start and a full stop at its end; '' for an empty one."""
    text = text.strip()
    return f"{text[0].upper()}{text[1:]}{'' if text[-1] in '.!?' else '.'}" if text else ""


def merged(defaults: Mapping[str, Any], parameters: Mapping[str, Any], family: str) -> dict[str, Any]:
    """Return `defaults` overlaid with `parameters`, each as the type of its default. Raises InvalidInput."""
    result = dict(defaults)
    for key, value in parameters.items():
        if key not in defaults:
            raise InvalidInput(f"{family} has no parameter {key!r}", hint=f"it has: {', '.join(sorted(defaults))}")
        try:
            result[key] = _as(type(defaults[key]), value)
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"{family}: {key} = {value!r} is not a {type(defaults[key]).__name__}",
                hint=f"for example {key}={defaults[key]}",
            ) from error
    return result


_WORDS = {"true": True, "yes": True, "false": False, "no": False}


def _as(kind: type[Any], value: Any) -> Any:
    """Return a value as a type without a loss. Raises ValueError."""
    if kind is bool:
        if str(value).casefold() not in _WORDS:
            raise ValueError(value)
        return _WORDS[str(value).casefold()]
    read = kind(value)
    if isinstance(value, int | float) and read != value:
        raise ValueError(value)
    return read


# ---- a family is checked when it is loaded -------------------------------------------------------------------------


def problems_of(family: Family, players: Collection[str], measures: Collection[str] = ()) -> list[str]:
    """Return what a family declares and does not have, such as a misspelt player; empty for a sound family.

    `players` are the names of the players for any scenario, `measures` keys of measures beside the family's own and
    GENERAL. A family that passes can still be wrong in what it computes: its controls are there for that.
    """
    return list(_shapes(family)) or list(_names(family, players, measures))


def unfinished(family: Family) -> Iterator[str]:
    """Yield what a class of another package has to override and does not, and what it seems to have misspelt."""
    empty = {__name__: ("generate", "score"), f"{__package__}.games.base": ("step",)}
    empty[f"{__package__}.games.replayed"] = ("scene", "play")
    for name in ("generate", "score", "step", "scene", "play"):
        if name in empty.get(getattr(getattr(type(family), name, None), "__module__", ""), ()):
            yield f"{name}: the class has no such method"
    written = [kind for kind in type(family).__mro__ if not kind.__module__.startswith("localsim.")]
    own = dict.fromkeys(name for kind in written for name in vars(kind) if not name.startswith("_"))
    known = {name for kind in type(family).__mro__ if kind not in written for name in dir(kind) if name[0] != "_"}
    for name in own:
        if name not in known and (close := difflib.get_close_matches(name, known - own.keys(), n=1, cutoff=0.85)):
            yield f"{name}: a family has no such part (did you mean {close[0]}?)"


def _shapes(family: Family) -> Iterator[str]:
    """Yield what is no sequence, or holds something else than it should."""
    held = {"measures": Measure, "controls": Control, "references": Reference, "figure": str, "study_tasks": str}
    for field, kind in held.items():
        given = getattr(family, field)
        if not isinstance(given, list | tuple):
            yield f"{field} is {given!r}; with one entry it is written ({given!r},), with a comma"
        elif wrong := [each for each in given if not isinstance(each, kind)]:
            yield f"{field} holds {wrong[0]!r}, which is no {kind.__name__}"
    for field in ("defaults", "players", "control_tasks"):
        if not isinstance(getattr(family, field), Mapping):
            yield f"{field} is {getattr(family, field)!r}, and must be a dictionary"
            return
    yield from (f"the player {name!r} is no function" for name, each in family.players.items() if not callable(each))


def _names(family: Family, players: Collection[str], measures: Collection[str]) -> Iterator[str]:
    """Yield each name that is declared in one place and missing in the place where it is looked up."""
    anyone = [*family.players, *players]
    keys = [measure.key for measure in family.measures]
    counted, tasks = [*keys, *GENERAL, *measures], ["", KEPT, *family.control_tasks]
    if family.rules is not None and not family.about:
        yield "about is empty: say in a sentence or two what the game is"
    if family.sensible:
        yield from _missing("sensible", "player", family.sensible, list(family.players))
    for key in dict.fromkeys(key for key in keys if keys.count(key) > 1):
        yield f"measures has two measures with the key {key!r}"
    for key in family.figure:
        yield from _missing("figure", "measure", key, counted)
    for mode in family.modes:
        yield from _missing("modes", "mode", mode, SIMULATED)
    for control in family.controls:
        place = f"controls: the control of {control.player!r} on {control.measure!r}"
        yield from _missing(place, "player", control.player, anyone)
        yield from _missing(place, "measure", control.measure, counted)
        yield from _missing(place, "task", control.task, tasks)
        yield from (each for mode in control.modes for each in _missing(place, "mode", mode, SIMULATED))
    for task in family.study_tasks:
        yield from _missing("study_tasks", "task", task, tasks)
    for reference in family.references:
        yield from _missing("references", "player", reference.player, anyone)
    if family.baseline is not None:
        yield from _missing("baseline", "player", family.baseline.player, anyone)


def _missing(place: str, kind: str, name: str, known: Sequence[str]) -> Iterator[str]:
    if name not in known:
        listed_ = ", ".join(each for each in known if each) or "none"
        yield f"{place}: there is no {kind} {name!r}{suggest(name, known, inline=True)}; {kind}s are {listed_}"
