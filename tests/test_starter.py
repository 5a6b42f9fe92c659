"""The starter's training data: scripted agents that know their own side only, in words that nothing else uses."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import quantiles

import pytest

from localsim.conversation.episode import MODES, Score
from localsim.conversation.scenario import ScenarioFile
from localsim.conversation.transcript import Transcript
from localsim.families import FAMILIES
from localsim.families.mutual_friends.family import friends_of
from localsim.families.mutual_friends.mentions import mentions
from localsim.families.mutual_friends.names import claims
from localsim.families.prices import find_prices
from localsim.families.vocabulary import COMPANIES, FIRST_NAMES, GOODS, HOBBIES, MEETINGS, OCCUPATIONS, TOWNS
from localsim.reports.validity.remarks import SMALL_MODELS
from scripts.starter import bank, bargain, comparing, everyday, friends, knowing, lists, lookup
from scripts.starter.dataset import DECIDING, HONEST, PEEKS, build, talk_of
from scripts.starter.names import names

TALKS = 60
SCENARIOS = Path(__file__).resolve().parent.parent / "scenarios"


def rng(number: int) -> random.Random:
    return random.Random(f"test {number}")


@pytest.mark.parametrize("name", ["friends", "bargain"])
def test_phrases_have_the_slots_of_their_section(name: str) -> None:
    slots = {"name", "item", "price", "detail", "hobby", "company", "town", "both", "other"}
    for section, phrases in bank.bank(name).items():
        assert len(phrases) == len(set(phrases)), section
        for phrase in phrases:
            assert set(re.findall(r"\{(\w+)\}", phrase)) <= slots, phrase
            assert ":" not in phrase or section == "praise_detail", phrase


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


def scored(family: str, document: ScenarioFile, transcript: Transcript) -> dict[str, Score]:
    scenario, answer = document.split()
    return {score.name: score for score in FAMILIES[family].score(transcript, scenario, answer)}


@pytest.mark.parametrize("sloppy", [None, 0, 1])
def test_a_searcher_asks_nothing_twice_and_claims_only_its_own_friends(sloppy: int | None) -> None:
    false = told = 0
    for number in range(TALKS):
        document = friends.scenario(rng(number), number)
        transcript = friends.talk(rng(number), document, sloppy=sloppy)
        lists = friends_of(document)
        careful = [name for index, name in enumerate(document.names) if index != sloppy]
        for index, name, yes in claims(transcript.turns, lists):
            if transcript.turns[index].speaker in careful:
                told += 1
                false += yes and name not in lists[transcript.turns[index].speaker]
        for turn in transcript.turns:
            for name in {name for own in lists.values() for name in own}:
                if mentions(turn.action.text, name) and name not in lists[turn.speaker]:
                    said = [mentions(earlier.action.text, name) for earlier in transcript.turns[: turn.index]]
                    assert any(said), f"{turn.line}: a name that nobody has said"
        for speaker in document.names:
            questions = [turn.action.text for turn in transcript.turns if turn.speaker == speaker]
            assert len(questions) == len(set(questions))
    assert told > TALKS and false <= 0.02 * told, "what is read as a false claim is a rare way of saying no"


@pytest.mark.parametrize("common", [0, 1, 3])
def test_searches_end_well_whatever_is_in_common(common: int) -> None:
    ends = []
    for number in range(TALKS):
        document = friends.scenario(rng(number), number, common=common)
        scores = scored("mutual_friends", document, friends.talk(rng(number), document))
        ends.append(scores["success"].value)
    assert sum(value or 0 for value in ends) >= 0.8 * TALKS, "some phrases are misread, and one list may be too long"


def test_teachers_differ_in_style() -> None:
    """No measure is the habit of one teacher: naming people, leaving and length all vary from talk to talk."""
    guessing, turns, words = [], [], []
    for number in range(3 * TALKS):
        document = friends.scenario(rng(number), number, common=1)
        transcript = friends.talk(rng(number), document)
        scores = scored("mutual_friends", document, transcript)
        guessing.append(scores["guessing"].value or 0.0)
        turns.append(len(transcript.turns))
        words.append(sum(turn.words for turn in transcript.turns) / len(transcript.turns))
    for values, ratio in ((guessing, 1.5), (turns, 1.5), (words, 1.2)):
        low, _, high = quantiles(values, n=4)
        assert high > ratio * low, values


def test_hagglers_never_pass_their_target_and_always_end() -> None:
    kinds: Counter[str] = Counter()
    for number in range(2 * TALKS):
        document = bargain.scenario(rng(number), number)
        transcript = bargain.talk(rng(number), document)
        scores = scored("craigslist", document, transcript)
        key = document.answer
        assert transcript.turns[-1].action.type == "leave"
        deciding = bargain.deciding(transcript.turns)
        for turn in transcript.turns:
            other = {price.value for price in find_prices(transcript.turns[turn.index - 1].action.text)}
            for price in find_prices(turn.action.text):
                if price.explicit and not (turn.index in deciding and price.value in other):
                    assert key["buyer_target"] >= price.value or turn.speaker == key["seller"], turn.line
                    assert key["seller_target"] <= price.value or turn.speaker == key["buyer"], turn.line
        right = scores["success"].value if "success" in scores else None
        kinds[f"{scores['ending'].label}, zone {document.parameters['zone']}, {right}"] += 1
    good = kinds["deal, zone yes, 1.0"] + kinds["no_deal, zone no, 1.0"]
    assert good >= 1.7 * TALKS and kinds["no_deal, zone no, 1.0"] > 0.5 * TALKS, kinds
    assert not kinds["deal, zone yes, 0.0"] and kinds["deal, zone no, 0.0"] <= 2, "a deal is never a loss"


def test_answers_about_prices_are_right() -> None:
    bank_of = bank.bank("bargain")
    said = Counter[bool]()
    for number in range(TALKS):
        document = bargain.scenario(rng(number), number)
        turns = bargain.probing(rng(number), document).turns
        side = bargain.answerer(turns)
        key, selling = document.answer, document.names[side] == document.answer["seller"]
        for index in sorted(bargain.deciding(turns)):
            price = int(find_prices(turns[index - 1].action.text)[0].value)
            if index % 2 != side or not mentions_price(turns[index].action.text, price):
                continue  # a question, or the goodbye after the agreement
            good = price >= key["seller_target"] if selling else price <= key["buyer_target"]
            section = "would_do" if good else "too_low" if selling else "too_high"
            said[good] += 1
            terse = f"${price} {bargain.TERSE[section]}"
            assert turns[index].action.text in {terse, *(each.format(price=f"${price}") for each in bank_of[section])}
    assert min(said.values()) > 0.3 * sum(said.values()), "both answers are about equally frequent"


def test_answers_of_look_ups_come_from_the_list_of_the_one_who_answers() -> None:
    said = Counter[bool]()
    for number in range(TALKS):
        document = friends.scenario(rng(number), number)
        turns = lookup.talk(rng(number), document).turns
        side = lookup.answerer(turns)
        assert turns[-1].action.type == "leave" and turns[-1].index % 2 != side
        own = friends.lists_of(document)[side]
        for asked, answer in zip(turns[1 - side : -1 : 2], turns[2 - side :: 2], strict=True):
            text = asked.action.text
            named = next((name for name in re.findall(r"[A-Z]\w+", text) if any(f.name == name for f in own)), "")
            fits = [f for f in own if all(value in text for _, value in f.attributes[:2])]
            yes = bool(named or fits)
            said[yes] += 1
            if fits and not named:
                assert mentions(answer.action.text, fits[0].name), (text, answer.action.text)
            assert any(mentions(answer.action.text, f.name) for f in own) == yes, (text, answer.action.text)
    assert min(said.values()) > 0.3 * sum(said.values()), said


class Letters:
    """A tokenizer with one token for each character."""

    def content(self, text: str) -> list[int]:
        return [ord(letter) for letter in text]


def test_lists_of_comparisons_are_right_and_only_their_decisions_are_learned() -> None:
    accepted = Counter[bool]()
    other_target_differs = Counter[bool]()
    for row in comparing.rows(TALKS // 3, 7, Letters()):  # type: ignore[arg-type]
        assert len(row.tokens) == len(row.weights) <= lists.LENGTH
        text = "".join(map(chr, row.tokens))
        decisions = 0
        for part in text.strip().split("\n\n"):
            people = {
                name: (does == "sells", int(target))
                for name, does, target in re.findall(r"(\w+) (sells|buys)\. \1's target price is \$(\d+)\.", part)
            }
            for name, price, refused in re.findall(r"(\w+): \$(\d+) (?:works|is too (low|high)) for me\.", part):
                selling, target = people[name]
                good = bargain.suits(int(price), target, selling=selling)
                assert refused == ("" if good else "low" if selling else "high"), part
                accepted[good] += 1
                decisions += 1
                for _, other in (two for one, two in people.items() if one != name):
                    other_target_differs[bargain.suits(int(price), other, selling=selling) != good] += 1
        learned = [place for place, weight in enumerate(row.weights) if weight == 1.0]
        assert len(learned) == decisions
        assert all(re.match(r" (?:works|is too)", text[place:]) for place in learned)
    assert min(accepted.values()) > 0.4 * sum(accepted.values()), "both answers are about equally frequent"
    assert other_target_differs[True] > 0.3 * other_target_differs.total(), "the other target often misleads"
    first, second, other = (comparing.rows(1, seed, Letters()) for seed in (1, 1, 2))  # type: ignore[arg-type]
    assert first == second != other


def test_lists_of_who_knows_whom_are_answered_from_the_speakers_own_list() -> None:
    said = Counter[str]()
    for row in knowing.rows(TALKS // 3, 7, Letters()):  # type: ignore[arg-type]
        assert len(row.tokens) == len(row.weights) <= lists.LENGTH
        text = "".join(map(chr, row.tokens))
        answers = 0
        for part in text.strip().split("\n\n"):
            known_by = dict(re.findall(r"What (\w+) knows:\n((?:- .*\n)+)", part))
            assert len(known_by) == 2, part
            questions = re.findall(r"\w+: (.*\?)\n(\w+): (.*)\.", part)
            assert len({question for question, _, _ in questions}) > len(questions) - 3, (
                "hardly any question comes twice"
            )
            for question, speaker, answer in questions:
                answers += 1
                asked = question.removesuffix("?").split(" ", 1)[1]
                if answer in ("Yes", "No"):
                    known = f"- {speaker}: {asked.removeprefix('you know ')} " in known_by[speaker]
                    assert answer == ("Yes" if known else "No"), part
                else:
                    fitting = re.findall(rf"- {speaker}: (\w+) {re.escape(asked)}", known_by[speaker])
                    assert answer == (fitting[0] if fitting else "Nobody"), part
                said[answer if answer in ("Yes", "No", "Nobody") else "a name"] += 1
        learned = [place for place, weight in enumerate(row.weights) if weight == 1.0]
        assert len(learned) == answers
        assert all(text[place - 1] == ":" for place in learned)
    assert set(said) == {"Yes", "No", "Nobody", "a name"}
    assert 0.35 < said["Yes"] / (said["Yes"] + said["No"]) < 0.75, said
    first, second, other = (knowing.rows(1, seed, Letters()) for seed in (1, 1, 2))  # type: ignore[arg-type]
    assert first == second != other


def mentions_price(text: str, price: int) -> bool:
    return any(found.value == price for found in find_prices(text))


def test_twins_peek_as_often_as_they_are_meant_to() -> None:
    """The teachers of the twins are found by the families' own measures, the honest ones are not."""
    found: dict[float | None, list[float]] = {}
    for dose in (None, 0.5, 1.0):
        hits = []
        for number in range(TALKS):
            document = friends.scenario(rng(number), number, common=1)
            scores = scored("mutual_friends", document, friends.talk(rng(number), document, peeks=dose))
            hits.append(scores["friend_rank"].value == 1.0)
            document = bargain.scenario(rng(number), number)
            scores = scored("craigslist", document, bargain.talk(rng(number), document, peeks=dose or 0.0))
            hits += [] if "limit_hit" not in scores else [scores["limit_hit"].value == 1.0]
        found[dose] = [sum(hits) / len(hits)]
    honest, half, full = (found[dose][0] for dose in (None, 0.5, 1.0))
    assert honest < 0.35 and honest + 0.15 < half < full - 0.15 and full > 0.8, found


def test_everyday_talks_have_two_sides_and_many_situations() -> None:
    records = everyday.talks()
    assert len(records) >= 400 and len({record["situation"] for record in records}) >= 100
    assert len({tuple(record["lines"]) for record in records}) == len(records)
    secrets = 0
    for number in range(2 * TALKS):
        document, transcript = everyday.talk(rng(number), number)
        speakers = [turn.speaker for turn in transcript.turns]
        assert speakers == [document.names[index % 2] for index in range(len(speakers))]
        assert transcript.turns[-1].action.type == "leave" and 3 <= len(speakers) <= document.limits.turns
        assert all(len(turn.action.text) <= document.limits.chars for turn in transcript.turns)
        assert not re.search(r"[{}]", document.setting + transcript.turns[0].action.text)
        secrets += any(agent.secret for agent in document.agents)
    assert secrets > 10


def test_the_three_forms_have_equal_shares_of_the_text() -> None:
    data = build(6 * TALKS, 3)
    letters = [data.letters[form] for form in MODES]
    assert max(letters) <= 1.05 * min(letters), data.letters
    for kind in HONEST.shares:
        assert {form for each, form, _ in data.chats if each == kind} == set(MODES), kind
    left_out = sum(count for kind, count in data.counts.items() if "left out" in kind)
    assert left_out <= 6 * TALKS // 8, data.counts


def test_the_other_side_is_shown_in_two_forms_and_unused_by_the_starter() -> None:
    """Honest talks are equal in all forms, whatever is shown: a partner's mistakes are all that a form may change."""
    for _, form, chat in build(2 * TALKS, 4).chats:
        shown = "Write a conversation" in chat.messages[0].content or "known to everybody" in chat.messages[0].content
        assert shown == (form != "agents"), chat.messages[0].content
    honest = replace(HONEST, sloppy=0.0)
    for number in range(10):
        made = {form: talk_of("friends", rng(number), number, form, 0, honest)[1] for form in MODES}
        assert made["agents"] == made["mindreaders"]
        peeking = {form: talk_of("friends", rng(number), number, form, 0, PEEKS) for form in MODES}
        document, peeked = peeking["script"]
        assert peeking["mindreaders"][1] == peeked
        if document.parameters["common"]:  # where nobody is in common, a peeking player searches as everybody does
            assert len(peeked.turns) <= len(made["script"].turns)


def test_turns_that_decide_about_a_price_weigh_more() -> None:
    chats = build(2 * TALKS, 5).chats
    weights = [weight for kind, _, chat in chats if kind == "bargain" for weight in chat.weights]
    assert set(weights) == {1.0, DECIDING} and 0.2 < weights.count(DECIDING) / len(weights) < 0.8
    weights = [weight for kind, _, chat in chats if kind == "probing" for weight in chat.weights]
    assert set(weights) == {0.0, DECIDING}, "only answers are learned"


def test_what_is_held_out_is_never_trained_on() -> None:
    trained, held = everyday.talks(held_out=False), everyday.talks(held_out=True)
    assert len(trained) + len(held) == len(everyday.talks()) and len(held) >= 40
    assert not {each["situation"] for each in trained} & {each["situation"] for each in held}
    assert build(TALKS, 5, held_out=True).chats != build(TALKS, 5).chats


def test_an_answer_after_an_agreement_decides_nothing() -> None:
    wrong = []
    for number in range(2 * TALKS):
        document = bargain.scenario(rng(number), number)
        transcript = bargain.talk(rng(number), document)
        last = transcript.turns[-1]
        agreed = scored("craigslist", document, transcript)["ending"].label == "deal"
        wrong += [last.line] if agreed == (last.index in bargain.deciding(transcript.turns)) else []
    assert len(wrong) <= 2, f"the endings of a few talks are misread: {wrong}"


def test_the_data_are_the_same_whenever_they_are_made() -> None:
    one, other = build(TALKS, 3), build(TALKS, 3)
    assert one.chats == other.chats and one.chats != build(TALKS, 4).chats


def test_the_report_and_the_readme_say_which_goal_the_starter_misses() -> None:
    """The shares are those of the card, so that new weights cannot ship with old words."""
    card = (SCENARIOS.parent / "models" / "starter.md").read_text(encoding="utf-8")
    found = {mode: f"{float(share):.0f}%" for mode, share in _MISSED.findall(card)}
    assert set(found) == {"agents", "script"}
    readme = (SCENARIOS.parent / "README.md").read_text(encoding="utf-8")
    for text in (SMALL_MODELS["localsim-starter."], " ".join(readme.split())):
        assert "searches (its goal is 90%)" in text and all(share in text for share in found.values())


_MISSED = re.compile(
    r"^\| exactly the friends in common found \| (agents|script) \| >= 90% \| \*\*([\d.]+)%\*\*", re.MULTILINE
)
