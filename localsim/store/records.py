"""Records: everything that a run leaves behind, as typed values on their way to the journal and to table rows.

A record's `kind` is the `event` of its journal line. `rows.rows_of` turns records into rows; columns are described in
`schema.TABLES`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from localsim.conversation.episode import EpisodeSpec, Score
from localsim.conversation.scenario import LoadedScenario, canonical_hash


@dataclass(frozen=True)
class RunRecord:
    """A run begins, or goes on; times are ISO 8601 in UTC without an offset."""

    kind: ClassVar[str] = "run"
    run_id: str
    status: str
    started_utc: str
    finished_utc: str | None
    seed: int
    repro: str
    parallel: int
    episodes_planned: int
    plan_json: str
    models_json: str
    versions_json: str


@dataclass(frozen=True)
class RunEnded:
    """The run of this journal has ended: `finished` or `interrupted`."""

    kind: ClassVar[str] = "run_ended"
    status: str
    finished_utc: str


@dataclass(frozen=True)
class RunDied:
    """The process that wrote the journal is gone without an end."""

    kind: ClassVar[str] = "run_died"


@dataclass(frozen=True)
class ScenarioRecord:
    """A scenario, and apart from it the answer key, as they are now."""

    kind: ClassVar[str] = "scenario"
    scenario_hash: str
    scenario_id: str
    title: str
    family: str | None
    document_json: str
    answer_json: str
    path: str | None


@dataclass(frozen=True)
class ContentRecord:
    """A text that others refer to by its hash: a message, a prefill, a grammar."""

    kind: ClassVar[str] = "content"
    content_hash: str
    text: str


@dataclass(frozen=True)
class EpisodeRecord:
    """An episode begins, or goes on after a resume."""

    kind: ClassVar[str] = "episode"
    episode_id: str
    run_id: str
    scenario_hash: str
    mode: str
    model: str
    episode_index: int
    seed: int
    spec_hash: str
    spec_json: str


@dataclass(frozen=True)
class EpisodeEnded:
    """An episode is over."""

    kind: ClassVar[str] = "episode_ended"
    episode_id: str
    status: str
    stop_reason: str | None
    error: str | None
    turns: int
    duration_ms: float


@dataclass(frozen=True)
class TurnRecord:
    """A turn that stands."""

    kind: ClassVar[str] = "turn"
    episode_id: str
    turn: int
    speaker: str
    action: str
    text: str
    words: int
    truncated: bool
    generation: int


@dataclass(frozen=True)
class GenerationRecord:
    """A text that a backend wrote, or the reason (`malformed`, with cause `error`) why there is none."""

    kind: ClassVar[str] = "generation"
    episode_id: str
    generation: int
    turn: int
    attempt: int
    speaker: str
    seed: int
    parent: int | None
    messages: Sequence[Sequence[str]]
    """(role, content hash) of the messages that follow the parent's."""
    prefill_hash: str
    grammar_hash: str | None
    model: str = ""
    text: str = ""
    cause: str = "error"
    malformed: str | None = None
    prompt_tokens: int = 0
    evaluated_tokens: int = 0
    shared_tokens: int = 0
    dropped_messages: int = 0
    generated_tokens: int = 0
    duration_ms: float = 0.0
    details: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class RejectRecord:
    """A generation holds a reply that does not parse."""

    kind: ClassVar[str] = "reject"
    episode_id: str
    generation: int
    reason: str


@dataclass(frozen=True)
class ScoreRecord:
    """A score of one evaluator at one version; `agent` is '' for the whole episode."""

    kind: ClassVar[str] = "score"
    episode_id: str
    evaluator: str
    version: str
    name: str
    agent: str
    value: float | None
    label: str | None
    reason: str
    turns: Sequence[int]


@dataclass(frozen=True)
class LeakRecord:
    """A hint at, or a disclosure of, a private fact."""

    kind: ClassVar[str] = "leak"
    episode_id: str
    version: str
    fact_id: str
    turn: int
    owner: str
    fact: str
    speaker: str
    label: str
    leak: str
    """self, omniscient or repeat; the column `kind`."""
    probability: float
    similarity: float
    evidence: str
    first: bool
    early: bool


@dataclass(frozen=True)
class VectorRecord:
    """The embedding of a text."""

    kind: ClassVar[str] = "vector"
    text_hash: str
    model: str
    text: str
    vector: Sequence[float]


@dataclass(frozen=True)
class JudgementRecord:
    """A question to a model as judge, and its answer."""

    kind: ClassVar[str] = "judgement"
    episode_id: str
    evaluator: str
    version: str
    name: str
    agent: str
    sample: int
    other_id: str | None
    seed: int
    instructions_hash: str
    prompt_hash: str
    prefill: str
    grammar_hash: str | None
    model: str = ""
    thought: str | None = None
    text: str = ""
    cause: str = "error"
    truncated: bool = False
    malformed: str | None = None
    prompt_tokens: int = 0
    evaluated_tokens: int = 0
    thought_tokens: int = 0
    generated_tokens: int = 0
    duration_ms: float = 0.0
    details: Mapping[str, Any] | None = None


Record = (
    RunRecord
    | RunEnded
    | RunDied
    | ScenarioRecord
    | ContentRecord
    | EpisodeRecord
    | EpisodeEnded
    | TurnRecord
    | GenerationRecord
    | RejectRecord
    | ScoreRecord
    | LeakRecord
    | VectorRecord
    | JudgementRecord
)
_KINDS: dict[str, type[Any]] = {each.kind: each for each in Record.__args__}
_NAMES: dict[type[Any], frozenset[str]] = {
    each: frozenset(field.name for field in fields(each)) for each in _KINDS.values()
}
_KIND_OF_LEAK = "kind"


def as_json(record: Record) -> dict[str, Any]:
    """The object of a record's line in the journal."""
    data = {name: getattr(record, name) for name in _NAMES[type(record)]}
    if isinstance(record, LeakRecord):
        data[_KIND_OF_LEAK] = data.pop("leak")
    return {"event": record.kind, **data}


def from_json(line: Mapping[str, Any]) -> Record:
    """The record of a journal line, also of an older localsim; fields that are not known here are left out.

    Raises KeyError for an unknown event, TypeError where a field is missing.
    """
    kind = _KINDS[line["event"]]
    data = dict(line)
    if kind is LeakRecord and _KIND_OF_LEAK in data:
        data["leak"] = data.pop(_KIND_OF_LEAK)
    record: Record = kind(**{name: value for name, value in data.items() if name in _NAMES[kind]})
    return record


# ---- making records ------------------------------------------------------------------------------------------------


def scenario_record(loaded: LoadedScenario) -> ScenarioRecord:
    """The record of a scenario as it is now."""
    scenario = loaded.scenario
    return ScenarioRecord(
        scenario_hash=loaded.hash,
        scenario_id=scenario.id,
        title=scenario.title,
        family=scenario.family,
        document_json=scenario.model_dump_json(),
        answer_json=json.dumps(loaded.answer.as_json()),
        path=loaded.path.encode("utf-8", "replace").decode(),
    )


def episode_record(episode_id: str, run_id: str, scenario_hash: str, spec: EpisodeSpec) -> EpisodeRecord:
    """The record of an episode that begins; `scenario_hash` includes the answer key."""
    settings = {"models": dict(spec.models), "sampling": asdict(spec.sampling), "repro": spec.repro}
    return EpisodeRecord(
        episode_id=episode_id,
        run_id=run_id,
        scenario_hash=scenario_hash,
        mode=spec.mode,
        model="|".join(dict.fromkeys(spec.models.values())),
        episode_index=spec.index,
        seed=spec.seed,
        spec_hash=spec.hash,
        spec_json=json.dumps(settings, sort_keys=True),
    )


def score_records(episode_id: str, evaluator: str, version: str, scores: Sequence[Score]) -> list[ScoreRecord]:
    """The scores of one evaluator about one episode."""
    return [
        ScoreRecord(
            episode_id=episode_id,
            evaluator=evaluator,
            version=version,
            name=score.name,
            agent=score.agent or "",
            value=score.value,
            label=score.label,
            reason=score.reason,
            turns=score.turns,
        )
        for score in scores
    ]


def hash_of(text: str) -> str:
    """Content hash: the first 32 hex digits of the sha256 of the text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def episode_id_of(run_id: str, spec: EpisodeSpec) -> str:
    """An episode's id: a hash of its run and its spec."""
    return canonical_hash([run_id, spec.hash])[:16]
