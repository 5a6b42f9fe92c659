"""The devices that llama.cpp can use on this machine: names and memory, from ggml's own list."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from localsim.backends.llama.lib import library

_KINDS = ("cpu", "gpu", "igpu", "accelerator")
"""ggml's types of devices, in its order (ggml-backend.h, ggml_backend_dev_type)."""
_MEMORY_OF_THE_MACHINE = ("Metal", "MTL")
"""Names of GPUs that use the machine's own memory although ggml does not list them as integrated."""


@dataclass(frozen=True)
class Device:
    """A device: the processor, or one that takes layers of a model. Memory is in bytes."""

    name: str
    description: str
    kind: str
    """`cpu`, `gpu`, `igpu` (integrated) or `accelerator`."""
    free: int
    total: int

    @property
    def takes_layers(self) -> bool:
        """True for a GPU, integrated or not."""
        return self.kind in ("gpu", "igpu")

    @property
    def own_memory(self) -> bool:
        """True if its memory is not the machine's."""
        return self.kind == "gpu" and not self.name.startswith(_MEMORY_OF_THE_MACHINE)

    def __str__(self) -> str:
        return f"{self.description} ({self.name}, {self.free / 1e9:.1f} of {self.total / 1e9:.1f} GB free)"


def devices() -> list[Device]:
    """All devices, in ggml's order. Raises BackendUnavailable where llama.cpp cannot be loaded."""
    ggml = library()._lib
    count = _function(ggml, "count", ctypes.c_size_t)()
    return [_device(ggml, _function(ggml, "get", ctypes.c_void_p, ctypes.c_size_t)(index)) for index in range(count)]


def _device(ggml: Any, pointer: int) -> Device:
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    sizes = _function(ggml, "memory", None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    sizes(pointer, ctypes.byref(free), ctypes.byref(total))
    kind = _function(ggml, "type", ctypes.c_int, ctypes.c_void_p)(pointer)
    return Device(
        name=_function(ggml, "name", ctypes.c_char_p, ctypes.c_void_p)(pointer).decode(errors="replace"),
        description=_function(ggml, "description", ctypes.c_char_p, ctypes.c_void_p)(pointer).decode(errors="replace"),
        kind=_KINDS[kind] if kind < len(_KINDS) else "accelerator",
        free=free.value,
        total=total.value,
    )


def _function(ggml: Any, name: str, result: Any, *arguments: Any) -> Any:
    """A function `ggml_backend_dev_*`, which the Python bindings leave out."""
    function = getattr(ggml, f"ggml_backend_dev_{name}")
    function.restype, function.argtypes = result, list(arguments)
    return function


def layered(layers: int, found: Sequence[Device] | None = None) -> list[Device]:
    """The devices over which llama.cpp spreads so many layers; none means the processor alone.

    llama.cpp leaves integrated GPUs aside where there is another one.
    """
    if layers <= 0:
        return []
    able = [device for device in (devices() if found is None else found) if device.takes_layers]
    return [device for device in able if device.kind == "gpu"] or able[:1]


def where(layers: int) -> str:
    """The device of a model with so many layers on GPUs, in words."""
    used = layered(layers) or [device for device in devices() if device.kind == "cpu"][:1]
    return " + ".join(map(str, used)) or "processor"
