"""Talks in which people act through pages: what a page may show, and how a turn or a choice of a person is taken.

A choice is in the ledger, and a turn in the journal of the run, before a page gets its answer. So a killed server loses
nothing that a person has seen.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from localsim.conversation.episode import EpisodeSpec, Observation, StopReason
from localsim.conversation.rules.lines import Way
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action, Turn
from localsim.conversation.transcript import Transcript as Spoken
from localsim.conversation.visibility import observe
from localsim.errors import InvalidInput
from localsim.store.database import Store
from localsim.store.episodes import transcript_of
from localsim.store.queries import annotation as annotation_queries
from localsim.store.queries import classes as queries
from localsim.store.queries.runs import finished_episodes
from localsim.web.classroom.beats import open_beat, start_of, ways_in
from localsim.web.classroom.ledger import Ledger
from localsim.web.classroom.seats import Choice, Event, Talk

if TYPE_CHECKING:
    from localsim.web.classroom.talks import Talks

_SAID_S = 20.0
"""Longest wait until a turn is on the disk."""


@dataclass
class Live:
    """What is known of a talk while the server runs."""

    talk: Talk
    spec: EpisodeSpec
    episode_id: str
    turns: list[Turn] = field(default_factory=list)
    ended: bool = False
    completed: bool = False
    success: float | None = None
    fault: str | None = None
    """The worst fault of a talk that does not play; '' if it plays, None if that is not scored."""
    problem: str = ""
    stop_reason: StopReason | None = None
    """Why it ended, if nothing went wrong."""
    given: tuple[int, Action] | None = None
    """A turn of a person that is on its way to the disk."""


class State(Protocol):
    """What a floor needs of the state that the events of its ledger lead to."""

    choices: dict[tuple[int, str, int], Choice]
    """(number of a talk, role, first turn of a beat) -> what the role chose before it was asked."""
    talks: Any
    """Number of a talk -> talk."""
    ended: bool
    """True once no talk goes on."""

    def apply(self, event: Event) -> None:
        """Change the state as one event says."""


class Floor:
    """Many talks at the same time, as one run. Its methods can be called from many threads."""

    register: State
    playing: Talks

    def __init__(self, store: Store, scenarios: Sequence[LoadedScenario], ledger: Ledger, run_id: str) -> None:
        self.store, self.scenarios, self.run_id = store, tuple(scenarios), run_id
        self.changed = threading.Condition()
        self.problem = ""
        self.live: dict[int, Live] = {}
        self._ledger = ledger

    def recall(self) -> None:
        """Add the talks of the register, with what the database knows of those that have ended."""
        for talk in self.register.talks.values():
            self._add(talk)
        self.store.take_in_leftovers()
        if not queries.has_run(self.store, self.run_id):
            return
        finished = finished_episodes(self.store, self.run_id)
        rows = {row["episode_id"]: row for row in queries.talks_of_run(self.store, self.run_id)}
        turns = annotation_queries.turns_by_episode(self.store, self.run_id)
        for live in self.live.values():
            if live.episode_id not in finished:
                continue
            row = rows[live.episode_id]
            live.ended, live.completed = True, row["status"] == "completed"
            live.success, live.fault, live.problem = row["success"], row["fault"], row["error"] or ""
            live.stop_reason = row["stop_reason"]
            live.turns = list(transcript_of(turns.get(live.episode_id, [])).turns)

    def start(self) -> None:
        """Open the models and let the talks run. Raises what prevents it."""
        self.playing.start()

    def stop(self) -> None:
        """Stop without an end: the same command goes on."""
        self.playing.stop()
        self._ledger.close()

    def close(self) -> None:
        """Note that the run is complete, so that the next command begins anew."""
        with self.changed:
            self._record({"event": "closed"})

    # ---- what the pages ask ----------------------------------------------------------------------------------------

    def seen_by(self, live: Live, role: str) -> Observation:
        """Everything that a role may know now; the page of a person shows this and nothing else of the talk."""
        with self.changed:
            spoken = Spoken(tuple(live.turns))
        return observe(live.spec.scenario, live.spec.mode, role, spoken, live.spec.grants)

    def ways(self, live: Live, role: str) -> tuple[Way, ...]:
        """The ways in which a role can act now; () where it has to wait. Only under the lock."""
        beat = None if live.ended else open_beat(live.spec, live.turns)
        if beat is None or (live.talk.number, role, beat.start) in self.register.choices:
            return ()
        request = self.playing.players.asked(live.spec.hash)
        asked = request is not None and request.speaker == role
        return ways_in(live.spec, live.turns, beat, role) if asked or beat.together else ()

    def awaited(self, live: Live, role: str) -> list[str]:
        """The other roles that have not acted yet in the beat that is open, or all others. Only under the lock."""
        others = [name for name in live.spec.scenario.names if name != role]
        beat = None if live.ended else open_beat(live.spec, live.turns)
        if beat is None or len(others) < 2:
            return others
        chosen = {who for talk, who, start in self.register.choices if (talk, start) == (live.talk.number, beat.start)}
        return [name for name in beat.waiting if name != role and name not in chosen]

    def take(self, live: Live, role: str, place: int, action: Action) -> None:
        """Take a turn, and wait until it is on the disk; the same turn again changes nothing. Raises InvalidInput.

        `place` is the number of the first turn of the beat that the person answers.
        """
        with self.changed:
            if any((turn.speaker, turn.beat, turn.action) == (role, place, action) for turn in live.turns):
                return
            beat = None if live.ended else open_beat(live.spec, live.turns)
            if beat is not None and beat.together and beat.start == place and role in beat.waiting:
                self._choose(live, role, place, action)
                return
            if self.playing.players.give(live.spec.hash, role, place, action):
                live.given = (place, action)
            elif live.given != (place, action):
                raise _not_now(action)
            self.changed.wait_for(lambda: len(live.turns) > place or live.ended, _SAID_S)
            if len(live.turns) <= place:
                raise InvalidInput("your words could not be stored", hint="go back and send them again")
            if action.type == "leave":  # the next page is the bet, which needs the end of the talk
                self.changed.wait_for(lambda: live.ended, _SAID_S)

    def _choose(self, live: Live, role: str, place: int, action: Action) -> None:
        """Keep a choice in a beat in which several act at the same time; the first one counts."""
        kept = self.register.choices.get((live.talk.number, role, place))
        if kept is None:
            values = None if action.values is None else list(action.values)
            chosen = {"type": action.type, "text": action.text, "values": values}
            self._record({"event": "choice", "talk": live.talk.number, "role": role, "beat": place, **chosen})
            self.hand_in()
        elif kept.action != action:
            raise _not_now(action)

    def hand_in(self) -> None:
        """Give the run the choices that it asks for now. Only under the lock."""
        for live in self.live.values():
            request = None if live.ended else self.playing.players.asked(live.spec.hash)
            if request is None:
                continue
            kept = self.register.choices.get((live.talk.number, request.speaker, start_of(live.turns)))
            if kept is not None:
                self.playing.players.give(live.spec.hash, request.speaker, request.turn, kept.action)

    # ---- helpers ---------------------------------------------------------------------------------------------------

    def _record(self, event: Event) -> None:
        self._ledger.append(event)
        self.register.apply(event)
        self.changed.notify_all()

    def _add(self, talk: Talk) -> Live:
        raise NotImplementedError


def _not_now(action: Action) -> InvalidInput:
    said = action.text or action.type
    return InvalidInput(f"it is not your turn, so this was not said: {said}", hint="go back, and wait for your turn")
