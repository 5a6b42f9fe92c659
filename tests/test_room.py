"""`doctor --room`: a laptop is checked before a class, and the codes that phones scan."""

from __future__ import annotations

import socket

import httpx2

from localsim.machine import room
from tests.test_class import free_port


def test_the_room_is_checked_and_the_test_page_tells_who_opened_it() -> None:
    port = free_port()
    findings = room.diagnose_room("127.0.0.1", port)
    assert all(finding.ok for finding in findings) and any("reaches itself" in finding.value for finding in findings)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        bad = [each for each in room.diagnose_room("127.0.0.1", taken.getsockname()[1]) if not each.ok]
        assert bad and "--port" in bad[0].advice
    told: list[str] = []

    def visit() -> None:
        assert "reaches the laptop" in httpx2.get(f"http://127.0.0.1:{port}/any").text
        httpx2.get(f"http://127.0.0.1:{port}/")

    room.serve_test_page("127.0.0.1", port, told.append, visit)
    assert told == ["opened from 127.0.0.1 (this computer)"]


def test_the_codes_can_be_drawn() -> None:
    assert room.qr_svg("http://127.0.0.1:7580/class").startswith("<svg") and "style=" not in room.qr_svg("x")
    assert len(room.qr_text("http://127.0.0.1:7580/class").splitlines()) > 10
