"""Closed forms of the games about money: the published constants, and what optimal players reach."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Transcript
from localsim.conversation.visibility import observe
from localsim.errors import InvalidInput
from localsim.families import FAMILIES, rules_of
from localsim.families.games.base import move
from localsim.families.games.money.bargaining import least_parts
from localsim.families.games.money.matrix import equilibria, ordinal
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.store.database import Store
from tests.conftest import Quiet, generated
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


def test_nobody_reads_the_others_prediction_before_both_have_chosen() -> None:
    loaded = generated("matrix", predict=True, story="cooking")
    first, second = loaded.scenario.names
    talk = after(loaded, (first, move("predict", "J")), (second, move("predict", "F")))
    assert "They cook together" in loaded.scenario.setting and "in private" in loaded.scenario.setting
    assert [turn.value for turn in observe(loaded.scenario, "agents", first, talk).transcript.of("predict")] == ["J"]
    opened = observe(loaded.scenario, "mindreaders", first, talk)
    assert [turn.value for turn in opened.transcript.of("predict")] == ["J", "F"], "the control sees both"
    with pytest.raises(InvalidInput, match="story = 'war' is not known"):
        generated("matrix", story="war")


def test_the_brier_score_of_predictions_is_a_quarter_for_who_always_says_half(store: Store) -> None:
    plan = Plan((generated("matrix", predict=True, rounds=2),), ("agents",), "scripted:defect-once")
    start(plan, store, Quiet(), print)
    query = (Path(__file__).parent.parent / "db" / "queries" / "18_predictions.sql").read_text()
    columns, (row,) = store.sql(query)
    found = dict(zip(columns, row, strict=True))
    assert (found["foreseen"], found["brier"], found["predictions"]) == (0, None, 4), (
        "both begin with F, and end with J"
    )
    for share, brier in ((0.5, 0.25), (0, 0), (1, 1), (0.8, 0.64)):
        # The model gives the option that it predicts this share, and the other option is chosen each time.
        weigh = f"""UPDATE generations SET details_json = json_object('options', [json_object('line', '', 'options',
            json_object('J', json_object('share', if(text LIKE '%J%', {share}, 1 - {share})),
                        'F', json_object('share', if(text LIKE '%F%', {share}, 1 - {share}))))])"""
        with store.writing() as connection:
            connection.execute(weigh)
        columns, (row,) = store.sql(query)
        assert dict(zip(columns, row, strict=True))["brier"] == pytest.approx(brier, abs=1e-3)


def _payoffs(found: dict[Any, float]) -> list[float]:
    return [value for key, value in found.items() if isinstance(key, tuple) and key[0] == "payoff"]
