"""Sentence embeddings from a folder on this machine; the only module that imports sentence_transformers.

It never contacts a model hub: the folder comes from the registry, and the libraries are set offline before they are
imported.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from localsim.errors import ModelMissing
from localsim.models.registry import embedding_folder

DIMENSIONS = 384


def encoder_and_tokenizer() -> tuple[Any, Any]:
    """Return a new copy of the embedding model's transformer, which may be changed, and its tokenizer."""
    model = Embedder()._model
    return model[0].auto_model, model.tokenizer


class Embedder:
    """all-MiniLM-L6-v2 (https://arxiv.org/abs/1908.10084 describes the method), loaded by the constructor.

    Raises ModelMissing if the model is not installed or damaged.
    """

    def __init__(self, folder: Path | None = None) -> None:
        place = folder or embedding_folder()
        os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
        from safetensors import SafetensorError
        from sentence_transformers import SentenceTransformer

        try:
            self._model = SentenceTransformer(str(place), device="cpu", local_files_only=True)
        except (OSError, ValueError, LookupError, TypeError, AttributeError, SafetensorError) as error:
            problem = f"the embedding model is damaged: {' '.join(str(error).split())[:200]}"
            hint = "delete this folder, then: localsim models pull starter"
            raise ModelMissing(problem, where=str(place), hint=hint) from error

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors, one row of DIMENSIONS values for each text; their dot product is the cosine."""
        if not texts:
            return np.zeros((0, DIMENSIONS), dtype=np.float32)
        found = self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(found, dtype=np.float32)
