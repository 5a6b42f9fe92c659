"""The game of situations: proposals that all accept, or suggestions to one who chooses.

Two or more people talk in turn and settle one or more issues. Where all decide, a settlement is the newest proposal as
soon as all others have accepted it; where one decides, it is what this person chooses. What is right follows from the
facts of all sides (`meaning`), so somebody must ask and tell: a file is refused if one side could know it alone. Facts
that are never to be disclosed must be kept, and facts that are to be told must be told, or it is no success.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.situations.making import DEFAULTS, made
from localsim.families.games.situations.meaning import (
    ALL,
    TELL,
    Settlement,
    answer_of,
    is_right,
    issues_of,
    matching,
    open_proposal,
    parse_meanings,
    points,
    right,
    settlement_of,
    settling_turns,
    sides_of,
)
from localsim.families.games.situations.players import PLAYERS, solver

_TASKS: Mapping[str, Mapping[str, Any]] = {
    "best": {"rule": "best"},
    "fair": {"rule": "fair"},
    "hidden wish": {"rule": "has"},
    "secret": {"secret": True, "tell": True},
    "three people": {"people": 3},
}


class Situations(g.Game):
    """People settle something, each with private facts that decide what is right."""

    name, version = "situations", "1"
    title = "Situations"
    about = "People settle something by proposals. What is right follows from private facts of all sides."
    how = (
        "It is a success if the matter is settled rightly, what must not be told was kept, and what should be told was "
        "told. Nobody can know the right settlement from one side alone."
    )
    tries = (
        "Compare agents with mindreaders: how often do agents settle before they know enough?",
        "Compare -m scripted:yes-sayer with a model: does it accept the first proposal?",
        "Compare -m scripted:blurter with -m scripted:solver where something must be kept (situations_secret).",
    )
    defaults = DEFAULTS
    bundled = {
        "plain": {},
        "best": {"rule": "best"},
        "fair": {"rule": "fair"},
        "hidden_wish": {"rule": "has"},
        "secret": {"secret": True, "tell": True},
        "three": {"people": 3},
    }
    measures = (
        g.SUCCESS,
        g.share("settled", "settled", "share of conversations that end with a settlement", compared=True),
        g.mean("fit", "fit", "share of issues that are settled rightly, where something is settled"),
        g.mean("joint", "joint value", "points of all, in parts of the best possible", compared=True),
        g.share("kept", "kept", "share of conversations in which nobody tells what must not be told", compared=True),
        g.mean("told", "told", "share of the facts to be told that are told", compared=True),
        g.PAYOFF,
    )
    figure = ("success_rate", "settled", "fit")
    references = (
        g.RANDOM,
        g.Reference("solver", "optimal", "tells its facts, hears the others', and settles what follows from all"),
    )
    control_tasks = _TASKS
    controls = (
        *(g.exactly("solver", "success_rate", 1, "all facts are told before a proposal", task)
          for task in ("", *_TASKS)),
        *(g.exactly("yes-sayer", "success_rate", 0, "one side's favourite is never right", task)
          for task in ("", *_TASKS)),
        g.exactly("parrot", "success_rate", 0, "nothing is settled"),
        g.exactly("refuser", "success_rate", 0, "nothing is settled"),
        g.by_chance("guesser", "success_rate", 1 / 6, "one of six options is right"),
        g.exactly("solver", "settled", 1, "the right settlement is proposed and accepted"),
        g.exactly("refuser", "settled", 0, "every proposal is refused"),
        g.exactly("solver", "fit", 1, "the settlement is right"),
        g.exactly("refuser", "fit", None, "nothing is settled"),
        g.exactly("yes-sayer", "fit", 0, "one side's favourite is never right"),
        g.exactly("solver", "joint", 1, "the settlement with the most points", "best"),
        g.exactly("refuser", "joint", 0, "nothing is settled", "best"),
        g.exactly("solver", "kept", 1, "what must be kept is not told", "secret"),
        g.exactly("blurter", "kept", 0, "everything is told", "secret"),
        g.exactly("blurter", "success_rate", 0, "what must be kept is told", "secret"),
        g.exactly("solver", "told", 1, "what should be told is told", "secret"),
        g.exactly("refuser", "told", 0, "nothing is told", "secret"),
        g.between("solver", "payoff", 0, 1, "it is in parts of the own best", "best"),
        g.exactly("refuser", "payoff", 0, "nothing is settled", "best"),
    )  # fmt: skip

    def generate(self, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> g.ScenarioFile:
        return made(self, scenario_id, seed, parameters)

    def check(self, document: g.ScenarioFile) -> list[tuple[tuple[str | int, ...], str]]:
        found: list[tuple[tuple[str | int, ...], str]] = []
        for number, agent in enumerate(document.agents):
            for place, fact in enumerate(agent.facts):
                try:
                    parse_meanings(fact.means)
                except ValueError as error:
                    found.append((("agents", number, "facts", place, "means"), str(error)))
        if not issues_of(document.moves, document.game):
            found.append((("moves",), "there is no move propose or choose whose values are the issues of `game`"))
        if found:
            return found
        if document.answer != answer_of(document):
            found.append((("answer",), f"by the facts, the answer is {answer_of(document)}"))
        return found

    def step(self, scenario: g.Scenario, talk: g.Transcript, seed: int) -> g.Next:
        if settlement_of(scenario, talk) is not None:
            return g.DONE
        name = scenario.names[len(talk.acts) % len(scenario.names)]
        decides = scenario.game["public"]["decides"]
        if decides != ALL:
            return g.act(name, "speak", "choose" if name == decides else "suggest")
        proposal, agreed = open_proposal(talk)
        answers = ("accept", "refuse") if proposal and name not in agreed else ()
        return g.act(name, "speak", "propose", *answers)

    def score(self, transcript: g.Transcript, scenario: g.Scenario, answer: g.AnswerKey) -> list[g.Score]:
        settled, cited = settlement_of(scenario, transcript), settling_turns(scenario, transcript)
        wanted = answer.answer["right"]
        broken, missing, due = self._facts(scenario, transcript, cited[-1] if cited else len(transcript))
        good = settled is not None and is_right(settled, wanted)
        won = good and not broken and not missing
        reason = f"they settled on {', '.join(settled)}" if settled else "nothing was settled"
        if broken:
            reason += "; what must be kept was told"
        if missing:
            reason += "; what should be told was not"
        scores = [
            g.Score("success", float(won), reason=reason, turns=(*cited, *broken)),
            g.Score("settled", float(settled is not None), turns=cited),
        ]
        if settled is not None:
            fit = max(matching(settled, each) for each in wanted) / len(settled)
            scores.append(g.Score("fit", fit, turns=cited))
        if any(fact.disclosure == "never" for agent in scenario.agents for fact in agent.facts):
            scores.append(g.Score("kept", float(not broken), turns=broken))
        if due:
            scores.append(g.Score("told", 1 - missing / due))
        return [*scores, *_worth(scenario, settled, cited)]

    def _facts(self, scenario: g.Scenario, talk: g.Transcript, end: int) -> tuple[tuple[int, ...], int, int]:
        """Return turns that tell what must be kept, how many facts to be told are not told, and how many there are.

        A fact counts as told if its owner utters one of its terms, up to the settlement.
        """
        broken: list[int] = []
        missing = due = 0
        for agent in scenario.agents:
            for fact in agent.facts:
                uttered = [
                    turn.index
                    for turn in talk.turns
                    if turn.speaker == agent.name and any(self.utters(turn.action.text, term) for term in fact.terms)
                ]
                if fact.disclosure == "never":
                    broken += uttered
                if TELL in fact.means:
                    due += 1
                    missing += not any(index <= end for index in uttered)
        return tuple(sorted(set(broken))), missing, due

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        return solver(seen, rng) if seen.omniscient else None


def _worth(scenario: g.Scenario, settled: Settlement | None, cited: tuple[int, ...]) -> list[g.Score]:
    """Return the joint value and each agent's part of its own best; nothing where no fact gives points."""
    sides, issues = sides_of(scenario), issues_of(scenario.moves, scenario.game)
    if not any(side.points for side in sides.values()):
        return []
    fitting = right(issues, "fits", sides.values())
    best = max((sum(points(each, side) for side in sides.values()) for each in fitting), default=0)
    won = {name: points(settled, side) if settled else 0 for name, side in sides.items()}
    most = {name: max((points(each, side) for each in fitting), default=0) for name, side in sides.items()}
    allowed = settled is not None and settled in fitting
    scores = [g.Score("joint", sum(won.values()) / best if best and allowed else 0.0, turns=cited)]
    shares = {name: won[name] / most[name] if most[name] and allowed else 0.0 for name in won}
    return [*scores, *g.by_agent("payoff", shares, cited)]


Situations.players = PLAYERS
Situations.sensible = "solver"
