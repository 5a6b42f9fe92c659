"""Queries that people type: limits, errors, and no way to files or settings."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.errors import InvalidInput
from localsim.store.database import Store


@given(st.lists(st.sampled_from(["", " ", "\n", "\t", ";", "-- SELECT 1\n", "/* SELECT 2 */", "--;"]), max_size=5))
@settings(max_examples=20, deadline=None)
def test_a_query_without_a_statement_is_one_clear_error(parts: list[str]) -> None:
    for attempt in (EMPTY.sql, EMPTY.dataframe):
        with pytest.raises(InvalidInput, match="the query is empty"):
            attempt("\n".join(parts))


@pytest.fixture(autouse=True, scope="module")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A database without rows, for tests of queries."""
    EMPTY.path = tmp_path_factory.mktemp("queries") / "empty.duckdb"
    EMPTY.take_in([])


EMPTY = Store(Path("empty.duckdb"))


def test_rows_are_read_one_after_the_other_and_all_of_them() -> None:
    with EMPTY.asking("SELECT * FROM range(400000000)") as (columns, rows):
        assert columns == ["range"]
        assert [next(rows) for _ in range(3)] == [(0,), (1,), (2,)]
    columns, found = EMPTY.sql("SELECT * FROM range(20000)")
    assert len(found) == 20_000, "Python gets every row"
    assert EMPTY.sql_page("SELECT * FROM range(10)", rows=10)[1:] == ([(number,) for number in range(10)], False)
    assert EMPTY.sql_page("SELECT * FROM range(11)", rows=10)[2]


def test_a_query_and_a_slow_reader_end_with_the_time() -> None:
    with pytest.raises(InvalidInput, match=r"broken off after 0\.3 s"):
        EMPTY.sql_page("SELECT count(*) FROM range(1000000000000) a WHERE hash(a.range) = 1", seconds=0.3)
    with (
        pytest.raises(InvalidInput, match=r"broken off after 0\.3 s"),
        EMPTY.asking("SELECT * FROM range(400000000)", 0.3) as (_, rows),
    ):
        for number, _ in enumerate(rows):
            if number == 0:
                time.sleep(0.4)


def test_an_error_of_the_reader_is_not_an_error_of_the_query() -> None:
    with pytest.raises(ValueError, match="mine"), EMPTY.asking("SELECT 1"):
        raise ValueError("mine")
