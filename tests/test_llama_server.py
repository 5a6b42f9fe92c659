"""localsim against a real server: llama.cpp behind the OpenAI chat API (`python -m llama_cpp.server`), on loopback."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import localsim
from localsim.models.registry import resolve

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of the embedded model, started and ended here."""
    pytest.importorskip("fastapi", reason="llama-cpp-python[server] is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log.txt"
    command = [sys.executable, "-m", "llama_cpp.server", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--model", str(resolve("starter").path), "--n_ctx", "2048", "--n_threads", "2"]
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out)
    try:
        _wait(f"http://127.0.0.1:{port}/v1/models", process, log)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(20)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(240):
        if process.poll() is not None:
            pytest.fail(f"the server ended: {log.read_text()[-2000:]}")
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except OSError:
            time.sleep(0.25)
    pytest.fail(f"the server did not answer within a minute: {log.read_text()[-2000:]}")


@pytest.mark.verify
def test_a_run_on_a_real_server_is_stored_like_any_other(address: str) -> None:
    done = localsim.run("mutual_friends_01", model=f"openai:{address}#starter", parallel=1)
    assert (done.completed, done.failed) == (1, 0)
    turns = done.sql("SELECT mode, count(*) AS n FROM v_turns GROUP BY mode ORDER BY mode")
    assert [row["mode"] for row in turns] == ["agents"] and all(row["n"] >= 2 for row in turns)
    written = done.sql("SELECT count(*) AS n, sum(generated_tokens) AS tokens FROM v_generations")[0]
    assert written["n"] > 0 and written["tokens"] > 0
    model = done.sql("SELECT models_json FROM runs")[0]["models_json"]
    assert "remote" in model or "openai" in model
