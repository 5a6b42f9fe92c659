"""What a backend is: it takes requests for text and returns generations. It knows nothing of modes or storage.

A llama.cpp model, a scripted player, an endpoint and a person are all backends. `submit` returns at once; `poll`
works for a moment and returns what is finished, so that many conversations share one loop without threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from localsim.conversation.exchange import Generation, Request
from localsim.errors import GenerationFailed


@dataclass(frozen=True)
class Done:
    """A finished ticket: its generation, or why there is none."""

    ticket: int
    result: Generation | GenerationFailed


class Backend(Protocol):
    """Something that writes text."""

    name: str
    """As given on the command line."""
    identity: dict[str, Any]
    """What is stored about it: kind, file, sha256, settings."""

    def thinks(self) -> bool:
        """Whether it is a model that thinks before it replies, where a request leaves room for that."""

    def submit(self, request: Request) -> int:
        """Take a request and return its ticket, unique within this backend."""

    def poll(self) -> list[Done]:
        """Work for a moment (at most one decode step) and return what is finished."""

    def cancel(self, ticket: int) -> None:
        """Forget a ticket; it will not be returned."""

    def release(self, session: str) -> None:
        """Free whatever is kept for a session."""

    def close(self) -> None:
        """Free everything; the backend is not used again."""
