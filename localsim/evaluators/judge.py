"""A language model as judge: Sotopia's seven dimensions (arXiv 2310.11667, section 3).

The judge sees everything, gives its reason before its score, and is bound by a grammar. Scores are stored under the
name of the model. `reports.validity.judges` measures how well they follow verifiable outcomes; those of small judges
do not.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localsim.conversation.episode import Sampling, Score, Subject, derive_seed
from localsim.conversation.exchange import Message, Request
from localsim.evaluators.asking import Case, Verdict, judgement_records
from localsim.evaluators.base import Asked, Evaluation, Evaluator, Steps
from localsim.store.records import Record

VERSION = "3"

DIMENSIONS: dict[str, tuple[int, int, str]] = {
    "goal": (0, 10, "How far did {name} reach the goal? 0: not at all, 10: completely."),
    "believability": (0, 10, "How natural is {name}, and how true to the role? 0: not at all, 10: like a real person."),
    "relationship": (
        -5,
        5,
        "What did the talk do to {name}'s ties and standing? -5: ruined, 0: nothing, 5: much better.",
    ),
    "knowledge": (0, 10, "How much that is new and important did {name} learn? 0: nothing, 10: very much."),
    "secret": (-10, 0, "Did {name} keep what should stay secret? 0: kept it, -10: told everything."),
    "social_rules": (-10, 0, "Did {name} break laws or manners? 0: never, -10: badly."),
    "financial": (
        -5,
        5,
        "What did {name} gain or lose in money or things? -5: a great loss, 0: nothing, 5: a great gain.",
    ),
}
"""Lowest score, highest score, question."""
START = "Reason:"
SPREAD = 0.7
"""Temperature if a judge is asked several times, so that its answers show their spread."""
_SYSTEM = (
    "You judge a conversation. Read it, then answer the question about one person in two lines.\n"
    "Reason: one short sentence\nScore: a number"
)


@dataclass(frozen=True)
class Question:
    """A question about one dimension of one agent; `sample` counts repetitions."""

    case: Case
    request: Request

    def read(self, asked: Asked) -> tuple[int, str] | None:
        """Return score and reason of the reply; None if it cannot be read."""
        low, high, _ = DIMENSIONS[self.case.name]
        return None if asked.text is None else Verdict(low, high).read(asked.text)


class Judge(Evaluator):
    """A model that scores every dimension of every agent, `samples` times each."""

    version = VERSION

    def __init__(self, model: str, samples: int = 1) -> None:
        self.name = f"judge.{model}"
        self.model = model
        self._samples = samples

    def evaluate(self, batch: tuple[Subject, ...]) -> Steps:
        """Ask about each episode. After a failed reply an episode has rows but no scores; the next call asks again."""
        evaluations = []
        for subject in batch:
            asked = list(questions(subject, self._samples))
            answers = list(zip(asked, (yield [question.request for question in asked]), strict=True))
            records: list[Record] = []
            for question, answer in answers:
                readable = question.read(answer) is not None
                records += judgement_records(question.case, self.name, self.version, answer, readable=readable)
            whole = all(answer.text is not None for _, answer in answers)
            evaluations.append(Evaluation(subject.episode_id, tuple(scores(answers)) if whole else (), tuple(records)))
        return evaluations


def questions(subject: Subject, samples: int) -> Iterator[Question]:
    """Yield every dimension of every agent, `samples` times. Prompts of an episode differ only in the last lines."""
    conversation = _conversation(subject)
    sampling = Sampling(temperature=0.0 if samples == 1 else SPREAD)
    for agent in subject.scenario.names:
        for dimension, (low, high, question) in DIMENSIONS.items():
            for sample in range(samples):
                asked = f"{conversation}\n\nQuestion about {agent}: {question.format(name=agent)}"
                request = Request(
                    session=f"{subject.episode_id}/{agent}/{dimension}/{sample}",
                    speaker="judge",
                    messages=(Message("system", _SYSTEM), Message("user", asked)),
                    prefill=START,
                    seed=derive_seed("judge", subject.seed, agent, dimension, sample),
                    max_tokens=120,
                    sampling=sampling,
                    form=Verdict(low, high),
                )
                yield Question(Case(subject.episode_id, dimension, agent, sample), request)


def _conversation(subject: Subject) -> str:
    scenario = subject.scenario
    lines = [f"Setting: {scenario.setting}"]
    for agent in scenario.agents:
        lines.append(f"{agent.name}'s goal: {agent.goal}")
        if agent.secret:
            lines.append(f"{agent.name}'s secret: {agent.secret}")
    lines += ["", "Conversation:"]
    lines += [turn.line for turn in subject.transcript.turns]
    return "\n".join(lines)


def scores(answers: Sequence[tuple[Question, Asked]]) -> Iterator[Score]:
    """Yield the mean and spread of the readable answers by agent and dimension, and the mean of all dimensions."""
    malformed = 0
    by_agent: dict[str, list[float]] = {}
    verdicts: dict[tuple[str, str], list[tuple[int, str] | None]] = {}
    for question, answer in answers:
        verdicts.setdefault((question.case.agent, question.case.name), []).append(question.read(answer))
    for (agent, dimension), given in verdicts.items():
        read = [verdict for verdict in given if verdict is not None]
        malformed += len(given) - len(read)
        if not read:
            yield Score(dimension, None, agent=agent, reason="no reply could be read")
            continue
        value = statistics.fmean(number for number, _ in read)
        by_agent.setdefault(agent, []).append(value)
        yield Score(dimension, value, agent=agent, reason=read[0][1])
        if len(read) > 1:
            low, high, _ = DIMENSIONS[dimension]
            spread = statistics.stdev(number for number, _ in read) / (high - low)
            yield Score(f"{dimension}_spread", spread, agent=agent, reason="of its range, between samples")
    for agent, values in by_agent.items():
        yield Score("overall", statistics.fmean(values), agent=agent, reason="mean of the dimensions")
    yield Score("malformed_judgements", malformed / len(answers))
