"""The variants of `run --perturb`: wording, line breaks, temperature and penalties of a run, changed together.

Variant 0 is the run as it is without --perturb. The others are cells of a fixed orthogonal design, the same for every
scenario, mode and seed, so that pairs of modes stay pairs. It is built from sums in the field with four elements: each
wording comes once in eight variants, each level of the other factors twice, and no two factors vary in step. All 32
cells together hold each pair of levels of any two factors equally often.

An episode has the same seed in every variant. Scenario, seed and variant are therefore crossed: the variance between
seeds can be told from the variance between variants, and a player that ignores its prompt differs in no variant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from localsim.conversation.episode import Sampling
from localsim.conversation.wording.paraphrases import WORDINGS
from localsim.conversation.wording.wordings import Wording


@dataclass(frozen=True)
class Spacing:
    """The white space of a prompt."""

    name: str
    between: str
    """Between two parts of the instructions."""
    mark: str
    """Before each fact of a list."""


SPACINGS = (
    Spacing("plain", "\n", "- "),
    Spacing("blank lines and stars", "\n\n", "* "),
    Spacing("indented lists", "\n", "  - "),
    Spacing("blank lines", "\n\n", "- "),
)
TEMPERATURES = (1.25, 0.9, 0.75, 1.1)
"""Factors of the temperature."""
REPEAT_PENALTY = 1.1
"""The repeat penalty of a variant that switches it on."""


@dataclass(frozen=True)
class Variant:
    """One way to put the same task to a model. The fields `dry` and `repeat` switch a penalty on or off."""

    number: int
    wording: int = 0
    spacing: Spacing = SPACINGS[0]
    temperature: float = 1.0
    dry: bool = False
    repeat: bool = False

    @property
    def words(self) -> Wording:
        """The wording of the instructions."""
        return WORDINGS[self.wording]

    def sampling(self, usual: Sampling) -> Sampling:
        """Return the settings of this variant in a run with the usual ones."""
        if not self.number:
            return usual
        return replace(
            usual,
            temperature=round(usual.temperature * self.temperature, 6),
            dry_multiplier=_switched(usual.dry_multiplier, 0.0, Sampling.dry_multiplier, self.dry),
            repeat_penalty=_switched(usual.repeat_penalty, 1.0, REPEAT_PENALTY, self.repeat),
        )


def _switched(value: float, off: float, on: float, switch: bool) -> float:
    if not switch:
        return value
    return on if value == off else off


_TIMES_2 = (0, 2, 3, 1)
_TIMES_3 = (0, 3, 1, 2)
"""Products in the field with four elements, whose sums are `^`."""
_SHIFTS = (1, 3, 2)
"""Added to layout, temperature and penalties in the second half of the wordings."""

MOST = 1 + (len(WORDINGS) - 1) * len(SPACINGS)
"""The largest number of variants."""


@cache
def variant_of(number: int) -> Variant:
    """Return a variant by its number, from 0 to MOST - 1."""
    if not 0 <= number < MOST:
        raise ValueError(f"variant {number}: there are {MOST}")
    if number == 0:
        return Variant(0)
    row, place = divmod(number - 1, len(WORDINGS) - 1)
    half, column = divmod(place, len(SPACINGS))
    spacing, temperature, penalties = (
        row ^ product ^ half * shift
        for product, shift in zip((column, _TIMES_2[column], _TIMES_3[column]), _SHIFTS, strict=True)
    )
    return Variant(
        number, 1 + place, SPACINGS[spacing], TEMPERATURES[temperature], bool(penalties & 1), bool(penalties & 2)
    )
