"""The values that the driver and its workers exchange: orders, tasks, and the news of what happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from localsim.backends.open import Needs
from localsim.conversation.episode import EpisodeSpec, Status, StopReason
from localsim.conversation.requests import Generation, Request
from localsim.conversation.transcript import Turn
from localsim.errors import GenerationFailed
from localsim.store.queries.runs import Recorded


@dataclass(frozen=True)
class Part:
    """A file of a model: its name and sha256."""

    name: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Wanted:
    """The file that a model's name must mean on every worker."""

    sha256: str
    """Checksum as in `ModelFile`: of the weights, or of weights and adapter together."""
    title: str = ""
    """The name of the model, as `ModelFile` has it."""
    parts: tuple[Part, ...] = ()
    """Weights, then the adapter if there is one; empty if the driver does not have the files and cannot send them."""


@dataclass(frozen=True)
class Orders:
    """Everything that a worker needs to open the models of a run."""

    models: tuple[str, ...]
    needs: Needs
    """Needs of the run; its specs are one of each kind, and each worker chooses its own number of sequences."""
    parallel: int | None
    """Requested number of episodes at a time on each worker; None lets each worker choose."""
    episodes: int
    wanted: Mapping[str, Wanted] = field(default_factory=dict)
    """Files by model name; a name that is absent may mean any file, and the first worker decides which."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions that a worker must have."""


@dataclass(frozen=True)
class Found:
    """The models that a worker has, and those that it lacks."""

    sha256: Mapping[str, str]
    """Checksum by model name."""
    missing: Mapping[str, str]
    """Reason by model name."""


@dataclass(frozen=True)
class Opened:
    """A worker that is ready to play."""

    identities: Mapping[str, Mapping[str, Any]]
    parallel: int
    said: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """An episode to play, with the generations that an earlier attempt has recorded."""

    spec: EpisodeSpec
    recorded: tuple[Recorded, ...] = ()


@dataclass(frozen=True)
class Started:
    """An episode begins, or continues."""

    episode_id: str


@dataclass(frozen=True)
class Generated:
    """A text, or a generation that failed."""

    episode_id: str
    number: int
    request: Request
    """The request without what only players read."""
    result: Generation | GenerationFailed


@dataclass(frozen=True)
class Said:
    """A valid turn; `generation` is the number of its generation, or -1."""

    episode_id: str
    turn: Turn
    generation: int


@dataclass(frozen=True)
class Rejected:
    """A malformed reply in a generation."""

    episode_id: str
    generation: int
    reason: str


@dataclass(frozen=True)
class Ended:
    """The end of an episode."""

    episode_id: str
    status: Status
    stop_reason: StopReason | None
    error: str | None
    duration_ms: float


Event = Started | Generated | Said | Rejected | Ended


@dataclass(frozen=True)
class News:
    """What happened on a worker since its last news."""

    events: tuple[Event, ...]
    running: int
    """Tokens of the episodes in progress."""
    over: bool
    """True if the worker has stopped."""
    error: str = ""
    """The reason if it has stopped because of an error."""
