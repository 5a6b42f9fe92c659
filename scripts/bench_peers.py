"""What the engine is compared with: the high-level wrapper of llama-cpp-python, and llama.cpp's own server."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from localsim.backends.base import Done, Generation, Request, StopCause
from localsim.backends.chat import ChatTokenizer
from localsim.backends.llama_lib import LlamaModel
from localsim.engines import physical_cores

SLOTS = 16


def wrapper_seconds(model: LlamaModel, context: int, replies: Sequence[tuple[Request, list[int]]]) -> Iterator[float]:
    """Seconds of `Llama.create_chat_completion` for each reply, which is forced on it token by token.

    The wrapper cannot begin a reply, so it also writes the start of the line; only our tokens are counted.
    """
    import llama_cpp

    llama = llama_cpp.Llama(
        str(model.path),
        n_ctx=context,
        n_batch=512,
        n_threads=physical_cores(),
        n_threads_batch=physical_cores(),
        flash_attn=True,
        verbose=False,
    )
    chat = ChatTokenizer(model)
    llama.create_chat_completion([{"role": "user", "content": "Hello"}], max_tokens=2)

    def timed() -> Iterator[float]:
        grammars: dict[str, Any] = {}
        for request, reply in replies:
            text = with_start(request.form.grammar(), request.prefill)
            grammar = grammars.setdefault(text, llama_cpp.LlamaGrammar.from_string(text, verbose=False))
            tokens = [*chat.content(request.prefill), *reply]
            sampling = request.sampling
            begun = time.perf_counter()
            llama.create_chat_completion(
                [{"role": message.role, "content": message.content} for message in request.messages],
                max_tokens=len(tokens),
                grammar=grammar,
                temperature=sampling.temperature,
                top_k=sampling.top_k,
                top_p=sampling.top_p,
                min_p=sampling.min_p,
                repeat_penalty=sampling.repeat_penalty,
                seed=request.seed,
                logits_processor=llama_cpp.LogitsProcessorList([_forcing(tokens)]),
            )
            yield time.perf_counter() - begun
        llama.close()

    return timed()


def with_start(grammar: str, start: str) -> str:
    """The grammar of a reply together with its fixed start."""
    escaped = start.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return grammar.replace("root ::= ", f'root ::= "{escaped}" ', 1)


def _forcing(tokens: Sequence[int]) -> Callable[[Any, Any], Any]:
    position = [0]

    def force(_ids: Any, scores: Any) -> Any:
        token = tokens[min(position[0], len(tokens) - 1)]
        position[0] += 1
        kept = scores[token]
        scores[:] = -np.inf
        scores[token] = kept
        return scores

    return force


class ServerBackend:
    """llama.cpp's server (POST /completion), one slot for each session, so that its prompt cache is used."""

    def __init__(self, address: str, model: LlamaModel) -> None:
        self.name = address
        self.identity: dict[str, Any] = {"kind": "server"}
        self._url = address.rstrip("/") + "/completion"
        self._chat = ChatTokenizer(model)
        self._pool = ThreadPoolExecutor(SLOTS)
        self._running: dict[Future[Generation], int] = {}
        self._slots: dict[str, int] = {}
        self._tickets = 0
        self.evaluated = self.generated = self.replies = 0

    def submit(self, request: Request) -> int:
        """Post it."""
        self._tickets += 1
        if request.session not in self._slots:
            self._slots[request.session] = min(set(range(SLOTS)) - set(self._slots.values()))
        future = self._pool.submit(self._ask, request, self._slots[request.session])
        self._running[future] = self._tickets
        return self._tickets

    def _ask(self, request: Request, slot: int) -> Generation:
        sampling = request.sampling
        body = {
            "prompt": self._chat.prompt(request.messages, request.prefill),
            "grammar": request.form.grammar(),
            "n_predict": request.max_tokens,
            "id_slot": slot,
            "cache_prompt": True,
            "seed": request.seed,
            "temperature": sampling.temperature,
            "top_k": sampling.top_k,
            "top_p": sampling.top_p,
            "min_p": sampling.min_p,
            "repeat_penalty": sampling.repeat_penalty,
            "repeat_last_n": sampling.repeat_window,
            "dry_multiplier": sampling.dry_multiplier,
        }
        data = json.dumps(body).encode()
        query = urllib.request.Request(self._url, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(query, timeout=600) as answer:
            found = json.load(answer)
        cause: StopCause = "length" if found.get("stop_type") == "limit" else "finished"
        timings = found["timings"]
        return Generation(
            text=found["content"],
            cause=cause,
            model="server",
            evaluated_tokens=timings["prompt_n"],
            generated_tokens=timings["predicted_n"],
        )

    def poll(self) -> list[Done]:
        """Wait for the next reply."""
        finished, _ = wait(self._running, return_when=FIRST_COMPLETED)
        done = [Done(self._running.pop(future), future.result()) for future in finished]
        for generation in (each.result for each in done):
            assert isinstance(generation, Generation)
            self.evaluated += generation.evaluated_tokens
            self.generated += generation.generated_tokens
            self.replies += 1
        return done

    def cancel(self, ticket: int) -> None:
        """Not needed here."""

    def release(self, session: str) -> None:
        """Its slot is free."""
        self._slots.pop(session, None)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()
