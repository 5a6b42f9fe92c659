"""Conditions: their names on a command line, and comparisons, figures and judgements across runs and models."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from localsim.__main__ import run as command
from localsim.annotation.agreement import agreement, sentences
from localsim.annotation.bundle import bundle, read_answers
from localsim.annotation.items import PairItem, items_of
from localsim.annotation.records import answered, done, rows, save_all, undo
from localsim.annotation.selection import selected
from localsim.conversation.episode import Score
from localsim.errors import InvalidInput
from localsim.evaluators import evaluate
from localsim.evaluators.judge import DIMENSIONS
from localsim.evaluators.naturalness import Naturalness
from localsim.reports.card import card, sections
from localsim.reports.comparison import compare_chosen
from localsim.reports.figures.beside import with_conditions
from localsim.reports.figures.plots import figures
from localsim.reports.html import render
from localsim.reports.markdown import as_markdown
from localsim.reports.report import report
from localsim.reports.validity import judges
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.runs.scheduler import Watcher
from localsim.store import conditions
from localsim.store.conditions import Condition, choices, chosen, conditions_of, labelled, names_of, pairs_of
from localsim.store.database import Store
from localsim.store.records import score_records
from localsim.web.app import Site, create_app
from localsim.web.guard import Rules
from tests.conftest import generated
from tests.rated import invoke
from tests.test_judge import choosing
from tests.web_server import BASE, HOSTS, field


def played(store: Store, model: str, modes: tuple[Any, ...], seeds: range = range(1, 5), **plan: Any) -> str:
    scenarios = tuple(generated("mutual_friends", seed) for seed in seeds)
    made = Plan(scenarios, modes, model, episodes=2, **plan)
    return runner.start(made, store, Watcher(), lambda _: None, leaks=False).run_id


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str, str]:
    """A run of three modes, and a run of agents by another model that lacks a scenario and has another one."""
    store = Store(tmp_path_factory.mktemp("conditions") / "d.duckdb")
    first = played(store, "scripted:friends", ("script", "agents", "mindreaders"))
    return store, first, played(store, "scripted:guesser", ("agents",), range(2, 6))


@pytest.fixture
def own(two: tuple[Store, str, str], tmp_path: Path) -> tuple[Store, str, str]:
    """The two runs in a database that a test may change."""
    store, first, second = two
    copy = tmp_path / "test.duckdb"
    copy.write_bytes(store.path.read_bytes())
    return Store(copy), first, second


# ---- names ---------------------------------------------------------------------------------------------------------


def test_a_reference_names_conditions(two: tuple[Store, str, str]) -> None:
    store, first, second = two
    whole = chosen(store, first)
    assert whole.whole and [each.name for each in whole.conditions] == ["script", "agents", "mindreaders"]
    one = chosen(store, "@last:agents")
    assert not one.whole and one.conditions == (Condition(second, "agents", "scripted:guesser"),)
    assert chosen(store, f"{second}:agents:guess").conditions == one.conditions, "a part of the model's name is enough"
    assert chosen(store, f"{second}:agents:scripted:guesser").conditions == one.conditions
    (named,) = chosen(store, "taught=@last:agents").conditions
    assert (named.label, named) == ("taught", one.conditions[0])


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("@last:agent", "no condition 'agent'"),
        ("@last:script", "its conditions are agents"),
        ("@last:agents:nobody", "no condition"),
        ("x=@last-1", "would mean 3 conditions"),
        ("nowhere:agents", "nowhere"),
    ],
)
def test_an_unknown_condition_is_one_clear_error(two: tuple[Store, str, str], reference: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        chosen(two[0], reference)
    assert words in f"{caught.value.message} {caught.value.hint}"


MODELS = st.one_of(
    st.sampled_from(["2", "27", "2:7b", ":2", "facts:2", "qwen2.5", "scripted:friends", "a:b:3"]),
    st.text("ab27:+,", min_size=1, max_size=6),
)
GRANTS = st.sampled_from(["", "facts", "facts:2", "facts:27", "goal,facts", "Ana=facts", "facts:2+decoys", "1=facts:7"])


def _store_with(known: list[Condition], monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(conditions, "conditions_of", lambda *_: known)
    monkeypatch.setattr(Store, "run_id", lambda _, run: run)
    return Store(Path("unread.duckdb"))


@given(st.lists(st.builds(Condition, st.just("r"), st.just("agents"), MODELS, GRANTS), min_size=1, max_size=6))
def test_a_condition_is_found_by_its_spelling_whatever_the_model_is_called(known: list[Condition]) -> None:
    known = list(dict.fromkeys(known))
    with pytest.MonkeyPatch.context() as monkeypatch:
        store = _store_with(known, monkeypatch)
        for one in known:
            assert chosen(store, one.spelled()).conditions == (one,)
            assert chosen(store, f"x={one.spelled()}").conditions == (one,)
            named = chosen(store, f"r:{one.name}").conditions
            assert set(named) == {each for each in known if each.name == one.name}


@pytest.mark.parametrize("model", ["qwen2.5", "2", "llama3:8b"])
def test_the_number_of_facts_is_not_searched_in_the_name_of_a_model(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Condition("r", "agents", model, "facts")
    store = _store_with([one], monkeypatch)
    with pytest.raises(InvalidInput, match=r"no condition 'agents\+facts:2'") as caught:
        chosen(store, "r:agents+facts:2")
    assert caught.value.hint == "did you mean agents+facts?"
    part = "2" if "2" in model else "8b"
    assert chosen(store, f"r:agents+facts::{part}").conditions == (one,)


def test_grants_can_be_named_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Condition("r", "agents", "m", "goal,facts:2+decoys")
    store = _store_with([one, Condition("r", "agents", "m")], monkeypatch)
    assert chosen(store, "r:agents+decoys+facts:2,goal:m").conditions == (one,)


def test_a_run_without_episodes_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    store = _store_with([], monkeypatch)
    for reference in ("r", "r:agents", "x=r:agents"):
        with pytest.raises(InvalidInput) as caught:
            chosen(store, reference)
        error = caught.value
        assert (error.where, error.message) == (reference, "run r has no episodes yet, so it has no conditions")
        assert error.hint == "localsim resume r simulates them"


RUNS, NAMES = st.sampled_from(["a", "b"]), st.sampled_from(["", "goal", "facts:2"])
ANY = st.builds(Condition, RUNS, st.sampled_from(["agents", "script"]), st.sampled_from(["m", "n"]), NAMES)


@given(st.lists(ANY, min_size=1, max_size=8, unique=True))
def test_names_tell_conditions_apart(conditions: list[Condition]) -> None:
    names = names_of(conditions)
    assert len(set(names.values())) == len(conditions)
    if len(conditions) == 1:
        assert names[conditions[0]] == conditions[0].name, "nothing more than is needed"


def test_one_name_for_two_conditions_is_refused(two: tuple[Store, str, str]) -> None:
    store, first, second = two
    with pytest.raises(InvalidInput, match="given twice"):
        choices(store, [f"taught={first}:agents", f"taught={second}:agents"])


def test_a_difference_between_runs_has_no_contrast(two: tuple[Store, str, str]) -> None:
    """Two runs can differ in more than the information that a contrast is about."""
    store, first, second = two
    within = compare_chosen(store, choices(store, [f"{first}:agents", f"{first}:mindreaders"]))
    across = compare_chosen(store, choices(store, [f"{second}:agents", f"{first}:mindreaders"]))
    assert {row["contrast"] for row in within} == {"information"} and {row["contrast"] for row in across} == {""}


def test_a_condition_with_grants_is_one_of_its_own(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["run", "mutual_friends_01", "-m", "scripted", "-n", "2"]) == 0
    assert command(["run", "mutual_friends_01", "-m", "scripted", "-n", "2", "--see", "goal,facts:2"]) == 0
    capsys.readouterr()
    (granted,) = chosen(store, "@last").conditions
    assert granted.name == "agents+goal,facts:2"
    assert chosen(store, "@last:agents+goal,facts:2").conditions == (granted,)
    with pytest.raises(InvalidInput, match="no condition 'agents'"):
        chosen(store, "@last:agents")
    assert command(["compare", "@last-1:agents", "@last:agents+goal,facts:2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {row["second"].split(":", 1)[1] for row in found} == {"agents+goal,facts:2"}
    assert not any(row["contrast"] for row in found), "grants are none of the contrasts between modes"
    (row,) = report(store, granted.run_id)["comparison"]
    assert (row["mode"], row["see"], row["condition"]) == ("agents", "goal,facts:2", granted.name)


def test_models_of_one_run_are_conditions(store: Store) -> None:
    """No command makes such a run; a database may hold one."""
    run_id = played(store, "scripted:friends", ("agents",), range(1, 3))
    with store.writing() as connection:
        connection.execute("UPDATE episodes SET model = 'b' WHERE episode_index = 1")
        connection.execute("UPDATE episodes SET episode_index = 0, seed = 1")
    pair = choices(store, [f"{run_id}:agents:friends", f"{run_id}:agents:b"])
    assert list(names_of(each for choice in pair for each in choice.conditions).values()) == [
        "agents:scripted:friends",
        "agents:b",
    ]
    compared = compare_chosen(store, pair)
    assert {(row["first"], row["second"]) for row in compared} == {("scripted:friends", "b")}
    assert {row["n"] for row in compared if row["measure"] == "turns"} == {2}
    assert len({row["model"] for row in report(store, run_id)["comparison"]}) == 2
    assert (
        len(items_of(store, selected(store, [f"{run_id}:agents:friends", f"{run_id}:agents:b"]), "pairs", "ann")) >= 2
    )


# ---- comparisons ---------------------------------------------------------------------------------------------------


def test_any_two_conditions_are_paired(two: tuple[Store, str, str]) -> None:
    store, first, second = two
    found = compare_chosen(store, choices(store, [f"{first}:mindreaders", f"{second}:agents"]))
    turns = next(row for row in found if row["measure"] == "turns")
    assert (turns["first"], turns["second"]) == (f"{first}:mindreaders", f"{second}:agents")
    assert (turns["scenarios"], turns["n"], turns["unpaired"]) == (3, 6, [1, 1])
    backwards = compare_chosen(store, choices(store, [f"{second}:agents", f"{first}:mindreaders"]))
    mirror = next(row for row in backwards if row["measure"] == "turns")
    assert mirror["difference"] == pytest.approx(-turns["difference"]) and mirror["p"] == turns["p"]


def test_which_pairs_references_make(two: tuple[Store, str, str]) -> None:
    store, first, second = two

    def pairs(*references: str) -> int:
        return len(list(pairs_of(choices(store, references))))

    assert pairs(first) == 3 and pairs(first, second) == 1, "a run alone; two runs in the mode that both have"
    assert (
        pairs(f"{first}:agents", second) == 1 and pairs(f"{first}:script", f"{first}:agents", f"{second}:agents") == 3
    )
    assert pairs(first, f"{second}:agents") == 3 and pairs(f"{first}:agents", f"{first}:agents") == 0


def test_compare_says_what_is_left_out(own: tuple[Store, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    store, first, second = own
    assert command(["compare", f"before={first}:agents", f"taught={second}:agents"]) == 0
    out = capsys.readouterr().out
    assert "taught - before" in out and "Left out, without a pair (mutual_friends): 1 scenarios of before" in out
    other = played(store, "scripted", ("agents",), seed=9)
    assert command(["compare", f"{first}:agents", f"{other}:agents"]) == 0
    out = capsys.readouterr().out
    assert "nothing to compare" in out and f"4 scenarios of {first}:agents and 4 of {other}:agents" in out
    assert command(["compare", f"{first}:nothing"]) == 3
    assert "Traceback" not in capsys.readouterr().err


# ---- figures and reports -------------------------------------------------------------------------------------------


def test_figures_take_conditions(two: tuple[Store, str, str], tmp_path: Path) -> None:
    store, first, second = two
    files = figures(store, first, tmp_path, ("svg",), conditions=labelled(store, [first, f"taught={second}:agents"]))
    bars = (tmp_path / "mutual_friends_success_rate.svg").read_text()
    curve = (tmp_path / "mutual_friends_named_curve.svg").read_text()
    assert all(name in text for name in ("script", "mindreaders", "taught") for text in (bars, curve)) and files
    only = figures(
        store, first, tmp_path / "b", ("svg",), conditions=labelled(store, [f"{first}:agents", "@last:agents"])
    )
    text = (tmp_path / "b" / "mutual_friends_success_rate.svg").read_text()
    assert only and "scripted:guesser" in text and "mindreaders" not in text


def test_the_report_shows_conditions_beside_its_modes(two: tuple[Store, str, str]) -> None:
    store, first, second = two
    data = with_conditions(store, report(store, first), labelled(store, [f"agents-ft={second}:agents"]))
    assert [row["condition"] for row in data["comparison"]] == ["script", "agents", "mindreaders", "agents-ft"]
    assert [row.get("twin", 0) for row in data["comparison"]] == [0, 0, 0, 1]
    assert any("3 of its 4 scenarios" in line for line in data["warnings"])
    data["card"] = card(store, first, data=data)
    page, text = render(data, []), as_markdown(data)
    assert "agents-ft" in page and 'class="bar agents twin t1"' in page and "| agents-ft (scripted:guesser) |" in text
    curve = next(each for each in data["curves"] if each["name"] == "named")
    assert [series["name"] for series in curve["series"]] == ["script", "agents", "mindreaders", "agents-ft"]


def test_a_run_without_the_family_cannot_stand_beside(store: Store) -> None:
    first = played(store, "scripted", ("agents",), range(1, 2))
    other = Plan((generated("craigslist"),), ("agents",), "scripted")
    second = runner.start(other, store, Watcher(), lambda _: None, leaks=False).run_id
    with pytest.raises(InvalidInput, match="has no family of run"):
        with_conditions(store, report(store, first), conditions_of(store, second))


# ---- raters --------------------------------------------------------------------------------------------------------


def prefers(run_id: str) -> Any:
    """A rater who prefers one run, and reads."""

    def choose(item: PairItem) -> int:
        return item.expected or (1 if item.first.run_id == run_id else 2)

    return choose


def test_pairs_across_runs_are_rated_blind_and_named_in_results(own: tuple[Store, str, str]) -> None:
    store, first, second = own
    chosen_ = selected(store, [f"{first}:agents", f"{second}:agents"])
    assert not any(part in chosen_.key for part in (first, second, "agents"))
    answers = []
    for rater in ("ann", "bob", "cleo", "dan"):
        items = items_of(store, chosen_, "pairs", rater)
        plain = [item for item in items if isinstance(item, PairItem) and not item.attention]
        assert len(plain) == 6 and len(items) > 6, "three scenarios twice, and an attention item"
        assert all({item.first.run_id, item.second.run_id} == {first, second} for item in plain)
        answers += [answered(item, prefers(second)(item), origin="browser") for item in items]
    sides = [answer.shown["1"] for answer in answers if not answer.attention]
    left = store.rows(
        "SELECT count(*) AS n FROM episodes WHERE run_id = ? AND episode_id IN (SELECT unnest(?))", [first, sides]
    )
    save_all(store, answers)
    assert done(store, "pairs", chosen_.runs, "ann") == {
        item.item_id for item in items_of(store, chosen_, "pairs", "ann")
    }
    told = agreement(store, chosen_)
    (rate,) = told["pairs"]["rates"]
    assert (rate["first"], rate["second"]) == (f"{first}:agents", f"{second}:agents")
    assert (rate["first_chosen"], rate["n"], rate["scenarios"], rate["alpha"]["items"]) == (0, 24, 3, 6)
    assert 0 < left[0]["n"] < 24, "each run is shown first somewhere"
    assert told["conditions"][f"{second}:agents"]["model"] == "scripted:guesser"
    for run_id in (first, second):
        data = report(store, run_id)
        assert any(f"{second}:agents" in line for line in sentences(data["annotations"])), "in the report of both runs"
        text = json.dumps(sections(card(store, run_id, data=data)))
        assert f"{second}:agents" in text
    assert agreement(store, selected(store, [f"{first}:script", f"{second}:agents"]))["pairs"] is None
    named = {each: each.label for each in labelled(store, [f"old={first}:agents", f"new={second}:agents"])}
    assert agreement(store, chosen_, names=named)["pairs"]["rates"][0]["first"] == "old"
    assert undo(store, "pairs", chosen_.runs, "ann", []) is None and undo(store, "pairs", chosen_.runs, "ann")
    store.remove_run(second)
    assert agreement(store, first)["pairs"] is None or not agreement(store, first)["pairs"]["rates"]


def test_a_pair_is_the_same_item_however_it_was_selected(own: tuple[Store, str, str]) -> None:
    store, first, second = own
    ways = ([f"{first}:agents", f"{second}:agents"], [f"{second}:agents", f"{first}:agents"], [first, second])
    ids = [
        {item.item_id for item in items_of(store, selected(store, way), "pairs", "ann") if "~" in item.item_id}
        for way in ways
    ]
    assert ids[0] == ids[1] == ids[2] != set()


def test_dimensions_of_several_runs_are_rated_together(own: tuple[Store, str, str]) -> None:
    store, first, second = own
    chosen_ = selected(store, [f"{first}:agents", f"{second}:agents"])
    items = items_of(store, chosen_, "dimensions", "ann")
    assert {item.episode.run_id for item in items} == {first, second}
    marks = {name: high for name, (_, high, _) in DIMENSIONS.items()}
    save_all(store, [answered(item, marks, origin="terminal") for item in items])
    found = agreement(store, chosen_)["dimensions"]["by_dimension"][0]["means"]
    assert set(found) == {f"{first}:agents", f"{second}:agents"}
    assert set(agreement(store, first)["dimensions"]["by_dimension"][0]["means"]) == {"agents"}


def test_a_bundle_across_runs_is_blind_and_can_be_imported(own: tuple[Store, str, str], tmp_path: Path) -> None:
    store, first, second = own
    chosen_ = selected(store, [f"{first}:agents", f"{second}:agents"])
    items = items_of(store, chosen_, "pairs", "ann")
    page = bundle(items, "pairs", "ann", "Which one?")
    data = json.loads(page.split('type="application/json"')[1].split(">", 1)[1].split("</script>")[0])
    assert data["run_id"] == ",".join(sorted([first, second]))
    shown = json.dumps(data["items"])
    assert not any(word in shown for word in (first, second, "scripted", "guesser", '"agents"', "mode"))
    saved = {key: data[key] for key in ("format", "version", "run_id", "task", "rater", "made_by", "ties")}
    at = "2026-11-01T12:00:00Z"
    saved["answers"] = [{"item": item.key, "value": 1, "answered_utc": at} for item in items]
    file = tmp_path / "answers.json"
    file.write_text(json.dumps(saved))
    found = read_answers(file, store)
    assert {each.item_id for each in found} == {item.item_id for item in items}
    save_all(store, found)
    told = agreement(store, chosen_, drop_inattentive=False)
    assert len(rows(store, second)) >= 6 and told["pairs"]["items"] == 6


def test_commands_of_annotation_take_conditions(own: tuple[Store, str, str], tmp_path: Path) -> None:
    store, first, second = own
    given = (f"{first}:agents", f"{second}:agents", "--rater", "ann")
    out = invoke("terminal", *given, "--db", str(store.path), text="1\nq\n")
    assert out.exit_code == 0 and "1 of" in out.output and first not in out.output.replace(" ".join(given), "")
    made = invoke("bundle", *given, "-o", str(tmp_path / "a.html"), "--db", str(store.path))
    assert made.exit_code == 0 and (tmp_path / "a.html").is_file()
    undone = invoke("undo", *given, "--json", "--db", str(store.path))
    assert json.loads(undone.stdout)["undone"]
    assert "Nothing is annotated" in invoke("agreement", *given[:2], "--db", str(store.path)).output


def test_undo_with_conditions_leaves_answers_about_others(own: tuple[Store, str, str]) -> None:
    store, first, second = own
    across, within = [f"{first}:agents", f"{second}:agents"], [f"{first}:script", f"{first}:mindreaders"]
    at = datetime(2026, 11, 1)
    mine: dict[int, str] = {}
    for number, named in enumerate((within, across, [first])):
        items = [each for each in items_of(store, selected(store, named), "pairs", "ann") if not each.attention]
        item = next(each for each in items if each.item_id not in mine.values())
        mine[number] = item.item_id
        save_all(store, [answered(item, 1, origin="browser", created_utc=at + timedelta(hours=number))])

    def undone(*named: str) -> str | None:
        made = invoke("undo", *named, "--rater", "ann", "--json", "--db", str(store.path))
        return json.loads(made.stdout)["undone"]

    assert undone(*within) == mine[0], "the other answers came later, and are about other conditions"
    assert undone(*within) is None and undone(first) == mine[2], "a pair across runs is not of the run alone"
    assert undone(first) is None and undone(*across) == mine[1]
    check = next(each for each in items_of(store, selected(store, across), "pairs", "ann") if each.attention)
    save_all(store, [answered(check, 1, origin="browser")])
    assert undone(*across) == check.item_id


def test_a_server_for_raters_of_conditions_names_none_of_them(own: tuple[Store, str, str]) -> None:
    store, first, second = own
    chosen_ = selected(store, [f"{first}:agents", f"{second}:agents"])
    site = Site(store, Rules(HOSTS), "scripted", frozenset({"annotate"}), chosen_)
    secret = re.compile(f"{first}|{second}|agents|guesser|scripted|attention")
    with TestClient(create_app(site), base_url=BASE) as client:
        form = client.get("/annotate").text
        assert chosen_.key in form and "16 conversations" in form and not secret.search(form)
        begun = client.get(f"/annotate/begin?run={chosen_.key}&task=pairs&rater=ann", follow_redirects=False)
        address = begun.headers["location"]
        assert address == f"/annotate/{chosen_.key}/pairs?rater=ann"
        text = client.get(address).text
        while 'name="item"' in text:
            assert not secret.search(text)
            data = {"csrf": field(text, "csrf"), "item": field(text, "item"), "value": "1"}
            text = client.post(address, data=data).text
        assert "All done" in text and not secret.search(text)
    pairs = [row for row in rows(store, first) if not row["attention"]]
    assert len(pairs) == 6 and {frozenset((row["run_1"], row["run_2"])) for row in pairs} == {
        frozenset((first, second))
    }
    assert agreement(store, chosen_, drop_inattentive=False)["pairs"]["rates"][0]["decided"] == 6


# ---- judges --------------------------------------------------------------------------------------------------------


def test_a_judge_compares_conditions_of_two_runs(own: tuple[Store, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    store, first, second = own
    found = choices(store, [f"{first}:agents", f"{second}:agents"])
    pairs = list(pairs_of(found))
    monkeypatch.setattr(evaluate, "open_judge", lambda *_: nullcontext(choosing("length")))
    judge = Naturalness("m", pairs)
    assert evaluate.score_runs(store, [first, second], [judge], lambda _: None) == {"naturalness.m": 12}
    assert evaluate.score_runs(store, [first, second], [judge], lambda _: None) == {"naturalness.m": 0}
    (rate,) = judges.rates_between(store, pairs)
    assert (rate["first"], rate["second"], rate["n"]) == (f"{first}:agents", f"{second}:agents", 6)
    assert rate["first_condition"]["model"] == "scripted:friends"
    size = {
        (row["run_id"], row["scenario_hash"], row["episode_index"]): row["turns"]
        for row in store.rows("SELECT * FROM v_episodes WHERE mode = 'agents'")
    }
    both = [(n, size[second, *key[1:]]) for key, n in size.items() if key[0] == first and (second, *key[1:]) in size]
    clear = [one > other for one, other in both if one != other]
    assert rate["decided"] == len(clear)
    (turned,) = judges.rates_between(store, [(pairs[0][1], pairs[0][0])])
    assert turned["half_credit"] == pytest.approx(1 - rate["half_credit"])
    assert judges.rates(store, second)[0]["first"] == f"{second}:agents", "a report names its own run first"
    assert [row["first"] for row in report(store, first)["naturalness"]] == [f"{first}:agents"]
    assert store.check() == []


def test_a_choice_within_a_run_is_not_taken_for_one_between_runs(own: tuple[Store, str, str]) -> None:
    store, first, second = own
    scripts = store.rows("SELECT episode_id FROM v_episodes WHERE mode = 'script' AND run_id = ?", [first])
    for row in scripts:
        store.take_in(score_records(row["episode_id"], "naturalness.m", "2", [Score("natural_against_agents", 1.0)]))
    compared = {}
    for named in ([f"{first}:script", f"{second}:agents"], [f"{first}:script", f"{first}:agents"]):
        chosen_ = selected(store, named)
        items = items_of(store, chosen_, "pairs", "ann")
        save_all(store, [answered(item, 1, origin="browser") for item in items])
        compared[named[1]] = agreement(store, chosen_, drop_inattentive=False)["pairs"]["judges"]
    across, within = compared.values()
    assert [(row["judge"], row["n"]) for row in across] == [("m", 0)], "the judge saw no pair of these conditions"
    assert [(row["judge"], row["n"]) for row in within] == [("m", len(scripts))]


def test_models_of_roles_lose_no_pairs(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A role with a model of its own gives script, agents and other orders of agents other names of models."""
    loaded = [generated("mutual_friends", seed) for seed in (1, 2)]
    roles = {loaded[0].scenario.names[0]: "scripted:guesser", loaded[1].scenario.names[1]: "scripted:guesser"}
    modes: tuple[Any, ...] = ("script", "agents", "mindreaders")
    plan = Plan(tuple(loaded), modes, "scripted:friends", roles=roles)
    run_id = runner.start(plan, store, Watcher(), lambda _: None, leaks=False).run_id
    assert len({each.model for each in conditions_of(store, run_id)}) == 3
    items = items_of(store, run_id, "pairs", "ann")
    assert sum(not item.attention for item in items) == 2 * 3
    monkeypatch.setattr(evaluate, "open_judge", lambda *_: nullcontext(choosing("length")))
    assert evaluate.score_runs(store, [run_id], [Naturalness("m")], lambda _: None) == {"naturalness.m": 2 * 3}
    assert evaluate.score_runs(store, [run_id], [Naturalness("m")], lambda _: None) == {"naturalness.m": 0}
    rated = judges.rates(store, run_id)
    assert sum(rate["n"] for rate in rated) == 2 * 3
    modes_of = [(rate["first_condition"]["mode"], rate["second_condition"]["mode"]) for rate in rated]
    assert len(modes_of) == 2 * 3 and len(set(modes_of)) == 3
    save_all(store, [answered(item, 1, origin="browser") for item in items])
    (judge,) = agreement(store, run_id, drop_inattentive=False)["pairs"]["judges"]
    assert judge["n"] == 2 * 3, "people and the judge are compared on each pair"


def test_scores_from_before_there_were_pairs_across_runs_still_count(own: tuple[Store, str, str]) -> None:
    store, first, _ = own
    given = [Score("natural_against_agents", 1.0)]
    (script,) = store.rows("SELECT episode_id FROM v_episodes WHERE mode = 'script' ORDER BY ALL LIMIT 1")
    store.take_in(score_records(script["episode_id"], "naturalness.old", "2", given))
    (rate,) = judges.rates(store, first)
    assert (rate["first"], rate["second"], rate["first_chosen"], rate["n"]) == ("script", "agents", 1, 1)
    assert "script over agents in 100% of 1 pairs" in judges.sentence(rate), "one scenario has no interval"
    assert "script chosen over agents in 100% of 1 pairs" in " ".join(render(report(store, first), []).split())
