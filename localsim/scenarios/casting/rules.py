"""What a situation must be: consistent, with a right outcome that follows from its facts, and not playable alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from localsim.conversation.rules.values import Place, problems_of_move, repeats
from localsim.families.games.situations.meaning import ALL, MOST_SETTLEMENTS, count, right, unfair, written
from localsim.families.terms import span_of
from localsim.scenarios.casting.cast import moves_of
from localsim.scenarios.casting.situations import (
    PLACEHOLDER,
    IssueOf,
    Role,
    RoleFact,
    Situation,
    texts_of,
)
from localsim.scenarios.documents import read_document, read_file
from localsim.scenarios.tagging import problems_of_tags

MOST_CHANCE = Fraction(1, 4)
"""The greatest share of settlements that may be right."""
LONGEST_FACT = 200
"""Characters of a fact; small models lose longer ones."""
_YOU = re.compile(r"\byou(?:r|rs)?\b", re.IGNORECASE)
Problem = tuple[Place, str]


def load_situation(path: str | Path) -> Situation:
    """Read and check one file. Raises InvalidInput where it cannot be read, ScenarioInvalid with all its problems."""
    file = Path(path)
    return parse_situation(read_file(file), str(file))


def parse_situation(text: str, name: str) -> Situation:
    """Check a situation given as YAML text; `name` stands for the file in messages, and its stem is the id."""
    read = read_document(text, name, Situation, what="a situation")
    found: list[tuple[tuple[Any, ...], str]] = []
    if read.value is not None and not read.problems:
        found = [(("tags", *place), message) for place, message in problems_of_tags(read.value.tags)]
        found += problems_of_situation(read.value, Path(name).stem)
    return read.valid(found)


def problems_of_situation(situation: Situation, stem: str) -> Iterator[Problem]:
    """Yield (place, message) for everything that is wrong with a situation; `stem` is the name of its file."""
    found = [*_of_names(situation, stem), *_of_issues(situation), *_of_texts(situation)]
    for number, role in enumerate(situation.roles):
        for place, fact in enumerate(role.facts):
            here: Place = ("roles", number, "facts", place)
            found += [((*here, *inner), message) for inner, message in _of_fact(situation, role, fact)]
    yield from found
    if not found:
        yield from _of_outcome(situation)


def _of_names(situation: Situation, stem: str) -> Iterator[Problem]:
    ids: list[tuple[Place, str]] = []
    if situation.id != stem:
        yield ("id",), f"the file is called {stem}.yaml"
    yield from repeats("role", ((("roles", number, "role"), name) for number, name in enumerate(situation.names)))
    if situation.decides not in (ALL, *situation.names):
        yield ("decides",), f"is {ALL} or one of {', '.join(situation.names)}"
    for number, role in enumerate(situation.roles):
        ids += [(("roles", number, "facts", place, "id"), fact.id) for place, fact in enumerate(role.facts)]
        if role.needs.age[0] > role.needs.age[1]:
            yield ("roles", number, "needs", "age"), "give the least age first"
    yield from repeats("fact id", ids)


def _of_issues(situation: Situation) -> Iterator[Problem]:
    words: list[str] = []
    for number, issue in enumerate(situation.issues):
        here: Place = ("issues", number)
        if (issue.options is None) == (issue.number is None):
            yield here, "give exactly one of options and number"
            continue
        if issue.options is not None and len(issue.options) < 2:
            yield (*here, "options"), "give at least two options"
        for place, option in enumerate(issue.options or ()):
            if ";" in option or " is out" in option:
                yield (*here, "options", place), "an option has no semicolon, and not the words `is out`"
            if option.casefold() in words:
                yield (*here, "options", place), f"option given more than once: {option}"
            words.append(option.casefold())
    if situation.otherwise and len(situation.issues) > 1:
        yield ("otherwise",), "needs a single issue"
    for number, option in enumerate(situation.otherwise):
        if option not in (situation.issues[0].options or ()):
            yield ("otherwise", number), f"no option is called {option!r}"
    for move in moves_of(situation, {name: name for name in situation.names})[:1]:
        for inner, message in problems_of_move(move):
            yield ("issues", inner[1] if len(inner) > 1 else 0), message


def _of_texts(situation: Situation) -> Iterator[Problem]:
    for place, text in texts_of(situation):
        for name in PLACEHOLDER.findall(text):
            if name not in situation.names:
                yield place, f"no role is called {name!r}; there are {', '.join(situation.names)}"
        if re.search(r"[{}]", PLACEHOLDER.sub("", text)):
            yield place, "a single brace; a role in braces is the name of its person"
    for name in situation.names:
        if f"{{{name}}}" not in situation.setting:
            yield ("setting",), f"does not name {{{name}}}"
    for number, role in enumerate(situation.roles):
        if not _YOU.search(role.goal):
            yield ("roles", number, "goal"), 'speaks to the person as "you"'
        if not role.facts:
            yield ("roles", number), "has no facts: everybody must know something that the others do not"


def _of_fact(situation: Situation, role: Role, fact: RoleFact) -> Iterator[Problem]:
    """Yield what is wrong with one fact: its words, its terms and what it means."""
    if len(fact.text) > LONGEST_FACT:
        yield ("text",), f"longer than {LONGEST_FACT} characters"
    if _YOU.search(fact.text):
        yield ("text",), "is in the third person, with the role in braces, and without `you`"
    if not fact.terms:
        yield ("terms",), "give words of the text that tell the fact"
    public = " / ".join([situation.setting, *(option for issue in situation.issues for option in issue.options or ())])
    others = [text for other in situation.roles if other is not role for text in (other.goal, other.secret or "")]
    others += [each.text for other in situation.roles if other is not role for each in other.facts]
    for number, term in enumerate(fact.terms):
        if span_of(fact.text, term) is None:
            yield ("terms", number), "is not in the text of the fact"
        if span_of(public, term) is not None:
            yield ("terms", number), "is in the setting or an option, so that everybody can say it"
        elif any(span_of(text, term) is not None for text in others):
            yield ("terms", number), "is in a text of another role"
    yield from _of_means(situation, fact)
    if fact.means.decides and fact.disclosure == "never":
        yield ("disclosure",), "a fact that decides what is right must be allowed to be told"
    if fact.means.tell and fact.disclosure != "free":
        yield ("disclosure",), "a fact that should be told is free"


def _of_means(situation: Situation, fact: RoleFact) -> Iterator[Problem]:
    """Yield meanings that name no option or issue, or that the words of the fact do not say."""
    means, text = fact.means, fact.text.casefold()
    options = [option for issue in situation.issues for option in issue.options or ()]
    numbers: dict[str, IssueOf] = {issue.name: issue for issue in situation.issues if issue.number}
    for field in ("out", "has", "points"):
        for option in getattr(means, field):
            if option not in options:
                yield ("means", field), f"no option is called {option!r}"
            elif option.casefold() not in text:
                yield ("means", field), f"the text does not name {option!r}"
    properties = [*means.needs, *(what for each in means.has.values() for what in each)]
    for what in properties:
        if what.casefold() not in text:
            yield ("means",), f"the text does not say {what!r}"
        if "; " in what or " = " in what:
            yield ("means",), f"{what!r} has a semicolon or an equals sign"
    for value in means.points.values():
        if str(value) not in text:
            yield ("means", "points"), f"the text does not say {value}"
    for field in ("least", "most"):
        for name, value in getattr(means, field).items():
            if name not in numbers:
                yield ("means", field), f"no issue with a number is called {name!r}"
            elif f"{value:f}" not in text:
                yield ("means", field), f"the text does not say {value:f}"


def _of_outcome(situation: Situation) -> Iterator[Problem]:
    """Yield what is wrong with the right settlements: they differ from the author's, or can be had without a talk."""
    issues, sides = situation.agenda, list(situation.sides.values())
    total = count(issues)
    if total > MOST_SETTLEMENTS:
        yield ("issues",), f"there are {total} settlements, and {MOST_SETTLEMENTS} are the most"
        return
    found = right(issues, situation.rule, sides, situation.otherwise)
    answer = written(issues, found)
    if sorted(answer) != sorted(map(list, situation.right)):
        yield ("right",), f"by the facts, the right settlements are {answer[:5]}{' and more' * (len(answer) > 5)}"
    if Fraction(len(found), total) > MOST_CHANCE:
        yield ("right",), f"{len(found)} of {total} settlements are right; at most a quarter may be"
    yield from ((("roles",), message) for message in unfair(issues, situation.rule, sides, situation.otherwise))
