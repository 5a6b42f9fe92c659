"""Models made on this machine from others: the same weights in a type that the processor is faster with.

llama.cpp converts a small model in seconds, a large one in minutes.

A sidecar (FILE.gguf.json) records the source by its checksum, so that a derived model is verified like any other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from localsim.backends.llama.lib import library
from localsim.backends.open import physical_cores
from localsim.errors import BackendUnavailable, ModelMissing
from localsim.models import lora, registry, sidecars
from localsim.models.checksums import checksum
from localsim.models.entries import TYPES, ModelEntry
from localsim.models.registry import ModelFile
from localsim.paths import whole_file


def derive(model: ModelEntry, say: Callable[[str], None]) -> Path:
    """Make a derived model from its source, which is installed. Raises ModelMissing or BackendUnavailable."""
    source = registry.resolve(model.source)
    target = registry.writable_folder() / model.file
    merging = f" with {model.adapter} merged in" if model.adapter else ""
    say(f"{model.name}: converting {source.path.name} to {model.type}{merging}")
    threads = physical_cores()
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".merge-") as scratch:
        weights = _merged(model, source, Path(scratch)) if model.adapter else source.path
        requantize(weights, target, model.type, threads)
    more = {"made_with": f"llama-cpp-python {version('llama-cpp-python')}"}
    if sidecars.read_sidecar(source.path).get("adapter_sha256"):
        more["source_origin"] = sidecars.origin_of(source.path)
    if model.adapter:
        more["adapter_sha256"] = checksum(registry.merged_adapter(model))
    sidecars.write_sidecar(
        target, name=model.name, source=model.source, source_sha256=source.sha256, type=model.type, **more
    )
    return target


def requantize(source: Path, target: Path, kind: str, threads: int) -> None:
    """Write `source` as `target` in a type of TYPES. The file gets its final name only once it is whole.

    Raises BackendUnavailable where llama.cpp refuses.
    """
    lib, wanted = library(), TYPES[kind]
    params = lib.llama_model_quantize_default_params()
    params.ftype = wanted.number
    params.nthread = threads
    params.allow_requantize = True
    if wanted.output is not None:
        params.output_tensor_type = wanted.output
    with whole_file(target) as part:
        if lib.llama_model_quantize(str(source).encode(), str(part).encode(), params) != 0:
            raise BackendUnavailable(
                f"llama.cpp cannot convert {source.name} to {kind}", hint="LOCALSIM_DEBUG=1 shows llama.cpp's log"
            )


def _merged(model: ModelEntry, source: ModelFile, folder: Path) -> Path:
    """Add the adapter to the source's weights, in 16 bits: an unmerged adapter slows every decode."""
    adapter = lora.read_adapter(registry.merged_adapter(model))
    lora.check_fits(adapter, source.path, {source.sha256, sidecars.origin_of(source.path)} - {""})
    target = folder / "merged.gguf"
    lora.merge(source.path, adapter, target)
    return target


def optimize(name: str, kind: str, say: Callable[[str], None]) -> ModelFile:
    """Make a copy of a model in another type under the name NAME-TYPE; a whole copy made earlier is left alone."""
    source = registry.resolve(name)
    if source.adapter is not None:
        raise ModelMissing(
            f"{name} has an adapter that is applied while it runs, and only its base can be converted",
            hint="localsim models show NAME names the base of a model",
        )
    derived = f"{source.name}-{kind.lower()}"
    if derived not in {model.name for model in registry.entries()}:
        derive(_copy_of(name, derived, kind, f"{source.path.stem}.{kind}.gguf"), say)
    elif registry.installed_path(registry.entry(derived)) is None:
        derive(registry.entry(derived), say)
    return registry.resolve(derived)


def _copy_of(source: str, name: str, kind: str, file: str) -> ModelEntry:
    """The entry of a copy of a model, a name or path, in another type."""
    origin = registry.entry(source) if not registry.is_path(source) else None
    return ModelEntry(
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
