"""The recorder of a run: it writes each record to the journal at once, and ended episodes to the database soon after.

Between these short writes other processes can use the database. While another process holds it, the run continues and
the journal keeps the records.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from localsim.conversation.episode import Episode, EpisodeSpec
from localsim.conversation.requests import Generation, Message, Request
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Turn
from localsim.errors import GenerationFailed
from localsim.store.database import FileMark, Store
from localsim.store.journal import Journal
from localsim.store.lock import Busy
from localsim.store.records import (
    WRITTEN,
    ContentRecord,
    EpisodeEnded,
    EpisodeRecord,
    GenerationRecord,
    Record,
    RejectRecord,
    RunEnded,
    RunRecord,
    ScenarioRecord,
    TurnRecord,
    hash_of,
)

EVERY_S = 10.0
"""Seconds between two writes to the database, because opening the file takes a tenth of a second."""
FLUSH_PATIENCE_S = 2.0
"""Seconds that a run waits for the database before it continues; the journal keeps the records."""
END_PATIENCE_S = 90.0
"""Seconds that a run waits for the database at its end."""


class EventSink(Protocol):
    """Receives the events of a run as they happen; the recorder writes them to journal and database."""

    def episode_started(self, episode_id: str, spec: EpisodeSpec) -> None:  # noqa: ARG002 - overridden
        """Handle an episode that begins, or continues after a resume."""
        return

    def generation(self, episode_id: str, number: int, request: Request, result: Generation | GenerationFailed) -> None:
        """Handle a text, or a generation that failed."""

    def turn(self, episode_id: str, turn: Turn, generation: int) -> None:  # noqa: ARG002 - overridden
        """Handle a valid turn."""
        return

    def reject(self, episode_id: str, generation: int, reason: str) -> None:
        """Handle a malformed reply in a generation."""

    def episode_ended(self, episode_id: str, episode: Episode, scores: Sequence[Record], duration_ms: float) -> None:
        """Handle the end of an episode."""


class Recorder(EventSink):
    """Writes one run. `notice` receives one line when another process holds the database; `texts` are stored too.

    `stated` returns the record of the run as of now; it is asked before each write to the database.
    """

    def __init__(
        self,
        store: Store,
        journal: Journal,
        run: RunRecord,
        scenarios: Sequence[LoadedScenario],
        notice: Callable[[str], None],
        texts: Sequence[str] = (),
        stated: Callable[[RunRecord], RunRecord] = lambda run: run,
    ) -> None:
        self._store = store
        self._stated = stated
        self._notice = notice
        self._run = run
        self._journal = journal
        self._scenarios = {loaded.scenario.hash: loaded.hash for loaded in scenarios}
        self._known_contents: set[str] = set()
        self._new_contents: list[ContentRecord] = []
        self._prompts: dict[str, tuple[int, tuple[Message, ...]]] = {}
        self._open: dict[str, list[Record]] = {}
        self._unwritten: list[Record] = [scenario_record(loaded) for loaded in scenarios]
        self._unwritten += [ContentRecord(hash_of(text), text) for text in texts]
        self._noticed = False
        self._file: FileMark | None = None
        """The database file with the earlier writes of this run; None before the first."""
        self._next_write = 0.0
        self._ended = False
        """True if an ended episode waits to be written."""
        self._together: list[Record] | None = None
        """Records that wait for the end of a block `together`; None outside of one."""
        self._journal.append(self._run, *self._unwritten)
        self._flush(FLUSH_PATIENCE_S)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write all records of a block to the journal at its end, in one append: each append waits for the disk."""
        self._together = []
        try:
            yield
        finally:
            waiting, self._together = self._together, None
            if waiting:
                self._journal.append(*waiting)
        self.write_if_due()

    def episode_started(self, episode_id: str, spec: EpisodeSpec) -> None:
        """Record that an episode begins, or continues after a resume; what an earlier attempt wrote is replaced."""
        self._forget_prompts(episode_id)
        self._open[episode_id] = []
        self._note(episode_id, episode_record(episode_id, self._run.run_id, self._scenarios[spec.scenario.hash], spec))

    def generation(self, episode_id: str, number: int, request: Request, result: Generation | GenerationFailed) -> None:
        parent, messages = self._delta(episode_id, request)
        record = GenerationRecord(
            episode_id=episode_id,
            generation=number,
            turn=request.turn,
            attempt=request.attempt,
            speaker=request.speaker,
            seed=request.seed,
            parent=parent,
            messages=[[message.role, self._content(message.content)] for message in messages],
            prefill_hash=self._content("\n".join(filter(None, (request.note, request.prefill)))),
            grammar_hash=self._content(request.form.grammar()) if request.sampling.grammar else None,
        )
        if isinstance(result, GenerationFailed):
            self._note(episode_id, replace(record, malformed=str(result)))
            return
        written = {name: getattr(result, name) for name in WRITTEN}
        written["details"] = {**result.details, "max_tokens": request.max_tokens}
        if request.step:
            written["details"]["step"] = request.step
        self._note(episode_id, replace(record, **written))
        self._prompts[f"{episode_id}/{request.session}"] = (number, request.messages)

    def turn(self, episode_id: str, turn: Turn, generation: int) -> None:
        self._note(episode_id, turn_record(episode_id, turn, generation))

    def reject(self, episode_id: str, generation: int, reason: str) -> None:
        self._note(episode_id, RejectRecord(episode_id, generation, reason))

    def episode_ended(self, episode_id: str, episode: Episode, scores: Sequence[Record], duration_ms: float) -> None:
        """Record the end of an episode; write it to the database now, or soon if the last write is very recent."""
        ended = EpisodeEnded(
            episode_id=episode_id,
            status=episode.status,
            stop_reason=episode.stop_reason,
            error=episode.error,
            turns=len(episode.transcript),
            duration_ms=duration_ms,
        )
        self._note(episode_id, ended, *scores)
        self._unwritten += self._open.pop(episode_id)
        self._forget_prompts(episode_id)
        self._ended = True
        self.write_if_due()

    def close(self, *, finished_utc: str, complete: bool) -> bool:
        """End the run; return True if all of it is in the database (if not, the next command writes the rest)."""
        ended = RunEnded("finished" if complete else "interrupted", finished_utc)
        self._journal.append(ended)
        self._unwritten += [record for records in self._open.values() for record in records]
        self._unwritten.append(ended)
        self._noticed = False
        written = self._flush(END_PATIENCE_S)
        self._journal.close(remove=written)
        return written

    # ---- helpers -----------------------------------------------------------------------------------------------

    def _note(self, episode_id: str, *records: Record) -> None:
        if self._together is not None:
            self._together += [*self._new_contents, *records]
        else:
            self._journal.append(*self._new_contents, *records)
        self._unwritten += self._new_contents
        self._new_contents.clear()
        self._open[episode_id] += records
        self.write_if_due()

    def write_if_due(self) -> None:
        """Write ended episodes to the database if the last write is not recent."""
        if self._ended and self._together is None and time.monotonic() >= self._next_write:
            self._flush(FLUSH_PATIENCE_S)

    def _forget_prompts(self, episode_id: str) -> None:
        for key in [key for key in self._prompts if key.startswith(f"{episode_id}/")]:
            del self._prompts[key]

    def _content(self, text: str) -> str:
        content_hash = hash_of(text)
        if content_hash not in self._known_contents:
            self._known_contents.add(content_hash)
            self._new_contents.append(ContentRecord(content_hash, text))
        return content_hash

    def _delta(self, episode_id: str, request: Request) -> tuple[int | None, tuple[Message, ...]]:
        """Return the earlier generation whose messages begin this prompt, and the messages after them."""
        known = self._prompts.get(f"{episode_id}/{request.session}")
        if known is None:
            return None, request.messages
        parent, messages = known
        if request.messages[: len(messages)] == messages:
            return parent, request.messages[len(messages) :]
        return None, request.messages

    def _flush(self, patience_s: float) -> bool:
        """Write the waiting records; return False if another process holds the file."""
        self._next_write = time.monotonic() + EVERY_S
        self._run = self._stated(self._run)
        try:
            records = [self._run, *self._unwritten]
            self._file = self._store.take_in(records, patience_s=patience_s, same=self._file)
        except Busy as error:
            if not self._noticed:
                self._notice(f"{error}; the run continues, {len(self._unwritten)} records wait in {self._journal.path}")
                self._noticed = True
            return False
        self._unwritten.clear()
        self._ended = False
        return True


def scenario_record(loaded: LoadedScenario) -> ScenarioRecord:
    """Return the record of a scenario as it is now."""
    scenario = loaded.scenario
    return ScenarioRecord(
        scenario_hash=loaded.hash,
        scenario_id=scenario.id,
        title=scenario.title,
        family=scenario.family,
        document_json=scenario.model_dump_json(),
        answer_json=json.dumps(loaded.answer.as_json()),
        path=loaded.path.encode("utf-8", "replace").decode(),
    )


def episode_record(episode_id: str, run_id: str, scenario_hash: str, spec: EpisodeSpec) -> EpisodeRecord:
    """Return the record of an episode that begins; `scenario_hash` includes the answer key."""
    settings = {"models": dict(spec.models), "sampling": spec.sampling.stated(), "repro": spec.repro}
    if spec.layouts:
        settings["layouts"] = dict(spec.layouts)
    return EpisodeRecord(
        episode_id=episode_id,
        run_id=run_id,
        scenario_hash=scenario_hash,
        mode=spec.mode,
        model="|".join(dict.fromkeys(spec.models.values())),
        episode_index=spec.index,
        seed=spec.seed,
        spec_hash=spec.hash,
        spec_json=json.dumps(settings, sort_keys=True),
        variant=spec.variant,
        see=spec.grants.text,
    )


def turn_record(episode_id: str, turn: Turn, generation: int) -> TurnRecord:
    """Return the record of a turn; `generation` is -1 for turns without one."""
    return TurnRecord(
        episode_id=episode_id,
        turn=turn.index,
        speaker=turn.speaker,
        action=turn.action.type,
        text=turn.action.text,
        words=turn.words,
        truncated=turn.truncated,
        generation=generation,
        values=turn.action.values,
        readers=turn.readers,
        beat=turn.beat,
        phase=turn.phase,
        repaired=turn.repaired,
    )
