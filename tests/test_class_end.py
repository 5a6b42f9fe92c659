"""What a class reads at its end: talks that are broken off, and why nothing is there to bet on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from localsim.__main__ import run
from localsim.web.classroom.results import ModeRow, Outcome
from tests.test_class import app_of, hall_at
from tests.test_class_apart import bet_on, class_of, play, projector_of
from tests.test_class_trouble import said_goodbye, until

BESIDE, SEEN = "were begun together with one of yours", "You have read every talk of others"


def test_a_talk_that_the_end_breaks_off_is_neither_finished_nor_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "e.duckdb"
    with class_of(path, 4) as (hall, phones):
        said_goodbye(hall, (phones[0], phones[1]))
        until(lambda: hall.live[1].ended)
        hall.end()
        until(lambda: hall.register.closed)
        pages = [phone.get("/class").text for phone in phones]
        assert ["Your talk was broken off, because the class ended." in page for page in pages] == [False] * 2 + [
            True
        ] * 2
        page = projector_of(hall, phones[0])
        assert "<b>1</b> finished · <b>1</b> broken off" in page
        assert (
            re.findall(r"<td class=\"text\">(has talked|broken off)</td>", page)
            == ["has talked"] * 2 + ["broken off"] * 2
        )
        hall.leave()
    for command in (["report", "@last"], ["runs", "list"]):
        run([*command, "--db", str(path)])
        told = capsys.readouterr().out
        assert "broken off" in told and "failed" not in told


def test_a_phone_reads_why_no_talk_is_there_to_bet_on_and_no_bet_is_asked_for_twice(tmp_path: Path) -> None:
    with class_of(tmp_path / "b.duckdb", 8) as (hall, phones):
        phone = phones[0]
        for number in (1, 2):
            play(hall.live[number], hall, phones)
        page = bet_on(phone)
        assert BESIDE in page and SEEN not in page
        play(hall.live[3], hall, phones)
        page = phone.get("/class").text
        with hall.changed:  # after an earlier talk it has bet on talk 3
            hall._record("bet", seat=1, talk=0, about=3, saw=True)
        page = phone.get("/class").text
        assert SEEN in page and BESIDE not in page
        for number in (4,):
            play(hall.live[number], hall, phones)
        assert "What could these two see" in phone.get("/class").text
        projector_of(hall, phone)
        assert "has not bet on a talk of others" not in phone.get("/class/room/reveal").text
        bet_on(phones[1])
        assert "1 phone has not bet on a talk of others" in phone.get("/class/room/reveal").text


@pytest.mark.parametrize("by_form", [True, False])
def test_who_began_on_the_form_is_told_of_the_form(tmp_path: Path, by_form: bool) -> None:
    with hall_at(tmp_path / "f.duckdb") as hall, app_of(hall) as teacher:
        hall.by_form = by_form
        page = projector_of(hall, teacher)
        assert ("“Address in the room”" in page) is by_form and ("--host" in page) is not by_form


def test_means_are_rounded_as_pupils_do() -> None:
    talks = [Outcome("friends", "agents", 1.0, turns) for turns in (5, 5, 5, 6)]
    assert ModeRow("agents", talks).turns == 5.3
