"""Talks of agents with minds for tests: a function answers every request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from localsim.conversation.episode import EpisodeSpec
from localsim.conversation.minds.flows import Flow
from localsim.conversation.minds.steps import Step
from localsim.conversation.modes import MODES, Ask, Reject, Say
from localsim.conversation.requests import Generation, Request
from localsim.conversation.scenario import LoadedScenario
from tests.conftest import spec_of

Reply = str | tuple[str, dict[str, float]]
"""The text after the start of the reply, and the probabilities of the words of a question."""


@dataclass
class Played:
    """What came of a talk."""

    requests: list[Request] = field(default_factory=list)
    says: list[Say] = field(default_factory=list)
    rejects: list[str] = field(default_factory=list)
    writers: list[str] = field(default_factory=list)
    """For each turn of an agent, the text of the generation that it is credited to."""

    @property
    def lines(self) -> list[str]:
        """The lines of the talk."""
        return [say.turn.line for say in self.says]

    def steps(self) -> list[str]:
        """What was asked, in order: the step, or `line`."""
        return [request.step or "line" for request in self.requests]


def minded(loaded: LoadedScenario, *steps: Step, who: str = "", **changes: object) -> EpisodeSpec:
    """A spec in which the first agent, or `who`, has these steps."""
    return spec_of(loaded, minds={who or loaded.scenario.names[0]: Flow(steps)}, **changes)  # type: ignore[arg-type]


def play(spec: EpisodeSpec, reply: Callable[[Request], Reply], turns: int = 4) -> Played:
    """Play a talk until it ends, or so many turns are there."""
    found, texts = Played(), []
    play = MODES[spec.mode](spec)
    try:
        step = next(play)
        while len(found.says) < turns:
            if isinstance(step, Ask):
                found.requests.append(step.request)
                given = reply(step.request)
                text, weights = given if isinstance(given, tuple) else (given, {})
                options = {word: {"log": 0.0, "share": share} for word, share in weights.items()}
                texts.append(text)
                details = {"options": [{"line": "", "options": options}]} if options else {}
                step = play.send(Generation(text, "finished", "test", details=details))
                continue
            if isinstance(step, Say):
                found.says.append(step)
                found.writers += [] if step.turn.told else [texts[-1 - step.back]]
            if isinstance(step, Reject):
                found.rejects.append(step.reason)
            step = next(play)
    except StopIteration:
        pass
    return found


def prompt(request: Request) -> str:
    """All that the agent reads for a request."""
    return "\n".join([*(message.content for message in request.messages), request.note, request.prefill])


def speaks(request: Request) -> str:
    """A line that says its turn."""
    return f": Line {request.turn}.{request.attempt}\n"
