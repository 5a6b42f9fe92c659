"""The stages of a study that simulate: each is recognised by its plan, so a study continues where it stopped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from localsim.errors import Interrupted, InvalidInput
from localsim.evaluators.evaluate import OpenPanel
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.runs.scheduler import Watcher
from localsim.store.database import Store
from localsim.store.queries.runs import runs_of_plan
from localsim.study.design import Study

Notify = Callable[[str], None]
Watch = Callable[[str, int], AbstractContextManager[Watcher]]
"""A function from the title and the number of episodes of a stage to its watcher."""


def unwatched(_title: str, _episodes: int) -> AbstractContextManager[Watcher]:
    """Watch nothing."""
    return nullcontext(Watcher())


def silent(_value: Any) -> None:
    """Drop a message."""


@dataclass(frozen=True)
class Session:
    """A study under way: its database, and those who follow it."""

    study: Study
    store: Store
    say: Notify = silent
    watch: Watch = unwatched
    training: Callable[[Any], None] = field(default=silent)
    """Receives the `finetune.trainer.Progress` of each step."""
    cluster: str | None = None
    """The address of a Ray cluster that plays the episodes and judges."""

    @property
    def panel(self) -> OpenPanel | None:
        """Where judges work: on the cluster; None means in this process."""
        if self.cluster is None:
            return None
        from localsim.runs.cluster.judging import panel_on

        return panel_on(self.cluster)

    def stage(self, title: str, plan: Plan) -> str:
        """Simulate a plan, search it for leaks, and return the run's id; an earlier run is reused or resumed.

        Runs by other model files or prompts than the present ones are ignored.
        """
        episodes, earlier = len(plan.specs()), _last_alike(plan, self.store)
        self.say(f"== {title}: {episodes} episodes")
        played = partial(runner.start, plan) if earlier is None else partial(runner.resume, earlier)
        with self.watch(title, episodes) as watcher:  # a complete run is only scored
            done = played(self.store, watcher, self.say, leaks=True, cluster=self.cluster)
        if done.summary.stopped or not done.in_database:
            raise Interrupted("stopped before the end", hint="repeat the command to continue the study")
        return done.run_id


def _last_alike(plan: Plan, store: Store) -> str | None:
    """Return the newest run of a plan by the present model file and prompts."""
    if not store.path.exists():
        return None
    store.take_in_leftovers()
    for row in runs_of_plan(store, plan.stored_forms()):
        with suppress(InvalidInput):
            runner.refuse_other_conditions(row, plan)
            return str(row["run_id"])
    return None
