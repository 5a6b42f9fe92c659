"""Checks that a scenario's author writes, and the rule that makes a success of them: values, without the scoring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from localsim.conversation.names import ANYBODY as ANYBODY
from localsim.conversation.rules.values import Identifier, Place, Text, Value, repeats
from localsim.errors import suggest

CHECK_KINDS = ("disclosed", "said", "left", "price_agreed")


class Check(Value):
    """An event that the author expects or excludes, decided without a model; exactly one kind is given."""

    name: Identifier
    """Name of the check; its score is called check.NAME."""
    disclosed: Identifier | None = None
    """Id of a fact; the event is that one of its terms is uttered."""
    said: tuple[Text, ...] | None = None
    """Words or phrases; the event is that one of them is said. Case does not count."""
    left: Annotated[str, Field(max_length=40)] | None = None
    """Name of an agent, or `anybody`; the event is that this agent leaves."""
    price_agreed: tuple[float, float] | None = None
    """Least and most dollars; the event is that the last price that two agents have both named is in this range."""
    by: Annotated[str, Field(max_length=40)] | None = None
    """Name of the agent whose turns count for `disclosed` and `said`; all agents if not given."""
    after: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Position in the conversation, 0 to 1, before which nothing counts."""
    before: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Position in the conversation, 0 to 1, after which nothing counts."""
    expected: bool = True
    """True if the event should happen, false if it must not."""

    @property
    def kind(self) -> str:
        """The kind that is given ('' if none or several are)."""
        given = [name for name in CHECK_KINDS if getattr(self, name) is not None]
        return given[0] if len(given) == 1 else ""

    def __str__(self) -> str:
        """What is expected, in the words of the file: `disclosed kit_room, by Kit, before 0.5`."""
        told = self.model_dump(mode="json", exclude_defaults=True, exclude={"name", "expected"})
        value = told.pop(self.kind)
        words = value
        if self.kind == "price_agreed":
            words = " to ".join(f"${each:.2f}".removesuffix(".00") for each in value)
        what = f"{self.kind.replace('_', ' ')} {words if isinstance(words, str) else ' or '.join(words)}"
        return ", ".join([what if self.expected else f"not {what}", *(f"{key} {given}" for key, given in told.items())])


def _as_rule(given: Any) -> Any:
    """A name of a check, or a list of them, stands for a rule that needs them all."""
    names = [given] if isinstance(given, str) else given
    return {"of": names} if isinstance(names, list | tuple) else names


class SuccessRule(Value):
    """How many of which checks must come out as expected, so that the conversation is a success."""

    of: tuple[Identifier, ...] = ()
    """Names of checks; empty for all of the file."""
    at_least: Annotated[int, Field(ge=1)] | None = None
    """So many of them; all if it is not given."""

    def __str__(self) -> str:
        """Return the rule in words: `at least 1 of told_in_time, polite`."""
        of = ", ".join(self.of) or "the checks"
        return f"at least {self.at_least} of {of}" if self.at_least else f"all of {of}"


GivenRule = Annotated[
    SuccessRule, BeforeValidator(_as_rule, json_schema_input_type=SuccessRule | tuple[Identifier, ...])
]
"""A rule as a file gives it: a list of names, or a mapping."""


def problems_of_checks(
    checks: Sequence[Check], success: SuccessRule | None, names: Sequence[str], facts: Mapping[str, Sequence[str]]
) -> Iterator[tuple[Place, str]]:
    """Yield the contradictions of checks and rule; `names` are those of the agents, `facts` id -> terms."""
    known = [check.name for check in checks]
    yield from repeats("check name", [(("checks", number, "name"), name) for number, name in enumerate(known)])
    for number, check in enumerate(checks):
        if not check.kind:
            yield ("checks", number), f"give exactly one of {', '.join(CHECK_KINDS)}"
        if check.disclosed is not None and check.disclosed not in facts:
            yield (
                ("checks", number, "disclosed"),
                f"no fact has the id {check.disclosed!r}{suggest(check.disclosed, facts, inline=True)}",
            )
        elif check.disclosed is not None and not facts[check.disclosed]:
            yield ("checks", number, "disclosed"), f"the fact {check.disclosed} has no terms to look for"
        for place, those in (("by", names), ("left", (*names, ANYBODY))):
            given = getattr(check, place)
            if given is not None and given not in those:
                yield ("checks", number, place), f"no agent is called {given!r}{suggest(given, those, inline=True)}"
        if check.price_agreed is not None and check.price_agreed[0] > check.price_agreed[1]:
            yield ("checks", number, "price_agreed"), "give the lowest price first"
    if success is not None:
        for name in success.of:
            if name not in known:
                yield ("success",), f"no check is called {name!r}{suggest(name, known, inline=True)}"
        count = len(set(success.of or known))
        if not known:
            yield ("success",), "it counts checks, and the file has none"
        elif (success.at_least or 0) > count:
            yield ("success",), f"at_least is {success.at_least}, and there are {count} checks to count"
