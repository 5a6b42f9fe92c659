"""A model's own speed on this machine, and the perplexity of its weights.

Without sampling, grammar and scheduling: the limit that the engine is compared with, and a measure to compare files of
one model and libraries that evaluate it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from localsim.backends.engines import evaluator_of
from localsim.backends.evaluator import BATCH, Part, Session
from localsim.backends.llama.lib import LlamaModel
from localsim.errors import BackendUnavailable, GenerationFailed

PREFILL = BATCH
"""Tokens of the prompt in a measurement of prompt speed, and of a window of perplexity."""
_WARM = 64
"""Tokens at a window's start whose predictions do not count, because little text precedes them."""
_FILLED = "filled"


class RawContext:
    """Sessions of a model in which meaningless tokens are evaluated, in seconds."""

    def __init__(self, model: LlamaModel, *, sequences: int, context: int, threads: int) -> None:
        self._model = model
        self._evaluator = evaluator_of(model, sequences=sequences, context=context, threads=threads)
        self._sessions: list[Session] = []
        for number in range(sequences):
            session = self._evaluator.seat(str(number), self._sessions)
            assert session is not None
            self._sessions.append(session)

    def pieces(self, wanted: Sequence[tuple[int, int]]) -> Iterator[float]:
        """Seconds for each part of a prompt by itself: (tokens before it, its tokens)."""
        for depth, count in sorted(wanted, reverse=True):
            seconds = 0.0
            for start in range(0, count, PREFILL):
                self._deepen(0, depth + start)
                seconds += self._spent([(0, min(PREFILL, count - start))])
            yield seconds

    def steps(self, groups: Sequence[Sequence[int]]) -> Iterator[float]:
        """Seconds for each step of one token per sequence; a group holds the count of earlier tokens per sequence."""
        for group in groups:
            for number, depth in enumerate(group):
                self._deepen(number, depth)
            yield self._spent([(number, 1) for number in range(len(group))])

    def fill(self, depth: int) -> None:
        """Let every sequence hold so many tokens: those of the first are evaluated, the others get a copy."""
        self._deepen(0, depth)
        self._evaluator.keep_opening(_FILLED, self._sessions[0])
        for session in self._sessions[1:]:
            self._evaluator.cut(session, 0)
            self._evaluator.begin_with(session, self._sessions[0].tokens)

    def prefill_rate(self) -> float:
        """Tokens a second in a prompt of PREFILL tokens with an empty cache."""
        return PREFILL / min(self.pieces([(0, PREFILL)] * 3))

    def step_rate(self, parallel: int, depth: int) -> float:
        """Tokens a second that `parallel` sequences write together with `depth` tokens before them (median of nine)."""
        self.fill(depth)
        times = sorted(self.steps([[depth] * parallel] * 9))
        return parallel / times[len(times) // 2]

    def perplexity(self, text: str) -> tuple[float, int]:
        """Perplexity of a text in windows of PREFILL tokens, and the number of tokens predicted."""
        tokens = self._model.tokenize(text, special=False)
        logs: list[float] = []
        for start in range(0, len(tokens) - PREFILL + 1, PREFILL):
            logs += self.logs(tokens[start : start + PREFILL])[_WARM:]
        if not logs:
            raise BackendUnavailable(f"a perplexity needs a text of at least {PREFILL} tokens")
        return float(np.exp(-np.mean(logs))), len(logs)

    def logs(self, tokens: Sequence[int]) -> list[float]:
        """The logarithm of each token's probability after those before it, from the second token on."""
        return [log_probability(row, token) for row, token in zip(self.predictions(tokens), tokens[1:], strict=True)]

    def predictions(self, tokens: Sequence[int]) -> Iterator[npt.NDArray[np.float32]]:
        """The logits (n_vocab) after each token but the last; a row is valid until the next one."""
        self._deepen(0, 0)
        for start in range(0, len(tokens) - 1, PREFILL):
            part = list(tokens[start : min(start + PREFILL, len(tokens) - 1)])
            yield from self._evaluate([(0, part)], wanted=len(part))[0]

    def _deepen(self, number: int, depth: int) -> None:
        """Make a sequence hold exactly `depth` tokens."""
        session = self._sessions[number]
        if len(session.tokens) > depth:
            self._evaluator.cut(session, depth)
        while (start := len(session.tokens)) < depth:
            self._spent([(number, min(PREFILL, depth - start))])

    def _spent(self, parts: Sequence[tuple[int, int]]) -> float:
        """Seconds inside the library for so many meaningless tokens of each sequence."""
        half, given = self._model.n_vocab // 2, 0
        meaningless = []
        for number, count in parts:
            first = given * 7919 + len(self._sessions[number].tokens)
            meaningless.append((number, [100 + (first + offset * 7919) % half for offset in range(count)]))
            given += count
        before = self._evaluator.seconds
        self._evaluate(meaningless, wanted=1)
        return self._evaluator.seconds - before

    def _evaluate(self, parts: Sequence[tuple[int, list[int]]], wanted: int) -> list[npt.NDArray[np.float32]]:
        try:
            return self._evaluator.evaluate([Part(self._sessions[number], tokens, wanted) for number, tokens in parts])
        except GenerationFailed as error:
            raise BackendUnavailable(f"{error} while measuring") from error

    def close(self) -> None:
        """Free the caches; the model stays."""
        self._evaluator.close()


def log_probability(logits: npt.NDArray[np.float32], token: int) -> float:
    """The logarithm of a token's probability."""
    values = logits.astype(np.float64)
    top = values.max()
    return float(values[token] - top - np.log(np.exp(values - top).sum()))
