"""The lab: an experiment while it is served, and all that the pages of participants ask of it.

Consent, answers, ratings and ends are in the ledger, and turns in the journal of the run, before a page gets its
answer. So a killed server loses nothing that a participant has done.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from localsim.conversation.transcript import Action, Turn
from localsim.errors import InvalidInput
from localsim.families.interviews.items import Bank
from localsim.scenarios.experiments.read import Study
from localsim.store.database import Store
from localsim.store.records import episode_id_of
from localsim.web.classroom.floor import Floor, Live
from localsim.web.classroom.ledger import Doors, Ledger
from localsim.web.classroom.seats import Event, Talk
from localsim.web.guard import Allowance
from localsim.web.people.experiment.forms import answers_from
from localsim.web.people.experiment.places import ordered, rank
from localsim.web.people.experiment.roster import ArmTalk, Part, Participant, Roster
from localsim.web.people.experiment.rubric import Question, questions_of, ratings_from
from localsim.web.people.experiment.sitting import Sitting, partner_of, spec_of

Step = Literal["consent", "full", "complete", "before", "wait", "talk", "rate", "rubric", "after", "debrief", "gone"]
HERE_S = 40.0
"""A participant whose page asked within this time is there, and can be paired."""
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Letters and digits that are not mistaken for each other."""
LEFT = "a participant left the talk"


@dataclass(frozen=True)
class Opening(Doors):
    """What is decided when an experiment begins."""

    study: str
    """Hash of the experiment with all that it names."""
    model: str
    """The partner that the command line names."""


class Lab(Floor):
    """One experiment. Its methods can be called from many threads."""

    def __init__(
        self, store: Store, study: Study, ledger: Ledger, opening: Opening, say: Callable[[str], None]
    ) -> None:
        super().__init__(store, study.scenarios, ledger, opening.run_id)
        self.study, self.opening = study, opening
        self.newcomers = Allowance(100, seconds=600)
        """One browser that drops its cookies cannot take all places."""
        quotas = [(arm.condition.id, arm.condition.quota, arm.people) for arm in study.arms]
        self.register: Roster = Roster(ordered(quotas, study.experiment.seed), ledger.events[1:])
        self._begun = time.monotonic()
        self._seen: dict[int, float] = {}
        self._waits: dict[tuple[int, int], float] = {}
        """Participant and number of talks -> when this server saw them wait."""
        self.playing: Sitting = Sitting(self, say)
        self.recall()

    def stop(self) -> None:
        """Stop; if every place is filled, that is the end of the run, else the same command goes on."""
        with self.changed:
            if self.register.complete and not self.register.ended:
                self._record({"event": "end"})
        super().stop()

    # ---- where a participant is ------------------------------------------------------------------------------------

    def person_with(self, key: str) -> Participant | None:
        """The participant with a key, who counts as present from now on and goes on as far as possible."""
        with self.changed:
            person = self.register.person_of(key)
            if person is not None:
                self._seen[person.number] = time.monotonic()
                self._advance(person)
            return person

    def step(self, person: Participant | None) -> Step:
        """What a participant does now. Only under the lock."""
        if person is None:
            if self.register.complete:
                return "complete"
            return "consent" if self.register.next_place(self._away()) else "full"
        if person.out:
            return "gone"
        if self.next_form(person, "before"):
            return "before"
        live = self.live_of(person)
        if live is not None and self.to_rate(person, live) is not None:
            return "rate"
        if live is not None and not live.ended:
            return "talk"
        if live is not None and self.to_judge(person, live):
            return "rubric"
        if not person.unpaired and len(person.talks) < self.study.experiment.limits.talks:
            return "wait"
        return "after" if self.next_form(person, "after") else "debrief"

    def next_form(self, person: Participant, part: Part) -> Bank | None:
        """The bank that a participant answers next in a part; None after the last one."""
        banks = self.study.before if part == "before" else self.study.after
        return next((bank for bank in banks if (part, bank.id) not in person.forms), None)

    def live_of(self, person: Participant) -> Live | None:
        """The newest talk of a participant."""
        return self.live[person.talks[-1]] if person.talks else None

    def role_of(self, person: Participant, live: Live) -> str:
        """The role of a participant in a talk."""
        return next(role for role, number in live.talk.people.items() if number == person.number)

    def to_rate(self, person: Participant, live: Live) -> Turn | None:
        """The first message of the other side that a participant has read and not rated; None without one."""
        if self.study.ratings is None:
            return None
        role = self.role_of(person, live)
        seen = self.seen_by(live, role).transcript.turns
        others = (turn for turn in seen if turn.said and turn.speaker != role)
        return next((turn for turn in others if (live.talk.number, turn.index) not in person.ratings), None)

    def to_judge(self, person: Participant, live: Live) -> list[Question]:
        """What a participant answers about a talk that has come to its end; nothing if it broke off, as for judges."""
        wanted, rubric = self.study.experiment.rated, self.study.rubric
        if wanted is None or rubric is None or not live.completed or live.talk.number in person.judged:
            return []
        return questions_of(rubric, live.spec.scenario.names, self.role_of(person, live), wanted.about)

    def may_go_on(self, person: Participant) -> bool:
        """True if a participant has waited so long for another one that they may go on without a talk."""
        with self.changed:
            since = self._waits.setdefault((person.number, len(person.talks)), time.monotonic())
        return time.monotonic() - since > 60 * self.study.experiment.limits.wait

    def seconds_left(self, live: Live) -> float | None:
        """Seconds until the time of a talk is over; None without such a limit."""
        minutes = self.study.experiment.limits.minutes
        return None if minutes is None else self.register.talks[live.talk.number].at + 60 * minutes - time.time()

    # ---- what participants do --------------------------------------------------------------------------------------

    def agree(self, key: str) -> Participant:
        """Give a place to a person who agrees; the same person again keeps theirs. Raises InvalidInput."""
        with self.changed:
            person = self.register.person_of(key)
            if person is None:
                found = self.register.next_place(self._away())
                if found is None or self.register.complete:
                    raise InvalidInput("all places are taken now", hint="thank you; try again later")
                place, lost = found
                if lost is not None:
                    self._leave(lost, "away")
                number = len(self.register.people) + 1
                self._record({
                    "event": "agree", "participant": number, "key": key, "code": f"p{secrets.token_hex(5)}",
                    "completion": "".join(random.SystemRandom().choices(_LETTERS, k=8)), "place": place,
                    "at": round(time.time(), 1),
                })  # fmt: skip
                person = self.register.people[number]
                self.playing.keep_person(person)
            self._seen[person.number] = time.monotonic()
            self._advance(person)
            return person

    def answer(self, person: Participant, part: Part, bank_id: str, sent: Mapping[str, str]) -> None:
        """Keep the answers to a form; the first ones count. Raises InvalidInput."""
        with self.changed:
            if (part, bank_id) in person.forms:
                return
            bank = self.next_form(person, part)
            if self.step(person) != part or bank is None or bank.id != bank_id:
                raise InvalidInput("this form is not the next one", hint="load the page again")
            answers, at = answers_from(bank, sent), round(time.time(), 1)
            self._record({
                "event": "form", "participant": person.number, "part": part, "bank": bank.id, "answers": answers,
                "at": at,
            })  # fmt: skip
            self.playing.keep_answers(person, part, bank.id, answers, at)
            self._advance(person)

    def rate(self, person: Participant, turn: int, sent: Mapping[str, str] | None) -> None:
        """Keep the ratings of a message, or that it was skipped (None); the first ones count. Raises InvalidInput."""
        with self.changed:
            live, wanted, bank = self.live_of(person), self.study.experiment.ratings, self.study.ratings
            if live is None or wanted is None or bank is None:
                raise InvalidInput("nothing is rated here", hint="load the page again")
            if (live.talk.number, turn) in person.ratings:
                return
            due = self.to_rate(person, live)
            if due is None or due.index != turn:
                raise InvalidInput("this message cannot be rated now", hint="load the page again")
            if sent is None and wanted.required:
                raise InvalidInput("this message has to be rated", hint="go back and choose an answer")
            answers: Mapping[str, Any] = {} if sent is None else answers_from(bank, sent)
            at, talk = round(time.time(), 1), live.talk.number
            self._record({
                "event": "rating", "participant": person.number, "talk": talk, "turn": turn, "answers": answers,
                "at": at,
            })  # fmt: skip
            self.playing.keep_ratings(person, talk, turn, answers, at)
            self._advance(person)

    def judge(self, person: Participant, talk: int, sent: Mapping[str, str]) -> None:
        """Keep the answers to the rubric about a talk; the first ones count. Raises InvalidInput."""
        with self.changed:
            if talk in person.judged:
                return
            live = self.live_of(person)
            if live is None or live.talk.number != talk or self.step(person) != "rubric":
                raise InvalidInput("this talk cannot be rated now", hint="load the page again")
            answers, at = ratings_from(self.to_judge(person, live), sent), round(time.time(), 1)
            self._record({
                "event": "rubric", "participant": person.number, "talk": talk, "answers": answers, "at": at,
            })  # fmt: skip
            self.playing.keep_judged(person, talk, answers, at)
            self._advance(person)

    def say(self, person: Participant, place: int, action: Action) -> None:
        """Take a turn of a participant, as `Floor.take` does. Raises InvalidInput."""
        with self.changed:
            live = self.live_of(person)
            if live is None or person.out:
                raise InvalidInput("you have no talk", hint="load the page again")
            if self.step(person) == "rate":
                raise InvalidInput("rate the last message first", hint="load the page again")
        self.take(live, self.role_of(person, live), place, action)

    def withdraw(self, person: Participant) -> None:
        """Let a participant stop for good; the place is free at once."""
        with self.changed:
            if person.status == "taking part":
                self._leave(person, "withdrawn")

    def go_on_alone(self, person: Participant) -> None:
        """Let a participant to whom no partner came go on without a talk; the place is free at once."""
        with self.changed:
            if self.step(person) == "wait" and self.may_go_on(person):
                self._record({"event": "unpaired", "participant": person.number})
                self.playing.keep_person(person)
                self._advance(person)

    def call_off(self, talk: int, why: str) -> None:
        """Have a talk end for a reason that is stored with it. Only under the lock."""
        if not self.register.talks[talk].over and not self.live[talk].ended:
            self._record({"event": "over", "talk": talk, "why": why})

    # ---- helpers ---------------------------------------------------------------------------------------------------

    def _away(self) -> dict[int, float]:
        """Participants whose place may be given to another person, with the seconds since their last sign of life."""
        now, most = time.monotonic(), 60 * self.study.experiment.limits.away
        silent = {number: now - self._seen.get(number, self._begun) for number in self.register.people}
        return {number: seconds for number, seconds in silent.items() if seconds > most}

    def _leave(self, person: Participant, why: Literal["withdrawn", "away"]) -> None:
        live, partners = self.live_of(person), self.register.partners(person)
        self._record({"event": "out", "participant": person.number, "why": why})
        self.playing.keep_person(person)
        if live is None or live.ended:
            return
        self.call_off(live.talk.number, LEFT)
        for partner in partners:
            if partner.holds:
                self._record({"event": "unpaired", "participant": partner.number})
                self.playing.keep_person(partner)

    def _advance(self, person: Participant) -> None:
        """Let a participant go on as far as no answer is needed: into a talk, or to the end."""
        step = self.step(person)
        if step == "wait":
            self._pair(person.condition)
        elif step == "debrief" and person.done is None:
            self._record({"event": "done", "participant": person.number, "at": round(time.time(), 1)})
            self.playing.keep_person(person)

    def _pair(self, condition: str) -> None:
        """Begin talks for those who wait in a condition."""
        size = self.study.arm(condition).people
        now = time.monotonic()
        waiting = [
            person
            for person in self.register.people.values()
            if person.condition == condition and now - self._seen.get(person.number, 0) < HERE_S
            and self.step(person) == "wait"
        ]  # fmt: skip
        while len(waiting) >= size:
            self._begin(waiting[:size])
            waiting = waiting[size:]

    def _begin(self, people: Sequence[Participant]) -> None:
        arm = self.study.arm(people[0].condition)
        place = self._scenario(people, len(arm.scenarios))
        names = arm.scenarios[place].scenario.names
        roles = [arm.seats[place], *(name for name in names if name != arm.seats[place])]
        talk: Event = {
            "event": "talk", "talk": len(self.register.talks) + 1, "condition": arm.condition.id, "place": place,
            "scenario": self.study.scenarios.index(arm.scenarios[place]), "mode": arm.condition.mode,
            "people": dict(zip(roles, (person.number for person in people), strict=False)), "at": round(time.time(), 1),
        }  # fmt: skip
        self._record({**talk, "index": self._index(arm.condition.id, place)})
        live = self._add(self.register.talks[talk["talk"]])
        self.playing.play(live)
        for person in people:
            self.playing.keep_person(person)

    def _scenario(self, people: Sequence[Participant], count: int) -> int:
        """The place of the next scenario: in turn by the rank of the place, and one that is new to all if possible."""
        first = rank(self.register.order, people[0].place) // len(people)
        had = {self.register.talks[talk].place for person in people for talk in person.talks}
        turn = [(first + step) % count for step in range(count)]
        return next((place for place in turn if place not in had), turn[0])

    def _index(self, condition: str, place: int) -> int:
        """The number of the talk among those that have everything but this number in common."""

        def kind(condition: str, place: int) -> tuple[object, ...]:
            arm = self.study.arm(condition)
            roles = arm.seats[place] if arm.people == 1 else ""
            partner = partner_of(arm, self.opening.model)
            return arm.scenarios[place].hash, arm.condition.mode, partner, roles, arm.grants(place).text

        own = kind(condition, place)
        return sum(kind(talk.condition, talk.place) == own for talk in self.register.talks.values())

    def _add(self, talk: Talk) -> Live:
        assert isinstance(talk, ArmTalk)
        spec = spec_of(self.study, talk, self.opening)
        live = self.live[talk.number] = Live(talk, spec, episode_id_of(self.run_id, spec))
        return live
