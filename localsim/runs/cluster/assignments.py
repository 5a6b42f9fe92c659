"""The assignments of a run on many workers: which episode waits, who plays which, and what each has written so far.

It receives the events of all workers and passes them to the recorder. If a worker is lost, its episodes go to the front
of the queue with the generations that have arrived, which the next worker replays instead of asking for them again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from localsim.conversation.episode import Episode, EpisodeSpec
from localsim.conversation.requests import Generation
from localsim.conversation.transcript import Transcript
from localsim.runs.cluster.messages import Ended, Event, Generated, Rejected, Said, Started, Task
from localsim.runs.scheduler import Summary, Work, scores_of
from localsim.store.queries.runs import Recorded
from localsim.store.records import episode_id_of

MOST_LOSSES = 4
"""Workers that may be lost in a row while they play an episode and write nothing more of it; then it has failed."""
AHEAD = 256
"""Most episodes that a worker gets beyond those that it plays now."""


@dataclass
class _Held:
    """An episode that has been given to a worker, or that waits again after its worker was lost."""

    spec: EpisodeSpec
    recorded: list[Recorded]
    transcript: Transcript = field(default_factory=Transcript)
    started: bool = False
    """True if the recorder knows it."""
    tokens: int = 0
    losses: int = 0


class Assignments:
    """Episodes by worker. `worker` is any hashable name; the events of a worker that was lost are not heard."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._recorder, self._watcher = work.recorder, work.watcher
        self._fresh = deque(work.specs)
        self._again: deque[str] = deque()
        self._held: dict[str, _Held] = {}
        self._of: dict[str, dict[str, None]] = {}
        self._ended_tokens = 0
        self.summary = Summary()

    @property
    def waiting(self) -> int:
        """The number of episodes that nobody plays."""
        return len(self._again) + len(self._fresh)

    @property
    def done(self) -> bool:
        """True if every episode has ended."""
        return not self._held and not self._fresh

    def playing(self, worker: str) -> int:
        """Return the number of episodes that a worker has."""
        return len(self._of.get(worker, ()))

    def take(self, worker: str, parallel: int, ended: int, workers: int) -> list[Task]:
        """Give a worker its next episodes: as many as it has room for, and as many more as it ended since last time.

        Towards the end the rest is shared among all `workers`, and none gets more than it plays at once, so that a slow
        one does not keep others waiting.
        """
        workers = max(1, workers)
        ahead = min(ended, AHEAD, max(0, self.waiting - workers * parallel) // (2 * workers))
        number = min(parallel + ahead - self.playing(worker), -(-self.waiting // workers))
        return [self._give(worker) for _ in range(max(0, min(number, self.waiting)))]

    def _give(self, worker: str) -> Task:
        if self._again:
            episode_id = self._again.popleft()
        else:
            spec = self._fresh.popleft()
            episode_id = episode_id_of(self._work.run_id, spec)
            self._held[episode_id] = _Held(spec, list(self._work.recorded.get(episode_id, ())))
        held = self._held[episode_id]
        self._of.setdefault(worker, {})[episode_id] = None
        # The worker makes the rules from the scenario; those of another package need not be made to be sent.
        return Task(replace(held.spec, rules=None), tuple(held.recorded))

    def hear(self, worker: str, events: Sequence[Event]) -> int:
        """Record events of a worker; return the number of episodes that ended."""
        mine = self._of.get(worker, {})
        ended = 0
        with self._recorder.together():
            for event in events:
                if event.episode_id in mine:
                    self._hear(event.episode_id, event)
                    if isinstance(event, Ended):
                        del mine[event.episode_id]
                        ended += 1
        return ended

    def _hear(self, episode_id: str, event: Event) -> None:
        held = self._held[episode_id]
        if isinstance(event, Started):
            held.transcript, held.started = Transcript(), True
            self._recorder.episode_started(episode_id, held.spec)
        elif isinstance(event, Generated):
            self._recorder.generation(episode_id, event.number, event.request, event.result)
            if isinstance(event.result, Generation):
                self._count(held, event, event.result)
        elif isinstance(event, Said):
            held.transcript = held.transcript.plus(event.turn)
            self._recorder.turn(episode_id, event.turn, event.generation)
            self._watcher.turn(held.spec, event.turn)
        elif isinstance(event, Rejected):
            self._recorder.reject(episode_id, event.generation, event.reason)
        else:
            self._end(episode_id, held, event)

    def _count(self, held: _Held, event: Generated, result: Generation) -> None:
        """Count a generation that is no replay, and keep it for the next worker if this one is lost."""
        record = Recorded(event.request.turn, event.request.attempt, event.request.seed, result)
        if held.recorded[event.number : event.number + 1] == [record]:
            return
        del held.recorded[event.number :]
        held.recorded.append(record)
        held.losses = 0
        held.tokens += result.generated_tokens
        self.summary.add(result)
        self._watcher.tokens(result.generated_tokens)

    def _end(self, episode_id: str, held: _Held, event: Ended) -> None:
        episode = Episode(held.spec, held.transcript, event.status, event.stop_reason, event.error)
        scores = scores_of(episode_id, episode, self._work.answers[held.spec.scenario.hash])
        self._recorder.episode_ended(episode_id, episode, scores, event.duration_ms)
        del self._held[episode_id]
        self._ended_tokens += held.tokens
        self.summary.end(failed=event.status == "failed")
        self._watcher.ended(episode)

    def lose(self, worker: str) -> int:
        """Take the episodes of a lost worker back; return their number. One that no worker survives has failed."""
        back = list(self._of.pop(worker, ()))
        for episode_id in back:
            held = self._held[episode_id]
            held.losses += held.started
            if held.losses >= MOST_LOSSES:
                error = f"{MOST_LOSSES} workers in a row were lost while they played it"
                self._end(episode_id, held, Ended(episode_id, "failed", None, error, 0.0))
        self._again.extendleft(reversed([each for each in back if each in self._held]))
        return len(back)

    def tell(self, running: int) -> None:
        """Tell the watcher how many tokens are written; `running` are those of episodes in progress."""
        self._watcher.working(self._ended_tokens, running)
