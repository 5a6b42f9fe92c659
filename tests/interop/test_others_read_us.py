"""Other tools read what localsim writes, and run its tasks: Inspect with its mock model, and `datasets`.

These libraries need other versions than the rest of the suite, so these tests have an environment of their own:
`make interop` makes it and runs them.
"""

from __future__ import annotations

import math
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from datasets import get_dataset_config_names, load_dataset
from inspect_ai import eval as run_task
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from localsim.families import FAMILIES
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.runs.scheduler import Watcher
from localsim.runs.transfer.sending import send
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store

ONE = "mutual_friends_01"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str]:
    """A run of two scenarios, played by scripts."""
    store = Store(tmp_path_factory.mktemp("told") / "t.duckdb")
    scenarios = tuple(find_scenarios([ONE, "a_favour_asked"]))
    return store, start(Plan(scenarios, ("agents", "script"), "scripted", episodes=2), store, Watcher(), print).run_id


def test_inspect_reads_the_log_of_a_run(told: tuple[Store, str], tmp_path: Path) -> None:
    store, run_id = told
    (file,) = send(store, run_id, "inspect", tmp_path / "log.json", print)
    log = read_eval_log(str(file))
    assert (log.status, log.eval.model, log.results.total_samples) == ("success", "scripted", 8)
    rows = {row["episode_id"]: row for row in store.rows("SELECT * FROM v_episodes")}
    for sample in log.samples:
        episode_id = sample.metadata["episode_id"]
        said = store.rows("SELECT speaker, text FROM turns WHERE episode_id = ? ORDER BY turn", [episode_id])
        spoken = [(message.metadata["speaker"], message.metadata["text"]) for message in sample.messages[1:]]
        assert spoken == [(row["speaker"], row["text"]) for row in said]
        assert sample.scores["style"].value["turns"] == len(said)
        assert sample.epoch == rows[episode_id]["episode_index"] + 1


def test_inspect_lists_the_log_and_reads_its_head_alone(told: tuple[Store, str], tmp_path: Path) -> None:
    """`inspect view` and `inspect log list` read only what stands before the samples."""
    store, run_id = told
    (file,) = send(store, run_id, "inspect", tmp_path / "2026-11-25T10-00-00_localsim_x.json", print)
    (listed,) = list_eval_logs(str(tmp_path))
    head = read_eval_log(listed, header_only=True)
    assert head.samples is None and head.eval.run_id == run_id
    assert [step.solver for step in head.plan.steps] == ["localsim/agents", "localsim/script"]
    assert head.results.scores == read_eval_log(str(file)).results.scores != []


def test_datasets_loads_every_table_of_a_run(told: tuple[Store, str], tmp_path: Path) -> None:
    store, run_id = told
    folder = str(send(store, run_id, "hf", tmp_path / "set", print)[0].parent)
    counts = {
        name: load_dataset(folder, name, split="train", cache_dir=str(tmp_path / "cache")).num_rows
        for name in get_dataset_config_names(folder)
    }
    assert set(counts) == {"runs", "episodes", "turns", "generations", "scores"}
    for name, count in counts.items():
        assert store.rows(f"SELECT count(*) AS n FROM v_{name}")[0]["n"] == count
    assert load_dataset(folder, split="train", cache_dir=str(tmp_path / "cache")).num_rows == counts["turns"]


# ---- the task -------------------------------------------------------------------------------------------------------


class Mock:
    """Inspect's mock model with replies of ours; remembers the messages of every call."""

    def __init__(self, reply: str | None = None) -> None:
        self.calls: list[list[Any]] = []
        self._reply = reply

    def __call__(self, messages: list[Any], _tools: Any, _choice: Any, config: Any) -> ModelOutput:
        self.calls.append([*messages, config])
        reply = self._reply or f"Do you know somebody from the choir, number {len(self.calls)}?"
        output = ModelOutput.from_content("mockllm/model", reply)
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output


def evaluated(mock: Mock, tmp_path: Path, name: str = "localsim/mutual_friends", **arguments: Any) -> EvalLog:
    """Run a task, as `inspect eval localsim/mutual_friends -T ...` does."""
    model = get_model("mockllm/model", custom_outputs=mock, memoize=False)
    given = {"scenarios": ONE, **arguments}
    epochs = given.pop("epochs", 1)
    (log,) = run_task(name, model=model, task_args=given, epochs=epochs, log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    return log


COMMAND = """
import sys
from importlib.metadata import entry_points
import inspect_ai.model._model as model
model.count_text_tokens = lambda text: len(text) // 4  # its own tokenizer is fetched from the network at first use
(inspect,) = entry_points(group="console_scripts", name="inspect")
sys.argv[0] = "inspect"
inspect.load()()
"""


def test_the_documented_command_runs_with_the_mock_model(tmp_path: Path) -> None:
    command = ["eval", "localsim/mutual_friends", "--model", "mockllm/model", "-T", "mode=agents"]
    given = ["-T", f"scenarios={ONE}", "-T", "seed=7", "--epochs", "2", "--display", "plain"]
    arguments = [sys.executable, "-c", COMMAND, *command, *given, "--log-dir", str(tmp_path)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (listed,) = list_eval_logs(str(tmp_path))
    log = read_eval_log(listed)
    assert log.status == "success", log.error
    assert [(sample.id, sample.epoch) for sample in log.samples] == [(ONE, 1), (ONE, 2)]
    assert log.eval.task_args_passed == {"mode": "agents", "scenarios": ONE, "seed": 7}
    assert all("Default output from mockllm/model" in sample.messages[0].text for sample in log.samples)


def test_the_page_names_the_versions_that_these_tests_pass_with() -> None:
    page = (Path(__file__).parents[2] / "docs" / "exchange.md").read_text()
    assert f"Inspect {version('inspect-ai')} and `datasets` {version('datasets')}" in page


def test_each_agent_has_messages_of_its_own_and_sees_only_its_own_side(tmp_path: Path) -> None:
    mock = Mock()
    (log,) = [evaluated(mock, tmp_path)]
    scenario = find_scenarios([ONE])[0].scenario
    assert len(mock.calls) == len(log.samples[0].messages) >= 2
    for number, call in enumerate(mock.calls):
        viewer, other = scenario.agents[number % 2], scenario.agents[1 - number % 2]
        text = "\n".join(message.text for message in call[:-1])
        assert viewer.goal in text and all(fact.text in text for fact in viewer.facts)
        own = {fact.text for fact in viewer.facts}
        assert not any(fact.text in text for fact in other.facts if fact.text not in own)
        assert [message.role for message in call[:2]] == ["system", "user"]
    seeds = [call[-1].seed for call in mock.calls]
    assert len(set(seeds)) == len(seeds)


def test_mindreaders_see_both_sides_and_the_answer_key_reaches_nobody(tmp_path: Path) -> None:
    mock = Mock()
    evaluated(mock, tmp_path, mode="mindreaders")
    loaded = find_scenarios([ONE])[0]
    for call in mock.calls:
        text = "\n".join(message.text for message in call[:-1])
        assert all(fact.text in text for agent in loaded.scenario.agents for fact in agent.facts)
        assert str(loaded.answer.answer) not in text


def test_the_familys_rules_score_what_was_said(tmp_path: Path) -> None:
    answer = find_scenarios([ONE])[0].answer.answer
    friend = next(value for value in answer.values() if isinstance(value, list) and value)[0]
    log = evaluated(Mock(f"It is {friend}! Yes, {friend} is our friend. Goodbye."), tmp_path, epochs=2)
    found = [next(iter(sample.scores.values())).value for sample in log.samples]
    assert [value["success"] for value in found] == [1, 1]
    missed = evaluated(Mock("Nice weather today."), tmp_path)
    assert next(iter(missed.samples[0].scores.values())).value["success"] == 0
    names = {score.name for score in log.results.scores}
    assert {measure.score for measure in FAMILIES["mutual_friends"].measures} <= names


def test_a_reply_that_does_not_parse_fails_its_sample_and_scores_nothing(tmp_path: Path) -> None:
    first = find_scenarios([ONE])[0].scenario.names[0]
    log = evaluated(Mock(f"{first} [dance]: round and round"), tmp_path)
    (score,) = log.samples[0].scores.values()
    assert math.isnan(score.value) and "did not parse" in score.explanation


def test_there_is_a_task_for_every_family_with_bundled_scenarios(tmp_path: Path) -> None:
    log = evaluated(Mock("I pass."), tmp_path, "localsim/craigslist", scenarios="craigslist_01,craigslist_02")
    assert [sample.id for sample in log.samples] == ["craigslist_01", "craigslist_02"]
