"""The table of controls: every measure is checked, each control can fail, and a planted defect is found."""

from __future__ import annotations

from dataclasses import replace

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from localsim.cli import cli
from localsim.conversation.controls import KEPT, Control, between, by_chance, exactly
from localsim.conversation.episode import Score
from localsim.conversation.transcript import Transcript
from localsim.errors import TooManyFailures
from localsim.evaluators.style import Style
from localsim.families import FAMILIES, PLAYERS, family_of
from localsim.reports.measures import measures_of
from localsim.reports.validity import controls
from localsim.reports.validity.controls import controls_of, run_controls, table


def test_a_measure_without_a_control_does_not_ship() -> None:
    covered = {control.measure for family in FAMILIES.own for control in controls_of(family)}
    assert [measure.key for measure in measures_of() if measure.key not in covered] == []


@pytest.mark.parametrize("family", FAMILIES.own)
def test_controls_name_players_measures_and_tasks_that_exist(family: str) -> None:
    known = {measure.key for measure in measures_of([family])}
    tasks = {"", KEPT, *family_of(family).control_tasks}
    for control in controls_of(family):
        assert control.player in PLAYERS and control.measure in known and control.task in tasks, control
        assert control.why, f"{control} must say from where its value follows"


@pytest.mark.parametrize("scenarios", [20, pytest.param(controls.SCENARIOS, marks=pytest.mark.verify)])
@pytest.mark.parametrize("family", FAMILIES.own)
def test_every_measure_is_what_it_must_be(family: str, scenarios: int) -> None:
    """The controls of the family and of the measures that every family has."""
    failed = [each.as_json() for each in run_controls([family], scenarios) if not each.passed]
    assert failed == []


def test_the_same_controls_give_the_same_values() -> None:
    one, two = (run_controls([FAMILIES.own[0]], 2) for _ in range(2))
    assert [each.value for each in one] == [each.value for each in two]


@given(st.floats(0, 1), st.integers(1, 200))
def test_the_central_part_of_a_binomial_holds_its_mean(probability: float, n: int) -> None:
    low, high = by_chance("guesser", "hit", probability, "").interval(n) or (1.0, 0.0)
    assert low <= probability + 1 / n and high >= probability - 1 / n and 0 <= low <= high <= 1


@pytest.mark.parametrize(
    ("control", "value", "n", "passes"),
    [
        (exactly("p", "m", 1, ""), 1.0, 5, True),
        (exactly("p", "m", 1, ""), 0.99, 5, False),
        (exactly("p", "m", None, ""), None, 0, True),
        (exactly("p", "m", None, ""), 0.0, 5, False),
        (exactly("p", "m", 0, ""), None, 0, False),
        (between("p", "m", 0.2, 0.4, ""), 0.3, 5, True),
        (between("p", "m", 0.2, 0.4, ""), 0.5, 5, False),
        (by_chance("p", "m", 0.2, ""), 0.2, 100, True),
        (by_chance("p", "m", 0.2, ""), 0.5, 100, False),
        (between("p", "m", 0, 1, ""), float("nan"), 5, False),
    ],
)
def test_a_control_passes_only_what_theory_allows(control: Control, value: float | None, n: int, passes: bool) -> None:
    assert control.passes(value, n) is passes


def test_a_planted_defect_of_a_general_measure_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    score = Style.score

    def defective(self: Style, transcript: Transcript, *rest: object) -> list[Score]:
        scores = score(self, transcript, *rest)  # type: ignore[arg-type]
        return [replace(each, value=0.0) if each.name == "repeated_turns" else each for each in scores]

    monkeypatch.setattr(Style, "score", defective)
    failed = {each.control.measure for each in run_controls([FAMILIES.own[0]], 1) if not each.passed}
    assert "repeated_turn_rate" in failed


def test_the_command_prints_a_table_and_fails_with_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    told = CliRunner().invoke(cli, ["controls", "--family", FAMILIES.own[1], "--player", "parrot", "--scenarios", "5"])
    assert told.exit_code == 0 and "words_per_turn" in told.output and "are what they must be" in told.output
    checked = run_controls([FAMILIES.own[0]], 1)
    wrong = [replace(each, value=(each.value or 0) + 7) for each in checked]
    monkeypatch.setattr(controls, "run_controls", lambda *_: wrong)
    told = CliRunner().invoke(cli, ["controls"])
    assert isinstance(told.exception, TooManyFailures) and told.exception.exit_code == 6
    assert "FAILS" in told.output and len(table(wrong)[1]) == len({id(each.control) for each in checked})
