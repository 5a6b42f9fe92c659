"""An evaluator on llama.cpp: key-value caches of many sessions on few sequences of a context.

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
import time
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from localsim.backends.evaluator import BATCH, OPENINGS, Beginning, Evaluator, Part, Session, nearest
from localsim.backends.llama.lib import LlamaModel, library, new_context
from localsim.errors import GenerationFailed


@dataclass(eq=False)
class Seated(Session):
    """A session whose cache is in a sequence, set aside, or nowhere yet."""

    sequence: int | None = None
    aside: npt.NDArray[np.uint8] | None = None


SPARE = 4
"""Empty buffers kept for the next caches that are set aside."""
ROOM = 4
"""Size of a new buffer as a multiple of the cache that is put into it, so that the cache can grow."""


class SessionCache(Evaluator[Seated]):
    """Sessions by key, each at most in one of `sequences` sequences of `context` tokens.

    Raises BackendUnavailable where llama.cpp cannot make the context.
    """

    def __init__(self, model: LlamaModel, *, sequences: int, context: int, threads: int) -> None:
        self._lib = library()
        self._vocabulary = model.n_vocab
        self._context = new_context(model, sequences=sequences, context=context, threads=threads)
        self._memory = self._lib.llama_get_memory(self._context)
        self._batch = self._lib.llama_batch_init(BATCH, 0, 1)
        self.seconds = 0.0
        self._seated: list[Seated | None] = [None] * sequences
        self._sessions: dict[str, Seated] = {}
        self._openings: OrderedDict[str, Beginning[npt.NDArray[np.uint8]]] = OrderedDict()
        self._spare: list[npt.NDArray[np.uint8]] = []
        """Buffers of caches that were put back: new memory would cost as much time as the copy itself."""

    def seat(self, key: str, working: Collection[Seated]) -> Seated | None:
        session = self._sessions.get(key)
        if session is not None and session.sequence is not None:
            return None if session in working else session
        idle = self._idle(working)
        if not idle:
            return None
        session = self._sessions.setdefault(key, Seated())
        self._set_aside(idle[0])
        self._put(session, idle[0])
        return session

    def _idle(self, working: Collection[Seated]) -> list[int]:
        return [number for number, session in enumerate(self._seated) if session is None or session not in working]

    def settle(self, working: Collection[Seated]) -> list[Seated]:
        """Move the sessions at work down into idle sequences until they are neighbours.

        Returns the sessions whose caches llama.cpp did not take back.
        """
        lost = []
        busy = [session.sequence for session in working if session.sequence is not None]
        for low, high in zip(self._idle(working), sorted(busy, reverse=True), strict=False):
            if low > high:
                break
            session = self._seated[high]
            assert session is not None  # it works there
            self._set_aside(low)
            self._set_aside(high)
            if not self._put(session, low):
                lost.append(session)
        return lost

    def cut(self, session: Seated, length: int) -> None:
        self._lib.llama_memory_seq_rm(self._memory, session.sequence, length, -1)
        del session.tokens[length:]
        session.canonical = min(session.canonical, length)

    def keep_opening(self, name: str, session: Seated) -> None:
        if name in self._openings or session.sequence is None:
            return
        data = self._copy_of(session.sequence)
        self._openings[name] = Beginning(tuple(session.tokens), session.canonical, data)
        if len(self._openings) > OPENINGS:
            self._openings.popitem(last=False)

    def begin_with(self, session: Seated, prompt: Sequence[int]) -> int:
        found = None if session.tokens else nearest(self._openings, prompt)
        if found is None:
            return 0
        shared, opening = found
        if not self._lib.llama_state_seq_set_data(
            self._context, _pointer(opening.cache), len(opening.cache), session.sequence
        ):
            return 0
        session.tokens = list(opening.tokens)
        session.canonical = opening.canonical
        return shared

    def has_opening(self, name: str) -> bool:
        return name in self._openings

    def forget(self, key: str) -> None:
        session = self._sessions.pop(key, None)
        if session is not None and session.sequence is not None:
            self._empty(session.sequence)

    def evaluate(self, parts: Sequence[Part[Seated]]) -> list[npt.NDArray[Any]]:
        """Decode the parts in one batch, in the order of their sequences."""
        batch, row = self._batch, 0
        first: dict[int, int] = {}
        for number in sorted(range(len(parts)), key=lambda number: parts[number].session.sequence or 0):
            session, tokens = parts[number].session, parts[number].tokens
            first[number] = row + len(tokens) - parts[number].wanted
            for position, token in enumerate(tokens, start=len(session.tokens)):
                batch.token[row] = token
                batch.pos[row] = position
                batch.n_seq_id[row] = 1
                batch.seq_id[row][0] = session.sequence
                batch.logits[row] = row >= first[number]
                row += 1
            session.tokens += tokens
        batch.n_tokens = row
        begun = time.perf_counter()
        status = self._lib.llama_decode(self._context, batch)
        self._lib.llama_synchronize(self._context)  # a GPU is still at work when llama_decode returns
        self.seconds += time.perf_counter() - begun
        if status != 0:
            hint = "run with LOCALSIM_DEBUG=1 to see llama.cpp's log"
            raise GenerationFailed(f"llama_decode returned {status}", hint=hint)
        return [self._logits(first[number], part.wanted) for number, part in enumerate(parts)]

    def _logits(self, first: int, count: int) -> npt.NDArray[Any]:
        if not count:
            return np.empty((0, self._vocabulary), dtype=np.float32)
        rows = [
            np.ctypeslib.as_array(self._lib.llama_get_logits_ith(self._context, row), shape=(1, self._vocabulary))
            for row in range(first, first + count)
        ]
        return rows[0] if count == 1 else np.concatenate(rows)

    def close(self) -> None:
        if self._context:
            self._lib.llama_batch_free(self._batch)
            self._lib.llama_free(self._context)
            self._context = None

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

    def _put(self, session: Seated, number: int) -> bool:
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


def _pointer(data: npt.NDArray[np.uint8]) -> Any:
    return data.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
