"""Families, evaluators and backends of other packages, by entry point; and `localsim.run`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import localsim
from localsim import plugins
from localsim.__main__ import run as command
from localsim.conversation.episode import Sampling
from localsim.errors import InvalidInput
from localsim.families import FAMILIES

PLUGIN = """
from localsim.backends.scripted import ScriptedBackend
from localsim.backends.threaded import ThreadedBackend
from localsim.families import PLAYERS
from localsim.conversation.episode import Score
from localsim.conversation.measures import Measure
from localsim.evaluators.base import Evaluator
from localsim.families.mutual_friends import MutualFriends

LOADED.append(1)

class Politeness:
    name, version = "politeness", "3"
    def score(self, transcript, scenario, answer):
        turns = [turn.index for turn in transcript.turns if "please" in turn.action.text.lower()]
        return [Score("please", float(len(turns)), turns=tuple(turns)), Score("keys", float(len(answer.answer)))]

class Counted(Politeness):
    name = "counted"
    measures = (Measure("please", "please", "times that please is said", score="please", compared=True),)

class Raises(Evaluator):
    name = "raises"
    def evaluate(self, batch):
        raise ValueError("no batch")
        yield

class Breaks(Politeness):
    name = "breaks"
    def score(self, transcript, scenario, answer):
        raise ValueError("no idea")

class Wordy(Politeness):
    name = "wordy"
    def score(self, transcript, scenario, answer):
        return [Score("please", "often")]

class Yields(Politeness):
    name = "yields"
    def score(self, transcript, scenario, answer):
        import json
        yield json.loads("")

class Strange(Politeness):
    name = "strange"
    def score(self, transcript, scenario, answer):
        return [Score("please", 1, agent="Nobody")]

class Unmade(Politeness):
    def __init__(self):
        raise OSError("no licence file")

class Dated(Politeness):
    version = "1.2"

class Acquaintances(MutualFriends):
    name = "acquaintances"

class Torn(ScriptedBackend):
    def submit(self, request):
        raise ConnectionError("the line is dead")

class Misspelt(ThreadedBackend):
    name, identity = "misspelt", {"kind": "misspelt"}
    def aks(self, request): ...

def backend(name, parallel):
    if name.endswith(":misspelt"):
        return Misspelt(parallel)
    kind = Torn if parallel > 3 else ScriptedBackend
    return kind(name, player=PLAYERS[name.partition(":")[2]])
"""
ENTRY_POINTS = """
[localsim.evaluators]
politeness = localsim_extra:Politeness
breaks = localsim_extra:Breaks
counted = localsim_extra:Counted
raises = localsim_extra:Raises
wordy = localsim_extra:Wordy
strange = localsim_extra:Strange
yields = localsim_extra:Yields
unmade = localsim_extra:Unmade
dated = localsim_extra:Dated
missing = localsim_extra:Nothing
[localsim.families]
acquaintances = localsim_extra:Acquaintances
[localsim.backends]
extra = localsim_extra:backend
"""


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """An installed package with plugins; the list says whether it has been imported."""
    times: list[int] = []
    (tmp_path / "site" / "localsim_extra-1.dist-info").mkdir(parents=True)
    info = tmp_path / "site" / "localsim_extra-1.dist-info"
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: localsim-extra\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "site" / "localsim_extra.py").write_text("from plugin_times import LOADED\n" + PLUGIN)
    (tmp_path / "site" / "plugin_times.py").write_text("LOADED = []\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    import plugin_times  # type: ignore[import-not-found]

    times = plugin_times.LOADED
    yield times
    for name in ("localsim_extra", "plugin_times"):
        sys.modules.pop(name, None)
    FAMILIES._loaded.clear()
    plugins._loading.clear()


def test_a_plugin_is_imported_when_it_is_named_and_not_before(loaded: list[int]) -> None:
    assert "acquaintances" in list(FAMILIES)
    assert localsim.run("mutual_friends_01", model="scripted").completed == 1
    assert loaded == []
    done = localsim.run("mutual_friends_01", model="extra:friends")
    assert loaded and done.completed == 1
    models = json.loads(
        done.archive.sql("SELECT models_json FROM runs ORDER BY started_utc DESC LIMIT 1")[0]["models_json"]
    )
    assert list(models) == ["extra:friends"]


@pytest.mark.usefixtures("loaded")
def test_an_evaluator_scores_a_stored_run_once_for_each_version() -> None:
    done = localsim.run("mutual_friends_01", model="scripted", episodes=2)
    for _ in range(2):
        assert command(["score", done.run_id, "--evaluator", "politeness"]) == 0
    rows = done.sql("SELECT version, name, value FROM scores WHERE evaluator = 'politeness' ORDER BY name")
    assert [(row["version"], row["name"]) for row in rows] == [("3", "keys")] * 2 + [("3", "please")] * 2
    assert {row["value"] for row in rows if row["name"] == "keys"} == {1.0}
    assert command(["score", done.run_id, "--evaluator", "wordy"]) == 0
    assert [row["value"] for row in done.sql("SELECT value FROM scores WHERE evaluator = 'wordy'")] == [None, None]
    assert command(["score", done.run_id, "--evaluator", "breaks"]) == 0
    broken = done.sql("SELECT name, value, reason FROM scores WHERE evaluator = 'breaks'")
    assert [(row["name"], row["value"]) for row in broken] == [("evaluator_error", None)] * 2
    assert all(re.fullmatch(r"ValueError: no idea \(.*localsim_extra\.py:\d+\)", row["reason"]) for row in broken)


@pytest.mark.usefixtures("loaded")
def test_a_family_generates_validates_and_scores(tmp_path: Path) -> None:
    out = tmp_path / "made"
    arguments = ["scenarios", "generate", "--family", "acquaintances", "-n", "1", "-o", str(out)]
    assert command(arguments) == 0
    (file,) = out.glob("*.yaml")
    assert command(["scenarios", "validate", str(file)]) == 0
    done = localsim.run(str(file), model="scripted:friends")
    assert done.sql("SELECT count(*) AS n FROM scores WHERE evaluator = 'outcome.acquaintances'")[0]["n"] > 0


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nobody", "no evaluator 'nobody'"),
        ("missing", "cannot be loaded: AttributeError"),
        ("unmade", "OSError: no licence file"),
        ("dated", "has the version '1.2'"),
    ],
)
def test_a_plugin_that_is_not_there_or_broken_is_one_message(
    name: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    localsim.run("mutual_friends_01", model="scripted")
    assert command(["score", "@last", "--evaluator", name]) == 3
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("loaded")
def test_an_exception_inside_a_backend_names_the_plugin_and_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "mutual_friends_01", "-m", "extra:friends", "-n", "4", "-j", "4"]
    assert command(arguments) == 3
    told = capsys.readouterr().err
    assert re.search(
        r"localsim_extra\.py:\d+: backends plugin 'extra' \(localsim_extra:backend\) failed in submit", told
    )
    assert "ConnectionError: the line is dead" in told and "report it" not in told
    assert command([*arguments, "--json"]) == 3
    assert json.loads(capsys.readouterr().err.strip().splitlines()[-1])["where"].count("localsim_extra.py:") == 1
    assert command([*arguments[:3], "extra:misspelt"]) == 3
    told = capsys.readouterr().err
    assert "localsim_extra.py" in told and "'extra' has no method ask" in told and "did you mean ask?" in told


def test_an_exception_of_localsim_itself_blames_no_plugin(
    loaded: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert FAMILIES["acquaintances"] and loaded
    monkeypatch.setattr("localsim.scenarios.writing.dump_scenario", lambda _document: 1 / 0)
    assert command(["scenarios", "generate", "--family", "mutual_friends", "-o", "never"]) == 1
    assert "unexpected: ZeroDivisionError" in capsys.readouterr().err


def test_run_is_the_command_in_python(tmp_path: Path) -> None:
    turns: list[str] = []
    done = localsim.run(
        "mutual_friends_01",
        "craigslist_01",
        modes="all",
        model="scripted",
        episodes=2,
        seed=5,
        db=str(tmp_path / "api.duckdb"),
        sampling=Sampling(temperature=0.1),
        parallel=2,
        on_turn=lambda spec, turn: turns.append(f"{spec.mode} {turn.speaker}"),
    )
    assert (done.completed, done.failed) == (12, 0)
    assert {row["mode"] for row in done.episodes()} == {"script", "agents", "mindreaders"}
    assert len(turns) == done.sql("SELECT count(*) AS n FROM turns")[0]["n"]
    assert done.sql("SELECT seed, parallel FROM runs") == [{"seed": 5, "parallel": 2}]
    assert done.leaks() == []  # scripted talks are not looked at unless asked


@pytest.mark.parametrize(
    "wrong",
    [
        {"modes": "telepathy"},
        {"modes": ()},
        {"colour": "red"},
        {"roles": {"Nobody": "scripted"}},
        {"repro": "exakt"},
        {"overflow": "q"},
        {"gpu": "bogus"},
        {"episodes": 0},
        {"seed": -1},
        {"parallel": "x"},
    ],
)
def test_run_refuses_what_the_command_would(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        localsim.run("mutual_friends_01", model="scripted", **wrong)  # type: ignore[arg-type]


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("breaks", "no idea"),
        ("raises", "no batch"),
        ("wordy", "not a Score"),
        ("yields", "JSONDecodeError: Expecting value"),
        ("strange", "score please is for 'Nobody', who is not in mutual_friends_01"),
    ],
)
def test_an_evaluator_that_fails_is_counted_apart_and_tries_again(
    name: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = localsim.run("mutual_friends_01", model="scripted", episodes=2)
    for _ in range(2):
        assert command(["score", done.run_id, "--evaluator", name]) == 0
        said = capsys.readouterr().err
        assert f"{name} (version 3) scored 0 episodes" in said or f"{name} (version 1) scored 0 episodes" in said
        assert f"{name} failed on 2 episodes" in said and reason in said
        assert re.search(r"localsim_extra\.py:\d+\)", said) or name == "raises"
    rows = done.sql(f"SELECT name, value, reason FROM scores WHERE evaluator = '{name}'")
    assert {row["name"] for row in rows} == {"evaluator_error"} and all(row["value"] is None for row in rows)


@pytest.mark.usefixtures("loaded")
def test_a_measure_of_an_installed_evaluator_is_reported_and_compared(capsys: pytest.CaptureFixture[str]) -> None:
    done = localsim.run("mutual_friends_01", model="scripted", modes="all", episodes=2)
    assert command(["score", done.run_id, "--evaluator", "counted"]) == 0
    assert re.search(r"mode +model +please\n", capsys.readouterr().out), "its measure for each mode"
    assert command(["compare", done.run_id, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert sum(row["measure"] == "please" for row in rows) == 3, "each pair of modes"
    assert command(["report", done.run_id, "--json"]) == 0
    assert all(row["please"] == 0 for row in json.loads(capsys.readouterr().out)["comparison"])
    declared = localsim.run("mutual_friends_01", model="scripted", modes="agents,mindreaders", primary="please")
    (row,) = [row for row in declared.compare() if row["primary"]]
    assert (row["measure"], row["difference"]) == ("please", 0), "it is scored at the end of the run"
    with pytest.raises(InvalidInput, match="compared by the measure 'pleese'") as error:
        localsim.run("mutual_friends_01", model="scripted", secondary="pleese")
    assert error.value.hint == "did you mean please?"


@pytest.mark.usefixtures("loaded")
def test_the_error_of_an_evaluator_goes_when_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    done = localsim.run("mutual_friends_01", model="scripted")
    assert command(["score", done.run_id, "--evaluator", "breaks"]) == 0
    import localsim_extra  # type: ignore[import-not-found]

    monkeypatch.setattr(localsim_extra.Breaks, "score", localsim_extra.Politeness.score)
    assert command(["score", done.run_id, "--evaluator", "breaks"]) == 0
    rows = done.sql("SELECT name FROM scores WHERE evaluator = 'breaks' ORDER BY name")
    assert [row["name"] for row in rows] == ["keys", "please"]
