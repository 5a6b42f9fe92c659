"""Queries that people type: limits, errors, and no way to files or settings."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.__main__ import run as command
from localsim.errors import InvalidInput
from localsim.store.database import Store
from scripts import verify


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


# ---- queries about one run -----------------------------------------------------------------------------------------


def test_a_query_about_one_run_gets_its_id_as_a_value(run: str, store: Store) -> None:
    """`$run` is bound and never pasted into the text, so whatever a person types as a run stays a value."""
    count = "SELECT count(*) FROM v_episodes WHERE run_id = $run"
    for reference in ("@last", run, run[:-2]):
        assert store.sql(count, run=reference)[1] == [(12,)]
    assert store.sql(f"SELECT 1; {count};")[1] == [(12,)], "the last statement answers"
    assert store.sql("SELECT '$run', $run -- $run")[1] == [("$run", run)]
    assert store.sql_page("SELECT 5", run="nowhere")[1] == [(5,)], "a query without $run asks about no run"
    for wrong in ("nowhere", "' OR 1=1 --", "$run"):
        with pytest.raises(InvalidInput, match="no run begins with this"):
            store.sql(count, run=wrong)
    with pytest.raises(InvalidInput, match="other"):
        store.sql("SELECT $other")


def test_the_command_takes_a_run_for_a_query(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT DISTINCT run_id FROM v_turns WHERE run_id = $run"
    assert command(["sql", query, "--format", "csv"]) == 0
    shown = capsys.readouterr()
    assert shown.out.split() == ["run_id", run] and shown.err.startswith(f"@last is {run}")
    assert command(["sql", query, "--run", run[:12], "--json"]) == 0
    assert capsys.readouterr().err == ""
    assert command(["sql", "SELECT 1", "--run", run]) == 2
    assert "has no $run" in capsys.readouterr().err


@pytest.mark.usefixtures("run")
def test_every_worked_query_asks_about_one_run_and_keeps_players_apart(store: Store, tmp_path: Path) -> None:
    page = tmp_path / "sql.md"
    asked: list[str] = []

    def answered(*arguments: str) -> str:
        asked.append(Path(arguments[2]).read_text())
        return f"{store.sql_page(asked[-1], rows=3)[0]}\n"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "localsim", answered)
        verify.queries(store.path, page)
    assert len(asked) == 20
    for query in asked:
        assert "run_id = $run" in query
        assert "nearest utterances" in query.lower() or all(word in query for word in ("family", "mode", "AS player"))
        assert query.strip() in page.read_text()


@dataclass(frozen=True)
class _Pair:
    name: str
    count: int


def test_a_query_gives_values_with_a_field_for_each_column() -> None:
    assert EMPTY.select(_Pair, "SELECT 'a' AS name, 2 AS count") == [_Pair("a", 2)]
    with pytest.raises(TypeError):
        EMPTY.select(_Pair, "SELECT 'a' AS name, 2 AS number")
    with pytest.raises(TypeError):
        EMPTY.select(_Pair, "SELECT 'a' AS name")
