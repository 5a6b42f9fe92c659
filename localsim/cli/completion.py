"""Names that the shell completes: runs, episodes, scenarios, models. Whatever goes wrong completes nothing.

https://click.palletsprojects.com/en/stable/shell-completion/
"""

from __future__ import annotations

from collections.abc import Callable

import click
from click.shell_completion import CompletionItem

from localsim import paths
from localsim.api import Row
from localsim.errors import LocalsimError
from localsim.store.database import Store

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
    rows = _rows(ctx, "SELECT run_id, completed FROM v_runs ORDER BY started_utc DESC")
    return _after_last(rows, [(row["run_id"], f"{row['completed']} episodes") for row in rows])


def _episodes(ctx: click.Context) -> list[tuple[str, str]]:
    rows = _rows(ctx, "SELECT episode_id, scenario_id, mode FROM v_episodes ORDER BY run_id DESC LIMIT 200")
    return _after_last(rows, [(row["episode_id"], f"{row['scenario_id']} {row['mode']}") for row in rows])


def _rows(ctx: click.Context, query: str) -> list[Row]:
    """Nothing where the database is held: a shell must not wait."""
    path = paths.database_path(ctx.params.get("db"))
    return Store(path, patience_s=0.2).rows(query) if path.is_file() else []


def _after_last(rows: list[Row], named: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [("@last", "the newest one"), *named] if rows else []


def _scenarios(_ctx: click.Context) -> list[tuple[str, str]]:
    from localsim.scenarios.find import shipped_files

    return [(file.stem, "") for file in shipped_files()]


def _models(_ctx: click.Context) -> list[tuple[str, str]]:
    from localsim.models.registry import adapter_files, aliases, entries, installed_path

    here = [(entry.name, "installed" if installed_path(entry) else "can be pulled") for entry in entries()]
    sets = [(name, " + ".join(members)) for name, members in aliases().items()]
    return [*sets, *here, ("scripted", "no model"), *((f"starter+{file.stem}", "adapter") for file in adapter_files())]


runs = _completes(_runs)
episodes = _completes(_episodes)
scenarios = _completes(_scenarios)
models = _completes(_models)
