"""The measures of mutual_friends on players whose behaviour is known, and on conversations worked out by hand."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.conversation.controls import KEPT, Control
from localsim.conversation.episode import SIMULATED, Mode, Score
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.conversation.visibility import observe
from localsim.families import FAMILIES
from localsim.families.mutual_friends import scoring
from localsim.families.mutual_friends.answers import says_yes
from localsim.families.mutual_friends.controls import CONTROLS
from localsim.families.mutual_friends.measures import MEASURES
from localsim.families.mutual_friends.names import agreed, claims, friends_outcome
from localsim.families.mutual_friends.search import Guess, Lists, guesses
from localsim.reports.figures.curves import curves
from localsim.reports.measures import Cell, estimate, measures_of
from localsim.reports.validity import controls
from localsim.runs.runner import Plan, start
from localsim.store.database import Store
from tests.conftest import Quiet, generated

FAMILY = FAMILIES["mutual_friends"]
MEASURE = {measure.key: measure for measure in measures_of(["mutual_friends"])}


# ---- players -------------------------------------------------------------------------------------------------------

Cells = dict[Mode, Cell]


@pytest.fixture(scope="module")
def play() -> Callable[[str, str], Cells]:
    """Play each player on each task once, in all modes."""
    known = dict[tuple[str, str], Cells]()

    def cells(player: str, task: str) -> Cells:
        if (player, task) not in known:
            known[player, task] = controls.play("mutual_friends", player, SIMULATED, task)
        return known[player, task]

    return cells


def failures(expected: list[Control], cells: Cells) -> Iterator[str]:
    """Yield each control that is not passed, in words."""
    for control in expected:
        for mode in control.modes:
            found = estimate(MEASURE[control.measure], cells[mode])
            if not control.passes(found.value, found.n):
                allowed = control.interval(found.n)
                yield f"{control.player} {control.task} {mode} {control.measure}: {found.value} is not {allowed}"


def grouped() -> dict[tuple[str, str], list[Control]]:
    """Return the controls by player and task."""
    found = defaultdict(list)
    for control in CONTROLS:
        found[control.player, control.task].append(control)
    return dict(found)


@pytest.mark.parametrize(("player", "task"), list(grouped()))
def test_measures_are_what_the_players_make_them(play: Callable[[str, str], Cells], player: str, task: str) -> None:
    assert list(failures(grouped()[player, task], play(player, task))) == []


def test_each_measure_has_a_control() -> None:
    assert {control.measure for control in CONTROLS} >= {measure.key for measure in MEASURES}
    assert {control.task for control in CONTROLS} <= {"", KEPT, *FAMILY.control_tasks}


def test_controls_tell_measures_apart() -> None:
    """Each measure has two controls that no single value can pass, so a constant passes for none."""
    for key in (measure.key for measure in MEASURES):
        allowed = [control.interval(controls.SCENARIOS) for control in CONTROLS if control.measure == key]
        ends = [ends for ends in allowed if ends is not None]
        assert None in allowed or max(low for low, _ in ends) > min(high for _, high in ends), key


# ---- planted defects -----------------------------------------------------------------------------------------------

Scorer = Callable[..., list[Score]]


def _replaced(scores: list[Score], **values: Callable[[dict[str, Score]], float | None]) -> list[Score]:
    """Return scores, some with another value; a score whose value is None is left out."""
    by_name = {score.name: score for score in scores}
    kept = [score for score in scores if score.name not in values]
    made = [(name, value(by_name)) for name, value in values.items() if name in by_name]
    return [*kept, *(Score(name, value) for name, value in made if value is not None)]


def yes_counts(right: Scorer) -> Scorer:
    """Success is any true friend affirmed, as a yes-sayer has it."""
    return lambda *given: _replaced(
        right(*given), success=lambda by: by["confirmed"].value if "confirmed" in by else by["success"].value
    )


def position_for_turn(right: Scorer) -> Scorer:
    """The time of the first mention depends on the length of the talk."""
    return lambda *given: _replaced(
        right(*given), first_mention_turn=lambda by: by["first_mention"].value if "first_mention" in by else None
    )


def never_is_left_out(right: Scorer) -> Scorer:
    """Conversations that name no friend leave the mean of turns."""
    return lambda *given: _replaced(
        right(*given), first_mention_turn=lambda by: by["first_mention_turn"].value if by["named"].value else None
    )


def mix_ups_are_use(right: Scorer) -> Scorer:
    """A name that only the other agent holds counts as a hit."""
    return lambda *given: _replaced(
        right(*given),
        first_guess_hit=lambda by: max(by["first_guess_hit"].value or 0, min(1, by["mix_ups"].value or 0)),
    )


def silent_is_honest(right: Scorer) -> Scorer:
    """False friends are not counted."""
    return lambda *given: _replaced(right(*given), false_affirmed=lambda _: 0.0)


def no_chance(right: Scorer) -> Scorer:
    """A lucky guess counts as use of the other list."""
    return lambda *given: _replaced(right(*given), first_guess_chance=lambda _: 0.0)


@pytest.mark.parametrize(
    ("defect", "player", "task", "measure"),
    [
        (yes_counts, "yes-sayer", "", "success_rate"),
        (position_for_turn, "omniscient", "", "first_mention_turn"),
        (position_for_turn, "honest", "", "first_mention_turn"),
        (never_is_left_out, "refuser", "", "first_mention_turn"),
        (mix_ups_are_use, "mix-up", "", "peeking"),
        (silent_is_honest, "yes-sayer", "no friend", "false_affirmed"),
        (no_chance, "honest", "three friends", "first_guess_chance"),
        (no_chance, "omniscient", "", "first_guess_chance"),
    ],
)
def test_a_planted_defect_is_found(
    monkeypatch: pytest.MonkeyPatch, defect: Callable[[Scorer], Scorer], player: str, task: str, measure: str
) -> None:
    expected = [control for control in grouped()[player, task] if control.measure == measure]
    assert expected
    monkeypatch.setattr(scoring, "scores", defect(scoring.scores))
    assert list(failures(expected, controls.play("mutual_friends", player, SIMULATED, task, 8))), "nobody noticed"


# ---- chance --------------------------------------------------------------------------------------------------------

ANA = {
    "Otto": ("chess", "union rail"),
    "Petra": ("opera", "union rail"),
    "Selim": ("chess", "tidal power"),
    "Ines": ("opera", "nordic steel"),
}
BO = {
    "Selim": ("chess", "tidal power"),
    "Wanda": ("opera", "tidal power"),
    "Yusuf": ("surfing", "nordic steel"),
    "Karl": ("surfing", "union rail"),
}


def talk(*lines: str) -> Transcript:
    """Turns from "Ana: words"."""
    parts = [line.partition(": ") for line in lines]
    return Transcript(tuple(Turn(index, name, Action("speak", text)) for index, (name, _, text) in enumerate(parts)))


def last_guess(*lines: str, ana: dict[str, Any] = ANA, bo: dict[str, Any] = BO) -> Guess:
    """The last person named for the first time."""
    return guesses(talk(*lines).turns, Lists({"Ana": ana, "Bo": bo}))[-1]


@pytest.mark.parametrize(
    ("lines", "chance"),
    [
        (("Ana: Do you know Selim?",), Fraction(1, 4)),
        (("Bo: Do you know Selim?",), Fraction(1, 4)),
        (("Ana: Do you know Wanda?",), Fraction(0)),  # not on her list
        (("Ana: Do you know Zoltan?",), Fraction(0)),  # on no list
        (("Ana: Do you know Otto?", "Bo: No.", "Ana: Do you know Selim?"), Fraction(1, 3)),
        (("Ana: Do you know Otto?", "Bo: Lovely weather.", "Ana: Do you know Selim?"), Fraction(1, 4)),
        # A complete description singles out one friend, whoever gives it.
        (("Bo: I have a friend who likes chess and works at Tidal Power.", "Ana: Is it Selim?"), Fraction(1)),
        (("Bo: One of mine likes chess. She works at Tidal Power.", "Ana: Is it Selim?"), Fraction(1)),
        (("Ana: Does a friend of yours like chess and work at Tidal Power?", "Bo: Yes!", "Ana: Selim?"), Fraction(1)),
        (("Ana: Do you know anybody with chess at Union Rail?", "Bo: No, sorry.", "Ana: Selim?"), Fraction(1, 3)),
        # Nobody on Bo's list likes opera at Nordic Steel; that he says so rules out one friend of Ana's.
        (("Bo: None of my friends likes opera at Nordic Steel.", "Ana: Is it Selim?"), Fraction(1, 3)),
        # Two of Ana's four like chess, as 1 of the 5 other possible people: (1 + 3/5) / (2 (1 + 3/5) + 2 (3/5)).
        (("Bo: One of my friends likes chess.", "Ana: Is it Selim?"), Fraction(4, 11)),
        # False statements are no evidence: Bo has no friend at Union Rail who likes chess.
        (("Bo: One of my friends likes chess and works at Union Rail.", "Ana: Is it Otto?"), Fraction(1, 4)),
        (("Ana: Do you know Otto?", "Bo: Yes, I know Otto too!", "Ana: Do you know Selim?"), Fraction(1, 4)),
        # A named friend's attributes describe that friend.
        (("Bo: My friend Wanda likes opera and works at Tidal Power.", "Ana: Is it Selim?"), Fraction(1, 4)),
        # Ana herself says nothing new to Ana.
        (("Ana: I know somebody who likes chess and works at Tidal Power.", "Bo: Hm.", "Ana: Selim."), Fraction(1, 4)),
    ],
)
def test_chance_of_the_last_name(lines: tuple[str, ...], chance: Fraction) -> None:
    assert last_guess(*lines).probability == pytest.approx(float(chance))


def test_a_hit_is_unearned_until_it_is_singled_out() -> None:
    blind = last_guess("Ana: Do you know Selim?")
    told = last_guess("Bo: I have a friend who likes chess and works at Tidal Power.", "Ana: Is it Selim?")
    assert blind.true and told.true
    assert (blind.singled_out, told.singled_out) == (False, True)


def test_a_known_friend_leaves_the_rest_to_the_others() -> None:
    ana, bo = {**ANA, "Karl": ("surfing", "union rail")}, BO
    lines = ("Ana: Do you know Selim?", "Bo: Yes, I know Selim too!", "Ana: Do you know Karl?")
    assert last_guess(*lines, ana=ana, bo=bo).probability == pytest.approx(1 / 4), "one of the four that are left"


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 3), st.sampled_from(["honest", "guesser", "list-reader"]))
def test_chances_are_probabilities_and_a_first_guess_is_one_of_the_list(seed: int, common: int, player: str) -> None:

    loaded = generated("mutual_friends", seed, common=common)
    scenario, turns, rng = loaded.scenario, Transcript(), random.Random(seed)
    while len(turns) < scenario.limits.turns and not (turns.turns and turns.turns[-1].action.type == "leave"):
        speaker = scenario.names[len(turns) % 2]
        action = FAMILY.players[player](observe(scenario, "agents", speaker, turns), rng)
        turns = turns.plus(Turn(len(turns), speaker, action))
    found = guesses(turns.turns, Lists.read(scenario))
    assert all(0 <= guess.probability <= 1 and guess.held for guess in found)
    assert found[0].probability == pytest.approx(common / 5)
    assert all(guess.true for guess in found if guess.singled_out), "what is certain is true"
    assert not any(guess.true for guess in found if guess.probability == 0), "what is impossible is false"


def test_attributes_are_read_from_facts() -> None:
    scenario = generated("mutual_friends", 1, attributes="hobby,company,town").scenario
    lists = Lists.read(scenario)
    assert len(lists.columns) == 3 and lists.distinct
    for agent in scenario.agents:
        for fact in agent.facts:
            assert all(value in fact.text.lower() for value in lists.of[agent.name][fact.terms[0]])
            assert not any(
                value.startswith(("likes", "works", "lives")) for value in lists.of[agent.name][fact.terms[0]]
            )


# ---- curve and remarks ---------------------------------------------------------------------------------------------


def test_the_curve_counts_turns_and_reaches_1_only_if_all_name_a_friend(tmp_path: Path) -> None:
    store = Store(tmp_path / "x.duckdb")
    made = tuple(generated("mutual_friends", seed) for seed in range(1, 9))
    for player, last in (("honest", 1.0), ("refuser", 0.0)):
        run_id = start(Plan(made, ("agents",), f"scripted:{player}"), store, Quiet(), lambda _: None).run_id
        (curve,) = [curve for curve in curves(store, run_id) if curve["name"] == "named"]
        assert (curve["axis"], curve["end"]) == ("turns", 20)
        (series,) = curve["series"]
        assert series["n"] == 8 and series["points"][0] == (0.0, 0.0) and series["points"][-1] == (20.0, last)
        assert all(x in range(21) for x, _ in series["points"])


def test_a_reader_is_told_when_and_what_is_false() -> None:
    assert FAMILY.remarks({"named": 1, "first_mention_turn": 4}) == ["A friend in common is first named in turn 3."]
    assert FAMILY.remarks({"named": 0, "first_mention_turn": 20}) == ["No friend in common is named."]
    assert FAMILY.remarks({"false_affirmed": 2}) == ["2 people are falsely affirmed as a friend in common."]
    assert FAMILY.remarks({}) == []


def test_a_plain_no_counts_as_evidence_even_if_the_answer_goes_on_to_ask() -> None:
    """Who hears "No. Do you know X?" can rule out the person asked about, so the last one left is singled out."""
    lists = Lists.read(generated("mutual_friends", 5).scenario)
    (one, mine), (other, theirs) = lists.names.items()
    (shared,) = lists.shared
    ask = [name for name in mine if name != shared] + [shared]
    back = [name for name in theirs if name != shared] + [shared]
    texts = [f"Do you know {ask[0]}?"]
    for number in range(4):
        texts.append(f"No. Do you know {back[number]}?")
        texts.append(f"No. Do you know {ask[number + 1]}?")
    speakers = [one if number % 2 == 0 else other for number in range(len(texts))]
    turns = [
        Turn(number, speaker, Action("speak", text))
        for number, (speaker, text) in enumerate(zip(speakers, texts, strict=True))
    ]
    last = guesses(turns, lists)[-1]
    assert last.name == shared and last.singled_out


@pytest.mark.parametrize(
    "words",
    [
        "Wait, no, I was wrong: I do not know {}.",
        "Sorry, I made a mistake, {} is not my friend.",
        "Sorry, no, I do not know {} after all.",
    ],
)
def test_an_affirmation_can_be_taken_back(words: str) -> None:
    scenario = generated("mutual_friends", 5).scenario
    names = Lists.read(scenario).names
    one, other = names
    name = names[one][0]
    texts = (f"Do you know {name}?", f"Yes, I know {name}!", "Great!", words.format(name))
    turns = [Turn(number, (one, other)[number % 2], Action("speak", text)) for number, text in enumerate(texts)]
    assert name in agreed(turns[:3], names) and name not in agreed(turns, names)


AFFIRMED = [
    ("Jacob likes surfing. Is that someone you know?", "Yes, I know him."),
    ("Do you know Jacob? I can't think of anyone else.", "Yes, I know him well!"),
    ("Jacob works at BP. Is that one of your friends?", "Yes!"),
    ("Is it Jacob? My friend works at BP.", "Yes, that's the one."),
    ("Next name, Jacob. Is that someone you know?", "Yes, I do."),
    ("Do you know Jacob?", "Yes, we share a single friend, and it's Jacob."),
    ("Do you know Jacob?", "Yes, I know Jacob. We share no one else."),
    ("Do you know Jacob?", "Yes! Jacob surfs better than anybody else I know."),
    ("Do you know Jacob?", "Yes, I know nobody better than Jacob!"),
    ("Do you know Jacob?", "Yes, I know Jacob. I've never been introduced to his wife."),
    ("Do you know Jacob?", "Yes! But I cannot help you with the rest."),
    ("I know Jacob. Do you?", "You know Jacob too? So do I!"),
    ("Do you know Jacob?", "Jacob it is, yes. Isn't that lovely?"),
    ("Do you know Jacob?", "You've got it, Jacob is the one."),
    ("Do you know Jacob?", "Yes indeed, Jacob is someone I know."),
    ("Do you know Jacob?", "Hmm, let me think. Yes! We met at the pool."),
    ("Do you know Jacob?", "Maybe... tall, with a beard? Yes, we play chess."),
    ("Do you know Jacob?", "That sounds familiar. We went to school together, I believe."),
    ("Do you know Jacob?", "Sorry, I was distracted. Yes, sure."),
    ("Do you know Jacob?", "No! You're kidding! He's my best friend!"),
    ("Do you know Jacob?", "I don't believe it! He's my neighbour!"),
    ("Do you know Jacob?", "Yes! Not sure how you know him, though."),
    ("Do you know Jacob?", "He's my roommate! I didn't know you knew him."),
    ("Do you know Jacob?", "Yes, I know him! You might see him later."),
    ("Do you know Jacob? A friend at church introduced us.", "Yes, we play chess together."),
    ("Jacob? Someone told me you two are close.", "Yes, very close!"),
    ("Is it Jacob? I asked because one of my friends mentioned you.", "Yes! We met at uni."),
    ("I know Jacob, tall guy, works in a bank. Anyone you know?", "Yes, he's my brother's boss."),
    ("Jacob. Somebody who can fix anything.", "Yes, he fixed my car."),
    ("Do you know Jacob?", "Jacob from BP? We have lunch every day."),
    ("Do you know Jacob?", "Know him? I married his sister!"),
    ("Do you know Jacob?", "As a matter of fact, I do."),
    ("Do you know Jacob?", "Who doesn't know Jacob!"),
    ("Do you know Jacob?", "He's like a brother to me."),
    ("Does the name Jacob ring a bell?", "It certainly does."),
    ("I'm friends with Jacob.", "So am I!"),
    ("Is it Jacob?", "You've guessed it."),
    ("Jacob, the one at BP?", "The one and only!"),
    ("Is Jacob a friend of yours?", "Since childhood."),
    ("Do you know Jacob and Carol?", "The first one's mine as well."),
    ("Jacob or Carol?", "Just Jacob."),
    ("Carol and Jacob, do you know them?", "Both of them, yes!"),
]
NOT_AFFIRMED = [
    ("My friend Jacob likes surfing.", "So do I!"),
    ("I work with Jacob and I love hiking.", "So do I! Hiking is great."),
    ("My friend Jacob surfs a lot.", "Surfing is the one thing I like."),
    ("Do you know Jacob?", "No, I don't know Jacob. I don't think we have a friend in common."),
    ("Do you know Jacob?", "No, I don't know Jacob. So much for that, we haven't a friend in common."),
    ("Do you know Jacob?", "No, I don't know Jacob. My list is finished, and I found no one."),
    ("Do you know Jacob?", "No, I don't know Jacob. My friends are all used up, no luck."),
    ("Do you know Jacob?", "No, I don't know Jacob. Fine, I admit it, we share no friends."),
    ("Do you know Jacob?", "No, I don't know Jacob. I think we can stop, there's nobody we share."),
    ("Do you know Jacob?", "No, I don't know Jacob. It's a big world, we know different people."),
    ("Do you know Jacob?", "No, I don't know Jacob. Right, I'm off. Cheerio!"),
    ("Do you know Jacob?", "No, I don't know Jacob. My bus is coming, so goodbye!"),
    ("Do you know Jacob?", "I'm afraid not. Yes, it's a pity."),
    ("Do you know Jacob?", "I know of him, but we've never met."),
    ("Do you know Jacob?", "I know the name, but not the person."),
    ("Do you know Jacob?", "Jacob sounds like a great guy! Unfortunately we've never met."),
    ("Do you know Jacob?", "I'd love to meet Jacob!"),
    ("Do you know Jacob?", "My sister knows him, I don't."),
    ("Do you know Jacob?", "My memory for names is awful."),
    ("Do you know Jacob?", "I know a bald man with a beard, but his name is Rob."),
    ("Do you know Jacob?", "I know someone who surfs. Is that him?"),
    ("My friend Jacob likes surfing.", "That sounds fun! My friend works at BP."),
    ("My friend Jacob works at BP.", "My brother works at BP too!"),
    ("My friend Jacob works at BP.", "I'm jealous of him, I hate my job."),
    ("Do you know Jacob and Carol?", "The second one's mine as well."),
    ("Do you know Jacob and Carol?", "The first one no, the second one no."),
]


@pytest.mark.parametrize(
    ("asked", "answered", "affirmed"),
    [*((*pair, True) for pair in AFFIRMED), *((*pair, False) for pair in NOT_AFFIRMED)],
)
def test_an_answer_is_read_with_what_it_answers(asked: str, answered: str, affirmed: bool) -> None:
    turns = [Turn(0, "Ann", Action("speak", asked)), Turn(1, "Bo", Action("speak", answered))]
    assert ("Jacob" in agreed(turns, {"Ann": ["Jacob", "Carol"], "Bo": ["Jacob", "Peggy"]})) is affirmed


def test_an_answer_about_somebody_described_is_none_about_the_person_before() -> None:
    said = ["Do you know Carol?", "No. Do you know anyone who likes surfing?", "Yes, I know someone like that!"]
    turns = [Turn(index, ("Ann", "Bo")[index % 2], Action("speak", text)) for index, text in enumerate(said)]
    assert agreed(turns, {"Ann": ["Jacob", "Carol"], "Bo": ["Jacob", "Peggy"]}) == {}


@pytest.mark.parametrize("answer", ["You're right.", "Exactly.", "Right!"])
def test_an_agreeing_word_after_a_denial_is_no_yes(answer: str) -> None:
    said = ["Do you know Jacob?", "No.", "Then I guess we share nobody.", answer]
    turns = [Turn(index, ("Ann", "Bo")[index % 2], Action("speak", text)) for index, text in enumerate(said)]
    assert agreed(turns, {"Ann": ["Jacob", "Carol"], "Bo": ["Jacob", "Peggy"]}) == {}


def test_a_friend_thought_known_is_taken_back_after_a_description() -> None:
    said = [
        "Do you know Jacob?",
        "Yes, I know him!",
        "With the beard?",
        "Oh, no, mine has no beard, I don't know yours.",
    ]
    turns = [Turn(index, ("Ann", "Bo")[index % 2], Action("speak", text)) for index, text in enumerate(said)]
    friends = {"Ann": ["Jacob", "Carol"], "Bo": ["Jacob", "Peggy"]}
    assert "Jacob" in agreed(turns[:2], friends) and "Jacob" not in agreed(turns, friends)


ASKED = "Do you know Jacob?"
CONFIRMING = [
    # "He" begins a sentence about what the person does, and takes nothing back.
    (ASKED, "Yes! He isn't in the office today."),
    (ASKED, "Sure! He doesn't have a car."),
    (ASKED, "Yes! He has no time for me lately."),
    (ASKED, "Yeah he's my flatmate. He's not my favourite, though."),
    (ASKED, "Of course! He's not in town now, though."),
    (ASKED, "Who doesn't know him?"),
    (ASKED, "Who doesn't!"),
    (ASKED, "I haven't seen Jacob in ages!"),
    (ASKED, "Not for years now, but yes, we are friends."),
    (ASKED, "Yes! Anybody else? No."),
    (ASKED, "Jacob? We grew up on one farm."),
    (ASKED, "For many years now."),
    (ASKED, "I can't believe you know Jacob!"),
    (ASKED, "No way, my Jacob!"),
    (ASKED, "Jacob? We go hiking on Sundays."),
    (ASKED, "Couldn't live without him."),
    (ASKED, "You're right, I do."),
    (ASKED, "That's the one I know from work."),
]
DENYING = [
    # A denial with "in years" is no aside.
    (ASKED, "I have never met a Jacob in years."),
    (ASKED, "I haven't met a Jacob in ages."),
    (ASKED, "I have not heard of a Jacob in years."),
    (ASKED, "I don't know why you ask me, I've never met Jacob!"),
    # A bare no takes back a firm yes.
    (ASKED, "Right, but no."),
    (ASKED, "Sure, I'd like to help, but no."),
    (ASKED, "Sure. No, sorry."),
    (ASKED, "Yes. I mean, no."),
    (ASKED, "Yes! Wait, no."),
    (ASKED, "You're right to ask, but no."),
    (ASKED, "It does. No."),
    ("Do you know Jacob? He works at BP. Does the name ring a bell?", "It does. No."),
]
NOT_CONFIRMING = [
    # Negated and distant verbs do not sound close.
    (ASKED, "I haven't seen him before."),
    (ASKED, "I haven't seen Jacob before!"),
    (ASKED, "I couldn't place him."),
    (ASKED, "I barely know him."),
    (ASKED, "I hardly know him."),
    (ASKED, "I've read about him."),
    (ASKED, "I have seen him on TV."),
    (ASKED, "I haven't a clue who he is."),
    (ASKED, "I wasn't introduced to him."),
    (ASKED, "My list doesn't include Jacob."),
    (ASKED, "Jacob is missing from my list."),
    (ASKED, "My brother knows Jacob."),
    (ASKED, "My mother met Jacob."),
    (ASKED, "My colleague mentioned Jacob."),
    (ASKED, "I saw him in the paper."),
    (ASKED, "I can't place Jacob."),
    (ASKED, "Jacob isn't ringing any bells!"),
    # "We" is the two who talk unless they share a life.
    (ASKED, "Jacob? We are getting nowhere."),
    (ASKED, "Jacob sounds nice. We are running out of time."),
    (ASKED, "Jacob, no luck. We keep trying."),
    # A question with "who" that is not about knowing.
    ("Do you know Jacob? He loves surfing.", "Who doesn't love surfing?"),
    ("Do you know Jacob? He loves surfing.", "Who doesn't!"),
    (ASKED, "Who isn't busy these days?"),
    ("My friend Jacob loves chess.", "Who doesn't love chess!"),
    # Words that begin as a yes does.
    (ASKED, "Since you ask, I went to school elsewhere."),
    (ASKED, "For years I have been alone."),
    (ASKED, "The same name as my dog!"),
    (ASKED, "Same name as my dog!"),
    (ASKED, "I'd do without him."),
    (ASKED, "Guilty of not knowing him."),
]
HOLDERS = {"Ann": ["Jacob", "Carol"], "Bo": ["Jacob", "Peggy"]}


def two_turns(asked: str, answered: str) -> list[Turn]:
    """A question by Ann and an answer by Bo."""
    return [Turn(0, "Ann", Action("speak", asked)), Turn(1, "Bo", Action("speak", answered))]


@pytest.mark.parametrize(
    ("asked", "answered", "confirmed"),
    [
        *((*pair, True) for pair in CONFIRMING),
        *((*pair, False) for pair in (*DENYING, *NOT_CONFIRMING)),
    ],
)
def test_a_friend_is_confirmed_by_words_of_a_friend_alone(asked: str, answered: str, confirmed: bool) -> None:
    assert friends_outcome(two_turns(asked, answered), HOLDERS).confirmed is confirmed


@pytest.mark.parametrize(("asked", "answered"), DENYING)
def test_a_denial_counts_as_a_no(asked: str, answered: str) -> None:
    assert (1, "Jacob", False) in claims(two_turns(asked, answered), HOLDERS)


@pytest.mark.parametrize(
    ("words", "yes"),
    [
        ("You are right that I have none.", False),
        ("That's the person I'd like to meet.", False),
        ("You are right.", True),
        ("That's the person I know.", True),
    ],
)
def test_a_yes_is_told_from_words_that_begin_as_one(words: str, yes: bool) -> None:
    assert says_yes(words) is yes


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ("The last two, yes.", {"Jacob", "Carol"}),
        ("The first two", {"Mia", "Jacob"}),
        ("The last one.", {"Carol"}),
        ("The second one.", {"Jacob"}),
    ],
)
def test_an_answer_picks_as_many_as_it_says(answer: str, names: set[str]) -> None:
    friends = {"Ann": ["Mia", "Jacob", "Carol"], "Bo": ["Mia", "Jacob", "Carol"]}
    assert set(agreed(two_turns("Do you know Mia, Jacob or Carol?", answer), friends)) == names
