"""Starting a run in a real browser: three talks that grow, keyboard, phone, stop, resume, a killed server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page

from localsim.conversation.episode import MODES
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.store.database import Store
from localsim.web.start import work
from tests.conftest import Quiet, generated
from tests.test_browser import CHROMIUM, browser, page, picture, serious_in, until, watched
from tests.test_browser_pages import HIDDEN
from tests.test_start import turns_of
from tests.web_server import serving

__all__ = ["browser", "page"]
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="NO CHROMIUM HERE: apt-get install chromium")


@pytest.fixture
def without_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """No search for leaks at the end of a run."""
    monkeypatch.setattr(runner, "search", lambda *_: None)


def serious(page: Page) -> list[str]:
    """What axe finds on a page, and whether it is too wide."""
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return serious_in(page) + ([f"{wide} pixels too wide"] if wide > 0 else [])


def turns_on(page: Page, mode: str) -> int:
    return page.locator(f"#{mode} .turns li").count()


def tab_to(page: Page, name: str) -> None:
    """Press Tab until the focus is on an element with this text or value."""
    for _ in range(60):
        page.keyboard.press("Tab")
        focused = page.evaluate("(document.activeElement.textContent || document.activeElement.value || '').trim()")
        if focused.startswith(name):
            return
    raise AssertionError(f"the Tab key does not reach {name!r}")


@pytest.mark.usefixtures("without_search")
def test_from_the_empty_front_page_to_the_verdicts_by_keyboard(
    page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "PACE_S", 1.0)
    with serving(Store(tmp_path / "k.duckdb")) as base:
        page.goto(base)
        tab_to(page, "Start your first run")
        page.keyboard.press("Enter")
        page.wait_for_url("**/start")
        assert serious(page) == []
        picture(page, "web-start-desktop")
        page.keyboard.type("Ingrid haggles")  # the list of scenarios has the focus
        assert "Ingrid haggles" in page.locator("select option:checked").inner_text()
        tab_to(page, "Start")
        page.keyboard.press("Enter")
        page.wait_for_url("**/start/now")
        page.evaluate("window.same = true")
        page.locator("#agents .turns li").nth(1).wait_for()
        before = turns_on(page, "agents") + turns_on(page, "mindreaders")
        until(page, f"document.querySelectorAll('#agents .turns li, #mindreaders .turns li').length > {before}")
        assert page.evaluate("window.same"), "the talks grow without a new page"
        assert turns_on(page, "script") > 2, "a script is one text and appears whole"
        assert page.get_by_text("’s side").first.is_visible() and page.locator(".sides b").first.is_visible()
        picture(page, "web-start-growing-desktop")
        page.wait_for_url("**/start/runs/*")
        assert page.locator(".verdict").count() == 3
        assert serious(page) == []
        assert page.evaluate(HIDDEN) == [], "both sides are whole on the page"
        picture(page, "web-start-done-desktop")
        tab_to(page, "Run page")
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url: "/start/" not in url, wait_until="networkidle")


@pytest.mark.usefixtures("without_search")
def test_a_phone_has_tabs_and_can_stop_and_resume(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "PACE_S", 1.0)
    store = Store(tmp_path / "p.duckdb")
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    complaints = watched(page)
    with serving(store) as base:
        page.goto(f"{base}/start")
        assert serious(page) == []
        picture(page, "web-start-phone")
        page.select_option("select", "craigslist_02")
        page.get_by_role("button", name="Start").click()
        page.wait_for_url("**/start/now")
        page.locator("#agents .turns li").nth(1).wait_for()
        assert page.locator("#agents").is_visible() and not page.locator("#script").is_visible()
        page.get_by_role("radio", name="agents").focus()
        page.keyboard.press("ArrowRight")
        assert page.locator("#mindreaders").is_visible() and not page.locator("#agents").is_visible()
        page.get_by_role("radio", name="sides").click()
        assert page.locator(".sides b").first.is_visible()
        page.get_by_role("radio", name="mindreaders").click()
        page.get_by_role("button", name="Stop").click()
        page.get_by_role("button", name="Resume").wait_for()
        page.locator("#mindreaders").wait_for()  # the tab stays chosen; the page's script restores it once it is read
        page.locator("#agents").wait_for(state="hidden")
        assert serious(page) == []
        picture(page, "web-start-stopped-phone")
        before = turns_of(store)
        page.get_by_role("button", name="Resume").click()
        page.wait_for_url("**/start/runs/*")
        page.get_by_text("The run is complete.").wait_for()
        assert set(before) < set(turns_of(store)) and len(store.rows("SELECT 1 FROM episodes")) == 3
        assert serious(page) == []
        picture(page, "web-start-done-phone")
    context.close()
    assert not complaints


@contextmanager
def own_server(store: Store, port: int) -> Iterator[subprocess.Popen[str]]:
    """`localsim view --new` in a process of its own, which is killed at the end."""
    command = [sys.executable, "-m", "localsim", "view", "--new", "--db", str(store.path), "--port", str(port)]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        assert server.stderr is not None and "/start" in server.stderr.readline()
        yield server
    finally:
        server.kill()
        server.wait()


def test_a_killed_server_offers_to_resume_and_no_episode_is_doubled(browser: Browser, tmp_path: Path) -> None:
    store = Store(tmp_path / "k.duckdb")
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = int(listening.getsockname()[1])
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(120_000)
    with own_server(store, port) as server:
        opened(page, f"http://127.0.0.1:{port}/start")
        page.select_option("select", "new:craigslist")
        page.fill("input[name=seed]", "7")
        page.check("input[value=scripted]")
        page.get_by_role("button", name="Start").click()
        page.locator("#agents .turns li").nth(2).wait_for()
        server.send_signal(signal.SIGKILL)
        server.wait()
    with own_server(store, port):
        # The page is still open; it finds the new server by itself.
        page.get_by_role("button", name="Resume").wait_for()
        said = turns_on(page, "agents")
        assert said >= 3, "what was said before the kill is there"
        page.get_by_role("button", name="Resume").click()
        page.locator(".verdict").nth(2).wait_for()
        assert turns_on(page, "agents") > said
    whole = Store(tmp_path / "whole.duckdb")
    runner.start(Plan((generated("craigslist", 7),), MODES, "scripted", seed=7), whole, Quiet(), lambda _: None)
    assert turns_of(store) == turns_of(whole)
    assert store.check() == [] and len(store.rows("SELECT 1 FROM runs")) == 1
    rows: list[dict[str, Any]] = store.rows("SELECT mode, status FROM v_episodes ORDER BY mode")
    assert rows == [{"mode": mode, "status": "completed"} for mode in sorted(MODES)]


def opened(page: Page, address: str) -> None:
    """Open a page of a server that may still be starting."""
    deadline = time.monotonic() + 60
    while True:
        try:
            page.goto(address)
            return
        except Error:
            assert time.monotonic() < deadline
            time.sleep(0.3)
