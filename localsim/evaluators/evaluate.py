"""The loop that scores episodes: at the end of each episode, at the end of a run, and for `localsim score`.

Each evaluator forms batches of the episodes that its version has not scored. Each batch is stored in one transaction,
so an interruption loses at most one batch, and no episode is scored twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import chain

from localsim import plugins
from localsim.conversation.episode import Score, Subject
from localsim.conversation.requests import Request
from localsim.conversation.scenario import AnswerKey, Scenario
from localsim.conversation.transcript import Transcript
from localsim.conversation.wording.wordings import counted
from localsim.errors import InvalidInput, suggest
from localsim.evaluators.asking import ask, open_judge
from localsim.evaluators.base import ERROR, Asked, Evaluation, Evaluator, Plugin, Scorer, guarded, kept
from localsim.evaluators.checks import CHECKS
from localsim.evaluators.play import PLAY
from localsim.evaluators.scorers import SCORERS
from localsim.evaluators.style import STYLE
from localsim.families import FAMILIES, Family
from localsim.scenarios.tagging import tags_of
from localsim.store.conditions import Condition, condition_of
from localsim.store.database import Store
from localsim.store.queries import scoring as queries
from localsim.store.records import Record, score_records


class Outcome(Scorer):
    """The scores of one family."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self.name = f"outcome.{family.name}"
        self.version = family.version
        self.measures = tuple(family.measures)

    def applies(self, subject: Subject) -> bool:
        return subject.scenario.family == self._family.name

    def score(self, transcript: Transcript, scenario: Scenario, answer: AnswerKey) -> list[Score]:
        """Return the scores of `Family.score`. Raises ValueError or TypeError for one that cannot be kept."""
        return kept(self._family, self._family.score(transcript, scenario, answer), scenario, transcript)


Notify = Callable[[str], None]
Batch = tuple[Subject, ...]
Drive = Callable[[Evaluator, Sequence[Batch]], Iterator[tuple[Batch, Callable[[], list[Evaluation]]]]]
"""Gives each batch with a function that returns its evaluations, in any order."""
OpenPanel = Callable[[str, Notify], AbstractContextManager[Drive]]
"""Opens the model with this name for judging."""


def readers_of(family: str | None) -> list[Scorer]:
    """Return the evaluators that need no model, for scenarios of a family: style, play, outcome, checks."""
    outcome = [Outcome(FAMILIES[family])] if family is not None and family in FAMILIES else []
    return [STYLE, PLAY, *outcome, CHECKS]


def evaluator_of(name: str) -> Evaluator:
    """Return the scorer of localsim or the evaluator of an installed package with a name. Raises InvalidInput."""
    if name in SCORERS:
        plugins.refuse_namesake("evaluators", name)
        return SCORERS[name]()
    known = [*SCORERS, *plugins.names("evaluators")]
    if name not in known:
        raise InvalidInput(
            f"no evaluator {name!r}{suggest(name, known, inline=True)}", hint=f"evaluators are {', '.join(known)}"
        )
    made = plugins.make("evaluators", name)
    return made if isinstance(made, Evaluator) else Plugin(made)


def installed() -> tuple[list[Evaluator], list[InvalidInput]]:
    """Return the evaluators of other packages, and the errors of those that cannot be loaded."""
    found: list[Evaluator] = []
    errors: list[InvalidInput] = []
    for name in plugins.names("evaluators"):
        try:
            found.append(evaluator_of(name))
        except InvalidInput as error:
            errors.append(error)
    return found, errors


def evaluated(subject: Subject) -> list[Record]:
    """Return the scores of a completed episode by the evaluators that need no model."""
    records: list[Record] = []
    for evaluator in readers_of(subject.scenario.family):
        if evaluator.applies(subject):
            records += _records(evaluator, [evaluator.evaluation(subject)])
    return records


def score_runs(
    store: Store,
    runs: Sequence[str],
    evaluators: Sequence[Evaluator],
    say: Notify,
    only: Collection[Condition] | None = None,
    panel: OpenPanel | None = None,
    *,
    named: bool = False,
) -> dict[str, int]:
    """Score the completed episodes of runs that these versions have not scored. Nothing is simulated.

    The runs are scored together, so that they can be judged against each other. `only` are the conditions whose
    episodes are scored. `panel` opens the judges elsewhere than in this process. Returns evaluator name -> number of
    episodes scored now. Raises ModelMissing or BackendUnavailable, as a run does, and InvalidInput for an evaluator
    that was `named` and suits none of the episodes.
    """
    with store.held() as reads:
        subjects = [
            subject
            for run_id in runs
            for subject in queries.subjects(reads, run_id)
            if only is None or condition_of(vars(subject)) in only
        ]
    counts: dict[str, int] = {}
    for evaluator in evaluators:
        scored: dict[str, frozenset[str]] = {}
        for run_id in runs:
            scored |= queries.scored(store, run_id, evaluator.name, evaluator.version)
        suited = [each for each in subjects if evaluator.applies(each)]
        if named and evaluator.suits and subjects and not suited:
            raise _unsuited(evaluator, subjects)
        batches = list(evaluator.batches(suited, scored))
        counts[evaluator.name] = _score(store, evaluator, batches, say, panel)
    return counts


def _unsuited(evaluator: Evaluator, subjects: Sequence[Subject]) -> InvalidInput:
    """Return the error of an evaluator that suits none of the episodes, with what it is for and what they are."""
    tags = list(map(tags_of, subjects))
    made = "; ".join(f"{name} {' or '.join(words)}" for name, words in evaluator.suits.items())
    are = dict.fromkeys(f"{name} {word}" for own in tags for name in evaluator.suits for word in own.get(name, ()))
    hint = f"it is for {made}; these have {', '.join(are)}"
    return InvalidInput(f"{evaluator.name} suits none of these episodes", hint=hint)


def read_again(store: Store, run_id: str, say: Notify) -> None:
    """Score the episodes of a run that the present versions of style, play, outcome and checks have not scored."""
    families = dict.fromkeys(queries.families_of(store, run_id))
    evaluators = chain.from_iterable(readers_of(family) for family in families)
    score_runs(store, [run_id], list({each.name: each for each in evaluators}.values()), say)


def _score(store: Store, evaluator: Evaluator, batches: list[Batch], say: Notify, panel: OpenPanel | None) -> int:
    if not batches:
        return 0
    count, failures = 0, dict[str, str]()
    with _driving(evaluator, say, panel) as drive:
        every, begun = sum(map(len, batches)), 0
        for number, (batch, work) in enumerate(drive(evaluator, batches), start=1):
            if evaluator.doing:
                say(f"{evaluator.doing}: {f'{begun} of ' if begun else ''}{counted(every, 'episode')}")
            begun += len(batch)
            evaluations = guarded(evaluator.name, work, partial(_failed, batch))
            store.take_in(_records(evaluator, evaluations))
            scored = {each.episode_id: each.scores[0] for each in evaluations if each.scores}
            errors = {episode_id: score.reason for episode_id, score in scored.items() if score.name == ERROR}
            failures |= errors
            count += len(scored) - len(errors)
            if evaluator.model is not None:
                say(f"{evaluator.name}: {number} of {len(batches)}")
    say(f"{evaluator.name} (version {evaluator.version}) scored {counted(count, 'episode')}")
    if count:
        queries.forget_errors(store, evaluator.name, evaluator.version)
    if failures:
        say(f"{evaluator.name} failed on {counted(len(failures), 'episode')}: {next(iter(failures.values()))}")
    return count


def _failed(batch: Batch, error: Score) -> list[Evaluation]:
    return [Evaluation(subject.episode_id, (error,)) for subject in batch]


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
def _driving(evaluator: Evaluator, say: Notify, panel: OpenPanel | None) -> Iterator[Drive]:
    """Give what evaluates batches; the evaluator's model, if it has one, stays open until the block ends."""
    if evaluator.model is None:
        yield partial(_in_turn, lambda _requests: [])
    elif panel is not None:
        with panel(evaluator.model, say) as drive:
            yield drive
    else:
        with open_judge(evaluator.model, say) as backend:
            yield partial(_in_turn, partial(ask, backend))


def _in_turn(
    answers: Callable[[Sequence[Request]], Sequence[Asked]], evaluator: Evaluator, batches: Sequence[Batch]
) -> Iterator[tuple[Batch, Callable[[], list[Evaluation]]]]:
    for batch in batches:
        yield batch, partial(driven, evaluator, batch, answers)


def _records(evaluator: Evaluator, evaluations: Sequence[Evaluation]) -> list[Record]:
    records: list[Record] = []
    for evaluation in evaluations:
        records += evaluation.records
        records += score_records(evaluation.episode_id, evaluator.name, evaluator.version, evaluation.scores)
    return records
