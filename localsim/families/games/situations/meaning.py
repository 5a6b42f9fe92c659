"""What facts mean for a settlement, how this is said and heard, and which settlements are right.

A settlement has one value for each issue. A fact can rule an option out, say what an option has, say what its owner
needs, give points, or bound a number. `right` is the only place that decides what the right settlements are; the
answer key, the players and the check of a file all ask it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import product
from math import prod
from typing import Any, Literal

from localsim.conversation.rules.values import Move, Param
from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Transcript

Rule = Literal["fits", "best", "fair"]
"""`fits`: all settlements that no side rules out are right. `best`: those with the most points together. `fair`: those
with the most points for the one who gets least.
"""
Settlement = tuple[str, ...]
MOST_SETTLEMENTS = 20_000
TELL = "tell"
"""The meaning of a fact that its owner should tell before the matter is settled."""
IN_SHORT = "In short:"
"""Scripted players say after these words what others can hear; nothing else that is said counts for them."""
DONE_TELLING = "that is all"


@dataclass(frozen=True)
class Issue:
    """Something to settle."""

    name: str
    param: Param

    @property
    def values(self) -> list[str]:
        """All values in the form in which lines have them."""
        if self.param.number is not None:
            return [self.param.written(each) for each in self.param.numbers()]
        return list(self.param.one_of or ())


@dataclass(frozen=True)
class Meaning:
    """What one side's facts mean."""

    out: frozenset[str] = frozenset()
    """Options that the side rules out."""
    has: frozenset[tuple[str, str]] = frozenset()
    """(option, property) pairs."""
    needs: frozenset[str] = frozenset()
    """Properties that the settlement must have."""
    points: Mapping[str, int] = field(default_factory=dict)
    """What an option is worth to the side."""
    least: Mapping[str, Decimal] = field(default_factory=dict)
    """Least number of an issue."""
    most: Mapping[str, Decimal] = field(default_factory=dict)
    """Greatest number of an issue."""

    def __or__(self, other: Meaning) -> Meaning:
        return Meaning(
            self.out | other.out,
            self.has | other.has,
            self.needs | other.needs,
            {**self.points, **other.points},
            {**self.least, **other.least},
            {**self.most, **other.most},
        )

    def __bool__(self) -> bool:
        return self != Meaning()


_FORMS = {
    "out": (r"out: (.+)", "{0} is out"),
    "has": (r"has: (.+) = (.+)", "{0} has {1}"),
    "needs": (r"needs: (.+)", "I need {0}"),
    "points": (r"points: (.+) = (-?\d+)", "{0} gives me {1}"),
    "least": (r"least: (.+) = (-?[\d.]+)", "{0} at least {1}"),
    "most": (r"most: (.+) = (-?[\d.]+)", "{0} at most {1}"),
}
"""Kinds of meanings: their form in a file, and in the mouth of a scripted player."""
_WRITTEN = {kind: re.compile(form) for kind, (form, _) in _FORMS.items()}
_HEARD = {kind: re.compile(re.sub(r"\{\d\}", "(.+)", said)) for kind, (_, said) in _FORMS.items()}


def _matched(text: str, forms: Mapping[str, re.Pattern[str]]) -> tuple[str, tuple[str, ...]] | None:
    """Return the first kind whose form a text has, with its words."""
    found = ((kind, match.groups()) for kind, form in forms.items() if (match := form.fullmatch(text)))
    return next(found, None)


def parse_meanings(texts: Iterable[str]) -> Meaning:
    """Return what the texts of a fact's `means` mean together. Raises ValueError for a text that means nothing."""
    found = Meaning()
    for text in texts:
        if text != TELL:
            told = _matched(text, _WRITTEN)
            if told is None:
                forms = [re.sub(r"\(-?[^)]*\\d[^)]*\)", "NUMBER", form) for form, _ in _FORMS.values()]
                listed = ", ".join(forms).replace("(.+)", "WORDS")
                raise ValueError(f"{text!r} means nothing; a meaning is {listed} or {TELL}")
            found |= _meaning(*told)
    return found


def _meaning(kind: str, words: Sequence[str]) -> Meaning:
    first, last = words[0], words[-1]
    if kind in ("least", "most"):
        return Meaning(least={first: Decimal(last)}) if kind == "least" else Meaning(most={first: Decimal(last)})
    if kind == "points":
        return Meaning(points={first: int(last)})
    if kind == "has":
        return Meaning(has=frozenset([(first, last)]))
    return Meaning(out=frozenset([first])) if kind == "out" else Meaning(needs=frozenset([first]))


def said(texts: Iterable[str]) -> list[str]:
    """Return the clauses with which a scripted player tells the meanings of a fact."""
    told = (_matched(text, _WRITTEN) for text in texts)
    return [_FORMS[each[0]][1].format(*each[1]) for each in told if each is not None]


def heard(text: str) -> tuple[Meaning, bool]:
    """Return what an utterance tells in short, and whether it says that this is all."""
    found, over = Meaning(), False
    for clause in text.rpartition(IN_SHORT)[2].rstrip(".").split("; ") if IN_SHORT in text else ():
        over = over or clause.strip() == DONE_TELLING
        if told := _matched(clause.strip(), _HEARD):
            found |= _meaning(*told)
    return found, over


# ---- what is right -------------------------------------------------------------------------------------------------


def count(issues: Sequence[Issue]) -> int:
    """Return the number of settlements."""
    return prod(len(issue.values) for issue in issues)


def right(
    issues: Sequence[Issue], rule: Rule, sides: Iterable[Meaning], otherwise: Sequence[str] = ()
) -> list[Settlement]:
    """Return the right settlements in the order of the options, by everything that the sides say.

    Settlements with an option of `otherwise` are right only if no other settlement fits.
    """
    told = list(sides)
    has = frozenset[tuple[str, str]]().union(*(side.has for side in told))
    every = list(product(*(issue.values for issue in issues)))
    fitting = [each for each in every if all(_suits(issues, each, side, has) for side in told)]
    found = [each for each in fitting if not set(each) & set(otherwise)] or fitting
    if rule == "fits" or not found:
        return found
    worth = {each: [points(each, side) for side in told] for each in found}
    value = {each: sum(worth[each]) if rule == "best" else min(worth[each]) for each in found}
    most = max(value.values())
    return [each for each in found if value[each] == most]


def points(settlement: Settlement, side: Meaning) -> int:
    """Return what a settlement is worth to a side."""
    return sum(side.points.get(option, 0) for option in settlement)


def _suits(issues: Sequence[Issue], settlement: Settlement, side: Meaning, has: frozenset[tuple[str, str]]) -> bool:
    if side.out & set(settlement):
        return False
    given = {what for option, what in has if option in settlement}
    if side.needs - given:
        return False
    for issue, value in zip(issues, settlement, strict=True):
        if issue.param.number is not None:
            number = Decimal(value)
            if number < side.least.get(issue.name, number) or number > side.most.get(issue.name, number):
                return False
    return True


def favourite(issues: Sequence[Issue], rule: Rule, own: Meaning, otherwise: Sequence[str] = ()) -> Settlement:
    """Return the settlement that somebody prefers who thinks of the own side only: the first right one by it.

    Of numbers that all suit, a side with a least number wants the greatest one, and every other side the least.
    """
    found = right(issues, rule, [own], otherwise) or right(issues, rule, [replace(own, needs=frozenset())], otherwise)
    if not found:
        return tuple(issue.values[0] for issue in issues)
    best = max(points(each, own) for each in found)
    found = [each for each in found if points(each, own) == best]
    greedy = any(issue.name in own.least for issue in issues)
    numbers = [place for place, issue in enumerate(issues) if issue.param.number is not None]
    if not numbers:
        return found[0]
    return sorted(found, key=lambda each: [Decimal(each[place]) for place in numbers], reverse=greedy)[0]


def unfair(issues: Sequence[Issue], rule: Rule, sides: Iterable[Meaning], otherwise: Sequence[str] = ()) -> list[str]:
    """Return the reasons why a task needs no talk: what one side could reach alone or without thinking."""
    told = list(sides)
    found = right(issues, rule, told, otherwise)
    if not found:
        return ["no settlement is right"]
    problems = []
    first = tuple(issue.values[0] for issue in issues)
    if first in found:
        problems.append(f"the first option of each issue ({', '.join(first)}) is right, so a lazy answer is right")
    for number, side in enumerate(told):
        alone = favourite(issues, rule, side, otherwise)
        if alone in found:
            problems.append(f"{', '.join(alone)}, which side {number + 1} prefers alone, is right, so nobody need talk")
        others = [other for place, other in enumerate(told) if place != number]
        if side and set(right(issues, rule, others, otherwise)) == set(found):
            problems.append(f"the facts of side {number + 1} change nothing")
    if sum(map(bool, told)) < 2:
        problems.append("the facts that decide are all on one side")
    return problems


def written(issues: Sequence[Issue], settlements: Sequence[Settlement]) -> list[list[str]]:
    """Return right settlements as an answer key has them: numbers in a row as `30..45`."""
    numeric = next((place for place, issue in enumerate(issues) if issue.param.number is not None), None)
    if numeric is None:
        return [list(each) for each in settlements]
    rows: dict[Settlement, list[str]] = {}
    for each in settlements:
        rows.setdefault((*each[:numeric], "", *each[numeric + 1 :]), []).append(each[numeric])
    return [[*key[:numeric], f"{values[0]}..{values[-1]}", *key[numeric + 1 :]] for key, values in rows.items()]


def is_right(settlement: Sequence[str], answer: Sequence[Sequence[str]]) -> bool:
    """Return True if a settlement is among those of an answer key."""
    return any(matching(settlement, each) == len(settlement) for each in answer)


def matching(settlement: Sequence[str], wanted: Sequence[str]) -> int:
    """Return the number of issues that are settled as one entry of an answer key says."""
    return sum(_is_in(value, want) for value, want in zip(settlement, wanted, strict=True))


def _is_in(value: str, wanted: str) -> bool:
    low, dots, high = wanted.partition("..")
    return Decimal(low) <= Decimal(value) <= Decimal(high) if dots else value == wanted


ALL = "all"
"""The value of `decides` where a settlement needs everybody."""


def issues_of(moves: Sequence[Move], game: Mapping[str, Any]) -> tuple[Issue, ...]:
    """Return the issues: their names are public, their values those of the moves."""
    names = game.get("public", {}).get("issues", ())
    values: tuple[Param, ...] = next(
        (move.values for move in moves if move.name in ("propose", "choose", "suggest")), ()
    )
    if not names or len(names) != len(values):
        return ()
    return tuple(Issue(name, param) for name, param in zip(names, values, strict=True))


def sides_of(scenario: Scenario) -> dict[str, Meaning]:
    """Return what the facts of each agent mean."""
    return {
        agent.name: parse_meanings(text for fact in agent.facts for text in fact.means) for agent in scenario.agents
    }


def answer_of(scenario: Scenario) -> dict[str, Any]:
    """Return the answer key: the right settlements, and the share of all settlements that is right."""
    public, issues = scenario.game["public"], issues_of(scenario.moves, scenario.game)
    found = right(issues, public["rule"], sides_of(scenario).values(), public.get("otherwise", ()))
    return {"right": written(issues, found), "chance": f"{len(found)}/{count(issues)}"}


def open_proposal(talk: Transcript) -> tuple[Settlement | None, tuple[str, ...]]:
    """Return the newest proposal that nobody has refused, and who agrees with it; its author comes first."""
    settlement: Settlement | None = None
    agreed: tuple[str, ...] = ()
    for turn in talk.of("propose", "accept", "refuse"):
        if turn.action.type == "propose":
            settlement, agreed = tuple(turn.action.values or ()), (turn.speaker,)
        elif turn.action.type == "refuse":
            settlement, agreed = None, ()
        else:
            agreed = (*agreed, turn.speaker)
    return settlement, agreed


def settlement_of(scenario: Scenario, talk: Transcript) -> Settlement | None:
    """Return what is settled; None if nothing is."""
    chosen = talk.of("choose")
    if chosen:
        return tuple(chosen[-1].action.values or ())
    settlement, agreed = open_proposal(talk)
    return settlement if settlement and set(agreed) >= set(scenario.names) else None


def settling_turns(scenario: Scenario, talk: Transcript) -> tuple[int, ...]:
    """Return the turns of the settlement: a choice, or the proposal and the last acceptance."""
    if settlement_of(scenario, talk) is None:
        return ()
    if chosen := talk.of("choose"):
        return (chosen[-1].index,)
    return talk.of("propose")[-1].index, talk.of("accept")[-1].index
