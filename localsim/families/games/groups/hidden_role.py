"""A game of hidden roles, as Werewolf or Mafia (Migdal, arXiv 1009.1031): wolves know each other, villagers do not.

By day all talk, then vote at the same time, and who has most votes is out. By night the wolves choose a villager, who
is out. If everybody votes at random, each player who is left is equally likely to be voted out, so the wolves win with
w(n, k) = k/n w'(n-1, k-1) + (n-k)/n w'(n-1, k) by day, and by night a villager is taken away. `wolves_win` computes
this exactly. Where the game goes on until one side is gone, a single wolf of n players wins with (n-1)!! / n!!.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from localsim.families.games import base as g

DAY, NIGHT, WOLVES, SEEN = "day", "night", "wolves", "seen"


@lru_cache(maxsize=1024)
def wolves_win(players: int, wolves: int, *, day: bool = True, parity: bool = True) -> Fraction:
    """Return the probability that the wolves win if everybody plays at random; `day`: the next step is a vote."""
    side = _winner(players - wolves, wolves, parity=parity)
    if side:
        return Fraction(side == "wolves")
    if not day:
        return wolves_win(players - 1, wolves, day=True, parity=parity)
    caught = Fraction(wolves, players)
    return caught * wolves_win(players - 1, wolves - 1, day=False, parity=parity) + (1 - caught) * wolves_win(
        players - 1, wolves, day=False, parity=parity
    )


def _winner(villagers: int, wolves: int, *, parity: bool) -> str:
    """Return the side that has won; '' while the game goes on."""
    if wolves == 0:
        return "villagers"
    return "wolves" if villagers == 0 or (parity and wolves >= villagers) else ""


class HiddenRole(g.Game):
    """A village looks for the wolves among its own people."""

    name, version = "hidden_role", "1"
    title = "Wolves in the village"
    about = "Some people are wolves and know each other; the others must find them by talking and voting."
    defaults = {
        "players": 7,
        "wolves": 2,
        "seer": False,
        "rounds": 1,
        "first": DAY,
        "ends": "parity",
        "reveal": True,
    }
    how = (
        "The villagers win when no wolf is left. The wolves win when they are as many as the others, or in some "
        "scenarios when nobody else is left. The payoff is 1 for all on the side that wins, also for those who are out."
    )
    tries = (
        "Compare -m scripted:any with the known chances: wolves_win(7, 2) in the module of the game.",
        "Let mindreaders play: with all roles open, how long do the wolves survive?",
        "Give the village a seer (hidden_role_seer). Do the villagers believe the seer?",
    )
    bundled = {
        "seven": {},
        "five": {"players": 5, "wolves": 1},
        "seer": {"seer": True, "first": NIGHT},
        "to_the_last": {"players": 5, "wolves": 1, "ends": "last", "rounds": 2},
        "nine": {"players": 9, "wolves": 2, "first": NIGHT, "reveal": False},
    }
    interests = "competitive"
    measures = (
        g.Measure("village_won", "village wins", "share of games that the villagers win", "village_won", "share",
                "episodes", compared=True),
        g.PAYOFF,
        g.Measure("aim", "wolves named", "share of the villagers' votes that are against a wolf", "aim", kind="share",
                compared=True),
        g.Measure("caught", "wolves caught", "share of the wolves that are voted out", "caught", kind="share"),
        g.Measure("days", "days", "votes until the game is over", "days", bounds=(0, None)),
    )  # fmt: skip
    figure = ("village_won", "aim", "caught")
    references = (
        g.RANDOM,
        g.Reference("omniscient", "loyal", "votes for the other side as far as it knows it; optimal play is not known"),
    )
    control_tasks = {"one wolf": {"players": 5, "wolves": 1}}
    controls = (
        g.by_chance("any", "village_won", float(1 - wolves_win(7, 2)), "everybody votes at random"),
        g.by_chance("any", "village_won", float(1 - wolves_win(5, 1)), "everybody votes at random", "one wolf"),
        g.by_chance("any", "caught", float(1 - wolves_win(5, 1)), "the only wolf is caught if they win", "one wolf"),
        g.between("any", "aim", 0, 1, "some votes are against wolves by chance"),
        g.between("any", "days", 1, 3, "each day and night takes two of seven"),
        g.exactly("omniscient", "village_won", 1, "they vote for a wolf each day", modes=g.OMNISCIENT),
        g.exactly("omniscient", "aim", 1, "they vote for a wolf each day", modes=g.OMNISCIENT),
        g.exactly("omniscient", "caught", 1, "they vote for a wolf each day", modes=g.OMNISCIENT),
        g.exactly("omniscient", "days", 2, "there are two wolves", modes=g.OMNISCIENT),
        g.exactly("omniscient", "payoff", 5 / 7, "five of seven are villagers", modes=g.OMNISCIENT),
    )

    def generate(self, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> g.ScenarioFile:
        """Return a village: who is a wolf, and who the seer is, if there is one."""
        chosen = _checked(g.merged(self.defaults, parameters, self.name))
        names, count = g.names_of(self, seed, chosen["players"]), chosen["wolves"]
        drawn = random.Random(f"{self.name}/{seed}/roles").sample(names, count + 1)
        roles = {name: "wolf" if name in drawn[:count] else "villager" for name in names}
        if chosen["seer"]:
            roles[drawn[count]] = "seer"
        wolves = tuple(name for name in names if roles[name] == "wolf")
        moves = [
            g.Move(name="vote", values=(g.ONE_AGENT,), text="no", tell="To vote who is out"),
            g.Move(name="kill", values=(g.ONE_AGENT,), text="no", readers="self", by=wolves, tell="To vote by night"),
        ]
        if chosen["seer"]:
            moves.append(
                g.Move(name="look", values=(g.ONE_AGENT,), text="no", readers="self", by=(drawn[count],),
                     tell="To look at the role of somebody")
            )  # fmt: skip
        return self.scenario(
            scenario_id,
            seed,
            chosen,
            title=f"{len(names)} people, {_counted(count, 'wolf', 'wolves')}",
            setting=_setting(names, chosen),
            agents=tuple(
                g.Agent(
                    name=name,
                    goal="Let the wolves win. Do not be found out." if role == "wolf" else "Find the wolves.",
                    facts=(g.private(name, "role", f"{name} is {_a(role)}.", role),),
                )
                for name, role in roles.items()
            ),
            talk=chosen["rounds"] > 0,
            moves=tuple(moves),
            public={name: chosen[name] for name in ("rounds", "first", "ends", "reveal", "wolves")},
            turns=_most_acts(chosen),
            answer={"wolves": list(wolves)},
        )

    def step(self, scenario: g.Scenario, talk: g.Transcript, seed: int) -> g.Next:
        """The wolves are told of each other; then days and nights follow until a side has won."""
        public, roles = scenario.game["public"], _roles(scenario)
        if not talk.told:
            pack = [name for name, role in roles.items() if role == "wolf"]
            text = f"The wolves are {g.listed(pack)}." if len(pack) > 1 else f"{pack[0]} is the only wolf."
            return g.Tell(text, readers=tuple(pack), values=(WOLVES, *pack))
        ended = _ended(talk)
        if ended and ended[-1].action.values and ended[-1].action.values[3]:
            return g.DONE
        since = talk.turns[ended[-1].index + 1 :] if ended else talk.turns[1:]
        left = _left(scenario.names, talk)
        nights_first = public["first"] == NIGHT
        if len(ended) % 2 == int(nights_first):
            return self._day(scenario, left, since, len(ended) // 2 + 1, seed)
        return self._night(scenario, left, since, len(ended) // 2 + 1, seed)

    def _day(
        self, scenario: g.Scenario, left: Sequence[str], since: Sequence[g.Turn], number: int, seed: int
    ) -> g.Next:
        acts = [turn for turn in since if not turn.told]
        talking = len(left) * scenario.game["public"]["rounds"]
        if len(acts) < talking:
            return g.act(left[len(acts) % len(left)], "speak")
        if len(acts) == talking:
            return g.act(left, "vote", named=left)
        votes = [turn.value for turn in acts[talking:]]
        out = _most_named(votes, left, g.chance(seed, DAY, number))
        told = f"Day {number}: {out} is voted out with {_counted(votes.count(out), 'vote', 'votes')}"
        return _out(scenario, DAY, told, out, left)

    def _night(
        self, scenario: g.Scenario, left: Sequence[str], since: Sequence[g.Turn], number: int, seed: int
    ) -> g.Next:
        roles = _roles(scenario)
        villagers = [name for name in left if roles[name] != "wolf"]
        wolves = [name for name in left if roles[name] == "wolf"]
        kills = [turn.value for turn in since if turn.action.type == "kill"]
        if not kills:
            return g.act(wolves, "kill", named=villagers)
        seer = next((name for name in villagers if roles[name] == "seer"), None)
        if seer is not None:
            looked = [turn.value for turn in since if turn.action.type == "look"]
            if not looked:
                return g.act(seer, "look", named=left)
            if not since[-1].told:
                role = "wolf" if roles[looked[0]] == "wolf" else "no wolf"
                told = f"{looked[0]} is {'a wolf' if role == 'wolf' else 'no wolf'}."
                return g.Tell(told, readers=(seer,), values=(SEEN, looked[0], role))
        out = _most_named(kills, villagers, g.chance(seed, NIGHT, number))
        return _out(scenario, NIGHT, f"Night {number}: the wolves kill {out}", out, left)

    def score(self, transcript: g.Transcript, scenario: g.Scenario, answer: g.AnswerKey) -> list[g.Score]:
        """Return who won, the payoff of each, how the villagers' votes fell, and how many days it took."""
        ended, roles = _ended(transcript), _roles(scenario)
        winner = ended[-1].action.values[3] if ended and ended[-1].action.values else ""
        if not winner:
            return []
        cited, days = (ended[-1].index,), [turn for turn in ended if turn.value == DAY]
        caught = sum((turn.action.values or ())[2] == "wolf" for turn in days)
        paid = {name: float((role == "wolf") == (winner == "wolves")) for name, role in roles.items()}
        votes = [turn for turn in transcript.of("vote") if roles[turn.speaker] != "wolf"]
        scores = [
            g.Score("village_won", float(winner == "villagers"), reason=f"the {winner} won", turns=cited),
            g.Score("caught", caught / len(answer.answer["wolves"]), turns=tuple(turn.index for turn in days)),
            g.Score("days", float(len(days)), turns=cited),
            *g.by_agent("payoff", paid, cited),
        ]
        if votes:
            hits = [turn.index for turn in votes if roles[turn.value] == "wolf"]
            scores.append(g.Score("aim", len(hits) / len(votes), turns=tuple(hits)))
        return scores

    def side(self, agent: str, answer: g.AnswerKey) -> str:
        """Return `wolf` or `village`."""
        return "wolf" if agent in answer.answer.get("wolves", ()) else "village"

    def verdict(self, scores: Mapping[str, g.Score], answer: g.AnswerKey) -> g.Verdict | None:
        """Return who won and after how many votes, and who the wolves were."""
        won, days = scores.get("village_won"), scores.get("days")
        if won is None or days is None or days.value is None:
            return None
        votes = _counted(int(days.value), "vote", "votes")
        said = f"{'The villagers' if won.value else 'The wolves'} won after {votes}."
        return g.Verdict(None, said, f"Wolves: {g.listed(list(answer.answer['wolves']))}.")

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        """Use all roles; None if those of others are not known."""
        return _loyal(seen, rng) if g.known(seen, "role", g.others(seen)[0]) is not None else None


def _checked(chosen: dict[str, Any]) -> dict[str, Any]:
    """Return parameters if they are possible. Raises InvalidInput."""
    players, wolves = chosen["players"], chosen["wolves"]
    allowed = {"players": (3, 12), "rounds": (0, 5), "first": (DAY, NIGHT), "ends": ("parity", "last")}
    g.check_values("hidden_role", chosen, allowed)
    villagers = players - wolves - (chosen["first"] == NIGHT)
    if wolves < 1 or villagers < 0 or _winner(villagers, wolves, parity=chosen["ends"] == "parity"):
        raise g.InvalidInput(f"hidden_role: {wolves} wolves of {players} end the game before a vote")
    return chosen


def _setting(names: Sequence[str], chosen: Mapping[str, Any]) -> str:
    seer = chosen["seer"]
    return (
        f"{g.listed(names)} play a game. {_counted(chosen['wolves'], 'player is a wolf', 'players are wolves')}, "
        f"{'one is the seer, ' if seer else ''}and each other one is a villager. By day they talk, then all who are in "
        "the game vote at the same time, and who has most votes is out; a tie is drawn by lot. By night the wolves "
        f"vote in this way about the others. {'The seer looks at one role each night. ' if seer else ''}The "
        "villagers win when no wolf is left. The wolves win when "
        f"{'they are as many as the others' if chosen['ends'] == 'parity' else 'nobody else is left'}. The game "
        f"begins by {chosen['first']}."
    )


def _most_acts(chosen: Mapping[str, Any]) -> int:
    """Return the most acts that a game can have."""
    left, total, day = chosen["players"], 0, chosen["first"] == DAY
    while left > 1:
        total += left * (chosen["rounds"] + 1) if day else chosen["wolves"] + chosen["seer"]
        left, day = left - 1, not day
    return total


def _a(role: str) -> str:
    return "the seer" if role == "seer" else f"a {role}"


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _roles(scenario: g.Scenario) -> dict[str, str]:
    return {agent.name: agent.facts[0].terms[0] for agent in scenario.agents}


def _ended(talk: g.Transcript) -> list[g.Turn]:
    """Return the turns in which somebody is out; their values are day or night, the name, the role and the winner."""
    return [turn for turn in talk.told if turn.value in (DAY, NIGHT)]


def _left(names: Sequence[str], talk: g.Transcript) -> list[str]:
    out = {(turn.action.values or ())[1] for turn in _ended(talk)}
    return [name for name in names if name not in out]


def _most_named(named: Sequence[str], order: Sequence[str], rng: random.Random) -> str:
    """Return who is named most often; a tie is drawn by lot."""
    counts = Counter(named)
    return rng.choice([name for name in order if counts[name] == max(counts.values())])


def _out(scenario: g.Scenario, when: str, told: str, out: str, left: Sequence[str]) -> g.Tell:
    """Return that somebody is out, with the role if roles are revealed, and who is left or has won."""
    public, roles = scenario.game["public"], _roles(scenario)
    remaining = [name for name in left if name != out]
    wolves = sum(roles[name] == "wolf" for name in remaining)
    winner = _winner(len(remaining) - wolves, wolves, parity=public["ends"] == "parity")
    shown = f", {_a(roles[out])}" if public["reveal"] else ""
    then = f"The {winner} win." if winner else f"Left: {g.listed(remaining)}."
    return g.Tell(f"{told}{shown}. {then}", values=(when, out, roles[out], winner))


# ---- players -------------------------------------------------------------------------------------------------------


def _suspects(seen: g.Observation, names: Sequence[str]) -> list[str]:
    """Return those whom the viewer knows to be wolves: by roles that it sees, was told, or heard from the seer."""
    told = {turn.action.values for turn in seen.transcript.told}
    heard = " ".join(turn.action.text for turn in seen.transcript.of("speak"))
    return [
        name
        for name in names
        if g.known(seen, "role", name) == "wolf" or (SEEN, name, "wolf") in told or f"{name} is a wolf" in heard
    ]


def _loyal(seen: g.Observation, rng: random.Random) -> g.Action:
    """Villagers vote for a wolf whom they know, the seer names wolves, and wolves never vote for wolves."""
    wolf = g.known(seen, "role") == "wolf"
    if seen.may("vote"):
        choice = g.targets(seen, "vote")
        pack = {name for turn in seen.transcript.told if turn.value == WOLVES for name in turn.action.values or ()}
        if wolf:
            return g.move("vote", rng.choice([name for name in choice if name not in pack] or list(choice)))
        return g.move("vote", (_suspects(seen, choice) or [rng.choice(choice)])[0])
    for what in ("kill", "look"):
        if seen.may(what):
            new = {turn.value for turn in seen.transcript.of("look")} if what == "look" else set[str]()
            choice = g.targets(seen, what)
            return g.move(what, rng.choice([name for name in choice if name not in new] or list(choice)))
    looks = [turn.action.values or () for turn in seen.transcript.told if turn.value == SEEN]
    sure = [name for _, name, role in looks if role == "wolf"]
    if g.known(seen, "role") == "seer" and sure:
        return g.Action("speak", f"I am the seer, and {sure[-1]} is a wolf.")
    return g.Action("speak", "I am a villager, and I do not know the wolves.")


def _first(seen: g.Observation, rng: random.Random) -> g.Action:
    """Name the first player who is left, whatever is known."""
    what = next((name for name in ("vote", "kill", "look") if seen.may(name)), None)
    return g.move(what, g.targets(seen, what)[0]) if what else g.Action("speak", "Let us begin with the first.")


HiddenRole.players = {"loyal": _loyal, "first": _first}
HiddenRole.sensible = "loyal"
