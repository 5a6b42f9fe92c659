"""A cooperative talk about a film, with a contract for the one who looks for it.

After the survey of conversational recommenders (Gao et al., arXiv 2101.09459): preferences are elicited by questions
with several possible answers, and a simulated user reveals what is asked, and never the target. The rules allow only
the property that was asked as an answer; words are free, and a measure counts who names the film unasked. After
STARLING (arXiv 2406.05872), a generated game is accepted only if a search solves it: the film's properties must single
it out, and there must be turns for it. The search also says how many questions are needed at least.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

from localsim.families.games.base import (
    DONE,
    RANDOM,
    SUCCESS,
    Action,
    Agent,
    AnswerKey,
    Any,
    Game,
    InvalidInput,
    Mapping,
    Measure,
    Move,
    Next,
    Observation,
    Reference,
    Scenario,
    ScenarioFile,
    Score,
    Transcript,
    act,
    by_chance,
    exactly,
    known,
    listed,
    merged,
    move,
    names_of,
    one_of,
    others,
    private,
    random,
)
from localsim.families.games.talking.film_search import ASPECTS, TITLES, Film, described, films_of, solvable, solve


class Films(Game):
    """One finds by questions the film that the other has in mind."""

    name, version = "films", "1"
    title = "The film in mind"
    about = "One person knows many films and finds out which of them the other has in mind, who must not name it."
    defaults: Mapping[str, Any] = {"films": 12, "turns": 16, "talk": True}
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
    measures = (
        SUCCESS,
        Measure("fit", "fit", "share of properties in which the accepted film is the right one", "fit", kind="share"),
        Measure("questions", "questions", "questions that are asked", "questions", bounds=(0, None), compared=True),
        Measure("extra", "extra questions", "questions more than needed, in talks that succeed", "extra"),
        Measure(
            "volunteered", "named unasked", "share in which the film is named too early", "volunteered", kind="share"
        ),
        Measure(
            "truthful", "true answers", "share of answers about properties that are true", "truthful", kind="share"
        ),
    )
    figure = ("success_rate", "fit", "volunteered")
    references = (
        RANDOM,
        Reference(
            "omniscient",
            "best known",
            "asks nothing if the film is seen, else what leaves fewest; extra questions are counted from optimal play",
        ),
    )
    control_tasks: Mapping[str, Mapping[str, Any]] = {"two films": {"films": 2}}
    controls = (
        exactly("best-question", "success_rate", 1, "answers single out the film"),
        exactly("best-question", "truthful", 1, "the answers are true"),
        exactly("best-question", "volunteered", 0, "only what is asked is said"),
        exactly("best-question", "fit", 1, "the right film has all its properties"),
        exactly("best-question", "extra", 0, "one question tells two films apart", "two films"),
        exactly("all-questions", "questions", 4, "there are four questions"),
        exactly("all-questions", "extra", 3, "one question tells two films apart", "two films"),
        exactly("liar", "truthful", 0, "another property is named"),
        exactly("blurter", "volunteered", 1, "the film is named in the first answer"),
        exactly("refuser", "success_rate", 0, "every film is refused"),
        exactly("refuser", "fit", 0, "no film is accepted"),
        by_chance("yes-sayer", "success_rate", 1 / 12, "any of twelve films is suggested and accepted"),
        exactly("omniscient", "questions", 0, "the film is known", modes=("script", "mindreaders")),
    )

    def generate(self, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> ScenarioFile:
        """Return a scenario that the search solves: films that one knows, and the film that the other has in mind."""
        chosen = merged(self.defaults, parameters, self.name)
        if not 2 <= chosen["films"] <= len(TITLES):
            raise InvalidInput(f"films: films = {chosen['films']} is not between 2 and {len(TITLES)}")
        rng = random.Random(f"{self.name}/{seed}")
        expert, friend = names_of(self, seed, 2)
        films, target, needed = solvable(rng, chosen["films"], chosen["turns"])
        said: Literal["may", "no"] = "may" if chosen["talk"] else "no"
        answers = (
            Move(name=aspect, values=(one_of(*options),), text=said, tell=f"To tell the {aspect}", by=(friend,))
            for aspect, options in ASPECTS.items()
        )
        return self.scenario(
            scenario_id,
            seed,
            chosen,
            title=f"{expert} finds the film that {friend} has in mind",
            setting=(
                f"{friend} has a film in mind, and {expert} wants to find it. {expert} asks about its "
                f"{listed(tuple(ASPECTS))}, or suggests a film, and {friend} answers. {friend} must not say the title "
                f"first. They have {chosen['turns']} turns together."
            ),
            agents=(
                Agent(
                    name=expert,
                    goal="Suggest the right film after few questions.",
                    facts=tuple(
                        private(expert, f"film_{n}", described(title, film), title)
                        for n, (title, film) in enumerate(films.items())
                    ),
                ),
                Agent(
                    name=friend,
                    goal="Answer truly what you are asked, and accept only your film.",
                    facts=(
                        private(friend, "film", f"The film in mind is {target}.", target),
                        *(private(friend, aspect, f"Its {aspect}: {value}.", value)
                          for aspect, value in zip(ASPECTS, films[target], strict=True)),
                    ),
                ),
            ),
            talk=chosen["talk"],
            moves=(
                Move(name="ask", values=(one_of(*ASPECTS),), text=said, tell="To ask about the film", by=(expert,)),
                Move(name="suggest", values=(one_of(*films),), text=said, tell="To suggest a film", by=(expert,)),
                *answers,
                Move(name="accept", text=said, tell="To say that it is the film", by=(friend,)),
                Move(name="reject", text=said, tell="To say that it is not the film", by=(friend,)),
            ),
            public={"films": chosen["films"], "turns": chosen["turns"], "talk": chosen["talk"]},
            turns=chosen["turns"],
            answer={"questions": list(needed)},
        )  # fmt: skip

    def check(self, document: ScenarioFile) -> list[tuple[tuple[str | int, ...], str]]:
        """Return the defect that the search finds no questions that single out the film."""
        films, target = films_of(document.agents[0].facts), document.agents[1].facts[0].terms[0]
        if target in films and solve(films, target, document.limits.turns) is not None:
            return []
        return [(("agents", 0, "facts"), "no questions single out the film in mind within the turns")]

    def step(self, scenario: Scenario, talk: Transcript, seed: int) -> Next:
        """The expert asks, suggests or speaks, and the friend answers just that."""
        expert, friend = scenario.names
        if talk.last == "accept":
            return DONE
        words = ("speak",) if scenario.game["public"]["talk"] else ()
        if len(talk.acts) % 2 == 0:
            return act(expert, "ask", "suggest", *words)
        last = talk.acts[-1]
        if last.action.type == "ask":
            return act(friend, last.value)
        return act(friend, "accept", "reject") if last.action.type == "suggest" else act(friend, *words)

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Return success, the questions, those beyond the least number, true answers, and an early naming."""
        friend = scenario.agents[1]
        target, *own = (fact.terms[0] for fact in friend.facts)
        films, asked = films_of(scenario.agents[0].facts), len(transcript.of("ask"))
        accepted, answers = transcript.of("accept"), transcript.of(*ASPECTS)
        early = self._named_early(transcript, friend.name, target)
        scores = [Score("questions", float(asked)), Score("volunteered", float(bool(early)), turns=early)]
        if answers:
            true = sum(turn.value == own[list(ASPECTS).index(turn.action.type)] for turn in answers)
            scores.append(Score("truthful", true / len(answers), turns=tuple(turn.index for turn in answers)))
        if not accepted:
            return [Score("success", 0.0, reason="no film was accepted"), Score("fit", 0.0), *scores]
        found = transcript.of("suggest")[-1]
        right, cited = found.value == target, (found.index, accepted[-1].index)
        fit = sum(a == b for a, b in zip(films[found.value], own, strict=True)) / len(own)
        if right:
            scores.append(Score("extra", float(asked - len(answer.answer["questions"]))))
        told = f"{found.value} was accepted; the film in mind was {target}"
        return [Score("success", float(right), reason=told, turns=cited), Score("fit", fit, turns=cited), *scores]

    def _named_early(self, talk: Transcript, friend: str, target: str) -> tuple[int, ...]:
        """Return the turns in which the film is named by the one who has it in mind, before it was suggested."""
        end = next((turn.index for turn in talk.of("suggest") if turn.value == target), len(talk))
        said = (turn for turn in talk.turns[:end] if turn.speaker == friend)
        return tuple(turn.index for turn in said if self.utters(turn.action.text, target))

    def omniscient(self, seen: Observation, rng: random.Random) -> Action | None:
        """Suggest the film; None if it is not known."""
        film = known(seen, "film", others(seen)[0])
        return move("suggest", film) if film is not None and seen.may("suggest") else None


# ---- players -------------------------------------------------------------------------------------------------------


def _answer(seen: Observation) -> Action:
    """Answer truly what is asked, and accept the film alone."""
    for aspect in ASPECTS:
        if seen.may(aspect):
            return move(aspect, known(seen, aspect))
    if seen.may("accept"):
        return move("accept" if seen.transcript.acts[-1].value == known(seen, "film") else "reject")
    return Action("speak", "I have one film in mind.")


def _left(seen: Observation) -> dict[str, Film]:
    """Return the own films that agree with all answers and were not refused."""
    told = {list(ASPECTS).index(turn.action.type): turn.value for turn in seen.transcript.of(*ASPECTS)}
    gone = {turn.value for turn in seen.transcript.of("suggest")}
    films = {title: film for title, film in films_of(seen.me().facts).items() if title not in gone}
    return {title: film for title, film in films.items() if all(film[n] == value for n, value in told.items())} or films


def _best_question(seen: Observation, rng: random.Random) -> Action:
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
    return move("ask", min(free, key=lambda aspect: free[aspect])) if len(left) > 1 and free else _guesser(seen, rng)


def _all_questions(seen: Observation, rng: random.Random) -> Action:
    """Ask everything, then suggest."""
    asked = len(seen.transcript.of("ask"))
    return move("ask", list(ASPECTS)[asked]) if seen.may("ask") and asked < len(ASPECTS) else _guesser(seen, rng)


def _guesser(seen: Observation, rng: random.Random) -> Action:
    """Suggest the next film that agrees with what was said, and ask nothing."""
    return (
        move("suggest", next(iter(_left(seen) or films_of(seen.me().facts)))) if seen.may("suggest") else _answer(seen)
    )


def _liar(seen: Observation, rng: random.Random) -> Action:
    """Name another property than the right one."""
    aspect = next((each for each in ASPECTS if seen.may(each)), None)
    if aspect is None:
        return _best_question(seen, rng)
    return move(aspect, next(option for option in ASPECTS[aspect] if option != known(seen, aspect)))


def _blurter(seen: Observation, rng: random.Random) -> Action:
    """Name the film with each answer, where words are allowed."""
    action = _best_question(seen, rng)
    blurts = action.type in ASPECTS and seen.game["talk"]
    text = f"I am thinking of {known(seen, 'film')}." if blurts else action.text
    return Action(action.type, text, action.values)


def _refuser(seen: Observation, rng: random.Random) -> Action:
    """Refuse every film."""
    return move("reject") if seen.may("reject") else _guesser(seen, rng)


def _yes_sayer(seen: Observation, rng: random.Random) -> Action:
    """Accept any film."""
    return move("accept") if seen.may("accept") else _guesser(seen, rng)


Films.players = {
    "best-question": _best_question,
    "all-questions": _all_questions,
    "guesser": _guesser,
    "liar": _liar,
    "blurter": _blurter,
    "refuser": _refuser,
    "yes-sayer": _yes_sayer,
}
Films.sensible = "best-question"
