"""What each part of the detector says about pairs and conversations, calculated once and combined in several ways."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from localsim.leakage import features
from localsim.leakage.detector import Finding, LeakageDetector, Weights, combined
from localsim.leakage.pairs import LabelledTranscript, Pair, pairs_of
from localsim.leakage.quotes import QUOTED, quotes
from localsim.leakage.track import Row, in_turns

Floats = npt.NDArray[np.float64]
PARTS = ("embeddings alone", "cheap alone", "reader alone", "both")


@dataclass(frozen=True)
class Parts:
    """The parts of a detector on some pairs."""

    cosine: Floats
    cheap: Floats
    """Probabilities (pairs, 3) of the cheap classifier."""
    read: Floats
    """Log-probabilities (pairs, 3) of the reader, which read every pair."""
    quoted: npt.NDArray[np.bool_]
    """True where the utterance quotes the fact."""

    def both(self, weights: Weights) -> Floats:
        """Return the probabilities (pairs, 3) of the detector, which asks its reader only beyond the gate."""
        passed = self.cheap[:, 1] + self.cheap[:, 2] >= weights.gate
        found = combined(self.cheap, np.where(passed[:, None], self.read, np.nan), weights.cheap)
        found[self.quoted] = QUOTED
        return found

    def chance(self, part: str, weights: Weights) -> Floats:
        """Return how sure one of PARTS is of a disclosure, from 0 to 1."""
        if part == "embeddings alone":
            return np.clip(self.cosine, 1e-6, 1 - 1e-6)
        if part == "cheap alone":
            return self.cheap[:, 2]
        return np.exp(self.read)[:, 2] if part == "reader alone" else self.both(weights)[:, 2]


def parts_of(detector: LeakageDetector, pairs: Sequence[Pair]) -> Parts:
    """Let every part look at every pair; a line on stderr says how many there are."""
    print(f"reading {len(pairs)} pairs", file=sys.stderr, flush=True)
    rows = detector.rows(pairs)
    cosine = rows[:, features.NAMES.index("cos_fact")].astype(np.float64)
    quoted = np.array([quotes(pair) for pair in pairs], dtype=np.bool_)
    return Parts(cosine, detector.weights.probabilities(rows), detector.read(pairs).astype(np.float64), quoted)


def between(chances: Mapping[int, float], turn: int) -> tuple[int, int]:
    """Return `earliest` and `latest` of the view v_leaks for a disclosure found in `turn`.

    `chances` are the probabilities of the turns that were called a disclosure or a hint: each one that the fact comes
    out there if it has not before. A tenth of what
    they say together lies before `earliest`, a tenth after `latest`.
    """
    silent, told = 1.0, {}
    for place in sorted(chances):
        silent *= max(1e-9, 1 - chances[place])
        told[place] = 1 - silent
    inner = [min(place for place in told if told[place] >= share * (1 - silent)) for share in (0.1, 0.9)]
    return min(turn, inner[0]), max(turn, inner[1])


def pairs_in(talks: Sequence[LabelledTranscript]) -> list[Pair]:
    """Return every fact with every turn, talk by talk."""
    return [pair for talk in talks for _, _, pair in pairs_of(talk.facts, talk.turns)]


def rows_in(talks: Sequence[LabelledTranscript], chance: Floats, weights: Weights) -> list[list[Row]]:
    """Return the findings of conversations from a probability for each of `pairs_in`."""
    given = iter(chance.tolist())
    return [
        in_turns([(*each, Finding("none", next(given), 0.0, "")) for each in asked], weights)
        for asked in (pairs_of(talk.facts, talk.turns) for talk in talks)
    ]
