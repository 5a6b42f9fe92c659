"""A light installation: scripted players, pages, reports and SQL without llama.cpp, torch and what else is large."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest

from localsim import paths
from localsim.__main__ import _LEFT_OUT, run
from localsim.cli import cli
from localsim.store.database import Store

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the packages that are installed here, without those that a light installation leaves out."""
    folder = tmp_path_factory.mktemp("light")
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if entry.name.partition(".")[0].lower() not in _LEFT_OUT and not entry.name.startswith("llama_cpp"):
            (folder / entry.name).symlink_to(entry)
    return folder


def without(code: str, packages: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{packages}", "LOCALSIM_MODELS": str(folder)}
    return subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def commands(*lines: str) -> str:
    return f"from localsim.__main__ import run\nfor line in {lines!r}: assert run(line.split()) == 0, line"


def test_the_list_is_the_packages_dependencies_but_for_the_large_ones() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["web"]]
    large = set(_LEFT_OUT.values())
    lines = (ROOT / "requirements" / "light.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not line.startswith("#")] == sorted(
        line for line in wanted if re.split("[^A-Za-z0-9-]", line)[0] not in large
    )


def test_scripted_players_reports_and_pages_need_no_large_package(packages: Path, tmp_path: Path) -> None:
    done = without(
        commands(
            "run mutual_friends_01 --mode all -m scripted --seed 1 --db a.duckdb",
            "score @last --db a.duckdb",
            "show @last --db a.duckdb",
            "audit @last --db a.duckdb",
            "report @last -o report.html --db a.duckdb",
            "compare @last --db a.duckdb",
        )
        + "\nimport pkgutil, localsim.web\nlist(pkgutil.walk_packages(localsim.web.__path__, 'localsim.web.'))",
        packages,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "<h1" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_doctor_names_what_is_missing(packages: Path, tmp_path: Path) -> None:
    done = without("from localsim.__main__ import run\nprint(run(['doctor']))", packages, tmp_path)
    assert "No module named 'llama_cpp'" in done.stdout and "Traceback" not in done.stderr, done.stderr


def test_what_needs_a_package_that_is_left_out_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def needs_it(*_arguments: Any, **_options: Any) -> None:
        raise ModuleNotFoundError("No module named 'gguf'", name="gguf")

    monkeypatch.setattr(cli, "main", needs_it)
    assert run(["models", "pull", "starter"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "error: this needs gguf, which a light installation leaves out",
        "hint: in a clone: make demo; elsewhere: pip install gguf",
    ]


def test_the_notebook_shows_what_its_text_says(packages: Path, tmp_path: Path) -> None:
    notebook = json.loads((ROOT / "docs" / "find_the_leak.ipynb").read_text(encoding="utf-8"))
    assert not [cell for cell in notebook["cells"] if cell.get("outputs")], "outputs are made by whoever runs it"
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    done = without("\n".join(cells), packages, tmp_path)
    assert done.returncode == 0, done.stderr
    hits = re.findall(r"^(\w+) +untold hits in turns (\S+) +of (\d+) turns$", done.stdout, re.MULTILINE)
    assert hits == [("agents", "[5]", "8"), ("mindreaders", "[0]", "3"), ("script", "[0]", "3")], done.stdout
    assert re.search("not installed: (model starter is not installed|llama-cpp-python cannot be loaded)", done.stdout)


def test_the_lesson_holds_what_its_page_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "teach.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"`localsim (run [^`]*-m scripted:omniscient)`", page)
    assert run([*line.split(), "--db", str(tmp_path / "lesson.duckdb")]) == 0
    store = Store(tmp_path / "lesson.duckdb")
    rows = store.rows("SELECT mode, value FROM v_scores WHERE name = 'first_mention_turn' ORDER BY scenario_id, mode")
    first = {
        mode: [row["value"] for row in rows if row["mode"] == mode] for mode in ("agents", "mindreaders", "script")
    }
    assert first["script"] == first["mindreaders"] == [1, 1]
    assert min(first["agents"]) > 2, "agents need longer"


def test_what_is_missing_is_installed_into_the_checkout_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert paths.installing("web") == f'pip install -e "{ROOT}[web]"'
    monkeypatch.setattr(paths, "_REPOSITORY", tmp_path)
    assert paths.installing("web") == 'pip install "localsim[web]"'


def test_the_command_that_compiles_llama_cpp_names_the_version_that_is_needed() -> None:
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    command = shlex.split(paths.rebuilding('-DCMAKE_CXX_FLAGS="-fno-dse"'))
    assert command[0] == 'CMAKE_ARGS=-DCMAKE_CXX_FLAGS="-fno-dse"' and command[-1] in needed
