"""A run as a folder of pages that open without a server: the viewer's own templates, with links to files.

A page that would ask the server something is left out, and so is every link to it. The prompts of a talk are folded on
its page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from localsim.errors import writing
from localsim.paths import file_name
from localsim.reports.render.html import render
from localsim.reports.report import Ask, of
from localsim.store.database import Store
from localsim.store.queries import pages as queries
from localsim.web import heads, view_data
from localsim.web.app import static_folder
from localsim.web.render import environment, rendered
from localsim.web.view_pages import about_run, about_talk

_STYLES = ("app.css", "app.js")
_PROMPT = re.compile(r"/episodes/\w+/turns/(\d+)")


def write_site(store: Store, run_id: str, folder: Path) -> list[Path]:
    """Write the pages of a run to a folder, which is made if needed, and return the files. Raises InvalidInput."""
    report = render(of(store, Ask(run_id, talks=True)), back=f"run-{file_name(run_id)}.html")
    view_data.answer(store, run_id)  # before the database is held: scripted players may have to play first
    with writing(folder), store.held() as reader:
        folder.mkdir(parents=True, exist_ok=True)
        files = [_written(folder / name, static_folder().joinpath(name).read_text("utf-8")) for name in _STYLES]
        files.append(_written(folder / f"report-{run_id}.html", report))
        return files + [_written(folder / name, text) for name, text in _Site(reader, run_id).pages()]


def _written(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file


class _Site:
    """The pages of a run, each under the name of its file."""

    def __init__(self, store: Store, run_id: str) -> None:
        self._store, self._run_id = store, run_id
        talks = queries.episode_ids(store, run_id)
        self._files = {
            "/": "index.html",
            f"/runs/{run_id}": f"run-{run_id}.html",
            f"/runs/{run_id}/report": f"report-{run_id}.html",
            **{f"/static/{name}": name for name in _STYLES},
            **{f"/episodes/{episode_id}": f"talk-{file_name(episode_id)}.html" for episode_id in talks},
        }
        self._prompted: set[int] = set()
        """Turns of the talk that is being rendered whose prompts stand on its page; people had none."""
        self._environment = environment(self._url, served=False)

    def _url(self, path: str) -> str:
        """Return the file of a page, from any page of the folder; a prompt is a part of the page of its talk."""
        if prompt := _PROMPT.fullmatch(path):
            return f"#prompt-{prompt[1]}" if int(prompt[1]) in self._prompted else ""
        return self._files.get(path, "")

    def pages(self) -> Iterator[tuple[str, str]]:
        """Yield the name and the text of each page."""
        store, run_id = self._store, self._run_id
        (head,) = runs = heads.runs(store, run_id)
        yield self._page("view/runs", "/", runs=runs, database="")
        every = view_data.matrix(store, run_id, queries.EpisodeFilter(), size=1_000_000)
        yield self._page("view/run", f"/runs/{run_id}", **about_run(store, run_id, every, at_once=True))
        for path in [each for each in self._files if each.startswith("/episodes/")]:
            marked = view_data.marked_episode(store, path.removeprefix("/episodes/"))
            prompts = view_data.prompts(store, marked)
            self._prompted = {turn for each in prompts for turn in each.turns}
            yield self._page("view/episode", path, **about_talk(store, marked, head), prompts=prompts)

    def _page(self, template: str, path: str, **values: Any) -> tuple[str, str]:
        given = {"csrf": "", "path": path, "menu": [("/", "Runs")], "query": "", **values}
        return self._files[path], rendered(self._environment, template, **given)
