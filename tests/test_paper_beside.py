"""The paper's numbers, and ours beside them."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from statistics import fmean

import pytest

from localsim.annotation.items import PairItem, items_of, selected
from localsim.annotation.records import answered, save_all
from localsim.conversation.episode import Sampling, Score
from localsim.evaluators import evaluate
from localsim.evaluators.choosing import Naturalness
from localsim.evaluators.judge import DIMENSIONS
from localsim.reports import measures
from localsim.reports.compose import beside
from localsim.reports.paper import compared, figures, markdown, published
from localsim.reports.paper.beside import column_names, natural_pairs
from localsim.reports.paper.published import CONDITIONS, PANELS, ROWS
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.runs.scheduler import Watcher
from localsim.store.conditions import Condition, labelled
from localsim.store.database import Store
from localsim.store.records import score_records
from tests.conftest import generated
from tests.test_judge import preferring

# ---- the numbers ---------------------------------------------------------------------------------------------------


def test_the_mean_of_the_seven_dimensions_is_the_papers_average() -> None:
    """A check of the transcription: the table prints the mean beside its parts."""
    for place, model, part, condition, numbers in published._TABLES:
        assert fmean(numbers[:7]) == pytest.approx(numbers[7], abs=0.011), (place, model, part, condition)


def test_figures_and_tables_say_the_same() -> None:
    rows = {(row.panel, row.what, row.by): row for row in ROWS if row.place != "text"}
    for model in (published.GPT, published.MIXTRAL):
        assert rows["goal", "overall", model].values == rows["dimensions", "goal", model].values
    for part in ("cooperative", "competitive"):
        table = rows["dimensions", f"goal, {part}", published.GPT]
        figure = rows["goal", part, published.GPT]
        assert all(figure.values[name] == value for name, value in table.values.items())
        assert table.how["agents-ft"] == "rebuilt" and "script" not in table.how


def test_every_row_has_a_panel_a_place_and_known_conditions() -> None:
    panels = {panel.key for panel in PANELS}
    for row in ROWS:
        assert row.panel in panels and row.place and set(row.values) | set(row.how) <= set(CONDITIONS)
        assert row.values or row.remark, "a row without numbers says what the paper says"
    places = " ".join(row.place for row in ROWS)
    assert all(
        name in places for name in ("Table 1", "Figures 2 and 5", "Figure 4", "Figure 6", "Figure 10", "Figure 11")
    )
    assert "Figure 12" in places


# ---- ours beside them ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, list[Condition]]:
    """Three modes and an arm of agents, on both kinds of task, with raters' and judges' choices."""
    store = Store(tmp_path_factory.mktemp("paper") / "d.duckdb")
    scenarios = tuple(generated(family, seed) for family in ("mutual_friends", "craigslist") for seed in (1, 2, 3))

    def played(model: str, *modes: str) -> str:
        plan = Plan(scenarios, modes, model, episodes=2, sampling=Sampling(temperature=0.7))  # type: ignore[arg-type]
        return runner.start(plan, store, Watcher(), lambda _: None, leaks=False).run_id

    first, second = played("scripted", "script", "agents", "mindreaders"), played("scripted:guesser", "agents")
    return store, labelled(store, [first, f"agents-ft={second}:agents"])


def test_ours_stand_beside_the_papers(study: tuple[Store, list[Condition]]) -> None:
    store, conditions = study
    data = compared(store, conditions)
    panels = {shown.panel.key: shown for shown in data.panels}
    assert set(data.conditions) == set(CONDITIONS)
    (goal,) = (line for line in panels["goal"].lines if line.ours and line.what == "competitive")
    assert set(goal.values) == set(CONDITIONS) and {"scale", "judge", "model"} <= set(panels["goal"].differs(goal))
    rows = store.rows(
        "SELECT avg(value) AS mean FROM v_scores WHERE name = 'success' AND family = 'craigslist' AND run_id = ?",
        [conditions[-1].run_id],
    )
    assert goal.values["agents-ft"].value == pytest.approx(rows[0]["mean"])
    (overall,) = (line for line in panels["goal"].lines if line.ours and line.what == "overall")
    assert overall.values["agents"].n == 12, "both families"
    assert sum(panels["histogram"].counts["agents"]) <= 6
    assert not {"temperature", "turn limit"} & data.differences.keys(), "0.7 and 20 turns here and there"


def test_the_difference_in_training_is_named_only_beside_taught_agents(study: tuple[Store, list[Condition]]) -> None:
    store, conditions = study
    assert "training" in compared(store, conditions).differences
    data = compared(store, [each for each in conditions if each.label != "agents-ft"])
    assert "training" not in data.differences
    assert not any("training" in shown.differs(line) for shown in data.panels for line in shown.lines)


@pytest.mark.parametrize(
    ("layout", "asked"), [("4", "short sentences are asked for"), ("4-free", "no length is asked")]
)
def test_the_length_that_prompts_ask_for_is_told(layout: str, asked: str, tmp_path: Path) -> None:
    plan = Plan((generated("craigslist", 1),), ("agents",), "scripted", layouts={"scripted": layout})
    store = Store(tmp_path / "d.duckdb")
    run_id = runner.start(plan, store, Watcher(), lambda _: None, leaks=False).run_id
    assert asked in compared(store, labelled(store, [run_id])).differences["length"][1]


def test_a_number_that_our_measures_declare_is_read_from_them() -> None:
    for key, panel in (("words_per_turn", "words"), ("first_mention", "first_mention"), ("deal_rate", "deals")):
        (row,) = (row for row in ROWS if (row.panel, row.by) == (panel, published.GPT) and "text" in row.place)
        assert {name: each.value for name, each in row.values.items()} == measures.published()[key]
        assert list(row.values) == sorted(row.values, key=CONDITIONS.index)


def test_tables_name_sources_and_differences(study: tuple[Store, list[Condition]]) -> None:
    text = "\n".join(markdown(compared(*study)))
    assert "| paper, GPT-3.5 | competitive | 2.73 | 3.18 | 7.75 | 7.60‡ |" in text
    assert "73%†" in text and "| here, rules | overall |" in text and "| turn limit |" not in text
    assert "| differs in | paper | here |" in text and "GPT-4 at temperature 0" in text
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.endswith("|")


def test_figures_have_every_condition(study: tuple[Store, list[Condition]], tmp_path: Path) -> None:
    files = figures(compared(*study), tmp_path, ("svg",))
    names = {file.stem for file in files}
    assert {"paper_goal", "paper_words", "paper_first_mention", "paper_deals", "paper_histogram"} <= names
    for file in files:
        assert "agents-ft" in file.read_text(), file.name
    again = figures(compared(*study), tmp_path / "b", ("svg",))
    assert [file.read_bytes() for file in files] == [file.read_bytes() for file in again]


def test_choices_of_raters_and_judges_are_rows(
    study: tuple[Store, list[Condition]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, conditions = study
    store = Store(tmp_path / "d.duckdb")
    store.path.write_bytes(original.path.read_bytes())
    taught, agents = conditions[-1], next(each for each in conditions if each.name == "agents")
    chosen = selected(store, [f"{taught.run_id}:agents", f"{agents.run_id}:agents"])
    items = items_of(store, chosen, "pairs", "ann")

    def prefers(item: PairItem) -> int:
        return item.expected or (1 if item.episode.run_id == taught.run_id else 2)

    save_all(store, [answered(item, prefers(item), origin="browser") for item in items if isinstance(item, PairItem)])
    monkeypatch.setattr(evaluate, "open_judge", lambda *_: nullcontext(preferring("length")))
    runs = [taught.run_id, agents.run_id]
    evaluate.score_runs(
        store, runs, [Naturalness("m", natural_pairs(conditions, column_names(conditions)))], lambda _: None
    )
    episode = store.rows("SELECT episode_id FROM episodes WHERE run_id = ? ORDER BY ALL", [taught.run_id])[0][
        "episode_id"
    ]
    scores = [
        Score(name, 3.0 if low <= 3 <= high else -1.0, agent="Ann") for name, (low, high, _) in DIMENSIONS.items()
    ]
    store.take_in(score_records(episode, "judge.m", "1", scores))
    panels = {shown.panel.key: shown for shown in compared(store, conditions).panels}
    by_raters = next(line for line in panels["naturalness"].lines if line.by == "here, raters")
    assert (by_raters.what, by_raters.values["agents-ft"].value) == ("agents-ft over agents", 1)
    assert "1 person" in by_raters.remark and "12 judgements on 6 scenarios" in by_raters.remark
    judged = {key: [line for line in each.lines if line.by == "here, judge m"] for key, each in panels.items()}
    pairs = {"script over agents", "script over agents-ft", "agents-ft over agents"}
    assert pairs <= {line.what for line in judged["naturalness"]}
    assert "goal" in {line.what for line in judged["dimensions"]}
    assert any("scale" not in panels["goal"].differs(line) for line in judged["goal"])
    names = {file.stem for file in figures(compared(store, conditions), tmp_path / "f", ("svg",))}
    assert {"paper_naturalness", "paper_dimensions"} <= names


def test_columns_have_names_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = Condition("a", "agents", "m"), Condition("b", "agents", "m")
    assert set(column_names([one, other]).values()) == {"a:agents", "b:agents"}
    assert column_names([one])[one] == "agents"
    granted = Condition("a", "agents", "m", "goal")
    assert column_names([one, granted])[granted] == "agents+goal"
    monkeypatch.setattr(beside, "constructed", lambda model: "taught to peek" if model == "twin" else "")
    twin = Condition("a", "script", "twin")
    assert column_names([twin])[twin] == "script (constructed)", "a control is never in a column of the paper"


def test_no_conditions_are_no_rows_of_ours(study: tuple[Store, list[Condition]]) -> None:
    assert not any(line.ours for shown in compared(study[0], []).panels for line in shown.lines)
