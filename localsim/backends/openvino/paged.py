"""An evaluator on OpenVINO: key-value caches of many sessions in blocks of one pool.

Any sessions can be evaluated together, so no cache is ever moved. A session takes a block when its last one is full.
Openings are blocks that several sessions use; a session that goes on in the middle of such a block gets a copy of it
first. Where the pool ends, openings and then the caches of idle sessions go, the least recently used ones first; their
prompts are evaluated again.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from localsim.backends.evaluator import OPENINGS, Beginning, Evaluator, Part, Session, nearest
from localsim.backends.openvino.network import BLOCK, Network, Step, logits
from localsim.errors import BackendUnavailable, GenerationFailed


def blocks_for(tokens: int) -> int:
    """The number of blocks that hold so many tokens."""
    return -(-tokens // BLOCK)


class Blocks:
    """Which blocks of a pool are free, and how many sessions and openings use the others."""

    def __init__(self, count: int) -> None:
        self._free = list(range(count))
        self._users = [0] * count

    def take(self) -> int | None:
        """A free block for one user; None where there is none."""
        if not self._free:
            return None
        block = self._free.pop()
        self._users[block] = 1
        return block

    def share(self, blocks: Sequence[int]) -> list[int]:
        """The same blocks for another user."""
        for block in blocks:
            self._users[block] += 1
        return list(blocks)

    def drop(self, blocks: Sequence[int]) -> None:
        """A user no longer needs these blocks."""
        for block in blocks:
            self._users[block] -= 1
            if not self._users[block]:
                self._free.append(block)

    def shared(self, block: int) -> bool:
        """True if a block has more than one user."""
        return self._users[block] > 1

    @property
    def free(self) -> int:
        """The number of free blocks."""
        return len(self._free)


@dataclass(eq=False)
class Paged(Session):
    """A session whose cache is in blocks, in the order of its tokens."""

    blocks: list[int] = field(default_factory=list)


class PagedCache(Evaluator[Paged]):
    """Sessions by key, at most `sequences` of them at work; `caches` of `context` tokens fit into the pool.

    Raises BackendUnavailable where the machine has no room for the pool.
    """

    def __init__(self, network: Network, *, sequences: int, context: int, caches: int) -> None:
        self.seconds = 0.0
        self._sequences = sequences
        # A copy of a shared block is made before the shared one is given back.
        count = max(caches, sequences) * (blocks_for(context) + 1)
        try:
            self._request, self._arrays = network.memory(count)
        except MemoryError as error:
            raise BackendUnavailable(
                f"no memory for {caches} caches of {context} tokens",
                hint="try fewer parallel episodes (-j) or a smaller --ctx",
            ) from error
        self._blocks = Blocks(count)
        self._sessions: OrderedDict[str, Paged] = OrderedDict()
        self._openings: OrderedDict[str, Beginning[list[int]]] = OrderedDict()
        self._working: Collection[Paged] = ()

    def seat(self, key: str, working: Collection[Paged]) -> Paged | None:
        session = self._sessions.get(key)
        if len(working) >= self._sequences or session in working:
            return None
        session = self._sessions.setdefault(key, Paged())
        self._sessions.move_to_end(key)
        return session

    def settle(self, working: Collection[Paged]) -> list[Paged]:
        self._working = working
        return []

    def cut(self, session: Paged, length: int) -> None:
        kept = blocks_for(length)
        self._blocks.drop(session.blocks[kept:])
        del session.blocks[kept:]
        del session.tokens[length:]
        session.canonical = min(session.canonical, length)

    def keep_opening(self, name: str, session: Paged) -> None:
        if name in self._openings:
            return
        blocks = self._blocks.share(session.blocks)
        self._openings[name] = Beginning(tuple(session.tokens), session.canonical, blocks)
        if len(self._openings) > OPENINGS:
            self._drop_opening()

    def _drop_opening(self) -> None:
        _, opening = self._openings.popitem(last=False)
        self._blocks.drop(opening.cache)

    def begin_with(self, session: Paged, prompt: Sequence[int]) -> int:
        found = None if session.tokens else nearest(self._openings, prompt)
        if found is None:
            return 0
        shared, opening = found
        session.blocks = self._blocks.share(opening.cache[: blocks_for(shared)])
        session.tokens = list(opening.tokens[:shared])
        session.canonical = min(opening.canonical, shared)
        return shared

    def has_opening(self, name: str) -> bool:
        return name in self._openings

    def forget(self, key: str) -> None:
        session = self._sessions.pop(key, None)
        if session is not None:
            self.cut(session, 0)

    def evaluate(self, parts: Sequence[Part[Paged]]) -> list[npt.NDArray[Any]]:
        busy = {*self._working, *(part.session for part in parts)}
        for part in parts:
            self._make_room(part.session, len(part.tokens), busy)
        step = _step(parts)
        begun = time.perf_counter()
        rows = logits(self._request, step)
        self.seconds += time.perf_counter() - begun
        found, at = [], 0
        for part in parts:
            part.session.tokens += part.tokens
            found.append(rows[at : at + part.wanted])
            at += part.wanted
        return found

    def _make_room(self, session: Paged, count: int, busy: Collection[Paged]) -> None:
        """Give a session blocks for its next tokens, and its last block to itself."""
        length = len(session.tokens)
        if length % BLOCK and self._blocks.shared(session.blocks[-1]):
            copy = self._take(busy)
            for array in self._arrays:
                array[copy] = array[session.blocks[-1]]
            self._blocks.drop(session.blocks[-1:])
            session.blocks[-1] = copy
        while len(session.blocks) < blocks_for(length + count):
            session.blocks.append(self._take(busy))

    def _take(self, busy: Collection[Paged]) -> int:
        while (block := self._blocks.take()) is None:
            idle = next((each for each in self._sessions.values() if each.blocks and each not in busy), None)
            if self._openings:
                self._drop_opening()
            elif idle is not None:
                self.cut(idle, 0)
            else:
                raise GenerationFailed("the caches of all conversations at work do not fit into the pool")
        return block

    def close(self) -> None:
        self._request, self._arrays = None, []
        self._sessions.clear()
        self._openings.clear()


def _step(parts: Sequence[Part[Paged]]) -> Step:
    tokens: list[int] = []
    positions: list[int] = []
    begins, block_begins = [0], [0]
    blocks: list[int] = []
    rows: list[int] = []
    for part in parts:
        past = len(part.session.tokens)
        tokens += part.tokens
        positions += range(past, past + len(part.tokens))
        begins.append(len(tokens))
        blocks += part.session.blocks
        block_begins.append(len(blocks))
        rows += range(len(tokens) - part.wanted, len(tokens))
    past_lengths = [len(part.session.tokens) for part in parts]
    return Step(
        tokens=np.array(tokens, dtype=np.int64),
        positions=np.array(positions, dtype=np.int64),
        past=np.array(past_lengths, dtype=np.int32),
        begins=np.array(begins, dtype=np.int32),
        blocks=np.array(blocks, dtype=np.int32),
        block_begins=np.array(block_begins, dtype=np.int32),
        longest=max(past + len(part.tokens) for past, part in zip(past_lengths, parts, strict=True)),
        rows=np.array(rows or [len(tokens) - 1], dtype=np.int64),  # the network needs at least one row
    )
