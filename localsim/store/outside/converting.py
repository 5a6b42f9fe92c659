"""Rows of a database that another version of localsim made, in the columns of this one; and what is left behind.

A column is brought by its name. A value that the other version did not have is what a record has without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from localsim.store.lock import Connection
from localsim.store.making import BOOKKEEPING
from localsim.store.schema import TABLES, Column, text_sql

_INSTEAD = {"beat": "t.turn"}
"""What stands for a missing value, if another column tells."""
Kinds = Mapping[str, str]
"""The types of the columns of a table, as they are."""


@dataclass(frozen=True)
class LeftBehind:
    """Something that this version of localsim has no place for."""

    what: str
    count: int


def kinds_of(connection: Connection, name: str) -> dict[str, dict[str, str]]:
    """Return the tables of an attached database, with the types of their columns."""
    found: dict[str, dict[str, str]] = {}
    for table, column, kind in connection.execute(
        "SELECT c.table_name, c.column_name, c.data_type FROM duckdb_columns() c JOIN duckdb_tables() t "
        "USING (database_name, schema_name, table_name) WHERE database_name = ? AND schema_name = 'main' ORDER BY ALL",
        [name],
    ).fetchall():
        found.setdefault(table, {})[column] = kind
    return found


def rows_sql(table: str, kinds: Kinds, place: str = "") -> str:
    """Return the query that yields the rows of a table at `place` in the columns of this localsim.

    A table without columns is one that is not there; it yields no rows.
    """
    columns = TABLES[table].columns.values()
    if not kinds:
        return f"SELECT {', '.join(f'NULL::{column.kind} AS {column.name}' for column in columns)} WHERE false"
    values = ", ".join(f"{_value(column, kinds)} AS {column.name}" for column in columns)
    needed = [f"{_value(column, kinds)} IS NOT NULL" for column in columns if not column.may_be_null]
    return f"SELECT {values} FROM {place} t WHERE {' AND '.join(needed)}"


def _value(column: Column, kinds: Kinds) -> str:
    """Return the value of a column; NULL if the row has none that can be used."""
    found = f"TRY_CAST(t.{column.name} AS {column.kind})" if column.name in kinds else f"NULL::{column.kind}"
    if column.default is None and column.name not in _INSTEAD:
        return found
    return f"coalesce({found}, {_INSTEAD.get(column.name) or text_sql(str(column.default))}::{column.kind})"


def left_behind(connection: Connection, name: str) -> Iterator[LeftBehind]:
    """Yield what `rows_sql` does not bring of an attached database."""

    def count(query: str) -> int:
        row = connection.execute(f"SELECT count(*) FROM {query}").fetchone()
        return int(row[0]) if row else 0

    for table, kinds in kinds_of(connection, name).items():
        place = f"{name}.main.{_named(table)}"
        if table in BOOKKEEPING:
            continue
        if table not in TABLES:
            yield LeftBehind(f"rows of the table {table}, which this version does not have", count(place))
            continue
        for column in kinds:
            known = TABLES[table].columns.get(column)
            lost = f"TRY_CAST({_named(column)} AS {known.kind}) IS NULL" if known else "true"
            why = "which has another type" if known else "which this version does not have"
            if known is None or known.may_be_null:
                found = count(f"{place} WHERE {_named(column)} IS NOT NULL AND {lost}")
                yield LeftBehind(f"values of the column {table}.{column}, {why}", found)
        lacking = count(place) - count(f"({rows_sql(table, kinds, place)})")
        yield LeftBehind(f"rows of {table} without a value that this version needs", lacking)


def _named(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
