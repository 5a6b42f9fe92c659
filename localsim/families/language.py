"""The language of a text, by py3langid (byte n-grams, offline); the only module that imports it.

On the bundled conversations (2,459 turns; English, French, Dutch, German, Italian, Spanish) it labels 1 of 1,747
English turns as another language, and that turn is German. Of 182 turns in the other languages it finds 171.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Turn

LEAST_BYTES = 16
"""Bytes of letters that a text must have, because names and exclamations show no language."""
SURE = 0.5
"""Least probability for another language: between similar languages the best guess is often wrong."""


def language_of(scenario: Scenario) -> str | None:
    """Return the language that the scenario names, else that of its setting and goals; None if neither is known."""
    identifier = _identifier()
    if scenario.language is not None:
        return scenario.language if scenario.language in identifier.labels else None
    text = " ".join([scenario.setting, *(agent.goal for agent in scenario.agents)])
    return _classified(text) if long_enough(text) else None


@lru_cache(maxsize=256)
def _classified(text: str) -> str:
    return str(_identifier().classify(text)[0])


def in_others(texts: Iterable[str], language: str) -> list[bool]:
    """Return for each text True if it is in another language."""
    guesses = (_identifier().classify(text) for text in texts)
    return [guess != language and sure >= SURE for guess, sure in guesses]


@lru_cache(maxsize=1024)
def is_foreign(words: str, language: str) -> bool:
    """Return True if all the words of a speaker, one text, are in another language than `language` ('': unknown)."""
    return bool(language) and long_enough(words) and in_others([words], language)[0]


def has_foreigner(turns: Sequence[Turn], scenario: Scenario) -> bool:
    """Return True if all the words of one agent are in another language than those of the scenario."""
    language = language_of(scenario) or ""
    return any(is_foreign(words_of(turns, name), language) for name in scenario.names)


def words_of(turns: Iterable[Turn], name: str) -> str:
    """Return all words of a speaker, as one text."""
    return " ".join(turn.action.text for turn in turns if turn.speaker == name)


def long_enough(text: str) -> bool:
    """Return True if a text has enough letters to show its language."""
    return len("".join(char for char in text if char.isalpha()).encode("utf-8", "replace")) >= LEAST_BYTES


@lru_cache(maxsize=1)
def _identifier() -> Any:
    """Load the model once; it takes half a second and 100 MB."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
