"""localsim card."""

from __future__ import annotations

from pathlib import Path

import click

from localsim.cli import completion
from localsim.cli.common import db_option, json_option, output_option, print_json, say, store_of
from localsim.errors import InvalidInput


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
    from localsim.card import card as make_card
    from localsim.card import markdown, missing, read_human

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
