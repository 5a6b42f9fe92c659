"""The people of a floor as a backend: any number of them answer at once, each in their own conversation."""

from __future__ import annotations

import threading
import time
from typing import Any

from localsim.backends.base import Backend, Done
from localsim.backends.person import NAME
from localsim.conversation.requests import TYPED, Generation, Request
from localsim.conversation.transcript import Action, line_of
from localsim.errors import GenerationFailed

_IDLE_S, _BUSY_S = 0.2, 0.005
"""Longest wait for an answer in one round, without and with a model that writes beside the people."""


class Players(Backend):
    """Takes the turns of people from the pages. With `timed` a turn is stored with the time that it took."""

    def __init__(self, changed: threading.Condition, *, beside_model: bool, timed: bool) -> None:
        self.name = NAME
        self.identity: dict[str, Any] = {"kind": "human", "name": NAME}
        self.closing = False
        self._changed = changed
        self._wait = _BUSY_S if beside_model else _IDLE_S
        self._timed = timed
        self._tickets = 0
        self._asked: dict[str, tuple[int, Request, float]] = {}
        """Hash of a spec -> the turn that a person is asked for in its conversation, and since when."""
        self._given: list[Done] = []

    @property
    def over(self) -> bool:
        """True at the end, when no turn is left to hand over."""
        return self.closing and not self._given

    def submit(self, request: Request) -> int:
        with self._changed:
            self._tickets += 1
            self._asked[request.session.rpartition("/")[0]] = (self._tickets, request, time.monotonic())
            return self._tickets

    def asked(self, talk: str) -> Request | None:
        """The turn that a person is asked for in a conversation, named by the hash of its spec."""
        found = self._asked.get(talk)
        return found[1] if found else None

    def waited(self) -> float:
        """Seconds since the oldest turn was asked for that has not arrived; 0 without one."""
        with self._changed:
            return max((time.monotonic() - since for _, _, since in self._asked.values()), default=0.0)

    def give(self, talk: str, role: str, turn: int, action: Action) -> bool:
        """Take the turn of a role; False where another turn is asked for. Only under the lock."""
        found = self._asked.get(talk)
        if found is None or (found[1].speaker, found[1].turn) != (role, turn):
            return False
        ticket, request, since = self._asked.pop(talk)
        line = line_of(role, action).removeprefix(request.prefill)
        took = (time.monotonic() - since) * 1000 if self._timed else 0.0
        self._given.append(Done(ticket, Generation(f"{line}\n", "finished", NAME, duration_ms=took, details=TYPED)))
        self._changed.notify_all()
        return True

    def fail(self, talk: str, reason: str) -> None:
        """End a conversation with a reason, if a person is asked in it. Only under the lock."""
        found = self._asked.pop(talk, None)
        if found is not None:
            self._given.append(Done(found[0], GenerationFailed(reason)))
            self._changed.notify_all()

    def poll(self) -> list[Done]:
        with self._changed:
            if not self._given and not self.closing:
                self._changed.wait(self._wait)
            given, self._given = self._given, []
        return given

    def cancel(self, ticket: int) -> None:
        with self._changed:
            self._asked = {talk: asked for talk, asked in self._asked.items() if asked[0] != ticket}
