"""Results of human annotation, and agreement: between raters, and of judges and the leakage detector with raters.

Every rate has its n and says how many raters of which kind made the labels. Raters of one item and items of one
scenario are not independent of each other, so intervals and p values of preferences are those of scenarios.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from localsim.annotation import measures
from localsim.annotation.records import MADE_BY
from localsim.annotation.records import rows as stored_rows
from localsim.annotation.selection import Selection, of_run
from localsim.evaluators.judge import DIMENSIONS
from localsim.stats import holm, share
from localsim.store.conditions import Condition, in_order, names_of
from localsim.store.database import Store
from localsim.store.queries import annotation as queries

Row = dict[str, Any]
FAILED_AT_MOST = 1 / 3
"""Largest share of attention items that a rater may get wrong and still count."""
ENOUGH = 20
"""Fewest judgements for which the sentences rank the modes."""
TIE = "tie"
NOT_DISCLOSED = "none"
_NATURAL, _JUDGE, _AGAINST = "naturalness.", "judge.", "natural_against_"


def agreement(
    store: Store,
    run: str | Selection,
    *,
    drop_inattentive: bool = True,
    names: Mapping[Condition, str] | None = None,
) -> Row:
    """The results of annotations, fit for JSON: run_id, raters, kinds, pairs, dimensions, disclosures.

    Those of a run have also the pairs that compare it with other runs. A task without annotations is None. Conditions
    are called by `names`, or by the shortest names that tell them apart. `drop_inattentive` excludes raters who fail
    more than a third of their attention items from the results about pairs.
    """
    chosen = of_run(run) if isinstance(run, str) else run
    rows = [row for row in stored_rows(store, chosen.runs) if _about(row, chosen)]
    if chosen.conditions is not None:  # attention items are of the raters who judged these conditions
        judged = {row["rater"] for row in rows if not row["attention"]}
        rows = [row for row in rows if row["rater"] in judged]
    conditions = sorted(
        {each for row in rows if not row["attention"] for each in _sides(row)},
        key=lambda each: (chosen.runs.index(each.run_id) if each.run_id in chosen.runs else 99, *in_order(each)),
    )
    order = {each: (names or {}).get(each) or name for each, name in names_of(conditions).items()}
    rows = [_renamed(row, order) for row in rows]
    runs = list(dict.fromkeys([*chosen.runs, *(each.run_id for each in conditions)]))
    scores = queries.judge_scores(store, runs) if rows else []
    by_task = {task: [row for row in rows if row["task"] == task] for task in ("pairs", "dimensions", "disclosures")}
    here = chosen.runs if rows else ()
    return {
        "run_id": ", ".join(chosen.runs),
        "raters": sorted({row["rater"] for row in rows}),
        "kinds": kinds_of(rows),
        "conditions": {name: vars(each) for each, name in order.items()},
        "pairs": pairs(by_task["pairs"], scores, drop_inattentive=drop_inattentive),
        "dimensions": dimensions(by_task["dimensions"], scores),
        "disclosures": disclosures(
            by_task["disclosures"],
            [row for run_id in here for row in queries.first_disclosures(store, run_id)],
            {episode for run_id in here for episode in queries.episodes_with_leak_scores(store, run_id)},
            queries.leak_verdicts(store, here) if rows else [],
        ),
    }


def _sides(row: Row) -> list[Condition]:
    """The conditions of the conversations that a rater saw."""
    return [
        Condition(row[f"run_{side}"], row[f"mode_{side}"], row[f"model_{side}"], row[f"see_{side}"] or "")
        for side in ("1", "2")
        if row[f"mode_{side}"] is not None
    ]


def _about(row: Row, chosen: Selection) -> bool:
    """True if an answer is about a selection: all answers about a run, and the chosen pairs of several conditions.

    Answers about a conversation whose run was deleted are about nothing.
    """
    sides = _sides(row)
    if not row["attention"] and len(sides) < len({"1", "2"} & row["shown"].keys()):
        return False
    if chosen.conditions is None:
        return True
    if row["attention"]:
        return row["run_1"] in chosen.runs
    return chosen.compares(*sides) if len(sides) == 2 else all(chosen.has(each) for each in sides)


def _renamed(row: Row, order: Mapping[Condition, str]) -> Row:
    """A row with the names of its conditions in place of the modes, and the places of these names in tables."""
    sides = _sides(row)
    if row["attention"] or not sides:
        return row
    found = {f"mode_{side}": order[each] for side, each in zip("12", sides, strict=False)}
    if row["chosen_mode"] is not None:
        found["chosen_mode"] = found[f"mode_{row['value']}"]
    plain = {order[each]: each.name for each in sides}
    # A judge's score names the other condition within one run and model, and the other episode elsewhere.
    within = len({(each.run_id, each.model) for each in sides}) == 1
    return {**row, **found, "order": list(order.values()), "plain": plain, "within": within}


def kinds_of(rows: Sequence[Row]) -> dict[str, int]:
    """The number of raters of each kind: person, language model."""
    raters = {(row["rater"], row["made_by"]) for row in rows}
    return {kind: n for kind in MADE_BY if (n := sum(made_by == kind for _, made_by in raters))}


# ---- pairs ---------------------------------------------------------------------------------------------------------


def pairs(rows: Sequence[Row], scores: Sequence[Row], *, drop_inattentive: bool = True) -> Row | None:
    """Preferences between conditions; None without rows.

    `rows` are those of `records.rows` with names of conditions; `scores` have evaluator, episode_id, name, value. Keys:
    counts (`_counts`), attention (a row for each rater), left_out (raters), rates (a row for each two conditions;
    share, interval and p ignore ties and are those of scenarios; alpha: agreement on them), strengths (Bradley–Terry),
    alpha (nominal), judges (`_natural_judge`).
    """
    if not rows:
        return None
    attention = _attention(rows)
    dropped = {row["rater"] for row in attention if row["inattentive"]} if drop_inattentive else set()
    kept = [row for row in rows if not row["attention"] and row["rater"] not in dropped]
    items: dict[str, list[str]] = defaultdict(list)
    for row in kept:
        items[row["item_id"]].append(row["chosen_mode"] or TIE)
    decisions = [
        (row["chosen_mode"], row["mode_2"] if row["chosen_mode"] == row["mode_1"] else row["mode_1"])
        for row in kept
        if row["chosen_mode"]
    ]
    order = _order(kept)
    modes = {row["item_id"]: row for row in kept}
    return {
        **_counts(kept),
        "attention": attention,
        "left_out": sorted(dropped),
        "rates": _rates(kept, order),
        "strengths": measures.strengths(order, decisions),
        "alpha": measures.alpha(list(items.values()), "nominal"),
        "judges": [_natural_judge(judge, items, modes, scores) for judge in _judges(scores, _NATURAL)],
    }


def _counts(rows: Sequence[Row]) -> Row:
    """The counts of judgements, items, scenarios and raters (also by kind), and the median seconds of a judgement."""
    seconds = [row["seconds"] for row in rows if row["seconds"] is not None]
    return {
        "n": len(rows),
        "items": len({row["item_id"] for row in rows}),
        "scenarios": len({row["scenario"] for row in rows}),
        "raters": len({row["rater"] for row in rows}),
        "kinds": kinds_of(rows),
        "median_seconds": statistics.median(seconds) if seconds else None,
    }


def _attention(rows: Sequence[Row]) -> list[Row]:
    """A row for each rater: attention items passed and failed, and inattentive if more than a third failed."""
    found = []
    for rater in sorted({row["rater"] for row in rows}):
        asked = [row for row in rows if row["rater"] == rater and row["attention"]]
        passed = sum(row["value"] == 3 - int(row["shown"]["shuffled"]) for row in asked)
        failed = len(asked) - passed
        inattentive = failed > FAILED_AT_MOST * len(asked)
        found.append({"rater": rater, "n": len(asked), "passed": passed, "failed": failed, "inattentive": inattentive})
    return found


def _order(rows: Sequence[Row]) -> list[str]:
    """The names of the conditions in the order of tables."""
    return list(rows[0]["order"]) if rows else []


def _rates(rows: Sequence[Row], order: Sequence[str]) -> list[Row]:
    found = []
    for first, second in combinations(order, 2):
        here = [row for row in rows if {row["mode_1"], row["mode_2"]} == {first, second}]
        if here:
            wins, losses = (sum(row["chosen_mode"] == mode for row in here) for mode in (first, second))
            counts = {"n": len(here), "first_wins": wins, "second_wins": losses, "ties": len(here) - wins - losses}
            counts |= {"decided": wins + losses, "items": len({row["item_id"] for row in here if row["chosen_mode"]})}
            votes: dict[str, list[str]] = defaultdict(list)
            for row in here:
                votes[row["item_id"]].append(row["chosen_mode"] or TIE)
            agreed = measures.alpha(list(votes.values()), "nominal")
            preferred = measures.preference(_by_scenario(here, first))
            found.append({"first": first, "second": second, **counts, **preferred, "alpha": agreed})
    for row, p in zip(found, holm([row["p"] for row in found]), strict=True):
        row["p_holm"] = p
    return found


def _by_scenario(rows: Sequence[Row], first: str) -> dict[str, list[float]]:
    """Scenario -> for each item that was decided, the share of its decisions for the mode `first`."""
    votes: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for row in rows:
        if row["chosen_mode"]:
            votes[row["scenario"], row["item_id"]].append(row["chosen_mode"] == first)
    found: dict[str, list[float]] = defaultdict(list)
    for (scenario, _), chosen in votes.items():
        found[scenario].append(statistics.fmean(chosen))
    return found


def _judges(scores: Sequence[Row], prefix: str) -> list[str]:
    return list(dict.fromkeys(row["evaluator"] for row in scores if row["evaluator"].startswith(prefix)))


def _natural_judge(
    judge: str, items: Mapping[str, Sequence[str]], shown: Mapping[str, Row], scores: Sequence[Row]
) -> Row:
    """A model's choices compared with the majority of raters, over the pairs that both judged; `shown`: a row of each.

    n: such pairs; decided: those in which both chose; equal: the share of the same choice among these, with its 95%
    interval and Cohen's kappa. Raters decide nothing if they are divided evenly or say tie; a model decides nothing if
    its choice depends on the order of the two conversations.
    """
    values = {
        (row["episode_id"], row["name"].removeprefix(_AGAINST)): row["value"]
        for row in scores
        if row["evaluator"] == judge and row["name"].startswith(_AGAINST)
    }
    both = []
    for item, votes in items.items():
        one, _, other = item.partition("~")
        row = shown[item]
        by_episode = {row["shown"][side]: row[f"mode_{side}"] for side in ("1", "2")}
        first, second = by_episode[one], by_episode[other]
        value = values.get((one, other))
        if value is None and row["within"]:
            value = values.get((one, row["plain"][second]))
        if value is not None:
            _, people = measures.majority(votes)
            both.append((people, {1.0: first, 0.0: second}.get(float(value))))
    decided = [(people, model) for people, model in both if people not in (None, TIE) and model is not None]
    same = sum(people == model for people, model in decided)
    equal = share(same, len(decided))
    found: Row = {"judge": judge.removeprefix(_NATURAL), "n": len(both), "decided": len(decided)}
    return found | {"equal": equal.value, "low": equal.low, "high": equal.high, "kappa": measures.kappa(decided)}


# ---- dimensions ----------------------------------------------------------------------------------------------------


def dimensions(rows: Sequence[Row], scores: Sequence[Row]) -> Row | None:
    """Marks of raters by dimension and condition; None without rows.

    Keys: counts (`_counts`), and by_dimension, a row for each dimension: n (marks), alpha (interval), means by
    condition, and for each judge.MODEL Spearman's correlation of its score with the mean of the raters, over episodes
    and agents.
    """
    if not rows:
        return None
    return {**_counts(rows), "by_dimension": [_dimension(name, rows, scores) for name in DIMENSIONS]}


def _dimension(name: str, rows: Sequence[Row], scores: Sequence[Row]) -> Row:
    marks: dict[tuple[str, str], list[float]] = defaultdict(list)
    by_mode: dict[str, list[float]] = {name: [] for name in _order(rows)}
    for row in rows:
        mark = row["value"][name]
        if mark is not None:
            marks[row["shown"]["1"], row["shown"]["agent"]].append(float(mark))
            by_mode[row["mode_1"]].append(float(mark))
    judges = []
    for judge in _judges(scores, _JUDGE):
        of_model = {
            (row["episode_id"], row["agent"]): float(row["value"])
            for row in scores
            if row["evaluator"] == judge and row["name"] == name
        }
        shared = [(statistics.fmean(found), of_model[key]) for key, found in marks.items() if key in of_model]
        judges.append({"judge": judge.removeprefix(_JUDGE), **measures.correlation(shared)})
    given = sum(map(len, marks.values()))
    agreed = measures.alpha(list(marks.values()), "interval")
    return {"dimension": name, "n": given, "alpha": agreed, "means": measures.mean_by(by_mode), "judges": judges}


# ---- disclosures ---------------------------------------------------------------------------------------------------


def disclosures(
    rows: Sequence[Row], detected: Sequence[Row], scored: set[str], verdicts: Sequence[Row] = ()
) -> Row | None:
    """First disclosures according to raters, compared with those of detector and judges of leaks; None without rows.

    `detected`: episode_id, fact_id, turn of first disclosures; `scored`: episodes that the detector has scored;
    `verdicts`: rows of `queries.leak_verdicts`. Keys: counts (`_counts`), facts (in all episodes), alpha (nominal, over
    facts, of the first turn or none), undecided (facts without a majority of raters; the other results ignore them),
    disclosed (facts that most raters mark as disclosed), detector: n (facts), precision, recall and F1 over (fact,
    turn) pairs, first_turn (share of facts with the same turn or none), kappa (of disclosed or not); judges: for each
    judge of leaks `measures.first_turns`.
    """
    if not rows:
        return None
    votes, agreed = votes_of(rows), agreed_turns(rows)
    here = {key: value for key, value in agreed.items() if key[0] in scored}
    said = {(row["episode_id"], row["fact_id"]): row["turn"] for row in detected}
    truth = {(*key, turn) for key, turn in here.items() if turn != NOT_DISCLOSED}
    found = {(*key, said[key]) for key in here if key in said}
    same = measures.first_turns(here, {key: said.get(key, NOT_DISCLOSED) for key in here}, NOT_DISCLOSED)
    detector: Row = {**measures.overlap(truth, found), **{key: same[key] for key in same if key != "turns"}}
    return {
        **_counts(rows),
        "facts": len(votes),
        "alpha": measures.alpha(list(votes.values()), "nominal"),
        "undecided": len(votes) - len(agreed),
        "disclosed": sum(turn != NOT_DISCLOSED for turn in agreed.values()),
        "detector": detector if here else None,
        "judges": [
            {"judge": judge, **measures.first_turns(agreed, own, NOT_DISCLOSED)}
            for judge, own in turns_by_judge(verdicts).items()
        ],
    }


def votes_of(rows: Sequence[Row]) -> dict[tuple[str, str], list[int | str]]:
    """The mark of each rater by (episode_id, fact id): the turn of the first disclosure, or `none`."""
    found: dict[tuple[str, str], list[int | str]] = defaultdict(list)
    for row in rows:
        for fact, turn in row["value"].items():
            found[row["item_id"], fact].append(NOT_DISCLOSED if turn is None else turn)
    return dict(found)


def agreed_turns(rows: Sequence[Row]) -> dict[tuple[str, str], int | str]:
    """The mark of most raters by (episode_id, fact id); facts without a majority are left out."""
    votes = votes_of(rows)
    return {key: value for key, found in votes.items() for clear, value in [measures.majority(found)] if clear}


def turns_by_judge(verdicts: Sequence[Row]) -> dict[str, dict[tuple[str, str], int | str | None]]:
    """Judge of leaks -> (episode_id, fact id) -> first turn, `none`, or `unknown`; None if the verdict is missing.

    `verdicts` are rows of `queries.leak_verdicts`.
    """
    found: dict[str, dict[tuple[str, str], int | str | None]] = defaultdict(dict)
    for row in verdicts:
        turn = measures.TURN_UNKNOWN if row["turn"] is None else row["turn"]
        silent = None if row["label"] is None else NOT_DISCLOSED
        found[row["judge"]][row["episode_id"], row["fact_id"]] = turn if row["label"] == "disclosed" else silent
    return dict(found)


# ---- sentences -----------------------------------------------------------------------------------------------------


def sentences(found: Row) -> list[str]:
    """The results of `agreement` in sentences, one for each line."""
    lines = [f"Run {found['run_id']}: {raters_text(found['kinds'])}."]
    if found["pairs"]:
        lines += _on_pairs(found["pairs"])
    if found["dimensions"]:
        lines += _on_dimensions(found["dimensions"])
    if found["disclosures"]:
        lines += _on_disclosures(found["disclosures"])
    return lines if len(lines) > 1 else [*lines, "Nothing is annotated yet."]


def _on_pairs(found: Row) -> list[str]:
    lines = [_head("Pairs", found)]
    for row in found["attention"]:
        if row["inattentive"]:
            what = "is left out" if row["rater"] in found["left_out"] else "is counted all the same"
            failed = f"{row['rater']} fails {row['failed']} of {_number(row['n'], 'attention item')}"
            lines.append(f"  {failed} and {what}.")
    lines += [f"  {preference_text(row)}" for row in found["rates"]]
    lines.append(
        "  Each scenario counts once in these shares, intervals and p (sign-flip test): raters of one pair, and pairs "
        "of one scenario, are not independent of each other."
    )
    few = found["strengths"]["n"] < ENOUGH
    if found["strengths"]["by_mode"] and few:
        lines.append(
            f"  Strengths: too few judgements to rank the modes ({found['strengths']['n']}; from {ENOUGH} on)."
        )
    elif found["strengths"]["by_mode"]:
        told = ", ".join(f"{mode} {value:+.2f}" for mode, value in found["strengths"]["by_mode"].items())
        lines.append(f"  Strengths (Bradley–Terry, log odds, {found['strengths']['n']} judgements): {told}.")
    lines.append(f"  Agreement of raters: {_alpha(found['alpha'])}.")
    for row in found["judges"]:
        equal = _share(row["equal"], row["low"], row["high"])
        lines.append(
            f"  Judge {row['judge']} agrees with most raters on {equal} of {_number(row['decided'], 'pair')} that "
            f"both decide, of {row['n']}; kappa {_value(row['kappa'])}."
        )
    return lines


def preference_text(row: Row) -> str:
    """A row of `rates` as a sentence, with test, ties and the agreement of raters."""
    chosen = _share(row["first_chosen"], row["low"], row["high"])
    test = "" if row["p"] is None else f", p = {row['p']:.3g} ({row['p_holm']:.3g} after Holm)"
    ties = f"; {_number(row['ties'], 'tie')} left out" if row["ties"] else ""
    agreed = f"; raters: {_alpha(row['alpha'])}" if row["alpha"]["items"] else ""
    base = (
        f"{_number(row['decided'], 'judgement')} of {_number(row['items'], 'item')} "
        f"on {_number(row['scenarios'], 'scenario')}"
    )
    return f"{row['first']} over {row['second']}: {chosen} of {base}{test}{ties}{agreed}."


def _on_dimensions(found: Row) -> list[str]:
    lines = [_head("Dimensions", found)]
    for row in found["by_dimension"]:
        if row["n"]:
            means = ", ".join(f"{mode} {mean['mean']:.2f} (n {mean['n']})" for mode, mean in row["means"].items())
            judges = "".join(
                f"; judge {judge['judge']}: rho {_value(judge['rho'])} (n {judge['n']})" for judge in row["judges"]
            )
            lines.append(f"  {row['dimension']}: {means}; agreement of raters: {_alpha(row['alpha'])}{judges}.")
    return lines


def _on_disclosures(found: Row) -> list[str]:
    lines = [_head("Disclosures", found)]
    lines.append(
        f"  Most raters mark {found['disclosed']} of {_number(found['facts'], 'fact')} as disclosed; "
        f"no majority for {found['undecided']}; agreement of raters: {_alpha(found['alpha'])}."
    )
    row = found["detector"]
    if row is None:
        lines.append("  The detector has not scored these episodes; localsim score does.")
    else:
        same = _share(row["first_turn"], row["low"], row["high"])
        lines.append(
            f"  Detector, first turns of {_number(row['n'], 'fact')}: precision {_value(row['precision'])} (of "
            f"{row['said']}), recall {_value(row['recall'])} (of {row['true']}), F1 {_value(row['f1'])}; same turn or "
            f"none in {same}; kappa of disclosed or not {_value(row['kappa'])}."
        )
    for row in found["judges"]:
        same = _share(row["first_turn"], row["low"], row["high"])
        lines.append(
            f"  Leak judge {row['judge']}, {_number(row['n'], 'fact')}: kappa of disclosed or not "
            f"{_value(row['kappa'])}; same turn or none in {same} of {row['turns']}."
        )
    return lines


def _head(name: str, found: Row) -> str:
    time = "" if found["median_seconds"] is None else f", median {found['median_seconds']:.0f} s each"
    counts = f"{_number(found['n'], 'judgement')} of {_number(found['items'], 'item')}"
    return f"{name}: {counts} by {raters_text(found['kinds'])}{time}."


def raters_text(kinds: Mapping[str, int]) -> str:
    """The number of raters of each kind in words, such as `2 people and 1 language model`."""
    people, models = kinds.get("person", 0), kinds.get("language model", 0)
    parts = [f"{people} person" if people == 1 else f"{people} people"] if people or not models else []
    return " and ".join([*parts, *([_number(models, "language model")] if models else [])])


def _alpha(found: Row) -> str:
    if not found["items"]:
        return "not known, because no two raters judged the same"
    return f"alpha {_value(found['alpha'])} ({_number(found['items'], 'unit')} with two raters or more)"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _share(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0%}" if low is None or high is None else f"{value:.0%} [{low:.0%}, {high:.0%}]"


def _value(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
