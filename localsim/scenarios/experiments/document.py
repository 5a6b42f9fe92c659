"""The values of an experiment file: consent, forms, conditions with quotas, limits, ratings and debrief."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from localsim.conversation.rules.values import Document, Identifier, Place, Text, Value, repeats
from localsim.families.interviews.items import several

MODEL = "model"
"""The partner that the command line names with -m."""
PARTICIPANT = "participant"
"""The partner who is another participant."""
_Long = Annotated[str, Field(min_length=1, max_length=20_000)]


Names = Annotated[tuple[Text, ...], BeforeValidator(several)]


class Consent(Value):
    """What a person agrees to before anything is stored."""

    version: Annotated[str, Field(min_length=1, max_length=40)]
    """Version of the text; it is stored with each participant."""
    text: _Long
    """The whole text; an empty line separates paragraphs."""
    agree: Annotated[str, Field(min_length=1, max_length=100)] = "I agree and take part"
    """Label of the button."""


class Ratings(Value):
    """Questions about each message of the other side, right after it."""

    bank: Text
    """Name or file of a bank whose items have options or a scale."""
    required: bool = True
    """Whether a message must be rated before the participant can write the next one."""


class Rated(Value):
    """A rubric that participants answer after each talk, with the questions and scales of a judge."""

    rubric: Text
    """Name or file of the rubric."""
    about: Literal["others", "self", "all"] = "others"
    """Whom a rubric that asks about each agent asks about: the other side, the participant's own role, or all."""


class Bounds(Value):
    """Limits for each participant."""

    talks: Annotated[int, Field(ge=1, le=20)] = 1
    """Talks of one participant, all in the same condition."""
    minutes: Annotated[float, Field(gt=0, le=600)] | None = None
    """Most minutes of a talk; it then ends without an outcome."""
    messages: Annotated[int, Field(ge=1, le=500)] | None = None
    """Most messages of a participant in a talk."""
    characters: Annotated[int, Field(ge=20, le=1000)] | None = None
    """Most characters of a message, of either side."""
    away: Annotated[float, Field(gt=0, le=10_000)] = 15.0
    """Minutes without a sign of life after which the place may be given to another person."""
    wait: Annotated[float, Field(gt=0, le=600)] = 10.0
    """Minutes after which a participant who waits for another one may go on without a talk."""


class Condition(Value):
    """One group of participants, and the talk that they have."""

    id: Identifier
    """Name of the condition; participants never see it."""
    quota: Annotated[int, Field(ge=1, le=5000)]
    """Participants who finish in this condition."""
    scenarios: Annotated[Names, Field(min_length=1, max_length=100)]
    """Scenarios, by name or file; participants get them in turn."""
    seat: Text = "1"
    """Role of the participant: its name, or its number in the order of the scenario."""
    partner: Text = MODEL
    """Who plays the other roles: `model`, a model or scripted player, or `participant`."""
    mode: Literal["agents", "mindreaders"] = "agents"
    """Whether each side sees only its own information, or both see everything."""
    partner_sees: Text = "none"
    """Private items of the participant that the partner sees in agents mode, such as `goal,facts:2` or `all`."""
    hints: Names = ()
    """Texts that the participant reads above the talk."""


class Experiment(Document):
    """An experiment with people."""

    version: Literal[1]
    """Format of this file."""
    id: Identifier
    """Name of the experiment."""
    title: Text
    """Title, which participants read."""
    consent: Consent
    """What participants agree to first."""
    before: Names = ()
    """Banks that are asked before the talk, by name or file."""
    after: Names = ()
    """Banks that are asked after it."""
    ratings: Ratings | None = None
    """Questions about each message of the other side."""
    rated: Rated | None = None
    """A rubric about each talk, right after it."""
    limits: Bounds = Bounds()
    """Limits for each participant."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 1
    """Seed of the order of conditions and of the talks."""
    conditions: Annotated[tuple[Condition, ...], Field(min_length=1, max_length=50)]
    """The conditions."""
    debrief: _Long
    """What participants read at the end, above their completion code."""

    def _conflicts(self) -> Iterator[tuple[Place, str]]:
        ids = [(("conditions", number, "id"), condition.id) for number, condition in enumerate(self.conditions)]
        yield from repeats("condition id", ids)
        for number, condition in enumerate(self.conditions):
            if condition.partner == "human":
                yield ("conditions", number, "partner"), f"a partner who is a person is called {PARTICIPANT}"
            if condition.partner_sees != "none" and condition.mode != "agents":
                yield ("conditions", number, "partner_sees"), "in mindreaders mode both sides see everything anyway"
            if len(condition.scenarios) < self.limits.talks:
                message = f"{self.limits.talks} talks need as many scenarios, and there are {len(condition.scenarios)}"
                yield ("conditions", number, "scenarios"), message
        for part in ("before", "after"):
            yield from repeats("bank", (((part, number), name) for number, name in enumerate(getattr(self, part))))

    @property
    def size(self) -> int:
        """Number of places: the sum of the quotas."""
        return sum(condition.quota for condition in self.conditions)
