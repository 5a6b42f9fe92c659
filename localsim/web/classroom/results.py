"""What a class found: its talks and bets in numbers, mode by mode. `telling` says them in words."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from statistics import fmean, variance
from typing import TypeVar

from localsim.backends.person import NAME
from localsim.conversation.episode import Mode
from localsim.families import family_of
from localsim.families.base import SUCCESS
from localsim.families.language import has_foreigner
from localsim.reports.evidence import playing
from localsim.stats.intervals import CONFIDENCE, NOTHING, Estimate, share, t_quantile
from localsim.store.database import Store
from localsim.store.episodes import load_episode
from localsim.store.queries import classes as queries
from localsim.web.classroom.hall import Hall
from localsim.web.classroom.replaying import is_earlier
from localsim.web.classroom.seats import GUESSES, MODES, Guess, Question
from localsim.web.floor.state import Live
from localsim.web.phrases.table import half_up

SAME = {"turns": 1.0, "hits": 0.1}
"""Modes whose means differ by less than this have no difference: turns, and a share of talks."""
_MIXED = 0.15
"""Shares of a type of task that differ by this between the halves are said."""
FEWEST = 3
"""With fewer talks of a mode no bet is decided: one talk would decide it."""
Key = TypeVar("Key", int, str)
"""What names a talk: its number, or its episode."""


@dataclass(frozen=True)
class Outcome:
    """A talk that was played to its end."""

    scenario_id: str
    mode: str
    success: float | None
    turns: int
    """As many as count (`counted`)."""
    fault: str | None = None
    """The worst fault of a talk that does not play; '' if it plays, None if that is not scored."""
    hit: bool | None = None
    """True if a line in it could not be known from the talk; None if that is not judged."""
    computer: bool = False
    """True if a program played a role."""

    def beats(self, other: Outcome) -> bool:
        """Return True if this talk alone reached its goal, or both did and this one in fewer turns."""
        if self.success != 1:
            return False
        return other.success != 1 or self.turns < other.turns


@dataclass(frozen=True)
class ModeRow:
    """The talks of one mode."""

    mode: Mode
    talks: Sequence[Outcome] = ()

    @property
    def finished(self) -> int:
        """How many talks were played to their end."""
        return len(self.talks)

    @property
    def turns(self) -> float | None:
        """Mean of the turns that count in the finished talks, to the tenth that pages show; None without one."""
        return half_up(fmean(talk.turns for talk in self.talks)) if self.talks else None

    @property
    def successes(self) -> tuple[int, int]:
        """How many talks reached their goal, of those whose success is known."""
        scored = [talk.success for talk in self.talks if talk.success is not None]
        return sum(success == 1 for success in scored), len(scored)

    @property
    def hits(self) -> tuple[int, int]:
        """How many talks have an untold hit, of those that are judged."""
        judged = [talk.hit for talk in self.talks if talk.hit is not None]
        return sum(judged), len(judged)

    @property
    def broken(self) -> tuple[int, int]:
        """How many talks do not play, of those of which it is known."""
        rated = [talk.fault for talk in self.talks if talk.fault is not None]
        return sum(map(bool, rated)), len(rated)

    @property
    def plays(self) -> bool:
        """False if too many talks are no conversations."""
        return not playing.too_many(*self.broken)


@dataclass(frozen=True)
class BetRow:
    """The bets of players who read a talk of others in one mode."""

    mode: Mode
    saw: int
    """Bets that both sides saw everything."""
    unseen: int
    right: int

    @property
    def count(self) -> int:
        """All of them."""
        return self.saw + self.unseen


@dataclass(frozen=True)
class Bets:
    """All bets of a class."""

    rows: Sequence[BetRow]
    on: Mapping[Question, Mapping[Guess, int]]
    """Question -> answer -> bets on it."""
    beside: Sequence[BetRow] = ()
    """Bets on talks that stand apart (`parted`)."""

    @property
    def count(self) -> int:
        """The number of bets on what the players of a talk saw."""
        return sum(row.count for row in self.rows)

    @property
    def right(self) -> int:
        """The number of bets that named rightly what the players of a talk saw."""
        return sum(row.right for row in self.rows)


@dataclass(frozen=True)
class Earlier:
    """An earlier class, against which this one plays."""

    run_id: str
    rows: Sequence[ModeRow]
    bets: Bets
    talks: Sequence[Outcome]
    """Those whose success is known."""

    def rivals(self, talk: Outcome) -> list[Outcome]:
        """The talks of the earlier class on the same scenario in the same mode; none if the success is not scored."""
        if talk.success is None:
            return []
        return [each for each in self.talks if (each.scenario_id, each.mode) == (talk.scenario_id, talk.mode)]


def questions(hall: Hall) -> tuple[Question, ...]:
    """What the players of a class bet on: what is scored in all its scenarios, if it plays both modes."""
    families = [family_of(loaded.scenario.family) for loaded in hall.scenarios]
    asked: list[Question] = []
    if all(any(each.key == SUCCESS.key for each in family.measures) for family in families):
        asked.append("turns")
    if all(family.hits for family in families):
        asked.append("hits")
    return tuple(asked) if len(hall.opening.modes) > 1 else ()


def by_mode(hall: Hall) -> tuple[list[ModeRow], list[ModeRow]]:
    """The talks of this class so far, a row for each mode: those that count, and those that stand apart."""
    with hall.changed:
        count, apart = parted(outcomes(hall))
    return _rows(count.values()), _rows(apart.values())


def parted(talks: Mapping[Key, Outcome]) -> tuple[dict[Key, Outcome], dict[Key, Outcome]]:
    """Split talks into those that count and those with the computer, which stand apart; if all are, they count."""
    alone = all(talk.computer for talk in talks.values())
    count = {key: talk for key, talk in talks.items() if alone or not talk.computer}
    return count, {key: talk for key, talk in talks.items() if key not in count}


def _rows(done: Iterable[Outcome]) -> list[ModeRow]:
    talks = list(done)
    return [ModeRow(mode, [talk for talk in talks if talk.mode == mode]) for mode in MODES]


def bets_of(hall: Hall) -> Bets:
    """The bets of this class so far; one on a talk that does not count is left out."""
    with hall.changed:
        count, apart = parted(outcomes(hall))
        placed = [bet for seat in hall.register.seats.values() for bet in seat.bets.values()]
    read = [(bet.about, bet.saw) for bet in placed if bet.about is not None and bet.saw is not None]
    on: dict[Question, Sequence[str | None]] = {
        "turns": [bet.turns for bet in placed],
        "hits": [bet.hits for bet in placed],
    }
    return Bets(_bet_rows(count, read), _bet_counts(on), _bet_rows(apart, read))


def _bet_rows(talks: Mapping[Key, Outcome], read: Sequence[tuple[Key, bool]]) -> list[BetRow]:
    """The bets on some talks, from all bets on talks that were read: which one, and if both sides saw everything."""
    rows = []
    for mode in MODES:
        said = [saw for about, saw in read if about in talks and talks[about].mode == mode]
        rows.append(BetRow(mode, sum(said), len(said) - sum(said), said.count(mode == "mindreaders")))
    return rows


def _bet_counts(on: Mapping[Question, Sequence[str | None]]) -> Mapping[Question, Mapping[Guess, int]]:
    return {question: {guess: given.count(guess) for guess in GUESSES} for question, given in on.items()}


def earlier(store: Store, run_id: str) -> Earlier:
    """The talks and bets of an earlier class that count, from the database."""
    done = {
        talk.episode_id: Outcome(
            talk.scenario_id, talk.mode, talk.success, counted(talk.family, talk.turns, talk.decided), talk.fault,
            computer=talk.model != NAME,
        )
        for talk in queries.talks_of_run(store, run_id)
        if talk.status == "completed" and not _foreign(store, talk.episode_id)
    }  # fmt: skip
    count, _ = parted(done)
    values = [(bet.episode_id, json.loads(bet.value_json)) for bet in queries.bets_of_run(store, run_id)]
    read = [(about, bool(value["saw"])) for about, value in values if value.get("saw") is not None]
    on: dict[Question, Sequence[str | None]] = {
        "turns": [value.get("turns") for _, value in values],
        "hits": [value.get("hits") for _, value in values],
    }
    scored = [talk for talk in count.values() if talk.success is not None]
    return Earlier(run_id, _rows(count.values()), Bets(_bet_rows(count, read), _bet_counts(on)), scored)


def _foreign(store: Store, episode_id: str) -> bool:
    stored = load_episode(store, episode_id)
    return has_foreigner(stored.transcript.turns, stored.scenario)


def outcome_of(live: Live) -> Outcome | None:
    """A talk of this class that counts; None until it is completed, and for one in another language."""
    if not live.completed or live.foreign:
        return None
    scenario = live.spec.scenario
    hit = bool(live.hits) if live.judged else None
    turns = counted(scenario.family, len(live.turns), live.decided)
    computer = any(model != NAME and not is_earlier(model) for model in live.spec.models.values())
    return Outcome(scenario.id, live.meeting.mode, live.success, turns, live.fault, hit, computer)


def counted(family: str | None, turns: int, decided: int | None) -> int:
    """The turns of a talk that count: in a search or a bargain that succeeds, up to the turn that decides it.

    Thanks and goodbyes after it say nothing of who saw what. Other talks count whole.
    """
    return turns if decided is None or not family_of(family).hits else decided + 1


def outcomes(hall: Hall) -> dict[int, Outcome]:
    """Number -> the talk, for those of this class so far that are judged. Only under the lock."""
    found = {number: outcome_of(live) for number, live in hall.live.items()}
    return {number: talk for number, talk in found.items() if talk is not None}


def contest(hall: Hall, before: Earlier) -> tuple[int, int, int]:
    """Play this class against the earlier one: pairs of talks that this class won, that the other won, and ties.

    A pair is a talk of each class on the same scenario in the same mode.
    """
    with hall.changed:
        own, _ = parted(outcomes(hall))
    pairs = [(talk, rival) for talk in own.values() for rival in before.rivals(talk)]
    won, lost = sum(a.beats(b) for a, b in pairs), sum(b.beats(a) for a, b in pairs)
    return won, lost, len(pairs) - won - lost


# ---- the answer ----------------------------------------------------------------------------------------------------


def difference(rows: Sequence[ModeRow], question: Question = "turns") -> Estimate:
    """How much more the talks of mindreaders have than those of agents: turns, or the share with an untold hit.

    Turns have the interval of Welch's t test, shares that of Newcombe (1998, Statistics in Medicine 17, method 10). No
    ends where a mode has a single talk, or no length varies: nothing shows then what chance does. No value where there
    is nothing to compare.
    """
    own, both = rows
    if own.turns is None or both.turns is None or not all(row.plays for row in rows):
        return NOTHING
    if question == "turns":
        return _welch(both.turns - own.turns, *([float(talk.turns) for talk in row.talks] for row in rows))
    if not own.hits[1] or not both.hits[1]:
        return NOTHING
    less, more = (share(*row.hits) for row in rows)
    value = (more.value or 0.0) - (less.value or 0.0)
    low, high = (math.hypot(*ends) for ends in (_ends(more, less), _ends(less, more)))
    return Estimate(value, value - low, value + high, less.n + more.n)


def _ends(down: Estimate, up: Estimate) -> tuple[float, float]:
    """How far the first share may lie below its value, and the second above."""
    assert down.value is not None and down.low is not None and up.value is not None and up.high is not None
    return down.value - down.low, up.high - up.value


def _welch(value: float, own: Sequence[float], both: Sequence[float]) -> Estimate:
    n = len(own) + len(both)
    if min(len(own), len(both)) < 2:
        return Estimate(value, None, None, n)
    parts = [variance(each) / len(each) for each in (own, both)]
    if not sum(parts):
        return Estimate(value, None, None, n)
    spread = sum(part**2 / (len(each) - 1) for part, each in zip(parts, (own, both), strict=True))
    reach = t_quantile(int(sum(parts) ** 2 / spread), (1 + CONFIDENCE) / 2) * math.sqrt(sum(parts))
    middle = fmean(both) - fmean(own)
    return Estimate(value, middle - reach, middle + reach, n)


def mixed(rows: Sequence[ModeRow], tasks: Mapping[str, str | None]) -> bool:
    """True if there is a difference of turns and one half played a type of task more often than the other.

    Types need different numbers of turns, so they alone can make a difference. `tasks`: scenario -> its family.
    """
    if abs(difference(rows).value or 0.0) < SAME["turns"]:
        return False
    played = [[tasks[talk.scenario_id] for talk in row.talks] for row in rows]
    shares = [{task: done.count(task) / len(done) for task in set(tasks.values())} for done in played]
    return any(abs(shares[0][task] - shares[1][task]) >= _MIXED for task in shares[0])


def truth(rows: Sequence[ModeRow], question: Question) -> Guess | None:
    """The right answer to a question in this class; None where it does not decide it.

    A half is right if its difference is not small and chance rarely makes it; then one talk more or less would not
    undo it. No difference is right if the interval holds small ones only.
    """
    found = difference(rows, question)
    least = min(row.finished if question == "turns" else row.hits[1] for row in rows)
    if found.value is None or found.low is None or found.high is None or least < FEWEST:
        return None
    if -SAME[question] < found.low and found.high < SAME[question]:
        return "same"
    if found.low <= 0 <= found.high or abs(found.value) < SAME[question]:
        return None
    return "mindreaders" if (found.value < 0) == (question == "turns") else "agents"


# ---- picture ---------------------------------------------------------------------------------------------------------

WIDTH, HEIGHT = 400, 112
"""Of the part of one mode, in the units of the picture."""
_LEFT, _RIGHT, _BASE, _ROOM = 14, 386, 88, 56
"""The ends of the axis, the height of the lowest dots, and the room for a heap of dots."""
_STEP = 13.0
_LABELS = 6
"""Most numbers on the axis, with 0."""


@dataclass(frozen=True)
class Strip:
    """The dots of one mode. All numbers are places in the picture."""

    mode: Mode
    top: int
    dots: Sequence[tuple[float, float, bool]]
    """Place of each talk, and True for one that missed its goal."""
    mean: float
    mean_turns: float


@dataclass(frozen=True)
class Picture:
    """The strips of all modes that have a talk, and the axis of turns below each."""

    strips: Sequence[Strip]
    ticks: Sequence[tuple[float, int]]
    """Place and number of turns."""
    height: int

    @property
    def has_missed(self) -> bool:
        """True if a talk missed its goal."""
        return any(missed for strip in self.strips for *_, missed in strip.dots)


def picture(rows: Sequence[ModeRow]) -> Picture | None:
    """Draw the finished talks; None without one."""
    shown = [row for row in rows if row.turns is not None]
    most = max((talk.turns for row in shown for talk in row.talks), default=0)
    if not most:
        return None
    scale = (_RIGHT - _LEFT) / most
    heaps = [sorted((talk.turns, talk.success is not None and talk.success < 1) for talk in row.talks) for row in shown]
    step = min(_STEP, _ROOM / max(max(Counter(turns for turns, _ in heap).values()) for heap in heaps))
    strips = [
        Strip(
            row.mode,
            number * HEIGHT,
            [
                (round(_LEFT + turns * scale, 1), round(number * HEIGHT + _BASE - 7 - place * step, 1), missed)
                for turns, group in groupby(heap, key=itemgetter(0))
                for place, (_, missed) in enumerate(group)
            ],
            round(_LEFT + (row.turns or 0) * scale, 1),
            row.turns or 0,
        )
        for number, (row, heap) in enumerate(zip(shown, heaps, strict=True))
    ]
    apart = max(1, -(-most // (_LABELS - 1)))
    ticks = [(round(_LEFT + turns * scale, 1), turns) for turns in range(0, most + 1, apart)]
    return Picture(strips, ticks, HEIGHT * len(strips))
