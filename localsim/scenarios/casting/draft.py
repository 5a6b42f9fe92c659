"""Drafts of situations: the words of a model, and a task from a seed that these words are put into.

A model that is asked for a whole situation hardly ever gives one that can be played: its facts do not decide anything,
or one side alone knows the answer. So the seed decides which side rules out which option, such that one option that is
not the first is left; the model writes what is talked about, by whom, and why each option is ruled out. What it wrote
is checked like any situation.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from localsim.conversation.rules.values import Param
from localsim.families.base import listed
from localsim.families.games.situations.meaning import Issue, parse_meanings, right, unfair
from localsim.families.terms import utters
from localsim.scenarios.casting.situations import Kind
from localsim.scenarios.documents import dumped

OPTIONS = 5
TURNS = 16
LONGEST_PREMISE = 300
_DRAWS = 1000
_CHAR = r"[^\x00-\x1f\x7f{}<>|]"
_KINDS = get_args(Kind)
_FEWEST_LETTERS = 5
"""Letters of a word that can tell a fact by itself."""
Deal = tuple[tuple[int, ...], tuple[int, ...]]
"""Numbers of the options that each side rules out, from 0."""


def deal_of(seed: int) -> Deal:
    """Return which side rules out which options, so that one is left and no side can know it alone."""
    rng = random.Random(f"draft/{seed}")
    names = [f"option {number}" for number in range(OPTIONS)]
    issue = Issue("matter", Param(one_of=tuple(names)))
    for _ in range(_DRAWS):
        order = rng.sample(range(OPTIONS), OPTIONS - 1)
        cut = rng.choice((2, OPTIONS - 3))
        deal = tuple(sorted(order[:cut])), tuple(sorted(order[cut:]))
        sides = [parse_meanings(f"out: {names[number]}" for number in own) for own in deal]
        if len(right([issue], "fits", sides)) == 1 and not unfair([issue], "fits", sides):
            return deal
    raise AssertionError("no draw is a fair task")


@dataclass(frozen=True)
class Field:
    """One line of a draft: its label, the GBNF of the words after it, and the pattern that reads them."""

    label: str
    grammar: str
    pattern: str

    @property
    def start(self) -> str:
        """The fixed start of the line: a label with a colon, or the beginning of a sentence."""
        return self.label if self.label.endswith(("want", "because")) else f"{self.label}:"


def fields_of(deal: Deal) -> list[Field]:
    """Return the lines that a model writes for a deal, in their order."""
    noun = Field("", "[a-z] [a-z]{2,13}", r"[a-z]{3,14}")
    option = Field("", "[A-Za-z] [A-Za-z ]{1,24} [A-Za-z]", r"[A-Za-z][A-Za-z ]{1,24}[A-Za-z]")

    def words(most: int) -> Field:
        return Field("", f"[A-Za-z] {_CHAR}{{3,{most}}}", rf"[A-Za-z]{_CHAR}{{3,{most}}}")

    kind = Field("", " | ".join(f'"{each}"' for each in _KINDS), "|".join(_KINDS))
    named = [("Title", words(60)), ("Kind", kind), ("First role", noun), ("Second role", noun), ("Setting", words(160))]
    named.append(("What they settle", noun))
    named += [(f"Option {number}", option) for number in range(1, OPTIONS + 1)]
    for side, out in zip(("First", "Second"), deal, strict=True):
        named.append((f"{side} role: You want", words(100)))
        named += [(f"{side} role rules out option {number + 1} because", words(80)) for number in out]
    return [Field(label, each.grammar, each.pattern) for label, each in named]


def read_draft(text: str, deal: Deal) -> list[str]:
    """Return the words of each line. Raises ValueError with the first line that has not the form asked for."""
    lines = text.rstrip("\n").split("\n")
    fields = fields_of(deal)
    found = []
    for number, field in enumerate(fields):
        line = lines[number] if number < len(lines) else ""
        words = line.removeprefix(field.start).strip()
        if not line.startswith(field.start) or not re.fullmatch(field.pattern, words):
            raise ValueError(f"the line `{field.start}` is missing or has not the form asked for")
        found.append(words)
    if len(lines) > len(fields):
        raise ValueError("lines after the last one")
    return found


def composed(words: Sequence[str], deal: Deal, name: str, source: str) -> str:
    """Return the YAML of the situation that the words of a draft make. `source` says who wrote it, from what."""
    title, kind, first, second, setting, issue = words[:6]
    options = list(words[6 : 6 + OPTIONS])
    rest = iter(words[6 + OPTIONS :])
    sides = []
    for role, out in zip((first, second), deal, strict=True):
        goal = f"You want {_ended(next(rest))} Settle the {issue} with the other."
        reasons = [(options[number], _ended(next(rest))) for number in out]
        sides.append((role, goal, reasons))
    left = next(each for number, each in enumerate(options) if number not in (*deal[0], *deal[1]))
    public = f"{setting} {first} {second} {' / '.join(options)} {issue}"
    roles = []
    for number, (role, goal, reasons) in enumerate(sides):
        hidden = [sides[1 - number][1], *(reason for _, reason in sides[1 - number][2])]
        facts = [
            {
                "id": f"{'first' if number == 0 else 'second'}_{place}",
                "text": f"{{{role}}} rules out {option}, because {reason}",
                "terms": _terms(reason, [public, *hidden]),
                "means": {"out": [option]},
            }
            for place, (option, reason) in enumerate(reasons, start=1)
        ]
        roles.append({"role": role, "goal": goal, "facts": facts})
    document = {
        "version": 1,
        "id": name,
        "title": title,
        "kind": kind,
        "info": {"what": source},
        "setting": (
            f"{_ended(setting)} {{{first}}} and {{{second}}} settle the {issue} together. They can take "
            f"{listed(options, 'or')}."
        ),
        "roles": roles,
        "issues": [{"name": issue, "options": options}],
        "right": [[left]],
        "turns": TURNS,
    }
    return dumped(document)


def _ended(text: str) -> str:
    return text if text[-1] in ".!?" else f"{text}."


def _terms(reason: str, others: Sequence[str]) -> list[str]:
    """Return the words of a reason that are in no other text: at most two, the longest first."""
    words = dict.fromkeys(re.findall(rf"[^\W\d_]{{{_FEWEST_LETTERS},}}", reason))
    own = [word for word in words if utters(reason, word) and not any(utters(other, word) for other in others)]
    return sorted(own, key=len, reverse=True)[:2]
