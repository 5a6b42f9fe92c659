"""The robustness of a run with variants (`run --perturb`): shares of variance, and differences that change their sign.

A variant changes the wording and not the task. A difference between modes whose sign depends on the variant says
something about the wording, so the report does not state it as its answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
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

Row = dict[str, Any]
Values = dict[Condition, dict[Unit, float]]

FACTORS = ("scenario", "variant", "both", "seed", "rest")
"""Sources of variance; `both` is what a variant does in one scenario and not in another."""


def robustness(store: Store, run_id: str) -> Row | None:
    """Return variants, contrasts and shares of variance of a run; None if it has one variant."""
    variants = queries.variants(store, run_id)
    if len(variants) < 2:
        return None
    foremost = {SUCCESS.key, primary_of(run_row(store, run_id)["plan_json"])[0]}
    contrasts: list[Row] = []
    shares: list[Row] = []
    for family, measure, by_condition in values_of(store, [run_id]):
        named: Row = {"family": family, "measure": measure.key, "heading": measure.heading, "kind": measure.kind}
        named |= {"foremost": measure.key in foremost}
        contrasts += [{**named, **row} for row in _contrasts(by_condition, variants)]
        share = _shares(by_condition.values(), variants)
        shares += [{**named, **share}] if share else []
    return {"variants": [_described(number) for number in variants], "contrasts": contrasts, "shares": shares}


def sign_turns(row: Row | None, family: str, measure: str, contrast: str) -> bool:
    """Return True if a difference must be withheld: in one variant it is above 0, in another below."""
    return row is not None and any(
        one["withheld"]
        for one in row["contrasts"]
        if (one["family"], one["measure"], one["contrast"]) == (family, measure, contrast)
    )


def _described(number: int) -> Row:
    variant = variant_of(number)
    return {
        "variant": number,
        "wording": variant.wording,
        "spacing": variant.spacing.name,
        "temperature": variant.temperature,
        "dry_switched": variant.dry,
        "repeat_penalty_switched": variant.repeat,
    }


def _contrasts(by_condition: Values, variants: list[int]) -> Iterator[Row]:
    """Yield the estimate of each contrast over all variants and in each, and the number that have its sign."""
    for one, other in pairs_of(by_condition):
        contrast = next((name for name, modes in CONTRASTS.items() if modes == (one.name, other.name)), None)
        estimate = _estimate(by_condition[one], by_condition[other])
        if contrast is None or estimate is None:
            continue
        cells = {
            number: found
            for number in variants
            if (found := _estimate(*(_within(by_condition[each], number) for each in (one, other)))) is not None
        }
        signs = {number: _sign(found) for number, found in cells.items()}
        yield {
            "contrast": contrast,
            "model": other.model if one.model == other.model else f"{one.model}, {other.model}",
            "estimate": estimate,
            "by_variant": [{"variant": number, "estimate": found} for number, found in cells.items()],
            "cells": len(cells),
            "holds": sum(sign == _sign(estimate) for sign in signs.values()),
            "withheld": {1, -1} <= set(signs.values()),
        }


def _within(values: Mapping[Unit, float], variant: int) -> dict[Unit, float]:
    return {unit: value for unit, value in values.items() if unit[3] == variant}


def _estimate(one: Mapping[Unit, float], other: Mapping[Unit, float]) -> float | None:
    """Return second minus first as `compare` does: the mean over scenarios of their mean differences."""
    groups = differences_of(dict(one), dict(other)).values()
    means = [sum(group) / len(group) for group in groups]
    return round(sum(means) / len(means), 9) if means else None


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _shares(conditions: Iterable[Mapping[Unit, float]], variants: list[int]) -> Row | None:
    """Return the shares of variance within a mode and model; None if nothing varies.

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
    shares = {
        factor: None if part is None else round(part / total, 4) for factor, part in zip(FACTORS, parts, strict=True)
    }
    return {**shares, "units": used, "units_left_out": missing}


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


def sentences(row: Row) -> list[str]:
    """Return what a reader must know about the two tables."""
    withheld = [one for one in row["contrasts"] if one["withheld"]]
    found = [
        f"Everything was simulated in {len(row['variants'])} variants: wording, line breaks, temperature and penalties "
        f"differ, the task and the seeds do not. In {len(withheld)} of {len(row['contrasts'])} differences between "
        "modes the sign depends on the variant."
    ]
    for one in withheld:
        if one["foremost"]:
            found.append(
                f"{one['family']}, {one['heading']}, {one['contrast']}: no difference is stated, because its sign "
                f"holds in {one['holds']} of {one['cells']} variants only."
            )
    if any(one["seed"] is None for one in row["shares"]):
        found.append(
            "There is one seed for each scenario, so scenario contains seed, and rest contains what a variant does in "
            "single scenarios; -n 2 or more separates them."
        )
    return found


def contrast_table(row: Row) -> Table:
    """Return the differences between modes in the foremost measures with their range over the variants."""
    heads = ["family", "measure", "difference", "all variants", "lowest", "highest", "sign holds in", "verdict"]
    lines = []
    for one in row["contrasts"]:
        if one["foremost"]:
            each = [cell["estimate"] for cell in one["by_variant"]]
            numbers = [_number(value, one["kind"]) for value in (one["estimate"], min(each), max(each))]
            verdict = "withheld" if one["withheld"] else "kept"
            named = [one["family"], one["heading"], one["contrast"]]
            lines.append([*named, *numbers, f"{one['holds']} of {one['cells']}", verdict])
    title = "Differences between modes over all variants, and the lowest and highest of a single one"
    return Table(title, heads, lines, words=3)


def share_table(row: Row) -> Table:
    """Return the shares of variance within a mode."""
    heads = ["family", "measure", "scenario", "variant", "scenario x variant", "seed", "rest"]
    lines = [
        [one["family"], one["heading"], *("-" if one[factor] is None else f"{one[factor]:.0%}" for factor in FACTORS)]
        for one in row["shares"]
    ]
    return Table("Shares of the variance within a mode, by source", heads, lines, words=2)


def _number(value: float, kind: str) -> str:
    if not value:
        return "0"
    return f"{value:+.0%}" if kind == "share" else f"{value:+.2f}"
