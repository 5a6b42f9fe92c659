"""Registries of the user's own: a `models.toml` in a model folder, with the same keys as the one that ships."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from localsim.conversation.wording.layouts import DEFAULT, LAYOUTS
from localsim.errors import InvalidInput, suggest
from localsim.models.entries import NUMBER, ModelEntry, entry_of

FILE = "models.toml"
_HINT = "docs/models.md has an example"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_PINNED = re.compile(r"[A-Za-z0-9][\w.-]*==[\w.!+]+")
_HUB = re.compile(r"[\w.-]+/[\w.-]+/[\w./-]+\.gguf")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_KEYS = [field.name for field in fields(ModelEntry) if field.name not in ("name", "listed_in")]
_NEEDED = [field.name for field in fields(ModelEntry) if field.default is MISSING and field.name != "name"]
_TYPES = {"bytes": (int, "a whole number"), "ram_mb": (int, "a whole number"), "parts": (list, "a list")}
_TEXT = (str, "a text in quotation marks")

Problem = tuple[str, str]
"""The key with the problem, or '' for the whole table, and what is wrong."""


def read(file: Path, names: frozenset[str], files: frozenset[str]) -> tuple[ModelEntry, ...]:
    """The models of a registry; `names` and `files` belong to the registry that ships.

    Raises InvalidInput with file and line.
    """
    state = file.stat()
    return _read(file, state.st_mtime_ns, state.st_size, names, files)


@lru_cache(maxsize=16)
def _read(file: Path, _changed_ns: int, _bytes: int, names: frozenset[str], files: frozenset[str]) -> tuple[Any, ...]:
    try:
        text = file.read_text(encoding="utf-8")
        tables = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot be read: {error}", where=str(file), hint=_HINT) from error
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        place = f"{file}:{line[1] if line else len(text.splitlines())}"
        raise InvalidInput(f"not valid TOML: {error}", where=place, hint=_HINT) from error
    lines = text.splitlines()
    known = tables.get("models", {})
    other = next((key for key in tables if key != "models"), None if isinstance(known, dict) else "models")
    if other is not None:
        place = _place(file, lines, "", other)
        raise InvalidInput(f"{other!r} is no table [models.NAME]", where=place, hint=_HINT)
    for name, table in known.items():
        problem = next(_in_table(name, table, names, files), None)
        if problem is not None:
            place = _place(file, lines, name, problem[0])
            raise InvalidInput(f"model {name}: {problem[1]}", where=place, hint=_HINT)
        files |= {table["file"]}
    return tuple(entry_of(name, _beside(file, table), listed_in=str(file)) for name, table in known.items())


def _beside(file: Path, table: Mapping[str, Any]) -> Mapping[str, Any]:
    """A table whose adapter is a path; a registry names the adapter beside it."""
    return {**table, "adapter": str(file.parent / table["adapter"])} if "adapter" in table else table


def _place(file: Path, lines: list[str], name: str, key: str) -> str:
    """`file:line` of a key in the table of a model, or of the table; the file alone where neither has a line."""
    found, inside = 0, not name
    for number, line in enumerate(lines, start=1):
        if line.lstrip().startswith("["):
            try:
                header = tomllib.loads(line)
            except tomllib.TOMLDecodeError:  # a line of a list
                continue
            inside = name in header.get("models", {}) if name else key in header
            found = number if inside and not found else found
        elif inside and key and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=.]", line):
            return f"{file}:{number}"
    return f"{file}:{found}" if found else str(file)


# ---- checks --------------------------------------------------------------------------------------------------------


def _in_table(name: str, table: Any, names: frozenset[str], files: frozenset[str]) -> Iterator[Problem]:
    """The problems of a table, lazily: a check may rely on those before it."""
    if not isinstance(table, dict):
        yield "", "is no table [models.NAME]"
    if not _NAME.fullmatch(name):
        yield "", "a name has letters, digits, dots, hyphens and underscores, and begins with a letter or digit"
    if name in names:
        yield "", "localsim's own registry has this name; choose another"
    yield from problems(table)
    if table["file"] in files:
        yield "file", f"another model has the file {table['file']}"


def problems(table: Mapping[str, Any]) -> Iterator[Problem]:
    """The problems of the facts about one model, lazily: a check may rely on those before it."""
    for key in table:
        if key not in _KEYS:
            yield key, f"unknown key {key!r}{suggest(key, _KEYS, inline=True)}"
    for key in _NEEDED:
        if key not in table:
            yield key, f"the key {key!r} is missing"
    for key, value in table.items():
        kind, words = _TYPES.get(key, _TEXT)
        if type(value) is not kind:
            yield key, f"{key} is {words}"
    if table["kind"] not in ("chat", "embedding"):
        yield "kind", "kind is chat or embedding"
    if table.get("layout", DEFAULT) not in LAYOUTS:
        yield "layout", f"layout is one of {', '.join(LAYOUTS)}"
    if not _is_inside(table["file"]):
        yield "file", "file is a path inside the model folder that ends in .gguf or .safetensors"
    if table["bytes"] <= 0:
        yield "bytes", "bytes is more than 0"
    yield from _of_sources(table)


def _is_inside(file: str) -> bool:
    path = PurePosixPath(file)
    outside = path.is_absolute() or ".." in path.parts or "\\" in file or ":" in file
    return not outside and path.suffix in (".gguf", ".safetensors")


def _of_sources(table: Mapping[str, Any]) -> Iterator[Problem]:
    if not any(table.get(key) for key in ("package", "hub", "source")):
        yield "", "it has no source: the key package, hub or source is missing"
    if table.get("source") and not table.get("type"):
        yield "source", "the key 'type' is missing, such as Q8_0"
    if "sha256" in table and not _SHA256.fullmatch(table["sha256"]):
        yield "sha256", "sha256 is 64 hexadecimal digits in lower case"
    if "hub" in table and not _HUB.fullmatch(table["hub"]):
        yield "hub", "hub is owner/repo/file.gguf"
    if "package" in table:
        yield from _of_package(table)
    elif "parts" in table or "member" in table:
        yield "", "the key 'package' is missing"


def _of_package(table: Mapping[str, Any]) -> Iterator[Problem]:
    for key in ("member", "sha256"):
        if not table.get(key):
            yield key, f"the key {key!r} is missing"
    name = table["package"].partition("==")[0]
    if not _PINNED.fullmatch(table["package"].replace(NUMBER, "1")):
        yield "package", "package is NAME==VERSION"
    if (NUMBER in name) != ("parts" in table):
        yield "package", f"a model in parts has the key parts and {NUMBER} in the name of its package"
    for number, part in enumerate(table.get("parts", []), start=1):
        if not isinstance(part, dict) or part.keys() != {"bytes", "sha256"}:
            yield "parts", f"part {number} needs bytes and sha256, and no other key"
        if type(part["bytes"]) is not int or part["bytes"] <= 0:
            yield "parts", f"part {number}: bytes is a whole number above 0"
        if not isinstance(part["sha256"], str) or not _SHA256.fullmatch(part["sha256"]):
            yield "parts", f"part {number}: sha256 is 64 hexadecimal digits in lower case"
    together = sum(part["bytes"] for part in table.get("parts", []))
    if "parts" in table and together != table["bytes"]:
        yield "bytes", f"bytes is {table['bytes']}, but the parts have {together} together"
