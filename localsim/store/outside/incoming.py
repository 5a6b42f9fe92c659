"""Takes one source into a database: what is new is added, what is known is left, and what contradicts it is named.

The rows of the source are the temporary views `incoming_TABLE`. An episode is known if its own row, its turns and its
generations are all equal. One that was interrupted gives way to the same episode when it has more turns or has ended.
Any other difference is a clash: the incoming episode is kept out, or kept apart under another id, RUN~2.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from localsim.store.lock import Connection
from localsim.store.outside.converting import LeftBehind
from localsim.store.schema import SHARED, TABLES

MARK = "~"
"""Stands before the number of a run, an episode or a rater that was kept apart."""
_CORE = ("episodes", "turns", "generations")
_ADDED = ("scores", "leaks", "searches", "judgements")
"""Tables to which later commands add rows about an episode."""
_NOT_COMPARED = {"searched_utc", "duration_ms", "path"}
"""Columns that may differ between two records of the same thing; `path` is where a scenario file was."""


@dataclass(frozen=True)
class Clash:
    """Something in a source that has the id of something else in the database."""

    what: str
    """Kind of thing: run, episode, annotation, scenario, text, or the table of rows about an episode."""
    name: str
    detail: str
    kept: str = ""
    """The id under which it was kept apart; empty if it was kept out."""


@dataclass
class Taken:
    """What one source brought."""

    runs: int = 0
    """Runs that the database did not have."""
    new: int = 0
    """Episodes that the database did not have."""
    known: int = 0
    """Episodes that it had."""
    completed: int = 0
    """Episodes of which it had a part."""
    scores: int = 0
    annotations: int = 0
    clashes: list[Clash] = field(default_factory=list)
    left_behind: list[LeftBehind] = field(default_factory=list)
    """What this version of localsim has no place for."""


def take(connection: Connection, *, apart: bool) -> Taken:
    """Add what the views `incoming_TABLE` show; call it within a transaction.

    `apart` keeps what clashes under new ids.
    """
    taken = Taken()
    _sort_episodes(connection, taken, apart)
    _take_runs(connection, taken)
    _take_shared(connection, taken)
    _take_core(connection)
    moved = _moved(connection)
    _take_added(connection, taken)
    _take_annotations(connection, taken, moved, apart)
    return taken


# ---- which episodes are new ----------------------------------------------------------------------------------------


def _sort_episodes(connection: Connection, taken: Taken, apart: bool) -> None:
    """Make the table `sorted`: each incoming episode with its new id, new run and state.

    States: new, known, newer (it replaces a part), older (it is a part), out (a clash that is kept out).
    """
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE sorted AS SELECT e.episode_id, e.run_id, e.episode_id AS new_id, "
        "e.run_id AS new_run, '' AS state FROM incoming_episodes e SEMI JOIN incoming_runs USING (run_id)"
    )
    number = 1
    while connection.execute("SELECT 1 FROM sorted WHERE state = '' LIMIT 1").fetchone():
        _compare(connection, apart)
        if number == 1:
            taken.clashes += _clashes(connection)
        number += 1
        if apart:
            connection.execute(
                "UPDATE sorted SET new_id = episode_id || $mark, new_run = run_id || $mark WHERE state = ''",
                {"mark": f"{MARK}{number}"},
            )
        else:
            connection.execute("UPDATE sorted SET state = 'out' WHERE state = ''")
    counts = dict(connection.execute("SELECT state, count(*) FROM sorted GROUP BY 1").fetchall())
    taken.new, taken.completed = counts.get("new", 0), counts.get("newer", 0)
    taken.known = counts.get("known", 0) + counts.get("older", 0)
    if apart:
        taken.clashes = [replace(each, kept=_kept(connection, each)) for each in taken.clashes]


def _kept(connection: Connection, clash: Clash) -> str:
    """Return the new id of a run or episode that was kept apart."""
    own, new = ("run_id", "new_run") if clash.what == "run" else ("episode_id", "new_id")
    row = connection.execute(f"SELECT {new} FROM sorted WHERE {own} = ? LIMIT 1", [clash.name]).fetchone()
    return str(row[0]) if row else ""


def _compare(connection: Connection, apart: bool) -> None:
    """Give a state to the episodes that are new under their present new id, or known, or a part of the known one."""
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE other_plans AS SELECT DISTINCT s.new_run FROM sorted s "
        "JOIN incoming_runs i ON i.run_id = s.run_id JOIN runs r ON r.run_id = s.new_run "
        "WHERE (i.seed, i.started_utc, i.plan_json) IS DISTINCT FROM (r.seed, r.started_utc, r.plan_json)"
    )
    candidates = "state = '' AND new_run NOT IN (SELECT new_run FROM other_plans)"
    connection.execute(
        f"UPDATE sorted SET state = 'new' WHERE {candidates} AND new_id NOT IN (SELECT episode_id FROM episodes)"
    )
    different = [_different(table) for table in _CORE]
    different += [_contradicting(table) for table in _ADDED] if apart else []
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE different AS SELECT DISTINCT episode_id FROM ("
        + " UNION ALL ".join(different)
        + ")"
    )
    same = "episode_id NOT IN (SELECT episode_id FROM different)"
    connection.execute(f"UPDATE sorted SET state = 'known' WHERE {candidates} AND {same}")
    parts = (
        "SELECT s.episode_id, CASE WHEN e.status = 'interrupted' AND (i.status <> 'interrupted' OR i.turns > e.turns) "
        "THEN 'newer' WHEN i.status = 'interrupted' THEN 'older' END AS part FROM sorted s "
        "JOIN incoming_episodes i ON i.episode_id = s.episode_id JOIN episodes e ON e.episode_id = s.new_id "
        f"WHERE {candidates}"
    )
    connection.execute(
        f"UPDATE sorted SET state = p.part FROM ({parts}) p "
        "WHERE p.episode_id = sorted.episode_id AND p.part IS NOT NULL"
    )


def _columns(table: str) -> list[str]:
    """Return the columns of a table that must be equal in equal rows, without the ids of episode and run."""
    return [name for name in TABLES[table].columns if name not in {"episode_id", "run_id", *_NOT_COMPARED}]


def _different(table: str) -> str:
    """Return a query for the episodes whose rows in a table are not the same on both sides."""
    names = ", ".join(f"t.{name}" for name in _columns(table))
    ours = f"SELECT s.episode_id, {names} FROM sorted s JOIN {table} t ON t.episode_id = s.new_id WHERE s.state = ''"
    theirs = (
        f"SELECT s.episode_id, {names} FROM sorted s JOIN incoming_{table} t ON t.episode_id = s.episode_id "
        "WHERE s.state = ''"
    )
    return (
        f"SELECT episode_id FROM (({ours}) EXCEPT ({theirs})) UNION ALL "
        f"SELECT episode_id FROM (({theirs}) EXCEPT ({ours}))"
    )


def _contradicting(table: str, state: str = "s.state = ''", more: str = "") -> str:
    """Return a query for the episodes that have a row on both sides with the same key and another content."""
    key = " AND ".join(f"o.{name} = i.{name}" for name in TABLES[table].key[1:])
    values = [name for name in _columns(table) if name not in TABLES[table].key]
    ours, theirs = (f"({', '.join(f'{side}.{name}' for name in values)})" for side in ("o", "i"))
    return (
        f"SELECT s.episode_id{more} FROM sorted s JOIN incoming_{table} i ON i.episode_id = s.episode_id "
        f"JOIN {table} o ON o.episode_id = s.new_id AND {key} WHERE {state} AND {ours} IS DISTINCT FROM {theirs}"
    )


def _clashes(connection: Connection) -> Iterator[Clash]:
    """Yield the clashes of runs and episodes: what has no state now."""
    runs = connection.execute(
        "SELECT s.run_id, count(*) FROM sorted s SEMI JOIN other_plans USING (new_run) GROUP BY 1 ORDER BY 1"
    ).fetchall()
    for run_id, count in runs:
        yield Clash("run", run_id, f"another plan, seed or time has this id, with {count} episodes")
    rows = connection.execute(
        "SELECT s.episode_id, s.run_id, c.scenario_id, e.mode, "
        "(SELECT min(turn) FROM ((SELECT turn, speaker, action, text FROM turns t WHERE t.episode_id = s.new_id) "
        "EXCEPT (SELECT turn, speaker, action, text FROM incoming_turns t WHERE t.episode_id = s.episode_id))) AS turn "
        "FROM sorted s JOIN incoming_episodes e ON e.episode_id = s.episode_id "
        "LEFT JOIN incoming_scenarios c ON c.scenario_hash = e.scenario_hash "
        "WHERE s.state = '' AND s.run_id NOT IN (SELECT new_run FROM other_plans) ORDER BY 1"
    ).fetchall()
    for episode_id, run_id, scenario, mode, turn in rows:
        place = f"differs from turn {turn + 1} on" if turn is not None else "differs in its record"
        yield Clash("episode", episode_id, f"{scenario}, {mode}, of run {run_id}: {place}")


# ---- rows ----------------------------------------------------------------------------------------------------------


def _take_runs(connection: Connection, taken: Taken) -> None:
    """Add runs, and bring those up to date that have gone on since."""
    names = ", ".join(f"i.{name}" for name in TABLES["runs"].columns if name != "run_id")
    listed = ", ".join(TABLES["runs"].columns)
    wanted = (
        "(SELECT DISTINCT run_id, new_run FROM sorted WHERE state <> 'out' UNION "
        "SELECT run_id, run_id FROM incoming_runs ANTI JOIN sorted USING (run_id))"
    )
    ordered = "list_position(['running', 'interrupted', 'finished'], {0}.status)"
    newer = (
        f"({ordered.format('i')}, coalesce(i.finished_utc, i.started_utc)) > "
        f"({ordered.format('r')}, coalesce(r.finished_utc, r.started_utc))"
    )
    source = f"FROM {wanted} w JOIN incoming_runs i ON i.run_id = w.run_id LEFT JOIN runs r ON r.run_id = w.new_run"
    plan = "(i.seed, i.started_utc, i.plan_json) IS NOT DISTINCT FROM (r.seed, r.started_utc, r.plan_json)"
    row = connection.execute(f"SELECT count(*) {source} WHERE r.run_id IS NULL").fetchone()
    taken.runs = int(row[0]) if row else 0
    connection.execute(
        f"INSERT OR REPLACE INTO runs ({listed}) SELECT w.new_run, {names} {source} "
        f"WHERE r.run_id IS NULL OR ({plan} AND {newer})"
    )


def _take_shared(connection: Connection, taken: Taken) -> None:
    """Add texts, scenarios and vectors, which are named by a hash of their content."""
    rows = connection.execute(
        "SELECT i.scenario_hash, i.scenario_id FROM incoming_scenarios i JOIN scenarios o USING (scenario_hash) "
        "WHERE (i.document_json, i.answer_json) IS DISTINCT FROM (o.document_json, o.answer_json)"
    ).fetchall()
    taken.clashes += [Clash("scenario", name, f"{title} has another content") for name, title in rows]
    wrong = "content_hash <> left(sha256(text), 32)"
    for (name,) in connection.execute(f"SELECT content_hash FROM incoming_contents WHERE {wrong}").fetchall():
        taken.clashes.append(Clash("text", name, "the text does not have this hash"))
    for table in SHARED:
        where = f"WHERE NOT ({wrong})" if table == "contents" else ""
        names = ", ".join(TABLES[table].columns)
        connection.execute(f"INSERT OR IGNORE INTO {table} ({names}) SELECT {names} FROM incoming_{table} {where}")


def _take_core(connection: Connection) -> None:
    """Add new episodes with their turns and generations, and replace those of which there was a part."""
    for table in _CORE:
        connection.execute(_insert(table, "s.state IN ('new', 'newer')", "REPLACE"))
    for table in ("turns", "generations"):
        number = TABLES[table].key[1]
        connection.execute(
            f"DELETE FROM {table} WHERE episode_id IN (SELECT new_id FROM sorted WHERE state = 'newer') AND "
            f"(episode_id, {number}) NOT IN (SELECT s.new_id, t.{number} FROM sorted s JOIN incoming_{table} t "
            "USING (episode_id) WHERE s.state = 'newer')"
        )


def _insert(table: str, which: str, way: str) -> str:
    """Return the statement that adds the rows of sorted episodes; `way` is what happens to known keys."""
    replaced = {"episode_id": "s.new_id", "run_id": "s.new_run", "other_id": "coalesce(p.new_id, t.other_id)"}
    names = list(TABLES[table].columns)
    values = ", ".join(replaced.get(name, f"t.{name}") for name in names)
    pair = "LEFT JOIN sorted p ON p.episode_id = t.other_id" if "other_id" in names else ""
    without = " AND p.state IS DISTINCT FROM 'out'" if pair else ""
    return (
        f"INSERT OR {way} INTO {table} ({', '.join(names)}) SELECT {values} FROM sorted s "
        f"JOIN incoming_{table} t ON t.episode_id = s.episode_id {pair} WHERE {which}{without}"
    )


def _take_added(connection: Connection, taken: Taken) -> None:
    """Add scores, leaks, searches and judgements of the episodes that are in the database now."""
    there = "s.state IN ('known', 'newer')"
    for table in _ADDED:
        named = ", i.evaluator" if "evaluator" in TABLES[table].columns else ", 'leakage' AS evaluator"
        rows = connection.execute(
            "SELECT evaluator, count(DISTINCT episode_id), min(episode_id) "
            f"FROM ({_contradicting(table, there, named)}) GROUP BY 1 ORDER BY 1"
        ).fetchall()
        taken.clashes += [
            Clash(table, evaluator, f"other {table} of {count} episodes, such as {example}")
            for evaluator, count, example in rows
        ]
        found = connection.execute(_insert(table, "s.state <> 'out'", "IGNORE")).fetchone()
        if table == "scores" and found:
            taken.scores = int(found[0])


def _moved(connection: Connection) -> dict[str, str | None]:
    """Return the incoming episodes that have another id now, or None if they were kept out."""
    rows = connection.execute(
        "SELECT episode_id, CASE WHEN state <> 'out' THEN new_id END FROM sorted "
        "WHERE state = 'out' OR new_id <> episode_id"
    ).fetchall()
    return dict(rows)


def _take_annotations(connection: Connection, taken: Taken, moved: dict[str, str | None], apart: bool) -> None:
    """Add the answers of raters. The same rater and item with another answer is a clash."""
    names = list(TABLES["annotations"].columns)
    query = f"SELECT {', '.join(names)} FROM {{}}annotations ORDER BY task, item_id, rater"
    have = {_key(row): row for row in _dictionaries(connection, query.format(""), names)}
    added = []
    for row in _dictionaries(connection, query.format("incoming_"), names):
        place = f"{row['task']}, item {row['item_id']}"
        shown = json.loads(row["shown_json"])
        own = {value for value in shown.values() if isinstance(value, str)} if isinstance(shown, dict) else set()
        if any(moved.get(each, each) is None for each in own):
            taken.clashes.append(Clash("annotation", row["rater"], f"{place}: shows an episode that was kept out"))
            continue
        if own & moved.keys():
            row = _of_moved(row, shown, moved)
        rater, number = row["rater"], 1
        while (known := have.get(_key(row))) is not None and known != row:
            number += 1
            row = {**row, "rater": f"{rater}{MARK}{number}"}
            if not apart:
                break
        if known is not None and known != row:
            taken.clashes.append(Clash("annotation", rater, f"{place}: another answer by this name"))
        elif known is None:
            if number > 1:
                taken.clashes.append(Clash("annotation", rater, f"{place}: another answer by this name", row["rater"]))
            have[_key(row)] = row
            added.append([row[name] for name in names])
    if added:
        places = ", ".join("?" for _ in names)
        connection.executemany(f"INSERT INTO annotations ({', '.join(names)}) VALUES ({places})", added)
    taken.annotations = len(added)


def _of_moved(row: dict[str, Any], shown: dict[str, Any], moved: dict[str, str | None]) -> dict[str, Any]:
    """Return an answer about episodes that were kept apart, with their new ids."""
    changed = {key: moved.get(value, value) if isinstance(value, str) else value for key, value in shown.items()}
    mark = next(
        str(moved[value]).rpartition(MARK)[2] for value in shown.values() if isinstance(value, str) and value in moved
    )
    return {
        **row,
        "shown_json": json.dumps(changed, ensure_ascii=False),
        "item_id": f"{row['item_id']}{MARK}{mark}",
        "run_id": f"{row['run_id']}{MARK}{mark}",
    }


def _key(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["task"], row["item_id"], row["rater"]


def _dictionaries(connection: Connection, query: str, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    for row in connection.execute(query).fetchall():
        yield dict(zip(names, row, strict=True))
