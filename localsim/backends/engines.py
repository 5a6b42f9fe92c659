"""Which library evaluates a model: llama.cpp, or OpenVINO where the model's name asks for it."""

from __future__ import annotations

from typing import Any

from localsim.backends.evaluator import Evaluator
from localsim.backends.llama import probe
from localsim.backends.llama.cache import SessionCache
from localsim.backends.llama.lib import LlamaModel
from localsim.backends.openvino import network
from localsim.backends.openvino.model import OpenVinoModel
from localsim.backends.openvino.paged import PagedCache
from localsim.models.registry import ModelFile


def ensure_works(file: ModelFile) -> None:
    """Raise BackendUnavailable where the library does not work with a model, ModelMissing for a damaged file.

    OpenVINO chooses its machine code by the processor, so only llama.cpp, which is compiled for one, is tried.
    """
    if file.engine == "openvino":
        network.library()
    else:
        probe.ensure_works(file.path, file.sha256)


def build_stamp(file: ModelFile) -> str:
    """A text that changes with the version or the build of the library that evaluates a model."""
    return network.build_description() if file.engine == "openvino" else probe.build_stamp()


def load(file: ModelFile, *, threads: int, gpu_layers: int = 0) -> LlamaModel:
    """Load a model for its library. Raises BackendUnavailable or ModelMissing."""
    if file.engine == "openvino":
        return OpenVinoModel(file.path, threads=threads, adapter=file.adapter)
    return LlamaModel(file.path, gpu_layers=gpu_layers, adapter=file.adapter)


def evaluator_of(model: LlamaModel, *, sequences: int, context: int, threads: int, idle: int = 1) -> Evaluator[Any]:
    """Caches of a loaded model for `sequences` sessions at a time, and room for so many `idle` ones.

    llama.cpp keeps any number of idle caches. Raises BackendUnavailable.
    """
    if isinstance(model, OpenVinoModel):
        return PagedCache(model.network, sequences=sequences, context=context, caches=sequences + idle)
    return SessionCache(model, sequences=sequences, context=context, threads=threads)
