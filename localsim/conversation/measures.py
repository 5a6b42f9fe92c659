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
Summed = Literal["mean", "episodes", "completed_episodes", "episode_sum", "count"]
"""The ways to turn scores into one number.

mean: the mean of the scores, with a t interval. episodes: the share of the scored episodes whose score is 1, with
Wilson's interval. completed_episodes: the same of all completed episodes; an episode without the score counts as 0.
episode_sum: the scores of all agents are summed in each episode (and divided by the sum of `per`, if given), then
averaged. count: a share of replies or turns, which have no scores; `score` names the count.
"""
Group = Literal["goals", "information", "interaction"]
"""The part of the simulation card that lists the measure."""
Figure = Literal["", "style", "secrets"]
"""The figure that every family has and that draws the measure; a family names the measures of its main figure."""


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
    """The score that divides the first one, if any."""
    side: str | None = None
    """The side whose scores count, such as `seller` (`Family.side`); empty for all agents."""
    group: Group = "interaction"
    figure: Figure = ""
    compared: bool = False
    """True if `localsim compare` tests it pair by pair."""
    published: Mapping[str, float] = field(default_factory=dict)
    """Condition -> value that arXiv 2403.05020 reports for GPT-3.5: a reference for the reader, not a target."""
