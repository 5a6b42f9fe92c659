"""Shares of variance when every scenario and seed is simulated in every variant: a crossed random-effects analysis.

A value is the sum of an overall mean and of random parts for its scenario, its variant, the two together, its seed
within the scenario, and the rest. The estimates set observed mean squares equal to expected ones (method of moments);
scenarios may have different numbers of seeds. Plain Python, because the tables are small.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

Block = Sequence[Sequence[float]]
"""One scenario: a row for each seed, with a value for each variant in the same order."""


class Crossed(NamedTuple):
    """Variances by their source; single estimates may be below 0."""

    scenario: float
    variant: float
    both: float | None
    """What a variant does in one scenario and not in another. None without a second seed: it is in `rest`."""
    seed: float | None
    """What a seed does in every variant. None without a second seed: it is in `scenario`."""
    rest: float

    @property
    def repeated(self) -> bool:
        """True if scenarios have more than one seed."""
        return self.seed is not None


def crossed(blocks: Mapping[str, Block]) -> Crossed | None:
    """Return the variances, given scenario -> values; None for fewer than two scenarios or variants."""
    tables = [table for table in blocks.values() if table]
    if len(tables) < 2 or len(tables[0][0]) < 2:
        return None
    variants, scenarios, units = len(tables[0][0]), len(tables), sum(map(len, tables))
    means = [[fmean(column) for column in zip(*table, strict=True)] for table in tables]
    of_variant = [
        math.fsum(len(table) * mean[place] for table, mean in zip(tables, means, strict=True)) / units
        for place in range(variants)
    ]
    overall = fmean(of_variant)
    between = math.fsum(
        variants * len(table) * (fmean(mean) - overall) ** 2 for table, mean in zip(tables, means, strict=True)
    ) / (scenarios - 1)
    by_variant = units * math.fsum((mean - overall) ** 2 for mean in of_variant) / (variants - 1)
    together = math.fsum(
        len(table) * (mean[place] - fmean(mean) - of_variant[place] + overall) ** 2
        for table, mean in zip(tables, means, strict=True)
        for place in range(variants)
    ) / ((scenarios - 1) * (variants - 1))
    if units == scenarios:
        return Crossed(
            (between - together) / variants, (by_variant - together) / scenarios, both=None, seed=None, rest=together
        )
    of_seed, rest = _within(tables, means)
    of_seed, rest = of_seed / (units - scenarios), rest / ((units - scenarios) * (variants - 1))
    squares = math.fsum(len(table) ** 2 for table in tables) / units
    size = (units - squares) / (scenarios - 1)
    seed, both = (of_seed - rest) / variants, (together - rest) / size
    return Crossed(
        scenario=(between - rest - variants * seed - size * both) / (variants * size),
        variant=(by_variant - rest - squares * both) / units,
        both=both,
        seed=seed,
        rest=rest,
    )


def _within(tables: Sequence[Block], means: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the sums of squares of seeds within scenarios, and of the rest."""
    of_seed = rest = 0.0
    for table, mean in zip(tables, means, strict=True):
        for row in table:
            off = fmean(row) - fmean(mean)
            of_seed += len(row) * off**2
            rest += math.fsum((value - one - off) ** 2 for value, one in zip(row, mean, strict=True))
    return of_seed, rest


def pooled(found: Iterable[Crossed]) -> Crossed | None:
    """Return the mean variances of several analyses, none below 0; those without seeds count only if all are."""
    every = list(found)
    chosen = [one for one in every if one.repeated] or every
    if not chosen:
        return None
    means = (None if None in parts else max(0.0, fmean(parts)) for parts in zip(*chosen, strict=True))
    return Crossed._make(means)
