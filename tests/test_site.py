"""A run as a folder of pages that opens without a server: every link leads to a file, in a browser and without one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from localsim.__main__ import run as command
from tests.test_browser import browser, pytestmark, watched
from tests.test_report_html import Page
from tests.web_server import HOSTILE, simulated

__all__ = ["browser", "pytestmark"]
LINKS = ("href", "src", "action", "data-fetch", "data-live")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of a run with every kind of mark and hostile words."""
    place = tmp_path_factory.mktemp("site")
    store, run_id = simulated(place / "localsim.duckdb")
    assert command(["export", run_id, "-f", "site", "-o", str(place / "pages"), "--db", str(store.path)]) == 0
    return place / "pages"


def test_every_link_leads_to_a_file_and_every_fragment_to_a_part(folder: Path) -> None:
    pages = {file.name: Page(file.read_text()) for file in folder.glob("*.html")}
    assert len(pages) == 1 + 1 + 1 + 9, "the list, the run, its report and its talks"
    ids = {name: {found["id"] for _, found in page.tags if "id" in found} for name, page in pages.items()}
    reached = {"index.html"}
    for name, page in pages.items():
        for link in [found[each] or "" for _, found in page.tags for each in LINKS if each in found]:
            if link.startswith("data:"):
                continue
            file, _, part = link.partition("#")
            assert re.fullmatch(r"[\w.-]*", file) and (folder / (file or name)).is_file(), f"{name}: {link}"
            assert not part or part in ids[file or name], f"{name}: {link}"
            reached.add(file or name)
    assert reached == {file.name for file in folder.iterdir()}, "no page is without a link to it"


def test_pages_name_no_place_of_this_machine_and_escape_what_was_said(folder: Path) -> None:
    for file in folder.glob("*.html"):
        text = file.read_text()
        assert str(folder.parent) not in text and str(Path(__file__).parent.parent) not in text, file.name
        assert "<script>alert" not in text and HOSTILE not in text
        assert "localhost" not in text and "http://127" not in text and 'name="csrf"' not in text


@pytest.mark.parametrize("scripts", [True, False])
def test_from_the_list_to_the_prompt_of_a_turn(browser: Browser, folder: Path, scripts: bool) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, java_script_enabled=scripts)
    page = context.new_page()
    complaints = [] if not scripts else watched(page)
    page.goto((folder / "index.html").as_uri())
    page.locator("tbody a").first.click()
    page.wait_for_url("**/run-*.html")
    assert page.locator("#pairs svg").count() == 2 and page.locator(".answer p").count() >= 2
    page.locator("a.cell").first.click()
    page.wait_for_url("**/talk-*.html")
    assert page.locator(".person li").count() > 4, "the private facts, as in view"
    shown = page.locator("section > details", has_text="Generations").first
    assert not shown.locator("pre").first.is_visible()
    page.locator("a.index").first.click()
    shown.locator("pre").first.wait_for(state="visible")
    page.go_back()
    page.go_back()
    page.get_by_role("link", name="Report").click()
    page.wait_for_url("**/report-*.html")
    page.locator("a", has_text="run ").first.click()
    page.wait_for_url("**/run-*.html")
    context.close()
    assert [each for each in complaints if not each.startswith("file:")] == []
