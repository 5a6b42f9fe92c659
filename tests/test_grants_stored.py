"""Grants in plans, the database, reports, pages and commands; the audit and the leak detector on stored runs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from localsim.__main__ import run as main
from localsim.cli import cli
from localsim.conversation import modes, visibility
from localsim.conversation.episode import Observation, Subject
from localsim.conversation.grants import NOTHING, Grant, Grants, parse
from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.conversation.visibility import observe
from localsim.errors import InvalidInput
from localsim.evaluators.leaks import Leaks
from localsim.families import FAMILIES
from localsim.leakage.detector import LeakageDetector
from localsim.reports import audit
from localsim.reports.card import card
from localsim.reports.compose.alone import report
from localsim.runs import runner
from localsim.runs.plan import Plan, command_of
from localsim.runs.runner import start
from localsim.runs.scripted import _no_embedding
from localsim.store.database import Store
from localsim.store.queries.runs import run_row
from tests.conftest import Quiet, generated, spec_of
from tests.test_grants import BARGAIN, FRIENDS, LOADED, some_grants
from tests.web_server import client_of

# ---- plans, database, commands -------------------------------------------------------------------------------------


@given(st.lists(some_grants(st.sampled_from(["Ana", "Bo", "2"])).map(lambda grants: grants.text or "none"), max_size=4))
@settings(max_examples=50, deadline=None)
def test_a_plan_has_one_condition_for_each_grant(texts: list[str]) -> None:
    plan = Plan((LOADED[0],), ("script", "agents"), "scripted", see=texts)
    specs = plan.specs()
    assert [spec.grants for spec in specs if spec.mode == "script"] == [NOTHING]
    agents = [spec for spec in specs if spec.mode == "agents"]
    wanted = list(dict.fromkeys(parse(text) for text in texts)) or [NOTHING]
    assert [spec.grants for spec in agents] == wanted
    assert len({spec.hash for spec in specs}) == len(specs)
    assert ("see" in json.loads(plan.as_json())) == any(wanted)
    line = command_of(json.loads(plan.as_json()), [])
    assert line.count("--see ") == len(plan.see)


def test_a_hash_changes_only_if_something_is_granted() -> None:
    usual = spec_of(LOADED[0])
    assert replace(usual, grants=parse("none")).hash == usual.hash
    assert replace(usual, grants=parse("decoys")).hash != usual.hash
    assert replace(usual, grants=parse("goal")).hash != replace(usual, grants=parse("goal+announced")).hash


def test_grants_to_an_agent_concern_the_scenarios_that_have_it() -> None:
    plan = Plan((LOADED[0], FRIENDS), ("agents",), "scripted", see=("none", "Ana=goal", "1=facts"))
    found = {(spec.scenario.id, spec.grants.text) for spec in plan.specs()}
    other = FRIENDS.scenario.id
    assert found == {("talk", ""), ("talk", "Ana=goal"), ("talk", "1=facts"), (other, ""), (other, "1=facts")}


@pytest.mark.parametrize(
    ("modes_", "see", "said"),
    [
        (("agents",), ("Anna=goal",), "did you mean Ana?"),
        (("agents",), ("3=goal",), "1 to 2 in their order"),
        (("script", "mindreaders"), ("goal",), "add --mode agents"),
    ],
)
def test_a_plan_refuses_grants_that_nobody_has(modes_: Any, see: Any, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Plan((LOADED[0],), modes_, "scripted", see=see)
    assert said in str(caught.value.hint)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str]:
    """A run of two scenarios in modes and conditions."""
    store = Store(tmp_path_factory.mktemp("grants") / "grants.duckdb")
    see = ("none", "goal,facts:2", "1=all+announced", "decoys")
    plan = Plan((FRIENDS, BARGAIN), ("script", "iterative", "agents"), "scripted:omniscient", episodes=2, see=see)
    return store, start(plan, store, Quiet(), lambda _: None).run_id


def test_grants_are_stored_and_shown_as_conditions(made: tuple[Store, str]) -> None:
    store, run_id = made
    rows = store.rows("SELECT DISTINCT mode, see FROM v_episodes ORDER BY ALL")
    assert [(row["mode"], row["see"]) for row in rows] == [
        ("agents", ""),
        ("agents", "1=all+announced"),
        ("agents", "decoys"),
        ("agents", "goal,facts:2"),
        ("iterative", ""),
        ("script", ""),
    ]
    names = ["script", "iterative", "agents", "agents+1=all+announced", "agents+decoys", "agents+goal,facts:2"]
    for family in FAMILIES.own:
        shown = [row["condition"] for row in report(store, run_id).as_json()["comparison"] if row["family"] == family]
        assert shown == names
    details = card(store, report(store, run_id))["simulation_details"]
    assert set(details["transparency_index"]) == set(details["information_asymmetry"]) == set(names)
    index = details["transparency_index"]
    assert index["script"] == index["iterative"] == 1 and index["agents"] == index["agents+decoys"] == 0
    assert index["agents+1=all+announced"] == 0.5 < index["agents+goal,facts:2"] < 1
    found = audit.audit_run(store, run_id)
    assert found.prompts_checked > 60 and not found.violations


def test_pages_and_the_terminal_name_the_condition(made: tuple[Store, str]) -> None:
    store, run_id = made
    query = "SELECT episode_id FROM v_episodes WHERE see = 'goal,facts:2' ORDER BY 1"
    episode = store.rows(query)[0]["episode_id"]
    with client_of(store) as client:
        page: TestClient = client
        assert "agents+goal,facts:2" in page.get(f"/runs/{run_id}").text
        text = page.get(f"/episodes/{episode}").text
        assert "what was granted: goal,facts:2" in text and "agents+decoys" in text
        assert page.get(f"/episodes/{episode}/turns/1").status_code == 200
    for command in (["show", episode], ["show"], ["report", run_id]):
        shown = CliRunner().invoke(cli, [*command, "--db", str(store.path)])
        assert shown.exit_code == 0 and "agents+goal,facts:2" in shown.output


def test_a_resumed_run_has_the_grants_that_were_planned(store: Store) -> None:
    plan = Plan((LOADED[0],), ("agents",), "scripted", episodes=2, see=("none", "goal", "facts+decoys"))
    run_id = start(plan, store, Quiet(), print).run_id
    query = "SELECT episode_id, see, spec_hash FROM episodes WHERE run_id = ? ORDER BY ALL"
    before = store.rows(query, [run_id])
    with store.writing() as connection:
        for name in ("turns", "generations", "scores", "episodes"):
            late = "SELECT episode_id FROM episodes WHERE see <> ''"
            connection.execute(f"DELETE FROM {name} WHERE episode_id IN ({late})")
    watcher = Quiet()
    assert runner.resume(run_id, store, watcher, print).summary.completed == 6
    assert {episode.spec.grants.text for episode in watcher.episodes} == {"goal", "facts+decoys"}
    assert store.rows(query, [run_id]) == before
    assert json.loads(run_row(store, run_id)["plan_json"])["see"] == list(plan.see)


@pytest.mark.parametrize(
    ("options", "see"),
    [
        (["--see", "goal,facts:2"], ["goal,facts:2"]),
        (["--see", "none", "--see", "facts"], ["none", "facts"]),
        (["--see", "none", "--see", "facts", "--announced"], ["none", "facts+announced"]),
        (["--see", "none", "--see", "facts", "--decoys"], ["decoys", "facts+decoys"]),
        (["--see", "facts+decoys", "--decoys"], ["facts+decoys"]),
        (["--decoys"], ["decoys"]),
        ([], []),
    ],
)
def test_the_command_makes_conditions(options: list[str], see: list[str]) -> None:
    words = ["run", "mutual_friends_01", "-m", "scripted", "--dry-run", "--json", *options]
    result = CliRunner().invoke(cli, words, catch_exceptions=False)
    data = json.loads(result.stdout)
    assert (data["see"], data["episodes"]) == (see, max(1, len(see)))


def test_the_command_says_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    for options, said in ((["--see", "gaol"], "did you mean goal?"), (["--announced"], "nothing is granted")):
        assert main(["run", "mutual_friends_01", "-m", "scripted", *options]) == 3
        assert said in capsys.readouterr().err


def test_all_modes_are_the_three_of_the_paper() -> None:
    words = ["run", "mutual_friends_01", "-m", "scripted", "--dry-run", "--json", "--mode"]
    for given_, wanted in (("all", 3), ("all,iterative", 4), ("iterative", 1)):
        result = CliRunner().invoke(cli, [*words, given_], catch_exceptions=False)
        assert json.loads(result.stdout)["episodes"] == wanted


# ---- the audit and the leak detector


def test_a_view_that_shows_more_than_the_grant_is_found(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    real = visibility.observe

    def broken(
        scenario: Scenario, mode: Any, viewer: str, transcript: Transcript, grants: Grants, *rest: Any
    ) -> Observation:
        return real(scenario, mode, viewer, transcript, replace(grants, everyone=Grant(facts=2)), *rest)

    plan = Plan((LOADED[1], FRIENDS), ("agents",), "scripted", see=("facts:1", "goal,facts:2"))
    sound = audit.audit_run(store, start(plan, store, Quiet(), print).run_id)
    assert sound.prompts_checked > 20 and not sound.violations
    monkeypatch.setattr(modes, "observe", broken)
    found = audit.audit_run(store, start(plan, store, Quiet(), print).run_id)
    assert {violation.mode for violation in found.violations} == {"agents+facts:1"}
    assert {violation.what.partition(" of ")[0] for violation in found.violations} <= {"fact", "term"}


def test_the_leak_detector_calls_no_decoy_a_private_fact() -> None:
    for seed in range(1, 30):
        loaded = generated("mutual_friends", seed)
        scenario = loaded.scenario
        turns, made = [], []
        for index, viewer in enumerate(scenario.names):
            decoys = observe(scenario, "agents", viewer, Transcript(), parse("decoys")).decoys
            made += [fact.text for decoy in decoys for fact in decoy.facts]
            turns.append(Turn(index, viewer, Action("speak", " ".join(made))))
        subject = Subject("e", scenario, loaded.answer, "agents", 0, 1, Transcript(tuple(turns)))
        steps = Leaks(None, LeakageDetector(_no_embedding)).evaluate((subject,))
        with pytest.raises(StopIteration) as end:
            next(steps)
        scores = [score for each in end.value.value for score in each.scores if score.name != "private_facts"]
        assert scores and all(score.value == 0 for score in scores)
