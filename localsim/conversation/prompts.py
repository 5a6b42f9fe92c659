"""Every prompt string, versioned: Observation -> messages. `visibility` alone decides what a viewer may see.

Prompts are short, because small models lose the thread of long ones. They are also true: a prompt tells a mindreader
that everybody sees everything, and an agent that the others do not see its goal. The words are in `wordings`; a variant
chooses wording and line breaks. Raise VERSION with every change of wording.
"""

from __future__ import annotations

from collections.abc import Sequence

from localsim.conversation.episode import AgentView, Observation
from localsim.conversation.names import whole
from localsim.conversation.requests import Message
from localsim.conversation.scenario import WRITER
from localsim.conversation.transcript import Action, Transcript, line_of, told_line
from localsim.conversation.wording.layouts import FIRST, LAYOUTS, Layout
from localsim.conversation.wording.moving import WRITE_PHASES, move_lines
from localsim.conversation.wording.notes import note, script_note
from localsim.conversation.wording.paraphrases import WORDINGS
from localsim.conversation.wording.personas import persona_lines
from localsim.conversation.wording.sight import ABSENT, visibility_lines
from localsim.conversation.wording.variants import Spacing, variant_of
from localsim.conversation.wording.wordings import Wording, listed

VERSION = "5"
REMEMBERS = ("You remember: {text}", "{name} remembers: {text}")
"""The line of a memory that comes to mind: the viewer's own, and another agent's."""
INTERVIEWER = "an interviewer"
"""Whom an agent talks with who is alone in a scenario: the rules ask it questions."""


def agent_messages(
    seen: Observation, variant: int = 0, layout: str = FIRST, opens: Sequence[tuple[str, str]] = ()
) -> tuple[Message, ...]:
    """Return the chat of one agent. `layout` is a key of LAYOUTS; `opens` are messages and replies after the
    instructions.

    Without notes it holds the instructions, then others' turns (user) and its own (assistant). With notes, all turns
    are lines of one reply.
    """
    words, alone = variant_of(variant).words, len(seen.agents) == 1
    messages = [Message("system", agent_instructions(seen, variant, layout))]
    for asked, replied in opens:
        messages += [Message("user", asked), Message("assistant", replied)]
    begun = len(messages)
    if LAYOUTS[layout].notes and not alone:
        return (*messages, Message("user", words.lines), *lines_of(seen.transcript))
    others: list[str] = []
    for turn in seen.transcript.turns:
        if turn.speaker == seen.viewer:
            messages.append(Message("user", _heard(others, words, first=len(messages) == begun)))
            messages.append(Message("assistant", turn.line))
            others = []
        else:
            # Nobody else speaks to an agent who is alone, so that a question needs no brackets.
            others.append(turn.action.text if alone else turn.line)
    messages.append(Message("user", _heard(others, words, first=len(messages) == begun)))
    return tuple(messages)


def note_of(seen: Observation, variant: int = 0, layout: str = FIRST, thoughts: Sequence[str] = ()) -> str:
    """Return the note before the viewer's next line: what comes to mind, and what the line is for, with its thoughts.

    What it is for is missing in a layout without notes, and for an agent who is alone.
    """
    plain = ""
    if LAYOUTS[layout].notes and len(seen.agents) > 1:
        plain = (script_note if seen.viewer == WRITER else note)(seen, variant_of(variant).words)
    if thoughts:
        plain = told_line(" ".join(filter(None, (plain[1:-1], *thoughts))), None)
    return "\n".join(filter(None, (*_in_mind(seen), plain)))


def question_of(seen: Observation, ask: str, variant: int = 0, thoughts: Sequence[str] = ()) -> str:
    """Return the note that asks an agent something before its line, after what comes to mind."""
    asked = " ".join((variant_of(variant).words.who.format(name=seen.viewer), *thoughts, ask))
    return "\n".join((*_in_mind(seen), told_line(asked, None)))


def _in_mind(seen: Observation) -> list[str]:
    return [
        told_line(
            (REMEMBERS[0] if agent.name == seen.viewer else REMEMBERS[1]).format(name=agent.name, text=text), None
        )
        for agent in seen.agents
        for text in agent.memories
    ]


def _heard(lines: list[str], words: Wording, *, first: bool) -> str:
    if lines:
        return "\n".join(lines)
    return words.first_turn if first else words.your_turn


def agent_instructions(seen: Observation, variant: int = 0, layout: str = FIRST) -> str:
    """Return the system message of one agent, in agents and mindreaders mode."""
    words, spacing = variant_of(variant).words, variant_of(variant).spacing
    me = seen.me()
    if len(seen.agents) == 1:
        parts = [words.role.format(me=me.name, others=INTERVIEWER), words.setting.format(text=seen.setting)]
        return spacing.between.join([*parts, *_about(me, words, spacing, own=True), *_ways(seen, words, me.name)])
    others = [agent for agent in seen.agents if agent.name != me.name]
    names = listed([agent.name for agent in others])
    parts = [words.role.format(me=me.name, others=names), words.setting.format(text=seen.setting)]
    parts += relationship_lines(seen, words)
    parts += _about(me, words, spacing, layout, own=True)
    for other in others:
        parts += _about(other, words, spacing, layout)
    for person in seen.decoys:
        parts += [*_about(person, words, spacing, layout), ABSENT.format(name=person.name)]
    closed = words.closed if me.secret or me.facts or me.persona else words.closed_goal
    usual = (words.open if seen.omniscient else closed).format(others=names)
    parts += visibility_lines(seen, names, usual)
    parts += _task(seen, words, me.name, LAYOUTS[layout], words.reply, words.play)
    return spacing.between.join(parts)


def writer_messages(seen: Observation, variant: int = 0, layout: str = FIRST) -> tuple[Message, ...]:
    """Return the chat of the model that writes a whole script."""
    words, spacing = variant_of(variant).words, variant_of(variant).spacing
    names = listed([agent.name for agent in seen.agents])
    parts = [words.write.format(names=names), words.setting.format(text=seen.setting)]
    parts += relationship_lines(seen, words)
    for agent in seen.agents:
        parts += _about(agent, words, spacing, layout)
    parts += _task(seen, words, seen.agents[0].name, LAYOUTS[layout], words.each_line, words.script)
    ask = WRITE_PHASES if seen.phased else words.write_now.format(first=seen.agents[0].name, names=names)
    return (Message("system", spacing.between.join(parts)), Message("user", ask))


def lines_of(talk: Transcript) -> tuple[Message, ...]:
    """Return the turns so far as finished lines of the reply."""
    return tuple(Message("line", turn.line) for turn in talk.turns)


def _about(agent: AgentView, words: Wording, spacing: Spacing, layout: str = FIRST, *, own: bool = False) -> list[str]:
    """Return the visible parts of one agent: profile, persona, goal, secret, and a list of facts."""
    form = 0 if own else 1
    profile = words.about if LAYOUTS[layout].notes and not own else words.profiles[form]
    parts = []
    if agent.profile:
        text = ", ".join(
            words.age.format(text=value) if label == "age" and value.isdigit() else value.rstrip(".")
            for label, value in agent.profile
        )
        parts.append(profile.format(name=agent.name, text=text))
    parts += persona_lines(agent, spacing, own=own, noted=LAYOUTS[layout].notes)
    if agent.goal:
        parts.append(words.goals[form].format(name=agent.name, text=agent.goal))
    if agent.secret:
        parts.append(words.secrets[form].format(name=agent.name, text=agent.secret))
    if agent.facts:
        owned = words.known if LAYOUTS[layout].notes else "{name}: {text}"
        facts = [spacing.mark + (fact.text if own else _owned(agent, fact.text, owned)) for fact in agent.facts]
        parts.append("\n".join([words.facts[form].format(name=agent.name), *facts]))
    return parts


def _owned(agent: AgentView, fact: str, owned: str) -> str:
    """Return a fact with its owner's name: a small model forgets the heading of a list.

    A model of 135M mixed up the lists of two people without it (docs/log/starter.md), and one of 1.5B wrote scripts
    without their friends (docs/log/prompts.md).
    """
    return fact if whole(agent.name).search(fact) else owned.format(name=agent.name, text=fact)


def relationship_lines(seen: Observation, words: Wording = WORDINGS[0]) -> list[str]:
    """Return a sentence for each pair whose relationship the viewer knows."""
    return [
        words.relationship.format(one=one, other=other, level=words.levels[level])
        for one, other, level in seen.relationships
    ]


def _task(seen: Observation, words: Wording, name: str, layout: Layout, reply: str, play: str) -> list[str]:
    """Return how to write a line, how to act, and the limit of turns.

    With a note, `play` stands for `reply`, and of the plain actions only the goodbye is mentioned: small models copy
    the dots of examples into their lines, and take up actions for no reason.
    """
    limit = words.limit.format(turns=seen.turn_limit)
    if not layout.notes:
        return [reply, *_ways(seen, words, name), limit]
    leave = [words.leave.format(start=f"{name} [leave]")] if "leave" in seen.actions else []
    short = [words.length] if layout.short else []
    return [play.format(name=name), *short, *leave, *move_lines(seen, name, example=False), limit]


def _ways(seen: Observation, words: Wording, name: str) -> list[str]:
    """Return an example line for each action and move."""
    examples = [Action(kind, "" if kind == "none" else "...") for kind in seen.actions]
    lines = [f"{words.actions[kind]}: {line_of(name, each)}" for kind, each in zip(seen.actions, examples, strict=True)]
    return [*lines, *move_lines(seen, name)]
