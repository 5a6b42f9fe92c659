"""Eliciting a linear program (OptimouseQuest, arXiv 2401.17461): one knows the numbers, the other asks for them.

A workshop makes products x >= 0 from a stock of materials: maximise c x, with A x <= b. The owner knows c, A and b as
facts; the analyst asks for one number at a time and then states all of them. Recall is the share of numbers that are
stated right. As all numbers are stated, precision is equal to recall. Optimum: what the plan that is best by the stated
numbers earns by the true ones, in parts of the true optimum, and 0 if the stock does not suffice for it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Table

PRODUCTS = ("chair", "table", "lamp", "shelf", "bench", "stool", "desk", "bed")
MATERIALS = ("wood", "paint", "metal", "cloth", "glue", "wire")
NUMBERS, STOCK = (1, 9), (20, 99)
"""Least and greatest number that can be stated; true ones are above the least, so that stating the least is wrong."""


class LinearProgram(Replayed):
    """One elicits the numbers of a linear program from the other."""

    name, version = "linear_program", "1"
    title = "Eliciting a linear program"
    about = "An analyst asks the owner of a workshop for the numbers of a production plan, and states the whole model."
    defaults = {"products": 2, "materials": 2, "spare": 2, "talk": True}
    how = (
        "Success is a model without an error. Recall is the share of numbers that are right, and optimum what the plan "
        "that is best by the stated numbers really earns, in parts of the best plan."
    )
    tries = (
        "Compare agents with mindreaders, who can state the model at once.",
        "Compare -m scripted:asker with -m scripted:half: what do wrong numbers cost?",
        "Play the owner yourself: localsim play linear_program_plain --with scripted",
    )
    bundled = {
        "plain": {},
        "one_material": {"materials": 1},
        "large": {"products": 3, "materials": 3},
        "no_spare": {"spare": 0},
        "silent": {"talk": False},
    }
    interests = "cooperative"
    measures = (
        g.SUCCESS,
        g.share("recall", "recall", "share of numbers that are stated right", compared=True),
        g.share("optimum", "optimum", "what the stated plan earns, of the most possible"),
        g.mean("rounds", "turns", "turns of the analyst up to the model", bounds=(1, None), compared=True),
        g.share("repeats", "repeated", "share of questions that were asked before"),
        g.share("truthful", "true answers", "share of answers that are the number asked for"),
    )
    figure = ("success_rate", "recall", "optimum")
    references = (
        g.RANDOM,
        g.Reference("omniscient", "optimal", "asks once for each number that is not seen, and states all of them"),
    )
    controls = (
        g.exactly("asker", "success_rate", 1, "all numbers are asked for"),
        g.exactly("asker", "recall", 1, "all numbers are asked for"),
        g.exactly("asker", "optimum", 1, "the model is the true one"),
        g.exactly("asker", "rounds", 9, "eight questions and the model"),
        g.exactly("asker", "repeats", 0, "each number is asked for once"),
        g.exactly("asker", "truthful", 1, "the owner says the number"),
        g.exactly("half", "recall", 0.5, "four of eight numbers are asked for, the others are wrong"),
        g.exactly("guesser", "recall", 0, "no true number is the least one"),
        g.exactly("guesser", "rounds", 1, "nothing is asked"),
        g.exactly("liar", "recall", 0, "each answer is wrong by one"),
        g.exactly("liar", "truthful", 0, "each answer is wrong by one"),
        g.exactly("never-states", "optimum", 0, "no model is stated"),
        g.exactly("never-states", "repeats", 3 / 11, "three of eleven questions come again"),
        g.exactly("omniscient", "rounds", 1, "the numbers are known", modes=("script", "mindreaders")),
        g.exactly("omniscient", "rounds", 9, "eight questions and the model", modes=("agents",)),
        g.exactly("omniscient", "recall", 1, "the numbers are known or asked for"),
    )

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        if not (1 <= chosen["products"] <= 4 and 1 <= chosen["materials"] <= 4 and chosen["spare"] >= 0):
            raise g.InvalidInput("linear_program: products 1 to 4, materials 1 to 4, spare 0 or more")
        (analyst, owner), rng = names, random.Random(f"{self.name}/{seed}")
        products, materials = rng.sample(PRODUCTS, chosen["products"]), rng.sample(MATERIALS, chosen["materials"])
        slots = slots_of(products, materials)
        values = {slot: rng.randint(low + 1, high) for slot, (low, high) in slots.items()}
        said, rounds = "may" if chosen["talk"] else "no", len(slots) + 1 + chosen["spare"]
        stated = (g.number(low, high) for low, high in slots.values())
        return Scene(
            title=f"{analyst} writes down the production plan of {owner}",
            setting=(
                f"{owner} has a workshop, and the plan with the most profit is wanted. In each of {rounds} turns at "
                f"most {analyst} asks for one number, and {owner} answers, or {analyst} states all numbers, which ends "
                f"it. The numbers in their order: {'; '.join(slots)}."
            ),
            goal=("State all numbers right, after few questions.", "Answer truly."),
            secrets=[
                Secret(owner, f"number_{n}", f"The {slot} is {value}.", value)
                for n, (slot, value) in enumerate(values.items())
            ],
            talk=chosen["talk"],
            moves=(
                g.can("ask", "To ask for a number", g.one_of(*slots), by=analyst, text=said),
                g.can("state", "To state all numbers in their order, which ends it", *stated, by=analyst),
                g.can("answer", "To say it", g.number(NUMBERS[0], STOCK[1]), by=owner, text=said),
            ),
            public={"products": products, "materials": materials, "talk": chosen["talk"], "rounds": rounds},
            turns=2 * rounds,
        )

    def play(self, table: Table) -> Course:
        (analyst, owner), public = table.names, table.public
        true = [int(fact.terms[0]) for fact in table.scenario.agents[1].facts]
        slots = list(slots_of(public["products"], public["materials"]))
        words, asked = ("speak",) if public["talk"] else (), list[str]()
        table.score("success", 0, reason="no model was stated")
        table.score("recall", 0)
        table.score("optimum", 0)
        for number in range(1, public["rounds"] + 1):
            turn = yield from table.act(analyst, "ask", "state", *words)
            if turn.action.type == "state":
                model = [int(value) for value in turn.values]
                recall = sum(a == b for a, b in zip(model, true, strict=True)) / len(true)
                gained = part_of_optimum(model, true, len(public["products"]))
                told = f"{recall:.0%} of the numbers are right, and the plan earns {gained:.0%} of the optimum"
                table.score("success", recall == 1, [turn], told)
                table.score("recall", recall, [turn])
                table.score("optimum", gained, [turn])
                table.score("rounds", number, [turn])
                return
            if turn.action.type == "ask":
                asked.append(turn.value)
                table.score("repeats", 1 - len(set(asked)) / len(asked))
                answer = yield from table.act(owner, "answer")
                table.mean("truthful", int(answer.value) == true[slots.index(turn.value)], [answer])
            else:
                yield from table.act(owner, *words)

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        owner = g.others(seen)[0]
        if not seen.may("state") or g.known(seen, "number_0", owner) is None:
            return None
        return g.move("state", *(g.known(seen, f"number_{n}", owner) for n in range(len(_slots(seen)))))


def slots_of(products: Sequence[str], materials: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return the numbers of a program by name, in their order, with the least and the greatest value of each."""
    slots = {f"profit of a {product}": NUMBERS for product in products}
    for material in materials:
        slots.update({f"{material} for a {product}": NUMBERS for product in products})
        slots[f"{material} in stock"] = STOCK
    return slots


def solution(numbers: Sequence[int], products: int) -> tuple[list[float], float]:
    """Return the best plan of a program and what it earns."""
    from scipy.optimize import linprog  # slow to import

    profits, uses, stock = _program(numbers, products)
    found = linprog([-profit for profit in profits], A_ub=uses, b_ub=stock)
    return [float(each) for each in found.x], -float(found.fun)


def part_of_optimum(stated: Sequence[int], true: Sequence[int], products: int) -> float:
    """Return what the plan that is best by stated numbers earns by the true ones, in parts of the true optimum."""
    plan, _ = solution(stated, products)
    profits, uses, stock = _program(true, products)
    needed = [sum(a * x for a, x in zip(row, plan, strict=True)) for row in uses]
    if any(use > limit + 1e-6 for use, limit in zip(needed, stock, strict=True)):
        return 0.0
    earned = sum(c * x for c, x in zip(profits, plan, strict=True))
    return min(1.0, earned / solution(true, products)[1])


def _program(numbers: Sequence[int], products: int) -> tuple[list[int], list[list[int]], list[int]]:
    rows = [list(numbers[start : start + products + 1]) for start in range(products, len(numbers), products + 1)]
    return list(numbers[:products]), [row[:-1] for row in rows], [row[-1] for row in rows]


# ---- players -------------------------------------------------------------------------------------------------------


def _slots(seen: g.Observation) -> dict[str, tuple[int, int]]:
    return slots_of(seen.game["products"], seen.game["materials"])


def _answer(seen: g.Observation) -> g.Action:
    """Say the number that is asked for."""
    if not seen.may("answer"):
        return g.Action("speak", "Please ask for the numbers.")
    place = list(_slots(seen)).index(seen.transcript.of("ask")[-1].value)
    return g.move("answer", g.known(seen, f"number_{place}"))


def _asking(seen: g.Observation, rng: random.Random, *, share: float = 1) -> g.Action:
    """Ask for a share of the numbers, and state the least possible ones for the others."""
    if not seen.may("state"):
        return _answer(seen)
    slots, asked = _slots(seen), [turn.value for turn in seen.transcript.of("ask")]
    if len(asked) < int(share * len(slots)):
        return g.move("ask", list(slots)[len(asked)])
    told = dict(zip(asked, (int(turn.value) for turn in seen.transcript.of("answer")), strict=True))
    return g.move("state", *(min(max(told.get(slot, low), low), high) for slot, (low, high) in slots.items()))


def _liar(seen: g.Observation, rng: random.Random) -> g.Action:
    """Say one less than the number that is asked for."""
    action = _asking(seen, rng)
    return g.move("answer", int((action.values or ())[0]) - 1) if action.type == "answer" else action


def _never_states(seen: g.Observation, rng: random.Random) -> g.Action:
    slots = list(_slots(seen))
    return g.move("ask", slots[len(seen.transcript.of("ask")) % len(slots)]) if seen.may("ask") else _answer(seen)


LinearProgram.players = {
    "asker": _asking,
    "half": partial(_asking, share=0.5),
    "guesser": partial(_asking, share=0),
    "liar": _liar,
    "never-states": _never_states,
}
LinearProgram.sensible = "asker"
