"""The plugins of docs/extending.md work as they are printed there."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import localsim
from localsim.__main__ import run as command
from localsim.families import FAMILIES

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
ENTRY_POINTS = """
[localsim.families]
ultimatum = my_package:Ultimatum
[localsim.evaluators]
politeness = my_package:Politeness
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that holds the page's Python blocks, word for word."""
    info = tmp_path / "site" / "my_package-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "site" / "my_package.py").write_text("\n\n".join(blocks))
    monkeypatch.syspath_prepend(tmp_path / "site")
    yield
    sys.modules.pop("my_package", None)
    FAMILIES._loaded.clear()


@pytest.mark.usefixtures("installed")
def test_the_printed_family_and_evaluator_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "ultimatum"
    assert command(["scenarios", "generate", "--family", "ultimatum", "--seed", "1", "-n", "2", "-o", str(out)]) == 0
    assert command(["scenarios", "validate", str(out)]) == 0
    done = localsim.run(str(out), model="scripted")
    assert (done.completed, done.failed) == (2, 0)
    assert command(["score", done.run_id, "--evaluator", "politeness"]) == 0
    scores = done.sql("SELECT DISTINCT name, value FROM v_scores WHERE name IN ('success', 'offer', 'please')")
    assert {row["name"]: row["value"] for row in scores} == {"success": 1.0, "offer": 0.5, "please": 0.0}
    capsys.readouterr()
    assert command(["report", done.run_id, "--json"]) == 0
    (cell,) = json.loads(capsys.readouterr().out)["comparison"]
    assert (cell["success_rate"], cell["offer"], cell["please"]) == (1.0, 0.5, 0.0)


def test_the_page_names_modules_and_files_that_exist() -> None:
    for path in re.findall(r"`(localsim/[\w/]+\.py|localsim/[\w/]+/)`", PAGE):
        assert (ROOT / path).exists(), path
    for name in re.findall(r"`(localsim(?:\.\w+)+)`", PAGE):
        module, _, attribute = name.rpartition(".")
        found = sys.modules.get(name) or __import__(module, fromlist=[attribute])
        assert found.__name__ == name or hasattr(found, attribute), name
