"""Who takes part: participants, talks, answers and ratings as values. The same events give the same state.

Nothing here says who a participant is: a random code, the hash of a random secret in a cookie, and what they answered.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd
from typing import Any, Literal

from localsim.web.floor.state import Event, Meeting, State

Part = Literal["before", "after"]
Status = Literal["taking part", "finished", "unpaired", "withdrawn", "away"]
Answers = Mapping[str, Mapping[str, Any]]
"""Item -> value, number, right: what was answered, as a number too, and whether it is right; None without."""


@dataclass
class ArmMeeting(Meeting):
    """A talk of an experiment."""

    condition: str = ""
    place: int = 0
    """Position of the scenario in the condition."""
    at: float = 0.0
    """When it began, in seconds since 1970."""
    over: str = ""
    """Why it must end before its rules end it; empty if nothing asks for that."""


@dataclass
class Participant:
    """One person, known by a code."""

    number: int
    key: str
    """Hash of the secret that the browser has."""
    code: str
    place: int
    """Number of the place in the order of conditions, from 0."""
    condition: str
    completion: str
    """What the participant reads at the end, and can show as a proof."""
    at: float
    """When the participant agreed, in seconds since 1970."""
    forms: dict[tuple[str, str], Answers] = field(default_factory=dict)
    """(part, bank) -> answers."""
    ratings: dict[tuple[int, int], Answers] = field(default_factory=dict)
    """(talk, turn) -> ratings of that turn."""
    judged: dict[int, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """Talk -> answers to the rubric about it, each with agent, dimension, value and number."""
    talks: list[int] = field(default_factory=list)
    out: Literal["", "withdrawn", "away"] = ""
    unpaired: bool = False
    """True if a partner left, or none came; what follows the talk is asked nevertheless."""
    done: float | None = None
    """When the participant reached the end."""

    @property
    def holds(self) -> bool:
        """True while no other person can have the place."""
        return not self.out and not self.unpaired

    @property
    def status(self) -> Status:
        """What has become of the participant."""
        if self.out:
            return self.out
        if self.unpaired:
            return "unpaired"
        return "taking part" if self.done is None else "finished"


class Roster(State[ArmMeeting]):
    """Participants and talks of one experiment. It changes through `apply` alone."""

    def __init__(self, order: Sequence[str], events: Iterable[Event] = ()) -> None:
        """`order`: the condition of each place."""
        self.order = tuple(order)
        self.people: dict[int, Participant] = {}
        self._by_key: dict[str, Participant] = {}
        super().__init__(events)

    def apply(self, event: Event) -> None:
        super().apply(event)
        kind = event["event"]
        if kind == "agree":
            place = event["place"]
            fields = {name: event[name] for name in ("key", "code", "completion", "at")}
            person = Participant(event["participant"], place=place, condition=self.order[place], **fields)
            self.people[person.number] = self._by_key[person.key] = person
        elif kind == "talk":
            names = ("scenario", "mode", "index", "people", "condition", "place", "at")
            meeting = ArmMeeting(number=event["talk"], **{name: event[name] for name in names})
            self.meetings[meeting.number] = meeting
            for number in meeting.people.values():
                self.people[number].talks.append(meeting.number)
        elif kind == "over":
            self.meetings[event["talk"]].over = event["why"]
        elif "participant" in event:
            self._change(self.people[event["participant"]], event)

    def _change(self, person: Participant, event: Event) -> None:
        kind = event["event"]
        if kind == "form":
            person.forms[event["part"], event["bank"]] = event["answers"]
        elif kind == "rating":
            person.ratings[event["talk"], event["turn"]] = event["answers"]
        elif kind == "rubric":
            person.judged[event["talk"]] = event["answers"]
        elif kind == "out":
            person.out = event["why"]
        elif kind == "unpaired":
            person.unpaired = True
        elif kind == "done":
            person.done = event["at"]

    # ---- questions -------------------------------------------------------------------------------------------------

    def person_of(self, key: str) -> Participant | None:
        """The participant whose browser has the secret with this hash."""
        return self._by_key.get(key) if key else None

    def next_place(self, away: Mapping[int, float]) -> tuple[int, Participant | None] | None:
        """The place of the next participant, and who loses it; None if all are taken.

        The first free place; if there is none, that of the participant who has been `away` for longest
        (number of a participant -> seconds, of those who may lose their place).
        """
        taken = {each.place: each for each in self.people.values() if each.holds}
        free = next((place for place in range(len(self.order)) if place not in taken), None)
        if free is not None:
            return free, None
        gone = [each for each in taken.values() if each.done is None and each.number in away]
        if not gone:
            return None
        lost = max(gone, key=lambda each: (away[each.number], -each.number))
        return lost.place, lost

    @property
    def complete(self) -> bool:
        """True if a participant has finished in every place."""
        finished = {each.place for each in list(self.people.values()) if each.status == "finished"}
        return len(finished) == len(self.order)

    def finished(self) -> Counter[str]:
        """How many have finished in each condition."""
        return Counter(each.condition for each in self.people.values() if each.status == "finished")

    def partners(self, person: Participant) -> list[Participant]:
        """The other participants of the newest talk of a participant."""
        if not person.talks:
            return []
        numbers = self.meetings[person.talks[-1]].people.values()
        return [self.people[number] for number in numbers if number != person.number]


# ---- places ----------------------------------------------------------------------------------------------------------
# There are as many places as the quotas sum up to, in an order that the seed alone decides. A participant gets the
# first place that is free. As many places as the quota have a condition, so that everybody who finishes fills exactly
# one of them, in whatever order people come and leave.


def ordered(quotas: Sequence[tuple[str, int, int]], seed: int) -> tuple[str, ...]:
    """Return the condition of each place. `quotas`: (condition, quota, participants in one talk).

    Permuted blocks: each block holds the conditions in the ratio of their quotas, in an order of its own. Participants
    who share a talk get places one after the other, so that they need not wait for long.
    """
    units = [(condition, quota // people, people) for condition, quota, people in quotas]
    blocks = gcd(*(count for _, count, _ in units))
    found: list[str] = []
    for block in range(blocks):
        unit = [(condition, people) for condition, count, people in units for _ in range(count // blocks)]
        random.Random(f"{seed}/{block}").shuffle(unit)
        found += [condition for condition, people in unit for _ in range(people)]
    return tuple(found)


def rank(order: Sequence[str], place: int) -> int:
    """Return the number of a place among those of its condition, from 0."""
    return sum(condition == order[place] for condition in order[:place])
