"""llama.cpp's own speed with a model on this machine, and the perplexity of its weights.

Without sampling, grammar and scheduling: the limit that the engine is compared with, and a measure to compare files of
one model.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from localsim.backends.llama.lib import LlamaModel, library, new_context
from localsim.errors import BackendUnavailable

PREFILL = 512
"""Tokens of the prompt in a measurement of prompt speed, and of a window of perplexity."""
_WARM = 64
"""Tokens at a window's start whose predictions do not count, because little text precedes them."""


class RawContext:
    """A llama.cpp context that evaluates meaningless tokens and measures seconds."""

    def __init__(self, model: LlamaModel, *, sequences: int, context: int, threads: int) -> None:
        self._lib = library()
        self._model = model
        self._size = context
        self._context: Any = new_context(model, sequences=sequences, context=context, threads=threads)
        self._memory = self._lib.llama_get_memory(self._context)
        self._batch = self._lib.llama_batch_init(PREFILL, 0, 1)
        self._length = [0] * sequences

    def pieces(self, wanted: Sequence[tuple[int, int]]) -> Iterator[float]:
        """Seconds for each part of a prompt by itself: (tokens before it, its tokens)."""
        for depth, count in sorted(wanted, reverse=True):
            seconds = 0.0
            for start in range(0, count, PREFILL):
                self._deepen(0, depth + start)
                seconds += self._decode([(0, depth + start, min(PREFILL, count - start))])
            yield seconds

    def steps(self, groups: Sequence[Sequence[int]]) -> Iterator[float]:
        """Seconds for each step of one token per sequence; a group holds the count of earlier tokens per sequence."""
        for group in groups:
            for sequence, depth in enumerate(group):
                self._deepen(sequence, depth)
            yield self._decode([(sequence, depth, 1) for sequence, depth in enumerate(group)])

    def deepened(self, depth: int) -> npt.NDArray[np.uint8]:
        """Evaluate so many tokens in the first sequence, and return its cache."""
        self._deepen(0, depth)
        data = np.empty(self._lib.llama_state_seq_get_size(self._context, 0), dtype=np.uint8)
        self._lib.llama_state_seq_get_data(self._context, _bytes_of(data), len(data), 0)
        return data

    def fill(self, data: npt.NDArray[np.uint8], depth: int) -> None:
        """Put a cache of so many tokens into every sequence that holds fewer."""
        for sequence, length in enumerate(self._length):
            if length < depth:
                if not self._lib.llama_state_seq_set_data(self._context, _bytes_of(data), len(data), sequence):
                    raise BackendUnavailable("llama.cpp did not take a cache while measuring")
                self._length[sequence] = depth

    def prefill_rate(self) -> float:
        """Tokens a second in a prompt of PREFILL tokens with an empty cache."""
        return PREFILL / min(self.pieces([(0, PREFILL)] * 3))

    def step_rate(self, parallel: int, depth: int, repeats: int = 9) -> float:
        """Tokens a second that `parallel` sequences write together with `depth` tokens before them."""
        times = sorted(self.steps([[depth] * parallel] * repeats))
        return parallel / times[len(times) // 2]

    def perplexity(self, text: str) -> tuple[float, int]:
        """Perplexity of a text in windows of PREFILL tokens, and the number of tokens predicted."""
        tokens = self._model.tokenize(text, special=False)
        logs: list[float] = []
        for start in range(0, len(tokens) - PREFILL + 1, PREFILL):
            window = tokens[start : start + PREFILL]
            self._deepen(0, 0)
            self._decode([(0, 0, PREFILL)], window, all_logits=True)
            logs += [self._log_probability(row, window[row + 1]) for row in range(_WARM, PREFILL - 1)]
        if not logs:
            raise BackendUnavailable(f"a perplexity needs a text of at least {PREFILL} tokens")
        return float(np.exp(-np.mean(logs))), len(logs)

    def _log_probability(self, row: int, token: int) -> float:
        pointer = self._lib.llama_get_logits_ith(self._context, row)
        logits = np.ctypeslib.as_array(pointer, shape=(self._model.n_vocab,)).astype(np.float64)
        top = logits.max()
        return float(logits[token] - top - np.log(np.exp(logits - top).sum()))

    def _deepen(self, sequence: int, depth: int) -> None:
        """Make a sequence hold exactly `depth` tokens."""
        if self._length[sequence] > depth:
            self._lib.llama_memory_seq_rm(self._memory, sequence, depth, -1)
            self._length[sequence] = depth
        while self._length[sequence] < depth:
            start = self._length[sequence]
            self._decode([(sequence, start, min(PREFILL, depth - start))])

    def _decode(
        self, parts: Sequence[tuple[int, int, int]], tokens: Sequence[int] | None = None, *, all_logits: bool = False
    ) -> float:
        batch = self._batch
        row = 0
        for sequence, position, count in parts:
            for offset in range(count):
                batch.token[row] = (
                    tokens[offset] if tokens else 100 + (row * 7919 + position) % (self._model.n_vocab // 2)
                )
                batch.pos[row] = position + offset
                batch.n_seq_id[row] = 1
                batch.seq_id[row][0] = sequence
                batch.logits[row] = all_logits or offset + 1 == count
                row += 1
            self._length[sequence] = position + count
        batch.n_tokens = row
        begun = time.perf_counter()
        if self._lib.llama_decode(self._context, batch) != 0:
            raise BackendUnavailable("llama_decode failed while measuring")
        self._lib.llama_synchronize(self._context)
        return time.perf_counter() - begun

    def close(self) -> None:
        """Free the context; the model stays."""
        if self._context:
            self._lib.llama_batch_free(self._batch)
            self._lib.llama_free(self._context)
            self._context = None


def _bytes_of(data: npt.NDArray[np.uint8]) -> Any:
    return data.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
