"""The lanes of a talk in a browser: a phone and a desktop, light and dark, keyboard, without scripts, and axe."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from localsim.conversation.episode import MODES
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from tests import test_browser as others
from tests.conftest import Quiet, generated
from tests.test_browser import browser, picture, serious_in, watched
from tests.test_browser_pages import SIDEWAYS, SIZES, opened
from tests.web_server import serving

pytestmark = others.pytestmark
__all__ = ["browser"]
Site = tuple[str, dict[str, str]]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server, and the paths of talks with lanes: whispers and votes, and an auction of thirty."""
    store = Store(tmp_path_factory.mktemp("lanes") / "l.duckdb")
    scenarios = (*find_scenarios(["where_to_eat"]), generated("auction", 1, bidders=30))
    run_id = start(Plan(scenarios, MODES, "scripted:any", seed=1), store, Quiet(), lambda _: None, leaks=False).run_id
    rows = store.rows("SELECT scenario_id, mode, episode_id FROM v_episodes WHERE run_id = ?", [run_id])
    paths = {(row["scenario_id"], row["mode"]): f"/episodes/{row['episode_id']}" for row in rows}
    with serving(store) as base:
        yield (
            base,
            {
                "friends": paths["where_to_eat", "agents"],
                "minds": paths["where_to_eat", "mindreaders"],
                "auction": paths["auction_01", "agents"],
            },
        )


@pytest.mark.parametrize("size", SIZES)
def test_lanes_fit_and_axe_finds_nothing_serious(browser: Browser, site: Site, size: str) -> None:
    base, paths = site
    page = opened(browser, size)
    complaints = watched(page)
    for name, path in paths.items():
        page.goto(f"{base}{path}/lanes")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, name
        assert page.evaluate(SIDEWAYS) == [], name
        assert serious_in(page) == [], name
        picture(page, f"lanes-{name}-{size}")
    page.context.close()
    assert complaints == []


def test_a_desktop_shows_all_lanes_and_a_phone_the_chosen_one_by_keyboard_and_without_scripts(
    browser: Browser, site: Site
) -> None:
    base, paths = site
    wide = opened(browser, "desktop")
    wide.goto(base + paths["friends"])
    wide.get_by_role("link", name="Who could read what, in lanes").click()
    wide.wait_for_url("**/lanes")
    assert wide.locator("thead th:visible").count() == 6 and not wide.locator(".lanetabs").is_visible()
    assert wide.locator("td.none").count() > 0 and all(each.is_visible() for each in wide.locator("tbody td").all())
    wide.context.close()
    width, height = SIZES["phone"]
    context = browser.new_context(viewport={"width": width, "height": height}, java_script_enabled=False)
    phone = context.new_page()
    phone.goto(f"{base}{paths['friends']}/lanes")
    shown = [each.is_visible() for each in phone.locator("tbody td").all()]
    assert sum(shown) == phone.locator("td.here").count() == phone.locator("tbody tr").count() < len(shown)
    last = phone.locator(".lanetabs a").last
    last.focus()
    phone.keyboard.press("Enter")
    phone.wait_for_url("**lane=4")
    assert phone.locator(".lanetabs [aria-current]").inner_text() == phone.locator("thead th.here").inner_text()
    hidden = phone.locator("td.none.here .blank").all()
    assert hidden and all(each.is_visible() and each.inner_text() == "cannot read it" for each in hidden)
    context.close()


def test_one_of_thirty_lanes_is_chosen_from_a_list(browser: Browser, site: Site) -> None:
    base, paths = site
    page = opened(browser, "phone")
    page.goto(f"{base}{paths['auction']}/lanes")
    page.get_by_label("lane").select_option("29")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**lane=29")
    assert page.locator("select option[selected]").inner_text() == page.locator("thead th.here").inner_text()
    page.context.close()
