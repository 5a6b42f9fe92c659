"""Vectors of meaning for memories that are ranked by it (`Recall.means`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from localsim.conversation.memories import Encode
from localsim.conversation.scenario import Scenario


def encode_of(scenario: Scenario) -> Encode | None:
    """Return what compares meanings in an episode of a scenario; None if nothing has to."""
    return encode if scenario.recall.means and any(agent.memories for agent in scenario.agents) else None


def encode(texts: Sequence[str]) -> Sequence[Sequence[float]]:
    """Return a unit vector for each text. Raises ModelMissing without the embedding model."""
    return [_vector(text) for text in texts]


@lru_cache(maxsize=20_000)
def _vector(text: str) -> Sequence[float]:
    found: list[float] = _embedder().encode([text])[0].tolist()
    return found


@cache
def _embedder() -> Any:
    from localsim.leakage.embeddings import Embedder

    return Embedder()
