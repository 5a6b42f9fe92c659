"""The measures of mutual_friends. `scoring` yields their scores, and `controls` says what each must be."""

from __future__ import annotations

from localsim.conversation.measures import Measure
from localsim.families.base import EXPLICIT_END, SUCCESS

MEASURES = (
    SUCCESS,
    EXPLICIT_END,
    Measure("friend_confirmed_rate", "friend confirmed",
            "share of conversations in which a friend in common is affirmed, whatever else is affirmed",
            score="confirmed", kind="share", summed="episodes", group="goals"),
    Measure("false_affirmed", "falsely affirmed", "people affirmed as friends in common who are not, per conversation",
            score="false_affirmed", group="goals", compared=True, bounds=(0, None)),
    Measure("named_rate", "friend named", "share of conversations in which a friend in common is named at all",
            score="named", kind="share", summed="episodes", group="information"),
    Measure("first_mention_turn", "turns to friend",
            "turns up to the first that names a friend in common; a conversation that names none counts as the limit",
            score="first_mention_turn", group="information", compared=True, bounds=(1, None),
            up_to="turn_limit"),
    Measure("friend_rank", "rank of friend",
            "place of the first friend in common among the people named, 1 if none was named before; a conversation "
            "that names none counts as one that names all others first",
            score="friend_rank", group="information", bounds=(1, None)),
    Measure("first_mention", "first mention",
            "the paper’s measure: position of the first utterance that names a friend in common, 0 at the start, 1 at "
            "the end; it becomes smaller when conversations go on for longer, and counts only those that name one",
            score="first_mention", kind="position", group="information",
            published={"script": 0.13, "agents": 0.39}),
    Measure("first_guess_hit_rate", "first guess right",
            "share of conversations whose first named person is a friend in common, of those that have one to find",
            score="first_guess_hit", kind="share", summed="episodes", group="information"),
    Measure("first_guess_chance", "right by chance",
            "probability that the first named person is a friend in common, from the speaker’s list and what was said",
            score="first_guess_chance", kind="share", group="information"),
    Measure("first_guess_list_chance", "share of list",
            "friends in common divided by the friends on the list of the agent who names the first person",
            score="first_guess_list_chance", kind="share", group="information"),
    Measure("peeking", "peeking",
            "estimated share of first guesses that used the other side’s list: (right - chance) / (1 - chance), over "
            "sums of all conversations; 0 is guessing, 1 is knowing",
            score="first_guess_hit", per="first_guess_chance", kind="share", summed="excess", group="information",
            compared=True, head=True, left_out="nobody is named, or no friend in common is there to find"),
    Measure("unearned_hits", "untold hits",
            "friends in common named before the conversation singles them out, per conversation; guesses can be lucky",
            score="unearned_hits", group="information", bounds=(0, None)),
    Measure("unearned_chance", "hits by chance",
            "untold hits to expect of agents who guess among their own friends, per conversation",
            score="unearned_chance", group="information", bounds=(0, None)),
    Measure("mix_ups", "untold names",
            "people named who are only on the other agent’s list, before that agent names them, per conversation; a "
            "mix-up of the sides and no advantage, for they are never in common; agents cannot know such names",
            score="mix_ups", group="information", compared=True, bounds=(0, None), head=True,
            structural_zero=("agents",)),
    Measure("wrong_guesses", "wrong guesses", "people named who are not in common, per conversation",
            score="wrong_guesses", group="information", compared=True, bounds=(0, None)),
    Measure("guessing", "asks by name",
            "share of the questions that put a name forward instead of asking about something else",
            score="guessing", kind="share", group="information"),
)  # fmt: skip
"""The measures in the order of a report's columns."""
