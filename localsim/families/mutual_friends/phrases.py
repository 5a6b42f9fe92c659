"""Words and patterns by which names, answers and guesses about friends are read in English."""

from __future__ import annotations

import re

# First names that are also ordinary words, months, plants or places.
WORD_NAMES = frozenset(
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
    colt drake gray grey brown black green white gold silver scarlet ebony red blue case van bud ridge archer clementine
    fletcher sawyer smith cook gardener marina sierra tiffany mercedes jolly lucky happy merry gay dick tad
    """.split()
)
PLACES_AND_MONTHS = frozenset(
    """
    may june april august florence paris london savannah brooklyn dallas austin houston jackson jordan kenya
    india china georgia virginia carolina dakota chelsea kent devon lincoln
    """.split()
)
# Names that can open a sentence as verbs ("Will you", "Hope to see you"), and words that follow a person's name.
VERB_NAMES = frozenset("will may mark hope chase pierce drew trace skip dash".split())
AFTER_A_PERSON = frozenset(
    "is was has does did knows works lives from likes too who and or plays went taught isn't".split()
)
# Capitalised words that do not guess a friend: openers, days, months, places and the like.
NO_NAMES = frozenset(
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
    yesterday describe twins clue hint question answer list number letter name names party
    """.split()
)
NAME = r"[A-ZÀ-ÖØ-Þ][\w'’]*(?:-[A-ZÀ-Þ]\w+)?"
YES = re.compile(
    r"^(?:(?:o+h+|a+h+|ha|haha|hah|lol|wait|well|hmm?|omg|wow|and|why|but|so|then) )*(?:yes|yeah|yep|yup|yea|ya"
    r"|sure|of course|absolutely|definitely|"
    r"certainly|indeed|you bet|totally|bingo|correct|right|exactly|affirmative|i do|sure do|we do|he is|she is"
    r"|they are|naturally"
    r"|i (?:sure|certainly) do|aye|mhm|uh-huh|jackpot|spot on|guilty(?! of)|"
    r"snap|ditto|(?:me|mine)(?: too| as well| also)|likewise"
    r"|same(?= (?:here|guy|one|person|name|friend|with me)\b|$))\b"
    r"(?! (?:but|thing|enough|name as|not))"
    r"|\b(?:i'm|i am|we're|we are) (?:\w+ )?friends\b"
    r"|^(?:i (?:have )?)?(?:got|have|see|found) (?:him|her)(?: on my list)?(?: too| as well)?$"
    r"|\b(?:he|she)(?:'s| is) (?:on |in )?(?:here|there)(?: too| as well)?$"
    r"|\b(?:i|we|yes i|and i|i've|we've)(?: do| also| too| actually| certainly| absolutely| really| both| have"
    r"| happen to| sure)* (?:know|knew|known|recogni[sz]e|"
    r"met|have (?:known|met))(?: to know)? (?!(?:that|what|how|you|no|nobody|no one|someone else|a lot|many|anyone"
    r"|whether|if|who|lots|several)\b)"
    r"|\b(?:got it|it is),? yes\b|\bis the one$"
    r"|\bi(?: do)? know$|\bi know (?:him|her|them|that)\b|\bhim i (?:do )?know\b|\bher i (?:do )?know\b|\b(?:that's"
    r"|thats|that is|that'd be|it'?s|it is) (?:indeed )?(?:him|her|them|"
    r"the (?:one|guy|man|woman|person)(?! i(?:'d| would| want| hope| wish)\b)"
    r"|(?:his|her|their) name|who i|my|our|right|me|correct|it)\b"
    r"|\b(?:is|'s|are|was|been|also|too) (?:also |actually |one of )?(?:(?:a|an|in) )?(?:my|mine|our|good friend"
    r"|old friend|friend of mine|dear friend|mate of mine|close friend|pal of mine)\b"
    r"|^(?:my|our) (?!.*\b(?:is|are|was|were|has|have|can't|works?|lives?|likes?|plays?|ends?|friends|turn"
    r"|lists?|knows|knew|mentioned|met (?!him|her)|\w+n't)\b)"
    r"|\b(?:we|we've|we're|us)\b.*\b(?:together|friends|years|ago|school|share|work|worked|went|grew|met"
    r"|same|colleagues|neighbou?rs|college|play|train|close|mates|buddies|pals|roommates|flatmates|cousins|married)\b"
    r"|\b(?:on my list|in mine|one of mine|among my|among mine|on mine|mutual friend|in common|common friend|one of my"
    r"|friend of mine|mate of mine|my friend|my best|a match|we found)\b"
    r"|\b(?:taught|gave|told|lent|introduced|owes|helped|calls|cuts|drives|married|hired) me\b|\bsmall world\b"
    r"|\b(?:he|she|they) and i\b"
    r"|\b(?:one|there's one) (?:in|of|on) (?:mine|my)\b|\bno way\b.*\btoo\b"
    r"|\b(?:yes|yeah|yep|definitely|certainly|absolutely|of course|for sure)$"
    r"|^(?:(?:oh|ah|well|why) )*(?:it|he|she) (?:(?:sure|certainly|definitely|absolutely|really) )?(?:is|does)"
    r"(?: indeed| too| him| her)?$"
    r"|(?<!than )(?<!as )(?<!what )(?<!like )\bi (?:(?:certainly|sure|really) )?do(?: indeed| too)?"
    r"(?=$| (?:he|she|we|him|her)\b)"
    r"|\blike (?:a (?:brother|sister|father|mother|son|daughter)|family)\b"
    r"|^(?:(?:oh|ah) )*(?:him|her)(?: yes)?$|\bthe (?:very same|very one|one and only)\b|^the same$"
    r"|\bthe same (?:name(?! as)|person|guy|one|man|woman|fellow)\b"
    r"|\byou(?:'ve| have)? (?:got|guessed|nailed) (?:it|him|her)\b"
    r"|\byou(?:'re| are) (?:right|correct)\b(?! (?:that|to)\b)"
    r"|\b(?:assume|guess|guessed|think|imagine|suppose) (?:right|rightly|correctly|well)$"
    r"|\bwe(?:'ve| have) found\b|\bwe have a (?:winner|match)\b|^(?:(?:it's|that's) )?(?:a )?match$"
    r"|\bwe go (?:way |a long way |far )?back\b"
    r"|^(?:since|for) (?:(?!(?:i|you) )[\w'-]+ )*(?:years|ages|childhood"
    r"|school|kindergarten|decades)(?: now| already)?$"
    r"|^a (?:very |really )?(?:good|close|dear|old) (?:one|friend)\b"
    r"|\b(?:\w+n't|cannot|lost|nowhere|what would i|where would i)\b.* without (?:him|her)$"
    r"|(?<!do )(?<!would )(?<!did )\byou know \w+ (?:too|as well)\b"
)
LAUGHTER = re.compile(r"(?: (?:lol|lmao|(?:ha){2,}|hehe|xd|bro))+$")
"""Words that may end any clause."""
ASKS_BACK = re.compile(
    r"\b(?:who|what|which|where)(?:'s| is| does)? (?:he|she|that|this|it|his|her|one)\b|\bwho(?:(?:'s| is) \w+)?\W*$"
)
"""A question about the person who was named, to which a description is the answer."""
ASKED_YES = re.compile(
    r"\bwho (?:doesn't|does not|wouldn't) (?:know|recogni[sz]e|remember)\b"
    r"|\bwho (?:isn't|is not) (?:a )?friends? (?:with|of)\b"
    r"|^how did you (?:guess|know)$"
)
"""A question that says yes."""
POINTS = re.compile(
    r"\W*(?:(?:yes|oh|ah|well|i know)\W+)*(?:the (?P<place>first|former|second|latter|last)"
    r"(?: (?P<count>one|two|three))?"
    r"|(?P<all>both|all(?= of| two| three| four))"
    r"(?: of them| two| three| four)?)(?=$|\W)"
)
"""An answer that picks people from a list."""
NO = re.compile(
    r"^(?:(?:oh|ah|ha|hmm?|well|sorry|um|uh|i'm afraid|afraid|then|wait|actually) )*(?:no|nope|nah"
    r"|never|negative|not|neither|non"
    r"|no one|nobody|nothing|none|sorry|me neither|(?:yes|yeah) (?:no|nah)$"
    r"|(?:of course|certainly|definitely|absolutely|sure|surely) not)\b"
    r"(?! (?:way|doubt|kidding|need|problem|joke|wonder))"
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
    r"|\b(?:nobody|no one|no friend|no person|none) (?:of mine |else )?(?:named|called|by the name of|i know)\b"
    r"|\bnever been introduced\b(?! to (?:his|her|their))|\b(?:a )?new name (?:to|for) me\b"
    r"|\b(?:can't|cannot) help you\b"
    r"|\bcouldn't tell you who\b|\b(?:isn't|is not) (?:the (?:friend|person|one)|somebody|anybody)\b"
    r"|\b(?:mine's|mine is) (?:not|someone else|another)\b|\bwe mean two\b"
    r"|\bknow (?:nobody|no one)\b(?! (?:better|else|nicer|as))"
    r"|\b(?:share|have) (?:nobody|no one|no (?:mutual|common))\b(?! else)"
    r"|\bwithout a match\b|\bzero friends\b|\b(?:my|the) answer is no\b"
    r"|\bno (?:mutual|common) (?:friend|acquaintance)s?\b"
    r"|\bi (?:don't|do not|haven't)$|\b(?:not|isn't|aren't) the same\b|\bi mean no\b|\bi have none$"
)
SORRY = re.compile(r"^(?:(?:oh|ah|well|so|i'm) )*sorry\b ?")
"""An opening that says no only if nothing better follows."""
_LONG = r"(?:in|for) (?:a |an |so )?(?:while|ages|years|months|weeks|long)\b"
MISSED = re.compile(
    rf"\b(?:haven't|have not) (?:seen|visited|called|written to|(?:spoken|talked) (?:to|with)"
    rf"|heard from) (?!an? |any)[^,]* {_LONG}"
)
"""Words about a friend who has been away for long."""
ASIDE = re.compile(
    r"\b(?:no idea|not sure|unsure|don't know|do not know|can't say|wonder) (?:how|why|when|where)\b[^,]*"
    r"|\b(?:didn't know|had no idea|never knew) (?:that )?(?:you|he|she)\b[^,]*"
    rf"|\b(?:not|never|haven't|hasn't|have not)\b(?! (?:\w+ )?(?:met|heard of|known?)\b)[^,]* {_LONG}[^,]*"
)
"""Words that look like a no or a doubt and say nothing about knowing the person."""
HEDGE = re.compile(
    r"\b(?:maybe|perhaps|might|possibly|probably|not sure|unsure|not certain|not positive|rings? a bell"
    r"|sounds? familiar|vaguely|sort of|kind of|i think i|i may|may have|i think so(?! too)|i guess|could be"
    r"|can't be sure|hard to say|can't say for|let me think|i believe so|heard (?:of |that |the )|seems familiar"
    r"|may know|who knows"
    r"|i suppose|i wonder|wish i|i wish$|if i|know of (?:him|her|them)|know (?:the|that|his|her) name)\b"
)
DO_YOU_KNOW = re.compile(r"(?<!how )\b(?:do|did) (?:you|u|ya) (?:(?:also|even|maybe|happen to) )?know\b")
"""A question, with a question mark or without."""
ASKS = re.compile(
    r"^(?:(?:so|or|well|ok|okay|hey|then|hmm?) )*(?:(?:do|does|did|is|are|have|can|could|would) \w+"
    r"|(?:maybe|perhaps|possibly|i wonder (?:if|whether)) (?:you\b|\w+$))|\b(?:could|might|may) be \w+$"
)
"""Words that ask about a name, or guess it, without a question mark: a doubt among them is no answer."""
ABOUT_FRIEND = re.compile(
    r"^(?P<is> is| was)? (?:(?:also|too|a|an|one|of|your|our|my|good|close|old|perhaps|maybe) )*"
    r"(?:friends?\b|yours\b|known\b|familiar\b|(?:sound|seem|ring) (?:familiar|an?y? bell)"
    r"|(?:someone|somebody|anyone|anybody) (?:that )?you know\b)"
)
"""What follows a name in "Is Ann a friend of yours?", "Does Ann sound familiar?" and "Ann is my friend."."""
NOD = re.compile(
    r"\b(?:nod(?:s|ding)?\b|thumbs[- ]up|high[- ]five|points? (?:excitedly|at (?:her|him)self)|eyes (?:light|lit"
    r"|widen)|beams?\b|claps?\b|grins? and)"
)
NOT_NOD = re.compile(
    r"\bshak(?:es|ing) (?:his|her|their|its)? ?head\b|\bshrugs?\b|\bfrowns?\b|\bpolite|\buncertain|\bslowly\b"
    r"|\bthoughtful"
)
MIXED_UP = re.compile(
    r"\bmixed|\bthinking of (?:someone|somebody|another|a different)|\bwrong (?:person|one|\w+)|\btake (?:it"
    r"|that) back|\bdifferent (?:one|person|\w+)|\b(?:don't|do not) (?:actually )?know (?:him|her|them|yours)"
    r"|\b(?:my|a) mistake|\bi was (?:wrong|mistaken)|\bafter all\b|\bonly heard"
)
ELSEWHERE = re.compile(
    r"^(?:(?:well|but|and|so|then|let me see|let me try another one)[,.]? )*"
    r"(?:i (?:only |do )?know (?:somebody|someone|a )|i(?: do)? have (?:a|another) friend"
    r"|a friend of mine (?!too|as well)"
    r"|one of my friends|one of mine|my friend(?! too| as well)\b|someone i know|somebody i know|there is one of mine"
    r"|that was (?:my|the) last|th(?:at's|at is|at was|ose were) (?:everybody|all)"
    r"|i(?:'ve| have) (?:asked|gone|no(?:body)?|run)\b"
    r"|there is nobody left|no more names|my list ends|it seems we|mine (?:is|isn't))"
)
_TRAIT = r"(?:likes?|works?|lives?|enjoys?|plays?|loves?|is into|is at|has(?! no))\b"
DESCRIBED = re.compile(
    r"^(?:(?:well|but|and|so|then|oh|hmm|no)[,.]? )*"
    r"(?:(?:i(?: only| do| also)? (?:know|have)|i've got) (?:somebody|someone|an|a|another)\b"
    r"(?!.*\b(?:that name|same name|called that|named that)\b)"
    rf"|(?:my friend|mine|(?:one|a friend) of mine|one of my friends) {_TRAIT}|the one i can think of {_TRAIT})"
)
"""A clause that describes another person instead of the one in question."""
NEUTRAL = re.compile(
    r"\b(?:every|any|no)(?:one|body) (?:else )?i know$|\b(?:so|as) (?:do|am) i\b|\bknow each other\b"
    r"|^(?:(?:oh|ah|yes|hmm?)[, ]+)*who(?:'s| is) (?:he|she|that|this|it)$"
)
"""Words that look like a yes and say nothing about the person in question."""
RETHOUGHT = re.compile(r"^(?:wait|actually|hold on|oh|no wait|hmm?)\b|\bi (?:do|don't)(?: know\b|$)")
"""Words by which a later clause without a name takes back what an earlier one said."""
TURNED = re.compile(
    r"^(?:(?:but|wait|oh|ah|i mean|actually|hold on|sorry|hmm?|well)[, ]+)*no(?:[, ]+(?:sorry|i'm sorry|i'm afraid))*$"
)
"""A bare no after a yes."""
PRONOUN = re.compile(r"\b(?:he|she|him|her|his)\b")
"""Words for the person in question."""
KNOWN = re.compile(r"\b(?:him|her|them)\b|\bnot (?:mine|on (?:my list|mine))\b")
"""Words for the person whom a speaker denies to know; "he" begins a sentence about what the person does."""
US = re.compile(
    r"^(?:(?:oh|ah|and|but|yes) )*we (?:(?:both|all|always|often|usually|still|even|once|sometimes|also"
    r"|have|used to) )*"
    r"(?:(?:lunch|dinner|breakfast|coffee|tea|drinks|classes|a (?:beer|drink|coffee|class|flat|house))\b"
    r"|(?:work|live|play|stud(?:y|i)|share|date|surf|swim|train|hike|cycle|sing|dance|climb|carpool)(?:e?d)?\b"
    r"|(?:go|went) (?:to|back|way|out|\w+ing)\b|grew up\b|met (?!again|nobody|no )|hang out\b|hung out\b"
    r"|[^?]*\b(?:every (?:week|month|year|summer|winter|weekend|\w*day)|on (?:weekends|\w+days))\b)[^?]*$"
)
"""Words about the life that the speaker shares with a person whom the same turn has named."""
ABSENT = re.compile(
    r"\b(?:will|would|could|should|can|must|shall|want|hope|wish|bet|meet|ask|guess|mean|agree|understand|hear|heard"
    r"|said|say|told|tell|thought|think|like|love|am|describe|help|read)\b|\b(?:i'll|i'd|i'm|we'll|let's|we'd)(?!\w)"
)
"""Words by which a stranger speaks of a person."""
FAR = re.compile(
    r"\w(?<!ca)n't\b|\b(?:not|no(?! way)|never|nothing|barely|hardly|scarcely|missing|without)\b|\bcan't (?!believe)"
    r"|\bread about\b|\bin the (?:papers?|news)\b|\bon (?:tv|television|the news|the radio|youtube|instagram)\b"
    r"|\bmy (?:\w+ )?\w+ (?:also |actually )?(?:knows?|knew|met|has met|mentions|mentioned)\b"
)
"""Words of a clause that denies, or that keeps the person at a distance; a clause with them needs a plain yes."""
ANOTHER = re.compile(
    r"\b(?:(?:someone|somebody|anyone|anybody)(?! else)|(?:a|any) friend (?:of mine|of yours who|who|at|in|with)"
    r"|one of (?:my|your) friends"
    r"|one of mine|one who|my friend (?:likes|works|lives|enjoys))\b"
)
"""Words that describe a person instead of naming one: what follows is an answer about that person."""
SOMEBODY_WHO = re.compile(
    rf"(?:{ANOTHER.pattern}|\b(?:any|some) of your friends|\bany friends?) (?:(?:else|who|that|also|either|whom) )*"
    rf"(?:{_TRAIT}|working|living|(?:at|from) (?!(?:this|the|all|my|your|our)\b))"
)
"""Words that ask for a person by a trait."""
ANYONE_YOU_KNOW = re.compile(r"^(?:anyone|anybody|someone|somebody) (?:that )?you\b")
"""A question about a person already named."""
ABOUT_HIM = re.compile(
    r"\b(?:he|him|his|she|her|hers|they|them|that's|that is|it's|it is|the same|that one|one of|together)\b"
)
PLACE_AFTER = re.compile(
    r"^ (?:street|st|road|university|college|school|hotel|hotels|bank|club|park|church|hospital|press|foods|steel"
    r"|motors|city|lane|avenue|station|festival|day|gallery|wedding|airport)\b"
)
