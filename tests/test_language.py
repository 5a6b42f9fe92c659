"""Which lines are in another language than a scenario's: those of pupils, with names, shorthand and misspellings."""

from __future__ import annotations

import pytest

from localsim.conversation.transcript import Action, Turn
from localsim.families import language
from localsim.scenarios.find import shipped

ENGLISH = """
my friend is desmond, he likes mountain biking
nah. mine r karin and bianca. do u know anybody with calligraphy?
yes! jasper and salma
jasper from union?
yes jasper thats him
also do u know gideon?
hi do u know anyone from valley dairy?
hey, do u know karin from prisma optics
no i dont no karin
do yuo know someone who liks juggling?
any1 at tidal power??
ye desmond harbour foods
nope not desmond, ursula?
ursula likes juggling rite
omg yes its jasper
kk so jasper it is lol
i got 3 ppl at prisma optics
wat about soren, surfing
sry dont know soren
do u have a freind from granite insurance
idk, maybe bianca?
my ppl r damian n salma
mountain biking?? thats desmond i think
thx bye
gideon or oscar
who works in union textiles
yeah salma calligraphy union textiles
u know karin??
ok so is it karin then
i no jasper he is at union textiles
wanna say beatrix
ur friend likes surfing?
can u do 40 dolar for the desk
60 is to much, 45?
nah bro 50 last offer
deal, 55 cash
is the bike stil available m8
i wil take it 4 70
how much 4 the lamp
gimme ur best price pls
"""
"""Forty lines that are English. The first seven are from a class whose talks were thrown away."""

GERMAN = """
Kennst du vielleicht auch Jasper?
kennst du jemanden der gerne klettert
ja den kenn ich auch
nein, kenne ich leider nicht
wer von deinen freunden arbeitet bei union textiles
mein freund heißt desmond und er mag mountain biking
hast du wen bei prisma optics
ich glaub wir haben karin gemeinsam
und was ist mit ursula?
weiß ich nicht, sag du mal
okay dann nehmen wir jasper
ne der arbeitet woanders
ich geb dir 40 euro für das fahrrad
das ist mir zu teuer
kannst du noch runter gehen
"""
SPANISH = """
conoces a alguien de valley dairy?
si, lo conozco, es mi amigo
no, no lo conozco
mi amigo se llama desmond y le gusta el surf
tienes algun amigo que trabaja en union textiles
quien es tu amigo?
yo creo que es karin
pues entonces jasper, vale
cuanto cuesta la bici
te doy 40 euros por ella
es muy caro para mi
a quien le gusta la caligrafia
perdona, no te entiendo nada
"""
FRENCH = """
tu connais quelqu'un chez valley dairy ?
oui je le connais aussi
non je ne connais pas karin
mon ami s'appelle desmond et il aime le surf
qui travaille chez union textiles ?
je crois que c'est jasper
est ce que tu connais ursula
ok alors on dit jasper
c'est trop cher pour moi
je te donne 40 euros pour le velo
j'ai trois amis qui aiment le surf
et toi t'as qui ?
"""
SHORT = 12
"""A line with fewer letters may stay undecided."""
NAMED = shipped()["mutual_friends_01"].scenario
"""The scenario that the lines name people, hobbies and companies of."""


@pytest.mark.parametrize("line", ENGLISH.strip().splitlines())
def test_english_as_pupils_type_it_is_english(line: str) -> None:
    assert not language.is_foreign(line, "en", language.words_in(NAMED)), "beside its scenario"
    assert not language.is_foreign(line, "en"), "alone"


@pytest.mark.parametrize("line", "".join((GERMAN, SPANISH, FRENCH)).strip().splitlines())
def test_german_spanish_and_french_are_found(line: str) -> None:
    assert sum(map(str.isalpha, line)) < SHORT or language.is_foreign(line, "en", language.words_in(NAMED))


@pytest.mark.parametrize(("lines", "foreign"), [(ENGLISH, False), (GERMAN, True), (SPANISH, True), (FRENCH, True)])
def test_a_talk_is_thrown_away_for_foreign_words_alone(lines: str, foreign: bool) -> None:
    said = lines.strip().splitlines()
    for start in range(len(said) - 3):
        turns = [
            Turn(place, NAMED.names[0], Action("speak", line)) for place, line in enumerate(said[start : start + 4])
        ]
        assert language.has_foreigner(turns, NAMED) is foreign, said[start : start + 4]


@pytest.mark.parametrize(
    ("words", "foreign"),
    [
        ("Jasper? Karin? Desmond? Ursula? Soren?", False),
        ("jaspr wrks at uniun texstiles", False),
        ("znasz może kogoś kto lubi góry", True),
        ("ты знаешь джаспера?", True),
        ("你认识卡琳吗", True),
        ("sen jasper'i tanıyor musun acaba", True),
        ("hab nur desmond und ursula", True),
    ],
)
def test_names_and_misspelt_words_are_no_evidence_and_other_scripts_are(words: str, foreign: bool) -> None:
    assert language.is_foreign(words, "en", language.words_in(NAMED)) is foreign


def test_english_is_found_in_a_talk_that_is_to_be_german() -> None:
    assert language.is_foreign("do you know anyone who likes surfing", "de")
    assert not language.is_foreign("kennst du wen der gern surft, evtl. jasper", "de")


@pytest.mark.parametrize(
    ("said", "foreign"),
    [
        (("hallo! hast du freunde die fechten?", "yes tidal power, is it hamid?"), False),
        (("hallo! hast du freunde die fechten?", "ja, kenne ich auch", "yes tidal power, is it hamid?"), True),
        (("hallo! hast du freunde die fechten?", "ok"), True),
        (("do you know anyone who fences?", "ja klar", "yes tidal power, is it hamid?"), False),
    ],
)
def test_one_foreign_line_beside_one_in_the_language_throws_no_talk_away(said: tuple[str, ...], foreign: bool) -> None:
    turns = [Turn(place, NAMED.names[0], Action("speak", line)) for place, line in enumerate(said)]
    assert language.has_foreigner(turns, NAMED) is foreign


@pytest.mark.parametrize(
    ("german", "foreign"),
    [((1,), False), ((1, 3), True), ((0, 2, 3), True)],
)
def test_a_single_line_of_a_talk_throws_it_not_away(german: tuple[int, ...], foreign: bool) -> None:
    own, other = "do you know anyone who fences?", "kenn ich nicht, was ist mit hamid?"
    turns = [
        Turn(place, NAMED.names[place % 2], Action("speak", other if place in german else own)) for place in range(4)
    ]
    assert language.has_foreigner(turns, NAMED) is foreign
    assert language.has_foreigner(turns[:3], NAMED) is (len([place for place in german if place < 3]) > 1)
    assert language.has_foreigner(turns[:2], NAMED) is (german != ()), "one of two"
    short = [*turns[:3], Turn(3, NAMED.names[1], Action("leave", "hamid"))]
    assert language.has_foreigner(short, NAMED) is (0 in german and 2 in german), "a name is in no language"
