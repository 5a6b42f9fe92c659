"""The study on the embedded model, as small as it can be: from nothing to its table, and found again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localsim import study
from localsim.__main__ import run
from localsim.store.database import Store

TINY = study.Size(scenarios=1, episodes=1, learnt=2, learnt_episodes=1, tokens=3000)


@pytest.mark.model
@pytest.mark.verify
def test_a_study_goes_from_nothing_to_its_table_and_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(study.SIZES, "small", TINY)
    folder = tmp_path / "study"
    assert run(["study", "--dir", str(folder)]) == 0
    told = capsys.readouterr().out
    data = json.loads((folder / "study.json").read_text())
    conditions = [(row["family"], row["condition"]) for row in data["rows"]]
    assert conditions == [
        *(("craigslist", mode) for mode in ("script", "agents", "mindreaders")),
        *(("mutual_friends", mode) for mode in ("script", "agents", "mindreaders")),
        ("craigslist", "agents-ft"),
        ("mutual_friends", "agents-ft"),
    ]
    assert {row["second"] for row in data["finetuning"]} == {"agents-ft"}
    text = (folder / "study.md").read_text()
    assert "## Agents before and after learning from scripts" in text and text in told
    assert (folder / "report.html").is_file() and list(folder.glob("*.gguf"))
    runs = Store(folder / "study.duckdb").rows("SELECT run_id, episodes_planned FROM runs ORDER BY started_utc")
    assert [row["episodes_planned"] for row in runs] == [6, 4, 2]

    assert run(["study", "--dir", str(folder)]) == 0
    assert json.loads((folder / "study.json").read_text()) == data
    assert Store(folder / "study.duckdb").rows("SELECT count(*) AS n FROM runs") == [{"n": 3}]
