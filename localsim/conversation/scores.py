"""What a score must be to be stored and shown: one number for one name, about an agent and turns that exist."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from localsim.conversation.episode import Score
from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Transcript
from localsim.errors import suggest


def checked(scores: Iterable[Score]) -> tuple[Score, ...]:
    """Return the scores. Raises TypeError or ValueError for what cannot be stored: no Score, no finite number, or two
    scores of one name and agent.
    """
    if not isinstance(scores, Iterable):
        raise TypeError(f"score returned {scores!r}, which is no list of scores")
    given = tuple(scores)
    for score in given:
        if not isinstance(score, Score) or not isinstance(score.value, int | float | None):
            raise TypeError(f"not a Score with a number or None: {score!r}")
        if score.value is not None and not math.isfinite(score.value):
            raise ValueError(f"score {score.name} is {score.value}")
    names = [(score.name, score.agent) for score in given]
    if len(set(names)) < len(names):
        twice = next(name for name, agent in names if names.count((name, agent)) > 1)
        raise ValueError(f"score {twice} is given twice")
    return given


def of_episode(scores: Sequence[Score], scenario: Scenario, transcript: Transcript) -> tuple[Score, ...]:
    """Return the scores of an episode, checked. Raises ValueError also for an agent or a turn that it does not have."""
    given = checked(scores)
    names = set(scenario.names)
    for score in given:
        if score.agent is not None and score.agent not in names:
            meant = suggest(score.agent, scenario.names, inline=True)
            raise ValueError(f"score {score.name} is for {score.agent!r}, who is not in {scenario.id}{meant}")
        if absent := [turn for turn in score.turns if not 0 <= turn < len(transcript)]:
            raise ValueError(f"score {score.name} rests on turn {absent[0]}, and there are {len(transcript)} turns")
    return given


__all__ = ["checked", "of_episode"]
