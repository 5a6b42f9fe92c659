"""Mixtures: names such as `mix:starter-peeks@0.5,starter`, where a draw decides which of two models writes a reply.

With a constructed control as the first model, the share is its dose: exact by construction, and free to choose.
"""

from __future__ import annotations

from dataclasses import dataclass

from localsim.errors import InvalidInput
from localsim.models.minds import is_mind, split

PREFIX = "mix:"


@dataclass(frozen=True)
class Mixture:
    """Two models and the share of replies that the first one writes."""

    first: str
    share: float
    """Probability, 0 to 1."""
    other: str

    @property
    def parts(self) -> tuple[str, str]:
        """The names of both models."""
        return self.first, self.other


def is_mixture(name: str) -> bool:
    """True if a model name means a mixture."""
    return name.startswith(PREFIX)


def mixture_of(name: str) -> Mixture:
    """The mixture that a name means. Raises InvalidInput if it is not `mix:MODEL@SHARE,OTHER`."""
    first, at, rest = name.removeprefix(PREFIX).rpartition("@")
    share, comma, other = rest.partition(",")
    parts = (first.strip(), other.strip())
    try:
        number = float(share)
    except ValueError:
        number = -1.0
    if not (at and comma and all(parts) and 0 <= number <= 1) or any(
        is_mixture(part) or is_mind(part) for part in parts
    ):
        raise InvalidInput(
            f"{name!r} does not name two models and a share from 0 to 1",
            hint=f"for example {PREFIX}starter-peeks@0.5,starter: starter-peeks writes half of the replies",
        )
    return Mixture(parts[0], number, parts[1])


def name_of(mixture: Mixture) -> str:
    """The name of a mixture, as `mixture_of` reads it."""
    return f"{PREFIX}{mixture.first}@{mixture.share:g},{mixture.other}"


def parts_of(name: str) -> tuple[str, ...]:
    """The models that a name stands for: both of a mixture, that of a mind, else the name itself."""
    if is_mind(name):
        return (split(name)[1],)
    return mixture_of(name).parts if is_mixture(name) else (name,)
