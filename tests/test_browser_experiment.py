"""An experiment in a real browser: twenty participants at 390 pixels, a killed server, keyboard, light and dark."""

from __future__ import annotations

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from localsim.families.settling import NOTHING, with_statement
from tests.test_browser import CHROMIUM, browser, watched  # noqa: F401 - a fixture
from tests.test_browser_class import checked
from tests.test_experiment import QUOTAS, RATED, Server, Visitor, check_stored

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="NO CHROMIUM HERE: apt-get install chromium")

PHONE = {"width": 390, "height": 844}
LINES = 2
"""Messages of each participant; the last one ends the talk."""


class Person(Visitor):
    """A participant in a browser context, who does one thing at a time; what was typed is known as for a visitor."""

    def __init__(self, base: str, number: int, browser: Browser, **options: Any) -> None:  # noqa: F811
        super().__init__(base, number)
        self.page = browser.new_context(viewport=PHONE, **options).new_page()  # type: ignore[arg-type]
        self.complaints = watched(self.page)

    def act(self) -> bool:
        """Do what the page asks for, which goes on by itself; False if it asks for nothing now."""
        page = self.page
        if page.url == "about:blank":
            page.goto(f"{self.client.base_url}/experiment")
        if page.locator("form[action='/experiment/agree']").count():
            self._send("button.big")
        elif page.locator("form[action='/experiment/answer']").count():
            self._answer()
        elif page.locator("form[action='/experiment/rate']").count():
            choice = RATED[self.number % 3]
            self.rated.append(choice)
            page.get_by_label(choice, exact=True).check()
            self._send("text=Go on")
        elif page.locator(".code").count():
            self.completion = page.locator(".code").inner_text()
            return False
        elif page.locator("button[data-send]:enabled").count():
            self._say()
        else:
            return False
        return True

    def _send(self, button: str) -> None:
        with self.page.expect_navigation():
            self.page.click(button)

    def _answer(self) -> None:
        page = self.page
        if page.locator("input[name='item.age']").count():
            page.get_by_label("30 to 44").check()
            page.fill("input[name='item.chats']", str(self.number % 8))
            page.locator(f"input[name='item.trust'][value='{1 + self.number % 5}']").check()
        else:
            page.get_by_label("A computer program").check()
            for name, value in (("natural", 4), ("knew", 2), ("trust", 3)):
                page.locator(f"input[name='item.{name}'][value='{value}']").check()
            page.fill("textarea", f"remark of {self.number} <b>&")
        self._send("text=Go on")

    def _say(self) -> None:
        words = f"visitor {self.number} line {len(self.said)}"
        self.page.fill("textarea[name=text]", words)
        if len(self.said) + 1 >= LINES:
            self.page.select_option("select[name=leave]", NOTHING)
            words = with_statement(words, NOTHING)
        self._send("button[data-send]")
        self.said.append(words)


@pytest.mark.verify
def test_twenty_people_in_browsers_fill_the_quotas_while_the_server_is_killed(
    browser: Browser,  # noqa: F811
    tmp_path: Path,
) -> None:
    server = Server(tmp_path)
    server.start()
    try:
        people = [Person(server.base, number, browser) for number in range(20)]
        acts = 0
        for _ in range(400):
            for person in people:
                if person.completion:
                    continue
                acts += person.act()
                if acts == 90:
                    acts += 1
                    server.kill()
                    server.start()
            if all(person.completion for person in people):
                break
        assert acts > 90 and all(person.completion for person in people)
        for person in people:
            person.page.context.close()
            assert [line for line in person.complaints if "ERR_CONNECTION" not in line] == []
        server.kill(signal.SIGINT)
    except BaseException:
        server.kill()
        raise
    check_stored(server.store, list(people))
    told = Counter(row["condition"] for row in server.store.rows("SELECT condition FROM v_participants"))
    assert told == QUOTAS


def test_every_page_fits_a_phone_and_works_by_keyboard(browser: Browser, tmp_path: Path) -> None:  # noqa: F811
    server = Server(tmp_path)
    server.start()
    try:
        page = browser.new_context(viewport=PHONE).new_page()  # type: ignore[arg-type]
        complaints = watched(page)
        page.goto(server.base)
        checked(page, "experiment-consent")
        page.locator("button.big").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Before the talk")
        checked(page, "experiment-before")
        page.locator("input[name='item.age']").first.focus()
        for key in ("Space", "Tab", "3", "Tab", "Space", "Enter"):
            page.keyboard.press(key)
        page.wait_for_selector("text=Your goal.")
        _one_talk(page)
        page.wait_for_selector("text=After the talk")
        checked(page, "experiment-after")
        server.kill()
        server.start()
        page.reload()
        assert page.locator("h1").inner_text() == "After the talk", "a restart goes on where it was"
        page.locator("input[name='item.who']").first.focus()
        for key in ("Space", "Tab", "Space", "Tab", "Space", "Tab", "Space", "Tab", "Tab", "Enter"):
            page.keyboard.press(key)
        page.wait_for_selector("text=Your completion code")
        checked(page, "experiment-debrief")
        code = page.locator(".code").inner_text()
        page.reload()
        assert page.locator(".code").inner_text() == code
        assert [line for line in complaints if "ERR_CONNECTION" not in line] == []
        page.context.close()
        server.kill(signal.SIGINT)
    except BaseException:
        server.kill()
        raise
    rows = server.store.rows("SELECT status, completion_code FROM v_participants")
    assert rows == [{"status": "finished", "completion_code": code}]


def _one_talk(page: Page) -> None:
    """Two messages by keyboard, each message of the other side rated by keyboard."""
    for number in range(LINES):
        while True:
            page.wait_for_selector("button[data-send]:enabled, form[action='/experiment/rate']")
            if not page.locator("form[action='/experiment/rate']").count():
                break
            checked(page, "experiment-rate")
            page.locator("input[name='item.helpful']").first.focus()
            page.keyboard.press("Space")
            page.keyboard.press("Enter")
            page.wait_for_load_state()
            page.wait_for_selector("textarea[name=text], h1:text('After the talk'), form[action='/experiment/rate']")
        if number == 0:
            checked(page, "experiment-talk")
            box = page.locator("button[data-send]").bounding_box()
            assert box and box["y"] + box["height"] <= PHONE["height"] and box["height"] >= 48
        page.locator("textarea[name=text]").focus()
        page.keyboard.type(f"A line that is number {number}")
        if number == LINES - 1:
            for key in ("Tab", "End", "Tab"):  # the last way to end: no friend in common
                page.keyboard.press(key)
        page.keyboard.press("Enter")
        if number < LINES - 1:
            page.wait_for_selector(f".turns >> text=number {number}")
