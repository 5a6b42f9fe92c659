"""A class plays games: as many phones as a game has roles, and choices at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest

from localsim.conversation.transcript import Action
from localsim.errors import InvalidInput
from tests.test_class import hall_at
from tests.test_class_trouble import until


def test_phones_are_brought_together_for_as_many_roles_as_the_next_talk_has(tmp_path: Path) -> None:
    with hall_at(tmp_path / "c.duckdb", "where_to_eat") as hall:
        seats = [hall.join(str(number)) for number in range(9)]
        assert [len(talk.people) for talk in hall.register.talks.values()] == [4, 4]
        assert [seat.talk for seat in seats] == [1] * 4 + [2] * 4 + [None]


def test_in_a_simultaneous_beat_phones_choose_in_any_order_and_a_restart_keeps_their_choices(tmp_path: Path) -> None:
    path = tmp_path / "c.duckdb"
    with hall_at(path, "matrix_prisoners") as hall:
        seats = [hall.join(key) for key in ("one", "two")]
        live = hall.live[1]
        roles = {hall.register.role_of(seat): seat for seat in seats}
        first, second = live.spec.scenario.names
        until(lambda: bool(hall.ways(live, second)))
        hall.say(roles[second], 0, Action("choose", "", ("F",)))
        hall.say(roles[second], 0, Action("choose", "", ("F",)))
        with pytest.raises(InvalidInput, match="not your turn"):
            hall.say(roles[second], 0, Action("choose", "", ("J",)))
        assert not hall.ways(live, second) and hall.ways(live, first) and hall.awaited(live, second) == [first]
        assert live.turns == [], "nothing is shown before all have chosen"
    with hall_at(path, "matrix_prisoners") as hall:
        live = hall.live[1]
        roles = {hall.register.role_of(seat): seat for seat in hall.register.seats.values()}
        until(lambda: bool(hall.ways(live, first)))
        assert not hall.ways(live, second), "the choice was kept"
        hall.say(roles[first], 0, Action("choose", "", ("J",)))
        until(lambda: len(live.turns) == 3)
        assert [turn.line for turn in live.turns[:2]] == [f"{first} [choose J]", f"{second} [choose F]"]
        assert live.turns[2].told and bool(hall.ways(live, first)) and bool(hall.ways(live, second))
