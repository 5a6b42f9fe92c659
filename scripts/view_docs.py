"""The generated page reference/views.md of the site: the views and tables of the database; `make_docs.py` prints it."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from localsim.store.database import Store
from localsim.store.schema import TABLES, VIEWS


def cell(text: str) -> str:
    """Return a text as a cell of a Markdown table: one line, its bars escaped."""
    return " ".join(text.split()).replace("|", "\\|")


def views_page() -> str:
    """Return the page of all views and tables with their columns, types and comments."""
    lines = ["# Views and tables", ""]
    lines += [
        "The views are the public contract for SQL: their columns stay. `localsim sql QUERY` reads them,",
        "`localsim db schema` prints the statements that make them, and [worked queries](../sql.md) show them in use.",
        "Tables may change between versions. A file of another version is refused, and the error names the command",
        "that brings its rows into a new one.",
        "",
        "## Views",
    ]
    for name, columns in _view_columns().items():
        lines += ["", f"### {name}", "", f"{VIEWS[name][0]}.", "", "| column | type | meaning |", "|---|---|---|"]
        meanings = view_meanings(name)
        lines += [f"| `{column}` | {kind} | {cell(meanings.get(column, ''))} |" for column, kind in columns]
    lines += ["", "## Tables"]
    for name, (comment, columns, key) in TABLES.items():
        lines += ["", f"### {name}", "", f"{comment}. Primary key: `{', '.join(key)}`.", ""]
        lines += ["| column | type | meaning |", "|---|---|---|"]
        lines += [
            f"| `{each.name}` | {each.sql.removeprefix(each.name).strip()} | {cell(each.meaning)} |"
            for each in columns.values()
        ]
    return "\n".join(lines) + "\n"


_OF_PARTICIPANT = {
    "run_id": "The run of the experiment",
    "experiment": "Id of the experiment in its file",
    "participant": "Random code of the participant",
    "condition": "Condition that the participant is in",
    "status": "State: taking part, finished, unpaired (a partner left or never came), withdrawn or away",
}
COMPUTED = {
    "v_runs": {"completed": "Episodes that completed", "failed": "Episodes that failed"},
    "v_episodes": {
        "turns": "Number of turns of the agents",
        "tells": "Number of turns in which the rules told something",
        "success": "Whether the newest scoring found the task reached; NULL for a task without success",
    },
    "v_turns": {
        "position": "turn / (turns - 1): 0 at the start of the conversation, 1 at its end",
        "given": "True for a turn of the scenario's beginning, which is nobody's act in the run",
    },
    "v_leaks": {
        "position": "turn / (turns - 1): 0 at the start of the conversation, 1 at its end",
        "earliest": "With `latest`, the turns between which the fact probably came out first",
        "latest": "See `earliest`",
    },
    "v_scores": {"newest": "Whether no newer version of the evaluator has scored the episode"},
    "v_annotations": {
        "mode_1": "Mode of the episode shown first; NULL for attention items",
        "mode_2": "Mode of the episode shown second; NULL for attention items",
        "chosen_mode": "Mode of the episode that the rater chose; NULL for other tasks and attention items",
        "see_1": "Grants of the episode shown first; NULL for attention items",
        "see_2": "Grants of the episode shown second; NULL for attention items",
    },
    "v_generations": {
        "raw": "The reply as a server or a function gave it; NULL where it is the text",
        "step": "The step of a mind that asked for it; NULL for a line",
    },
    "v_judgements": {
        "instructions": "System message of the prompt",
        "prompt": "User message of the prompt",
        "reply": "The fixed start of the reply and the text after it",
        "judge": "Model that judged",
        "other_mode": "Mode of the second episode of a pair; NULL without one",
        "other_see": "Grants of the second episode of a pair; NULL without one",
    },
    "v_leak_judgements": {
        "fact_id": "Id of the fact in the scenario",
        "owner": "Name of the agent that the fact belongs to",
        "turn": "Last turn that the judge was shown, from 0",
        "label": "The judge's answer: disclosed, hint or none; NULL if it is missing",
        "missing": "True if there is no reply, or none that could be read",
        "first": "True if this is the first turn after which the fact is known, according to the judge",
        "judge": "Model that judges, as it was given to score",
    },
    "v_participants": {
        **_OF_PARTICIPANT,
        "place": "Number of the place in the order of conditions, from 0",
        "consent_version": "Version of the consent text that the participant agreed to",
        "consented_utc": "Time of the consent, in UTC",
        "seconds": "Seconds from the consent to the end; NULL unless the participant reached the end",
        "completion_code": "Code that the participant read at the end",
        "talks": "Number of the participant's talks",
        "description_hash": "Content hash of the whole experiment: file, banks, hashes of scenarios",
    },
    "v_participant_talks": {
        **{name: text for name, text in _OF_PARTICIPANT.items() if name != "status"},
        "talk": "Number of the talk among those of the participant, from 1",
        "role": "Role of the participant in the talk",
        "messages": "Number of the participant's turns",
        "success": "Score of the outcome, 1 or 0; NULL without one",
    },
    "v_participant_answers": {
        **_OF_PARTICIPANT,
        "part": "before, after, message for a question about a message of the other side, or rubric",
        "bank": "Bank or rubric that holds the question",
        "item": "Id of the question in its bank, or dimension of the rubric",
        "value": "The answer as text: the option, point, number or words",
        "number": "The answer as a number: the point, the number, or the place of the option from 1; NULL for words",
        "is_right": "Whether the answer is right; NULL where no answer is",
        "episode_id": "Talk that was rated, as a whole or a message of it; NULL for forms",
        "turn": "Turn of the message, from 0; NULL for forms and rubrics",
        "answered_utc": "Time of the answer, in UTC",
        "agent": "Agent that a question of a rubric is about; NULL for the whole talk, and for other questions",
    },
    "v_rubric_ratings": {
        **_OF_PARTICIPANT,
        "rubric": "Rubric that the participant answered",
        "dimension": "Dimension of the rubric",
        "version": "Version of the questions; judges of another version are not compared",
        "episode_id": "Talk that was rated",
        "role": "Role of the participant in the talk",
        "agent": "Agent that the question is about; NULL for the whole talk",
        "own": "Whether the participant was asked about the own role",
        "rating": "What the participant answered; NULL for `cannot tell`",
        "judge": "Model that answered the same question about the same talk; NULL where none did",
        "score": "Score of the judge; NULL if none of its replies could be read",
        "reason": "Reason of the judge",
    },
}
"""Meanings of the columns that a view computes; the others keep the comment of their table."""


def view_meanings(name: str) -> dict[str, str]:
    """Return the meaning of each column of a view: the comment of the table column that it shows, or ours."""
    sql = VIEWS[name][1]
    tables = {alias: table for table, alias in re.findall(r"(?:FROM|JOIN)\s+(\w+)\s+(\w+)", sql) if table in TABLES}
    meanings: dict[str, str] = {}
    for alias, column, renamed in re.findall(r"(\w+)\.(\w+)(?:, '')?\)?(?:\s+AS\s+(\w+))?", sql.partition("FROM")[0]):
        columns = TABLES[tables[alias]].columns if alias in tables else {}
        if column in columns:
            meanings.setdefault(renamed or column, columns[column].meaning)
    return meanings | COMPUTED.get(name, {})


def _view_columns() -> dict[str, list[tuple[str, str]]]:
    """Ask an empty database for the columns of each view and their types."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "empty.duckdb")
        with store.writing() as connection:
            return {
                name: [(row[0], row[1]) for row in connection.execute(f"DESCRIBE {name}").fetchall()] for name in VIEWS
            }
