"""The content of a wheel, which must work away from the repository; the notebook of the workshop."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The content of a wheel, built from the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("localsim-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_a_wheel_carries_all_that_is_read_at_run_time(unpacked: Path) -> None:
    names = {str(path.relative_to(unpacked)) for path in unpacked.rglob("*") if path.is_file()}
    package = {str(path.relative_to(ROOT)) for path in (ROOT / "localsim").rglob("*") if _belongs(path)}
    assert package <= names
    data = "localsim/data"
    assert {f"{data}/models/models.toml", f"{data}/models/starter.lora.gguf", f"{data}/models/starter.md"} <= names
    adapters = {f"{data}/models/{path.name}" for path in (ROOT / "models").glob("*.lora.gguf")}
    assert adapters <= names, "pyproject.toml lists each adapter below force-include"
    for folder, pattern in (("scenarios", "*.yaml"), ("db/queries", "*.sql")):
        assert {f"{data}/{Path(folder).name}/{path.name}" for path in (ROOT / folder).glob(pattern)} <= names
    assert not [name for name in names if name.endswith((".duckdb", ".lock")) or "/tests/" in name]


def _belongs(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


PROGRAM = """
import io, json, sys
from contextlib import redirect_stdout
from localsim.__main__ import run
said = []
for command in json.loads(sys.argv[1]):
    with redirect_stdout(io.StringIO()) as out:
        assert run(command) == 0, command
    said.append(out.getvalue())
print(json.dumps(said))
"""


def test_the_package_works_in_another_folder(unpacked: Path, tmp_path: Path) -> None:
    """The program in a process of its own, then its commands in one."""

    def python(*arguments: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(unpacked), "LOCALSIM_DB": str(tmp_path / "w.duckdb")}
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = python("-m", "localsim", "config", "list", "--json")
    assert str(ROOT / "models") not in json.loads(where)[2]["value"], "the checkout is still in use"
    commands = [
        ["scenarios", "list"],
        ["run", "mutual_friends_01", "trust_once", "-m", "scripted"],
        ["report", "@last", "-o", "report.html"],
        ["models", "list"],
        ["sql", "SELECT count(*) AS n FROM v_turns", "--json"],
    ]
    listed, _run, _report, models, turns = json.loads(python("-c", PROGRAM, json.dumps(commands)))
    assert "mutual_friends_01" in listed and "trust_once" in listed
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert "starter" in models and json.loads(turns)[0]["n"] > 5


@pytest.mark.model
@pytest.mark.verify
def test_the_notebook_runs_on_the_starter(tmp_path: Path) -> None:
    notebook = json.loads((ROOT / "docs" / "find_the_leak.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(cells)], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "3 conversations, 0 failed" in done.stdout
    assert done.stdout.count("untold hits in turns") == 6, "three modes, twice"
