"""Every prompt string, versioned: Observation -> messages. `visibility` alone decides what a viewer may see.

Prompts are short, because small models lose the thread of long ones. They are also true: a prompt tells a mindreader
that everybody sees everything, and an agent that the others do not see its goal. Raise VERSION with every change of
wording.
"""

from __future__ import annotations

from localsim.conversation.episode import AgentView, Observation
from localsim.conversation.exchange import Message
from localsim.conversation.transcript import Action, ActionType, Turn, line_of

VERSION = "2"

_ACTIONS: dict[ActionType, str] = {
    "speak": "To speak",
    "non-verbal communication": "For a gesture or a look, described in words",
    "action": "To do something, described in words",
    "leave": "To end the conversation, perhaps with a goodbye",
    "none": "To do nothing",
}
_LEVELS = {
    "stranger": "strangers",
    "know_by_name": "known to each other by name only",
    "acquaintance": "acquaintances",
    "friend": "friends",
    "romantic": "a couple",
    "family": "family",
}
FIRST_TURN = "The conversation begins. It is your turn."
YOUR_TURN = "It is your turn."


def agent_messages(seen: Observation) -> tuple[Message, ...]:
    """Return the chat of one agent: instructions, then others' turns (user) and its own (assistant)."""
    messages = [Message("system", agent_instructions(seen))]
    others: list[str] = []
    for turn in seen.transcript.turns:
        if turn.speaker == seen.viewer:
            messages.append(Message("user", _heard(others, first=len(messages) == 1)))
            messages.append(Message("assistant", turn.line))
            others = []
        else:
            others.append(turn.line)
    messages.append(Message("user", _heard(others, first=len(messages) == 1)))
    return tuple(messages)


def _heard(lines: list[str], *, first: bool) -> str:
    if lines:
        return "\n".join(lines)
    return FIRST_TURN if first else YOUR_TURN


def agent_instructions(seen: Observation) -> str:
    """Return the system message of one agent, in agents and mindreaders mode."""
    me = seen.me()
    others = [agent for agent in seen.agents if agent.name != me.name]
    names = _listing([agent.name for agent in others])
    parts = [f"You are {me.name}, talking with {names}. Stay in this role.", f"Setting: {seen.setting}"]
    parts += relationship_lines(seen)
    parts += _about(me, "You", "Your", "you know")
    for other in others:
        parts += _about(other, other.name, f"{other.name}'s", f"{other.name} knows")
    if seen.omniscient:
        parts.append(f"All of this is known to everybody: {names} can see your side too.")
    elif me.secret or me.facts:
        parts.append(f"{names} cannot see your goal, your secret or what you know.")
    else:
        parts.append(f"{names} cannot see your goal.")
    parts.append("Reply with your next line, one or two short sentences.")
    parts += _rules(seen, me.name)
    return "\n".join(parts)


def writer_messages(seen: Observation) -> tuple[Message, ...]:
    """Return the chat of the model that writes a whole script."""
    names = _listing([agent.name for agent in seen.agents])
    parts = [f"Write a conversation between {names}.", f"Setting: {seen.setting}"]
    parts += relationship_lines(seen)
    for agent in seen.agents:
        parts += _about(agent, agent.name, f"{agent.name}'s", f"{agent.name} knows")
    parts.append("Write one line for each turn, one or two short sentences.")
    parts += _rules(seen, seen.agents[0].name)
    ask = f"Write the conversation now. {seen.agents[0].name} begins, then they take turns in this order: {names}."
    return (Message("system", "\n".join(parts)), Message("user", ask))


def script_prefill(turns: tuple[Turn, ...], next_speaker: str) -> str:
    """Return the fixed part of a script: the turns so far, and the start of the next line."""
    return "".join(turn.line + "\n" for turn in turns) + next_speaker


def _about(agent: AgentView, subject: str, possessive: str, knows: str) -> list[str]:
    """Return the visible parts of one agent (profile, goal, secret, facts), one line for each part."""
    lines = []
    if agent.profile:
        lines.append(f"{subject}: {', '.join(_field(label, value) for label, value in agent.profile)}")
    if agent.goal:
        lines.append(f"{possessive} goal: {agent.goal}")
    if agent.secret:
        lines.append(f"{possessive} secret: {agent.secret}")
    if agent.facts:
        lines.append(f"What {knows}:")
        lines += [f"- {fact.text}" for fact in agent.facts]
    return lines


def _field(label: str, value: str) -> str:
    return f"{value} years old" if label == "age" and value.isdigit() else value.rstrip(".")


def relationship_lines(seen: Observation) -> list[str]:
    """Return a sentence for each pair whose relationship the viewer knows."""
    return [f"{one} and {other} are {_LEVELS[level]}." for one, other, level in seen.relationships]


def _rules(seen: Observation, name: str) -> list[str]:
    """Return an example line for each action, and the limit of turns."""
    lines = [f"{_ACTIONS[kind]}: {line_of(name, _example(kind))}" for kind in seen.actions]
    return [*lines, f"There are at most {seen.turn_limit} turns in all. Do not repeat what was said."]


def _example(kind: ActionType) -> Action:
    return Action(kind, "" if kind == "none" else "...")


def _listing(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
