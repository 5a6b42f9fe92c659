"""Prompts, seeds, hashes and scripted texts of all bundled scenarios are what they were: stored runs stay comparable.

tests/data/golden.json was written before the code was laid out in rooms. A change here means that runs made before
and after it must not be compared: then raise `prompts.VERSION`, and say so in the CHANGELOG.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from localsim.backends.scripted import open_scripted
from localsim.conversation.episode import MODES, EpisodeSpec, Sampling
from localsim.conversation.modes import Ask, Say, roles
from localsim.conversation.requests import reply_begun
from localsim.conversation.scenario import LoadedScenario
from localsim.scenarios.find import find_scenarios, shipped_sources
from localsim.store.records import episode_id_of
from tests.conftest import answering, driven

GOLDEN: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "golden.json").read_text())
PLAYERS = ("scripted", "scripted:omniscient")


@pytest.mark.parametrize("name", sorted({key.partition("/")[0] for key in GOLDEN}))
def test_a_bundled_scenario_is_played_as_before(name: str) -> None:
    loaded = find_scenarios([name])[0]
    for mode in MODES:
        for player in PLAYERS:
            models = dict.fromkeys(roles(mode, loaded.scenario.names), player)
            spec = EpisodeSpec(loaded.scenario, mode, models, 1, 7, Sampling(), "exact", edition=1)
            assert fingerprint(loaded, spec, player) == GOLDEN[f"{name}/{mode}/{player}"]


def test_every_bundled_talk_has_golden_values() -> None:
    assert {key.partition("/")[0] for key in GOLDEN} == {
        source.name for source in shipped_sources() if source.generate is None
    }


def fingerprint(loaded: LoadedScenario, spec: EpisodeSpec, player: str) -> dict[str, Any]:
    """Hashes of scenario, spec, episode, all prompts with their grammars and seeds, and all turns."""
    steps, end = driven(spec, answering(open_scripted(player)))
    prompts, requests = hashlib.sha256(), [step.request for step in steps if isinstance(step, Ask)]
    for asked in requests:
        chat, begun = reply_begun(asked.messages)
        messages = [[message.role, message.content] for message in chat]
        start = "".join(f"{line}\n" for line in begun) + asked.prefill
        row = [asked.session, asked.speaker, asked.turn, asked.attempt, messages, start, asked.seed]
        row += [asked.max_tokens, asked.form.grammar(), asked.heard]
        prompts.update(json.dumps(row).encode())
    lines = [step.turn.line for step in steps if isinstance(step, Say)]
    return {
        "scenario": loaded.scenario.hash,
        "loaded": loaded.hash,
        "spec": spec.hash,
        "episode": episode_id_of("20260101-000000-abcd", spec),
        "requests": len(requests),
        "prompts": prompts.hexdigest(),
        "turns": hashlib.sha256("\n".join(lines).encode()).hexdigest(),
        "end": end,
    }
