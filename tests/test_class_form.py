"""A class that is started from the browser: the form makes the same wish as the command line, and the class begins."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import click.testing
import pytest
from starlette.testclient import TestClient

from localsim.cli.play import class_
from localsim.errors import InvalidInput
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from localsim.web.classroom import begin, results
from localsim.web.classroom.begin import serve_form
from localsim.web.classroom.form_pages import FORM
from localsim.web.classroom.hall import Wish
from localsim.web.classroom.telltale import PREPARED
from tests.test_class import app_of, free_port, hall_at
from tests.web_server import field

CHOICE: dict[str, Any] = {
    "scenario": ["mutual_friends_01", "craigslist_01"], "modes": "all", "partner": "scripted", "language": "de",
    "seats": "12", "host": "127.0.0.1",
}  # fmt: skip
WRONG: list[dict[str, Any]] = [
    {"scenario": []}, {"seats": "0"}, {"language": "xx"}, {"partner": "nobody"}, {"modes": "x"},
]  # fmt: skip


def visit(app: Any) -> TestClient:
    return TestClient(app, base_url="http://127.0.0.1:7580", raise_server_exceptions=False)


def test_a_form_begins_the_class_that_the_command_line_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Any] = []
    wishes: list[Wish] = []
    told: list[str] = []
    resumed = False

    def run(app: Any, listening: socket.socket, *_: object) -> None:
        listening.close()
        served.append(app)
        if len(served) == 1:
            app.state.stop = lambda: None
            with visit(app) as browser:
                page = browser.get("/").text
                if resumed:
                    assert f"Go on with {served[0].state.form.last.code} (one seat, Deutsch)" in page
                    browser.post(FORM, data={"csrf": field(page, "csrf"), "resume": "1"})
                    return
                assert "Eine Klasse starten" in page and '<option value="es" lang="es">Español' in page
                assert 'value="mutual_friends_01" selected' in page
                assert not any(f'value="{name}"' in page for name in PREPARED), "part 2 of the lesson shows them"
                assert ">immer programmierte Spieler<" in page and "Scripted players" not in page
                csrf = field(page, "csrf")
                for wrong in WRONG:
                    answer = browser.post(FORM, data={"csrf": csrf, **CHOICE, **wrong})
                    assert answer.status_code == 400 and 'role="alert"' in answer.text, wrong
                assert not Store(tmp_path / "f.duckdb").path.exists(), "nothing has begun"
                page = browser.post(FORM, data={"csrf": csrf, **CHOICE}).text
                assert 'http-equiv="refresh"' in page and "/class/teacher?key=" in page
        else:
            hall = app.state.hall
            hall.join("a phone")
            with visit(app) as projector:
                page = projector.get(f"/class/teacher?key={hall.opening.teacher}&token={hall.opening.access}").text
                assert 'lang="de"' in page and "Scanne den Code" not in page.split("<h2")[0]
            assert hall.opening.seats == 12 and hall.opening.language == "de" and hall.opening.alone

    original = begin.begun

    def begun(store: Store, wish: Wish, *rest: Any) -> begin.Begun:
        wishes.append(wish)
        return original(store, wish, *rest)

    monkeypatch.setattr(begin, "run_app", run)
    monkeypatch.setattr(begin, "begun", begun)
    port = free_port()
    store = Store(tmp_path / "f.duckdb")
    start = Wish([], "scripted", False, "127.0.0.1", port, False, None, language="de")
    serve_form(store, start, told.append, open_browser=False)
    assert len(served) == 2 and any(line.startswith("projector page") for line in told)
    command = [
        *CHOICE["scenario"], "--with", "scripted", "--language", "de", "--seats", "12", "--port", str(port + 1), "--db",
        str(store.path),
    ]  # fmt: skip
    result = click.testing.CliRunner().invoke(class_, command, catch_exceptions=False)
    assert result.exit_code == 0 and len(served) == 3
    assert replace(wishes[0], by_form=False) == wishes[1], "one mechanism, and so the same class, which goes on"
    opening = served[1].state.hall.opening
    assert served[2].state.hall.opening.run_id == opening.run_id and opening.port == port + 1, "the form has the port"
    served.clear()  # after a crash the form goes on with that class, in its language
    resumed = True
    serve_form(store, replace(start, language="en"), told.append, open_browser=False)
    assert served[1].state.hall.opening.run_id == opening.run_id and served[1].state.hall.opening.language == "de"


@pytest.mark.parametrize(("host", "scans"), [("127.0.0.1", False), ("192.168.1.20", True)])
def test_only_a_class_that_phones_can_reach_shows_a_code_to_scan(tmp_path: Path, host: str, scans: bool) -> None:
    with hall_at(tmp_path / "r.duckdb") as hall, app_of(hall, "de") as projector:
        hall.opening = replace(hall.opening, host=host)
        page = projector.get(f"/class/teacher?key={hall.opening.teacher}").text
        assert ("Scanne den Code" in page) is ("<svg" in page) is scans
        assert ("Eine Probe: Nimm einen Platz in einem privaten Fenster" in page) is not scans


def test_options_of_a_class_without_a_scenario_are_not_lost_in_silence() -> None:
    for options in (["--with", "scripted"], ["--against", "@last"], ["--new"], ["--mode", "agents"], ["--seats", "9"]):
        result = click.testing.CliRunner().invoke(class_, options)
        assert isinstance(result.exception, InvalidInput) and "SCENARIO is missing" in str(result.exception)


def test_a_class_of_one_mode_bets_on_nothing(tmp_path: Path) -> None:
    told: list[str] = []
    wish = Wish(
        find_scenarios(["mutual_friends_01"]), "scripted", False, "127.0.0.1", free_port(), False, None,
        modes=("mindreaders",), seats=2,
    )  # fmt: skip
    found = begin.begun(Store(tmp_path / "m.duckdb"), wish, told.append)
    try:
        for key in ("one", "two"):
            found.hall.join(key)
        assert found.hall.live[1].meeting.mode == "mindreaders"
        with pytest.raises(Exception, match="2 seats are taken"):
            found.hall.join("three")
        assert results.questions(found.hall) == ()
    finally:
        found.listening.close()
        found.hall.stop()
