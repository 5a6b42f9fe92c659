"""Starting a server: where it listens, who may reach it, what is printed."""

from __future__ import annotations

import ipaddress
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass

import uvicorn

from localsim.errors import BackendUnavailable, InvalidInput
from localsim.store.database import Store
from localsim.web.app import Site, create_app
from localsim.web.guard import Rules, hosts_of

HOST, PORT = "127.0.0.1", 7580
_TRIED = 20
"""Ports after the usual one, where that is taken."""


@dataclass(frozen=True)
class Place:
    """Where a server listens."""

    host: str = HOST
    port: int = PORT
    fixed: bool = False
    """Whether the port was asked for; otherwise a taken one is passed over."""


def serve(
    place: Place,
    store: Store,
    model: str,
    parts: frozenset[str],
    path: str,
    say: Callable[[str], None],
    *,
    open_browser: bool,
) -> None:
    """Serve until Ctrl-C. On a network every visitor needs the token that is printed. Raises BackendUnavailable."""
    listening = _listen(place)
    port = int(listening.getsockname()[1])
    access = None if is_loopback(place.host) else secrets.token_urlsafe(12)
    app = create_app(Site(store, Rules(hosts_of(_shown(place.host), port), access), model, parts))
    address = address_of(f"{_shown(place.host)}:{port}", path, access)
    say(f"localsim is at {address}  (Ctrl-C ends it)")
    if access:
        say("Everybody on this network who has this address can take part.")
    if open_browser:
        threading.Timer(0.7, webbrowser.open, [address]).start()
    config = uvicorn.Config(app, log_level="warning", server_header=False, proxy_headers=False)
    uvicorn.Server(config).run(sockets=[listening])


def address_of(host: str, path: str, access: str | None) -> str:
    """What visitors open; with the access token where there is one."""
    if access is None:
        return f"http://{host}{path}"
    return f"http://{host}{path}{'&' if '?' in path else '?'}token={access}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _shown(host: str) -> str:
    """How the host stands in an address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    return f"[{host}]" if address.version == 6 else host


def _listen(place: Place) -> socket.socket:
    last: OSError | None = None
    for port in [place.port] if place.fixed else range(place.port, place.port + _TRIED):
        family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((place.host, port))
            _refuse_everywhere(listening, place.host)
            listening.listen(128)
            return listening
        except socket.gaierror as error:
            listening.close()
            raise InvalidInput(f"--host {place.host!r} is no address of this machine: {error.strerror}") from error
        except OSError as error:
            listening.close()
            last = error
    assert last is not None
    raise BackendUnavailable(
        f"cannot listen at {place.host}:{place.port}: {last.strerror}", hint="choose another with --port"
    ) from last


def _refuse_everywhere(listening: socket.socket, host: str) -> None:
    if ipaddress.ip_address(listening.getsockname()[0].partition("%")[0]).is_unspecified:
        listening.close()
        raise InvalidInput(
            f"--host {host!r} means every network at once", hint="give the address of this machine on the lab's network"
        )
