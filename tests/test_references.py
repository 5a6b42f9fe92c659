"""Random and best scripted play beside the measures of a game: against runs of these players, and as readers see it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localsim.__main__ import run as localsim
from localsim.conversation.episode import MODES, Mode
from localsim.conversation.measures import Measure
from localsim.families import FAMILIES, PLAYERS
from localsim.reports.compose.alone import report
from localsim.reports.document import Report, Term
from localsim.reports.evidence.turns import examples
from localsim.reports.figures import references
from localsim.reports.figures.references import Reached, are_known, beside, of_run, sentences
from localsim.reports.render.html import render
from localsim.reports.render.markdown import as_markdown
from localsim.reports.results import Result
from localsim.reports.sections import games
from localsim.runs.plan import Plan
from localsim.runs.runner import start
from localsim.stats import NOTHING, Estimate
from localsim.store.database import Store
from localsim.web import view_data
from tests.conftest import Quiet, generated
from tests.games import play
from tests.web_server import client_of


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known yet, and five conversations are enough."""
    monkeypatch.setenv("LOCALSIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(references, "CONVERSATIONS", 5)


def with_references(store: Store, data: Report) -> Report:
    return replace(data, references=of_run(store, data.run.run_id, data.run.seed))


def simulated(store: Store, model: str, *games: str, modes: tuple[Mode, ...] = MODES, **options: Any) -> str:
    scenarios = tuple(generated(game, 1) for game in games)
    return start(Plan(scenarios, modes, model, seed=6, **options), store, Quiet(), lambda _: None, leaks=False).run_id


@pytest.mark.parametrize("game", FAMILIES.games)
def test_every_game_has_random_play_and_says_what_the_best_is(game: str) -> None:
    first, *best = FAMILIES[game].references
    assert first.label == "random" and best and "random" not in {each.label for each in best}
    for each in FAMILIES[game].references:
        assert each.player in PLAYERS and each.why and each.why[0].islower() and not each.why.endswith("."), each
        assert each.player in {"any", "omniscient", *FAMILIES[game].players}, "it would play another part here"
    # Without a proof, a label does not say `optimal`, and the reason stands beside it.
    told = " ".join(each.why for each in best)
    assert any(each.label in ("optimal", "selfish") for each in best) or any(
        word in told for word in ("optimal", "no play is best")
    ), told


@pytest.mark.parametrize("game", FAMILIES.games)
def test_a_player_that_is_called_blind_heeds_nothing_that_modes_show(game: str) -> None:
    loaded = generated(game, 5)
    for each in FAMILIES[game].references:
        talks = [[turn.line for turn in play(loaded, each.player, mode=mode, seed=4).turns] for mode in MODES[1:]]
        assert not each.blind or talks[0] == talks[1], each


def test_the_players_named_blind_are_some_and_not_all() -> None:
    flags = {each.blind for game in FAMILIES.games for each in FAMILIES[game].references}
    assert flags == {True, False}


@pytest.mark.parametrize("game", ["ultimatum", "matrix", "jury"])
def test_a_reference_is_what_a_run_of_its_player_would_be(game: str, store: Store) -> None:
    data = with_references(store, report(store, simulated(store, "scripted", game)))
    for each in FAMILIES[game].references:
        own = report(store, simulated(store, f"scripted:{each.player}", game, episodes=5))
        for row in own.as_json()["comparison"]:
            mode = "agents" if each.blind else row["mode"]
            same = next(one for one in own.as_json()["comparison"] if one["mode"] == mode)
            found = next(one for one in data.references if (one.player, one.mode) == (each.player, row["mode"]))
            assert found.conversations == 5 and found.scenarios == found.of == 1
            for measure in FAMILIES[game].measures:
                value = found.values.get(measure.key, NOTHING).value
                assert value == same[measure.key], (each.player, row["mode"], measure.key)


def test_known_values_are_reached(store: Store) -> None:
    data = with_references(store, report(store, simulated(store, "scripted:any", "matrix", "public_goods", "auction")))
    reached = {
        (each.family, each.label, each.mode): {key: one.value for key, one in each.values.items()}
        for each in data.references
    }
    assert reached["matrix", "tit-for-tat", "agents"]["points"] == 80
    assert reached["public_goods", "selfish", "script"]["efficiency"] == 0.625
    assert reached["public_goods", "generous", "mindreaders"]["efficiency"] == 1
    assert reached["auction", "optimal", "agents"]["success_rate"] == 1
    assert 0 < reached["public_goods", "random", "agents"]["contribution"] < 1


def test_games_are_played_once_for_a_set_of_scenarios(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = simulated(store, "scripted", "trust", modes=("agents", "mindreaders"))
    plans: list[Plan] = []
    play_now = references.played
    monkeypatch.setattr(references, "played", lambda plan: plans.append(plan) or play_now(plan))
    assert not are_known(store, run_id, 6)
    first = with_references(store, report(store, run_id))
    # Random play is blind to modes; the two other players are not.
    assert [(plan.model, plan.modes) for plan in plans] == [
        ("scripted:any", ("agents",)),
        ("scripted:optimal", ("agents",)),
        ("scripted:trusting", ("agents",)),
        ("scripted:optimal", ("mindreaders",)),
        ("scripted:trusting", ("mindreaders",)),
    ]
    plans.clear()
    assert with_references(store, report(store, run_id)) == first and are_known(store, run_id, 6) and not plans
    again = simulated(store, "scripted:any", "trust", modes=("agents", "mindreaders"))  # same scenarios and seed
    assert with_references(store, report(store, again)).references == first.references and not plans
    other = start(Plan((generated("trust", 2),), ("agents",), "scripted", seed=6), store, Quiet(), lambda _: None)
    with_references(store, report(store, other.run_id))
    assert len(plans) == 3


def test_many_scenarios_are_sampled_and_the_reader_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "SCENARIOS", 2)
    scenarios = tuple(generated("ultimatum", seed) for seed in (1, 2, 3))
    run_id = start(Plan(scenarios, ("agents",), "scripted"), store, Quiet(), lambda _: None).run_id
    found = with_references(store, report(store, run_id)).references
    assert {(each.scenarios, each.of, each.conversations) for each in found} == {(2, 3, 6)}
    assert "on 2 of the 3 scenarios with the same seed, 6 conversations each." in sentences(found, "ultimatum")[0]


def test_a_condition_has_the_references_of_its_own_grants(store: Store) -> None:
    run_id = simulated(store, "scripted", "ultimatum", modes=("agents",), see=("none", "facts"))
    data = with_references(store, report(store, run_id))
    offers = {(each.label, each.see): each.values["over"].value for each in data.references}
    assert offers["optimal", "facts"] == 0 < offers["optimal", ""], "who sees the limit offers exactly it"
    assert offers["random", "facts"] == offers["random", ""]


# ---- as readers see it ---------------------------------------------------------------------------------------------


def test_every_renderer_shows_them_beside_the_measures(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    run_id = simulated(store, "scripted:half", "ultimatum", "mutual_friends", episodes=2)
    data = with_references(store, report(store, run_id))
    offer = next(each for each in data.measures if each.key == "offer")
    rows = [row for row in data.comparison if row.family == "ultimatum"]
    cells = beside(data.references, offer, rows)
    assert len(cells) == len(MODES) and all(cell.endswith("%") and " / " in cell for cell in cells)
    assert len(set(cells)) == 2, "the responder's limit is seen in two of the modes"
    markdown = as_markdown(data)
    assert f"| *random / optimal* | {' | '.join(f'*{cell}*' for cell in cells)} |" in markdown
    html = render(replace(data, talks=examples(store, run_id)))
    for cell in cells:
        assert f"<td>{cell}</td>" in html
    assert html.count("random / optimal: scripted players take all sides on the same scenario") == 2
    assert localsim(["report", "--all", run_id, "--db", str(store.path)]) == 0
    printed = capsys.readouterr().out
    assert "random / optimal" in printed and " ".join(cells) in re.sub(" +", " ", printed)
    assert "optimal (scripted:optimal): the best offer and answer for money alone." in printed
    friends = [each for each in data.references if each.family == "mutual_friends"]
    assert not friends, "a talk without random play has none"


def test_values_of_another_run_in_the_table_get_none() -> None:
    made = Reached("x", "any", "random", "", "agents", "", 1, 1, 1, {"m": Estimate(-0.5, None, None, 1)})
    row = Result("x", "agents", "m", "agents")
    measure = Measure("m", "m", "", "m")
    assert beside([made], measure, [row, replace(row, other_run="r")]) == ["-0.50", ""]
    assert beside([made], replace(measure, key="other"), [row]) == []


def test_the_page_of_a_run_shows_them_at_once_only_if_they_are_known(store: Store) -> None:
    run_id = simulated(store, "scripted", "ultimatum")
    client = client_of(store)
    view_data._ANSWERS.clear()
    first = client.get(f"/runs/{run_id}").text
    assert "data-fetch" in first and "measures beside" not in first
    part = client.get(f"/runs/{run_id}/answer").text
    (made,) = games(with_references(store, report(store, run_id)))
    assert "measures beside random / optimal play" in part and list(map(str, made.heads[1:])) == list(MODES)
    lines = [cells for head, *cells in made.rows if isinstance(head, Term) and head.of]
    assert lines and all(f"<small>{text}</small>" in part for cells in lines for text in cells)
    view_data._ANSWERS.clear()
    then = client.get(f"/runs/{run_id}").text
    assert "data-fetch" not in then and "measures beside random / optimal play" in then
    view_data._ANSWERS.clear()
    assert "measures beside" in client.get(f"/runs/{run_id}?answer=1").text
