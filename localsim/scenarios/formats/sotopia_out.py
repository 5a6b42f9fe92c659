"""Scenarios and conversations -> Sotopia's objects, which `sotopia_talks.read` reads back with equal content.

Facts become `<extra_info>` of their owner's goal, and what only judges may see is for the viewer `environment`. Text
that looks like markup is escaped. What Sotopia has no place for is listed by `left_out`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from localsim.conversation.scenario import WRITER, Agent, LoadedScenario, canonical_hash
from localsim.conversation.transcript import ACTION_TYPES, Transcript, Turn
from localsim.scenarios.formats.markup import hidden, literal, marked
from localsim.scenarios.formats.sotopia_form import CODES, DIMENSIONS
from localsim.scenarios.formats.sotopia_talks import LEFT, OWN, SILENT, WORLD

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
        age = profile.age if profile.age is not None and profile.age.isdecimal() else "0"
        made.append(
            {
                "pk": agent_key(agent),
                "first_name": first,
                "last_name": last,
                "age": int(age),
                "occupation": profile.occupation or "",
                "gender": profile.gender or "",
                "gender_pronoun": profile.pronouns or "",
                "public_info": profile.public_info or "",
                "personality_and_values": profile.personality_and_values or "",
                "decision_making_style": profile.decision_making_style or "",
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


def left_out(loaded: LoadedScenario) -> Iterator[tuple[str, str]]:
    """Yield (field, why) of what Sotopia has no place for."""
    scenario, answer = loaded.scenario, loaded.answer
    if any(fact.terms or fact.disclosure != "free" for agent in scenario.agents for fact in agent.facts):
        yield "facts", "terms and rules of disclosure; the text of facts is kept"
    if scenario.family:
        yield "family", "a situation of Sotopia has no task family"
    if set(answer.answer) - {"judge_only"}:
        yield "answer", "Sotopia has no answer key"
    for name, there in (
        ("checks", answer.checks),
        ("moves", scenario.moves),
        ("phases", scenario.phases),
        ("game", scenario.game),
    ):
        if there:
            yield name, "Sotopia has none"
    if len({scenario.level(one, other) for one, other in combinations(scenario.names, 2)}) > 1:
        yield "relationship", "a situation has one; each pair has its own in the relationship profiles"
    ages = [agent.profile.age for agent in scenario.agents if agent.profile.age]
    if not all(age.isdecimal() for age in ages):
        yield "age", "one that is no number"


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
    rated = {
        (row["agent"], row["name"].removeprefix(OWN)): row
        for row in scores
        if row["evaluator"] == judge and row["value"] is not None
    }
    return {
        "pk": episode_id,
        "environment": key_of("environment", loaded.hash),
        "agents": [agent_key(agent) for agent in loaded.scenario.agents],
        "tag": f"localsim_{mode}",
        "models": [
            (judge or "none").removeprefix("judge."),
            *(models.get(name, models.get(WRITER, "")) for name in names),
        ],
        "messages": _messages(loaded, talk),
        "reasoning": _reasoning(names, rated),
        "rewards": [_reward(name, rated) for name in names],
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
    return [[WORLD, name, turn.action.text] for name in (turn.readers or names)]


def _message(turn: Turn) -> list[str]:
    action = turn.action
    if action.type == "speak":
        text = f'said: "{action.text}"'
    elif action.type in ("none", "leave"):
        text = {"none": SILENT, "leave": LEFT}[action.type] + (f": {action.text}" if action.text else "")
    elif action.type in ACTION_TYPES:
        text = f"[{action.type}] {action.text}"
    else:
        text = "[action] " + (f"{turn.doing}: {action.text}" if action.text else turn.doing)
    return [turn.speaker, WORLD, text]


def _reward(name: str, rated: Mapping[tuple[str, str], Row]) -> list[Any] | float:
    values = {
        _NAMES[dimension]: row["value"]
        for (agent, dimension), row in rated.items()
        if agent == name and dimension in _NAMES
    }
    if not values:
        return UNRATED
    parts = [value for dimension, value in values.items() if dimension != "overall_score"]
    return [values.get("overall_score", sum(parts) / len(parts) if parts else UNRATED), values]


def _reasoning(names: Sequence[str], rated: Mapping[tuple[str, str], Row]) -> str:
    lines = []
    for number, name in enumerate(names, start=1):
        own = [
            (_NAMES[dimension], row["reason"])
            for (agent, dimension), row in rated.items()
            if agent == name and dimension in _NAMES
        ]
        if own:
            lines.append(f"Agent {number} comments:")
            lines += [f"{dimension}: {' '.join(reason.split())}" for dimension, reason in own]
    return "".join(f"{line}\n" for line in lines)
