"""Words from which families make scenarios: names, jobs, hobbies, goods. Data, and one function that draws a person."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from localsim.conversation.scenario import Profile

FIRST_NAMES = (
    "Abena Adrian Agnes Ahmed Aisha Alba Alfred Alina Amir Anders Anika Anton Astrid Basil Beatrix Benoit "
    "Bianca Boris Brigid Bruno Camila Caspar Cecily Chidi Clement Cora Cyrus Dalia Damian Daphne Darius Delia "
    "Desmond Dinah Edith Egon Eleni Elias Elodie Emeka Esther Ewan Fatima Felix Fiona Florian Freya Gareth "
    "Gemma Gideon Greta Gustav Hamid Hanna Harriet Hector Helga Hiroshi Ida Idris Imogen Ingrid Ismail Isolde "
    "Ivan Jasper Joanna Jonas Judith Julius Kamal Karin Kenji Kerstin Khalid Klara Kofi Lars Leila Leonie "
    "Lionel Lorenz Lucia Ludmila Magnus Malik Marek Marit Matilda Mehmet Mina Moira Nadia Naomi Nestor Nils "
    "Noor Odile Olga Omar Oscar Otto Pablo Paloma Pascal Petra Quentin Rafael Ramona Renata Rhoda Rufus Sabine "
    "Salma Selim Sigrid Silas Soren Stefan Sunita Sylvie Tamara Tariq Tobias Ulrich Ursula Valerie Viktor "
    "Vincent Wanda Wilfred Xenia Yara Yusuf Zelda Zoran"
).split()

OCCUPATIONS = (
    "nurse, bus driver, carpenter, translator, teacher, baker, accountant, gardener, librarian, electrician, "
    "pharmacist, journalist, plumber, architect, cook, surveyor, optician, tailor"
).split(", ")
HOBBIES = (
    "surfing, chess, baking, archery, bird watching, pottery, sailing, knitting, fencing, juggling, astronomy, "
    "skateboarding, gardening, rock climbing, calligraphy, rowing, beekeeping, mountain biking"
).split(", ")
COMPANIES = (
    "Harbour Foods, Maple Press, Nordic Steel, Blue Lantern, Oakfield Bank, Prisma Optics, Redwood Motors, "
    "Silverline Rail, Tidal Power, Union Textiles, Valley Dairy, Westgate Hotels, Cobalt Games, Delta Freight"
).split(", ")
TOWNS = "Ashford, Brookhaven, Carmel, Dunmore, Eastvale, Fairport, Glenrock, Hollybrook, Kingsbury".split(", ")
MEETINGS = (
    "at a birthday party, at a housewarming, at a wedding reception, at a neighbourhood barbecue, at a conference "
    "dinner, at a gallery opening, at a garden party, on a delayed train, in the queue of a food stall, in a "
    "language class"
).split(", ")
GOODS = (
    ("road bike", "a light aluminium frame, new tyres, a few scratches", 80, 600),
    ("oak bookshelf", "five shelves, solid wood, one small dent", 40, 250),
    ("acoustic guitar", "a warm sound, a soft case included", 60, 400),
    ("espresso machine", "two years old, descaled every month", 50, 350),
    ("sewing machine", "all feet and the manual are there", 40, 220),
    ("kayak", "one seat, paddle included, stored indoors", 120, 700),
    ("desk lamp", "brass, rewired last year", 15, 90),
    ("record player", "a new needle, the lid is a little yellow", 40, 260),
    ("leather armchair", "soft and worn in, no tears", 60, 380),
    ("mountain tent", "for three people, used twice", 50, 300),
    ("digital piano", "88 weighted keys, stand included", 150, 900),
    ("camera lens", "50 mm, clean glass, both caps", 60, 420),
    ("garden table", "teak, seats six, weathered", 50, 320),
    ("electric scooter", "a range of 20 km, charger included", 100, 500),
    ("vintage typewriter", "all keys work, a fresh ribbon", 40, 240),
    ("pair of skis", "170 cm, bindings checked this winter", 50, 330),
)


@dataclass(frozen=True)
class Vocabulary:
    """The words of one set of scenarios; training and evaluation use different vocabularies."""

    names: Sequence[str] = tuple(FIRST_NAMES)
    occupations: Sequence[str] = tuple(OCCUPATIONS)
    hobbies: Sequence[str] = tuple(HOBBIES)
    companies: Sequence[str] = tuple(COMPANIES)
    towns: Sequence[str] = tuple(TOWNS)
    meetings: Sequence[str] = tuple(MEETINGS)
    goods: Sequence[tuple[str, str, int, int]] = GOODS


DEFAULT = Vocabulary()


def person(rng: random.Random, name: str, words: Vocabulary) -> Profile:
    """Draw a profile for a generated agent. More fields would only lengthen the prompts of small models."""
    return Profile(
        age=str(rng.randint(19, 74)),
        occupation=rng.choice(words.occupations),
        public_info=f"{name} lives {rng.choice(('alone', 'with two cats', 'with a flatmate', 'with family'))}.",
        personality_and_values=rng.choice(
            (
                "Curious and direct; values honesty.",
                "Friendly and a little shy; values loyalty.",
                "Patient and dry-humoured; values fairness.",
                "Lively and impatient; values independence.",
            )
        ),
    )


def with_article(noun: str) -> str:
    """Return `noun` with a or an, by its first letter."""
    return f"{'an' if noun[0] in 'aeiouAEIO' else 'a'} {noun}"
