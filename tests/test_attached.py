"""Parquet partitions and attachments: the same rows through the same views, read-only, and one clear error each."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from localsim.cli import cli
from localsim.errors import DatabaseError, InvalidInput
from localsim.leakage.detector import Weights
from localsim.reports.compose.alone import report
from localsim.store.database import Store
from localsim.store.outside.attached import attach_all
from localsim.store.outside.export import write_partition
from localsim.store.outside.partitions import LARGE, partition_of, read
from localsim.store.schema import TABLES, VIEWS


def rows_of(store: Store, view: str) -> list[str]:
    """All rows of a view, in one order."""
    return sorted(json.dumps(row, default=str) for row in store.rows(f"SELECT * FROM {view}"))


def attached(tmp_path: Path, *places: Path | str, say: Any = lambda _: None) -> Store:
    attach_all([str(place) for place in places], tmp_path / "all.duckdb", say)
    return Store(tmp_path / "all.duckdb")


@pytest.fixture
def annotated(store: Store, run: str) -> Store:
    """The run with every kind of row, so that no view is empty."""
    with store.writing() as connection:
        episode = "(SELECT min(episode_id) FROM episodes)"
        text = connection.execute("SELECT content_hash FROM contents LIMIT 1").fetchone()
        assert text is not None
        connection.execute(
            f"INSERT INTO annotations VALUES ('pairs', 'i1', 'Zoë', ?, '1', json_object('1', {episode}), false, 2.5, "
            "now()::TIMESTAMP, 'browser', 'person')",
            [run],
        )
        for task, item, value in (
            (
                "participant",
                "e",
                {"condition": "c", "status": "finished", "description": text[0], "roles": {"1": "Ana"}},
            ),
            ("before", "bank/item", {"value": "1", "number": 1}),
            ("rubric", "support/warm", {"value": "1", "number": 1, "version": "1", "agent": "Ana", "role": "Ana"}),
        ):
            connection.execute(
                f"INSERT INTO annotations VALUES (?, ?, 'p1', ?, ?, json_object('1', {episode}), false, NULL, "
                "now()::TIMESTAMP, 'browser', 'person')",
                [task, item, run, json.dumps(value)],
            )
        for name, evaluator in (("goal", "judge.m"), ("fact.ana_1", "leak_judge.m")):
            connection.execute(
                f"INSERT INTO judgements VALUES ({episode}, ?, '1', ?, 'Ana', 0, NULL, 1, $3, $3, '', NULL, "
                "'m', NULL, 'disclosed', 'finished', false, NULL, 1, 1, 0, 1, 1.0, '{}')",
                [evaluator, name, text[0]],
            )
        connection.execute(f"INSERT INTO scores VALUES ({episode}, 'leakage', '9', 'facts', '', 1, NULL, '', '[]')")
        connection.execute(
            f"INSERT INTO leaks VALUES ({episode}, '9', 'ana_1', 0, 'Ana', 'Ana saw crumbs.', 'Ana', 'disclosed', "
            "'self', 0.9, 0.8, 'crumbs', true, false)"
        )
        weights = Weights.read()
        connection.execute("INSERT INTO contents VALUES (?, ?)", [weights.hash, weights.text])
        connection.execute(f"INSERT INTO searches VALUES ({episode}, '9', 'w', ?, now()::TIMESTAMP)", [weights.hash])
        connection.execute("INSERT INTO vectors VALUES ('v', 'm', 'Ana saw crumbs.', list_resize([1.0], 384, 0.0))")
    return store


@pytest.mark.parametrize("by_scenario", [False, True], ids=["by run", "by scenario"])
def test_attached_partitions_have_the_rows_of_every_view(annotated: Store, tmp_path: Path, by_scenario: bool) -> None:
    made = write_partition(annotated, annotated.run_id("@last"), tmp_path / "parts", by_scenario)
    store = attached(tmp_path, tmp_path / "parts")
    for view in VIEWS:
        assert rows_of(store, view) == rows_of(annotated, view) != [], view
    for table in TABLES:
        assert len(rows_of(store, table)) == len(rows_of(annotated, table)) == made.rows[table], table
    assert store.check() == []
    assert report(store, made.run_id) == report(annotated, made.run_id)
    folders = {path.parent.name for path in partition_of(made.run_id, tmp_path / "parts").rglob("turns/*/*.parquet")}
    scenarios = annotated.rows("SELECT DISTINCT scenario_id FROM v_episodes")
    assert folders == ({f"scenario={row['scenario_id']}" for row in scenarios} if by_scenario else set())


def test_a_second_export_replaces_the_first(annotated: Store, tmp_path: Path) -> None:
    folder, run_id = tmp_path / "parts", annotated.run_id("@last")
    first = write_partition(annotated, run_id, folder, by_scenario=True)
    with annotated.writing() as connection:
        connection.execute("DELETE FROM annotations")
    second = write_partition(annotated, run_id, folder)
    assert [each.rows for each in read(folder).values()] == [second.rows] == [{**first.rows, "annotations": 0}]
    assert {path.name for path in folder.iterdir()} - {".lock"} == {"manifest.json", f"run={run_id}"}
    assert not list(folder.rglob("scenario=*")), "files of the first export are gone"
    assert json.loads((folder / "manifest.json").read_text())["runs"][run_id]["turns"] == second.rows["turns"]
    store = attached(tmp_path, folder)
    assert rows_of(store, "v_turns") == rows_of(annotated, "v_turns")


def test_a_question_about_one_run_reads_only_its_files(own_runs: tuple[Store, str, str], tmp_path: Path) -> None:
    native, first, second = own_runs
    for run_id in (first, second):
        write_partition(native, run_id, tmp_path / "parts")
    store = attached(tmp_path, tmp_path / "parts")
    for view in ("v_turns", "v_generations", "v_scores"):
        with store.reading() as connection:
            plan = connection.execute(f"EXPLAIN ANALYZE SELECT * FROM {view} WHERE run_id = ?", [first]).fetchall()
        table = view.removeprefix("v_")
        count = native.rows(f"SELECT count(*) AS n FROM {view} WHERE run_id = ?", [first])[0]["n"]
        whole = native.rows(f"SELECT count(*) AS n FROM {table}")[0]["n"]
        assert count < whole
        assert "1/2" in plan[0][1].replace(" ", ""), plan[0][1]
        assert store.rows(f"SELECT count(*) AS n FROM {view} WHERE run_id = ?", [first])[0]["n"] == count


def test_folders_and_databases_are_shown_together_and_nothing_twice(
    own_runs: tuple[Store, str, str], tmp_path: Path
) -> None:
    native, first, _ = own_runs
    write_partition(native, first, tmp_path / "parts")
    write_partition(native, first, tmp_path / "again")
    made = attach_all(
        [str(tmp_path / "parts"), str(native.path), str(tmp_path / "again")], tmp_path / "a.duckdb", print
    )
    assert made.runs == 2
    assert [(run, path.name) for run, path in made.doubled] == [(first, "test.duckdb"), (first, f"run={first}")]
    store = Store(tmp_path / "a.duckdb")
    for view in VIEWS:
        assert rows_of(store, view) == rows_of(native, view), view
    for table in TABLES:
        assert len(rows_of(store, table)) == len(rows_of(native, table)), table


def test_what_comes_later_is_seen_and_the_databases_stay_free(own_runs: tuple[Store, str, str], tmp_path: Path) -> None:
    native, first, second = own_runs
    write_partition(native, first, tmp_path / "parts")
    other = tmp_path / "other.duckdb"
    shutil.copy(native.path, other)
    Store(other).remove_run(first)
    store = attached(tmp_path, tmp_path / "parts", other)
    only_parts = Store(tmp_path / "parts.duckdb")
    attach_all([str(tmp_path / "parts")], only_parts.path, print)
    assert len(only_parts.rows("SELECT * FROM v_runs")) == 1
    state = only_parts.state()
    assert state == only_parts.state() != store.state()
    write_partition(native, second, tmp_path / "parts")
    assert only_parts.state() != state, "a page that was kept is made again"
    assert len(only_parts.rows("SELECT * FROM v_runs")) == 2
    with store.held() as held:
        assert len(held.rows("SELECT * FROM v_runs")) == 2
    assert Store(other).remove_run(second), "no lock is left on a database that was shown"
    assert len(store.rows("SELECT * FROM v_runs")) == 2, "the partition still has the run"


def test_only_questions_are_answered(annotated: Store, tmp_path: Path) -> None:
    write_partition(annotated, annotated.run_id("@last"), tmp_path / "parts")
    store = attached(tmp_path, tmp_path / "parts", annotated.path)
    before = {path: path.read_bytes() for path in (tmp_path / "parts").rglob("*.parquet")}
    file = next(iter(before))
    for query in (
        f"COPY (SELECT 1) TO '{file}'",
        f"EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}'",
        f"PREPARE x AS COPY (SELECT 1) TO '{file}'",
        f"ATTACH '{tmp_path / 'parts' / 'new.duckdb'}'",
        "CREATE VIEW v_mine AS SELECT 1",
        "DELETE FROM source_2.main.runs",
        "SELECT * FROM read_text('/etc/hostname')",
        "SET memory_limit = '100GB'",
    ):
        with pytest.raises(InvalidInput):
            store.sql(query)
    assert {path: path.read_bytes() for path in (tmp_path / "parts").rglob("*.parquet")} == before
    assert store.sql("SELECT count(*) FROM v_turns")[1][0][0] > 0
    assert store.sql("EXPLAIN SELECT 1")[1]
    with pytest.raises(DatabaseError, match="nothing can be written"):
        store.take_in([])


def test_views_and_macros_of_a_foreign_file_are_not_used(annotated: Store, tmp_path: Path) -> None:
    with duckdb.connect(str(annotated.path)) as connection:
        connection.execute("CREATE OR REPLACE VIEW v_runs AS SELECT content AS run_id FROM read_text('/etc/hostname')")
    store = attached(tmp_path, annotated.path)
    assert (
        store.rows("SELECT run_id FROM v_runs")[0]["run_id"] == annotated.rows("SELECT run_id FROM runs")[0]["run_id"]
    )
    with duckdb.connect(str(annotated.path)) as connection:
        connection.execute("ALTER TABLE scores RENAME TO scores_2")
        connection.execute("CREATE VIEW scores AS SELECT * FROM scores_2")
    with pytest.raises(DatabaseError, match="scores is not a table"):
        store.rows("SELECT 1")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda parts: parts.rename(parts.with_name("moved")), "is missing"),
        (lambda parts: next(parts.glob("run=*/manifest.json")).unlink(), "manifest.json: is missing"),
        (lambda parts: next(parts.glob("run=*/manifest.json")).write_text("[1"), "manifest.json: cannot be used"),
        (lambda parts: next(parts.glob("run=*/turns.parquet")).unlink(), "turns.parquet"),
        (lambda parts: next(parts.glob("run=*/turns.parquet")).write_bytes(b"no"), "turns.parquet"),
    ],
    ids=["moved", "no manifest", "bad manifest", "no file", "bad file"],
)
def test_damage_is_one_error_that_names_the_file(annotated: Store, tmp_path: Path, damage: Any, message: str) -> None:
    write_partition(annotated, annotated.run_id("@last"), tmp_path / "parts")
    attached(tmp_path, tmp_path / "parts")
    damage(tmp_path / "parts")
    result = CliRunner().invoke(cli, ["sql", "SELECT count(*) FROM v_turns", "--db", str(tmp_path / "all.duckdb")])
    assert isinstance(result.exception, DatabaseError | InvalidInput), result.output
    assert message in str(result.exception) and str(tmp_path / "parts") in str(result.exception)


def test_the_commands(annotated: Store, tmp_path: Path) -> None:
    db = str(annotated.path)

    def ran(*words: str) -> Any:
        result = CliRunner().invoke(cli, list(words), catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    made = ran("export", "--all", "--partitioned", "parts", "--db", db, "--json")
    assert [each["rows"]["annotations"] for each in made] == [4]
    about = ran("db", "attach", "par*", "-o", "all.duckdb", "--json")
    assert about["runs"] == 1 and about["sources"] == [str(tmp_path / "parts")]
    own = ran("report", "@last", "--db", db, "--json")
    assert ran("report", "@last", "--db", "all.duckdb", "--json") == own
    assert ran("show", "@last", "--db", "all.duckdb", "--json") == ran("show", "@last", "--db", db, "--json")
    assert ran("runs", "list", "--db", "all.duckdb", "--json") == ran("runs", "list", "--db", db, "--json")
    assert (
        ran("db", "info", "--db", "all.duckdb", "--json")["turns"] == ran("db", "info", "--db", db, "--json")["turns"]
    )


@pytest.mark.parametrize(
    "words",
    [
        ["export"],
        ["export", "-f", "csv", "--partitioned", "x"],
        ["export", "-f", "csv", "--by-run"],
        ["export", "--partitioned", "x", "-o", "y"],
        ["db", "attach", "x"],
    ],
)
def test_options_that_do_not_fit_together(words: list[str]) -> None:
    assert CliRunner().invoke(cli, words).exit_code == 2


def test_an_attachment_replaces_only_an_attachment(annotated: Store, tmp_path: Path) -> None:
    write_partition(annotated, annotated.run_id("@last"), tmp_path / "parts")
    with pytest.raises(InvalidInput, match="not an attachment"):
        attach_all([str(tmp_path / "parts")], annotated.path, print)
    for _ in range(2):
        assert attached(tmp_path, tmp_path / "parts").rows("SELECT 1 AS one") == [{"one": 1}]
    assert attach_all([str(tmp_path / "all.duckdb")], tmp_path / "again.duckdb", print).runs == 1
    with pytest.raises(InvalidInput, match="nothing is here"):
        attached(tmp_path, "nowhere/*.duckdb")
    assert set(LARGE) <= set(TABLES)
