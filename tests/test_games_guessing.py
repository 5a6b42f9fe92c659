"""Closed forms of the guessing games: LMRL-Gym's rewards, and what players of known behaviour reach."""

from __future__ import annotations

import math
from statistics import mean

import pytest

from localsim.conversation.episode import Mode
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.errors import InvalidInput
from localsim.families.games.base import move
from localsim.families.games.guessing.guess_city import GuessCity
from localsim.families.games.guessing.maze import BEST, MAZES, STEPS, WORST, Plan, distances, normalised
from localsim.families.games.guessing.naming import NO_CLUE, Naming
from localsim.families.games.guessing.twenty_questions import KINDS, TRAITS, TwentyQuestions, objects
from localsim.families.games.guessing.wordle import WORDS, fitting, marks
from tests.conftest import generated
from tests.games import after, outcome, play, scores_of

NAMING: tuple[Naming, ...] = (TwentyQuestions(), GuessCity())


def ask(text: str) -> Action:
    """A question."""
    return move("ask", text=text)


# ---- twenty questions and guess my city ----------------------------------------------------------------------------


@pytest.mark.parametrize("game", NAMING, ids=lambda game: game.name)
def test_all_things_of_a_list_differ_and_halving_names_each_of_them(game: Naming) -> None:
    assert len({tuple(answers.values()) for answers in game.things.values()}) == len(game.things)
    returns = [outcome(generated(game.name, meant=thing), "halving")["return"] for thing in game.things]
    assert all(-20 < value <= 0 for value in returns)
    most = max(len({answers[key] for answers in game.things.values()}) for key in game.asked)
    if most == 2:
        assert 1 - math.log2(len(returns)) >= mean(returns) > -8, "no questions for yes or no can do better"
    else:
        assert -2 < mean(returns) <= -1, "open questions are worth more"


def test_the_list_of_objects_has_nine_of_each_of_17_kinds() -> None:
    found = objects()
    assert len(KINDS) == 17 and all(sum(kind in traits for traits in found.values()) == 9 for kind in KINDS)
    assert all(traits <= {*KINDS, *TRAITS} for traits in found.values())


def test_each_question_costs_one_and_the_one_that_names_the_object_nothing() -> None:
    loaded = generated("twenty_questions", meant="hammer")
    asker, answerer = loaded.scenario.names
    played = [
        (asker, ask("Is it a tool?")), (answerer, move("answer", "yes")),
        (asker, ask("Is it a saw?")), (answerer, move("answer", "no")),
        (asker, ask("So is it a hammer?")),
    ]  # fmt: skip
    found = scores_of(loaded, after(loaded, *played))
    assert found["success"] == 1 and found["return"] == -2 and found["true"] == found["checked"] == 1
    assert found["first_name"] == 0 and found["first_name_chance"] == pytest.approx(1 / 9), "nine objects are tools"
    lost = outcome(loaded, "never-names")
    assert lost["success"] == 0 and lost["return"] == -20 and "first_name" not in lost


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("Is it a hammer?", "hammer"),
        ("Are you thinking of hammers", "hammer"),
        ("Is the object called TV?", "television"),
        ("Is it made of the same wood as a hammer?", None),
        ("Is it a hammer or a saw?", None),
        ("Can I hit a nail with a hammer?", None),
        ("Is it a tool?", None),
        ("?", None),
    ],
)
def test_a_question_names_an_object_only_if_it_asks_for_nothing_else(question: str, named: str | None) -> None:
    assert TwentyQuestions().named(question) == named


def test_a_wrong_answer_is_found_and_the_turn_is_cited() -> None:
    loaded = generated("twenty_questions", meant="dog")
    asker, answerer = loaded.scenario.names
    talk = after(
        loaded,
        (asker, ask("Is it a bird?")), (answerer, move("answer", "yes")),
        (asker, ask("Is it a bird?")), (answerer, move("answer", "no")),
        (asker, ask("Does it like cheese?")), (answerer, move("answer", "yes")),
    )  # fmt: skip
    scores = {score.name: score for score in TwentyQuestions().score(talk, loaded.scenario, loaded.answer)}
    assert scores["true"].value == 0.5 and scores["true"].turns == (1,)
    assert scores["checked"].value == pytest.approx(2 / 3), "nobody knows what it likes"


def test_who_knows_the_object_is_right_beyond_chance_and_who_halves_is_not() -> None:
    loaded = generated("twenty_questions", meant="violin")
    seen = outcome(loaded, "halving", mode="mindreaders")
    assert seen["return"] == 0 and seen["first_name"] == 1 and seen["first_name_chance"] == pytest.approx(1 / 153)
    honest = outcome(loaded, "halving", mode="agents")
    assert honest["return"] < -4 and honest["first_name_chance"] >= 0.5


def test_naming_one_object_after_the_other_finds_those_at_the_front_of_the_list() -> None:
    first = list(objects())
    assert outcome(generated("twenty_questions", meant=first[4]), "lister")["return"] == -4
    assert outcome(generated("twenty_questions", meant=first[19]), "lister")["return"] == -19
    assert outcome(generated("twenty_questions", meant=first[20]), "lister")["success"] == 0


def test_few_listed_objects_are_named_in_the_setting_and_soon_found() -> None:
    loaded = generated("twenty_questions", listed=8, questions=6)
    listed = loaded.scenario.game["public"]["listed"]
    assert len(listed) == 8 and all(name in loaded.scenario.setting for name in listed)
    returns = [outcome(generated("twenty_questions", seed, listed=8), "halving")["return"] for seed in range(12)]
    assert min(returns) >= -6 and mean(returns) <= -1, "log2(8) - 1 = 2 on average at best"


def test_an_answer_in_words_is_read_and_one_with_the_name_is_counted() -> None:
    loaded = generated("guess_city", meant="Budapest")
    asker, answerer = loaded.scenario.names
    told = move("answer", text="The Danube, of course, as in Vienna.")
    talk = after(loaded, (asker, ask("Which river flows through your city?")), (answerer, told))
    assert scores_of(loaded, talk)["true"] == 1 and scores_of(loaded, talk)["given_away"] == 0
    assert GuessCity().fitting((), [("river", "Danube")]) == ["Vienna", "Budapest", "Belgrade"]
    found = outcome(loaded, "gives-away")
    assert found["given_away"] == 1 and found["return"] == -1
    assert GuessCity().named("Do you come from New York?") == "New York"


def test_a_scripted_player_makes_out_questions_in_other_words() -> None:
    game = GuessCity()
    assert game.loosely("What country?") == "country" and game.key_of("What country?") is None
    assert game.loosely(NO_CLUE) is None and TwentyQuestions().loosely("Is it metal?") == "metal"
    assert game.read("capital", _answer("Yes, it is.")) == "yes" and game.read("sea", _answer("No idea")) is None


@pytest.mark.parametrize(
    ("parameters", "words"),
    [({"questions": 21}, "from 1 to 20"), ({"listed": 1}, "nor from 2"), ({"meant": "unicorn"}, "'unicorn'")],
)
def test_a_parameter_of_naming_that_is_wrong_is_one_clear_error(parameters: dict[str, object], words: str) -> None:
    for game in NAMING:
        with pytest.raises(InvalidInput, match=words):
            game.generate("g", 1, parameters)


# ---- wordle --------------------------------------------------------------------------------------------------------


def test_marks_are_those_of_lmrl_gym_and_fitting_words_have_them() -> None:
    assert marks("crane", "react") == "??+-?" and marks("crane", "crane") == "+++++"
    assert marks("goose", "robot") == "-+?--", "a letter that is in the word is marked wherever it is guessed"
    assert len(WORDS) == len(set(WORDS)) and all(len(word) == 5 and word.isalpha() for word in WORDS)
    left = fitting([("crane", marks("crane", "bread"))], [(1, "b")])
    assert "bread" in left and all(word[0] == "b" and "c" not in word for word in left)


def test_the_winning_guess_costs_nothing_and_a_wrong_word_one() -> None:
    loaded = generated("wordle", word="grape", redraw=False)
    one, other = loaded.scenario.names
    talk = after(loaded, (one, move("guess", "xxxxx")), (other, move("guess", "grade")), (one, move("guess", "grape")))
    found = scores_of(loaded, talk)
    assert found["success"] == 1 and found["return"] == -2 and found["invalid"] == pytest.approx(1 / 3)
    assert [turn.value for turn in talk.told] == ["invalid", "+++-+", "+++++"]
    lost = outcome(loaded, "no-word")
    assert lost["return"] == -6 and lost["success"] == 0


def test_the_word_is_drawn_again_from_those_that_still_fit() -> None:
    loaded = generated("wordle", word="grape", clues=False)
    first = loaded.scenario.names[0]
    found = {after(loaded, (first, move("guess", "crane")), seed=seed).told[0].value for seed in range(20)}
    assert len(found) > 1, "the seed decides which word is drawn"
    fixed = generated("wordle", word="grape", clues=False, redraw=False)
    assert {after(fixed, (first, move("guess", "crane")), seed=seed).told[0].value for seed in range(20)} == {"-++-+"}
    for seed in range(10):
        talk = play(loaded, "careless", seed=seed)
        history = [(turn.value, told.value) for turn, told in zip(talk.of("guess"), talk.told, strict=True)]
        assert fitting(history, ()), "one word has all marks that were told"


def test_drawing_again_has_the_same_probabilities_as_a_fixed_word() -> None:
    """The marks of a second guess, given those of the first: by both rules each fitting word counts once."""
    loaded = generated("wordle", word="grape", clues=False)
    one, other = loaded.scenario.names
    counts: dict[str, int] = {}
    for seed in range(400):
        told = after(loaded, (one, move("guess", "crane")), (other, move("guess", "grape")), seed=seed).told
        counts[told[1].value] = counts.get(told[1].value, 0) + 1
    for pattern, count in counts.items():
        share = sum(marks("grape", word) == pattern for word in WORDS) / len(WORDS)
        assert abs(count / 400 - share) < 4 * math.sqrt(share * (1 - share) / 400) + 1e-9, pattern


def test_the_letter_of_the_other_is_unearned_until_the_other_speaks() -> None:
    loaded = generated("wordle", 3)
    one, other = loaded.scenario.names
    (place, letter), (own_place, own) = loaded.scenario.game["clues"][1], loaded.scenario.game["clues"][0]
    possible = fitting((), [(own_place, own)])
    hit = next(word for word in possible if word[place - 1] == letter)
    found = scores_of(loaded, after(loaded, (one, move("guess", hit))))
    share = sum(word[place - 1] == letter for word in possible) / len(possible)
    assert found["used_letter", one] == 1 and found["used_letter_chance", one] == pytest.approx(share) and share < 1
    told = after(loaded, (one, move("guess", "crane", text="Hello.")), (other, move("guess", "crane")))
    assert ("used_letter", other) not in scores_of(loaded, told), "words may have told it"


def test_reading_the_other_letter_saves_guesses() -> None:
    def returns(player: str, mode: Mode) -> float:
        return mean(outcome(generated("wordle", seed), player, mode=mode, seed=seed)["return"] for seed in range(25))

    assert returns("silent", "mindreaders") > returns("silent", "agents") > returns("careless", "agents")


def test_a_word_that_is_not_in_the_list_is_one_clear_error() -> None:
    with pytest.raises(InvalidInput, match="'qwert' is not in the list"):
        generated("wordle", word="qwert")


# ---- maze ----------------------------------------------------------------------------------------------------------


def test_the_shortest_ways_of_the_double_t_maze_return_the_published_score() -> None:
    plan = MAZES["double_t"]
    away = distances(plan)
    starts = sorted(plan.cells - {plan.goal})
    assert len(starts) == 25 and max(row for row, _ in starts) < 9 and max(column for _, column in starts) < 12
    assert set(away) == plan.cells and plan.goal == (8, 6)
    returns = [outcome(_maze(start), "shortest-way")["return"] for start in starts]
    assert returns == [1 - away[start] for start in starts] and mean(returns) == pytest.approx(BEST)
    assert _ways(plan) == len(plan.cells) - 1, "no circles, so a hand on the wall finds the goal"


def test_who_never_arrives_has_minus_101_and_the_scale_is_the_published_one() -> None:
    found = outcome(_maze((1, 1)), "always-up")
    assert found["return"] == WORST == -STEPS - 1 and found["normalised"] == 0 and found["best_steps"] == 0
    assert [normalised(value) for value in (-101, -83, -6.84)] == [0, 50, 100]
    assert normalised(-92) == 25


def test_a_wall_stops_a_step_which_counts() -> None:
    loaded = generated("maze", maze="u_shape", start_row=3, start_column=1, every=0)
    walker, guide = loaded.scenario.names
    steps = [move("go", way) for way in ("left", "up", "up", "right", "right", "down", "down")]
    talk = after(loaded, *[(walker, step) for step in steps])
    found = scores_of(loaded, talk)
    assert found["return"] == -6 and found["bumps"] == pytest.approx(1 / 7) and "normalised" not in found
    assert talk.told[0].readers == (walker,) and talk.told[1].readers == (guide,)
    assert talk.told[0].action.text == "Walls: right, down, left."


def test_advice_is_worth_the_map_and_reading_the_map_is_worth_advice() -> None:
    def returned(player: str, mode: Mode) -> float:
        return outcome(_maze((1, 11)), player, mode=mode)["return"]

    assert returned("shortest-way", "agents") == returned("silent-guide", "mindreaders") == -11
    assert returned("silent-guide", "agents") == returned("wall-follower", "mindreaders") < -11


def test_with_positions_everybody_is_told_the_place_and_the_goal() -> None:
    loaded = generated("maze", position=True, start_row=5, start_column=6)
    talk = play(loaded, "shortest-way")
    assert talk.told[0].readers is None and talk.told[0].action.values == ("5", "6")
    assert "row 8, column 6" in loaded.scenario.setting
    assert "row 8" not in generated("maze").scenario.setting


@pytest.mark.parametrize(
    ("parameters", "words"),
    [({"maze": "hedge"}, "'hedge'"), ({"steps": 0}, "at least 1"), ({"start_row": 2, "start_column": 2}, "nobody can")],
)
def test_a_parameter_of_the_maze_that_is_wrong_is_one_clear_error(parameters: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        generated("maze", **parameters)


def _maze(start: tuple[int, int]) -> LoadedScenario:
    return generated("maze", start_row=start[0], start_column=start[1])


def _ways(plan: Plan) -> int:
    """The number of pairs of neighbours."""
    return sum(plan.step(cell, direction) != cell for cell in plan.cells for direction in ("down", "right"))


def _answer(text: str) -> Turn:
    return Turn(0, "Ana", move("answer", text=text))


def test_no_game_says_anything_before_the_first_act_but_the_maze() -> None:
    for game in ("twenty_questions", "guess_city", "wordle"):
        assert after(generated(game)) == Transcript()
