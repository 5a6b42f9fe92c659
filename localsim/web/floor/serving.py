"""The address at which a floor is served, as its ledger keeps it."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import TypeVar

from localsim.machine import PORT
from localsim.web.floor.ledger import Doors, Ledger
from localsim.web.serve import Address, listen

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
