"""MutualFriends (He et al. 2017, arXiv 1704.07130; as a social task: arXiv 2403.05020, section 3).

Each side knows k friends by name and attributes; usually exactly one friend is on both lists. Names of agents and
friends never coincide. Scores: the first mention of a true friend, its confirmation, and the number of wrong guesses.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from localsim.conversation.episode import Observation, Score
from localsim.conversation.measures import Measure
from localsim.conversation.scenario import Agent, AnswerKey, Fact, Info, Scenario, ScenarioFile
from localsim.conversation.transcript import Action, Transcript
from localsim.errors import InvalidInput
from localsim.families.base import (
    EXPLICIT_END,
    SUCCESS,
    Baseline,
    Curve,
    Family,
    Location,
    Played,
    Player,
    Point,
    merged,
)
from localsim.families.farewells import says_farewell
from localsim.families.mutual_friends import players
from localsim.families.mutual_friends.names import friends_outcome, mentions
from localsim.families.terms import span_of
from localsim.families.vocabulary import DEFAULT, Vocabulary, person

_ATTRIBUTES = {"hobby": "likes {}", "company": "works at {}", "town": "lives in {}"}
_Row = tuple[str, tuple[str, ...]]


FIRST_MENTION = Measure(
    key="first_mention",
    heading="first mention",
    meaning=(
        "position of the first utterance that names the friend in common, 0 at the start, 1 at the end; over the "
        "conversations that name one"
    ),
    score="first_mention",
    kind="position",
    group="information",
    compared=True,
    published={"script": 0.13, "agents": 0.39},
)
NAMED = Measure(
    key="named_rate",
    heading="friend named",
    meaning="share of conversations in which the friend in common is named at all",
    score="named",
    kind="share",
    summed="episodes",
    group="information",
)
WRONG_GUESSES = Measure(
    key="wrong_guesses",
    heading="wrong guesses",
    meaning="friends proposed who are not in common, per conversation",
    score="wrong_guesses",
    group="information",
    compared=True,
)
GUESSING = Measure(
    key="guessing",
    heading="asks by name",
    meaning="share of the questions that put a name forward instead of asking about something else",
    score="guessing",
    kind="share",
    group="information",
)


def _named(played: Played) -> list[Point] | None:
    """Return the first mention as a point; no point if no true friend is named, None if there is none to name."""
    if "named" not in played.scores:
        return None
    position = played.scores.get("first_mention")
    return [] if position is None else [Point(position)]


class MutualFriends(Family):
    """Find out whether you have a friend in common."""

    name = "mutual_friends"
    version = "2"
    defaults: Mapping[str, Any] = {"friends": 5, "attributes": "hobby,company", "common": 1}
    title = "Mutual friends"
    about = (
        "Two strangers find out whether they have a friend in common; each knows only the friends on their own list."
    )
    invitation = "Two strangers look for a friend in common"
    measures = (SUCCESS, EXPLICIT_END, FIRST_MENTION, NAMED, WRONG_GUESSES, GUESSING)
    figure = ("success_rate", "named_rate", "first_mention")
    curve = Curve(
        "named",
        "Friend named by then",
        "share of conversations in which the friend in common has been named",
        "reached",
        _named,
    )
    players: Mapping[str, Player] = {"friends": players.friends, "guesser": players.guesser}
    sensible = "friends"
    baseline = Baseline(
        "guesser",
        "First mentions have no guessing baseline here; --model scripted:guesser on the same scenarios gives one.",
    )
    terms_disclose = True

    def __init__(self, words: Vocabulary = DEFAULT) -> None:
        self._words = words
        self._pools = {"hobby": words.hobbies, "company": words.companies, "town": words.towns}

    def generate(self, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> ScenarioFile:
        """Return two lists of `friends` people with `attributes`, `common` of them (0 or more) on both lists."""
        chosen = merged(self.defaults, parameters, self.name)
        attributes = [part.strip() for part in chosen["attributes"].split(",") if part.strip()]
        self._check_parameters(chosen, attributes)
        rng = random.Random(f"{self.name}/{seed}")
        names = rng.sample(self._words.names, 2 + 2 * chosen["friends"] - chosen["common"])
        people, friends = names[:2], names[2:]
        common = chosen["common"]
        tables = self._tables(rng, friends, chosen["friends"], common, attributes)
        agents = tuple(
            self._agent(rng, name, other, table, attributes)
            for name, other, table in zip(people, reversed(people), tables, strict=True)
        )
        return ScenarioFile(
            version=1,
            id=scenario_id,
            title=f"{people[0]} and {people[1]} look for a friend in common",
            info=Info(
                what="Two strangers find out whether they have a friend in common. Each knows only their own friends.",
                how="Success is a friend on both lists, named by one and affirmed by the other.",
                things_to_try=(
                    "Compare at which position of the talk the friend is first named in the three modes.",
                    "Give one side to scripted:guesser and see how early pure guessing gets there.",
                ),
            ),
            setting=f"{people[0]} and {people[1]} meet {rng.choice(self._words.meetings)}.",
            relationship="stranger",
            agents=agents,
            family=self.name,
            parameters={**chosen, "seed": seed},
            answer={"mutual_friends": sorted(friends[:common])},
        )

    def _check_parameters(self, chosen: dict[str, Any], attributes: list[str]) -> None:
        unknown = [name for name in attributes if name not in _ATTRIBUTES]
        if unknown or not attributes:
            raise InvalidInput(
                f"unknown attributes {', '.join(unknown) or '(none given)'}", hint=f"known: {', '.join(_ATTRIBUTES)}"
            )
        if not 1 <= chosen["friends"] <= 20 or not 0 <= chosen["common"] <= chosen["friends"]:
            raise InvalidInput(
                f"friends = {chosen['friends']} with common = {chosen['common']} cannot be made",
                hint="friends is 1 to 20, and common 0 to friends",
            )

    def _tables(
        self, rng: random.Random, friends: list[str], size: int, common: int, attributes: list[str]
    ) -> tuple[list[_Row], list[_Row]]:
        """Return the two shuffled lists. They use few distinct values, so that asking about attributes helps."""
        pools = [rng.sample(self._pools[name], 4) for name in attributes]
        taken: set[tuple[str, ...]] = set()
        rows: list[_Row] = []
        for friend in friends:
            values = tuple(rng.choice(pool) for pool in pools)
            for _ in range(40):
                if values not in taken:
                    break
                values = tuple(rng.choice(pool) for pool in pools)
            taken.add(values)
            rows.append((friend, values))
        first, second = rows[:size], rows[:common] + rows[size:]
        rng.shuffle(first)
        rng.shuffle(second)
        return first, second

    def _agent(self, rng: random.Random, name: str, other: str, table: list[_Row], attributes: list[str]) -> Agent:
        facts = []
        for number, (friend, values) in enumerate(table, start=1):
            phrases = [_ATTRIBUTES[key].format(value) for key, value in zip(attributes, values, strict=True)]
            text = f"{friend} {' and '.join(phrases)}."
            facts.append(Fact(id=f"{name.lower()}_friend_{number}", text=text, terms=(friend,)))
        return Agent(
            name=name,
            profile=person(rng, name, self._words),
            goal=f"Find out whether you and {other} have a friend in common. Do not just read out your list.",
            facts=tuple(facts),
        )

    def check(self, document: ScenarioFile) -> list[tuple[Location, str]]:
        """Check that each agent has a fact whose first term names a friend, and that the answer lists shared ones."""
        problems: list[tuple[Location, str]] = []
        for number, agent in enumerate(document.agents):
            if not any(fact.terms for fact in agent.facts):
                problems.append((("agents", number), "mutual_friends needs facts whose first term is a friend's name"))
        friends = friends_of(document)
        shared = sorted({name for names in friends.values() for name in names if _holders(name, friends) > 1})
        given = document.answer.get("mutual_friends", [])
        if not isinstance(given, list) or sorted(map(str, given)) != shared:
            problems.append((("answer", "mutual_friends"), f"must be what the lists share: {shared}"))
        return problems

    def span(self, text: str, term: str) -> tuple[int, int] | None:
        """Return the first place that utters a term; a name counts only if it is used as one ("Will", not "will")."""
        if term.startswith("$"):
            return span_of(text, term)
        places = mentions(text, term)
        return (places[0], places[0] + len(term)) if places else None

    def remarks(self, scores: Mapping[str, float]) -> list[str]:
        """Return a sentence with the position of the first mention."""
        first = scores.get("first_mention")
        return [] if first is None else [f"The friend in common is first named at {first:.2f} of the conversation."]

    def omniscient(self, seen: Observation, rng: random.Random) -> Action | None:
        """Ask about the friends on both lists, if both are visible."""
        return players.omniscient(seen, rng)

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Return the scores first_mention, wrong_guesses, named, success, guessing and explicit_end.

        guessing: of the turns that ask, the share that propose a name instead of asking about something else.
        """
        turns = transcript.turns
        outcome = friends_outcome(turns, friends_of(scenario))
        true_friends = list(answer.answer.get("mutual_friends", []))
        scores = [Score("wrong_guesses", float(len(outcome.wrong_guesses)), label=", ".join(outcome.wrong_guesses))]
        if true_friends:
            named = outcome.named_turn is not None
            cited = (outcome.named_turn,) if outcome.named_turn is not None else ()
            reason = f"{outcome.named_by} names {outcome.first_named}" if named else "no true friend is named"
            scores.append(Score("named", float(named), agent=outcome.named_by, reason=reason, turns=cited))
            if outcome.named_turn is not None:
                position = transcript.position(outcome.named_turn)
                scores.append(Score("first_mention", position, label=outcome.first_named, reason=reason, turns=cited))
            evidence = cited + ((outcome.confirmed_turn,) if outcome.confirmed_turn is not None else ())
            reason = f"{outcome.confirmed_friend} is affirmed" if outcome.confirmed else "no true friend is affirmed"
            scores.append(Score("success", float(outcome.confirmed), reason=reason, turns=evidence))
        asking = [turn for turn in turns if turn.said and "?" in turn.action.text]
        if asking:
            names = {name for listed in friends_of(scenario).values() for name in listed}
            guesses = [turn.index for turn in asking if any(mentions(turn.action.text, name) for name in names)]
            reason = f"{len(guesses)} of {len(asking)} questions name somebody"
            scores.append(Score("guessing", len(guesses) / len(asking), reason=reason, turns=tuple(guesses)))
        ended = [turn.index for turn in turns if turn.action.type == "leave" or says_farewell(turn.action.text)]
        before_limit = bool(ended) and ended[0] < scenario.limits.turns
        scores.append(
            Score("explicit_end", float(before_limit), reason="a farewell" if ended else "", turns=tuple(ended[:1]))
        )
        return scores


def friends_of(scenario: Scenario) -> dict[str, list[str]]:
    """Return each agent's friends: the first term of each fact that has one."""
    return {agent.name: [fact.terms[0] for fact in agent.facts if fact.terms] for agent in scenario.agents}


def _holders(name: str, friends: Mapping[str, list[str]]) -> int:
    return sum(name in names for names in friends.values())
