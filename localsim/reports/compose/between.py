"""What a comparison of conditions says: tables, and sentences around them. A terminal and a page show the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localsim import stats
from localsim.families import family_of, title_of
from localsim.models.registry import constructed, labelled
from localsim.reports import comparison
from localsim.reports.comparison import Compared
from localsim.reports.evidence.playing import of_conditions
from localsim.reports.validity.thresholds import thresholds, warnings
from localsim.runs.plan import Outcome
from localsim.store.conditions import choices
from localsim.store.database import Store

Value = str | float | None


@dataclass(frozen=True)
class Part:
    """A table of comparisons in one role."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Value]]


@dataclass(frozen=True)
class Comparison:
    """The whole comparison."""

    rows: Sequence[Compared]
    doubts: Sequence[str]
    """Whose talks do not play."""
    parts: Sequence[Part]
    hidden: int
    """Measures that no part has."""
    lines: Sequence[str]
    """How to read the tables, or why there are none."""
    hint: str = ""
    """What pairs need, where there are none."""


def compared(
    store: Store,
    references: Sequence[str],
    margin: float | None = None,
    secondary: Sequence[Outcome] = (),
    *,
    everything: bool = False,
) -> Comparison:
    """Compare what `references` name, as `comparison.compare_chosen` does, in the main measures or in `everything`.

    Raises InvalidInput for an unknown run, condition or secondary outcome.
    """
    chosen = choices(store, references)
    conditions = [each for choice in chosen for each in choice.conditions]
    rows = comparison.compare_chosen(store, chosen, margin, secondary=secondary)
    doubts = of_conditions(store, conditions).sentences()
    if not rows:
        return Comparison(rows, doubts, [], 0, list(comparison.why_nothing(store, chosen)), comparison.PAIRING)
    shown = rows if everything else comparison.main_rows(rows)
    hidden = {row.measure.heading for row in rows} - {row.measure.heading for row in shown}
    models = dict.fromkeys(each.model for each in conditions)
    first, *others = dict.fromkeys(each.run_id for each in conditions)
    mixtures = warnings(store, thresholds(store, first), first, others)  # leaks found with different thresholds
    lines = [*comparison.remarks(shown), *mixtures, *map(labelled, filter(constructed, models))]
    return Comparison(rows, doubts, list(_parts(shown, margin, bool(secondary))), len(hidden), lines)


def _parts(shown: Sequence[Compared], margin: float | None, named: bool) -> Iterator[Part]:
    when = "named in this command" if named else "declared before the run"
    for role, title in (
        ("primary", "Primary outcome, declared before the run"),
        ("secondary", f"Secondary outcomes, {when}, p corrected together"),
    ):
        if declared := [row for row in shown if row.role == role]:
            yield _part(title, declared, role, margin)
    for family in dict.fromkeys(row.family for row in shown if row.role == "exploratory"):
        title = f"{title_of(family_of(family))}, exploratory: not declared, p not corrected"
        own = [row for row in shown if row.family == family and row.role == "exploratory"]
        yield _part(title, own, "exploratory", margin)


def _part(title: str, rows: Sequence[Compared], role: str, margin: float | None) -> Part:
    """Return a table of comparisons in one role; declared ones are of all families."""
    own = ["family"] if role != "exploratory" else []
    heads = [*own, "measure", "second - first", "contrast", "difference", "95%", "ICC", "d", "pairs", "p"]
    heads += ["p (Holm)"] if role == "secondary" else []
    heads += ["90%", f"p (within {margin:g})"] if margin else []
    lines = []
    for row in rows:
        test, equal = row.test, row.equivalence
        line: list[Value] = [title_of(family_of(row.family))] if own else []
        line += [row.measure.heading, f"{row.second} - {row.first}", row.contrast or None, test.difference]
        line += ["all equal" if row.alike else _ends(test), test.icc, test.effect]
        line += [f"{test.n} on {test.scenarios} scenarios", "by construction" if row.by_construction else test.p]
        line += [row.p_holm] if role == "secondary" else []
        if margin:
            line += [equal and _ends(equal), equal and equal.p]
        lines.append(line)
    return Part(title, heads, lines)


def _ends(of: stats.Paired | stats.Equivalence) -> str | None:
    return None if of.low is None else f"[{of.low:.2f}, {of.high:.2f}]"
