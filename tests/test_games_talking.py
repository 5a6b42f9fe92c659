"""Closed forms of the games about talking: published rewards, what the search finds, and what known players reach."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest

from localsim.conversation.rules.steps import Act
from localsim.conversation.scenario import LoadedScenario, Scenario
from localsim.conversation.transcript import Action, Transcript
from localsim.errors import InvalidInput
from localsim.families import FAMILIES, rules_of
from localsim.families.games.base import Game, move
from localsim.families.games.talking.car_dealer import BRANDS, BUDGETS, FEATURES, PERSONALITIES, TYPES, fancy_reward
from localsim.families.games.talking.films import ASPECTS, films_of, solve
from localsim.families.games.talking.linear_program import part_of_optimum, slots_of, solution
from localsim.families.games.talking.recommendation import ATTRIBUTES, Path, entropy, path_of, scores_of_items
from localsim.scenarios.parse import dump_scenario, parse_scenario
from tests.conftest import generated
from tests.games import after, outcome, play, scores_of


def value_of(scenario: Scenario, kind: str) -> str:
    """The value of the fact of this kind."""
    facts = (fact for agent in scenario.agents for fact in agent.facts)
    return next(fact.terms[0] for fact in facts if fact.id.endswith(f"_{kind}"))


def allowed(loaded: LoadedScenario, talk: Transcript) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Who acts next, and how."""
    rules = rules_of(loaded.scenario)
    assert rules is not None
    step = rules.next(loaded.scenario, talk, 1)
    assert isinstance(step, Act)
    return step.speakers, step.actions


# ---- the car dealer ------------------------------------------------------------------------------------------------


def test_the_rewards_of_the_car_dealer_are_the_published_ones() -> None:
    assert fancy_reward(19_000, 20_000, 30_000) == pytest.approx(0.76)
    assert fancy_reward(None, 20_000, 30_000) == pytest.approx(-0.5)
    assert fancy_reward(None, 30_000, 10_000) > 0, "the published formula rewards it that a dear car is not sold"
    assert (len(PERSONALITIES), len(BRANDS), len(TYPES), len(FEATURES), len(BUDGETS)) == (10, 13, 6, 8, 5)


def test_a_sold_car_is_scored_by_its_price_its_list_price_and_the_budget() -> None:
    loaded = generated("car_dealer", budget=30_000, list_price=1.2)
    dealer, buyer = loaded.scenario.names
    letter = next(
        fact.id[-1]
        for fact in loaded.scenario.agents[0].facts
        if fact.terms == ("36000",) and wanted(loaded, fact.text)
    )
    hello = [(dealer, Action("speak", "Hello.")), (buyer, Action("speak", "Hello."))]
    talk = after(loaded, *hello, (dealer, move("offer", letter, 29_000)), (buyer, move("accept")))
    assert scores_of(loaded, talk) == {
        "success": 1, "sold": 1, "fancy": pytest.approx(29 / 33), "revenue": 29, "match": 1, "over_budget": 0,
    }  # fmt: skip
    dear = scores_of(loaded, after(loaded, *hello, (dealer, move("offer", letter, 33_000)), (buyer, move("accept"))))
    assert dear["fancy"] == 1 and dear["over_budget"] == 1 and dear["success"] == 0 and dear["match"] == 1
    gone = scores_of(loaded, after(loaded, *hello, (dealer, move("offer", letter, 33_000)), (buyer, move("walk-away"))))
    assert gone == {"success": 0, "sold": 0, "revenue": 0, "fancy": pytest.approx(6 / 36)}


def wanted(loaded: LoadedScenario, text: str) -> bool:
    """Whether a car has the brand and the type that the buyer wants."""
    return value_of(loaded.scenario, "brand") in text and value_of(loaded.scenario, "type") in text


def test_one_car_meets_all_wishes_and_is_described_once() -> None:
    for seed in range(30):
        loaded = generated("car_dealer", seed, cars=12)
        assert sum(wanted(loaded, fact.text) for fact in loaded.scenario.agents[0].facts) == 1
    dealer, buyer = loaded.scenario.names
    talk = after(
        loaded, (dealer, move("offer", "B", 500)), (buyer, Action("speak", "No.")), (dealer, move("offer", "B", 1000))
    )
    told = [turn.action.text for turn in talk.told]
    assert told == [fact.text for fact in loaded.scenario.agents[0].facts if fact.id.endswith("_B")]
    assert allowed(loaded, talk) == ((buyer,), ("accept", "walk-away", "speak"))
    assert allowed(loaded, Transcript(talk.turns[:0])) == ((dealer,), ("offer", "speak"))


def test_who_knows_the_budget_gets_all_of_it_and_who_does_not_gets_less() -> None:
    for seed in range(20):
        loaded = generated("car_dealer", seed, budget=50_000, list_price=1.2)
        knows, alone = outcome(loaded, "omniscient", mode="mindreaders"), outcome(loaded, "omniscient")
        assert knows["success"] == alone["success"] == 1
        assert knows["revenue"] == 50 and alone["revenue"] == 48, "60000 less 5% again and again"


@pytest.mark.parametrize("wrong", [{"cars": 1}, {"list_price": 2}, {"budget": 20_000}, {"lines": 2}])
def test_a_car_dealer_that_cannot_be_is_one_clear_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="car_dealer: "):
        generated("car_dealer", **wrong)


# ---- recommendation ------------------------------------------------------------------------------------------------


def test_rewards_of_a_talk_are_summed_by_hand() -> None:
    loaded = generated("recommendation", list=2, items=20)
    adviser, customer = loaded.scenario.names
    target = value_of(loaded.scenario, "target")
    own = loaded.scenario.game["public"]["items"][target]
    other = next(each for each in ATTRIBUTES if each not in own)
    wrong = "1" if target != "1" else "2"
    talk = after(
        loaded,
        (adviser, move("ask", own[0])), (customer, move("yes")),
        (adviser, move("ask", other)), (customer, move("no")),
        (adviser, move("recommend", wrong, wrong)), (customer, move("no")),
        (adviser, move("recommend", wrong, target)), (customer, move("yes")),
    )  # fmt: skip
    found = scores_of(loaded, talk)
    assert found["reward"] == pytest.approx(0.01 - 0.1 - 0.1 + 1) and found["rounds"] == 4 and found["truthful"] == 1
    assert found["success"] == found["success_5"] == found["success_10"] == 1


def test_a_list_that_is_taken_without_the_item_is_no_success() -> None:
    loaded = generated("recommendation", list=1, items=20)
    adviser, customer = loaded.scenario.names
    wrong = "1" if value_of(loaded.scenario, "target") != "1" else "2"
    talk = after(loaded, (adviser, move("recommend", wrong)), (customer, move("yes")))
    assert scores_of(loaded, talk) == {
        "success": 0, "success_5": 0, "success_10": 0, "rounds": 15, "reward": -0.1, "truthful": 0,
    }  # fmt: skip


def test_turn_t_costs_its_penalty_and_fourteen_turns_are_played() -> None:
    loaded = generated("recommendation")
    talk = play(loaded, "asker")
    found = scores_of(loaded, talk)
    yes = sum(turn.action.type == "yes" for turn in talk.acts)
    assert len(talk.of("ask")) == 14 and found["rounds"] == 15 and found["success"] == 0
    assert found["reward"] == pytest.approx(0.01 * yes - 0.1 * (14 - yes) - 0.3)


def test_the_path_keeps_candidates_and_neighbours_by_hand() -> None:
    items = {"1": ["red", "wool"], "2": ["red", "silk"], "3": ["blue", "linen"], "4": ["red", "warm"]}
    path = Path(["red"], ["silk"], [("4", "4")])
    assert path.candidates(items) == ["1", "2"], "a denied attribute removes no item, as published"
    assert path.neighbours(items) == ["wool"], "linen is no neighbour, silk was denied, and item 4 was refused"
    scores = scores_of_items(items, ["1"], Path(["red"]))
    assert scores == {"1": 2, "2": 1, "3": 0, "4": 1}
    reflected = scores_of_items(items, ["1"], Path(["red"], [], [("1", "2")]))
    assert reflected == {"1": 0.5, "2": -0.5, "3": 0, "4": 0}, "who is like a refused item loses with it"
    assert entropy(0.5) == 1 and entropy(0) == entropy(1) == 0 and entropy(0.25) == pytest.approx(0.8113, abs=1e-4)


def test_scpr_asks_neighbours_only_and_its_candidates_shrink_with_every_answer() -> None:
    asked = 0
    for seed in range(25):
        loaded = generated("recommendation", seed, items=120, list=1)
        items, talk = loaded.scenario.game["public"]["items"], play(loaded, "scpr", seed=seed)
        before = Path([talk.told[0].value])
        for end in range(3, len(talk) + 1, 2):
            done, path = talk.turns[end - 2], path_of(Transcript(talk.turns[:end]))
            if done.action.type == "ask":
                asked += 1
                assert done.value in before.neighbours(items)
            assert set(path.neighbours(items)) <= set(before.neighbours(items)) - {done.value}
            assert set(path.candidates(items)) <= set(before.candidates(items))
            before = path
    assert asked > 50


def test_on_the_same_customers_scpr_is_faster_than_max_entropy_and_both_than_chance() -> None:
    mean: dict[str, float] = {}
    for player in ("scpr", "max-entropy", "random"):
        found = [outcome(generated("recommendation", seed, items=120, list=3), player, seed=seed) for seed in range(60)]
        assert player == "random" or all(each["success"] == 1 for each in found)
        mean[player] = sum(each["rounds"] for each in found) / len(found)
    assert mean["scpr"] < mean["max-entropy"] - 1 < mean["random"] - 5


def test_reflection_lowers_what_is_like_a_refused_item() -> None:
    loaded = generated("recommendation")
    public, talk = loaded.scenario.game["public"], play(loaded, "denier")
    path = path_of(talk)
    first = Path(path.confirmed, path.denied, path.refused[:1])
    scores = [scores_of_items(public["items"], public["bought"], each) for each in (Path(path.confirmed), first)]
    refused = set(first.refused[0])
    assert all(scores[1][item] < scores[0][item] for item in refused)


@pytest.mark.parametrize("wrong", [{"list": 11}, {"items": 5}, {"items": 121}, {"turns": 1}, {"bought": 100}])
def test_a_recommendation_that_cannot_be_is_one_clear_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="recommendation: "):
        generated("recommendation", **wrong)
    assert len(generated("recommendation", items=120, list=10).scenario.setting) < 4000


# ---- films ---------------------------------------------------------------------------------------------------------


def test_the_search_finds_the_fewest_questions_and_refuses_what_has_none() -> None:
    films = {
        "A": ("comedy", "sad", "new", "long"),
        "B": ("comedy", "sad", "old", "long"),
        "C": ("drama", "sad", "new", "long"),
        "D": ("drama", "sad", "old", "short"),
        "E": ("drama", "sad", "old", "short"),
    }
    assert solve(films, "A", 16) == ("genre", "age") and solve(films, "A", 6) == ("genre", "age")
    assert solve(films, "A", 5) is None, "two questions and a suggestion are six turns"
    assert solve(films, "D", 16) is None, "E is the same"
    assert solve({"A": films["A"]}, "A", 2) == ()


def test_every_generated_film_game_is_solved_by_the_search_and_by_trying_all_questions() -> None:
    for seed in range(30):
        loaded = generated("films", seed)
        films, target = films_of(loaded.scenario.agents[0].facts), value_of(loaded.scenario, "film")
        assert films[target] == tuple(value_of(loaded.scenario, aspect) for aspect in ASPECTS)
        best = min(
            len(places)
            for count in range(5)
            for places in combinations(range(4), count)
            if sum(all(film[n] == films[target][n] for n in places) for film in films.values()) == 1
        )
        assert len(loaded.answer.answer["questions"]) == best
        assert outcome(loaded, "best-question")["success"] == 1
        assert outcome(loaded, "best-question")["questions"] >= best


def test_games_without_a_solution_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no questions single out one of 2 films in 3 turns"):
        generated("films", films=2, turns=3)
    with pytest.raises(InvalidInput, match="films = 21 is not between 2 and 20"):
        generated("films", films=21)
    document = FAMILIES["films"].generate("films_01", 1, {"films": 2})
    assert FAMILIES["films"].check(document) == []
    expert, friend = document.agents
    target = friend.facts[0].terms[0]
    mine = next(fact for fact in expert.facts if fact.terms[0] == target)
    twin = next(fact for fact in expert.facts if fact.terms[0] != target)
    same = twin.model_copy(update={"text": mine.text.replace(target, twin.terms[0])})
    broken = document.model_copy(
        update={"agents": (expert.model_copy(update={"facts": (mine, same)}), friend)}
    )  # fmt: skip
    assert FAMILIES["films"].check(broken)[0][1].startswith("no questions single out")


def test_only_what_was_asked_can_be_answered() -> None:
    loaded = generated("films")
    expert, friend = loaded.scenario.names
    for aspect in ASPECTS:
        assert allowed(loaded, after(loaded, (expert, move("ask", aspect)))) == ((friend,), (aspect,))
    title = value_of(loaded.scenario, "film_0")
    assert allowed(loaded, after(loaded, (expert, move("suggest", title)))) == ((friend,), ("accept", "reject"))
    assert allowed(loaded, after(loaded, (expert, Action("speak", "Hm.")))) == ((friend,), ("speak",))
    silent = generated("films", talk=False)
    assert allowed(silent, Transcript()) == ((silent.scenario.names[0],), ("ask", "suggest"))


def test_the_simulated_friend_never_names_the_film_and_a_blurter_is_found() -> None:
    for seed, player in product(range(15), ("best-question", "all-questions", "liar", "refuser")):
        loaded = generated("films", seed)
        talk, target = play(loaded, player), value_of(loaded.scenario, "film")
        friend = [turn for turn in talk.acts if turn.speaker == loaded.scenario.names[1]]
        assert friend and not any(target in turn.line for turn in friend)
        assert scores_of(loaded, talk)["volunteered"] == 0
    assert outcome(loaded, "best-question", "blurter")["volunteered"] == 1
    expert, speaker = loaded.scenario.names
    late = after(loaded, (expert, move("suggest", target)), (speaker, move("reject", text=f"{target} is not it.")))
    assert scores_of(loaded, late)["volunteered"] == 0, "it may be named once it was suggested"


def test_another_film_is_no_success_and_fits_in_part() -> None:
    loaded = generated("films")
    films, target = films_of(loaded.scenario.agents[0].facts), value_of(loaded.scenario, "film")
    other = next(title for title in films if title != target)
    expert, friend = loaded.scenario.names
    found = scores_of(loaded, after(loaded, (expert, move("suggest", other)), (friend, move("accept"))))
    same = sum(a == b for a, b in zip(films[other], films[target], strict=True))
    assert found["success"] == 0 and found["fit"] == same / 4 and "extra" not in found and found["questions"] == 0


# ---- linear programs -----------------------------------------------------------------------------------------------

TRUE = [3, 5, 1, 2, 20, 3, 1, 30]
"""Maximise 3x + 5y with x + 2y <= 20 and 3x + y <= 30: 8 chairs and 6 tables earn 54."""


def test_the_optimum_is_the_one_by_hand() -> None:
    plan, earned = solution(TRUE, 2)
    assert plan == pytest.approx([8, 6]) and earned == pytest.approx(54)
    assert part_of_optimum(TRUE, TRUE, 2) == pytest.approx(1)
    assert part_of_optimum([9, 1, *TRUE[2:]], TRUE, 2) == pytest.approx(30 / 54), "ten chairs and no table"
    assert part_of_optimum([3, 5, 1, 2, 99, 3, 1, 30], TRUE, 2) == 0, "30 tables need 60 units of 20"
    assert part_of_optimum([3, 5, 1, 2, 10, 3, 1, 15], TRUE, 2) == pytest.approx(0.5), "half of the stock, half of it"


def test_a_stated_model_is_scored_number_by_number() -> None:
    loaded = generated("linear_program")
    analyst, owner = loaded.scenario.names
    public, true = loaded.scenario.game["public"], [int(fact.terms[0]) for fact in loaded.scenario.agents[1].facts]
    slots = list(slots_of(public["products"], public["materials"]))
    assert slots[-1] == f"{public['materials'][-1]} in stock" and len(slots) == len(true) == 8
    asked = [(analyst, move("ask", slots[0])), (owner, move("answer", true[0]))]
    wrong = [true[0] - 1, *true[1:]]
    talk = after(loaded, *asked, *asked, (analyst, move("state", *wrong)))
    found = scores_of(loaded, talk)
    assert found["recall"] == 7 / 8 and found["success"] == 0 and found["rounds"] == 3
    assert found["repeats"] == 0.5 and found["truthful"] == 1 and 0 < found["optimum"] <= 1
    right = scores_of(loaded, after(loaded, *asked, (analyst, move("state", *true))))
    assert right["success"] == right["recall"] == 1 and right["optimum"] == pytest.approx(1)


@pytest.mark.parametrize(("products", "materials"), [(1, 1), (2, 2), (3, 3), (4, 4)])
def test_a_perfect_elicitor_recovers_everything_and_mindreaders_need_one_turn(products: int, materials: int) -> None:
    for seed in range(3):
        loaded = generated("linear_program", seed, products=products, materials=materials)
        alone, knows = outcome(loaded, "omniscient"), outcome(loaded, "omniscient", mode="mindreaders")
        assert alone["recall"] == knows["recall"] == 1 and knows["rounds"] == 1
        assert alone["rounds"] == products + materials * (products + 1) + 1
        assert alone["optimum"] == knows["optimum"] == pytest.approx(1)


def test_the_owner_answers_a_question_and_a_model_ends_the_game() -> None:
    loaded = generated("linear_program", talk=False)
    analyst, owner = loaded.scenario.names
    assert allowed(loaded, Transcript()) == ((analyst,), ("ask", "state"))
    slot = next(iter(slots_of(**{key: loaded.scenario.game["public"][key] for key in ("products", "materials")})))
    assert allowed(loaded, after(loaded, (analyst, move("ask", slot)))) == ((owner,), ("answer",))
    ends = [play(loaded, player).acts[-1].action.type for player in ("asker", "never-states")]
    assert ends == ["state", "answer"]
    with pytest.raises(InvalidInput, match="products 1 to 4"):
        generated("linear_program", products=5)


@pytest.mark.parametrize("game", ["car_dealer", "recommendation", "films", "linear_program"])
def test_every_player_ends_with_every_parameter_that_ships(game: str) -> None:
    family = FAMILIES[game]
    assert isinstance(family, Game)
    for (number, parameters), player in product(enumerate(family.bundled.values()), family.players):
        for mode in ("agents", "mindreaders"):
            found = outcome(generated(game, number, **parameters), player, mode=mode)
            assert found["success"] in (0, 1), (player, parameters)


@pytest.mark.parametrize("game", ["car_dealer", "recommendation", "films", "linear_program"])
def test_what_is_hidden_is_in_no_setting_and_a_read_file_plays_alike(game: str) -> None:
    for seed in range(5):
        loaded = generated(game, seed)
        read = parse_scenario(dump_scenario(FAMILIES[game].generate(f"{game}_{seed:02d}", seed, {})), "x.yaml")
        assert play(read, "auto", seed=seed) == play(loaded, "auto", seed=seed)
        for agent in loaded.scenario.agents:
            assert not any(fact.text.rstrip(".") in loaded.scenario.setting for fact in agent.facts)
