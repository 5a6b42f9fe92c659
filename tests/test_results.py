"""The published results: the page says what the files of the studies say; its commands work with scripted players."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from localsim import study
from localsim.__main__ import run as main
from localsim.study.beside import FILE
from scripts import results
from tests.test_study_stages import LEAST, simplify

PUBLISHED = sorted(path for path in results.FOLDER.iterdir() if path.is_dir()) if results.FOLDER.exists() else []


def test_page_and_picture_are_made_from_the_files() -> None:
    found = results.published()
    assert results.PAGE.read_text() == results.page(found)
    picture = results.PICTURE.read_text()
    assert all(each.model in picture for each in found)


@pytest.mark.parametrize("folder", PUBLISHED, ids=[path.name for path in PUBLISHED])
def test_a_published_study_agrees_with_itself(folder: Path) -> None:
    """Its parts add up, its models and scenarios are named by checksums, and its tables hold what its page counts."""
    data = json.loads((folder / FILE).read_text())
    assert re.fullmatch(r"[0-9a-f]{12}", data["plan"]["scenarios"])
    for model in data["models"]:
        assert "sha256" in model["identity"] or ":" in model["identity"]
        whole = {(row["family"], row["condition"]): row["n"] for row in model["rows"] if row["task"] == "all tasks"}
        parts = [row for row in model["rows"] if row["task"] != "all tasks"]
        for place in {(row["family"], row["condition"]) for row in parts}:
            assert whole[place] == sum(row["n"] for row in parts if (row["family"], row["condition"]) == place)
        for row in model["rows"]:
            assert row["completed"] + row["failed"] == row["n"]
    with (folder / "tables" / "goals_that_the_text_proves.csv").open(newline="") as file:
        conditions = [row["condition"] for row in csv.DictReader(file)]
    assert conditions == [each["label"] for each in data["models"][0]["conditions"]]


def test_the_commands_of_the_page_publish_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    simplify(monkeypatch)
    monkeypatch.setitem(study.SIZES, "small", LEAST)
    mine = tmp_path / "mine"
    command = ["study", "-m", "scripted", "--arms", "none", "--judge", "none", "--size", "small", "--dir", str(mine)]
    assert main(command) == 0
    (tmp_path / "results").mkdir()
    for name, value in (("FOLDER", tmp_path / "results"), ("PAGE", tmp_path / "results.md"), ("DOCS", tmp_path)):
        monkeypatch.setattr(results, name, value)
    monkeypatch.setattr(results, "ROOT", tmp_path)
    results.main.main(["--add", str(mine), "player"], standalone_mode=False)
    text = (tmp_path / "results.md").read_text()
    assert "| Bargaining | agents | 100% [" in text and "| Situations | seeing every side | +0" in text
    assert "`localsim study --size small --model scripted --seed 1 --judge none --arms none`" in text
    assert (tmp_path / "results.svg").is_file() and (tmp_path / "results" / "player" / "report.html").is_file()
    assert (tmp_path / "results" / "player" / "tables" / "goals_that_the_text_proves.csv").is_file()
    assert main(["study", "--arms", "agents-ff"]) == 3
