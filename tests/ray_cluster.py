"""A Ray cluster of two nodes on this machine, reachable from this machine only, for tests and benchmarks."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

LOCAL = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_worker_niceness": "0"}
"""Ray sends no statistics, listens on the loopback address only, and does not give workers the lowest priority."""


_ATTEMPTS = 4
"""Ray gives a node half a minute to start, which is too little where many programs run."""


class Nodes:
    """A running cluster."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.client_port: int = free.getsockname()[1]
        """The port of clients, `ray://127.0.0.1:PORT`."""

    @property
    def address(self) -> str:
        """Host and port of the head."""
        return str(self._cluster.address)

    def add(self) -> Any:
        """Start one more node with one processor; the first one is the head."""
        for patience in range(_ATTEMPTS):
            try:
                options = {"ray_client_server_port": self.client_port} if not self.all() else {}
                return self._cluster.add_node(
                    num_cpus=1, include_dashboard=False, node_ip_address="127.0.0.1", **options
                )
            except Exception:
                if patience == _ATTEMPTS - 1:
                    raise
        raise AssertionError("not reached")

    def all(self) -> list[Any]:
        """Return the nodes that run."""
        return list(self._cluster.list_all_nodes())

    def remove(self, node: Any) -> None:
        """Stop a node at once."""
        self._cluster.remove_node(node, allow_graceful=False)

    def workers(self, without: Any = None) -> list[psutil.Process]:
        """Return the processes of localsim's workers, `without` those of a node."""
        found = []
        hidden = {each.process.pid for each in without.all_processes["raylet"]} if without is not None else set()
        for process in psutil.Process().children(recursive=True):
            try:
                if "".join(process.cmdline()[:1]).startswith("ray::Worker") and process.ppid() not in hidden:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def environment(self) -> dict[str, str]:
        """Return the environment in which `--cluster auto` means this cluster."""
        return {**os.environ, **LOCAL, "RAY_ADDRESS": self.address}

    def begin(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """Start a command of localsim."""
        command = [sys.executable, "-m", "localsim", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, env=self.environment(), **{**pipes, **options})

    def localsim(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command of localsim; return exit code, stdout and stderr."""
        process = self.begin(*arguments)
        out, err = process.communicate(timeout=400)
        return process.returncode, out, err


@contextmanager
def nodes(number: int, **environment: str) -> Iterator[Nodes]:
    """Give a cluster of nodes with one processor each, and these variables; the first is the head."""
    settings = {**LOCAL, **environment}
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    try:
        found = Nodes(cluster)
        for _ in range(number):
            found.add()
        _restore({name: before[name] for name in environment})
        yield found
    finally:
        cluster.shutdown()
        _restore(before)


def _restore(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def journal_events(db: Path, event: str) -> int:
    """Return how often an event is in the journals of a database."""
    return sum(path.read_text().count(f'"event": "{event}"') for path in Path(f"{db}.d").glob("*.jsonl"))
