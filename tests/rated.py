"""Answers of raters, for the tests of annotation."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner, Result

from localsim.annotation.items import (
    PairItem,
    Task,
    items_of,
)
from localsim.annotation.records import answered, save_all
from localsim.cli.annotate import annotate
from localsim.store.database import Store
from localsim.store.records import AnswerRow


def given(store: Store, run: str, rater: str, choose: Any, task: Task = "pairs", **options: Any) -> list[AnswerRow]:
    """Store a rater's answers to all items of a task; `choose` makes a value of an item."""
    found = [answered(item, choose(item), origin="browser") for item in items_of(store, run, task, rater, **options)]
    save_all(store, found)
    return found


def best(*order: str) -> Any:
    """A rater who reads, and prefers modes in this order."""

    def choose(item: PairItem) -> int:
        if item.expected is not None:
            return item.expected
        return 1 if order.index(item.episode.mode) < order.index(item.second.mode) else 2

    return choose


def invoke(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(annotate, arguments, input=text)
