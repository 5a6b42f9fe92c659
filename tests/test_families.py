"""Outcome scores of the task families on hand-written turns: known scores are right, unknown ones are absent."""

from __future__ import annotations

from typing import Any

import pytest

from localsim.conversation.episode import Score
from localsim.conversation.scenario import Agent, AnswerKey, Fact, Info, Limits, Scenario
from localsim.conversation.transcript import ACTION_TYPES, Action, Transcript, Turn
from localsim.errors import InvalidInput
from localsim.families import FAMILIES
from localsim.families.vocabulary import FIRST_NAMES


def talk(*lines: str) -> Transcript:
    """Turns from "Sal: text" or "Bree [leave]: text"."""
    turns = []
    for index, line in enumerate(lines):
        head, _, text = line.partition(":")
        name, _, kind = head.partition(" [")
        action = next(known for known in ACTION_TYPES if known.startswith(kind.rstrip("]") or "speak"))
        turns.append(Turn(index, name, Action(action, text.strip())))
    return Transcript(tuple(turns))


def scenario_of(family: str, agents: tuple[Agent, ...], turns: int = 20) -> Scenario:
    return Scenario(
        version=1,
        id=f"{family}_x",
        title="A talk",
        info=Info(what="A talk for tests."),
        setting="Sal is selling a second-hand kayak (blue) for $200. Bree would like to buy it.",
        agents=agents,
        family=family,
        limits=Limits(turns=turns),
    )


def one(scores: list[Score], name: str, agent: str | None = None) -> Score:
    """The only score of that name (of that agent); its absence or a second one is an error."""
    found = [score for score in scores if score.name == name and (agent is None or score.agent == agent)]
    assert len(found) == 1, f"{name}: {found}"
    return found[0]


def names_of(scores: list[Score]) -> set[str]:
    return {score.name for score in scores}


def is_sound(scores: list[Score], length: int) -> None:
    """What every list of scores keeps to, whatever was said."""
    assert len({(score.name, score.agent) for score in scores}) == len(scores), "one score a name and agent"
    for score in scores:
        assert all(0 <= turn < length for turn in score.turns)
        assert score.value is not None or score.label


# ---- bargaining ----------------------------------------------------------------------------------------------------


def bargain(
    *lines: str, seller_target: float = 120, buyer_target: float = 160, turns: int = 20, **more: Any
) -> list[Score]:
    """Scores of a bargain between Sal, who lists a kayak at $200, and Bree."""
    agents = (Agent(name="Sal", goal="Sell the kayak."), Agent(name="Bree", goal="Buy the kayak."))
    zone = [seller_target, buyer_target] if seller_target <= buyer_target else None
    key = {"seller": "Sal", "buyer": "Bree", "list_price": 200}
    key |= {"seller_target": seller_target, "buyer_target": buyer_target, "zone": zone, **more}
    transcript = talk(*lines)
    scores = FAMILIES["craigslist"].score(transcript, scenario_of("craigslist", agents, turns), AnswerKey(key))
    is_sound(scores, len(transcript))
    return scores


def deal_at(price: str, **options: Any) -> list[Score]:
    return bargain("Sal: I ask $200.", f"Bree: How about ${price}?", f"Sal: Deal! ${price} it is.", **options)


def test_a_deal_inside_the_zone() -> None:
    scores = deal_at("150")
    assert one(scores, "ending").label == "deal"
    assert one(scores, "ending").value is None
    assert one(scores, "deal").value == 1
    assert one(scores, "price").value == 150
    assert one(scores, "in_zone").value == 1
    assert one(scores, "success").value == 1
    assert one(scores, "surplus", "Sal").value == pytest.approx(0.15)  # (150 - 120) / 200
    assert one(scores, "surplus", "Bree").value == pytest.approx(0.05)  # (160 - 150) / 200
    assert "walked_away" not in names_of(scores)
    for name in ("ending", "deal", "price", "in_zone", "success", "explicit_end"):
        assert one(scores, name).turns == (2,), f"{name} rests on the turn that agrees"


@pytest.mark.parametrize(
    ("price", "inside", "seller", "buyer"),
    [
        ("120", 1, 0.0, 0.2),  # both ends of the zone belong to it
        ("160", 1, 0.2, 0.0),
        ("119", 0, -0.005, 0.205),
        ("161", 0, 0.205, -0.005),
        ("90", 0, -0.15, 0.35),
        ("137.50", 1, 0.0875, 0.1125),
    ],
)
def test_price_zone_and_surplus(price: str, inside: float, seller: float, buyer: float) -> None:
    scores = deal_at(price)
    assert one(scores, "price").value == float(price)
    assert one(scores, "in_zone").value == inside
    assert one(scores, "success").value == inside, "a deal outside the zone is no success"
    assert one(scores, "deal").value == 1
    assert one(scores, "surplus", "Sal").value == pytest.approx(seller)
    assert one(scores, "surplus", "Bree").value == pytest.approx(buyer)


LEAVES = ("Sal: I ask $200.", "Bree: I can do $90.", "Sal: No, that is too low.", "Bree [leave]: No deal then. Bye!")


def test_walking_away_is_wrong_where_there_is_a_zone() -> None:
    scores = bargain(*LEAVES)
    assert one(scores, "ending").label == "no_deal"
    assert one(scores, "deal").value == 0
    assert one(scores, "walked_away").value == 0
    assert one(scores, "success").value == 0
    assert one(scores, "explicit_end").value == 1
    assert not {"price", "surplus", "in_zone"} & names_of(scores), "there is no price to judge"
    assert one(scores, "ending").turns == (3,)


def test_walking_away_is_right_where_there_is_no_zone() -> None:
    scores = bargain(*LEAVES, seller_target=180, buyer_target=100)
    assert one(scores, "deal").value == 0
    assert one(scores, "walked_away").value == 1
    assert one(scores, "success").value == 1
    assert not {"price", "surplus", "in_zone"} & names_of(scores)


def test_a_deal_without_a_zone_is_no_success() -> None:
    scores = deal_at("140", seller_target=180, buyer_target=100)
    assert one(scores, "deal").value == 1
    assert one(scores, "success").value == 0
    assert one(scores, "surplus", "Sal").value == pytest.approx(-0.2)
    assert one(scores, "surplus", "Bree").value == pytest.approx(-0.2)
    assert not {"in_zone", "walked_away"} & names_of(scores), "no zone to be inside of"


OFFERS = {"concession", "limit_hit", "limit_chance", "limit_unjudged", "peeking"}
"""Scores of offers, which do not depend on the ending."""
UNREADABLE = [
    ("Sal: I ask $200.", "Bree: I can do $90.", "Sal: How about $190?", "Bree: How about $95?"),
    ("Sal: Hello there.", "Bree: Nice weather today."),
    ("Sal [none]:", "Bree [none]:", "Sal [none]:"),
    (),
]


@pytest.mark.parametrize("lines", UNREADABLE)
def test_an_ending_that_cannot_be_read_has_no_outcome(lines: tuple[str, ...]) -> None:
    scores = bargain(*lines)
    assert one(scores, "ending").label == "unknown"
    assert one(scores, "unknown_ending").value == 1
    assert names_of(scores) - OFFERS == {"ending", "unknown_ending"}, "neither a deal nor none, neither right nor wrong"


@pytest.mark.parametrize("lines", [lines for lines in UNREADABLE if lines])
@pytest.mark.parametrize("zone", [True, False])
def test_who_reaches_the_turn_limit_without_agreement_has_no_deal(lines: tuple[str, ...], zone: bool) -> None:
    targets = (120, 160) if zone else (180, 100)
    scores = bargain(*lines, turns=len(lines), seller_target=targets[0], buyer_target=targets[1])
    assert (one(scores, "ending").label, one(scores, "ending").turns) == ("ran_out", (len(lines) - 1,))
    assert one(scores, "unknown_ending").value == 0
    assert one(scores, "deal").value == one(scores, f"deal_with{'' if zone else 'out'}_zone").value == 0
    assert one(scores, "success").value == (0 if zone else 1)
    assert one(scores, "explicit_end").value == 0, "the limit ended it, not words"
    assert not {"walked_away", "price", "surplus"} & names_of(scores)


def test_prices_that_contradict_each_other_are_unknown_and_cite_the_turn() -> None:
    lines = ("Sal: I ask $200.", "Bree: How about $150?", "Sal: Deal!", "Bree: Perfect, deal at $130.")
    for turns in (20, 4):
        scores = bargain(*lines, turns=turns)
        assert (one(scores, "ending").label, one(scores, "ending").turns) == ("unknown", (3,))
        assert names_of(scores) - OFFERS == {"ending", "unknown_ending"}, "neither price is taken, at the limit or not"


@pytest.mark.parametrize("turns", [3, 20])
def test_an_end_is_explicit_if_words_make_it(turns: int) -> None:
    assert one(deal_at("150", turns=turns), "explicit_end").value == 1, "also in the last turn"
    assert one(bargain(*LEAVES, turns=turns + 1), "explicit_end").value == 1
    refused = bargain("Sal: I ask $200.", "Bree: Too much for me. No deal, goodbye.", turns=turns)
    assert one(refused, "explicit_end").value == 1


def test_deals_are_told_apart_by_the_zone() -> None:
    within, without = deal_at("150"), deal_at("140", seller_target=180, buyer_target=100)
    assert one(within, "deal_with_zone").value == one(without, "deal_without_zone").value == 1
    assert "deal_without_zone" not in names_of(within) and "deal_with_zone" not in names_of(without)
    assert one(bargain(*LEAVES), "deal_with_zone").value == 0


# ---- mutual friends ------------------------------------------------------------------------------------------------

LISTS = {"Ana": ("Otto", "Petra", "Selim"), "Bo": ("Selim", "Wanda", "Yusuf")}


def search(*lines: str, turns: int = 20, lists: dict[str, tuple[str, ...]] = LISTS) -> list[Score]:
    """Scores of a search for a common friend; by default Selim is the only one."""
    agents = tuple(
        Agent(
            name=name,
            goal="Find a common friend.",
            facts=tuple(
                Fact(id=f"{name.lower()}_{number}", text=f"{friend} likes chess.", terms=(friend,))
                for number, friend in enumerate(friends)
            ),
        )
        for name, friends in lists.items()
    )
    common = sorted(set.intersection(*map(set, lists.values())))
    transcript = talk(*lines)
    scores = FAMILIES["mutual_friends"].score(
        transcript, scenario_of("mutual_friends", agents, turns), AnswerKey({"mutual_friends": common})
    )
    is_sound(scores, len(transcript))
    return scores


FOUND = (
    "Ana: Do you know Otto?",
    "Bo: No, I do not know Otto. Do you know Wanda?",
    "Ana: No, I do not know Wanda. Do you know Selim?",
    "Bo: Yes, I know Selim too!",
    "Ana [leave]: What a small world! Goodbye!",
)


def test_a_friend_found_and_confirmed() -> None:
    scores = search(*FOUND)
    assert one(scores, "success").value == 1
    assert one(scores, "success").turns == (2, 3), "who names and who affirms"
    assert (one(scores, "named").value, one(scores, "named").agent) == (1, "Ana")
    mention = one(scores, "first_mention")
    assert (mention.value, mention.label, mention.turns) == (0.5, "Selim", (2,))
    assert "Ana names Selim" in mention.reason
    assert (one(scores, "first_mention_turn").value, one(scores, "friend_rank").value) == (3, 3)
    wrong = one(scores, "wrong_guesses")
    assert (wrong.value, wrong.label) == (2, "Otto, Wanda")
    assert one(scores, "explicit_end").value == 1
    assert one(scores, "explicit_end").turns == (4,)


@pytest.mark.parametrize(
    ("lines", "position", "by"),
    [
        (("Ana: Do you know Selim?",), 0.0, "Ana"),  # a talk of one turn has no end to measure against
        (("Ana: Do you know Selim?", "Bo: Yes, I know Selim too!"), 0.0, "Ana"),
        (("Ana: Hello.", "Bo: Do you know Selim?"), 1.0, "Bo"),
        (("Ana: Hello.", "Bo: Hi.", "Ana: Chess?", "Bo: Do you know Selim?", "Ana: Yes, I know Selim!"), 0.75, "Bo"),
        (("Ana: Hi.", "Bo: Hi. Selim and Wanda are friends of mine.", "Ana: Selim!", "Bo: Yes?"), 1 / 3, "Bo"),
    ],
)
def test_position_of_the_first_mention(lines: tuple[str, ...], position: float, by: str) -> None:
    scores = search(*lines)
    assert one(scores, "first_mention").value == pytest.approx(position)
    assert one(scores, "named").agent == by
    assert one(scores, "first_mention").turns == one(scores, "named").turns


@pytest.mark.parametrize(
    "lines",
    [
        ("Ana: Do you know Selim?", "Bo: No, I do not know Selim."),
        ("Ana: Do you know Selim?", "Bo: Lovely weather."),
        ("Ana: Do you know Selim?", "Bo [leave]: Goodbye!"),
        ("Ana: I know Selim.", "Bo: Hm.", "Ana: Yes, Selim, I know Selim!"),  # affirmed by nobody but Ana herself
    ],
)
def test_named_but_not_confirmed(lines: tuple[str, ...]) -> None:
    scores = search(*lines)
    assert one(scores, "named").value == 1
    assert one(scores, "first_mention").value == 0
    assert one(scores, "success").value == 0
    assert one(scores, "success").turns == (0,)


def test_never_named_has_no_first_mention() -> None:
    scores = search(
        "Ana: Do you know Otto?", "Bo: No. Do you know Yusuf?", "Ana: No. Is Zoltan your friend?", "Bo: No."
    )
    assert one(scores, "named").value == 0
    assert one(scores, "named").agent is None
    assert one(scores, "success").value == 0
    assert "first_mention" not in names_of(scores), "never is not a position"
    assert one(scores, "first_mention_turn").value == 20, "never is the turn limit"
    assert one(scores, "friend_rank").value == 5, "never is after the four others"
    assert one(scores, "wrong_guesses").label is not None
    assert {"Otto", "Yusuf"} <= set(str(one(scores, "wrong_guesses").label).split(", "))


def test_a_wrong_guess_counts_once() -> None:
    scores = search("Ana: Do you know Otto?", "Bo: No. Do you know Wanda?", "Ana: No. Do you know Otto?", "Bo: No.")
    assert (one(scores, "wrong_guesses").value, one(scores, "wrong_guesses").label) == (2, "Otto, Wanda")


def test_without_a_common_friend_it_is_right_to_agree_on_nobody() -> None:
    lists = {"Ana": ("Otto", "Selim"), "Bo": ("Wanda", "Yusuf")}
    scores = search(*FOUND, lists=lists)
    about_all = {"wrong_guesses", "mix_ups", "success", "false_affirmed", "explicit_end", "guessing"}
    assert names_of(scores) == about_all, "what needs a friend in common is absent, not 0"
    assert one(scores, "wrong_guesses").label == "Otto, Wanda, Selim"
    assert (one(scores, "success").value, one(scores, "false_affirmed").label) == (0, "Selim"), "Bo says yes to Selim"
    honest = search("Ana: Do you know Otto?", "Bo: No, I do not know Otto.", "Ana [leave]: Bye!", lists=lists)
    assert one(honest, "success").value == 1
    claimed = search("Ana: Hello.", "Bo: So we do have a friend in common!", "Ana [leave]: Bye!", lists=lists)
    assert one(claimed, "success").value == 0, "a claim without a name is a claim"


def test_all_of_two_common_friends_must_be_found() -> None:
    lists = {"Ana": ("Otto", "Selim", "Wanda"), "Bo": ("Selim", "Wanda", "Yusuf")}
    half = ("Ana: Do you know Otto?", "Bo: No. Is Wanda a friend of yours?", "Ana: Yes, I know Wanda too!")
    scores = search(*half, lists=lists)
    assert one(scores, "first_mention").label == "Wanda"
    assert (one(scores, "confirmed").value, one(scores, "success").value) == (1, 0)
    both = search(*half, "Bo: Do you know Selim?", "Ana: Yes, I know Selim too!", lists=lists)
    assert (one(both, "confirmed").value, one(both, "success").value) == (1, 1)
    assert one(both, "success").reason == "they agree on Wanda, Selim"


def test_a_friend_affirmed_besides_false_ones_is_confirmed_but_no_success() -> None:
    scores = search(
        "Ana: Do you know Otto?",
        "Bo: Yes, I know Otto too! Do you know Selim?",
        "Ana: Yes, I know Selim too!",
        "Bo [leave]: Bye!",
    )
    assert (one(scores, "confirmed").value, one(scores, "success").value) == (1, 0)
    false = one(scores, "false_affirmed")
    assert (false.value, false.label, false.turns) == (1, "Otto", (1,))
    assert "not in common: Otto" in one(scores, "success").reason


@pytest.mark.parametrize("back", ["Bo: Wait, I mixed Otto up, I don't know Otto.", "Bo: Hm."])
def test_who_is_taken_back_is_not_agreed_on(back: str) -> None:
    scores = search(
        "Ana: Do you know Otto?",
        "Bo: Yes, I know Otto too!",
        "Ana: Great!",
        back,
        "Ana: Do you know Selim?",
        "Bo: Yes, I know Selim too!",
    )
    assert one(scores, "success").value == ("mixed" in back)
    assert one(scores, "false_affirmed").value == ("mixed" not in back)


def test_an_invented_friend_can_be_affirmed_falsely() -> None:
    scores = search("Ana: Do you know Zoltan?", "Bo: Yes, I know Zoltan too!", "Ana [leave]: Bye!")
    assert one(scores, "false_affirmed").label == "Zoltan"


def test_a_repeated_question_is_no_affirmation() -> None:
    """Denying a friend puts nobody forward, so naming the friend once more answers nothing."""
    scores = search(
        "Ana: I have a friend called Otto. You too?",
        "Bo: No, I do not know Otto. Do you know Wanda?",
        "Ana: No, I do not know Wanda. I have a friend called Otto. You too?",
    )
    assert one(scores, "false_affirmed").value == 0


def test_an_empty_talk_scores_only_what_is_certain() -> None:
    scores = search()
    assert {score.name: score.value for score in scores} == {
        "wrong_guesses": 0,
        "mix_ups": 0,
        "false_affirmed": 0,
        "named": 0,
        "first_mention_turn": 20,
        "friend_rank": 5,
        "success": 0,
        "confirmed": 0,
        "unearned_hits": 0,
        "unearned_chance": 0,
        "explicit_end": 0,
    }


@pytest.mark.parametrize(
    ("last", "explicit"),
    [
        ("Ana [leave]:", 1),
        ("Ana [leave]: See you.", 1),
        ("Ana: Goodbye, it was nice talking to you.", 1),
        ("Ana: Do you know Petra?", 0),
        ("Ana [none]:", 0),
    ],
)
def test_a_farewell_or_a_leave_ends_explicitly(last: str, explicit: float) -> None:
    scores = search("Ana: Hello.", "Bo: Hello.", last, turns=3)
    assert one(scores, "explicit_end").value == explicit
    assert one(scores, "explicit_end").turns == ((2,) if explicit else ())


def test_a_leave_after_the_limit_is_no_explicit_end() -> None:
    assert one(search("Ana: Hello.", "Bo: Hello.", "Ana [leave]: Bye!", turns=2), "explicit_end").value == 0


# ---- generating ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("family", "parameters", "words"),
    [
        ("mutual_friends", {"friend": 5}, ["friend", "attributes", "common", "friends"]),
        ("mutual_friends", {"friends": "many"}, ["friends", "many"]),
        ("mutual_friends", {"friends": None}, ["friends", "None"]),
        ("mutual_friends", {"friends": 0}, ["1 to 20"]),
        ("mutual_friends", {"friends": 21}, ["1 to 20"]),
        ("mutual_friends", {"common": -1}, ["common"]),
        ("mutual_friends", {"friends": 3, "common": 4}, ["common"]),
        ("mutual_friends", {"attributes": "hobby,shoe size"}, ["shoe size", "town"]),
        ("mutual_friends", {"attributes": " , "}, ["none given", "hobby"]),
        ("craigslist", {"zone": "maybe"}, ["maybe", "yes", "no", "any"]),
        ("craigslist", {"friends": 5}, ["friends", "zone"]),
    ],
)
def test_a_bad_parameter_is_refused_with_a_hint(family: str, parameters: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        FAMILIES[family].generate("x", 1, parameters)
    assert caught.value.hint, "what to do is said"
    for word in words:
        assert word in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    ("family", "parameters"), [("mutual_friends", {}), ("craigslist", {}), ("craigslist", {"zone": "no"})]
)
def test_generated_files_are_sound_and_depend_on_the_seed_alone(family: str, parameters: dict[str, Any]) -> None:
    maker = FAMILIES[family]
    for seed in range(30):
        document = maker.generate("x", seed, parameters)
        assert maker.check(document) == []
        assert document == maker.generate("x", seed, parameters)
        assert set(document.names) <= set(FIRST_NAMES)
    assert maker.generate("x", 1, parameters) != maker.generate("x", 2, parameters)


@pytest.mark.parametrize("common", [0, 1, 2, 5])
def test_as_many_common_friends_as_asked_for(common: int) -> None:
    document = FAMILIES["mutual_friends"].generate("x", 3, {"common": str(common), "attributes": "town"})
    first, second = ({fact.terms[0] for fact in agent.facts} for agent in document.agents)
    assert len(first) == len(second) == 5
    assert sorted(first & second) == document.answer["mutual_friends"]
    assert len(first & second) == common
    assert not (first | second) & set(document.names), "nobody is a friend of themselves"


@pytest.mark.parametrize(("zone", "allowed"), [("yes", {True}), ("no", {False}), ("any", {True, False})])
def test_the_zone_is_as_asked_for(zone: str, allowed: set[bool]) -> None:
    answers = [FAMILIES["craigslist"].generate("x", seed, {"zone": zone}).answer for seed in range(40)]
    assert {answer["zone"] is not None for answer in answers} == allowed
    for answer in answers:
        low, high = answer["seller_target"], answer["buyer_target"]
        assert answer["zone"] == ([low, high] if low <= high else None)
        assert 0 < low < answer["list_price"] and 0 < high < answer["list_price"]
