"""From a model's name to a backend, the same way for runs, judges and forecasts.

The memory plan is printed before weights are loaded, and nothing is reduced without a message.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localsim import paths, plugins
from localsim.backends import called, endpoint, person
from localsim.backends.base import Backend
from localsim.backends.mixed import MixedBackend
from localsim.backends.scripted import PREFIX, open_scripted
from localsim.backends.threaded import ThreadedBackend
from localsim.conversation.episode import EpisodeSpec, Overflow, Repro
from localsim.errors import InvalidInput, suggest
from localsim.models import minds
from localsim.models.minds import is_mind
from localsim.models.mixtures import is_mixture, mixture_of, name_of, parts_of
from localsim.models.registry import OPENVINO, ModelFile, is_path, require_name, resolve, split_adapter, split_engine

if TYPE_CHECKING:
    from localsim.backends.llama.lib import LlamaModel
    from localsim.backends.llama.memory import MemoryPlan

Say = Callable[[str], None]

ALL_LAYERS = 999
"""More layers than any model has."""


def is_scripted(name: str) -> bool:
    """True if a model name means the scripted backend."""
    return name == PREFIX or name.startswith(PREFIX + ":")


def is_remote(name: str) -> bool:
    """True if a model name means a server."""
    return name.startswith(endpoint.PREFIX)


def is_plugin(name: str) -> bool:
    """True if a model name (`prefix:rest`) means a backend of another package."""
    prefix, colon, _ = name.partition(":")
    return bool(colon) and prefix in plugins.names("backends")


def is_file(name: str) -> bool:
    """True if a model name means one file of weights that this process loads."""
    elsewhere = is_scripted(name) or is_remote(name) or is_mixture(name) or is_mind(name) or is_plugin(name)
    return not (elsewhere or name == person.NAME or name.startswith(called.PREFIX))


def chosen_model(model: str | None) -> str:
    """The absolute name of the model that was asked for, or of the default where none was (None)."""
    return absolute(paths.default_model() if model is None else model)


def absolute(model: str) -> str:
    """A model's name with any path in it made absolute, so that the run can be resumed from another folder.

    Raises InvalidInput for an empty name.
    """
    require_name(model)
    if model.startswith(f"{PREFIX}:@"):
        return f"{PREFIX}:@{Path(model.removeprefix(f'{PREFIX}:@')).absolute()}"
    if is_mind(model):
        return minds.absolute(model, absolute(*parts_of(model)))
    if is_mixture(model):
        mixed = mixture_of(model)
        return name_of(replace(mixed, first=absolute(mixed.first), other=absolute(mixed.other)))
    if not is_file(model):
        return model
    engine, name = split_engine(model)
    parts = [part for part in split_adapter(name) if part]
    whole = "+".join(str(Path(part).expanduser().absolute()) if is_path(part) else part for part in parts)
    return f"{OPENVINO}{whole}" if engine == "openvino" else whole


def require_models(models: Sequence[str]) -> None:
    """Raise InvalidInput or ModelMissing for a model that could not be opened, before any work is done."""
    for part in (part for model in models for part in parts_of(absolute(model))):
        if is_file(part):
            resolve(part)
        elif is_remote(part):
            endpoint.parse_endpoint(part)


def physical_cores() -> int:
    """Threads for llama.cpp: more than one on a core slow it down, and so does a core that this process may not use."""
    import psutil

    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    return min(cores, len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else cores


@dataclass(frozen=True)
class Needs:
    """The requirements of a run or a judge for the backends that it opens."""

    sequences: int
    """Conversations side by side."""
    specs: Sequence[EpisodeSpec] = ()
    """All episodes that will be written: they decide the context of a model. A resumed run names the finished ones too,
    so that it gets the contexts that it began with. Empty for a judge.
    """
    context: int | None = None
    """Tokens of a conversation; None takes what the longest of `specs` needs."""
    question: int = 4096
    """Tokens of a judge's question, used where there are no `specs`."""
    think: int = 0
    """Tokens added to the context of a model that thinks before it replies."""
    threads: int | None = None
    """Threads of llama.cpp; None takes one for each physical core."""
    gpu: str = "auto"
    """Layers on a GPU: `auto`, `off` or a number."""
    repro: Repro = "stable"
    overflow: Overflow = "error"
    files: Mapping[str, ModelFile] = field(default_factory=dict)
    """Files of models that were found already; the others are found by their names."""

    def file_of(self, name: str) -> ModelFile:
        """The file of a model. Raises ModelMissing."""
        return self.files.get(name) or resolve(name)


def models_of(specs: Sequence[EpisodeSpec]) -> list[str]:
    """The models that write some part of the episodes, each once."""
    return list(dict.fromkeys(model for spec in specs for model in spec.models.values()))


def memory_plans(needs: Needs) -> list[MemoryPlan]:
    """The memory of each model file of `needs.specs`; in llama.cpp, adapters on one file share its weights."""
    plans: list[MemoryPlan] = []
    loaded: set[Path] = set()
    for name in models_of(needs.specs):
        for part in filter(is_file, parts_of(name)):
            file = needs.file_of(part)
            shared = file.engine == "llama" and file.path in loaded
            plans.append(_memory(part, file, _for_part(needs, name, part), shared=shared))
            loaded |= {file.path} if file.engine == "llama" else set()
    return plans


def _for_part(needs: Needs, name: str, part: str) -> Needs:
    """The needs of the model of a mind, or of one of a mixture, which may have to write every reply of the mixture."""
    if part == name:
        return needs
    specs = [
        replace(spec, models={role: part if model == name else model for role, model in spec.models.items()})
        for spec in needs.specs
    ]
    return replace(needs, specs=specs)


@contextmanager
def open_backends(
    names: Sequence[str], needs: Needs, say: Say, ask: person.AskPerson | None = None
) -> Iterator[dict[str, Backend]]:
    """A backend for each name, closed at the end; memory is stated before weights are loaded.

    `ask` asks the person whose role `human` plays. Raises InvalidInput, ModelMissing or BackendUnavailable.
    """
    if ask is None and any(person.NAME in parts_of(name) for name in names):
        raise InvalidInput(
            "a role is played by a person, and this command cannot ask one",
            hint="use: localsim play, or localsim class",
        )
    files = {part: needs.file_of(part) for name in names for part in parts_of(name) if is_file(part)}
    opened: list[Backend] = []
    loaded: dict[Path, LlamaModel] = {}

    def opened_one(name: str, needs: Needs) -> Backend:
        if name == person.NAME:
            assert ask is not None
            backend: Backend = person.PersonBackend(ask)
        elif is_scripted(name):
            backend = open_scripted(name, dict.fromkeys(spec.scenario.family for spec in needs.specs))
        elif is_remote(name):
            backend = endpoint.EndpointBackend(name, parallel=needs.sequences, say=say)
        elif name.startswith(called.PREFIX):
            backend = called.CalledBackend(name)
        elif is_plugin(name):
            backend = _of_plugin(name, needs.sequences)
        else:
            backend = _open_file(name, files[name], loaded=loaded, needs=needs, say=say)
        opened.append(backend)
        return backend

    def opened_whole(name: str) -> Backend:
        if is_mind(name):
            (part,) = parts_of(name)
            return _minded(name, opened_one(part, _for_part(needs, name, part)), needs)
        if not is_mixture(name):
            return opened_one(name, needs)
        return MixedBackend(name, {part: opened_one(part, _for_part(needs, name, part)) for part in parts_of(name)})

    try:
        yield {name: opened_whole(name) for name in names}
    finally:
        for backend in opened:
            backend.close()


def _minded(name: str, backend: Backend, needs: Needs) -> Backend:
    """The backend of a mind's model, with the steps among what is stored about it. Raises InvalidInput for a judge."""
    found = [spec.minds[role] for spec in needs.specs for role, model in spec.models.items() if model == name]
    if not found:
        raise InvalidInput(f"{name!r}: only agents have minds", hint=f"name the model alone: {parts_of(name)[0]}")
    backend.name, inner = name, {parts_of(name)[0]: backend.identity}
    backend.identity = {**backend.identity, "name": name, "mind": found[0].stated(), "parts": inner}
    return backend


def _of_plugin(name: str, sequences: int) -> Backend:
    """The backend of another package. Raises InvalidInput, before anything is played, where it lacks a method."""
    prefix = name.partition(":")[0]
    made: Backend = plugins.make("backends", prefix, name, sequences)
    base = ThreadedBackend if isinstance(made, ThreadedBackend) else Backend
    for method in ("ask",) if base is ThreadedBackend else ("submit", "poll", "cancel", "release", "close", "thinks"):
        own = getattr(type(made), method, None)
        if not callable(own) or method in ("ask", "submit", "poll", "cancel") and own is getattr(base, method, None):
            near = next((each for each in vars(type(made)) if each[0] != "_" and suggest(each, [method])), "")
            raise InvalidInput(
                f"backends plugin {prefix!r} has no method {method}",
                where=plugins.place_of(made),
                hint=f"it has {near}: did you mean {method}?"
                if near
                else f"repair {plugins.where_of('backends', prefix)}",
            )
    return made


def _open_file(name: str, file: ModelFile, *, loaded: dict[Path, LlamaModel], needs: Needs, say: Say) -> Backend:
    """`loaded` are llama.cpp's models so far, by file: another adapter on the same weights does not load them again."""
    from localsim.backends import engines
    from localsim.backends.evaluator import OPENINGS
    from localsim.backends.llama.engine import LlamaBackend
    from localsim.backends.llama.memory import refuse_if_too_large
    from localsim.backends.llama.probe import has_worked
    from localsim.backends.llama.suits import ensure_suits
    from localsim.backends.openvino.model import OpenVinoBackend, OpenVinoModel

    if file.engine == "llama" and not has_worked(file.sha256):
        say(f"trying {file.name} on one token")
    engines.ensure_works(file)
    shared = loaded.get(file.path) if file.engine == "llama" else None
    memory = _memory(name, file, needs, shared=shared is not None)
    say(str(memory))
    refuse_if_too_large(memory)
    threads = needs.threads or physical_cores()
    if shared is not None:
        model = shared.beside(file.adapter)
    else:
        say(f"loading {file.name} ({file.path.stat().st_size / 1e6:.0f} MB)")
        model = engines.load(file, threads=threads, gpu_layers=layers_of(file, needs.gpu))
        ensure_suits(model, say)
    facts: dict[str, Any] = {"name": name, "sha256": file.sha256, "sequences": needs.sequences}
    facts |= {"context": memory.context, "repro": needs.repro, "overflow": needs.overflow}
    if isinstance(model, OpenVinoModel):
        return OpenVinoBackend(model, caches=memory.caches + OPENINGS, **facts)
    loaded.setdefault(file.path, model)
    return LlamaBackend(model, threads=threads, **facts)


def gpu_layers(gpu: str) -> int:
    """Layers to put on a GPU for `auto`, `off` or a number. Raises InvalidInput where this build has none."""
    from localsim.backends.llama.lib import library

    offers = bool(library().llama_supports_gpu_offload())
    if gpu == "off":
        return 0
    if gpu == "auto":
        return ALL_LAYERS if offers else 0
    if int(gpu) > 0 and not offers:
        raise InvalidInput(
            f"--gpu {gpu}: this llama-cpp-python was built for the processor only",
            hint="docs/models.md has the build commands for GPUs; --gpu auto uses a GPU only where it can",
        )
    return int(gpu)


def layers_of(file: ModelFile, gpu: str) -> int:
    """Layers of a model to put on a GPU. Raises InvalidInput where its library or this build cannot."""
    if file.engine == "llama":
        return gpu_layers(gpu)
    if gpu not in ("auto", "off", "0"):
        raise InvalidInput(
            f"--gpu {gpu}: localsim runs OpenVINO on the processor only",
            hint="leave --gpu out, or use the model without openvino: before its name",
        )
    return 0


def _memory(name: str, file: ModelFile, needs: Needs, *, shared: bool) -> MemoryPlan:
    """The memory of one model, without its weights where they are `shared`; reads only the header of the file."""
    from localsim.backends.evaluator import OPENINGS
    from localsim.backends.llama import memory
    from localsim.backends.llama.lib import LlamaModel

    header, layers = LlamaModel(file.path, vocab_only=True), layers_of(file, needs.gpu)
    planned = memory.memory_plan if file.engine == "llama" else memory.paged_plan
    if not needs.specs:
        context = needs.context or memory.context_of_judge(needs.question, needs.think, header)
        plan = planned(file.name, header, needs.sequences, 0, context, OPENINGS, layers)
    else:
        specs = needs.specs
        context = needs.context or memory.context_needed(specs, name, header)
        aside = needs.sequences * max(0, memory.sessions_per_episode(specs, name) - 1)
        if not aside and any(len(set(spec.models.values())) > 1 for spec in specs):
            # While other models speak, the conversations of this one close up and push others out of their places.
            aside = needs.sequences // 2
        kept = memory.openings(specs, name)
        plan = planned(file.name, header, needs.sequences, aside, context, kept, layers)
    header.free()
    return plan.without_weights() if shared else plan
