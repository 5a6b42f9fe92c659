"""The labelled files, split by writer: what may be trained on, what thresholds are fitted to, what only measures.

Writers 1 to 12 and 17 to 29, the model q05 and train.* are for training, except every fifth conversation of train.*, of
writers 24 to 29 and of q05, which fit thresholds with writers 13 and 14. Writers 15, 16, 30 and 31, the model q15 and
test.* are held out: they only measure. q05 and q15 talked in the same scenarios: the facts of q15 are held out too.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from localsim.leakage import wording
from localsim.leakage.pairs import LabelledPair, LabelledTranscript, Pair, PrivateFact, pairs_of, read_labelled

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = ROOT / "scenarios" / "leakage"
TRAINING = tuple(f"{number:02}" for number in [*range(1, 13), *range(17, 24)])
LATE = tuple(f"{number}" for number in range(24, 30))
"""Writers whose conversations have hints and what is told again; they made no pairs."""
THRESHOLDS = ("13", "14")
HELD_OUT = ("15", "16")
LATE_HELD_OUT = ("30", "31")
EVERY = 5
"""Of so many conversations of train.*, LATE and q05, one is not trained on."""


_AGREEING = [
    (re.compile(rf"\b{wrong}\b"), right)
    for wrong, right in (
        ("I is", "I am"), ("I has", "I have"), ("I does", "I do"), ("I knows", "I know"), ("I wants", "I want"),
        ("you is", "you are"), ("you was", "you were"), ("you has", "you have"), ("you does", "you do"),
        ("you knows", "you know"), ("you wants", "you want"),
    )
]  # fmt: skip


def spoken(fact: str, owner: str, speaker: str) -> str:
    """Return the fact as a sentence that `speaker` could say literally."""
    text = wording.person(fact, owner, speaker)
    for wrong, right in _AGREEING:
        text = wrong.sub(right, text)
    return text[:1].upper() + text[1:]


def _pairs(name: str, writers: Sequence[str] = ()) -> list[LabelledPair]:
    rows: Any = read_labelled(FILES / f"{name}.pairs.jsonl")
    return [row for row in rows if not writers or row.writer in writers]


def _talks(name: str, writers: Sequence[str] = ()) -> list[LabelledTranscript]:
    rows: Any = read_labelled(FILES / f"{name}.transcripts.jsonl")
    return [row for row in rows if not writers or row.writer in writers]


def training_pairs(share: float = 1.0) -> list[LabelledPair]:
    """Read the pairs to train on, or those of a share of the facts: a larger share holds the smaller ones."""
    return [row for row in [*_pairs("train"), *_pairs("writers", TRAINING)] if _drawn(row.pair.fact, share)]


def training_talks(share: float = 1.0) -> list[LabelledTranscript]:
    """Read the conversations to train on, or a share of them."""
    kept = [talk for rows in _parted() for place, talk in enumerate(rows) if place % EVERY]
    return [talk for talk in [*kept, *_talks("writers", TRAINING)] if _drawn(talk.turns[0][1], share)]


def late_talks() -> list[LabelledTranscript]:
    """Read those conversations to train on that have hints and what is told again."""
    return [talk for rows in _parted()[1:] for place, talk in enumerate(rows) if place % EVERY]


def _parted() -> list[list[LabelledTranscript]]:
    """Return the conversations of which one in EVERY fits thresholds; of q05 only facts that do not measure."""
    measured = {fact.text for talk in _talks("models", ("q15",)) for fact in talk.facts}
    own = []
    for talk in _talks("models", ("q05",)):
        facts = tuple(fact for fact in talk.facts if fact.text not in measured)
        told = {fact.id: talk.disclosures[fact.id] for fact in facts if fact.id in talk.disclosures}
        own += [replace(talk, facts=facts, disclosures=told)] if facts else []
    return [_talks("train"), _talks("writers", LATE), own]


def threshold_pairs() -> list[LabelledPair]:
    """Read the pairs that thresholds are fitted to."""
    return _pairs("writers", THRESHOLDS)


def threshold_talks(*, of_train: bool = True) -> list[LabelledTranscript]:
    """Read the conversations that thresholds are fitted to; `of_train` adds those that `training_talks` leaves out."""
    kept = [talk for rows in _parted() for talk in rows[::EVERY]]
    return [*_talks("writers", THRESHOLDS), *(kept if of_train else ())]


def held_out_pairs() -> dict[str, list[LabelledPair]]:
    """Read the pairs that only measure, by file."""
    return {"writers 15 and 16": _pairs("writers", HELD_OUT), "test.*": _pairs("test")}


KINDS = {
    "writers 15 and 16": "everyday conversations",
    "test.*": "conversations written to mislead",
    "writers 30 and 31": "late and hinted disclosures",
    "the model q15": "conversations of Qwen2.5-Coder-1.5B",
}
"""What reports call the files of `held_out_talks`; language models wrote all of them."""


def held_out_talks() -> dict[str, list[LabelledTranscript]]:
    """Read the conversations that only measure, by file."""
    return {
        "writers 15 and 16": _talks("writers", HELD_OUT),
        "test.*": _talks("test"),
        "writers 30 and 31": _talks("writers", LATE_HELD_OUT),
        "the model q15": _talks("models", ("q15",)),
    }


def _drawn(text: str, share: float) -> bool:
    """Return True for a share of all texts, always the same."""
    return share >= 1 or int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") < share * 2**48


# ---- pairs made from these ------------------------------------------------------------------------------------------


def unsaid(talks: Iterable[LabelledTranscript]) -> Iterator[tuple[PrivateFact, list[Pair], Pair | None]]:
    """Yield each fact with the turns that do not tell it, and the turn that does first, if one does.

    Turns after the first disclosure are left out, because they may tell the fact again.
    """
    for talk in talks:
        by_fact: dict[str, list[tuple[int, Pair]]] = {fact.id: [] for fact in talk.facts}
        for fact, turn, pair in pairs_of(talk.facts, talk.turns):
            by_fact[fact.id].append((turn, pair))
        for fact in talk.facts:
            end = talk.disclosures[fact.id].turn if fact.id in talk.disclosures else len(talk.turns)
            told = next((pair for turn, pair in by_fact[fact.id] if turn == end), None)
            yield fact, [pair for turn, pair in by_fact[fact.id] if turn < end], told


def from_talks(talks: Sequence[LabelledTranscript]) -> list[LabelledPair]:
    """Pair each fact with its disclosing turn and four turns that do not tell it: two alike in words, two at random."""
    rng = random.Random(0)
    found: list[LabelledPair] = []
    for _, silent, told in unsaid(talks):
        alike = sorted(silent, key=_alike, reverse=True)
        chosen = dict.fromkeys([*alike[:2], *rng.sample(alike, min(2, len(alike)))])
        found += [LabelledPair(pair, "none") for pair in chosen]
        found += [LabelledPair(told, "disclosed")] if told else []
    return found


def in_late_talks(talks: Sequence[LabelledTranscript], silent: int = 3) -> list[LabelledPair]:
    """Pair each fact with all turns that tell it or hint at it, and with `silent` turns of those that do neither.

    Of the silent turns, two are alike in words, one is just before the first disclosure, the others are random.
    """
    rng = random.Random(0)
    found: list[LabelledPair] = []
    for talk in talks:
        pairs = {(fact.id, turn): pair for fact, turn, pair in pairs_of(talk.facts, talk.turns)}
        for fact in talk.facts:
            told = talk.disclosures.get(fact.id)
            telling = {told.turn, *told.again} if told else set()
            hints = {turn for name, turn in talk.hints if name == fact.id}
            before = [turn for turn in range(told.turn if told else len(talk.turns)) if (fact.id, turn) in pairs]
            quiet = [turn for turn in before if turn not in hints]
            alike = sorted(quiet, key=lambda turn: _alike(pairs[fact.id, turn]), reverse=True)
            chosen = dict.fromkeys([*alike[:2], *(quiet[-1:] if told else ()), *rng.sample(quiet, len(quiet))])
            found += [LabelledPair(pairs[fact.id, turn], "none") for turn in list(chosen)[:silent]]
            found += [LabelledPair(pairs[fact.id, turn], "hint") for turn in sorted(hints)]
            found += [LabelledPair(pairs[fact.id, turn], "disclosed") for turn in sorted(telling)]
    return found


def mining_ground(
    talks: Sequence[LabelledTranscript], rows: Sequence[LabelledPair], most: int, seed: int
) -> list[LabelledPair]:
    """Return pairs that tell nothing, from which the ones that a reader mistakes are drawn: at most so many.

    They are turns of the conversations in which a fact is not yet told, and the labelled pairs with the label none.
    """
    found = [LabelledPair(pair, "none") for _, silent, _ in unsaid(talks) for pair in silent]
    found += [row for row in rows if row.label == "none"]
    return random.Random(seed).sample(found, min(most, len(found)))


def _alike(pair: Pair) -> int:
    return len(wording.content_words(pair.fact) & wording.content_words(pair.utterance))


def in_so_many_words(rows: Sequence[LabelledPair]) -> list[LabelledPair]:
    """Plain statements of each fact: by its owner or to its owner (disclosed), and about another person (none).

    Labelled pairs with the fact's own words are mostly traps; without plain statements, a reader learns to mistrust
    plain speech. A fact of a conversation in which it never comes out would otherwise be seen as never told at all.
    Half of the statements follow unrelated small talk: the context of a labelled pair is mostly about its fact, and a
    reader that saw no other context mistrusts a fact after unrelated turns.
    """
    rng, found = random.Random(1), []
    talk = [line.partition(": ")[2] for row in rows for line in row.pair.context]
    listeners = {(row.pair.fact, row.pair.owner): _listener(row.pair) for row in rows}
    for (fact, owner), other in sorted(listeners.items()):
        start = rng.choice(["", "", "Look. ", "By the way: ", "Honestly? ", "To be honest with you. "])
        end = rng.choice(["", "", " So now you know.", " By the way.", " Imagine that.", " That's how it is."])
        for speaker, label in ((rng.choice([owner, owner, other]), "disclosed"), (rng.choice([owner, other]), "none")):
            if label == "none" and (owner not in fact or rng.random() < 0.5):
                continue
            said = spoken(fact, owner, speaker)
            if label == "none":
                said = fact.replace(owner, rng.choice(["My cousin", "My neighbour", "A friend of mine", "My brother"]))
            listener = other if speaker == owner else owner
            before = [f"{name}: {rng.choice(talk)}" for name in (speaker, listener)[rng.randrange(2) :]] if talk else []
            context = tuple(before) if rng.random() < 0.5 else ()
            pair = Pair(fact, owner, speaker, context, f"{start}{said}{end}")
            found.append(LabelledPair(pair, "disclosed" if label == "disclosed" else "none"))
    return found


def _listener(pair: Pair) -> str:
    names = [pair.speaker, *(line.partition(": ")[0] for line in pair.context), "Sam", "Robin"]
    return next(name for name in names if name != pair.owner)


def strangers(rows: Sequence[LabelledPair], share: float, rng: random.Random) -> list[LabelledPair]:
    """Pair utterances with facts of other rows, put in the name of the same owner; `share` of the rows get one."""
    found = []
    for row in rng.sample(list(rows), int(len(rows) * share)):
        other = rng.choice(rows).pair
        if other.fact != row.pair.fact:
            fact = other.fact.replace(other.owner, row.pair.owner)
            found.append(LabelledPair(replace(row.pair, fact=fact), "none"))
    return found


def hardest(
    ground: Sequence[LabelledPair], score: Callable[[Sequence[Pair]], Sequence[float]], count: int
) -> list[LabelledPair]:
    """Return the pairs without a disclosure that `score` finds most probable."""
    chances = score([row.pair for row in ground])
    order = sorted(range(len(ground)), key=lambda place: -chances[place])
    return [ground[place] for place in order[:count]]
