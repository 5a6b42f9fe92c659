"""Twenty questions (LMRL-Gym, arXiv 2311.18232): one thinks of an object, the other asks for yes or no.

The return is minus the number of questions before the one that names the object, and -20 if none does. The answerer is
an agent, so answers can be wrong; the list of objects says which are. With N objects no way to ask needs fewer than
log2(N) - 1 questions on average before the naming one, because the questions tell the N objects apart.

The list is our own: 17 kinds with nine objects each, and what is usually true of them: a tomato is red, a coat is warm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.guessing.naming import QUESTIONS, Naming
from localsim.families.vocabulary import with_article

KINDS: Mapping[str, str] = {
    "an animal": "living legs4 furry",
    "a bird": "living flies",
    "a fruit": "eaten sweet plant",
    "a vegetable": "eaten plant",
    "a dish": "eaten",
    "a drink": "liquid",
    "a piece of clothing": "worn cloth soft",
    "a piece of furniture": "home wood",
    "a thing for the kitchen": "home hand",
    "a tool": "metal hand",
    "a vehicle": "big engine",
    "a musical instrument": "sound",
    "an electric device": "electric home",
    "a thing for sports or games": "fun",
    "a thing for the office": "home",
    "a part of nature": "outside",
    "a building": "big outside",
}
"""Kind -> what is true of all its objects, unless an object has it with a minus."""

TRAITS: Mapping[str, str] = {
    "living": "Is it a living being?",
    "plant": "Does it come from a plant?",
    "eaten": "Do people eat it?",
    "sweet": "Is it sweet?",
    "liquid": "Is it liquid?",
    "worn": "Do people wear it?",
    "home": "Is it kept in a house?",
    "hand": "Is it held in the hand when it is used?",
    "outside": "Is it found outside?",
    "fun": "Is it made for fun?",
    "big": "Is it bigger than a person?",
    "pocket": "Does it fit into a pocket?",
    "long": "Is it long and thin?",
    "round": "Is it round?",
    "flat": "Is it flat?",
    "pair": "Does it come in pairs?",
    "metal": "Is it made of metal?",
    "wood": "Is it made of wood?",
    "cloth": "Is it made of cloth?",
    "paper": "Is it made of paper?",
    "glassy": "Is it made of glass?",
    "soft": "Is it soft?",
    "furry": "Does it have fur?",
    "sharp": "Is it sharp?",
    "cuts": "Is it made for cutting?",
    "red": "Is it red?",
    "green": "Is it green?",
    "yellow": "Is it yellow?",
    "white": "Is it white?",
    "black": "Is it black?",
    "hot": "Is it hot when it is used?",
    "cold": "Is it cold?",
    "warm": "Does it keep people warm?",
    "light": "Does it give light?",
    "sound": "Does it make a sound?",
    "electric": "Does it need electricity?",
    "engine": "Does it have an engine?",
    "wheels": "Does it have wheels?",
    "flies": "Can it fly?",
    "water": "Does it have to do with water?",
    "holds": "Do people put things into it?",
    "sits": "Do people sit or lie on it?",
    "legs4": "Does it have four legs?",
    "feet": "Does it go on the feet?",
    "strings": "Does it have strings?",
    "blown": "Do people blow into it?",
    "keys": "Do people press keys on it?",
    "screen": "Does it have a screen?",
    "writes": "Do people write with it?",
    "read": "Do people read it?",
    "kept": "Do farmers keep it?",
    "meat": "Does it eat meat?",
    "horned": "Does it have horns?",
    "africa": "Does it live in Africa?",
    "climbs": "Can it climb?",
    "tree": "Does it grow on a tree?",
    "under": "Does it grow under the ground?",
    "baked": "Is it baked?",
    "many": "Can more than ten people be in it?",
    "sleep": "Do people sleep in it?",
}
"""Trait -> the question about it."""

OBJECTS = """
an animal: dog meat, cat meat climbs, horse big kept, cow big kept horned, pig kept -furry, goat kept horned climbs,
 lion big meat africa, elephant big africa -furry, mouse pocket
a bird: eagle meat, parrot green, penguin water -flies black white, owl meat soft, chicken kept -flies, duck kept
 water, swan water white, crow black, ostrich big africa -flies
a fruit: apple tree round red, banana long yellow, pear tree green, lemon tree yellow -sweet, cherry tree round red
 pocket, strawberry red pocket, grape round pocket, peach tree round, melon round
a vegetable: potato under, carrot under long, onion under round, tomato red round, cucumber green long, pea green
 round pocket, cabbage green round, pumpkin round big, corn yellow
a dish: bread baked, cake baked sweet, cheese cold yellow, rice white hot, soup hot liquid, pizza baked round hot,
 honey sweet liquid yellow, sausage long hot, chocolate sweet
a drink: milk white cold, coffee black hot, tea hot, juice sweet cold plant, beer cold yellow, wine red plant, cocoa
 sweet hot, lemonade sweet cold, whisky yellow
a piece of clothing: hat round, glove pair warm, sock pair feet, shoe pair feet -soft -cloth, coat warm big, skirt
 -soft, belt long -cloth -soft, scarf long warm, shirt
a piece of furniture: chair sits legs4, table legs4 flat, bed sits legs4 soft sleep, sofa sits soft, wardrobe holds
 big, shelf holds, mirror flat glassy -wood, carpet flat soft cloth -wood, curtain soft cloth long -wood
a thing for the kitchen: knife metal sharp cuts long, fork metal sharp, spoon metal, plate round flat, cup holds,
 bowl holds round, bottle holds glassy, pan metal hot round, kettle metal hot holds
a tool: hammer wood, saw sharp cuts, screwdriver long, drill sharp electric, axe sharp cuts wood, ladder big climbs
 -hand, rope long soft -metal, nail pocket sharp -hand, shovel wood long outside
a vehicle: car wheels, bus wheels many, truck wheels holds, bicycle wheels -engine -big, train wheels many holds
 sleep, ship many water holds sleep, canoe water -engine, airplane wheels flies many, helicopter flies
a musical instrument: piano keys big, guitar strings hand, violin strings hand wood, drum round, flute blown long
 hand, trumpet blown metal hand, harp strings big, bell metal, accordion keys hand
an electric device: television screen, computer screen keys, radio sound, camera hand pocket, refrigerator cold
 holds, lamp light, toaster hot, iron hot hand metal, dishwasher water holds
a thing for sports or games: ball round, doll soft, kite flies strings, racket hand strings, skateboard wheels,
 puzzle paper, balloon round flies, sled sits wood, dice pocket
a thing for the office: pen writes pocket hand, pencil writes pocket hand wood, book read paper, stamp paper pocket,
 envelope paper holds flat, eraser pocket soft hand, ruler long flat hand, glue liquid, map read paper flat
a part of nature: oak living wood big plant, rose living plant red, mountain big, river water long big, cloud flies
 white big, sun light hot round big yellow, moon light round big white, snow cold white, rain water
a building: house sleep, school many, castle many sleep, bridge long water, lighthouse light water, tent cloth sleep
 -big, library many read, church many sound, barn wood kept
"""

ALIASES: Mapping[str, str] = {
    "tv": "television", "plane": "airplane", "bike": "bicycle", "fridge": "refrigerator", "couch": "sofa",
    "telly": "television", "rug": "carpet", "mice": "mouse",
}  # fmt: skip
"""Other words for an object -> the object."""


def objects() -> Mapping[str, frozenset[str]]:
    """Return object -> its kind and traits."""
    found = {}
    for line in OBJECTS.strip().replace("\n ", " ").splitlines():
        kind, _, listed = line.partition(": ")
        for entry in listed.split(","):
            name, *own = entry.split()
            missing = {trait[1:] for trait in own if trait.startswith("-")}
            traits = {*KINDS[kind].split(), *(trait for trait in own if not trait.startswith("-"))}
            found[name] = frozenset({kind, *traits} - missing)
    return found


_YES, _NO = "yes", "no"
_ASKED: Mapping[str, str] = {**{kind: f"Is it {kind}?" for kind in KINDS}, **TRAITS}


class TwentyQuestions(Naming):
    """One thinks of an object, the other finds out which one by questions for yes or no."""

    name, version = "twenty_questions", "1"
    title = "Twenty questions"
    about = "One person thinks of an object; the other asks at most twenty questions for yes or no to find it."
    how = (
        "The return is minus the questions before the one that names the object. A first name that is right more often "
        "than the answers allow was known from elsewhere."
    )
    tries: Sequence[str] = (
        "Compare -m scripted:halving with -m scripted:lister: how much are good questions worth?",
        "Compare agents with mindreaders: how often is the first name right beyond chance?",
        "Play it yourself: localsim play twenty_questions_all -m scripted:halving",
    )
    bundled = {
        "all": {},
        "eight": {"listed": 8, "questions": 6},
        "sixteen": {"listed": 16, "questions": 10},
        "thirty": {"listed": 30},
        "hurry": {"questions": 10},
    }
    kind = "object"
    asked = _ASKED
    things = {name: {key: _YES if key in true else _NO for key in _ASKED} for name, true in objects().items()}
    aliases = ALIASES
    controls = (
        *Naming.controls,
        g.by_chance("lister", "success_rate", QUESTIONS / len(things), "it names 20 of all objects"),
        g.by_chance("names-any", "success_rate", QUESTIONS / len(things), "it names 20 of all objects"),
    )

    def setting(self, asker: str, answerer: str, chosen: Mapping[str, Any]) -> str:
        kinds = "" if chosen["listed"] else f" It is {g.listed(list(KINDS), 'or')}."
        return (
            f"{answerer} thinks of an object. {asker} asks at most {chosen['questions']} questions, and {answerer} "
            f"answers yes or no. {asker} wins by naming the object in a question.{kinds}"
        )

    def fact(self, answerer: str, meant: str) -> str:
        return f"The object is: {meant}."

    def answer_move(self, answerer: str) -> g.Move:
        return g.Move(name="answer", by=(answerer,), values=(g.one_of(_YES, _NO),), text="no", tell="To answer")

    def reply(self, value: str) -> g.Action:
        return g.move("answer", value)

    def read(self, key: str, reply: g.Turn) -> str | None:
        return reply.value

    def name_it(self, name: str) -> str:
        return f"Is it {with_article(name)}?"


TwentyQuestions.players = TwentyQuestions().its_players()
TwentyQuestions.sensible = "halving"
