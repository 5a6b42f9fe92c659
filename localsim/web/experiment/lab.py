"""The lab: an experiment while it is served, and all that the pages of participants ask of it.

Consent, answers, ratings and ends are in the ledger, and turns in the journal of the run, before a page gets its
answer. So a killed server loses nothing that a participant has done.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from localsim.backends.open import absolute
from localsim.backends.person import NAME
from localsim.conversation.episode import EpisodeSpec
from localsim.conversation.transcript import Action, Turn
from localsim.evaluators.judge import Judge
from localsim.families.interviews.items import Bank
from localsim.runs.plan import Plan
from localsim.scenarios.experiments.document import MODEL, PARTICIPANT
from localsim.scenarios.experiments.read import Arm, Study
from localsim.store.database import Store
from localsim.store.records import AnswerRow, hash_of
from localsim.web.experiment.forms import Question, answers_from, questions_of, ratings_from
from localsim.web.experiment.roster import ArmMeeting, Part, Participant, Roster, ordered, rank
from localsim.web.floor.floor import Floor, Terms
from localsim.web.floor.ledger import Doors, Ledger
from localsim.web.floor.state import Event, Live
from localsim.web.guard import Allowance
from localsim.web.phrases.table import Refused

Step = Literal["consent", "full", "complete", "before", "wait", "talk", "rate", "rubric", "after", "debrief", "gone"]
HERE_S = 40.0
"""A participant whose page asked within this time is there, and can be paired."""
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Letters and digits that are not mistaken for each other."""
LEFT, TIME_OVER = "a participant left the talk", "the time of the talk was over"
"""Why a talk is called off."""


class Lab(Floor):
    """One experiment. Its methods can be called from many threads."""

    def __init__(
        self, store: Store, study: Study, ledger: Ledger, opening: ExperimentOpening, say: Callable[[str], None]
    ) -> None:
        self.study, self.opening = study, opening
        self.newcomers = Allowance(100, seconds=600)
        """One browser that drops its cookies cannot take all places."""
        quotas = [(arm.condition.id, arm.condition.quota, arm.people) for arm in study.arms]
        self.register: Roster = Roster(ordered(quotas, study.experiment.seed), ledger.events[1:])
        super().__init__(store, opening.run_id, terms_of(study, opening), self.register, ledger, say)
        self._begun = time.monotonic()
        self._began_at = max([time.time(), *(float(each.get("at") or 0) for each in ledger.events[1:])])
        self._seen: dict[int, float] = {}
        self._waits: dict[tuple[int, int], float] = {}
        """Participant and number of talks -> when this server saw them wait."""
        self.recall()

    def stop(self, *, end: bool = False) -> None:
        """Stop; with `end`, or if every place is filled, the run is complete, else the same command goes on."""
        with self.changed:
            if (end or self.register.complete) and not self.register.ended:
                self._record("end")
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
        return live.meeting.role_of(person.number)

    def to_rate(self, person: Participant, live: Live) -> Turn | None:
        """The first message of the other side that a participant has read and not rated; None without one."""
        if self.study.ratings is None:
            return None
        role = self.role_of(person, live)
        seen = self.seen_by(live, role).transcript.turns
        others = (turn for turn in seen if turn.said and turn.speaker != role)
        return next((turn for turn in others if (live.meeting.number, turn.index) not in person.ratings), None)

    def to_judge(self, person: Participant, live: Live) -> list[Question]:
        """What a participant answers about a talk that has come to its end; nothing if it broke off, as for judges."""
        wanted, rubric = self.study.experiment.rated, self.study.rubric
        if wanted is None or rubric is None or not live.completed or live.meeting.number in person.judged:
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
        return None if minutes is None else self.register.meetings[live.meeting.number].at + 60 * minutes - self._now()

    # ---- what participants do --------------------------------------------------------------------------------------

    def agree(self, key: str) -> Participant:
        """Give a place to a person who agrees; the same person again keeps theirs. Raises Refused."""
        with self.changed:
            person = self.register.person_of(key)
            if person is None:
                found = self.register.next_place(self._away())
                if found is None or self.register.complete:
                    raise Refused("places_taken")
                place, lost = found
                if lost is not None:
                    self._leave(lost, "away")
                number = len(self.register.people) + 1
                completion = "".join(random.SystemRandom().choices(_LETTERS, k=8))
                code = f"p{secrets.token_hex(5)}"
                self._note("agree", number, key=key, code=code, completion=completion, place=place)
                person = self.register.people[number]
            self._seen[person.number] = time.monotonic()
            self._advance(person)
            return person

    def answer(self, person: Participant, part: Part, bank_id: str, sent: Mapping[str, str]) -> None:
        """Keep the answers to a form; the first ones count. Raises Refused."""
        with self.changed:
            if (part, bank_id) in person.forms:
                return
            bank = self.next_form(person, part)
            if self.step(person) != part or bank is None or bank.id != bank_id:
                raise Refused("other_form")
            self._note("form", person.number, part=part, bank=bank.id, answers=answers_from(bank, sent))
            self._advance(person)

    def rate(self, person: Participant, turn: int, sent: Mapping[str, str] | None) -> None:
        """Keep the ratings of a message, or that it was skipped (None); the first ones count. Raises Refused."""
        with self.changed:
            live, wanted, bank = self.live_of(person), self.study.experiment.ratings, self.study.ratings
            if live is None or wanted is None or bank is None:
                raise Refused("not_rated")
            if (live.meeting.number, turn) in person.ratings:
                return
            due = self.to_rate(person, live)
            if due is None or due.index != turn:
                raise Refused("message_later")
            if sent is None and wanted.required:
                raise Refused("message_needed")
            answers: Mapping[str, Any] = {} if sent is None else answers_from(bank, sent)
            self._note("rating", person.number, talk=live.meeting.number, turn=turn, answers=answers)
            self._advance(person)

    def judge(self, person: Participant, talk: int, sent: Mapping[str, str]) -> None:
        """Keep the answers to the rubric about a talk; the first ones count. Raises Refused."""
        with self.changed:
            if talk in person.judged:
                return
            live = self.live_of(person)
            if live is None or live.meeting.number != talk or self.step(person) != "rubric":
                raise Refused("talk_later")
            answers = ratings_from(self.to_judge(person, live), sent)
            self._note("rubric", person.number, talk=talk, answers=answers)
            self._advance(person)

    def say(self, person: Participant, place: int, action: Action) -> None:
        """Take a turn of a participant, as `Floor.take` does. Raises Refused."""
        with self.changed:
            live = self.live_of(person)
            if live is None or person.out:
                raise Refused("no_talk")
            if self.step(person) == "rate":
                raise Refused("rate_first")
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
                self._record("unpaired", participant=person.number)
                self._advance(person)

    def call_off(self, talk: int, why: str) -> None:
        """Have a talk end for a reason that is stored with it. Only under the lock."""
        if not self.register.meetings[talk].over and not self.live[talk].ended:
            self._record("over", talk=talk, why=why)

    # ---- helpers ---------------------------------------------------------------------------------------------------

    def _note(self, event: str, participant: int, **fields: Any) -> None:
        self._record(event, participant=participant, **fields, at=round(self._now(), 1))

    def _now(self) -> float:
        """The time of the clock, which goes on evenly if that is set while people talk, or before a restart."""
        return self._began_at + time.monotonic() - self._begun

    def _away(self) -> dict[int, float]:
        """Participants whose place may be given to another person, with the seconds since their last sign of life."""
        now, most = time.monotonic(), 60 * self.study.experiment.limits.away
        silent = {number: now - self._seen.get(number, self._begun) for number in self.register.people}
        return {number: seconds for number, seconds in silent.items() if seconds > most}

    def _leave(self, person: Participant, why: Literal["withdrawn", "away"]) -> None:
        live, partners = self.live_of(person), self.register.partners(person)
        self._record("out", participant=person.number, why=why)
        if live is None or live.ended:
            return
        self.call_off(live.meeting.number, LEFT)
        for partner in partners:
            if partner.holds:
                self._record("unpaired", participant=partner.number)

    def _advance(self, person: Participant) -> None:
        """Let a participant go on as far as no answer is needed: into a talk, or to the end."""
        step = self.step(person)
        if step == "wait":
            self._pair(person.condition)
        elif step == "debrief" and person.done is None:
            self._note("done", person.number)

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
        self._record(
            "talk", talk=len(self.register.meetings) + 1, condition=arm.condition.id, place=place,
            scenario=self.study.scenarios.index(arm.scenarios[place]), mode=arm.condition.mode,
            people=dict(zip(roles, (person.number for person in people), strict=False)), at=round(self._now(), 1),
            index=self._index(arm.condition.id, place),
        )  # fmt: skip

    def _scenario(self, people: Sequence[Participant], count: int) -> int:
        """The place of the next scenario: in turn by the rank of the place, and one that is new to all if possible."""
        first = rank(self.register.order, people[0].place) // len(people)
        had = {self.register.meetings[talk].place for person in people for talk in person.talks}
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
        return sum(kind(meeting.condition, meeting.place) == own for meeting in self.register.meetings.values())

    # ---- the run ---------------------------------------------------------------------------------------------------

    def spec_of(self, meeting: ArmMeeting) -> EpisodeSpec:
        return spec_of(self.study, meeting, self.opening)

    def leaves(self) -> bool:
        """End talks whose time is over, and those that a participant has left, in every round."""
        minutes, now = self.study.experiment.limits.minutes, self._now()
        with self.changed:
            for number, meeting in list(self.register.meetings.items()):
                if minutes is not None and now - meeting.at > 60 * minutes:
                    self.call_off(number, TIME_OVER)
            for number, live in self.live.items():
                if not live.ended and (why := self.register.meetings[number].over):
                    self.players.fail(live.spec.hash, why)
        return super().leaves()

    def _is_due(self) -> bool:
        return bool(self.register.people)

    # ---- rows ------------------------------------------------------------------------------------------------------

    def answers_in(self, event: Event) -> Iterator[AnswerRow]:
        """Yield the rows of an event: participants, answers and ratings.

        Rows are annotations, so that exporting, merging and removing a run takes them along. The views
        `v_participants`, `v_participant_talks`, `v_participant_answers` and `v_rubric_ratings` are their public form.
        """
        kind = event["event"]
        if kind == "talk":
            yield from map(self._person_row, event["people"].values())
        elif kind in ("agree", "out", "unpaired", "done"):
            yield self._person_row(event["participant"])
        elif kind in ("form", "rating", "rubric"):
            code, at = self.register.people[event["participant"]].code, datetime.fromtimestamp(event["at"], UTC)
            for task, item, value, shown in self._values(event):
                yield self.answer_row(task, item, code, value, shown, at)

    def _person_row(self, number: int) -> AnswerRow:
        """Return the row of a participant as they are now."""
        person, experiment = self.register.people[number], self.study.experiment
        talks = {str(place): self.live[talk] for place, talk in enumerate(person.talks, start=1)}
        value = {
            "condition": person.condition, "place": person.place, "status": person.status,
            "roles": {place: self.role_of(person, live) for place, live in talks.items()},
            "consent": experiment.consent.version, "completion": person.completion,
            "description": hash_of(self.study.description), "language": self.opening.language,
        }  # fmt: skip
        shown = {place: live.episode_id for place, live in talks.items()}
        seconds = None if person.done is None else round(person.done - person.at, 1)
        at = datetime.fromtimestamp(person.at, UTC)
        return self.answer_row("participant", experiment.id, person.code, value, shown, at, seconds)

    def _values(self, event: Event) -> Iterator[tuple[str, str, Mapping[str, Any], Mapping[str, str]]]:
        """Yield task, item, value and episode of each answer in an event."""
        if event["event"] == "form":
            for item, value in event["answers"].items():
                yield event["part"], f"{event['bank']}/{item}", value, {}
            return
        live = self.live[event["talk"]]
        shown = {"1": live.episode_id}
        if event["event"] == "rating":
            bank = self.study.ratings
            assert bank is not None, "nothing is rated without a bank"
            for item, value in event["answers"].items():
                key = f"{live.episode_id}/{event['turn']}/{bank.id}/{item}"
                yield "message", key, {**value, "turn": event["turn"]}, shown
            return
        rubric = self.study.rubric
        assert rubric is not None, "no talk is rated without a rubric"
        role = live.meeting.role_of(event["participant"])
        # The version of a judge who is asked the same, so that no other one is compared with these ratings.
        about = {"version": Judge("", rubric=rubric).version, "role": role}
        for each in event["answers"]:
            key = f"{live.episode_id}/{each['agent']}/{rubric.id}/{each['dimension']}"
            value = {"value": each["value"], "number": each["number"], "agent": each["agent"], **about}
            yield "rubric", key, value, shown


# ---- how it begins ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExperimentOpening(Doors):
    """What is decided when an experiment begins."""

    study: str
    """Hash of the experiment with all that it names."""
    model: str
    """The partner that the command line names."""
    language: str = "en"
    """That of the pages; ledgers of the time before do not name it."""


def partner_of(arm: Arm, model: str) -> str:
    """The model of the other side; `human` if it is another participant."""
    partner = arm.condition.partner
    return NAME if partner == PARTICIPANT else model if partner == MODEL else absolute(partner)


def spec_of(study: Study, meeting: ArmMeeting, opening: ExperimentOpening) -> EpisodeSpec:
    """The episode of a meeting."""
    arm = study.arm(meeting.condition)
    scenario, grants = arm.scenarios[meeting.place].scenario, arm.grants(meeting.place)
    return meeting.spec(scenario, partner_of(arm, opening.model), study.experiment.seed, opening.edition, grants)


def terms_of(study: Study, opening: ExperimentOpening) -> Terms:
    """What is played, with an episode of each kind in which a model has a part."""
    seats = (seat for arm in study.arms for seat in arm.seats)
    plan = Plan(
        study.scenarios,
        tuple(dict.fromkeys(arm.condition.mode for arm in study.arms)),
        model=opening.model,
        roles=dict.fromkeys(seats, NAME),
        seed=study.experiment.seed,
        edition=opening.edition,
    )
    models = [partner for arm in study.arms if (partner := partner_of(arm, opening.model)) != NAME]
    specs = [
        spec_of(study, ArmMeeting(0, 0, arm.condition.mode, 0, {arm.seats[place]: 0}, arm.condition.id, place), opening)
        for arm in study.arms
        for place in range(len(arm.scenarios))
        if arm.people == 1
    ]
    return Terms("experiment", plan, list(dict.fromkeys(models)), specs, (study.description,))
