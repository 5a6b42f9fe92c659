"""The report as Markdown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from localsim.reports.card import card
from localsim.reports.compose.alone import report
from localsim.reports.render.markdown import as_markdown, card_as_markdown, table
from localsim.reports.validity.head import measure_table
from localsim.runs.runner import Plan, start
from localsim.store.database import Store
from localsim.store.queries.reports import Leak
from tests.conftest import Quiet, generated


def test_a_report_as_markdown_holds_the_table_the_papers_values_and_no_foreign_markup(tmp_path: Path) -> None:
    store = Store(tmp_path / "m.duckdb")
    plan = Plan((generated("craigslist", 3),), ("script", "agents"), model="scripted")
    run = start(plan, store, Quiet(), lambda _line: None).run_id
    data = report(store, run)
    data = replace(data, card=card(store, data))
    leak = Leak(
        "e", "craigslist", "s", "agents", "", "m", "f", "a | b", "Ana", "<b>", 2, 0.5, "omniscient",
        early=False, probability=0.9, similarity=None, evidence="", text="[x](http://y)",
    )  # fmt: skip
    data = replace(data, leaks=[leak])
    text = as_markdown(data)
    assert "## Bargaining" in text and "| | script | agents |" in text and "*0.94* | *0.3*" in text
    assert "## Simulation card" in text and "played by a script" in text
    assert "a \\| b" in text and "\\[x\\](http://y)" in text and "<b>" not in text
    marked = card_as_markdown(json.loads(json.dumps(data.card).replace("scripted", "<b>x")))
    assert "\\<b\\>x" in marked and "<b" not in marked.replace("\\<", "")
    assert table(measure_table(data.comparison, data.measures))[0] == "| | script | agents |"
