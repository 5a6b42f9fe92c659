"""The current schema: tables, columns, comments, and the views, which are the public SQL contract.

Tables have only primary keys: with foreign keys or secondary indexes DuckDB refuses later changes of columns
(duckdb#17348). Views list their columns, because `SELECT *` views break when a column is added. `migrations`, which
are frozen, bring a file to this schema; a column added here needs a migration there.
"""

from __future__ import annotations

from typing import NamedTuple

from localsim.store.queries.views import PARTICIPANTS


class Table(NamedTuple):
    """A table: its comment, its columns as name -> (type, comment), and its primary key."""

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
            "run_id": ("VARCHAR NOT NULL", "Id of the run: start time (UTC) and four random digits; ids sort by time"),
            "status": ("VARCHAR NOT NULL", "State of the run: running, finished or interrupted"),
            "started_utc": ("TIMESTAMP NOT NULL", "Time at which the run started, in UTC"),
            "finished_utc": (
                "TIMESTAMP",
                "Time at which the last episode ended, in UTC; NULL while the run is going on",
            ),
            "seed": ("BIGINT NOT NULL", "Master seed, from which every other seed is derived"),
            "repro": ("VARCHAR NOT NULL", "Level of reproducibility: exact, stable or fast; imported for people"),
            "parallel": ("INTEGER NOT NULL", "Number of episodes simulated at the same time (-j)"),
            "episodes_planned": ("INTEGER NOT NULL", "Number of episodes that the plan asks for"),
            "plan_json": (
                "VARCHAR NOT NULL",
                "Plan of the run, with all that resume needs: scenarios, modes, models, sampling",
            ),
            "models_json": ("VARCHAR NOT NULL", "Identity of each backend: file, sha256, build, settings"),
            "versions_json": ("VARCHAR NOT NULL", "Versions of localsim, its prompts and its libraries"),
            "plan_hash": (
                "VARCHAR",
                "sha256 of plan_json, which declares the primary outcome, stored before the first episode",
            ),
            "name": ("VARCHAR", "Name that a person gave the run with --name; NULL if it has none"),
        },
        "run_id",
    ),
    "scenarios": Table(
        "One row for each scenario file, with its content when a run used it",
        {
            "scenario_hash": ("VARCHAR NOT NULL", "sha256 of the scenario with its answer key"),
            "scenario_id": ("VARCHAR NOT NULL", "Id of the scenario in its file"),
            "title": ("VARCHAR NOT NULL", "Title of the scenario, in one line"),
            "family": ("VARCHAR", "Task family that scores the scenario; NULL if it has none"),
            "document_json": ("VARCHAR NOT NULL", "The scenario without its answer key"),
            "answer_json": (
                "VARCHAR NOT NULL",
                "The answer key and the parameters of the generator, which only judges see",
            ),
            "path": ("VARCHAR", "Path of the file that held the scenario"),
        },
        "scenario_hash",
    ),
    "episodes": Table(
        "One row for each simulated conversation",
        {
            "episode_id": ("VARCHAR NOT NULL", "Id of the episode: a hash of run_id and spec"),
            "run_id": ("VARCHAR NOT NULL", "The run that the episode belongs to"),
            "scenario_hash": ("VARCHAR NOT NULL", "The scenario that was simulated"),
            "mode": (
                "VARCHAR NOT NULL",
                "Information mode: script, iterative, agents or mindreaders; people if imported",
            ),
            "model": ("VARCHAR NOT NULL", "Models of the roles, joined with | where they differ"),
            "episode_index": (
                "INTEGER NOT NULL",
                "Number of the episode among those of its scenario, mode and model, from 0",
            ),
            "seed": ("BIGINT NOT NULL", "Seed of the episode, equal in every mode; 0 for people"),
            "status": ("VARCHAR NOT NULL", "State of the episode: completed, failed or interrupted"),
            "stop_reason": (
                "VARCHAR",
                "Rule that ended the episode: turn_limit, left, silence, closing (all said goodbye), stale (nothing "
                "new was said), done (phases) or (people) ended; NULL unless completed",
            ),
            "error": ("VARCHAR", "Reason why the episode failed; NULL if it did not fail"),
            "turns": ("INTEGER NOT NULL", "Number of valid turns"),
            "spec_hash": ("VARCHAR NOT NULL", "sha256 of everything that the episode depends on"),
            "spec_json": ("VARCHAR NOT NULL", "Models, layouts of prompts, sampling and level of reproducibility"),
            "duration_ms": (
                "DOUBLE",
                "Milliseconds from the first request to the end, while other episodes may run too",
            ),
            "variant": (
                "INTEGER",
                "Number of the perturbed variant of instructions and sampling; 0 for the prompts as they are",
            ),
            "see": (
                "VARCHAR",
                "Private items of others that the agents were granted, as in --see; empty where nothing is granted",
            ),
        },
        "episode_id",
    ),
    "turns": Table(
        "One row for each valid turn",
        {
            "episode_id": ("VARCHAR NOT NULL", "The episode that the turn belongs to"),
            "turn": ("INTEGER NOT NULL", "Number of the turn, from 0"),
            "speaker": ("VARCHAR NOT NULL", "Name of the agent whose turn it is; empty if the rules tell something"),
            "action": (
                "VARCHAR NOT NULL",
                "Type of the action: speak, non-verbal communication, action, leave or none; the name of a move; or "
                "told, by the rules",
            ),
            "text": ("VARCHAR NOT NULL", "The words of the agent, or a description of the action"),
            "words": ("INTEGER NOT NULL", "Number of words in speech; 0 for other actions"),
            "truncated": ("BOOLEAN NOT NULL", "True if the text was cut at its limit"),
            "generation": (
                "INTEGER NOT NULL",
                "Number of the generation that contains the turn; -1 for people and for what the rules tell",
            ),
            "values_json": ("VARCHAR", "Values of a move, as a list of texts; NULL for actions without values"),
            "readers_json": ("VARCHAR", "Agents who can read the turn, its author first; NULL if everybody can"),
            "beat": ("INTEGER", "Number of the first turn of its beat; the turns of one beat are simultaneous"),
            "phase": ("VARCHAR", "Name of the phase of the scenario; empty where it has none"),
            "repaired": (
                "BOOLEAN",
                "True if what the model wrote beyond its own utterance was left out; the generation has all of it",
            ),
        },
        "episode_id, turn",
    ),
    "generations": Table(
        "One row for each text that a backend wrote, including malformed and failed ones",
        {
            "episode_id": ("VARCHAR NOT NULL", "The episode that the generation belongs to"),
            "generation": ("INTEGER NOT NULL", "Number of the generation within the episode, from 0"),
            "turn": ("INTEGER NOT NULL", "Number of the first turn that was requested"),
            "attempt": ("INTEGER NOT NULL", "0 for the first attempt, 1 for the retry with a new seed"),
            "speaker": ("VARCHAR NOT NULL", "Name of the agent, or writer for a script"),
            "model": ("VARCHAR NOT NULL", "Identity of the model that wrote the text"),
            "seed": ("BIGINT NOT NULL", "Seed of this attempt"),
            "parent": ("INTEGER", "Earlier generation whose messages begin this prompt; NULL if there is none"),
            "messages_json": ("VARCHAR NOT NULL", "Messages after those of the parent: [[role, content hash], ...]"),
            "prefill_hash": ("VARCHAR NOT NULL", "Content hash of the fixed start of the reply"),
            "grammar_hash": ("VARCHAR", "Content hash of the GBNF grammar; NULL without one"),
            "text": ("VARCHAR NOT NULL", "Raw text of the reply, after the prefill"),
            "cause": ("VARCHAR NOT NULL", "Event that ended the reply: finished, end_of_text, length or error"),
            "malformed": ("VARCHAR", "Error in the reply; NULL if it could be read"),
            "prompt_tokens": ("INTEGER NOT NULL", "Number of tokens in the prompt"),
            "evaluated_tokens": ("INTEGER NOT NULL", "Number of prompt tokens that were not in the cache"),
            "generated_tokens": ("INTEGER NOT NULL", "Number of tokens in the reply, including forced ones"),
            "duration_ms": ("DOUBLE NOT NULL", "Milliseconds from submission to end"),
            "details_json": (
                "VARCHAR NOT NULL",
                "Effective sampling, counts of forced and refused tokens, max_tokens, probabilities of options",
            ),
            "shared_tokens": ("INTEGER", "Number of cached prompt tokens that another conversation had evaluated"),
            "dropped_messages": (
                "INTEGER",
                "Number of messages (or lines of a script) left out because the context was full",
            ),
        },
        "episode_id, generation",
    ),
    "contents": Table(
        "One row for each different text of a prompt, a grammar or a file of thresholds",
        {
            "content_hash": ("VARCHAR NOT NULL", "Id of the text: the first 32 hex digits of its sha256"),
            "text": ("VARCHAR NOT NULL", "The whole text"),
        },
        "content_hash",
    ),
    "scores": Table(
        "One row for each score, with its evidence",
        {
            "episode_id": ("VARCHAR NOT NULL", "The episode that was scored"),
            "evaluator": (
                "VARCHAR NOT NULL",
                "Name of the evaluator: outcome.FAMILY, style, play, checks, leakage, judge.MODEL, "
                "naturalness.MODEL, leak_judge.MODEL, corpus",
            ),
            "version": (
                "VARCHAR NOT NULL",
                "Version of the evaluator, for leakage as in the table leaks; scores of older versions are kept",
            ),
            "name": ("VARCHAR NOT NULL", "Name of the score, such as success or words_per_turn"),
            "agent": ("VARCHAR NOT NULL", "Agent that the score concerns; empty for the whole episode"),
            "value": ("DOUBLE", "The score as a number; NULL if it could not be determined"),
            "label": ("VARCHAR", "The score as a word; NULL if it has none"),
            "reason": ("VARCHAR NOT NULL", "Explanation of the score"),
            "turns_json": ("VARCHAR NOT NULL", "Numbers of the turns that are its evidence"),
        },
        "episode_id, evaluator, version, name, agent",
    ),
    "leaks": Table(
        "One row for each hint at, or disclosure of, a private fact that the leakage detector found",
        {
            "episode_id": ("VARCHAR NOT NULL", "The episode that contains the leak"),
            "version": (
                "VARCHAR NOT NULL",
                "Version of the detector, with + and a hash if its thresholds are not the built-in ones; leaks of "
                "earlier searches are kept",
            ),
            "fact_id": ("VARCHAR NOT NULL", "Id of the fact in the scenario"),
            "turn": ("INTEGER NOT NULL", "Number of the turn, from 0"),
            "owner": ("VARCHAR NOT NULL", "Name of the agent that the fact belongs to"),
            "fact": ("VARCHAR NOT NULL", "Text of the fact"),
            "speaker": ("VARCHAR NOT NULL", "Name of the agent that hinted at or disclosed it"),
            "label": ("VARCHAR NOT NULL", "Strength of the leak: disclosed or hint"),
            "kind": (
                "VARCHAR NOT NULL",
                "Kind of leak: self (by the owner), omniscient (by one who was not told), passed_on (by one who was, "
                "to somebody new) or repeat (to nobody new)",
            ),
            "probability": (
                "DOUBLE NOT NULL",
                "Probability that the fact is disclosed, according to the detector, 0 to 1",
            ),
            "similarity": ("DOUBLE NOT NULL", "Cosine similarity of the fact and the nearest clause"),
            "evidence": ("VARCHAR NOT NULL", "The words of the turn that show the leak"),
            "first": ("BOOLEAN NOT NULL", "True if it is the first disclosure of this fact"),
            "early": ("BOOLEAN NOT NULL", "True if it breaks the scenario's rule for the fact"),
        },
        "episode_id, version, fact_id, turn",
    ),
    "searches": Table(
        "One row for each search of an episode for leaks, with the thresholds that decided; older files have none",
        {
            "episode_id": ("VARCHAR NOT NULL", "The episode that was searched"),
            "version": ("VARCHAR NOT NULL", "Version of its leaks and scores, as in the tables leaks and scores"),
            "weights": ("VARCHAR NOT NULL", "Thresholds of the detector: built-in, or name and short hash of the file"),
            "weights_hash": ("VARCHAR NOT NULL", "Content hash of the whole file of thresholds"),
            "searched_utc": ("TIMESTAMP NOT NULL", "Time of the last search with these thresholds, in UTC"),
        },
        "episode_id, version",
    ),
    "vectors": Table(
        "One row for the sentence embedding of each different fact, utterance and clause",
        {
            "text_hash": ("VARCHAR NOT NULL", "Id of the text: the first 32 hex digits of its sha256"),
            "model": ("VARCHAR NOT NULL", "Name of the embedding model"),
            "text": ("VARCHAR NOT NULL", "The whole text"),
            "vector": (
                "FLOAT[384] NOT NULL",
                "Unit vector; array_inner_product of two vectors is their cosine similarity",
            ),
        },
        "text_hash, model",
    ),
    "annotations": Table(
        "One row for each answer of a rater to one item",
        {
            "task": (
                "VARCHAR NOT NULL",
                "Annotation task: pairs, dimensions or disclosures; bet: a player of a class; participant, before, "
                "after, message or rubric: a participant of an experiment (v_participants)",
            ),
            "item_id": (
                "VARCHAR NOT NULL",
                "Item that was rated: two episodes, an episode and an agent, or an episode",
            ),
            "rater": ("VARCHAR NOT NULL", "Pseudonym of the rater; names and addresses are not stored"),
            "run_id": ("VARCHAR NOT NULL", "The run of the rated episode; for a pair, of the first one of its item"),
            "value_json": (
                "VARCHAR NOT NULL",
                "Answer. Pairs: 1, 2 or 0 (tie). Bet: {best} or {saw}. Else an object from dimension or fact to number",
            ),
            "shown_json": (
                "VARCHAR NOT NULL",
                "Display of the item: episodes shown as 1 and 2, rated agent, shuffled episode",
            ),
            "attention": (
                "BOOLEAN NOT NULL",
                "True if the item only checks the rater's attention, with shuffled words",
            ),
            "seconds": ("DOUBLE", "Seconds that the rater spent on the item; NULL if not known"),
            "created_utc": ("TIMESTAMP NOT NULL", "Time of the last answer to the item, in UTC"),
            "origin": ("VARCHAR NOT NULL", "Source of the answer: browser, terminal or bundle"),
            "made_by": ("VARCHAR", "Kind of rater: person or language model"),
        },
        "task, item_id, rater",
    ),
    "judgements": Table(
        "One row for each question to a model as judge, with its thought and reply",
        {
            "episode_id": ("VARCHAR NOT NULL", "The episode that was judged; for a pair, the first one"),
            "evaluator": (
                "VARCHAR NOT NULL",
                "Name of the evaluator: judge.MODEL, naturalness.MODEL or leak_judge.MODEL",
            ),
            "version": ("VARCHAR NOT NULL", "Version of the evaluator"),
            "name": (
                "VARCHAR NOT NULL",
                "Name of the score in the table scores: a dimension, natural_against_CONDITION within a run, "
                "natural_against_EPISODE between two runs or models, or fact.ID",
            ),
            "agent": ("VARCHAR NOT NULL", "Agent that the question concerns; empty for the whole episode"),
            "sample": (
                "INTEGER NOT NULL",
                "Number of the repetition, from 0; for a pair, 1 is the swapped order; for a fact, the last turn shown",
            ),
            "other_id": ("VARCHAR", "The second episode of a pair; NULL if one episode was judged alone"),
            "model": ("VARCHAR NOT NULL", "Identity of the model that replied; empty if the request failed"),
            "seed": ("BIGINT NOT NULL", "Seed of the reply"),
            "instructions_hash": ("VARCHAR NOT NULL", "Content hash of the system message"),
            "prompt_hash": ("VARCHAR NOT NULL", "Content hash of the user message, with conversation and question"),
            "prefill": ("VARCHAR NOT NULL", "Fixed start of the reply"),
            "grammar_hash": ("VARCHAR", "Content hash of the GBNF grammar; NULL without one"),
            "thought": ("VARCHAR", "Thought of the model before its reply; NULL if it did not think"),
            "text": ("VARCHAR NOT NULL", "Raw text of the reply, after the prefill"),
            "cause": ("VARCHAR NOT NULL", "Event that ended the reply: finished, end_of_text, length or error"),
            "truncated": ("BOOLEAN NOT NULL", "True if the thought or the reply was cut at its limit"),
            "malformed": ("VARCHAR", "Error in the reply; NULL if it could be read"),
            "prompt_tokens": ("INTEGER NOT NULL", "Number of tokens in the prompt"),
            "evaluated_tokens": ("INTEGER NOT NULL", "Number of prompt tokens that were not in the cache"),
            "thought_tokens": ("INTEGER NOT NULL", "Number of tokens in the thought"),
            "generated_tokens": ("INTEGER NOT NULL", "Number of tokens in thought and reply, including forced ones"),
            "duration_ms": ("DOUBLE NOT NULL", "Milliseconds from submission to end"),
            "details_json": ("VARCHAR NOT NULL", "Effective sampling, max_tokens and the limit of tokens for thoughts"),
        },
        "episode_id, evaluator, version, name, agent, sample",
    ),
}

VIEWS: dict[str, tuple[str, str]] = {
    "v_runs": (
        "Runs, with the numbers of completed and failed episodes",
        """SELECT r.run_id, r.status, r.started_utc, r.finished_utc, r.seed, r.repro, r.parallel, r.episodes_planned,
       count(e.episode_id) FILTER (e.status = 'completed') AS completed,
       count(e.episode_id) FILTER (e.status = 'failed') AS failed, r.name
FROM runs r LEFT JOIN episodes e ON e.run_id = r.run_id
GROUP BY ALL""",
    ),
    "v_episodes": (
        "Episodes, with scenario and family; turns are those of agents, tells are what the rules told",
        """SELECT e.episode_id, e.run_id, s.scenario_id, s.family, e.mode, e.model, e.seed, e.status, e.stop_reason,
       e.turns - coalesce(t.tells, 0) AS turns, e.episode_index, e.error, s.title, e.duration_ms, e.scenario_hash,
       e.variant, e.see, coalesce(t.tells, 0) AS tells
FROM episodes e JOIN scenarios s ON s.scenario_hash = e.scenario_hash
LEFT JOIN (SELECT episode_id, count(*) AS tells FROM turns WHERE speaker = '' GROUP BY episode_id) t
     ON t.episode_id = e.episode_id""",
    ),
    "v_turns": (
        "Turns, with their position in the conversation from 0 to 1",
        """SELECT t.episode_id, t.turn, t.speaker, t.action, t.text, t.words,
       CASE WHEN e.turns > 1 THEN t.turn / (e.turns - 1)::DOUBLE ELSE 0 END AS position,
       t.truncated, t.generation, e.run_id, e.mode, e.model, s.scenario_id, s.family, g.dropped_messages, e.see,
       t.values_json, t.readers_json, t.beat, t.phase, t.repaired
FROM turns t JOIN episodes e ON e.episode_id = t.episode_id JOIN scenarios s ON s.scenario_hash = e.scenario_hash
LEFT JOIN generations g ON g.episode_id = t.episode_id AND g.generation = t.generation""",
    ),
    "v_generations": (
        "Generations, with tokens and duration, without the prompt",
        """SELECT g.episode_id, g.generation, g.turn, g.attempt, g.speaker, g.model, g.seed, g.cause, g.malformed,
       g.prompt_tokens, g.evaluated_tokens, g.generated_tokens, g.duration_ms, g.text, e.run_id, e.mode,
       g.shared_tokens, g.dropped_messages, e.see
FROM generations g JOIN episodes e ON e.episode_id = g.episode_id""",
    ),
    "v_scores": (
        "Scores; newest is true for the newest version of each evaluator, and for its latest search for leaks",
        """SELECT c.episode_id, nullif(c.agent, '') AS agent, c.evaluator, c.version, c.name, c.value, c.reason,
       c.label, c.turns_json, e.run_id, e.mode, e.model, s.scenario_id, s.family,
       rank() OVER (PARTITION BY e.run_id, c.episode_id, c.evaluator
                    ORDER BY split_part(c.version, '+', 1)::INTEGER DESC, q.searched_utc DESC NULLS LAST,
                             c.version DESC) = 1 AS newest,
       e.see
FROM scores c JOIN episodes e ON e.episode_id = c.episode_id JOIN scenarios s ON s.scenario_hash = e.scenario_hash
LEFT JOIN searches q ON c.evaluator = 'leakage' AND q.episode_id = c.episode_id AND q.version = c.version""",
    ),
    "v_leaks": (
        "The first disclosure of each disclosed private fact, by the last search of the newest version of the detector",
        """SELECT l.episode_id, l.fact_id, l.owner, l.speaker, l.turn,
       CASE WHEN e.turns > 1 THEN l.turn / (e.turns - 1)::DOUBLE ELSE 0 END AS position, l.kind, l.similarity, l.early,
       l.probability, l.evidence, l.fact, l.version, e.run_id, e.mode, e.model, s.scenario_id, s.family, e.see,
       coalesce(q.weights, 'built-in') AS weights
FROM leaks l JOIN episodes e ON e.episode_id = l.episode_id JOIN scenarios s ON s.scenario_hash = e.scenario_hash
JOIN (SELECT DISTINCT run_id, episode_id, version FROM v_scores WHERE evaluator = 'leakage' AND newest) n
     ON n.run_id = e.run_id AND n.episode_id = l.episode_id AND n.version = l.version
LEFT JOIN searches q ON q.episode_id = l.episode_id AND q.version = l.version
WHERE l.first""",
    ),
    "v_annotations": (
        "Answers of raters, with the modes of the episodes shown; modes are NULL for attention items",
        """SELECT a.task, a.item_id, a.rater, a.run_id, a.value_json, a.shown_json, a.attention, a.seconds,
       a.created_utc, a.origin, a.made_by, one.mode AS mode_1, two.mode AS mode_2,
       CASE WHEN a.task = 'pairs' AND a.value_json = '1' THEN one.mode
            WHEN a.task = 'pairs' AND a.value_json = '2' THEN two.mode END AS chosen_mode,
       one.see AS see_1, two.see AS see_2
FROM annotations a
LEFT JOIN episodes one ON one.episode_id = a.shown_json ->> '$."1"' AND NOT a.attention
LEFT JOIN episodes two ON two.episode_id = a.shown_json ->> '$."2"' AND NOT a.attention""",
    ),
    "v_judgements": (
        "Questions to judges and their replies, word for word",
        """SELECT j.episode_id, j.other_id, nullif(j.agent, '') AS agent, j.evaluator, j.version, j.name, j.sample,
       i.text AS instructions, p.text AS prompt, j.thought, j.prefill || j.text AS reply, j.malformed, j.truncated,
       j.cause, j.model AS judge, j.seed, j.prompt_tokens, j.evaluated_tokens, j.thought_tokens, j.generated_tokens,
       j.duration_ms, e.run_id, e.mode, o.mode AS other_mode, e.model, s.scenario_id, s.family, e.see,
       o.see AS other_see
FROM judgements j JOIN episodes e ON e.episode_id = j.episode_id
JOIN scenarios s ON s.scenario_hash = e.scenario_hash
JOIN contents i ON i.content_hash = j.instructions_hash JOIN contents p ON p.content_hash = j.prompt_hash
LEFT JOIN episodes o ON o.episode_id = j.other_id""",
    ),
    "v_leak_judgements": (
        "Questions to judges of leaks: is a private fact known after a turn? Only the newest version of each judge",
        """SELECT j.episode_id, substr(j.name, 6) AS fact_id, j.agent AS owner, j.sample AS turn,
       CASE WHEN j.malformed IS NULL THEN regexp_extract(lower(j.text), 'disclosed|hint|none') END AS label,
       j.malformed IS NOT NULL AS missing, coalesce(c.turns_json = '[' || j.sample || ']', false) AS first,
       substr(j.evaluator, 12) AS judge, j.evaluator, j.version, e.run_id, e.mode, e.model, s.scenario_id, s.family,
       e.see
FROM judgements j JOIN episodes e ON e.episode_id = j.episode_id
JOIN scenarios s ON s.scenario_hash = e.scenario_hash
LEFT JOIN scores c ON c.episode_id = j.episode_id AND c.evaluator = j.evaluator AND c.version = j.version
      AND c.name = j.name AND c.agent = j.agent
WHERE starts_with(j.evaluator, 'leak_judge.')
QUALIFY j.version::INTEGER = max(j.version::INTEGER) OVER (PARTITION BY j.episode_id, j.evaluator)""",
    ),
    **PARTICIPANTS,
}

CHECKS = {
    "episodes without a run": "SELECT count(*) FROM episodes ANTI JOIN runs USING (run_id)",
    "episodes without a scenario": "SELECT count(*) FROM episodes ANTI JOIN scenarios USING (scenario_hash)",
    "turns without an episode": "SELECT count(*) FROM turns ANTI JOIN episodes USING (episode_id)",
    "generations without an episode": "SELECT count(*) FROM generations ANTI JOIN episodes USING (episode_id)",
    "scores without an episode": "SELECT count(*) FROM scores ANTI JOIN episodes USING (episode_id)",
    "finished episodes with missing turns": (
        "SELECT count(*) FROM episodes e WHERE status <> 'interrupted' AND turns <> "
        "(SELECT count(*) FROM turns t WHERE t.episode_id = e.episode_id)"
    ),
    "annotations without a run": "SELECT count(*) FROM annotations ANTI JOIN runs USING (run_id)",
    "searches without an episode": "SELECT count(*) FROM searches ANTI JOIN episodes USING (episode_id)",
    "judgements without an episode": (
        "SELECT count(*) FROM judgements j WHERE j.episode_id NOT IN (SELECT episode_id FROM episodes) OR "
        "j.other_id NOT IN (SELECT episode_id FROM episodes)"
    ),
    "judgements without their prompt": (
        "SELECT count(*) FROM (SELECT unnest([instructions_hash, prompt_hash, grammar_hash]) AS content_hash "
        "FROM judgements) ANTI JOIN contents USING (content_hash) WHERE content_hash IS NOT NULL"
    ),
    "contents whose hash is wrong": "SELECT count(*) FROM contents WHERE content_hash <> left(sha256(text), 32)",
    "generations without their prompt": (
        "SELECT count(*) FROM generations g LEFT JOIN contents c ON c.content_hash = g.prefill_hash "
        "WHERE c.content_hash IS NULL"
    ),
}
"""Queries that count rows that must not exist; the schema has no foreign keys (see migrations)."""


def table_sql(name: str, columns: dict[str, tuple[str, str]], key: str) -> str:
    """Return the CREATE TABLE statement of a table."""
    lines = [f"    {column} {kind}," for column, (kind, _) in columns.items()]
    return f"CREATE TABLE {name} (\n" + "\n".join(lines) + f"\n    PRIMARY KEY ({key})\n)"


def view_sql(name: str) -> str:
    """Return the CREATE VIEW statement of a view."""
    return f"CREATE OR REPLACE VIEW {name} AS\n{VIEWS[name][1]}"


def comment_sql() -> list[str]:
    """Return the COMMENT statements for tables, columns and views."""
    statements = []
    for name, (comment, columns, _) in TABLES.items():
        statements.append(f"COMMENT ON TABLE {name} IS {_text(comment)}")
        statements += [f"COMMENT ON COLUMN {name}.{column} IS {_text(text)}" for column, (_, text) in columns.items()]
    statements += [f"COMMENT ON VIEW {name} IS {_text(comment)}" for name, (comment, _) in VIEWS.items()]
    return statements


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def schema_sql() -> str:
    """Return the whole schema as SQL text, for db/schema.sql."""
    statements = [table_sql(name, columns, key) for name, (_, columns, key) in TABLES.items()]
    statements += [view_sql(name) for name in VIEWS]
    statements += comment_sql()
    head = "-- Generated by `localsim db schema`; do not edit. The source is localsim/store/schema.py.\n\n"
    return head + ";\n\n".join(statements) + ";\n"
