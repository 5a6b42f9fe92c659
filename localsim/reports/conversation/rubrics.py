"""What judges answered about a run by rubrics: means by condition, each with what is known of its reliability."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from localsim import stats
from localsim.reports.conversation.rubric_people import people_and_judges
from localsim.reports.document import Table
from localsim.reports.validity.judges import follows_outcome
from localsim.scenarios.rubrics import SOTOPIA, rubric_files, shipped_rubric
from localsim.stats import Bounds, Estimate
from localsim.store.conditions import Condition, condition_of, in_order, names_of
from localsim.store.database import Store
from localsim.store.queries import reports as queries

Row = dict[str, Any]
_SPREAD = "_spread"


def rubric_rows(store: Store, run_id: str) -> list[Row]:
    """Return for each judge, rubric and dimension the mean score by condition, and what is known of its reliability.

    replies, unread: replies to its questions, and those that could not be read, which give no score. spread: standard
    deviation between samples of one question, as a share of the range. success_auroc: as `goal_auroc` in
    `validity.judges.reliability`; for a dimension that does not ask about success a value near .5 is no defect.
    people_rho, people_both: Spearman's correlation with the ratings of participants of an experiment who answered the
    same rubric, and over how many talks and agents; None and 0 without them.
    """
    asked = {(row["evaluator"], row["name"]): row for row in queries.rubric_replies(store, run_id)}
    people = {(row["rubric"], row["judge"], row["dimension"]): row for row in people_and_judges(store, run_id)}
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in queries.rubric_scores(store, run_id):
        groups[row["evaluator"], row["name"]].append(row)
    found = []
    for (evaluator, name), rows in groups.items():
        if not name.endswith(_SPREAD):
            spreads = [row["value"] for row in groups.get((evaluator, name + _SPREAD), [])]
            beside = people.get((*rubric_of(evaluator), name), {"rho": None, "both": 0})
            row = _dimension(evaluator, name, rows, spreads, asked.get((evaluator, name)))
            found.append({**row, "people_rho": beside["rho"], "people_both": beside["both"]})
    return found


def _dimension(evaluator: str, name: str, rows: Sequence[Row], spreads: Sequence[float], asked: Row | None) -> Row:
    rubric, judge = rubric_of(evaluator)
    given = [row for row in rows if row["value"] is not None]
    by_condition: dict[Condition, list[Row]] = defaultdict(list)
    by_episode: dict[str, list[Row]] = defaultdict(list)
    for row in given:
        by_condition[condition_of(row)].append(row)
        by_episode[row["episode_id"]].append(row)
    episodes = [
        {**own[0], "goal": statistics.fmean(row["value"] for row in own)}
        for own in by_episode.values()
        if own[0]["success"] is not None
    ]
    follows, pairs = follows_outcome(episodes)
    names = names_of(sorted(by_condition, key=in_order))
    means = {called: _mean(rubric, name, by_condition[each]) for each, called in names.items()}
    return {
        "rubric": rubric,
        "judge": judge,
        "dimension": name,
        "n": len(given),
        "mean_by_mode": {called: found.value for called, found in means.items()},
        "interval_by_mode": {called: [found.low, found.high] for called, found in means.items()},
        "talks_by_mode": {
            called: len({row["episode_id"] for row in by_condition[each]}) for each, called in names.items()
        },
        "replies": asked["replies"] if asked else None,
        "unread": asked["unread"] if asked else None,
        "spread": statistics.fmean(spreads) if spreads else None,
        "success_auroc": follows.value,
        "success_auroc_low": follows.low,
        "success_auroc_high": follows.high,
        "success_auroc_pairs": pairs,
        "warning": _doubt([row["value"] for row in given], follows),
    }


def _mean(rubric: str, dimension: str, rows: Iterable[Row]) -> Estimate:
    """Return the mean score, with a 95% interval over scenarios."""
    by_scenario: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        by_scenario[row["scenario_id"]].append(row["value"])
    return stats.clustered(by_scenario, _bounds(rubric, dimension))


def _bounds(rubric: str, dimension: str) -> Bounds:
    """Return lowest and highest score of a dimension of a rubric that ships; nothing is known of those of users."""
    if rubric not in {file.stem for file in rubric_files()}:
        return None, None
    asked = shipped_rubric(rubric).asked()
    return asked[dimension][:2] if dimension in asked else (None, None)


def rubric_of(evaluator: str) -> tuple[str, str]:
    """Return rubric and model of the name under which a judge's scores are stored."""
    kind, _, rest = evaluator.partition(".")
    if kind == "judge":
        return SOTOPIA, rest
    rubric, _, model = rest.partition(".")
    return rubric, model


def _doubt(values: Sequence[float], follows: Estimate) -> str | None:
    if not values:
        return "no reply could be read"
    if len(values) > 1 and len(set(values)) == 1:
        return "the same score for all: it tells nothing apart"
    return "not checked against an outcome" if follows.value is None else None


def rubric_table(rows: Iterable[Row]) -> tuple[list[str], list[list[Any]]]:
    """Return headings and cells of `rubric_rows`: each score with its reliability."""
    heads = ["rubric", "judge", "dimension", "n", "mean", *_RELIABILITY]
    cells = []
    for row in rows:
        means = ", ".join(f"{mode} {mean:.1f}" for mode, mean in row["mean_by_mode"].items())
        cells.append([row["rubric"], row["judge"], row["dimension"], row["n"], means, *_reliability(row)])
    return heads, cells


_RELIABILITY = ["unread", "spread", "AUROC of success", "people", "remark"]


def _reliability(row: Row) -> list[str]:
    unread = "" if row["replies"] is None else f"{row['unread']} of {row['replies']}"
    spread = "" if row["spread"] is None else f"{row['spread']:.2f}"
    value, low, high = (row[f"success_auroc{end}"] for end in ("", "_low", "_high"))
    ends = "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
    auroc = "" if value is None else f"{value:.2f}{ends}"
    rho, both = row["people_rho"], row["people_both"]
    people = f"{'-' if rho is None else f'{rho:.2f}'} ({both})" if both else ""
    return [unread, spread, auroc, people, row["warning"] or ""]


def rubric_tables(found: Iterable[Row]) -> Iterator[Table]:
    """Yield a table for each judge and rubric: the mean of each dimension by mode, beside its reliability."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in found:
        groups[row["judge"], row["rubric"]].append(row)
    for (judge, rubric), rows in groups.items():
        modes = list(dict.fromkeys(mode for row in rows for mode in row["mean_by_mode"]))
        talks = {mode: max(row["talks_by_mode"].get(mode, 0) for row in rows) for mode in modes}
        heads = ["dimension", *(f"{mode}, {_talks(talks[mode])}" for mode in modes), *_RELIABILITY]
        body = [[row["dimension"], *(_cell(row, mode, talks) for mode in modes), *_reliability(row)] for row in rows]
        yield Table(f"Judge {judge}, rubric {rubric}", heads, body, [_NOTE])


_NOTE = (
    "Mean scores with 95% intervals over scenarios. Unread replies are no scores. Spread: between answers to one "
    "question, as a share of the range. AUROC of success: share of pairs in which the successful talk has the higher "
    "score; .5 is chance. People: rank correlation with participants who answered the same rubric, and over how many "
    "talks and agents."
)


def _talks(count: int) -> str:
    return f"{count} talk{'' if count == 1 else 's'}"


def _cell(row: Row, mode: str, talks: Mapping[str, int]) -> str:
    """Return a mean with its interval, and the number of talks if some of the mode's have no score here."""
    if mode not in row["mean_by_mode"]:
        return "-"
    low, high = row["interval_by_mode"][mode]
    ends = "" if low is None or high is None else f" [{low:.1f}, {high:.1f}]"
    own = row["talks_by_mode"][mode]
    return f"{row['mean_by_mode'][mode]:.1f}{ends}" + ("" if own == talks[mode] else f" ({_talks(own)})")
