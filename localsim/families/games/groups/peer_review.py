"""Peer review as a dialogue of roles (ReviewMT, arXiv 2406.05688): reviews, rebuttals, final points, a decision.

As in ReviewMT each reviewer has three turns of a thread (review, rebuttal of the author, final points from 1 to 10 with
a confidence from 1 to 5), and one turn decides about all threads. Before the discussion no reviewer reads another
thread; with `rounds` 0 there is no discussion, and only the chair reads them. What is right is known here: a reviewer's
final points are those of the own rating, and `WORTH` more if the author has an answer to the reviewer's doubt. A paper
whose mean of these points reaches the bar is to be accepted. The error of the points is their mean absolute error
(MAE).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from statistics import fmean
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Table

WORTH = 2
"""Points that a reviewer adds for a doubt that is answered."""
TOPICS = ("rain forecasts", "bird songs", "bus timetables", "old maps", "bread recipes", "street lamps")
DOUBTS = (
    ("the test is too small", "there are 2000 more cases in the appendix"),
    ("an older method is missing", "table 4 compares the older method"),
    ("the data are not open", "the data can be loaded from the library"),
    ("the main formula is wrong", "the sign was a slip and is corrected"),
    ("the costs are not told", "one run takes two hours on a laptop"),
    ("the result may be luck", "ten other seeds gave the same result"),
    ("the text is hard to follow", "a new section explains each step"),
    ("nobody needs this", "three cities use it every day"),
)
"""What reviewers can doubt, and what an author can answer."""
TRUE = "a true weakness"


class PeerReview(Replayed):
    """Reviewers, an author and a chair decide about a paper."""

    name, version = "peer_review", "2"
    title = "Peer review"
    about = "Reviewers rate a paper, its author answers, the reviewers rate again, and a chair accepts or rejects it."
    protocol = ("in_turn", "together")
    centralised = True
    defaults = {"reviewers": 3, "bar": 6, "answered": 0.5, "rounds": 1}
    number_of_agents, beside = "reviewers", 2
    allowed = {"reviewers": (2, 6), "bar": (1, 10), "answered": (0, 1), "rounds": (0, 5)}
    how = (
        "The decision is right if it is the one of reviewers who add 2 points exactly where the author really has an "
        "answer. The error is the mean distance of the final points from those. Agreement is 1 minus the mean "
        "distance of two reviewers, in parts of the scale."
    )
    tries = (
        "Let the author bluff (-m scripted:bluff): in which mode are the reviewers deceived?",
        "Compare -m scripted:fair with -m scripted:stubborn, whose reviewers never change their minds.",
        "Does the discussion bring the reviewers together? Compare peer_review_threads, which has none.",
    )
    bundled = {
        "three": {},
        "threads": {"rounds": 0},
        "weak_paper": {"answered": 0.0},
        "strong_paper": {"answered": 1.0, "bar": 7},
        "five": {"reviewers": 5, "rounds": 2},
    }
    measures = (
        g.SUCCESS,
        g.mean("error", "error", "mean distance of the final points from the right ones", bounds=(0, 9), compared=True),
        g.mean("moved", "moved", "points that reviewers add to their first ones on average", bounds=(-9, 9)),
        g.share("agreement_first", "first agreement", "agreement of the first points"),
        g.share("agreement", "agreement", "agreement of the final points"),
        g.share("honest", "honest answers", "share of doubts that the author answers or admits truly"),
        g.share(
            "follows",
            "follows points",
            "share of decisions that follow the mean of the final points",
            summed="episodes",
        ),
        g.share("accepted", "accepted", "share of papers that are accepted", summed="episodes"),
        g.share("f1", "F1", "F1 of accepting: 1 if exactly the papers are accepted that deserve it"),
    )
    figure = ("success_rate", "agreement", "honest")
    references = (
        g.RANDOM,
        g.Reference("fair", "optimal", "all tell the truth, and points and decision follow it"),
    )
    control_tasks = {
        "true weaknesses": {"answered": 0.0},
        "all answered": {"answered": 1.0},
    }
    controls = (
        g.exactly("fair", "success_rate", 1, "points and decision are the right ones"),
        g.exactly("fair", "error", 0, "the points are the right ones"),
        g.exactly("fair", "honest", 1, "the author tells the truth"),
        g.exactly("fair", "follows", 1, "the chair follows the mean"),
        g.exactly("fair", "moved", WORTH, "each doubt is answered", "all answered"),
        g.exactly("fair", "f1", 1, "the papers that deserve it are accepted, and no other"),
        g.exactly("reject-all", "f1", 0, "no paper that deserves it is accepted"),
        g.exactly("stubborn", "moved", 0, "nobody changes the points", "all answered"),
        g.exactly("stubborn", "error", WORTH, "nobody adds the points of an answer", "all answered"),
        g.exactly("bluff", "honest", 0, "the author has no answer", "true weaknesses"),
        g.exactly("bluff", "error", WORTH, "reviewers believe each answer", "true weaknesses", ("agents",)),
        g.exactly("bluff", "error", 0, "they see that it is none", "true weaknesses", g.OMNISCIENT),
        g.exactly("accept-all", "accepted", 1, "everything is accepted"),
        g.exactly("accept-all", "agreement", 1, "all give 10 points"),
        g.exactly("accept-all", "agreement_first", 1, "all give 10 points"),
        g.exactly("reject-all", "accepted", 0, "nothing is accepted"),
        g.exactly("reject-all", "follows", 1, "one point is below the bar"),
        g.between("any", "agreement_first", 0, 1, "points are at most 9 apart"),
        g.between("any", "error", 0, 9, "points are at most 9 apart"),
    )

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        author, chair, *reviewers = names
        rng = random.Random(f"{self.name}/{seed}/paper")
        quality, doubts = rng.randint(3, 7), rng.sample(DOUBTS, len(reviewers))
        secrets = []
        for name, (doubt, answer) in zip(reviewers, doubts, strict=True):
            rating = min(8, max(1, quality + rng.randint(-2, 2)))
            can = rng.random() < chosen["answered"]
            text = f"If somebody says that {doubt}: {answer if can else f'this is {TRUE}'}."
            secrets += [
                Secret(name, "rating", f"{name} gives the paper {rating} of 10 points without an answer.", rating),
                Secret(name, "doubt", f"{name} has a doubt: {doubt}.", doubt),
                Secret(author, f"to_{name}", text, answer if can else TRUE),
            ]
        points, which = g.number(1, 10), g.one_of("answer", "admit")
        return Scene(
            title=f"{len(reviewers)} reviewers decide about a paper of {author}",
            setting=_setting(author, chair, reviewers, rng.choice(TOPICS), chosen),
            goal=(
                "Get the paper accepted.",
                *("Give the points that the paper deserves." for _ in reviewers),
                "Accept the paper if it deserves it, else reject it.",
            ),
            agents=(author, *reviewers, chair),
            secrets=secrets,
            talk=chosen["rounds"] > 0,
            moves=(
                g.can("review", "To give the author first points and say the doubt", g.ONE_AGENT, points, text="must",
                      readers="named", by=reviewers),
                g.can("rebut", "To answer the doubt of a reviewer, or admit the weakness", g.ONE_AGENT, which,
                      text="may", readers="named", by=author),
                g.can("score", "To give final points and a confidence from 1 to 5", points, g.number(1, 5), text="may",
                      by=reviewers),
                g.can("decide", "To decide", g.one_of("accept", "reject"), text="may", by=chair),
            ),
            public={"author": author, "chair": chair, "reviewers": reviewers, "bar": chosen["bar"],
                    "rounds": chosen["rounds"]},
            turns=len(reviewers) * (3 + chosen["rounds"]) + 1,
        )  # fmt: skip

    def play(self, table: Table) -> Course:
        public = table.public
        author, chair, reviewers = public["author"], public["chair"], public["reviewers"]
        reviews = yield from table.together(reviewers, "review", named=(author,))
        rebuttals = []
        for name in reviewers:
            rebuttals.append((yield from table.act(author, "rebut", named=(name,))))
        for review, rebuttal in zip(reviews, rebuttals, strict=True):
            points, kind = review.values[1], rebuttal.values[1]
            text = f"Thread of {review.speaker}: {points} of 10 points. {review.action.text} {author} {kind}s."
            text = f"{text} {rebuttal.action.text}".strip()
            yield from table.tell(text, review.speaker, points, kind, to=None if public["rounds"] else [chair])
        yield from table.speak(*reviewers * public["rounds"])
        finals = yield from table.together(reviewers, "score")
        mean = fmean(turn.number for turn in finals)
        yield from table.tell(f"The mean of the final points is {mean:.2f}.", f"{mean:.6f}")
        decided = yield from table.act(chair, "decide")
        true = {name: table.secret(author, f"to_{name}") == TRUE for name in reviewers}
        deserved = {name: float(table.secret(name, "rating") or 0) + WORTH * (not true[name]) for name in reviewers}
        given = {turn.speaker: turn.number for turn in finals}
        accepted, right = decided.value == "accept", fmean(deserved.values()) >= public["bar"]
        reason = f"the paper was {decided.value}ed and deserved to be {'accept' if right else 'reject'}ed"
        table.score("success", accepted == right, [decided], reason)
        table.score("accepted", accepted, [decided])
        table.score("deserved", right)
        # One value for each paper that is accepted and one for each that deserves it: their mean is F1.
        for name, counts in ((chair, accepted), (author, right)):
            if counts:
                table.score("f1", accepted and right, agent=name)
        table.score("follows", accepted == (mean >= public["bar"]), [decided])
        table.score("error", fmean(abs(given[name] - points) for name, points in deserved.items()), finals)
        table.score("moved", fmean(given[turn.speaker] - float(turn.values[1]) for turn in reviews), finals)
        table.score("agreement_first", _agreement([float(turn.values[1]) for turn in reviews]))
        table.score("agreement", _agreement(list(given.values())), finals)
        table.score("honest", fmean(true[turn.values[0]] == (turn.values[1] == "admit") for turn in rebuttals))

    def reference_texts(self, transcript: g.Transcript, scenario: g.Scenario, answer: g.AnswerKey) -> Mapping[int, str]:
        """Return the true doubt of each review and the true answer of each rebuttal, in the words of `fair`."""
        facts = {fact.id: fact.terms[0] for agent in scenario.agents for fact in agent.facts}

        def known(turn: g.Turn, kind: str) -> str:
            return facts[g.private(turn.speaker, kind, "-", "-").id]

        doubts = {turn.index: _doubt(known(turn, "doubt")) for turn in transcript.of("review")}
        told = {turn.index: _truth(known(turn, f"to_{turn.value}")) for turn in transcript.of("rebut")}
        return doubts | told

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        author = seen.game["author"]
        reviewer = seen.game["reviewers"][0]
        return _playing(seen, rng) if g.known(seen, f"to_{reviewer}", author) and seen.viewer != author else None


def _setting(author: str, chair: str, reviewers: Sequence[str], topic: str, chosen: Mapping[str, Any]) -> str:
    talk = f"Then {chair} reads all of this. "
    if chosen["rounds"]:
        talk = "Then everybody reads all of this, and the reviewers talk. "
    return (
        f"{author} has written a paper about {topic}. {g.listed(reviewers)} review it, and {chair} decides. First each "
        f"reviewer gives 1 to 10 points and says one doubt, which only {author} reads. Then {author} "
        f"answers each reviewer alone. {talk}At the end each reviewer gives final points: {WORTH} more than at first "
        f"if the doubt is answered, and not more if it is {TRUE}. The paper should be accepted if the mean of the "
        f"final points is {chosen['bar']} or more."
    )


def _agreement(points: Sequence[float]) -> float:
    """Return 1 minus the mean distance of two reviewers, in parts of the scale."""
    return 1 - fmean(abs(one - other) for one, other in combinations(points, 2)) / 9


# ---- players -------------------------------------------------------------------------------------------------------


def _doubt(doubt: str | None) -> str:
    return f"I doubt one thing: {doubt}."


def _truth(truth: str) -> str:
    return f"This is {TRUE}." if truth == TRUE else f"See: {truth}."


def _playing(seen: g.Observation, rng: random.Random, *, bluffs: bool = False, moves_on: bool = True) -> g.Action:
    """Play all roles truly. `bluffs`: the author always answers. `moves_on`: reviewers can be convinced."""
    author = seen.game["author"]
    if seen.may("review"):
        return g.move("review", author, g.known(seen, "rating") or 5, text=_doubt(g.known(seen, "doubt")))
    if seen.may("rebut"):
        name = g.targets(seen, "rebut")[0]
        truth = g.known(seen, f"to_{name}") or TRUE
        if bluffs or truth != TRUE:
            return g.move("rebut", name, "answer", text="We can answer this." if truth == TRUE else _truth(truth))
        return g.move("rebut", name, "admit", text=_truth(TRUE))
    if seen.may("decide"):
        return g.move("decide", "accept" if seen.transcript.told[-1].number >= seen.game["bar"] else "reject")
    own = g.known(seen, f"to_{seen.viewer}", author)  # None unless the author's side is open
    heard = [turn.action.values for turn in seen.transcript.of("rebut") if turn.value == seen.viewer]
    answered = own != TRUE if own is not None else heard[-1:] == [(seen.viewer, "answer")]
    points = int(g.known(seen, "rating") or 5) + (WORTH if answered and moves_on else 0)
    if seen.may("score"):
        return g.move("score", points, 4)
    return g.Action("speak", f"I give {points} of 10 points.")


def _fixed(seen: g.Observation, rng: random.Random, *, points: int, decision: str) -> g.Action:
    """Always give the same points and make one decision."""
    if seen.may("review"):
        return g.move("review", seen.game["author"], points, text="I have read the paper.")
    if seen.may("rebut"):
        return g.move("rebut", g.targets(seen, "rebut")[0], "admit")
    if seen.may("score"):
        return g.move("score", points, 5)
    return g.move("decide", decision) if seen.may("decide") else g.Action("speak", f"I give {points} of 10 points.")


PeerReview.players = {
    "fair": _playing,
    "bluff": partial(_playing, bluffs=True),
    "stubborn": partial(_playing, moves_on=False),
    "accept-all": partial(_fixed, points=10, decision="accept"),
    "reject-all": partial(_fixed, points=1, decision="reject"),
}
PeerReview.sensible = "fair"
