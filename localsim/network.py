"""The way to another address: directly, or through a proxy that the environment names.

An address of this machine is always reached directly: a prompt must not leave it because of a setting of the shell.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import urllib.request
from dataclasses import dataclass
from importlib.util import find_spec
from urllib.parse import urlsplit

from localsim.errors import BackendUnavailable

_SCHEMES = ("http", "https", "socks5", "socks5h")


@dataclass(frozen=True)
class Route:
    """The way to one address."""

    host: str
    proxy: str = ""
    """The address of a proxy with its password; '' for none."""
    variable: str = ""
    """Where the proxy is named."""

    @property
    def told(self) -> str:
        """What a user has to know before anything is sent; '' where nothing stands between."""
        if not self.proxy:
            return ""
        return f"requests to {self.host} go through the proxy {shown(self.proxy)} ({self.variable})"


def route_to(address: str) -> Route:
    """Return the way to an address. Raises BackendUnavailable for a proxy that cannot be used."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    named = urllib.request.getproxies()
    proxy = named.get(parts.scheme) or named.get("all") or ""
    if not proxy or is_here(host) or urllib.request.proxy_bypass(parts.netloc.rpartition("@")[2]):
        return Route(host)
    variable = _variable(parts.scheme)
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    scheme = urlsplit(proxy).scheme.lower()
    without = f"unset {variable}, or list {host} in no_proxy"
    if scheme not in _SCHEMES:
        raise BackendUnavailable(f"localsim cannot use the proxy {shown(proxy)} ({variable})", hint=without)
    if scheme.startswith("socks") and find_spec("socksio") is None:
        raise BackendUnavailable(
            f"localsim cannot use the SOCKS proxy {shown(proxy)} ({variable}): the package socksio is not installed",
            hint=f"{without}, or: pip install socksio",
        )
    return Route(host, proxy, variable)


def _variable(scheme: str) -> str:
    names = (f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY")
    return next((name for name in names if os.environ.get(name)), "settings of this system")


def proxies() -> list[str]:
    """The proxies that the environment names, for people."""
    return [f"{name} {shown(proxy)}" for name, proxy in sorted(urllib.request.getproxies().items()) if name != "no"]


def usable() -> bool:
    """Return True if localsim can use all of them."""
    schemes = [proxy.partition("://")[0].lower() for name, proxy in urllib.request.getproxies().items() if name != "no"]
    return find_spec("socksio") is not None or not any(scheme.startswith("socks") for scheme in schemes)


def shown(address: str) -> str:
    """Return an address without a user's name and password."""
    scheme, mark, rest = address.rpartition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"


def is_here(host: str) -> bool:
    """Return True if a name or an address, in any spelling, means this machine alone."""
    name = host.strip("[]").rstrip(".").casefold()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        found = {str(each[4][0]) for each in socket.getaddrinfo(name, None)}
    except (OSError, UnicodeError):
        return False
    return bool(found) and all(map(_is_own, found))


def _is_own(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    plain = getattr(address, "ipv4_mapped", None) or address
    if plain.is_loopback or plain.is_unspecified:
        return True
    import psutil

    return any(str(plain) == each.address.partition("%")[0] for name in psutil.net_if_addrs().values() for each in name)


def direct(address: str = "") -> dict[str, str]:
    """Return the environment for another program, in which no proxy stands before this machine or a local `address`."""
    here = ["localhost", "127.0.0.1", "::1", "0.0.0.0"]
    host = urlsplit(address).hostname or ""
    named = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    spared = ",".join(filter(None, [named, *here, host if is_here(host) else ""]))
    return {**os.environ, "no_proxy": spared, "NO_PROXY": spared}
