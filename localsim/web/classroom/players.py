"""The people of a class or an experiment as a backend: any number of them answer at once, each in their own talk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from localsim.backends.base import Done
from localsim.backends.person import NAME
from localsim.conversation.exchange import TYPED, Generation, Request
from localsim.conversation.transcript import Action, line_of
from localsim.errors import GenerationFailed

_IDLE_S, _BUSY_S = 0.2, 0.005
"""Longest wait for an answer in one round, without and with a model that writes beside the people."""


class ClassOver(Exception):
    """Ends the loop of a run: the teacher ended the class, or the server stops."""


class Players:
    """Takes the turns of people from the pages. `each_round` is called in every round of the run's loop."""

    def __init__(self, changed: threading.Condition, each_round: Callable[[], None], *, beside_model: bool) -> None:
        self.name = NAME
        self.identity: dict[str, Any] = {"kind": "human", "name": NAME}
        self.closing = False
        self._changed = changed
        self._each_round = each_round
        self._wait = _BUSY_S if beside_model else _IDLE_S
        self._tickets = 0
        self._asked: dict[str, tuple[int, Request]] = {}
        """Hash of a talk's spec -> the turn that a person is asked for."""
        self._given: list[Done] = []

    def thinks(self) -> bool:
        """Always False: a person writes down no thoughts."""
        return False

    def submit(self, request: Request) -> int:
        """Ask for a turn."""
        with self._changed:
            self._tickets += 1
            self._asked[_talk_of(request)] = (self._tickets, request)
            return self._tickets

    def asked(self, talk: str) -> Request | None:
        """The turn that a person is asked for in a talk, named by the hash of its spec."""
        found = self._asked.get(talk)
        return found[1] if found else None

    def give(self, talk: str, role: str, turn: int, action: Action) -> bool:
        """Take the turn of a role; False where another turn is asked for. Only under the lock."""
        ticket, request = self._asked.get(talk, (0, None))
        if request is None or (request.speaker, request.turn) != (role, turn):
            return False
        del self._asked[talk]
        line = line_of(role, action).removeprefix(request.prefill)
        self._given.append(Done(ticket, Generation(f"{line}\n", "finished", self.name, details=TYPED)))
        self._changed.notify_all()
        return True

    def fail(self, talk: str, reason: str) -> bool:
        """End a talk with a reason; False while no person is asked in it. Only under the lock."""
        ticket, request = self._asked.pop(talk, (0, None))
        if request is None:
            return False
        self._given.append(Done(ticket, GenerationFailed(reason)))
        self._changed.notify_all()
        return True

    def poll(self) -> list[Done]:
        """Return the turns that have arrived. Raises ClassOver at the end."""
        self._each_round()
        with self._changed:
            if not self._given and not self.closing:
                self._changed.wait(self._wait)
            if self.closing and not self._given:
                raise ClassOver
            given, self._given = self._given, []
        return given

    def cancel(self, ticket: int) -> None:
        """Forget a turn."""
        self._asked = {talk: pair for talk, pair in self._asked.items() if pair[0] != ticket}

    def release(self, session: str) -> None:
        """Do nothing: there is no cache."""

    def close(self) -> None:
        """Do nothing: there is no memory to free."""


def _talk_of(request: Request) -> str:
    return request.session.rpartition("/")[0]
