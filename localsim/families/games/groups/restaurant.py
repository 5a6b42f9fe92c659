"""A group with private tastes and a private veto chooses a restaurant: talk, then approval voting (Brams and Fishburn
1978).

All approve or not of each place at the same time, and the place with most approvals is chosen, of several the first in
the list. Each person gives each place 1 to 10 points; a place where somebody cannot go is worth nothing to anybody. So
the best outcome is known by going through all places: the most points together (welfare), and the most points for the
least satisfied person (fairness). A group that approves everything takes the first place, and with one veto drawn
from R places keeps it with probability 1 - 1/R.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Table

PLACES = ("grill", "noodle bar", "garden", "fish house", "tea room", "pizzeria")
MOST = 10
"""The most points that a person gives a place."""


class Restaurant(Replayed):
    """Friends choose a restaurant that all of them can go to."""

    name, version = "restaurant", "1"
    title = "Choosing a restaurant"
    about = "Friends with private tastes choose a restaurant, and one of them cannot go to one of the places."
    defaults = {"people": 4, "places": 4, "vetoes": 1, "rounds": 1}
    number_of_agents = "people"
    allowed = {"people": (3, 8), "places": (2, len(PLACES)), "rounds": (0, 5)}
    how = (
        "The choice is right if no other place has more points together among those where all can go. Welfare and "
        "fairness are points in parts of the best possible: of all people together, and of the least satisfied one."
    )
    tries = (
        "Compare -m scripted:open with -m scripted:guarded, which tells its tastes and hides where it cannot go.",
        "Without a talk (restaurant_silent), how often is a veto broken in agents mode, and in mindreaders?",
        "Let -m scripted:favourite vote: how much welfare is lost if everybody approves one place only?",
    )
    bundled = {
        "four": {},
        "silent": {"rounds": 0},
        "three": {"people": 3, "places": 3, "rounds": 2},
        "eight": {"people": 8, "places": 6},
        "three_vetoes": {"people": 5, "places": 5, "vetoes": 3},
    }
    measures = (
        g.SUCCESS,
        g.share(
            "veto_kept", "veto respected", "share of choices that everybody can go to", summed="episodes", compared=True
        ),
        g.share("welfare", "welfare", "points of all, in parts of the best possible", compared=True),
        g.share("fairness", "fairness", "points of the least satisfied, in parts of the best possible"),
        g.PAYOFF,
    )
    opened = "points"
    figure = ("veto_kept", "welfare", "fairness")
    interests = "cooperative"
    protocol = ("together",)
    references = (
        g.RANDOM,
        g.Reference(
            "open",
            "best known",
            "all tell their tastes and approve the place with most points; without words, optimal play is not known",
        ),
    )
    control_tasks = {"silent": {"rounds": 0}}
    controls = (
        g.exactly("open", "success_rate", 1, "everybody knows all tastes and vetoes"),
        g.exactly("open", "veto_kept", 1, "everybody knows all vetoes"),
        g.exactly("open", "welfare", 1, "everybody approves the best place"),
        g.exactly("open", "welfare", 1, "all tastes can be seen", "silent", g.OMNISCIENT),
        g.by_chance("yes-sayer", "veto_kept", 3 / 4, "the first of four places, one of which is vetoed"),
        g.exactly("guarded", "veto_kept", 1, "a hidden veto can be seen", modes=g.OMNISCIENT),
        g.exactly("fair-minded", "fairness", 1, "everybody approves the place that is best for the least satisfied"),
        g.between("any", "fairness", 0, 1, "it is in parts of the best possible"),
        g.between("any", "payoff", 0, 1, "it is in parts of the most points"),
        g.between("open", "payoff", 0.3, 1, "the best of four places is better than the mean of 5.5 points in 10"),
    )

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        g.check_values(self.name, chosen, {"vetoes": (0, chosen["people"])})
        places, rounds = PLACES[: chosen["places"]], chosen["rounds"]
        rng = random.Random(f"{self.name}/{seed}/tastes")
        tastes = {name: [rng.randint(1, MOST) for _ in places] for name in names}
        secrets = []
        for name, points in tastes.items():
            gives = g.listed([f"the {place} {number_}" for place, number_ in zip(places, points, strict=True)])
            secrets.append(Secret(name, "points", f"{name} gives {gives} points.", " ".join(map(str, points))))
        for name, place in _drawn(names, places, chosen["vetoes"], rng).items():
            secrets.append(Secret(name, "veto", f"{name} cannot go to the {place}.", place))
        talk = "They talk, and then" if rounds else "Without a talk,"
        approves = f"To approve or not, in this order: {', '.join(places)}"
        return Scene(
            title=f"{len(names)} friends choose a restaurant",
            setting=(
                f"{g.listed(names)} want to eat out. The places are {g.listed([f'the {each}' for each in places])}. "
                f"Each gives each place 1 to {MOST} points. {_some(chosen['vetoes'])} {talk} all vote at the same time "
                "which places they approve. They go to the place with most approvals, of several to the first in this "
                "list. If somebody cannot go there, the evening is lost for all."
            ),
            goal="Find a good place for everybody.",
            secrets=secrets,
            talk=rounds > 0,
            moves=[g.can("approve", approves, *(g.one_of("yes", "no"),) * len(places), readers="self")],
            public={"places": list(places), "rounds": rounds},
            turns=len(names) * (rounds + 1),
            more={"relationship": "friend"},
        )

    def play(self, table: Table) -> Course:
        names, places = table.names, table.public["places"]
        yield from table.speak(*names * table.public["rounds"])
        votes = yield from table.together(names, "approve")
        counts = [sum(turn.values[place] == "yes" for turn in votes) for place in range(len(places))]
        chosen = places[counts.index(max(counts))]
        told = ", ".join(f"{name} {count}" for name, count in zip(places, counts, strict=True))
        result = yield from table.tell(f"Approvals: {told}. They go to the {chosen}.", chosen, *counts)
        tastes = [table.secret(name, "points") or "" for name in names]
        vetoes = [place for name in names if (place := table.secret(name, "veto"))]
        points = outcomes(places, tastes, vetoes)
        won, best, kept = points[chosen], max(map(sum, points.values())), chosen not in vetoes
        reason = f"they went to the {chosen}" + ("" if kept else ", where not all can go")
        table.score("success", sum(won) == best, reason=reason)
        table.score("veto_kept", kept)
        table.score("welfare", sum(won) / best)
        table.score("fairness", min(won) / max(map(min, points.values())))
        table.each("payoff", {name: each / MOST for name, each in zip(names, won, strict=True)})
        table.cite(result)


def outcomes(places: Sequence[str], tastes: Sequence[str], vetoes: Sequence[str]) -> dict[str, list[int]]:
    """Return what each place is worth to each person: nothing to anybody where somebody cannot go."""
    points = [list(map(int, taste.split())) for taste in tastes]
    return {place: [0 if place in vetoes else each[n] for each in points] for n, place in enumerate(places)}


def _drawn(names: Sequence[str], places: Sequence[str], count: int, rng: random.Random) -> dict[str, str]:
    """Return who cannot go where; at least one place is left for all."""
    owners = rng.sample(list(names), count)
    while True:
        vetoes = {name: rng.choice(places) for name in owners}
        if len(set(vetoes.values())) < len(places):
            return vetoes


def _some(vetoes: int) -> str:
    if not vetoes:
        return "Everybody can go to each place."
    return "One of them cannot go to one place." if vetoes == 1 else f"{vetoes} of them cannot go to one place each."


# ---- players -------------------------------------------------------------------------------------------------------


def _told(seen: g.Observation) -> dict[str, list[int]]:
    """Return what each place is worth to each person whose tastes the viewer sees or has heard."""
    places: list[str] = seen.game["places"]
    tastes = {agent.name: g.known(seen, "points", agent.name) for agent in seen.agents}
    vetoes = [g.known(seen, "veto", agent.name) for agent in seen.agents]
    any_place = "|".join(places)
    for turn in seen.transcript.of("speak"):
        numbers = re.findall(rf"(?:{any_place}) (\d+)", turn.action.text)
        if len(numbers) == len(places):
            tastes[turn.speaker] = " ".join(numbers)
        vetoes += re.findall(rf"cannot go to the ({any_place})", turn.action.text)
    return outcomes(places, [each for each in tastes.values() if each], [each for each in vetoes if each])


def _approving(seen: g.Observation, chosen: Sequence[str]) -> g.Action:
    return g.move("approve", *("yes" if place in chosen else "no" for place in seen.game["places"]))


def _playing(seen: g.Observation, rng: random.Random, *, tells_veto: bool = True, fair: bool = False) -> g.Action:
    """Tell the own tastes, and approve the best place for all, or, if `fair`, for the least satisfied."""
    if seen.may("approve"):
        worth = _told(seen)
        best = max(worth, key=lambda place: (min(worth[place]), sum(worth[place])) if fair else sum(worth[place]))
        return _approving(seen, [best])
    points = (g.known(seen, "points") or "").split()
    gives = ", ".join(f"the {place} {number_}" for place, number_ in zip(seen.game["places"], points, strict=True))
    veto = g.known(seen, "veto")
    return g.Action("speak", f"I give {gives}." + (f" I cannot go to the {veto}." if veto and tells_veto else ""))


def _silent(seen: g.Observation, rng: random.Random, *, favourite: bool) -> g.Action:
    """Say nothing, and approve the own favourite only, or what one likes more than the mean of all places."""
    if not seen.may("approve"):
        return g.Action("speak", "I am hungry.")
    own = outcomes(seen.game["places"], [g.known(seen, "points") or ""], [g.known(seen, "veto") or ""])
    mean = sum(points for (points,) in own.values()) / len(own)
    liked = [place for place, (points,) in own.items() if points > mean]
    return _approving(seen, [max(own, key=lambda place: own[place])] if favourite else liked)


def _yes_sayer(seen: g.Observation, rng: random.Random) -> g.Action:
    return _approving(seen, seen.game["places"]) if seen.may("approve") else g.Action("speak", "All are fine with me.")


Restaurant.players = {
    "open": _playing,
    "fair-minded": partial(_playing, fair=True),
    "guarded": partial(_playing, tells_veto=False),
    "sincere": partial(_silent, favourite=False),
    "favourite": partial(_silent, favourite=True),
    "yes-sayer": _yes_sayer,
}
Restaurant.sensible = "open"
