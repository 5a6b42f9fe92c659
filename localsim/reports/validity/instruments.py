"""Errors of the instruments that a report's figures rely on: leakage detector, rules that read words, judges.

Each row is one kind of error as a share with its interval, and says who made the labels that it was measured on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localsim import families
from localsim.families import family_of, title_of
from localsim.leakage.curve import COUNTS
from localsim.leakage.detector import BUILT_IN, Weights
from localsim.reports.results import Number
from localsim.reports.validity.judges import Reliability
from localsim.reports.validity.thresholds import Thresholds
from localsim.stats import Estimate, share

DETECTOR = "leakage detector"
PARSER = "reader of endings and names"
NOT_RECORDED = "not recorded"


@dataclass(frozen=True)
class Error:
    """One kind of error of an instrument: a share of right answers, and who made the labels that it was measured on."""

    instrument: str
    families: Sequence[str]
    error: str
    meaning: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    """0 if it was not recorded."""
    labelled_by: str
    raters: str
    agreement: str
    part: bool = False
    """True for one kind of conversations of those that another row counts; sentences leave it out."""

    @property
    def share(self) -> Number:
        """The share of right answers."""
        return Number("share", self.value, self.low, self.high)


Labels = tuple[str, str, str]
"""Who made them, how many, and how much they agreed."""
OWN_LABELS: Labels = ("language models", "one for each item", "not measured")
"""The origin of localsim's own labelled conversations, on which detector and reader were measured."""
BY_OUTCOME: Labels = ("the rules that score the task", "none", "does not apply")
"""The origin of the outcomes with which judges are compared."""
_ON_PAIRS = (
    ("precision", "said", "precision of pairs", "of the turns that it calls a disclosure, the right ones"),
    ("recall", "true", "recall of pairs", "of the turns that disclose a fact, those that it finds"),
)
_ON_TALKS = (
    ("first_turn_accuracy", "disclosed", "first turn", "of the facts that come out, those whose first turn it finds"),
    ("silence_accuracy", "silent", "silence accuracy",
     "of the facts that never come out, those for which it reports nothing"),
    ("omniscient_precision", "omniscient_found", "precision of untold facts",
     "of the untold facts that it reports, the right ones"),
    ("omniscient_recall", "omniscient_labelled", "recall of untold facts",
     "of the untold facts, those that it finds"),
)  # fmt: skip
"""Key of the share in the detector's accuracy, key of its n, name, meaning."""


def instruments(
    played: Iterable[str], searched: Iterable[str], judges: Sequence[Reliability], used: Sequence[Thresholds] = ()
) -> list[Error]:
    """Return the errors of a run: of families `played`, families `searched` for leaks, and judges.

    `used` are those of the search, if they may be others than the built-in ones.
    """
    by_wording = [name for name in searched if not family_of(name).terms_disclose]
    rows: list[Error] = []
    for each in used or [Thresholds(BUILT_IN, "", 0, {}, Weights.read().accuracy, None)]:
        rows += list(_detector(by_wording, each)) if by_wording else []
    tasks = [name for name in played if name in families.FAMILIES]
    accuracy = families.accuracy() if tasks else None
    if accuracy is not None:
        rows += _parser(tasks, accuracy)
    return rows + [_judge(judge) for judge in judges if judge.goal_auroc is not None]


def _detector(of: Sequence[str], used: Thresholds) -> Iterable[Error]:
    labels = OWN_LABELS
    if not used.built_in:
        files = used.files or "a file without a name"
        fitted = f"{files}, to which the thresholds were fitted, so these shares are too good"
        labels = (fitted, NOT_RECORDED, NOT_RECORDED)
    name = DETECTOR if used.weights == BUILT_IN else f"{DETECTOR} with {used.weights}"
    talks = used.accuracy.get("transcripts") or {}
    parts = [("", _ON_PAIRS, used.accuracy.get("pairs") or {}), ("", _ON_TALKS, talks)]
    kinds = used.accuracy.get("by_kind") or {}
    # They were counted at one sensitivity: at another one they do not add up to the whole.
    if all(talks.get(each) == sum(part[each] for part in kinds.values()) for each in COUNTS):
        parts += [(f": {kind}", _ON_TALKS[:2], part) for kind, part in kinds.items()]
    for kind, rows, measured in parts:
        for key, counted, error, meaning in rows:
            value, n = measured.get(key), measured.get(counted)
            if value is not None:
                found = Estimate(value, None, None, 0) if n is None else share(round(value * n), n)
                yield Error(name, of, f"{error}{kind}", meaning, *found, *labels, bool(kind))


def _parser(of: Sequence[str], accuracy: Mapping[str, Any]) -> Iterable[Error]:
    """Yield a row for each measure of the rules, then for each labelled ending if these are counted apart."""
    keys = ("labelled_by", "raters", "agreement")
    labels = tuple(accuracy.get(key, own) for key, own in zip(keys, OWN_LABELS, strict=True))
    for name, part in accuracy["measures"].items():
        own = [family for family in of if part.get("family") in (None, family)]
        if own and part["n"]:
            heading = name.replace("_", " ")
            meaning = f"of the labelled conversations, those whose {heading} it reads right"
            yield Error(PARSER, own, heading, meaning, *share(part["right"], part["n"]), *labels)
    own = [family for family in of if accuracy["measures"].get("ending", {}).get("family") in (None, family)]
    for name, part in (accuracy.get("endings") or {}).items():
        if own and part["n"]:
            ending = name.replace("_", " ")
            meaning = f"of the conversations that end so ({ending}), those whose ending it reads right"
            yield Error(PARSER, own, f"ending: {ending}", meaning, *share(part["right"], part["n"]), *labels)


def _judge(judge: Reliability) -> Error:
    meaning = (
        "of pairs of a success and a failure in one family and condition, those that its goal scores order rightly"
    )
    found = (judge.goal_auroc, judge.goal_auroc_low, judge.goal_auroc_high, judge.goal_auroc_n)
    return Error(f"judge {judge.judge}", (), "AUROC of goal scores", meaning, *found, *BY_OUTCOME)


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


def sentences(errors: Sequence[Error], *, short: bool = False) -> list[str]:
    """Return one line for each instrument: its errors, with intervals unless `short`, and who made the labels."""
    told = []
    for instrument in dict.fromkeys(each.instrument for each in errors):
        own = [each for each in errors if each.instrument == instrument and not each.part]
        shares = [Number("share", each.value) if short else each.share for each in own]
        parts = [f"{share} of {each.n or NOT_RECORDED} ({each.error})" for each, share in zip(own, shares, strict=True)]
        origin = f"Labels by {own[0].labelled_by}; raters: {own[0].raters}; agreement: {own[0].agreement}."
        told.append(f"{instrument[:1].upper()}{instrument[1:]}, right in {', '.join(parts)}. {origin}")
    return told
