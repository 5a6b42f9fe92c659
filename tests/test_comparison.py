"""Paired comparisons, and the simulation card."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel

from localsim import stats
from localsim.errors import InvalidInput
from localsim.reports.card import HUMAN, card, markdown, missing, read_human, transparency
from localsim.reports.comparison import compare
from localsim.reports.plots import figures
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.store.database import Store
from tests.conftest import Quiet, generated


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str]:
    store = Store(tmp_path_factory.mktemp("compare") / "d.duckdb")
    scenarios = tuple(generated("mutual_friends", seed) for seed in range(1, 5))
    plan = Plan(scenarios, ("script", "agents"), "scripted:guesser", episodes=3)
    return store, runner.start(plan, store, Quiet(), print).run_id


# ---- statistics ----------------------------------------------------------------------------------------------------


def test_the_t_test_is_the_paired_one() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=20), rng.normal(0.5, size=20)
    found = stats.paired({str(number): [value] for number, value in enumerate(other - one)})
    wanted = ttest_rel(other, one)
    assert found is not None and found.n == found.scenarios == 20
    assert found.t == pytest.approx(wanted.statistic) and found.p == pytest.approx(wanted.pvalue)
    assert found.low is not None and found.high is not None and found.low < found.difference < found.high


def test_pairs_of_a_scenario_are_drawn_together() -> None:
    """Ten equal pairs in each of four scenarios say no more than four pairs."""
    few = stats.paired({name: [value] for name, value in zip("abcd", (1.0, 2.0, 3.0, 4.0), strict=True)})
    many = stats.paired({name: [value] * 10 for name, value in zip("abcd", (1.0, 2.0, 3.0, 4.0), strict=True)})
    assert few is not None and many is not None
    assert (few.low, few.high) == (many.low, many.high)


def test_what_does_not_vary_has_no_test() -> None:
    found = stats.paired({"a": [0.0, 0.0], "b": [0.0]})
    assert found is not None and (found.p, found.effect, found.needed) == (None, None, None)
    assert stats.paired({}) is None


@pytest.mark.parametrize(("effect", "pairs"), [(0.5, 34), (0.2, 199), (0.8, 15)])
def test_pairs_needed_as_in_cohens_tables(effect: float, pairs: int) -> None:
    assert stats.pairs_needed(effect) == pairs
    assert stats.pairs_needed(-effect) == pairs


def test_holm() -> None:
    assert stats.holm([0.01, None, 0.04, 0.03]) == pytest.approx([0.03, None, 0.06, 0.06])
    assert stats.holm([0.6, 0.7]) == [1.0, 1.0]


# ---- compare -------------------------------------------------------------------------------------------------------


def test_modes_are_paired_by_scenario_and_seed(played: tuple[Store, str]) -> None:
    rows = compare(*played)
    turns = next(row for row in rows if row["measure"] == "turns")
    assert (turns["first"], turns["second"], turns["n"], turns["scenarios"]) == ("script", "agents", 12, 4)
    store, run_id = played
    means = store.rows(
        "SELECT mode, avg(value) AS m FROM v_scores WHERE name = 'turns' AND run_id = ? GROUP BY 1 ORDER BY 1", [run_id]
    )
    assert turns["difference"] == pytest.approx(means[0]["m"] - means[1]["m"])
    assert all(row["p_holm"] is None or row["p_holm"] >= row["p"] for row in rows)


def test_two_runs_are_compared_mode_by_mode(played: tuple[Store, str]) -> None:
    store, first = played
    scenarios = tuple(generated("mutual_friends", seed) for seed in range(1, 5))
    second = runner.start(
        Plan(scenarios, ("script", "agents"), "scripted:friends", episodes=3), store, Quiet(), print
    ).run_id
    rows = compare(store, first, second)
    assert {row["first"].split()[1] for row in rows} == {"script", "agents"}
    assert all(row["first"].split()[1] == row["second"].split()[1] for row in rows)


# ---- figures -------------------------------------------------------------------------------------------------------


def test_figures_are_written_and_repeat(played: tuple[Store, str], tmp_path: Path) -> None:
    first, again = figures(*played, tmp_path / "a"), figures(*played, tmp_path / "b")
    names = {file.name for file in first}
    wanted = {"success_rate.svg", "named_curve.png", "words_per_turn.svg"}
    assert {f"mutual_friends_{name}" for name in wanted} <= names
    for one, other in zip(first, again, strict=True):
        if one.suffix == ".svg":
            assert one.read_bytes() == other.read_bytes() and b"script" in one.read_bytes()
        else:
            assert one.read_bytes().startswith(b"\x89PNG")


# ---- card ----------------------------------------------------------------------------------------------------------


def test_the_card_says_what_was_run(played: tuple[Store, str]) -> None:
    found = card(*played)
    details = found["simulation_details"]
    assert details["parties"] == [2] and details["domains"] == ["mutual_friends"]
    assert details["transparency_index"] == {"script": 1.0, "agents": 0.0}
    assert "rule-based" in next(iter(details["agent_types"].values()))
    assert "success" in markdown(found) and "not stated" in markdown(found)
    json.dumps(found)


def test_the_index_is_of_what_observe_shows() -> None:
    scenario = generated("craigslist").scenario
    assert [transparency([scenario], mode) for mode in ("script", "agents", "mindreaders")] == [1.0, 0.0, 1.0]


def test_what_people_must_say_is_named_and_taken(played: tuple[Store, str], tmp_path: Path) -> None:
    assert len(missing(card(*played))) == len(HUMAN)
    file = tmp_path / "card.yaml"
    file.write_text("\n".join(f"{name}: said" for name in HUMAN))
    full = card(*played, read_human(file))
    assert missing(full) == [] and "not stated" not in markdown(full)
    file.write_text("purpose: x")
    with pytest.raises(InvalidInput, match="purpose"):
        read_human(file)
