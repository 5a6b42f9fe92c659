"""The generated pages reference/games.md and reference/systems.md of the site; `make_docs.py` prints them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from localsim.conversation.episode import MODES
from localsim.families import FAMILIES, title_of
from localsim.families.games.base import Game
from localsim.reports.measures import estimate, measures_of
from localsim.reports.validity.controls import play

ROOT = Path(__file__).resolve().parent.parent
SYSTEMS = ROOT / "scripts" / "systems.toml"
SCENARIOS = 30
"""Scenarios of each game in the table of the value of information."""
INTRODUCTION = """# Games in detail

The parameters, players, measures, references and controls of each [game](../games.md)."""


def games_page() -> str:
    """Return the page of all games in detail."""
    parts = [INTRODUCTION, *_value_of_information(), "## The games"]
    for name in FAMILIES.games:
        game = FAMILIES[name]
        assert isinstance(game, Game)
        parts += _about(name, game)
    return "\n\n".join(parts) + "\n"


def _about(name: str, game: Game) -> Iterator[str]:
    yield f"### {title_of(game)} (`{name}`)"
    yield f"{game.about} {game.how}".strip()
    tasks = ", ".join(f"`{name}_{each}`" for each in game.bundled)
    parameters = ", ".join(f"`{key}={value}`" for key, value in game.defaults.items())
    players = ", ".join(f"`{each}`" + (" (the sensible one)" if each == game.sensible else "") for each in game.players)
    yield f"- Scenarios: {tasks}\n- Parameters: {parameters}\n- Players: {players}"
    yield "\n".join([
        "Beside its measures in reports:",
        "",
        *(f"- {each.label} (`{each.player}`): {each.why}" for each in game.references),
    ])  # fmt: skip
    yield "\n".join(["To try:", "", *(f"- {each}" for each in game.tries)])
    rows = [f"| {each.heading} | {each.meaning} |" for each in game.measures]
    yield "\n".join(["| measure | meaning |", "|---|---|", *rows])
    rows = [
        f"| {each.player} | {each.task or 'default'} | {each.measure} | {each.allowed} | {each.why} |"
        for each in game.controls
    ]
    yield "\n".join(["| player | task | measure | must be | because |", "|---|---|---|---|---|", *rows])


def _value_of_information() -> Iterator[str]:
    """Yield the section on what sensible players win by seeing the other side."""
    yield "## What seeing the other side is worth"
    yield (
        "In some games theory says what information is worth. The players in this table play as well as they can with "
        f"what they see, on {SCENARIOS} generated scenarios of each task. The difference between mindreaders and "
        "agents is the value of information: a measure of omniscience has to find it."
    )
    rows = []
    for name in FAMILIES.games:
        game = FAMILIES[name]
        assert isinstance(game, Game)
        for player, measure, task, theory in game.informed:
            rows.append(_informed(name, player, measure, task, theory))
    heads = ("game", "task", "player", "measure", *MODES, "theory")
    yield "\n".join([f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *rows])


def _informed(name: str, player: str, measure: str, task: str, theory: str) -> str:
    cells = play(name, player, MODES, task, SCENARIOS)
    wanted = next(each for each in measures_of([name]) if each.key == measure)
    values = [estimate(wanted, cells[mode]).value for mode in MODES]
    shown = " | ".join("-" if value is None else f"{value:.3f}" for value in values)
    return f"| `{name}` | {task or 'default'} | `{player}` | {wanted.heading} | {shown} | {theory} |"


# ---- systems -------------------------------------------------------------------------------------------------------


def systems() -> list[dict[str, Any]]:
    """Return the rows of scripts/systems.toml."""
    rows: list[dict[str, Any]] = tomllib.loads(SYSTEMS.read_text(encoding="utf-8"))["system"]
    return rows


def missing(row: dict[str, Any]) -> list[str]:
    """Return what a row names and the repository does not have: files, and tests by name."""
    files = [each for each in row["files"] if not (ROOT / each).exists()]
    return [*files, *(each for each in row["tests"] if each not in _tests())]


def unproved(outcomes: Mapping[str, Set[str]]) -> list[str]:
    """Return the rows and tests whose tests ran and did not pass, given name of a test -> what became of its cases."""
    found = ((row["name"], test, outcomes.get(test, {"passed"})) for row in systems() for test in row["tests"])
    return [f"{name}: {test}" for name, test, ends in found if "passed" not in ends or "failed" in ends]


def _tests() -> set[str]:
    text = "\n".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "tests").glob("test_*.py")))
    return set(re.findall(r"^def (test_\w+)", text, re.M))


def systems_page() -> str:
    """Return the page of published systems."""
    lines = [
        "# Systems of the field",
        "",
        "What localsim has of published systems: the mechanism, the file, what is checked, and where it ends. A check "
        "is a test of the suite; a row whose file or test is missing, or whose test is skipped, fails the suite. A row "
        "is partial if a part of the mechanism or of the measures is missing; other people, texts or languages, and "
        "less data, do not make it so.",
        "",
        "| system | mechanism | file | check | test | limits |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*lines, *map(_row, systems())]) + "\n"


def _row(row: dict[str, Any]) -> str:
    files = ", ".join(f"`{_short(each)}`" for each in row["files"])
    tests = ", ".join(f"`{each}`" for each in row["tests"])
    return f"| {row['name']} | {row['mechanism']} | {files} | {row['check']} | {tests} | {limits_of(row)} |"


def limits_of(row: dict[str, Any]) -> str:
    """Return where a row ends, with the mark of one that is partial."""
    return f"partial: {row['limits']}" if row.get("partial") else str(row["limits"])


def _short(path: str) -> str:
    return path.removeprefix("localsim/families/games/")


__all__: Sequence[str] = ["games_page", "missing", "systems", "systems_page"]
