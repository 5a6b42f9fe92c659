"""People play moves and phases: the page of a seat shows what its role can read, and takes what is allowed now."""

from __future__ import annotations

from pathlib import Path

import pytest

from localsim.cli.play import read_action
from localsim.conversation.rules.deciding import every_way
from localsim.conversation.rules.lines import Bound
from localsim.conversation.rules.values import Move, Param
from localsim.conversation.transcript import Action
from localsim.errors import InvalidInput
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from localsim.web.floor.ways import action_from, forms_of
from tests.test_web_people import wait_for
from tests.web_server import client_of, field


def test_nobodys_page_shows_another_ones_private_turn(tmp_path: Path) -> None:
    store = Store(tmp_path / "rules.duckdb")
    with client_of(store) as client:
        page = client.get("/play").text
        data = {"csrf": field(page, "csrf"), "scenario": "where_to_eat", "against": "person", "mode": "agents"}
        seat = client.post("/play", data={**data, "role": "Nora"}, follow_redirects=False).headers["location"]
        game, _ = client.app.state.stage.find(*seat.split("/")[2:])  # type: ignore[attr-defined]
        seats = {name: f"{seat.rpartition('/')[0]}/{key}" for key, name in game.seats.items()}

        def say(who: str, kind: str, *values: str, text: str = "") -> str:
            wait_for(lambda: game.asked == who)
            shown = client.get(seats[who]).text
            form = {"csrf": field(shown, "csrf"), "turn": field(shown, "turn"), "kind": kind}
            given = {f"value{place}": value for place, value in enumerate(values)}
            answer = client.post(seats[who], data={**form, **given, "text": text}, follow_redirects=False)
            return answer.text if answer.status_code == 400 else ""

        assert "not allowed now" in say("Nora", "vote", "garden")
        assert "this is no possible value of to" in say("Nora", "to", "Jon", text="psst, the bill")
        offered = client.get(seats["Nora"]).text
        assert 'type="checkbox" name="value0" value="Jan"' in offered and 'value="vote"' not in offered
        assert 'value="to"' not in client.get(seats["Emil"]).text, "only who is asked has forms"
        assert say("Nora", "to", "Jan", text="psst, the bill") == ""
        wait_for(lambda: game.asked == "Emil")
        hears = {who: "psst" in client.get(seats[who]).text for who in seats}
        assert hears == {"Nora": True, "Emil": False, "Sofia": False, "Jan": True}
        for who in ("Emil", "Sofia", "Jan", "Nora", "Emil", "Sofia", "Jan"):
            assert say(who, "speak", text="Fine.") == ""
        assert say("Nora", "vote", "garden") == ""
        wait_for(lambda: game.asked == "Emil")
        assert "vote garden" in client.get(seats["Nora"]).text and "vote garden" not in client.get(seats["Emil"]).text
        told = {who: "cake is ready" in client.get(f"{seats[who]}/turns").text for who in seats}
        assert told == {"Nora": False, "Emil": True, "Sofia": False, "Jan": False}
        for who in ("Emil", "Sofia", "Jan"):
            assert say(who, "vote", "noodle bar") == ""
        wait_for(lambda: game.done, 240)
        assert game.talk.turns[-1].line == "(Count of vote: noodle bar 3, garden 1.)"


def test_forms_are_made_from_the_allowed_moves() -> None:
    values = ({"number": (0, 20), "step": "0.25"}, {"agents": "one"})
    price = Move.model_validate({"name": "offer", "tell": "To offer", "values": values})
    told = Move(name="tell", tell="To tell", values=(Param(agents="several"),), text="must")
    ways = (Bound(price, ("Bo", "Cy")), Bound(told, ("Bo", "Cy")), "speak", "leave")
    offer, tell, speak, leave = forms_of(ways)
    assert [field.kind for field in (*offer.fields, *tell.fields)] == ["number", "person", "people"]
    assert (offer.fields[0].least, offer.fields[0].most, offer.fields[0].step) == ("0.00", "20.00", "0.25")
    assert (offer.words, tell.words, speak.words, leave.words) == ("may", "must", "must", "may")
    sent = [("kind", "offer"), ("value0", "12.5"), ("value1", "Cy"), ("text", "please")]
    assert action_from(sent, ways, 80) == Action("offer", "please", ("12.50", "Cy"))
    both = [("kind", "tell"), ("value0", "Cy"), ("value0", "Bo"), ("text", "psst")]
    assert action_from(both, ways, 80) == Action("tell", "psst", ("Bo", "Cy"))
    for wrong in (
        {"kind": "vote"},
        {"kind": "offer", "value0": "21", "value1": "Bo"},
        {"kind": "tell", "text": "psst"},
    ):
        with pytest.raises(InvalidInput):
            action_from(list(wrong.items()), ways, 80)


def test_a_move_is_typed_as_it_is_written() -> None:
    ways = every_way(find_scenarios(["where_to_eat"])[0].scenario, "Nora")
    assert read_action("/to Emil, Jan: psst: hush", ways) == Action("to", "psst: hush", ("Emil", "Jan"))
    assert read_action("/vote noodle bar", ways) == Action("vote", "", ("noodle bar",))
    assert read_action("Hello.", ways) == Action("speak", "Hello.")
    for text in ("/vote pizza", "/to Emil", "/to: psst", "/leave", "/shout x"):
        with pytest.raises(InvalidInput):
            read_action(text, ways)
