"""What a run leaves behind: each event goes to the journal at once, finished episodes to the database soon after.

Between the short writes the database is free for others. Where somebody holds it, the run goes on and the journal
keeps what is missing. Knows events, not how episodes come about.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict

from localsim.conversation.episode import Episode, EpisodeSpec
from localsim.conversation.exchange import Generation, Message, Request
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Turn
from localsim.errors import GenerationFailed
from localsim.store.database import Busy, Store
from localsim.store.journal import Event, Journal
from localsim.store.records import hash_of, scenario_event

EVERY_S = 10.0
"""Seconds from one write to the database to the next: opening the file takes a tenth of one, whatever is written."""
BREATH_PATIENCE_S = 2.0
"""How long a running run waits for the database when it writes; the journal keeps what had to wait."""
END_PATIENCE_S = 90.0
"""How long it waits at its end."""


class Recorder:
    """Writes one run. `notice` is told in one line when the database is held by somebody else."""

    def __init__(
        self,
        store: Store,
        journal: Journal,
        run: Event,
        scenarios: Sequence[LoadedScenario],
        notice: Callable[[str], None],
    ) -> None:
        self._store = store
        self._notice = notice
        self._run = {"event": "run", **run}
        self._journal = journal
        self._scenarios = {loaded.scenario.hash: loaded.hash for loaded in scenarios}
        self._known_contents: set[str] = set()
        self._new_contents: list[Event] = []
        self._prompts: dict[str, tuple[int, tuple[Message, ...]]] = {}
        self._open: dict[str, list[Event]] = {}
        self._unwritten: list[Event] = [scenario_event(loaded) for loaded in scenarios]
        self._told = False
        self._next_write = 0.0
        self._ended = False
        """Whether an ended episode waits to be written."""
        self._journal.append(self._run, *self._unwritten)
        self._breathe(BREATH_PATIENCE_S)

    def episode_started(self, episode_id: str, spec: EpisodeSpec) -> None:
        """An episode begins (or goes on after a resume)."""
        models = list(dict.fromkeys(spec.models.values()))
        spec_data = {"models": dict(spec.models), "sampling": asdict(spec.sampling), "repro": spec.repro}
        event: Event = {
            "event": "episode",
            "episode_id": episode_id,
            "run_id": self._run["run_id"],
            "scenario_hash": self._scenarios[spec.scenario.hash],
            "mode": spec.mode,
            "model": "|".join(models),
            "episode_index": spec.index,
            "seed": spec.seed,
            "spec_hash": spec.hash,
            "spec_json": json.dumps(spec_data, sort_keys=True),
        }
        self._open[episode_id] = []
        self._note(episode_id, event)

    def generation(self, episode_id: str, number: int, request: Request, result: Generation | GenerationFailed) -> None:
        """A text was written, or could not be: that is a row too."""
        failed = isinstance(result, GenerationFailed)
        parent, messages = self._delta(episode_id, request)
        event: Event = {
            "event": "generation",
            "episode_id": episode_id,
            "generation": number,
            "turn": request.turn,
            "attempt": request.attempt,
            "speaker": request.speaker,
            "seed": request.seed,
            "parent": parent,
            "messages": [[message.role, self._content(message.content)] for message in messages],
            "prefill_hash": self._content(request.prefill),
            "grammar_hash": self._content(request.form.grammar()) if request.sampling.grammar else None,
        }
        if isinstance(result, GenerationFailed):
            event |= {"model": "", "text": "", "cause": "error", "malformed": str(result)}
            event |= {
                "prompt_tokens": 0,
                "evaluated_tokens": 0,
                "shared_tokens": 0,
                "dropped_messages": 0,
                "generated_tokens": 0,
                "duration_ms": 0.0,
                "details": {},
            }
        else:
            event |= asdict(result)
            event["details"] = {**result.details, "max_tokens": request.max_tokens}
        self._note(episode_id, event)
        if not failed:
            self._prompts[f"{episode_id}/{request.speaker}"] = (number, request.messages)

    def turn(self, episode_id: str, turn: Turn, generation: int) -> None:
        """A turn stands."""
        event: Event = {
            "event": "turn",
            "episode_id": episode_id,
            "turn": turn.index,
            "speaker": turn.speaker,
            "action": turn.action.type,
            "text": turn.action.text,
            "words": turn.words,
            "truncated": turn.truncated,
            "generation": generation,
        }
        self._note(episode_id, event)

    def reject(self, episode_id: str, generation: int, reason: str) -> None:
        """A generation holds a malformed reply."""
        self._note(
            episode_id, {"event": "reject", "episode_id": episode_id, "generation": generation, "reason": reason}
        )

    def episode_ended(self, episode_id: str, episode: Episode, scores: Sequence[Event], duration_ms: float) -> None:
        """An episode is over; it goes to the database now, or with a later event if the last write was just now."""
        ended: Event = {
            "event": "episode_ended",
            "episode_id": episode_id,
            "status": episode.status,
            "stop_reason": episode.stop_reason,
            "error": episode.error,
            "turns": len(episode.transcript),
            "duration_ms": duration_ms,
        }
        self._note(episode_id, ended, *scores)
        self._unwritten += self._open.pop(episode_id)
        self._prompts = {key: known for key, known in self._prompts.items() if not key.startswith(f"{episode_id}/")}
        self._ended = True
        self._write_if_due()

    def close(self, *, finished_utc: str, complete: bool) -> bool:
        """End the run; returns whether all of it is in the database (if not, the next command takes it in)."""
        ended: Event = {"event": "run_ended", "status": "finished" if complete else "interrupted"}
        ended["finished_utc"] = finished_utc
        self._journal.append(ended)
        self._unwritten += [event for events in self._open.values() for event in events]
        self._unwritten.append(ended)
        self._told = False
        written = self._breathe(END_PATIENCE_S)
        self._journal.close(remove=written)
        return written

    # ---- helpers -----------------------------------------------------------------------------------------------

    def _note(self, episode_id: str, *events: Event) -> None:
        self._journal.append(*self._new_contents, *events)
        self._unwritten += self._new_contents
        self._new_contents.clear()
        self._open[episode_id] += events
        self._write_if_due()

    def _write_if_due(self) -> None:
        if self._ended and time.monotonic() >= self._next_write:
            self._breathe(BREATH_PATIENCE_S)

    def _content(self, text: str) -> str:
        content_hash = hash_of(text)
        if content_hash not in self._known_contents:
            self._known_contents.add(content_hash)
            self._new_contents.append({"event": "content", "content_hash": content_hash, "text": text})
        return content_hash

    def _delta(self, episode_id: str, request: Request) -> tuple[int | None, tuple[Message, ...]]:
        """The earlier generation whose messages start this prompt, and the messages that follow them."""
        known = self._prompts.get(f"{episode_id}/{request.speaker}")
        if known is None:
            return None, request.messages
        parent, messages = known
        if request.messages[: len(messages)] == messages:
            return parent, request.messages[len(messages) :]
        return None, request.messages

    def _breathe(self, patience_s: float) -> bool:
        """Write what is waiting; False where the file is held by somebody else."""
        self._next_write = time.monotonic() + EVERY_S
        try:
            self._store.take_in([self._run, *self._unwritten], patience_s=patience_s)
        except Busy as error:
            if not self._told:
                self._notice(f"{error}; the run goes on, {len(self._unwritten)} events wait in {self._journal.path}")
                self._told = True
            return False
        self._unwritten.clear()
        self._ended = False
        return True
