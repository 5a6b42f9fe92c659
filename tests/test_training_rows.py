"""Rows made on several cores: the same as on one, kept in a file, and made anew when their sources change."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localsim.conversation.requests import Message
from localsim.errors import LocalsimError
from localsim.finetune.chats import Chat, TrainingRow
from localsim.models.registry import ModelFile
from scripts.starter import rows as rows_module
from scripts.starter.rows import Rows, made_rows, read_rows, write_rows
from tests import tiny_model


def talks(part: int) -> tuple[list[Chat], Counter[str]]:
    """Three chats of growing length."""
    chats = [
        Chat("A", (Message("user", "Hi " * size), Message("assistant", f"A: {part} {size}")), f"{part}", (size + 0.5,))
        for size in range(1, 4)
    ]
    return chats, Counter({"chats": 3, f"part {part}": 1})


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> ModelFile:
    path = tiny_model.write(tmp_path_factory.mktemp("rows") / "tiny.gguf", tiny_model.FAMILIES["llama-3"])
    return ModelFile("tiny", path, "0" * 64)


def test_rows_do_not_depend_on_the_number_of_processes(base: ModelFile) -> None:
    one, two = (made_rows(talks, [5, 6, 7], base, longest=1000, processes=number) for number in (1, 2))
    assert one == two and len(one.rows) == 9
    assert [row.group for row in one.rows] == ["5"] * 3 + ["6"] * 3 + ["7"] * 3
    assert {weight for row in one.rows for weight in row.weights} == {0.0, 1.5, 2.5, 3.5}
    assert one.counts == {"chats": 9, "part 5": 1, "part 6": 1, "part 7": 1}
    short = sorted(len(row.tokens) for row in one.rows)[3]
    clipped = made_rows(talks, [5], base, longest=short - 1, processes=1)
    assert clipped.longer + len(clipped.rows) == 3 and clipped.longer


def test_rows_are_made_anew_only_if_a_source_changes(
    base: ModelFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second call makes no process; another source, part or base does."""
    source, cache = tmp_path / "source.txt", tmp_path / "kept" / "rows.npz"
    source.write_text("one")

    def made(parts: list[int]) -> Rows:
        return made_rows(talks, parts, base, longest=1000, cache=cache, sources=[tmp_path / "source.txt"], processes=1)

    first = made([1])

    def refuse(*_: object) -> None:
        raise LocalsimError("a process was started")

    monkeypatch.setattr(rows_module, "ProcessPoolExecutor", refuse)
    assert made([1]) == first and list(tmp_path.rglob("*.part")) == []
    with pytest.raises(LocalsimError):
        made([2])
    source.write_text("other")
    with pytest.raises(LocalsimError):
        made([1])


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 9, width=32)), min_size=1, max_size=9), max_size=5)
)
@settings(deadline=None, max_examples=30)
def test_kept_rows_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[list[tuple[int, float]]]
) -> None:
    path = tmp_path_factory.mktemp("kept") / "rows.npz"
    rows = [TrainingRow([t for t, _ in row], [w for _, w in row], f"é{number}") for number, row in enumerate(drawn)]
    write_rows(path, "key", Rows(rows, 3, Counter("aab")))
    found = read_rows(path, "key")
    assert found is not None and (found.longer, found.counts) == (3, Counter("aab"))
    assert [(list(r.tokens), list(r.weights), r.group) for r in found.rows] == [
        (r.tokens, r.weights, r.group) for r in rows
    ]
    assert read_rows(path, "other key") is None
    assert found.tokens == sum(len(row) for row in drawn)


@pytest.mark.parametrize("at", [0.1, 0.5, 0.9])
def test_a_damaged_file_is_no_rows(at: float, tmp_path: Path) -> None:
    path = tmp_path / "rows.npz"
    assert read_rows(path, "key") is None
    write_rows(path, "key", Rows([TrainingRow(list(range(3000)), [1.0] * 3000, "g")]))
    content = bytearray(path.read_bytes())
    content[int(at * len(content))] ^= 255
    path.write_bytes(content)
    found = read_rows(path, "key")
    assert found is None or list(found.rows[0].tokens) == list(range(3000)), "only bytes outside the content may differ"
    path.write_bytes(content[: len(content) // 2])
    assert read_rows(path, "key") is None
