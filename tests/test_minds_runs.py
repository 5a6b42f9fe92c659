"""Runs of agents with minds: names, what is refused, what is stored, resumed and audited."""

from __future__ import annotations

import itertools
import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

from localsim import plugins
from localsim.backends.called import named
from localsim.backends.open import absolute, is_file, require_models
from localsim.conversation import modes, prompts
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action
from localsim.errors import InvalidInput
from localsim.evaluators.asking import open_judge
from localsim.families.interviews.items import Item
from localsim.models.minds import steps_of
from localsim.models.mixtures import parts_of
from localsim.models.registry import constructed, layout_of, members
from localsim.reports.audit import audit_run
from localsim.reports.evidence.interviews import interviews, pairs
from localsim.runs.minds import STEPS, mind_of
from localsim.runs.plan import Plan, plan_of
from localsim.runs.runner import resume, start
from localsim.runs.scheduler import Watcher
from localsim.runs.trust import reaching
from localsim.scenarios.parse import parse_scenario
from localsim.store.database import Store
from localsim.store.queries.reports import counts
from tests.conftest import TALK, Quiet, generated
from tests.minded import play, speaks
from tests.test_interviews import sheet_of

PAGE = (Path(__file__).parent.parent / "docs" / "minds.md").read_text()
Chat = list[dict[str, str]]


def thinker(chat: Chat) -> str:
    """A subject that plans to inquire, thinks the same thing each time, and speaks."""
    asked = chat[-1]["content"]
    if "Choose one of" in asked:
        return "perhaps" if "whether you" in asked else "Act: inquire"
    if "what should" in asked:
        return "Thought: The window is open and nobody has noticed it."
    if "Which of these" in asked:
        return "Plan: persona"
    return f"Line {sum(message['content'].count('Line') for message in chat)} of mine."


MODEL = named(thinker)
PLANNER = f"mind:plan(acts=negotiation),{MODEL}"


# ---- names ---------------------------------------------------------------------------------------------------------


def test_names_are_read_where_names_of_models_are() -> None:
    name = "mind:immerse(n=3,by=judge)+loop(reflect(every=2)+plan(acts=support),times=2),starter"
    immerse, loop = steps_of(name)
    assert (immerse.name, immerse.options, loop.options) == (
        "immerse",
        {"n": ("3",), "by": ("judge",)},
        {"times": ("2",)},
    )
    assert [[step.name for step in row] for row in loop.inner] == [["reflect", "plan"]]
    assert parts_of(name) == ("starter",) and not is_file(name) and absolute(name) == name
    assert members(name) == members("starter") and layout_of(name) == layout_of("starter")
    assert constructed("mind:immerse,starter-peeks") == constructed("starter-peeks") != ""
    assert absolute("mind:plan(acts=own.yaml),own.gguf") == (
        f"mind:plan(acts={Path('own.yaml').absolute()}),{Path('own.gguf').absolute()}"
    )
    assert reaching([name, "mind:plan(acts=/tmp/own.yaml),starter"]) == ["mind:plan(acts=/tmp/own.yaml),starter"]
    require_models(["mind:immerse,scripted:@lines.txt"])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mind:immerse", "does not name steps and a model"),
        ("mind:,starter", "does not name steps and a model"),
        ("mind:immerse,human", "human answers none"),
        ("mind:immerse,scripted", "scripted answers none"),
        ("mind:immerse,scripted:honest", "scripted:honest answers none"),
        ("mind:immerse,mind:immerse,starter", "answers none"),
        ("mind:immerse,mix:starter@0.5,starter-peeks", "answers none"),
        ("mind:imerse,starter", "did you mean immerse"),
        ("mind:plan,starter", "plan needs the option acts"),
        ("mind:plan(acts=haggling),starter", "no act 'haggling'"),
        ("mind:immerse(m=2),starter", "immerse has no option 'm'"),
        ("mind:immerse(n=0),starter", "n=0"),
        ("mind:predict(of=agree/agreed),starter", "of=agree/agreed"),
        ("mind:loop(times=2),starter", "loop is made of steps"),
        ("mind:plan(acts=negotiation,starter", "does not name steps and a model"),
        ("mind:expectimax,starter", "has no moves to look ahead"),
        ("mind:believe,starter", "has nothing that an agent is asked to infer"),
    ],
)
def test_other_names_are_refused_with_what_is_wrong(name: str, said: str, talk: LoadedScenario) -> None:
    with pytest.raises(InvalidInput, match=said.replace("(", r"\(")):
        Plan((talk,), ("agents",), name)


def test_an_author_has_no_inside(talk: LoadedScenario) -> None:
    for mode in ("script", "iterative"):
        with pytest.raises(InvalidInput, match="who writes everybody has no inside") as refused:
            Plan((talk,), ("agents", mode), PLANNER)
        assert "--role writer=MODEL" in str(refused.value.hint)
    specs = Plan((talk,), ("script", "agents"), PLANNER, roles={"writer": MODEL}).specs()
    assert [list(spec.minds) for spec in specs] == [[], ["Ana", "Bo"]]


def test_a_judge_has_none_either() -> None:
    with pytest.raises(InvalidInput, match="only agents have minds"), open_judge(PLANNER, print):
        pass


def test_a_mind_goes_with_its_episode(talk: LoadedScenario) -> None:
    first, other = (Plan((talk,), ("agents",), f"mind:{steps},{MODEL}").specs()[0] for steps in
                    ("reflect(every=2)", "reflect(every=3)"))  # fmt: skip
    assert first.hash != other.hash
    ultimatum = generated("ultimatum")
    spec = Plan((ultimatum,), ("agents",), f"mind:expectimax,{MODEL}").specs()[0]
    assert pickle.loads(pickle.dumps(spec.minds)) is not None, "a cluster sends it to its workers"
    plan = Plan((talk,), ("agents",), PLANNER)
    assert plan_of(plan.as_json(), lambda _: talk).specs()[0].hash == plan.specs()[0].hash


# ---- runs ----------------------------------------------------------------------------------------------------------


def simulated(store: Store, talk: LoadedScenario, model: str = PLANNER, watcher: Watcher | None = None) -> str:
    plan = Plan((talk,), ("agents", "mindreaders"), model, roles={"Bo": MODEL}, seed=3)
    return start(plan, store, watcher or Quiet(), lambda _: None, leaks=False).run_id


def test_what_is_asked_is_stored_and_turns_are_those_who_wrote_them(store: Store, talk: LoadedScenario) -> None:
    run = simulated(store, talk)
    rows = store.rows("SELECT step, speaker, count(*) AS n, count(malformed) AS bad FROM v_generations GROUP BY ALL")
    found = {(row["step"], row["speaker"]): (row["n"], row["bad"]) for row in rows}
    assert set(found) == {("plan", "Ana"), (None, "Ana"), (None, "Bo")}
    assert found["plan", "Ana"] == (found[None, "Ana"][0], 0)
    wrong = store.rows(
        "SELECT t.text FROM turns t JOIN generations g USING (episode_id, generation) "
        "WHERE t.speaker <> '' AND (g.speaker <> t.speaker OR NOT contains(g.text, t.text))"
    )
    assert wrong == []
    identity = json.loads(store.rows("SELECT models_json FROM runs")[0]["models_json"])[PLANNER]
    assert identity["kind"] == "python" and identity["mind"]["steps"][0][0] == "plan"
    assert sum(each.replies or 0 for each in counts(store, run)) == sum(
        n for (step, _), (n, _) in found.items() if not step
    )


def test_a_person_talks_with_an_agent_that_has_a_mind(store: Store, talk: LoadedScenario) -> None:
    asked: list[Any] = []

    def typed(request: Any) -> Action:
        asked.append(request)
        return Action("speak", f"Words of a person, {len(asked)}.")

    plan = Plan((talk,), ("agents",), PLANNER, roles={"Bo": "human"})
    start(plan, store, Quiet(), print, typed, leaks=False)
    steps = store.rows("SELECT DISTINCT speaker, step FROM v_generations ORDER BY ALL")
    assert [tuple(row.values()) for row in steps] == [("Ana", "plan"), ("Ana", None), ("Bo", None)]
    assert asked and not any(request.step for request in asked), "nobody asks a person what steps ask"


def vague(chat: Chat) -> str:
    """A subject whose answers to questions have no form."""
    return "perhaps" if "Choose one of" in chat[-1]["content"] else "A line of mine."


def test_answers_without_form_are_no_malformed_lines(store: Store, talk: LoadedScenario) -> None:
    run = simulated(store, talk, f"mind:plan(acts=negotiation),{named(vague)}")
    bad = store.rows("SELECT step, count(malformed) AS bad FROM v_generations GROUP BY ALL")
    assert {row["step"]: row["bad"] > 0 for row in bad} == {"plan": True, None: False}
    assert sum(each.malformed or 0 for each in counts(store, run)) == 0


def test_the_brier_score_of_a_constant_half_is_a_quarter(store: Store, tmp_path: Path) -> None:
    loaded, lines = generated("ultimatum", kind="plain"), tmp_path / "lines.txt"
    lines.write_text("refuse\n" + json.dumps({"action": "offer", "values": ["10"]}))
    proposer = loaded.scenario.names[0]
    roles = {proposer: absolute(f"mind:predict(of=accept/refuse),scripted:@{lines}")}
    start(Plan((loaded,), ("agents",), "scripted:refuser", roles=roles), store, Quiet(), print, leaks=False)
    query = (Path(__file__).parent.parent / "db" / "queries" / "18_predictions.sql").read_text()
    for share, brier in ((None, None), (0.5, 0.25), (0, 1), (1, 0)):
        if share is not None:
            options = f"[json_object('options', json_object('refuse', json_object('share', {share})))]"
            weigh = f"UPDATE generations SET details_json = json_object('step', 'predict', 'options', {options}) "
            weigh += "WHERE json_exists(details_json, '$.step')"
            with store.writing() as connection:
                connection.execute(weigh)
        columns, (row,) = store.sql(query)
        found = dict(zip(columns, row, strict=True))
        assert (found["foreseen"], found["brier"], found["predictions"]) == (1, brier, 1)


def right_in_role(chat: Chat) -> str:
    """A subject that knows the right option only after it has said who it is."""
    asked = chat[-1]["content"]
    if "(A)" not in asked:
        return "Ida: I am Ida, and I answer questions."
    right = "A" if "(A) yes" in asked else "B"
    wrong = "B" if right == "A" else "A"
    return f"[answer-2 {right if any('I am Ida' in message['content'] for message in chat) else wrong}]"


def test_the_opening_is_compared_with_its_absence_item_by_item(store: Store) -> None:
    items = tuple(Item(id=f"q{n}", ask=f"Question {n}?", options=("yes", "no"), gold=("yes",)) for n in range(10))
    people: list[Any] = []
    for model in (named(right_in_role), f"mind:immerse(n=3),{named(right_in_role)}"):
        run = start(Plan((sheet_of(items),), ("agents",), model), store, Quiet(), print, leaks=False).run_id
        (bank,) = interviews(store, run)
        people += bank.people
    assert [each.means["accuracy"] for each in people] == [0, 1]
    assert pairs(people[1], people[0].asked) == (10, 10, 0, round(2 / 1024, 4)), "McNemar"
    asked = store.rows("SELECT count(*) AS n FROM v_generations WHERE step = 'immerse'")
    assert asked[0]["n"] == 3, "the opening is asked once, and opens every question"


class Stops(Quiet):
    """Stops a run at the so many-eth question whether it should stop."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._left = after

    def stops(self) -> bool:
        """Whether to stop now."""
        self._left -= 1
        return self._left < 0


@pytest.mark.parametrize("after", [4, 7, 11, 16])
def test_a_run_that_stops_between_a_question_and_its_line_goes_on_as_it_would_have(
    store: Store, talk: LoadedScenario, tmp_path: Path, after: int
) -> None:
    model = f"mind:immerse+tpe+drafts,{MODEL}"
    whole = Store(tmp_path / "whole.duckdb")
    simulated(whole, talk, model)
    run = simulated(store, talk, model, Stops(after))
    unfinished = store.rows("SELECT count(*) AS n FROM episodes WHERE status = 'interrupted'")[0]["n"]
    assert unfinished, "it was stopped in the middle"
    resume(run, store, Quiet(), lambda _: None, leaks=False)
    columns = "e.mode, g.generation, g.turn, g.attempt, g.speaker, g.seed, g.text, g.details_json ->> 'step' AS step"
    told = [
        each.rows(f"SELECT {columns} FROM generations g JOIN episodes e USING (episode_id) ORDER BY ALL")
        for each in (store, whole)
    ]
    assert told[0] == told[1]
    turns = [each.rows("SELECT speaker, text, generation FROM turns ORDER BY ALL") for each in (store, whole)]
    assert turns[0] == turns[1]


def test_a_run_does_not_go_on_with_another_table_of_acts(store: Store, talk: LoadedScenario, tmp_path: Path) -> None:
    table = tmp_path / "own.yaml"
    table.write_text("version: 1\nid: own\nabout: For tests.\nacts: {inquire: ask, inform: tell}\n")
    run = simulated(store, talk, absolute(f"mind:plan(acts={table}),{MODEL}"), Stops(5))
    table.write_text(table.read_text().replace("ask", "sing"))
    mind_of.cache_clear()
    with pytest.raises(InvalidInput, match="not those that the run was made with"):
        resume(run, store, Quiet(), lambda _: None, leaks=False)


@pytest.mark.model
def test_a_question_costs_a_model_only_its_own_words(store: Store, tmp_path: Path) -> None:
    scenario = tmp_path / "short.yaml"
    scenario.write_text(TALK + "limits: {turns: 4, chars: 60}\n")
    model = "mind:predict(of=agree/refuse)+plan(acts=support),starter"
    plan = Plan((parse_scenario(scenario.read_text(), str(scenario)),), ("agents",), model, parallel=1)
    run = start(plan, store, Quiet(), lambda _: None, leaks=False).run_id
    rows = store.rows("SELECT turn, step, prompt_tokens AS p, evaluated_tokens AS fresh FROM v_generations "
                      "ORDER BY generation")  # fmt: skip
    assert [row["step"] for row in rows[:3]] == ["predict", "plan", None]
    for before, row in itertools.pairwise(rows):
        if before["turn"] == row["turn"]:
            assert row["fresh"] < 70 < 150 < row["p"], "the chat before it is in the cache"
    assert audit_run(store, run).violations == ()
    weighed = store.rows(
        "SELECT details_json FROM generations WHERE json_extract_string(details_json, '$.step') = 'predict'"
    )
    shares = [each["share"] for each in json.loads(weighed[0]["details_json"])["options"][0]["options"].values()]
    assert len(shares) == 2 and sum(shares) == pytest.approx(1, abs=1e-3)


# ---- the audit -----------------------------------------------------------------------------------------------------


def test_a_thought_of_another_agent_in_a_prompt_is_found(
    store: Store, talk: LoadedScenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = f"mind:tpe,{MODEL}"
    sound = audit_run(store, simulated(store, talk, model))
    assert sound.violations == () and sound.prompts_checked > 10
    note_of = prompts.note_of

    def broken(seen: Any, *rest: Any) -> str:
        told = note_of(seen, *rest)
        return f"{told} (Ana thinks that nobody has noticed it.)" if seen.viewer == "Bo" else told

    monkeypatch.setattr(modes, "note_of", broken)
    found = audit_run(store, simulated(store, talk, model)).violations
    assert {(each.viewer, each.what) for each in found} == {("Bo", "thought of Ana")}
    assert {each.mode for each in found} == {"agents", "mindreaders"}, "nobody reads minds"


# ---- the page ------------------------------------------------------------------------------------------------------


def test_the_step_of_the_page_works_as_a_plugin(talk: LoadedScenario, monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, Any] = {}
    exec(PAGE.partition("```python\n")[2].partition("```")[0], found)
    monkeypatch.setattr(plugins, "names", lambda kind: ["doubt"] if kind == "minds" else [])
    monkeypatch.setattr(plugins, "make", lambda *given: found["Doubt"](given[-1]))
    (spec,) = Plan((talk,), ("agents",), "mind:doubt(n=2),starter", roles={"Bo": "scripted"}).specs()
    answers = iter([" no", " It is a trap.\n", " He hides the cake.\n"])
    played = play(spec, lambda asked: next(answers) if asked.step else speaks(asked), turns=2)
    assert played.steps() == ["doubt"] * 3 + ["line"] * 2
    assert played.requests[3].note.endswith("You doubt: He hides the cake.)")
    options = set(re.findall(r"^\| `(\w+)", PAGE, re.MULTILINE))
    assert options == {*STEPS, "seq"}, "the page lists every step"


@pytest.mark.parametrize("name", re.findall(r"mind:[^\"`]+", PAGE))
def test_names_of_the_page_are_names(name: str) -> None:
    family = "mutual_friends" if "believe" in name else "ultimatum"
    mind_of(" ".join(name.split()).replace("doubt(n=1)", "immerse"), family)
