"""What a run leaves behind, as events for the journal: scenarios, scores, and the ids that tie rows together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from localsim.conversation.episode import EpisodeSpec, Score
from localsim.conversation.scenario import LoadedScenario, canonical_hash
from localsim.store.journal import Event


def scenario_event(loaded: LoadedScenario) -> Event:
    """The scenario, and apart from it the answer key, as they are now."""
    scenario = loaded.scenario
    return {
        "event": "scenario",
        "scenario_hash": loaded.hash,
        "scenario_id": scenario.id,
        "title": scenario.title,
        "family": scenario.family,
        "document_json": scenario.model_dump_json(),
        "answer_json": json.dumps(loaded.answer.as_json()),
        "path": loaded.path.encode("utf-8", "replace").decode(),
    }


def score_events(episode_id: str, evaluator: str, version: str, scores: Sequence[Score]) -> list[Event]:
    """Scores of one evaluator as events."""
    return [
        {
            "event": "score",
            "episode_id": episode_id,
            "evaluator": evaluator,
            "version": version,
            "name": score.name,
            "agent": score.agent or "",
            "value": score.value,
            "label": score.label,
            "reason": score.reason,
            "turns": list(score.turns),
        }
        for score in scores
    ]


def hash_of(text: str) -> str:
    """Content hash: the first 32 hex digits of the sha256 of the text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def episode_id_of(run_id: str, spec: EpisodeSpec) -> str:
    """An episode's id: a hash of its run and its spec."""
    return canonical_hash([run_id, spec.hash])[:16]
