"""The cities of guess my city: a list of our own, with what people there can tell about them without the name.

The sea is the one at which the city or its harbour lies; a river is named where it flows through the city and is well
known; `none` means neither. `largest` is what is usually called the largest city of the country.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

QUESTIONS: Mapping[str, str] = {
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
    return dict(_read())


def _read() -> Iterator[tuple[str, Mapping[str, str]]]:
    continent = ""
    for line in CITIES.strip("\n").splitlines():
        if not line.startswith(" "):
            continent = line
            continue
        name, _, listed = line.strip().partition(": ")
        country, sea, river, *flags = [part.strip() for part in listed.split(",")]
        true = " ".join(flags).split()
        yield (
            name,
            {
                "continent": continent,
                "country": country,
                "sea": sea,
                "river": river,
                "capital": "yes" if "capital" in true else "no",
                "largest": "yes" if "largest" in true else "no",
                "half": "south" if "south" in true else "north",
            },
        )
