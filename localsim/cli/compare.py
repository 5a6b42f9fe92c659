"""localsim compare."""

from __future__ import annotations

import click

from localsim.cli import completion
from localsim.cli.common import db_option, json_option, print_json, print_table, store_of


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
    from localsim.comparison import compare as compared

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
