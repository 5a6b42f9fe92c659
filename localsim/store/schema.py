"""The schema: tables, columns and comments, made of `records`; the views, which are the public SQL contract; and rows.

Tables have only primary keys: with foreign keys or secondary indexes DuckDB refuses later changes of columns
(duckdb#17348). Views list their columns, because `SELECT *` views break when a column is added.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from datetime import datetime
from textwrap import fill
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from localsim.conversation.episode import StoredMode
from localsim.store.records import (
    APART,
    KEY,
    AnswerRow,
    EpisodeEnded,
    EpisodeRecord,
    Mark,
    Record,
    RejectRecord,
    RunDied,
    RunEnded,
    TurnRecord,
)

_SQL = {str: "VARCHAR", int: "INTEGER", float: "DOUBLE", bool: "BOOLEAN", datetime: "TIMESTAMP"}


class Column(NamedTuple):
    """A column of a table."""

    name: str
    kind: str
    """Its type in DuckDB."""
    meaning: str
    may_be_null: bool
    default: Any
    """What stands for a value that a record or file of another version lacks; None if nothing does."""
    is_json: bool
    """True if the field of the record is kept as JSON text."""
    marks: frozenset[Mark]

    @property
    def sql(self) -> str:
        """The column in a CREATE TABLE statement."""
        return f"{self.name} {self.kind}{'' if self.may_be_null else ' NOT NULL'}"


class Table(NamedTuple):
    """A table: its comment, its columns by name, and its primary key."""

    comment: str
    columns: dict[str, Column]
    key: tuple[str, ...]


def _columns(record: type[Any]) -> dict[str, Column]:
    hints = get_type_hints(record, include_extras=True)
    return {
        each.name: _column(each, *get_args(hints[each.name])) for each in fields(record) if get_args(hints[each.name])
    }


def _column(field: Field[Any], kind: Any, *about: Mark | str) -> Column:
    marks = frozenset(each for each in about if isinstance(each, Mark))
    meaning = next(each for each in about if isinstance(each, str))
    types = (
        [each for each in get_args(kind) or [kind] if each is not NoneType] if NoneType in get_args(kind) else [kind]
    )
    named = next((each.value for each in marks if each not in (KEY, APART)), None)
    is_json = named is None and get_origin(types[0]) in (Sequence, Mapping)
    default = field.default_factory() if field.default_factory is not MISSING else field.default
    return Column(
        f"{field.name}_json" if is_json else field.name,
        named or ("VARCHAR" if is_json else _SQL[types[0]]),
        meaning,
        NoneType in get_args(kind),
        None if default is MISSING or NoneType in get_args(kind) else json.dumps(default) if is_json else default,
        is_json,
        marks,
    )


COLUMNS: dict[type[Any], dict[str, Column]] = {
    record: _columns(record) for record in (*Record.__args__, AnswerRow) if record.table
}
"""The columns of each record that is a row or a part of one, by the name of the field."""


def _tables() -> Iterator[tuple[str, Table]]:
    """Yield the tables; several records can be parts of one row, and the first one describes it."""
    for name in dict.fromkeys(record.table for record in COLUMNS):
        parts = [record for record in COLUMNS if record.table == name]
        columns = {column.name: column for record in parts for column in COLUMNS[record].values()}
        key = tuple(name for name, column in columns.items() if KEY in column.marks)
        yield name, Table(str(parts[0].__doc__).partition("\n")[0].removesuffix("."), columns, key)


TABLES: dict[str, Table] = dict(_tables())
SHARED = ("scenarios", "contents", "vectors")
"""Tables whose rows are named by a hash of their content."""


# {turns t} stands for the columns that the view shows of the table turns, whose alias is t.
_VIEWS: dict[str, tuple[str, str]] = {
    "v_runs": (
        "Runs, with the numbers of completed and failed episodes",
        """SELECT {runs r},
       count(e.episode_id) FILTER (e.status = 'completed') AS completed,
       count(e.episode_id) FILTER (e.status = 'failed') AS failed
FROM runs r LEFT JOIN episodes e ON e.run_id = r.run_id
GROUP BY ALL""",
    ),
    "v_episodes": (
        "Episodes, with scenario, family and success; turns are those of agents, tells are what the rules told",
        """SELECT {episodes e},
       e.turns - coalesce(t.tells, 0) AS turns, coalesce(t.tells, 0) AS tells, s.scenario_id, s.family, s.title,
       c.value = 1 AS success
FROM episodes e JOIN scenarios s ON s.scenario_hash = e.scenario_hash
LEFT JOIN (SELECT episode_id, count(*) AS tells FROM turns WHERE speaker = '' GROUP BY episode_id) t
     ON t.episode_id = e.episode_id
LEFT JOIN (SELECT episode_id, arg_max(value, split_part(version, '+', 1)::INTEGER) AS value FROM scores
           WHERE name = 'success' AND agent = '' GROUP BY episode_id) c ON c.episode_id = e.episode_id""",
    ),
    "v_turns": (
        "Turns, with their position in the conversation from 0 to 1",
        """SELECT {turns t},
       CASE WHEN e.turns > 1 THEN t.turn / (e.turns - 1)::DOUBLE ELSE 0 END AS position,
       e.run_id, e.mode, e.model, s.scenario_id, s.family, g.dropped_messages, e.see,
       t.generation < 0 AND t.speaker <> '' AND e.mode <> 'people' AS given
FROM turns t JOIN episodes e ON e.episode_id = t.episode_id JOIN scenarios s ON s.scenario_hash = e.scenario_hash
LEFT JOIN generations g ON g.episode_id = t.episode_id AND g.generation = t.generation""",
    ),
    "v_generations": (
        "Generations, with tokens and duration, without the prompt; raw is a reply as a server or function gave it; "
        "step is the step of a mind that asked for it",
        """SELECT {generations g},
       g.details_json ->> 'raw' AS raw, g.details_json ->> 'step' AS step, e.run_id, e.mode, e.see
FROM generations g JOIN episodes e ON e.episode_id = g.episode_id""",
    ),
    "v_scores": (
        "Scores; newest is true for the newest version of each evaluator, and for its latest search for leaks",
        """SELECT {scores c},
       nullif(c.agent, '') AS agent, e.run_id, e.mode, e.model, s.scenario_id, s.family,
       rank() OVER (PARTITION BY e.run_id, c.episode_id, c.evaluator
                    ORDER BY split_part(c.version, '+', 1)::INTEGER DESC, q.searched_utc DESC NULLS LAST,
                             c.version DESC) = 1 AS newest,
       e.see
FROM scores c JOIN episodes e ON e.episode_id = c.episode_id JOIN scenarios s ON s.scenario_hash = e.scenario_hash
LEFT JOIN searches q ON c.evaluator = 'leakage' AND q.episode_id = c.episode_id AND q.version = c.version""",
    ),
    "v_leaks": (
        "The first disclosure of each disclosed private fact, by the last search of the newest version of the "
        "detector; `earliest` and `latest` are the turns between which it probably lies",
        """SELECT {leaks l},
       CASE WHEN e.turns > 1 THEN l.turn / (e.turns - 1)::DOUBLE ELSE 0 END AS position,
       e.run_id, e.mode, e.model, s.scenario_id, s.family, e.see, coalesce(q.weights, 'built-in') AS weights,
       least(l.turn, f.earliest) AS earliest, greatest(l.turn, f.latest) AS latest
FROM leaks l JOIN episodes e ON e.episode_id = l.episode_id JOIN scenarios s ON s.scenario_hash = e.scenario_hash
JOIN (SELECT DISTINCT run_id, episode_id, version FROM v_scores WHERE evaluator = 'leakage' AND newest) n
     ON n.run_id = e.run_id AND n.episode_id = l.episode_id AND n.version = l.version
LEFT JOIN searches q ON q.episode_id = l.episode_id AND q.version = l.version
LEFT JOIN (SELECT episode_id, version, fact_id, min(turn) FILTER (told >= 0.1 * ever) AS earliest,
                  min(turn) FILTER (told >= 0.9 * ever) AS latest, min(turn) FILTER (first) AS turn
           FROM (SELECT *, 1 - exp(sum(silent) OVER (fact ORDER BY turn)) AS told,
                        1 - exp(sum(silent) OVER (fact)) AS ever
                 FROM (SELECT episode_id, version, fact_id, turn, first, ln(greatest(1 - probability, 1e-9)) AS silent
                       FROM leaks)
                 WINDOW fact AS (PARTITION BY episode_id, version, fact_id))
           GROUP BY ALL) f
     ON f.episode_id = l.episode_id AND f.version = l.version AND f.fact_id = l.fact_id AND f.turn = l.turn
WHERE l.first""",
    ),
    "v_annotations": (
        "Answers of raters, with the modes of the episodes shown; modes are NULL for attention items",
        """SELECT {annotations a},
       one.mode AS mode_1, two.mode AS mode_2,
       CASE WHEN a.task = 'pairs' AND a.value_json = '1' THEN one.mode
            WHEN a.task = 'pairs' AND a.value_json = '2' THEN two.mode END AS chosen_mode,
       one.see AS see_1, two.see AS see_2
FROM annotations a
LEFT JOIN episodes one ON one.episode_id = a.shown_json ->> '$."1"' AND NOT a.attention
LEFT JOIN episodes two ON two.episode_id = a.shown_json ->> '$."2"' AND NOT a.attention""",
    ),
    "v_judgements": (
        "Questions to judges and their replies, word for word",
        """SELECT {judgements j},
       nullif(j.agent, '') AS agent, i.text AS instructions, p.text AS prompt, j.prefill || j.text AS reply,
       j.model AS judge, e.run_id, e.mode, o.mode AS other_mode, e.model, s.scenario_id, s.family, e.see,
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
    # Participants of experiments: annotations, one with the task `participant` for each, and one for each answer.
    "v_participants": (
        "Participants of experiments with people, by random codes; nothing says who they are",
        """SELECT a.run_id, a.item_id AS experiment, a.rater AS participant,
       a.value_json ->> '$.condition' AS condition,
       a.value_json ->> '$.status' AS status, (a.value_json ->> '$.place')::INTEGER AS place,
       a.value_json ->> '$.consent' AS consent_version, a.created_utc AS consented_utc, a.seconds,
       a.value_json ->> '$.completion' AS completion_code, len(json_keys(a.shown_json))::INTEGER AS talks,
       a.value_json ->> '$.description' AS description_hash
FROM annotations a WHERE a.task = 'participant'""",
    ),
    "v_participant_talks": (
        "Talks of participants of experiments: their condition, role, messages and outcome",
        """SELECT p.run_id, p.item_id AS experiment, p.rater AS participant,
       p.value_json ->> '$.condition' AS condition,
       p.talk::INTEGER AS talk, e.episode_id, p.value_json ->> ('$.roles."' || p.talk || '"') AS role, s.scenario_id,
       e.mode, e.see, e.model, e.status, e.stop_reason, e.error, e.turns,
       (SELECT count(*) FROM turns t WHERE t.episode_id = e.episode_id
        AND t.speaker = p.value_json ->> ('$.roles."' || p.talk || '"')) AS messages,
       c.value AS success
FROM (SELECT *, unnest(json_keys(shown_json)) AS talk FROM annotations WHERE task = 'participant') p
JOIN episodes e ON e.run_id = p.run_id AND e.episode_id = p.shown_json ->> ('$."' || p.talk || '"')
JOIN scenarios s ON s.scenario_hash = e.scenario_hash
LEFT JOIN v_scores c ON c.run_id = e.run_id AND c.episode_id = e.episode_id AND c.name = 'success' AND c.agent IS NULL
     AND c.newest""",
    ),
    "v_participant_answers": (
        "Answers of participants of experiments: to forms before and after the talk, about messages, and to a rubric",
        """SELECT p.run_id, p.item_id AS experiment, p.rater AS participant,
       p.value_json ->> '$.condition' AS condition,
       p.value_json ->> '$.status' AS status, a.task AS part, split_part(a.item_id, '/', -2) AS bank,
       split_part(a.item_id, '/', -1) AS item, a.value_json ->> '$.value' AS value,
       (a.value_json ->> '$.number')::DOUBLE AS number, (a.value_json ->> '$.right')::BOOLEAN AS is_right,
       a.shown_json ->> '$."1"' AS episode_id, (a.value_json ->> '$.turn')::INTEGER AS turn,
       a.created_utc AS answered_utc, nullif(a.value_json ->> '$.agent', '') AS agent
FROM annotations a JOIN annotations p ON p.run_id = a.run_id AND p.rater = a.rater AND p.task = 'participant'
WHERE a.task IN ('before', 'after', 'message', 'rubric')""",
    ),
    "v_rubric_ratings": (
        "Answers of participants to a rubric about a talk, each beside the score of a judge with the same rubric",
        """SELECT r.run_id, r.experiment, r.participant, r.condition, r.status, r.rubric, r.dimension, r.version,
       r.episode_id, e.mode, e.model, r.role, r.agent, coalesce(r.agent = r.role, false) AS own, r.rating,
       substr(c.evaluator, len(r.prefix) + 1) AS judge, c.value AS score, c.reason
FROM (SELECT p.run_id, p.item_id AS experiment, p.rater AS participant, p.value_json ->> '$.condition' AS condition,
             p.value_json ->> '$.status' AS status, split_part(a.item_id, '/', -2) AS rubric,
             split_part(a.item_id, '/', -1) AS dimension, a.value_json ->> '$.version' AS version,
             a.shown_json ->> '$."1"' AS episode_id, a.value_json ->> '$.role' AS role,
             nullif(a.value_json ->> '$.agent', '') AS agent, (a.value_json ->> '$.number')::DOUBLE AS rating,
             CASE WHEN split_part(a.item_id, '/', -2) = 'sotopia' THEN 'judge.'
                  ELSE 'rubric.' || split_part(a.item_id, '/', -2) || '.' END AS prefix
      FROM annotations a JOIN annotations p ON p.run_id = a.run_id AND p.rater = a.rater AND p.task = 'participant'
      WHERE a.task = 'rubric') r
JOIN episodes e ON e.run_id = r.run_id AND e.episode_id = r.episode_id
LEFT JOIN scores c ON e.episode_id = c.episode_id AND c.name = r.dimension AND c.agent = coalesce(r.agent, '')
     AND c.version = r.version AND starts_with(c.evaluator, r.prefix)""",
    ),
}


def _shown(table: str, alias: str) -> str:
    names = [f"{alias}.{name}" for name, column in TABLES[table].columns.items() if APART not in column.marks]
    return fill(", ".join(names), 112, subsequent_indent=" " * len("SELECT "))


VIEWS: dict[str, tuple[str, str]] = {
    name: (comment, re.sub(r"\{(\w+) (\w)\}", lambda found: _shown(found[1], found[2]), query))
    for name, (comment, query) in _VIEWS.items()
}
"""Name -> (comment, query)."""


_JSON = dict.fromkeys(
    ("models_json", "versions_json", "answer_json", "spec_json", "shown_json"), "json_type({0}) = 'OBJECT'"
)
"""Columns of which more is asked than that they are JSON."""
_HAS_AGENTS = "json_type({0}, '$.agents') = 'ARRAY'"


def _not(condition: str, column: str) -> str:
    """Return the SQL condition that a column is no JSON, or JSON for which a condition does not hold."""
    return (
        f"NOT CASE WHEN json_valid({column}) THEN coalesce({condition.format(column)}, false) ELSE {column} IS NULL END"
    )


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
    "episodes with an unknown mode": f"SELECT count(*) FROM episodes WHERE mode NOT IN {get_args(StoredMode)}",
    "runs whose plan names no scenarios": "SELECT count(*) FROM runs WHERE "
    + _not("json_exists({0}, '$.scenarios')", "plan_json"),
    "scenarios without agents": f"SELECT count(*) FROM scenarios WHERE {_not(_HAS_AGENTS, 'document_json')}",
    **{
        f"{table} whose {name} is not JSON": f"SELECT count(*) FROM {table} WHERE {_not(_JSON.get(name, 'true'), name)}"
        for table in TABLES
        for name in TABLES[table].columns
        if name.endswith("_json")
    },
}
"""Queries that count rows that must not exist."""


def table_sql(name: str) -> str:
    """Return the CREATE TABLE statement of a table."""
    _, columns, key = TABLES[name]
    lines = [f"    {column.sql},\n" for column in columns.values()]
    return f"CREATE TABLE {name} (\n{''.join(lines)}    PRIMARY KEY ({', '.join(key)})\n)"


def view_sql(name: str) -> str:
    """Return the CREATE VIEW statement of a view."""
    return f"CREATE OR REPLACE VIEW {name} AS\n{VIEWS[name][1]}"


def comment_sql() -> list[str]:
    """Return the COMMENT statements for tables, columns and views."""
    statements = []
    for name, (comment, columns, _) in TABLES.items():
        statements.append(f"COMMENT ON TABLE {name} IS {text_sql(comment)}")
        statements += [f"COMMENT ON COLUMN {name}.{each.name} IS {text_sql(each.meaning)}" for each in columns.values()]
    statements += [f"COMMENT ON VIEW {name} IS {text_sql(comment)}" for name, (comment, _) in VIEWS.items()]
    return statements


def text_sql(value: str) -> str:
    """Return a text as SQL."""
    return "'" + value.replace("'", "''") + "'"


def schema_sql() -> str:
    """Return the whole schema as SQL text, for db/schema.sql."""
    statements = [*map(table_sql, TABLES), *map(view_sql, VIEWS), *comment_sql()]
    head = (
        "-- Generated by `localsim db schema`; do not edit. The source is localsim/store/records.py and schema.py.\n\n"
    )
    return head + ";\n\n".join(statements) + ";\n"


def version() -> str:
    """Return the version of the schema: a hash of the columns of all tables, whatever their order."""
    lines = sorted(
        f"{name} {column.sql} {KEY in column.marks}" for name in TABLES for column in TABLES[name].columns.values()
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:8]


# ---- records -> rows -------------------------------------------------------------------------------------------------

Rows = dict[str, list[tuple[Any, ...]]]
_Tables = dict[str, dict[tuple[Any, ...], dict[str, Any]]]


def rows_of(records: Sequence[Record]) -> Rows:
    """Return rows by table. An episode without an end is `interrupted`; a later record replaces an earlier one."""
    tables: _Tables = {name: {} for name in TABLES}
    for record in records:
        _take(tables, record)
    turns = Counter(episode_id for episode_id, _ in tables["turns"])
    for row in tables["episodes"].values():
        row["turns"] = max(row["turns"], turns[row["episode_id"]])
    return {
        name: [tuple(row.get(column) for column in TABLES[name].columns) for row in rows.values()]
        for name, rows in tables.items()
    }


def _take(tables: _Tables, record: Record) -> None:
    if isinstance(record, RunEnded):
        for run in tables["runs"].values():
            run |= vars(record)
    elif isinstance(record, RunDied):
        for run in tables["runs"].values():
            if run["status"] == "running":
                run["status"] = "interrupted"
    elif isinstance(record, EpisodeEnded):
        tables["episodes"].setdefault((record.episode_id,), {}).update(vars(record))
    elif isinstance(record, RejectRecord):
        tables["generations"][record.episode_id, record.generation]["malformed"] = record.reason
    else:
        row = _row(record)
        tables[record.table][tuple(row[column] for column in TABLES[record.table].key)] = row


def _row(record: Record) -> dict[str, Any]:
    row = {} if not isinstance(record, EpisodeRecord) else {"status": "interrupted", "turns": 0}
    for name, column in COLUMNS[type(record)].items():
        value = getattr(record, name)
        if value is None:  # of a journal line by another version, if the column may not be NULL
            row[column.name] = column.default
        else:
            row[column.name] = json.dumps(value) if column.is_json else value
    if isinstance(record, TurnRecord) and record.beat is None:
        row["beat"] = record.turn
    return row


_ROWS = 200
"""Rows in one INSERT."""


def inserts(tables: Rows) -> Iterator[tuple[str, list[Any]]]:
    """Yield statements with their values that write the rows, each for many of them: one for each takes 30 times as
    long. A row replaces the one with its key.
    """
    for table, rows in tables.items():
        columns = TABLES[table].columns
        places = f"({', '.join('?' for _ in columns)})"
        for start in range(0, len(rows), _ROWS):
            part = rows[start : start + _ROWS]
            values = ", ".join([places] * len(part))
            statement = f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES {values}"
            yield statement, [value for row in part for value in row]
