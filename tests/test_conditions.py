"""Conditions: their names on a command line, and comparisons, figures and judgements across runs and models."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localsim.__main__ import run as command
from localsim.annotation.items import items_of, selected
from localsim.errors import InvalidInput
from localsim.reports.card import card
from localsim.reports.comparison import compare_chosen
from localsim.reports.compose.alone import report
from localsim.reports.compose.beside import with_conditions
from localsim.reports.figures.plots import figures
from localsim.reports.render.html import render
from localsim.reports.render.markdown import as_markdown
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.runs.scheduler import Watcher
from localsim.store import conditions
from localsim.store.conditions import Condition, choices, chosen, conditions_of, labelled, names_of, pairs_of
from localsim.store.database import Store
from tests.conftest import generated, simulated

# ---- names ---------------------------------------------------------------------------------------------------------


def test_a_reference_names_conditions(two_runs: tuple[Store, str, str]) -> None:
    store, first, second = two_runs
    whole = chosen(store, first)
    assert whole.whole and [each.name for each in whole.conditions] == ["script", "agents", "mindreaders"]
    one = chosen(store, "@last:agents")
    assert not one.whole and one.conditions == (Condition(second, "agents", "scripted:guesser"),)
    assert chosen(store, f"{second}:agents:guess").conditions == one.conditions, "a part of the model's name is enough"
    assert chosen(store, f"{second}:agents:scripted:guesser").conditions == one.conditions
    (named,) = chosen(store, "taught=@last:agents").conditions
    assert (named.label, named) == ("taught", one.conditions[0])


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("@last:agent", "no condition 'agent'"),
        ("@last:script", "its conditions are agents"),
        ("@last:agents:nobody", "no condition"),
        ("x=@last-1", "would mean 3 conditions"),
        ("nowhere:agents", "nowhere"),
    ],
)
def test_an_unknown_condition_is_one_clear_error(two_runs: tuple[Store, str, str], reference: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        chosen(two_runs[0], reference)
    assert words in f"{caught.value.message} {caught.value.hint}"


MODELS = st.one_of(
    st.sampled_from(["2", "27", "2:7b", ":2", "facts:2", "qwen2.5", "scripted:friends", "a:b:3"]),
    st.text("ab27:+,", min_size=1, max_size=6),
)
GRANTS = st.sampled_from(["", "facts", "facts:2", "facts:27", "goal,facts", "Ana=facts", "facts:2+decoys", "1=facts:7"])


def _store_with(known: list[Condition], monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(conditions, "conditions_of", lambda *_: known)
    monkeypatch.setattr(Store, "run_id", lambda _, run: run)
    return Store(Path("unread.duckdb"))


@given(st.lists(st.builds(Condition, st.just("r"), st.just("agents"), MODELS, GRANTS), min_size=1, max_size=6))
def test_a_condition_is_found_by_its_spelling_whatever_the_model_is_called(known: list[Condition]) -> None:
    known = list(dict.fromkeys(known))
    with pytest.MonkeyPatch.context() as monkeypatch:
        store = _store_with(known, monkeypatch)
        for one in known:
            assert chosen(store, one.spelled()).conditions == (one,)
            assert chosen(store, f"x={one.spelled()}").conditions == (one,)
            named = chosen(store, f"r:{one.name}").conditions
            assert set(named) == {each for each in known if each.name == one.name}


@pytest.mark.parametrize("model", ["qwen2.5", "2", "llama3:8b"])
def test_the_number_of_facts_is_not_searched_in_the_name_of_a_model(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Condition("r", "agents", model, "facts")
    store = _store_with([one], monkeypatch)
    with pytest.raises(InvalidInput, match=r"no condition 'agents\+facts:2'") as caught:
        chosen(store, "r:agents+facts:2")
    assert caught.value.hint == "did you mean agents+facts?"
    part = "2" if "2" in model else "8b"
    assert chosen(store, f"r:agents+facts::{part}").conditions == (one,)


def test_grants_can_be_named_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Condition("r", "agents", "m", "goal,facts:2+decoys")
    store = _store_with([one, Condition("r", "agents", "m")], monkeypatch)
    assert chosen(store, "r:agents+decoys+facts:2,goal:m").conditions == (one,)


def test_a_run_without_episodes_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    store = _store_with([], monkeypatch)
    for reference in ("r", "r:agents", "x=r:agents"):
        with pytest.raises(InvalidInput) as caught:
            chosen(store, reference)
        error = caught.value
        assert (error.where, error.message) == (reference, "run r has no episodes yet, so it has no conditions")
        assert error.hint == "localsim resume r simulates them"


RUNS, NAMES = st.sampled_from(["a", "b"]), st.sampled_from(["", "goal", "facts:2"])
ANY = st.builds(Condition, RUNS, st.sampled_from(["agents", "script"]), st.sampled_from(["m", "n"]), NAMES)


@given(st.lists(ANY, min_size=1, max_size=8, unique=True))
def test_names_tell_conditions_apart(conditions: list[Condition]) -> None:
    names = names_of(conditions)
    assert len(set(names.values())) == len(conditions)
    if len(conditions) == 1:
        assert names[conditions[0]] == conditions[0].name, "nothing more than is needed"


def test_one_name_for_two_conditions_is_refused(two_runs: tuple[Store, str, str]) -> None:
    store, first, second = two_runs
    with pytest.raises(InvalidInput, match="given twice"):
        choices(store, [f"taught={first}:agents", f"taught={second}:agents"])


def test_a_difference_between_runs_has_no_contrast(two_runs: tuple[Store, str, str]) -> None:
    """Two runs can differ in more than the information that a contrast is about."""
    store, first, second = two_runs
    within = compare_chosen(store, choices(store, [f"{first}:agents", f"{first}:mindreaders"]))
    across = compare_chosen(store, choices(store, [f"{second}:agents", f"{first}:mindreaders"]))
    assert {row.contrast for row in within} == {"information"} and {row.contrast for row in across} == {""}


def test_a_condition_with_grants_is_one_of_its_own(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["run", "mutual_friends_01", "-m", "scripted", "-n", "2"]) == 0
    assert command(["run", "mutual_friends_01", "-m", "scripted", "-n", "2", "--see", "goal,facts:2"]) == 0
    capsys.readouterr()
    (granted,) = chosen(store, "@last").conditions
    assert granted.name == "agents+goal,facts:2"
    assert chosen(store, "@last:agents+goal,facts:2").conditions == (granted,)
    with pytest.raises(InvalidInput, match="no condition 'agents'"):
        chosen(store, "@last:agents")
    assert command(["compare", "@last-1:agents", "@last:agents+goal,facts:2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {row["second"].split(":", 1)[1] for row in found} == {"agents+goal,facts:2"}
    assert not any(row["contrast"] for row in found), "grants are none of the contrasts between modes"
    (row,) = report(store, granted.run_id).as_json()["comparison"]
    assert (row["mode"], row["see"], row["condition"]) == ("agents", "goal,facts:2", granted.name)


def test_models_of_one_run_are_conditions(store: Store) -> None:
    """No command makes such a run; a database may hold one."""
    run_id = simulated(store, "scripted:friends", ("agents",), range(1, 3))
    with store.writing() as connection:
        connection.execute("UPDATE episodes SET model = 'b' WHERE episode_index = 1")
        connection.execute("UPDATE episodes SET episode_index = 0, seed = 1")
    pair = choices(store, [f"{run_id}:agents:friends", f"{run_id}:agents:b"])
    assert list(names_of(each for choice in pair for each in choice.conditions).values()) == [
        "agents:scripted:friends",
        "agents:b",
    ]
    compared = compare_chosen(store, pair)
    assert {(row.first, row.second) for row in compared} == {("scripted:friends", "b")}
    assert {row.test.n for row in compared if row.measure.key == "turns"} == {2}
    assert len({row["model"] for row in report(store, run_id).as_json()["comparison"]}) == 2
    assert (
        len(items_of(store, selected(store, [f"{run_id}:agents:friends", f"{run_id}:agents:b"]), "pairs", "ann")) >= 2
    )


# ---- comparisons ---------------------------------------------------------------------------------------------------


def test_any_two_conditions_are_paired(two_runs: tuple[Store, str, str]) -> None:
    store, first, second = two_runs
    found = compare_chosen(store, choices(store, [f"{first}:mindreaders", f"{second}:agents"]))
    turns = next(row for row in found if row.measure.key == "turns")
    assert (turns.first, turns.second) == (f"{first}:mindreaders", f"{second}:agents")
    assert (turns.test.scenarios, turns.test.n, turns.unpaired) == (3, 6, [1, 1])
    backwards = compare_chosen(store, choices(store, [f"{second}:agents", f"{first}:mindreaders"]))
    mirror = next(row for row in backwards if row.measure.key == "turns")
    assert mirror.test.difference == pytest.approx(-turns.test.difference) and mirror.test.p == turns.test.p


def test_which_pairs_references_make(two_runs: tuple[Store, str, str]) -> None:
    store, first, second = two_runs

    def pairs(*references: str) -> int:
        return len(list(pairs_of(choices(store, references))))

    assert pairs(first) == 3 and pairs(first, second) == 1, "a run alone; two runs in the mode that both have"
    assert (
        pairs(f"{first}:agents", second) == 1 and pairs(f"{first}:script", f"{first}:agents", f"{second}:agents") == 3
    )
    assert pairs(first, f"{second}:agents") == 3 and pairs(f"{first}:agents", f"{first}:agents") == 0


def test_compare_says_what_is_left_out(own_runs: tuple[Store, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    store, first, second = own_runs
    assert command(["compare", f"before={first}:agents", f"taught={second}:agents"]) == 0
    out = capsys.readouterr().out
    assert "taught - before" in out and "Left out, without a pair (mutual_friends): 1 scenarios of before" in out
    other = simulated(store, "scripted", ("agents",), seed=9)
    assert command(["compare", f"{first}:agents", f"{other}:agents"]) == 3
    out = capsys.readouterr().out
    assert "nothing to compare" in out and f"4 scenarios of {first}:agents and 4 of {other}:agents" in out
    assert command(["compare", f"{first}:nothing"]) == 3
    assert "Traceback" not in capsys.readouterr().err


# ---- figures and reports -------------------------------------------------------------------------------------------


def test_figures_take_conditions(two_runs: tuple[Store, str, str], tmp_path: Path) -> None:
    store, first, second = two_runs
    files = figures(store, first, tmp_path, ("svg",), conditions=labelled(store, [first, f"taught={second}:agents"]))
    bars = (tmp_path / "mutual_friends_success_rate.svg").read_text()
    curve = (tmp_path / "mutual_friends_named_curve.svg").read_text()
    assert all(name in text for name in ("script", "mindreaders", "taught") for text in (bars, curve)) and files
    only = figures(
        store, first, tmp_path / "b", ("svg",), conditions=labelled(store, [f"{first}:agents", "@last:agents"])
    )
    text = (tmp_path / "b" / "mutual_friends_success_rate.svg").read_text()
    assert only and "scripted:guesser" in text and "mindreaders" not in text


def test_the_report_shows_conditions_beside_its_modes(two_runs: tuple[Store, str, str]) -> None:
    store, first, second = two_runs
    data = with_conditions(store, report(store, first), labelled(store, [f"agents-ft={second}:agents"]))
    assert [row.condition for row in data.comparison] == ["script", "agents", "mindreaders", "agents-ft"]
    assert [row.twin for row in data.comparison] == [0, 0, 0, 1]
    assert any("3 of its 4 scenarios" in line for line in data.warnings)
    data = replace(data, card=card(store, data))
    page, text = render(data), as_markdown(data)
    assert "agents-ft" in page
    assert 'class="bar agents twin t1"' in page
    assert "agents-ft scripted:guesser |" in text
    curve = next(each for each in data.curves if each.name == "named")
    assert [series.name for series in curve.series] == ["script", "agents", "mindreaders", "agents-ft"]


def test_a_run_without_the_family_cannot_stand_beside(store: Store) -> None:
    first = simulated(store, "scripted", ("agents",), range(1, 2))
    other = Plan((generated("craigslist"),), ("agents",), "scripted")
    second = runner.start(other, store, Watcher(), lambda _: None, leaks=False).run_id
    with pytest.raises(InvalidInput, match="has no family of run"):
        with_conditions(store, report(store, first), conditions_of(store, second))
