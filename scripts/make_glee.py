#!/usr/bin/env python3
"""Write the scenarios of GLEE's grid (arXiv 2410.05254): 384 of bargaining, 576 of negotiation, 360 of persuasion.

    .venv/bin/python scripts/make_glee.py --out glee                        # all 1,320
    .venv/bin/python scripts/make_glee.py --out glee --game negotiation     # one game

The options are those of the sweeps in `utils/create_YAMLs.py` of the repository eilamshapira/GLEE. Persuasion has 20
rounds, as in the code and the metrics of the repository; its sweep file says 25. The parameters of each scenario are in
its file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.conversation.scenario import ScenarioFile  # noqa: E402
from localsim.families import FAMILIES  # noqa: E402
from localsim.families.games.money.glee import VALUES, WORTHS  # noqa: E402
from localsim.scenarios.parse import dump_scenario  # noqa: E402

FIRST = 1
"""The seed of the first scenario of a game; the names of the people depend on it."""
MONEY = (100, 10_000, 1_000_000)
KEEPS = (1.0, 0.95, 0.9, 0.8)
"""What each further round of bargaining leaves of the value."""
BOTH = (True, False)

GRID: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "bargaining": {
        "money": MONEY,
        "rounds": (12, 99),
        "keep_1": KEEPS,
        "keep_2": KEEPS,
        "informed": BOTH,
        "talk": BOTH,
    },
    "negotiation": {
        "money": MONEY,
        "rounds": (1, 10, 30),
        "seller": VALUES,
        "buyer": VALUES,
        "informed": BOTH,
        "talk": BOTH,
    },
    "persuasion": {
        "price": MONEY,
        "chance": (1 / 3, 0.5, 0.8),
        "worth": WORTHS,
        "informed": BOTH,
        "myopic": BOTH,
        "message": ("words", "binary"),
    },
}
"""Game -> parameter -> its options."""
FIXED: Mapping[str, Mapping[str, Any]] = {
    "bargaining": {},
    "negotiation": {"prior": False},
    "persuasion": {"rounds": 20},
}
"""Game -> parameters that are equal in the whole grid. GLEE tells nobody which values the other side can have."""


def cells(game: str) -> Iterator[dict[str, Any]]:
    """Yield the parameters of each combination, the last option changing first."""
    options = GRID[game]
    for chosen in product(*options.values()):
        yield {**FIXED[game], **dict(zip(options, chosen, strict=True))}


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
