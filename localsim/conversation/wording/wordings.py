"""The wording of a usual run. `paraphrases` says the same in other words.

The others exist so that `run --perturb` can show how much a result depends on
the choice of words. Each tells a viewer as much as the first and no more. `{others}` and `{names}` stand for one name
or several, so only modal verbs follow them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from localsim.conversation.scenario import RelationshipLevel
from localsim.conversation.transcript import ActionType


def listed(texts: Sequence[str], last: str = "and") -> str:
    """Return texts as a phrase: `Ana`, `Ana and Bo`, `Ana, Bo and Cy`; '' for none."""
    return f" {last} ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number of things in words: `1 turn`, `2 turns`; `many` is a plural that is not made with an s."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


@dataclass(frozen=True, kw_only=True)
class Wording:
    """One way to say every instruction. Braces hold the place of names, texts and numbers."""

    role: str
    setting: str
    relationship: str
    levels: Mapping[RelationshipLevel, str]
    profiles: tuple[str, str]
    """Of the reader, and of another person; the same holds for goals, secrets and facts."""
    age: str
    goals: tuple[str, str]
    secrets: tuple[str, str]
    facts: tuple[str, str]
    open: str
    """Tells a mindreader that everybody sees everything."""
    closed: str
    closed_goal: str
    """For an agent that has neither a secret nor facts."""
    reply: str
    actions: Mapping[ActionType, str]
    limit: str
    first_turn: str
    your_turn: str
    write: str
    each_line: str
    write_now: str
    lines: str
    """Asks for the lines of a conversation, in a layout with notes."""
    play: str
    """How to write a line as one agent, in a layout with notes; `script` is the same for a writer."""
    script: str
    length: str
    """The length of a line in a layout with notes; left out where a run asks for no length."""
    leave: str
    """How to leave; `{start}` begins a line that leaves."""
    who: str
    begin: str
    """A note tells the agent what its next line is for: this one before the first line of the conversation."""
    answer: str
    """Before the first line of every other agent."""
    go_on: str
    settle: str
    """After the first quarter of the turns."""
    end: str
    """Before the last turns."""
    script_begin: str
    """The first note for a writer; `{few}` and `{many}` are numbers of lines."""
    script_settle: str
    """Its note after the first quarter of the turns."""
    about: str
    """The profile of another person in a layout with notes: nothing may look like a line of the conversation there."""
    known: str
    """A fact of another person, in a layout with notes, that does not name its owner."""


LEVELS: dict[RelationshipLevel, str] = {
    "stranger": "strangers",
    "know_by_name": "known to each other by name only",
    "acquaintance": "acquaintances",
    "friend": "friends",
    "romantic": "a couple",
    "family": "family",
}
RELATED: dict[RelationshipLevel, str] = {
    "stranger": "are strangers to each other",
    "know_by_name": "know each other by name only",
    "acquaintance": "are acquainted",
    "friend": "are friends with each other",
    "romantic": "are a couple",
    "family": "belong to one family",
}


def acts(speak: str, look: str, act: str, leave: str, none: str) -> dict[ActionType, str]:
    """Return the words for each of the five actions."""
    return {"speak": speak, "non-verbal communication": look, "action": act, "leave": leave, "none": none}


USUAL = Wording(
    role="You are {me}, talking with {others}. Stay in this role.",
    setting="Setting: {text}",
    relationship="{one} and {other} are {level}.",
    levels=LEVELS,
    profiles=("You: {text}", "{name}: {text}"),
    age="{text} years old",
    goals=("Your goal: {text}", "{name}'s goal: {text}"),
    secrets=("Your secret: {text}", "{name}'s secret: {text}"),
    facts=("What you know:", "What {name} knows:"),
    open="All of this is known to everybody: {others} can see your side too.",
    closed="{others} cannot see your goal, your secret or what you know.",
    closed_goal="{others} cannot see your goal.",
    reply="Reply with your next line, one or two short sentences.",
    actions=acts(
        "To speak",
        "For a gesture or a look, described in words",
        "To do something, described in words",
        "To end the conversation, perhaps with a goodbye",
        "To do nothing",
    ),
    limit="There are at most {turns} turns in all. Do not repeat what was said.",
    first_turn="The conversation begins. It is your turn.",
    your_turn="It is your turn.",
    write="Write a conversation between {names}.",
    each_line="Write one line for each turn, one or two short sentences.",
    write_now="Write the conversation now. {first} begins, then they take turns in this order: {names}.",
    lines="Write the conversation, one line for each turn.",
    play=(
        "You write {name}'s lines only. Answer what was said last, truthfully, and then ask or "
        "tell something that brings {name} nearer to the goal. Do not repeat a line. Once the goal "
        "is settled, say goodbye."
    ),
    script="Write lines that answer the last line and bring the speaker nearer to the goal. Do not repeat a line.",
    length="Each line is one or two short spoken sentences.",
    leave="To say goodbye and go, begin the line with {start}",
    who="You are {name}.",
    begin="You begin the conversation.",
    answer="Answer, and say something that serves your goal.",
    go_on="Say something new that serves your goal.",
    settle="Say something new that serves your goal; when it is settled, say goodbye with {start}.",
    end="The time is over: say goodbye with {start}.",
    script_begin="Write {few} to {many} lines. Say something new in each line.",
    script_settle="Say something new in each line. The last line is a goodbye with [leave].",
    about="About {name}: {text}",
    known="{name} knows: {text}",
)
