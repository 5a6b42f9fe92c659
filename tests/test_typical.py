"""The conversations that are shown: chosen by the rule that is printed beside them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from localsim.__main__ import run as command
from localsim.conversation.episode import MODES
from localsim.reports.compose.alone import report
from localsim.reports.evidence.turns import RULE, examples, typical
from localsim.reports.render.html import render
from localsim.reports.validity.head import unjudged
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.store.conditions import conditions_of
from localsim.store.database import Store
from localsim.store.episodes import load_episode
from tests.conftest import Quiet, generated

FAMILIES = ("mutual_friends", "craigslist")


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str]:
    """Both families, seven scenarios each, by a player that peeks at times: lengths and conditions differ."""
    store = Store(tmp_path_factory.mktemp("typical") / "runs.duckdb")
    scenarios = tuple(generated(family, seed) for family in FAMILIES for seed in range(84_000, 84_007))
    return store, start(Plan(scenarios, MODES, "scripted:peeks-25", seed=2), store, Quiet(), lambda _: None).run_id


def distance_of(store: Store, run_id: str, family: str, scenario: str) -> float:
    """The distance of a scenario's turns from the medians of its conditions."""
    far = 0.0
    for mode in MODES:
        rows = store.rows(
            "SELECT scenario_id, turns FROM v_episodes WHERE run_id = ? AND family = ? AND mode = ?",
            [run_id, family, mode],
        )
        turns = {row["scenario_id"]: row["turns"] for row in rows}
        far += abs(turns[scenario] - median(turns.values()))
    return far


def test_the_nearest_to_the_medians_is_shown_in_every_condition(simulated: tuple[Store, str]) -> None:
    store, run_id = simulated
    found = typical(store, conditions_of(store, run_id))
    assert list(found) == list(FAMILIES), "in the order of a report"
    for family, ids in found.items():
        shown = [load_episode(store, each) for each in ids]
        assert [each.mode for each in shown] == ["script", "agents", "mindreaders"]
        assert len({(each.scenario.id, each.seed) for each in shown}) == 1
        scenarios = [f"{family}_{seed:02d}" for seed in range(84_000, 84_007)]
        least = min(distance_of(store, run_id, family, scenario) for scenario in scenarios)
        assert distance_of(store, run_id, family, shown[0].scenario.id) == least


def test_one_condition_has_its_own_typical_conversation(simulated: tuple[Store, str]) -> None:
    store, run_id = simulated
    for condition in conditions_of(store, run_id):
        for family, ids in typical(store, [condition]).items():
            rows = store.rows(
                "SELECT episode_id, turns, seed FROM v_episodes WHERE run_id = ? AND family = ? AND mode = ?",
                [run_id, family, condition.mode],
            )
            middle = median(row["turns"] for row in rows)
            nearest = min(rows, key=lambda row: (abs(row["turns"] - middle), row["seed"]))
            assert ids == [nearest["episode_id"]]


def test_failed_episodes_are_not_shown(simulated: tuple[Store, str], tmp_path: Path) -> None:
    store, run_id = simulated
    copy = Store(tmp_path / "copy.duckdb")
    copy.path.write_bytes(store.path.read_bytes())
    conditions = conditions_of(copy, run_id)
    shown = typical(copy, conditions)["craigslist"]
    with copy.writing() as connection:
        connection.execute("UPDATE episodes SET status = 'failed' WHERE episode_id = ?", [shown[0]])
    assert shown[0] not in typical(copy, conditions)["craigslist"]
    assert len(typical(copy, conditions)["craigslist"]) == 3, "another scenario was completed in all conditions"


def test_the_page_and_the_terminal_print_the_rule(
    simulated: tuple[Store, str], capsys: pytest.CaptureFixture[str]
) -> None:
    store, run_id = simulated
    shown = examples(store, run_id)
    html = render(replace(report(store, run_id), talks=shown))
    assert html.count(RULE) == len(FAMILIES) == len(shown)
    assert command(["show", "--typical", f"{run_id}:agents", "--db", str(store.path)]) == 0
    printed = capsys.readouterr().out
    assert printed.count(RULE) == 1 and printed.count("episode ") >= len(FAMILIES)
    for ids in typical(store, [each for each in conditions_of(store, run_id) if each.name == "agents"]).values():
        assert ids[0] in printed
    assert command(["show", "--typical", f"{run_id}:nothing", "--db", str(store.path)]) == 3
    assert "no condition 'nothing'" in capsys.readouterr().err


def test_a_report_marks_hits_draws_below_0_and_says_what_is_equal(tmp_path: Path) -> None:
    store = Store(tmp_path / "hits.duckdb")
    scenarios = tuple(generated(family, seed) for family in FAMILIES for seed in range(3, 13))
    plan = Plan(scenarios, MODES, "scripted:omniscient", seed=1)
    run_id = start(plan, store, Quiet(), lambda _: None).run_id
    data = report(store, run_id)
    rows = {(row["family"], row["mode"]): row for row in data.as_json()["comparison"]}
    friends, bargains = rows["mutual_friends", "script"], rows["craigslist", "script"]
    assert (friends["turns"], friends["turns_alike"], friends["turns_low"]) == (3, 10, None)
    assert "turns_alike" not in rows["mutual_friends", "agents"]
    assert friends["peeking_n"] == 10 and 0 < bargains["peeking_n"] < 10
    (line,) = unjudged(data, "craigslist")
    assert f"Peeking was judged in {bargains['peeking_n']} of 10 conversations of script, " in line
    assert line.endswith("in more than half of all cases.") and not unjudged(data, "mutual_friends")
    page = render(replace(data, talks=examples(store, run_id)))
    assert page.count('<span class="flag"><span aria-hidden="true">★</span> untold hit</span>') >= 3
    assert "untold hit: the right answer, named before" in page and "<small>in all 10</small>" in page
    assert rows["mutual_friends", "agents"]["peeking_low"] < 0 and ">−25%</text>" in page
