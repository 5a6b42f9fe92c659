"""Sentence embeddings from a folder on this machine; the only module that imports sentence_transformers.

Never reaches for a model hub: the folder comes from the registry, and the libraries are told to stay offline before
they are imported.
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
    """The embedding model's transformer (a fresh one, which may be changed) and its tokenizer, for the pair reader."""
    model = Embedder()._model
    return model[0].auto_model, model.tokenizer


class Embedder:
    """all-MiniLM-L6-v2 (https://arxiv.org/abs/1908.10084 describes the method), loaded when first made.

    Raises ModelMissing where the model is not here.
    """

    def __init__(self, folder: Path | None = None) -> None:
        place = folder or embedding_folder()
        os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
        from sentence_transformers import SentenceTransformer

        self._model = SentenceTransformer(str(place), device="cpu", local_files_only=True)

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Unit vectors, one row of DIMENSIONS values for each text, so that a dot product is the cosine."""
        if not texts:
            return np.zeros((0, DIMENSIONS), dtype=np.float32)
        found = self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(found, dtype=np.float32)
