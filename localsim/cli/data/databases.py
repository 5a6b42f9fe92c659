"""localsim db."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from localsim import paths
from localsim.cli.answers import Answer, Note, Table, Text, answers
from localsim.cli.common import Listing, Option, Target, db_option, store_of
from localsim.cli.progress import Reassurance, say
from localsim.conversation.episode import counted
from localsim.errors import DatabaseError


@click.group(cls=Listing, default="info")
def db() -> None:
    """Show where the database is, check it, and work with many databases."""


@db.command()
@db_option
def path(db: str | None) -> None:
    """Print the path of the database."""
    click.echo(paths.database_path(db))


@db.command()
@db_option
@answers
def info(db: str | None) -> Answer:
    """Print size, schema version and row counts."""
    store = store_of(db)
    data = {"path": str(store.path), **store.info()}
    return Answer(data, [f"{key}: {value}" for key, value in data.items()])


@db.command()
@db_option
@answers
def check(db: str | None) -> Answer:
    """Look for rows that contradict each other and for texts with a wrong hash."""
    problems = store_of(db).check()
    failed = f"{len(problems)} kinds of rows do not fit together"
    error = DatabaseError(failed, where=str(paths.database_path(db))) if problems else None
    return Answer({"problems": problems}, problems or ["ok"], error)


@db.command()
def schema() -> None:
    """Print the schema as SQL."""
    from localsim.store.schema import schema_sql

    click.echo(schema_sql(), nl=False)


def _output(help_text: str) -> Option:
    kind = Target(path_type=Path, dir_okay=False)
    return click.option("-o", "--output", required=True, type=kind, help=help_text)


@db.command("attach")
@click.argument("places", nargs=-1, required=True, metavar="FOLDER|PATTERN|DATABASE...")
@_output("Write the list of files to this file, which --db then takes as a database.")
@answers
def attach_(places: tuple[str, ...], output: Path) -> Answer:
    """Show the runs of many Parquet folders and databases together, without copying them.

    The file that this writes lists the others. With it as --db, `report`, `sql`, `show`, `view` and all other commands
    that only read work as with one database. New runs in the folders and databases are seen at once. A run that is in
    several of them is read from the first.

    \b
    localsim db attach results -o all.duckdb
    localsim db attach "laptops/*.duckdb" results -o class.duckdb
    localsim report @last --db class.duckdb
    """
    from localsim.store.outside.attached import attach_all

    with Reassurance("reading the files"):
        made = attach_all(places, output.absolute(), say)

    def text() -> Text:
        yield f"{output}: {counted(made.episodes)} of {made.runs} runs in {len(made.sources)} files and folders"
        for run_id, place in made.doubled:
            yield Note(f"run {run_id} is in several of them; that of {place} is left out")
        yield Note(f"next: localsim report @last --db {output}")

    return Answer(made.as_json(), text())


@db.command()
@click.argument("places", nargs=-1, required=True, metavar="DATABASE|FOLDER|PATTERN...")
@_output("Add the runs to this database; it is made if it does not exist.")
@click.option(
    "--keep-apart",
    is_flag=True,
    help="Keep what has a known id and another content under a new id, such as RUN~2 [it is named and kept out].",
)
@answers
def merge(places: tuple[str, ...], output: Path, keep_apart: bool) -> Answer:
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

    with Reassurance("merging the databases"):
        made = merge_all(places, output.absolute(), say, apart=keep_apart)

    def text() -> Text:
        heads = ["database", "new runs", "new episodes", "completed", "known", "new scores", "new answers", "clashes"]
        rows = [
            [source.path, new.runs, new.new, new.completed, new.known, new.scores, new.annotations, len(new.clashes)]
            for source, new in made.sources
        ]
        yield Table(heads, rows)
        for source, taken in made.sources:
            for each in taken.clashes:
                kept = f"kept apart as {each.kept}" if each.kept else "kept out"
                yield f"! {source.path}: {each.what} {each.name}: {each.detail}; {kept}"
            for lost in taken.left_behind:
                yield f"! {source.path}: left behind: {lost.count:,} {lost.what}"
        here = f"--db {shlex.quote(str(output))}"
        yield Note(f"the runs stay apart, and localsim report shows one of them: localsim runs list {here}")
        yield Note(f'all runs together, by mode: localsim sql "{TOGETHER}" {here}')

    return Answer(made.as_json(), text())
