"""Findings over a whole conversation: which turns disclose or hint at each private fact, and which turn is the first.

`label_of` is the one place that decides a label. The detector reads each pair of a fact and a turn by itself; here the
circumstances of the turn are taken into account, and that most facts of a conversation stay private. The label of a
turn never depends on a later turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from localsim.leakage.detector import Finding, LeakageDetector, Weights, evidence
from localsim.leakage.pairs import Pair, PrivateFact, pairs_of

Kind = Literal["self", "omniscient", "passed_on", "repeat"]
"""By the owner; by an agent who had not been told; by one who had been told, to somebody new; to nobody new."""
Row = tuple[PrivateFact, int, str, Finding]
"""Fact, turn, speaker, the detector's finding."""
Turns = tuple[tuple[str, str], ...]
"""Speaker and text of each turn."""
Readers = Sequence[tuple[str, ...] | None]
"""Who could read each turn; None: everybody."""


@dataclass(frozen=True)
class Leak:
    """The first disclosure of a fact: by its owner, or by another agent who had not been told it."""

    fact: PrivateFact
    turn: int
    speaker: str
    kind: Kind
    finding: Finding


@dataclass(frozen=True)
class Leakage:
    """The leaks and findings of one conversation."""

    leaks: tuple[Leak, ...]
    """The first disclosure of each fact that has one, in order of turns."""
    findings: tuple[tuple[PrivateFact, int, Finding], ...]
    """Every hint and disclosure."""
    kinds: tuple[Kind, ...] = ()
    """The kind of each finding."""


@dataclass(frozen=True)
class Circumstances:
    """Everything beside the words that bears on the label of a fact in a turn; a scenario knows it."""

    term: str = ""
    """The first term of the fact that the turn utters."""
    term_discloses: bool = False
    """True if such a term, a friend's name, is a disclosure at once, and nothing else is."""
    ascribed: bool = False
    """True if the turn says of the owner what the term means, such as "your limit is $80", and the owner had not."""
    shared: bool = False
    """True if the speaker, who does not own the fact, holds it too."""
    other_amounts: bool = False
    """True if the fact is an amount or a number and the turn names only others: who lies about it does not tell it."""


NOTHING = Finding("none", 0.0, 0.0, "")
_PLAIN = Circumstances()


def label_of(finding: Finding, around: Circumstances, weights: Weights) -> Finding:
    """The finding for a fact in a turn with its final label (disclosed, hint or none) and its probability in a talk.

    It looks at this turn and what comes before, so no later turn changes it. A fact has many turns to be mistaken in,
    and most facts stay private, so a conversation has a probability (`talk_chance`) and a threshold (`talk_from`) of
    its own; what only passes the thresholds of a single pair is a hint. An uttered term raises the label by one step,
    since a price may be offered without being the target; a name, or a price that is called the other's target,
    discloses at once. A shared fact is never a finding.
    """
    if around.shared or (around.term_discloses and not around.term):
        return NOTHING
    if around.term_discloses or around.ascribed:
        return Finding("disclosed", 1.0, finding.similarity, around.term)
    chance = weights.talk_chance(finding.probability) if finding.probability > 0 else 0.0
    stands = finding.probability > 0 and chance >= weights.talk_from
    if not stands and finding.label == "none":
        return Finding("hint", 0.0, 0.0, around.term) if around.term else NOTHING
    if around.term:
        return replace(finding, label="disclosed", probability=max(chance, weights.talk_from))
    disclosed = stands and not around.other_amounts
    return replace(finding, label="disclosed" if disclosed else "hint", probability=chance)


def read(detector: LeakageDetector, talks: Sequence[tuple[tuple[PrivateFact, ...], Turns]]) -> list[list[Row]]:
    """The detector's findings in conversations, each given as its facts and its turns (speaker, text), in one batch."""
    asked = [list(pairs_of(facts, turns)) for facts, turns in talks]
    found = iter(detector.classify([pair for pairs in asked for _, _, pair in pairs]))
    return [in_turns([(*each, next(found)) for each in pairs], detector.weights) for pairs in asked]


def in_turns(found: Sequence[tuple[PrivateFact, int, Pair, Finding]], weights: Weights) -> list[Row]:
    """The findings of one conversation, each in view of its turn: its length, the other facts (`Weights.beside`)."""
    best: dict[int, float] = {}
    for _, turn, _, finding in found:
        best[turn] = max(best.get(turn, 0.0), finding.probability)
    rows: list[Row] = []
    for fact, turn, pair, finding in found:
        chance = weights.beside(finding.probability, len(pair.utterance.split()), best[turn])
        shown = finding.evidence or (evidence(pair) if weights.talk_chance(chance) >= weights.talk_from else "")
        rows.append((fact, turn, pair.speaker, replace(finding, probability=chance, evidence=shown)))
    return rows


class _Told:
    """Who has been told a fact so far."""

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._told: set[str] | None = {owner}
        """None: everybody."""

    def kind(self, speaker: str, readers: tuple[str, ...] | None) -> Kind:
        """Return the kind of a turn that tells the fact, or hints at it, to its readers."""
        if speaker == self._owner:
            return "self"
        if self._told is None:
            return "repeat"
        if speaker not in self._told:
            return "omniscient"
        return "passed_on" if readers is None or set(readers) - self._told else "repeat"

    def tell(self, speaker: str, readers: tuple[str, ...] | None) -> None:
        """The fact was told to the readers of a turn."""
        if self._told is not None:
            self._told = None if readers is None else {*self._told, speaker, *readers}


def decided(
    rows: Sequence[Row],
    weights: Weights,
    around: Mapping[tuple[str, int], Circumstances] | None = None,
    readers: Readers | None = None,
) -> Leakage:
    """The leaks of one conversation, from rows in order of turns; `around` is keyed by (fact id, turn).

    Of turns that only some can read (`readers`), a fact that an agent was not told comes out again when that agent uses
    it: a fact has one disclosure by its owner, and one leak by each agent who had not been told it.
    """
    around = around or {}
    leaks: list[Leak] = []
    told: dict[str, _Told] = {}
    findings, kinds = [], []
    for fact, turn, speaker, finding in rows:
        final = label_of(finding, around.get((fact.id, turn), _PLAIN), weights)
        if final.label == "none":
            continue
        heard = readers[turn] if readers is not None else None
        kind = told.setdefault(fact.id, _Told(fact.owner)).kind(speaker, heard)
        findings.append((fact, turn, final))
        kinds.append(kind)
        if final.label == "disclosed":
            if kind == "omniscient" or (kind == "self" and not any(leak.fact.id == fact.id for leak in leaks)):
                leaks.append(Leak(fact, turn, speaker, kind, final))
            told[fact.id].tell(speaker, heard)
    return Leakage(tuple(sorted(leaks, key=lambda leak: leak.turn)), tuple(findings), tuple(kinds))


def track(detector: LeakageDetector, talks: Sequence[tuple[tuple[PrivateFact, ...], Turns]]) -> list[Leakage]:
    """The leaks of conversations by their words alone, without a scenario's circumstances."""
    return [decided(rows, detector.weights) for rows in read(detector, talks)]
