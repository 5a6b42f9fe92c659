"""Records: everything that a run stores, as typed values for the journal and the tables.

`event` names a record in its journal line. `rows.rows_of` turns records into rows; columns are described in
`schema.TABLES`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from localsim.conversation.episode import EpisodeSpec, Score
from localsim.conversation.scenario import LoadedScenario, canonical_hash
from localsim.conversation.transcript import Turn


@dataclass(frozen=True)
class RunRecord:
    """A run that begins or continues; times are ISO 8601 in UTC without an offset."""

    event: ClassVar[str] = "run"
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
    plan_hash: str | None = None
    name: str | None = None
    """The name that a person gave the run."""


@dataclass(frozen=True)
class RunEnded:
    """The end of the run of this journal: `finished` or `interrupted`."""

    event: ClassVar[str] = "run_ended"
    status: str
    finished_utc: str


@dataclass(frozen=True)
class RunDied:
    """The end of a run whose process died."""

    event: ClassVar[str] = "run_died"


@dataclass(frozen=True)
class ScenarioRecord:
    """A scenario and, separately, its answer key, as they are now."""

    event: ClassVar[str] = "scenario"
    scenario_hash: str
    scenario_id: str
    title: str
    family: str | None
    document_json: str
    answer_json: str
    path: str | None


@dataclass(frozen=True)
class ContentRecord:
    """A text that other records refer to by hash: a message, a prefill, a grammar."""

    event: ClassVar[str] = "content"
    content_hash: str
    text: str


@dataclass(frozen=True)
class EpisodeRecord:
    """An episode that begins, or continues after a resume."""

    event: ClassVar[str] = "episode"
    episode_id: str
    run_id: str
    scenario_hash: str
    mode: str
    model: str
    episode_index: int
    seed: int
    spec_hash: str
    spec_json: str
    variant: int = 0
    see: str = ""


@dataclass(frozen=True)
class EpisodeEnded:
    """The end of an episode."""

    event: ClassVar[str] = "episode_ended"
    episode_id: str
    status: str
    stop_reason: str | None
    error: str | None
    turns: int
    duration_ms: float


@dataclass(frozen=True)
class TurnRecord:
    """A valid turn."""

    event: ClassVar[str] = "turn"
    episode_id: str
    turn: int
    speaker: str
    action: str
    text: str
    words: int
    truncated: bool
    generation: int
    values: Sequence[str] | None = None
    readers: Sequence[str] | None = None
    beat: int | None = None
    """None in journals of versions that knew no beats: the turn itself."""
    phase: str = ""
    repaired: bool = False


@dataclass(frozen=True)
class GenerationRecord:
    """A text that a backend wrote, or the reason (`malformed`, with cause `error`) why there is none."""

    event: ClassVar[str] = "generation"
    episode_id: str
    generation: int
    turn: int
    attempt: int
    speaker: str
    seed: int
    parent: int | None
    messages: Sequence[Sequence[str]]
    """(role, content hash) of the messages after those of the parent."""
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
    """A reply that does not parse, in a generation."""

    event: ClassVar[str] = "reject"
    episode_id: str
    generation: int
    reason: str


@dataclass(frozen=True)
class ScoreRecord:
    """A score by one version of an evaluator; `agent` is '' for the whole episode."""

    event: ClassVar[str] = "score"
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

    event: ClassVar[str] = "leak"
    episode_id: str
    version: str
    fact_id: str
    turn: int
    owner: str
    fact: str
    speaker: str
    label: str
    kind: str
    """self, omniscient or repeat: the column `kind`."""
    probability: float
    similarity: float
    evidence: str
    first: bool
    early: bool


@dataclass(frozen=True)
class SearchRecord:
    """The thresholds with which one version of the leakage detector searched an episode."""

    event: ClassVar[str] = "search"
    episode_id: str
    version: str
    weights: str
    """`built-in`, or name and short hash of the file."""
    weights_hash: str
    """Content hash of the whole file."""
    searched_utc: str


@dataclass(frozen=True)
class VectorRecord:
    """The embedding of a text."""

    event: ClassVar[str] = "vector"
    text_hash: str
    model: str
    text: str
    vector: Sequence[float]


@dataclass(frozen=True)
class JudgementRecord:
    """A question to a model as judge, and its answer."""

    event: ClassVar[str] = "judgement"
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
    | SearchRecord
    | VectorRecord
    | JudgementRecord
)
_EVENTS: dict[str, type[Any]] = {each.event: each for each in Record.__args__}
_FIELDS: dict[type[Any], tuple[str, ...]] = {
    each: tuple(field.name for field in fields(each)) for each in _EVENTS.values()
}


def as_json(record: Record) -> dict[str, Any]:
    """Return the object of a record's line in the journal."""
    return {"event": record.event, **{name: getattr(record, name) for name in _FIELDS[type(record)]}}


def from_json(line: Mapping[str, Any]) -> Record:
    """Return the record of a journal line, also of another version of localsim; unknown fields are left out.

    Raises KeyError for an unknown event, TypeError where a field is missing.
    """
    made = _EVENTS[line["event"]]
    record: Record = made(**{name: line[name] for name in _FIELDS[made] if name in line})
    return record


# ---- making records ------------------------------------------------------------------------------------------------


def scenario_record(loaded: LoadedScenario) -> ScenarioRecord:
    """Return the record of a scenario as it is now."""
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
    """Return the record of an episode that begins; `scenario_hash` includes the answer key."""
    settings = {"models": dict(spec.models), "sampling": spec.sampling.stated(), "repro": spec.repro}
    if spec.layouts:
        settings["layouts"] = dict(spec.layouts)
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
        variant=spec.variant,
        see=spec.grants.text,
    )


def turn_record(episode_id: str, turn: Turn, generation: int) -> TurnRecord:
    """Return the record of a turn; `generation` is -1 for turns without one."""
    return TurnRecord(
        episode_id=episode_id,
        turn=turn.index,
        speaker=turn.speaker,
        action=turn.action.type,
        text=turn.action.text,
        words=turn.words,
        truncated=turn.truncated,
        generation=-1 if turn.told else generation,
        values=turn.action.values,
        readers=turn.readers,
        beat=turn.beat,
        phase=turn.phase,
        repaired=turn.repaired,
    )


def score_records(episode_id: str, evaluator: str, version: str, scores: Sequence[Score]) -> list[ScoreRecord]:
    """Return the records of one evaluator's scores of one episode."""
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
    """Return the content hash of a text: the first 32 hex digits of its sha256."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def episode_id_of(run_id: str, spec: EpisodeSpec) -> str:
    """Return an episode's id: a hash of its run and its spec."""
    return canonical_hash([run_id, spec.hash])[:16]
