"""A floor: conversations of people as one run, what a page may show of them, and how a turn or a choice is taken.

The run begins with the first conversation and ends with the floor. A choice is in the ledger, and a turn in the journal
of the run, before a page gets its answer. So a killed server loses nothing that a person has seen.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from localsim.backends.base import Backend
from localsim.backends.open import Needs, is_scripted, open_backends
from localsim.backends.person import NAME
from localsim.conversation.episode import Episode, EpisodeSpec, Observation, Score
from localsim.conversation.rules.lines import Way
from localsim.conversation.scenario import AnswerKey
from localsim.conversation.transcript import Action, Transcript, Turn
from localsim.conversation.visibility import observe
from localsim.errors import DatabaseError, LocalsimError, ModelMissing
from localsim.evaluators.leaks import search
from localsim.families import family_of
from localsim.families.base import Verdict
from localsim.families.language import has_foreigner, language_of
from localsim.paths import db_option
from localsim.reports.evidence.turns import hits_in, verdict_on
from localsim.runs import runner
from localsim.runs.plan import Plan
from localsim.store.database import Store
from localsim.store.episodes import load_episode, transcript_of
from localsim.store.lock import Busy
from localsim.store.queries import annotation as annotation_queries
from localsim.store.queries import classes as queries
from localsim.store.queries.runs import finished_episodes, has_run
from localsim.store.records import AnswerRow, Record, RunRecord, ScoreRecord, episode_id_of
from localsim.web.floor.beats import open_beat, start_of, ways_in
from localsim.web.floor.ledger import Ledger
from localsim.web.floor.players import Players
from localsim.web.floor.state import Event, Live, Meeting, State
from localsim.web.phrases.table import Refused

_SAID_S = 20.0
"""Longest wait until a turn is on the disk."""
AT_A_TIME = 8
"""Conversations for which a model writes at the same time; the others wait their turn."""
_ANSWERS_EVERY_S = 2.0


@dataclass(frozen=True)
class Terms:
    """What a floor plays, and how it is told of."""

    what: str
    """What people take part in: "class"."""
    plan: Plan
    """The plan that is stored with the run; its roles name people."""
    models: Sequence[str]
    """The models and scripted players that may have a part, the first of which gives the run its name."""
    specs: Sequence[EpisodeSpec]
    """An episode of each kind, for the memory of the models."""
    texts: tuple[str, ...] = ()
    """Texts that are stored with the run."""


class Floor(runner.Guests):
    """Many conversations at the same time, as one run. All that changes is guarded by `changed`."""

    unexpected = "something unexpected happened; the terminal shows the details"
    timed = False
    """True if a person's turn is stored with the time that it took."""

    def __init__(
        self,
        store: Store,
        run_id: str,
        terms: Terms,
        register: State[Any],
        ledger: Ledger | None,
        say: Callable[[str], None],
    ) -> None:
        """Without a `ledger` nothing but the turns outlives the server."""
        self.register, self._ledger = register, ledger
        self.store, self.run_id, self.scenarios = store, run_id, terms.plan.scenarios
        self.changed = threading.Condition()
        self.problem = ""
        self.searched = False
        """True once the search for leaks in the complete run is over."""
        self.live: dict[int, Live] = {}
        self.tongues = {loaded.scenario.id: language_of(loaded.scenario) or "" for loaded in self.scenarios}
        """Scenario -> the language of its texts, for the attribute `lang`; '' if it is not known."""
        self._terms, self._say = terms, say
        beside_model = not all(map(self._is_quick, terms.models))
        self.players = Players(self.changed, beside_model=beside_model, timed=self.timed)
        self.coming = deque()
        self._by_spec: dict[str, Live] = {}
        self._backends: Mapping[str, Backend] = {}
        self._answers: list[AnswerRow] = []
        self._answers_at = 0.0
        self._ready = threading.Event()
        self._failed: LocalsimError | None = None
        self._thread = threading.Thread(target=self._work, name=f"localsim-{terms.what}", daemon=True)

    def recall(self) -> None:
        """Add the conversations of the register, with what the database knows of those that have ended."""
        for meeting in self.register.meetings.values():
            self._add(meeting)
        self.store.take_in_leftovers()
        if not has_run(self.store, self.run_id):
            return
        finished = finished_episodes(self.store, self.run_id)
        turns = annotation_queries.turns_by_episode(self.store, self.run_id)
        by_id = {live.episode_id: live for live in self.live.values()}
        for row in queries.talks_of_run(self.store, self.run_id):
            live = by_id.get(row.episode_id)
            if live is None or row.episode_id not in finished:
                continue
            live.ended, live.completed = True, row.status == "completed"
            live.success, live.decided, live.fault, live.problem = row.success, row.decided, row.fault, row.error or ""
            live.stop_reason = row.stop_reason
            live.turns = list(transcript_of(turns.get(live.episode_id, [])).turns)
            stored = load_episode(self.store, live.episode_id)
            judged = any(self._counts_hits(live, score["name"]) for score in stored.scores)
            self._judge(live, hits_in(stored), verdict_on(stored, self._answer(live)), judged=judged)

    def begin(self) -> None:
        """Open the models, take up the conversations that have not ended, and go on, all in the thread."""
        self.players.closing = self.register.ended
        for event in self._ledger.events if self._ledger else ():
            self._answers += self.answers_in(event)
        self.coming.extend(live.spec for live in self.live.values() if not live.ended)
        self._thread.start()

    def start(self) -> None:
        """Begin, and wait until models are open. Raises what prevents it."""
        self.begin()
        self._ready.wait()
        if self._failed is not None:
            raise self._failed

    def leave(self, *, wait: bool = True) -> None:
        """Leave the loop; `wait` until everything is written."""
        with self.changed:
            self.players.closing = True
            self.changed.notify_all()
        if wait and self._thread.is_alive():
            self._thread.join()

    def stop(self) -> None:
        """Stop without an end: the same command goes on."""
        self.leave()
        if self._ledger:
            self._ledger.close()

    def close(self) -> None:
        """Note that the run is complete, so that the next command begins anew."""
        with self.changed:
            self._record("closed")

    # ---- what differs between floors -------------------------------------------------------------------------------

    def spec_of(self, meeting: Any) -> EpisodeSpec:
        """The episode of a conversation."""
        raise NotImplementedError

    def answers_in(self, event: Event) -> Iterable[AnswerRow]:  # noqa: ARG002 - for floors that store answers
        """The rows that an event adds to the database or changes there. Only under the lock."""
        return ()

    def answer_row(
        self, task: str, item: str, rater: str, value: Mapping[str, Any], shown: Mapping[str, str],
        at: datetime | None = None, seconds: float | None = None,
    ) -> AnswerRow:  # fmt: skip
        """A row beside the conversations; `at` is in UTC, and now without one."""
        return AnswerRow(
            task=task,
            item_id=item,
            rater=rater,
            run_id=self.run_id,
            value_json=json.dumps(value, ensure_ascii=False, sort_keys=True),
            shown_json=json.dumps(shown),
            attention=False,
            origin="browser",
            seconds=seconds,
            created_utc=(at or datetime.now(UTC)).replace(tzinfo=None),
        )

    def _opened(self) -> AbstractContextManager[dict[str, Backend]]:
        """Open the models and scripted players that may have a part."""
        return open_backends(self._terms.models, self._needs(), self._say)

    def _needs(self) -> Needs:
        """The needs of the computer's side in any conversation."""
        return Needs(sequences=AT_A_TIME, specs=self._terms.specs)

    def _is_quick(self, model: str) -> bool:
        """Return True for a player that decides at once."""
        return is_scripted(model)

    def _is_due(self) -> bool:
        """Return True if the run has begun or has to begin."""
        return bool(self._by_spec)

    # ---- what the pages ask ----------------------------------------------------------------------------------------

    def seen_by(self, live: Live, role: str) -> Observation:
        """Everything that a role may know now; the page of a person shows this and nothing else of it."""
        with self.changed:
            spoken = Transcript(tuple(live.turns))
        spec = live.spec
        return observe(spec.scenario, spec.mode, role, spoken, spec.grants, encode=spec.encode)

    def ways(self, live: Live, role: str) -> tuple[Way, ...]:
        """The ways in which a role can act now; () where it has to wait. Only under the lock."""
        beat = None if live.ended else open_beat(live.spec, live.turns)
        if beat is None or (live.meeting.number, role, beat.start) in self.register.choices:
            return ()
        request = self.players.asked(live.spec.hash)
        asked = request is not None and request.speaker == role
        return ways_in(live.spec, live.turns, beat, role) if asked or beat.together else ()

    def awaited(self, live: Live, role: str) -> list[str]:
        """The other roles that have not acted yet in the beat that is open, or all others. Only under the lock."""
        others = [name for name in live.spec.scenario.names if name != role]
        beat = None if live.ended else open_beat(live.spec, live.turns)
        if beat is None or len(others) < 2:
            return others
        chosen = {
            who for talk, who, start in self.register.choices if (talk, start) == (live.meeting.number, beat.start)
        }
        return [name for name in beat.waiting if name != role and name not in chosen]

    def take(self, live: Live, role: str, place: int, action: Action) -> None:
        """Take a turn, and wait until it is on the disk; the same turn again changes nothing. Raises Refused.

        `place` is the number of the first turn of the beat that the person answers.
        """
        with self.changed:
            if any((turn.speaker, turn.beat, turn.action) == (role, place, action) for turn in live.turns):
                return
            beat = None if live.ended else open_beat(live.spec, live.turns)
            if beat is not None and beat.together and beat.start == place and role in beat.waiting:
                self._choose(live, role, place, action)
                return
            if self.problem:
                raise Refused("stopped")
            if self.players.give(live.spec.hash, role, place, action):
                live.given = (place, action)
            elif live.given != (place, action):
                raise _not_now(action)
            self.changed.wait_for(lambda: len(live.turns) > place or live.ended or self.problem, _SAID_S)
            if len(live.turns) <= place:
                raise Refused("not_stored")
            if action.type == "leave":  # the next page is the bet, which needs the end of the talk
                self.changed.wait_for(lambda: live.ended, _SAID_S)

    def _choose(self, live: Live, role: str, place: int, action: Action) -> None:
        """Keep a choice in a beat in which several act at the same time; the first one counts."""
        kept = self.register.choices.get((live.meeting.number, role, place))
        if kept is None:
            values = None if action.values is None else list(action.values)
            self._record(
                "choice", talk=live.meeting.number, role=role, beat=place, type=action.type, text=action.text,
                values=values,
            )  # fmt: skip
            self.hand_in()
        elif kept != action:
            raise _not_now(action)

    def hand_in(self) -> None:
        """Give the run the choices that it asks for now. Only under the lock."""
        for live in self.live.values():
            request = None if live.ended else self.players.asked(live.spec.hash)
            if request is None:
                continue
            kept = self.register.choices.get((live.meeting.number, request.speaker, start_of(live.turns)))
            if kept is not None:
                self.players.give(live.spec.hash, request.speaker, request.turn, kept)

    # ---- events ----------------------------------------------------------------------------------------------------

    def _record(self, event: str, **fields: Any) -> None:
        """Take an event of a kind: it is on the disk before anything shows it. Only under the lock."""
        line: Event = {"event": event, **fields}
        if self._ledger:
            self._ledger.append(line)
        self.register.apply(line)
        if event == "talk":
            self.coming.append(self._add(self.register.meetings[fields["talk"]]).spec)
        self._answers += self.answers_in(line)
        self.changed.notify_all()

    def _add(self, meeting: Meeting) -> Live:
        spec = self.spec_of(meeting)
        live = Live(meeting, spec, episode_id_of(self.run_id, spec))
        self.live[meeting.number] = self._by_spec[spec.hash] = live
        return live

    # ---- what the run tells and asks -------------------------------------------------------------------------------

    def turn(self, spec: EpisodeSpec, turn: Turn) -> None:
        with self.changed:
            live = self._by_spec[spec.hash]
            live.turns.append(turn)
            live.given = None
            self.changed.notify_all()

    def scored(self, spec: EpisodeSpec, scores: Sequence[Record]) -> None:
        live = self._by_spec[spec.hash]
        rows = [each for each in scores if isinstance(each, ScoreRecord)]
        found = {
            row.name: Score(row.name, row.value, label=row.label or "", reason=row.reason, turns=tuple(row.turns))
            for row in rows
            if not row.agent
        }
        success = found.get("success")
        live.success = success.value if success else None
        live.decided = max(success.turns, default=None) if success and success.value == 1 else None
        family = family_of(spec.scenario.family)
        counted = [row for row in rows if self._counts_hits(live, row.name)]
        verdict = family.verdict(found, self._answer(live))
        self._judge(live, (turn for row in counted if row.value for turn in row.turns), verdict, judged=bool(counted))
        plays = found.get("plays")
        live.fault = None if plays is None or plays.value is None else "" if plays.value >= 1 else plays.label or ""

    @staticmethod
    def _counts_hits(live: Live, score: str) -> bool:
        counted = family_of(live.spec.scenario.family).hits
        return counted is not None and score == counted.score

    def _judge(self, live: Live, hits: Iterable[int], verdict: Verdict | None, *, judged: bool) -> None:
        """Keep hits and verdict of a conversation; nothing is judged in another language than the rules read."""
        live.foreign = has_foreigner(live.turns, live.spec.scenario)
        live.hits, live.judged = tuple(hits), judged
        live.missed = (verdict.missed or verdict.said) if verdict and verdict.right is False else ""
        if live.foreign:
            live.success, live.decided, live.hits, live.missed = None, None, (), ""

    def _answer(self, live: Live) -> AnswerKey:
        return self.scenarios[live.meeting.scenario].answer

    def ended(self, episode: Episode) -> None:
        with self.changed:
            live = self._by_spec[episode.spec.hash]
            live.ended, live.completed = True, episode.status == "completed"
            live.broken_off = episode.status == "interrupted"
            live.problem, live.stop_reason = episode.error or "", episode.stop_reason
            self.changed.notify_all()

    def leaves(self) -> bool:
        """Hand over what people chose before they were asked, and store answers, in every round."""
        self._ready.set()
        with self.changed:
            self.hand_in()
        if self._answers and time.monotonic() >= self._answers_at:
            self._store_answers(patience_s=1.0)
        return self.players.over

    def over(self) -> str:
        return f"the {self._terms.what} ended before the talk did" if self.register.ended else ""

    def stated(self, run: RunRecord) -> RunRecord:
        with self.changed:
            used = {model for live in self._by_spec.values() for model in live.spec.models.values()}
            planned = len(self._by_spec)
        models = {name: backend.identity for name, backend in self._backends.items() if name in used}
        # The name of a run is made of its plan: a computer that took no part would be named as a player.
        computer = next((name for name in self._terms.models if name in models), NAME)
        plan = {**json.loads(run.plan_json), "model": computer}
        return replace(run, episodes_planned=planned, models_json=json.dumps(models), plan_json=json.dumps(plan))

    # ---- the run's thread ------------------------------------------------------------------------------------------

    def _work(self) -> None:
        done = False
        try:
            with self._opened() as backends:
                self._backends = {**backends, NAME: self.players}
                result = self._attended() if self._has_begun() else None
            self._conclude(result)
            done = True
        except LocalsimError as error:
            done = True
            self._stopped(error, f"{error.message} ({error.hint})" if error.hint else error.message)
        finally:
            if not done:  # a defect: the thread ends with its traceback in the terminal
                self._stopped(LocalsimError(self.unexpected), self.unexpected)
            self._ready.set()

    def _stopped(self, error: LocalsimError, problem: str) -> None:
        self._failed = error
        with self.changed:
            self.problem = problem
        if self._ready.is_set():
            self._say(f"the talks of the {self._terms.what} have stopped: {problem}")

    def _has_begun(self) -> bool:
        """Wait for the beginning, so that a floor without visitors leaves no run; False if nothing begins."""
        if not self._is_due():
            self._ready.set()
            with self.changed:
                self.changed.wait_for(lambda: self._is_due() or self.players.closing)
        return self._is_due()

    def _attended(self, parallel: int = AT_A_TIME, planned: int = 0) -> runner.Result:
        """Let the conversations run until they have ended or the server stops."""
        plan, identities = self._terms.plan, runner.identities_of(self._backends)
        run = runner.run_record(self.run_id, datetime.now(UTC), plan, parallel, planned, identities)
        result = runner.attend(self, run, plan, self._backends, self.store, self._say, self._terms.texts)
        self._store_answers(patience_s=60.0)
        return result

    def _conclude(self, result: runner.Result | None) -> None:
        """Note that the run is complete, and look for leaks in it; nothing if it can go on."""
        if not self.register.ended or (result is not None and result.summary.stopped):
            return
        if not self._answers:  # otherwise the same command stores them
            self.close()
        if self._by_spec:
            self._search()
        self.searched = True

    def _search(self) -> None:
        self._say(f"the {self._terms.what} has ended; its run is {self.run_id}")
        try:
            search(self.store, [self.run_id], self._say)
        except (ModelMissing, DatabaseError) as error:
            self._say(f"leaks were not looked for: {error.message}")
        where = db_option(self.store.path)
        report = f"localsim report {self.run_id}{where}"
        self._say(f"its talks: localsim view{where}; success, turns and leaks in each mode: {report}")

    def _store_answers(self, patience_s: float) -> None:
        self._answers_at = time.monotonic() + _ANSWERS_EVERY_S
        with self.changed:
            answers, self._answers = self._answers, []
        try:
            annotation_queries.store_answers(self.store, answers, patience_s)
        except Busy:
            with self.changed:
                self._answers = answers + self._answers


def _not_now(action: Action) -> Refused:
    return Refused("not_your_turn", words=action.text or action.type)
