"""Items for raters: pairs of conversations, one person to judge, or private facts to look for.

Rating is blind: a page names no mode, model or run, and names items by `key`, because their ids would reveal modes and
attention items. Sides and order come from hashes of the rater's name, so that every start shows the same.
"""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, get_args

from localsim.conversation.episode import derive_seed
from localsim.conversation.scenario import Agent
from localsim.errors import InvalidInput
from localsim.evaluators.choosing import QUESTION
from localsim.evaluators.judge import DIMENSIONS
from localsim.evaluators.leaks import private_facts
from localsim.leakage.pairs import PrivateFact
from localsim.stats import grouped
from localsim.store import conditions as spelling
from localsim.store.conditions import Choice, Condition, condition_of, in_order
from localsim.store.database import Store
from localsim.store.episodes import StoredEpisode
from localsim.store.queries import annotation as queries
from localsim.store.queries.annotation import Unit
from localsim.store.records import hash_of

Pair = frozenset[Condition]


@dataclass(frozen=True)
class Selection:
    """The runs and conditions whose conversations are judged, and the pairs of conditions that are compared."""

    runs: tuple[str, ...]
    conditions: frozenset[Condition] | None = None
    """None means all of the run."""
    pairs: frozenset[Pair] | None = None
    """None means every two conditions of one run."""

    @property
    def key(self) -> str:
        """The name of the selection in addresses: the run's id, or a hash that names no run and no condition."""
        if self.conditions is None:
            return self.runs[0]
        return "set-" + hash_of("\n".join(sorted(each.spelled() for each in self.conditions)))[:12]

    def has(self, condition: Condition) -> bool:
        """Return True if the conversations of a condition are judged."""
        return condition.run_id in self.runs and (self.conditions is None or condition in self.conditions)

    def compares(self, one: Condition, other: Condition) -> bool:
        """Return True if the conversations of two conditions are judged against each other."""
        if self.pairs is not None:
            return frozenset((one, other)) in self.pairs
        # The models of a run's conditions differ where a role has a model of its own.
        return one.run_id == other.run_id and one.name != other.name and self.has(one) and self.has(other)


@dataclass(frozen=True)
class Everything(Selection):
    """All conversations of some runs, and all pairs of two conditions: whatever a rater was shown is among them."""

    def compares(self, one: Condition, other: Condition) -> bool:
        """Return True if two conditions differ."""
        return one != other


def of_run(run_id: str) -> Selection:
    """Return the selection of all conversations of a run."""
    return Selection((run_id,))


def selected(store: Store, references: Sequence[str]) -> Selection:
    """Return what references of a command name, such as @last, or @last:agents @last-1:agents. Raises InvalidInput."""
    return of_choices(spelling.choices(store, references or ("@last",)))


def of_choices(found: Sequence[Choice]) -> Selection:
    """Return the selection of conditions that were named in a command, and of their pairs."""
    conditions = [each for choice in found for each in choice.conditions]
    runs = tuple(dict.fromkeys(each.run_id for each in conditions))
    if len(found) == 1 and found[0].whole:
        return of_run(runs[0])
    pairs = frozenset(frozenset(pair) for pair in spelling.pairs_of(found))
    return Selection(runs, frozenset(conditions), pairs)


Task = Literal["pairs", "dimensions", "disclosures"]
TASKS: tuple[Task, ...] = get_args(Task)
EVERY = 7
"""Pairs between two attention items."""
FEW = 4
"""Fewest pairs with an attention item."""
PLAIN_WORDS = 4
"""Fewest words of a turn in which a reader notices that they are shuffled."""
ATTENTION = "attention:"


@dataclass(frozen=True)
class RatedEpisode:
    """A stored episode, and the unit that it shares with the same scenario and seed in other conditions."""

    unit: Unit
    episode: StoredEpisode

    @cached_property
    def condition(self) -> Condition:
        """Its condition."""
        return condition_of(vars(self.episode))


@dataclass(frozen=True)
class _Item:
    """What a rater is asked. Its key reveals nothing."""

    task: ClassVar[Task]
    item_id: str
    rater: str
    episode: StoredEpisode
    """The episode that is shown as 1."""
    attention: bool = field(default=False, kw_only=True)

    @property
    def episodes(self) -> tuple[StoredEpisode, ...]:
        """All that is shown."""
        return (self.episode,)

    @property
    def run_id(self) -> str:
        """The run that the answer is stored with."""
        return self.episode.run_id

    @property
    def sides(self) -> dict[str, str]:
        """The ids of the episodes by side, and what else of them is shown, for storage."""
        return {str(side): episode.episode_id for side, episode in enumerate(self.episodes, start=1)}

    @cached_property
    def key(self) -> str:
        """16 hex digits for pages and files: the same item in the same arrangement for the same rater."""
        return hash_of(json.dumps([self.task, self.rater, self.item_id, self.sides], sort_keys=True))[:16]


@dataclass(frozen=True)
class PairItem(_Item):
    """Two episodes of one scenario and seed. In an attention item one has shuffled words.

    `item_id`: the ids of both episodes by mode, grants and id, joined with ~; attention items: attention:EPISODE.
    """

    task: ClassVar[Task] = "pairs"
    second: StoredEpisode
    expected: int | None = None
    """The intact conversation of an attention item, 1 or 2."""
    ties: bool = False
    """True if the rater may answer 0 (no difference)."""

    @property
    def episodes(self) -> tuple[StoredEpisode, ...]:
        """Both conversations."""
        return self.episode, self.second

    @property
    def run_id(self) -> str:
        """The run of the first episode of `item_id`, whichever side it is shown on."""
        named = self.item_id.partition("~")[0].removeprefix(ATTENTION)
        return next(each.run_id for each in self.episodes if each.episode_id == named)

    @property
    def sides(self) -> dict[str, str]:
        """Episode ids by side; in attention items also the side with shuffled words."""
        return super().sides | ({} if self.expected is None else {"shuffled": str(3 - self.expected)})


@dataclass(frozen=True)
class DimensionItem(_Item):
    """An agent of an episode, to be judged on the dimensions of `judge.DIMENSIONS`. `item_id`: EPISODE:AGENT."""

    task: ClassVar[Task] = "dimensions"
    agent: str

    @property
    def sides(self) -> dict[str, str]:
        """Episode id and agent."""
        return super().sides | {"agent": self.agent}


@dataclass(frozen=True)
class DisclosureItem(_Item):
    """The private facts whose first disclosure in an episode the rater looks for. `item_id`: EPISODE."""

    task: ClassVar[Task] = "disclosures"
    facts: tuple[PrivateFact, ...]


Item = PairItem | DimensionItem | DisclosureItem
_Some = TypeVar("_Some", bound=Item)


# ---- from the database ---------------------------------------------------------------------------------------------


def talks_of(store: Store, run: str | Selection) -> list[RatedEpisode]:
    """The completed episodes of a run or selection that have turns, in a fixed order, without scores and leaks."""
    chosen = of_run(run) if isinstance(run, str) else run
    talks = (RatedEpisode(*found) for run_id in chosen.runs for found in queries.completed_episodes(store, run_id))
    return [talk for talk in talks if chosen.has(talk.condition)]


def items_of(store: Store, run: str | Selection, task: Task, rater: str, *, ties: bool = False) -> Sequence[Item]:
    """All items of a task for a rater, in the rater's order. Raises InvalidInput if the run or selection has none."""
    chosen = of_run(run) if isinstance(run, str) else run
    found = items_from(talks_of(store, chosen), task, rater, chosen, ties=ties)
    if not found:
        hint = "localsim run SCENARIO --mode all makes episodes to annotate"
        what = f"run {chosen.key} has" if chosen.conditions is None else "these conditions have"
        raise InvalidInput(f"{what} nothing to annotate here: {_NOTHING[task]}", where=task, hint=hint)
    return found


_NOTHING: dict[Task, str] = {
    "pairs": "no two modes or conditions completed the same scenario and seed",
    "dimensions": "it has no completed episodes",
    "disclosures": "no completed episode has private facts",
}
"""Why there is no item of a task."""


def every_item(
    store: Store, about: Sequence[str] | Selection, task: Task, rater: str, *, ties: bool = False
) -> Sequence[Item]:
    """All items that a rater can have been shown about some runs, whatever the conditions, or about a selection."""
    chosen = about if isinstance(about, Selection) else Everything(tuple(about))
    talks = talks_of(store, chosen)
    if task == "pairs":
        return [*_pairs(talks, rater, chosen, ties=ties), *_attention(talks, rater, ties, len(talks))]
    return items_from(talks, task, rater)


# ---- from episodes -------------------------------------------------------------------------------------------------


def items_from(
    talks: Sequence[RatedEpisode], task: Task, rater: str, chosen: Selection | None = None, *, ties: bool = False
) -> Sequence[Item]:
    """All items of a task for a rater, in the rater's order."""
    if task == "pairs":
        return pairs_from(talks, rater, chosen, ties=ties)
    return (dimensions_from if task == "dimensions" else disclosures_from)(talks, rater)


def pairs_from(
    talks: Sequence[RatedEpisode], rater: str, chosen: Selection | None = None, *, ties: bool = False
) -> list[PairItem]:
    """All pairs of conditions of one scenario, index and seed, in the rater's order, with an attention item after every
    seventh pair (and at least one from four pairs on). Without a selection, pairs are those within each run.
    """
    runs = tuple(dict.fromkeys(talk.condition.run_id for talk in talks))
    found = _mixed(_pairs(talks, rater, chosen or Selection(runs), ties=ties))
    checks = _attention(talks, rater, ties, max(len(found) // EVERY, int(len(found) >= FEW)))
    step = EVERY if len(found) >= EVERY else FEW
    for number, check in enumerate(checks, start=1):
        found.insert(number * step + number - 1, check)
    return found


def _pairs(talks: Sequence[RatedEpisode], rater: str, chosen: Selection, *, ties: bool) -> list[PairItem]:
    """The pairs of a selection. The id of a pair does not depend on the selection, so no pair is judged twice."""
    found = []
    for unit in grouped((talk.unit, talk) for talk in talks).values():
        ordered = sorted(unit, key=lambda talk: (*in_order(talk.condition)[:2], talk.episode.episode_id))
        for one, other in combinations(ordered, 2):
            if chosen.compares(one.condition, other.condition):
                item_id = f"{one.episode.episode_id}~{other.episode.episode_id}"
                found.append(_pair(item_id, rater, one.episode, other.episode, ties))
    return found


def _pair(item_id: str, rater: str, one: StoredEpisode, other: StoredEpisode, ties: bool) -> PairItem:
    first, second = (other, one) if _swapped(rater, item_id) else (one, other)
    return PairItem(item_id, rater, first, second, ties=ties)


def _swapped(rater: str, item_id: str) -> bool:
    return derive_seed("side", rater, item_id) % 2 == 1


def _mixed(items: Sequence[_Some]) -> list[_Some]:
    """Items in the rater's order; the items of one episode or pair stay together."""
    return sorted(items, key=lambda item: derive_seed("order", item.rater, item.item_id.partition(":")[0]))


def _attention(talks: Sequence[RatedEpisode], rater: str, ties: bool, count: int) -> list[PairItem]:
    """`count` attention items, each an episode beside its shuffled copy; fewer if too many episodes are too short."""
    found: list[PairItem] = []
    for talk in sorted(talks, key=lambda talk: derive_seed("attention", rater, talk.episode.episode_id)):
        if len(found) == count:
            break
        broken = shuffled(talk.episode)
        if broken is not None:
            item_id = ATTENTION + talk.episode.episode_id
            pair = _pair(item_id, rater, talk.episode, broken, ties)
            found.append(replace(pair, attention=True, expected=2 if _swapped(rater, item_id) else 1))
    return found


def shuffled(episode: StoredEpisode) -> StoredEpisode | None:
    """The episode with the words of each turn in another order; None if no turn is long enough to notice it."""
    turns, plain = [], False
    for turn in episode.turns:
        words = str(turn["text"]).split()
        random.Random(derive_seed("words", episode.episode_id, turn["turn"])).shuffle(words)
        text = " ".join(words)
        plain = plain or (len(words) >= PLAIN_WORDS and text != " ".join(str(turn["text"]).split()))
        turns.append({**turn, "text": text})
    return replace(episode, turns=turns) if plain else None


def dimensions_from(talks: Sequence[RatedEpisode], rater: str) -> list[DimensionItem]:
    """An item for each agent of each episode, in the rater's order."""
    return _mixed([
        DimensionItem(f"{talk.episode.episode_id}:{name}", rater, talk.episode, name)
        for talk in talks
        for name in talk.episode.scenario.names
    ])  # fmt: skip


def disclosures_from(talks: Sequence[RatedEpisode], rater: str) -> list[DisclosureItem]:
    """An item for each episode whose scenario has private facts, in the rater's order."""
    return _mixed([
        DisclosureItem(talk.episode.episode_id, rater, talk.episode, facts)
        for talk in talks
        if (facts := private_facts(talk.episode.scenario))
    ])  # fmt: skip


# ---- showing -------------------------------------------------------------------------------------------------------


def shown(item: Item) -> dict[str, Any]:
    """The content of an item for pages, bundles and the terminal, fit for JSON.

    task, item (its key), question, setting, people (name, background, goal; secret if it is judged), talks (one list of
    {turn, speaker, text, action} for each conversation); and by task: ties; person and dimensions; facts.
    """
    scenario = item.episode.scenario
    secrets = item.task == "dimensions"
    found: dict[str, Any] = {
        "task": item.task,
        "item": item.key,
        "setting": scenario.setting,
        "people": [_person(agent, secrets) for agent in scenario.agents],
        "talks": [_lines(episode) for episode in item.episodes],
    }
    if isinstance(item, PairItem):
        return {**found, "question": QUESTION, "ties": item.ties}
    if isinstance(item, DimensionItem):
        asked = [
            {"id": name, "low": low, "high": high, "question": question.format(name=item.agent)}
            for name, (low, high, question) in DIMENSIONS.items()
        ]
        return {**found, "question": f"How do you judge {item.agent}?", "person": item.agent, "dimensions": asked}
    facts = [{"id": fact.id, "owner": fact.owner, "text": fact.text} for fact in item.facts]
    return {**found, "question": "In which turn is each private fact first given away, if at all?", "facts": facts}


def _person(agent: Agent, secrets: bool) -> dict[str, Any]:
    profile = agent.profile.model_dump(exclude_none=True)
    background = [{"label": field.replace("_", " "), "text": str(value)} for field, value in profile.items()]
    found: dict[str, Any] = {"name": agent.name, "background": background, "goal": agent.goal}
    if secrets and agent.secret:
        found["secret"] = agent.secret
    return found


def _lines(episode: StoredEpisode) -> list[dict[str, Any]]:
    return [
        {"turn": turn.index, "speaker": turn.who, "text": row["text"], "action": turn.doing}
        for row, turn in zip(episode.turns, episode.transcript.turns, strict=True)
    ]


# ---- progress ------------------------------------------------------------------------------------------------------


class Progress(NamedTuple):
    """The number of answered items and of all items."""

    done: int
    total: int


def next_item(items: Sequence[_Some], done: Collection[str]) -> _Some | None:
    """The first item that is not done; None at the end."""
    return next((item for item in items if item.item_id not in done), None)


def progress(items: Sequence[Item], done: Collection[str]) -> Progress:
    """The progress through the items; answers to other items do not count."""
    return Progress(sum(item.item_id in done for item in items), len(items))


def find(items: Sequence[_Some], key: str) -> _Some:
    """The item with this key. Raises InvalidInput."""
    for item in items:
        if key == item.key:
            return item
    raise InvalidInput(f"no item {key!r} in this task of this rater", hint="reload the page, or make the file again")
