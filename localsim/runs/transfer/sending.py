"""A run in the formats of other tools: Sotopia's logs, a log of Inspect, a data set for Hugging Face's `datasets`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from localsim import paths
from localsim.errors import InvalidInput, writing
from localsim.runs.transfer import datasets_card
from localsim.runs.transfer.inspect_log import Sent, log_of
from localsim.scenarios.formats import sotopia_out
from localsim.store.database import Store
from localsim.store.episodes import load_episode, stored_scenarios
from localsim.store.outside.export import export_run
from localsim.store.queries import runs as queries

Say = Callable[[str], None]
FORMATS = ("sotopia", "inspect", "hf")


def send(store: Store, run_id: str, form: str, target: Path, say: Say) -> list[Path]:
    """Write a run in one of FORMATS to a file or folder, and return the files. Raises InvalidInput."""
    with writing(target):
        if form == "hf":
            return _hf(store, run_id, target)
        sent = [each for each in episodes_of(store, run_id) if form == "inspect" or each.episode.status == "completed"]
        if not sent:
            raise InvalidInput("the run has no completed episode", where=run_id, hint=f"localsim runs show {run_id}")
        return _sotopia(sent, target, say) if form == "sotopia" else [_inspect(store, run_id, sent, target)]


def episodes_of(store: Store, run_id: str) -> list[Sent]:
    """Return the completed and failed episodes of a run, in the order of scenario, mode and index."""
    with store.held() as held:
        scenarios = {loaded.scenario.hash: loaded for loaded in stored_scenarios(held, run_id).values()}
        models = queries.models_of_episodes(held, run_id)
        episodes = [load_episode(held, episode_id) for episode_id in models]
    return [Sent(each, scenarios[each.scenario.hash], models[each.episode_id]) for each in episodes]


def _sotopia(sent: Sequence[Sent], folder: Path, say: Say) -> list[Path]:
    """Write the profiles and the logs, one object on each line; say once what Sotopia has no place for."""
    scenarios = list({each.scenario.hash: each.scenario for each in sent}.values())
    people = {row["pk"]: row for loaded in scenarios for row in sotopia_out.profiles_of(loaded)}
    ties = {row["pk"]: row for loaded in scenarios for row in sotopia_out.relationships_of(loaded)}
    logs = [
        sotopia_out.log_of(
            each.episode.episode_id,
            each.scenario,
            each.episode.mode,
            each.models,
            each.episode.transcript,
            each.episode.scores,
        )
        for each in sent
    ]
    for field, why in dict.fromkeys(pair for loaded in scenarios for pair in sotopia_out.left_out(loaded)):
        say(f"left out: {field}: {why}")
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _lines(folder / "environments.jsonl", map(sotopia_out.environment_of, scenarios)),
        _lines(folder / "agents.jsonl", people.values()),
        _lines(folder / "relationships.jsonl", ties.values()),
        _lines(folder / "episodes.jsonl", logs),
    ]


def _lines(file: Path, rows: Any) -> Path:
    file.write_text("".join(f"{paths.json_text(row)}\n" for row in rows), encoding="utf-8")
    return file


def _inspect(store: Store, run_id: str, sent: Sequence[Sent], target: Path) -> Path:
    log = log_of(queries.run_row(store, run_id), sent)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(paths.json_text(log, indent=1), encoding="utf-8")
    return target


def _hf(store: Store, run_id: str, folder: Path) -> list[Path]:
    """Write each view as parquet, and a card that names the files for `datasets`. Nothing is uploaded."""
    files = export_run(store, run_id, "parquet", folder / "data", empty=False)
    card = folder / "README.md"
    card.write_text(datasets_card.card_of(queries.run_row(store, run_id), files), encoding="utf-8")
    return [card, *files]
