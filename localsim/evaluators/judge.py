"""A language model as judge: it answers the questions of a rubric, by default Sotopia's seven dimensions.

The judge sees everything, gives its reason before its score, and is bound by a grammar. Scores are stored under the
names of the rubric and the model. `reports.validity.judges` and `reports.evidence.rubrics` measure how far they can
be trusted; those of small judges cannot. Sotopia: arXiv 2310.11667, section 3.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localsim.conversation.episode import Sampling, Score, Subject, derive_seed
from localsim.conversation.requests import Message, Request
from localsim.conversation.scenario import Agent
from localsim.conversation.visibility import persona_of
from localsim.evaluators.asking import Case, Verdict, judgement_records
from localsim.evaluators.base import Asked, Evaluation, Evaluator, Steps
from localsim.scenarios.rubrics import NAME, SOTOPIA, Rubric, shipped_rubric
from localsim.store.records import Record

ASKING = 2
"""Version of the way of asking; with the version of the rubric added it is that of the evaluator."""
DIMENSIONS = shipped_rubric(SOTOPIA).asked()
"""The seven dimensions of Sotopia: lowest score, highest score, question."""
START = "Reason:"
SPREAD = 0.7
"""Temperature if a judge is asked several times, so that its answers show their spread."""
_SYSTEM = (
    "You judge a conversation. Read it, then answer the question about {subject} in two lines.\n"
    "Reason: one short sentence\nScore: a number"
)
_SUBJECTS = {"agent": "one person", "talk": "the whole conversation"}
_PERSONA = {
    "statements": "{name} says: {text}",
    "background": "{name}'s life: {text}",
    "knows": "{name} knows well: {text}",
    "never_heard_of": "{name} has never heard of: {text}",
}


@dataclass(frozen=True)
class Question:
    """A question about one dimension of one agent or conversation; the `sample` of its case counts repetitions."""

    case: Case
    request: Request
    verdict: Verdict
    """The form of the reply: a score and its reason."""


class Judge(Evaluator):
    """A model that scores every dimension of a rubric, `samples` times each.

    Its scores are stored as `judge.MODEL` for the seven dimensions of Sotopia, else as `rubric.ID.MODEL`.
    """

    def __init__(self, model: str, samples: int = 1, rubric: Rubric | None = None) -> None:
        self.rubric = rubric or shipped_rubric(SOTOPIA)
        self.name = f"{'judge' if self.rubric.id == SOTOPIA else f'rubric.{self.rubric.id}'}.{model}"
        self.version, self.suits = str(ASKING + self.rubric.version), self.rubric.suits
        self.model = model
        self._samples = samples

    def evaluate(self, batch: tuple[Subject, ...]) -> Steps:
        """Ask about each episode. After a failed reply an episode has rows but no scores; the next call asks again."""
        evaluations = []
        for subject in batch:
            asked = list(questions(subject, self._samples, self.rubric))
            answers = list(zip(asked, (yield [question.request for question in asked]), strict=True))
            records: list[Record] = []
            for question, answer in answers:
                readable = answer.read(question.verdict.read) is not None
                records += judgement_records(question.case, self.name, self.version, answer, readable=readable)
            whole = all(answer.text is not None for _, answer in answers)
            evaluations.append(Evaluation(subject.episode_id, tuple(scores(answers)) if whole else (), tuple(records)))
        return evaluations


def questions(subject: Subject, samples: int, rubric: Rubric | None = None) -> Iterator[Question]:
    """Yield every dimension of every agent or of the conversation, `samples` times.

    Without a rubric they are the seven of Sotopia. Prompts of an episode differ only in the last lines.
    """
    rubric = rubric or shipped_rubric(SOTOPIA)
    conversation = _conversation(subject, profiles=rubric.profiles)
    instructions = _SYSTEM.format(subject=_SUBJECTS[rubric.per])
    sampling = Sampling(temperature=0.0 if samples == 1 else SPREAD)
    for agent in subject.scenario.names if rubric.per == "agent" else ("",):
        for dimension, (low, high, question) in rubric.asked().items():
            for sample in range(samples):
                about = agent or "the conversation"
                asked = f"{conversation}\n\nQuestion about {about}: {question.replace(NAME, agent)}"
                verdict = Verdict(low, high)
                request = Request(
                    session=f"{subject.episode_id}/{agent}/{dimension}/{sample}",
                    speaker="judge",
                    messages=(Message("system", instructions), Message("user", asked)),
                    prefill=START,
                    seed=derive_seed("judge", subject.seed, agent, dimension, sample),
                    max_tokens=120,
                    sampling=sampling,
                    form=verdict,
                    opening=f"judge/{subject.episode_id}",
                )
                yield Question(Case(subject.episode_id, dimension, agent, sample), request, verdict)


def _conversation(subject: Subject, *, profiles: bool = False) -> str:
    scenario = subject.scenario
    lines = [f"Setting: {scenario.setting}"]
    for agent in scenario.agents:
        lines += _person(agent) if profiles else []
        lines.append(f"{agent.name}'s goal: {agent.goal}")
        if agent.secret:
            lines.append(f"{agent.name}'s secret: {agent.secret}")
    lines += ["", "Conversation:"]
    lines += [turn.line for turn in subject.transcript.turns]
    return "\n".join(lines)


def _person(agent: Agent) -> Iterator[str]:
    """Yield the lines of a person's profile, private facts and persona."""
    profile = "; ".join(f"{label.replace('_', ' ')}: {value}" for label, value in agent.profile if value)
    if profile:
        yield f"{agent.name}'s profile: {profile}"
    if agent.facts:
        yield f"{agent.name}'s private facts: {' '.join(fact.text for fact in agent.facts)}"
    for field, texts in persona_of(agent):
        joined = (" " if field in ("statements", "background") else ", ").join(texts)
        yield _PERSONA[field].format(name=agent.name, text=joined)


def scores(answers: Sequence[tuple[Question, Asked]]) -> Iterator[Score]:
    """Yield the mean and spread of the readable answers by agent and dimension, and the mean of all dimensions."""
    malformed = 0
    by_agent: dict[str, list[float]] = {}
    verdicts: dict[tuple[str, str], list[tuple[int, str] | None]] = {}
    forms: dict[str, Verdict] = {}
    for question, answer in answers:
        forms[question.case.name] = question.verdict
        verdicts.setdefault((question.case.agent, question.case.name), []).append(answer.read(question.verdict.read))
    for (named, dimension), given in verdicts.items():
        agent = named or None
        read = [verdict for verdict in given if verdict is not None]
        malformed += len(given) - len(read)
        if not read:
            yield Score(dimension, None, agent=agent, reason="no reply could be read")
            continue
        value = statistics.fmean(number for number, _ in read)
        by_agent.setdefault(named, []).append(value)
        yield Score(dimension, value, agent=agent, reason=read[0][1])
        if len(read) > 1:
            form = forms[dimension]
            spread = statistics.stdev(number for number, _ in read) / (form.high - form.low)
            yield Score(f"{dimension}_spread", spread, agent=agent, reason="of its range, between samples")
    for named, values in by_agent.items():
        yield Score("overall", statistics.fmean(values), agent=named or None, reason="mean of the dimensions")
    yield Score("malformed_judgements", malformed / len(answers))
