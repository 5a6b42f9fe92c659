"""The page on which a participant rates a talk by a rubric, in a real browser: it fits, and keyboard and mouse work."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.experiment_lab import written
from tests.test_browser import CHROMIUM, browser, watched  # noqa: F401 - a fixture
from tests.test_browser_class import checked
from tests.test_browser_experiment import PHONE
from tests.test_class import Server
from tests.test_experiment_rubric import ALONE, GIVEN

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="NO CHROMIUM HERE: apt-get install chromium")
TEXT = ALONE.replace("{rubric: support}", "{rubric: support, about: all}").replace("before: before.yaml\n", "")


class RubricServer(Server):
    page = "/experiment"

    def command(self, scenarios: Sequence[str]) -> list[str]:
        return ["experiment", "serve", *scenarios, "-m", "scripted:friends"]


def test_a_talk_is_rated_on_a_phone_by_keyboard(browser: Browser, tmp_path: Path) -> None:  # noqa: F811
    server = RubricServer(tmp_path, scenarios=[str(written(tmp_path, TEXT))])
    server.start()
    try:
        page = browser.new_context(viewport=PHONE).new_page()  # type: ignore[arg-type]
        complaints = watched(page)
        page.goto(server.base)
        page.click("button.big")
        while not page.locator("h1:text('About the talk')").count():
            page.wait_for_selector("button[data-send]:enabled, form[action='/experiment/rate'], h1:text('About the')")
            if page.locator("form[action='/experiment/rate']").count():
                page.click("button[name=skip]")
            elif page.locator("button[data-send]:enabled").count():
                page.fill("textarea[name=text]", "Bye")
                page.select_option("select[name=leave]", "–")
                page.click("button[data-send]")
            page.wait_for_load_state()
        page.click("summary:text('The talk')")
        assert "Bye" in page.locator("details[open]").inner_text()
        checked(page, "experiment-rubric")
        heads = page.locator("h2").all_inner_texts()
        assert len(heads) == 2 and sum("(your role)" in head for head in heads) == 1
        for number in (0, 1):
            for dimension, value in GIVEN.items():
                page.locator(f"input[name='rubric.{number}.{dimension}'][value='{value}']").focus()
                page.keyboard.press("Space")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Your completion code")
        assert complaints == []
        page.context.close()
        server.kill(signal.SIGINT)
    except BaseException:
        server.kill()
        raise
    rows = server.store.rows("SELECT own, dimension, rating FROM v_rubric_ratings ORDER BY ALL")
    assert len(rows) == 10 and sum(row["own"] for row in rows) == 5
    assert {row["rating"] for row in rows if row["dimension"] == "warmth"} == {0}
