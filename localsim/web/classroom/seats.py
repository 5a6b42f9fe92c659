"""Who sits where: seats, talks and bets as values. Every change is an event; the same events give the same state."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from typing import Literal

from localsim.conversation.episode import Mode
from localsim.web.floor.state import Event, Meeting, State

MODES: tuple[Mode, ...] = ("agents", "mindreaders")
"""The modes that people can play, in the order of tables."""
Guess = Literal["agents", "mindreaders", "same"]
"""An answer to a question which mode has more or less of something; `same` for no difference."""
GUESSES: tuple[Guess, ...] = ("mindreaders", "agents", "same")
Question = Literal["turns", "hits"]
"""What the modes are compared by: which needs fewer turns, and which has more untold hits."""


@dataclass(frozen=True)
class Bet:
    """What a player believes after a talk; None for a question that was not answered."""

    turns: Guess | None = None
    """The mode that needs fewer turns."""
    hits: Guess | None = None
    """The mode in which the right answer is hit more often before the talk could tell it."""
    about: int | None = None
    """Number of a talk of others that the player has read."""
    saw: bool | None = None
    """True for "both sides of the talk that I read saw everything"."""


@dataclass
class Seat:
    """The place of one phone."""

    number: int
    key: str
    """Hash of the secret that its phone has; empty while the seat is free for another phone."""
    talk: int | None = None
    """Number of its newest talk."""
    bets: dict[int, Bet] = field(default_factory=dict)
    """Number of a talk -> the bet after it."""
    waiting: bool = True
    """True while it waits for a talk."""


class Register(State[Meeting]):
    """Seats, talks and bets of one class. It changes through `apply` alone."""

    def __init__(
        self,
        scenarios: Sequence[tuple[str, ...]],
        seed: int,
        events: Iterable[Event] = (),
        modes: Sequence[Mode] = MODES,
        open: frozenset[int] = frozenset(),
    ) -> None:
        """`scenarios`: the roles of each scenario; `open`: those with nothing that a talk gives away."""
        self.scenarios, self.seed, self.modes, self.open = scenarios, seed, modes, open
        self.seats: dict[int, Seat] = {}
        self.revealed = False
        super().__init__(events)

    def apply(self, event: Event) -> None:
        super().apply(event)
        kind = event["event"]
        if kind == "sit":
            seat = self.seats.setdefault(event["seat"], Seat(event["seat"], ""))
            seat.key = event["key"]
        elif kind == "free":
            self.seats[event["seat"]].key = ""
        elif kind == "again":
            self.seats[event["seat"]].waiting = True
        elif kind == "talk":
            meeting = Meeting(event["talk"], event["scenario"], event["mode"], event["index"], event["people"])
            self.meetings[meeting.number] = meeting
            for number in meeting.people.values():
                self.seats[number].talk, self.seats[number].waiting = meeting.number, False
        elif kind == "bet":
            bets, answers = self.seats[event["seat"]].bets, ("turns", "hits", "about", "saw")
            before = bets.get(event["talk"], Bet())
            bets[event["talk"]] = replace(before, **{name: event[name] for name in answers if name in event})
        elif kind in ("reveal", "end"):
            self.revealed = True

    # ---- questions -------------------------------------------------------------------------------------------------

    def seat_of(self, key: str) -> Seat | None:
        """The seat whose phone has this key."""
        # The limits of `guard` ask without the lock of the hall, while a phone may be joining: hence the copy.
        return next((seat for seat in list(self.seats.values()) if key and seat.key == key), None)

    def free_seat(self) -> Seat | None:
        """The first seat that was freed: the next phone gets it."""
        return next((seat for _, seat in sorted(self.seats.items()) if not seat.key), None)

    def role_of(self, seat: Seat) -> str:
        """The role of a seat in its newest talk. Raises KeyError without one."""
        return self.meetings[seat.talk or 0].role_of(seat.number)

    def known(self, number: int) -> set[int]:
        """The scenarios whose answer a seat knows, as it has played them or read a talk on them."""
        read = {bet.about for bet in self.seats[number].bets.values()}
        talks = [talk for talk in self.meetings.values() if number in talk.people.values() or talk.number in read]
        return {talk.scenario for talk in talks} - self.open

    def has_left(self, number: int) -> bool:
        """True if there is a scenario whose answer a seat does not know."""
        return len(self.known(number)) < len(self.scenarios)

    def is_apart(self, number: int, talk: int) -> bool:
        """True if a talk is none of the seat's own and not drawn beside one: a neighbour has another mode."""
        own = [each.number for each in self.meetings.values() if number in each.people.values()]
        return (talk - 1) // len(self.modes) not in {(each - 1) // len(self.modes) for each in own}

    def next_talk(self, waiting: Sequence[int], *, alone: bool = False) -> Event | None:
        """The event that puts the first seats that can into the next talk; None if too few wait.

        `alone`: the computer takes the other roles. They get the first scenario whose answer they do not know, in the
        mode with the fewest such talks: talks with the computer and others are balanced apart.
        """
        had = Counter((talk.scenario, talk.mode) for talk in self.meetings.values())
        alike = (talk for talk in self.meetings.values() if alone == self._has_computer(talk))
        of_mode = Counter(talk.mode for talk in alike)
        known = {number: self.known(number) for number in waiting}

        def place(each: tuple[int, Mode]) -> tuple[int, int, int]:
            block = _places(len(self.scenarios), tuple(self.modes), self.seed, had[each])
            return of_mode[each[1]], had[each], block[each]

        for scenario, mode in sorted(product(range(len(self.scenarios)), self.modes), key=place):
            size = 1 if alone else len(self.scenarios[scenario])
            able = [number for number in waiting if scenario not in known[number]]
            if len(able) >= size:
                return self._talk(able[:size], scenario, mode, had[scenario, mode])
            if able and len(waiting) < size:
                return None  # more phones may come
        return None

    def _has_computer(self, talk: Meeting) -> bool:
        return len(talk.people) < len(self.scenarios[talk.scenario])

    def _talk(self, seats: Sequence[int], scenario: int, mode: Mode, index: int) -> Event:
        number, roles = len(self.meetings) + 1, list(self.scenarios[scenario])
        random.Random(f"{self.seed}/{number}").shuffle(roles)
        people = dict(zip(roles, seats, strict=False))
        return {
            "event": "talk", "talk": number, "scenario": scenario, "mode": mode, "index": index, "people": people,
        }  # fmt: skip


@lru_cache(maxsize=64)
def _places(count: int, modes: tuple[Mode, ...], seed: int, block: int) -> dict[tuple[int, Mode], int]:
    """Scenario and mode of a talk -> their place in a block, which has each once, every mode before one comes again."""
    scenarios, drawn = list(range(count)), list[tuple[int, Mode]]()
    random.Random(f"{seed}/{block}").shuffle(scenarios)
    for shift in range(count):
        turn = list(enumerate(modes))
        random.Random(f"{seed}/{block}/{shift}").shuffle(turn)
        drawn += [(scenarios[(shift + offset) % count], mode) for offset, mode in turn]
    return {each: place for place, each in enumerate(drawn)}
