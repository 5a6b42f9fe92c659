"""The registry of measures: every column of a report, as declared by a family or an evaluator, and its sum.

The report, comparisons, the card, plots, pages and the docs take headings, meanings, kinds and order from here.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from localsim import plugins, stats
from localsim.conversation.measures import Measure
from localsim.conversation.scenario import AnswerKey
from localsim.errors import suggest
from localsim.evaluators.checks import CHECKS, PREFIX, measure_of
from localsim.evaluators.evaluate import evaluator_of
from localsim.evaluators.leaks import Leaks
from localsim.evaluators.play import PLAY
from localsim.evaluators.style import STYLE
from localsim.families import EVERYDAY, FAMILIES, family_of
from localsim.families.base import EXPLICIT_END, SUCCESS
from localsim.reports.results import Number
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.store.queries.reports import Episode, Score

T = TypeVar("T")

_COUNTED = (
    Measure("stale_rate", "nothing new", "share of conversations that were ended because nothing new was said any more",
            score="stale", kind="share", summed="count"),
    Measure("malformed_rate", "malformed", "share of the model’s replies that could not be read as a turn",
            score="malformed", kind="share", summed="count"),
    Measure("repaired_rate", "repaired",
            "share of turns from which lines of others, actions in brackets or quotation marks were left out",
            score="repaired", kind="share", summed="count"),
    Measure("truncated_rate", "cut short", "share of turns whose text was cut at its limit",
            score="truncated", kind="share", summed="count"),
)  # fmt: skip
"""Measures of conversations, replies and turns that have no scores."""
COUNTS = {"stale": "ruled", "malformed": "replies", "repaired": "turns", "truncated": "turns"}
"""Name of a count -> that of which it is a share, both columns of `queries.reports.counts`."""


def measures_of(
    families: Iterable[str] = (), scores: Iterable[Score] = (), checks: Iterable[str] = ()
) -> list[Measure]:
    """Return the measures of a report on these families and localsim's own, in the order of its columns.

    `scores` are those of the run: installed evaluators among theirs add their measures, and the checks of a scenario
    one each. `checks` are names of checks that have no scores yet.
    """
    declared = [measure for name in FAMILIES.own for measure in family_of(name).measures]
    for name in families:
        measures = family_of(name).measures
        declared += measures if name in (*FAMILIES.own, EVERYDAY.name) else of_plugin(measures)
    found = {(row.evaluator, row.name) for row in scores}
    asked = {evaluator for evaluator, _ in found}
    scored = sorted(name.removeprefix(PREFIX) for _, name in found if name.startswith(PREFIX))
    own = [measure_of(name) for name in dict.fromkeys((*checks, *scored))]
    installed = asked and asked.intersection(plugins.names("evaluators"))
    added = [measure for name in sorted(installed) for measure in of_plugin(evaluator_of(name).measures)]
    usual = [*Leaks.measures, *STYLE.measures, *PLAY.measures]
    ordered = [SUCCESS, *CHECKS.measures, *own, EXPLICIT_END, *declared, *usual, *added, *_COUNTED]
    by_key: dict[str, Measure] = {}
    for measure in ordered:
        by_key.setdefault(measure.key, measure)
    return list(by_key.values())


def hint_on(name: str, known: Collection[str]) -> str:
    """Return the hint for a measure, or an outcome, that is not among the known ones."""
    if not name.startswith(PREFIX):
        return suggest(name, known) or f"measures are {', '.join(known)}"
    checks = [key for key in known if key.startswith(PREFIX)]
    listed = f"the checks of the scenarios are {', '.join(checks)}"
    return listed if checks else "these scenarios have no checks: scenarios/README.md shows how to write them"


def of_plugin(measures: Iterable[Measure]) -> list[Measure]:
    """Return measures of another package: modes are compared by them unless they say otherwise."""
    return [replace(each, compared=each.compared is not False) for each in measures]


def of_family(measure: Measure, family: str | None) -> Measure:
    """Return the family's own definition of a measure, if it declares one with the same key."""
    return next((own for own in family_of(family).measures if own.key == measure.key), measure)


def heading_of(score: str, family: str | None) -> str:
    """Return what a report calls a score: the heading of the measure that shows it, else its name in words."""
    declared = (*family_of(family).measures, *Leaks.measures)
    shows = (one for one in declared if one.score == score and one.side is None)
    plain = (one.heading for one in shows if one.summed != "excess" and one.per is None)
    return next(plain, score.replace("_", " "))


def published() -> dict[str, dict[str, float]]:
    """Return measure -> condition -> value that arXiv 2403.05020 (sections 4 and 5) reports for GPT-3.5.

    `agents-ft` are agents fine-tuned on scripts.
    """
    return {measure.key: dict(measure.published) for measure in measures_of() if measure.published}


INVENTED = (
    "Where all scenarios agree, a share still has an interval: it is computed as if one more scenario had the least "
    "possible value and another the greatest, because scenarios that differ may only not have been drawn."
)
"""Where an interval comes from although nothing varies."""
INTERVALS = (
    f"[ , ]: 95% interval, Student's t over scenarios. {INVENTED} A number that is the same in all N conversations has "
    "no interval."
)
"""The source of the intervals, for the foot of a table."""


@dataclass(frozen=True)
class Cell:
    """The episodes and scores of one family x mode x model."""

    family: str
    episodes: Sequence[Episode]
    scores: Sequence[Score]
    """With their sides."""
    counts: Mapping[str, Mapping[str, tuple[int, int]]]
    """Name of a count (of `COUNTS`) -> episode id -> (how many, of how many)."""

    @cached_property
    def by_name(self) -> Mapping[str, Sequence[Score]]:
        """The scores by name: a report asks for each of them several times."""
        return by_name(self.scores)

    def of(self, measure: Measure) -> list[Score]:
        """Return the scores behind a measure."""
        return [row for name in dict.fromkeys((measure.score, measure.per or "")) for row in self.by_name.get(name, ())]

    def count(self, status: str) -> int:
        """Return the number of episodes with a status."""
        return sum(row.status == status for row in self.episodes)

    def _values(self, measure: Measure) -> list[tuple[str, float]]:
        """Return (episode id, value) of a measure's score; if the measure has a side, only of that side."""
        return [
            (row.episode_id, row.value)
            for row in self.by_name.get(measure.score, ())
            if row.value is not None and measure.side in (None, row.side)
        ]

    def judged(self, measure: Measure) -> int:
        """Return the number of episodes in which a measure has a value."""
        if measure.summed == "excess":
            return len(_tries(measure, self.of(measure)))
        return len({episode_id for episode_id, _ in self._values(measure)})

    def alike(self, measure: Measure) -> int:
        """Return the number of episodes if several scenarios have one and the same value of a number, else 0."""
        if not measure.is_number:
            return 0
        scenarios = self.by_scenario(measure)
        values = {round(value, 9) for own in scenarios.values() for value in own}
        return self.judged(measure) if len(values) == 1 and len(scenarios) > 1 else 0

    def by_scenario(self, measure: Measure) -> dict[str, list[float]]:
        """Return scenario -> values of a measure's score."""
        found = self._values(measure)
        if measure.summed == "episode_sum":
            found = list(by_episode(measure, self.of(measure)).items())
        return self.grouped(found)

    def grouped(self, found: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
        """Return scenario -> values, given (episode id, value)."""
        scenarios = {row.episode_id: row.scenario_hash for row in self.episodes}
        return stats.grouped((scenarios[episode_id], value) for episode_id, value in found)


def by_episode(measure: Measure, scores: Iterable[Score]) -> dict[str, float]:
    """Return episode id -> value of a measure: its scores summed over the agents, divided by the sum of `per`.

    An episode without any of the scores is left out. The value
    of `excess` is (hits - chance) / (n - chance) of the episode's agents.
    """
    if measure.summed == "excess":
        found = {episode_id: stats.excess({"": tries}).value for episode_id, tries in _tries(measure, scores).items()}
        return {episode_id: value for episode_id, value in found.items() if value is not None}
    sums: dict[str, dict[str, float]] = {}
    for row in scores:
        own = row.name == measure.score and measure.side in (None, row.side)
        if row.value is not None and (own or row.name == measure.per):
            of_episode = sums.setdefault(row.episode_id, {})
            of_episode[row.name] = of_episode.get(row.name, 0.0) + row.value
    if measure.per is None:
        return {episode_id: given[measure.score] for episode_id, given in sums.items()}
    return {
        episode_id: given.get(measure.score, 0.0) / given[measure.per]
        for episode_id, given in sums.items()
        if given.get(measure.per)
    }


def _tries(measure: Measure, scores: Iterable[Score]) -> dict[str, list[tuple[float, float]]]:
    """Return episode id -> (hit, chance) of each agent that has both scores."""
    given: dict[tuple[str, str | None], dict[str, float]] = {}
    for row in scores:
        if row.name in (measure.score, measure.per) and measure.side in (None, row.side) and row.value is not None:
            given.setdefault((row.episode_id, row.agent), {})[row.name] = row.value
    return stats.grouped(
        (episode_id, (values[measure.score], values[str(measure.per)]))
        for (episode_id, _), values in given.items()
        if len(values) == 2
    )


def sided(store: Store, run_id: str) -> list[Score]:
    """Return the newest scores of a run, each with the side of its agent; '' for the whole episode."""
    texts = queries.answers(store, run_id)
    read = {text: AnswerKey.from_json(json.loads(text)) for text in dict.fromkeys(texts.values())}
    return [
        replace(row, side=family_of(row.family).side(row.agent, read[texts[row.episode_id]])) if row.agent else row
        for row in queries.scores(store, run_id)
    ]


def by_name(scores: Iterable[Score]) -> dict[str, list[Score]]:
    """Return name -> scores."""
    return stats.grouped((row.name, row) for row in scores)


def within(measure: Measure, scores: Mapping[str, Sequence[Score]]) -> Measure:
    """Return a measure with its greatest possible value, the greatest of the scores (by name) named by `up_to`.

    It has none if a value exceeds that limit, as imported conversations of people do, which had no limit.
    """
    if not measure.up_to:
        return measure
    most, values = (
        [row.value for row in scores.get(name, ()) if row.value is not None] for name in (measure.up_to, measure.score)
    )
    known = most and max(values, default=0.0) <= max(most)
    return replace(measure, bounds=(measure.bounds[0], max(most))) if known else measure


def estimate(measure: Measure, cell: Cell) -> stats.Estimate:
    """Return a measure of one cell with its 95% interval over scenarios; NOTHING if it has no meaning or no scores."""
    measure = within(of_family(measure, cell.family), cell.by_name)
    if measure.summed == "count":
        counts = cell.grouped(cell.counts[measure.score].items())
        return stats.rate(
            {name: (sum(some for some, _ in own), sum(total for _, total in own)) for name, own in counts.items()}
        )
    if measure.summed == "excess":
        tries = _tries(measure, cell.of(measure)).items()
        return stats.excess(cell.grouped((episode_id, one) for episode_id, own in tries for one in own))
    return stats.clustered(cell.by_scenario(measure), measure.bounds, measure.is_number)


def number(measure: Measure, cell: Cell) -> Number:
    """Return a measure of one cell as a report shows it, rounded to four places."""
    own = of_family(measure, cell.family)
    judged = cell.judged(own) if measure.kind == "position" or measure.summed == "excess" else None
    return Number(measure.kind, *estimate(measure, cell).rounded(), judged, cell.alike(own))
