"""The measures of mutual_friends. `scoring` yields their scores, and `controls` says what each must be."""

from __future__ import annotations

from localsim.conversation.measures import Measure
from localsim.families.base import EXPLICIT_END, SUCCESS

CONFIRMED = Measure(
    key="friend_confirmed_rate",
    heading="friend confirmed",
    meaning="share of conversations in which a friend in common is affirmed, whatever else is affirmed",
    score="confirmed",
    kind="share",
    summed="episodes",
    group="goals",
)
FALSE_AFFIRMED = Measure(
    key="false_affirmed",
    heading="falsely affirmed",
    meaning="people affirmed as friends in common who are not, per conversation",
    score="false_affirmed",
    group="goals",
    compared=True,
    bounds=(0, None),
)
NAMED = Measure(
    key="named_rate",
    heading="friend named",
    meaning="share of conversations in which a friend in common is named at all",
    score="named",
    kind="share",
    summed="episodes",
    group="information",
)
FIRST_TURN = Measure(
    key="first_mention_turn",
    heading="turns to friend",
    meaning="turns up to the first that names a friend in common; a conversation that names none counts as the limit",
    score="first_mention_turn",
    group="information",
    compared=True,
    bounds=(1, None),
    up_to="turn_limit",
)
RANK = Measure(
    key="friend_rank",
    heading="rank of friend",
    meaning=(
        "place of the first friend in common among the people named, 1 if none was named before; a conversation that "
        "names none counts as one that names all others first"
    ),
    score="friend_rank",
    group="information",
    bounds=(1, None),
)
FIRST_MENTION = Measure(
    key="first_mention",
    heading="first mention",
    meaning=(
        "the paper’s measure: position of the first utterance that names a friend in common, 0 at the start, 1 at the "
        "end; it becomes smaller when conversations go on for longer, and counts only those that name one"
    ),
    score="first_mention",
    kind="position",
    group="information",
    published={"script": 0.13, "agents": 0.39},
)
FIRST_GUESS = Measure(
    key="first_guess_hit_rate",
    heading="first guess right",
    meaning="share of conversations whose first named person is a friend in common, of those that have one to find",
    score="first_guess_hit",
    kind="share",
    summed="episodes",
    group="information",
)
CHANCE = Measure(
    key="first_guess_chance",
    heading="right by chance",
    meaning="probability that the first named person is a friend in common, from the speaker’s list and what was said",
    score="first_guess_chance",
    kind="share",
    group="information",
)
LIST_CHANCE = Measure(
    key="first_guess_list_chance",
    heading="share of list",
    meaning="friends in common divided by the friends on the list of the agent who names the first person",
    score="first_guess_list_chance",
    kind="share",
    group="information",
)
PEEKING = Measure(
    key="peeking",
    head=True,
    heading="peeking",
    meaning=(
        "estimated share of first guesses that used the other side’s list: (right - chance) / (1 - chance), over sums "
        "of all conversations; 0 is guessing, 1 is knowing"
    ),
    score="first_guess_hit",
    kind="share",
    summed="excess",
    per="first_guess_chance",
    group="information",
    compared=True,
    left_out="nobody is named, or no friend in common is there to find",
)
UNEARNED = Measure(
    key="unearned_hits",
    head=True,
    heading="unearned hits",
    meaning="friends in common named before the conversation singles them out, per conversation; guesses can be lucky",
    score="unearned_hits",
    group="information",
    bounds=(0, None),
)
UNEARNED_CHANCE = Measure(
    key="unearned_chance",
    head=True,
    heading="unearned by chance",
    meaning="unearned hits to expect of agents who guess among their own friends, per conversation",
    score="unearned_chance",
    group="information",
    bounds=(0, None),
)
MIX_UPS = Measure(
    key="mix_ups",
    head=True,
    heading="mix-ups",
    meaning=(
        "people named who are only on the other agent’s list, before that agent names them, per conversation; this is "
        "confusion, not an advantage, for they are never in common; agents cannot know such names"
    ),
    score="mix_ups",
    group="information",
    compared=True,
    bounds=(0, None),
    structural_zero=("agents",),
)
WRONG_GUESSES = Measure(
    key="wrong_guesses",
    heading="wrong guesses",
    meaning="people named who are not in common, per conversation",
    score="wrong_guesses",
    group="information",
    compared=True,
    bounds=(0, None),
)
GUESSING = Measure(
    key="guessing",
    heading="asks by name",
    meaning="share of the questions that put a name forward instead of asking about something else",
    score="guessing",
    kind="share",
    group="information",
)
MEASURES = (
    SUCCESS,
    EXPLICIT_END,
    CONFIRMED,
    FALSE_AFFIRMED,
    NAMED,
    FIRST_TURN,
    RANK,
    FIRST_MENTION,
    FIRST_GUESS,
    CHANCE,
    LIST_CHANCE,
    PEEKING,
    UNEARNED,
    UNEARNED_CHANCE,
    MIX_UPS,
    WRONG_GUESSES,
    GUESSING,
)
"""The measures in the order of a report's columns."""
