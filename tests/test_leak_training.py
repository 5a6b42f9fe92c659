"""Training of the leakage detector: who is trained on, made and mined pairs, checkpoints, and the figures' parts."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from localsim.annotation import measures
from localsim.leakage import features
from localsim.leakage.detector import LeakageDetector
from localsim.leakage.pairs import Disclosure, LabelledPair, LabelledTranscript, Pair, PrivateFact
from localsim.leakage.quotes import quotes
from localsim.leakage.reader import texts_of
from scripts import train_leakage
from scripts.leakage import data, fit, reader, scores, table


def facts_of(rows: list[LabelledPair], talks: list[LabelledTranscript]) -> set[str]:
    return {row.pair.fact for row in rows} | {fact.text for talk in talks for fact in talk.facts}


def test_writers_and_facts_are_split() -> None:
    writers = [*data.TRAINING, *data.LATE, *data.THRESHOLDS, *data.HELD_OUT, *data.LATE_HELD_OUT]
    assert len(writers) == len(set(writers)) == 31
    training = facts_of(data.training_pairs(), data.training_talks())
    thresholds = facts_of(data.threshold_pairs(), data.threshold_talks())
    held = [data.held_out_pairs(), data.held_out_talks()]
    assert [list(part) for part in held] == [list(held[1])[:2], [*held[0], "writers 30 and 31", "the model q15"]]
    rows, talks = (list(chain(*part.values())) for part in held)
    measured = facts_of(rows, talks)  # type: ignore[arg-type]
    assert len({fact.text for talk in held[1]["the model q15"] for fact in talk.facts} & measured) == 122
    assert not training & measured and not thresholds & measured, "what measures is new to the detector"
    assert not facts_of(data.training_pairs(), []) & facts_of(data.threshold_pairs(), [])
    trained, kept = data.training_talks(), data.threshold_talks()
    assert not {talk.turns for talk in trained} & {talk.turns for talk in kept}
    assert {talk.writer for talk in trained} == {*data.TRAINING, *data.LATE, "q05", ""}
    assert {talk.writer for talk in data.late_talks()} == {*data.LATE, "q05"}
    assert {talk.writer for talk in data.threshold_talks(of_train=False)} == set(data.THRESHOLDS)


def test_a_larger_share_holds_the_smaller_ones() -> None:
    quarter, half, whole = (data.training_pairs(share) for share in (0.25, 0.5, 1.0))
    assert {row.pair for row in quarter} < {row.pair for row in half} < {row.pair for row in whole}
    assert 0.2 < len(quarter) / len(whole) < 0.3 and 0.45 < len(half) / len(whole) < 0.55
    assert 0.15 < len(data.training_talks(0.25)) / len(data.training_talks()) < 0.35


def test_second_readers_agree_with_the_writers() -> None:
    def rows(name: str) -> dict[str, Any]:
        lines = (data.FILES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
        return {row["id"]: row for row in map(json.loads, lines)}

    pairs, second = rows("writers.pairs"), rows("writers.second")
    talks = rows("writers.transcripts") | rows("models.transcripts")
    labels = [(pairs[name]["label"], row["label"]) for name, row in second.items() if "label" in row]
    kappa = measures.kappa(labels)
    assert len(labels) == 1364 and kappa is not None and round(kappa, 2) == 0.98
    first = {(name, fact): turn for name, row in second.items() for fact, turn in row.get("first_turns", {}).items()}
    told = {(name, one["fact_id"]): one["turn"] for name, row in talks.items() for one in row["disclosures"]}
    counts: Counter[str] = Counter()
    for (name, fact), turn in first.items():
        who = "first 23" if name < "W24" and name[0] == "W" else "others" if name[0] == "W" else "models"
        counts.update([who] + [f"{who} differ"] * (told.get((name, fact)) != turn))
    assert counts == {
        **{"first 23": 371, "first 23 differ": 5},
        **{"others": 167, "others differ": 2, "models": 54, "models differ": 3},
    }


def test_made_and_mined_pairs_are_what_their_labels_say() -> None:
    talks, rows = data.training_talks(0.02), data.training_pairs(0.02)
    told = {
        (fact.text, talk.turns[talk.disclosures[fact.id].turn][1]): talk
        for talk in talks
        for fact in talk.facts
        if fact.id in talk.disclosures
    }
    made = data.from_talks(talks)
    assert {(row.pair.fact, row.pair.utterance) for row in made if row.label == "disclosed"} == set(told)
    ground = data.mining_ground(talks, rows, 10**6, seed=1)
    assert {row.label for row in ground} == {"none"}
    assert not {(row.pair.fact, row.pair.utterance) for row in ground} & set(told)
    disclosed = {row.pair for row in rows if row.label != "none"}
    assert not {row.pair for row in ground} & disclosed
    before = [
        talk.disclosures[fact.id].turn if fact.id in talk.disclosures else len(talk.turns)
        for talk in talks
        for fact in talk.facts
    ]
    assert [len(silent) for _, silent, _ in data.unsaid(talks)] == before, "nothing after a first disclosure"
    assert len(data.mining_ground(talks, rows, 10, seed=1)) == 10
    order = data.hardest(ground[:20], lambda pairs: [float(len(pair.utterance)) for pair in pairs], 3)
    assert [len(row.pair.utterance) for row in order] == sorted(len(row.pair.utterance) for row in ground[:20])[:-4:-1]
    plain = data.in_so_many_words(rows)
    assert {row.label for row in plain} == {"disclosed", "none"}
    assert not any(row.pair.owner in row.pair.utterance for row in plain if row.label == "none"), "of another person"
    alien = data.strangers(rows, 0.5, random.Random(0))
    own = {(row.pair.fact, row.pair.utterance) for row in rows}
    assert alien and all(row.label == "none" for row in alien)
    assert not {(row.pair.fact, row.pair.utterance) for row in alien} & own


def test_all_turns_of_late_talks_that_tell_or_hint_are_learnt() -> None:
    facts = tuple(PrivateFact(name, "Ana", f"Ana has sold her {name}.") for name in ("piano", "car"))
    turns = tuple(("Ana" if turn % 2 else "Bo", f"Turn {turn}") for turn in range(12))
    talk = LabelledTranscript(facts, turns, {"piano": Disclosure(8, True, (11,))}, hints=frozenset([("piano", 6)]))
    rows = data.in_late_talks([talk])
    found = {(row.pair.fact.split()[-1], row.label, int(row.pair.utterance.split()[1])) for row in rows}
    assert {(name, turn) for name, label, turn in found if label == "disclosed"} == {("piano.", 8), ("piano.", 11)}
    assert {(name, turn) for name, label, turn in found if label == "hint"} == {("piano.", 6)}
    silent = [(name, turn) for name, label, turn in found if label == "none"]
    assert len(rows) == len(found) == 9 and len(silent) == 6 and ("piano.", 7) in silent
    assert not {("piano.", turn) for turn in (6, 9, 10)} & set(silent), "after the first disclosure nothing is silent"


def test_short_turns_are_read_with_more_turns_before_them() -> None:
    def read(words: int, utterance: str = "Since then, yes.") -> str:
        before = tuple(f"Bo: {'so ' * words}{turn}" for turn in range(5))
        return texts_of(Pair("Ana has sold her piano.", "Ana", "Ana", before, utterance))[1]

    assert [word for word in read(0).split() if word.isdigit()] == list("01234")
    assert [word for word in read(9).split() if word.isdigit()] == list("234"), "4 x 11 words and 3 are 47, too many"
    assert [word for word in read(30).split() if word.isdigit()] == list("34"), "never fewer than two"


@pytest.mark.parametrize(
    ("chances", "turn", "span"),
    [
        ({3: 0.9}, 3, (3, 3)),
        ({2: 0.95, 7: 0.9}, 2, (2, 2)),
        ({2: 0.5, 3: 0.5, 6: 0.5}, 2, (2, 6)),  # 4, 2 and 1 of 7: nine tenths are told by turn 6
        ({2: 0.05, 5: 0.6, 8: 0.3}, 5, (5, 8)),  # .05, .57, .114
        ({2: 0.2, 5: 0.6}, 5, (2, 5)),
        ({1: 0.0, 4: 1.0}, 4, (4, 4)),
    ],
)
def test_a_first_turn_is_an_interval(chances: dict[int, float], turn: int, span: tuple[int, int]) -> None:
    assert scores.between(chances, turn) == span


def test_every_pair_is_in_one_batch() -> None:
    rows = data.training_pairs(0.02)
    parts = reader.batches(rows, random.Random(0))
    assert sorted(id(row) for part in parts for row in part) == sorted(map(id, rows))
    assert max(map(len, parts)) <= reader.BATCH


class Small:
    """An encoder of two layers with the parts of the real one, and a tokenizer of letters: nothing is downloaded."""

    @staticmethod
    def made() -> tuple[Any, Any]:
        """Return encoder and tokenizer, always the same."""
        import torch
        from transformers import BertConfig, BertModel

        torch.manual_seed(7)
        config = BertConfig(
            vocab_size=130, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24
        )
        return BertModel(config, add_pooling_layer=False), Small.tokens

    @staticmethod
    def tokens(first: list[str], second: list[str], **_: Any) -> Any:
        """Return the codes of letters, padded."""
        import torch
        from transformers import BatchEncoding

        texts = [f"{one} {other}"[:60] for one, other in zip(first, second, strict=True)]
        longest = max(map(len, texts))
        codes = [[min(ord(char), 128) for char in text] + [0] * (longest - len(text)) for text in texts]
        ids = torch.tensor(codes)
        return BatchEncoding({"input_ids": ids, "attention_mask": (ids > 0).long()})


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training with a small encoder and few pairs."""
    monkeypatch.setattr(reader, "encoder_and_tokenizer", Small.made)


SETTINGS = reader.Settings(share=0.02, epochs=3, dtype="float32", max_pairs=64)


@pytest.mark.usefixtures("small")
def test_an_interrupted_training_ends_as_an_uninterrupted_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader.make(SETTINGS, tmp_path / "whole.npz", "cpu")
    assert not (tmp_path / "whole.checkpoint.pt").exists()
    real = reader.Training._save

    def stop(training: Any, rows: int) -> None:
        real(training, rows)
        if training.epoch == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(reader.Training, "_save", stop)
    with pytest.raises(KeyboardInterrupt):
        reader.make(SETTINGS, tmp_path / "part.npz", "cpu")
    assert (tmp_path / "part.checkpoint.pt").exists() and not (tmp_path / "part.npz").exists()
    monkeypatch.setattr(reader.Training, "_save", real)
    reader.make(SETTINGS, tmp_path / "part.npz", "cpu")
    with np.load(tmp_path / "whole.npz") as one, np.load(tmp_path / "part.npz") as other:
        assert one.files == other.files and one["0.output.dense.change"].dtype == np.int8
        for name in one.files:
            assert np.array_equal(one[name], other[name]), name


@pytest.mark.usefixtures("small")
def test_a_checkpoint_of_another_training_is_not_continued(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    training = reader.Training(SETTINGS, "cpu", random.Random(0), tmp_path / "x.checkpoint.pt")
    training.epoch = 2
    training._save(64)
    again = reader.Training(replace(SETTINGS, seed=2), "cpu", random.Random(0), tmp_path / "x.checkpoint.pt")
    again._continue(64)
    assert again.epoch == 0 and "of another training" in capsys.readouterr().err


def test_the_parts_of_a_detector_make_the_whole() -> None:
    """What the figures call `both` is what the detector answers, gate included."""
    said = ("I sold it.", "Rain again.", "Hm?", "I sold my piano.")
    rows = [Pair("Ana has sold her piano.", "Ana", "Ana", (), text) for text in said]

    class Told(LeakageDetector):
        def rows(self, pairs: Any) -> Any:
            rng = np.random.default_rng(0)
            return rng.random((len(pairs), len(features.NAMES + features.CROSSED))).astype(np.float32)

        def read(self, pairs: Any) -> Any:
            every = [pair.utterance for pair in rows]
            table = np.log(np.array([[0.2, 0.2, 0.6], [0.9, 0.05, 0.05], [0.5, 0.3, 0.2], [1, 1, 1]]))
            return table[[every.index(pair.utterance) for pair in pairs]].astype(np.float32)

    detector = Told(lambda texts: np.zeros((len(texts), 4), dtype=np.float32))
    cheap = detector.weights.probabilities(detector.rows(rows))
    middle = float(np.median(cheap[:, 1] + cheap[:, 2]))
    detector = detector.having(replace(detector.weights, gate=middle))  # type: ignore[assignment]
    parts = scores.parts_of(detector, rows)
    assert np.allclose(parts.both(detector.weights), detector.chances(rows))
    assert np.allclose(parts.chance("reader alone", detector.weights), [0.6, 0.05, 0.2, 1])
    assert parts.both(detector.weights)[3, 2] > 0.99, "a quotation needs no reader"
    fact, turns = PrivateFact("a", "Ana", rows[0].fact), tuple(("Ana", text) for text in said[::-1])
    talks = [LabelledTranscript((fact,), turns, {"a": Disclosure(turn, True)}) for turn in (3, 3, 2)]
    of_turns = scores.parts_of(detector, scores.pairs_in(talks))
    losses = {mix: fit.beside(replace(detector.weights, cheap=mix), talks, of_turns)[1] for mix in fit.MIXES}
    mix = fit.mixed(detector.weights, talks, of_turns).cheap
    assert losses[mix] <= fit.ALMOST * min(losses.values())
    assert all(losses[less] > fit.ALMOST * min(losses.values()) for less in fit.MIXES if less < mix)
    assert texts_of(rows[0])[0].startswith("I has sold")


def test_what_the_rule_calls_a_quotation_is_labelled_as_a_disclosure() -> None:
    """In every labelled file, and in plain statements that are made of all facts: by the owner, to it, of another."""
    rows = [*data.training_pairs(), *data.threshold_pairs(), *chain(*data.held_out_pairs().values())]
    assert {row.label for row in rows if quotes(row.pair)} == {"disclosed"}
    made = data.in_so_many_words(rows)
    found = [row.label for row in made if quotes(row.pair)]
    assert set(found) == {"disclosed"} and len(found) > 0.95 * sum(row.label == "disclosed" for row in made)
    talks = [*data.training_talks(), *data.threshold_talks(), *chain(*data.held_out_talks().values())]
    silent = [pair for _, pairs, _ in data.unsaid(talks) for pair in pairs if quotes(pair)]
    assert not silent, "no fact is quoted before the turn that tells it"


def test_the_page_has_the_markers_of_the_figures() -> None:
    page = table.PAGE.read_text(encoding="utf-8")
    assert page.index(table.BEGIN) < page.index(table.END) and page.count(table.BEGIN) == page.count(table.END) == 1
    assert page.count(table.CURVE_BEGIN) == page.count(table.CURVE_END) == 1


def test_the_figures_are_written_between_the_markers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With parts that guess, on a few labels: every table is there, and the rest of the page stays."""
    rng = np.random.default_rng(0)

    def guessed(_detector: Any, pairs: Any) -> scores.Parts:
        drawn = rng.dirichlet([1, 1, 1], size=(2, len(pairs)))
        return scores.Parts(rng.random(len(pairs)), drawn[0], np.log(drawn[1]), np.zeros(len(pairs), dtype=bool))

    page = tmp_path / "page.md"
    page.write_text(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n")
    held_rows, held_talks = data.held_out_pairs(), data.held_out_talks()
    rows, talks = data.threshold_pairs()[:80], data.threshold_talks()[:12]
    monkeypatch.setattr(table, "parts_of", guessed)
    monkeypatch.setattr(table, "PAGE", page)
    monkeypatch.setattr(table, "DRAWS", 5)
    monkeypatch.setattr(data, "threshold_pairs", lambda: rows)
    monkeypatch.setattr(data, "threshold_talks", lambda **_: talks)
    monkeypatch.setattr(data, "held_out_pairs", lambda: {name: each[:80] for name, each in held_rows.items()})
    monkeypatch.setattr(data, "held_out_talks", lambda: {name: each[:6] for name, each in held_talks.items()})
    text = table.write()
    assert page.read_text() == f"before\n{table.BEGIN}\n{text}\n{table.END}\nafter\n"
    assert all(f"| pairs of {name} |" in text and f"| right, pairs of {name} |" in text for name in held_rows)
    assert all(f"| conversations of {name} |" in text for name in held_talks)
    assert all(text.count(f"| {part} |") == len(held_rows) + len(held_talks) for part in scores.PARTS)
    monkeypatch.setattr(LeakageDetector, "read", lambda _, pairs: guessed(_, pairs).read)
    page.write_text(f"before\n{table.CURVE_BEGIN}\nold\n{table.CURVE_END}\nafter\n")
    curve = table.write_curve({"0.25": tmp_path / "quarter.npz"})
    assert page.read_text() == f"before\n{table.CURVE_BEGIN}\n{curve}\n{table.CURVE_END}\nafter\n"
    assert "\n| 0.25 | " in curve and "\n| 1 | " in curve
    lines = [*text.splitlines(), *curve.splitlines()]
    assert all(one.count("|") == other.count("|") for one, other in pairwise(lines) if one and other.startswith("|"))


def test_the_commands_refuse_what_is_not_there() -> None:
    for arguments in (
        ["curve", "0.5=none.npz"],
        ["reader", "--share", "2"],
        ["fit", "--sensitivity", "0.9"],
    ):
        result = CliRunner().invoke(train_leakage.main, arguments)
        assert result.exit_code == 2, result.output
