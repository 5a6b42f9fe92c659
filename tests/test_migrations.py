"""A file of every version of the schema comes out as a fresh one, with all of its rows.

tests/data/schema/vN.gz is a database that the localsim of schema version N wrote: one scripted episode. When a
migration is appended, add a file of the version before it, and never change the others.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import duckdb
import pytest

from localsim.reports.compose.alone import report
from localsim.store import database, migrations
from localsim.store.database import Store
from localsim.store.migrations import MIGRATIONS, Migration, is_current, migrate
from localsim.store.schema import TABLES, VIEWS, schema_sql

FILES = sorted((Path(__file__).parent / "data" / "schema").glob("v*.gz"), key=lambda file: int(file.stem[1:]))
SCHEMA = (
    "SELECT table_name, column_name, data_type, is_nullable, comment FROM duckdb_columns() WHERE NOT internal",
    "SELECT view_name, sql, comment FROM duckdb_views() WHERE NOT internal",
    "SELECT table_name, constraint_type, constraint_text FROM duckdb_constraints()",
    "SELECT table_name, comment FROM duckdb_tables()",
)


def schema_of(store: Store) -> list[list[tuple[Any, ...]]]:
    """Columns, views, constraints and comments; the order of columns is free, because statements name them."""
    with store.reading() as connection:
        return [sorted(map(repr, connection.execute(query).fetchall())) for query in SCHEMA]


@pytest.fixture
def fresh(tmp_path: Path) -> Store:
    """A file that has only been created."""
    store = Store(tmp_path / "fresh.duckdb")
    store.take_in([])
    return store


def test_there_is_a_file_of_every_version() -> None:
    assert [file.stem for file in FILES] == [f"v{number}" for number in range(1, len(MIGRATIONS) + 1)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_old_file_comes_out_as_a_fresh_one(file: Path, fresh: Store, tmp_path: Path) -> None:
    old = Store(tmp_path / "old.duckdb")
    old.path.write_bytes(gzip.decompress(file.read_bytes()))
    with duckdb.connect(str(old.path), read_only=True) as connection:
        before = connection.execute("SELECT turn, speaker, text FROM turns ORDER BY turn").fetchall()
    assert schema_of(old) == schema_of(fresh)
    turns = old.rows("SELECT turn, speaker, text FROM v_turns ORDER BY turn")
    assert [tuple(row.values()) for row in turns] == before and before
    assert report(old, old.run_id("@last")).comparison[0]["completed"] == 1
    assert old.check() == []


def test_a_column_can_be_added_by_the_written_convention(
    fresh: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration is frozen text, so a new column is made once in a fresh file and once in an old one."""
    table = TABLES["leaks"]
    monkeypatch.setitem(
        TABLES, "leaks", table._replace(columns={**table.columns, "audience_json": ("VARCHAR", "Readers of the turn")})
    )
    step = Migration("m007_audience", ("ALTER TABLE leaks ADD COLUMN audience_json VARCHAR",))
    for module in (migrations, database):
        monkeypatch.setattr(module, "MIGRATIONS", [*MIGRATIONS, step])
    later = Store(tmp_path / "later.duckdb")
    for store in (fresh, later):
        with store.writing() as connection:
            assert is_current(connection)
            names = [row[0] for row in connection.execute("DESCRIBE leaks").fetchall()]
        assert names.count("audience_json") == 1
    assert schema_of(fresh) == schema_of(later)


def test_a_changed_comment_reaches_old_files(fresh: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLES, "runs", TABLES["runs"]._replace(comment="One row for each run"))
    row = fresh.rows("SELECT comment FROM duckdb_tables() WHERE table_name = 'runs'")[0]
    assert row["comment"] == "One row for each run"


def test_migrations_make_the_documented_schema(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "m.duckdb")) as connection:
        assert migrate(connection) == len(MIGRATIONS)
        assert migrate(connection) == 0
        for name, table in TABLES.items():
            columns = {row[0]: row[1] for row in connection.execute(f"DESCRIBE {name}").fetchall()}
            assert columns == {column: kind.removesuffix(" NOT NULL") for column, (kind, _) in table.columns.items()}
        views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        assert {name for (name,) in views} == set(VIEWS)
    assert all(f"CREATE TABLE {name} (" in schema_sql() for name in TABLES)
