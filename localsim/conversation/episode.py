"""The values of an episode: its plan (EpisodeSpec), an agent's view (Observation) and the result (Episode, Score).

Pure values. Seeds are derived here: an episode's from (run seed, scenario, index), a turn's from (that, turn,
attempt) and nothing else, so that modes and models can be compared pair by pair.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

from localsim.conversation.grants import NOTHING, Grants, Sight
from localsim.conversation.memories import Encode
from localsim.conversation.rules.lines import Way, name_of
from localsim.conversation.rules.steps import Rules
from localsim.conversation.rules.steps import StopReason as StopReason
from localsim.conversation.rules.values import Move
from localsim.conversation.scenario import AnswerKey, Fact, RelationshipLevel, Scenario, canonical_hash
from localsim.conversation.transcript import ActionType, Transcript
from localsim.errors import suggest

if TYPE_CHECKING:
    from localsim.conversation.minds.flows import Flow

Mode = Literal["script", "iterative", "agents", "mindreaders"]
"""A mode that can be simulated."""
MODES: tuple[Mode, ...] = ("script", "agents", "mindreaders")
"""The three modes of the paper, which `--mode all` means."""
SIMULATED: tuple[Mode, ...] = get_args(Mode)
"""All modes that can be simulated."""
SINGLE_AUTHOR: tuple[Mode, ...] = ("script", "iterative")
"""The modes in which one model writes all agents."""
OMNISCIENT: tuple[Mode, ...] = (*SINGLE_AUTHOR, "mindreaders")
"""The modes in which every writer sees all sides."""
StoredMode = Literal["script", "iterative", "agents", "mindreaders", "people"]
CONDITIONS: tuple[StoredMode, ...] = get_args(StoredMode)
"""The modes that an episode in a database may have, in the order of tables; `people`: imported, never simulated."""
PEOPLE: StoredMode = "people"
Repro = Literal["exact", "stable", "fast"]
REPRO_LEVELS: tuple[Repro, ...] = get_args(Repro)
Overflow = Literal["error", "window"]
"""Treatment of a conversation that outgrows its context: it fails, or its oldest turns are left out."""
OVERFLOWS: tuple[Overflow, ...] = get_args(Overflow)
Status = Literal["completed", "failed", "interrupted"]
EDITION = 2
"""The newest edition of the rules that all talks share, which new runs follow. A run keeps the edition that it began
with, so that a resumed episode goes on as it would have. 2: goodbyes and repetition end a talk in turn.
"""


@dataclass(frozen=True)
class Sampling:
    """Settings for drawing tokens, equal in every mode. Penalties look at the speaker's own utterances, but for one."""

    temperature: float = 0.4
    """0 takes the most likely token. A small model makes more mistakes at high temperatures (models/starter.md); at low
    ones DRY keeps it out of loops.
    """
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    """Divides the logit of tokens said within the window; 1 is off."""
    repeat_window: int = 128
    """Number of tokens of the speaker's own utterances that penalties look back on."""
    dry_multiplier: float = 0.8
    """Strength of DRY against repeated sequences (llama.cpp's sampler); 0 is off."""
    dry_length: int = 6
    """Length in tokens up to which a repeated sequence gets no penalty."""
    dry_others: int = 0
    """As `dry_length`, for sequences of others' utterances, so that a model does not say after what it hears; 0 is off:
    repeating another's words is an answer.
    """
    act_min_p: float = 0.0
    """As `min_p`, outside utterances where there are no moves: an action less likely than this share of the likeliest
    is never drawn. Small models give `[leave]` some per cent at every turn, settled or not.
    """
    grammar: bool = True
    """True if a grammar restricts the output to lines of actions."""

    def stated(self) -> dict[str, Any]:
        """Return the settings by name, without those that came later and are off: hashes of older runs stay."""
        return {name: value for name, value in asdict(self).items() if value or name not in ("dry_others", "act_min_p")}


@dataclass(frozen=True)
class EpisodeSpec:
    """One episode to simulate: everything that its text depends on, and never the answer key."""

    scenario: Scenario
    mode: Mode
    models: Mapping[str, str]
    """The model of each role. Roles are the agents' names, or `writer` in script mode."""
    index: int
    """Counts the episodes of one scenario x mode x model x variant from 0."""
    run_seed: int
    sampling: Sampling = field(default_factory=Sampling)
    repro: Repro = "stable"
    variant: int = 0
    """Number of the variant of the prompt (`variants`); `sampling` is already that of the variant."""
    grants: Grants = NOTHING
    """Private items of others that the agents see; only in agents mode."""
    layouts: Mapping[str, str] = field(default_factory=dict)
    """Role -> layout of its prompts (`wording.layouts`); a role that is not named has the first one."""
    rules: Rules | None = field(default=None, compare=False, repr=False)
    """The rules of the scenario's game; None: its phases, or everybody in turn. The family and its version name them,
    so they are not hashed.
    """
    edition: int = EDITION
    """The edition of the shared rules."""
    encode: Encode | None = field(default=None, compare=False, repr=False)
    """What compares meanings, for a scenario whose `recall` does."""
    minds: Mapping[str, Flow] = field(default_factory=dict)
    """Role -> the steps before its lines (`minds`), as the name of its model says; a role without any is not named."""

    @cached_property
    def seed(self) -> int:
        """The seed of the episode, equal in every mode, for every model and in every variant."""
        return derive_seed("episode", self.run_seed, self.scenario.id, self.index)

    def turn_seed(self, turn: int, attempt: int) -> int:
        """The seed of one attempt at one turn."""
        return derive_seed("turn", self.seed, turn, attempt)

    @cached_property
    def hash(self) -> str:
        """The sha256 of everything that the episode depends on.

        Variant 0, grants of nothing, the first layout, the first edition and minds without steps are left out, as in
        runs before there were any others.
        """
        parts = {
            "scenario": self.scenario.hash,
            "mode": self.mode,
            "models": dict(self.models),
            "index": self.index,
            "run_seed": self.run_seed,
            "sampling": self.sampling.stated(),
            "repro": self.repro,
        }
        given = {
            "variant": self.variant,
            "see": self.grants.text,
            "layouts": dict(self.layouts),
            "edition": self.edition if self.edition > 1 else 0,
            "minds": {role: mind.stated() for role, mind in self.minds.items()},
        }
        return canonical_hash({**parts, **{name: value for name, value in given.items() if value}})


def derive_seed(*parts: str | int) -> int:
    """A seed in 1 .. 2**31-1 from a sha256 of the parts (0 would mean random to llama.cpp)."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8], "big") % (2**31 - 1) + 1


@dataclass(frozen=True)
class AgentView:
    """One agent as a viewer may know it; None and () stand for anything hidden or absent."""

    name: str
    profile: tuple[tuple[str, str], ...] = ()
    """(label, value) pairs, such as ("age", "34")."""
    goal: str | None = None
    secret: str | None = None
    facts: tuple[Fact, ...] = ()
    persona: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """(field, texts) pairs of what it would say and knows; the fields are those of `scenario.PERSONA`."""
    memories: tuple[str, ...] = ()
    """What comes to its mind now, the best last."""


@dataclass(frozen=True)
class Observation:
    """Everything that one viewer may know at one moment. Prompts and scripted players depend on nothing else."""

    viewer: str
    """An agent's name, or `writer`."""
    setting: str
    relationships: tuple[tuple[str, str, RelationshipLevel], ...]
    """(agent, other agent, level) for the pairs that the viewer may know about."""
    agents: tuple[AgentView, ...]
    """In speaking order."""
    omniscient: bool
    """True if the viewer sees every agent's goal, secret and facts."""
    actions: tuple[ActionType, ...]
    turn_limit: int
    transcript: Transcript
    """The turns that the viewer can read. Of simultaneous turns, its own comes first."""
    family: str | None = None
    sees: Sight = ()
    """Items of each other agent in this view that were granted to the viewer."""
    exposed: Sight = ()
    """Items of the viewer that each other agent was granted, so that no prompt may call them hidden."""
    announced: tuple[tuple[str, Sight], ...] = ()
    """What each agent sees of the others, if all agents are told so."""
    decoys: tuple[AgentView, ...] = ()
    """People who were made up and are not here; their items are as long as those that are hidden."""
    moves: tuple[Move, ...] = ()
    """The moves that the viewer can make at some time; for a writer, those of all agents."""
    allowed: tuple[Way, ...] = ()
    """The ways in which the viewer can act now."""
    phased: bool = False
    """True if phases or the rules of a game decide who acts next."""
    game: Mapping[str, Any] = field(default_factory=dict)
    """The numbers of the game that everybody knows (`public` of the scenario's `game`); prompts have them in words."""

    def may(self, name: str) -> bool:
        """Return True if the viewer can take an action or move of this name now."""
        return any(name_of(way) == name for way in self.allowed)

    def me(self) -> AgentView:
        """The viewer's own entry (KeyError for the writer, who has none)."""
        for agent in self.agents:
            if agent.name == self.viewer:
                return agent
        raise KeyError(self.viewer)


@dataclass(frozen=True)
class Episode:
    """The result of simulating a spec."""

    spec: EpisodeSpec
    transcript: Transcript
    status: Status
    stop_reason: StopReason | None = None
    """The stop rule that ended it; None for a failed episode."""
    error: str | None = None
    """The reason why it failed."""


@dataclass(frozen=True)
class Belief:
    """What an agent with a mind said to itself before a turn, when it was asked to infer something."""

    turn: int
    agent: str
    text: str
    """Its reply."""
    weights: Mapping[str, float]
    """Its probability of each answer; empty where its backend sees none."""


@dataclass(frozen=True)
class Subject:
    """A completed episode, as evaluators read it."""

    episode_id: str
    scenario: Scenario
    answer: AnswerKey
    mode: StoredMode
    index: int
    seed: int
    transcript: Transcript
    variant: int = 0
    see: str = ""
    """The grants, as in `Grants.text`."""
    run_id: str = ""
    model: str = ""
    beliefs: tuple[Belief, ...] = ()


@dataclass(frozen=True)
class Score:
    """One judgement about an episode, with its evidence. A missing score is absent, never 0."""

    name: str
    value: float | None
    label: str | None = None
    """A value that is a word, such as `deal`."""
    agent: str | None = None
    """The agent that it concerns; None for the whole episode."""
    reason: str = ""
    turns: tuple[int, ...] = ()
    """Indices of the turns that are its evidence."""


def checked_scores(scores: Iterable[Score]) -> tuple[Score, ...]:
    """Return the scores. Raises TypeError or ValueError for what cannot be stored: no Score, no finite number, or two
    scores of one name and agent.
    """
    if not isinstance(scores, Iterable):
        raise TypeError(f"score returned {scores!r}, which is no list of scores")
    given = tuple(scores)
    for score in given:
        if not isinstance(score, Score) or not isinstance(score.value, int | float | None):
            raise TypeError(f"not a Score with a number or None: {score!r}")
        if score.value is not None and not math.isfinite(score.value):
            raise ValueError(f"score {score.name} is {score.value}")
    names = [(score.name, score.agent) for score in given]
    if len(set(names)) < len(names):
        twice = next(name for name, agent in names if names.count((name, agent)) > 1)
        raise ValueError(f"score {twice} is given twice")
    return given


def scores_of_episode(scores: Sequence[Score], scenario: Scenario, transcript: Transcript) -> tuple[Score, ...]:
    """Return the scores of an episode, checked. Raises ValueError also for an agent or a turn that it does not have."""
    given = checked_scores(scores)
    names = set(scenario.names)
    for score in given:
        if score.agent is not None and score.agent not in names:
            meant = suggest(score.agent, scenario.names, inline=True)
            raise ValueError(f"score {score.name} is for {score.agent!r}, who is not in {scenario.id}{meant}")
        if absent := [turn for turn in score.turns if not 0 <= turn < len(transcript)]:
            raise ValueError(f"score {score.name} rests on turn {absent[0]}, and there are {len(transcript)} turns")
    return given
