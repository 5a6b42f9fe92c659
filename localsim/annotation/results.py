"""What human annotation found: preferences, marks and first disclosures, with the agreement of raters and judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from localsim.annotation.measures import Alpha, FirstTurns, Mean, Overlap, Strengths
from localsim.store.conditions import Condition


@dataclass(frozen=True)
class Counts:
    """What was judged of a task."""

    n: int
    """Judgements."""
    items: int
    scenarios: int
    raters: int
    kinds: Mapping[str, int]
    """Kind of rater -> their number."""
    median_seconds: float | None
    """Of a judgement."""


@dataclass(frozen=True)
class Attention:
    """The attention items of a rater, who is inattentive if more than a third failed."""

    rater: str
    n: int
    passed: int
    failed: int
    inattentive: bool


@dataclass(frozen=True)
class Preferred:
    """How often raters preferred one of two conditions; share, interval and p are those of scenarios, without ties."""

    first: str
    second: str
    n: int
    first_wins: int
    second_wins: int
    ties: int
    decided: int
    items: int
    scenarios: int
    first_chosen: float | None
    low: float | None
    high: float | None
    p: float | None
    alpha: Alpha
    p_holm: float | None = None


@dataclass(frozen=True)
class NaturalJudge:
    """A model's choices compared with the majority of raters, over the pairs that both judged.

    Raters decide nothing if they are divided evenly or say tie; a model decides nothing if its choice depends on the
    order of the two conversations.
    """

    judge: str
    n: int
    """Pairs that both judged."""
    decided: int
    """Those in which both chose."""
    equal: float | None
    """The share of the same choice among these, and the ends of its 95% interval."""
    low: float | None
    high: float | None
    kappa: float | None


@dataclass(frozen=True)
class Pairs(Counts):
    """Preferences between conditions."""

    attention: Sequence[Attention]
    left_out: Sequence[str]
    """Raters."""
    rates: Sequence[Preferred]
    strengths: Strengths
    alpha: Alpha
    judges: Sequence[NaturalJudge]


@dataclass(frozen=True)
class Correlated:
    """Spearman's correlation of a judge's scores with the means of the raters, over episodes and agents."""

    judge: str
    rho: float | None
    p: float | None
    n: int


@dataclass(frozen=True)
class Dimension:
    """The marks of raters in one dimension."""

    dimension: str
    n: int
    alpha: Alpha
    means: Mapping[str, Mean]
    """Name of a condition -> its mean."""
    judges: Sequence[Correlated]


@dataclass(frozen=True)
class Dimensions(Counts):
    """Marks of raters by dimension and condition."""

    by_dimension: Sequence[Dimension]


@dataclass(frozen=True)
class Detected(Overlap):
    """The detector beside the raters: precision, recall and F1 over (fact, turn) pairs, and first turns."""

    n: int
    """Facts."""
    kappa: float | None
    """Of disclosed or not."""
    first_turn: float | None
    """The share of facts with the same turn or none, and the ends of its 95% interval."""
    low: float | None
    high: float | None


@dataclass(frozen=True)
class JudgedTurns(FirstTurns):
    """A judge of leaks beside the raters."""

    judge: str


@dataclass(frozen=True)
class Disclosures(Counts):
    """First disclosures according to raters."""

    facts: int
    """In all episodes."""
    alpha: Alpha
    """Over facts, of the first turn or none."""
    undecided: int
    """Facts without a majority of raters; the other results ignore them."""
    disclosed: int
    """Facts that most raters mark as disclosed."""
    detector: Detected | None
    judges: Sequence[JudgedTurns]


@dataclass(frozen=True)
class Agreement:
    """The results of annotations; a task without any is None."""

    run_id: str = ""
    raters: Sequence[str] = ()
    kinds: Mapping[str, int] = field(default_factory=dict)
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    """Name -> condition."""
    pairs: Pairs | None = None
    dimensions: Dimensions | None = None
    disclosures: Disclosures | None = None


NOTHING = Agreement()
