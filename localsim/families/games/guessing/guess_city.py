"""Guess my city (LMRL-Gym, arXiv 2311.18232): the home of another person is found by questions, also open ones.

The return is minus the number of questions before the one that names the city, and -20 if none does. Answers are in
words. The rules read those to the questions of the list; other questions are allowed, and their answers not checked.

The cities are a list of our own, with what people there can tell about them without the name. The sea is the one at
which the city or its harbour lies; a river is named where it flows through the city and is well known; `none` means
neither. `largest` is what is usually called the largest city of the country.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.guessing.naming import QUESTIONS, Naming
from localsim.families.terms import utters

ASKED: Mapping[str, str] = {
    "continent": "Which continent are you from?",
    "country": "Which country are you from?",
    "sea": "Which sea is your city at?",
    "river": "Which river flows through your city?",
    "capital": "Is your city the capital?",
    "largest": "Is your city the largest one of the country?",
    "half": "Is your city north or south of the equator?",
}
"""What is asked -> the open question about it."""
CITIES = """
Europe
 Paris: France, none, Seine, capital largest
 Marseille: France, Mediterranean, none
 Lyon: France, none, Rhone
 Bordeaux: France, none, Garonne
 London: United Kingdom, none, Thames, capital largest
 Liverpool: United Kingdom, Irish Sea, Mersey
 Glasgow: United Kingdom, none, Clyde
 Dublin: Ireland, Irish Sea, Liffey, capital largest
 Berlin: Germany, none, Spree, capital largest
 Hamburg: Germany, none, Elbe
 Munich: Germany, none, Isar
 Cologne: Germany, none, Rhine
 Frankfurt: Germany, none, Main
 Vienna: Austria, none, Danube, capital largest
 Salzburg: Austria, none, Salzach
 Zurich: Switzerland, none, Limmat, largest
 Bern: Switzerland, none, Aare, capital
 Basel: Switzerland, none, Rhine
 Amsterdam: Netherlands, none, Amstel, capital largest
 Rotterdam: Netherlands, North Sea, Meuse
 Madrid: Spain, none, Manzanares, capital largest
 Barcelona: Spain, Mediterranean, none
 Seville: Spain, none, Guadalquivir
 Lisbon: Portugal, Atlantic, Tagus, capital largest
 Porto: Portugal, Atlantic, Douro
 Rome: Italy, none, Tiber, capital largest
 Naples: Italy, Mediterranean, none
 Venice: Italy, Adriatic, none
 Florence: Italy, none, Arno
 Turin: Italy, none, Po
 Athens: Greece, Mediterranean, none, capital largest
 Prague: Czech Republic, none, Vltava, capital largest
 Budapest: Hungary, none, Danube, capital largest
 Belgrade: Serbia, none, Danube, capital largest
 Warsaw: Poland, none, Vistula, capital largest
 Gdansk: Poland, Baltic, none
 Wroclaw: Poland, none, Oder
 Stockholm: Sweden, Baltic, none, capital largest
 Oslo: Norway, Skagerrak, none, capital largest
 Bergen: Norway, North Sea, none
 Copenhagen: Denmark, Baltic, none, capital largest
 Helsinki: Finland, Baltic, none, capital largest
 Reykjavik: Iceland, Atlantic, none, capital largest
 Moscow: Russia, none, Moskva, capital largest
 Saint Petersburg: Russia, Baltic, Neva
 Kyiv: Ukraine, none, Dnipro, capital largest
 Odesa: Ukraine, Black Sea, none
Asia
 Istanbul: Turkey, Sea of Marmara, none, largest
 Ankara: Turkey, none, none, capital
 Baghdad: Iraq, none, Tigris, capital largest
 Tehran: Iran, none, none, capital largest
 Kabul: Afghanistan, none, none, capital largest
 Mumbai: India, Arabian Sea, none
 Kolkata: India, none, Hooghly
 Agra: India, none, Yamuna
 Varanasi: India, none, Ganges
 Karachi: Pakistan, Arabian Sea, none, largest
 Lahore: Pakistan, none, Ravi
 Dhaka: Bangladesh, none, none, capital largest
 Kathmandu: Nepal, none, none, capital largest
 Bangkok: Thailand, none, Chao Phraya, capital largest
 Hanoi: Vietnam, none, Red River, capital
 Manila: Philippines, South China Sea, none, capital
 Beijing: China, none, none, capital
 Shanghai: China, East China Sea, Huangpu, largest
 Wuhan: China, none, Yangtze
 Hong Kong: China, South China Sea, none
 Harbin: China, none, Songhua
 Seoul: South Korea, none, Han, capital largest
 Tokyo: Japan, Pacific, Sumida, capital largest
 Osaka: Japan, Pacific, Yodo
 Hiroshima: Japan, Pacific, Ota
Africa
 Cairo: Egypt, none, Nile, capital largest
 Alexandria: Egypt, Mediterranean, none
 Khartoum: Sudan, none, Nile, capital largest
 Casablanca: Morocco, Atlantic, none, largest
 Marrakesh: Morocco, none, none
 Dakar: Senegal, Atlantic, none, capital largest
 Bamako: Mali, none, Niger, capital largest
 Lagos: Nigeria, Atlantic, none, largest
 Luanda: Angola, Atlantic, none, capital largest south
 Kinshasa: Democratic Republic of the Congo, none, Congo, capital largest south
 Nairobi: Kenya, none, none, capital largest south
 Mombasa: Kenya, Indian Ocean, none, south
 Johannesburg: South Africa, none, none, largest south
 Durban: South Africa, Indian Ocean, none, south
North America
 New York: United States, Atlantic, Hudson, largest
 Washington: United States, none, Potomac, capital
 Boston: United States, Atlantic, Charles
 Chicago: United States, none, none
 New Orleans: United States, none, Mississippi
 Los Angeles: United States, Pacific, none
 Philadelphia: United States, none, Delaware
 Toronto: Canada, none, none, largest
 Montreal: Canada, none, Saint Lawrence
 Ottawa: Canada, none, none, capital
 Vancouver: Canada, Pacific, Fraser
 Havana: Cuba, Caribbean, none, capital largest
South America
 Rio de Janeiro: Brazil, Atlantic, none, south
 Manaus: Brazil, none, Amazon, south
 Lima: Peru, Pacific, Rimac, capital largest south
 Cusco: Peru, none, none, south
 Buenos Aires: Argentina, Atlantic, Rio de la Plata, capital largest south
 Santiago: Chile, none, Mapocho, capital largest south
Oceania
 Sydney: Australia, Pacific, Parramatta, largest south
 Perth: Australia, Indian Ocean, Swan, south
 Melbourne: Australia, none, Yarra, south
 Auckland: New Zealand, Pacific, none, largest south
"""


def cities() -> Mapping[str, Mapping[str, str]]:
    """Return city -> what is asked -> the answer."""
    found, continent = {}, ""
    for line in CITIES.strip("\n").splitlines():
        if not line.startswith(" "):
            continent = line
            continue
        name, _, listed = line.strip().partition(": ")
        country, sea, river, *flags = (part.strip() for part in listed.split(","))
        true = " ".join(flags).split()
        capital, largest = ("yes" if flag in true else "no" for flag in ("capital", "largest"))
        half = "south" if "south" in true else "north"
        found[name] = dict(zip(ASKED, (continent, country, sea, river, capital, largest, half), strict=True))
    return found


class GuessCity(Naming):
    """One comes from a city, the other finds out which one by questions."""

    name, version = "guess_city", "1"
    title = "Guess my city"
    about = "One person comes from a city of the world; the other asks questions of any kind to find out which one."
    how = (
        "The return is minus the questions before the one that names the city. Who answers must not say the name; "
        "the report counts it."
    )
    tries: Sequence[str] = (
        "Compare -m scripted:halving with -m scripted:lister: open questions need few turns.",
        "Let -m scripted:gives-away answer, and see the measure for names that are given away.",
        "Compare agents with mindreaders: how often is the first name right beyond chance?",
    )
    bundled = {
        "world": {},
        "ten": {"listed": 10},
        "twenty": {"listed": 20},
        "forty": {"listed": 40, "questions": 10},
        "hurry": {"questions": 5},
    }
    kind = "city"
    asked = ASKED
    things = cities()
    measures = (
        *Naming.measures,
        g.share(
            "given_away", "given away", "share of conversations in which the name is given away", summed="episodes"
        ),
    )
    controls = (
        *Naming.controls,
        g.exactly("halving", "given_away", 0, "it answers without the name"),
        g.exactly("gives-away", "given_away", 1, "its first answer is the name", modes=("agents",)),
        g.exactly("gives-away", "return", -1, "the first answer is the name", modes=("agents",)),
        g.by_chance("lister", "success_rate", QUESTIONS / len(things), "it names 20 of all cities"),
        g.by_chance("names-any", "success_rate", QUESTIONS / len(things), "it names 20 of all cities"),
    )

    def setting(self, asker: str, answerer: str, chosen: Mapping[str, Any]) -> str:
        return (
            f"{answerer} comes from a large or well-known city. {asker} asks at most {chosen['questions']} questions "
            f"about it, and {answerer} answers without its name. {asker} wins by naming the city in a question."
        )

    def fact(self, answerer: str, meant: str) -> str:
        return f"{answerer} comes from {meant}."

    def answer_move(self, answerer: str) -> g.Move:
        return g.Move(name="answer", by=(answerer,), text="must", tell="To answer in a few words")

    def reply(self, value: str) -> g.Action:
        return g.move("answer", text=f"{value[0].upper()}{value[1:]}.")

    def read(self, key: str, reply: g.Turn) -> str | None:
        text = reply.action.text.casefold()
        values = {"yes", "no"} if key.startswith("=") else {thing[key] for thing in self.things.values()}
        found = (value for value in sorted(values, key=len, reverse=True) if utters(text, value))
        return next(found, None)

    def score(self, transcript: g.Transcript, scenario: g.Scenario, answer: g.AnswerKey) -> list[g.Score]:
        said = tuple(turn.index for turn in transcript.of("answer") if utters(turn.action.text, scenario.game["meant"]))
        return [*super().score(transcript, scenario, answer), g.Score("given_away", float(bool(said)), turns=said)]

    def still(self, seen: g.Observation) -> list[str]:
        """Return the cities that fit; only the one whose name an answer gave away, if any did."""
        answers = [turn.action.text for turn in seen.transcript.of("answer")]
        said = [city for city in self.things if any(utters(text, city) for text in answers)]
        return said[:1] or super().still(seen)

    def gives_away(self, seen: g.Observation, rng: random.Random) -> g.Action:
        """Answer every question with the name of the city; ask like `halving`."""
        if seen.may("ask"):
            return self.halving(seen, rng)
        return g.move("answer", text=f"I am from {self.seen_meant(seen)}.")


_GAME = GuessCity()
GuessCity.players = {**_GAME.its_players(), "gives-away": _GAME.gives_away}
GuessCity.sensible = "halving"
