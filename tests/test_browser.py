"""The pages in a real browser: headless Chromium, keyboard only, phone and desktop, light and dark, and axe.

LOCALSIM_SCREENSHOTS=FOLDER keeps pictures of what is tested.
"""

from __future__ import annotations

import os
import shutil
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from localsim.annotation import records
from localsim.store.database import Store
from tests.web_server import serving, simulated

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
if CHROMIUM is None:
    warnings.warn(
        "NO CHROMIUM HERE: the pages are not tested in a browser (Debian: apt-get install chromium)", stacklevel=1
    )
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="NO CHROMIUM HERE: apt-get install chromium")

SIZES = {"desktop": (1280, 900), "phone": (360, 740)}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a screen."""
    quiet = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=quiet)
        yield found
        found.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Store, str]]:
    """Address of a server, its store, its run."""
    store, run_id = simulated(tmp_path_factory.mktemp("browser") / "b.duckdb")
    with serving(store) as base:
        yield base, store, run_id


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that must not complain."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    found = context.new_page()
    complaints = watched(found)
    yield found
    context.close()
    assert not complaints


def until(page: Page, condition: str, seconds: float = 60.0) -> None:
    """Wait until `condition` holds, a line of JavaScript.

    Playwright's own `wait_for_function` evaluates text inside the page, and our Content-Security-Policy forbids that
    unless the condition holds at once; a separate `evaluate` for each look is not bound by it.
    """
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, f"not within {seconds:g} seconds: {condition}"
        page.wait_for_timeout(50)


def watched(page: Page) -> list[str]:
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "console",
        lambda line: complaints.append(f"{line.text} {line.location['url']}") if line.type == "error" else None,
    )
    page.on("dialog", lambda dialog: (complaints.append(f"a dialog: {dialog.message}"), dialog.dismiss()))
    page.on(
        "request",
        lambda request: (
            None if request.url.startswith(("http://127.0.0.1:", "data:")) else complaints.append(request.url)
        ),
    )
    page.set_default_timeout(60_000)
    return complaints


BY_COLOUR = {"runOnly": ["color-contrast", "link-in-text-block"], "resultTypes": ["violations"]}
"""The rules of axe that a colour scheme can break; what the others find is the same in light and dark."""


def serious_in(page: Page) -> list[str]:
    """What axe finds to be serious in a page, in light and in dark; the page stays light."""
    found = [("light", each) for each in Axe().run(page).response["violations"]]
    page.emulate_media(color_scheme="dark")
    found += [("dark", each) for each in Axe().run(page, options=BY_COLOUR).response["violations"]]
    page.emulate_media(color_scheme="light")
    return [
        f"{each['id']} ({scheme}): {[node['html'][:120] for node in each['nodes'][:3]]}"
        for scheme, each in found
        if each["impact"] in ("serious", "critical")
    ]


def picture(page: Page, name: str) -> None:
    folder = os.environ.get("LOCALSIM_SCREENSHOTS")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{name}.png"), animations="disabled")


def episode_of(store: Store, run_id: str, mode: str, family: str = "craigslist") -> str:
    query = "SELECT episode_id FROM v_episodes WHERE run_id = ? AND mode = ? AND family = ?"
    return str(store.rows(query, [run_id, mode, family])[0]["episode_id"])


def pages_of(run_id: str) -> dict[str, str]:
    """The pages that tests/test_browser_pages.py leaves out."""
    return {"run": f"/runs/{run_id}", "nothing": "/no-such-page"}


def test_a_contrast_that_one_scheme_lacks_is_seen(page: Page) -> None:
    for scheme in ("light", "dark"):
        style = (
            f"p {{ color: #555; background: #fff }} @media (prefers-color-scheme: {scheme}) {{ p {{ color: #eee }} }}"
        )
        page.set_content(f"<html lang=en><title>T</title><style>{style}</style><main><h1>H</h1><p>Words.</p></main>")
        assert serious_in(page) == [f"color-contrast ({scheme}): ['<p>Words.</p>']"]


@pytest.mark.parametrize("size", SIZES)
def test_pages_fit_and_are_accessible(browser: Browser, site: tuple[str, Store, str], size: str) -> None:
    base, _, run_id = site
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    complaints = watched(page)
    for name, path in pages_of(run_id).items():
        page.goto(base + path)
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, f"{name} is too wide"
        found = serious_in(page)
        assert not found, f"{name} ({size}): {found}"
        picture(page, f"web-{name}-{size}")
    context.close()
    assert [each for each in complaints if "404" not in each] == []


def test_from_the_list_of_runs_to_a_leak_by_keyboard(page: Page, site: tuple[str, Store, str]) -> None:
    base, _, run_id = site
    page.goto(base)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{run_id}")
    page.keyboard.press("/")
    page.keyboard.type("onerror")
    page.keyboard.press("Enter")
    page.wait_for_url("**words=onerror**")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/episodes/*")
    assert page.locator("mark.omniscient, mark.self").count() >= 1
    assert "Untold fact" in page.locator("details.note.omniscient summary").inner_text()
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.id") == "turn-0"
    page.keyboard.press("Enter")
    page.wait_for_url("**/turns/0")
    page.keyboard.press("n")
    page.wait_for_url("**/turns/1")


def test_the_first_tab_leads_to_the_content(page: Page, site: tuple[str, Store, str]) -> None:
    page.goto(site[0])
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_a_query_by_keyboard(page: Page, site: tuple[str, Store, str]) -> None:
    page.goto(f"{site[0]}/sql")
    page.keyboard.press("/")
    page.keyboard.type("SELECT family, count(*) AS talks FROM v_episodes GROUP BY family")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("text=2 rows")
    assert page.locator("rect.bar").count() == 2


def test_pairs_by_keyboard_with_undo(page: Page, site: tuple[str, Store, str]) -> None:
    base, store, run_id = site
    page.goto(f"{base}/annotate/{run_id}/pairs?rater=keys&ties=1")
    for number, key in enumerate("120"):
        page.wait_for_selector(f"text={number} of")
        page.wait_for_load_state()  # the script is there
        page.wait_for_timeout(400)  # what comes sooner is taken for the second half of a double click
        page.keyboard.press(key)
    page.wait_for_selector("text=3 of")
    page.wait_for_load_state()
    page.wait_for_timeout(400)
    page.keyboard.press("u")
    page.wait_for_selector("text=2 of")
    assert len(records.done(store, "pairs", run_id, "keys")) == 2


def test_dimensions_by_keyboard(page: Page, site: tuple[str, Store, str]) -> None:
    base, store, run_id = site
    page.goto(f"{base}/annotate/{run_id}/dimensions?rater=keys")
    for group in page.locator("fieldset").all():
        group.locator("input").first.focus()
        page.keyboard.press("ArrowRight")
    page.wait_for_timeout(400)
    page.keyboard.press("Enter")
    page.wait_for_selector("text=1 of")
    assert len(records.done(store, "dimensions", run_id, "keys")) == 1


def test_a_talk_with_a_model_up_to_the_reveal(page: Page, site: tuple[str, Store, str]) -> None:
    base, _, _ = site
    page.goto(f"{base}/play")
    assert page.locator("details[open]").all_inner_texts()[0].count("friend in common") > 3, "it is offered first"
    page.locator("summary", has_text="haggle").focus()
    page.keyboard.press("Enter")
    page.locator("form:has(input[value=craigslist_01]) button").last.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/play/*/*")
    for number in range(2):
        page.wait_for_selector("text=It is your turn")
        page.wait_for_load_state()  # keys that are pressed before the page's script runs go nowhere
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("/")
        page.wait_for_selector("textarea[name=text]:focus")
        page.keyboard.type(f"This is line {number} <script>alert(1)</script>")
        if not number:
            picture(page, "web-seat-desktop")
        page.keyboard.press("Enter")
        page.wait_for_selector(f"text=This is line {number}")
    page.wait_for_selector("text=It is your turn")
    page.wait_for_load_state()
    page.locator("select[name=kind]").focus()
    page.keyboard.type("leave")
    page.keyboard.press("Tab")
    page.keyboard.type("Goodbye!")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=All sides", timeout=120_000)
    picture(page, "web-reveal-desktop")


def test_two_people_in_two_browsers(browser: Browser, site: tuple[str, Store, str]) -> None:
    base, _, _ = site
    one, other = browser.new_context(), browser.new_context()
    first, second = one.new_page(), other.new_page()
    first.goto(f"{base}/play")
    form = first.locator("form:has(input[value=mutual_friends_01])")
    form.locator("select[name=against]").select_option("person")
    form.locator("button").first.click()
    second.goto(first.locator("a.address").inner_text())
    for number, (mine, theirs) in enumerate([(first, second), (second, first)]):
        mine.wait_for_selector("text=It is your turn")
        mine.fill("textarea[name=text]", f"words {number}")
        mine.click("[data-send]")
        theirs.wait_for_selector(f"text=words {number}")
    first.wait_for_selector("text=It is your turn")
    first.select_option("select[name=kind]", "leave")
    first.fill("textarea[name=text]", "Bye!")
    first.click("[data-send]")
    for page in (first, second):
        page.wait_for_selector("text=All sides", timeout=120_000)
    one.close()
    other.close()


def test_pages_work_without_scripts(browser: Browser, site: tuple[str, Store, str]) -> None:
    base, store, run_id = site
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{base}/annotate/{run_id}/pairs?rater=plain")
    page.get_by_role("button", name="Conversation 1").click()
    page.wait_for_selector("text=1 of")
    assert len(records.done(store, "pairs", run_id, "plain")) == 1
    context.close()
