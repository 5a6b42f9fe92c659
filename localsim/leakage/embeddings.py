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

from localsim.models.registry import embedding_folder

DIMENSIONS = 384


def encoder_and_tokenizer() -> tuple[Any, Any]:
    """Return a new copy of the embedding model's transformer, which may be changed, and its tokenizer."""
    model = Embedder()._model
    return model[0].auto_model, model.tokenizer


class Embedder:
    """all-MiniLM-L6-v2 (https://arxiv.org/abs/1908.10084 describes the method), loaded by the constructor.

    Raises ModelMissing if the model is not installed.
    """

    def __init__(self, folder: Path | None = None) -> None:
        place = folder or embedding_folder()
        os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
        from sentence_transformers import SentenceTransformer

        self._model = SentenceTransformer(str(place), device="cpu", local_files_only=True)

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return unit vectors, one row of DIMENSIONS values for each text; their dot product is the cosine."""
        if not texts:
            return np.zeros((0, DIMENSIONS), dtype=np.float32)
        found = self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(found, dtype=np.float32)
