"""The viewer's and the annotation pages in a browser: a phone and a desktop, light and dark, keyboard only, and axe.

The episodes are those of `tests.web_server.simulated`, so every kind of mark and hostile words are among them.
"""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Browser, Page
from starlette.routing import Route

from localsim.store.database import Store
from localsim.web import view_data
from localsim.web.app import Site, create_app
from localsim.web.guard import Access
from tests import test_browser as others
from tests.test_browser import browser, episode_of, picture, serious_in, site, until, watched
from tests.web_server import HOSTS, field, without_a_talk

pytestmark = others.pytestmark
__all__ = ["browser", "site"]
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
SITE = tuple[str, Store, str]


def pages_of(store: Store, run_id: str) -> dict[str, str]:
    script, agents, minds = (episode_of(store, run_id, mode) for mode in ("script", "agents", "mindreaders"))
    return {
        "runs": "/",
        "run": f"/runs/{run_id}",
        "run-failures": f"/runs/{run_id}?outcome=failures",
        "talk": f"/episodes/{script}",
        "talk-of-friends": f"/episodes/{episode_of(store, run_id, 'agents', 'mutual_friends')}",
        "prompt": f"/episodes/{agents}/turns/1",
        "judgements": f"/episodes/{agents}/judgements",
        "side-by-side": f"/compare?a={script}&b={agents}&c={minds}",
        "compared": f"/compare/runs?run={run_id}&all=1",
        "start": "/start",
        "play": "/play",
        "sql": "/sql?q=SELECT+mode,+count(*)+AS+turns+FROM+v_turns+GROUP+BY+mode",
        "annotate": f"/annotate?run={run_id}",
        "annotate-pair": f"/annotate/{run_id}/pairs?rater=looker&ties=1",
        "annotate-dimensions": f"/annotate/{run_id}/dimensions?rater=looker",
        "annotate-disclosures": f"/annotate/{run_id}/disclosures?rater=looker",
        "annotate-results": f"/annotate/{run_id}",
        "lanes": f"/episodes/{script}/lanes",
    }


def seat_in(base: str) -> dict[str, str]:
    """The seat of a game that waits for another person."""
    with httpx2.Client(base_url=base, follow_redirects=True, timeout=60) as client:
        form = {"csrf": field(client.get("/play").text, "csrf"), "scenario": "craigslist_01", "mode": "mindreaders"}
        return {"seat": client.post("/play", data={**form, "role": "Renata", "against": "person"}).url.path}


NOT_PAGES = ("/live", "/answer", "/part", "/turns", ".svg", "/annotate/begin")
"""How the paths of parts of pages, of pictures, and of what leads to a page end."""
ELSEWHERE = ("/report", "/start/now", "/start/runs/{run}")
"""How the paths of pages end that tests/test_report_browser.py and tests/test_browser_start.py open."""


def test_a_mark_unfolds_by_keyboard_from_the_list_of_runs(phone: Page, site: SITE) -> None:
    base, _, run_id = site
    phone.goto(base)  # the tests below begin a newer run, a seat that waits
    phone.keyboard.press("j")
    phone.keyboard.press("Enter")
    phone.wait_for_url(f"**/runs/{run_id}")
    phone.get_by_role("link", name="untold facts", exact=True).focus()
    phone.keyboard.press("Enter")
    phone.wait_for_url("**leaks=omniscient")
    assert phone.locator("a.cell").count() == 1
    phone.keyboard.press("j")
    phone.keyboard.press("Enter")
    phone.wait_for_url("**/episodes/*")
    mark = phone.locator("a.why").first
    note = phone.locator(mark.get_attribute("href") or "")
    assert not note.is_visible()
    mark.focus()
    phone.keyboard.press("Enter")
    note.wait_for(state="visible")
    assert "Of 10 such marks, about" in note.inner_text()
    phone.keyboard.press("Enter")
    note.wait_for(state="hidden")
    other = phone.locator("details.note.self").first
    other.locator("summary").focus()
    phone.keyboard.press("Enter")
    other.locator("p").wait_for(state="visible")


def test_no_page_of_the_viewer_is_left_out(site: SITE) -> None:
    base, store, run_id = site
    shown = {path.partition("?")[0] for path in {**pages_of(store, run_id), **seat_in(base)}.values()}
    app = create_app(Site(store, Access(HOSTS), "scripted"))
    routes = [each for each in app.routes if isinstance(each, Route) and "GET" in (each.methods or ())]
    unseen = [each.path for each in routes if not any(each.path_regex.fullmatch(path) for path in shown)]
    assert len(routes) > 20 and not [path for path in unseen if not path.endswith(NOT_PAGES + ELSEWHERE)]


def opened(browser: Browser, size: str) -> Page:
    width, height = SIZES[size]
    return browser.new_context(viewport={"width": width, "height": height}).new_page()


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    """A page of 390 pixels that must not complain."""
    page = opened(browser, "phone")
    complaints = watched(page)
    yield page
    page.context.close()
    assert not complaints


SIDEWAYS = """[...document.querySelectorAll("main *")].filter((each) => each.scrollWidth > each.clientWidth + 1
  && ["auto", "scroll"].includes(getComputedStyle(each).overflowX)).map((each) => each.outerHTML.slice(0, 90))"""


HIDDEN = """[...document.querySelectorAll("main *:not(textarea)")].filter((each) =>
  each.scrollHeight > each.clientHeight + 1 && ["auto", "scroll"].includes(getComputedStyle(each).overflowY)
).map((each) => each.outerHTML.slice(0, 90))"""
"""Parts that scroll by themselves: what is below their edge, nobody sees."""


@pytest.mark.parametrize("size", SIZES)
def test_no_page_scrolls_sideways_and_axe_finds_nothing_serious(browser: Browser, site: SITE, size: str) -> None:
    base, store, run_id = site
    page = opened(browser, size)
    complaints = watched(page)
    bare = {name: f"/runs/{each}" for name, each in without_a_talk(store, run_id).items()}
    for name, path in {**pages_of(store, run_id), **bare, **seat_in(base)}.items():
        page.goto(base + path)
        page.evaluate("document.querySelectorAll('details:not([data-fold])').forEach((each) => { each.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, f"{name} is too wide"
        assert page.evaluate(SIDEWAYS) == [], name
        assert size == "phone" or page.evaluate(HIDDEN) == [], name
        found = serious_in(page)
        assert not found, f"{name} ({size}): {found}"
        picture(page, f"view-{name}-{size}")
    page.context.close()
    assert complaints == []


def test_the_slash_opens_the_filters(phone: Page, site: SITE) -> None:
    base, _, run_id = site
    phone.goto(f"{base}/runs/{run_id}")
    assert not phone.locator("[data-search]").is_visible()
    phone.keyboard.press("/")
    phone.keyboard.type("onerror")
    phone.keyboard.press("Enter")
    phone.wait_for_url("**words=onerror**")
    assert phone.locator("a.cell").count() == 1


def test_private_sides_stay_in_view_on_a_desktop_and_fold_on_a_phone(browser: Browser, site: SITE) -> None:
    base, store, run_id = site
    path = f"{base}/episodes/{episode_of(store, run_id, 'agents', 'mutual_friends')}"
    for size in SIZES:
        page = opened(browser, size)
        page.goto(path)
        page.evaluate("document.querySelector('.turns').style.paddingBottom = '3000px'")  # a long talk
        goal = page.locator(".person h3").first
        assert goal.is_visible() == (size == "desktop")
        page.mouse.wheel(0, 1500)
        until(page, "scrollY > 1200")
        if size == "phone":
            summary = page.locator("details.sides summary")
            summary.click()
        box = goal.bounding_box()
        assert box is not None and 0 <= box["y"] < SIZES[size][1], f"{size}: {box}"
        page.context.close()


def test_tabs_choose_a_mode_on_a_phone_by_keyboard(phone: Page, site: SITE) -> None:
    base, store, run_id = site
    phone.goto(base + pages_of(store, run_id)["side-by-side"])
    panels = phone.locator(".panel")
    assert [panel.is_visible() for panel in panels.all()] == [True, False, False]
    phone.locator(".tablist input").first.focus()
    phone.keyboard.press("ArrowRight")
    phone.keyboard.press("ArrowRight")
    assert [panel.is_visible() for panel in panels.all()] == [False, False, True]
    wide = opened(phone.context.browser, "desktop")  # type: ignore[arg-type]
    wide.goto(phone.url)
    assert all(panel.is_visible() for panel in wide.locator(".panel").all())
    assert not wide.locator(".tablist").is_visible()
    wide.context.close()


def test_answers_of_a_rater_stay_in_reach(phone: Page, site: SITE) -> None:
    base, _, run_id = site
    phone.goto(f"{base}/annotate/{run_id}/pairs?rater=reach&ties=1")
    assert phone.evaluate("document.documentElement.scrollHeight") > SIZES["phone"][1]
    for button in phone.locator(".reach button").all():
        box = button.bounding_box()
        assert box is not None and box["y"] + box["height"] <= SIZES["phone"][1] and box["height"] >= 44, box


def test_the_answer_of_a_large_run_comes_after_its_page(
    phone: Page, site: SITE, monkeypatch: pytest.MonkeyPatch
) -> None:
    base, _, run_id = site
    monkeypatch.setattr(view_data, "ANSWERED_AT_ONCE", 0)
    view_data._ANSWERS.clear()
    phone.goto(f"{base}/runs/{run_id}")
    phone.wait_for_selector("[data-fetch] .answer h2", state="attached")
    assert "seeing every side " in phone.locator(".answer").inner_text()
