"""The modes side by side: script, agents, mindreaders (arXiv 2403.05020, section 3.1), and iterative.

In iterative mode one author sees everything, as in script mode, and writes one turn at a time, as agents do. So it
tells one author from one generation.

Modes are generators without I/O. They yield `Ask(request)` and receive a Generation; they yield `Say(turn)` for each
valid turn and `Reject(...)` for a reply that does not parse; they return the reason why the episode ended. They use no
backend, clock or database. Only the information differs between modes: action format, stop rules, temperature,
penalties and repair are the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass

from localsim.conversation.episode import SINGLE_AUTHOR, EpisodeSpec, Mode, StopReason
from localsim.conversation.exchange import Generation, Request
from localsim.conversation.grammar import ActionLines
from localsim.conversation.prompts import agent_messages, script_prefill, writer_messages
from localsim.conversation.scenario import WRITER
from localsim.conversation.transcript import Transcript, Turn, parse_line
from localsim.conversation.visibility import observe
from localsim.errors import MalformedReply

ATTEMPTS = 2
"""Attempts at one turn: a malformed reply is retried once, with a new derived seed."""


@dataclass(frozen=True)
class Ask:
    """A request to the model of `request.speaker`."""

    request: Request


@dataclass(frozen=True)
class Say:
    """A valid turn, which joins the transcript."""

    turn: Turn


@dataclass(frozen=True)
class Reject:
    """A reply in the last generation that does not parse, with the reason."""

    turn: int
    reason: str


Step = Ask | Say | Reject
Play = Generator[Step, Generation | None, StopReason]


def turn_by_turn(spec: EpisodeSpec) -> Play:
    """Write one turn at a time: agents with their own views, or one author with the prompt of a script.

    Agents and mindreaders differ only in `observe`.
    """
    transcript = Transcript()
    while (reason := stop_reason(spec, transcript)) is None:
        transcript = yield from _agent_turn(spec, transcript)
    return reason


def _ask(request: Request, speaker: str) -> Generator[Step, Generation | None, tuple[list[str], bool]]:
    """Return the lines that answer a request, and True if the token limit cut the last one."""
    generation = yield Ask(request)
    assert generation is not None, "an Ask is answered with a Generation"
    text = speaker + generation.text
    return [line for line in text.split("\n") if line], generation.cause == "length" and not text.endswith("\n")


def _agent_turn(spec: EpisodeSpec, transcript: Transcript) -> Generator[Step, Generation | None, Transcript]:
    speaker = speaker_at(spec, len(transcript))
    request = _line_request if spec.mode in SINGLE_AUTHOR else _turn_request
    for attempt in range(ATTEMPTS):
        lines, cut = yield from _ask(request(spec, transcript, attempt), speaker)
        try:
            turn = _read(spec, len(transcript), "\n".join(lines), cut)
        except MalformedReply as error:
            yield Reject(len(transcript), error.message)
            continue
        yield Say(turn)
        return transcript.plus(turn)
    raise MalformedReply(f"turn {len(transcript)} by {speaker} did not parse in {ATTEMPTS} attempts")


def script(spec: EpisodeSpec) -> Play:
    """Let one model that sees everything write the whole conversation in one generation.

    If a line does not parse, the model tries once more from there; the turns before it are kept.
    """
    transcript = Transcript()
    attempt = 0
    while (reason := stop_reason(spec, transcript)) is None:
        start = len(transcript)
        request = _script_request(spec, transcript, attempt, spec.scenario.limits.turns - start)
        lines, cut = yield from _ask(request, speaker_at(spec, start))
        if cut and len(lines) > 1:
            lines, cut = lines[:-1], False  # the model can write that line again, whole
        for line in lines:
            try:
                turn = _read(spec, len(transcript), line, cut)
            except MalformedReply as error:
                malformed = error.message
                break
            yield Say(turn)
            transcript = transcript.plus(turn)
            if (reason := stop_reason(spec, transcript)) is not None:
                return reason
        else:
            malformed = "the script ends before a stop rule does"
        yield Reject(len(transcript), malformed)
        attempt = attempt + 1 if len(transcript) == start else 1
        if attempt >= ATTEMPTS:
            speaker = speaker_at(spec, len(transcript))
            raise MalformedReply(f"turn {len(transcript)} by {speaker} did not parse in {ATTEMPTS} attempts")
    return reason


MODES: dict[Mode, Callable[[EpisodeSpec], Play]] = {
    "script": script,
    "iterative": turn_by_turn,
    "agents": turn_by_turn,
    "mindreaders": turn_by_turn,
}


def speaker_at(spec: EpisodeSpec, turn: int) -> str:
    """Return the speaker of a turn: round-robin in the order of the scenario."""
    names = spec.scenario.names
    return names[turn % len(names)]


def stop_reason(spec: EpisodeSpec, transcript: Transcript) -> StopReason | None:
    """Return the stop rule that applies now, if any: an agent left, silence, or the turn limit. Equal in every mode."""
    limits = spec.scenario.limits
    if transcript.turns and transcript.turns[-1].action.type == "leave":
        return "left"
    if silent_turns(transcript) >= limits.silence:
        return "silence"
    return "turn_limit" if len(transcript) >= limits.turns else None


def silent_turns(transcript: Transcript) -> int:
    """Return the number of `none` turns at the end of a transcript."""
    count = 0
    for turn in reversed(transcript.turns):
        if turn.action.type != "none":
            break
        count += 1
    return count


def roles(mode: Mode, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the roles that need a model in a mode."""
    return (WRITER,) if mode in SINGLE_AUTHOR else names


def _read(spec: EpisodeSpec, index: int, line: str, cut: bool) -> Turn:
    scenario = spec.scenario
    speaker = speaker_at(spec, index)
    parsed = parse_line(line, speaker, scenario.actions, scenario.limits.chars)
    return Turn(index, speaker, parsed.action, truncated=cut or parsed.truncated)


def _turn_request(spec: EpisodeSpec, transcript: Transcript, attempt: int) -> Request:
    limits = spec.scenario.limits
    speaker = speaker_at(spec, len(transcript))
    seen = observe(spec.scenario, spec.mode, speaker, transcript, spec.grants)
    return Request(
        session=f"{spec.hash}/{speaker}",
        speaker=speaker,
        turn=len(transcript),
        attempt=attempt,
        messages=agent_messages(seen, spec.variant),
        prefill=speaker,
        seed=spec.turn_seed(len(transcript), attempt),
        max_tokens=limits.tokens,
        sampling=spec.sampling,
        form=_form(spec, transcript, turns=1, given=0),
        heard=_heard(transcript),
        observation=seen,
    )


def _line_request(spec: EpisodeSpec, transcript: Transcript, attempt: int) -> Request:
    return _script_request(spec, transcript, attempt, 1)


def _script_request(spec: EpisodeSpec, transcript: Transcript, attempt: int, turns: int) -> Request:
    """Return the request for the next `turns` lines of a script."""
    limits = spec.scenario.limits
    seen = observe(spec.scenario, spec.mode, WRITER, transcript)
    turn = len(transcript)
    return Request(
        session=f"{spec.hash}/{WRITER}",
        speaker=WRITER,
        turn=turn,
        attempt=attempt,
        messages=writer_messages(seen, spec.variant),
        prefill=script_prefill(transcript.turns, speaker_at(spec, turn)),
        seed=spec.turn_seed(turn, attempt),
        max_tokens=limits.tokens * turns,
        sampling=spec.sampling,
        form=_form(spec, transcript, turns=turns, given=turn),
        heard=_heard(transcript),
        observation=seen,
    )


def _heard(transcript: Transcript) -> tuple[tuple[str, str], ...]:
    return tuple((turn.speaker, turn.action.text) for turn in transcript.turns if turn.action.text)


def _form(spec: EpisodeSpec, transcript: Transcript, *, turns: int, given: int) -> ActionLines:
    scenario = spec.scenario
    return ActionLines(
        names=scenario.names,
        actions=scenario.actions,
        max_chars=scenario.limits.chars,
        silence=scenario.limits.silence,
        turn=len(transcript),
        turns=turns,
        nones=silent_turns(transcript),
        given=given,
    )
