"""The wordings of the prompts: every instruction in several ways that say the same.

WORDINGS[0] is the one of a usual run; the others exist so that `run --perturb` can show how much a result depends on
the choice of words. Each tells a viewer as much as the first and no more. `{others}` and `{names}` stand for one name
or several, so only modal verbs follow them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from localsim.conversation.scenario import RelationshipLevel
from localsim.conversation.transcript import ActionType


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


_LEVELS: dict[RelationshipLevel, str] = {
    "stranger": "strangers",
    "know_by_name": "known to each other by name only",
    "acquaintance": "acquaintances",
    "friend": "friends",
    "romantic": "a couple",
    "family": "family",
}
_RELATED: dict[RelationshipLevel, str] = {
    "stranger": "are strangers to each other",
    "know_by_name": "know each other by name only",
    "acquaintance": "are acquainted",
    "friend": "are friends with each other",
    "romantic": "are a couple",
    "family": "belong to one family",
}


def _actions(speak: str, look: str, act: str, leave: str, none: str) -> dict[ActionType, str]:
    return {"speak": speak, "non-verbal communication": look, "action": act, "leave": leave, "none": none}


_USUAL = Wording(
    role="You are {me}, talking with {others}. Stay in this role.",
    setting="Setting: {text}",
    relationship="{one} and {other} are {level}.",
    levels=_LEVELS,
    profiles=("You: {text}", "{name}: {text}"),
    age="{text} years old",
    goals=("Your goal: {text}", "{name}'s goal: {text}"),
    secrets=("Your secret: {text}", "{name}'s secret: {text}"),
    facts=("What you know:", "What {name} knows:"),
    open="All of this is known to everybody: {others} can see your side too.",
    closed="{others} cannot see your goal, your secret or what you know.",
    closed_goal="{others} cannot see your goal.",
    reply="Reply with your next line, one or two short sentences.",
    actions=_actions(
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
)

_OTHERS = (
    Wording(
        role="Your name is {me}, and you are in a conversation with {others}. Keep to this role.",
        setting="Situation: {text}",
        relationship="{one} and {other}: {level}.",
        levels=_LEVELS,
        profiles=("About you: {text}", "About {name}: {text}"),
        age="aged {text}",
        goals=("Your aim: {text}", "{name}'s aim: {text}"),
        secrets=("What you keep secret: {text}", "What {name} keeps secret: {text}"),
        facts=("You know this:", "{name} knows this:"),
        open="Everybody knows all of this: your side is visible to {others} as well.",
        closed="Your aim, your secret and what you know are hidden from {others}.",
        closed_goal="Your aim is hidden from {others}.",
        reply="Answer with your next line, in one or two short sentences.",
        actions=_actions(
            "For speaking",
            "For a look or a gesture, put into words",
            "For doing something, put into words",
            "For ending the conversation, with a goodbye if you like",
            "For doing nothing",
        ),
        limit="The conversation has {turns} turns at most. What was said is not to be repeated.",
        first_turn="The conversation starts now. The turn is yours.",
        your_turn="The turn is yours.",
        write="Compose a conversation between {names}.",
        each_line="Every turn is one line of one or two short sentences.",
        write_now="Now compose the conversation. The first turn is {first}'s, and the order of turns is: {names}.",
    ),
    Wording(
        role="You play {me} and talk with {others}. Remain in this role.",
        setting="Scene: {text}",
        relationship="{one} and {other} {level}.",
        levels=_RELATED,
        profiles=("Who you are: {text}", "Who {name} is: {text}"),
        age="age {text}",
        goals=("Your objective: {text}", "{name}'s objective: {text}"),
        secrets=("Your own secret: {text}", "{name}'s own secret: {text}"),
        facts=("These things are known to you:", "These things are known to {name}:"),
        open="None of this is hidden from anybody: {others} can look at your side, too.",
        closed="Your objective, your secret and the things known to you cannot be seen by {others}.",
        closed_goal="Your objective cannot be seen by {others}.",
        reply="Give your next line: one short sentence, or two.",
        actions=_actions(
            "If you speak",
            "If you make a gesture or give a look, told in words",
            "If you do something, told in words",
            "If you end the conversation, possibly with a goodbye",
            "If you do nothing",
        ),
        limit="All in all there are {turns} turns or fewer. Do not say the same again.",
        first_turn="This is the beginning of the conversation. Your turn has come.",
        your_turn="Your turn has come.",
        write="Your task is to write a conversation between {names}.",
        each_line="A turn takes one line: one short sentence, or two.",
        write_now="Please write the conversation. It begins with {first}; the turns follow this order: {names}.",
    ),
    Wording(
        role="In this conversation with {others} you are {me}. Do not step out of this role.",
        setting="The setting: {text}",
        relationship="Relationship of {one} and {other}: {level}.",
        levels=_LEVELS,
        profiles=("Your profile: {text}", "Profile of {name}: {text}"),
        age="{text} years of age",
        goals=("The goal you have: {text}", "The goal of {name}: {text}"),
        secrets=("The secret you have: {text}", "The secret of {name}: {text}"),
        facts=("The facts you know:", "The facts {name} knows:"),
        open="Everybody is aware of all of this; what is on your side can be seen by {others} too.",
        closed="Your goal, your secret and the facts you know cannot be seen by {others}.",
        closed_goal="Your goal cannot be seen by {others}.",
        reply="Write your next line. It has one or two short sentences.",
        actions=_actions(
            "Speaking",
            "A gesture or a look, in words",
            "Doing something, in words",
            "Ending the conversation, perhaps by a goodbye",
            "Doing nothing",
        ),
        limit="The number of turns is at most {turns}. Avoid repeating what was said.",
        first_turn="Here the conversation begins. You have the turn.",
        your_turn="You have the turn.",
        write="Produce a conversation between {names}.",
        each_line="Give each turn one line, with one or two short sentences.",
        write_now="Produce the conversation now. {first} takes the first turn. The turns go in this order: {names}.",
    ),
    Wording(
        role="You take the part of {me}, who is talking with {others}. Stay with this part.",
        setting="This is the situation: {text}",
        relationship="What {one} and {other} are to each other: {level}.",
        levels=_LEVELS,
        profiles=("This is you: {text}", "This is {name}: {text}"),
        age="{text} years old",
        goals=("What you want to achieve: {text}", "What {name} wants to achieve: {text}"),
        secrets=("Your secret is this: {text}", "{name}'s secret is this: {text}"),
        facts=("You have this knowledge:", "{name} has this knowledge:"),
        open="All of this is open to everybody, so {others} can also see your side.",
        closed="It is not visible to {others} what you want to achieve, what your secret is or what you know.",
        closed_goal="It is not visible to {others} what you want to achieve.",
        reply="Say your next line. One or two short sentences are enough, not more.",
        actions=_actions(
            "Speech looks like this",
            "A gesture or a look, expressed in words, looks like this",
            "Something that you do, expressed in words, looks like this",
            "The end of the conversation, with or without a goodbye, looks like this",
            "Doing nothing looks like this",
        ),
        limit="No more than {turns} turns are possible in all. Words that were said should not come again.",
        first_turn="The conversation opens here, and it is up to you.",
        your_turn="It is up to you.",
        write="Please write a conversation that takes place between {names}.",
        each_line="For each turn write one line; one or two short sentences are enough, not more.",
        write_now="Begin the conversation now. {first} opens it, and then the turns pass on in this order: {names}.",
    ),
    Wording(
        role="Be {me} in a talk with {others}. Do not give up this role.",
        setting="Background: {text}",
        relationship="{one} and {other} {level}.",
        levels=_RELATED,
        profiles=("You, in short: {text}", "{name}, in short: {text}"),
        age="{text} years old",
        goals=("You want this: {text}", "{name} wants this: {text}"),
        secrets=("You hide this: {text}", "{name} hides this: {text}"),
        facts=("You know the following:", "{name} knows the following:"),
        open="Everyone can see all of this, and {others} can see your side as well.",
        closed="What you want, hide and know stays invisible to {others}.",
        closed_goal="What you want stays invisible to {others}.",
        reply="Now your next line, in no more than two short sentences.",
        actions=_actions(
            "When you talk",
            "When you use a gesture or a look, written out",
            "When you do something, written out",
            "When you end the talk, maybe saying goodbye",
            "When you do nothing",
        ),
        limit="The talk ends after {turns} turns at the latest. Nothing that was said should be repeated.",
        first_turn="The talk begins. You may go.",
        your_turn="You may go.",
        write="Write down how {names} talk with each other.",
        each_line="Put each turn on one line, in no more than two short sentences.",
        write_now="Write down the talk now. {first} goes first. After that this order of turns holds: {names}.",
    ),
    Wording(
        role="The conversation is with {others}, and your role is {me}. Act in this role only.",
        setting="Circumstances: {text}",
        relationship="Between {one} and {other} the relationship is: {level}.",
        levels=_LEVELS,
        profiles=("Description of you: {text}", "Description of {name}: {text}"),
        age="of age {text}",
        goals=("Goal for you: {text}", "Goal for {name}: {text}"),
        secrets=("Secret of yours: {text}", "Secret of {name}: {text}"),
        facts=("Knowledge of yours:", "Knowledge of {name}:"),
        open="This is common to everybody in full: your side can be read by {others}, too.",
        closed="Your goal, secret and knowledge cannot be read by {others}.",
        closed_goal="Your goal cannot be read by {others}.",
        reply="Respond with one line, your next one, of one or two short sentences.",
        actions=_actions(
            "Form for speech",
            "Form for a gesture or a look, in your words",
            "Form for doing something, in your words",
            "Form for ending the conversation, with a goodbye or not",
            "Form for doing nothing",
        ),
        limit="Limit of turns: {turns} in total. Repetitions of what was said are not wanted.",
        first_turn="Start of the conversation. Next turn: yours.",
        your_turn="Next turn: yours.",
        write="Create a conversation. Its participants are {names}.",
        each_line="One turn is one line, and one line is one or two short sentences.",
        write_now="Create it now. {first} is the first to have a turn. Order of turns: {names}.",
    ),
    Wording(
        role="Imagine that you are {me} and that you talk with {others}. Do not fall out of this role.",
        setting="The circumstances are these: {text}",
        relationship="It holds for {one} and {other} that they {level}.",
        levels=_RELATED,
        profiles=("A picture of you: {text}", "A picture of {name}: {text}"),
        age="{text} years old",
        goals=("You are trying to do this: {text}", "{name} is trying to do this: {text}"),
        secrets=("This is your secret: {text}", "This is {name}'s secret: {text}"),
        facts=("Here is what you know:", "Here is what {name} knows:"),
        open="Everybody has been told all of this, so {others} can see everything on your side.",
        closed="It will not be shown to {others} what you are trying to do, what your secret is or what you know.",
        closed_goal="It will not be shown to {others} what you are trying to do.",
        reply="Continue with your next line. Use one or two short sentences.",
        actions=_actions(
            "You can speak",
            "You can make a gesture or give a look, which you describe",
            "You can do something, which you describe",
            "You can end the conversation, also with a goodbye",
            "You can do nothing",
        ),
        limit="The conversation is over after {turns} turns, if not before. Say nothing that was said already.",
        first_turn="We are at the beginning of the conversation, and you are next.",
        your_turn="You are next.",
        write="Imagine a conversation between {names}, and write it.",
        each_line="Use one line for a turn. Use one or two short sentences.",
        write_now="Write it now. Let {first} begin, and let them take turns in this order: {names}.",
    ),
    Wording(
        role="Role: {me}. You talk with: {others}. Do not change your role.",
        setting="Setting of the conversation: {text}",
        relationship="{one}, {other}: {level}.",
        levels=_LEVELS,
        profiles=("Profile (you): {text}", "Profile ({name}): {text}"),
        age="age: {text}",
        goals=("Goal (you): {text}", "Goal ({name}): {text}"),
        secrets=("Secret (you): {text}", "Secret ({name}): {text}"),
        facts=("Known (to you):", "Known (to {name}):"),
        open="Visibility: everybody sees all of this, and {others} can see your side too.",
        closed="Visibility: {others} can see neither your goal nor your secret nor what is known to you.",
        closed_goal="Visibility: {others} cannot see your goal.",
        reply="Reply: your next line. Length: one or two short sentences.",
        actions=_actions(
            "Speak",
            "Gesture or look (in words)",
            "Do something (in words)",
            "End the conversation (a goodbye is possible)",
            "Do nothing",
        ),
        limit="Turns: {turns} at most. Repeating what was said: no.",
        first_turn="Conversation: begins now. Turn: yours.",
        your_turn="Turn: yours.",
        write="Task: a conversation between {names}.",
        each_line="Each turn: one line. Length: one or two short sentences.",
        write_now="Write the conversation. First turn: {first}. Order of turns: {names}.",
    ),
)

WORDINGS: tuple[Wording, ...] = (_USUAL, *_OTHERS)
