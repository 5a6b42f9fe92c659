"""The search for a friend in common against chance: how likely each person was to be shared when first named.

The probability is that of a speaker who knows the own list, the number of shared friends and the conversation so far.
Before anything is said, each person on the own list is equally likely to be shared. Then the other side's true
statements count: people it knows or does not know, and descriptions that fit one of its friends or none. False
statements are no evidence. For names and complete descriptions the probability is exact; for single attributes it
supposes that friends are drawn as `MutualFriends.generate` draws them. Scenarios have two agents.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from localsim.conversation.transcript import Turn
from localsim.families.mutual_friends.answers import says_no, says_yes
from localsim.families.mutual_friends.descriptions import MEMORY, Said, described, most_exact
from localsim.families.mutual_friends.lists import Description, Lists
from localsim.families.mutual_friends.mentions import mentions
from localsim.families.mutual_friends.names import claims, namings

_SURE = 1 - 1e-9
_MOST_GUESSED = 2
"""Who names more friends of the own list in one turn reads it out."""
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
    answers: bool = False
    """True if it answers the other side, who asked for a person: the turn names all own friends who fit."""
    read_out: bool = False
    """True if the turn names at least three friends of the own list first, or most of it: no guess, and no peek."""

    @property
    def singled_out(self) -> bool:
        """True if what was said left the speaker this person to name, alone or with all others who were asked for."""
        return self.answers or self.probability > _SURE


@dataclass
class _Heard:
    """True statements of the other side, as one agent has heard them."""

    shared: set[str] = field(default_factory=set)
    unshared: set[str] = field(default_factory=set)
    described: dict[Description, bool] = field(default_factory=dict)
    """Descriptions that fit one of the other's friends; True for an answer, False for one that the other chose."""
    excluded: set[Description] = field(default_factory=set)
    """Descriptions that fit none of the other's friends."""
    asked: tuple[tuple[Description, ...], ...] = ()
    """What the other last asked for, as it can be read: by the questions alone, or by all that the turn describes; both
    as it is written, and with spelling errors put right."""
    asked_in: int = 0
    """The turn in which it did."""


def guesses(turns: Sequence[Turn], lists: Lists) -> list[Guess]:
    """Return the first mention of each person in order, with the probability that the person was shared."""
    heard = {agent: _Heard() for agent in lists.of}
    put = defaultdict(list)
    for naming in namings(turns, lists.names):
        put[naming.turn].append(naming)
    found: list[Guess] = []
    for turn in _listening(turns, lists, heard):
        own = lists.of[turn.speaker]
        held = {naming.name for naming in put[turn.index]} & own.keys()
        said_now = {name for name in own if mentions(turn.action.text, name)}
        wanted = _asked_for(own, heard[turn.speaker], turn.index)
        read_out = len(held) > min(_MOST_GUESSED, max(1, len(own) / 2))
        for naming in put[turn.index]:
            name = naming.name
            mine = heard[turn.speaker]
            chance = probability(name, turn.speaker, lists, mine) if name in own else 0.0
            answers = any(name in each and each <= said_now for each in wanted)
            true = name in lists.shared
            found.append(Guess(turn.index, turn.speaker, name, name in own, true, chance, answers, read_out))
    return found


def posterior(turns: Sequence[Turn], lists: Lists, agent: str) -> dict[str, float]:
    """Return the probability that each friend of an agent is shared, given all that it has heard in some turns."""
    heard = {agent: _Heard()}
    for _ in _listening(turns, lists, heard):
        pass
    return {name: probability(name, agent, lists, heard[agent]) for name in lists.of[agent]}


def _listening(turns: Sequence[Turn], lists: Lists, heard: Mapping[str, _Heard]) -> Iterator[Turn]:
    """Yield each turn of an agent, and then add it to what the others of `heard` have heard."""
    said = defaultdict(list)
    for index, name, knows in claims(turns, lists.names):
        said[index].append((name, knows))
    spelt = [lists.spelt_in(turn) for turn in turns]
    readings = [described(each, lists) for each in ((turns, spelt) if spelt != list(turns) else (turns,))]
    before: Turn | None = None
    for turn in turns:
        if turn.speaker not in lists.of:
            continue
        yield turn
        for listener in heard.keys() - {turn.speaker}:
            _listen(heard[listener], listener, turn, before, said[turn.index], readings, lists)
        before = turn


def _listen(
    heard: _Heard,
    listener: str,
    turn: Turn,
    before: Turn | None,
    said: Sequence[tuple[str, bool]],
    readings: Sequence[Mapping[int, Said]],
    lists: Lists,
) -> None:
    """Add to what the listener has heard every true statement of a turn, as one can understand it."""
    theirs, text = lists.of[turn.speaker], turn.action.text
    denied = {name for name, knows in said if not knows}
    heard.unshared |= {name for name in denied if name in lists.of[listener] and name not in theirs}
    both, spelt = lists.of[listener].keys() & theirs.keys(), lists.spelt(text)
    heard.shared |= {name for name in both - denied if mentions(spelt, name)}
    heard.shared |= {name for name, knows in said if knows and name in both}
    for each in (each for spoken in readings for each in spoken[turn.index].told):
        if each.negative and not lists.fits(turn.speaker, each.description):
            heard.excluded.add(each.description)
        elif not each.negative and lists.fits(turn.speaker, each.description):
            heard.described.setdefault(each.description, False)
    ways = [way for spoken in readings for way in (spoken[turn.index].questions, spoken[turn.index].asked)]
    if any(ways):
        heard.asked, heard.asked_in = tuple(ways), turn.index
    if before is None or before.speaker != listener:
        return
    for description in (each for spoken in readings for each in spoken[before.index].asked):
        fits = lists.fits(turn.speaker, description)
        if not fits and says_no(text):
            heard.excluded.add(description)
        elif fits and says_yes(text):
            heard.described.setdefault(description, True)


def _asked_for(own: Mapping[str, Sequence[str]], heard: _Heard, now: int) -> list[set[str]]:
    """Return the own friends whom the other side asked for a moment ago, a set for each way to read the question."""
    out = _ruled_out(own, heard)
    readings = map(most_exact, heard.asked if now - heard.asked_in <= MEMORY else ())
    return [{name for name, row in own.items() if any(one <= set(row) for one in each)} - out for each in readings]


def _ruled_out(own: Mapping[str, Sequence[str]], heard: _Heard) -> set[str]:
    """Return the own friends whom the other side has said not to know."""
    return heard.unshared | {name for name, row in own.items() if any(no <= set(row) for no in heard.excluded)}


def probability(name: str, agent: str, lists: Lists, heard: _Heard) -> float:
    """Return the probability that a person on the agent's list is shared, given what the agent has heard."""
    own = lists.of[agent]
    shared = len(lists.shared & own.keys())
    out = _ruled_out(own, heard)
    certain = heard.shared - out
    rest = [each for each in own if each not in out and each not in certain]
    missing = shared - len(certain)
    if missing < 0 or missing > len(rest):
        return shared / len(own)  # what was heard cannot all be true
    if name in certain:
        return 1.0
    if name not in rest:
        return 0.0
    described = most_exact(heard.described)
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
