"""A class plays games: as many phones as a game has roles, and choices at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from localsim.conversation.transcript import Action
from localsim.errors import InvalidInput
from localsim.web.classroom.phone_pages import ENTRANCE
from tests.test_class import Phone, hall_at, serving
from tests.test_class_trouble import until
from tests.web_server import at_once, field


def test_phones_are_brought_together_for_as_many_roles_as_the_next_talk_has(tmp_path: Path) -> None:
    with hall_at(tmp_path / "c.duckdb", "where_to_eat") as hall:
        seats = [hall.join(str(number)) for number in range(9)]
        assert [len(talk.people) for talk in hall.register.meetings.values()] == [4, 4]
        assert [seat.talk for seat in seats] == [1] * 4 + [2] * 4 + [None]


def test_in_a_simultaneous_beat_phones_choose_in_any_order_and_a_restart_keeps_their_choices(tmp_path: Path) -> None:
    path = tmp_path / "c.duckdb"
    with hall_at(path, "matrix_prisoners") as hall:
        for key in ("one", "two"):
            hall.join(key)
        live = hall.live[1]
        first, second = live.spec.scenario.names
        until(lambda: bool(hall.ways(live, second)))
        hall.take(live, second, 0, Action("choose", "", ("F",)))
        hall.take(live, second, 0, Action("choose", "", ("F",)))
        with pytest.raises(InvalidInput, match="not your turn"):
            hall.take(live, second, 0, Action("choose", "", ("J",)))
        assert not hall.ways(live, second) and hall.ways(live, first) and hall.awaited(live, second) == [first]
        assert live.turns == [], "nothing is shown before all have chosen"
    with hall_at(path, "matrix_prisoners") as hall:
        live = hall.live[1]
        until(lambda: bool(hall.ways(live, first)))
        assert not hall.ways(live, second), "the choice was kept"
        hall.take(live, first, 0, Action("choose", "", ("J",)))
        until(lambda: len(live.turns) == 3)
        assert [turn.line for turn in live.turns[:2]] == [f"{first} [choose J]", f"{second} [choose F]"]
        assert live.turns[2].told and bool(hall.ways(live, first)) and bool(hall.ways(live, second))


class Bidder(Phone):
    """A phone that bids a price of its own, twice, in each round in which it is asked."""

    def bid(self, told: Callable[[], None]) -> None:
        """Join, bid, and wait for the end of the auction."""
        text = self.get()
        text = self.post(ENTRANCE, csrf=field(text, "csrf"), code=self.code)
        text = self.post("/class/join", csrf=field(text, "csrf"))
        deadline = time.monotonic() + 100
        while "<h1>Your bet" not in text and "bets are stored" not in text:
            assert time.monotonic() < deadline, text[-1500:]
            if 'name="value0"' in text:
                data = {"csrf": field(text, "csrf"), "turn": field(text, "turn"), "kind": "bid"}
                self.post("/class/say", **data, value0=str(self.number), text="")
                self.said.append(str(self.number))
                told()
            time.sleep(0.3)
            text = self.get()


def test_thirty_phones_bid_at_once_while_the_server_is_killed(tmp_path: Path) -> None:
    with serving(tmp_path, scenarios=("auction_thirty",)) as server:
        phones = [Bidder(server.base, number, server.code()) for number in range(30)]
        bids: list[int] = []
        with at_once(phones, lambda phone: phone.bid(lambda: bids.append(phone.number)), 110) as errors:
            while len(bids) < 12 and not errors:
                time.sleep(0.02)
            server.kill()
            server.start()
        assert not [problem for phone in phones for problem in phone.problems]
        teacher = server.teacher()
        page = teacher.get("/class/room").text
        teacher.post("/class/room/reveal", data={"csrf": field(page, "csrf")})
        teacher.post("/class/room/end", data={"csrf": field(page, "csrf"), "sure": "1"})
        deadline = time.monotonic() + 60
        while "leaks in each mode" not in server.told() and time.monotonic() < deadline:
            time.sleep(0.2)
    episodes = server.store.rows("SELECT status, stop_reason FROM v_episodes")
    assert episodes == [{"status": "completed", "stop_reason": "done"}]
    made = server.store.rows("SELECT speaker, values_json ->> 0 AS bid FROM v_turns WHERE action = 'bid'")
    assert len(made) == len({row["speaker"] for row in made}) == 30
    assert sorted(int(float(row["bid"])) for row in made) == list(range(30)), "each bid once, and nothing lost"
