"""Conversations of people: files in public formats become a run that the same scorers and views read.

The files in data/talks are our own, written in the formats of the corpora; they hold no text of any corpus.
"""

from __future__ import annotations

import json
import shutil
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.__main__ import run as localsim
from localsim.conversation.episode import CONDITIONS, PEOPLE, SIMULATED
from localsim.conversation.human_talks import HumanTalk, LeftOut, plain_text
from localsim.errors import InvalidInput
from localsim.families import FAMILIES
from localsim.runs.plan import Plan
from localsim.runs.transfer.imported import Imported, Options, import_talks
from localsim.scenarios.talks.read import formats, read_talks
from localsim.store.database import Store

DATA = Path(__file__).resolve().parent / "data" / "talks"
FILES = {
    "mutual-friends": "mutual_friends.json",
    "craigslist": "craigslist.json",
    "casino": "casino.json",
    "dealornodeal": "dealornodeal.txt",
    "csv": "table.csv",
    "jsonl": "whole.jsonl",
}
COUNTS = {"mutual-friends": 3, "craigslist": 6, "casino": 2, "dealornodeal": 3, "csv": 2, "jsonl": 2}


def nothing_found(reference: str, where: str) -> Any:
    raise InvalidInput(f"no scenario {reference}", where=where)


def read(name: str, form: str = "auto", family: str | None = None) -> tuple[list[HumanTalk], list[str]]:
    """The conversations of a file, and the reasons for those left out."""
    found = list(read_talks(DATA / name, form, nothing_found, family))
    talks = [each for each in found if isinstance(each, HumanTalk)]
    return talks, [str(each) for each in found if isinstance(each, LeftOut)]


def said(talk: HumanTalk) -> list[tuple[str, str, str]]:
    return [(name, action.type, action.text) for name, action in talk.turns]


def imported(store: Store, *names: str | Path, **options: Any) -> Imported:
    files = [DATA / name for name in names]
    return import_talks(store, files, Options(**{"leaks": False, **options}), lambda _: None)


def scores_of(store: Store, run_id: str) -> dict[tuple[str, int], dict[str, Any]]:
    """(scenario, index) -> name of a score -> value or label."""
    rows = store.rows(
        "SELECT e.scenario_id, e.episode_index, s.name, s.agent, s.value, s.label FROM v_scores s "
        "JOIN v_episodes e USING (episode_id) WHERE e.run_id = ?",
        [run_id],
    )
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for row in rows:
        name = f"{row['name']}/{row['agent']}" if row["agent"] else row["name"]
        value = row["label"] if row["value"] is None else row["value"]
        found.setdefault((row["scenario_id"], row["episode_index"]), {})[name] = value
    return found


# ---- formats -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FILES)
def test_each_format_is_recognised_and_can_be_named(form: str) -> None:
    assert form in formats()
    talks, reasons = read(FILES[form])
    assert len(talks) == COUNTS[form]
    assert read(FILES[form], form) == (talks, reasons)
    for talk in talks:
        names = talk.scenario.scenario.names
        assert {name for name, _ in talk.turns} <= set(names)
        assert any(action.type == "speak" for _, action in talk.turns)


def test_mutual_friends_become_lists_with_an_answer() -> None:
    talks, reasons = read(FILES["mutual-friends"])
    assert sorted(reasons) == ["held with a program, not between people", "nothing is said"]
    first, second, unclear = talks
    loaded = first.scenario
    assert loaded.scenario.family == "mutual_friends" and loaded.answer.answer == {"mutual_friends": ["Ingrid"]}
    assert loaded.scenario.names == ("Person A", "Person B")
    facts = loaded.scenario.agents[0].facts
    assert [fact.terms for fact in facts] == [("Odette",), ("Marcus",), ("Ingrid",), ("Tobias",)]
    assert facts[2].text == "Ingrid works at Bright Bakery and likes rowing."
    assert second.scenario.hash == loaded.hash, "two chats on one scenario share it"
    assert said(first)[-2:] == [("Person A", "action", "selects Ingrid"), ("Person B", "action", "selects Ingrid")]
    assert second.stop_reason == "left" and said(second)[-1] == ("Person B", "leave", "")
    assert unclear.scenario.scenario.family is None and "one name" in unclear.note
    document = loaded.scenario
    assert not FAMILIES["mutual_friends"].check(_document(first)), "the family itself accepts the scenario"
    assert document.limits.turns == 20


def _document(talk: HumanTalk) -> Any:
    from localsim.conversation.scenario import Scenario, ScenarioFile

    scenario = talk.scenario.scenario
    fields = {name: getattr(scenario, name) for name in Scenario.model_fields}
    return ScenarioFile(**fields, **talk.scenario.answer.as_json())


def test_bargains_keep_prices_offers_and_the_listing() -> None:
    talks, _ = read(FILES["craigslist"])
    deal, buttons, reject, quit_, _, half = talks
    key = deal.scenario.answer.answer
    assert key["seller_target"] == key["list_price"] == 60 and key["buyer_target"] == 36
    assert key["zone"] is None and key["targets"] == "aspirations"
    assert not FAMILIES["craigslist"].check(_document(deal))
    assert said(deal)[-2:] == [("Seller", "action", "offers $50"), ("Buyer", "action", "accepts")]
    assert said(buttons)[-2:] == [("Buyer", "action", "offers $45"), ("Seller", "action", "accepts")]
    assert said(reject)[-1] == ("Seller", "action", "rejects")
    assert said(quit_)[-1] == ("Buyer", "leave", "") and quit_.stop_reason == "left"
    assert half.scenario.scenario.family is None and "price" in half.note
    scenario = deal.scenario.scenario
    assert "third floor" not in scenario.setting, "the buyer sees the first part of the description"
    assert "third floor" in scenario.agent("Seller").goal and "third floor" not in scenario.agent("Buyer").goal


def test_campers_needs_and_reasons_are_private_facts() -> None:
    talks, _ = read(FILES["casino"])
    first, second = talks
    person = first.scenario.scenario.agent("Person 1")
    assert [fact.text for fact in person.facts][:2] == [
        "Person 1 needs water most.",
        "Person 1 says about water: My little sister gets dizzy in the heat.",
    ]
    assert said(first)[4] == ("Person 2", "action", "proposes to get 3 firewood, 1 water, 1 food")
    assert [text for _, kind, text in said(first) if kind == "action"][1::2] == ["rejects", "accepts"]
    assert "\U0001f642" in said(first)[0][2]
    outcome = {(score.name, score.agent): score.value or score.label for score in first.outcome}
    assert outcome["corpus_deal", None] == 1.0 and outcome["corpus_points", "Person 1"] == 19.0
    assert outcome["corpus_satisfaction", "Person 2"] == "Extremely satisfied"
    assert second.stop_reason == "left" and second.outcome[0].value == 0.0


def test_both_views_of_a_division_are_one_conversation() -> None:
    talks, _ = read(FILES["dealornodeal"])
    first, failed, other = talks
    assert said(first)[0] == ("Person A", "speak", "can i have the book and the ball ?")
    assert said(first)[-1] == ("Person B", "action", "selects the division")
    assert "1 book, 2 hats, 1 ball" in first.scenario.scenario.setting
    facts = {agent.name: [fact.text for fact in agent.facts] for agent in first.scenario.scenario.agents}
    assert facts["Person A"] == [
        "One book is worth 4 points to Person A.",
        "One hat is worth 1 point to Person A.",
        "One ball is worth 4 points to Person A.",
    ]
    points = {score.agent: score.value for score in first.outcome if score.name == "corpus_points"}
    assert points == {"Person A": 8.0, "Person B": 10.0}
    assert failed.outcome[0].value == 0.0 and failed.outcome[0].label == "disagree"
    assert other.scenario.hash == first.scenario.hash


def test_equal_words_in_two_divisions_stay_two(tmp_path: Path) -> None:
    line = (DATA / FILES["dealornodeal"]).read_text().splitlines()[3]
    file = tmp_path / "twice.txt"
    file.write_text(f"{line}\n{line}\n")
    assert len(list(read_talks(file, "auto", nothing_found))) == 2


def test_a_table_makes_people_of_speakers() -> None:
    talks, reasons = read(FILES["csv"])
    train, numbers = talks
    assert reasons == ["only one person has a turn"]
    scenario = train.scenario.scenario
    assert scenario.setting == "Nia and Omar meet on a train."
    assert scenario.agent("Nia").goal == "Find out where Omar gets off."
    assert said(train)[3] == ("Omar", "non-verbal communication", "looks out of the window")
    assert said(numbers) == [("Person A", "speak", "hi"), ("Person B", "speak", "hello"), ("Person A", "leave", "bye")]
    assert numbers.stop_reason == "left" and "Person A" in numbers.note, "other names are told"


ROWS = [("conversation", "speaker", "text"), ("1", "Ana", "Hello; or, so"), ("1", "Ben", 'He said "hi"')]


def table(separator: str) -> str:
    quoted = (
        separator.join(f'"{cell.replace(chr(34), chr(34) * 2)}"' if number else cell for cell in row)
        for number, row in enumerate(ROWS)
    )
    return "".join(f"{line}\r\n" for line in quoted)


THREE = [{"speaker": name, "text": "Hm."} for name in ("Ana", "Ben", "Eve")]
MARKS = "[private to ['Ben']]|/w Ben|DM to Ben:|PM Ben:|(Ben only)|[only Ben can hear]|[to Ben]|(aside)".split("|")
WHOLE = {"conversation": 1, "turns": [{"speaker": name, "text": text} for _, name, text in ROWS[1:]]}
FORMS = {
    "semicolons": table(";").encode(),
    "tabs": table("\t").encode(),
    "a bar": table("|").encode(),
    "the line that tells Excel": b"sep=;\r\n" + table(";").encode(),
    "a mark of UTF-8": table(",").encode("utf-8-sig"),
    "UTF-16": table("\t").encode("utf-16"),
    "empty rows of Excel": table(";").encode() + b";;\r\n;;\r\n",
    "returns of an old Mac": table(",").replace("\r\n", "\r").encode(),
    "a blank line before": b"\n" + table(";").encode(),
    "indented JSON": json.dumps(WHOLE, indent=2).encode(),
    "an indented list": json.dumps([WHOLE], indent=2).encode("utf-8-sig"),
    "a list in an object": json.dumps({"dialogues": [WHOLE], "version": 2}).encode(),
    "JSON in UTF-16": json.dumps(WHOLE).encode("utf-16"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_table_is_read_as_people_have_it(form: str, tmp_path: Path) -> None:
    file = tmp_path / ("t.json" if b"{" in FORMS[form] or form == "JSON in UTF-16" else "t.csv")
    file.write_bytes(FORMS[form])
    (talk,) = read_talks(file, "auto", nothing_found)
    assert isinstance(talk, HumanTalk) and said(talk) == [(name, "speak", text) for _, name, text in ROWS[1:]]


def test_the_number_of_conversations_is_right(tmp_path: Path) -> None:
    for text in ("\n".join(json.dumps(WHOLE, indent=1) for _ in range(2)), f"{json.dumps(WHOLE)}\n" * 2):
        file = tmp_path / "two.jsonl"
        file.write_text(text)
        assert len(list(read_talks(file, "auto", nothing_found))) == 2, "two objects are two, whatever their names"


def test_who_reads_a_turn_comes_in_and_what_may_say_so_is_refused(tmp_path: Path, store: Store) -> None:
    file = tmp_path / "t.csv"
    file.write_text('conversation,speaker,text,readers,mood\n1,Ana,Psst,Ben,calm\n1,Ben,Yes,,\n1,Eve,Hm,"ana; Ben",\n')
    (talk,) = read_talks(file, "auto", nothing_found)
    assert isinstance(talk, HumanTalk) and talk.readers == {0: ("Ana", "Ben"), 2: ("Eve", "Ana", "Ben")}
    assert talk.note == "columns that are not read: mood"
    found = imported(store, file)
    rows = store.rows("SELECT readers_json r FROM turns ORDER BY turn")
    assert [row["r"] and json.loads(row["r"]) for row in rows] == [["Ana", "Ben"], None, ["Eve", "Ana", "Ben"]]
    assert found.notes == {talk.note: 1}
    file.write_text(
        "conversation,speaker,text,goal,page,\n1,Ana,Hi,Win,1,note\n1,Ben,Yes,,2,\n1,ANA ,Oh,Flee,,\n1,Ben,,,2,"
    )
    (talk,) = read_talks(file, "auto", nothing_found)
    assert isinstance(talk, HumanTalk) and talk.note == (
        "turns without words, which are left out: 1; columns that are not read: page, without a name (6); "
        "several values, of which the first counts: goal"
    )
    assert talk.scenario.scenario.names == ("Ana", "Ben")
    may = "may say who reads"
    for row, problem in {
        **{f"{name}\n1,Ana,Psst,Zoe": may for name in ("to", "Whisper", "visibility", "is_private", "Seen by", "cc")},
        "readers\n1,Ana,Psst,Zoe": "takes no part",
        "Empfänger\n1,Ana,Psst,ben": may,
        "type\n1,Ana,Psst,whisper": may,
        "secret\n1,Ana,Psst,yes": may,
        "text\n1,Ana,Psst,Oh": "two columns have the name text",
        "mood\n1,Ana (to Ben),Psst,calm": "may speak to some only",
        "mood\n1,Ben -> Eve,Psst,calm": "may speak to some only",
        "mood\n1,Ben to Eve,Psst,calm": "may speak to some only",
        "mood\n1,Ben (thinking),Psst,calm": "may speak to some only",
        **{f"mood\n1,Ana,{mark} Psst,calm": "a text for some only" for mark in MARKS},
    }.items():
        file.write_text(f"conversation,speaker,text,{row}\n1,Ben,Yes,\n1,Eve,Oh,\n")
        with pytest.raises(InvalidInput, match=problem):
            list(read_talks(file, "auto", nothing_found))
    for public in ("(nods to Ben) Yes", "Only Ben can say", "[to be honest] No", "PM: the mail", "(to Ben) Yes"):
        file.write_text(f"conversation,speaker,text\n1,Ana,{public}\n1,Ben,Yes\n")
        assert isinstance(next(read_talks(file, "auto", nothing_found)), HumanTalk), public
    for whole in ({"readers": ["Ana"]}, {"turns": [{"speaker": "Ana", "text": "Psst", "meta": {"x": "Ben"}}]}):
        file.write_text(json.dumps({**WHOLE, **whole, "turns": [*whole.get("turns", []), *THREE]}))
        with pytest.raises(InvalidInput, match=may):
            list(read_talks(file, "auto", nothing_found))


def test_chats_of_cocoa_are_recognised_before_they_are_judged(tmp_path: Path) -> None:
    def chat(kbs: Any, **outcome: Any) -> list[Any]:
        events = [{"agent": number, "action": "message", "data": f"hi {number}"} for number in range(2)]
        return [{"uuid": "C", "scenario": {"uuid": "S", "kbs": kbs}, "outcome": outcome, "events": events}]

    file = tmp_path / "c.json"
    friends = [[{"Works at": "the mill", "Hobby": "chess", "Age": 30}], [{"Works at": "the mill", "Hobby": "rowing"}]]
    things = [
        [{"Name": "book", "Count": 2, "Value": value}, {"Name": "pen", "Count": 1, "Value": 3}] for value in (1, 4)
    ]
    file.write_text(json.dumps(chat(friends, reward=0)))
    (talk,) = read_talks(file, "auto", nothing_found)
    assert isinstance(talk, HumanTalk) and "no names" in talk.note and talk.scenario.scenario.family is None
    assert talk.scenario.scenario.agents[0].facts[0].text == "A friend likes chess (works at: the mill, age: 30)."
    file.write_text(json.dumps(chat(things, reward={"0": 3, "1": 8}, valid_deal=True)))
    (talk,) = read_talks(file, "auto", nothing_found)
    assert isinstance(talk, HumanTalk) and talk.scenario.scenario.title == "Two people divide books and pens"
    assert {score.agent: score.value for score in talk.outcome} == {None: 1.0, "Person A": 3.0, "Person B": 8.0}
    file.write_text(json.dumps(chat([[{"Colour": ["red"]}], [{"Colour": ["blue"]}]])))
    with pytest.raises(InvalidInput, match="a task that is not read here"):
        list(read_talks(file, "auto", nothing_found))


# ---- text ----------------------------------------------------------------------------------------------------------


def visible(text: str) -> str:
    """The characters that an import must keep."""
    kept = (char for char in text if unicodedata.category(char) not in ("Cc",) and not char.isspace())
    return "".join("\ufffd" if unicodedata.category(char) == "Cs" else char for char in kept)


@given(st.text(st.characters(exclude_categories=[]), max_size=200))
def test_a_text_keeps_every_visible_character(text: str) -> None:
    plain = plain_text(text)
    assert visible(plain) == visible(text)
    assert plain == plain.strip() and "  " not in plain and not any(ord(char) < 32 for char in plain)
    assert plain_text(plain) == plain


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=60), min_size=2, max_size=6))
def test_a_file_is_read_word_for_word(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    file = tmp_path_factory.getbasetemp() / "words.jsonl"
    turns = [{"speaker": ("Ana", "Bo")[number % 2], "text": text} for number, text in enumerate(["hi", "hi", *texts])]
    file.write_text(json.dumps({"conversation": "1", "turns": turns}) + "\n", encoding="utf-8")
    (talk,) = read_talks(file, "auto", nothing_found)
    assert isinstance(talk, HumanTalk)
    assert [text for _, _, text in said(talk)] == [text for turn in turns if (text := plain_text(turn["text"]))]


NASTY = 'Ana [leave]: "no"\x00\x1b[2J  \ud800 \u202e\u2028 \U0001f642 {{7*7}} \';DROP TABLE turns'


def test_what_was_said_is_stored(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    turns = [{"speaker": "Ana", "text": NASTY}, {"speaker": "Bo", "text": "?"}]
    file.write_text(json.dumps({"conversation": "1", "turns": turns}) + "\n")
    imported(store, file)
    rows = store.rows("SELECT text FROM turns ORDER BY turn")
    assert [row["text"] for row in rows] == [plain_text(NASTY), "?"]
    assert visible(rows[0]["text"]) == visible(NASTY)


# ---- a run of people -----------------------------------------------------------------------------------------------


def test_a_run_of_people_has_episodes_and_no_generations(store: Store) -> None:
    found = imported(store, FILES["mutual-friends"], label="volunteers")
    assert (found.new, found.conversations, found.scenarios) == (True, 3, 2)
    rows = store.rows("SELECT * FROM v_episodes WHERE run_id = ? ORDER BY scenario_id, episode_index", [found.run_id])
    assert [(row["mode"], row["model"], row["status"], row["seed"]) for row in rows] == [
        (PEOPLE, "volunteers", "completed", 0)
    ] * 3
    assert [row["episode_index"] for row in rows] == [0, 1, 0], "chats on one scenario are counted"
    assert not store.rows("SELECT * FROM generations") and store.check() == []
    run = store.rows("SELECT * FROM runs")[0]
    identity = json.loads(run["models_json"])["volunteers"]
    assert identity["kind"] == "people" and identity["source"] == FILES["mutual-friends"]
    assert len(identity["sha256"]) == 64 and run["status"] == "finished"


def test_people_are_no_mode_to_simulate(talk: Any) -> None:
    assert (*SIMULATED, PEOPLE) == CONDITIONS
    with pytest.raises(InvalidInput):
        Plan((talk,), (PEOPLE,), "scripted")  # type: ignore[arg-type]


def test_the_reading_agrees_with_the_corpora(store: Store) -> None:
    """A reading may be missing, but none contradicts what the people of the file did."""
    friends = imported(store, FILES["mutual-friends"])
    assert friends.agreement["success"] == (2, 0, 2)
    bargains = imported(store, FILES["craigslist"])
    for name in ("deal", "price"):
        equal, unread, n = bargains.agreement[name]
        assert equal >= 1 and equal + unread == n, name
    scores = scores_of(store, bargains.run_id)
    assert scores["bargain_T_table", 0]["corpus_price"] == scores["bargain_T_table", 0]["price"] == 50
    assert scores["bargain_T_table", 2]["corpus_deal"] == scores["bargain_T_table", 2]["deal"] == 0
    assert scores["bargain_T_lamp", 0]["deal"] == 0
    assert "corpus_deal" not in scores["bargain_T_lamp", 1], "a chat that broke off has no outcome"


@pytest.mark.parametrize(("second", "success"), [("Ingrid", 1.0), ("Celia", 0.0)])
def test_two_who_select_the_same_friend_agree(second: str, success: float, store: Store, tmp_path: Path) -> None:
    """The page showed each selection to the other side, so that it says as much as words do."""
    chat = json.loads((DATA / FILES["mutual-friends"]).read_text())[0]
    words = [event for event in chat["events"] if event["action"] == "message"][:2]
    lists = chat["scenario"]["kbs"]
    chosen = [
        next(item for item in items if item["Name"] == name)
        for items, name in zip(lists, ("Ingrid", second), strict=True)
    ]
    selections = [{"agent": agent, "time": "1", "action": "select", "data": item} for agent, item in enumerate(chosen)]
    chat |= {"events": [*words, *selections], "outcome": {"reward": int(success)}}
    file = tmp_path / "one.json"
    file.write_text(json.dumps([chat]))
    found = imported(store, file)
    assert found.agreement["success"] == (1 - int(success), 0, 1), "the words alone do not tell of any friend"
    (scores,) = scores_of(store, found.run_id).values()
    assert scores["success"] == scores["corpus_success"] == success


def test_no_deal_is_wrong_where_targets_are_aspirations(store: Store) -> None:
    found = imported(store, FILES["craigslist"])
    names = {name for scores in scores_of(store, found.run_id).values() for name in scores}
    assert {"deal", "price", "surplus/Seller"} <= names
    assert not names & {"success", "deal_without_zone", "walked_away", "in_zone"}


def test_the_same_files_are_stored_once(store: Store, tmp_path: Path) -> None:
    first = imported(store, FILES["casino"])
    renamed = tmp_path / "again.json"
    shutil.copy(DATA / FILES["casino"], renamed)
    again = imported(store, renamed)
    assert (again.new, again.run_id) == (False, first.run_id)
    assert imported(store, FILES["casino"], FILES["csv"]).new
    both = imported(store, FILES["csv"], FILES["casino"])
    assert not both.new, "the order of files does not matter"
    with pytest.raises(InvalidInput, match="twice"):
        imported(store, renamed, FILES["casino"])


def test_a_defect_in_any_file_stores_nothing(store: Store, tmp_path: Path) -> None:
    broken = tmp_path / "broken.csv"
    broken.write_text("conversation,speaker,text\n1,Ana,hi\n1,Bo,hi,what,is,this\n")
    with pytest.raises(InvalidInput) as error:
        imported(store, FILES["casino"], broken)
    assert error.value.where == f"{broken}:3"
    assert not store.path.exists() or not store.rows("SELECT * FROM runs")


BAD: dict[str, tuple[str, ...]] = {
    "empty": ("a.json", "", "a.json"),
    "no_json": ("a.json", '[{"uuid": }]', "a.json:1:11"),
    "no_list": ("a.json", "[3]", "a.json"),
    "unknown_keys": ("a.json", '[{"colour": "red"}]', "a.json, conversation 1"),
    "other_kind_later": (
        "a.json",
        json.dumps([json.loads((DATA / "casino.json").read_text())[0], {"uuid": "x"}]),
        "a.json, conversation 2",
    ),
    "no_column": ("a.csv", "conversation,speaker\n1,Ana\n", "a.csv:1"),
    "prose": ("a.txt", "Ana: hi\nBo: hi\n", "a.txt"),
    "no_dialogue": ("a.txt", "<input> 1 1 1 1 1 1 </input> <output> </output>\n", "a.txt:1"),
    "bad_input": ("a.txt", "<input> 1 b </input> <dialogue> YOU: hi </dialogue> <output> </output>\n", "a.txt:1"),
    "no_speaker": ("a.txt", "<input> 1 1 1 1 1 1 </input> <dialogue> hi </dialogue> <output> </output>\n", "a.txt:1"),
    "no_object": ("a.jsonl", '{"conversation": 1, "speaker": "Ana", "text": "hi"}\n[]\n', "a.jsonl:2"),
    "bad_line": ("a.jsonl", '{"conversation": 1, "speaker": "Ana", "text": "hi"}\n{"conv\n', "a.jsonl:2"),
    "no_speaker_key": ("a.jsonl", '{"conversation": 1, "text": "hi"}\n', "a.jsonl:1"),
    "bad_action": ("a.jsonl", '{"conversation": 1, "speaker": "Ana", "text": "hi", "action": "sing"}\n', "a.jsonl:1"),
    "no_scenario": ("a.jsonl", '{"conversation": 1, "speaker": "Ana", "scenario": "nowhere"}\n', "a.jsonl:1"),
    "other_people": (
        "a.jsonl",
        '{"conversation": 1, "speaker": "Ana", "text": "hi", "scenario": "mutual_friends_01"}\n',
        "a.jsonl:1",
    ),
    "a_workbook": ("a.csv", "PK\x03\x04\x14", "a.csv", "a workbook"),
    "utf_16": ("a.csv", "c\x00o\x00", "a.csv", "not UTF-8 text: UTF-16 without"),
    "whatsapp": ("a.txt", "[12.11.23, 10:15:00] Ana: Hi\n", "a.txt", "the format is not recognised"),
    "script": ("a.txt", "{pause}\nANA: Hi\n", "a.txt", "the format is not recognised"),
    "openai": ("a.jsonl", '{"messages": [{"role": "user", "content": "hi"}]}\n{}\n', "a.jsonl:1", "a chat of roles"),
    "sharegpt": ("a.json", '[{"conversations": [{"from": "gpt", "value": "x"}]}]', "conversation 1", "a chat of roles"),
    "lmsys": ("a.jsonl", '{"conversation": [{"role": "user", "content": "x"}]}', "a.jsonl:1", "a chat of roles"),
    "inspect": ("a.json", '{"eval": {}, "samples": [{"messages": [{}]}]}', "a.json:1", "a log of Inspect"),
    "privacylens": ("a.json", '[{"name": "x", "seed": {}, "vignette": {}}]', "conversation 1", "seeds of PrivacyLens"),
    "our_own": ("a.jsonl", '{"episode_id": "x", "run_id": "r", "turns": [{}]}', "a.jsonl:1", "an export of localsim"),
    "scenario_without_agents": (
        "a.jsonl",
        '{"conversation": 1, "speaker": "Ana", "text": "hi", "scenario": {"id": "x"}}\n',
        "a.jsonl:1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_one_clear_error(case: str, store: Store, tmp_path: Path) -> None:
    name, text, place, *reason = BAD[case]
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(InvalidInput) as error:
        imported(store, file)
    assert str(error.value.where).endswith(place) and error.value.message.startswith(*reason or [""])
    assert error.value.hint, "it says what to do next"


def test_a_missing_file_and_a_wrong_choice_are_errors(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, word in (
        (["nowhere.json"], "cannot be read"),
        ([str(DATA / FILES["casino"]), "--format", "casion"], "casino"),
        ([str(DATA / FILES["casino"]), "--family", "mutual_friends"], "--family"),
        ([str(DATA / FILES["csv"]), "--family", "mutual_friends"], "facts"),
        ([str(DATA / FILES["csv"]), "--family", "nothing"], "unknown family"),
        ([str(DATA / FILES["csv"]), "--label", "a\x1bb"], "label"),
        ([str(DATA / FILES["mutual-friends"]), "--format", "craigslist"], "conversation 1"),
    ):
        assert localsim(["import", "talks", *arguments, "--no-leaks", "--db", str(store.path)]) == 3
        captured = capsys.readouterr()
        assert word in captured.err and "Traceback" not in captured.err
