"""A balanced sample of castings: every person takes part about equally often, and no pair comes twice in a situation.

The paper plays 90 scenarios with 5 pairs each, 450 tasks (arXiv 2403.05020). The sample depends on the situations, the
people, their relations and the seed, and on nothing else.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from localsim.scenarios.casting.cast import castings
from localsim.scenarios.casting.people import Person, Relations
from localsim.scenarios.casting.situations import Situation

MOST = 1000
"""So many castings of a situation are considered."""


@dataclass(frozen=True)
class Task:
    """One casting of one situation."""

    situation: str
    number: int
    """Number of the casting, from 1."""
    people: tuple[str, ...]
    """Ids in the order of the roles."""

    @property
    def reference(self) -> str:
        """The name by which commands know it, such as `the_ferry_home@3`."""
        return f"{self.situation}@{self.number}"


@dataclass(frozen=True)
class Sample:
    """The tasks of a sample, and what could not be had."""

    tasks: tuple[Task, ...]
    """By situation, then by number."""
    missing: Mapping[str, int]
    """Situation -> castings that it lacks, because too few people suit it."""
    spread: float
    """The greatest distance of a person's number of tasks from the mean."""


def sample(
    situations: Sequence[Situation], people: Mapping[str, Person], relations: Relations, pairs: int, seed: int
) -> Sample:
    """Return `pairs` castings of each situation, drawn so that everybody takes part about equally often.

    Situations with few castings choose first. Then single castings are exchanged as long as this makes the numbers of
    tasks more equal; with enough people every number is within one of the mean.
    """
    rng = random.Random(f"sample/{seed}")
    pool = {each.id: _tasks(each, people, relations) for each in situations}
    load: Counter[str] = Counter(dict.fromkeys(people, 0))
    chosen: dict[str, list[Task]] = {}
    for name in sorted(pool, key=lambda each: (len(pool[each]), each)):
        chosen[name] = []
        for _ in range(min(pairs, len(pool[name]))):
            free = [task for task in pool[name] if task not in chosen[name]]
            free = rng.sample(free, len(free))
            best = min(
                free, key=lambda task: (max(load[who] for who in task.people), sum(load[w] for w in task.people))
            )
            chosen[name].append(best)
            load.update(best.people)
    while _exchange(pool, chosen, load):
        pass
    tasks = sorted((task for each in chosen.values() for task in each), key=lambda task: (task.situation, task.number))
    mean = sum(load.values()) / max(1, len(load))
    missing = {name: pairs - len(tasks_) for name, tasks_ in sorted(chosen.items()) if len(tasks_) < pairs}
    return Sample(tuple(tasks), missing, max((abs(each - mean) for each in load.values()), default=0.0))


def _tasks(situation: Situation, people: Mapping[str, Person], relations: Relations) -> list[Task]:
    groups = castings(situation, people, relations)[:MOST]
    return [Task(situation.id, number, group) for number, group in enumerate(groups, start=1)]


def _exchange(pool: Mapping[str, list[Task]], chosen: dict[str, list[Task]], load: Counter[str]) -> bool:
    """Make one exchange that makes the loads more equal; return False if there is none."""
    ranked = sorted(load, key=lambda who: (-load[who], who))
    heavy = [who for who in ranked if load[who] > load[ranked[-1]] + 1]
    for who in heavy:
        for name, old, new in _exchanges(pool, chosen, who):
            if _gain(old, new, load) > 0:
                chosen[name][chosen[name].index(old)] = new
                load.subtract(old.people)
                load.update(new.people)
                return True
    return False


def _exchanges(
    pool: Mapping[str, list[Task]], chosen: Mapping[str, list[Task]], who: str
) -> Iterator[tuple[str, Task, Task]]:
    """Yield (situation, task of a person, free task without the person)."""
    for name, tasks in chosen.items():
        for old in tasks:
            if who in old.people:
                yield from ((name, old, new) for new in pool[name] if who not in new.people and new not in tasks)


def _gain(old: Task, new: Task, load: Counter[str]) -> int:
    """Return by how much the sum of squared loads falls; who is in both tasks changes nothing."""
    falls = sum(2 * load[who] - 1 for who in old.people if who not in new.people)
    return falls - sum(2 * load[who] + 1 for who in new.people if who not in old.people)
