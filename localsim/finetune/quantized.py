"""Training with the quantization in the loop: the forward pass sees weights as a Q4_0 file will hold them.

The gradient passes the rounding as if it were not there (Bengio et al. 2013, https://arxiv.org/abs/1308.3432). Only a
share of the layers is rounded in each step, so that the weights also stay good as they are (Fan et al. 2021,
https://arxiv.org/abs/2004.07320).
"""

from __future__ import annotations

import random
from typing import Any

BLOCK, LOWEST = 32, -8
"""Q4_0: blocks of 32 weights with one scale in 16 bits, and whole numbers from -8 to 7.
Format: https://github.com/ggml-org/ggml/blob/master/src/ggml-quants.c (quantize_row_q4_0_ref)
"""


def q4_0(weights: Any) -> Any:
    """Return a tensor (rows x columns, columns a multiple of 32) as Q4_0 holds it, in its own number format."""
    blocks = weights.detach().float().reshape(-1, BLOCK)
    farthest = blocks.gather(1, blocks.abs().argmax(1, keepdim=True))
    scale = farthest / LOWEST
    inverse = scale.reciprocal().masked_fill(scale == 0, 0.0)
    numbers = (blocks * inverse + 8.5).floor().clamp(0, 15) - 8
    return (numbers * scale.half().float()).reshape(weights.shape).to(weights.dtype)


class InTheLoop:
    """Rounds the layers of a model with LoRA: in training a random `share` of them, in evaluation all or none."""

    def __init__(self, model: Any, share: float) -> None:
        """Replace the forward pass of each layer that has LoRA."""
        self.share = share
        self.all = False
        """True if an evaluation rounds all layers; it rounds none otherwise."""
        self.draws = random.Random(0)
        """Draws the layers of a step."""
        for layer in model.modules():
            if getattr(layer, "lora_A", None):
                self._replace(layer)

    def _replace(self, layer: Any) -> None:
        plain, (name,) = layer.forward, layer.active_adapters

        def forward(inputs: Any) -> Any:
            rounded = self.draws.random() < self.share if layer.training else self.all
            if not rounded:
                return plain(inputs)
            base = layer.base_layer.weight
            change = layer.lora_B[name].weight @ layer.lora_A[name].weight
            whole = base.float() + layer.scaling[name] * change.float()
            seen = whole + (q4_0(whole) - whole).detach()
            result = inputs @ seen.to(inputs.dtype).T
            return result if layer.base_layer.bias is None else result + layer.base_layer.bias

        layer.forward = forward
