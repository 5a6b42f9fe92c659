"""A person as a backend: asked for a line in their turn, with exactly what an agent in their place would see."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

from localsim.backends.base import Done
from localsim.conversation.exchange import Generation, Request
from localsim.conversation.scenario import WRITER
from localsim.conversation.transcript import Action, line_of
from localsim.errors import GenerationFailed

NAME = "human"
Ask = Callable[[Request], Action]
"""Shows what the request's observation holds and returns what the person does."""


class PersonBackend:
    """One turn at a time; while a person thinks, nothing else of the run goes on."""

    def __init__(self, ask: Ask, name: str = NAME) -> None:
        self.name = name
        self.identity: dict[str, Any] = {"kind": "human", "name": name}
        self._ask = ask
        self._waiting: deque[tuple[int, Request]] = deque()
        self._tickets = 0

    def thinks(self) -> bool:
        """Never in writing."""
        return False

    def submit(self, request: Request) -> int:
        """Queue a turn."""
        self._tickets += 1
        self._waiting.append((self._tickets, request))
        return self._tickets

    def poll(self) -> list[Done]:
        """Ask for one turn."""
        if not self._waiting:
            return []
        ticket, request = self._waiting.popleft()
        if request.observation is None or request.speaker == WRITER:
            return [Done(ticket, GenerationFailed("a person plays one role, and neither writes scripts nor judges"))]
        begun = time.perf_counter()
        line = line_of(request.speaker, self._ask(request)).removeprefix(request.prefill)
        took = (time.perf_counter() - begun) * 1000
        return [Done(ticket, Generation(f"{line}\n", "finished", self.name, duration_ms=took))]

    def cancel(self, ticket: int) -> None:
        """Forget a turn."""
        self._waiting = deque((other, request) for other, request in self._waiting if other != ticket)

    def release(self, session: str) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing to free."""
