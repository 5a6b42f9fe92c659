"""Which language a text is in, as py3langid tells (byte n-grams, offline); the one place that imports it.

On the talks that come along (2,459 turns; English, French, Dutch, German, Italian, Spanish) it takes 1 of 1,747 English
turns for another language, and that one is German; of 182 turns in the others it finds 171.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from localsim.conversation.scenario import Scenario

LEAST_BYTES = 16
"""Bytes of letters that a text must have; names and exclamations tell no language."""
SURE = 0.5
"""Probability from which a turn counts as being in another language: between near ones the best guess often errs."""


def language_of(scenario: Scenario) -> str | None:
    """The language that the scenario names, else that of its setting and goals; None where neither is known."""
    identifier = _identifier()
    if scenario.language is not None:
        return scenario.language if scenario.language in identifier.labels else None
    text = " ".join([scenario.setting, *(agent.goal for agent in scenario.agents)])
    return str(identifier.classify(text)[0]) if long_enough(text) else None


def in_others(texts: Iterable[str], language: str) -> list[bool]:
    """Of each text, whether it is in another language."""
    guesses = (_identifier().classify(text) for text in texts)
    return [guess != language and sure >= SURE for guess, sure in guesses]


def long_enough(text: str) -> bool:
    """Whether a text has letters enough to tell its language."""
    return len("".join(char for char in text if char.isalpha()).encode("utf-8", "replace")) >= LEAST_BYTES


@lru_cache(maxsize=1)
def _identifier() -> Any:
    """The model, loaded once: half a second and 100 MB."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
