#!/usr/bin/env python3
"""Compare the leakage detector with the raw throughput of its embedding model on the same texts.

    .venv/bin/python scripts/bench_leakage.py --turns 10000

Turns are the utterances of the labelled training files, varied by a number so that each text is new; each is checked
against the 6 facts of one scenario. `embedding` encodes exactly the texts that the detector encodes.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.leakage.detector import LeakageDetector  # noqa: E402
from localsim.leakage.embeddings import Embedder  # noqa: E402
from localsim.leakage.features import Wanted  # noqa: E402
from localsim.leakage.pairs import LabelledTranscript, PrivateFact, pairs_of, read_labelled  # noqa: E402

FACTS = 6


@click.command()
@click.option("--turns", default=10_000, show_default=True)
@click.option("--reader/--no-reader", default=True, show_default=True, help="Measure the reader too.")
@click.option("--json", "as_json", is_flag=True)
def main(turns: int, reader: bool, as_json: bool) -> None:
    """Print turns a second of embedding alone, of the detector without its reader, and with it."""
    talks: Any = read_labelled(ROOT / "scenarios" / "leakage" / "train.transcripts.jsonl")
    pairs = list(_pairs(talks, turns))
    texts = list(dict.fromkeys(text for pair in pairs for text in Wanted.of(pair).texts()))
    encoder = Embedder()
    encoder.encode(texts[:64])
    found: dict[str, Any] = {"turns": turns, "pairs": len(pairs), "texts": len(texts)}
    found["embedding_s"] = _seconds(lambda: encoder.encode(texts))
    found["words_s"] = _seconds(lambda: LeakageDetector(encoder.encode, use_reader=False).classify(pairs))
    found["words_vs_embedding"] = found["embedding_s"] / found["words_s"]
    if reader:
        found["reader_s"] = _seconds(lambda: LeakageDetector(encoder.encode).classify(pairs))
        found["reader_vs_embedding"] = found["embedding_s"] / found["reader_s"]
    print(json.dumps(found) if as_json else "\n".join(f"{name}: {value:.4g}" for name, value in found.items()))


def _pairs(talks: list[LabelledTranscript], turns: int) -> Any:
    done = 0
    for round_number in range(1000):
        for number, talk in enumerate(talks):
            strangers = talks[(number + 1) % len(talks)].facts
            facts: tuple[PrivateFact, ...] = (*talk.facts, *strangers, *strangers)[:FACTS]
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
