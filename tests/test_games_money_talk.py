"""Closed forms of GLEE's negotiation and persuasion and of the balloon, and GLEE's grid."""

from __future__ import annotations

import math
from itertools import product
from pathlib import Path
from statistics import mean

import pytest
from click.testing import CliRunner

from localsim.conversation.episode import Mode
from localsim.conversation.prompts import agent_messages
from localsim.conversation.rules.deciding import slots
from localsim.conversation.rules.lines import Bound
from localsim.conversation.rules.steps import Act
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Transcript
from localsim.conversation.visibility import observe
from localsim.errors import InvalidInput, MalformedReply
from localsim.families import rules_of
from localsim.families.games.base import move
from localsim.families.games.money.balloon import ADVICE
from localsim.families.games.money.glee import VALUES
from localsim.families.games.money.negotiation import best_price
from localsim.families.games.money.persuasion import lies
from localsim.runs.again import games_after
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.scenarios.parse import load_scenario
from localsim.store.database import Store
from scripts import make_glee
from scripts.make_glee import GRID, cells
from tests.conftest import Quiet, generated
from tests.games import after, outcome, play, scores_of

# ---- negotiation ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seller", "buyer", "price", "gains", "fairness", "success"),
    [
        (0.8, 1.2, 100, (0.2, 0.2), 1.0, 1),
        (0.8, 1.2, 120, (0.4, 0.0), 0.84, 1),
        (1.0, 1.5, 50, (-0.5, 1.0), 1 - 4 * 0.75**2, 1),
        (1.2, 0.8, 100, (-0.2, -0.2), 1.0, 0),
        (1.0, 1.0, 100, (0.0, 0.0), 1.0, 1),
    ],
)
def test_a_trade_wins_what_glee_says(
    seller: float, buyer: float, price: int, gains: tuple[float, float], fairness: float, success: int
) -> None:
    loaded = generated("negotiation", seller=seller, buyer=buyer)
    one, other = loaded.scenario.names
    found = scores_of(loaded, after(loaded, (one, move("offer", price)), (other, move("accept"))))
    assert [found["gain", name] for name in (one, other)] == pytest.approx(gains)
    assert found["fairness"] == pytest.approx(fairness) and found["success"] == success and found["trade"] == 1
    parted = scores_of(loaded, after(loaded, (one, move("offer", price)), (other, move("buy-from-john"))))
    assert parted["success"] == (buyer <= seller) and parted["fairness"] == 1 and parted["way_out"] == 1
    assert parted["gain", one] == parted["gain", other] == 0 and "rounds" not in parted


@pytest.mark.parametrize(("rounds", "price"), [(1, 1.2), (2, 0.8), (9, 1.2), (10, 0.8)])
def test_who_names_the_last_price_takes_all_if_both_values_are_known(rounds: int, price: float) -> None:
    loaded = generated("negotiation", rounds=rounds)
    seller, buyer = loaded.scenario.names
    found = outcome(loaded, "optimal")
    assert found["gain", seller] == pytest.approx(price - 0.8) and found["rounds"] == 1
    assert found["gain", buyer] == pytest.approx(1.2 - price)


def test_the_best_price_against_the_four_values() -> None:
    assert best_price(0.8, VALUES, sells=True) == (1.2, pytest.approx(0.2))
    assert best_price(1.0, VALUES, sells=True) == (1.5, pytest.approx(0.125))
    assert best_price(1.2, VALUES, sells=True) == (1.5, pytest.approx(0.075))
    assert best_price(1.5, VALUES, sells=True)[1] == 0
    assert best_price(1.5, VALUES, sells=False) == (1.0, pytest.approx(0.25))
    assert best_price(1.2, VALUES, sells=False) == (1.0, pytest.approx(0.1)), "as good as 0.8, and taken more often"


@pytest.mark.parametrize(
    ("side", "rounds", "worth"),
    [
        ("seller", 1, {0.8: 0.125, 1.0: 0.05, 1.2: 0.0, 1.5: 0.0}),
        ("seller", 3, {0.8: 0.125, 1.0: 0.05, 1.2: 0.0, 1.5: 0.0}),
        ("buyer", 2, {1.5: 0.125, 1.2: 0.05, 1.0: 0.0, 0.8: 0.0}),
        ("buyer", 10, {1.5: 0.125, 1.2: 0.05, 1.0: 0.0, 0.8: 0.0}),
    ],
)
def test_information_is_worth_what_the_closed_form_says(side: str, rounds: int, worth: dict[float, float]) -> None:
    """The optimal player of the side that proposes last, on all pairs of values: mindreaders less agents."""
    sells = side == "seller"

    def gain(own: float, theirs: float, mode: Mode) -> float:
        pair = {"seller": own, "buyer": theirs} if sells else {"seller": theirs, "buyer": own}
        loaded = generated("negotiation", rounds=rounds, informed=False, **pair)
        return outcome(loaded, "optimal", mode=mode)["gain", loaded.scenario.names[0 if sells else 1]]

    gained = {}
    for own in VALUES:
        blind, seeing = (mean(gain(own, each, mode) for each in VALUES) for mode in ("agents", "mindreaders"))
        everything = mean(max((each - own) if sells else (own - each), 0.0) for each in VALUES)
        assert seeing == pytest.approx(everything)
        assert blind == pytest.approx(best_price(own, VALUES, sells=sells)[1])
        gained[own] = seeing - blind
    assert gained == pytest.approx(worth) and mean(gained.values()) == pytest.approx(0.04375)


def test_a_long_negotiation_does_not_tell_its_end() -> None:
    loaded = generated("negotiation", rounds=30, informed=True)
    prompt = agent_messages(observe(loaded.scenario, "agents", loaded.scenario.names[0], Transcript()))[0].content
    assert "rounds" not in prompt and "at most 60" not in prompt and "rounds" not in loaded.scenario.game["public"]
    assert outcome(loaded, "optimal") == outcome(loaded, "halfway"), "without a known end there is no last proposal"
    assert "at most 10 rounds" in generated("negotiation", rounds=10).scenario.setting
    assert generated("bargaining", rounds=99).scenario.limits.turns == 500, "nor does a long bargaining"


def test_everybody_has_an_own_way_out() -> None:
    loaded = generated("negotiation")
    one, other = loaded.scenario.names
    with pytest.raises(MalformedReply):
        after(loaded, (one, move("offer", 100)), (other, move("sell-to-john")))
    offers = [(one, move("offer", 200)), (other, move("reject")), (other, move("offer", 0))]
    found = scores_of(loaded, after(loaded, *offers, (one, move("sell-to-john"))))
    assert found["success"] == 0 and found["way_out"] == 1


def test_values_that_players_are_not_told_of_are_one_clear_error() -> None:
    with pytest.raises(InvalidInput, match=r"seller = 0\.9 is not among 0\.8, 1, 1\.2 and 1\.5"):
        generated("negotiation", seller=0.9, informed=False)
    assert generated("negotiation", seller=0.9, informed=False, prior=False).scenario.game["worth"] == [90, 120]
    with pytest.raises(InvalidInput, match="buyer = 3 is not from 0 to 2"):
        generated("negotiation", buyer=3.0)
    drawn = {tuple(generated("negotiation", seed, seller=0, buyer=0).scenario.game["worth"]) for seed in range(200)}
    assert drawn == set(product((80, 100, 120, 150), repeat=2)), "0 draws each of the four values"


# ---- persuasion ----------------------------------------------------------------------------------------------------


def test_buyers_are_charged_for_bad_products_that_they_bought() -> None:
    """The published metric code charges them for those that they did not buy."""
    loaded = generated("persuasion", rounds=8, worth=3.0)
    seller, buyer = loaded.scenario.names
    answers = ["buy", "pass", "buy", "buy", "pass", "buy", "buy", "pass"]
    acts = [pair for each in answers for pair in ((seller, move("recommend", "yes")), (buyer, move(each)))]
    talk = after(loaded, *acts, seed=3)
    good = [turn.action.values == ("quality", "high") for turn in talk.told if turn.value == "quality"]
    bought = [each == "buy" for each in answers]
    high = sum(b and g for b, g in zip(bought, good, strict=True))
    low = sum(b and not g for b, g in zip(bought, good, strict=True))
    left = sum(not b and not g for b, g in zip(bought, good, strict=True))
    assert low != left and 0 < sum(good) < 8, "the two formulae differ here"
    found = scores_of(loaded, talk)
    assert found["buyer_gain"] == pytest.approx((high * 2 - low) / 8)
    assert found["efficiency"] == high / sum(good) and found["fairness"] == pytest.approx(left / (8 - sum(good)))
    assert found["seller_gain"] == 5 / 8 and found["honesty"] == sum(good) / 8 and found["followed"] == 5 / 8


@pytest.mark.parametrize(("odds", "worth"), [(0.5, 1.25), (1 / 3, 2.0), (0.8, 1.2), (0.2, 3.0), (0.5, 4.0)])
def test_the_best_seller_sells_what_kamenica_and_gentzkow_say(odds: float, worth: float) -> None:
    """Sales min(1, q v) in agents; in mindreaders q, and the buyer gains q (v - 1) instead of max(0, q v - 1)."""
    share = lies(odds, worth)
    assert odds + (1 - odds) * share == pytest.approx(min(1, odds * worth))
    if share < 1:
        assert odds * worth / (odds + (1 - odds) * share) == pytest.approx(1), "buying on a recommendation is just fair"
    loaded = generated("persuasion", rounds=20, chance=odds, worth=worth)
    episodes = 30
    blind, seeing = (
        [outcome(loaded, "optimal", mode=mode, seed=seed) for seed in range(episodes)]
        for mode in ("agents", "mindreaders")
    )
    margin = 2 * worth / math.sqrt(20 * episodes)
    assert mean(each["seller_gain"] for each in blind) == pytest.approx(min(1, odds * worth), abs=margin / worth)
    assert mean(each["buyer_gain"] for each in blind) == pytest.approx(max(0, odds * worth - 1), abs=margin)
    assert mean(each["seller_gain"] for each in seeing) == pytest.approx(odds, abs=margin / worth)
    assert mean(each["buyer_gain"] for each in seeing) == pytest.approx(odds * (worth - 1), abs=margin)
    assert all(each["efficiency"] == each.get("fairness", 1) == 1 for each in seeing)


def test_a_new_buyer_sees_the_record_and_nothing_else() -> None:
    loaded = generated("persuasion", rounds=4, myopic=True)
    seller, *buyers = loaded.scenario.names
    talk = play(loaded, "pushy")
    good = [turn.action.values == ("quality", "high") for turn in talk.told if turn.value == "quality"]
    for place, buyer in enumerate(buyers):
        own = observe(loaded.scenario, "agents", buyer, talk).transcript
        assert [turn.value for turn in own.told] == ["record", "result"]
        assert own.told[0].action.values == ("record", str(place), str(place), str(sum(good[:place])))
        assert [turn.speaker for turn in own.acts] == [seller, buyer]
    assert [turn.value for turn in observe(loaded.scenario, "agents", seller, talk).transcript.told] == [
        "quality", "result",
    ] * 4  # fmt: skip
    everything = observe(loaded.scenario, "mindreaders", buyers[0], talk).transcript
    assert len(everything.told) == 12, "a mindreader reads the qualities, too"


@pytest.mark.parametrize("message", ["binary", "words"])
def test_a_seller_can_address_only_the_buyer_of_the_round(message: str) -> None:
    loaded = generated("persuasion", rounds=3, myopic=True, message=message)
    rules, scenario = rules_of(loaded.scenario), loaded.scenario
    assert rules is not None
    talk = play(loaded, "honest")
    says = talk.of("recommend", "say")
    assert [turn.readers for turn in says] == [(scenario.names[0], buyer) for buyer in scenario.names[1:]]
    step = rules.next(scenario, Transcript(talk.turns[: says[1].index]), 1)
    assert isinstance(step, Act)
    (way,) = slots(scenario, talk, step)[0].ways
    assert isinstance(way, Bound) and way.others == (scenario.names[2],)


def test_a_buyer_by_record_stops_when_the_products_were_not_worth_it() -> None:
    for myopic in (False, True):
        loaded = generated("persuasion", chance=0.2, worth=1.25, rounds=20, myopic=myopic)
        results = [
            turn.action.values or () for turn in play(loaded, "pushy", "by-record").told if turn.value == "result"
        ]
        bought = good = 0
        for _, answer, quality in results:
            assert (answer == "buy") == (bought == 0 or 1.25 * good >= bought)
            bought, good = bought + (answer == "buy"), good + (answer == "buy" and quality == "high")
        assert 0 < bought < 20


def test_words_are_read_and_not_scored_as_recommendations() -> None:
    loaded = generated("persuasion", message="words", rounds=10)
    found = outcome(loaded, "honest")
    assert found["efficiency"] == found["fairness"] == 1 and "honesty" not in found and "followed" not in found


def test_a_seller_who_does_not_know_the_worth_is_not_told_it() -> None:
    loaded = generated("persuasion", informed=False, worth=3.0)
    seller, buyer = loaded.scenario.names
    talk = play(loaded, "honest")
    prompts = {
        name: "\n".join(each.content for each in agent_messages(observe(loaded.scenario, "agents", name, talk)))
        for name in (seller, buyer)
    }
    assert "$300" in prompts[buyer] and "$300" not in prompts[seller]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"message": "song"}, "'song' is not known"), ({"chance": 1.5}, "from 0 to 1"), ({"worth": 0.5}, "at least 1")],
)
def test_a_wrong_parameter_of_persuasion_is_one_clear_error(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        generated("persuasion", **parameters)


# ---- balloon -------------------------------------------------------------------------------------------------------


def test_coached_roll_outs_raise_the_price_until_there_is_no_deal() -> None:
    """Five games at most; the coached seller meets a buyer who begins anew."""
    prices = [outcome(generated("balloon"), "coached", "concede")["price"]]
    while len(prices) < 5:
        loaded = generated("balloon", len(prices) + 1, coach="seller", last_price=prices[-1])
        found = outcome(loaded, "coached", "concede")
        if not found["success"]:
            break
        prices.append(found["price"])
    assert prices == [13, 14, 15] and found["success"] == 0 and "price" not in found


def test_advice_without_a_last_price_slows_the_seller_down() -> None:
    assert outcome(generated("balloon", coach="seller"), "coached", "concede", "coached")["price"] == 15
    assert outcome(generated("balloon", coach="seller"), "concede", "concede", "coached")["price"] == 13, "not heeded"


def test_only_the_coached_side_reads_the_advice_and_the_last_price() -> None:
    loaded = generated("balloon", coach="seller", last_price=13.0)
    seller, buyer, coach = loaded.scenario.names
    talk = play(loaded, "coached")
    for name, reads in ((seller, True), (buyer, False), (coach, True)):
        seen = observe(loaded.scenario, "agents", name, talk)
        prompt = "\n".join(each.content for each in agent_messages(seen))
        assert bool(seen.transcript.of("advise")) == ("Give a reason" in prompt) == ("$13" in prompt) == reads
    cost = {name: "$8" in agent_messages(observe(loaded.scenario, "agents", name, talk))[0].content
            for name in (seller, buyer)}  # fmt: skip
    assert cost == {seller: True, buyer: False}
    assert talk.of("advise")[0].value == seller and talk.turns[0].action.type == "advise"


def test_the_price_is_the_last_number_and_one_accepts_only_the_others() -> None:
    loaded = generated("balloon")
    seller, buyer = loaded.scenario.names
    begun = [(seller, move("offer", "18.0")), (buyer, move("reject")), (seller, move("reject"))]
    assert scores_of(loaded, after(loaded, *begun, (buyer, move("accept"))))["price"] == 18
    found = scores_of(loaded, after(loaded, *begun, (buyer, move("offer", "12.5")), (seller, move("accept"))))
    assert found["price"] == 12.5 and found["rounds"] == 3 and found["in_band"] == 1 and found["refusals"] == 0.4
    with pytest.raises(MalformedReply):
        after(loaded, *begun[:2], (seller, move("accept")))
    assert scores_of(loaded, after(loaded, (seller, move("accept"))))["price"] == 10, "the buyer's opening"


def test_knowing_the_cost_is_worth_three_dollars_to_a_shrewd_buyer() -> None:
    loaded = generated("balloon")
    assert [outcome(loaded, "shrewd", mode=mode)["price"] for mode in ("agents", "mindreaders")] == [13, 10]


def test_five_games_in_which_the_coach_has_read_the_one_before(store: Store) -> None:
    """By the command's own loop: prices rise to what the buyer pays at most, then a game has no next one."""
    scenarios, prices = (LoadedScenario(*generated("balloon").document.split(), ""),), []
    while True:
        run_id = start(Plan(scenarios, ("agents",), "scripted:coached"), store, Quiet(), print).run_id
        prices += [row["value"] for row in store.rows("FROM v_scores WHERE run_id = ? AND name = 'price'", [run_id])]
        try:
            (document,) = games_after(store, run_id)
        except InvalidInput as error:
            assert "has a next one" in str(error)
            break
        scenarios = (LoadedScenario(*document.split(), ""),)
    assert prices == [13, 14, 15] and document.id.endswith("_game4")
    seller, buyer, coach = (agent_messages(observe(scenarios[0].scenario, "agents", name, Transcript()))[0].content
                            for name in document.split()[0].names)  # fmt: skip
    for said in ("(offer 16.0)", "(accept)", ADVICE):
        assert (said in seller, said in buyer, said in coach) == (True, False, True), "the other begins anew"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"coach": "both"}, "'both' is not known"),
        ({"cost": 12}, "cost < bids < opens"),
        ({"last_price": 13.0}, "nobody is"),
    ],
)
def test_a_wrong_parameter_of_the_balloon_is_one_clear_error(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        generated("balloon", **parameters)


# ---- GLEE's grid ---------------------------------------------------------------------------------------------------

PUBLISHED = {
    "bargaining": (
        {100, 10_000, 1_000_000}, {12, 99}, {1, 0.95, 0.9, 0.8}, {1, 0.95, 0.9, 0.8}, {True, False}, {True, False},
    ),
    "negotiation": (
        {100, 10_000, 1_000_000}, {1, 10, 30}, {0.8, 1, 1.2, 1.5}, {0.8, 1, 1.2, 1.5}, {True, False}, {True, False},
    ),
    "persuasion": (
        {100, 10_000, 1_000_000}, {1 / 3, 0.5, 0.8}, {1.2, 1.25, 2, 3, 4}, {True, False}, {True, False},
        {"words", "binary"},
    ),
}  # fmt: skip
"""Money, rounds, values, information, words; for persuasion price, odds, worth, information, myopia, words."""
COUNTS = {"bargaining": 384, "negotiation": 576, "persuasion": 360}


@pytest.mark.parametrize("game", COUNTS)
def test_the_grid_is_the_cross_product_of_the_published_options(game: str) -> None:
    found = [tuple(cell[name] for name in GRID[game]) for cell in cells(game)]
    assert set(found) == set(product(*PUBLISHED[game])) and len(found) == len(set(found)) == COUNTS[game]
    documents = list(make_glee.documents(game))
    assert (
        len({document.id for document in documents}) == len({document.hash for document in documents}) == COUNTS[game]
    )
    for cell, document in zip(cells(game), documents, strict=True):
        assert cell.items() <= document.parameters.items()


def test_the_script_writes_files_that_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_glee, "cells", lambda game: list(cells(game))[::48])
    done = CliRunner().invoke(make_glee.main, ["--out", str(tmp_path / "grid")])
    assert done.exit_code == 0 and "negotiation: 12 scenarios" in done.output
    files = sorted((tmp_path / "grid").iterdir())
    assert len(files) == 8 + 12 + 8
    for path in files:
        loaded: LoadedScenario = load_scenario(path)
        assert loaded.scenario.family and outcome(loaded, "any")
    one = CliRunner().invoke(make_glee.main, ["--game", "persuasion", "--out", str(tmp_path / "one")])
    assert one.exit_code == 0 and len(list((tmp_path / "one").iterdir())) == 8
