"""A mixture of two backends: a draw from the seed of each request decides which of them writes the reply.

The seed of a turn is equal in all modes, so both conditions of a comparison have the same draws. A script is one
request, so one model writes the whole script.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from localsim.backends.base import Backend, Done, Writing
from localsim.conversation.requests import Request
from localsim.models.mixtures import mixture_of


class MixedBackend(Backend):
    """Replies by one of two backends; who opened them closes them."""

    def __init__(self, name: str, backends: Mapping[str, Backend]) -> None:
        """`backends` holds both parts by name."""
        self.name = name
        self._mixture = mixture_of(name)
        self._parts = [backends[part] for part in self._mixture.parts]
        self._tickets = 0
        self._own: dict[tuple[int, int], int] = {}
        """(place of the part, its ticket) -> the ticket of this backend."""
        self.identity: dict[str, Any] = {
            "kind": "mix",
            "name": name,
            "share": self._mixture.share,
            "parts": {part: backends[part].identity for part in self._mixture.parts},
        }

    def thinks(self) -> bool:
        return any(part.thinks() for part in self._parts)

    def submit(self, request: Request) -> int:
        place = 0 if random.Random(f"mix {request.seed}").random() < self._mixture.share else 1
        self._tickets += 1
        self._own[place, self._parts[place].submit(request)] = self._tickets
        return self._tickets

    def poll(self) -> list[Done]:
        return [
            replace(done, ticket=self._own.pop((place, done.ticket)))
            for place, part in enumerate(self._parts)
            for done in part.poll()
        ]

    def cancel(self, ticket: int) -> None:
        for place, inner in [key for key, own in self._own.items() if own == ticket]:
            del self._own[place, inner]
            self._parts[place].cancel(inner)

    def writing(self) -> int:
        """Return the tokens of all unfinished replies."""
        return sum(part.writing() for part in self._parts if isinstance(part, Writing))

    def release(self, session: str) -> None:
        for part in self._parts:
            part.release(session)
