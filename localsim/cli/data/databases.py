"""localsim db, runs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from localsim import paths
from localsim.cli import completion
from localsim.cli.answers import Answer, Note, Styled, Table, Text, answers
from localsim.cli.common import Listing, Option, Target, db_option, run_argument, store_of, yes_option
from localsim.cli.progress import Reassurance, clean, say
from localsim.conversation.wording.wordings import counted
from localsim.errors import DatabaseError
from localsim.runs import telling
from localsim.store.queries import runs as queries


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
        episodes = counted(made.episodes, "episode")
        yield f"{output}: {episodes} of {made.runs} runs in {len(made.sources)} files and folders"
        for run_id, place in made.doubled:
            yield Note(f"run {run_id} is in several of them; that of {place} is left out")
        yield Note(f"next: localsim report @last{paths.db_option(output)}")

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


# ---- runs ------------------------------------------------------------------------------------------------------------


@click.group(cls=Listing)
def runs() -> None:
    """List, show and remove runs."""


@runs.command("list")
@db_option
@answers
def list_(db: str | None) -> Answer:
    """List runs, newest first. The first 15 characters of an id are the start of the run, in UTC."""
    store = store_of(db)
    facts = {row["run_id"]: row for row in queries.every_run(store)}
    called = telling.names_of(store, list(facts.values()))
    rows = [
        {**row, "called": called[row["run_id"]], "searched": facts[row["run_id"]]["searched"]}
        for row in queries.run_list(store)
    ]

    def text() -> Text:
        short = telling.names_of(store, list(facts.values()), room=_NAME)
        heads = ["run", "name", "episodes", "status", "leaks"]
        yield Table(heads, [_line(row, short) for row in facts.values()], short=True)
        for row in facts.values():
            if row["status"] == "interrupted" and (remark := telling.leaks_remark(row)):
                yield Note(remark)

    return Answer(rows, text())


_NAME = 48
"""Characters of a name that fit into the list of runs."""


def _line(row: Mapping[str, Any], called: Mapping[str, str]) -> list[str]:
    """Return the cells of a run in the list of runs."""
    done, planned, searched = row["completed"], row["planned"], row["searched"]
    failed = f", {row['failed']} failed" if row["failed"] else ""
    rest = planned - done - row["failed"]
    failed += f", {rest} broken off" if rest > 0 and row["people"] and row["status"] == "finished" else ""
    leaks = "searched" if done and searched >= done else f"{searched} of {done}" if searched else "no"
    return [row["run_id"], called[row["run_id"]], f"{done} of {planned}{failed}", row["status"], leaks]


@runs.command("show")
@run_argument
@db_option
@answers
def show_run(run: str, db: str | None) -> Answer:
    """Print the options, models and versions of a run, and the reasons of failed episodes."""
    store = store_of(db)
    run_id = store.run_id(run)
    row, facts = queries.run_row(store, run_id), queries.run_facts(store, run_id)
    row["called"] = telling.name_of(store, row)
    row |= {key: facts[key] for key in ("completed", "failed", "searched")}
    for key in ("plan_json", "models_json", "versions_json"):
        row[key.removesuffix("_json")] = json.loads(row.pop(key))
    row["failures"] = queries.failed_episodes(store, run_id)

    def text() -> Text:
        yield Styled(row["called"], bold=True)
        if remark := telling.leaks_remark(facts):
            yield Styled(remark, "yellow")
        for key, value in row.items():
            if isinstance(value, dict):
                yield Styled(key, bold=True)
                yield from (f"  {name}: {json.dumps(detail, default=str)}" for name, detail in value.items())
            elif isinstance(value, list) and value:
                yield Styled(key, bold=True)
                yield Table.of(value)
            elif key != "called":
                yield f"{key}: {value}"

    return Answer(row, text())


@runs.command("rm")
@click.argument("run", shell_complete=completion.runs)
@yes_option()
@db_option
def remove(run: str, yes: bool, db: str | None) -> None:
    """Delete a run with its episodes, turns and scores."""
    store = store_of(db)
    run_id = store.run_id(run)
    if not yes:
        click.confirm(f"Delete run {clean(telling.heading_of(store, run_id))} with all its episodes?", abort=True)
    click.echo(f"removed run {run_id}, {counted(store.remove_run(run_id), 'episode')}")
