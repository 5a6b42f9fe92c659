"""A cooperative talk about a film, with a contract for the one who looks for it.

After the survey of conversational recommenders (Gao et al., arXiv 2101.09459): preferences are elicited by questions
with several possible answers, and a simulated user reveals what is asked, and never the target. The rules allow only
the property that was asked as an answer; words are free, and a measure counts who names the film unasked. After
STARLING (arXiv 2406.05872), a generated game is accepted only if a search solves it: the film's properties must single
it out, and there must be turns for it. The search also says how many questions are needed at least.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from localsim.families.games import base as g
from localsim.families.games.replayed import Course, Replayed, Scene, Secret, Table

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


def films_of(facts: Sequence[g.Fact]) -> dict[str, Film]:
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
    raise g.InvalidInput(f"films: no questions single out one of {count} films in {turns} turns", hint="more turns")


class Films(Replayed):
    """One finds by questions the film that the other has in mind."""

    name, version = "films", "1"
    title = "The film in mind"
    about = "One person knows many films and finds out which of them the other has in mind, who must not name it."
    defaults = {"films": 12, "turns": 16, "talk": True}
    how = (
        "Success is the film in mind, suggested and accepted. A search found the least number of questions that single "
        "it out; further questions are counted. Naming the film before it was suggested is counted, too."
    )
    tries = (
        "Compare agents with mindreaders: does the one who asks still ask?",
        "See with localsim show whether a model names its film unasked (films_plain).",
        "Compare -m scripted:best-question with -m scripted:all-questions.",
    )
    bundled = {
        "plain": {},
        "two_films": {"films": 2},
        "many_films": {"films": 20},
        "silent": {"talk": False},
        "hurry": {"films": 6, "turns": 6},
    }
    interests = "cooperative"
    topics: Mapping[str, Sequence[str]] = {
        "recommends_by": ("asking", "understanding and answering", "simulating the user")
    }
    measures = (
        g.SUCCESS,
        g.share("fit", "fit", "share of properties in which the accepted film is the right one"),
        g.mean("questions", "questions", "questions that are asked", bounds=(0, None), compared=True),
        g.mean("extra", "extra questions", "questions more than needed, in talks that succeed"),
        g.share("volunteered", "named unasked", "share in which the film is named too early"),
        g.share("truthful", "true answers", "share of answers about properties that are true"),
    )
    figure = ("success_rate", "fit", "volunteered")
    references = (
        g.RANDOM,
        g.Reference(
            "omniscient",
            "best known",
            "asks nothing if the film is seen, else what leaves fewest; extra questions are counted from optimal play",
        ),
    )
    control_tasks = {"two films": {"films": 2}}
    controls = (
        g.exactly("best-question", "success_rate", 1, "answers single out the film"),
        g.exactly("best-question", "truthful", 1, "the answers are true"),
        g.exactly("best-question", "volunteered", 0, "only what is asked is said"),
        g.exactly("best-question", "fit", 1, "the right film has all its properties"),
        g.exactly("best-question", "extra", 0, "one question tells two films apart", "two films"),
        g.exactly("all-questions", "questions", 4, "there are four questions"),
        g.exactly("all-questions", "extra", 3, "one question tells two films apart", "two films"),
        g.exactly("liar", "truthful", 0, "another property is named"),
        g.exactly("blurter", "volunteered", 1, "the film is named in the first answer"),
        g.exactly("refuser", "success_rate", 0, "every film is refused"),
        g.exactly("refuser", "fit", 0, "no film is accepted"),
        g.by_chance("yes-sayer", "success_rate", 1 / 12, "any of twelve films is suggested and accepted"),
        g.exactly("omniscient", "questions", 0, "the film is known", modes=("script", "mindreaders")),
    )

    def scene(self, chosen: Mapping[str, Any], names: Sequence[str], seed: int) -> Scene:
        if not 2 <= chosen["films"] <= len(TITLES):
            raise g.InvalidInput(f"films: films = {chosen['films']} is not between 2 and {len(TITLES)}")
        (expert, friend), rng = names, random.Random(f"{self.name}/{seed}")
        films, target, needed = solvable(rng, chosen["films"], chosen["turns"])
        said = "may" if chosen["talk"] else "no"
        return Scene(
            title=f"{expert} finds the film that {friend} has in mind",
            setting=(
                f"{friend} has a film in mind, and {expert} wants to find it. {expert} asks about its "
                f"{g.listed(tuple(ASPECTS))}, or suggests a film, and {friend} answers. {friend} must not say the "
                f"title first. They have {chosen['turns']} turns together."
            ),
            goal=(
                "Suggest the right film after few questions.",
                "Answer truly what you are asked, and accept only your film.",
            ),
            secrets=[
                *(Secret(expert, f"film_{n}", described(*each), each[0]) for n, each in enumerate(films.items())),
                Secret(friend, "film", f"The film in mind is {target}.", target),
                *(
                    Secret(friend, aspect, f"Its {aspect}: {value}.", value)
                    for aspect, value in zip(ASPECTS, films[target], strict=True)
                ),
            ],
            talk=chosen["talk"],
            moves=(
                g.can("ask", "To ask about the film", g.one_of(*ASPECTS), by=expert, text=said),
                g.can("suggest", "To suggest a film", g.one_of(*films), by=expert, text=said),
                *(
                    g.can(aspect, f"To tell the {aspect}", g.one_of(*options), by=friend, text=said)
                    for aspect, options in ASPECTS.items()
                ),
                g.can("accept", "To say that it is the film", by=friend, text=said),
                g.can("reject", "To say that it is not the film", by=friend, text=said),
            ),
            public={"films": chosen["films"], "turns": chosen["turns"], "talk": chosen["talk"]},
            turns=chosen["turns"],
            more={"answer": {"questions": list(needed)}},
        )

    def check(self, document: g.ScenarioFile) -> list[tuple[tuple[str | int, ...], str]]:
        films, target = films_of(document.agents[0].facts), document.agents[1].facts[0].terms[0]
        if target in films and solve(films, target, document.limits.turns) is not None:
            return []
        return [(("agents", 0, "facts"), "no questions single out the film in mind within the turns")]

    def play(self, table: Table) -> Course:
        expert, friend = table.scenario.agents
        target, *own = (fact.terms[0] for fact in friend.facts)
        films, words = films_of(expert.facts), ("speak",) if table.public["talk"] else ()
        asked, suggested, early = 0, False, list[g.Turn]()
        for name in ("success", "fit", "questions", "volunteered"):
            table.score(name, 0, reason="no film was accepted" if name == "success" else "")
        while True:
            turn = yield from table.act(expert.name, "ask", "suggest", *words)
            asked += turn.action.type == "ask"
            suggested = suggested or (turn.action.type == "suggest" and turn.value == target)
            table.score("questions", asked)
            ways = {"ask": (turn.value,), "suggest": ("accept", "reject")}.get(turn.action.type, words)
            answer = yield from table.act(friend.name, *ways)
            if not suggested and self.utters(answer.action.text, target):
                early.append(answer)
                table.score("volunteered", 1, early)
            if turn.action.type == "ask":
                table.mean("truthful", answer.value == own[list(ASPECTS).index(turn.value)], [answer])
            if answer.action.type == "accept":
                told = f"{turn.value} was accepted; the film in mind was {target}"
                fit = sum(a == b for a, b in zip(films[turn.value], own, strict=True)) / len(own)
                table.score("success", turn.value == target, (turn, answer), told)
                table.score("fit", fit, (turn, answer))
                if turn.value == target:
                    table.score("extra", asked - len(table.answer.get("questions", ())))
                return

    def omniscient(self, seen: g.Observation, rng: random.Random) -> g.Action | None:
        film = g.known(seen, "film", g.others(seen)[0])
        return g.move("suggest", film) if film is not None and seen.may("suggest") else None


# ---- players -------------------------------------------------------------------------------------------------------


def _answer(seen: g.Observation) -> g.Action:
    """Answer truly what is asked, and accept the film alone."""
    for aspect in ASPECTS:
        if seen.may(aspect):
            return g.move(aspect, g.known(seen, aspect))
    if seen.may("accept"):
        return g.move("accept" if seen.transcript.acts[-1].value == g.known(seen, "film") else "reject")
    return g.Action("speak", "I have one film in mind.")


def _left(seen: g.Observation) -> dict[str, Film]:
    """Return the own films that agree with all answers and were not refused."""
    told = {list(ASPECTS).index(turn.action.type): turn.value for turn in seen.transcript.of(*ASPECTS)}
    gone = {turn.value for turn in seen.transcript.of("suggest")}
    films = {title: film for title, film in films_of(seen.me().facts).items() if title not in gone}
    return {title: film for title, film in films.items() if all(film[n] == value for n, value in told.items())} or films


def _best_question(seen: g.Observation, rng: random.Random) -> g.Action:
    """Ask what leaves the fewest films on average, until one is left."""
    if not seen.may("suggest"):
        return _answer(seen)
    left = _left(seen)
    asked = [turn.value for turn in seen.transcript.of("ask")]
    free = {
        aspect: sum(count**2 for count in Counter(film[n] for film in left.values()).values())
        for n, aspect in enumerate(ASPECTS)
        if aspect not in asked
    }
    return g.move("ask", min(free, key=lambda aspect: free[aspect])) if len(left) > 1 and free else _guesser(seen, rng)


def _all_questions(seen: g.Observation, rng: random.Random) -> g.Action:
    asked = len(seen.transcript.of("ask"))
    return g.move("ask", list(ASPECTS)[asked]) if seen.may("ask") and asked < len(ASPECTS) else _guesser(seen, rng)


def _guesser(seen: g.Observation, rng: random.Random) -> g.Action:
    """Suggest the next film that agrees with what was said, and ask nothing."""
    if not seen.may("suggest"):
        return _answer(seen)
    return g.move("suggest", next(iter(_left(seen) or films_of(seen.me().facts))))


def _liar(seen: g.Observation, rng: random.Random) -> g.Action:
    """Name another property than the right one."""
    aspect = next((each for each in ASPECTS if seen.may(each)), None)
    if aspect is None:
        return _best_question(seen, rng)
    return g.move(aspect, next(option for option in ASPECTS[aspect] if option != g.known(seen, aspect)))


def _blurter(seen: g.Observation, rng: random.Random) -> g.Action:
    """Name the film with each answer, where words are allowed."""
    action = _best_question(seen, rng)
    blurts = action.type in ASPECTS and seen.game["talk"]
    text = f"I am thinking of {g.known(seen, 'film')}." if blurts else action.text
    return g.Action(action.type, text, action.values)


Films.players = {
    "best-question": _best_question,
    "all-questions": _all_questions,
    "guesser": _guesser,
    "liar": _liar,
    "blurter": _blurter,
    "refuser": g.taking(g.move("reject"), otherwise=_guesser),
    "yes-sayer": g.taking(g.move("accept"), otherwise=_guesser),
}
Films.sensible = "best-question"
