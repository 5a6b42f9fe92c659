"""The isolation audit: does any stored prompt hold what its viewer was not granted?

Works on what was stored, and on a table of its own rather than on `observe`, so that an error there is found here.
A string counts as held when it stands in the prompt as whole words and nothing granted to the viewer contains it:
what the viewer was told, knows itself (a friend on both lists) or heard said is granted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from localsim.conversation.scenario import Agent, LoadedScenario, Scenario
from localsim.runs.runner import stored_answers
from localsim.store.database import Store
from localsim.store.episodes import contents_of

_SHORTEST = 3
"""Strings shorter than this (an age, a small number) stand in prompts by chance."""

_ACQUAINTED = {"age", "gender", "pronouns", "occupation", "public_info"}
_CLOSE = {*_ACQUAINTED, "personality_and_values", "decision_making_style"}
_SEEN_BY_OTHERS = {
    "stranger": set[str](),
    "know_by_name": set[str](),
    "acquaintance": _ACQUAINTED,
    "friend": _CLOSE,
    "romantic": _CLOSE,
    "family": _CLOSE,
}


@dataclass(frozen=True)
class Violation:
    """A prompt that holds something its viewer was not granted."""

    episode_id: str
    generation: int
    turn: int
    viewer: str
    mode: str
    what: str
    """Such as "secret of Bo" or "answer key"."""
    text: str


@dataclass(frozen=True)
class Audit:
    """What an audit found."""

    prompts_checked: int
    violations: tuple[Violation, ...]

    def as_json(self) -> dict[str, Any]:
        """The object that `audit --json` prints."""
        return {
            "prompts_checked": self.prompts_checked,
            "violations": len(self.violations),
            "details": [asdict(item) for item in self.violations],
        }


def audit_run(store: Store, run_id: str) -> Audit:
    """Check every stored prompt of a run."""
    scenarios = stored_answers(store, run_id)
    spoken: dict[str, list[dict[str, Any]]] = {}
    for row in store.rows(
        "SELECT t.episode_id, t.turn, t.speaker, t.text FROM turns t JOIN episodes e USING (episode_id) "
        "WHERE e.run_id = ? ORDER BY t.episode_id, t.turn",
        [run_id],
    ):
        spoken.setdefault(row["episode_id"], []).append(row)
    checked, violations = 0, []
    prompts: dict[tuple[str, int], str] = {}
    generations = store.rows(
        "SELECT g.episode_id, g.generation, g.turn, g.speaker, g.parent, g.messages_json, g.prefill_hash, e.mode, "
        "e.scenario_hash FROM generations g JOIN episodes e USING (episode_id) WHERE e.run_id = ? "
        "ORDER BY g.episode_id, g.generation",
        [run_id],
    )
    hashes = {content_hash for row in generations for _, content_hash in json.loads(row["messages_json"])}
    contents = contents_of(store, [*hashes, *(row["prefill_hash"] for row in generations)])
    for row in generations:
        before = prompts.get((row["episode_id"], row["parent"]), "") if row["parent"] is not None else ""
        own = [contents[content_hash] for _, content_hash in json.loads(row["messages_json"])]
        prompt = "\n".join([before, *own])
        prompts[row["episode_id"], row["generation"]] = prompt
        heard = [turn["text"] for turn in spoken.get(row["episode_id"], []) if turn["turn"] < row["turn"]]
        loaded = scenarios[row["scenario_hash"]]
        checked += 1
        for what, text in held(
            f"{prompt}\n{contents[row['prefill_hash']]}", loaded, row["mode"], row["speaker"], heard
        ):
            violations.append(
                Violation(
                    row["episode_id"], row["generation"], row["turn"], row["speaker"], row["mode"], what, text[:120]
                )
            )
    return Audit(checked, tuple(violations))


def held(prompt: str, loaded: LoadedScenario, mode: str, viewer: str, heard: list[str]) -> Iterator[tuple[str, str]]:
    """(what, text) for everything in a prompt that `viewer` was not granted."""
    scenario = loaded.scenario
    granted = "\n".join([*_granted(scenario, mode, viewer), *heard])
    for what, text in _withheld(loaded, mode, viewer):
        if len(text) >= _SHORTEST and _stands_in(text, prompt) and not _stands_in(text, granted):
            yield what, text


def _granted(scenario: Scenario, mode: str, viewer: str) -> Iterator[str]:
    yield scenario.setting
    yield from scenario.names
    yield from (str(scenario.limits.turns), *scenario.actions)
    for agent in scenario.agents:
        yield from (text for what, text in _belongings(agent) if _may_see(scenario, mode, viewer, agent, what))


def _withheld(loaded: LoadedScenario, mode: str, viewer: str) -> Iterator[tuple[str, str]]:
    scenario = loaded.scenario
    for agent in scenario.agents:
        for what, text in _belongings(agent):
            if not _may_see(scenario, mode, viewer, agent, what):
                yield f"{what.replace('_', ' ')} of {agent.name}", text
    for text in _leaves(loaded.answer.answer):
        yield "answer key", text
    for text in _leaves(loaded.answer.parameters):
        if not text.isdigit():  # a seed or a count stands in prices by chance
            yield "generation parameters", text
    for text in (scenario.info.what, scenario.info.how or "", *scenario.info.things_to_try):
        yield "info", text


def _belongings(agent: Agent) -> Iterator[tuple[str, str]]:
    """(what, text) of all that is an agent's own."""
    for field, value in agent.profile:
        if value is not None:
            text = str(value).rstrip(".")
            yield field, f"{text} years old" if field == "age" and text.isdigit() else text
    yield "goal", agent.goal
    if agent.secret:
        yield "secret", agent.secret
    for fact in agent.facts:
        yield "fact", fact.text
        yield from (("term of a fact", term) for term in fact.terms)


def _may_see(scenario: Scenario, mode: str, viewer: str, agent: Agent, what: str) -> bool:
    if mode in ("script", "mindreaders") or agent.name == viewer:
        return True
    return what in _SEEN_BY_OTHERS[scenario.level(viewer, agent.name)]


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif value is not None and not isinstance(value, bool):
        yield f"{value:.12g}" if isinstance(value, float) else str(value)


def _stands_in(text: str, place: str) -> bool:
    return _pattern(text).search(place) is not None


@lru_cache(maxsize=10_000)
def _pattern(text: str) -> re.Pattern[str]:
    words = r"\s+".join(re.escape(word) for word in text.split())
    return re.compile(rf"(?<!\w){words}(?!\w)")
