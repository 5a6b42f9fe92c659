"""The leakage detector: does an utterance disclose a private fact, hint at it or neither, and by which words?

It covers statements, short answers to a question, numbers in words, paraphrases that sentence embeddings recognise, and
leaks by an agent that could not know the fact. It does not cover irony, inference over several turns, or facts that
only an outsider can put together. Its accuracy on labelled pairs is stored with its weights (`accuracy`).
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from localsim.errors import InvalidInput
from localsim.leakage import features, wording
from localsim.leakage.features import Encode, Wanted
from localsim.leakage.pairs import Label, Pair
from localsim.leakage.reader import PairReader
from localsim.store.records import hash_of

VERSION = "5"
CHEAP = 0.5
"""Weight of the cheap classifier beside the reader, in a product of their probabilities."""
WEIGHTS = Path(__file__).with_name("weights.json")
BUILT_IN = "built-in"
"""Name of the weights that ship with localsim."""

_ARRAYS = ("mean", "scale", "coefficients", "intercepts")
_THRESHOLDS = (
    "gate",
    "disclosed_from",
    "hint_from",
    "words_disclosed_from",
    "words_hint_from",
    "talk_from",
    "talk_near_most",
)


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
    talk_from: float = 0.5
    """A second threshold in whole conversations, because a fact can be mistaken in many turns."""
    talk_near_most: float = 0.9
    """The least share of the highest probability that any turn of the conversation has for the fact."""
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
        return cls.parse(text, BUILT_IN if path == WEIGHTS else path.name, str(path))

    @classmethod
    def named(cls, value: str) -> Weights:
        """Return the weights that an option names: `built-in`, or the path of a file. Raises InvalidInput as `read`."""
        return cls.read(WEIGHTS if value == BUILT_IN else Path(value))

    @classmethod
    def parse(cls, text: str, name: str, where: str) -> Weights:
        """Read weights from the text of a file. Raises InvalidInput as `read` does."""
        try:
            data = json.loads(text)
            parts: dict[str, Any] = {key: np.array(data[key], dtype=np.float64) for key in _ARRAYS}
            parts |= {key: float(data[key]) for key in _THRESHOLDS}
            parts |= {"accuracy": dict(data["accuracy"]), "fitted": dict(data.get("fitted", {}))}
            weights = cls(names=tuple(data["names"]), name=name, **parts)
            made_for = data["version"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            hint = "localsim leakage calibrate LABELS.jsonl -o FILE makes such a file"
            raise InvalidInput(f"not weights of the leakage detector: {error}", where=where, hint=hint) from error
        weights._check(made_for, where)
        return weights

    def _check(self, made_for: Any, where: str) -> None:
        """Raise InvalidInput for weights of other features or another version, and for numbers that decide nothing."""
        hint = "localsim leakage calibrate LABELS.jsonl -o FILE fits them again"
        if not all(map(_shares, self.accuracy.values())) or not _labels(self.fitted):
            wrong = "not weights of the leakage detector: accuracy or fitted is not in the form of a weights file"
            raise InvalidInput(wrong, where=where, hint=hint)
        count = len(features.NAMES + features.CROSSED)
        shapes = [np.shape(getattr(self, name)) for name in _ARRAYS]
        if self.names != features.NAMES + features.CROSSED or shapes != [(count,), (count,), (3, count), (3,)]:
            raise InvalidInput("weights for other features", where=where, hint=hint)
        if not all(np.isfinite(getattr(self, name)).all() for name in (*_ARRAYS, *_THRESHOLDS)):
            raise InvalidInput("not weights of the leakage detector: a number is not finite", where=where, hint=hint)
        if self.name != BUILT_IN and made_for != VERSION:
            wrong = f"weights for version {made_for} of the leakage detector, this is version {VERSION}"
            raise InvalidInput(wrong, where=where, hint=hint)

    def write(self, path: Path) -> None:
        """Write the weights to a JSON file."""
        path.write_text(self.text, encoding="utf-8")

    @property
    def text(self) -> str:
        """The text of their file."""
        data = {
            "version": VERSION,
            "names": list(self.names),
            **{name: np.round(getattr(self, name), 5).tolist() for name in _ARRAYS},
            **{name: round(getattr(self, name), 5) for name in _THRESHOLDS},
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

    def probabilities(self, rows: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return an array (pairs, 3): probabilities of none, hint, disclosed."""
        scores = ((rows - self.mean) / self.scale) @ self.coefficients.T + self.intercepts
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def _shares(part: Any) -> bool:
    """Return True for a table of counts and shares, which may hold further tables."""
    if isinstance(part, dict):
        return all(map(_shares, part.values()))
    return part is None or (isinstance(part, int | float) and (isinstance(part, int) or part <= 1) and part >= 0)


def _labels(fitted: Mapping[str, Any]) -> bool:
    """Return True for a description of labels that reports can print; it may be empty."""
    files, count, date = (fitted.get(name) for name in ("files", "labels", "date"))
    named = isinstance(files, list) and all(isinstance(file, str) for file in files)
    return not fitted or (named and isinstance(count, int) and isinstance(date, str))


@dataclass(frozen=True)
class Finding:
    """The detector's answer for one pair."""

    label: Label
    probability: float
    """Probability of `disclosed`, 0 to 1."""
    similarity: float
    """Cosine of the fact and the clause closest to it."""
    evidence: str
    """The words that disclose it; empty for `none`."""


class LeakageDetector:
    """Classifies pairs in batches and two stages: cheap features for all pairs, the reader for those that may be leaks.

    Loads the embedding model with the first batch, unless `encode` is given. Without the reader it is much faster and
    much worse with denials and other people's stories.
    """

    def __init__(
        self, encode: Encode | None = None, weights: Weights | None = None, *, use_reader: bool = True
    ) -> None:
        self._encode = encode
        self._use_reader = use_reader
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
        cheap = self.weights.probabilities(rows)
        if not self._use_reader:
            return cheap
        passed = np.flatnonzero(cheap[:, 1] + cheap[:, 2] >= self.weights.gate)
        # Pairs below the gate keep their order, below all pairs that the reader judges.
        found = np.column_stack([1 - cheap[:, 1:].sum(1) / 100, cheap[:, 1:] / 100])
        if len(passed):
            if self._reader is None:
                self._reader = PairReader()
            read = self._reader.read([pairs[int(place)] for place in passed])
            joint = np.exp(read + CHEAP * np.log(cheap[passed]))
            found[passed] = joint / joint.sum(axis=1, keepdims=True)
        return found

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
        return Finding(label, float(disclosed), float(similarity), evidence(pair) if label != "none" else "")


def evidence(pair: Pair) -> str:
    """Return the clause that shares most words with the fact, or the whole utterance if none shares any."""
    texts = Wanted.of(pair)
    wanted = wording.content_words(pair.fact)
    best = max(texts.clauses, key=lambda clause: len(wanted & wording.content_words(clause)))
    return best if wanted & wording.content_words(best) else pair.utterance


@lru_cache(maxsize=1)
def _default_weights() -> Weights:
    return Weights.read()
