"""Tags of scenarios: the vocabulary, what files say themselves, and how often each word occurs.

How agents work together is told in the words of a survey (Tran et al., arXiv 2501.06322) and derived from what the file
and its family say, never from what the author of a scenario claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Field

from localsim import paths
from localsim.conversation.episode import Subject
from localsim.conversation.rules.values import Identifier, Place, Text, Value
from localsim.conversation.scenario import LoadedScenario, Scenario
from localsim.families import family_of
from localsim.families.base import Family
from localsim.scenarios.documents import read_document, read_file

CONFLICTS = {"cooperation": "shared", "competition": "opposed", "coopetition": "mixed"}
"""The conflict of goals behind each interaction of a family."""
SOCIETY = 50
"""So many people are a society, not a scene."""
MANY = 5
Tags = Mapping[str, tuple[str, ...]]


class Dimension(Value):
    """One way to tell scenarios apart."""

    name: Identifier
    about: Text
    origin: Annotated[Literal["author", "file", "card", "run"], Field(alias="from")]
    """`author`: the file of a situation or person says it; `file`: it follows from the file. The others are tags of
    runs. `card`: the file of the card says it; `run`: it follows from the run.
    """
    source: Text
    words: Annotated[tuple[Text, ...], Field(min_length=1)] | Literal["any"]
    """The allowed words."""
    risks: dict[str, Text] = {}  # noqa: RUF012 - pydantic copies it
    """What a word warns of, for the card."""


class Vocabulary(Value):
    """The file tags.yaml."""

    version: Literal[1]
    dimensions: tuple[Dimension, ...]

    def words(self, name: str) -> tuple[str, ...] | None:
        """Return the words of a dimension; () if every word is allowed, None if there is no such dimension."""
        found = next((each for each in self.dimensions if each.name == name), None)
        return None if found is None else () if found.words == "any" else tuple(found.words)

    def risks(self, name: str) -> Mapping[str, str]:
        """Return what the words of a dimension warn of."""
        return next((each.risks for each in self.dimensions if each.name == name), {})

    @property
    def of_scenarios(self) -> tuple[Dimension, ...]:
        """The dimensions that tell scenarios apart, and not runs."""
        return tuple(each for each in self.dimensions if each.origin in ("author", "file"))


@lru_cache(maxsize=1)
def vocabulary() -> Vocabulary:
    """Return the vocabulary that ships with localsim."""
    file = paths.bundled("scenarios") / "vocabulary" / "tags.yaml"
    return read_document(read_file(file), str(file), Vocabulary, what="a vocabulary").valid()


def problems_of_tags(tags: Mapping[str, str | tuple[str, ...]]) -> Iterator[tuple[Place, str]]:
    """Yield (place below `tags`, message) for each word that is not in the vocabulary."""
    known = vocabulary()
    by_author = [each.name for each in known.dimensions if each.origin == "author"]
    for name, given in tags.items():
        words = known.words(name)
        if name not in by_author or words is None:
            yield (name,), f"no dimension of tags for authors; there are {', '.join(by_author)}"
            continue
        for word in (given,) if isinstance(given, str) else given:
            if words and word not in words:
                yield (name,), f"{word!r} is not one of {', '.join(words)}"


def tags_of(loaded: LoadedScenario | Subject, partners: Sequence[str] = ()) -> Tags:
    """Return the tags of a scenario, by dimension; a dimension that nothing says is left out.

    `partners` are what an agent interacts with wherever it is not alone, which only a run can say: `human`,
    `model_tool`.
    """
    scenario, family = loaded.scenario, family_of(loaded.scenario.family)
    interaction, parties = _interaction(scenario, family), len(scenario.agents)
    ruled = family.rules is not None or bool(scenario.phases)
    central = family.centralised and parties > 2 or any(phase.moderator for phase in scenario.phases)
    directed = "centralised" if central else "distributed" if parties > 2 else "peer-to-peer"
    objects = [
        *(partners if parties > 1 else ()),
        *(["knowledge_base"] if any(agent.background for agent in scenario.agents) else []),
        *(["environment"] if ruled else []),
    ]
    tags: dict[str, tuple[str, ...]] = {
        "kind": ("family" if scenario.family else "everyday",),
        "parties": (str(parties) if parties < MANY else f"{MANY} and more",),
        "language": (scenario.language or "en",),
        "structure": (directed,) if parties > 1 else (),
        "strategy": (_strategy(loaded, family, ruled=ruled),) if parties > 1 else (),
        "protocol": _protocol(scenario, family),
        "level": ("society" if parties >= SOCIETY else "scenario" if parties > 1 else "individual",),
        "interacts_with": tuple(objects),
        **{name: tuple(words) for name, words in family.topics.items()},
    }
    if interaction:
        tags |= {"interaction": (interaction,), "conflict": (CONFLICTS[interaction],)}
    given: Mapping[str, str | list[str]] = loaded.answer.parameters.get("tags", {})
    tags |= {name: (words,) if isinstance(words, str) else tuple(words) for name, words in given.items()}
    return {name: words for name, words in tags.items() if words}


INTERACTION = ("goal", "phase", "component", "role", "means")
"""The dimensions `interaction_...` of how people and models meet in a run."""


def interaction_of(*, players: bool, imported: bool, raters: bool, goal: str | None) -> dict[str, list[str]]:
    """Return how people and models meet in a run, in the words of the vocabulary; empty lists without people.

    `players`: people play roles; `imported`: conversations of people were imported; `raters`: people rated.
    """
    parts = [
        (players, ("simulation", "conversation", "participant", "pages for players")),
        (imported, ("simulation", "conversation", "participant", "imported conversations")),
        (raters, ("evaluation", "scores", "rater", "pages for raters")),
    ]
    found = [words for here, words in parts if here]
    derived = {name: list(dict.fromkeys(words[place] for words in found)) for place, name in enumerate(INTERACTION[1:])}
    return {"goal": [goal] if goal else [], **derived}


def coverage(every: Iterable[Tags]) -> list[tuple[str, str, int]]:
    """Return (dimension, word, number of scenarios) for each word of the vocabulary, and for each other word found."""
    tags = list(every)
    rows = []
    for dimension in vocabulary().of_scenarios:
        used = [word for each in tags for word in each.get(dimension.name, ())]
        words = () if dimension.words == "any" else dimension.words
        rows += [(dimension.name, word, used.count(word)) for word in dict.fromkeys((*words, *sorted(used)))]
    return rows


def _protocol(scenario: Scenario, family: Family) -> tuple[str, ...]:
    """Return the orders in which agents act: those of phases, or of the rules with that of their talk."""
    if family.rules is None:
        return tuple(dict.fromkeys(phase.order for phase in scenario.phases)) or ("in_turn",)
    talk = [scenario.game.get("public", {}).get("order", "in_turn")] if "speak" in scenario.actions else []
    return tuple(family.protocol if family.asks else dict.fromkeys([*talk, *family.protocol]))


def _strategy(loaded: LoadedScenario | Subject, family: Family, *, ruled: bool) -> str:
    """Say what decides how an agent acts: a part that not all have, rules for all, or its own view of the others."""
    names = loaded.scenario.names
    parts = {family.side(name, loaded.answer) for name in names}
    if len(parts) > 1 or any(0 < len(move.by) < len(names) for move in loaded.scenario.moves):
        return "role-based"
    return "rule-based" if ruled else "model-based"


def _interaction(scenario: Scenario, family: Family) -> str:
    """Say whether all win the same, one wins what the other loses, or something between; '' if nothing says it."""
    table = scenario.game.get("public", {}).get("table")
    if isinstance(table, dict) and table and all(_is_pair(won) for won in table.values()):
        pairs = [tuple(won) for won in table.values()]
        if len({sum(pair) for pair in pairs}) == 1:
            return "competition"
        return "cooperation" if all(one == other for one, other in pairs) else "coopetition"
    return {"cooperative": "cooperation", "competitive": "competition"}.get(family.interests, "")


def _is_pair(won: object) -> bool:
    return isinstance(won, list | tuple) and len(won) == 2 and all(isinstance(each, int | float) for each in won)
