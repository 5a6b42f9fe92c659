"""How files of models reach a worker: they are there under the same name or path, or the driver sends them.

A sent file is kept in the worker's cache folder by its sha256, so the next run finds it there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock

from localsim import paths
from localsim.backends.open import is_file
from localsim.errors import LocalsimError, ModelMissing
from localsim.models.checksums import checksum
from localsim.models.registry import ModelFile, check_space, resolve, split_engine
from localsim.runs.cluster.messages import Found, Orders, Part, Wanted

PIECE = 32 << 20
"""Bytes of a file that are sent at a time."""


def wanted_here(models: Iterable[str]) -> tuple[dict[str, Wanted], dict[str, tuple[Path, ...]]]:
    """Return the files that the driver has for models, by name: their description, and their paths."""
    wanted: dict[str, Wanted] = {}
    places: dict[str, tuple[Path, ...]] = {}
    for name in models:
        if not is_file(name):
            continue
        try:
            file = resolve(name)
        except ModelMissing:
            continue
        places[name] = (file.path, *([file.adapter] if file.adapter else []))
        parts = tuple(Part(path.name, checksum(path), path.stat().st_size) for path in places[name])
        wanted[name] = Wanted(file.sha256, file.name, parts)
    return wanted, places


def look(orders: Orders) -> Found:
    """Return which models of the orders are on this machine."""
    files, missing = _search(orders)
    return Found({name: file.sha256 for name, file in files.items()}, missing)


def files_here(orders: Orders) -> Mapping[str, ModelFile]:
    """Return the files of all models. Raises ModelMissing."""
    files, missing = _search(orders)
    for name, reason in missing.items():
        raise ModelMissing(reason, hint=f"localsim models pull {name}")
    return files


def _search(orders: Orders) -> tuple[dict[str, ModelFile], dict[str, str]]:
    files: dict[str, ModelFile] = {}
    missing: dict[str, str] = {}
    for name in orders.models:
        if not is_file(name):
            continue
        wanted = orders.wanted.get(name)
        try:
            file = resolve(name)
            if wanted is not None and file.sha256 != wanted.sha256:
                raise ModelMissing(f"{name} has checksum {file.sha256[:12]}..., expected {wanted.sha256[:12]}...")
            files[name] = file
        except LocalsimError as error:
            kept = [_place(part) for part in wanted.parts] if wanted else []
            if wanted and kept and all(path.is_file() for path in kept):
                adapter = kept[1] if len(kept) > 1 else None
                files[name] = ModelFile(wanted.title, kept[0], wanted.sha256, adapter, split_engine(name)[0])
            else:
                missing[name] = str(error)
    return files, missing


def _place(part: Part) -> Path:
    """Return the path of a sent file; it keeps its name, which is stored with every text."""
    return paths.cache_folder() / "sent" / part.sha256 / Path(part.name).name


def receive(part: Part, pieces: Sequence[Any]) -> str:
    """Write a sent file and check it; return the reason if that failed, else ''."""
    path = _place(part)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(str(path) + ".lock"):  # two workers of one machine may get it at the same time
            if path.is_file():
                return ""
            check_space(path.parent, part.name, part.bytes)
            digest, half = hashlib.sha256(), path.with_name(f"{path.name}.part")
            with half.open("wb") as file:
                for piece in pieces:
                    digest.update(piece)
                    file.write(piece)
            if digest.hexdigest() != part.sha256:
                half.unlink()
                return f"{part.name} arrived with checksum {digest.hexdigest()[:12]}..., not {part.sha256[:12]}..."
            half.replace(path)
    except LocalsimError as error:
        return str(error)
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""
