"""Backends that ask in threads of their own, so that a slow answer does not hold up the other conversations."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from localsim.backends.base import Backend, Done
from localsim.conversation.requests import Generation, Request
from localsim.errors import GenerationFailed

_POLL_S = 0.2


class ThreadedBackend(Backend):
    """Asks for each request in one of `workers` threads; whatever an ask raises is a failed generation."""

    def __init__(self, workers: int) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix=type(self).__name__)
        self._running: dict[Future[Generation], int] = {}
        self._tickets = 0

    def submit(self, request: Request) -> int:
        self._tickets += 1
        self._running[self._pool.submit(self.ask, request)] = self._tickets
        return self._tickets

    def poll(self) -> list[Done]:
        if not self._running:
            return []
        finished, _ = wait(self._running, timeout=_POLL_S, return_when=FIRST_COMPLETED)
        return [Done(self._running.pop(future), _result(future)) for future in finished]

    def cancel(self, ticket: int) -> None:
        for future, number in list(self._running.items()):
            if number == ticket:
                future.cancel()
                del self._running[future]

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def ask(self, request: Request) -> Generation:
        """Return the reply to a request; called in a thread."""
        raise NotImplementedError


def _result(future: Future[Generation]) -> Generation | GenerationFailed:
    error = future.exception()
    if error is None:
        return future.result()
    return error if isinstance(error, GenerationFailed) else GenerationFailed(f"{type(error).__name__}: {error}")
