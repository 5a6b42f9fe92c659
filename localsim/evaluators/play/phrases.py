"""English phrases of assistants and of polite emptiness, and marks of a form that spills into speech.

Each block has one regular expression a line, for text that `simple` returns.
"""

from __future__ import annotations

import re


def _any(block: str) -> re.Pattern[str]:
    return re.compile("|".join(line.strip() for line in block.strip().splitlines()))


ASSISTANT = _any(
    r"""
    \bhow (?:else )?(?:can|may|could) i (?:further )?(?:help|assist|be of (?:help|service|assistance)|support)\b
    \b(?:anything|something|what) (?:else |more )?(?:that )?(?:i can|can i|may i) (?:do to )?(?:help|assist)\b
    \bi(?:'m| am) (?:always |just |also )?(?:here|available) to (?:help|assist|support|answer)\b
    \b(?:i'm|i am|i'd be|i'll be|i would be) (?:more than )?(?:happy|glad|ready) to (?:assist|answer)\b
    \b(?:i'm|i am|i'd be|i'll be|i would be) (?:happy|glad|ready) to help(?: you)?(?: with (?:that|this))?(?=[.!,]|$)
    \bi can (?:help|assist) (?:you )?with (?:that|this)\b
    \b(?:feel free|(?:please )?(?:do not|don't) hesitate) to (?:ask|reach out|contact|let me know|share)\b
    \bas an? (?:ai|artificial intelligence|(?:large )?language model|assistant|chatbot)\b
    \bi(?:'m| am) (?:just |only )?an? (?:ai|artificial intelligence|(?:large )?language model|chatbot)\b
    \bi(?:'m| am) (?:just |only )?(?:an?|your) (?:ai |virtual )?assistant\b
    \bif you (?:have|need) (?:any )?(?:other |more |further |additional )?(?:questions|help|assistance|information)\b
    \bif you (?:have|need) any(?:thing)? (?:other |more |further |additional )?(?:questions?|help|else)\b
    \blet me know (?:if|how) (?:there(?:'s| is) (?:anything|something)|i can (?:help|assist|be of))\b
    \blet me know if you (?:need|have) (?:any|more|further)\w*
    \bi(?:'m| am) glad i could help\b|\b(?:could|can) you (?:please )?clarify\b
    \b(?:created|trained|developed|made) by (?:alibaba|openai|anthropic|google|meta)\b
    \bmy (?:training data|knowledge cut-?off|programming)\b
    \bwhat (?:else )?(?:would you like|do you want) (?:me )?to (?:know|do)(?: or do| next| today)?\?
    """
)
"""What an assistant offers."""
REFUSAL = _any(
    r"""
    \bsorry\b.{0,20}\bCANNOT (?:be able to )?(?:assist|comply|fulfill?|generate|engage|participate|simulate)\b
    \bsorry\b.{0,20}\bCANNOT (?:help|continue|provide) (?:\w+ )?with (?:that|this)\b
    \bsorry\b.{0,20}\bCANNOT (?:discuss|answer|respond to|process) (?:that|this)\b
    \bi(?:'m| am)? CANNOT (?:assist|comply|help) (?:\w+ )?with (?:that|this|your)\b
    \bi(?:'m| am)? CANNOT fulfill? (?:that|this|your)\b
    \bCANNOT (?:continue|join) (?:that|this|the) TALK\b.{0,40}\b(?:decepti\w+|harmful|unethical|inappropriate)\b
    \bCANNOT (?:continue|join) (?:that|this|the) TALK\b.{0,40}\b(?:involves|against my|guidelines)\b
    \bdon't (?:quite )?understand (?:your|the) (?:question|request|message|instructions?)\b
    \b(?:could|would) you (?:please )?(?:provide|give) (?:me )?(?:with )?(?:more|additional|further) (?:context|info)
    \bplease (?:provide|give) (?:me )?(?:with )?(?:more|additional|further) (?:context|info)
    \bi don't have enough (?:information|context)\b
    """.replace("CANNOT", "(?:can't|cannot|can not|won't|(?:not able|unable) to)").replace(
        "TALK", "(?:conversation|discussion|role-?play(?:ing)?|scenario|exchange|dialogue)"
    )
)
"""A refusal in the manner of an assistant; one who haggles says that he can't go lower."""
_POLITE = _any(
    r"""
    \b(?:hi|hello|hey|greetings|howdy)\b(?: there| again)?
    \bgood (?:morning|afternoon|evening|day)\b
    \bhow (?:are|have) you\b(?: doing| been)?(?: today| lately| too| then| these days)?
    \bhow(?:'s| is) (?:it going|everything|life|your day)\b(?: going)?
    \b(?:how|what) about (?:you|yours|yourself)\b|\band (?:you|yours|yourself)\b
    \bi(?:'m| am|'ve been) (?:doing |feeling |also |just |pretty |very )*(?:well|good|great|fine|ok|okay)\b
    \bdoing (?:well|good|great|fine)\b
    \b(?:nice|great|good|lovely|pleasure|wonderful|pleased|glad|happy|delighted)(?: to)? (?:meet|meeting|see|seeing)\b
    \b(?:nice|great|good|lovely|pleasure|wonderful|glad|happy|fun)(?: to)? (?:hear|hearing|talk|talking|chat|chatting)\b
    \b(?:nice|great|good|lovely|pleasure|wonderful|glad|happy)(?: to)? (?:speak|speaking|know|have met|have talked)\b
    \bthank(?:s| you)(?: so much| very much| a lot| again| too)?(?: for (?:your|the|\w+ing)\b(?: \w+)?)?
    \bmuch appreciated\b|\bi (?:really |truly |also )?appreciate (?:it|that|you|your (?:help|time|understanding))\b
    \byou(?:'re| are) (?:very |most |so |too )*(?:welcome|right|kind)\b
    \bno (?:problem|worries)\b|\b(?:a|my) pleasure\b|\bi(?:'m| am) glad (?:i|you) could (?:help|come)\b
    \b(?:that|it|this)(?:'s| is| was| sounds) (?:really |so |very |a |like |an )*(?:great|wonderful|good|amazing)\b
    \b(?:that|it|this)(?:'s| is| was| sounds) (?:really |so |very |a )*(?:interesting|fantastic|awesome|nice|lovely)\b
    \b(?:that|it|this)(?:'s| is| was| sounds) (?:really |so |very |a )*(?:perfect|fine|true|cool|fun)\b
    \bsounds (?:great|good|wonderful|perfect|lovely|like a plan)\b|\b(?:great|good) (?:idea|plan|point|news)\b
    \b(?:absolutely|definitely|of course|certainly|sure|indeed|exactly|great|wonderful|awesome|perfect)\b
    \b(?:yes|yeah|okay|ok|alright|oh|well|right|please|too|likewise|same here)\b
    \bi (?:completely |totally |fully |really |do )*(?:understand|agree|see|hope so|think so)\b(?: too| what you mean)?
    \b(?:i )?(?:hope|wish) you(?: \w+){0,3} (?:day|one|evening|night|weekend|well|too|soon|again)\b
    \blook(?:ing)? forward to (?:it|that|hearing|seeing|talking|meeting|our|the)\b(?: (?:from|to|with))?
    \b(?:good ?bye|bye(?:-?bye)?|farewell|take care|good ?night|until next time|all the best|best wishes|good luck)\b
    \bsee you(?: later| soon| around| then| tomorrow)?\b
    \bhave an? (?:\w+ ){0,2}(?:day|one|evening|night|weekend|time)\b
    \b(?:keep|stay) in touch\b
    """
)
_EMPTY = frozenset(
    """
    a all also am an and are as at back be been being both but can day did do does for from get glad go good had happy
    has have here hope how i i'd i'll i'm i've if in is it it's its just let let's like me more much my need new next no
    not now of on one our out really say so some soon such thank thanks that that's the there they this time to today
    too up very was we we're well were what when will with would you you'd you'll you're you've your yourself
    """.split()
)
"""Words that have no content beside polite phrases."""
ROLE_WORDS = r"assistant|user|human|ai|chatbot|narrator|(?:speaker|person|agent) ?\w?|you|me"
"""Words that begin a line in the chat of a model."""
_MARKUP = _any(
    r"""
    \*\*[^*]+\*\*
    ```
    ^\s*#{1,6}\s
    ^\s*[*•]\s
    ^\s*(?:\*[^*]+\*|\([^()]+\))
    \[[^\]]+\]\([^)]+\)
    \[(?:your|my|the|insert|name|item|price|buyer|seller)\b[^\]]*\]
    <\|[^|>]*\|>
    </?(?:s|think|answer|response|br|p|b)>
    """
)
"""Marks of Markdown and HTML, of the templates of chats, of stage directions, and of letters to be filled in."""
_QUOTES = {
    '"': '"',
    "“": "”",
    "«": "»",
    "„": "“”",
    "‚": "‘",
    "‘": "’",
    "'": "'",
    "「": "」",
    "『": "』",
    "”": "”",
    "»": "«",
}
"""An opening quotation mark -> those that close it."""


def simple(text: str) -> str:
    """Return a text in lower case with plain apostrophes, for these phrases."""
    return text.casefold().replace("’", "'").replace("ʼ", "'")


def is_polite(text: str, names: frozenset[str]) -> bool:
    """Return True if an English text holds nothing but polite phrases. `names`: the agents' names in lower case."""
    rest, found = _POLITE.subn(" ", simple(text))
    return bool(found) and all(word in _EMPTY or word in names for word in re.findall(r"[\w']+", rest))


def is_marked(text: str) -> bool:
    """Return True if a text is whole in quotation marks, closed or not, is nothing but dots, or holds markup."""
    text = text.strip()
    closing = _QUOTES.get(text[:1], "")
    inner = sum(text[1:-1].count(mark) for mark in closing)
    whole = bool(closing) and not inner and (text[-1] in closing or text[0] not in "'‘") and len(text) > 2
    return whole or bool(text) and not text.strip(".… ") or bool(_MARKUP.search(simple(text)))
