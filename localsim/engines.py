"""The backends of a run: which models it needs, what they take, how many conversations fit, and opening them.

Memory is stated before weights are loaded, and nothing is shrunk without saying so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from localsim import plugins
from localsim.backends import endpoint, person
from localsim.backends.base import Backend
from localsim.backends.scripted import PREFIX, open_scripted
from localsim.episode import EpisodeSpec
from localsim.errors import InvalidInput
from localsim.models import ModelFile, is_path, resolve, split_adapter
from localsim.plan import Plan

if TYPE_CHECKING:
    from localsim.backends.llama_lib import LlamaModel
    from localsim.planning import MemoryPlan

Say = Callable[[str], None]

MOST_PARALLEL = 8
"""Episodes side by side under `-j auto`: beyond it, two cores gain little."""
ALL_LAYERS = 999
"""More than any model has."""


def is_scripted(name: str) -> bool:
    """Whether a model name means the scripted backend."""
    return name == PREFIX or name.startswith(PREFIX + ":")


def is_remote(name: str) -> bool:
    """Whether a model name means a server."""
    return name.startswith(endpoint.PREFIX)


def is_plugin(name: str) -> bool:
    """Whether a model name (`prefix:rest`) means a backend of another package."""
    prefix, colon, _ = name.partition(":")
    return bool(colon) and prefix in plugins.names("backends")


def is_file(name: str) -> bool:
    """Whether a model name means weights that this process loads."""
    return not (is_scripted(name) or is_remote(name) or name == person.NAME or is_plugin(name))


def absolute(model: str) -> str:
    """A model's name with any path in it made absolute, so that the run can be resumed from another folder."""
    if model.startswith(f"{PREFIX}:@"):
        return f"{PREFIX}:@{Path(model.removeprefix(f'{PREFIX}:@')).absolute()}"
    if not is_file(model):
        return model
    parts = [part for part in split_adapter(model) if part]
    return "+".join(str(Path(part).expanduser().absolute()) if is_path(part) else part for part in parts)


def physical_cores() -> int:
    """Threads for llama.cpp: more than one on a core slow it down."""
    import psutil

    return psutil.cpu_count(logical=False) or os.cpu_count() or 1


def side_by_side(plan: Plan, say: Say) -> int:
    """Episodes simulated at a time: what was asked for, else as many as memory holds, up to MOST_PARALLEL."""
    episodes = len(plan.specs())
    if plan.parallel is not None:
        return max(1, min(plan.parallel, episodes))
    wanted = parallel = min(MOST_PARALLEL, episodes)
    while parallel > 1 and not _fits(memory_plans(plan, parallel)):
        parallel //= 2
    if parallel < wanted:
        say(f"-j auto: {parallel} at a time instead of {wanted}, for lack of memory (a smaller --ctx makes room)")
    return parallel


def _fits(plans: Sequence[MemoryPlan]) -> bool:
    return not plans or sum(plan.wanted for plan in plans) <= plans[0].free


def memory_plans(plan: Plan, parallel: int) -> list[MemoryPlan]:
    """What each llama.cpp model of a plan will take; adapters on one file share its weights."""
    models = dict.fromkeys(model for spec in plan.specs() for model in spec.models.values())
    found: list[MemoryPlan] = []
    loaded: set[Path] = set()
    for name in models:
        if is_file(name):
            file = resolve(name)
            found.append(_memory(name, file, plan, parallel, shared=file.path in loaded))
            loaded.add(file.path)
    return found


@contextmanager
def open_backends(
    plan: Plan, specs: Sequence[EpisodeSpec], parallel: int, say: Say, ask: person.Ask | None = None
) -> Iterator[dict[str, Backend]]:
    """A backend for each model that the specs name; memory is stated before weights are loaded. `ask` asks the person
    of the role that is played by `human`.
    """
    if ask is None and any(person.NAME in spec.models.values() for spec in specs):
        raise InvalidInput("a person plays a role here, and nobody is there to ask", hint="use: localsim play")
    names = list(dict.fromkeys(model for spec in specs for model in spec.models.values()))
    files = {name: resolve(name) for name in names if is_file(name)}
    backends: dict[str, Backend] = {}
    loaded: dict[Path, LlamaModel] = {}
    try:
        for name in names:
            if is_scripted(name):
                backends[name] = open_scripted(name)
            elif name == person.NAME:
                assert ask is not None
                backends[name] = person.PersonBackend(ask)
            elif is_remote(name):
                backends[name] = endpoint.EndpointBackend(name, parallel=parallel)
            elif is_plugin(name):
                backends[name] = plugins.make("backends", name.partition(":")[0], name, parallel)
            else:
                backends[name] = _open_llama(name, files[name], loaded, plan, parallel, say)
        yield backends
    finally:
        for backend in backends.values():
            backend.close()


def _open_llama(
    name: str, file: ModelFile, loaded: dict[Path, LlamaModel], plan: Plan, parallel: int, say: Say
) -> Backend:
    """`loaded` are the models so far, by file: another adapter on the same weights does not load them again."""
    from localsim.backends.llama import LlamaBackend
    from localsim.backends.llama_lib import LlamaModel
    from localsim.backends.probe import ensure_works
    from localsim.planning import refuse_if_too_large

    ensure_works(file.path, file.sha256)
    memory = _memory(name, file, plan, parallel, shared=file.path in loaded)
    say(str(memory))
    refuse_if_too_large(memory)
    if file.path in loaded:
        model = loaded[file.path].beside(file.adapter)
    else:
        model = loaded[file.path] = LlamaModel(file.path, gpu_layers=gpu_layers(plan.gpu), adapter=file.adapter)
    return LlamaBackend(
        model,
        name=name,
        sha256=file.sha256,
        sequences=parallel,
        context=memory.context,
        threads=plan.threads or physical_cores(),
        repro=plan.repro,
        overflow=plan.overflow,
    )


def gpu_layers(gpu: str) -> int:
    """Layers to put on a GPU for `auto`, `off` or a number. Raises InvalidInput where this build has none."""
    from localsim.backends.llama_lib import library

    offers = bool(library().llama_supports_gpu_offload())
    if gpu == "off":
        return 0
    if gpu == "auto":
        return ALL_LAYERS if offers else 0
    if int(gpu) > 0 and not offers:
        raise InvalidInput(
            f"--gpu {gpu}: this llama-cpp-python was built for the processor alone",
            hint="docs/performance.md has the build lines for CUDA, Metal and Vulkan; --gpu auto takes what is there",
        )
    return int(gpu)


def _memory(name: str, file: ModelFile, plan: Plan, parallel: int, *, shared: bool) -> MemoryPlan:
    """What a model will take, without its weights where they are `shared`; only the file's header is read.

    From all episodes of the plan, so that a resumed run has the contexts that it began with.
    """
    from localsim import planning
    from localsim.backends.llama_lib import LlamaModel

    specs = plan.specs()
    header = LlamaModel(file.path, vocab_only=True)
    context = plan.context or planning.context_needed(specs, name, header)
    aside = parallel * max(0, planning.sessions_per_episode(specs, name) - 1)
    if not aside and any(len(set(spec.models.values())) > 1 for spec in specs):
        aside = parallel // 2  # while other models speak, those at work here close up and push others out of the way
    memory = planning.memory_plan(file.name, header, parallel, aside, context, planning.openings(specs, name))
    header.free()
    return replace(memory, weights=0) if shared else memory
