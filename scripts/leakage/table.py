"""The figures of docs/log/leakage.md, on writers and files that neither training nor thresholds saw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from localsim.leakage import accuracy, track
from localsim.leakage.calibrate import best_threshold, with_curve, with_prior
from localsim.leakage.detector import VERSION, LeakageDetector, Weights
from localsim.leakage.pairs import LabelledPair, LabelledTranscript
from localsim.stats import Estimate, rate
from scripts.leakage import data
from scripts.leakage.scores import PARTS, Parts, pairs_in, parts_of, rows_in
from scripts.tables import markdown_table

PAGE = data.ROOT / "docs" / "log" / "leakage.md"
BEGIN, END = "<!-- table -->", "<!-- end -->"
CURVE_BEGIN, CURVE_END = "<!-- learning curve -->", "<!-- end of the curve -->"
LEVELS = ("plain", "adversarial")
DRAWS = 1000
"""Bootstrap samples of facts behind an interval of F1 or AUROC."""
_RATES = (
    ("first turn", "first_turns_right", "disclosed"),
    ("silence", "silences_kept", "silent"),
    ("partner's leaks, recall", "omniscient_right", "omniscient_labelled"),
    ("partner's leaks, precision", "omniscient_right", "omniscient_found"),
)
"""Heading, count, and the count that divides it."""


@dataclass(frozen=True)
class Measured:
    """Labels with what the parts of a detector say about them."""

    rows: Sequence[LabelledPair]
    of_rows: Parts
    talks: Sequence[LabelledTranscript]
    of_turns: Parts

    @classmethod
    def by(cls, detector: LeakageDetector, rows: list[LabelledPair], talks: list[LabelledTranscript]) -> Measured:
        """Let a detector's parts look at labelled pairs and conversations."""
        return cls(rows, parts_of(detector, [row.pair for row in rows]), talks, parts_of(detector, pairs_in(talks)))


def write(*, of_train: bool = True) -> str:
    """Measure, write the figures between the markers of the page, and return them."""
    detector = LeakageDetector()
    own = Measured.by(detector, data.threshold_pairs(), data.threshold_talks(of_train=of_train))
    pairs = data.held_out_pairs()
    held = {name: Measured.by(detector, pairs.get(name, []), talks) for name, talks in data.held_out_talks().items()}
    weights = detector.weights
    today = datetime.now(UTC).date().isoformat()
    lines = [f"Version {VERSION}, measured on {today}. Brackets are 95% intervals over facts or conversations."]
    for name in pairs:
        lines += ["", *_pairs_table(name, weights, own, held[name])]
    for name, measured in held.items():
        lines += ["", *_talks_table(name, weights, own, measured)]
    for name in pairs:
        lines += ["", *_kinds_table(name, weights, held[name])]
    return _put("\n".join(lines), BEGIN, END)


def _put(text: str, begin: str, end: str) -> str:
    """Write a text between two markers of the page, and return it."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    after = rest.partition(end)[2]
    PAGE.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
    return text


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return markdown_table(heads, rows).splitlines()


# ---- pairs ---------------------------------------------------------------------------------------------------------


def _pairs_table(name: str, weights: Weights, own: Measured, held: Measured) -> list[str]:
    rows = []
    for part in PARTS:
        line = weights.disclosed_from
        if part != "both":
            line = best_threshold(_truth(own.rows), own.of_rows.chance(part, weights))
        chance = held.of_rows.chance(part, weights)
        cells = [f"{cell_of(_f1(line), held.rows, chance, level)}" for level in LEVELS]
        ranks = [f"{cell_of(accuracy.auroc, held.rows, chance, level)}" for level in LEVELS]
        rows.append([part, cells[0], ranks[0], cells[1], ranks[1]])
    heads = [f"pairs of {name}", "plain F1", "plain AUROC", "adversarial F1", "adversarial AUROC"]
    return _table(heads, rows)


def _truth(rows: Sequence[LabelledPair]) -> npt.NDArray[np.bool_]:
    return np.array([row.label == "disclosed" for row in rows])


def _f1(line: float) -> Callable[[Any, Any], float | None]:
    return lambda truth, chance: accuracy.counts(truth, chance >= line, chance)["f1"]


def cell_of(
    measure: Callable[[Any, Any], float | None],
    rows: Sequence[LabelledPair],
    chance: npt.NDArray[np.float64],
    level: str,
) -> str:
    """Return a measure of the pairs of one difficulty, with an interval over their facts."""
    places = [place for place, row in enumerate(rows) if row.difficulty == level]
    truth = _truth(rows)
    by_fact: dict[str, list[int]] = {}
    for place in places:
        by_fact.setdefault(rows[place].pair.fact, []).append(place)
    value = measure(truth[places], chance[places])
    rng, facts, drawn = np.random.default_rng(0), list(by_fact.values()), []
    for _ in range(DRAWS):
        sample = [place for fact in rng.integers(len(facts), size=len(facts)) for place in facts[fact]]
        found = measure(truth[sample], chance[sample])
        drawn += [] if found is None else [found]
    if value is None or not drawn:
        return "-"
    low, high = np.quantile(drawn, [0.025, 0.975])
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"


def _kinds_table(name: str, weights: Weights, held: Measured) -> list[str]:
    """Return how many pairs of each kind and label the detector calls rightly (disclosed or not)."""
    said = held.of_rows.chance("both", weights) >= weights.disclosed_from
    right = said == _truth(held.rows)
    rows = []
    for kind in sorted({row.kind for row in held.rows}):
        cells = []
        for label in ("disclosed", "hint", "none"):
            own = [place for place, row in enumerate(held.rows) if (row.kind, row.label) == (kind, label)]
            cells.append(f"{int(right[own].sum())} of {len(own)}" if own else "-")
        rows.append([kind.replace("_", " "), *cells])
    return _table([f"right, pairs of {name}", "disclosed", "hint", "none"], rows)


def _share(found: Estimate) -> str:
    if found.value is None:
        return "-"
    ends = "" if found.low is None else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"{found.value:.2f}{ends} of {found.n}"


# ---- conversations -------------------------------------------------------------------------------------------------


def _talks_table(name: str, weights: Weights, own: Measured, held: Measured) -> list[str]:
    rows = [[part, *_talk_cells(part, weights, own, held)] for part in PARTS]
    return _table([f"conversations of {name}", *(head for head, _, _ in _RATES)], rows)


def _talk_cells(part: str, weights: Weights, own: Measured, held: Measured) -> list[str]:
    """Return the rates of a part alone, with its own probabilities and threshold for the same share of false alarms."""
    at = weights if part == "both" else replace(weights, talk_words=0.0, talk_rival=0.0)
    found = rows_in(held.talks, held.of_turns.chance(part, weights), at)
    if part != "both":
        fitted = own.talks, rows_in(own.talks, own.of_turns.chance(part, weights), at)
        at = with_curve(with_prior(at, fitted), fitted, fitted, weights.talk_share)
    each = [accuracy.of_talks([talk], [track.decided(rows, at)]) for talk, rows in zip(held.talks, found, strict=True)]
    return [
        _share(rate({str(place): (one[some], one[whole]) for place, one in enumerate(each)}))
        for _, some, whole in _RATES
    ]


# ---- learning curve ------------------------------------------------------------------------------------------------


def write_curve(readers: Mapping[str, Path]) -> str:
    """Measure readers that were trained on shares of the labels, write them to the page, and return the table.

    Only the reader's order of held-out pairs counts (AUROC), so that no threshold and no other part bears on it.
    """
    rows = [[name, *_learnt(LeakageDetector(reader=file))] for name, file in readers.items()]
    rows.append(["1", *_learnt(LeakageDetector())])
    heads = [f"{level} AUROC, {name}" for name in data.held_out_pairs() for level in LEVELS]
    today = datetime.now(UTC).date().isoformat()
    lines = [f"Version {VERSION}, measured on {today}.", "", *_table(["share of the training labels", *heads], rows)]
    return _put("\n".join(lines), CURVE_BEGIN, CURVE_END)


def _learnt(detector: LeakageDetector) -> list[str]:
    cells = []
    for rows in data.held_out_pairs().values():
        chance = np.exp(detector.read([row.pair for row in rows]).astype(np.float64))[:, 2]
        cells += [cell_of(accuracy.auroc, rows, chance, level) for level in LEVELS]
    return cells
