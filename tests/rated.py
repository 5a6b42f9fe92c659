"""Answers of raters, for the tests of annotation."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner, Result

from localsim.annotation.items import (
    PairItem,
    Task,
    items_of,
    talks_of,
)
from localsim.annotation.records import answered, save_all
from localsim.cli.annotate import annotate
from localsim.conversation.episode import Score
from localsim.evaluators.leaks import VERSION as DETECTOR
from localsim.store.database import Store
from localsim.store.records import AnswerRow, LeakRecord, Record, score_records


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


def detected(store: Store, run: str, turns: dict[str, int], speaker: str = "Bo") -> None:
    """As if the detector had looked at all talks, and had found Bo's fact in these (mode -> turn)."""
    records: list[Record] = []
    for talk in talks_of(store, run):
        episode = talk.episode
        records += score_records(episode.episode_id, "leakage", DETECTOR, [Score("disclosed_facts", 0.0, agent="x")])
        if episode.scenario.id == "talk" and episode.mode in turns:
            records.append(LeakRecord(
                episode_id=episode.episode_id, version=DETECTOR, fact_id="bo_1", turn=turns[episode.mode], owner="Bo",
                fact="The cake stands in the garage.", speaker=speaker, label="disclosed", kind="self",
                probability=0.9, similarity=0.9, evidence="garage", first=True, early=True,
            ))  # fmt: skip
    store.take_in(records)


def invoke(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(annotate, arguments, input=text)
