"""LoRA adapters as GGUF files: written from peft's tensors, read back, and merged into a base.

An adapter names its base by checksum and by origin (`sidecars.origin_of`) and is refused on any other: on wrong weights
it would write fluent nonsense. The origin is for bases that every machine makes anew, whose bytes may differ.
Format: https://github.com/ggml-org/llama.cpp (convert_lora_to_gguf), https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from localsim.conversation.wording.layouts import FIRST
from localsim.errors import BackendUnavailable, ModelMissing
from localsim.models import gguf_files
from localsim.models.sidecars import origin_of

_BASE_SHA = "localsim.base.sha256"
_BASE_ORIGIN = "localsim.base.origin"
_BASE_NAME = "localsim.base.name"
_LAYOUT = "localsim.layout"
_PEFT = "base_model.model."
_PERMUTED = ("attn_q", "attn_k")
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Adapter:
    """An adapter's header and its pairs of matrices."""

    path: Path
    architecture: str
    alpha: float
    base_sha256: str
    base_name: str
    pairs: Mapping[str, tuple[Array, Array]]
    """GGUF tensor name without `.weight` -> (A of shape rank x in, B of shape out x rank), float32."""
    base_origin: str = ""
    """The origin of a derived base, equal on every machine; '' for a base that was not derived."""

    @property
    def rank(self) -> int:
        """The inner dimension of the pairs of matrices."""
        return int(next(iter(self.pairs.values()))[0].shape[0])

    @property
    def scale(self) -> float:
        """The factor of the product B A."""
        return self.alpha / self.rank if self.alpha else 1.0  # as llama.cpp reads a file without alpha


def read_adapter(path: Path) -> Adapter:
    """Read an adapter file. Raises ModelMissing where the file is not an adapter."""
    import gguf

    try:
        reader = gguf_files.opened(path)
    except (OSError, ValueError) as error:
        raise ModelMissing(f"not a GGUF file: {error}", where=str(path)) from error
    if _text(reader, "general.type") != "adapter" or _text(reader, "adapter.type") != "lora":
        raise ModelMissing("this GGUF file is no LoRA adapter", where=str(path))
    found: dict[str, dict[str, Array]] = {}
    for tensor in reader.tensors:
        name, _, side = tensor.name.rpartition(".weight.lora_")
        found.setdefault(name, {})[side] = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
    pairs = {name: (sides["a"], sides["b"]) for name, sides in found.items() if set(sides) == {"a", "b"}}
    if not pairs or len(pairs) != len(found):
        raise ModelMissing("its matrices do not come in pairs", where=str(path))
    field = reader.get_field("adapter.lora.alpha")
    alpha = field.contents() if field else 0.0
    numbers = isinstance(alpha, int | float) and bool(np.isfinite(alpha))
    if not numbers or not all(map(_is_pair, pairs.values())):
        raise ModelMissing(
            "its matrices are no pairs of one rank, or it has values that are no numbers", where=str(path)
        )
    return Adapter(
        path=path,
        architecture=_text(reader, "general.architecture"),
        alpha=float(alpha),
        base_sha256=_text(reader, _BASE_SHA),
        base_name=_text(reader, _BASE_NAME),
        pairs=pairs,
        base_origin=_text(reader, _BASE_ORIGIN),
    )


def _is_pair(sides: tuple[Array, Array]) -> bool:
    a, b = sides
    return a.ndim == b.ndim == 2 and a.shape[0] == b.shape[1] > 0 and all(np.isfinite(side).all() for side in sides)


def layout_in(path: Path) -> str:
    """Return the layout of the prompts that an adapter was taught on; only its header is read. Raises ModelMissing."""
    try:
        return _text(gguf_files.opened(path), _LAYOUT) or FIRST
    except (OSError, ValueError) as error:
        raise ModelMissing(f"not a GGUF file: {error}", where=str(path)) from error


def _text(reader: Any, key: str) -> str:
    field = reader.get_field(key)
    return str(field.contents()) if field else ""


def write_adapter(
    target: Path,
    weights: Mapping[str, Array],
    *,
    alpha: float,
    base: Path,
    base_name: str,
    base_sha256: str,
    layout: str = FIRST,
) -> None:
    """Write peft's tensors (its names -> float arrays) as an adapter for the GGUF file `base`, in 16 bits.

    `layout` is that of the prompts that it was taught on.
    """
    import gguf

    places = _Places.read(base)
    part = target.with_name(target.name + ".part")
    writer = gguf.GGUFWriter(str(part), places.architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    writer.add_string(_BASE_SHA, base_sha256)
    writer.add_string(_BASE_NAME, base_name)
    writer.add_string(_BASE_ORIGIN, origin_of(base))
    writer.add_string(_LAYOUT, layout)
    for key, array in sorted(weights.items()):
        name, side, heads = places.find(key)
        values = np.asarray(array, dtype=np.float32)
        values = permuted(values, heads) if heads else values
        writer.add_tensor(f"{name}.weight.lora_{side}", np.ascontiguousarray(values.astype(np.float16)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    part.replace(target)


def peft_tensors(adapter: Adapter, layers: Iterable[str], base: Path) -> dict[str, Array]:
    """Return an adapter's matrices under peft's names, as `write_adapter` takes them.

    `layers`: names that transformers gives to layers of the GGUF file `base`; those that were not trained are left out.
    """
    places = _Places.read(base)
    found: dict[str, Array] = {}
    for layer in layers:
        for number, side in enumerate("AB"):
            key = f"{_PEFT}{layer}.lora_{side}.weight"
            name, _, heads = places.find(key)
            if name in adapter.pairs:
                values = adapter.pairs[name][number]
                found[key] = restored(values, heads) if heads else values
    return found


@dataclass(frozen=True)
class _Places:
    """Where the tensors that peft names belong in a base file."""

    architecture: str
    names: Any
    """gguf's map from names of transformers to its own."""
    heads: int
    kv_heads: int

    @classmethod
    def read(cls, base: Path) -> _Places:
        import gguf

        reader = gguf_files.opened(base)
        architecture = _text(reader, "general.architecture")
        kinds = {name: kind for kind, name in gguf.MODEL_ARCH_NAMES.items()}
        blocks = int(reader.get_field(f"{architecture}.block_count").contents())
        heads = int(reader.get_field(f"{architecture}.attention.head_count").contents())
        kv = reader.get_field(f"{architecture}.attention.head_count_kv")
        names = gguf.get_tensor_name_map(kinds[architecture], blocks)
        return cls(architecture, names, heads, int(kv.contents()) if kv else heads)

    def find(self, key: str) -> tuple[str, str, int]:
        """Return a tensor's name in the file, its side a or b, and the heads by which its rows are reordered, or 0.

        Files of the llama architecture have the rows of q and k in another order than transformers; the rows of B
        follow them.
        """
        layer, _, side = key.removeprefix(_PEFT).removesuffix(".weight").rpartition(".lora_")
        name = self.names.get_name(layer)
        if name is None or side not in ("A", "B"):
            raise BackendUnavailable(f"the adapter's layer {key} has no place in a {self.architecture} file")
        if side == "A" or self.architecture != "llama" or not name.endswith(_PERMUTED):
            return name, side.lower(), 0
        return name, side.lower(), self.heads if name.endswith("attn_q") else self.kv_heads


def permuted(rows: Array, heads: int) -> Array:
    """Rows of q or k in the order of llama.cpp: within a head the two halves of the rotary pairs interleaved."""
    shape = rows.shape
    halves = rows.reshape(heads, 2, shape[0] // heads // 2, *shape[1:])
    return halves.swapaxes(1, 2).reshape(shape)


def restored(rows: Array, heads: int) -> Array:
    """Rows of q or k in the order of transformers, from that of llama.cpp."""
    shape = rows.shape
    pairs = rows.reshape(heads, shape[0] // heads // 2, 2, *shape[1:])
    return pairs.swapaxes(1, 2).reshape(shape)


def check_fits(adapter: Adapter, base: Path, known_as: set[str]) -> None:
    """Raise ModelMissing where an adapter was not made for this base: by checksum or origin (`known_as`), or shape."""
    if adapter.base_sha256 and known_as.isdisjoint({adapter.base_sha256, adapter.base_origin} - {""}):
        raise ModelMissing(
            f"this adapter was trained on {adapter.base_name or 'another model'} "
            f"(sha256 {adapter.base_sha256[:12]}...), not on {base.name}",
            where=str(adapter.path),
            hint=f"use it with its own base: --model {adapter.base_name or 'BASE'}+{adapter.path}",
        )
    reader = gguf_files.opened(base)
    if (theirs := _text(reader, "general.architecture")) != adapter.architecture:
        raise ModelMissing(
            f"this adapter is for the {adapter.architecture} architecture, {base.name} is {theirs}",
            where=str(adapter.path),
        )
    shapes = {tensor.name: [int(size) for size in tensor.shape] for tensor in reader.tensors}
    for name, (a, b) in adapter.pairs.items():
        if shapes.get(f"{name}.weight") != [a.shape[1], b.shape[0]]:
            raise ModelMissing(
                f"its layer {name} does not fit {base.name}: {a.shape[1]} x {b.shape[0]}, "
                f"the model has {shapes.get(f'{name}.weight')}",
                where=str(adapter.path),
                hint="an adapter works on the model that it was trained on, and no other",
            )


def merge(base: Path, adapter: Adapter, target: Path) -> None:
    """Write base + scale x B A as a GGUF file in 16 bits; the rest of the base is copied unchanged."""
    import gguf

    reader = gguf.GGUFReader(str(base))
    part = target.with_name(target.name + ".part")
    writer = gguf.GGUFWriter(str(part), _text(reader, "general.architecture"))
    skipped = ("GGUF.", "general.architecture", "general.quantization_version", "general.file_type")
    for field in reader.fields.values():
        if not field.name.startswith(skipped):
            kind = field.types[0]
            inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), kind, sub_type=inner)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        pair = adapter.pairs.get(tensor.name.removesuffix(".weight"))
        if pair is not None:
            values = values + adapter.scale * (pair[1] @ pair[0])
        values = values if values.ndim == 1 else values.astype(np.float16)
        writer.add_tensor(tensor.name, np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    part.replace(target)
