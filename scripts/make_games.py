#!/usr/bin/env python3
"""Write the scenarios of the games that ship with localsim: scenarios/games/*.yaml.

    .venv/bin/python scripts/make_games.py           # all games
    .venv/bin/python scripts/make_games.py matrix    # one game

Each game declares its scenarios in `bundled`; a test compares the files with what this script would write.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.conversation.scenario import ScenarioFile  # noqa: E402
from localsim.families import FAMILIES  # noqa: E402
from localsim.families.games.base import Game  # noqa: E402
from localsim.scenarios.parse import dump_scenario  # noqa: E402

FOLDER = ROOT / "scenarios" / "games"
FIRST = 900
"""The seed of the first scenario of a game."""
_SCHEMA = "$schema=scenario-1.schema.json"


def bundled(game: str) -> Iterator[ScenarioFile]:
    """Yield the scenarios of a game that ship."""
    family = FAMILIES[game]
    assert isinstance(family, Game)
    for number, (name, parameters) in enumerate(family.bundled.items()):
        yield family.generate(f"{game}_{name}", FIRST + number, parameters)


def text_of(document: ScenarioFile) -> str:
    """Return the text of a file; the schema is one folder up."""
    return dump_scenario(document).replace(_SCHEMA, _SCHEMA.replace("=", "=../"))


@click.command()
@click.argument("games", nargs=-1, type=click.Choice(FAMILIES.games))
def main(games: tuple[str, ...]) -> None:
    """Write the scenarios of games, by default of all."""
    FOLDER.mkdir(exist_ok=True)
    for game in games or FAMILIES.games:
        for old in FOLDER.glob(f"{game}_*.yaml"):
            old.unlink()
        for document in bundled(game):
            (FOLDER / f"{document.id}.yaml").write_text(text_of(document), encoding="utf-8")
            click.echo(f"scenarios/games/{document.id}.yaml")


if __name__ == "__main__":
    main()
