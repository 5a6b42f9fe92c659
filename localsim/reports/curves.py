"""Curves over the course of a talk: who has named the friend, what has come out, how offers move.

Positions are relative: 0 is the start of a talk, 1 its end (the paper's figures 10 and 12 are the first of them).
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from localsim.conversation.episode import MODES
from localsim.families.prices import find_prices
from localsim.store.database import Store

Row = dict[str, Any]
Points = list[tuple[float, float]]
BINS = 5
"""Parts of a talk over which offers are averaged."""


def curves(store: Store, run_id: str) -> list[Row]:
    """Rows of family, name, and series: mode, side (or ''), n, points (x, y), and whether they make steps."""
    found = [_named(store, run_id), *_disclosed(store, run_id), _offers(store, run_id)]
    return [curve for curve in found if curve["series"]]


def steps(positions: list[float], total: int) -> Points:
    """The share of `total` that has come up by each position: an empirical distribution that need not reach 1."""
    points: Points = [(0.0, 0.0)]
    for count, position in enumerate(sorted(positions), start=1):
        points.append((position, count / total))
    return [*points, (1.0, points[-1][1])]


def _series(mode: str, n: int, points: Points, side: str = "") -> Row:
    return {"mode": mode, "side": side, "n": n, "points": points}


def _ordered(modes: Any) -> list[str]:
    return sorted(modes, key=lambda mode: MODES.index(mode))


def _named(store: Store, run_id: str) -> Row:
    """Share of talks in which the friend in common has been named by a position."""
    rows = store.rows(
        "SELECT e.mode, e.episode_id, max(s.value) FILTER (s.name = 'first_mention') AS position "
        "FROM v_episodes e JOIN v_scores s USING (episode_id) WHERE e.run_id = ? AND e.family = 'mutual_friends' "
        "AND e.status = 'completed' AND s.newest AND s.name IN ('first_mention', 'named') GROUP BY ALL",
        [run_id],
    )
    talks: dict[str, list[float | None]] = defaultdict(list)
    for row in rows:
        talks[row["mode"]].append(row["position"])
    series = [
        _series(mode, len(talks[mode]), steps([at for at in talks[mode] if at is not None], len(talks[mode])))
        for mode in _ordered(talks)
    ]
    return {"family": "mutual_friends", "name": "named", "steps": True, "series": series}


def _disclosed(store: Store, run_id: str) -> list[Row]:
    """Share of the private facts that their owners have given away by a position, for each family."""
    totals = store.rows(
        "SELECT coalesce(family, 'everyday') AS family, mode, sum(value)::INTEGER AS n FROM v_scores WHERE run_id = ? "
        "AND newest AND evaluator = 'leakage' AND name = 'private_facts' GROUP BY ALL",
        [run_id],
    )
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in store.rows(
        "SELECT coalesce(family, 'everyday') AS family, mode, position FROM v_leaks WHERE run_id = ? AND kind = 'self'",
        [run_id],
    ):
        found[row["family"], row["mode"]].append(float(row["position"]))
    families: dict[str, dict[str, int]] = defaultdict(dict)
    for row in totals:
        if row["n"]:
            families[row["family"]][row["mode"]] = row["n"]
    return [
        {
            "family": family,
            "name": "disclosed",
            "steps": True,
            "series": [
                _series(mode, by_mode[mode], steps(found[family, mode], by_mode[mode])) for mode in _ordered(by_mode)
            ],
        }
        for family, by_mode in families.items()
    ]


def _offers(store: Store, run_id: str) -> Row:
    """Prices that each side names, as a part of the list price, averaged over fifths of the talks: concessions."""
    rows = store.rows(
        "SELECT t.mode, t.speaker, t.text, t.position, (s.answer_json->>'$.answer.list_price')::DOUBLE AS list_price, "
        "s.answer_json->>'$.answer.seller' AS seller FROM v_turns t JOIN v_episodes e USING (episode_id) "
        "JOIN scenarios s ON s.scenario_hash = e.scenario_hash "
        "WHERE t.run_id = ? AND t.family = 'craigslist' AND e.status = 'completed' AND t.action IN ('speak', 'leave')",
        [run_id],
    )
    named: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        prices = [each for each in find_prices(row["text"], list_price=row["list_price"]) if not each.negated]
        if prices:
            side = "seller" if row["speaker"] == row["seller"] else "buyer"
            share = prices[-1].value / row["list_price"]
            if 0.05 <= share <= 2:  # other numbers than offers, such as sizes and years
                named[row["mode"], side][min(BINS - 1, int(row["position"] * BINS))].append(share)
    series = [
        _series(
            mode,
            sum(map(len, parts.values())),
            [((number + 0.5) / BINS, sum(values) / len(values)) for number, values in sorted(parts.items())],
            side,
        )
        for (mode, side), parts in sorted(named.items(), key=lambda item: (MODES.index(item[0][0]), item[0][1]))
    ]
    return {"family": "craigslist", "name": "offers", "steps": False, "series": series}
