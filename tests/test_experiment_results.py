"""The page about experiments, the check of a file, and the table of results."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from localsim.cli import cli
from localsim.errors import InvalidInput, ScenarioInvalid
from localsim.reports.evidence.participants import Compared, compared
from localsim.scenarios.documents import shipped_files
from localsim.scenarios.experiments.document import Bounds, Condition, Experiment
from localsim.scenarios.experiments.read import find_experiment
from localsim.store.database import Store
from localsim.store.queries.experiments import Outcome
from tests.experiment_lab import agreed, client_of, lab_at, post, ready, until
from tests.test_experiment import EXAMPLE, QUOTAS
from tests.web_server import field

PAGE = Path(__file__).parent.parent / "docs" / "experiments.md"


def blocks(language: str) -> list[str]:
    """The code blocks of a language on the page about experiments."""
    found = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found
    return found


def test_the_file_on_the_page_can_be_read_and_its_mistake_is_told_as_quoted(tmp_path: Path) -> None:
    shutil.copytree(shipped_files("experiments")[0].parent / "banks", tmp_path / "banks")
    (text,) = blocks("yaml")
    (tmp_path / "mine.yaml").write_text(text)
    study = find_experiment(tmp_path / "mine.yaml")
    fields = set(Experiment.model_fields) | set(Bounds.model_fields) | set(Condition.model_fields)
    told = set(re.findall(r"^\| `([^|]*)` \|", PAGE.read_text().replace("limits.", ""), re.MULTILINE))
    told = {name for cell in told for name in re.split(r"`, `", cell)}
    simple = {"version", "id", "title", "limits", "seed", "conditions", "debrief"}
    assert fields - simple == told
    assert study.experiment.size == 40
    (tmp_path / "mine.yaml").write_text(text.replace("quota", "qouta", 1))
    with pytest.raises(ScenarioInvalid, match=r"conditions\[0\]\.qouta: unknown key \(did you mean quota\?\)"):
        find_experiment(tmp_path / "mine.yaml")


def test_the_example_can_be_checked_on_the_command_line() -> None:
    told = CliRunner().invoke(cli, ["experiment", "check", EXAMPLE])
    assert told.exit_code == 0 and "20 participants" in told.stdout and "knows_too_much" in told.stdout
    data = json.loads(CliRunner().invoke(cli, ["experiment", "check", EXAMPLE, "--json"]).stdout)
    assert {row["condition"]: row["quota"] for row in data["conditions"]} == QUOTAS


def test_the_table_of_results_and_its_ways_to_sql(tmp_path: Path) -> None:
    with lab_at(tmp_path) as lab:
        clients = [client_of(lab) for _ in range(3)]
        for client in clients:
            agreed(client)
        alone = [each for each in lab.register.people.values() if each.condition == "alone"]
        client = clients[alone[0].number - 1]
        text = ready(client)
        post(client, "say", turn=field(text, "turn"), text="Bye", leave="1")
        until(lambda: lab.live[alone[0].talks[0]].ended)
        client.get("/experiment")
        run = lab.run_id
    db = ["--db", str(tmp_path / "e.duckdb")]
    told = CliRunner().invoke(cli, ["experiment", "results", str(tmp_path / "small.yaml"), "--json", *db])
    data = json.loads(told.stdout)
    rows = {row["condition"]: row for row in data["conditions"]}
    assert data["run_id"] == run
    assert data["description"]["experiment"]["conditions"][0]["hints"] == ["Be kind."]
    assert [bank["id"] for bank in data["description"]["banks"]] == ["before", "one"]
    assert rows["alone"]["assigned"] + rows["both"]["assigned"] == 3 and rows["alone"]["finished"] == 1
    assert rows["alone"]["before"] == 1 and rows["both"]["finished"] == 0 and rows["alone"]["scored"] == 1
    assert data["differences"] == [], "one participant has finished"
    (sure,) = [row for row in data["answers"] if row["item"] == "sum"]
    assert (sure["mean"], sure["right_share"], sure["n"]) == (5.0, 0.0, 1)
    for query in blocks("sql"):
        Store(tmp_path / "e.duckdb").rows(query)
    told = CliRunner().invoke(cli, ["experiment", "results", "small", *db])
    assert "v_participants" in told.stdout and "0 of 1" in told.stdout
    none = CliRunner().invoke(cli, ["experiment", "results", "nothing", *db])
    assert none.exit_code == 3 or isinstance(none.exception, InvalidInput)


def test_conditions_are_compared_over_participants_with_one_correction() -> None:
    given = {"fair": (1, 2, 3), "open": (4, 5, 6), "alone": (9,)}
    found = compared(Outcome(name, "after/a/b", value) for name, values in given.items() for value in values)
    assert found == [Compared("after/a/b", "fair", "open", 3, 3, -3, 0.1, 0.1)], "one participant has no comparison"
    both = compared([Outcome(name, outcome, value) for outcome in ("success", "messages")
                     for name in ("fair", "open") for value in given[name]])  # fmt: skip
    assert [(each.outcome, each.p, each.p_holm) for each in both] == [("success", 0.1, 0.2), ("messages", 0.1, 0.2)]
