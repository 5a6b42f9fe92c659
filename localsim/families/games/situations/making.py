"""Generated situations: people who arrange a day, with facts from a seed that leave one right day.

They carry the controls of the family. A draw is repeated until `unfair` finds nothing:
no side could know the answer alone, and neither anybody's favourite nor the first option is right.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from localsim.conversation.rules.values import Move, Param
from localsim.conversation.scenario import Agent, Fact, Limits, ScenarioFile
from localsim.families.base import listed, merged
from localsim.families.games import base as g
from localsim.families.games.situations.meaning import (
    ALL,
    TELL,
    Issue,
    Meaning,
    Rule,
    answer_of,
    favourite,
    parse_meanings,
    right,
)

DEFAULTS: Mapping[str, Any] = {"rule": "fits", "options": 6, "people": 2, "secret": False, "tell": False}
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
PLACES = ("harbour", "castle", "lake", "market", "island", "mill", "forest")
_HAS = ("a pool", "a kitchen", "a garden", "a library", "a boat", "a piano")
_SECRETS = ("ring", "loan", "lawsuit", "diploma", "tattoo", "pension")
_NEWS = ("puppy", "promotion", "wedding", "scholarship", "trophy", "telescope")
MOST_POINTS = 9
_DRAWS = 2000


def made(game: g.Game, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> ScenarioFile:
    """Return a generated situation. Raises InvalidInput for a bad parameter."""
    chosen = merged(game.defaults, parameters, game.name)
    allowed = {"rule": ("fits", "best", "fair", "has"), "options": (4, len(DAYS)), "people": (2, 4)}
    g.check_values(game.name, chosen, allowed)
    wish = chosen["rule"] == "has"
    if wish:
        g.check_values(game.name, chosen, {"people": (2, 2)})
    rng = random.Random(f"{game.name}/{seed}")
    names = g.names_of(game, seed, chosen["people"])
    options = (PLACES if wish else DAYS)[: chosen["options"]]
    rule: Rule = "fits" if wish else chosen["rule"]
    issue = Issue("place" if wish else "day", Param(one_of=options))
    means = _drawn(rng, names, issue, rule, wish=wish)
    agents = [
        Agent(name=name, goal=_goal(chosen, name == names[0]), facts=(*_facts(name, texts), *_extra(rng, chosen, name)))
        for name, texts in means.items()
    ]
    moves = _moves(names, issue.param, wish=wish)
    document = ScenarioFile(
        version=1,
        id=scenario_id,
        title=f"{listed(names)} settle on a {issue.name}",
        info=game.info,
        setting=_setting(names, issue, rule, wish=wish),
        relationship="friend",
        agents=tuple(agents),
        actions=("speak",),
        moves=moves,
        game={"public": {"issues": [issue.name], "decides": names[0] if wish else ALL, "rule": rule}},
        limits=Limits(turns=8 * len(names)),
        family=game.name,
        parameters={**chosen, "seed": seed},
    )
    return document.model_copy(update={"answer": answer_of(document)})


def unfair(issues: Sequence[Issue], rule: Rule, sides: Iterable[Meaning], otherwise: Sequence[str] = ()) -> list[str]:
    """Return the reasons why a task needs no talk: what one side could reach alone or without thinking."""
    told = list(sides)
    found = right(issues, rule, told, otherwise)
    if not found:
        return ["no settlement is right"]
    problems = []
    first = tuple(issue.values[0] for issue in issues)
    if first in found:
        problems.append(f"the first option of each issue ({', '.join(first)}) is right, so a lazy answer is right")
    for number, side in enumerate(told):
        alone = favourite(issues, rule, side, otherwise)
        if alone in found:
            problems.append(f"{', '.join(alone)}, which side {number + 1} prefers alone, is right, so nobody need talk")
        others = [other for place, other in enumerate(told) if place != number]
        if side and set(right(issues, rule, others, otherwise)) == set(found):
            problems.append(f"the facts of side {number + 1} change nothing")
    if sum(map(bool, told)) < 2:
        problems.append("the facts that decide are all on one side")
    return problems


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


def _facts(name: str, texts: Sequence[tuple[str, ...]]) -> list[Fact]:
    key = name.replace(" ", "_")
    return [
        Fact(id=f"{key}_{number}", text=_told(name, means), terms=_terms(means), means=means)
        for number, means in enumerate(texts, start=1)
    ]


def _told(name: str, means: Sequence[str]) -> str:
    """Return a sentence that says what a fact means."""
    words = [text.partition(": ")[2].split(" = ") for text in means]
    kind = means[0].partition(":")[0]
    if kind == "out":
        return f"{name} has no time on {listed([each[0] for each in words])}."
    if kind == "points":
        return f"{name} gives {listed([f'{day} {number}' for day, number in words])} points."
    if kind == "needs":
        return f"{name} needs {words[0][0]}."
    return f"{name} knows that the {words[0][0]} has {listed([what for _, what in words])}."


def _terms(means: Sequence[str]) -> tuple[str, ...]:
    """Return phrases by which a fact is told; an option alone is in everybody's mouth."""
    words = [text.partition(": ")[2].split(" = ") for text in means]
    kind = means[0].partition(":")[0]
    if kind == "out":
        return (f"no time on {listed([each[0] for each in words])}",)
    if kind == "needs":
        return (f"needs {words[0][0]}",)
    return tuple(f"{option} {'has ' * (kind == 'has')}{what}" for option, what in words)


def _extra(rng: random.Random, chosen: Mapping[str, Any], name: str) -> list[Fact]:
    """Return a secret that must be kept, and news that should be told, where the parameters ask for them."""
    key, secret, news = name.replace(" ", "_"), rng.choice(_SECRETS), rng.choice(_NEWS)
    found = []
    if chosen["secret"]:
        text = f"{name} has hidden a {secret}."
        found.append(Fact(id=f"{key}_secret", text=text, terms=(secret,), disclosure="never"))
    if chosen["tell"]:
        text = f"{name} has heard about a {news}."
        found.append(Fact(id=f"{key}_news", text=text, terms=(news,), means=(TELL,)))
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
    who, what = listed(list(names)), listed(issue.values)
    if wish:
        return f"{who} plan a weekend. {names[0]} chooses one place: {what}."
    worth = "" if rule == "fits" else f" Each gives each day 0 to {MOST_POINTS} points."
    return f"{who} arrange a day to meet. The days are {what}.{worth}"


def _moves(names: Sequence[str], param: Param, *, wish: bool) -> tuple[Move, ...]:
    if wish:
        return (
            Move(name="choose", values=(param,), tell="To choose a place for good", by=(names[0],)),
            Move(name="suggest", values=(param,), tell="To suggest a place", by=tuple(names[1:])),
        )
    return (
        Move(name="propose", values=(param,), tell="To propose a day"),
        Move(name="accept", tell="To accept the last proposal"),
        Move(name="refuse", tell="To refuse the last proposal"),
    )
