"""Reads in a row on one connection, as a report makes them, and writers that wait meanwhile."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from localsim.errors import DatabaseError
from localsim.store.database import Store
from tests.test_store import ROOT, simulate

WRITE = (
    "import sys; from pathlib import Path; from localsim.store.database import Store\n"
    "with Store(Path(sys.argv[1])).writing(patience_s=30): pass"
)


def test_a_report_lets_a_writer_go_first(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process writes while a report reads."""
    simulate(store)
    monkeypatch.setattr("localsim.store.lock.SECONDS", 0.1)
    with store.held() as reader:
        reader.rows("SELECT 1")
        writer = subprocess.Popen([sys.executable, "-c", WRITE, str(store.path)], cwd=ROOT)
        end = time.monotonic() + 90
        while time.monotonic() < end and writer.poll() is None:
            assert reader.rows("SELECT count(*) AS n FROM episodes") == [{"n": 4}]
        assert writer.poll() == 0, "it waited for the report"


def test_reads_in_a_row_share_a_connection_that_ends_with_them(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a read or its owner fails; the messages are those of any read."""
    simulate(store)
    opened: list[Path] = []
    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda path, **more: opened.append(path) or connect(path, **more))
    monkeypatch.setattr("localsim.store.lock.SECONDS", 60.0)
    with pytest.raises(KeyError), store.held() as reader:
        with pytest.raises(DatabaseError, match="nothing_here"):
            reader.rows("SELECT * FROM nothing_here")
        with reader.held() as again:
            again.rows("SELECT 1")
        reader.rows("SELECT 1")
        assert len(opened) == 1
        raise KeyError
    with store.writing(patience_s=0):
        assert len(opened) == 2
    assert reader.rows("SELECT 1 AS one") == [{"one": 1}] and len(opened) == 3
    with pytest.raises(DatabaseError, match="no database here"), Store(store.path.with_name("none")).held() as reader:
        reader.rows("SELECT 1")
