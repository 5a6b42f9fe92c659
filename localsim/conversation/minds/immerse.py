"""Immersion: before its first line the agent is told its role, and answers as the one it is (arXiv 2308.07702).

Both messages then open its chat. Of several answers one is taken: the one that agrees most with the others, whatever
their lengths, or the one that the agent itself finds most in character.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localsim.conversation.episode import Observation
from localsim.conversation.minds.steps import Answer, Consult, Note, Step, Work, likelihood
from localsim.conversation.rules.forms import OneOf, Words

POINTS = ("1", "2", "3", "4", "5")
SETTING = "From now on you are {name} and nobody else. Say in one or two sentences who you are and what you want."
ASK = 'You may begin with these words: "{answer}" How much do they sound like {name}, from 1 (not at all) to 5?'


@dataclass(frozen=True)
class Immerse(Step):
    """The opening pair."""

    n: int = 1
    """Answers among which one is chosen."""
    by: str = "agreement"
    """`agreement`, or `judge`: the agent itself."""
    name: str = "immerse"
    tokens: int = 240

    def work(self, seen: Observation, notes: tuple[Note, ...]) -> Work:
        """Leave the pair before the agent's first line; later it is kept."""
        if any(note.name == self.name for note in notes):
            return ()
        start, ask = f"{seen.viewer}:", SETTING.format(name=seen.viewer)
        question = Consult(self.name, ask, start, Words(200), 80, opens=True)
        found: list[str] = []
        for _ in range(self.n):
            answer: Answer = yield question
            found += [answer.text] if answer.text else []
        if not found:
            return ()
        best = found[0] if len(found) == 1 else agreed(found) if self.by == "agreement" else ""
        if not best:
            points = []
            for text in found:
                ask = ASK.format(answer=text, name=seen.viewer)
                answer = yield Consult(self.name, ask, "Points:", OneOf(POINTS, "Points:"), 8, sure=True)
                points.append(sum(int(point) * likelihood(answer, point) for point in POINTS))
            best = found[points.index(max(points))]
        return (Note(self.name, f"{start} {best}", opens=SETTING.format(name=seen.viewer), keep=True),)

    def stated(self) -> Mapping[str, Any]:
        return {"version": "1", "n": self.n, "by": self.by}


def agreed(texts: list[str]) -> str:
    """Return the text that is most like the others: the highest mean cosine of counts of words, which has no length."""
    counts = [Counter(re.findall(r"\w+", text.casefold())) for text in texts]

    def alike(one: int) -> float:
        return sum(_cosine(counts[one], other) for place, other in enumerate(counts) if place != one)

    return texts[max(range(len(texts)), key=alike)]


def _cosine(one: Counter[str], other: Counter[str]) -> float:
    norms = math.sqrt(sum(each**2 for each in one.values()) * sum(each**2 for each in other.values()))
    return sum(count * other[word] for word, count in one.items()) / norms if norms else 0.0
