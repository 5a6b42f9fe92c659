"""The way to another address: directly, or through a proxy that the environment names.

An address of this machine is always reached directly: a prompt must not leave it because of a setting of the shell.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import urllib.request
from dataclasses import dataclass
from importlib.util import find_spec
from urllib.parse import urlsplit

from localsim.errors import BackendUnavailable

_SCHEMES = ("http", "https", "socks5", "socks5h")
_PORTS = {"http": 80, "https": 443}
_OWN_NAMES = frozenset({"localhost", "localhost.localdomain", "localhost6", "ip6-localhost", "ip6-loopback"})
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


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
    proxy = (named.get(parts.scheme) or named.get("all") or "").strip()
    if not proxy or is_here(host) or _is_spared(host, parts.port or _PORTS.get(parts.scheme, 0), named.get("no", "")):
        return Route(host)
    variable = _variable(parts.scheme)
    proxy = proxy if "://" in proxy else f"http://{proxy.removeprefix('//')}"
    scheme = proxy.partition("://")[0].lower()
    without = f"unset {variable}, or list {host} in no_proxy"
    usable = _usable(proxy) if scheme in _SCHEMES else ""
    if not usable:
        raise BackendUnavailable(f"localsim cannot use the proxy {shown(proxy)} ({variable})", hint=without)
    if scheme.startswith("socks") and find_spec("socksio") is None:
        raise BackendUnavailable(
            f"localsim cannot use the SOCKS proxy {shown(proxy)} ({variable}): the package socksio is not installed",
            hint=f"{without}, or: pip install socksio",
        )
    return Route(host, usable, variable)


def _is_spared(host: str, port: int, spared: str) -> bool:
    """Return True if `no_proxy` lists a host: by its name or the end of it, its address or its network."""
    if not urllib.request.getproxies_environment() and urllib.request.proxy_bypass(host):
        return True  # by the settings of the system
    name, address = host.rstrip(".").casefold(), _address(host)
    for entry in re.split(r"[\s,]+", spared.casefold()):
        bare, _, only = entry.rpartition(":") if re.search(r"(?:\]|^[^:]*):\d+$", entry) else (entry, "", str(port))
        bare = bare.strip("[]").rstrip(".")
        if not bare or only != str(port):
            continue
        if bare == "*" or name == bare or address is not None and _holds(bare, address):
            return True
        if address is None and name.endswith("." + bare.removeprefix("*").removeprefix(".")):
            return True
        if bare.endswith(".*") and address is not None and str(address).startswith(bare[:-1]):
            return True
    return False


def _holds(entry: str, address: _Address) -> bool:
    try:
        return address in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False


def _address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None


def _usable(proxy: str) -> str:
    """Return the address of a proxy in ASCII; '' if it names no machine."""
    try:
        parts = urlsplit(proxy)
        port, name = parts.port, parts.hostname or ""
        name = f"[{name}]" if ":" in name else name.encode("idna").decode()
    except (ValueError, UnicodeError):
        return ""
    if not name or port == 0 or not re.fullmatch(r"[\w.:%\[\]-]+", name, re.ASCII):
        return ""
    user = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    return f"{parts.scheme}://{user}{name}" + (f":{port}" if port else "")


def _variable(scheme: str) -> str:
    """Return the name of the variable that names the proxy, as it is spelled."""
    wanted = (f"{scheme}_proxy", "all_proxy")
    names = sorted(name for name, value in os.environ.items() if value and name.lower() in wanted)
    found = sorted(names, key=lambda name: (wanted.index(name.lower()), not name.islower()))
    return found[0] if found else "settings of this system"


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
    name = name.partition("%")[0] if ":" in name else name
    if name in _OWN_NAMES or name.endswith(".localhost"):
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
