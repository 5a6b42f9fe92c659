"""What the author of a game reads when the game has a mistake: the game, the name, the file and the line."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import localsim
from localsim import plugins
from localsim.__main__ import run as command
from localsim.conversation.episode import Score
from localsim.conversation.measures import GENERAL
from localsim.conversation.transcript import Transcript
from localsim.errors import InvalidInput
from localsim.families import ANYWHERE, EVERYDAY, FAMILIES
from localsim.families.base import EXPLICIT_END, SUCCESS, Family, problems_of
from localsim.reports.measures import measures_of
from localsim.reports.validity.remarks import of_models
from localsim.scenarios.casting.playing import check_scores
from localsim.scenarios.parse import load_scenario

GAME = """
from localsim.families.games import base as g


def taker(seen, rng):
    return g.move("take", 1)


class Pots(g.Game):
    name, version = "pots", "1"
    about = "Two people take a part of a pot, one after the other."
    measures = (g.SUCCESS, g.PAYOFF)
    figure = ("payoff",)
    controls = (g.exactly("taker", "payoff", 0.5, "each takes one of two"),)
    players = {"taker": taker}
    sensible = "taker"
    defaults = {"size": 2}

    def generate(self, scenario_id, seed, parameters):
        chosen = g.merged(self.defaults, parameters, self.name)
        names = g.names_of(self, seed, 2)
        return self.scenario(
            scenario_id,
            seed,
            chosen,
            title="A pot",
            setting=self.about,
            agents=[g.Agent(name=name, goal="Take what you can.") for name in names],
            moves=[g.Move(name="take", values=(g.number(0, 2),), text="no", tell="To take a part")],
            turns=2,
            public=chosen,
        )

    def step(self, scenario, talk, seed):
        taken = talk.of("take")
        return g.DONE if len(taken) == 2 else g.act(scenario.names[len(taken)], "take")

    def score(self, transcript, scenario, answer):
        size = scenario.game["public"]["size"]
        return g.by_agent("payoff", {turn.speaker: turn.number / size for turn in transcript.of("take")})
"""
REPLAYED = """
from localsim.families.games import base as g
from localsim.families.games.replayed import Replayed, Scene


def taker(seen, rng):
    return g.move("take", 1)


class Pots(Replayed):
    name, version = "pots", "1"
    about = "Two people take a part of a pot of a size that nature draws."
    measures = (g.SUCCESS, g.PAYOFF)
    figure = ("payoff",)
    controls = (g.exactly("taker", "payoff", 1, "each takes one"),)
    players = {"taker": taker}
    sensible = "taker"

    def scene(self, chosen, names, seed):
        take = g.can("take", "To take a part", g.number(0, 2))
        return Scene(title="A pot", setting=self.about, goal="Take what you can.", moves=[take], turns=2)

    def play(self, table):
        size = table.chance("size").randint(3, 1000000)
        told = yield from table.tell(f"It has {size}.", size)
        for name in table.names:
            turn = yield from table.act(name, "take")
            table.score("payoff", turn.number / told.number, agent=name)
"""
"""The same as one generator."""
Plant = Callable[..., Path]


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plant]:
    """Installs the game, with one text in place of another, and returns the path of its file."""

    def planted(old: str = "", new: str = "", game: str = GAME) -> Path:
        site = tmp_path / "site"
        info = site / "pot_game-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pot-game\nVersion: 1\n")
        (info / "entry_points.txt").write_text("[localsim.families]\npots = pot_game:Pots\n")
        assert old in game
        (site / "pot_game.py").write_text(game.replace(old, new, 1) if old else game)
        monkeypatch.syspath_prepend(site)
        return site / "pot_game.py"

    yield planted
    sys.modules.pop("pot_game", None)
    FAMILIES._loaded.clear()
    plugins._loading.clear()


def line_of(file: Path, text: str) -> str:
    """The place of a text in a file, as errors have it."""
    lines = file.read_text().splitlines()
    return f"{file}:{next(number for number, line in enumerate(lines, start=1) if text in line)}"


def made(out: Path, *more: str) -> int:
    return command(["scenarios", "generate", "--family", "pots", "--seed", "1", "-o", str(out), *more])


@pytest.mark.parametrize("name", [*FAMILIES.all, EVERYDAY.name])
def test_every_shipped_family_declares_only_what_it_has(name: str) -> None:
    family: Family = EVERYDAY if name == EVERYDAY.name else FAMILIES[name]
    assert problems_of(family, ANYWHERE) == []


def test_a_figure_and_a_control_can_name_the_measures_that_every_family_has() -> None:
    own = {measure.key for name in FAMILIES.own for measure in FAMILIES[name].measures}
    every = [measure.key for measure in measures_of()]
    assert list(GENERAL) == [key for key in every if key in (SUCCESS.key, EXPLICIT_END.key) or key not in own], (
        "conversation/measures.py: GENERAL holds the keys of measures that every family has, in the order of columns"
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('sensible = "taker"', 'sensible = "takr"', "sensible: there is no player 'takr' (did you mean taker?)"),
        ('figure = ("payoff",)', 'figure = ("payof",)', "figure: there is no measure 'payof' (did you mean payoff?)"),
        ('figure = ("payoff",)', 'figure = ("payoff")', "it is written ('payoff',), with a comma"),
        ('"taker", "payoff", 0.5', '"taker", "payof", 0.5', "on 'payof': there is no measure 'payof' (did you mean"),
        ('"taker", "payoff", 0.5', '"takr", "payoff", 0.5', "there is no player 'takr' (did you mean taker?)"),
        ('two"),)', 'two", "long"),)', "there is no task 'long'; tasks are facts kept"),
        ("players = {", 'references = (g.Reference("best", "", ""),)\n    players = {', "references: there is no"),
        ('{"taker": taker}', '{"taker": "taker"}', "the player 'taker' is no function"),
        ('name, version = "pots"', 'name, version = "pot"', "name: it is 'pot', and not 'pots': give it and the entry"),
        ("defaults = {", "refrences = (g.RANDOM,)\n    defaults = {", "no such part (did you mean references?)"),
        ("def score(", "def scores(", "score: the class has no such method"),
        ("def score(", "def scores(", "scores: a family has no such part (did you mean score?)"),
        ("def step(", "def take(", "step: the class has no such method"),
        ("def generate(", "def make(", "generate: the class has no such method"),
    ],
)  # fmt: skip
def test_a_name_that_a_game_misspells_is_told_when_it_is_loaded(
    old: str, new: str, said: str, plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = plant(old, new)
    assert made(tmp_path / "out") == 3
    told = capsys.readouterr().err
    assert re.match(rf"error: {re.escape(str(file))}:\d+: ", told)
    assert said in told and "'pots' cannot be used" in told and "repair pot_game:Pots of the package pot-game" in told
    assert not (tmp_path / "out").exists()


def test_the_line_of_a_misspelt_name_is_the_one_that_sets_it(
    plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = plant('sensible = "taker"', 'sensible = "takr"')
    assert made(tmp_path / "out") == 3
    assert f"error: {line_of(file, 'sensible =')}: " in capsys.readouterr().err


def test_a_class_that_the_file_lacks_is_told_with_the_file(
    plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = plant("class Pots(", "class Pot(")
    assert made(tmp_path / "out") == 3
    told = capsys.readouterr().err
    assert f"error: {file}: families plugin 'pots' (pot_game:Pots) cannot be loaded" in told
    assert "has no attribute 'Pots' (did you mean Pot?)" in told


def test_an_attribute_that_an_object_of_localsim_lacks_is_told_with_those_it_has(
    plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant('g.move("take", 1)', 'g.move("take", len(seen.name))')
    assert made(tmp_path / "out") == 0
    assert command(["run", str(tmp_path / "out"), "-m", "scripted:taker"]) == 3
    told = capsys.readouterr().err
    assert "failed in taker: AttributeError: 'Observation' object has no attribute 'name'; it has " in told
    assert "viewer" in told and "__" not in told.partition("it has")[2]


def test_all_misspelt_names_are_told_at_once(plant: Plant) -> None:
    plant('sensible = "taker"', 'sensible = "takr"\n    study_tasks = ("none",)')
    with pytest.raises(InvalidInput, match=r"(?s)sensible: .*study_tasks: "):
        FAMILIES["pots"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"take")\n\n', '"tkae")\n\n', "pots.step: the scenario pots_01 has no action or move 'tkae' (did you mean"),
        ("scenario.names[len(taken)]", '"Anna"', "pots.step: the scenario pots_01 has no agent 'Anna'"),
        ("return g.DONE if", "return None if not taken else g.DONE if", "pots.step: it returned None"),
        ("return g.DONE if", 'return g.Tell("Go.") if not taken else g.DONE if', "pots.step: it tells without end"),
        ("scenario.names[len(taken)], ", "scenario.names[len(taken)], *()) if taken else g.act(", "pots.step"),
    ],
)  # fmt: skip
def test_a_wrong_step_is_found_before_a_file_is_written(
    old: str, new: str, said: str, plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = plant(old, new)
    assert made(tmp_path / "out") == 3
    assert f"error: {line_of(file, 'def step')}: {said}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "at", "said"),
    [
        ("", "", "", ""),
        ("def play(", "def plays(", "class Pots", "play: the class has no such method"),
        ("def scene(", "def scenes(", "class Pots", "scene: the class has no such method"),
        ('"take")\n', '"tkae")\n', "def play", "pots.play: the scenario pots_01 has no action or move 'tkae' (did you"),
        ("yield from table.act", "yield table.act", "def play", "pots.play: it returned <generator object Table.act"),
        ("yield from ", "", "told.number", "AttributeError: 'generator' object has no attribute 'number'"),
        ("told.number", "size", "def play", "pots.play: scores rest on what was drawn, and the seed is not known"),
        ("for name in", "while True:\n            yield from table.tell('Go.')\n        for name in", "def play",
         "pots.play: it tells without end"),
    ],
)  # fmt: skip
def test_a_wrong_generator_is_found_before_a_file_is_written(
    old: str, new: str, at: str, said: str, plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = plant(old, new, REPLAYED)
    assert made(tmp_path / "out") == (3 if said else 0)
    told = capsys.readouterr().err
    assert said in told and (f"error: {line_of(file, at)}: " in told or not said)
    assert (tmp_path / "out").exists() is not bool(said)


SCORES = 'return g.by_agent("payoff", {turn.speaker: turn.number / size for turn in transcript.of("take")})'


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ("pass", "pots.score: score returned None, which is no list of scores"),
        ('return [("payoff", 1)]', "pots.score: not a Score with a number or None: ('payoff', 1)"),
        ('return g.by_agent("payoff", {"Nobody": 1})', "score payoff is for 'Nobody', who is not in pots_01"),
        ('return [g.Score("payoff", float("nan"))]', "pots.score: score payoff is nan"),
        ('return [g.Score("payoff", 1), g.Score("payoff", 0)]', "pots.score: score payoff is given twice"),
        ('return [g.Score("payoff", 1, turns=(9,))]', "score payoff rests on turn 9, and there are 2 turns"),
        ('return [g.Score("payof", 1)]', "no measure has the score 'payof' (did you mean payoff?)"),
    ],
)
def test_a_score_that_nobody_could_use_is_found_before_a_file_is_written(
    new: str, said: str, plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = plant(SCORES, new)
    assert made(tmp_path / "out") == 3
    told = capsys.readouterr().err
    assert f"error: {line_of(file, 'def score')}: " in told and said in told
    assert not (tmp_path / "out").exists()


def test_a_score_that_fails_while_it_yields_is_told_with_the_line_that_failed(
    plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = plant(SCORES, "import json; yield json.loads('')")
    assert made(tmp_path / "out") == 3
    told = capsys.readouterr().err
    assert f"error: {line_of(file, 'json.loads')}: " in told and "failed in score: JSONDecodeError" in told


def test_a_share_above_1_is_refused(plant: Plant) -> None:
    plant("(g.SUCCESS, g.PAYOFF)", '(g.PAYOFF, g.Measure("half", "half", "", score="payoff", kind="share"))')
    family = FAMILIES["pots"]
    scenario, _ = family.generate("pots_01", 1, {}).split()
    with pytest.raises(InvalidInput, match=r"score 'payoff' is 2, and the measure 'half' is a share"):
        check_scores(family, [Score("payoff", 2.0)], scenario, Transcript())


@pytest.mark.parametrize(
    ("old", "new", "method", "said"),
    [
        (
            "g.names_of(self, seed, 2)",
            "g.names_of(self, made_.append(1) or len(made_), 2)",
            "generate",
            "two different",
        ),
        ("taken = talk.of", "made_.append(1)\n        taken = made_[3:] or talk.of", "step", "took another way"),
    ],
)
def test_a_game_that_depends_on_more_than_its_arguments_is_found(
    old: str, new: str, method: str, said: str, plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = plant(old, new)
    file.write_text(file.read_text() + "\n\nmade_ = []\n")
    assert made(tmp_path / "out") == 3
    told = capsys.readouterr().err
    assert f"error: {line_of(file, f'def {method}')}: pots.{method}" in told and said in told


@pytest.mark.parametrize("place", ["from localsim.families.games", "taken = talk.of"])
def test_a_plugin_that_ends_the_program_is_an_error(
    place: str, plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = plant(place, f"raise SystemExit(0); {place}")
    assert made(tmp_path / "out") == 3
    told = capsys.readouterr().err
    assert f"error: {line_of(file, 'raise SystemExit')}: families plugin 'pots'" in told


def test_a_measure_of_an_unknown_kind_is_told_with_its_line(
    plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = plant("(g.SUCCESS,", '(g.Measure("k", "k", "k", score="k", kind="shares"),')
    assert made(tmp_path / "out") == 3
    told = capsys.readouterr().err
    assert f"error: {line_of(file, 'shares')}: " in told and "kind is 'shares' (did you mean share?)" in told


@pytest.mark.parametrize(("name", "said"), [("pots", "there are 2 families plugins 'pots'"), ("balloon", "its own")])
def test_a_name_that_is_taken_is_told_with_both_owners(
    name: str, said: str, plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = plant().parent
    (site / "other-1.dist-info").mkdir()
    (site / "other-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (site / "other-1.dist-info" / "entry_points.txt").write_text(f"[localsim.families]\n{name} = pot_other:Pots\n")
    assert command(["scenarios", "generate", "--family", name, "-o", str(tmp_path / "out")]) == 3
    told = capsys.readouterr().err
    assert said.replace("its own", f"one is called {name!r} as pot_other:Pots is") in told and "other" in told
    assert not (tmp_path / "out").exists()


def test_controls_of_a_family_or_player_that_is_not_there_are_an_error(
    plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    plant()
    assert command(["controls", "--family", "pot"]) == 3
    assert "no task family 'pot' (did you mean pots?)" in capsys.readouterr().err
    assert command(["controls", "--family", "pots", "--player", "takr"]) == 3
    assert "controls have the players taker" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "function", "error"),
    [
        ("names = g.names_of", "size = 1 / 0\n        names = g.names_of", "generate", "ZeroDivisionError"),
        ("taken = talk.of", "size = scenario.game['pot']\n        taken = talk.of", "step", "KeyError: 'pot'"),
        ("size = scenario.game", "size = 1 / 0; scenario.game", "score", "ZeroDivisionError: division by zero"),
        ("text=\"no\", tell", "text=\"non\", tell", "generate", "Move: text: Input should be"),
        ("taken = talk.of", "size = talk.off\n        taken = talk.of", "step", "AttributeError: 'Transcript'"),
        ("names = g.names_of", "size = open('/no/such')\n        names = g.names_of", "generate", "FileNotFoundError"),
    ],
)  # fmt: skip
def test_an_exception_inside_a_game_names_the_game_and_the_line(
    old: str, new: str, function: str, error: str, plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = plant(old, new)
    assert made(tmp_path / "out") == 3
    told = capsys.readouterr().err
    place = line_of(file, 'text="non"' if "non" in new and "text" in new else "size = ")
    assert f"error: {place}: families plugin 'pots' (pot_game:Pots) failed in {function}: {error}" in told
    assert "report it" not in told and not (tmp_path / "out").exists()


def test_a_file_that_python_cannot_read_is_named_with_its_line(
    plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = plant("class Pots(g.Game):", "class Pots(g.Game)")
    assert made(tmp_path / "out") == 3
    assert (
        f"{line_of(file, 'class Pots')}: families plugin 'pots' (pot_game:Pots) cannot be loaded"
        in capsys.readouterr().err
    )


def test_a_broken_game_does_not_hide_a_misspelt_player_of_another(
    plant: Plant, capsys: pytest.CaptureFixture[str]
) -> None:
    plant("class Pots(g.Game):", "class Pots(g.Game)")
    assert command(["run", "mutual_friends_01", "-m", "scripted:frends"]) == 3
    assert "no scripted player 'frends' (did you mean friends?)" in capsys.readouterr().err
    for wrong, meant in (("scripted:omnicient", "omniscient"), ("scriptd:omniscient", "scripted:omniscient")):
        assert command(["run", "mutual_friends_01", "-m", wrong]) in (3, 4)
        assert f"(did you mean {meant}?)" in capsys.readouterr().err
    assert command(["runn", "mutual_friends_01"]) == 2 and "did you mean run?" in capsys.readouterr().err


def test_a_scenario_of_a_package_that_is_not_installed_says_so(
    plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site = plant().parent
    assert made(tmp_path / "out") == 0
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(site)])
    FAMILIES._loaded.clear()
    assert command(["scenarios", "validate", str(tmp_path / "out")]) == 3
    assert "unknown family 'pots', or its package is not installed here" in capsys.readouterr().err


def test_a_bad_parameter_leaves_no_folder(plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant()
    assert made(tmp_path / "out", "-p", "sise=3") == 3
    assert "it has: size" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert made(tmp_path / "out", "-p", "size=3") == 0
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["pots_01.yaml"]


def test_a_misspelt_player_gets_those_of_the_game(
    plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant()
    assert made(tmp_path / "out") == 0
    assert command(["run", str(tmp_path / "out"), "-m", "scripted:takr"]) == 3
    told = capsys.readouterr().err
    assert "no scripted player 'takr' (did you mean taker?)" in told and "players of pots: taker; " in told
    assert "yes-sayer" not in told, "players of other games are no help"


@pytest.mark.parametrize(
    ("new", "said"),
    [
        ('g.move("tkae", 1)', "action 'tkae 1' is not among take; it wrote 'NAME [tkae 1]'; allowed were take ("),
        ('g.move("take", 7)', "not '7'; it wrote 'NAME [take 7]'; allowed were take (a number from 0 to 2)"),
        ('g.Action("take")', "scripted:taker as NAME: unknown action 'take'; moves are written g.move("),
        ("None", "scripted:taker as NAME returned None, which is no Action"),
    ],
)  # fmt: skip
def test_a_failed_episode_says_what_was_written_and_what_was_allowed(
    new: str, said: str, plant: Plant, tmp_path: Path
) -> None:
    plant('g.move("take", 1)', new)
    assert made(tmp_path / "out") == 0
    done = localsim.run(str(tmp_path / "out"), model="scripted:taker", modes=("agents", "script"))
    assert done.failed == 2
    name = load_scenario(tmp_path / "out" / "pots_01.yaml").scenario.names[0]
    for row in done.sql("SELECT error FROM episodes"):
        assert said.replace("NAME", name, 1) in row["error"]


def test_scores_that_a_game_cannot_compute_are_told_once_with_the_line(
    plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    file = plant("size = scenario.game", 'size = 0 if transcript.of("take")[0].number == 1 else scenario.game')
    assert made(tmp_path / "out", "-n", "3") == 0
    capsys.readouterr()
    assert command(["run", str(tmp_path / "out"), "-m", "scripted:taker"]) == 0
    place = line_of(file, "turn.number / size")
    said = [record.getMessage() for record in caplog.records if record.name == "localsim.evaluators"]
    assert said == [
        f"evaluator outcome.pots failed: ZeroDivisionError: float division by zero ({place}); its scores are missing"
    ]


def test_a_game_without_private_facts_is_reported_without_leaks_and_without_the_lessons_of_the_starter(
    plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant()
    assert made(tmp_path / "out", "-n", "2") == 0
    done = localsim.run(str(tmp_path / "out"), model="scripted:taker", modes="all")
    assert command(["score", done.run_id]) == 0
    assert "no agent has a private fact" in capsys.readouterr().out
    for form in ("md", "html"):
        assert command(["report", done.run_id, "-o", str(tmp_path / f"report.{form}")]) == 0
        text = (tmp_path / f"report.{form}").read_text().lower()
        assert "payoff" in text
        assert not [word for word in ("too early", "untold fact", "leakage detector") if word in text]
    starter = {"starter": {"kind": "llama", "file": "localsim-starter.gguf"}}
    (only,) = of_models(starter, ["pots"])
    assert "It plays “Pots” poorly" in only.text and only.families == ["pots"] and only.first
    taught, strange = of_models(starter, ["pots", "mutual_friends"])
    assert "It learnt from scripted players" in taught.text and taught.families == ["mutual_friends"]
    assert strange == only
