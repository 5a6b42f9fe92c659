"""Style of a conversation: words per turn (arXiv 2403.05020, section 4.2), repetition, variety, fillers, language."""

from __future__ import annotations

import re
from collections.abc import Sequence

from localsim.conversation.beginning import own_from
from localsim.conversation.controls import exactly
from localsim.conversation.episode import Score
from localsim.conversation.measures import Measure
from localsim.conversation.scenario import AnswerKey, Scenario
from localsim.conversation.transcript import Transcript, Turn
from localsim.evaluators.base import Scorer
from localsim.evaluators.play.repeats import plain_words, repeated
from localsim.families.language import is_foreign, language_of, long_enough, words_in

MEASURES = (
    Measure("words_per_turn", "words/turn", "words per turn, over turns with speech",
            score="words_per_turn", figure="style", compared=True,
            published={"script": 16.02, "agents": 29.83, "mindreaders": 27.76, "agents-ft": 14.98},
            bounds=(0, None)),
    Measure("filler_rate", "fillers", "share of turns with an empty polite phrase, such as “I understand”",
            score="filler_turns", kind="share"),
    Measure("turns", "turns", "turns of agents in a conversation; what the rules tell is no turn of theirs",
            score="turns", figure="style", compared=True, bounds=(0, None), up_to="turn_limit", head=True),
    Measure("repeated_turn_rate", "repeated turns", "share of turns that repeat an earlier one",
            score="repeated_turns", kind="share", compared=True),
    Measure("other_language_rate", "other language",
            "share of turns that are not in the scenario’s language, over turns long enough to judge",
            score="other_language_turns", kind="share"),
)  # fmt: skip

CONTROLS = (
    exactly("parrot", "words_per_turn", 9, "the parrot says one sentence of nine words"),
    exactly("parrot", "turns", 7, "after its first turn it says nothing new, and six such turns end a talk"),
    exactly("parrot", "repeated_turn_rate", 6 / 7, "all of its seven turns but the first repeat one"),
    exactly("parrot", "filler_rate", 0, "its sentence is no polite phrase"),
    exactly("parrot", "other_language_rate", 0, "its sentence is English, as the scenarios are"),
    exactly("polite", "filler_rate", 1, "each of its turns is a polite phrase"),
    exactly("foreigner", "other_language_rate", 1, "each of its turns is German"),
)

_FILLERS = re.compile(
    r"\b(?:i (?:completely |totally |fully )?(?:understand|agree|see|appreciate)"
    r"|that(?:'s| is| sounds) (?:great|wonderful|good|amazing|interesting|fantastic|awesome|a great idea)"
    r"|(?:absolutely|definitely|of course|sounds good|no problem|no worries|great idea|you're right|good point)"
    r"|thank(?:s| you) (?:so much|for (?:sharing|understanding|letting me know)))\b",
    re.IGNORECASE,
)
"""Polite phrases that agree but add nothing; the paper's section 5 finds that scripts teach them."""


class Style(Scorer):
    """The scores of style; `score` lists them."""

    name = "style"
    version = "5"
    measures = MEASURES
    controls = CONTROLS

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:  # noqa: ARG002
        """Return scores of the whole conversation, over turns with speech that were not given.

        words_per_turn; turns; turn_limit; repeated_turns and own_repeated_turns (share said before by any agent, by
        the same speaker); distinct_1, distinct_2 (different words and pairs of words as a share of all, Li et al.
        2016); filler_turns (share with an empty polite phrase); questions (share of turns that ask);
        other_language_turns (share of turns that are not in the scenario's language, over turns long enough to
        judge).
        """
        own = own_from(scenario, transcript)
        heard = [turn for turn in transcript.turns if turn.said]
        said = [turn for turn in heard if turn.index >= own]
        acts = sum(turn.index >= own for turn in transcript.acts)
        scores = [Score("turns", float(acts)), Score("turn_limit", float(scenario.limits.turns - len(scenario.begun)))]
        if not said:
            return scores
        scores.append(Score("words_per_turn", sum(turn.words for turn in said) / len(said)))
        for name, alone in (("repeated_turns", False), ("own_repeated_turns", True)):
            scores.append(_share(name, [turn for turn in repeated(heard, own=alone) if turn.index >= own], said))
        words = [plain_words(turn.action.text).split() for turn in said]
        for size in (1, 2):
            grams = [tuple(line[at : at + size]) for line in words for at in range(len(line) - size + 1)]
            if grams:
                scores.append(Score(f"distinct_{size}", len(set(grams)) / len(grams)))
        scores.append(_share("filler_turns", [turn for turn in said if _FILLERS.search(turn.action.text)], said))
        scores.append(_share("questions", [turn for turn in said if "?" in turn.action.text], said))
        return [*scores, *_other_language(said, scenario)]


STYLE = Style()


def _share(name: str, counted: Sequence[Turn], said: Sequence[Turn]) -> Score:
    return Score(name, len(counted) / len(said), turns=tuple(turn.index for turn in counted))


def _other_language(said: Sequence[Turn], scenario: Scenario) -> list[Score]:
    """Return no score if no turn is long enough or the scenario's language is not known."""
    long = [turn for turn in said if long_enough(turn.action.text)]
    language = language_of(scenario) if long else None
    if language is None:
        return []
    known = words_in(scenario)
    cited = [turn.index for turn in long if is_foreign(turn.action.text, language, known)]
    reason = f"not in {language}, of {len(long)} turns long enough to tell"
    return [Score("other_language_turns", len(cited) / len(long), reason=reason, turns=tuple(cited))]
