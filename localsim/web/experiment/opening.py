"""How an experiment begins, and the episodes that follow from its file."""

from __future__ import annotations

from dataclasses import dataclass

from localsim.backends.open import absolute
from localsim.backends.person import NAME
from localsim.conversation.episode import EpisodeSpec
from localsim.runs.plan import Plan
from localsim.scenarios.experiments.document import MODEL, PARTICIPANT
from localsim.scenarios.experiments.read import Arm, Study
from localsim.web.experiment.roster import ArmMeeting
from localsim.web.floor.floor import Terms
from localsim.web.floor.ledger import Doors


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
