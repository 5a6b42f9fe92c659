"""localsim sql."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from localsim import paths
from localsim.cli import completion
from localsim.cli.answers import json_for_stdout, json_option, print_table
from localsim.cli.common import Finite, Named, db_option, store_of
from localsim.cli.progress import clean, say


@click.command()
@click.argument("query", required=False)
@click.option("-f", "--file", type=Named(dir_okay=False), help="Read the query from this file (- for standard input).")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    help="Print the rows in this format.",
)
@click.option("--limit", type=click.IntRange(0), default=10_000, help="Print at most this many rows; 0: all.")
@click.option(
    "--timeout",
    type=Finite(0, 1e9),
    default=60,
    help="Interrupt a query that takes longer than this many seconds; 0: never.",
)
@click.option(
    "--run",
    default="@last",
    shell_complete=completion.runs,
    help="Ask about this run: its id stands where the query has $run.",
)
@db_option
@json_option
def sql(
    query: str | None, file: str | None, form: str, limit: int, timeout: float, run: str, db: str | None, as_json: bool
) -> None:
    """Ask the database in SQL: read-only, without access to files or the network.

    Where the query has $run, it asks about the run that --run names. Put the query in single quotes then, because a
    shell reads $run between double quotes as a variable of its own.

    \b
    localsim sql "SHOW TABLES"
    localsim sql "SELECT mode, round(avg(words), 1) AS words FROM v_turns GROUP BY mode" --format csv
    localsim sql 'SELECT mode, count(*) FROM v_turns WHERE run_id = $run GROUP BY mode' --run @last-1
    """
    if (query is None) == (file is None):
        raise click.UsageError("give a query, or a file with -f")
    text = query if query is not None else _read(str(file))
    chosen = click.get_current_context().get_parameter_source("run") == ParameterSource.COMMANDLINE
    if chosen and "$run" not in text:
        raise click.UsageError("--run is given, and the query has no $run (in double quotes, the shell takes it away)")
    store = store_of(db)
    printer = _PRINTERS["json" if as_json else form]
    if limit == 0:
        with store.asking(text, timeout or None, run=run) as (columns, rows):
            printer(columns, rows)
        return
    columns, page, more = store.sql_page(text, rows=limit, seconds=timeout or None, run=run)
    printer(columns, page)
    if more:
        say(f"only the first {limit} rows are printed; --limit 0 prints all")


Rows = Iterable[tuple[Any, ...]]


def _print_rows_as_json(columns: Sequence[str], rows: Rows) -> None:
    """Print a list of objects row by row, as `print_json` prints it whole."""
    start = "["
    for row in rows:
        text = json_for_stdout(dict(zip(columns, row, strict=True))).replace("\n", "\n  ")
        click.echo(f"{start}\n  {text}", nl=False)
        start = ","
    click.echo("[]" if start == "[" else "\n]")


def _print_rows_as_csv(columns: Sequence[str], rows: Rows) -> None:
    """Print CSV. A text that a spreadsheet would run gets a quote in front; a terminal gets no control characters."""
    from localsim.reports.render.tables import harmless

    terminal = sys.stdout.isatty()
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for row in chain([columns], rows):
        writer.writerow(harmless(clean(value) if terminal and isinstance(value, str) else value for value in row))


def _print_rows_as_table(columns: Sequence[str], rows: Rows) -> None:
    print_table(columns, list(rows))


_PRINTERS = {"json": _print_rows_as_json, "csv": _print_rows_as_csv, "table": _print_rows_as_table}


def _read(file: str) -> str:
    return sys.stdin.read() if file == "-" else paths.read_text(Path(file))
