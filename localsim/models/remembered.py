"""Small JSON files: sidecars of models, and facts kept in the cache folder that are slow to find out again."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from localsim import paths


def read_json(path: Path) -> Any:
    """The value in a JSON file; None where the file is missing or cannot be read as JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # a RecursionError means brackets nested too deep
        return None


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; {} where the file holds none."""
    data = read_json(path)
    return data if isinstance(data, dict) else {}


def recall(name: str) -> Any:
    """The value last remembered under a name; None where there is none."""
    return read_json(_file(name))


def recall_object(name: str) -> dict[str, Any]:
    """The object last remembered under a name; {} where there is none."""
    return read_object(_file(name))


def remember(name: str, value: Any) -> None:
    """Keep a value for later processes. A cache that cannot be written only costs time."""
    with suppress(OSError):
        _file(name).parent.mkdir(parents=True, exist_ok=True)
        _file(name).write_text(json.dumps(value, indent=1), encoding="utf-8")


def _file(name: str) -> Path:
    return paths.cache_folder() / f"{name}.json"
