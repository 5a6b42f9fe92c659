"""The words of Wordle: a list of our own of common English words with five letters.

Words of the instructions in prompts, such as `other`, are left out: a hidden word must be in no prompt.
"""

from __future__ import annotations

WORDS: tuple[str, ...] = tuple(
    """
about above actor adult after agent agree ahead alarm album alert alike alive allow alone along among anger angle
angry apart apple apply argue arise armor arrow aside asset audio avoid award aware awful bacon badge badly baker basic
basis beach beard beast begin being below bench berry birth black blade blame blank blast blaze bleed blend bless blind
block blood bloom board boast bonus boost booth bound brain brake brand brave bread break breed brick bride brief bring
broad broom brown brush build built bunch burst buyer cabin cable camel candy canoe cargo carry carve catch cause chain
chair chalk charm chart chase cheap check cheek cheer chess chest chief child chill choir civil claim class clean clear
clerk click cliff climb clock close cloth cloud clown coach coast color comic coral couch cough count court cover crack
craft crane crash crawl crazy cream creek crime crisp cross crowd crown crush crust curve cycle daily dairy dance dealt
death decay delay depth diary dirty doubt dozen draft drain drama dream dress drift drill drink drive drown eager eagle
early earth eight elbow elder elect empty enemy enjoy enter equal error essay event every exact exist extra fable faint
fairy faith false fancy feast fence ferry fever field fifth fifty fight final first flame flash fleet flesh float flock
flood floor flour fluid flute focus force forge forth found frame fresh front frost fruit funny ghost giant given glass
globe glory glove goose grace grade grain grand grant grape grass grave great green greet grief grind group grown guard
guess guest guide habit happy harsh haste heart heavy hedge hello honey honor horse hotel house human humor hurry image
index inner issue jelly jewel joint judge juice knife knock label labor large laser later laugh layer learn least leave
legal lemon level light limit linen liver local lodge logic loose lower loyal lucky lunch magic major maple march marry
match mayor meant medal melon mercy merit metal meter midst might minor mixed model money month moral motor mount mouse
mouth movie music nerve never night noble noise north novel nurse occur ocean offer often olive onion opera orbit
order outer owner paint panel panic paper party pasta patch pause peace peach pearl phone photo piano piece pilot
pitch place plain plane plant plate point polar porch pound power press price pride prime print prize proof proud pupil
queen quick quiet quite radio raise range rapid ratio reach ready rebel relax reply rider right rigid rival river roast
robin robot rough round route royal ruler rural salad sauce scale scare scarf scene scent scope score scout screw sense
serve seven shade shake shape share shark sharp sheep sheet shelf shell shine shirt shock shoot shore shout shown
sight silly since skill skirt sleep slice slide slope small smart smell smile smoke snake solid solve sorry sound
south space spare speak speed spell spend spice spoon sport staff stage stair stake stamp stand start state steak steal
steam steel steep stick stiff still stone store storm story stove straw strip study stuff style sugar sunny sweet swift
swing sword table taste teach tease tenth thank their theme thick thief thing think third thorn those three throw thumb
tiger tight tired title toast today token tooth topic torch total touch tough towel tower toxic trace track trade trail
train treat trend trial tribe trick troop truck truly trunk trust truth tulip twice twist uncle under union unite until
upper upset urban usual valid value video visit vital voice voter wagon waist waste watch water weary weigh wheat wheel
where which while white whole widow woman world worry worse worth wound wrist wrong yield young youth zebra
    """.split()
)
"""In the order of the alphabet."""
