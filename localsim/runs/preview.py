"""The cost of a run before it starts: episodes at a time, memory, minutes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from localsim.backends.open import Needs, is_file, memory_plans, models_of
from localsim.machine.forecast import Forecast, forecast_on
from localsim.runs.plan import Plan
from localsim.store.database import Store

MOST_PARALLEL = 8
"""Most episodes at a time with `-j auto`; on two cores more bring little."""


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
    """Return the number of episodes at a time: as requested, else as many as fit into memory, up to MOST_PARALLEL."""
    return as_many_as_fit(needs_of(plan, 1), plan.parallel, len(plan.specs()), say)


def as_many_as_fit(needs: Needs, asked: int | None, episodes: int, say: Callable[[str], None]) -> int:
    """Return the number of episodes at a time, of so many; `asked` is the requested number, or None."""
    if asked is not None:
        return max(1, min(asked, episodes))
    wanted = parallel = min(MOST_PARALLEL, episodes)
    while parallel > 1 and not _fits(replace(needs, sequences=parallel)):
        parallel //= 2
    if parallel < wanted:
        say(f"-j auto: {parallel} at a time instead of {wanted}, for lack of memory (a smaller --ctx makes room)")
    return parallel


def _fits(needs: Needs) -> bool:
    plans = memory_plans(needs)
    return not plans or sum(plan.wanted for plan in plans) <= plans[0].free


def minutes(plan: Plan, parallel: int, store: Store) -> Forecast | None:
    """Measure the model and forecast the minutes; None unless one model on this machine writes all text."""
    needs = needs_of(plan, parallel)
    names = models_of(needs.specs)
    if len(names) != 1 or not is_file(names[0]) or not _fits(needs):
        return None
    return forecast_on(names[0], needs, store)
