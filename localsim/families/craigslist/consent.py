"""Consent in answer to an offer, built from parts: who consents, how surely, and to what.

People who haggle in short messages rarely say "I accept". They judge ("that's fair"), grant ("you can have it for
that"), arrange ("when can I pick it up?"), enter the price, or say thanks. Each is consent only while an offer of the
other side is open; endings.py decides whether one is. Sentences are as `prices.plain` returns them, prices are "<#>".
"""

from __future__ import annotations

import re


def _folded(alternatives: str) -> re.Pattern[str]:
    """Compile a pattern that is written over several lines; indentation does not count."""
    return re.compile("".join(line.strip() for line in alternatives.splitlines()))


_GOOD = (
    r"(?:good?|gud|great|fine|fair|perfect|ok(?:ay|ey)?|al+ ?right|reasonable|acceptable|agreeable|doable|manageable"
    r"|cool|awesome|excellent|wonderful|generous|ideal|terrific|fantastic|amazing|nice)"
)
_VERY = r"(?:(?:a|an|very|so|pretty|really|quite|perfectly|totally|completely|more than|just|like|all|definitely) )*"
_THING = r"(?:price|deal|offer|compromise|number|plan|amount|middle|bargain)"
_IS = r"(?:'?s|'?ll be|'?d be| is| are| was| will be| would be| should be| could be| can be| sounds?| seems?| looks?)"
_END = (
    r"(?= *$| *[,;:)(]| (?:with|by|for|to) (?:me|us|you|it)\b| enough| (?:thanks?|thank you|and|since|as|if|then|so"
    r"|considering|because|cause|when|i|we|let|lets|let's|man|bro|sir|too|deal)\b)"
)
_I = r"\b(?:i|we)(?:'?d|'?ll|'?m)?"
_SURELY = (
    r"(?: (?:think|guess|suppose|believe|say|am|i|we|i'd|i'll|would|could|can|will|be|willing|happy|glad|ok|okay|fine"
    r"|good|able|to|just|also|gladly|probably|definitely|still|then|go ahead and))*"
)
_IT = r"(?:it|that|this|them|those|your (?:offer|price|terms)|the (?:offer|deal|price))"
_LEAD = (
    r"^(?:(?:oh|well|hm+|mm+|ugh+|ha+|haha|lol|ah|geez|jeez|man|welp|and|aw+|wow|whew|omg|yes|yeah|yea|yep|ok|okay"
    r"|alright|great|then|so"
    r"|you know what|heck|hell|i guess|i think|i suppose|sorry but|nice)\b[,!.]* )*"
)

_ASSENT = _folded(
    rf"""
    \b(?:that|this|which|<#>|(?:that|this|your) {_THING})(?:{_IS}| works?) {_VERY}{_GOOD}(?: {_THING})?{_END}
    |\b(?:that|this|which|<#>)(?:'?ll|'?d| will| would| can| could| should)? (?:also |just |all )?(?:work|do)s?
        (?: (?:it|great|fine|well|good|out|perfectly|for (?:me|us)))?{_END}
    |{_LEAD}(?:would be|should be|will be|sounds?|seems?|looks?|works?) {_VERY}(?:{_GOOD}|deal)\b
    |{_LEAD}(?:should|would|will) work\b
    |{_LEAD}(?:very |pretty )?(?:fair|reasonable|acceptable|doable|agreed?|settled|can do|will do|good deal
        |great deal|fair deal|cool deal|great price|good price|what a deal|good enough)
        (?: (?:for|with|by) me)?(?: then)? *(?=$|,)
    |{_LEAD}(?:(?:i'?m|we'?re|i am|we are) )?(?:down|in|game|good|set|all set|cool|okay|ok|fine|happy|sold)
        (?: (?:with|for|at|to do) {_IT})?(?: then)?$
    |\b(?:i'?m|we'?re|im|am|are|be) (?:\w+ )?(?:down|in|game|good|cool|okay|ok|fine|happy|alright
    |comfortable) (?:with|for|at|to do)
        [ ](?:{_IT}|<#>)
    |{_I}{_SURELY} (?:do|take|accept|pay|afford|manage|swing|handle|agree (?:to|with|on)|work with|live with|go with
        |go for|settle (?:for|at|with)|buy|meet|honor|spend) {_IT}\b(?! (?:to|up|back|down|on
        |at (?:\w+ )?(?:store|shop)
        |elsewhere|somewhere|out))
    |{_I}{_SURELY} (?:let (?:it|you|them|her|him)|sell|give|part with)\b[\w\s']*\b(?:for (?:that|this)
    |at that(?: price)?)
    |{_I}{_SURELY} (?:let you have it|give it to you|sell it to you)\b
    |{_I}{_SURELY} (?:make (?:that|it|this) work|do business)\b
    |\b(?:i|we)(?:'?d| would) (?:like|love|appreciate) that\b|\bi like (?:that|this|your)(?: {_THING})?$
    |\b(?:i|we|they)(?: both| all|'?d|'?ll| would| can| will)? agree\b(?! (?:to disagree|it|that|you|but|with you))
    |\b(?:it|that|its|it's|all|is|are|she|he|they're)(?:'?s| is)? (?:all )?yours\b
    |\byou (?:can|may|could) (?:have|get|take) (?:it|them|this|that|both)\b
    |{_LEAD}(?:take it(?: away)?|go (?:for it|ahead)|let'?s (?:do (?:it|this|that)|go with|close|shake|call it))\b
    |\b(?:close (?:the|this|a)|call it a|have a|got a|make it a) deal\b
    |\b(?:it|that)(?:'?s| is) (?:settled|agreed|done)\b
    |\bi think so$|\byou(?:'ve| have)? (?:win|twisted my arm|convinced me)\b|\bhard bargain\b.*\b(?:ok|okay|but
    |deal|fine)\b
    |{_LEAD}(?:ok+|okay+|okey(?: dokey)?|okie|ye+s+|ye+a+h?|su+re+|alrighty?|alr|fine|deal|yup+|yep+|mhm+
    |absolutely|no prob(?:lem)?|not a problem|np|right on|roger|10-4)\b
        (?! (?:but|though|i (?:see|understand)))
    |\b(?:it|that)'?ll do$|(?:<#>|\bthat|\bit)(?:'ll| will) have to do$|\bbetter than nothing$
    |{_I}{_SURELY} (?:get|come up with|find) that(?: much)?\b(?! (?:for|at|elsewhere))
    |{_LEAD}(?:for (?:me|us) )?(?:it )?is {_VERY}(?:possible|{_GOOD})(?: (?:for|with) (?:me|us))?(?: too| also)?$
    |\bi want it$|\bi have that$|{_LEAD}we(?:'re| are)? good(?: to go)?(?: then)?$
    |\b(?:i|we) (?:am |are )?agree with (?:your|the|this|that|it|<#>)
    """
)
_ARRANGES = _folded(
    r"""
    \b(?:when|where|what (?:time|day)|how soon)\b.*\b(?:pick|get|come(?! (?:down|up|off))|meet|available|free
    |works?|good|located|grab|drop|deliver
        |move in|want it|bring)\b
    |\b(?:can|could|should|shall|may) (?:i|we|you) (?:\w+ )?(?:pick|get it|come(?! (?:down|up|off|closer))
    |meet(?! me)|grab|swing|stop by|drop it|bring)
        (?!.*\b(?:look|see|view|try|test|check)\b)
    |\b(?:i|we|you)(?:'?ll|'?m|'?re| can| could| will| am| would)? (?:\w+ )?(?:be there|be (?:right )?over
    |be by|pick (?:it|them)
        |picking|come (?:by|over|get|pick|now|to (?:get|pick))|coming (?:now|over|by|today|tonight|tomorrow|to (?:get
    |pick))|stop by
        |swing by|meet you|bring (?:cash|the (?:cash|money))|text you|sign|move in|hold it|have it ready
        |get it ready|send you)
    |^(?:\w+,? )?come (?:and |on )?(?:get|pick|over|by|grab)\b|^(?:\w+,? )?bring (?:it|them|her|him)\b
    |\bi(?:'m| am) coming$|\bi come (?:now|today|tonight|tomorrow|at|on|after)\b|\bbe (?:up|out|right|down) there\b
    |^picking (?:it )?up\b|^coming (?:now|today|tonight|tomorrow)\b
    |(?<!to )(?<!\bi )(?<!can )\bsee (?:you|ya|u)\b|\bon my way\b|\bomw\b
    |\b(?:your|my|the) address\b|\blet me know (?:when|what time|where)\b
    |\bcash or (?:check|card|\w+)\b|\bdo you (?:take|accept|have) (?:paypal|venmo|cash|zelle|checks?|cards?)\b
    |^cash only\b
    |\b(?:send|sending|sent|submit|submitting|enter|entering|put|putting|place)\b(?: (?:in|me|over|you))?
        [ ](?:(?:the|my|your|this|that) )?(?:final |official )?(?:offer|price|amount|number|deal)\b
        |\bmake (?:the|your) offer\b
    |\b(?:submit|submitting|enter|entering) (?:it|that|this|now)\b|\bput (?:it|that) in\b(?! (?:the|a|my))
    |\boffer (?:sent|submitted|made)\b
    |\b(?:pleasure|nice|great|good|happy) (?:to do|doing) business\b
    """
)
_NO_ENTRY = re.compile(
    r"\b(?:make|send|give|submit)\b(?: \w+)? an? (?:\w+ )?offer\b|\bput (?:it|that|this) (?:together|on|up)\b"
)
_PLEASED = re.compile(
    r"(?:^|[,!.] ?|\b(?:wow|oh|great|awesome|perfect|ok|okay|cool|much) )(?:thank you|thanks|thx|ty|thank u"
    r"|appreciated)\b"
    r"(?! (?:for (?:your|the|considering|getting|the reply)|anyway|though|but|either|any ?way))"
    r"|\b(?:thanks|thank you)(?: (?:buddy|man|bro|sir|so much|a lot|again|much))?$"
    r"|\bi (?:really |do |so )?appreciate (?:it|that|this|you)\b"
    r"|^(?:wow|omg|yay|woo\w*|sweet|nice)\b(?!.*\b(?:no|too|high|low|lot)\b)"
    r"|\byou(?:'re| are|r) (?:the best|awesome|amazing|great|so kind|a lifesaver|an angel|very kind|a saint)\b"
    r"|\b(?:so|very) (?:kind|generous) of you\b"
)
_DENIED = re.compile(
    r"\b(?:no|not|never|can'?t|cannot|won'?t|don'?t|doesn'?t|didn'?t|isn'?t|wouldn'?t|couldn'?t|aren'?t|haven'?t"
    r"|unable|hardly|without"
    r"|until|unless|before|wish|rather|if|would you|could you|can you|will you|do you|are you|lowest|least|most|best"
    r"|what|how|who"
    r"|maybe|perhaps|might|possibly|almost|nearly|that'd be less|only way)\b"
    r"(?! (?:problem|worries|prob|think (?:i|we) can'?t))"
)
_FOR_BUYERS = re.compile(rf"\b(?:it|its|it's|the {_THING}|{_THING})(?:{_IS})? {_VERY}{_GOOD}(?: {_THING})?{_END}")


def assents(sentence: str, *, question: bool) -> bool:
    """Return True if the sentence consents to an offer made just before: "that's fair", "I could do that", "okk"."""
    for match in _ASSENT.finditer(sentence):
        before = re.split(r"[,;:] |\b(?:but|and|then|so) ", sentence[: match.start()])[-1]
        if not _DENIED.search(before) and not (question and "," not in sentence[match.end() :]):
            return not re.search(
                r"\bbut\b.*\b(?:low|high|much|more|less|lot|can'?t|not|steep)\b", sentence[match.end() :]
            )
    return False


def praises(sentence: str, *, question: bool) -> bool:
    """Return True if the sentence finds the price good: consent of a buyer, but a seller's own praise."""
    match = _FOR_BUYERS.search(sentence)
    return bool(match) and not question and not _DENIED.search(sentence)


def arranges(sentence: str) -> bool:
    """Return True if the sentence arranges the handover, or the entry of the price: "when can I pick it up?"."""
    return bool(_ARRANGES.search(sentence)) and not _NO_ENTRY.search(sentence)


def is_pleased(sentence: str, *, question: bool) -> bool:
    """Return True if the sentence thanks or rejoices, as after an offer that is taken."""
    return bool(_PLEASED.search(sentence)) and not question
