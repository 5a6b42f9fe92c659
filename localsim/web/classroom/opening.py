"""How a class begins: scenarios, seed, tokens and join code, and the episodes that follow from them."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from localsim.backends.person import NAME
from localsim.conversation.episode import EpisodeSpec, Mode
from localsim.conversation.scenario import LoadedScenario, Scenario
from localsim.runs.plan import Plan
from localsim.web.classroom.seats import MODES
from localsim.web.floor.floor import Terms
from localsim.web.floor.ledger import Doors
from localsim.web.floor.state import Meeting

MOST_SEATS = 200
_SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]


@dataclass(frozen=True)
class ClassOpening(Doors):
    """What is decided when a class begins."""

    scenarios: tuple[str, ...]
    """Hashes of the scenarios."""
    computer: str
    """The model or scripted player that takes a seat where no person does."""
    alone: bool
    """True if every phone plays with the computer."""
    seed: int
    teacher: str
    """The token of the projector page and its buttons."""
    code: str
    """The join code: four syllables, such as BAKO-TILU."""
    modes: tuple[Mode, ...] = MODES
    """What the players see; ledgers of the time before do not name it, nor what follows."""
    language: str = "en"
    """The language of phones and projector, by the name that `phrases.table.find` knows."""
    seats: int = MOST_SEATS
    """The most phones that can join."""
    at: float = 0.0
    """When the class began, in seconds since 1970."""

    def continues(self, other: ClassOpening) -> bool:
        """Return True if a class that would begin as `other` continues this one; a laptop may get a new address."""
        return self._played == other._played

    @property
    def _played(self) -> tuple[object, ...]:
        return self.scenarios, self.computer, self.alone, self.modes


@dataclass(frozen=True)
class Wish:
    """What the command line or the form asks for."""

    scenarios: Sequence[LoadedScenario]
    computer: str
    """The model or scripted player for seats without a person."""
    alone: bool
    """True if every phone plays with the computer."""
    host: str
    port: int | None
    fresh: bool
    """True for a new class, even if one that could go on is in the ledger."""
    against: str | None
    """The run of an earlier class, whose results are shown beside those of this one."""
    replay: bool = False
    """True if every phone plays with the decisions of the earlier class."""
    modes: tuple[Mode, ...] = MODES
    """What the players see."""
    language: str = "en"
    """The name of a language, or a file of phrases."""
    seats: int = MOST_SEATS
    """The most phones that can join."""


@dataclass(frozen=True)
class Form:
    """The form on which a class is chosen."""

    host: str
    """The address that it offers first."""
    language: str
    """The language that it offers first."""
    begin: Callable[[Wish], str]
    """Begins the class, and returns the address of its projector page."""


def join_code() -> str:
    """A code that can be read aloud; one of 24 million."""
    rng = random.SystemRandom()
    return "-".join("".join(rng.choice(_SYLLABLES) for _ in range(2)) for _ in range(2)).upper()


def new_tokens() -> dict[str, str]:
    """The tokens and the code of a new class."""
    return {"access": secrets.token_urlsafe(9), "teacher": secrets.token_urlsafe(12), "code": join_code()}


def spec_of(scenario: Scenario, meeting: Meeting, opening: ClassOpening) -> EpisodeSpec:
    """The episode of a meeting."""
    return meeting.spec(scenario, opening.computer, opening.seed, opening.edition)


def terms_of(scenarios: Sequence[LoadedScenario], opening: ClassOpening) -> Terms:
    """What a class plays."""
    names = (name for loaded in scenarios for name in loaded.scenario.names)
    plan = Plan(
        tuple(scenarios), opening.modes, model=opening.computer, roles=dict.fromkeys(names, NAME), seed=opening.seed,
        edition=opening.edition,
    )  # fmt: skip
    specs = [
        spec_of(loaded.scenario, Meeting(0, place, mode, 0, {}), opening)
        for place, loaded in enumerate(scenarios)
        for mode in opening.modes
    ]
    return Terms("class", plan, [opening.computer], specs)
