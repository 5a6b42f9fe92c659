"""Scores of evaluators of other packages over a stored run; nothing is simulated again."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

from localsim import plugins
from localsim.conversation.scenario import AnswerKey
from localsim.evaluators import Evaluator, guarded
from localsim.store.database import Store
from localsim.store.episodes import load_episode
from localsim.store.records import score_events


def rescore_run(store: Store, run_id: str, name: str, say: Callable[[str], None]) -> int:
    """Let the evaluator plugin `name` score every completed episode that its version has not; return how many.

    Raises InvalidInput where there is no such plugin or it cannot be loaded.
    """
    evaluator: Evaluator = plugins.make("evaluators", name)
    rows = store.rows(
        "SELECT e.episode_id, s.answer_json FROM v_episodes e JOIN scenarios s USING (scenario_hash) WHERE "
        "e.run_id = ? AND e.status = 'completed' AND e.episode_id NOT IN (SELECT episode_id FROM scores WHERE "
        "evaluator = ? AND version = ?) ORDER BY e.episode_id",
        [run_id, evaluator.name, evaluator.version],
    )
    for row in rows:
        episode = load_episode(store, row["episode_id"])
        answer = AnswerKey.from_json(json.loads(row["answer_json"]))
        found = guarded(
            evaluator.name,
            evaluator.version,
            partial(evaluator.score, episode.transcript, episode.scenario, answer),
        )
        store.take_in(score_events(episode.episode_id, found.evaluator, found.version, found.scores))
    say(f"{evaluator.name} {evaluator.version} scored {len(rows)} episodes")
    return len(rows)
