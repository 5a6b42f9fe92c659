"""localsim view."""

from __future__ import annotations

import click

from localsim import paths
from localsim.cli import completion
from localsim.cli.common import Pages, db_option, say, serve_pages, store_of, web_options
from localsim.engines import absolute
from localsim.errors import DatabaseError


@click.command()
@click.argument("run", required=False, shell_complete=completion.runs)
@web_options
@db_option
def view(run: str | None, host: str, port: int | None, open_browser: bool, db: str | None) -> None:
    """Look at runs in the browser: talks with both sides, leaks underlined, every prompt, SQL, annotation, play.

    Nothing leaves this machine, unless --host lets a network in.

    \b
    localsim view --open
    localsim view @last
    """
    store = store_of(db)
    if db and not store.path.is_file():
        raise DatabaseError("no database here yet", where=str(store.path), hint="localsim run makes one")
    path = f"/runs/{store.run_id(run)}" if run else "/"
    serve_pages(store, host, port, Pages(path, absolute(paths.default_model()), open_browser=open_browser), say)
