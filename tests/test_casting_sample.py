"""Samples of castings, the list of scenarios with its filters, and the vocabulary of tags."""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest

from localsim.__main__ import run
from localsim.conversation.scenario import RelationshipLevel
from localsim.errors import ScenarioInvalid
from localsim.scenarios.casting.cast import sample
from localsim.scenarios.casting.people import Person, Relations, load_people
from localsim.scenarios.casting.rules import load_situation, parse_situation
from localsim.scenarios.casting.situations import Needs, Situation
from localsim.scenarios.documents import shipped_files
from localsim.scenarios.find import find_scenarios, shipped_sources
from localsim.scenarios.tagging import coverage, vocabulary
from localsim.scenarios.writing import Entry, entries, listed_sources


@cache
def every_entry() -> list[Entry]:
    """What `scenarios list` lists, read when the first test asks for it."""
    return list(entries(listed_sources([])))


@cache
def situations() -> list[Situation]:
    """The situations that ship."""
    return [load_situation(file) for file in shipped_files("situations")]


Captured = pytest.CaptureFixture[str]


def printed(capsys: Captured, *arguments: str, code: int = 0) -> str:
    """What a command prints on stdout; its errors, where it fails."""
    capsys.readouterr()
    assert run(["scenarios", *arguments]) == code
    said = capsys.readouterr()
    return said.err if code else said.out


def crowd(number: int) -> dict[str, Person]:
    """Invented people of all ages."""
    one = next(iter(load_people().values()))
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = [f"P{letters[n // 26]}{letters[n % 26]}" for n in range(number)]
    return {
        name: one.model_copy(
            update={
                "id": name,
                "name": name,
                "profile": one.profile.model_copy(update={"age": str(18 + n * 62 // number)}),
            }
        )
        for n, name in enumerate(names)
    }


def acquainted(people: dict[str, Person]) -> Relations:
    """Some pairs at each level."""
    pairs = [frozenset(pair) for pair in combinations(people, 2)]
    random.Random(3).shuffle(pairs)
    levels: list[RelationshipLevel] = ["know_by_name"] * 12 + ["acquaintance"] * 30 + ["friend"] * 30
    levels += ["romantic"] * 8 + ["family"] * 14
    return Relations(dict(zip(pairs, levels, strict=False)))


def ninety() -> list[Situation]:
    """Ninety situations: those that ship under new names, some for family and couples only."""
    every = [situations()[n % len(situations())].model_copy(update={"id": f"s{n}"}) for n in range(90)]
    two = [n for n, each in enumerate(every) if len(each.roles) == 2]
    for n in two[:9]:
        every[n] = every[n].model_copy(update={"needs": Needs(relation=("family", "romantic"))})
    return every


def test_a_sample_of_ninety_situations_is_balanced_and_repeats_no_pair() -> None:
    people = crowd(40)
    relations = acquainted(people)
    drawn = sample(ninety(), people, relations, pairs=5, seed=1)
    assert len(drawn.tasks) == 450 and drawn.missing == {}
    load = Counter(who for task in drawn.tasks for who in task.people)
    mean = sum(load.values()) / 40
    assert max(abs(number - mean) for number in load.values()) == drawn.spread <= 1
    for name in {task.situation for task in drawn.tasks}:
        groups = [frozenset(task.people) for task in drawn.tasks if task.situation == name]
        assert len(set(groups)) == len(groups) == 5
    needs = {each.id: each.needs.relation for each in ninety()}
    for task in drawn.tasks:
        assert all(relations.level(*pair) in needs[task.situation] for pair in combinations(task.people, 2))


def test_a_sample_depends_on_its_seed_alone() -> None:
    people = crowd(12)
    one, again, other = (sample(situations(), people, acquainted(people), 3, seed) for seed in (1, 1, 2))
    assert one == again != other


def test_what_cannot_be_cast_is_named() -> None:
    people = crowd(4)
    drawn = sample(situations(), people, Relations({}), 5, 1)
    assert drawn.missing["a_bad_week"] == 5 and "aunt_veras_things" not in drawn.missing


def test_the_command_prints_names_that_other_commands_know(tmp_path: Path, capsys: Captured) -> None:
    names = printed(capsys, "sample", "--pairs", "1", "--seed", "4").split()
    assert {name.partition("@")[0] for name in names} == {each.id for each in situations()}
    printed(capsys, "sample", "--pairs", "1", "--seed", "4", "-o", str(tmp_path))
    files = {loaded.scenario.id: loaded for loaded in find_scenarios([str(tmp_path)])}
    for name in names:
        found = find_scenarios([name])[0]
        assert files[name.replace("@", "-")].scenario == found.scenario
        assert files[name.replace("@", "-")].answer == found.answer
    hard = json.loads(printed(capsys, "sample", "--hard", "--pairs", "1", "--json"))
    assert {task["reference"].partition("@")[0] for task in hard["tasks"]} == {s.id for s in situations() if s.hard}


def test_the_list_filters_by_tags_and_counts_them(capsys: Captured) -> None:
    every = every_entry()
    assert len(every) == len(shipped_sources()) + len(shipped_files("situations"))
    for name, word in (("kind", "bargaining"), ("conflict", "opposed"), ("payoff", "split"), ("parties", "3")):
        assert any(each.has({name: word}) for each in every) and not all(each.has({name: word}) for each in every)
    folder = str(shipped_files("situations")[0].parent)
    rows = json.loads(printed(capsys, "list", folder, "--kind", "bargaining", "--payoff", "split", "--json"))
    wanted = [each for each in every if each.has({"kind": "bargaining", "payoff": "split"})]
    assert [(row["id"], row["parties"]) for row in rows] == [(each.id, each.parties) for each in wanted]
    assert "shared, mixed, opposed" in printed(capsys, "list", "--conflict", "loud", code=3)
    counts = {(name, word): number for name, word, number in coverage(each.tags for each in every)}
    assert counts["kind", "bargaining"] == sum(each.kind == "bargaining" for each in situations())
    assert sum(number for (name, _), number in counts.items() if name == "parties") == len(every)
    assert counts["recommends_by", "asking"] == 10, "five scenarios each of two games"
    assert all(counts["recommends_by", word] for word in vocabulary().words("recommends_by") or ())
    assert counts["level", "society"] == counts["interacts_with", "human"] == 0, "words that nothing has are shown, too"


def test_a_new_file_is_a_valid_copy_under_another_name(tmp_path: Path, capsys: Captured) -> None:
    for like, name in (("the_ferry_home", "the_last_boat"), ("roommates", "two_rooms")):
        printed(capsys, "new", name, "--like", like, "-o", str(tmp_path))
        assert f"id: {name}\n" in (tmp_path / f"{name}.yaml").read_text(encoding="utf-8")
        assert printed(capsys, "validate", str(tmp_path / f"{name}.yaml")) == "1 valid\n"
        assert "exists already" in printed(capsys, "new", name, "-o", str(tmp_path), code=3)
    assert "cannot be an id" in printed(capsys, "new", "../x", "-o", str(tmp_path), code=3)
    assert find_scenarios([f"{tmp_path}/the_last_boat.yaml@1"])[0].scenario.id == "the_last_boat-1"


def test_every_tag_of_a_shipped_file_is_a_word_of_the_vocabulary() -> None:
    words = vocabulary()
    for each in every_entry():
        for name, given in each.tags.items():
            known = words.words(name)
            assert known is not None and (not known or set(given) <= set(known)), (each.id, name, given)


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ("{conflict: loud}", "'loud' is not one of shared, mixed, opposed"),
        ("{structure: peer-to-peer}", "no dimension of tags for authors"),
        ("{mood: sunny}", "no dimension of tags for authors"),
    ],
)
def test_a_tag_outside_the_vocabulary_is_refused(tags: str, message: str) -> None:
    text = shipped_files("situations")[0].read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if line.startswith("tags:"))
    with pytest.raises(ScenarioInvalid, match=message) as caught:
        parse_situation(text.replace(line, f"tags: {tags}"), shipped_files("situations")[0].name)
    assert ":5:" in str(caught.value) or ":6:" in str(caught.value)
