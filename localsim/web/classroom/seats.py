"""Who sits where: seats, talks and bets as values. Every change is an event; the same events give the same state."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from localsim.conversation.episode import Mode
from localsim.web.floor.state import Event, Meeting, State

MODES: tuple[Mode, ...] = ("agents", "mindreaders")
"""The modes that people can play, in the order of tables."""
Guess = Literal["agents", "mindreaders", "same"]
"""An answer to a question which mode has more or less of something; `same` for no difference."""
GUESSES: tuple[Guess, ...] = ("mindreaders", "agents", "same")
Question = Literal["turns", "hits"]
"""What the modes are compared by: which needs fewer turns, and which has more early hits."""


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
    ) -> None:
        """`scenarios`: the roles of each scenario."""
        self.scenarios, self.seed, self.modes = scenarios, seed, modes
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

    def next_size(self) -> int:
        """The number of roles of the next talk."""
        return len(self.scenarios[self._condition(len(self.meetings) + 1)[0]])

    def _condition(self, number: int) -> tuple[int, Mode]:
        """The scenario and mode of a talk, drawn so that every mode comes before one comes again.

        Each block of talks has every scenario in every mode once.
        """
        turn, place = divmod(number - 1, len(self.modes))
        block, shift = divmod(turn, len(self.scenarios))
        scenarios, modes = list(range(len(self.scenarios))), list(enumerate(self.modes))
        random.Random(f"{self.seed}/{block}").shuffle(scenarios)
        random.Random(f"{self.seed}/{block}/{shift}").shuffle(modes)
        offset, mode = modes[place]
        return scenarios[(shift + offset) % len(scenarios)], mode

    def next_talk(self, seats: Sequence[int]) -> Event:
        """The event that puts seats into the next talk."""
        number = len(self.meetings) + 1
        scenario, mode = self._condition(number)
        index = sum((meeting.scenario, meeting.mode) == (scenario, mode) for meeting in self.meetings.values())
        roles = list(self.scenarios[scenario])
        random.Random(f"{self.seed}/{number}").shuffle(roles)
        people = dict(zip(roles, seats, strict=False))
        return {
            "event": "talk", "talk": number, "scenario": scenario, "mode": mode, "index": index, "people": people,
        }  # fmt: skip
