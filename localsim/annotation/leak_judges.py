"""Judges of leaks beside the leakage detector and raters: rates, agreement, missing replies, contradictions.

Reports take their leak rates from the detector. A judge of leaks stands beside it and changes no rate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from localsim.annotation import measures
from localsim.annotation.agreement import NOT_DISCLOSED, Key, Turn, agreed_turns, detected, turns_by_judge
from localsim.annotation.measures import FirstTurns
from localsim.annotation.records import rows as stored_rows
from localsim.stats import grouped, text_of
from localsim.store.conditions import in_order, names_of
from localsim.store.database import Store
from localsim.store.queries import annotation as queries
from localsim.store.queries.annotation import LeakVerdict

LOW_KAPPA = 0.2
"""Kappa below which a judge agrees hardly more than chance."""
OFTEN = 0.1
"""Share of missing replies, or of contradicted checks, from which on a judge is warned of."""


@dataclass(frozen=True)
class Disclosed:
    """The numbers of disclosed facts in a condition; facts without a verdict count in none of them."""

    condition: str
    facts: int
    """Facts with a verdict."""
    disclosed: int
    detector: int
    """Disclosed according to the detector, among those that it has scored."""


@dataclass(frozen=True)
class LeakJudge:
    """A judge of leaks beside the detector and the raters."""

    judge: str
    questions: int
    missing_replies: int
    facts: int
    missing_facts: int
    checks: int
    contradictions: int
    conditions: Sequence[Disclosed]
    detector: FirstTurns | None
    raters: FirstTurns | None
    """Agreement with each; None without facts in common."""
    detector_kappa: float | None
    """Of the detector with raters, on the facts that judge and raters decide."""
    warning: str | None = None
    """The reasons not to trust it."""


def leak_judges(store: Store, runs: Sequence[str]) -> list[LeakJudge]:
    """Return each judge of leaks in some runs."""
    verdicts = queries.leak_verdicts(store, runs)
    if not verdicts:
        return []
    said = detected(store, runs, {(row.episode_id, row.fact_id) for row in verdicts})
    raters = agreed_turns([row for row in stored_rows(store, runs) if row.task == "disclosures"])
    checked = queries.leak_checks(store, runs)
    found = []
    for judge, turns in turns_by_judge(verdicts).items():
        own = [row for row in verdicts if row.judge == judge]
        checks, contradictions = checked.get(judge, (0, 0))
        decided = {key: said[key] for key, turn in turns.items() if turn is not None and key in said}
        found.append(
            LeakJudge(
                judge=judge,
                questions=sum(row.questions for row in own),
                missing_replies=sum(row.missing for row in own),
                facts=len(own),
                missing_facts=sum(turn is None for turn in turns.values()),
                checks=checks,
                contradictions=contradictions,
                conditions=_conditions(own, turns, said),
                detector=_against(said, turns),
                raters=_against(raters, turns),
                detector_kappa=measures.first_turns(raters, decided, NOT_DISCLOSED).kappa,
            )
        )
    return [replace(each, warning=_warning(each)) for each in found]


def _against(truth: Mapping[Key, Turn], turns: Mapping[Key, Turn | None]) -> FirstTurns | None:
    found = measures.first_turns(truth, turns, NOT_DISCLOSED)
    return found if found.n else None


def _conditions(
    rows: Sequence[LeakVerdict], turns: Mapping[Key, Turn | None], said: Mapping[Key, Turn]
) -> list[Disclosed]:
    by_condition = grouped((row.condition, (row.episode_id, row.fact_id)) for row in rows)
    names = names_of(sorted(by_condition, key=lambda each: (each.run_id, in_order(each))))
    found = []
    for condition, name in names.items():
        judged = [key for key in by_condition[condition] if turns[key] is not None]
        disclosed = sum(turns[key] != NOT_DISCLOSED for key in judged)
        by_detector = sum(said.get(key, NOT_DISCLOSED) != NOT_DISCLOSED for key in judged)
        found.append(Disclosed(name, len(judged), disclosed, by_detector))
    return found


def _warning(row: LeakJudge) -> str | None:
    """The reasons not to trust a judge; None if there are none."""
    reasons = []
    if row.missing_replies > OFTEN * row.questions:
        reasons.append(f"{row.missing_replies} of {row.questions} replies are missing")
    if row.contradictions > OFTEN * row.checks:
        reasons.append(f"{row.contradictions} of {row.checks} checks contradict its verdicts")
    beside = row.raters or row.detector
    if beside and beside.kappa is None:
        reasons.append("all facts have the same label, so that its agreement cannot be measured")
    elif beside and beside.kappa is not None and beside.kappa < LOW_KAPPA:
        with_whom = "raters" if row.raters else "the detector"
        reasons.append(f"it agrees with {with_whom} hardly more than chance would (kappa {beside.kappa:.2f})")
    return "; ".join(reasons) or None


def sentences(rows: Sequence[LeakJudge]) -> list[str]:
    """The rows of `leak_judges` in sentences, one for each judge."""
    return list(map(_sentence, rows))


def _sentence(row: LeakJudge) -> str:
    """A row of `leak_judges` in words: rates beside the detector's, agreement, missing replies, contradictions."""
    rates = ", ".join(
        f"{each.condition} {each.disclosed} of {each.facts} facts disclosed (detector {each.detector})"
        for each in row.conditions
    )
    parts = [f"Leak judge {row.judge}, beside the detector and in no rate of it: {rates}"]
    parts += [_agreement(name, each) for name, each in (("detector", row.detector), ("raters", row.raters)) if each]
    if row.raters and row.detector_kappa is not None:
        parts[-1] += f"; kappa of the detector with raters on these facts {row.detector_kappa:.2f}"
    parts.append(
        f"{row.missing_replies} of {row.questions} replies missing, {row.missing_facts} of {row.facts} "
        f"facts without a verdict; {row.contradictions} of {row.checks} checks contradict the verdict"
    )
    return ". ".join([*parts, *([f"Warning: {row.warning}"] if row.warning else [])]) + "."


def _agreement(name: str, found: FirstTurns) -> str:
    kappa, same = text_of(found.kappa), text_of(found.first_turn, form=".0%")
    return f"Agreement with {name}: kappa {kappa} on {found.n} facts, same turn or none in {same} of {found.turns}"
