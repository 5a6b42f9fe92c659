"""localsim plot."""

from __future__ import annotations

from pathlib import Path

import click

from localsim.cli import completion
from localsim.cli.common import db_option, json_option, print_json, store_of
from localsim.errors import InvalidInput


@click.command()
@click.argument("run", default="@last", shell_complete=completion.runs)
@click.option("-o", "--output", type=click.Path(path_type=Path), default="figures", show_default=True, help="Folder.")
@click.option("-f", "--format", "forms", multiple=True, type=click.Choice(["svg", "png"]), help="[both]")
@db_option
@json_option
def plot(run: str, output: Path, forms: tuple[str, ...], db: str | None, as_json: bool) -> None:
    """Write the figures of a run as SVG and PNG.

    \b
    localsim plot @last -o figures
    """
    from localsim.plots import figures

    store = store_of(db)
    try:
        files = figures(store, store.run_id(run), output, forms or ("svg", "png"))
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", where=str(output)) from error
    if as_json:
        print_json([str(file) for file in files])
    else:
        click.echo("\n".join(map(str, files)))
