"""sha256 of model files, remembered by path, size and time of change, because reading a model takes seconds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from localsim.models.remembered import recall_object, remember

_MEMORY = "checksums"
BLOCK = 1 << 20
"""Bytes read at a time."""


def blocks_of(path: Path, size: int = BLOCK) -> Iterator[bytes]:
    """Yield a file in blocks of so many bytes."""
    with path.open("rb") as file:
        while block := file.read(size):
            yield block


def checksum(path: Path) -> str:
    """The sha256 of a file in hex, read from memory unless the file has changed since."""
    state = path.stat()
    key = f"{path.resolve()}|{state.st_size}|{state.st_mtime_ns}"
    known: dict[str, str] = recall_object(_MEMORY)
    if key not in known:
        with path.open("rb") as file:
            known[key] = hashlib.file_digest(file, "sha256").hexdigest()
        remember(_MEMORY, known)
    return known[key]


def forget(path: Path) -> None:
    """Read every byte the next time that the checksum of this file is asked for."""
    prefix = f"{path.resolve()}|"
    remember(_MEMORY, {key: value for key, value in recall_object(_MEMORY).items() if not key.startswith(prefix)})
