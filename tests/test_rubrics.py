"""Rubrics: their files, what a judge is asked, and what planted good, empty and bad conversations score."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from localsim.backends.scripted import ScriptedBackend
from localsim.cli import cli
from localsim.conversation.episode import Score, Subject
from localsim.conversation.requests import Request
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.errors import InvalidInput, ScenarioInvalid
from localsim.evaluators import asking, evaluate, judge
from localsim.reports.evidence import rubrics
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.scenarios.documents import shipped_files
from localsim.scenarios.find import find_scenarios
from localsim.scenarios.rubrics import Rubric, find_rubric, parse_rubric, shipped_rubric
from localsim.scenarios.writing import validated
from localsim.store.database import Store
from localsim.store.records import score_records
from tests.conftest import Quiet, generated
from tests.web_server import client_of


def talk(*lines: tuple[str, str], scenario: str = "a_secret_kept") -> Subject:
    """A conversation of these words on a bundled scenario."""
    loaded = find_scenarios([scenario])[0]
    turns = tuple(Turn(place, name, Action("speak", words)) for place, (name, words) in enumerate(lines))
    return Subject("e1", loaded.scenario, loaded.answer, "agents", 0, 7, Transcript(turns))


GOOD = talk(
    ("Jude", "How is school going?"),
    ("Tess", "I would rather talk about you. How is the workshop?"),
    ("Jude", "Busy, and I am glad of it."),
)


@pytest.mark.parametrize(
    ("samples", "digest"),
    [
        (1, "ba91b7efbab2d8efe482478092c4fcb61b7595fc4411187241d648043291e55a"),
        (3, "f683a66a2e23e7e474fb89c82a756adf08f3b327758b32556cf3d2e6bd573672"),
    ],
)
def test_the_seven_dimensions_are_asked_in_the_same_bytes_as_ever(samples: int, digest: str) -> None:
    """Scores of version 3 stand in databases: whoever changes a prompt, a seed or a form must raise the version."""
    asked = list(judge.questions(GOOD, samples))
    sent = [(each.case, each.request, each.request.form.grammar()) for each in asked]
    written = repr(sent)
    for younger in (" note='',", " dry_others=0, act_min_p=0.0,", ", step=''"):  # fields that no judge uses came later
        written = written.replace(younger, "")
    written = re.sub(r", opening='judge/[^']*'", "", written)  # it names what the prompts have in common
    assert hashlib.sha256(written.encode()).hexdigest() == digest
    assert (judge.Judge("toy").name, judge.Judge("toy").version) == ("judge.toy", "3")


# ---- files ---------------------------------------------------------------------------------------------------------


SHIPPED = ["adherence", "esc7", "ethics", "personascore", "roleplay", "sotopia", "support"]


def test_the_rubrics_that_ship_are_valid_and_named_as_their_files() -> None:
    assert [file.stem for file in shipped_files("rubrics")] == SHIPPED
    assert [each.id for each in validated([str(file) for file in shipped_files("rubrics")])] == SHIPPED
    assert [len(shipped_rubric(name).dimensions) for name in SHIPPED] == [2, 7, 6, 5, 3, 7, 5]


OWN = """version: 2
id: pace
title: Pace
about: How the talk moves.
per: talk
least: 1
most: 5
anchors: {1: it stands still, 5: every turn moves it}
dimensions:
  progress:
    question: How far does the talk move?
  breaks:
    question: How often does it break off?
    least: -3
    most: 0
    anchors: {-3: often, 0: never}
"""


def test_a_rubric_about_the_whole_talk_asks_once_and_keeps_the_order_of_its_anchors() -> None:
    rubric = parse_rubric(OWN, "pace.yaml")
    assert rubric.asked()["progress"] == (
        1,
        5,
        "How far does the talk move? 1: it stands still, 5: every turn moves it.",
    )
    assert rubric.asked()["breaks"] == (-3, 0, "How often does it break off? -3: often, 0: never.")
    first, second = judge.questions(GOOD, 1, rubric)
    assert first.case.agent == second.case.agent == ""
    system, prompt = (message.content for message in first.request.messages)
    assert "about the whole conversation" in system and prompt.endswith(
        "Question about the conversation: How far does the talk move? 1: it stands still, 5: every turn moves it."
    )
    assert (judge.Judge("m", rubric=rubric).name, judge.Judge("m", rubric=rubric).version) == ("rubric.pace.m", "4")
    given = answered(GOOD, rubric, ScriptedBackend("s", replies=[" Yes.\nScore: 3\n", " No.\nScore: -1\n"]))
    assert [(score.name, score.agent, score.value) for score in given] == [
        ("progress", None, 3), ("breaks", None, -1), ("overall", None, 1), ("malformed_judgements", None, 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "place", "message"),
    [
        ("most: 5", "most: five", "7:7", "integer"),
        ("per: talk", "per: tolk", "5:6", "did you mean talk"),
        ("title: Pace", "titel: Pace", "3:1", "unknown key"),
        ("most: 5\n", "", "10:5", "least and most are missing"),
        ("least: -3", "least: 3", "13:5", "must be below"),
        ("-3: often", "-4: often", "16:14", "-4 is no score of breaks"),
        ("does the talk move", "does {name} move", "11:15", "holds no {name}"),
        ("does the talk move", "does {goal} move", "11:15", "the only word in braces is {name}"),
        ("per: talk", "per: agent", "11:15", "holds {name}"),
        ("progress:", "overall:", "11:5", "is the name of a score"),
        ("version: 2", "version: 0", "1:10", "greater than or equal to 1"),
        ("per: talk", "per: talk\nsuits: {level: [planet]}", "6:16", "'planet' is not one of individual, scenario"),
        ("per: talk", "per: talk\nsuits: {mood: [sunny]}", "6:15", "no dimension of the vocabulary"),
    ],
)
def test_a_defect_is_named_with_its_place(old: str, new: str, place: str, message: str) -> None:
    with pytest.raises(ScenarioInvalid) as caught:
        parse_rubric(OWN.replace(old, new, 1), "pace.yaml")
    told = [(f"{each.line}:{each.column}", each.message) for each in caught.value.problems]
    assert any(where == place and message in text for where, text in told), told


def test_a_name_that_is_none_and_an_id_that_is_taken_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"did you mean support"):
        find_rubric("suport")
    file = tmp_path / "mine.yaml"
    file.write_text(OWN.replace("id: pace", "id: support"))
    with pytest.raises(InvalidInput, match="that of a rubric of localsim"):
        find_rubric(str(file))
    file.write_text(OWN)
    assert find_rubric(str(file)) == parse_rubric(OWN, "x")


# ---- planted conversations -----------------------------------------------------------------------------------------


class Reader(ScriptedBackend):
    """A judge that reads: the words of the agent that it is asked about decide, by a cue for each question.

    Good words give the highest score, bad ones the lowest, none of both the middle.
    """

    def __init__(self, rubric: Rubric, cues: dict[str, tuple[str, str]]) -> None:
        super().__init__("scripted:reader", replies=["unused"])
        self._asked = {question: (name, low, high) for name, (low, high, question) in rubric.asked().items()}
        self._cues = cues

    def _text(self, request: Request) -> str:
        told, _, question = request.messages[1].content.rpartition("\n\nQuestion about ")
        agent, _, question = question.partition(": ")
        name, low, high = self._asked[question.replace(agent, "{name}")]
        said = "\n".join(re.findall(rf"^{agent}: (.*)$", told.partition("Conversation:\n")[2], re.MULTILINE))
        good, bad = self._cues[name]
        number = high if good in said else low if bad in said else (low + high) // 2
        return f" {agent} on {name}.\nScore: {number}\n"


def answered(subject: Subject, rubric: Rubric, backend: Any) -> tuple[Score, ...]:
    (evaluation,) = evaluate.driven(judge.Judge("m", rubric=rubric), (subject,), partial(asking.ask, backend))
    return evaluation.scores


CUES = {
    "support": {
        "listening": ("that is what weighs on you", "anyway, about me"),
        "warmth": ("I am so sorry", "your own fault"),
        "understanding": ("when did it begin?", "just quit"),
        "usefulness": ("the adviser is in on Monday", "no idea"),
        "respect": ("it is yours to decide", "you must"),
    },
    "roleplay": {
        "knowledge": ("I would not know that", "as every physicist knows"),
        "voice": ("the early shift", "as an AI"),
        "consistency": ("as I said", "I never said that"),
    },
    "esc7": {
        "fluency": ("first, what happened", "what what"),
        "diversity": ("let us try another side", "as said, as said"),
        "empathy": ("you feel let down by him", "do not be silly"),
        "suggestion": ("write to her tonight, then sleep", "drink it away"),
        "humanoid": ("I had such a week myself", "As a program I"),
        "knowledge": ("comfort, feeling, question, cause, other view", "no feeling"),
        "preference": ("I am here", "leave me alone"),
    },
    "personascore": {name: (f"good {name}", f"bad {name}") for name in shipped_rubric("personascore").asked()},
    "sotopia": {name: (f"good {name}", f"bad {name}") for name in judge.DIMENSIONS},
}


@pytest.mark.parametrize("name", list(CUES))
def test_planted_good_empty_and_bad_talks_score_as_they_must(name: str) -> None:
    rubric, cues = shipped_rubric(name), CUES[name]
    backend = Reader(rubric, cues)
    for place, expected in ((0, "most"), (None, "middle"), (1, "least")):
        words = "Hm." if place is None else " ".join(cue[place] for cue in cues.values())
        scores = {
            (each.agent, each.name): each.value
            for each in answered(talk(("Jude", "Well?"), ("Tess", words)), rubric, backend)
        }
        for dimension, (low, high, _) in rubric.asked().items():
            wanted = {"most": high, "least": low, "middle": (low + high) // 2}
            assert scores["Tess", dimension] == wanted[expected]
            assert scores["Jude", dimension] == wanted["middle"], "what one agent says is no merit of another"
        assert scores[None, "malformed_judgements"] == 0


@pytest.mark.parametrize("name", list(CUES))
def test_each_question_moves_its_own_score_alone(name: str) -> None:
    rubric, cues = shipped_rubric(name), CUES[name]
    backend = Reader(rubric, cues)
    for dimension, (good, _) in cues.items():
        scores = {
            each.name: each.value for each in answered(talk(("Tess", good)), rubric, backend) if each.agent == "Tess"
        }
        for other, (low, high, _) in rubric.asked().items():
            assert scores[other] == (high if other == dimension else (low + high) // 2)


def test_a_reply_that_cannot_be_read_is_counted_and_is_no_score() -> None:
    rubric = shipped_rubric("roleplay")
    replies = [" Fine.\nScore: 4", " Fine.\nScore: 9", "4", *[" So so.\nScore: 2"] * 3]
    scores = answered(GOOD, rubric, ScriptedBackend("s", replies=replies))
    tess = {each.name: each.value for each in scores if each.agent == "Tess"}
    assert tess == {"knowledge": 4, "voice": None, "consistency": None, "overall": 4}
    assert next(each.value for each in scores if each.name == "malformed_judgements") == pytest.approx(2 / 6)


def test_only_a_rubric_about_the_person_shows_the_profile() -> None:
    subject = talk(("Tess", "Hello."))
    shown = next(judge.questions(subject, 1, shipped_rubric("roleplay"))).request.messages[1].content
    hidden = next(judge.questions(subject, 1, shipped_rubric("support"))).request.messages[1].content
    assert "Tess's profile: age: 22; pronouns: she/her" in shown and "Tess works the early shift" in shown
    assert "profile" not in hidden and "early shift" not in hidden


# ---- a run ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def played(tmp_path: Path) -> tuple[Store, str]:
    store = Store(tmp_path / "d.duckdb")
    plan = Plan((generated("craigslist"),), ("script", "agents"), "scripted", episodes=2)
    return store, runner.start(plan, store, Quiet(), print).run_id


def test_scores_are_stored_under_the_rubric_with_their_reliability(
    played: tuple[Store, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store, run_id = played
    own = tmp_path / "pace.yaml"
    own.write_text(OWN)
    support = [" Well.\nScore: 2"] * 9 + ["nonsense"]
    pace = [f" Yes.\nScore: {number}" for number in (1, 0, 2, 0, 3, -1, 5, -1)]
    texts = iter([support * 4, pace])
    monkeypatch.setattr(
        evaluate, "open_judge", lambda *_: nullcontext(ScriptedBackend("scripted", replies=next(texts)))
    )
    command = ["score", run_id, "--db", str(store.path), "--judge", "scripted", "--rubric", "support"]
    done = CliRunner().invoke(cli, [*command, "--rubric", str(own), "--json"])
    assert done.exit_code == 0, done.output
    found = {(row["rubric"], row["dimension"]): row for row in json.loads(done.stdout)["rubrics"]}
    stored = store.rows("SELECT DISTINCT evaluator FROM scores WHERE evaluator LIKE '%scripted' ORDER BY ALL")
    assert [row["evaluator"] for row in stored] == ["rubric.pace.scripted", "rubric.support.scripted"]
    respect, progress = found["support", "respect"], found["pace", "progress"]
    assert (respect["n"], respect["unread"], respect["replies"]) == (4, 4, 8)
    assert respect["warning"] == "the same score for all: it tells nothing apart"
    assert (progress["n"], progress["unread"], progress["replies"]) == (4, 0, 4)
    kept = store.rows("SELECT mode, value FROM v_scores WHERE name = 'progress'")
    assert sorted(row["value"] for row in kept) == [1, 2, 3, 5]
    for mode in ("script", "agents"):
        assert progress["mean_by_mode"][mode] == sum(row["value"] for row in kept if row["mode"] == mode) / 2
    assert json.loads(done.stdout)["judges"] == [], "judges of Sotopia's dimensions are listed apart"
    shown = CliRunner().invoke(cli, ["score", run_id, "--db", str(store.path)]).output
    assert "4 of 8" in shown and "it tells nothing apart" in shown and "AUROC of success" in shown


def test_a_score_that_follows_the_outcome_says_so(played: tuple[Store, str]) -> None:
    store, run_id = played
    rows = store.rows("SELECT episode_id, value FROM v_scores WHERE name = 'success' AND mode = 'agents'")
    for number, row in enumerate(rows):
        success = float(number % 2)
        given = [Score("right", success), Score("wrong", 1 - success)]
        store.take_in(score_records(row["episode_id"], "outcome.craigslist", "99", [Score("success", success)]))
        store.take_in(score_records(row["episode_id"], "rubric.own.a.b", "3", given))
    found = {row.dimension: row for row in rubrics.rubric_rows(store, run_id)}
    assert (found["right"].success_auroc, found["wrong"].success_auroc) == (1, 0)
    assert (found["right"].rubric, found["right"].judge) == ("own", "a.b")


def planted(store: Store, run_id: str, rubric: Rubric, words: dict[str, str], unread: int = 0) -> None:
    """Score the episodes of a run as if Tess had said these words in each mode; `unread` replies have no score."""
    backend = Reader(rubric, CUES[rubric.id])
    for row in store.rows("SELECT episode_id, mode FROM episodes WHERE run_id = ? ORDER BY ALL", [run_id]):
        subject = replace(talk(("Jude", "Well?"), ("Tess", words[row["mode"]])), episode_id=row["episode_id"])
        asking_judge = judge.Judge("reader", rubric=rubric)

        def answers(requests: Any) -> Any:
            found = asking.ask(backend, requests)
            bad = [replace(each, reply=replace(each.reply, text="nonsense")) for each in found[:unread]]
            return [*bad, *found[unread:]]

        (evaluation,) = evaluate.driven(asking_judge, (subject,), answers)
        given = score_records(row["episode_id"], asking_judge.name, asking_judge.version, evaluation.scores)
        store.take_in([*evaluation.records, *given])


def test_a_report_shows_planted_good_and_bad_talks_by_mode_with_their_reliability(
    played: tuple[Store, str], tmp_path: Path
) -> None:
    store, run_id = played
    cues = CUES["support"].values()
    words = {"agents": " ".join(good for good, _ in cues), "script": " ".join(bad for _, bad in cues)}
    planted(store, run_id, shipped_rubric("support"), words, unread=1)
    command = ["report", run_id, "--db", str(store.path)]
    done = CliRunner().invoke(cli, [*command, "--json"])
    assert done.exit_code == 0, done.output
    rows = {row["dimension"]: row for row in json.loads(done.stdout)["rubrics"]}
    # Jude, who says none of these words, has the middle of 0 to 4; Tess the highest or the lowest score.
    assert {name: row["mean_by_mode"] for name, row in rows.items() if name != "overall"} == {
        name: {"script": 1, "agents": 3} for name in CUES["support"] if name != "listening"
    } | {"listening": {"script": 2, "agents": 2}}, "the unread reply about Tess's listening is no score"
    assert rows["warmth"]["talks_by_mode"] == {"script": 2, "agents": 2}
    assert (rows["listening"]["unread"], rows["listening"]["replies"], rows["warmth"]["unread"]) == (4, 8, 0)
    shown = CliRunner().invoke(cli, command).output
    assert "Judge reader, rubric support" in shown and "script, 2 talks" in shown and "4 of 8" in shown
    for name in ("report.html", "report.md"):
        assert CliRunner().invoke(cli, [*command, "-o", str(tmp_path / name)]).exit_code == 0
        text = (tmp_path / name).read_text()
        assert "rubric support" in text and "agents, 2 talks" in text and "4 of 8" in text
    with client_of(store) as client:
        page = client.get(f"/runs/{run_id}").text
    assert "Judge reader, rubric support" in page and "script, 2 talks" in page


def test_planted_empty_talks_are_told_apart_from_neither_side(played: tuple[Store, str]) -> None:
    store, run_id = played
    planted(store, run_id, shipped_rubric("roleplay"), dict.fromkeys(("script", "agents"), "Hm."))
    for row in rubrics.rubric_rows(store, run_id):
        assert row.mean_by_mode == {"script": 2, "agents": 2}
        assert row.warning == "the same score for all: it tells nothing apart"


def test_a_run_that_no_judge_has_scored_shows_no_rubric(played: tuple[Store, str], tmp_path: Path) -> None:
    store, run_id = played
    command = ["report", run_id, "--db", str(store.path)]
    assert json.loads(CliRunner().invoke(cli, [*command, "--json"]).stdout)["rubrics"] == []
    assert "rubric" not in CliRunner().invoke(cli, command).output
    CliRunner().invoke(cli, [*command, "-o", str(tmp_path / "report.html")])
    assert "rubric" not in (tmp_path / "report.html").read_text()
    with client_of(store) as client:
        assert "rubric" not in client.get(f"/runs/{run_id}").text


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--rubric", "support"], 2, "--rubric needs --judge"),
        (["--judge", "scripted", "--rubric", "nothing"], 3, "no rubric 'nothing'"),
    ],
)
def test_a_wrong_option_has_one_clear_error(
    played: tuple[Store, str], capsys: pytest.CaptureFixture[str], options: list[str], code: int, message: str
) -> None:
    from localsim.__main__ import run as command

    store, run_id = played
    assert command(["score", run_id, "--db", str(store.path), *options]) == code
    assert message in capsys.readouterr().err


@pytest.mark.model
def test_a_real_model_answers_every_question_of_the_shipped_rubrics() -> None:
    with asking.open_judge("starter", lambda _line: None) as backend:
        for name in ("support", "roleplay"):
            asked = list(judge.questions(GOOD, 1, shipped_rubric(name)))
            found = asking.ask(backend, [question.request for question in asked])
            assert all(reply.read(question.verdict.read) for question, reply in zip(asked, found, strict=True))
