"""The one place that imports openvino: a transformer with paged attention from the weights of a GGUF file.

The tokens of all sessions are one long row. Attention finds the earlier keys and values of each session in blocks of
BLOCK tokens, which `paged` hands out. The operation is internal to OpenVINO, so its version is fixed in pyproject.toml.
https://github.com/openvinotoolkit/openvino/tree/master/src/core/include/openvino/op (paged_attention.hpp)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from localsim import paths
from localsim.backends.openvino.weights import GROUP, Matrix, Weights
from localsim.errors import BackendUnavailable, GenerationFailed

BLOCK = 32
"""Tokens in a block of keys or values; OpenVINO's number for processors."""


@lru_cache(maxsize=1)
def library() -> ModuleType:
    """OpenVINO. Raises BackendUnavailable where it is not installed."""
    # This package would report the import to a server. With None its own import fails, and OpenVINO does without it.
    sys.modules.setdefault("openvino_telemetry", cast(ModuleType, None))
    try:
        import openvino
    except (ImportError, OSError) as error:
        raise BackendUnavailable(f"OpenVINO cannot be loaded: {error}", hint=paths.installing("openvino")) from error
    return cast(ModuleType, openvino)


def build_description() -> str:
    """The version of OpenVINO, stored with every run."""
    return f"openvino {library().get_version()}"


@dataclass(frozen=True)
class Step:
    """Tokens of several sessions, one session after the other."""

    tokens: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    past: npt.NDArray[np.int32]
    """For each session the number of tokens in its cache."""
    begins: npt.NDArray[np.int32]
    """Where the tokens of each session begin, and where the last one's end."""
    blocks: npt.NDArray[np.int32]
    """The blocks of all sessions."""
    block_begins: npt.NDArray[np.int32]
    longest: int
    """Tokens of the longest session, with the new ones."""
    rows: npt.NDArray[np.int64]
    """The tokens whose logits are wanted, by their place in `tokens`."""


SETTINGS: Mapping[str, Any] = {
    "ENABLE_CPU_PINNING": False,  # several models, and several processes, share the processor
    "KV_CACHE_PRECISION": "f16",
}
"""OpenVINO's properties, measured by scripts/eval_openvino.py. f16 caches become bf16 with bf16 between the layers."""


class Network:
    """A compiled model. Raises BackendUnavailable where OpenVINO cannot compile it."""

    def __init__(self, weights: Weights, threads: int, settings: Mapping[str, Any] = SETTINGS) -> None:
        core = library().Core()
        settings = {**settings, "INFERENCE_NUM_THREADS": threads}
        try:
            self._compiled = core.compile_model(_Builder(weights).model(), "CPU", settings)
        except RuntimeError as error:
            raise BackendUnavailable(f"OpenVINO cannot compile the model: {_first_line(error)}") from error
        self.precision = str(self._compiled.get_property("INFERENCE_PRECISION_HINT").to_string())
        """Numbers between the layers: bf16 where the processor computes with them, else f32."""

    def memory(self, blocks: int) -> tuple[Any, list[npt.NDArray[Any]]]:
        """A request, and its keys and values in arrays of `blocks` blocks.

        The machine's memory is used only where something has been written.
        """
        openvino = library()
        request = self._compiled.create_infer_request()
        arrays = []
        for port in self._compiled.inputs:
            if port.any_name.startswith(("key_cache.", "value_cache.")):
                sizes = [dimension.get_length() for dimension in list(port.partial_shape)[1:]]
                kind = port.element_type
                array = np.zeros((blocks, *sizes), dtype=f"u{kind.size}")
                request.set_tensor(port.any_name, openvino.Tensor(array, openvino.Shape(array.shape), kind))
                arrays.append(array)
        return request, arrays


def logits(request: Any, step: Step) -> npt.NDArray[np.float32]:
    """The logits of the wanted rows (rows x n_vocab), valid until the next call. Raises GenerationFailed."""
    tensor = library().Tensor
    for name, values in (
        ("input_ids", step.tokens),
        ("position_ids", step.positions),
        ("past_lens", step.past),
        ("subsequence_begins", step.begins),
        ("block_indices", step.blocks),
        ("block_indices_begins", step.block_begins),
        ("max_context_len", np.array(step.longest, dtype=np.int32)),
        ("rows", step.rows),
    ):
        request.set_tensor(name, tensor(values))
    try:
        request.infer()
    except RuntimeError as error:
        raise GenerationFailed(f"OpenVINO failed: {_first_line(error)}") from error
    found = request.get_output_tensor(0).data
    return cast(npt.NDArray[np.float32], found.reshape(len(step.rows), -1))


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason given")


class _Builder:
    """Makes the graph, layer by layer, in the patterns that OpenVINO recognises as norms and rotary positions."""

    def __init__(self, weights: Weights) -> None:
        library()
        import openvino.opset13 as operations

        self._op: Any = operations
        self._weights = weights
        self._shape = weights.shape
        self._inputs: list[Any] = []

    def model(self) -> Any:
        """The whole model."""
        op = self._op
        tokens, positions = self._input("input_ids", "i64", [-1]), self._input("position_ids", "i64", [-1])
        names = ("past_lens", "subsequence_begins", "block_indices", "block_indices_begins")
        pages = [self._input(name, "i32", [-1]) for name in names]
        longest, rows = self._input("max_context_len", "i32", []), self._input("rows", "i64", [-1])
        embedding = self._matrix("token_embd.weight")
        one = op.unsqueeze(tokens, self._whole(1))
        state = op.gather(embedding, op.convert(one, "i32"), self._whole(0))
        turns = self._turns(positions)
        for layer in range(self._shape.layers):
            seen = self._attention(f"blk.{layer}.", layer, state, turns, [*pages, longest])
            if layer == self._shape.layers - 1:  # from here on, only the wanted rows
                state, seen = op.gather(state, rows, self._whole(0)), op.gather(seen, rows, self._whole(0))
            state = op.add(state, self._linear(seen, f"blk.{layer}.attn_output"))
            state = op.add(state, self._feed_forward(f"blk.{layer}.", state))
        state = self._norm(state, "output_norm.weight")
        head = self._matrix("output.weight") if "output.weight" in self._weights else embedding
        return library().Model([op.result(op.matmul(state, head, False, True))], self._inputs, "localsim")

    def _attention(self, block: str, layer: int, state: Any, turns: tuple[Any, Any], pages: list[Any]) -> Any:
        """What the tokens see of those before them (tokens, 1, heads x head)."""
        shape, op = self._shape, self._op
        normed = self._norm(state, f"{block}attn_norm.weight")
        sizes = [heads * shape.head for heads in (shape.heads, shape.kv_heads, shape.kv_heads)]
        parts = self._split(self._linear(normed, *(f"{block}attn_{name}" for name in "qkv")), sizes)
        turned = []
        for part, heads, name in ((parts[0], shape.heads, "q"), (parts[1], shape.kv_heads, "k")):
            wide = op.reshape(part, np.array([-1, heads, 1, shape.head]), False)
            if f"{block}attn_{name}_norm.weight" in self._weights:
                wide = self._norm(wide, f"{block}attn_{name}_norm.weight", rank=4)
            turned.append(self._turn(wide, turns))
        flat = [
            op.reshape(part, np.array([-1, size]), False) for part, size in zip([*turned, parts[2]], sizes, strict=True)
        ]
        caches = [self._input(f"{name}.{layer}", "dynamic", None) for name in ("key_cache", "value_cache")]
        seen = self._paged_attention([*flat, *caches], pages)
        return op.reshape(seen, np.array([-1, 1, sizes[0]]), False)

    def _paged_attention(self, tensors: list[Any], pages: list[Any]) -> Any:
        """OpenVINO's operation; the inputs after the pages belong to features that are not used."""
        from openvino.op import _PagedAttentionExtension

        shape, op = self._shape, self._op
        whole, none = self._whole(0, np.int32), [op.constant(np.zeros(0, kind)) for kind in (np.int32, np.float32)]
        scale, no_mask = op.constant(np.float32(shape.head**-0.5)), op.constant(np.zeros(0, np.uint8))
        sinks = op.constant(np.zeros((0, 0, 0, 0), np.float32))
        i32, f32 = none
        unused = [i32, i32, i32, f32, f32, whole, whole, sinks, whole, i32, i32, i32, i32, no_mask, i32]
        inputs = [*tensors, *pages[:4], scale, whole, f32, pages[4], *unused]
        made = _PagedAttentionExtension([node if hasattr(node, "get_node") else node.output(0) for node in inputs])
        facts = made.get_rt_info()
        for name in ("k", "v"):
            facts[f"num_{name}_heads"], facts[f"{name}_head_size"] = shape.kv_heads, shape.head
        return made.output(0)

    def _feed_forward(self, block: str, state: Any) -> Any:
        op = self._op
        normed = self._norm(state, f"{block}ffn_norm.weight")
        both = self._linear(normed, f"{block}ffn_gate", f"{block}ffn_up")
        gate, up = op.split(both, self._whole(2), 2).outputs()
        return self._linear(op.multiply(op.swish(gate), up), f"{block}ffn_down")

    def _turns(self, positions: Any) -> tuple[Any, Any]:
        """Cosine and sine of the angles of each position (tokens, 1, 1, head)."""
        op = self._op
        places = op.reshape(op.convert(positions, "f32"), np.array([-1, 1, 1, 1]), False)
        angles = op.multiply(places, op.constant(self._weights.rope_frequencies().reshape(1, 1, 1, -1)))
        whole = op.concat([angles, angles], -1)
        return op.cos(whole), op.sin(whole)

    def _turn(self, state: Any, turns: tuple[Any, Any]) -> Any:
        """Rotary positions (Su et al. 2021, https://arxiv.org/abs/2104.09864), halves of a head as pairs."""
        op, half = self._op, self._shape.head // 2
        ends = [op.constant(np.array([place])) for place in (0, half, 2**63 - 1)]
        step, axis = op.constant(np.array([1])), op.constant(np.array([3]))
        first, second = (op.slice(state, ends[at], ends[at + 1], step, axis) for at in (0, 1))
        minus = op.multiply(second, op.constant(np.full((1, 1, 1, 1), -1, dtype=np.float32)))
        cosine, sine = turns
        return op.add(op.multiply(state, cosine), op.multiply(op.concat([minus, first], -1), sine))

    def _norm(self, state: Any, name: str, rank: int = 3) -> Any:
        op = self._op

        def number(value: float) -> Any:
            return op.constant(np.full((1,) * rank, value, dtype=np.float32))

        mean = op.reduce_mean(op.power(state, number(2.0)), np.array([-1]), True)
        scaled = op.multiply(op.divide(number(1.0), op.sqrt(op.add(mean, number(self._shape.epsilon)))), state)
        return op.multiply(scaled, op.constant(self._weights.vector(name).reshape((1,) * (rank - 1) + (-1,))))

    def _linear(self, state: Any, *names: str) -> Any:
        """Matrices side by side, with their biases."""
        op = self._op
        made = op.matmul(state, self._matrix(*(f"{name}.weight" for name in names)), False, True)
        if f"{names[0]}.bias" not in self._weights:
            return made
        bias = np.concatenate([self._weights.vector(f"{name}.bias") for name in names])
        return op.add(made, op.constant(bias.reshape(1, 1, -1)))

    def _matrix(self, *names: str) -> Any:
        """A matrix, in the pattern that lets OpenVINO compute with its small numbers."""
        op, matrix = self._op, self._weights.matrix(*names)
        if matrix.scales is None:
            return op.convert(op.constant(matrix.numbers, shared_memory=True), "f32")
        rows, groups = matrix.numbers.shape[:2]
        numbers = self._numbers(matrix, rows, groups)
        scaled = op.multiply(numbers, op.constant(matrix.scales, shared_memory=True))
        return op.convert(op.reshape(scaled, np.array([rows, groups * GROUP]), False), "f32")

    def _numbers(self, matrix: Matrix, rows: int, groups: int) -> Any:
        op = self._op
        if matrix.numbers.dtype == np.int8:
            return op.convert(op.constant(matrix.numbers, shared_memory=True), "f16")
        openvino = library()

        def four_bits(data: npt.NDArray[np.uint8], columns: int) -> Any:
            tensor = openvino.Tensor(data.reshape(-1), openvino.Shape([rows, groups, columns]), openvino.Type.u4)
            return op.convert(openvino.op.Constant(tensor, False), "f16")  # False: it copies the numbers

        eights = np.full((rows * groups + 1) // 2, 0x88, dtype=np.uint8)
        return op.subtract(four_bits(matrix.numbers, GROUP), four_bits(eights, 1))

    def _split(self, state: Any, sizes: list[int]) -> Any:
        return self._op.variadic_split(state, self._whole(2), np.array(sizes)).outputs()

    def _whole(self, value: int, kind: Callable[[int], Any] = np.int64) -> Any:
        return self._op.constant(kind(value))

    def _input(self, name: str, kind: str, sizes: list[int] | None) -> Any:
        openvino = library()
        shape = openvino.PartialShape.dynamic(4) if sizes is None else openvino.PartialShape(sizes)
        made = self._op.parameter(shape, getattr(openvino.Type, kind), name=name)
        made.output(0).get_tensor().set_names({name})
        self._inputs.append(made)
        return made
