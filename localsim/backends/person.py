"""A person as a backend: asked for a line in their turn, and shown exactly what an agent in their place would see."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from localsim.backends.base import Backend, Done
from localsim.conversation.requests import TYPED, Generation, Request
from localsim.conversation.scenario import WRITER
from localsim.conversation.transcript import Action, line_of
from localsim.errors import GenerationFailed

NAME = "human"
AskPerson = Callable[[Request], Action]
"""Shows what the request's observation holds and returns what the person does."""


def has_part(model: str) -> bool:
    """True if a person plays a role of an episode, whose models a bar divides: `human|starter`."""
    return NAME in model.split("|")


class PersonBackend(Backend):
    """A person who takes one turn at a time; the rest of the run waits meanwhile."""

    def __init__(self, ask: AskPerson) -> None:
        self.name = NAME
        self.identity: dict[str, Any] = {"kind": "human", "name": NAME}
        self._ask = ask
        self._waiting: deque[tuple[int, Request]] = deque()
        self._tickets = 0

    def submit(self, request: Request) -> int:
        self._tickets += 1
        self._waiting.append((self._tickets, request))
        return self._tickets

    def poll(self) -> list[Done]:
        if not self._waiting:
            return []
        ticket, request = self._waiting.popleft()
        if request.observation is None or request.speaker == WRITER:
            return [Done(ticket, GenerationFailed("a person can play one role, but cannot write scripts or judge"))]
        begun = time.perf_counter()
        line = line_of(request.speaker, self._ask(request)).removeprefix(request.prefill)
        took = (time.perf_counter() - begun) * 1000
        return [Done(ticket, Generation(f"{line}\n", "finished", self.name, duration_ms=took, details=TYPED))]

    def cancel(self, ticket: int) -> None:
        self._waiting = deque((other, request) for other, request in self._waiting if other != ticket)
