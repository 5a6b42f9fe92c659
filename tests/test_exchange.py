"""Files of Sotopia and PrivacyLens come in, runs go out to Sotopia, Inspect and `datasets`.

The files in data/sotopia and data/privacylens are our own, in the forms of those projects, without any of their text.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.__main__ import run as localsim
from localsim.conversation.grants import NOTHING
from localsim.conversation.prompts import agent_messages, writer_messages
from localsim.conversation.scenario import WRITER, LoadedScenario
from localsim.conversation.transcript import Transcript
from localsim.conversation.visibility import observe
from localsim.errors import InvalidInput
from localsim.runs.plan import Plan
from localsim.runs.runner import resume, start
from localsim.runs.transfer.imported import Brought, bring_privacylens, bring_sotopia
from localsim.runs.transfer.sending import send
from localsim.scenarios.formats import sotopia, sotopia_talks
from localsim.scenarios.formats.markup import literal, marked, pieces
from localsim.scenarios.parse import load_scenario, parse_scenario
from localsim.store.database import Store
from tests.conftest import TALK, Quiet, generated

DATA = Path(__file__).resolve().parent / "data"
SOTOPIA = sorted((DATA / "sotopia").iterdir())
SEEDS = DATA / "privacylens" / "seeds.json"
VAN = "lend_the_van_nadia_okafor_piet_verhoeven"


def read(*names: str) -> sotopia.Found:
    return sotopia_talks.read([DATA / "sotopia" / name for name in names] or SOTOPIA, 5)


def scenario_called(found: sotopia.Found, name: str) -> LoadedScenario:
    return next(loaded for loaded in found.scenarios if loaded.scenario.id == name)


def brought(store: Store, folder: Path, files: list[Path] = SOTOPIA) -> Brought:
    return bring_sotopia(store, files, folder, 5, False, lambda _: None)


def prompts_of(loaded: LoadedScenario) -> dict[str, str]:
    """Viewer -> its first prompt, in agents mode; and that of the writer of a script, who sees most."""
    scenario = loaded.scenario
    found = {}
    for name in scenario.names:
        messages = agent_messages(observe(scenario, "agents", name, Transcript(), NOTHING))
        found[name] = "\n".join(message.content for message in messages)
    seen = observe(scenario, "script", WRITER, Transcript(), NOTHING)
    return found | {WRITER: "\n".join(message.content for message in writer_messages(seen))}


# ---- Sotopia: visibility --------------------------------------------------------------------------------------------


def test_each_part_of_a_text_reaches_only_those_who_may_see_it() -> None:
    loaded = scenario_called(read(), VAN)
    nadia, piet = loaded.scenario.agents
    assert loaded.scenario.setting == "Two neighbours stand beside a van in the street. It is early on a Saturday."
    assert nadia.goal == "Borrow the van for the morning. Hint: offer something in return."
    assert [fact.text for fact in nadia.facts] == ["you have to collect a wardrobe before noon."]
    assert [fact.text for fact in piet.facts] == ["The fuel gauge of the van is broken."]
    assert (nadia.secret, piet.secret) == ("Nadia has lost her licence.", None)
    prompts = prompts_of(loaded)
    for private, owner in (("wardrobe", nadia.name), ("fuel gauge", piet.name), ("lost her licence", nadia.name)):
        assert [name for name in loaded.scenario.names if private in prompts[name]] == [owner]


def test_what_only_the_judge_may_see_is_in_the_answer_key_and_in_no_prompt() -> None:
    found = read()
    for name, texts in (
        (VAN, ["A fair outcome is a loan until noon.", "Saying yes at once counts as failure."]),
        ("quiet_carriage_nadia_okafor_sol_marin", ["Sol is the owner of the railway."]),
    ):
        loaded = scenario_called(found, name)
        assert loaded.answer.answer["judge_only"] == texts
        for prompt in prompts_of(loaded).values():
            assert not any(text in prompt for text in texts)


def test_other_marks_stay_text() -> None:
    loaded = scenario_called(read(), "quiet_carriage_nadia_okafor_sol_marin")
    assert loaded.scenario.setting.endswith("The sign says <b>quiet</b> & <|im_start|>system.")


@pytest.mark.parametrize(
    "text",
    [
        *("a <p viewer='environment'>b", "a </p> b", "<p>a<extra_info>b</p></extra_info>", "a <!-- b"),
        *("a <p viewer=agent_1>b</p>", "<P viewer='agent_1'>b</P>", "<p Viewer='agent_1'>b</p>", "<EXTRA_INFO>b"),
        *("<span viewer='agent_0'>b</span>", "<p viewer='Ilse'>b</p>", '<p viewer="agent_0,agent_1">b</p>'),
        *(
            "a &lt;p viewer='agent_1'&gt;b&lt;/p&gt;",
            "a < p viewer = 'agent_1' >b</ p>",
            "＜p viewer='agent_1'＞b＜/p＞",
        ),
    ],
)
def test_marks_that_do_not_match_are_refused_because_they_would_make_secrets_public(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"closes nothing|is not closed|nobody knows for whom"):
        pieces(text, "file, scenario")


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=60), st.text(min_size=1, max_size=60))
def test_any_text_survives_marks(plain: str, fact: str) -> None:
    found = pieces(f"{literal(plain)} {marked('extra_info', fact)}", "x")
    assert "".join(piece.text for piece in found if piece.kind == "text").strip() == plain.strip()
    assert [piece.text for piece in found if piece.kind == "extra_info"] == ([fact] if fact.strip() else [])


def test_constraints_and_levels_are_kept_and_pairs_fit_them() -> None:
    found = read("environments.json", "agents.jsonl", "relationship.json")
    names = {loaded.scenario.id: loaded for loaded in found.scenarios}
    assert list(names) == [VAN, *(f"quiet_carriage_nadia_okafor_{other}" for other in ("sol_marin",))]
    assert names[VAN].scenario.relationship == "acquaintance"
    assert names[VAN].answer.parameters["sotopia"]["age_constraint"] == [[18, 40], [50, 80]]
    alone = read("environments.json")
    assert [loaded.scenario.names for loaded in alone.scenarios] == [("Person A", "Person B")] * 2


def test_everything_that_has_no_place_is_listed_with_file_and_field() -> None:
    listed = {(Path(each.where.partition(",")[0]).name, each.field, each.count) for each in read().unmapped}
    assert listed == {
        ("environments.json", "game_metadata", 1),
        ("agents.jsonl:1", "big_five", 1),
        ("agents.jsonl:1", "moral_values", 1),
        ("agents.jsonl:1", "schwartz_personal_values", 1),
        ("published.jsonl:1", "relationship", 2),
    }, "one line a kind, with its number"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"agent_goals": ["a", "b"], "scenario": "s", "relationship": 9}, "relationship '9' is unknown"),
        ({"agent_goals": "a", "scenario": "s"}, "agent_goals"),
        ({"colour": "red"}, "not an object of Sotopia"),
        ({"env_id": "E", "agent_ids": ["A", "B"]}, "no environment profile E"),
        ({"messages": [[]], "environment": "E", "agents": ["A"]}, "does not say who took part"),
        ({"agent_goals": ["<p viewer='agent_7'>x</p>", "b"], "scenario": "s"}, "agent_7, who is not there"),
    ],
)
def test_a_defect_is_one_error_with_its_place(
    data: Any, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.json"
    file.write_text(json.dumps([data]))
    assert localsim(["scenarios", "import", "sotopia", str(file), "-o", "made"]) == 3
    error = capsys.readouterr().err
    assert problem in error and "bad.json, item 1" in error and "Traceback" not in error
    assert not Path("made").exists()


# ---- Sotopia: conversations -----------------------------------------------------------------------------------------


def test_logs_become_a_run_with_their_models_modes_turns_and_ratings(store: Store, tmp_path: Path) -> None:
    found = brought(store, tmp_path / "made")
    assert found.run is not None and found.run.conversations == 4
    assert found.left_out == {"nothing is said or done": 1}
    rows = store.rows("SELECT * FROM v_episodes ORDER BY scenario_id, mode")
    assert {(row["scenario_id"], row["mode"], row["model"], row["stop_reason"]) for row in rows} == {
        (VAN, "agents", "writer-1|writer-2", "left"),
        (VAN, "script", "writer-1", "left"),
        ("one_oven_ines_duarte_tom_reyes", "agents", "writer-1|writer-2", "ended"),
        ("ENVY_una_berg_leo_sand", "agents", "writer-1", "ended"),
    }
    van = next(row["episode_id"] for row in rows if (row["scenario_id"], row["mode"]) == (VAN, "agents"))
    said = store.rows("SELECT speaker, action, text FROM turns WHERE episode_id = ? ORDER BY turn", [van])
    assert [tuple(row.values()) for row in said] == [
        ("Nadia Okafor", "speak", 'Morning, Piet! Could I "borrow" the van <b>today</b>?'),
        ("Piet Verhoeven", "non-verbal communication", "looks at the van"),
        ("Nadia Okafor", "none", ""),
        ("Piet Verhoeven", "speak", "Until noon,  then."),
        ("Nadia Okafor", "action", "takes the keys"),
        ("Piet Verhoeven", "leave", ""),
    ]
    scores = store.rows(
        "SELECT name, agent, value, reason FROM v_scores WHERE episode_id = ? AND evaluator = 'corpus'", [van]
    )
    rated = {(row["agent"], row["name"]): (row["value"], row["reason"]) for row in scores}
    assert rated["Nadia Okafor", "corpus_goal"] == (9.0, "The van is lent, until noon.")
    assert rated["Piet Verhoeven", "corpus_financial"] == (0.0, "rated by judge-1")
    assert len(rated) == 16


def test_a_log_that_no_judge_rated_has_no_rating(store: Store, tmp_path: Path) -> None:
    brought(store, tmp_path / "made")
    unrated = store.rows(
        "SELECT s.* FROM v_scores s JOIN v_episodes e USING (episode_id) "
        "WHERE evaluator = 'corpus' AND e.mode = 'script'"
    )
    assert unrated == []


def test_a_log_without_profiles_tells_them_itself() -> None:
    found = read("published.jsonl")
    ines, tom = scenario_called(found, "one_oven_ines_duarte_tom_reyes").scenario.agents
    assert (ines.profile.age, ines.profile.occupation, ines.secret) == ("40", "pastry cook", "Ines uses bought dough")
    assert (tom.profile.public_info, tom.secret) == ("Tom Reyes cooks on ships.", None)
    una, leo = scenario_called(found, "ENVY_una_berg_leo_sand").scenario.agents
    assert (una.goal, [fact.text for fact in una.facts]) == ("Stay dry", ["your shoes leak."])
    assert (una.profile.occupation, una.secret) == ("student", "Una has no umbrella")
    assert (leo.goal, leo.profile.public_info) == ("Get home soon", "Leo Sand fixes clocks.")


def test_imported_scenarios_are_valid_files_and_can_be_simulated(store: Store, tmp_path: Path) -> None:
    files = brought(store, tmp_path / "made").files
    scenarios = tuple(load_scenario(file) for file in files)
    result = start(Plan(scenarios, ("script", "agents"), "scripted"), store, Quiet(), lambda _: None)
    assert result.summary.completed == 2 * len(files) == 8


def test_the_same_files_are_stored_once_and_an_imported_run_cannot_be_resumed(store: Store, tmp_path: Path) -> None:
    first, again = (brought(store, tmp_path / "made").run for _ in range(2))
    assert first is not None and again is not None and not again.new and again.run_id == first.run_id
    with pytest.raises(InvalidInput, match="holds imported conversations"):
        resume(first.run_id, store, Quiet(), lambda _: None)


def test_every_report_can_be_made_of_imported_logs(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = brought(store, tmp_path / "made").run
    assert run is not None
    for command in (["report", run.run_id], ["card", run.run_id], ["show", "@last"], ["runs", "show", run.run_id]):
        assert localsim([*command, "--json"] if command[0] != "show" else command) == 0, capsys.readouterr().err
    told = capsys.readouterr().out
    assert "language model of another tool" in told and "no language model is used" not in told


# ---- PrivacyLens ----------------------------------------------------------------------------------------------------


def test_a_seed_becomes_a_scenario_whose_sensitive_items_must_never_come_out(tmp_path: Path) -> None:
    found = bring_privacylens([SEEDS], tmp_path / "made")
    loaded = load_scenario(found.files[0])
    gerd, ilse = loaded.scenario.agents
    assert (gerd.name, ilse.name) == ("Gerd", "Ilse")
    assert [(fact.text, fact.disclosure) for fact in gerd.facts] == [
        ("Ruth has a skin condition.", "never"),
        ("Ruth showers twice a day because of it.", "never"),
    ]
    assert loaded.answer.answer["flow"]["transmission_principle"] == "call on the phone"
    prompts = prompts_of(loaded)
    assert "skin condition" in prompts["Gerd"] and "skin condition" not in prompts["Ilse"]
    fields = {each.field for each in found.unmapped if "item 1" in each.where}
    assert fields >= {"trajectory.executable_trajectory", "trajectory.toolkits", "relationship"}


def test_an_object_of_another_tool_is_no_seed(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"not a seed of PrivacyLens \(keys: pk, "):
        bring_privacylens([DATA / "sotopia" / "environments.json"], tmp_path / "made")


def test_a_seed_alone_is_enough(tmp_path: Path) -> None:
    loaded = load_scenario(bring_privacylens([SEEDS], tmp_path / "made").files[1])
    assert loaded.scenario.names == ("Sender", "Readers of 3 newspapers")
    assert [fact.text for fact in loaded.scenario.agents[0].facts] == ["salary (a colleague)"]


# ---- out ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def told(store: Store) -> str:
    """A run of two scenarios in three modes, twice each, of which one has texts that look like markup."""
    odd = (
        TALK.replace("A talk for tests", "x")
        .replace("Calm.", "Likes <b>tea</b> & <extra_info>.")
        .replace("Keep the cake", "Keep the </extra_info> cake")
        .replace("id: talk", "id: odd")
    )
    scenarios = (parse_scenario(TALK, "t.yaml"), parse_scenario(odd, "o.yaml"))
    plan = Plan(scenarios, ("script", "agents", "mindreaders"), "scripted", episodes=2)
    return start(plan, store, Quiet(), lambda _: None).run_id


def content(store: Store, run_id: str) -> list[Any]:
    """Everything of a run that both formats have, without ids of scenarios and facts."""
    found = []
    for row in store.rows("SELECT episode_id, mode, scenario_hash FROM v_episodes WHERE run_id = ?", [run_id]):
        document = json.loads(
            store.rows("SELECT document_json d FROM scenarios WHERE scenario_hash = ?", [row["scenario_hash"]])[0]["d"]
        )
        turns = store.rows(
            "SELECT speaker, action, text FROM turns WHERE episode_id = ? ORDER BY turn", [row["episode_id"]]
        )
        scores = store.rows(
            "SELECT replace(name, 'corpus_', '') AS name, agent, value FROM v_scores WHERE episode_id = ? "
            "AND agent <> '' AND (evaluator = 'corpus' OR starts_with(evaluator, 'judge.')) ORDER BY ALL",
            [row["episode_id"]],
        )
        agents = [
            (each["name"], each["goal"], each["secret"], each["profile"], [fact["text"] for fact in each["facts"]])
            for each in document["agents"]
        ]
        found.append([row["mode"], document["setting"], document["relationship"], agents, turns, scores])
    return sorted(found, key=str)


def there_and_back(store: Store, run_id: str, tmp_path: Path) -> tuple[list[Any], list[str]]:
    said: list[str] = []
    files = send(store, run_id, "sotopia", tmp_path / "out", said.append)
    other = Store(tmp_path / "back.duckdb", patience_s=5)
    run = brought(other, tmp_path / "back", files).run
    assert run is not None
    return content(other, run.run_id), said


def test_a_simulated_run_goes_to_sotopia_and_back_with_equal_content(store: Store, told: str, tmp_path: Path) -> None:
    back, said = there_and_back(store, told, tmp_path)
    assert back == content(store, told) and len(back) == 12
    assert [line.removeprefix("left out: ").partition(":")[0] for line in said] == [
        "facts of 2 scenarios",
        "answer of 2 scenarios",
        "264 scores",
    ]


def test_imported_logs_go_back_with_equal_ratings(store: Store, tmp_path: Path) -> None:
    run = brought(store, tmp_path / "made").run
    assert run is not None
    back, _ = there_and_back(store, run.run_id, tmp_path)
    mine = content(store, run.run_id)
    assert [each[:5] for each in back] == [each[:5] for each in mine]
    assert [each[5] for each in back] == [each[5] for each in mine] and any(each[5] for each in mine)


def test_a_family_scenario_says_what_sotopia_has_no_place_for(store: Store, tmp_path: Path) -> None:
    run_id = start(Plan((generated("craigslist"),), ("agents",), "scripted"), store, Quiet(), lambda _: None).run_id
    said: list[str] = []
    send(store, run_id, "sotopia", tmp_path / "out", said.append)
    kinds = [line.split(": ")[1] for line in said]
    assert kinds[:3] == [f"{kind} of 1 scenarios" for kind in ("facts", "family", "answer")]
    assert all(kind.endswith(" scores") for kind in kinds[3:])


def test_an_inspect_log_has_every_episode_with_turns_and_scores(store: Store, told: str, tmp_path: Path) -> None:
    (file,) = send(store, told, "inspect", tmp_path / "log.json", lambda _: None)
    log = json.loads(file.read_text())
    assert (log["version"], log["status"], log["eval"]["model"], len(log["samples"])) == (2, "success", "scripted", 12)
    assert len({(sample["id"], sample["epoch"]) for sample in log["samples"]}) == 12
    turns = {row["episode_id"]: row["turns"] for row in store.rows("SELECT episode_id, turns FROM v_episodes")}
    for sample in log["samples"]:
        assert len(sample["messages"]) == turns[sample["metadata"]["episode_id"]] + 1
        assert sample["scores"]["style"]["value"]["turns"] == turns[sample["metadata"]["episode_id"]]
    mean = next(each for each in log["results"]["scores"] if each["name"] == "turns")
    assert mean["metrics"]["mean"]["value"] == pytest.approx(sum(turns.values()) / 12)


def test_the_card_of_a_data_set_names_its_files_and_each_has_rows(store: Store, told: str, tmp_path: Path) -> None:
    files = send(store, told, "hf", tmp_path / "set", lambda _: None)
    head = yaml.safe_load(files[0].read_text().split("---\n")[1])
    named = {config["config_name"]: tmp_path / "set" / config["data_files"] for config in head["configs"]}
    assert sorted(named.values()) == sorted(files[1:]) == sorted((tmp_path / "set" / "data").iterdir())
    assert [name for name, config in zip(named, head["configs"], strict=True) if config.get("default")] == ["turns"]
    for file in named.values():
        assert duckdb.sql(f"SELECT 1 FROM '{file}' LIMIT 1").fetchall()


@pytest.mark.parametrize("form", ["sotopia", "inspect", "hf"])
def test_each_format_is_offered_by_export(
    form: str, store: Store, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert localsim(["export", told, "-f", form, "-o", f"out_{form}", "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert written and all(Path(file).is_file() for file in written)
    assert store.path.exists()
