"""The schema in a file: its version, how it is made, and the error for a file with another one.

There is one schema, that of this localsim, and a file of another version is refused. `outside.merge` brings its rows
into a new file. The table `_schema` of a file has the version, and a hash of views and comments, which are made anew
when they change.
"""

from __future__ import annotations

import hashlib
import shlex
from functools import cache
from pathlib import Path

from localsim.errors import DatabaseError
from localsim.store.lock import UNKNOWN_NAME, Connection, transaction
from localsim.store.schema import TABLES, VIEWS, comment_sql, table_sql, version, view_sql

KEPT_IN = "_schema"
_EARLIER = "_migrations"
"""The table that had the version before there was one schema."""
BOOKKEEPING = (KEPT_IN, _EARLIER)
"""Tables that say something about the file."""


def version_in(connection: Connection, name: str | None = None) -> str:
    """Return the version of the schema in a file, which may be attached as `name`; '' if it is not localsim's."""
    row = connection.execute(
        "SELECT database_name, max(table_name) FROM duckdb_tables() WHERE table_name IN (?, ?) "
        "AND schema_name = 'main' AND database_name = coalesce(?, current_database()) GROUP BY 1",
        [KEPT_IN, _EARLIER, name],
    ).fetchone()
    if row is None:
        return ""
    column = "version" if row[1] == KEPT_IN else "max(number)"
    try:
        found = connection.execute(f'SELECT {column} FROM "{row[0]}".main.{row[1]}').fetchone()
    except UNKNOWN_NAME:  # another program's table of this name
        return ""
    return str(found[0]) if found else ""


def absent_column(connection: Connection, name: str | None = None) -> str:
    """Return a column that a file, which may be attached as `name`, should have and has not; '' if it has all."""
    rows = connection.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE schema_name = 'main' "
        "AND database_name = coalesce(?, current_database())",
        [name],
    ).fetchall()
    wanted = {(table, column) for table in TABLES for column in TABLES[table].columns}
    return ".".join(min(wanted - set(rows), default=()))


def other_version(path: Path) -> DatabaseError:
    """Return the error for a database of another version of localsim."""
    fresh = path.with_name(f"{path.stem}-new{path.suffix}")
    return DatabaseError(
        "this database was made by another version of localsim, whose tables have other columns",
        where=str(path),
        hint="to bring its rows into a new database: "
        f"localsim db merge {shlex.quote(str(path))} -o {shlex.quote(str(fresh))}",
    )


def ensure_schema(connection: Connection) -> None:
    """Make the schema in an empty file, and bring views and comments up to date, in one transaction."""
    if is_current(connection):
        return
    with transaction(connection):
        if not version_in(connection):
            connection.execute(f"CREATE TABLE {KEPT_IN} (version VARCHAR NOT NULL, views VARCHAR NOT NULL)")
            connection.execute(f"INSERT INTO {KEPT_IN} VALUES (?, '')", [version()])
            for table in TABLES:
                connection.execute(table_sql(table))
        mark, statements = _descriptions()
        connection.execute(";\n".join(statements))
        connection.execute(f"UPDATE {KEPT_IN} SET views = ?", [mark])
    # A crash must not leave DDL in the write-ahead log, because replaying DDL can break a DuckDB file.
    connection.execute("CHECKPOINT")


def is_current(connection: Connection) -> bool:
    """Return True if a file has the tables, views and comments of this localsim.

    Nearly all files have, and every read asks: one cheap query, where the list of all tables takes a quarter of a read.
    """
    try:
        row = connection.execute(f"SELECT version, views FROM main.{KEPT_IN}").fetchone()
    except UNKNOWN_NAME:
        return False
    return row == _present()


@cache
def _present() -> tuple[str, str]:
    """Return the version of this localsim's schema, and the hash of its views and comments."""
    return version(), _descriptions()[0]


def _descriptions() -> tuple[str, list[str]]:
    """Return a hash of the statements for views and comments, and the statements."""
    statements = [*map(view_sql, VIEWS), *comment_sql()]
    return hashlib.sha256(";".join(statements).encode()).hexdigest()[:16], statements
