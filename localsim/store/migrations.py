"""Numbered migrations, which bring a database file to the current schema and are frozen once they have shipped.

A migration is its own SQL text and never reads `schema`, which continues to change. Append a new one at the end; never
edit one. Each migration and its record are one transaction. tests/data/schema has a file of every version.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localsim.store.schema import VIEWS, comment_sql, view_sql

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True)
class Migration:
    """One step of the schema; its number is its position in MIGRATIONS, from 1."""

    name: str
    statements: Sequence[str]


_INITIAL = (
    """CREATE TABLE runs (
    run_id VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    started_utc TIMESTAMP NOT NULL,
    finished_utc TIMESTAMP,
    seed BIGINT NOT NULL,
    repro VARCHAR NOT NULL,
    parallel INTEGER NOT NULL,
    episodes_planned INTEGER NOT NULL,
    plan_json VARCHAR NOT NULL,
    models_json VARCHAR NOT NULL,
    versions_json VARCHAR NOT NULL,
    PRIMARY KEY (run_id)
)""",
    """CREATE TABLE scenarios (
    scenario_hash VARCHAR NOT NULL,
    scenario_id VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    family VARCHAR,
    document_json VARCHAR NOT NULL,
    answer_json VARCHAR NOT NULL,
    path VARCHAR,
    PRIMARY KEY (scenario_hash)
)""",
    """CREATE TABLE episodes (
    episode_id VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    scenario_hash VARCHAR NOT NULL,
    mode VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    episode_index INTEGER NOT NULL,
    seed BIGINT NOT NULL,
    status VARCHAR NOT NULL,
    stop_reason VARCHAR,
    error VARCHAR,
    turns INTEGER NOT NULL,
    spec_hash VARCHAR NOT NULL,
    spec_json VARCHAR NOT NULL,
    duration_ms DOUBLE,
    PRIMARY KEY (episode_id)
)""",
    """CREATE TABLE turns (
    episode_id VARCHAR NOT NULL,
    turn INTEGER NOT NULL,
    speaker VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    words INTEGER NOT NULL,
    truncated BOOLEAN NOT NULL,
    generation INTEGER NOT NULL,
    PRIMARY KEY (episode_id, turn)
)""",
    """CREATE TABLE generations (
    episode_id VARCHAR NOT NULL,
    generation INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    speaker VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    seed BIGINT NOT NULL,
    parent INTEGER,
    messages_json VARCHAR NOT NULL,
    prefill_hash VARCHAR NOT NULL,
    grammar_hash VARCHAR,
    text VARCHAR NOT NULL,
    cause VARCHAR NOT NULL,
    malformed VARCHAR,
    prompt_tokens INTEGER NOT NULL,
    evaluated_tokens INTEGER NOT NULL,
    generated_tokens INTEGER NOT NULL,
    duration_ms DOUBLE NOT NULL,
    details_json VARCHAR NOT NULL,
    PRIMARY KEY (episode_id, generation)
)""",
    """CREATE TABLE contents (
    content_hash VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    PRIMARY KEY (content_hash)
)""",
    """CREATE TABLE scores (
    episode_id VARCHAR NOT NULL,
    evaluator VARCHAR NOT NULL,
    version VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    agent VARCHAR NOT NULL,
    value DOUBLE,
    label VARCHAR,
    reason VARCHAR NOT NULL,
    turns_json VARCHAR NOT NULL,
    PRIMARY KEY (episode_id, evaluator, version, name, agent)
)""",
)

_SHARED_AND_DROPPED = (
    "ALTER TABLE generations ADD COLUMN shared_tokens INTEGER",
    "ALTER TABLE generations ADD COLUMN dropped_messages INTEGER",
)

_LEAKS = (
    """CREATE TABLE leaks (
    episode_id VARCHAR NOT NULL,
    version VARCHAR NOT NULL,
    fact_id VARCHAR NOT NULL,
    turn INTEGER NOT NULL,
    owner VARCHAR NOT NULL,
    fact VARCHAR NOT NULL,
    speaker VARCHAR NOT NULL,
    label VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    probability DOUBLE NOT NULL,
    similarity DOUBLE NOT NULL,
    evidence VARCHAR NOT NULL,
    first BOOLEAN NOT NULL,
    early BOOLEAN NOT NULL,
    PRIMARY KEY (episode_id, version, fact_id, turn)
)""",
    """CREATE TABLE vectors (
    text_hash VARCHAR NOT NULL,
    model VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    vector FLOAT[384] NOT NULL,
    PRIMARY KEY (text_hash, model)
)""",
)

_ANNOTATIONS = (
    """CREATE TABLE annotations (
    task VARCHAR NOT NULL,
    item_id VARCHAR NOT NULL,
    rater VARCHAR NOT NULL,
    run_id VARCHAR NOT NULL,
    value_json VARCHAR NOT NULL,
    shown_json VARCHAR NOT NULL,
    attention BOOLEAN NOT NULL,
    seconds DOUBLE,
    created_utc TIMESTAMP NOT NULL,
    origin VARCHAR NOT NULL,
    PRIMARY KEY (task, item_id, rater)
)""",
)

_JUDGEMENTS = (
    """CREATE TABLE judgements (
    episode_id VARCHAR NOT NULL,
    evaluator VARCHAR NOT NULL,
    version VARCHAR NOT NULL,
    name VARCHAR NOT NULL,
    agent VARCHAR NOT NULL,
    sample INTEGER NOT NULL,
    other_id VARCHAR,
    model VARCHAR NOT NULL,
    seed BIGINT NOT NULL,
    instructions_hash VARCHAR NOT NULL,
    prompt_hash VARCHAR NOT NULL,
    prefill VARCHAR NOT NULL,
    grammar_hash VARCHAR,
    thought VARCHAR,
    text VARCHAR NOT NULL,
    cause VARCHAR NOT NULL,
    truncated BOOLEAN NOT NULL,
    malformed VARCHAR,
    prompt_tokens INTEGER NOT NULL,
    evaluated_tokens INTEGER NOT NULL,
    thought_tokens INTEGER NOT NULL,
    generated_tokens INTEGER NOT NULL,
    duration_ms DOUBLE NOT NULL,
    details_json VARCHAR NOT NULL,
    PRIMARY KEY (episode_id, evaluator, version, name, agent, sample)
)""",
)

_VARIANTS = (
    "ALTER TABLE runs ADD COLUMN plan_hash VARCHAR",
    "ALTER TABLE episodes ADD COLUMN variant INTEGER",
    "UPDATE episodes SET variant = 0",
    "ALTER TABLE annotations ADD COLUMN made_by VARCHAR",
    "UPDATE annotations SET made_by = 'person'",
)

_GRANTS = (
    "ALTER TABLE episodes ADD COLUMN see VARCHAR",
    "UPDATE episodes SET see = ''",
)

_SEARCHES = (
    """CREATE TABLE searches (
    episode_id VARCHAR NOT NULL,
    version VARCHAR NOT NULL,
    weights VARCHAR NOT NULL,
    weights_hash VARCHAR NOT NULL,
    searched_utc TIMESTAMP NOT NULL,
    PRIMARY KEY (episode_id, version)
)""",
)

_NAMES = ("ALTER TABLE runs ADD COLUMN name VARCHAR",)

_READERS = (
    "ALTER TABLE turns ADD COLUMN values_json VARCHAR",
    "ALTER TABLE turns ADD COLUMN readers_json VARCHAR",
    "ALTER TABLE turns ADD COLUMN beat INTEGER",
    "ALTER TABLE turns ADD COLUMN phase VARCHAR",
    "UPDATE turns SET beat = turn, phase = ''",
)

_REPAIRED = (
    "ALTER TABLE turns ADD COLUMN repaired BOOLEAN",
    "UPDATE turns SET repaired = false",
)

MIGRATIONS: list[Migration] = [
    Migration("m001_initial", _INITIAL),
    Migration("m002_shared_and_dropped", _SHARED_AND_DROPPED),
    Migration("m003_leaks", _LEAKS),
    Migration("m004_annotations", _ANNOTATIONS),
    Migration("m005_judgements", _JUDGEMENTS),
    Migration("m006_variants", _VARIANTS),
    Migration("m007_grants", _GRANTS),
    Migration("m008_searches", _SEARCHES),
    Migration("m009_names", _NAMES),
    Migration("m010_readers", _READERS),
    Migration("m011_repaired", _REPAIRED),
]


def schema_version(connection: duckdb.DuckDBPyConnection) -> int:
    """Return the number of the newest migration applied; 0 for a fresh file."""
    exists = connection.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = '_migrations'").fetchone()
    if not exists or not exists[0]:
        return 0
    row = connection.execute("SELECT coalesce(max(number), 0) FROM _migrations").fetchone()
    return int(row[0]) if row else 0


def migrate(connection: duckdb.DuckDBPyConnection, *, stop_before: int | None = None) -> int:
    """Apply the pending migrations, each with its record in one transaction; return their number."""
    done = schema_version(connection)
    last = len(MIGRATIONS) if stop_before is None else stop_before - 1
    for number in range(done + 1, last + 1):
        step = MIGRATIONS[number - 1]
        connection.begin()
        try:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS _migrations "
                "(number INTEGER PRIMARY KEY, name VARCHAR NOT NULL, applied_utc TIMESTAMP NOT NULL)"
            )
            for statement in step.statements:
                connection.execute(statement)
            connection.execute(
                "INSERT INTO _migrations VALUES (?, ?, (now() AT TIME ZONE 'UTC')::TIMESTAMP)",
                [number, step.name],
            )
            if number == len(MIGRATIONS):
                _describe(connection)
            connection.commit()
        except BaseException:
            with contextlib.suppress(Exception):  # a failed commit has rolled back already
                connection.rollback()
            raise
    stale = stop_before is None and not is_current(connection)
    if stale:
        connection.begin()
        _describe(connection)
        connection.commit()
    if last > done or stale:
        # A crash must not leave DDL in the write-ahead log, because replaying DDL can break a DuckDB file.
        connection.execute("CHECKPOINT")
    return max(0, last - done)


def is_current(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return True if a file has every migration, and the views and comments of this localsim."""
    if schema_version(connection) != len(MIGRATIONS):
        return False
    row = connection.execute("SELECT name FROM _migrations WHERE number = 0").fetchone()
    return row is not None and row[0] == _descriptions()[0]


def _descriptions() -> tuple[str, list[str]]:
    """Return name and statements of views and comments. They change without a migration, so a hash is recorded."""
    statements = [*(view_sql(name) for name in VIEWS), *comment_sql()]
    return f"views {hashlib.sha256(';'.join(statements).encode()).hexdigest()[:16]}", statements


def _describe(connection: duckdb.DuckDBPyConnection) -> None:
    name, statements = _descriptions()
    for statement in statements:
        connection.execute(statement)
    connection.execute(
        "INSERT OR REPLACE INTO _migrations VALUES (0, ?, (now() AT TIME ZONE 'UTC')::TIMESTAMP)", [name]
    )
