"""A narrated scene with places (CharacterBox, arXiv 2412.05631; Concordia, arXiv 2312.03664), in a small form.

Characters speak, act and want to go somewhere. A narrator answers each act with a structured move: `event` names a
place and who notices it there, and `place` puts somebody somewhere. Where everybody is, is a fold over the moves of the
narrator: a wish to go somewhere changes nothing by itself. The rules tell what happens in a place to the people there.

Checks: nobody who is elsewhere is told an event, and positions change by moves of the narrator alone. A round of n
characters has the acts c1, (narrator), c2, (narrator) ...; the narrator answers `do` with `event`, `go` with `place`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.scenes.texts import PLACES

ACTS = ("say", "do", "go")
"""What characters can do."""


class Narrated(g.Game):
    """Characters in several places, and a narrator."""

    name, version = "narrated", "1"
    title = "A narrated scene"
    about = "Characters in a house talk, act and move; a narrator says what happens, and only people there notice it."
    defaults = {"people": 3, "places": 3, "rounds": 4}
    how = (
        "A character's goal is to be in a certain place at the end, or to be where another one is. Events are noticed "
        "only by people in the same place; the narrator is right if it names exactly the people there."
    )
    tries = (
        "Compare agents with mindreaders: who finds the other with fewer moves?",
        "Compare -m scripted:seeker with -m scripted:warden, a narrator who lets nobody go anywhere.",
        "Let a small model narrate, and see in 'narrator right' whether it keeps track of who is where.",
    )
    bundled = {
        "pair": {"people": 2},
        "house": {},
        "crowd": {"people": 5},
        "large_house": {"places": 6, "rounds": 7},
        "hurry": {"rounds": 2},
    }
    informed = (("seeker", "moves", "two", "1.5 moves to find one of two places, 0.5 if the goal is seen"),)
    measures = (
        g.SUCCESS,
        g.Measure(
            "reached",
            "reached",
            "share of characters who are where they want to be at the end",
            "reached",
            kind="share",
            compared=True,
        ),
        g.Measure(
            "noticed_by_present",
            "noticed by those there",
            "share of what people noticed that happened where they were",
            "noticed",
            kind="share",
        ),
        g.Measure(
            "narrator_right",
            "narrator right",
            "share of events whose names are exactly the people there",
            "narrator",
            kind="share",
            compared=True,
        ),
        g.Measure(
            "granted",
            "wishes granted",
            "share of wishes to go somewhere that the narrator grants",
            "granted",
            kind="share",
        ),
        g.Measure("moves", "moves", "changes of place of a character", "moves", bounds=(0, None)),
    )
    figure = ("success_rate", "reached", "narrator_right")
    references = (
        g.RANDOM,
        g.Reference("seeker", "best known", "searches one place after the other; optimal play is not known"),
    )
    control_tasks = {"two": {"people": 2, "places": 2, "rounds": 3}}
    controls = (
        g.exactly("seeker", "success_rate", 1, "four rounds are enough to search three places"),
        g.exactly("seeker", "reached", 1, "four rounds are enough to search three places"),
        g.exactly("seeker", "narrator_right", None, "nobody does anything but go"),
        g.exactly("seeker", "granted", 1, "the narrator grants every wish"),
        g.exactly("seeker", "moves", 0.5, "who sees the goal waits there", "two", modes=("script", "mindreaders")),
        g.exactly("seeker", "moves", 1.5, "who does not see it goes there and back", "two", modes=("agents",)),
        g.exactly("any", "noticed_by_present", 1, "the rules tell nobody else"),
        g.exactly("busy", "noticed_by_present", 1, "the rules tell nobody else"),
        g.exactly("busy", "narrator_right", 1, "the narrator names the people there"),
        g.exactly("busy", "moves", 0, "nobody goes anywhere"),
        g.exactly("busy", "reached", 0, "all begin where they do not want to be"),
        g.exactly("crier", "narrator_right", 0, "the narrator names all, and nobody begins where all are"),
        g.exactly("crier", "noticed_by_present", 1, "the rules tell nobody else"),
        g.exactly("warden", "granted", 0, "the narrator leaves all where they are"),
        g.exactly("warden", "moves", 0, "the narrator leaves all where they are"),
        g.exactly("warden", "success_rate", 0, "the narrator leaves all where they are"),
    )  # fmt: skip

    def generate(self, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> g.ScenarioFile:
        """Return a scenario: places, where everybody begins, and where everybody wants to be."""
        chosen = g.merged(self.defaults, parameters, self.name)
        for key, least, most in (("people", 2, 6), ("places", 2, len(PLACES)), ("rounds", 1, 50)):
            if not least <= chosen[key] <= most:
                raise g.InvalidInput(f"narrated: {key} = {chosen[key]}", hint=f"from {least} to {most}")
        rng = random.Random(f"{self.name}/{seed}")
        narrator, *people = g.names_of(self, seed, chosen["people"] + 1)
        places = rng.sample(PLACES, chosen["places"])
        # The first one looks for the second. They begin apart, and nobody begins where the goal is.
        starts = dict(zip(people, rng.sample(places, 2), strict=False))
        starts |= {name: rng.choice(places) for name in people[2:]}
        wanted = {name: rng.choice([place for place in places if place != starts[name]]) for name in people[1:]}
        goals = {people[0]: f"Be where {people[1]} is at the end."}
        goals |= {name: f"Be in the {place} at the end." for name, place in wanted.items()}
        return self.scenario(
            scenario_id,
            seed,
            chosen,
            title=f"{g.listed(people)} in a house with {len(places)} places",
            setting=(
                f"{g.listed(people)} are in a house with these places: {g.listed(places)}. {narrator} is the narrator "
                f"and is in no place. The others act in turn. Rounds: {chosen['rounds']}. People notice only what "
                "happens where they are. To go somewhere is a wish: the narrator decides where one is."
            ),
            agents=(
                g.Agent(name=narrator, goal="Tell what happens, fairly. Let people go where they want to go."),
                *(
                    g.Agent(name=name, goal=goal, facts=(_wish(name, goal, wanted.get(name, people[1])),))
                    for name, goal in goals.items()
                ),
            ),
            moves=_moves(narrator, people, places),
            public={"places": places, "rounds": chosen["rounds"]},
            hidden={"starts": starts},
            turns=2 * chosen["people"] * chosen["rounds"],
        )

    def step(self, scenario: g.Scenario, talk: g.Transcript, seed: int) -> g.Next:
        """All are told where they are; each character acts, the people there are told, and the narrator answers."""
        narrator, *people = scenario.names
        places, told = scenario.game["public"]["places"], len(talk.told)
        here = {place: people_in(scenario, talk, place) for place in places}
        last = talk.turns[-1] if talk.turns else None
        if not talk.acts:
            first = [place for place in places if here[place]][told:]
            if first:
                return g.Tell(
                    f"{g.listed(here[first[0]])} {'are' if len(here[first[0]]) > 1 else 'is'} in the {first[0]}.",
                    (narrator, *here[first[0]]),
                    values=("start", first[0]),
                )
        if last is not None and (tell := _noticed(scenario, talk, last)) is not None:
            return tell
        if talk.last in ("do", "go"):
            return g.act(narrator, "event" if talk.last == "do" else "place")
        acts = len(talk.of(*ACTS))
        if acts == len(people) * scenario.game["public"]["rounds"]:
            return g.DONE
        return g.act(people[acts % len(people)], *ACTS)

    def score(self, transcript: g.Transcript, scenario: g.Scenario, answer: g.AnswerKey) -> list[g.Score]:
        """Return who reached the goal, who noticed what, and how the narrator answered."""
        people = scenario.names[1:]
        ends = positions(scenario, transcript)
        reached = {name: ends[name] == _target(scenario, name, ends) for name in people}
        cited = tuple(turn.index for turn in transcript.of("place"))
        where = g.listed([f"{name} in the {place}" for name, place in ends.items()])
        reason = f"{sum(reached.values())} of {len(people)} are where they want to be: {where}"
        scores = [
            g.Score("success", float(all(reached.values())), reason=reason, turns=cited),
            *g.by_agent("reached", {name: float(done) for name, done in reached.items()}, cited),
            *g.by_agent("moves", {name: float(moves_of(scenario, transcript, name)) for name in people}, cited),
        ]
        shares = {
            "noticed": noticed(scenario, transcript),
            "narrator": [
                set((turn.action.values or ())[1:]) == set(people_in(scenario, before(transcript, turn), turn.value))
                for turn in transcript.of("event")
            ],
            "granted": [
                (wish.speaker, wish.value) == answered.action.values
                for wish, answered in zip(transcript.of("go"), transcript.of("place"), strict=False)
            ],
        }
        return scores + [g.Score(name, sum(found) / len(found)) for name, found in shares.items() if found]

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        """Go where the other will be; None if that is not visible."""
        first, second = (agent.name for agent in seen.agents[1:3])
        sees = seen.viewer == first and g.known(seen, "wish", second) is not None
        return _seeker(seen, rng) if sees else None


def positions(scenario: g.Scenario, talk: g.Transcript) -> dict[str, str]:
    """Return where each character is: the start, changed by the moves of the narrator alone."""
    found = dict(scenario.game["starts"])
    for turn in talk.of("place"):
        name, place = turn.action.values or ("", "")
        found[name] = place
    return found


def people_in(scenario: g.Scenario, talk: g.Transcript, place: str) -> tuple[str, ...]:
    """Return who is in a place, in the order of the scenario."""
    where = positions(scenario, talk)
    return tuple(name for name in scenario.names[1:] if where[name] == place)


def before(talk: g.Transcript, turn: g.Turn) -> g.Transcript:
    """Return the transcript before a turn."""
    return g.Transcript(talk.turns[: turn.index])


def moves_of(scenario: g.Scenario, talk: g.Transcript, name: str) -> int:
    """Return how often a character came to another place."""
    put = [turn for turn in talk.of("place") if turn.value == name]
    return sum((turn.action.values or ())[1] != positions(scenario, before(talk, turn))[name] for turn in put)


def noticed(scenario: g.Scenario, talk: g.Transcript) -> list[bool]:
    """Return for each person who was told something whether it happened where this person was or had just been."""
    found: list[bool] = []
    for turn in talk.told:
        place = (turn.action.values or ("", ""))[1]
        for name in turn.readers or scenario.names:
            if name != scenario.names[0]:
                found.append(positions(scenario, before(talk, turn))[name] == place)
    return found


def _target(scenario: g.Scenario, name: str, ends: Mapping[str, str]) -> str:
    wish = scenario.agent(name).facts[0].terms[0]
    return ends.get(wish, wish)


def _wish(name: str, goal: str, value: str) -> Any:
    return g.private(name, "wish", f"{name} wants to {goal[0].lower()}{goal[1:]}", value)


def _noticed(scenario: g.Scenario, talk: g.Transcript, turn: g.Turn) -> g.Tell | None:
    """Return what the people in a place are told next about an act; the narrator is told too. None: nothing is left."""
    act_ = turn if not turn.told else talk.acts[-1] if talk.acts else turn
    tells = list(_tells(scenario, talk, act_)) if not act_.told else []
    done = len(talk.turns) - 1 - act_.index
    return tells[done] if done < len(tells) else None


def _tells(scenario: g.Scenario, talk: g.Transcript, turn: g.Turn) -> list[g.Tell]:
    narrator, kind, values = scenario.names[0], turn.action.type, turn.action.values or ()
    was, text = before(talk, turn), turn.action.text
    if kind == "event":
        present = people_in(scenario, was, values[0])
        named = tuple(name for name in present if name in values[1:])
        return [g.Tell(f"In the {values[0]}: {text}", (narrator, *named), values=("event", values[0]))] if named else []
    if kind == "place":
        name, place = values
        old, there = positions(scenario, was)[name], people_in(scenario, talk, place)
        if old == place:
            return [g.Tell(f"{name} stays in the {place}.", (narrator, *there), values=("place", place))]
        left = people_in(scenario, talk, old)
        gone = [g.Tell(f"{name} has left the {old}.", (narrator, *left), values=("left", old, name))] if left else []
        came = f"{name} comes to the {place}. {g.listed(there)} {'are' if len(there) > 1 else 'is'} there now."
        return [*gone, g.Tell(came, (narrator, *there), values=("place", place))]
    place = positions(scenario, was)[turn.speaker]
    others = tuple(name for name in people_in(scenario, was, place) if name != turn.speaker)
    does = f"wants to go to the {values[0]}" if kind == "go" else "says" if kind == "say" else "does this"
    words = f"{does}: {text}" if text else f"{does}."
    return [
        g.Tell(
            f"In the {place}, {turn.speaker} {words}", (narrator, *others), values=(kind, place, turn.speaker, *values)
        )
    ]


def _moves(narrator: str, people: list[str], places: list[str]) -> tuple[g.Move, ...]:
    where, all_ = g.one_of(*places), tuple(people)
    people_param = g.Param(agents="several")
    return (
        g.Move(name="say", text="must", readers="self", by=all_, tell="To say something to the people where you are"),
        g.Move(name="do", text="must", readers="self", by=all_, tell="To do something that people where you are see"),
        g.Move(
            name="go", values=(where,), readers="self", by=all_, tell="To ask the narrator to let you go to a place"
        ),
        g.Move(
            name="event",
            values=(where, people_param),
            text="must",
            readers="self",
            by=(narrator,),
            tell="To tell what happens in a place; name all who are there, for only they are told it",
        ),
        g.Move(
            name="place",
            values=(g.ONE_AGENT, where),
            text="no",
            readers="self",
            by=(narrator,),
            tell="To say where somebody is now",
        ),
    )


# ---- players -------------------------------------------------------------------------------------------------------


def _where(seen: g.Observation) -> dict[str, str]:
    """Return where people were when the viewer last read of them; in an omniscient view, where they are."""
    names, found = [agent.name for agent in seen.agents[1:]], dict[str, str]()
    for turn in seen.transcript.told:
        kind, place, *gone = turn.action.values or ("", "")
        if kind == "left":
            found.pop(gone[0], None)
        elif kind in ("start", "place"):
            found = {name: there for name, there in found.items() if there != place}
            found.update({name: place for name in (turn.readers or ()) if name in names})
    return found


def _narrates(seen: g.Observation, *, grants: bool = True, to_all: bool = False) -> g.Action:
    """Grant or refuse a wish; tell an event to the people there, or to all."""
    where = _where(seen)
    _, place, who, *wish = seen.transcript.told[-1].action.values or ()
    if seen.may("place"):
        return g.move("place", who, wish[0] if grants else place)
    names = [agent.name for agent in seen.agents[1:] if to_all or where.get(agent.name) == place]
    return g.move("event", place, *names, text=f"{who} does something.")


def _seeker(seen: g.Observation, rng: random.Random) -> g.Action:
    """Go to the goal; to meet somebody, go where the other wants to be, or search one place after another."""
    if not seen.may("go"):
        return _narrates(seen)
    here, wish = _where(seen)[seen.viewer], g.known(seen, "wish") or ""
    goal = wish if wish in seen.game["places"] else g.known(seen, "wish", wish) or _search(seen, wish, here)
    return g.move("go", goal) if goal != here else g.move("say", text="I stay here.")


def _search(seen: g.Observation, wanted: str, here: str) -> str:
    """Return where to look for somebody: here, if together, else the place that was left alone for the longest time."""
    if _where(seen).get(wanted) == here:
        return here
    last: dict[str, int] = dict.fromkeys(seen.game["places"], -1)
    last |= {(turn.action.values or ("", ""))[1]: turn.index for turn in seen.transcript.told}
    places: list[str] = [place for place in seen.game["places"] if place != here]
    return min(places, key=lambda place: last[place])


def _acting(name: str, *, to_all: bool = False) -> g.Player:
    def play(seen: g.Observation, rng: random.Random) -> g.Action:
        return g.move(name, text="I sing a song.") if seen.may("go") else _narrates(seen, to_all=to_all)

    return play


def _warden(seen: g.Observation, rng: random.Random) -> g.Action:
    """As a narrator refuse every wish; as a character go to the goal."""
    return _seeker(seen, rng) if seen.may("go") else _narrates(seen, grants=False)


Narrated.players = {"seeker": _seeker, "busy": _acting("do"), "crier": _acting("do", to_all=True), "warden": _warden}
Narrated.sensible = "seeker"
