"""localsim report, card, compare, plot."""

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
    from localsim.reports.card import card as make_card
    from localsim.reports.report import report as make_report

    store = store_of(db)
    run_id = store.run_id(run)
    data = make_report(store, run_id)
    data["card"] = make_card(store, run_id, data=data)
    if as_json:
        print_json(data)
    else:
        _print(data)
    if output:
        from localsim.reports.html import examples, render
        from localsim.reports.markdown import as_markdown

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
    from localsim.reports.judges import sentence
    from localsim.reports.measures import shown, text_of

    run = data["run"]
    click.secho(f"run {run['run_id']} ({run['status']}, seed {run['seed']}, {run['repro']})", bold=True)
    for family in dict.fromkeys(row["family"] for row in data["comparison"]):
        rows = [row for row in data["comparison"] if row["family"] == family]
        models = len({row["model"] for row in rows}) > 1
        click.secho(f"\n{family}" + ("" if models else f" ({rows[0]['model']})"), bold=True)
        headings = [f"{row['mode']} {row['model']}" if models else row["mode"] for row in rows]
        lines: list[list[Any]] = [["completed", *(f"{row['completed']} of {row['n']}" for row in rows)]]
        lines += [
            [measure["heading"], *(text_of(measure, row) for row in rows)] for measure in shown(data["measures"], rows)
        ]
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


@click.command()
@click.argument("run", default="@last", shell_complete=completion.runs)
@click.option("--card", "human", type=click.Path(path_type=Path), help="YAML with what only people can say.")
@click.option("--lint", is_flag=True, help="Name what is missing, and exit with 3 if anything is.")
@output_option("Write Markdown to a file.")
@db_option
@json_option
def card(run: str, human: Path | None, lint: bool, output: str | None, db: str | None, as_json: bool) -> None:
    """Write the simulation card of a run: what was simulated, who could see what, how it was measured.

    \b
    localsim card @last --lint
    localsim card @last --card card.yaml -o card.md
    """
    from localsim.reports.card import card as make_card
    from localsim.reports.card import markdown, missing, read_human

    store = store_of(db)
    found = make_card(store, store.run_id(run), read_human(human) if human else None)
    if output:
        try:
            Path(output).write_text(markdown(found), encoding="utf-8")
        except OSError as error:
            raise InvalidInput(f"cannot be written: {error.strerror}", where=output) from error
        say(f"wrote {output}")
    elif as_json:
        print_json(found)
    elif not lint:
        click.echo(markdown(found), nl=False)
    if lint and (gaps := missing(found)):
        for gap in gaps:
            click.echo(f"missing {gap}")
        raise InvalidInput(f"{len(gaps)} fields are missing", hint="give them with --card card.yaml")


@click.command()
@click.argument("run", default="@last", shell_complete=completion.runs)
@click.argument("other", required=False, shell_complete=completion.runs)
@db_option
@json_option
def compare(run: str, other: str | None, db: str | None, as_json: bool) -> None:
    """Paired differences between the modes of a run, or between two runs, on the same scenarios and seeds.

    \b
    localsim compare @last
    localsim compare @last-1 @last --json
    """
    from localsim.reports.comparison import compare as compared

    store = store_of(db)
    rows = compared(store, store.run_id(run), store.run_id(other) if other else None)
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo("nothing to compare: no two conditions share a scenario and a seed")
        return
    for family in dict.fromkeys(row["family"] for row in rows):
        click.secho(family, bold=True)
        heads = ["measure", "second - first", "difference", "95%", "d", "p (t-test)", "p (Holm)", "pairs", "needed"]
        lines = [
            [
                row["measure"],
                f"{row['second']} - {row['first']}",
                row["difference"],
                None if row["low"] is None else f"[{row['low']:.2f}, {row['high']:.2f}]",
                row["effect"],
                row["p"],
                row["p_holm"],
                f"{row['n']} on {row['scenarios']} scenarios",
                row["needed"],
            ]
            for row in rows
            if row["family"] == family
        ]
        print_table(heads, lines)
        click.echo()
    click.echo("95%: bootstrap over scenarios. needed: pairs for 80% power at this size. - where nothing varies.")


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
    from localsim.reports.plots import figures

    store = store_of(db)
    try:
        files = figures(store, store.run_id(run), output, forms or ("svg", "png"))
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", where=str(output)) from error
    if as_json:
        print_json([str(file) for file in files])
    else:
        click.echo("\n".join(map(str, files)))
