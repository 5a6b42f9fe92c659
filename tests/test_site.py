"""What is shared of a run: a folder of pages that opens without a server, and a talk as one picture."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser

from localsim.__main__ import run as command
from localsim.reports.figures import talk
from localsim.store.database import Store
from localsim.store.episodes import load_episode
from localsim.web import site
from tests.test_browser import browser, episode_of, pytestmark, watched
from tests.test_report_html import Page
from tests.web_server import HOSTILE, client_of, simulated

__all__ = ["browser", "pytestmark"]
LINKS = ("href", "src", "action", "data-fetch", "data-live")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str]:
    """A run with every kind of mark and hostile words."""
    return simulated(tmp_path_factory.mktemp("site") / "localsim.duckdb")


@pytest.fixture(scope="module")
def folder(made: tuple[Store, str]) -> Path:
    """Its pages."""
    store, run_id = made
    pages = store.path.parent / "pages"
    assert command(["export", run_id, "-f", "site", "-o", str(pages), "--db", str(store.path)]) == 0
    return pages


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


def test_talks_of_people_have_no_prompts_and_no_links_to_them(made: tuple[Store, str], tmp_path: Path) -> None:
    store, run_id = Store(tmp_path / "copy.duckdb"), made[1]
    store.path.write_bytes(made[0].path.read_bytes())
    episode_id = episode_of(store, run_id, "agents")
    with store.writing() as connection:
        connection.execute("UPDATE episodes SET mode = 'people' WHERE episode_id = ?", [episode_id])
    with store.held() as reader:
        pages = dict(site._Site(reader, run_id).pages())
    talk_of_people = pages.pop(f"talk-{episode_id}.html")
    assert "<h2>Prompts</h2>" not in talk_of_people and 'class="index" href' not in talk_of_people
    assert all("#prompt-0" in text for name, text in pages.items() if name.startswith("talk-"))


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


# ---- a talk as one picture -----------------------------------------------------------------------------------------


def written(drawn: str) -> str:
    """All words of a picture, without the breaks of its lines."""
    root = ElementTree.fromstring(drawn)
    lines = ["".join(each.itertext()) for each in root.iter() if each.tag.endswith("}text")]
    return " ".join(" ".join(lines).split())


def test_a_picture_has_both_sides_every_turn_and_who_could_know_what(made: tuple[Store, str]) -> None:
    store, run_id = made
    hit = store.rows("SELECT episode_id FROM scores WHERE name = 'unearned_hits' AND value > 0 ORDER BY 1 LIMIT 1")
    leaky = episode_of(store, run_id, "script")
    for episode_id, marks in (
        (hit[0]["episode_id"], ("★ untold hit", "◆ also known to", "among the facts of")),
        (leaky, ("▲", "had not been told: A fact <b>omniscient</b>.", "discloses, too early: A fact <b>self</b>.")),
    ):
        text, found = written(talk.image(store, episode_id)), load_episode(store, episode_id)
        for agent in found.scenario.agents:
            assert agent.goal in text and all(fact.text in text for fact in agent.facts), "both sides"
        said = [text.index(" ".join(talk._plain(turn["text"]).split())) for turn in found.turns if turn["text"]]
        assert said == sorted(said) and len(said) == len(found.turns)
        assert all(each in text for each in marks), text


def test_a_picture_is_as_wide_as_it_says_and_the_command_and_the_page_give_the_same(
    made: tuple[Store, str], browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, run_id = made
    episode_id = episode_of(store, run_id, "script")
    file = tmp_path / "new" / "talk.svg"
    options = ["show", episode_id, "--db", str(store.path), "--image"]
    assert command([*options, str(file)]) == 0
    with client_of(store) as client:
        answer = client.get(f"/episodes/{episode_id}/talk.svg")
        assert answer.text == file.read_text() and answer.headers["content-type"].startswith("image/svg+xml")
        assert f'href="/episodes/{episode_id}/talk.svg"' in client.get(f"/episodes/{episode_id}").text
        assert client.get("/episodes/nonsense/talk.svg").status_code == 400
    page = browser.new_page(viewport={"width": 800, "height": 600})
    page.goto(file.as_uri())
    ends = "Math.max(...[...document.querySelectorAll('text')].map((each) => each.getBoundingClientRect().right))"
    assert page.evaluate(ends) <= talk.WIDTH - talk.EDGE + 1
    page.close()
    capsys.readouterr()
    assert command([*options, str(tmp_path / "talk.png")]) == 3
    assert "talk.svg" in capsys.readouterr().err
