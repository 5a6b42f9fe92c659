"""The best of n conversations: rotations, ties, the bias for a place, and judges whose choice is known."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from localsim.backends.scripted import ScriptedBackend
from localsim.cli import cli, score
from localsim.conversation.episode import Subject
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.errors import InvalidInput
from localsim.evaluators import asking, choosing, evaluate, leaks
from localsim.reports.evidence import rubrics
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from tests.conftest import Quiet, generated
from tests.web_server import client_of

GOLD = "a golden word"


def unit(n: int, gold: int | None = None) -> list[Subject]:
    """n conversations of one scenario and seed; the one at `gold` has the words that a good judge looks for."""
    loaded = find_scenarios(["a_secret_kept"])[0]
    found = []
    for number in range(n):
        words = GOLD if number == gold else f"word {number}"
        talk = Transcript((Turn(0, "Tess", Action("speak", words)),))
        subject = Subject(f"e{number}", loaded.scenario, loaded.answer, "agents", 0, 7, talk)
        found.append(replace(subject, run_id="r", model=f"m{number}"))
    return found


class Chooser(ScriptedBackend):
    """A judge that names the place that a function finds in the list of conversations."""

    def __init__(self, place: Any) -> None:
        super().__init__("scripted:chooser", replies=["unused"])
        self._place = place

    def _text(self, request: Any) -> str:
        told = request.messages[1].content.split("Conversation 1:")[1]
        talks = [part.split("\n\nWhich")[0] for part in told.split("\nConversation ")]
        return f" It is so.\nBest: {self._place(talks)}\n"


FIRST = Chooser(lambda _talks: 1)
BEST = Chooser(lambda talks: next((at for at, talk in enumerate(talks, start=1) if GOLD in talk), 1))


@pytest.mark.parametrize("n", [2, 3, 4])
def test_every_rotation_shows_each_candidate_in_each_place_once(n: int) -> None:
    own = unit(n)
    orders = [[each.episode_id for each in choosing.rotated(own, turn)] for turn in range(n)]
    assert all({order[place] for order in orders} == {each.episode_id for each in own} for place in range(n))
    for turn, order in enumerate(orders):
        shown = choosing.Choice("m").request(own, turn).messages[1].content
        places = [shown.index(f"word {name[1:]}") for name in order]
        assert places == sorted(places) and shown.count("Conversation ") == n


@pytest.mark.parametrize(
    ("places", "found"),
    [([1, 2], 0), ([2, 1], 1), ([1, 1], None), ([1, 3, 2], 0), ([3, 2, 1], 2), ([2, 1, 3], 1), ([1, 1, 1], None),
     ([1, None, 2], None), ([None, None], None)],
)  # fmt: skip
def test_a_choice_counts_where_all_rotations_agree(places: list[int | None], found: int | None) -> None:
    assert choosing.all_rotations(places) == found


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_planted_best_wins_wherever_it_stands_and_who_takes_the_first_place_decides_nothing(n: int) -> None:
    for gold in range(n):
        own = unit(n, gold)
        for backend, wanted in ((BEST, [float(at == gold) for at in range(n)]), (FIRST, [1 / n] * n)):
            found = evaluate.driven(choosing.Choice("m"), tuple(own), partial(asking.ask, backend))
            scores = {each.episode_id: score for each in found for score in each.scores if "place" not in score.name}
            assert [scores[each.episode_id].value for each in own] == wanted
            places = [score.value for each in found for score in each.scores if score.name.startswith("place_")]
            assert places == ([1 / n] * n if backend is BEST else [1.0, *[0.0] * (n - 1)])


def test_a_set_without_a_readable_reply_has_no_value_and_too_many_candidates_are_refused() -> None:
    (first, *_) = found = list(choosing.Choice("m").verdicts(unit(3), [None, None, None]))
    assert [each.scores[0].value for each in found] == [None] * 3 and first.scores[0].reason == "no reply could be read"
    with pytest.raises(InvalidInput, match="7 candidates"):
        list(choosing.Choice("m").batches(unit(7), {}))
    assert list(choosing.Choice("m").batches(unit(1), {})) == []


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, str]:
    store = Store(tmp_path_factory.mktemp("choosing") / "d.duckdb")
    modes = ("script", "agents", "mindreaders")
    plan = Plan((generated("craigslist"),), modes, "scripted:omniscient", episodes=2)
    return store, runner.start(plan, store, Quiet(), print).run_id


def test_a_run_reports_choices_ties_and_places(
    played: tuple[Store, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store, run_id = played
    command = ["--db", str(store.path)]
    monkeypatch.setattr(evaluate, "open_judge", lambda *_: nullcontext(FIRST))
    monkeypatch.setattr(score, "require_models", lambda _: None)
    monkeypatch.setattr(leaks, "search", lambda *_, **__: 0)  # loading the detector takes long, and is no part of this
    done = CliRunner().invoke(cli, ["score", run_id, *command, "--choose", "first", "--json"])
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)["choices"]
    assert (row["n"], row["sets"], row["decided"], row["places"]) == (3, 2, 0, [1.0, 0.0, 0.0])
    assert [each["chosen"] for each in row["conditions"]] == [None] * 3 and "picks a place" in row["warning"]
    talks = store.rows(
        "SELECT mode, string_agg(text, '/' ORDER BY turn) AS said FROM turns JOIN episodes USING (episode_id) GROUP BY "
        "mode, episode_id"
    )
    alike = {each["said"] for each in talks if each["mode"] != "agents"}
    wanted = [each["said"].split("/") for each in talks if each["mode"] == "agents"]
    assert not alike & {"/".join(each) for each in wanted}, "only then can a judge know the talks of agents"
    gold = Chooser(
        lambda talks: next(at for at, talk in enumerate(talks, 1) if any(all(one in talk for one in w) for w in wanted))
    )
    by_hand = rubrics.choices(store, run_id)
    monkeypatch.setattr(evaluate, "open_judge", lambda *_: nullcontext(gold))
    wise = choosing.Choice("gold", "Which one opens best?")
    assert evaluate.score_runs(store, [run_id], [wise], print) == {wise.name: 6}
    assert evaluate.score_runs(store, [run_id], [wise], print) == {wise.name: 0}, "nothing is asked twice"
    assert store.rows("SELECT count(*) AS n FROM v_judgements WHERE evaluator LIKE 'choose.%gold'") == [{"n": 6}]
    found = {each.judge: each for each in rubrics.choices(store, run_id)}
    assert found["first"] == by_hand[0] and found["gold"].criterion != "natural"
    assert (found["gold"].decided, found["gold"].warning) == (2, None)
    assert {each.condition: each.chosen for each in found["gold"].conditions} == {
        "script": 0, "agents": 1, "mindreaders": 0,
    }  # fmt: skip
    assert found["gold"].places == [pytest.approx(1 / 3, abs=1e-4)] * 3
    shown = CliRunner().invoke(cli, ["report", run_id, *command]).output
    assert "Judge first, the most natural of 3" in shown and "2 sets, each asked in all 3 rotations" in shown
    CliRunner().invoke(cli, ["report", run_id, *command, "-o", str(tmp_path / "r.html")])
    assert "picks a place, not a conversation" in (tmp_path / "r.html").read_text()
    with client_of(store) as client:
        assert "the most natural of 3" in client.get(f"/runs/{run_id}").text
    assert store.check() == []


def test_a_criterion_needs_a_model(played: tuple[Store, str], capsys: pytest.CaptureFixture[str]) -> None:
    from localsim.__main__ import run as command

    store, run_id = played
    assert command(["score", run_id, "--db", str(store.path), "--criterion", "Which?"]) == 2
    assert "--criterion needs --choose" in capsys.readouterr().err


@pytest.mark.model
def test_a_real_model_names_a_place_in_each_rotation() -> None:
    own = unit(3, gold=1)
    with asking.open_judge("starter", print) as backend:
        found = evaluate.driven(choosing.Choice("starter"), tuple(own), partial(asking.ask, backend))
    scores = [each.scores[0].value for each in found if each.scores and "place" not in each.scores[0].name]
    assert len(scores) == 3 and sum(value for value in scores if value is not None) == pytest.approx(1)
    places = [score.value for each in found for score in each.scores if score.name.startswith("place_")]
    assert sum(value for value in places if value is not None) == pytest.approx(1)
