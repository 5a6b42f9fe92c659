"""The search for a mutual friend, read from the words: first mention, affirmation and wrong guesses.

A name that is also a word ("Mark", "will", "Grace") counts only if it is used as a name. The rules were written by
hand; scripts/measure_endings.py measures how often the result agrees with people.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from localsim.conversation.transcript import Turn
from localsim.families.prices import plain

_Verdict = Literal["yes", "no", "ask", ""]

# First names that are also ordinary words, months, plants or places.
_WORD_NAMES = frozenset(
    """
    mark will may grace hope faith joy dawn chase miles rose pierce frank earnest ernest art sonny guy jean june
    april august autumn summer ivy heath clay olive basil penny ash ray sky skye sunny bill rob sue pat jack
    drew gene dean max rich victor earl duke king bishop carol holly iris lily violet daisy jasmine ruby pearl
    amber crystal opal jade robin jay wren martin finn hunter mason carter cooper parker porter taylor baker
    chance trip chip buck buddy cliff dale glen forest lane reed stone wade lance skip rusty dusty norm herb
    barb dot don gale gill harry nick rod sandy ward woody candy cherry ginger melody harmony honey misty star
    stormy trinity verity charity patience prudence constance mercy honor honour justice clement noble major
    judge sterling page paige florence paris london savannah brooklyn dallas austin houston jackson jordan chad
    kenya india china georgia virginia carolina dakota chelsea kent devon lincoln bob pip peter randy lou noel
    mat matt ham rush trace tanner rocky bear wolf fox bird dove brook bay river sage fern hazel heather laurel
    myrtle poppy rosemary willow luna dolly peg angel christian pope cat kitty eve storm echo blaze ace dash jet
    colt drake gray grey brown black green white gold silver scarlet ebony red blue case van bud ridge archer
    fletcher sawyer smith cook gardener marina sierra tiffany mercedes jolly lucky happy merry gay dick tad
    """.split()
)
_PLACES_AND_MONTHS = frozenset(
    """
    may june april august florence paris london savannah brooklyn dallas austin houston jackson jordan kenya
    india china georgia virginia carolina dakota chelsea kent devon lincoln
    """.split()
)
# Names that can open a sentence as verbs ("Will you", "Hope to see you"), and words that follow a person's name.
_VERB_NAMES = frozenset("will may mark hope chase pierce drew trace skip dash".split())
_AFTER_A_PERSON = frozenset(
    "is was has does did knows works lives from likes too who and or plays went taught isn't".split()
)
# Capitalised words that do not guess a friend: openers, days, months, places and the like.
_NO_NAMES = frozenset(
    """
    i i'm i've i'd i'll a an the and but or so no yes yeah yep nope nah not oh ah hi hey hello well ok okay hmm
    hm haha ha lol sorry wait do does did is are was were am be can could would will shall should may might have
    has had what who whom whose which when where why how that this these those there here it it's he she they we
    you my your his her our their me him them us one two three four five six any anyone anybody anything someone
    somebody everyone everybody nobody none maybe perhaps possibly probably sure great nice good cool perfect
    wonderful fantastic lovely awesome amazing interesting excellent thanks thank please actually really indeed
    exactly right wrong then now just also too again still only even else let let's lets at in on of for from to
    with by about as if because since until after before once monday tuesday wednesday thursday friday saturday
    sunday january february march april june july august september october november december christmas easter
    english french german spanish italian american british welsh irish european uk usa europe america africa
    asia england france germany spain italy london paris berlin rome york new boston chicago god lord mr mrs ms
    dr sir madam mom dad agent friend friends mutual both either neither never always ever some many few several
    all each every another other same unfortunately fortunately luckily sadly alas absolutely certainly
    definitely course goodbye bye welcome pleased pleasure glad happy nothing tell think know mine hers likewise
    congratulations seriously honestly funny small world got see ask guess try next first second third last
    finally hold hang look listen anyway however although though maths chess tennis football facebook instagram
    whatsapp linkedin google surely ooh wow aha yay yup yikes ugh um uh er erm hah hooray bingo theirs ours
    myself yourself cheers ciao dear familiar ready agreed coincidence weird strange remember recognise
    recognize ring bell overlap luck lucky match more matches sound sounds name's anywhere somewhere nowhere
    clues tall short blond blonde bald doctor nurse teacher baker carpenter lawyer engineer student yours
    initial initials spell spelling swimming surfing hiking work school uni college tomorrow today tonight
    yesterday clue hint question answer list number letter name names party
    """.split()
)
_NAME = r"[A-ZÀ-ÖØ-Þ][\w'’]*(?:-[A-ZÀ-Þ]\w+)?"
_YES = re.compile(
    r"^(?:(?:oh|ah|ha|haha|hah|lol|wait|well|hmm?|omg|wow|and|why|but|so|ooh) )*(?:yes|yeah|yep|yup|yea|ya|yess+|sure"
    r"|of course|absolutely|definitely|"
    r"certainly|indeed|you bet|totally|bingo|correct|right|exactly|affirmative|i do|sure do|we do|he is|she is"
    r"|they are|naturally"
    r"|i (?:sure|certainly) do|aye|"
    r"snap|ditto|me too|mine too|same here|same|likewise|who doesn't)\b(?! (?:but|thing|enough))"
    r"|\b(?:i|we|yes i|and i|i've|we've)(?: do| also| too| actually| certainly| absolutely| really| both| have"
    r"| happen to| sure)* (?:know|knew|known|recogni[sz]e|"
    r"met|have (?:known|met))(?: to know)? (?!(?:that|what|how|you|no|nobody|no one|someone else|a lot|many|anyone"
    r"|whether|if|who|lots|several)\b)"
    r"|\bi(?: do)? know$|\bi know (?:him|her|them|that)\b|\bhim i (?:do )?know\b|\bher i (?:do )?know\b|\b(?:that's"
    r"|thats|that is|that'd be|it's|it is) (?:him|her|them|"
    r"the one|the guy|the man|the woman|my|our|right|me|correct|it)\b"
    r"|\b(?:is|'s|are|was|been|also|too) (?:also |actually |one of )?(?:(?:a|an|in) )?(?:my|mine|our|good friend"
    r"|old friend|friend of mine|dear friend|mate of mine|close friend|pal of mine)\b"
    r"|^(?:my|our) |\b(?:we|we've|we're|us)\b.*\b(?:together|friends|years|ago|school|share|work|worked|went|grew|met"
    r"|same|colleagues|neighbou?rs|college|play|train)\b"
    r"|\b(?:on my list|in mine|one of mine|among mine|on mine|mutual friend|in common|common friend|one of my"
    r"|friend of mine|mate of mine|my friend|my best|a match|we found)\b"
    r"|\b(?:taught|gave|told|lent|introduced|owes|helped|calls|cuts|drives|married|hired) me\b|\bsmall world\b"
    r"|\b(?:he|she|they) and i\b"
    r"|\b(?:one|there's one) (?:in|of|on) (?:mine|my)\b|\bno way\b.*\btoo\b"
)
_NO = re.compile(
    r"^(?:(?:oh|ah|ha|hmm?|well|sorry|um|uh|i'm afraid|afraid) )*(?:no|nope|nah|never|negative|not|neither|non|no one"
    r"|nobody|nothing|none|sorry)\b(?! (?:way|doubt|kidding|need|problem|joke|wonder))"
    r"|\b(?:don't|do not|dont|didn't|doesn't|can't say|cannot say|couldn't say|wouldn't) (?:actually |really "
    r"|believe |think |personally |even )*(?:i )?(?:know|recogni[sz]e|have|think so|believe|recall|do|remember|ring"
    r"|i do|that i|count|knew|met)\b"
    r"|\b(?:never|not) (?:heard|met|come across|run into|a friend|on my list|on mine|one of mine|in mine|among|mine"
    r"|him|her|familiar|that i|someone i|anyone i|ringing|known)\b"
    r"|\bno idea\b|\bunknown to me\b|\b(?:isn't|not|aren't|wasn't) (?:on|one of|a friend|in|among|someone|mine|my"
    r"|familiar|anyone)\b|\b(?:haven't|have not|hasn't) (?:met|heard|had|come)\b|\bno such\b|\b(?:wrong|mistaken)\b"
    r"|\bmixed (?:him|her|them|it|that|up)\b|\bthinking of (?:someone|somebody|another|a different)\b"
    r"|\bno [A-Za-z]+ (?:here|for me|on|in|among)\b|\ba different\b|\bdrawing a blank\b|\bdoesn't ring\b"
    r"|\bstranger to me\b|\bmeans? nothing\b|\bcan't think of (?:any|a)\b|\bnever (?:spoken|talked|worked)\b"
    r"|\bthere (?:isn't|is no|'s no)\b|\bhas no\b"
)
_HEDGE = re.compile(
    r"\b(?:maybe|perhaps|might|possibly|probably|not sure|unsure|not certain|not positive|rings? a bell"
    r"|sounds? familiar|vaguely|sort of|kind of|i think i|i may|may have|i think so|i guess|could be|can't be sure|"
    r"hard to say|can't say for|let me think|i believe so|heard (?:of |that |the )|seems familiar|may know|who knows"
    r"|i suppose|i wonder|wish i|if i)\b"
)
_NOD = re.compile(
    r"\b(?:nod(?:s|ding)?\b|thumbs[- ]up|high[- ]five|points? (?:excitedly|at (?:her|him)self)|eyes (?:light|lit"
    r"|widen)|beams?\b|claps?\b|grins? and)"
)
_NOT_NOD = re.compile(
    r"\bshak(?:es|ing) (?:his|her|their|its)? ?head\b|\bshrugs?\b|\bfrowns?\b|\bpolite|\buncertain|\bslowly\b"
    r"|\bthoughtful"
)
_MIXED_UP = re.compile(
    r"\bmixed|\bthinking of (?:someone|somebody|another|a different)|\bwrong (?:person|one|\w+)|\btake (?:it"
    r"|that) back|\bdifferent (?:one|person|\w+)|\bdon't (?:actually )?know (?:him|her|them)|\bmy mistake"
)
_ELSEWHERE = re.compile(
    r"^(?:(?:well|but|and|so|then|let me see|let me try another one)[,.]? )*"
    r"(?:i (?:only |do )?know (?:somebody|someone|a )|i(?: do)? have (?:a|another) friend"
    r"|a friend of mine (?!too|as well)"
    r"|one of my friends|one of mine|my friend(?! too| as well)\b|someone i know|somebody i know|there is one of mine"
    r"|that was my last|that's everybody|i've asked about all|it seems we|mine (?:is|isn't))"
)
_ABOUT_HIM = re.compile(
    r"\b(?:he|him|his|she|her|hers|they|them|that's|that is|it's|it is|the same|that one|one of|together)\b"
)


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


def mentions(text: str, name: str) -> list[int]:
    """Return the positions of `name` in `text` as a whole word that is used as a name."""
    words = r"\s+".join(re.escape(word) for word in plain(name).split())
    if not words:
        return []
    matches = re.finditer(rf"(?<![\w'])(?<!\w-){words}(?!\w|-\w|'(?!s\b|\W|$))", plain(text))
    return [match.start() for match in matches if _is_name(text, name, match.start(), match.end())]


def _is_name(text: str, name: str, start: int, end: int) -> bool:
    """Return True if an occurrence of `name` is a name, which only ordinary words can fail to be."""
    if plain(name) not in _WORD_NAMES:
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
    if plain(name) in _PLACES_AND_MONTHS and re.search(
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
    if plain(name) in _VERB_NAMES and verb:
        return verb[0].strip() in _AFTER_A_PERSON or verb[0].strip()[0].isupper()
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
        wrong_guesses=_wrong_guesses(spoken, true, friends),
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


def _affirmed_turn(turns: Sequence[Turn], name: str, friends: Mapping[str, Sequence[str]]) -> int | None:
    """Return the turn in which a holder of `name`, other than its proposer, affirms it, or None."""
    putters: set[str] = set()
    topic = False
    by: str | None = None
    at: int | None = None
    for number, turn in enumerate(turns):
        named = bool(mentions(turn.action.text, name))
        others = putters - {turn.speaker}
        holds = name in friends[turn.speaker]
        if (named or topic) and others and holds and turn.action.text:
            verdict = _verdict(turn, name, friends, topic, turns[number - 1] if number else None)
            if verdict == "yes" and at is None:
                at, by = turn.index, turn.speaker
            elif verdict == "no" and turn.speaker == by and _MIXED_UP.search(plain(turn.action.text)):
                at = None
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
            verdict = _verdict(turn, name, friends, name in asked and not named, before)
            if verdict in ("yes", "no"):
                verdicts.append((turn.index, name, verdict == "yes"))
        before = turn
    return verdicts


def _puts_forward(text: str, name: str) -> bool:
    """Return True if a text asks about `name` first, rather than asking back "Jacob?"."""
    word = re.escape(plain(name))
    return bool(
        re.search(
            rf"\b(?:do|would|happen to) (?:you |u |ya )?(?:\w+ )*know (?:a |an )?{word}\b|\b(?:my friend|i know"
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
    if turn.action.type in ("non-verbal communication", "action"):
        return "yes" if _NOD.search(lower) and not _NOT_NOD.search(lower) else "no" if _NOT_NOD.search(lower) else ""
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
        if verdict and not named and _ELSEWHERE.search(plain(clause).strip()):
            about = False  # the text after an answer is about another person
        if not about:
            continue
        said = _clause_verdict(clause, name, named)
        if said:
            verdict = said
    if verdict == "yes" and before and not mentions(text, name) and _is_other_question(before, name):
        return ""
    return verdict


def _within(text: str, name: str, start: int, end: int) -> list[int]:
    return [place for place in mentions(text, name) if start <= place < end]


def _is_other_question(before: Turn, name: str) -> bool:
    """Return True if the turn before ends in a question about something else ("... Shall we dance?")."""
    text = before.action.text.strip()
    if not text.endswith("?"):
        return False
    last = re.split(r"(?<=[.!?…])\s", text)[-1]
    if mentions(last, name) or _ABOUT_HIM.search(plain(last)):
        return False
    return not re.search(
        r"\b(?:know|friend|you too|familiar|ring|bell|recogni[sz]e|yours?|do you|right|same|any|name|match|common)\b",
        plain(last),
    )


def _clause_verdict(clause: str, name: str, named: bool) -> _Verdict:
    """Return the verdict of one clause about `name`."""
    lower = re.sub(r"\s+", " ", re.sub(r"^[\s,\"'*(-]*(?:but |and |though )?", "", plain(clause))).strip()
    question = lower.endswith("?")
    bare = re.sub(r"[.!?;…,]+", " ", lower).strip()
    word = re.escape(plain(name))
    bare = re.sub(r" +", " ", bare)
    rest = re.sub(rf"^(?:(?:oh|ah|wait|ha|hmm|wow|yes|that|the|and|lol) )*{word}(?:'s)?\b ?", "", bare)
    if _HEDGE.search(bare) or (named and re.search(rf"\b(?:isn't|is not|it's not|no|zero \w+ called) {word}\b", bare)):
        return "no"
    if _NO.search(bare) or (named and _NO.search(rest)):
        return "no" if not question else ""
    if question and not re.search(
        r"^(?:yes|yeah|yep|sure|of course|oh yes|i know|i do)\b|\btoo\?$|\bas well\?$", lower
    ):
        return ""
    positive = _YES.search(bare) or (named and _YES.search(rest))
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


def _wrong_guesses(turns: Iterable[Turn], true: Sequence[str], friends: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the distinct proposed names that are no true friend, in the order of their first mention."""
    listed = [name for name in _listed(friends) if name not in true]
    known = {plain(part) for name in (*true, *friends, *listed) for part in name.split()} | {
        plain(name) for name in (*true, *friends, *listed)
    }
    guesses: dict[str, str] = {}
    for turn in turns:
        text = turn.action.text
        places = [(place[0], name) for name in listed if (place := mentions(text, name))]
        if turn.action.type in ("speak", "leave"):
            places += [(place, name) for place, name in _unlisted(text) if plain(name) not in known]
        for _, name in sorted(places):
            guesses.setdefault(plain(name), name)
    return tuple(guesses.values())


def _unlisted(text: str) -> list[tuple[int, str]]:
    """Return capitalised words, on no list, that are proposed as a person: (place, name) pairs."""
    proposed: list[tuple[int, str]] = []
    previous_end = -2
    for match in re.finditer(_NAME, text):
        word = re.sub(r"['’]s$", "", match[0])
        follows_name = match.start() == previous_end + 1 and text[previous_end : match.start()] == " "
        lower = plain(word)
        if (
            lower in _NO_NAMES
            or lower in _WORD_NAMES
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
        if match[1] not in _NO_NAMES and match[1] not in _WORD_NAMES:
            proposed.append((match.start(1), match[1].capitalize()))
    return proposed


_PLACE_AFTER = re.compile(
    r"^ (?:street|st|road|university|college|school|hotel|hotels|bank|club|park|church|hospital|press|foods|steel"
    r"|motors|city|lane|avenue|station|festival|day|gallery|wedding|airport)\b"
)


def _proposed(word: str, before: str, after: str, listing: bool) -> bool:
    """Return True if a capitalised `word` between `before` and `after` is proposed as a friend."""
    if _PLACE_AFTER.match(after):
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
