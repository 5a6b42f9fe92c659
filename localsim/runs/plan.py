"""The plan of a run: scenarios, modes, models and settings. A pure value, which `resume` reads from the database."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from localsim.backends.person import NAME as PERSON
from localsim.conversation.episode import (
    EDITION,
    MODES,
    OVERFLOWS,
    PEOPLE,
    REPRO_LEVELS,
    SIMULATED,
    EpisodeSpec,
    Mode,
    Overflow,
    Repro,
    Sampling,
)
from localsim.conversation.grants import NONE, Grants, check_agent, number_of, parse
from localsim.conversation.modes import roles as roles_of
from localsim.conversation.scenario import WRITER, LoadedScenario
from localsim.conversation.wording.layouts import FIRST, FREE, LAYOUTS
from localsim.conversation.wording.variants import MOST, variant_of
from localsim.errors import InvalidInput
from localsim.families import family_of, rules_of
from localsim.leakage.meaning import encode_of
from localsim.models.minds import is_mind
from localsim.models.registry import layout_of
from localsim.runs.minds import minds_of, refuse_authors
from localsim.scenarios.interviews.sheets import COMMAND

CONTRASTS: dict[str, tuple[Mode, Mode]] = {
    "information": ("agents", "mindreaders"),
    "authorship": ("mindreaders", "script"),
    "both": ("agents", "script"),
    "author": ("mindreaders", "iterative"),
    "text": ("iterative", "script"),
    "information+author": ("agents", "iterative"),
}
"""Name of a difference between modes -> the modes; it is the second minus the first. `author` (one author who writes
turn by turn) and `text` (one text instead of turns) are the parts of `authorship`."""
PRIMARY = "success_rate:information"
"""The primary outcome of a plan that declares none."""


class Outcome(NamedTuple):
    """A measure and a difference between modes."""

    key: str
    contrast: str

    def __str__(self) -> str:
        return f"{self.key}:{self.contrast}"


class Outcomes(NamedTuple):
    """The outcomes that are declared before a run."""

    primary: Outcome
    secondary: tuple[Outcome, ...] = ()

    def sentence(self) -> str:
        """Return what is declared, as a report says it."""
        told = f"primary {self.primary}"
        if self.secondary:
            told += f"; secondary {', '.join(map(str, self.secondary))}, whose p are corrected together (Holm)"
        return f"{told}; every other difference is exploratory, and its p is not corrected"


@dataclass(frozen=True)
class Plan:
    """The plan of a run: scenarios, modes, models and settings."""

    scenarios: tuple[LoadedScenario, ...]
    modes: tuple[Mode, ...]
    model: str
    roles: Mapping[str, str] = field(default_factory=dict)
    """Models of single roles by agent name, number in speaking order or `writer`; the other roles use `model`."""
    episodes: int = 1
    """Number of episodes for each scenario and mode."""
    seed: int = 1
    repro: Repro = "stable"
    sampling: Sampling | None = None
    """How tokens are drawn; None takes the settings of the model's layout (`draws`)."""
    layouts: Mapping[str, str] | None = None
    """Model -> layout of its prompts (`conversation.wording.layouts`); None takes those of the registry."""
    parallel: int | None = None
    """Episodes simulated at the same time; None lets localsim choose."""
    context: int | None = None
    """Tokens of context for each conversation; None lets localsim choose."""
    overflow: Overflow = "error"
    """Treatment of a conversation that outgrows its context."""
    gpu: str = "auto"
    """Layers on a GPU: `auto` (all, if the build supports one), `off`, or a number."""
    threads: int | None = None
    """Threads of llama.cpp; None means one for each physical core."""
    primary: str = ""
    """The one outcome that the run is to decide, declared before it: the key of a measure and a contrast, KEY:CONTRAST.
    Without the contrast it is `information`; without the key it is PRIMARY."""
    secondary: Sequence[str] = ()
    """Further outcomes that are declared before the run, in the same form: their p are corrected together (Holm). Every
    other difference is exploratory."""
    perturb: int = 0
    """Number of variants of the prompt and sampling, with the usual one; 0 means the usual one alone."""
    see: Sequence[str] = ()
    """Grants of private items in agents mode (`conversation.grants`): each text is one condition of the run."""

    weights: str = ""
    """Thresholds of the leakage detector: name and content hash of their file; empty for the built-in ones."""
    edition: int = EDITION
    """The edition of the rules that all talks share (`conversation.episode`)."""

    def __post_init__(self) -> None:
        if self.layouts is None:
            object.__setattr__(self, "layouts", layouts_of((self.model, *self.roles.values())))
        self._resolve_outcomes()
        for role in self.roles:
            check_agent(role, self._agents, " whom a model could play", (WRITER,))
        self._check_choices()
        self._resolve_grants()
        self._check_modes()
        self._check_minds()
        ids = [loaded.scenario.id for loaded in self.scenarios]
        repeated = sorted({scenario_id for scenario_id in ids if ids.count(scenario_id) > 1})
        if repeated:
            raise InvalidInput(f"two scenarios have the id {repeated[0]}", hint="give each file an id of its own")

    def _check_modes(self) -> None:
        """Refuse modes that have no meaning for the family of a scenario."""
        for family in dict.fromkeys(loaded.scenario.family for loaded in self.scenarios):
            own = family_of(family)
            refused = [mode for mode in self.modes if mode in SIMULATED and mode not in own.modes]
            if refused:
                hint = f"use --mode {','.join(own.modes)}"
                raise InvalidInput(f"{own.name} in {refused[0]} mode: {own.only_modes}", hint=hint)

    def _check_minds(self) -> None:
        """Refuse minds that cannot be read, and those of an author."""
        for loaded in self.scenarios:
            for mode in self.modes if any(map(is_mind, (self.model, *self.roles.values()))) else ():
                models = self._models(mode, loaded.scenario.names)
                minds_of(models, loaded.scenario.family)
                refuse_authors(model for role, model in models.items() if role == WRITER)

    def _resolve_outcomes(self) -> None:
        primary = outcome_in(self.primary or PRIMARY, "primary")
        secondary = secondary_in(self.secondary)
        if primary in secondary:
            hint = "leave it out of the secondary outcomes"
            raise InvalidInput(f"{primary} is the primary outcome", where="secondary", hint=hint)
        object.__setattr__(self, "primary", str(primary))
        object.__setattr__(self, "secondary", tuple(map(str, secondary)))

    def _resolve_grants(self) -> None:
        """Write each grant in its one form; a plan that grants nothing has none."""
        given = [parse(text) for text in ([self.see] if isinstance(self.see, str) else self.see)]
        for viewer in (viewer for grants in given for viewer, _ in grants.single):
            check_agent(viewer, self._agents, " who could see something")
        if any(given) and "agents" not in self.modes:
            raise InvalidInput(
                "items can be granted in agents mode only: the other modes see everything", hint="add --mode agents"
            )
        texts = tuple(dict.fromkeys(grants.text or NONE for grants in given))
        object.__setattr__(self, "see", texts if any(given) else ())

    def _grants(self, mode: Mode, names: Sequence[str]) -> list[Grants]:
        """Return the grants under which a scenario is played in a mode; some agents are in other scenarios only."""
        given = [parse(text) for text in self.see] if mode == "agents" else []
        return list(dict.fromkeys(grants.within(names) for grants in given)) or [parse(NONE)]

    def _check_choices(self) -> None:
        """Check the values that the command line has already checked, for callers from Python."""
        for name, value, known in (
            *(("modes", mode, SIMULATED) for mode in self.modes),
            ("repro", self.repro, REPRO_LEVELS),
            ("overflow", self.overflow, OVERFLOWS),
        ):
            if value not in known:
                raise InvalidInput(f"{name} = {value!r}", hint=f"one of {', '.join(known)}")
        if not self.modes or len(set(self.modes)) < len(self.modes):
            raise InvalidInput(f"modes = {list(self.modes)}", hint="each mode once, at least one")
        for name, number, least in (
            ("episodes", self.episodes, 1),
            ("seed", self.seed, 0),
            ("parallel", self.parallel, 1),
            ("context", self.context, 256),
            ("threads", self.threads, 1),
        ):
            if number is not None and (not isinstance(number, int) or number < least):
                raise InvalidInput(f"{name} = {number!r}", hint=f"a whole number from {least}")
        if not isinstance(self.perturb, int) or not 0 <= self.perturb <= MOST:
            raise InvalidInput(f"perturb = {self.perturb!r}", hint=f"a whole number from 0 to {MOST}")
        if not math.isfinite(self.draws.temperature):
            raise InvalidInput(f"temperature = {self.draws.temperature!r}", hint="a number from 0 to 5")
        if self.gpu not in ("auto", "off") and not str(self.gpu).isdecimal():
            raise InvalidInput(f"gpu = {self.gpu!r}", hint="auto, off, or a number of layers as text")

    @property
    def draws(self) -> Sampling:
        """How tokens are drawn: as given, or else as the layout of the model says."""
        return self.sampling or LAYOUTS[(self.layouts or {}).get(self.model, FIRST)].sampling

    @property
    def _agents(self) -> list[tuple[str, ...]]:
        return [loaded.scenario.names for loaded in self.scenarios]

    def _models(self, mode: Mode, names: tuple[str, ...]) -> dict[str, str]:
        """Return role -> model in a scenario with these agents; a name counts before a number."""

        def model_of(role: str) -> str:
            numbered = self.roles.get(number_of(role, names), self.model) if role in names else self.model
            return self.roles.get(role, numbered)

        return {role: model_of(role) for role in roles_of(mode, names)}

    def specs(self) -> list[EpisodeSpec]:
        """Return all episodes in starting order: seed by seed, so that an early end leaves whole pairs."""
        return [
            EpisodeSpec(
                scenario=loaded.scenario,
                mode=mode,
                models=self._models(mode, loaded.scenario.names),
                index=index,
                run_seed=self.seed,
                sampling=variant_of(variant).sampling(self.draws),
                repro=self.repro,
                variant=variant,
                grants=grants,
                layouts=by_role(self.layouts or {}, self._models(mode, loaded.scenario.names)),
                rules=rules_of(loaded.scenario, index),
                edition=self.edition,
                encode=encode_of(loaded.scenario),
                minds=minds_of(self._models(mode, loaded.scenario.names), loaded.scenario.family),
            )
            for index in range(self.episodes)
            for variant in range(max(1, self.perturb))
            for loaded in self.scenarios
            for mode in self.modes
            for grants in self._grants(mode, loaded.scenario.names)
        ]

    def as_json(self) -> str:
        """Return everything that `resume` needs, with scenarios by hash; what is not given is left out."""
        own = {"scenarios": [loaded.hash for loaded in self.scenarios], "sampling": self.draws.stated()}
        data = asdict(self) | own
        for name in ("secondary", "perturb", "see", "weights", "layouts"):
            if not data[name]:
                del data[name]
        if self.edition == 1:
            del data["edition"]
        return json.dumps(data, sort_keys=True)

    def stored_forms(self) -> list[str]:
        """Return the texts under which this plan may be stored: older databases know no primary outcome."""
        data = json.loads(self.as_json())
        if data.pop("primary") != PRIMARY:
            return [self.as_json()]
        return [self.as_json(), json.dumps(data, sort_keys=True)]


def layouts_of(models: Iterable[str]) -> dict[str, str]:
    """Return model -> layout by the registry, without the first layout; nobody prompts a person."""
    found = {model: layout_of(model) for model in models if model != PERSON}
    return {model: layout for model, layout in found.items() if layout != FIRST}


def free(layouts: Mapping[str, str], models: Iterable[str]) -> dict[str, str]:
    """Return model -> layout without a request for short lines. Raises InvalidInput where a layout has no such form."""
    found = {model: f"{layouts.get(model, FIRST)}{FREE}" for model in models if model != PERSON}
    for model, layout in found.items():
        if layout not in LAYOUTS:
            problem = (
                f"{model} was taught short lines (layout {layout.removesuffix(FREE)}), so its length is no finding"
            )
            raise InvalidInput(problem, where="--length free", hint="leave --length out, or take another model")
    return found


def by_role(layouts: Mapping[str, str], models: Mapping[str, str]) -> dict[str, str]:
    """Return role -> layout for role -> model, without roles that have the first layout."""
    return {role: layouts[model] for role, model in models.items() if model in layouts}


def sampling_of(model: str) -> Sampling:
    """Return how a model draws where nothing else is asked for."""
    return LAYOUTS[layout_of(model)].sampling


_STORED = {"model": str, "roles": dict, "seed": int, "episodes": int, "edition": int, "layouts": dict}
_STORED |= {"scenarios": list}
"""The kinds of the values of a stored plan; roles and layouts have texts in them."""


def plan_of(plan_json: str, scenario_of: Callable[[str], LoadedScenario]) -> Plan:
    """Return a plan from its stored form; `scenario_of` returns the scenario of a hash.

    Raises InvalidInput for a value of another kind, because a file can be of anybody.
    """
    data = {"edition": 1, "layouts": {}} | json.loads(plan_json)
    for name, kind in _STORED.items():
        value = data.get(name)
        texts = value.values() if isinstance(value, dict) else ()
        if not isinstance(value, kind) or not all(isinstance(text, str) for text in texts):
            raise InvalidInput(f"a stored plan has {name} = {value!r}", hint="somebody changed it")
    scenarios = tuple(map(scenario_of, data.pop("scenarios")))
    data |= {"scenarios": scenarios, "modes": tuple(data["modes"]), "sampling": Sampling(**data["sampling"])}
    return Plan(**data)


def outcome_in(text: str, name: str) -> Outcome:
    """Return the outcome of KEY or KEY:CONTRAST; `name` is that of the option. Raises InvalidInput."""
    key, _, contrast = text.strip().partition(":")
    contrast = contrast or "information"
    if not key or contrast not in CONTRASTS:
        hint = f"KEY or KEY:CONTRAST, such as {PRIMARY}; contrasts are {', '.join(CONTRASTS)}"
        raise InvalidInput(f"{name} = {text!r}", hint=hint)
    return Outcome(key, contrast)


def secondary_in(given: str | Sequence[str]) -> tuple[Outcome, ...]:
    """Return outcomes, each once, of texts or of one text with commas; none of an empty one. Raises InvalidInput."""
    texts = (given.split(",") if given else ()) if isinstance(given, str) else given
    return tuple(dict.fromkeys(outcome_in(text, "secondary") for text in texts))


def outcomes_of(plan: Mapping[str, Any]) -> Outcomes:
    """Return what a stored plan declares."""
    primary = outcome_in(plan.get("primary", PRIMARY), "primary")
    return Outcomes(primary, secondary_in(plan.get("secondary", ())))


def primary_of(plan_json: str) -> Outcome:
    """Return the primary outcome of a stored plan."""
    return outcomes_of(json.loads(plan_json)).primary


def command_of(plan: Mapping[str, Any], scenarios: Sequence[str]) -> str:
    """Return the `localsim run` command that repeats a stored plan, with every option that is not at its default.

    `scenarios` are paths; without them the command contains SCENARIO...
    """
    if "source" in plan:
        return _import_of(plan)
    begun = ["localsim", "run", *(scenarios or ["SCENARIO..."])]
    if scenarios and all(path.startswith(COMMAND) for path in scenarios):
        begun = _interview_of(scenarios)
    sampling, usual = plan["sampling"], LAYOUTS[plan.get("layouts", {}).get(plan["model"], FIRST)].sampling
    modes = "all" if set(plan["modes"]) == set(MODES) else ",".join(plan["modes"])
    roles = [word for role, model in plan["roles"].items() for word in ("--role", f"{role}={model}")]
    parts: list[Any] = [*begun, "-m", plan["model"], *roles]
    parts += ["--mode", modes] if begun[1] == "run" else []
    parts += ["-n", plan["episodes"], "--seed", plan["seed"]]
    parts += ["-j", plan["parallel"] or "auto", "--repro", plan["repro"]]
    for option, value, default in (
        ("--temperature", sampling["temperature"], usual.temperature),
        ("--ctx", plan["context"], None),
        ("--overflow", plan["overflow"], "error"),
        ("--gpu", plan["gpu"], "auto"),
        ("--threads", plan["threads"], None),
        ("--primary", plan.get("primary", PRIMARY), PRIMARY),
        ("--secondary", ",".join(plan.get("secondary", ())), ""),
        ("--perturb", plan.get("perturb", 0), 0),
        *_thresholds_of(plan.get("weights", "").rpartition(" ")[0]),
    ):
        parts += [option, value] if value != default else []
    parts += [word for text in plan.get("see", ()) for word in ("--see", text)]
    parts += [] if sampling["grammar"] else ["--no-grammar"]
    parts += ["--length", "free"] if any(each.endswith(FREE) for each in plan.get("layouts", {}).values()) else []
    return " ".join(part if part == "SCENARIO..." else shlex.quote(str(part)) for part in parts)


def _interview_of(paths: Sequence[str]) -> list[str]:
    """Return the beginning of the command that asks a bank again, from the paths of its scenarios."""
    asked = [shlex.split(path) for path in paths]
    people = ",".join(dict.fromkeys(words[-1] for words in asked))
    return [*shlex.split(COMMAND), asked[0][2], "--people", people]


def _thresholds_of(name: str) -> tuple[tuple[str, Any, Any], ...]:
    """Return the options for thresholds of this name, each with its value and its default."""
    from localsim.leakage.detector import options_of

    file, share = options_of(name)
    return ("--weights", file, ""), ("--sensitivity", share, None)


def _import_of(plan: Mapping[str, Any]) -> str:
    """Return the command that imports the conversations again."""
    source = plan["source"]
    if source["kind"] != PEOPLE:
        return shlex.join(
            ["localsim", "scenarios", "import", source["format"], *(file["name"] for file in source["files"])]
        )
    parts = ["localsim", "import", "talks", *(file["name"] for file in source["files"])]
    parts += ["--format", source["format"], "--label", plan["model"]]
    parts += ["--family", source["family"]] if source["family"] else []
    return shlex.join(parts)
