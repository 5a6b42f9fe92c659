"""Who can read which turn: the audit's own account, from the moves and phases of the scenario file.

It takes nothing from the rules of phases but the words that the scenario declares. A game is its own declaration, so
its rules are replayed over the stored turns. What was stored beside a turn is compared with all that, so that an error
there is found too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from localsim.conversation.rules.steps import Act, Next, Rules, Stop, Tell
from localsim.conversation.scenario import Scenario
from localsim.conversation.transcript import Transcript, Turn


@dataclass(frozen=True)
class Withheld:
    """A turn that a viewer could not read before it acted."""

    what: str
    line: str
    text: str
    """The words of the turn, those among its values included, but no names or numbers."""
    speaker: str = ""
    values: tuple[str, ...] = ()
    """The values of its move, such as a bid, which are the secret of many games."""
    chosen: tuple[str, ...] = ()
    """The agents among them, such as those of a ballot; not those to whom a move is addressed."""
    move: str = ""


@dataclass(frozen=True)
class Heard:
    """The turns before an act, as far as its viewer could read them, and the others."""

    texts: list[str]
    lines: list[str]
    withheld: list[Withheld]


class Readers:
    """The readers and beats of one stored episode."""

    def __init__(self, scenario: Scenario, talk: Transcript, rules: Rules | None = None, seed: int = 0) -> None:
        """`rules` are those of the scenario's game, if it has any, and `seed` is that of the episode."""
        self._scenario = scenario
        self.turns = talk.turns
        self._steps = _replayed(scenario, talk, rules, seed) if rules is not None else None
        self._moves = {move.name: move for move in scenario.moves}
        self._together = {phase.name for phase in scenario.phases if phase.order == "together"}

    @cached_property
    def beats(self) -> list[int]:
        """The beat of each turn: in a phase whose agents act together, nobody acts twice in one beat."""
        if self._steps is not None:
            return [index for index, _ in self._steps[: len(self.turns)]]
        found: list[int] = []
        for turn in self.turns:
            found.append(self._joined(turn.index, turn.speaker, turn.phase, found) if not turn.told else turn.index)
        return found

    def _joined(self, index: int, speaker: str, phase: str, beats: list[int]) -> int:
        last = self.turns[index - 1] if 0 < index <= len(self.turns) else None
        if last is None or last.told or last.phase != phase or phase not in self._together:
            return index
        members = [self.turns[other].speaker for other in range(beats[index - 1], index)]
        return index if speaker in members else beats[index - 1]

    def beat_at(self, index: int, viewer: str) -> int:
        """Return the beat of an act, also of one that became no turn."""
        if index < len(self.turns):
            return self.beats[index]
        if self._steps is not None:
            return self._steps[index][0] if index < len(self._steps) else index
        phase = self.turns[index - 1].phase if 0 < index <= len(self.turns) else ""
        return self._joined(index, viewer, phase, self.beats)

    def of(self, turn: Turn) -> tuple[str, ...] | None:
        """Return who can read a turn; None: everybody."""
        if turn.told:
            declared = self.declared(turn)
            return turn.readers if declared is None else declared[0]
        move = self._moves.get(turn.action.type)
        if move is None or move.readers == "all":
            return None
        named = [value for value in turn.action.values or () if value in self._scenario.names]
        return (turn.speaker, *(named if move.readers == "named" else ()))

    def declared(self, turn: Turn) -> tuple[tuple[str, ...] | None] | None:
        """Return the readers of what the rules tell, in a tuple, if the scenario file has these words; else None."""
        if self._steps is not None:
            tell = self._steps[turn.index][1]
            return (tell.readers,) if isinstance(tell, Tell) and tell.text == turn.action.text else None
        phase = next((phase for phase in self._scenario.phases if phase.name == turn.phase), None)
        if phase is None:
            return None
        if turn.action.text in (phase.announce, self._count(turn, phase.count)):
            return (None,)
        matching = [event.to or None for event in phase.events if event.text == turn.action.text]
        if not matching:
            return None
        return (turn.readers,) if turn.readers in matching else (matching[0],)

    def _count(self, turn: Turn, counted: str | None) -> str:
        given = Counter(
            value
            for other in self.turns[: turn.index]
            if other.phase == turn.phase and other.action.type == counted
            for value in other.action.values or ()
        )
        ranked = sorted(given, key=lambda value: (-given[value], value))
        return f"Count of {counted}: {', '.join(f'{value} {given[value]}' for value in ranked) or 'none'}."

    def differences(self) -> Iterator[tuple[Turn, str, str]]:
        """Yield (turn, what, text) where a given line, readers or beat as stored are not those of the scenario file."""
        acts = (turn for turn in self.turns if not turn.told)
        for turn, line in zip(acts, self._scenario.begun, strict=False):
            if turn.line != line:
                yield turn, "given line", f"{turn.line} instead of {line}"
        for turn, beat in zip(self.turns, self.beats, strict=True):
            readers = self.of(turn)
            if (readers is None) != (turn.readers is None) or set(readers or ()) != set(turn.readers or ()):
                yield turn, "stored readers", f"{_named(turn.readers)} instead of {_named(readers)}"
            if turn.beat != beat:
                yield turn, "stored beat", f"{turn.beat} instead of {beat}"
            if self._steps is not None and (wrong := _astray(turn, self._steps[turn.index][1])):
                yield turn, "step of the game", wrong

    def heard(self, viewer: str, before: int, *, everything: bool, simultaneous: bool) -> Heard:
        """Return what a viewer could read before an act.

        `everything`: also turns for other readers. `simultaneous`: also the acts of the same beat, as only the writer
        of a script does. What the rules told before the act's own beginning (`Act.since`) is withheld.
        """
        now = self.beat_at(before, viewer)
        left = next(
            (turn.index for turn in self.turns[:before] if turn.speaker == viewer and turn.action.type == "leave"), None
        )
        found = Heard([], [], [])
        for turn, beat in zip(self.turns, self.beats, strict=True):
            # Of its own beat, what the others say later is withheld too: a reply is asked for anew after theirs.
            if turn.index >= before and (simultaneous or beat != now or viewer == turn.speaker or turn.index == before):
                continue
            values = " ".join(turn.action.values or ())
            text = f"{values} {turn.action.text}".strip()
            readers = self.of(turn)
            reads = everything or readers is None or viewer in readers
            late = left is not None and beat > self.beats[left]
            early = turn.index < self._since(before) and not simultaneous
            if turn.speaker == viewer or simultaneous or (reads and beat != now and not late and not early):
                # What the rules tell grants nothing unless the scenario file has these words.
                if not turn.told or self.declared(turn) is not None:
                    found.texts.append(text)
                    found.lines.append(turn.line)
            else:
                what = _what(turn, simultaneous=beat == now)
                text = " ".join([*filter(self._says, turn.action.values or ()), turn.action.text]).strip()
                found.withheld.append(Withheld(what, turn.line, text, turn.speaker, *self._secret(turn)))
        return found

    def _says(self, value: str) -> bool:
        """Return True if a value is words; names and numbers stand side by side in prompts by chance."""
        return value not in self._scenario.names and any(map(str.isalpha, value))

    def _secret(self, turn: Turn) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        """Return the values of a turn, the agents whom it chooses, and its move."""
        move, names = self._moves.get(turn.action.type), self._scenario.names
        addressed = move is not None and move.readers == "named"
        chosen = tuple(value for value in turn.values if value in names and not addressed)
        return tuple(value for value in turn.values if value not in names), chosen, turn.action.type

    def _since(self, before: int) -> int:
        """Return the first turn that an act may be shown; 0 if the rules do not say, or the act became no turn."""
        step = self._steps[before][1] if self._steps is not None and before < len(self._steps) else None
        return step.since if isinstance(step, Act) else 0


def _replayed(scenario: Scenario, talk: Transcript, rules: Rules, seed: int) -> list[tuple[int, Next]]:
    """Return (beat, step) for each turn that the rules of a game ask for, and for those that end its last beat."""
    found: list[tuple[int, Next]] = []
    while len(found) < len(talk.turns):
        start = len(found)
        step = rules.next(scenario, Transcript(talk.turns[:start]), seed)
        found += [(start, step)] * (len(step.speakers) if isinstance(step, Act) else 1)
    return found


def _astray(turn: Turn, step: Next) -> str:
    """Return how a turn differs from what the rules of the game ask for; '' if it does not."""
    if isinstance(step, Stop):
        return f"the game was over ({step.reason})"
    if isinstance(step, Tell):
        told = turn.told and turn.action.text == step.text and (turn.action.values or ()) == step.values
        return "" if told else f"the rules tell: {step.text}"
    if turn.told or turn.speaker not in step.speakers:
        return f"{_named(step.speakers)} should act"
    return "" if turn.action.type in step.actions else f"{turn.action.type} is not allowed now"


def _what(turn: Turn, *, simultaneous: bool) -> str:
    if turn.told:
        return f"turn {turn.index + 1}, told to others or before this question"
    return f"turn {turn.index + 1} by {turn.speaker}{', of the same beat' if simultaneous else ''}"


def _named(readers: tuple[str, ...] | None) -> str:
    return "everybody" if readers is None else ", ".join(readers)
