#!/usr/bin/env python3
"""Take the screenshots in docs/screenshots from a real run, with Debian's chromium.

make demo && .venv/bin/python scripts/pictures.py demo/demo.duckdb
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from urllib.parse import quote

import click
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import localsim  # noqa: E402
from localsim.reports.html import examples, render  # noqa: E402
from localsim.reports.report import report  # noqa: E402
from localsim.store.database import Store  # noqa: E402
from tests.web_server import serving  # noqa: E402

FOLDER = ROOT / "docs" / "screenshots"
LEAKY = (
    "SELECT episode_id FROM v_leaks WHERE mode = 'script' AND kind = 'omniscient' "
    "GROUP BY ALL ORDER BY count(*) DESC, episode_id LIMIT 1"
)


@click.command()
@click.argument("database", type=click.Path(exists=True, path_type=Path))
def main(database: Path) -> None:
    """Take the screenshots of the run with the leakiest script, and of a talk of it."""
    store, archive = Store(database), localsim.open(str(database))
    talk = archive.sql(LEAKY)[0]["episode_id"]
    run_id = archive.sql(f"SELECT run_id FROM episodes WHERE episode_id = '{talk}'")[0]["run_id"]
    other = archive.sql(
        "SELECT o.episode_id FROM v_episodes e JOIN v_episodes o ON o.run_id = e.run_id AND o.seed = e.seed AND "
        f"o.scenario_hash = e.scenario_hash WHERE e.episode_id = '{talk}' AND o.mode = 'agents'"
    )[0]["episode_id"]
    query = (ROOT / "db" / "queries" / "09_leaks_by_mode.sql").read_text().replace("$run", f"'{run_id}'")
    pages = {
        "run": f"/runs/{run_id}",
        "talk": f"/episodes/{talk}",
        "side-by-side": f"/compare?a={talk}&b={other}",
        "sql": f"/sql?q={quote(query)}",
        "play": "/play",
        "annotate-pair": f"/annotate/begin?run={run_id}&task=pairs&rater=rater-1",
    }
    with sync_playwright() as playwright, serving(store) as base:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, address in pages.items():
            # A bar that stays at the bottom would cut a whole page in two, and one of two talks is often much longer.
            whole = name not in ("play", "annotate-pair", "side-by-side")
            picture(browser, f"{base}{address}", f"web-{name}-desktop", 1280, full=whole)
        html = FOLDER / "report.html"
        html.write_text(render(report(store, run_id), examples(store, run_id)), encoding="utf-8")
        for name, width, dark in (
            ("report-1280", 1280, False),
            ("report-390", 390, False),
            ("report-dark", 1280, True),
        ):
            picture(browser, html.as_uri(), name, width, dark=dark)
        html.unlink()
        browser.close()


def picture(browser: Browser, address: str, name: str, width: int, *, full: bool = False, dark: bool = False) -> None:
    """Take one screenshot as a PNG file."""
    context = browser.new_context(
        viewport={"width": width, "height": 1400 if name.startswith("report") else 900},
        color_scheme="dark" if dark else "light",
    )
    page = context.new_page()
    page.goto(address)
    page.screenshot(path=FOLDER / f"{name}.png", full_page=full, animations="disabled")
    context.close()
    print(name)


if __name__ == "__main__":
    main()
