"""What raters are shown: pairs of talks, talks with one person to judge, talks with private facts to look for.

Blind: nothing shown names a mode, a model or a run, and `key` stands for ids that would tell something (which talk is
of which mode, which items only check attention). Sides and order come from hashes of the rater's name, so that every
start shows the same again.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, get_args

from localsim.conversation.episode import MODES, derive_seed
from localsim.conversation.scenario import Agent, Scenario
from localsim.errors import InvalidInput
from localsim.evaluators.judge import DIMENSIONS
from localsim.evaluators.leaks import private_facts
from localsim.evaluators.naturalness import QUESTION
from localsim.leakage.pairs import PrivateFact
from localsim.store.database import Store
from localsim.store.episodes import StoredEpisode
from localsim.store.records import hash_of

Task = Literal["pairs", "dimensions", "disclosures"]
TASKS: tuple[Task, ...] = get_args(Task)
Row = dict[str, Any]
Unit = tuple[str, int, int]
"""scenario_hash, episode_index, seed: what the talks of a pair have in common."""

EVERY = 7
"""Pairs between two attention items."""
FEW = 4
"""Pairs from which on there is an attention item at all."""
PLAIN_WORDS = 4
"""Words of a turn from which on it is plain to see that they are shuffled."""
ATTENTION = "attention:"


@dataclass(frozen=True)
class Talk:
    """A stored episode and what it shares with the same task in other modes."""

    unit: Unit
    episode: StoredEpisode


class _Keyed:
    """What all items have: ids, and a key that tells nothing."""

    task: ClassVar[Task]
    item_id: str
    rater: str

    @property
    def sides(self) -> dict[str, str]:
        """What stood where, for storage."""
        raise NotImplementedError

    @cached_property
    def key(self) -> str:
        """16 hex digits for pages and files: the same item in the same arrangement for the same rater."""
        return hash_of(json.dumps([self.task, self.rater, self.item_id, self.sides], sort_keys=True))[:16]


@dataclass(frozen=True)
class PairItem(_Keyed):
    """Two talks of one scenario and seed; `first` stands as 1. For attention items one has shuffled words."""

    item_id: str
    """The ids of both episodes in the order of MODES, joined with ~; attention items: attention:EPISODE."""
    rater: str
    first: StoredEpisode
    second: StoredEpisode
    attention: bool = False
    expected: int | None = None
    """The intact talk of an attention item, 1 or 2."""
    ties: bool = False
    """Whether 0 (no difference) may be answered."""
    task: ClassVar[Task] = "pairs"

    @property
    def episode(self) -> StoredEpisode:
        """The talk that stands as 1."""
        return self.first

    @property
    def sides(self) -> dict[str, str]:
        """Episode ids by place; for attention items also which place has shuffled words."""
        found = {"1": self.first.episode_id, "2": self.second.episode_id}
        return found if self.expected is None else {**found, "shuffled": str(3 - self.expected)}


@dataclass(frozen=True)
class DimensionItem(_Keyed):
    """A talk and one of its agents, to be judged on the dimensions of `judge.DIMENSIONS`."""

    item_id: str
    """EPISODE:AGENT."""
    rater: str
    episode: StoredEpisode
    agent: str
    attention: bool = False
    task: ClassVar[Task] = "dimensions"

    @property
    def sides(self) -> dict[str, str]:
        """Episode id and agent."""
        return {"1": self.episode.episode_id, "agent": self.agent}


@dataclass(frozen=True)
class DisclosureItem(_Keyed):
    """A talk and the private facts whose first disclosure the rater looks for."""

    item_id: str
    """The episode's id."""
    rater: str
    episode: StoredEpisode
    facts: tuple[PrivateFact, ...]
    attention: bool = False
    task: ClassVar[Task] = "disclosures"

    @property
    def sides(self) -> dict[str, str]:
        """Episode id."""
        return {"1": self.episode.episode_id}


Item = PairItem | DimensionItem | DisclosureItem
_Some = TypeVar("_Some", bound=Item)


# ---- from the database ---------------------------------------------------------------------------------------------


def talks_of(store: Store, run_id: str) -> list[Talk]:
    """The completed talks of a run that have turns, in a fixed order; scores and leaks are not read."""
    # Two queries for the whole run: each opens the database, and a page of a rater must not wait for hundreds.
    episodes = store.rows(
        "SELECT e.*, s.document_json FROM v_episodes e JOIN scenarios s USING (scenario_hash) WHERE e.run_id = ? "
        "AND e.status = 'completed' AND e.turns > 0 ORDER BY e.scenario_hash, e.episode_index, e.seed, e.episode_id",
        [run_id],
    )
    turns: dict[str, list[Row]] = defaultdict(list)
    for row in store.rows(
        "SELECT episode_id, turn, speaker, action, text, words, truncated FROM v_turns WHERE run_id = ? "
        "ORDER BY episode_id, turn",
        [run_id],
    ):
        turns[row.pop("episode_id")].append(row)
    scenarios: dict[str, Scenario] = {}
    found = []
    for row in episodes:
        scenario = scenarios.get(row["scenario_hash"])
        if scenario is None:
            scenario = scenarios[row["scenario_hash"]] = Scenario.model_validate_json(row["document_json"])
        found.append(Talk((row["scenario_hash"], row["episode_index"], row["seed"]), _episode(row, scenario, turns)))
    return found


def _episode(row: Row, scenario: Scenario, turns: Mapping[str, list[Row]]) -> StoredEpisode:
    names = ("episode_id", "run_id", "mode", "model", "seed", "status", "stop_reason", "error")
    given = {name: row[name] for name in names}
    said = turns[row["episode_id"]]
    return StoredEpisode(**given, scenario=scenario, turns=said, scores=[], mentions=[], leaks=[])


def items_of(store: Store, run_id: str, task: Task, rater: str, *, ties: bool = False) -> Sequence[Item]:
    """All items of a task for a rater, in the rater's order. Raises InvalidInput where the run has none."""
    found: Sequence[Item]
    if task == "pairs":
        found, why = pair_items(store, run_id, rater, ties=ties), "no two modes completed the same scenario and seed"
    elif task == "dimensions":
        found, why = dimension_items(store, run_id, rater), "it has no completed talks"
    else:
        found, why = disclosure_items(store, run_id, rater), "no completed talk has private facts"
    if not found:
        hint = "localsim run SCENARIO --mode all makes talks to annotate"
        raise InvalidInput(f"run {run_id} has nothing to annotate here: {why}", where=task, hint=hint)
    return found


def pair_items(store: Store, run_id: str, rater: str, *, ties: bool = False) -> list[PairItem]:
    """The pairs of a run for a rater, attention items among them."""
    return pairs_from(talks_of(store, run_id), rater, ties=ties)


def dimension_items(store: Store, run_id: str, rater: str) -> list[DimensionItem]:
    """Every agent of every talk of a run; the agents of one talk follow each other."""
    return dimensions_from(talks_of(store, run_id), rater)


def disclosure_items(store: Store, run_id: str, rater: str) -> list[DisclosureItem]:
    """Every talk of a run whose scenario has private facts."""
    return disclosures_from(talks_of(store, run_id), rater)


# ---- pure ----------------------------------------------------------------------------------------------------------


def pairs_from(talks: Sequence[Talk], rater: str, *, ties: bool = False) -> list[PairItem]:
    """All pairs of modes of one scenario, index and seed, in the rater's order; after every seventh an attention item
    (from four pairs on, at least one).
    """
    units: dict[Unit, list[StoredEpisode]] = defaultdict(list)
    for talk in talks:
        units[talk.unit].append(talk.episode)
    found = []
    for unit in units.values():
        ordered = sorted(unit, key=lambda episode: (MODES.index(episode.mode), episode.episode_id))
        for one, other in combinations(ordered, 2):
            if one.mode != other.mode:
                found.append(_pair(f"{one.episode_id}~{other.episode_id}", rater, one, other, ties))
    found = _mixed(found)
    checks = _attention(talks, rater, ties, max(len(found) // EVERY, int(len(found) >= FEW)))
    step = EVERY if len(found) >= EVERY else FEW
    for number, check in enumerate(checks, start=1):
        found.insert(number * step + number - 1, check)
    return found


def _pair(item_id: str, rater: str, one: StoredEpisode, other: StoredEpisode, ties: bool) -> PairItem:
    first, second = (other, one) if _swapped(rater, item_id) else (one, other)
    return PairItem(item_id, rater, first, second, ties=ties)


def _swapped(rater: str, item_id: str) -> bool:
    return derive_seed("side", rater, item_id) % 2 == 1


def _mixed(items: Sequence[_Some]) -> list[_Some]:
    """Items in the rater's order; what belongs to one talk or pair stays together."""
    return sorted(items, key=lambda item: derive_seed("order", item.rater, item.item_id.partition(":")[0]))


def _attention(talks: Sequence[Talk], rater: str, ties: bool, count: int) -> list[PairItem]:
    """So many talks, each beside itself with shuffled words; fewer where talks are too short for it."""
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
    """The talk with the words of each turn in another order; None where no turn is long enough to show it."""
    turns, plain = [], False
    for turn in episode.turns:
        words = str(turn["text"]).split()
        random.Random(derive_seed("words", episode.episode_id, turn["turn"])).shuffle(words)
        text = " ".join(words)
        plain = plain or (len(words) >= PLAIN_WORDS and text != " ".join(str(turn["text"]).split()))
        turns.append({**turn, "text": text})
    return replace(episode, turns=turns) if plain else None


def dimensions_from(talks: Sequence[Talk], rater: str) -> list[DimensionItem]:
    """An item for each agent of each talk, in the rater's order."""
    return _mixed([
        DimensionItem(f"{talk.episode.episode_id}:{name}", rater, talk.episode, name)
        for talk in talks
        for name in talk.episode.scenario.names
    ])  # fmt: skip


def disclosures_from(talks: Sequence[Talk], rater: str) -> list[DisclosureItem]:
    """An item for each talk whose scenario has private facts, in the rater's order."""
    return _mixed([
        DisclosureItem(talk.episode.episode_id, rater, talk.episode, facts)
        for talk in talks
        if (facts := private_facts(talk.episode.scenario))
    ])  # fmt: skip


# ---- showing -------------------------------------------------------------------------------------------------------


def shown(item: Item) -> Row:
    """What pages, bundles and the terminal show of an item, fit for JSON.

    task, item (its key), question, setting, people (name, background, goal; secret where it is judged), talks (lists of
    {turn, speaker, text, action}); and by task: ties; person and dimensions; facts.
    """
    scenario = item.episode.scenario
    secrets = item.task == "dimensions"
    talks = [item.first, item.second] if isinstance(item, PairItem) else [item.episode]
    found: Row = {
        "task": item.task,
        "item": item.key,
        "setting": scenario.setting,
        "people": [_person(agent, secrets) for agent in scenario.agents],
        "talks": [_lines(episode) for episode in talks],
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


def _person(agent: Agent, secrets: bool) -> Row:
    profile = agent.profile.model_dump(exclude_none=True)
    background = [{"label": field.replace("_", " "), "text": str(value)} for field, value in profile.items()]
    found: Row = {"name": agent.name, "background": background, "goal": agent.goal}
    if secrets and agent.secret:
        found["secret"] = agent.secret
    return found


def _lines(episode: StoredEpisode) -> list[Row]:
    return [{name: turn[name] for name in ("turn", "speaker", "text", "action")} for turn in episode.turns]


# ---- going through -------------------------------------------------------------------------------------------------


class Progress(NamedTuple):
    """How many items are answered, and how many there are."""

    done: int
    total: int


def next_item(items: Sequence[_Some], done: Collection[str]) -> _Some | None:
    """The first item whose id is not among those done; None at the end."""
    return next((item for item in items if item.item_id not in done), None)


def progress(items: Sequence[Item], done: Collection[str]) -> Progress:
    """Counts of the items, answers to other items left out."""
    return Progress(sum(item.item_id in done for item in items), len(items))


def find(items: Sequence[_Some], key: str) -> _Some:
    """The item that a page or file means by its key. Raises InvalidInput."""
    for item in items:
        if key == item.key:
            return item
    raise InvalidInput(f"no item {key!r} in this task of this rater", hint="reload the page, or make the file again")
