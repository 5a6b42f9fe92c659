"""Starts a server: its address, its token, and the line that is printed."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from localsim.errors import BackendUnavailable, InvalidInput
from localsim.machine import PORT
from localsim.store.database import Store
from localsim.web.app import Site, create_app
from localsim.web.floor.ledger import Doors, Ledger
from localsim.web.guard import HOST, Access, address_of, hosts_of, is_loopback, shown
from localsim.web.phrases.table import find

_REQUEST_S = 25.0
"""Seconds in which a request must have arrived; `guard` answers one whose body alone takes too long."""
_MOST_WAITING = 100
"""Connections that may wait for a whole request; one more ends the oldest of them."""
_TRIED = 20
"""Ports to try from the usual one on, where that is taken."""


@dataclass(frozen=True)
class Address:
    """The address that a server listens on."""

    host: str = HOST
    port: int = PORT
    fixed: bool = False
    """True where the caller chose the port; otherwise the server skips a port that is taken."""


def serve(
    store: Store,
    place: Address,
    path: str,
    say: Callable[[str], None],
    *,
    open_browser: bool,
    language: str = "en",
    **content: Any,
) -> None:
    """Serve until Ctrl-C. On a network every visitor needs the token that is printed.

    `language` is that of the pages of players, by the name that `phrases.table.find` knows; `content` are more fields
    of `Site`. Raises BackendUnavailable where no port is free, InvalidInput where `place.host` is not one address of
    this machine.
    """
    phrases = find(language)
    listening = listen(place)
    port = int(listening.getsockname()[1])
    access = None if is_loopback(place.host) else secrets.token_urlsafe(12)
    rules = Access(hosts_of(shown(place.host)), access)
    app = create_app(Site(store, rules, phrases=phrases, **content))
    address = address_of(f"{shown(place.host)}:{port}", path, access)
    say(f"localsim is at {address}  (Ctrl-C stops it)")
    if access:
        say("Everyone on this network who has this address can take part.")
    run_app(app, listening, address if open_browser else "")


def run_app(app: Starlette, listening: socket.socket, opened: str = "") -> None:
    """Serve an application until Ctrl-C or `app.state.stop()`; open the address `opened` in a browser, if given."""
    if opened:
        threading.Timer(0.7, webbrowser.open, [opened]).start()
    config = uvicorn.Config(app, http=bounded(), log_level="warning", server_header=False, proxy_headers=False)
    server = uvicorn.Server(config)
    app.state.stop = lambda: setattr(server, "should_exit", True)
    server.run(sockets=[listening])


def bounded() -> type[H11Protocol]:
    """Return the protocol of a server's connections, of which few wait for a whole request, and none for long.

    Uvicorn waits without end for a request whose head has begun, so one visitor could take every connection.
    """
    waiting: dict[H11Protocol, asyncio.TimerHandle] = {}

    class Connection(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._note()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._note()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            super().connection_lost(exc)

        def _note(self) -> None:
            cycle = self.cycle
            if cycle is not None and not cycle.more_body and not cycle.response_complete:
                self._forget()
            elif self not in waiting:
                waiting[self] = self.loop.call_later(_REQUEST_S, self.transport.abort)
                if len(waiting) > _MOST_WAITING:
                    oldest = next(iter(waiting))
                    waiting.pop(oldest).cancel()
                    oldest.transport.abort()

        def _forget(self) -> None:
            if self in waiting:
                waiting.pop(self).cancel()

    return Connection


def listen(place: Address) -> socket.socket:
    """Return a socket that listens at a place. Raises BackendUnavailable or InvalidInput."""
    check_host(place.host)
    last: OSError | None = None
    for port in [place.port] if place.fixed else range(place.port, place.port + _TRIED):
        family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((place.host, port))
            listening.listen(128)
            return listening
        except OSError as error:
            listening.close()
            if error.errno == errno.EADDRNOTAVAIL:
                raise _foreign(place.host, error.strerror) from error
            last = error
    assert last is not None
    raise BackendUnavailable(
        f"cannot listen at {place.host}:{place.port}: {last.strerror}", hint="choose another port with --port"
    ) from last


def check_host(host: str) -> None:
    """Raise InvalidInput where `host` is no address at all, or 0.0.0.0 and its like in any spelling."""
    try:
        names = [str(info[4][0]).partition("%")[0] for info in socket.getaddrinfo(host or "0.0.0.0", None)]
    except (OSError, UnicodeError) as error:
        raise _foreign(host, getattr(error, "strerror", None)) from error
    addresses = [ipaddress.ip_address(name) for name in names]
    if any((getattr(address, "ipv4_mapped", None) or address).is_unspecified for address in addresses):
        raise InvalidInput(
            f"--host {host!r} means every network at once",
            hint="give the address of this machine on one network, such as 192.168.1.20",
        )


def _foreign(host: str, reason: str | None) -> InvalidInput:
    return InvalidInput(
        f"--host {host!r} is not an address of this machine: {reason or 'no such name'}",
        hint="give one of the addresses of this machine",
    )


AnyOpening = TypeVar("AnyOpening", bound=Doors)


def settled(
    ledger: Ledger, opening: AnyOpening, host: str, port: int | None, *, continued: bool
) -> tuple[AnyOpening, socket.socket, bool]:
    """Listen, and note in the ledger how it begins, or that it goes on at another address (the last value is true)."""
    listening = listen(Address(host, port or opening.port or PORT, fixed=port is not None or continued))
    moved = continued and host != opening.host
    opening = replace(opening, port=int(listening.getsockname()[1]), host=host)
    if not continued:
        ledger.begin(opening)
    elif moved:
        ledger.append({"event": "moved", "host": host})
    return opening, listening, moved
