"""ik_llama.cpp in batches: as little code as can drive `ik-llama-cpp-python`'s low-level calls, whose high-level class
writes one conversation and keeps no prompts. It shows the speed of that library's decoding, not of the package.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from os.path import commonprefix
from typing import Any

MOST = 512
"""Tokens evaluated in one step."""


@dataclass
class Slot:
    """A sequence of the context, and the reply that is written in it."""

    tokens: list[int] = field(default_factory=list)
    """What its cache holds."""
    used: int = 0
    """The number of the last request that had it."""
    lane: int = -1
    """The conversation; -1 while nothing is written."""
    body: dict[str, Any] = field(default_factory=dict)
    pending: list[int] = field(default_factory=list)
    """Tokens to evaluate next."""
    drawn: list[int] = field(default_factory=list)
    read: int = 0


class IkBatches:
    """Two slots for each conversation: every request takes the idle one that holds most of its prompt."""

    def __init__(self, work: dict[str, Any], lanes: int) -> None:
        import numpy as np
        from ik_llama_cpp import _ctypes_api as api
        from ik_llama_cpp._internals import IkContext, IkModel

        self._numpy, self._api = np, api
        self._model = IkModel(work["model"])
        self._slots = [Slot() for _ in range(2 * lanes)]
        self._context = IkContext(
            self._model,
            n_ctx=len(self._slots) * work["context"],
            n_threads=work["threads"],
            flash_attn=False,  # its assertion S > 0 ends the process when a batch has several sequences
            n_seq_max=len(self._slots),
        )
        self._remove = api._lib.llama_kv_cache_seq_rm
        self._remove.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32]
        self._remove.restype = ctypes.c_bool
        self._batch = api.llama_batch_init(MOST, 0, 1)
        self._random = np.random.default_rng(1)
        self._asked = 0

    def submit(self, lane: int, reply: dict[str, Any], prompt: list[int]) -> None:
        """Find a slot: that of the same agent's last prompt, or the one that has waited longest."""
        self._asked += 1
        idle = [slot for slot in self._slots if slot.lane < 0]
        shared = [len(commonprefix([slot.tokens, prompt[:-1]])) for slot in idle]
        worth = [count if 2 * count >= len(slot.tokens) else 0 for count, slot in zip(shared, idle, strict=True)]
        best = max(range(len(idle)), key=lambda index: (worth[index], -idle[index].used))
        kept, slot = shared[best], idle[best]
        self._remove(self._context.ctx, self._slots.index(slot), kept, -1)
        del slot.tokens[kept:]
        slot.used, slot.lane, slot.body = self._asked, lane, reply["body"]
        slot.pending, slot.drawn, slot.read = prompt[kept:], [], len(prompt) - kept

    def poll(self) -> list[tuple[int, list[int], int]]:
        """Make a step of all replies."""
        ready = self._evaluate([slot for slot in self._slots if slot.lane >= 0])
        found = []
        for index, slot in ready:
            slot.drawn.append(self._draw(index, slot.body))
            if len(slot.drawn) < slot.body["n_predict"]:
                slot.pending = slot.drawn[-1:]
            else:
                found.append((slot.lane, slot.drawn, slot.read))
                slot.lane = -1
        return found

    def _evaluate(self, slots: Sequence[Slot]) -> list[tuple[int, Slot]]:
        """Evaluate what is pending; returns where in the batch the slots are that may draw now."""
        batch, size, ready = self._batch, 0, []
        for slot in sorted(slots, key=lambda each: len(each.pending)):
            share = slot.pending[: MOST - size]
            del slot.pending[: len(share)]
            for token in share:
                batch.token[size], batch.pos[size], batch.n_seq_id[size] = token, len(slot.tokens), 1
                batch.seq_id[size][0], batch.logits[size] = self._slots.index(slot), 0
                slot.tokens.append(token)
                size += 1
            if share and not slot.pending:
                batch.logits[size - 1] = 1
                ready.append((size - 1, slot))
        batch.n_tokens = size
        if size and self._context.decode(batch):
            raise RuntimeError("llama_decode failed")
        return ready

    def _draw(self, index: int, body: dict[str, Any]) -> int:
        np = self._numpy
        pointer = self._api.llama_get_logits_ith(self._context.ctx, index)
        logits = np.ctypeslib.as_array(pointer, shape=(self._model.n_vocab,))
        top = np.argpartition(logits, -body["top_k"])[-body["top_k"] :]
        top = top[np.argsort(-logits[top])]
        chances = np.exp((logits[top] - logits[top[0]]) / body["temperature"])
        chances /= chances.sum()
        kept = int(np.searchsorted(chances.cumsum(), body["top_p"])) + 1
        return int(self._random.choice(top[:kept], p=chances[:kept] / chances[:kept].sum()))

    def close(self) -> None:
        """Nothing is left."""
