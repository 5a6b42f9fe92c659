"""The robustness of a run with variants (`run --perturb`): shares of variance, and differences that change their sign.

A variant changes the wording and not the task. A difference between modes whose sign depends on the variant says
something about the wording, so the report does not state it as its answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from localsim.conversation.wording.variants import variant_of
from localsim.families.base import SUCCESS
from localsim.reports.comparison import Unit, differences_of, pairs_of, values_of
from localsim.reports.document import Table
from localsim.runs.plan import CONTRASTS, primary_of
from localsim.stats.crossed import Block, Crossed, crossed, pooled
from localsim.store.conditions import Condition
from localsim.store.database import Store
from localsim.store.queries import reports as queries
from localsim.store.queries.runs import run_row

Values = dict[Condition, dict[Unit, float]]
Named = tuple[str, str, str, str, bool]
"""The first fields of a contrast and of shares."""


@dataclass(frozen=True)
class Variant:
    """How a variant of the prompts differs from the usual ones."""

    variant: int
    wording: int
    spacing: str
    temperature: float | None
    dry_switched: bool
    repeat_penalty_switched: bool


@dataclass(frozen=True)
class Estimated:
    """A difference in one variant."""

    variant: int
    estimate: float


@dataclass(frozen=True)
class Contrast:
    """A difference between two modes in one measure, over all variants and in each."""

    family: str
    measure: str
    heading: str
    kind: str
    foremost: bool
    """True for success and the primary outcome."""
    contrast: str
    model: str
    estimate: float
    by_variant: Sequence[Estimated]
    cells: int
    """Variants with an estimate."""
    holds: int
    """Those in which it has its sign."""
    withheld: bool
    """True if it is above 0 in one variant and below it in another."""


@dataclass(frozen=True)
class Shares:
    """The shares of the variance of a measure within a mode and model by source; None if one cannot be separated."""

    family: str
    measure: str
    heading: str
    kind: str
    foremost: bool
    scenario: float | None
    variant: float | None
    both: float | None
    """What a variant does in one scenario and not in another."""
    seed: float | None
    rest: float | None
    units: int
    units_left_out: int
    """Those that lack a value in a variant."""


@dataclass(frozen=True)
class Robustness:
    """What the variants of the prompts change: the object `robustness` of `report --json`."""

    variants: Sequence[Variant]
    contrasts: Sequence[Contrast]
    shares: Sequence[Shares]


def robustness(store: Store, run_id: str) -> Robustness | None:
    """Return what the variants of a run change; None if it has one variant."""
    variants = queries.variants(store, run_id)
    if len(variants) < 2:
        return None
    keys = {SUCCESS.key, primary_of(run_row(store, run_id)["plan_json"])[0]}
    contrasts: list[Contrast] = []
    shares: list[Shares] = []
    for family, measure, by_condition in values_of(store, [run_id]):
        named = (family, measure.key, measure.heading, measure.kind, measure.key in keys)
        contrasts += _contrasts(named, by_condition, variants)
        if parts := _shares(by_condition.values(), variants):
            shares.append(Shares(*named, *parts))
    changed = [(number, variant_of(number)) for number in variants]
    described = [
        Variant(number, each.wording, each.spacing.name, each.temperature, each.dry, each.repeat)
        for number, each in changed
    ]
    return Robustness(described, contrasts, shares)


def sign_turns(found: Robustness | None, family: str, measure: str, contrast: str) -> bool:
    """Return True if a difference must be withheld: in one variant it is above 0, in another below."""
    return found is not None and any(
        each.withheld
        for each in found.contrasts
        if (each.family, each.measure, each.contrast) == (family, measure, contrast)
    )


def _contrasts(named: Named, by_condition: Values, variants: list[int]) -> Iterator[Contrast]:
    """Yield the contrasts of a measure, over all variants and in each."""
    for one, other in pairs_of(by_condition):
        contrast = next((name for name, modes in CONTRASTS.items() if modes == (one.name, other.name)), None)
        estimate = _estimate(by_condition[one], by_condition[other])
        if contrast is None or estimate is None:
            continue
        cells = [
            Estimated(number, found)
            for number in variants
            if (found := _estimate(*(_within(by_condition[each], number) for each in (one, other)))) is not None
        ]
        signs = [_sign(each.estimate) for each in cells]
        model = other.model if one.model == other.model else f"{one.model}, {other.model}"
        holds, withheld = signs.count(_sign(estimate)), {1, -1} <= set(signs)
        yield Contrast(*named, contrast, model, estimate, cells, len(cells), holds, withheld)


def _within(values: Mapping[Unit, float], variant: int) -> dict[Unit, float]:
    return {unit: value for unit, value in values.items() if unit[3] == variant}


def _estimate(one: Mapping[Unit, float], other: Mapping[Unit, float]) -> float | None:
    """Return second minus first as `compare` does: the mean over scenarios of their mean differences."""
    groups = differences_of(dict(one), dict(other)).values()
    means = [sum(group) / len(group) for group in groups]
    return round(sum(means) / len(means), 9) if means else None


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _shares(conditions: Iterable[Mapping[Unit, float]], variants: list[int]) -> tuple[Any, ...] | None:
    """Return the share of each factor, the units and those left out; None if nothing varies within a mode and model.

    Seeds that lack a value in a variant are left out, because a mean over other scenarios is no effect of the wording.
    """
    found: list[Crossed] = []
    used = missing = 0
    for values in conditions:
        blocks, left_out = _blocks(values, variants)
        parts = crossed(blocks)
        if parts is not None:
            found.append(parts)
            used, missing = used + sum(map(len, blocks.values())), missing + left_out
    parts = pooled(found)
    total = sum(part or 0.0 for part in parts) if parts else 0.0
    if parts is None or total < 1e-12:
        return None
    return *(None if part is None else round(part / total, 4) for part in parts), used, missing


def _blocks(values: Mapping[Unit, float], variants: list[int]) -> tuple[dict[str, Block], int]:
    """Return scenario -> table of seeds by variants, and the number of seeds that lack a variant."""
    by_seed: dict[tuple[str, int, int], dict[int, float]] = defaultdict(dict)
    for (scenario, index, seed, variant), value in values.items():
        by_seed[scenario, index, seed][variant] = value
    blocks: dict[str, list[list[float]]] = defaultdict(list)
    for (scenario, _, _), given in sorted(by_seed.items()):
        if len(given) == len(variants):
            blocks[scenario].append([given[number] for number in variants])
    return dict(blocks), len(by_seed) - sum(map(len, blocks.values()))


# ---- for people ----------------------------------------------------------------------------------------------------


def sentences(found: Robustness) -> list[str]:
    """Return what a reader must know about the two tables."""
    withheld = [each for each in found.contrasts if each.withheld]
    told = [
        f"Everything was simulated in {len(found.variants)} variants: wording, line breaks, temperature and penalties "
        f"differ, the task and the seeds do not. In {len(withheld)} of {len(found.contrasts)} differences between "
        "modes the sign depends on the variant."
    ]
    told += [
        f"{each.family}, {each.heading}, {each.contrast}: no difference is stated, because its sign "
        f"holds in {each.holds} of {each.cells} variants only."
        for each in withheld
        if each.foremost
    ]
    if any(each.seed is None for each in found.shares):
        told.append(
            "There is one seed for each scenario, so scenario contains seed, and rest contains what a variant does in "
            "single scenarios; -n 2 or more separates them."
        )
    return told


def contrast_table(found: Robustness) -> Table:
    """Return the differences between modes in the foremost measures with their range over the variants."""
    heads = ["family", "measure", "difference", "all variants", "lowest", "highest", "sign holds in", "verdict"]
    lines = []
    for each in found.contrasts:
        if each.foremost:
            values = [one.estimate for one in each.by_variant]
            form = "+.0%" if each.kind == "share" else "+.2f"
            numbers = [f"{value:{form}}" if value else "0" for value in (each.estimate, min(values), max(values))]
            holds, verdict = f"{each.holds} of {each.cells}", "withheld" if each.withheld else "kept"
            lines.append([each.family, each.heading, each.contrast, *numbers, holds, verdict])
    title = "Differences between modes over all variants, and the lowest and highest of a single one"
    return Table(title, heads, lines, words=3)


def share_table(found: Robustness) -> Table:
    """Return the shares of variance within a mode."""
    heads = ["family", "measure", "scenario", "variant", "scenario x variant", "seed", "rest"]
    lines = [
        [each.family, each.heading, *("-" if part is None else f"{part:.0%}" for part in astuple(each)[5:10])]
        for each in found.shares
    ]
    return Table("Shares of the variance within a mode, by source", heads, lines, words=2)
