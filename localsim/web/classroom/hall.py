"""The hall: all talks of a class as one run, played at the same time, and all that phones and projector ask of it.

A seat, a talk or a bet is in the ledger, and a turn in the journal of the run, before the phone gets its answer. So a
killed server loses nothing that a phone has seen.
"""

from __future__ import annotations

import random
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from localsim.backends.base import Backend
from localsim.backends.open import open_backends
from localsim.backends.person import NAME
from localsim.backends.scripted import PREFIX as FALLBACK
from localsim.conversation.episode import EpisodeSpec, Mode
from localsim.conversation.scenario import LoadedScenario, Scenario
from localsim.runs.plan import Plan
from localsim.store.database import Store
from localsim.store.records import AnswerRow
from localsim.web.classroom.replaying import PREFIX, EarlierClass, decisions_of, is_earlier, told
from localsim.web.classroom.seats import MODES, Guess, Register, Seat
from localsim.web.classroom.telltale import Telltale, scripted_in
from localsim.web.floor.floor import Floor, Terms
from localsim.web.floor.ledger import Doors, Ledger
from localsim.web.floor.state import Event, Live, Meeting
from localsim.web.guard import Allowance
from localsim.web.phrases.table import Refused

TASK = "bet"
"""The task of annotations that are bets."""
HERE_S = 30.0
"""A phone that asked within this time counts as present."""


class Hall(Floor):
    """One class. Its methods can be called from many threads."""

    def __init__(
        self,
        store: Store,
        scenarios: Sequence[LoadedScenario],
        ledger: Ledger,
        opening: ClassOpening,
        say: Callable[[str], None],
    ) -> None:
        self.opening = opening
        self.by_form = False
        """True if the teacher began it on the form, and so does not know the options of the command."""
        roles = [loaded.scenario.names for loaded in scenarios]
        open_ = frozenset(place for place, loaded in enumerate(scenarios) if not _hides(loaded.scenario))
        self.register: Register = Register(roles, opening.seed, ledger.events[1:], opening.modes, open_)
        super().__init__(store, opening.run_id, terms_of(scenarios, opening), self.register, ledger, say)
        self.wrong_codes = Allowance(40, seconds=60)
        self.new_seats = Allowance(60, seconds=600)
        """One phone that drops its cookies cannot take all seats; a class behind one address finds room."""
        self._seen: dict[int, float] = {}
        self._waits: dict[tuple[int, int | None], float] = {}
        """Seat and its talk before -> when it began to wait."""
        self.recall()

    # ---- what the pages ask ----------------------------------------------------------------------------------------

    def join(self, key: str) -> Seat:
        """Give the phone with this key a seat: its own, one that was freed, or a new one."""
        with self.changed:
            seat = self.register.seat_of(key)
            if seat is None:
                self._refuse_if_over()
                free = self.register.free_seat()
                number = free.number if free else len(self.register.seats) + 1
                if number > self.opening.seats:
                    raise Refused("full", seats=self.opening.seats)
                self._record("sit", seat=number, key=key)
                seat = self.register.seats[number]
            self._seen[seat.number] = time.monotonic()
            self._match()
            return seat

    def seat_with(self, key: str) -> Seat | None:
        """The seat of a phone, which counts as present from now on."""
        with self.changed:
            seat = self.register.seat_of(key)
            if seat is not None:
                self._seen[seat.number] = time.monotonic()
                if seat.waiting:
                    self._match()
            return seat

    def away(self, seat: Seat) -> float | None:
        """Seconds since the phone of a seat last asked; None if it has not since the server started."""
        seen = self._seen.get(seat.number)
        return None if seen is None else time.monotonic() - seen

    def waited(self, seat: Seat) -> float:
        """Seconds that a seat has waited for its talk, as far as this server knows."""
        with self.changed:
            return time.monotonic() - self._waits.setdefault((seat.number, seat.talk), time.monotonic())

    def live_of(self, seat: Seat) -> Live | None:
        """The newest talk of a seat."""
        with self.changed:  # a seat has its talk an instant before the talk is in `live`
            return None if seat.talk is None else self.live[seat.talk]

    def with_computer(self, seat: Seat) -> None:
        """Give a seat that waits a talk with the computer."""
        with self.changed:
            if seat.waiting and not self.register.revealed:
                self._begin([seat.number], alone=True)

    def again(self, seat: Seat) -> None:
        """Let a seat whose talk has ended wait for another one."""
        with self.changed:
            self._refuse_if_over()
            live = self.live_of(seat)
            if live is not None and live.ended and not seat.waiting and self.register.has_left(seat.number):
                self._record("again", seat=seat.number)
                self._match()

    def bet_modes(self, seat: Seat, **guesses: Guess) -> None:
        """Keep the bets of a seat on each `Question`; later ones replace them. Raises Refused."""
        with self.changed:
            live = self._bets_after(seat)
            self._record("bet", seat=seat.number, talk=live.meeting.number, **guesses)

    def bet_saw(self, seat: Seat, about: int, saw: bool) -> None:
        """Keep the bet of a seat on what the players of another talk saw. Raises Refused."""
        with self.changed:
            live = self._bets_after(seat)
            if about not in self._to_bet_on(seat):
                raise Refused("not_to_read")
            self._record("bet", seat=seat.number, talk=live.meeting.number, about=about, saw=saw)

    def to_read(self, seat: Seat) -> Live | None:
        """The talk of others on which a seat bets next; None as long as there is none.

        A player knows what their own talk let them see, so they bet on a talk of others: on one of the same scenario,
        as its answer tells them nothing new, and on the one that the fewest have read; on one with the computer only
        if no other is left.
        """
        with self.changed:
            every = [bet.about for each in self.register.seats.values() for bet in each.bets.values()]
            read, own = Counter(every), {bet.about for bet in seat.bets.values()}
            scenario = self.register.meetings[seat.talk or 0].scenario

            def place(live: Live) -> tuple[bool, bool, int, int]:
                number = live.meeting.number
                return bool(live.computers), live.meeting.scenario != scenario, read[number], number

            others = (live for number, live in self._to_bet_on(seat).items() if number not in own)
            return min((live for live in others if len(live.turns) > 1), key=place, default=None)

    def why_none(self, seat: Seat) -> str:
        """Why a seat has nothing to bet on although talks are over: `seen`, `beside`, or '' if none of others is.

        Only under the lock.
        """
        read = {bet.about for bet in seat.bets.values()}
        over = [
            n for n, live in self.live.items() if live.completed and seat.number not in live.meeting.people.values()
        ]
        return "seen" if read.intersection(over) else "beside" if over else ""

    def is_one_to_come(self, seat: Seat) -> bool:
        """True if a talk of others goes on, on which a seat can bet when it has ended. Only under the lock."""
        return any(not live.ended and self.register.is_apart(seat.number, n) for n, live in self.live.items())

    def _to_bet_on(self, seat: Seat) -> dict[int, Live]:
        """The talks of others that are judged. The one that was drawn beside an own one has the other mode: it is not
        among them.
        """
        return {
            number: live
            for number, live in self.live.items()
            if live.completed and not live.foreign and self.register.is_apart(seat.number, number)
        }

    @cached_property
    def scripted(self) -> Telltale | None:
        """What the reveal shows where no talk of the class has a line that nobody could know."""
        return scripted_in(self.scenarios, self.opening.seed)

    # ---- what the teacher does -------------------------------------------------------------------------------------

    def free(self, number: int) -> None:
        """Free a seat: the next phone that joins gets it, with its talk."""
        with self.changed:
            if number in self.register.seats and self.register.seats[number].key and not self.register.ended:
                self._record("free", seat=number)

    def reveal(self) -> None:
        """Close the bets and show the modes."""
        with self.changed:
            if not self.register.revealed:
                self._record("reveal")

    def end(self) -> None:
        """End the class: talks that go on are broken off, the run is finished and searched for leaks."""
        with self.changed:
            if self.register.ended:
                return
            self._record("end")
        self.leave(wait=False)

    # ---- helpers ---------------------------------------------------------------------------------------------------

    def _bets_after(self, seat: Seat) -> Live:
        """The newest talk of a seat that may bet. Raises Refused."""
        live = self.live_of(seat)
        if self.register.revealed:
            raise Refused("bets_closed")
        if live is None or not live.ended:
            raise Refused("bet_later")
        return live

    def _refuse_if_over(self) -> None:
        if self.register.ended:
            raise Refused("class_over")
        if self.register.revealed:
            raise Refused("revealed")

    def _match(self) -> None:
        """Bring waiting seats together whose phones are present."""
        if self.register.revealed:
            return
        here = [
            seat.number
            for _, seat in sorted(self.register.seats.items())
            if seat.waiting and seat.key and (away := self.away(seat)) is not None and away < HERE_S
        ]
        while self._begin(here, alone=self.opening.alone):
            here = [number for number in here if self.register.seats[number].waiting]

    def _begin(self, waiting: Sequence[int], *, alone: bool) -> bool:
        """Put waiting seats into a talk; False if none can begin."""
        event = self.register.next_talk(waiting, alone=alone)
        if event is not None:
            self._record(**event)
        return event is not None

    # ---- the run ---------------------------------------------------------------------------------------------------

    def spec_of(self, meeting: Meeting) -> EpisodeSpec:
        return spec_of(self.scenarios[meeting.scenario].scenario, meeting, self.opening)

    def answers_in(self, event: Event) -> Iterator[AnswerRow]:
        """Yield the row of a bet: on the modes beside the player's own talk, else beside the talk they read."""
        if event["event"] == "bet":
            value: dict[str, Any] = {name: event[name] for name in ("turns", "hits", "saw") if name in event}
            talk: int = event["about"] if "about" in event else event["talk"]
            episode = self.live[talk].episode_id
            rater = f"seat_{event['seat']:02d}"
            yield self.answer_row(TASK, episode, rater, value, {"1": episode})

    @contextmanager
    def _opened(self) -> Iterator[dict[str, Backend]]:
        """Open the player that takes the seats without a person."""
        name = self.opening.computer
        if not is_earlier(name):
            with super()._opened() as backends:
                yield backends
            return
        run_id = name.removeprefix(PREFIX)
        decisions = decisions_of(self.store, run_id)
        with open_backends([FALLBACK], self._needs(), self._say) as backends:
            fallback = backends[FALLBACK]
            yield {name: EarlierClass(run_id, decisions, self.scenarios, fallback, self._by_spec.__getitem__)}

    def _is_quick(self, model: str) -> bool:
        return is_earlier(model) or super()._is_quick(model)

    def _search(self) -> None:
        if is_earlier(self.opening.computer):
            self._say(told(self.store, self.run_id))
        super()._search()


# ---- how it begins ---------------------------------------------------------------------------------------------------

MOST_SEATS = 200
_SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in "aeiou"]


@dataclass(frozen=True)
class ClassOpening(Doors):
    """What is decided when a class begins."""

    scenarios: tuple[str, ...]
    """Hashes of the scenarios."""
    computer: str
    """The model or scripted player that takes a seat where no person does."""
    alone: bool
    """True if every phone plays with the computer."""
    seed: int
    teacher: str
    """The token of the projector page and its buttons."""
    code: str
    """The join code: four syllables, such as BAKO-TILU."""
    modes: tuple[Mode, ...] = MODES
    """What the players see; ledgers of the time before do not name it, nor what follows."""
    language: str = "en"
    """The language of phones and projector, by the name that `phrases.table.find` knows."""
    seats: int = MOST_SEATS
    """The most phones that can join."""
    at: float = 0.0
    """When the class began, in seconds since 1970."""

    def continues(self, other: ClassOpening) -> bool:
        """Return True if a class that would begin as `other` continues this one; a laptop may get a new address."""
        return self._played == other._played

    @property
    def _played(self) -> tuple[object, ...]:
        return self.scenarios, self.computer, self.alone, self.modes


@dataclass(frozen=True)
class Wish:
    """What the command line or the form asks for."""

    scenarios: Sequence[LoadedScenario]
    computer: str
    """The model or scripted player for seats without a person."""
    alone: bool
    """True if every phone plays with the computer."""
    host: str
    port: int | None
    fresh: bool
    """True for a new class, even if one that could go on is in the ledger."""
    against: str | None
    """The run of an earlier class, whose results are shown beside those of this one."""
    replay: bool = False
    """True if every phone plays with the decisions of the earlier class."""
    modes: tuple[Mode, ...] = MODES
    """What the players see."""
    language: str = "en"
    """The name of a language, or a file of phrases."""
    seats: int = MOST_SEATS
    """The most phones that can join."""
    by_form: bool = False
    """True if the teacher wishes it on the form."""


@dataclass(frozen=True)
class Unended:
    """A class that has not ended, as its ledger tells."""

    wish: Wish
    """Goes on with it."""
    code: str
    seats: int
    """How many phones have joined."""


@dataclass(frozen=True)
class Form:
    """The form on which a class is chosen."""

    host: str
    """The address that it offers first."""
    language: str
    """The language that it offers first."""
    begin: Callable[[Wish], str]
    """Begins the class, and returns the address of its projector page."""
    last: Unended | None = None
    """The class that it offers to go on with."""


def join_code() -> str:
    """A code that can be read aloud; one of 24 million."""
    rng = random.SystemRandom()
    return "-".join("".join(rng.choice(_SYLLABLES) for _ in range(2)) for _ in range(2)).upper()


def new_tokens() -> dict[str, str]:
    """The tokens and the code of a new class."""
    return {"access": secrets.token_urlsafe(9), "teacher": secrets.token_urlsafe(12), "code": join_code()}


def _hides(scenario: Scenario) -> bool:
    """Return True if somebody knows what a talk on the scenario would give away to who plays it next."""
    return any(agent.facts or agent.secret for agent in scenario.agents)


def spec_of(scenario: Scenario, meeting: Meeting, opening: ClassOpening) -> EpisodeSpec:
    """The episode of a meeting."""
    return meeting.spec(scenario, opening.computer, opening.seed, opening.edition)


def terms_of(scenarios: Sequence[LoadedScenario], opening: ClassOpening) -> Terms:
    """What a class plays."""
    names = (name for loaded in scenarios for name in loaded.scenario.names)
    plan = Plan(
        tuple(scenarios), opening.modes, model=opening.computer, roles=dict.fromkeys(names, NAME), seed=opening.seed,
        edition=opening.edition,
    )  # fmt: skip
    specs = [
        spec_of(loaded.scenario, Meeting(0, place, mode, 0, {}), opening)
        for place, loaded in enumerate(scenarios)
        for mode in opening.modes
    ]
    return Terms("class", plan, [opening.computer], specs)
