#!/usr/bin/env python3
"""Measure the engine side by side with its limit and its peers, on the turns of a real run.

    .venv/bin/python scripts/bench_engine.py [--server PATH/llama-server]     # both workloads, a table

A run is recorded once. What is timed then replays it: samplers and grammar run on the real logits, and the recorded
token is taken, so that all variants do the same work on the same unequal turns.

(a) wrapper: `Llama.create_chat_completion`, agents alternating on one model, one grammar with ours (a sample)
(b) engine -j 1 (a sample of episodes)
(c) engine -j 8, the whole workload, with recorder and database
(d) limit: raw llama_decode on the tokens that (c) evaluates, at their depths: every prompt part in one call by
    itself, written tokens in steps that are 8 abreast as long as there are 8 conversations; sampling, grammar and
    Python cost nothing. *ideal* is stricter: prompts in parts of 512 from empty, always 8 abreast
(e) llama.cpp's own server (8 slots, prompt cache and grammar on), 8 live conversations at a time, started anew for
    each repeat. It cannot be made to take recorded tokens, so it draws as many of its own for each reply (an end is
    forbidden until then), and they are what its listener reads

All are counted in probes, as the pace of a shared processor changes within seconds (bench_pace.py), and shown in tokens
a second at the pace of the first probes. Ratios are medians of the single repeats' ratios.
"""

from __future__ import annotations

import copy
import json
import platform
import statistics
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.backends.base import Backend, Done  # noqa: E402
from localsim.backends.engines import evaluator_of, load  # noqa: E402
from localsim.backends.evaluator import OPENINGS  # noqa: E402
from localsim.backends.llama import memory as planning  # noqa: E402
from localsim.backends.llama.devices import where  # noqa: E402
from localsim.backends.llama.engine import Engine  # noqa: E402
from localsim.backends.llama.lib import LlamaModel, library  # noqa: E402
from localsim.backends.llama.raw import PREFILL, RawContext  # noqa: E402
from localsim.backends.open import gpu_layers, physical_cores  # noqa: E402
from localsim.conversation.episode import MODES, EpisodeSpec  # noqa: E402
from localsim.conversation.requests import Request  # noqa: E402
from localsim.conversation.scenario import LoadedScenario  # noqa: E402
from localsim.families import FAMILIES  # noqa: E402
from localsim.models import registry as models  # noqa: E402
from localsim.runs.plan import Plan  # noqa: E402
from localsim.runs.recorder import Recorder  # noqa: E402
from localsim.runs.scheduler import Simulation, Summary, Watcher  # noqa: E402
from localsim.store.database import Store  # noqa: E402
from localsim.store.journal import Journal  # noqa: E402
from localsim.store.records import RunRecord  # noqa: E402
from scripts.bench_pace import ABREAST, Pace, Stopwatch  # noqa: E402
from scripts.bench_peers import Key, Recorded, Server, ServerBackend, key_of, stopped, wrapper_seconds  # noqa: E402
from scripts.bench_table import draw, table  # noqa: E402

PEERS = ("one", "limit", "wrapper", "server")
FAMILIES_TALKED = ("craigslist", "mutual_friends")
"""The task families of both workloads; they have all three modes."""
PIECES = 48
"""Prompt parts on which the limit is measured, spread over all sizes and depths."""


@dataclass
class Tape:
    """A recorded run: the tokens drawn, and the whole replies, by request."""

    drawn: dict[Key, list[int]] = field(default_factory=lambda: defaultdict(list))
    replies: dict[Key, tuple[Request, list[int]]] = field(default_factory=dict)
    ends: dict[Key, Recorded] = field(default_factory=dict)


def shared(model: LlamaModel) -> LlamaModel:
    """Return a model for one more backend; its first owner frees the weights."""
    other = copy.copy(model)
    other.free = lambda: None
    return other


class Recording(Engine[Any]):
    """The engine; its draws are recorded."""

    tape: Tape

    def _choose(self, job: Any, logits: Any, *, in_text: bool) -> int:
        token = super()._choose(job, logits, in_text=in_text)
        self.tape.drawn[key_of(job.request)].append(token)
        return token

    def _finish(self, job: Any, cause: Any) -> Any:
        key = key_of(job.request)
        self.tape.replies[key] = (job.request, list(job.tokens))
        self.tape.ends[key] = Recorded(len(job.tokens) + (cause == "end_of_text"), cause, job.text)
        return super()._finish(job, cause)


class Replaying(Engine[Any]):
    """The engine, which takes recorded tokens instead of its own draws and counts the tokens it evaluates."""

    tape: Tape

    def begin(self, tape: Tape, watch: Stopwatch) -> None:
        """Prepare a replay, before the first request."""
        self.tape = tape
        self.watch = watch
        self.cursor: Counter[Key] = Counter()
        self.work = Work()

    def _choose(self, job: Any, logits: Any, *, in_text: bool) -> int:
        super()._choose(job, logits, in_text=in_text)
        key = key_of(job.request)
        self.cursor[key] += 1
        return self.tape.drawn[key][self.cursor[key] - 1]

    def poll(self) -> list[Done]:
        self.watch.look()
        return super().poll()

    def _start(self, ticket: int, request: Request, session: Any) -> Any:
        job = super()._start(ticket, request, session)
        opening = request.turn < 2 or request.speaker == "writer"
        self.work.pieces.append((len(session.tokens), len(job.pending), opening))
        return job

    def _evaluate(self, shares: Any) -> Any:
        for job, count in shares:
            if job.prefilled:
                if count > 1:
                    self.work.pieces.append((len(job.cache.tokens), count, False))
                else:
                    self.work.steps.append(len(job.cache.tokens))
                    self.work.by_episode[job.request.session.partition("/")[0]] += 1
        return super()._evaluate(shares)


@dataclass
class Work:
    """The tokens that an engine evaluated."""

    pieces: list[tuple[int, int, bool]] = field(default_factory=list)
    """(tokens before it, its tokens, whether it is an opening) of each part of a prompt or forced text."""
    steps: list[int] = field(default_factory=list)
    """The number of tokens before each token that was evaluated alone."""
    by_episode: Counter[str] = field(default_factory=Counter)
    """The number of such tokens in each episode, in the order of their first."""

    @property
    def prompt_tokens(self) -> int:
        """Tokens that were evaluated in parts of prompts."""
        return sum(count for _, count, _ in self.pieces)


class Silent(Watcher):
    """A watcher that shows nothing."""


# ---- workloads -----------------------------------------------------------------------------------------------------


def workload(name: str, seeds: int, model: str) -> Plan:
    """*independent*: 8 scenarios as agents; *study*: 2 scenarios x 3 modes x seeds. Conversations of 20 turns."""
    if name == "independent":
        found = [generated(FAMILIES_TALKED[number % 2], 100 + number) for number in range(8)]
        return Plan(tuple(found), ("agents",), model=model, seed=7)
    found = [generated(family, 200) for family in FAMILIES_TALKED]
    return Plan(tuple(found), MODES, model=model, episodes=seeds, seed=7)


def generated(family: str, seed: int) -> LoadedScenario:
    """An instance of a task family in which nobody may leave, so that every conversation has its 20 turns."""
    scenario, answer = FAMILIES[family].generate(f"{family}_{seed}", seed, {}).split()
    return LoadedScenario(scenario.model_copy(update={"actions": ("speak",)}), answer, f"{family}.yaml")


def simulate(
    backend: Backend,
    plan: Plan,
    specs: Sequence[EpisodeSpec],
    parallel: int,
    watch: Stopwatch,
    watcher: Watcher | None = None,
) -> Summary:
    """A whole simulation with recorder and database, under a stopwatch."""
    with tempfile.TemporaryDirectory() as scratch:
        store = Store(Path(scratch) / "bench.duckdb")
        run = RunRecord(
            run_id="bench",
            status="running",
            started_utc="2026-01-01T00:00:00",
            finished_utc=None,
            seed=plan.seed,
            repro=plan.repro,
            parallel=parallel,
            episodes_planned=len(specs),
            plan_json="{}",
            models_json="{}",
            versions_json="{}",
        )
        answers = {loaded.scenario.hash: loaded.answer for loaded in plan.scenarios}
        watch.start()
        recorder = Recorder(store, Journal(store.path, "bench"), run, plan.scenarios, lambda _line: None)
        watcher = watcher or Silent()
        simulation = Simulation("bench", {plan.model: backend}, answers, recorder, watcher, parallel=parallel)
        summary = simulation.run(specs)
        recorder.close(finished_utc="2026-01-01T00:00:00", complete=True)
        watch.stop()
        return summary


@dataclass
class Bench:
    """A model, a workload and its recording."""

    name: str
    model: LlamaModel
    plan: Plan
    context: int
    pace: Pace
    parallel: int = ABREAST
    """Conversations at a time."""
    tape: Tape = field(default_factory=Tape)
    others: dict[str, LlamaModel] = field(default_factory=dict)
    """The same model for other libraries."""

    def backend(self, kind: type[Engine[Any]], sequences: int, library: str = "") -> Any:
        """Make a fresh engine, on the model's own library or another one."""
        model = shared(self.on(library) if library else self.model)
        size = {"sequences": sequences, "context": self.context, "threads": physical_cores()}
        caches = evaluator_of(model, **size, idle=3 * sequences + OPENINGS)
        return kind(model, caches, {}, name=self.plan.model, sha256="0" * 64, context=self.context)

    def on(self, library: str) -> LlamaModel:
        """Return the model for another library; it is loaded once."""
        if library not in self.others:
            file = replace(models.resolve(self.plan.model), engine=library)
            self.others[library] = load(file, threads=physical_cores())
        return self.others[library]

    def record(self) -> Summary:
        """Simulate once for real, without timing."""
        backend = self.backend(Recording, self.parallel)
        backend.tape = self.tape
        summary = simulate(backend, self.plan, self.plan.specs(), self.parallel, Stopwatch(self.pace))
        backend.close()
        return summary

    def replay(self, specs: Sequence[EpisodeSpec], parallel: int, library: str = "") -> dict[str, Any]:
        """Time the engine on recorded turns."""
        backend, watch = self.backend(Replaying, parallel, library), Stopwatch(self.pace)
        backend.begin(self.tape, watch)
        summary = simulate(backend, self.plan, specs, parallel, watch)
        effort, work = backend.effort, backend.work
        backend.close()
        generated_tokens = summary.tokens_generated
        later = sum(count for _, count, opening in work.pieces if not opening) + len(work.steps)
        return {
            "seconds": watch.seconds,
            "probes": watch.probes,
            "tokens": generated_tokens,
            "python_share": 1 - (effort.decode + effort.sample) / watch.seconds,
            "sampling_share": effort.sample / watch.seconds,
            "evaluated_per_generated": later / generated_tokens,
            "shared_tokens": summary.tokens_shared,
            "work": work,
        }

    def samples(self, count: int) -> list[EpisodeSpec]:
        """The first `count` episodes of each mode."""
        specs = self.plan.specs()
        return [spec for mode in self.plan.modes for spec in [s for s in specs if s.mode == mode][:count]]

    def tokens_by_mode(self) -> dict[str, int]:
        """Generated tokens of the whole workload."""
        modes = {spec.hash: spec.mode for spec in self.plan.specs()}
        found: Counter[str] = Counter()
        for request, reply in self.tape.replies.values():
            found[modes[request.session.partition("/")[0]]] += len(reply)
        return dict(found)


# ---- the limit -----------------------------------------------------------------------------------------------------


def limit_probes(bench: Bench, work: Work) -> dict[str, float]:
    """Probes that llama_decode alone would need for the work, and (ideal) with prompts in parts of 512 from empty."""
    paced = bench.pace.paced
    raw = RawContext(shared(bench.model), sequences=bench.parallel, context=bench.context, threads=physical_cores())
    pieces = sorted(work.pieces)
    chosen = pieces[:: max(1, len(pieces) // PIECES)]
    cost = sum(paced(raw.pieces([(depth, count) for depth, count, _ in chosen])))
    per_token = cost / sum(count for _, count, _ in chosen)
    widths = abreast(work.by_episode, bench.parallel)
    # From deep to shallow: a cache is cut in no time, and takes seconds to fill.
    groups = sorted((group for width in widths for group in spread(work.steps, width)), reverse=True)
    times: dict[int, list[float]] = defaultdict(list)
    for group, spent in zip(groups, paced(raw.steps(groups)), strict=True):
        times[len(group)].append(spent)
    step = {width: statistics.mean(found) for width, found in times.items()}
    long_token = min(paced(raw.pieces([(0, PREFILL)] * 3))) / PREFILL
    raw.close()
    decode = sum(step[width] * count for width, count in widths.items())
    return {
        "limit": per_token * work.prompt_tokens + decode,
        "ideal": long_token * work.prompt_tokens + step[max(step)] * len(work.steps) / bench.parallel,
    }


def abreast(by_episode: Mapping[str, int], parallel: int) -> Counter[int]:
    """Number of steps for each number of sequences, if every lane always had its next token ready: the episodes of the
    workload on so many lanes in their order, by the tokens that each writes one by one.
    """
    queue = list(by_episode.values())
    lanes = [queue.pop(0) for _ in range(min(parallel, len(queue)))]
    widths: Counter[int] = Counter()
    while lanes:
        shortest = min(lanes)
        widths[len(lanes)] += shortest
        lanes = [left - shortest for left in lanes if left > shortest]
        while queue and len(lanes) < parallel:
            lanes.append(queue.pop(0))
    return widths


def spread(depths: Sequence[int], width: int, steps: int = 12) -> list[list[int]]:
    """Groups of `width` depths that represent all depths."""
    ordered = sorted(depths, reverse=True)
    stride = max(1, len(ordered) // (steps * width))
    chosen = ordered[::stride]
    return [chosen[at : at + width] for at in range(0, len(chosen) - width + 1, width)][:steps]


# ---- the whole -----------------------------------------------------------------------------------------------------


def measure(bench: Bench, repeats: int, peers: Collection[str], server: Server | None) -> dict[str, Any]:
    """Measure the engine and its peers in alternating repeats; returns medians."""
    specs = bench.plan.specs()
    rows: dict[str, list[float]] = defaultdict(list)
    probe = bench.pace.reference
    for number in range(repeats):
        say(f"{bench.name}: repeat {number + 1} of {repeats}")
        last = bench.replay(specs, bench.parallel)
        rows["engine"].append(last["tokens"] / last["probes"] / probe)
        if "limit" in peers:
            for name, probes in limit_probes(bench, last["work"]).items():
                rows[name].append(last["tokens"] / probes / probe)
        rows["tokens a reply"].append(last["tokens"] / len(bench.tape.replies))
        for name in ("python_share", "sampling_share", "evaluated_per_generated", "shared_tokens"):
            rows[name].append(last[name])
        if "one" in peers and not number:
            one = bench.replay(bench.samples(1), 1)
            rows["engine -j 1"].append(one["tokens"] / one["probes"] / probe)
        if "wrapper" in peers:
            rows["wrapper"].append(wrapper_rate(bench) / probe)
        if server and "server" in peers:
            found = server_replay(bench, server)
            rows["server"].append(found["tokens"] / found["probes"] / probe)
            rows["server, evaluated per generated"].append(found["evaluated_per_generated"])
        say(f"{bench.name}: " + ", ".join(f"{name} {values[-1]:.3g}" for name, values in rows.items()))
    per_repeat = {
        peer: statistics.median(ours / other for ours, other in zip(rows["engine"], rows[peer], strict=True))
        for peer in ("wrapper", "limit", "ideal", "server")
        if peer in rows
    }
    rates = {name: statistics.median(values) for name, values in rows.items()}
    return {"workload": bench.name, "rates": rates, "ratios": per_repeat, "all": dict(rows)}


def server_replay(bench: Bench, server: Server) -> dict[str, float]:
    """Time llama.cpp's server on turns as long as the recorded ones."""
    with server.running(bench.model, bench.context) as (address, process):
        watch = Stopwatch(bench.pace, lambda: stopped(process))
        with closing(ServerBackend(address, bench.model, bench.tape.ends, watch.look)) as peer:
            simulate(peer, bench.plan, bench.plan.specs(), bench.parallel, watch)
    tokens = sum(len(reply) for _, reply in bench.tape.replies.values())
    return {"tokens": tokens, "probes": watch.probes, "evaluated_per_generated": peer.later / tokens}


def wrapper_rate(bench: Bench) -> float:
    """Generated tokens a probe of the wrapper over the whole workload, from an episode of each mode."""
    totals = bench.tokens_by_mode()
    probes = 0.0
    for mode, specs in groupby(bench.samples(1), key=lambda spec: spec.mode):
        hashes = {spec.hash for spec in specs}
        replies = [pair for key, pair in bench.tape.replies.items() if key[0].partition("/")[0] in hashes]
        spent = sum(bench.pace.paced(wrapper_seconds(bench.model, bench.context, replies)))
        probes += spent / sum(len(reply) for _, reply in replies) * totals[mode]
    return sum(totals.values()) / probes


def benches(model_name: str, names: Sequence[str], seeds: int, gpu: str, parallel: int) -> Iterator[Bench]:
    """Record the workloads."""
    model = load(models.resolve(model_name), threads=physical_cores(), gpu_layers=gpu_layers(gpu))
    pace = Pace(shared(model))
    for name in names:
        plan = workload(name, seeds, model_name)
        bench = Bench(name, model, plan, planning.context_needed(plan.specs(), model_name, model), pace, parallel)
        say(f"{name}: recording {len(plan.specs())} episodes")
        summary = bench.record()
        say(f"{name}: {summary.tokens_generated} tokens in {summary.completed} episodes")
        yield bench
        for other in bench.others.values():
            other.free()
    pace.close()
    model.free()


def say(text: str) -> None:
    """Print progress to stderr."""
    print(text, file=sys.stderr, flush=True)


@click.command()
@click.option("--model", default="starter", show_default=True)
@click.option(
    "--workload",
    "names",
    multiple=True,
    type=click.Choice(["independent", "study"]),
    help="Workload to measure [both].",
)
@click.option(
    "--peer", "peers", multiple=True, type=click.Choice(PEERS), help="Peer to compare with the engine at -j 8 [all]."
)
@click.option("--repeats", default=3, show_default=True)
@click.option("--seeds", default=8, show_default=True, help="Number of seeds in the workload *study*.")
@click.option(
    "--server",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Path of the program llama-server, of the same llama.cpp and with the same build flags.",
)
@click.option("--figure", type=click.Path(path_type=Path), help="Draw the rates into an SVG file.")
@click.option("--gpu", default="auto", show_default=True, help="Layers on the GPU: auto, off or a number.")
@click.option(
    "-j",
    "parallel",
    type=click.IntRange(1, 64),
    default=ABREAST,
    show_default=True,
    help=f"Conversations at a time, of the engine and of its limit; with --server only {ABREAST}.",
)
@click.option("--json", "as_json", is_flag=True)
def main(
    model: str,
    names: tuple[str, ...],
    peers: tuple[str, ...],
    repeats: int,
    seeds: int,
    server: Path | None,
    figure: Path | None,
    gpu: str,
    parallel: int,
    as_json: bool,
) -> None:
    """Measure the engine, the wrapper, the limit and, where --server names one, llama.cpp's server."""
    if server and parallel != ABREAST:
        raise click.UsageError(f"the server is started with {ABREAST} slots: leave -j out, or --server")
    peers, peer = peers or PEERS, Server(server) if server else None
    workloads = benches(model, names or ("independent", "study"), seeds, gpu, parallel)
    results = [measure(bench, repeats, peers, peer) for bench in workloads]
    if figure:
        draw(results, figure)
    if as_json:
        ratios = {
            result["workload"]: {
                f"engine_vs_{name}": result["ratios"].get(name) for name in ("wrapper", "limit", "ideal", "server")
            }
            for result in results
        }
        print(
            json.dumps(
                {
                    "ratios": ratios,
                    "rows": results,
                    "model": model,
                    "parallel": parallel,
                    "device": where(gpu_layers(gpu)),
                },
                indent=1,
            )
        )
        return
    print(f"{parallel} conversations at a time, {where(gpu_layers(gpu))}")
    print(f"{model}, {platform.processor() or platform.machine()}, {library().llama_print_system_info().decode()}\n")
    print(table(results))


if __name__ == "__main__":
    main()
