"""A public good: each gives a part of an endowment into a pot, which is multiplied and shared equally, again and again.

In each round a player wins  endowment - own gift + factor / n * (sum of all gifts).  With 1 < factor < n it is best for
one player to give nothing, and best for all together to give everything. The default numbers (four players, 20 points,
0.4 points for each point in the pot) and those of punishment (1 point spent takes 3 away) are the ones of Fehr and
Gächter, Altruistic punishment in humans, Nature 415 (2002), 137-140.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Table

TAKES = 3
"""The points that one point of punishment takes away from the one who is punished."""
MOST = 10
"""The most points of punishment for one person in one round."""

Points = Mapping[str, float]


class PublicGoods(Replayed):
    """Some people give to a common pot at the same time, in several rounds, and may punish each other."""

    name, version = "public_goods", "1"
    title = "A pot for everybody"
    about = (
        "In each round everybody gives some points into a pot, at the same time. The pot is multiplied and shared "
        "equally, also with those who gave nothing."
    )
    protocol = ("together",)
    defaults = {
        "players": 4,
        "endowment": 20,
        "factor": 1.6,
        "rounds": 10,
        "punishment": False,
        "talk": False,
    }
    number_of_agents = "players"
    allowed = {"players": (2, 30), "endowment": (1, 1000), "rounds": (1, 100)}
    outcome = "efficiency"
    how = (
        "Who gives nothing wins more than the others in each round, but all win most if all give everything. "
        "Efficiency is what all win, in parts of that."
    )
    tries = (
        "Compare -m scripted:full-contributor with -m scripted:free-rider: what does each win?",
        "Let -m scripted:grudging play, and watch how the gifts shrink from round to round.",
        "Compare public_goods_four with public_goods_punishment: do models pay to punish free riders?",
    )
    bundled = {
        "four": {},
        "punishment": {"punishment": True},
        "talk": {"talk": True},
        "two": {"players": 2, "factor": 1.5, "rounds": 5},
        "ten": {"players": 10, "factor": 3.0, "rounds": 5},
    }
    measures = (
        g.mean("points", "points", "points of a player, summed over the rounds", compared=True),
        g.mean("payoff", "payoff", "points of a player in a round, in endowments", compared=True),
        g.share("contribution", "given", "share of the endowment that is given", compared=True),
        g.mean("efficiency", "efficiency", "what all win, in parts of the most that all can win"),
        g.mean("trend", "trend", "share that is given in the last round, less that of the first"),
        g.mean("spent", "punishment", "points that a player spends on punishment in a round"),
    )
    figure = ("payoff", "contribution", "efficiency")
    references = (
        g.RANDOM,
        g.Reference("free-rider", "selfish", "the best play for each alone: it gives nothing", blind=True),
        g.Reference("full-contributor", "generous", "gives everything: all together win most", blind=True),
    )
    control_tasks = {"punishment": {"punishment": True, "rounds": 2}}
    controls = (
        g.exactly("free-rider", "payoff", 1, "everybody keeps the endowment"),
        g.exactly("free-rider", "contribution", 0, "nobody gives"),
        g.exactly("free-rider", "efficiency", 0.625, "20 of the 32 points that all could win"),
        g.exactly("free-rider", "points", 200, "20 points in each of 10 rounds"),
        g.exactly("free-rider", "spent", None, "nobody can punish"),
        g.exactly("full-contributor", "payoff", 1.6, "the endowment is multiplied by 1.6"),
        g.exactly("full-contributor", "points", 320, "32 points in each of 10 rounds"),
        g.exactly("full-contributor", "efficiency", 1, "everybody gives everything"),
        g.exactly("full-contributor", "trend", 0, "always the same"),
        g.exactly("conditional", "contribution", 1, "nobody begins to give less"),
        g.exactly("grudging", "trend", -0.95, "20, 16, 12, 9, 7, 5, 4, 3, 2, 1"),
        g.exactly("punisher", "spent", 0, "nobody gives less than the others", "punishment"),
        g.exactly("spiteful", "spent", 3, "one point for each of three others", "punishment"),
        g.exactly("spiteful", "payoff", 0.4, "20 - 3 points spent - 9 taken away", "punishment"),
    )

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        if not 1 < chosen["factor"] < len(names):
            raise g.InvalidInput(
                f"{self.name}: factor = {chosen['factor']:g} leaves no conflict between one player and all",
                hint=f"above 1 and below the number of players, {len(names)}",
            )
        turns = len(names) * ((1 + chosen["punishment"]) * chosen["rounds"] + chosen["talk"])
        g.check_values(self.name, {"turns": turns}, {"turns": (1, 5000)})
        several = (g.number(1, MOST), g.Param(agents="several"))
        punishing = (
            g.can("punish", "To spend points on punishing each whom you name", *several),
            g.can("spare", "To punish nobody"),
        )
        return Scene(
            title=f"{g.listed(names) if len(names) <= 4 else f'{len(names)} people'} share a pot",
            setting=_setting(names, chosen),
            goal="Win as many points as you can.",
            moves=(
                g.can("give", "To give points", g.number(0, chosen["endowment"])),
                *(punishing if chosen["punishment"] else ()),
            ),
            talk=chosen["talk"],
            public={key: value for key, value in chosen.items() if key != "players"},
            turns=turns,
        )

    def play(self, table: Table) -> Course:
        public, names = table.public, table.names
        gifts: list[g.Turn] = []
        won, lost, spent = (dict.fromkeys(names, 0.0) for _ in range(3))
        if public["talk"]:
            yield from table.speak(*names)
        for number in range(1, public["rounds"] + 1):
            newest = yield from table.together(names, "give")
            gifts += newest
            pot = sum(turn.number for turn in newest)
            each = public["factor"] * pot / len(names)
            earned = {turn.speaker: public["endowment"] - turn.number + each for turn in newest}
            won = {name: points + earned[name] for name, points in won.items()}
            self._state(table, gifts, {name: won[name] - lost[name] for name in names}, spent)
            lines = [f"{turn.speaker} gave {turn.value}, won {g.amount(earned[turn.speaker])}" for turn in newest]
            text = f"Round {number}: the pot of {g.amount(pot)} brings {g.amount(each)} to each. {'; '.join(lines)}."
            yield from table.tell(text, *map(g.amount, earned.values()))
            if public["punishment"]:
                now = dict.fromkeys(names, 0.0)
                for turn in (yield from table.together(names, "punish", "spare")):
                    for name in turn.values[1:]:
                        now[name] += TAKES * turn.number
                        now[turn.speaker] += turn.number
                        spent[turn.speaker] += turn.number
                lost = {name: points + now[name] for name, points in lost.items()}
                self._state(table, gifts, {name: won[name] - lost[name] for name in names}, spent)
                losses = [f"{name} loses {g.amount(points)}" for name, points in now.items() if points]
                text = f"Punishment in round {number}: {g.listed(losses) or 'nobody is punished'}."
                yield from table.tell(text, *(g.amount(-points) for points in now.values()))

    def _state(self, table: Table, gifts: Sequence[g.Turn], points: Points, spent: Points) -> None:
        """State points and gifts of each player, and the efficiency and trend of all."""
        given = {name: gifts[place :: len(points)] for place, name in enumerate(points)}
        rounds = len(gifts) // len(points)
        everything = table.public["endowment"] * rounds
        parts = {name: sum(turn.number for turn in own) / everything for name, own in given.items()}
        for name, part in parts.items():
            table.score("contribution", part, given[name], agent=name)
        told = g.listed([f"{name} gave {100 * part:.0f}%" for name, part in parts.items()])
        best = everything * len(points) * table.public["factor"]
        table.score("efficiency", sum(points.values()) / best, reason=told)
        if rounds > 1:
            first, last = (sum(own[place].number for own in given.values()) for place in (0, -1))
            table.score("trend", (last - first) / (table.public["endowment"] * len(points)))
        table.each("points", points)
        table.each("payoff", {name: each / everything for name, each in points.items()})
        if table.public["punishment"]:
            table.each("spent", {name: each / rounds for name, each in spent.items()})


def _setting(names: Sequence[str], chosen: Mapping[str, Any]) -> str:
    each, points = ("both", "They") if len(names) == 2 else (f"all {len(names)}", "All")
    parts = [
        f"{g.listed(list(names))} each get {chosen['endowment']} points in each of {chosen['rounds']} rounds. {points} "
        "choose at the same time how many of them to give into a pot, and keep the rest. The pot is multiplied by "
        f"{chosen['factor']:g} and shared equally among {each}."
    ]
    if chosen["punishment"]:
        parts.append(
            "After each round everybody can punish others. Each point of punishment costs 1 point and takes "
            f"{TAKES} points away from the one who is punished."
        )
    if chosen["talk"]:
        parts.append("Before the first round each says something.")
    return " ".join(parts)


# ---- players -------------------------------------------------------------------------------------------------------


def _gifts(seen: g.Observation) -> dict[str, list[int]]:
    """Return the gifts of each player in the rounds whose result was told."""
    rounds = -(-len(seen.transcript.told) // (1 + seen.game["punishment"]))
    gifts, names = seen.transcript.of("give"), [agent.name for agent in seen.agents]
    return {name: [int(turn.number) for turn in gifts if turn.speaker == name][:rounds] for name in names}


def _player(
    seen: g.Observation, rng: random.Random, *, part: float, after: float | None = None, punishes: str = ""
) -> g.Action:
    """Give a part of the endowment at first, and then so much of the others' average gift.

    `after` None: always the same part. `punishes`: `less` who gave less than itself, `all` everybody, '' nobody.
    """
    if seen.may("speak"):
        return g.Action("speak", "Let us all give everything." if part else "I keep what I have.")
    gifts, endowment = _gifts(seen), seen.game["endowment"]
    own, theirs = gifts[seen.viewer], {name: gifts[name] for name in g.others(seen)}
    if seen.may("give"):
        first = after is None or not own
        average = sum(given[-1] for given in theirs.values()) / len(theirs) if own else 0
        return g.move("give", int(part * endowment if first else round(average * (after or 0), 6)))
    named = [name for name, given in theirs.items() if punishes == "all" or given[-1] < own[-1]]
    gain = endowment * (1 - seen.game["factor"] / len(seen.agents))
    points = 1 if punishes == "all" else min(MOST, int(gain / TAKES) + 1)
    return g.move("punish", points, *named) if punishes and named else g.move("spare")


def _deterred(seen: g.Observation, rng: random.Random) -> g.Action:
    """Give nothing, and everything after having been punished; punish nobody."""
    punished = any(seen.viewer in turn.values[1:] for turn in seen.transcript.of("punish"))
    return _player(seen, rng, part=1 if punished else 0)


PublicGoods.players = {
    "free-rider": partial(_player, part=0),
    "full-contributor": partial(_player, part=1),
    "conditional": partial(_player, part=1, after=1),
    "grudging": partial(_player, part=1, after=0.8),
    "punisher": partial(_player, part=1, punishes="less"),
    "spiteful": partial(_player, part=0, punishes="all"),
    "deterred": _deterred,
}
PublicGoods.sensible = "conditional"
