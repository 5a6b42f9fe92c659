"""The study with scripted players in place of models: its stages, arms, continuation and page."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pytest

from localsim.__main__ import run as main
from localsim.annotation.items import items_of, selected
from localsim.annotation.records import answered, save_all
from localsim.backends.scripted import ScriptedBackend
from localsim.conversation.episode import MODES, SIMULATED
from localsim.errors import Interrupted
from localsim.evaluators import evaluate, leaks
from localsim.evaluators.leaks import Leaks
from localsim.families import FAMILIES, in_order
from localsim.leakage.detector import LeakageDetector
from localsim.reports import paper
from localsim.reports.paper.beside import Compared
from localsim.runs import runner
from localsim.runs.scheduler import Watcher
from localsim.store.database import Store
from localsim.study import ARMS, NONE, Size, Study, Taught, run_study
from localsim.study import run as running
from localsim.study.design import JUDGED, QUESTIONS, SOLVABLE, taught_cells
from localsim.study.differences import BOTH, CAUSES, EVERY
from localsim.study.equal import Amount
from localsim.study.lessons import Lesson
from localsim.study.stages import Session

SIZE = Size(scenarios=4, situations=2, episodes=1, learnt=2, learnt_episodes=1, tokens=1000, answers=1)
LEAST = Size(scenarios=2, situations=1, episodes=1, learnt=1, learnt_episodes=1, tokens=1000, answers=1)
PLAYERS = {
    "agents-ft": "scripted:yes-sayer",
    "agents-ft-agents": "scripted:honest",
    "agents-ft-half": "scripted:guesser",
    "agents-ft-clean": "scripted",
}


COMPARED = paper.compared


class Players:
    """A teacher whose pupils are scripted players."""

    def __init__(self, *, without: dict[str, str] | None = None) -> None:
        """`without`: a model and the arm for which it has too few chats."""
        self.taught_from: list[str] = []
        self._without = without or {}

    def check(self, session: Session, model: str) -> None:
        """Every model can be taught."""

    def teach(self, session: Session, model: str, run_id: str) -> Taught:  # noqa: ARG002 - a protocol
        """Give each arm its player."""
        self.taught_from.append(run_id)
        amount = Amount("craigslist", SOLVABLE, chats=4, scenarios=2, shared_scenarios=2, tokens=700, targets=300)
        lessons = {arm.name: Lesson(arm.taught_on, run_id, 4, 4, 900, tasks=[amount]) for arm in ARMS}
        models = dict(PLAYERS)
        if without := self._without.get(model):
            lessons[without] = replace(lessons[without], left_out="it has too few chats")
            models.pop(without)
        return Taught(models, lessons)


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The paper's tables and the leak detector have tests of their own."""
    simplify(monkeypatch)


def simplify(patch: pytest.MonkeyPatch) -> None:
    """Leave out the paper's tables and figures, and search for leaks by words alone."""
    patch.setattr(paper, "compared", lambda *_: Compared([], {}, {}))
    patch.setattr(paper, "figures", lambda *_: [])
    by_words = LeakageDetector(letters, use_reader=False)
    patch.setattr(leaks, "Leaks", lambda store, weights: Leaks(store, by_words.having(weights)))


def letters(texts: Sequence[str]) -> Any:
    """Unit vectors that count the letters of texts."""
    counts = np.array([[1.0, *(text.lower().count(letter) for letter in ascii_lowercase)] for text in texts])
    return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


def judging(prefer: str) -> Any:
    """A judge that finds refusals and prefers the longer talk, or one that always answers the same."""

    class Judge(ScriptedBackend):
        def _text(self, request: Any) -> str:
            asked = request.messages[1].content
            if "Conversation 2:" in asked:
                one, two = asked.split("Conversation 1:")[1].split("Conversation 2:")
                lines = [part.split("\n\nWhich")[0].strip().count("\n") for part in (one, two)]
                first = prefer == "place" or lines[0] > lines[1]
                return f" It is so.\nMore natural: {1 if first else 2}\n"
            refused = any(each in asked for each in ("too far apart", "keep that to myself", "[refuse]", "No."))
            return f" It is so.\nScore: {0 if prefer == 'place' or refused else 5}\n"

    return Judge("scripted:x", replies=["unused"])


class Listed:
    """A judge that lists its questions, and is interrupted at one of them."""

    def __init__(self, prefer: str, asked: list[str], stop: int) -> None:
        self._judge, self._asked, self._stop = judging(prefer), asked, stop

    def submit(self, request: Any) -> Any:
        """Answer a question, or be interrupted."""
        if len(self._asked) == self._stop:
            raise KeyboardInterrupt
        self._asked.append(request.messages[1].content)
        return self._judge.submit(request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._judge, name)


def study_in(folder: Path, **changes: Any) -> Study:
    return Study(**{"size": SIZE, "model": "scripted", "folder": folder, "judge": NONE, "twin": NONE, **changes})


def whole_in(folder: Path) -> Study:
    return study_in(folder, twin="scripted:peeks-100", iterative=True)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A whole study with a twin, in its folder."""
    folder = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        simplify(patch)
        patch.setattr(paper, "compared", COMPARED)
        return folder, run_study(whole_in(folder), teacher=Players())


def test_every_condition_plays_the_same_scenarios_and_lessons_are_from_others(done: tuple[Path, Any]) -> None:
    store = Store(done[0] / "study.duckdb")
    runs = done[1]["models"][0]["runs"]
    assert list(runs) == ["compare", "scripted:peeks-100", "teach", *PLAYERS]
    units = {
        stage: store.rows(
            "SELECT DISTINCT scenario_id, episode_index, seed FROM v_episodes WHERE run_id = ? ORDER BY ALL", [run_id]
        )
        for stage, run_id in runs.items()
    }
    for stage in ("scripted:peeks-100", *PLAYERS):
        assert units[stage] == units["compare"]
    lessons = {row["scenario_id"] for row in units["teach"]}
    assert not lessons & {row["scenario_id"] for row in units["compare"]}
    assert set(taught_cells(SIZE)) == lessons


def test_rows_are_shown_together_and_by_task(done: tuple[Path, Any]) -> None:
    model = done[1]["models"][0]
    labels = [*SIMULATED, *PLAYERS, *(f"{mode}, scripted:peeks-100 (constructed)" for mode in SIMULATED)]
    assert [each["label"] for each in model["conditions"]] == labels
    situations = {row["task"] for row in model["rows"] if row["family"] == "situations"}
    assert situations == {EVERY}, "a family of one task has one row of each condition"
    for family in FAMILIES.own:
        rows = [row for row in model["rows"] if row["family"] == family]
        wanted = {EVERY, SOLVABLE, *(task for task in FAMILIES[family].study_tasks if task)}
        assert {row["task"] for row in rows} == wanted
        for label in labels:
            whole, *parts = [row for row in rows if row["condition"] == label]
            assert whole["task"] == EVERY and whole["n"] == sum(part["n"] for part in parts) == 4
            assert all(part["n"] == 2 for part in parts)
            mean = sum(part["success_rate"] * part["n"] for part in parts) / whole["n"]
            assert mean == pytest.approx(whole["success_rate"], abs=1e-3)
    yes = {
        row["task"]: row for row in model["rows"] if row["condition"] == "agents-ft" and row["family"] == "craigslist"
    }
    assert yes["no zone"]["deal_without_zone_rate"] == 1 and yes["no zone"]["deal_with_zone_rate"] is None


def test_one_author_turn_by_turn_divides_author_from_text(done: tuple[Path, Any]) -> None:
    tested = {row["contrast"] for row in done[1]["models"][0]["modes"] if row["measure"] == "success_rate"}
    assert {"authorship", "author", "text"} <= tested
    assert "| iterative | one writer sees all, turn by turn | as it is |" in (done[0] / "study.md").read_text()


def test_every_arm_is_contrasted_with_agents_and_with_its_controls(done: tuple[Path, Any]) -> None:
    rows = done[1]["models"][0]["arms"]
    first = [row for row in rows if row["primary"]]
    assert {(row["first"], row["second"]) for row in first} == set(CAUSES) and len(first) == 3 * len(CAUSES)
    assert all(row["p_holm"] >= row["p"] for row in rows if row["p"] is not None)
    assert not any(row["measure"] == "mix_ups" for row in rows), "agents cannot mix up: nothing to test"
    values = {(row["condition"]): row["success_rate"] for row in done[1]["models"][0]["rows"] if row["task"] == EVERY
              and row["family"] == "craigslist"}  # fmt: skip
    for row in first:
        if row["family"] == "craigslist":
            assert row["difference"] == pytest.approx(values[row["second"]] - values[row["first"]], abs=1e-3)


def test_the_page_ends_with_an_answer_that_names_the_constructed_twin(done: tuple[Path, Any]) -> None:
    folder, data = done
    text = (folder / "study.md").read_text()
    head, _, answer = text.partition("\n## Answer\n")
    assert "##" not in answer
    for family in ("Bargaining", "Mutual friends"):
        for about in ("seeing every side ", "against agents: ", "in the lessons: "):
            assert any(family in line and about in line for line in answer.splitlines())
    assert all(cause in answer for cause in CAUSES.values())
    abouts = [part["about"] for part in data["answer"]]
    assert abouts[-1] == "The same by scripted:peeks-100 (constructed: a control)"
    named = "| script, scripted:peeks-100 (constructed) |"
    row, _goals = [line for line in head.splitlines() if line.startswith(named)]
    assert row.endswith("| scripted:peeks-100 (constructed: a control) |")
    beside = head.partition("\n## Beside the paper\n")[2].partition("\n## ")[0]
    assert "agents-ft-clean" in beside and "peeks" not in beside, "the paper's tables show all but the twin"
    page = (folder / "report.html").read_text()
    assert all(name in page for name in PLAYERS), "the arms are in the figures of the report"
    assert "the same number of tokens and of targets of each task" in head
    for title in ("Lessons of the arms", "Goals that the text proves", "Null and gain", "Naturalness"):
        assert f"\n## {title}\n" in head
    assert "paper, GPT-3.5" not in head.partition("\n## Beside the paper\n")[0], "its tasks are others"
    assert json.loads((folder / "study.json").read_text())["answer"] == data["answer"]


def test_the_twins_differences_are_told_beside_the_models(done: tuple[Path, Any]) -> None:
    folder, data = done
    model = data["models"][0]
    primary = [row for row in model["premiums"] if row["primary"]]
    rows = [row for row in primary if row["measure"] == "success_rate"]
    names = ["scripted", "scripted:peeks-100 (constructed)", BOTH]
    assert [(row["family"], row["who"]) for row in rows] == [
        (family, name) for family in in_order([*FAMILIES.own, "situations"]) for name in names
    ]
    for family in FAMILIES.own:
        own, twin, both = (row["difference"] for row in rows if row["family"] == family)
        assert both == pytest.approx(twin - own, abs=1e-9)
        (mode,) = [
            row for row in model["modes"]
            if row["primary"] and row["family"] == family and row["contrast"] == "information"
        ]  # fmt: skip
        assert mode["difference"] == own
    for row in rows:
        modes = {names[0]: model["modes"], names[1]: model["twin"]["modes"]}.get(row["who"], [])
        for mode in (mode for mode in modes if mode["primary"] and mode["family"] == row["family"]):
            assert row["p_holm"] == mode["p"], "one difference has one p, here and in the report of its run"
    faster = {(row["family"], row["who"]): row["difference"] for row in primary if row["measure"] == "turns"}
    for family in FAMILIES.own:
        assert faster[family, names[1]] < min(0, faster[family, names[0]]), "who uses the other side needs fewer turns"
    goals = (folder / "study.md").read_text().partition("## Goals that the text proves")[2].partition("\n## ")[0]
    assert "| script, scripted:peeks-100 (constructed) |" in goals and "no zone (2 scenarios)" in goals


def test_success_by_condition_and_task_is_printed_once(done: tuple[Path, Any]) -> None:
    head = (done[0] / "study.md").read_text().partition("\n## Beside the paper\n")[0]
    assert "\n| success |" not in head, "the table of goals has it"
    assert "\n| turns |" in head and "*no zone, 2 scenarios: other goals*" in head


def said(data: dict[str, Any]) -> list[str]:
    """All sentences of an answer."""
    return [sentence for part in data["answer"] for sentence in part["sentences"]]


def test_two_models_are_studied_side_by_side_and_an_arm_without_lessons_is_left_out(tmp_path: Path) -> None:
    study = study_in(tmp_path, others=("scripted:honest", "scripted"), twin="scripted:peeks-50", size=LEAST)
    assert study.models == ("scripted", "scripted:honest")
    data = run_study(study, teacher=Players(without={"scripted:honest": "agents-ft-clean"}))
    assert [model["model"] for model in data["models"]] == ["scripted", "scripted:honest"]
    assert [bool(model["twin"]) for model in data["models"]] == [True, False], "a twin belongs to the first model"
    text = (tmp_path / "study.md").read_text()
    assert "## The models side by side" in text and "| scripted | scripted:honest |" in text
    assert (tmp_path / "report-2.html").is_file()
    assert {part["about"].partition(":")[0] for part in data["answer"]} == {"scripted"}
    assert any(part["about"].startswith("scripted:honest: Learning") for part in data["answer"])
    assert "agents-ft-clean was not taught: it has too few chats." in said(data)
    taught, other = data["models"]
    for model, found in ((taught, True), (other, False)):
        assert ("agents-ft-clean" in {row["condition"] for row in model["rows"]}) is found
        assert any("agents-ft-clean" in (row["first"], row["second"]) for row in model["arms"]) is found
        assert model["naturalness"] == []


@pytest.mark.parametrize("prefer", ["longer", "place"])
def test_naturalness_compares_conditions_of_several_runs(
    prefer: str, done: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge that prefers long conversations chooses by length; one that picks a place is warned of.

    The first one is interrupted by Ctrl-C: what was judged is kept, and nothing is asked twice.
    """
    folder = shutil.copytree(done[0], tmp_path / "study")
    monkeypatch.setattr(paper, "compared", COMPARED)
    study = study_in(folder, twin="scripted:peeks-100", judge="scripted:judge")
    asked: list[str] = []
    kept = 0
    if prefer == "longer":
        monkeypatch.setattr(evaluate, "open_judge", lambda *_: nullcontext(Listed(prefer, asked, 50)))
        with pytest.raises(KeyboardInterrupt):
            run_study(study, teacher=Players())
        kept = Store(folder / "study.duckdb").rows("SELECT count(*) AS n FROM judgements")[0]["n"]
        assert 0 < kept <= len(asked) == 50
    again: list[str] = []
    monkeypatch.setattr(evaluate, "open_judge", lambda *_: nullcontext(Listed(prefer, again, -1)))
    data = run_study(study, teacher=Players())
    model = data["models"][0]
    talks = 10 * (len(MODES) + 1) + 2 * SIZE.solvable
    assert len(again) == QUESTIONS * talks + 2 * 10 * len(JUDGED) - kept
    assert [(row["first"], row["second"]) for row in model["naturalness"]] == list(JUDGED)
    assert all(row["n"] == 10 for row in model["naturalness"]), "each scenario once"
    about, judge = model["judged"], "judge scripted:judge"
    assert (about["scenarios"], about["control"]) == (SIZE.solvable, 0.5 if prefer == "place" else 1)
    assert about["passes"] == (prefer == "longer" and not about["sentences"][-2].endswith("do not use them."))
    beside = (folder / "study.md").read_text().partition("## Beside the paper")[2].partition("### Naturalness")[0]
    assert (f"| here, {judge} |" in beside) == about["passes"]
    assert (about["sentences"][-1] == "So its scores are not shown.") != about["passes"]
    told = next(part["sentences"] for part in data["answer"] if part["about"] == "Naturalness")
    if prefer == "place":
        assert len(told) == 1 and "the judge scripted:judge picks a place" in told[0]
        assert all(f"{one} and {other}" in told[0] for one, other in JUDGED)
        return
    turns = {(row["family"], row["condition"]): row["turns"] for row in model["rows"] if row["task"] == EVERY}
    shorter = all(turns[family, "agents-ft"] < turns[family, "agents"] for family in FAMILIES.own)
    if shorter:
        assert next(row for row in model["naturalness"] if row["first"] == "agents-ft")["first_chosen"] < 0.5
    text = (folder / "study.md").read_text()
    assert "No person has judged these pairs." in text
    run_ids = model["runs"]
    assert f"agents-ft={run_ids['agents-ft']}:agents agents={run_ids['compare']}:agents" in text


def test_the_answers_of_people_come_onto_the_page(done: tuple[Path, Any], tmp_path: Path) -> None:
    folder = shutil.copytree(done[0], tmp_path / "study")
    store = Store(folder / "study.duckdb")
    runs = done[1]["models"][0]["runs"]
    chosen = selected(store, [f"{runs['agents-ft']}:agents", f"{runs['compare']}:agents"])
    items = [item for item in items_of(store, chosen, "pairs", "rater_01") if not item.attention]
    save_all(store, [answered(item, 1, origin="terminal", seconds=1.0, made_by="person") for item in items])
    data = run_study(whole_in(folder), teacher=Players())
    (line,) = [line for line in data["models"][0]["people"] if line.startswith("agents")]
    assert (
        line.startswith(("agents-ft over agents: ", "agents over agents-ft: ")) and "10 judgements of 10 items" in line
    )
    assert line in (folder / "study.md").read_text()


def test_finished_studies_stand_side_by_side(
    done: tuple[Path, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, other = done[0], shutil.copytree(done[0], tmp_path / "other")
    assert main(["compare", str(folder), str(other), "--json"]) == 0
    one, two = json.loads(capsys.readouterr().out)
    assert (one["study"], two["study"]) == (folder.name, "other") and one["success"] == two["success"]
    rows = {(row["family"], row["condition"]): row for row in done[1]["models"][0]["rows"] if row["task"] == EVERY}
    for cell in one["success"]:
        assert cell["value"] == rows[cell["family"], cell["about"]]["success_rate"]
    told = {(row["family"], row["first"], row["second"]): row["difference"] for row in done[1]["models"][0]["arms"]
            if row["task"] == EVERY and row["measure"] == "success_rate"}  # fmt: skip
    found = {(each["family"], each["about"]): each["value"] for each in one["differences"]}
    assert all(found[family, CAUSES[pair]] == value for (family, *two), value in told.items() if (pair := tuple(two)))
    assert main(["compare", str(folder), str(other)]) == 0
    text = capsys.readouterr().out
    assert f"{folder.name}: scripted" in text and "All played the same 10 scenarios with the same seeds." in text
    (other / "study.json").write_text('{"models": [{}]}')
    assert main(["compare", str(folder), str(other)]) == 3
    assert "no results of a study of this version (KeyError: 'rows')" in capsys.readouterr().err
    assert (folder / "tables" / "goals_that_the_text_proves.csv").is_file()


# ---- continuation --------------------------------------------------------------------------------------------------


def test_a_finished_study_is_found_again(done: tuple[Path, Any]) -> None:
    folder, data = done
    teacher = Players()
    again = run_study(whole_in(folder), teacher=teacher)
    assert json.dumps(again, default=str) == json.dumps(data, default=str)
    assert Store(folder / "study.duckdb").rows("SELECT count(*) AS n FROM runs") == [{"n": 3 + len(ARMS)}]
    assert teacher.taught_from == [data["models"][0]["runs"]["teach"]]


STAGES = ("compare", "scripted:peeks-100, constructed", "teach", *PLAYERS)


def test_a_study_continues_at_every_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in each stage in turn: the next call repeats no earlier stage; it ends as an unbroken study does."""
    interruptible(monkeypatch)
    monkeypatch.setattr(running, "_write_reports", lambda *_: [])
    whole, broken = (study_in(tmp_path / name, twin="scripted:peeks-100", size=LEAST) for name in ("whole", "broken"))
    unbroken = told(run_study(whole, teacher=Players()))
    store = Store(broken.folder / "study.duckdb")
    for number, stop in enumerate(STAGES, start=1):
        with pytest.raises(Interrupted, match="stopped"):
            run_study(broken, teacher=Players(), watch=watched(stop, 1))
        rows = store.rows("SELECT completed, episodes_planned AS planned FROM v_runs ORDER BY started_utc")
        assert len(rows) == number and 0 < rows[-1]["completed"] < rows[-1]["planned"]
        assert all(row["completed"] == row["planned"] for row in rows[:-1])
    data = run_study(broken, teacher=Players())
    assert len(store.rows("SELECT run_id FROM runs")) == len(STAGES)
    assert told(data) == unbroken


_halt = [False]


def interruptible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the runner see an interruption as soon as `_halt` is set."""
    _halt[0] = False

    @contextmanager
    def seen(_say: Any) -> Iterator[list[bool]]:
        yield _halt

    monkeypatch.setattr(runner, "stoppable", seen)


def watched(stop: str, after: int) -> Any:
    """A watch that asks for the interruption after some episodes of a stage."""

    class Stopper(Watcher):
        """Counts episodes."""

        def __init__(self, title: str) -> None:
            self.left = after if title == stop else -1

        def ended(self, episode: Any) -> None:  # noqa: ARG002 - only counted
            """Count down."""
            self.left -= 1
            _halt[0] = _halt[0] or self.left == 0

    @contextmanager
    def watch(title: str, _episodes: int) -> Iterator[Watcher]:
        _halt[0] = False
        try:
            yield Stopper(title)
        finally:
            _halt[0] = False

    return watch


def told(data: dict[str, Any]) -> Any:
    """The results of a study without the names of its runs."""
    model = data["models"][0]
    return [model["rows"], model["arms"], model["modes"], data["answer"]]
