"""The search for a mutual friend, read from the words: first mention, affirmation and wrong guesses.

The rules were written by hand; scripts/measure_endings.py measures how often the result agrees with labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from localsim.conversation.transcript import Turn, plain
from localsim.families.mutual_friends import phrases
from localsim.families.mutual_friends.answers import picked, verdict_on
from localsim.families.mutual_friends.mentions import all_friends, is_name, mentions
from localsim.families.shorthand import plainly


@dataclass(frozen=True)
class FriendsOutcome:
    """The result of the search for a mutual friend; turns are indices into the conversation.

    `first_named`, `named_by`, `named_turn`: the first true friend that was named. `confirmed`: another agent who holds
    a named true friend affirmed it. `wrong_guesses`: distinct proposed names that are no true friend, in order.
    """

    first_named: str | None
    named_by: str | None
    named_turn: int | None
    confirmed: bool
    confirmed_friend: str | None
    confirmed_turn: int | None
    wrong_guesses: tuple[str, ...]


@dataclass(frozen=True)
class Naming:
    """The first mention of a person in a conversation."""

    turn: int
    speaker: str
    name: str


def friends_outcome(turns: Sequence[Turn], friends: Mapping[str, Sequence[str]]) -> FriendsOutcome:
    """Return the result of a conversation between agents with `friends` (agent -> names on that agent's list).

    A true friend is a name on the lists of two or more agents.
    """
    true = [name for name in all_friends(friends) if sum(name in names for names in friends.values()) > 1]
    spoken = [turn for turn in turns if turn.speaker in friends and turn.action.type != "none"]
    first = _first_named(spoken, true)
    affirmed = _first_affirmed(spoken, true, friends)
    return FriendsOutcome(
        first_named=first[1] if first else None,
        named_by=first[0].speaker if first else None,
        named_turn=first[0].index if first else None,
        confirmed=affirmed is not None,
        confirmed_friend=affirmed[0] if affirmed else None,
        confirmed_turn=affirmed[1] if affirmed else None,
        wrong_guesses=tuple(naming.name for naming in namings(spoken, friends) if naming.name not in true),
    )


def _first_named(turns: Iterable[Turn], true: Sequence[str]) -> tuple[Turn, str] | None:
    for turn in turns:
        places = [(starts[0], name) for name in true if (starts := mentions(turn.action.text, name))]
        if places:
            return turn, min(places)[1]
    return None


def _first_affirmed(
    turns: Sequence[Turn], true: Sequence[str], friends: Mapping[str, Sequence[str]]
) -> tuple[str, int] | None:
    """Return the first affirmation that is not taken back: (friend, turn)."""
    affirmed = [(turn, name) for name in true if (turn := _affirmed_turn(turns, name, friends)) is not None]
    if not affirmed:
        return None
    turn, name = min(affirmed)
    return name, turn


def agreed(turns: Sequence[Turn], friends: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the people who stand as friends in common at the end: name -> turn of the affirmation.

    A person does if one agent puts the name forward, another affirms to know it, and neither takes that back. It does
    not matter who holds the name, or whether anybody does.
    """
    spoken = [turn for turn in turns if turn.speaker in friends and turn.action.type != "none"]
    found: dict[str, int] = {}
    for naming in namings(spoken, friends):
        turn = _affirmed_turn(spoken, naming.name, friends, holders_only=False)
        if turn is not None:
            found[naming.name] = turn
    return found


def _affirmed_turn(
    turns: Sequence[Turn], name: str, friends: Mapping[str, Sequence[str]], *, holders_only: bool = True
) -> int | None:
    """Return the turn in which an agent other than its proposer affirms `name`, or None; only a holder by default."""
    putters: set[str] = set()
    topic = False
    at: int | None = None
    for number, turn in enumerate(turns):
        named = bool(mentions(turn.action.text, name))
        others = putters - {turn.speaker}
        holds = not holders_only or name in friends[turn.speaker]
        before = turns[number - 1] if number else None
        about = named or topic or name in (picked(turn, before, friends) or ())
        if about and turn.action.text and (at is not None or others and holds):
            asked = number > 1 and phrases.ASKS_BACK.search(plainly(turns[number - 2].action.text)) is not None
            verdict = verdict_on(turn, name, friends, topic, before, asked)
            if verdict == "yes" and at is None:
                at = turn.index
            elif verdict == "no" and at is not None and phrases.MIXED_UP.search(plainly(turn.action.text)):
                at = None  # either agent can take it back
        if named and (not others or _puts_forward(turn.action.text, name)):
            putters.add(turn.speaker)
        elsewhere = [other for other in all_friends(friends) if other != name and mentions(turn.action.text, other)]
        topic = (named and not _several(turn, name, friends)) or (
            topic and not elsewhere and len(turn.action.text) < 300
        )
    return at


def claims(turns: Sequence[Turn], friends: Mapping[str, Sequence[str]]) -> list[tuple[int, str, bool]]:
    """Return each turn's last word on knowing a named person: (turn, name, True for yes).

    Names that are on no list count as well.
    """
    listed = all_friends(friends)
    verdicts = []
    before: Turn | None = None
    for turn in turns:
        text = turn.action.text
        named = [name for name in listed if mentions(text, name)]
        named += [name for _, name in _unlisted(text) if name not in (*named, *listed, *friends)]
        asked = [name for name in listed if before is not None and mentions(before.action.text, name)]
        for name in dict.fromkeys([*named, *asked]):
            verdict = verdict_on(turn, name, friends, name in asked, before)
            if verdict in ("yes", "no"):
                verdicts.append((turn.index, name, verdict == "yes"))
        before = turn
    return verdicts


def _puts_forward(text: str, name: str) -> bool:
    """Return True if a text asks about `name` first, rather than asking back "Jacob?"."""
    word = re.escape(plain(name))
    return bool(
        re.search(
            rf"\b(?:do|would|happen to) (?:you |u |ya )?(?:(?!not )\w+ )*know (?:a |an )?{word}\b|\b(?:my friend|i know"
            rf"|friends are)[^.?!]*\b{word}\b",
            plain(text),
        )
    )


def _several(turn: Turn, name: str, friends: Mapping[str, Sequence[str]]) -> bool:
    """Return True if the turn lists other friends after `name`, so that a bare "yes" is ambiguous."""
    last = mentions(turn.action.text, name)[-1]
    return any(
        place > last for other in all_friends(friends) if other != name for place in mentions(turn.action.text, other)
    )


def namings(turns: Iterable[Turn], friends: Mapping[str, Sequence[str]]) -> list[Naming]:
    """Return the distinct people whom the agents name, in the order of their first mention.

    A name counts wherever it is uttered; a word that is on no list counts only if it is proposed as a person.
    """
    listed = all_friends(friends)
    known = {plain(part) for name in (*friends, *listed) for part in (name, *name.split())}
    found: dict[str, Naming] = {}
    for turn in turns:
        if turn.speaker not in friends or turn.action.type == "none":
            continue
        text = turn.action.text
        places = [(place[0], name) for name in listed if (place := mentions(text, name))]
        if turn.action.type in ("speak", "leave"):
            places += [(place, name) for place, name in _unlisted(text) if plain(name) not in known]
        for _, name in sorted(places):
            found.setdefault(plain(name), Naming(turn.index, turn.speaker, name))
    return list(found.values())


@lru_cache(maxsize=4096)
def _unlisted(text: str) -> tuple[tuple[int, str], ...]:
    """Return capitalised words, on no list, that are proposed as a person: (place, name) pairs."""
    proposed: list[tuple[int, str]] = []
    previous_end = -2
    for match in re.finditer(phrases.NAME, text):
        word = re.sub(r"['’]s$", "", match[0])
        follows_name = match.start() == previous_end + 1 and text[previous_end : match.start()] == " "
        lower = plain(word)
        if (
            lower in phrases.NO_NAMES
            or lower in phrases.WORD_NAMES
            and not is_name(text, word, match.start(), match.start() + len(word))
            or len(word) < 2
        ):
            continue
        if follows_name:
            previous_end = match.end()
            continue
        before, after = plain(text[: match.start()]), plain(text[match.end() :])
        listing = bool(proposed) and not re.search(r"[.!?]", text[proposed[-1][0] : match.start()])
        if _proposed(lower, before, after, listing):
            proposed.append((match.start(), word))
            previous_end = match.end()
        elif not before.strip() or before.rstrip()[-1] not in ".!?":
            previous_end = match.end()
    for match in re.finditer(r"\b(?:do|did|does) (?:you|u|ya|you happen to) know ([a-z]{3,})(?=\?|$|!)", text):
        if match[1] not in phrases.NO_NAMES and match[1] not in phrases.WORD_NAMES:
            proposed.append((match.start(1), match[1].capitalize()))
    return tuple(proposed)


def _proposed(word: str, before: str, after: str, listing: bool) -> bool:
    """Return True if a capitalised `word` between `before` and `after` is proposed as a friend."""
    if phrases.PLACE_AFTER.match(after):
        return False
    clause = re.split(r"[.!?…] ?", before)[-1]
    if listing and re.search(r"(?:,|,? and|,? or|&) $", before):
        return True
    alone = re.fullmatch(
        r"(?:(?:and|or|so|ok|okay|hmm|no|maybe|perhaps|well|how about|what about|then|um|uh|what of|also),? ?)*(?:a )?",
        clause.lstrip(),
    )
    if alone is not None and re.match(r"(?:, [\w']+)*,? or [\w']+\s*\?", after):
        return True
    asked = re.fullmatch(r"(?:\w+,? )?(?:is|was|does|did) (?:the name )?", clause)
    about = phrases.ABOUT_FRIEND.match(after) if alone or asked else None
    if about is not None and bool(about["is"]) is bool(alone):
        return True
    if (
        alone is not None
        and not re.match(r"\w*(?:ed|ing|ly|tion|ous|ful|ble|ive)\b", word)
        and re.match(
            r"(?: [a-z]+)?(?:,? (?:then|maybe|perhaps|by any chance|at all))?\s*\?",
            re.sub(r"^ [\w']+(?=\?)", "", after),
        )
    ):
        return True
    if re.search(
        r"\b(?:know|met|meet|named|(?<!it's )called|friends? with|what about|how about|is it|heard of"
        r"|my friends?(?: is| are)?|recogni[sz]e|run into|friend|have|be)"
        r" (?:a |an |any |someone called |somebody named )?$",
        clause,
    ):
        return not re.search(r"\b(?:name is|i'm called|call me|i am called|been|my name) $", clause)
    return False
