"""Paired comparisons of conditions on the same scenario and seed: modes of a run, and conditions of several runs.

A difference between modes is split in two: information (mindreaders - agents: the same separate models, which see more)
and authorship (script - mindreaders: one writer instead of two models that see as much). The plan of a run declares one
primary outcome, and secondary ones, whose p are corrected together (Holm); every other difference is exploratory.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Any

from localsim import stats
from localsim.backends import person
from localsim.conversation.episode import PEOPLE
from localsim.conversation.measures import Measure
from localsim.conversation.wording.wordings import counted
from localsim.errors import InvalidInput
from localsim.evaluators.evaluate import installed
from localsim.families import in_order
from localsim.reports.evidence.playing import of_conditions
from localsim.reports.measures import (
    INVENTED,
    by_episode,
    by_name,
    hint_on,
    measures_of,
    of_family,
    of_plugin,
    sided,
    within,
)
from localsim.reports.validity.findings import ONE_STORY, Difference
from localsim.reports.validity.findings import scenarios as words_of
from localsim.runs.plan import CONTRASTS, PRIMARY, Outcome, Plan, outcome_in, outcomes_of
from localsim.store import conditions as spelling
from localsim.store.conditions import Choice, Condition, names_of
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.store.queries.reports import Episode, Score
from localsim.store.queries.runs import run_row
from localsim.store.queries.stories import changed_scenarios
from localsim.store.queries.stories import stories as stories_of

Unit = tuple[str, int, int, int]
"""Scenario (by content), episode index, seed and variant, which the episodes of a pair share. People have no seeds: all
their talks on a scenario share the index and seed 0, and count as their mean.
"""
Values = Iterator[tuple[str, Measure, dict[Condition, dict[Unit, float]]]]
"""Family, measure, and the values by condition and unit."""
Pair = tuple[Condition, Condition]

MARGIN = 0.1
"""Two shares that differ by less are called equivalent by default."""
MAIN = ("success_rate", "peeking", "first_mention_turn", "first_mention", "turns")
"""The measures that a short comparison shows: success, use of the other side, when a friend is named, and length."""
_ORDER = ("agents", "mindreaders", "iterative", "script")
"""Second minus first is then named as the contrasts are; other modes come after these."""


@dataclass(frozen=True)
class Compared(Difference):
    """Two conditions on their pairs."""

    contrast: str
    """What tells the modes of one run apart (`CONTRASTS`); empty for other pairs."""
    levels: tuple[float, float]
    """The values of both conditions: each scenario counts once, so their difference is that of the test."""
    by_construction: bool
    """True if the measure can only be 0 in one of the modes: there is no p then."""
    equivalence: stats.Equivalence | None
    first: str
    second: str
    """The names of the conditions, reduced to what differs."""
    model: str
    """Empty if two models are compared."""
    plays: bool | None
    """False if the talks of one of them do not play, None if no talk has that score."""
    unpaired: Sequence[int]
    """Scenarios that only the first, and only the second, completed with this seed: they are left out."""

    @property
    def outcome(self) -> Outcome:
        """The measure and what tells the modes apart."""
        return Outcome(self.measure.key, self.contrast)

    @property
    def alike(self) -> bool:
        """True if several scenarios have one and the same difference of a number."""
        return self.measure.kind == "number" and self.test.scenarios > 1 and self.test.effect is None

    def as_json(self) -> dict[str, Any]:
        """Return a row of `compare --json`."""
        return {**super().as_json(), "equivalence": self.equivalence and self.equivalence._asdict()}


def compare(
    store: Store,
    first_run: str,
    second_run: str | None = None,
    margin: float | None = None,
    among: Collection[Unit] | None = None,
    scores: Sequence[Score] | None = None,
) -> list[Compared]:
    """Compare the modes of one run, or the same mode (or people) in two runs, in each family and measure.

    The primary outcome comes first. `margin` tests equivalence for all measures with bounds; without it, shares
    are tested with MARGIN. Two runs have no primary outcome in common. `among` are the units that count; None: all.
    `scores` are those of one run with their sides, if they have been read.
    """
    runs = [first_run, second_run] if second_run else [first_run]
    found = [Choice(tuple(spelling.conditions_of(store, run_id)), whole=True) for run_id in runs]
    return compare_chosen(store, found, margin, among, scores)


def compare_chosen(
    store: Store,
    chosen: Sequence[Choice],
    margin: float | None = None,
    among: Collection[Unit] | None = None,
    scores: Sequence[Score] | None = None,
    secondary: Sequence[Outcome] = (),
) -> list[Compared]:
    """Compare as `compare` does, for the pairs of conditions that `conditions.pairs_of` makes of a choice.

    What the plan of a run declares counts only if the run alone is compared with itself. `secondary` takes the place of
    its secondary outcomes; between runs, which have no contrasts, it names measures. Raises InvalidInput if no pair has
    one of them.
    """
    chosen = [Choice(tuple(sorted(each.conditions, key=in_contrasts)), True) if each.whole else each for each in chosen]
    conditions = [each for choice in chosen for each in choice.conditions]
    runs = list(dict.fromkeys(each.run_id for each in conditions))
    alone = len(chosen) == 1 and chosen[0].whole
    declared = outcomes_of(json.loads(run_row(store, runs[0])["plan_json"])) if alone else None
    wanted = list(spelling.pairs_of(chosen))
    left_out, told, stories = unpaired(store, wanted), of_conditions(store, conditions), stories_of(store, *runs)
    found: list[Compared] = []
    for family, measure, values in values_of(store, runs, scores):
        by_condition = values
        if among is not None:
            by_condition = {each: {unit: own[unit] for unit in own if unit in among} for each, own in values.items()}
        for pair in wanted:
            if by_condition.keys() >= set(pair) and (paired := _paired(*pair, by_condition)):
                plays, missing = told.holds(family, pair), left_out[pair].get(family, [0, 0])
                names = _named(*pair, conditions)
                row = _compared(family, measure, pair, names, paired, margin, plays, missing)
                found.append(replace(row, variants=one_story(paired, stories)))
    if declared is None:  # between runs a measure names all of its differences
        keys = {each.key for each in secondary}
        named = {row.outcome for row in found if row.measure.key in keys}
        _check_named(keys, {row.measure.key for row in found})
    else:
        named = set(secondary or declared.secondary) - {declared.primary}
        _check_named(map(str, secondary), {str(row.outcome) for row in found})
    return _in_roles(found, declared and declared.primary, named)


def one_story(scenarios: Collection[str], stories: Mapping[str, str]) -> bool:
    """Return True if these scenarios, given by their hashes, are several variants or castings of one."""
    return len(scenarios) > 1 == len({stories.get(each, each) for each in scenarios})


def _check_named(given: Iterable[str], known: Collection[str]) -> None:
    """Raise InvalidInput for an outcome that no pair of conditions has."""
    for name in given:
        if name not in known:
            hint = hint_on(name, sorted(known))
            raise InvalidInput(f"no two conditions are compared by {name}", where="--secondary", hint=hint)


def _in_roles(found: Sequence[Compared], primary: Outcome | None, secondary: Collection[Outcome]) -> list[Compared]:
    """Return comparisons as they were declared, the primary ones first, then the secondary ones with corrected p."""
    first = [replace(row, primary=True) for row in found if row.outcome == primary]
    second = [replace(row, secondary=True) for row in found if row.outcome in secondary]
    corrected, tests = stats.holm([row.test.p for row in second]), sum(row.test.p is not None for row in second)
    second = [replace(row, p_holm=p, tests=tests) for row, p in zip(second, corrected, strict=True)]
    return [*first, *second, *(row for row in found if row.outcome not in {primary, *secondary})]


def main_rows(rows: Sequence[Compared]) -> list[Compared]:
    """Return the rows of declared outcomes and of MAIN; all rows of a family that has none of MAIN."""
    families = {row.family for row in rows if row.measure.key in MAIN}
    return [row for row in rows if row.role != "exploratory" or row.measure.key in MAIN or row.family not in families]


def completed(store: Store, runs: Sequence[str]) -> dict[Condition, dict[str, set[Unit]]]:
    """Return condition -> family -> the units that it completed."""
    units: dict[Condition, dict[str, set[Unit]]] = defaultdict(lambda: defaultdict(set))
    for run_id in runs:
        for row in queries.episodes(store, run_id):
            if row.status == "completed":
                units[row.condition][row.family].add(_unit(row))
    return units


def unpaired(store: Store, pairs: Sequence[Pair]) -> dict[Pair, dict[str, list[int]]]:
    """Return pair -> family -> numbers of the scenarios that only the first, and only the second, can be compared on.

    A scenario is paired if both completed it with one seed and index (people: with any).
    """
    units = completed(store, list(dict.fromkeys(each.run_id for pair in pairs for each in pair)))
    found: dict[Pair, dict[str, list[int]]] = {}
    for one, other in pairs:
        by_family = found[one, other] = {}
        for family in {**units[one], **units[other]}:
            first, second = units[one][family], units[other][family]
            ours, theirs = ({unit[0] for unit in own} for own in (first, second))
            both = ours & theirs if _of_people(one) or _of_people(other) else {unit[0] for unit in first & second}
            by_family[family] = [len(ours - both), len(theirs - both)]
    return found


def check_outcomes(plan: Plan) -> None:
    """Raise InvalidInput unless the outcomes of a plan are compared measures; the default one may lack a measure."""
    families = dict.fromkeys(loaded.scenario.family for loaded in plan.scenarios if loaded.scenario.family)
    checks = [check.name for loaded in plan.scenarios for check in loaded.answer.checks]
    compared = {measure.key: measure for measure in measures_of(families, checks=checks) if measure.compared}
    declared = [outcome_in(text, "outcome") for text in (plan.primary, *plan.secondary) if text != PRIMARY]
    broken: list[str] = []
    if any(key not in compared for key, _ in declared):
        found, errors = installed()
        added = (measure for each in found for measure in of_plugin(each.measures) if measure.compared)
        compared = {measure.key: measure for measure in added} | compared
        broken = [f"not loaded: {error}" for error in errors]
    for outcome in declared:
        _check_outcome(outcome, compared, broken)


def _check_outcome(outcome: Outcome, compared: Mapping[str, Measure], broken: Sequence[str] = ()) -> None:
    key, contrast = outcome
    if key not in compared:
        hint = hint_on(key, compared)
        if not hint.startswith("did you mean"):  # it may be a measure of one that could not be loaded
            hint = "; ".join([hint, *broken])
        raise InvalidInput(f"modes are not compared by the measure {key!r}", hint=hint)
    if zero := [mode for mode in CONTRASTS[contrast] if mode in compared[key].structural_zero]:
        raise InvalidInput(
            f"{key} is 0 by construction in {zero[0]} mode, so this difference tests nothing",
            hint="choose another measure or difference",
        )


def pilot(store: Store, run_id: str, key: str, contrast: str) -> dict[str, dict[str, list[float]]]:
    """Return family -> scenario -> differences of a measure's pairs; raises InvalidInput if the run has none."""
    found: dict[str, dict[str, list[float]]] = {}
    known = []
    for family, measure, by_condition in values_of(store, [run_id]):
        known.append(measure.key)
        for one, other in pairs_of(by_condition) if measure.key == key else ():
            if CONTRASTS[contrast] == (one.name, other.name):
                groups = found.setdefault(family, {})
                for scenario, values in differences_of(by_condition[one], by_condition[other]).items():
                    groups.setdefault(scenario, []).extend(values)
    found = {family: groups for family, groups in found.items() if groups}
    if not found:
        first, second = CONTRASTS[contrast]
        made = f"localsim run SCENARIO... --mode {first},{second} -n 2 makes them"
        raise InvalidInput(
            f"run {run_id} has no pairs of {first} and {second} with the measure {key}",
            hint=made if key in known else hint_on(key, list(dict.fromkeys(known))),
        )
    return found


def values_of(
    store: Store,
    runs: list[str],
    read: Sequence[Score] | None = None,
    key: str = "",
    played: Sequence[Episode] | None = None,
) -> Values:
    """Yield the values of each family and compared measure, by condition and unit; families as in a report.

    `read` are the newest scores of the runs with their sides, and `played` their episodes, if they have been read.
    `key` is the only measure that is wanted; empty for all.
    """
    if read is None:
        read = [row for run_id in runs for row in sided(store, run_id)]
    played = queries.episodes(store, *runs) if played is None else played
    placed = {row.episode_id: (row.condition, _unit(row)) for row in played}
    scores = stats.grouped((row.family, row) for row in read if row.value is not None)
    families = in_order(scores)
    measures = measures_of(families, read)
    for family in families:
        named = by_name(scores[family])
        for each in measures:
            if key not in ("", each.key):
                continue
            measure = within(of_family(each, family), named)
            if not (each.compared or measure.compared):
                continue
            used = [row for name in dict.fromkeys((measure.score, measure.per or "")) for row in named.get(name, ())]
            found: dict[Condition, dict[Unit, list[float]]] = defaultdict(lambda: defaultdict(list))
            for episode_id, value in by_episode(measure, used).items():
                condition, unit = placed[episode_id]
                found[condition][unit].append(value)
            means = {each: {unit: fmean(own) for unit, own in units.items()} for each, units in found.items()}
            yield family, measure, defaultdict(dict, means)


def _unit(row: Episode) -> Unit:
    index, seed = (0, 0) if _of_people(row) else (row.episode_index, row.seed)
    return row.scenario_hash, index, seed, row.variant


def _of_people(each: Condition | Episode) -> bool:
    """Return True if people have a part in the talks: nothing pairs two of them but their scenario."""
    return each.mode == PEOPLE or person.has_part(each.model)


def pairs_of(by_condition: Mapping[Condition, object]) -> Iterator[Pair]:
    """Yield the pairs of conditions of one run, in the order of its contrasts."""
    yield from combinations(sorted(by_condition, key=in_contrasts), 2)


def in_contrasts(condition: Condition) -> tuple[int, str, str]:
    """Return the place of a condition: second minus first is then named as the contrasts are."""
    mode = _ORDER.index(condition.mode) if condition.mode in _ORDER else len(_ORDER)
    _, see, model = spelling.in_order(condition)
    return mode, see, model


def differences_of(one: dict[Unit, float], other: dict[Unit, float]) -> dict[str, list[float]]:
    """Return scenario -> second minus first, for every unit that both have."""
    return stats.grouped((unit[0], other[unit] - one[unit]) for unit in sorted(one.keys() & other.keys()))


def _paired(
    one: Condition, other: Condition, by_condition: Mapping[Condition, dict[Unit, float]]
) -> dict[str, list[tuple[float, float]]]:
    """Return scenario -> values of two conditions. People have no seeds: they are paired by scenario alone."""
    first, second = by_condition[one], by_condition[other]
    if _of_people(one) or _of_people(other):
        ours, theirs = (stats.grouped((unit[0], value) for unit, value in own.items()) for own in (first, second))
        return {name: [(fmean(ours[name]), fmean(theirs[name]))] for name in sorted(ours.keys() & theirs.keys())}
    return stats.grouped((unit[0], (first[unit], second[unit])) for unit in sorted(first.keys() & second.keys()))


def _compared(
    family: str,
    measure: Measure,
    pair: Pair,
    names: tuple[str, str],
    paired: Mapping[str, Sequence[tuple[float, float]]],
    margin: float | None,
    plays: bool | None,
    missing: Sequence[int],
) -> Compared:
    """Return the comparison of two conditions, called by `names`, on one pair at least."""
    one, other = pair
    differences = {name: [second - first for first, second in own] for name, own in paired.items()}
    result = stats.paired(differences, measure.bounds, measure.is_number)
    assert result is not None, "there are pairs"
    by_construction = not {one.name, other.name}.isdisjoint(measure.structural_zero)
    modes = (one.name, other.name) if one.run_id == other.run_id else ()  # other runs differ in more than information
    first, second = (fmean([fmean([values[side] for values in own]) for own in paired.values()]) for side in (0, 1))
    equal, chosen = None, MARGIN if margin is None and measure.kind == "share" else margin
    if None not in measure.bounds and chosen is not None and not by_construction:
        equal = stats.equivalence(differences, chosen, measure.bounds, measure.is_number)
    return Compared(
        family=family,
        measure=measure,
        test=result._replace(p=None) if by_construction else result,
        primary=False,
        contrast=next((name for name, pair in CONTRASTS.items() if pair == modes), ""),
        levels=(first, second),
        by_construction=by_construction,
        equivalence=equal,
        first=names[0],
        second=names[1],
        model=one.model if one.model == other.model else "",
        plays=plays,
        unpaired=missing,
    )


def _named(one: Condition, other: Condition, conditions: Sequence[Condition]) -> tuple[str, str]:
    """Return the names of two conditions, reduced to their differences."""
    if one.run_id != other.run_id or one.label or other.label:
        names = names_of(conditions)
        return names[one], names[other]
    parts = [(each.name, each.model) for each in (one, other)]
    different = [number for number in range(2) if parts[0][number] != parts[1][number]]
    first, second = (" ".join(part[number] for number in different) for part in parts)
    return first, second


PAIRING = "runs pair if they play the same scenarios with the same --seed: localsim runs show RUN prints both"


def why_nothing(store: Store, chosen: Sequence[Choice]) -> Iterator[str]:
    """Yield sentences that say why conditions have no pairs."""
    pairs = list(spelling.pairs_of(chosen))
    yield "nothing to compare: no two conditions share a scenario and a seed"
    runs = dict.fromkeys(each.run_id for choice in chosen for each in choice.conditions)
    if ids := changed_scenarios(store, list(runs)):
        more = f" and {len(ids) - 1} more" if len(ids) > 1 else ""
        yield f"{ids[0]}{more}: the same id, but another text, so it is another scenario in each run"
    names = names_of(each for choice in chosen for each in choice.conditions)
    for (one, other), families in unpaired(store, pairs).items():
        for family, (first, second) in families.items():
            yield f"{family}: {first} scenarios of {names[one]} and {second} of {names[other]} have no pair"


def _off_centre(row: Compared) -> bool:
    """Return True if the printed ends of a share's interval are not equally far from the difference."""
    low, high = row.test.low, row.test.high
    if row.measure.kind != "share" or low is None or high is None:
        return False
    return abs((low + high) / 2 - row.test.difference) >= 0.01


def remarks(rows: Sequence[Compared]) -> Iterator[str]:
    """Yield the sentences below the tables of `compare`."""
    yield (
        "The unit is the scenario. 95%: Student's t over scenarios, inside the possible range. p: sign flips of the "
        "scenarios' mean differences. ICC: resemblance of the pairs of a scenario. d: mean / standard deviation of "
        "the scenarios' mean differences. -: cannot be known from these scenarios."
    )
    if any(row.role == "exploratory" for row in rows):
        yield (
            "Exploratory differences were not declared before the run, and their p are not corrected: about one in "
            "twenty has p below .05 even if nothing differs. They are no findings."
        )
    if any(row.alike for row in rows):
        yield "all equal: every scenario has this difference, so nothing shows how far others would be from it."
    if any(row.test.effect is None and not row.alike and row.test.low is not None for row in rows):
        yield INVENTED
    elif any(map(_off_centre, rows)):
        yield (
            "The interval of a share counts one more scenario at each end of the possible range, so its middle is "
            "nearer to 0 than the difference."
        )
    if any(row.contrast for row in rows):
        yield "information = mindreaders - agents; authorship = script - mindreaders; both = script - agents."
    for number in sorted({row.test.scenarios for row in rows if row.variants}):
        yield f"{words_of(number, variants=True)}: {ONE_STORY}."
    told = {(row.family, row.first, row.second): row.unpaired for row in rows if any(row.unpaired)}
    for (family, one, other), (first, second) in told.items():
        yield f"Left out, without a pair ({family}): {first} scenarios of {one}, {second} of {other}."
    if any(row.by_construction for row in rows):
        yield "by construction: the measure can only be 0 in one of the modes, so the difference is not tested."
    for scenarios, least in sorted({(row.test.scenarios, row.test.p_least) for row in rows if row.test.p_least > 0.05}):
        yield f"With {counted(scenarios, 'scenario')} p cannot be below {least:.4g}: more are needed to tell."
