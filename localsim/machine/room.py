"""`localsim doctor --room`: whether phones on the room's network can reach this computer; and QR codes."""

from __future__ import annotations

import contextlib
import http.server
import io
import ipaddress
import platform
import shutil
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from localsim import paths
from localsim.errors import BackendUnavailable
from localsim.machine import PORT
from localsim.machine.doctor import Finding

_TIMEOUT_S = 3.0
_VIRTUAL = ("docker", "br-", "veth", "virbr", "vmnet", "vboxnet", "tun", "tap", "utun", "tailscale", "zt", "lo")
"""Names with which interfaces begin that no phone in the room can reach."""
_PAGE = (
    "<!doctype html><html lang=en><meta name=viewport content='width=device-width'><title>localsim</title>"
    "<h1>This phone reaches the laptop</h1><p>The class can join from here. You can close this page.</p>"
)


def addresses() -> list[tuple[str, str]]:
    """Interface and IPv4 address of each network that phones may share with this computer, likeliest first."""
    up = {name for name, stats in psutil.net_if_stats().items() if stats.isup}
    found = [
        (name, each.address)
        for name, entries in psutil.net_if_addrs().items()
        for each in entries
        if name in up and each.family == socket.AF_INET and not _hidden(each.address)
    ]
    return sorted(found, key=lambda pair: (pair[0].startswith(_VIRTUAL), pair))


def _hidden(address: str) -> bool:
    parsed = ipaddress.ip_address(address)
    return parsed.is_loopback or parsed.is_link_local


def diagnose_room(host: str | None = None, port: int = PORT) -> list[Finding]:
    """Whether this computer answers at `host`, or at each of its addresses on a network."""
    found = [("given", host)] if host else addresses()
    if not found:
        return [Finding("network", "this computer has no address on a network", ok=False, advice=_NO_NETWORK)]
    findings = []
    for name, address in found:
        virtual = " (a virtual network: phones cannot reach it)" if name.startswith(_VIRTUAL) else ""
        findings.append(Finding("address", f"{address} on {name}{virtual}" if host is None else address))
        findings.append(_reached(address, port))
    return [*findings, _firewall(port)]


_NO_NETWORK = "join the room's wireless network, or let your phone share its connection, and try again"


def _reached(address: str, port: int) -> Finding:
    try:
        with _page_at(address, port):
            # No proxy: it would ask another computer for this address.
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            opener.open(f"http://{address}:{port}/", timeout=_TIMEOUT_S).read()
    except OSError as error:
        reason = getattr(error, "strerror", None) or str(error)
        other = f"another server may use the port: try localsim doctor --room --port {port + 1}"
        advice = f"{other}, or check that {address} is up"
        return Finding(f"port {port}", f"{address}: {reason}", ok=False, advice=advice)
    return Finding(f"port {port}", f"free, and this computer reaches itself at http://{address}:{port}/")


def _firewall(port: int) -> Finding:
    """Say which firewall may keep phones out; whether it does can be seen from a phone only."""
    system = platform.system()
    if system == "Darwin":
        text = "macOS asks whether Python may accept connections: answer Allow"
    elif system == "Windows":
        text = "Windows asks whether Python may use private networks: answer Allow"
    elif _ufw():
        text = f"ufw is on; sudo ufw allow {port}/tcp lets phones in, and sudo ufw delete allow {port}/tcp undoes it"
    elif shutil.which("firewall-cmd"):
        text = f"firewalld may be on; sudo firewall-cmd --add-port={port}/tcp lets phones in until the next restart"
    else:
        text = "no known firewall was found on this computer"
    return Finding("firewall", f"{text}; some guest networks keep phones apart from laptops whatever you do")


def _ufw() -> bool:
    try:
        return "ENABLED=yes" in Path("/etc/ufw/ufw.conf").read_text(encoding="utf-8")
    except OSError:
        return False


class _Page(http.server.BaseHTTPRequestHandler):
    """Answers every address with one page, and tells who asked."""

    heard: Callable[[str], None] = staticmethod(lambda _: None)

    def do_GET(self) -> None:
        """Send the page."""
        data = _PAGE.encode()
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.heard(str(self.client_address[0]))

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextlib.contextmanager
def _page_at(address: str, port: int, heard: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Serve the test page meanwhile. Raises OSError if the port is taken or the address is not of this computer."""
    handler = type("_Heard", (_Page,), {"heard": staticmethod(heard)})
    with http.server.ThreadingHTTPServer((address, port), handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


def serve_test_page(host: str, port: int, say: Callable[[str], None], wait: Callable[[], object]) -> None:
    """Serve the test page until `wait` returns; each address that opens it is said once.

    Raises BackendUnavailable if the port is taken or the address is not of this computer.
    """
    heard: set[str] = set()

    def told(address: str) -> None:
        if address not in heard:
            heard.add(address)
            say(f"opened from {address}" + (" (this computer)" if address == host else ": a phone reaches this laptop"))

    with contextlib.ExitStack() as ends:
        try:
            ends.enter_context(_page_at(host, port, told))
        except OSError as error:
            hint = "localsim doctor --room lists the addresses"
            raise BackendUnavailable(f"cannot listen at {host}:{port}: {error.strerror}", hint=hint) from error
        wait()


# ---- QR codes ------------------------------------------------------------------------------------------------------


def qr_svg(text: str) -> str:
    """A QR code as SVG for a page: dark on white with its quiet zone, whatever the colours of the page."""
    import segno

    out = io.BytesIO()
    segno.make(text, error="m", micro=False).save(
        out, kind="svg", xmldecl=False, svgns=True, border=4, dark="#000", light="#fff", omitsize=True, title="QR"
    )
    return out.getvalue().decode().strip()


def qr_text(text: str) -> str:
    """A QR code for a terminal. Raises InvalidInput if the package for it is not installed."""
    with paths.needing("a QR code needs", "web"):
        import segno
    out = io.StringIO()
    segno.make(text, error="m", micro=False).terminal(out, compact=True, border=2)
    return out.getvalue()
