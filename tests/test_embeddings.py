"""The embedding model: real vectors, offline."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from localsim.errors import ModelMissing
from localsim.leakage.embeddings import DIMENSIONS, Embedder
from localsim.leakage.reader import FILE, PairReader
from localsim.models.registry import embedding_folder


@pytest.mark.model
def test_near_meanings_are_near() -> None:
    vectors = Embedder().encode(
        ["The cat sleeps on the sofa.", "A cat is asleep on the couch.", "Interest rates rose."]
    )
    assert vectors.shape == (3, DIMENSIONS)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    near, far = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    assert near > 0.6 > far + 0.3
    assert Embedder().encode([]).shape == (0, DIMENSIONS)


@pytest.mark.model
def test_what_is_damaged_is_one_error_with_its_place(tmp_path: Path) -> None:
    whole = embedding_folder()
    for name in ("modules.json", "config.json", "model.safetensors", "tokenizer.json"):
        shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
        (tmp_path / name).write_bytes((whole / name).read_bytes()[:99])
        with pytest.raises(ModelMissing, match="damaged") as raised:
            Embedder(tmp_path)
    assert raised.value.where == str(tmp_path) and "models pull" in str(raised.value.hint)
    for content in (b"", FILE.read_bytes()[:9999], b"version https://git-lfs.github.com/spec/v1", None):
        file = tmp_path / "reader.npz"
        file.unlink(missing_ok=True) if content is None else file.write_bytes(content)
        with pytest.raises(ModelMissing, match="missing or damaged"):
            PairReader(file)
