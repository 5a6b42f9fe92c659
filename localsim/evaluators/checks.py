"""Checks that a scenario's author writes in YAML, on words, disclosed facts, agents that leave, and agreed prices.

A fact counts as disclosed if one of its terms is uttered, a price as agreed if two agents have both named it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from localsim.conversation.beginning import own_from
from localsim.conversation.checks import ANYBODY, Check, SuccessRule
from localsim.conversation.controls import exactly
from localsim.conversation.episode import Score, Subject
from localsim.conversation.measures import Measure
from localsim.conversation.scenario import AnswerKey, Scenario
from localsim.conversation.transcript import Transcript, Turn
from localsim.evaluators.base import Scorer
from localsim.families import family_of
from localsim.families.prices import find_prices
from localsim.families.terms import utters

CHECKS_PASSED = Measure("checks_passed", "checks passed",
                        "share of the scenario’s own checks with the result that its author expects",
                        score="checks_passed", kind="share", group="goals", compared=True)  # fmt: skip

PREFIX = "check."
"""The score of a check is called PREFIX and its name."""


def measure_of(check: str) -> Measure:
    """Return the measure of one check of a scenario, given its name."""
    score, words = PREFIX + check, check.replace("_", " ")
    return Measure(score, words, f"share of conversations in which the check “{words}” came out as its author expects",
                   score=score, kind="share", group="goals", compared=True)  # fmt: skip


class Checks(Scorer):
    """The checks of a scenario's author."""

    name = "checks"
    version = "2"
    measures = (CHECKS_PASSED,)
    controls = (
        exactly("parrot", "checks_passed", 1, "the check of the control scenarios asks for its sentence"),
        exactly("polite", "checks_passed", 0, "it never says that sentence"),
    )

    def applies(self, subject: Subject) -> bool:
        return bool(subject.answer.checks)

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Return check.NAME (1 if the event happened as expected, else 0), checks_passed (their mean) and success.

        A family that decides success itself keeps its own.
        """
        scores = [_one(check, transcript, scenario) for check in answer.checks]
        if not scores:
            return []
        passed = sum(each.value or 0.0 for each in scores) / len(scores)
        whole = Score("checks_passed", passed, reason=f"{len(scores)} checks")
        if family_of(scenario.family).decides_success:
            return [*scores, whole]
        return [*scores, whole, _success(answer.success or SuccessRule(), scores)]


CHECKS = Checks()


def _success(rule: SuccessRule, scores: Sequence[Score]) -> Score:
    """Decide by the author's rule, and say which of its checks came out otherwise."""
    counted = [score for score in scores if not rule.of or score.name.removeprefix(PREFIX) in rule.of]
    missed = [score for score in counted if score.value != 1]
    held = len(counted) - len(missed)
    reason = f"{held} of {len(counted)} checks came out as the author expects"
    if missed:
        names = (f"{score.name.removeprefix('check.').replace('_', ' ')} ({score.reason})" for score in missed)
        reason += f"; not so: {'; '.join(names)}"
    cited = sorted({turn for score in counted for turn in score.turns})
    return Score("success", float(held >= (rule.at_least or len(counted))), reason=reason, turns=tuple(cited))


def _one(check: Check, transcript: Transcript, scenario: Scenario) -> Score:
    turns = [turn for turn in transcript.acts if check.after <= transcript.position(turn.index) <= check.before]
    own = own_from(scenario, transcript)
    turn = next((each for each in _KINDS[check.kind](check, turns, scenario) if each.index >= own), None)
    happened = turn is not None
    reason = (
        f"{check.kind.replace('_', ' ')}: {'yes' if happened else 'no'}, expected {'yes' if check.expected else 'no'}"
    )
    cited = (turn.index,) if turn is not None else ()
    return Score(PREFIX + check.name, float(happened == check.expected), reason=reason, turns=cited)


def _by(check: Check, turns: Sequence[Turn]) -> Iterator[Turn]:
    return (turn for turn in turns if turn.action.text and check.by in (None, turn.speaker))


def _disclosed(check: Check, turns: Sequence[Turn], scenario: Scenario) -> Iterator[Turn]:
    fact = next(fact for agent in scenario.agents for fact in agent.facts if fact.id == check.disclosed)
    family = family_of(scenario.family)
    return (turn for turn in _by(check, turns) if any(family.utters(turn.action.text, term) for term in fact.terms))


def _said(check: Check, turns: Sequence[Turn], _scenario: Scenario) -> Iterator[Turn]:
    return (turn for turn in _by(check, turns) if any(utters(turn.action.text, words) for words in check.said or ()))


def _left(check: Check, turns: Sequence[Turn], _scenario: Scenario) -> Iterator[Turn]:
    return (turn for turn in turns if turn.action.type == "leave" and check.left in (ANYBODY, turn.speaker))


def _price_agreed(check: Check, turns: Sequence[Turn], _scenario: Scenario) -> Iterator[Turn]:
    """Yield the turn that completes the last price named by two agents, if the price is in the range."""
    named: dict[float, str] = {}
    agreed: tuple[float, Turn] | None = None
    for turn in turns:
        for price in find_prices(turn.action.text):
            if not price.negated and named.setdefault(price.value, turn.speaker) != turn.speaker:
                agreed = (price.value, turn)
    least, most = check.price_agreed or (0.0, 0.0)
    if agreed is not None and least <= agreed[0] <= most:
        yield agreed[1]


_KINDS = {"disclosed": _disclosed, "said": _said, "left": _left, "price_agreed": _price_agreed}
