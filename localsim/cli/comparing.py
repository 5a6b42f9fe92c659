"""localsim compare."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from localsim.cli.answers import Answer, Styled, Table, Text, answers
from localsim.cli.common import Finite, conditions_argument, db_option, store_of
from localsim.cli.progress import Reassurance
from localsim.cli.running.playing import playing_lines
from localsim.families import family_of, title_of
from localsim.models.registry import constructed, labelled
from localsim.store.conditions import Choice, choices
from localsim.store.database import Store

if TYPE_CHECKING:
    from localsim import stats
    from localsim.reports.comparison import Compared


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
    (Holm). All others are exploratory, and their p are not corrected. --json has all rows.

    \b
    localsim compare @last
    localsim compare @last --all
    localsim compare @last --secondary turns,success_rate:authorship
    localsim compare @last-1 @last --equivalent .1
    localsim compare @last-1:agents @last:agents
    localsim compare before=@last-1:agents taught=@last:agents script=@last-1:script
    """
    from localsim.reports import comparison
    from localsim.reports.evidence.playing import of_conditions
    from localsim.runs.plan import secondary_in

    if equivalent == 0:
        raise click.BadParameter("a margin above 0", param_hint="--equivalent")
    named, store = secondary_in(secondary), store_of(db)
    with Reassurance("comparing pairs of episodes"):
        chosen = choices(store, conditions or ("@last",))
        rows = comparison.compare_chosen(store, chosen, equivalent, secondary=named)
        told = of_conditions(store, [each for choice in chosen for each in choice.conditions])

    def text() -> Text:
        yield from playing_lines(told.sentences())
        if not rows:
            yield from comparison.why_nothing(store, chosen)
            return
        shown = rows if everything else comparison.main_rows(rows)
        when = "named in this command" if named else "declared before the run"
        for role, title in (
            ("primary", "Primary outcome, declared before the run"),
            ("secondary", f"Secondary outcomes, {when}, p corrected together"),
        ):
            if declared := [row for row in shown if row.role == role]:
                yield Styled(title, bold=True)
                yield from _compared(declared, role, equivalent)
        for family in dict.fromkeys(row.family for row in shown if row.role == "exploratory"):
            yield Styled(f"{title_of(family_of(family))}, exploratory: not declared, p not corrected", bold=True)
            own = [row for row in shown if row.family == family and row.role == "exploratory"]
            yield from _compared(own, "exploratory", equivalent)
        if len(shown) < len(rows):
            hidden = len({row.measure.heading for row in rows} - {row.measure.heading for row in shown})
            yield f"{hidden} more measures: {shlex.join(['localsim', 'compare', *conditions, '--all'])}"
        yield from comparison.remarks(shown)
        yield from _mixtures(store, chosen)
        models = dict.fromkeys(each.model for choice in chosen for each in choice.conditions)
        yield from (labelled(model) for model in models if constructed(model))

    return Answer([row.as_json() for row in rows], text())


def _mixtures(store: Store, chosen: Sequence[Choice]) -> list[str]:
    """Return warnings about leaks that were found with different thresholds."""
    from localsim.reports.validity.thresholds import thresholds, warnings

    first, *others = dict.fromkeys(each.run_id for choice in chosen for each in choice.conditions)
    return warnings(store, thresholds(store, first), first, others)


def _compared(rows: list[Compared], role: str, equivalent: float | None) -> Text:
    """Yield a table of comparisons in one role; declared ones are of all families."""
    own = ["family"] if role != "exploratory" else []
    heads = [*own, "measure", "second - first", "contrast", "difference", "95%", "ICC", "d", "pairs", "p"]
    heads += ["p (Holm)"] if role == "secondary" else []
    heads += ["90%", f"p (within {equivalent:g})"] if equivalent else []
    lines = []
    for row in rows:
        test, equal = row.test, row.equivalence
        line: list[Any] = [title_of(family_of(row.family))] if own else []
        line += [row.measure.heading, f"{row.second} - {row.first}", row.contrast or None, test.difference]
        line += ["all equal" if row.alike else _ends(test), test.icc, test.effect]
        line += [f"{test.n} on {test.scenarios} scenarios", "by construction" if row.by_construction else test.p]
        line += [row.p_holm] if role == "secondary" else []
        if equivalent:
            line += [equal and _ends(equal), equal and equal.p]
        lines.append(line)
    yield Table(heads, lines)
    yield ""


def _ends(of: stats.Paired | stats.Equivalence) -> str | None:
    return None if of.low is None else f"[{of.low:.2f}, {of.high:.2f}]"
