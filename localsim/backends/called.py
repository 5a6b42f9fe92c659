"""A Python function as a model: it is called with a chat and returns a reply, in this process.

    localsim.run("mutual_friends_01", model=lambda chat: "Hello! Do you know Desmond?")

The chat is that of a server (`endpoint`), and every reply is read and validated like a server's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Any

from localsim.backends.endpoint import server_messages
from localsim.backends.replies import generation_of
from localsim.backends.threaded import ThreadedBackend
from localsim.conversation.requests import Generation, Request
from localsim.errors import GenerationFailed, InvalidInput

PREFIX = "python:"
Chat = list[dict[str, str]]
"""Messages with `role` (system, user, assistant) and `content`."""
Function = Callable[[Chat], str]

_FUNCTIONS: dict[str, Function] = {}
"""The functions of this process, by the name under which a run stores them."""


def named(function: Function) -> str:
    """Return the name of a function as a model; another function of that name, such as a lambda, gets a number."""
    name = f"{PREFIX}{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__name__)}"
    names = (name if number == 1 else f"{name}#{number}" for number in count(1))
    return next(each for each in names if _FUNCTIONS.setdefault(each, function) is function)


class CalledBackend(ThreadedBackend):
    """Calls a function for each reply, one after the other. Raises InvalidInput for a name without a function here."""

    def __init__(self, name: str) -> None:
        if name not in _FUNCTIONS:
            raise InvalidInput(
                f"the model {name} was a function of another Python process",
                hint="run it again from there: localsim.run(..., model=FUNCTION)",
            )
        self.name = name
        self.identity: dict[str, Any] = {"kind": "python", "name": name, "seeds": "not passed"}
        self._function = _FUNCTIONS[name]
        super().__init__(workers=1)  # a function need not bear several threads

    def ask(self, request: Request) -> Generation:
        begun = time.perf_counter()
        reply = self._function([{"role": each.role, "content": each.content} for each in server_messages(request)])
        if not isinstance(reply, str):
            raise GenerationFailed(f"{self.name} returned {reply!r}, which is no text")
        return generation_of(request, reply, model=self.name, duration_ms=(time.perf_counter() - begun) * 1000)
