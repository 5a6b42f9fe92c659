"""A debate night: two sides argue, and a judge and the audience rate a motion in private before and after.

A game of localsim's own with the usual score of debate nights: the side wins whose share of the votes grew more from
the first vote to the second, and equal growth is a draw. A rating above 50 is a vote for the motion, one below 50 a
vote against it, and 50 is undecided. With v listeners, shift(for) = (for after - for before) / v, and likewise against.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Table

MOTIONS = (
    "schools should begin at ten in the morning",
    "the town centre should be closed to cars",
    "offices should work four days a week",
    "museums should be free for everybody",
    "every pupil should learn to cook at school",
    "libraries should be open on Sundays",
    "telephones should be banned from classrooms",
    "the park should have a fenced area for dogs",
)
TOPICS = ("cost", "health", "fairness", "freedom")
"""What an argument can be about."""
SIDES = ("for", "against")
STEP = 15
"""How far one new argument about the topic that they care about moves the scripted listeners."""


class Debate(Replayed):
    """Two sides, a judge and an audience."""

    name, version = "debate", "1"
    title = "A debate with a vote before and after"
    about = "Two sides argue about a motion; a judge and the audience rate it in private before and after."
    defaults = {"audience": 4, "rounds": 2, "questions": True}
    number_of_agents, beside = "audience", 3
    allowed = {"audience": (1, 50), "rounds": (1, 50)}
    how = (
        "A rating above 50 is a vote for the motion, below 50 against it. The side whose share of the votes grew more "
        "wins; a draw is half a win. The judge gives a verdict before the votes are told."
    )
    tries = (
        "Compare agents with mindreaders: does it help the sides to see what the listeners care about?",
        "Compare -m scripted:fair with -m scripted:stubborn, whose listeners never change their minds.",
        "Look at 'honest': does a model first vote as its private view says?",
    )
    bundled = {
        "evening": {},
        "quick": {"rounds": 1, "questions": False},
        "long": {"rounds": 4},
        "hall": {"audience": 9},
        "lecture": {"audience": 2, "rounds": 3, "questions": False},
    }
    interests = "competitive"
    protocol = ("in_turn", "together")
    centralised = True
    measures = (
        g.share(
            "payoff_for",
            "for wins",
            "wins of the side that speaks for the motion; a draw is half a win",
            "payoff",
            side="for",
            compared=True,
        ),
        g.share("decided", "decided", "share of debates with a winner", summed="episodes", compared=True),
        g.mean(
            "shift_for",
            "shift to for",
            "growth of the share of votes for the motion",
            "shift",
            side="for",
            bounds=(-1, 1),
        ),
        g.mean(
            "shift_against",
            "shift to against",
            "growth of the share of votes against it",
            "shift",
            side="against",
            bounds=(-1, 1),
        ),
        g.mean(
            "opinion", "change of mind", "points by which a listener's rating changed", bounds=(0, 100), compared=True
        ),
        g.share("honest", "votes own view", "share of listeners whose first rating is their private view"),
        g.share("judge_agrees", "judge agrees", "share of decided debates whose winner the judge names"),
        g.share("judge_bias", "judge's own side", "share of verdicts for the side of the judge's first view"),
    )
    figure = ("decided", "payoff_for", "judge_agrees", "judge_bias")
    references = (
        g.RANDOM,
        g.Reference(
            "fair",
            "fair",
            "sides argue about what most listeners care about; no play is best, as what one side wins the other loses",
        ),
    )
    controls = (
        g.exactly("stubborn", "decided", 0, "nobody changes the vote"),
        g.exactly("stubborn", "payoff_for", 0.5, "a draw is half a win"),
        g.exactly("stubborn", "shift_for", 0, "nobody changes the vote"),
        g.exactly("stubborn", "shift_against", 0, "nobody changes the vote"),
        g.exactly("stubborn", "opinion", 0, "nobody changes the rating"),
        g.exactly("stubborn", "honest", 1, "the first rating is the private view"),
        g.exactly("stubborn", "judge_agrees", None, "there is no winner"),
        g.exactly("stubborn", "judge_bias", 1, "the judge's verdict is the first view"),
        g.exactly("swayed", "payoff_for", 1, "all are for it in the end, and not all were before"),
        g.exactly("swayed", "decided", 1, "all are for it in the end, and not all were before"),
        g.exactly("swayed", "judge_agrees", 1, "the judge, too, names the side for it"),
        g.exactly("fair", "honest", 1, "the first rating is the private view"),
        g.exactly("contrary", "honest", 0, "the first rating is the other end of the scale"),
        g.between("any", "shift_for", -1, 1, "it is a difference of shares"),
        g.between("any", "shift_against", -1, 1, "it is a difference of shares"),
        g.between("any", "opinion", 0, 100, "it is a difference of ratings"),
    )

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        (pro, contra, judge, *audience), rng = names, random.Random(f"{self.name}/{seed}")
        motion, listeners = rng.choice(MOTIONS), [judge, *audience]
        # The first two listeners are on different sides, so that neither side has all votes before the debate.
        views = [rng.choice((20, 30, 40)), rng.choice((60, 70, 80))]
        views += [rng.choice((20, 30, 40, 60, 70, 80)) for _ in listeners[2:]]
        rng.shuffle(views)
        secrets = []
        for name, view in zip(listeners, views, strict=True):
            cares = rng.choice(TOPICS)
            secrets.append(Secret(name, "view", f"{name} would rate the motion {view} before the debate.", view))
            secrets.append(Secret(name, "cares", f"{name} cares most about {cares}.", cares))
        return Scene(
            title=f"{pro} and {contra} debate whether {motion}",
            setting=(
                f"The motion is: {motion}. {pro} speaks for it, {contra} against it. Rounds: {chosen['rounds']}. "
                f"{judge} is the judge, {g.listed(audience)} {'are' if len(audience) > 1 else 'is'} the audience. "
                "These listeners rate the motion before and after: 0 is fully against, 100 is fully for it. Above 50 "
                "is a vote for it, below 50 a vote against it. The side whose share of the votes grows more wins."
            ),
            goal=(
                "Speak for the motion. Win more listeners than the other side does.",
                "Speak against the motion. Win more listeners than the other side does.",
                "Listen, rate the motion by your own view, and say fairly who won.",
                *("Listen, and rate the motion by your own view, which good arguments can change." for _ in audience),
            ),
            secrets=secrets,
            talk=chosen["questions"],
            moves=(
                g.can("rate", "To rate the motion", g.number(0, 100), by=listeners, readers="self"),
                g.can("argue", "To argue", g.one_of(*TOPICS), by=(pro, contra), text="must"),
                g.can("ask", "To ask somebody, who then answers", g.ONE_AGENT, by=audience, text="must"),
                g.can("verdict", "To say which side won", g.one_of(*SIDES), by=judge, text="may"),
            ),
            public={"rounds": chosen["rounds"], "questions": chosen["questions"], "topics": list(TOPICS)},
            turns=2 * len(listeners) + 4 * chosen["rounds"] + 1,
            more={"answer": {"for": pro, "against": contra}},
        )

    def play(self, table: Table) -> Course:
        (pro, contra, *listeners), public = table.names, table.public
        yield from table.tell("Before the debate, all listeners rate the motion.")
        first = yield from table.together(listeners, "rate")
        for number in range(public["rounds"]):
            yield from table.act(pro, "argue")
            yield from table.act(contra, "argue")
            if public["questions"]:
                asked = yield from table.act(listeners[1 + number % (len(listeners) - 1)], "ask")
                yield from table.speak(asked.value)
        yield from table.tell("After the debate, all listeners rate the motion again.")
        last = yield from table.together(listeners, "rate")
        grown = shifts([turn.number for turn in first], [turn.number for turn in last])
        won, rated = winner(grown), (*first, *last)
        told = f"the share of votes grew by {grown[0]:+.0%} for the motion and by {grown[1]:+.0%} against it"
        table.score("decided", bool(won), rated, told, label=won or "draw")
        for name, side, shift in zip((pro, contra), SIDES, grown, strict=True):
            table.score("shift", shift, rated, agent=name)
            table.score("payoff", side == won if won else 0.5, rated, agent=name)
        for name, one, other in zip(listeners, first, last, strict=True):
            table.score("opinion", abs(other.number - one.number), rated, agent=name)
            table.score("honest", one.number == _view(table.scenario, name), rated, agent=name)
        verdict = yield from table.act(listeners[0], "verdict")
        if won:
            table.score("judge_agrees", verdict.value == won, [verdict])
        own = SIDES[_view(table.scenario, listeners[0]) < 50]
        table.score("judge_bias", verdict.value == own, [verdict])
        counts = [
            f"{sum(turn.number > 50 for turn in votes)} for and {sum(turn.number < 50 for turn in votes)} against"
            for votes in (first, last)
        ]
        who = f"{table.names[SIDES.index(won)]} wins" if won else "It is a draw"
        yield from table.tell(f"Before: {counts[0]}. After: {counts[1]}. {who}.", "result", won or "draw")

    def side(self, agent: str, answer: g.AnswerKey) -> str:
        return next((side for side in SIDES if answer.answer.get(side) == agent), "")

    def verdict(self, scores: Mapping[str, g.Score], answer: g.AnswerKey) -> g.Verdict | None:
        found = scores.get("decided")
        if found is None:
            return None
        who = f"{answer.answer[found.label]} wins" if found.label in SIDES else "A draw"
        return g.Verdict(None, f"{who}: {found.reason}.")

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        sees = seen.may("argue") and g.known(seen, "cares", seen.agents[2].name) is not None
        return _playing(seen, rng) if sees else None


def shifts(first: Sequence[float], last: Sequence[float]) -> tuple[float, float]:
    """Return by how much the shares of votes for and against grew, from ratings 0 to 100 before and after."""
    for_ = sum(each > 50 for each in last) - sum(each > 50 for each in first)
    against = sum(each < 50 for each in last) - sum(each < 50 for each in first)
    return for_ / len(first), against / len(first)


def winner(grown: tuple[float, float]) -> str:
    """Return the side whose share grew more; '' for a draw."""
    return "" if grown[0] == grown[1] else SIDES[grown[1] > grown[0]]


def _view(scenario: g.Scenario, name: str) -> float:
    return float(next(fact.terms[0] for fact in scenario.agent(name).facts if fact.id.endswith("_view")))


# ---- players -------------------------------------------------------------------------------------------------------


def _playing(seen: g.Observation, rng: random.Random, *, listening: str = "fair") -> g.Action:
    """Play all roles; listeners are `fair`, `stubborn`, `swayed` or `contrary`."""
    if seen.may("argue"):
        return _argument(seen, rng)
    if seen.may("ask"):
        return g.move("ask", rng.choice([agent.name for agent in seen.agents[:2]]), text="What does it cost?")
    if seen.may("rate"):
        own = [turn for turn in seen.transcript.of("rate") if turn.speaker == seen.viewer]
        view = float(g.known(seen, "view") or 50)
        first = 100 - view if listening == "contrary" else view
        return g.move("rate", round(_rating(seen, listening, view) if own else first))
    if seen.may("verdict"):
        first, *_, last = [turn.number for turn in seen.transcript.of("rate") if turn.speaker == seen.viewer]
        up = last > first if last != first else first > 50
        return g.move("verdict", "for" if up or listening == "swayed" else "against", text="I have decided.")
    return g.Action("speak", "I think the answer is clear.")


def _rating(seen: g.Observation, listening: str, view: float) -> float:
    if listening in ("stubborn", "swayed"):
        return view if listening == "stubborn" else 100
    cares, argued = g.known(seen, "cares"), seen.transcript.of("argue")
    pro = seen.agents[0].name
    for_ = any(turn.value == cares for turn in argued if turn.speaker == pro)
    against = any(turn.value == cares for turn in argued if turn.speaker != pro)
    return max(0, min(100, view + STEP * (for_ - against)))


def _argument(seen: g.Observation, rng: random.Random) -> g.Action:
    """Argue about a topic that the side has not used: the one that most listeners care about, as far as one sees."""
    used = {turn.value for turn in seen.transcript.of("argue") if turn.speaker == seen.viewer}
    left = [topic for topic in seen.game["topics"] if topic not in used] or seen.game["topics"]
    cares = [g.known(seen, "cares", agent.name) for agent in seen.agents[2:]]
    best = max(cares.count(topic) for topic in left)
    topic = rng.choice([topic for topic in left if cares.count(topic) == best])
    return g.move("argue", topic, text=f"Think of the {topic}.")


Debate.players = {name: partial(_playing, listening=name) for name in ("fair", "stubborn", "swayed", "contrary")}
Debate.sensible = "fair"
