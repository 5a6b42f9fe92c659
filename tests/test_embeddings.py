"""The embedding model: real vectors, offline."""

from __future__ import annotations

import numpy as np
import pytest

from localsim.leakage.embeddings import DIMENSIONS, Embedder


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
