"""Checks that authors write in YAML, and the curves of the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from localsim.__main__ import run as command
from localsim.conversation.scenario import AnswerKey
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.errors import ScenarioInvalid
from localsim.evaluators.checks import CHECKS
from localsim.reports.compose.alone import report
from localsim.reports.figures.curves import curves, steps
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.runs.scripted import simulated
from localsim.scenarios.parse import dump_scenario, parse_scenario
from localsim.store.database import Store
from tests.conftest import Quiet, generated

TEXT = """
version: 1
id: lamp
title: A lamp
info: {what: A test.}
setting: Ana and Ben talk about a lamp.
agents:
  - name: Ana
    goal: Sell it.
    facts: [{id: crack, text: The foot is cracked., terms: [cracked, crack]}]
  - {name: Ben, goal: Buy it.}
checks:
"""


def transcript(*lines: tuple[str, str]) -> Transcript:
    turns = [Turn(number, "Ana" if number % 2 == 0 else "Ben", Action(*line)) for number, line in enumerate(lines)]  # type: ignore[arg-type]
    return Transcript(tuple(turns))


TALK = transcript(
    ("speak", "I want $40 for it."),
    ("speak", "Is the foot cracked? I say $30."),
    ("speak", "Yes, it has a crack. Make it $35."),
    ("speak", "Sorry, then $35 is fine."),
    ("leave", "Goodbye!"),
)


@pytest.mark.parametrize(
    ("check", "value", "turn"),
    [
        ("{name: x, disclosed: crack}", 1, 1),
        ("{name: x, disclosed: crack, by: Ana}", 1, 2),
        ("{name: x, disclosed: crack, by: Ana, before: 0.3}", 0, None),
        ("{name: x, disclosed: crack, expected: false}", 0, 1),
        ("{name: x, said: [SORRY, pardon]}", 1, 3),
        ("{name: x, said: [or]}", 0, None),
        ("{name: x, left: anybody}", 1, 4),
        ("{name: x, left: Ben}", 0, None),
        ("{name: x, left: anybody, before: 0.9, expected: false}", 1, None),
        ("{name: x, price_agreed: [30, 36]}", 1, 3),
        ("{name: x, price_agreed: [36, 50]}", 0, None),
        ("{name: x, price_agreed: [35, 35], after: 0.6}", 0, None),
    ],
)
def test_a_check_is_decided_with_its_turn(check: str, value: int, turn: int | None) -> None:
    loaded = parse_scenario(f"{TEXT}  - {check}\n", "lamp.yaml")
    first, passed, success = CHECKS.score(TALK, loaded.scenario, loaded.answer)
    assert (first.name, first.value, first.turns) == ("check.x", value, () if turn is None else (turn,))
    assert (passed.name, passed.value) == ("checks_passed", value)
    assert (success.name, success.value, success.turns) == ("success", value, first.turns)


THREE = """  - {name: asked, said: [cracked]}
  - {name: sorry, said: [sorry]}
  - {name: kept, left: anybody, expected: false}
"""
"""Of these, the talk fulfils the first two."""


@pytest.mark.parametrize(
    ("rule", "value", "held"),
    [
        ("", 0, "2 of 3"),
        ("success: [asked, sorry]", 1, "2 of 2"),
        ("success: [asked, kept]", 0, "1 of 2"),
        ("success: {at_least: 2}", 1, "2 of 3"),
        ("success: {at_least: 3}", 0, "2 of 3"),
        ("success: {at_least: 1, of: [kept, sorry]}", 1, "1 of 2"),
        ("success: {at_least: 1, of: [kept]}", 0, "0 of 1"),
    ],
)
def test_the_author_says_which_checks_are_success(rule: str, value: int, held: str) -> None:
    loaded = parse_scenario(f"{TEXT}{THREE}{rule}\n", "lamp.yaml")
    success = CHECKS.score(TALK, loaded.scenario, loaded.answer)[-1]
    assert (success.name, success.value) == ("success", value)
    assert success.reason.startswith(f"{held} checks came out as the author expects")
    assert ("not so: kept (left: yes, expected no)" in success.reason) == (rule != "success: [asked, sorry]")
    assert AnswerKey.from_json(loaded.answer.as_json()) == loaded.answer


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("success: [askd]", "no check is called 'askd'.*did you mean asked"),
        ("success: {at_least: 4}", "at_least is 4, and there are 3 checks"),
        ("success: {at_least: 2, of: [kept]}", "at_least is 2, and there are 1 checks"),
        ("success: {at_least: 0}", "greater than or equal to 1"),
        ("success: all", "no check is called 'all'"),
    ],
)
def test_a_rule_that_cannot_be_decided_is_refused_with_its_line(rule: str, problem: str) -> None:
    with pytest.raises(ScenarioInvalid, match=problem) as caught:
        parse_scenario(f"{TEXT}{THREE}{rule}\n", "lamp.yaml")
    assert caught.value.problems[0].line == len(TEXT.splitlines()) + 4


def test_a_rule_without_checks_or_in_a_family_that_decides_itself_is_refused() -> None:
    with pytest.raises(ScenarioInvalid, match="it counts checks, and the file has none"):
        parse_scenario(TEXT.replace("checks:\n", "success: {at_least: 1}\n"), "lamp.yaml")
    text = dump_scenario(generated("mutual_friends", 3).document)
    with pytest.raises(ScenarioInvalid, match="the family mutual_friends decides success itself"):
        parse_scenario(f"{text}checks: [{{name: x, left: anybody}}]\nsuccess: [x]\n", "friends.yaml")
    loaded = parse_scenario(f"{text}checks: [{{name: x, left: anybody}}]\n", "friends.yaml")
    assert [each.name for each in CHECKS.score(TALK, loaded.scenario, loaded.answer)] == ["check.x", "checks_passed"]


@pytest.mark.parametrize(
    ("check", "problem"),
    [
        ("{name: x}", "exactly one of"),
        ("{name: x, said: [a], left: Ana}", "exactly one of"),
        ("{name: x, disclosed: nothing}", "no fact has the id 'nothing'"),
        ("{name: x, said: [a], by: Zoe}", "no agent is called 'Zoe'"),
        ("{name: x, price_agreed: [3, 1]}", "give the lowest price first"),
        ("{name: x, before: 2, said: [a]}", "less than or equal to 1"),
    ],
)
def test_a_check_that_cannot_be_decided_is_refused_with_its_line(check: str, problem: str) -> None:
    with pytest.raises(ScenarioInvalid, match=problem) as caught:
        parse_scenario(f"{TEXT}  - {check}\n", "lamp.yaml")
    assert caught.value.problems[0].line == len(TEXT.splitlines()) + 1


def test_checks_are_the_judges_and_leave_the_scenarios_hash_alone() -> None:
    plain = parse_scenario(TEXT.replace("checks:\n", ""), "lamp.yaml")
    checked = parse_scenario(f"{TEXT}  - {{name: x, left: Ana}}\n", "lamp.yaml")
    assert plain.scenario.hash == checked.scenario.hash and plain.hash != checked.hash
    assert AnswerKey.from_json(checked.answer.as_json()) == checked.answer
    assert "checks" not in plain.answer.as_json()


def test_checks_of_a_run_are_scored_stored_and_reported(store: Store) -> None:
    loaded = parse_scenario(f"{TEXT}  - {{name: bye, said: [goodbye]}}\n  - {{name: no, left: Ben}}\n", "lamp.yaml")
    runner.start(Plan((loaded,), ("agents",), model="scripted"), store, Quiet(), lambda _line: None)
    rows = store.rows("SELECT name, value FROM v_scores WHERE evaluator = 'checks' ORDER BY name")
    found: dict[str, Any] = {row["name"]: row["value"] for row in rows}
    assert found["check.bye"] == 1 and set(found) == {"check.bye", "check.no", "checks_passed", "success"}
    run = store.rows("SELECT run_id FROM runs")[0]["run_id"]
    row = report(store, run).as_json()["comparison"][0]
    assert (row["checks_passed"], row["success_rate"]) == (found["checks_passed"], found["success"])


def test_success_is_a_column_of_episodes_by_the_newest_version(store: Store) -> None:
    checked = parse_scenario(f"{TEXT}  - {{name: bye, said: [goodbye]}}\n", "lamp.yaml")
    plain = parse_scenario(TEXT.replace("checks:\n", "").replace("id: lamp", "id: plain"), "plain.yaml")
    runner.start(Plan((checked, plain), ("agents",), model="scripted"), store, Quiet(), lambda _line: None)
    row = next(row for row in store.rows("SELECT * FROM scores WHERE name = 'success'"))
    with store.writing() as connection:
        older = "INSERT INTO scores BY NAME SELECT * REPLACE ('1' AS version, 0 AS value) FROM scores WHERE "
        connection.execute(f"{older} name = 'success'")
    assert row["value"] == 1
    found = store.rows("SELECT scenario_id, avg(success::INT) AS success FROM v_episodes GROUP BY ALL ORDER BY ALL")
    assert [tuple(row.values()) for row in found] == [("lamp", 1), ("plain", None)]


def test_success_and_checks_of_the_author_are_outcomes_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a researcher goes: own scenarios, primary outcome, report, comparison, figure, plan of the next run."""
    for number in range(3):
        text = TEXT.replace("id: lamp", f"id: lamp_{number}") + "  - {name: bye, said: [goodbye]}\n"
        text += "  - {name: stay-put, left: Ana, expected: false}\nsuccess: [bye]\n"
        (tmp_path / f"lamp_{number}.yaml").write_text(text)
    database = ["--db", str(tmp_path / "a.duckdb")]
    run = ["run", str(tmp_path), "--mode", "all", "-m", "scripted", "-n", "2", *database]
    assert command([*run, "--primary", "check.by"]) == command([*run, "--secondary", "check.good:both"]) == 3
    assert capsys.readouterr().err.count("hint: the checks of the scenarios are check.bye, check.stay-put\n") == 2
    assert command([*run, "--primary", "success_rate:information", "--secondary", "check.bye,check.stay-put"]) == 0
    for line, said in (
        ("show @last", "1 of 1 checks came out as the author expects"),
        ("report @last", "success "),
        ("report @last --all", "stay-put  "),
        ("compare @last", "success "),
        ("compare @last", "stay-put  "),
        ("compare @last --secondary check.bye:both", "bye  "),
        (f"plot @last --measure check.stay-put -o {tmp_path}", "everyday_check.stay-put.svg"),
        ("check @last check.bye>=1", "ok "),
        ("compare @last --all", "checks passed"),
    ):
        capsys.readouterr()
        assert command([*line.split(), *database]) == 0, line
        out = capsys.readouterr().out
        assert said in out and "no success to compare" not in out, f"{line}: {out}"
    for options, said in (
        ("", "success_rate, information: a design needs differences that vary"),
        ("--measure check.bye", "check.bye, information: a design needs differences that vary"),
        ("--measure check.by", "the checks of the scenarios are check.bye, check.stay-put"),
    ):
        assert command(["design", "@last", "--difference", "0.2", *options.split(), *database]) == 3
        assert said in capsys.readouterr().err
    assert command(["design", "--rates", ".1,.4", "--seeds", "1"]) == 0
    assert "power 0.8 with 1 seed: 37 scenarios" in capsys.readouterr().out


# ---- curves --------------------------------------------------------------------------------------------------------


def test_steps_end_where_the_share_ends() -> None:
    assert steps([0.5, 0.25], 4) == [(0.0, 0.0), (0.25, 0.25), (0.5, 0.5), (1.0, 0.5)]
    assert steps([], 3) == [(0.0, 0.0), (1.0, 0.0)]


def test_curves_of_a_run(store: Store) -> None:
    plan = Plan(
        tuple(generated(family, 3) for family in ("mutual_friends", "craigslist")), ("agents",), model="scripted"
    )
    runner.start(plan, store, Quiet(), lambda _line: None)
    run = store.rows("SELECT run_id FROM runs")[0]["run_id"]
    found = {curve.name: curve for curve in curves(store, run)}
    assert set(found) == {"named", "offers"}, "nobody has looked for leaks"
    (named,) = found["named"].series
    assert (named.mode, named.n) == ("agents", 1) and named.points[-1][1] == 1
    sides = {series.side: [y for _, y in series.points] for series in found["offers"].series}
    assert set(sides) == {"seller", "buyer"}
    assert sides["seller"] == sorted(sides["seller"], reverse=True) and sides["buyer"] == sorted(sides["buyer"])


@pytest.mark.parametrize("facts", [1, 3])
def test_the_teller_tells_what_each_knows_whoever_knows_more(facts: int) -> None:
    """Ben knows nothing, so he waits; the check that Ana tells comes out in a mode without omniscience."""
    more = "".join(f", {{id: more_{number}, text: It has {number} shades.}}" for number in range(1, facts))
    told = TEXT.replace("crack]}]", f"crack]}}{more}]") + "  - {name: told, disclosed: crack, by: Ana}"
    loaded = parse_scenario(told, "x.yaml")
    kept = simulated(Plan((loaded,), ("agents",), model="scripted:teller"))
    ((key, episode),) = kept.episodes.items()
    turns = episode.transcript.turns
    own = [fact.text for fact in loaded.scenario.agents[0].facts]
    assert [turn.action.text for turn in turns if turn.speaker == "Ana"][:facts] == own
    assert turns[-1].action.type == "leave" and episode.transcript.turns[-2].action.text.startswith("I have told")
    success = next(each.value for each in kept.scores[key] if getattr(each, "name", "") == "success")
    assert success == 1
