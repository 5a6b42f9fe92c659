"""What a class found, in sentences that a class understands, in the language of its pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from localsim.backends.scripted import PEEKS, PREFIX
from localsim.stats.intervals import share
from localsim.web.classroom.results import SAME, Bets, ModeRow, Outcome, difference, truth
from localsim.web.classroom.seats import Question
from localsim.web.floor.state import Live
from localsim.web.phrases.table import Phrases, half_up

NAMES = {"mindreaders": "bet.both", "agents": "bet.own", "same": "bet.same"}
"""An answer to a bet -> its phrase."""


def finding(rows: Sequence[ModeRow], t: Phrases) -> str:
    """What the talks say about the modes, in one short sentence with the amount."""
    own, both = rows
    if own.turns is None or both.turns is None:
        return t.plain("answer.no_own" if own.turns is None else "answer.no_both")
    if not all(row.plays for row in rows):
        broken, talks = map(sum, zip(*(row.broken for row in rows if not row.plays), strict=True))
        return t.plain("answer.broken", broken=broken, talks=talks)
    means = {"both": t.number(both.turns), "own": t.number(own.turns)}
    amount = half_up(abs(both.turns - own.turns))
    if amount < SAME["turns"]:
        told = t.plain("answer.same", **means)
    else:
        name = "answer.fewer" if both.turns < own.turns else "answer.more"
        told = t.plain(name, count=amount, amount=t.number(amount), **means)
    if all(reached == scored for reached, scored in (own.successes, both.successes)):
        return told
    # A talk that gave up early is short, too.
    shares = {"own": own.successes, "both": both.successes}
    return f"{told} {t.plain('answer.goals', **{name: share_of(pair, t) for name, pair in shares.items()})}"


def share_of(pair: tuple[int, int], t: Phrases) -> str:
    """How many of how many."""
    return t.plain("room.of", some=pair[0], all=pair[1])


def certainty(rows: Sequence[ModeRow], t: Phrases, question: Question = "turns") -> str:
    """If chance can explain the difference, or hide one; '' where nothing is told, and for hits that decide a bet."""
    right, found = truth(rows, question), difference(rows, question)
    if found.value is None or right == "same":
        return ""
    if right is None:
        return t.plain("answer.hidden" if abs(round(found.value, 9)) < SAME[question] else "answer.chance")
    if question != "turns" or found.low is None or found.high is None:
        return ""
    return t.plain("answer.sure", low=t.number(found.low), high=t.number(found.high))


def foreign_sentence(lives: Iterable[Live], tongues: Mapping[str, str], t: Phrases) -> str:
    """How many finished talks are in another language, so that they do not count; '' for none."""
    found = [tongues[live.spec.scenario.id] for live in lives if live.completed and live.foreign]
    return t.plain("answer.foreign", count=len(found), tongue=tongue_in(found, t)) if found else ""


def computer_sentence(rows: Sequence[ModeRow], apart: Sequence[ModeRow], computer: str, t: Phrases) -> str:
    """Which talks are with the computer, and what it sees; '' for none."""
    count = sum(row.finished for row in apart)
    if not count and not any(talk.computer for row in rows for talk in row.talks):
        return ""
    which = t.plain("computer.apart", count=count) if count else t.plain("computer.every")
    return f"{which} {t.plain(sight_of(computer))}"


def sight_of(computer: str) -> str:
    """The phrase that says what a computer sees, and what it uses of that."""
    return {PREFIX: "computer.own", PEEKS: "computer.all"}.get(computer, "computer.sees")


def tongue_in(tongues: Iterable[str], t: Phrases) -> str:
    """In which language something is, or is to be, written."""
    name, *more = {f"tongue.{each}" for each in tongues}
    return t.plain("tongue.other" if more or name not in t.texts else name)


def contest_sentence(won: int, lost: int, ties: int, t: Phrases) -> str:
    """How this class did against the earlier one; "" without a pair of talks to compare."""
    pairs = won + lost + ties
    return t.plain("room.won", won=won, lost=lost, ties=ties, pairs=pairs) if pairs else ""


def rivals_sentence(talk: Outcome, rivals: Sequence[Outcome], t: Phrases) -> str:
    """How a talk did against those of the earlier class on the same scenario in the same mode; "" without one."""
    if not rivals:
        return ""
    reached = [each for each in rivals if each.success == 1]
    turns = sum(each.turns for each in reached) / len(reached) if reached else 0.0
    beats, loses = sum(talk.beats(each) for each in rivals), sum(each.beats(talk) for each in rivals)
    return " ".join(
        [
            t.plain("room.rivals", count=len(rivals), reached=len(reached)),
            *([t.plain("room.rivals_turns", turns=t.number(turns))] if reached else []),
            t.plain("room.rivals_beats", turns=talk.turns, beats=beats, loses=loses),
        ]
    )


def bets_sentence(bets: Bets, t: Phrases) -> str:
    """How many players could tell from a talk of others what its players saw."""
    if not bets.count:
        return t.plain("room.bets_none")
    told, found = t.plain("room.bets_saw", right=bets.right, count=bets.count), share(bets.right, bets.count)
    guessing = found.low is not None and found.high is not None and found.low <= 0.5 <= found.high
    return f"{told} {t.plain('room.bets_chance')}" if guessing else told


def guessed(bets: Bets, rows: Sequence[ModeRow], t: Phrases) -> list[str]:
    """What players bet on each question, and what is right in this class."""
    told = []
    for question, given in bets.on.items():
        if sum(given.values()):
            counts = {"both": given["mindreaders"], "own": given["agents"], "same": given["same"]}
            right = truth(rows, question)
            says = t.plain("room.bets_right", answer=t.plain(NAMES[right])) if right else t.plain("room.bets_open")
            doubt = certainty(rows, t, question) if question != "turns" else ""  # that of turns stands above
            told.append(f"{t.plain(f'room.bets_{question}', **counts)} {says} {doubt}".strip())
    return told
