"""Thirty browsers in an auction: one is closed and comes back, the server is killed, and nothing is lost or doubled."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.test_browser import CHROMIUM, browser, picture  # noqa: F401 - a fixture
from tests.test_browser_class import PHONE, PROJECTOR
from tests.test_class import Server, serving

pytestmark = [
    pytest.mark.verify,
    pytest.mark.skipif(CHROMIUM is None, reason="NO CHROMIUM HERE: apt-get install chromium"),
]

PHONES = 30
CLOSED, STOPPED = 12, 13
"""The phone that is closed before its bid, and the one that bids while the server is away."""
PATIENCE_MS = 120_000


class Bidder:
    """One phone: a browser context of its own, the role that it was given, and the bid that it makes."""

    def __init__(self, browser: Browser, number: int, base: str) -> None:  # noqa: F811
        self.browser, self.number, self.base = browser, number, base
        self.role = ""
        self.page = self._opened(None)

    def _opened(self, state: Any) -> Page:
        self.context: BrowserContext = self.browser.new_context(viewport=PHONE, storage_state=state)  # type: ignore[arg-type]
        self.context.set_default_timeout(PATIENCE_MS)
        return self.context.new_page()

    def join(self, code: str) -> None:
        """Type the code of the projector and take a seat."""
        self.page.goto(self.base)
        self.page.fill("input[name=code]", code)
        self.page.keyboard.press("Enter")
        self.page.click("text=Take a seat")
        self.page.wait_for_selector("h1")

    def see(self) -> None:
        """Read the own role and nobody else's value."""
        self.page.wait_for_selector("input[name=value0]")
        self.role = self.page.locator("h1").inner_text().removeprefix("You are ")
        values = set(re.findall(r"is worth \$\d+ to (\w+)", self.page.locator("main").inner_text()))
        assert values == {self.role}, "a page shows another player's value"

    def close(self) -> Any:
        """Close the browser as a phone does: what it keeps are cookies with a date of their own."""
        state = self.context.storage_state()
        self.context.close()
        return {**state, "cookies": [each for each in state["cookies"] if each["expires"] > 0]}

    def come_back(self, state: Any, code: str) -> None:
        """Open the address again, with the code if it is asked for; the seat is the same."""
        self.page = self._opened(state)
        self.page.goto(self.base)
        if self.page.locator("input[name=code]").count():
            self.page.fill("input[name=code]", code)
            self.page.keyboard.press("Enter")
        expect(self.page.locator("h1")).to_have_text(f"You are {self.role}", timeout=PATIENCE_MS)

    def bid(self) -> None:
        """Bid, with two presses of the button, as an impatient thumb does."""
        self.page.fill("input[name=value0]", f"{self.number}.25")
        self.page.locator(".way button").dblclick(no_wait_after=True)
        self.page.wait_for_selector("input[name=value0]", state="detached")

    def bid_in_vain(self) -> None:
        """Bid while the server is away: the browser says so, and the page is opened again later."""
        self.page.fill("input[name=value0]", f"{self.number}.25")
        self.page.click(".way button", no_wait_after=True)
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while self.page.url.startswith(self.base) and time.monotonic() < deadline:
            self.page.wait_for_timeout(100)
        assert self.page.url.startswith("chrome-error:"), "the browser says that the page cannot be reached"


def test_thirty_browsers_bid_while_one_is_closed_and_the_server_is_killed(
    browser: Browser,  # noqa: F811
    tmp_path: Path,
) -> None:
    with serving(tmp_path, scenarios=("auction_thirty",)) as server:
        projector = _projector(browser, server)
        code = projector.locator(".code").inner_text().lower()
        phones = [Bidder(browser, number, server.base) for number in range(PHONES)]
        for phone in phones:
            phone.join(code)
        for phone in phones:
            phone.see()
        assert len({phone.role for phone in phones}) == PHONES
        expect(projector.locator(".counts")).to_contain_text("1 talk going", timeout=PATIENCE_MS)
        _bids(server, phones, code)
        expect(projector.locator(".counts")).to_contain_text("1 finished", timeout=PATIENCE_MS)
        for phone in phones:
            phone.page.wait_for_selector("h1:text('Your bet')")
        picture(projector, "web-class-thirty-browsers")
        _ends(projector)
        for phone in phones:
            phone.context.close()
        deadline = time.monotonic() + 120
        while "leaks in each mode" not in server.told() and time.monotonic() < deadline:
            time.sleep(0.2)
    episodes = server.store.rows("SELECT status, stop_reason FROM v_episodes")
    assert episodes == [{"status": "completed", "stop_reason": "done"}]
    made = server.store.rows("SELECT speaker, values_json ->> 0 AS bid FROM v_turns WHERE action = 'bid'")
    assert len(made) == PHONES
    assert {row["speaker"]: row["bid"] for row in made} == {phone.role: f"{phone.number}.25" for phone in phones}


def _projector(browser: Browser, server: Server) -> Page:  # noqa: F811
    found = re.search(r"(/class/teacher\?key=\S+)", server.told())
    assert found
    context = browser.new_context(viewport=PROJECTOR)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(server.base + found[1])
    page.wait_for_selector(".code")
    return page


def _bids(server: Server, phones: list[Bidder], code: str) -> None:
    """All phones bid; in the middle one is closed and comes back, and the server is killed and started again."""
    for phone in phones[:CLOSED]:
        phone.bid()
    kept = phones[CLOSED].close()
    server.kill()
    phones[STOPPED].bid_in_vain()
    server.start()
    phones[CLOSED].come_back(kept, code)
    phones[STOPPED].page.goto(server.base)
    for phone in phones[:CLOSED]:
        assert not phone.page.locator("input[name=value0]").count(), "a bid that was made is asked for again"
    for phone in phones[CLOSED:]:
        phone.bid()


def _ends(projector: Page) -> None:
    """The teacher reveals the modes and ends the class on the projector."""
    projector.get_by_role("link", name="Reveal").click()
    projector.get_by_role("button", name="Reveal").click()
    projector.wait_for_selector("text=The answer")
    expect(projector.locator(".counts")).to_contain_text("1 finished")
    projector.click("summary:text('End the class')")
    projector.check("input[name=sure]")
    projector.click("button:text('End the class')")
    projector.wait_for_selector("text=The class has ended.")
