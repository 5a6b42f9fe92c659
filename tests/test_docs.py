"""What is documented is true: queries run, links lead somewhere, generated files are current."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.scenarios.find import find_scenarios
from localsim.store.database import Store
from tests.conftest import Quiet, generated

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "scenarios/README.md"]
QUERIES = sorted((ROOT / "db" / "queries").glob("*.sql"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("docs") / "d.duckdb")
    scenarios = (generated("mutual_friends"), generated("craigslist"))
    runner.start(Plan(scenarios, ("script", "agents"), "scripted", episodes=2), store, Quiet(), print)
    return store


@pytest.mark.parametrize("file", QUERIES, ids=lambda file: file.stem)
def test_every_worked_query_runs_and_is_documented(file: Path, filled: Store) -> None:
    columns, _ = filled.sql(file.read_text())
    assert columns
    assert file.read_text().strip() in (ROOT / "docs" / "sql.md").read_text(), "run make verify"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_inside_the_repository_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", prose):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_file_tree_of_the_readme_is_complete() -> None:
    tree = (ROOT / "README.md").read_text().partition("## Where things are")[2]
    for file in sorted((ROOT / "localsim").rglob("*.py")):
        inside = file.relative_to(ROOT / "localsim")
        name = inside.parts[0] + "/" if len(inside.parts) > 1 else inside.name
        assert name in tree or name.startswith("__"), f"{name} is not in the README's file tree"


def test_examples_of_play_name_roles_that_exist() -> None:
    texts = [page.read_text() for page in PAGES] + [(ROOT / "localsim" / "cli" / "play.py").read_text()]
    examples = [found for text in texts for found in re.findall(r"localsim play (\w+) --as (\w+)", text)]
    named = [(scenario, role) for scenario, role in examples if scenario.islower()]
    assert len(named) >= 3
    for scenario, role in named:
        assert role in find_scenarios([scenario])[0].scenario.names, f"{scenario} has no {role}"
