"""The reads of reports, comparisons, curves, figures, cards and audits, about one run unless stated otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from localsim.store.conditions import Condition, Conditioned, condition_of
from localsim.store.database import Store
from localsim.store.episodes import contents_of


@dataclass(frozen=True)
class Episode(Conditioned):
    """An episode, of whatever status."""

    episode_id: str
    family: str
    scenario_id: str
    scenario_hash: str
    status: str
    episode_index: int
    seed: int
    variant: int
    turns: int | None


def episodes(store: Store, *runs: str) -> list[Episode]:
    """The episodes of runs, by scenario and index."""
    return store.select(
        Episode,
        "SELECT run_id, mode, model, see, episode_id, coalesce(family, 'everyday') AS family, scenario_id, "
        "scenario_hash, status, episode_index, seed, variant, turns FROM v_episodes "
        "WHERE run_id IN (SELECT unnest(?)) ORDER BY scenario_id, episode_index",
        [list(runs)],
    )


def variants(store: Store, run_id: str) -> list[int]:
    """The variants of completed episodes, by number."""
    query = "SELECT DISTINCT variant FROM v_episodes WHERE run_id = ? AND status = 'completed' ORDER BY 1"
    return store.column(query, [run_id])


@dataclass(frozen=True)
class Score:
    """A score by the newest version of its evaluator."""

    episode_id: str
    family: str
    evaluator: str
    name: str
    agent: str | None
    """None for the whole episode."""
    value: float | None
    """None if the evaluator failed."""
    side: str = ""
    """The side of the agent (`reports.measures.sided`)."""


def scores(store: Store, *runs: str, names: Sequence[str] = ()) -> list[Score]:
    """The newest scores of runs, without the sides of their agents; only those with `names`, or without names all."""
    return store.select(
        Score,
        "SELECT episode_id, coalesce(family, 'everyday') AS family, evaluator, name, agent, value FROM v_scores "
        "WHERE run_id IN (SELECT unnest($runs)) AND newest AND (len($names) = 0 OR list_contains($names, name)) "
        "ORDER BY episode_id, name, agent",
        {"runs": list(runs), "names": list(names)},
    )


def success(store: Store, run_id: str) -> dict[str, float | None]:
    """Episode id -> success, by the newest version of its evaluator."""
    query = "SELECT episode_id, value FROM v_scores WHERE run_id = ? AND newest AND name = 'success'"
    return store.pairs(query, [run_id])


@dataclass(frozen=True)
class PlayVerdict(Conditioned):
    """A talk with its score."""

    episode_id: str
    family: str
    scenario_id: str
    plays: bool
    fault: str
    """Its worst fault in words, such as "repeats itself"; empty if it plays."""
    reason: str
    turns: Sequence[int]
    """Indices of the turns that show the fault."""


def plays(store: Store, *runs: str) -> list[PlayVerdict]:
    """The scored talks of runs, by scenario, mode and index. Talks on which the evaluator failed are left out."""
    return store.select(
        PlayVerdict,
        "SELECT c.run_id, c.mode, c.model, c.see, c.episode_id, coalesce(c.family, 'everyday') AS family, "
        "c.scenario_id, c.value >= 1 AS plays, coalesce(c.label, '') AS fault, c.reason, "
        "c.turns_json::JSON::INTEGER[] AS turns "
        "FROM v_scores c JOIN episodes e USING (episode_id) WHERE c.run_id IN (SELECT unnest(?)) AND c.newest "
        "AND c.name = 'plays' AND c.value IS NOT NULL ORDER BY c.scenario_id, c.mode, c.see, e.episode_index, "
        "c.episode_id",
        [list(runs)],
    )


class Said(NamedTuple):
    """What was said in a turn."""

    turn: int
    speaker: str
    text: str


def words(store: Store, episode_id: str) -> list[Said]:
    """The turns of an episode, in order."""
    query = "SELECT turn, speaker, text FROM turns WHERE episode_id = ? ORDER BY turn"
    return store.select(Said, query, [episode_id])


@dataclass(frozen=True)
class Counts:
    """What an episode has, in numbers; None without replies or turns."""

    episode_id: str
    replies: int | None
    malformed: int | None
    turns: int | None
    truncated: int | None
    repaired: int | None
    ruled: int
    """1 for a completed episode that could have ended as `stale`; the first edition of the rules, and conversations of
    people, know no such end.
    """
    stale: int


def counts(store: Store, run_id: str) -> list[Counts]:
    """The counts of each episode."""
    return store.select(
        Counts,
        "SELECT e.episode_id, g.replies, g.malformed, t.turns, t.truncated, t.repaired, "
        "(e.status = 'completed' AND (r.plan_json ->> '$.edition') IS NOT NULL)::INTEGER AS ruled, "
        "coalesce(e.stop_reason = 'stale', false)::INTEGER AS stale "
        "FROM episodes e JOIN runs r USING (run_id) LEFT JOIN (SELECT episode_id, "
        "count(*) FILTER (cause <> 'error') AS replies, "
        "count(*) FILTER (cause <> 'error' AND malformed IS NOT NULL) AS malformed FROM v_generations "
        "WHERE run_id = $run AND step IS NULL GROUP BY 1) g USING (episode_id) "
        "LEFT JOIN (SELECT t.episode_id, count(*) AS turns, "
        "count(*) FILTER (t.truncated) AS truncated, count(*) FILTER (t.repaired) AS repaired "
        "FROM turns t JOIN episodes e USING (episode_id) "
        "WHERE run_id = $run AND (t.generation >= 0 OR t.speaker = '' OR e.mode = 'people') GROUP BY 1) t "
        "USING (episode_id) "
        "WHERE e.run_id = $run",
        {"run": run_id},
    )


def answers(store: Store, run_id: str) -> dict[str, str]:
    """Episode id -> answer key of its scenario, as JSON."""
    return store.pairs(
        "SELECT e.episode_id, s.answer_json FROM episodes e JOIN scenarios s USING (scenario_hash) WHERE e.run_id = ?",
        [run_id],
    )


@dataclass(frozen=True)
class Tokens:
    """The tokens of a run."""

    generated: int
    evaluated: int


def tokens(store: Store, run_id: str) -> Tokens:
    """Tokens generated and evaluated."""
    return store.select(
        Tokens,
        "SELECT coalesce(sum(generated_tokens), 0)::BIGINT AS generated, "
        "coalesce(sum(evaluated_tokens), 0)::BIGINT AS evaluated FROM v_generations WHERE run_id = ?",
        [run_id],
    )[0]


def scenario_paths(store: Store, run_id: str) -> list[str]:
    """The paths of the scenario files, else their ids."""
    return store.column(
        "SELECT DISTINCT coalesce(s.path, s.scenario_id) AS path FROM scenarios s "
        "JOIN episodes e USING (scenario_hash) WHERE e.run_id = ? ORDER BY 1",
        [run_id],
    )


def with_secrets(store: Store, run_id: str) -> set[str]:
    """The hashes of the scenarios in which an agent has a private fact or a secret, so that something could leak."""
    found = store.column(
        "SELECT scenario_hash FROM scenarios WHERE scenario_hash IN (SELECT scenario_hash FROM episodes "
        "WHERE run_id = ?) AND (len(document_json -> '$.agents[*].facts[0]') > 0 "
        "OR len(list_filter(document_json ->> '$.agents[*].secret', lambda secret: secret <> '')) > 0)",
        [run_id],
    )
    return set(found)


@dataclass(frozen=True)
class Leak:
    """The first disclosure of a private fact."""

    episode_id: str
    family: str
    scenario_id: str
    mode: str
    see: str | None
    model: str
    fact_id: str
    fact: str
    owner: str
    speaker: str
    turn: int
    position: float
    """From 0, the start of the conversation, to 1, its end."""
    kind: str
    early: bool
    probability: float
    similarity: float | None
    evidence: str
    text: str
    """What was said in the turn."""


def leaks(store: Store, run_id: str) -> list[Leak]:
    """The first disclosure of each private fact, with the text of its turn."""
    return store.select(
        Leak,
        "SELECT l.episode_id, coalesce(l.family, 'everyday') AS family, l.scenario_id, l.mode, l.see, l.model, "
        "l.fact_id, l.fact, l.owner, l.speaker, l.turn, l.position, l.kind, l.early, l.probability, l.similarity, "
        "l.evidence, t.text FROM v_leaks l JOIN turns t ON t.episode_id = l.episode_id AND t.turn = l.turn "
        "WHERE l.run_id = ? ORDER BY l.kind, l.scenario_id, l.mode, l.see, l.episode_id, l.turn",
        [run_id],
    )


@dataclass(frozen=True)
class Search:
    """The episodes of a family that were searched for leaks with one set of thresholds."""

    version: str
    weights: str
    text: str | None
    """The file of thresholds; None if it is not stored."""
    family: str
    episodes: int


def searches(store: Store, run_id: str) -> list[Search]:
    """The searches for leaks whose findings count; those of most episodes first."""
    found = store.select(
        Search,
        "SELECT s.version, coalesce(q.weights, 'built-in') AS weights, q.weights_hash AS text, "
        "coalesce(s.family, 'everyday') AS family, count(*) AS episodes "
        "FROM (SELECT DISTINCT episode_id, version, family FROM v_scores "
        "WHERE run_id = ? AND evaluator = 'leakage' AND newest) s "
        "LEFT JOIN searches q ON q.episode_id = s.episode_id AND q.version = s.version GROUP BY ALL "
        "ORDER BY episodes DESC, s.version, family",
        [run_id],
    )
    texts = contents_of(store, list({each.text for each in found if each.text}))
    return [replace(each, text=texts.get(each.text or "")) for each in found]


def private_facts(store: Store, run_id: str) -> dict[tuple[str, Condition], int]:
    """Family and condition -> number of private facts that were searched for leaks, if there are any."""
    rows = store.rows(
        "SELECT run_id, coalesce(family, 'everyday') AS family, mode, model, see, sum(value)::INTEGER AS n "
        "FROM v_scores WHERE run_id = ? "
        "AND newest AND evaluator = 'leakage' AND name = 'private_facts' GROUP BY ALL",
        [run_id],
    )
    return {(row["family"], condition_of(row)): row["n"] for row in rows if row["n"]}


def own_disclosures(store: Store, run_id: str) -> dict[tuple[str, Condition], list[float]]:
    """Family and condition -> positions of the disclosures of facts by their owners."""
    rows = store.rows(
        "SELECT run_id, coalesce(family, 'everyday') AS family, mode, model, see, position FROM v_leaks "
        "WHERE run_id = ? AND kind = 'self'",
        [run_id],
    )
    found: dict[tuple[str, Condition], list[float]] = {}
    for row in rows:
        found.setdefault((row["family"], condition_of(row)), []).append(row["position"])
    return found


@dataclass(frozen=True)
class Scenarios:
    """The scenarios of a family in one condition."""

    family: str
    mode: str
    see: str
    hashes: list[str]
    """In order."""


def conditions_with_scenarios(store: Store, run_id: str) -> list[Scenarios]:
    """The scenarios of each family and condition."""
    return store.select(
        Scenarios,
        "SELECT family, mode, see, list(DISTINCT scenario_hash ORDER BY scenario_hash) AS hashes "
        "FROM v_episodes WHERE run_id = ? AND family IS NOT NULL GROUP BY ALL ORDER BY family, mode, see",
        [run_id],
    )


def cited(store: Store, run_id: str, name: str) -> dict[str, list[int]]:
    """Episode id -> the turns that the newest scores of a name cite; episodes without such a score are left out."""
    return store.pairs(
        "SELECT episode_id, flatten(list(CAST(turns_json AS INTEGER[]))) AS turns FROM v_scores "
        "WHERE run_id = ? AND newest AND name = ? GROUP BY episode_id",
        [run_id, name],
    )


def weighed(store: Store, run_id: str | None = None, episode_id: str | None = None) -> dict[tuple[str, int], str]:
    """Episode id and turn -> options, as JSON that the engine kept, for the answers of a run or an episode whose
    options were weighed.
    """
    rows = store.rows(
        "SELECT t.episode_id, t.turn, (g.details_json -> '$.options')::VARCHAR AS options FROM turns t "
        "JOIN generations g USING (episode_id, generation) JOIN episodes e USING (episode_id) "
        "WHERE (e.run_id = $run OR t.episode_id = $episode) AND (g.details_json -> '$.options') IS NOT NULL",
        {"run": run_id, "episode": episode_id},
    )
    return {(row["episode_id"], row["turn"]): row["options"] for row in rows}
