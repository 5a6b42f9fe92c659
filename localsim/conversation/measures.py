"""A measure: one number about a cell of a report (family x mode x model), declared once.

Families and evaluators declare their measures; reports, comparisons, the card, plots, pages and the documentation read
them. A measure names its score and the way to sum it; `reports.measures` computes the sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["share", "position", "number"]
"""`share`: 0 to 1, printed as a percentage. `position`: 0 (start of the conversation) to 1 (end). `number`: any."""
Summed = Literal["share", "share_of_completed", "mean", "episode_sum"]
"""The ways to turn scores into one number.

share: the share of episodes whose score is 1, with Wilson's interval. share_of_completed: the same over all completed
episodes, those without the score counting as 0. mean: the mean over scores, with a t interval. episode_sum: the scores
of all agents are summed in each episode (and divided by the sum of `per`, if given), then averaged.
"""
Group = Literal["goals", "information", "interaction"]


@dataclass(frozen=True)
class Measure:
    """One column of a report. --json prints it as `key`, and the ends of its interval as `key_low` and `key_high`."""

    key: str
    heading: str
    """Two or three words for a table."""
    meaning: str
    """One phrase that explains it to a reader of the report."""
    score: str
    """The name of the score behind it; for counts of replies and turns, the name of the count."""
    kind: Kind = "number"
    summed: Summed = "mean"
    per: str | None = None
    """The score that divides the first one, if any."""
    side: str | None = None
    """The side whose scores count, such as `seller` (`Family.side`); empty for all agents."""
    group: Group = "interaction"
    compared: bool = False
    """True if `localsim compare` tests it pair by pair; it then sums the scores of all agents in each episode."""
    published: Mapping[str, float] = field(default_factory=dict)
    """Condition -> value that arXiv 2403.05020 reports for GPT-3.5: a reference for the reader, not a target."""

    @property
    def bounded(self) -> bool:
        """True if its values lie between 0 and 1."""
        return self.kind != "number"
