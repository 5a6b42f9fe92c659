"""What a class found: talks, success and length by mode, bets against the truth, and the answer in a sentence."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from localsim.conversation.episode import Mode
from localsim.families import family_of
from localsim.families.base import SUCCESS
from localsim.reports.evidence import playing
from localsim.stats import intervals
from localsim.store.database import Store
from localsim.store.queries import classes as queries
from localsim.web.classroom.hall import Hall
from localsim.web.classroom.seats import MODES
from localsim.web.floor.state import Live


@dataclass(frozen=True)
class ModeRow:
    """The talks of one mode."""

    mode: Mode
    finished: int
    scored: int
    """Talks whose success is known."""
    successes: int
    turns: float | None
    """Mean length of the finished talks; None without one."""
    going: int = 0
    rated: int = 0
    """Finished talks of which it is known if they play."""
    faults: Mapping[str, int] = field(default_factory=dict)
    """Worst fault of a talk that does not play -> talks."""


@dataclass(frozen=True)
class BetRow:
    """The bets of players who read a talk of others in one mode."""

    mode: Mode
    saw: int
    """Players who said that both sides saw everything."""
    unseen: int
    right: int


@dataclass(frozen=True)
class Bets:
    """All bets of a class."""

    rows: tuple[BetRow, ...]
    best: Mapping[Mode, int]
    """Mode -> players who bet that it does best."""

    @property
    def count(self) -> int:
        """The number of bets on what the players of a talk saw."""
        return sum(row.saw + row.unseen for row in self.rows)

    @property
    def placed(self) -> int:
        """The number of bets of both kinds."""
        return self.count + sum(self.best.values())

    @property
    def right(self) -> int:
        """The number of bets that named rightly what the players of a talk saw."""
        return sum(row.right for row in self.rows)


@dataclass(frozen=True)
class Outcome:
    """A talk that was played to its end."""

    scenario_id: str
    mode: str
    success: float | None
    turns: int
    fault: str | None = None
    """The worst fault of a talk that does not play; '' if it plays, None if that is not scored."""

    def beats(self, other: Outcome) -> bool:
        """Return True if this talk alone reached its goal, or both did and this one in fewer turns."""
        if self.success != 1:
            return False
        return other.success != 1 or self.turns < other.turns


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


def has_goal(hall: Hall) -> bool:
    """Return True if success is scored in every scenario of the class."""
    families = [loaded.scenario.family for loaded in hall.scenarios]
    return all(name and any(each.key == SUCCESS.key for each in family_of(name).measures) for name in families)


def by_mode(hall: Hall) -> list[ModeRow]:
    """The talks of this class so far, a row for each mode."""
    with hall.changed:
        done = _outcomes(hall)
        going = Counter(live.meeting.mode for live in hall.live.values() if not live.ended)
    return [_row(mode, done, going[mode]) for mode in MODES]


def _row(mode: Mode, done: Sequence[Outcome], going: int = 0) -> ModeRow:
    """Return the row of a mode from the finished talks of all modes."""
    talks = [talk for talk in done if talk.mode == mode]
    scored = [talk.success for talk in talks if talk.success is not None]
    faults = [talk.fault for talk in talks if talk.fault is not None]
    turns = sum(talk.turns for talk in talks) / len(talks) if talks else None
    reached = sum(success == 1 for success in scored)
    return ModeRow(mode, len(talks), len(scored), reached, turns, going, len(faults), Counter(filter(None, faults)))


def bets_of(hall: Hall) -> Bets:
    """The bets of this class so far."""
    with hall.changed:
        placed = [bet for seat in hall.register.seats.values() for bet in seat.bets.values()]
        read = [
            (hall.register.meetings[bet.about].mode, bet.saw)
            for bet in placed
            if bet.about is not None and bet.saw is not None
        ]
    return _bets(read, [bet.best for bet in placed])


def _bets(read: Sequence[tuple[str, bool]], best: Sequence[str | None]) -> Bets:
    """All bets, from those on talks that were read (their mode, and if both sides saw everything) and on the modes."""
    rows = []
    for mode in MODES:
        saw = sum(said for each, said in read if each == mode)
        unseen = sum(not said for each, said in read if each == mode)
        rows.append(BetRow(mode, saw, unseen, saw if mode == "mindreaders" else unseen))
    return Bets(tuple(rows), {mode: sum(each == mode for each in best) for mode in MODES})


def earlier(store: Store, run_id: str) -> Earlier:
    """The talks and bets of an earlier class, from the database."""
    done = [
        Outcome(talk.scenario_id, talk.mode, talk.success, talk.turns, talk.fault)
        for talk in queries.talks_of_run(store, run_id)
        if talk.status == "completed"
    ]
    values = [(bet.mode, json.loads(bet.value_json)) for bet in queries.bets_of_run(store, run_id)]
    read = [(mode, bool(value["saw"])) for mode, value in values if value.get("saw") is not None]
    bets = _bets(read, [value.get("best") for _, value in values])
    scored = [talk for talk in done if talk.success is not None]
    return Earlier(run_id, [_row(mode, done) for mode in MODES], bets, scored)


def outcome_of(live: Live) -> Outcome | None:
    """A talk of this class; None until it is completed."""
    if not live.completed:
        return None
    return Outcome(live.spec.scenario.id, live.meeting.mode, live.success, len(live.turns), live.fault)


def _outcomes(hall: Hall) -> list[Outcome]:
    return [talk for talk in map(outcome_of, hall.live.values()) if talk is not None]


def contest(hall: Hall, before: Earlier) -> tuple[int, int, int]:
    """Play this class against the earlier one: pairs of talks that this class won, that the other won, and ties.

    A pair is a talk of each class on the same scenario in the same mode.
    """
    with hall.changed:
        own = _outcomes(hall)
    pairs = [(talk, rival) for talk in own for rival in before.rivals(talk)]
    won, lost = sum(a.beats(b) for a, b in pairs), sum(b.beats(a) for a, b in pairs)
    return won, lost, len(pairs) - won - lost


# ---- sentences -----------------------------------------------------------------------------------------------------


def answer(rows: Sequence[ModeRow], *, goal: bool) -> str:
    """What the talks of a class say about the modes, in sentences that a class understands."""
    own, both = rows
    if not own.finished or not both.finished:
        missing = "each side saw only its own" if not own.finished else "both sides saw everything"
        return f"No talk in which {missing} has finished, so this class cannot compare the two halves."
    if broken := [row for row in rows if not _plays(row)]:
        counts = (f"{sum(row.faults.values())} of {row.rated} talks in {row.mode}" for row in broken)
        faults = playing.listed(sum((Counter(row.faults) for row in broken), Counter[str]()))
        return f"{' and '.join(counts)} do not play ({faults}). So this class has no answer."
    if not goal or not own.scored or not both.scored:
        return (
            f"Talks in which both sides saw everything (mindreaders) had {both.turns:.1f} turns on average, talks in "
            f"which each saw its own side (agents) had {own.turns:.1f}. These scenarios have no goal that is scored."
        )
    first, second = (intervals.share(row.successes, row.scored) for row in (both, own))
    points = round(100 * ((first.value or 0) - (second.value or 0)))
    difference = f"{points:+d} points for seeing everything" if points else "the same share in both"
    overlap = (first.low or 0) <= (second.high or 1) and (second.low or 0) <= (first.high or 1)
    verdict = (
        "The two intervals overlap, so this class alone cannot tell the modes apart."
        if overlap
        else "The two intervals do not overlap: chance alone rarely makes such a difference."
    )
    return (
        f"When both sides saw everything (mindreaders), {_reached(both, first)}; when each saw its own side (agents), "
        f"{_reached(own, second)}: {difference}. {verdict}"
    )


def _plays(row: ModeRow) -> bool:
    return not playing.too_many(sum(row.faults.values()), row.rated)


def _reached(row: ModeRow, share: intervals.Estimate) -> str:
    between = f"95% interval {share.low or 0:.0%} to {share.high or 0:.0%}"
    return f"{row.successes} of {row.scored} talks reached their goal ({between})"


def best_mode(rows: Sequence[ModeRow]) -> Mode | None:
    """The mode with the larger share of successes; None for a tie, or where one has no talk that is scored or too many
    that do not play.
    """
    if any(not row.scored or not _plays(row) for row in rows):
        return None
    shares = {row.mode: row.successes / row.scored for row in rows}
    top = max(shares.values())
    leaders = [mode for mode, value in shares.items() if value == top]
    return leaders[0] if len(leaders) == 1 else None


def contest_sentence(won: int, lost: int, ties: int) -> str:
    """How this class did against the earlier one; "" without a pair of talks to compare."""
    pairs = won + lost + ties
    if not pairs:
        return ""
    return (
        f"Against the earlier class, talk by talk on the same scenario in the same mode: won {won}, lost {lost}, tied "
        f"{ties} of {pairs}. A talk wins if it alone reaches its goal, or reaches it in fewer turns."
    )


def rivals_sentence(talk: Outcome, rivals: Sequence[Outcome]) -> str:
    """How a talk did against those of the earlier class on the same scenario in the same mode; "" without one."""
    if not rivals:
        return ""
    reached = [each for each in rivals if each.success == 1]
    turns = f", in {sum(each.turns for each in reached) / len(reached):.0f} turns on average" if reached else ""
    return (
        f"The earlier class played this scenario in this mode {len(rivals)} times and reached the goal {len(reached)} "
        f"times{turns}. Your talk had {talk.turns} turns: it beats {sum(talk.beats(each) for each in rivals)} of them "
        f"and loses to {sum(each.beats(talk) for each in rivals)}."
    ).replace(" 1 times", " once")


def bets_sentence(bets: Bets) -> str:
    """How many players could tell from a talk of others what its players saw."""
    if not bets.count:
        return "Nobody has bet on a talk of others."
    chance = "Guessing would be right in half of the cases."
    return f"{bets.right} of {bets.count} bets named rightly what the players of another talk could see. {chance}"
