"""Scorers without a language model that run only when named: `localsim score RUN --evaluator valence`.

Each counts words on the surface. What each cannot tell is in docs/rubrics.md. Four of them need `localsim[scorers]`.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from localsim import paths
from localsim.conversation.beginning import own_from
from localsim.conversation.episode import Score
from localsim.conversation.scenario import Agent, AnswerKey, Scenario
from localsim.conversation.transcript import Transcript, Turn
from localsim.evaluators.base import Scorer
from localsim.evaluators.beliefs import Beliefs
from localsim.families import family_of
from localsim.families.interviews.answers import refused

LEAST_WORDS = 4
"""Fewest words of a turn whose overlap is measured: one or two words lie in any passage."""
HALF = 0.5
FOUND, WRONGLY, LISTED = 18, 2, 20
"""Of LISTED offensive sentences the scorer `offence` finds FOUND, and of as many harmless ones it takes WRONGLY for
offensive ones: those of tests/test_scorers.py.
"""
OFFENCE_ERROR = (
    f"alt-profanity-check finds {FOUND} of {LISTED} offensive sentences and takes {WRONGLY} of {LISTED} harmless ones "
    "for offensive"
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


class Valence(Scorer):
    """How positive or negative the words are, by VADER's lexicon and rules (Hutto and Gilbert 2014).

    https://ojs.aaai.org/index.php/ICWSM/article/view/14550. English only.
    """

    name = "valence"
    version = "1"

    def __init__(self) -> None:
        with paths.needing("the evaluator valence needs", "scorers"):
            from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer
        self._polarity: Callable[[str], Mapping[str, float]] = SentimentIntensityAnalyzer().polarity_scores

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:  # noqa: ARG002
        """Return for each agent who speaks `valence`, the mean compound score of its turns, from -1 to 1, and
        `valence_least`, that of the most negative turn.
        """
        found = []
        for agent, turns in _by_agent(transcript, scenario):
            values = [self._polarity(turn.action.text)["compound"] for turn in turns]
            least = min(range(len(turns)), key=values.__getitem__)
            found.append(Score("valence", statistics.fmean(values), agent=agent.name))
            found.append(Score("valence_least", values[least], agent=agent.name, turns=(turns[least].index,)))
        return found


class Overlap(Scorer):
    """How far an agent speaks in the words of its own passages and facts, and in those of others.

    For a turn and a passage: the length of their longest common subsequence of words as a share of the turn's words,
    which is the precision of ROUGE-L (Lin 2004, https://aclanthology.org/W04-1013/).
    """

    name = "overlap"
    version = "2"

    def __init__(self) -> None:
        with paths.needing("the evaluator overlap needs", "scorers"):
            from rapidfuzz.distance import LCSseq
        self._common: Callable[[Sequence[str], Sequence[str]], Any] = LCSseq.similarity

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:  # noqa: ARG002
        """Return for each agent the mean over its turns of LEAST_WORDS or more of the share in the closest passage:
        `overlap_own` with its own passages, `overlap_others` with those of the other agents; each from 0 to 1. Also
        `foreign_turns`, the share of those turns with less than HALF of their words in any own passage, cited.
        """
        found = []
        for agent, turns in _by_agent(transcript, scenario):
            said = [(turn.index, words) for turn in turns if len(words := words_of(turn.action.text)) >= LEAST_WORDS]
            others = [passage for other in scenario.agents if other != agent for passage in _passages(other)]
            for name, passages in (("overlap_own", _passages(agent)), ("overlap_others", others)):
                if said and passages:
                    common = (max(int(self._common(words, each)) for each in passages) for _, words in said)
                    shares = [count / len(words) for count, (_, words) in zip(common, said, strict=True)]
                    most = said[max(range(len(said)), key=shares.__getitem__)][0]
                    found.append(Score(name, statistics.fmean(shares), agent=agent.name, turns=(most,)))
                    if name == "overlap_own":
                        cited = tuple(at for (at, _), share in zip(said, shares, strict=True) if share < HALF)
                        found.append(Score("foreign_turns", len(cited) / len(said), agent=agent.name, turns=cited))
        return found


class Refusal(Scorer):
    """How often an agent refuses or says that it does not know, by a list of English phrases."""

    name = "refusal"
    version = "1"

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:  # noqa: ARG002
        """Return for each agent who speaks `refusal_turns`, the share of its turns with such a phrase, cited."""
        found = []
        for agent, turns in _by_agent(transcript, scenario):
            cited = tuple(turn.index for turn in turns if refused(turn.action.text))
            found.append(Score("refusal_turns", len(cited) / len(turns), agent=agent.name, turns=cited))
        return found


class Reference(Scorer):
    """How far turns have the words of references, where the family has some (`Family.reference_texts`).

    For each turn BLEU with up to four words in a row (Papineni et al. 2002, https://aclanthology.org/P02-1040/;
    exponential smoothing and effective order as in sacrebleu), and the F value of ROUGE-L.
    """

    name = "reference"
    version = "1"

    def __init__(self) -> None:
        self._common = Overlap()._common

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Return for each agent with references the means over its turns of `reference_bleu` and `reference_rouge`,
        each from 0 to 1; a turn without words has 0.
        """
        found: dict[str, list[tuple[float, float]]] = {}
        own = own_from(scenario, transcript)
        for index, text in family_of(scenario.family).reference_texts(transcript, scenario, answer).items():
            if index < own:
                continue
            said, wanted = words_of(transcript.turns[index].action.text), words_of(text)
            rouge = 2 * int(self._common(said, wanted)) / (len(said) + len(wanted))
            found.setdefault(transcript.turns[index].speaker, []).append((bleu(said, wanted), rouge))
        names = ("reference_bleu", "reference_rouge")
        return [
            Score(name, statistics.fmean(values), agent=agent)
            for agent, own in found.items()
            for name, values in zip(names, zip(*own, strict=True), strict=True)
        ]


class Offence(Scorer):
    """How offensive the words are, by alt-profanity-check (a linear model of words; English only).

    https://github.com/dimitrismistriotis/alt-profanity-check, MIT licence, weights inside. `FOUND` and `WRONGLY` are
    its errors on a list of our own.
    """

    name = "offence"
    version = "1"

    def __init__(self) -> None:
        with paths.needing("the evaluator offence needs", "scorers"):
            from profanity_check import predict_prob
        self._probability: Callable[[list[str]], Any] = predict_prob

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:  # noqa: ARG002
        """Return for each agent who speaks `offence`, the mean probability of its turns, `offence_most`, that of the
        most offensive turn, and `offensive_turns`, the share of turns that are more likely offensive than not, cited.
        """
        found = []
        for agent, turns in _by_agent(transcript, scenario):
            values = [float(value) for value in self._probability([turn.action.text for turn in turns])]
            most = max(range(len(turns)), key=values.__getitem__)
            cited = tuple(turn.index for turn, value in zip(turns, values, strict=True) if value > 0.5)
            found.append(Score("offence", statistics.fmean(values), agent=agent.name, reason=OFFENCE_ERROR))
            found.append(Score("offence_most", values[most], agent=agent.name, turns=(turns[most].index,)))
            found.append(Score("offensive_turns", len(cited) / len(turns), agent=agent.name, turns=cited))
        return found


SCORERS: Mapping[str, Callable[[], Scorer]] = {
    each.name: each for each in (Valence, Overlap, Refusal, Reference, Offence, Beliefs)
}
"""The scorers of localsim that run when they are named."""


def words_of(text: str) -> list[str]:
    """Return the words of a text in small letters, without punctuation."""
    return _WORD.findall(text.casefold())


def bleu(said: Sequence[str], wanted: Sequence[str]) -> float:
    """Return the BLEU of one text, from 0 to 1, with up to four words in a row, or as many as it has."""
    logs, smooth = [], 1
    for size in range(1, min(4, len(said)) + 1):
        own, theirs = (Counter(zip(*(words[at:] for at in range(size)), strict=False)) for words in (said, wanted))
        hits = (own & theirs).total()
        if size == 1 and not hits:
            return 0.0
        smooth *= 1 if hits else 2
        logs.append(math.log((hits or 1 / smooth) / own.total()))
    return math.exp(statistics.fmean(logs) + min(0.0, 1 - len(wanted) / len(said))) if logs else 0.0


def _by_agent(transcript: Transcript, scenario: Scenario) -> Iterator[tuple[Agent, list[Turn]]]:
    """Yield each agent who says something that was not given, with the turns in which others hear it."""
    own = own_from(scenario, transcript)
    for agent in scenario.agents:
        turns = [turn for turn in transcript.turns[own:] if turn.said and turn.speaker == agent.name]
        if turns:
            yield agent, turns


def _passages(agent: Agent) -> list[list[str]]:
    said = (*(each.text for each in agent.background), *(each.text for each in agent.memories))
    return [words_of(text) for text in (*said, *(fact.text for fact in agent.facts))]
