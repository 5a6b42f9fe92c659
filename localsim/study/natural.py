"""Naturalness as a stage: a judge model chooses the more natural of two conditions, blind and in both orders.

People can judge the same pairs: `command` asks them, and the page of a study shows their answers once they exist.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from localsim.annotation.agreement import agreement, sentences
from localsim.annotation.items import Selection
from localsim.evaluators.choosing import Naturalness
from localsim.evaluators.evaluate import score_runs
from localsim.reports.validity.judges import Rate, rates_between
from localsim.store.conditions import Condition
from localsim.store.database import Store
from localsim.study.design import FINE_TUNED, JUDGED
from localsim.study.stages import Session

Pair = tuple[Condition, Condition]


def pairs(conditions: Sequence[Condition]) -> list[Pair]:
    """Return the pairs of JUDGED that the conditions allow."""
    by_label = {condition.label: condition for condition in conditions}
    return [(by_label[one], by_label[other]) for one, other in JUDGED if one in by_label and other in by_label]


def judged(session: Session, wanted: Sequence[Pair], judge: str) -> None:
    """Let the judge choose in every pair of conversations that it has not judged.

    Raises ModelMissing or BackendUnavailable, as a run does.
    """
    only = {each for pair in wanted for each in pair}
    score_runs(session.store, _runs(wanted), [Naturalness(judge, wanted)], session.say, only, session.panel)


def _runs(wanted: Sequence[Pair]) -> list[str]:
    return list(dict.fromkeys(each.run_id for pair in wanted for each in pair))


def rates(store: Store, wanted: Sequence[Pair], judge: str) -> list[Rate]:
    """Return for each pair the share of decided pairs of conversations in which the first condition was chosen."""
    return [row for row in rates_between(store, wanted) if row.judge == judge]


def people(store: Store, wanted: Sequence[Pair]) -> list[str]:
    """Return what raters said about the pairs, in sentences; empty if they judged none."""
    conditions = [each for pair in wanted for each in pair]
    chosen = Selection(tuple(_runs(wanted)), frozenset(conditions), frozenset(frozenset(pair) for pair in wanted))
    found = agreement(store, chosen, names={each: each.label for each in conditions})
    if found.pairs is None:
        return []
    return [line.strip() for line in sentences(replace(found, dimensions=None, disclosures=None))]


def command(wanted: Sequence[Pair], database: Path) -> str:
    """Return the command that asks people about a pair, by preference that of taught and untaught agents."""
    pair = next((pair for pair in wanted if pair[0].label == FINE_TUNED), wanted[0])
    named = (f"{each.label}={each.run_id}:{each.name}" for each in pair)
    return shlex.join(["localsim", "annotate", "serve", *named, "--db", str(database), "--open"])
