"""Models from outside the registry: a model hub, a web address, a path or a folder such as a USB stick.

Hub files go through huggingface_hub (it resumes; HF_ENDPOINT, HF_HUB_OFFLINE and HF_TOKEN are its own settings). A
file gets its final name only when its checksum is right; the checksum is then kept in a sidecar beside it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from localsim import paths
from localsim.errors import InvalidInput, ModelMissing
from localsim.models import registry, sidecars
from localsim.models.checksums import blocks_of, checksum
from localsim.models.entries import ModelEntry
from localsim.models.remembered import read_object
from localsim.network import direct, route_to

if TYPE_CHECKING:
    import httpx2

HUB = "hf:"
_STAGING = ".hub"
_MARGIN = 100_000_000
"""Bytes that stay free on a disk that a model is written to."""
Say = Callable[[str], None]
Confirm = Callable[[str], bool]
"""Asked with a licence before anything is fetched."""


@dataclass(frozen=True)
class Offer:
    """A file that could be fetched."""

    name: str
    file: str
    origin: str
    """hf:owner/repo/file, an address, or a path."""
    bytes: int | None = None
    sha256: str = ""
    """Empty where the source does not give one."""
    licence: str = "unknown"


def is_elsewhere(reference: str) -> bool:
    """True if a reference means a hub, an address or a path rather than a name of the registry."""
    return reference.startswith((HUB, "http://", "https://")) or registry.is_path(reference)


def fetch(reference: str, say: Say, confirm: Confirm, sha256: str = "") -> Path:
    """Fetch `hf:owner/repo/file.gguf`, a web address or a path into a model folder. Raises ModelMissing."""
    if reference.startswith(HUB):
        return _from_hub(reference, _stem_name(reference), say, confirm, sha256)
    if reference.startswith(("http://", "https://")):
        return _from_address(reference, say, confirm, sha256)
    return _from_path(Path(reference).expanduser(), say, sha256)


def fetch_entry(model: ModelEntry, say: Say, confirm: Confirm) -> Path:
    """Fetch a model of the registry from its hub."""
    return _from_hub(HUB + model.hub, model.name, say, confirm, model.sha256)


def _stem_name(reference: str) -> str:
    """The name of a fetched file: its file name without .gguf, in lower case."""
    return reference.rpartition("/")[2].removesuffix(".gguf").lower()


# ---- folders -------------------------------------------------------------------------------------------------------


def export(folder: Path, say: Say) -> list[Path]:
    """Copy every installed model, with sidecars, into a folder such as a USB stick's, for `pull --from`."""
    written = []
    for model in registry.entries():
        installed = registry.installed_path(model)
        if installed is None or not registry.is_whole(model, installed):
            continue
        beside = [installed, sidecars.sidecar_path(installed)]
        for source in sorted(installed.parent.rglob("*")) if "/" in model.file else beside:
            if source.is_file():
                target = folder / Path(model.file).parent / source.relative_to(installed.parent)
                target.parent.mkdir(parents=True, exist_ok=True)
                say(f"{model.name}: {target}")
                shutil.copyfile(source, target)
        written.append(folder / model.file)
    return written


def entry_in(folder: Path, name: str) -> ModelEntry:
    """The model that a sidecar in the folder names, else a model of the registry. Raises ModelMissing.

    A checksum of the registry decides about a file; no sidecar replaces it.
    """
    listed = next((model for model in registry.entries() if model.name == name and model.sha256), None)
    if listed is not None:
        return listed
    for beside in sorted(folder.rglob("*.gguf.json")):
        model = sidecars.entry_of_sidecar(beside)
        if model is not None and model.name == name and (beside.parent / model.file).is_file():
            return model
    return registry.entry(name)


def fetch_from(folder: Path, model: ModelEntry, say: Say) -> Path:
    """Copy a model out of a folder that `models export` wrote; no connection is opened."""
    name = Path(model.file).name
    source = next((path for path in sorted(folder.rglob(name)) if path.is_file()), None)
    if source is None:
        raise ModelMissing(f"{folder} does not hold {name}", hint="see: localsim models export DIR")
    expected = model.sha256 or str(sidecars.read_sidecar(source).get("sha256", ""))
    if not expected:
        raise ModelMissing(
            f"{source.name} has no sidecar and no checksum in the registry, so it cannot be checked",
            where=str(source),
            hint=f"localsim models pull {source} --sha256 ... installs it under its own name",
        )
    with registry.pulling(model, say) as own:
        target = own / model.file
        say(f"{model.name}: copying {source}")
        _receive(blocks_of(source), target, expected, source.stat().st_size)
        for extra in sorted(source.parent.rglob("*")) if "/" in model.file else []:
            if extra.is_file() and extra != source:
                place = target.parent / extra.relative_to(source.parent)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(extra, place)
        beside = sidecars.sidecar_path(source)
        if beside.is_file():
            shutil.copyfile(beside, sidecars.sidecar_path(target))
    return target


# ---- hub, address, path --------------------------------------------------------------------------------------------


def _from_hub(reference: str, name: str, say: Say, confirm: Confirm, sha256: str) -> Path:
    _use_routes(say)
    offer = _hub_offer(reference, name)
    if sha256 and offer.sha256 and sha256 != offer.sha256:
        raise ModelMissing(
            f"the hub now has other bytes under this name (sha256 {offer.sha256[:12]}..., expected {sha256[:12]}...)",
            where=reference,
            hint="do not use it before you know why",
        )
    target = _prepare(offer, say, confirm)
    repo, file = _hub_parts(reference)
    staging = target.parent / _STAGING
    with _hub_errors(reference):
        import huggingface_hub

        staged = Path(huggingface_hub.hf_hub_download(repo, file, local_dir=staging))
    _check_whole(staged, sha256 or offer.sha256, target)
    staged.replace(target)
    _record(target, offer)
    with suppress(OSError):
        shutil.rmtree(staging)
    return target


def _use_routes(say: Say) -> None:
    """Let huggingface_hub reach this machine without a proxy, and say through which one it reaches another."""
    from huggingface_hub.constants import ENDPOINT

    say_route(ENDPOINT, say)
    os.environ.update(direct(ENDPOINT))  # its client reads this when it is made


def say_route(address: str, say: Say) -> None:
    """Say what stands between this machine and an address, if anything does."""
    if told := route_to(address).told:
        say(told)


def _routed() -> httpx2.BaseTransport:
    """Return a transport that sends each request on the way to its own address: a redirect leads to another one."""
    import httpx2

    class Routed(httpx2.BaseTransport):
        def __init__(self) -> None:
            self._ways: dict[str, httpx2.HTTPTransport] = {}

        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            proxy = route_to(str(request.url)).proxy
            if proxy not in self._ways:
                self._ways[proxy] = httpx2.HTTPTransport(proxy=proxy or None)
            return self._ways[proxy].handle_request(request)

        def close(self) -> None:
            for way in self._ways.values():
                way.close()

    return Routed()


def _hub_parts(reference: str) -> tuple[str, str]:
    parts = reference.removeprefix(HUB).split("/", 2)
    if len(parts) != 3 or not all(parts) or not parts[2].endswith(".gguf"):
        raise InvalidInput(f"{reference!r} names no GGUF file on a hub", hint="such as hf:owner/repo/file.gguf")
    return f"{parts[0]}/{parts[1]}", parts[2]


def _hub_offer(reference: str, name: str) -> Offer:
    """The hub's facts about a file: size, sha256, licence."""
    repo, file = _hub_parts(reference)
    with _hub_errors(reference):
        import huggingface_hub

        info = huggingface_hub.HfApi().model_info(repo, files_metadata=True)
        files = {sibling.rfilename: sibling for sibling in info.siblings or []}
        if file not in files:
            others = [name for name in files if name.endswith(".gguf")]
            raise ModelMissing(
                f"{repo} has no file {file}", where=reference, hint=f"it has {', '.join(others[:8]) or 'no GGUF files'}"
            )
        licence = (info.card_data.get("license") if info.card_data else None) or "unknown"
        lfs = files[file].lfs
    return Offer(name, Path(file).name, reference, files[file].size, lfs.sha256 if lfs else "", str(licence))


@contextmanager
def _hub_errors(reference: str) -> Iterator[None]:
    """Turn huggingface_hub's errors into ModelMissing with a next step."""
    import httpx2
    from huggingface_hub import errors

    hints = {
        errors.GatedRepoError: "accept its licence on the hub, then set HF_TOKEN",
        errors.RepositoryNotFoundError: "check the name; a private repository needs HF_TOKEN",
        errors.EntryNotFoundError: "check the name of the file",
        errors.OfflineModeIsEnabled: "unset HF_HUB_OFFLINE, or: localsim models pull NAME --from DIR",
    }
    usual = "check the connection and HF_ENDPOINT; the same command continues the download"
    try:
        yield
    except (errors.EntryNotFoundError, errors.HFValidationError, httpx2.HTTPError, OSError) as error:
        hint = next((text for kind, text in hints.items() if isinstance(error, kind)), usual)
        reason = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
        raise ModelMissing(f"the hub did not provide the file: {reason}", where=reference, hint=hint) from error


def _from_address(address: str, say: Say, confirm: Confirm, sha256: str) -> Path:
    """Fetch a file from a web address, continuing an earlier part where the server supports that."""
    import httpx2

    file = Path(urlsplit(address).path).name
    if not file.endswith(".gguf"):
        raise InvalidInput(f"{address} does not end in a .gguf file", hint="give the address of the file itself")
    offer = Offer(_stem_name(file), file, address, sha256=sha256)
    target = _prepare(offer, say, confirm)
    say_route(address, say)
    part = target.with_name(target.name + ".part")
    note = target.with_name(f".{target.name}.from.part")
    begun = read_object(note)
    have = part.stat().st_size if part.is_file() and begun.get("address") == address and begun.get("etag") else 0
    headers = {"Range": f"bytes={have}-", "If-Range": begun["etag"]} if have else {}
    try:
        with (
            httpx2.Client(transport=_routed(), follow_redirects=True, timeout=60, trust_env=False) as client,
            client.stream("GET", address, headers=headers) as answer,
        ):
            if answer.status_code == 416:
                part.unlink()
                raise ModelMissing(
                    "the file on the server has changed since the first part", where=address, hint="pull it again"
                )
            if answer.status_code not in (200, 206):
                raise ModelMissing(f"the server answers HTTP {answer.status_code}", where=address)
            if answer.status_code == 200:
                part.unlink(missing_ok=True)
                have = 0
            note.write_text(json.dumps({"address": address, "etag": answer.headers.get("ETag", "")}))
            length = answer.headers.get("Content-Length")
            whole = have + int(length) if length else None
            registry.check_space(target.parent, offer.name, (whole or 0) - have + _MARGIN)
            _receive(answer.iter_bytes(), target, sha256, whole, resume=bool(have))
    except httpx2.TransportError as error:
        raise ModelMissing(
            f"the connection broke: {error or type(error).__name__}",
            where=address,
            hint="the part received so far is kept; the same command continues it",
        ) from error
    finally:
        if not part.exists():
            note.unlink(missing_ok=True)
    _record(target, offer)
    return target


def _from_path(path: Path, say: Say, sha256: str) -> Path:
    if not path.is_file():
        raise ModelMissing("no such model file", where=str(path))
    offer = Offer(_stem_name(path.name), path.name, str(path), path.stat().st_size, sha256)
    if path.resolve().parent in [folder.resolve() for folder in paths.model_folders()]:
        raise InvalidInput(f"{path} is in a model folder already", hint=f"use it as --model {path}")
    target = _prepare(offer, say, lambda _licence: True)
    _receive(blocks_of(path), target, sha256, offer.bytes)
    _record(target, offer)
    return target


# ---- receiving -----------------------------------------------------------------------------------------------------


def _prepare(offer: Offer, say: Say, confirm: Confirm) -> Path:
    """Announce the file, ask about its licence and check the disk. Returns the final path."""
    size = f"{offer.bytes / 1e6:.0f} MB" if offer.bytes else "size unknown"
    say(f"{offer.name}: {offer.origin} ({size}, licence {offer.licence})")
    if not confirm(offer.licence):
        raise ModelMissing(
            f"{offer.name} was not fetched: its licence was not confirmed", hint="-y confirms the licence"
        )
    folder = registry.writable_folder()
    target = folder / offer.file
    own = sidecars.read_sidecar(target).get("origin") == offer.origin
    known = {model.file for model in registry.entries() if model.name != offer.name and not own}
    if offer.file in known or target.is_file() and not own and not offer.origin.startswith(HUB):
        raise InvalidInput(
            f"another model has a file called {offer.file}", hint="localsim models rm NAME, or rename the file first"
        )
    registry.check_space(folder, offer.name, (offer.bytes or 0) + _MARGIN)
    return target


def _receive(blocks: Iterable[bytes], target: Path, sha256: str, size: int | None, *, resume: bool = False) -> None:
    """Write blocks to a part and give it its final name once its size and checksum are right.

    A part that is too short is kept for the next attempt; one with the wrong checksum is removed.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    digest = hashlib.sha256()
    if resume:
        for block in blocks_of(part):
            digest.update(block)
    try:
        with part.open("ab" if resume else "wb") as file:
            for block in blocks:
                digest.update(block)
                file.write(block)
    except OSError as error:
        raise ModelMissing(f"cannot be written: {error.strerror}", where=str(part), hint="free some space") from error
    got = part.stat().st_size
    if size is not None and got < size:
        raise ModelMissing(f"{got} of {size} bytes were received", where=str(part), hint="the same command continues")
    if sha256 and digest.hexdigest() != sha256 or size is not None and got > size:
        part.unlink()
        raise _wrong(digest.hexdigest(), sha256, target)
    part.replace(target)


def _check_whole(path: Path, sha256: str, target: Path) -> None:
    """Raise ModelMissing, and remove the file, where it does not have the expected checksum."""
    actual = checksum(path) if sha256 else ""
    if actual != sha256:
        path.unlink()
        raise _wrong(actual, sha256, target)


def _wrong(actual: str, expected: str, target: Path) -> ModelMissing:
    return ModelMissing(
        f"wrong checksum {actual[:12]}..., expected {expected[:12]}...",
        where=str(target),
        hint="the file was removed; do not use this source before you know why",
    )


def _record(target: Path, offer: Offer) -> None:
    sidecars.write_sidecar(target, name=offer.name, origin=offer.origin, licence=offer.licence)
