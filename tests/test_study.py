"""The study on the embedded model, as small as it can be: from nothing to its page, and found again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localsim import study
from localsim.__main__ import run
from localsim.conversation.episode import MODES
from localsim.store.database import Store
from localsim.study.differences import EVERY

TINY = study.Size(scenarios=1, situations=1, episodes=1, learnt=2, learnt_episodes=1, tokens=3000, answers=1)


@pytest.mark.model
@pytest.mark.verify
def test_a_study_goes_from_nothing_to_its_page_and_is_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(study.SIZES, "small", TINY)
    folder = tmp_path / "study"
    command = ["study", "--dir", str(folder), "--twin", "none"]
    assert run(command) == 0
    told = capsys.readouterr().out
    data = json.loads((folder / "study.json").read_text())
    (model,) = data["models"]
    taught = [name for name, about in model["lessons"].items() if "adapter" in about]
    assert "agents-ft" in taught and len(model["lessons"]) == len(study.ARMS), "an arm may have too few lessons"
    rows = {(row["family"], row["condition"]) for row in model["rows"] if row["task"] == EVERY}
    assert rows == {(family, name) for family in ("craigslist", "mutual_friends") for name in (*MODES, *taught)}
    cards = [
        json.loads((folder / model["lessons"][name]["adapter"]).with_suffix(".json").read_text()) for name in taught
    ]
    assert len({(card["data"]["tokens"], card["data"]["tokens_learnt"]) for card in cards}) == 1, "equally much"
    assert len({json.dumps(card["settings"]) for card in cards}) == 1, "one recipe and seed"
    assert {row["second"] for row in model["arms"] if row["first"] == "agents"} == set(taught)
    assert {(row["first"], row["second"]) for row in model["naturalness"]} >= {("script", "agents")}
    text = (folder / "study.md").read_text()
    assert "\n## Answer\n" in text and text in told
    assert (folder / "report.html").is_file() and len(list(folder.glob("*.gguf"))) == len(taught)
    runs = Store(folder / "study.duckdb").rows("SELECT run_id, episodes_planned FROM runs ORDER BY started_utc")
    assert [row["episodes_planned"] for row in runs] == [6, 8, *([2] * len(taught))]

    assert run(command) == 0
    assert json.loads((folder / "study.json").read_text()) == data
    assert Store(folder / "study.duckdb").rows("SELECT count(*) AS n FROM runs") == [{"n": len(runs)}]
