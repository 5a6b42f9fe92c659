"""What a class tells of its two modes: the amount, if chance can make it, and when there is no answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from localsim.web.classroom import results, telling
from localsim.web.classroom.seats import MODES
from localsim.web.phrases.table import english


def rows_of(own: Sequence[int], both: Sequence[int], hits: tuple[int, int] = (0, 0)) -> list[results.ModeRow]:
    """Two modes whose talks took these turns; the first `hits` talks of each have a line that nobody could know."""
    modes = zip(MODES, (own, both), hits, strict=True)
    return [
        results.ModeRow(
            mode,
            [results.Outcome("friends", mode, 1.0, turns, "", number < some) for number, turns in enumerate(found)],
        )
        for mode, found, some in modes
    ]


def test_the_answer_names_the_amount_and_whether_chance_can_make_it() -> None:
    t = english()
    few, many = rows_of([6, 9], [3, 5]), rows_of([8, 9, 10, 9] * 3, [4, 5, 4, 5] * 3)
    assert telling.finding(few, t) == "Who saw everything needed 3.5 turns fewer: 4 instead of 7.5."
    assert "chance can make" in telling.certainty(few, t) and "rarely" in telling.certainty(many, t)
    (low, high) = results.difference(many)[1:3]
    assert low is not None and high is not None and -5.3 < low < -4.5 < high < -3.7
    assert results.difference(rows_of([8], [4])) == (-4.0, None, None, 2), "a single talk shows no chance"
    missed = [results.ModeRow(row.mode, [replace(talk, success=0.0) for talk in row.talks]) for row in few]
    assert telling.finding([few[0], missed[1]], t).endswith(
        "Goal reached: 0 of 2 with everything in view, 2 of 2 without."
    )
    same = rows_of([8, 8], [8, 7])
    assert "about the same" in telling.finding(same, t) and "hide" in telling.certainty(same, t)
    many = rows_of([8, 8, 8, 9] * 6, [8, 9, 8, 8] * 6)
    assert results.truth(many, "turns") == "same" and telling.certainty(many, t) == ""
    assert results.truth(same, "turns") == "same" and results.truth(few, "turns") == "mindreaders"
    assert telling.finding(rows_of([8], [9]), t) == "Who saw everything needed one turn more: 9 instead of 8."
    assert results.truth(rows_of([8] * 3, [4] * 3, (0, 2)), "hits") == "mindreaders"
    assert results.truth(rows_of([8] * 3, [4] * 3, (1, 1)), "hits") == "same"
    assert results.truth(rows_of([8] * 2, [4] * 3, (0, 3)), "hits") is None, "two talks are too few to judge a guess"
    assert results.truth([few[0], results.ModeRow("mindreaders")], "hits") is None
    broken = [results.ModeRow(row.mode, [replace(talk, fault="repeats itself") for talk in row.talks]) for row in few]
    assert (
        telling.finding(broken, t).startswith("4 of 4 talks are no conversations")
        and results.truth(broken, "turns") is None
    )
