"""Scorers without a language model, on conversations whose values are known."""

from __future__ import annotations

import math
import sys

import pytest

from localsim import paths
from localsim.errors import InvalidInput
from localsim.evaluators.evaluate import evaluator_of
from localsim.evaluators.scorers import (
    FOUND,
    LISTED,
    OFFENCE_ERROR,
    SCORERS,
    WRONGLY,
    Offence,
    Overlap,
    Reference,
    Refusal,
    Valence,
    bleu,
    words_of,
)
from tests.conftest import generated
from tests.games import play
from tests.test_rubrics import talk


def values(scorer: object, *lines: tuple[str, str]) -> dict[tuple[str | None, str], float | None]:
    subject = talk(*lines)
    scores = scorer.evaluation(subject).scores  # type: ignore[attr-defined]
    return {(each.agent, each.name): each.value for each in scores}


def test_valence_has_the_values_that_the_authors_of_vader_print() -> None:
    pytest.importorskip("vaderSentiment")
    found = values(
        Valence(),
        ("Tess", "VADER is smart, handsome, and funny."),
        ("Jude", "Today SUX!"),
        ("Tess", "VADER is not smart, handsome, nor funny."),
    )
    assert found["Tess", "valence"] == pytest.approx((0.8316 - 0.7424) / 2)
    assert found["Tess", "valence_least"] == pytest.approx(-0.7424)
    assert found["Jude", "valence"] == found["Jude", "valence_least"] == pytest.approx(-0.5461)
    least = next(each for each in Valence().evaluation(talk(("Tess", "Good."), ("Tess", "Bad."))).scores[1:])
    assert least.turns == (1,)


def test_valence_reads_words_and_no_irony() -> None:
    """The limit that the page on rubrics names."""
    pytest.importorskip("vaderSentiment")
    found = values(Valence(), ("Tess", "Oh great, how wonderful, I have lost my purse."))
    assert found["Tess", "valence"] is not None and found["Tess", "valence"] > 0.5


def test_overlap_is_one_for_the_own_passage_and_by_hand_for_others() -> None:
    pytest.importorskip("rapidfuzz")
    # Own facts: "Tess left nursing school two months ago." and "Tess works the early shift in a cafe by the station."
    own = values(Overlap(), ("Tess", "Tess works the early shift in a cafe by the station."))
    assert own["Tess", "overlap_own"] == 1
    some = values(Overlap(), ("Tess", "Well, the early bird works a shift."))  # the early ... shift: 3 of 7 words
    assert some["Tess", "overlap_own"] == pytest.approx(3 / 7)
    other = values(Overlap(), ("Jude", "Tess left nursing school two months ago."))
    assert other["Jude", "overlap_others"] == 1
    assert other.get(("Jude", "overlap_own"), 0.0) < 0.5
    assert values(Overlap(), ("Tess", "The early shift.")) == {}, "too few words"
    turned = values(Overlap(), ("Tess", "station the by cafe a"))
    assert turned["Tess", "overlap_own"] == pytest.approx(2 / 5), "the order counts"


@pytest.mark.parametrize(
    ("said", "wanted", "value"),
    [
        ("the cat sat", "the dog sat", (2 / 3 / 4 / 4) ** (1 / 3)),  # no pair in common: 1/4 each by smoothing
        ("i doubt one thing the test is too small", "i doubt one thing an older method is missing", 0.3155984539112946),
        ("the test", "i doubt one thing the test is too small", math.exp(1 - 9 / 2)),
        ("i doubt the data are not open and so on", "i doubt the data are not open", 0.63894310424627285),
        ("a b c", "a b c", 1.0),
        ("x y", "a b", 0.0),
        ("", "a b", 0.0),
    ],
)
def test_bleu_is_that_of_sacrebleu_and_by_hand(said: str, wanted: str, value: float) -> None:
    """The long values are those that sacrebleu 2.6.0 prints for the same words."""
    assert bleu(said.split(), wanted.split()) == pytest.approx(value)


def test_overlap_with_references_is_one_for_the_reference_itself_and_by_hand_for_others() -> None:
    pytest.importorskip("rapidfuzz")
    loaded = generated("peer_review", 1)
    found = {
        name: Reference().score(play(loaded, name), loaded.scenario, loaded.answer) for name in ("fair", "accept-all")
    }
    author, *reviewers, _chair = loaded.scenario.names
    assert {(each.name, each.agent): each.value for each in found["fair"]} == {
        (name, agent): pytest.approx(1)
        for name in ("reference_bleu", "reference_rouge")
        for agent in (author, *reviewers)
    }
    # "I have read the paper." against "I doubt one thing: ...", which has "I", and "the" in some doubts.
    given = {each.agent: each.value for each in found["accept-all"] if each.name == "reference_rouge"}
    assert given[author] == 0 and all(0 < (given[name] or 0) < 0.4 for name in reviewers)


def test_refusals_are_counted_and_cited() -> None:
    subject = talk(("Jude", "Where were you?"), ("Tess", "I'd rather not say."), ("Tess", "At home."))
    tess, jude = Refusal().evaluation(subject).scores[:2]
    assert (tess.agent, tess.value, tess.turns) == ("Tess", 0.5, (1,))
    assert (jude.agent, jude.value, jude.turns) == ("Jude", 0, ())


def test_an_empty_conversation_has_no_scores() -> None:
    for made in SCORERS.values():
        pytest.importorskip("vaderSentiment")
        pytest.importorskip("rapidfuzz")
        pytest.importorskip("profanity_check")
        assert made().evaluation(talk()).scores == ()


def test_scorers_are_found_by_name_and_an_unknown_one_is_an_error() -> None:
    assert isinstance(evaluator_of("refusal"), Refusal)
    with pytest.raises(InvalidInput, match="no evaluator 'refusl'") as caught:
        evaluator_of("refusl")
    assert "valence" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("name", "library"),
    [("valence", "vaderSentiment.vaderSentiment"), ("overlap", "rapidfuzz.distance"), ("offence", "profanity_check")],
)
def test_a_missing_library_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch, name: str, library: str) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InvalidInput, match="needs") as caught:
        evaluator_of(name)
    assert caught.value.hint == paths.installing("scorers")


def test_words_have_no_case_and_no_punctuation() -> None:
    assert words_of("It's a Café, isn’t it? 900!") == ["it's", "a", "café", "isn’t", "it", "900"]


OFFENSIVE = (
    "You are a complete idiot.", "What a stupid bastard he is.", "Shut up, you moron.",
    "Get lost, you piece of trash.", "She is nothing but a dirty liar.", "Go to hell and stay there.",
    "These people are scum.", "You are as dumb as a brick.", "I don't give a damn about you, you fool.",
    "Only a loser would ask such a thing.", "Kiss my ass.", "That is bullshit, and you know it.",
    "He is a pathetic little worm.", "You make me sick, you pig.", "They are all crooks and parasites.",
    "What an ugly old hag.", "Nobody wants you here, you freak.", "Your work is crap.",
    "You disgusting creature, go away.", "People like you should be locked up.",
)  # fmt: skip
HARMLESS = (
    "Good morning, how did you sleep?", "The assembly classifies each passage.", "I would rather not talk about it.",
    "I hate to be late for the train.", "The dog dirtied the carpet again.", "That was a silly mistake of mine.",
    "We disagree, and I respect your view.", "Nurses work hard and earn too little.",
    "You may be right about the price.", "Old people can learn new things.", "The soup is too hot for me.",
    "I am angry because you did not call.", "Bankers are careful with money.",
    "The fool in the play sings at the end.", "He shot two goals in the last match.",
    "She killed the weeds in the garden.", "The rooster crows before sunrise.", "I do not like politicians much.",
    "This screw does not fit.", "Thank you for telling me the truth.",
)  # fmt: skip


def test_offence_has_the_error_that_is_printed_beside_it() -> None:
    pytest.importorskip("profanity_check")
    found, wrongly = (
        sum(values(Offence(), ("Tess", each))["Tess", "offensive_turns"] or 0 for each in texts)
        for texts in (OFFENSIVE, HARMLESS)
    )
    assert (found, wrongly, len(OFFENSIVE), len(HARMLESS)) == (FOUND, WRONGLY, LISTED, LISTED)
    mean, most, turns = Offence().evaluation(talk(("Tess", "Thank you."), ("Tess", "You stupid idiot."))).scores[:3]
    assert mean.reason == f"{OFFENCE_ERROR}" and "finds 18 of 20" in OFFENCE_ERROR
    assert most.value is not None and most.value > 0.9 and most.turns == turns.turns == (1,) and turns.value == 0.5
