"""The talk that the reveal shows: the one with the earliest line that nobody could know from the talk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from localsim.backends.scripted import PEEKS
from localsim.conversation.episode import Mode
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Turn
from localsim.families import family_of
from localsim.runs.plan import Plan
from localsim.runs.scripted import simulated
from localsim.scenarios.find import shipped
from localsim.store.records import ScoreRecord
from localsim.web.floor.state import Live

LESSON = "mutual_friends_05"
"""Their first line in it could not be known, whatever the seed."""


@dataclass(frozen=True)
class Telltale:
    """A talk with a line that nobody could know, or could have been expected to."""

    number: int
    """That of the talk in the class; 0 for scripted players."""
    mode: Mode
    names: tuple[str, ...]
    turns: Sequence[Turn]
    marked: frozenset[int]
    """The turns that nobody could know from the talk."""


def found_in(lives: Iterable[Live]) -> Telltale | None:
    """The talk of mindreaders whose line comes earliest, then by number; None if no talk has one.

    An agent sees no other side: its early hit is luck, or was worked out from words that the rules did not read.
    """
    live = min(
        (live for live in lives if live.completed and live.hits and live.meeting.mode == "mindreaders"),
        key=lambda live: (min(live.hits), live.meeting.number),
        default=None,
    )
    if live is None:
        return None
    names = live.spec.scenario.names
    return Telltale(live.meeting.number, live.meeting.mode, names, tuple(live.turns), frozenset(live.hits))


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
    if not hits:
        return None
    return Telltale(0, "mindreaders", loaded.scenario.names, episode.transcript.turns, frozenset(hits))
