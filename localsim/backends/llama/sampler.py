"""Drawing tokens with llama.cpp's samplers: repetition penalties inside utterances, top-k/p, temperature, grammar.

A token is drawn first and checked against the grammar afterwards; only a refused draw pays for masking the whole
vocabulary. Knows nothing of batches or caches: logits in, token out.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from localsim.backends.llama.lib import LlamaModel, library
from localsim.conversation.episode import Sampling
from localsim.errors import BackendUnavailable, GenerationFailed

_BREAKERS = (b"\n", b":", b'"', b"*")
"""Texts at which DRY stops looking for a repeated sequence (llama.cpp's defaults)."""
_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


_SHARES = (8, 64)
"""Multiples of the tokens that a draw can depend on that a grammar is asked about before the whole vocabulary."""


class Candidates:
    """A reusable array of all tokens with their logits, in the form that llama.cpp's samplers take.

    Tokens without a text and `marks` cannot be drawn, except the one whose text is `mark`.
    """

    def __init__(self, model: LlamaModel, mark: str = "", marks: Collection[int] = ()) -> None:
        lib = library()
        n_vocab = model.n_vocab
        silent = {*model.silent_tokens(), *marks}
        self.barred = frozenset(token for token in silent if not mark or model.token_text(token) != mark)
        self._silent = np.array(sorted(self.barred), dtype=np.int64)
        self._all = np.zeros(n_vocab, dtype=_CANDIDATE)
        self._ids = np.arange(n_vocab, dtype=np.int32)
        self._logits = np.zeros(n_vocab, dtype=np.float32)
        self._one = np.zeros(1, dtype=_CANDIDATE)
        self._array = lib.llama_token_data_array
        self._pointer = lib.llama_token_data_p

    def load(self, logits: npt.NDArray[np.float32], most: int | None = None) -> Any:
        """The tokens with the `most` highest of these logits (n_vocab values), or all; more where the last tie."""
        self._logits[:] = logits
        self._logits[self._silent] = -np.inf
        ids = self._ids
        if most is not None and most < len(ids):
            least = np.partition(self._logits, -most)[-most]
            ids = np.flatnonzero(~(self._logits < least)).astype(np.int32)  # all tokens where a logit is not a number
        loaded = self._all[: len(ids)]
        loaded["id"] = ids
        loaded["logit"] = self._logits[ids]
        return self._wrap(loaded)

    def possible(self, array: Any) -> int:
        """The number of loaded tokens that can still be drawn."""
        return int(np.isfinite(self._all[: array.size]["logit"]).sum())

    def single(self, token: int) -> Any:
        """One token alone, to ask a grammar about it."""
        self._one[0] = (token, 1.0, 0.0)
        return self._wrap(self._one)

    def _wrap(self, data: npt.NDArray[Any]) -> Any:
        pointer = ctypes.cast(data.ctypes.data, self._pointer)
        return self._array(data=pointer, size=len(data), selected=-1, sorted=False)


class Sampler:
    """The samplers of one generation. `refused` counts draws that the grammar rejected."""

    def __init__(self, model: LlamaModel, sampling: Sampling, seed: int, grammar: str | None) -> None:
        self._lib = library()
        self._draw = self._draw_chain(sampling, seed)
        # One chain where acts have no threshold of their own: a seed must give the text that it always gave.
        stricter = sampling.act_min_p > sampling.min_p
        self._act = self._draw_chain(replace(sampling, min_p=sampling.act_min_p), seed) if stricter else self._draw
        self._most = _most_that_count(sampling)
        self._repeat = self._lib.llama_sampler_clone(_repeat_chain(model, sampling))
        self._others = None
        if sampling.dry_others:  # the penalties on what others said: DRY alone
            alone = replace(sampling, repeat_penalty=1.0, dry_length=sampling.dry_others)
            self._others = self._lib.llama_sampler_clone(_repeat_chain(model, alone))
        self._grammar = None if grammar is None else self._lib.llama_sampler_clone(_parsed_grammar(model, grammar))
        self.refused = 0

    def _draw_chain(self, sampling: Sampling, seed: int) -> Any:
        lib = self._lib
        chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
        if sampling.temperature <= 0:
            lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_greedy())
            return chain
        lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_top_k(sampling.top_k))
        lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_top_p(sampling.top_p, 1))
        lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_min_p(sampling.min_p, 1))
        lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_temp(sampling.temperature))
        lib.llama_sampler_chain_add(chain, lib.llama_sampler_init_dist(seed))
        return chain

    def hear(self, own: Iterable[int], others: Iterable[int]) -> None:
        """Replace the tokens of earlier utterances, the speaker's own and others', that the penalties look back on."""
        for chain, tokens in zip(self._penalties, (own, others), strict=False):
            self._lib.llama_sampler_reset(chain)
            for token in tokens:
                self._lib.llama_sampler_accept(chain, token)

    @property
    def _penalties(self) -> tuple[Any, ...]:
        """The penalties on what the speaker said, and, where there are any, on what others said."""
        return (self._repeat,) if self._others is None else (self._repeat, self._others)

    def draw(self, candidates: Candidates, logits: npt.NDArray[np.float32], *, in_text: bool) -> int:
        """Draw a next token that the grammar allows; it counts only after `take`.

        Raises GenerationFailed where none can be drawn: llama.cpp would end the process.
        """
        token = self._pick(candidates.load(logits, self._most), in_text)
        if self._grammar is not None and not self._allows(candidates, token):
            self.refused += 1
            allowed = self._allowed(candidates, logits)
            if not candidates.possible(allowed):
                raise GenerationFailed(
                    "the model gives no probability to any text that is allowed; is its file damaged?"
                )
            token = self._pick(allowed, in_text)
        return token

    def _allowed(self, candidates: Candidates, logits: npt.NDArray[np.float32]) -> Any:
        """The tokens that the grammar allows, or at least all of them that a draw can depend on.

        The grammar is asked about the likeliest tokens first: about a vocabulary of 152,000 it takes 25 ms.
        """
        for most in () if self._most is None else (self._most * share for share in _SHARES):
            array = candidates.load(logits, most)
            self._lib.llama_sampler_apply(self._grammar, ctypes.byref(array))
            if candidates.possible(array) >= (self._most or 0):
                return array
        array = candidates.load(logits)
        self._lib.llama_sampler_apply(self._grammar, ctypes.byref(array))
        return array

    def take(self, tokens: Iterable[int], *, in_text: bool) -> None:
        """Add tokens to the reply, for the grammar and, within an utterance, for the penalties."""
        for token in tokens:
            if self._grammar is not None:
                self._lib.llama_sampler_accept(self._grammar, token)
            if in_text:
                for chain in self._penalties:
                    self._lib.llama_sampler_accept(chain, token)

    def _pick(self, array: Any, in_text: bool) -> int:
        reference = ctypes.byref(array)
        if in_text:
            for chain in self._penalties:
                self._lib.llama_sampler_apply(chain, reference)
        self._lib.llama_sampler_apply(self._draw if in_text else self._act, reference)
        return int(array.data[array.selected].id)

    def _allows(self, candidates: Candidates, token: int) -> bool:
        array = candidates.single(token)
        self._lib.llama_sampler_apply(self._grammar, ctypes.byref(array))
        return bool(array.data[0].logit != -np.inf)

    def free(self) -> None:
        """Release the native samplers."""
        act = None if self._act is self._draw else self._act
        for sampler in (self._draw, act, self._repeat, self._others, self._grammar):
            if sampler is not None:
                self._lib.llama_sampler_free(sampler)
        self._draw = self._act = self._repeat = self._others = self._grammar = None


def _most_that_count(sampling: Sampling) -> int | None:
    """The number of likeliest tokens that a draw can depend on; None for all.

    Penalties only lower logits, and only of tokens that they look back on. So each of the `top_k` tokens after the
    penalties was among the first `top_k` plus that number before them. The draw is the same, except for the order of
    tokens with equal logits.
    """
    kept = sampling.top_k if sampling.temperature > 0 else 1
    if kept <= 0 or sampling.repeat_penalty < 1.0 or sampling.repeat_window < 0:
        return None
    return kept + sampling.repeat_window * (2 if sampling.dry_others else 1)


@lru_cache(maxsize=64)
def _repeat_chain(model: LlamaModel, sampling: Sampling) -> Any:
    """Penalties, made once: DRY reads the whole vocabulary for its breakers. Each generation works on a clone."""
    lib = library()
    chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
    if sampling.repeat_penalty != 1.0:
        penalties = lib.llama_sampler_init_penalties(
            model.n_vocab, sampling.repeat_window, sampling.repeat_penalty, 0.0, 0.0
        )
        lib.llama_sampler_chain_add(chain, penalties)
    if sampling.dry_multiplier > 0:
        breakers = (ctypes.c_char_p * len(_BREAKERS))(*_BREAKERS)
        dry = lib.llama_sampler_init_dry(
            model.vocab,
            sampling.dry_multiplier,
            1.75,
            sampling.dry_length,
            sampling.repeat_window,
            breakers,
            len(_BREAKERS),
        )
        lib.llama_sampler_chain_add(chain, dry)
    return chain


@lru_cache(maxsize=64)
def _parsed_grammar(model: LlamaModel, grammar: str) -> Any:
    """A grammar is parsed once; each generation works on a clone."""
    sampler = library().llama_sampler_init_grammar(model.vocab, grammar.encode(), b"root")
    if not sampler:
        raise BackendUnavailable(
            "llama.cpp rejects the grammar of a reply",
            hint="this is an error in localsim; report it with the scenario file",
        )
    return sampler
