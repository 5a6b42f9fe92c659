#!/usr/bin/env python3
"""Train the leakage detector on scenarios/leakage/train.* and measure totals on the test files.

    .venv/bin/python scripts/train_leakage.py words      # the fast classifier and its ablation (1 minute)
    .venv/bin/python scripts/train_leakage.py reader     # fine-tunes the reader (two trainings, half an hour)
    .venv/bin/python scripts/train_leakage.py table      # accuracy on the test files, into docs/leakage.md

Run `words` first: it resets the thresholds. `reader` trains on four fifths of the facts and conversations, fits the
thresholds on the others, and then trains on all of them.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.leakage import accuracy, features, reader, wording  # noqa: E402
from localsim.leakage.calibrate import best_threshold, fitted_to_talks  # noqa: E402
from localsim.leakage.detector import WEIGHTS, LeakageDetector, Weights  # noqa: E402
from localsim.leakage.embeddings import Embedder, encoder_and_tokenizer  # noqa: E402
from localsim.leakage.pairs import (  # noqa: E402
    LABELS,
    LabelledPair,
    LabelledTranscript,
    Pair,
    pairs_of,
    read_labelled,
)

DATA = ROOT / "scenarios" / "leakage"
EPOCHS, RATE, BATCH = 3, 1e-4, 16
STRANGERS = 0.3
"""Pairs with an unrelated fact for each labelled pair, drawn again in each epoch."""
C = 0.03
"""Inverse regularisation of the fast classifier."""


def labelled(name: str) -> tuple[list[LabelledPair], list[str]]:
    """Read the labelled pairs of a set, and the id of the fact of each pair."""
    rows: Any = read_labelled(DATA / f"{name}.pairs.jsonl")
    lines = (DATA / f"{name}.pairs.jsonl").read_text().splitlines()
    return rows, [json.loads(line)["fact_id"] for line in lines]


def transcripts() -> list[LabelledTranscript]:
    """Read the training conversations with their labelled disclosures."""
    rows: Any = read_labelled(DATA / "train.transcripts.jsonl")
    return list(rows)


def from_transcripts(talks: Sequence[LabelledTranscript]) -> list[LabelledPair]:
    """Pair each fact with its disclosing turn and four earlier turns: two alike in words, two at random."""
    rng = random.Random(0)
    found: list[LabelledPair] = []
    for talk in talks:
        for fact in talk.facts:
            pairs = [(turn, pair) for private, turn, pair in pairs_of(talk.facts, talk.turns) if private == fact]
            end = talk.disclosures[fact.id].turn if fact.id in talk.disclosures else len(talk.turns)
            before = sorted((pair for turn, pair in pairs if turn < end), key=_alike, reverse=True)
            chosen = dict.fromkeys([*before[:2], *rng.sample(before, min(2, len(before)))])
            found += [LabelledPair(pair, "none") for pair in chosen]
            found += [LabelledPair(pair, "disclosed") for turn, pair in pairs if turn == end]
    return found


def in_so_many_words(rows: Sequence[LabelledPair]) -> list[LabelledPair]:
    """Plain statements of each fact: by its owner or to its owner (disclosed), and about another person (none).

    Labelled pairs with the fact's own words are mostly traps; without plain statements, a reader learns to mistrust
    plain speech. Half of them follow unrelated small talk: the context of a labelled pair is mostly about its fact,
    and a reader that saw no other context mistrusts a fact after unrelated turns.
    """
    rng, found = random.Random(1), []
    talk = [line.partition(": ")[2] for row in rows for line in row.pair.context]
    listeners = {(row.pair.fact, row.pair.owner): _listener(row.pair) for row in rows}
    for (fact, owner), other in sorted(listeners.items()):
        start = rng.choice(["", "", "Look. ", "By the way: ", "Honestly? ", "To be honest with you. "])
        end = rng.choice(["", "", " So now you know.", " By the way.", " Imagine that.", " That's how it is."])
        for speaker, label in ((owner, "disclosed"), (other, "disclosed"), (rng.choice([owner, other]), "none")):
            said = wording.spoken(fact, owner, speaker)
            if label == "none":
                said = fact.replace(owner, rng.choice(["My cousin", "My neighbour", "A friend of mine", "My brother"]))
            listener = other if speaker == owner else owner
            before = [f"{name}: {rng.choice(talk)}" for name in (speaker, listener)[rng.randrange(2) :]]
            context = tuple(before) if rng.random() < 0.5 else ()
            found.append(LabelledPair(Pair(fact, owner, speaker, context, f"{start}{said}{end}"), label))
    return found


def _listener(pair: Pair) -> str:
    names = [pair.speaker, *(line.partition(": ")[0] for line in pair.context), "Sam", "Robin"]
    return next(name for name in names if name != pair.owner)


def _alike(pair: Pair) -> int:
    return len(wording.content_words(pair.fact) & wording.content_words(pair.utterance))


# ---- the cheap classifier ------------------------------------------------------------------------------------------


def fit_words(rows: np.ndarray, labels: np.ndarray) -> Weights:
    """Fit the fast classifier (multinomial logistic regression)."""
    scaler = StandardScaler().fit(rows)
    model = LogisticRegression(C=C, max_iter=3000).fit(scaler.transform(rows), labels)
    names = features.NAMES + features.CROSSED
    return Weights(names, scaler.mean_, scaler.scale_, model.coef_, model.intercept_)


def held_out(rows: np.ndarray, labels: np.ndarray, facts: Sequence[str]) -> np.ndarray:
    """Return the probabilities of each pair, from a classifier that has not seen the pair's fact."""
    found = np.zeros((len(rows), 3))
    for train, test in GroupKFold(5).split(rows, groups=facts):
        found[test] = fit_words(rows[train], labels[train]).probabilities(rows[test])
    return found


# ---- the reader ----------------------------------------------------------------------------------------------------


def train_reader(rows: Sequence[LabelledPair], seed: int) -> dict[str, torch.Tensor]:
    """Fine-tune all six layers and a head with three classes; return the change of each weight in 8 bits.

    All weights are trained because smaller changes were worse (docs/log/leakage.md).
    """
    torch.manual_seed(seed)
    random.seed(seed)
    encoder, tokenizer = encoder_and_tokenizer()
    for parameter in encoder.parameters():
        parameter.requires_grad = False
    layers = adapted(encoder)
    before = {name: layer.weight.detach().clone() for name, layer in layers.items()}
    head = torch.nn.Linear(2 * encoder.config.hidden_size, len(LABELS))
    for layer in layers.values():
        layer.weight.requires_grad = True
    parameters = [*(layer.weight for layer in layers.values()), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=RATE, weight_decay=0.01)
    total, step = EPOCHS * (int(len(rows) * (1 + STRANGERS)) // BATCH + 1), 0
    encoder.train()
    for epoch in range(EPOCHS):
        begun, losses = time.perf_counter(), []
        for part in batches([*rows, *strangers(rows)]):
            for group in optimizer.param_groups:
                group["lr"] = RATE * min(1, step / (0.1 * total)) * max(0, 1 - step / total)
            texts = [reader.texts_of(row.pair) for row in part]
            wanted = torch.tensor([LABELS.index(row.label) for row in part])
            with torch.autocast("cpu", dtype=torch.bfloat16):
                scores = reader.classify(encoder, tokenizer, (head.weight, head.bias), texts)
            loss = torch.nn.functional.cross_entropy(scores.float(), wanted, label_smoothing=0.05)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
            step += 1
        print(f"epoch {epoch}: loss {np.mean(losses):.3f}, {time.perf_counter() - begun:.0f} s", flush=True)
    arrays = {"head.weight": head.weight.detach(), "head.bias": head.bias.detach()}
    for name, layer in layers.items():
        change = layer.weight.detach() - before[name]
        scale = change.abs().amax(1, keepdim=True) / 127
        arrays[f"{name}.scale"], arrays[f"{name}.change"] = scale, (change / scale).round().to(torch.int8)
    return arrays


def adapted(encoder: Any) -> dict[str, Any]:
    """Return the trained linear layers by name."""
    return {
        f"{number}.{part}": layer.get_submodule(part)
        for number, layer in enumerate(encoder.encoder.layer)
        for part in reader.PARTS
    }


def strangers(rows: Sequence[LabelledPair]) -> list[LabelledPair]:
    """Pair utterances with facts of other rows, put in the name of the same owner."""
    found = []
    for row in random.sample(list(rows), int(len(rows) * STRANGERS)):
        other = random.choice(rows).pair
        if other.fact != row.pair.fact:
            fact = other.fact.replace(other.owner, row.pair.owner)
            found.append(LabelledPair(replace(row.pair, fact=fact), "none"))
    return found


def batches(rows: Sequence[LabelledPair]) -> Iterator[list[LabelledPair]]:
    """Shuffle the pairs into batches of similar length."""
    shuffled = random.sample(list(rows), len(rows))
    found = []
    for start in range(0, len(rows), BATCH * 12):
        part = sorted(shuffled[start : start + BATCH * 12], key=lambda row: len("".join(row.pair.context[-2:])))
        found += [part[at : at + BATCH] for at in range(0, len(part), BATCH)]
    random.shuffle(found)
    return iter(found)


# ---- commands ------------------------------------------------------------------------------------------------------


@click.group()
def main() -> None:
    """Train and measure the leakage detector."""


@main.command()
def words() -> None:
    """Train the fast classifier and print its ablation."""
    rows, facts = labelled("train")
    labels = np.array([LABELS.index(row.label) for row in rows])
    table = features.crossed(features.matrix([row.pair for row in rows], Embedder().encode))
    chances = held_out(table, labels, facts)
    truth, some = labels == 2, labels > 0
    passed = chances[:, 1] + chances[:, 2]
    weights = replace(
        fit_words(table, labels),
        words_disclosed_from=best_threshold(truth, chances[:, 2]),
        words_hint_from=best_threshold(some, passed),
        gate=float(np.quantile(passed[truth], 0.01)),
    )
    print(f"gate {weights.gate:.3f} lets {np.mean(passed >= weights.gate):.0%} of the labelled pairs pass")
    weights.write(WEIGHTS)
    report("all", rows, chances[:, 2])
    for name, group in features.GROUPS.items():
        kept = np.array([not set(column.split(" x ")) & set(group) for column in weights.names])
        report(f"without {name}", rows, held_out(table[:, kept], labels, facts)[:, 2])
    style = [weights.names.index(name) for name in features.STYLE]
    report("style alone", rows, held_out(table[:, style], labels, facts)[:, 2])
    report("cosine alone", rows, table[:, weights.names.index("cos_fact")])
    report("words in common alone", rows, table[:, weights.names.index("overlap")])


def words_of(places: np.ndarray) -> Weights:
    """Fit the fast classifier on some of the training pairs."""
    rows, _ = labelled("train")
    chosen = [rows[place] for place in places]
    table = features.crossed(features.matrix([row.pair for row in chosen], Embedder().encode))
    return fit_words(table, np.array([LABELS.index(row.label) for row in chosen]))


def report(name: str, rows: Sequence[LabelledPair], chance: np.ndarray) -> None:
    """Print AUROC and the best F1 by difficulty."""
    parts = []
    for level in ("plain", "adversarial"):
        place = np.array([row.difficulty == level for row in rows])
        truth = np.array([row.label == "disclosed" for row in rows])[place]
        found = accuracy.counts(truth, chance[place] >= best_threshold(truth, chance[place]), chance[place])
        parts.append(f"{level} AUROC {found['auroc']:.3f}, best F1 {found['f1']:.3f}")
    print(f"{name}: {'; '.join(parts)}")


@main.command("reader")
def train() -> None:
    """Fit the thresholds on a fifth of the facts and conversations, then train on all of them."""
    rows, facts = labelled("train")
    talks = transcripts()
    unseen = talks[::5]
    more = from_transcripts([talk for talk in talks if talk not in unseen])
    kept, left = next(GroupKFold(5).split(rows, groups=facts))
    part = [rows[place] for place in kept]
    _save(train_reader([*part, *more, *in_so_many_words([*part, *more])], seed=0))
    detector = LeakageDetector(weights=replace(words_of(kept), gate=0.0))
    chances = detector.chances([rows[place].pair for place in left])
    part = [rows[place] for place in left]
    report("both parts, on facts not seen in training", part, chances[:, 2])
    report("the reader alone", part, np.exp(reader.PairReader().read([row.pair for row in part]))[:, 2])
    truth = np.array([row.label == "disclosed" for row in part])
    some = np.array([row.label != "none" for row in part])
    weights = replace(
        Weights.read(),
        disclosed_from=best_threshold(truth, chances[:, 2]),
        hint_from=max(best_threshold(some, chances[:, 1] + chances[:, 2]), above_strangers(detector, part)),
    )
    detector = LeakageDetector(weights=weights)
    weights = fitted_to_talks(detector, unseen)
    print("other conversations:", accuracy.of_transcripts(detector.having(weights), unseen), flush=True)
    weights.write(WEIGHTS)
    final(rows, from_transcripts(talks))


def above_strangers(detector: LeakageDetector, rows: Sequence[LabelledPair]) -> float:
    """Return the probability of a hint that 19 of 20 unrelated pairs stay below.

    Labelled pairs are hard; in a conversation most pairs are unrelated.
    """
    random.seed(2)
    chances = detector.chances([row.pair for row in strangers(rows)])
    return float(np.quantile(chances[:, 1] + chances[:, 2], 0.95))


@main.command("final")
def final_only() -> None:
    """Train the reader on all facts and keep the thresholds."""
    final(labelled("train")[0], from_transcripts(transcripts()))


def final(rows: list[LabelledPair], more: list[LabelledPair]) -> None:
    """Train the reader on all labelled pairs and on plain statements of the facts."""
    _save(train_reader([*rows, *more, *in_so_many_words([*rows, *more])], seed=1))


def _save(arrays: dict[str, torch.Tensor]) -> None:
    stored = {name: array.numpy() for name, array in arrays.items()}
    small = {name: array if array.dtype == np.int8 else array.astype(np.float16) for name, array in stored.items()}
    np.savez_compressed(reader.FILE, **small)


@main.command("table")
def measure() -> None:
    """Measure the test files. Write the result to the weights (for reports) and to docs/leakage.md."""
    detector, cheap = LeakageDetector(), LeakageDetector(use_reader=False)
    found: dict[str, Any] = {}
    transcripts = {}
    for name, one in (("detector", detector), ("without the reader", cheap)):
        found[name] = accuracy.of_pairs(one, read_labelled(DATA / "test.pairs.jsonl"))
        transcripts[name] = accuracy.of_transcripts(one, read_labelled(DATA / "test.transcripts.jsonl"))
    replace(detector.weights, accuracy={"pairs": found["detector"], "transcripts": transcripts["detector"]}).write(
        WEIGHTS
    )
    levels = {name: result["by_difficulty"] for name, result in found.items()} | baselines(cheap)
    lines = ["| test pairs | plain F1 | plain AUROC | adversarial F1 | adversarial AUROC |", "|---|---|---|---|---|"]
    for name, parts in levels.items():
        cells = [f"{parts[level][key]:.3f}" for level in ("plain", "adversarial") for key in ("f1", "auroc")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    keys = list(transcripts["detector"])
    lines += [
        "",
        f"| test transcripts | {' | '.join(key.replace('_', ' ') for key in keys)} |",
        "|---" * (len(keys) + 1) + "|",
    ]
    for name, result in transcripts.items():
        cells = [f"{value:.3f}" if isinstance(value, float) else str(value) for value in result.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    print("\n".join(lines))
    page = ROOT / "docs" / "leakage.md"
    before, _, rest = page.read_text().partition("<!-- table -->")
    page.write_text(
        f"{before}<!-- table -->\n" + "\n".join(lines) + f"\n<!-- end -->{rest.partition('<!-- end -->')[2]}"
    )


def baselines(cheap: LeakageDetector) -> dict[str, Any]:
    """Measure simpler methods on the test pairs, with thresholds from the training pairs."""
    tables = {}
    for part in ("train", "test"):
        rows, _ = labelled(part)
        truth = np.array([row.label == "disclosed" for row in rows])
        tables[part] = (rows, cheap.rows([row.pair for row in rows]), truth)
    names = features.NAMES + features.CROSSED
    style = [names.index(name) for name in features.STYLE]
    scaler = StandardScaler().fit(tables["train"][1][:, style])
    model = LogisticRegression(C=C, max_iter=3000).fit(
        scaler.transform(tables["train"][1][:, style]), tables["train"][2]
    )
    scores = {
        "plain cosine": lambda table: table[:, names.index("cos_fact")],
        "words in common": lambda table: table[:, names.index("overlap")],
        "style alone": lambda table: model.predict_proba(scaler.transform(table[:, style]))[:, 1],
    }
    found: dict[str, Any] = {}
    rows, table, truth = tables["test"]
    for name, score in scores.items():
        line = best_threshold(tables["train"][2], score(tables["train"][1]))
        found[name] = {}
        for level in ("plain", "adversarial"):
            place = np.array([row.difficulty == level for row in rows])
            chance = score(table)[place]
            found[name][level] = accuracy.counts(truth[place], chance >= line, chance)
    return found


if __name__ == "__main__":
    main()
