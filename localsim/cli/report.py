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
@output_option("Write the report to this file: one self-contained HTML page, or Markdown if it ends in .md.")
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
    from localsim.annotation.agreement import sentences as annotation_sentences
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
        rates = ", ".join(
            f"{name.replace('_', ' ')} {part['right'] / part['n']:.0%} of {part['n']}"
            for name, part in accuracy["measures"].items()
        )
        click.echo(
            "Rules read endings and names. Their accuracy on labelled conversations that were not used to write them: "
            f"{rates}."
        )
    for judge in data["judges"]:
        goals = ", ".join(f"{mode} {goal:.1f}" for mode, goal in judge["goal_by_mode"].items())
        click.echo(f"Judge {judge['judge']} ({judge['n']} conversations), goal 0-10: {goals}.")
        if judge["warning"]:
            click.secho(f"! {judge['judge']}: {judge['warning']}", fg="yellow")
    for rate in data["naturalness"]:
        click.echo(sentence(rate))
    if data["annotations"]["raters"]:
        for line in annotation_sentences(data["annotations"]):
            click.echo(line)
    if data["detector"]:
        pairs = data["detector"]["pairs"]
        click.echo(
            f"A trained detector finds leaks; on {pairs['n']} labelled pairs about facts that are new to it: "
            f"precision {pairs['precision']:.2f}, recall {pairs['recall']:.2f}."
        )
    for warning in data["warnings"]:
        click.secho(f"! {warning}", fg="yellow")


@click.command()
@click.argument("run", default="@last", shell_complete=completion.runs)
@click.option(
    "--card",
    "human",
    type=click.Path(path_type=Path),
    help="Read the fields that only people can fill in from this YAML file.",
)
@click.option("--lint", is_flag=True, help="List the missing fields, and exit with 3 if there are any.")
@output_option("Write the card to this file, as Markdown.")
@db_option
@json_option
def card(run: str, human: Path | None, lint: bool, output: str | None, db: str | None, as_json: bool) -> None:
    """Write the simulation card of a run: its scenarios, the information of each agent, and the measures.

    \b
    localsim card @last --lint
    localsim card @last --card card.yaml -o card.md
    """
    from localsim.reports.card import card as make_card
    from localsim.reports.card import markdown, missing, read_human

    store = store_of(db)
    made = make_card(store, store.run_id(run), read_human(human) if human else None)
    if output:
        try:
            Path(output).write_text(markdown(made), encoding="utf-8")
        except OSError as error:
            raise InvalidInput(f"cannot be written: {error.strerror}", where=output) from error
        say(f"wrote {output}")
    elif as_json:
        print_json(made)
    elif not lint:
        click.echo(markdown(made), nl=False)
    if lint and (gaps := missing(made)):
        for gap in gaps:
            click.echo(f"missing {gap}")
        raise InvalidInput(f"{len(gaps)} fields are missing", hint="give them with --card card.yaml")


@click.command()
@click.argument("run", default="@last", shell_complete=completion.runs)
@click.argument("other", required=False, shell_complete=completion.runs)
@db_option
@json_option
def compare(run: str, other: str | None, db: str | None, as_json: bool) -> None:
    """Compare the modes of a run, or two runs, pair by pair on the same scenarios and seeds.

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
                row["heading"],
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
    click.echo(
        "95%: bootstrap over scenarios. needed: pairs for 80% power at this effect size. -: the measure does not vary."
    )


@click.command()
@click.argument("run", default="@last", shell_complete=completion.runs)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default="figures",
    show_default=True,
    help="Write the figures to this folder.",
)
@click.option(
    "-f",
    "--format",
    "forms",
    multiple=True,
    type=click.Choice(["svg", "png"]),
    help="Write only this format; may be repeated [both].",
)
@click.option(
    "--measure",
    "measures",
    metavar="KEY",
    multiple=True,
    help="Also draw this measure, by its key in `localsim report --json`; may be repeated.",
)
@db_option
@json_option
def plot(
    run: str, output: Path, forms: tuple[str, ...], measures: tuple[str, ...], db: str | None, as_json: bool
) -> None:
    """Write the figures of a run as SVG and PNG: those of the report, and any measure by its key.

    \b
    localsim plot @last -o figures
    localsim plot @last --measure wrong_guesses
    """
    from localsim.reports.plots import figures

    store = store_of(db)
    try:
        files = figures(store, store.run_id(run), output, forms or ("svg", "png"), measures)
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", where=str(output)) from error
    if as_json:
        print_json([str(file) for file in files])
    else:
        click.echo("\n".join(map(str, files)))
