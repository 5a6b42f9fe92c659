"""The scores of a search for friends in common: pure functions of transcript, scenario and answer key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from localsim.conversation.beginning import own_from
from localsim.conversation.episode import Score
from localsim.conversation.rules.farewells import says_farewell
from localsim.conversation.scenario import AnswerKey, Scenario
from localsim.conversation.transcript import Transcript, Turn, plain
from localsim.families.language import is_foreign, language_of
from localsim.families.mutual_friends.descriptions import identified
from localsim.families.mutual_friends.lists import Lists
from localsim.families.mutual_friends.mentions import mentions
from localsim.families.mutual_friends.names import FriendsOutcome, agreed, claims, friends_outcome
from localsim.families.mutual_friends.search import Guess, guesses
from localsim.families.settling import NOTHING, Stated, stated_in, without_statement

_CLAIM = re.compile(
    r"\bwe (?:do |both |really |actually )*(?:have|share|know|found) (?:a|one|the same) (?:mutual |common )?"
    r"(?:friend|person)\b"
    r"|\bour (?:mutual|common) friend\b"
)
_NO_CLAIM = re.compile(r"\?|\b(?:if|whether|hope|maybe|perhaps|might|not|no|never|wish|whoever)\b|n't\b")


def scores(transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
    """Return all scores of an episode; those about a friend in common only if there is one. Guesses and questions are
    those of turns that were not given.

    guessing: of the turns that ask, the share that name a person instead of asking about something else.
    """
    stated, turns = stated_in(transcript.turns), without_statement(transcript.turns)
    lists = Lists.read(scenario)
    outcome = friends_outcome(turns, lists.names)
    own = own_from(scenario, transcript)
    named = [guess for guess in guesses(turns, lists) if guess.turn >= own]
    true = [str(name) for name in answer.answer.get("mutual_friends", [])]
    listed = {name for names in lists.names.values() for name in names}
    mixed_up = [guess for guess in named if not guess.held and not guess.true and guess.name in listed]
    found = [
        _people("wrong_guesses", outcome.wrong_guesses),
        _people("mix_ups", [guess.name for guess in mixed_up], [guess.turn for guess in mixed_up]),
        *_agreement(turns, lists, outcome, true, named, stated),
    ]
    if true:
        found += [
            *_timing(transcript, scenario, lists, outcome, named),
            *_luck(_readable(named, turns, scenario), lists),
        ]
    return [*found, *_questions(turns[own:], lists), _explicit_end(turns, scenario.limits.turns)]


def _people(name: str, people: Sequence[str], turns: Sequence[int] = ()) -> Score:
    return Score(name, float(len(people)), label=", ".join(people), turns=tuple(dict.fromkeys(turns)))


def _agreement(
    turns: Sequence[Turn],
    lists: Lists,
    outcome: FriendsOutcome,
    true: Sequence[str],
    named: Sequence[Guess],
    stated: Stated | None,
) -> Iterator[Score]:
    """Yield success (the set agreed on is the true set), confirmed and false_affirmed.

    With several friends in common, success is to find all of them. With none, it is to agree on nobody and to claim
    nobody. What a person states on a form when they end the talk counts instead of what the rules read.
    """
    known = identified(turns, lists)
    stands = agreed(turns, lists.names)
    stands |= {name: turn for name, turn in known.items() if name not in stands}
    affirmed = outcome.confirmed_friend
    claim = next((turn.index for turn in turns if not true and not stands and _claims_a_friend(turn)), None)
    if stated is not None:
        stands = known = _settled(stated, named, turns, lists, stands)
        affirmed = claim = None
    false = [name for name in stands if name not in true]
    cited = {*stands.values(), *_some(outcome.named_turn), *_some(claim)}
    reason = f"they agree on {', '.join(stands)}" if stands else "they agree on nobody"
    if false:
        reason += f" (not in common: {', '.join(false)})"
    elif claim is not None:
        reason = "they claim a friend in common whom they do not name"
    success = set(stands) == set(true) and claim is None
    yield Score("success", float(success), reason=reason, turns=tuple(sorted(cited)))
    yield _people("false_affirmed", false, [stands[name] for name in false])
    if true:
        friend = affirmed or next((name for name in known if name in true), None)
        reason = f"{friend} is affirmed" if friend else "no true friend is affirmed"
        evidence = (
            *_some(outcome.named_turn),
            *_some(outcome.confirmed_turn if affirmed else known.get(friend or "")),
        )
        yield Score("confirmed", float(friend is not None), reason=reason, turns=tuple(dict.fromkeys(evidence)))


def _settled(
    stated: Stated, guesses: Sequence[Guess], turns: Sequence[Turn], lists: Lists, stands: Mapping[str, int]
) -> dict[str, int]:
    """Return who stands after a statement: its friend, if the other did not deny it, and has named or singled out this
    friend or spoken after the name. So nobody succeeds by a choice that the talk never came to."""
    name, spelt = stated.what, [lists.spelt_in(turn) for turn in turns]
    others = [turn for turn in spelt if turn.speaker != stated.speaker]
    named = next((turn.index for turn in spelt if mentions(turn.action.text, name)), None)
    singled_out = any(guess.name == name and guess.singled_out for guess in guesses)
    if name == NOTHING or named is None or not (singled_out or any(turn.index >= named for turn in others)):
        return {}
    theirs = {turn.index for turn in others}
    said = [knows for index, of, knows in claims(spelt, lists.names) if of == name and index in theirs]
    return {name: stands.get(name, stated.turn)} if not said or said[-1] else {}


def _some(turn: int | None) -> tuple[int, ...]:
    return () if turn is None else (turn,)


def _claims_a_friend(turn: Turn) -> bool:
    clauses = re.split(r"(?<=[.!?;…])\s+", plain(turn.action.text)) if turn.said else []
    return any(_CLAIM.search(clause) and not _NO_CLAIM.search(clause) for clause in clauses)


def _timing(
    transcript: Transcript, scenario: Scenario, lists: Lists, outcome: FriendsOutcome, named: Sequence[Guess]
) -> Iterator[Score]:
    """Yield named, first_mention_turn, friend_rank and, if a friend is named, first_mention.

    Never is a turn and a rank too: the last one that the scenario allows. So all conversations count in both means.
    """
    turn, limit = outcome.named_turn, scenario.limits.turns
    cited = _some(turn)
    reason = "no true friend is named"
    if turn is not None:
        reason = f"{outcome.named_by} names {outcome.first_named} in turn {turn + 1}"
    yield Score("named", float(turn is not None), agent=outcome.named_by, reason=reason, turns=cited)
    yield Score(
        "first_mention_turn", float(limit if turn is None else min(turn + 1, limit)), reason=reason, turns=cited
    )
    last = len({name for names in lists.names.values() for name in names} - lists.shared) + 1
    rank = next((place for place, guess in enumerate(named, start=1) if guess.true), last)
    yield Score("friend_rank", float(min(rank, last)), label=outcome.first_named, reason=reason, turns=cited)
    if turn is not None:
        yield Score("first_mention", transcript.position(turn), label=outcome.first_named, reason=reason, turns=cited)


def _readable(named: Sequence[Guess], turns: Sequence[Turn], scenario: Scenario) -> list[Guess]:
    """Return the guesses before which the rules can read every line: one in another language can tell anything."""
    last, language = max((guess.turn for guess in named), default=0), language_of(scenario) or ""
    unread = next((turn.index for turn in turns[:last] if is_foreign(turn.action.text, language)), last)
    return [guess for guess in named if guess.turn <= unread]


def _luck(named: Sequence[Guess], lists: Lists) -> Iterator[Score]:
    """Yield the first guess and the untold hits, each with its chance."""
    if named:
        first = named[0]
        own = lists.names[first.speaker]
        share = len(lists.shared.intersection(own)) / max(1, len(own))
        cited = (first.turn,)
        yield Score("first_guess_hit", float(first.true), label=first.name, turns=cited)
        yield Score("first_guess_chance", first.probability, label=first.name, turns=cited)
        yield Score("first_guess_list_chance", share, label=first.name, turns=cited)
    open_guesses = [guess for guess in named if not guess.singled_out and not guess.read_out]
    hits = [guess for guess in open_guesses if guess.true]
    yield _people("unearned_hits", [guess.name for guess in hits], [guess.turn for guess in hits])
    yield Score("unearned_chance", sum(guess.probability for guess in open_guesses))


def _questions(turns: Sequence[Turn], lists: Lists) -> Iterator[Score]:
    asking = [turn for turn in turns if turn.said and "?" in turn.action.text]
    if asking:
        names = {name for listed in lists.names.values() for name in listed}
        by_name = [turn.index for turn in asking if any(mentions(turn.action.text, name) for name in names)]
        reason = f"{len(by_name)} of {len(asking)} questions name somebody"
        yield Score("guessing", len(by_name) / len(asking), reason=reason, turns=tuple(by_name))


def _explicit_end(turns: Sequence[Turn], limit: int) -> Score:
    ended = [turn.index for turn in turns if turn.action.type == "leave" or says_farewell(turn.action.text)]
    before_limit = bool(ended) and ended[0] < limit
    return Score("explicit_end", float(before_limit), reason="a farewell" if ended else "", turns=tuple(ended[:1]))
