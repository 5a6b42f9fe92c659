"""Requests to one server, with limits of time and size for all of an answer, its head too. No redirect is followed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ssl import SSLContext
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpcore2

from localsim.network import Route, shown

_IDLE_S = 5.0
"""Seconds that an unused connection stays open."""


class NoAnswer(Exception):
    """No whole answer came; the message says why."""


class TooLong(Exception):
    """An answer has more bytes than are taken."""


@dataclass(frozen=True)
class Answer:
    """The answer of a server."""

    status: int
    headers: Mapping[str, str]
    """Names are in lower case."""
    body: bytes


class Client:
    """Sends requests on one route, at most `parallel` at a time, each with these headers."""

    def __init__(self, route: Route, headers: Mapping[str, str], parallel: int) -> None:
        usual = [("Accept", "application/json"), ("User-Agent", "localsim")]
        self._headers: dict[bytes | str, bytes | str] = dict([*usual, *headers.items()])
        self._limit = _Limit()
        self._pool = httpcore2.ConnectionPool(
            ssl_context=httpcore2.default_ssl_context(),
            proxy=_proxy(route.proxy) if route.proxy else None,
            max_connections=parallel,
            keepalive_expiry=_IDLE_S,
            network_backend=_Network(self._limit),
        )

    def send(
        self, method: str, address: str, body: bytes | None = None, *, timeout_s: float, most_bytes: int
    ) -> Answer:
        """Send one request; `timeout_s` is the time until the last byte. Raises NoAnswer and TooLong."""
        target, host = _target(address)
        headers = {**self._headers, "Host": host}
        if body is not None:
            headers["Content-Type"] = "application/json"
        self._limit.until = time.monotonic() + timeout_s
        waits = {"timeout": {"pool": timeout_s}}
        found = bytearray()
        try:
            with self._pool.stream(method, target, headers=headers, content=body, extensions=waits) as answer:
                for part in answer.iter_stream():
                    found += part
                    if len(found) > most_bytes:
                        raise TooLong(f"more than {most_bytes} bytes")
                given = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.headers}
                return Answer(answer.status, given, bytes(found))
        except httpcore2.TimeoutException as error:
            raise NoAnswer(f"no whole reply within {timeout_s:g} s") from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ProxyError, OSError) as error:
            raise NoAnswer(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


def _target(address: str) -> tuple[httpcore2.URL, str]:
    """Return an address in the form of the library, and the name of its host for the head of a request."""
    parts = urlsplit(address)
    name = parts.hostname or ""
    try:
        host = name if ":" in name else name.encode("idna").decode()
    except UnicodeError as error:
        raise NoAnswer(f"{name} is no name of a machine") from error
    target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    url = httpcore2.URL(scheme=parts.scheme.encode(), host=host.encode(), port=parts.port, target=target.encode())
    shown_host = f"[{host}]" if ":" in host else host
    return url, shown_host if parts.port is None else f"{shown_host}:{parts.port}"


def _proxy(address: str) -> httpcore2.Proxy:
    parts = urlsplit(address)
    auth = (unquote(parts.username).encode(), unquote(parts.password or "").encode()) if parts.username else None
    return httpcore2.Proxy(shown(address), auth=auth)


class _Limit(threading.local):
    """The end of the time of the request that a thread sends: a library's own limits are for each read."""

    until = 0.0

    def left(self, expired: type[Exception]) -> float:
        """Return the seconds that are left."""
        if (left := self.until - time.monotonic()) <= 0:
            raise expired("the time is over")
        return left


class _Network(httpcore2.SyncBackend):
    def __init__(self, limit: _Limit) -> None:
        self._limit = limit

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        left = self._limit.left(httpcore2.ConnectTimeout)
        return _Stream(super().connect_tcp(host, port, left, local_address, socket_options), self._limit)


class _Stream(httpcore2.NetworkStream):
    def __init__(self, inner: httpcore2.NetworkStream, limit: _Limit) -> None:
        self._inner, self._limit = inner, limit

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        return self._inner.read(max_bytes, self._limit.left(httpcore2.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._inner.write(buffer, self._limit.left(httpcore2.WriteTimeout))

    def close(self) -> None:
        with suppress(OSError):
            self._inner.close()

    def start_tls(
        self,
        ssl_context: SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore2.NetworkStream:
        left = self._limit.left(httpcore2.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left), self._limit)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
