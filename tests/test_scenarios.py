"""Scenario files: what ships is sound, what is broken is reported whole and in place, what is generated is right."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
import yaml
from pydantic import BaseModel, TypeAdapter

from localsim.conversation.checks import GivenRule
from localsim.conversation.scenario import (
    LoadedScenario,
    Profile,
    RelationshipLevel,
    ScenarioFile,
)
from localsim.conversation.visibility import PROFILE_SEEN
from localsim.errors import InvalidInput, Problem, ScenarioInvalid
from localsim.families import FAMILIES
from localsim.families.vocabulary import FIRST_NAMES
from localsim.scenarios.parse import load_scenario, parse_scenario
from localsim.scenarios.vary import varied

FOLDER = Path(__file__).resolve().parent.parent / "scenarios"
SHIPPED = sorted(FOLDER.glob("*.yaml"))
HAND_WRITTEN = (
    "a_favour_asked", "a_job_reference", "a_secret_kept", "a_surprise_party", "planning_a_trip", "roommates",
)  # fmt: skip
README = (FOLDER / "README.md").read_text(encoding="utf-8")
BASE = """\
version: 1
id: talk
title: A talk
info: {what: Two people talk.}
setting: A room.
agents:
  - {name: Ann, goal: Talk.}
  - {name: Bob, goal: Listen.}
"""


def read(text: str) -> LoadedScenario:
    return parse_scenario(text, "f.yaml")


def problems(text: str) -> list[Problem]:
    with pytest.raises(ScenarioInvalid) as caught:
        read(text)
    assert caught.value.exit_code == 3
    assert [str(problem) for problem in caught.value.problems] == str(caught.value).splitlines()
    return caught.value.problems


def only(text: str) -> Problem:
    found = problems(text)
    assert len(found) == 1, found
    return found[0]


def places(text: str) -> list[tuple[int, int, str]]:
    return [(problem.line, problem.column, problem.path) for problem in problems(text)]


def data_of(path: Path) -> Any:
    """A file's values without our loader: plain YAML, with plain scalars but `version`, limits and rounds as text."""
    data = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    data["version"] = int(data["version"])
    data["limits"] = {key: yaml.safe_load(value) for key, value in data.get("limits", {}).items()}
    for part in (each for phase in data.get("phases", []) for each in (phase, *phase.get("events", []))):
        part |= {key: int(part[key]) for key in ("turns", "rounds", "round") if key in part}
    return data


# --- what ships ---


def test_the_hand_written_scenarios_are_there() -> None:
    assert set(HAND_WRITTEN) <= {path.stem for path in SHIPPED}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_file_is_valid_and_named_by_its_id(path: Path) -> None:
    loaded = load_scenario(path)
    assert loaded.scenario.id in (path.stem, f"{path.stem}-1")  # the second is the first of several variants
    assert loaded.path == str(path)
    assert path.read_text(encoding="utf-8").startswith(
        "# yaml-language-server: $schema=scenario-1.schema.json\nversion: 1\n"
    )


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_json_schema_accepts_shipped_file(path: Path) -> None:
    schema = ScenarioFile.model_json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(data_of(path), schema)


def test_shipped_schema_is_that_of_the_code() -> None:
    shipped = json.loads((FOLDER / "scenario-1.schema.json").read_text(encoding="utf-8"))
    assert {key: shipped[key] for key in shipped if key != "$schema"} == ScenarioFile.model_json_schema()


def test_json_schema_refuses_what_the_loader_refuses() -> None:
    validator = jsonschema.Draft202012Validator(ScenarioFile.model_json_schema())
    good = data_of(FOLDER / "roommates.yaml")
    assert validator.is_valid(good)
    for change in ({"titel": "x"}, {"version": 2}, {"relationship": "freind"}, {"agents": good["agents"][:1]}):
        assert not validator.is_valid(good | change), change


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_hand_written_scenario_is_short_and_has_something_to_hide(name: str) -> None:
    scenario = load_scenario(FOLDER / f"{name}.yaml").scenario
    assert scenario.family is None
    assert scenario.info.how and scenario.info.things_to_try
    assert not set(scenario.names) & set(FIRST_NAMES)
    texts = [scenario.title, scenario.setting, scenario.info.what, scenario.info.how, *scenario.info.things_to_try]
    for agent in scenario.agents:
        texts += [agent.goal, agent.secret or "", *(fact.text for fact in agent.facts)]
        texts += [value for value in agent.profile.model_dump().values() if value]
        assert 1 <= len(agent.facts) <= 4
        assert all(fact.terms for fact in agent.facts)
    assert max(map(len, texts)) <= 200
    rules = {fact.disclosure for agent in scenario.agents for fact in agent.facts}
    assert rules & {"late", "never"}


@pytest.mark.parametrize("name", HAND_WRITTEN)
def test_terms_stand_in_nothing_that_others_see_or_know(name: str) -> None:
    scenario = load_scenario(FOLDER / f"{name}.yaml").scenario
    for owner in scenario.agents:
        known = [scenario.setting]
        for agent in scenario.agents:
            known += [value for value in agent.profile.model_dump().values() if value]
            if agent is not owner:
                known += [agent.goal, agent.secret or "", *(fact.text for fact in agent.facts)]
        for fact in owner.facts:
            for term in fact.terms:
                pattern = rf"(?<!\w){re.escape(term.casefold())}(?!\w)"
                assert not re.search(pattern, "\n".join(known).casefold()), (fact.id, term)


def test_hand_written_scenarios_cover_every_relationship_and_a_group_of_three() -> None:
    levels: set[str] = set()
    sizes = set()
    for name in HAND_WRITTEN:
        scenario = load_scenario(FOLDER / f"{name}.yaml").scenario
        sizes.add(len(scenario.agents))
        names = scenario.names
        levels |= {scenario.level(one, other) for one in names for other in names if one < other}
    assert levels == set(get_args(RelationshipLevel))
    assert sizes == {2, 3}


# --- the guide in scenarios/README.md ---


def fields_of(model: type[BaseModel], prefix: str = "") -> dict[str, bool]:
    """Dotted names of all fields and whether each must be given."""
    found: dict[str, bool] = {}
    for name, info in model.model_fields.items():
        found[prefix + name] = info.is_required()
        inner = model_in(info.annotation)
        if inner:
            mark = "[]." if f"tuple[{inner.__module__}.{inner.__qualname__}" in str(info.annotation) else "."
            found |= fields_of(inner, f"{prefix}{name}{mark}")
    return found


def model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in get_args(annotation) if (found := model_in(arg))), None)


def test_readme_lists_every_field() -> None:
    section = README.split("## Fields", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `([a-z_.\[\]]+)`( \*)? \|.*\|.*\|.*\|$", section, re.M)
    assert len(rows) == len(dict(rows))
    table = {name: bool(star) for name, star in rows}
    assert table == fields_of(ScenarioFile)


def test_readme_tells_what_each_level_sees() -> None:
    section = README.split("## Who sees what", 1)[1].split("\n## ", 1)[0]
    for level, seen in PROFILE_SEEN.items():
        row = re.search(rf"^\| `{level}` \| (.*) \|$", section, re.M)
        assert row
        text = row[1].replace("these", "age, gender, pronouns, occupation, public_info")
        assert tuple(text.split(", ")) == (seen or ("nothing",))
    assert set(PROFILE_SEEN["family"]) == set(Profile.model_fields)


def test_readme_example_is_a_scenario() -> None:
    example, checks, success, vary = re.findall(r"```yaml\n(.*?)```", README, re.S)
    assert checks.startswith("checks:\n")
    assert len(example.splitlines()) == 10
    assert read(example).scenario.names == ("Ines", "Olaf")
    names = re.findall(r"name: (\w+)", checks)
    for rule in success.splitlines():
        given = TypeAdapter(GivenRule).validate_python(yaml.safe_load(rule)["success"])
        assert given.of and set(given.of) <= set(names)
    root = yaml.compose(vary)
    assert isinstance(root, yaml.MappingNode)
    left_out = [(("vary", "deal"), f"no text has the slot {{deal.{word}}}") for word in ("least", "most")]
    assert varied(root)[1][:2] == left_out and varied(root)[1][2][0] == ("vary", "facts"), "the rest is elsewhere"


def test_readme_tells_every_family_parameter() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (\S+) \| ", README, re.M)
    assert {(family, key): value for family, key, value in rows} == {
        (name, key): str(value) for name in FAMILIES.own for key, value in FAMILIES[name].defaults.items()
    }


# --- defects, each in its place ---


def test_all_problems_are_reported_at_once() -> None:
    text = """\
version: 2
id: talk
titel: A talk
info: {what: Two people talk.}
setting: A room.
relationship: freind
agents:
  - name: "[Ann]"
    gaol: Talk.
  - name: Bob
    goal: Listen.
    facts:
      - {id: "bad id", text: T, disclosure: soon}
limits: {turns: 0}
"""
    assert places(text) == [
        (1, 1, "title"),
        (1, 10, "version"),
        (3, 1, "titel"),
        (6, 15, "relationship"),
        (8, 5, "agents[0].goal"),
        (8, 11, "agents[0].name"),
        (9, 5, "agents[0].gaol"),
        (13, 14, "agents[1].facts[0].id"),
        (13, 45, "agents[1].facts[0].disclosure"),
        (14, 17, "limits.turns"),
    ]
    lines = [str(problem) for problem in problems(text)]
    assert lines[1].startswith("f.yaml:1:10: version: ")
    assert lines[2] == "f.yaml:3:1: titel: unknown key (did you mean title?)"
    assert "did you mean friend?" in lines[3]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (BASE + "limit: 3\n", (9, 1, "limit"), "unknown key (did you mean limits?)"),
        (BASE + "limits: {turn: 3}\n", (9, 10, "limits.turn"), "unknown key (did you mean turns?)"),
        (BASE + "literal[x: 3\n", (9, 1, "literal[x"), "unknown key"),
        (BASE + "qqqqqq: 3\n", (9, 1, "qqqqqq"), "unknown key"),
        (BASE + "1: 3\n", (9, 1, "1"), "unknown key"),
        (BASE.replace("goal: Talk.", "goal: Talk., profil: {}"), (7, 30, "agents[0].profil"), "you mean profile?"),
        (BASE + "relationship:\n  - {between: [Ann, Bob], levl: friend, level: friend}\n",
         (10, 27, "relationship[0].levl"), "(did you mean level?)"),
        (BASE.replace("setting: A room.\n", ""), (1, 1, "setting"), "this key is missing"),
        (BASE.replace("what: Two", "how: Two"), (4, 7, "info.what"), "this key is missing"),
    ],
)  # fmt: skip
def test_keys(text: str, place: tuple[int, int, str], message: str) -> None:
    found = {(problem.line, problem.column, problem.path): problem.message for problem in problems(text)}
    assert message in found[place]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (BASE + "title: Again\n", (9, 1, "title")),
        (BASE + "answer:\n  x: 1\n  x: 2\n", (11, 3, "answer.x")),
        (BASE + "answer: {y: [{x: 1, x: 2}]}\n", (9, 21, "answer.y[0].x")),
        (BASE.replace("goal: Talk.", "goal: Talk., name: Eve"), (7, 30, "agents[0].name")),
    ],
)
def test_a_key_given_twice(text: str, place: tuple[int, int, str]) -> None:
    found = only(text)
    assert (found.line, found.column, found.path) == place
    assert "given twice (first on line" in found.message


def test_duplicates_are_reported_beside_other_problems() -> None:
    assert places(BASE + "title: Again\nx: 1\n") == [(9, 1, "title"), (10, 1, "x")]


@pytest.mark.parametrize(
    ("line", "place", "message"),
    [
        ("relationship: freind", (9, 15, "relationship"), "did you mean friend?"),
        ("relationship: {Ann: friend}", (9, 15, "relationship"), "is not one of stranger"),
        ("relationship: [{between: [Ann, Bob], level: freind}]", (9, 45, "relationship[0].level"), "mean friend?"),
        ("relationship: [{between: [Ann], level: friend}]", (9, 26, "relationship[0].between[1]"), "missing"),
        ("actions: [speak, speek]", (9, 18, "actions[1]"), "did you mean speak?"),
        ("actions: [none]", (9, 10, "actions"), "besides none"),
        ("actions: []", (9, 10, "actions"), "without moves"),
        ("actions: []\nmoves: [{name: bid, tell: To bid, by: [Ann]}]", (9, 10, "actions"), "is allowed to Bob"),
        ("actions: [speak, leave, speak]", (9, 25, "actions[2]"), "more than once: speak"),
        ("limits: {turns: 0}", (9, 17, "limits.turns"), "greater than or equal to 1"),
        ("limits: {turns: yes}", (9, 17, "limits.turns"), "integer"),
        ("limits: {turns: true}", (9, 17, "limits.turns"), "integer"),
        ("limits: 3", (9, 9, "limits"), "must be a mapping"),
        ("answer: hello", (9, 9, "answer"), "must be a mapping"),
        ("family: [a]", (9, 9, "family"), "must be text"),
    ],
)  # fmt: skip
def test_wrong_values(line: str, place: tuple[int, int, str], message: str) -> None:
    found = only(f"{BASE}{line}\n")
    assert (found.line, found.column, found.path) == place
    assert message in found.message
    assert "tuple" not in found.message.lower() and "dictionary" not in found.message


@pytest.mark.parametrize("version", ["2", "'1'", "one", "1.5"])
def test_wrong_version(version: str) -> None:
    found = only(BASE.replace("version: 1", f"version: {version}"))
    assert (found.line, found.column, found.path) == (1, 10, "version")


def test_number_of_agents() -> None:
    one = BASE.replace("  - {name: Bob, goal: Listen.}\n", "")
    assert str(only(one)) == "f.yaml:7:3: agents: must have at least 2 items, not 1"
    many = BASE + "".join(f"  - {{name: Extra {number}, goal: Talk.}}\n" for number in range(999))
    assert only(many).path == "agents"
    assert len(read(many.replace("  - {name: Extra 998, goal: Talk.}\n", "")).scenario.agents) == 1000


@pytest.mark.parametrize(
    "name",
    ["Ann [x]", "Ann: x", "writer", "Writer", "WRITER ", "1Ann", "", "  ", 'A"nn', "(Ann)", "A\nB", "A\u2028B", "{Ann}",
     "_Ann", "A" * 41, "Ann, Bob"],
)  # fmt: skip
def test_bad_names(name: str) -> None:
    found = only(BASE.replace("name: Ann", f"name: {json.dumps(name)}"))
    assert (found.line, found.column, found.path) == (7, 12, "agents[0].name")


@pytest.mark.parametrize("name", ["Zoë", "Jean-Luc", "O’Neil", "O'Neil", "J. R. Smith", "李雷", "Ann 2", "Writers"])
def test_good_names(name: str) -> None:
    assert read(BASE.replace("name: Ann", f'name: "{name}"')).scenario.names[0] == name


def test_repeated_names_and_fact_ids_are_found_together_where_the_second_stands() -> None:
    text = """\
version: 1
id: talk
title: A talk
info: {what: W}
setting: A room.
agents:
  - {name: Ann, goal: G, facts: [{id: one, text: T}, {id: two, text: T}]}
  - {name: Bob, goal: G, facts: [{id: one, text: T}]}
  - {name: ann, goal: G, facts: [{id: two, text: T}]}
"""
    assert places(text) == [
        (8, 39, "agents[1].facts[0].id"),
        (9, 12, "agents[2].name"),
        (9, 39, "agents[2].facts[0].id"),
    ]


THREE = BASE + "  - {name: Cid, goal: Talk.}\nrelationship:\n"
PAIRS = ["[Ann, Bob]", "[Cid, Ann]", "[Bob, Cid]"]


def pairs(*between: str) -> str:
    return THREE + "".join(f"  - {{between: {pair}, level: friend}}\n" for pair in between)


def test_relationship_of_three() -> None:
    scenario = read(pairs(*PAIRS).replace("[Cid, Ann], level: friend", "[Cid, Ann], level: family")).scenario
    assert scenario.level("Ann", "Cid") == scenario.level("Cid", "Ann") == "family"
    assert scenario.level("Bob", "Cid") == "friend"


@pytest.mark.parametrize(
    "between",
    [PAIRS[:2], [*PAIRS, "[Bob, Ann]"], [*PAIRS[:2], "[Bob, Dan]"], [*PAIRS, "[Ann, Ann]"], [*PAIRS[:2], "[Ann, Bob]"]],
)
def test_relationship_covers_each_pair_once(between: list[str]) -> None:
    found = only(pairs(*between))
    assert (found.line, found.column, found.path) == (11, 3, "relationship")
    assert "one entry for each pair of Ann, Bob, Cid" in found.message


# --- files that are no YAML, or odd YAML ---


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("version: 1\ntitle: a: b\n", 2, 9),
        ("version: 1\nid: [a\nb: c\n", 3, 2),
        ("version: 1\n\ttitle: x\n", 2, 1),
        ('title: "open\n', 2, 1),
        ("id: a\nx: \x00\n", 2, 4),
        (BASE + "---\n" + BASE, 9, 1),
        (BASE + "answer: &a {x: *a}\n", 9, 16),
        (BASE + "answer: {x: &a [1], y: *a}\n", 9, 24),
        (BASE + "answer: " + "[" * 5000 + "]" * 5000, 1, 1),
    ],
)
def test_not_yaml(text: str, line: int, column: int) -> None:
    found = only(text)
    assert (found.line, found.column) == (line, column)
    assert found.message.startswith("not valid YAML: ")


@pytest.mark.parametrize("text", ["", "\n\n", "# only a remark\n", "- a\n- b\n", "hello\n", "42", "null", "---\n"])
def test_not_a_mapping(text: str) -> None:
    found = only(text)
    assert (found.line, found.column) == (1, 1)
    assert "mapping" in found.message


@pytest.mark.parametrize(
    ("line", "column", "message"),
    [
        ("answer: !!python/name:os.system x", 9, "tag !!python/name:os.system"),
        ("answer: {x: !secret y}", 13, "tag !secret"),
        ("answer: {x: !!int abc}", 13, "'abc' is not a value of tag !!int"),
        ("answer: {x: !!bool abc}", 13, "'abc' is not a value of tag !!bool"),
        ("answer: {x: !!timestamp 2024-01-01}", 13, "tag !!timestamp"),
        ("answer: {x: !!map y}", 13, "tag !!map"),
        ("answer: {? [a, b] : c}", 12, "a key must be plain text"),
        ("answer: {~: c}", 10, "a key must be plain text"),
        ('answer: {x: "\\ud800"}', 13, "surrogate"),
        ("answer: {x: " + "[" * 60 + "]" * 60 + "}", 52, "nested more than 40 deep"),
    ],
)
def test_values_that_are_not_read(line: str, column: int, message: str) -> None:
    found = only(f"{BASE}{line}\n")
    assert (found.line, found.column) == (9, column)
    assert message in found.message


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no such file") as missing:
        load_scenario(tmp_path / "none.yaml")
    assert missing.value.hint and missing.value.where == str(tmp_path / "none.yaml")
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("title: Zoë\n".encode("latin-1"))
    with pytest.raises(InvalidInput, match="not UTF-8"):
        load_scenario(latin)
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_scenario(tmp_path)
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * 1_000_001)
    with pytest.raises(InvalidInput, match="larger than"):
        load_scenario(large)
