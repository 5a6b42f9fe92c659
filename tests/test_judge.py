"""Judges: the form of a verdict, what is stored, and how far it may be trusted."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from localsim.backends.llama.lib import LlamaModel
from localsim.backends.scripted import ScriptedBackend
from localsim.cli import cli
from localsim.conversation.episode import Score
from localsim.conversation.grants import condition_name
from localsim.conversation.requests import Generation
from localsim.evaluators import asking, choosing, evaluate, judge
from localsim.evaluators.asking import Verdict
from localsim.reports.validity import judges
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.store.conditions import Condition
from localsim.store.database import Store
from localsim.store.queries.judged import Goals
from localsim.store.queries.runs import episode_list
from localsim.store.queries.scoring import leaks_by_condition, subjects
from localsim.store.records import score_records
from tests.conftest import Quiet, generated
from tests.test_grammar import admits


@pytest.fixture
def played(tmp_path: Path) -> tuple[Store, str]:
    store = Store(tmp_path / "d.duckdb")
    plan = Plan((generated("craigslist"),), ("script", "agents"), "scripted", episodes=2)
    return store, runner.start(plan, store, Quiet(), print).run_id


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (" She left.\nScore: 7", (7, "She left.")),
        (" a\nScore:0\n", (0, "a")),
        (" a\nScore: 11", None),
        (" a\nScore: -1", None),
        (" no score", None),
        ("\nScore: 3", None),
    ],
)
def test_a_verdict_is_read_or_refused(text: str, read: Any) -> None:
    assert Verdict(0, 10).read(text) == read


def test_the_grammar_admits_the_range_and_nothing_else(engine_model: LlamaModel) -> None:
    form: Any = Verdict(-5, 5)
    assert admits(engine_model, form, " Fine talk.\nScore: -5")
    assert admits(engine_model, form, " Fine talk.\nScore: 5\n")
    assert not admits(engine_model, form, " Fine talk.\nScore: 6")
    assert not admits(engine_model, form, "Score: 5")
    assert form.forced("Reason: x\n") == "Score:" and form.forced("Reason: x") == ""
    assert form.finished("Reason: x\nScore: 5\n") and not form.finished("Reason: x\n")


def test_every_dimension_of_every_agent_is_asked(played: tuple[Store, str]) -> None:
    store, run_id = played
    asked = list(judge.questions(subjects(store, run_id)[0], samples=2))
    assert len(asked) == 2 * len(judge.DIMENSIONS) * 2
    assert len({question.request.seed for question in asked}) == len(asked)
    heads = {question.request.messages[1].content.rpartition("\n\nQuestion")[0] for question in asked}
    assert len(heads) == 1, "prompts about one talk share all but the question"


def scored_by(store: Store, run_id: str, evaluator: Any) -> int:
    """Let one evaluator score a run; the number of episodes that it scored."""
    return evaluate.score_runs(store, [run_id], [evaluator], lambda _line: None)[evaluator.name]


def replies(goal: str) -> list[str]:
    """What a judge writes about one talk, in the order of the questions."""
    return [f" Because.\nScore: {goal}" if name == "goal" else " Well.\nScore: 0" for name in judge.DIMENSIONS] * 2


def test_scores_are_kept_apart_and_nothing_is_asked_twice(
    played: tuple[Store, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, run_id = played
    texts = [*replies("9"), *replies("nonsense"), *replies("2"), *replies("3")]
    monkeypatch.setattr(evaluate, "open_judge", lambda *_: nullcontext(ScriptedBackend("scripted", replies=texts)))
    before = store.rows("SELECT * FROM scores ORDER BY ALL")
    assert scored_by(store, run_id, judge.Judge("toy")) == 4
    assert scored_by(store, run_id, judge.Judge("toy")) == 0
    after = store.rows("SELECT * FROM scores ORDER BY ALL")
    assert [row for row in after if not row["evaluator"].startswith("judge.")] == before
    goals = store.rows("SELECT value FROM scores WHERE name = 'goal' AND evaluator = 'judge.toy' ORDER BY value")
    assert sorted(row["value"] for row in goals if row["value"] is not None) == [2, 2, 3, 3, 9, 9]
    assert sum(row["value"] is None for row in goals) == 2, "a missing score is missing, never 0"
    malformed = store.rows("SELECT value FROM scores WHERE name = 'malformed_judgements' ORDER BY value")
    assert malformed[-1]["value"] == pytest.approx(1 / 7)


def test_every_prompt_and_reply_is_kept(played: tuple[Store, str], monkeypatch: pytest.MonkeyPatch) -> None:
    store, run_id = played
    texts = [*replies("9"), *replies("nonsense"), *replies("2"), *replies("3")]
    monkeypatch.setattr(evaluate, "open_judge", lambda *_: nullcontext(ScriptedBackend("scripted", replies=texts)))
    scored_by(store, run_id, judge.Judge("toy"))
    rows = store.rows("SELECT * FROM v_judgements ORDER BY ALL")
    assert len(rows) == 4 * 2 * len(judge.DIMENSIONS)
    for subject in subjects(store, run_id):
        asked = {(q.case.agent, q.case.name): q.request for q in judge.questions(subject, 1)}
        for row in (row for row in rows if row["episode_id"] == subject.episode_id):
            request = asked[row["agent"], row["name"]]
            assert (row["instructions"], row["prompt"]) == tuple(message.content for message in request.messages)
            assert row["seed"] == request.seed and row["thought"] is None and not row["truncated"]
    bad = [row["reply"] for row in rows if row["malformed"] == asking.UNREADABLE]
    assert bad == ["Reason: Because.\nScore: nonsense"] * 2
    scored = "SELECT count(*) AS n FROM judgements JOIN scores USING (episode_id, evaluator, version, name, agent)"
    assert store.rows(scored)[0]["n"] == len(rows), "a score leads to what was asked"
    assert store.check() == []
    with store.writing() as connection:
        connection.execute("DELETE FROM contents WHERE content_hash IN (SELECT prompt_hash FROM judgements)")
    assert store.check() == [f"judgements without their prompt: {len(rows)}"]
    store.remove_run(run_id)
    assert store.rows("SELECT count(*) AS n FROM judgements")[0]["n"] == 0


def test_a_reply_that_could_not_be_had_is_a_row_and_is_asked_again(
    played: tuple[Store, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, run_id = played
    whole = [*replies("9"), *replies("8"), *replies("7"), *replies("6")]
    # The second time only the talk is asked about whose last reply was missing.
    for texts, failures, judged in ((whole[:-1], 1, 3), (replies("6"), 0, 4)):
        backend = ScriptedBackend("scripted", replies=texts)
        monkeypatch.setattr(evaluate, "open_judge", lambda *_, backend=backend: nullcontext(backend))
        scored_by(store, run_id, judge.Judge("toy"))
        failed = store.rows("SELECT malformed FROM v_judgements WHERE cause = 'error'")
        scored = store.rows("SELECT count(DISTINCT episode_id) AS n FROM scores WHERE evaluator = 'judge.toy'")
        assert (len(failed), scored[0]["n"]) == (failures, judged)
        assert all("no replies left" in row["malformed"] for row in failed)


def judged(
    goals: list[float],
    family: str = "f",
    mode: str = "agents",
    outcomes: tuple[float, ...] = (1.0, 0.0),
    see: str = "",
) -> list[Goals]:
    """Goal scores of one family and condition, with outcomes that take turns, two conversations on each scenario."""
    return [
        Goals(
            "r",
            mode,
            "m",
            see,
            "judge.x",
            family,
            f"{family}{place // 2}",
            "",
            goal,
            0.1,
            outcomes[place % len(outcomes)],
        )
        for place, goal in enumerate(goals)
    ]


def judge_of(rows: list[Goals]) -> dict[str, Any]:
    return vars(judges._judge("judge.x", rows))


def test_a_judge_no_better_than_chance_is_called_so() -> None:
    bad, good = judge_of(judged([5.0] * 8)), judge_of(judged([9.0, 1.0] * 40))
    assert bad["goal_auroc"] == 0.5 and "chance" in bad["warning"]
    assert good["goal_auroc"] == 1.0 and good["warning"] is None
    assert good["goal_auroc_low"] > 0.9 and good["goal_auroc_high"] == 1.0
    assert "cannot be checked" in judge_of([])["warning"]
    few = judge_of(judged([9.0, 1.0, 9.0, 9.0]))
    assert few["goal_auroc"] == 0.75 and "cannot be told from chance" in few["warning"]


@pytest.mark.parametrize("where", [({"family": "a"}, {"family": "b"}), ({"mode": "script"}, {}), ({"see": "all"}, {})])
def test_a_judge_that_tells_families_or_conditions_apart_gets_no_credit_for_it(where: Any) -> None:
    """One of the two nearly always succeeds, the other never; the judge knows only which of them it reads."""
    easy = judged([9.0] * 40, outcomes=(1.0, 1.0, 1.0, 0.0), **where[0])
    hard = judged([1.0] * 40, outcomes=(0.0, 0.0, 0.0, 1.0), **where[1])
    found = judge_of(easy + hard)
    assert found["goal_auroc"] == 0.5 and "do not use" in found["warning"]
    never = judge_of(judged([9.0] * 40, outcomes=(1.0,)) + judged([1.0] * 40, "g", outcomes=(0.0,)))
    assert never["goal_auroc"] is None and "cannot be checked" in never["warning"]


def test_strata_of_a_judge_count_by_their_pairs() -> None:
    # 2 x 2 pairs of which all are right, and 1 x 1 pair that is wrong.
    found = judge_of(judged([9.0, 1.0, 9.0, 1.0]) + judged([1.0, 9.0], "g"))
    assert (found["goal_auroc"], found["goal_auroc_pairs"], found["goal_auroc_scenarios"]) == (0.8, 5, 3)


def test_the_interval_of_a_judge_covers_what_it_is_over_many_runs() -> None:
    """Goal scores 2 sd apart for success and failure, with a part that the conversations of a scenario share."""
    rng = np.random.default_rng(5)
    truth = 0.9214  # Phi(2 / sqrt(2)): success and failure differ by 2, each with variance 1
    covered = 0
    for _ in range(100):
        shared, own = rng.normal(0, 0.5**0.5, 20), rng.normal(0, 0.5**0.5, (20, 4))
        goals = [float(shared[s] + own[s, e] + 2 * (e % 2 == 0)) for s in range(20) for e in range(4)]
        condition = Condition("r", "agents", "m")
        rows = [judges.Goal("f", str(n // 4), condition, goal, 1.0 - n % 2) for n, goal in enumerate(goals)]
        found, _ = judges.follows_outcome(rows)
        assert found.low is not None and found.high is not None and 0 <= found.low < found.high <= 1
        covered += found.low <= truth <= found.high
    assert covered >= 90


def test_granted_conditions_have_goals_and_leaks_of_their_own(store: Store) -> None:
    modes: tuple[Any, ...] = ("script", "agents")
    plan = Plan((generated("mutual_friends", 3),), modes, "scripted", episodes=2, see=("none", "all"))
    run_id = runner.start(plan, store, Quiet(), lambda _line: None).run_id
    marks = {"script": 1.0, "agents": 2.0, "agents+all": 9.0}
    for row in episode_list(store, run_id):
        given = [Score("goal", marks[row["mode"]], agent="x")]
        store.take_in(score_records(row["episode_id"], "judge.m", "1", given))
    (found,) = judges.reliability(store, [run_id])
    assert found.goal_by_mode == marks and list(found.goal_by_mode) == list(marks)
    shown = CliRunner().invoke(cli, ["score", run_id, "--db", str(store.path)]).output
    assert "agents+all" in shown and "condition" in shown
    counts = leaks_by_condition(store, run_id)
    by_view = store.rows("SELECT mode, coalesce(see, '') AS see, count(*) AS n FROM v_leaks GROUP BY ALL")
    assert {row.see for row in counts if row.mode == "agents"} == {"", "all"}
    assert sum(row["n"] for row in by_view) > 0
    for row in by_view:
        here = [each.facts for each in counts if (each.mode, each.see) == (row["mode"], row["see"])]
        assert sum(here) == row["n"]
    told = CliRunner().invoke(cli, ["score", run_id, "--json", "--db", str(store.path)]).stdout
    assert {row["condition"] for row in json.loads(told)["leaks"]} == {
        condition_name(row["mode"], row["see"]) for row in by_view
    }


@pytest.mark.model
def test_a_real_model_judges_a_talk(played: tuple[Store, str]) -> None:
    store, run_id = played
    said: list[str] = []
    with asking.open_judge("starter", said.append) as backend:
        asked = list(judge.questions(subjects(store, run_id)[0], samples=1))[:4]
        found = asking.ask(backend, [question.request for question in asked])
    assert "weights" in said[0], "memory is stated before the judge is loaded"
    for question, result in zip(asked, found, strict=True):
        assert result.read(question.verdict.read) is not None
    first, *others = (result.reply for result in found if isinstance(result.reply, Generation))
    assert first.shared_tokens == 0
    assert all(each.shared_tokens > first.evaluated_tokens / 2 for each in others), "they read the talk once"


# ---- the more natural of two ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plain", "swapped", "found"),
    [(1, 2, 1.0), (2, 1, 0.0), (1, 1, 0.5), (2, 2, 0.5), (None, 1, None), (1, None, None)],
)
def test_a_choice_counts_where_both_orders_agree(plain: int | None, swapped: int | None, found: float | None) -> None:
    assert choosing.both_orders(plain, swapped) == found


def test_the_form_of_a_choice_is_read_and_admitted(engine_model: LlamaModel) -> None:
    form = choosing.Naturalness("m").form(["one", "other"])
    assert form.read(" It flows.\nMore natural: 2\n") == (2, "It flows.")
    assert form.read("2") is None and form.read(" x\nMore natural: 3\n") is None
    assert admits(engine_model, form, " It flows.\nMore natural: 1\n")
    assert form.forced(" It flows.\n") == "More natural:" and form.finished(" It flows.\nMore natural: 1\n")


def modes_run(store: Store) -> str:
    plan = Plan((generated("mutual_friends", 3),), ("script", "agents", "mindreaders"), model="scripted", episodes=2)
    return runner.start(plan, store, Quiet(), lambda _line: None).run_id


def preferring(prefer: str) -> Any:
    """A judge that prefers the first place, or the longer talk."""

    class Chooser(ScriptedBackend):
        def _text(self, request: Any) -> str:
            one, two = request.messages[1].content.split("Conversation 1:")[1].split("Conversation 2:")
            lines = [part.split("\n\nWhich")[0].strip().count("\n") for part in (one, two)]
            first = prefer == "place" or lines[0] > lines[1]
            return f" It is so.\nMore natural: {1 if first else 2}\n"

    return Chooser("scripted:x", replies=["unused"])


def test_a_judge_that_picks_a_place_decides_nothing_and_is_warned_of(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = modes_run(store)
    monkeypatch.setattr(evaluate, "open_judge", lambda *_: nullcontext(preferring("place")))
    assert scored_by(store, run, choosing.Naturalness("m")) == 6
    found = judges.rates(store, run)
    assert len(found) == 3 and all(row.orders_agree == 0 and row.warning for row in found)
    assert scored_by(store, run, choosing.Naturalness("m")) == 0, "nothing is asked twice"
    rows = store.rows("SELECT * FROM v_judgements ORDER BY ALL")
    assert len(rows) == 2 * 6 and {row["sample"] for row in rows} == {0, 1}
    for row in rows:
        assert row["name"] == f"natural_against_{row['other_mode']}" and row["mode"] != row["other_mode"]
        first, second = row["prompt"].split("Conversation 1:")[1].split("Conversation 2:")
        shown = first if row["sample"] == 0 else second
        turns = store.rows("SELECT text FROM turns WHERE episode_id = ? ORDER BY turn", [row["episode_id"]])
        assert all(turn["text"] in shown for turn in turns[: choosing.TURNS])
    assert store.check() == []


def test_a_judge_that_looks_at_the_talks_is_counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    run = modes_run(store)
    rows = store.rows("SELECT episode_index, mode, turns FROM v_episodes")
    size = {(row["episode_index"], row["mode"]): row["turns"] for row in rows}
    monkeypatch.setattr(evaluate, "open_judge", lambda *_: nullcontext(preferring("length")))
    scored_by(store, run, choosing.Naturalness("m"))
    for row in judges.rates(store, run):
        clear = [i for i in range(2) if size[i, row.first] != size[i, row.second]]
        wins = sum(size[i, row.first] > size[i, row.second] for i in clear)
        assert row.decided == len(clear)
        assert row.first_chosen is None if not clear else row.first_chosen == wins / len(clear)
