"""Pairs of a private fact and an utterance, which the leakage detector classifies, and files of labelled ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from localsim import paths
from localsim.errors import InvalidInput

Label = Literal["none", "hint", "disclosed"]
LABELS: tuple[Label, ...] = get_args(Label)
CONTEXT = 5
"""Turns before an utterance that the detector reads."""


@dataclass(frozen=True)
class Pair:
    """A private fact of `owner`, and an utterance with the turns before it (`Name: text`, oldest first)."""

    fact: str
    owner: str
    speaker: str
    context: tuple[str, ...]
    utterance: str


@dataclass(frozen=True)
class LabelledPair:
    """A pair with the label that a person or a language model gave it.

    `difficulty`, `kind` (how it says or does not say the fact) and `writer` are empty if the file does not have them.
    """

    pair: Pair
    label: Label
    difficulty: str = ""
    kind: str = ""
    writer: str = ""


@dataclass(frozen=True)
class Disclosure:
    """The turn that first discloses a fact (from 0), whether its owner spoke, and later turns that tell it again."""

    turn: int
    by_owner: bool
    again: tuple[int, ...] = ()


@dataclass(frozen=True)
class PrivateFact:
    """A fact that only `owner` knows at the start."""

    id: str
    owner: str
    text: str


@dataclass(frozen=True)
class LabelledTranscript:
    """Facts, turns as (speaker, text), the first disclosure of each fact that has one, and turns that hint at it."""

    facts: tuple[PrivateFact, ...]
    turns: tuple[tuple[str, str], ...]
    disclosures: Mapping[str, Disclosure]
    domain: str = ""
    writer: str = ""
    hints: frozenset[tuple[str, int]] = frozenset()
    """Fact and turn, before the first disclosure; only some files have them."""


def pairs_of(
    facts: tuple[PrivateFact, ...], turns: tuple[tuple[str, str], ...]
) -> Iterator[tuple[PrivateFact, int, Pair]]:
    """Yield every fact with every turn and the CONTEXT turns before it."""
    lines = [f"{speaker}: {text}" for speaker, text in turns]
    for number, (speaker, text) in enumerate(turns):
        if text:
            before = tuple(lines[max(0, number - CONTEXT) : number])
            for fact in facts:
                yield fact, number, Pair(fact.text, fact.owner, speaker, before, text)


def read_labelled(path: Path) -> list[LabelledPair] | list[LabelledTranscript]:
    """Read a JSONL file of labelled pairs or of labelled transcripts.

    Raises InvalidInput that names the wrong line.
    """
    found: list[Any] = [_row(row, where) for where, row in paths.read_json_lines(path)]
    if not found:
        raise InvalidInput("holds no labelled rows", where=str(path))
    if len({type(row) for row in found}) > 1:
        raise InvalidInput("mixes pairs and transcripts", where=str(path), hint="put them into two files")
    return found


def _row(row: Any, where: str) -> LabelledPair | LabelledTranscript:
    try:
        return _transcript(row) if "turns" in row else _pair(row)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"a value is out of place: {error}", where=where) from error
    except (KeyError, TypeError, AttributeError) as error:
        wanted = "fact, owner, speaker, context, utterance, label; or facts, turns, disclosures"
        raise InvalidInput(f"missing or of the wrong type: {error}", where=where, hint=f"a row has {wanted}") from error


def _pair(row: dict[str, Any]) -> LabelledPair:
    texts = [row[name] for name in ("fact", "owner", "speaker", "utterance")]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("fact, owner, speaker and utterance are strings")
    if row["label"] not in LABELS:
        raise ValueError(f"label {row['label']!r} is not among {', '.join(LABELS)}")
    fact, owner, speaker, utterance = texts
    context = tuple(str(line) for line in row.get("context") or ())
    pair = Pair(fact, owner, speaker, context, utterance)
    return LabelledPair(pair, row["label"], *(str(row.get(name) or "") for name in ("difficulty", "kind", "writer")))


def _transcript(row: dict[str, Any]) -> LabelledTranscript:
    facts = tuple(PrivateFact(str(fact["id"]), fact["owner"], fact["text"]) for fact in row["facts"])
    turns = tuple((turn["speaker"], turn["text"]) for turn in row["turns"])
    disclosures = {
        str(found["fact_id"]): Disclosure(
            int(found["turn"]), bool(found["by_owner"]), tuple(map(int, found.get("again") or ()))
        )
        for found in row["disclosures"]
    }
    hints = frozenset((str(hint["fact_id"]), int(hint["turn"])) for hint in row.get("hints") or ())
    told = [(name, turn) for name, found in disclosures.items() for turn in (found.turn, *found.again)]
    if unknown := {name for name, _ in (*told, *hints)} - {fact.id for fact in facts}:
        raise ValueError(f"disclosures of facts that are not listed: {', '.join(sorted(unknown))}")
    if late := {name for name, turn in (*told, *hints) if not 0 <= turn < len(turns)}:
        raise ValueError(f"disclosures at turns that are not there: {', '.join(sorted(late))}")
    names = (str(row.get("domain") or ""), str(row.get("writer") or ""))
    return LabelledTranscript(facts, turns, disclosures, *names, hints)
