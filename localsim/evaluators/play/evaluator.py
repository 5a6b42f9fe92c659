"""The evaluator of play: what a talk must have before its outcome counts."""

from __future__ import annotations

from collections.abc import Sequence

from localsim.conversation.controls import exactly
from localsim.conversation.episode import Score
from localsim.conversation.measures import Measure
from localsim.conversation.scenario import AnswerKey, Scenario
from localsim.conversation.transcript import Transcript
from localsim.evaluators.base import BETWEEN, Scorer
from localsim.evaluators.play.faults import FAULTS, Fault
from localsim.evaluators.play.talk import PlayedText
from localsim.families import family_of

MEASURES = (
    Measure("plays_rate", "plays",
            "share of conversations that play: neither repeats nor any other fault is above its limit",
            score="plays", kind="share", summed="episodes", compared=True, head=True,
            left_out="nobody says a word in a game of moves"),
    Measure("task_touched_rate", "task touched",
            "share of conversations that come to their task, such as those that name a price",
            score="task_touched", kind="share", summed="episodes", group="goals"),
    Measure("own_repeat_rate", "own repeats",
            "share of turns that say nearly what their speaker said before; short answers may be equal",
            score="play_own_repeats", kind="share"),
    Measure("loop_rate", "loops", "share of turns in runs of four or more that repeat those just before them",
            score="play_loop", kind="share"),
    Measure("other_role_rate", "as another",
            "share of turns that give another’s name or side as the own one, or speak of the speaker by name",
            score="play_other_role", kind="share"),
    Measure("assistant_rate", "as assistant",
            "share of turns that speak as an assistant does, such as “How can I help you?”",
            score="play_assistant", kind="share"),
    Measure("refusal_rate", "refusals",
            "share of turns that refuse as an assistant does, such as “I can’t assist with that”",
            score="play_refusals", kind="share"),
    Measure("spill_rate", "form in speech",
            "share of turns with marks of a form, such as another’s name, brackets, or quotation marks around all",
            score="play_spill", kind="share"),
    Measure("farewell_rate", "late goodbyes",
            "share of turns with goodbyes and polite words after both have said goodbye",
            score="play_farewells", kind="share"),
)  # fmt: skip
_HONEST = "it plays its task"
_FAULTS = {
    "parrot": "it repeats itself",
    "polite": "it says polite words only",
    "rephraser": "it repeats itself in other words",
    "mirror": "it repeats the other",
    "impostor": "it says that it is the other",
    "assistant": "it speaks as an assistant",
    "refusing-assistant": "it refuses to play",
    "spiller": "it writes the other's lines",
    "reader-out": "it reads out its goal",
}
CONTROLS = (
    exactly("honest", "plays_rate", 1, _HONEST),
    *(exactly(player, "plays_rate", 0, why) for player, why in _FAULTS.items()),
    exactly("honest", "task_touched_rate", 1, _HONEST),
    exactly("parrot", "task_touched_rate", 0, "it speaks of walks only"),
    exactly("honest", "own_repeat_rate", 0, _HONEST),
    exactly("parrot", "own_repeat_rate", 5 / 7, "all of its seven turns but the first of each agent repeat one"),
    exactly("rephraser", "own_repeat_rate", 0.9, "all of its 20 turns but the first of each agent repeat one"),
    exactly("rephraser", "repeated_turn_rate", 0, "no two of its turns have the same words"),
    exactly("honest", "loop_rate", 0, _HONEST),
    exactly("parrot", "loop_rate", 1, "all of its turns are one loop"),
    exactly("honest", "other_role_rate", 0, _HONEST),
    exactly("impostor", "other_role_rate", 1, "each of its turns gives the other's name as its own"),
    exactly("honest", "assistant_rate", 0, _HONEST),
    exactly("assistant", "assistant_rate", 1, "each of its turns offers help"),
    exactly("refusing-assistant", "assistant_rate", 0, "it offers nothing"),
    exactly("honest", "refusal_rate", 0, _HONEST),
    exactly("refusing-assistant", "refusal_rate", 1, "each of its turns refuses"),
    exactly("assistant", "refusal_rate", 0, "it offers help"),
    exactly("honest", "spill_rate", 0, _HONEST),
    exactly("spiller", "spill_rate", 0, "the line of the other is cut off from each of its turns"),
    exactly("spiller", "repaired_rate", 1, "each of its turns is cut"),
    exactly("honest", "farewell_rate", 0, "it leaves when it says goodbye"),
    exactly("never-leaves", "farewell_rate", 0, "the talk ends when both have said goodbye"),
    exactly("never-leaves", "plays_rate", 1, "the talk ends when both have said goodbye"),
)


QUOTED = 60
"""Most characters of a turn in a reason."""


class Play(Scorer):
    """The scores of play; `score` lists them."""

    name = "play"
    version = "1"
    measures = MEASURES
    controls = CONTROLS
    suits = BETWEEN

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Return scores of the whole conversation.

        play_FAULT: the share of turns with speech that have the fault, for each of FAULTS; those that are found by
        English phrases are left out of talks in other languages. plays: 1 if no fault is above its limit, else 0 with
        the worst fault as its label. task_touched: 1 if the talk came to its task, where the family can tell.
        """
        talk = PlayedText(transcript, scenario, answer)
        touched = family_of(scenario.family).touches(transcript, scenario)
        scores = [] if touched is None else [Score("task_touched", float(bool(touched)), turns=tuple(touched))]
        own = talk.own(transcript.acts)
        if not own or (not talk.own(talk.said) and scenario.moves):
            return scores
        found = {fault: fault.find(talk) for fault in FAULTS if talk.is_english or not fault.english}
        for fault, every in found.items():
            turns = [turn for turn in every if turn >= own[0].index]
            if base := fault.base(talk):
                scores.append(Score(f"play_{fault.name}", len(turns) / base, turns=tuple(turns)))
        return [*scores, _plays(talk, scores)]


PLAY = Play()


def spoiling(talk: PlayedText, scores: Sequence[Score]) -> dict[Fault, tuple[int, ...]]:
    """Return the faults of a talk that are above their limits, with their turns, given its scores."""
    turns = {score.name: score.turns for score in scores}
    found = {fault: turns.get(f"play_{fault.name}", ()) for fault in FAULTS}
    return {fault: at for fault, at in found.items() if at and fault.weight(at, talk) >= 1}


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
