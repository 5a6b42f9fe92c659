"""A class plays games with the decisions of an earlier class: who decides, what is stored, and what a phone sees."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from localsim.conversation.transcript import Action, Turn
from localsim.errors import InvalidInput
from localsim.reports.audit import audit_run
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from localsim.web.classroom import replaying
from localsim.web.classroom.phone_pages import ENTRANCE
from localsim.web.floor.beats import start_of
from tests.test_class import Phone, hall_at, serving
from tests.test_class_trouble import until
from tests.web_server import at_once, field

GAME = "matrix_prisoners"
CHOICES = ("F", "J", "J", "F")


def earlier_class(path: Path) -> str:
    """Two people play a game: the first role chooses as CHOICES says, the other the opposite; returns the run."""
    with hall_at(path, GAME) as hall:
        seats = [hall.join(key) for key in ("one", "two")]
        live = hall.live[1]
        roles = {hall.register.role_of(seat): seat for seat in seats}
        first, second = live.spec.scenario.names
        made = dict.fromkeys(roles, 0)
        while not live.ended:
            for role in (first, second):
                with hall.changed:
                    ways = hall.ways(live, role)
                if not ways:
                    continue
                choice = CHOICES[made[role] % len(CHOICES)]
                if role == second:
                    choice = "J" if choice == "F" else "F"
                with hall.changed:
                    place = start_of(live.turns)
                hall.take(live, role, place, Action("choose", "", (choice,)))
                made[role] += 1
            time.sleep(0.02)
        hall.end()
        until(lambda: hall.register.closed)
        return hall.opening.run_id


class Chooser(Phone):
    """A phone that chooses F whenever it is asked."""

    def choose(self) -> None:
        text = self.get()
        text = self.post(ENTRANCE, csrf=field(text, "csrf"), code=self.code)
        assert "the other seats do what an earlier class did" in text
        text = self.post("/class/join", csrf=field(text, "csrf"))
        deadline = time.monotonic() + 100
        while not any(words in text for words in ("<h1>Your bet", "Read a talk of others", "bets are stored")):
            assert time.monotonic() < deadline, text[-1500:]
            if 'name="value0"' in text:
                self.said.append(text)
                data = {"csrf": field(text, "csrf"), "turn": field(text, "turn"), "kind": "choose"}
                self.post("/class/say", **data, value0="F", text="")
            time.sleep(0.2)
            text = self.get()


def test_phones_play_with_the_decisions_of_an_earlier_class(tmp_path: Path) -> None:
    path = tmp_path / "c.duckdb"
    run_id = earlier_class(path)
    decisions = replaying.decisions_of(Store(path), run_id)
    with serving(tmp_path, "--against", run_id, "--replay", "--new", scenarios=(GAME,)) as server:
        phones = [Chooser(server.base, number, server.code()) for number in range(3)]
        with at_once(phones, Chooser.choose, 110):
            pass
        assert not [problem for phone in phones for problem in phone.problems]
        assert all("does what a player of an earlier class did" in phone.said[0] for phone in phones)
        teacher = server.teacher()
        page = teacher.get("/class/room").text
        teacher.post("/class/room/reveal", data={"csrf": field(page, "csrf")})
        teacher.post("/class/room/end", data={"csrf": field(page, "csrf"), "sure": "1"})
        until(lambda: "decisions were those of the earlier class" in server.told())
        until(lambda: "leaks in each mode" in server.told())
    store = server.store
    (new,) = (row["run_id"] for row in store.rows("SELECT run_id FROM runs WHERE run_id <> ?", [run_id]))
    made = store.rows(
        "SELECT g.episode_id, g.speaker, g.details_json, t.action, t.values_json FROM generations g "
        "JOIN turns t ON t.episode_id = g.episode_id AND t.turn = g.turn "
        "JOIN episodes e ON e.episode_id = g.episode_id WHERE e.run_id = ? "
        "AND json_exists(g.details_json, '$.replayed') ORDER BY g.episode_id, g.turn",
        [new],
    )
    assert len({row["episode_id"] for row in made}) == 3, "every phone played"
    scenario = find_scenarios([GAME])[0].hash
    for row in made:
        details = json.loads(row["details_json"])
        source = details["replayed"]
        assert "fallback" not in details and source["seat"] == row["speaker"]
        (played,) = decisions[scenario, row["speaker"]]
        assert source["episode"] == played.episode_id
        assert tuple(json.loads(row["values_json"])) == played.decisions[source["decision"]].action.values
    people = store.rows("SELECT DISTINCT model FROM v_generations WHERE run_id = ?", [new])
    assert {row["model"] for row in people} == {"human", replaying.name_for(run_id)}
    found = audit_run(store, new)
    assert found.prompts_checked > 0 and not found.violations


def test_what_is_not_allowed_now_or_was_never_decided_is_decided_by_the_fallback(tmp_path: Path) -> None:
    path = tmp_path / "c.duckdb"
    with hall_at(path, GAME) as hall:
        for key in ("one", "two"):
            hall.join(key)
        live = hall.live[1]
        first, second = live.spec.scenario.names
        scenario = hall.scenarios[0].hash

        class Asked:
            name = "scripted"
            asked = 0

        def decide(values: tuple[str, ...] | None, kind: str = "choose") -> tuple[Action | None, dict[str, object]]:
            played = replaying.PastRole("old", "agents", (Turn(0, first, Action(kind, "", values)),))
            backend = replaying.EarlierClass("run", {(scenario, first): [played]}, hall.scenarios, Asked(), {}.get)  # type: ignore[arg-type]
            return backend._decide(live, first)

        assert decide(("F",))[0] == Action("choose", "", ("F",))
        for values, kind in (((), "choose"), (("Z",), "choose"), (("F",), "offer")):
            action, details = decide(values, kind)
            assert action is None and details["fallback"] == "not allowed now"
            assert details["replayed"] == {"episode": "old", "seat": first, "decision": 0}
        backend = replaying.EarlierClass("run", {}, hall.scenarios, Asked(), {}.get)  # type: ignore[arg-type]
        assert backend._decide(live, second)[1]["fallback"] == "no person had this role"


def test_only_games_that_the_earlier_class_played_are_replayed() -> None:
    with pytest.raises(InvalidInput, match="no finished talk of people on"):
        replaying.refuse_without({}, find_scenarios([GAME]), "run")
    with pytest.raises(InvalidInput, match="no moves"):
        replaying.refuse_without({}, find_scenarios(["mutual_friends_01"]), "run")
