"""Closed forms of the games about gifts, trust, offers and bids: known values, and what known players reach."""

from __future__ import annotations

import random
from statistics import mean, stdev
from typing import Any

import pytest

from localsim.conversation.rules.steps import Act, Stop, Tell
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Transcript
from localsim.conversation.visibility import observe
from localsim.errors import InvalidInput
from localsim.families import player_of, rules_of
from localsim.families.games.base import amount, move
from localsim.families.games.money.auction import result
from localsim.families.games.money.ultimatum import best_offer
from tests.conftest import generated
from tests.games import after, outcome, play, scores_of

SEEDS = range(1, 201)


# ---- public goods --------------------------------------------------------------------------------------------------


def _points(loaded: LoadedScenario, found: dict[Any, float]) -> tuple[float, ...]:
    return tuple(found["points", name] for name in loaded.scenario.names)


@pytest.mark.parametrize(
    ("players", "points"),
    [
        (("free-rider",), (200, 200, 200, 200)),
        (("full-contributor",), (320, 320, 320, 320)),
        (("free-rider", "full-contributor"), (440, 240, 240, 240)),
        (("full-contributor", "free-rider"), (80, 280, 280, 280)),
    ],
)
def test_a_point_in_the_pot_brings_two_fifths_of_a_point_to_each(
    players: tuple[str, ...], points: tuple[float, ...]
) -> None:
    loaded = generated("public_goods")
    assert _points(loaded, outcome(loaded, *players)) == pytest.approx(points)


@pytest.mark.parametrize("given", [0, 5, 20])
def test_each_point_that_is_given_costs_its_giver_three_fifths_whatever_the_others_give(given: int) -> None:
    loaded = generated("public_goods", rounds=1)
    one, *rest = loaded.scenario.names
    for theirs in (0, 7, 20):
        found = scores_of(loaded, after(loaded, (one, move("give", given)), *((n, move("give", theirs)) for n in rest)))
        assert found["points", one] == pytest.approx(20 + 0.4 * 3 * theirs - 0.6 * given)
        assert found["contribution", one] == given / 20 and "spent" not in found and "trend" not in found


def test_conditional_cooperators_follow_a_free_rider_down() -> None:
    """With three others of whom one gives nothing, the next gift is two thirds of the last one, rounded down."""
    loaded = generated("public_goods", rounds=4)
    talk = play(loaded, "free-rider", "conditional")
    gifts = [int(turn.number) for turn in talk.of("give") if turn.speaker == loaded.scenario.names[1]]
    assert gifts == [20, 13, 8, 5] and scores_of(loaded, talk)["trend"] == pytest.approx(-3 * 15 / 80)


def test_punishment_costs_one_and_takes_three() -> None:
    loaded = generated("public_goods", rounds=1, punishment=True)
    one, two, three, four = names = loaded.scenario.names
    gives = [(name, move("give", 0)) for name in names]
    acts = [(one, move("punish", 4, two, three)), (two, move("punish", 2, one)), (three, move("spare"))]
    talk = after(loaded, *gives, *acts, (four, move("spare")))
    found = scores_of(loaded, talk)
    assert _points(loaded, found) == (20 - 8 - 6, 20 - 12 - 2, 20 - 12, 20)
    assert (found["spent", one], found["spent", two], found["spent", three]) == (8, 2, 0)
    assert talk.turns[-1].action.text.startswith(f"Punishment in round 1: {one} loses 14, {two} loses 14")
    assert talk.turns[-1].action.values == ("-14", "-14", "-12", "0")


def test_one_punisher_makes_the_others_give_if_they_can_be_deterred() -> None:
    loaded = generated("public_goods", rounds=3, punishment=True)
    talk = play(loaded, "punisher", "deterred")
    gifts = [int(turn.number) for turn in talk.of("give")]
    assert gifts == [20, 0, 0, 0, *[20] * 8] and len(talk.of("punish")) == 1
    (punished,) = talk.of("punish")
    assert punished.number == 5, "15 points are more than the 12 that giving nothing wins"


def test_words_come_before_the_first_round_and_each_round_is_told_with_its_points() -> None:
    loaded = generated("public_goods", players=3, rounds=2, talk=True)
    talk = play(loaded, "full-contributor")
    assert [turn.action.type for turn in talk.turns] == [*["speak"] * 3, *([*["give"] * 3, "told"] * 2)]
    names = loaded.scenario.names
    assert talk.turns[6].action.text == (
        f"Round 1: the pot of 60 brings 32 to each. {names[0]} gave 20, won 32; {names[1]} gave 20, won 32; "
        f"{names[2]} gave 20, won 32."
    )
    assert talk.turns[6].action.values == ("32", "32", "32")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"factor": 4.0}, "no conflict"),
        ({"factor": 1.0}, "no conflict"),
        ({"players": 31}, "players = 31"),
        ({"players": 30, "rounds": 100, "punishment": True}, "turns = 6000"),
    ],
)
def test_a_pot_without_a_conflict_or_an_end_is_one_clear_error(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        generated("public_goods", **wrong)


# ---- trust ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sender", "receiver", "sums"),
    [
        ("optimal", "optimal", (10, 10)),
        ("trusting", "optimal", (0, 40)),
        ("trusting", "trusting", (15, 25)),
        ("half", "trusting", (12.5, 17.5)),
        ("optimal", "trusting", (10, 10)),
    ],
)
def test_ten_dollars_are_tripled(sender: str, receiver: str, sums: tuple[float, float]) -> None:
    loaded = generated("trust")
    found = outcome(loaded, sender, receiver)
    assert tuple(10 * found["payoff", name] for name in loaded.scenario.names) == pytest.approx(sums)
    assert found["both_gain"] == (sums[0] > 10 and sums[1] > 10)


def test_what_is_sent_and_returned_adds_up() -> None:
    loaded = generated("trust", rounds=3)
    sender, receiver = loaded.scenario.names
    acts = [(sender, move("send", 7)), (receiver, move("return", 33)), (sender, move("send", 0))]
    talk = after(loaded, *acts, (sender, move("send", 10)), (receiver, move("return", 0)))
    texts = [turn.action.text for turn in talk.told]
    assert texts[0] == f"$21 arrive at {receiver}." and texts[2].startswith("Round 2: $0 sent, $0 returned.")
    assert texts[1] == f"Round 1: $7 sent, $6.93 returned. {sender} has $9.93 and {receiver} has $24.07."
    found = scores_of(loaded, talk)
    assert found["payoff", sender] == pytest.approx((9.93 + 10 + 0) / 30)
    assert found["payoff", receiver] == pytest.approx((24.07 + 10 + 40) / 30)
    assert found["sent"] == pytest.approx(17 / 30) and found["returned"] == pytest.approx(0.165)


def test_both_gain_only_if_the_receiver_keeps_something() -> None:
    loaded = generated("trust")
    sender, receiver = loaded.scenario.names
    gained = {
        percents: scores_of(loaded, after(loaded, (sender, move("send", 10)), (receiver, move("return", percents))))
        for percents in (33, 34, 99, 100)
    }
    assert {percents: found["both_gain"] for percents, found in gained.items()} == {33: 0, 34: 1, 99: 1, 100: 0}


def test_who_knows_what_was_decided_wins_a_quarter_more_on_average() -> None:
    """With factor 3, of 0, 20, 40 and 60 percent only the last two pay: 1.2 and 1.8 for each dollar."""
    wins: dict[str, list[float]] = {"agents": [], "mindreaders": []}
    for seed in SEEDS:
        loaded = generated("trust", seed, decided=True)
        sender, receiver = loaded.scenario.names
        percents = int(loaded.scenario.agent(receiver).facts[0].terms[0])
        found = {mode: outcome(loaded, "optimal", mode=mode) for mode in wins}  # type: ignore[arg-type]
        assert found["agents"]["payoff", sender] == 1
        assert found["mindreaders"]["payoff", sender] == pytest.approx(max(1, 3 * percents / 100))
        for mode, own in wins.items():
            own.append(found[mode]["payoff", sender])
    assert mean(wins["mindreaders"]) == pytest.approx(1.25, abs=4 * 0.33 / len(SEEDS) ** 0.5)


def test_only_the_receiver_sees_what_was_decided() -> None:
    loaded = generated("trust", decided=True)
    sender, receiver = loaded.scenario.names
    text = loaded.scenario.agent(receiver).facts[0].text
    seen = {mode: observe(loaded.scenario, mode, sender, Transcript()) for mode in ("agents", "mindreaders")}
    shown = {mode: [fact.text for agent in view.agents for fact in agent.facts] for mode, view in seen.items()}
    assert (
        shown == {"agents": [], "mindreaders": [text]} and "percents" not in generated("trust").scenario.game["public"]
    )


@pytest.mark.parametrize("wrong", [{"factor": 1}, {"endowment": 0}, {"receiver_has": -1}, {"rounds": 0}])
def test_numbers_of_trust_have_limits(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidInput, match="is not possible"):
        generated("trust", **wrong)


# ---- ultimatum -----------------------------------------------------------------------------------------------------


def test_who_knows_the_limit_offers_it_and_who_does_not_offers_half() -> None:
    kept = []
    for seed in SEEDS:
        loaded = generated("ultimatum", seed)
        proposer, responder = loaded.scenario.names
        least = int(loaded.scenario.agent(responder).facts[0].terms[0])
        blind, knowing = (outcome(loaded, "optimal", mode=mode) for mode in ("agents", "mindreaders"))  # type: ignore[arg-type]
        assert blind["payoff", proposer] == 0.5 and blind["over"] == pytest.approx((50 - least) / 100)
        assert knowing["payoff", proposer] == pytest.approx(1 - least / 100) and knowing["payoff", responder] > 0
        assert knowing["over"] == 0 and knowing["success"] == 1
        kept.append(knowing["payoff", proposer])
    assert mean(kept) == pytest.approx(0.725, abs=4 * 0.144 / len(SEEDS) ** 0.5)


def test_the_best_offer_without_knowledge_is_half() -> None:
    kept = {offer: (100 - offer) * sum(limit <= offer for limit in range(5, 55, 5)) / 10 for offer in range(101)}
    assert max(kept, key=lambda offer: kept[offer]) == best_offer(100) == 50 and kept[50] == 50
    assert sorted(kept.values())[-2] < 50, "no other offer is as good"


def test_a_refusal_leaves_nothing_to_both() -> None:
    loaded = generated("ultimatum", kind="plain")
    proposer, responder = loaded.scenario.names
    refused = after(loaded, (proposer, move("offer", 30)), (responder, move("refuse")))
    found = scores_of(loaded, refused)
    assert found["success"] == found["payoff", proposer] == found["payoff", responder] == 0 and found["offer"] == 0.3
    assert refused.turns[-1].action.text == f"{proposer} gets $0 and {responder} gets $0."
    assert "over" not in found and "kept_limit" not in found
    found = outcome(loaded, "optimal")
    assert (found["payoff", proposer], found["payoff", responder]) == (0.99, 0.01)


@pytest.mark.parametrize(
    ("shift", "answer", "kept"), [(0, "accept", 1), (0, "refuse", 0), (-1, "refuse", 1), (-1, "accept", 0)]
)
def test_an_answer_is_compared_with_the_own_limit(shift: int, answer: str, kept: int) -> None:
    loaded = generated("ultimatum")
    proposer, responder = loaded.scenario.names
    least = int(loaded.scenario.agent(responder).facts[0].terms[0])
    found = scores_of(loaded, after(loaded, (proposer, move("offer", least + shift)), (responder, move(answer))))
    assert found["kept_limit"] == kept and found["over"] == pytest.approx(shift / 100)


def test_a_dictator_needs_no_answer() -> None:
    loaded = generated("ultimatum", kind="dictator")
    assert [each.name for each in loaded.scenario.moves] == ["offer"]
    talk = play(loaded, "half")
    assert [turn.action.type for turn in talk.turns] == ["offer", "told"]
    found = scores_of(loaded, talk)
    assert "success" not in found and set(found.values()) == {0.5}


def test_a_wrong_ultimatum_is_one_clear_error() -> None:
    with pytest.raises(InvalidInput, match="no whole twentieths"):
        generated("ultimatum", money=110)
    with pytest.raises(InvalidInput, match="kind = 'open' is not known"):
        generated("ultimatum", kind="open")


# ---- auctions ------------------------------------------------------------------------------------------------------


def _values(loaded: LoadedScenario) -> dict[str, int]:
    return {agent.name: int(agent.facts[0].terms[0]) for agent in loaded.scenario.agents}


def test_in_a_second_price_auction_no_bid_is_better_than_the_value() -> None:
    for value in range(0, 101, 5):
        for rival in range(0, 101, 5):
            gains = {bid: _gain("second", value, bid, rival) for bid in range(0, 101, 5)}
            assert gains[value] == max(gains.values())


def test_in_a_first_price_auction_of_two_half_of_the_value_is_best() -> None:
    """Against a rival who bids half of a value from 0 to 100, the average gain is largest at half of the own value."""
    for value in (20, 50, 80, 100):
        gains = {bid: mean(_gain("first", value, bid, rival / 2) for rival in range(101)) for bid in range(101)}
        assert abs(max(gains, key=lambda bid: gains[bid]) - value / 2) <= 1


def _gain(kind: str, value: int, bid: float, rival: float) -> float:
    winners, price = result(kind, {"own": bid, "rival": rival})
    return (value - price) / len(winners) if "own" in winners else 0.0


@pytest.mark.parametrize("bidders", [2, 4, 10])
def test_first_and_second_price_bring_the_same_known_sum_on_average(bidders: int) -> None:
    expected = (bidders - 1) / (bidders + 1)
    for kind in ("first", "second"):
        found = [
            outcome(generated("auction", seed, kind=kind, bidders=bidders, cents=True), "optimal") for seed in SEEDS
        ]
        revenue = [each["revenue"] for each in found]
        assert mean(revenue) == pytest.approx(expected, abs=4 * stdev(revenue) / len(revenue) ** 0.5), kind
        assert {(each["success"], each["efficiency"], each["overpaid"]) for each in found} == {(1, 1, 0)}


@pytest.mark.parametrize("rise", [1, 10])
def test_a_rising_price_brings_the_second_value_up_to_one_step(rise: int) -> None:
    for seed in range(1, 13):
        loaded = generated("auction", seed, kind="english", rise=rise)
        found, (second, first) = outcome(loaded, "optimal"), sorted(_values(loaded).values())[-2:]
        assert abs(100 * found["revenue"] - second) <= rise and found["overpaid"] == 0
        assert first - second < rise or found["success"] == 1


def test_known_values_let_the_first_bidder_pay_just_above_the_second_value() -> None:
    auctions = [generated("auction", seed, kind="first", cents=True) for seed in range(1, 31)]
    unequal = [each for each in auctions if len(set(sorted(_values(each).values())[-2:])) == 2]
    assert len(unequal) > 25
    for loaded in unequal:
        values = _values(loaded)
        second, first = sorted(values.values())[-2:]
        knowing, blind = (outcome(loaded, "optimal", mode=mode) for mode in ("mindreaders", "agents"))  # type: ignore[arg-type]
        winner = max(values, key=lambda name: values[name])
        assert knowing["revenue"] == pytest.approx((second + 0.01) / 100) and knowing["success"] == 1
        assert knowing["payoff", winner] == pytest.approx((first - second - 0.01) / 100)
        assert blind["revenue"] == pytest.approx(0.75 * first / 100) and blind["success"] == 1


@pytest.mark.parametrize("bidders", [2, 30])
def test_each_bids_the_same_part_of_the_value(bidders: int) -> None:
    loaded = generated("auction", kind="first", cents=True, bidders=bidders)
    found = outcome(loaded, "optimal")
    parts = [found["bid_part", name] for name, value in _values(loaded).items() if value]
    assert len(parts) >= bidders - 1 and parts == pytest.approx([1 - 1 / bidders] * len(parts), abs=0.01)


def test_a_rising_price_ends_when_one_is_left() -> None:
    loaded = generated("auction", kind="english", bidders=3)
    one, two, three = loaded.scenario.names
    out, stay = move("out"), move("stay")
    talk = after(loaded, (one, stay), (two, stay), (three, out), (one, stay), (two, out))
    assert [turn.action.text for turn in talk.told] == [
        f"The price is $5. Still in: {one}, {two} and {three}.",
        f"The price is $10. Still in: {one} and {two}.",
        f"{one} wins and pays $10.",
    ]
    found = scores_of(loaded, talk)
    assert found["revenue"] == 0.1 and found["payoff", one] == pytest.approx(_values(loaded)[one] / 100 - 0.1)


def test_who_goes_out_last_together_is_drawn_and_pays_the_price_before() -> None:
    loaded = generated("auction", kind="english", bidders=3)
    one, two, three = loaded.scenario.names
    acts = [(one, move("out")), (two, move("stay")), (three, move("stay")), (two, move("out")), (three, move("out"))]
    winners = {after(loaded, *acts, seed=seed).told[-1].action.values for seed in range(30)}
    assert winners == {("sold", two, "5"), ("sold", three, "5")}
    talk = play(generated("auction", kind="english", bidders=2, rise=50), "overbidder")
    assert len(talk.of("stay")) == 4 and talk.told[-1].action.text.endswith("pays $100.")


def test_sealed_bids_reach_nobody_and_a_secret_result_only_the_winner() -> None:
    loaded = generated("auction", kind="first", announced=False, lots=2)
    names = loaded.scenario.names
    bids = [(name, move("bid", 10 * place)) for place, name in enumerate(names)]
    talk = after(loaded, *bids)
    assert [turn.readers for turn in talk.turns] == [*((name,) for name in names), (names[-1],)]
    reads = {name: len(observe(loaded.scenario, "agents", name, talk).transcript) for name in names}
    assert reads == {**dict.fromkeys(names, 1), names[-1]: 2}
    assert len(observe(loaded.scenario, "mindreaders", names[0], talk).transcript) == 5
    assert after(generated("auction"), *_bids(generated("auction"))).turns[-1].readers is None


def _bids(loaded: LoadedScenario) -> list[tuple[str, Any]]:
    return [(name, move("bid", place)) for place, name in enumerate(loaded.scenario.names)]


def test_lots_are_sold_one_after_the_other() -> None:
    loaded = generated("auction", lots=3)
    talk = play(loaded, "truthful")
    assert len(talk.of("bid")) == 12 and [turn.value for turn in talk.told] == ["sold"] * 3
    ranked = sorted(_values(loaded).values())
    winner = max(_values(loaded), key=lambda name: _values(loaded)[name])
    assert scores_of(loaded, talk)["payoff", winner] == pytest.approx((ranked[-1] - ranked[-2]) / 100)
    rules = rules_of(loaded.scenario)
    assert rules is not None and isinstance(rules.next(loaded.scenario, talk, 1), Stop)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kind": "dutch"}, "'dutch' is not known"),
        ({"bidders": 1}, "bidders = 1"),
        ({"kind": "english", "rise": 7}, "do not reach 100"),
        ({"kind": "english", "announced": False}, "always announced"),
        ({"most": 101}, "most = 101"),
    ],
)
def test_a_wrong_auction_is_one_clear_error(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        generated("auction", **wrong)


# ---- all -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "player"),
    [
        ("public_goods", "deterred"),
        ("public_goods", "spiteful"),
        ("trust", "cheat"),
        ("ultimatum", "refuser"),
        ("auction", "half"),
    ],
)
@pytest.mark.parametrize("variant", [{}, {"talk": True}, {"punishment": True}, {"kind": "english"}, {"decided": True}])
def test_players_write_what_is_legal_in_every_variant(game: str, player: str, variant: dict[str, Any]) -> None:
    parameters = {key: value for key, value in variant.items() if key in generated(game).answer.parameters}
    if parameters.get("kind") == "english" and game != "auction":
        parameters = {"kind": "plain"}
    loaded = generated(game, 5, **parameters)
    for mode in ("agents", "mindreaders"):
        assert scores_of(loaded, play(loaded, player, mode=mode))  # type: ignore[arg-type]


@pytest.mark.parametrize("game", ["public_goods", "trust", "ultimatum", "auction"])
def test_a_game_that_has_not_begun_has_no_scores(game: str) -> None:
    loaded = generated(game)
    assert scores_of(loaded, Transcript()) == {}
    rules = rules_of(loaded.scenario)
    assert rules is not None and isinstance(rules.next(loaded.scenario, Transcript(), 1), Act | Tell)
    assert player_of("any")(
        observe(loaded.scenario, "agents", loaded.scenario.names[0], Transcript()), random.Random(1)
    )


def test_amounts_have_at_most_two_digits() -> None:
    assert [amount(value) for value in (0, 32.0, 5.64, 1 / 3, -14.0, 1e-9, -1e-9, 100)] == [
        "0", "32", "5.64", "0.33", "-14", "0", "0", "100",
    ]  # fmt: skip
