#!/usr/bin/env python3
"""Compare the leakage detector with plain sentence embedding of the same texts, in one run.

    .venv/bin/python scripts/bench_leakage.py                      # 10,000 turns x 10 facts: minutes
    .venv/bin/python scripts/bench_leakage.py --turns 300

Turns are the utterances of the labelled training files, varied by a number so that each text is new; each is checked
against 10 facts: those of its conversation, and of the next ones. `embedding` encodes exactly the texts that the
detector encodes. A ratio is the time of the detector divided by that of embedding.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.leakage.detector import LeakageDetector  # noqa: E402
from localsim.leakage.embeddings import Embedder  # noqa: E402
from localsim.leakage.features import Wanted  # noqa: E402
from localsim.leakage.pairs import LabelledTranscript, Pair, PrivateFact, pairs_of, read_labelled  # noqa: E402


@click.command()
@click.option("--turns", type=click.IntRange(1), default=10_000, show_default=True)
@click.option("--facts", type=click.IntRange(1), default=10, show_default=True, help="Check each turn against so many.")
@click.option("--reader/--no-reader", default=True, show_default=True, help="Measure the reader too.")
@click.option("--json", "as_json", is_flag=True)
def main(turns: int, facts: int, reader: bool, as_json: bool) -> None:
    """Print pairs a second of embedding alone, of the detector without its reader, and with it, and the ratios."""
    talks: Any = read_labelled(ROOT / "scenarios" / "leakage" / "train.transcripts.jsonl")
    pairs = list(_pairs(talks, turns, facts))
    texts = list(dict.fromkeys(text for pair in pairs for text in Wanted.of(pair).texts()))
    encoder = Embedder()
    encoder.encode(texts[:64])
    found: dict[str, Any] = {"turns": turns, "facts": facts, "pairs": len(pairs), "texts": len(texts)}
    _add(found, "embedding", lambda: encoder.encode(texts))
    _add(found, "without_reader", lambda: LeakageDetector(encoder.encode, use_reader=False).classify(pairs))
    if reader:
        detector = LeakageDetector(encoder.encode)
        detector.read(pairs[:8])  # loads its model
        _add(found, "detector", lambda: detector.classify(pairs))
    print(json.dumps(found) if as_json else "\n".join(f"{name}: {value:.4g}" for name, value in found.items()))


def _add(found: dict[str, Any], name: str, work: Any) -> None:
    """Add seconds and pairs a second, and the seconds for each second of embedding."""
    seconds = _seconds(work)
    found |= {f"{name}_s": seconds, f"{name}_pairs_per_s": found["pairs"] / seconds}
    if name != "embedding":
        found[f"{name}_ratio"] = seconds / found["embedding_s"]


def _pairs(talks: list[LabelledTranscript], turns: int, count: int) -> Iterator[Pair]:
    done = 0
    for round_number in range(1000):
        for number, talk in enumerate(talks):
            near = [*talks[number:], *talks[:number]]
            facts: tuple[PrivateFact, ...] = tuple(islice((fact for each in near for fact in each.facts), count))
            said = tuple((speaker, f"{text} ({round_number})") for speaker, text in talk.turns)[: turns - done]
            yield from (pair for _, _, pair in pairs_of(facts, said))
            done += len(said)
            if done >= turns:
                return


def _seconds(work: Any) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
