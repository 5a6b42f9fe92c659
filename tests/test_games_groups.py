"""Closed forms of the games of groups: known probabilities, what is told to whom, and what good players reach."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb, prod
from statistics import fmean
from typing import Any

import pytest

from localsim.conversation.episode import Mode
from localsim.conversation.rules.deciding import slots
from localsim.conversation.rules.lines import Bound
from localsim.conversation.rules.steps import Act, Tell
from localsim.conversation.scenario import Fact, LoadedScenario, Scenario
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.conversation.visibility import observe
from localsim.errors import InvalidInput
from localsim.families import FAMILIES, rules_of
from localsim.families.games.base import Game, addressed, check_values, move
from localsim.families.games.groups.hidden_role import wolves_win
from localsim.families.games.groups.jury import leaning, right
from localsim.families.games.groups.peer_review import TRUE, WORTH
from localsim.families.games.groups.restaurant import outcomes
from tests.conftest import generated
from tests.games import after, outcome, play, scores_of

GROUPS = ("jury", "hidden_role", "peer_review", "restaurant")


def say(index: int, name: str, text: str) -> Turn:
    """A turn of plain speech."""
    return Turn(index, name, Action("speak", text))


def step_after(loaded: LoadedScenario, talk: Transcript) -> Any:
    """What the rules ask for after a transcript."""
    rules = rules_of(loaded.scenario)
    assert rules is not None
    return rules.next(loaded.scenario, talk, 1)


def values_of(loaded: LoadedScenario, kind: str) -> dict[str, str]:
    """The value of a kind of private fact of each agent that has one."""
    wanted = {agent.name: f"{agent.name}_{kind}" for agent in loaded.scenario.agents}
    return {
        agent.name: fact.terms[0]
        for agent in loaded.scenario.agents
        for fact in agent.facts
        if fact.id == wanted[agent.name]
    }


# ---- what games share ----------------------------------------------------------------------------------------------


def test_the_one_who_is_named_first_speaks_next_else_the_next_in_order() -> None:
    names = ("Ana", "Bo", "Cy")
    assert addressed(names, Transcript()) == "Ana"
    assert addressed(names, Transcript((say(0, "Ana", "What do Cy and Bo think?"),))) == "Cy"
    assert addressed(names, Transcript((say(0, "Cy", "I, Cy, know nothing. Boring!"),))) == "Ana"
    assert addressed(names, Transcript((say(0, "Bo", "Hm."),))) == "Cy"


def test_a_value_that_a_game_does_not_allow_is_one_clear_error() -> None:
    allowed = {"n": (1, 3), "kind": ("one", "two")}
    check_values("g", {"n": 3, "kind": "two"}, allowed)
    with pytest.raises(InvalidInput, match="g: n = 4 is not possible"):
        check_values("g", {"n": 4, "kind": "two"}, allowed)
    with pytest.raises(InvalidInput, match="g: kind = 'three' is not known"):
        check_values("g", {"n": 1, "kind": "three"}, allowed)


@pytest.mark.parametrize(
    ("game", "parameters", "message"),
    [
        ("jury", {"jurors": 2}, "jurors = 2 is not possible"),
        ("jury", {"evidence": 2}, "leaves jurors without a side"),
        ("jury", {"evidence": 1, "case": "planted"}, "leaves jurors without a side"),
        ("jury", {"jurors": 12, "evidence": 5}, "there are only"),
        ("jury", {"rule": "dictator"}, "'dictator' is not known"),
        ("hidden_role", {"players": 4, "wolves": 2}, "end the game before a vote"),
        ("hidden_role", {"players": 3, "first": "night"}, "end the game before a vote"),
        ("hidden_role", {"wolves": 0}, "end the game before a vote"),
        ("peer_review", {"reviewers": 7}, "reviewers = 7 is not possible"),
        ("restaurant", {"people": 9}, "people = 9 is not possible"),
        ("restaurant", {"people": 3, "vetoes": 4}, "vetoes = 4 is not possible"),
    ],
)
def test_impossible_parameters_are_refused(game: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        generated(game, **parameters)


@pytest.mark.parametrize("game", GROUPS)
def test_every_player_ends_every_scenario_that_ships(game: str) -> None:
    family = FAMILIES[game]
    assert isinstance(family, Game)
    for parameters in family.bundled.values():
        loaded = generated(game, 5, **parameters)
        modes: tuple[Mode, ...] = ("agents", "mindreaders")
        for player, mode in product((*family.players, "any"), modes):
            talk = play(loaded, player, mode=mode)
            assert scores_of(loaded, talk), (parameters, player)
            assert len(talk.acts) <= loaded.scenario.limits.turns


# ---- jury ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.3, 0.5, 0.6, 0.8])
def test_condorcets_sum_is_what_counting_all_votes_gives(p: float) -> None:
    for n in range(1, 8):
        counted = sum(
            prod(p if vote else 1 - p for vote in votes)
            for votes in product((True, False), repeat=n)
            if 2 * sum(votes) > n
        )
        assert right(n, p) == pytest.approx(counted)
    assert right(3, 0.7) == pytest.approx(0.784) and right(5, 0.6) == pytest.approx(0.68256)
    assert right(101, p) < right(1, p) if p < 0.5 else right(101, p) >= right(1, p) - 1e-9


def with_evidence(loaded: LoadedScenario, correct: tuple[int, ...], each: int) -> LoadedScenario:
    """The case with so many correct pieces of evidence for each juror."""
    truth = str(loaded.answer.answer["truth"])
    wrong = "innocent" if truth == "guilty" else "guilty"
    agents = []
    for number, (agent, count) in enumerate(zip(loaded.scenario.agents, correct, strict=True)):
        says = [truth] * count + [wrong] * (each - count)
        facts = tuple(
            Fact(id=f"{agent.name}_{n}", text=f"The w{number}x{n} says that Tim is {side}.", terms=(f"w{number}x{n}",))
            for n, side in enumerate(says)
        )
        agents.append(agent.model_copy(update={"facts": facts}))
    scenario = loaded.scenario.model_copy(update={"agents": tuple(agents)})
    return LoadedScenario(scenario, loaded.answer, loaded.path)


def test_all_cases_together_give_condorcets_rate_and_the_better_one_of_all_evidence() -> None:
    n, each, p = 3, 3, 0.7
    loaded = generated("jury", jurors=n, evidence=each)
    rates = {"own": 0.0, "pooling": 0.0}
    for correct in product(range(each + 1), repeat=n):
        weight = prod(comb(each, k) * p**k * (1 - p) ** (each - k) for k in correct)
        case = with_evidence(loaded, correct, each)
        for player in rates:
            rates[player] += weight * outcome(case, player)["success"]
    assert rates["own"] == pytest.approx(right(n, right(each, p)))
    assert rates["pooling"] == pytest.approx(right(n * each, p))
    assert rates["pooling"] > rates["own"] + 0.01 > right(1, p) + 0.1


@pytest.mark.parametrize("jurors", [3, 6, 12])
def test_a_hidden_profile_misleads_each_juror_and_is_solved_by_all_evidence(jurors: int) -> None:
    loaded = generated("jury", 3, jurors=jurors, case="planted")
    truth = loaded.answer.answer["truth"]
    sides = {
        agent.name: leaning(fact.text.rsplit(" ", 1)[1].rstrip(".") for fact in agent.facts)
        for agent in loaded.scenario.agents
    }
    assert truth not in sides.values() and "" not in sides.values()
    alone, together = outcome(loaded, "own"), outcome(loaded, "pooling")
    assert (alone["success"], alone["solved"], alone["evidence"], alone["common"]) == (0, 0, 0, 0)
    assert (together["success"], together["solved"], together["evidence"], together["common"]) == (1, 1, 1, 1)
    assert outcome(loaded, "own", mode="mindreaders")["success"] == 0
    assert outcome(loaded, "omniscient", mode="mindreaders")["success"] == 1


def test_only_said_evidence_counts_as_said() -> None:
    loaded = generated("jury", 2, jurors=3, evidence=1)
    one, two, three = loaded.scenario.names
    (witness,) = loaded.scenario.agents[0].facts[0].terms
    spoken = [(one, say(0, one, f"I met the {witness}.").action), (two, say(0, two, "No.").action),
              (three, say(0, three, "Hm.").action)]  # fmt: skip
    talk = after(loaded, *spoken, *((name, move("vote", "guilty")) for name in (one, two, three)))
    assert scores_of(loaded, talk)["evidence"] == pytest.approx(1 / 3)
    assert talk.told[-1].action.values == ("guilty", "3", "0")


def test_a_jury_that_must_agree_goes_on_until_it_does_or_has_no_ballot_left() -> None:
    loaded = generated("jury", 1, jurors=3, rule="unanimity", ballots=3, rounds=0)
    names = loaded.scenario.names
    split = [(name, move("vote", side)) for name, side in zip(names, ("guilty", "guilty", "innocent"), strict=True)]
    agreed = [(name, move("vote", "guilty")) for name in names]
    hung = after(loaded, *split, *split, *split)
    assert [turn.value for turn in hung.told] == ["none"] * 3
    found = scores_of(loaded, hung)
    assert found["hung"] == 1 and found["success"] == 0 and found["agreement"] == pytest.approx(2 / 3)
    done = after(loaded, *split, *agreed)
    assert [turn.value for turn in done.told] == ["none", "guilty"] and scores_of(loaded, done)["hung"] == 0
    majority = generated("jury", 1, jurors=3, rounds=0)
    assert after(majority, *split).told[-1].value == "guilty"


def test_a_tied_jury_has_no_verdict() -> None:
    loaded = generated("jury", 1, jurors=4, rounds=0)
    sides = ("guilty", "guilty", "innocent", "innocent")
    votes = [(name, move("vote", side)) for name, side in zip(loaded.scenario.names, sides, strict=True)]
    assert scores_of(loaded, after(loaded, *votes))["hung"] == 1


def test_nobody_reads_anothers_vote_and_the_addressed_one_speaks_next() -> None:
    loaded = generated("jury", 1, jurors=3, order="addressed")
    names = loaded.scenario.names
    talk = play(loaded, "pooling")
    assert [turn.speaker for turn in talk.of("speak")] == list(names)
    asked = after(loaded, (names[0], say(0, names[0], f"And you, {names[2]}?").action))
    assert step_after(loaded, asked).speakers == (names[2],)
    seen = observe(loaded.scenario, "agents", names[0], talk).transcript
    assert [turn.speaker for turn in seen.of("vote")] == [names[0]]


# ---- hidden roles --------------------------------------------------------------------------------------------------


def double_factorial(n: int) -> int:
    """n!! = n (n - 2) (n - 4) ..."""
    return prod(range(n, 0, -2))


def test_one_wolf_wins_with_the_quotient_of_double_factorials() -> None:
    for n in range(2, 31):
        assert wolves_win(n, 1, parity=False) == Fraction(double_factorial(n - 1), double_factorial(n))
    for n in range(3, 31, 2):
        assert wolves_win(n, 1) == wolves_win(n, 1, parity=False), "with an odd number both ends are the same"
    assert wolves_win(5, 1) == Fraction(8, 15) and wolves_win(4, 1) == Fraction(3, 4)
    assert wolves_win(7, 2) == Fraction(27, 35) and wolves_win(3, 0) == 0 and wolves_win(4, 2) == 1


def test_the_chance_of_wolves_is_what_going_through_all_games_gives() -> None:
    def won(village: tuple[str, ...], day: bool) -> Fraction:
        wolves = village.count("w")
        if wolves == 0 or 2 * wolves >= len(village):
            return Fraction(wolves > 0)
        if day:
            rest = [village[:k] + village[k + 1 :] for k in range(len(village))]
            return sum((won(left, day=False) for left in rest), Fraction(0)) / len(rest)
        killed = village.index("v")
        return won(village[:killed] + village[killed + 1 :], day=True)

    for players, wolves in ((5, 1), (6, 2), (7, 2), (8, 3)):
        village = ("w",) * wolves + ("v",) * (players - wolves)
        assert wolves_win(players, wolves) == won(village, day=True)
        assert wolves_win(players, wolves, day=False) == won(village, day=False)


@pytest.mark.parametrize(("parameters", "chance"), [({"players": 5, "wolves": 1, "rounds": 0}, wolves_win(5, 1)),
    ({"players": 4, "wolves": 1, "rounds": 0, "ends": "last"}, wolves_win(4, 1, parity=False))])  # fmt: skip
def test_random_players_win_as_often_as_computed(parameters: dict[str, Any], chance: Fraction) -> None:
    loaded, games, p = generated("hidden_role", 1, **parameters), 1000, float(chance)
    lost = sum(1 - scores_of(loaded, play(loaded, "any", seed=seed))["village_won"] for seed in range(games))
    assert abs(lost / games - p) < 3.3 * (p * (1 - p) / games) ** 0.5


def test_wolves_alone_are_told_of_each_other_and_alone_read_their_own_choice() -> None:
    loaded = generated("hidden_role", 4, seer=True, first="night")
    wolves = set(loaded.answer.answer["wolves"])
    seer = next(name for name, role in values_of(loaded, "role").items() if role == "seer")
    talk = play(loaded, "loyal")
    assert set(talk.told[0].readers or ()) == wolves
    for name in loaded.scenario.names:
        seen = observe(loaded.scenario, "agents", name, talk).transcript
        assert any(turn.value == "wolves" for turn in seen.told) == (name in wolves)
        assert {turn.speaker for turn in seen.of("kill", "look")} <= {name}
        assert any(turn.value == "seen" for turn in seen.told) == (name == seer)
    told = {turn.action.values for turn in talk.told if turn.value == "seen"}
    assert told and all(values and (values[2] == "wolf") == (values[1] in wolves) for values in told)


def test_who_is_out_acts_no_more_and_cannot_be_named() -> None:
    loaded = generated("hidden_role", 2)
    wolves, talk, beats = set(loaded.answer.answer["wolves"]), Transcript(), 0
    full = play(loaded, "any")
    for end in range(len(full)):
        talk = Transcript(full.turns[:end])
        out = {(turn.action.values or ())[1] for turn in talk.told if turn.value in ("day", "night")}
        if full.turns[end].beat != end or not isinstance(step := step_after(loaded, talk), Act) or not out:
            continue
        beats += 1
        assert not out & set(step.speakers)
        for slot in slots(loaded.scenario, talk, step):
            for way in slot.ways:
                if isinstance(way, Bound):
                    assert not out & set(way.others) and slot.speaker not in way.others
                    assert way.name != "kill" or (slot.speaker in wolves and not wolves & set(way.others))
    assert beats > 2


@pytest.mark.parametrize(("players", "wolves"), [(5, 1), (7, 2), (9, 3), (12, 4)])
def test_a_village_that_sees_all_roles_wins_in_as_many_days_as_there_are_wolves(players: int, wolves: int) -> None:
    loaded = generated("hidden_role", 3, players=players, wolves=wolves)
    found = outcome(loaded, "omniscient", mode="mindreaders")
    assert (found["village_won"], found["days"], found["aim"], found["caught"]) == (1, wolves, 1, 1)


def test_the_votes_decide_and_a_tie_is_drawn_by_lot() -> None:
    loaded = generated("hidden_role", 1, players=5, wolves=1, rounds=0)
    names, wolf = loaded.scenario.names, loaded.answer.answer["wolves"][0]
    village = [name for name in names if name != wolf]
    ballots = [(name, move("vote", wolf if name != wolf else village[0])) for name in names]
    caught = after(loaded, *ballots)
    assert caught.told[-1].action.values == ("day", wolf, "wolf", "villagers")
    assert scores_of(loaded, caught)["payoff", wolf] == 0
    circle = [(name, move("vote", names[(n + 1) % 5])) for n, name in enumerate(names)]
    drawn = {(after(loaded, *circle, seed=seed).told[1].action.values or ())[1] for seed in range(40)}
    assert drawn == set(names)


def test_roles_stay_hidden_where_they_are_not_revealed() -> None:
    for reveal in (True, False):
        talk = play(generated("hidden_role", 6, reveal=reveal), "any")
        ended = [turn.action.text for turn in talk.told if turn.value in ("day", "night")]
        assert all((", a " in text) == reveal for text in ended)


def test_villagers_who_trust_the_seer_vote_for_the_wolf_that_was_seen() -> None:
    found = 0
    for seed in range(1, 12):
        loaded = generated("hidden_role", seed, seer=True, first="night")
        talk, wolves = play(loaded, "loyal"), set(loaded.answer.answer["wolves"])
        for turn in talk.of("speak"):
            if "I am the seer" in turn.action.text:
                named = turn.action.text.removesuffix(" is a wolf.").rpartition(" ")[2]
                votes = [vote for vote in talk.of("vote") if vote.index > turn.index][: len(loaded.scenario.names)]
                beat = [vote for vote in votes if vote.beat == votes[0].beat and vote.speaker not in wolves]
                assert beat and {vote.value for vote in beat} == {named} and named in wolves
                found += 1
                break
    assert found > 2


# ---- peer review ---------------------------------------------------------------------------------------------------


def test_threads_have_three_turns_for_each_reviewer_and_one_decision() -> None:
    loaded = generated("peer_review", rounds=0)
    talk = play(loaded, "fair")
    kinds = [turn.action.type for turn in talk.acts]
    assert kinds == ["review"] * 3 + ["rebut"] * 3 + ["score"] * 3 + ["decide"]
    assert [turn.value for turn in talk.of("rebut")] == loaded.scenario.game["public"]["reviewers"]


def test_before_the_discussion_no_reviewer_reads_anothers_thread() -> None:
    loaded = generated("peer_review", 2)
    public, talk = loaded.scenario.game["public"], play(loaded, "fair")
    opened = next(turn.index for turn in talk.told if turn.readers is None)
    before = Transcript(talk.turns[:opened])
    for name in public["reviewers"]:
        seen = observe(loaded.scenario, "agents", name, before).transcript
        assert not seen.told and {turn.speaker for turn in seen.of("review")} == {name}
        assert [turn.value for turn in seen.of("rebut")] == [name]
    assert not observe(loaded.scenario, "agents", public["chair"], before).transcript.turns
    assert [turn.value for turn in talk.told[:3]] == public["reviewers"], "then each thread is opened"
    closed = generated("peer_review", 2, rounds=0)
    told = [turn.readers for turn in play(closed, "fair").told]
    assert told == [(closed.scenario.game["public"]["chair"],)] * 3 + [None]


def f1(found: list[dict[Any, float]]) -> float:
    """F1 of decisions to accept, from the scores of episodes."""
    both = sum(scores["accepted"] * scores["deserved"] for scores in found)
    return 2 * both / (sum(scores["accepted"] for scores in found) + sum(scores["deserved"] for scores in found))


def test_the_reference_reviewers_make_no_error_and_decide_right() -> None:
    papers = [generated("peer_review", seed, bar=5) for seed in range(20)]
    fair = [outcome(paper, "fair") for paper in papers]
    assert all(found["error"] == 0 and found["success"] == found["honest"] == found["follows"] == 1 for found in fair)
    assert f1(fair) == 1 and 0 < sum(found["deserved"] for found in fair) < 20
    eager = [outcome(paper, "accept-all") for paper in papers]
    share = sum(found["deserved"] for found in fair) / 20
    assert f1(eager) == pytest.approx(2 * share / (1 + share)) and f1(eager) < 1
    for found in (fair, eager):
        values = [value for scores in found for name, value in scores.items() if name[0] == "f1"]
        assert fmean(values) == pytest.approx(f1(found)), "the measure is F1"


def test_a_bluff_moves_reviewers_who_cannot_see_that_it_is_one() -> None:
    for seed in range(6):
        loaded = generated("peer_review", seed)
        author, n = loaded.scenario.agents[0], 3
        weak = sum(fact.terms[0] == TRUE for fact in author.facts)
        found = outcome(loaded, "bluff")
        assert found["error"] == pytest.approx(WORTH * weak / n) and found["honest"] == pytest.approx(1 - weak / n)
        assert outcome(loaded, "bluff", mode="mindreaders")["error"] == 0
        assert outcome(loaded, "stubborn")["error"] == pytest.approx(WORTH * (n - weak) / n)


def test_agreement_is_one_minus_the_mean_distance_in_parts_of_nine_points() -> None:
    loaded = generated("peer_review", 1, rounds=0)
    public = loaded.scenario.game["public"]
    reviewers, chair = public["reviewers"], public["chair"]
    acts = [
        (name, move("review", public["author"], n, text="So.")) for name, n in zip(reviewers, (1, 5, 10), strict=True)
    ]
    acts += [(public["author"], move("rebut", name, "admit")) for name in reviewers]
    acts += [(name, move("score", n, 5)) for name, n in zip(reviewers, (4, 4, 7), strict=True)]
    talk = after(loaded, *acts, (chair, move("decide", "accept")))
    found = scores_of(loaded, talk)
    assert found["agreement_first"] == pytest.approx(1 - (4 + 9 + 5) / 3 / 9)
    assert found["agreement"] == pytest.approx(1 - (0 + 3 + 3) / 3 / 9)
    assert found["moved"] == pytest.approx((3 - 1 - 3) / 3) and found["follows"] == 0, "a mean of 5 is below 6"
    assert any(turn.action.text.endswith("is 5.00.") for turn in talk.told)


# ---- restaurant ----------------------------------------------------------------------------------------------------


def worth_of(scenario: Scenario) -> dict[str, int]:
    """The points of all people together for each place, where nobody can be kept away."""
    facts = {fact.id: fact.terms[0] for agent in scenario.agents for fact in agent.facts}
    total = dict.fromkeys(scenario.game["public"]["places"], 0)
    for name in scenario.names:
        for place, points in zip(total, facts[f"{name}_points"].split(), strict=True):
            total[place] += int(points)
    return {place: 0 if place in facts.values() else points for place, points in total.items()}


def test_an_open_group_takes_the_best_place_and_a_yes_sayer_the_first() -> None:
    for seed in range(25):
        loaded = generated("restaurant", seed)
        worth = worth_of(loaded.scenario)
        talk = play(loaded, "open")
        assert worth[talk.told[-1].value] == max(worth.values())
        found = scores_of(loaded, talk)
        assert found["welfare"] == found["success"] == found["veto_kept"] == 1
        first = outcome(loaded, "yes-sayer")
        assert first["welfare"] == pytest.approx(worth["grill"] / max(worth.values()))
        assert outcome(loaded, "fair-minded")["fairness"] == 1


def test_with_one_veto_of_four_places_the_first_place_is_free_in_three_of_four_cases() -> None:
    tastes = ("1 2 3 4", "4 3 2 1", "5 5 5 5")
    places = ("a", "b", "c", "d")
    kept = [sum(outcomes(places, tastes, [veto])["a"]) > 0 for veto in places]
    assert sum(kept) / len(kept) == 0.75
    assert outcomes(places, tastes, ["b"]) == {"a": [1, 4, 5], "b": [0, 0, 0], "c": [3, 2, 5], "d": [4, 1, 5]}


def test_a_hidden_veto_is_broken_exactly_where_the_others_like_the_place_best() -> None:
    broken = 0
    for seed in range(30):
        loaded = generated("restaurant", seed, people=4)
        points = values_of(loaded, "points")
        ((_, veto),) = values_of(loaded, "veto").items()
        places = loaded.scenario.game["public"]["places"]
        sums = [sum(int(each.split()[n]) for each in points.values()) for n in range(len(places))]
        found = outcome(loaded, "guarded")
        liked = places[sums.index(max(sums))] == veto
        assert found["veto_kept"] == (not liked)
        if liked:
            broken += 1
            assert found["welfare"] == found["fairness"] == 0 and found["success"] == 0
        assert outcome(loaded, "guarded", mode="mindreaders")["veto_kept"] == 1
    assert 0 < broken < 30


def test_approvals_are_counted_and_a_tie_goes_to_the_first_place() -> None:
    loaded = generated("restaurant", 1, people=3, places=3, rounds=0, vetoes=0)
    acts = [
        (name, move("approve", *vote))
        for name, vote in zip(
            loaded.scenario.names, (("no", "yes", "no"), ("no", "yes", "yes"), ("no", "no", "yes")), strict=True
        )
    ]
    talk = after(loaded, *acts)
    assert talk.told[-1].action.values == ("noodle bar", "0", "2", "2")
    step = step_after(loaded, Transcript(talk.turns[:3]))
    assert isinstance(step, Tell) and step.readers is None
    seen = observe(loaded.scenario, "agents", loaded.scenario.names[0], talk).transcript
    assert len(seen.of("approve")) == 1, "the ballots are secret"
