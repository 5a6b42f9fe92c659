"""The search for a mutual friend, read from the words: first mention, affirmation and wrong guesses.

A name that is also a word ("Mark", "will", "Grace") counts only if it is used as a name. The rules were written by
hand; scripts/measure_endings.py measures how often the result agrees with labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from localsim.conversation.transcript import Turn
from localsim.families.mutual_friends import phrases
from localsim.families.prices import plain

_Verdict = Literal["yes", "no", "ask", ""]


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


def mentions(text: str, name: str) -> list[int]:
    """Return the positions of `name` in `text` as a whole word that is used as a name."""
    return list(_mentions(text, name))


@lru_cache(maxsize=8192)
def _mentions(text: str, name: str) -> tuple[int, ...]:
    words = r"\s+".join(re.escape(word) for word in plain(name).split())
    if not words:
        return ()
    matches = re.finditer(rf"(?<![\w'])(?<!\w-){words}(?!\w|-\w|'(?!s\b|\W|$))", plain(text))
    return tuple(match.start() for match in matches if _is_name(text, name, match.start(), match.end()))


def _is_name(text: str, name: str, start: int, end: int) -> bool:
    """Return True if an occurrence of `name` is a name, which only ordinary words can fail to be."""
    if plain(name) not in phrases.WORD_NAMES:
        return True
    lower = plain(text)
    before, after = lower[:start], lower[end:]
    ends = re.match(r"\s*(?:$|[?!.,;:)\"…-])|'s\b", after)
    if not text[start].isupper():
        cue = re.search(
            r"\b(?:know|knew|met|named|called|friend|what about|how about|is it|its|it's|you mean|u mean|friends with"
            r"|named) (?:a |an |any |old )?$",
            before,
        )
        alone = (
            re.fullmatch(r"(?:.*[.?!,;] ?)?(?:and |or |so |ok |maybe |hmm |no |yes |yeah |um |uh |then )*", before)
            is not None
        )
        follows = re.match(r" (?:from|too|lol|as well|haha|who|yes|either|maybe|then|here)\b", after)
        return bool((cue and (ends or follows)) or (alone and re.match(r"\s*(?:\?|!|$)", after)))
    if plain(name) in phrases.PLACES_AND_MONTHS and re.search(
        r"\b(?:in|last|next|since|until|early|late|mid|near|of|during|visit|to|this|every) $", before
    ):
        return False
    opening = not before.strip() or before.rstrip()[-1] in '.!?…:"“'
    if not opening and (text.upper() != text):
        return not re.match(r" (?:i|you|we|my words)\b", after) or bool(
            re.search(r"\b(?:know|about|and|or|mean|called|named) $", before)
        )
    verb = re.match(
        r" (?:is|was|has|does|did|knows?|works|worked|lives|likes|loves|and|from|with|who|that|too|as well|in|over"
        r"|used|went|taught|plays|or|the|then|maybe|perhaps|isn't|"
        r"[A-Z]\w+)\b(?! (?:you|i|we|it|they|he|she)\b)",
        text[end:],
    )
    if plain(name) in phrases.VERB_NAMES and verb:
        return verb[0].strip() in phrases.AFTER_A_PERSON or verb[0].strip()[0].isupper()
    return bool(ends or verb)


def friends_outcome(turns: Sequence[Turn], friends: Mapping[str, Sequence[str]]) -> FriendsOutcome:
    """Return the result of a conversation between agents with `friends` (agent -> names on that agent's list).

    A true friend is a name on the lists of two or more agents.
    """
    true = [name for name in _listed(friends) if sum(name in names for names in friends.values()) > 1]
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


def _listed(friends: Mapping[str, Sequence[str]]) -> list[str]:
    return list(dict.fromkeys(name for names in friends.values() for name in names))


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
        if (named or topic) and turn.action.text and (at is not None or others and holds):
            verdict = _verdict(turn, name, friends, topic, turns[number - 1] if number else None)
            if verdict == "yes" and at is None:
                at = turn.index
            elif verdict == "no" and at is not None and phrases.MIXED_UP.search(plain(turn.action.text)):
                at = None  # either agent can take it back
        if named and (not others or _puts_forward(turn.action.text, name)):
            putters.add(turn.speaker)
        elsewhere = [other for other in _listed(friends) if other != name and mentions(turn.action.text, other)]
        topic = (named and not _several(turn, name, friends)) or (
            topic and not elsewhere and len(turn.action.text) < 300
        )
    return at


def claims(turns: Sequence[Turn], friends: Mapping[str, Sequence[str]]) -> list[tuple[int, str, bool]]:
    """Return each turn's last word on knowing a named person: (turn, name, True for yes).

    Names that are on no list count as well.
    """
    listed = _listed(friends)
    verdicts = []
    before: Turn | None = None
    for turn in turns:
        text = turn.action.text
        named = [name for name in listed if mentions(text, name)]
        named += [name for _, name in _unlisted(text) if name not in (*named, *listed, *friends)]
        asked = [name for name in listed if before is not None and mentions(before.action.text, name)]
        for name in dict.fromkeys([*named, *asked]):
            verdict = _verdict(turn, name, friends, name in asked, before)
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
        place > last for other in _listed(friends) if other != name for place in mentions(turn.action.text, other)
    )


def _verdict(turn: Turn, name: str, friends: Mapping[str, Sequence[str]], topic: bool, before: Turn | None) -> _Verdict:
    """Return the turn's verdict on knowing `name`, from the last clause about it that is not neutral."""
    text = turn.action.text
    lower = plain(text)
    if turn.action.type == "action" and lower.startswith("selects "):  # on a page that shows it to the other side
        return "yes" if mentions(text, name) else ""
    if turn.action.type in ("non-verbal communication", "action"):
        return (
            "yes"
            if phrases.NOD.search(lower) and not phrases.NOT_NOD.search(lower)
            else "no"
            if phrases.NOT_NOD.search(lower)
            else ""
        )
    verdict: _Verdict = ""
    about = topic
    rivals = [other for other in _listed(friends) if other != name]
    for match in re.finditer(r"(?:(?!, (?:but|and you)\b| but | though\b)[^.!?;…])+[.!?;…]*", text):
        clause = match[0]
        named = bool(_within(text, name, match.start(), match.end()))
        rival = any(_within(text, other, match.start(), match.end()) for other in rivals)
        if rival and not named:
            about = False
            continue
        about = about or named
        if verdict and not named and phrases.ELSEWHERE.search(plain(clause).strip()):
            about = False  # the text after an answer is about another person
        if not about:
            continue
        said = _clause_verdict(clause, name, named) or _echo(clause, text[: match.start()], before)
        if said and (named or verdict in ("", said) or _takes_back(clause, said)):
            verdict = said
    sure = mentions(text, name) or re.search(r"\b(?:him|her|them|that's the one)\b", lower)
    if verdict == "yes" and before and not sure and _is_other_question(before, name):
        return ""
    return verdict


def _takes_back(clause: str, said: _Verdict) -> bool:
    """Return True if a clause without the name can change what the same turn has said about the person to `said`."""
    words = plain(clause).strip(" ,.!?;")
    return bool(phrases.RETHOUGHT.search(words) or (said == "no" and phrases.MIXED_UP.search(words)))


def _echo(clause: str, said: str, before: Turn | None) -> _Verdict:
    """Return "yes" for "So do I!" after words about knowing."""
    heard = said or (before.action.text if before else "")
    last = re.split(r"(?<=[.!?…])\s", heard.strip())[-1]
    return "yes" if re.match(r"\W*so do i\b", plain(clause)) and re.search(r"\bknow\b", plain(last)) else ""


def _within(text: str, name: str, start: int, end: int) -> list[int]:
    return [place for place in mentions(text, name) if start <= place < end]


def _is_other_question(before: Turn, name: str) -> bool:
    """Return True if the turn before ends with something else: a question ("... Shall we dance?") or a description."""
    text = before.action.text.strip()
    sentences = re.split(r"(?<=[.!?…])\s", text)
    named = [number for number, sentence in enumerate(sentences) if mentions(sentence, name)]
    after = plain(" ".join(sentences[named[-1] + 1 if named else 0 :]))
    another = phrases.ANOTHER.search(after)
    if another:
        clause = re.split(r"[.!?…]", after[: another.start()])
        earlier = re.search(r"\b(?:he|him|she|her|they|them)\b", after[: another.start()])
        if not earlier and not re.search(r"\b(?:that|this|it|sound)\b", clause[-1]):
            return True
    if not text.endswith("?"):
        return False
    last = sentences[-1]
    if mentions(last, name) or phrases.ABOUT_HIM.search(plain(last)):
        return False
    return not re.search(
        r"\b(?:know|friend|you too|familiar|ring|bell|recogni[sz]e|yours?|do you|right|same|any|name|match|common)\b",
        plain(last),
    )


def _clause_verdict(clause: str, name: str, named: bool) -> _Verdict:
    """Return the verdict of one clause about `name`."""
    lower = re.sub(r"\s+", " ", re.sub(r"^[\s,\"'*(-]*(?:but |and |though )?", "", plain(clause))).strip()
    question = lower.endswith("?")
    if phrases.NEUTRAL.search(lower.rstrip(".!?;…")) and not phrases.NO.search(lower):
        return ""
    bare = re.sub(r"[.!?;…,]+", " ", lower).strip()
    word = re.escape(plain(name))
    bare = re.sub(r" +", " ", bare)
    rest = re.sub(rf"^(?:(?:oh|ah|wait|ha|hmm|wow|yes|that|the|and|lol) )*{word}(?:'s)?\b ?", "", bare)
    if phrases.HEDGE.search(bare) or (
        named and re.search(rf"\b(?:isn't|is not|it's not|no|zero \w+ called) {word}\b", bare)
    ):
        return "no"
    if phrases.NO.search(bare) or (named and phrases.NO.search(rest)):
        return "no" if not question else ""
    if question and not re.search(
        r"^(?:yes|yeah|yep|sure|of course|oh yes|i know|i do)\b|\btoo\?$|\bas well\?$", lower
    ):
        return ""
    positive = phrases.YES.search(bare) or (named and phrases.YES.search(rest))
    if positive:
        return "yes"
    if named and clause.strip().endswith("!") and not re.search(r"\b(?:who|what|how|nice|your)\b", bare):
        return "yes"
    personal = re.search(r"\b(?:my|mine|me|we|us|our|i've|i'm|i was|i)\b", bare) and not re.search(
        r"\b(?:tell me|i see|i think|remind me|let me|yours?|i (?:don't|have to|need|hear|asked|will|would|could|must"
        r"|want)|you know|give me|show me|i was going)\b",
        bare,
    )
    return "yes" if named and personal else ""


def namings(turns: Iterable[Turn], friends: Mapping[str, Sequence[str]]) -> list[Naming]:
    """Return the distinct people whom the agents name, in the order of their first mention.

    A name counts wherever it is uttered; a word that is on no list counts only if it is proposed as a person.
    """
    listed = _listed(friends)
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


def says_yes(text: str) -> bool:
    """Return True if a text begins with a yes."""
    return _opens_with(phrases.YES, text) and not says_no(text)


def says_no(text: str) -> bool:
    """Return True if a text begins with a no."""
    return _opens_with(phrases.NO, text)


def _opens_with(pattern: re.Pattern[str], text: str) -> bool:
    first = re.split(r"[.!?;…]|, but\b| but ", plain(text).strip(), maxsplit=1)[0]
    return bool(pattern.search(first.strip()))


def _unlisted(text: str) -> list[tuple[int, str]]:
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
            and not _is_name(text, word, match.start(), match.start() + len(word))
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
    return proposed


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
        r"\b(?:know|met|meet|named|called|friends? with|what about|how about|is it|heard of|my friends?(?: is| are)?"
        r"|recogni[sz]e|run into|friend|have|be) (?:a |an |any |someone called |somebody named )?$",
        clause,
    ):
        return not re.search(r"\b(?:name is|i'm called|call me|i am called|been|my name) $", clause)
    return False
