"""Lessons of equal size: every arm of a study gets as many tokens and as many training targets of each task.

A cell is a family and a task. In each cell the arm with the fewest tokens decides how many all arms get, and then the
arm with the fewest targets decides how many of them are trained. A cell of which an arm then has nothing, or next to
nothing, is left out of the lessons of all arms. All arms take the scenarios in one order, so that the
scenarios of an arm with long chats are among those of the others.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localsim.finetune.chats import TrainingRow
    from localsim.finetune.job import Material

Cell = tuple[str, str]
"""Family and task."""
Cells = Mapping[str, Cell]
"""Scenario id, which is the group of a training row -> its cell."""
LEAST = 0.1
"""An arm is left out if it has less than this share of the first arm's targets in some cell."""


@dataclass(frozen=True)
class Amount:
    """What an arm is trained on in one cell."""

    family: str
    task: str
    chats: int
    scenarios: int
    shared_scenarios: int
    """Those that the first arm has too."""
    tokens: int
    targets: int


def tokens_by_cell(rows: Iterable[TrainingRow], cells: Cells) -> dict[Cell, int]:
    """Return the number of tokens of each cell, prompts included."""
    return _summed(rows, cells, lambda row: len(row.tokens))


def targets_by_cell(rows: Iterable[TrainingRow], cells: Cells) -> dict[Cell, int]:
    """Return the number of training targets of each cell."""
    return _summed(rows, cells, lambda row: row.learnt_tokens)


def _summed(rows: Iterable[TrainingRow], cells: Cells, size: Callable[[TrainingRow], int]) -> dict[Cell, int]:
    found: dict[Cell, int] = dict.fromkeys(sorted(set(cells.values())), 0)
    for row in rows:
        found[cells[row.group]] += size(row)
    return found


def able(materials: Mapping[str, Material], cells: Cells) -> tuple[dict[str, Material], dict[str, str]]:
    """Return the arms with enough targets of every task, and the reason why each other arm is left out."""
    counts = {name: targets_by_cell(data.train, cells) for name, data in materials.items()}
    wanted = next(iter(counts.values()), {})
    left_out = {}
    for name, own in counts.items():
        short = [cell for cell, targets in wanted.items() if own[cell] < LEAST * targets]
        if short:
            least = (f"{own[cell]} of {wanted[cell]} targets of {', '.join(cell)}" for cell in short)
            left_out[name] = f"it has only {' and '.join(least)}"
    return {name: data for name, data in materials.items() if name not in left_out}, left_out


def equalled(
    materials: Mapping[str, Material], cells: Cells, tokens: int | None
) -> tuple[dict[str, Material], dict[Cell, str]]:
    """Return the arms cut to the same number of tokens and of targets in each cell, at most `tokens` tokens in all, and
    the reason why each cell that some arm lacks is left out of all.

    The last row of a cell is cut. Surplus targets are whole turns, drawn at random: they stay in the text of their
    chat, and only their weight in the loss becomes 0.
    """
    counts = {name: tokens_by_cell(data.train, cells) for name, data in materials.items()}
    found = [cell for cell in sorted(set(cells.values())) if any(count[cell] for count in counts.values())]
    left_out = {
        cell: _fewest(counts, cell, "tokens") for cell in found if not all(own[cell] for own in counts.values())
    }
    while True:
        kept = [cell for cell in found if cell not in left_out]
        limits = {cell: min(count[cell] for count in counts.values()) for cell in kept}
        if tokens is not None:
            limits = {cell: min(limit, tokens // len(kept)) for cell, limit in limits.items()}
        rows = {name: _within(data.train, cells, limits) for name, data in materials.items()}
        targets = {name: targets_by_cell(own, cells) for name, own in rows.items()}
        counts_of = {cell: [own[cell] for own in targets.values()] for cell in kept}
        short = [cell for cell, own in counts_of.items() if min(own) == 0 or min(own) < LEAST * own[0]]
        if not short:
            break
        # One at a time: what it would have used may be enough for the others.
        left_out[short[0]] = f"{_fewest(targets, short[0], 'targets')} within {limits[short[0]]} tokens"
    least = {cell: min(own[cell] for own in targets.values()) for cell in kept}
    return {name: replace(data, train=masked(rows[name], cells, least)) for name, data in materials.items()}, left_out


def _fewest(counts: Mapping[str, Mapping[Cell, int]], cell: Cell, unit: str) -> str:
    name = min(counts, key=lambda name: counts[name][cell])
    return f"{name} has only {counts[name][cell]} {unit}"


def _within(rows: Sequence[TrainingRow], cells: Cells, limits: Mapping[Cell, int]) -> list[TrainingRow]:
    left = dict(limits)
    found = []
    for row in rows:
        cell = cells[row.group]
        if left.get(cell):
            found.append(cut(row, left[cell]))
            left[cell] -= len(found[-1].tokens)
    return found


def cut(row: TrainingRow, tokens: int) -> TrainingRow:
    """Return the beginning of a row, at most so many tokens: with asides, the lines and asides of its first turns."""
    if len(row.tokens) <= tokens:
        return row
    lines, asides, left = 0, [], tokens
    for start, end, at in row.parts[1:]:
        lines, left = lines + min(left, at - lines), left - min(left, at - lines)
        taken = min(left, end - start)
        if taken:
            asides.append((start, start + taken, at))
        left -= taken
    starts = accumulate((end - start for start, end, _ in asides), initial=lines + left)
    pieces = [(0, lines + left), *((start, end) for start, end, _ in asides)]
    return replace(
        row,
        tokens=tuple(token for start, end in pieces for token in row.tokens[start:end]),
        weights=tuple(weight for start, end in pieces for weight in row.weights[start:end]),
        asides=tuple((start, at) for start, (_, _, at) in zip(starts, asides, strict=False)),
    )


def masked(rows: Sequence[TrainingRow], cells: Cells, targets: Mapping[Cell, int]) -> list[TrainingRow]:
    """Return the rows with so many targets in each cell. Of one turn in each cell only the beginning loses its weight,
    so that its end is still learnt.
    """
    surplus = {cell: count - targets.get(cell, 0) for cell, count in targets_by_cell(rows, cells).items()}
    weights = [list(row.weights) for row in rows]
    turns = [(number, begin, end) for number, row in enumerate(rows) for begin, end in turns_of(row)]
    random.Random(1).shuffle(turns)
    for number, begin, end in turns:
        cell = cells[rows[number].group]
        dropped = min(end - begin, surplus[cell])
        weights[number][begin : begin + dropped] = [0.0] * dropped
        surplus[cell] -= dropped
    return [replace(row, weights=tuple(own)) for row, own in zip(rows, weights, strict=True)]


def turns_of(row: TrainingRow) -> Iterator[tuple[int, int]]:
    """Yield begin and end of each run of targets in a row: the agent's turns, each with its end mark."""
    for learnt, places in groupby(range(len(row.tokens)), lambda place: row.weights[place] > 0):
        if learnt:
            turn = list(places)
            yield turn[0], turn[-1] + 1


def described(data: Material, cells: Cells, first: Material) -> list[Amount]:
    """Return what an arm is trained on in each cell; `first` is the material of the first arm."""
    found = []
    for cell in sorted({cells[row.group] for row in data.train}):
        rows, others = ([row for row in each.train if cells[row.group] == cell] for each in (data, first))
        scenarios = {row.group for row in rows}
        shared = len(scenarios & {row.group for row in others})
        tokens, targets = sum(len(row.tokens) for row in rows), sum(row.learnt_tokens for row in rows)
        found.append(Amount(*cell, len(rows), len(scenarios), shared, tokens, targets))
    return found
