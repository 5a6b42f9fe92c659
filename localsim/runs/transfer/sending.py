"""A run in the formats of other tools: Sotopia's logs, a log of Inspect, a data set with a card for `datasets`.

https://huggingface.co/docs/hub/datasets-manual-configuration
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from localsim import paths
from localsim.conversation.scenario import LoadedScenario
from localsim.errors import InvalidInput, writing
from localsim.runs.transfer.inspect_log import Sent, log_of
from localsim.scenarios.formats import sotopia_out
from localsim.store.database import Store
from localsim.store.episodes import load_episode, stored_scenarios
from localsim.store.outside.export import export_run
from localsim.store.queries import runs as queries
from localsim.store.schema import VIEWS

Say = Callable[[str], None]
FORMATS = ("sotopia", "inspect", "hf")


def send(store: Store, run_id: str, form: str, target: Path, say: Say) -> list[Path]:
    """Write a run in one of FORMATS to a file or folder, and return the files. Raises InvalidInput."""
    with writing(target):
        if form == "hf":
            return _hf(store, run_id, target)
        sent = episodes_of(store, run_id)
        if form == "inspect" and sent:
            return [_inspect(store, run_id, sent, target)]
        if not any(each.episode.status == "completed" for each in sent):
            raise InvalidInput("the run has no completed episode", where=run_id, hint=f"localsim runs show {run_id}")
        return _sotopia(run_id, sent, target, say)


def episodes_of(store: Store, run_id: str) -> list[Sent]:
    """Return the completed and failed episodes of a run, in the order of scenario, mode and index."""
    with store.held() as held:
        scenarios = {loaded.scenario.hash: loaded for loaded in stored_scenarios(held, run_id).values()}
        models = queries.models_of_episodes(held, run_id)
        episodes = [load_episode(held, episode_id) for episode_id in models]
    return [Sent(each, scenarios[each.scenario.hash], models[each.episode_id]) for each in episodes]


def _sotopia(run_id: str, every: Sequence[Sent], folder: Path, say: Say) -> list[Path]:
    """Write the profiles and the logs, one object on each line; say and count what Sotopia has no place for."""
    sent = [each for each in every if each.episode.status == "completed" and sotopia_out.fits(each.scenario)]
    if not sent:
        raise InvalidInput(f"no {sotopia_out.LOST['episodes']}, and the run has none", where=run_id)
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
    for line in _left_out(scenarios, sent, len(every) - len(sent)):
        say(line)
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _lines(folder / "environments.jsonl", map(sotopia_out.environment_of, scenarios)),
        _lines(folder / "agents.jsonl", people.values()),
        _lines(folder / "relationships.jsonl", ties.values()),
        _lines(folder / "episodes.jsonl", logs),
    ]


def _left_out(scenarios: Sequence[LoadedScenario], sent: Sequence[Sent], episodes: int) -> Iterator[str]:
    """Yield a line for each kind of thing that Sotopia has no place for, with its number."""
    found = Counter(field for loaded in scenarios for field in sotopia_out.lost_with(loaded))
    inside: Counter[str] = Counter(episodes=episodes)
    for each in sent:
        stored = each.episode
        inside += sotopia_out.lost_in(stored.transcript, stored.see, stored.scores, stored.leaks)
    for field, why in sotopia_out.LOST.items():
        if found[field]:
            yield f"left out: {field} of {found[field]} scenarios: {why}"
        elif inside[field]:
            yield f"left out: {inside[field]} {field}: {why}"


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
    card.write_text(card_of(queries.run_row(store, run_id), files), encoding="utf-8")
    return [card, *files]


def card_of(run: Mapping[str, Any], files: Sequence[Path]) -> str:
    """Return the card for the parquet files of a run; they are in the folder `data` beside it."""
    plan = json.loads(run["plan_json"])
    tables = {file.stem: file for file in files}
    configs = [
        {"config_name": name, "data_files": f"data/{file.name}", **({"default": True} if name == "turns" else {})}
        for name, file in tables.items()
    ]
    head = yaml.safe_dump(
        {
            "pretty_name": f"localsim run {run['run_id']}",
            "tags": ["localsim", "simulated-conversations"],
            "configs": configs,
        },
        sort_keys=False,
        allow_unicode=True,
    )
    rows = [f"| `{name}` | {VIEWS[f'v_{name}'][0].replace('|', '/')} |" for name in tables]
    lines = [
        f"# localsim run {run['run_id']}",
        "",
        f"Simulated conversations: modes {', '.join(plan['modes'])}, model {plan['model']}, seed {run['seed']}.",
        "",
        "| table | what it holds |",
        "|---|---|",
        *rows,
        "",
        "```python",
        "from datasets import load_dataset",
        'turns = load_dataset("FOLDER", "turns", split="train")',
        "```",
    ]
    return f"---\n{head}---\n\n" + "\n".join(lines) + "\n"
