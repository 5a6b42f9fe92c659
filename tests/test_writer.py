"""Group commit: what waits is written together, errors reach those who wait, and nothing is lost at the end."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.store.database import Store
from localsim.store.writer import Writer, Writers

LONG = 30.0
"""Seconds after which a thread that does not answer fails the test."""


class Slow:
    """A write that keeps each batch, and waits in the first one until `go_on` is set."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.batches: list[list[int]] = []
        self.threads: set[threading.Thread] = set()

    def __call__(self, items: Sequence[int]) -> None:
        self.threads.add(threading.current_thread())
        self.begun.set()
        assert self.go_on.wait(LONG)
        self.batches.append(list(items))
        if 13 in items:
            raise ValueError("no thirteen")


def test_items_that_arrive_during_a_write_share_the_next_one() -> None:
    write = Slow()
    writer = Writer(write)
    first = writer.add(0)
    assert write.begun.wait(LONG)
    others = [writer.add(number) for number in range(100, 130)]
    assert not any(future.done() for future in (first, *others))
    write.go_on.set()
    for future in (first, *others):
        future.result(LONG)
    assert write.batches == [[0], list(range(100, 130))]
    assert len(write.threads) == 1


def test_an_error_reaches_everyone_who_waits_for_it_and_no_one_else() -> None:
    write = Slow()
    writer = Writer(write)
    before = writer.add(0)
    assert write.begun.wait(LONG)
    together = [writer.add(number) for number in (12, 13, 14)]
    write.go_on.set()
    before.result(LONG)
    for future in together:
        with pytest.raises(ValueError, match="no thirteen"):
            future.result(LONG)
    writer.add(15).result(LONG)
    assert write.batches == [[0], [12, 13, 14], [15]]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=6))
def test_every_item_is_written_once_and_in_the_order_of_its_thread(counts: list[int]) -> None:
    written: list[tuple[int, int]] = []
    writer: Writer[tuple[int, int]] = Writer(written.extend)

    def add(number: int) -> None:
        for place in range(counts[number]):
            writer.add((number, place)).result(LONG)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(len(counts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    for number, count in enumerate(counts):
        assert [place for who, place in written if who == number] == list(range(count))
    assert len(written) == sum(counts)


def test_the_thread_ends_with_its_writer() -> None:
    write = Slow()
    write.go_on.set()
    writer = Writer(write)
    writer.add(1).result(LONG)
    (thread,) = write.threads
    assert thread.is_alive()
    del writer
    thread.join(LONG)
    assert not thread.is_alive()


def test_the_end_of_the_program_waits_for_what_is_to_be_written(tmp_path: Path) -> None:
    file = tmp_path / "written.txt"
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from localsim.store.writer import Writer\n"
        "def write(items):\n"
        "    time.sleep(0.2)\n"  # slower than the rest of the program
        "    Path(sys.argv[1]).write_text(str(items))\n"
        "Writer(write).add(1)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(file)], check=True, timeout=LONG)
    assert file.read_text() == "[1]"


def test_each_database_has_a_writer_of_its_own(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()
    written: list[tuple[str, int]] = []

    def write(store: Store, items: Sequence[int]) -> None:
        if 1 in items:
            begun.set()
            assert go_on.wait(LONG)
        written.extend((store.path.name, item) for item in items)
        if 13 in items:
            raise ValueError("no thirteen")

    writers = Writers(write)
    one, other = Store(tmp_path / "one.duckdb"), Store(tmp_path / "other.duckdb")
    thread = threading.Thread(target=writers.write, args=(one, 1))
    thread.start()
    assert begun.wait(LONG)
    writers.write(other, 2)
    assert written == [("other.duckdb", 2)], "it does not wait for the first database"
    go_on.set()
    thread.join(LONG)
    with pytest.raises(ValueError, match="no thirteen"):
        writers.write(one, 13)
    writers.write(one, 14)
    assert written == [("other.duckdb", 2), ("one.duckdb", 1), ("one.duckdb", 13), ("one.duckdb", 14)]
