"""Results of human annotation, and agreement: between raters, and of judges and the leakage detector with raters.

Every rate has its n and says how many raters of which kind made the labels. Raters of one item and items of one
scenario are not independent of each other, so intervals and p values of preferences are those of scenarios.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from localsim.annotation import measures, results
from localsim.annotation.items import TASKS, Selection, of_run
from localsim.annotation.measures import Alpha, Mean
from localsim.annotation.records import MADE_BY
from localsim.annotation.records import rows as stored_rows
from localsim.annotation.results import Agreement, Counts, Dimensions, Disclosures, Pairs, Preferred
from localsim.conversation.wording.wordings import counted
from localsim.evaluators.choosing import AGAINST
from localsim.evaluators.judge import DIMENSIONS
from localsim.stats import grouped, holm, share, text_of
from localsim.store.conditions import Condition, in_order, names_of
from localsim.store.database import Store
from localsim.store.queries import annotation as queries
from localsim.store.queries.annotation import Answer, LeakVerdict, Scores

Names = Mapping[Condition, str]
Key = tuple[str, str]
"""Episode id and fact id."""
Turn = int | str
"""First turn of a fact, or `NOT_DISCLOSED`."""
FAILED_AT_MOST = 1 / 3
"""Largest share of attention items that a rater may get wrong and still count."""
ENOUGH = 20
"""Fewest judgements for which the sentences rank the modes."""
TIE = "tie"
NOT_DISCLOSED = "none"
_NATURAL, _JUDGE = "naturalness.", "judge."


def agreement(
    store: Store, run: str | Selection, *, drop_inattentive: bool = True, names: Names | None = None
) -> Agreement:
    """Return the results of annotations.

    Those of a run have also the pairs that compare it with other runs. Conditions are called by `names`, or by the
    shortest names that tell them apart. `drop_inattentive` excludes raters who fail more than a third of their
    attention items from the results about pairs.
    """
    chosen = of_run(run) if isinstance(run, str) else run
    rows = [row for row in stored_rows(store, chosen.runs) if _about(row, chosen)]
    if chosen.conditions is not None:  # attention items are of the raters who judged these conditions
        judged = {row.rater for row in rows if not row.attention}
        rows = [row for row in rows if row.rater in judged]
    conditions = sorted(
        {each for row in rows for each in row.sides},
        key=lambda each: (chosen.runs.index(each.run_id) if each.run_id in chosen.runs else 99, *in_order(each)),
    )
    order = names_of(conditions)
    order |= {each: name for each, name in (names or {}).items() if each in order and name}
    runs = list(dict.fromkeys([*chosen.runs, *(each.run_id for each in conditions)])) if rows else []
    scores = queries.judge_scores(store, runs) if rows else {}
    by_task = {task: [row for row in rows if row.task == task] for task in TASKS}
    here = chosen.runs if rows else ()
    return Agreement(
        run_id=", ".join(chosen.runs),
        raters=sorted({row.rater for row in rows}),
        kinds=kinds_of(rows),
        conditions={name: each for each, name in order.items()},
        pairs=pairs(by_task["pairs"], order, scores, drop_inattentive=drop_inattentive),
        dimensions=dimensions(by_task["dimensions"], order, scores),
        disclosures=disclosures(
            by_task["disclosures"],
            detected(store, here, agreed_turns(by_task["disclosures"])),
            queries.leak_verdicts(store, here) if here else [],
        ),
    )


def _about(row: Answer, chosen: Selection) -> bool:
    """True if an answer is about a selection: all answers about a run, and the chosen pairs of several conditions.

    Answers about a conversation whose run was deleted are about nothing.
    """
    if not row.attention and len(row.sides) < len({"1", "2"} & row.shown.keys()):
        return False
    if chosen.conditions is None:
        return True
    if row.attention:
        return row.run_id in chosen.runs
    return chosen.compares(*row.sides) if len(row.sides) == 2 else all(chosen.has(each) for each in row.sides)


def kinds_of(rows: Sequence[Answer]) -> dict[str, int]:
    """The number of raters of each kind: person, language model."""
    raters = {(row.rater, row.made_by) for row in rows}
    return {kind: n for kind in MADE_BY if (n := sum(made_by == kind for _, made_by in raters))}


# ---- pairs ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Vote:
    """A rater's choice between two conversations."""

    answer: Answer
    names: tuple[str, ...]
    """The names of their conditions."""

    @property
    def chosen(self) -> str:
        """The name of the chosen condition, or TIE."""
        return self.names[self.answer.value - 1] if self.answer.value else TIE

    @property
    def decision(self) -> tuple[str, str]:
        """The names of the chosen and of the other condition."""
        return (self.names[0], self.names[1]) if self.answer.value == 1 else (self.names[1], self.names[0])


def pairs(rows: Sequence[Answer], names: Names, scores: Scores, *, drop_inattentive: bool = True) -> Pairs | None:
    """Return preferences between conditions, which have `names` in the order of tables; None without rows."""
    if not rows:
        return None
    attention = _attention(rows)
    dropped = {row.rater for row in attention if row.inattentive} if drop_inattentive else set()
    kept = [row for row in rows if not row.attention and row.rater not in dropped]
    votes = [Vote(row, tuple(names[each] for each in row.sides)) for row in kept if len(row.sides) == 2]
    decisions = [vote.decision for vote in votes if vote.chosen != TIE]
    return Pairs(
        **vars(_counts(kept)),
        attention=attention,
        left_out=sorted(dropped),
        rates=_rates(votes, list(names.values())),
        strengths=measures.strengths(list(names.values()), decisions),
        alpha=measures.alpha(_by_item(votes), "nominal"),
        judges=[_natural_judge(judge, votes, scores[judge]) for judge in scores if judge.startswith(_NATURAL)],
    )


def _by_item(votes: Iterable[Vote]) -> list[list[str]]:
    return list(grouped((vote.answer.item_id, vote.chosen) for vote in votes).values())


def _counts(rows: Sequence[Answer]) -> Counts:
    seconds = [row.seconds for row in rows if row.seconds is not None]
    return Counts(
        n=len(rows),
        items=len({row.item_id for row in rows}),
        scenarios=len({row.scenario for row in rows}),
        raters=len({row.rater for row in rows}),
        kinds=kinds_of(rows),
        median_seconds=statistics.median(seconds) if seconds else None,
    )


def _attention(rows: Sequence[Answer]) -> list[results.Attention]:
    found = []
    for rater in sorted({row.rater for row in rows}):
        asked = [row for row in rows if row.rater == rater and row.attention]
        passed = sum(row.value == 3 - int(row.shown["shuffled"]) for row in asked)
        failed = len(asked) - passed
        found.append(results.Attention(rater, len(asked), passed, failed, failed > FAILED_AT_MOST * len(asked)))
    return found


def _rates(votes: Sequence[Vote], names: Sequence[str]) -> list[Preferred]:
    found = []
    for first, second in combinations(names, 2):
        here = [vote for vote in votes if set(vote.names) == {first, second}]
        if here:
            decided = [vote for vote in here if vote.chosen != TIE]
            wins, ties = sum(vote.chosen == first for vote in decided), len(here) - len(decided)
            items = len({vote.answer.item_id for vote in decided})
            counts = len(here), wins, len(decided) - wins, ties, len(decided), items
            agreed = measures.alpha(_by_item(here), "nominal")
            preferred = measures.preference(_by_scenario(decided, first))
            found.append(Preferred(first, second, *counts, *preferred, agreed))
    return [replace(row, p_holm=p) for row, p in zip(found, holm([row.p for row in found]), strict=True)]


def _by_scenario(decided: Sequence[Vote], first: str) -> dict[str, list[float]]:
    """Scenario -> for each item, the share of its decisions for the condition `first`."""
    votes = grouped(
        ((vote.answer.scenario or "", vote.answer.item_id), float(vote.chosen == first)) for vote in decided
    )
    return grouped((scenario, statistics.fmean(chosen)) for (scenario, _), chosen in votes.items())


def _natural_judge(
    judge: str, votes: Sequence[Vote], scores: Mapping[tuple[str, str | None, str], float]
) -> results.NaturalJudge:
    values = {
        (episode, name.removeprefix(AGAINST)): value
        for (episode, _, name), value in scores.items()
        if name.startswith(AGAINST)
    }
    both = []
    for item, own in grouped((vote.answer.item_id, vote) for vote in votes).items():
        one, _, other = item.partition("~")
        answer, names = own[0].answer, own[0].names
        first, second = (0, 1) if answer.shown["1"] == one else (1, 0)
        value = values.get((one, other))
        # A judge's score names the other condition within one run and model, and the other episode elsewhere.
        if value is None and len({(each.run_id, each.model) for each in answer.sides}) == 1:
            value = values.get((one, answer.sides[second].name))
        if value is not None:
            _, people = measures.majority([vote.chosen for vote in own])
            both.append((people, {1.0: names[first], 0.0: names[second]}.get(float(value))))
    decided = [(people, model) for people, model in both if people not in (None, TIE) and model is not None]
    same = sum(people == model for people, model in decided)
    equal = share(same, len(decided))
    ends = equal.value, equal.low, equal.high
    return results.NaturalJudge(judge.removeprefix(_NATURAL), len(both), len(decided), *ends, measures.kappa(decided))


# ---- dimensions ----------------------------------------------------------------------------------------------------


def dimensions(rows: Sequence[Answer], names: Names, scores: Scores) -> Dimensions | None:
    """Return the marks of raters by dimension and condition; None without rows."""
    if not rows:
        return None
    found = [_dimension(name, rows, names, scores) for name in DIMENSIONS]
    return Dimensions(**vars(_counts(rows)), by_dimension=found)


def _dimension(dimension: str, rows: Sequence[Answer], names: Names, scores: Scores) -> results.Dimension:
    marks: dict[tuple[str, str | None], list[float]] = defaultdict(list)
    by_condition: dict[str, list[float]] = {name: [] for name in names.values()}
    for row in rows:
        mark = row.value[dimension]
        if mark is not None:
            marks[row.shown["1"], row.shown["agent"]].append(float(mark))
            by_condition[names[row.sides[0]]].append(float(mark))
    judges = []
    for judge, own in scores.items():
        if not judge.startswith(_JUDGE):
            continue
        of_model = {(episode, agent): value for (episode, agent, name), value in own.items() if name == dimension}
        shared = [(statistics.fmean(found), of_model[key]) for key, found in marks.items() if key in of_model]
        judges.append(results.Correlated(judge.removeprefix(_JUDGE), *measures.correlation(shared)))
    given = sum(map(len, marks.values()))
    agreed = measures.alpha(list(marks.values()), "interval")
    means = {name: Mean(statistics.fmean(own), len(own)) for name, own in by_condition.items() if own}
    return results.Dimension(dimension, given, agreed, means, judges)


# ---- disclosures ---------------------------------------------------------------------------------------------------


def detected(store: Store, runs: Iterable[str], facts: Iterable[Key]) -> dict[Key, Turn]:
    """The detector's first turns of facts, without those of episodes of the runs that it has not searched."""
    scored: set[str] = set()
    first: dict[Key, Turn] = {}
    for run_id in runs:
        scored |= queries.episodes_with_leak_scores(store, run_id)
        first |= {(row.episode_id, row.fact_id): row.turn for row in queries.first_disclosures(store, run_id)}
    return {key: first.get(key, NOT_DISCLOSED) for key in facts if key[0] in scored}


def disclosures(
    rows: Sequence[Answer], said: Mapping[Key, Turn], verdicts: Sequence[LeakVerdict] = ()
) -> Disclosures | None:
    """Compare first disclosures according to raters with those of detector and judges of leaks; None without rows.

    `said` are the turns of `detected`.
    """
    if not rows:
        return None
    votes, agreed = votes_of(rows), agreed_turns(rows)
    truth = {(*key, agreed[key]) for key in said if agreed[key] != NOT_DISCLOSED}
    found = {(*key, turn) for key, turn in said.items() if turn != NOT_DISCLOSED}
    same = measures.first_turns(agreed, said, NOT_DISCLOSED)
    first = {name: getattr(same, name) for name in ("n", "kappa", "first_turn", "low", "high")}
    return Disclosures(
        **vars(_counts(rows)),
        facts=len(votes),
        alpha=measures.alpha(list(votes.values()), "nominal"),
        undecided=len(votes) - len(agreed),
        disclosed=sum(turn != NOT_DISCLOSED for turn in agreed.values()),
        detector=results.Detected(**vars(measures.overlap(truth, found)), **first) if said else None,
        judges=[
            results.JudgedTurns(**vars(measures.first_turns(agreed, own, NOT_DISCLOSED)), judge=judge)
            for judge, own in turns_by_judge(verdicts).items()
        ],
    )


def votes_of(rows: Sequence[Answer]) -> dict[Key, list[Turn]]:
    """The mark of each rater: the turn of the first disclosure, or `none`."""
    return grouped(
        ((row.item_id, fact), NOT_DISCLOSED if turn is None else turn)
        for row in rows
        for fact, turn in row.value.items()
    )


def agreed_turns(rows: Sequence[Answer]) -> dict[Key, Turn]:
    """The mark of most raters; facts without a majority are left out."""
    votes = votes_of(rows)
    return {key: value for key, found in votes.items() for clear, value in [measures.majority(found)] if clear}


def turns_by_judge(verdicts: Sequence[LeakVerdict]) -> dict[str, dict[Key, Turn | None]]:
    """Judge of leaks -> first turn of each fact, `none`, or `unknown`; None if the verdict is missing."""
    found: dict[str, dict[Key, Turn | None]] = defaultdict(dict)
    for row in verdicts:
        turn = measures.TURN_UNKNOWN if row.turn is None else row.turn
        silent = None if row.label is None else NOT_DISCLOSED
        found[row.judge][row.episode_id, row.fact_id] = turn if row.label == "disclosed" else silent
    return dict(found)


# ---- sentences -----------------------------------------------------------------------------------------------------


def sentences(found: Agreement) -> list[str]:
    """The results of `agreement` in sentences, one for each line."""
    lines = [f"Run {found.run_id}: {raters_text(found.kinds)}."]
    if found.pairs:
        lines += _on_pairs(found.pairs)
    if found.dimensions:
        lines += _on_dimensions(found.dimensions)
    if found.disclosures:
        lines += _on_disclosures(found.disclosures)
    return lines if len(lines) > 1 else [*lines, "Nothing is annotated yet."]


def _on_pairs(found: Pairs) -> list[str]:
    lines = [_head("Pairs", found)]
    for row in found.attention:
        if row.inattentive:
            what = "is left out" if row.rater in found.left_out else "is counted all the same"
            failed = f"{row.rater} fails {row.failed} of {counted(row.n, 'attention item')}"
            lines.append(f"  {failed} and {what}.")
    lines += [f"  {preference_text(row)}" for row in found.rates]
    lines.append(
        "  Each scenario counts once in these shares, intervals and p (sign-flip test): raters of one pair, and pairs "
        "of one scenario, are not independent of each other."
    )
    few = found.strengths.n < ENOUGH
    if found.strengths.by_mode and few:
        lines.append(f"  Strengths: too few judgements to rank the modes ({found.strengths.n}; from {ENOUGH} on).")
    elif found.strengths.by_mode:
        told = ", ".join(f"{mode} {value:+.2f}" for mode, value in found.strengths.by_mode.items())
        lines.append(f"  Strengths (Bradley–Terry, log odds, {found.strengths.n} judgements): {told}.")
    lines.append(f"  Agreement of raters: {_alpha(found.alpha)}.")
    for each in found.judges:
        equal = text_of(each.equal, each.low, each.high, ".0%")
        lines.append(
            f"  Judge {each.judge} agrees with most raters on {equal} of {counted(each.decided, 'pair')} that "
            f"both decide, of {each.n}; kappa {text_of(each.kappa)}."
        )
    return lines


def preference_text(row: Preferred) -> str:
    """A row of `rates` as a sentence, with test, ties and the agreement of raters."""
    chosen = text_of(row.first_chosen, row.low, row.high, ".0%")
    test = "" if row.p is None else f", p = {row.p:.3g} ({row.p_holm:.3g} after Holm)"
    ties = f"; {counted(row.ties, 'tie')} left out" if row.ties else ""
    agreed = f"; raters: {_alpha(row.alpha)}" if row.alpha.items else ""
    base = (
        f"{counted(row.decided, 'judgement')} of {counted(row.items, 'item')} on {counted(row.scenarios, 'scenario')}"
    )
    return f"{row.first} over {row.second}: {chosen} of {base}{test}{ties}{agreed}."


def _on_dimensions(found: Dimensions) -> list[str]:
    lines = [_head("Dimensions", found)]
    for row in found.by_dimension:
        if row.n:
            means = ", ".join(f"{mode} {mean.mean:.2f} (n {mean.n})" for mode, mean in row.means.items())
            judges = "".join(f"; judge {judge.judge}: rho {text_of(judge.rho)} (n {judge.n})" for judge in row.judges)
            lines.append(f"  {row.dimension}: {means}; agreement of raters: {_alpha(row.alpha)}{judges}.")
    return lines


def _on_disclosures(found: Disclosures) -> list[str]:
    lines = [_head("Disclosures", found)]
    lines.append(
        f"  Most raters mark {found.disclosed} of {counted(found.facts, 'fact')} as disclosed; "
        f"no majority for {found.undecided}; agreement of raters: {_alpha(found.alpha)}."
    )
    row = found.detector
    if row is None:
        lines.append("  The detector has not scored these episodes; localsim score does.")
    else:
        same = text_of(row.first_turn, row.low, row.high, ".0%")
        lines.append(
            f"  Detector, first turns of {counted(row.n, 'fact')}: precision {text_of(row.precision)} (of "
            f"{row.said}), recall {text_of(row.recall)} (of {row.true}), F1 {text_of(row.f1)}; same turn or "
            f"none in {same}; kappa of disclosed or not {text_of(row.kappa)}."
        )
    for each in found.judges:
        same = text_of(each.first_turn, each.low, each.high, ".0%")
        lines.append(
            f"  Leak judge {each.judge}, {counted(each.n, 'fact')}: kappa of disclosed or not "
            f"{text_of(each.kappa)}; same turn or none in {same} of {each.turns}."
        )
    return lines


def _head(name: str, found: Counts) -> str:
    time = "" if found.median_seconds is None else f", median {found.median_seconds:.0f} s each"
    counts = f"{counted(found.n, 'judgement')} of {counted(found.items, 'item')}"
    return f"{name}: {counts} by {raters_text(found.kinds)}{time}."


def raters_text(kinds: Mapping[str, int]) -> str:
    """The number of raters of each kind in words, such as `2 people and 1 language model`."""
    people, models = kinds.get("person", 0), kinds.get("language model", 0)
    parts = [counted(people, "person", "people")] if people or not models else []
    return " and ".join([*parts, *([counted(models, "language model")] if models else [])])


def _alpha(found: Alpha) -> str:
    if not found.items:
        return "not known, because no two raters judged the same"
    return f"alpha {text_of(found.alpha)} ({counted(found.items, 'unit')} with two raters or more)"
