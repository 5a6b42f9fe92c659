"""Counselling in three stages with a supervisor (Interactive Agents / SimPsyDial, arXiv 2408.15787).

A client has a private list of things, from the surface to the core, and tells them step by step. The rules tell the
counsellor which stage it is: early, middle or late. After each stage a supervisor, who hears everything, rates it and
may give the counsellor private advice. The supervisor replaces the paper's choice among three answers.

Disclosure after a stage is the number of different things told so far, divided by the number of things; it can never
fall. A client opens up at one of four ways of talking. A counsellor who tries the ways in their order needs d turns
until it works (d = 0 to 3) and one more for each thing, so the core comes out in turn d + 5.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from localsim.families.base import Curve, Played, Point
from localsim.families.games import base as g
from localsim.families.games.scenes.texts import CASES

WAYS = ("ask", "reflect", "comfort", "suggest")
"""The ways of talking of a counsellor, in the order in which the scripted counsellor tries them."""
STAGES = (
    "Early stage: build trust, and find out what troubles {client}.",
    "Middle stage: look for what is behind the problem.",
    "Late stage: agree on one next step, and close the talk.",
)
NO_ADVICE = "none"


def _disclosed(played: Played) -> list[Point]:
    """Return the share of things told up to each answer of the client."""
    points, share = [], 0.0
    for turn in played.transcript.turns:
        if _is(turn, "thing"):
            _, _, told, of = turn.action.values or ()
            share = int(told) / int(of)
        elif turn.action.type in ("reveal", "speak"):
            points.append((turn.index, share))
    # What an answer disclosed is told right after it, so each answer has the share that is known at the next one.
    ends = [*(value for _, value in points[1:]), share]
    return [Point(played.transcript.position(turn), end) for (turn, _), end in zip(points, ends, strict=False)]


class Counselling(g.Game):
    """A counsellor, a client with a private list of things, and a supervisor."""

    name, version = "counselling", "1"
    title = "Counselling with a supervisor"
    about = "A client tells a counsellor a problem step by step, and a supervisor rates each stage and gives advice."
    defaults = {"exchanges": 3, "advice": True, "guarded": True, "case": -1}
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
    }
    interests = "cooperative"
    informed = (("steady", "core_turn", "", "6.5 turns on average for four ways to try, 5 if the right one is seen"),)
    measures = (
        g.SUCCESS,
        g.Measure(
            "disclosed_early", "told early", "share of the things told in the early stage", "early", kind="share"
        ),
        g.Measure(
            "disclosed_middle", "told by middle", "share told by the end of the middle stage", "middle", kind="share"
        ),
        g.Measure(
            "disclosed", "told", "share of the client's things that were told", "disclosed", kind="share", compared=True
        ),
        g.Measure(
            "core_turn",
            "turns to core",
            "turns of the counsellor until the core is told",
            "core_turn",
            bounds=(1, None),
            compared=True,
        ),
        g.Measure("in_order", "in order", "share of things told right after the one before", "in_order", kind="share"),
        g.Measure("rating", "rating", "the supervisor's mean rating, 1 to 5", "rating", bounds=(1, 5), compared=True),
        g.Measure(
            "followed",
            "advice followed",
            "share of advice that the counsellor's next turn follows",
            "followed",
            kind="share",
        ),
        g.Measure(
            "closed", "closed", "share of talks that the counsellor closes", "closed", kind="share", summed="episodes"
        ),
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
    control_tasks = {"unguarded": {"guarded": False}}
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
        g.by_chance("any", "followed", 1 / len(WAYS), "one of four ways is drawn"),
    )  # fmt: skip

    def generate(self, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> g.ScenarioFile:
        """Return a scenario: a case with five things, and the way of talking that opens the client up."""
        chosen = g.merged(self.defaults, parameters, self.name)
        if not 2 <= chosen["exchanges"] <= 50:
            raise g.InvalidInput(f"counselling: exchanges = {chosen['exchanges']}", hint="from 2 to 50 in each stage")
        if not -1 <= chosen["case"] < len(CASES):
            raise g.InvalidInput(f"counselling: no case {chosen['case']}", hint=f"0 to {len(CASES) - 1}; -1 draws one")
        rng = random.Random(f"{self.name}/{seed}")
        counsellor, client, supervisor = g.names_of(self, seed, 3)
        problem, things = CASES[chosen["case"]] if chosen["case"] >= 0 else rng.choice(CASES)
        opens = rng.choice(WAYS) if chosen["guarded"] else ""
        facts = [
            g.Fact(id=f"{client}_thing_{place}", text=f"Thing {place}: {text.format(name=client)}.", terms=(term,))
            for place, (text, term) in enumerate(things, start=1)
        ]
        if opens:
            text = f"{client} opens up only when {counsellor} chooses to {opens}."
            facts.append(g.private(client, "opens", text, opens))
        return self.scenario(
            scenario_id,
            seed,
            chosen,
            title=f"{client} talks to {counsellor}, and {supervisor} supervises",
            setting=(
                f"{client} {problem} and talks to the counsellor {counsellor}. The supervisor {supervisor} hears "
                f"everything. There are three stages of at most {chosen['exchanges']} questions and answers each: "
                f"early, middle and late. {client} has a list of {len(things)} things; the last one is the core of "
                "the problem."
            ),
            agents=(
                g.Agent(name=counsellor, goal=f"Help {client} to tell the core of the problem. Then close the talk."),
                g.Agent(name=client, goal=_client_goal(counsellor, opens), facts=tuple(facts)),
                g.Agent(name=supervisor, goal=f"Rate how well {counsellor} talks, and help with advice."),
            ),
            talk=True,
            moves=tuple(
                each
                for each in _moves(counsellor, client, supervisor, len(things))
                if chosen["advice"] or each.name != "review"
            ),
            public={**{key: chosen[key] for key in ("exchanges", "advice")}, "things": len(things)},
            turns=6 * chosen["exchanges"] + 3,
        )

    def step(self, scenario: g.Scenario, talk: g.Transcript, seed: int) -> g.Next:
        """Question and answer in turn; after a stage the supervisor reviews it, and the next stage begins."""
        (counsellor, client, supervisor), public = scenario.names, scenario.game["public"]
        reviews = talk.of("review", "rate")
        stage, last = len(reviews), talk.turns[-1] if talk.turns else None
        if last is not None and last.action.type == "reveal" and last.value not in things_told(talk):
            told, text = len(things_told(talk)) + 1, scenario.agent(client).facts[int(last.number) - 1].text
            values = ("thing", last.value, str(told), str(public["things"]))
            return g.Tell(f"{client} tells: {text.partition(': ')[2]}", values=values)
        if last is not None and last.action.type == "review" and _advice(last) != NO_ADVICE:
            way = _advice(last)
            return g.Tell(
                f"{supervisor} advises {counsellor} to {way}.", (counsellor, supervisor), values=("advice", way)
            )
        if stage == len(STAGES):
            return g.DONE
        if sum(_is(turn, "stage") for turn in talk.told) == stage:
            return g.Tell(
                STAGES[stage].format(client=client), (counsellor, supervisor), values=("stage", str(stage + 1))
            )
        spoken = len(talk.acts) - (talk.acts.index(reviews[-1]) + 1 if reviews else 0)
        if talk.last == "close" or spoken == 2 * public["exchanges"]:
            return g.act(supervisor, "review" if public["advice"] and stage < len(STAGES) - 1 else "rate")
        if spoken % 2:
            return g.act(client, "reveal", "speak")
        return g.act(counsellor, *(("say", "close") if stage == len(STAGES) - 1 and spoken else ("say",)))

    def score(self, transcript: g.Transcript, scenario: g.Scenario, answer: g.AnswerKey) -> list[g.Score]:
        """Return success, disclosure after each stage, the order of telling, ratings, and advice followed."""
        things = scenario.game["public"]["things"]
        told = [turn for turn in transcript.told if _is(turn, "thing")]
        ratings = transcript.of("review", "rate")
        ends = [turn.index for turn in ratings]
        closing = transcript.of("close")
        core = next((turn for turn in told if turn.action.values and turn.action.values[1] == str(things)), None)
        cited = tuple(turn.index for turn in (core, *closing) if turn is not None)
        reason = f"{len(told)} of {things} things were told, the core {'among them' if core else 'not'}"
        scores = [
            g.Score("success", float(core is not None and bool(closing)), reason=reason, turns=cited),
            g.Score("disclosed", len(told) / things, turns=tuple(turn.index for turn in told)),
            g.Score("closed", float(bool(closing)), turns=tuple(turn.index for turn in closing)),
        ]
        for name, end in zip(("early", "middle"), ends, strict=False):
            before = [turn.index for turn in told if turn.index < end]
            scores.append(g.Score(name, len(before) / things, turns=tuple(before)))
        if told:
            order = [int((turn.action.values or ())[1]) for turn in told]
            after = sum(one == other + 1 for one, other in zip(order, [0, *order[:-1]], strict=True))
            scores.append(g.Score("in_order", after / len(order)))
        if core is not None:
            turns = sum(turn.index < core.index for turn in transcript.of("say", "close"))
            scores.append(g.Score("core_turn", float(turns), turns=(core.index,)))
        if ratings:
            scores.append(g.Score("rating", sum(turn.number for turn in ratings) / len(ratings), turns=tuple(ends)))
        given = [turn for turn in transcript.told if _is(turn, "advice")]
        followed = [_next_way(transcript, turn) == (turn.action.values or ())[1] for turn in given]
        return [*scores, *([g.Score("followed", sum(followed) / len(followed))] if followed else [])]

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        """Talk as the client likes it; None if that is hidden."""
        client = seen.agents[1].name
        return _steady(seen, rng) if seen.viewer != client and g.known(seen, "opens", client) else None


def things_told(talk: g.Transcript) -> list[str]:
    """Return the numbers of the things that were told, in the order of telling."""
    return [turn.action.values[1] for turn in talk.told if turn.action.values and turn.action.values[0] == "thing"]


def _client_goal(counsellor: str, opens: str) -> str:
    when = f"right after {counsellor} has chosen the way that opens you up" if opens else "when you are asked for it"
    return f"Get help. It is hard to talk about it: tell one thing at a time, thing 1 first, and only {when}."


def _moves(counsellor: str, client: str, supervisor: str, things: int) -> tuple[g.Move, ...]:
    rating = g.number(1, 5)
    passed_on = f", which {counsellor} is then told"
    return (
        g.Move(
            name="say", values=(g.one_of(*WAYS),), text="must", by=(counsellor,), tell="To talk in one of four ways"
        ),
        g.Move(name="close", text="must", by=(counsellor,), tell="To close the talk, in the late stage"),
        g.Move(
            name="reveal", values=(g.number(1, things),), by=(client,), tell="To tell a thing of your list, by number"
        ),
        g.Move(
            name="review",
            values=(rating, g.one_of(*WAYS, NO_ADVICE)),
            text="no",
            readers="self",
            by=(supervisor,),
            tell=f"To rate a stage (5 is best) and choose a way as advice{passed_on}",
        ),
        g.Move(name="rate", values=(rating,), text="no", readers="self", by=(supervisor,), tell="To rate a stage only"),
    )


def _is(turn: g.Turn, kind: str) -> bool:
    return turn.told and (turn.action.values or ("",))[0] == kind


def _advice(review: g.Turn) -> str:
    return (review.action.values or ("", NO_ADVICE))[1]


def _next_way(talk: g.Transcript, told: g.Turn) -> str:
    return next((turn.value for turn in talk.of("say", "close") if turn.index > told.index), "")


# ---- players -------------------------------------------------------------------------------------------------------


def _playing(tells: str = "guarded", *, follows: bool = True) -> g.Player:
    """Return a player of all three roles; clients tell `guarded`, `open`, `backwards` or `silent`."""

    def play(seen: g.Observation, rng: random.Random) -> g.Action:
        if seen.may("reveal"):
            return _client(seen, tells)
        if seen.may("say"):
            return _counsellor(seen, follows=follows)
        told = len(things_told(seen.transcript)) / seen.game["things"]
        rating = round(1 + 4 * told)
        return g.move("review", rating, _best_way(seen)) if seen.may("review") else g.move("rate", rating)

    return play


def _client(seen: g.Observation, tells: str) -> g.Action:
    told = things_told(seen.transcript)
    left = [place for place in range(1, seen.game["things"] + 1) if str(place) not in told]
    opens, way = g.known(seen, "opens"), seen.transcript.of("say", "close")[-1].value
    shut = tells == "silent" or (tells == "guarded" and opens is not None and way != opens)
    if shut or not left:
        return g.Action("speak", "I do not know what to say." if shut else "That is all.")
    return g.move("reveal", left[-1] if tells == "backwards" else left[0], text="It is hard to say.")


def _counsellor(seen: g.Observation, *, follows: bool) -> g.Action:
    if seen.may("close") and str(seen.game["things"]) in things_told(seen.transcript):
        return g.move("close", text="Let us stop here. You know your next step.")
    way = _best_way(seen)
    spoken = [turn.index for turn in seen.transcript.of("say")]
    if advice := [turn.action.values or () for turn in seen.transcript.told
                  if _is(turn, "advice") and turn.index > max(spoken, default=-1)]:  # fmt: skip
        way = advice[-1][1] if follows else WAYS[(WAYS.index(advice[-1][1]) + 1) % len(WAYS)]
    return g.move("say", way, text="I am listening.")


def _best_way(seen: g.Observation) -> str:
    """Return the way that opens the client: known, or the last after which a thing was told, or the next to try."""
    opens = g.known(seen, "opens", seen.agents[1].name)
    if opens is not None:
        return opens
    said, told = seen.transcript.of("say"), [turn for turn in seen.transcript.told if _is(turn, "thing")]
    if told:
        return next(turn.value for turn in reversed(said) if turn.index < told[-1].index)
    tried = {turn.value for turn in said}
    return next((way for way in WAYS if way not in tried), WAYS[0])


_steady = _playing()
Counselling.players = {
    "steady": _steady,
    "open": _playing("open"),
    "backwards": _playing("backwards"),
    "silent": _playing("silent"),
    "deaf": _playing(follows=False),
}
Counselling.sensible = "steady"
