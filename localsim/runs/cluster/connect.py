"""The connection to a Ray cluster. Ray is imported here and nowhere else, and only for `--cluster`."""

from __future__ import annotations

import ipaddress
import logging
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from localsim import paths
from localsim.errors import BackendUnavailable, InvalidInput

AUTO, CLIENT = "auto", "ray://"
FORMS = f"{AUTO} for the cluster that this machine belongs to, or {CLIENT}HOST:PORT"
INSTALL = paths.installing("ray")
_CURRENT = Path("/tmp/ray/ray_current_cluster")
"""The file in which `ray start` leaves the address of this machine's cluster."""
_PATIENCE_S = 5.0
"""Seconds in which a port must answer; Ray itself would wait for minutes."""


def checked_address(text: str) -> str:
    """Return the address of a cluster. Raises InvalidInput for anything but `auto` and `ray://HOST:PORT`."""
    host, colon, port = text.removeprefix(CLIENT).rpartition(":")
    if text == AUTO or (text.startswith(CLIENT) and host and colon and port.isdecimal()):
        return text
    raise InvalidInput(f"{text!r} is not the address of a cluster", hint=FORMS)


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Give the module `ray`, connected to a cluster until the block ends.

    Raises BackendUnavailable if Ray is not installed or the cluster does not answer.
    """
    where = _address_of_auto() if checked_address(address) == AUTO else address
    _prepare(where)
    try:
        import ray
    except ImportError as error:
        raise BackendUnavailable(f"--cluster needs Ray, and {error.name} is not installed", hint=INSTALL) from error
    if ray.is_initialized():  # by a program that uses localsim
        yield ray
        return
    if where:
        _ensure_answers(where)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        ray.init(where or AUTO, log_to_driver=False, configure_logging=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise _unreachable(where or AUTO, str(error).strip().splitlines()[0]) from error
    _restore(handlers)
    # Ray prints each lost worker on stdout, among the results; the crew tells it on stderr.
    ray._private.worker._worker_logs_enabled = False
    try:
        yield ray
    finally:
        ray.shutdown()
        _restore(handlers)


def _restore(handlers: dict[signal.Signals, Any]) -> None:
    """Take back the signals that Ray has taken."""
    for number, handler in handlers.items():
        try:
            signal.signal(number, handler)
        except ValueError:  # not in the main thread
            return


def _address_of_auto() -> str:
    """Return the address of this machine's cluster; '' if only Ray can find it."""
    known = os.environ.get("RAY_ADDRESS", "")
    if known in ("", AUTO) and _CURRENT.is_file():
        known = _CURRENT.read_text(encoding="utf-8").strip()
    return "" if known == AUTO else known


def _prepare(where: str) -> None:
    """Set what Ray reads while it is imported."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    logging.getLogger("ray").setLevel(logging.ERROR)
    if not where.startswith(CLIENT) and _is_loopback(where.rpartition(":")[0]):
        # Otherwise Ray replaces the address by one of the network, at which such a cluster does not listen.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _ensure_answers(where: str) -> None:
    host, _, port = where.removeprefix(CLIENT).rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE_S).close()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _unreachable(where, reason) from error


def _unreachable(where: str, reason: str) -> BackendUnavailable:
    if where == AUTO or not where.startswith(CLIENT):
        hint = "start one on this machine with: ray start --head   (docs/cluster.md)"
    else:
        hint = "compare with the address that `ray start --head` printed there; the port of ray:// is usually 10001"
    return BackendUnavailable(f"no Ray cluster answers at {where}: {reason}", hint=hint)
