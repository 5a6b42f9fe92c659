"""localsim compare."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from localsim.cli.answers import Answer, Styled, Table, Text, answers
from localsim.cli.common import Finite, Reassurance, conditions_argument, db_option, store_of
from localsim.cli.running.playing import playing_lines
from localsim.errors import InvalidInput


@click.command()
@conditions_argument
@click.option(
    "--equivalent",
    type=Finite(0),
    metavar="MARGIN",
    help="Also test that conditions differ by less than this, in every measure with a least and a greatest value.",
)
@click.option(
    "--all", "everything", is_flag=True, help="Print every measure, and not only success, peeking, mentions and length."
)
@click.option(
    "--secondary",
    metavar="KEY[:CONTRAST],...",
    default="",
    show_default=False,
    help="Correct the p of these outcomes together, and call all others exploratory [those that the run declares].",
)
@db_option
@answers
def compare(
    conditions: tuple[str, ...], equivalent: float | None, everything: bool, secondary: str, db: str | None
) -> Answer:
    """Compare the modes of a run, two runs, or any conditions, pair by pair on the same scenarios and seeds.

    A condition is RUN:MODE, with +GRANTS where information was granted (@last:agents+goal), and RUN:MODE:MODEL if a
    run has several models. NAME=RUN:MODE gives it a name in the table. The primary outcome, which `localsim run
    --primary` declares, comes first; then the secondary ones, which --secondary declares, with p corrected together
    (Holm). All others are exploratory, and their p are not corrected. --json has all rows. The folders of finished
    studies are shown side by side.

    \b
    localsim compare @last
    localsim compare @last --all
    localsim compare @last --secondary turns,success_rate:authorship
    localsim compare @last-1 @last --equivalent .1
    localsim compare @last-1:agents @last:agents
    localsim compare before=@last-1:agents taught=@last:agents script=@last-1:script
    localsim compare studies/first studies/second
    """
    from localsim.reports.compose.between import compared
    from localsim.runs.plan import secondary_in

    if conditions and all((Path(path) / "study.json").is_file() for path in conditions):
        return _studies(conditions)
    if equivalent == 0:
        raise click.BadParameter("a margin above 0", param_hint="--equivalent")
    named, store = secondary_in(secondary), store_of(db)
    with Reassurance("comparing pairs of episodes"):
        found = compared(store, conditions or ("@last",), equivalent, named, everything=everything)

    def text() -> Text:
        yield from playing_lines(found.doubts)
        for part in found.parts:
            yield Styled(part.title, bold=True)
            yield Table(part.heads, part.rows)
            yield ""
        if found.hidden:
            yield f"{found.hidden} more measures: {shlex.join(['localsim', 'compare', *conditions, '--all'])}"
        yield from found.lines

    error = None if found.rows else InvalidInput("there is nothing to compare", hint=found.hint)
    return Answer([row.as_json() for row in found.rows], text(), error)


def _studies(folders: Sequence[str]) -> Answer:
    """Return the models of finished studies side by side."""
    from localsim.study import beside

    found = [each for path in folders for each in beside.read(Path(path))]

    def text() -> Text:
        for table in beside.tables(found):
            yield Styled(table.title, bold=True)
            yield Table([str(head) for head in table.heads], table.rows)
            yield from table.notes
            yield ""
        yield from beside.remarks(found)

    return Answer([each.as_json() for each in found], text())
