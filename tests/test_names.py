"""Names are words of any script: one rule for files, imports and lines, and lines are read as they were written."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.conversation.human_talks import names_are_usable
from localsim.conversation.names import same, tidy, whole
from localsim.conversation.rules.spill import utterance
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import ACTION_TYPES, Action, line_of, parse_line
from localsim.errors import MalformedReply, ScenarioInvalid
from localsim.scenarios.parse import dump_scenario, parse_scenario

DECOMPOSED = unicodedata.normalize("NFD", "José")
NAMES = [
    *("अनिता", "தமிழ்", "สุดา", "พิมพ์", "مُحَمَّد", "מֹשֶׁה", DECOMPOSED, "Đặng Thị Ý", "Ελένη", "Жанна", "李明", "山田　太郎"),
    *(
        "민수",
        "ხატია",
        "ምህረት",
        "ʻOlu",
        "O'Neil",
        "D’Arcy",
        "Jean-Luc",
        "J. R. Tolkien",
        "约翰·史密斯",
        "צה״ל",
        "Ann",
        "Anna",
    ),
    *(
        "Ann Marie",
        "ANNE",
        "user",
        "assistant",
        "system",
        "World",
        "Environment",
        "yes",
        "No",
        "null",
        "True",
        "Agent 1",
        "ལྷ་ས",
        "ジャン＝リュック",
        "歐陽‧娜娜",
    ),
]
REFUSED = ["", "1st", "Ana:", "A[b]", "A, B", 'A "B"', "Narrator", "NARRATOR", "writer", "Anybody", "everybody"]
REFUSED += ["a\u200fb", "\u202eAna", "́a", "An\na", "🙂", "_x", "-x"]


def scenario_of(*names: str) -> LoadedScenario:
    return parse_scenario(
        f"version: 1\nid: x\ntitle: x\ninfo: {{what: x}}\nsetting: Here.\nagents:\n{quoted(names)}", "x"
    )


def quoted(names: tuple[str, ...]) -> str:
    return "".join(f"  - {{name: {json.dumps(name, ensure_ascii=False)}, goal: Talk.}}\n" for name in names)


def test_names_of_every_script_are_names_in_files_and_imports() -> None:
    for name in NAMES:
        loaded = scenario_of(name, "Bo")
        assert loaded.scenario.names == (name, "Bo")
        assert parse_scenario(dump_scenario(loaded.document), "again").scenario.names == (name, "Bo")
        assert names_are_usable([name, "Bo"])


@pytest.mark.parametrize("name", REFUSED)
def test_what_could_be_no_name_is_refused_in_both(name: str) -> None:
    assert not names_are_usable([name, "Bo"])
    with pytest.raises(ScenarioInvalid, match="name"):
        scenario_of(name, "Bo")


@pytest.mark.parametrize(
    "pair",
    [
        ("Ana", "ANA"),
        ("José", DECOMPOSED),
        ("Ana", "Ａna"),
        ("Ana", "Аnа"),
        ("ﬁn", "fin"),
        ("Tom", "Тоm"),
        ("Ben", "Βen"),
        ("Ana", "A\u200dna"),
    ],
)
def test_names_that_nobody_can_tell_apart_are_one_name(pair: tuple[str, str]) -> None:
    assert same(pair[0]) == same(pair[1]) and not names_are_usable(list(pair))
    with pytest.raises(ScenarioInvalid, match=f"more than once: {pair[1]}"):
        scenario_of(*pair)


def test_a_name_is_found_in_texts_as_a_whole_word_of_its_script() -> None:
    for name, text in (
        *(
            ("अनिता", "कल अनिता गई।"),
            ("राम", "राम: हाँ"),
            ("李明", "我问李明吗？"),
            ("สุดา", "ถามสุดาก่อน"),
            ("민수", "민수는 왔다"),
        ),
        *((DECOMPOSED, "ask José!"), ("José", f"ask {DECOMPOSED}."), ("מֹשֶׁה", "שאל את מֹשֶׁה."), ("Ann", "Ann's bus")),
    ):
        assert whole(name).search(text), (name, text)
    for name, text in (("राम", "रामी गई"), ("Jose", f"{DECOMPOSED} went"), ("Ann", "Anna went"), ("สุด", "สุดา")):
        assert name == "สุด" or not whole(name).search(text), (name, text)
    assert tidy(" \u200fدانا\u202c ") == "دانا" and tidy("می‌خواهم") == "می‌خواهم"


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=4), st.sampled_from(ACTION_TYPES), WORDS)
def test_a_line_is_read_as_its_speaker_wrote_it_and_as_nobody_elses(
    name: str, others: list[str], kind: str, words: str
) -> None:
    action = Action(kind, "" if kind == "none" else words.strip())
    if not action.text and kind in ("speak", "action", "non-verbal communication"):
        return
    line = line_of(name, action)
    assert parse_line(line, name, ACTION_TYPES, 1000).action == action
    for other in set(others) - {name}:
        with pytest.raises(MalformedReply):
            parse_line(line, other, ACTION_TYPES, 1000)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(NAMES), min_size=2, max_size=4, unique_by=same))
def test_what_other_people_say_is_cut_off_whatever_their_names(names: list[str]) -> None:
    speaker, other = names[:2]
    for form in ("NFC", "NFD"):
        own, foreign = unicodedata.normalize(form, speaker), unicodedata.normalize(form, other)
        found = utterance(f"{own}: One. {foreign}: Two.", speaker, names, ACTION_TYPES)
        assert (found.text, found.cut) == ("One.", True)
    assert utterance(f"{speaker} and {other} go.", speaker, names, ACTION_TYPES).text == f"{speaker} and {other} go."
