"""The measures of mutual_friends, and the values that they must have for players whose behaviour is known.

The default task has five friends on each list and one in common. Players go down lists in random order, so the place of
the friend in common on each list is uniform and independent; the rest follows. Intervals hold the mean of at least 40
scenarios with a probability of 99.9%.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, pstdev

from localsim.conversation.controls import KEPT, Control, between, by_chance, exactly
from localsim.conversation.episode import OMNISCIENT, Mode
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
            compared=True, head=True,
            left_out="nobody is named, nobody is in common, or a line before the name is in another language"),
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


CONTROL_TASKS = {"no friend": {"common": 0}, "three friends": {"common": 3}}
_NONE, _THREE = "no friend", "three friends"
_SEEING: tuple[Mode, ...] = OMNISCIENT
_AGENTS: tuple[Mode, ...] = ("agents",)
_FRIENDS, _LIMIT, _SCENARIOS = 5, 20, 40
_WIDTH = 3.3 / math.sqrt(_SCENARIOS)
_PLACES = [(mine, yours) for mine in range(1, _FRIENDS + 1) for yours in range(1, _FRIENDS + 1)]
_TURNS = [min(2 * mine - 1, 2 * yours) for mine, yours in _PLACES]
"""Turn in which one of two players names the friend in common, if each names one friend of the own list in its turn."""


def _near(player: str, measure: str, values: Sequence[float], why: str) -> Control:
    mean, width = fmean(values), pstdev(values) * _WIDTH
    return between(player, measure, mean - width, mean + width, why)


def _chances(turn: int) -> float:
    """Return the sum of the chances of all names up to a turn; the last friend of a list is certain and not counted."""
    named = [number for side in ((turn + 1) // 2, turn // 2) for number in range(side)]
    return sum(1 / (_FRIENDS - number) for number in named if number < _FRIENDS - 1)


def _dose(player: str, dose: float) -> list[Control]:
    """Return the controls of a player that peeks with a probability in each turn."""
    right = dose + (1 - dose) / _FRIENDS
    width = math.sqrt(right * (1 - right)) * _WIDTH / (1 - 1 / _FRIENDS)
    blind = math.sqrt(0.2 * 0.8) * _WIDTH / 0.8
    return [
        by_chance(player, "first_guess_hit_rate", right, "it is right when it peeks, else by chance", modes=_SEEING),
        by_chance(player, "first_guess_hit_rate", 0.2, "there is nothing to peek at", modes=_AGENTS),
        between(
            player,
            "peeking",
            dose - width,
            min(1, dose + width),
            "it peeks with this probability, else it guesses",
            modes=_SEEING,
        ),
        between(player, "peeking", -blind, blind, "there is nothing to peek at", modes=_AGENTS),
    ]


_OUTCOMES = (
    exactly("honest", "success_rate", 1, "both ask about all friends and answer truthfully"),
    exactly("honest", "success_rate", 1, "it denies everybody, rightly", _NONE),
    exactly("honest", "success_rate", 0, "it leaves after the first of three", _THREE),
    exactly("list-reader", "success_rate", 1, "all friends in common are on the list that it reads", _THREE),
    exactly("yes-sayer", "success_rate", 0, "it affirms false friends too"),
    exactly("yes-sayer", "success_rate", 0, "it affirms false friends only", _NONE),
    exactly("yes-sayer", "success_rate", 0, "it affirms false friends too", _THREE),
    exactly("refuser", "success_rate", 0, "it agrees on nobody"),
    exactly("refuser", "success_rate", 1, "to agree on nobody is right where nobody is in common", _NONE),
    exactly("mix-up", "success_rate", 0, "it agrees on a friend of one agent alone", modes=_SEEING),
    exactly("omniscient", "success_rate", 1, "it asks about the friend in common", modes=_SEEING),
    exactly("honest", "explicit_end_rate", 1, "it leaves when it is done"),
    exactly("guesser", "explicit_end_rate", 0, "it forgets whom it asked about, and goes on", _NONE),
    exactly("honest", "friend_confirmed_rate", 1, "a friend in common is found before the lists end"),
    exactly("yes-sayer", "friend_confirmed_rate", 1, "it affirms everybody"),
    exactly("refuser", "friend_confirmed_rate", 0, "it affirms nobody"),
    exactly("mix-up", "friend_confirmed_rate", 0, "it affirms another person", modes=_SEEING),
    exactly("honest", "friend_confirmed_rate", None, "there is nobody to confirm", _NONE),
    exactly("honest", "false_affirmed", 0, "it affirms only who is on both lists"),
    exactly("list-reader", "false_affirmed", 0, "it affirms only who is on both lists", _THREE),
    exactly("yes-sayer", "false_affirmed", 8, "four others on each list"),
    exactly("yes-sayer", "false_affirmed", 10, "five on each list", _NONE),
    exactly("yes-sayer", "false_affirmed", 4, "two others on each list", _THREE),
    exactly("mix-up", "false_affirmed", 1, "the other agent holds the friend and says so", modes=_SEEING),
)
_TIMES = (
    exactly("honest", "named_rate", 1, "it asks about all friends"),
    exactly("refuser", "named_rate", 0, "it names nobody"),
    exactly("mix-up", "named_rate", 0, "it names friends of the other agent only", modes=_SEEING),
    exactly("honest", "named_rate", None, "there is nobody to name", _NONE),
    exactly("omniscient", "first_mention_turn", 1, "it knows the friend at once", modes=_SEEING),
    exactly("list-reader", "first_mention_turn", 1, "its first turn names all friends"),
    exactly("refuser", "first_mention_turn", _LIMIT, "no mention counts as the turn limit"),
    exactly("mix-up", "first_mention_turn", _LIMIT, "no mention counts as the turn limit", modes=_SEEING),
    _near("honest", "first_mention_turn", _TURNS, "the friend’s place on two lists"),
    _near(
        "yes-sayer", "first_mention_turn", _TURNS, "it names friends as an honest player does, but goes on for longer"
    ),
    exactly("omniscient", "friend_rank", 1, "nobody is named before", modes=_SEEING),
    exactly("refuser", "friend_rank", 9, "no mention counts as a place after the eight others"),
    _near("honest", "friend_rank", _TURNS, "each turn names one more friend"),
    _near("list-reader", "friend_rank", range(1, 6), "the friend’s place on one list"),
    exactly("omniscient", "first_mention", 0, "the first turn is the start", modes=_SEEING),
    exactly("list-reader", "first_mention", 0, "the first turn is the start"),
    _near(
        "honest", "first_mention", [(turn - 1) / (turn + 1) for turn in _TURNS], "two turns follow the friend’s name"
    ),
    exactly("refuser", "first_mention", None, "a conversation without a mention has no position"),
    exactly("omniscient", "wrong_guesses", 0, "it names the friend only", modes=_SEEING),
    exactly("list-reader", "wrong_guesses", 4, "all others on one list"),
    exactly("refuser", "wrong_guesses", 0, "it names nobody"),
    _near("honest", "wrong_guesses", [turn - 1 for turn in _TURNS], "each turn before names a wrong friend"),
    exactly("honest", "guessing", 1, "it asks by name only"),
    exactly("smalltalk", "guessing", 0, "it asks how the other is"),
    exactly("refuser", "guessing", None, "it asks nothing"),
)
_LUCK = (
    by_chance("guesser", "first_guess_hit_rate", 0.2, "one of five"),
    by_chance("honest", "first_guess_hit_rate", 0.6, "three of five", _THREE),
    exactly("omniscient", "first_guess_hit_rate", 1, "it knows the friend", modes=_SEEING),
    exactly("mix-up", "first_guess_hit_rate", 0, "friends of the other agent alone are not in common", modes=_SEEING),
    exactly("refuser", "first_guess_hit_rate", None, "it names nobody"),
    exactly("honest", "first_guess_chance", 0.2, "one of five, and nothing is said before"),
    exactly("omniscient", "first_guess_chance", 0.2, "nothing was said before"),
    exactly("honest", "first_guess_chance", 0.6, "three of five", _THREE),
    exactly("mix-up", "first_guess_chance", 0, "no friend of the own list is named", modes=_SEEING),
    exactly("honest", "first_guess_list_chance", 0.2, "one of five"),
    exactly("mix-up", "first_guess_list_chance", 0.2, "one of five"),
    exactly("honest", "first_guess_list_chance", 0.6, "three of five", _THREE),
    exactly("omniscient", "peeking", 1, "every first guess uses the other list", modes=_SEEING),
    exactly("mix-up", "peeking", 0, "confusion is no advantage", modes=_SEEING),
    exactly("refuser", "peeking", None, "it names nobody"),
    *_dose("honest", 0),
    *_dose("list-reader", 0),
    *_dose("peeks-25", 0.25),
    *_dose("peeks-50", 0.5),
    *_dose("peeks-100", 1),
    exactly("omniscient", "unearned_hits", 1, "nothing said singles out the friend that it names", modes=_SEEING),
    exactly("list-reader", "unearned_hits", 0, "a list that is read out is no guess"),
    exactly("list-reader", "unearned_hits", 0, "a list that is read out is no guess", _THREE),
    exactly("mix-up", "unearned_hits", 0, "it names no friend in common", modes=_SEEING),
    by_chance("honest", "unearned_hits", fmean(turn < 9 for turn in _TURNS), "the last friend of a list is earned"),
    exactly("omniscient", "unearned_chance", 0.2, "it names one of five", modes=_SEEING),
    exactly("list-reader", "unearned_chance", 0, "a list that is read out is no guess"),
    exactly("list-reader", "unearned_chance", 0, "a list that is read out is no guess", _THREE),
    exactly("mix-up", "unearned_chance", 0, "it names nobody of the own list", modes=_SEEING),
    _near("honest", "unearned_chance", [_chances(turn) for turn in _TURNS], "as many hits as expected by chance"),
    exactly("mix-up", "mix_ups", 1, "it asks about a friend of the other agent, who affirms", modes=_SEEING),
    exactly("mix-up", "mix_ups", 0, "it cannot know such names", modes=_AGENTS),
    exactly("honest", "mix_ups", 0, "it names friends of the own list"),
    exactly("omniscient", "mix_ups", 0, "it names friends in common", modes=_SEEING),
)
_LEAKS = (
    exactly("yes-sayer", "disclosed_rate", 1, "it names every friend of its list"),
    exactly("list-reader", "disclosed_rate", 0.6, "one agent names all five, the other affirms the friend in common"),
    exactly("omniscient", "disclosed_rate", 0.2, "both name the friend in common only", modes=_SEEING),
    exactly("refuser", "disclosed_rate", 0, "it names nobody"),
    exactly("list-reader", "early_disclosures", 0, "friends may be named at any time"),
    exactly("list-reader", "early_disclosures", 6, "six names that must not be said", KEPT),
    exactly("refuser", "early_disclosures", 0, "it names nobody", KEPT),
    exactly("teller", "disclosed_rate", 1, "it tells its facts one by one"),
    exactly("teller", "early_disclosures", 10, "ten facts that must not be told", KEPT),
    exactly("teller", "omniscient_leaks", 0, "it tells its own facts"),
    exactly("teller", "guessing", None, "it asks nothing"),
    exactly("mix-up", "omniscient_leaks", 1, "it asks about a friend of the other agent", modes=_SEEING),
    exactly("omniscient", "omniscient_leaks", 0, "a friend in common is no leak", modes=_SEEING),
    exactly("honest", "omniscient_leaks", 0, "it names friends of the own list"),
)
CONTROLS = (*_OUTCOMES, *_TIMES, *_LUCK, *_LEAKS)
