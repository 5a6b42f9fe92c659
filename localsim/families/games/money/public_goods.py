"""A public good: each gives a part of an endowment into a pot, which is multiplied and shared equally, again and again.

In each round a player wins  endowment - own gift + factor / n * (sum of all gifts).  With 1 < factor < n it is best for
one player to give nothing, and best for all together to give everything. The default numbers (four players, 20 points,
0.4 points for each point in the pot) and those of punishment (1 point spent takes 3 away) are the ones of Fehr and
Gächter, Altruistic punishment in humans, Nature 415 (2002), 137-140.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from localsim.families.games import base as g

TAKES = 3
"""The points that one point of punishment takes away from the one who is punished."""
MOST = 10
"""The most points of punishment for one person in one round."""


class PublicGoods(g.Game):
    """Some people give to a common pot at the same time, in several rounds, and may punish each other."""

    name, version = "public_goods", "1"
    title = "A pot for everybody"
    about = (
        "In each round everybody gives some points into a pot, at the same time. The pot is multiplied and shared "
        "equally, also with those who gave nothing."
    )
    defaults = {
        "players": 4,
        "endowment": 20,
        "factor": 1.6,
        "rounds": 10,
        "punishment": False,
        "talk": False,
    }
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
        g.Measure("points", "points", "points of a player, summed over the rounds", "points", compared=True),
        g.Measure("payoff", "payoff", "points of a player in a round, in endowments", "payoff", compared=True),
        g.Measure(
            "contribution", "given", "share of the endowment that is given", "contribution", kind="share", compared=True
        ),
        g.Measure("efficiency", "efficiency", "what all win, in parts of the most that all can win", "efficiency"),
        g.Measure("trend", "trend", "share that is given in the last round, less that of the first", "trend"),
        g.Measure("spent", "punishment", "points that a player spends on punishment in a round", "spent"),
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

    def generate(self, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> g.ScenarioFile:
        """Return a scenario: how many people, their endowment, the factor, the rounds, and what is allowed."""
        chosen = g.merged(self.defaults, parameters, self.name)
        self._check(chosen)
        names = g.names_of(self, seed, chosen["players"])
        return self.scenario(
            scenario_id,
            seed,
            chosen,
            title=f"{g.listed(names) if len(names) <= 4 else f'{len(names)} people'} share a pot",
            setting=_setting(names, chosen),
            agents=tuple(g.Agent(name=name, goal="Win as many points as you can.") for name in names),
            talk=chosen["talk"],
            moves=_moves(chosen),
            public={key: value for key, value in chosen.items() if key != "players"},
            turns=_turns(chosen),
        )

    def _check(self, chosen: Mapping[str, Any]) -> None:
        """Raise InvalidInput for parameters that make no such game."""
        g.within(self, chosen, "players", 2, 30)
        g.within(self, chosen, "endowment", 1, 1000)
        g.within(self, chosen, "rounds", 1, 100)
        if not 1 < chosen["factor"] < chosen["players"]:
            raise g.InvalidInput(
                f"{self.name}: factor = {chosen['factor']:g} leaves no conflict between one player and all",
                hint=f"above 1 and below the number of players, {chosen['players']}",
            )
        g.within(self, {"turns": _turns(chosen)}, "turns", 1, 5000)

    def step(self, scenario: g.Scenario, talk: g.Transcript, seed: int) -> g.Next:
        """Words if allowed; then in each round all give, and all may punish; after each the result is told."""
        public, names = scenario.game["public"], scenario.names
        spoken, stages = len(talk.of("speak")), 1 + public["punishment"]
        if public["talk"] and spoken < len(names):
            return g.act(names[spoken], "speak")
        done = len(talk.told)
        if (len(talk.acts) - spoken) // len(names) > done:
            return _result(scenario, talk, done // stages + 1, punished=done % stages == 1)
        if done == stages * public["rounds"]:
            return g.DONE
        return g.act(names, "punish", "spare") if done % stages else g.act(names, "give")

    def score(self, transcript: g.Transcript, scenario: g.Scenario, answer: g.AnswerKey) -> list[g.Score]:
        """Return points and gifts of each player, and the efficiency and trend of all."""
        public, names = scenario.game["public"], scenario.names
        endowment, gifts = public["endowment"], transcript.of("give")
        rounds = len(gifts) // len(names)
        if not rounds:
            return []
        won, spent = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
        for place in range(rounds):
            for name, points in _earned(scenario, gifts[place * len(names) :][: len(names)]).items():
                won[name] += points
        for turn in transcript.of("punish"):
            for name, points in _lost(turn).items():
                won[name] -= points
            spent[turn.speaker] += turn.number * (len(turn.action.values or ()) - 1)
        given = {name: _own(gifts, name) for name in names}
        everything = endowment * rounds
        parts = {name: sum(turn.number for turn in own) / everything for name, own in given.items()}
        told = g.listed([f"{name} gave {100 * part:.0f}%" for name, part in parts.items()])
        first, last = (sum(turn.number for turn in some) for some in (gifts[: len(names)], gifts[-len(names) :]))
        return [
            *(g.Score("contribution", part, agent=name, turns=tuple(turn.index for turn in given[name]))
              for name, part in parts.items()),
            g.Score("efficiency", sum(won.values()) / (everything * len(names) * public["factor"]), reason=told),
            *([g.Score("trend", (last - first) / (endowment * len(names)))] if rounds > 1 else []),
            *g.by_agent("points", won),
            *g.by_agent("payoff", {name: points / everything for name, points in won.items()}),
            *(g.by_agent("spent", {name: points / rounds for name, points in spent.items()})
              if public["punishment"] else []),
        ]  # fmt: skip

    def verdict(self, scores: Mapping[str, g.Score], answer: g.AnswerKey) -> g.Verdict | None:
        """Return what each gave, in words; no outcome is right or wrong."""
        return g.Verdict(None, f"{scores['efficiency'].reason}.") if "efficiency" in scores else None


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


def _moves(chosen: Mapping[str, Any]) -> tuple[g.Move, ...]:
    gives = g.Move(name="give", values=(g.number(0, chosen["endowment"]),), text="no", tell="To give points")
    several = (g.number(1, MOST), g.Param(agents="several"))
    punishes = g.Move(name="punish", values=several, text="no", tell="To spend points on punishing each whom you name")
    spares = g.Move(name="spare", text="no", tell="To punish nobody")
    return (gives, punishes, spares) if chosen["punishment"] else (gives,)


def _turns(chosen: Mapping[str, Any]) -> int:
    stages = 1 + chosen["punishment"]
    return int(chosen["players"] * (stages * chosen["rounds"] + chosen["talk"]))


def _earned(scenario: g.Scenario, gifts: Sequence[g.Turn]) -> dict[str, float]:
    """Return what each wins in a round with these gifts."""
    public = scenario.game["public"]
    each = public["factor"] * sum(turn.number for turn in gifts) / len(scenario.names)
    return {turn.speaker: public["endowment"] - turn.number + each for turn in gifts}


def _lost(turn: g.Turn) -> dict[str, float]:
    """Return what one punishment costs: the one who punishes, and those who are punished."""
    named = (turn.action.values or ())[1:]
    return {turn.speaker: turn.number * len(named), **dict.fromkeys(named, TAKES * turn.number)}


def _result(scenario: g.Scenario, talk: g.Transcript, number_: int, *, punished: bool) -> g.Tell:
    """Return what is told after all have given, or after all may have punished."""
    names, newest = scenario.names, talk.acts[-len(scenario.names) :]
    if punished:
        lost = dict.fromkeys(names, 0.0)
        for turn in newest:
            for name, points in _lost(turn).items() if turn.action.type == "punish" else ():
                lost[name] += points
        losses = [f"{name} loses {g.amount(points)}" for name, points in lost.items() if points]
        text = f"Punishment in round {number_}: {g.listed(losses) or 'nobody is punished'}."
        return g.Tell(text, values=tuple(g.amount(-points) for points in lost.values()))
    won = _earned(scenario, newest)
    pot = sum(turn.number for turn in newest)
    each = g.amount(scenario.game["public"]["factor"] * pot / len(names))
    lines = [f"{turn.speaker} gave {turn.value}, won {g.amount(won[turn.speaker])}" for turn in newest]
    text = f"Round {number_}: the pot of {g.amount(pot)} brings {each} to each. {'; '.join(lines)}."
    return g.Tell(text, values=tuple(g.amount(won[name]) for name in names))


# ---- players -------------------------------------------------------------------------------------------------------


def _own(gifts: Sequence[g.Turn], name: str) -> list[g.Turn]:
    return [turn for turn in gifts if turn.speaker == name]


def _gifts(seen: g.Observation) -> dict[str, list[int]]:
    """Return the gifts of each player in the rounds whose result was told."""
    rounds = -(-len(seen.transcript.told) // (1 + seen.game["punishment"]))
    gifts = seen.transcript.of("give")
    return {agent.name: [int(turn.number) for turn in _own(gifts, agent.name)][:rounds] for agent in seen.agents}


def _player(part: float, after: float | None, punishes: str = "") -> g.Player:
    """Return a player that first gives a part of the endowment, and then so much of the others' average gift.

    `after` None: always the same part. `punishes`: `less` who gave less than itself, `all` everybody, '' nobody.
    """

    def play(seen: g.Observation, rng: random.Random) -> g.Action:
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

    return play


def _deterred(seen: g.Observation, rng: random.Random) -> g.Action:
    """Give nothing, and everything after having been punished; punish nobody."""
    punished = any(seen.viewer in (turn.action.values or ())[1:] for turn in seen.transcript.of("punish"))
    return _player(1 if punished else 0, None)(seen, rng)


PublicGoods.players = {
    "free-rider": _player(0, None),
    "full-contributor": _player(1, None),
    "conditional": _player(1, 1),
    "grudging": _player(1, 0.8),
    "punisher": _player(1, None, "less"),
    "spiteful": _player(0, None, "all"),
    "deterred": _deterred,
}
PublicGoods.sensible = "conditional"
