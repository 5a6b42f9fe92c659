"""The search for a friend in common against chance: how likely each person was to be shared when first named.

The probability is that of a speaker who knows the own list, the number of shared friends and the conversation so far.
Before anything is said, each person on the own list is equally likely to be shared. Then the other side's true
statements count: people it knows or does not know, and descriptions that fit one of its friends or none. False
statements are no evidence. For names and complete descriptions the probability is exact; for single attributes it
supposes that friends are drawn as `MutualFriends.generate` draws them. Scenarios have two agents.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Turn, plain
from localsim.families.mutual_friends.answers import says_no, says_yes
from localsim.families.mutual_friends.mentions import mentions
from localsim.families.mutual_friends.names import claims, namings

Description = frozenset[str]
"""Values of different attributes of one person."""
_VERB = re.compile(r"^(?:[a-z]+(?:s|ed) )?(?:(?:at|in|for|from|with|to|by|on) )?")
_AND = re.compile(r"(?:,? and|,) (?=(?:likes|works|lives|attended|studied|prefers|has|is|plays|owns|speaks) )")
"""Only before a verb: a value may be "Johnson and Johnson" or "University of California, Davis"."""
_NEGATIVE = re.compile(r"\b(?:no|none|nobody|neither|never|not|nothing)\b|n't\b")
_CONTINUES = re.compile(r"^(?:and |also )?(?:he|she|they|who|this person|that person)\b")
_OF_THE_ASKED = re.compile(
    r"(?:[a-z]+(?: [a-z]+)?[,.!:; -]+)?(?:(?:i (?:do )?(?:know|have)|there is|there's|it's) )?"
    r"(?:(?:just|only|exactly) )?"
    r"(?:(?:one|none|nobody|someone|somebody|a friend|no friend|a person)(?: of mine)? (?:who|that|at|in|with)"
    r"|(?:he|she|they) )\b"
    r"|(?:yes|yeah|yep|sure|one|i do|i have|i know)\b[^.!?]*[.!] (?:he|she|they)\b"
)
"""An answer such as "Yes, one who likes chess" or "Yes, one. She likes chess": it describes the person asked about."""
_SURE = 1 - 1e-9
_MOST_SETS = 20_000
"""Number of sets of shared friends above which descriptions are left out."""


@dataclass(frozen=True)
class Guess:
    """The first mention of a person by either agent."""

    turn: int
    speaker: str
    name: str
    held: bool
    """True if the person is on the speaker's list."""
    true: bool
    """True if the person is on both lists."""
    probability: float
    """Probability that the person is shared, as far as the speaker could know; 0 for a person not on the own list."""

    @property
    def singled_out(self) -> bool:
        """True if the conversation had told the speaker that the person is shared."""
        return self.probability > _SURE


@dataclass(frozen=True)
class Lists:
    """The friends of each agent with the values of their attributes: agent -> name -> values."""

    of: Mapping[str, Mapping[str, tuple[str, ...]]]

    @classmethod
    def read(cls, scenario: Scenario) -> Lists:
        """Return the lists of a scenario; a friend is the first term of a fact, and the fact's text the description."""
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
        counts: dict[str, int] = defaultdict(int)
        for rows in self.of.values():
            for name in rows:
                counts[name] += 1
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


@dataclass
class _Heard:
    """True statements of the other side, as one agent has heard them."""

    shared: set[str] = field(default_factory=set)
    unshared: set[str] = field(default_factory=set)
    described: dict[Description, bool] = field(default_factory=dict)
    """Descriptions that fit one of the other's friends; True for an answer, False for one that the other chose."""
    excluded: set[Description] = field(default_factory=set)
    """Descriptions that fit none of the other's friends."""


def guesses(turns: Sequence[Turn], lists: Lists) -> list[Guess]:
    """Return the first mention of each person in order, with the probability that the person was shared."""
    heard = {agent: _Heard() for agent in lists.of}
    put = defaultdict(list)
    for naming in namings(turns, lists.names):
        put[naming.turn].append(naming)
    said = defaultdict(list)
    for index, name, knows in claims(turns, lists.names):
        said[index].append((name, knows))
    found: list[Guess] = []
    before: Turn | None = None
    for turn in turns:
        if turn.speaker not in lists.of:
            continue
        own = lists.of[turn.speaker]
        for naming in put[turn.index]:
            name = naming.name
            chance = probability(name, turn.speaker, lists, heard[turn.speaker]) if name in own else 0.0
            found.append(Guess(turn.index, turn.speaker, name, name in own, name in lists.shared, chance))
        for listener in heard.keys() - {turn.speaker}:
            _listen(heard[listener], listener, turn, before, said[turn.index], lists)
        before = turn
    return found


def _listen(
    heard: _Heard, listener: str, turn: Turn, before: Turn | None, said: Sequence[tuple[str, bool]], lists: Lists
) -> None:
    """Add to what the listener has heard every true statement of a turn."""
    theirs, text = lists.of[turn.speaker], turn.action.text
    denied = {name for name, knows in said if not knows}
    heard.unshared |= {name for name in denied if name in lists.of[listener] and name not in theirs}
    heard.shared |= {name for name in lists.of[listener].keys() & theirs.keys() - denied if mentions(text, name)} | {
        name for name, knows in said if knows and name in theirs and name in lists.of[listener]
    }
    for description, negative in _descriptions(text, lists):
        if negative and not lists.fits(turn.speaker, description):
            heard.excluded.add(description)
        elif not negative and lists.fits(turn.speaker, description):
            heard.described.setdefault(description, False)
    if before is None or before.speaker != listener:
        return
    for description, negative in _descriptions(before.action.text, lists):
        fits = lists.fits(turn.speaker, description)
        if not negative and not fits and says_no(text):
            heard.excluded.add(description)
        elif not negative and fits and says_yes(text):
            heard.described.setdefault(description, True)
    joined = _joined(before.action.text, text, lists)
    if joined is not None and says_no(text) and not lists.fits(turn.speaker, joined):
        heard.excluded.add(joined)
    elif joined is not None and says_yes(text) and lists.fits(turn.speaker, joined):
        heard.described.setdefault(joined, False)


def _joined(question: str, answer: str, lists: Lists) -> Description | None:
    """Return the description in a last question with what the opening of the answer adds to it; None without both.

    "Anybody at Union Rail?" and "Yes, one who likes chess." describe one person, who has both values. It is None if
    the values exclude each other.
    """
    asked = re.split(r"(?<=[.!?;…])\s+", question.strip())[-1]
    opening = _opening(answer)
    if not asked.endswith("?") or not _OF_THE_ASKED.match(plain(opening)):
        return None
    wanted = [description for description, negative in _descriptions(asked, lists) if not negative]
    added = [description for description, _ in _descriptions(opening, lists)]
    if len(wanted) != 1 or len(added) != 1:
        return None
    both = wanted[0] | added[0]
    return None if any(len(column & both) > 1 for column in lists.columns) else both


def _opening(answer: str) -> str:
    """Return the first sentence of an answer, with the next one if it goes on about the same person, or if the first is
    a word or two, such as "Yes!".
    """
    first, *rest = re.split(r"(?<=[.!?;…])\s+|, but | but ", answer.strip())
    return f"{first} {rest[0]}" if rest and (len(first.split()) < 3 or _CONTINUES.search(plain(rest[0]))) else first


def _descriptions(text: str, lists: Lists) -> Iterator[tuple[Description, bool]]:
    """Yield the descriptions of unnamed people in a text, each with True if it is denied."""
    everybody = {name for names in lists.names.values() for name in names}
    open_description: tuple[set[str], bool] | None = None
    for clause in re.split(r"(?<=[.!?;…])\s+|, but | but ", text):
        lower = plain(clause).strip()
        values = {
            value
            for column in lists.columns
            for value in column
            if value and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", lower)
        }
        if not values or any(mentions(clause, name) for name in everybody):
            continue
        negative = bool(_NEGATIVE.search(lower))
        if open_description is not None and _CONTINUES.search(lower) and open_description[1] == negative:
            open_description[0].update(values)
            continue
        if open_description is not None:
            yield from _of_one_person(*open_description, lists)
        open_description = (values, negative)
    if open_description is not None:
        yield from _of_one_person(*open_description, lists)


def _of_one_person(values: set[str], negative: bool, lists: Lists) -> Iterator[tuple[Description, bool]]:
    """Yield the values as one description; one by one if two of them belong to the same attribute."""
    if any(len(column & values) > 1 for column in lists.columns):
        yield from ((frozenset({value}), negative) for value in sorted(values))
    else:
        yield frozenset(values), negative


def probability(name: str, agent: str, lists: Lists, heard: _Heard) -> float:
    """Return the probability that a person on the agent's list is shared, given what the agent has heard."""
    own = lists.of[agent]
    shared = len(lists.shared & own.keys())
    out = heard.unshared | {each for each, row in own.items() if any(no <= set(row) for no in heard.excluded)}
    certain = heard.shared - out
    rest = [each for each in own if each not in out and each not in certain]
    missing = shared - len(certain)
    if missing < 0 or missing > len(rest):
        return shared / len(own)  # what was heard cannot all be true
    if name in certain:
        return 1.0
    if name not in rest:
        return 0.0
    described = [one for one in heard.described if not any(one < other for other in heard.described)]
    if not described or math.comb(len(rest), missing) > _MOST_SETS:
        return missing / len(rest)
    total = fitting = 0.0
    for chosen in combinations(rest, missing):
        rows = [set(own[each]) for each in (*certain, *chosen)]
        weight = math.prod(_likelihood(one, rows, agent, lists, answered=heard.described[one]) for one in described)
        total += weight
        fitting += weight * (name in chosen)
    return fitting / total if total else missing / len(rest)


def _likelihood(
    description: Description, shared: Sequence[set[str]], agent: str, lists: Lists, *, answered: bool
) -> float:
    """Return how likely the other side says that a friend fits, if these are the shared friends.

    An answer says that at least one friend fits. A description that the other chose is that of a random friend.
    """
    fitting = sum(description <= row for row in shared)
    others = max((len(rows) for other, rows in lists.of.items() if other != agent), default=0) - len(shared)
    accident = lists.by_accident(agent, description)
    if answered:
        return 1.0 if fitting else 1 - (1 - accident) ** max(0, others)
    return fitting + max(0, others) * accident
