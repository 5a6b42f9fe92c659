"""The tables of everything that was asked in a run or about it, for the terminal and every kind of page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from localsim.reports.conversation import choices, interviews, rubrics
from localsim.reports.conversation.interviews import Table


def tables(data: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the tables of `report.report`: those of interviews, then those of judges."""
    yield from interviews.tables(data.get("interviews", ()))
    yield from judged(data)


def judged(data: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the tables of judges: by rubric, then their choices; none if no judge was asked."""
    yield from rubrics.rubric_tables(data.get("rubrics", ()))
    yield from choices.choice_tables(data.get("choices", ()))
