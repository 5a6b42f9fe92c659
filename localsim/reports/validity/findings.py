"""Findings: the difference of two conditions in one measure, and what its test says.

The sentences of a report (`validity.headline`), the paragraph to read aloud and the answer of a study are made from
them. Every clause of theirs has an amount, unless the report withholds it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

from localsim import stats
from localsim.conversation.measures import Measure
from localsim.conversation.wording.wordings import counted

LEVEL = 0.05
Verdict = Literal["found", "exploratory", "not told", "withheld"]
Role = Literal["primary", "secondary", "exploratory"]
NIL = 1e-9
"""A difference below this is an error of rounding in the computer."""


@dataclass(frozen=True)
class Difference:
    """The difference of two conditions in one measure, second minus first, over pairs of the same scenario and seed."""

    family: str
    measure: Measure
    test: stats.Paired
    primary: bool
    secondary: bool = field(default=False, kw_only=True)
    """Declared before the run, as the primary ones; all others are exploratory."""
    p_holm: float | None = field(default=None, kw_only=True)
    """After correction."""
    tests: int = field(default=0, kw_only=True)
    """The number of tests over which p is corrected; 0 if it is not."""
    variants: bool = field(default=False, kw_only=True)
    """True if its scenarios, several, are variants or castings of one."""

    @property
    def role(self) -> Role:
        """As what it was declared."""
        return "primary" if self.primary else "secondary" if self.secondary else "exploratory"

    @property
    def p(self) -> float | None:
        """The p that counts: after correction, if it is corrected."""
        return self.test.p if self.p_holm is None else self.p_holm

    def as_json(self) -> dict[str, Any]:
        """Return a row of JSON."""
        about = {"measure": self.measure.key, "heading": self.measure.heading, "kind": self.measure.kind}
        row = asdict(self) | about | self.test._asdict()
        del row["test"]
        return row


@dataclass(frozen=True)
class Finding:
    """A difference, second condition minus first, with its 95% interval over scenarios."""

    kind: str
    conditions: tuple[str, str]
    levels: Sequence[float]
    """The values of both conditions on their pairs; empty if the row has none."""
    difference: float
    interval: tuple[float, float] | None
    scenarios: int
    p: float | None
    """That of the test that counts: corrected, if it is corrected."""
    p_least: float
    """The least p that a test of so many scenarios can have."""
    verdict: Verdict
    """`found` if the test finds the difference (p <= LEVEL) and the interval leaves out 0, or `exploratory` if this was
    not declared before the run; `withheld` if its sign turns in some variant of the prompts.
    """
    role: Role = "primary"
    p_alone: float | None = None
    """Without correction."""
    tests: int = 0
    """The number of tests over which p is corrected; 0 if it is not."""
    of: Difference | None = field(default=None, compare=False, repr=False)
    """What it was made from."""

    @property
    def many(self) -> str:
        """The number of its scenarios in words."""
        return scenarios(self.scenarios, variants=self.of is not None and self.of.variants)

    @property
    def flat(self) -> str:
        """What is said if nobody or everybody succeeds in both conditions; empty for all others."""
        key = self.of.measure.key if self.of else ""
        if not (key == "success_rate" or key.startswith("check.")) or set(self.levels) not in ({0.0}, {1.0}):
            return ""
        who, word = ("everybody", "and") if self.levels[0] else ("nobody", "or")
        does = "succeeds" if key == "success_rate" else f"passes {self.of.measure.heading}" if self.of else ""
        return f"{who} {does} in {f' {word} '.join(filter(None, self.conditions)) or 'both modes'}"

    @property
    def too_few(self) -> bool:
        """True if no test of so few scenarios can find a difference."""
        return self.p_least > LEVEL

    @property
    def alike(self) -> bool:
        """True if every scenario differs by the same amount, which is not 0: an interval cannot be computed then."""
        return self.interval is None and abs(self.difference) > NIL and not self.too_few

    @property
    def doubt(self) -> str:
        """What is said of a difference whose interval leaves out 0 although it is not told; empty for all others."""
        if self.verdict != "not told" or self.interval is None or self.interval[0] <= 0 <= self.interval[1]:
            return ""
        if self.p is None:
            return "is not tested, because the measure can only be 0 in one of the modes"
        if self.p_alone is not None and self.p_alone <= LEVEL:
            over = f"the correction over {self.tests} {self.role} outcomes"
            return f"does not survive {over}: p {p_text(self.p_alone)} becomes {p_text(self.p)}"
        return f"is not found by the test over scenarios: p {p_text(self.p)}"


def p_text(p: float | None) -> str:
    """Return a p in the form of sentences, such as .032."""
    return "unknown" if p is None else "< .001" if p < 0.001 else f"{p:.3f}".lstrip("0")


class Bar(NamedTuple):
    """A finding to be drawn as one line."""

    title: str
    model: str
    heading: str
    """The heading of the measure."""
    found: Finding


def finding(
    found: Difference,
    *,
    withheld: bool = False,
    conditions: tuple[str, str] = ("", ""),
    levels: Sequence[float] = (),
) -> Finding:
    """Return the finding of a difference."""
    test, p = found.test, found.p
    interval = None if test.low is None or test.high is None else (test.low, test.high)
    sure = p is not None and p <= LEVEL and interval is not None and (interval[0] > 0 or interval[1] < 0)
    verdict: Verdict = "exploratory" if found.role == "exploratory" else "found"
    return Finding(
        kind=found.measure.kind,
        conditions=conditions,
        levels=levels,
        difference=test.difference,
        interval=interval,
        scenarios=test.scenarios,
        p=p,
        p_least=test.p_least,
        verdict="withheld" if withheld else "not told" if not sure else verdict,
        role=found.role,
        p_alone=test.p,
        tests=found.tests,
        of=found,
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

    def as_json(self) -> dict[str, Any]:
        """Return a row of `headline` in `report --json`."""
        return {
            "family": self.family,
            "model": self.model,
            "title": self.title,
            "measure": self.about.key,
            "peeking": self.peeking,
            "success": _as_json(self.success),
            "success_verdict": self.success.verdict if self.success else "absent",
            "ranking": self.ranking,
            "contrasts": {name: _as_json(each) for name, each in self.findings.items()},
            "verdicts": {name: each.verdict if each else "absent" for name, each in self.findings.items()},
            "sentences": self.sentences,
        }


def _as_json(found: Finding | None) -> dict[str, Any] | None:
    return found.of.as_json() if found and found.of else None


@dataclass(frozen=True)
class Headline:
    """The answer of a report: its sentences, and what they are made from."""

    sentences: Sequence[str] = ()
    families: Sequence[Answer] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the object `headline` of `report --json`."""
        return {"sentences": self.sentences, "families": [each.as_json() for each in self.families]}


UNKNOWN = Headline()


# ---- in words --------------------------------------------------------------------------------------------------------


CAUSES = {
    "information": "seeing every side",
    "authorship": "one author for both sides",
    "both": "one author who sees every side",
    "author": "one author, turn by turn,",
    "text": "one text instead of turns",
    "information+author": "one author, turn by turn, who sees every side,",
}
"""Name of a contrast -> what tells its two modes apart."""
EXPLORATORY = "exploratory: not declared before the run, p not corrected"
"""What is said of a difference that would be found if it had been declared."""


def effect(cause: str, found: Finding, heading: str) -> str:
    """Return what a cause changed in the measure of this heading, as a clause."""
    if found.verdict == "withheld":
        return f"how {cause} changes {heading} depends on the wording of the prompts, so this report withholds it"
    levels = _levels(found)
    if found.verdict in ("found", "exploratory") and found.interval:
        did = "lowered" if found.difference < 0 else "raised"
        low, high = (_size(abs(end), found.kind, "") for end in sorted(found.interval, key=abs))
        amount = amount_of(abs(found.difference), found.kind, sign="")
        way = f", from {' to '.join(levels)}" if levels else ""
        known = f"95% interval {low} to {high}, {found.many}{_only(found)}"
        hint = f", which is {EXPLORATORY}" if found.verdict == "exploratory" else ""
        return f"{cause} {did} {heading} by {amount}{way} ({known}){hint}"
    known = ", ".join(known_of(found))
    if found.scenarios == 1:
        return f"one scenario cannot tell whether {cause} changes {heading} ({known})"
    if found.flat:
        help_ = "the number of turns may" if found.levels[0] else "take easier checks or a larger model"
        return f"{found.flat} ({known}, {found.many}), so {heading} cannot tell what {cause} changes; {help_}"
    if found.too_few:
        return (
            f"{found.many} are too few to tell whether {cause} changes {heading} ({known}): chance can make "
            f"any difference between so few (p is at least {p_text(found.p_least)})"
        )
    if found.alike:
        return f"{cause} changed {heading} by {known} in all {found.many}, so it has no interval{_only(found)}"
    many = found.many + _only(found)
    told = f"{', '.join(levels)} (difference {known}, {many})" if levels else f"{known} ({many})"
    return f"no effect of {cause} on {heading} was found: {told}" + (f", which {found.doubt}" if found.doubt else "")


def effects(causes: Mapping[str, Finding], heading: str) -> str:
    """Return what several causes changed in one measure, as a sentence."""
    return "; ".join(effect(cause, each, heading) for cause, each in causes.items()) + "."


def known_of(found: Finding) -> list[str]:
    """Return a difference, then its interval if it has one."""
    if found.interval is None:
        return [amount_of(found.difference, found.kind)]
    between = " to ".join(_size(end, found.kind) for end in found.interval)
    return [amount_of(found.difference, found.kind), f"95% interval {between}"]


def amount_of(value: float, kind: str, sign: str = "+") -> str:
    """Return a difference with its unit, never rounded to 0 if it is not."""
    size = _size(value, kind, sign)
    points = "" if kind != "share" else " point" if abs(float(size)) == 1 else " points"
    if value == 0:
        return f"0{points}"
    return f"{size}{points}" if float(size) else "less than a point" if points else "less than 0.01"


def scenarios(count: int, *, variants: bool = False) -> str:
    """Return a number of scenarios in words."""
    return f"{count} variants of one scenario" if variants else counted(count, "scenario")


ONE_STORY = "this tells about this story only"
"""What is said of a difference over variants or castings of one scenario."""


def _only(found: Finding) -> str:
    return f": {ONE_STORY}" if found.of is not None and found.of.variants else ""


def _levels(found: Finding) -> list[str]:
    """Return the values of both conditions; none if they are not known."""
    if not all(found.conditions):
        return []
    texts = (f"{level:.0%}" if found.kind == "share" else f"{level:.2f}" for level in found.levels)
    return [f"{text} in {name}" for text, name in zip(texts, found.conditions, strict=False)]


def _size(value: float, kind: str, sign: str = "+") -> str:
    return f"{100 * value:{sign}.0f}" if kind == "share" else f"{value:{sign}.2f}"
