"""localsim report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from localsim.cli import completion
from localsim.cli.common import db_option, json_option, output_option, print_json, print_table, say, store_of
from localsim.errors import InvalidInput


@click.command()
@click.argument("run", default="@last", shell_complete=completion.runs)
@output_option("Write one self-contained HTML file, or Markdown where it ends in .md.")
@db_option
@json_option
def report(run: str, output: str | None, db: str | None, as_json: bool) -> None:
    """Compare the modes of a run: a table, --json, -o report.html or -o report.md.

    \b
    localsim report @last
    localsim report @last -o report.html
    """
    from localsim.card import card as make_card
    from localsim.report import report as make_report

    store = store_of(db)
    run_id = store.run_id(run)
    data = make_report(store, run_id)
    data["card"] = make_card(store, run_id, data=data)
    if as_json:
        print_json(data)
    else:
        _print(data)
    if output:
        from localsim.report_html import examples, render
        from localsim.report_markdown import as_markdown

        file = Path(output)
        text = as_markdown(data) if file.suffix == ".md" else render(data, examples(store, run_id))
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            raise InvalidInput(f"cannot be written: {error.strerror}", where=str(file)) from error
        say(f"wrote {file}")


def _print(data: dict[str, Any]) -> None:
    from localsim.annotation.agreement import sentences as told_by_people
    from localsim.naturalness import sentence
    from localsim.report import COLUMNS, estimate_text

    run = data["run"]
    click.secho(f"run {run['run_id']} ({run['status']}, seed {run['seed']}, {run['repro']})", bold=True)
    for family in dict.fromkeys(row["family"] for row in data["comparison"]):
        rows = [row for row in data["comparison"] if row["family"] == family]
        models = len({row["model"] for row in rows}) > 1
        click.secho(f"\n{family}" + ("" if models else f" ({rows[0]['model']})"), bold=True)
        headings = [f"{row['mode']} {row['model']}" if models else row["mode"] for row in rows]
        lines: list[list[Any]] = [["completed", *(f"{row['completed']} of {row['n']}" for row in rows)]]
        for key, name, kind in COLUMNS:
            if any(row[key] is not None for row in rows):
                lines.append([name, *(estimate_text(row, key, kind) for row in rows)])
        print_table(["", *headings], lines)
    click.echo()
    accuracy = data["parser_accuracy"]
    if accuracy is not None:
        told = ", ".join(
            f"{name.replace('_', ' ')} {part['right'] / part['n']:.0%} of {part['n']}"
            for name, part in accuracy["measures"].items()
        )
        click.echo(
            f"Endings and names are read by rules; measured on labelled talks they were not written from: {told}."
        )
    for judge in data["judges"]:
        goals = ", ".join(f"{mode} {goal:.1f}" for mode, goal in judge["goal_by_mode"].items())
        click.echo(f"Judge {judge['judge']} ({judge['n']} talks), goal 0-10: {goals}.")
        if judge["warning"]:
            click.secho(f"! {judge['judge']}: {judge['warning']}", fg="yellow")
    for rate in data["naturalness"]:
        click.echo(sentence(rate))
    if data["annotations"]["raters"]:
        for line in told_by_people(data["annotations"]):
            click.echo(line)
    if data["detector"]:
        pairs = data["detector"]["pairs"]
        click.echo(
            f"Leaks are found by a trained detector; on {pairs['n']} labelled pairs about facts it had not seen: "
            f"precision {pairs['precision']:.2f}, recall {pairs['recall']:.2f}."
        )
    for warning in data["warnings"]:
        click.secho(f"! {warning}", fg="yellow")
