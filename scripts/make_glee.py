#!/usr/bin/env python3
"""Write the scenarios of GLEE's grid (arXiv 2410.05254): 384 of bargaining, 576 of negotiation, 360 of persuasion.

    .venv/bin/python scripts/make_glee.py --out glee                        # all 1,320
    .venv/bin/python scripts/make_glee.py --out glee --game negotiation     # one game

The options stand in localsim/families/games/money/glee.py. The parameters of each scenario are in its file.
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
from localsim.families.games.money.glee import GRID, cells  # noqa: E402
from localsim.scenarios.parse import dump_scenario  # noqa: E402

FIRST = 1
"""The seed of the first scenario of a game; the names of the people depend on it."""


def documents(game: str) -> Iterator[ScenarioFile]:
    """Yield the scenarios of a game, one for each combination of its options."""
    for number, parameters in enumerate(cells(game)):
        yield FAMILIES[game].generate(f"glee_{game}_{number + 1:03d}", FIRST + number, parameters)


@click.command()
@click.option("--game", "games", multiple=True, type=click.Choice(tuple(GRID)), help="One game; by default all three.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, help="Folder for the files.")
def main(games: tuple[str, ...], out: Path) -> None:
    """Write the scenarios of GLEE's grid."""
    out.mkdir(parents=True, exist_ok=True)
    for game in games or tuple(GRID):
        count = 0
        for document in documents(game):
            (out / f"{document.id}.yaml").write_text(dump_scenario(document), encoding="utf-8")
            count += 1
        click.echo(f"{game}: {count} scenarios in {out}")


if __name__ == "__main__":
    main()
