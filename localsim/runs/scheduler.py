"""The scheduler: it drives many episodes at once, each a generator of its mode, over any number of backends.

Episodes do not wait for each other: each gets its text as soon as a backend finishes it. Every event goes to a sink
before the episode continues. On resume, the scheduler replays recorded generations instead of requesting them again.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from localsim.backends.base import Backend, Done, Writing
from localsim.conversation.episode import Episode, EpisodeSpec, StopReason, Subject
from localsim.conversation.modes import MODES, Ask, Play, Reject, Say
from localsim.conversation.requests import Generation, Request
from localsim.conversation.scenario import WRITER, AnswerKey
from localsim.conversation.transcript import Transcript, Turn
from localsim.errors import GenerationFailed, MalformedReply
from localsim.evaluators.evaluate import evaluated
from localsim.runs.recorder import EventSink, Recorder
from localsim.store.queries.runs import Recorded
from localsim.store.records import Record, episode_id_of


class Watcher:
    """Follows a run, to draw progress bars or live conversations. Override any method; the others do nothing."""

    def begun(self, run_id: str) -> None:
        """Handle the beginning: the models are loaded, and the run is stored under this id."""

    def stops(self) -> bool:
        """Return True to stop the run after the current turns, so that it can be resumed."""
        return False

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:
        """Handle a valid turn."""

    def scored(self, spec: EpisodeSpec, scores: Sequence[Record]) -> None:
        """Handle the scores of an episode that ends now."""

    def ended(self, episode: Episode) -> None:
        """Handle the end of an episode."""

    def tokens(self, generated: int) -> None:
        """Handle newly generated tokens."""

    def begins(self, specs: Sequence[EpisodeSpec]) -> None:
        """Handle the episodes that will be simulated, before the first of them."""

    def working(self, ended: int, running: int) -> None:
        """Handle the tokens of ended episodes and of those in progress, after each step of the backends."""


@dataclass(frozen=True)
class Work:
    """Episodes of a run to play now, and who is told about them."""

    run_id: str
    specs: Sequence[EpisodeSpec]
    recorded: Mapping[str, Sequence[Recorded]]
    """Episode id -> the generations that an earlier attempt has recorded."""
    answers: Mapping[str, AnswerKey]
    """Hash of a scenario -> its answer key."""
    recorder: Recorder
    watcher: Watcher
    should_stop: Callable[[], bool]
    """Returns True to stop after the current turns."""


@dataclass
class Summary:
    """The counts of a run."""

    completed: int = 0
    failed: int = 0
    tokens_generated: int = 0
    tokens_evaluated: int = 0
    tokens_in_prompts: int = 0
    tokens_shared: int = 0
    """Prompt tokens in the cache that another conversation had evaluated."""
    stopped: bool = False

    def add(self, text: Generation) -> None:
        """Count the tokens of a text."""
        self.tokens_generated += text.generated_tokens
        self.tokens_evaluated += text.evaluated_tokens
        self.tokens_in_prompts += text.prompt_tokens
        self.tokens_shared += text.shared_tokens

    def end(self, *, failed: bool) -> None:
        """Count an episode that has ended."""
        self.failed += failed
        self.completed += not failed


@dataclass
class _Live:
    """An episode that is being simulated."""

    episode_id: str
    spec: EpisodeSpec
    play: Play
    recorded: deque[Recorded]
    started: float
    transcript: Transcript = field(default_factory=Transcript)
    generations: int = 0
    tokens: int = 0
    """Tokens that the models have written for it."""
    sessions: dict[str, str] = field(default_factory=dict)
    """Session -> model."""


def scores_of(episode_id: str, episode: Episode, answer: AnswerKey) -> list[Record]:
    """Return the scores of an episode by the evaluators that need no model; none if it failed."""
    return evaluated(subject_of(episode_id, episode, answer)) if episode.status == "completed" else []


def subject_of(episode_id: str, episode: Episode, answer: AnswerKey) -> Subject:
    """Return a completed episode as evaluators read it."""
    spec = episode.spec
    about = (episode_id, spec.scenario, answer, spec.mode, spec.index, spec.seed, episode.transcript)
    return Subject(*about, variant=spec.variant, see=spec.grants.text)


class Simulation:
    """A run in progress. `backends` are keyed by model name, `answers` by scenario hash.

    Without `answers` the episodes get no scores: then the process that receives them computes these (`scores_of`).
    """

    def __init__(
        self,
        run_id: str,
        backends: Mapping[str, Backend],
        answers: Mapping[str, AnswerKey] | None,
        sink: EventSink,
        watcher: Watcher,
        *,
        parallel: int,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._run_id = run_id
        self._backends = backends
        self._answers = answers
        self._sink = sink
        self._watcher = watcher
        self._parallel = parallel
        self._should_stop = should_stop
        self._waiting: dict[tuple[str, int], tuple[_Live, Request]] = {}
        self._live = 0
        self._ended_tokens = 0
        self.summary = Summary()

    def run(
        self,
        specs: Sequence[EpisodeSpec],
        recorded: Mapping[str, Sequence[Recorded]] | None = None,
        more: Callable[[], bool] = lambda: False,
        leaves: Callable[[], bool] = lambda: False,
    ) -> Summary:
        """Simulate all specs; if `should_stop` returns True, stop after the current turns.

        While `more` returns True, it goes on when nothing is left to do: a deque of `specs` may be filled again. When
        `leaves`, which is asked in every round, returns True, it returns at once.
        """
        queue = specs if isinstance(specs, deque) else deque(specs)
        if queue is not specs:  # nobody knows yet what a class will play
            self._watcher.begins(specs)
        self._fill(queue, recorded or {})
        while self._waiting or more():
            if leaves():
                return self.summary
            if self._should_stop():
                self._drop_scripts()
            for name, backend in self._backends.items():
                for done in backend.poll():
                    self._hand_over(name, done)
            self._fill(queue, recorded or {})
            begun = sum(backend.writing() for backend in self._backends.values() if isinstance(backend, Writing))
            self._watcher.working(self._ended_tokens, self.summary.tokens_generated - self._ended_tokens + begun)
        self.summary.stopped = self._live > 0 or bool(queue)
        return self.summary

    def break_off(self, specs: deque[EpisodeSpec], error: str) -> None:
        """Leave the episodes in progress, and those that have not begun, without an end; `error` says why."""
        for (name, ticket), (live, _) in list(self._waiting.items()):
            self._backends[name].cancel(ticket)
            self._end(live, error=error, broken_off=True)
        while specs:
            self._end(self._begun(specs.popleft(), {}), error=error, broken_off=True)

    def _drop_scripts(self) -> None:
        """Drop scripts that are being written: unlike a single turn they take long, and a resume begins them again."""
        for (name, ticket), (_, request) in list(self._waiting.items()):
            if request.speaker == WRITER:
                self._backends[name].cancel(ticket)
                del self._waiting[(name, ticket)]

    def _fill(self, queue: deque[EpisodeSpec], recorded: Mapping[str, Sequence[Recorded]]) -> None:
        """Start episodes until `parallel` of them are running."""
        while queue and self._live < self._parallel and not self._should_stop():
            self._advance(self._begun(queue.popleft(), recorded), None)

    def _begun(self, spec: EpisodeSpec, recorded: Mapping[str, Sequence[Recorded]]) -> _Live:
        episode_id = episode_id_of(self._run_id, spec)
        self._sink.episode_started(episode_id, spec)
        self._live += 1
        return _Live(episode_id, spec, MODES[spec.mode](spec), deque(recorded.get(episode_id, ())), time.perf_counter())

    def _hand_over(self, name: str, done: Done) -> None:
        waiting = self._waiting.pop((name, done.ticket), None)
        if waiting is None:
            return
        live, request = waiting
        self._sink.generation(live.episode_id, live.generations, request, done.result)
        live.generations += 1
        if isinstance(done.result, GenerationFailed):
            self._end(live, error=str(done.result))
            return
        live.tokens += done.result.generated_tokens
        self.summary.add(done.result)
        self._watcher.tokens(done.result.generated_tokens)
        self._advance(live, done.result)

    def _advance(self, live: _Live, generation: Generation | None) -> None:
        """Advance an episode until it needs a text or ends."""
        try:
            step = live.play.send(generation)
            while True:
                if isinstance(step, Ask):
                    known = self._recorded(live, step.request)
                    if known is None:
                        self._submit(live, step.request)
                        return
                    self._sink.generation(live.episode_id, live.generations, step.request, known)
                    live.generations += 1
                    step = live.play.send(known)
                    continue
                if isinstance(step, Say):
                    live.transcript = live.transcript.plus(step.turn)
                    number = live.generations - 1 - step.back if step.written else -1
                    self._sink.turn(live.episode_id, step.turn, number)
                    self._watcher.turn(live.spec, step.turn)
                elif isinstance(step, Reject):
                    self._sink.reject(live.episode_id, live.generations - 1, step.reason)
                step = next(live.play)
        except StopIteration as end:
            self._end(live, stop_reason=end.value)
        except MalformedReply as error:
            self._end(live, error=error.message)

    def _recorded(self, live: _Live, request: Request) -> Generation | None:
        """Return the recorded generation for a request, if there is one and it fits."""
        if not live.recorded:
            return None
        record = live.recorded.popleft()
        if (record.turn, record.attempt, record.seed) != (request.turn, request.attempt, request.seed):
            live.recorded.clear()
            return None
        return record.result

    def _submit(self, live: _Live, request: Request) -> None:
        if self._should_stop():
            return
        model = live.spec.models[request.speaker]
        live.sessions[request.session] = model
        ticket = self._backends[model].submit(request)
        self._waiting[(model, ticket)] = (live, request)

    def _end(
        self, live: _Live, *, stop_reason: StopReason | None = None, error: str | None = None, broken_off: bool = False
    ) -> None:
        episode = Episode(
            live.spec,
            live.transcript,
            status="interrupted" if broken_off else "failed" if error else "completed",
            stop_reason=stop_reason,
            error=error,
        )
        records: list[Record] = []
        if self._answers is not None:
            records = scores_of(live.episode_id, episode, self._answers[live.spec.scenario.hash])
        for session, model in live.sessions.items():
            self._backends[model].release(session)
        self._sink.episode_ended(live.episode_id, episode, records, (time.perf_counter() - live.started) * 1000)
        self._live -= 1
        self._ended_tokens += live.tokens
        if not broken_off:
            self.summary.end(failed=bool(error))
        self._watcher.scored(live.spec, records)
        self._watcher.ended(episode)
