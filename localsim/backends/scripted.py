"""The scripted backend: queued replies, or a player that really plays. For tests, teaching and baselines.

Its replies are never presented as results of a language model: its identity is `scripted`.
"""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from localsim.backends.base import Backend, Done
from localsim.conversation.episode import Observation
from localsim.conversation.requests import Generation, Request
from localsim.conversation.rules.grammar import ActionLines
from localsim.conversation.scenario import WRITER
from localsim.conversation.transcript import ACTION_TYPES, Action, Transcript, Turn
from localsim.errors import GenerationFailed, InvalidInput, MalformedReply
from localsim.families import Player, player_of

PREFIX = "scripted"
PEEKS = f"{PREFIX}:omniscient"
"""Players who use everything that they see: they show the difference between the modes best, and in seconds."""


class ScriptedBackend(Backend):
    """Replies without a model.

    Either `replies`, each used once in order: an Action, or a raw text that stands for what a model wrote after the
    fixed start of its line; or a `player`, asked with what the agent may see and a generator seeded per turn.
    """

    def __init__(
        self, name: str = PREFIX, *, replies: Iterable[Action | str] | None = None, player: Player | None = None
    ) -> None:
        if (replies is None) == (player is None):
            raise ValueError("give either replies or a player")
        self.name = name
        self.identity: dict[str, Any] = {"kind": "scripted", "name": name}
        self._replies = deque(replies) if replies is not None else None
        self._player = player
        self._tickets = 0
        self._done: list[Done] = []

    def submit(self, request: Request) -> int:
        self._tickets += 1
        try:
            result: Generation | GenerationFailed = Generation(self._text(request), "finished", self.name)
        except GenerationFailed as error:
            result = error
        self._done.append(Done(self._tickets, result))
        return self._tickets

    def poll(self) -> list[Done]:
        done, self._done = self._done, []
        return done

    def cancel(self, ticket: int) -> None:
        self._done = [done for done in self._done if done.ticket != ticket]

    def _text(self, request: Request) -> str:
        if self._player is not None:
            return _after_prefill(request, self._play(self._player, request))
        assert self._replies is not None
        if not self._replies:
            raise GenerationFailed(f"{self.name} has no replies left for turn {request.turn}")
        reply = self._replies.popleft()
        if isinstance(reply, Action) and not isinstance(request.form, ActionLines):
            return f" {reply.text}"  # the answer to a step of a mind
        return (
            reply if isinstance(reply, str) else _after_prefill(request, [Turn(request.turn, request.speaker, reply)])
        )

    def _play(self, player: Player, request: Request) -> list[Turn]:
        """One turn of an agent, or all turns of a script with the player in every part."""
        seen = request.observation
        if seen is None:
            raise GenerationFailed(f"{self.name} plays roles and cannot judge")
        rng = random.Random(request.seed)
        if request.speaker != WRITER:
            return [Turn(request.turn, request.speaker, self._action(player, seen, rng))]
        turns: list[Turn] = list(seen.transcript.turns)
        begun, written, form = len(turns), "", request.form
        assert isinstance(form, ActionLines), "a writer's reply has the form of lines"
        for _ in form.lines:
            line = form.line(written)
            view = replace(seen, viewer=line.speaker, transcript=Transcript(tuple(turns)), allowed=line.ways)
            turns.append(Turn(len(turns), line.speaker, self._action(player, view, rng)))
            written += turns[-1].line + "\n"
            if form.finished(written):
                break
        return turns[begun:]

    def _action(self, player: Player, seen: Observation, rng: random.Random) -> Action:
        """The action of a player; what is none ends the episode with the reason."""
        try:
            action = player(seen, rng)
        except MalformedReply as error:
            hint = "moves are written g.move(NAME, VALUE...)"
            raise GenerationFailed(f"{self.name} as {seen.viewer}: {error.message}; {hint}") from error
        if not isinstance(action, Action):
            raise GenerationFailed(f"{self.name} as {seen.viewer} returned {action!r}, which is no Action")
        return action


def _after_prefill(request: Request, turns: list[Turn]) -> str:
    lines = "\n".join(turn.line for turn in turns)
    return lines.removeprefix(request.prefill)


def open_scripted(name: str, families: Iterable[str | None] = ()) -> ScriptedBackend:
    """The backend that `scripted`, `scripted:PLAYER` or `scripted:@FILE` names. Raises InvalidInput.

    `families` are those of the scenarios that it plays: an error about a player lists theirs.

    A file holds one reply a line: plain text is spoken; a line of JSON such as {"action": "leave"} is that action, and
    {"action": "offer", "values": ["40"], "text": "How about forty?"} a move.
    """
    _, _, detail = name.partition(":")
    if detail.startswith("@"):
        return ScriptedBackend(name, replies=_read_replies(Path(detail[1:])))
    return ScriptedBackend(name, player=player_of(detail or "auto", families))


def _read_replies(file: Path) -> list[Action | str]:
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot be read: {error}", where=str(file)) from error
    replies: list[Action | str] = []
    for number, line in enumerate(lines, start=1):
        if not line:
            continue
        try:
            data = json.loads(line)
        except ValueError:
            data = None
        if isinstance(data, dict) and isinstance(data.get("action"), str):
            try:
                values = data.get("values")
                given = tuple(map(str, values)) if isinstance(values, list) else None
                replies.append(Action(data["action"], str(data.get("text", "")), given))
            except MalformedReply as error:
                hint = f"actions are {', '.join(ACTION_TYPES)}"
                raise InvalidInput(error.message, where=f"{file}:{number}", hint=hint) from error
        else:
            replies.append(Action("speak", line))
    return replies
