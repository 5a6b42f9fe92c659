"""Answers about a person, read with what they answer: who says to know whom, who denies it, who only guesses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from localsim.conversation.transcript import Turn
from localsim.families.mutual_friends import phrases
from localsim.families.mutual_friends.mentions import all_friends, mentions
from localsim.families.shorthand import plainly

_Verdict = Literal["yes", "no", ""]


def picked(turn: Turn, before: Turn | None, friends: Mapping[str, Sequence[str]]) -> list[str] | None:
    """Return the people whom an answer takes from a list in the turn before ("The first one"), None if it does not."""
    if before is None:
        return None
    places = [(place[0], name) for name in all_friends(friends) if (place := mentions(before.action.text, name))]
    names = [name for _, name in sorted(places)]
    first = re.split(r"(?<=[.!?;…])", plainly(turn.action.text).strip())[0].rstrip(".!;… ")
    alone = [name for name in names if re.fullmatch(rf"(?:(?:just|only) )?{re.escape(plainly(name))}", first)]
    match = phrases.POINTS.match(first)
    if len(names) < 2 or alone or not match:
        return alone if len(names) > 1 and alone else None
    if first.endswith("?") or phrases.NO.search(first) or phrases.HEDGE.search(first):
        return None
    if match.end() < len(first) and not phrases.YES.search(first):
        return None
    if match["all"]:
        return names
    count = {"two": 2, "three": 3}.get(match["count"], 1)
    start = {"first": 0, "former": 0, "second": 1}.get(match["place"], max(0, len(names) - count))
    return names[start : start + count]


def verdict_on(
    turn: Turn, name: str, friends: Mapping[str, Sequence[str]], topic: bool, before: Turn | None, asked: bool = False
) -> _Verdict:
    """Return the turn's verdict on knowing `name`, from the last clause about it that is not neutral.

    `asked`: the turn before answers a question back about `name`, such as "Who is that?".
    """
    text = turn.action.text
    lower = plainly(text)
    if turn.action.type == "action" and lower.startswith("selects "):  # on a page that shows it to the other side
        return "yes" if mentions(text, name) else ""
    if turn.action.type in ("non-verbal communication", "action"):
        return "no" if phrases.NOT_NOD.search(lower) else "yes" if phrases.NOD.search(lower) else ""
    pointed = picked(turn, before, friends)
    if pointed is not None and (name in pointed or not mentions(text, name)):
        return "yes" if name in pointed else ""
    verdict: _Verdict = ""
    firm = False
    about = topic
    rivals = [other for other in all_friends(friends) if other != name]
    for match in re.finditer(r"(?:(?!, (?:but|and you)\b| but | though\b)[^.!?;…])+[.!?;…]*", text):
        clause = match[0]
        named = bool(_within(text, name, match.start(), match.end()))
        rival = any(_within(text, other, match.start(), match.end()) for other in rivals)
        if rival and not named:
            about = False
            continue
        about = about or named
        start = plainly(clause).strip()
        if not named and (phrases.DESCRIBED.search(start) or verdict and phrases.ELSEWHERE.search(start)):
            about = False  # the text is about another person
        if not about:
            continue
        said, sure = _clause_verdict(clause, name, named)
        if not said and phrases.US.search(start) and _within(text, name, 0, match.start()):
            said = "yes"  # "Jacob from school? We have lunch every day."
        if not said and _echo(clause, text[: match.start()], before):
            said, sure = "yes", True
        if said and (
            named or verdict in ("", said) or not firm or _takes_back(clause, said, sure, text[: match.start()])
        ):
            verdict, firm = said, sure or firm and said == verdict
    clear = mentions(text, name) or re.search(r"\b(?:him|her|them|that's the one)\b", lower)
    if (
        verdict == "yes"
        and before
        and not clear
        and (_is_other_question(before, name, asked) or _ends_with_no(before, name))
    ):
        return ""
    return verdict


def _takes_back(clause: str, said: _Verdict, sure: bool, heard: str) -> bool:
    """Return True if a clause without the name can change to `said` what the same turn has said for sure in `heard`."""
    words = plainly(clause).strip(" ,.!?;")
    if phrases.TURNED.search(words) and not heard.rstrip().endswith("?"):
        return True
    if phrases.RETHOUGHT.search(words) or (said == "no" and phrases.MIXED_UP.search(words)):
        return True
    return sure and bool((phrases.KNOWN if said == "no" else phrases.PRONOUN).search(words))


def _echo(clause: str, said: str, before: Turn | None) -> bool:
    """Return True for "So do I!" or "Who doesn't!" after words about knowing, "So am I!" after words about a friend."""
    heard = said or (before.action.text if before else "")
    last = plainly(re.split(r"(?<=[.!?…])\s", heard.strip())[-1])
    match = re.match(r"\W*(?:(?:so|as) (do|am) i|i (do|am) too)\b|\W*who (do)esn't\W*$", plainly(clause))
    if not match:
        return False
    return bool(re.search(r"\bknow\b" if "do" in match.groups() else r"\b(?:friends? with|friend of)\b", last))


def _within(text: str, name: str, start: int, end: int) -> list[int]:
    return [place for place in mentions(text, name) if start <= place < end]


def _is_other_question(before: Turn, name: str, asked: bool) -> bool:
    """Return True if the turn before ends with something else: a question ("... Shall we dance?") or a description."""
    text = before.action.text.strip()
    sentences = re.split(r"(?<=[.!?…])\s", text)
    named = [number for number, sentence in enumerate(sentences) if mentions(sentence, name)]
    answers = asked and not re.search(r"\?|\bdo you\b", plainly(text))
    if not answers and _describes_another(sentences[named[-1] + 1 if named else 0 :]):
        return True
    if not text.endswith("?"):
        return False
    last = sentences[-1]
    if mentions(last, name) or phrases.ABOUT_HIM.search(plainly(last)):
        return False
    return not re.search(
        r"\b(?:know|friend|you too|familiar|ring|bell|recogni[sz]e|yours?|do you|right|same|any|name|match|common)\b",
        plainly(last),
    )


def _describes_another(sentences: Sequence[str]) -> bool:
    """Return True if sentences after the last name ask about a person whom they describe, or tell of one."""
    heard = ""
    for sentence in map(plainly, sentences):
        match = phrases.ANOTHER.search(sentence)
        if match:
            asked = re.search(r"\?$|\bdo you\b", sentence) and not phrases.ANYONE_YOU_KNOW.search(sentence)
            ahead = sentence[: match.start()]
            back = phrases.PRONOUN.search(heard + ahead) or re.search(r"\b(?:that|this|it|sound)\b", ahead)
            if not back and (asked or phrases.DESCRIBED.search(sentence)):
                return True
        heard += sentence + " "
    return False


def _ends_with_no(before: Turn, name: str) -> bool:
    """Return True if the turn before ends with a statement that denies, so that a bare "Right." agrees with a no."""
    last = re.split(r"(?<=[.!?…])\s", before.action.text.strip())[-1]
    if last.endswith("?") or (mentions(before.action.text, name) and not mentions(last, name)):
        return False
    return bool(phrases.NO.search(plainly(last).rstrip(".!…")))


def _clause_verdict(clause: str, name: str, named: bool) -> tuple[_Verdict, bool]:
    """Return the verdict of one clause about `name`, and False if it is only a guess, such as a doubt."""
    lower = re.sub(r"\s+", " ", re.sub(r"^[\s,\"'*(-]*(?:but |and |though )?", "", plainly(clause))).strip()
    question = lower.endswith("?") or phrases.DO_YOU_KNOW.search(lower) is not None
    if phrases.NEUTRAL.search(lower.rstrip(".!?;…")) and not phrases.NO.search(lower):
        return "", False
    bare = _words(lower)
    if phrases.ASKED_YES.search(bare) or phrases.MISSED.search(lower):
        return "yes", True
    told = phrases.ASIDE.sub("", lower)
    bare = _words(told)
    word = re.escape(plainly(name))
    rest = re.sub(rf"^(?:(?:oh|ah|wait|ha|hmm|wow|yes|that|the|and|lol) )*{word}(?:'s)?\b ?", "", bare)
    if phrases.HEDGE.search(bare):
        return ("", False) if named and (question or phrases.ASKS.search(bare)) else ("no", False)
    if named and not question and re.search(rf"\b(?:isn't|is not|it's not|no|zero \w+ called) {word}\b", bare):
        return "no", True
    if phrases.NO.search(bare) or (named and phrases.NO.search(rest)):
        return ("", False) if question else ("no", bool(phrases.NO.search(phrases.SORRY.sub("", bare))))
    if question and (
        bare == "yes"
        or not re.search(r"^(?:yes|yeah|yep|sure|of course|oh yes|i know|i do)\b|\btoo\?$|\bas well\?$", lower)
    ):
        return "", False
    if phrases.YES.search(bare) or (named and phrases.YES.search(rest)):
        return "yes", True
    return ("yes", False) if told == lower and _sounds_close(clause, bare, named) else ("", False)


def _words(text: str) -> str:
    return phrases.LAUGHTER.sub("", re.sub(r" +", " ", re.sub(r"[.!?;…,]+", " ", text)).strip())


def _sounds_close(clause: str, bare: str, named: bool) -> bool:
    """Return True if a clause without a yes speaks of a person as one does of a friend."""
    if phrases.FAR.search(bare) or re.search(r"\b(?:sounds?|seems?|love to|like to)\b", bare):
        return False
    if named and clause.strip().endswith("!") and not re.search(r"\b(?:who|what|how|nice|your)\b", bare):
        return True
    if re.search(
        r"\b(?:tell me|i see|i think|remind me|let me|yours?|i (?:don't|have to|need|hear|asked|will|would|could|must"
        r"|want)|you know|give me|show me|i was going)\b",
        bare,
    ):
        return False
    own = re.search(r"\b(?:my|mine|me|we|us|our|i've|i'm|i was|i)\b", bare)
    return bool(own) and (named or bool(phrases.PRONOUN.search(bare) and not phrases.ABSENT.search(bare)))


def says_yes(text: str) -> bool:
    """Return True if a text begins with a yes."""
    return _opens_with(phrases.YES, text) and not says_no(text)


def says_no(text: str) -> bool:
    """Return True if a text begins with a no."""
    return _opens_with(phrases.NO, text)


def _opens_with(pattern: re.Pattern[str], text: str) -> bool:
    first = re.split(r"[.!?;…]|, but\b| but ", plainly(text).strip(), maxsplit=1)[0]
    return bool(pattern.search(first.strip()))
