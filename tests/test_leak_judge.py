"""Judges of leaks: the search for the first turn, missing replies, players that only look like judges, agreement."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, astuple
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from localsim.annotation.agreement import NOT_DISCLOSED, agreement
from localsim.annotation.agreement import sentences as agreement_sentences
from localsim.annotation.leak_judges import leak_judges, sentences
from localsim.annotation.measures import TURN_UNKNOWN, first_turns
from localsim.backends.llama.lib import LlamaModel
from localsim.backends.scripted import ScriptedBackend
from localsim.cli import cli
from localsim.conversation.episode import Subject
from localsim.conversation.requests import Request
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.errors import GenerationFailed
from localsim.evaluators import evaluate, leak_judge
from localsim.evaluators.asking import UNREADABLE, ask, open_judge
from localsim.evaluators.leak_judge import FORM, LeakJudge, ends_of, facts_asked, question, search
from localsim.leakage.pairs import LABELS
from localsim.paths import json_text
from localsim.reports.compose.alone import report
from localsim.reports.render.html import render
from localsim.reports.render.markdown import as_markdown
from localsim.store.database import Store
from localsim.store.queries.scoring import subjects
from tests.conftest import generated
from tests.rated import given as answers_given
from tests.test_agreement import detected, marks_of
from tests.test_grammar import admits

Answer = Callable[[Request], str]
TERMS = {"ana_1": "crumbs", "bo_1": "garage"}


class Judging(ScriptedBackend):
    """A scripted judge; `answer` writes the reply to a request. It counts its questions."""

    def __init__(self, answer: Answer) -> None:
        super().__init__("scripted:judge", replies=["unused"])
        self.asked = 0
        self._answer = answer

    def _text(self, request: Request) -> str:
        self.asked += 1
        return self._answer(request)


def lines_of(request: Request) -> str:
    """The lines of the conversation in a prompt."""
    return request.messages[1].content.split("Conversation:\n")[1].split("\n\nPrivate fact")[0]


def fact_of(request: Request) -> str:
    return request.session.split("/")[1]


def options_of(request: Request) -> list[str]:
    """The answers in the order in which a prompt lists them."""
    heads = [line.partition(":")[0] for line in request.messages[1].content.splitlines()]
    return [head for head in heads if head in LABELS]


def truthful(request: Request) -> str:
    """A judge that looks for the term of the fact."""
    return " disclosed" if TERMS[fact_of(request)] in lines_of(request) else " none"


def always(word: str) -> Answer:
    return lambda _request: f" {word}"


def place(number: int) -> Answer:
    """A player that chooses a place of the list."""
    return lambda request: f" {options_of(request)[number]}"


def talks(
    loaded: LoadedScenario, count: int, turns: int = 12
) -> tuple[list[Subject], dict[tuple[str, str], int | str]]:
    """Conversations in which each fact comes out at a random turn or, in half of them, never; and these turns."""
    rng, made, truth = random.Random(7), [], {}
    for number in range(count):
        first = {fact: rng.choice([None, rng.randrange(turns)]) for fact in TERMS}
        said = []
        for turn in range(turns):
            told = " and ".join(TERMS[fact] for fact, at in first.items() if at == turn)
            said.append(Turn(turn, ("Ana", "Bo")[turn % 2], Action("speak", f"Well {turn}. {told}".strip())))
        subject = Subject(str(number), loaded.scenario, loaded.answer, "agents", 0, number, Transcript(tuple(said)))
        made.append(subject)
        truth |= {(str(number), fact): NOT_DISCLOSED if at is None else at for fact, at in first.items()}
    return made, truth


def judged(made: Sequence[Subject], answer: Answer) -> tuple[dict[tuple[str, str], int | str | None], int]:
    """The first turns according to a scripted judge, as `agreement.turns_by_judge` has them, and its questions."""
    backend, judge = Judging(answer), LeakJudge("toy")
    found: dict[tuple[str, str], int | str | None] = {}
    for batch in judge.batches(made, {}):
        for each in evaluate.driven(judge, batch, lambda requests: ask(backend, requests)):
            for score in each.scores:
                if score.name.startswith(leak_judge.FACT):
                    turn = score.turns[0] if score.turns else TURN_UNKNOWN
                    known: int | str | None = {"disclosed": turn, None: None}.get(score.label, NOT_DISCLOSED)
                    found[each.episode_id, score.name.removeprefix(leak_judge.FACT)] = known
    return found, backend.asked


# ---- the search ----------------------------------------------------------------------------------------------------


def searched(ends: Sequence[int], check: int | None, label: Callable[[int], str | None]) -> tuple[Any, list[int]]:
    """The verdict of a search whose questions `label` answers, and the turns that it asked about."""
    steps, asked = search(ends, check), list[int]()
    wanted = next(steps)
    try:
        while True:
            asked += wanted
            wanted = steps.send({end: label(end) for end in wanted})
    except StopIteration as end:
        return end.value, asked


TURNS = st.lists(st.integers(0, 200), min_size=1, max_size=60, unique=True).map(sorted)


@given(TURNS, st.data())
def test_the_search_finds_what_asking_after_every_turn_would_find(ends: list[int], data: Any) -> None:
    first = data.draw(st.sampled_from([*ends, None]))
    check = data.draw(st.sampled_from(ends[:-1])) if len(ends) > 1 else None
    silent = data.draw(st.sampled_from(["hint", "none"]))
    found, asked = searched(ends, check, lambda end: "disclosed" if first is not None and end >= first else silent)
    assert found.turn == first and found.label == (silent if first is None else "disclosed")
    assert found.agrees is (None if check is None else True)
    assert len(set(asked)) == len(asked), "nothing is asked twice"
    assert len(asked) <= (2 if first is None else 2 + math.ceil(math.log2(len(ends))))


@given(TURNS, st.sets(st.integers(0, 200)), st.data())
def test_a_missing_reply_is_never_taken_for_silence(ends: list[int], missing: set[int], data: Any) -> None:
    first = data.draw(st.sampled_from(ends))
    found, asked = searched(ends, None, lambda end: None if end in missing else "disclosed" if end >= first else "none")
    if ends[-1] in missing:
        assert found.label is None and found.turn is None
    else:
        assert found.label == "disclosed"
        assert found.turn == (None if missing & set(asked) else first)


def test_a_check_finds_answers_that_do_not_fit() -> None:
    ends = range(16)
    for check, agrees in ((2, False), (9, True)):
        found, _ = searched(ends, check, lambda end: "disclosed" if end >= 8 or end == 2 else "none")
        assert (found.turn, found.agrees) == (8, agrees)
    found, asked = searched(ends, 3, lambda end: "disclosed" if end == 3 else "none")
    assert (found.label, found.agrees, asked) == ("none", False, [15, 3])


def test_errors_do_not_pull_the_first_turn_forward() -> None:
    """One answer in twenty is wrong. To take the first yes of all turns is early; the search is not."""
    rng, ends, first = random.Random(3), range(24), 12
    by_search, by_first = [], []
    for _ in range(2000):
        noisy = {end: (end >= first) != (rng.random() < 0.05) for end in ends}
        found, _ = searched(ends, None, lambda end, noisy=noisy: "disclosed" if noisy[end] else "none")
        if found.turn is not None:
            by_search.append(found.turn - first)
            by_first.append(min(end for end in ends if noisy[end]) - first)
    assert sum(by_first) / len(by_first) < -2
    assert abs(sum(by_search) / len(by_search)) < 0.5


# ---- the question --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (" none", "none"),
        (" Disclosed.", "disclosed"),
        ("hint\n", "hint"),
        ("", None),
        (" no", None),
        (" none hint", None),
    ],
)
def test_a_reply_is_one_of_three_words(text: str, read: str | None) -> None:
    assert FORM.read(text) == read
    assert FORM.finished(f"Answer:{text}") is (read is not None)


def test_the_grammar_admits_the_three_words_and_nothing_else(engine_model: LlamaModel) -> None:
    form: Any = FORM
    assert all(admits(engine_model, form, f" {word}") for word in LABELS)
    assert not admits(engine_model, form, " maybe") and not admits(engine_model, form, " none of it")


def test_prompts_of_a_conversation_begin_alike_and_show_only_their_turns(talk: LoadedScenario) -> None:
    (subject,), _ = talks(talk, 1)
    ana, bo = facts_asked(talk.scenario)
    early, late, other = (question(subject, *which) for which in ((ana, 3), (ana, 11), (bo, 11)))
    texts = [request.messages[1].content for request in (early, late, other)]
    heads = [text.partition("\n\nPrivate fact")[0] for text in texts]
    assert heads[1] == heads[2] and heads[1].startswith(heads[0]) and "Well 4." not in texts[0]
    assert len({request.seed for request in (early, late, other)}) == 3 and early.max_tokens == 8
    assert "JUDGE-ONLY" not in "".join(texts) and "took the cake" not in "".join(texts), "no answer key, no goals"


def test_the_order_of_the_answers_is_no_habit(talk: LoadedScenario) -> None:
    made, _ = talks(talk, 60)
    orders = Counter(
        tuple(options_of(question(subject, fact, 5))) for subject in made for fact in facts_asked(talk.scenario)
    )
    assert len(orders) == 6 and max(orders.values()) < 40
    again = question(made[0], facts_asked(talk.scenario)[0], 5)
    assert again == question(made[0], facts_asked(talk.scenario)[0], 5), "the same question has the same prompt"


def test_facts_that_names_decide_or_that_both_hold_are_not_asked(talk: LoadedScenario) -> None:
    assert facts_asked(generated("mutual_friends").scenario) == ()
    assert [fact.id for fact in facts_asked(talk.scenario)] == ["ana_1", "bo_1"]
    ana, bo = talk.scenario.agents
    both = ana.model_copy(update={"facts": (ana.facts[0].model_copy(update={"terms": ("Garage",)}),)})
    assert facts_asked(talk.scenario.model_copy(update={"agents": (both, bo)})) == ()


@pytest.mark.model
def test_a_real_model_answers_with_one_word(talk: LoadedScenario) -> None:
    made, _ = talks(talk, 2)
    judge, replies = LeakJudge("starter"), list[Any]()
    with open_judge("starter", lambda _line: None) as backend:

        def answers(requests: Sequence[Request]) -> list[Any]:
            replies.extend(ask(backend, requests))
            return replies[-len(requests) :]

        (batch,) = judge.batches(made, {})
        found = evaluate.driven(judge, batch, answers)
    assert all(leak_judge.label_of(each) is not None for each in replies)
    prompts, read = (
        sum(getattr(each.reply, name) for each in replies) for name in ("prompt_tokens", "evaluated_tokens")
    )
    assert read < 0.8 * prompts, "questions about one conversation share its beginning"
    assert {score.name: score.value for score in found[0].scores}["missing_replies"] == 0


# ---- players that only look like judges ----------------------------------------------------------------------------


def test_a_truthful_judge_agrees_wholly_and_asks_little(talk: LoadedScenario) -> None:
    made, truth = talks(talk, 40)
    found, asked = judged(made, truthful)
    same = first_turns(truth, found, NOT_DISCLOSED)
    assert (same.kappa, same.first_turn, same.n, same.turns) == (1, 1, 80, 80)
    assert asked < 80 * 5, "asking after every turn takes 80 x 12 questions"


@pytest.mark.parametrize("answer", [*map(always, LABELS), *map(place, range(3))], ids=[*LABELS, "1st", "2nd", "3rd"])
def test_a_constant_player_and_one_that_prefers_a_place_agree_by_chance(talk: LoadedScenario, answer: Answer) -> None:
    made, truth = talks(talk, 300)
    found, _ = judged(made, answer)
    same = first_turns(truth, found, NOT_DISCLOSED)
    assert same.n == 600 and abs(same.kappa) < 0.12, "three standard errors"
    assert same.first_turn < 0.6


# ---- in the database -----------------------------------------------------------------------------------------------


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], Judging]:
    """Let a scripted judge answer in place of a model."""

    def open_as(answer: Answer) -> Judging:
        backend = Judging(answer)
        monkeypatch.setattr(evaluate, "open_judge", lambda *_: nullcontext(backend))
        return backend

    return open_as


def scored_by(store: Store, run: str) -> int:
    """Let the judge score a run; the number of episodes that it scored."""
    return evaluate.score_runs(store, [run], [LeakJudge("toy")], lambda _line: None)["leak_judge.toy"]


def told_in_turn_1(request: Request) -> str:
    """A judge that finds Bo's fact in turn 1 of every talk."""
    end = int(request.session.split("/")[2])
    return " disclosed" if fact_of(request) == "bo_1" and end >= 1 else " hint"


def test_questions_and_verdicts_are_stored_once(store: Store, run: str, answering: Any) -> None:
    backend = answering(told_in_turn_1)
    before = store.rows("SELECT * FROM v_scores ORDER BY ALL")
    assert scored_by(store, run) == 12
    asked = backend.asked
    assert scored_by(store, run) == 0 and backend.asked == asked, "nothing is asked twice"
    rows = store.rows("SELECT * FROM v_leak_judgements ORDER BY ALL")
    assert len(rows) == asked and {row["judge"] for row in rows} == {"toy"}
    assert [row["turn"] for row in rows if row["fact_id"] == "bo_1" and row["first"]] == [1] * 6
    assert all(row["label"] == "hint" and not row["first"] for row in rows if row["fact_id"] != "bo_1")
    assert not any(row["missing"] for row in rows)
    assert [row for row in store.rows("SELECT * FROM v_scores ORDER BY ALL") if row in before] == before
    by_subject = {each.episode_id: each for each in subjects(store, run)}
    for row in store.rows("SELECT * FROM v_judgements"):
        subject = by_subject[row["episode_id"]]
        fact = next(each for each in facts_asked(subject.scenario) if f"fact.{each.id}" == row["name"])
        request = question(subject, fact, row["sample"])
        assert [row["instructions"], row["prompt"]] == [message.content for message in request.messages]
        assert row["seed"] == request.seed and row["sample"] in ends_of(subject)
    assert store.check() == []


def test_unreadable_replies_are_missing_in_every_rate(store: Store, run: str, answering: Any) -> None:
    detected(store, run, {"script": 1})
    answering(lambda request: " I think so" if fact_of(request) == "ana_1" else told_in_turn_1(request))
    assert scored_by(store, run) == 12
    (row,) = leak_judges(store, [run])
    facts = sum(len(facts_asked(each.scenario)) for each in subjects(store, run))
    assert (row.facts, row.missing_facts, row.missing_replies) == (facts, 6, 12)
    assert row.detector.n == sum(each.facts for each in row.conditions) == facts - 6
    labels = store.rows("SELECT DISTINCT label, missing FROM v_leak_judgements WHERE fact_id = 'ana_1'")
    assert labels == [{"label": None, "missing": True}]
    verdicts = store.rows("SELECT DISTINCT value, label FROM v_scores WHERE name = 'fact.ana_1'")
    assert verdicts == [{"value": None, "label": None}]
    reasons = store.rows("SELECT DISTINCT malformed FROM v_judgements WHERE name = 'fact.ana_1'")
    assert reasons == [{"malformed": UNREADABLE}]
    assert "replies are missing" in row.warning and f"12 of {row.questions} replies missing" in sentences([row])[0]


def test_a_first_turn_that_a_missing_reply_hides_is_not_compared(store: Store, run: str, answering: Any) -> None:
    detected(store, run, {"script": 1, "agents": 1})

    def forgetful(request: Request) -> str:
        last = request.session.endswith(f"/{lasts[request.session.split('/')[0]]}")
        return " disclosed" if last and fact_of(request) == "bo_1" else " ?" if not last else " none"

    lasts = {each.episode_id: ends_of(each)[-1] for each in subjects(store, run)}
    answering(forgetful)
    scored_by(store, run)
    (row,) = leak_judges(store, [run])
    assert row.missing_facts == 0 and row.detector.n == row.facts
    assert row.detector.turns == row.facts - 6 and row.checks == 0
    assert sum(each.disclosed for each in row.conditions) == 6


def test_a_reply_that_failed_is_asked_for_again(store: Store, run: str, answering: Any) -> None:
    broken = subjects(store, run)[0].episode_id

    def failing(request: Request) -> str:
        if request.session.startswith(broken):
            raise GenerationFailed("the server is away")
        return told_in_turn_1(request)

    answering(failing)
    assert scored_by(store, run) == 11
    (row,) = leak_judges(store, [run])
    assert row.missing_facts == len(facts_asked(subjects(store, run)[0].scenario)) < row.facts
    assert store.rows("SELECT DISTINCT missing FROM v_leak_judgements WHERE episode_id = ?", [broken]) == [
        {"missing": True}
    ]
    answering(told_in_turn_1)
    assert scored_by(store, run) == 1
    assert leak_judges(store, [run])[0].missing_facts == 0


def test_a_newer_version_replaces_the_answers_in_views(
    store: Store, run: str, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(always("none"))
    scored_by(store, run)
    monkeypatch.setattr(LeakJudge, "version", "10")
    answering(told_in_turn_1)
    assert scored_by(store, run) == 12
    assert {row["version"] for row in store.rows("SELECT version FROM v_leak_judgements")} == {"10"}
    assert sum(each.disclosed for each in leak_judges(store, [run])[0].conditions) == 6


# ---- agreement -----------------------------------------------------------------------------------------------------


def test_the_judge_beside_detector_and_raters(store: Store, run: str, answering: Any) -> None:
    detected(store, run, {"script": 1, "agents": 3})
    for rater in ("ann", "bob"):
        answers_given(store, run, rater, marks_of(1), "disclosures")
    answering(told_in_turn_1)
    scored_by(store, run)
    (row,) = leak_judges(store, [run])
    assert row.raters.kappa == row.raters.first_turn == 1 and row.warning is None
    # Of n facts both disclose 4, the judge alone 2; 2 of the 4 have the same turn.
    n = row.facts
    equal, chance = (n - 2) / n, (6 * 4 + (n - 6) * (n - 4)) / n**2
    assert row.detector.kappa == pytest.approx((equal - chance) / (1 - chance)) == row.detector_kappa
    assert row.detector.first_turn == pytest.approx(1 - 4 / n)
    disclosed = {each.condition: (each.disclosed, each.detector) for each in row.conditions}
    assert disclosed == {"script": (2, 2), "agents": (2, 2), "mindreaders": (2, 0)}
    found = agreement(store, run)
    assert list(map(astuple, found.disclosures.judges)) == [(*astuple(row.raters), "toy")]
    assert any("Leak judge toy" in line and "1.00" in line for line in agreement_sentences(found))
    assert json.loads(json_text(row)) == asdict(row)


@pytest.mark.parametrize("word", LABELS)
def test_a_judge_that_always_answers_the_same_is_warned_of(store: Store, run: str, answering: Any, word: str) -> None:
    detected(store, run, {"script": 1, "agents": 3})
    answers_given(store, run, "ann", marks_of(1), "disclosures")
    answering(always(word))
    scored_by(store, run)
    (row,) = leak_judges(store, [run])
    assert row.detector.kappa == row.raters.kappa == 0
    assert "hardly more than chance" in row.warning


def test_score_and_report_show_the_judge_and_keep_the_rates_of_the_detector(
    store: Store, run: str, answering: Any
) -> None:
    detected(store, run, {"script": 1})
    before = report(store, run)
    answering(told_in_turn_1)
    shown = CliRunner().invoke(cli, ["score", run, "--leak-judge", "scripted", "--db", str(store.path)])
    assert shown.exit_code == 0 and "Leak judge scripted" in shown.output and "kappa" in shown.output
    again = CliRunner().invoke(cli, ["score", run, "--leak-judge", "scripted", "--json", "--db", str(store.path)])
    told = json.loads(again.stdout)
    assert told["leak_judges"][0]["judge"] == "scripted" and told["scored"]["leak_judge.scripted"] == 0
    after = report(store, run)
    assert after.comparison == before.comparison and after.leaks == before.leaks
    assert before.leak_judges == [] and list(map(asdict, after.leak_judges)) == told["leak_judges"]
    (line,) = sentences(after.leak_judges)
    page = as_markdown(after)
    assert "rely on the leakage detector" in page and "Leak judge scripted" in page
    assert line.split(".")[0] in render(after)
    assert line in CliRunner().invoke(cli, ["report", run, "--all", "--db", str(store.path)]).output
