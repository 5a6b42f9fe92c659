"""The decisions of an earlier class as a player: the other seats of a talk do what people did in those seats before.

Each seat of a talk is given one earlier talk of the same scenario (in the same mode, if there is one), drawn by the
seed of the talk. The n-th decision of the seat is the n-th decision that a person made in that role there. It is given
when the run asks for it, so no phone sees it early. Where there is no n-th decision, or it is not allowed now, a
scripted player decides instead. What was done is kept with the text: `details` of the generation name the earlier
episode and seat (`replayed`), and why its decision could not be taken (`fallback`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from localsim.backends.base import Backend, Done
from localsim.backends.person import NAME
from localsim.backends.scripted import PREFIX as FALLBACK
from localsim.conversation.requests import TYPED, Generation, Request
from localsim.conversation.rules.lines import SEPARATOR, Bound, Way, name_of
from localsim.conversation.scenario import LoadedScenario
from localsim.conversation.transcript import Action, Turn, line_of, typed_move
from localsim.errors import GenerationFailed, InvalidInput
from localsim.stats import grouped
from localsim.store.database import Store
from localsim.store.episodes import transcript_of
from localsim.store.queries import classes as queries
from localsim.web.floor.beats import open_beat, ways_in
from localsim.web.floor.state import Live

PREFIX = "earlier:"
"""Begins the name of this player; the run of the earlier class follows."""


@dataclass(frozen=True)
class PastRole:
    """The decisions of one person in an earlier talk."""

    episode_id: str
    mode: str
    decisions: tuple[Turn, ...]


Decisions = dict[tuple[str, str], list[PastRole]]
"""Hash of a scenario with its answer key, and role -> what people decided, by episode."""


def name_for(run_id: str) -> str:
    """Return the name of the player that replays a run."""
    return PREFIX + run_id


def is_earlier(name: str) -> bool:
    """Return True if a player replays an earlier class."""
    return name.startswith(PREFIX)


def decisions_of(store: Store, run_id: str) -> Decisions:
    """Read what people decided in the completed talks of a run."""
    key = itemgetter("scenario_hash", "speaker", "episode_id", "mode")
    rows = grouped((key(row), row) for row in queries.decisions(store, run_id, NAME))
    return grouped(
        ((scenario, role), PastRole(episode_id, mode, transcript_of(own).turns))
        for (scenario, role, episode_id, mode), own in rows.items()
    )


def refuse_without(decisions: Decisions, scenarios: Sequence[LoadedScenario], run_id: str) -> None:
    """Raise InvalidInput for a scenario that is no game, or that the earlier class did not play."""
    known = {scenario for scenario, _ in decisions}
    for loaded in scenarios:
        if not loaded.scenario.moves:
            raise InvalidInput(
                f"{loaded.scenario.id} has no moves, so its decisions cannot be replayed",
                hint="choose a game (localsim scenarios list), or leave out --replay",
            )
        if loaded.hash not in known:
            raise InvalidInput(
                f"run {run_id} has no finished talk of people on {loaded.scenario.id}",
                hint=f"localsim runs show {run_id} lists what was played",
            )


class EarlierClass(Backend):
    """A backend that replays decisions. `live_of` finds a talk by the hash of its spec. `fallback` stays open."""

    def __init__(
        self,
        run_id: str,
        decisions: Decisions,
        scenarios: Sequence[LoadedScenario],
        fallback: Backend,
        live_of: Callable[[str], Live],
    ) -> None:
        self.name = name_for(run_id)
        self.identity: dict[str, Any] = {
            "kind": "replayed", "name": self.name, "run": run_id, "fallback": fallback.name,
        }  # fmt: skip
        self._decisions, self._scenarios, self._fallback, self._live_of = decisions, scenarios, fallback, live_of
        self._tickets = 0
        self._done: list[Done] = []
        self._passed: dict[int, tuple[int, dict[str, Any]]] = {}
        """Ticket of the fallback -> own ticket and details."""

    def submit(self, request: Request) -> int:
        self._tickets += 1
        live = self._live_of(request.session.rpartition("/")[0])
        action, details = self._decide(live, request.speaker)
        if action is None:
            self._passed[self._fallback.submit(request)] = self._tickets, details
        else:
            text = line_of(request.speaker, action).removeprefix(request.prefill)
            generation = Generation(f"{text}\n", "finished", self.name, details=details | TYPED)
            self._done.append(Done(self._tickets, generation))
        return self._tickets

    def _decide(self, live: Live, role: str) -> tuple[Action | None, dict[str, Any]]:
        """Return the decision of a role; None where the fallback decides. With details for the generation."""
        played = self._decisions.get((self._scenarios[live.meeting.scenario].hash, role), [])
        source = drawn(played, live, role)
        if source is None:
            return None, {"replayed": None, "fallback": "no person had this role"}
        number = sum(turn.speaker == role for turn in live.turns)
        details: dict[str, Any] = {"replayed": {"episode": source.episode_id, "seat": role, "decision": number}}
        if number >= len(source.decisions):
            return None, details | {"fallback": "the earlier talk had ended"}
        action = source.decisions[number].action
        beat = open_beat(live.spec, live.turns)
        if beat is None or not allowed(action, ways_in(live.spec, live.turns, beat, role)):
            return None, details | {"fallback": "not allowed now"}
        return action, details

    def poll(self) -> list[Done]:
        done, self._done = self._done, []
        for each in self._fallback.poll():
            ticket, details = self._passed.pop(each.ticket)
            result: Generation | GenerationFailed = each.result
            if isinstance(result, Generation):
                result = replace(result, details={**result.details, **details})
            done.append(Done(ticket, result))
        return done

    def cancel(self, ticket: int) -> None:
        self._done = [done for done in self._done if done.ticket != ticket]
        for passed, (own, _) in list(self._passed.items()):
            if own == ticket:
                self._fallback.cancel(passed)
                del self._passed[passed]

    def release(self, session: str) -> None:
        self._fallback.release(session)


def drawn(played: Sequence[PastRole], live: Live, role: str) -> PastRole | None:
    """Return the earlier talk of which a role takes the decisions, of those in which a person played it; None if none.

    One in the same mode is taken, if there is one, because what a player sees bears on what it decides.
    """
    alike = [each for each in played if each.mode == live.meeting.mode] or played
    return random.Random(f"{live.spec.seed}/{role}/earlier").choice(alike) if alike else None


def allowed(action: Action, ways: Sequence[Way]) -> bool:
    """Return True if an action is one of the ways in which a role can act now, with values that it can have."""
    way = next((way for way in ways if name_of(way) == action.type), None)
    if way is None or not isinstance(way, Bound):
        return way is not None
    try:
        return typed_move(way, SEPARATOR.join(action.values or ()), action.text) == action
    except InvalidInput:
        return False


def told(store: Store, run_id: str) -> str:
    """Say how many decisions of a run were replayed, and how many the fallback made."""
    row = queries.replayed(store, run_id)
    return (
        f"{row.replayed} decisions were those of the earlier class; {row.fallback} that were not allowed, or "
        f"that it had not made, were made by {FALLBACK}"
    )
