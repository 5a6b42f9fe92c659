"""Key-value caches of many sessions on few sequences of a llama.cpp context.

llama.cpp decodes sequences together only where their ids are adjacent: eight active sequences among sixteen cost
nearly twice as much as eight neighbours. But an episode has one speaker at a time. So a context has as many sequences
as episodes run side by side; a listener's cache is set aside in memory and put back when its turn comes, into the
lowest idle sequence. A swap copies some megabytes once a turn. When fewer episodes are left than sequences, the busy
sequences are moved together: four of them with gaps between cost as much a step as eight neighbours.

The same agent of the same scenario and mode opens with the same prompt under every seed. So the cache of an opening
is kept and copied into the next session that begins with the same tokens. Shorter common beginnings count as well,
such as the instructions of another mode, or another judgement under the same rubric.
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from localsim.backends.llama.lib import library

CHUNK = 64
"""Prompt tokens that `exact` evaluates together, at positions that are multiples of it."""


@dataclass
class Session:
    """The cache of one session: the tokens in it, and its place (a sequence, set aside, or none yet)."""

    tokens: list[int] = field(default_factory=list)
    canonical: int = 0
    """How many tokens are in whole chunks (used by `exact`)."""
    written: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Texts that the model wrote here, in the tokens in which it wrote them."""
    sequence: int | None = None
    aside: npt.NDArray[np.uint8] | None = None


OPENINGS = 24
"""Number of openings whose caches are kept, the most recently used ones."""
SPARE = 4
"""Empty buffers kept for the next caches that are set aside."""
ROOM = 4
"""Size of a new buffer as a multiple of the cache that is put into it, so that the cache can grow."""
LEAST_SHARED = 16
"""Fewest common tokens of a prompt and an opening for which a copy is worth the time."""


@dataclass(frozen=True)
class Opening:
    """A prompt that sessions begin with, and its cache."""

    tokens: tuple[int, ...]
    canonical: int
    data: npt.NDArray[np.uint8]


class SessionCache:
    """Sessions by key, each at most in one of `sequences` sequences of `context`."""

    def __init__(self, context: Any, sequences: int) -> None:
        self._lib = library()
        self._context = context
        self._memory = self._lib.llama_get_memory(context)
        self._seated: list[Session | None] = [None] * sequences
        self._sessions: dict[str, Session] = {}
        self._openings: OrderedDict[str, Opening] = OrderedDict()
        self._spare: list[npt.NDArray[np.uint8]] = []
        """Buffers of caches that were put back: new memory would cost as much time as the copy itself."""

    def seat(self, key: str, busy: Collection[int]) -> Session | None:
        """Put a session into a sequence that is not among `busy`; None where all are busy."""
        session = self._sessions.get(key)
        if session is not None and session.sequence is not None:
            return None if session.sequence in busy else session
        free = [number for number in range(len(self._seated)) if number not in busy]
        if not free:
            return None
        session = self._sessions.setdefault(key, Session())
        self._set_aside(free[0])
        self._put(session, free[0])
        return session

    def close_up(self, busy: Collection[int]) -> list[Session]:
        """Move busy sequences down into idle ones until they are neighbours.

        Returns the sessions whose caches llama.cpp did not take back.
        """
        lost = []
        idle = [number for number in range(len(self._seated)) if number not in busy]
        for low, high in zip(idle, sorted(busy, reverse=True), strict=False):
            if low > high:
                break
            session = self._seated[high]
            assert session is not None  # it works there
            self._set_aside(low)
            self._set_aside(high)
            if not self._put(session, low):
                lost.append(session)
        return lost

    def cut(self, session: Session, length: int) -> None:
        """Keep the first `length` tokens."""
        self._lib.llama_memory_seq_rm(self._memory, session.sequence, length, -1)
        del session.tokens[length:]
        session.canonical = min(session.canonical, length)

    def keep_opening(self, name: str, session: Session) -> None:
        """Keep a session's cache as an opening, once its first prompt is in it."""
        if name in self._openings or session.sequence is None:
            return
        data = self._copy_of(session.sequence)
        self._openings[name] = Opening(tuple(session.tokens), session.canonical, data)
        if len(self._openings) > OPENINGS:
            self._openings.popitem(last=False)

    def begin_with(self, session: Session, prompt: Sequence[int]) -> int:
        """Copy the opening with the longest common beginning into an empty session; returns the tokens they share."""
        if session.tokens or not self._openings:
            return 0
        shared, name = max((_common(opening.tokens, prompt), name) for name, opening in self._openings.items())
        if shared < LEAST_SHARED:
            return 0
        self._openings.move_to_end(name)
        opening = self._openings[name]
        if not self._lib.llama_state_seq_set_data(
            self._context, _pointer(opening.data), len(opening.data), session.sequence
        ):
            return 0
        session.tokens = list(opening.tokens)
        session.canonical = opening.canonical
        return shared

    def has_opening(self, name: str) -> bool:
        """True if the cache of an opening is kept."""
        return name in self._openings

    def forget(self, key: str) -> None:
        """Drop a session and its cache."""
        session = self._sessions.pop(key, None)
        if session is not None and session.sequence is not None:
            self._empty(session.sequence)

    def _empty(self, number: int) -> None:
        self._lib.llama_memory_seq_rm(self._memory, number, -1, -1)
        self._seated[number] = None

    def _set_aside(self, number: int) -> None:
        session = self._seated[number]
        if session is None:
            return
        session.aside = self._copy_of(number, self._spare) if session.tokens else None
        session.sequence = None
        self._empty(number)

    def _copy_of(self, number: int, spare: list[npt.NDArray[np.uint8]] | None = None) -> npt.NDArray[np.uint8]:
        size = self._lib.llama_state_seq_get_size(self._context, number)
        fitting = [buffer for buffer in spare or () if len(buffer) >= size]
        data = min(fitting, key=len, default=None)
        if data is None:
            # Room to grow costs nothing until it is written to.
            data = np.empty(size if spare is None else ROOM * size, dtype=np.uint8)
        elif spare:
            spare[:] = [buffer for buffer in spare if buffer is not data]
        self._lib.llama_state_seq_get_data(self._context, _pointer(data), size, number)
        return data

    def _put(self, session: Session, number: int) -> bool:
        """Put a session into a sequence; False where its cache does not fit, so that its prompt is evaluated again."""
        fits = True
        if session.aside is not None:
            data, session.aside = session.aside, None
            fits = self._lib.llama_state_seq_set_data(self._context, _pointer(data), len(data), number) != 0
            if not fits:
                self._empty(number)
                session.tokens.clear()
                session.canonical = 0
            self._spare = [*self._spare, data][-SPARE:]
        session.sequence = number
        self._seated[number] = session
        return fits


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Number of tokens that two prompts have in common at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (left, right) in pairs if left != right), min(len(one), len(other)))


def _pointer(data: npt.NDArray[np.uint8]) -> Any:
    return data.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
