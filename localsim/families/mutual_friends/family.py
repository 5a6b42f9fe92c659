"""MutualFriends (He et al. 2017, arXiv 1704.07130; as a social task: arXiv 2403.05020, section 3).

Each side knows k friends by name and attributes; usually exactly one friend is on both lists. Names of agents and
friends never coincide. Success is to agree on exactly the friends in common, all of them, and on nobody if there is
none.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from localsim.conversation.episode import Observation, Score
from localsim.conversation.minds.steps import others_of
from localsim.conversation.scenario import Agent, AnswerKey, Fact, Info, Scenario, ScenarioFile
from localsim.conversation.transcript import Action, Transcript
from localsim.errors import InvalidInput
from localsim.families.base import (
    Baseline,
    Curve,
    Family,
    Hits,
    Location,
    Played,
    Player,
    Point,
    Question,
    Verdict,
    listed,
    merged,
    sentence,
)
from localsim.families.mutual_friends import players, scoring
from localsim.families.mutual_friends.corpus import CORPUS
from localsim.families.mutual_friends.lists import Lists
from localsim.families.mutual_friends.measures import CONTROL_TASKS, CONTROLS, MEASURES
from localsim.families.mutual_friends.mentions import all_friends, mentions, speaks_of_friend
from localsim.families.mutual_friends.players import PLAYERS
from localsim.families.mutual_friends.search import posterior
from localsim.families.settling import Offered
from localsim.families.terms import span_of
from localsim.families.vocabulary import DEFAULT, Vocabulary, person

_ATTRIBUTES = {"hobby": "likes {}", "company": "works at {}", "town": "lives in {}"}
_Row = tuple[str, tuple[str, ...]]


def _named(played: Played) -> list[Point] | None:
    """Return the first mention as a point; no point if no true friend is named, None if there is none to name."""
    named, turn = played.scores.get("named"), played.scores.get("first_mention_turn")
    if named is None or turn is None:  # scores of an older version have no turn
        return None
    return [Point(turn)] if named else []


class MutualFriends(Family):
    """Find out whether you have a friend in common."""

    name = "mutual_friends"
    version = "12"
    defaults: Mapping[str, Any] = {"friends": 5, "attributes": "hobby,company", "common": 1}
    title = "Mutual friends"
    about = (
        "Two strangers find out whether they have a friend in common; each knows only the friends on their own list. "
        "They succeed if the people they agree on are exactly those on both lists."
    )
    invitation = "Two strangers look for a friend in common"
    measures = MEASURES
    figure = ("success_rate", "peeking", "false_affirmed", "first_mention_turn", "first_mention")
    curve = Curve(
        "named",
        "Friend named by then",
        "share of conversations in which a friend in common has been named",
        "reached",
        _named,
        axis="turns",
        reads_turns=False,
    )
    players: Mapping[str, Player] = PLAYERS
    sensible = "friends"
    baseline = Baseline(
        "guesser",
        "First mentions have no guessing baseline here; --model scripted:guesser on the same scenarios gives one.",
    )
    controls = CONTROLS
    control_tasks: Mapping[str, Mapping[str, Any]] = CONTROL_TASKS
    study_tasks = ("", "no friend")
    interests = "cooperative"
    unearned = ("mix_ups",)
    taught = True
    hits = Hits(
        "unearned_hits",
        "unearned_chance",
        "Nothing that was said before singled out this friend, as far as it could be read.",
        answers_are_hinted=True,
    )
    terms_disclose = True
    corpus = CORPUS

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
            self._agent(rng, name, _goal(other, common), table, attributes)
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
            for _ in range(41):
                values = tuple(rng.choice(pool) for pool in pools)
                if values not in taken:
                    break
            taken.add(values)
            rows.append((friend, values))
        first, second = rows[:size], rows[:common] + rows[size:]
        rng.shuffle(first)
        rng.shuffle(second)
        return first, second

    def _agent(self, rng: random.Random, name: str, goal: str, table: list[_Row], attributes: list[str]) -> Agent:
        facts = []
        for number, (friend, values) in enumerate(table, start=1):
            phrases = [_ATTRIBUTES[key].format(value) for key, value in zip(attributes, values, strict=True)]
            text = f"{friend} {' and '.join(phrases)}."
            facts.append(Fact(id=f"{name.lower()}_friend_{number}", text=text, terms=(friend,)))
        return Agent(name=name, profile=person(rng, name, self._words), goal=goal, facts=tuple(facts))

    def check(self, document: ScenarioFile) -> list[tuple[Location, str]]:
        """Check that each agent has a fact whose first term names a friend, and that the answer lists shared ones."""
        problems: list[tuple[Location, str]] = []
        for number, agent in enumerate(document.agents):
            if not any(fact.terms for fact in agent.facts):
                problems.append((("agents", number), "mutual_friends needs facts whose first term is a friend's name"))
        friends = friends_of(document)
        everybody = all_friends(friends)
        shared = sorted(name for name in everybody if sum(name in names for names in friends.values()) > 1)
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
        """Return sentences on the turn of the first mention, counted from 1, and on false friends."""
        said = []
        if "named" in scores:
            turn = scores.get("first_mention_turn", 0)
            said.append(
                f"A friend in common is first named in turn {turn:.0f}."
                if scores["named"]
                else "No friend in common is named."
            )
        false = scores.get("false_affirmed", 0)
        if false:
            people = "person is" if false == 1 else "people are"
            said.append(f"{false:.0f} {people} falsely affirmed as a friend in common.")
        return said

    def verdict(self, scores: Mapping[str, Score], answer: AnswerKey) -> Verdict | None:
        """Return who is agreed on, and who is on both lists; None if success was not scored."""
        success = scores.get("success")
        if success is None or success.value is None:
            return None
        false = scores.get("false_affirmed")
        names = false.label if false is not None and false.label else ""
        wrong = f" {listed(names.split(', '))} {'are' if ', ' in names else 'is'} not on both lists." if names else ""
        said = re.sub(r" \(not in common: .*\)$", "", success.reason)
        true = [str(name) for name in answer.answer.get("mutual_friends", [])]
        truth = f"{listed(true) or 'Nobody'} {'are' if len(true) > 1 else 'is'} on both lists."
        return Verdict(success.value == 1, sentence(said), f"{truth}{wrong}", _missed(scores, true))

    def touches(self, transcript: Transcript, scenario: Scenario) -> Sequence[int]:
        """Return the turns that name a friend of a list, or ask for one by a trait."""
        facts = {fact.terms[0]: fact.text for agent in scenario.agents for fact in agent.facts if fact.terms}
        said = (turn for turn in transcript.turns if turn.said)
        return [turn.index for turn in said if speaks_of_friend(turn.action.text, facts)]

    def offered(self, scenario: Scenario, agent: str) -> Offered | None:
        """Return the own friends, of whom one is chosen; None where several are in common."""
        lists = Lists.read(scenario)
        return Offered(tuple(lists.names[agent])) if len(lists.shared) < 2 else None

    def unknown(self, seen: Observation) -> Question | None:
        """Ask which of its own friends an agent takes for the one in common."""
        own = tuple(fact.terms[0] for fact in seen.me().facts if fact.terms)
        ask = f"Which one of your own friends is most likely to be a friend of {others_of(seen)} too?"
        return Question(ask, own) if len(own) > 1 else None

    def posterior(self, talk: Transcript, scenario: Scenario, agent: str, *, sees_all: bool) -> Mapping[str, float]:
        """Return how likely each of an agent's friends is the one in common; {} unless exactly one is."""
        lists = Lists.read(scenario)
        if len(lists.shared) != 1:
            return {}
        if sees_all:
            return {name: float(name in lists.shared) for name in lists.of[agent]}
        return posterior(talk.turns, lists, agent)

    def omniscient(self, seen: Observation, rng: random.Random) -> Action | None:
        return players.omniscient(seen, rng)

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        return scoring.scores(transcript, scenario, answer)


def _goal(other: str, common: int) -> str:
    """Return an agent's goal. Success with several friends in common is to find all of them, so the goal says that."""
    if common > 1:
        return f"Find out which friends you and {other} have in common, all of them. Do not just read out your list."
    return f"Find out whether you and {other} have a friend in common. Do not just read out your list."


def _missed(scores: Mapping[str, Score], true: Sequence[str]) -> str:
    """Return what is missing in a search without success, as a word of `Verdict.missed`."""
    values = {name: score.value for name, score in scores.items()}
    if values.get("success") == 1:
        return ""
    if values.get("false_affirmed"):
        return "false_friend"
    if not true:
        return "claimed"
    if "first_mention" not in values:
        return "unnamed"
    return "incomplete" if values.get("confirmed") and len(true) > 1 else "unaffirmed"


def friends_of(scenario: Scenario) -> dict[str, list[str]]:
    """Return each agent's friends: the first term of each fact that has one."""
    return {agent.name: [fact.terms[0] for fact in agent.facts if fact.terms] for agent in scenario.agents}
