"""Findings: the difference of two conditions in one measure, and what its test says.

The sentences of a report (`validity.headline`), the paragraph to read aloud and the answer of a study are made from
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from localsim.conversation.measures import Measure

Row = dict[str, Any]
LEVEL = 0.05
Verdict = Literal["found", "not told", "withheld"]
_NIL = 1e-9
"""A difference below this is an error of rounding in the computer."""


@dataclass(frozen=True)
class Finding:
    """A difference, second condition minus first, with its 95% interval over scenarios."""

    family: str
    model: str
    measure: str
    kind: str
    contrast: str
    """What tells the two conditions apart."""
    conditions: tuple[str, str]
    levels: Sequence[float]
    """The values of both conditions on their pairs; empty if the row has none."""
    difference: float
    interval: tuple[float, float] | None
    scenarios: int
    p: float | None
    """That of the test that counts: corrected, unless the comparison is primary."""
    p_least: float
    """The least p that a test of so many scenarios can have."""
    verdict: Verdict
    """`found` if the test finds the difference (p <= LEVEL) and the interval leaves out 0; `withheld` if its sign turns
    in some variant of the prompts.
    """
    row: Row = field(default_factory=dict, compare=False, repr=False)
    """The row that it was made from."""

    @property
    def too_few(self) -> bool:
        """True if no test of so few scenarios can find a difference."""
        return self.p_least > LEVEL

    @property
    def alike(self) -> bool:
        """True if every scenario differs by the same amount, which is not 0: an interval cannot be computed then."""
        return self.interval is None and abs(self.difference) > _NIL and not self.too_few


class Bar(NamedTuple):
    """A finding to be drawn as one line."""

    title: str
    model: str
    heading: str
    """The heading of the measure."""
    found: Finding


def finding(row: Row, p: float | None, *, withheld: bool = False) -> Finding:
    """Return the finding of a row of `comparison.compare` or of a study; `p` is that of the test that counts."""
    interval = None if row["low"] is None else (row["low"], row["high"])
    found = p is not None and p <= LEVEL and interval is not None and (interval[0] > 0 or interval[1] < 0)
    return Finding(
        family=row["family"],
        model=row.get("model", ""),
        measure=row["measure"],
        kind=row["kind"],
        contrast=row.get("contrast", ""),
        conditions=(row.get("first", ""), row.get("second", "")),
        levels=row.get("levels", ()),
        difference=row["difference"],
        interval=interval,
        scenarios=row["scenarios"],
        p=p,
        p_least=row["p_least"],
        verdict="withheld" if withheld else "found" if found else "not told",
        row=row,
    )


@dataclass(frozen=True)
class Answer:
    """What a report finds about one family and model."""

    family: str
    model: str
    title: str
    about: Measure
    peeking: str
    """A sentence on choices that used the other side; "unknown" if they are too few."""
    findings: Mapping[str, Finding | None]
    """Contrast -> its finding; None if the run lacks one of its modes."""
    success: Finding | None
    """What information changed in success; None if the run cannot tell."""
    ranking: Sequence[str]
    sentences: Sequence[str]

    @property
    def bar(self) -> Bar | None:
        """Its first finding, the primary one if it is known; None if it has no levels or is withheld."""
        known = next((each for each in self.findings.values() if each), None)
        if known is None or not known.levels or known.verdict == "withheld":
            return None
        return Bar(self.title, self.model, self.about.heading, known)

    def as_json(self) -> Row:
        """Return a row of `headline` in `report --json`."""
        return {
            "family": self.family,
            "model": self.model,
            "title": self.title,
            "measure": self.about.key,
            "peeking": self.peeking,
            "success": self.success and self.success.row,
            "success_verdict": self.success.verdict if self.success else "absent",
            "ranking": self.ranking,
            "contrasts": {name: each and each.row for name, each in self.findings.items()},
            "verdicts": {name: each.verdict if each else "absent" for name, each in self.findings.items()},
            "sentences": self.sentences,
        }


@dataclass(frozen=True)
class Headline:
    """The answer of a report: its sentences, and what they are made from."""

    sentences: Sequence[str] = ()
    families: Sequence[Answer] = ()

    def as_json(self) -> Row:
        """Return the object `headline` of `report --json`."""
        return {"sentences": self.sentences, "families": [each.as_json() for each in self.families]}


UNKNOWN = Headline()
