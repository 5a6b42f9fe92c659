"""Training with weights as a Q4_0 file holds them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from localsim.finetune.quantized import q4_0
from localsim.finetune.trainer import Settings, Trainer, load_base
from tests import tiny_model
from tests.test_trainer import row_for


def test_weights_are_rounded_as_gguf_rounds_them() -> None:
    """Random rows, a row of zeros, and a row whose largest weight is positive."""
    import gguf
    import torch

    weights = np.random.default_rng(1).normal(size=(40, 96)).astype(np.float32)
    weights[0] = 0
    weights[1, :32] = np.linspace(-1, 2, 32)
    kind = gguf.GGMLQuantizationType.Q4_0
    expected = gguf.quants.dequantize(gguf.quants.quantize(weights, kind), kind)
    found = q4_0(torch.from_numpy(weights)).numpy()
    assert np.array_equal(found, expected)
    assert np.abs(found - weights).max() > 0.05


@pytest.mark.model
def test_a_model_that_learns_rounded_weights_is_better_when_they_are_rounded(tmp_path: Path) -> None:
    """Both learn the same row; only one saw rounded weights. Without rounding the two are about as good."""
    base = tiny_model.write(tmp_path / "tiny.gguf", tiny_model.FAMILIES["llama-3"])
    row = row_for(base)
    losses = {}
    for share in (1e-9, 1.0):
        settings = Settings(rank=8, alpha=16, learning_rate=2e-2, epochs=60, batch_tokens=64, rounded=share)
        trainer = Trainer(load_base(base, bf16=False), [row], [row], settings)
        for batch in trainer.order:
            trainer.step(batch)
        losses[share] = trainer.validation(), trainer.validation(rounded=True)
    assert losses[1.0][1] < losses[1e-9][1]
