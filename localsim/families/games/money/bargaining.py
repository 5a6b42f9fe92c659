"""Bargaining over a shrinking sum, with offers in turn (GLEE, arXiv 2410.05254; Rubinstein 1982).

In odd rounds the first player proposes a division, in even rounds the second. Each further round leaves a player only
a part of the value. Payoffs are p * keep_1^(t-1) and (1-p) * keep_2^(t-1), where p is the first player's part of the
sum in the accepted offer of round t; without an agreement both get nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.money.glee import TOLD_UP_TO, turn_limit
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Table


class Bargaining(Replayed):
    """Two people divide a sum, with offers in turn, while it loses value."""

    name, version = "bargaining", "1"
    title = "Dividing a shrinking sum"
    about = "Two people propose in turn how to divide a sum of money, which loses value from round to round."
    defaults = {
        "money": 100,
        "rounds": 12,
        "keep_1": 0.9,
        "keep_2": 0.9,
        "informed": True,
        "talk": True,
    }
    how = (
        "Payoffs are parts of the sum: what a player gets, times what each round left of it. Efficiency is the sum of "
        "both, and fairness is 1 for equal halves."
    )
    tries = (
        "Compare -m scripted:optimal with -m scripted:half: who wins more, and who loses time?",
        "In a scenario in which each knows only the own loss, compare agents with mindreaders.",
    )
    bundled = {
        "patient": {"keep_1": 0.95, "keep_2": 0.95},
        "uneven": {"keep_1": 0.9, "keep_2": 0.8},
        "hidden": {"keep_1": 0.8, "keep_2": 0.95, "informed": False},
        "silent": {"talk": False},
        "one_round": {"rounds": 1},
    }
    interests = "competitive"
    measures = (
        g.SUCCESS,
        g.PAYOFF,
        g.mean("efficiency", "efficiency", "what both win together, in parts of the sum", compared=True),
        g.share("fairness", "fairness", "1 for equal halves, 0 if one side gets all"),
        g.mean("rounds", "rounds", "rounds up to the agreement", bounds=(1, None)),
    )
    opened = "keeps"
    figure = ("payoff", "efficiency", "fairness")
    references = (
        g.RANDOM,
        g.Reference(
            "optimal",
            "optimal",
            "offers what waiting is worth (backward induction), and takes a hidden loss to be its own",
        ),
    )
    control_tasks = {"one round": {"rounds": 1}}
    controls = (
        g.exactly("half", "success_rate", 1, "half is offered and taken"),
        g.exactly("half", "fairness", 1, "both get half"),
        g.exactly("half", "efficiency", 1, "they agree in the first round"),
        g.exactly("half", "rounds", 1, "they agree in the first round"),
        g.exactly("half", "payoff", 0.5, "both get half"),
        g.exactly("refuser", "success_rate", 0, "nobody accepts"),
        g.exactly("refuser", "efficiency", 0, "the sum is lost"),
        g.exactly("refuser", "payoff", 0, "the sum is lost"),
        g.exactly("refuser", "fairness", None, "nothing is divided"),
        g.exactly("optimal", "efficiency", 1, "the first offer is just good enough"),
        g.exactly("optimal", "rounds", 1, "the first offer is just good enough"),
        g.exactly("optimal", "fairness", 0, "who proposes last gets everything", "one round"),
        g.between("any", "efficiency", 0, 1, "it is a part of the sum"),
    )

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        (first, second), money, rounds = names, chosen["money"], chosen["rounds"]
        keeps = {first: chosen["keep_1"], second: chosen["keep_2"]}
        secrets = [
            Secret(name, "keeps", f"Each further round leaves {name} {100 * keep:.4g}% of the value.", keep)
            for name, keep in keeps.items()
        ]
        parts = [
            f"{first} and {second} divide ${money}. They propose in turn, {first} first, and the other accepts or "
            "refuses. Without an agreement both get nothing."
        ]
        if rounds <= TOLD_UP_TO:
            parts.append(f"There are at most {rounds} rounds.")
        if chosen["informed"]:
            parts += [secret.text for secret in secrets]
        else:
            parts.append(
                "From round to round the money loses value, and each knows only how much it loses for himself."
            )
        said = "may" if chosen["talk"] else "no"
        return Scene(
            title=f"{first} and {second} divide ${money}",
            setting=" ".join(parts),
            goal="Get as much money as you can.",
            secrets=secrets,
            moves=(
                g.can("offer", "To propose how many dollars you keep yourself", g.number(0, money), text=said),
                g.can("accept", "To accept the proposal"),
                g.can("reject", "To refuse the proposal", text=said),
            ),
            public={"money": money, "rounds": rounds},
            hidden={"keep": list(keeps.values())},
            turns=turn_limit(rounds),
        )

    def play(self, table: Table) -> Course:
        first, second = table.names
        table.score("success", 0, reason="they did not agree")
        table.score("efficiency", 0)
        table.each("payoff", {first: 0, second: 0})
        for number in range(table.public["rounds"]):
            proposer, other = (second, first) if number % 2 else (first, second)
            yield from table.tell(f"Round {number + 1}. {proposer} proposes.")
            offer = yield from table.act(proposer, "offer")
            answer = yield from table.act(other, "accept", "reject")
            if answer.action.type == "accept":
                kept, (keep_1, keep_2) = offer.number / table.public["money"], table.game["keep"]
                part = kept if proposer == first else 1 - kept
                gains = {first: part * keep_1**number, second: (1 - part) * keep_2**number}
                told = g.listed([f"{who} {gain:.3g}" for who, gain in gains.items()])
                table.score("success", 1, reason=f"they agreed in round {number + 1}: {told}")
                table.score("efficiency", sum(gains.values()))
                table.score("fairness", 1 - 4 * (part - 0.5) ** 2)
                table.score("rounds", number + 1)
                table.each("payoff", gains)
                table.cite(offer, answer)
                return


@lru_cache(maxsize=1024)
def least_parts(money: int, rounds: int, keep: tuple[float, float]) -> tuple[int, ...]:
    """Return how many dollars the answering player must be offered in each round, by backward induction.

    In the last round nothing. Before, as much as waiting for the own proposal is worth: with whole dollars, rounded up.
    """
    least = [0] * rounds
    for number_ in range(rounds - 2, -1, -1):
        answering = (number_ + 1) % 2
        waiting = (money - least[number_ + 1]) * keep[answering]
        least[number_] = min(money, int(-(-round(waiting, 6) // 1)))
    return tuple(least)


def _equilibrium(seen: g.Observation, rng: random.Random) -> g.Action:
    """Offer just enough, and accept what is as good as waiting; a loss that is hidden is taken to be the own one."""
    money, rounds = seen.game["money"], seen.game["rounds"]
    names = [agent.name for agent in seen.agents]
    own = float(g.known(seen, "keeps") or 1)
    keep = tuple(own if name == seen.viewer else float(g.known(seen, "keeps", name) or own) for name in names)
    offers = seen.transcript.of("offer")
    least = least_parts(money, rounds, (keep[0], keep[1]))
    if seen.may("offer"):
        return g.move("offer", money - least[len(offers)])
    enough = money - offers[-1].number >= least[len(offers) - 1]
    return g.move("accept") if enough else g.move("reject")


def _half(seen: g.Observation, rng: random.Random) -> g.Action:
    """Offer half, and accept half or more."""
    money = seen.game["money"]
    if seen.may("offer"):
        return g.move("offer", money // 2)
    return g.move("accept") if seen.transcript.of("offer")[-1].number <= money - money // 2 else g.move("reject")


def _refuser(seen: g.Observation, rng: random.Random) -> g.Action:
    return g.move("offer", seen.game["money"]) if seen.may("offer") else g.move("reject")


Bargaining.players = {"half": _half, "optimal": _equilibrium, "refuser": _refuser}
Bargaining.sensible = "optimal"
