"""Names that the shell completes: runs, episodes, scenarios, models. After an error it completes nothing.

https://click.palletsprojects.com/en/stable/shell-completion/
"""

from __future__ import annotations

from collections.abc import Callable

import click
from click.shell_completion import CompletionItem

from localsim import paths
from localsim.errors import LocalsimError
from localsim.runs import telling
from localsim.store.database import Store
from localsim.store.queries import runs as queries

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completes(names: Callable[[click.Context], list[tuple[str, str]]]) -> Complete:
    """A click completion of (name, help) pairs."""

    def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            found = names(ctx)
        except (LocalsimError, OSError):
            return []
        return [CompletionItem(name, help=text) for name, text in found if name.startswith(incomplete)]

    return complete


def _runs(ctx: click.Context) -> list[tuple[str, str]]:
    store = _store(ctx)
    rows = queries.every_run(store) if store else []
    names = telling.names_of(store, rows) if store else {}
    return _after_last([(row["run_id"], f"{names[row['run_id']]}, {telling.episodes_of(row)}") for row in rows])


def _episodes(ctx: click.Context) -> list[tuple[str, str]]:
    store = _store(ctx)
    rows = queries.newest_episodes(store, 200) if store else []
    return _after_last([(row["episode_id"], f"{row['scenario_id']} {row['mode']}") for row in rows])


def _store(ctx: click.Context) -> Store | None:
    """Return the store, which gives up soon where the database is held, because a shell must not wait."""
    path = paths.database_path(ctx.params.get("db"))
    return Store(path, patience_s=0.2) if path.is_file() else None


def _after_last(named: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [("@last", "the newest one"), *named] if named else []


def _scenarios(_ctx: click.Context) -> list[tuple[str, str]]:
    from localsim.scenarios.documents import shipped_files
    from localsim.scenarios.find import shipped_sources

    names = [*(source.name for source in shipped_sources()), *(file.stem for file in shipped_files("situations"))]
    return [(name, "") for name in names]


def _models(_ctx: click.Context) -> list[tuple[str, str]]:
    from localsim.models.registry import adapter_files, aliases, entries, installed_path

    here = [(entry.name, "installed" if installed_path(entry) else "can be pulled") for entry in entries()]
    sets = [(name, " + ".join(members)) for name, members in aliases().items()]
    return [*sets, *here, ("scripted", "no model"), *((f"starter+{file.stem}", "adapter") for file in adapter_files())]


def _rubrics(_ctx: click.Context) -> list[tuple[str, str]]:
    from localsim.scenarios.documents import shipped_files
    from localsim.scenarios.rubrics import shipped_rubric

    return [(file.stem, shipped_rubric(file.stem).title) for file in shipped_files("rubrics")]


runs = _completes(_runs)
episodes = _completes(_episodes)
scenarios = _completes(_scenarios)
models = _completes(_models)
rubrics = _completes(_rubrics)
