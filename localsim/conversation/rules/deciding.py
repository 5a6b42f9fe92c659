"""The rules: who acts next with which moves, what is told, and when the episode ends.

Rules are pure functions of scenario, transcript and seed, and the transcript is their only state. So a resumed episode
goes on exactly as it would have, and tests need neither a model nor a clock. `Phased` applies the phases of a scenario;
without any, everybody acts in turn.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from localsim.conversation.episode import EpisodeSpec, derive_seed
from localsim.conversation.names import whole
from localsim.conversation.rules.endings import ending
from localsim.conversation.rules.grammar import Line
from localsim.conversation.rules.lines import Bound, Way, agents_in, name_of, readers_of
from localsim.conversation.rules.steps import Act, Next, Rules, Stop, StopReason, Tell
from localsim.conversation.rules.values import NEXT, WITH_ROUNDS, Move, Phase
from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import WORLD, Action, Transcript, Turn, told

AHEAD = 200
"""The most lines of a script that are asked for at once."""
_ONE_PHASE = Phase.model_construct(name="")


@dataclass(frozen=True)
class Slot:
    """The place of one act: who acts, in which ways, and in which beat."""

    speaker: str
    ways: tuple[Way, ...]
    beat: int
    beat_size: int
    phase: str
    closes: bool
    """True for the last act of its beat."""
    since: int = 0
    """The first turn that the agent is shown."""

    @property
    def line(self) -> Line:
        """The slot as a line of a form."""
        return Line(self.speaker, self.ways, self.closes)

    def turn(
        self, scenario: Scenario, index: int, action: Action, *, truncated: bool = False, repaired: bool = False
    ) -> Turn:
        """Return the turn of an action that was taken here."""
        readers = readers_of(_move(scenario, action.type), self.speaker, action.values or ())
        return Turn(index, self.speaker, action, truncated, readers, self.beat, self.beat_size, self.phase, repaired)


@dataclass(frozen=True)
class Phased:
    """The rules of the phases in a scenario file; a talk without phases `ends` also by goodbyes and by repetition."""

    ends: bool = True
    """False in the first edition."""

    def next(self, scenario: Scenario, talk: Transcript, seed: int) -> Next:
        """Return what comes next: a phase goes on, ends with a count, or gives way to the next one."""
        phases, seed = scenario.phases or (_ONE_PHASE,), scenario.seed or seed
        names = [phase.name for phase in phases]
        place = names.index(talk.turns[-1].phase) if talk.turns else 0
        reason = stop_reason(scenario, talk)
        here = present(scenario, talk)
        while True:
            state = _State(scenario, phases[place], talk, derive_seed("phase", seed, names[place]), here)
            over = state.is_over()
            if over and (count := state.count_to_tell()) is not None:
                return count
            last = place == len(phases) - 1
            if reason in (None, "turn_limit") and last and not over and self.ends:
                reason = state.ending() or reason
            if reason is not None and not (over and last and reason == "turn_limit"):
                return Stop(reason)
            if over and last:
                return Stop("done")
            if not over:
                return state.telling() or state.acting()
            place += 1


PHASED: Rules = Phased()
"""The rules of a scenario whose family has none of its own."""
_FIRST_EDITION: Rules = Phased(ends=False)


def rules_in(spec: EpisodeSpec) -> Rules:
    """Return the rules of an episode: those of its game, or of its phases in the edition that it was begun with."""
    return spec.rules or (PHASED if spec.edition > 1 else _FIRST_EDITION)


@dataclass
class _State:
    """One phase in the course of an episode."""

    scenario: Scenario
    phase: Phase
    talk: Transcript
    seed: int
    here: tuple[str, ...]

    def __post_init__(self) -> None:
        phase, names = self.phase, self.scenario.names
        own = [turn for turn in self.talk.turns if turn.phase == phase.name]
        self.acts = [turn for turn in own if not turn.told]
        self.told = len(own) - len(self.acts)
        self.who = phase.who or tuple(name for name in names if name != phase.moderator)
        self.round, self.following = self._round() if phase.order in WITH_ROUNDS else (1, "")

    def is_over(self) -> bool:
        """Return True if nobody acts in this phase any more."""
        phase, acts = self.phase, self.acts
        if not any(name in self.here for name in self.who) or (phase.moderator and phase.moderator not in self.here):
            return True
        if acts and any(turn.action.type in phase.ends_with for turn in acts if turn.beat == acts[-1].beat):
            return True
        if phase.turns is not None and len(acts) >= phase.turns:
            return True
        return phase.rounds is not None and self.round > phase.rounds

    def count_to_tell(self) -> Tell | None:
        """Return the counts of the phase that are due at its end, if they have not been told."""
        if self.phase.count is None or not self.acts or self.talk.turns[-1].told:
            return None
        given = Counter(
            value for turn in self.acts if turn.action.type == self.phase.count for value in turn.action.values or ()
        )
        ranked = sorted(given.items(), key=lambda item: (-item[1], item[0]))
        counts = ", ".join(f"{value} {number}" for value, number in ranked) or "none"
        return Tell(f"Count of {self.phase.count}: {counts}.", None, self.phase.name)

    def ending(self) -> StopReason | None:
        """Return the end to which the agents have come without a rule of the scenario; None while more is to come."""
        phase = self.phase
        if phase.order != "in_turn" or phase.count is not None or self.told < len(list(self._tells())):
            return None
        return ending(self.scenario.limits, self.talk, [name for name in self.who if name in self.here])

    def telling(self) -> Tell | None:
        """Return the announcement or event that is due now."""
        left = list(self._tells())[self.told :]
        return next((tell for round_, tell in left if round_ <= self.round), None)

    def _tells(self) -> Iterator[tuple[int, Tell]]:
        """Yield all that is told before and in this phase, with the round from which it is due."""
        if self.phase.announce is not None:
            yield 1, Tell(self.phase.announce, None, self.phase.name)
        for event in sorted(self.phase.events, key=lambda each: each.round):
            yield event.round, Tell(event.text, event.to or None, self.phase.name)

    def acting(self) -> Act | Stop:
        """Return the next act; the end where its beat does not fit into the limit of turns."""
        allowed = self.phase.actions or (*self.scenario.actions, *(move.name for move in self.scenario.moves))
        plain = tuple(name for name in allowed if name != NEXT)
        act = Act(self._speakers(), plain, self.phase.name)
        if self.phase.order == "moderated":
            act = self._moderated(plain)
        fits = len(self.talk.acts) + len(act.speakers) <= self.scenario.limits.turns
        return act if fits else Stop("turn_limit")

    def _speakers(self) -> tuple[str, ...]:
        if self.phase.order == "together":
            return tuple(name for name in self.who if name in self.here)
        if self.phase.order == "addressed":
            return (self._addressed(),)
        return (self.following,)

    def _order(self, round_: int) -> tuple[str, ...]:
        if self.phase.order != "random":
            return self.who
        return _shuffled(self.who, derive_seed("round", self.seed, round_))

    def _round(self) -> tuple[int, str]:
        """Return the number of the round in which the next act is, and who acts then ('' if nobody is left)."""
        if self.phase.order == "together":
            return len({turn.beat for turn in self.acts}) + 1, ""
        round_, position, places = 1, 0, _places(self._order(1))
        for turn in self.acts:
            if places[turn.speaker] < position:
                round_ += 1
                places = _places(self._order(round_))
            position = places[turn.speaker] + 1
        here = set(self.here)
        for number in (round_, round_ + 1):
            left = [name for name in self._order(number)[position:] if name in here]
            if left:
                return number, left[0]
            position = 0
        return round_ + 1, ""

    def _addressed(self) -> str:
        """Return who was addressed by the last act: named by its move, or by its words; else the next in turn."""
        last = self.acts[-1] if self.acts else None
        here = [name for name in self.who if name in self.here]
        if last is None:
            return here[0]
        others = [name for name in here if name != last.speaker] or here
        move = _move(self.scenario, last.action.type)
        if move is not None:
            named = [name for name in agents_in(move, last.action.values or ()) if name in others]
            if named:
                return named[0]
        places = ((name, whole(name, re.IGNORECASE).search(last.action.text)) for name in others)
        found = {name: (match.start(), -len(name)) for name, match in places if match}
        if found:
            return min(found, key=lambda name: found[name])
        after = self.who.index(last.speaker) + 1 if last.speaker in self.who else 0
        return next(name for name in (*self.who[after:], *self.who) if name in others)

    def _moderated(self, plain: tuple[str, ...]) -> Act:
        """Return the act of the moderator, or of the agent whom the moderator named."""
        moderator, last = self.phase.moderator or "", self.acts[-1] if self.acts else None
        named = last.action.values if last is not None and last.action.type == NEXT else None
        if named and named[0] in self.here:
            return Act((named[0],), plain, self.phase.name)
        # After a word of its own a moderator gives the floor, so that it cannot talk all the time.
        only = last is not None and last.speaker == moderator
        floor = tuple(name for name in self.who if name in self.here)
        return Act((moderator,), (NEXT,) if only else (*plain, NEXT), self.phase.name, floor)


def slots(scenario: Scenario, talk: Transcript, act: Act) -> tuple[Slot, ...]:
    """Return the places of an act in the order in which its agents are asked."""
    here, count = present(scenario, talk), len(act.speakers)
    return tuple(
        Slot(name, ways_of(scenario, act, name, here), len(talk), count, act.phase, number == count - 1, act.since)
        for number, name in enumerate(act.speakers)
    )


def ahead(rules: Rules, scenario: Scenario, talk: Transcript, seed: int, act: Act) -> tuple[Slot, ...]:
    """Return the places of an act and of all after it that are certain, whatever is said before them."""
    found: tuple[Slot, ...] = ()
    step: Next = act
    while isinstance(step, Act):
        here = slots(scenario, talk, step)
        found += here
        if len(found) >= AHEAD or not _is_certain(rules, scenario, step, here):
            break
        for slot in here:
            # Each line says something new, since only what is certain whatever is said may be asked for.
            talk = talk.plus(slot.turn(scenario, len(talk), Action("speak", f"{len(talk)}")))
        step = rules.next(scenario, talk, seed)
    return found


def _is_certain(rules: Rules, scenario: Scenario, act: Act, here: Sequence[Slot]) -> bool:
    """Return True if no allowed action changes what comes after an act, except that it ends the form."""
    phase = next((phase for phase in scenario.phases if phase.name == act.phase), _ONE_PHASE)
    possible = {name_of(way) for slot in here for way in slot.ways}
    if not isinstance(rules, Phased) or phase.order not in WITH_ROUNDS or possible & set(phase.ends_with):
        return False
    return "leave" not in possible or (scenario.limits.leave == "ends" and len(here) == 1)


def ways_of(scenario: Scenario, act: Act, speaker: str, here: Sequence[str]) -> tuple[Way, ...]:
    """Return the ways in which an agent can act now, in the order of the act; `here` are the agents who are present."""
    others = tuple(name for name in here if name != speaker and (not act.named or name in act.named))
    found: list[Way] = []
    for name in act.actions:
        move = _move(scenario, name)
        if move is None:
            found.append(name)
        elif speaker in (move.by or (speaker,)) and (others or not any(param.agents for param in move.values)):
            found.append(Bound(move, act.floor if name == NEXT else others))
    return tuple(found)


def every_way(scenario: Scenario, viewer: str) -> tuple[Way, ...]:
    """Return all ways in which an agent can act at some time."""
    names = scenario.names
    actions = (*scenario.actions, *(move.name for move in scenario.moves))
    return ways_of(scenario, Act((viewer,), actions, floor=tuple(n for n in names if n != viewer)), viewer, names)


def _move(scenario: Scenario, name: str) -> Move | None:
    return next((move for move in scenario.moves if move.name == name), None)


def told_turn(index: int, tell: Tell) -> Turn:
    """Return the turn in which the rules tell something."""
    return Turn(index, WORLD, told(tell.text, tell.values), readers=tell.readers, phase=tell.phase)


def present(scenario: Scenario, talk: Transcript) -> tuple[str, ...]:
    """Return the agents who have not left, in speaking order."""
    gone = {turn.speaker for turn in talk.turns if turn.action.type == "leave"}
    return tuple(name for name in scenario.names if name not in gone) if gone else scenario.names


def stop_reason(scenario: Scenario, talk: Transcript) -> StopReason | None:
    """Return the stop rule that applies now, if any: somebody left, silence, or the turn limit. Equal in every mode.

    A talk in turn has two more (`endings`); games and interviews have not, since goodbyes mean nothing in them.
    """
    limits, acts = scenario.limits, talk.acts
    if scenario.limits.leave == "goes_on":
        if len(present(scenario, talk)) < 2:
            return "left"
    elif acts and any(turn.action.type == "leave" for turn in acts if turn.beat == acts[-1].beat):
        return "left"
    if silent_turns(talk) >= limits.silence:
        return "silence"
    return "turn_limit" if len(acts) >= limits.turns else None


def silent_turns(talk: Transcript) -> int:
    """Return the number of `none` turns at the end of a transcript."""
    count = 0
    for turn in reversed(talk.turns):
        if turn.told:
            continue
        if turn.action.type != "none":
            break
        count += 1
    return count


def _places(order: Sequence[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(order)}


@lru_cache(maxsize=256)
def _shuffled(names: tuple[str, ...], seed: int) -> tuple[str, ...]:
    return tuple(random.Random(seed).sample(names, len(names)))
