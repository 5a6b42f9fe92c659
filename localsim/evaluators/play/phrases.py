"""English phrases of assistants, of polite emptiness, and of a form that spills into speech."""

from __future__ import annotations

import re

ASSISTANT = re.compile(
    r"\bhow (?:can|may|could) i (?:help|assist|be of (?:help|service|assistance)|support)(?: you)?\b"
    r"|\b(?:what|anything|something|is there anything) (?:else |more )?(?:can |may )?i (?:can )?(?:help|assist|do to help)"
    r"(?: you)?(?: with)?\b"
    r"|\bi(?:'m| am) (?:always |just )?(?:here|happy|glad|available|ready) to (?:help|assist|support|answer)\b"
    r"|\b(?:feel free|(?:please )?(?:do not|don't) hesitate) to (?:ask|reach out|contact|let me know|share|call)\b"
    r"|\bas an? (?:ai|artificial intelligence|(?:large )?language model|assistant|chatbot)\b"
    r"|\bi(?:'m| am) (?:just |only )?an? (?:ai|artificial intelligence|(?:large )?language model|(?:ai |virtual )"
    r"?assistant|chatbot)\b"
    r"|\bif you (?:have|need) (?:any )?(?:other |more |further |additional )?(?:questions?|help|assistance|information)\b"
    r"|\blet me know (?:if|how) (?:there(?:'s| is) (?:anything|something) (?:else |more )?|i can (?:help|assist|be of))"
    r"|\blet me know if you (?:need|have) (?:any|anything|more|further)\b"
    r"|\b(?:created|trained|developed|made) by (?:alibaba|openai|anthropic|google|meta)\b"
    r"|\bmy (?:training|knowledge cutoff|programming)\b"
)
"""What an assistant offers, for text in lower case with plain apostrophes."""
REFUSAL = re.compile(
    r"\b(?:sorry|apologi[sz]e)\b.{0,20}?\b(?:can(?:'t|not| not)|(?:am|'m) (?:not able|unable) to|won't|could(?:n't| not))"
    r" (?:be able to )?(?:assist|fulfil\w*|comply|generate|complete|engage|participate|continue with (?:this|that)"
    r"|provide|answer (?:that|this)|respond|process|help (?:you )?with (?:that|this)|discuss|support|simulate|role-?play)\b"
    r"|\bi (?:can(?:'t|not| not)|(?:am|'m) (?:not able|unable) to|won't) (?:be able to )?(?:assist (?:you )?with"
    r"|fulfil\w*|comply with|engage in|participate in|help (?:you )?with (?:that|this) request)\b"
    r"|\bi (?:don't|do not|didn't|did not) (?:quite )?understand (?:your|the) (?:question|request|message|instructions?)\b"
    r"|\b(?:could|can) you (?:please )?(?:provide|give) (?:me )?(?:with )?(?:more|additional|further) "
    r"(?:context|information|details)\b"
)
"""A refusal in the manner of an assistant, for text in lower case with plain apostrophes."""
_POLITE = re.compile(
    r"\b(?:hi|hello|hey|greetings|howdy)(?: there| again)?\b|\bgood (?:morning|afternoon|evening|day)\b"
    r"|\bhow (?:are|have) you (?:doing |been )?(?:today|lately|too|then|these days)?|\bhow(?:'s| is) (?:it going|everything"
    r"|your day(?: going)?|life)\b|\bhow about you(?:rself)?\b|\bwhat about you(?:rself)?\b|\band you(?:rself)?\b"
    r"|\bi(?:'m| am) (?:doing |feeling |also |just )*(?:well|good|great|fine|ok|okay)\b|\bdoing (?:well|good|great|fine)\b"
    r"|\b(?:it(?:'s| is| was) )?(?:so |very |really |a |always |also )*(?:nice|great|good|lovely|pleasure|wonderful|pleased"
    r"|glad|happy|pleasant|fun|delighted)(?: to)? (?:meet|meeting|see|seeing|hear|hearing|talk|talking|chat|chatting|"
    r"speak|speaking|know|have met|have talked)(?: that| from| with| to)?(?: you)?(?: too| as well| again| today)*\b"
    r"|\bthank(?:s| you)(?: so much| very much| a lot| again| too| for \w+(?: \w+)?)?\b|\bmuch appreciated\b"
    r"|\bi (?:really |truly |also )?appreciate (?:it|that|your \w+|you)\b"
    r"|\byou(?:'re| are) (?:very |most |so )?(?:welcome|right|kind|too kind)\b|\bno problem\b|\bmy pleasure\b|\bno worries\b"
    r"|\b(?:that|it|this)(?:'s| is| was| sounds| would be)? (?:really |so |very |just |a |an |like |absolutely )*(?:great"
    r"|wonderful|good|amazing|interesting|fantastic|awesome|nice|lovely|perfect|fine|true|cool)(?: idea| plan| point| news)?\b"
    r"|\bsounds (?:great|good|wonderful|perfect|lovely|like a plan)\b|\b(?:absolutely|definitely|of course|certainly|sure"
    r"|indeed|exactly|great|wonderful|awesome|perfect|okay|ok|yes|yeah|oh|well|alright|right|please)\b"
    r"|\bi (?:completely |totally |fully |really |do )*(?:understand|agree|see|know|hope so|think so)(?: too| what you mean)?\b"
    r"|\b(?:i )?(?:hope|wish) (?:you|to)(?: \w+){0,3} (?:day|one|evening|night|weekend|well|too|soon|again)\b"
    r"|\b(?:i(?:'m| am) )?(?:looking|look) forward to (?:it|that|hearing|seeing|talking|meeting|our|the)"
    r"(?: (?:from|to|with))?(?: you)?(?: \w+)?\b"
    r"|\b(?:good ?bye|bye(?:-?bye)?|farewell|take care|see you(?: \w+)?|have an? (?:\w+ ){0,2}(?:day|one|evening|night"
    r"|weekend|time|week)|good ?night|until next time|all the best|best wishes|good luck|cheers)\b"
    r"|\blet's (?:keep in touch|stay in touch|chat|talk)\b|\b(?:keep|stay) in touch\b"
)
_EMPTY = frozenset(
    "a all also am an and are as at back be been being both but can day did do does for from get glad go good had happy has"
    " have here hope how i i'd i'll i'm i've if in is it it's its just let let's like me more much my need new next no not"
    " now of on one other our out really say so some soon such thank thanks that that's the there they this time to today"
    " too up very was we we're well were what when will with would yes you you'd you'll you're you've your yourself".split()
)
ROLE_WORDS = "assistant|user|system|human|ai|bot|chatbot|model|narrator|speaker ?\\w?|person ?\\w?|agent ?\\w?|you|me"
"""Words that begin a line of a chat of a model, for a regular expression."""
MARKDOWN = re.compile(
    r"\*\*[^*]+\*\*|```|^\s*#{1,6} |^\s*[-*•] |(?<!\w)__\w[^_]*__|\[[^\]]+\]\([^)]+\)|^\s*---"
    r"|<\|[^|>]*\|>|</?s>|</?(?:think|answer|response|br|p|b)>"
)
"""Marks of Markdown, HTML and the templates of chats."""
QUOTES = ('""', "''", "“”", "‘’", "«»", "„“", "„”", "‚‘", "「」", "『』", "””", "»«")
"""Pairs of quotation marks."""


def simple(text: str) -> str:
    """Return a text in lower case with plain apostrophes, for these phrases."""
    return text.casefold().replace("’", "'").replace("ʼ", "'")


def is_polite(text: str, names: frozenset[str]) -> bool:
    """Return True if an English text holds nothing but polite phrases. `names`: the agents' names in lower case."""
    rest, found = _POLITE.subn(" ", simple(text))
    if not found:
        return False
    left = [word for word in re.findall(r"[\w']+", rest) if word not in _EMPTY and word not in names]
    return not left
