"""The engine: many conversations on one GGUF model, whichever library evaluates it.

One cache per session, that is per agent of an episode (see `evaluator`). A request evaluates only the tokens that its
session has not seen; all running requests share each evaluation, and long prompts are evaluated in parts so that they
never hold up the others. The text of each reply is the work of its job (see job.py).
Under `exact` an evaluation holds one session and the cache is a function of the prompt alone: whole chunks of CHUNK
tokens at fixed positions are kept, the rest of the prompt is evaluated again.

The engine knows token ids, sessions and forms; it knows nothing of agents, modes or storage.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np
import numpy.typing as npt

from localsim.backends.base import Done
from localsim.backends.evaluator import BATCH, CHUNK, Evaluator, Part, Place, common
from localsim.backends.llama.cache import Seated, SessionCache
from localsim.backends.llama.job import Job, Tools, opening_of, outgrown
from localsim.backends.llama.lib import LlamaModel, build_description
from localsim.conversation.episode import Overflow, Repro
from localsim.conversation.requests import Request, StopCause
from localsim.errors import GenerationFailed

PREFILL_SHARE = 256
"""Prompt tokens in a decode while other replies are being written, so that those are not held up."""


@dataclass(frozen=True)
class Effort:
    """Seconds that the engine spent inside libraries; the rest of a run's time is Python's share."""

    decode: float = 0.0
    sample: float = 0.0


class Engine(Generic[Place]):
    """A GGUF model that writes for as many sessions at a time as its evaluator can, in contexts of `context` tokens.

    `facts` are stored about it, besides its name, file and limits. `clock` gives seconds.
    """

    def __init__(
        self,
        model: LlamaModel,
        evaluator: Evaluator[Place],
        facts: dict[str, Any],
        *,
        name: str,
        sha256: str,
        context: int,
        repro: Repro = "stable",
        overflow: Overflow = "error",
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.name = name
        self._model = model
        self._evaluator = evaluator
        self._context_size = context
        self._exact = repro == "exact"
        self._overflow = overflow
        self._clock = clock
        self._sampled = 0.0
        self._tools = Tools(
            model,
            identity=f"{model.path.name} {sha256[:12]}",
            context=context,
            exact=self._exact,
            overflow=overflow,
            clock=clock,
        )
        self._jobs: dict[int, Job[Place]] = {}
        self._queue: deque[tuple[int, Request]] = deque()
        self._failed: list[Done] = []
        self._tickets = 0
        self.identity: dict[str, Any] = {
            "name": name,
            "file": model.path.name,
            "sha256": sha256,
            "context": context,
            "repro": repro,
            "overflow": overflow,
            "marks": list(self._tools.chat.role_marks),
            **facts,
        }

    @property
    def effort(self) -> Effort:
        """The seconds spent so far."""
        return Effort(self._evaluator.seconds, self._sampled)

    # ---- Backend -----------------------------------------------------------------------------------------------

    def thinks(self) -> bool:
        """True if its chat template has a place for thoughts."""
        return self._tools.thinks()

    def submit(self, request: Request) -> int:
        """Queue a request; it starts when the evaluator has a place for its session."""
        self._tickets += 1
        self._queue.append((self._tickets, request))
        return self._tickets

    def poll(self) -> list[Done]:
        """One evaluation for all running requests (under `exact` one for each)."""
        self._start_queued()
        finished, self._failed = self._failed, []
        finished += self._settle()
        jobs = list(self._jobs.values())
        if self._exact:
            for job in jobs:
                finished += self._evaluate([(job, self._exact_chunk(job))])
        elif jobs:
            finished += self._evaluate(self._share(jobs))
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
        self._evaluator.forget(session)

    def close(self) -> None:
        """Free caches and weights."""
        for ticket in list(self._jobs):
            self.cancel(ticket)
        self._evaluator.close()
        self._model.free()

    # ---- starting ----------------------------------------------------------------------------------------------

    def _start_queued(self) -> None:
        waiting: deque[tuple[int, Request]] = deque()
        opening = {job.opening for job in self._jobs.values() if not job.prefilled}
        for ticket, request in self._queue:
            if opening_of(request) in opening and not self._evaluator.has_opening(opening_of(request)):
                waiting.append((ticket, request))  # another job evaluates the opening now; then this one can copy it
                continue
            session = self._evaluator.seat(request.session, self._working())
            if session is None:
                waiting.append((ticket, request))
                continue
            try:
                self._jobs[ticket] = self._start(ticket, request, session)
                opening.add(opening_of(request))
            except GenerationFailed as error:
                self._failed.append(Done(ticket, error))
        self._queue = waiting

    def _start(self, ticket: int, request: Request, session: Place) -> Job[Place]:
        prompt = self._tools.prompt(request, session)
        taken = self._evaluator.begin_with(session, prompt.tokens)
        kept = self._keep(session, prompt.tokens)
        return Job(self._tools, ticket, request, session, prompt, kept=kept, shared=min(taken, kept))

    def _keep(self, session: Place, prompt: list[int]) -> int:
        """Cut the cache back to the part that it shares with `prompt`, at most all but the last token."""
        shared = common(session.tokens, prompt[:-1])
        if self._exact:
            shared = min(shared, session.canonical) // CHUNK * CHUNK
        self._evaluator.cut(session, shared)
        return shared

    def _settle(self) -> list[Done]:
        """Let the evaluator prepare; a job whose cache is lost on the way has failed."""
        lost = self._evaluator.settle(self._working())
        broken = [job for job in self._jobs.values() if job.cache in lost]
        error = "llama.cpp did not take a conversation's cache back"
        return [self._fail(job, GenerationFailed(error)) for job in broken]

    def _working(self) -> set[Place]:
        """The sessions whose replies are being written."""
        return {job.cache for job in self._jobs.values()}

    # ---- evaluating ---------------------------------------------------------------------------------------------

    def _exact_chunk(self, job: Job[Place]) -> int:
        """Pending tokens that `exact` evaluates now: within the prompt, up to the next multiple of CHUNK."""
        if job.prefilled:
            return len(job.pending)
        return min(len(job.pending), CHUNK - len(job.cache.tokens) % CHUNK)

    def _share(self, jobs: list[Job[Place]]) -> list[tuple[Job[Place], int]]:
        """Pending tokens of each job that go into the next evaluation: all of every reply, and prompts as room allows.

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

    def _evaluate(self, shares: list[tuple[Job[Place], int]]) -> list[Done]:
        """Evaluate the given numbers of pending tokens, then draw a token for each job whose last one was included."""
        grown = [job for job, count in shares if len(job.cache.tokens) + count > self._context_size]
        if grown:
            return [self._outgrow(job) for job in grown]
        parts = [Part(job.cache, job.pending[:count], int(count == len(job.pending))) for job, count in shares]
        try:
            logits = self._evaluator.evaluate(parts)
        except GenerationFailed as error:
            return [self._fail(job, error) for job, _ in shares]
        for job, count in shares:
            job.evaluated(count)
        drawing = [(job, rows[0]) for (job, _), rows in zip(shares, logits, strict=True) if len(rows)]
        return [done for job, row in drawing if (done := self._draw(job, row)) is not None]

    def _draw(self, job: Job[Place], logits: npt.NDArray[np.float32]) -> Done | None:
        """Draw a job's next token; returns the reply where that token ends it."""
        if job.begins():
            self._evaluator.keep_opening(job.opening, job.cache)
        in_text = job.in_text()
        begun = self._clock()
        job.weigh(logits)
        try:
            token = self._choose(job, logits, in_text=in_text)
        except GenerationFailed as error:
            return self._fail(job, error)
        job.sampler.take([token], in_text=in_text)
        self._sampled += self._clock() - begun
        cause = job.take(token)
        return self._finish(job, cause) if cause is not None else None

    def _choose(self, job: Job[Place], logits: npt.NDArray[np.float32], *, in_text: bool) -> int:
        """The next token. A benchmark that replays a recorded run overrides this."""
        token = job.sampler.draw(job.candidates, logits, in_text=in_text)
        while job.spells_mark(token):
            logits = logits.copy()
            logits[token] = -np.inf
            token = job.sampler.draw(job.candidates, logits, in_text=in_text)
        return token

    # ---- finishing ---------------------------------------------------------------------------------------------

    def _finish(self, job: Job[Place], cause: StopCause) -> Done:
        del self._jobs[job.ticket]
        return Done(job.ticket, job.generation(cause))

    def _outgrow(self, job: Job[Place]) -> Done:
        """End a reply that fills its context: with a window the mode goes on from its last whole line."""
        if self._overflow == "window" and job.tokens:
            job.pending.clear()
            return self._finish(job, "length")
        return self._fail(job, outgrown(job.request, job.prompt_tokens, self._context_size))

    def _fail(self, job: Job[Place], error: GenerationFailed) -> Done:
        del self._jobs[job.ticket]
        job.sampler.free()
        # The failed evaluation left the cache in an unknown state, so the session starts from nothing.
        self._evaluator.cut(job.cache, 0)
        return Done(job.ticket, error)


class LlamaBackend(Engine[Seated]):
    """A model that llama.cpp evaluates, in `sequences` contexts.

    Raises BackendUnavailable where llama.cpp cannot make them.
    """

    def __init__(
        self, model: LlamaModel, *, sequences: int, context: int, threads: int, repro: Repro = "stable", **more: Any
    ) -> None:
        facts = {
            "kind": "llama",
            "sequences": sequences,
            "threads": threads,
            "gpu_layers": model.gpu_layers,
            "build": build_description(),
        }
        caches = SessionCache(model, sequences=sequences, context=context, threads=threads)
        super().__init__(model, caches, facts, context=context, repro=repro, **more)
