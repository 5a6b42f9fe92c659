"""A class in a real browser: two phones at 390 pixels and the projector at 1280, by keyboard, in light and dark."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from localsim.web.app import Site, create_app
from localsim.web.classroom.hall import Hall
from localsim.web.classroom.phone_pages import ENTRANCE, seat_name
from localsim.web.guard import Access, hosts_of
from tests.test_browser import CHROMIUM, browser, picture, watched  # noqa: F401 - a fixture
from tests.test_class import free_port, hall_at

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="NO CHROMIUM HERE: apt-get install chromium")

MY_TURN = ".now:text('It is your turn')"
PHONE, PROJECTOR = {"width": 390, "height": 844}, {"width": 1280, "height": 900}


@contextmanager
def class_served(path: Path, seed: int | None = None) -> Iterator[tuple[Hall, str]]:
    """A class, and the address of its server, which asks for a token as it does on a network."""
    port = free_port()
    with hall_at(path, "mutual_friends_01", port=port, seed=seed) as hall:
        hall.opening = replace(hall.opening, host="192.168.1.20")  # the page shows what it shows on a network
        rules = Access(
            hosts_of("127.0.0.1"), hall.opening.access, seat_of=lambda request: seat_name(hall, request),
            entrance=ENTRANCE,
        )  # fmt: skip
        app = create_app(Site(hall.store, rules, "scripted", frozenset({"class"}), hall=hall))
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
    serious = [
        f"{found['id']}: {[node['html'][:120] for node in found['nodes'][:3]]}"
        for found in Axe().run(page).response["violations"]
        if found["impact"] in ("serious", "critical")
    ]
    assert not serious, f"{name}: {serious}"
    picture(page, f"web-class-{name}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_two_phones_and_a_projector_from_join_to_reveal(browser: Browser, tmp_path: Path, scheme: Any) -> None:  # noqa: F811
    with class_served(tmp_path / "c.duckdb") as (hall, base):
        contexts = [
            browser.new_context(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
            for size in (PHONE, PHONE, PROJECTOR)
        ]
        first, second, projector = (context.new_page() for context in contexts)
        complaints = [watched(page) for page in (first, second, projector)]
        projector.goto(f"{base}/class/teacher?key={hall.opening.teacher}&token={hall.opening.access}")
        projector.wait_for_selector("text=Which one is A?")
        checked(projector, f"room-join-{scheme}")
        _join_by_keyboard(first, base, projector.locator(".code").inner_text(), scheme)
        first.wait_for_selector("text=Waiting for a partner")
        checked(first, f"wait-{scheme}")
        second.goto(f"{base}/class?token={hall.opening.access}")
        second.click("text=Take a seat")
        for page in (first, second):
            page.wait_for_selector("text=Your goal.")
            page.wait_for_load_state()
        _talk(first, second, hall.scenarios[0].scenario.names[0], scheme)
        projector.wait_for_selector("text=finished")
        checked(projector, f"room-live-{scheme}")
        for page in (first, second):
            page.wait_for_selector("h1:text('Your bet')")
            if page is first:
                checked(page, f"bet-{scheme}")
            page.get_by_label("Both sides see everything").check()
            page.click("text=Place the bet")
            page.wait_for_selector("text=Thank you")
        _reveal_by_keyboard(projector, scheme)
        first.wait_for_selector("text=The reveal")
        checked(first, f"reveal-{scheme}")
        hall.end()
        for page in (first, projector):
            page.wait_for_selector("text=The class has ended.")
        for context in contexts:
            context.close()
        assert complaints == [[], [], []]


def _reveal_by_keyboard(projector: Page, scheme: str) -> None:
    """The reveal asks once; nothing is shown before the second button."""
    projector.get_by_role("link", name="Reveal").focus()
    projector.keyboard.press("Enter")
    projector.wait_for_selector("text=1 talk has ended")
    checked(projector, f"room-sure-{scheme}")
    projector.click("text=Not yet")
    projector.wait_for_selector("text=Which one is A?")
    projector.get_by_role("link", name="Reveal").press("Enter")
    projector.get_by_role("button", name="Reveal").press("Enter")
    projector.wait_for_selector("text=The answer")
    checked(projector, f"room-reveal-{scheme}")


def test_both_sides_are_in_reach_on_a_phone_and_a_lost_class_says_so(browser: Browser, tmp_path: Path) -> None:  # noqa: F811
    with class_served(tmp_path / "s.duckdb") as (hall, base):
        pages = [browser.new_context(viewport=PHONE).new_page() for _ in range(4)]  # type: ignore[arg-type]
        for page in pages:
            page.goto(f"{base}/class?token={hall.opening.access}")
            page.click("text=Take a seat")
        minds = next(live for live in hall.live.values() if live.meeting.mode == "mindreaders")
        page = pages[min(minds.meeting.people.values()) - 1]
        page.wait_for_selector("text=Your goal.")
        role = page.locator("h1").inner_text().removeprefix("You are ")
        for agent in sorted(minds.spec.scenario.agents, key=lambda agent: agent.name != role):
            if agent.name != role:
                page.get_by_role("radio", name=agent.name).press("Space")
            bar = page.locator("form.reach").bounding_box()
            for fact in agent.facts:
                line = page.locator(".panel:visible").get_by_text(fact.text, exact=True).bounding_box()
                assert bar and line and line["y"] + line["height"] <= bar["y"], f"{fact.text} is covered"
        assert not page.locator("[data-lost]").is_visible()
    page.wait_for_selector("[data-lost]:visible")
    for page in pages:
        page.context.close()


def _join_by_keyboard(page: Page, base: str, code: str, scheme: str) -> None:
    """From the address on the projector to a seat, without a pointer."""
    page.goto(base)
    page.wait_for_selector("input[name=code]:focus")
    checked(page, f"code-{scheme}")
    page.keyboard.type(code.lower())
    page.keyboard.press("Enter")
    page.wait_for_selector("button:focus:text('Take a seat')")
    checked(page, f"join-{scheme}")
    page.keyboard.press("Enter")


def _talk(first: Page, second: Page, starter: str, scheme: str) -> None:
    """Three turns; the phones fit, the input stays in reach, and a reload keeps the seat."""
    pages = (first, second) if starter in first.locator("h1").inner_text() else (second, first)
    for number, mine, theirs in ((0, pages[0], pages[1]), (1, pages[1], pages[0])):
        mine.wait_for_selector(MY_TURN)
        if number == 0:
            checked(mine, f"talk-{scheme}")
            box = mine.locator("[data-send]").bounding_box()
            assert box and box["y"] + box["height"] <= PHONE["height"] and box["height"] >= 48
            goal, words = mine.locator(".task").bounding_box(), mine.locator("textarea[name=text]").bounding_box()
            assert goal and words and goal["y"] < words["y"], "the goal stands before the input"
        mine.fill(
            "textarea[name=text]", f"A line that is number {number}. Do you know somebody who likes mountain biking?"
        )
        mine.keyboard.press("Enter")
        theirs.wait_for_selector(f"text=number {number}")
    pages[0].reload()
    pages[0].wait_for_selector(MY_TURN)
    pages[0].check("input[name=leave]")
    pages[0].fill("textarea[name=text]", "Goodbye!")
    checked(pages[0], f"talk-later-{scheme}")
    pages[0].click("[data-send]")
