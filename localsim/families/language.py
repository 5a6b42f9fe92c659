"""The language of a text, by its common words and by py3langid (byte n-grams, offline; imported here alone).

py3langid alone takes names and the shorthand of pupils for other languages, so it is believed only if the common words
do not speak against it. Of the utterances of `scenarios/leakage/*.pairs.jsonl` that are long enough, all 16,324 English
ones are English, and of 336 German, Spanish, Italian, French and Dutch ones 332 are not (py3langid alone: 5 errors, and
332). The English words were chosen from these utterances, the others were not. Shorter lines: `tests/test_language.py`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Turn
from localsim.families.common_words import BY_LANGUAGE

LEAST_BYTES = 16
"""Bytes of letters that a text must have, because names and exclamations show no language."""
SURE = 0.5
"""Least probability for another language: between similar languages the best guess is often wrong."""
CERTAIN = 0.9
"""Least probability where few common words or none speak for the other language."""
_SEVERAL = 2
"""So many words that are clearly foreign show another language, whatever py3langid says."""
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


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


@lru_cache(maxsize=1024)
def is_foreign(text: str, language: str, known: frozenset[str] = frozenset(), least: int = 1) -> bool:
    """Return True if a text is in another language than `language` ('': unknown).

    Names, hobbies and companies show no language: those of a scenario are `known` (`words_in`). `least`: how many
    words must be clearly foreign, if the words of both languages are listed.
    """
    if not language:
        return False
    every = _words(text)
    said = [word for word in every if not word.forms & known]
    if language in _LISTED:
        others = [_clear(every, said, language, other) for other in _LISTED if other != language]
        clear, own = max(others, key=lambda counts: counts[0] - counts[1])
        if clear >= _SEVERAL and clear > own:
            return True
    rest = " ".join(word.written for word in said)
    if not long_enough(rest):
        return False
    guess, sure = _identifier().classify(rest)
    if guess == language or sure < SURE:
        return False
    if language not in _LISTED:
        return True
    if guess in _LISTED:
        clear, own = _clear(every, said, language, guess)
        return sure >= CERTAIN and clear >= least and clear > own
    has_own = any(word.forms & _LISTED[language] for word in every)
    return not has_own and sure >= (CERTAIN if rest.isascii() else SURE)


def has_foreigner(turns: Sequence[Turn], scenario: Scenario) -> bool:
    """Return True if the words of one agent, taken together, are in another language than those of the scenario.

    A talk of people is thrown away for this, so several words must be clearly foreign, and more of the agent's turns
    than are in the scenario's language; a single line among three or more is not enough.
    """
    language, known = language_of(scenario) or "", words_in(scenario)

    def lead(name: str) -> int:
        texts = [turn.action.text for turn in turns if turn.speaker == name]
        foreign = [is_foreign(text, language, known) for text in texts]
        own = (not other and _is_own(text, language) for text, other in zip(texts, foreign, strict=True))
        return max(1, sum(foreign)) - sum(own)

    together = (name for name in scenario.names if is_foreign(words_of(turns, name), language, known, _SEVERAL))
    return any(lead(name) > 0 for name in together if len(turns) < 3 or len(_lines(turns, name)) > 1)


def _lines(turns: Sequence[Turn], name: str) -> list[str]:
    """The turns of a speaker that have more than one word: "ok" and a name are in no language."""
    return [turn.action.text for turn in turns if turn.speaker == name and len(_words(turn.action.text)) > 1]


def _is_own(text: str, language: str) -> bool:
    return sum(bool(word.forms & _LISTED.get(language, frozenset())) for word in _words(text)) >= _SEVERAL


def words_in(scenario: Scenario) -> frozenset[str]:
    """Return the words of a scenario's names, setting, goals, secrets and facts."""
    texts = [scenario.setting]
    for agent in scenario.agents:
        texts += [agent.name, agent.goal, agent.secret or "", *(fact.text for fact in agent.facts)]
    return frozenset(form for word in _words(" ".join(texts)) for form in word.forms)


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


@dataclass(frozen=True)
class _Word:
    """A word of a text."""

    written: str
    forms: frozenset[str]
    """In lower case without accents: whole without apostrophes, and its parts between them (`j'ai`: jai, j, ai)."""


def _words(text: str) -> list[_Word]:
    return [_Word(word, _forms(word)) for word in _WORD.findall(text.replace("’", "'"))]


def _forms(word: str) -> frozenset[str]:
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    return frozenset({plain.replace("'", ""), *plain.split("'")})


def _clear(every: Sequence[_Word], said: Sequence[_Word], language: str, other: str) -> tuple[int, int]:
    """Return how many words of `said` are clearly in the other language, and how many of `every` in the own one."""
    own, foreign = _LISTED[language], _LISTED[other]
    clear = sum(bool(word.forms & foreign) and not word.forms & own for word in said)
    return clear, sum(bool(word.forms & own) and not word.forms & foreign for word in every)


_LISTED = {
    language: frozenset(form for word in listed.split() for form in _forms(word) if len(form) > 1 or language == "en")
    for language, listed in BY_LANGUAGE.items()
}
"""Language -> its common words, as the forms of `_Word`. Of single letters only English ones are words of chats."""
