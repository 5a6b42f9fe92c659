"""Prices in everyday English, as people write them: "$95", "95 bucks", "1.2k", "eleven hundred", "one twenty".

A bare number counts as a price only if it can be one: not a size, an age, a time, a count or a year. The rules were
written by hand and measured on labelled conversations (scripts/measure_endings.py, tests/data/README.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from localsim.conversation.transcript import plain

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety fourty oh"
).split()
_TIMES = {"hundred": 100, "thousand": 1000, "grand": 1000}
_WORD = "|".join([*_SMALL, *_TIMES])
_PLAIN_WORDS = {"grand": "thousand", "fourty": "forty", "oh": "zero"}
_SLANG = re.compile(r"\b(?:grand|fourty|oh)\b")
_CURRENCY = r"(?:dollars?|bucks?|usd|quid|euros?|smackers)\b"

_NUMBER = re.compile(
    rf"""
    (?P<sign>(?:\b(?:us|usd|cad|aud)\ ?)?[$€£]\ ?|\busd\ )?
    (?:(?P<digits>\d{{1,3}}(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)?|(?<=\$)\.\d\d)
       (?P<times>\ ?k\b|\ (?:and\ a\ half\ )?(?:hundred|thousand|grand)\b(?:\ and\ fifty\b)?)?
     |(?P<words>\b(?:(?:a\ |half\ a\ |a\ couple\ (?:of\ )?)(?=hundred|thousand|grand))?(?:{_WORD})\b
        (?:[\s-]+(?:and\ (?=(?:{_WORD})\b)|and\ a\ half\ (?=hundred|thousand|grand))?(?:{_WORD})\b)*
        (?:(?<=grand)\ and\ a\ half\b)?))
    (?P<currency>\ ?[$€£]|\s?-?{_CURRENCY})?
    """,
    re.VERBOSE,
)
# Text after a number that measures, counts or dates something.
_UNIT_AFTER = re.compile(
    r"""^(?:\s?(?:%|"|″|''|°|[ap]\.?m\b|o'?\ ?clock|[x×]\ ?\d|th\b|st\b|nd\b|rd\b|s\b
    |'s\b(?!\ (?:an?|all|as|doable|fair|fine|good|great|it|my|not|ok|okay|perfect|still|the|too)\b)
    |er\b|ish\ ?(?:pm|am|tonight
    |tomorrow)|mm?\b|cm\b|km\b|ft\b|lbs?\b
    |kgs?\b|g\b|oz\b|[gmt]b\b|gigs?\b|hz\b|mph\b|mpg\b|hp\b|cc\b|mp\b
    |w\b(?!/|\ (?:the|an?|my|all|both|it|no|free|you|u)\b)
    |v\b|mah\b|l\b|hrs?\b|mins?\b|yrs?\b|yo\b
    |mos?\b)
    |\s?(?:square|sq\b|sqft|sf\b)
    |\s?gal(?:l?ons?)?\b
    |[\s-](?:percent|per\ cent|inch|foot|feet|mile|meter|metre|liter|litre|gallon|pound|ounce|gram|kilo|watt|volt
    |amp|speed|piece|person|year|month(?!ly)
    |week|day|hour|minute|min|second|star|degree|drawer|seat|man\ (?=tent|raft|boat|cabin|canoe)|gear|stage|point
    |door|owner|tier|ply|cycle|cylinder
    |string|key|bar|pack|set)
    |\s(?:in\ (?:wide|tall|long|deep|high)|(?:or\ |to\ |-\ ?)\w+\ (?:years?|months?|weeks?|days?|hours?|minutes?
    |miles?|times)\b|times\b|other\b|more\ (?:weeks?|days?|years?|hours?|people|photos?|questions?)
    |people|children|kids|guys|of\ (?:them|these|those|us|my|the)|blocks?\b|(?:january|february|march|april|may|june
    |july|august|september|october|november|december)\b
    |(?:main|maple|oak|elm|\w+)\ (?:street|st\b|avenue|ave\b|road|rd\b|lane|drive|court|blvd))
    |\s?[:/]\s?\d|-\d{3,}|-\d\b|\s?-\s?\d+\s?(?:am|pm|years?|days?|weeks?|months?|minutes?|min\b|miles?|inch)
    |[a-jl-z]\w*)""",
    re.VERBOSE,
)
_UNIT_BEFORE = re.compile(
    r"""(?:\d\ ?[x×]\ ?|\b(?:there|over|by|you|home)\ in\ (?:about\ )?|[#:/]\s?|\d-|\d\.|[a-z]-?
    |\b(?:size|photo|picture|pic|page|apt|apartment|unit|room|suite|model|mk|version
    |series|gen|route|bus|highway|exit
    |box|born\ in|chapter|step|plan|age|aged|january|february|march|april|june|july|august|september|october
    |november|december
    |building|gate|floor|number\ is|serial|call\ me\ (?:on|at)|text\ me\ at|type|grade|class|chevy|ford|iphone|pixel
    |galaxy|xbox|playstation|thinkpad)\s)$""",
    re.VERBOSE,
)
_TIME_BEFORE = re.compile(
    r"\b(?:by|after|before|until|till|til|since|from|between|(?:between|from) \w+ (?:and|to)|(?:come|comes|coming"
    r"|came|meet|there|you|here|over|up|by|"
    r"home|free|open|close|closes|tomorrow|tmrw|tonight|today|morning|evening|afternoon|\w+day|sat|sun|fri|available"
    r"|off|work|leave) "
    r"(?:at|around|about|by|@|like|for)(?: about| around)?|(?:come|tomorrow|tonight|\w+day)) $"
)
_YEAR_BEFORE = re.compile(
    r"\b(?:in|since|from|of|a|an|the|late|early|mid|year|circa|before|until|till|around|'s a|my|bought|made|back) $"
)
_CUE_BEFORE = re.compile(
    r"(?:\b(?:offer|offering|offered|pay|paying|take|taking|do|for|at|give|give you|price is|price of|asking|ask"
    r"|make it|make that|say|said|about|"
    r"how about|what about|around|go|went|want|need|least|most|max|maximum|minimum|than|under|below|over|past|to"
    r"|accept|spend|got|have|budget is|"
    r"budget of|limit is|is|it's|call it|settle on|then|ok|okay|k|fine|deal|sold|like|call it|only|just|even|bring"
    r"|hit|split|try)|^|[.!?,;:…—-]) ?$"
)
_CUE_AFTER = re.compile(
    r"^(?:\s*$|\s?[.!?,;…—-]|\s(?:even|flat|firm|cash|tops?|max|final|obo|it is|works?|and (?:it|she|he|they|you|i"
    r"|we)\b|or (?:best|nothing|i)|if|then|"
    r"for|with|each|apiece|total|all|is|would|n|plus|today|tonight|now|sounds?|and not))"
)
_CHANGE_BEFORE = re.compile(r"\b(?:knock(?: off)?|shave(?: off)?|another|an extra|extra|add|drop(?: it)?) $")
_CHANGE_AFTER = re.compile(r"^ (?:off|less|more|extra|on top|apart|cheaper)\b(?! (?:than|of))")
# Verbs and adverbs ending in s that may follow a price; any other plural noun after a bare number makes it a count.
_NOT_PLURALS = frozenset(
    """
    is was as works takes gets sounds seems plus tops does has yes thanks thx makes feels pls unless less lets
    let's this us covers means leaves always perhaps its it's that's what's there's he's she's buys helps fits
    includes comes gives saves suits obviously sits stands seals happens
    """.split()
)
_LIMIT = (
    r"(?:below|under|lower|less|beneath|down|past|over|above|beyond|higher|more|exceed|further|better|sell|part|let"
    r"|until|unless|without|"
    r"get out of bed|take less|lower than|any less|budge)"
)
_NEGATED_BEFORE = re.compile(
    r"(?:\bnot|n't|\bno(?! \w+ i(?:'?ll| will| can| could| would|'d)\b)|\bnever|\bneither|\bnor|\bcannot"
    r"|\bcant|\bwont|\bdont|\binstead of|\brather than)"
    rf"(?:(?:\s(?!(?:but|how|what)\b|{_LIMIT}\b)[\w']+){{0,5}})\s\$?$|\binstead of \$?$"
)
_LIMIT_BEFORE = re.compile(
    rf"(?:\b{_LIMIT}(?: [\w']+){{0,3}}|\b(?:why|reason|if|would) (?:\w+ ){{0,2}}not|why don't|couldn't you|can't you"
    rf"|won't you|wouldn't you)(?: [\w']+){{0,4}} $"
)
_NEGATED_AFTER = re.compile(
    r"^\s*(?:for (?:it|this|that|them)\s*)?(?:(?:is|'s|was|would be|seems|feels|sounds|just|really|simply|there|still"
    r"|honestly|way|far) ?){0,3}"
    r"(?:n't\b|isn't|not\b|won't|wont|doesn't|wouldn't|can't|ain't|too (?:low|high|much|little|steep|rich|far"
    r"|expensive|cheap)|"
    r"(?:a |quite |pretty |very |way |rather |kind of |still ){0,2}(?:bit |little |tad |touch )?(?:low|high|steep"
    r"|much|pricey|lowball)\b|"
    r"(?:way |well |far |quite a bit |a bit |a little )?(?:below|over|above|beyond|under) (?:my|what|the|its|our"
    r"|value|market)|"
    r"out of|impossible|insult|an insult|never\b|no way|off the table|robbery|ridiculous|a joke|a stretch)"
)


@dataclass(frozen=True)
class Price:
    """An amount of money in a text: `value` in dollars, at characters `start` to `end`.

    `explicit`: it has a currency sign or word. `negated`: the words around it refuse it ("not 100", "95 is too much").
    """

    value: float
    start: int
    end: int
    explicit: bool
    negated: bool = False


def find_prices(text: str, *, list_price: float | None = None) -> list[Price]:
    """Return the prices in `text`, in order, in dollars. Bare numbers count if they are plausible for `list_price`."""
    return list(_candidates(text, list_price))


def _candidates(text: str, list_price: float | None) -> Iterator[Price]:
    lower = plain(text)
    for match in _NUMBER.finditer(lower):
        explicit = bool(match["sign"] or match["currency"])
        # A match right after a digit is the tail of another number.
        if match.start() and lower[match.start() - 1 : match.start()].isdigit():
            continue
        values = _values(match)
        before, after = lower[max(0, match.start() - 40) : match.start()], lower[match.end() : match.end() + 40]
        if explicit:
            if re.match(r"\s?(?:off|discount)\b", after) or not values:
                continue
            value: float | None = _closest(values, list_price)
        else:
            value = _bare(match, values, before, after, text, list_price)
        if value is not None:
            yield Price(value, match.start(), match.end(), explicit, _is_negated(before, after))


def _values(match: re.Match[str]) -> Sequence[float]:
    """Return the possible values of a number, likeliest first ("two fifty" is 250 or 2.50)."""
    if match["words"]:
        return words_to_numbers(match["words"])
    value = float(match["digits"].replace(",", ""))
    times = (match["times"] or "").strip()
    if times.startswith("and a half "):
        value, times = value + 0.5, times.removeprefix("and a half ")
    if times.endswith("and fifty"):
        return [value * _TIMES[times.split()[0]] + 50]
    return [value * (1000 if times == "k" else _TIMES.get(times, 1))]


@lru_cache(maxsize=4096)
def words_to_numbers(words: str) -> tuple[float, ...]:
    """Return the possible values of number words, likeliest first: 250 and 2.5 for "two fifty", none for other words.

    text2num reads the numbers; this function adds the second value of "two fifty", and slang such as "half a grand".
    """
    from text_to_num import alpha2digit, text2num

    text = _SLANG.sub(lambda match: _PLAIN_WORDS[match[0]], re.sub(r"[\s-]+", " ", words))
    start = re.match(r"(half a |a couple (?:of )?|a )?", text)
    assert start is not None
    text = ("two " if "couple" in start[0] else "") + text[start.end() :]
    if half := re.search(r" and a half (hundred|thousand)$|(?<=thousand) and a half$", text):
        unit = half[1] or "thousand"
        whole = words_to_numbers(text[: half.start()] + (f" {unit}" if half[1] else ""))
        return tuple(value + _TIMES[unit] / 2 for value in whole)
    with suppress(ValueError):  # not one number
        return (text2num(text, "en") * (0.5 if start[0] == "half a " else 1.0),)
    parts = alpha2digit(text, "en").split()
    scaled = any(word in text.split() for word in _TIMES)
    if scaled or len(parts) != 2 or not all(part.isdecimal() for part in parts):
        return ()
    if len(parts[1]) != 2 or not int(parts[0]):
        return ()
    return (int(parts[0]) * 100.0 + int(parts[1]), int(parts[0]) + int(parts[1]) / 100)


def _closest(values: Sequence[float], list_price: float | None) -> float:
    if list_price is None or len(values) == 1:
        return values[0]
    return min(values, key=lambda value: max(value, list_price) / max(0.01, min(value, list_price)))


def _bare(
    match: re.Match[str], values: Sequence[float], before: str, after: str, text: str, list_price: float | None
) -> float | None:
    """Return the value of a number without a currency sign, or None if it is no price."""
    if not values or _measures(match, before, after, text):
        return None
    value = _closest(values, list_price)
    cue = bool(_CUE_BEFORE.search(before)) and bool(_CUE_AFTER.match(after))
    if list_price is None:
        return value if value >= 20 or (cue and value >= 3 and not match["words"]) else None
    if value <= 12 and _TIME_BEFORE.search(before):
        return None
    if (
        value <= 12
        and re.search(r"\b(?:at|around|about) $", before)
        and value < 0.35 * list_price
        and match["times"] is None
    ):
        value = 1000 * value if _in_thousands(value, list_price, True) else 0
    elif value < 0.1 * list_price and _in_thousands(value, list_price, cue or "." in (match["digits"] or "")):
        value = 1000 * value
    if match["words"] == "one" and value < 1000:
        return None
    change = _CHANGE_BEFORE.search(before) or _CHANGE_AFTER.match(after)
    low, high = (0.02, 1.0) if change else (0.08, 4.0) if cue else (0.15, 2.5)
    return value if low * list_price <= value <= high * list_price else None


def _in_thousands(value: float, list_price: float, cue: bool) -> bool:
    """Return True if "4" or "3.8" is short for thousands, as in "4 even" for a car listed at 4,200."""
    return cue and list_price >= 1000 and value < 100 and 0.4 * list_price <= 1000 * value <= 1.5 * list_price


def _measures(match: re.Match[str], before: str, after: str, text: str) -> bool:
    """Return True if the number counts, dates, measures or names something other than money."""
    if _UNIT_AFTER.match(after) or _UNIT_BEFORE.search(before):
        return True
    digits = match["digits"] or ""
    if re.fullmatch(r"(?:19|20)\d\d", digits) and (
        _YEAR_BEFORE.search(before)
        or re.match(
            r" (?:model|edition|version|motor|engine|trans\w*|build|honda|toyota|ford|chevy|nissan|bmw|jeep|subaru)\b",
            after,
        )
    ):
        return True
    if (
        re.search(r"\b(?:a|an|every) $", before)
        and not match["times"]
        and not (match["words"] or "").startswith("hundred")
    ):
        return True
    noun = re.match(r"\s([a-z']+)", after)
    if noun and noun[1].endswith("s") and not noun[1].endswith("ss") and noun[1] not in _NOT_PLURALS:
        return True
    # "iPhone 13", "the Bernina 830": a number after a capitalised word inside a sentence names a model.
    name = re.search(r"(\S) ([A-Z][a-z]+|[a-z]+[A-Z]\w*) $", text[: match.start()])
    if not name or not digits:
        return False
    return name[1] not in ".!?,;:—-" and name[2] not in ("I", "OK", "Ok") and not name[2].endswith("day")


def _is_negated(before: str, after: str) -> bool:
    clause = re.split(r"[.!?;,:]\s|\bbut ", before)[-1]
    if _NEGATED_AFTER.match(after):
        return True
    if re.fullmatch(r"\s*(?:no|nope|nah) \$?", clause):
        return False
    return bool(_NEGATED_BEFORE.search(clause)) and not _LIMIT_BEFORE.search(clause)
