"""Reads stored episodes: transcript, private sides, mentions, scores, and any prompt as it was."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from localsim.conversation.beginning import own_from
from localsim.conversation.grants import condition_name
from localsim.conversation.requests import Message
from localsim.conversation.scenario import AnswerKey, LoadedScenario, Scenario
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.errors import DatabaseError, InvalidInput
from localsim.families.mentions import Mention, first_mentions
from localsim.store.database import Store

Row = dict[str, Any]
TURN = "turn, speaker, action, text, truncated, values_json, readers_json, beat, phase, repaired"
"""The columns of a turn that a transcript needs."""


@dataclass(frozen=True)
class StoredEpisode:
    """An episode in the database."""

    episode_id: str
    run_id: str
    scenario: Scenario
    mode: str
    model: str
    seed: int
    status: str
    stop_reason: str | None
    error: str | None
    turns: list[Row]
    scores: list[Row]
    mentions: list[Mention]
    leaks: list[Row]
    """First disclosures that the leakage detector found (columns of v_leaks); empty if it has not run."""
    see: str = ""
    """Grants of the agents; empty where nothing was granted."""
    index: int = 0
    """Counts the episodes of one scenario, mode and model from 0."""

    @property
    def condition(self) -> str:
        """The mode, and what was granted."""
        return condition_name(self.mode, self.see)

    @property
    def transcript(self) -> Transcript:
        """Return the turns as values."""
        return transcript_of(self.turns)

    def as_json(self) -> Row:
        """The object that `show --json` prints."""
        return {
            "episode_id": self.episode_id,
            "run_id": self.run_id,
            "scenario_id": self.scenario.id,
            **{name: getattr(self, name) for name in "mode see model seed status stop_reason error".split()},
            "turns": self.turns,
            "first_mentions": [{**vars(mention), "by_owner": mention.by_owner} for mention in self.mentions],
            "leaks": self.leaks,
            "scores": self.scores,
        }


def transcript_of(rows: Sequence[Row]) -> Transcript:
    """Return a transcript from the columns TURN of turns or v_turns."""
    sizes = Counter(row["beat"] for row in rows)
    return Transcript(
        tuple(
            Turn(
                row["turn"],
                row["speaker"],
                Action(row["action"], row["text"], _texts(row["values_json"])),
                row["truncated"],
                _texts(row["readers_json"]),
                row["beat"],
                sizes[row["beat"]],
                row["phase"],
                bool(row["repaired"]),
            )
            for row in rows
        )
    )


def _texts(listed: str | None) -> tuple[str, ...] | None:
    return None if listed is None else tuple(json.loads(listed))


def load_episode(store: Store, episode_id: str) -> StoredEpisode:
    """Return one episode by its whole id."""
    key = [episode_id]
    with store.held() as reads:
        episode = reads.rows(
            'SELECT episode_id, run_id, mode, model, seed, episode_index AS "index", status, stop_reason, error, '
            "coalesce(see, '') AS see, s.document_json FROM v_episodes JOIN scenarios s USING (scenario_hash) "
            "WHERE episode_id = ?",
            key,
        )[0]
        turns = reads.rows(f"SELECT {TURN}, words FROM turns WHERE episode_id = ? ORDER BY turn", key)
        scores = reads.rows(
            "SELECT evaluator, version, name, agent, value, label, reason, turns_json FROM v_scores "
            "WHERE episode_id = ? AND newest ORDER BY evaluator, name, agent",
            key,
        )
        leaks = reads.rows("SELECT * FROM v_leaks WHERE episode_id = ? ORDER BY turn, fact_id", key)
    scenario = Scenario.model_validate_json(episode.pop("document_json"))
    own = own_from(scenario, transcript_of(turns))
    for turn in turns:
        turn["given"] = turn["turn"] < own and turn["speaker"] != ""
    mentions = first_mentions(transcript_of(turns).turns, scenario)
    return StoredEpisode(**episode, scenario=scenario, turns=turns, scores=scores, mentions=mentions, leaks=leaks)


def contents_of(store: Store, hashes: list[str]) -> dict[str, str]:
    """Return the texts of prompts by their hashes."""
    query = "SELECT content_hash, text FROM contents WHERE content_hash IN ({})"
    if 0 < len(hashes) <= _LISTED:  # a list is looked up in the files of an attachment, a table joined with all of them
        return store.pairs(query.format(", ".join("?" for _ in hashes)), hashes)
    return store.pairs(query.format("SELECT unnest(?)"), [hashes]) if hashes else {}


_LISTED = 500


Sent = Callable[[Sequence[Message], str, str], Sequence[Message]]
"""Makes the chat that a server gets of stored messages, a note and the start of the next line."""


def prompt_of(store: Store, episode_id: str, turn: int, sent: Sent) -> list[Row]:
    """Return the messages before a turn, and the reply of the model. Raises InvalidInput if there is no such turn."""
    found = prompts_of(store, episode_id, sent, turn)
    if turn not in found:
        hint = f"localsim show {episode_id} lists them"
        raise InvalidInput(f"episode {episode_id} has no turn {turn + 1}", hint=hint)
    return found[turn]


def prompts_of(store: Store, episode_id: str, sent: Sent, turn: int | None = None) -> dict[int, list[Row]]:
    """Return the prompt of every turn of an episode, or of one turn that may have no reply that could be read.

    A server or a function was given what `sent` makes of it; a model in this process, the note before its line.
    Raises InvalidInput if people wrote the episode.
    """
    rows = store.rows(
        "SELECT g.*, p.text AS prefill FROM generations g JOIN contents p ON p.content_hash = g.prefill_hash "
        "WHERE g.episode_id = ? ORDER BY g.generation",
        [episode_id],
    )
    holders = store.rows(f"SELECT {TURN}, generation FROM turns WHERE episode_id = ? ORDER BY turn", [episode_id])
    if not rows and holders:
        raise InvalidInput(f"episode {episode_id} has no prompts: people wrote it", hint=f"localsim show {episode_id}")
    holders = [row for row in holders if turn in (None, row["turn"])]
    unwritten = {row["turn"]: transcript_of([row]).turns[0] for row in holders if row["generation"] < 0}
    by_number = {row["generation"]: row for row in rows}
    sources = holders or [row for row in rows if row["turn"] == turn]  # replies of which none could be read
    last = {row["turn"]: row["generation"] for row in sources if row["generation"] in by_number}
    chains = {number: _chain(by_number, generation) for number, generation in last.items() if number not in unwritten}
    references = {
        number: [pair for row in own for pair in json.loads(row["messages_json"])] for number, own in chains.items()
    }
    contents = contents_of(store, list(dict.fromkeys(content for own in references.values() for _, content in own)))
    found = {
        number: [{"role": "told by the rules" if said.told else "given with the scenario", "text": said.line}]
        for number, said in unwritten.items()
    }
    served = {row["speaker"] for row in rows if _raw(row) is not None}
    for number, own in references.items():
        reply = chains[number][-1]
        messages = [Message(role, contents[content]) for role, content in own]
        found[number] = _exchange(reply, messages, sent if reply["speaker"] in served else None)
    return found


def _raw(row: Row) -> str | None:
    """Return the reply of a server or a function as it came; None for a model in this process."""
    raw = json.loads(row["details_json"] or "{}").get("raw")
    return None if raw is None else str(raw)


def _exchange(reply: Row, messages: Sequence[Message], sent: Sent | None) -> list[Row]:
    note, _, start = reply["prefill"].rpartition("\n")
    said, raw = start + reply["text"], _raw(reply)
    parts: list[tuple[str, str]] = [
        (each.role, each.content) for each in (sent(messages, note, start) if sent else messages)
    ]
    parts += [("note before the line", note)] if note and not sent else []
    parts.append((f"reply ({reply['speaker']}, {reply['cause']})", said))
    parts += [("raw reply", raw)] if raw is not None and raw.strip() != said.strip() else []
    return [{"role": role, "text": text} for role, text in parts]


def _chain(by_number: dict[int, Row], generation: int) -> list[Row]:
    """Return the generations whose messages make up a prompt: each adds to the one before it."""
    chain = [by_number[generation]]
    while chain[0]["parent"] is not None:
        chain.insert(0, by_number[chain[0]["parent"]])
    return chain


def models_on(store: Store, scenario_id: str) -> list[Row]:
    """Return the results of models on a scenario: model, mode, talks (their number), success (share or None), turns."""
    return store.rows(
        "SELECT mode, model, count(*) AS talks, avg(success::INT) AS success, avg(turns) AS turns "
        "FROM v_episodes WHERE scenario_id = ? AND status = 'completed' AND NOT contains(model, 'human') "
        "GROUP BY ALL ORDER BY ALL",
        [scenario_id],
    )


def stored_scenario(store: Store, scenario_hash: str) -> LoadedScenario:
    """Return a scenario with its answer key, as it was when a run used it. Raises DatabaseError if it is missing."""
    return _scenarios(store, "SELECT ? AS scenario_hash", scenario_hash)[scenario_hash]


def stored_scenarios(store: Store, run_id: str) -> dict[str, LoadedScenario]:
    """Return the scenarios of a run with their answer keys, by scenario hash and in the order of their ids.

    Raises DatabaseError if one is missing.
    """
    return _scenarios(store, "SELECT DISTINCT scenario_hash FROM episodes WHERE run_id = ?", run_id)


def _scenarios(store: Store, wanted: str, parameter: str) -> dict[str, LoadedScenario]:
    """Return the scenarios whose hashes a query yields."""
    found = {}
    for row in store.rows(
        f"SELECT scenario_hash, document_json, answer_json, path FROM ({wanted}) LEFT JOIN scenarios "
        "USING (scenario_hash) ORDER BY scenario_id, scenario_hash",
        [parameter],
    ):
        name = row["scenario_hash"]
        if row["document_json"] is None:
            raise DatabaseError(f"scenario {name[:12]} of the run is not in the database", where=str(store.path))
        scenario = Scenario.model_validate_json(row["document_json"])
        found[name] = LoadedScenario(scenario, AnswerKey.from_json(json.loads(row["answer_json"])), row["path"] or name)
    return found
