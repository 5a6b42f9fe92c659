"""The films of the game `films`, and the search that accepts a generated game only if questions solve it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import combinations

from localsim.families.games.base import Fact, InvalidInput

ASPECTS: Mapping[str, tuple[str, ...]] = {
    "genre": ("comedy", "drama", "thriller", "western"),
    "mood": ("calm", "funny", "sad", "tense"),
    "age": ("new", "old"),
    "length": ("long", "short"),
}
TITLES = (
    "Nine Lanterns", "The Salt Road", "Harbour Lights Out", "A Piano for Vera", "Dust and Honey", "The Quiet Clerk",
    "Seven Keys", "Marble Street", "The Fox at Noon", "Letters to Oslo", "Under Glass Stars", "The Last Ferryman",
    "Copper Winter", "My Uncle the Spy", "Rain on Tuesday", "The Orchard Bell", "Two Left Shoes", "Night Bakery",
    "The Map of Ida", "Velvet Canyon",
)  # fmt: skip
Film = tuple[str, ...]
"""The properties of a film, in the order of ASPECTS."""


def solve(films: Mapping[str, Film], target: str, turns: int) -> tuple[str, ...] | None:
    """Return the fewest questions that single out a film within the turns; None if no questions do."""
    for count in range(len(ASPECTS) + 1):
        for places in combinations(range(len(ASPECTS)), count):
            same = [film for film in films.values() if all(film[n] == films[target][n] for n in places)]
            if len(same) == 1 and 2 * count + 2 <= turns:
                return tuple(list(ASPECTS)[n] for n in places)
    return None


def films_of(facts: Sequence[Fact]) -> dict[str, Film]:
    """Return the films that facts describe: title -> properties."""
    found = {}
    for fact in facts:
        words = fact.text.rsplit(" is ", 1)[1].rstrip(".").split(" ")
        found[fact.terms[0]] = tuple(next((o for o in options if o in words), "") for options in ASPECTS.values())
    return found


def described(title: str, film: Film) -> str:
    """Return the sentence about a film that `films_of` reads."""
    genre, mood, age, length = film
    return f"{title} is {'an' if age == 'old' else 'a'} {age} {length} {mood} {genre}."


def solvable(rng: random.Random, count: int, turns: int) -> tuple[dict[str, Film], str, tuple[str, ...]]:
    """Return films and one of them that the search finds. Raises InvalidInput."""
    for _ in range(100):
        titles = rng.sample(TITLES, count)
        films = {title: tuple(rng.choice(options) for options in ASPECTS.values()) for title in titles}
        target = rng.choice(titles)
        needed = solve(films, target, turns)
        if needed is not None:
            return films, target, needed
    raise InvalidInput(f"films: no questions single out one of {count} films in {turns} turns", hint="more turns")
