"""The beginning of a line as chat models write it: a name in quotation marks, bold, in brackets, before a dash.

`**May**: ...`, `"May": ...`, `[May] ...`, `May (smiling): ...`, `May：...`, `1. MAY - ...`. A word that only begins
with the letters of a name is no name: "Maybe", "May's bag", "May I sit here?".
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from localsim.conversation.names import COLONS, tidy, whole

_LONGEST = 160
"""Characters before a colon that can be a name with remarks."""
Kind = Literal["agent", "aside", "label", "plain"]

UNSEEN = " \t\r\n\u00a0\u00ad\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
"""Spaces and marks of direction around words."""
_LEAD = re.compile(
    rf"(?:[{UNSEEN}\s>#*_~`\"'“”„‟‘’‚«»‹›「『（(\[<{{【•·@|-]|–|—|[\u2190-\u2bff\U0001f000-\U0001faff\ufe0f]|\d{{1,3}}[.)]\s)*"
)
_TRAIL = UNSEEN + "*_~`\"'“”„‟‘’‚«»‹›」』）)]>}】| \t"
_CLOSERS = {
    "(": ")", "[": "]", "{": "}", "<": ">", "«": "»", "»": "«", "‹": "›", "“": "”", "„": "“", "‘": "’", "「": "」",
    "『": "』", "（": "）", "【": "】", '"': '"', "'": "'", "`": "`", "*": "*", "_": "_", "~": "~", "|": "|",
}  # fmt: skip
_ENDS = tuple(".!?…。！？؟")
_REMARK = r"\([^()\n]{0,200}\)|（[^（）\n]{0,200}）|\*[^*\n]{1,200}\*|【[^【】\n]{0,200}】"
_REMARKS = re.compile(_REMARK)
_ACTION = re.compile(r"\[([^\[\]\n]{0,200})\]")
_DASH = re.compile(r"\s+(?:[-–—―]+|[|│])\s+|\s*(?:->|=>|[>→➜⟶➤])\s*|(?<=\w)(?=[「『])")
_COUNTED = re.compile(
    r"\s*(turn|line|message|reply|response|utterance|round|step|speaker|character|role)\s*#?\d{1,4}\b\W*", re.IGNORECASE
)
_TIMED = re.compile(r"[\s\[(]*\d{1,2}:\d{2}(?::\d{2})?(?: ?[ap]m)?[\])]?\s+(?:[-–]\s+)?", re.IGNORECASE)
_WRAPPED = re.compile(
    r"\s*(\*\*|__|[\[(<【（{*])\s*([^\[\]()<>*【】（）{}\n]{1,60}?)\s*(\*\*|__|[\])>】）}*])\s*(.*)", re.DOTALL
)
_NOT_FOR_ALL = re.compile(
    r"\b(?:(?i:think\w*|thought\w*|inner|internal\w*|silent\w*|aside|private\w*|whisper\w*|muses?|musing|"
    r"(?:to|for) (?:him|her|them|it|my)sel(?:f|ves))|to [A-Z]\w*)\b"
)
_SAYS = frozenset(
    "says said say replies replied reply responds responded answers answered answer asks asked speaks adds added "
    "continues exclaims shouts nods smiles laughs grins sighs shrugs leaves dice responde contesta pregunta dit répond "
    "demande sagt antwortet fragt risponde chiede diz pergunta zegt antwoordt говорит отвечает спрашивает сказал "
    "сказала ответил ответила mówi odpowiada يقول تقول قال قالت कहता कहती बोला बोली".split()
)
_THINKS = frozenset(
    "thinks thought thinking whispers whispered whisper muses wonders piensa pense denkt думает".split()
)
_HOW = frozenset("with in while as back again and then avec con mit com to".split())
_WOULD = frozenset("would might could will should may can".split())
_SPEAK = frozenset("say reply respond answer speak ask respond replying responding speaking answering talk act".split())
_AS = frozenset("as como comme als come jako как".split())
_UNSPACED_SAYS = re.compile(
    r"[^\W我你您]{0,8}?(?:[说說]道?|[回答]?答道?|回复|[问問]道?|道|曰|[言云]う|言った|答え[るた])|[은는이가]?\s?\S{0,4}(?:말했다|말한다|답했다)"
    r"|さん|様|君|くん|ちゃん|先生|씨|님"
)
_UNSPACED_THINKS = re.compile(r"[^\W我你您]{0,8}?(?:想道?|思[うっ]た?)|[은는이가]?\s?생각(?:했다|한다)")
_YOURSELF = re.compile(r"(?:you|me|i|myself|agent|player|user|assistant|speaker|character|person|role|name)\W*\d{0,3}")
_SEVERAL = re.compile(r"\s+(?:and|y|et|und|e|и)\s+|\s*[&/+和と]\s*")
_AGAIN = re.compile(r"(?:[\s>]|[:：](?=[\s:：]))*")
"""What a model doubles after a name: `May:: ...`, `<<May>>: ...`."""
_OF = frozenset("from for by of".split())
_OWN_WORDS = frozenset("reply response line answer turn message words dialogue utterance output".split())
_TITLES = frozenset(
    "dr mr mrs ms mx st prof sir lady the a an doctor mister miss professor herr frau señor señora agent player "
    "character speaker".split()
)
_LOOSE = re.compile("[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670\\W_]")
"""Accents, points and vowel marks that many leave out, and what stands between words."""
_PLAIN = str.maketrans(
    {**dict(zip("ıłøđðħŧيىك", "iloddhtییک", strict=True)), "æ": "ae", "œ": "oe", "þ": "th", **dict.fromkeys("ʻʼʾʿ")}
)
"""Letters that Unicode does not take apart, as those write them whose keyboard lacks them."""
_LABELS = frozenset(
    "assistant|ai|bot|model|reply|response|answer|output|line|dialogue|my reply|my response|final answer|your reply|"
    "next line|final reply|final response|final|agent|text|me|you|i|myself|speak|speech|utterance|"
    "respuesta|réponse|antwort|risposta|resposta|antwoord|ответ|回复|回答|答|返答|대답|الرد|जवाब".split("|")
)
_ASIDES = frozenset(
    "user|human|system|narrator|note|notes|ooc|scene|stage direction|thought|thoughts|thinking|thought process|"
    "reasoning|analysis|inner monologue|internal monologue|inner thoughts|internal thoughts|reflection|plan|"
    "explanation|instruction|instructions|comment|tool|function|author's note|thinking process|nota|pensamiento|"
    "pensamientos|pensée|pensées|réflexion|gedanke|gedanken|überlegung|pensiero|pensieri|pensamento|мысли|"
    "размышление|思考|想法|内心|内心独白|旁白|心の声|생각|تفكير|विचार".split("|")
)
_NAMES = r"(?:reply|response|line|answer|message|turn|dialogue|output|utterance|script|conversation)"
_PREAMBLE = re.compile(
    rf"(?:(?:sure|certainly|of course|absolutely|okay|ok|alright|understood|got it|great|no problem)\b[^:]{{0,40}}?)?"
    rf"(?:here(?:'s| is| are)|this is|below is)\b[^:]{{0,60}}\b(?:{_NAMES}|would (?:say|reply|respond))\b[^:]{{0,60}}"
    rf"|(?:sure|certainly|of course|absolutely|okay|ok)\W+here (?:you go|it is)\W*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Head:
    """How a line begins, and what follows."""

    kind: Kind
    """`agent`: a person of the talk; `aside`: not speech, such as a thought; `label`: a word such as "Reply:"."""
    name: str = ""
    """The agent."""
    bracket: str = ""
    """An action in brackets after the name."""
    rest: str = ""
    """The line without its beginning."""
    decorated: bool = False
    """True if a remark was left out."""


def head_of(line: str, names: Sequence[str]) -> Head:
    """Read the beginning of a line; `names` are those of the agents in a talk."""
    timed = _TIMED.match(line)
    if timed is not None and (found := _head(line[timed.end() :], names)).kind == "agent":
        return found
    return _head(line, names)


def _head(line: str, names: Sequence[str]) -> Head:
    found = _begin(line, names)
    while isinstance(found, str):
        found = _begin(found, names)
    return found


def _begin(line: str, names: Sequence[str]) -> Head | str:
    """Return the beginning of a line, or what follows an aside at its beginning."""
    led = _LEAD.match(line)
    opened = led.group() if led else ""
    inner = line[len(opened) :]
    ends = sorted(end for end in (_colon(inner), _dash(inner)) if end is not None)
    for start, end in ends:
        label, exact, rest = inner[:start], inner[start] not in COLONS, inner[end:]
        found = _named(label, names, exact=exact) or _named(opened + label, names, exact=True)
        again = _begun(rest, names) if found is None or exact else ""
        if found is None and again and not exact and len(label) <= _LONGEST:
            return Head("label", rest=rest)
        if found is not None:
            found = Head("aside", found.name) if again not in ("", found.name) else found
            after = _after_aside(rest, opened) if found.kind == "aside" and not found.name else ""
            rest = (_after_aside(rest, opened) if exact else "") or rest  # as in `[May - smiling] Hello.`
            return after or replace(found, rest=_closed(rest, opened, label))
    action = _ACTION.search(inner[:_LONGEST])
    if action is not None and (name := agent_of(inner[: action.start()].strip(_TRAIL), names)):
        return Head("agent", name, action[1].strip(), _closed(inner[action.end() :], opened, name))
    wrapped = _WRAPPED.match(line)
    if wrapped is not None:
        found = _named(wrapped[2], names, exact=True)
        if found is not None and found.kind == "agent":
            return _after_wrapped(found, wrapped[4])
    alone = None if inner.rstrip(_TRAIL).endswith(_ENDS) else _named(_closed(inner, opened, ""), names, exact=True)
    return alone if alone is not None and alone.kind == "agent" else Head("plain", rest=line)


def _after_aside(rest: str, opened: str) -> str:
    """Return what follows an aside in brackets, as in `(Note: I lie.) Hello.`; '' where nothing does."""
    closer = next((_CLOSERS[mark] for mark in reversed(opened) if mark in "([（【"), "")
    return rest.partition(closer)[2].strip() if closer else ""


def agent_of(text: str, names: Sequence[str]) -> str:
    """Return the agent whose whole name a text is, in any spelling; '' for none."""
    words = plain_words(text) if len(text) <= _LONGEST else ""
    if not words:
        return ""
    found = [name for name in names if plain_words(name) == words] or [
        name for name in names if _loose(name) == _loose(words)
    ]
    return found[0] if len(found) == 1 else ""


def _begun(text: str, names: Sequence[str]) -> str:
    """Return the agent with whose name and a colon a text begins."""
    end = _colon(text[:_LONGEST])
    return agent_of(text[: end[0]].strip(_TRAIL), names) if end else ""


def _after_wrapped(found: Head, rest: str) -> Head:
    action = _ACTION.match(rest)
    bracket = action[1].strip() if action else ""
    rest = rest[action.end() :] if action else rest
    return Head("agent", found.name, bracket, rest.lstrip(f"{COLONS}-–— \t"))


def _colon(line: str) -> tuple[int, int] | None:
    """Return the place of the first colon outside of brackets, if it is near enough to end a name."""
    depth = 0
    for place, char in enumerate(line[:300]):
        depth += (char in "[(（【") - (char in "])）】" and depth > 0)
        if not depth and char in COLONS:
            return place, place + 1
    return None


def _dash(line: str) -> tuple[int, int] | None:
    found = _DASH.search(line[:100])
    return found.span() if found else None


def _closed(rest: str, opened: str, label: str) -> str:
    """Return a text without the marks that close what was opened before the name, as in `**May:** ...`."""
    again = _AGAIN.match(rest)
    rest = rest[again.end() if again else 0 :].strip()
    left: list[str] = []
    for mark in reversed(opened.replace(" ", "")):
        closer = _CLOSERS.get(mark)
        if closer is None or label.rstrip().endswith(closer):
            continue
        if rest.startswith(closer):
            rest = rest[1:].lstrip()
        else:
            left.append(closer)
    for closer in reversed(left):
        if rest.endswith(closer):
            rest = rest[:-1].rstrip()
    return rest


def _named(label: str, names: Sequence[str], *, exact: bool) -> Head | None:
    """Return whom a text before a colon names, or what else it is; None if it is speech."""
    if len(label) > _LONGEST:
        return None
    remarks = _REMARKS.findall(label)
    bare = _REMARKS.sub(" ", label)
    action = _ACTION.search(bare)
    if action:
        bare = bare[: action.start()] + bare[action.end() :]
    bare = bare.strip(_TRAIL).strip()
    words = plain_words(bare)
    if not words:
        return None
    name, thought = _who(bare, words, names, exact=exact)
    called = [agent_of(each.strip("()（）"), names) for each in remarks if not name and _YOURSELF.fullmatch(words)]
    name = name or next(filter(None, called), "")
    several = [agent_of(each, names) for each in _SEVERAL.split(words)] if not name else []
    if len(several) > 1 and all(several):
        return Head("aside")
    if name:
        if thought or any(_NOT_FOR_ALL.search(each) for each in remarks):
            return Head("aside", name)
        return Head("agent", name, action[1].strip() if action else "", decorated=bool(remarks))
    if not exact and (counted := _COUNTED.match(label)):
        rest = label[counted.end() :].strip(_TRAIL + "([,")
        if name := agent_of(rest, names):
            return Head("agent", name, decorated=True)
        return Head("label") if not rest and counted[1].casefold() not in ("round", "step", "role") else None
    if exact or action:
        return None
    if words in _ASIDES:
        return Head("aside")
    if _PREAMBLE.fullmatch(words):
        name = _mentioned(words, names)
        return Head("agent", name, decorated=True) if name else Head("label")
    return Head("label") if words in _LABELS else None


def _mentioned(words: str, names: Sequence[str]) -> str:
    """Return the agent whose reply a preamble announces, such as "here is May's reply to Ben"; '' for none."""
    found = {name: re.search(rf"(?<!\bto )(?<!\bfor ){whole(plain_words(name)).pattern}", words) for name in names}
    places = {name: place.start() for name, place in found.items() if place}
    return min(places, key=places.__getitem__, default="")


@lru_cache(maxsize=4096)
def plain_words(text: str) -> str:
    """Return one form for all spellings of a text, whatever their case, width and apostrophes."""
    folded = unicodedata.normalize("NFKC", tidy(text)).casefold().replace("’", "'")
    return " ".join(unicodedata.normalize("NFKC", folded).split())


@lru_cache(maxsize=4096)
def _loose(text: str) -> str:
    """Return a text without accents, points, spaces, hyphens and apostrophes."""
    return _LOOSE.sub("", unicodedata.normalize("NFKD", plain_words(text))).translate(_PLAIN)


def _who(label: str, words: str, names: Sequence[str], *, exact: bool) -> tuple[str, bool]:
    """Return the agent that a label names, and if it says that the agent thinks; '' for none."""
    if whole_name := agent_of(words, names):
        return whole_name, False
    said = [word.rstrip(",") for word in words.split()]
    for name, own in () if exact else _called(tuple(names)):
        extra = said[len(own) :]
        if said[: len(own)] == own and extra:
            kind = _told(extra, words.split()[len(own) - 1].endswith(","), label, names)
        elif said[: len(own)] == [*own[:-1], f"{own[-1]}'s"] and 0 < len(extra) <= 2 and extra[-1] in _OWN_WORDS:
            kind = "says"
        elif said[-len(own) :] == own and said[-len(own) - 1 : -len(own)] and said[-len(own) - 1] in _OF:
            kind = "says" if not _OWN_WORDS.isdisjoint(said[: -len(own) - 1]) else ""
        else:
            kind = _spoken_as(said, own) or _attached(words, " ".join(own))
        if kind:
            return name, kind == "thinks"
    said = [word for word in said if word.strip(".") not in _TITLES]
    parts = [name for name in names if said and set(said) <= set(plain_words(name).split())]
    return (parts[0], False) if len(parts) == 1 and len(said[-1]) > 1 else ("", False)


@lru_cache(maxsize=256)
def _called(names: tuple[str, ...]) -> list[tuple[str, list[str]]]:
    """Return (name, words) for whole names, the longest first, and for their parts that no other name has."""
    whole_names = [(name, plain_words(name).split()) for name in sorted(names, key=len, reverse=True)]
    counts = Counter(part for _, own in whole_names for part in own)
    parts = [(name, [part]) for name, own in whole_names for part in own if len(own) > 1 and counts[part] == 1]
    untitled = [(name, [word for word in own if word.strip(".") not in _TITLES]) for name, own in whole_names]
    short = [(name, own) for name, own in untitled if 1 < len(own) < len(plain_words(name).split())]
    return [
        *whole_names,
        *short,
        *((name, own) for name, own in parts if len(own[0]) > 1 and own[0].strip(".") not in _TITLES),
    ]


def spellings(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return (name, words) for all that can stand for a name: the whole of it, and parts that no other name has."""
    return [(name, " ".join(own)) for name, own in _called(tuple(names))]


def _told(extra: Sequence[str], comma: bool, label: str, names: Sequence[str]) -> str:
    """Return what words after a name say of its owner: `says`, `thinks` what not all hear, or ''."""
    first, second, last = extra[0], extra[1] if len(extra) > 1 else "", extra[-1]
    if len(extra) > 6:
        return ""
    how = not second or second in _HOW or second.endswith(("ly", "ing"))
    if first == "to" and agent_of(" ".join(extra[1:]), names):
        return "thinks"
    if first in _THINKS or last in _THINKS or first in _SAYS and how and _NOT_FOR_ALL.search(label):
        return "thinks"
    if first in _SAYS and how or last in _SAYS or first in _WOULD and second in _SPEAK:
        return "says"
    if comma:
        return "says" if first.endswith("ing") and len(extra) <= 2 else ""
    surname = len(extra) == 1 and len(first) > 1 and label.split()[-1][:1].isupper()
    return "says" if surname else ""


def _spoken_as(said: Sequence[str], own: Sequence[str]) -> str:
    """Return `says` for "as May", "I would reply as May" or "speaking as May, I would say"."""
    size = len(own)
    for place in range(1, len(said) - size + 1):
        if said[place - 1] in _AS and list(said[place : place + size]) == list(own):
            before, after = said[: place - 1], said[place + size :]
            begins = not before or not _SPEAK.isdisjoint(before) or "character" in before
            return "says" if begins and (not after or after[0] in ("i", "i'd", "i'll") or after[0] in _WOULD) else ""
    return ""


def _attached(words: str, name: str) -> str:
    """Return what follows a name in scripts without spaces between words: `says`, `thinks`, or ''."""
    if not words.startswith(name) or name[-1] < "\u0e00":
        return ""
    rest = words[len(name) :]
    return "thinks" if _UNSPACED_THINKS.fullmatch(rest) else "says" if _UNSPACED_SAYS.fullmatch(rest) else ""
