"""The types of weights that localsim converts models to, as llama.cpp numbers them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class WeightType:
    """A type of weights. https://github.com/ggml-org/llama.cpp/blob/master/include/llama.h"""

    number: int
    """llama_ftype."""
    output: int | None = None
    """ggml_type of the output matrix; None lets llama.cpp choose: Q6_K where the other weights have up to 5 bits."""


TYPES: Mapping[str, WeightType] = {
    "Q8_0": WeightType(7),
    "Q5_0": WeightType(8),
    "Q4_0": WeightType(2),
    "Q4_0-Q8_0": WeightType(2, output=8),
}
"""Name -> type. `Q4_0-Q8_0` has the output matrix in Q8_0: with a large vocabulary it is a fifth of all weights."""
