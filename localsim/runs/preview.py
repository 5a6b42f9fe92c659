"""The cost of a run before it starts: episodes at a time, memory, minutes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from localsim import paths
from localsim.backends.open import Needs, is_file, layers_of, memory_plans, models_of, physical_cores
from localsim.machine import throughput
from localsim.machine.forecast import Forecast, forecast_on
from localsim.machine.throughput import Curve
from localsim.models.mixtures import parts_of
from localsim.runs.plan import Plan
from localsim.store.database import Store


@dataclass(frozen=True)
class Preview:
    """What a plan comes to; its fields are those of `run --dry-run --json`."""

    scenarios: Sequence[str]
    modes: Sequence[str]
    see: Sequence[str]
    models: Sequence[str]
    variants: int
    episodes: int
    turns_at_most: int
    seed: int
    repro: str
    parallel: int
    primary: str
    secondary: Sequence[str]
    memory: Sequence[str]
    """One line for each model."""
    lanes: Mapping[str, Curve]
    """Model -> its remembered curve of conversations at a time."""
    forecast: Forecast | None

    def as_json(self) -> dict[str, Any]:
        """The object that `run --dry-run --json` prints."""
        lanes = {name: curve.as_json() for name, curve in self.lanes.items()}
        return {**vars(self), "lanes": lanes, "forecast": vars(self.forecast) if self.forecast else None}


def preview(plan: Plan, store: Store, say: Callable[[str], None]) -> Preview:
    """Measure what a plan needs, without simulating anything."""
    specs, parallel = plan.specs(), side_by_side(plan, say)
    needs = needs_of(plan, parallel)
    return Preview(
        scenarios=[loaded.scenario.id for loaded in plan.scenarios],
        modes=plan.modes,
        see=plan.see,
        models=sorted({model for spec in specs for model in spec.models.values()}),
        variants=max(1, plan.perturb),
        episodes=len(specs),
        turns_at_most=sum(spec.scenario.limits.turns for spec in specs),
        seed=plan.seed,
        repro=plan.repro,
        parallel=parallel,
        primary=plan.primary,
        secondary=plan.secondary,
        memory=[str(each) for each in memory_plans(needs)],
        lanes=curves(needs),
        forecast=minutes(plan, parallel, store),
    )


def needs_of(plan: Plan, parallel: int) -> Needs:
    """Return the needs of a plan that runs so many episodes at a time."""
    return Needs(
        sequences=parallel,
        specs=plan.specs(),
        context=plan.context,
        threads=plan.threads,
        gpu=plan.gpu,
        repro=plan.repro,
        overflow=plan.overflow,
    )


def side_by_side(plan: Plan, say: Callable[[str], None]) -> int:
    """Return the number of episodes at a time: as requested, else as many as pay and fit into memory."""
    return as_many_as_fit(needs_of(plan, 1), plan.parallel, len(plan.specs()), say)


def as_many_as_fit(needs: Needs, asked: int | None, episodes: int, say: Callable[[str], None]) -> int:
    """Return the number of episodes at a time, of so many; `asked` is the requested number, or None."""
    if asked is not None:
        return max(1, min(asked, episodes))
    wanted = parallel = min(_that_pay(needs, episodes, say), episodes)
    while parallel > 1 and not _fits(replace(needs, sequences=parallel)):
        parallel //= 2
    if parallel < wanted:
        say(f"-j auto: {parallel} at a time instead of {wanted}, for lack of memory (a smaller --ctx makes room)")
    return parallel


def _that_pay(needs: Needs, episodes: int, say: Callable[[str], None]) -> int:
    """Return how many episodes at a time pay, by the measured curves of the models; the fewest of several models.

    LOCALSIM_LANES sets the number. Nothing is measured for USUAL episodes or fewer, and under `exact`, which decodes
    one at a time.
    """
    if chosen := paths.lanes_override():
        return chosen
    files = [needs.file_of(part) for name in models_of(needs.specs) for part in filter(is_file, parts_of(name))]
    if not files or episodes <= throughput.USUAL or needs.repro == "exact" or not _fits(needs):
        return throughput.USUAL
    threads = needs.threads or physical_cores()
    found = [throughput.curve_of(file, threads, layers_of(file, needs.gpu), say) for file in files]
    return min(curve.best for curve in found)


def curves(needs: Needs) -> dict[str, Curve]:
    """Return the curves that are remembered of the models of `needs`, by model; nothing is measured."""
    parts = {part for name in models_of(needs.specs) for part in filter(is_file, parts_of(name))}
    files = {part: needs.file_of(part) for part in sorted(parts)}
    threads = needs.threads or physical_cores()
    found = {part: throughput.remembered(file, threads, layers_of(file, needs.gpu)) for part, file in files.items()}
    return {part: curve for part, curve in found.items() if curve is not None}


def _fits(needs: Needs) -> bool:
    plans = memory_plans(needs)
    if not plans:
        return True
    on_device = sum(plan.on_device for plan in plans)
    return sum(plan.wanted for plan in plans) <= plans[0].free and on_device <= plans[0].device_free


def minutes(plan: Plan, parallel: int, store: Store) -> Forecast | None:
    """Measure the model and forecast the minutes; None unless one model on this machine writes all text."""
    needs = needs_of(plan, parallel)
    names = models_of(needs.specs)
    if len(names) != 1 or not is_file(names[0]) or not _fits(needs):
        return None
    return forecast_on(names[0], needs, store)
