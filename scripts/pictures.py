#!/usr/bin/env python3
"""Take the screenshots in docs/screenshots from real runs, with Debian's chromium; with names, only those pictures.

make demo && .venv/bin/python scripts/pictures.py demo/demo.duckdb [NAME ...]

It also makes docs/words.svg (`words`), which needs no browser.

The class in the pictures is played by scripted players. `tests/test_browser_start.py` takes the picture of three talks
that grow.
"""

from __future__ import annotations

import io
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import localsim  # noqa: E402
from localsim.families import auto, omniscient  # noqa: E402
from localsim.machine import PORT  # noqa: E402
from localsim.reports.render.html import render  # noqa: E402
from localsim.reports.report import Ask, of  # noqa: E402
from localsim.store.database import Store  # noqa: E402
from localsim.web.classroom.hall import Hall  # noqa: E402
from localsim.web.classroom.seats import Seat  # noqa: E402
from localsim.web.floor.state import Live  # noqa: E402
from scripts.words_picture import picture as words_picture  # noqa: E402
from tests.test_browser_class import MY_TURN, PHONE, PROJECTOR, class_served  # noqa: E402
from tests.web_server import serving  # noqa: E402

FOLDER = ROOT / "docs" / "screenshots"
LEAKY = (
    "SELECT episode_id FROM v_leaks WHERE mode = 'script' AND kind = 'omniscient' "
    "GROUP BY ALL ORDER BY count(*) DESC, episode_id LIMIT 1"
)
PHONES = 12
CLASS_SEED = 4
"""In the talk of the phone that is followed, each sees its own side, and the partner begins."""
COLOURS = 256
"""Pages have few colours: a palette keeps them and makes a file a third as large."""


@click.command()
@click.argument("database", type=click.Path(exists=True, path_type=Path))
@click.argument("names", nargs=-1)
def main(database: Path, names: tuple[str, ...]) -> None:
    """Take the screenshots of the run with the leakiest script, of a talk of it, and of a class."""
    if not names or "words" in names:
        (ROOT / "docs" / "words.svg").write_text(words_picture(), encoding="utf-8")
        print("words")
    if list(names) == ["words"]:
        return
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        camera = Camera(browser, names)
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "localsim.duckdb"
            shutil.copyfile(database, copy)
            run_id = pages_of_runs(camera, copy)
            report_of_run(camera, copy, run_id)
            if camera.wants("web-runs-"):
                list_of_runs(camera, copy)
            if camera.wants("web-class-"):
                class_with_phones(camera, Path(folder) / "class.duckdb")
        browser.close()


@dataclass(frozen=True)
class Camera:
    """A browser, and the names of the pictures to take; without names all are taken."""

    browser: Browser
    names: Collection[str]

    def wants(self, start: str) -> bool:
        """Return True if a picture whose name begins so is to be taken."""
        return not self.names or any(name.startswith(start) for name in self.names)

    def take(self, page: Page, name: str, *, full: bool = False) -> None:
        """Keep a picture of a page as a PNG file; `full` takes what is below the window as well."""
        if not self.wants(name):
            return
        taken = Image.open(io.BytesIO(page.screenshot(full_page=full, animations="disabled"))).convert("RGB")
        few = taken.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        few.save(FOLDER / f"{name}.png", optimize=True)
        print(name)

    def visit(self, address: str, name: str, size: Any, *, full: bool = False, dark: bool = False) -> None:
        """Open a page in a window of its own and take its picture."""
        if self.wants(name):
            page = self.page(size, dark=dark)
            page.goto(address)
            self.take(page, name, full=full)
            page.context.close()

    def page(self, size: Any, *, dark: bool = False) -> Page:
        """Return an empty page in a window of its own."""
        return self.browser.new_context(viewport=size, color_scheme="dark" if dark else "light").new_page()


def pages_of_runs(camera: Camera, database: Path) -> str:
    """Take the pages of `localsim view` and what is reached from them; return the id of the run that they show."""
    store, archive = Store(database), localsim.open(str(database))
    talk = archive.sql(LEAKY)[0]["episode_id"]
    run_id: str = archive.sql(f"SELECT run_id FROM episodes WHERE episode_id = '{talk}'")[0]["run_id"]
    other = archive.sql(
        "SELECT o.episode_id FROM v_episodes e JOIN v_episodes o ON o.run_id = e.run_id AND o.seed = e.seed AND "
        f"o.scenario_hash = e.scenario_hash WHERE e.episode_id = '{talk}' AND o.mode = 'agents'"
    )[0]["episode_id"]
    query = (ROOT / "db" / "queries" / "09_leaks_by_mode.sql").read_text().replace("$run", f"'{run_id}'")
    pages = {
        "start": "/start",
        "run": f"/runs/{run_id}",
        "talk": f"/episodes/{talk}",
        "side-by-side": f"/compare?a={talk}&b={other}",
        "sql": f"/sql?q={quote(query)}",
        "play": "/play",
        "annotate-pair": f"/annotate/begin?run={run_id}&task=pairs&rater=rater-1",
    }
    with serving(store) as base:
        for name, address in pages.items():
            # A bar that stays at the bottom would cut a whole page in two, and one of two talks is often much longer.
            whole = name not in ("play", "annotate-pair", "side-by-side")
            camera.visit(f"{base}{address}", f"web-{name}-desktop", PROJECTOR, full=whole)
    return run_id


def list_of_runs(camera: Camera, database: Path) -> None:
    """Take the list of runs, after two more of scripted players: one of a single scenario, and one with a name."""
    localsim.run("mutual_friends_01", modes="all", model="scripted:omniscient", seed=1, db=str(database))
    pilot = [f"craigslist_{number:02d}" for number in range(1, 5)]
    localsim.run(*pilot, modes=["agents"], model="scripted", seed=1, db=str(database), name="first pilot")
    with serving(Store(database)) as base:
        camera.visit(base, "web-runs-desktop", {**PROJECTOR, "height": 300}, full=True)


def report_of_run(camera: Camera, database: Path, run_id: str) -> None:
    """Take the top of a report: on a desk, on a phone, and in the dark."""
    store = Store(database)
    with tempfile.TemporaryDirectory() as folder:
        html = Path(folder) / "report.html"
        html.write_text(render(of(store, Ask(run_id, talks=True))), encoding="utf-8")
        for name, width in (("1280", 1280), ("390", 390), ("dark", 1280)):
            camera.visit(html.as_uri(), f"report-{name}", {"width": width, "height": 1400}, dark=name == "dark")


# ---- a class -------------------------------------------------------------------------------------------------------


def class_with_phones(camera: Camera, path: Path) -> None:
    """Play a class: one seat is a phone that the camera follows; scripted players have the others, and all words."""
    with class_served(path, CLASS_SEED) as (hall, base):
        hall.opening = replace(hall.opening, port=PORT)
        keys = [f"phone {number}" for number in range(PHONES - 2)]
        seats = [hall.join(key) for key in keys]
        *over, going = hall.live.values()
        for live in over:
            speak(hall, live)
        speak(hall, going, 2)
        for seat in seats[:-2]:
            bet(hall, seat)
        projector, phone = camera.page(PROJECTOR), camera.page(PHONE)
        projector.goto(f"{base}/class/teacher?key={hall.opening.teacher}&token={hall.opening.access}")
        enter(camera, phone, base, hall)
        own = max(hall.live.values(), key=lambda live: live.meeting.number)
        speak(hall, own, 1)
        phone.wait_for_selector(MY_TURN)
        phone.evaluate("scrollTo(0, 0)")
        camera.take(phone, "web-class-seat-phone")
        for key in keys:
            hall.seat_with(key)  # a phone that has asked lately counts as present
        projector.reload()
        camera.take(projector, "web-class-projector-desktop")
        speak(hall, own)
        bet_on_phone(camera, phone)
        hall.reveal()
        projector.reload()
        camera.take(projector, "web-class-reveal-desktop")


def enter(camera: Camera, phone: Page, base: str, hall: Hall) -> None:
    """Take a phone from the code on the projector to a seat, and let a partner come."""
    phone.goto(base)
    phone.fill("input[name=code]", hall.opening.code)
    phone.get_by_role("button", name="Join").click()
    phone.wait_for_selector("text=Take a seat")
    camera.take(phone, "web-class-join-phone")
    phone.click("text=Take a seat")
    phone.wait_for_selector("text=Waiting for a partner")
    hall.join("the partner")
    phone.wait_for_selector("text=Your goal.")


def bet_on_phone(camera: Camera, phone: Page) -> None:
    """Place the two bets of a phone whose talk has ended."""
    phone.wait_for_selector("h1:text('Your bets')")
    for box in phone.get_by_label("Both sides see everything").all():
        box.check()
    phone.click("text=Place the bet")
    phone.wait_for_selector("text=Read a talk of others")
    camera.take(phone, "web-class-bet-phone")
    phone.get_by_label("Each only its own side").check()
    phone.click("text=Place the bet")
    phone.wait_for_selector("text=Thank you")


def speak(hall: Hall, live: Live, turns: int = 1000) -> None:
    """Let scripted players go on with a talk: up to so many turns in all, or to its end."""
    draws = random.Random(live.meeting.number)
    play = omniscient if live.meeting.mode == "mindreaders" else auto
    while not live.ended and len(live.turns) < turns:
        request = hall.players.asked(live.spec.hash)
        if request is None:
            time.sleep(0.01)
            continue
        hall.take(live, request.speaker, len(live.turns), play(hall.seen_by(live, request.speaker), draws))


def bet(hall: Hall, seat: Seat) -> None:
    """Place the two bets of a seat whose talk has ended: short talks look as if both saw all."""
    turns, hits = ("mindreaders" if seat.number % several else "same" for several in (3, 2))
    hall.bet_modes(seat, turns=turns, hits=hits)
    read = hall.to_read(seat)
    if read is not None:
        hall.bet_saw(seat, read.meeting.number, (len(read.turns) < 4) != (seat.number % 4 == 1))


if __name__ == "__main__":
    main()
