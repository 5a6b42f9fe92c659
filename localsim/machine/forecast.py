"""The forecast of a run: turns, tokens and minutes with an interval, from rates that are measured now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localsim.backends.engines import ensure_works, load
from localsim.backends.llama.lib import LlamaModel
from localsim.backends.llama.raw import RawContext
from localsim.backends.open import Needs, layers_of, physical_cores
from localsim.conversation.episode import SINGLE_AUTHOR, EpisodeSpec
from localsim.errors import DatabaseError
from localsim.models.registry import resolve
from localsim.store.database import Store
from localsim.store.queries.runs import usual_episodes

DEPTH, CONTEXT = 400, 1024
FRAME = 12
"""Tokens that a listener reads in a turn besides its words: names, and the template's marks around a message."""
NAME = 4
"""Tokens that a speaker writes in a turn besides its words."""
OPENING = 330
"""Tokens of an opening prompt with five facts, which is evaluated once for all seeds."""
TOKENS_PER_WORD = 1.35
"""A usual figure for English and these vocabularies; it is not measured for each model."""
ENGINE = 0.75
"""Share of llama.cpp's own rates that a whole run reaches: about 0.9 while all sequences work (docs/performance.md),
less at its beginning and end (`scripts/bench_forecast.py`).
"""
WORDS, LENGTH = 11.0, 0.45
"""Words of a turn, and turns as a share of their limit, where no earlier run gives better figures: the starter's."""
FIRST_TOKENS = 20
"""Tokens from which on the speed of a run is a forecast."""
PATIENCE_S = 0.5
"""Seconds that a run which begins waits for the lengths of earlier episodes."""
FEWEST = 0.35
"""Turns of the shortest episodes as a share of their limit."""


@dataclass(frozen=True)
class Rates:
    """The speed of a model on this machine, in tokens a second."""

    heard: float
    """Prompt tokens read, in parts of 32."""
    written: float
    """Tokens written by all conversations side by side."""


@dataclass(frozen=True)
class Forecast:
    """The expected size and duration of a run.

    `low` and `high` are a quarter less and more where earlier episodes of the model are known; otherwise they assume
    that all episodes end early, or that all reach their limit.
    """

    turns: float
    tokens: float
    minutes: float
    low: float
    high: float
    based_on: str

    def __str__(self) -> str:
        return (
            f"about {self.minutes:.1f} minutes ({self.low:.1f} to {self.high:.1f}) for {self.turns:.0f} turns and "
            f"{self.tokens:.0f} tokens, from speeds measured now and {self.based_on}"
        )


def measure(model: LlamaModel, parallel: int, threads: int) -> Rates:
    """Measure the speed of a model without sampling; takes a few seconds."""
    raw = RawContext(model, sequences=parallel, context=CONTEXT, threads=threads)
    heard = 32 / sorted(raw.pieces([(DEPTH, 32)] * 5))[2]
    written = raw.step_rate(parallel, DEPTH)
    raw.close()
    return Rates(heard, written)


def forecast_on(name: str, needs: Needs, store: Store | None) -> Forecast:
    """Load a model, measure it for some seconds, and forecast the episodes of `needs`, all written by that model."""
    file = resolve(name)
    ensure_works(file)
    threads = needs.threads or physical_cores()
    model = load(file, threads=threads, gpu_layers=layers_of(file, needs.gpu))
    rates = measure(model, needs.sequences, threads)
    model.free()
    return forecast(needs.specs, rates, store)


def forecast(specs: Sequence[EpisodeSpec], rates: Rates, store: Store | None) -> Forecast:
    """Forecast the episodes of a plan on one model; earlier episodes of that model are read from `store`."""
    known = _history(store, specs) if store is not None else {}
    found = [known.get(_kind(spec)) or _guess(spec) for spec in specs]
    seen = all(_kind(spec) in known for spec in specs)
    once = 0.0 if seen else _openings(specs)  # the tokens of earlier episodes include their openings
    seconds = [(each.written / rates.written + each.heard / rates.heard) / ENGINE for each in found]
    extra = once / rates.heard / ENGINE
    minutes = (sum(seconds) + extra) / 60
    fewest, most = ((sum(seconds) * share + extra) / 60 for share in (FEWEST / LENGTH, 1 / LENGTH))
    spread = 0.25 * minutes
    return Forecast(
        turns=sum(each.turns for each in found),
        tokens=sum(each.written for each in found),
        minutes=minutes,
        low=minutes - spread if seen else fewest,
        high=minutes + spread if seen else most,
        based_on="earlier episodes of this model"
        if seen
        else "turn limits; there are no earlier episodes of this model",
    )


@dataclass(frozen=True)
class _Usual:
    """The averages of an episode: turns, tokens written, and prompt tokens evaluated."""

    turns: float
    written: float
    heard: float


class Remaining:
    """The seconds that a run still needs: the tokens that its episodes usually take, at the speed so far.

    Episodes that have ended correct the usual number. Where nothing counts tokens, the episodes themselves are counted.
    """

    def __init__(self, specs: Sequence[EpisodeSpec], store: Store | None) -> None:
        known = _known_at_once(store, specs) if store is not None else {}
        self._usual = {_kind(spec): (known.get(_kind(spec)) or _guess(spec)).written for spec in specs}
        self._waiting = sum(self._usual[_kind(spec)] for spec in specs)
        self._mean = max(1.0, self._waiting / max(1, len(specs)))
        self._episodes = len(specs)
        self._ended, self._ended_usual = 0, 0.0

    def end(self, spec: EpisodeSpec) -> None:
        """Count an episode that has ended."""
        usual = self._usual.get(_kind(spec), self._mean)
        self._ended += 1
        self._ended_usual += usual
        self._waiting -= usual

    def seconds(self, ended: int, running: int, elapsed: float) -> float | None:
        """Return the forecast, or None before there is anything to go by.

        `ended` and `running` are the tokens of episodes that have ended and of those in progress; `elapsed` is in
        seconds.
        """
        written = ended + running
        if written >= FIRST_TOKENS:
            scale = (ended + self._mean) / (self._ended_usual + self._mean)
            return max(0.0, scale * self._waiting - running) * elapsed / written
        if self._ended:
            return (self._episodes - self._ended) * elapsed / self._ended
        return None


def _kind(spec: EpisodeSpec) -> tuple[str, str]:
    return spec.mode, spec.scenario.family or ""


def _guess(spec: EpisodeSpec) -> _Usual:
    """Estimate an episode from its limits: unless one author writes all, every other agent reads each turn."""
    turns, words = LENGTH * spec.scenario.limits.turns, TOKENS_PER_WORD * WORDS
    heard = 0.0 if spec.mode in SINGLE_AUTHOR else (words + FRAME) * (len(spec.scenario.agents) - 1)
    return _Usual(turns, turns * (words + NAME), turns * heard)


def _openings(specs: Sequence[EpisodeSpec]) -> float:
    """Tokens of all different opening prompts."""
    different = {
        (spec.scenario.hash, spec.mode, spec.variant, spec.grants, role) for spec in specs for role in spec.models
    }
    return float(OPENING * len(different))


def _known_at_once(store: Store, specs: Sequence[EpisodeSpec]) -> dict[tuple[str, str], _Usual]:
    """Return `_history`, or nothing where another program holds the database: no run waits or ends for a forecast."""
    try:
        return _history(Store(store.path, patience_s=PATIENCE_S), specs)
    except DatabaseError:
        return {}


def _history(store: Store, specs: Sequence[EpisodeSpec]) -> dict[tuple[str, str], _Usual]:
    """(mode, family) -> means of the completed episodes of the same model."""
    if not store.path.is_file():
        return {}
    rows = usual_episodes(store, sorted({model for spec in specs for model in spec.models.values()}))
    return {
        (row["mode"], row["family"]): _Usual(float(row["turns"]), float(row["written"]), float(row["heard"]))
        for row in rows
    }
