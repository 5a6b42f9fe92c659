"""What an engine asks of a library that runs a model: caches of sessions, and the logits of their next tokens.

`llama.cache` and `openvino.paged` do this work; `llama.engine` decides what is evaluated and draws from the logits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy.typing as npt

CHUNK = 64
"""Prompt tokens that `exact` evaluates together, at positions that are multiples of it."""
BATCH = 512
"""The largest number of tokens in one evaluation."""
OPENINGS = 24
"""Number of openings whose caches are kept, the most recently used ones."""
LEAST_SHARED = 16
"""Fewest common tokens of a prompt and an opening for which a copy is worth the time."""


@dataclass(eq=False)
class Session:
    """The cache of one session, by the tokens in it. An evaluator adds the cache's place."""

    tokens: list[int] = field(default_factory=list)
    canonical: int = 0
    """How many tokens are in whole chunks (used by `exact`)."""
    written: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Texts that the model wrote here, in the tokens in which it wrote them."""


Place = TypeVar("Place", bound=Session)


@dataclass(frozen=True)
class Part(Generic[Place]):
    """Tokens to evaluate after those in a session's cache."""

    session: Place
    tokens: Sequence[int]
    wanted: int = 0
    """The number of its last tokens whose logits are wanted."""


class Evaluator(Protocol[Place]):
    """Sessions by key with their caches, and openings by name: caches of first prompts that other sessions begin with.

    `working` are the sessions whose replies are being written.
    """

    seconds: float
    """Seconds inside the library."""

    def seat(self, key: str, working: Collection[Place]) -> Place | None:
        """A session ready for work; None where it is at work already, or as many as possible are."""

    def settle(self, working: Collection[Place]) -> list[Place]:
        """Prepare for the next evaluation. Returns the sessions whose caches are lost on the way."""

    def cut(self, session: Place, length: int) -> None:
        """Keep the first `length` tokens."""

    def keep_opening(self, name: str, session: Place) -> None:
        """Keep a session's cache as an opening, unless there is one of this name."""

    def begin_with(self, session: Place, prompt: Sequence[int]) -> int:
        """Give an empty session the opening with the longest common beginning; returns the tokens they share."""

    def has_opening(self, name: str) -> bool:
        """True if the cache of an opening is kept."""

    def forget(self, key: str) -> None:
        """Drop a session and its cache."""

    def evaluate(self, parts: Sequence[Part[Place]]) -> list[npt.NDArray[Any]]:
        """Evaluate at most BATCH tokens; returns the wanted logits of each part (wanted x n_vocab, float32).

        They are valid until the next call. Raises GenerationFailed; then the caches of `parts` are unknown.
        """

    def close(self) -> None:
        """Free the caches."""


Cache = TypeVar("Cache")


@dataclass(frozen=True)
class Beginning(Generic[Cache]):
    """A prompt that sessions begin with, and its cache."""

    tokens: tuple[int, ...]
    canonical: int
    cache: Cache


def nearest(openings: OrderedDict[str, Beginning[Cache]], prompt: Sequence[int]) -> tuple[int, Beginning[Cache]] | None:
    """The opening with the longest common beginning and its length; None if a copy is not worth the time.

    It becomes the most recently used one.
    """
    if not openings:
        return None
    shared, name = max((common(opening.tokens, prompt), name) for name, opening in openings.items())
    if shared < LEAST_SHARED:
        return None
    openings.move_to_end(name)
    return shared, openings[name]


def common(one: Sequence[int], other: Sequence[int]) -> int:
    """Number of tokens that two prompts have in common at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (left, right) in pairs if left != right), min(len(one), len(other)))
