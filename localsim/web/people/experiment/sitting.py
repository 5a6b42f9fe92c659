"""The talks of an experiment as one run, and the rows that are stored beside them: participants, answers, ratings.

Rows are annotations, so that exporting, merging and removing a run takes them along. The views `v_participants`,
`v_participant_talks`, `v_participant_answers` and `v_rubric_ratings` are their public form.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from localsim.backends.open import absolute
from localsim.backends.person import NAME
from localsim.conversation.episode import EpisodeSpec
from localsim.evaluators.judge import Judge
from localsim.families import rules_of
from localsim.runs.plan import Plan, by_role, layouts_of, sampling_of
from localsim.scenarios.experiments.document import MODEL, PARTICIPANT
from localsim.scenarios.experiments.read import Arm, Study
from localsim.store.records import AnswerRow, hash_of
from localsim.web.classroom.talks import Talks, Terms
from localsim.web.people.experiment.roster import Answers, ArmTalk, Participant

if TYPE_CHECKING:
    from localsim.web.people.experiment.lab import Lab, Opening

TIME_OVER = "the time of the talk was over"


def partner_of(arm: Arm, model: str) -> str:
    """The model of the other side; `human` if it is another participant."""
    partner = arm.condition.partner
    return NAME if partner == PARTICIPANT else model if partner == MODEL else absolute(partner)


def spec_of(study: Study, talk: ArmTalk, opening: Opening) -> EpisodeSpec:
    """The episode of a talk."""
    arm = study.arm(talk.condition)
    scenario, partner = arm.scenarios[talk.place].scenario, partner_of(arm, opening.model)
    models = {name: NAME if name in talk.people else partner for name in scenario.names}
    return EpisodeSpec(
        scenario, talk.mode, models, index=talk.index, run_seed=study.experiment.seed,
        sampling=sampling_of(partner), grants=arm.grants(talk.place),
        layouts=by_role(layouts_of(models.values()), models), rules=rules_of(scenario, talk.index),
        edition=opening.edition,
    )  # fmt: skip


def _terms(study: Study, opening: Opening) -> Terms:
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
        spec_of(study, ArmTalk(0, 0, arm.condition.mode, 0, {arm.seats[place]: 0}, arm.condition.id, place), opening)
        for arm in study.arms
        for place in range(len(arm.scenarios))
        if arm.people == 1
    ]
    return Terms("experiment", plan, list(dict.fromkeys(models)), specs, (study.description,))


class Sitting(Talks):
    """Lets the talks of a lab run."""

    def __init__(self, lab: Lab, say: Callable[[str], None]) -> None:
        self._lab = lab
        self._description = hash_of(lab.study.description)
        super().__init__(lab, _terms(lab.study, lab.opening), say)

    def keep_person(self, person: Participant) -> None:
        """Have a participant stored as they are now. Only under the lock of the lab."""
        talks = {str(number): self._lab.live[talk] for number, talk in enumerate(person.talks, start=1)}
        roles = {
            number: next(role for role, holder in live.talk.people.items() if holder == person.number)
            for number, live in talks.items()
        }
        value = {
            "condition": person.condition, "place": person.place, "status": person.status, "roles": roles,
            "consent": self._lab.study.experiment.consent.version, "completion": person.completion,
            "description": self._description,
        }  # fmt: skip
        shown = {number: live.episode_id for number, live in talks.items()}
        seconds = None if person.done is None else round(person.done - person.at, 1)
        self.keep(self._row(person, "participant", self._lab.study.experiment.id, value, shown, person.at, seconds))

    def keep_answers(self, person: Participant, part: str, bank: str, answers: Answers, at: float) -> None:
        """Have the answers to a form stored. Only under the lock of the lab."""
        for item, value in answers.items():
            self.keep(self._row(person, part, f"{bank}/{item}", value, {}, at))

    def keep_ratings(self, person: Participant, talk: int, turn: int, answers: Answers, at: float) -> None:
        """Have the ratings of a message stored. Only under the lock of the lab."""
        episode, bank = self._lab.live[talk].episode_id, self._lab.study.ratings
        assert bank is not None, "nothing is rated without a bank"
        for item, value in answers.items():
            key = f"{episode}/{turn}/{bank.id}/{item}"
            self.keep(self._row(person, "message", key, {**value, "turn": turn}, {"1": episode}, at))

    def keep_judged(self, person: Participant, talk: int, answers: Sequence[Mapping[str, Any]], at: float) -> None:
        """Have the answers to the rubric about a talk stored. Only under the lock of the lab.

        Their version is that of a judge who is asked the same, so that no other one is compared with them.
        """
        live, rubric = self._lab.live[talk], self._lab.study.rubric
        assert rubric is not None, "no talk is rated without a rubric"
        about = {"version": Judge("", rubric=rubric).version, "role": self._lab.role_of(person, live)}
        for each in answers:
            key = f"{live.episode_id}/{each['agent']}/{rubric.id}/{each['dimension']}"
            value = {"value": each["value"], "number": each["number"], "agent": each["agent"], **about}
            self.keep(self._row(person, "rubric", key, value, {"1": live.episode_id}, at))

    def _row(
        self, person: Participant, task: str, item: str, value: Mapping[str, Any], shown: Mapping[str, str],
        at: float, seconds: float | None = None,
    ) -> AnswerRow:  # fmt: skip
        return AnswerRow(
            task=task,
            item_id=item,
            rater=person.code,
            run_id=self._floor.run_id,
            value_json=json.dumps(value, ensure_ascii=False, sort_keys=True),
            shown_json=json.dumps(shown),
            attention=False,
            origin="browser",
            seconds=seconds,
            created_utc=datetime.fromtimestamp(at, UTC).replace(tzinfo=None),
        )

    # ---- the run's thread ------------------------------------------------------------------------------------------

    def _is_due(self) -> bool:
        return bool(self._lab.register.people)

    def _keep_again(self) -> None:
        for person in self._lab.register.people.values():
            self.keep_person(person)
            for (part, bank), answers in person.forms.items():
                self.keep_answers(person, part, bank, answers, person.times[part, bank])
            for (talk, turn), answers in person.ratings.items():
                self.keep_ratings(person, talk, turn, answers, person.times[str(talk), str(turn)])
            for talk, judged in person.judged.items():
                self.keep_judged(person, talk, judged, person.times["rubric", str(talk)])

    def _each_round(self) -> None:
        with self._floor.changed:
            for talk in self._overdue():
                self._lab.call_off(talk, TIME_OVER)
            for live in self._lab.live.values():
                if not live.ended and (why := self._lab.register.talks[live.talk.number].over):
                    self.players.fail(live.spec.hash, why)
        super()._each_round()

    def _overdue(self) -> Iterator[int]:
        minutes = self._lab.study.experiment.limits.minutes
        if minutes is not None:
            for number, talk in list(self._lab.register.talks.items()):
                if not talk.over and not self._lab.live[number].ended and time.time() - talk.at > 60 * minutes:
                    yield number
