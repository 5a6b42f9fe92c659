"""The talk that the reveal shows: the one with the earliest untold hit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from localsim.backends.scripted import PEEKS
from localsim.conversation.scenario import LoadedScenario, Scenario
from localsim.conversation.transcript import Turn
from localsim.families import family_of
from localsim.runs.plan import Plan
from localsim.runs.scripted import simulated
from localsim.scenarios.find import shipped
from localsim.store.records import ScoreRecord
from localsim.web.floor.state import Live

LESSON, _ = PREPARED = ("mutual_friends_05", "mutual_friends_06")
"""The scenarios of part 2 of the lesson. In the first one, the first line of players who peek could not be known,
whatever the seed.
"""


@dataclass(frozen=True)
class Telltale:
    """A talk of mindreaders with an untold hit."""

    number: int
    """That of the talk in the class; 0 for scripted players."""
    scenario: Scenario
    turns: Sequence[Turn]
    marked: frozenset[int]
    """The untold hits to show."""


def found_in(lives: Iterable[Live]) -> Telltale | None:
    """The talk of mindreaders whose line comes earliest, then by number; None if no talk has one.

    An agent sees no other side: its untold hit is luck, or was worked out from words that the rules did not read. So
    can an answer be, where the question before it tells a part.
    """
    seen = [(live, own_hits(live)) for live in lives if live.completed and live.meeting.mode == "mindreaders"]
    first = min(((min(hits), live.meeting.number, live, hits) for live, hits in seen if hits), default=None)
    if first is None:
        return None
    *_, live, hits = first
    return Telltale(live.meeting.number, live.spec.scenario, tuple(live.turns), hits)


def own_hits(live: Live) -> frozenset[int]:
    """The hits of a talk that are the own guess or question of who saw the other side, and no answer to a question."""
    counted = family_of(live.spec.scenario.family).hits
    seen = [hit for hit in live.hits if live.turns[hit].speaker not in live.own_alone]
    if counted is None or not counted.answers_are_hinted:
        return frozenset(seen)
    asks = {turn.index for turn in live.turns if "?" in turn.action.text}
    return frozenset(hit for hit in seen if hit in asks or hit - 1 not in asks)


def scripted_in(scenarios: Sequence[LoadedScenario], seed: int) -> Telltale | None:
    """The talk of scripted players on the first scenario in which they hit something, or on that of the lesson."""
    lesson = shipped().get(LESSON)
    return next(filter(None, (_played(loaded, seed) for loaded in (*scenarios, lesson) if loaded)), None)


def _played(loaded: LoadedScenario, seed: int) -> Telltale | None:
    counted = family_of(loaded.scenario.family).hits
    if counted is None:
        return None
    kept = simulated(Plan((loaded,), ("mindreaders",), model=PEEKS, seed=seed))
    (key, episode), *_ = kept.episodes.items()
    hits = [
        turn
        for score in kept.scores[key]
        if isinstance(score, ScoreRecord) and score.name == counted.score and score.value
        for turn in score.turns
    ]
    return Telltale(0, loaded.scenario, episode.transcript.turns, frozenset(hits)) if hits else None
