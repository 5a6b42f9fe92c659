"""A person in a role: sees what an agent would see, is stored like any other, and gets the reveal."""

from __future__ import annotations

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import pytest

from localsim.__main__ import run
from localsim.cli.play import read_action
from localsim.conversation.requests import Request
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import ACTION_TYPES, Action
from localsim.errors import InvalidInput
from localsim.paths import database_path
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from tests.conftest import Quiet

SCENARIO = "craigslist_01"


def people() -> tuple[str, str]:
    one, other = find_scenarios([SCENARIO])[0].scenario.names
    return one, other


def play(lines: str, *options: str, role: str | None = None, scenario: str = SCENARIO) -> tuple[int, str]:
    """Exit code, and everything that was printed."""
    command = ["play", scenario, "--as", role or people()[1], "-m", "scripted", *options]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as out, redirect_stderr(out):
        patch.setattr("sys.stdin", StringIO(lines))
        code = run(command)
    return code, out.getvalue()


def test_a_person_sees_the_own_side_alone_until_the_reveal() -> None:
    code, output = play("Hello, is it still there?\n/leave No deal. Goodbye!\n")
    assert code == 0, output
    before, _, after = output.partition("== The reveal")
    seller = find_scenarios([SCENARIO])[0].scenario.agent(people()[0])
    target = seller.facts[0].text
    assert f"You are {people()[1]}." in before and target not in before and seller.goal not in before
    assert target in after and seller.goal in after and "ending: no_deal" in after


def test_in_mindreaders_mode_the_other_side_is_shown_at_once() -> None:
    _, output = play("/leave Goodbye!\n", "--mode", "mindreaders")
    assert find_scenarios([SCENARIO])[0].scenario.agent(people()[0]).goal in output.partition("== The reveal")[0]


def test_human_turns_are_stored_and_marked() -> None:
    play("I say <b>hello</b>.\n/do counts the money\n/leave\n")
    store = Store(database_path(None))
    turns = store.rows("SELECT action, text FROM v_turns WHERE speaker = ? ORDER BY turn", [people()[1]])
    assert [(row["action"], row["text"]) for row in turns] == [
        ("speak", "I say <b>hello</b>."),
        ("action", "counts the money"),
        ("leave", ""),
    ]
    row = store.rows("SELECT models_json FROM runs")[0]
    assert json.loads(row["models_json"])["human"]["kind"] == "human"


def test_what_cannot_be_read_is_asked_again() -> None:
    code, output = play("\n/fly away\n/leave Bye.\n")
    assert code == 0 and "there are no words" in output and "/fly is not known" in output


def test_only_what_the_scenario_allows_is_explained() -> None:
    role = find_scenarios(["matrix_prisoners"])[0].scenario.names[0]
    _, output = play("hello\n/choose J\n", role=role, scenario="matrix_prisoners")
    assert "/leave" not in output and "Type what you say" not in output
    assert "/choose one of J, F: To choose" in output
    assert "does not allow speak now. Moves now: /choose one of J, F." in output
    assert "/do describes" in play("/fly away\n/leave Bye.\n")[1]


def test_the_end_of_input_interrupts_and_loses_nothing() -> None:
    code, output = play("Hello.\n")
    assert code == 130, output
    rows = Store(database_path(None)).rows("SELECT text FROM v_turns WHERE speaker = ?", [people()[1]])
    assert [row["text"] for row in rows] == ["Hello."]


def test_a_role_that_is_not_there() -> None:
    code, output = play("", role="Nobody")
    assert code == 3 and "no role 'Nobody'" in output


@pytest.mark.parametrize(
    ("typed", "action"),
    [
        (" Hi there ", Action("speak", "Hi there")),
        ("/leave", Action("leave", "")),
        ("/look smiles", Action("non-verbal communication", "smiles")),
        ("/pass", Action("none", "")),
    ],
)
def test_what_is_typed_becomes_an_action(typed: str, action: Action) -> None:
    assert read_action(typed, ACTION_TYPES) == action


def test_an_action_that_the_scenario_forbids() -> None:
    with pytest.raises(InvalidInput, match="does not allow action"):
        read_action("/do dances", ("speak", "leave"))


def test_nobody_to_ask_is_said(talk: LoadedScenario, store: Store) -> None:
    plan = Plan((talk,), ("agents",), model="scripted", roles={talk.scenario.names[0]: "human"})
    with pytest.raises(InvalidInput, match="cannot ask one"):
        start(plan, store, Quiet(), lambda _line: None)


def test_a_person_writes_no_scripts(talk: LoadedScenario, store: Store) -> None:
    def never(_request: Request) -> Action:
        raise AssertionError

    plan = Plan((talk,), ("script",), model="human")
    done = start(plan, store, Quiet(), lambda _line: None, never)
    assert done.summary.failed == 1


def test_pages_and_terminal_are_not_mixed_up() -> None:
    with redirect_stdout(StringIO()) as out, redirect_stderr(out):
        assert run(["play"]) == 3
        assert run(["play", SCENARIO, "--as", people()[0], "--port", "7999"]) == 3
        assert run(["play", "--host", "0.0.0.0"]) == 3
    assert "every network" in out.getvalue()
