"""The evaluator of play: what a talk must have before its outcome counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from localsim.conversation.episode import Score, Subject
from localsim.conversation.scenario import AnswerKey, Scenario
from localsim.conversation.transcript import Transcript
from localsim.evaluators.base import Scorer
from localsim.evaluators.play.faults import FAULTS, Fault
from localsim.evaluators.play.measures import CONTROLS, MEASURES
from localsim.evaluators.play.talk import PlayedText
from localsim.families import family_of

QUOTED = 60
"""Most characters of a turn in a reason."""


class Play(Scorer):
    """The scores of play; `score` lists them."""

    name = "play"
    version = "1"
    measures = MEASURES
    controls = CONTROLS

    def applies(self, subject: Subject) -> bool:
        return len(subject.scenario.agents) > 1 and not family_of(subject.scenario.family).asks

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Return scores of the whole conversation.

        play_FAULT: the share of turns with speech that have the fault, for each of FAULTS; those that are found by
        English phrases are left out of talks in other languages. plays: 1 if no fault is above its limit, else 0 with
        the worst fault as its label. task_touched: 1 if the talk came to its task, where the family can tell.
        """
        talk = PlayedText(transcript, scenario, answer)
        scores = list(_touched(talk))
        if not transcript.acts or (not talk.said and scenario.moves):
            return scores
        found = {fault: fault.find(talk) for fault in FAULTS if talk.is_english or not fault.english}
        for fault, turns in found.items():
            if base := fault.base(talk):
                scores.append(Score(f"play_{fault.name}", len(turns) / base, turns=tuple(turns)))
        return [*scores, _plays(talk, scores)]


PLAY = Play()


def spoiling(talk: PlayedText, scores: Sequence[Score]) -> dict[Fault, tuple[int, ...]]:
    """Return the faults of a talk that are above their limits, with their turns, given its scores."""
    turns = {score.name: score.turns for score in scores}
    found = {fault: turns.get(f"play_{fault.name}", ()) for fault in FAULTS}
    return {fault: at for fault, at in found.items() if at and fault.weight(at, talk) >= 1}


def _touched(talk: PlayedText) -> Iterator[Score]:
    turns = family_of(talk.scenario.family).touches(talk.transcript, talk.scenario)
    if turns is not None:
        yield Score("task_touched", float(bool(turns)), turns=tuple(turns))


def _plays(talk: PlayedText, scores: Sequence[Score]) -> Score:
    spoilt = spoiling(talk, scores)
    if not spoilt:
        return Score("plays", 1.0, "", reason="no fault is above its limit")
    worst = max(spoilt, key=lambda fault: fault.weight(spoilt[fault], talk))
    turns = spoilt[worst]
    words = next((text for turn in turns if (text := talk.transcript.turns[turn].action.text)), "")
    such = f", such as “{words if len(words) <= QUOTED else words[: QUOTED - 1] + '…'}”" if words else ""
    reason = f"{len(turns)} of {worst.base(talk)} turns {worst.says}{such}"
    return Score("plays", 0.0, worst.label, reason=reason, turns=turns)
