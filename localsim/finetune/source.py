"""Sources of training chats: the episodes of a run or of a query, or a JSONL file; and writing such files."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from localsim.conversation.requests import Message, Role
from localsim.conversation.wording.layouts import FIRST
from localsim.errors import InvalidInput
from localsim.families import rules_of
from localsim.finetune.chats import Chat, chats_of
from localsim.paths import read_json_lines, whole_file
from localsim.store.database import Store
from localsim.store.episodes import load_episode
from localsim.store.queries import runs as queries

FORMATS = ("sft", "sharegpt")


@dataclass(frozen=True)
class Source:
    """Training chats, where they are from, and the usual name of an adapter that is trained on them."""

    chats: Sequence[Chat]
    origin: dict[str, Any]
    """What the card of the adapter says of it."""
    name: str
    layout: str = FIRST


def source_of(place: str, store: Callable[[], Store], *, query: str | None, mode: str | None, layout: str) -> Source:
    """Return the chats of a JSONL file, of a run, or of the episodes of a query; `store` is opened for the latter two.

    `mode` keeps the episodes of one mode only. Episodes become chats in a `layout`, that of the model to train; the
    chats of a file stay as they are. Raises InvalidInput.
    """
    if place.endswith(".jsonl"):
        path = Path(place)
        return Source(chats_of_file(path), {"file": path.name}, path.stem)
    opened, name = store(), "adapter"
    origin: dict[str, Any] = {"query": query}
    weights: Mapping[str, float] = {}
    if query:
        weights = weights_of_query(opened, query)
        ids = list(weights)
    else:
        name = opened.run_id(place)
        ids, origin = episodes_of_run(opened, name), {"run": name}
    if mode:
        ids, origin["mode"] = queries.episodes_in_mode(opened, ids, mode), mode
    hashes = [scenario_hash[:12] for scenario_hash in queries.scenario_hashes(opened, ids)]
    origin |= {"episodes": len(ids), "scenario_hashes": hashes}
    return Source(chats_of_episodes(opened, ids, layout, weights), origin, name, layout)


_SHAREGPT: dict[Role, str] = {"system": "system", "user": "human", "assistant": "gpt"}
_ROLES: dict[str, Role] = {name: role for role, name in _SHAREGPT.items()} | {role: role for role in _SHAREGPT}


def episodes_of_run(store: Store, run_id: str) -> list[str]:
    """The completed episodes of a run."""
    return queries.chat_episodes(store, run_id)


def weights_of_query(store: Store, query: str) -> dict[str, float]:
    """The episodes that a read-only query names in its column episode_id, with how much each counts: 1, or what its
    column weight says in the first row of the episode. Raises InvalidInput.
    """
    columns, rows = store.sql(query)
    if "episode_id" not in columns:
        raise InvalidInput(
            f"the query has the columns {', '.join(columns)}, but no episode_id",
            hint="such as: SELECT episode_id FROM v_scores WHERE mode = 'script' AND name = 'success' AND value = 1",
        )
    at, weighed = columns.index("episode_id"), columns.index("weight") if "weight" in columns else None
    found: dict[str, float] = {}
    for row in rows:
        weight = 1.0 if weighed is None else row[weighed]
        if isinstance(weight, bool) or not isinstance(weight, int | float | Decimal) or not 0 <= weight < math.inf:
            raise InvalidInput(f"the weight of {row[at]} is {weight!r}", hint="a weight is 0 or a positive number")
        found.setdefault(str(row[at]), float(weight))
    return found


def chats_of_episodes(
    store: Store, episode_ids: Sequence[str], layout: str = FIRST, weights: Mapping[str, float] | None = None
) -> list[Chat]:
    """The chats of every agent of these episodes, as agents mode would have prompted them, however an episode was
    played: a model learns to say a script's turns while it sees one side only (as in arXiv 2403.05020).

    `weights`: episode -> how much each of its replies counts in the loss; 1 if it is not given.
    """
    chats: list[Chat] = []
    with store.held() as held:
        for episode_id in episode_ids:
            stored = load_episode(held, episode_id)
            rules = rules_of(stored.scenario, stored.index)
            made = chats_of(stored.scenario, "agents", stored.transcript, layout, rules, stored.seed)
            weight = (weights or {}).get(episode_id, 1.0)
            chats += made if weight == 1 else [each.weighed(weight) for each in made]
    return chats


def chats_of_file(path: Path) -> list[Chat]:
    """The chats of a JSONL file in one of FORMATS. Raises InvalidInput that names the first wrong line."""
    chats = [_chat(row, where) for where, row in read_json_lines(path)]
    if not chats:
        raise InvalidInput("contains no chats", where=str(path))
    return chats


def _chat(row: Any, where: str) -> Chat:
    try:
        given = row["messages"] if "messages" in row else row["conversations"]
        messages = tuple(
            Message(
                _ROLES[each["role" if "role" in each else "from"]],
                str(each["content" if "content" in each else "value"]),
            )
            for each in given
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hint = 'a line is {"messages": [{"role": "system|user|assistant", "content": "..."}, ...]}, or ShareGPT\'s form'
        raise InvalidInput(f"not a chat: {error!r}", where=where, hint=hint) from error
    if not messages or messages[-1].role != "assistant":
        raise InvalidInput("a chat must end with a message of the assistant", where=where)
    weights = row.get("weights", ())
    if not isinstance(weights, list | tuple) or not all(type(each) in (int, float) for each in weights):
        raise InvalidInput(
            "weights are a list of numbers, one for each reply or for each line of a single reply", where=where
        )
    return Chat(str(row.get("speaker", "")), messages, str(row.get("scenario_id", where)), tuple(map(float, weights)))


def write_chats(chats: Iterable[Chat], form: str, target: Path) -> int:
    """Write chats as JSONL; return their number. `sft`: messages, speaker, scenario_id. `sharegpt`: conversations.

    Both have the weights of replies, where there are some.
    """
    count = 0
    with whole_file(target) as part, part.open("w", encoding="utf-8") as file:
        for chat in chats:
            file.write(json.dumps(_as_json(chat, form), ensure_ascii=False) + "\n")
            count += 1
    return count


def _as_json(chat: Chat, form: str) -> dict[str, Any]:
    about = {"speaker": chat.name, "scenario_id": chat.group, **({"weights": chat.weights} if chat.weights else {})}
    if form == "sft":
        return {"messages": [{"role": each.role, "content": each.content} for each in chat.messages], **about}
    turns = [{"from": _SHAREGPT[each.role], "value": each.content} for each in chat.messages]
    return {"conversations": turns, **about}
