"""Drafts: several lines are written, and one of them becomes the turn.

`Drafts` writes one with the persona and one without, and asks which is better in both orders (arXiv 2408.08631).
`Best` takes the line of the lowest energy (after arXiv 2310.18342, whose latent space is not claimed).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localsim.conversation.episode import Observation
from localsim.conversation.minds.steps import UNSURE, Answer, Consult, Draft, Drafted, Note, Step, Work, likelihood
from localsim.conversation.rules.forms import OneOf

PICK = ("first", "second")
ASK_PICK = "Two lines that you could say now. First: {first} Second: {second} Which one is better, first or second?"
YES_NO = ("yes", "no")
ASK_OF = "A line that you could say now: {line} Is it {of}?"
FITS = "a sensible answer to what was said before"


@dataclass(frozen=True)
class Drafts(Step):
    """Two drafts, with and without the persona. Only the same choice in both orders counts, else the first."""

    name: str = "drafts"
    tokens: int = 300
    aside: bool = True

    def work(self, seen: Observation, notes: tuple[Note, ...]) -> Work:  # noqa: ARG002 - the drafts read the notes
        """Return one of the drafts."""
        own: Drafted = yield Draft()
        plain: Drafted = yield Draft(persona=False)
        if plain.line == own.line:
            return own
        votes = []
        for first, second in ((own, plain), (plain, own)):
            ask = ASK_PICK.format(first=first.line, second=second.line)
            answer: Answer = yield Consult(self.name, ask, "Better:", OneOf(PICK, "Better:"), 8, sure=True)
            votes.append({"first": first, "second": second}.get(answer.text))
        return plain if votes == [plain, plain] else own

    def stated(self) -> Mapping[str, Any]:
        return {"version": "1"}


@dataclass(frozen=True)
class Best(Step):
    """The best of n lines: E = sum over attributes of -weight * log p(attribute) - mu * log p(it fits)."""

    of: tuple[str, ...]
    """What the line is to be, in words; the agent itself says how likely it is that."""
    n: int = 4
    weight: float = 1.0
    mu: float = 1.0
    name: str = "best"
    tokens: int = 200

    def work(self, seen: Observation, notes: tuple[Note, ...]) -> Work:  # noqa: ARG002
        """Return the draft with the lowest energy; of equal ones the first."""
        drafts: list[Drafted] = []
        for _ in range(self.n):
            drafts.append((yield Draft()))
        energies: dict[str, float] = {}
        for draft in drafts:
            if draft.line not in energies:
                energies[draft.line] = yield from self._energy(draft.line)
        return min(drafts, key=lambda draft: energies[draft.line])

    def _energy(self, line: str) -> Any:
        total = 0.0
        for of, weight in (*((each, self.weight) for each in self.of), (FITS, self.mu)):
            if weight:
                ask = ASK_OF.format(line=line, of=of)
                answer = yield Consult(self.name, ask, "Answer:", OneOf(YES_NO, "Answer:"), 8, sure=True)
                total -= weight * math.log(max(likelihood(answer, "yes"), UNSURE**4))
        return total

    def stated(self) -> Mapping[str, Any]:
        return {"version": "1", "of": self.of, "n": self.n, "weight": self.weight, "mu": self.mu}
