"""The starter's training data: scripted agents that know their own side only, in words that nothing else uses."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import pytest

from localsim.families import FAMILIES
from localsim.families.mutual_friends.family import friends_of
from localsim.families.mutual_friends.names import claims, mentions
from localsim.families.prices import find_prices
from localsim.families.vocabulary import COMPANIES, FIRST_NAMES, GOODS, HOBBIES, MEETINGS, OCCUPATIONS, TOWNS
from scripts.starter import bank, bargain, everyday, friends
from scripts.starter.dataset import build
from scripts.starter.names import names

TALKS = 60
SCENARIOS = Path(__file__).resolve().parent.parent / "scenarios"


def rng(number: int) -> random.Random:
    return random.Random(f"test {number}")


@pytest.mark.parametrize("name", ["friends", "bargain", "choices", "favours", "talks"])
def test_phrases_have_the_slots_of_their_section(name: str) -> None:
    slots = {"x", "a", "b", "me", "other", "name", "item", "price", "detail", "hobby", "company", "town", "both"}
    blocks = {(): bank.bank(name)} if name in ("friends", "bargain") else bank.topics(name)
    for topic, sections in blocks.items():
        assert sections, topic
        for section, phrases in sections.items():
            assert len(phrases) == len(set(phrases)) or section == "ok", (topic, section)
            for phrase in phrases:
                assert set(re.findall(r"\{(\w+)\}", phrase)) <= slots, phrase
                assert ":" not in phrase or section in ("praise_detail", "setting"), phrase


def test_words_are_not_those_of_the_scenarios() -> None:
    found = bank.bank("friends")
    for section, used in (("hobbies", HOBBIES), ("companies", COMPANIES), ("towns", TOWNS), ("meetings", MEETINGS)):
        assert not {word.casefold() for word in found[section]} & {word.casefold() for word in used}, section
    assert not set(found["occupations"]) & set(OCCUPATIONS)
    items = {line.split("|")[0].strip() for line in bank.bank("bargain")["goods"]}
    assert len(items) >= 130 and not items & {item for item, *_ in GOODS}
    drawn = names(rng(0), 2000)
    assert not {name.casefold() for name in drawn} & {name.casefold() for name in FIRST_NAMES}
    shipped = " ".join(path.read_text() for path in sorted(SCENARIOS.glob("*.yaml")))
    agents = set(re.findall(r"^  - name: (\w+)", shipped, re.MULTILINE))
    assert agents and not agents & set(drawn)


@pytest.mark.parametrize("thorough", [True, False])
@pytest.mark.parametrize("sloppy", [True, False])
def test_a_searcher_asks_nothing_twice_and_claims_only_its_own_friends(thorough: bool, sloppy: bool) -> None:
    false = told = 0
    for number in range(TALKS):
        document = friends.scenario(rng(number), number, thorough=thorough)
        transcript = friends.talk(rng(number), document, number % 2, sloppy=sloppy)
        lists = friends_of(document)
        learner = document.names[number % 2]
        for index, name, yes in claims(transcript.turns, lists):
            told += transcript.turns[index].speaker == learner
            false += transcript.turns[index].speaker == learner and yes and name not in lists[learner]
        for turn in transcript.turns:
            for name in {name for own in lists.values() for name in own}:
                if mentions(turn.action.text, name) and name not in lists[turn.speaker]:
                    said = [mentions(earlier.action.text, name) for earlier in transcript.turns[: turn.index]]
                    assert any(said), f"{turn.line}: a name that nobody has said"
        for speaker in document.names:
            questions = [turn.action.text for turn in transcript.turns if turn.speaker == speaker]
            assert len(questions) == len(set(questions))
    assert told > TALKS and false <= 0.02 * told, "what is read as a false claim is a rare way of saying no"


def test_hagglers_never_pass_their_target_and_always_end() -> None:
    kinds: Counter[str] = Counter()
    for number in range(TALKS):
        document = bargain.scenario(rng(number), number)
        transcript = bargain.talk(rng(number), document)
        scenario, answer = document.split()
        scores = {score.name: score for score in FAMILIES["craigslist"].score(transcript, scenario, answer)}
        key = document.answer
        assert transcript.turns[-1].action.type == "leave"
        for turn in transcript.turns:
            for price in find_prices(turn.action.text):
                if price.explicit:
                    assert key["buyer_target"] >= price.value or turn.speaker == key["seller"], turn.line
                    assert key["seller_target"] <= price.value or turn.speaker == key["buyer"], turn.line
        kinds[str(scores["ending"].label)] += 1
    assert kinds["deal"] > 20 and kinds["no_deal"] > 5 and kinds["unknown"] <= 3


def test_everyday_talks_alternate_and_keep_secrets_with_their_owner() -> None:
    kinds: Counter[str] = Counter()
    for number in range(4 * TALKS):
        maker = everyday.Maker(rng(number), number)
        document, transcript = maker.make()
        kinds[maker.kind] += 1
        speakers = [turn.speaker for turn in transcript.turns]
        assert speakers == [document.names[index % 2] for index in range(len(speakers))]
        assert transcript.turns[-1].action.type == "leave" and len(speakers) <= document.limits.turns
        assert sum(agent.secret is not None for agent in document.agents) == (maker.kind == "secret")
    assert min(kinds.values()) > 10 and set(kinds) == set(everyday.KINDS)


def test_examples_of_scripts_hold_nothing_private() -> None:
    for number in range(TALKS):
        document, _ = everyday.Maker(rng(number), number, open_book=True).make()
        assert all(not agent.facts and agent.secret is None for agent in document.agents)
        assert len({agent.goal for agent in document.agents}) == 1


def test_the_data_are_the_same_whenever_they_are_made() -> None:
    one, other = build(TALKS, 3), build(TALKS, 3)
    assert one.chats == other.chats and one.chats != build(TALKS, 4).chats
    left_out = sum(count for kind, count in one.counts.items() if "left out" in kind)
    assert left_out <= TALKS // 10
    assert {kind for kind, _ in one.chats} == {"friends", "bargain", "everyday", "script"}
