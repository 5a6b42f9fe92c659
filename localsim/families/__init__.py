"""Task families: generate scenarios from a seed, check them, and score their outcome without a language model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from localsim import plugins
from localsim.conversation.episode import Score
from localsim.families.base import Family
from localsim.families.craigslist.family import Craigslist
from localsim.families.mutual_friends.family import MutualFriends


class Families(Mapping[str, Family]):
    """The families that come along, and those of other packages, which are imported when they are asked for by name."""

    def __init__(self, *own: Family) -> None:
        self._own = {family.name: family for family in own}
        self._loaded: dict[str, Family] = {}

    def __getitem__(self, name: str) -> Family:
        if name in self._own:
            return self._own[name]
        if name not in self._loaded:
            if name not in plugins.names("families"):
                raise KeyError(name)
            self._loaded[name] = plugins.make("families", name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from (name for name in plugins.names("families") if name not in self._own)

    def __len__(self) -> int:
        return len(list(iter(self)))

    @property
    def own(self) -> tuple[str, ...]:
        """Names of the families that come along; the study is about these."""
        return tuple(self._own)


FAMILIES = Families(MutualFriends(), Craigslist())

__all__ = ["FAMILIES", "Families", "Family", "Score"]
