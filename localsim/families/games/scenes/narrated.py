"""A narrated scene with places (CharacterBox, arXiv 2412.05631; Concordia, arXiv 2312.03664), in a small form.

Characters speak, act and want to go somewhere. A narrator answers each act with a structured move: `event` names a
place and who notices it there, and `place` puts somebody somewhere. Where everybody is, is a fold over the moves of the
narrator: a wish to go somewhere changes nothing by itself. The rules tell what happens in a place to the people there.

Checks: nobody who is elsewhere is told an event, and positions change by moves of the narrator alone. A round of n
characters has the acts c1, (narrator), c2, (narrator) ...; the narrator answers `do` with `event`, `go` with `place`.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Table

PLACES = ("kitchen", "garden", "attic", "cellar", "library", "hall")
ACTS = ("say", "do", "go")
"""What characters can do."""


class Narrated(Replayed):
    """Characters in several places, and a narrator."""

    name, version = "narrated", "1"
    title = "A narrated scene"
    about = "Characters in a house talk, act and move; a narrator says what happens, and only people there notice it."
    centralised = True
    defaults = {"people": 3, "places": 3, "rounds": 4}
    number_of_agents, beside = "people", 1
    allowed = {"people": (2, 6), "places": (2, len(PLACES)), "rounds": (1, 50)}
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
        g.share("reached", "reached", "share of characters who are where they want to be at the end", compared=True),
        g.share(
            "noticed_by_present",
            "noticed by those there",
            "share of what people noticed that happened where they were",
            "noticed",
        ),
        g.share(
            "narrator_right",
            "narrator right",
            "share of events whose names are exactly the people there",
            "narrator",
            compared=True,
        ),
        g.share("granted", "wishes granted", "share of wishes to go somewhere that the narrator grants"),
        g.mean("moves", "moves", "changes of place of a character", bounds=(0, None)),
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

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        (narrator, *people), rng = names, random.Random(f"{self.name}/{seed}")
        places = rng.sample(PLACES, chosen["places"])
        # The first one looks for the second. They begin apart, and nobody begins where the goal is.
        starts = dict(zip(people, rng.sample(places, 2), strict=False))
        starts |= {name: rng.choice(places) for name in people[2:]}
        wanted = {people[0]: people[1]}
        wanted |= {name: rng.choice([place for place in places if place != starts[name]]) for name in people[1:]}
        goals = [
            f"Be where {people[1]} is at the end.",
            *(f"Be in the {wanted[name]} at the end." for name in people[1:]),
        ]
        return Scene(
            title=f"{g.listed(people)} in a house with {len(places)} places",
            setting=(
                f"{g.listed(people)} are in a house with these places: {g.listed(places)}. {narrator} is the narrator "
                f"and is in no place. The others act in turn. Rounds: {chosen['rounds']}. People notice only what "
                "happens where they are. To go somewhere is a wish: the narrator decides where one is."
            ),
            goal=("Tell what happens, fairly. Let people go where they want to go.", *goals),
            secrets=[
                Secret(name, "wish", f"{name} wants to {goal[0].lower()}{goal[1:]}", wanted[name])
                for name, goal in zip(people, goals, strict=True)
            ],
            moves=_moves(narrator, people, places),
            public={"places": places, "rounds": chosen["rounds"]},
            hidden={"starts": starts},
            turns=2 * chosen["people"] * chosen["rounds"],
        )

    def play(self, table: Table) -> Course:
        (narrator, *people), where = table.names, dict(table.game["starts"])
        moves, placed = dict.fromkeys(people, 0), list[g.Turn]()
        self._state(table, where, moves, placed)
        for place in table.public["places"]:
            if here := _there(where, place):
                text = f"{g.listed(here)} {'are' if len(here) > 1 else 'is'} in the {place}."
                yield from self._noticed(table, where, here, text, "start", place)
        for name in people * table.public["rounds"]:
            act = yield from table.act(name, *ACTS)
            kind, place = act.action.type, where[name]
            does = f"wants to go to the {act.value}" if kind == "go" else "says" if kind == "say" else "does this"
            text = f"In the {place}, {name} {does}{f': {act.action.text}' if act.action.text else '.'}"
            others = [other for other in _there(where, place) if other != name]
            yield from self._noticed(table, where, others, text, kind, place, name, *act.values)
            if kind == "do":
                event = yield from table.act(narrator, "event")
                here = _there(where, event.value)
                table.mean("narrator", set(event.values[1:]) == set(here))
                if named := [other for other in here if other in event.values[1:]]:
                    text = f"In the {event.value}: {event.action.text}"
                    yield from self._noticed(table, where, named, text, "event", event.value)
            if kind == "go":
                placed.append((yield from table.act(narrator, "place")))
                who, to = placed[-1].values
                table.mean("granted", (name, act.value) == (who, to))
                old, where[who] = where[who], to
                moves[who] += old != to
                self._state(table, where, moves, placed)
                here, left = _there(where, to), _there(where, old)
                text = f"{who} comes to the {to}. {g.listed(here)} {'are' if len(here) > 1 else 'is'} there now."
                if old == to:
                    text = f"{who} stays in the {to}."
                elif left:
                    yield from self._noticed(table, where, left, f"{who} has left the {old}.", "left", old, who)
                yield from self._noticed(table, where, here, text, "place", to)

    def _noticed(
        self, table: Table, where: Mapping[str, str], to: Sequence[str], text: str, kind: str, place: str, *values: str
    ) -> Course:
        """Tell the narrator and these people what happens in a place, and state whether they are there."""
        told = yield from table.tell(text, kind, place, *values, to=(table.names[0], *to))
        for name in (told.readers or table.names)[1:]:
            table.mean("noticed", where[name] == place)

    def _state(
        self, table: Table, where: Mapping[str, str], moves: Mapping[str, int], placed: Sequence[g.Turn]
    ) -> None:
        """State who is at the goal, and how often each came to another place."""
        wishes = {name: table.secret(name) or "" for name in moves}
        reached = {name: where[name] == where.get(wish, wish) for name, wish in wishes.items()}
        ends = g.listed([f"{name} in the {place}" for name, place in where.items()])
        reason = f"{sum(reached.values())} of {len(moves)} are where they want to be: {ends}"
        table.score("success", all(reached.values()), placed, reason)
        table.each("reached", reached, placed)
        table.each("moves", moves, placed)

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        first, second = (agent.name for agent in seen.agents[1:3])
        sees = seen.viewer == first and g.known(seen, "wish", second) is not None
        return _seeker(seen, rng) if sees else None


def _there(where: Mapping[str, str], place: str) -> list[str]:
    return [name for name, at in where.items() if at == place]


def _moves(narrator: str, people: Sequence[str], places: Sequence[str]) -> tuple[g.Move, ...]:
    where, several = g.one_of(*places), g.Param(agents="several")
    event = "To tell what happens in a place; name all who are there, for only they are told it"
    return (
        g.can("say", "To say something to the people where you are", by=people, readers="self", text="must"),
        g.can("do", "To do something that people where you are see", by=people, readers="self", text="must"),
        g.can("go", "To ask the narrator to let you go to a place", where, by=people, readers="self", text="may"),
        g.can("event", event, where, several, by=narrator, readers="self", text="must"),
        g.can("place", "To say where somebody is now", g.ONE_AGENT, where, by=narrator, readers="self"),
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


def _busy(seen: g.Observation, rng: random.Random, *, to_all: bool = False) -> g.Action:
    """Act and go nowhere; as a narrator tell what happens to the people there, or `to_all`."""
    return g.move("do", text="I sing a song.") if seen.may("go") else _narrates(seen, to_all=to_all)


def _warden(seen: g.Observation, rng: random.Random) -> g.Action:
    return _seeker(seen, rng) if seen.may("go") else _narrates(seen, grants=False)


Narrated.players = {"seeker": _seeker, "busy": _busy, "crier": partial(_busy, to_all=True), "warden": _warden}
Narrated.sensible = "seeker"
