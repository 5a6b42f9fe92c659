"""A measure: one number about a cell of a report (family x mode x model), declared once.

Families and evaluators declare their measures; reports, comparisons, the card, plots, pages and the documentation read
them. A measure names its score and the way to sum it; `reports.measures` computes the sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from localsim.errors import suggest

Kind = Literal["share", "position", "number"]
"""`share`: 0 to 1, printed as a percentage. `position`: 0 (start of the conversation) to 1 (end). `number`: any."""
Summed = Literal["mean", "episodes", "episode_sum", "count", "excess"]
"""The ways to turn scores into one number; `stats` gives each an interval that treats a scenario as one draw.

mean: the mean of the scores. episodes: the share of the scored episodes whose score is 1. episode_sum: the scores of
all agents are summed in each episode (and divided by the sum of `per`, if given), then averaged. count: a share of
episodes, replies or turns without scores; `score` names the count. excess: hits beyond chance, (hits - chance) / (n -
chance), summed over all agents and episodes that have both scores; `score` is the hit (0 or 1) and `per` its
probability by chance.
"""
Bounds = tuple[float | None, float | None]
"""The least and the greatest value that a measure can have; None is no limit."""
Group = Literal["goals", "information", "interaction"]
"""The part of the simulation card that lists the measure."""
Figure = Literal["", "style", "secrets"]
"""The figure that every family has and that draws the measure; a family names the measures of its main figure."""

GENERAL = (
    "success_rate checks_passed explicit_end_rate disclosed_rate early_disclosures omniscient_leaks words_per_turn "
    "filler_rate turns repeated_turn_rate other_language_rate plays_rate task_touched_rate own_repeat_rate "
    "loop_rate other_role_rate assistant_rate refusal_rate spill_rate farewell_rate stale_rate malformed_rate "
    "repaired_rate truncated_rate"
).split()
"""Keys of the measures that every family has; `reports.measures` collects the measures themselves."""


@dataclass(frozen=True)
class Measure:
    """One column of a report. --json prints it as `key`, and the ends of its interval as `key_low` and `key_high`."""

    key: str
    heading: str
    """Two or three words for a table."""
    meaning: str
    """One phrase that explains it to a reader of the report."""
    score: str
    """The name of the score behind it, or of the count."""
    kind: Kind = "number"
    summed: Summed = "mean"
    per: str | None = None
    """The score that divides the first one, if any; for `excess`, the score that holds the chance rate."""
    side: str | None = None
    """The side whose scores count, such as `seller` (`Family.side`); empty for all agents."""
    group: Group = "interaction"
    figure: Figure = ""
    compared: bool | None = None
    """True if `localsim compare` tests it pair by pair; None: only if it is a plug-in's. It prints the primary
    outcome and the measures of the head of a report, and the others with `--all`.
    """
    published: Mapping[str, float] = field(default_factory=dict)
    """Condition -> value that arXiv 2403.05020 reports for GPT-3.5: a reference for the reader, not a target."""
    bounds: Bounds = (None, None)
    """Limits of the value. By default 0 and 1 for shares and positions, at most 1 for `excess`, none for numbers."""
    up_to: str = ""
    """Name of the score that is the greatest possible value of an episode, if scenarios differ in it; else empty."""
    head: bool = False
    """True if the head of a report shows it: success, a class of leaks, or the length of conversations."""
    left_out: str = ""
    """Why the measure may have no value in some conversations, for a sentence that begins with these; '' if all have
    one.
    """
    structural_zero: Sequence[str] = ()
    """Modes in which the measure is 0 by construction, so that comparing them with others would test nothing."""

    def __post_init__(self) -> None:
        for name, words in (("kind", Kind), ("summed", Summed), ("group", Group), ("figure", Figure)):
            given, known = getattr(self, name), get_args(words)
            if given not in known:
                listed = ", ".join(map(repr, known))
                meant = suggest(str(given), known, inline=True)
                raise ValueError(f"measure {self.key}: {name} is {given!r}{meant}, and must be one of {listed}")
        if self.summed == "excess" and self.per is None:
            raise ValueError(f"measure {self.key}: excess needs `per`, the score that holds the chance rate")
        if self.bounds == (None, None) and self.summed == "excess":
            object.__setattr__(self, "bounds", (None, 1.0))
        elif self.bounds == (None, None) and self.kind != "number":
            object.__setattr__(self, "bounds", (0.0, 1.0))

    def as_json(self) -> dict[str, Any]:
        """Return the measure as in `report --json`."""
        names = ("key", "heading", "meaning", "kind", "group", "figure", "head")
        return {**{name: getattr(self, name) for name in names}, "published": dict(self.published)}

    @property
    def is_number(self) -> bool:
        """True if it is neither a share nor a position, so that scenarios are not expected at its limits."""
        return self.kind == "number"
