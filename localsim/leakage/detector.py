"""The leakage detector: does an utterance disclose a private fact, hint at it or neither, and by which words?

It covers quotations, other statements, short answers to a question, numbers in words, paraphrases that sentence
embeddings recognise, and leaks by an agent that could not know the fact. It does not cover irony, inference over
several turns, or facts that only an outsider can put together. Its accuracy on labelled pairs is stored with its
weights (`accuracy`).
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from localsim.errors import InvalidInput
from localsim.leakage import curve, features, wording
from localsim.leakage.curve import DEFAULT_SHARE, Point
from localsim.leakage.features import Encode, Wanted
from localsim.leakage.pairs import Label, Pair
from localsim.leakage.quotes import QUOTED, quotes
from localsim.leakage.reader import FILE, PairReader
from localsim.store.records import hash_of

VERSION = "10"
WEIGHTS = Path(__file__).with_name("weights.json")
BUILT_IN = "built-in"
"""Name of the weights that ship with localsim."""

_ARRAYS = ("mean", "scale", "coefficients", "intercepts")
_THRESHOLDS = "gate disclosed_from hint_from words_disclosed_from words_hint_from talk_from".split()
_NUMBERS = (*_THRESHOLDS, "cheap", "talk_slope", "talk_intercept", "talk_share", "talk_words", "talk_rival")
_AT = " at "
"""Between the name of a file and the share of false alarms, where this is not the file's own."""
_LEAST, _FAR = 1e-9, 500.0
"""The least probability and the largest log-odds that are calculated with."""
_SHORT, _LONG, _RIVAL = 5, 30, 3.0
"""Turns of fewer or more words count as so many, and so do the log-odds by which another fact fits a turn better."""


@dataclass(frozen=True)
class Weights:
    """The cheap classifier (linear, three classes, over standardised features) and the thresholds."""

    names: tuple[str, ...]
    mean: npt.NDArray[np.float64]
    scale: npt.NDArray[np.float64]
    coefficients: npt.NDArray[np.float64]
    """One row for each of none, hint, disclosed."""
    intercepts: npt.NDArray[np.float64]
    gate: float = 0.0
    """Cheap probability of `hint` or `disclosed` from which the reader looks at a pair."""
    disclosed_from: float = 0.5
    """Probability of `disclosed` from which a pair counts as disclosed."""
    hint_from: float = 0.5
    """Probability of `hint` or `disclosed` from which it is at least a hint."""
    words_disclosed_from: float = 0.5
    """The same as `disclosed_from` for the cheap classifier alone."""
    words_hint_from: float = 0.5
    """The same as `hint_from` for the cheap classifier alone."""
    cheap: float = 0.5
    """Weight of the cheap classifier beside the reader, in a product of their probabilities."""
    talk_slope: float = 1.0
    """Turns the log-odds of a pair into those of a turn in a conversation, where most facts stay private."""
    talk_intercept: float = 0.0
    talk_words: float = 0.0
    """What a turn's log-odds gain with the logarithm of its words: a short turn seldom tells a fact."""
    talk_rival: float = 0.0
    """What they lose for each by which another fact of the conversation fits the turn better."""
    talk_from: float = 0.5
    """Probability in a conversation from which a turn discloses a fact."""
    talk_share: float = DEFAULT_SHARE
    """Share of false alarms that `talk_from` allows among facts that never come out."""
    talk_curve: tuple[Point, ...] = ()
    """Thresholds for other shares, in rising order of the share."""
    accuracy: Mapping[str, Any] = field(default_factory=dict)
    """Measured on labels: parts `pairs` and `transcripts`. The built-in weights have not seen these facts; thresholds
    fitted to labels are measured on the same labels.
    """
    fitted: Mapping[str, Any] = field(default_factory=dict)
    """The labels that the thresholds were fitted to (`calibrate.calibrated`); empty for the built-in ones."""
    name: str = BUILT_IN
    """Name of the file; not written into it."""

    @classmethod
    def read(cls, path: Path = WEIGHTS) -> Weights:
        """Read weights from a JSON file. Raises InvalidInput if they do not fit this version of the detector."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise InvalidInput(f"cannot be read: {error}", where=str(path)) from error
        shipped = path == WEIGHTS
        return cls.parse(text, BUILT_IN if shipped else path.name, str(path), shipped=shipped)

    @classmethod
    def named(cls, value: str) -> Weights:
        """Return the weights that an option names: `built-in`, or the path of a file. Raises InvalidInput as `read`."""
        return cls.read(WEIGHTS if value == BUILT_IN else Path(value))

    @classmethod
    def parse(cls, text: str, name: str, where: str, *, shipped: bool = False) -> Weights:
        """Read weights from the text of a file. Raises InvalidInput as `read` does."""
        try:
            data = json.loads(text)
            parts: dict[str, Any] = {key: np.array(data[key], dtype=np.float64) for key in _ARRAYS}
            parts |= {key: float(data[key]) for key in _NUMBERS}
            parts["talk_curve"] = curve.parsed(data["talk_curve"])
            parts |= {"accuracy": dict(data["accuracy"]), "fitted": dict(data.get("fitted", {}))}
            weights = cls(names=tuple(data["names"]), name=name, **parts)
            made_for = data["version"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            hint = "localsim leakage calibrate LABELS.jsonl -o FILE makes such a file"
            raise InvalidInput(f"not weights of the leakage detector: {error}", where=where, hint=hint) from error
        weights._check(VERSION if shipped else made_for, where)
        return weights

    def _check(self, made_for: Any, where: str) -> None:
        """Raise InvalidInput for weights of other features or another version, and for numbers that decide nothing."""
        other, count = "not weights of the leakage detector", len(features.NAMES + features.CROSSED)
        shapes = [np.shape(getattr(self, name)) for name in _ARRAYS]
        wrong = ""
        if not all(map(_shares, self.accuracy.values())) or not _labels(self.fitted):
            wrong = f"{other}: accuracy or fitted is not in the form of a weights file"
        elif self.names != features.NAMES + features.CROSSED or shapes != [(count,), (count,), (3, count), (3,)]:
            wrong = "weights for other features"
        elif not all(np.isfinite(getattr(self, name)).all() for name in (*_ARRAYS, *_NUMBERS)):
            wrong = f"{other}: a number is not finite"
        elif not 0 < self.talk_share < 1 or self.talk_slope < 0:
            wrong = f"{other}: talk_share is no share, or talk_slope is below 0"
        elif made_for != VERSION:
            wrong = f"weights for version {made_for} of the leakage detector, this is version {VERSION}"
        if wrong:
            hint = "localsim leakage calibrate LABELS.jsonl -o FILE fits them again"
            raise InvalidInput(wrong, where=where, hint=hint)

    def write(self, path: Path) -> None:
        """Write the weights to a JSON file."""
        path.write_text(self.text, encoding="utf-8")

    @cached_property
    def text(self) -> str:
        """The text of their file."""
        data = {
            "version": VERSION,
            "names": list(self.names),
            **{name: np.round(getattr(self, name), 5).tolist() for name in _ARRAYS},
            **{name: round(getattr(self, name), 6) for name in _NUMBERS},
            "talk_curve": curve.as_rows(self.talk_curve),
            "accuracy": self.accuracy,
            **({"fitted": self.fitted} if self.fitted else {}),
        }
        return json.dumps(data, indent=1, allow_nan=False) + "\n"

    @property
    def hash(self) -> str:
        """The content hash of their text."""
        return hash_of(self.text)

    @property
    def built_in(self) -> bool:
        """True if they are the weights that ship with localsim, whatever their name."""
        return self.text == _default_weights().text

    @property
    def identity(self) -> str:
        """`built-in`, or name and short hash: two sets of thresholds never have the same."""
        return BUILT_IN if self.built_in else f"{self.name} {self.hash[:8]}"

    @property
    def version(self) -> str:
        """The version of findings decided by these weights: that of the detector, and the hash of own thresholds."""
        return VERSION if self.built_in else f"{VERSION}+{self.hash[:8]}"

    def at(self, share: float | None) -> Weights:
        """Return these weights with the threshold for conversations that allows this share of false alarms.

        The name then ends in ` at SHARE`, unless the share is the file's own. None changes nothing. Raises InvalidInput
        for a share outside the curve.
        """
        if share is None or math.isclose(share, self.talk_share):
            return self
        point = curve.between(self.talk_curve, share)
        measured = dict(self.accuracy)
        if "transcripts" in measured:
            measured["transcripts"] = measured["transcripts"] | curve.rates(vars(point))
        file = options_of(self.name)[0]
        own = math.isclose(share, self.fitted.get("sensitivity", DEFAULT_SHARE))
        name = file if own else f"{file}{_AT}{share:g}"
        return replace(self, talk_from=point.talk_from, talk_share=point.share, accuracy=measured, name=name)

    def talk_chance(self, probability: float) -> float:
        """Return the probability that a turn of a conversation discloses a fact, from that of the pair alone.

        A quotation stays as certain as its rule makes it.
        """
        if probability == QUOTED[2]:
            return probability
        return _chance(self.talk_intercept + self.talk_slope * odds_of(probability))

    def beside(self, probability: float, words: int, best: float) -> float:
        """Return the probability of a pair in view of its turn: the number of its words, and the highest probability
        of any fact there. A quotation stays what it is.
        """
        if probability in (0.0, QUOTED[2]):
            return probability
        length, rival = turn_of(probability, words, best)
        return _chance(odds_of(probability) + self.talk_words * length - self.talk_rival * rival)

    def probabilities(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return an array (pairs, 3): probabilities of none, hint, disclosed."""
        scores = ((rows - self.mean) / self.scale) @ self.coefficients.T + self.intercepts
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def odds_of(probability: float) -> float:
    """Return the log-odds of a probability."""
    kept = min(max(probability, _LEAST), 1 - _LEAST)
    return math.log(kept / (1 - kept))


def _chance(odds: float) -> float:
    return 1 / (1 + math.exp(-min(max(odds, -_FAR), _FAR)))


def turn_of(probability: float, words: int, best: float) -> tuple[float, float]:
    """Return what `talk_words` and `talk_rival` multiply: a turn's length, and by how much another fact fits better."""
    rival = max(0.0, odds_of(best) - odds_of(probability))
    return math.log(min(max(words, _SHORT), _LONG) / 10), min(_RIVAL, rival)


def options_of(name: str) -> tuple[str, float | None]:
    """Return the file and the share of false alarms that the name of weights holds (see `Weights.at`)."""
    file, _, share = name.rpartition(_AT)
    try:
        return (file, float(share)) if file else (name, None)
    except ValueError:
        return name, None


def _shares(part: Any) -> bool:
    """Return True for a table of counts and shares, which may hold further tables."""
    if isinstance(part, dict):
        return all(map(_shares, part.values()))
    return part is None or (isinstance(part, int | float) and (isinstance(part, int) or part <= 1) and part >= 0)


def _labels(fitted: Mapping[str, Any]) -> bool:
    """Return True for a description of labels that reports can print; it may be empty."""
    files, count, date = (fitted.get(name) for name in ("files", "labels", "date"))
    named = isinstance(files, list) and all(isinstance(file, str) for file in files)
    share = isinstance(fitted.get("sensitivity", DEFAULT_SHARE), float)
    return not fitted or (named and isinstance(count, int) and isinstance(date, str) and share)


@dataclass(frozen=True)
class Finding:
    """The detector's answer for one pair."""

    label: Label
    probability: float
    """Probability of `disclosed`, 0 to 1."""
    similarity: float
    """Cosine of the fact and the clause closest to it."""
    evidence: str
    """The words that disclose it; empty where nothing is disclosed."""


class LeakageDetector:
    """Classifies pairs in batches and two stages: cheap features for all pairs, the reader for those that may be leaks.
    A rule decides about quoted facts.

    Loads the embedding model with the first batch, unless `encode` is given. Without the reader it is much faster and
    much worse with denials and other people's stories.
    """

    def __init__(
        self,
        encode: Encode | None = None,
        weights: Weights | None = None,
        *,
        use_reader: bool = True,
        reader: Path = FILE,
    ) -> None:
        self._encode = encode
        self._use_reader = use_reader
        self._file = reader
        self._reader: PairReader | None = None
        self.weights = weights or _default_weights()

    def having(self, weights: Weights) -> LeakageDetector:
        """Return this detector with other weights; both share the models that are loaded."""
        other = copy.copy(self)
        other.weights = weights
        return other

    def classify(self, pairs: Sequence[Pair]) -> list[Finding]:
        """Return one finding for each pair, in order."""
        if not pairs:
            return []
        rows = self.rows(pairs)
        found = self._chances(pairs, rows)
        return [self._finding(pair, row, chances) for pair, row, chances in zip(pairs, rows, found, strict=True)]

    def chances(self, pairs: Sequence[Pair]) -> npt.NDArray[np.float64]:
        """Return an array (pairs, 3): probabilities of none, hint, disclosed."""
        return self._chances(pairs, self.rows(pairs))

    def rows(self, pairs: Sequence[Pair]) -> npt.NDArray[np.float32]:
        """Return the features that the cheap classifier reads."""
        if self._encode is None:
            from localsim.leakage.embeddings import Embedder

            self._encode = Embedder().encode
        return features.crossed(features.matrix(pairs, self._encode))

    def _chances(self, pairs: Sequence[Pair], rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        found = self.weights.probabilities(rows)
        quoted = np.array([quotes(pair) for pair in pairs], dtype=np.bool_)
        if self._use_reader:
            read = np.full(found.shape, np.nan)
            passed = np.flatnonzero((found[:, 1] + found[:, 2] >= self.weights.gate) & ~quoted)
            if len(passed):
                read[passed] = self.read([pairs[int(place)] for place in passed])
            found = combined(found, read, self.weights.cheap)
        found[quoted] = QUOTED
        return found

    def read(self, pairs: Sequence[Pair]) -> npt.NDArray[np.float32]:
        """Return the reader's log-probabilities (pairs, 3) of none, hint and disclosed."""
        if self._reader is None:
            self._reader = PairReader(self._file)
        return self._reader.read(pairs)

    def _finding(self, pair: Pair, row: npt.NDArray[np.float32], chances: npt.NDArray[np.float64]) -> Finding:
        _, hint, disclosed = chances
        weights = self.weights
        thresholds = (weights.disclosed_from, weights.hint_from)
        if not self._use_reader:
            thresholds = (weights.words_disclosed_from, weights.words_hint_from)
        label: Label = "none"
        if disclosed >= thresholds[0]:
            label = "disclosed"
        elif hint + disclosed >= thresholds[1]:
            label = "hint"
        similarity = max(row[features.NAMES.index("cos_clause")], row[features.NAMES.index("cos_clause_person")])
        shown = label != "none" or weights.talk_chance(float(disclosed)) >= weights.talk_from
        return Finding(label, float(disclosed), float(similarity), evidence(pair) if shown else "")


def combined(cheap: npt.NDArray[np.float64], read: npt.NDArray[np.float64], weight: float) -> npt.NDArray[np.float64]:
    """Return the probabilities (pairs, 3) of the cheap classifier and the reader together.

    `read` are log-probabilities, NaN for a pair that the gate kept from the reader. Such pairs keep their order, far
    below the pairs that the reader judges.
    """
    found = np.column_stack([1 - cheap[:, 1:].sum(1) / 100, cheap[:, 1:] / 100])
    seen = ~np.isnan(read[:, 0])
    joint = np.exp(read[seen] + weight * np.log(cheap[seen]))
    found[seen] = joint / joint.sum(axis=1, keepdims=True)
    return found


def evidence(pair: Pair) -> str:
    """Return the clause that shares most words with the fact, or the whole utterance if none shares any."""
    texts = Wanted.of(pair)
    wanted = wording.content_words(pair.fact)
    best = max(texts.clauses, key=lambda clause: len(wanted & wording.content_words(clause)))
    return best if wanted & wording.content_words(best) else pair.utterance


@lru_cache(maxsize=1)
def _default_weights() -> Weights:
    return Weights.read()
