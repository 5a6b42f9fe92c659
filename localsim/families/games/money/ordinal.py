"""The 144 ordinal 2x2 games and their seven kinds (Robinson & Goforth 2005; kinds as in arXiv 2305.16867, section 2).

Each player ranks the four outcomes 1 (worst) to 4 (best) without ties. Games that differ only in the names of options
are one game: 24 * 24 / 4 = 144.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import permutations, product
from typing import Literal

OPTIONS = ("J", "F")
CELLS = tuple(one + other for one, other in product(OPTIONS, OPTIONS))
"""The first player's option, then the second's."""
Table = Mapping[str, tuple[int, int]]
"""Cell -> what the first and the second player win."""
Kind = Literal["win-win", "biased", "second-best", "cyclic", "unfair", "prisoners", "tragic"]


@cache
def ordinal() -> tuple[tuple[Kind, Table], ...]:
    """Return all games with their kinds, in a fixed order."""
    found: dict[tuple[tuple[int, int], ...], Table] = {}
    for ranks in product(permutations((1, 2, 3, 4)), repeat=2):
        table = dict(zip(CELLS, zip(*ranks, strict=True), strict=True))
        key = min(tuple(renamed[cell] for cell in CELLS) for renamed in _renamings(table))
        found.setdefault(key, dict(zip(CELLS, key, strict=True)))
    return tuple((kind_of(table), table) for table in found.values())


def _renamings(table: Table) -> list[Table]:
    other = dict(zip(OPTIONS, reversed(OPTIONS), strict=True))
    rows = [table, {other[cell[0]] + cell[1]: won for cell, won in table.items()}]
    return [*rows, *({cell[0] + other[cell[1]]: won for cell, won in each.items()} for each in rows)]


def equilibria(table: Table) -> tuple[str, ...]:
    """Return the cells in which nobody wins more by another option alone (pure Nash equilibria)."""
    return tuple(
        cell
        for cell, (one, other) in table.items()
        if all(one >= table[option + cell[1]][0] and other >= table[cell[0] + option][1] for option in OPTIONS)
    )


def kind_of(table: Table) -> Kind:
    """Return the kind of a game of ranks: by its best equilibrium, and whether both prefer another outcome to it."""
    cells = equilibria(table)
    if not cells:
        return "cyclic"
    best = max(sorted(table[cell], reverse=True) for cell in cells)
    if best == [4, 4]:
        return "win-win"
    if best == [4, 3]:
        return "biased"
    if best == [4, 2]:
        return "unfair"
    if best == [3, 3]:
        return "second-best"
    stuck = any(won[0] > table[cell][0] and won[1] > table[cell][1] for cell in cells for won in table.values())
    return "prisoners" if stuck else "tragic"
