"""Scenarios and conversations -> Sotopia's objects, which `sotopia_talks.read` reads back with equal content.

Facts become `<extra_info>` of their owner's goal, and what only judges may see is for the viewer `environment`. Text
that looks like markup is escaped. A turn for some readers is a private message. What Sotopia has no place for (`LOST`)
is counted by `lost_with` and `lost_in`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from localsim.conversation.scenario import PERSONA, WRITER, Agent, Limits, LoadedScenario, canonical_hash
from localsim.conversation.transcript import ACTION_TYPES, Transcript, Turn
from localsim.scenarios.formats.markup import hidden, literal, marked
from localsim.scenarios.formats.sotopia_form import CODES, DIMENSIONS
from localsim.scenarios.formats.sotopia_talks import LEFT, OURS, OWN, SILENT, WORLD

Row = Mapping[str, Any]
UNRATED = 0.0
"""The reward of an agent that no judge has rated: Sotopia needs a number, and a rating has dimensions beside it."""
_LABEL = "Extra information: "
_NAMES = {ours: theirs for theirs, ours in DIMENSIONS.items()}


def environment_of(loaded: LoadedScenario) -> dict[str, Any]:
    """Return the environment profile of a scenario."""
    scenario = loaded.scenario
    known = loaded.answer.parameters.get("sotopia", {})
    judge = [hidden(text, "environment") for text in loaded.answer.answer.get("judge_only", ())]
    return {
        "pk": key_of("environment", loaded.hash),
        "codename": scenario.id,
        "source": known.get("source", "localsim"),
        "scenario": " ".join([literal(scenario.setting), *judge]),
        "agent_goals": [_goal(agent) for agent in scenario.agents],
        "relationship": CODES[scenario.level(*scenario.names[:2])],
        "age_constraint": _text(known.get("age_constraint")),
        "occupation_constraint": _text(known.get("occupation_constraint")),
        "agent_constraint": known.get("agent_constraint"),
    }


def _text(constraint: Any) -> str | None:
    return None if constraint is None else str(constraint)


def _goal(agent: Agent) -> str:
    facts = [marked("extra_info", fact.text, _LABEL) for fact in agent.facts]
    return " ".join([literal(agent.goal), *facts])


def profiles_of(loaded: LoadedScenario) -> list[dict[str, Any]]:
    """Return the agent profiles of a scenario, in order."""
    made = []
    for agent in loaded.scenario.agents:
        first, _, last = agent.name.partition(" ")
        profile = agent.profile
        made.append(
            {
                "pk": agent_key(agent),
                "first_name": first,
                "last_name": last,
                "age": _age(agent) or 0,
                "occupation": literal(profile.occupation or ""),
                "gender": literal(profile.gender or ""),
                "gender_pronoun": literal(profile.pronouns or ""),
                "public_info": literal(profile.public_info or ""),
                "personality_and_values": literal(profile.personality_and_values or ""),
                "decision_making_style": literal(profile.decision_making_style or ""),
                "secret": literal(agent.secret or ""),
            }
        )
    return made


def relationships_of(loaded: LoadedScenario) -> list[dict[str, Any]]:
    """Return the relationship profiles of a scenario, one for each pair."""
    scenario = loaded.scenario
    return [
        {
            "pk": key_of("relationship", agent_key(one), agent_key(other)),
            "agent_1_id": agent_key(one),
            "agent_2_id": agent_key(other),
            "relationship": CODES[scenario.level(one.name, other.name)],
            "background_story": None,
        }
        for one, other in combinations(scenario.agents, 2)
    ]


def key_of(*parts: str) -> str:
    """Return a key of 26 characters, as long as those of Sotopia, that depends on the content alone."""
    return canonical_hash(parts)[:26].upper()


def agent_key(agent: Agent) -> str:
    """Return the key of a character: the same for equal profiles."""
    return key_of("agent", agent.name, agent.profile.model_dump_json(), agent.secret or "")


LOST = {
    "facts": "terms and rules of disclosure; the text of facts is kept",
    "family": "a situation of Sotopia has no task family",
    "answer": "Sotopia has no answer key",
    "checks": "Sotopia has none",
    "moves": "Sotopia has none; in episodes they are actions, with their values as words",
    "phases": "Sotopia has none",
    "game": "Sotopia has none",
    "actions": "an agent of Sotopia has all five types",
    "limits": "Sotopia has none",
    "language": "Sotopia has none",
    "persona": "statements, background, knows and never_heard_of of an agent",
    "relationship": "a situation has one; each pair has its own in the relationship profiles",
    "age": "one that is no number",
    "values": "what the rules tell keeps its words only",
    "simultaneous turns": "they stand one after another",
    "marks of turns": "that a text was cut or repaired",
    "granted items": "what agents saw of others",
    "episodes": "only completed ones of two or more agents, none of whom is called Environment, are written",
    "scores": "only the ratings of one judge in Sotopia's dimensions are written",
    "leaks": "Sotopia has none",
}
"""What Sotopia's files have no place for -> why. Titles, info and prompts are in no file of theirs either."""


def fits(loaded: LoadedScenario) -> bool:
    """Return True if a log of Sotopia can hold a talk on a scenario: two agents and more, and none is its world."""
    names = loaded.scenario.names
    return len(names) > 1 and WORLD not in names


def lost_with(loaded: LoadedScenario) -> Iterator[str]:
    """Yield the keys of LOST that a scenario has."""
    scenario, answer = loaded.scenario, loaded.answer
    if any(fact.terms or fact.disclosure != "free" for agent in scenario.agents for fact in agent.facts):
        yield "facts"
    there = {
        "family": scenario.family,
        "answer": set(answer.answer) - {"judge_only"},
        "checks": answer.checks,
        "moves": scenario.moves,
        "phases": scenario.phases,
        "game": scenario.game,
        "actions": set(ACTION_TYPES) - set(scenario.actions),
        "limits": scenario.limits != Limits(),
        "language": scenario.language,
        "persona": any(getattr(agent, name) for agent in scenario.agents for name in PERSONA),
        "relationship": len({scenario.level(*pair) for pair in combinations(scenario.names, 2)}) > 1,
        "age": any(_age(agent) is None for agent in scenario.agents),
    }
    yield from (name for name, has in there.items() if has)


def lost_in(talk: Transcript, see: str, scores: Sequence[Row], leaks: Sequence[Row]) -> Counter[str]:
    """Return key of LOST -> number of turns, conditions, scores or leaks of an episode that have no place."""
    judge = judge_of(scores)
    kept = sum(row["evaluator"] == judge and row["name"].removeprefix(OWN) in _NAMES for row in scores)
    return Counter({
        "moves": sum(turn.action.type not in ACTION_TYPES for turn in talk.acts),
        "values": sum(turn.told and bool(turn.values) for turn in talk.turns),
        "simultaneous turns": sum(turn.beat_size > 1 for turn in talk.turns),
        "marks of turns": sum(turn.truncated or turn.repaired for turn in talk.turns),
        "granted items": int(bool(see)),
        "scores": len(scores) - kept,
        "leaks": len(leaks),
    })  # fmt: skip


def _age(agent: Agent) -> int | None:
    """Return the age of an agent, 0 if it is not given; None if it is no number as Sotopia writes it."""
    given = agent.profile.age or "0"
    return int(given) if re.fullmatch(r"[0-9]{1,3}", given) else None


# ---- an episode -----------------------------------------------------------------------------------------------------


def log_of(
    episode_id: str,
    loaded: LoadedScenario,
    mode: str,
    models: Mapping[str, str],
    talk: Transcript,
    scores: Sequence[Row],
) -> dict[str, Any]:
    """Return the log of an episode; `scores` have evaluator, name, agent, value and reason."""
    names = loaded.scenario.names
    judge = judge_of(scores)
    rated: dict[str, dict[str, Row]] = {name: {} for name in names}
    for row in scores:
        dimension = _NAMES.get(row["name"].removeprefix(OWN))
        if dimension and row["evaluator"] == judge and row["agent"] in rated and row["value"] is not None:
            rated[row["agent"]][dimension] = row
    return {
        "pk": episode_id,
        "environment": key_of("environment", loaded.hash),
        "agents": [agent_key(agent) for agent in loaded.scenario.agents],
        "tag": f"{OURS}{mode}",
        "models": [
            (judge or "none").removeprefix("judge."),
            *(models.get(name, models.get(WRITER, "")) for name in names),
        ],
        "messages": _messages(loaded, talk),
        "reasoning": _reasoning(rated.values()),
        "rewards": [_reward({name: row["value"] for name, row in own.items()}) for own in rated.values()],
        "rewards_prompt": "",
    }


def judge_of(scores: Sequence[Row]) -> str:
    """Return the evaluator whose ratings a log holds: that of an imported log, else the first judge by name."""
    judges = {row["evaluator"] for row in scores if row["name"].removeprefix(OWN) in _NAMES and row["agent"]}
    own = {name for name in judges if name == "corpus"}
    return min(own or {name for name in judges if name.startswith("judge.")}, default="")


def _messages(loaded: LoadedScenario, talk: Transcript) -> list[list[list[str]]]:
    """Return the messages of a log: what each agent is told at first, then one turn after another."""
    scenario = loaded.scenario
    people = " and ".join(scenario.names)
    told = [
        [
            WORLD,
            agent.name,
            f"Scenario: {scenario.setting}\nParticipants: {people}\n"
            f"{agent.name}'s goal: {agent.goal}\nConversation Starts:\n",
        ]
        for agent in scenario.agents
    ]
    return [told, *(_told(turn, scenario.names) if turn.told else [_message(turn)] for turn in talk.turns)]


def _told(turn: Turn, names: Sequence[str]) -> list[list[str]]:
    return [[WORLD, name, turn.action.text] for name in (names if turn.readers is None else turn.readers)]


def _message(turn: Turn) -> list[str]:
    action = turn.action
    if action.type == "speak":
        text = f'said: "{action.text}"'
    elif action.type in ("none", "leave"):
        text = {"none": SILENT, "leave": LEFT}[action.type] + (f": {action.text}" if action.text else "")
    elif action.type in ACTION_TYPES:
        text = f"[{action.type}] {action.text}"
    else:
        does = " ".join([action.type, *action.bracket])
        text = f"[action] {does}: {action.text}" if action.text else f"[action] {does}"
    return [turn.speaker, WORLD, f"{_private(turn)}{text}"]


def _private(turn: Turn) -> str:
    """Return the mark of a message that not everybody reads; what nobody else reads is private to its author."""
    if turn.readers is None:
        return ""
    others = [name for name in turn.readers if name != turn.speaker]
    return f"[private to {others or [turn.speaker]}] "


def _reward(values: Mapping[str, float]) -> list[Any] | float:
    if not values:
        return UNRATED
    parts = [value for dimension, value in values.items() if dimension != "overall_score"]
    return [values.get("overall_score", sum(parts) / len(parts) if parts else UNRATED), values]


def _reasoning(rated: Iterable[Mapping[str, Row]]) -> str:
    lines = []
    for number, own in enumerate(rated, start=1):
        lines += [f"Agent {number} comments:"] if own else []
        lines += [f"{dimension}: {' '.join(row['reason'].split())}" for dimension, row in own.items()]
    return "".join(f"{line}\n" for line in lines)
