"""People and judges answer the same rubric about the same talks: the form, what is stored, and how both agree."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from localsim.backends.scripted import ScriptedBackend
from localsim.cli import cli
from localsim.conversation.episode import Subject
from localsim.conversation.transcript import Transcript
from localsim.errors import InvalidInput, ScenarioInvalid
from localsim.evaluators import evaluate
from localsim.evaluators.judge import questions
from localsim.reports.evidence import rubrics
from localsim.scenarios.experiments.read import find_experiment
from localsim.scenarios.rubrics import shipped_rubric
from localsim.store.database import Store
from localsim.store.queries.experiments import Rating
from localsim.web.experiment.forms import UNKNOWN, questions_of, ratings_from
from localsim.web.experiment.lab import Lab
from tests.experiment_lab import SMALL, agreed, client_of, lab_at, post, ready, until, written
from tests.web_server import field

ALONE = re.sub(r"  - \{id: both.*\n", "", SMALL).replace("debrief:", "rated: {rubric: support}\ndebrief:")
GIVEN = {"listening": "4", "warmth": "0", "understanding": "2", "usefulness": UNKNOWN, "respect": "3"}
NAMES = ("Ana", "Bo", "Cleo")


def talked(client: TestClient, lab: Lab) -> str:
    """Take part up to the end of the talk; the page after it."""
    agreed(client)
    text = ready(client)
    post(client, "say", turn=field(text, "turn"), text="Bye", leave="1")
    until(lambda: all(live.ended for live in lab.live.values()))
    for _ in range(10):
        text = client.get("/experiment").text
        if 'action="/experiment/rate"' not in text:
            return text
        post(client, "rate", turn=field(text, "turn"), **{"item.nice": "A"})
    raise AssertionError(text)


def sent() -> dict[str, str]:
    return {f"rubric.0.{name}": value for name, value in GIVEN.items()}


def rated(folder: Path, people: int = 2) -> Store:
    """An experiment that this many participants have finished, with a rubric after their talks."""
    with lab_at(folder, ALONE) as lab:
        for _ in range(people):
            client = client_of(lab)
            text = talked(client, lab)
            assert "Your completion code" in post(client, "judge", talk=field(text, "talk"), **sent()).text
    return Store(folder / "e.duckdb")


def test_people_read_the_words_of_the_judge_about_the_other_side(tmp_path: Path) -> None:
    with lab_at(tmp_path, ALONE) as lab:
        text = unescape(talked(client_of(lab), lab))
        (live,) = lab.live.values()
        loaded = lab.study.arms[0].scenarios[0]
        other, own = loaded.scenario.names
        subject = Subject("e", loaded.scenario, loaded.answer, "agents", 0, 0, Transcript(tuple(live.turns)))
        asked = list(questions(subject, 1, shipped_rubric("support")))
        for question in asked:
            words = question.request.messages[-1].content.rpartition(f"{question.case.agent}: ")[2]
            assert (words in text) == (question.case.agent == other), "the own role is not asked about"
        points = re.findall(r'name="rubric\.0\.warmth" value="([^"]*)"', text)
        assert points == ["0", "1", "2", "3", "4", UNKNOWN] and own not in re.findall(r"<h2>([^<]*)", text)


def test_ratings_are_stored_beside_the_scores_of_a_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = rated(tmp_path)
    rows = store.rows("SELECT * FROM v_rubric_ratings ORDER BY participant, dimension")
    assert len(rows) == 10 and {row["judge"] for row in rows} == {None} and not any(row["own"] for row in rows)
    given = {name: None if value == UNKNOWN else float(value) for name, value in GIVEN.items()}
    assert all(row["rating"] == given[row["dimension"]] for row in rows)
    run_id = rows[0]["run_id"]
    texts = [f" Yes.\nScore: {number}" for number in (0, 1, 2, 3, 4)] * 4
    monkeypatch.setattr(
        evaluate, "open_judge", lambda *_: nullcontext(ScriptedBackend("scripted", replies=list(texts)))
    )
    command = ["score", run_id, "--db", str(store.path), "--judge", "scripted", "--rubric", "support", "--json"]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.output
    rows = store.rows("SELECT * FROM v_rubric_ratings ORDER BY participant, dimension")
    scores = dict(zip(GIVEN, (0, 1, 2, 3, 4), strict=True))
    assert len(rows) == 10 and {row["judge"] for row in rows} == {"scripted"}
    assert all(row["score"] == scores[row["dimension"]] and row["reason"] == "Yes." for row in rows)
    row = {each["dimension"]: each for each in json.loads(done.stdout)["rubrics"]}["warmth"]
    assert (row["people_both"], row["people_rho"]) == (2, None), "two talks are too few for a correlation"
    results = ["experiment", "results", str(tmp_path / "small.yaml"), "--db", str(store.path)]
    told = json.loads(CliRunner().invoke(cli, [*results, "--json"]).stdout)["rubric"]
    found = {row["dimension"]: row for row in told}
    assert (found["listening"]["mean"], found["listening"]["score"], found["listening"]["both"]) == (4, 0, 2)
    assert (found["usefulness"]["ratings"], found["usefulness"]["cannot_tell"], found["usefulness"]["mean"]) == (
        0, 2, None,
    )  # fmt: skip
    assert "cannot tell" in CliRunner().invoke(cli, results).stdout
    store.take_in([])
    with store.writing(5) as connection:
        connection.execute("UPDATE scores SET version = '99' WHERE evaluator = 'rubric.support.scripted'")
    rows = store.rows("SELECT DISTINCT judge FROM v_rubric_ratings")
    assert rows == [{"judge": None}], "a judge of another version was asked something else"


def test_a_talk_is_rated_once_and_a_restart_keeps_it(tmp_path: Path) -> None:
    with lab_at(tmp_path, ALONE) as lab:
        client = client_of(lab)
        talk = field(talked(client, lab), "talk")
        late = post(client, "judge", talk=talk, **(sent() | {"rubric.0.warmth": "5"}))
        assert "an answer is missing" in late.text and not lab.register.people[1].judged
        assert "cannot be rated now" in post(client, "judge", talk="2", **sent()).text
        post(client, "judge", talk=talk, **sent())
        post(client, "judge", talk=talk, **(sent() | {"rubric.0.warmth": "4"}))
        first = lab.register.people[1].judged
        assert [each["value"] for each in first[1]] == list(GIVEN.values())
    with lab_at(tmp_path, ALONE) as lab:
        assert lab.register.people[1].judged == first and lab.register.people[1].status == "finished"


def test_a_talk_that_broke_off_is_not_rated(tmp_path: Path) -> None:
    with lab_at(tmp_path, ALONE.replace("minutes: 5", "minutes: 0.01")) as lab:
        client = client_of(lab)
        agreed(client)
        until(lambda: all(live.ended for live in lab.live.values()))
        for _ in range(10):
            text = client.get("/experiment").text
            if 'action="/experiment/rate"' in text:
                post(client, "rate", turn=field(text, "turn"), **{"item.nice": "A"})
        assert "Your completion code" in text


@pytest.mark.parametrize(
    ("about", "agents"), [("others", ["Ana", "Cleo"]), ("self", ["Bo"]), ("all", ["Ana", "Bo", "Cleo"])]
)
def test_whom_a_rubric_asks_about(about: Any, agents: list[str]) -> None:
    asked = questions_of(shipped_rubric("support"), NAMES, "Bo", about)
    assert list(dict.fromkeys(question.agent for question in asked)) == agents
    assert len({question.field for question in asked}) == len(asked) == 5 * len(agents)
    with pytest.raises(InvalidInput, match="an answer is missing: How well did"):
        ratings_from(asked, {})


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("roleplay", "rated.rubric: rubric roleplay is about whole profiles"),
        ("suport", "no rubric 'suport' (did you mean support?)"),
        ("wide.yaml", "dimension much has 12 points; at most 11 fit on a page"),
    ],
)
def test_a_rubric_that_people_cannot_answer_is_refused_at_its_place(tmp_path: Path, wanted: str, message: str) -> None:
    wide = "version: 1\nid: wide\ntitle: W\nabout: W.\nper: talk\nleast: 0\nmost: 11\n"
    (tmp_path / "wide.yaml").write_text(f"{wide}dimensions: {{much: {{question: 'How much?'}}}}\n")
    file = written(tmp_path, ALONE.replace("rubric: support", f"rubric: {wanted}"))
    with pytest.raises(ScenarioInvalid) as caught:
        find_experiment(file)
    assert message in str(caught.value) and "small.yaml:10:17" in str(caught.value)


def test_without_a_rubric_the_description_is_what_it_was(tmp_path: Path) -> None:
    """An experiment that is under way goes on with a newer localsim."""
    description = json.loads(find_experiment(written(tmp_path)).description)
    assert set(description) == {"experiment", "banks", "scenarios"} and "rated" not in description["experiment"]
    assert "rubric" in json.loads(find_experiment(written(tmp_path, ALONE)).description)


@pytest.mark.parametrize(("scores", "rho"), [((1, 2, 3, 4), 1.0), ((4, 3, 2, 1), -1.0), ((2, 2, 2, 2), None)])
def test_a_judge_that_follows_people_or_contradicts_them_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, scores: tuple[int, ...], rho: float | None
) -> None:
    rows = [
        Rating("support", "warmth", f"e{number}", "Ana", f"p{number}{rater}", number + rater, "m", score)
        for number, score in enumerate(scores)
        for rater in (0, 1)
    ]
    monkeypatch.setattr(rubrics.experiments, "rubric_ratings", lambda *_: rows)
    (found,) = rubrics.people_and_judges(Store(tmp_path / "x.duckdb"), "r")
    assert (found.rho, found.both, found.ratings, found.mean) == (rho, 4, 8, 2.0)
    assert found.alpha == pytest.approx(1 - 4 * 1 * 7 / _between([n + r for n in range(4) for r in (0, 1)]))


def _between(values: list[int]) -> float:
    """Half of the squared differences between any two ratings; twice that is the disagreement of chance."""
    return sum((one - other) ** 2 for one in values for other in values) / 2
