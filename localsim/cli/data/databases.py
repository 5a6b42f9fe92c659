"""localsim db."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from localsim import paths
from localsim.cli.common import Reassurance, db_option, echo, json_option, print_json, print_table, say, store_of
from localsim.conversation.episode import counted


@click.group(invoke_without_command=True)
@click.pass_context
def db(ctx: click.Context) -> None:
    """Show where the database is, check it, and work with many databases."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(info)


@db.command()
@db_option
def path(db: str | None) -> None:
    """Print the path of the database."""
    click.echo(paths.database_path(db))


@db.command()
@db_option
@json_option
def info(db: str | None = None, as_json: bool = False) -> None:
    """Print size, schema version and row counts."""
    store = store_of(db)
    data: dict[str, Any] = {"path": str(store.path), **store.info()}
    if as_json:
        print_json(data)
        return
    for key, value in data.items():
        click.echo(f"{key}: {value}")


@db.command()
@db_option
@json_option
def check(db: str | None, as_json: bool) -> None:
    """Look for rows that contradict each other and for texts with a wrong hash."""
    problems = store_of(db).check()
    if as_json:
        print_json({"problems": problems})
    else:
        click.echo("\n".join(problems) if problems else "ok")
    if problems:
        sys.stdout.flush()
        from localsim.errors import DatabaseError

        raise DatabaseError(f"{len(problems)} kinds of rows do not fit together", where=str(paths.database_path(db)))


@db.command()
def schema() -> None:
    """Print the schema as SQL."""
    from localsim.store.schema import schema_sql

    click.echo(schema_sql(), nl=False)


@db.command("attach")
@click.argument("places", nargs=-1, required=True, metavar="FOLDER|PATTERN|DATABASE...")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the list of files to this file, which --db then takes as a database.",
)
@json_option
def attach_(places: tuple[str, ...], output: Path, as_json: bool) -> None:
    """Show the runs of many Parquet folders and databases together, without copying them.

    The file that this writes lists the others. With it as --db, `report`, `sql`, `show`, `view` and all other commands
    that only read work as with one database. New runs in the folders and databases are seen at once. A run that is in
    several of them is read from the first.

    \b
    localsim db attach results -o all.duckdb
    localsim db attach "laptops/*.duckdb" results -o class.duckdb
    localsim report @last --db class.duckdb
    """
    from localsim.store.outside.attaching import attach_all

    with Reassurance("reading the files", quiet=as_json):
        made = attach_all(places, output.absolute(), say)
    if as_json:
        print_json(made.as_json())
        return
    click.echo(f"{output}: {counted(made.episodes)} of {made.runs} runs in {len(made.sources)} files and folders")
    for run_id, place in made.doubled:
        say(f"run {run_id} is in several of them; that of {place} is left out")
    say(f"next: localsim report @last --db {output}")


@db.command()
@click.argument("places", nargs=-1, required=True, metavar="DATABASE|FOLDER|PATTERN...")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Add the runs to this database; it is made if it does not exist.",
)
@click.option(
    "--keep-apart",
    is_flag=True,
    help="Keep what has a known id and another content under a new id, such as RUN~2 [it is named and kept out].",
)
@json_option
def merge(places: tuple[str, ...], output: Path, keep_apart: bool, as_json: bool) -> None:
    """Add all runs of other databases to one, such as those of the laptops of a class.

    Nothing is doubled: the same episode in several databases is one episode, the same text is stored once, and to merge
    a database again adds only what is new in it. The answers of all raters are kept. Journals of runs that died are
    taken in too; the other databases are only read.

    A database of another version of localsim, which no other command opens, can be merged into a new one. What this
    version has no place for is counted and left behind.

    \b
    localsim db merge laptops/*.duckdb -o class.duckdb
    localsim db merge "/media/*/localsim.duckdb" -o class.duckdb --keep-apart
    localsim db merge old.duckdb -o new.duckdb
    """
    from localsim.store.outside.merge import merge as merge_all
    from localsim.store.queries.runs import TOGETHER

    with Reassurance("merging the databases", quiet=as_json):
        made = merge_all(places, output.absolute(), say, apart=keep_apart)
    if as_json:
        print_json(made.as_json())
        return
    heads = ["database", "new runs", "new episodes", "completed", "known", "new scores", "new answers", "clashes"]
    lines: list[list[Any]] = [
        [str(source.path), *(getattr(taken, name) for name in _TAKEN), len(taken.clashes)]
        for source, taken in made.sources
    ]
    print_table(heads, lines)
    for source, taken in made.sources:
        for each in taken.clashes:
            kept = f"kept apart as {each.kept}" if each.kept else "kept out"
            echo(f"! {source.path}: {each.what} {each.name}: {each.detail}; {kept}")
        for lost in taken.left_behind:
            echo(f"! {source.path}: left behind: {lost.count:,} {lost.what}")
    here = f"--db {shlex.quote(str(output))}"
    say(f"the runs stay apart, and localsim report shows one of them: localsim runs list {here}")
    say(f'all runs together, by mode: localsim sql "{TOGETHER}" {here}')


_TAKEN = ("runs", "new", "completed", "known", "scores", "annotations")
"""Counts of a table's row, as in `incoming.Taken`."""
