"""Shorthand and frequent misspellings of people who write short messages, spelled out for the phrases."""

from __future__ import annotations

import re
from functools import lru_cache

from localsim.conversation.transcript import plain

_WORDS = """
you=u ya'll | your=ur yr | yours=urs | are=r | i'm=im | i've=ive | i'd=id | i'll=ill | you're=youre | who's=whos
can't=cant | won't=wont | don't=dont | doesn't=doesnt | didn't=didnt | isn't=isnt | wouldn't=wouldnt | couldn't=couldnt
haven't=havent | ain't=aint | that's=thats tahts | that'll=thatll thatl | what's=whats wats | let's=lets
and=n nd an' | with=w wit | the=teh | that=taht | then=thn | when=wen | what=wat wut wht | because=cuz cos bc
would=wud wuld woud wld | could=cud culd cld | should=shud shuld | will=wil | take=tak taek | let me=lemme
give me=gimme | please=pls plz plese pleas plss | thanks=thx thnx thanx thnks thks tanks | sorry=sory sry srry soory
tomorrow=tmrw tmr tomorow tommorow 2morrow | tonight=tonite 2nite | today=2day | right now=rn | before=b4
great=gr8 grat grate gret graet | okay=okey oky okk okei | alright=alrite allright aight ight | deal=deel dael
agreed=agred agreeed | accept=acept accpet exept | sounds=soudns souds sonds soundz | awesome=awsome awesom
perfect=perfct perfict prefect perfet | offer=ofer offr | reasonable=resonable reasonible | final=finel
lowest=lowst | bottom=bottum | interested=intrested | deliver=delivr | a bit=abit | a lot=alot | at least=atleast
yes=ye yh yeh yuh jup jep | of course=ofc | definitely=def defo | know=kno | as well=aswell
he's=hes | she's=shes | never mind=nvm nevermind | no problem=np noprob | on my way=omw | let me know=lmk
i don't know=idk | i know=ik | me too=me2 | for sure=fs
"""
_SPELLED = {
    short: full
    for entry in re.split(r"[|\n]", _WORDS.strip())
    for full, _, shorts in [entry.strip().partition("=")]
    for short in shorts.split()
}
_SHORT = re.compile(
    r"(?<![\w'])(?:" + "|".join(map(re.escape, _SPELLED)) + r")(?![\w'])|(?<=\bi )shall\b|(?<=\bwe )shall\b"
    r"|(?:(?<=\bme )|(?<=\bmine )|(?<=\bhim )|(?<=\bher )|(?<=\bis )|(?<=\bdo ))2(?=\W*$|[.!?,;])"
    r"|\b4(?= sure\b)|\by(?:ee+s*|e?a?ss+|eaa+h*|eahh+|uu+p)\b"
)
_MEANT = {"shall": "will", "2": "too", "4": "for"}
"""What else is spelled out; all other matches are a long yes."""


def spelled_out(text: str) -> str:
    """Return lower-case text with shorthand spelled out: "id do that n pick up tmrw"."""
    return _SHORT.sub(lambda match: _SPELLED.get(match[0]) or _MEANT.get(match[0], "yes"), text)


@lru_cache(maxsize=8192)  # searches read every turn again for each name
def plainly(text: str) -> str:
    """Return a text in lower case, with straight quotes and shorthand spelled out."""
    return spelled_out(plain(text))
