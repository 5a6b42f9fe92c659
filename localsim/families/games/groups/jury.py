"""A jury: everybody has some evidence, they talk, and then vote in secret.

Each piece of evidence points to the truth with probability p. Of n independent voters who are each right with
probability q, the majority is right with the sum over k > n/2 of C(n, k) q^k (1 - q)^(n - k) (Condorcet 1785). A juror
who counts m pieces of evidence has q = right(m, p), so a jury without talk reaches right(n, right(m, p)), and one that
puts all evidence together reaches right(n m, p), which is at least as much.

In a planted case the evidence is a hidden profile (Stasser and Titus 1985): pieces that all jurors have point to the
wrong verdict, and outnumber what each juror knows alone. The pieces that one juror has point to the right one.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import comb
from typing import Any

from localsim.conversation.episode import AgentView
from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Table

SIDES = ("guilty", "innocent")
WITNESSES = (
    "baker barber butcher carpenter cleaner clerk cook courier dentist driver farmer fisher florist gardener grocer "
    "guard hunter jeweller librarian locksmith mason mechanic miller miner musician nurse optician painter pilot "
    "plumber porter potter printer sailor shepherd singer smith surgeon tailor teacher tiler vet waiter weaver welder"
).split()
_SAYS = re.compile(r"\b(\w+) says (guilty|innocent)\b")


def right(voters: int, p: float) -> float:
    """Return the probability that more than half of independent voters are right, each with probability p."""
    return sum(comb(voters, k) * p**k * (1 - p) ** (voters - k) for k in range(voters // 2 + 1, voters + 1))


class Jury(Replayed):
    """A group finds a verdict from evidence that is spread over its members."""

    name, version = "jury", "1"
    title = "A jury"
    about = "Jurors who each know some witnesses talk, then vote in secret whether the accused is guilty or innocent."
    defaults = {
        "jurors": 5,
        "evidence": 3,
        "competence": 0.7,
        "rule": "majority",
        "case": "drawn",
        "order": "in_turn",
        "rounds": 1,
        "ballots": 1,
    }
    number_of_agents, beside = "jurors", 1
    allowed = {
        "jurors": (3, 12),
        "evidence": (1, 5),
        "competence": (0, 1),
        "rounds": (0, 5),
        "ballots": (1, 5),
        "rule": ("majority", "unanimity"),
        "case": ("drawn", "planted"),
        "order": ("in_turn", "addressed"),
    }
    how = (
        "The verdict is right if it is the truth. A case is misleading if most jurors alone lean to one side and all "
        "evidence together points to the other; the measure `solved` counts how often these are still decided by all "
        "evidence."
    )
    tries = (
        "Compare -m scripted:own, which votes without sharing, with -m scripted:pooling on jury_hidden_profile.",
        "Which evidence is said more often in agents mode: what all jurors know, or what only one knows?",
        "In jury_unanimous the jury talks again after each ballot without a verdict: does it agree in the end?",
    )
    bundled = {
        "five": {},
        "hidden_profile": {"case": "planted"},
        "unanimous": {"rule": "unanimity", "ballots": 3},
        "twelve": {"jurors": 12, "evidence": 1, "competence": 0.65},
        "addressed": {"jurors": 3, "order": "addressed", "rounds": 2, "case": "planted"},
    }
    interests = "cooperative"
    protocol = ("together",)
    measures = (
        g.SUCCESS,
        g.share("solved", "solved", "share of misleading cases decided as all evidence says"),
        g.share("evidence", "evidence said", "share of what only one juror knows that is said"),
        g.share("common", "common said", "share of the evidence that all jurors know that is said"),
        g.share("vote_right", "right votes", "share of last votes that are right"),
        g.share("agreement", "agreement", "share of the larger side in the last ballot"),
        g.share("hung", "no verdict", "share of juries without a verdict", summed="episodes"),
    )
    figure = ("success_rate", "evidence", "agreement")
    references = (
        g.RANDOM,
        g.Reference("pooling", "optimal", "everybody says all, and votes as all evidence together says"),
    )
    control_tasks = {
        "planted": {"case": "planted"},
        "unanimity": {"rule": "unanimity", "evidence": 1, "jurors": 3},
    }
    controls = (
        g.by_chance("own", "success_rate", right(5, right(3, 0.7)), "five independent voters, three pieces each"),
        g.by_chance("pooling", "success_rate", right(15, 0.7), "fifteen pieces of evidence together"),
        g.exactly("own", "evidence", 0, "nobody says what he knows"),
        g.exactly("pooling", "evidence", 1, "everybody says what he knows"),
        g.exactly("pooling", "agreement", 1, "all know the same in the end"),
        g.exactly("own", "success_rate", 0, "each juror alone is misled", "planted"),
        g.exactly("own", "solved", 0, "each juror alone is misled", "planted"),
        g.exactly("own", "vote_right", 0, "each juror alone is misled", "planted"),
        g.exactly("own", "common", 0, "nobody says what he knows", "planted"),
        g.exactly("pooling", "success_rate", 1, "all evidence together points to the truth", "planted"),
        g.exactly("pooling", "solved", 1, "all evidence together points to the truth", "planted"),
        g.exactly("pooling", "vote_right", 1, "all evidence together points to the truth", "planted"),
        g.exactly("pooling", "common", 1, "everybody says what he knows", "planted"),
        g.exactly("pooling", "hung", 0, "all know the same in the end", "unanimity"),
        g.by_chance("own", "hung", 1 - 0.7**3 - 0.3**3, "three independent voters rarely agree", "unanimity"),
        g.exactly("always-guilty", "agreement", 1, "all vote the same"),
        g.by_chance("always-guilty", "success_rate", 0.5, "half of the accused are guilty"),
        g.between("any", "agreement", 0.5, 1, "of two sides, the larger has at least half"),
    )

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        _check(chosen)
        accused, *jurors = names
        rng = random.Random(f"{self.name}/{seed}/case")
        truth = rng.choice(SIDES)
        known = _evidence(jurors, truth, chosen, rng)
        needed = "more than half" if chosen["rule"] == "majority" else "all"
        again = f" Without a verdict they go on, up to {chosen['ballots']} votes." if chosen["ballots"] > 1 else ""
        drawn = f"Each witness is right with a probability of {100 * chosen['competence']:.4g}%."
        reliable = drawn if chosen["case"] == "drawn" else "Most witnesses are right."
        return Scene(
            title=f"{len(jurors)} jurors decide about {accused}",
            setting=(
                f"{accused} is accused and is guilty or innocent. Each juror knows what some witnesses say. "
                f"{reliable} The jurors talk, then all vote in secret. A verdict needs {needed} of the "
                f"{len(jurors)} votes.{again}"
            ),
            goal="Find the verdict that is true.",
            agents=jurors,
            secrets=[
                Secret(name, f"{number}", f"The {who} says that {accused} is {says}.", who)
                for name in jurors
                for number, (who, says) in enumerate(known[name].items(), 1)
            ],
            moves=[g.can("vote", "To vote in secret", g.one_of(*SIDES), readers="self")],
            talk=chosen["rounds"] > 0,
            public={name: chosen[name] for name in ("rule", "order", "rounds", "ballots")},
            turns=len(jurors) * (chosen["rounds"] + 1) * chosen["ballots"],
            more={"answer": {"truth": truth}},
        )

    def play(self, table: Table) -> Course:
        public, names = table.public, table.names
        needed = len(names) if public["rule"] == "unanimity" else len(names) // 2 + 1
        spoken: list[g.Turn] = []
        for _ in range(public["ballots"]):
            speaker = names[0]
            for place in range(1, len(names) * public["rounds"] + 1):
                spoken.append((yield from table.act(speaker, "speak")))
                speaker = names[place % len(names)]
                if public["order"] == "addressed":
                    speaker = g.addressed(names, g.Transcript((spoken[-1],)))
            votes = yield from table.together(names, "vote")
            counts = [sum(turn.value == side for turn in votes) for side in SIDES]
            verdict = next((side for side, count in zip(SIDES, counts, strict=True) if count >= needed), "none")
            told = f"The verdict is {verdict}." if verdict in SIDES else "There is no verdict."
            text = f"Votes: guilty {counts[0]}, innocent {counts[1]}. {told}"
            result = yield from table.tell(text, verdict, *counts)
            self._state(table, spoken, votes, result)
            if verdict in SIDES:
                return

    def _state(self, table: Table, spoken: Sequence[g.Turn], votes: Sequence[g.Turn], told: g.Turn) -> None:
        """State whether the verdict is right, who voted right, and what part of the evidence was said."""
        truth, verdict = table.answer.get("truth"), told.value
        counts = Counter(turn.value for turn in votes)
        table.score("success", verdict == truth, [told], f"the verdict was {verdict}, and the truth is {truth}")
        table.score("hung", verdict not in SIDES, [told])
        table.score("agreement", max(counts.values()) / len(votes), votes)
        table.each("vote_right", {turn.speaker: turn.value == truth for turn in votes}, votes)
        known = [_pieces(agent) for agent in table.scenario.agents]
        together = {who: says for pieces in known for who, says in pieces.items()}
        alone, everything = leaning(leaning(pieces.values()) for pieces in known), leaning(together.values())
        if alone and everything and alone != everything:
            table.score("solved", verdict == everything, votes)
        owners = Counter(who for pieces in known for who in pieces)
        for name, wanted in (("evidence", 1), ("common", len(known))):
            sources = [who for who, count in owners.items() if count == wanted]
            said = {who: turn for turn in spoken for who in sources if self.utters(turn.action.text, who)}
            if sources:
                cited = sorted({turn.index: turn for turn in said.values()}.values(), key=lambda turn: turn.index)
                table.score(name, len(said) / len(sources), cited)

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        visible = any(agent.facts for agent in seen.agents if agent.name != seen.viewer)
        return _pooling(seen, rng) if visible else None


def _check(chosen: Mapping[str, Any]) -> None:
    """Raise InvalidInput for parameters that make no jury."""
    if chosen["jurors"] * chosen["evidence"] > len(WITNESSES):
        raise g.InvalidInput(f"jury: there are only {len(WITNESSES)} witnesses", hint="take fewer jurors or evidence")
    if chosen["evidence"] % 2 == 0 or (chosen["case"] == "planted" and chosen["evidence"] == 1):
        hint = "give 1, 3 or 5; a planted case needs 3 or 5"
        raise g.InvalidInput(f"jury: evidence = {chosen['evidence']} leaves jurors without a side", hint=hint)


def _evidence(
    jurors: list[str], truth: str, chosen: Mapping[str, Any], rng: random.Random
) -> dict[str, dict[str, str]]:
    """Return what each juror knows: witness -> guilty or innocent."""
    wrong = SIDES[1 - SIDES.index(truth)]
    witnesses = rng.sample(WITNESSES, len(WITNESSES))
    each = chosen["evidence"]
    if chosen["case"] == "drawn":
        return {
            name: {witnesses.pop(): truth if rng.random() < chosen["competence"] else wrong for _ in range(each)}
            for name in jurors
        }
    common = {witnesses.pop(): wrong for _ in range(each // 2 + 1)}
    found = {}
    for name in jurors:
        pieces = [*common.items(), *((witnesses.pop(), truth) for _ in range(each // 2))]
        found[name] = dict(rng.sample(pieces, len(pieces)))
    return found


def leaning(sides: Iterable[str]) -> str:
    """Return the side that is named more often; '' if neither is."""
    counts = Counter(sides)
    one, other = (counts[side] for side in SIDES)
    return "" if one == other else SIDES[0] if one > other else SIDES[1]


# ---- players -------------------------------------------------------------------------------------------------------


def _pieces(agent: g.Agent | AgentView) -> dict[str, str]:
    """Return the evidence of a juror: witness -> guilty or innocent."""
    return {fact.terms[0]: fact.text.rsplit(" ", 1)[1].rstrip(".") for fact in agent.facts}


def _own(seen: g.Observation, rng: random.Random) -> g.Action:
    if seen.may("vote"):
        return g.move("vote", leaning(_pieces(seen.me()).values()))
    return g.Action("speak", "I have made up my mind.")


def _pooling(seen: g.Observation, rng: random.Random) -> g.Action:
    """Say all that one knows and ask who has not spoken; vote as all pieces together say, which were seen or heard."""
    own = _pieces(seen.me())
    known = {who: says for agent in seen.agents for who, says in _pieces(agent).items()}
    for turn in seen.transcript.of("speak"):
        known |= dict(_SAYS.findall(turn.action.text))
    if seen.may("vote"):
        return g.move("vote", leaning(known.values()) or leaning(own.values()))
    spoken = {turn.speaker for turn in seen.transcript.of("speak")}
    silent = next((name for name in g.others(seen) if name not in spoken), None)
    ask = f" What do you know, {silent}?" if silent else ""
    if seen.viewer in spoken:
        return g.Action("speak", f"I think: {leaning(known.values()) or leaning(own.values())}.{ask}")
    return g.Action("speak", ", ".join(f"the {who} says {says}" for who, says in own.items()).capitalize() + f".{ask}")


Jury.players = {
    "own": _own,
    "pooling": _pooling,
    "always-guilty": g.taking(g.move("vote", SIDES[0]), g.Action("speak", "I do not trust anybody.")),
}
Jury.sensible = "pooling"
