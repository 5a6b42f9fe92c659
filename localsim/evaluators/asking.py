"""Asking a model as judge, and keeping what it was asked and what it answered: every prompt, thought and reply.

What the questions are and what the replies come to is said by `judge` (one talk) and `naturalness` (two).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from localsim.backends.base import Backend
from localsim.backends.open import Needs, absolute, open_backends
from localsim.conversation.exchange import Generation, Request
from localsim.errors import GenerationFailed
from localsim.store.journal import Event
from localsim.store.records import hash_of

THINK_TOKENS = 512
"""What a model that thinks may think before each verdict; it is cut off there and must answer."""
QUESTIONS = 8
"""Asked side by side."""
UNREADABLE = "not in the form that was asked for"
Say = Callable[[str], None]
Result = Generation | GenerationFailed


@dataclass(frozen=True)
class Case:
    """What a judge is asked about; with evaluator and version it makes a row's key."""

    episode_id: str
    """Of a pair, the first one's."""
    name: str
    """As in the scores that come of it."""
    agent: str = ""
    sample: int = 0
    """Counts the times it is asked; of a pair, 1 is the swapped order."""
    other_id: str | None = None
    """The second episode of a pair."""


@contextmanager
def open_judge(model: str, say: Say) -> Iterator[Backend]:
    """A backend for judging: eight questions about one conversation side by side. Raises as a run does."""
    name = absolute(model)
    with open_backends([name], Needs(sequences=QUESTIONS, think=THINK_TOKENS), say) as backends:
        yield backends[name]


def room_to_think(backend: Backend, say: Say) -> int:
    """Tokens that the judge may think before each verdict; 0 for a model that does not think."""
    if not backend.thinks():
        return 0
    say(f"the judge thinks before each verdict, at most {THINK_TOKENS} tokens")
    return THINK_TOKENS


def answers(backend: Backend, requests: Sequence[Request]) -> list[Result]:
    """The replies in the order of the requests, or why one could not be had."""
    tickets = {backend.submit(request): number for number, request in enumerate(requests)}
    found: dict[int, Result] = {}
    while len(found) < len(tickets):
        for done in backend.poll():
            number = tickets[done.ticket]
            found[number] = done.result
            backend.release(requests[number].session)
    return [found[number] for number in range(len(requests))]


def text_of(result: Result) -> str | None:
    """What a judge wrote after the prefill; None where it could not be had."""
    return result.text if isinstance(result, Generation) else None


def judgement_events(
    case: Case, evaluator: str, version: str, request: Request, result: Result, *, readable: bool
) -> list[Event]:
    """What was asked and answered, with the texts that the row refers to."""
    instructions, prompt = (message.content for message in request.messages)
    texts = [instructions, prompt]
    if request.sampling.grammar:
        texts.append(request.form.grammar())
    hashes = [hash_of(text) for text in texts]
    row: Event = {
        "event": "judgement",
        **vars(case),
        "evaluator": evaluator,
        "version": version,
        "seed": request.seed,
        "instructions_hash": hashes[0],
        "prompt_hash": hashes[1],
        "prefill": request.prefill,
        "grammar_hash": hashes[2] if request.sampling.grammar else None,
        **_answer(request, result, readable=readable),
    }
    contents = zip(hashes, texts, strict=True)
    return [*({"event": "content", "content_hash": name, "text": text} for name, text in contents), row]


def _answer(request: Request, result: Result, *, readable: bool) -> Event:
    """The columns that the reply fills."""
    limits = {"max_tokens": request.max_tokens, "think": request.think}
    if isinstance(result, GenerationFailed):
        nothing = dict.fromkeys(("prompt_tokens", "evaluated_tokens", "thought_tokens", "generated_tokens"), 0)
        told = {"model": "", "text": "", "cause": "error", "malformed": str(result), "details": limits}
        return {**nothing, **told, "thought": None, "truncated": False, "duration_ms": 0.0}
    thought = result.thought
    return {
        "model": result.model,
        "thought": thought.text if thought else None,
        "text": result.text,
        "cause": result.cause,
        "truncated": result.cause == "length" or (thought is not None and thought.cut),
        "malformed": None if readable else UNREADABLE,
        "prompt_tokens": result.prompt_tokens,
        "evaluated_tokens": result.evaluated_tokens,
        "thought_tokens": thought.tokens if thought else 0,
        "generated_tokens": result.generated_tokens,
        "duration_ms": result.duration_ms,
        "details": {**result.details, **limits},
    }
