"""Demands on a report, for automatic checks: `success_rate >= 0.8` holds for each of its rows, or it does not."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from localsim.errors import InvalidInput, suggest
from localsim.evaluators.leaks import Leaks
from localsim.reports.document import Report
from localsim.reports.measures import hint_on
from localsim.reports.results import Number, Result
from localsim.reports.validity.head import gap

_FORM = re.compile(
    r"(?:(?P<rows>[^<>=]+?)\s*/\s*)?(?P<measure>[A-Za-z]\w*(?:\.[\w-]+)?)\s*(?P<sign>[<>]=?|==)\s*(?P<bound>\S+)"
)
_SIGNS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}


@dataclass(frozen=True)
class Demand:
    """What a measure must be in every row of a report, or in those of one family, condition or model."""

    text: str
    measure: str
    """Its key."""
    sign: str
    bound: float
    rows: str = ""
    """Name of a family, condition or model; empty for all rows."""

    def concerns(self, row: Result) -> bool:
        """True if the demand is on this row."""
        return self.rows in ("", row.family, row.condition, row.mode, row.model)

    def holds(self, value: float | None) -> bool:
        """True if a value is as demanded; a measure without a value is not."""
        return value is not None and _SIGNS[self.sign](value, self.bound)


@dataclass(frozen=True)
class Checked:
    """A demand on one row of a run, with the number that the row has."""

    run_id: str
    demand: Demand
    row: Result
    number: Number

    @property
    def passed(self) -> bool:
        """True if the row is as demanded."""
        return self.demand.holds(self.number.value)

    @property
    def told(self) -> str:
        """The number, and why it has no value where that is known."""
        why = "no completed conversation" if not self.row.completed else ""
        if any(gap(measure, self.row) for measure in Leaks.measures if measure.key == self.demand.measure):
            why = why or f"leaks were not looked for: localsim score {self.row.other or self.run_id}"
        return f"{self.number} ({why})" if why and self.number.value is None else str(self.number)

    def as_json(self) -> dict[str, object]:
        """Return the object that `localsim check --json` prints."""
        row = self.row
        names = {"family": row.family, "condition": row.condition, "model": row.model, "measure": self.demand.measure}
        return {"demand": self.demand.text, **names, "value": self.number.value, "passed": self.passed}


def demand_of(text: str, report: Report) -> Demand:
    """Read `MEASURE SIGN NUMBER`, or `ROWS / MEASURE SIGN NUMBER`, such as `agents / success_rate >= 80%`.

    The measure is its key or its heading with underscores. Raises InvalidInput.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise InvalidInput(f"{text!r} is no demand", hint='write it like this: "success_rate >= 0.8"')
    keys: dict[str, str] = {}
    for each in report.measures:
        keys |= dict.fromkeys((each.heading.replace(" ", "_"), each.key.removesuffix("_rate")), each.key)
    keys |= {measure.key: measure.key for measure in report.measures}  # a key means itself
    if match["measure"] not in keys:
        hint = hint_on(match["measure"], list(keys))
        raise InvalidInput(f"the run has no measure {match['measure']!r}", hint=hint)
    found = Demand(text.strip(), keys[match["measure"]], match["sign"], _number(match["bound"]), match["rows"] or "")
    share = any(measure.key == found.measure and measure.kind == "share" for measure in report.measures)
    if share and found.bound > 1:
        meant = "" if match["bound"].endswith("%") else f"did you mean {found.bound:g}%?"
        raise InvalidInput(f"{found.measure} is a share from 0 to 1, or from 0% to 100%", hint=meant)
    if not any(map(found.concerns, report.comparison)):
        known = {name for row in report.comparison for name in (row.family, row.condition, row.mode, row.model)}
        meant = suggest(found.rows, known, inline=True)
        raise InvalidInput(f"the run has no family, mode or model {found.rows!r}{meant}")
    return found


def checked(report: Report, demands: Iterable[Demand]) -> Iterator[Checked]:
    """Yield every demand with each row that it is on, in the order of the demands.

    A measure that a family does not have, such as prices in a search, is left out there, unless no row has it. A row
    without a completed episode has no value, and so does not hold.
    """
    for demand in demands:
        rows = [row for row in report.comparison if demand.concerns(row)]
        having = {row.family for row in rows if row.value(demand.measure) is not None}
        for row in rows:
            if not having or row.family in having or not row.completed:
                yield Checked(report.run.run_id, demand, row, row.number(demand.measure))


def junit(run_id: str, found: Sequence[Checked]) -> str:
    """Return the result as JUnit XML, which servers for continuous integration read."""
    failed = sum(not each.passed for each in found)
    suite = ElementTree.Element("testsuite", name=run_id, tests=str(len(found)), failures=str(failed))
    for each in found:
        place = ".".join((each.row.family, each.row.condition, each.row.model))
        case = ElementTree.SubElement(suite, "testcase", classname=place, name=each.demand.text)
        if not each.passed:
            ElementTree.SubElement(case, "failure", message=f"it is {each.told}")
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _number(text: str) -> float:
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError as error:
        raise InvalidInput(f"{text!r} is no number", hint="write 0.8 or 80%") from error
