"""Cheap features of a pair: embeddings compared clause by clause, and the words that turn a meaning round.

Plain cosine cannot distinguish a statement from its denial, or from the same words about another person; each group
below answers one of its failures. Groups have names, so that an ablation can drop them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from localsim.leakage import wording
from localsim.leakage.pairs import Pair

Vectors = npt.NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]

SHORT = 9
"""A reply of at most this many words is read together with the turn before it."""

GROUPS: dict[str, tuple[str, ...]] = {
    "cosine": ("cos_fact", "cos_person"),
    "clauses": ("cos_clause", "cos_clause_person", "cos_rest"),
    "previous turn": ("cos_joined", "cos_previous", "short", "after_question"),
    "overlap": ("overlap", "overlap_clause", "overlap_joined", "overlap_previous"),
    "numbers": ("numbers", "number_match", "number_conflict"),
    "polarity": ("negation", "negation_differs", "denial", "assent", "refusal"),
    "hypothesis": ("question", "hypothetical"),
    "person": ("owner_speaks", "first", "second", "other", "other_only", "owner_named"),
}
NAMES: tuple[str, ...] = tuple(name for group in GROUPS.values() for name in group)
STYLE: tuple[str, ...] = ("short", "after_question", "negation", "denial", "assent", "refusal", "question",
                          "hypothetical", "owner_speaks", "first", "second", "other")  # fmt: skip
"""Features that use the fact only to choose a clause, if at all; alone they should be near chance."""


_CROSSES = (
    *(("cos_clause_person", name) for name in (
        "negation_differs", "denial", "question", "hypothetical", "other_only", "number_match", "number_conflict",
        "owner_speaks", "cos_clause_person", "overlap_clause",
    )),
    *(("cos_previous", name) for name in ("assent", "refusal", "short", "after_question")),
    ("overlap", "owner_speaks"),
    ("question", "owner_speaks"),
)  # fmt: skip
CROSSED: tuple[str, ...] = tuple(f"{one} x {other}" for one, other in _CROSSES)
"""Products: a veto counts only where the clause matches, an assent only where the question did."""


def crossed(rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return rows of NAMES followed by their products."""
    place = {name: number for number, name in enumerate(NAMES)}
    products = [rows[:, place[one]] * rows[:, place[other]] for one, other in _CROSSES]
    return np.column_stack([rows, *products]).astype(np.float32)


@dataclass(frozen=True)
class Wanted:
    """The texts of a pair whose vectors are compared."""

    fact: str
    person: str
    utterance: str
    clauses: tuple[str, ...]
    previous: str
    joined: str

    @classmethod
    def of(cls, pair: Pair) -> Wanted:
        """Return the texts of a pair."""
        previous = pair.context[-1].partition(": ")[2] if pair.context else ""
        short = len(pair.utterance.split()) <= SHORT
        return cls(
            fact=pair.fact,
            person=wording.person(pair.fact, pair.owner, pair.speaker),
            utterance=pair.utterance,
            clauses=wording.clauses(pair.utterance),
            previous=previous,
            joined=f"{previous} {pair.utterance}" if previous and short else pair.utterance,
        )

    def texts(self) -> tuple[str, ...]:
        """Return all texts."""
        return (self.fact, self.person, self.utterance, *self.clauses, self.previous, self.joined)


def matrix(pairs: Sequence[Pair], encode: Encode) -> npt.NDArray[np.float32]:
    """Return one row of NAMES for each pair. `encode` returns unit vectors, one row for each text."""
    wanted = [Wanted.of(pair) for pair in pairs]
    texts = list(dict.fromkeys(text for one in wanted for text in one.texts()))
    place = {text: number for number, text in enumerate(texts)}
    vectors = encode(texts)
    rows = [_row(pair, one, vectors, place) for pair, one in zip(pairs, wanted, strict=True)]
    return np.array(rows, dtype=np.float32).reshape(len(pairs), len(NAMES))


def _row(pair: Pair, texts: Wanted, vectors: Vectors, place: dict[str, int]) -> list[float]:
    def cosine(one: str, other: str) -> float:
        return float(vectors[place[one]] @ vectors[place[other]]) if one and other else 0.0

    by_clause = [max(cosine(texts.fact, part), cosine(texts.person, part)) for part in texts.clauses]
    best = int(np.argmax(by_clause))
    rest = sorted(by_clause)[-2] if len(by_clause) > 1 else 0.0
    clause = texts.clauses[best]
    fact_words = wording.content_words(pair.fact) - wording.content_words(pair.owner)

    def overlap(text: str) -> float:
        return len(fact_words & wording.content_words(text)) / max(1, len(fact_words))

    said, told = wording.words(clause), wording.words(pair.fact)
    start = wording.words(pair.utterance)[:3]
    fact_numbers, said_numbers = wording.numbers(pair.fact), wording.numbers(texts.joined)
    negated = wording.count(said, wording.NEGATIONS) % 2
    first, other = wording.count(said, wording.FIRST) > 0, wording.count(said, wording.OTHERS) > 0
    second = wording.count(said, wording.SECOND) > 0
    about_owner = first if pair.owner == pair.speaker else second or pair.owner.split()[0].lower() in said
    values = {
        "cos_fact": cosine(texts.fact, texts.utterance),
        "cos_person": cosine(texts.person, texts.utterance),
        "cos_clause": cosine(texts.fact, clause),
        "cos_clause_person": cosine(texts.person, clause),
        "cos_rest": rest,
        "cos_joined": max(cosine(texts.person, texts.joined), cosine(texts.fact, texts.joined)),
        "cos_previous": max(cosine(texts.fact, texts.previous), cosine(texts.person, texts.previous)),
        "short": len(pair.utterance.split()) <= SHORT,
        "after_question": texts.previous.rstrip().endswith("?"),
        "overlap": overlap(pair.utterance),
        "overlap_clause": overlap(clause),
        "overlap_joined": overlap(texts.joined),
        "overlap_previous": overlap(texts.previous),
        "numbers": bool(fact_numbers),
        "number_match": bool(fact_numbers & said_numbers),
        "number_conflict": bool(fact_numbers and said_numbers and not fact_numbers & said_numbers),
        "negation": negated,
        "negation_differs": negated != wording.count(told, wording.NEGATIONS) % 2,
        "denial": wording.count(said, wording.DENIALS) > 0,
        "assent": wording.count(start, wording.ASSENTS) > 0,
        "refusal": wording.count(start, wording.REFUSALS) > 0,
        "question": "?" in pair.utterance[pair.utterance.find(clause) :][: len(clause) + 1],
        "hypothetical": wording.count(said, wording.HYPOTHETICALS) > 0,
        "owner_speaks": pair.owner == pair.speaker,
        "first": first,
        "second": second,
        "other": other,
        "other_only": other and not about_owner,
        "owner_named": about_owner,
    }
    return [float(values[name]) for name in NAMES]
