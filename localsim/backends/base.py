"""The protocol of backends: they take requests for text and return generations. They know nothing of modes or storage.

A llama.cpp model, a scripted player, an endpoint and a person are all backends. `submit` returns at once; `poll`
works for a moment and returns the finished replies, so that many conversations share one loop without threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from localsim.conversation.requests import Generation, Request, half_pair
from localsim.errors import GenerationFailed

THINKING_TEMPERATURE = 0.6
"""The temperature of thoughts: at 0, where the likeliest token is always taken, thinking models repeat themselves."""


@dataclass(frozen=True)
class Done:
    """A finished ticket: its generation, or the reason for having none.

    What cannot be stored becomes a failure here, whichever backend wrote it: no reply may stop a run.
    """

    ticket: int
    result: Generation | GenerationFailed

    def __post_init__(self) -> None:
        result = self.result
        reason = result.defect if isinstance(result, Generation) else result.message
        if half_pair(reason):
            reason = reason.encode("utf-8", "replace").decode()
        if reason and reason != getattr(result, "message", ""):
            object.__setattr__(self, "result", GenerationFailed(reason))


class Backend(Protocol):
    """Something that writes text. One that keeps nothing inherits `release` and `close`."""

    name: str
    """The name given on the command line."""
    identity: dict[str, Any]
    """The facts stored about it: kind, file, sha256, settings."""

    def thinks(self) -> bool:
        """True if it is a model that thinks before it replies, where a request leaves room for that."""
        return False

    def submit(self, request: Request) -> int:
        """Take a request and return its ticket, unique within this backend."""

    def poll(self) -> list[Done]:
        """Work for a moment (at most one decode step) and return the finished tickets."""

    def cancel(self, ticket: int) -> None:
        """Forget a ticket; it will not be returned."""

    def release(self, session: str) -> None:  # noqa: ARG002 - overridden
        """Free the memory of a session."""
        return

    def close(self) -> None:
        """Free everything; the backend is not used again."""
        return


@runtime_checkable
class Writing(Protocol):
    """A backend that knows how much of its unfinished replies is written; a forecast needs it, a run does not."""

    def writing(self) -> int:
        """Return the tokens of all replies that are not finished."""
