"""The engine: many conversations on one GGUF model through llama.cpp's low-level API.

One cache per session, that is per agent of an episode (see cache.py). A request evaluates only the tokens that its
session has not seen; all running requests share each decode, and long prompts are evaluated in parts so that they
never hold up the others. The text of each reply is the work of its job (see job.py).
Under `exact` a decode holds one sequence and the cache is a function of the prompt alone: whole chunks of CHUNK
tokens at fixed positions are kept, the rest of the prompt is evaluated again.

The engine knows token ids, sequences and forms; it knows nothing of agents, modes or storage.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from localsim.backends.base import Done
from localsim.backends.llama.cache import CHUNK, Session, SessionCache
from localsim.backends.llama.job import Job, Tools, opening_of, outgrown
from localsim.backends.llama.lib import BATCH, LlamaModel, build_description, library, new_context
from localsim.conversation.episode import Overflow, Repro
from localsim.conversation.exchange import Request, StopCause
from localsim.errors import GenerationFailed

PREFILL_SHARE = 256
"""Prompt tokens in a decode while other replies are being written, so that those are not held up."""


@dataclass
class Effort:
    """Seconds that the engine spent inside llama.cpp; the rest of a run's time is Python's share."""

    decode: float = 0.0
    sample: float = 0.0


class LlamaBackend:
    """A GGUF model that writes for at most `sequences` sessions at a time, in contexts of `context` tokens.

    Raises BackendUnavailable where llama.cpp cannot make the context. `clock` gives seconds.
    """

    def __init__(
        self,
        model: LlamaModel,
        *,
        name: str,
        sha256: str,
        sequences: int,
        context: int,
        threads: int,
        repro: Repro = "stable",
        overflow: Overflow = "error",
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.name = name
        self._lib = library()
        self._model = model
        self._context_size = context
        self._exact = repro == "exact"
        self._overflow = overflow
        self._clock = clock
        self.effort = Effort()
        self._tools = Tools(
            model,
            identity=f"{model.path.name} {sha256[:12]}",
            context=context,
            exact=self._exact,
            overflow=overflow,
            clock=clock,
        )
        self._context = new_context(model, sequences=sequences, context=context, threads=threads)
        self._sessions = SessionCache(self._context, sequences)
        self._batch = self._lib.llama_batch_init(BATCH, 0, 1)
        self._jobs: dict[int, Job] = {}
        self._queue: deque[tuple[int, Request]] = deque()
        self._failed: list[Done] = []
        self._tickets = 0
        self.identity: dict[str, Any] = {
            "kind": "llama",
            "name": name,
            "file": model.path.name,
            "sha256": sha256,
            "sequences": sequences,
            "context": context,
            "threads": threads,
            "repro": repro,
            "overflow": overflow,
            "gpu_layers": model.gpu_layers,
            "build": build_description(),
        }

    # ---- Backend -----------------------------------------------------------------------------------------------

    def thinks(self) -> bool:
        """True if its chat template has a place for thoughts."""
        return self._tools.thinks()

    def submit(self, request: Request) -> int:
        """Queue a request; it starts when a sequence is free."""
        self._tickets += 1
        self._queue.append((self._tickets, request))
        return self._tickets

    def poll(self) -> list[Done]:
        """One decode over all running requests (under `exact` one for each)."""
        self._start_queued()
        finished, self._failed = self._failed, []
        if not self._exact:
            finished += self._close_up()
        jobs = sorted(self._jobs.values(), key=lambda job: job.cache.sequence or 0)
        if self._exact:
            for job in jobs:
                finished += self._decode([(job, self._exact_chunk(job))])
        elif jobs:
            finished += self._decode(self._share(jobs))
        return finished

    def writing(self) -> int:
        """The tokens of all replies that are not finished."""
        return sum(len(job.tokens) for job in self._jobs.values())

    def cancel(self, ticket: int) -> None:
        """Forget a ticket; its session's cache stays usable."""
        self._queue = deque((other, request) for other, request in self._queue if other != ticket)
        job = self._jobs.pop(ticket, None)
        if job is not None:
            job.sampler.free()

    def release(self, session: str) -> None:
        """Free the cache of the session."""
        self._sessions.forget(session)

    def close(self) -> None:
        """Free context and weights."""
        for ticket in list(self._jobs):
            self.cancel(ticket)
        if self._context:
            self._lib.llama_batch_free(self._batch)
            self._lib.llama_free(self._context)
            self._model.free()
            self._context = None

    # ---- starting ----------------------------------------------------------------------------------------------

    def _start_queued(self) -> None:
        waiting: deque[tuple[int, Request]] = deque()
        opening = {job.opening for job in self._jobs.values() if not job.prefilled}
        for ticket, request in self._queue:
            if opening_of(request) in opening and not self._sessions.has_opening(opening_of(request)):
                waiting.append((ticket, request))  # another job evaluates the opening now; then this one can copy it
                continue
            session = self._sessions.seat(request.session, self._busy())
            if session is None:
                waiting.append((ticket, request))
                continue
            try:
                self._jobs[ticket] = self._start(ticket, request, session)
                opening.add(opening_of(request))
            except GenerationFailed as error:
                self._failed.append(Done(ticket, error))
        self._queue = waiting

    def _start(self, ticket: int, request: Request, session: Session) -> Job:
        prompt = self._tools.prompt(request, session)
        taken = self._sessions.begin_with(session, prompt.tokens)
        kept = self._keep(session, prompt.tokens)
        return Job(self._tools, ticket, request, session, prompt, kept=kept, shared=min(taken, kept))

    def _keep(self, session: Session, prompt: list[int]) -> int:
        """Cut the cache back to the part that it shares with `prompt`, at most all but the last token."""
        shared = 0
        for ours, theirs in zip(session.tokens, prompt[:-1], strict=False):
            if ours != theirs:
                break
            shared += 1
        if self._exact:
            shared = min(shared, session.canonical) // CHUNK * CHUNK
        self._sessions.cut(session, shared)
        return shared

    def _close_up(self) -> list[Done]:
        """Move the running jobs into neighbouring sequences; a job whose cache is lost on the way has failed."""
        lost = self._sessions.close_up(self._busy())
        broken = [job for job in self._jobs.values() if any(job.cache is session for session in lost)]
        error = "llama.cpp did not take a conversation's cache back"
        return [self._fail(job, GenerationFailed(error)) for job in broken]

    def _busy(self) -> set[int]:
        """Sequences in which a request is at work."""
        return {job.cache.sequence for job in self._jobs.values() if job.cache.sequence is not None}

    # ---- decoding ----------------------------------------------------------------------------------------------

    def _exact_chunk(self, job: Job) -> int:
        """Pending tokens that `exact` evaluates now: within the prompt, up to the next multiple of CHUNK."""
        if job.prefilled:
            return len(job.pending)
        return min(len(job.pending), CHUNK - len(job.cache.tokens) % CHUNK)

    def _share(self, jobs: list[Job]) -> list[tuple[Job, int]]:
        """Pending tokens of each job that go into the next decode: all of every reply, and prompts as room allows.

        Short prompts come first: most are one utterance, and their jobs can then write along with the others.
        """
        room = BATCH
        shares: dict[int, int] = {}
        for job in sorted(jobs, key=lambda job: (not job.prefilled, len(job.pending))):
            if not job.prefilled and any(other.prefilled for other in jobs):
                room = min(room, PREFILL_SHARE)
            shares[job.ticket] = min(len(job.pending), room)
            room -= shares[job.ticket]
        return [(job, shares[job.ticket]) for job in jobs if shares[job.ticket]]

    def _decode(self, shares: list[tuple[Job, int]]) -> list[Done]:
        """Evaluate the given numbers of pending tokens, then draw a token for each job whose last one was included."""
        batch = self._batch
        grown = [job for job, count in shares if len(job.cache.tokens) + count > self._context_size]
        if grown:
            return [self._outgrow(job) for job in grown]
        row = 0
        drawing: list[tuple[Job, int]] = []
        for job, count in shares:
            session = job.cache
            for offset in range(count):
                batch.token[row] = job.pending[offset]
                batch.pos[row] = len(session.tokens) + offset
                batch.n_seq_id[row] = 1
                batch.seq_id[row][0] = session.sequence
                batch.logits[row] = offset + 1 == len(job.pending)
                row += 1
            if count == len(job.pending):
                drawing.append((job, row - 1))
            job.evaluated(count)
        batch.n_tokens = row
        begun = self._clock()
        status = self._lib.llama_decode(self._context, batch)
        self._lib.llama_synchronize(self._context)  # a GPU is still at work when llama_decode returns
        self.effort.decode += self._clock() - begun
        if status != 0:
            hint = "run with LOCALSIM_DEBUG=1 to see llama.cpp's log"
            return [
                self._fail(job, GenerationFailed(f"llama_decode returned {status}", hint=hint)) for job, _ in shares
            ]
        return [done for job, index in drawing if (done := self._draw(job, index)) is not None]

    def _draw(self, job: Job, row: int) -> Done | None:
        """Draw a job's next token from a row of the decode; returns the reply where that token ends it."""
        if job.begins():
            self._sessions.keep_opening(job.opening, job.cache)
        pointer = self._lib.llama_get_logits_ith(self._context, row)
        logits = np.ctypeslib.as_array(pointer, shape=(self._model.n_vocab,))
        in_text = job.in_text()
        begun = self._clock()
        job.weigh(logits)
        token = self._choose(job, logits, in_text=in_text)
        job.sampler.take([token], in_text=in_text)
        self.effort.sample += self._clock() - begun
        cause = job.take(token)
        return self._finish(job, cause) if cause is not None else None

    def _choose(self, job: Job, logits: npt.NDArray[np.float32], *, in_text: bool) -> int:
        """The next token. A benchmark that replays a recorded run overrides this."""
        return job.sampler.draw(job.candidates, logits, in_text=in_text)

    # ---- finishing ---------------------------------------------------------------------------------------------

    def _finish(self, job: Job, cause: StopCause) -> Done:
        del self._jobs[job.ticket]
        return Done(job.ticket, job.generation(cause))

    def _outgrow(self, job: Job) -> Done:
        """End a reply that fills its context: with a window the mode goes on from its last whole line."""
        if self._overflow == "window" and job.tokens:
            job.pending.clear()
            return self._finish(job, "length")
        return self._fail(job, outgrown(job.request, job.prompt_tokens, self._context_size))

    def _fail(self, job: Job, error: GenerationFailed) -> Done:
        del self._jobs[job.ticket]
        job.sampler.free()
        # The failed decode left the cache in an unknown state, so the session starts from nothing.
        self._sessions.cut(job.cache, 0)
        return Done(job.ticket, error)
