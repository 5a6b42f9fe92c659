"""The report of a run: a row for each family x mode x model with intervals, warnings, and example transcripts.

Numbers come from v_scores and v_episodes alone; writing HTML is `report_html`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from localsim import stats
from localsim.annotation.agreement import agreement
from localsim.conversation.episode import MODES
from localsim.evaluators.judge import reliability
from localsim.evaluators.naturalness import rates
from localsim.leakage.detector import Weights
from localsim.reports.curves import curves
from localsim.store.database import Store

Row = dict[str, Any]

COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("success_rate", "success", "share"),
    ("checks_passed", "checks passed", "share"),
    ("explicit_end_rate", "explicit end", "share"),
    ("deal_rate", "deal", "share"),
    ("in_zone_rate", "in zone", "share"),
    ("seller_surplus", "seller surplus", "number"),
    ("buyer_surplus", "buyer surplus", "number"),
    ("first_mention", "first mention", "number"),
    ("named_rate", "friend named", "share"),
    ("wrong_guesses", "wrong guesses", "number"),
    ("guessing", "asks by name", "share"),
    ("disclosed_rate", "facts disclosed", "share"),
    ("early_disclosures", "too early", "number"),
    ("omniscient_leaks", "omniscient leaks", "number"),
    ("words_per_turn", "words/turn", "number"),
    ("filler_rate", "fillers", "share"),
    ("turns", "turns", "number"),
    ("repeated_turn_rate", "repeated turns", "share"),
    ("other_language_rate", "other language", "share"),
    ("malformed_rate", "malformed", "share"),
    ("truncated_rate", "cut short", "share"),
)
"""(key, heading, kind) of every estimate of a row."""
QUOTED = 12
"""Leaks that a report quotes."""


@dataclass(frozen=True)
class _Cell:
    """The episodes and scores of one family x mode x model."""

    episodes: list[Row]
    scores: list[Row]
    generations: list[Row]
    turns: list[Row]

    def completed(self) -> int:
        return sum(row["status"] == "completed" for row in self.episodes)

    def values(self, name: str, agent: str | None = None) -> list[float]:
        return [
            float(row["value"])
            for row in self.scores
            if row["name"] == name and row["value"] is not None and (agent is None or row["agent"] == agent)
        ]

    def by_episode(self, name: str, per: str | None = None) -> list[float]:
        """The sum of a score over the agents of each episode, as a part of the sum of another where one is given."""
        sums: dict[str, dict[str, float]] = {}
        for row in self.scores:
            if row["name"] in (name, per) and row["value"] is not None:
                found = sums.setdefault(row["episode_id"], {})
                found[row["name"]] = found.get(row["name"], 0.0) + float(row["value"])
        if per is None:
            return [found.get(name, 0.0) for found in sums.values()]
        return [found.get(name, 0.0) / found[per] for found in sums.values() if found.get(per)]

    def has(self, name: str) -> bool:
        return any(row["name"] == name for row in self.scores)


def report(store: Store, run_id: str) -> Row:
    """Everything that `report --json` prints, but for the simulation card, which is made from it."""
    run = store.rows("SELECT * FROM runs WHERE run_id = ?", [run_id])[0]
    cells = _cells(store, run_id)
    sellers = _sellers(store, run_id)
    comparison = [_comparison_row(key, cell, sellers) for key, cell in cells.items()]
    return {
        "run": _run_json(run, store, run_id),
        "comparison": comparison,
        "curves": curves(store, run_id),
        "leaks": leaks_of(store, run_id),
        "detector": detector_accuracy() if _scored(store, run_id) else None,
        "warnings": _warnings(run, comparison),
        "judges": reliability(store, run_id),
        "naturalness": rates(store, run_id),
        "annotations": agreement(store, run_id),
        "parser_accuracy": parser_accuracy(),
    }


def leaks_of(store: Store, run_id: str) -> list[Row]:
    """The first disclosure of each private fact, with the turn that gives it away."""
    return store.rows(
        "SELECT l.episode_id, coalesce(l.family, 'everyday') AS family, l.scenario_id, l.mode, l.model, l.fact_id, "
        "l.fact, l.owner, l.speaker, l.turn, l.position, l.kind, l.early, l.probability, l.similarity, l.evidence, "
        "t.text FROM v_leaks l JOIN turns t ON t.episode_id = l.episode_id AND t.turn = l.turn WHERE l.run_id = ? "
        "ORDER BY l.kind, l.scenario_id, l.mode, l.episode_id, l.turn",
        [run_id],
    )


def foremost(leaks: Iterable[Row]) -> list[Row]:
    """The leaks to quote: omniscient ones first, then early ones, then the surest; at most QUOTED."""
    ordered = sorted(leaks, key=lambda leak: (leak["kind"] != "omniscient", not leak["early"], -leak["probability"]))
    return ordered[:QUOTED]


def estimate_text(row: Row, key: str, kind: str) -> str | None:
    """An estimate of a comparison row with its interval, for a terminal or a document; None where it has no value."""
    value, low, high = row[key], row[f"{key}_low"], row[f"{key}_high"]
    if value is None:
        return None
    form = ".0%" if kind == "share" else ".2f"
    return f"{value:{form}} [{low:{form}}, {high:{form}}]" if low is not None else f"{value:{form}}"


def detector_accuracy() -> Row:
    """How often the leakage detector is right on labelled talks about facts that it was not trained on."""
    return dict(Weights.read().accuracy)


def _scored(store: Store, run_id: str) -> bool:
    query = "SELECT count(*) AS n FROM v_scores WHERE run_id = ? AND evaluator = 'leakage'"
    return bool(store.rows(query, [run_id])[0]["n"])


def parser_accuracy() -> Row | None:
    """How often the parser of endings is right on labelled endings it was not written from; None if not measured."""
    file = files("localsim.families.craigslist").joinpath("endings_accuracy.json")
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def _cells(store: Store, run_id: str) -> dict[tuple[str, str, str], _Cell]:
    def by_cell(query: str) -> dict[tuple[str, str, str], list[Row]]:
        found: dict[tuple[str, str, str], list[Row]] = {}
        for row in store.rows(query, [run_id]):
            found.setdefault((row["family"] or "everyday", row["mode"], row["model"]), []).append(row)
        return found

    episodes = by_cell("SELECT * FROM v_episodes WHERE run_id = ? ORDER BY scenario_id, episode_index")
    scores = by_cell("SELECT * FROM v_scores WHERE run_id = ? AND newest")
    generations = by_cell(
        "SELECT e.family, e.mode, e.model, g.malformed, g.cause FROM generations g "
        "JOIN v_episodes e USING (episode_id) WHERE e.run_id = ?"
    )
    turns = by_cell("SELECT family, mode, model, truncated FROM v_turns WHERE run_id = ?")
    ordered = sorted(episodes, key=lambda key: (key[0], MODES.index(key[1]), key[2]))
    return {
        key: _Cell(episodes[key], scores.get(key, []), generations.get(key, []), turns.get(key, [])) for key in ordered
    }


def _sellers(store: Store, run_id: str) -> dict[str, str]:
    """The seller's name of each bargaining episode; the surplus of the other agent is the buyer's."""
    rows = store.rows(
        "SELECT e.episode_id, json_extract_string(s.answer_json, '$.answer.seller') AS seller FROM episodes e "
        "JOIN scenarios s USING (scenario_hash) WHERE e.run_id = ? AND s.family = 'craigslist'",
        [run_id],
    )
    return {row["episode_id"]: row["seller"] for row in rows}


def _comparison_row(key: tuple[str, str, str], cell: _Cell, sellers: dict[str, str]) -> Row:
    family, mode, model = key
    n, completed = len(cell.episodes), cell.completed()
    row: Row = {"family": family, "mode": mode, "model": model, "n": n, "completed": completed}
    row["failed"] = sum(item["status"] == "failed" for item in cell.episodes)
    for name, estimate in _estimates(cell, completed, sellers).items():
        row[name] = _rounded(estimate.value)
        row[f"{name}_low"], row[f"{name}_high"] = _rounded(estimate.low), _rounded(estimate.high)
    row["first_mention_n"] = len(cell.values("first_mention"))
    return row


def _estimates(cell: _Cell, completed: int, sellers: dict[str, str]) -> dict[str, stats.Estimate]:
    surplus: dict[bool, list[float]] = {True: [], False: []}
    for row in cell.scores:
        if row["name"] == "surplus" and row["value"] is not None:
            surplus[row["agent"] == sellers.get(row["episode_id"])].append(float(row["value"]))
    had = [row for row in cell.generations if row["cause"] != "error"]
    bargaining = cell.has("ending")
    return {
        "success_rate": _share_of(cell.values("success")),
        "checks_passed": stats.mean(cell.values("checks_passed")),
        "explicit_end_rate": _share_of(cell.values("explicit_end")),
        "deal_rate": stats.share(int(sum(cell.values("deal"))), completed) if bargaining else stats.NOTHING,
        "in_zone_rate": _share_of(cell.values("in_zone")),
        "seller_surplus": stats.mean(surplus[True]),
        "buyer_surplus": stats.mean(surplus[False]),
        "first_mention": stats.mean(cell.values("first_mention")),
        "named_rate": _share_of(cell.values("named")),
        "wrong_guesses": stats.mean(cell.values("wrong_guesses")),
        "guessing": stats.mean(cell.values("guessing")),
        "disclosed_rate": stats.mean(cell.by_episode("disclosed_facts", "private_facts")),
        "early_disclosures": stats.mean(cell.by_episode("early_disclosures")),
        "omniscient_leaks": stats.mean(cell.by_episode("omniscient_leaks")),
        "words_per_turn": stats.mean(cell.values("words_per_turn")),
        "filler_rate": stats.mean(cell.values("filler_turns")),
        "turns": stats.mean(cell.values("turns")),
        "repeated_turn_rate": stats.mean(cell.values("repeated_turns")),
        "other_language_rate": stats.mean(cell.values("other_language_turns")),
        "malformed_rate": stats.share(sum(row["malformed"] is not None for row in had), len(had)),
        "truncated_rate": stats.share(sum(bool(row["truncated"]) for row in cell.turns), len(cell.turns)),
    }


def _share_of(values: list[float]) -> stats.Estimate:
    return stats.share(int(sum(values)), len(values))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _run_json(run: Row, store: Store, run_id: str) -> Row:
    tokens = store.rows(
        "SELECT coalesce(sum(generated_tokens), 0) AS generated, coalesce(sum(evaluated_tokens), 0) AS evaluated "
        "FROM v_generations WHERE run_id = ?",
        [run_id],
    )[0]
    return {
        "run_id": run_id,
        "status": run["status"],
        "started_utc": run["started_utc"].isoformat(),
        "finished_utc": run["finished_utc"].isoformat() if run["finished_utc"] else None,
        "seed": run["seed"],
        "repro": run["repro"],
        "parallel": run["parallel"],
        "episodes_planned": run["episodes_planned"],
        "models": json.loads(run["models_json"]),
        "versions": json.loads(run["versions_json"]),
        "plan": json.loads(run["plan_json"]),
        "scenarios": [row["path"] for row in _scenario_paths(store, run_id)],
        "tokens_generated": int(tokens["generated"]),
        "tokens_evaluated": int(tokens["evaluated"]),
    }


def _scenario_paths(store: Store, run_id: str) -> list[Row]:
    return store.rows(
        "SELECT DISTINCT coalesce(s.path, s.scenario_id) AS path FROM scenarios s "
        "JOIN episodes e USING (scenario_hash) WHERE e.run_id = ? ORDER BY 1",
        [run_id],
    )


def _warnings(run: Row, comparison: list[Row]) -> list[str]:
    """What a reader must know before believing the table, in plain words."""
    found = []
    models = json.loads(run["models_json"])
    scripted = [name for name, identity in models.items() if identity["kind"] == "scripted"]
    if scripted:
        found.append(f"{', '.join(scripted)}: played by a script, not by a language model.")
    if any(identity.get("file", "").startswith("SmolLM2-135M") for identity in models.values()):
        found.append("SmolLM2-135M is a very small model: good for trying the tool, not for conclusions about people.")
    if any(identity.get("file", "").startswith("localsim-starter") for identity in models.values()):
        found.append(
            "The starter is a very small model that has learnt from scripted talks to hold these conversations: for "
            "teaching and for trying the tool, not for conclusions about people. It was shown no omniscient behaviour."
        )
    remote = sorted({identity["url"] for identity in models.values() if identity["kind"] == "remote"})
    if remote:
        found.append(f"Remote: text was written at {', '.join(remote)}; weights and seeds there are not verified.")
    total, done = run["episodes_planned"], sum(row["completed"] + row["failed"] for row in comparison)
    if done < total:
        found.append(f"{total - done} of {total} planned episodes are missing (localsim resume {run['run_id']}).")
    failed = sum(row["failed"] for row in comparison)
    if failed:
        found.append(f"{failed} of {done} episodes failed; rates are of completed ones.")
    small = min((row["completed"] for row in comparison if row["completed"]), default=30)
    if small < 30:
        found.append(f"As few as {small} completed episodes a cell: read the intervals, not the differences.")
    found += _no_guess_baseline(comparison)
    return found


def _no_guess_baseline(comparison: Iterable[Row]) -> list[str]:
    rows = [row for row in comparison if row["family"] == "mutual_friends"]
    if not rows or any("guesser" in row["model"] for row in rows):
        return []
    return ["First mentions have no guessing baseline here; --model scripted:guesser on the same scenarios gives one."]
