"""What judges answered about a run: by rubrics, and when they chose among conversations.

Each answer stands with what is known of its reliability: means of rubrics by condition; how often each condition was
chosen, ties, and the bias for a place. Participants of an experiment may have answered the same rubric about the same
talks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from localsim import stats
from localsim.annotation.measures import alpha, correlation
from localsim.conversation.wording.wordings import counted
from localsim.evaluators.choosing import CHOSEN, PLACE
from localsim.reports.document import Table
from localsim.reports.validity.judges import Goal, follows_outcome
from localsim.scenarios.documents import shipped_files
from localsim.scenarios.rubrics import SOTOPIA, shipped_rubric
from localsim.stats import Bounds, Estimate
from localsim.store.conditions import Condition, in_order, names_of
from localsim.store.database import Store
from localsim.store.queries import experiments, judged

_SPREAD = "_spread"


@dataclass(frozen=True)
class Judged:
    """What a judge answered by one dimension of a rubric, and what is known of its reliability: a row of `rubrics` in
    `report --json`.
    """

    rubric: str
    judge: str
    dimension: str
    n: int
    mean_by_mode: Mapping[str, float | None]
    interval_by_mode: Mapping[str, Sequence[float | None]]
    talks_by_mode: Mapping[str, int]
    replies: int | None
    unread: int | None
    """Replies that could not be read, which give no score."""
    spread: float | None
    """Standard deviation between samples of one question, as a share of the range."""
    success_auroc: float | None
    """As `goal_auroc` in `validity.judges.reliability`; if the dimension does not ask about success, a value near .5
    is no defect.
    """
    success_auroc_low: float | None
    success_auroc_high: float | None
    success_auroc_pairs: int
    warning: str | None
    people_rho: float | None
    """Spearman's correlation with the ratings of participants of an experiment who answered the same rubric."""
    people_both: int
    """Over how many talks and agents; 0 without participants."""


@dataclass(frozen=True)
class Rated:
    """What participants of an experiment answered by one dimension of a rubric, beside one judge or none."""

    rubric: str
    dimension: str
    ratings: int
    cannot_tell: int
    alpha: float | None
    """Krippendorff's, of people who rated the same talk and agent."""
    judge: str | None = None
    both: int = 0
    """Talks and agents with a rating and a score."""
    mean: float | None = None
    """Of people, over what both rated; over all ratings without a judge."""
    score: float | None = None
    """Of the judge, over what both rated."""
    rho: float | None = None
    p: float | None = None


def rubric_rows(store: Store, run_id: str) -> list[Judged]:
    """Return what judges answered about a run by rubrics."""
    replies = judged.rubric_replies(store, run_id)
    people = {(row.rubric, row.judge, row.dimension): row for row in people_and_judges(store, run_id)}
    groups = stats.grouped(((row.evaluator, row.name), row) for row in judged.rubric_scores(store, run_id))
    return [
        _dimension(
            rows,
            [row.value for row in groups.get((evaluator, name + _SPREAD), []) if row.value is not None],
            replies.get((evaluator, name), (None, None)),
            people.get((*rubric_of(evaluator), name)),
        )
        for (evaluator, name), rows in groups.items()
        if not name.endswith(_SPREAD)
    ]


def _dimension(
    rows: Sequence[judged.RubricScore],
    spreads: Sequence[float],
    replies: tuple[int, int] | tuple[None, None],
    people: Rated | None,
) -> Judged:
    (rubric, judge), name = rubric_of(rows[0].evaluator), rows[0].name
    given = [(row, row.value) for row in rows if row.value is not None]
    by_condition = stats.grouped((row.condition, (row, value)) for row, value in given)
    by_episode = stats.grouped((row.episode_id, value) for row, value in given)
    first = {row.episode_id: row for row, _ in reversed(given)}
    follows, pairs = follows_outcome([
        Goal(row.family, row.scenario_id, row.condition, fmean(own), row.success)
        for episode, own in by_episode.items()
        if (row := first[episode]).success is not None
    ])  # fmt: skip
    names = names_of(sorted(by_condition, key=in_order))
    means = {}
    for each, called in names.items():
        by_scenario = stats.grouped((row.scenario_id, value) for row, value in by_condition[each])
        means[called] = stats.clustered(by_scenario, _bounds(rubric, name))
    return Judged(
        rubric,
        judge,
        name,
        len(given),
        mean_by_mode={called: found.value for called, found in means.items()},
        interval_by_mode={called: [found.low, found.high] for called, found in means.items()},
        talks_by_mode={
            called: len({row.episode_id for row, _ in by_condition[each]}) for each, called in names.items()
        },
        replies=replies[0],
        unread=replies[1],
        spread=fmean(spreads) if spreads else None,
        success_auroc=follows.value,
        success_auroc_low=follows.low,
        success_auroc_high=follows.high,
        success_auroc_pairs=pairs,
        warning=_doubt([value for _, value in given], follows),
        people_rho=people.rho if people else None,
        people_both=people.both if people else 0,
    )


def _bounds(rubric: str, dimension: str) -> Bounds:
    """Return lowest and highest score of a dimension of a rubric that ships; nothing is known of those of users."""
    if rubric not in {file.stem for file in shipped_files("rubrics")}:
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


def people_and_judges(store: Store, run_id: str) -> list[Rated]:
    """Return what participants of an experiment answered to rubrics, beside each judge that answered the same."""
    ratings = experiments.rubric_ratings(store, run_id)
    groups = stats.grouped(((row.rubric, row.dimension), row) for row in ratings)
    return [found for (rubric, dimension), rows in groups.items() for found in _rated(rubric, dimension, rows)]


def _rated(rubric: str, dimension: str, rows: Sequence[experiments.Rating]) -> Iterator[Rated]:
    answers = {(row.participant, row.episode_id, row.agent): row.rating for row in rows}
    units = stats.grouped(
        ((episode, agent), rating) for (_, episode, agent), rating in answers.items() if rating is not None
    )
    given = [rating for own in units.values() for rating in own]
    agreed = alpha(list(units.values()), "interval").alpha
    people = (rubric, dimension, len(given), len(answers) - len(given), agreed)
    judges = dict.fromkeys(row.judge for row in rows if row.judge is not None)
    for judge in judges:
        scores = {(row.episode_id, row.agent): row.score for row in rows if row.judge == judge}
        pairs = [(fmean(units[unit]), score) for unit, score in scores.items() if score is not None and unit in units]
        found = correlation(pairs)
        mean, score = map(fmean, zip(*pairs, strict=True)) if pairs else (None, None)
        yield Rated(*people, judge, len(pairs), mean, score, found.rho, found.p)
    if not judges:
        yield Rated(*people, mean=fmean(given) if given else None)


_RELIABILITY = ["unread", "spread", "AUROC of success", "people", "remark"]


def _reliability(row: Judged) -> list[str]:
    unread = "" if row.replies is None else f"{row.unread} of {row.replies}"
    spread = "" if row.spread is None else f"{row.spread:.2f}"
    follows = (row.success_auroc, row.success_auroc_low, row.success_auroc_high)
    auroc = "" if row.success_auroc is None else stats.text_of(*follows)
    people = f"{stats.text_of(row.people_rho)} ({row.people_both})" if row.people_both else ""
    return [unread, spread, auroc, people, row.warning or ""]


def rubric_tables(found: Iterable[Judged]) -> Iterator[Table]:
    """Yield a table for each judge and rubric: the mean of each dimension by mode, beside its reliability."""
    for (judge, rubric), rows in stats.grouped(((row.judge, row.rubric), row) for row in found).items():
        modes = list(dict.fromkeys(mode for row in rows for mode in row.mean_by_mode))
        talks = {mode: max(row.talks_by_mode.get(mode, 0) for row in rows) for mode in modes}
        heads = ["dimension", *(f"{mode}, {counted(talks[mode], 'talk')}" for mode in modes), *_RELIABILITY]
        body = [[row.dimension, *(_cell(row, mode, talks) for mode in modes), *_reliability(row)] for row in rows]
        yield Table(f"Judge {judge}, rubric {rubric}", heads, body, [_NOTE])


_NOTE = (
    "Mean scores with 95% intervals over scenarios. Unread replies are no scores. Spread: between answers to one "
    "question, as a share of the range. AUROC of success: share of pairs in which the successful talk has the higher "
    "score; .5 is chance. People: rank correlation with participants who answered the same rubric, and over how many "
    "talks and agents."
)


def _cell(row: Judged, mode: str, talks: Mapping[str, int]) -> str:
    """Return a mean with its interval, and the number of talks if some of the mode's have no score here."""
    if mode not in row.mean_by_mode:
        return "-"
    low, high = row.interval_by_mode[mode]
    text = stats.text_of(row.mean_by_mode[mode], low, high, ".1f")
    own = row.talks_by_mode[mode]
    return text + ("" if own == talks[mode] else f" ({counted(own, 'talk')})")


# ---- choices among conversations -------------------------------------------------------------------------------------


AGREE = 0.6
"""Below this share of decided sets a judge is called one that picks places."""


@dataclass(frozen=True)
class Share:
    """The share of decided sets that a condition won, with a 95% interval over scenarios."""

    condition: str
    chosen: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Choices:
    """What a judge chose in the sets of some conditions: a row of `choices` in `report --json`."""

    judge: str
    criterion: str
    n: int
    """Conversations of a set."""
    sets: int
    decided: int
    """Sets in which all rotations chose the same conversation; the others are ties."""
    conditions: Sequence[Share]
    places: Sequence[float | None]
    """The share of rotations in which each place was named; without a bias each has 1/n."""
    warning: str | None


def choices(store: Store, run_id: str) -> list[Choices]:
    """Return what each judge chose in each set of conditions of a run."""
    groups: dict[tuple[str, str], list[judged.Chosen]] = defaultdict(list)
    places: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in judged.candidates(store, run_id):
        place, _, name = row.name.removeprefix(PLACE).partition(":")
        if row.name.startswith(PLACE):
            places[row.evaluator, name][int(place)].append(row.value)
        else:
            groups[row.evaluator, row.name].append(row)
    return [_of_set(rows, places[key]) for key, rows in groups.items()]


def _of_set(rows: Sequence[judged.Chosen], places: Mapping[int, Sequence[float]]) -> Choices:
    criterion, _, judge = rows[0].evaluator.removeprefix("choose.").partition(".")
    n = len(rows[0].name.removeprefix(CHOSEN).split("|"))
    by_condition: dict[Condition, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        by_condition[row.condition][row.scenario_id].append(row.value)
    names = names_of(sorted(by_condition, key=in_order))
    values = [value for group in next(iter(by_condition.values())).values() for value in group]
    decided = sum(value in (0.0, 1.0) for value in values)
    shares = [_share(called, by_condition[each]) for each, called in names.items()]
    named = [round(fmean(places[at]), 4) if places.get(at) else None for at in range(1, n + 1)]
    warning = "picks a place, not a conversation: do not use it" if decided < AGREE * len(values) else None
    return Choices(judge, criterion, n, len(values), decided, shares, named, warning)


def _share(name: str, by_scenario: Mapping[str, Sequence[float]]) -> Share:
    won = {
        key: (sum(value == 1 for value in own), sum(value in (0, 1) for value in own))
        for key, own in by_scenario.items()
    }
    return Share(name, *stats.rate(won)[:3])


def choice_tables(found: Iterable[Choices]) -> Iterator[Table]:
    """Yield a table for each judge and set: how often each condition was chosen, with ties and places below it."""
    for row in found:
        asked = "the most natural" if row.criterion == "natural" else f"the best by question {row.criterion}"
        lines = [[each.condition, stats.text_of(each.chosen, each.low, each.high, ".0%")] for each in row.conditions]
        yield Table(f"Judge {row.judge}, {asked} of {row.n}", ["condition", "chosen"], lines, list(_notes(row)))


def _notes(row: Choices) -> Iterator[str]:
    yield (
        f"{row.sets} sets, each asked in all {row.n} rotations of its order: {row.decided} decided alike in all, "
        f"{row.sets - row.decided} ties. Shares are of the decided sets; without a preference each would be "
        f"{1 / row.n:.0%}."
    )
    if None not in row.places:
        shares = ", ".join(f"{number}: {share:.0%}" for number, share in enumerate(row.places, start=1))
        yield f"Place that was named, over all rotations: {shares}; without a bias {1 / row.n:.0%} each."
    if row.warning:
        yield f"This judge {row.warning}."
