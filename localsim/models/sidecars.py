"""Sidecars: the file beside a derived or fetched model that records its origin and checksum."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from localsim.models.checksums import checksum
from localsim.models.entries import ModelEntry
from localsim.models.remembered import read_object

SIDECAR = ".json"
_TEXTS = frozenset({"name", "source", "source_sha256", "type", "sha256"})


def sidecar_path(path: Path) -> Path:
    """The file beside a derived or fetched model that records its origin and checksum."""
    return path.with_name(path.name + SIDECAR)


def read_sidecar(path: Path) -> dict[str, Any]:
    """The sidecar of a model file; {} where there is none, or a damaged one."""
    data = read_object(sidecar_path(path))
    whole = isinstance(data.get("bytes"), int) and all(isinstance(data.get(key), str) for key in _TEXTS)
    return data if whole else {}


def write_sidecar(
    path: Path, *, name: str, source: str = "", source_sha256: str = "", type: str = "", **more: str
) -> None:
    """Record what a model file is, so that it is verified like any other model from now on."""
    data = {
        "name": name,
        "source": source,
        "source_sha256": source_sha256,
        "type": type,
        "sha256": checksum(path),
        "bytes": path.stat().st_size,
        **more,
    }
    sidecar_path(path).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def entry_of_sidecar(beside: Path) -> ModelEntry | None:
    """The model that a sidecar describes; None where the sidecar is damaged."""
    path = beside.with_name(beside.name.removesuffix(SIDECAR))
    data = read_sidecar(path)
    if not data:
        return None
    made = bool(data["source"])
    return ModelEntry(
        name=data["name"],
        kind="chat",
        title=f"{data['source']} as {data['type']}" if made else str(data.get("origin", "")),
        why="Made on this machine" if made else "Fetched by you",
        file=path.name,
        bytes=data["bytes"],
        licence=str(data.get("licence", "as its source")),
        source=data["source"],
        type=data["type"],
    )


def origin_of(path: Path) -> str:
    """The origin of a derived model, equal on every machine that makes it; '' for a model that was not derived.

    The bytes of a derived model may differ between machines. The same weights in another type have the same origin;
    with an adapter merged in, the adapter and the type belong to it.
    """
    made = read_sidecar(path)
    source = str(made.get("source_origin") or made.get("source_sha256", ""))
    return f"{source}+{made['adapter_sha256']} {made['type']}" if made.get("adapter_sha256") else source
