"""Findings over a whole conversation: where each private fact came out first, and who let it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from localsim.leakage.detector import Finding, LeakageDetector, Weights
from localsim.leakage.pairs import PrivateFact, pairs_of

Kind = Literal["self", "omniscient"]
Row = tuple[PrivateFact, int, str, Finding]
"""Fact, turn, speaker, finding."""


@dataclass(frozen=True)
class Leak:
    """A fact in the open: given away by its owner, or used by somebody whom nobody had told it."""

    fact: PrivateFact
    turn: int
    speaker: str
    kind: Kind
    finding: Finding


@dataclass(frozen=True)
class Talk:
    """What was found in a conversation."""

    leaks: tuple[Leak, ...]
    """The first disclosure of each fact that has one, in order of turns."""
    findings: tuple[tuple[PrivateFact, int, Finding], ...]
    """Every hint and disclosure."""


def track(
    detector: LeakageDetector,
    talks: Sequence[tuple[tuple[PrivateFact, ...], tuple[tuple[str, str], ...]]],
) -> list[Talk]:
    """Look through conversations, each given as its facts and its turns (speaker, text), all in one batch."""
    asked = [list(pairs_of(facts, turns)) for facts, turns in talks]
    found = iter(detector.classify([pair for pairs in asked for _, _, pair in pairs]))
    return [
        talk_of(settled([(fact, turn, pair.speaker, next(found)) for fact, turn, pair in pairs], detector.weights))
        for pairs in asked
    ]


def settled(rows: Sequence[Row], weights: Weights) -> list[Row]:
    """Of what looks like a disclosure in a talk, what stands; the rest are hints.

    A fact has many turns to be mistaken in, so a talk has a line of its own (`talk_from`), and a turn that is much less
    sure than another one about the same fact (`talk_near_most`) is not the one that gave it away.
    """
    most: dict[str, float] = {}
    for fact, _, _, finding in rows:
        most[fact.id] = max(most.get(fact.id, 0.0), finding.probability)
    found = []
    for fact, turn, speaker, finding in rows:
        stands = finding.probability >= max(weights.talk_from, weights.talk_near_most * most[fact.id])
        if finding.label == "disclosed" and not stands:
            finding = replace(finding, label="hint")
        found.append((fact, turn, speaker, finding))
    return found


def talk_of(rows: Sequence[Row]) -> Talk:
    """What rows of (fact, turn, speaker, finding), in order of turns, come to."""
    first: dict[str, Leak] = {}
    for fact, turn, speaker, finding in rows:
        if finding.label == "disclosed" and fact.id not in first:
            kind: Kind = "self" if speaker == fact.owner else "omniscient"
            first[fact.id] = Leak(fact, turn, speaker, kind, finding)
    leaks = tuple(sorted(first.values(), key=lambda leak: leak.turn))
    return Talk(leaks, tuple((fact, turn, found) for fact, turn, _, found in rows if found.label != "none"))
