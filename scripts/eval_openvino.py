#!/usr/bin/env python3
"""Compare OpenVINO with llama.cpp on the same weights, under several of OpenVINO's settings: one table for each model.

    .venv/bin/python scripts/eval_openvino.py starter MODEL.Q8_0.gguf

Perplexity is that of the bundled scenarios' prose (`models bench`). Agreement is the share of places in first prompts
of the bundled scenarios where the same token is the likeliest. Speed is that of eight conversations after 400 tokens.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim import paths  # noqa: E402
from localsim.backends.engines import load  # noqa: E402
from localsim.backends.llama.chat import ChatTokenizer  # noqa: E402
from localsim.backends.llama.lib import LlamaModel  # noqa: E402
from localsim.backends.llama.raw import RawContext  # noqa: E402
from localsim.backends.open import physical_cores  # noqa: E402
from localsim.backends.openvino.model import OpenVinoModel  # noqa: E402
from localsim.backends.openvino.network import SETTINGS  # noqa: E402
from localsim.conversation.prompts import agent_messages  # noqa: E402
from localsim.conversation.transcript import Transcript  # noqa: E402
from localsim.conversation.visibility import observe  # noqa: E402
from localsim.machine.bench import DEPTH, HEARD, PARALLEL, prose  # noqa: E402
from localsim.models.registry import ModelFile, resolve  # noqa: E402
from localsim.scenarios.find import find_scenarios  # noqa: E402
from scripts.tables import markdown_table, say  # noqa: E402

TRIED: dict[str, Mapping[str, Any]] = {
    "as localsim uses it": SETTINGS,
    "8 bits in caches": SETTINGS | {"KV_CACHE_PRECISION": "u8"},
    "f32 between layers": SETTINGS | {"INFERENCE_PRECISION_HINT": "f32"},
    "f32 between layers and in caches": SETTINGS | {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"},
    "activations of layers in 16 bits": SETTINGS | {"DYNAMIC_QUANTIZATION_GROUP_SIZE": 0},
    "f32 everywhere": SETTINGS
    | {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0},
}
HEADS = ("evaluated by", "perplexity", "to llama.cpp", "agreement", "prompt/s", "heard/s", "8 written/s")


@dataclass(frozen=True)
class Found:
    """The measurements of one model under one setting."""

    perplexity: float
    likeliest: np.ndarray[Any, Any]
    """The likeliest token at each place of the prompts."""
    rates: tuple[float, float, float]

    def cells(self, title: str, other: Found) -> list[str]:
        """Return a row of the table, beside llama.cpp's."""
        agreement = f"{(self.likeliest == other.likeliest).mean():.1%}"
        rates = [f"{rate:.0f} ({rate / beside:.1f}x)" for rate, beside in zip(self.rates, other.rates, strict=True)]
        return [title, f"{self.perplexity:.3f}", f"{self.perplexity / other.perplexity:.4f}", agreement, *rates]


def prompts(model: LlamaModel, every: int) -> list[list[int]]:
    """Return first prompts of agents, in tokens: of each scenario the first agent's."""
    chat = ChatTokenizer(model)
    found = []
    for loaded in find_scenarios([str(paths.bundled("scenarios"))])[::every]:
        seen = observe(loaded.scenario, "agents", loaded.scenario.names[0], Transcript())
        found.append(chat.prompt(agent_messages(seen), ""))
    return found


def measure(model: LlamaModel, texts: Sequence[list[int]]) -> Found:
    """Measure a loaded model."""
    raw = RawContext(model, sequences=PARALLEL, context=max(1024, *map(len, texts)), threads=physical_cores())
    likeliest = [int(row.argmax()) for text in texts for row in raw.predictions(text)]
    perplexity, _ = raw.perplexity(prose())
    heard = HEARD / sorted(raw.pieces([(DEPTH, HEARD)] * 5))[2]
    rates = raw.prefill_rate(), heard, raw.step_rate(PARALLEL, DEPTH)
    raw.close()
    return Found(perplexity, np.array(likeliest), rates)


def rows(file: ModelFile, every: int, settings: Sequence[str]) -> list[list[str]]:
    """Return the table of one model."""
    model = load(file, threads=physical_cores())
    texts = prompts(model, every)
    say(f"{file.name}: {sum(map(len, texts))} tokens in {len(texts)} prompts")
    ours = measure(model, texts)
    model.free()
    table = [ours.cells("llama.cpp", ours)]
    for title in settings:
        other = OpenVinoModel(file.path, threads=physical_cores(), adapter=file.adapter, settings=TRIED[title])
        table.append(measure(other, texts).cells(f"OpenVINO, {title}", ours))
        other.free()
        say(" | ".join(table[-1]))
    return table


@click.command()
@click.argument("models", nargs=-1, required=True)
@click.option("--every", default=4, show_default=True, help="Take each scenario of so many for the agreement.")
@click.option("--setting", "settings", multiple=True, type=click.Choice(list(TRIED)), help="Setting to try [all].")
def main(models: tuple[str, ...], every: int, settings: tuple[str, ...]) -> None:
    """Print a table for each model."""
    for name in models:
        file = replace(resolve(name), engine="llama")
        print(f"{file.name}\n\n{markdown_table(HEADS, rows(file, every, settings or list(TRIED)))}\n", flush=True)


if __name__ == "__main__":
    main()
