"""What a class found: talks, success and length by mode, bets against the truth, and the answer in a sentence."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from localsim.conversation.episode import Mode
from localsim.families import family_of
from localsim.families.base import SUCCESS
from localsim.reports.conversation import playing
from localsim.stats import intervals
from localsim.store.database import Store
from localsim.store.queries import classes as queries
from localsim.web.classroom.floor import Live
from localsim.web.classroom.hall import Hall
from localsim.web.classroom.seats import MODES


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
class Played:
    """A talk that was played to its end."""

    scenario_id: str
    mode: str
    success: float | None
    turns: int

    def beats(self, other: Played) -> bool:
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
    talks: Sequence[Played]
    """Those whose success is known."""

    def rivals(self, talk: Played) -> list[Played]:
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
        talks = [
            (live.talk.mode, live.ended, live.completed, (live.success, len(live.turns), live.fault))
            for live in hall.live.values()
        ]
    rows = []
    for mode in MODES:
        ended = [end for each, _, completed, end in talks if each == mode and completed]
        going = sum(each == mode and not over for each, over, *_ in talks)
        rows.append(_row(mode, ended, going))
    return rows


def _row(mode: Mode, talks: Sequence[tuple[float | None, int, str | None]], going: int = 0) -> ModeRow:
    """Return the row of finished talks: success, number of turns and worst fault of each."""
    scored = [success for success, *_ in talks if success is not None]
    turns = [length for _, length, _ in talks]
    faults = [fault for *_, fault in talks if fault is not None]
    return ModeRow(
        mode, len(talks), len(scored), sum(success == 1 for success in scored),
        sum(turns) / len(turns) if turns else None, going, len(faults), Counter(filter(None, faults)),
    )  # fmt: skip


def bets_of(hall: Hall) -> Bets:
    """The bets of this class so far."""
    with hall.changed:
        placed = [bet for seat in hall.register.seats.values() for bet in seat.bets.values()]
        read = [
            (hall.register.talks[bet.about].mode, bet.saw)
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
    talks = [row for row in queries.talks_of_run(store, run_id) if row["status"] == "completed"]
    rows = [
        _row(mode, [(row["success"], row["turns"], row["fault"]) for row in talks if row["mode"] == mode])
        for mode in MODES
    ]
    values = [(row["mode"], json.loads(row["value_json"])) for row in queries.bets_of_run(store, run_id)]
    read = [(mode, bool(value["saw"])) for mode, value in values if value.get("saw") is not None]
    bets = _bets(read, [value.get("best") for _, value in values])
    scored = [
        Played(row["scenario_id"], row["mode"], row["success"], row["turns"])
        for row in talks
        if row["success"] is not None
    ]
    return Earlier(run_id, rows, bets, scored)


def played(live: Live) -> Played | None:
    """A talk of this class; None until it is completed."""
    if not live.completed:
        return None
    return Played(live.spec.scenario.id, live.talk.mode, live.success, len(live.turns))


def contest(hall: Hall, before: Earlier) -> tuple[int, int, int]:
    """Play this class against the earlier one: pairs of talks that this class won, that the other won, and ties.

    A pair is a talk of each class on the same scenario in the same mode.
    """
    with hall.changed:
        own = [talk for live in hall.live.values() if (talk := played(live)) is not None]
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


def rivals_sentence(talk: Played, rivals: Sequence[Played]) -> str:
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
