"""Ratings and judgements of conditions: pairs across runs, their bundles, undo, and judges of naturalness."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from localsim.annotation.agreement import agreement, sentences
from localsim.annotation.bundle import bundle, read_answers
from localsim.annotation.items import PairItem, items_of, selected
from localsim.annotation.records import answered, done, rows, save_all, undo
from localsim.conversation.episode import Score
from localsim.evaluators import evaluate
from localsim.evaluators.choosing import Naturalness
from localsim.evaluators.judge import DIMENSIONS
from localsim.reports.card import card, sections
from localsim.reports.compose.alone import report
from localsim.reports.render.html import render
from localsim.reports.validity import judges
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.runs.scheduler import Watcher
from localsim.store.conditions import choices, conditions_of, labelled, pairs_of
from localsim.store.database import Store
from localsim.store.records import score_records
from localsim.web.app import Site, create_app
from localsim.web.guard import Access
from tests.conftest import generated
from tests.rated import invoke
from tests.test_judge import preferring
from tests.web_server import BASE, HOSTS, field

# ---- raters --------------------------------------------------------------------------------------------------------


def prefers(run_id: str) -> Any:
    """A rater who prefers one run, and reads."""

    def choose(item: PairItem) -> int:
        return item.expected or (1 if item.episode.run_id == run_id else 2)

    return choose


def test_pairs_across_runs_are_rated_blind_and_named_in_results(own_runs: tuple[Store, str, str]) -> None:
    store, first, second = own_runs
    chosen_ = selected(store, [f"{first}:agents", f"{second}:agents"])
    assert not any(part in chosen_.key for part in (first, second, "agents"))
    answers = []
    for rater in ("ann", "bob", "cleo", "dan"):
        items = items_of(store, chosen_, "pairs", rater)
        plain = [item for item in items if isinstance(item, PairItem) and not item.attention]
        assert len(plain) == 6 and len(items) > 6, "three scenarios twice, and an attention item"
        assert all({item.episode.run_id, item.second.run_id} == {first, second} for item in plain)
        answers += [answered(item, prefers(second)(item), origin="browser") for item in items]
    sides = [json.loads(answer.shown_json)["1"] for answer in answers if not answer.attention]
    left = store.rows(
        "SELECT count(*) AS n FROM episodes WHERE run_id = ? AND episode_id IN (SELECT unnest(?))", [first, sides]
    )
    save_all(store, answers)
    assert done(store, "pairs", chosen_.runs, "ann") == {
        item.item_id for item in items_of(store, chosen_, "pairs", "ann")
    }
    told = agreement(store, chosen_)
    (rate,) = told.pairs.rates
    assert (rate.first, rate.second) == (f"{first}:agents", f"{second}:agents")
    assert (rate.first_chosen, rate.n, rate.scenarios, rate.alpha.items) == (0, 24, 3, 6)
    assert 0 < left[0]["n"] < 24, "each run is shown first somewhere"
    assert told.conditions[f"{second}:agents"].model == "scripted:guesser"
    for run_id in (first, second):
        data = report(store, run_id)
        assert any(f"{second}:agents" in line for line in sentences(data.annotations)), "in the report of both runs"
        text = json.dumps(sections(card(store, data)))
        assert f"{second}:agents" in text
    assert agreement(store, selected(store, [f"{first}:script", f"{second}:agents"])).pairs is None
    named = {each: each.label for each in labelled(store, [f"old={first}:agents", f"new={second}:agents"])}
    assert agreement(store, chosen_, names=named).pairs.rates[0].first == "old"
    assert undo(store, "pairs", chosen_.runs, "ann", []) is None and undo(store, "pairs", chosen_.runs, "ann")
    store.remove_run(second)
    assert agreement(store, first).pairs is None or not agreement(store, first).pairs.rates


def test_a_pair_is_the_same_item_however_it_was_selected(own_runs: tuple[Store, str, str]) -> None:
    store, first, second = own_runs
    ways = ([f"{first}:agents", f"{second}:agents"], [f"{second}:agents", f"{first}:agents"], [first, second])
    ids = [
        {item.item_id for item in items_of(store, selected(store, way), "pairs", "ann") if "~" in item.item_id}
        for way in ways
    ]
    assert ids[0] == ids[1] == ids[2] != set()


def test_dimensions_of_several_runs_are_rated_together(own_runs: tuple[Store, str, str]) -> None:
    store, first, second = own_runs
    chosen_ = selected(store, [f"{first}:agents", f"{second}:agents"])
    items = items_of(store, chosen_, "dimensions", "ann")
    assert {item.episode.run_id for item in items} == {first, second}
    marks = {name: high for name, (_, high, _) in DIMENSIONS.items()}
    save_all(store, [answered(item, marks, origin="terminal") for item in items])
    found = agreement(store, chosen_).dimensions.by_dimension[0].means
    assert set(found) == {f"{first}:agents", f"{second}:agents"}
    assert set(agreement(store, first).dimensions.by_dimension[0].means) == {"agents"}


def test_a_bundle_across_runs_is_blind_and_can_be_imported(own_runs: tuple[Store, str, str], tmp_path: Path) -> None:
    store, first, second = own_runs
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
    assert len(rows(store, second)) >= 6 and told.pairs.items == 6


def test_commands_of_annotation_take_conditions(own_runs: tuple[Store, str, str], tmp_path: Path) -> None:
    store, first, second = own_runs
    given = (f"{first}:agents", f"{second}:agents", "--rater", "ann")
    out = invoke("terminal", *given, "--db", str(store.path), text="1\nq\n")
    assert out.exit_code == 0 and "1 of" in out.output and first not in out.output.replace(" ".join(given), "")
    made = invoke("bundle", *given, "-o", str(tmp_path / "a.html"), "--db", str(store.path))
    assert made.exit_code == 0 and (tmp_path / "a.html").is_file()
    undone = invoke("undo", *given, "--json", "--db", str(store.path))
    assert json.loads(undone.stdout)["undone"]
    assert "Nothing is annotated" in invoke("agreement", *given[:2], "--db", str(store.path)).output


def test_undo_with_conditions_leaves_answers_about_others(own_runs: tuple[Store, str, str]) -> None:
    store, first, second = own_runs
    across, within = [f"{first}:agents", f"{second}:agents"], [f"{first}:script", f"{first}:mindreaders"]
    theirs = {each.item_id for each in items_of(store, selected(store, within), "pairs", "ann")}
    at = datetime(2026, 11, 1)
    mine: dict[int, str] = {}
    for number, named in enumerate((within, across, [first])):
        items = [each for each in items_of(store, selected(store, named), "pairs", "ann") if not each.attention]
        taken = {*mine.values(), *(theirs if named != within else ())}
        item = next(each for each in items if each.item_id not in taken)
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


def test_a_server_for_raters_of_conditions_names_none_of_them(own_runs: tuple[Store, str, str]) -> None:
    store, first, second = own_runs
    chosen_ = selected(store, [f"{first}:agents", f"{second}:agents"])
    site = Site(store, Access(HOSTS), "scripted", frozenset({"annotate"}), chosen_)
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
    pairs = [row for row in rows(store, first) if not row.attention]
    assert len(pairs) == 6 and {frozenset(each.run_id for each in row.sides) for row in pairs} == {
        frozenset((first, second))
    }
    assert agreement(store, chosen_, drop_inattentive=False).pairs.rates[0].decided == 6


# ---- judges --------------------------------------------------------------------------------------------------------


def test_a_judge_compares_conditions_of_two_runs(
    own_runs: tuple[Store, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, first, second = own_runs
    found = choices(store, [f"{first}:agents", f"{second}:agents"])
    pairs = list(pairs_of(found))
    monkeypatch.setattr(evaluate, "open_judge", lambda *_: nullcontext(preferring("length")))
    judge = Naturalness("m", pairs)
    assert evaluate.score_runs(store, [first, second], [judge], lambda _: None) == {"naturalness.m": 12}
    assert evaluate.score_runs(store, [first, second], [judge], lambda _: None) == {"naturalness.m": 0}
    (rate,) = judges.rates_between(store, pairs)
    assert (rate.first, rate.second, rate.n) == (f"{first}:agents", f"{second}:agents", 6)
    assert rate.first_condition["model"] == "scripted:friends"
    size = {
        (row["run_id"], row["scenario_hash"], row["episode_index"]): row["turns"]
        for row in store.rows("SELECT * FROM v_episodes WHERE mode = 'agents'")
    }
    both = [(n, size[second, *key[1:]]) for key, n in size.items() if key[0] == first and (second, *key[1:]) in size]
    clear = [one > other for one, other in both if one != other]
    assert rate.decided == len(clear)
    (turned,) = judges.rates_between(store, [(pairs[0][1], pairs[0][0])])
    assert turned.half_credit == pytest.approx(1 - rate.half_credit)
    assert judges.rates(store, second)[0].first == f"{second}:agents", "a report names its own run first"
    assert [row.first for row in report(store, first).naturalness] == [f"{first}:agents"]
    assert store.check() == []


def test_a_choice_within_a_run_is_not_taken_for_one_between_runs(own_runs: tuple[Store, str, str]) -> None:
    store, first, second = own_runs
    scripts = store.rows("SELECT episode_id FROM v_episodes WHERE mode = 'script' AND run_id = ?", [first])
    for row in scripts:
        store.take_in(score_records(row["episode_id"], "naturalness.m", "2", [Score("natural_against_agents", 1.0)]))
    compared = {}
    for named in ([f"{first}:script", f"{second}:agents"], [f"{first}:script", f"{first}:agents"]):
        chosen_ = selected(store, named)
        items = items_of(store, chosen_, "pairs", "ann")
        save_all(store, [answered(item, 1, origin="browser") for item in items])
        compared[named[1]] = agreement(store, chosen_, drop_inattentive=False).pairs.judges
    across, within = compared.values()
    assert [(row.judge, row.n) for row in across] == [("m", 0)], "the judge saw no pair of these conditions"
    assert [(row.judge, row.n) for row in within] == [("m", len(scripts))]


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
    monkeypatch.setattr(evaluate, "open_judge", lambda *_: nullcontext(preferring("length")))
    assert evaluate.score_runs(store, [run_id], [Naturalness("m")], lambda _: None) == {"naturalness.m": 2 * 3}
    assert evaluate.score_runs(store, [run_id], [Naturalness("m")], lambda _: None) == {"naturalness.m": 0}
    rated = judges.rates(store, run_id)
    assert sum(rate.n for rate in rated) == 2 * 3
    modes_of = [(rate.first_condition["mode"], rate.second_condition["mode"]) for rate in rated]
    assert len(modes_of) == 2 * 3 and len(set(modes_of)) == 3
    save_all(store, [answered(item, 1, origin="browser") for item in items])
    (judge,) = agreement(store, run_id, drop_inattentive=False).pairs.judges
    assert judge.n == 2 * 3, "people and the judge are compared on each pair"


def test_scores_from_before_there_were_pairs_across_runs_still_count(own_runs: tuple[Store, str, str]) -> None:
    store, first, _ = own_runs
    given = [Score("natural_against_agents", 1.0)]
    (script,) = store.rows("SELECT episode_id FROM v_episodes WHERE mode = 'script' ORDER BY ALL LIMIT 1")
    store.take_in(score_records(script["episode_id"], "naturalness.old", "2", given))
    (rate,) = judges.rates(store, first)
    assert (rate.first, rate.second, rate.first_chosen, rate.n) == ("script", "agents", 1, 1)
    assert "script over agents in 100% of 1 pairs" in judges.sentence(rate), "one scenario has no interval"
    assert "script over agents in 100% of 1 pairs" in " ".join(render(report(store, first)).split())
