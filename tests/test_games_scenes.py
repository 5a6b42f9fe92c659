"""Closed forms of the scenes: disclosure, gossip, who notices what, and shifts of votes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from localsim.conversation.episode import MODES
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.conversation.visibility import observe
from localsim.errors import InvalidInput
from localsim.families.games.base import move
from localsim.families.games.scenes.counselling import WAYS, things_told
from localsim.families.games.scenes.debate import shifts, winner
from localsim.families.games.scenes.dinner import holders_of
from tests.conftest import generated
from tests.games import after, outcome, play, scores_of


def kinds(talk: Transcript, *wanted: str) -> list[str]:
    """The first values of what the rules told, of some kinds."""
    return [turn.action.values[0] for turn in talk.told if turn.action.values and turn.action.values[0] in wanted]


# ---- counselling ---------------------------------------------------------------------------------------------------


def opening(loaded: LoadedScenario) -> str:
    """The way of talking that opens the client up."""
    return next(fact.terms[0] for fact in loaded.scenario.agents[1].facts if fact.id.endswith("_opens"))


def test_the_core_comes_out_in_turn_five_plus_the_ways_that_fail() -> None:
    met = set()
    for seed in range(1, 25):
        loaded = generated("counselling", seed)
        way = opening(loaded)
        met.add(way)
        assert outcome(loaded, "steady")["core_turn"] == 5 + WAYS.index(way), way
        assert outcome(loaded, "steady", mode="mindreaders")["core_turn"] == 5
    assert met == set(WAYS)


@pytest.mark.parametrize("player", ["any", "steady", "backwards", "silent"])
def test_disclosure_is_written_in_each_turn_and_never_falls(player: str) -> None:
    for seed in range(6):
        loaded = generated("counselling", seed)
        talk = play(loaded, player, seed=seed)
        told = [turn.action.values or () for turn in talk.told if (turn.action.values or ("",))[0] == "thing"]
        assert [values[2] for values in told] == [str(n + 1) for n in range(len(told))]
        assert len({values[1] for values in told}) == len(told), "nothing is told twice"
        found = scores_of(loaded, talk)
        assert 0 <= found["early"] <= found["middle"] <= found["disclosed"] == len(told) / 5


def test_a_thing_told_twice_counts_once_and_closing_ends_the_talk() -> None:
    loaded = generated("counselling", exchanges=2, advice=False)
    counsellor, client, supervisor = loaded.scenario.names
    exchange = [(counsellor, move("say", "ask", text="Yes?")), (client, move("reveal", 5, text="So."))]
    rate = [(supervisor, move("rate", 2))]
    first, second = [*exchange, *exchange, *rate], [*exchange, *exchange, *rate]
    talk = after(loaded, *first, *second, *exchange, (counsellor, move("close", text="Goodbye.")), *rate)
    assert things_told(talk) == ["5"]
    found = scores_of(loaded, talk)
    assert found["success"] == found["closed"] == 1 and found["rating"] == 2 and found["core_turn"] == 1
    assert found["disclosed"] == 0.2 and found["in_order"] == 0 and "followed" not in found
    assert talk.turns[-1].action.type == "rate"


def test_stages_and_advice_are_told_to_the_counsellor_and_not_to_the_client() -> None:
    loaded = generated("counselling")
    counsellor, client, supervisor = loaded.scenario.names
    talk = play(loaded, "steady")
    assert kinds(talk, "stage", "advice") == ["stage", "advice", "stage", "advice", "stage"]
    heard = observe(loaded.scenario, "agents", client, talk).transcript
    assert not kinds(heard, "stage", "advice") and len(kinds(heard, "thing")) == 5
    assert not heard.of("review", "rate") and len(heard.of("say")) == len(talk.of("say"))
    assert not observe(loaded.scenario, "agents", counsellor, talk).transcript.of("review", "rate")
    assert len(observe(loaded.scenario, "agents", supervisor, talk).transcript) == len(talk), "who hears everything"


# ---- dinner --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("people", [4, 5, 6])
def test_each_secret_goes_round_the_table_with_one_whisper_less_than_people(people: int) -> None:
    found = outcome(generated("dinner", people=people, rounds=people + 2), "gossip")
    assert found["whispers"] == 2 * (people - 1) and found["gossip"] == 2 * (people - 2) and found["right"] == 1


@pytest.mark.parametrize("people", [4, 6])
def test_blind_guesses_are_right_by_chance(people: int) -> None:
    found = [outcome(generated("dinner", seed, people=people, rounds=1), "blind", seed=seed) for seed in range(150)]
    mean = sum(each["right"] for each in found) / len(found)
    assert mean == pytest.approx(1 / (people - 1), abs=0.06)
    assert {value for each in found for key, value in each.items() if key[0] == "chance"} == {1 / (people - 1)}


def test_a_whisper_tells_one_person_and_only_what_the_speaker_knows() -> None:
    loaded = generated("dinner", people=4, rounds=1)
    names, holders = loaded.scenario.names, holders_of(loaded.scenario)
    secret, holder = next(iter(holders.items()))
    other = next(name for name in names if name not in holders.values())
    acts: list[tuple[str, Action]] = []
    for name in names:
        if name == holder:
            acts.append((name, move("confide", secret, other, text="Listen.")))
        else:
            acts.append((name, Action("speak", "Yes.")))
    talk = after(loaded, *acts)
    assert scores_of(loaded, talk)["told", holder] == pytest.approx(1 / 3)
    told = next(turn for turn in talk.told if turn.readers is not None)
    assert told.readers == (holder, other) and told.action.values == (secret, holder, holder, other)
    assert f"{holder} hides {secret}" in told.action.text

    whisper = [(name, move("confide", secret, holder, text="I heard it.")) for name in names if name == other]
    rest = after(loaded, *((name, Action("speak", "Yes.")) for name in names[: names.index(other)]), *whisper)
    assert scores_of(loaded, rest)["told", holder] == 0
    assert "does not know" in next(turn for turn in rest.told).action.text


def test_guesses_about_oneself_do_not_count() -> None:
    loaded = generated("dinner", people=4, rounds=1)
    names, holders = loaded.scenario.names, holders_of(loaded.scenario)
    secrets = loaded.scenario.game["public"]["secrets"]
    right = [holders[secret] for secret in secrets]
    quiet = [(name, Action("speak", "Yes.")) for name in names]
    talk = after(loaded, *quiet, *((name, move("guess", *right)) for name in names))
    assert scores_of(loaded, talk)["right"] == 1
    swapped = after(loaded, *quiet, *((name, move("guess", *reversed(right))) for name in names))
    found = scores_of(loaded, swapped)
    assert found["right"] == 0 and found["kept", right[0]] == 1 and found["told", right[0]] == 0


# ---- narrated ------------------------------------------------------------------------------------------------------


def apart(loaded: LoadedScenario) -> tuple[str, str, str]:
    """The narrator and the first two characters, who begin in different places."""
    narrator, one, other = loaded.scenario.names[:3]
    where = loaded.scenario.game["starts"]
    assert where[one] != where[other]
    return narrator, one, other


def test_only_people_who_are_there_notice_an_event_whomever_the_narrator_names() -> None:
    loaded = generated("narrated", people=2, places=3)
    narrator, one, other = apart(loaded)
    place = loaded.scenario.game["starts"][one]
    talk = after(
        loaded, (one, move("do", text="I whistle.")), (narrator, move("event", place, one, other, text="A tune."))
    )
    told = [turn for turn in talk.told if (turn.action.values or ())[0] == "event"]
    assert [turn.readers for turn in told] == [(narrator, one)]
    found = scores_of(loaded, talk)
    assert found["noticed"] == 1 and found["narrator"] == 0
    assert all("tune" not in turn.line for turn in observe(loaded.scenario, "agents", other, talk).transcript.turns)
    wrong = replace(told[0], readers=(narrator, one, other))
    spoiled = Transcript(tuple(wrong if turn.index == wrong.index else turn for turn in talk.turns))
    assert scores_of(loaded, spoiled)["noticed"] < 1


def test_positions_change_by_the_narrator_alone() -> None:
    loaded = generated("narrated", people=2, places=3)
    narrator, one, other = apart(loaded)
    starts = loaded.scenario.game["starts"]
    there = starts[other]
    asked = after(loaded, (one, move("go", there)))
    assert scores_of(loaded, asked)["moves", one] == scores_of(loaded, asked)["reached", one] == 0
    refused = after(loaded, (one, move("go", there)), (narrator, move("place", one, starts[one])))
    assert scores_of(loaded, refused)["moves", one] == scores_of(loaded, refused)["granted"] == 0
    granted = after(loaded, (one, move("go", there)), (narrator, move("place", one, there)))
    assert granted.told[-1].readers == (narrator, one, other)
    assert scores_of(loaded, granted)["moves", one] == scores_of(loaded, granted)["reached", one] == 1


def test_the_narrator_answers_each_deed_and_each_wish() -> None:
    loaded = generated("narrated", people=2, places=3)
    assert [turn.action.type for turn in play(loaded, "busy").acts] == ["do", "event"] * 8
    searched = [turn.action.type for turn in play(loaded, "seeker").acts]
    assert all(searched[n + 1] == "place" for n, kind in enumerate(searched) if kind == "go")
    assert play(loaded, "any", seed=4) == play(loaded, "any", seed=4), "three agents, byte for byte"


@pytest.mark.parametrize("parameters", [{}, {"people": 5}, {"places": 6, "rounds": 7}])
def test_who_searches_every_place_finds_the_other(parameters: dict[str, int]) -> None:
    for seed in range(15):
        loaded = generated("narrated", seed, **parameters)
        assert outcome(loaded, "seeker")["success"] == 1
        assert outcome(loaded, "seeker", mode="mindreaders")["success"] == 1
        moves = [_moves(outcome(loaded, "seeker", mode=mode)) for mode in MODES[1:]]
        assert moves[1] <= moves[0], "mindreaders see where the other goes, and need no more moves"


def _moves(found: dict[Any, float]) -> float:
    return sum(value for key, value in found.items() if isinstance(key, tuple) and key[0] == "moves")


# ---- debate --------------------------------------------------------------------------------------------------------


def test_the_side_with_the_larger_shift_wins_even_with_fewer_votes() -> None:
    first, last = [80, 70, 60, 30, 50], [80, 70, 60, 30, 20]
    assert shifts(first, last) == (0, 0.2) and winner(shifts(first, last)) == "against"
    assert winner(shifts([80, 20], [20, 80])) == "" and shifts([50, 50], [51, 49]) == (0.5, 0.5)


def debated(loaded: LoadedScenario, first: list[int], last: list[int], verdict: str) -> Transcript:
    """A debate of one round without questions."""
    (pro, contra), listeners = loaded.scenario.names[:2], loaded.scenario.names[2:]
    return after(
        loaded,
        *((name, move("rate", n)) for name, n in zip(listeners, first, strict=True)),
        (pro, move("argue", "cost", text="Cheap.")),
        (contra, move("argue", "health", text="Sick.")),
        *((name, move("rate", n)) for name, n in zip(listeners, last, strict=True)),
        (listeners[0], move("verdict", verdict)),
    )


def test_a_played_debate_has_these_shifts() -> None:
    loaded = generated("debate", audience=4, rounds=1, questions=False)
    pro, contra, judge, *audience = loaded.scenario.names
    talk = debated(loaded, [80, 70, 60, 30, 50], [80, 70, 60, 30, 20], "for")
    found = scores_of(loaded, talk)
    assert (found["shift", pro], found["shift", contra]) == (0, 0.2)
    assert (found["payoff", pro], found["payoff", contra], found["decided"]) == (0, 1, 1)
    assert found["opinion", audience[-1]] == 30 and found["opinion", judge] == 0 and found["judge_agrees"] == 0
    assert talk.told[-1].action.text == f"Before: 3 for and 1 against. After: 3 for and 2 against. {contra} wins."
    draw = scores_of(loaded, debated(loaded, [80, 70, 60, 30, 50], [80, 70, 60, 30, 50], "against"))
    assert draw["decided"] == 0 and draw["payoff", pro] == 0.5 and "judge_agrees" not in draw


def test_ratings_are_given_together_and_read_by_their_authors_only() -> None:
    loaded = generated("debate", rounds=1)
    listeners = loaded.scenario.names[2:]
    talk = play(loaded, "fair")
    rates: tuple[Turn, ...] = talk.of("rate")
    assert len({turn.beat for turn in rates}) == 2 and {turn.beat_size for turn in rates} == {len(listeners)}
    for name in loaded.scenario.names:
        seen = observe(loaded.scenario, "agents", name, talk).transcript.of("rate")
        assert len(seen) == (2 if name in listeners else 0) and all(turn.speaker == name for turn in seen)


def test_who_is_asked_answers_next() -> None:
    loaded = generated("debate", audience=2, rounds=2)
    acts = play(loaded, "any").acts
    asked = [(n, turn) for n, turn in enumerate(acts) if turn.action.type == "ask"]
    assert len(asked) == 2 and all(acts[n + 1].speaker == turn.value for n, turn in asked)
    assert [turn.speaker for _, turn in asked] == list(loaded.scenario.names[3:5]), "the audience asks in turn"


def test_an_argument_on_what_one_cares_about_moves_a_scripted_listener_by_fifteen() -> None:
    for seed in range(10):
        loaded = generated("debate", seed, questions=False)
        talk = play(loaded, "fair", seed=seed)
        for agent in loaded.scenario.agents[2:]:
            cares = agent.facts[1].terms[0]
            by = [
                {turn.value for turn in talk.of("argue") if turn.speaker == side} for side in loaded.scenario.names[:2]
            ]
            rated = [turn.number for turn in talk.of("rate") if turn.speaker == agent.name]
            assert rated[1] - rated[0] == 15 * ((cares in by[0]) - (cares in by[1]))


def test_free_words_of_a_client_are_told_things_by_their_words_and_foreign_ones_are_counted() -> None:
    loaded = generated("counselling", guarded=False, free=True, case=0)
    found = {player: outcome(loaded, player) for player in ("open", "stranger", "silent")}
    told = {player: (each["disclosed"], each["faithful"]) for player, each in found.items()}
    assert told == {"open": (1, 1), "stranger": (0, 0), "silent": (0, 1)} and found["open"]["core_turn"] == 5
    talk = play(loaded, "open")
    assert not talk.of("reveal") and things_told(talk) == ["1", "2", "3", "4", "5"]
    client = loaded.scenario.names[1]
    assert all(client not in (turn.readers or ()) for turn in talk.told), "only the others are told the count"


# ---- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("game", "parameters", "message"),
    [
        ("counselling", {"exchanges": 1}, "exchanges = 1"),
        ("counselling", {"case": 9}, "no case 9"),
        ("dinner", {"people": 7}, "people = 7"),
        ("dinner", {"rounds": 0}, "rounds = 0"),
        ("narrated", {"places": 1}, "places = 1"),
        ("narrated", {"people": 9}, "people = 9"),
        ("debate", {"audience": 0}, "audience = 0"),
        ("debate", {"speakers": 3}, "no parameter 'speakers'"),
    ],
)
def test_parameters_that_make_no_scene_are_one_clear_error(game: str, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        generated(game, **parameters)
