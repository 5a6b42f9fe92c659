"""Marks of chat templates in what models said: one that a model draws inside an utterance may act in later prompts.

localsim lets no model draw one, so this finds runs of older versions, plugins and errors. People may write what they
like: their words are never control.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from localsim.backends.replies import MARK
from localsim.store.database import Store
from localsim.store.queries import runs as queries

_BY_MODELS = ("llama", "openvino", "remote", "python")


def drawn(
    store: Store, run_id: str, turns: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Iterator[tuple[str, int, str, str, str]]:
    """Yield (episode, turn, speaker, mark, text) for each turn with a mark; `turns` are those of each episode."""
    identities = list(json.loads(queries.run_row(store, run_id)["models_json"]).values())
    if not any(each.get("kind") in _BY_MODELS for each in identities):
        return
    own = {mark for each in identities for mark in each.get("marks", ())}
    spelled = re.compile("|".join([MARK.pattern, *map(re.escape, sorted(own, key=len, reverse=True))]))
    for episode, rows in turns.items():
        for row in rows:
            if row["speaker"] and (found := spelled.search(row["text"] or "")):
                yield episode, row["turn"], row["speaker"], found[0], row["text"]
