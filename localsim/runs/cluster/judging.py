"""Judges on a cluster: evaluators stay on the driver's machine, and workers answer the questions of whole batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass

from localsim.backends.open import Needs, absolute
from localsim.conversation.episode import Subject
from localsim.conversation.requests import Request
from localsim.errors import GenerationFailed
from localsim.evaluators.asking import QUESTIONS, THINK_TOKENS
from localsim.evaluators.base import Asked, Evaluation, Evaluator, Steps
from localsim.evaluators.evaluate import Drive, OpenPanel
from localsim.runs.cluster.assignments import MOST_LOSSES
from localsim.runs.cluster.crew import Crew, Member, Notify, Staff, gathered
from localsim.runs.cluster.messages import Orders

Batch = tuple[Subject, ...]
Result = Callable[[], list[Evaluation]]


def panel_on(address: str) -> OpenPanel:
    """Return what lets `score_runs` ask judges on the cluster at an address."""

    @contextmanager
    def opened(model: str, say: Notify) -> Iterator[Drive]:
        needs = Needs(sequences=QUESTIONS, think=THINK_TOKENS)
        with gathered(address, Orders((absolute(model),), needs, QUESTIONS, QUESTIONS), say) as crew:

            def drive(evaluator: Evaluator, batches: Sequence[Batch]) -> Iterator[tuple[Batch, Result]]:
                return _Panel(crew, evaluator, batches).results()

            yield drive

    return opened


@dataclass
class _Case:
    """A batch under way: its evaluator waits for the answers to `requests`."""

    batch: Batch
    steps: Steps
    requests: Sequence[Request]
    losses: int = 0


class _Panel(Staff):
    """The work of a crew that judges; each worker has the questions of one batch at a time."""

    def __init__(self, crew: Crew, evaluator: Evaluator, batches: Sequence[Batch]) -> None:
        self._crew = crew
        self._evaluator = evaluator
        self._batches = deque(batches)
        self._again: deque[_Case] = deque()
        self._asked: dict[str, _Case] = {}
        self._idle: list[Member] = []
        self._results: deque[tuple[Batch, Result]] = deque()

    def results(self) -> Iterator[tuple[Batch, Result]]:
        """Yield each batch with a function that returns its evaluations or raises the error of its evaluator."""
        self._crew.begin(self)
        while self._batches or self._again or self._asked or self._results:
            while self._results:
                yield self._results.popleft()
            if self._batches or self._again or self._asked:
                self._crew.turn()

    def ready(self, member: Member) -> None:
        while self._again or self._batches:
            if self._again:
                case: _Case | None = self._again.popleft()
            else:
                batch = self._batches.popleft()
                case = self._step(_Case(batch, self._evaluator.evaluate(batch), ()), None)
            if case is not None:
                self._ask(member, case)
                return
        self._idle.append(member)

    def lost(self, member: Member) -> int:
        """Let other workers answer the questions of a lost one; questions that no worker survives have failed."""
        self._idle = [each for each in self._idle if each is not member]
        case = self._asked.pop(member.name, None)
        if case is None:
            return 0
        case.losses += 1
        if case.losses >= MOST_LOSSES:
            failed = GenerationFailed(f"{MOST_LOSSES} workers in a row were lost while they answered")
            next_case = self._step(case, [Asked(request, failed) for request in case.requests])
        else:
            next_case = case
        if next_case is not None:
            self._again.append(next_case)
        if self._again and self._idle:
            self.ready(self._idle.pop())
        return 1

    def _ask(self, member: Member, case: _Case) -> None:
        self._asked[member.name] = case
        self._crew.call(member, member.actor.ask.remote(case.requests), self._answered)

    def _answered(self, member: Member, answers: Sequence[Asked]) -> None:
        self._crew.advance(member.place)
        case = self._step(self._asked.pop(member.name), answers)
        if case is None:
            self.ready(member)
        else:
            self._ask(member, case)

    def _step(self, case: _Case, answers: Sequence[Asked] | None) -> _Case | None:
        """Give an evaluator its answers; return the batch with its next questions, or None if it is finished."""
        result: Future[list[Evaluation]] = Future()
        try:
            requests = next(case.steps) if answers is None else case.steps.send(answers)
        except StopIteration as end:
            result.set_result(end.value)
        except Exception as failure:  # noqa: BLE001 - `guarded` handles it where the result is used
            result.set_exception(failure)
        else:
            return _Case(case.batch, case.steps, requests)
        self._results.append((case.batch, result.result))
        return None
