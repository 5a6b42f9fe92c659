"""The phrases of a bargain around its prices, as regular expressions by name.

They were written by hand and measured on labelled conversations (scripts/measure_endings.py).
"""

from __future__ import annotations

import re

from localsim.conversation.rules.farewells import FAREWELL, SEE_YOU

# Each entry is a name with its meaning, then one regular expression in lower case, folded over lines; "<#>" is a price.
_PHRASES = r"""
== idioms: Uses of "deal", "sold", "fine", ... that agree to nothing; they are blanked before consent is looked for.
    \b(?:good|great|better|best|fair|real|sweet|raw|bad|amazing|killer|decent|terrible|whole|package|big|steal of a
    |some|any|the|what a|kind of|sort of|each|every|another|better) deals?\b(?! (?:then|it is))|\bdeal(?:s|t|er|ers
    |ing)?[ -](?:break(?:er|ing)s?|of|with|in)\b|\bdeals\b|\b(?:mak(?:e|ing)|cut|strike|reach|clos(?:e|ing)|want|get
    |have to have|need
    |offer|hoping for|looking for) (?:you |me |us )?(?:a|the|any|an?other|this|our|that) deal\b|\b(?:in|is in|it's in
    |still in) (?:\w+ )?(?:good|great|fine|perfect|excellent|okay|ok|mint) (?:\w+ )?(?:condition|shape|nick|order)\b
    |\b(?:it|that|everything|all|motor|engine|they|she|he|thing|which|one)(?: all| still)* (?:runs|works|worked
    |working|rides|plays|drives|holds up) (?:\w+ )?(?:great|fine|perfectly|well|good|perfect|like)\b|\bfine print\b
    |\bsold (?:out|separately|new|as is)\b|\bcan't be done\b|\btake it or leave it\b|\baccept(?:ing)? (?:venmo|cash
    |paypal|zelle|checks?|cards?|credit|payment)\b|\b(?:pretty|for|make|making|be|am|i'm|quite|sure) sure\b
    |\b(?:all|well|nearly|almost|get it|be) done\b
== resigned: Taking it that there is no agreement.
    \b(?:i understand|understood|oh well|too bad|that's a shame|bummer|i see)\b
== lead: Words before the point of a sentence.
    ^(?:(?:oh|well|hm+|mm+|ha+|haha|lol|ah|and|so|but|yes|yeah|yea|yep|ok|okay|k|alright|great|cool|nice|thanks|hi|hello
    |hey|sorry|sure|no|man|sir|there|ok then|also|then|too)\b[ ,.!]*)+
== asks: A question, also without its mark.
    (?:(?:oh|well|hm+|mm+|ah|and|so|but|yes|yeah|ok|okay|k|alright|great|cool|nice|thanks|hi|hello|hey|sorry|also|then
    )\b[ ,.!]*)*(?:(?:would|could|can|will|do|does|did|is|are|was|were|has|have|may|shall|should) (?:you|u|i|we|it
    |they|he
    |she|the|this|that|there|your|my|any|anyone|\$?\d[\d,.]*k?)\b(?! (?:would be|will be))|(?:how|what|whats|what's
    |when|where|why
    |which|who
    |any|wanna)\b(?! (?:a |an |ever|the heck)))
== rhetorical: A question that answers itself.
    \b(?:how|who) (?:can|could|would) (?:i |we |you |anyone )?(?:possibly )?(?:say no|resist|refuse|argue|complain)\b
    |^(?:well |sure |ok |okay )?why not$
== all_yes: Nothing but consent, in two words or more.
    ^(?:(?:oh|well|lol|haha) )?(?:ok|okay|sure|yes|yeah|fine|alright|great|deal|perfect|awesome|cool|sounds good
    |thats fine)
    (?:[, ]+(?:ok|okay|sure|yes|yeah|fine|alright|great|deal|perfect|awesome|cool|sounds good|then|thing|thanks))+$
== plea: Asking for another price without naming one.
    \b(?:lower|less|cheaper|better|best|lowest|highest|higher|more|come (?:down|up)|go (?:down|up)|negotiab\w+|negotiate
    |discount|wiggle|flexible|budge|price|budget|afford|offer|pay)\b
== begs: Pressing for the own price without naming it again.
    \b(?:please|pls|come on|c'mon|cmon|all i have|all i've got|can't afford|cant afford|broke|student|for my|i know but
    |really need|i have cash|cash in hand)\b
== delighted: Warm words that answer the offer, not the item.
    ^(?:(?:oh|wow|yes|that's|thats) )*(?:perfect|great|awesome|excellent|wonderful|fantastic|sweet|amazing|terrific|yay
    |cool|nice)(?=$|[,!])
== counterfactual: What might have been; nothing in such a sentence counts.
    \b(?:would|'d|could|might)(?:n't)? have\b(?! to\b)|(?<!what )\bif (?:it|that|this|they|she|he|the \w+|there|i|you
    |we) (?:were|was|had|did|weren't|hadn't|wasn't)\b|\bif you'd (?:\w+ed|come|told|been|asked)\b|\bhad you \w+
    |\bi was going to (?:say|offer|accept)\b|\bi wish\b(?! you (?:the|luck|well|all|good))
== strong: Consent that needs no question before it; "<#>" stands for a price.
    (?<!no )(?<!not a )\bdeal\b(?!'s off| is off| or no)|(?:^|[.,!] ?
    |ok |okay |it's |is |then |fine |well |and |consider (?:it|that|them) |alright )sold\b(?! (?:it|to (?!you)|already
    |mine|one|for less|last|yesterday|this morning))|<#>[^.?!]{0,25}\bsold\b$
    |^(?:ok(?:ay)? |alright |fine |and |well )?(?:done|agreed|accepted|bet|settled)\b(?! (?:to|with))|\b(?:we're
    |we are|i'm|are we) agreed\b|\b(?:\w+) accepted$|\bi(?:'ll| will| can| do| hereby| gladly| happily| would| am|'m
    |'d)*(?: (?:be|am|gladly|happily|pleased|happy|glad|willing|delighted|ready|then|also|to|like)){0,5} accept\b
    |\baccept (?:your|the|that|this) (?:\w+ )?(?:offer|price|proposal|terms|figure)\b|^accept\b|\b(?:i|we)(?:'ll| will
    |'d gladly|'d happily| wanna| gladly)? take (?:it|them|both|the (?!train|bus|day|time|cheaper)\w+|that|all|<#>
    |this)\b|^ill take (?:it|them|that)\b|\bi(?:'ll| will) (?:(?:buy|grab) (?:it|them|the \w+)|have (?:it|them)$)\b
    |\byou(?:'re
    |r| are) on\b(?! (?:the|your|a|my))|\b(?:you|u)(?: have|'ve)? got (?:yourself|urself|it\b|a deal|a new|a sale
    |a buyer)|\byou just (?:bought|sold|got)\b|\b(?:it|she|he|they|all|the \w+)(?:'s|'re| is| are)(?: all)? (?:yours
    |hers|his|theirs)\b|\byours (?:then|for)\b|\bconsider it (?:sold|done|yours)\b|\b(?:works|fine|good|ok|okay
    |acceptable|agreeable|doable|great|perfect) (?:for|by|with) (?:me|us)\b|\b(?:that|this|which|middle|price|number
    |figure|compromise|noon)(?:'ll| will| would|'d| can| could)? (?:works?|do nicely)\b|\b(?:that|this)'?(?:ll|s
    |d)?(?: is| will)? (?:fine|acceptable|agreeable|doable|a deal|fair enough)\b|\b(?:sounds|seems
    |(?<!\bit )(?<!thing )looks)(?: like)?(?: a)?(?: very| perfectly)? (?:good|great|fair|fine|reasonable|perfect|plan
    |ok|okay|excellent
    |wonderful|deal)\b|\b(?:i|we)(?:'ll| can|'d| could)(?: just)? (?:live|work|be happy|go) with (?:that|it|<#>)\b
    |\bi can (?:do|manage|swing|make) (?:that|it)(?: work)?\b|\b(?:i'm|we're|im|am|still) (?:(?:in|sold|game)$|(?:in
    |sold|good|game|happy|okay|ok|fine) (?:with|at|for|on) (?:that|it|this|<#>))|\blet's (?:do|go with|call|settle
    |shake|make) (?:it|that|this|on|at|the deal|<#>)|\b(?:shake|shook) on (?:it|that)\b|\b(?:count (?:me in|on me)
    |you win
    |you've (?:worn|talked|twisted|convinced|sold|won)|you (?:drive|strike) a hard|can't (?:say no|resist
    |refuse)(?: to)? (?:that|this|it|an?|you)|(?:who|how) (?:can|could|would) (?:\w+ )?(?:possibly )?(?:say no|resist
    |refuse|argue)|twist my arm
    |no objections?|we have an? (?:agreement|understanding)|glad (?:that )?we (?:reached|could|agreed)|it's a (?:sale
    |bargain)|pleasure doing business)|<#>(?: [\w']+){0,3} (?:it is|works|is fine|is good|is okay|is ok|is perfect
    |is great|is fair|is acceptable|is doable|will do|sounds \w+|suits me|does it|then)\b(?! but)|(?<!'til )\b(?:ok
    |okay|alright|fine|yes|yeah|sure|k|yep|great|perfect) ?,? (?:then )?<#>|\bmiddle it is\b|^(?:go on
    |go ahead),? then\b|\bhappy to (?:pay|take|do) (?:that|it)\b|^(?:ten|\w+) percent off it is\b|\b(?:off|price
    |middle|half|halfway|that) it is\b|\b(?:as|like|how) you (?:wish|like|want|say|said|prefer)$|\bit's a date\b
    |\blet's do\b|\byou may have it\b
    |(?:^|[.,] |but |and |then |ok )take (?:it|them)\b|^(?:that )?works$|^(?:i'm |im |i am )?taking it\b
    |\bmeet(?:ing)? you there\b
    |\b(?:i'll|i|and|gladly) say yes\b|^taken$|\bi(?:'m| am) (?:buying|taking) (?:it|them)\b|^(?:\w+,? )?i take$
    |<#> is (?:a )?yes\b|\bi (?:can|will|'ll) match (?:that|it
    |them)\b
    |\bwith pleasure\b|\b(?:don't|can't) see (?:why not|(?:a|any) reason (?:not|to refuse))
    |\bcan't argue(?: with (?:that|it))?$|\bon the same page\b|\btake what i can get$
    |\bthat's what it(?:'ll| will) be$
== weak: Consent in answer to an offer.
    ^(?:(?:oh|well|hmm?|mm|ugh|ha|haha|lol|ah|and|aw|whew|geez|jeez|gosh|man|welp|eh|\.+) )*(?:ok(?:ay|ie)?|sure|fine
    |al+ ?right|yes|yeah|yep|yup
    |ya|aye|yessir|k|kk|fair enough|very well|of course|certainly|absolutely|definitely|gladly|why not|you bet|indeed
    |si|aight|ight|bet|word|oki|yea|yh|ye|done)\b(?! (?:i understand|i see|thing is))
    |^(?!(?:yes|yeah|yep|yea|ye|sure|of|it|as|what|how|because|oh|i|that|this|think|well|so|and|here
    |there)\b)(?:then |ok |okay )?
    (?:[\w']+ ){1,3}it is$|^(?:let's|i guess so|i suppose
    |(?:only|just) (?:because|since|for you)\b.*|if i must|(?:then |ok |okay |so )?give (?:it(?: to me)?|me(?: it)?)
    |go on|go on then|oh go on|very good|say no more|i'd love to
    |with pleasure|yes sir|yes ma'am
    |roger that)$
== warm: Warm words: consent where a price was asked or a date follows.
    ^(?:(?:oh|well|that's|that is|thats) )*(?:great|perfect|cool|good(?! (?:question|idea|point|morning|afternoon
    |evening|luck))|nice|wonderful|awesome|lovely|excellent
    |fantastic|super|brilliant|amazing|(?:thank you|thanks|thx|ty)(?! (?:anyway|but|though|for (?:your|the)))|sweet
    |you're an angel|bless you|bargain|phew|finally
    |there we go|terrific|hooray|yay)\b
== logistics: Arranging the handover.
    \b(?:i'll|i will|ill|i can|we'll|let me|i'd) (?:\w+ )?(?:bring|come|be there|grab|pick|get|swing|collect|head|drop
    |send|venmo|zelle|paypal|pay|load|wrap|hold|meet|have it|box|help|leave it|be (?:over|by|right))\b|\bon (?:my
    |the) way\b|\bomw\b|\bbring (?:the |your )?(?:cash|money|truck|van|a )|\b(?:come|swing
    |stop) (?:and |by and |over and )?(?:get|pick|collect|grab|by|over)\b|\bwhen (?:can|could|may|should|do|would|will
    |works|are)\b.*|\bwhere (?:can|do|should|shall|are|is)\b|\bsee you\b|\bsee u\b|\bcya\b|\b(?:your|the|my) address\b
    |\bpick(?:ing)? (?:it |them )?up\b|\bpickup\b|\b(?:venmo|zelle|paypal|cash ok)\b|\b(?:saturday|sunday|monday
    |tuesday|wednesday|thursday|friday|tonight|tomorrow)\b
== viewing: Coming to look at it first.
    \b(?:look at|see it|have a look|take a look|see for yourself|check it out|view(?:ing)?|test (?:it|ride|drive)
    |inspect)\b
== defer: Putting the decision off.
    \b(?:think|thinking) (?:about|it over|on) (?:it|that|this)?|\bthink it over\b|\bsleep on it\b|\bget back to (?:you
    |u)\b|\bi'?ll? (?:will )?let you know\b|\blet you know\b|\b(?:check|talk|speak|discuss|clear|confirm|ask
    |consult)(?: it| this| that)?(?: over)?(?: with| by| to)? (?:my|the|him|her) ?(?:wife|husband|partner|boss
    |girlfriend|boyfriend|roommate|mom|dad|mother|father|brother|sister|family|wallet|bank|better half|spouse|son
    |daughter|kids)?\b(?! (?:cousin to help|coat|pockets))|\b(?:run|pass) (?:it|this|that) (?:by|past)\b|\b(?:decide
    |let me decide|make up my mind)\b|\b(?:need|want|give me|take) (?:some|a bit of|a little|more|a day|a few|time
    |the night|until)(?: more)?(?: time| days| day| to)? ?(?:to think|to consider|days?)?\b|\b(?:i'll|let me|i will
    |i'd have to|have to|need to) (?:consider|think|mull|check with|see)\b(?! you)|\bmaybe\b.*\b(?:later|tomorrow
    |next week)\b|\bcheck back\b|\blet's see\b|\bwait and see\b|\bsee how\b|\bif (?:it|that)'s still (?:here|there
    |available)\b|\bnot (?:sure|decided|certain)\b|\bon the fence\b|\b(?:see|ask|check|look|talk|think|measure
    |speak)\b.* first(?:$|,| and\b)|\b(?:let me|i'll|i have to|i must|i need to) (?:measure|ask|talk (?:to|with)|speak
    (?:to|with))\b|\bmy (?:wife|husband|partner) (?:has|needs|would have|must)\b
== hedge: Half a consent.
    \b(?:maybe|perhaps|might|possibly|probably|potentially|almost|nearly|tempt(?:ed|ing)|leaning|theoretically
    |in theory|could be|i suppose so|depends|we'll see|possible|not yet|kind of|ish)\b
== negation: Words that deny the consent after them.
    \b(?:no|not|never|can't|cannot|cant|won't|wont|don't|dont|doesn't|didn't|isn't|wouldn't|couldn't|aren't|haven't
    |unable|hardly|refuse|without|until|unless|before)\b|n't\b
== condition: Conditions.
    \b(?:only )?if (?!so\b|not\b|any|possible\b|only\b|i must\b|you (?:say so|insist|must|want)\b
    |(?:that|it)(?:'s| is) (?:your|the|what|all|really|as)\b)\w+|\bas long as\b|\bprovided\b|\bon (?:one
    |the) condition\b
    |\bassuming\b|\bunless\b|\bbut only\b|\bonly if\b|\bwhen you (?:add|include|throw)\b
== if_only: Consent that hangs on a condition alone.
    ^(?:only )?if (?:you|i|we) (?:can |could )?(?:come(?! down| up)|pick|pay (?:cash|now|today)|get it|bring|take it
    |deliver|meet(?! me)
    |haul|throw|include|hold|move it|carry)\b[^,]*$
== confirming: Questions that ask for consent.
    \bdeal\b|\b(?:agreed|accept|ok with you|okay with you|sound good|sound fair|works? for you|are you in|you in
    |we good|shake on it|what do you say|interested|fair|that work|acceptable|do we|would you|will you|can you
    |could you|right|yes|ok|okay|take it)\b
== reject: Refusals, also those that go on haggling.
    ^(?:(?:oh|well|hmm?|mm|ha|haha|lol|sorry|ah|um|uh|ooh|ouch) )*(?:no|nope|nah|never|no way|non
    |sorry)\b(?! (?:problem|worries|rush|pressure|doubt|need|hard feelings|haggling|objection|issue|prob|brainer))
    |\bno (?:way|chance|can do|deal)\b|\b(?:can't|cannot|can not|cant|won't|wont|couldn't|wouldn't
    |unable to)\b(?! (?:say no|complain|argue|wait|believe|lose|refuse|beat|regret|thank|disappoint|hurt|find
    |be disappointed))|\b(?:decline|refuse|reject|unacceptable|ridiculous|insult\w*|lowball\w*|robbery|steep|(?:do not
    |don't) agree|kidding
    |joking)\b|\btoo (?:low|much|high|far|little|rich|expensive|steep)\b|\b(?:firm|lowest|bottom line)\b
    |\bnot (?:going|enough|happening|a chance|quite|there|possible|taking|accept\w*|interested|at|for|worth
    |good enough|in)\b|\b(?:afraid|unfortunately|regrettably)\b|\b(?:out of|over|beyond|outside) my (?:budget|range
    |limit)\b|\bmore than (?:that|i)\b|\bneed more\b|\bbut no\b|\b(?:little|bit|pretty|quite|kinda|kind of|rather
    |still|so|very|way|tad) (?:low|high|steep|pricey|expensive)\b
    |\bi (?:do not|don't|dont) know\b|\bin your dreams\b|\byeah right\b|\bgood one\b
    |\bforget (?:it
    |that)\b|\b(?:i was )?(?:hoping|thinking)\b
== no_phrase: Refusals that end the bargain unless a new price comes with them.
    \bno deal\b|\btoo (?:much|high|low|expensive)\b.*\b(?:thanks|thank you|sorry|bye)$|^(?:then nothing|nothing then)$
    |\bno(?:,)? thank(?:s| you)\b|\bnot interested\b|\bi(?:'m
    | am) not (?:buying|selling)(?: it)?\b
    |\bthanks anyway\b|\bi(?:'ll| will) find (?:another|one|something)\b|\b(?:another|some other) time\b
    |\b(?:don't|do not|dont) think (?:we|this|it)(?:'s|'ll| can| is| will)? (?:going to |gonna )?(?:make|work|agree
    |reach|_)
    |\b(?:isn't|is not|not|won't|wont|will not) (?:going to |gonna )?work(?: out| for me)?$|\bcan'?t agree$
    |\bnot worth (?:it|that)\b|\bi(?:'ll| must| have to|'m going to)? (?:decline|reject)\b|\btoo (?:rich
    |expensive) for m[ey]\b
    |\bi (?:won't|wont|will not|am not going to) (?:take|buy|pay) (?:it|that|this|at)\b|^not (?:for|at) (?:that|<#>)
    |\b(?:good|best of) luck$|^(?:not doing this|no sale)$|\b(?:nah|no|nope),? i'?m (?:good|ok|fine)\b
== walk: Walking away, breaking off, revoking.
    \b(?:i'll|i will|ill|i'm going to|i'm gonna|i have to|i'd have to|i must|i'll have to|gotta|going to have to
    |think i'll|have to|need to|must|i'd rather) (?:just )?(?:pass(?! \w+ (?:check|test|inspection))(?! the)
    |walk(?: away)?|bow out|back out|look elsewhere
    |keep looking|look around|shop around|go elsewhere|move on|leave it|withdraw|bail|call it off|skip|end this
    |keep it|try (?:elsewhere|my luck|someone else))\b(?! (?:it|them) (?:on|at|by|in))|\b(?:backing|back) out\b
    |^(?:hard )?pass\b|\bi(?:'m| am)(?: so)? out\b(?! (?:of town|tonight|until|till|at|of the|with))
    |\bi(?:'m| am)(?: all)? done (?:here|with this|haggling|negotiating|talking)\b|\b(?:too|so) far apart\b|\b(?:can't
    |cannot|won't|unable to|not able to|couldn't|not going to|don't think we'll|failed to) (?:\w+ )?(?:reach|come to
    |make|find|agree on|get to|see) (?:an? )?(?:agreement|deal|middle ground|terms|work|common|eye)\b
    |\bagree to disagree\b|\b(?:good|best of) luck (?:with|selling|finding|to you|in|out)\b|^good luck$
    |\bi wish you (?:the best|(?:\w+ )?luck|well|all)\b|\b(?:look|try|go|buy|find|get
    |shop)(?:ing)? (?:one |it |something )?(?:elsewhere|somewhere else)\b|\bkeep (?:looking|searching)\b
    |\blook(?:ing)? for (?:another|a different|something|a cheaper|one)\b|\bmove on\b
    |\bnever ?mind\b|\bnvm\b|\bthat'?s that\b|\bif you (?:change|reconsider)\b|\bif (?:anything|something) changes\b
    |\blet (?:him|her|them) have it\b|^(?:then |ok |fine )?call the next\b
    |\bforget (?:it|about it|the whole)\b|\bdeal(?:'s| is) off\b|\bcall(?:ing)? (?:it|the \w+ )off\b|\bcancel\b
    |\bnot (?:going to work|gonna work|for me|what i need|what i'm looking|meant to be|a good fit|taking (?:this|it)
    |worth it to me|wasting)\b|\b(?:won't|isn't going to|doesn't|don't) (?:think (?:this|it)'?(?:s|ll)? )?(?:work out
    |working out|going to work)\b|\bdon't (?:want|need) (?:it|this|one|the \w+)(?: (?:any ?more|after all|at all|then
    |that badly|now))?$|\b(?:don't|do not) (?:contact|message|text|write|call) (?:me|us|again|back)\b
    |\bstop (?:messaging|texting|writing)\b|\bblock(?:ing|ed)\b|\bwast(?:e|ing|ed) (?:my|your|our) (?:time|afternoon
    |day)\b|(?:^|then |so |guess |think )we(?:'re| are) done\b|\b(?:this|the|our) (?:conversation|negotiation
    |talk)(?: is|'s)? over\b|\bend of (?:story|discussion|conversation)\b|\b(?:changed my mind|second thoughts?
    |no longer (?:interested|want|need|looking))\b|\b(?:lost|losing) interest\b|\b(?:won't|wont|not) be (?:needing
    |taking|buying|able to (?:take|buy|come|make|do))\b|\bcan't (?:take it|go through with|buy it|do it after all)\b
    |\b(?:buy|take|get) (?:that|those|his|theirs|the other) one\b|\b(?:bought|buying|found|ordered|got|getting
    |ended up with|went with|already have) (?:one|another|a (?:different|cheaper|better|newer|similar|closer)
    |something)\b(?! (?:message|offer|more|buyer|guy|person|question|interested|new))|\bout of (?:my|our) (?:budget
    |price range|league)\b.*\b(?:sorry|thanks|thank you)\b|\bmaybe (?:next|some other|another) time\b
    |\bi(?:'ll| will) (?:let you go|find another buyer|wait for (?:another|a better|someone|the right))\b
    |\bwalk(?:ing)? away\b|\b(?:go|going|went) with (?:them|him|her|one of|the other|another|someone|his|their)\b
    |\bsell (?:it )?to (?:them|him|her|someone|somebody|that|the)\b|^(?:(?:then|well|ok|you can|fine|so) )*(?:keep (?:it
    |your \w+)|walk then|leave it)\b|\bi'll leave it\b|\b(?:get lost|go away|beat it|buzz off|get out of here)\b
    |\bi have nothing (?:more|else|further) to offer\b|\bthat's (?:the end|all i can offer|my final answer)\b
    |\bhold out for\b|\bi don't want$|\b(?:don't|doesn't) want it more\b|\bnothing (?:more |else )?to (?:talk about
    |discuss)\b
    |\btake my chances\b|\bnot getting anywhere\b|\bgetting nowhere\b|\bit's a no\b|^(?:i'm |then |ok )?leaving it$
    |\b(?:she|he|wife|husband|partner|son|daughter|mother
    |father) (?:doesn't
    |does not) (?:want|like|need)\b(?! (?:me|us|you|to))
    |\b(?:have to|must|going to|'ll) say no\b|\bbuy (?:the|a) (?:new|other) one\b
== closing: Words that close a talk.
    \b(?:thank you|thanks)(?: \w+){0,3} for (?:(?:your|the) (?:time|consideration|patience|chat|reply|response)
    |letting me know|getting back)\b
    |\bsorry (?:to (?:have )?(?:bother|waste|trouble)|for (?:bothering|wasting|the trouble|your trouble))
    |\bsuit yourself\b|\byour loss\b|(?<!ok )(?<!okay )(?<!ok, )(?<!okay, )\bso be it\b
== gone: The item is sold, given away or kept.
    \b(?:just|already|been|was|it's|is|it is|got|have|has|i|they're|they've
    |we) (?:been |just |already )?sold\b(?! (?:on|if|for you|to you|then|at <#>$|mine|one like|you))|\bsold (?:it|them
    |mine|already|to (?!you))\b|\b(?:someone(?: else)?
    |(?:a|another|the other) (?:guy|man|woman|lady|couple|buyer|person) (?:just
    |already)) (?:just |already |has |else |came (?:by )?and )*(?:bought|took|picked|paid|beat
    |grabbed|claimed|got|is taking)\b|(?<!you )\b(?:just|already|has been|been) (?:picked|bought|given|reserved|taken
    |claimed|grabbed
    |snapped|promised|gone)\b|\b(?:no longer|not|isn't|not actually) (?:available|for sale)\b|\bunavailable\b
    |\b(?:it's|it is|is|they're) (?:already )?gone\b(?! (?:up|down))|\b(?:keeping|going to keep|decided to keep
    |gonna keep|want to keep|rather keep|i'll keep) (?:it|them|the|her|this|him)\b(?! (?:for you|safe|aside|until
    |here))|\bkeep (?:it|them)\b.*\bafter all\b|\b(?:like|have|had|think i'll|i'm going) to keep (?:it
    |them)\b(?! (?:for you|on hold|under|below|around|at|to|within|between|less|near))|\b(?:don't|do not|not|didn't
    |won't) (?:want to |going to |gonna |actually want to |be )?sell(?:ing)?(?: (?:it|them|this|after all|any ?more)
    |$)|\b(?:took|pulled|taking|withdraw\w*|remov\w+) (?:down |off )?(?:it|the (?:ad|listing|item|offer))\b(?! (?:home
    |apart|out))|\b(?:gave|given|donated|giving) (?:it|them) (?:away|to (?!you))|\bi(?:'d
    |'ll| would| will) (?:rather |just )?(?:give it to (?!you)|donate it|throw it)\b|\bcan'?t sell (?:it|them|this)\b
    |\bpromised it\b|\b(?:stolen|broke|broken down|fell apart) (?:last|this|yesterday|today|in half)\b
== threat: Before a walk-away: it is threatened, not done.
    \b(?:or|otherwise|or else|about to|else|if|ready to|unless|don't make me|before i|might|may|don't|almost
    |tempted to|prepared to|willing to|nearly|could)(?: [\w',<#>]+){0,7} ?$
== reference: Prices of other things, times and people.
    \b(?:cost|costs|paid|retails?|msrp|originally|brand[- ]new|new ones?|ebay|amazon|stores?|elsewhere|online
    |(?:have|had|got) (?:someone|somebody|another|other|a guy|a lady|people|offers)|other (?:buyers?|offers?|guy
    |people|person|sellers?|ads?|listings?|one)|(?:a|the) (?:guy|buyer|couple|woman|man
    |dealer|lady|shop|friend)|another (?:buyer|guy|person|seller|offer|ad|listing|one)|someone (?:else )?(?:offered
    |offering|is|has|just|already)|somebody|neighbou?r|(?:he|she|they|guy|someone) (?:offered|paid|sold|got|bought)
    |repair\w*|fix\w*|replac\w+|gasket|last (?:time|week|month|year)|rent|apart|difference
    |savings?|go for|going for|goes for|sells? for|sold for|change for|resale|valued|appraised|worth of|gas money
    |blue ?book|kbb|kelley|kelly|edmunds|found|i make|i earn|income|get (?:one|it|them) (?:new|for|at)|bought (?:it
    |this|mine|one|them) (?:for|at|new)|new (?:for|at|was|is|it)|it was|they were|instead of|down from|off the
    |off of)\b
== side_after: A deposit, fee or voucher, named after its amount.
    ^\s*(?!(?:with|plus|and|including|before|after)\b)(?:(?:on|for|as|in|of
    |toward)\s)?(?:the |a |an |my |your |for )?(?:\w+ )?(?:deposit|security|fees?|tax(?:es)?
    |gift ?cards?|card
    |gift certificate|shipping|voucher|coupon|down payment)\b
== side_before: A deposit, fee or voucher, named before its amount.
    \b(?:deposit|security|fees?|tax(?:es)?|shipping|voucher)(?: \w+){0,2} (?:to|of|is|at|from|for|by|would be)\s*$
== others_price: The other side's price, quoted.
    \b(?:you(?:'re| are|r)? (?:asking|said|asked|wanted|listed|offered|want|mentioned|agreed)|your (?:price|asking|ask
    |offer|listing|ad|target(?: price)?|budget)(?: of| is| was| at| says)?|considering (?:my|your) offer
    |(?:it|ad|listing|post) (?:says|said)|listed (?:at|for
    |it|as)|(?:list|listing|listed|asking) price|apart|i see|posted)\b
== own_offer: An own offer, whatever else the clause says.
    \b(?:let(?:ting)? (?:it|her|them|this|the \w+|him) go|i'd|i would|i'll|i will|i can(?! (?:get|buy|find|order))
    |i could(?! (?:get|buy|find|order))|selling|offer you|make it|would you
    |can you|could you|will you|how about|what about|take|my (?:offer|price|limit|max|budget)|thinking|hoping|meet me
    |lets|let's|(?:it|this|that|mine) costs(?! me\b)(?!.*\b(?:new|online|stores?|elsewhere|repair\w*|fix\w*)\b))\b
== list_price: Taking the listed price.
    \b(?:asking|full|list|listed|listing|sticker|advertised|original|posted)(?: asking)? price\b(?! (?:is|of
    |seems|looks|too|was|a bit|high)\b)|\bwhat you(?:'re| are) asking\b|\b(?:the|your) ask is (?:fair|fine
    |good|great|perfect|reasonable|ok)\b|\bno haggling\b|\bwon't haggle\b|\bwithout haggling\b|\bpay (?:the )?full\b
== price_fine: Finding the price good that stands.
    \b(?:price|offer) (?:works|(?:is|seems|sounds|looks|works) (?:\w+ )?(?:fair|fine|good|great|perfect|reasonable|ok
    |okay))\b
    |\bagree (?:to|with) (?:your|the|that) price\b
== at_start: Taking the other side's first price.
    \bwhat you (?:asked|said|wanted|offered)(?: for)? (?:at the start|at first|first|originally|before|earlier
    |in the beginning)|your (?:first|original|opening|initial) (?:offer|price|number|ask)
== wants: Wanting the item.
    \bi(?:'d| would) (?:like|love) (?:to (?:buy|have|purchase|get|take)|the|it)\b|\bi (?:want
    |wanna)(?: to)? (?:buy |have |take |get )?(?:it|the)\b
== if_so: Buying or selling at a price that the other side has yet to take.
    <#>[^,.]* and (?:i'll|i will|i'm|you|we|it's|its)\b
== middle: Meeting in the middle.
    \bmeet(?: you| me)? (?:in the middle|halfway|half way)\b|\bsplit (?:the|it|that|this)\b
    |\bsplitting the difference\b|\b(?:halfway|in the middle|midpoint|half and half|in between)\b|\bbetween (?:us
    |the two|these|those|both|our)\b|\bmiddle (?:it is|of (?:those
    |these|the|them|both|our)\b)
== total: A sum of the parts.
    \b(?:all told|all[- ]in|total|altogether|all together|all up|in all|for everything|for the lot|for (?:it )?all
    |together)\b
== each: A price per piece.
    ^\s*(?:each|apiece|a piece|per (?:piece|chair|item|unit|one|head)|a pop|every one|ea\b|for each|(?:a|per) (?!week
    |month|day|year|hour|bit|lot|little|fair|good|great|discount|deal
    |couple|few|reasonable|quick)[a-z]+\b)
== delta_after: A change of a price.
    ^\s*(?:more(?! (?:realistic|reasonable|like|fair|than (?!that|this|your)|in line))|extra|on top|less|off|lower
    |higher|apart|discount
    |over|under|short|toward|shy)\b(?! (?:my|your|his|her
    |the|a) (?:budget|back))(?! than (?!that|this|your))
== delta_before: A change of a price, named before it.
    (?:knock(?: off)?|take off|add|adding|another|an extra|extra|additional|plus|\+|drop(?: it)?(?: by)?|shave
    |throw in(?: another| an extra)?|minus|(?:go|come|goes|coming) up) (?:off )?$
== percent: A share off the list price.
    ((?<!\d)\d+(?:\.\d+)?|(?<![a-z])[a-z]+(?:-[a-z]+)?) ?(?:%|percent|per cent) ?(?:off|discount|less
    |lower|reduction)|(?:knock|take|discount|drop)(?: \w+){0,2} (\d+|[a-z]+(?:-[a-z]+)?) ?(?:%|percent|per cent)
    |^(?:\w+ ){0,2}(\d+) ?(?:%|percent) if\b
== nod: Gestures of consent.
    \bnod(?:s|ding|ded)?\b(?!.*\b(?:thoughtful|slowly|consider|polite|understand|toward|off)\w*)|\bthumbs[- ]up\b
    |\bshak(?:es|e|ing) (?:on it|(?:his|her|their|\w+'s|the seller's|the buyer's|hands?) ?(?:hand
    |hands)?)\b(?! (?:head|finger))|\bhandshake\b|\bseals? the deal\b|\bfist bump|\b(?:hands?|gives?|passes|counts?
    |pays?|transfers?|venmos?|sends?|slides?|puts?|pulls?|takes?|accepts?|pockets?)\b.*\b(?:cash|money|bills?|payment
    |dollars|envelope|deposit|<#>|wallet|twent(?:y|ies)|tens)\b|\bcounts? out\b|\bloads? (?:it|the|them)\b
    |\bhigh[- ]five|\b(?:hands?|gives?) (?:over )?(?:the |him the |her the )?keys?\b
    |\b(?:extends?|offers?|holds? out|sticks? out|puts? out) (?:a|an|his|her|their|the) hand\b|\bshakes? (?:it|on it)\b
== shake_head: Gestures of refusal.
    \bshak(?:es|ing|e) (?:his|her|their|its|my) head\b|\bthumbs[- ]down\b|\brefus\w+|\bscoffs?\b|\brolls? (?:his|her
    |their) eyes\b|\bcrosses\b|\bfrowns?\b|\bhesitat\w+
== exit: Going away.
    \b(?:walks?|drives?|turns?|storms?|heads?|strides?|backs?|rides?|wanders?|goes) (?:\w+ )?(?:away|off|out|home
    |back to (?:the|his|her|their) (?:car|truck|van))\b|\bleaves?\b(?! (?:it|the|a|an)\b)|\bhangs? up\b|\b(?:closes
    |slams|shuts) the (?:door|garage)\b|\blogs? off\b|\bblocks (?:him|her|them|the (?:number|seller|buyer)|\w+'s)\b
    |\bpacks? (?:it|up|everything)\b|\bgets? (?:back )?in(?:to)? (?:the|his|her|their) (?:car|truck|van) and\b
    |\bputs? .* away\b
== affirm: Granting what was asked.
    \b(?:yes|yeah|yep|yup|sure|ok|okay|of course|absolutely|certainly|definitely|fine|deal|alright|no problem|can do
    |why not|you bet|gladly|agreed|it's yours|take (?:the|it)|throw (?:it|that|them|the \w+) in|included|will do
    |you can (?:have|keep)|i'll (?:include|add|deliver|throw)|i can(?! only))\b
== revoke: Signs that an agreement is reopened.
    \b(?:actually|wait|hold on|on second thought|hang on|but|except|turns out|however|instead|i said|i meant|i thought
    |not what|anymore)\b
== count: How many pieces.
    \b(?:all|the|take|for|these|those|buy|want|you have|got|set of) (two|three|four|five|six|seven|eight|nine|ten
    |twelve|\d{1,2})\b|\b(both|pair)\b|\b(\d{1,2}|two|three|four|five|six|eight) (?!dollars|bucks|each|apiece|hours
    |days|years|minutes)[a-z]+s\b
== pleased: Gladness that shows that consent was understood.
    ^(?:oh |wow |ha |great |ok )*(?:thank you|thanks|thx|ty|sweet|hooray|yay|yess*|wonderful|awesome|woo\w*|score)\b
    |\bwhen (?:are |r )?(?:you|u) coming\b|\bsee you\b|\bon my way\b|\bomw\b
== final: A last word on the price.
    \b(?:final|firm|lowest|bottom line|last (?:price|offer)|take it or leave it|won't (?:take|go|accept)|can't go
    |not a penny)\b
== declines: Refusing a last word.
    \bdecline\b|\bcan(?:'t|not)\b|\btoo (?:much|low|high|steep)\b|\bno(?:pe)?\b,? (?:sorry|then|thanks)
== fine_after_deal: What sounds like breaking off, but not after a deal.
    \bgood luck (?:with (?:the|your) (?:move|new|garden|baby|project|studies|gig|trip|party)|getting|fitting)
    |\bdon't (?:want|need) the\b|\b(?:consider|mark(?:ing|ed)?|call) it sold\b|\bit's sold\b|\bsold to you\b
    |\btook (?:the )?(?:ad|listing|it) down\b|\b(?:taking|i'll take|take|pull|pulling|took
    |i'll pull) (?:down )?the (?:ad|listing|post)\b|\b(?:keep|keeping) it (?:for you|aside|safe|inside|here)\b
    |\bno longer available to\b|\b(?:tell|told|let|telling) (?:the )?(?:other|everyone|others)\b|\bcan't wait\b
    |\bi wish you\b|\bbest of luck\b|\bgood luck(?: with it| to you)?$|^(?:well,? |ok,? )?let's move on\W*$
== reopened: Taking an agreement back into talk or thought.
    \b(?:need|want) (?:some |a little |a bit )?more time\b|\bneed to (?:think|consider)\b|\blet me think about (?:it
    |that|this)\b
    |\b(?:negotiate|discuss (?:it|this)|try) (?:again|further|later)\b|\b(?:let's|want to|try to) (?:\w+ )?negotiate\b
    |\bstart over\b
== as_much: Wanting what another is said to have offered.
    \b(?:need|want|take|get|do|accept|be|pay)(?: at least| about| around)? (?:that|the same)(?: much
    | too)?(?: from you)?$
== elliptic: "I will.": consent only in answer to a question.
    ^(?:(?:yes|oh|yeah|sure) )*(?:we|i|it|that|they) (?:are|do|am|is|would|will|does|can|could|have)$
== commit: Promising to come, pay or deliver.
    \b(?:i'll|i will|ill|we'll|i'm gonna) (?:\w+ )?(?:bring|come (?:over|by|get|now|today|tonight|tomorrow)
    |be (?:there|over|by|right)|grab
    |pick|get (?:it|the)|swing|collect|head|send|venmo|zelle|pay|wrap|load|deliver|drop it)\b|\bon (?:my|the) way\b
    |\bomw\b|\bcoming over\b
"""

PHRASES: dict[str, re.Pattern[str]] = {"farewell": FAREWELL, "see_you": SEE_YOU} | {
    section[1]: re.compile("".join(line[4:] for line in section[2].splitlines()))
    for section in re.finditer(r"^== (\w+): .*\n((?:    .*\n)+)", _PHRASES, re.MULTILINE)
}
"""Phrases of a bargain by name, for one sentence or turn as `prices.plain` returns it."""
