"""Conversations and choices of people as values. Every change is an event; the same events give the same state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from localsim.backends.person import NAME
from localsim.backends.scripted import PREFIX
from localsim.conversation.episode import EpisodeSpec, Mode, StopReason
from localsim.conversation.grants import NOTHING, Grants
from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Action, Turn
from localsim.families import rules_of
from localsim.leakage.meaning import encode_of
from localsim.runs.minds import minds_of
from localsim.runs.plan import by_role, layouts_of, sampling_of

Event = dict[str, Any]
"""A line of a ledger; `event` names its kind."""


@dataclass
class Meeting:
    """Who meets for one conversation, and in what; a role without a person is played by the computer."""

    number: int
    scenario: int
    """Position in the scenarios of the floor."""
    mode: Mode
    index: int
    """Counts the conversations of this scenario and mode from 0."""
    people: Mapping[str, int]
    """Role -> number of the person."""

    def role_of(self, person: int) -> str:
        """The role of a person. Raises StopIteration without one."""
        return next(role for role, number in self.people.items() if number == person)

    def spec(self, scenario: Scenario, partner: str, seed: int, edition: int, grants: Grants = NOTHING) -> EpisodeSpec:
        """The episode of this conversation; `partner` plays the roles without a person."""
        models = {name: NAME if name in self.people else partner for name in scenario.names}
        return EpisodeSpec(
            scenario, self.mode, models, index=self.index, run_seed=seed, sampling=sampling_of(partner),
            grants=grants, layouts=by_role(layouts_of(models.values()), models),
            rules=rules_of(scenario, self.index), edition=edition, encode=encode_of(scenario),
            minds=minds_of(models, scenario.family),
        )  # fmt: skip


@dataclass
class Live:
    """What is known of a conversation while the server runs."""

    meeting: Meeting
    spec: EpisodeSpec
    episode_id: str
    turns: list[Turn] = field(default_factory=list)
    ended: bool = False
    completed: bool = False
    success: float | None = None
    missed: str = ""
    """Why it missed its goal: a word of `Verdict.missed`, or an English sentence; '' if it did not."""
    hits: tuple[int, ...] = ()
    """The turns that nobody could know from the conversation (`Family.hits`)."""
    judged: bool = False
    """True if a turn could be such a hit; False, for example, if the other side had named a price before."""
    foreign: bool = False
    """True if somebody wrote in another language than that of the scenario; then nothing is judged."""
    decided: int | None = None
    """The last turn that is evidence of its success; None without success or evidence."""
    fault: str | None = None
    """The worst fault of a conversation that does not play; '' if it plays, None if that is not scored."""
    broken_off: bool = False
    """True if it had not ended when its floor did: it has neither been completed nor failed."""
    problem: str = ""
    stop_reason: StopReason | None = None
    """Why it ended, if nothing went wrong."""
    given: tuple[int, Action] | None = None
    """A turn of a person that is on its way to the disk."""

    @property
    def computers(self) -> list[str]:
        """The roles that no person plays."""
        return [name for name in self.spec.scenario.names if name not in self.meeting.people]

    @property
    def own_alone(self) -> set[str]:
        """The roles whose players use their own side alone: all as agents, and the scripted player of a class."""
        models = self.spec.models.items()
        return {name for name, model in models if self.meeting.mode == "agents" or model == PREFIX}


MeetingT = TypeVar("MeetingT", bound=Meeting)


class State(Generic[MeetingT]):
    """What the events of a floor lead to. It changes through `apply` alone."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.meetings: dict[int, MeetingT] = {}
        """By number."""
        self.choices: dict[tuple[int, str, int], Action] = {}
        """(number of a conversation, role, first turn of a beat) -> what the role chose before it was asked."""
        self.ended = False
        """True once no conversation goes on."""
        self.closed = False
        """True once the run is complete, so that nothing is left to do."""
        for event in events:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Change the state as one event says."""
        if event["event"] == "choice":
            values = None if event["values"] is None else tuple(event["values"])
            self.choices[event["talk"], event["role"], event["beat"]] = Action(event["type"], event["text"], values)
        elif event["event"] == "end":
            self.ended = True
        elif event["event"] == "closed":
            self.closed = True
