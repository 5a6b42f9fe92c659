"""The friends of each agent with their attributes, and the words by which a text names an attribute."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from localsim.conversation.episode import Observation
from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Turn, plain
from localsim.families.mutual_friends import phrases

Description = frozenset[str]
"""Values of different attributes of one person."""
_VERB = re.compile(r"^(?:[a-z]+(?:s|ed) )?(?:(?:at|in|for|from|with|to|by|on) )?")
_AND = re.compile(r"(?:,? and|,) (?=(?:likes|works|lives|attended|studied|prefers|has|is|plays|owns|speaks) )")
"""Only before a verb: a value may be "Johnson and Johnson" or "University of California, Davis"."""
_A = r"(?<!as )(?<!i'm )(?<!i am )(?:an?|any|the|my|some|no|one|two|three|other) (?:keen |good |real )?"
"""Words before somebody who does something; who is or works as a baker need not like baking."""
_WORD = r"[^\W\d_]+"
_LETTERS = 5
"""Letters from which a word is known with an error in it."""


@dataclass(frozen=True)
class Lists:
    """The friends of each agent with the values of their attributes: agent -> name -> values."""

    of: Mapping[str, Mapping[str, tuple[str, ...]]]

    @classmethod
    def read(cls, scenario: Scenario | Observation) -> Lists:
        """Return the lists of a scenario, or what a viewer sees of them.

        A friend is the first term of a fact, and the fact's text the description.
        """
        return cls(
            {
                agent.name: {fact.terms[0]: _values(fact.text, fact.terms[0]) for fact in agent.facts if fact.terms}
                for agent in scenario.agents
            }
        )

    @cached_property
    def names(self) -> dict[str, list[str]]:
        """The names on each list."""
        return {agent: list(rows) for agent, rows in self.of.items()}

    @cached_property
    def shared(self) -> set[str]:
        """The names on two or more lists."""
        counts = Counter(name for rows in self.of.values() for name in rows)
        return {name for name, count in counts.items() if count > 1}

    @cached_property
    def columns(self) -> list[set[str]]:
        """The values of each attribute."""
        found: list[set[str]] = []
        for row in (row for rows in self.of.values() for row in rows.values()):
            found += [set() for _ in range(len(row) - len(found))]
            for column, value in zip(found, row, strict=False):
                column.add(value)
        return found

    @cached_property
    def _forms(self) -> dict[str, re.Pattern[str]]:
        """The words that name each value: "beekeeping", "beekeeper"; "tidal power", "at tidal"."""
        values = set().union(*self.columns) - {""}
        first = [value.split()[0] for value in values]
        return {value: _form(value, alone=first.count(value.split()[0]) == 1) for value in values}

    def values_in(self, text: str) -> dict[str, str]:
        """Return the values that a plain text names, each with the words that do."""
        found = ((value, form.search(text)) for value, form in self._forms.items())
        return {value: match[0] for value, match in found if match}

    @cached_property
    def _words(self) -> tuple[str, ...]:
        """The words of names and values, each once, in a fixed order."""
        texts = [*self.of, *(text for rows in self.of.values() for name, row in rows.items() for text in (name, *row))]
        words = [word for text in texts for word in re.findall(_WORD, plain(text))]
        return tuple(dict.fromkeys(form for word in words for form in (word, *_doers(word))))

    def spelt(self, text: str) -> str:
        """Return a text with each word put right that has one spelling error and else is a word of a name or value."""
        return re.sub(_WORD, self._put_right, text)

    def spelt_in(self, turn: Turn) -> Turn:
        """Return a turn with its words put right."""
        return replace(turn, action=replace(turn.action, text=self.spelt(turn.action.text)))

    def _put_right(self, match: re.Match[str]) -> str:
        right = _meant(plain(match[0]), self._words)
        if right is None:
            return match[0]
        return right.capitalize() if match[0][0].isupper() else right

    def people(self, description: Description) -> set[str]:
        """Return the names, on any list, of the people with all the values."""
        return {name for rows in self.of.values() for name, row in rows.items() if description <= set(row)}

    @cached_property
    def distinct(self) -> bool:
        """True if no two people have the same attributes."""
        people = {name: row for rows in self.of.values() for name, row in rows.items()}
        return len(set(people.values())) == len(people)

    def fits(self, agent: str, description: Description) -> bool:
        """Return True if a friend of the agent has all the values."""
        return any(description <= set(row) for row in self.of[agent].values())

    def by_accident(self, agent: str, description: Description) -> float:
        """Return the probability that a person who is not on the agent's list has all the values."""
        sizes = [max(1, len(column)) for column in self.columns]
        open_sizes = [1 if column & description else size for column, size in zip(self.columns, sizes, strict=True)]
        people, fitting = math.prod(sizes), math.prod(open_sizes)
        if self.distinct:
            rows = self.of[agent].values()
            people -= len(rows)
            fitting -= sum(description <= set(row) for row in rows)
        return max(0, fitting) / people if people > 0 else 0.0


def _values(text: str, name: str) -> tuple[str, ...]:
    """Return the attributes in a fact: "Ann likes chess and works at Union Rail." gives chess and union rail."""
    rest = text.replace(name, "", 1).strip(" .,:")
    return tuple(plain(_VERB.sub("", part)) for part in _AND.split(rest) if part)


def _form(value: str, *, alone: bool) -> re.Pattern[str]:
    """Return the words that name a value; `alone` if its first word names no other."""
    head, _, last = value.rpartition(" ")
    first, _, rest = value.partition(" ")
    ways = [re.escape(value)]
    if last.endswith("ing"):
        stem = last[:-3]
        short = stem[:-1] if stem[-2:-1] == stem[-1:] else stem
        lead = re.escape(head) + "[ -]?"
        ways += [f"{_A}{lead}{re.escape(stem)}(?:ers?|ors?)", f"{lead}(?:{re.escape(stem)}es|{re.escape(short)}s)"]
    elif last.endswith("y"):
        ways.append(f"{_A}{re.escape(value[:-1])}(?:ers?|s)?")
    if rest and alone:
        ways.append(rf"(?:at|for|from|with) (?:the )?{re.escape(first)}(?: {re.escape(rest)})?")
        ways.append(rf"^{re.escape(first)}\W*$")  # a whole answer to "Where does she work?"
    return re.compile(rf"(?<!\w)(?:{'|'.join(ways)})(?!\w)")


def _doers(word: str) -> list[str]:
    """Return the words for who does something and for doing it: "juggler", "jugglers" and "juggles" of "juggling"."""
    stem = word.removesuffix("ing").removesuffix("y")
    return [stem + end for end in ("es", "s", "er", "ers")] if stem != word else []


@lru_cache(maxsize=10_000)
def _meant(word: str, words: tuple[str, ...]) -> str | None:
    """Return the one of the words that has a spelling error in `word`; None if there is none, or `word` is right."""
    if len(word) < _LETTERS - 1 or word in words or word in phrases.NO_NAMES:
        return None
    return next((each for each in words if len(each) >= _LETTERS and _misspells(word, each)), None)


def _misspells(word: str, right: str) -> bool:
    """Return True if one letter is missing, added, wrong or has changed places; not the first: making is not baking."""
    at = len(os.path.commonprefix((word, right)))
    found, wanted = word[at:], right[at:]
    swapped = found[:2] == wanted[1::-1] and found[2:] == wanted[2:]
    return at > 0 and (swapped or found[1:] in (wanted, wanted[1:]) or found == wanted[1:])
