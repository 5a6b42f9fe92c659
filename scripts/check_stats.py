"""Check the statistics on simulated scenarios whose truth is known, and write docs/log/statistics.md.

    python scripts/check_stats.py [--simulations 4000] [--output docs/log/statistics.md]

Outcomes are drawn like this: each scenario has its own chance of success in each mode (a beta distribution with the
wanted mean and intra-class correlation), and each seed is a draw from it. Modes have chances of their own, so that
differences between modes resemble each other within a scenario as much as outcomes do.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_1samp

from localsim import stats

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS, SEEDS, ICCS = (6, 12, 45), (1, 2, 5), (0.0, 0.5, 0.9)
SHARE: stats.Bounds = (0.0, 1.0)
TURNS: stats.Bounds = (0.0, 20.0)
Drawn = Any
"""An array of simulations x scenarios x seeds."""


def chances(rng: np.random.Generator, mean: float, icc: float, shape: tuple[int, int]) -> Drawn:
    """Draw the chance of success of each scenario."""
    if icc == 0 or mean in (0, 1):
        return np.full(shape, mean)
    return rng.beta(mean * (1 - icc) / icc, (1 - mean) * (1 - icc) / icc, size=shape)


def outcomes(rng: np.random.Generator, mean: float, icc: float, shape: tuple[int, int, int]) -> Drawn:
    """Draw outcomes of 0 and 1."""
    return (rng.random(shape) < chances(rng, mean, icc, shape[:2])[..., None]).astype(float)


def numbers(rng: np.random.Generator, mean: float, icc: float, shape: tuple[int, int, int]) -> Drawn:
    """Draw normal values with variance 1."""
    return mean + icc**0.5 * rng.normal(size=shape[:2])[..., None] + (1 - icc) ** 0.5 * rng.normal(size=shape)


def places(rng: np.random.Generator, mean: float, icc: float, shape: tuple[int, int, int]) -> Drawn:
    """Draw values between 0 and 1 that vary little, such as positions: a tenth of a share's spread around the mean."""
    return mean + 0.1 * (outcomes(rng, mean, icc, shape) - mean)


def counted(rng: np.random.Generator, mean: float, icc: float, shape: tuple[int, int, int]) -> Drawn:
    """Draw counts: Poisson around a gamma-distributed mean of the scenario."""
    own = np.full(shape[:2], mean) if icc == 0 else rng.gamma(1 / icc, mean * icc, size=shape[:2])
    return rng.poisson(own[..., None], size=shape).astype(float)


def turns(rng: np.random.Generator, mean: float, icc: float, shape: tuple[int, int, int]) -> Drawn:
    """Draw numbers of turns between 2 and 20: a beta-binomial distribution, whose mean is exact."""
    own = chances(rng, (mean - 2) / 18, icc, shape[:2])
    return 2 + rng.binomial(18, own[..., None], size=shape).astype(float)


def groups(drawn: Drawn) -> dict[str, list[float]]:
    """Return one simulation as scenario -> values."""
    return {str(place): list(map(float, values)) for place, values in enumerate(drawn)}


def size(rng: np.random.Generator, simulations: int, scenarios: int, seeds: int, icc: float) -> tuple[float, float]:
    """Return how often a difference of 0 is called one at p <= .05: by sign flips, and by a t-test over all pairs."""
    shape = (simulations, scenarios, seeds)
    differences = outcomes(rng, 0.5, icc, shape) - outcomes(rng, 0.5, icc, shape)
    flips = float((stats.sign_flips(differences.mean(axis=2)) <= 0.05).mean())
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # simulations in which nothing varies have no t
        pairs = ttest_1samp(differences.reshape(simulations, -1), 0, axis=1).pvalue
    return flips, float((pairs <= 0.05).mean())


def coverage(drawn: Drawn, truth: float, bounds: stats.Bounds, number: bool = False) -> tuple[float, float]:
    """Return the share of intervals that hold the truth, of all that exist, and their mean width."""
    found = [stats.clustered(groups(one), bounds, number) for one in drawn]
    return _held([(one.low, one.high) for one in found], truth)


def paired_coverage(
    rng: np.random.Generator, simulations: int, shape: tuple[int, int], icc: float, means: tuple[float, float]
) -> tuple[float, float]:
    """Return the coverage and mean width of the intervals of paired differences: of turns if a mean is above 1."""
    full = (simulations, *shape)
    number = max(means) > 1
    draw, bounds = (turns, TURNS) if number else (outcomes, SHARE)
    differences = draw(rng, means[1], icc, full) - draw(rng, means[0], icc, full)
    found = [stats.paired(groups(one), bounds, number) for one in differences]
    return _held([(one.low, one.high) for one in found if one], means[1] - means[0])


def _held(ends: list[tuple[float | None, float | None]], truth: float) -> tuple[float, float]:
    known = [(low, high) for low, high in ends if low is not None and high is not None]
    held = [low - 1e-9 <= truth <= high + 1e-9 for low, high in known]
    return float(np.mean(held)), float(np.mean([high - low for low, high in known]))


def excess_coverage(rng: np.random.Generator, simulations: int, scenarios: int, icc: float, peeks: float) -> float:
    """Return the coverage of the hits beyond chance of players who use what they cannot know with chance `peeks`.

    Each scenario has four tries; chance rates are 1/5 to 1/2.
    """
    held = []
    for _ in range(simulations):
        chance = rng.choice([0.2, 0.25, 0.5], size=scenarios)
        dial = chances(rng, peeks, icc, (scenarios, 1))
        hits = rng.random((scenarios, 4)) < dial + (1 - dial) * chance[:, None]
        tries = {str(place): [(float(hit), float(chance[place])) for hit in hits[place]] for place in range(scenarios)}
        found = stats.excess(tries)
        held.append(found.low is not None and found.high is not None and found.low <= peeks <= found.high)
    return float(np.mean(held))


def equivalence_size(rng: np.random.Generator, simulations: int, scenarios: int, icc: float) -> tuple[float, float]:
    """Return how often a difference as large as the margin, and one of 0, is called equivalent."""
    found = []
    for mean in (0.7, 0.5):
        shape = (simulations, scenarios, 5)
        differences = outcomes(rng, mean, icc, shape) - outcomes(rng, 0.5, icc, shape)
        tests = [stats.equivalence(groups(one), 0.2, SHARE) for one in differences]
        found.append(float(np.mean([test.p is not None and test.p <= 0.05 for test in tests])))
    return found[0], found[1]


def achieved(
    rng: np.random.Generator, simulations: int, icc: float, seeds: int, wanted: float = 0.8
) -> tuple[int | None, float]:
    """Return the least scenarios that `design` states for +.2, and the power of fresh studies of outcomes 0 and 1."""
    means = (0.4, 0.6)
    pilot = outcomes(rng, means[1], icc, (1, 2000, 5)) - outcomes(rng, means[0], icc, (1, 2000, 5))
    spread = stats.spread_of(groups(pilot[0]))
    assert spread is not None
    scenarios = stats.smallest(spread, 0.2, seeds, wanted)
    if scenarios is None:
        return None, float("nan")
    shape = (simulations, scenarios, seeds)
    fresh = (outcomes(rng, means[1], icc, shape) - outcomes(rng, means[0], icc, shape)).mean(axis=2)
    return scenarios, float((stats.sign_flips(fresh) <= 0.05).mean())


# ---- the tables ----------------------------------------------------------------------------------------------------


def table(heads: list[str], lines: Iterator[list[str]]) -> list[str]:
    """Return a table as Markdown."""
    return [
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
        *("| " + " | ".join(e) + " |" for e in lines),
        "",
    ]


def _cells() -> Iterator[tuple[int, int, float]]:
    for scenarios in SCENARIOS:
        for seeds in SEEDS:
            for icc in ICCS if seeds > 1 else ICCS[:1]:
                yield scenarios, seeds, icc


def sizes(rng: np.random.Generator, simulations: int) -> Iterator[list[str]]:
    """Yield the lines of the table of sizes."""
    for scenarios, seeds, icc in _cells():
        if seeds == SEEDS[-1]:
            flips, pairs = size(rng, simulations, scenarios, seeds, icc)
            yield [str(scenarios), str(seeds), f"{icc:g}", f"{flips:.3f}", f"{pairs:.3f}"]


KINDS: dict[str, tuple[Callable[..., Drawn], float, stats.Bounds]] = {
    "share .5": (outcomes, 0.5, SHARE),
    "share .85": (outcomes, 0.85, SHARE),
    "share .03": (outcomes, 0.03, SHARE),
    "position .3": (places, 0.3, SHARE),
    "number": (numbers, 10.0, (None, None)),
    "count 2": (counted, 2.0, (0.0, None)),
    "turns 9": (turns, 9.0, TURNS),
    "turns 3": (turns, 3.0, TURNS),
}


PAIRS = ((0.5, 0.5), (0.3, 0.6), (0.02, 0.12), (9.0, 9.0), (12.0, 9.0), (5.0, 2.5))
"""Means of the two conditions of a paired difference: of shares, and of turns up to 20."""


USUAL = (12, 2, 0.5)
"""Scenarios, seeds and ICC of the mean width that the table of coverage shows."""
WANTED = 0.93


def coverages(rng: np.random.Generator, simulations: int) -> Iterator[list[str]]:
    """Yield the lines of the table of coverage, one for each kind of value and of paired difference."""
    found: dict[str, list[tuple[float, float, tuple[int, int, float]]]] = {}
    for cell in _cells():
        scenarios, seeds, icc = cell
        for kind, (draw, mean, bounds) in KINDS.items():
            number = max(mean, *(end or 0 for end in bounds)) > 1
            held, width = coverage(draw(rng, mean, icc, (simulations, scenarios, seeds)), mean, bounds, number)
            found.setdefault(kind, []).append((held, width, cell))
        for means in PAIRS:
            held, width = paired_coverage(rng, simulations, (scenarios, seeds), icc, means)
            found.setdefault(f"{means[0]:g} to {means[1]:g}", []).append((held, width, cell))
    for kind, cells in found.items():
        least, _, (scenarios, seeds, icc) = min(cells)
        short = sum(held < WANTED for held, _, _ in cells)
        width = next(width for _, width, cell in cells if cell == USUAL)
        place = f"{scenarios} x {seeds}, {icc:g}"
        yield [kind, f"{least:.3f}", place, f"{short} of {len(cells)}", f"{width:.2f}"]


def others(rng: np.random.Generator, simulations: int) -> Iterator[list[str]]:
    """Yield the lines of the table of hits beyond chance and of equivalence."""
    for scenarios in SCENARIOS:
        for icc in ICCS:
            hits = [excess_coverage(rng, simulations // 4, scenarios, icc, peeks) for peeks in (0.0, 0.5)]
            alike = equivalence_size(rng, simulations // 4, scenarios, icc)
            yield [str(scenarios), f"{icc:g}", *(f"{one:.3f}" for one in (*hits, *alike))]


def designs(rng: np.random.Generator, simulations: int) -> Iterator[list[str]]:
    """Yield the lines of the table of designs."""
    for icc in ICCS:
        for seeds in SEEDS:
            scenarios, power = achieved(rng, simulations, icc, seeds)
            yield [f"{icc:g}", str(seeds), str(scenarios), f"{power:.3f}"]


def text(simulations: int) -> str:
    """Return the page."""
    rng = np.random.default_rng(20261122)
    lines = [
        "# Statistics: error rates and coverage",
        "",
        f"Made by `scripts/check_stats.py`: {simulations} simulations a cell of sizes and designs, a quarter of that "
        "in the other tables. Scenarios have chances of their own with the intra-class correlation ICC; "
        "seeds are draws from them.",
        "",
        "## How often no difference is called one (p <= .05)",
        "",
        "Wanted: at most .055. The last column is a t-test that counts pairs as independent; localsim does not use it.",
        "",
        *table(["scenarios", "seeds", "ICC", "sign flips", "t over pairs"], sizes(rng, simulations)),
        "## How often a 95% interval holds the truth",
        "",
        f"Wanted: at least {WANTED}. The table has the least coverage over {len(list(_cells()))} cells (6, 12 and 45 "
        "scenarios, 1 to 5 seeds, ICC 0 to .9), how many cells are below the wanted one, and the mean width with "
        '12 scenarios, 2 seeds and an ICC of .5. "Turns" are between 2 and 20; "a to b" are paired differences. With a '
        "mean of 3 turns and an ICC of .5 or .9, nearly all conversations have 2 turns and a few have 20: with few "
        "scenarios they are not seen, and the interval is too short.",
        "",
        *table(
            ["value", "least coverage", "at scenarios x seeds, ICC", "below .93", "mean width"],
            coverages(rng, max(200, simulations // 4)),
        ),
        "## Hits beyond chance, and equivalence within .2",
        "",
        "Coverage at 0 and .5; how often a difference as large as the margin is called equivalent (wanted: at most "
        ".055), and how often no difference is (power; 5 seeds).",
        "",
        *table(["scenarios", "ICC", "excess 0", "excess .5", "at margin", "no difference"], others(rng, simulations)),
        "## Designs: stated for a power of .8 to find +.2, and reached",
        "",
        *table(["ICC", "seeds", "scenarios stated", "power reached"], designs(rng, simulations)),
    ]
    return "\n".join(lines)


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--simulations", type=int, default=4000)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "log" / "statistics.md")
    options = parser.parse_args()
    options.output.write_text(text(options.simulations), encoding="utf-8")
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
