"""Sidecars and remembered checksums of model files."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localsim.errors import ModelMissing
from localsim.models import checksums, sidecars
from localsim.models import registry as models
from localsim.models.checksums import checksum
from localsim.models.remembered import read_object, recall, remember
from tests.test_models import CHAT, EMBEDDING, WEIGHTS, registry  # noqa: F401 - a fixture

# ---- sidecars ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("registry")
def test_a_sidecar_makes_a_model_known_and_a_damaged_one_does_not(tmp_path: Path) -> None:
    path = tmp_path / "models" / "own.gguf"
    path.parent.mkdir()
    path.write_bytes(b"mine")
    sidecars.write_sidecar(path, name="own", origin="/somewhere", licence="mit")
    made = models.entry("own")
    assert (made.file, made.bytes, made.licence, made.title) == ("own.gguf", 4, "mit", "/somewhere")
    assert models.resolve("own").sha256 == hashlib.sha256(b"mine").hexdigest()
    whole = json.loads(sidecars.sidecar_path(path).read_text())
    wrong: list[Any] = [[], {}, {**whole, "bytes": "four"}, {**whole, "name": 1}, {**whole, "source": None}]
    for text in ("", "{", "[" * 200_000, *map(json.dumps, wrong)):
        sidecars.sidecar_path(path).write_text(text)
        assert sidecars.read_sidecar(path) == {}
        assert [model.name for model in models.entries()] == [CHAT, EMBEDDING]
        with pytest.raises(ModelMissing, match="no model is called"):
            models.entry("own")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_a_remembered_value_comes_back_as_it_was(value: Any) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv("LOCALSIM_CACHE", folder)
        assert recall("fact") is None
        remember("fact", value)
        assert recall("fact") == value
        assert read_object(Path(folder) / "fact.json") == (value if isinstance(value, dict) else {})


# ---- checksums -----------------------------------------------------------------------------------------------------


@pytest.fixture
def reads(registry: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[Path]:  # noqa: F811 - the fixture
    """The files whose every byte was read for a checksum."""
    assert registry
    found: list[Path] = []
    real = hashlib.file_digest

    def noting(file: Any, name: str) -> Any:
        found.append(Path(file.name))
        return real(file, name)

    monkeypatch.setattr(checksums.hashlib, "file_digest", noting)
    return found


def test_a_checksum_is_remembered_until_the_file_changes(tmp_path: Path, reads: list[Path]) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"one")
    os.utime(path, ns=(10**18, 10**18))
    assert checksum(path) == checksum(path) == hashlib.sha256(b"one").hexdigest()
    assert len(reads) == 1
    path.write_bytes(b"two")  # as long as before
    os.utime(path, ns=(10**18, 10**18 + 1))
    assert checksum(path) == hashlib.sha256(b"two").hexdigest()
    path.write_bytes(b"three")
    os.utime(path, ns=(10**18, 10**18 + 1))
    assert checksum(path) == hashlib.sha256(b"three").hexdigest()
    assert len(reads) == 3


def test_verify_reads_every_byte_again(tmp_path: Path, reads: list[Path]) -> None:
    path = tmp_path / "models" / "Toy.gguf"
    path.parent.mkdir()
    path.write_bytes(WEIGHTS)
    os.utime(path, ns=(10**18, 10**18))
    assert models.verify(CHAT) == models.verify(CHAT) == path
    assert reads == [path, path]
    path.write_bytes(WEIGHTS[:-1] + b"!")  # a flipped byte that neither size nor time shows
    os.utime(path, ns=(10**18, 10**18))
    assert models.resolve(CHAT).path == path, "from memory; verify is there for this case"
    with pytest.raises(ModelMissing, match="checksum"):
        models.verify(CHAT)
    with pytest.raises(ModelMissing, match="checksum"):
        models.resolve(CHAT)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '"x"'])
def test_a_damaged_memory_only_costs_time(tmp_path: Path, reads: list[Path], content: str) -> None:
    memory = tmp_path / "cache" / "checksums.json"
    memory.parent.mkdir()
    memory.write_text(content)
    path = tmp_path / "x.gguf"
    path.write_bytes(b"one")
    for _ in range(2):
        assert checksum(path) == hashlib.sha256(b"one").hexdigest()
    assert len(reads) == 1


def test_a_memory_that_cannot_be_written_only_costs_time(tmp_path: Path, reads: list[Path]) -> None:
    (tmp_path / "cache").write_text("a file where the folder would be")
    path = tmp_path / "x.gguf"
    path.write_bytes(b"one")
    for _ in range(2):
        assert checksum(path) == hashlib.sha256(b"one").hexdigest()
    assert len(reads) == 2
    assert stat.S_ISREG((tmp_path / "cache").stat().st_mode)
