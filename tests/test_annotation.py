"""Human annotation: what raters see is blind, and what they answer is kept once."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from localsim.annotation import items as shown_items
from localsim.annotation import records
from localsim.annotation.bundle import bundle, read_answers
from localsim.annotation.items import (
    DimensionItem,
    Item,
    Task,
    find,
    items_of,
    next_item,
    progress,
    shown,
    shuffled,
    talks_of,
)
from localsim.annotation.records import answered, checked_rater, done, rows, save, undo, validated
from localsim.cli.annotate import annotate
from localsim.conversation.episode import MODES
from localsim.errors import InvalidInput
from localsim.evaluators.judge import DIMENSIONS
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.store.database import Store
from localsim.store.lock import Busy
from tests.conftest import Quiet, generated
from tests.rated import best, given, invoke
from tests.web_server import at_once

HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)"> \u202etxet\u202c \u2028 & {{ 7*7 }}'
TASKS: tuple[Task, ...] = ("pairs", "dimensions", "disclosures")


# ---- what raters see -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_nothing_that_is_shown_names_a_mode_a_model_a_run_or_an_expected_answer(
    store: Store, run: str, task: Task
) -> None:
    for item in items_of(store, run, task, "ann"):
        seen = shown(item)
        text = json.dumps(seen)
        for word in (*MODES, item.episode.model, run, item.item_id, item.episode.episode_id, "attention", "expected"):
            assert word not in text, word
        assert set(seen) >= {"task", "item", "question", "setting", "people", "talks"}
        assert all(set(turn) == {"turn", "speaker", "text", "action"} for talk in seen["talks"] for turn in talk)


def test_every_two_modes_of_a_unit_make_a_pair(store: Store, run: str) -> None:
    found = [item for item in items_of(store, run, "pairs", "ann") if not item.attention]
    assert len(found) == len({item.item_id for item in found}) == 12
    for item in found:
        modes = [item.episode.mode, item.second.mode]
        assert item.episode.scenario.id == item.second.scenario.id and item.episode.seed == item.second.seed
        ids = {item.episode.mode: item.episode.episode_id, item.second.mode: item.second.episode_id}
        assert item.item_id == "~".join(ids[mode] for mode in MODES if mode in modes)


def test_sides_and_order_are_fixed_for_a_rater_and_differ_between_raters(store: Store, run: str) -> None:
    talks = talks_of(store, run)
    ann, bob = (shown_items.pairs_from(talks, rater) for rater in ("ann", "bob"))
    assert shown_items.pairs_from(talks, "ann") == ann
    assert shown_items.pairs_from(talks[::-1], "ann") == ann, "whatever order the database has"
    assert [item.item_id for item in ann] != [item.item_id for item in bob]
    many = [shown_items.pairs_from(talks, f"rater{number}") for number in range(20)]
    first = ann[0].item_id
    assert len({item.episode.episode_id for of in many for item in of if item.item_id == first}) == 2
    swapped = [
        MODES.index(item.episode.mode) > MODES.index(item.second.mode)  # type: ignore[arg-type]
        for of in many
        for item in of
        if not item.attention
    ]
    assert 0.3 < sum(swapped) / len(swapped) < 0.7
    assert len({item.key for item in (*ann, *bob)}) == len(ann) + len(bob), "a key belongs to one rater"


def test_attention_items_stand_after_every_seventh_and_have_the_same_words(store: Store, run: str) -> None:
    talks = talks_of(store, run)
    found = shown_items.pairs_from(talks, "ann")
    assert [place for place, item in enumerate(found) if item.attention] == [7]
    item = found[7]
    assert item.item_id.startswith("attention:") and item.expected in (1, 2)
    intact, broken = (item.episode, item.second) if item.expected == 1 else (item.second, item.episode)
    assert intact.turns != broken.turns and item.sides["shuffled"] == str(3 - item.expected)
    for whole, mixed in zip(intact.turns, broken.turns, strict=True):
        assert sorted(whole["text"].split()) == sorted(mixed["text"].split())
    assert {made[7].expected for n in range(20) if (made := shown_items.pairs_from(talks, f"r{n}"))} == {1, 2}
    few = [talk for talk in talks if talk.unit in {talks[0].unit, talks[-1].unit}]
    assert [item.attention for item in shown_items.pairs_from(few, "ann")].index(True) == 4, "six pairs have one"
    one = [talk for talk in talks if talk.unit == talks[0].unit]
    assert not any(item.attention for item in shown_items.pairs_from(one, "ann")), "three have none"
    short = replace(intact, turns=[{**turn, "text": "Oh well yes"} for turn in intact.turns])
    assert shuffled(short) is None, "nobody could tell"


def test_pairs_show_goals_and_dimensions_secrets_too(store: Store, run: str) -> None:
    pair = next(item for item in items_of(store, run, "pairs", "ann") if item.episode.scenario.id == "talk")
    assert [set(person) for person in shown(pair)["people"]] == [{"name", "background", "goal"}] * 2
    assert {"label": "occupation", "text": "nurse"} in shown(pair)["people"][0]["background"]
    found = [item for item in items_of(store, run, "dimensions", "ann") if item.episode.scenario.id == "talk"]
    assert len(found) == 12 and shown(found[0])["people"][0]["secret"] == "Ana ate one slice herself."
    assert found[0].item_id.partition(":")[0] == found[1].item_id.partition(":")[0], "one talk is read once"
    assert [one["id"] for one in shown(found[0])["dimensions"]] == list(DIMENSIONS)
    fact = next(item for item in items_of(store, run, "disclosures", "ann") if item.episode.scenario.id == "talk")
    assert [one["id"] for one in shown(fact)["facts"]] == ["ana_1", "bo_1"]


def test_going_through_items(store: Store, run: str) -> None:
    found = items_of(store, run, "pairs", "ann")
    assert next_item(found, set()) == found[0] and next_item(found, {found[0].item_id}) == found[1]
    assert next_item(found, {item.item_id for item in found}) is None
    assert progress(found, {found[0].item_id, "another"}) == (1, 13)
    assert find(found, found[3].key) == found[3]
    with pytest.raises(InvalidInput, match="no item"):
        find(found, "nothing")


def test_a_run_without_pairs_says_so(store: Store) -> None:
    run_id = start(Plan((generated("craigslist"),), ("agents",), "scripted"), store, Quiet(), lambda _: None).run_id
    with pytest.raises(InvalidInput, match="no two modes") as caught:
        items_of(store, run_id, "pairs", "ann")
    assert "--mode all" in str(caught.value.hint)


# ---- what they answer ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, 3, "1", 1.0, True, None, [1]])
def test_a_pair_is_answered_with_1_or_2(store: Store, run: str, value: Any) -> None:
    item = items_of(store, run, "pairs", "ann")[0]
    with pytest.raises(InvalidInput, match="1 or 2"):
        validated(item, value)
    assert validated(item, 2) == 2
    assert validated(replace(item, ties=True), 0) == 0


def test_dimensions_and_disclosures_are_answered_whole_and_in_range(store: Store, run: str) -> None:
    item: Item = items_of(store, run, "dimensions", "ann")[0]
    whole: dict[str, Any] = dict.fromkeys(DIMENSIONS, 0)
    assert validated(item, whole | {"goal": None}) == whole | {"goal": None}
    without = {name: mark for name, mark in whole.items() if name != "secret"}
    for wrong in (7, without, {**whole, "x": 1}, {**whole, "goal": 11}, {**whole, "secret": 1}, {**whole, "goal": 1.5}):
        with pytest.raises(InvalidInput):
            validated(item, wrong)
    item = next(item for item in items_of(store, run, "disclosures", "ann") if item.episode.scenario.id == "talk")
    assert validated(item, {"bo_1": 0, "ana_1": None}) == {"ana_1": None, "bo_1": 0}
    for wrong in ({"ana_1": 0}, {"ana_1": 0, "bo_1": len(item.episode.turns)}, {"ana_1": -1, "bo_1": 0}):
        with pytest.raises(InvalidInput):
            validated(item, wrong)


@pytest.mark.parametrize("name", ["", "a b", "x" * 41, "ann@example.org", "Zoë", "a/b", "a\n"])
def test_raters_are_pseudonyms(name: str) -> None:
    with pytest.raises(InvalidInput, match="pseudonym"):
        checked_rater(name)
    assert checked_rater("rater_01-B") == "rater_01-B"


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "3", True])
def test_times_are_numbers_from_0(store: Store, run: str, seconds: Any) -> None:
    with pytest.raises(InvalidInput, match="not a time"):
        answered(items_of(store, run, "pairs", "ann")[0], 1, origin="browser", seconds=seconds)


def test_answering_again_replaces_and_undo_takes_the_latest_back(store: Store, run: str) -> None:
    first, second = items_of(store, run, "pairs", "ann")[:2]
    for item, value in ((first, 1), (second, 1), (first, 2), (first, 2)):
        save(store, answered(item, value, origin="browser", seconds=3))
    assert done(store, "pairs", run, "ann") == {first.item_id, second.item_id}
    assert records.value_of(store, first) == 2
    assert done(store, "pairs", run, "bob") == done(store, "dimensions", run, "ann") == set()
    assert undo(store, "pairs", run, "bob") is None
    assert undo(store, "pairs", run, "ann") == first.item_id, "it was answered last"
    assert undo(store, "pairs", run, "ann") == second.item_id
    assert undo(store, "pairs", run, "ann") is None and rows(store, run) == []
    assert records.value_of(store, first) is None


def test_rows_tell_modes_and_what_was_chosen(store: Store, run: str) -> None:
    given(store, run, "ann", best("agents", "script", "mindreaders"), ties=True)
    found = store.rows("SELECT *, value_json::INTEGER AS value FROM v_annotations")
    assert len(found) == 13
    for row in found:
        if row["attention"]:
            assert row["mode_1"] is row["mode_2"] is row["chosen_mode"] is None
        else:
            assert row["chosen_mode"] == ("agents" if "agents" in (row["mode_1"], row["mode_2"]) else "script")
            assert row["chosen_mode"] == row[f"mode_{row['value']}"]
    save(store, answered(items_of(store, run, "pairs", "ann", ties=True)[0], 0, origin="browser"))
    assert store.rows("SELECT count(*) AS n FROM v_annotations WHERE value_json = '0' AND chosen_mode IS NULL") == [
        {"n": 1}
    ]


def test_thirty_raters_at_once_lose_and_double_nothing(store: Store, run: str) -> None:
    talks = talks_of(store, run)

    def rate(rater: str) -> None:
        for item in shown_items.pairs_from(talks, rater)[:10]:
            save(store, answered(item, 1, origin="browser"))

    with at_once([f"r{number}" for number in range(30)], rate):
        pass
    kept = {(row.rater, row.item_id) for row in rows(store, run)}
    wanted = {
        (item.rater, item.item_id) for number in range(30) for item in shown_items.pairs_from(talks, f"r{number}")[:10]
    }
    assert kept == wanted and len(rows(store, run)) == 300


def test_an_answer_that_cannot_be_kept_is_told_and_the_next_one_is_tried(
    store: Store, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = items_of(store, run, "pairs", "ann")[0]
    monkeypatch.setattr(records, "PATIENCE_S", 0.2)
    with FileLock(str(store.path) + ".lock"), pytest.raises(Busy):
        save(store, answered(item, 1, origin="browser"))
    save(store, answered(item, 1, origin="browser"))
    assert records.value_of(store, item) == 1


def test_removing_a_run_removes_its_annotations(store: Store, run: str) -> None:
    given(store, run, "ann", best(*MODES))
    assert rows(store, run)
    store.remove_run(run)
    assert store.rows("SELECT * FROM annotations") == []


# ---- without a server ----------------------------------------------------------------------------------------------


def data_of(page: str) -> dict[str, Any]:
    """The data in a page."""
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert len(found) == 1
    data: dict[str, Any] = json.loads(found[0])
    return data


def answers_of(data: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """What the page would save."""
    head = {name: data[name] for name in ("format", "version", "run_id", "task", "rater", "ties")}
    rest = {"seconds": 12.5, "answered_utc": "2026-01-31T12:00:00.000Z"}
    return {**head, "answers": [{"item": key, "value": value, **rest} for key, value in values.items()]}


@pytest.mark.parametrize("task", TASKS)
def test_a_bundle_is_one_blind_file(store: Store, run: str, task: Task) -> None:
    found = items_of(store, run, task, "ann")
    page = bundle(found, task, "ann", "A <title>")
    assert "<title>A &lt;title&gt;</title>" in page and "default-src 'none'" in page
    assert not re.search(r"https?://|<link|<img|src=|@import|url\(|innerHTML|insertAdjacentHTML|eval\(", page)
    data = data_of(page)
    assert (data["run_id"], data["task"], data["rater"]) == (run, task, "ann") and len(data["items"]) == len(found)
    del data["run_id"]
    text = json.dumps(data)
    for word in (*MODES, "attention", "scripted", *(item.item_id for item in found)):
        assert word not in text, word


def test_hostile_words_stay_words_in_a_bundle(store: Store, run: str) -> None:
    item = items_of(store, run, "pairs", "ann")[0]
    turns = [{**turn, "text": HOSTILE} for turn in item.episode.turns]
    page = bundle([replace(item, episode=replace(item.episode, turns=turns))], "pairs", "ann", HOSTILE)
    assert page.count("</script>") == 2 and page.count("<script") == 2
    embedded = page.partition('id="data">')[2].partition("</script>")[0]
    assert not set(embedded) & set("<>&\u2028\u2029\u202e")
    assert data_of(page)["items"][0]["talks"][0][0]["text"] == HOSTILE


def test_answers_come_back_and_importing_twice_changes_nothing(store: Store, run: str) -> None:
    result = invoke("bundle", "--rater", "ann", "--ties", "-o", "ann.html", "--json")
    assert result.exit_code == 0 and json.loads(result.stdout)["items"] == 13
    data = data_of(Path("ann.html").read_text(encoding="utf-8"))
    found = items_of(store, run, "pairs", "ann", ties=True)
    values = {item.key: best("agents", "script", "mindreaders")(item) for item in found} | {found[0].key: 0}
    assert list(values) == [item["item"] for item in data["items"]]
    Path("answers.json").write_text(json.dumps(answers_of(data, values)), encoding="utf-8")
    assert invoke("import", "answers.json").exit_code == 0
    before = rows(store, run)
    assert len(before) == 13 and {row.origin for row in before} == {"bundle"}
    assert before[0].created_utc == datetime(2026, 1, 31, 12) and before[0].seconds == 12.5
    again = invoke("import", "answers.json", "answers.json", "--json")
    assert again.exit_code == 0 and [row["answers"] for row in json.loads(again.stdout)] == [13, 13]
    assert rows(store, run) == before
    save(store, answered(found[1], 3 - values[found[1].key], origin="terminal"))
    assert invoke("import", "answers.json").exit_code == 0
    assert records.value_of(store, found[1]) == 3 - values[found[1].key], "what was answered later stays"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"format": "other"}, "format is 'other'"),
        ({"version": 2}, "version is 2"),
        ({"run_id": "20200101-000000-abcd"}, "which is not in"),
        ({"run_id": 7}, "run_id is 7"),
        ({"task": "poems"}, "no task"),
        ({"rater": "ann@example.org"}, "pseudonyms"),
        ({"rater": "bob"}, r"answers\[0\]: no item"),
        ({"made_by": "a robot"}, "no kind of rater 'a robot'"),
        ({"answers": None}, "answers is not a list"),
        ({"answers": [1]}, r"answers\[0\]: not an object"),
        ({"answers": [{"value": 1}]}, r"answers\[0\]: item is None"),
        ({"ties": False, "answers": "a tie"}, r"answers\[0\]: answer: 0 is not 1 or 2"),
        ({"answers": "twice"}, r"answers\[1\]: answers item \w+ a second time"),
        ({"answers": "no time"}, r"answers\[0\]: answered_utc"),
        ({"answers": "long"}, r"answers\[0\]: seconds"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_with_its_place(
    store: Store, run: str, change: dict[str, Any], told: str
) -> None:
    found = items_of(store, run, "pairs", "ann", ties=True)
    data = answers_of(data_of(bundle(found, "pairs", "ann", "x")), {found[0].key: 1})
    one = data["answers"][0]
    changes = {
        "a tie": [{**one, "value": 0}],
        "twice": [one, one],
        "no time": [{**one, "answered_utc": "yesterday"}],
        "long": [{**one, "seconds": "long"}],
    }
    if isinstance(change.get("answers"), str):
        change = {**change, "answers": changes[change["answers"]]}
    Path("a.json").write_text(json.dumps({**data, **change}), encoding="utf-8")
    with pytest.raises(InvalidInput, match=told) as caught:
        read_answers(Path("a.json"), store)
    assert str(caught.value).startswith("a.json")
    assert rows(store, run) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [("{\n nope", "a.json:2:2"), ("[]", "not an object"), ("[" * 5000, "nested too deep"), ("\x00", "not JSON")],
)
def test_a_file_that_is_no_json_is_refused(store: Store, text: str, told: str) -> None:
    Path("a.json").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInput, match=told):
        read_answers(Path("a.json"), store)
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_answers(Path("b.json"), store)


# ---- the command line ----------------------------------------------------------------------------------------------


def test_a_session_in_the_terminal_stops_and_goes_on(store: Store, run: str) -> None:
    session = ["terminal", "--rater", "ann", "--ties"]
    result = invoke(*session, text="9\nx\n1\n2\nu\n0\nq\n")
    assert result.exit_code == 0, result.output
    assert "'x' is not a whole number" in result.output and "is undone" in result.output
    assert not re.search(r"\b(script|mindreaders|scripted)\b", result.output), "the terminal is blind too"
    found = items_of(store, run, "pairs", "ann", ties=True)
    assert {row.item_id: row.value for row in rows(store, run)} == {found[0].item_id: 1, found[1].item_id: 0}
    assert {row.origin for row in rows(store, run)} == {"terminal"}
    assert all(row.seconds is not None and row.seconds >= 0 for row in rows(store, run))
    result = invoke(*session, text="1\n")
    assert result.exit_code == 0 and "2 of 13 answered" in result.output and "Run the same command" in result.output
    result = invoke(*session, text="2\n" * 10)
    assert result.exit_code == 0 and "All items are answered" in result.output and len(rows(store, run)) == 13
    assert json.loads(invoke("undo", "--rater", "ann", "--json").stdout)["undone"] == found[-1].item_id
    assert "nothing to undo" in invoke("undo", "--rater", "bob").output


def test_other_tasks_in_the_terminal(store: Store, run: str) -> None:
    result = invoke("terminal", "--rater", "ann", "--task", "dimensions", text="5\n5\n0\n-\n0\n0\n0\nq\n")
    assert result.exit_code == 0, result.output
    (row,) = rows(store, run)
    assert row.value == {**dict.fromkeys(DIMENSIONS, 0), "goal": 5, "believability": 5, "knowledge": None}
    item = items_of(store, run, "dimensions", "ann")[0]
    assert isinstance(item, DimensionItem) and row.shown == {"1": item.episode.episode_id, "agent": item.agent}
    first = items_of(store, run, "disclosures", "ann")[0]
    facts = len(shown(first)["facts"])
    result = invoke("terminal", "--rater", "ann", "--task", "disclosures", text="99\n0\n2\n" + "-\n" * (facts - 1))
    assert result.exit_code == 0, result.output
    value = records.value_of(store, first)
    assert list(value.values()).count(None) == facts - 1 and 1 in value.values(), "readers count turns from 1"


@pytest.mark.usefixtures("run")
def test_words_of_models_cannot_steer_the_terminal(store: Store) -> None:
    with store.writing() as connection:
        connection.execute("UPDATE turns SET text = '\x1b[2J\u202eevil' || text")
    result = invoke("terminal", "--rater", "ann", text="q\n")
    assert "evil" in result.output and "\x1b" not in result.output and "\u202e" not in result.output


def test_labels_say_if_a_person_or_a_language_model_made_them(store: Store, run: str) -> None:
    result = invoke("terminal", "--rater", "ann", "--ties", text="1\nq\n")
    assert result.exit_code == 0
    result = invoke("terminal", "--rater", "bot", "--rater-kind", "model", "--ties", text="1\nq\n")
    assert result.exit_code == 0
    assert {row.rater: row.made_by for row in rows(store, run)} == {"ann": "person", "bot": "language model"}
    assert "1 person and 1 language model" in invoke("agreement").output, "also where one scenario has no interval"
    assert json.loads(invoke("agreement", "--json").stdout)["kinds"] == {"person": 1, "language model": 1}
    assert invoke("terminal", "--rater", "x", "--rater-kind", "robot").exit_code == 2


@pytest.mark.parametrize("kind", ["person", "model"])
def test_a_bundle_carries_the_kind_of_its_rater(store: Store, run: str, kind: str) -> None:
    assert invoke("bundle", "--rater", "ann", "--rater-kind", kind, "-o", "ann.html").exit_code == 0
    data = data_of(Path("ann.html").read_text(encoding="utf-8"))
    item = next(item for item in items_of(store, run, "pairs", "ann") if item.key == data["items"][0]["item"])
    answers = {**answers_of(data, {item.key: 1}), "made_by": data["made_by"]}
    Path("answers.json").write_text(json.dumps(answers), encoding="utf-8")
    assert invoke("import", "answers.json").exit_code == 0
    assert [row.made_by for row in rows(store, run)] == [{"person": "person", "model": "language model"}[kind]]
    page = Path("ann.html").read_text(encoding="utf-8")
    assert "rater, made_by, ties} = data" in page and "made_by, ties, answers}" in page, "the page saves it"


def test_agreement_on_the_command_line(store: Store, run: str) -> None:
    given(store, run, "ann", best("agents", "script", "mindreaders"))
    data = json.loads(invoke("agreement", run, "--json").stdout)
    assert data["run_id"] == run and data["pairs"]["n"] == 12
    text = invoke("agreement").output
    assert "script over agents: 0% [0%, 100%] of 4 judgements of 4 items on 2 scenarios, p = 0.5 (1 after Holm)" in text
    assert "by 1 person" in text and "no two raters judged the same" in text


@pytest.mark.usefixtures("run")
def test_wrong_names_are_refused_before_anything_is_shown() -> None:
    result = invoke("terminal", "--rater", "ann@example.org", text="1\n")
    assert isinstance(result.exception, InvalidInput) and "Setting" not in result.output
    assert invoke("terminal").exit_code == 2


def test_every_help_begins_with_a_sentence() -> None:
    for name, command in annotate.commands.items():
        assert command.help and re.search(r"[.]$", command.help.strip().splitlines()[0]), name
        assert "localsim annotate" in command.help, name
