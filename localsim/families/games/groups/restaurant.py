"""A group with private tastes and a private veto chooses a restaurant: talk, then approval voting (Brams and Fishburn
1978).

All approve or not of each place at the same time, and the place with most approvals is chosen, of several the first in
the list. Each person gives each place 1 to 10 points; a place where somebody cannot go is worth nothing to anybody. So
the best outcome is known by going through all places: the most points together (welfare), and the most points for the
least satisfied person (fairness). A group that approves everything takes the first place, and with one veto drawn
from R places keeps it with probability 1 - 1/R.
"""

from __future__ import annotations

import re

from localsim.families.games.base import (
    DONE,
    OMNISCIENT,
    PAYOFF,
    RANDOM,
    SUCCESS,
    Action,
    Agent,
    AnswerKey,
    Any,
    Game,
    Mapping,
    Measure,
    Move,
    Next,
    Observation,
    Player,
    Reference,
    Scenario,
    ScenarioFile,
    Score,
    Sequence,
    Tell,
    Transcript,
    act,
    between,
    by_agent,
    by_chance,
    check_values,
    exactly,
    known,
    listed,
    merged,
    move,
    names_of,
    one_of,
    others,
    private,
    random,
)

PLACES = ("grill", "noodle bar", "garden", "fish house", "tea room", "pizzeria")
MOST = 10
"""The most points that a person gives a place."""


class Restaurant(Game):
    """Friends choose a restaurant that all of them can go to."""

    name, version = "restaurant", "1"
    title = "Choosing a restaurant"
    about = "Friends with private tastes choose a restaurant, and one of them cannot go to one of the places."
    defaults: Mapping[str, Any] = {"people": 4, "places": 4, "vetoes": 1, "rounds": 1}
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
        SUCCESS,
        Measure("veto_kept", "veto respected", "share of choices that everybody can go to", "veto_kept", "share",
                "episodes", compared=True),
        Measure("welfare", "welfare", "points of all, in parts of the best possible", "welfare", "share",
                compared=True),
        Measure("fairness", "fairness", "points of the least satisfied, in parts of the best possible", "fairness",
                "share"),
        PAYOFF,
    )  # fmt: skip
    figure = ("veto_kept", "welfare", "fairness")
    interests = "cooperative"
    references = (
        RANDOM,
        Reference(
            "open",
            "best known",
            "all tell their tastes and approve the place with most points; without words, optimal play is not known",
        ),
    )
    control_tasks: Mapping[str, Mapping[str, Any]] = {"silent": {"rounds": 0}}
    controls = (
        exactly("open", "success_rate", 1, "everybody knows all tastes and vetoes"),
        exactly("open", "veto_kept", 1, "everybody knows all vetoes"),
        exactly("open", "welfare", 1, "everybody approves the best place"),
        exactly("open", "welfare", 1, "all tastes can be seen", "silent", OMNISCIENT),
        by_chance("yes-sayer", "veto_kept", 3 / 4, "the first of four places, one of which is vetoed"),
        exactly("guarded", "veto_kept", 1, "a hidden veto can be seen", modes=OMNISCIENT),
        exactly("fair-minded", "fairness", 1, "everybody approves the place that is best for the least satisfied"),
        between("any", "fairness", 0, 1, "it is in parts of the best possible"),
        between("any", "payoff", 0, 1, "it is in parts of the most points"),
        between("open", "payoff", 0.3, 1, "the best of four places is better than the mean of 5.5 points in 10"),
    )

    def generate(self, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> ScenarioFile:
        """Return a group: how many points each gives each place, and who cannot go where."""
        chosen = merged(self.defaults, parameters, self.name)
        check_values(self.name, chosen, {"people": (3, 8), "places": (2, len(PLACES)), "rounds": (0, 5)})
        check_values(self.name, chosen, {"vetoes": (0, chosen["people"])})
        names, places = names_of(self, seed, chosen["people"]), PLACES[: chosen["places"]]
        rng = random.Random(f"{self.name}/{seed}/tastes")
        tastes = {name: [rng.randint(1, MOST) for _ in places] for name in names}
        vetoes = _drawn(names, places, chosen["vetoes"], rng)
        agents = []
        for name, points in tastes.items():
            gives = listed([f"the {place} {number_}" for place, number_ in zip(places, points, strict=True)])
            facts = [private(name, "points", f"{name} gives {gives} points.", " ".join(map(str, points)))]
            if name in vetoes:
                facts.append(private(name, "veto", f"{name} cannot go to the {vetoes[name]}.", vetoes[name]))
            agents.append(Agent(name=name, goal="Find a good place for everybody.", facts=tuple(facts)))
        talk = "They talk, and then" if chosen["rounds"] else "Without a talk,"
        return self.scenario(
            scenario_id,
            seed,
            chosen,
            title=f"{len(names)} friends choose a restaurant",
            setting=(
                f"{listed(names)} want to eat out. The places are {listed([f'the {each}' for each in places])}. Each "
                f"gives each place 1 to {MOST} points. {_some(chosen['vetoes'])} {talk} all vote at the same time "
                "which places they approve. They go to the place with most approvals, of several to the first in this "
                "list. If somebody cannot go there, the evening is lost for all."
            ),
            relationship="friend",
            agents=tuple(agents),
            talk=chosen["rounds"] > 0,
            moves=(
                Move(name="approve", values=(one_of("yes", "no"),) * len(places), text="no", readers="self",
                     tell=f"To approve or not, in this order: {', '.join(places)}"),
            ),
            public={"places": list(places), "rounds": chosen["rounds"]},
            turns=len(names) * (chosen["rounds"] + 1),
        )  # fmt: skip

    def step(self, scenario: Scenario, talk: Transcript, seed: int) -> Next:
        """They talk in turn, vote at the same time, and are told the count."""
        public, names = scenario.game["public"], scenario.names
        if talk.told:
            return DONE
        votes, spoken = talk.of("approve"), len(talk.of("speak"))
        if not votes:
            talks = spoken < len(names) * public["rounds"]
            return act(names[spoken % len(names)], "speak") if talks else act(names, "approve")
        counts = [sum((turn.action.values or ())[n] == "yes" for turn in votes) for n in range(len(public["places"]))]
        place = public["places"][counts.index(max(counts))]
        told = ", ".join(f"{name} {count}" for name, count in zip(public["places"], counts, strict=True))
        return Tell(f"Approvals: {told}. They go to the {place}.", values=(place, *map(str, counts)))

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Return whether all can go to the place, and the points in parts of the best possible."""
        if not transcript.told:
            return []
        places, told = scenario.game["public"]["places"], transcript.told[-1]
        facts = {fact.id: fact.terms[0] for agent in scenario.agents for fact in agent.facts}
        tastes = {name: facts[private(name, "points", "-", "-").id] for name in scenario.names}
        vetoes = [value for name in scenario.names if (value := facts.get(private(name, "veto", "-", "-").id))]
        points = outcomes(places, list(tastes.values()), vetoes)
        won, cited = points[told.value], (told.index,)
        welfare = sum(won) / max(map(sum, points.values()))
        kept = told.value not in vetoes
        reason = f"they went to the {told.value}" + ("" if kept else ", where not all can go")
        return [
            Score("success", float(sum(won) == max(map(sum, points.values()))), reason=reason, turns=cited),
            Score("veto_kept", float(kept), turns=cited),
            Score("welfare", welfare, turns=cited),
            Score("fairness", min(won) / max(map(min, points.values())), turns=cited),
            *by_agent("payoff", dict(zip(scenario.names, (each / MOST for each in won), strict=True)), cited),
        ]

    def omniscient(self, seen: Observation, rng: random.Random) -> Action | None:
        """Approve the best place by all tastes; None if those of others are not known."""
        return _open(seen, rng) if known(seen, "points", others(seen)[0]) is not None else None


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


def _told(seen: Observation) -> dict[str, list[int]]:
    """Return what each place is worth to each person whose tastes the viewer sees or has heard."""
    places: list[str] = seen.game["places"]
    tastes = {agent.name: known(seen, "points", agent.name) for agent in seen.agents}
    vetoes = [known(seen, "veto", agent.name) for agent in seen.agents]
    any_place = "|".join(places)
    for turn in seen.transcript.of("speak"):
        numbers = re.findall(rf"(?:{any_place}) (\d+)", turn.action.text)
        if len(numbers) == len(places):
            tastes[turn.speaker] = " ".join(numbers)
        vetoes += re.findall(rf"cannot go to the ({any_place})", turn.action.text)
    return outcomes(places, [each for each in tastes.values() if each], [each for each in vetoes if each])


def _approving(seen: Observation, chosen: Sequence[str]) -> Action:
    return move("approve", *("yes" if place in chosen else "no" for place in seen.game["places"]))


def _playing(*, tells_veto: bool = True, fair: bool = False) -> Player:
    """Return a player that tells its tastes and approves the best place for all, or for the least satisfied."""

    def play(seen: Observation, rng: random.Random) -> Action:
        if seen.may("approve"):
            worth = _told(seen)
            best = max(worth, key=lambda place: (min(worth[place]), sum(worth[place])) if fair else sum(worth[place]))
            return _approving(seen, [best])
        points = (known(seen, "points") or "").split()
        gives = ", ".join(f"the {place} {number_}" for place, number_ in zip(seen.game["places"], points, strict=True))
        veto = known(seen, "veto")
        return Action("speak", f"I give {gives}." + (f" I cannot go to the {veto}." if veto and tells_veto else ""))

    return play


_open = _playing()


def _favourite(seen: Observation, rng: random.Random) -> Action:
    """Say nothing, and approve the own favourite only."""
    if not seen.may("approve"):
        return Action("speak", "I am hungry.")
    own = outcomes(seen.game["places"], [known(seen, "points") or ""], [known(seen, "veto") or ""])
    return _approving(seen, [max(own, key=lambda place: own[place])])


def _sincere(seen: Observation, rng: random.Random) -> Action:
    """Say nothing, and approve what one likes more than the mean of all places."""
    if not seen.may("approve"):
        return Action("speak", "I am hungry.")
    own = outcomes(seen.game["places"], [known(seen, "points") or ""], [known(seen, "veto") or ""])
    mean = sum(points for (points,) in own.values()) / len(own)
    return _approving(seen, [place for place, (points,) in own.items() if points > mean])


def _yes_sayer(seen: Observation, rng: random.Random) -> Action:
    """Approve everything."""
    return _approving(seen, seen.game["places"]) if seen.may("approve") else Action("speak", "All are fine with me.")


Restaurant.players = {
    "open": _open,
    "fair-minded": _playing(fair=True),
    "guarded": _playing(tells_veto=False),
    "sincere": _sincere,
    "favourite": _favourite,
    "yes-sayer": _yes_sayer,
}
Restaurant.sensible = "open"
