"""The hall: all talks of a class as one run, played at the same time, and all that phones and projector ask of it.

A seat, a talk or a bet is in the ledger, and a turn in the journal of the run, before the phone gets its answer. So a
killed server loses nothing that a phone has seen.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from localsim.conversation.episode import EpisodeSpec, Mode, Observation
from localsim.conversation.rules.lines import Way
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action, Turn
from localsim.conversation.transcript import Transcript as Spoken
from localsim.conversation.visibility import observe
from localsim.errors import InvalidInput
from localsim.store.database import Store
from localsim.store.episodes import transcript_of
from localsim.store.queries import annotation as annotation_queries
from localsim.store.queries import classes as queries
from localsim.store.queries.runs import finished_episodes
from localsim.store.records import episode_id_of
from localsim.web.classroom.beats import open_beat, start_of, ways_in
from localsim.web.classroom.ledger import Ledger, Opening
from localsim.web.classroom.playing import Playing, spec_of
from localsim.web.classroom.seats import Event, Register, Seat, Talk, restored
from localsim.web.guard import Allowance

MOST_SEATS = 200
HERE_S = 30.0
"""A phone that asked within this time counts as present."""
_SAID_S = 20.0
"""Longest wait until a turn is on the disk."""


@dataclass
class Live:
    """What is known of a talk while the server runs."""

    talk: Talk
    spec: EpisodeSpec
    episode_id: str
    turns: list[Turn] = field(default_factory=list)
    ended: bool = False
    completed: bool = False
    success: float | None = None
    problem: str = ""
    given: tuple[int, Action] | None = None
    """A turn of a person that is on its way to the disk."""


class Hall:
    """One class. Its methods can be called from many threads."""

    def __init__(
        self,
        store: Store,
        scenarios: Sequence[LoadedScenario],
        ledger: Ledger,
        opening: Opening,
        say: Callable[[str], None],
    ) -> None:
        self.store, self.scenarios, self.opening = store, tuple(scenarios), opening
        self.changed = threading.Condition()
        self.problem = ""
        self.wrong_codes = Allowance(40, seconds=60)
        self.new_seats = Allowance(60, seconds=600)
        """One phone that drops its cookies cannot take all seats; a class behind one address finds room."""
        self._ledger = ledger
        self.register: Register = restored(
            [loaded.scenario.names for loaded in scenarios], opening.seed, ledger.events[1:]
        )
        self.live: dict[int, Live] = {}
        self._seen: dict[int, float] = {}
        self._waits: dict[tuple[int, int | None], float] = {}
        """Seat and its talk before -> when it began to wait."""
        self.playing = Playing(self, say)
        for talk in self.register.talks.values():
            self._add(talk)
        self._recall()

    def _recall(self) -> None:
        """Read what the database knows of talks that have ended."""
        self.store.take_in_leftovers()
        run_id = self.opening.run_id
        if not queries.has_run(self.store, run_id):
            return
        finished = finished_episodes(self.store, run_id)
        rows = {row["episode_id"]: row for row in queries.talks_of_run(self.store, run_id)}
        turns = annotation_queries.turns_by_episode(self.store, run_id)
        for live in self.live.values():
            if live.episode_id not in finished:
                continue
            row = rows[live.episode_id]
            live.ended, live.completed = True, row["status"] == "completed"
            live.success, live.problem = row["success"], row["error"] or ""
            live.turns = list(transcript_of(turns.get(live.episode_id, [])).turns)

    def start(self) -> None:
        """Open the models and let the talks run. Raises what prevents it."""
        self.playing.start()

    def stop(self) -> None:
        """Stop without an end: the same command continues the class."""
        self.playing.stop()
        self._ledger.close()

    # ---- what the pages ask ----------------------------------------------------------------------------------------

    def join(self, key: str) -> Seat:
        """Give the phone with this key a seat: its own, one that was freed, or a new one."""
        with self.changed:
            seat = self.register.seat_of(key)
            if seat is None:
                self._refuse_if_over()
                free = self.register.free_seat()
                number = free.number if free else len(self.register.seats) + 1
                if number > MOST_SEATS:
                    raise InvalidInput(f"{MOST_SEATS} seats are taken", hint="ask the teacher to free one")
                self._record({"event": "sit", "seat": number, "key": key})
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
        return None if seat.talk is None else self.live[seat.talk]

    def seen_by(self, live: Live, role: str) -> Observation:
        """Everything that a role may know now; the page of a phone shows this and nothing else of the talk."""
        with self.changed:
            spoken = Spoken(tuple(live.turns))
        return observe(live.spec.scenario, live.talk.mode, role, spoken)

    def ways(self, live: Live, role: str) -> tuple[Way, ...]:
        """The ways in which a role can act now; () where it has to wait. Only under the lock."""
        beat = None if live.ended else open_beat(live.spec, live.turns)
        if beat is None or (live.talk.number, role, beat.start) in self.register.choices:
            return ()
        request = self.playing.players.asked(live.spec.hash)
        asked = request is not None and request.speaker == role
        return ways_in(live.spec, live.turns, beat, role) if asked or beat.together else ()

    def awaited(self, live: Live, role: str) -> list[str]:
        """The other roles that have not acted yet in the beat that is open, or all others. Only under the lock."""
        others = [name for name in live.spec.scenario.names if name != role]
        beat = None if live.ended else open_beat(live.spec, live.turns)
        if beat is None or len(others) < 2:
            return others
        chosen = {who for talk, who, start in self.register.choices if (talk, start) == (live.talk.number, beat.start)}
        return [name for name in beat.waiting if name != role and name not in chosen]

    def say(self, seat: Seat, place: int, action: Action) -> None:
        """Take a turn, and wait until it is on the disk; the same turn again changes nothing. Raises InvalidInput.

        `place` is the number of the first turn of the beat that the player answers.
        """
        live = self.live_of(seat)
        if live is None:
            raise InvalidInput("you have no talk yet", hint="wait for a partner")
        role = self.register.role_of(seat)
        with self.changed:
            if any((turn.speaker, turn.beat, turn.action) == (role, place, action) for turn in live.turns):
                return
            beat = None if live.ended else open_beat(live.spec, live.turns)
            if beat is not None and beat.together and beat.start == place and role in beat.waiting:
                self._choose(live, role, place, action)
                return
            if self.playing.players.give(live.spec.hash, role, place, action):
                live.given = (place, action)
            elif live.given != (place, action):
                raise _not_now(action)
            self.changed.wait_for(lambda: len(live.turns) > place or live.ended, _SAID_S)
            if len(live.turns) <= place:
                raise InvalidInput("your words could not be stored", hint="go back and send them again")
            if action.type == "leave":  # the next page is the bet, which needs the end of the talk
                self.changed.wait_for(lambda: live.ended, _SAID_S)

    def _choose(self, live: Live, role: str, place: int, action: Action) -> None:
        """Keep a choice in a beat in which several act at the same time; the first one counts."""
        kept = self.register.choices.get((live.talk.number, role, place))
        if kept is None:
            values = None if action.values is None else list(action.values)
            chosen = {"type": action.type, "text": action.text, "values": values}
            self._record({"event": "choice", "talk": live.talk.number, "role": role, "beat": place, **chosen})
            self.hand_in()
        elif kept.action != action:
            raise _not_now(action)

    def hand_in(self) -> None:
        """Give the run the choices that it asks for now. Only under the lock."""
        for live in self.live.values():
            request = None if live.ended else self.playing.players.asked(live.spec.hash)
            if request is None:
                continue
            kept = self.register.choices.get((live.talk.number, request.speaker, start_of(live.turns)))
            if kept is not None:
                self.playing.players.give(live.spec.hash, request.speaker, request.turn, kept.action)

    def with_computer(self, seat: Seat) -> None:
        """Give a seat that waits a talk with the computer."""
        with self.changed:
            if seat.waiting and not self.register.revealed:
                self._begin([seat.number])

    def again(self, seat: Seat) -> None:
        """Let a seat whose talk has ended wait for another one."""
        with self.changed:
            self._refuse_if_over()
            live = self.live_of(seat)
            if live is not None and live.ended and not seat.waiting:
                self._record({"event": "again", "seat": seat.number})
                self._match()

    def bet_best(self, seat: Seat, best: Mode) -> None:
        """Keep the bet of a seat on the better mode; a second one replaces it. Raises InvalidInput."""
        with self.changed:
            live = self._bets_after(seat)
            self._record({"event": "bet", "seat": seat.number, "talk": live.talk.number, "best": best})
            self.playing.keep_best(seat, live, best)

    def bet_saw(self, seat: Seat, about: int, saw: bool) -> None:
        """Keep the bet of a seat on what the players of another talk saw. Raises InvalidInput."""
        with self.changed:
            live = self._bets_after(seat)
            read = self.live.get(about)
            if read is None or not read.completed or seat.number in read.talk.people.values():
                raise InvalidInput("this is no talk of others that has ended", hint="load the page again")
            self._record({
                "event": "bet", "seat": seat.number, "talk": live.talk.number, "about": about, "saw": saw,
            })  # fmt: skip
            self.playing.keep_saw(seat, read, saw)

    def to_read(self, seat: Seat) -> Live | None:
        """The talk of others on which a seat bets next; None as long as there is none.

        A player knows what their own talk let them see, so they bet on a talk of others: on one of the same scenario,
        as its answer tells them nothing new, and on the one that the fewest have read.
        """
        with self.changed:
            every = [bet.about for each in self.register.seats.values() for bet in each.bets.values()]
            read, own = Counter(every), {bet.about for bet in seat.bets.values()}
            others = [
                live
                for live in self.live.values()
                if live.completed and len(live.turns) > 1 and live.talk.number not in own
                and seat.number not in live.talk.people.values()
            ]  # fmt: skip
            scenario = self.register.talks[seat.talk or 0].scenario
            return min(
                others,
                key=lambda live: (live.talk.scenario != scenario, read[live.talk.number], live.talk.number),
                default=None,
            )

    # ---- what the teacher does -------------------------------------------------------------------------------------

    def free(self, number: int) -> None:
        """Free a seat: the next phone that joins gets it, with its talk."""
        with self.changed:
            if number in self.register.seats and self.register.seats[number].key and not self.register.ended:
                self._record({"event": "free", "seat": number})

    def reveal(self) -> None:
        """Close the bets and show the modes."""
        with self.changed:
            if not self.register.revealed:
                self._record({"event": "reveal"})

    def end(self) -> None:
        """End the class: talks that go on are broken off, the run is finished and searched for leaks."""
        with self.changed:
            if self.register.ended:
                return
            self._record({"event": "end"})
        self.playing.stop(wait=False)

    def close(self) -> None:
        """Note that the run of the ended class is complete, so that the next command begins another class."""
        with self.changed:
            self._record({"event": "closed"})

    # ---- helpers ---------------------------------------------------------------------------------------------------

    def _bets_after(self, seat: Seat) -> Live:
        """The newest talk of a seat that may bet. Raises InvalidInput."""
        live = self.live_of(seat)
        if self.register.revealed:
            raise InvalidInput("bets are closed: the reveal was shown", hint="look at the results")
        if live is None or not live.ended:
            raise InvalidInput("you can bet after your talk", hint="finish your talk first")
        return live

    def _refuse_if_over(self) -> None:
        if self.register.ended:
            raise InvalidInput("the class has ended", hint="ask the teacher to start a new one")
        if self.register.revealed:
            raise InvalidInput("the reveal was shown, so no new talk begins", hint="look at the projector")

    def _record(self, event: Event) -> None:
        self._ledger.append(event)
        self.register.apply(event)
        self.changed.notify_all()

    def _match(self) -> None:
        """Bring waiting seats together whose phones are present."""
        if self.register.revealed:
            return
        here = [
            seat.number
            for _, seat in sorted(self.register.seats.items())
            if seat.waiting and seat.key and (away := self.away(seat)) is not None and away < HERE_S
        ]
        while here and len(here) >= (size := 1 if self.opening.alone else self.register.next_size()):
            self._begin(here[:size])
            here = here[size:]

    def _begin(self, numbers: Sequence[int]) -> None:
        event = self.register.next_talk(numbers)
        self._record(event)
        live = self._add(self.register.talks[event["talk"]])
        self.playing.play(live)

    def _add(self, talk: Talk) -> Live:
        spec = spec_of(self.scenarios[talk.scenario].scenario, talk, self.opening)
        live = Live(talk, spec, episode_id_of(self.opening.run_id, spec))
        self.live[talk.number] = live
        return live


def _not_now(action: Action) -> InvalidInput:
    said = action.text or action.type
    return InvalidInput(f"it is not your turn, so this was not said: {said}", hint="go back, and wait for your turn")
