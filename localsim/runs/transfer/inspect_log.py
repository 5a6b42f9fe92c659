"""A run as a log of Inspect (inspect.aisi.org.uk/eval-logs.html), format version 2, which `read_eval_log` opens.

An episode is a sample: its turns are messages, its scores are grouped by evaluator. A failed episode is a sample with
an error and no scores. The prompts of the agents are not in the log; they stay in the database.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean
from typing import Any

from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Turn
from localsim.store.episodes import StoredEpisode

_STATUS = {"finished": "success", "running": "started", "interrupted": "cancelled"}


@dataclass(frozen=True)
class Sent:
    """An episode with everything that another tool's log may need."""

    episode: StoredEpisode
    scenario: LoadedScenario
    models: Mapping[str, str]
    """Role -> model."""


def log_of(run: Mapping[str, Any], sent: Sequence[Sent]) -> dict[str, Any]:
    """Return the log of a run. `run` is its row of `runs`; `sent` are its completed and failed episodes."""
    plan, versions = json.loads(run["plan_json"]), json.loads(run["versions_json"])
    samples = [_sample(each, number) for each, number in zip(sent, _epochs(sent), strict=True)]
    ids = list(dict.fromkeys(sample["id"] for sample in samples))
    completed = sum(each.episode.status == "completed" for each in sent)
    return {
        "version": 2,
        "status": _STATUS.get(run["status"], "error"),
        "eval": {
            "eval_id": run["run_id"],
            "run_id": run["run_id"],
            "created": _time(run["started_utc"]),
            "task": "localsim",
            "task_id": run["run_id"],
            "task_args": {"modes": plan["modes"], "seed": run["seed"], "repro": run["repro"]},
            "dataset": {"name": "localsim scenarios", "samples": len(ids), "sample_ids": ids},
            "model": plan["model"],
            "config": {"epochs": max(sample["epoch"] for sample in samples)},
            "packages": {"localsim": versions["localsim"]},
            "metadata": {"plan": plan, "models": json.loads(run["models_json"]), "versions": versions},
        },
        # Readers of the head alone, such as `inspect view` for its list, refuse a log without a plan.
        "plan": {"name": "localsim", "steps": [{"solver": f"localsim/{mode}"} for mode in plan["modes"]]},
        "results": {"total_samples": len(samples), "completed_samples": completed, "scores": _means(samples)},
        "stats": {
            "started_at": _time(run["started_utc"]),
            "completed_at": _time(run["finished_utc"] or run["started_utc"]),
        },
        "samples": samples,
    }


def _time(moment: datetime) -> str:
    return moment.replace(tzinfo=UTC).isoformat()


def _epochs(sent: Sequence[Sent]) -> list[int]:
    """Return the epoch of each episode: its number, from 1, among those with the same sample id."""
    counts: dict[str, int] = defaultdict(int)
    numbers = []
    for each in sent:
        counts[_id(each)] += 1
        numbers.append(counts[_id(each)])
    return numbers


def _id(each: Sent) -> str:
    return f"{each.episode.scenario.id} {each.episode.condition}"


def _sample(each: Sent, epoch: int) -> dict[str, Any]:
    episode, scenario = each.episode, each.episode.scenario
    setting = {"role": "system", "content": scenario.setting, "source": "input"}
    messages = [setting, *(_message(turn, scenario.names[0]) for turn in episode.transcript.turns)]
    sample: dict[str, Any] = {
        "id": _id(each),
        "epoch": epoch,
        "input": [setting],
        "target": json.dumps(dict(each.scenario.answer.answer), ensure_ascii=False),
        "messages": messages,
        "scores": _scores(episode.scores),
        "metadata": {
            "episode_id": episode.episode_id,
            "scenario_id": scenario.id,
            "family": scenario.family,
            "mode": episode.mode,
            "see": episode.see,
            "models": dict(each.models),
            "seed": episode.seed,
            "stop_reason": episode.stop_reason,
        },
    }
    if episode.status != "completed":
        error = episode.error or episode.status
        sample["error"] = {"message": error, "traceback": error, "traceback_ansi": error}
        sample["scores"] = None
    return sample


def _message(turn: Turn, first: str) -> dict[str, Any]:
    """Return a turn as a message. A log has two roles for speakers: the first agent is the user."""
    role = "system" if turn.told else "user" if turn.speaker == first else "assistant"
    about: dict[str, Any] = {"turn": turn.index, "speaker": turn.who, "action": turn.action.type}
    about |= {"text": turn.action.text, "values": turn.action.values, "readers": turn.readers}
    about |= {"beat": turn.beat, "phase": turn.phase, "truncated": turn.truncated, "repaired": turn.repaired}
    return {"role": role, "content": turn.line, "metadata": about}


def _scores(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return evaluator -> its values by name, or by name and agent; a value that is unknown is null."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        name = f"{row['name']}/{row['agent']}" if row["agent"] else row["name"]
        score = found.setdefault(
            row["evaluator"], {"value": {}, "metadata": {"version": row["version"], "reasons": {}}}
        )
        score["value"][name] = row["label"] if row["value"] is None else row["value"]
        if row["reason"]:
            score["metadata"]["reasons"][name] = row["reason"]
    return found


def _means(samples: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the mean of each score over the samples that have a number for it."""
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for sample in samples:
        for evaluator, score in (sample["scores"] or {}).items():
            for name, value in score["value"].items():
                if isinstance(value, int | float):
                    values[evaluator, name].append(value)
    return [
        {
            "name": name,
            "scorer": evaluator,
            "scored_samples": len(numbers),
            "unscored_samples": len(samples) - len(numbers),
            "metrics": {"mean": {"name": "mean", "value": fmean(numbers)}},
        }
        for (evaluator, name), numbers in sorted(values.items())
    ]
