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
from itertools import count as endless
from typing import Any

from localsim.conversation.wording.wordings import counted
from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Steps, Table

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


class HiddenRole(Replayed):
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
    number_of_agents = "players"
    allowed = {"players": (3, 12), "rounds": (0, 5), "first": (DAY, NIGHT), "ends": ("parity", "last")}
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
    protocol = ("together",)
    measures = (
        g.share(
            "village_won", "village wins", "share of games that the villagers win", summed="episodes", compared=True
        ),
        g.PAYOFF,
        g.share("aim", "wolves named", "share of the villagers' votes that are against a wolf", compared=True),
        g.share("caught", "wolves caught", "share of the wolves that are voted out"),
        g.mean("days", "days", "votes until the game is over", bounds=(0, None)),
    )
    opened = "role"
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

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        _check(chosen)
        count = chosen["wolves"]
        drawn = random.Random(f"{self.name}/{seed}/roles").sample(names, count + 1)
        roles = {name: "wolf" if name in drawn[:count] else "villager" for name in names}
        if chosen["seer"]:
            roles[drawn[count]] = "seer"
        wolves = [name for name in names if roles[name] == "wolf"]
        moves = [
            g.can("vote", "To vote who is out", g.ONE_AGENT),
            g.can("kill", "To vote by night", g.ONE_AGENT, by=wolves, readers="self"),
        ]
        if chosen["seer"]:
            moves.append(g.can("look", "To look at the role of somebody", g.ONE_AGENT, by=drawn[count], readers="self"))
        return Scene(
            title=f"{len(names)} people, {counted(count, 'wolf', 'wolves')}",
            setting=_setting(names, chosen),
            goal=[
                "Let the wolves win. Do not be found out." if role == "wolf" else "Find the wolves."
                for role in roles.values()
            ],
            secrets=[Secret(name, "role", f"{name} is {_a(role)}.", role) for name, role in roles.items()],
            talk=chosen["rounds"] > 0,
            moves=moves,
            public={name: chosen[name] for name in ("rounds", "first", "ends", "reveal", "wolves")},
            turns=_most_acts(chosen),
            more={"answer": {"wolves": wolves}},
        )

    def play(self, table: Table) -> Course:
        roles, left = {name: table.secret(name) or "" for name in table.names}, list(table.names)
        pack = [name for name, role in roles.items() if role == "wolf"]
        text = f"The wolves are {g.listed(pack)}." if len(pack) > 1 else f"{pack[0]} is the only wolf."
        yield from table.tell(text, WOLVES, *pack, to=pack)
        days: list[g.Turn] = []
        votes: list[g.Turn] = []
        for place in endless():
            number, wolves = place // 2 + 1, [name for name in left if roles[name] == "wolf"]
            if (place % 2 == 0) == (table.public["first"] == DAY):
                yield from table.speak(*left * table.public["rounds"])
                cast = yield from table.together(left, "vote", named=left)
                out = _most_named([turn.value for turn in cast], left, table.chance(DAY, number))
                given = counted(sum(turn.value == out for turn in cast), "vote")
                told = yield from _out(table, DAY, f"Day {number}: {out} is voted out with {given}", out, left)
                days.append(told)
                votes += [turn for turn in cast if turn.speaker not in wolves]
            else:
                villagers = [name for name in left if name not in wolves]
                kills = yield from table.together(wolves, "kill", named=villagers)
                yield from self._look(table, roles, left)
                out = _most_named([turn.value for turn in kills], villagers, table.chance(NIGHT, number))
                told = yield from _out(table, NIGHT, f"Night {number}: the wolves kill {out}", out, left)
            left.remove(told.values[1])
            if winner := told.values[3]:
                break
        table.score("village_won", winner == "villagers", [told], f"the {winner} won")
        table.score("caught", sum(turn.values[2] == "wolf" for turn in days) / len(pack), days)
        table.score("days", len(days), [told])
        table.each("payoff", {name: (role == "wolf") == (winner == "wolves") for name, role in roles.items()}, [told])
        if votes:
            hits = [turn for turn in votes if roles[turn.value] == "wolf"]
            table.score("aim", len(hits) / len(votes), hits)

    def _look(self, table: Table, roles: Mapping[str, str], left: Sequence[str]) -> Course:
        """Let the seer look at a role, if there is one in the game."""
        for seer in [name for name in left if roles[name] == "seer"]:
            name = (yield from table.act(seer, "look", named=left)).value
            role = "wolf" if roles[name] == "wolf" else "no wolf"
            yield from table.tell(f"{name} is {'a wolf' if role == 'wolf' else role}.", SEEN, name, role, to=[seer])

    def side(self, agent: str, answer: g.AnswerKey) -> str:
        return "wolf" if agent in answer.answer.get("wolves", ()) else "village"

    def verdict(self, scores: Mapping[str, g.Score], answer: g.AnswerKey) -> g.Verdict | None:
        won, days = scores.get("village_won"), scores.get("days")
        if won is None or days is None or days.value is None:
            return None
        votes = counted(int(days.value), "vote")
        said = f"{'The villagers' if won.value else 'The wolves'} won after {votes}."
        return g.Verdict(None, said, f"Wolves: {g.listed(list(answer.answer['wolves']))}.")


def _check(chosen: Mapping[str, Any]) -> None:
    """Raise InvalidInput for parameters that make no game."""
    players, wolves = chosen["players"], chosen["wolves"]
    villagers = players - wolves - (chosen["first"] == NIGHT)
    if wolves < 1 or villagers < 0 or _winner(villagers, wolves, parity=chosen["ends"] == "parity"):
        raise g.InvalidInput(f"hidden_role: {wolves} wolves of {players} end the game before a vote")


def _setting(names: Sequence[str], chosen: Mapping[str, Any]) -> str:
    seer = chosen["seer"]
    return (
        f"{g.listed(names)} play a game. {counted(chosen['wolves'], 'player is a wolf', 'players are wolves')}, "
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


def _most_named(named: Sequence[str], order: Sequence[str], rng: random.Random) -> str:
    """Return who is named most often; a tie is drawn by lot."""
    counts = Counter(named)
    return rng.choice([name for name in order if counts[name] == max(counts.values())])


def _out(table: Table, when: str, told: str, out: str, left: Sequence[str]) -> Steps[g.Turn]:
    """Tell that somebody is out, with the role if roles are revealed, and who is left or has won."""
    remaining, role = [name for name in left if name != out], table.secret(out) or ""
    wolves = sum(table.secret(name) == "wolf" for name in remaining)
    winner = _winner(len(remaining) - wolves, wolves, parity=table.public["ends"] == "parity")
    shown = f", {_a(role)}" if table.public["reveal"] else ""
    then = f"The {winner} win." if winner else f"Left: {g.listed(remaining)}."
    return (yield from table.tell(f"{told}{shown}. {then}", when, out, role, winner))


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
        pack = {name for turn in seen.transcript.told if turn.value == WOLVES for name in turn.values}
        if wolf:
            return g.move("vote", rng.choice([name for name in choice if name not in pack] or list(choice)))
        return g.move("vote", (_suspects(seen, choice) or [rng.choice(choice)])[0])
    for what in ("kill", "look"):
        if seen.may(what):
            new = {turn.value for turn in seen.transcript.of("look")} if what == "look" else set[str]()
            choice = g.targets(seen, what)
            return g.move(what, rng.choice([name for name in choice if name not in new] or list(choice)))
    looks = [turn.values for turn in seen.transcript.told if turn.value == SEEN]
    sure = [name for _, name, role in looks if role == "wolf"]
    if g.known(seen, "role") == "seer" and sure:
        return g.Action("speak", f"I am the seer, and {sure[-1]} is a wolf.")
    return g.Action("speak", "I am a villager, and I do not know the wolves.")


def _first(seen: g.Observation, rng: random.Random) -> g.Action:
    what = next((name for name in ("vote", "kill", "look") if seen.may(name)), None)
    return g.move(what, g.targets(seen, what)[0]) if what else g.Action("speak", "Let us begin with the first.")


HiddenRole.players = {"loyal": _loyal, "first": _first}
HiddenRole.sensible = "loyal"
