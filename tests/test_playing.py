"""Runs whose talks do not play: the decision, its sentences, and the places that say them and withhold conclusions."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localsim.models.registry import constructed
from localsim.reports import card as cards
from localsim.reports.comparison import compare
from localsim.reports.compose.alone import report
from localsim.reports.compose.aloud import with_paragraph
from localsim.reports.compose.beside import with_conditions
from localsim.reports.evidence import playing
from localsim.reports.evidence.playing import LIMIT, PlayVerdict, cells_of, chosen_of, of_run
from localsim.reports.render.html import render
from localsim.reports.render.markdown import as_markdown
from localsim.reports.validity import head
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.store.conditions import Condition, conditions_of
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.store.records import ScoreRecord
from localsim.study.page import answer as study_answer
from tests.conftest import Quiet, generated
from tests.test_cli import FRIENDS, as_json, ask
from tests.test_study_answer import model as studied
from tests.web_server import client_of

MODES = ("script", "agents", "mindreaders")


def talk(mode: str = "agents", fault: str = "", number: int = 0, **changes: Any) -> PlayVerdict:
    """A talk of a search for a friend; it plays if it has no fault."""
    named = (f"{mode}-{number}", "mutual_friends", f"s{number}")
    found = PlayVerdict("r", mode, changes.pop("model", "tiny"), "", *named, not fault, fault, "why", (2, 4))
    return replace(found, **changes)


def told(*talks: PlayVerdict) -> playing.Playing:
    return playing.Playing(tuple(cells_of(talks)))


# ---- the decision --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bad", "every", "holds"), [(0, 1, True), (1, 1, False), (1, 5, True), (2, 9, False)])
def test_a_cell_holds_up_to_the_limit(bad: int, every: int, holds: bool) -> None:
    (cell,) = cells_of(talk(fault="repeats itself" if number < bad else "", number=number) for number in range(every))
    assert LIMIT == 0.2 and cell.holds is holds and (cell.not_playing, cell.talks) == (bad, every)


def test_a_run_without_these_scores_says_nothing_and_withholds_nothing() -> None:
    assert told().sentences() == [] and told().withheld == frozenset() and told().remarks() == []
    assert told(talk(), talk("script")).sentences() == []


def test_one_condition_withholds_the_conclusions_about_its_family_and_model_alone() -> None:
    found = told(
        talk("script", "goes in a loop"), talk("agents"), talk(model="large"), talk(family="craigslist"),
    )  # fmt: skip
    assert found.withheld == {("mutual_friends", "tiny")}
    (sentence, following) = found.sentences()
    assert sentence == (
        "tiny does not hold the conversations of Mutual friends in script: 1 of 1 talk does not play (goes in a loop: "
        "1). So this run has no conclusion about Mutual friends by tiny."
    )
    assert following == "To see what it can hold: localsim models try tiny"
    assert found.holds("mutual_friends", [Condition("r", "script", "tiny")]) is False
    assert found.holds("mutual_friends", [Condition("r", "agents", "tiny")]) is True
    assert found.holds("craigslist", [Condition("r", "script", "tiny")]) is None, "no talk of it was scored"
    ((family, remark),) = found.remarks()
    assert family == "mutual_friends" and "Talks of tiny that do not play: 1 of 1 (script)." in remark


def test_a_run_that_holds_nowhere_has_no_conclusion_and_names_its_most_frequent_faults() -> None:
    faults = ["a"] * 4 + ["b"] * 3 + ["c"] * 2 + ["d", ""]
    found = told(*(talk(fault=fault, number=number) for number, fault in enumerate(faults)))
    assert found.sentences()[0] == (
        "tiny does not hold these conversations: 10 of 11 talks do not play (a: 4, b: 3, c: 2, other faults: 1). So "
        "this run has no conclusion."
    )


def test_examples_are_chosen_by_the_rule() -> None:
    frequent = [talk(fault="a", number=number) for number in range(3)]
    rare, elsewhere = talk(fault="b", number=9), talk("script", "a", 5)
    assert chosen_of([rare, *frequent], cells_of([rare, *frequent])) == [frequent[0], rare], "the frequent one first"
    both = [*frequent, elsewhere]
    assert chosen_of(both, cells_of(both)) == [frequent[0], elsewhere], "of one fault, another condition"
    assert chosen_of(frequent, cells_of(frequent)) == frequent[:2]
    few = [talk(fault="a"), *(talk(number=number) for number in range(1, 9))]
    assert chosen_of(few, cells_of(few)) == [], "its cell holds"


def test_examples_quote_the_turns_that_show_the_fault() -> None:
    same, long = "How can I assist you today?", "word " * 40
    example = playing.Example("e", "tiny", "agents", "s", "repeats itself", "why", ((2, "Ana", same), (4, "Bo", same)))
    (_, quoted, _) = playing.Playing(tuple(cells_of([talk(fault="repeats itself")])), (example,)).sentences()
    assert quoted == (
        f"For example, agents of tiny (repeats itself): Ana says “{same}” in turn 3 and Bo the same in turn 5."
    )
    other = replace(example, quotes=((2, "Ana", long), (3, "Ana", "Well.")))
    text = playing._quoted(other)
    assert text.endswith("…” in turn 3 and “Well.” in turn 4.") and len(text) < 200
    assert playing._quoted(replace(example, quotes=())).endswith("(repeats itself): why."), "no words show it"


# ---- runs of players whose behaviour is known ----------------------------------------------------------------------


def play(store: Store, model: str, modes: tuple[Any, ...] = MODES, families: tuple[str, ...] = ("craigslist",)) -> str:
    """Play two scenarios of each family; return the run."""
    scenarios = tuple(generated(family, seed) for family in families for seed in (1, 2))
    return start(Plan(scenarios, modes, model, seed=3), store, Quiet(), lambda _: None).run_id


def rescored(store: Store, run_id: str, fault_of: Callable[[Any], str | None]) -> None:
    """Score every talk anew: with its fault, '' if it plays."""
    records = []
    for row in queries.episodes(store, run_id):
        if (fault := fault_of(row)) is not None:
            values = {"value": float(not fault), "label": fault, "reason": "made up", "turns": (1, 2) if fault else ()}
            records.append(ScoreRecord(row.episode_id, "play", "99", "plays", "", **values))
    store.take_in(records)


@pytest.fixture(scope="module")
def parrots(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str]:
    store = Store(tmp_path_factory.mktemp("parrots") / "d.duckdb")
    return store, play(store, "scripted:parrot")


def test_a_parrot_withholds_the_answer_in_every_renderer(parrots: tuple[Store, str]) -> None:
    store, run_id = parrots
    data = report(store, run_id)
    first, *examples = data.playing.sentences()
    assert first.startswith("scripted:parrot does not hold these conversations: 6 of 6 talks do not play (")
    assert first.endswith("So this run has no conclusion.") and len(examples) == 2
    assert all("“I really like long walks by the quiet river.”" in each for each in examples)
    assert head.answer(data) == data.playing.sentences(), "and no conclusion behind it"
    assert data.headline.as_json() == {"sentences": [], "families": []}
    assert any("no finding" in line for line in head.closing(data, "craigslist")), "the tables say it, too"
    data = replace(data, card=cards.card(store, data))
    markdown = as_markdown(data)
    assert markdown.index("does not hold these conversations") < markdown.index("| conversations |")
    page = render(data)
    assert page.index("does not hold these conversations") < page.index("<table")
    assert "localsim design" not in page + markdown, "a larger run would not help"
    title, fields = cards.sections(data.card)[0]
    assert title == "Talks that do not play" and fields[0] == ("", first)
    assert json.loads(json.dumps(data.playing.as_json()))["withheld"] == [
        {"family": "craigslist", "model": "scripted:parrot"}
    ]


@pytest.mark.parametrize("player", ["auto", "omniscient", "peeks-50"])
def test_players_that_hold_the_talk_are_reported_as_before(player: str, store: Store) -> None:
    data = report(store, play(store, f"scripted:{player}", families=("mutual_friends", "craigslist")))
    assert data.playing.sentences() == [] and data.headline.families
    assert head.answer(data) == data.headline.sentences
    assert not any("do not play" in text for text in data.warnings)
    assert cards.sections(cards.card(store, data))[0][0] == "Simulation details"


def test_scores_decide_and_nothing_else(run: str, store: Store) -> None:
    """The same run without these scores, with talks that play, and with talks that do not."""
    rescored(store, run, lambda _: "")
    before = report(store, run)
    assert before.playing.sentences() == [] and before.headline.sentences
    rescored(store, run, lambda row: "never ends" if row.mode == "script" and row.family == "craigslist" else "")
    data = report(store, run)
    assert "Bargaining in script: 2 of 2 talks do not play (never ends: 2)" in data.playing.sentences()[0]
    assert [each.family for each in data.headline.families] == [], "everyday talks have no success"
    rows = {(row.first, row.second): row.plays for row in compare(store, run) if row.family == "craigslist"}
    assert rows == {("agents", "mindreaders"): True, ("mindreaders", "script"): False, ("agents", "script"): False}


def test_a_constructed_control_holds_by_its_talks_and_not_by_its_name(run: str, store: Store) -> None:
    rescored(store, run, lambda _: "")
    found = of_run(store, run)
    assert constructed("starter-peeks") and found.sentences() == []


def test_runs_beside_say_whose_talks_do_not_play(parrots: tuple[Store, str], tmp_path: Path) -> None:
    path = tmp_path / "both.duckdb"
    path.write_bytes(parrots[0].path.read_bytes())
    store, bad = Store(path), parrots[1]
    good = play(store, "scripted:haggler")
    conditions = [*conditions_of(store, good), *conditions_of(store, bad)]
    data = with_conditions(store, with_paragraph(store, report(store, good), conditions), conditions_of(store, bad))
    claim = report(store, bad).playing.claims()[0]
    assert data.aloud.conclusions[0] == claim and claim in data.aloud.paragraph
    assert "In Bargaining, scripted:parrot" not in data.aloud.paragraph, "nothing else is told about it"
    assert any("Talks of scripted:parrot that do not play" in text for text in head.of_family(data, "craigslist"))
    alone = with_paragraph(store, report(store, bad), conditions)
    assert head.answer(alone)[0].startswith("scripted:parrot does not hold"), "first, before any conclusion"


# ---- commands and pages --------------------------------------------------------------------------------------------


def test_commands_say_it_first_and_strict_makes_an_error_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("run", FRIENDS, "-m", "scripted:parrot")
    code, out, err = ask(capsys, *given, "--strict")
    said = "scripted:parrot does not hold these conversations: 1 of 1 talk does not play"
    assert code == 6 and out.startswith(said) and "1 completed, 0 failed" in out
    assert "error: talks do not play, so a conclusion is withheld" in err
    assert ask(capsys, "report", "@last")[0] == 0, "the run is stored"
    code, out, err = ask(capsys, "report", "@last", "--strict")
    assert code == 6 and out.splitlines()[1].startswith(said)
    assert as_json(capsys, *given)["playing"]["sentences"][0].startswith(said)
    code, out, _ = ask(capsys, "compare", "@last-1", "@last")
    assert code == 0 and out.startswith("scripted:parrot does not hold these conversations: 2 of 2 talks do not play")
    assert "So this comparison has no conclusion." in out
    code, out, _ = ask(capsys, "run", FRIENDS, "-m", "scripted:friends", "--strict")
    assert code == 0 and "hold" not in out


def test_the_run_page_says_it_first(parrots: tuple[Store, str]) -> None:
    with client_of(parrots[0]) as client:
        page = client.get(f"/runs/{parrots[1]}?answer=1").text
    assert page.index("does not hold these conversations") < page.index('<table class="matrix')
    assert "whether seeing every side" not in page and "effect of seeing every side" not in page


def test_a_study_says_it_first_and_concludes_nothing_from_these_tasks() -> None:
    broken = told(talk(fault="goes in a loop", family="craigslist"))
    first, *others = study_answer(studied(playing=replace(broken, of="this study")), several=False)
    assert first.title == "Talks that do not play"
    assert first.lines[0].endswith("So this study has no conclusion.")
    assert not any("Bargaining" in sentence for part in others for sentence in part.lines)
