"""A class in a real browser: two phones at 390 pixels and the projector at 1280, by keyboard, in light and dark."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Browser, Page

from localsim.web.app import Site, create_app
from localsim.web.classroom.hall import Hall
from localsim.web.classroom.phone_pages import ENTRANCE, seat_name
from localsim.web.guard import Access, hosts_of
from localsim.web.phrases.table import Phrases, english, find
from tests.test_browser import CHROMIUM, browser, picture, serious_in, until, watched  # noqa: F401 - a fixture
from tests.test_class import first_speaker, free_port, hall_at

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="NO CHROMIUM HERE: apt-get install chromium")

MY_TURN = ".now:text('It is your turn')"
LAST_LINE_IN_VIEW = """(() => {
    const [line, bar] = [".turns li:last-child", "form.reach"].map((each) => document.querySelector(each));
    const { top, bottom } = line.getBoundingClientRect();
    return top >= 0 && bottom <= bar.getBoundingClientRect().top + 1;
})()"""
PHONE, PROJECTOR = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
SMALL = {"width": 360, "height": 640}


@contextmanager
def class_served(
    path: Path, seed: int | None = None, language: str = "en", scenarios: Sequence[str] = ("mutual_friends_01",)
) -> Iterator[tuple[Hall, str]]:
    """A class, and the address of its server, which asks for a token as it does on a network."""
    port = free_port()
    with hall_at(path, *scenarios, port=port, seed=seed) as hall:
        hall.opening = replace(hall.opening, host="192.168.1.20")  # the page shows what it shows on a network
        rules = Access(
            hosts_of("127.0.0.1"), hall.opening.access, seat_of=lambda request: seat_name(hall, request),
            entrance=ENTRANCE,
        )  # fmt: skip
        site = Site(hall.store, rules, "scripted", frozenset({"class"}), hall=hall, phrases=find(language))
        app = create_app(site)
        server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.02)
        try:
            yield hall, f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join(timeout=10)


def checked(page: Page, name: str) -> None:
    """The page fits, and axe finds nothing serious."""
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, f"{name} is too wide"
    found = serious_in(page)
    assert not found, f"{name}: {found}"
    picture(page, f"web-class-{name}")


def test_two_phones_and_a_projector_from_join_to_reveal(browser: Browser, tmp_path: Path) -> None:  # noqa: F811
    """In German, whose words are longer than those of English."""
    language = "de"
    t = find(language)
    with class_served(tmp_path / "c.duckdb", language=language) as (hall, base):
        contexts = [browser.new_context(viewport=size) for size in (PHONE, PHONE, PROJECTOR)]  # type: ignore[arg-type]
        first, second, projector = (context.new_page() for context in contexts)
        complaints = [watched(page) for page in (first, second, projector)]
        projector.goto(f"{base}/class/teacher?key={hall.opening.teacher}&token={hall.opening.access}")
        projector.wait_for_selector(f"text={t.plain('room.do.join')}")
        checked(projector, "room-join")
        _join_by_keyboard(first, base, projector.locator(".code").inner_text(), t)
        first.wait_for_selector(f"text={t.plain('wait.partner')}")
        checked(first, "wait")
        second.goto(f"{base}/class?token={hall.opening.access}")
        second.click(f"text={t.plain('join.seat')}")
        for page in (first, second):
            page.wait_for_selector(f"text={t.plain('talk.goal')}")
            page.wait_for_load_state()
            assert page.locator("html").get_attribute("lang") == language
            assert page.locator(".task bdi").get_attribute("lang") == "en", "the scenario stays in its own language"
        projector.wait_for_selector(f"text={t.plain('room.do.talk')}")
        _talk(first, second, hall.scenarios[0].scenario.names[0], t)
        projector.wait_for_selector(f"text={t.plain('room.do.bet')}")
        checked(projector, "room-live")
        bars = [label.inner_text().strip() for label in projector.locator("label:has(progress)").all()]
        assert bars == [t.plain("room.talks_bar", some=1, all=1), t.plain("room.bets_bar", some=0, all=2)]
        assert projector.locator("progress").count() == 2, "each bar has its words"
        assert "mindreaders" not in projector.content(), "the projector keeps the secret of the modes"
        for page in (first, second):
            page.wait_for_selector(f"h1:text('{t.plain('bet.title')}')")
            assert page.get_by_text(t.plain("outcome.missed")).count() == 1
            if page is first:
                checked(page, "bet")
            for question in ("turns", "hits"):
                page.get_by_role("group", name=t.plain(f"bet.ask.{question}")).get_by_label(t.plain("bet.same")).check()
            page.click(f"text={t.plain('bet.place')}")
            page.wait_for_selector(f"text={t.plain('bet.thanks')}")
        _reveal_by_keyboard(projector, t)
        first.wait_for_selector(f"h1:text('{t.plain('reveal.title')}')")
        checked(first, "reveal")
        hall.end()
        for page in (first, projector):
            page.wait_for_selector(f"text={t.plain('room.ended')}")
        projector.goto(f"{base}/class/sheets")
        checked(projector, "sheets")
        projector.set_viewport_size(PHONE)  # type: ignore[arg-type]
        checked(projector, "sheets-phone")
        for context in contexts:
            context.close()
        assert complaints == [[], [], []]


def _reveal_by_keyboard(projector: Page, t: Phrases) -> None:
    """The reveal asks once; nothing is shown before the second button."""
    link = projector.get_by_role("link", name=t.plain("room.reveal"))
    link.focus()
    projector.keyboard.press("Enter")
    projector.wait_for_selector(f"text={t.plain('sure.ended', count=1)}")
    checked(projector, "room-sure")
    projector.click(f"text={t.plain('sure.not_yet')}")
    projector.wait_for_selector(f"text={t.plain('room.do.reveal')}")
    link.press("Enter")
    projector.get_by_role("button", name=t.plain("sure.reveal")).press("Enter")
    projector.wait_for_selector(".answer-text")
    checked(projector, "room-reveal")
    projector.set_viewport_size(PHONE)  # type: ignore[arg-type]
    checked(projector, "room-reveal-phone")
    projector.set_viewport_size(PROJECTOR)  # type: ignore[arg-type]


@pytest.mark.parametrize(("size", "language"), [(PHONE, "en"), (SMALL, "de")])
def test_both_sides_are_in_reach_on_a_phone_and_a_lost_class_says_so(
    browser: Browser,  # noqa: F811
    tmp_path: Path,
    size: Any,
    language: str,
) -> None:
    t = find(language)
    with class_served(tmp_path / "s.duckdb", language=language) as (hall, base):
        pages = [browser.new_context(viewport=size).new_page() for _ in range(4)]
        for page in pages:
            page.goto(f"{base}/class?token={hall.opening.access}")
            page.click(f"text={t.plain('join.seat')}")
        minds = next(live for live in hall.live.values() if live.meeting.mode == "mindreaders")
        page = pages[min(minds.meeting.people.values()) - 1]
        page.wait_for_selector(f"text={t.plain('talk.goal')}")
        role = minds.meeting.role_of(min(minds.meeting.people.values()))
        assert page.get_by_role("radio", name=t.plain("talk.your_side")).is_checked(), "the own side comes first"
        for agent in sorted(minds.spec.scenario.agents, key=lambda agent: agent.name != role):
            name = t.plain("talk.your_side") if agent.name == role else agent.name
            page.get_by_role("radio", name=name).click()
            for _ in range(150):  # the list moves up a moment after the tap
                page.wait_for_timeout(100)
                bar = page.locator("form.reach").bounding_box()
                panel = page.locator(".panel:visible")
                lines = [panel.get_by_text(fact.text, exact=True).bounding_box() for fact in agent.facts]
                if bar and all(line and 0 <= line["y"] <= bar["y"] - line["height"] for line in lines):
                    break
            else:
                pytest.fail(f"facts of {agent.name} are out of view or covered: {lines} beside {bar}")
            assert bar["y"] + bar["height"] <= size["height"] + 1, "the reply is in view beside the list"
        end = page.locator(".reach .ends").bounding_box()
        assert end and end["height"] < 60, "the way to end the talk takes two lines"
        assert not page.locator("[data-lost]").is_visible()
    page.wait_for_selector("[data-lost]:visible")
    for page in pages:
        page.context.close()


def test_the_first_talk_is_in_reach_during_the_second(browser: Browser, tmp_path: Path) -> None:  # noqa: F811
    with class_served(tmp_path / "e.duckdb", 0, scenarios=("mutual_friends_01", "mutual_friends_02")) as (hall, base):
        pages = [browser.new_context(viewport=PHONE).new_page() for _ in range(2)]  # type: ignore[arg-type]
        for page in pages:
            page.goto(f"{base}/class?token={hall.opening.access}")
            page.click("text=Take a seat")
        first = pages[0]
        speaker = pages[first_speaker(hall) - 1]
        speaker.wait_for_selector(MY_TURN)
        speaker.fill("textarea[name=text]", "The words of the first talk")
        speaker.select_option("select[name=leave]", "–")
        speaker.click("[data-send]")
        for page in pages:
            page.wait_for_selector("h1:text('Your bets')")
            for box in page.get_by_label("No difference").all():
                box.check()
            page.click("text=Place the bet")
            page.click("button:text('Another talk')")
        first.wait_for_selector("text=Your goal.")
        summary, words = first.get_by_text("Your earlier talk as"), first.get_by_text("The words of the first talk")
        assert hall.live[2].meeting.mode == "mindreaders", "they see the longer list"
        summary.click(timeout=3000)
        assert not first.locator(".head-stays .know[open]").count(), "the list makes room for it"
        words.hover(timeout=3000)  # nothing covers it
        checked(first, "earlier-talk")
        hall.end()
        first.wait_for_selector("text=The class has ended")
        first.get_by_text("Your earlier talk as").click()
        checked(first, "earlier-reveal")
        for page in pages:
            page.context.close()


def test_a_class_is_chosen_and_started_in_the_browser(browser: Browser, tmp_path: Path) -> None:  # noqa: F811
    log = tmp_path / "log.txt"
    command = [
        sys.executable,
        "-m",
        "localsim",
        "class",
        "--db",
        str(tmp_path / "f.duckdb"),
        "--port",
        str(free_port()),
    ]
    with log.open("w") as told:
        process = subprocess.Popen(command, stderr=told, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    page = browser.new_context(viewport=PROJECTOR).new_page()  # type: ignore[arg-type]
    try:
        deadline = time.monotonic() + 90
        while not (found := re.search(r"at (http://\S+/class/new)", log.read_text())):
            assert time.monotonic() < deadline and process.poll() is None, log.read_text()
            time.sleep(0.1)
        page.goto(found[1])
        checked(page, "form")
        page.set_viewport_size(PHONE)  # type: ignore[arg-type]
        checked(page, "form-phone")
        page.get_by_label(english().plain("new.language")).select_option("fr")
        page.get_by_label(english().plain("new.address")).select_option("127.0.0.1")
        page.get_by_role("button", name=english().plain("new.go")).click()
        page.wait_for_selector(f"text={find('fr').plain('room.do.rehearse')}", timeout=90_000)
        assert page.locator(".code").inner_text() in log.read_text(), "the projector page, at the address of the class"
    finally:
        page.context.close()
        process.terminate()
        process.wait(timeout=60)


def _join_by_keyboard(page: Page, base: str, code: str, t: Phrases) -> None:
    """From the address on the projector to a seat, without a pointer."""
    page.goto(base)
    page.wait_for_selector("input[name=code]:focus")
    checked(page, "code")
    page.keyboard.type(code.lower())
    page.keyboard.press("Enter")
    page.wait_for_selector(f"button:focus:text('{t.plain('join.seat')}')")
    checked(page, "join")
    page.keyboard.press("Enter")


def _talk(first: Page, second: Page, starter: str, t: Phrases) -> None:
    """A long talk; the phones fit, goal and input stay in reach, and a reload keeps the seat."""
    my_turn = f".now:text('{t.plain('talk.mine')}')"
    pages = (first, second) if starter in first.locator("h1").inner_text() else (second, first)
    for number in range(9):
        mine, theirs = pages[number % 2], pages[1 - number % 2]
        mine.wait_for_selector(my_turn)
        known = mine.locator("details.know").first
        assert known.evaluate("known => known.open") is (number < 4), "as it was left"
        if number in (2, 3):
            known.locator("summary").click()
        if number == 0:
            checked(mine, "talk")
            box = mine.locator("[data-send]").bounding_box()
            assert box and box["y"] + box["height"] <= PHONE["height"] and box["height"] >= 48
        mine.fill(
            "textarea[name=text]", f"A line that is number {number}. Do you know somebody who likes mountain biking?"
        )
        mine.keyboard.press("Enter")
        theirs.wait_for_selector(f"text=number {number}")
    later = pages[1]
    later.fill("textarea[name=text]", "Half a sente")
    later.select_option("select[name=leave]", "–")
    later.reload()
    later.wait_for_selector(my_turn)
    assert later.input_value("textarea[name=text]") == "Half a sente" and later.input_value("select[name=leave]") == "–"
    later.wait_for_load_state("networkidle")  # the first refresh replaces the lines
    newest = later.locator(".turns li").last.bounding_box()
    goal, words = later.locator(".task").bounding_box(), later.locator("textarea[name=text]").bounding_box()
    assert goal and words and newest and 0 <= goal["y"] < newest["y"] < words["y"] <= PHONE["height"] - 48, "in reach"
    later.set_viewport_size({"width": 390, "height": 480})  # with its keyboard
    later.locator("details.know").first.evaluate("known => known.open = true")
    later.locator("textarea[name=text]").focus()
    assert not later.locator("details.know[open]").count(), "the list makes room for the last line"
    until(later, LAST_LINE_IN_VIEW)
    later.set_viewport_size(PHONE)  # type: ignore[arg-type]
    later.select_option("select[name=leave]", "–")
    later.fill("textarea[name=text]", "Goodbye!")
    checked(later, "talk-later")
    later.click("[data-send]")
