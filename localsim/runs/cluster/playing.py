"""A run on a cluster: ready workers get episodes; what they send goes through the assignments to the recorder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from localsim.backends.open import is_file, models_of, physical_cores
from localsim.conversation.episode import EpisodeSpec
from localsim.runs.cluster.assignments import Assignments
from localsim.runs.cluster.crew import Crew, Member, Notify, Staff, gathered
from localsim.runs.cluster.messages import News, Orders
from localsim.runs.plan import Plan
from localsim.runs.preview import needs_of
from localsim.runs.scheduler import Summary, Work

Identities = Mapping[str, Mapping[str, Any]]


@contextmanager
def players(
    address: str, plan: Plan, specs: Sequence[EpisodeSpec], say: Notify, identities: Identities
) -> Iterator[Players]:
    """Give the workers that will play `specs`, some episodes of a plan.

    `identities` are those of the models of a run that is resumed, else empty. Raises the errors of `gathered`.
    """
    orders = orders_of(plan, specs, identities)
    known = {name: each["sha256"] for name, each in identities.items() if name in orders.models and is_file(name)}
    with gathered(address, orders, say, known) as crew:
        yield Players(crew)


def orders_of(plan: Plan, specs: Sequence[EpisodeSpec], identities: Identities | None = None) -> Orders:
    """Return the orders for some episodes of a plan; one spec of each kind decides the context, as all would.

    llama.cpp's results depend on the number of threads. So under `exact` every worker has those of this machine, or
    those of the run that is resumed, whose models have `identities`.
    """
    kinds = {(spec.scenario.hash, spec.mode, spec.variant, spec.grants): spec for spec in plan.specs()}
    needs = replace(needs_of(plan, 1), specs=[replace(spec, rules=None) for spec in kinds.values()])
    if plan.repro == "exact" and plan.threads is None:
        before = [each["threads"] for each in (identities or {}).values() if each.get("threads")]
        needs = replace(needs, threads=before[0] if before else physical_cores())
    return Orders(tuple(models_of(specs)), needs, plan.parallel, len(specs))


class Players(Staff):
    """A cluster as the place of a run (`runner.Place`); its crew plays one run."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self.identities: Identities = crew.identities
        """The identity of each model on the first worker."""
        self.parallel = crew.parallel
        """Episodes at a time on the first worker."""
        self._running: dict[str, int] = {}
        """Tokens of the episodes in progress, by the name of each worker that plays."""
        self._stopping = False

    def simulate(self, work: Work) -> Summary:
        """Let the crew play until everything has ended, or every worker has stopped."""
        self._run_id, self._assignments = work.run_id, Assignments(work)
        work.watcher.begins(work.specs)
        self._crew.begin(self)
        while not self._assignments.done:
            self._stopping = self._stopping or work.should_stop()
            if self._stopping and not self._running:
                break
            self._crew.turn()
        self._assignments.summary.stopped = not self._assignments.done
        return self._assignments.summary

    def ready(self, member: Member) -> None:
        if not self._stopping:
            self._running[member.name] = 0
            self._crew.call(member, member.actor.play.remote(self._run_id), self._begun)

    def lost(self, member: Member) -> int:
        self._running.pop(member.name, None)
        return self._assignments.lose(member.name)

    def _begun(self, member: Member, _none: None) -> None:
        self._exchange(member, 0)

    def _exchange(self, member: Member, ended: int) -> None:
        tasks = (
            [] if self._stopping else self._assignments.take(member.name, member.parallel, ended, len(self._running))
        )
        self._crew.call(member, member.actor.exchange.remote(tasks, self._stopping), self._heard)

    def _heard(self, member: Member, news: News) -> None:
        ended = self._assignments.hear(member.name, news.events)
        self._running[member.name] = news.running
        self._assignments.tell(sum(self._running.values()))
        if ended:
            self._crew.advance(member.place)
        if news.error:
            self._crew.lose(member, news.error)
        elif news.over:
            del self._running[member.name]
        else:
            self._exchange(member, ended)
