"""localsim runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from localsim.cli import completion
from localsim.cli.answers import Answer, Note, Styled, Table, Text, answers
from localsim.cli.common import Listing, db_option, run_argument, store_of, yes_option
from localsim.cli.progress import clean
from localsim.conversation.episode import counted
from localsim.runs import telling
from localsim.store.queries import runs as queries


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
    click.echo(f"removed run {run_id}, {counted(store.remove_run(run_id))}")
