"""The SQL box: a query that a person types, its result as a table and a chart. No HTML here."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import takewhile
from pathlib import Path
from typing import Any

from localsim import paths
from localsim.errors import InvalidInput
from localsim.store.database import Store

SQL_ROWS, SQL_SECONDS, SQL_LENGTH = 500, 10.0, 20_000
LONGEST_LABEL = 60
"""Characters. A row with a longer text is a quotation, and gets no bar."""


@dataclass(frozen=True)
class Bar:
    """A bar of a chart."""

    label: str
    value: Any
    share: float
    """Of the longest bar, from 0 to 1."""


@dataclass(frozen=True)
class QueryResult:
    """The result of a query."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    more: bool
    """True where the query has more rows than these."""
    chart: Sequence[Bar]
    """Empty unless the result has a text and a number to show."""
    measure: str


def ask(store: Store, query: str, run: str = "@last") -> QueryResult:
    """Run a query that a person typed, in which `$run` is the id of a run.

    Raises InvalidInput where it is empty, too long, wrong or not allowed.
    """
    if len(query) > SQL_LENGTH:
        raise InvalidInput(f"the query has more than {SQL_LENGTH} characters", where="sql")
    columns, rows, more = store.sql_page(query, rows=SQL_ROWS, seconds=SQL_SECONDS, run=run)
    measure, bars = _chart(columns, rows)
    shown = tuple(tuple(_rounded(value) for value in row) for row in rows)
    return QueryResult(tuple(columns), shown, more, bars, measure)


def _rounded(value: Any) -> Any:
    """A number as people write it: 0.49 for the 0.49000000953674316 that 32 bits hold; large ones keep 12 digits."""
    if not isinstance(value, float) or not math.isfinite(value):
        return value
    if value.is_integer() and abs(value) < 1e15:
        return int(value)
    return float(f"{value:.7g}" if abs(value) < 1000 else f"{value:.12g}")


def _chart(columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> tuple[str, list[Bar]]:
    """Bars of the first column of numbers from 0 up, named by the columns of short texts that differ."""
    if not 2 <= len(rows) <= 40:
        return "", []
    numbers = [
        index
        for index in range(len(columns))
        if all(_is_number(row[index]) or row[index] is None for row in rows) and any(row[index] for row in rows)
    ]
    texts = [index for index in range(len(columns)) if all(isinstance(row[index], str | None) for row in rows)]
    long = any(len(row[index] or "") > LONGEST_LABEL for row in rows for index in texts)
    if not numbers or not texts or long or any((row[numbers[0]] or 0) < 0 for row in rows):
        return "", []
    shown = numbers[0]
    telling = [index for index in texts if len({row[index] for row in rows}) > 1] or texts
    most = max(float(row[shown] or 0) for row in rows)
    bars = [Bar(_label(row[each] for each in telling[:3]), row[shown], float(row[shown] or 0) / most) for row in rows]
    return columns[shown], bars


def _label(values: Iterable[Any]) -> str:
    """Return the name of a bar; a value that is not there is left out."""
    return " · ".join(str(value) for value in values if value is not None) or "-"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True)
class ExampleQuery:
    """A query that localsim ships."""

    name: str
    about: str
    """The question in words."""
    text: str


def example_queries() -> list[ExampleQuery]:
    """The queries that localsim ships."""
    return [_example(path) for path in sorted(paths.bundled("queries").glob("*.sql"))]


def _example(path: Path) -> ExampleQuery:
    text = path.read_text(encoding="utf-8").strip()
    lines = takewhile(lambda line: line.startswith("--"), text.splitlines())
    about = " ".join(line.removeprefix("--").strip() for line in lines)
    return ExampleQuery(path.stem, about or path.stem, text)
