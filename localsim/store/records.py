"""Records: everything that a run stores, as typed values for the journal and the tables.

This is the only place that states a column: its name, type and meaning, whether it belongs to the key, and whether the
view of its table shows it. `schema` makes tables, views and comments of it, `schema.rows_of` makes rows of records. The
first line of a class describes its table. `event` names a record in its journal line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, ClassVar

from localsim.conversation.episode import EpisodeSpec, Score
from localsim.conversation.requests import Generation
from localsim.conversation.scenario import canonical_hash


class Mark(Enum):
    """A property of a column that its Python type does not tell. A field that is a sequence or mapping is JSON text in
    the column NAME_json, and one that may be None may be NULL.
    """

    KEY = "primary key"
    APART = "the view of the table does not show it, or in another form"
    BIG = "BIGINT"
    TIME = "TIMESTAMP"
    VECTOR = "FLOAT[384]"


KEY, APART, BIG, TIME, VECTOR = Mark


class Stored:
    """The base of all records: the name of its journal line, and the table of its row; '' where it has none."""

    event: ClassVar[str]
    table: ClassVar[str]

    def __init_subclass__(cls, event: str = "", table: str = "") -> None:
        cls.event, cls.table = event, table


@dataclass(frozen=True)
class RunRecord(Stored, event="run", table="runs"):
    """One row for each localsim run.

    A record is made when it begins or continues. Times are ISO 8601 without an offset.
    """

    run_id: Annotated[str, KEY, "Id of the run: start time (UTC) and four random digits; ids sort by time"]
    status: Annotated[str, "State of the run: running, finished or interrupted"]
    started_utc: Annotated[str, TIME, "Time at which the run started, in UTC"]
    finished_utc: Annotated[
        str | None, TIME, "Time at which the last episode ended, in UTC; NULL while the run is going on"
    ]
    seed: Annotated[int, BIG, "Master seed, from which every other seed is derived"]
    repro: Annotated[str, "Level of reproducibility: exact, stable or fast; imported for people"]
    parallel: Annotated[int, "Number of episodes simulated at the same time (-j)"]
    episodes_planned: Annotated[int, "Number of episodes that the plan asks for"]
    plan_json: Annotated[str, APART, "Plan of the run, with all that resume needs: scenarios, modes, models, sampling"]
    models_json: Annotated[str, APART, "Identity of each backend: file, sha256, build, settings"]
    versions_json: Annotated[str, APART, "Versions of localsim, its prompts and its libraries"]
    plan_hash: Annotated[
        str | None, APART, "sha256 of plan_json, which declares the primary outcome, stored before the first episode"
    ] = None
    name: Annotated[str | None, "Name that a person gave the run with --name; NULL if it has none"] = None


@dataclass(frozen=True)
class RunEnded(Stored, event="run_ended"):
    """The end of the run of this journal: `finished` or `interrupted`."""

    status: str
    finished_utc: str


@dataclass(frozen=True)
class RunDied(Stored, event="run_died"):
    """The end of a run whose process died."""


@dataclass(frozen=True)
class ScenarioRecord(Stored, event="scenario", table="scenarios"):
    """One row for each scenario file, with its content when a run used it."""

    scenario_hash: Annotated[str, KEY, "sha256 of the scenario with its answer key"]
    scenario_id: Annotated[str, "Id of the scenario in its file"]
    title: Annotated[str, "Title of the scenario, in one line"]
    family: Annotated[str | None, "Task family that scores the scenario; NULL if it has none"]
    document_json: Annotated[str, "The scenario without its answer key"]
    answer_json: Annotated[str, "The answer key and the parameters of the generator, which only judges see"]
    path: Annotated[str | None, "Path of the file that held the scenario; its name if a game generated it"]


@dataclass(frozen=True)
class ContentRecord(Stored, event="content", table="contents"):
    """One row for each different text of a prompt, a grammar or a file of thresholds."""

    content_hash: Annotated[str, KEY, "Id of the text: the first 32 hex digits of its sha256"]
    text: Annotated[str, "The whole text"]


@dataclass(frozen=True)
class EpisodeRecord(Stored, event="episode", table="episodes"):
    """One row for each simulated conversation.

    A record is made when it begins, or continues after a resume.
    """

    episode_id: Annotated[str, KEY, "Id of the episode: a hash of run_id and spec"]
    run_id: Annotated[str, "The run that the episode belongs to"]
    scenario_hash: Annotated[str, "The scenario that was simulated"]
    mode: Annotated[str, "Information mode: script, iterative, agents or mindreaders; people if imported"]
    model: Annotated[str, "Models of the roles, joined with | where they differ"]
    episode_index: Annotated[int, "Number of the episode among those of its scenario, mode and model, from 0"]
    seed: Annotated[int, BIG, "Seed of the episode, equal in every mode; 0 for people"]
    spec_hash: Annotated[str, APART, "sha256 of everything that the episode depends on"]
    spec_json: Annotated[str, APART, "Models, layouts of prompts, sampling and level of reproducibility"]
    variant: Annotated[
        int, "Number of the perturbed variant of instructions and sampling; 0 for the prompts as they are"
    ] = 0
    see: Annotated[
        str, "Private items of others that the agents were granted, as in --see; empty where nothing is granted"
    ] = ""


@dataclass(frozen=True)
class EpisodeEnded(Stored, event="episode_ended", table="episodes"):
    """The end of an episode: the other columns of its row."""

    episode_id: str
    status: Annotated[str, "State of the episode: completed, failed or interrupted"]
    stop_reason: Annotated[
        str | None,
        "Rule that ended the episode: turn_limit, left, silence, closing (all said goodbye), stale (nothing new "
        "was said), done (phases) or (people) ended; NULL unless completed",
    ]
    error: Annotated[str | None, "Reason why the episode failed; NULL if it did not fail"]
    turns: Annotated[int, APART, "Number of valid turns"]
    duration_ms: Annotated[
        float | None,
        "Milliseconds from the first request to the end, while other episodes may run too; NULL without end",
    ]


@dataclass(frozen=True)
class TurnRecord(Stored, event="turn", table="turns"):
    """One row for each valid turn."""

    episode_id: Annotated[str, KEY, "The episode that the turn belongs to"]
    turn: Annotated[int, KEY, "Number of the turn, from 0; pages and `show` count from 1"]
    speaker: Annotated[str, "Name of the agent whose turn it is; empty if the rules tell something"]
    action: Annotated[
        str,
        "Type of the action: speak, non-verbal communication, action, leave or none; the name of a move; or told,"
        " by the rules",
    ]
    text: Annotated[str, "The words of the agent, or a description of the action"]
    words: Annotated[int, "Number of words in speech; 0 for other actions"]
    truncated: Annotated[bool, "True if the text was cut at its limit"]
    generation: Annotated[
        int,
        "Number of the generation that contains the turn; -1 for imported and given ones and for what the rules tell",
    ]
    values: Annotated[Sequence[str] | None, "Values of a move, as a list of texts; NULL for actions without values"] = (
        None
    )
    readers: Annotated[
        Sequence[str] | None, "Agents who can read the turn, its author first; NULL if everybody can"
    ] = None
    beat: Annotated[int | None, "Number of the first turn of its beat; the turns of one beat are simultaneous"] = None
    """None in journals of versions that knew no beats: the turn itself."""
    phase: Annotated[str, "Name of the phase of the scenario; empty where it has none"] = ""
    repaired: Annotated[
        bool, "True if what the model wrote beyond its own utterance was left out; the generation has all of it"
    ] = False


@dataclass(frozen=True)
class GenerationRecord(Stored, event="generation", table="generations"):
    """One row for each text that a backend wrote, including malformed and failed ones.

    One that failed has the cause `error` and its reason in `malformed`.
    """

    episode_id: Annotated[str, KEY, "The episode that the generation belongs to"]
    generation: Annotated[int, KEY, "Number of the generation within the episode, from 0"]
    turn: Annotated[int, "Number of the first turn that was requested"]
    attempt: Annotated[int, "0 for the first attempt, 1 for the retry with a new seed"]
    speaker: Annotated[str, "Name of the agent, or writer for a script"]
    seed: Annotated[int, BIG, "Seed of this attempt"]
    parent: Annotated[int | None, APART, "Earlier generation whose messages begin this prompt; NULL if there is none"]
    messages: Annotated[
        Sequence[Sequence[str]], APART, "Messages after those of the parent: [[role, content hash], ...]"
    ]
    prefill_hash: Annotated[str, APART, "Content hash of the fixed start of the reply"]
    grammar_hash: Annotated[str | None, APART, "Content hash of the GBNF grammar; NULL without one"]
    model: Annotated[str, "Identity of the model that wrote the text"] = ""
    text: Annotated[str, "Raw text of the reply, after the prefill"] = ""
    cause: Annotated[str, "Event that ended the reply: finished, end_of_text, length or error"] = "error"
    malformed: Annotated[str | None, "Error in the reply; NULL if it could be read"] = None
    prompt_tokens: Annotated[int, "Number of tokens in the prompt"] = 0
    evaluated_tokens: Annotated[int, "Number of prompt tokens that were not in the cache"] = 0
    shared_tokens: Annotated[int, "Number of cached prompt tokens that another conversation had evaluated"] = 0
    dropped_messages: Annotated[
        int, "Number of messages (or lines of a script) left out because the context was full"
    ] = 0
    generated_tokens: Annotated[int, "Number of tokens in the reply, including forced ones"] = 0
    duration_ms: Annotated[float, "Milliseconds from submission to end"] = 0.0
    details: Annotated[
        Mapping[str, Any],
        APART,
        "Effective sampling, counts of forced and refused tokens, max_tokens, probabilities of options",
    ] = field(default_factory=dict)


@dataclass(frozen=True)
class RejectRecord(Stored, event="reject"):
    """A reply that does not parse, in a generation."""

    episode_id: str
    generation: int
    reason: str


@dataclass(frozen=True)
class ScoreRecord(Stored, event="score", table="scores"):
    """One row for each score, with its evidence."""

    episode_id: Annotated[str, KEY, "The episode that was scored"]
    evaluator: Annotated[
        str,
        KEY,
        "Name of the evaluator: outcome.FAMILY, style, play, checks, leakage, judge.MODEL, naturalness.MODEL, "
        "leak_judge.MODEL, corpus",
    ]
    version: Annotated[
        str, KEY, "Version of the evaluator, for leakage as in the table leaks; scores of older versions are kept"
    ]
    name: Annotated[str, KEY, "Name of the score, such as success or words_per_turn"]
    agent: Annotated[str, KEY, APART, "Agent that the score concerns; empty for the whole episode"]
    value: Annotated[float | None, "The score as a number; NULL if it could not be determined"]
    label: Annotated[str | None, "The score as a word; NULL if it has none"]
    reason: Annotated[str, "Explanation of the score"]
    turns: Annotated[Sequence[int], "Numbers of the turns that are its evidence"]


@dataclass(frozen=True)
class LeakRecord(Stored, event="leak", table="leaks"):
    """One row for each hint at, or disclosure of, a private fact that the leakage detector found."""

    episode_id: Annotated[str, KEY, "The episode that contains the leak"]
    version: Annotated[
        str,
        KEY,
        "Version of the detector, with + and a hash if its thresholds are not the built-in ones; leaks of earlier"
        " searches are kept",
    ]
    fact_id: Annotated[str, KEY, "Id of the fact in the scenario"]
    turn: Annotated[int, KEY, "Number of the turn, from 0; pages and `show` count from 1"]
    owner: Annotated[str, "Name of the agent that the fact belongs to"]
    fact: Annotated[str, "Text of the fact"]
    speaker: Annotated[str, "Name of the agent that hinted at or disclosed it"]
    label: Annotated[str, APART, "Strength of the leak: disclosed or hint"]
    kind: Annotated[
        str,
        "Kind of leak: self (by the owner), omniscient (by one who was not told), passed_on (by one who was, to "
        "somebody new) or repeat (to nobody new)",
    ]
    probability: Annotated[float, "Probability that the fact is disclosed, according to the detector, 0 to 1"]
    similarity: Annotated[float, "Cosine similarity of the fact and the nearest clause"]
    evidence: Annotated[str, "The words of the turn that show the leak"]
    first: Annotated[bool, APART, "True if it is the first disclosure of this fact"]
    early: Annotated[bool, "True if it breaks the scenario's rule for the fact"]


@dataclass(frozen=True)
class SearchRecord(Stored, event="search", table="searches"):
    """One row for each search of an episode for leaks, with the thresholds that decided."""

    episode_id: Annotated[str, KEY, "The episode that was searched"]
    version: Annotated[str, KEY, "Version of its leaks and scores, as in the tables leaks and scores"]
    weights: Annotated[str, "Thresholds of the detector: built-in, or name and short hash of the file"]
    weights_hash: Annotated[str, "Content hash of the whole file of thresholds"]
    searched_utc: Annotated[str, TIME, "Time of the last search with these thresholds, in UTC"]


@dataclass(frozen=True)
class VectorRecord(Stored, event="vector", table="vectors"):
    """One row for the sentence embedding of each different fact, utterance and clause."""

    text_hash: Annotated[str, KEY, "Id of the text: the first 32 hex digits of its sha256"]
    model: Annotated[str, KEY, "Name of the embedding model"]
    text: Annotated[str, "The whole text"]
    vector: Annotated[
        Sequence[float], VECTOR, "Unit vector; array_inner_product of two vectors is their cosine similarity"
    ]


@dataclass(frozen=True)
class JudgementRecord(Stored, event="judgement", table="judgements"):
    """One row for each question to a model as judge, with its thought and reply."""

    episode_id: Annotated[str, KEY, "The episode that was judged; for a pair, the first one"]
    evaluator: Annotated[str, KEY, "Name of the evaluator: judge.MODEL, naturalness.MODEL or leak_judge.MODEL"]
    version: Annotated[str, KEY, "Version of the evaluator"]
    name: Annotated[
        str,
        KEY,
        "Name of the score in the table scores: a dimension, natural_against_CONDITION within a run, "
        "natural_against_EPISODE between two runs or models, or fact.ID",
    ]
    agent: Annotated[str, KEY, APART, "Agent that the question concerns; empty for the whole episode"]
    sample: Annotated[
        int,
        KEY,
        "Number of the repetition, from 0; for a pair, 1 is the swapped order; for a fact, the last turn shown",
    ]
    other_id: Annotated[str | None, "The second episode of a pair; NULL if one episode was judged alone"]
    seed: Annotated[int, BIG, "Seed of the reply"]
    instructions_hash: Annotated[str, APART, "Content hash of the system message"]
    prompt_hash: Annotated[str, APART, "Content hash of the user message, with conversation and question"]
    prefill: Annotated[str, APART, "Fixed start of the reply"]
    grammar_hash: Annotated[str | None, APART, "Content hash of the GBNF grammar; NULL without one"]
    model: Annotated[str, APART, "Identity of the model that replied; empty if the request failed"] = ""
    thought: Annotated[str | None, "Thought of the model before its reply; NULL if it did not think"] = None
    text: Annotated[str, APART, "Raw text of the reply, after the prefill"] = ""
    cause: Annotated[str, "Event that ended the reply: finished, end_of_text, length or error"] = "error"
    truncated: Annotated[bool, "True if the thought or the reply was cut at its limit"] = False
    malformed: Annotated[str | None, "Error in the reply; NULL if it could be read"] = None
    prompt_tokens: Annotated[int, "Number of tokens in the prompt"] = 0
    evaluated_tokens: Annotated[int, "Number of prompt tokens that were not in the cache"] = 0
    thought_tokens: Annotated[int, "Number of tokens in the thought"] = 0
    generated_tokens: Annotated[int, "Number of tokens in thought and reply, including forced ones"] = 0
    duration_ms: Annotated[float, "Milliseconds from submission to end"] = 0.0
    details: Annotated[
        Mapping[str, Any], APART, "Effective sampling, max_tokens and the limit of tokens for thoughts"
    ] = field(default_factory=dict)


@dataclass(frozen=True)
class AnswerRow(Stored, table="annotations"):
    """One row for each answer of a rater to one item.

    A second answer with the same task, item and rater replaces it. Answers are written without a journal.
    """

    task: Annotated[
        str,
        KEY,
        "Annotation task: pairs, dimensions or disclosures; bet: a player of a class; participant, before, after,"
        " message or rubric: a participant of an experiment (v_participants)",
    ]
    item_id: Annotated[str, KEY, "Item that was rated: two episodes, an episode and an agent, or an episode"]
    rater: Annotated[str, KEY, "Pseudonym of the rater; names and addresses are not stored"]
    run_id: Annotated[str, "The run of the rated episode; for a pair, of the first one of its item"]
    value_json: Annotated[
        str, "Answer. Pairs: 1, 2 or 0 (tie). Bet: {best} or {saw}. Else an object from dimension or fact to number"
    ]
    shown_json: Annotated[str, "Display of the item: episodes shown as 1 and 2, rated agent, shuffled episode"]
    attention: Annotated[bool, "True if the item only checks the rater's attention, with shuffled words"]
    seconds: Annotated[float | None, "Seconds that the rater spent on the item; NULL if not known"]
    created_utc: Annotated[datetime, "Time of the last answer to the item, in UTC"]
    origin: Annotated[str, "Source of the answer: browser, terminal or bundle"]
    made_by: Annotated[str, "Kind of rater: person or language model"] = "person"


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


def score_records(episode_id: str, evaluator: str, version: str, scores: Sequence[Score]) -> list[ScoreRecord]:
    """Return the records of one evaluator's scores of one episode."""
    return [
        ScoreRecord(episode_id, evaluator, version, **{**vars(score), "agent": score.agent or ""}) for score in scores
    ]


WRITTEN = tuple(each.name for each in fields(Generation) if each.name not in ("details", "thought"))
"""The fields of a text that a backend wrote which its record has under the same names."""


def hash_of(text: str) -> str:
    """Return the content hash of a text: the first 32 hex digits of its sha256."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def episode_id_of(run_id: str, spec: EpisodeSpec) -> str:
    """Return an episode's id: a hash of its run and its spec."""
    return canonical_hash([run_id, spec.hash])[:16]
