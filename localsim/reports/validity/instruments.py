"""Errors of the instruments that a report's figures rely on: leakage detector, rules that read words, judges.

Each row is one kind of error as a share with its interval, and says who made the labels that it was measured on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from localsim import families
from localsim.families import family_of, title_of
from localsim.leakage.detector import BUILT_IN, Weights
from localsim.reports.validity.thresholds import labels_of
from localsim.stats import Estimate, share

Row = dict[str, Any]

DETECTOR = "leakage detector"
PARSER = "reader of endings and names"
OWN_LABELS: Row = {"labelled_by": "language models", "raters": "one for each item", "agreement": "not measured"}
"""The origin of localsim's own labelled conversations, on which detector and reader were measured."""
BY_OUTCOME: Row = {
    "labelled_by": "the rules that score the task",
    "raters": "none",
    "agreement": "does not apply",
}
"""The origin of the outcomes with which judges are compared."""
NOT_RECORDED = "not recorded"
_DETECTOR: tuple[tuple[str, str, str, str, str], ...] = (
    ("pairs", "precision", "said", "precision of pairs", "of the turns that it calls a disclosure, the right ones"),
    ("pairs", "recall", "true", "recall of pairs", "of the turns that disclose a fact, those that it finds"),
    (
        "transcripts",
        "first_turn_accuracy",
        "disclosed",
        "first turn",
        "of the facts that come out, those whose first turn it finds",
    ),
    (
        "transcripts",
        "silence_accuracy",
        "silent",
        "silence accuracy",
        "of the facts that never come out, those for which it reports nothing",
    ),
    (
        "transcripts",
        "omniscient_precision",
        "omniscient_found",
        "omniscient precision",
        "of the omniscient leaks that it reports, the right ones",
    ),
    (
        "transcripts",
        "omniscient_recall",
        "omniscient_labelled",
        "omniscient recall",
        "of the omniscient leaks, those that it finds",
    ),
)
"""Part of the detector's accuracy, key of the share, key of its n, name, meaning."""


def instruments(
    played: Iterable[str], searched: Iterable[str], judges: Sequence[Row], thresholds: Sequence[Row] = ()
) -> list[Row]:
    """Return the rows of a run: of families `played`, families `searched` for leaks, and judges (`judges.reliability`).

    `thresholds` (`thresholds.thresholds`) are those of the search, if they may be others than the built-in ones.

    Keys: instrument, families, error, meaning, value (from 0 to 1), low, high, n; labelled_by, raters, agreement.
    """
    by_wording = [name for name in searched if not family_of(name).terms_disclose]
    rows = []
    for used in thresholds or [{"weights": BUILT_IN, "accuracy": Weights.read().accuracy}]:
        rows += list(_detector(by_wording, used)) if by_wording else []
    tasks = [name for name in played if name in families.FAMILIES]
    accuracy = families.accuracy() if tasks else None
    if accuracy is not None:
        rows += _parser(tasks, accuracy)
    return rows + [_judge(judge) for judge in judges if judge["goal_auroc"] is not None]


def _row(instrument: str, of: Sequence[str], error: str, meaning: str, found: Estimate, labels: Row) -> Row:
    named = {"instrument": instrument, "families": list(of), "error": error, "meaning": meaning}
    return {**named, "value": found.value, "low": found.low, "high": found.high, "n": found.n, **labels}


def _detector(of: Sequence[str], thresholds: Row) -> Iterable[Row]:
    labels = labels_of(thresholds)
    name = DETECTOR if thresholds["weights"] == BUILT_IN else f"{DETECTOR} with {thresholds['weights']}"
    for part, key, counted, error, meaning in _DETECTOR:
        measured = thresholds["accuracy"].get(part) or {}
        value, n = measured.get(key), measured.get(counted)
        if value is not None:
            found = Estimate(value, None, None, 0) if n is None else share(round(value * n), n)
            yield _row(name, of, error, meaning, found, labels or OWN_LABELS)


def _parser(of: Sequence[str], accuracy: Mapping[str, Any]) -> Iterable[Row]:
    """Yield a row for each measure of the rules, then for each labelled ending if these are counted apart."""
    labels = OWN_LABELS | {key: accuracy[key] for key in OWN_LABELS if key in accuracy}
    for name, part in accuracy["measures"].items():
        own = [family for family in of if part.get("family") in (None, family)]
        if own and part["n"]:
            heading = name.replace("_", " ")
            meaning = f"of the labelled conversations, those whose {heading} it reads right"
            yield _row(PARSER, own, heading, meaning, share(part["right"], part["n"]), labels)
    own = [family for family in of if accuracy["measures"].get("ending", {}).get("family") in (None, family)]
    for name, part in (accuracy.get("endings") or {}).items():
        if own and part["n"]:
            ending = name.replace("_", " ")
            meaning = f"of the conversations that end so ({ending}), those whose ending it reads right"
            yield _row(PARSER, own, f"ending: {ending}", meaning, share(part["right"], part["n"]), labels)


def _judge(judge: Row) -> Row:
    """Return the reliability of a judge as a row; its n is the number of conversations."""
    found = Estimate(judge["goal_auroc"], judge["goal_auroc_low"], judge["goal_auroc_high"], judge["goal_auroc_n"])
    meaning = (
        "of pairs of a success and a failure in one family and condition, those that its goal scores order rightly"
    )
    return _row(f"judge {judge['judge']}", (), "AUROC of goal scores", meaning, found, BY_OUTCOME)


# ---- who finds the leaks -------------------------------------------------------------------------------------------


def leak_sources(searched: Iterable[str]) -> list[str]:
    """Return a sentence for each family searched for leaks that names the instrument its leak counts rely on."""
    return [
        f"Leak counts of {title_of(family_of(name))} rely on names: a fact comes out when its name is uttered, "
        f"and describing it is no disclosure; the {DETECTOR} is not used."
        if family_of(name).terms_disclose
        else f"Leak counts of {title_of(family_of(name))} rely on the {DETECTOR}."
        for name in searched
    ]


# ---- sentences -----------------------------------------------------------------------------------------------------


def sentences(rows: Sequence[Row], *, short: bool = False) -> list[str]:
    """Return one line for each instrument: its errors, with intervals unless `short`, and who made the labels."""
    told = []
    for instrument in dict.fromkeys(row["instrument"] for row in rows):
        own = [row for row in rows if row["instrument"] == instrument]
        errors = ", ".join(f"{row['error']} {text_of(row, short=short)} of {row['n'] or NOT_RECORDED}" for row in own)
        told.append(f"{instrument[:1].upper()}{instrument[1:]}: {errors}. {labels_text(own[0])}")
    return told


def text_of(row: Row, *, short: bool = False) -> str:
    """Return the share of a row in percent, with its interval unless `short`."""
    if short or row["low"] is None:
        return f"{row['value']:.0%}"
    return f"{row['value']:.0%} [{row['low']:.0%}, {row['high']:.0%}]"


def labels_text(row: Row) -> str:
    """Return who made the labels of a row, how many, and how much they agreed, in one sentence."""
    return f"Labels by {row['labelled_by']}; raters: {row['raters']}; agreement: {row['agreement']}."
