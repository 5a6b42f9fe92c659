"""Asks a model as judge, and stores every question and answer: prompt, thought and reply.

`judge` (one conversation), `naturalness` (two) and `leak_judge` (the first turns of one) define the questions and turn
answers into scores.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from localsim.backends.base import Backend
from localsim.backends.open import Needs, absolute, open_backends
from localsim.conversation.requests import Form, Request
from localsim.errors import GenerationFailed
from localsim.evaluators.base import Asked
from localsim.store.records import ContentRecord, JudgementRecord, Record, hash_of

THINK_TOKENS = 512
"""Tokens that a thinking model may spend before each verdict; then it must answer."""
QUESTIONS = 8
"""Number of questions asked at the same time."""
UNREADABLE = "not in the form that was asked for"
REASON_CHARS = 200


@contextmanager
def open_judge(model: str, say: Callable[[str], None]) -> Iterator[Backend]:
    """Open a backend for judging: eight questions about one conversation at a time. Raises the errors of a run."""
    name = absolute(model)
    with open_backends([name], Needs(sequences=QUESTIONS, think=THINK_TOKENS), say) as backends:
        if backends[name].thinks():
            say(f"the judge thinks before each verdict, at most {THINK_TOKENS} tokens")
        yield backends[name]


def ask(backend: Backend, requests: Sequence[Request]) -> list[Asked]:
    """Return the answers in the order of the requests; a thinking model may think before each."""
    think = THINK_TOKENS if backend.thinks() else 0
    sent = [replace(request, think=think) for request in requests]
    tickets = {backend.submit(request): number for number, request in enumerate(sent)}
    answers: dict[int, Asked] = {}
    while len(answers) < len(tickets):
        for done in backend.poll():
            number = tickets[done.ticket]
            answers[number] = Asked(sent[number], done.result)
            backend.release(sent[number].session)
    return [answers[number] for number in range(len(sent))]


@dataclass(frozen=True)
class Case:
    """The subject of a question; with evaluator and version it makes a row's key."""

    episode_id: str
    """The episode; of a pair, the first one."""
    name: str
    """Name of the score that the answer gives."""
    agent: str = ""
    sample: int = 0
    """Number of the sample, from 0; for a pair, 1 is the swapped order."""
    other_id: str | None = None
    """The second episode of a pair."""


@dataclass(frozen=True)
class Verdict(Form):
    """The form of a judge's reply: `Reason: ...`, then `LABEL: N` on a line of its own."""

    low: int
    high: int
    label: str = "Score"

    def grammar(self) -> str:
        numbers = " | ".join(f'"{number}"' for number in range(self.high, self.low - 1, -1))
        return (
            f'root ::= " " first char{{0,{REASON_CHARS - 1}}} "\\n{self.label}: " number "\\n"?\n'
            f"number ::= {numbers}\n"
            "first ::= [^ \\x00-\\x1f\\x7f]\nchar ::= [^\\x00-\\x1f\\x7f]\n"
        )

    def finished(self, text: str) -> bool:
        return text.endswith("\n") and f"\n{self.label}: " in text

    def forced(self, text: str) -> str:
        """Return the label before the number, once the reason is closed."""
        return f"{self.label}:" if text.endswith("\n") and f"\n{self.label}:" not in text else ""

    def read(self, text: str) -> tuple[int, str] | None:
        """Return number and reason of a reply; None if it does not parse or the number is out of range."""
        match = re.fullmatch(rf"\s*(?P<reason>[^\n]+)\n+{re.escape(self.label)}: ?(?P<number>-?\d+)\s*", text)
        if match is None or not self.low <= int(match["number"]) <= self.high:
            return None
        return int(match["number"]), match["reason"].strip()


def judgement_records(case: Case, evaluator: str, version: str, asked: Asked, *, readable: bool) -> list[Record]:
    """Return the records of a question and its answer, with the texts that they refer to by hash."""
    request, reply = asked.request, asked.reply
    instructions, prompt = (message.content for message in request.messages)
    texts = [instructions, prompt]
    if request.sampling.grammar:
        texts.append(request.form.grammar())
    hashes = [hash_of(text) for text in texts]
    limits = {"max_tokens": request.max_tokens, "think": request.think}
    row = JudgementRecord(
        **vars(case),
        evaluator=evaluator,
        version=version,
        seed=request.seed,
        instructions_hash=hashes[0],
        prompt_hash=hashes[1],
        prefill=request.prefill,
        grammar_hash=hashes[2] if request.sampling.grammar else None,
        details=limits,
    )
    if isinstance(reply, GenerationFailed):
        row = replace(row, malformed=str(reply))
    else:
        thought = reply.thought
        row = replace(
            row,
            model=reply.model,
            thought=thought.text if thought else None,
            text=reply.text,
            cause=reply.cause,
            truncated=reply.cause == "length" or (thought is not None and thought.cut),
            malformed=None if readable else UNREADABLE,
            prompt_tokens=reply.prompt_tokens,
            evaluated_tokens=reply.evaluated_tokens,
            thought_tokens=thought.tokens if thought else 0,
            generated_tokens=reply.generated_tokens,
            duration_ms=reply.duration_ms,
            details={**reply.details, **limits},
        )
    return [*(ContentRecord(name, text) for name, text in zip(hashes, texts, strict=True)), row]
