"""A GGUF file whose weights OpenVINO evaluates; vocabulary, chat template, grammar and samplers are llama.cpp's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from localsim.backends.llama.engine import Engine
from localsim.backends.llama.lib import LlamaModel
from localsim.backends.llama.lib import build_description as llama_build
from localsim.backends.openvino.network import SETTINGS, Network, build_description
from localsim.backends.openvino.paged import Paged, PagedCache
from localsim.backends.openvino.weights import Weights


class OpenVinoModel(LlamaModel):
    """A file's vocabulary and its compiled network, with an adapter merged in.

    Raises BackendUnavailable where OpenVINO is not installed or cannot run the model, ModelMissing where the file is
    damaged.
    """

    def __init__(
        self, path: Path, *, threads: int, adapter: Path | None = None, settings: Mapping[str, Any] = SETTINGS
    ) -> None:
        super().__init__(path, vocab_only=True)
        self.threads = threads
        self.network = Network(Weights(path, adapter), threads, settings)

    def free(self) -> None:
        super().free()
        self.__dict__.pop("network", None)  # a backend is part of cycles, which Python clears late


class OpenVinoBackend(Engine[Paged]):
    """A model that OpenVINO evaluates, for `sequences` sessions at a time; `caches` of them can be kept whole."""

    def __init__(self, model: OpenVinoModel, *, sequences: int, context: int, caches: int, **more: Any) -> None:
        facts = {
            "kind": "openvino",
            "sequences": sequences,
            "threads": model.threads,
            "precision": model.network.precision,
            "build": f"{build_description()}; {llama_build()}",
        }
        paged = PagedCache(model.network, sequences=sequences, context=context, caches=caches)
        super().__init__(model, paged, facts, context=context, **more)
