"""What the registry says about a model: its facts, the packages that hold it, and the types of weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

INDEX, HUB = "index", "hub"
SOURCES = {INDEX: "the package index", HUB: "a model hub"}
"""The sources of models that a user can choose, besides a folder."""
NUMBER = "{part}"
"""Stands for the number of a part, from 1, in `package` and `member` of a model in parts."""


@dataclass(frozen=True)
class Part:
    """A package of the package index and the piece of a model's file in it; most models have one, with the whole."""

    package: str
    """name==version"""
    member: str
    """The piece's path in the package: a file, or a folder (with / at the end)."""
    bytes: int
    sha256: str
    start: int = 0
    """The byte of the model's file at which the piece begins."""
    number: int = 1
    count: int = 1

    def __str__(self) -> str:
        """The package, with the number of the part where there are several."""
        return f"part {self.number} of {self.count}, {self.package}," if self.count > 1 else self.package


@dataclass(frozen=True)
class ModelEntry:
    """One model of the registry; `file` is relative to a model folder."""

    name: str
    kind: str
    title: str
    why: str
    file: str
    bytes: int
    """Exact for a model of the package index; a round figure for one that only a hub has."""
    licence: str
    package: str = ""
    """name==version on the package index, with {part} in the name if the model is in parts."""
    member: str = ""
    """The file in the package, or its folder (with / at the end)."""
    parts: tuple[Part, ...] = ()
    """The packages that hold the file, in order: one if the registry lists no parts, none without a package."""
    sha256: str = ""
    """Empty for a model made or fetched by the user; the file's sidecar holds its checksum."""
    source: str = ""
    """The model that a derived model is made from."""
    type: str = ""
    """The type of weights of a derived model."""
    hub: str = ""
    """owner/repo/file on a model hub, for a model that is downloaded from one."""
    ram_mb: int = 0
    """Free memory that eight conversations of usual length need, to choose a model by; 0 where it is unknown."""
    adapter: str = ""
    """The adapter merged into a derived model: a file beside the registry."""
    taught: str = ""
    """The stance of a model's lessons towards the other side's facts, in words that continue "taught"."""
    constructed: str = ""
    """The behaviour that a model was given as a control, in words that continue "taught to"; empty for other models."""
    layout: str = ""
    """The layout of its prompts (`conversation.wording.layouts`); empty for its source's, or the default."""
    listed_in: str = ""
    """The registry of the user's own that lists the model; empty for other models."""

    @property
    def packages(self) -> str:
        """The packages that hold the model, in words; '' without any."""
        if len(self.parts) < 2:
            return self.package
        return f"{self.parts[0].package} to {self.parts[-1].package} ({len(self.parts)} packages)"


def entry_of(name: str, fields: Mapping[str, Any], listed_in: str = "") -> ModelEntry:
    """The entry that a table of a registry describes."""
    return ModelEntry(name=name, **{**fields, "parts": _parts(fields), "listed_in": listed_in})


def _parts(fields: Mapping[str, Any]) -> tuple[Part, ...]:
    """The packages of a model; without the key `parts`, its one package holds the whole file."""
    pieces = fields.get("parts") or [fields] * bool(fields.get("package"))
    starts = accumulate((piece["bytes"] for piece in pieces), initial=0)
    return tuple(
        Part(
            package=fields["package"].replace(NUMBER, str(number)),
            member=fields["member"].replace(NUMBER, str(number)),
            bytes=piece["bytes"],
            sha256=piece["sha256"],
            start=start,
            number=number,
            count=len(pieces),
        )
        for number, (piece, start) in enumerate(zip(pieces, starts, strict=False), start=1)
    )


@dataclass(frozen=True)
class WeightType:
    """A type of weights. https://github.com/ggml-org/llama.cpp/blob/master/include/llama.h"""

    number: int
    """llama_ftype."""
    output: int | None = None
    """ggml_type of the output matrix; None lets llama.cpp choose: Q6_K where the other weights have up to 5 bits."""


TYPES: Mapping[str, WeightType] = {
    "Q8_0": WeightType(7),
    "Q5_0": WeightType(8),
    "Q4_0": WeightType(2),
    "Q4_0-Q8_0": WeightType(2, output=8),
}
"""Name -> type. `Q4_0-Q8_0` has the output matrix in Q8_0: with a large vocabulary it is a fifth of all weights."""
