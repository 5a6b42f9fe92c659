"""localsim sql, export, import, runs, db."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import chain
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from localsim import paths
from localsim.cli import completion
from localsim.cli.common import (
    Finite,
    Reassurance,
    clean,
    db_option,
    echo,
    json_for_stdout,
    json_option,
    print_json,
    print_table,
    say,
    store_of,
)
from localsim.conversation.episode import counted
from localsim.errors import InvalidInput
from localsim.runs import telling
from localsim.store.queries import runs as queries


@click.command()
@click.argument("query", required=False)
@click.option(
    "-f", "--file", type=click.Path(dir_okay=False), help="Read the query from this file (- for standard input)."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="Print the rows in this format.",
)
@click.option(
    "--limit", type=click.IntRange(0), default=10_000, show_default=True, help="Print at most this many rows; 0: all."
)
@click.option(
    "--timeout",
    type=Finite(0),
    default=60,
    show_default=True,
    help="Interrupt a query that takes longer than this many seconds; 0: never.",
)
@click.option(
    "--run",
    default="@last",
    show_default=True,
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
    """Print CSV: as stored to a file or a pipe, without control characters to a terminal."""
    terminal = sys.stdout.isatty()
    writer = csv.writer(sys.stdout, lineterminator="\n")
    for row in chain([columns], rows):
        writer.writerow([clean(value) if terminal and isinstance(value, str) else value for value in row])


def _print_rows_as_table(columns: Sequence[str], rows: Rows) -> None:
    print_table(columns, list(rows))


_PRINTERS = {"json": _print_rows_as_json, "csv": _print_rows_as_csv, "table": _print_rows_as_table}


def _read(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot be read: {error}", where=file) from error


@click.command()
@click.argument("run", default="@last", shell_complete=completion.runs)
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["jsonl", "parquet", "csv", "sft", "sharegpt", "sotopia", "inspect", "hf"]),
    required=True,
    help="Write the run in this format.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    help="Write to this file, or to this folder for parquet, csv, sotopia and hf [export-RUN].",
)
@db_option
@json_option
def export(run: str, form: str, output: str | None, db: str | None, as_json: bool) -> None:
    """Write a run for other tools.

    \b
    jsonl          one episode per line, with turns and scores
    parquet, csv   one file per view
    sft, sharegpt  one training chat per line, for each agent of an episode
    sotopia        profiles and episode logs in Sotopia's JSON
    inspect        one log that Inspect opens (inspect view)
    hf             a folder that load_dataset of Hugging Face's datasets reads

    \b
    localsim export @last -f jsonl -o run.jsonl
    localsim export @last -f parquet -o folder
    """
    from localsim.runs.exchange.sending import FORMATS, send
    from localsim.store.export import export_run

    store = store_of(db)
    run_id = store.run_id(run)
    ending = {"parquet": "", "csv": "", "sotopia": "", "hf": "", "inspect": ".json"}.get(form, ".jsonl")
    target = Path(output or f"export-{run_id}{ending}")
    with Reassurance("writing the files", quiet=as_json):
        if form in ("sft", "sharegpt"):
            from localsim.finetune.source import chats_of_episodes, episodes_of_run, write_chats

            write_chats(chats_of_episodes(store, episodes_of_run(store, run_id)), form, target)
            written = [str(target)]
        elif form in FORMATS:
            written = [str(path) for path in send(store, run_id, form, target, say)]
        else:
            written = [str(path) for path in export_run(store, run_id, form, target)]
    if as_json:
        print_json(written)
    else:
        click.echo("\n".join(written))


@click.command()
@click.argument("run", default="@last", shell_complete=completion.runs)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file [RUN.zip].")
@db_option
@json_option
def bundle(run: str, output: Path | None, db: str | None, as_json: bool) -> None:
    """Write a run as one archive: scenarios, plan, models with sha256, versions, and all texts.

    The same run gives the same bytes. `localsim replay` plays the archive again and compares the texts.

    \b
    localsim bundle @last -o talk.zip
    """
    from localsim.runs.exchange.bundle import bundle as write

    store = store_of(db)
    run_id = store.run_id(run)
    target = output or Path(f"{run_id}.zip")
    manifest = write(store, run_id, target)
    if as_json:
        print_json({"file": str(target), **manifest})
        return
    kinds = [name.partition("/")[0] for name in manifest["files"]]
    click.echo(f"{target}: {counted(kinds.count('episodes'))}, {kinds.count('scenarios')} scenarios")
    for name, identity in manifest["models"].items():
        echo(f"  {name}: {identity.get('file', identity['kind'])}, sha256 {identity.get('sha256', 'none')}")


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@db_option
@json_option
def replay(file: Path, db: str | None, as_json: bool) -> None:
    """Play an archive of `localsim bundle` again, and say of each episode whether its text is the same.

    Models are found by their sha256 among the installed ones. Only runs with --repro exact promise the same text;
    if one of them differs, the exit code is 6.

    \b
    localsim replay talk.zip
    """
    from localsim.cli.common import Progress
    from localsim.errors import TooManyFailures
    from localsim.runs.exchange.replay import replay as play

    store = store_of(db)
    with ExitStack() as ends:
        found = play(
            file,
            store,
            lambda plan: ends.enter_context(closing(Progress(len(plan.specs()), quiet=as_json, store=store))),
            say,
        )
    if as_json:
        print_json(found.as_json())
    else:
        click.echo(f"run {found.result.run_id}: {found.identical} of {len(found.episodes)} texts are byte-identical")
        for each in found.episodes:
            differs = "differs" if each.turn is None else f"differs from turn {each.turn} on"
            echo(f"  {'identical' if each.identical else differs}: {each.file}")
    if found.repro == "exact" and found.identical < len(found.episodes):
        raise TooManyFailures(
            f"{counted(len(found.episodes) - found.identical)} of an exact run differ",
            where=str(file),
            hint="another build, processor or version writes other texts; localsim doctor shows the build",
        )


@click.group("import")
def import_() -> None:
    """Import conversations of people.

    \b
    localsim import talks chats.json
    """


@import_.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "--format",
    "form",
    metavar="FORMAT",
    default="auto",
    show_default=True,
    help="Read the files in this format: auto, mutual-friends, craigslist, casino, dealornodeal, csv or jsonl.",
)
@click.option("--family", metavar="FAMILY", help="Score the conversations of a table (csv, jsonl) as this task family.")
@click.option(
    "--label", metavar="NAME", default="people", show_default=True, help="Show the people under this name in tables."
)
@click.option(
    "--leaks/--no-leaks",
    default=True,
    show_default=True,
    help="Look for private facts that come out; this takes longest.",
)
@click.option(
    "--scenarios",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also write the scenarios to this folder, to simulate models on them.",
)
@db_option
@json_option
def talks(files: Sequence[Path], scenarios: Path | None, db: str | None, as_json: bool, **options: Any) -> None:
    """Store conversations of people as a run of the mode `people`, scored as simulated ones are.

    The same files are stored once. If a file has a defect, nothing is stored. docs/human-talks.md has the formats.

    \b
    localsim import talks train.json
    localsim import talks ours.jsonl --label students
    localsim report @last-1 --people @last
    """
    from localsim.runs.imported import Options, import_talks, write_scenarios

    store = store_of(db)
    found = import_talks(store, files, Options(**options), say)
    if scenarios:
        say(f"wrote {len(write_scenarios(store, found.run_id, scenarios))} scenarios to {scenarios}")
    if as_json:
        print_json(found.as_json())
        return
    if not found.new:
        click.echo(f"already imported as run {found.run_id}")
        say(f"to import it again: localsim runs rm {found.run_id}")
        return
    click.echo(f"run {found.run_id}: {found.conversations} conversations on {found.scenarios} scenarios")
    for reason, count in found.left_out.items():
        echo(f"  {count} left out: {reason}")
    for note, count in found.notes.items():
        echo(f"  {count} without a family: {note}")
    for name, (equal, unread, n) in found.agreement.items():
        missing = f" ({unread} could not be read)" if unread else ""
        echo(f"  {name}, as read from the words, equals the corpus's own in {equal} of {n} conversations{missing}")
    say(f"next: localsim report {found.run_id}, or localsim report RUN --people {found.run_id}")


@click.group(invoke_without_command=True)
@click.pass_context
def runs(ctx: click.Context) -> None:
    """List, show and remove runs."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@runs.command("list")
@db_option
@json_option
def list_(db: str | None = None, as_json: bool = False) -> None:
    """List runs, newest first. The first 15 characters of an id are the start of the run, in UTC."""
    store = store_of(db)
    facts = {row["run_id"]: row for row in queries.every_run(store)}
    if as_json:
        called = telling.names_of(store, list(facts.values()))
        rows = queries.run_list(store)
        print_json(
            [{**row, "called": called[row["run_id"]], "searched": facts[row["run_id"]]["searched"]} for row in rows]
        )
        return
    called = telling.names_of(store, list(facts.values()), room=_NAME)
    print_table(
        ["run", "name", "episodes", "status", "leaks"], [_line(row, called) for row in facts.values()], short=True
    )
    for row in facts.values():
        if row["status"] == "interrupted" and (remark := telling.leaks_remark(row)):
            say(remark)


_NAME = 48
"""Characters of a name that fit into the list of runs."""


def _line(row: Mapping[str, Any], called: Mapping[str, str]) -> list[str]:
    """Return the cells of a run in the list of runs."""
    done, planned, searched = row["completed"], row["planned"], row["searched"]
    failed = f", {row['failed']} failed" if row["failed"] else ""
    leaks = "searched" if done and searched >= done else f"{searched} of {done}" if searched else "no"
    return [row["run_id"], called[row["run_id"]], f"{done} of {planned}{failed}", row["status"], leaks]


@runs.command("show")
@click.argument("run", default="@last", shell_complete=completion.runs)
@db_option
@json_option
def show_run(run: str, db: str | None, as_json: bool) -> None:
    """Print the options, models and versions of a run, and the reasons of failed episodes."""
    store = store_of(db)
    run_id = store.run_id(run)
    row, facts = queries.run_row(store, run_id), queries.run_facts(store, run_id)
    row["called"] = telling.name_of(store, row)
    row |= {key: facts[key] for key in ("completed", "failed", "searched")}
    for key in ("plan_json", "models_json", "versions_json"):
        row[key.removesuffix("_json")] = json.loads(row.pop(key))
    row["failures"] = queries.failed_episodes(store, run_id)
    if as_json:
        print_json(row)
        return
    echo(row.pop("called"), bold=True)
    if remark := telling.leaks_remark(facts):
        click.secho(remark, fg="yellow")
    for key, value in row.items():
        if isinstance(value, dict):
            echo(key, bold=True)
            for name, detail in value.items():
                echo(f"  {name}: {json.dumps(detail, default=str)}")
        else:
            echo(f"{key}: {value}")


@runs.command("rm")
@click.argument("run", shell_complete=completion.runs)
@click.option("-y", "--yes", is_flag=True, help="Delete without asking for confirmation.")
@db_option
def remove(run: str, yes: bool, db: str | None) -> None:
    """Delete a run with its episodes, turns and scores."""
    store = store_of(db)
    run_id = store.run_id(run)
    if not yes:
        click.confirm(f"Delete run {clean(telling.heading_of(store, run_id))} with all its episodes?", abort=True)
    click.echo(f"removed run {run_id}, {counted(store.remove_run(run_id))}")


@click.group(invoke_without_command=True)
@click.pass_context
def db(ctx: click.Context) -> None:
    """Show where the database is, and check it."""
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
