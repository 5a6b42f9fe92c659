#!/usr/bin/env python3
"""The engine beside other engines of the package index, on the turns of a real run: one table.

    .venv/bin/python scripts/bench_others.py install          # an environment for each peer, in .peers
    .venv/bin/python scripts/bench_others.py all              # measures what is installed, prints the table
    .venv/bin/python scripts/bench_others.py record --workload study --out study.json
    .peers/xllamacpp/bin/python scripts/peers.py xllamacpp study.json
    .venv/bin/python scripts/bench_others.py table .peers/results.jsonl

`peers.py` has the peers. Each runs in a process of its own, which is stopped for a moment each second to measure the
pace of the machine (bench_pace.py). What writes one conversation at a time runs a sample: the first conversation of
each family and mode. The wrapper of llama-cpp-python is measured as in bench_engine.py.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.backends.llama.chat import ChatTokenizer  # noqa: E402
from localsim.backends.open import physical_cores  # noqa: E402
from localsim.conversation.scenario import WRITER  # noqa: E402
from scripts.bench_engine import Bench, benches, wrapper_rate  # noqa: E402
from scripts.bench_pace import ABREAST, Stopwatch  # noqa: E402
from scripts.bench_peers import body_of, breaks  # noqa: E402
from scripts.peers import INSTALLED, PEERS  # noqa: E402
from scripts.tables import markdown_table, say  # noqa: E402

ENVIRONMENTS = ROOT / ".peers"
RESULTS = "results.jsonl"
WORKLOADS = ("independent", "study")
LOOK_S = 0.1
"""Seconds between two looks at a peer that runs."""
Line = dict[str, Any]
"""The result of one peer on one workload, or of its installation."""


# ---- installation --------------------------------------------------------------------------------------------------


def install(name: str, folder: Path, limit: float) -> Line:
    """Make the environment of a peer; returns how it was installed, or why it was not."""
    peer = PEERS[name]
    home = folder / peer.package
    shutil.rmtree(home, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    pip = [str(home / "bin" / "pip"), "--disable-pip-version-check"]
    before, begun = megabytes(home), time.perf_counter()
    command = [*pip, "install", "--quiet", "--no-cache-dir", "--report", str(home / "report.json")]
    command += ["-c", str(ROOT / "scripts" / "constraints-peers.txt"), *peer.wanted]
    made = {"LLAMA_CPP_BUILD_JOBS": str(os.cpu_count() or 1), "CMAKE_ARGS": peer.cmake}
    process = subprocess.Popen(command, env=made | os.environ, stdout=sys.stderr, start_new_session=True)
    try:
        failed = process.wait(limit) != 0
        reason = "pip failed"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        failed, reason = True, f"not installed after {limit / 60:.0f} minutes"
    if failed:
        shutil.rmtree(home)
        return {"peer": name, "failed": reason}
    if peer.unwanted:
        subprocess.run([*pip, "uninstall", "--quiet", "--yes", *peer.unwanted], check=True)
    report = json.loads((home / "report.json").read_text())
    urls = {item["metadata"]["name"]: item["download_info"]["url"] for item in report["install"]}
    found = {
        "peer": name,
        "kind": "wheel" if urls[peer.package].endswith(".whl") else "compiled",
        "mb": megabytes(home) - before,
        "install_s": time.perf_counter() - begun,
    }
    (home / INSTALLED).write_text(json.dumps(found))
    return found


def megabytes(folder: Path) -> float:
    """Size of the files in a folder, in megabytes."""
    return sum(file.lstat().st_size for file in folder.rglob("*")) / 1e6


# ---- workloads -----------------------------------------------------------------------------------------------------


class _Marked(ChatTokenizer):
    """Numbers below zero may stand for replies, whose line breaks nobody keeps."""

    def _line(self, line: str, known: tuple[int, ...] | None) -> tuple[int, ...]:
        return (*known, *self.content("\n")) if known else super()._line(line, known)


def written_down(bench: Bench, weights: Path | None) -> dict[str, Any]:
    """A recorded workload for `peers.py`.

    `conversations` are in the order of the plan, each with its `replies` in the order in which they ended. The `prompt`
    of a reply holds tokens; -1 in it stands for what was drawn for the conversation's first reply, -2 for the second.
    """
    chat = _Marked(bench.model)
    replies: dict[str, list[Any]] = defaultdict(list)
    written: dict[str, dict[str, tuple[int, ...]]] = defaultdict(dict)
    for key, (request, reply) in bench.tape.replies.items():
        recorded, known = bench.tape.ends[key], written[request.session]
        found = replies[request.session.partition("/")[0]]
        found.append(
            {
                "prompt": chat.prompt(request.messages, request.prefill, known, note=request.note),
                "body": body_of(request, recorded),
                "agent": request.speaker != WRITER,
                "tokens": len(reply),
                "kept": recorded.draws - (recorded.cause != "length"),
            }
        )
        known[(request.prefill + recorded.text).removesuffix("\n")] = (*chat.content(request.prefill), -len(found))
    seen: set[tuple[str | None, str]] = set()
    talks = []
    for spec in bench.plan.specs():
        kind = (spec.scenario.family, spec.mode)
        talks.append({"mode": spec.mode, "sample": kind not in seen, "replies": replies[spec.hash]})
        seen.add(kind)
    return {
        "workload": bench.name,
        "model": str(bench.model.path.resolve()),
        "weights": str(weights) if weights else None,
        "context": bench.context,
        "threads": physical_cores(),
        "breaks": breaks(bench.model),
        "conversations": talks,
    }


def dense(gguf: Path, folder: Path) -> Path:
    """The model as bfloat16 in safetensors, for peers that read no GGUF file; needs the extra `finetune`."""
    from localsim.finetune.trainer import load_base

    if not (folder / "config.json").exists():
        model = load_base(gguf, bf16=True)
        model.save_pretrained(str(folder))
    return folder


# ---- measurements --------------------------------------------------------------------------------------------------


def measured(name: str, folder: Path, file: Path, bench: Bench) -> Line:
    """Run a peer on a recorded workload; its rate is in tokens a second at the pace of the first probes."""
    command = [
        str(folder / PEERS[name].package / "bin" / "python"),
        str(ROOT / "scripts" / "peers.py"),
        name,
        str(file),
        "--wait",
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdin and process.stdout
    try:
        if process.stdout.readline().strip() != b"ready":
            return {"peer": name, "failed": f"it did not load the model (exit status {process.wait()})"}
        watch = Stopwatch(bench.pace, lambda: halted(process))
        watch.start()
        process.stdin.write(b"\n")
        process.stdin.flush()
        while not select.select([process.stdout], [], [], LOOK_S)[0]:
            watch.look()
        watch.stop()
        answer = process.stdout.readline()
        if not answer:
            return {"peer": name, "failed": f"it ended early (exit status {process.wait()})"}
        line: Line = json.loads(answer)
        return line | {"rate": line["tokens"] / watch.probes / bench.pace.reference, "seconds": watch.seconds}
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def halted(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Stop a peer and the processes that it started, so that something else can be measured."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGCONT)


def engine(bench: Bench, library: str = "") -> Line:
    """Run localsim's engine on the same workload, with the weights in llama.cpp or another library."""
    found = bench.replay(bench.plan.specs(), bench.parallel, library)
    return {
        "peer": f"localsim {library}".strip(),
        "rate": found["tokens"] / found["probes"] / bench.pace.reference,
        "tokens": found["tokens"],
        "seconds": found["seconds"],
    }


def rounds(bench: Bench, folder: Path, peers: Sequence[str], repeats: int) -> Iterator[Line]:
    """Measure all peers, one after the other, and again."""
    file = folder / f"{bench.name}.json"
    weights = dense(bench.model.path, folder / f"{bench.model.path.stem}.weights") if "vllm" in peers else None
    file.write_text(json.dumps(written_down(bench, weights)))
    shared = {"workload": bench.name, "version": version("llama-cpp-python"), "kind": "compiled"}
    for number in range(repeats):
        yield shared | engine(bench) | {"lanes": bench.parallel}
        if find_spec("openvino"):
            own = {"lanes": bench.parallel, "version": version("openvino"), "kind": "wheel"}
            yield shared | engine(bench, "openvino") | own
        for name in peers:
            say(f"{bench.name}, round {number + 1} of {repeats}: {name}")
            if name == "wrapper":
                rate = wrapper_rate(bench) / bench.pace.reference
                yield shared | {"peer": "wrapper", "rate": rate, "lanes": 1}
            else:
                yield {"workload": bench.name} | measured(name, folder, file, bench)


# ---- the table -----------------------------------------------------------------------------------------------------

OURS = {
    "localsim": ("**localsim**", "Q8_0", ""),
    "localsim openvino": ("**localsim, openvino:**", "Q8_0", "grammar and samplers are llama.cpp's"),
    "wrapper": ("llama-cpp-python, `create_chat_completion`", "Q8_0", "same grammar and sampling; no DRY"),
}
"""Title, weights and differences of what runs in localsim's own environment."""


def table(lines: Iterable[Line]) -> str:
    """One row for each peer, with the median of its rates on each workload."""
    rates: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    known: dict[str, Line] = {}
    failed: dict[str, str] = {}
    for line in lines:
        if "failed" in line:
            failed[line["peer"]] = line["failed"]
        elif "rate" in line:
            rates[line["peer"]][line["workload"]].append(line["rate"])
            known[line["peer"]] = line
    names = [name for name in (*OURS, *PEERS) if name in known or name in failed]
    heads = ("engine", "version", "from the index", "weights", "at once", *WORKLOADS, "what differs")
    return markdown_table(heads, [row(name, known.get(name), rates[name], failed.get(name)) for name in names])


def row(name: str, known: Line | None, rates: dict[str, list[float]], failed: str | None) -> list[str]:
    """A row of the table."""
    if name in OURS:
        title, weights, differs = OURS[name]
    else:
        title, weights, differs = PEERS[name].title, PEERS[name].weights, PEERS[name].differs
    if known is None:
        return [title, "", failed or "", weights, "", "", "", differs]
    size = f", {known['mb']:.0f} MB" if known.get("mb") else ""
    cells = [f"{statistics.median(rates[each]):.1f}" if rates.get(each) else "-" for each in WORKLOADS]
    return [title, known["version"], f"{known['kind']}{size}", weights, str(known["lanes"]), *cells, differs]


# ---- commands ------------------------------------------------------------------------------------------------------

folder_option = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=ENVIRONMENTS,
    help="Folder of the peers' environments, workloads and results [.peers].",
)
workload_option = click.option(
    "--workload", "names", multiple=True, type=click.Choice(WORKLOADS), help="Workload to measure [both]."
)
model_option = click.option("--model", default="starter", show_default=True)
seeds_option = click.option("--seeds", default=2, show_default=True, help="Number of seeds in the workload *study*.")


@click.group()
def main() -> None:
    """Compare the engine with other engines of the package index."""


@main.command("install")
@folder_option
@click.option("--limit", default=600.0, show_default=True, help="Seconds after which an installation is given up.")
@click.argument("names", nargs=-1, type=click.Choice(sorted(PEERS)))
def install_command(folder: Path, limit: float, names: tuple[str, ...]) -> None:
    """Make the environments of peers [all]."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / RESULTS).open("a") as results:
        packages = {PEERS[name].package: name for name in names or PEERS}  # two peers may share one
        for name in packages.values():
            line = json.dumps(install(name, folder, limit))
            click.echo(line)
            results.write(line + "\n")


@main.command("record")
@model_option
@click.option("--workload", "name", required=True, type=click.Choice(WORKLOADS))
@seeds_option
@click.option("--weights", type=click.Path(path_type=Path), help="Also convert the model, into this folder.")
@click.option("--out", required=True, type=click.Path(path_type=Path))
def record_command(model: str, name: str, seeds: int, weights: Path | None, out: Path) -> None:
    """Record a workload with the engine, and write it down for peers.py."""
    for bench in benches(model, [name], seeds, "off", ABREAST):
        if weights:
            dense(bench.model.path, weights)
        out.write_text(json.dumps(written_down(bench, weights and weights.resolve())))


@main.command("all")
@folder_option
@model_option
@workload_option
@seeds_option
@click.option("--repeats", default=1, show_default=True)
@click.option("--peer", "peers", multiple=True, type=click.Choice(("wrapper", *PEERS)), help="Peer to measure [all].")
def all_command(
    folder: Path, model: str, names: tuple[str, ...], seeds: int, repeats: int, peers: tuple[str, ...]
) -> None:
    """Measure the engine and every peer that is installed; prints the table of all results in the folder."""
    present = ["wrapper", *(name for name, peer in PEERS.items() if (folder / peer.package / INSTALLED).exists())]
    file = folder / RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    for bench in benches(model, names or WORKLOADS, seeds, "off", ABREAST):
        for line in rounds(bench, folder, [name for name in present if not peers or name in peers], repeats):
            say(json.dumps(line))
            with file.open("a") as results:
                results.write(json.dumps(line) + "\n")
    click.echo(table(read([file])))


@main.command("table")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def table_command(files: tuple[Path, ...]) -> None:
    """Print the table of results."""
    click.echo(table(read(files)))


def read(files: Iterable[Path]) -> list[Line]:
    """The lines of files of results."""
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


if __name__ == "__main__":
    main()
