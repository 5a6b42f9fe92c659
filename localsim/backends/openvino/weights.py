"""The header and the matrices of a GGUF file as arrays, in the forms that OpenVINO computes with.

Q8_0 and Q4_0 stay as they are. Other quantized types, and weights with an adapter, become 8 bits with a scale for each
32 weights, as in Q8_0; matrices in 16 or 32 bits become 16 bits.
Formats: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, ggml-common.h (block_q8_0, block_q4_0)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from localsim.errors import BackendUnavailable
from localsim.models import gguf_files, lora

GROUP = 32
"""Weights with one scale."""
ARCHITECTURES = ("llama", "qwen2", "qwen3")
_WHOLE = ("F32", "F16", "BF16")


@dataclass(frozen=True)
class Shape:
    """The sizes of a transformer, and the numbers in its formulas."""

    architecture: str
    layers: int
    heads: int
    kv_heads: int
    head: int
    """Numbers in one head."""
    epsilon: float
    """Of the norms."""
    rope_base: float


@dataclass(frozen=True)
class Matrix:
    """A matrix of rows x columns."""

    numbers: npt.NDArray[Any]
    """int8 (rows, groups, GROUP); uint8 (rows, groups, GROUP / 2) with two numbers from 0 to 15 in each, the first one
    in the low bits; or float16 (rows, columns).
    """
    scales: npt.NDArray[np.float16] | None = None
    """(rows, groups, 1); None for 16 bits."""


class Weights:
    """A GGUF file. Raises BackendUnavailable where OpenVINO cannot compute what it describes."""

    def __init__(self, path: Path, adapter: Path | None = None) -> None:
        self._name = path.name
        self._reader = gguf_files.opened(path)
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}
        self._adapter = lora.read_adapter(adapter) if adapter else None
        self.shape = self._shape()

    def __contains__(self, name: str) -> bool:
        """True if the file has a tensor of this name."""
        return name in self._tensors

    def _field(self, key: str, default: Any = None) -> Any:
        field = self._reader.get_field(key)
        return default if field is None else field.contents()

    def _shape(self) -> Shape:
        kind = str(self._field("general.architecture", ""))
        if kind not in ARCHITECTURES:
            raise self._refused(f"has the architecture {kind or 'of no name'}")
        heads, width = self._field(f"{kind}.attention.head_count"), self._field(f"{kind}.embedding_length")
        shape = Shape(
            architecture=kind,
            layers=int(self._field(f"{kind}.block_count")),
            heads=int(heads),
            kv_heads=int(self._field(f"{kind}.attention.head_count_kv", heads)),
            head=int(self._field(f"{kind}.attention.key_length", width // heads)),
            epsilon=float(self._field(f"{kind}.attention.layer_norm_rms_epsilon")),
            rope_base=float(self._field(f"{kind}.rope.freq_base", 10_000.0)),
        )
        for key, usual in (
            ("expert_count", 0),
            ("rope.scaling.type", "none"),
            ("rope.dimension_count", shape.head),
            ("attention.value_length", shape.head),
            ("attention.sliding_window", 0),
        ):
            if (value := self._field(f"{kind}.{key}", usual)) != usual:
                raise self._refused(f"has {key} = {value}")
        return shape

    def _refused(self, why: str) -> BackendUnavailable:
        return BackendUnavailable(
            f"localsim cannot run {self._name} with OpenVINO: it {why}",
            hint=f"without openvino: before its name, llama.cpp runs it. OpenVINO runs {', '.join(ARCHITECTURES)}",
        )

    def vector(self, name: str) -> npt.NDArray[np.float32]:
        """The numbers of a norm or a bias."""
        import gguf

        tensor = self._tensors[name]
        values = np.asarray(gguf.quants.dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        return self._ordered(name, values.reshape(-1))

    def rope_frequencies(self) -> npt.NDArray[np.float32]:
        """The angle by which a position turns each pair of numbers of a head."""
        shape = self.shape
        plain = shape.rope_base ** (-np.arange(0, shape.head, 2) / shape.head)
        factors = self.vector("rope_freqs.weight") if "rope_freqs.weight" in self else 1.0
        return (plain / factors).astype(np.float32)

    def matrix(self, *names: str) -> Matrix:
        """Matrices with as many columns, one below the other."""
        parts = [self._matrix(name) for name in names]
        if len({part.numbers.dtype for part in parts}) > 1:  # some mixed types have single matrices in another one
            parts = [self._matrix(name, eight_bits=True) for name in names]
        if len(parts) == 1:
            return parts[0]
        scales = [part.scales for part in parts if part.scales is not None]
        return Matrix(np.concatenate([part.numbers for part in parts]), np.concatenate(scales) if scales else None)

    def _matrix(self, name: str, *, eight_bits: bool = False) -> Matrix:
        import gguf

        tensor = self._tensors[name]
        columns, rows = (int(size) for size in tensor.shape)
        kind = tensor.tensor_type.name
        data = np.asarray(tensor.data)
        pair = self._adapter.pairs.get(name.removesuffix(".weight")) if self._adapter else None
        if pair is not None and self._adapter is not None:
            data = gguf.quants.dequantize(data, tensor.tensor_type) + self._adapter.scale * (pair[1] @ pair[0])
            kind = "with an adapter"
        elif kind in _WHOLE and not eight_bits:
            return Matrix(self._ordered(name, gguf.quants.dequantize(data, tensor.tensor_type).astype(np.float16)))
        elif kind not in ("Q8_0", "Q4_0") or (eight_bits and kind != "Q8_0"):
            data = gguf.quants.dequantize(data, tensor.tensor_type)
        if columns % GROUP:
            raise self._refused(f"has {columns} columns in {name}, no multiple of {GROUP}")
        if data.dtype != np.uint8:
            data = gguf.quants.quantize(data, gguf.GGMLQuantizationType.Q8_0)
        blocks = self._ordered(name, data.reshape(rows, columns // GROUP, -1))
        scales = np.ascontiguousarray(blocks[..., :2]).view(np.float16)
        numbers = np.ascontiguousarray(blocks[..., 2:])
        return Matrix(numbers.view(np.int8) if numbers.shape[-1] == GROUP else _in_pairs(numbers), scales)

    def _ordered(self, name: str, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Rows of q and k so that the two numbers of a rotary pair are half a head apart, as in other architectures."""
        if self.shape.architecture != "llama":
            return rows
        heads = {"attn_q": self.shape.heads, "attn_k": self.shape.kv_heads}.get(name.split(".")[-2], 0)
        return lora.restored(rows, heads) if heads else rows


def _in_pairs(blocks: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Numbers of 4 bits in their own order: a block of Q4_0 has the first half of them in the low bits."""
    numbers = np.concatenate([blocks & 15, blocks >> 4], axis=-1)
    return np.ascontiguousarray(numbers[..., 0::2] | numbers[..., 1::2] << 4)
