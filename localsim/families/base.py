"""What a task family is: it generates scenarios from a seed, checks scenario files and scores outcomes.

A family never calls a model and never sees a prompt; its scores rest on the transcript and the answer key alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from localsim.conversation.episode import Score
from localsim.conversation.scenario import AnswerKey, Scenario, ScenarioFile
from localsim.conversation.transcript import Transcript

Location = tuple[str | int, ...]


class Family(Protocol):
    """A kind of task whose outcome can be verified."""

    name: str
    version: str
    """Of the scoring; stored with each score."""
    defaults: Mapping[str, Any]
    """Parameters of `generate` and their default values."""

    def generate(self, scenario_id: str, seed: int, parameters: Mapping[str, Any]) -> ScenarioFile:
        """A scenario file that depends on nothing but its arguments. Raises InvalidInput for a bad parameter."""

    def check(self, document: ScenarioFile) -> list[tuple[Location, str]]:
        """What the file lacks to be scored: (place in the file, message) pairs."""

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Outcome scores, each citing the turns it rests on; what cannot be known is left out."""


def merged(defaults: Mapping[str, Any], parameters: Mapping[str, Any], family: str) -> dict[str, Any]:
    """`defaults` overlaid with `parameters`; values are read as the type of their default."""
    from localsim.errors import InvalidInput

    result = dict(defaults)
    for key, value in parameters.items():
        if key not in defaults:
            raise InvalidInput(f"{family} has no parameter {key!r}", hint=f"it has: {', '.join(sorted(defaults))}")
        try:
            result[key] = type(defaults[key])(value)
        except (TypeError, ValueError) as error:
            raise InvalidInput(
                f"{family}: {key} = {value!r} is not a {type(defaults[key]).__name__}",
                hint=f"for example {key}={defaults[key]}",
            ) from error
    return result
