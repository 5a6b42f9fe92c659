"""The report in a real browser: short while it is folded, links that open what they lead to, print, axe, colours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from localsim.conversation.episode import MODES
from localsim.reports.figures.draw import COLOURS
from localsim.reports.render.html import render
from localsim.reports.report import Ask, of
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.store.conditions import conditions_of
from localsim.store.database import Store
from tests.conftest import Quiet, generated
from tests.test_browser import CHROMIUM, serious_in, until

ROOT = Path(__file__).resolve().parent.parent
MOST = {1280: 2500, 390: 5000}
"""Width of the screen -> greatest height of the folded report of two families and two models, in pixels."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a screen."""
    if CHROMIUM is None:
        pytest.skip("NO CHROMIUM HERE: apt-get install chromium")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of two families and two models, as a file."""
    folder = tmp_path_factory.mktemp("report")
    store = Store(folder / "r.duckdb")
    scenarios = tuple(generated(family, seed) for family in ("mutual_friends", "craigslist") for seed in (1, 2))
    own, other = (
        start(Plan(scenarios, MODES, f"scripted:{name}", seed=3), store, Quiet(), lambda _: None).run_id
        for name in ("honest", "peeks-100")
    )
    others = [*conditions_of(store, own), *conditions_of(store, other)]
    file = folder / "report.html"
    file.write_text(render(of(store, Ask(own, others, talks=True))), encoding="utf-8")
    return file.as_uri()


@pytest.mark.parametrize("width", MOST)
def test_the_folded_report_is_short_and_accessible(browser: Browser, address: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollHeight") <= MOST[width]
    for state in ("folded", "open"):
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, f"{state}: too wide"
        found = serious_in(page)
        assert not found, f"{state}: {found}"
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    page.close()


def test_a_link_to_a_folded_part_opens_it(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(f"{address}#craigslist-comparison")
    assert _shown(page, "#craigslist-comparison")
    page.goto(address)
    page.reload()
    assert not _shown(page, "#mutual_friends-m-peeking")
    page.locator("a[href='#mutual_friends-m-peeking']").first.focus()
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#mutual_friends-m-peeking').checkVisibility()")
    box = page.locator("#mutual_friends-m-peeking").bounding_box()
    assert box and 0 <= box["y"] < 800, "it is on the screen"
    summary = page.locator("summary").filter(has_text="Simulation card")
    summary.focus()
    page.keyboard.press("Enter")
    assert _shown(page, "#card")
    page.close()


def test_everything_is_printed(browser: Browser, address: str) -> None:
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    page.goto(address)
    page.emulate_media(media="print")
    for part in ("#craigslist-comparison", "#made", "#mutual_friends-example"):
        assert _shown(page, part), f"{part} is folded on paper"
    page.close()


def _shown(page: Page, selector: str) -> bool:
    box = page.locator(selector).bounding_box()
    seen = page.evaluate(
        "name => document.querySelector(name).checkVisibility({contentVisibilityAuto: true})", selector
    )
    return bool(seen and box and box["height"] > 0)


@pytest.mark.parametrize("scheme", [0, 1])
def test_modes_and_people_have_the_colours_of_the_pages(scheme: int) -> None:
    """`scheme` is light or dark: the first and the second time that a style sheet names its colours."""
    pages = (ROOT / "localsim" / "web" / "static" / "app.css").read_text(encoding="utf-8")
    own = (ROOT / "localsim" / "reports" / "render" / "templates" / "report.css.j2").read_text(encoding="utf-8")
    for name in (
        *MODES,
        "iterative",
        "people",
        "own",
        "shared",
        "omniscient",
        "flag",
        *(f"s{number}" for number in range(8)),
    ):
        ours = re.findall(rf"--{name if name != 'omniscient' else 'strange'}:(#\w+)", own)
        assert ours[scheme] == re.findall(rf"--{name}:(#\w+)", pages)[scheme], name
        if name in COLOURS and not scheme:
            assert COLOURS[name] == ours[scheme], "also where figures are drawn"
