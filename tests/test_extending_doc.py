"""The plugins of docs/extending.md work as they are printed there."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import localsim
from localsim.__main__ import run as command
from localsim.cli import plugin
from localsim.families import FAMILIES

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
MOST_LINES = 60
"""The lines of the printed game, blank ones included."""


def blocks(language: str) -> list[str]:
    """The blocks of code of the page in one language, word for word."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def entry_points() -> str:
    """The entry points of the page's pyproject.toml, but that of the backend, as an installed package has them."""
    groups = tomllib.loads(blocks("toml")[0])["project"]["entry-points"]
    lines = []
    for group, names in groups.items():
        if group != "localsim.backends":
            lines += [f"[{group}]", *(f"{name} = {place}" for name, place in names.items())]
    return "\n".join(lines)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that holds the page's Python blocks, word for word."""
    info = tmp_path / "site" / "my_package-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1\n")
    (info / "entry_points.txt").write_text(entry_points())
    (tmp_path / "site" / "my_package.py").write_text("\n\n".join(blocks("python")))
    monkeypatch.syspath_prepend(tmp_path / "site")
    yield
    sys.modules.pop("my_package", None)
    FAMILIES._loaded.clear()


@pytest.mark.usefixtures("installed")
def test_the_printed_family_and_evaluator_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "sharing"
    assert command(["scenarios", "generate", "--family", "sharing", "--seed", "1", "-n", "2", "-o", str(out)]) == 0
    assert command(["scenarios", "validate", str(out)]) == 0
    done = localsim.run(str(out), model="scripted")
    assert (done.completed, done.failed) == (2, 0)
    assert command(["score", done.run_id, "--evaluator", "politeness"]) == 0
    scores = done.sql("SELECT DISTINCT name, value FROM v_scores WHERE name IN ('success', 'offer', 'politeness')")
    assert {row["name"]: row["value"] for row in scores} == {"success": 1.0, "offer": 0.5, "politeness": 0.0}
    capsys.readouterr()
    assert command(["report", done.run_id, "--json"]) == 0
    (cell,) = json.loads(capsys.readouterr().out)["comparison"]
    assert command(["controls", "--family", "sharing", "--scenarios", "5"]) == 0
    assert "6 of 6 values are what they must be" in capsys.readouterr().out
    assert (cell["success_rate"], cell["offer"], cell["politeness"]) == (1.0, 0.5, 0.0)


@pytest.mark.usefixtures("installed")
def test_a_family_of_another_package_is_shown_like_any_other(tmp_path: Path) -> None:
    """Title, column, meaning, figure, player and baseline: everything that the family declares is in every output."""
    out = tmp_path / "sharing"
    assert command(["scenarios", "generate", "--family", "sharing", "--seed", "1", "-n", "2", "-o", str(out)]) == 0
    done = localsim.run(str(out), model="scripted:smalltalk", modes="all")
    page, markdown, figures = tmp_path / "r.html", tmp_path / "r.md", tmp_path / "figures"
    for file in (page, markdown):
        assert command(["report", done.run_id, "-o", str(file)]) == 0
    html = page.read_text()
    assert ">Sharing game</h2>" in html and "One person offers a part of a sum of money." in html
    assert "the part of the money that is offered first" not in html, "no player made an offer, so there is no column"
    assert "Compare with --model scripted:fair on the same scenarios." in html
    fair = localsim.run(str(out), model="scripted:fair", modes="all")
    assert (fair.completed, fair.failed) == (6, 0), "scripted:NAME finds players of other packages"
    for file in (page, markdown):
        assert command(["report", fair.run_id, "-o", str(file)]) == 0
    html = page.read_text()
    assert "scripted:fair on the same scenarios" not in html, "the run holds the baseline"
    assert html.count("the part of the money that is offered first") == 1, "in the list of terms"
    assert re.search(r"50% in every mode: [^<]*\boffer\b", html), "what is the same in every mode is said, not drawn"
    assert "| offer | 50%" in markdown.read_text()
    assert command(["plot", fair.run_id, "-o", str(figures), "-f", "svg"]) == 0
    assert (figures / "sharing_offer.svg").is_file()
    assert command(["card", fair.run_id, "-o", str(tmp_path / "card.md")]) == 0
    assert "offer" in (tmp_path / "card.md").read_text()


@pytest.mark.usefixtures("installed")
def test_the_printed_game_is_played_audited_and_controlled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (printed,) = (block for block in blocks("python") if "(Replayed)" in block)
    assert len(printed.splitlines()) <= MOST_LINES
    out = str(tmp_path / "hunts")
    assert command(["scenarios", "generate", "--family", "stag_hunt", "--seed", "1", "-n", "3", "-o", out]) == 0
    assert command(["scenarios", "validate", out]) == 0
    payoff = {}
    for player in ("frank", "quiet", "any"):
        done = localsim.run(out, model=f"scripted:{player}", modes="all")
        assert (done.completed, done.failed) == (9, 0)
        rows = done.sql(
            "SELECT e.mode, avg(s.value) AS payoff FROM v_scores s JOIN v_episodes e USING (episode_id) "
            f"WHERE e.run_id = '{done.run_id}' AND s.name = 'payoff' GROUP BY 1"
        )
        payoff[player] = {row["mode"]: round(row["payoff"], 3) for row in rows}
        assert command(["audit", done.run_id]) == 0
    assert payoff["frank"] == {"script": 0.5, "agents": 0.5, "mindreaders": 0.5}
    assert payoff["quiet"] == {"script": 0.5, "agents": 0.167, "mindreaders": 0.5}, "what it is worth to see"
    capsys.readouterr()
    assert command(["report", "--all", done.run_id]) == 0
    assert "payoff" in capsys.readouterr().out
    assert command(["controls", "--family", "stag_hunt", "--scenarios", "5"]) == 0
    assert "are what they must be" in capsys.readouterr().out


def test_the_printed_package_installs_its_one_module_whatever_lies_beside_it() -> None:
    """Setuptools finds packages by itself, and not this module, if a folder of scenarios lies beside the file."""
    printed = tomllib.loads(blocks("toml")[0])
    places = [place for names in printed["project"]["entry-points"].values() for place in names.values()]
    assert printed["tool"]["setuptools"]["py-modules"] == sorted({place.partition(":")[0] for place in places})


def test_the_page_names_modules_and_files_that_exist() -> None:
    for path in re.findall(r"`(localsim/[\w/]+\.py|localsim/[\w/]+/)`", PAGE):
        assert (ROOT / path).exists(), path
    for name in re.findall(r"`(localsim(?:\.\w+)+)`", PAGE):
        module, _, attribute = name.rpartition(".")
        found = sys.modules.get(name) or __import__(module, fromlist=[attribute])
        assert found.__name__ == name or hasattr(found, attribute), name


KINDS = ("evaluator", "game", "backend")


@pytest.mark.parametrize("kind", KINDS)
def test_plugin_new_writes_the_example_of_the_page(kind: str, tmp_path: Path) -> None:
    name = plugin.NAMES[kind]
    assert command(["plugin", "new", kind, name, "-o", str(tmp_path / "it")]) == 0
    assert (tmp_path / "it" / f"localsim_{name}.py").read_text() in blocks("python")


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Three packages, written by `plugin new` under names of their own, as they are once installed."""
    for kind in KINDS:
        folder = tmp_path / kind
        assert command(["plugin", "new", kind, f"my_{kind}", "-o", str(folder)]) == 0
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        info = folder / f"localsim_my_{kind}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1\n")
        ((group, names),) = project["entry-points"].items()
        (info / "entry_points.txt").write_text(
            "\n".join([f"[{group}]", *(f"{key} = {value}" for key, value in names.items())])
        )
        monkeypatch.syspath_prepend(folder)
    yield
    for kind in KINDS:
        sys.modules.pop(f"localsim_my_{kind}", None)
    FAMILIES._loaded.clear()


@pytest.mark.usefixtures("begun")
def test_what_plugin_new_writes_works_under_its_own_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "tasks")
    assert command(["scenarios", "generate", "--family", "my_game", "--seed", "1", "-n", "2", "-o", out]) == 0
    assert localsim.run(out, model="scripted").completed == 2
    assert command(["controls", "--family", "my_game", "--scenarios", "5"]) == 0
    done = localsim.run("mutual_friends_01", model="my_backend:anything")
    assert done.completed == 1 and "messages before me" in done.turns()[-1]["text"]
    assert command(["score", done.run_id, "--evaluator", "my_evaluator"]) == 0
    assert [row["value"] for row in done.scores() if row["name"] == "my_evaluator"] == [0.0]
    both = ["run", "mutual_friends_01", "mutual_friends_02", "-m", "scripted", "--mode", "agents,mindreaders"]
    assert command([*both, "--no-leaks"]) == command(["score", "@last", "--evaluator", "my_evaluator", "--strict"]) == 0
    capsys.readouterr()
    assert command(["compare", "@last", "--all"]) == 0 and "my_evaluator" in capsys.readouterr().out


def test_plugin_new_overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.txt").touch()
    assert command(["plugin", "new", "game", "bridge", "-o", str(tmp_path / "mine")]) == 3
    assert command(["plugin", "new", "game", "My Game", "-o", str(tmp_path / "x")]) == 3
    assert command(["plugin", "new", "game", "craigslist", "-o", str(tmp_path / "x")]) == 3
    assert command(["plugin", "new", "evaluator", "turns", "-o", str(tmp_path / "x")]) == 3
    assert command(["plugin", "new", "backend", "openai", "-o", str(tmp_path / "x")]) == 3
    assert not (tmp_path / "x").exists()
    assert "is not empty" in (err := capsys.readouterr().err) and "is no name for a plugin" in err
