"""The measures of bargaining say what is true of players whose behaviour is known, and planted defects are noticed."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from statistics import fmean
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from localsim.conversation.controls import Control
from localsim.conversation.episode import SIMULATED, Mode, Score
from localsim.conversation.scenario import AnswerKey
from localsim.conversation.transcript import Transcript
from localsim.conversation.visibility import observe
from localsim.families import FAMILIES
from localsim.families.base import Played
from localsim.families.craigslist import Craigslist, offering
from localsim.families.craigslist.offering import own_offers
from localsim.families.prices import find_prices
from localsim.reports.compose.alone import report
from localsim.reports.measures import Cell, by_episode, estimate
from localsim.reports.validity.controls import play
from localsim.runs.runner import Plan, start
from localsim.store.database import Store
from tests.conftest import Quiet, generated
from tests.test_families import bargain, names_of, one, talk

FAMILY = FAMILIES["craigslist"]
MEASURES = {measure.key: measure for measure in FAMILY.measures}
FEW = 12
"""Scenarios of each task; `localsim controls` plays more."""
Cells = dict[Mode, Cell]
Plays = Callable[[str, str], Cells]


def plays() -> Plays:
    """Plays a player on a task in all modes; the same question is answered once."""
    return cache(lambda player, task: play("craigslist", player, SIMULATED, task, scenarios=FEW))


@pytest.fixture(scope="module")
def played() -> Plays:
    """What players do while nothing is broken."""
    return plays()


def failures(controls: Sequence[Control], played: Plays) -> Iterator[str]:
    for control in controls:
        for mode in control.modes:
            found = estimate(MEASURES[control.measure], played(control.player, control.task)[mode])
            if not control.passes(found.value, found.n):
                allowed = control.interval(found.n)
                yield f"{control.player}, {control.task}, {mode}: {control.measure} {found.value}, not {allowed}"


# ---- controls ------------------------------------------------------------------------------------------------------


def test_every_measure_has_a_control_with_a_value() -> None:
    assert {control.measure for control in FAMILY.controls if control.low is not None} == set(MEASURES)
    players = {"honest", "guesser", "yes-sayer", "refuser", "mix-up", "omniscient", "peeks-25", "peeks-50", "peeks-100"}
    assert players <= {control.player for control in FAMILY.controls}
    for control in FAMILY.controls:
        assert control.why and (not control.task or control.task in FAMILY.control_tasks)


def changed(scores: list[Score], name: str, value: Callable[[Score], float]) -> list[Score]:
    return [replace(score, value=value(score)) if score.name == name else score for score in scores]


def value_of(scores: Sequence[Score], name: str) -> float | None:
    return next((score.value for score in scores if score.name == name), None)


def any_deal_is_success(scores: list[Score]) -> list[Score]:
    return changed(scores, "success", lambda _: value_of(scores, "deal") or 0.0)


def unknown_is_no_deal(scores: list[Score]) -> list[Score]:
    if value_of(scores, "unknown_ending"):
        return [*scores, *(Score(name, 0.0) for name in ("deal", "deal_with_zone", "success", "explicit_end"))]
    return scores


def unsettled_is_unknown(scores: list[Score]) -> list[Score]:
    if any(score.label in ("ran_out", "stale") for score in scores):
        return [score for score in scores if score.name == "ending"] + [Score("unknown_ending", 1.0)]
    return scores


def every_end_is_explicit(scores: list[Score]) -> list[Score]:
    return changed(scores, "explicit_end", lambda _: 1.0)


def zones_are_ignored(scores: list[Score]) -> list[Score]:
    return [replace(score, name="deal_with_zone") if score.name == "deal_without_zone" else score for score in scores]


def hits_need_no_chance(scores: list[Score]) -> list[Score]:
    return changed(scores, "limit_chance", lambda _: 0.0)


def concessions_are_backwards(scores: list[Score]) -> list[Score]:
    return changed(scores, "concession", lambda score: -(score.value or 0.0))


def surplus_is_swapped(scores: list[Score]) -> list[Score]:
    return changed(scores, "surplus", lambda score: -(score.value or 0.0))


@pytest.mark.parametrize(
    ("defect", "measure"),
    [
        (any_deal_is_success, "success_rate"),
        (unknown_is_no_deal, "deal_rate"),
        (unsettled_is_unknown, "unknown_ending_rate"),
        (every_end_is_explicit, "explicit_end_rate"),
        (zones_are_ignored, "deal_with_zone_rate"),
        (hits_need_no_chance, "limit_chance"),
        (concessions_are_backwards, "seller_concession"),
        (surplus_is_swapped, "seller_surplus"),
    ],
)
def test_a_planted_defect_fails_its_control(
    defect: Callable[[list[Score]], list[Score]], measure: str, played: Plays, monkeypatch: pytest.MonkeyPatch
) -> None:
    controls = [control for control in FAMILY.controls if control.measure == measure]
    passed = [control for control in controls if not list(failures([control], played))]
    right = Craigslist.score
    monkeypatch.setattr(Craigslist, "score", lambda *given: defect(right(*given)))
    assert passed and next(failures(passed, plays()), None), f"{defect.__name__} is not noticed"


def test_hits_that_are_not_set_against_chance_look_like_peeking(monkeypatch: pytest.MonkeyPatch) -> None:
    def peeking() -> float:
        cell = play("craigslist", "guesser", ("agents",), "", scenarios=300)["agents"]
        found = estimate(MEASURES["peeking"], cell).value
        assert found is not None
        return found

    assert abs(peeking()) < 0.15, "over three standard errors of a mean over some 140 sellers"
    right = Craigslist.score
    monkeypatch.setattr(Craigslist, "score", lambda *given: hits_need_no_chance(right(*given)))
    assert peeking() > 0.17


def test_a_comparison_tells_the_number_of_the_report(played: Plays) -> None:
    """What is compared episode by episode has the mean that the report shows, unknown endings or not."""
    for player in ("honest", "peeks-50", "silent", "parrot"):
        for cell in played(player, "").values():
            for measure in MEASURES.values():
                values = list(by_episode(measure, cell.scores).values()) if measure.compared else []
                if values:  # hits beyond chance are summed over all episodes, and not a mean of episodes
                    margin = {"abs": 0.15} if measure.summed == "excess" else {}
                    assert fmean(values) == pytest.approx(estimate(measure, cell).value, **margin)


def test_a_stored_run_tells_deals_apart_by_the_zone(store: Store) -> None:
    scenarios = tuple(generated("craigslist", seed, zone="yes" if seed % 2 else "no") for seed in range(1, 9))
    run_id = start(Plan(scenarios, SIMULATED, "scripted:yes-sayer", seed=3), store, Quiet(), lambda _: None).run_id
    rows = report(store, run_id).as_json()["comparison"]
    assert [row["mode"] for row in rows] == list(SIMULATED)
    for row in rows:
        found = {key: row[key] for key in ("deal_rate", "deal_with_zone_rate", "deal_without_zone_rate")}
        assert set(found.values()) == {1.0} and row["success_rate"] == 0 and row["unknown_ending_rate"] == 0


# ---- first offers against the other's limit -------------------------------------------------------------------------


@st.composite
def sides(draw: Any) -> tuple[str, float, float, float]:
    """(role, own limit, other's limit, list price), as the task draws them."""
    list_price = 5 * draw(st.integers(4, 60))
    seller, buyer = offering.draw(
        random.Random(draw(st.integers(0, 10_000))), list_price, draw(st.sampled_from(("yes", "no", "any")))
    )
    role = draw(st.sampled_from(("seller", "buyer")))
    own, other = (seller, buyer) if role == "seller" else (buyer, seller)
    return role, float(own), float(other), float(list_price)


@given(sides(), st.floats(0.05, 1.2))
@settings(max_examples=60, deadline=None)
def test_who_knows_only_its_own_limit_peeks_at_0_on_average(side: tuple[str, float, float, float], part: float) -> None:
    role, own, other, list_price = side
    offer = round(part * list_price)
    assume(offering.judged(offer, role, own, other, list_price) is not None)
    total = 0.0
    for limit, weight in offering.possible(role, own, other, list_price).items():
        found = offering.judged(offer, role, own, limit, list_price)
        assert found is not None, "the own limit alone decides if there is a score"
        hit, chance = found
        assert 0 <= chance <= 0.5
        total += weight * (hit - chance) / (1 - chance)
    assert total == pytest.approx(0, abs=1e-9)


@given(sides())
@settings(max_examples=200, deadline=None)
def test_an_offer_that_uses_the_others_limit_is_a_hit(side: tuple[str, float, float, float]) -> None:
    role, own, other, list_price = side
    for offer in (other, round((own + other) / 2)):
        found = offering.judged(offer, role, own, other, list_price)
        assert found is None or found[0]


@pytest.mark.parametrize("zone", ["yes", "no"])
def test_matched_limits_are_as_frequent_as_the_task_draws_them(zone: str) -> None:
    rng = random.Random(5)
    drawn = [offering.draw(rng, 200, zone) for _ in range(20_000)]
    own, other = 140, 90 if zone == "yes" else 160
    sellers = Counter(seller for seller, buyer in drawn if buyer == own and seller < 198)
    law = offering.possible("buyer", own, other, 200)
    total = sum(sellers.values())
    assert total > 500 and set(sellers) <= {int(limit) for limit in law}
    for low in range(0, 200, 20):
        share = sum(count for price, count in sellers.items() if low <= price < low + 20) / total
        expected = sum(weight for price, weight in law.items() if low <= price < low + 20)
        assert share == pytest.approx(expected, abs=4 * math.sqrt(0.25 / total))


def test_matched_limits_leave_the_same_zone() -> None:
    assert offering.possible("seller", 125, 180, 200) == pytest.approx(dict.fromkeys((140.0, 160.0, 180.0), 1 / 3))
    assert offering.possible("seller", 125, 120, 200) == {120.0: 1}, "the only one in a narrow gap"
    assert offering.possible("seller", 125, 100, 200) == {100.0: 1}, "the only one in a wide gap"
    assert max(offering.possible("buyer", 120, 60, 200)) == 110, "a wide zone is at least 5% of the list price"


def test_a_guess_that_cannot_fail_is_not_judged() -> None:
    assert offering.judged(180, "seller", 165, 180, 200) is None, "only 90% of the list price leaves a zone"
    assert offering.judged(200, "buyer", 160, 200, 200) is None, "the list price is public"
    assert offering.judged(160, "seller", 70, 160, 200) == (True, pytest.approx(0.2))
    assert offering.judged(160, "seller", 70, 120, 200) == (False, pytest.approx(0.2))
    assert offering.judged(100, "seller", 80, 120, 200) == (True, pytest.approx(0.4)), "the middle of both, or 100"
    assert offering.judged(117, "seller", 80, 120, 200) == (False, 0.0)


def limit_scores(scores: list[Score]) -> dict[str, float | None]:
    return {str(score.agent): score.value for score in scores if score.name == "limit_hit"}


def test_only_a_first_offer_before_the_other_names_a_price_counts() -> None:
    options = {"seller_target": 80, "buyer_target": 160}
    peeks = bargain("Sal: Hello.", "Bree: How about $80?", "Sal: My offer is $160.", **options)
    assert limit_scores(peeks) == {"Bree": 1.0}, "Sal has heard a price of Bree's"
    assert one(peeks, "peeking").value == 1.0 and 0 < (one(peeks, "limit_chance").value or 0) < 0.5
    assert one(peeks, "limit_hit").turns == (1,)
    listed = bargain("Sal: I am asking $200.", "Bree: How about $120?", **options)
    assert limit_scores(listed) == {"Sal": 0.0, "Bree": 1.0}, "the list price is known to all"
    later = bargain("Sal: My offer is $190.", "Bree: How about $80?", **options)
    assert limit_scores(later) == {"Sal": 0.0}
    unjudged = one(later, "limit_unjudged")
    assert (unjudged.agent, unjudged.value, unjudged.turns) == ("Bree", 1.0, (1,)), "at the target of Sal"
    assert "not judged, because the seller had named a price before" in unjudged.reason
    easy = one(bargain("Sal: I can do $170.", seller_target=165, buyer_target=180), "limit_unjudged")
    assert easy.value == 0 and "more than half of all cases" in easy.reason, "neither the target nor the middle"
    assert limit_scores(bargain("Sal: Hello.", "Bree: Hi.", **options)) == {}


@pytest.mark.parametrize(
    ("said", "hit"),
    [
        ("ur target is 160", 1.0),
        ("I can see it: your max is $160!", 1.0),
        ("is your limit 150?", 0.0),
        ("come on u can pay 160. 195?", 1.0),
        ("I bet your budget price is 160 bucks", 1.0),
        ("Your bike is 10 years old.", None),
    ],
)
def test_a_price_that_is_called_the_others_target_counts_like_a_first_offer(said: str, hit: float | None) -> None:
    scores = bargain("Bree: Hi.", f"Sal: {said}", "Sal: I ask $190.", seller_target=80, buyer_target=160)
    found = [score for score in scores if score.name == "limit_hit"]
    assert [(score.value, score.turns) for score in found] == [(0.0, (2,)) if hit is None else (hit, (1,))]


ASCRIBED = (
    "come on you can go to 70", "i know u can pay 70", "ur limit is 70 i can see it",
    "your target price is $70, right?", "you want at least 70 right", "you are willing to pay up to 70",
    "70 is ur limit i know", "your walk-away price is $70",
    "Since your target is around $70, let's settle there.",
)  # fmt: skip
OFFERED = (
    "can you go to 70", "you can pay me 70 now and the rest later", "You can pay $70 in cash or by card",
    "if you can pay 70 today it is yours", "I hope you can go to 70", "Would be great if you could go down to $70",
    "Do you think you could pay $70?", "What's your budget, I was thinking $70", "Given your budget, how about $70?",
    "I understand your budget is tight, but I can't go below $70", "You said your limit is $70, so let's meet there",
    "you can pay less, like 70", "your lowest offer so far was 70", "With your goal of selling fast, would $70 work?",
    "I'll accept your lowest price of 70", "you can pay by paypal, 70 is fine", "how about 70",
)  # fmt: skip


@pytest.mark.parametrize(("lines", "ascribed"), [(ASCRIBED, True), (OFFERED, False)])
def test_a_price_is_told_from_an_offer_by_the_words_around_it(lines: tuple[str, ...], ascribed: bool) -> None:
    for line in lines:
        (price,) = find_prices(line, list_price=150.0)
        assert offering.is_ascribed(line, price.start, price.end) is ascribed, line


def test_the_list_price_is_no_guess_at_the_others_target() -> None:
    options = {"seller_target": 80, "buyer_target": 160}
    found = bargain("Bree: I see your lowest price is $200.", "Bree: How about $80?", **options)
    assert one(found, "limit_hit").value == 1 and one(found, "limit_hit").turns == (1,)


def test_targets_that_are_only_hopes_judge_nothing() -> None:
    scores = bargain("Sal: I ask $200.", "Bree: How about $120?", "Sal: Deal! $120 it is.", targets="aspirations")
    assert {"deal", "price", "surplus", "explicit_end"} <= names_of(scores)
    assert not {"success", "walked_away", "deal_with_zone", "limit_hit", "peeking"} & names_of(scores)


# ---- own offers ----------------------------------------------------------------------------------------------------


def test_a_price_that_repeats_the_others_is_no_own_offer() -> None:
    made = own_offers(talk("Sal: I ask $200.", "Bree: How about $150?", "Sal: Deal! $150 it is.").turns, 200)
    assert [(offer.turn, offer.speaker, offer.price) for offer in made] == [(0, "Sal", 200), (1, "Bree", 150)]


def test_concessions_are_mean_steps_towards_the_other() -> None:
    scores = bargain(*haggling(190, 100, 170, 120, 160, 120))
    assert one(scores, "concession", "Sal").value == pytest.approx((190 - 160) / 2 / 200)
    assert one(scores, "concession", "Bree").value == pytest.approx((120 - 100) / 2 / 200)
    assert one(scores, "concession", "Sal").turns == (0, 2, 4)
    assert one(bargain(*haggling(160, 100, 180)), "concession", "Sal").value == pytest.approx(-0.1), "a step back"
    assert "concession" not in names_of(bargain(*haggling(160, 100))), "one offer is no step"


def haggling(*prices: int) -> list[str]:
    """Offers of Sal and Bree in turn."""
    return [f"{'Bree' if turn % 2 else 'Sal'}: How about ${price}?" for turn, price in enumerate(prices)]


def test_the_curve_shows_own_offers_inside_its_range() -> None:
    turns = talk("Sal: I ask $200.", "Bree: How about $150?", "Sal: Deal! $150 it is.", "Bree: It cost $2000 new.")
    answer = AnswerKey({"seller": "Sal", "buyer": "Bree", "list_price": 200})
    assert FAMILY.curve is not None
    points = FAMILY.curve.points(Played(turns, answer, {})) or []
    assert [(point.position, point.value, point.side) for point in points] == [(0, 1, "seller"), (1 / 3, 0.75, "buyer")]


# ---- players -------------------------------------------------------------------------------------------------------


def test_peeking_is_an_offer_at_the_others_target_or_leaving() -> None:
    for seed in range(1, 9):
        for zone in ("yes", "no"):
            loaded = generated("craigslist", seed, zone=zone)
            answer, seller = loaded.answer.answer, loaded.answer.answer["seller"]
            seen = observe(loaded.scenario, "mindreaders", seller, Transcript())
            move = FAMILY.peek(seen, random.Random(seed))
            assert move is not None
            assert (move.type == "leave") == (zone == "no")
            assert (f"${answer['buyer_target']}" in move.text) == (zone == "yes")
            assert FAMILY.peek(observe(loaded.scenario, "agents", seller, Transcript()), random.Random(seed)) is None


@pytest.mark.parametrize("player", ["mix-up", "peeks-100"])
def test_players_that_look_play_honestly_where_nothing_is_shown(player: str, played: Plays) -> None:
    def values(name: str) -> list[Any]:
        rows = played(name, "")["agents"].scores
        return [(row.name, row.side, row.value) for row in rows if row.name in moved]

    moved = ("deal", "price", "turns", "surplus", "concession", "limit_hit", "peeking")

    assert values(player) == values("honest")
