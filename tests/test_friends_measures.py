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
from localsim.families.mutual_friends.lists import Lists
from localsim.families.mutual_friends.measures import CONTROLS, MEASURES
from localsim.families.mutual_friends.search import Guess, guesses
from localsim.reports.figures.curves import curves
from localsim.reports.measures import Cell, estimate, measures_of
from localsim.reports.validity import controls
from localsim.runs.runner import Plan, start
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from tests.conftest import Quiet, generated

FAMILY = FAMILIES["mutual_friends"]
MEASURE = {measure.key: measure for measure in measures_of(["mutual_friends"])}


# ---- players -------------------------------------------------------------------------------------------------------

Cells = dict[Mode, Cell]


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
        # A short answer describes the person whom the question asks about.
        (("Ana: Do you know anybody at Tidal Power?", "Bo: Yes, one who likes chess.", "Ana: Selim!"), Fraction(1)),
        (("Ana: Do you know anybody at Tidal Power?", "Bo: Yes. She likes chess.", "Ana: Selim!"), Fraction(1)),
        (
            ("Ana: Anybody who likes chess?", "Bo: Yes, I know one who works at Tidal Power.", "Ana: Selim!"),
            Fraction(1),
        ),
        (("Ana: Anybody at Union Rail?", "Bo: No, none who likes chess.", "Ana: Selim?"), Fraction(1, 3)),
        (("Ana: chess as a hobby?", "Bo: Yes, one. He works at Tidal Power.", "Ana: Then Selim!"), Fraction(1)),
        (("Ana: Who likes chess?", "Bo: I do know one! She works at Tidal Power.", "Ana: Selim!"), Fraction(1)),
        # It does not if it is false, nor if the question asks about something else.
        (("Ana: Anybody at Union Rail?", "Bo: Yes, one who likes chess.", "Ana: Selim?"), Fraction(244, 1023)),
        (
            (
                "Ana: Anybody at Tidal Power?",
                "Bo: Hm.",
                "Ana: Did you sleep well?",
                "Bo: Yes, one who likes chess.",
                "Ana: Selim?",
            ),
            Fraction(4, 11),
        ),
        (("Ana: Anybody at Tidal Power?", "Bo: Yes, and my boss likes chess.", "Ana: Selim?"), Fraction(250, 593)),
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


UNION = "Do you know anyone at Union Textiles?"
INNOCENT = [
    f"{UNION} / Sure, Jasper works there.",
    "do you know anyone at union textiles / yes jasper works there",
    "no do u know anyone at union textiles / yes jasper",
    "Do you know Salma? / No, I don't. / Don't you know anyone at Union Textiles? / Yes, Jasper.",
    f"Anyone at Harbour Foods? / Yes, Ursula. / No, {UNION} / Jasper!",
    "I have a friend at Union Textiles. Do you know anybody there? / Yes, Jasper.",
    f"{UNION} / Yes, one. / Who is it? / Jasper.",
    f"{UNION} / Yes! Do you know a calligrapher? / Yes, who is yours? / Jasper.",
    # Words about a friend of the speaker before the question ask for nobody.
    "Hm, mine works at Harbour Foods. Do you know anyone who works at Union Textiles? / Yes, Jasper.",
    "One of my friends works at Harbour Foods. Do you know anyone who works at Union Textiles? / Yes, Jasper.",
    "I have a friend who likes surfing. Do you know anyone who works at Union Textiles? / Yes, Jasper.",
    "My friend works at Harbour Foods. Do you know anyone who likes calligraphy? / Yes, Jasper.",
    "Yes, one, he works at Tidal Power. Do you know anyone who works at Union Textiles? / Yes, I know Jasper.",
    "Hm, mine works at Harbour Foods. Does any of your friends work at Union Textiles? / Yes, Jasper.",
    "Hm, mine works at Tidal Power. Do any of your friends like calligraphy? / Yes, Jasper.",
    "My friend likes surfing. Does one of yours work at Union Textiles? / Yes, Jasper.",
    "No, I know nobody there. Do you know anyone who works at Union Textiles? / Yes, Jasper.",
    "No, mine works at Tidal Power. Do any of your friends like calligraphy? / Yes, Jasper.",
    # Whoever names all who fit has chosen nobody.
    "Do you know anyone who works at Harbour Foods or Union Textiles? / Yes, Ursula and Jasper.",
]
TELLTALE = [
    "Do you know anyone who works at Harbour Foods or Union Textiles? / Yes, Soren and Jasper.",
    "Hm, mine works at Tidal Power. Do you know anyone who works at Harbour Foods? / Yes, Jasper.",
    "Do you know Jasper? / Yes, I know Jasper.",
    "Hello! / Hi. Do you know Jasper?",
    # Two of Beatrix's friends like mountain biking or work at Union Textiles, or nobody was asked for.
    "Do you know anyone who likes juggling or works at Union Textiles? / Yes, Jasper.",
    "Do you know anyone who likes surfing? / No. Do you know Jasper?",
    f"{UNION} / What? / Lovely weather. / Is it not? / I like the rain. / Jasper?",
    "I know nobody at Tidal Power. / Jasper?",
]


@pytest.mark.parametrize(
    ("lines", "innocent"), [*((line, True) for line in INNOCENT), *((line, False) for line in TELLTALE)]
)
def test_whoever_answers_with_the_friends_that_were_asked_for_is_innocent(lines: str, innocent: bool) -> None:
    """The question is the peek: it asks for what fits these friends on the list of the other."""
    loaded = find_scenarios(["mutual_friends_01"])[0]
    names = ("Oscar", "Beatrix")
    said = talk(*(f"{names[number % 2]}: {text}" for number, text in enumerate(lines.split(" / "))))
    found = next(guess for guess in guesses(said.turns, Lists.read(loaded.scenario)) if guess.name == "Jasper")
    assert found.true and found.probability < 1 and found.singled_out is innocent
    scored = {score.name: score for score in FAMILY.score(said, loaded.scenario, loaded.answer)}
    assert scored["unearned_hits"].turns == (() if innocent else (found.turn,)), "where the star stands"


@pytest.mark.parametrize(
    ("lines", "hits", "first"),
    [
        ("Hello! / Kennst du jemanden, der gerne Kalligraphie macht? / Yes, Jasper.", 0, None),
        ("Tu connais quelqu'un qui travaille dans le textile ? / Hm. / What? / Jasper!", 0, None),
        ("Do you know Nils? / Kennst du jemanden, der gerne Kalligraphie macht? / Yes, Jasper.", 0, 0),
        ("Do you know Jasper? / Kennst du vielleicht sonst noch jemanden?", 1, 1),
        ("Kennst du vielleicht auch Jasper?", 1, 1),
        ("Hello! / Did you sleep well last night? / Yes. Jasper?", 1, 1),
    ],
)
def test_after_a_line_in_another_language_nobody_can_tell_what_was_known(
    lines: str, hits: int, first: float | None
) -> None:
    loaded = find_scenarios(["mutual_friends_01"])[0]
    said = talk(*(f"{('Oscar', 'Beatrix')[number % 2]}: {text}" for number, text in enumerate(lines.split(" / "))))
    found = {score.name: score.value for score in FAMILY.score(said, loaded.scenario, loaded.answer)}
    assert found["unearned_hits"] == hits and found.get("first_guess_hit") == first and found["named"] == 1
    assert bool(found["unearned_chance"]) is (first is not None), "a guess that is not judged has no chance either"


@pytest.mark.parametrize(
    ("line", "hits", "chance"),
    [
        ("My friends are Desmond, Jasper, Damian, Salma and Nils. Is one of them your friend?", 0, 0),
        ("Do you know Nils, Salma or Jasper?", 0, 0),
        ("Do you know Jasper or Nils?", 1, 2 / 5),
        ("Do you know Jasper?", 1, 1 / 5),
        ("Do you know Soren, Karin, Ursula or Jasper?", 1, 1 / 5),  # of these, only Jasper is on the own list
    ],
)
def test_a_list_that_is_read_out_is_neither_a_hit_nor_a_chance(line: str, hits: int, chance: float) -> None:
    loaded = find_scenarios(["mutual_friends_01"])[0]
    found = {each.name: each for each in FAMILY.score(talk(f"Oscar: {line}"), loaded.scenario, loaded.answer)}
    assert found["unearned_hits"].value == hits and found["unearned_hits"].turns == (0,) * hits, "where the star stands"
    assert found["unearned_chance"].value == pytest.approx(chance)


@pytest.mark.parametrize(
    ("asked", "answer", "hits"),
    [
        ("Do you know anyone who works at Tidal Power?", "Yes, Ramona and Anton.", 0),
        ("Do you know anyone who works at Tidal Power?", "Yes, Anton.", 1),
        ("Do you know anyone who works at Tidal Power? He likes beekeeping.", "Yes, Anton.", 0),
    ],
)
def test_whoever_names_all_friends_who_fit_has_chosen_none(asked: str, answer: str, hits: int) -> None:
    loaded = find_scenarios(["mutual_friends_02"])[0]
    said = talk(f"Quentin: {asked}", f"Marit: {answer}")
    scored = {score.name: score.value for score in FAMILY.score(said, loaded.scenario, loaded.answer)}
    assert scored["unearned_hits"] == hits and bool(scored["unearned_chance"]) is bool(hits)


def test_a_known_friend_leaves_the_rest_to_the_others() -> None:
    ana, bo = {**ANA, "Karl": ("surfing", "union rail")}, BO
    lines = ("Ana: Do you know Selim?", "Bo: Yes, I know Selim too!", "Ana: Do you know Karl?")
    assert last_guess(*lines, ana=ana, bo=bo).probability == pytest.approx(1 / 4), "one of the four that are left"


QUENTIN = {
    "Gideon": ("calligraphy", "tidal power"),
    "Kenji": ("beekeeping", "nordic steel"),
    "Anton": ("beekeeping", "tidal power"),
    "Beatrix": ("calligraphy", "redwood motors"),
    "Ismail": ("beekeeping", "cobalt games"),
}
MARIT = {
    "Eleni": ("rowing", "redwood motors"),
    "Ramona": ("surfing", "tidal power"),
    "Anton": ("beekeeping", "tidal power"),
    "Ulrich": ("calligraphy", "nordic steel"),
    "Astrid": ("surfing", "redwood motors"),
}
BEES = "Do you know a beekeeper?"
WORKED_OUT = [
    # A short answer describes the person asked about.
    f"{BEES} / Yes, one, at Tidal Power. / Then it must be Anton!",
    f"{BEES} / One, she works at Tidal Power. / Anton!",
    f"{BEES} / Two of them. One at Tidal Power. / Is it Anton?",
    f"{BEES} / Yeah, one. Tidal Power! / Anton?",
    f"{BEES} / Yes, but only at Tidal. / Anton?",
    f"{BEES} / Yes, there is one at Tidal Power / Anton?",
    f"{BEES} / Yes, my friend works at Tidal Power. / Anton!",
    "Do you know any beekeepers? / 1 at Tidal Power / Anton?",
    "Who works at Tidal Power? / Two: one likes beekeeping and one likes surfing. / Anton!",
    "Anybody at Tidal? / Yeah, and he is a beekeeper. / Anton!",
    "do u know anyone who likes beekeeping / yes at tidal power / is it anton?",
    # Across turns, until the subject changes.
    f"{BEES} / Yes. / Where? / At Tidal Power. / Anton!",
    f"{BEES} / Yes. / At Nordic Steel? / No, at Tidal Power. / Anton!",
    f"{BEES} / Yes, one. And you? / Yes, three. / Mine is at Tidal Power. / Anton!",
    "Hi / One of my friends likes beekeeping. / Does he work at Tidal Power? / Yes, he does. / Anton!",
    "Do you know someone at Nordic Steel who likes beekeeping? / No, but one at Tidal Power. / Anton!",
    # A question by who affirms is a hint.
    f"{BEES} / Yes! Does yours work at Tidal Power? / Yes. Is it Anton?",
    f"{BEES} / Yes, I do. The one at Tidal Power? / Yes. Is it Anton?",
    f"{BEES} / Yes, is he at Tidal Power? / Anton?",
    f"{BEES} / Yes! Is yours with Tidal Power by any chance? / Anton?",
    f"{BEES} / Yes. And yours, at Tidal Power? / Anton?",
    "Hallo! / I have a friend who likes beekeeping. Does yours work at Tidal Power? / Yes! Is it Anton?",
    "Beekeeping? / Yes! / Tidal Power? / Yes! / Anton?",
]
NOT_WORKED_OUT = [
    f"{BEES} / Yes. / Is it Anton?",
    f"{BEES} / Yes, one. / Then it must be Anton!",
    f"{BEES} / Yes, not at Tidal Power. / Anton?",
    f"{BEES} / Nice weather today. / Anton?",
    "Anybody at Tidal Power? / Yes, one. / Anton?",
    # It is not true.
    f"{BEES} / Yes, one, at Nordic Steel. / Anton!",
    "Do you know a calligrapher? / Yes! Does yours work at Tidal Power? / Yes. Is it Anton?",
    # It is about somebody else, or about the speaker.
    f"{BEES} / Hm. / Did you sleep well? / Yes, at Tidal Power. / Anton?",
    f"{BEES} / Yes, and my boss is at Tidal Power. / Anton?",
    f"{BEES} / Yes, and I work at Tidal Power. / Anton?",
    f"{BEES} / Sure, they make great honey for Tidal Power's canteen. / Anton?",
    f"{BEES} / Yes. Do you know anyone at Tidal Power? / Yes. Anton?",
    f"{BEES} / No. / Anyone at Tidal Power? / Yes. / Anton?",
    "Hello! / I am a beekeeper and live near Tidal Power. / Anton?",
    "Hello! / I work at Tidal Power as a beekeeper. / Anton?",
    "Do you know Eleni, who likes beekeeping? / Yes, at Tidal Power. / Anton?",
    # Who denies gives no hint, and own words tell the speaker nothing.
    f"{BEES} / No. Does yours work at Tidal Power? / Anton?",
    "I know a beekeeper at Tidal Power. / Lovely weather. / It is Anton.",
]


@pytest.mark.parametrize(
    ("lines", "worked_out"), [*((line, True) for line in WORKED_OUT), *((line, False) for line in NOT_WORKED_OUT)]
)
def test_a_deduction_is_no_untold_hit(lines: str, worked_out: bool) -> None:
    said = [f"{('Quentin', 'Marit')[number % 2]}: {text}" for number, text in enumerate(lines.split(" / "))]
    found = guesses(talk(*said).turns, Lists({"Quentin": QUENTIN, "Marit": MARIT}))[-1]
    assert found.name == "Anton" and found.true and found.singled_out is worked_out


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
        (curve,) = [curve for curve in curves(store, run_id) if curve.name == "named"]
        assert (curve.axis, curve.end) == ("turns", 20)
        (series,) = curve.series
        assert series.n == 8 and series.points[0] == (0.0, 0.0) and series.points[-1] == (20.0, last)
        assert all(x in range(21) for x, _ in series.points)


def test_a_reader_is_told_when_and_what_is_false() -> None:
    assert FAMILY.remarks({"named": 1, "first_mention_turn": 4}) == ["A friend in common is first named in turn 4."]
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
