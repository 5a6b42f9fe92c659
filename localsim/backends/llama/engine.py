"""The engine: many conversations on one GGUF model through llama.cpp's low-level API.

One cache per session, that is per agent of an episode (llama_cache.py says where it lies). A request evaluates only the
tokens that its session has not seen; all running requests share each decode, and long prompts are fed in chunks so
that they never starve the others.
Under `exact` a decode holds one sequence and the cache is a function of the prompt alone: whole chunks of CHUNK
tokens at fixed positions are kept, the rest of the prompt is evaluated again.

The engine knows token ids, sequences and forms; it knows nothing of agents, modes or storage.
"""

from __future__ import annotations

import codecs
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from localsim.backends.base import Done
from localsim.backends.llama.cache import Session, SessionCache
from localsim.backends.llama.chat import ChatTokenizer
from localsim.backends.llama.lib import BATCH, LlamaModel, build_description, library, new_context
from localsim.backends.llama.sampler import Candidates, Sampler
from localsim.backends.llama.window import windowed
from localsim.conversation.episode import Overflow, Repro, Sampling
from localsim.conversation.exchange import THOUGHT, Generation, Request, StopCause, Thought
from localsim.errors import GenerationFailed

CHUNK = 64
"""Prompt tokens that `exact` evaluates together, at positions that are multiples of it."""
OPENING_MESSAGES = 2
"""Messages of a prompt that is remembered as an opening: instructions, and what begins the talk."""
PREFILL_SHARE = 256
"""Prompt tokens in a decode while others are generating, so that they are not held up."""
THINKING = Sampling(temperature=0.6, top_k=20, min_p=0.0, dry_multiplier=0.0, grammar=False)
"""How thoughts are drawn: thinking models go round in circles where the likeliest token is always taken."""
CLOSING = 32
"""Tokens that are kept free for the mark that closes a thought and the start of the reply."""

_UTF8 = codecs.getincrementaldecoder("utf-8")


@dataclass
class _Job:
    """A request at work."""

    ticket: int
    request: Request
    cache: Session
    pending: list[int]
    """Tokens not yet in the cache; the last one's logits give the next token."""
    sampler: Sampler
    opening: str
    prompt_tokens: int
    evaluated_tokens: int
    shared_tokens: int
    dropped_messages: int
    started: float
    text: str = ""
    tokens: list[int] = field(default_factory=list)
    forced: int = 0
    prefilled: bool = False
    thinking: int = 0
    """Tokens that the thought may take that is being written; 0 once the reply is."""
    thought: Thought | None = None
    decoder: codecs.IncrementalDecoder = field(default_factory=lambda: _UTF8(errors="replace"))

    @property
    def full_text(self) -> str:
        return self.request.prefill + self.text


@dataclass
class Effort:
    """Seconds that the engine spent, so that what is left is Python's own share."""

    decode: float = 0.0
    sample: float = 0.0


def _opening_of(request: Request) -> str:
    """What a session begins with: its instructions, which are the same for every seed."""
    return request.messages[0].content


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
        self._chat = ChatTokenizer(model)
        self._context_size = context
        self._exact = repro == "exact"
        self._overflow = overflow
        self._clock = clock
        self.effort = Effort()
        self._context = new_context(model, sequences=sequences, context=context, threads=threads)
        self._sessions = SessionCache(self._context, sequences)
        self._batch = self._lib.llama_batch_init(BATCH, 0, 1)
        self._candidates = Candidates(model)
        self._thoughts = Candidates(model, THOUGHT) if self.thinks() else self._candidates
        self._jobs: dict[int, _Job] = {}
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
        """Whether its chat template has a place for thoughts."""
        return self._chat.template.thinks

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

    def cancel(self, ticket: int) -> None:
        """Forget a ticket; its session's cache stays usable."""
        self._queue = deque((other, request) for other, request in self._queue if other != ticket)
        job = self._jobs.pop(ticket, None)
        if job is not None:
            job.sampler.free()

    def release(self, session: str) -> None:
        """Free what is kept for the session."""
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
            if _opening_of(request) in opening and not self._sessions.has_opening(_opening_of(request)):
                waiting.append((ticket, request))  # it is being evaluated, and will be had for nothing
                continue
            session = self._sessions.seat(request.session, self._busy())
            if session is None:
                waiting.append((ticket, request))
                continue
            try:
                self._jobs[ticket] = self._start(ticket, request, session)
                opening.add(_opening_of(request))
            except GenerationFailed as error:
                self._failed.append(Done(ticket, error))
        self._queue = waiting

    def _close_up(self) -> list[Done]:
        """Let those at work sit next to each other; whoever loses its cache on the way has failed."""
        lost = self._sessions.close_up(self._busy())
        broken = [job for job in self._jobs.values() if any(job.cache is session for session in lost)]
        error = "llama.cpp did not take a conversation's cache back"
        return [self._fail(job, GenerationFailed(error)) for job in broken]

    def _busy(self) -> set[int]:
        """Sequences in which a request is at work."""
        return {job.cache.sequence for job in self._jobs.values() if job.cache.sequence is not None}

    def _start(self, ticket: int, request: Request, session: Session) -> _Job:
        prompt, dropped = self._prompt(request, session)
        opened, thinking = self._opened(request)
        prompt = opened or prompt
        taken = self._sessions.begin_with(session, prompt)
        kept = self._keep(session, prompt)
        job = _Job(
            ticket=ticket,
            request=request,
            cache=session,
            pending=prompt[kept:],
            sampler=self._sampler(request, thinking=bool(thinking)),
            opening=_opening_of(request),
            prompt_tokens=len(prompt),
            evaluated_tokens=len(prompt) - kept,
            shared_tokens=min(taken, kept),
            dropped_messages=dropped,
            started=self._clock(),
            thinking=thinking,
        )
        self._hear(job)
        return job

    def _sampler(self, request: Request, *, thinking: bool) -> Sampler:
        """Of a reply, bound by its grammar, or of a free thought."""
        sampling = THINKING if thinking else request.sampling
        return Sampler(self._model, sampling, request.seed, request.form.grammar() if sampling.grammar else None)

    def _opened(self, request: Request) -> tuple[list[int], int]:
        """The prompt of a thought, and how many tokens that may take; nothing where there is to be none."""
        if not request.think or not self.thinks():
            return [], 0
        prompt = self._chat.prompt(request.messages, request.prefill, thinking=True)
        room = self._context_size - len(prompt) - request.max_tokens - CLOSING
        return (prompt, min(request.think, room)) if room > 0 else ([], 0)

    def _prompt(self, request: Request, session: Session) -> tuple[list[int], int]:
        """Tokens of the prompt and how many messages (or lines of a script) the window left out of it."""
        # Under `exact` the prompt must not depend on how the model happened to cut its own words into tokens.
        written = None if self._exact else session.written
        prompt = self._chat.prompt(request.messages, request.prefill, written)
        if self._overflow == "window":
            room = self._context_size - min(request.max_tokens, self._context_size // 4)
            if len(prompt) > room:
                return windowed(self._chat, request, written, room) or self._refuse(request, len(prompt))
        elif len(prompt) >= self._context_size:
            self._refuse(request, len(prompt))
        return prompt, 0

    def _refuse(self, request: Request, prompt_tokens: int) -> NoReturn:
        raise self._outgrown(request, prompt_tokens)

    def _keep(self, session: Session, prompt: list[int]) -> int:
        """Cut the cache back to what it shares with `prompt`, at most all but the last token."""
        shared = 0
        for ours, theirs in zip(session.tokens, prompt[:-1], strict=False):
            if ours != theirs:
                break
            shared += 1
        if self._exact:
            shared = min(shared, session.canonical) // CHUNK * CHUNK
        self._sessions.cut(session, shared)
        return shared

    def _hear(self, job: _Job) -> None:
        """Prime the penalties at the start of a line: in every mode with what its speaker has said before."""
        window, form = job.request.sampling.repeat_window, job.request.form
        # In a script the lines written so far count as heard, just as they would turn by turn.
        said = (*job.request.heard, *form.utterances(job.full_text))
        own = [words for name, words in said if name == form.speaker(job.full_text)]
        tokens: list[int] = []
        for text in own[-window:]:
            tokens += self._chat.content(text)  # without a line break: penalties on it would drag lines out
        job.sampler.hear(tokens[-window:])

    # ---- decoding ----------------------------------------------------------------------------------------------

    def _exact_chunk(self, job: _Job) -> int:
        """How many pending tokens `exact` evaluates now: up to the next multiple of CHUNK while it is the prompt."""
        if job.prefilled:
            return len(job.pending)
        return min(len(job.pending), CHUNK - len(job.cache.tokens) % CHUNK)

    def _share(self, jobs: list[_Job]) -> list[tuple[_Job, int]]:
        """How many pending tokens of each job go into the next decode: all replies, and prompts as far as they fit.

        Short prompts first: most are one utterance, and whoever has taken it in can write along with the others.
        """
        room = BATCH
        shares: dict[int, int] = {}
        for job in sorted(jobs, key=lambda job: (not job.prefilled, len(job.pending))):
            if not job.prefilled and any(other.prefilled for other in jobs):
                room = min(room, PREFILL_SHARE)
            shares[job.ticket] = min(len(job.pending), room)
            room -= shares[job.ticket]
        return [(job, shares[job.ticket]) for job in jobs if shares[job.ticket]]

    def _decode(self, shares: list[tuple[_Job, int]]) -> list[Done]:
        """Evaluate the given numbers of pending tokens, then draw a token where a job's last one was among them."""
        batch = self._batch
        grown = [job for job, count in shares if len(job.cache.tokens) + count > self._context_size]
        if grown:
            return [self._outgrow(job) for job in grown]
        row = 0
        drawing: list[tuple[_Job, int]] = []
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
            self._advance(job, count)
        batch.n_tokens = row
        begun = self._clock()
        status = self._lib.llama_decode(self._context, batch)
        self.effort.decode += self._clock() - begun
        if status != 0:
            hint = "run with LOCALSIM_DEBUG=1 to see llama.cpp's log"
            return [
                self._fail(job, GenerationFailed(f"llama_decode returned {status}", hint=hint)) for job, _ in shares
            ]
        return [done for job, index in drawing if (done := self._draw(job, index)) is not None]

    def _advance(self, job: _Job, count: int) -> None:
        session = job.cache
        session.tokens += job.pending[:count]
        del job.pending[:count]
        if not job.prefilled:
            session.canonical = len(session.tokens) // CHUNK * CHUNK
            job.prefilled = not job.pending

    def _draw(self, job: _Job, row: int) -> Done | None:
        if not job.tokens and job.thought is None and len(job.request.messages) <= OPENING_MESSAGES:
            self._sessions.keep_opening(job.opening, job.cache)
        pointer = self._lib.llama_get_logits_ith(self._context, row)
        logits = np.ctypeslib.as_array(pointer, shape=(self._model.n_vocab,))
        in_text = not job.thinking and job.request.form.in_text(job.full_text)
        begun = self._clock()
        token = self._choose(job, logits, in_text=in_text)
        job.sampler.take([token], in_text=in_text)
        self.effort.sample += self._clock() - begun
        if job.thinking:
            self._think(job, token)
            return None
        if self._model.ends_text(token):
            return self._finish(job, "end_of_text")
        self._append(job, token)
        form = job.request.form
        if job.text.endswith("\n") and form.finished(job.full_text):
            return self._finish(job, "finished")
        if len(job.tokens) >= job.request.max_tokens:
            return self._finish(job, "length")
        while job.request.sampling.grammar and (text := form.forced(job.full_text)):
            if not self._append_forced(job, text):
                break
        return self._finish(job, "finished") if form.finished(job.full_text) else None

    def _think(self, job: _Job, token: int) -> None:
        """Take a token of a thought; at the thought's end or limit close it, and begin the reply after it."""
        silent_end = not self._model.piece(token) and self._model.token_text(token) == THOUGHT
        ended = silent_end or self._model.ends_text(token)
        if not ended:
            self._append(job, token)
            ended = THOUGHT in job.text
        if not ended and len(job.tokens) < job.thinking:
            return
        job.pending += self._chat.after_thought(job.text, job.request.prefill)
        job.thought = Thought(job.text.partition(THOUGHT)[0].strip(), len(job.tokens), cut=not ended)
        job.thinking, job.text, job.tokens = 0, "", []
        job.decoder.reset()
        job.sampler.free()
        job.sampler = self._sampler(job.request, thinking=False)
        self._hear(job)

    def _choose(self, job: _Job, logits: npt.NDArray[np.float32], *, in_text: bool) -> int:
        """The next token; a benchmark that replays a recorded run takes another one than is drawn here."""
        candidates = self._thoughts if job.thinking else self._candidates
        return job.sampler.draw(candidates, logits, in_text=in_text)

    def _append(self, job: _Job, token: int) -> None:
        job.tokens.append(token)
        job.pending.append(token)
        piece = self._model.piece(token)
        job.text += job.decoder.decode(piece)
        if b"\n" in piece:
            self._hear(job)

    def _append_forced(self, job: _Job, text: str) -> bool:
        """Take over text that the form leaves no choice about; it is evaluated with the next decode.

        False where the vocabulary cannot write exactly this text, which is then drawn token by token.
        """
        tokens = self._chat.content(text)
        if self._model.text_of(tokens) != text.encode():
            return False
        job.sampler.take(tokens, in_text=False)
        for token in tokens:
            self._append(job, token)
        job.forced += len(tokens)
        return True

    # ---- finishing ---------------------------------------------------------------------------------------------

    def _finish(self, job: _Job, cause: StopCause) -> Done:
        del self._jobs[job.ticket]
        request = job.request
        if not self._exact:
            broken = bool(job.tokens) and self._model.piece(job.tokens[-1]) == b"\n"
            reply = (*self._chat.content(request.prefill), *(job.tokens[:-1] if broken else job.tokens))
            job.cache.written[job.full_text.removesuffix("\n")] = reply
        details = {"forced": job.forced, "refused": job.sampler.refused, "sampling": asdict(request.sampling)}
        job.sampler.free()
        generation = Generation(
            text=job.text,
            cause=cause,
            model=f"{self.identity['file']} {self.identity['sha256'][:12]}",
            prompt_tokens=job.prompt_tokens,
            evaluated_tokens=job.evaluated_tokens,
            shared_tokens=job.shared_tokens,
            dropped_messages=job.dropped_messages,
            generated_tokens=len(job.tokens) + (job.thought.tokens if job.thought else 0),
            duration_ms=(self._clock() - job.started) * 1000,
            details=details,
            thought=job.thought,
        )
        return Done(job.ticket, generation)

    def _outgrown(self, request: Request, prompt_tokens: int) -> GenerationFailed:
        return GenerationFailed(
            f"turn {request.turn} of {request.speaker} outgrew the context of {self._context_size} tokens "
            f"(its prompt has {prompt_tokens})",
            hint="raise --ctx, lower limits.turns or limits.chars in the scenario, or run with --overflow window",
        )

    def _outgrow(self, job: _Job) -> Done:
        """A reply that fills its context: with a window the mode goes on from its last whole line."""
        if self._overflow == "window" and job.tokens:
            job.pending.clear()
            return self._finish(job, "length")
        return self._fail(job, self._outgrown(job.request, job.prompt_tokens))

    def _fail(self, job: _Job, error: GenerationFailed) -> Done:
        del self._jobs[job.ticket]
        job.sampler.free()
        # What the failed decode left in the cache is unknown, so the session starts from nothing.
        self._sessions.cut(job.cache, 0)
        return Done(job.ticket, error)
