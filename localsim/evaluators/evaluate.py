"""The loop that scores episodes: at the end of each episode, at the end of a run, and for `localsim score`.

Each evaluator forms batches of the episodes that its version has not scored. Each batch is stored in one transaction,
so an interruption loses at most one batch, and no episode is scored twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain

from localsim import plugins
from localsim.conversation.episode import Subject
from localsim.conversation.exchange import Request
from localsim.evaluators.asking import ask, open_judge
from localsim.evaluators.base import Asked, Evaluation, Evaluator, Plugin, Scorer
from localsim.evaluators.checks import CHECKS
from localsim.evaluators.outcome import Outcome
from localsim.evaluators.style import STYLE
from localsim.families import FAMILIES
from localsim.store.database import Store
from localsim.store.queries import scoring as queries
from localsim.store.records import Record, score_records

Notify = Callable[[str], None]


def readers_of(family: str | None) -> list[Scorer]:
    """Return the evaluators that need no model, for scenarios of a family: style, outcome, checks."""
    known = family is not None and family in FAMILIES
    return [STYLE, *([Outcome(FAMILIES[family])] if known and family else []), CHECKS]


def evaluator_of(name: str) -> Evaluator:
    """Return the evaluator that a package installs under a name. Raises InvalidInput."""
    made = plugins.make("evaluators", name)
    return made if isinstance(made, Evaluator) else Plugin(made)


def evaluated(subject: Subject) -> list[Record]:
    """Return the scores of a completed episode by the evaluators that need no model."""
    records: list[Record] = []
    for evaluator in readers_of(subject.scenario.family):
        if evaluator.applies(subject):
            records += _records(evaluator, [evaluator.evaluation(subject)])
    return records


def score_run(store: Store, run_id: str, evaluators: Sequence[Evaluator], say: Notify) -> dict[str, int]:
    """Score the completed episodes of a run that these versions have not scored. Nothing is simulated.

    Returns evaluator name -> number of episodes scored now. Raises ModelMissing or BackendUnavailable, as a run does.
    """
    subjects = queries.subjects(store, run_id)
    counts: dict[str, int] = {}
    for evaluator in evaluators:
        scored = queries.scored(store, run_id, evaluator.name, evaluator.version)
        batches = list(evaluator.batches([each for each in subjects if evaluator.applies(each)], scored))
        counts[evaluator.name] = _score(store, evaluator, batches, say)
    return counts


def read_again(store: Store, run_id: str, say: Notify) -> None:
    """Score the episodes of a run that the present versions of style, outcome and checks have not scored."""
    families = dict.fromkeys(queries.families_of(store, run_id))
    evaluators = chain.from_iterable(readers_of(family) for family in families)
    score_run(store, run_id, list({each.name: each for each in evaluators}.values()), say)


def _score(store: Store, evaluator: Evaluator, batches: list[tuple[Subject, ...]], say: Notify) -> int:
    if not batches:
        return 0
    count = 0
    with _answering(evaluator, say) as answers:
        for number, batch in enumerate(batches, start=1):
            evaluations = driven(evaluator, batch, answers)
            store.take_in(_records(evaluator, evaluations))
            count += len({evaluation.episode_id for evaluation in evaluations if evaluation.scores})
            if evaluator.model is not None:
                say(f"{evaluator.name}: {number} of {len(batches)}")
    say(f"{evaluator.name} (version {evaluator.version}) scored {count} episodes")
    return count


def driven(
    evaluator: Evaluator, batch: tuple[Subject, ...], answers: Callable[[Sequence[Request]], Sequence[Asked]]
) -> list[Evaluation]:
    """Return the evaluations of a batch; `answers` answers its requests."""
    steps = evaluator.evaluate(batch)
    try:
        requests = next(steps)
        while True:
            requests = steps.send(answers(requests))
    except StopIteration as end:
        evaluations: list[Evaluation] = end.value
        return evaluations


@contextmanager
def _answering(evaluator: Evaluator, say: Notify) -> Iterator[Callable[[Sequence[Request]], Sequence[Asked]]]:
    """Give a function that asks the evaluator's model, which stays open until the block ends."""
    if evaluator.model is None:
        yield lambda _requests: []
        return
    with open_judge(evaluator.model, say) as backend:
        yield partial(ask, backend)


def _records(evaluator: Evaluator, evaluations: Sequence[Evaluation]) -> list[Record]:
    records: list[Record] = []
    for evaluation in evaluations:
        records += evaluation.records
        records += score_records(evaluation.episode_id, evaluator.name, evaluator.version, evaluation.scores)
    return records
