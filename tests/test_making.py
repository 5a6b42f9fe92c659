"""One schema, that of this localsim: files have it, and what another version made is refused and can be brought over.

tests/data/schema has databases of two versions, each with one scripted episode: the first one, and one with leaks.
"""

from __future__ import annotations

import gzip
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import duckdb
import pytest
from click.testing import CliRunner

from localsim.cli import cli
from localsim.errors import DatabaseError
from localsim.reports.report import report
from localsim.store import making, schema
from localsim.store.database import Store
from localsim.store.journal import Journal
from localsim.store.making import ensure_schema, version_in
from localsim.store.outside.attached import attach_all
from localsim.store.records import APART, BIG, KEY, RunRecord, ScoreRecord
from localsim.store.schema import TABLES, VIEWS, schema_sql

FILES = sorted((Path(__file__).parent / "data" / "schema").glob("v*.gz"))
LEAKS = next(file for file in FILES if file.stem == "v8")


def old_database(tmp_path: Path, file: Path, *statements: str) -> Path:
    path = tmp_path / "old files" / "old.duckdb"
    path.parent.mkdir()
    path.write_bytes(gzip.decompress(file.read_bytes()))
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def bring_over(path: Path) -> tuple[Store, dict[str, Any], str]:
    """Do what the error of a command says."""
    refused = CliRunner().invoke(cli, ["runs", "list", "--db", str(path)])
    assert isinstance(refused.exception, DatabaseError) and refused.exception.exit_code == 5
    assert "made by another version of localsim" in refused.exception.message
    assert refused.exception.hint is not None
    words = shlex.split(refused.exception.hint.rpartition("localsim ")[2])
    assert words[:2] == ["db", "merge"]
    made = CliRunner().invoke(cli, [*words, "--json"], catch_exceptions=False)
    again = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert (made.exit_code, again.exit_code) == (0, 0)
    (source,) = json.loads(made.stdout)["sources"]
    return Store(Path(words[-1])), source, again.stdout


# ---- another version -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_all_rows_of_another_version_are_brought_over_by_the_command_that_the_error_names(
    file: Path, tmp_path: Path
) -> None:
    old = old_database(tmp_path, file)
    before = old.read_bytes()
    store, source, _ = bring_over(old)
    assert old.read_bytes() == before
    assert source["left_behind"] == source["clashes"] == []
    with store.reading() as connection, duckdb.connect(str(old), read_only=True) as theirs:
        own = [
            name for (name,) in theirs.execute("SELECT table_name FROM duckdb_tables()").fetchall() if name[0] != "_"
        ]
        assert {"runs", "episodes", "turns", "generations", "scores"} <= set(own)
        for table in own:
            columns = ", ".join(row[0] for row in theirs.execute(f"DESCRIBE {table}").fetchall())
            query = f"SELECT {columns} FROM {table} ORDER BY ALL"
            assert connection.execute(query).fetchall() == theirs.execute(query).fetchall(), table
    assert all(row["beat"] == row["turn"] for row in store.rows("SELECT turn, beat FROM turns"))
    assert store.rows("SELECT variant, see FROM episodes") == [{"variant": 0, "see": ""}]
    assert report(store, store.run_id("@last")).as_json()["comparison"][0]["completed"] == 1
    assert store.check() == []


def test_answers_come_over_and_what_has_no_place_is_counted(tmp_path: Path) -> None:
    answer = "'i1', 'ann', run_id, '1', '{}', false, 2.5, TIMESTAMP '2026-11-25 09:00:00', 'browser'"
    old = old_database(
        tmp_path,
        LEAKS,
        f"INSERT INTO annotations SELECT 'pairs', {answer}, NULL FROM runs",
        "ALTER TABLE turns ADD COLUMN mood VARCHAR",
        "UPDATE turns SET mood = 'glad' WHERE turn < 3",
        "CREATE TABLE moods (mood VARCHAR)",
        "INSERT INTO moods VALUES ('glad'), ('sad')",
        "ALTER TABLE scores ALTER value TYPE VARCHAR",
        "UPDATE scores SET value = 'high' WHERE evaluator = 'style' AND name = 'turns'",
        "ALTER TABLE leaks ALTER early DROP NOT NULL",
        "UPDATE leaks SET early = NULL WHERE turn = (SELECT min(turn) FROM leaks)",
    )
    with duckdb.connect(str(old), read_only=True) as connection:
        (leaks, lost), (scores,) = (
            connection.execute(query).fetchone() or ()
            for query in ("SELECT count(*), count(*) FILTER (early IS NULL) FROM leaks", "SELECT count(*) FROM scores")
        )
    store, source, told = bring_over(old)
    assert {each["what"]: each["count"] for each in source["left_behind"]} == {
        "values of the column turns.mood, which this version does not have": 3,
        "rows of the table moods, which this version does not have": 2,
        "values of the column scores.value, which has another type": 1,
        "rows of leaks without a value that this version needs": lost,
    }
    assert f"! {old}: left behind: 3 values of the column turns.mood" in told
    assert store.rows("SELECT rater, made_by FROM v_annotations") == [{"rater": "ann", "made_by": "person"}]
    assert 0 < lost < leaks == store.rows("SELECT count(*) AS n FROM leaks")[0]["n"] + lost
    assert store.rows("SELECT count(*) AS n FROM scores")[0]["n"] == scores
    assert store.check() == []


def test_the_journal_beside_a_database_of_another_version_comes_over_too(tmp_path: Path) -> None:
    old = old_database(tmp_path, LEAKS)
    journal = Journal(old, "r")
    journal.append(RunRecord("r", "running", "2026-01-01T00:00:00", None, 1, "stable", 1, 1, "{}", "{}", "{}"))
    journal.close(remove=False)
    store, source, _ = bring_over(old)
    assert source["runs"] == 2 and journal.path.exists()
    assert store.rows("SELECT status FROM runs WHERE run_id = 'r'") == [{"status": "interrupted"}]


def test_a_database_of_another_version_is_neither_written_nor_attached(tmp_path: Path) -> None:
    old = old_database(tmp_path, LEAKS)
    for attempt in (
        lambda: Store(old).take_in([]),
        lambda: Store(old).ensure_usable(),
        lambda: attach_all([str(old)], tmp_path / "all.duckdb", print),
    ):
        with pytest.raises(DatabaseError, match="another version of localsim") as caught:
            attempt()
        assert str(old) in str(caught.value.hint)


# ---- this version --------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh(tmp_path: Path) -> Store:
    """A file that has only been created."""
    store = Store(tmp_path / "fresh.duckdb")
    store.take_in([])
    return store


def test_a_blank_file_gets_the_whole_schema(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "m.duckdb")) as connection:
        ensure_schema(connection)
        ensure_schema(connection)
        for table, (comment, columns, key) in TABLES.items():
            found = connection.execute(
                "SELECT column_name, data_type, NOT is_nullable, comment FROM duckdb_columns() WHERE table_name = ? "
                "ORDER BY column_index",
                [table],
            ).fetchall()
            assert found == [(each.name, each.kind, not each.may_be_null, each.meaning) for each in columns.values()]
            about = "SELECT comment FROM duckdb_tables() WHERE table_name = ?"
            assert connection.execute(about, [table]).fetchall() == [(comment,)]
            keys = "SELECT constraint_column_names FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY' "
            assert connection.execute(f"{keys} AND table_name = ?", [table]).fetchall() == [(list(key),)]
        views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        assert {name for (name,) in views} == set(VIEWS)


def test_a_schema_that_fails_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_mark(monkeypatch)
    monkeypatch.setattr(making, "comment_sql", lambda: ["SELECT no_such_column"])
    with duckdb.connect(str(tmp_path / "m.duckdb")) as connection:
        with pytest.raises(duckdb.Error):
            ensure_schema(connection)
        assert version_in(connection) == ""
        assert connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == []


def test_a_changed_comment_reaches_files(fresh: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_mark(monkeypatch)
    monkeypatch.setitem(TABLES, "runs", TABLES["runs"]._replace(comment="One row for each run"))
    row = fresh.rows("SELECT comment FROM duckdb_tables() WHERE table_name = 'runs'")[0]
    assert row["comment"] == "One row for each run"


def forget_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the mark of views and comments anew at every look, for a test that changes them."""
    monkeypatch.setattr(making, "_present", making._present.__wrapped__)


@dataclass(frozen=True)
class Weighed(ScoreRecord):
    """A score with two columns more."""

    weight: Annotated[int | None, BIG, "Weight of the score"] = None
    weighed_by: Annotated[Sequence[str], APART, "Who weighed it"] = ()


def test_one_line_in_a_record_is_a_column() -> None:
    columns = schema._columns(Weighed)
    assert [columns[name].sql for name in ("turns", "value", "weight", "weighed_by")] == [
        "turns_json VARCHAR NOT NULL",
        "value DOUBLE",
        "weight BIGINT",
        "weighed_by_json VARCHAR NOT NULL",
    ]
    assert columns["weighed_by"].default == "[]" and columns["weight"].meaning == "Weight of the score"
    assert KEY in columns["name"].marks and KEY not in columns["weight"].marks


def test_a_view_shows_the_columns_of_its_table_that_do_not_stand_apart(fresh: Store) -> None:
    shown = {row["column_name"] for row in fresh.rows("DESCRIBE v_generations")}
    columns = TABLES["generations"].columns
    assert (
        {name for name in columns if name not in shown}
        == {name for name, column in columns.items() if APART in column.marks}
        != set()
    )


def test_a_column_changes_the_version_and_its_place_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    before, leaks = schema.version(), TABLES["leaks"]
    monkeypatch.setitem(TABLES, "leaks", leaks._replace(columns=dict(reversed(leaks.columns.items()))))
    assert schema.version() == before
    more = leaks.columns["kind"]._replace(name="audience")
    monkeypatch.setitem(TABLES, "leaks", leaks._replace(columns={**leaks.columns, "audience": more}))
    assert schema.version() != before


def test_the_schema_file_is_current() -> None:
    root = Path(__file__).resolve().parent.parent
    assert (root / "db" / "schema.sql").read_text() == schema_sql(), "run: localsim db schema > db/schema.sql"
