"""The registry of measures: every column of a report, declared by a family or an evaluator, and how it is summed.

Headings, meanings, kinds and order come from here for the report, comparisons, the card, plots, pages and the docs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from localsim import plugins, stats
from localsim.conversation.measures import Measure
from localsim.evaluators import leaks, style
from localsim.evaluators.checks import CHECKS_PASSED
from localsim.evaluators.evaluate import evaluator_of
from localsim.families import FAMILIES, family_of
from localsim.families.base import EXPLICIT_END, SUCCESS

Row = dict[str, Any]

MALFORMED = Measure(
    key="malformed_rate",
    heading="malformed",
    meaning="share of the model\u2019s replies that could not be read as a turn",
    score="malformed",
    kind="share",
)
TRUNCATED = Measure(
    key="truncated_rate",
    heading="cut short",
    meaning="share of turns whose text was cut at its limit",
    score="truncated",
    kind="share",
)
_COUNTED = (MALFORMED, TRUNCATED)
"""Measures of replies and turns, which have no scores."""


def measures_of(families: Iterable[str] = (), evaluators: Iterable[str] = ()) -> list[Measure]:
    """The measures of a report about these families (and localsim's own), in the order of its columns; those of
    installed evaluators are added where a run has their scores.
    """
    declared = [measure for name in [*FAMILIES.own, *families] for measure in family_of(name).measures]
    installed = set(plugins.names("evaluators")) & set(evaluators)
    added = [measure for name in sorted(installed) for measure in evaluator_of(name).measures]
    ordered = [SUCCESS, CHECKS_PASSED, EXPLICIT_END, *declared, *leaks.MEASURES, *style.MEASURES, *added, *_COUNTED]
    return list({measure.key: measure for measure in ordered}.values())


def published() -> dict[str, dict[str, float]]:
    """Measure -> condition -> value that arXiv 2403.05020 (sections 4 and 5) reports for GPT-3.5; `agents-ft` are
    agents fine-tuned on scripts.
    """
    return {measure.key: dict(measure.published) for measure in measures_of() if measure.published}


@dataclass(frozen=True)
class Cell:
    """The episodes and scores of one family x mode x model."""

    family: str
    episodes: Sequence[Row]
    """episode_id, status."""
    scores: Sequence[Row]
    """episode_id, agent, name, value, side."""
    replies: int
    """Replies that a model gave."""
    malformed: int
    turns: int
    truncated: int

    def count(self, status: str) -> int:
        """Episodes with a status."""
        return sum(row["status"] == status for row in self.episodes)

    def values(self, measure: Measure) -> list[float]:
        """The values of a measure's score, of its side only if it has one."""
        return [
            float(row["value"])
            for row in self.scores
            if row["name"] == measure.score
            and row["value"] is not None
            and (measure.side is None or row["side"] == measure.side)
        ]

    def sums(self, measure: Measure) -> list[float]:
        """The score summed over the agents of each episode, divided by the sum of `per` where there is one."""
        sums: dict[str, dict[str, float]] = {}
        for row in self.scores:
            if row["name"] in (measure.score, measure.per) and row["value"] is not None:
                found = sums.setdefault(row["episode_id"], {})
                found[row["name"]] = found.get(row["name"], 0.0) + float(row["value"])
        if measure.per is None:
            return [found.get(measure.score, 0.0) for found in sums.values()]
        return [found.get(measure.score, 0.0) / found[measure.per] for found in sums.values() if found.get(measure.per)]


def estimate(measure: Measure, cell: Cell) -> stats.Estimate:
    """A measure of one cell with its 95% interval; NOTHING where it has no meaning or no scores."""
    if measure is MALFORMED:
        return stats.share(cell.malformed, cell.replies)
    if measure is TRUNCATED:
        return stats.share(cell.truncated, cell.turns)
    if measure.summed == "episode_sum":
        return stats.mean(cell.sums(measure))
    values = cell.values(measure)
    if measure.summed == "share":
        return stats.share(int(sum(values)), len(values))
    if measure.summed == "share_of_completed":
        own = measure in family_of(cell.family).measures
        return stats.share(int(sum(values)), cell.count("completed")) if own else stats.NOTHING
    return stats.mean(values)


def as_json(measure: Measure) -> Row:
    """A measure as `report --json` describes it: key, heading, meaning, kind, group, published."""
    fields = {name: getattr(measure, name) for name in ("key", "heading", "meaning", "kind", "group")}
    return {**fields, "published": dict(measure.published)}


def shown(measures: Iterable[Row], rows: Iterable[Row]) -> list[Row]:
    """The measures (as JSON) that have a value in at least one row of a comparison."""
    rows = list(rows)
    return [measure for measure in measures if any(row[measure["key"]] is not None for row in rows)]


def text_of(measure: Row, row: Row) -> str | None:
    """An estimate of a comparison's row with its interval, for a terminal or a document; None without a value."""
    key = measure["key"]
    value, low, high = row[key], row[f"{key}_low"], row[f"{key}_high"]
    if value is None:
        return None
    form = ".0%" if measure["kind"] == "share" else ".2f"
    return f"{value:{form}} [{low:{form}}, {high:{form}}]" if low is not None else f"{value:{form}}"
