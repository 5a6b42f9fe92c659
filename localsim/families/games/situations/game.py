"""The game of situations: proposals that all accept, or suggestions to one who chooses.

Two or more people talk in turn and settle one or more issues. Where all decide, a settlement is the newest proposal as
soon as all others have accepted it; where one decides, it is what this person chooses. What is right follows from the
facts of all sides (`meaning`), so somebody must ask and tell: a file is refused if one side could know it alone. Facts
that are never to be disclosed must be kept, and facts that are to be told must be told, or it is no success.

Generated situations, which carry the controls, arrange a day. A draw is repeated until one day is right and `unfair`
finds nothing: neither anybody's favourite nor the first option is right.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.situations.meaning import (
    ALL,
    TELL,
    Issue,
    Rule,
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
    unfair,
)
from localsim.families.games.situations.players import PLAYERS, solver

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
PLACES = ("harbour", "castle", "lake", "market", "island", "mill", "forest")
_HAS = ("a pool", "a kitchen", "a garden", "a library", "a boat", "a piano")
_SECRETS = ("ring", "loan", "lawsuit", "diploma", "tattoo", "pension")
_NEWS = ("puppy", "promotion", "wedding", "scholarship", "trophy", "telescope")
MOST_POINTS = 9
_DRAWS = 2000
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
    defaults = {"rule": "fits", "options": 6, "people": 2, "secret": False, "tell": False}
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
        chosen = g.merged(self.defaults, parameters, self.name)
        allowed = {"rule": ("fits", "best", "fair", "has"), "options": (4, len(DAYS)), "people": (2, 4)}
        g.check_values(self.name, chosen, allowed)
        wish = chosen["rule"] == "has"
        if wish:
            g.check_values(self.name, chosen, {"people": (2, 2)})
        rng = random.Random(f"{self.name}/{seed}")
        names = g.names_of(self, seed, chosen["people"])
        options = (PLACES if wish else DAYS)[: chosen["options"]]
        rule: Rule = "fits" if wish else chosen["rule"]
        issue = Issue("place" if wish else "day", g.Param(one_of=options))
        means = _drawn(rng, names, issue, rule, wish=wish)
        agents = [
            g.Agent(
                name=name,
                goal=_goal(chosen, name == names[0]),
                facts=(*_facts(name, texts), *_extra(rng, chosen, name)),
            )
            for name, texts in means.items()
        ]
        document = self.scenario(
            scenario_id,
            seed,
            chosen,
            title=f"{g.listed(names)} settle on a {issue.name}",
            setting=_setting(names, issue, rule, wish=wish),
            agents=agents,
            moves=_moves(names, issue.param, wish=wish),
            turns=8 * len(names),
            talk=True,
            public={"issues": [issue.name], "decides": names[0] if wish else ALL, "rule": rule},
            relationship="friend",
        )
        return document.model_copy(update={"answer": answer_of(document)})

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


# ---- generated situations ------------------------------------------------------------------------------------------


def _drawn(
    rng: random.Random, names: Sequence[str], issue: Issue, rule: Rule, *, wish: bool
) -> dict[str, list[tuple[str, ...]]]:
    """Return the meanings of each person's facts, one tuple for each fact."""
    for _ in range(_DRAWS):
        found = _wish(rng, names, issue) if wish else {name: [_side(rng, issue, rule)] for name in names}
        sides = [parse_meanings(text for texts in each for text in texts) for each in found.values()]
        if len(right([issue], rule, sides)) == 1 and not unfair([issue], rule, sides):
            return found
    raise AssertionError("no draw is a fair task")


def _side(rng: random.Random, issue: Issue, rule: Rule) -> tuple[str, ...]:
    options = issue.values
    if rule == "fits":
        gone = rng.sample(options, rng.randint(1, len(options) - 2))
        return tuple(f"out: {option}" for option in options if option in gone)
    return tuple(f"points: {option} = {rng.randint(0, MOST_POINTS)}" for option in options)


def _wish(rng: random.Random, names: Sequence[str], issue: Issue) -> dict[str, list[tuple[str, ...]]]:
    """Return what the first person needs, and which places the second one knows to have it."""
    needs = rng.sample(_HAS, 2)
    has = [(option, what) for option in issue.values for what in rng.sample(_HAS, 2)]
    return {
        names[0]: [(f"needs: {what}",) for what in needs],
        names[1]: [tuple(f"has: {option} = {what}" for option, what in has if option == each) for each in issue.values],
    }


def _facts(name: str, texts: Sequence[tuple[str, ...]]) -> list[g.Fact]:
    key = name.replace(" ", "_")
    found = []
    for number, means in enumerate(texts, start=1):
        told, *terms = _told(means)
        found.append(g.Fact(id=f"{key}_{number}", text=f"{name} {told}.", terms=tuple(terms), means=means))
    return found


def _told(means: Sequence[str]) -> list[str]:
    """Return what a fact says about its owner, then phrases by which it is told: an option alone is in any mouth."""
    words = [text.partition(": ")[2].split(" = ") for text in means]
    kind = means[0].partition(":")[0]
    if kind == "out":
        busy = f"no time on {g.listed([each[0] for each in words])}"
        return [f"has {busy}", busy]
    if kind == "needs":
        return [f"needs {words[0][0]}"] * 2
    if kind == "points":
        given = [f"{day} {number}" for day, number in words]
        return [f"gives {g.listed(given)} points", *given]
    has = [f"{place} has {what}" for place, what in words]
    return [f"knows that the {words[0][0]} has {g.listed([what for _, what in words])}", *has]


def _extra(rng: random.Random, chosen: Mapping[str, Any], name: str) -> list[g.Fact]:
    """Return a secret that must be kept, and news that should be told, where the parameters ask for them."""
    key, secret, news = name.replace(" ", "_"), rng.choice(_SECRETS), rng.choice(_NEWS)
    found = []
    if chosen["secret"]:
        text = f"{name} has hidden a {secret}."
        found.append(g.Fact(id=f"{key}_secret", text=text, terms=(secret,), disclosure="never"))
    if chosen["tell"]:
        text = f"{name} has heard about a {news}."
        found.append(g.Fact(id=f"{key}_news", text=text, terms=(news,), means=(TELL,)))
    return found


def _goal(chosen: Mapping[str, Any], first: bool) -> str:
    parts = {
        "fits": "Find a day on which all of you have time.",
        "best": "Find the day that gives all of you the most points together.",
        "fair": "Find the day on which the one who gets fewest points gets the most.",
        "has": "Choose a place that has what you need." if first else "Help to find the right place.",
    }
    goal = parts[chosen["rule"]]
    goal += " Tell your news first." if chosen["tell"] else ""
    return goal + (" Keep what you have hidden to yourself." if chosen["secret"] else "")


def _setting(names: Sequence[str], issue: Issue, rule: Rule, *, wish: bool) -> str:
    who, what = g.listed(list(names)), g.listed(issue.values)
    if wish:
        return f"{who} plan a weekend. {names[0]} chooses one place: {what}."
    worth = "" if rule == "fits" else f" Each gives each day 0 to {MOST_POINTS} points."
    return f"{who} arrange a day to meet. The days are {what}.{worth}"


def _moves(names: Sequence[str], param: g.Param, *, wish: bool) -> tuple[g.Move, ...]:
    if wish:
        return (
            g.Move(name="choose", values=(param,), tell="To choose a place for good", by=(names[0],)),
            g.Move(name="suggest", values=(param,), tell="To suggest a place", by=tuple(names[1:])),
        )
    return (
        g.Move(name="propose", values=(param,), tell="To propose a day"),
        g.Move(name="accept", tell="To accept the last proposal"),
        g.Move(name="refuse", tell="To refuse the last proposal"),
    )


Situations.players = PLAYERS
Situations.sensible = "solver"
