"""Counselling in three stages with a supervisor (Interactive Agents / SimPsyDial, arXiv 2408.15787).

A client has a private list of things, from the surface to the core, and tells them step by step. The rules tell the
counsellor which stage it is: early, middle or late. After each stage a supervisor, who hears everything, rates it and
may give the counsellor private advice. The supervisor replaces the paper's choice among three answers.

With `free` the client has no move for it and tells things in free words. A thing is told when its word is said, which
the counsellor and the supervisor learn as a count. `faithful` is the share of the client's answers without a thing of
another case.

Disclosure after a stage is the number of different things told so far, divided by the number of things; it can never
fall. A client opens up at one of four ways of talking. A counsellor who tries the ways in their order needs d turns
until it works (d = 0 to 3) and one more for each thing, so the core comes out in turn d + 5.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from localsim.families.base import Curve, Played, Point
from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Table
from localsim.families.terms import utters

WAYS = ("ask", "reflect", "comfort", "suggest")
"""The ways of talking of a counsellor, in the order in which the scripted counsellor tries them."""
STAGES = (
    "Early stage: build trust, and find out what troubles {client}.",
    "Middle stage: look for what is behind the problem.",
    "Late stage: agree on one next step, and close the talk.",
)
NO_ADVICE = "none"
SHORT = 6
"""Words of up to so many letters, such as `flat` or `nine`, show no other case."""
CASES: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "cannot sleep",
        (
            ("{name} lies awake until three in the morning", "awake"),
            ("{name} made two bad mistakes with invoices", "invoices"),
            ("{name} no longer answers calls from friends", "calls"),
            ("{name} drinks wine alone every evening", "wine"),
            ("{name} has borrowed money and told nobody", "borrowed"),
        ),
    ),
    (
        "quarrels at home",
        (
            ("{name} shouts at the children about homework", "homework"),
            ("{name} works until nine on most evenings", "nine"),
            ("{name} and the spouse eat in separate rooms", "rooms"),
            ("{name} has found a flat to move out", "flat"),
            ("{name} fears to become like a violent father", "father"),
        ),
    ),
    (
        "is tired of studying",
        (
            ("{name} skips the morning lectures", "lectures"),
            ("{name} failed the chemistry exam twice", "chemistry"),
            ("{name} tells the family that all marks are good", "marks"),
            ("{name} would rather become a carpenter", "carpenter"),
            ("{name} chose medicine because a sister died", "sister"),
        ),
    ),
    (
        "is afraid of meetings",
        (
            ("{name} leaves each meeting with a headache", "headache"),
            ("{name} has said nothing in meetings since May", "May"),
            ("{name} was laughed at during a presentation", "presentation"),
            ("{name} has hidden a stammer since school", "stammer"),
            ("{name} has turned down a promotion because of it", "promotion"),
        ),
    ),
    (
        "has lost interest in everything",
        (
            ("{name} has given up the choir", "choir"),
            ("{name} stays in bed on Sundays until the evening", "Sundays"),
            ("{name} retired in spring and misses the workshop", "workshop"),
            ("{name} has not opened the letters from the hospital", "letters"),
            ("{name} feels guilty about a brother's accident", "accident"),
        ),
    ),
)
"""A problem in a few words, and the things behind it from the surface to the core: (sentence, word that tells it)."""


def _disclosed(played: Played) -> list[Point]:
    """Return the share of things told up to each answer of the client."""
    points, share = [], 0.0
    for turn in played.transcript.turns:
        if turn.told and turn.value == "thing":
            _, _, told, of = turn.values
            share = int(told) / int(of)
        elif turn.action.type in ("reveal", "speak"):
            points.append((turn.index, share))
    # What an answer disclosed is told right after it, so each answer has the share that is known at the next one.
    ends = [*(value for _, value in points[1:]), share]
    return [Point(played.transcript.position(turn), end) for (turn, _), end in zip(points, ends, strict=False)]


class Counselling(Replayed):
    """A counsellor, a client with a private list of things, and a supervisor."""

    name, version = "counselling", "1"
    title = "Counselling with a supervisor"
    about = "A client tells a counsellor a problem step by step, and a supervisor rates each stage and gives advice."
    defaults = {"exchanges": 3, "advice": True, "guarded": True, "case": -1, "free": False}
    newer = ("free",)
    how = (
        "The talk succeeds if the core of the problem comes out and the counsellor closes it. Disclosure is the share "
        "of the client's things that were told; it is counted when the client names the number of a thing."
    )
    tries = (
        "Compare agents with mindreaders: who knows what opens the client up, and how soon does the core come out?",
        "Compare -m scripted:steady with -m scripted:deaf, a counsellor who does not follow advice.",
        "Take counselling_alone, in which the supervisor gives no advice.",
    )
    bundled = {
        "sleep": {"case": 0},
        "home": {"case": 1, "exchanges": 4},
        "open": {"case": 2, "guarded": False},
        "alone": {"case": 3, "advice": False},
        "short": {"case": 4, "exchanges": 2},
        "free": {"case": 0, "free": True},
    }
    interests = "cooperative"
    centralised = True
    informed = (("steady", "core_turn", "", "6.5 turns on average for four ways to try, 5 if the right one is seen"),)
    measures = (
        g.SUCCESS,
        g.share("disclosed_early", "told early", "share of the things told in the early stage", "early"),
        g.share("disclosed_middle", "told by middle", "share told by the end of the middle stage", "middle"),
        g.share("disclosed", "told", "share of the client's things that were told", compared=True),
        g.mean(
            "core_turn",
            "turns to core",
            "turns of the counsellor until the core is told",
            bounds=(1, None),
            compared=True,
        ),
        g.share("in_order", "in order", "share of things told right after the one before"),
        g.mean("rating", "rating", "the supervisor's mean rating, 1 to 5", bounds=(1, 5), compared=True),
        g.share("followed", "advice followed", "share of advice that the counsellor's next turn follows"),
        g.share("faithful", "own things only", "share of the client's free answers without a thing of another case"),
        g.share("closed", "closed", "share of talks that the counsellor closes", summed="episodes"),
    )
    figure = ("success_rate", "disclosed_early", "disclosed", "followed")
    curve = Curve(
        "disclosed", "Things told so far", "mean share of the client's things told so far", "average", _disclosed
    )
    references = (
        g.RANDOM,
        g.Reference(
            "steady",
            "best known",
            "tries one way after the other until the client opens up; optimal play is not known",
        ),
    )
    control_tasks = {"unguarded": {"guarded": False}, "free": {"guarded": False, "free": True, "case": 0}}
    controls = (
        g.exactly("steady", "success_rate", 1, "the way that opens the client is found by the fourth of nine turns"),
        g.exactly("steady", "core_turn", 5, "who sees what opens it loses no turn", modes=("script", "mindreaders")),
        g.between("steady", "core_turn", 5, 8, "up to three ways fail before", modes=("agents",)),
        g.exactly("steady", "core_turn", 5, "any way opens the client", "unguarded"),
        g.exactly("open", "disclosed_early", 0.6, "three of five things in three answers"),
        g.exactly("open", "disclosed_middle", 1, "six answers for five things"),
        g.exactly("open", "disclosed", 1, "six answers for five things"),
        g.exactly("open", "rating", 13 / 3, "3, 5 and 5: one point, and four for the share that was told"),
        g.exactly("open", "in_order", 1, "they are told in the order of the list"),
        g.exactly("backwards", "in_order", 0, "they are told from the last to the first"),
        g.exactly("silent", "disclosed", 0, "nothing is told"),
        g.exactly("silent", "rating", 1, "nothing is told"),
        g.exactly("silent", "closed", 0, "the counsellor waits for the core"),
        g.exactly("silent", "core_turn", None, "nothing is told"),
        g.exactly("steady", "closed", 1, "the counsellor closes when the core is told"),
        g.exactly("steady", "followed", 1, "the next turn follows the advice"),
        g.exactly("deaf", "followed", 0, "the next turn never follows the advice"),
        g.exactly("open", "disclosed", 1, "five of six answers say the word of a thing", "free"),
        g.exactly("open", "faithful", 1, "the client says nothing but the own things", "free"),
        g.exactly("stranger", "faithful", 0, "each answer is from another case", "free"),
        g.exactly("stranger", "disclosed", 0, "no own thing is told", "free"),
        g.by_chance("any", "followed", 1 / len(WAYS), "one of four ways is drawn"),
    )  # fmt: skip

    def count(self, chosen: Mapping[str, Any]) -> int:
        return 3

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        if not 2 <= chosen["exchanges"] <= 50:
            raise g.InvalidInput(f"counselling: exchanges = {chosen['exchanges']}", hint="from 2 to 50 in each stage")
        if not -1 <= chosen["case"] < len(CASES):
            raise g.InvalidInput(f"counselling: no case {chosen['case']}", hint=f"0 to {len(CASES) - 1}; -1 draws one")
        (counsellor, client, supervisor), rng = names, random.Random(f"{self.name}/{seed}")
        problem, things = CASES[chosen["case"]] if chosen["case"] >= 0 else rng.choice(CASES)
        opens = rng.choice(WAYS) if chosen["guarded"] else ""
        secrets = [
            Secret(client, f"thing_{place}", f"Thing {place}: {text.format(name=client)}.", term)
            for place, (text, term) in enumerate(things, start=1)
        ]
        if opens:
            text = f"{client} opens up only when {counsellor} chooses to {opens}."
            secrets.append(Secret(client, "opens", text, opens))
        moves, free = _moves(counsellor, client, supervisor, len(things)), {"free": True} if chosen["free"] else {}
        without = ([] if chosen["advice"] else ["review"]) + (["reveal"] if free else [])
        return Scene(
            title=f"{client} talks to {counsellor}, and {supervisor} supervises",
            setting=(
                f"{client} {problem} and talks to the counsellor {counsellor}. The supervisor {supervisor} hears "
                f"everything. There are three stages of at most {chosen['exchanges']} questions and answers each: "
                f"early, middle and late. {client} has a list of {len(things)} things; the last one is the core of "
                "the problem."
            ),
            goal=(
                f"Help {client} to tell the core of the problem. Then close the talk.",
                _client_goal(counsellor, opens),
                f"Rate how well {counsellor} talks, and help with advice.",
            ),
            secrets=secrets,
            talk=True,
            moves=[each for each in moves if each.name not in without],
            public={**{key: chosen[key] for key in ("exchanges", "advice")}, "things": len(things), **free},
            turns=6 * chosen["exchanges"] + 3,
        )

    def play(self, table: Table) -> Course:
        (counsellor, client, supervisor), public = table.names, table.public
        things, last, asked, advised = public["things"], len(STAGES) - 1, 0, ""
        free, foreign = public.get("free", False), _foreign(table.scenario.agent(client).facts)
        told, followed = list[g.Turn](), list[bool]()
        self._state(table, told)
        for stage, begins in enumerate(STAGES):
            yield from table.tell(begins.format(client=client), "stage", stage + 1, to=(counsellor, supervisor))
            for place in range(public["exchanges"]):
                said = yield from table.act(counsellor, "say", *(["close"] if stage == last and place else []))
                asked += 1
                if advised:
                    followed[-1], advised = said.value == advised, ""
                    table.score("followed", sum(followed) / len(followed))
                if said.action.type == "close":
                    self._state(table, told, said)
                    break
                answer = yield from table.act(client, *(() if free else ("reveal",)), "speak")
                facts = table.scenario.agent(client).facts[:things]
                if free:
                    new = [str(at) for at, fact in enumerate(facts, 1) if utters(answer.action.text, fact.terms[0])]
                    table.mean("faithful", not any(utters(answer.action.text, word) for word in foreign), [answer])
                else:
                    new = [answer.value] if answer.action.type == "reveal" else []
                for thing in (each for each in new if each not in [turn.values[1] for turn in told]):
                    before, values = int(told[-1].values[1]) if told else 0, ("thing", thing, len(told) + 1, things)
                    if free:
                        text, to = f"{client} has told {len(told) + 1} of {things} things.", (counsellor, supervisor)
                    else:
                        text, to = f"{client} tells: {facts[int(thing) - 1].text.partition(': ')[2]}", None
                    told.append((yield from table.tell(text, *values, to=to)))
                    table.mean("in_order", int(thing) == before + 1)
                    if int(thing) == things:
                        table.score("core_turn", asked, told[-1:])
                    self._state(table, told)
            rating = yield from table.act(supervisor, "review" if public["advice"] and stage < last else "rate")
            table.mean("rating", rating.number, [rating])
            if stage < last:
                table.score(("early", "middle")[stage], len(told) / things, told)
            if rating.action.type == "review" and rating.values[1] != NO_ADVICE:
                advised = rating.values[1]
                followed.append(False)
                table.score("followed", sum(followed) / len(followed))
                text = f"{supervisor} advises {counsellor} to {advised}."
                yield from table.tell(text, "advice", advised, to=(counsellor, supervisor))

    def _state(self, table: Table, told: Sequence[g.Turn], closing: g.Turn | None = None) -> None:
        """State what was told so far, and whether the talk was closed after its core."""
        things, closings = table.public["things"], [closing] if closing else []
        core = [turn for turn in told if turn.values[1] == str(things)]
        reason = f"{len(told)} of {things} things were told, the core {'among them' if core else 'not'}"
        table.score("success", bool(core and closing), [*core, *closings], reason)
        table.score("disclosed", len(told) / things, told)
        table.score("closed", bool(closing), closings)

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        client = seen.agents[1].name
        return _playing(seen, rng) if seen.viewer != client and g.known(seen, "opens", client) else None


def _foreign(own: Sequence[g.Fact]) -> list[str]:
    """Return the words of things of other cases; short ones are left out, since anybody says them."""
    terms = [fact.terms[0] for fact in own]
    return [word for _, things in CASES for _, word in things if word not in terms and len(word) > SHORT]


def things_told(talk: g.Transcript) -> list[str]:
    """Return the numbers of the things that were told, in the order of telling."""
    return [turn.values[1] for turn in talk.told if turn.value == "thing"]


def _client_goal(counsellor: str, opens: str) -> str:
    when = f"right after {counsellor} has chosen the way that opens you up" if opens else "when you are asked for it"
    return f"Get help. It is hard to talk about it: tell one thing at a time, thing 1 first, and only {when}."


def _moves(counsellor: str, client: str, supervisor: str, things: int) -> tuple[g.Move, ...]:
    rating, advice = g.number(1, 5), g.one_of(*WAYS, NO_ADVICE)
    reviews = f"To rate a stage (5 is best) and choose a way as advice, which {counsellor} is then told"
    return (
        g.can("say", "To talk in one of four ways", g.one_of(*WAYS), by=counsellor, text="must"),
        g.can("close", "To close the talk, in the late stage", by=counsellor, text="must"),
        g.can("reveal", "To tell a thing of your list, by number", g.number(1, things), by=client, text="may"),
        g.can("review", reviews, rating, advice, by=supervisor, readers="self"),
        g.can("rate", "To rate a stage only", rating, by=supervisor, readers="self"),
    )


# ---- players -------------------------------------------------------------------------------------------------------


def _playing(seen: g.Observation, rng: random.Random, *, tells: str = "guarded", follows: bool = True) -> g.Action:
    """Play all three roles; clients tell `guarded`, `open`, `backwards`, `silent` or what a `stranger` has to tell."""
    if seen.viewer == seen.agents[1].name:
        return _client(seen, tells, rng)
    if seen.may("say"):
        return _counsellor(seen, follows=follows)
    told = len(things_told(seen.transcript)) / seen.game["things"]
    rating = round(1 + 4 * told)
    return g.move("review", rating, _best_way(seen)) if seen.may("review") else g.move("rate", rating)


def _client(seen: g.Observation, tells: str, rng: random.Random) -> g.Action:
    facts = [fact for fact in seen.me().facts if fact.id.rpartition("_")[0].endswith("_thing")]
    told = things_told(seen.transcript)
    if free := not seen.may("reveal"):
        said = " ".join(turn.action.text for turn in seen.transcript.of("speak") if turn.speaker == seen.viewer)
        told = [str(place) for place, fact in enumerate(facts, 1) if utters(said, fact.terms[0])]
    left = [place for place in range(1, seen.game["things"] + 1) if str(place) not in told]
    opens, way = g.known(seen, "opens"), seen.transcript.of("say", "close")[-1].value
    shut = tells == "silent" or (tells == "guarded" and opens is not None and way != opens)
    if shut or not left:
        return g.Action("speak", "I do not know what to say." if shut else "That is all.")
    thing = left[-1] if tells == "backwards" else left[0]
    if tells == "stranger" or free:
        foreign = f"It has to do with {rng.choice(_foreign(facts))}."
        return g.Action("speak", foreign if tells == "stranger" else facts[thing - 1].text.partition(": ")[2])
    return g.move("reveal", thing, text="It is hard to say.")


def _counsellor(seen: g.Observation, *, follows: bool) -> g.Action:
    if seen.may("close") and str(seen.game["things"]) in things_told(seen.transcript):
        return g.move("close", text="Let us stop here. You know your next step.")
    way = _best_way(seen)
    spoken = max((turn.index for turn in seen.transcript.of("say")), default=-1)
    if advice := [turn.values[1] for turn in seen.transcript.told if turn.value == "advice" and turn.index > spoken]:
        way = advice[-1] if follows else WAYS[(WAYS.index(advice[-1]) + 1) % len(WAYS)]
    return g.move("say", way, text="I am listening.")


def _best_way(seen: g.Observation) -> str:
    """Return the way that opens the client: known, or the last after which a thing was told, or the next to try."""
    opens = g.known(seen, "opens", seen.agents[1].name)
    if opens is not None:
        return opens
    said, told = seen.transcript.of("say"), [turn for turn in seen.transcript.told if turn.value == "thing"]
    if told:
        return next(turn.value for turn in reversed(said) if turn.index < told[-1].index)
    tried = {turn.value for turn in said}
    return next((way for way in WAYS if way not in tried), WAYS[0])


Counselling.players = {
    "steady": _playing,
    "open": partial(_playing, tells="open"),
    "backwards": partial(_playing, tells="backwards"),
    "silent": partial(_playing, tells="silent"),
    "stranger": partial(_playing, tells="stranger"),
    "deaf": partial(_playing, follows=False),
}
Counselling.sensible = "steady"
