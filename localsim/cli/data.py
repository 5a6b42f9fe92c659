"""localsim sql, export, runs, db."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import click

from localsim import paths
from localsim.cli import completion
from localsim.cli.common import db_option, json_option, print_json, print_table, store_of
from localsim.errors import InvalidInput


@click.command()
@click.argument("query", required=False)
@click.option(
    "-f", "--file", type=click.Path(dir_okay=False), help="Read the query from a file (- for standard input)."
)
@click.option("--format", "form", type=click.Choice(["table", "json", "csv"]), default="table", show_default=True)
@db_option
@json_option
def sql(query: str | None, file: str | None, form: str, db: str | None, as_json: bool) -> None:
    """Ask the database in SQL: read-only, no access to files or the network.

    \b
    localsim sql "SHOW TABLES"
    localsim sql "SELECT mode, round(avg(words), 1) AS words FROM v_turns GROUP BY mode" --format csv
    """
    if (query is None) == (file is None):
        raise click.UsageError("give a query, or a file with -f")
    columns, rows = store_of(db).sql(query if query is not None else _read(str(file)))
    if as_json or form == "json":
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)
    else:
        print_table(columns, rows)


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
    "-f", "--format", "form", type=click.Choice(["jsonl", "parquet", "csv", "sft", "sharegpt"]), required=True
)
@click.option("-o", "--output", type=click.Path(), help="File, or folder (parquet, csv) [export-RUN].")
@db_option
@json_option
def export(run: str, form: str, output: str | None, db: str | None, as_json: bool) -> None:
    """Write a run for other tools.

    jsonl has an episode a line with turns and scores; parquet and csv a file for each view; sft and sharegpt a chat a
    line for each agent of an episode, to train on elsewhere.

    \b
    localsim export @last -f jsonl -o run.jsonl
    localsim export @last -f parquet -o folder
    """
    from localsim.store.export import export_run

    store = store_of(db)
    run_id = store.run_id(run)
    target = Path(output or f"export-{run_id}{'' if form in ('parquet', 'csv') else '.jsonl'}")
    if form in ("sft", "sharegpt"):
        from localsim.finetune.source import chats_of_episodes, episodes_of_run, write_chats

        write_chats(chats_of_episodes(store, episodes_of_run(store, run_id)), form, target)
        written = [str(target)]
    else:
        written = [str(path) for path in export_run(store, run_id, form, target)]
    if as_json:
        print_json(written)
    else:
        click.echo("\n".join(written))


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
    """List runs, newest first."""
    rows = store_of(db).rows("SELECT * FROM v_runs ORDER BY started_utc DESC")
    if as_json:
        print_json(rows)
    else:
        headings = list(rows[0]) if rows else ["run_id"]
        print_table(headings, [[_short(value) for value in row.values()] for row in rows])


@runs.command("show")
@click.argument("run", default="@last", shell_complete=completion.runs)
@db_option
@json_option
def show_run(run: str, db: str | None, as_json: bool) -> None:
    """Print what a run was made with, and why episodes failed."""
    store = store_of(db)
    run_id = store.run_id(run)
    row = store.rows("SELECT * FROM runs WHERE run_id = ?", [run_id])[0]
    for key in ("plan_json", "models_json", "versions_json"):
        row[key.removesuffix("_json")] = json.loads(row.pop(key))
    row["failures"] = store.rows(
        "SELECT episode_id, scenario_id, mode, error FROM v_episodes WHERE run_id = ? AND status = 'failed'", [run_id]
    )
    if as_json:
        print_json(row)
        return
    for key, value in row.items():
        if isinstance(value, dict):
            click.secho(key, bold=True)
            for name, detail in value.items():
                click.echo(f"  {name}: {json.dumps(detail, default=str)}")
        else:
            click.echo(f"{key}: {value}")


@runs.command("rm")
@click.argument("run", shell_complete=completion.runs)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@db_option
def remove(run: str, yes: bool, db: str | None) -> None:
    """Delete a run with its episodes, turns and scores."""
    store = store_of(db)
    run_id = store.run_id(run)
    if not yes:
        click.confirm(f"Delete run {run_id} with all its episodes?", abort=True)
    click.echo(f"removed run {run_id}, {store.remove_run(run_id)} episodes")


@click.group(invoke_without_command=True)
@click.pass_context
def db(ctx: click.Context) -> None:
    """Where the database is, and whether it is sound."""
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
    """Look for rows that do not fit together and contents whose hash is wrong."""
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
    from localsim.store.migrations import schema_sql

    click.echo(schema_sql(), nl=False)


def _short(value: Any) -> Any:
    return value.isoformat(sep=" ", timespec="seconds") if hasattr(value, "isoformat") else value
