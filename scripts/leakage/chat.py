"""A trial: a chat model with an adapter as reader of pairs, beside the cross-encoder, on the same labels.

The chat model reads the same two texts as the cross-encoder (`reader.texts_of`) and answers with one of three words,
whose probabilities the engine keeps. Nothing of localsim uses this reader; docs/log/leakage.md has the result.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from localsim.backends.open import Needs, open_backends
from localsim.conversation.episode import Sampling
from localsim.conversation.requests import Message, Request
from localsim.conversation.rules.forms import OneOf
from localsim.evaluators.asking import ask
from localsim.finetune.chats import Chat
from localsim.finetune.job import Job, Material, finetune, tokenized
from localsim.finetune.trainer import Progress, Settings, peak_memory_mb
from localsim.leakage import accuracy, reader
from localsim.leakage.pairs import LABELS, LabelledPair, Pair
from localsim.models import registry as models
from scripts.leakage import data
from scripts.leakage.reader import rows_to_learn
from scripts.leakage.scores import Floats
from scripts.leakage.table import LEVELS, cell_of
from scripts.tables import markdown_table

START = "Answer:"
LANES = 16
VALIDATED = 100
"""Pairs of writers 13 and 14 that show the loss on unseen labels."""
_QUESTION = "Does my last line tell the fact? Answer disclosed, hint or none."


def messages_of(pair: Pair) -> tuple[Message, ...]:
    """Return the question about a pair. The question comes first, so that all pairs share its evaluation."""
    fact, conversation = reader.texts_of(pair)
    return Message("system", _QUESTION), Message("user", f"{conversation}\nFact: {fact}")


def _chat(row: LabelledPair, place: int) -> Chat:
    return Chat(START, (*messages_of(row.pair), Message("assistant", f"{START} {row.label}")), str(place))


def train(base_name: str, name: str, count: int, epochs: float, seed: int) -> Path:
    """Train an adapter on `count` of the rows that the cross-encoder learns from, and return its file."""
    base = models.resolve(base_name)
    rows = rows_to_learn(1.0, count, seed)
    rng = random.Random(seed)
    kept = rng.sample(data.threshold_pairs(), VALIDATED)
    learnt, _ = tokenized([_chat(row, place) for place, row in enumerate(rows)], base)
    held, _ = tokenized([_chat(row, place) for place, row in enumerate(kept)], base)
    settings = Settings(epochs=epochs, batch_tokens=2048, evaluations=1, seed=seed)
    job = Job(name, base, base_name, Material(learnt, held, 0), settings, {"pairs": "scenarios/leakage"})
    return finetune(job, _show)


def _show(progress: Progress) -> None:
    if progress.step % 10 == 1:
        click.echo(
            f"step {progress.step} of {progress.steps}, loss {progress.loss:.3f}, "
            f"{progress.tokens_per_second:.0f} tokens/s, {progress.seconds_left / 60:.0f} minutes left",
            err=True,
        )


def read(model: str, pairs: Sequence[Pair]) -> Floats:
    """Return log-probabilities (pairs, 3) of none, hint and disclosed, asked through the engine."""
    form = OneOf(LABELS, START)
    requests = [
        Request(
            session=str(place),
            speaker="reader",
            messages=messages_of(pair),
            prefill=START,
            seed=1,
            max_tokens=8,
            sampling=Sampling(temperature=0, dry_multiplier=0),
            form=form,
        )
        for place, pair in enumerate(pairs)
    ]
    found = np.zeros((len(pairs), len(LABELS)))
    needs = Needs(sequences=LANES, question=512)
    with open_backends([model], needs, lambda line: click.echo(line, err=True)) as backends:
        for start in range(0, len(requests), 4 * LANES):
            part = requests[start : start + 4 * LANES]
            for place, asked in enumerate(ask(backends[model], part), start):
                options = asked.reply.details["options"][0]["options"]  # type: ignore[union-attr]
                found[place] = [np.log(max(options[label]["share"], 1e-4)) for label in LABELS]
    return found


def compare(model: str, cross: Path) -> str:
    """Measure chat model, cross-encoder and both together on held-out pairs, and return a table."""
    encoder = reader.PairReader(cross)
    cells: dict[str, list[str]] = {"cross-encoder": [], "chat model": [], "both": []}
    seconds = dict.fromkeys(("cross-encoder", "chat model"), 0.0)
    count = 0
    for rows in data.held_out_pairs().values():
        pairs = [row.pair for row in rows]
        count += len(pairs)
        begun = time.perf_counter()
        chat = read(model, pairs)
        middle = time.perf_counter()
        own = encoder.read(pairs).astype(np.float64)
        seconds["chat model"] += middle - begun
        seconds["cross-encoder"] += time.perf_counter() - middle
        for name, scores in (("cross-encoder", own), ("chat model", chat), ("both", _product(own, chat))):
            cells[name] += [cell_of(accuracy.auroc, rows, np.exp(scores[:, 2]), level) for level in LEVELS]
    heads = [f"{level} AUROC, {name}" for name in data.held_out_pairs() for level in LEVELS]
    table = markdown_table(["reader", *heads], [[name, *values] for name, values in cells.items()])
    pace = ", ".join(f"{name} {count / took:.1f} pairs/s" for name, took in seconds.items())
    return f"{table}\n\n{count} pairs; {pace}; {peak_memory_mb()} MB"


def _product(one: Floats, other: Floats) -> Floats:
    """Return the normalized mean of log-probabilities."""
    mean = (one + other) / 2
    return np.asarray(mean - np.log(np.exp(mean).sum(1, keepdims=True)))
