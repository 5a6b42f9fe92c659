"""What is said about friends without their names, sentence by sentence, and whom the two identify by it.

Sentences can be about one person across turns: "Do you know a beekeeper?", "Yes, one, at Tidal Power." The rules join
what can be about one person. A wrong join does little harm: whoever uses a description asks if it is true.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from localsim.conversation.transcript import Turn, plain
from localsim.families.mutual_friends import phrases
from localsim.families.mutual_friends.answers import says_no, says_yes, verdict_on
from localsim.families.mutual_friends.lists import Description, Lists
from localsim.families.mutual_friends.mentions import all_friends, mentions
from localsim.families.mutual_friends.names import claims
from localsim.families.shorthand import plainly, spelled_out

_CLAUSES = re.compile(r"(?<=[.!?;…])\s+|, but | but ")
_NEGATIVE = re.compile(r"\b(?:no|none|nobody|neither|never|not|nothing)\b|n't\b")
_PLAIN_NO = re.compile(r"^(?:(?:oh|ah|well|hmm?)[,.! ]+)*(?:no|nope)\s*[,.;:!-]+\s*")
_QUESTION = re.compile(r"\?$|\b(?:do|does|don't|have|haven't) (?:you|u|ya|any(?:body|one)?)\b")
_LIGHT = frozenset(
    """
    yes yeah yep yup sure okay ok oh ah hm hmm well wow great nice good cool aha really exactly right no nope none
    nobody not neither never isn't doesn't and or so then also too just only mainly both all either one ones two three
    four five someone somebody friend friends person he she they him her them his hers their he's she's they're it its
    it's that that's this there who who's which whose mine yours my your of the a an at in for from with as is are was
    were does do did works work worked working like likes liked loves love enjoys enjoy plays play into keen on fan
    have has i know me same actually perhaps maybe must be by any chance company firm hobby guy girl man woman case
    lives live living studies said named though
    """.split()
)
"""Words that a sentence about the person in question has beside a value."""
_NEW = re.compile(
    r"\b(?:someone|somebody|(?:a|one|no) (?:friend|person|guy|girl|man|woman)|one of (?:my|mine)|my"
    r"|i (?:do |only )?(?:know|have)(?! (?:he|she|they)))\b"
)
"""Words that begin a description. In an answer they are about the person asked for, elsewhere about a new one."""
_OWN = re.compile(r"\bi(?:'m| am| also| really| do)* (?:works?|likes?|loves?|enjoys?|plays?|at|in|into)\b")
"""Words of a speaker about the speaker."""
_ASKS_ON = re.compile(
    r"\b(?:he|she|him|her|his|they|them|their|yours?|mine|ones?|where|which|what|who|whose|more|too|either|and you)\b"
)
"""Words of a question about the person in question that names no value."""
_OF_YOURS = re.compile(r"\b(?:any|one|some|which) of your")
"""Words of a question about a friend of the other, whoever was described before."""
_YOU_MEAN = re.compile(r"\b(?:do |did )?you mean\b")
_WORD = re.compile(r"[^\W\d][\w']*")
_LONG = 12
"""Number of words from which a sentence without a value changes the subject."""
_IS = r"(?:that|it|this|he|she|they|yours|mine|which)(?:'s| is| must be| has to be| would be| can only be|'d be|'ll be)"
MEMORY = 3
"""Number of turns for which a description waits for a name."""


@dataclass(frozen=True)
class Told:
    """A description of a person without a name; `negative` if it is denied that there is one."""

    description: Description
    negative: bool


@dataclass(frozen=True)
class Said:
    """What one turn says about people without their names."""

    told: tuple[Told, ...] = ()
    asked: tuple[Description, ...] = ()
    """The descriptions that a yes or no in the next turn answers."""
    questions: tuple[Description, ...] = ()
    """Those of its questions alone."""


def described(turns: Sequence[Turn], lists: Lists) -> dict[int, Said]:
    """Return turn -> what it says about people without their names."""
    everybody = all_friends(lists.names)
    subject: Description = frozenset()
    asked = False
    found = {}
    for turn in turns:
        text = turn.action.text
        told: list[Told] = []
        questions: list[Told] = []
        for clause in _CLAUSES.split(text):
            lower = plain(clause).strip()
            values = lists.values_in(lower)
            named = any(mentions(clause, name) for name in everybody)
            if values and not named:
                goes_on = bool(subject) and _goes_on(lower, values.values(), answers=asked, begun=bool(told))
                denied = lower.endswith("?") and says_no(text)  # "No. Is he at Tidal Power?" tells nothing
                new = list(_told(lower, set(values), subject if goes_on and not denied else frozenset(), lists))
                told += new
                questions += new if _QUESTION.search(lower) else []
                clash = any(len(column & values.keys()) > 1 for column in lists.columns)
                subject = told[-1].description if not clash else subject if goes_on else frozenset()
            elif values or len(lower.split()) > _LONG or not named and _asks_elsewhere(lower):
                subject = frozenset()
        found[turn.index] = Said(tuple(told), _affirmed(told), _affirmed(questions))
        asked = text.rstrip().endswith("?")
    return found


def asks_for_somebody(text: str) -> bool:
    """Return True if a text asks for a person by a trait, of whatever value."""
    clauses = (plain(clause).strip() for clause in _CLAUSES.split(text))
    return any(_QUESTION.search(clause) and phrases.SOMEBODY_WHO.search(clause) for clause in clauses)


def most_exact(descriptions: Collection[Description]) -> list[Description]:
    """Return the descriptions that are no part of another."""
    return [one for one in descriptions if not any(one < other for other in descriptions)]


def _affirmed(told: Iterable[Told]) -> tuple[Description, ...]:
    return tuple(dict.fromkeys(each.description for each in told if not each.negative))


def _asks_elsewhere(lower: str) -> bool:
    return lower.endswith("?") and not _ASKS_ON.search(lower)


def _goes_on(lower: str, values: Iterable[str], *, answers: bool, begun: bool) -> bool:
    """Return True if a sentence with values is about the person in question.

    `answers`: the turn before asked; `begun`: the same turn has described somebody.
    """
    rest = _YOU_MEAN.sub(" ", lower)
    for words in values:
        rest = rest.replace(words, " ")
    if begun:
        rest = rest.replace("my friend", " ")
    if (
        _OWN.search(lower)
        or _OF_YOURS.search(lower)
        or not all(word in _LIGHT for word in _WORD.findall(spelled_out(rest)))
    ):
        return False
    return answers and not begun or not _NEW.search(rest)


def _told(lower: str, values: set[str], subject: Description, lists: Lists) -> Iterator[Told]:
    """Yield the values of a sentence as descriptions, then each with what is known of the subject.

    They are one description, or several if two of them belong to the same attribute.
    """
    lower = spelled_out(lower)
    clash = any(len(column & values) > 1 for column in lists.columns)
    each = [frozenset({value}) for value in sorted(values)] if clash else [frozenset(values)]
    question = _QUESTION.search(lower) is not None  # "No, do you know anybody at Tidal Power?" denies nobody there
    yield from (Told(one, bool(_NEGATIVE.search(lower)) and not question) for one in each)
    for one in each if subject else ():
        kept = {value for column in lists.columns if not column & one for value in column & subject}
        yield Told(one | kept, bool(_NEGATIVE.search(_PLAIN_NO.sub("", lower))) and not question)


def identified(turns: Sequence[Turn], lists: Lists) -> dict[str, int]:
    """Return the friends in common whom one agent describes in full and the other names: name -> turn of the name.

    The description fits nobody else on any list, and neither takes the name back. Nobody is identified if an agent
    affirms a description that fits none of the own friends, or gives a name that it does not fit, unless that is
    denied: who affirms everybody finds nobody.
    """
    spoken = [turn for turn in turns if turn.speaker in lists.of and turn.action.type != "none"]
    said = described(spoken, lists)
    denials = [(index, name) for index, name, knows in claims(spoken, lists.names) if not knows]
    texts = {turn.index: turn.action.text for turn in spoken}
    found: dict[str, int] = {}
    for number, turn in enumerate(spoken):
        if number + 1 < len(spoken) and says_no(spoken[number + 1].action.text):
            continue
        heard = [
            (each.index, description)
            for each in spoken[max(0, number - MEMORY) : number]
            if each.speaker != turn.speaker
            for description in _in_full(each, said[each.index], lists)
        ]
        before = spoken[number - 1] if number else None
        names = _given(turn, before, lists)
        asked = [description for index, description in heard if before and index == before.index]
        if asked and _is_false(turn, names, asked, lists):
            return {}
        for name in lists.shared.intersection(names).difference(found):
            if any(lists.people(description) == {name} for _, description in heard):
                found[name] = turn.index
    return {
        name: at
        for name, at in found.items()
        if not any(
            of == name and (index == at or index > at and _takes_back(texts[index], name)) for index, of in denials
        )
    }


def _in_full(turn: Turn, said: Said, lists: Lists) -> list[Description]:
    """Return the descriptions with all attributes, of a friend of the speaker, that a turn gives."""
    return [
        each.description
        for each in said.told
        if not each.negative
        and len(each.description) == len(lists.columns)
        and lists.fits(turn.speaker, each.description)
    ]


def _given(turn: Turn, before: Turn | None, lists: Lists) -> list[str]:
    """Return the own friends whom a turn names as the person described."""
    text = turn.action.text
    if turn.action.type not in ("speak", "leave") or says_no(text):
        return []
    values = lists.values_in(plain(text)).keys()
    listed = all_friends(lists.names)
    return [
        name
        for name in lists.names[turn.speaker]
        if mentions(text, name)
        and values <= set(lists.of[turn.speaker][name])
        and (_points_at(text, name) or verdict_on(turn, name, lists.names, False, before) == "yes")
        and not any(mentions(text, other) for other in listed if other != name)
    ]


def _points_at(text: str, name: str) -> bool:
    """Return True if a sentence says that the person described is `name`: "That must be Anton."."""
    word = re.escape(plain(name))
    sentences = (plainly(each).strip() for each in _CLAUSES.split(text) if mentions(each, name))
    return any(
        re.search(
            rf"\b{_IS} (?:my (?:friend )?)?{word}\b|^(?:(?:yes|oh|ah|then)\W+)*(?:my (?:friend )?)?{word}\W*$", each
        )
        and not each.endswith("?")
        and not phrases.HEDGE.search(each)
        and not _NEGATIVE.search(each)
        for each in sentences
    )


def _is_false(turn: Turn, names: Sequence[str], asked: Sequence[Description], lists: Lists) -> bool:
    """Return True if an answer to full descriptions affirms one that it cannot know, or names another person."""
    if names:
        return not any(each <= set(lists.of[turn.speaker][name]) for each in asked for name in names)
    return says_yes(turn.action.text) and not any(lists.fits(turn.speaker, each) for each in asked)


def _takes_back(text: str, name: str) -> bool:
    """Return True if a later denial is about a name, and not about another question."""
    return bool(mentions(text, name) or phrases.MIXED_UP.search(plain(text)))
