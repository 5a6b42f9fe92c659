"""How long a run will take: turns, tokens and minutes with an interval, from rates that are measured now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localsim.backends.llama_lib import LlamaModel
from localsim.backends.measure import RawContext
from localsim.episode import EpisodeSpec
from localsim.store import Store

DEPTH, CONTEXT = 400, 1024
FRAME = 12
"""Tokens of a turn besides its words: names, and the template's marks around a message."""
TOKENS_PER_WORD = 1.35
"""A usual figure for English and these vocabularies, not measured for the model at hand."""
ENGINE = 0.9
"""Share of llama.cpp's own rates that the engine reaches (docs/performance.md)."""
WORDS = 16.0
"""Words of a turn where no earlier run says better."""
FEWEST = 0.35
"""Of the turn limit, that the shortest episodes have."""


@dataclass(frozen=True)
class Rates:
    """Tokens a second of a model on this machine."""

    heard: float
    """Parts of 32 tokens of a prompt."""
    written: float
    """By conversations side by side."""


@dataclass(frozen=True)
class Forecast:
    """What a run is expected to take. `low` and `high`: a quarter less and more where earlier episodes of the model are
    there to go by; else all episodes ending early, and all going on to their limit.
    """

    turns: float
    tokens: float
    minutes: float
    low: float
    high: float
    based_on: str


def measure(model: LlamaModel, parallel: int, threads: int) -> Rates:
    """A few seconds of llama.cpp at work."""
    raw = RawContext(model, sequences=parallel, context=CONTEXT, threads=threads)
    heard = 32 / sorted(raw.pieces([(DEPTH, 32)] * 5))[2]
    written = raw.step_rate(parallel, DEPTH)
    raw.close()
    return Rates(heard, written)


def forecast(specs: Sequence[EpisodeSpec], rates: Rates, store: Store | None) -> Forecast:
    """For the episodes of a plan on one model; `store` is asked what earlier runs of that model were like."""
    known = _history(store, specs) if store is not None else {}
    limits = [spec.scenario.limits.turns for spec in specs]
    expected = [known.get((spec.mode, spec.scenario.family or ""), (0.0, 0.0)) for spec in specs]
    words = [found[1] or WORDS for found in expected]
    usual = [min(limit, found[0] or 0.6 * limit) for limit, found in zip(limits, expected, strict=True)]
    seconds = [_seconds(spec, count, rates) for spec, count in zip(specs, words, strict=True)]
    minutes = sum(turns * each for turns, each in zip(usual, seconds, strict=True)) / 60
    least = sum(FEWEST * limit * each for limit, each in zip(limits, seconds, strict=True)) / 60
    most = sum(limit * each for limit, each in zip(limits, seconds, strict=True)) / 60
    spread = 0.25 * minutes
    seen = all(found[0] for found in expected)
    return Forecast(
        turns=sum(usual),
        tokens=sum(turns * TOKENS_PER_WORD * count for turns, count in zip(usual, words, strict=True)),
        minutes=minutes,
        low=minutes - spread if seen else min(minutes, least),
        high=minutes + spread if seen else max(minutes, most),
        based_on="earlier episodes of this model" if seen else "turn limits; no earlier episodes of this model here",
    )


def _seconds(spec: EpisodeSpec, words: float, rates: Rates) -> float:
    """Of one turn: its words are written, and outside a script every other agent hears them."""
    written = TOKENS_PER_WORD * words
    heard = 0.0 if spec.mode == "script" else (written + FRAME) * (len(spec.scenario.agents) - 1)
    return (written / rates.written + heard / rates.heard) / ENGINE


def _history(store: Store, specs: Sequence[EpisodeSpec]) -> dict[tuple[str, str], tuple[float, float]]:
    """(mode, family) -> mean turns of an episode and words of a turn, in completed episodes of the same model."""
    if not store.path.is_file():
        return {}
    models = sorted({model for spec in specs for model in spec.models.values()})
    cell = "mode, coalesce(family, '') AS family"
    turns = store.rows(
        f"SELECT {cell}, avg(turns) AS n FROM v_episodes WHERE status = 'completed' "
        "AND model IN (SELECT unnest(?)) GROUP BY ALL",
        [models],
    )
    words = store.rows(
        f"SELECT {cell}, avg(words) AS n FROM v_turns WHERE model IN (SELECT unnest(?)) GROUP BY ALL", [models]
    )
    spoken = {(row["mode"], row["family"]): float(row["n"] or WORDS) for row in words}
    return {
        (row["mode"], row["family"]): (float(row["n"]), spoken.get((row["mode"], row["family"]), WORDS))
        for row in turns
    }
