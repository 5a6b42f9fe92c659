"""Convert a model's weights to another type with llama.cpp: seconds for a small model, minutes for a large one."""

from __future__ import annotations

from pathlib import Path

from localsim.backends.llama.lib import library
from localsim.errors import BackendUnavailable
from localsim.models.entries import TYPES


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
    part = target.with_name(target.name + ".part")
    try:
        if lib.llama_model_quantize(str(source).encode(), str(part).encode(), params) != 0:
            raise BackendUnavailable(
                f"llama.cpp cannot convert {source.name} to {kind}", hint="LOCALSIM_DEBUG=1 shows llama.cpp's log"
            )
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
