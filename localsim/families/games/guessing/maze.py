"""The maze of LMRL-Gym (arXiv 2311.18232): a walker, and a guide who has the map.

The double-T maze is the one of the published code: 10 rows and 13 columns, with the goal at (8, 6). Each step costs 1,
the step onto the goal nothing, and whoever is not there after 100 steps has -101. From the 25 other cells the shortest
ways return -6.84 on average, which is the published best score. The normalised score is 50 for the mean of the
published data (-83), 0 for -101 and 100 for -6.84. LMRL-Gym takes 4 for an action that is none; here the grammar admits
no such line, and without a grammar the report counts it as malformed.
"""

from __future__ import annotations

import random
import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Table

Cell = tuple[int, int]
STEPS = 100
WORST, MEAN, BEST = -101.0, -83.0, -6.84
"""Return of who never arrives, mean of LMRL-Gym's data, and mean of the shortest ways."""
TURNS: Mapping[str, Cell] = {"up": (-1, 0), "right": (0, 1), "down": (1, 0), "left": (0, -1)}
"""Direction -> change of row and column, clockwise."""


@dataclass(frozen=True)
class Plan:
    """A maze: its ways in words, as the guide knows them, and its goal. All else is wall."""

    ways: str
    goal: Cell

    @cached_property
    def cells(self) -> frozenset[Cell]:
        """The free cells."""
        found: set[Cell] = set()
        for line, fixed, low, high in re.findall(r"(row|column) (\d+), (?:row|column)s (\d+) to (\d+)", self.ways):
            for place in range(int(low), int(high) + 1):
                found.add((int(fixed), place) if line == "row" else (place, int(fixed)))
        return frozenset(found)

    def step(self, cell: Cell, direction: str) -> Cell:
        """Return the cell after a step; the same one in front of a wall."""
        row, column = TURNS[direction]
        there = (cell[0] + row, cell[1] + column)
        return there if there in self.cells else cell

    def walls(self, cell: Cell) -> str:
        """Return the directions in which there are walls, in words."""
        return ", ".join(direction for direction in TURNS if self.step(cell, direction) == cell) or "none"

    def best(self, cell: Cell) -> str:
        """Return the first direction of a shortest way."""
        return min(TURNS, key=lambda direction: distances(self)[self.step(cell, direction)])


MAZES: Mapping[str, Plan] = {
    "double_t": Plan(
        "row 1, columns 1 to 5; row 1, columns 7 to 11; column 3, rows 1 to 5; column 9, rows 1 to 5; "
        "row 5, columns 3 to 9; column 6, rows 5 to 8",
        (8, 6),
    ),
    "u_shape": Plan("column 1, rows 1 to 3; row 1, columns 1 to 3; column 3, rows 1 to 3", (3, 3)),
}
"""The two mazes of LMRL-Gym: the one of the benchmark, and the small one of its code."""


@lru_cache(maxsize=64)
def distances(plan: Plan) -> Mapping[Cell, int]:
    """Return how many steps each cell is away from the goal, by breadth-first search."""
    found, waiting = {plan.goal: 0}, deque([plan.goal])
    while waiting:
        cell = waiting.popleft()
        for direction in TURNS:
            there = plan.step(cell, direction)
            if there not in found:
                found[there] = found[cell] + 1
                waiting.append(there)
    return found


def normalised(value: float) -> float:
    """Return a return on LMRL-Gym's scale: 0 for the worst, 50 for the mean of its data, 100 for the best mean."""
    return 50 * (value - WORST) / (MEAN - WORST) if value < MEAN else 50 + 50 * (value - MEAN) / (BEST - MEAN)


class Maze(Replayed):
    """A walker looks for the goal of a maze, and a guide who has the map gives advice."""

    name, version = "maze", "1"
    title = "A way through a maze"
    about = "A walker looks for the goal of a maze. A guide has the map, sees where the walker is, and gives advice."
    defaults = {
        "maze": "double_t",
        "steps": STEPS,
        "every": 4,
        "position": False,
        "start_row": 0,
        "start_column": 0,
    }
    allowed = {"maze": tuple(MAZES)}
    how = "Each step costs 1, the step onto the goal nothing. The normalised score is 100 for the shortest ways."
    tries = (
        "Compare -m scripted:silent-guide in agents and mindreaders: who reads the map needs no advice.",
        "In maze_alone nobody gives advice: how much does the walker lose?",
        "Play the walker yourself: localsim play maze_advice -m scripted:shortest-way",
    )
    bundled = {
        "advice": {"start_row": 1, "start_column": 1},
        "every_step": {"every": 1},
        "positions": {"position": True},
        "alone": {"every": 0, "position": True},
        "small": {"maze": "u_shape", "steps": 12, "start_row": 3, "start_column": 1, "every": 2},
    }
    interests = "cooperative"
    measures = (
        g.SUCCESS,
        g.mean("return", "return", "minus the steps before the one onto the goal", compared=True),
        g.mean("normalised", "normalised", "the return on the scale of LMRL-Gym", bounds=(0, None)),
        g.share("best_steps", "best steps", "share of steps that shorten the way"),
        g.share("bumps", "bumps", "share of steps against a wall"),
    )
    figure = ("success_rate", "return", "best_steps")
    references = (
        g.RANDOM,
        g.Reference("shortest-way", "optimal", "a shortest way, for a walker who sees the map or is told it"),
    )
    control_tasks = {
        "far corner": {"start_row": 1, "start_column": 1},
        "ten steps": {"steps": 10},
    }
    controls = (
        g.exactly("shortest-way", "success_rate", 1, "the guide knows the way"),
        g.exactly("shortest-way", "return", -11, "the goal is 12 steps away", "far corner"),
        g.exactly("shortest-way", "normalised", normalised(-11), "the goal is 12 steps away", "far corner"),
        g.exactly("shortest-way", "best_steps", 1, "each step is on a shortest way"),
        g.exactly("silent-guide", "return", -11, "the walker reads the map", "far corner", ("script", "mindreaders")),
        g.exactly("always-up", "success_rate", 0, "no way to the goal begins with up", "ten steps"),
        g.exactly("always-up", "return", -11, "ten steps, and the one that is not allowed any more", "ten steps"),
        g.exactly("always-up", "normalised", None, "the scale is that of 100 steps", "ten steps"),
        g.exactly("always-up", "best_steps", 0, "no step up shortens the way", "ten steps"),
        g.exactly("wall-follower", "success_rate", 1, "a maze without circles is walked through in 50 steps"),
        g.exactly("wall-follower", "bumps", 0, "it goes where no wall is"),
        g.between("any", "bumps", 0, 1, "it is a share", "ten steps"),
    )

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        (walker, guide), steps, every = names, chosen["steps"], chosen["every"]
        if steps < 1 or every < 0:
            raise g.InvalidInput("maze: steps is at least 1 and every at least 0")
        plan, start = MAZES[chosen["maze"]], (chosen["start_row"], chosen["start_column"])
        starts = sorted(plan.cells - {plan.goal})
        if start == (0, 0):
            start = random.Random(f"{self.name}/{seed}/start").choice(starts)
        if start not in starts:
            raise g.InvalidInput(f"maze: nobody can start at row {start[0]}, column {start[1]}")
        goal = f"The goal is at row {plan.goal[0]}, column {plan.goal[1]}."
        text = f"The ways are {plan.ways}. All else is wall. {goal} Rows count down, columns to the right."
        told = [
            f"{walker} looks for the goal of a maze, with at most {steps} steps up, down, left or right. {guide} has a "
            f"map and sees where {walker} is. A step against a wall changes nothing."
        ]
        if every:
            told.append(f"Before every {every} steps {guide} gives advice." if every > 1 else f"{guide} gives advice.")
        if chosen["position"]:
            told.append(f"{goal} Rows count down, columns to the right.")
        return Scene(
            title=f"{walker} looks for the way, and {guide} has the map",
            setting=" ".join(told),
            goal=("Reach the goal with as few steps as you can.", f"Help {walker}: say which steps come next."),
            secrets=[Secret(guide, "map", text, plan.ways)],
            talk=every > 0,
            moves=[g.can("go", "To take a step", g.one_of(*TURNS), by=walker, text="may")],
            public={"steps": steps, "every": every, "position": chosen["position"]},
            hidden={"maze": chosen["maze"], "start": list(start)},
            turns=steps + (-(-steps // every) if every else 0),
        )

    def play(self, table: Table) -> Course:
        public, (walker, guide), maze = table.public, table.names, table.game["maze"]
        plan, (row, column) = MAZES[maze], table.game["start"]
        cell, away = (row, column), distances(MAZES[maze])
        needed = away[cell]
        table.score("success", 0, reason="no step was taken")
        for taken in range(public["steps"]):
            where, walls = f"{walker} is at row {cell[0]}, column {cell[1]}.", f"Walls: {plan.walls(cell)}."
            if public["position"]:
                yield from table.tell(f"{where} {walls}", *cell)
            else:
                yield from table.tell(walls, to=[walker])
                yield from table.tell(where, *cell, to=[guide])
            if public["every"] and taken % public["every"] == 0:
                yield from table.act(guide, "speak")
            step = yield from table.act(walker, "go")
            there = plan.step(cell, step.value)
            table.mean("best_steps", away[there] < away[cell])
            table.mean("bumps", there == cell, [step] if there == cell else [])
            cell, arrived = there, there == plan.goal
            value = -taken if arrived else -taken - 2
            told = f"the goal was reached with {taken + 1} steps; {needed} are needed" if arrived else "nobody arrived"
            table.score("success", arrived, [step] if arrived else [], told)
            table.score("return", value, [step])
            if (maze, public["steps"]) == ("double_t", STEPS):
                table.score("normalised", normalised(value), [step])
            if arrived:
                yield from table.tell("The goal is reached.")
                return

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        best = _best(seen)
        return g.move("go", best) if best is not None and seen.may("go") else None


# ---- players -------------------------------------------------------------------------------------------------------


def _map(seen: g.Observation) -> tuple[Plan, Cell] | None:
    """Return the maze and where the walker is, if the viewer can see both."""
    ways = g.known(seen, "map", seen.agents[1].name)
    plan = next((plan for plan in MAZES.values() if plan.ways == ways), None)
    places = [turn.action.values for turn in seen.transcript.told if turn.action.values]
    return (plan, (int(places[-1][0]), int(places[-1][1]))) if plan is not None and places else None


def _best(seen: g.Observation) -> str | None:
    found = _map(seen)
    return found[0].best(found[1]) if found is not None else None


def _follow_wall(seen: g.Observation, rng: random.Random) -> g.Action:
    """Keep the right hand on the wall: right of the last step, else straight on, left, back."""
    walls = next(turn for turn in reversed(seen.transcript.told) if "Walls:" in turn.action.text).action.text
    closed = re.findall(r"up|down|left|right", walls.partition("Walls:")[2])
    order, steps = list(TURNS), seen.transcript.of("go")
    ahead = order.index(steps[-1].value) if steps else 0
    turned = [order[(ahead + turn) % 4] for turn in (1, 0, 3, 2)]
    return g.move("go", next(direction for direction in turned if direction not in closed))


def _advice(seen: g.Observation) -> str:
    """Return the next steps of a shortest way, as many as come before the next advice."""
    found = _map(seen)
    assert found is not None, "the guide sees map and place"
    plan, cell = found
    steps: list[str] = []
    while cell != plan.goal and len(steps) < seen.game["every"]:
        steps.append(plan.best(cell))
        cell = plan.step(cell, steps[-1])
    return f"Go {', '.join(steps)}."


def _shortest_way(seen: g.Observation, rng: random.Random) -> g.Action:
    """Take a shortest way, if map and place are visible; else the advised steps, else follow the wall. Guide well."""
    if seen.may("speak"):
        return g.Action("speak", _advice(seen))
    best = _best(seen)
    if best is not None:
        return g.move("go", best)
    said = [turn for turn in seen.transcript.of("speak") if turn.speaker == seen.agents[1].name]
    steps = re.findall(r"\b(?:up|down|left|right)\b", said[-1].action.text.casefold()) if said else []
    since = sum(turn.index > said[-1].index for turn in seen.transcript.of("go")) if said else 0
    return g.move("go", steps[since]) if since < len(steps) else _follow_wall(seen, rng)


@g.speaking("Good luck.")
def _silent_guide(seen: g.Observation, rng: random.Random) -> g.Action:
    """Walk like `shortest-way`, but give no advice."""
    return _shortest_way(seen, rng)


def _wall_follower(seen: g.Observation, rng: random.Random) -> g.Action:
    """Follow the wall, whatever the guide says."""
    return g.Action("speak", _advice(seen)) if seen.may("speak") else _follow_wall(seen, rng)


Maze.players = {
    "shortest-way": _shortest_way,
    "silent-guide": _silent_guide,
    "wall-follower": _wall_follower,
    "always-up": g.taking(g.move("go", "up"), g.Action("speak", "Go up.")),
}
Maze.sensible = "shortest-way"
