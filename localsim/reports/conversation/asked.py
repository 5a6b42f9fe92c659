"""The tables of everything that was asked in a run or about it, for the terminal and every kind of page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from localsim.reports.conversation import choices, interviews, rubrics
from localsim.reports.conversation.interviews import Table
from localsim.reports.document import Report


def tables(data: Report) -> Iterator[Table]:
    """Yield the tables of a report: those of interviews, then those of judges."""
    yield from interviews.tables(data.interviews)
    yield from judged(data.rubrics, data.choices)


def judged(by_rubric: Iterable[dict[str, Any]], chosen: Iterable[dict[str, Any]]) -> Iterator[Table]:
    """Yield the tables of judges: by rubric, then their choices; none if no judge was asked."""
    yield from rubrics.rubric_tables(by_rubric)
    yield from choices.choice_tables(chosen)
