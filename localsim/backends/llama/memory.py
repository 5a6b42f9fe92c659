"""The memory of a run, computed before it starts: context size, sequences and bytes of each llama.cpp model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import psutil

from localsim.backends.evaluator import BATCH, OPENINGS
from localsim.backends.llama.chat import ChatTokenizer
from localsim.backends.llama.devices import layered
from localsim.backends.llama.lib import LlamaModel
from localsim.conversation.episode import EpisodeSpec
from localsim.conversation.modes import roles
from localsim.conversation.prompts import agent_messages, writer_messages
from localsim.conversation.scenario import WRITER, Scenario
from localsim.conversation.transcript import Transcript
from localsim.conversation.visibility import observe
from localsim.conversation.wording.layouts import FIRST
from localsim.errors import ModelMissing
from localsim.families import family_of

_CHARS_PER_TOKEN = 3
"""A low guess for prose in languages that small models know; an episode that exceeds it fails with a clear reason."""
_LINE_TOKENS = 16
"""Tokens of a turn in addition to its text: the name, and the template's marks around a message."""
_STEP = 256
_Q4_0 = "2"
"""The type of a file, as its header names it (`general.file_type`)."""
SHARE_USED = 0.25
"""Used share of a context that is set aside: turns are shorter than their limit (docs/performance.md)."""
OPENING_SHARE = 0.1
"""Share of a context that an opening takes."""


@dataclass(frozen=True)
class MemoryPlan:
    """The memory of one model in use, in bytes: the machine's, and that of the devices which hold layers."""

    name: str
    weights: int
    cache: int
    compute: int
    process: int
    """Memory that Python and its libraries take already."""
    caches: int
    """Number of agents (or writers) whose caches are kept at the same time."""
    context: int
    free: int
    device: str = ""
    """The GPUs that hold layers; '' where there are none, or where they use the machine's own memory."""
    device_weights: int = 0
    device_cache: int = 0
    device_compute: int = 0
    device_free: int = 0

    @property
    def wanted(self) -> int:
        """Bytes of the machine's memory that must be free."""
        return self.weights + self.cache + self.compute

    @property
    def on_device(self) -> int:
        """Bytes of the devices' memory that must be free."""
        return self.device_weights + self.device_cache + self.device_compute

    def without_weights(self) -> MemoryPlan:
        """The plan of another context on weights that are loaded already."""
        return replace(self, weights=0, device_weights=0)

    @property
    def total(self) -> int:
        """Bytes that the process takes in all."""
        return self.wanted + self.process

    def __str__(self) -> str:
        device = (
            f"; on {self.device}: {_size(self.device_weights)} weights + {_size(self.device_cache)} cache + "
            f"{_size(self.device_compute)} compute = {_size(self.on_device)}; {_size(self.device_free)} free"
        )
        return (
            f"{self.name}: {_size(self.weights)} weights + {_size(self.cache)} cache "
            f"(up to {self.caches} x {self.context} tokens) + {_size(self.compute)} compute "
            f"+ {_size(self.process)} process = {_size(self.total)}; {_size(self.free)} free"
            + (device if self.device else "")
        )


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"


def sessions_per_episode(specs: Sequence[EpisodeSpec], name: str) -> int:
    """The largest number of caches that one episode needs on a model."""
    return max((sum(_sessions(spec, role) for role, model in spec.models.items() if model == name) for spec in specs),
               default=0)  # fmt: skip


def _sessions(spec: EpisodeSpec, role: str) -> int:
    """Return the number of caches of a role; a mind that drafts lines without the persona needs a second one."""
    return 2 if role in spec.minds and spec.minds[role].aside else 1


def context_needed(specs: Sequence[EpisodeSpec], name: str, model: LlamaModel) -> int:
    """Tokens of the longest possible conversation on a model: its opening prompt and every turn at its full length.

    At most the context that the model was trained for.
    """
    tokenizer = ChatTokenizer(model)
    needed = _STEP
    for spec in {(spec.scenario.hash, spec.mode, spec.variant, spec.grants): spec for spec in specs}.values():
        limits = spec.scenario.limits
        turns = limits.turns * (limits.chars // _CHARS_PER_TOKEN + _LINE_TOKENS) + _told_tokens(spec.scenario)
        chars = family_of(spec.scenario.family).talk_chars(spec.scenario)
        turns = turns if chars is None else chars // _CHARS_PER_TOKEN
        for role in roles(spec.mode, spec.scenario.names):
            if spec.models[role] != name:
                continue
            seen = observe(spec.scenario, spec.mode, role, Transcript(), spec.grants)
            prompt = writer_messages if role == WRITER else agent_messages
            messages = prompt(seen, spec.variant, spec.layouts.get(role, FIRST))
            more = _recalled_tokens(spec.scenario) + (spec.minds[role].tokens if role in spec.minds else 0)
            needed = max(needed, len(tokenizer.prompt(messages, "")) + turns + more + _STEP)
    return min(-(-needed // _STEP) * _STEP, model.n_ctx_train)


def _told_tokens(scenario: Scenario) -> int:
    """Return the tokens of everything that the phases of a scenario tell."""
    told = [text for phase in scenario.phases for text in (phase.announce, *(event.text for event in phase.events))]
    texts = [text for text in told if text] + ["-" * scenario.limits.chars for phase in scenario.phases if phase.count]
    return sum(len(text) // _CHARS_PER_TOKEN + _LINE_TOKENS for text in texts)


def _recalled_tokens(scenario: Scenario) -> int:
    """Return the most tokens that memories take in a prompt, those of all agents together."""
    longest = (sorted((len(each.text) for each in agent.memories), reverse=True) for agent in scenario.agents)
    kept = [length for lengths in longest for length in lengths[: scenario.recall.k]]
    return sum(length // _CHARS_PER_TOKEN + _LINE_TOKENS for length in kept)


def context_of_judge(question: int, think: int, model: LlamaModel) -> int:
    """Tokens of a judge's question, and of its thoughts if the model thinks; at most the context of its training."""
    room = question + (think if ChatTokenizer(model).template.thinks else 0)
    return min(room, model.n_ctx_train)


def openings(specs: Sequence[EpisodeSpec], name: str) -> int:
    """The number of different opening prompts on a model, at most as many as the engine keeps."""
    cells = {
        (spec.scenario.hash, spec.mode, spec.variant, spec.grants, role)
        for spec in specs
        for role in spec.models
        if spec.models[role] == name
    }
    return min(len(cells), OPENINGS)


def memory_plan(
    name: str, model: LlamaModel, sequences: int, aside: int, context: int, openings: int, layers: int = 0
) -> MemoryPlan:
    """The memory of a model when conversations have their usual length.

    The cache of `sequences` is reserved whole. The `aside` caches of listeners and the openings take only the room of
    their tokens: SHARE_USED and OPENING_SHARE of a context. With `layers` on GPUs that have memory of their own, their
    weights and the caches of `sequences` in these layers are there; caches that are set aside stay in the machine's
    memory. llama.cpp counts the output as one layer, and takes the last layers first.
    """
    weights, per_token = model.path.stat().st_size, model.kv_bytes_per_token
    reserved = sequences * context * per_token
    kept = (aside * SHARE_USED + openings * OPENING_SHARE) * context * per_token
    compute = BATCH * model.n_vocab * 4 + 60_000_000
    used = [device for device in layered(layers) if device.own_memory]
    blocks = model.n_layers
    there = min(layers, blocks + 1) / (blocks + 1) if used else 0.0
    cache_there = max(0, min(layers, blocks + 1) - 1) / blocks if used else 0.0
    return MemoryPlan(
        name=name,
        weights=int(weights * (1 - there)),
        cache=int(reserved * (1 - cache_there) + kept),
        compute=compute,
        device=" + ".join(device.description for device in used),
        device_weights=int(weights * there),
        device_cache=int(reserved * cache_there),
        device_compute=compute if used else 0,
        device_free=sum(device.free for device in used),
        process=int(psutil.Process().memory_info().rss),
        caches=sequences + aside,
        context=context,
        free=int(psutil.virtual_memory().available),
    )


def paged_plan(
    name: str, model: LlamaModel, sequences: int, aside: int, context: int, openings: int, _layers: int = 0
) -> MemoryPlan:
    """The memory of a model that OpenVINO evaluates on the processor, when conversations have their usual length.

    The weights have 8 bits and scales, unless the file is Q4_0 or larger (see openvino.weights). They are kept twice,
    the second time in OpenVINO's own order, and the embedding more often. No cache is reserved: all take the room of
    their tokens, as the `aside` ones of `memory_plan` do.
    """
    eight_bits = 0 if model.metadata("general.file_type") == _Q4_0 else model.n_weights * 17 // 16
    held = max(model.path.stat().st_size, eight_bits)
    used = (sequences + aside) * SHARE_USED + openings * OPENING_SHARE
    return MemoryPlan(
        name=name,
        weights=2 * (held + model.n_vocab * model.width),
        cache=int(used * context * model.kv_bytes_per_token),
        compute=sequences * model.n_vocab * 4 + BATCH * model.width * 150 + 60_000_000,
        process=int(psutil.Process().memory_info().rss),
        caches=sequences + aside,
        context=context,
        free=int(psutil.virtual_memory().available),
    )


def refuse_if_too_large(plan: MemoryPlan) -> None:
    """Raise ModelMissing where the free memory of the machine or of the devices is too small for the plan."""
    if plan.on_device > plan.device_free:
        raise ModelMissing(
            f"not enough memory on the device: {plan}",
            hint="lower -j or --ctx, put fewer layers there (--gpu LAYERS), or use the processor (--gpu off)",
        )
    if plan.wanted > plan.free:
        raise ModelMissing(
            f"not enough memory: {plan}", hint="lower -j or --ctx, or choose a smaller model or quantization"
        )
