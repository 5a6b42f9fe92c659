"""The schema as it is now: tables, columns, comments, and the views that are the public SQL contract.

Tables have primary keys only: with foreign keys or secondary indexes DuckDB refuses later changes of columns
(duckdb#17348). Views list their columns, because `SELECT *` views break when a column is added. A file gets here by
`migrations`, which are frozen; a column added here needs a migration there.
"""

from __future__ import annotations

from typing import NamedTuple


class Table(NamedTuple):
    """A table: what it holds, its columns as name -> (type, comment), and its primary key."""

    comment: str
    columns: dict[str, tuple[str, str]]
    primary_key: str

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of the primary key."""
        return tuple(self.primary_key.split(", "))


TABLES: dict[str, Table] = {
    "runs": Table(
        "One row for each localsim run",
        {
            "run_id": ("VARCHAR NOT NULL", "Start time (UTC) and four random digits; sorts by time"),
            "status": ("VARCHAR NOT NULL", "running, finished or interrupted"),
            "started_utc": ("TIMESTAMP NOT NULL", "When it was started"),
            "finished_utc": ("TIMESTAMP", "When the last episode ended; NULL while it runs"),
            "seed": ("BIGINT NOT NULL", "Master seed; every other seed derives from it"),
            "repro": ("VARCHAR NOT NULL", "Level of reproducibility: exact, stable or fast"),
            "parallel": ("INTEGER NOT NULL", "Episodes simulated side by side (-j)"),
            "episodes_planned": ("INTEGER NOT NULL", "Episodes the run is to have"),
            "plan_json": ("VARCHAR NOT NULL", "Scenarios, modes, models, sampling: all that resume needs"),
            "models_json": ("VARCHAR NOT NULL", "Identity of each backend: file, sha256, build, settings"),
            "versions_json": ("VARCHAR NOT NULL", "Versions of localsim, its prompts and its libraries"),
        },
        "run_id",
    ),
    "scenarios": Table(
        "Scenario files as they were when used, one row for each content",
        {
            "scenario_hash": ("VARCHAR NOT NULL", "sha256 of the scenario with its answer key"),
            "scenario_id": ("VARCHAR NOT NULL", "The id in the file"),
            "title": ("VARCHAR NOT NULL", "One line"),
            "family": ("VARCHAR", "Task family that scores it, if any"),
            "document_json": ("VARCHAR NOT NULL", "The scenario without its answer key"),
            "answer_json": ("VARCHAR NOT NULL", "The judge-only answer key and generation parameters"),
            "path": ("VARCHAR", "File it was read from"),
        },
        "scenario_hash",
    ),
    "episodes": Table(
        "One row for each simulated conversation",
        {
            "episode_id": ("VARCHAR NOT NULL", "Hash of run_id and spec"),
            "run_id": ("VARCHAR NOT NULL", "Its run"),
            "scenario_hash": ("VARCHAR NOT NULL", "Its scenario"),
            "mode": ("VARCHAR NOT NULL", "script, agents or mindreaders"),
            "model": ("VARCHAR NOT NULL", "Models of the roles, joined with | where they differ"),
            "episode_index": ("INTEGER NOT NULL", "Counts the seeds of a scenario x mode x model from 0"),
            "seed": ("BIGINT NOT NULL", "Episode seed; equal in every mode"),
            "status": ("VARCHAR NOT NULL", "completed, failed or interrupted"),
            "stop_reason": ("VARCHAR", "turn_limit, left or silence; NULL unless completed"),
            "error": ("VARCHAR", "Why it failed"),
            "turns": ("INTEGER NOT NULL", "Number of turns that stand"),
            "spec_hash": ("VARCHAR NOT NULL", "sha256 of all that the episode depends on"),
            "spec_json": ("VARCHAR NOT NULL", "Models, sampling and level of reproducibility"),
            "duration_ms": ("DOUBLE", "Wall time from first request to end, other episodes running alongside"),
        },
        "episode_id",
    ),
    "turns": Table(
        "One row for each turn that stands",
        {
            "episode_id": ("VARCHAR NOT NULL", "Its episode"),
            "turn": ("INTEGER NOT NULL", "Index from 0"),
            "speaker": ("VARCHAR NOT NULL", "Agent name"),
            "action": ("VARCHAR NOT NULL", "speak, non-verbal communication, action, leave or none"),
            "text": ("VARCHAR NOT NULL", "What was said or done"),
            "words": ("INTEGER NOT NULL", "Words said; 0 for what is not speech"),
            "truncated": ("BOOLEAN NOT NULL", "Whether the text was cut at its limit"),
            "generation": ("INTEGER NOT NULL", "The generation that holds it"),
        },
        "episode_id, turn",
    ),
    "generations": Table(
        "One row for each text a backend wrote, malformed ones too",
        {
            "episode_id": ("VARCHAR NOT NULL", "Its episode"),
            "generation": ("INTEGER NOT NULL", "Index from 0 within the episode"),
            "turn": ("INTEGER NOT NULL", "First turn it was to write"),
            "attempt": ("INTEGER NOT NULL", "0, or 1 for a retry under a new seed"),
            "speaker": ("VARCHAR NOT NULL", "Agent name, or writer"),
            "model": ("VARCHAR NOT NULL", "What wrote it"),
            "seed": ("BIGINT NOT NULL", "Seed of this attempt"),
            "parent": ("INTEGER", "Earlier generation whose messages stand before these; NULL for none"),
            "messages_json": ("VARCHAR NOT NULL", "[[role, content hash], ...] that follow the parent's messages"),
            "prefill_hash": ("VARCHAR NOT NULL", "Content hash of the fixed start of the reply"),
            "grammar_hash": ("VARCHAR", "Content hash of the GBNF grammar; NULL without one"),
            "text": ("VARCHAR NOT NULL", "Raw reply after the prefill"),
            "cause": ("VARCHAR NOT NULL", "finished, end_of_text, length or error"),
            "malformed": ("VARCHAR", "What is wrong with the reply; NULL if nothing is"),
            "prompt_tokens": ("INTEGER NOT NULL", "Tokens of the prompt"),
            "evaluated_tokens": ("INTEGER NOT NULL", "Prompt tokens that were not in the cache"),
            "generated_tokens": ("INTEGER NOT NULL", "Tokens of the reply, forced ones included"),
            "duration_ms": ("DOUBLE NOT NULL", "From submission to end"),
            "details_json": ("VARCHAR NOT NULL", "Effective sampling, forced and refused tokens, max_tokens"),
            "shared_tokens": ("INTEGER", "Prompt tokens that another conversation had evaluated"),
            "dropped_messages": ("INTEGER", "Messages (or lines of a script) left out because the context was full"),
        },
        "episode_id, generation",
    ),
    "contents": Table(
        "Texts of prompts and grammars, each once",
        {
            "content_hash": ("VARCHAR NOT NULL", "First 32 hex digits of the sha256 of the text"),
            "text": ("VARCHAR NOT NULL", "The text"),
        },
        "content_hash",
    ),
    "scores": Table(
        "One row for each judgement, with its evidence",
        {
            "episode_id": ("VARCHAR NOT NULL", "Its episode"),
            "evaluator": ("VARCHAR NOT NULL", "outcome.FAMILY, style, leakage or judge.MODEL"),
            "version": ("VARCHAR NOT NULL", "Version of the evaluator; both stay when it changes"),
            "name": ("VARCHAR NOT NULL", "What was judged"),
            "agent": ("VARCHAR NOT NULL", "Whom it concerns; empty for the whole episode"),
            "value": ("DOUBLE", "The judgement as a number"),
            "label": ("VARCHAR", "The judgement as a word"),
            "reason": ("VARCHAR NOT NULL", "Why"),
            "turns_json": ("VARCHAR NOT NULL", "Indices of the turns it rests on"),
        },
        "episode_id, evaluator, version, name, agent",
    ),
    "leaks": Table(
        "Every hint at and disclosure of a private fact that the leakage detector found",
        {
            "episode_id": ("VARCHAR NOT NULL", "Its episode"),
            "version": ("VARCHAR NOT NULL", "Version of the detector; both stay when it changes"),
            "fact_id": ("VARCHAR NOT NULL", "Id of the fact in the scenario"),
            "turn": ("INTEGER NOT NULL", "Where, from 0"),
            "owner": ("VARCHAR NOT NULL", "Whose fact it is"),
            "fact": ("VARCHAR NOT NULL", "The fact"),
            "speaker": ("VARCHAR NOT NULL", "Who let it out"),
            "label": ("VARCHAR NOT NULL", "disclosed or hint"),
            "kind": (
                "VARCHAR NOT NULL",
                "self (by its owner), omniscient (by somebody who was not told) or repeat (after it had come out)",
            ),
            "probability": ("DOUBLE NOT NULL", "How sure the detector is that it is disclosed, 0 to 1"),
            "similarity": ("DOUBLE NOT NULL", "Cosine of the fact and the clause nearest to it"),
            "evidence": ("VARCHAR NOT NULL", "The words"),
            "first": ("BOOLEAN NOT NULL", "Whether it is the first disclosure of this fact"),
            "early": ("BOOLEAN NOT NULL", "Whether it breaks the scenario's rule for the fact"),
        },
        "episode_id, version, fact_id, turn",
    ),
    "vectors": Table(
        "Sentence embeddings of facts, utterances and clauses, each text once",
        {
            "text_hash": ("VARCHAR NOT NULL", "First 32 hex digits of the sha256 of the text"),
            "model": ("VARCHAR NOT NULL", "Embedding model"),
            "text": ("VARCHAR NOT NULL", "The text"),
            "vector": ("FLOAT[384] NOT NULL", "Unit vector: array_inner_product of two is their cosine"),
        },
        "text_hash, model",
    ),
    "annotations": Table(
        "One row for each answer of a person to one item, under a pseudonym",
        {
            "task": ("VARCHAR NOT NULL", "pairs, dimensions or disclosures"),
            "item_id": ("VARCHAR NOT NULL", "What was judged: two episodes, an episode and an agent, or an episode"),
            "rater": ("VARCHAR NOT NULL", "Pseudonym of the person; no names or addresses"),
            "run_id": ("VARCHAR NOT NULL", "Its run"),
            "value_json": ("VARCHAR NOT NULL", "pairs: 1, 2 or 0 (tie); else an object: dimension or fact to number"),
            "shown_json": ("VARCHAR NOT NULL", "Episodes shown as 1 and 2; the agent judged; which was shuffled"),
            "attention": ("BOOLEAN NOT NULL", "Whether it only checks that the rater reads (shuffled words)"),
            "seconds": ("DOUBLE", "Time on the item, in seconds; NULL where it is not known"),
            "created_utc": ("TIMESTAMP NOT NULL", "When it was answered last"),
            "origin": ("VARCHAR NOT NULL", "browser, terminal or bundle"),
        },
        "task, item_id, rater",
    ),
    "judgements": Table(
        "One row for each question to a model as judge: what it was asked, thought and answered",
        {
            "episode_id": ("VARCHAR NOT NULL", "The episode judged; of a pair, the first"),
            "evaluator": ("VARCHAR NOT NULL", "judge.MODEL or naturalness.MODEL"),
            "version": ("VARCHAR NOT NULL", "Version of the evaluator"),
            "name": ("VARCHAR NOT NULL", "What was asked: a dimension, or natural_against_MODE; as in scores"),
            "agent": ("VARCHAR NOT NULL", "Whom it concerns; empty for the whole episode"),
            "sample": ("INTEGER NOT NULL", "Counts the times it was asked from 0; of a pair, 1 is the swapped order"),
            "other_id": ("VARCHAR", "The second episode of a pair; NULL where one was judged alone"),
            "model": ("VARCHAR NOT NULL", "What wrote it; empty where no reply could be had"),
            "seed": ("BIGINT NOT NULL", "Seed of the reply"),
            "instructions_hash": ("VARCHAR NOT NULL", "Content hash of the system message"),
            "prompt_hash": ("VARCHAR NOT NULL", "Content hash of the user message: the talk and the question"),
            "prefill": ("VARCHAR NOT NULL", "Fixed start of the reply"),
            "grammar_hash": ("VARCHAR", "Content hash of the GBNF grammar; NULL without one"),
            "thought": ("VARCHAR", "What it thought before it replied; NULL where it did not think"),
            "text": ("VARCHAR NOT NULL", "Raw reply after the prefill"),
            "cause": ("VARCHAR NOT NULL", "finished, end_of_text, length or error"),
            "truncated": ("BOOLEAN NOT NULL", "Whether the thought or the reply was cut at its limit"),
            "malformed": ("VARCHAR", "What is wrong with the reply; NULL if nothing is"),
            "prompt_tokens": ("INTEGER NOT NULL", "Tokens of the prompt"),
            "evaluated_tokens": ("INTEGER NOT NULL", "Prompt tokens that were not in the cache"),
            "thought_tokens": ("INTEGER NOT NULL", "Tokens of the thought"),
            "generated_tokens": ("INTEGER NOT NULL", "Tokens of thought and reply, forced ones included"),
            "duration_ms": ("DOUBLE NOT NULL", "From submission to end"),
            "details_json": ("VARCHAR NOT NULL", "Effective sampling, max_tokens, tokens it might think"),
        },
        "episode_id, evaluator, version, name, agent, sample",
    ),
}

VIEWS: dict[str, tuple[str, str]] = {
    "v_runs": (
        "Runs with their counts",
        """SELECT r.run_id, r.status, r.started_utc, r.finished_utc, r.seed, r.repro, r.parallel, r.episodes_planned,
       count(e.episode_id) FILTER (e.status = 'completed') AS completed,
       count(e.episode_id) FILTER (e.status = 'failed') AS failed
FROM runs r LEFT JOIN episodes e ON e.run_id = r.run_id
GROUP BY ALL""",
    ),
    "v_episodes": (
        "Episodes with scenario and family",
        """SELECT e.episode_id, e.run_id, s.scenario_id, s.family, e.mode, e.model, e.seed, e.status, e.stop_reason,
       e.turns, e.episode_index, e.error, s.title, e.duration_ms, e.scenario_hash
FROM episodes e JOIN scenarios s ON s.scenario_hash = e.scenario_hash""",
    ),
    "v_turns": (
        "Turns with their place in the conversation",
        """SELECT t.episode_id, t.turn, t.speaker, t.action, t.text, t.words,
       CASE WHEN e.turns > 1 THEN t.turn / (e.turns - 1)::DOUBLE ELSE 0 END AS position,
       t.truncated, t.generation, e.run_id, e.mode, e.model, s.scenario_id, s.family, g.dropped_messages
FROM turns t JOIN episodes e ON e.episode_id = t.episode_id JOIN scenarios s ON s.scenario_hash = e.scenario_hash
LEFT JOIN generations g ON g.episode_id = t.episode_id AND g.generation = t.generation""",
    ),
    "v_generations": (
        "Generations with what they cost",
        """SELECT g.episode_id, g.generation, g.turn, g.attempt, g.speaker, g.model, g.seed, g.cause, g.malformed,
       g.prompt_tokens, g.evaluated_tokens, g.generated_tokens, g.duration_ms, g.text, e.run_id, e.mode,
       g.shared_tokens, g.dropped_messages
FROM generations g JOIN episodes e ON e.episode_id = g.episode_id""",
    ),
    "v_scores": (
        "Scores with the newest version of each evaluator marked",
        """SELECT c.episode_id, nullif(c.agent, '') AS agent, c.evaluator, c.version, c.name, c.value, c.reason,
       c.label, c.turns_json, e.run_id, e.mode, e.model, s.scenario_id, s.family,
       c.version::INTEGER = max(c.version::INTEGER) OVER (PARTITION BY c.episode_id, c.evaluator) AS newest
FROM scores c JOIN episodes e ON e.episode_id = c.episode_id JOIN scenarios s ON s.scenario_hash = e.scenario_hash""",
    ),
    "v_leaks": (
        "The first disclosure of each private fact that came out, by the newest detector that looked",
        """SELECT l.episode_id, l.fact_id, l.owner, l.speaker, l.turn,
       CASE WHEN e.turns > 1 THEN l.turn / (e.turns - 1)::DOUBLE ELSE 0 END AS position, l.kind, l.similarity, l.early,
       l.probability, l.evidence, l.fact, l.version, e.run_id, e.mode, e.model, s.scenario_id, s.family
FROM leaks l JOIN episodes e ON e.episode_id = l.episode_id JOIN scenarios s ON s.scenario_hash = e.scenario_hash
WHERE l.first AND l.version::INTEGER = (SELECT max(c.version::INTEGER) FROM scores c
      WHERE c.episode_id = l.episode_id AND c.evaluator = 'leakage')""",
    ),
    "v_annotations": (
        "Answers of people, with the modes of what they saw; modes are NULL for attention items, where both are one",
        """SELECT a.task, a.item_id, a.rater, a.run_id, a.value_json, a.shown_json, a.attention, a.seconds,
       a.created_utc, a.origin, one.mode AS mode_1, two.mode AS mode_2,
       CASE WHEN a.task = 'pairs' AND a.value_json = '1' THEN one.mode
            WHEN a.task = 'pairs' AND a.value_json = '2' THEN two.mode END AS chosen_mode
FROM annotations a
LEFT JOIN episodes one ON one.episode_id = a.shown_json ->> '$."1"' AND NOT a.attention
LEFT JOIN episodes two ON two.episode_id = a.shown_json ->> '$."2"' AND NOT a.attention""",
    ),
    "v_judgements": (
        "What judges were asked and answered, word for word",
        """SELECT j.episode_id, j.other_id, nullif(j.agent, '') AS agent, j.evaluator, j.version, j.name, j.sample,
       i.text AS instructions, p.text AS prompt, j.thought, j.prefill || j.text AS reply, j.malformed, j.truncated,
       j.cause, j.model AS judge, j.seed, j.prompt_tokens, j.evaluated_tokens, j.thought_tokens, j.generated_tokens,
       j.duration_ms, e.run_id, e.mode, o.mode AS other_mode, e.model, s.scenario_id, s.family
FROM judgements j JOIN episodes e ON e.episode_id = j.episode_id
JOIN scenarios s ON s.scenario_hash = e.scenario_hash
JOIN contents i ON i.content_hash = j.instructions_hash JOIN contents p ON p.content_hash = j.prompt_hash
LEFT JOIN episodes o ON o.episode_id = j.other_id""",
    ),
}


def table_sql(name: str, columns: dict[str, tuple[str, str]], key: str) -> str:
    """CREATE TABLE statement."""
    lines = [f"    {column} {kind}," for column, (kind, _) in columns.items()]
    return f"CREATE TABLE {name} (\n" + "\n".join(lines) + f"\n    PRIMARY KEY ({key})\n)"


def view_sql(name: str) -> str:
    """CREATE VIEW statement."""
    return f"CREATE OR REPLACE VIEW {name} AS\n{VIEWS[name][1]}"


def comment_sql() -> list[str]:
    """COMMENT statements for tables, columns and views."""
    statements = []
    for name, (comment, columns, _) in TABLES.items():
        statements.append(f"COMMENT ON TABLE {name} IS {_text(comment)}")
        statements += [f"COMMENT ON COLUMN {name}.{column} IS {_text(text)}" for column, (_, text) in columns.items()]
    statements += [f"COMMENT ON VIEW {name} IS {_text(comment)}" for name, (comment, _) in VIEWS.items()]
    return statements


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def schema_sql() -> str:
    """The whole schema as SQL text, for db/schema.sql."""
    statements = [table_sql(name, columns, key) for name, (_, columns, key) in TABLES.items()]
    statements += [view_sql(name) for name in VIEWS]
    statements += comment_sql()
    head = "-- Generated by `localsim db schema`; do not edit. The source is localsim/store/schema.py.\n\n"
    return head + ";\n\n".join(statements) + ";\n"
