"""Closed forms of the games about money: the published constants, and what optimal players reach."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Transcript
from localsim.errors import InvalidInput
from localsim.families import FAMILIES, rules_of
from localsim.families.games.base import move
from localsim.families.games.money.bargaining import least_parts
from localsim.families.games.money.matrix import equilibria, ordinal
from tests.conftest import generated
from tests.games import after, outcome, scores_of


def test_half_in_round_three_with_nine_tenths_is_worth_81_percent() -> None:
    loaded = generated("bargaining", rounds=12)
    one, other = loaded.scenario.names
    refused = [(one, move("offer", 100)), (other, move("reject")), (other, move("offer", 100)), (one, move("reject"))]
    talk = after(loaded, *refused, (one, move("offer", 50)), (other, move("accept")))
    found = scores_of(loaded, talk)
    assert found["efficiency"] == pytest.approx(0.81) and found["fairness"] == 1 and found["rounds"] == 3
    assert found["payoff", one] == found["payoff", other] == pytest.approx(0.405)


def test_backward_induction_values_the_first_of_twelve_rounds_at_378_of_1000() -> None:
    fine = least_parts(1_000_000, 12, (0.9, 0.9))
    assert 1 - fine[0] / 1_000_000 == pytest.approx(0.378, abs=0.001) and fine[-1] == 0
    whole = least_parts(100, 12, (0.9, 0.9))
    assert 100 - whole[0] == 37, "whole dollars: each answer must be paid the next whole dollar"
    found = outcome(generated("bargaining"), "optimal")
    assert found["efficiency"] == 1 and found["rounds"] == 1 and sorted(_payoffs(found)) == [0.37, 0.63]


@pytest.mark.parametrize("keep", [0.8, 0.9, 0.95])
def test_with_many_rounds_the_first_part_nears_rubinsteins(keep: float) -> None:
    money = 1_000_000
    first = (money - least_parts(money, 99, (keep, keep))[0]) / money
    assert first == pytest.approx((1 - keep) / (1 - keep**2), abs=0.01 + keep**99)


def test_the_144_games_have_the_published_kinds() -> None:
    kinds = Counter(kind for kind, _ in ordinal())
    assert kinds == {
        "win-win": 36, "biased": 44, "second-best": 12, "cyclic": 18, "unfair": 19, "prisoners": 7, "tragic": 8,
    }  # fmt: skip
    prisoners = [table for kind, table in ordinal() if kind == "prisoners"]
    assert any(sorted(table.values()) == [(1, 4), (2, 2), (3, 3), (4, 1)] for table in prisoners)
    assert all(len(equilibria(table)) == 0 for kind, table in ordinal() if kind == "cyclic")


@pytest.mark.parametrize(
    ("one", "other", "points"),
    [
        ("always-f", "tit-for-tat", (55, 45)),
        ("tit-for-tat", "tit-for-tat", (80, 80)),
        ("always-f", "grim", (55, 45)),
        ("always-f", "tit-for-two-tats", (60, 40)),
        ("always-f", "always-j", (100, 0)),
        ("defect-once", "grim", (10, 90)),
        ("reverse", "always-j", (98, 8)),
    ],
)
def test_fixed_strategies_of_the_prisoners_dilemma_win_what_is_known(
    one: str, other: str, points: tuple[int, int]
) -> None:
    loaded = generated("matrix")
    found = outcome(loaded, one, other)
    assert tuple(found["points", name] for name in loaded.scenario.names) == points


def test_a_table_that_is_not_known_is_one_clear_error() -> None:
    with pytest.raises(InvalidInput, match="'144' is not known"):
        generated("matrix", table="144")
    assert generated("matrix", table="143").scenario.game["public"]["table"]["JJ"]


def test_both_choose_before_either_is_told() -> None:
    loaded: LoadedScenario = generated("matrix")
    rules = rules_of(loaded.scenario)
    assert rules is not None
    step: Any = rules.next(loaded.scenario, Transcript(), 1)
    assert step.speakers == loaded.scenario.names and FAMILIES["matrix"].rules is rules


def _payoffs(found: dict[Any, float]) -> list[float]:
    return [value for key, value in found.items() if isinstance(key, tuple) and key[0] == "payoff"]
