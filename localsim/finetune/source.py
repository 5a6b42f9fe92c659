"""Where training chats come from: episodes of a database chosen by SQL, or a JSONL file; writing them for others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from localsim.conversation.episode import EpisodeSpec
from localsim.conversation.exchange import Message
from localsim.errors import InvalidInput
from localsim.finetune.chats import Chat, chats_of
from localsim.store.database import Store
from localsim.store.episodes import load_episode

FORMATS = ("sft", "sharegpt")
_Role = Literal["system", "user", "assistant"]
_SHAREGPT: dict[_Role, str] = {"system": "system", "user": "human", "assistant": "gpt"}
_ROLES: dict[str, _Role] = {name: role for role, name in _SHAREGPT.items()} | {role: role for role in _SHAREGPT}


def episodes_of_run(store: Store, run_id: str) -> list[str]:
    """Completed episodes of a run."""
    rows = store.rows(
        "SELECT episode_id FROM v_episodes WHERE run_id = ? AND status = 'completed' "
        "ORDER BY scenario_id, mode, episode_index",
        [run_id],
    )
    return [row["episode_id"] for row in rows]


def episodes_of_query(store: Store, query: str) -> list[str]:
    """Episodes that a read-only query names in its column episode_id. Raises InvalidInput."""
    columns, rows = store.sql(query)
    if "episode_id" not in columns:
        raise InvalidInput(
            f"the query gives {', '.join(columns)}, and no episode_id",
            hint="such as: SELECT episode_id FROM v_scores WHERE mode = 'script' AND name = 'success' AND value = 1",
        )
    at = columns.index("episode_id")
    return list(dict.fromkeys(str(row[at]) for row in rows))


def chats_of_episodes(store: Store, episode_ids: Sequence[str]) -> list[Chat]:
    """One chat for each (episode, agent), as agents mode would have prompted it, whatever mode wrote the talk: what
    is learnt from a script is to say its lines knowing one side only (as in arXiv 2403.05020).
    """
    found: list[Chat] = []
    for episode_id in episode_ids:
        stored = load_episode(store, episode_id)
        spec = EpisodeSpec(
            scenario=stored.scenario,
            mode="agents",
            models=dict.fromkeys(stored.scenario.names, stored.model),
            index=0,
            run_seed=1,
        )
        found += chats_of(spec, stored.transcript)
    return found


def chats_of_file(path: Path) -> list[Chat]:
    """Chats of a JSONL file in one of FORMATS. Raises InvalidInput with the line of what is wrong."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # other line breaks may stand inside a text
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot be read: {error}", where=str(path)) from error
    found = [_chat(line, f"{path}:{number}") for number, line in enumerate(lines, start=1) if line.strip()]
    if not found:
        raise InvalidInput("holds no chats", where=str(path))
    return found


def _chat(line: str, where: str) -> Chat:
    try:
        data = json.loads(line)
        given = data["messages"] if "messages" in data else data["conversations"]
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
        raise InvalidInput("a chat must end with what the assistant says", where=where)
    return Chat(str(data.get("speaker", "")), messages, str(data.get("scenario_id", where)))


def write_chats(chats: Iterable[Chat], form: str, target: Path) -> int:
    """Write chats as JSONL; returns how many. `sft`: messages, speaker, scenario_id. `sharegpt`: conversations."""
    target.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with target.open("w", encoding="utf-8") as file:
        for chat in chats:
            file.write(json.dumps(_as_json(chat, form), ensure_ascii=False) + "\n")
            count += 1
    return count


def _as_json(chat: Chat, form: str) -> dict[str, Any]:
    about = {"speaker": chat.name, "scenario_id": chat.group}
    if form == "sft":
        return {"messages": [{"role": each.role, "content": each.content} for each in chat.messages], **about}
    turns = [{"from": _SHAREGPT[each.role], "value": each.content} for each in chat.messages]
    return {"conversations": turns, **about}
