"""The engine's peers in benchmarks: the high-level wrapper of llama-cpp-python, and llama.cpp's own server."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from localsim.backends.base import Done
from localsim.backends.endpoint import server_messages
from localsim.backends.llama.chat import ChatTokenizer
from localsim.backends.llama.lib import LlamaModel
from localsim.backends.open import physical_cores
from localsim.conversation.requests import Form, Generation, Request, StopCause
from localsim.conversation.rules.grammar import ActionLines
from localsim.conversation.scenario import WRITER
from scripts.bench_pace import ABREAST

SLOTS = ABREAST
POLL_S = 0.2
"""Seconds between two polls of the server."""
Key = tuple[str, int, int]


def key_of(request: Request) -> Key:
    """The key of a reply."""
    return request.session, request.turn, request.attempt


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
                [{"role": message.role, "content": message.content} for message in server_messages(request)],
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


@dataclass(frozen=True)
class Server:
    """llama.cpp's server program on loopback, with SLOTS slots and its cache of prompts in memory."""

    program: Path

    @contextmanager
    def running(self, model: LlamaModel, context: int) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
        """Start a server with empty caches; returns its address and process."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        threads = str(physical_cores())
        command = [str(self.program), "-m", str(model.path), "-np", str(SLOTS), "-c", str(SLOTS * context)]
        command += ["-fa", "on", "-t", threads, "-tb", threads]
        command += ["--host", "127.0.0.1", "--port", str(port), "--log-verbosity", "1"]
        process = subprocess.Popen(command)
        try:
            address = f"http://127.0.0.1:{port}"
            _await(address, process)
            yield address, process
        finally:
            process.kill()
            process.wait()


def _await(address: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server has loaded its model."""
    while process.poll() is None:
        with suppress(OSError), urllib.request.urlopen(address + "/health", timeout=10):
            return
        time.sleep(POLL_S)
    raise click.ClickException(f"the server ended with status {process.returncode}")


@contextmanager
def stopped(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Stop a server's work for a while, so that something else can be measured."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


class Recorded(NamedTuple):
    """A recorded reply."""

    draws: int
    """Number of tokens drawn, including the one that ended the reply."""
    cause: StopCause
    text: str


class ServerBackend:
    """llama.cpp's server (POST /completion), which finds a prompt's slot, or its copy in memory, by itself.

    It does the work of the recorded replies: as many tokens are drawn for each, the last one stands for the end and is
    thrown away, and what the listener reads is what is left. A script's text is the recorded one, for nobody reads it.
    """

    def __init__(
        self, address: str, model: LlamaModel, recorded: Mapping[Key, Recorded], look: Callable[[], None]
    ) -> None:
        self.name = address
        self.identity: dict[str, Any] = {"kind": "server"}
        self._url = address + "/completion"
        self._model = model
        self._chat = ChatTokenizer(model)
        self._breaks = [[token, False] for token in breaks(model)]
        self._recorded = recorded
        self._look = look
        self._pool = ThreadPoolExecutor(SLOTS)
        self._running: dict[Future[Generation], tuple[int, Request]] = {}
        self._written: dict[str, dict[str, tuple[int, ...]]] = defaultdict(dict)
        self._tickets = 0
        self.later = 0
        """Tokens evaluated: those written, and those of all prompts but openings."""

    def thinks(self) -> bool:
        """Always False: a benchmark asks for no thoughts."""
        return False

    def submit(self, request: Request) -> int:
        """Post a request to the server."""
        self._tickets += 1
        future = self._pool.submit(self._ask, request)
        self._running[future] = (self._tickets, request)
        return self._tickets

    def _ask(self, request: Request) -> Generation:
        recorded, written = self._recorded[key_of(request)], self._written[request.session]
        prompt = self._chat.prompt(request.messages, request.prefill, written, note=request.note)
        bias = {"logit_bias": self._breaks if request.speaker != WRITER else []}
        body = body_of(request, recorded) | bias | {"prompt": prompt}
        data = json.dumps(body).encode()
        query = urllib.request.Request(self._url, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(query, timeout=600) as answer:
            found = json.load(answer)
        timings = found["timings"]
        if timings["predicted_n"] != recorded.draws:
            raise ValueError(f"the server drew {timings['predicted_n']} tokens instead of {recorded.draws}")
        text = recorded.text
        if request.speaker != WRITER:
            tokens = found["tokens"] if recorded.cause == "length" else found["tokens"][:-1]
            text = self._model.text_of(tokens).decode(errors="replace")
            written[request.prefill + text] = (*self._chat.content(request.prefill), *tokens)
        return Generation(
            text=text,
            cause=recorded.cause,
            model="server",
            evaluated_tokens=timings["prompt_n"],
            generated_tokens=recorded.draws,
        )

    def poll(self) -> list[Done]:
        """Wait a moment for the next reply."""
        self._look()
        finished, _ = wait(self._running, timeout=POLL_S, return_when=FIRST_COMPLETED)
        done = []
        for future in finished:
            ticket, request = self._running.pop(future)
            generation = future.result()
            opening = request.turn < 2 or request.speaker == WRITER
            # The last token that was drawn is not evaluated.
            self.later += generation.generated_tokens - 1 + (0 if opening else generation.evaluated_tokens)
            done.append(Done(ticket, generation))
        return done

    def cancel(self, ticket: int) -> None:
        """Do nothing: a benchmark cancels no request."""

    def release(self, session: str) -> None:
        """Forget in which tokens the session's replies were written."""
        self._written.pop(session, None)

    def close(self) -> None:
        """Stop the threads."""
        self._pool.shutdown()


def breaks(model: LlamaModel) -> list[int]:
    """Tokens with a line break, which must not end an agent's reply too soon."""
    return [token for token in range(model.n_vocab) if b"\n" in model.piece(token)]


def body_of(request: Request, recorded: Recorded) -> dict[str, Any]:
    """What llama.cpp's server is asked to do for a recorded reply, without its prompt."""
    sampling = request.sampling
    return {
        "n_predict": recorded.draws,
        "grammar": endless(request.form),
        "ignore_eos": True,
        "return_tokens": True,
        "cache_prompt": True,
        "seed": request.seed,
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "repeat_penalty": sampling.repeat_penalty,
        "repeat_last_n": sampling.repeat_window,
        "dry_multiplier": sampling.dry_multiplier,
        "dry_allowed_length": sampling.dry_length,
        "dry_penalty_last_n": sampling.repeat_window,
    }


def endless(form: Form) -> str:
    """The grammar of a reply that must not end by itself: without its end, or with as many lines again."""
    assert isinstance(form, ActionLines) and form.lines[0].ways == ("speak",)
    if len(form.lines) > 1:
        return replace(form, lines=2 * form.lines).grammar()
    return replace(form, max_chars=2 * form.max_chars).grammar().replace(r' "\n"?', "")
